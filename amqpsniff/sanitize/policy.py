"""The policy of sanitizing: a row for each value of the protocol.

Deny by default: a text without a row is filler, and so is a value in a table under a name that
no row has. Numbers and bits of methods stay, for they are counts, tags and codes; numbers in tables
and headers stay only where a row says so.

`NAME` is what people call things: kept as it is, or a pseudonym where names are not to be shown.
`HIDDEN` is a name that says who or where: filler, or a pseudonym where there are pseudonyms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from amqpsniff.spec import PEER_PROPERTIES as _SAID_AS

KEEP, FILL, NAME, HIDDEN = "keep", "fill", "name", "hidden"
COUNT = "count"
"""Kept where it is a number; a text under such a name is filler."""
TEXT = "text"
"""A reply text: known words of brokers are kept, see `amqpsniff.sanitize.replies`."""
LOGIN = "login"
"""A SASL response."""
WORD = "word"
"""A word of the protocol or of a broker is kept, another text is filler; see `is_word`."""
HOST = "host"
"""A host, or a virtual host behind `vhost:`."""
ADDRESS = "address"
"""A name as an address of AMQP 1.0: its host is hidden, words for kinds of things are kept."""
SUBJECT = "subject"
"""A name, except for methods of requests to `/management`, and the status of an answer."""
INSIDE = "inside"
"""A described list of AMQP 1.0, whose own fields have rules."""
TAGS = "tags"
"""A map from delivery tags to states."""
BODY = "body"
"""Filler and zeros, keys of maps too."""
PEER, ARGUMENTS, HEADERS = "peer", "arguments", "headers"
"""Tables: a peer's properties, arguments of a declaration, headers of a message."""
REQUEST = "request"
"""Headers of a message of a node that manages: `$cbs`, `$management`."""
DECLARATION = "declaration"
"""The body of a message to or from RabbitMQ's `/management`."""


_BYTE = b"x"
"""Filler: a letter that begins no frame and no protocol header, so no decoder takes it for one. It
is text wherever text is expected."""


def filler(octets: int) -> bytes:
    """Filler of this length."""
    return _BYTE * octets


def zeros(octets: int) -> bytes:
    """Zeros of this length, in place of a number that is text."""
    return b"0" * octets


def fill(octets: bytearray, at: int, end: int) -> int:
    """Put filler to the end of a container that cannot be walked further; gives -1."""
    octets[at:end] = filler(end - at)
    return -1


@dataclass(frozen=True)
class SanitizeOptions:
    """The options with which a capture is made safe.

    Attributes:
        headers: Names of the headers whose values are replaced; None for all that brokers and
            libraries do not write themselves.
        keep_headers: Names of headers whose values are kept.
        keep_bodies: Keep bodies of messages.
        names: Whether names are replaced by pseudonyms.
        addresses: Whether addresses and the ports of clients are replaced by pseudonyms.
        drop_foreign: Leave out packets that belong to no AMQP connection; otherwise they are kept
            without their contents.
    """

    headers: frozenset[str] | None = None
    keep_headers: frozenset[str] = frozenset()
    keep_bodies: bool = False
    names: bool = False
    addresses: bool = False
    drop_foreign: bool = False


class Rule(NamedTuple):
    """The treatment of values of a name; `why` is for a person."""

    name: str
    action: str
    why: str


METHOD_ARGUMENTS: tuple[Rule, ...] = (
    Rule("exchange", NAME, "an exchange"),
    Rule("destination", NAME, "an exchange"),
    Rule("source", NAME, "an exchange"),
    Rule("queue", NAME, "a queue"),
    Rule("name", NAME, "an exchange (Qpid's query)"),
    Rule("routing_key", NAME, "a routing key; on the default exchange a queue"),
    Rule("consumer_tag", NAME, "a consumer"),
    Rule("virtual_host", NAME, "a virtual host"),
    Rule("realm", NAME, "a realm of 0-8"),
    Rule("type", KEEP, "an exchange type"),
    Rule("mechanism", KEEP, "how the client logs in"),
    Rule("mechanisms", KEEP, "how clients may log in"),
    Rule("locale", KEEP, "a language"),
    Rule("locales", KEEP, "languages"),
    Rule("response", LOGIN, "credentials"),
    Rule("reply_text", TEXT, "why something was refused"),
    Rule("reason", TEXT, "why a broker blocks, or a secret changes"),
    Rule("server_properties", PEER, "who the broker is"),
    Rule("client_properties", PEER, "who the client is"),
    Rule("arguments", ARGUMENTS, "arguments of a declaration or a consumer"),
    Rule("filter", ARGUMENTS, "arguments of a consumer"),
    Rule("host", HIDDEN, "a host"),
    Rule("known_hosts", HIDDEN, "hosts"),
    Rule("cluster_id", HIDDEN, "a cluster"),
)
"""Texts and tables of methods."""

PROPERTIES: tuple[Rule, ...] = (
    Rule("content_type", KEEP, "a MIME type"),
    Rule("content_encoding", KEEP, "how the body is packed"),
    Rule("headers", HEADERS, "what applications say of a message"),
    Rule("delivery_mode", KEEP, "a number"),
    Rule("priority", KEEP, "a number"),
    Rule("correlation_id", NAME, "which request a reply answers"),
    Rule("reply_to", NAME, "a queue"),
    Rule("expiration", KEEP, "a time in milliseconds"),
    Rule("message_id", NAME, "which message it is"),
    Rule("timestamp", KEEP, "when it was made"),
    Rule("type", NAME, "what kind of message it is"),
    Rule("user_id", HIDDEN, "who logged in"),
    Rule("app_id", HIDDEN, "which program sent it"),
    Rule("cluster_id", HIDDEN, "a cluster"),
)
"""Properties of contents."""

PEER_PROPERTIES: tuple[Rule, ...] = (
    *(Rule(key, KEEP, "which library or broker") for key in _SAID_AS["product"]),
    *(Rule(key, KEEP, "of that") for key in _SAID_AS["version"]),
    *(Rule(key, KEEP, "what it runs on") for key in _SAID_AS["platform"]),
    Rule("capabilities", COUNT, "what it can do"),
    Rule("connection_name", HIDDEN, "often a host and a process"),
    Rule("cluster_name", HIDDEN, "often a host"),
)
"""Properties of a client or a broker."""

EXTENSIONS: tuple[Rule, ...] = (
    Rule("1", KEEP, "max_fragment_length"),
    Rule("10", KEEP, "supported_groups"),
    Rule("11", KEEP, "ec_point_formats"),
    Rule("13", KEEP, "signature_algorithms"),
    Rule("22", KEEP, "encrypt_then_mac"),
    Rule("23", KEEP, "extended_master_secret"),
    Rule("27", KEEP, "compress_certificate"),
    Rule("28", KEEP, "record_size_limit"),
    Rule("43", KEEP, "supported_versions"),
    Rule("45", KEEP, "psk_key_exchange_modes"),
    Rule("50", KEEP, "signature_algorithms_cert"),
    Rule("51", KEEP, "key_share: public keys for one connection"),
    Rule("65281", KEEP, "renegotiation_info"),
)
"""Extensions of TLS handshakes whose contents stay; of server_name and ALPN see `records`."""

PROTOCOL_NAMES = frozenset((b"amqp", b"amqps", b"h2", b"http/1.0", b"http/1.1", b"mqtt"))
"""Names in ALPN that stay: they only name a protocol."""

_NUMBERS = (
    "x-message-ttl x-expires x-max-length x-max-length-bytes x-max-priority x-queue-version "
    "x-single-active-consumer x-delivery-limit x-initial-cluster-size x-quorum-initial-group-size "
    "x-cancel-on-ha-failover x-stream-max-segment-size-bytes x-consumer-timeout x-priority"
).split()
_WORDS = (
    "x-overflow x-queue-mode x-queue-type x-queue-leader-locator x-queue-master-locator "
    "x-dead-letter-strategy x-max-age x-stream-offset x-delayed-type x-match"
).split()

DECLARED: tuple[Rule, ...] = (
    *(Rule(name, COUNT, "a setting of the broker") for name in _NUMBERS),
    *(Rule(name, KEEP, "a setting of the broker, a word") for name in _WORDS),
    Rule("x-dead-letter-exchange", NAME, "an exchange"),
    Rule("x-dead-letter-routing-key", NAME, "a routing key"),
    Rule("alternate-exchange", NAME, "an exchange"),
)
"""Arguments that brokers define; others, such as those of a headers exchange, are filler."""

BROKER_HEADERS: tuple[Rule, ...] = (
    Rule("x-death", NAME, "where a message was dead-lettered"),
    Rule("x-first-death-exchange", NAME, "an exchange"),
    Rule("x-first-death-queue", NAME, "a queue"),
    Rule("x-first-death-reason", KEEP, "why it was dead-lettered"),
    Rule("x-last-death-exchange", NAME, "an exchange"),
    Rule("x-last-death-queue", NAME, "a queue"),
    Rule("x-last-death-reason", KEEP, "why it was dead-lettered"),
    Rule("x-delivery-count", COUNT, "how often it was delivered"),
    Rule("x-stream-offset", COUNT, "its place in a stream"),
    Rule("x-delay", COUNT, "a time in milliseconds"),
    Rule("CC", NAME, "routing keys"),
    Rule("BCC", NAME, "routing keys"),
    Rule("compression", KEEP, "how Kombu packed the body"),
    Rule("x-opt-deaths", NAME, "where a message was dead-lettered"),
    Rule("x-exchange", NAME, "an exchange"),
    Rule("x-routing-key", NAME, "a routing key"),
    Rule("x-cc", NAME, "routing keys"),
    Rule("x-opt-partition-key", NAME, "what Azure spreads messages by"),
    Rule("x-opt-deadletter-source", NAME, "a queue"),
    *(
        Rule(name, COUNT, "a number or a time of a broker")
        for name in (
            "x-opt-sequence-number x-opt-enqueued-time x-opt-locked-until x-opt-message-state "
            "x-opt-scheduled-enqueue-time x-opt-enqueue-sequence-number x-opt-delivery-time "
            "x-opt-delivery-delay x-opt-rabbitmq-received-time x-acquired-count x-ack-count "
            "x-opt-jms-msg-type x-opt-jms-dest x-opt-jms-reply-to"
        ).split()
    ),
)
"""Headers that brokers and libraries write, without which a message cannot be followed."""

NESTED: tuple[Rule, ...] = (
    Rule("count", COUNT, "how often"),
    Rule("reason", KEEP, "why it was dead-lettered"),
    Rule("time", COUNT, "when"),
    Rule("original-expiration", KEEP, "a time in milliseconds"),
)
"""Fields of tables within a value that is a name: those of `x-death`; others are names."""


AMQP10_FIELDS: tuple[Rule, ...] = (
    Rule("container_id", HIDDEN, "often a host and a process"),
    Rule("hostname", HOST, "a host, or a virtual host"),
    Rule("outgoing_locales", KEEP, "languages"),
    Rule("incoming_locales", KEEP, "languages"),
    Rule("offered_capabilities", WORD, "what it can do"),
    Rule("desired_capabilities", WORD, "what it wants"),
    Rule("capabilities", WORD, "what a terminus can do"),
    Rule("properties", PEER, "who it is; settings of a link"),
    Rule("name", NAME, "a link"),
    Rule("source", INSIDE, "a terminus"),
    Rule("target", INSIDE, "a terminus"),
    Rule("state", INSIDE, "a delivery state"),
    Rule("outcome", INSIDE, "a delivery state"),
    Rule("default_outcome", INSIDE, "a delivery state"),
    Rule("error", INSIDE, "why something was refused"),
    Rule("unsettled", TAGS, "deliveries"),
    Rule("address", ADDRESS, "a queue, a topic"),
    Rule("distribution_mode", WORD, "move or copy"),
    Rule("expiry_policy", WORD, "when a terminus ends"),
    Rule("outcomes", WORD, "names of delivery states"),
    Rule("delivery_tag", NAME, "which delivery it is"),
    Rule("txn_id", NAME, "a transaction"),
    Rule("global_id", NAME, "a transaction"),
    Rule("condition", WORD, "why something was refused"),
    Rule("description", TEXT, "why something was refused"),
    Rule("message_annotations", HEADERS, "what a consumer adds"),
    Rule("mechanism", KEEP, "how the client logs in"),
    Rule("sasl_server_mechanisms", KEEP, "how clients may log in"),
    Rule("initial_response", LOGIN, "credentials"),
    Rule("response", LOGIN, "credentials"),
    Rule("message_id", NAME, "which message it is"),
    Rule("user_id", HIDDEN, "who logged in"),
    Rule("to", ADDRESS, "a queue, a topic"),
    Rule("subject", SUBJECT, "what kind of message it is"),
    Rule("reply_to", ADDRESS, "a queue, a topic"),
    Rule("correlation_id", NAME, "which request a reply answers"),
    Rule("content_type", KEEP, "a MIME type"),
    Rule("content_encoding", KEEP, "how the body is packed"),
    Rule("group_id", NAME, "a group of messages"),
    Rule("reply_to_group_id", NAME, "a group of messages"),
)
"""Fields of composite types of AMQP 1.0 that are no numbers; in others numbers stay."""

LINK_PROPERTIES: tuple[Rule, ...] = (
    Rule("framework", KEEP, "what a library runs on"),
    Rule("user-agent", HIDDEN, "which library, on which system"),
    Rule("rabbitmq:active", COUNT, "whether it is the active consumer"),
    Rule("paired", COUNT, "whether another link belongs to it"),
    *(
        Rule(f"com.microsoft:{name}", COUNT, "a setting of a link")
        for name in (
            "epoch", "timeout", "entity-type", "locked-until-utc", "max-message-batch-size",
        )
    ),
)  # fmt: skip
"""Further properties of connections and links of AMQP 1.0."""

REQUEST_HEADERS: tuple[Rule, ...] = (
    Rule("operation", KEEP, "what a node is asked for"),
    Rule("type", KEEP, "what kind of entity or token it is about"),
    Rule("name", HIDDEN, "an entity, with its host"),
    Rule("expiration", COUNT, "when a token ends"),
    Rule("status-code", COUNT, "how it was answered"),
    Rule("statusCode", COUNT, "how it was answered"),
    Rule("status-description", TEXT, "how it was answered"),
    Rule("statusDescription", TEXT, "how it was answered"),
    Rule("errorCondition", WORD, "why it was refused"),
    Rule("com.microsoft:server-timeout", COUNT, "a time in milliseconds"),
)
"""Headers of requests to nodes that manage, and of their answers."""

DECLARATIONS: tuple[Rule, ...] = (
    *(
        Rule(name, NAME, "an exchange, a queue, a routing key, a virtual host")
        for name in (
            "name", "vhost", "source", "destination_queue", "destination_exchange", "binding_key",
        )
    ),
    *(
        Rule(name, COUNT, "a setting, a number of messages or consumers")
        for name in (
            "durable", "exclusive", "auto_delete", "internal", "message_count", "consumer_count",
        )
    ),
    Rule("type", KEEP, "a type of queues or exchanges"),
    Rule("arguments", ARGUMENTS, "arguments of a declaration or a binding"),
    Rule("location", ADDRESS, "a binding"),
    Rule("leader", HIDDEN, "a node of a cluster"),
    Rule("replicas", HIDDEN, "nodes of a cluster"),
)  # fmt: skip
"""Fields of the bodies of requests to RabbitMQ's `/management`, and of its answers."""

_WORD = re.compile(rb"(?:amqp|apache\.org|com\.microsoft|rabbitmq)[:.][a-z0-9:.-]{1,64}", re.ASCII)
_SYMBOLS = frozenset(
    b"ANONYMOUS-RELAY SHARED-SUBS DELAYED_DELIVERY LINK_PAIR_V1_0 sole-connection-for-container "
    b"queue topic temporary-queue temporary-topic shared global move copy link-detach session-end "
    b"connection-close never".split()
)


def is_word(text: bytes) -> bool:
    """True if a symbol is in a name space of the standard or of a broker, or a known word."""
    return text in _SYMBOLS or _WORD.fullmatch(text) is not None


def actions(rules: tuple[Rule, ...]) -> dict[bytes, str]:
    """Actions by name, as the name is on the wire."""
    return {rule.name.encode(): rule.action for rule in rules}
