"""What becomes of each value of the protocol, as rows.

Deny by default: a text that no row names is filler, and so is what is in a table under a name that
no row has. Numbers and bits of methods stay, for they are counts, tags and codes; numbers in tables
and headers stay only where a row says so.

`NAME` is what people call things: kept as it is, or a pseudonym where names are not to be shown.
`HIDDEN` is a name that says who or where: filler, or a pseudonym where there are pseudonyms.
"""

from __future__ import annotations

from typing import NamedTuple

from amqpsniff.spec import PEER_PROPERTIES as _SAID_AS

KEEP, FILL, NAME, HIDDEN = "keep", "fill", "name", "hidden"
COUNT = "count"
"""Kept where it is a number; a text under such a name is filler."""
TEXT = "text"
"""A reply text: known words of brokers are kept, see `amqpsniff.sanitize.replies`."""
LOGIN = "login"
"""A SASL response."""
PEER, ARGUMENTS, HEADERS = "peer", "arguments", "headers"
"""Tables: a peer's properties, arguments of a declaration, headers of a message."""


class Rule(NamedTuple):
    """What becomes of values of a name; `why` is for a person."""

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
"""What is said of a client or a broker."""

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
"""Names in ALPN that stay: they say nothing but the protocol."""

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
"""Arguments that brokers know; others, such as what a headers exchange compares, are filler."""

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
)
"""Headers that brokers and libraries write, without which a message cannot be followed."""

NESTED: tuple[Rule, ...] = (
    Rule("count", COUNT, "how often"),
    Rule("reason", KEEP, "why it was dead-lettered"),
    Rule("time", COUNT, "when"),
    Rule("original-expiration", KEEP, "a time in milliseconds"),
)
"""Fields of tables within a value that is a name: those of `x-death`; others are names."""


def actions(rules: tuple[Rule, ...]) -> dict[bytes, str]:
    """Actions by name, as the name is on the wire."""
    return {rule.name.encode(): rule.action for rule in rules}
