# ruff: noqa: E501 (one row, one line)
"""AMQP 1.0 as rows: encodings of types, composite types with their fields, sections of a message.

A composite's line has its descriptor in hex, its name, the section of the standard and its fields.
A field is `name:type`; `*` behind the type marks one of which there may be several, `!` one that is
mandatory; `=` stands before the default, which a field that is absent or null has. Names are the
standard's with `_` for `-`. A composite with a descriptor up to `LAST_PERFORMATIVE` is the body of
a frame, one from `FIRST_SASL` to `LAST_SASL` that of a SASL frame.

Source: the XML of the OASIS standard of 29 October 2012, BSD-3-Clause.
"""

from .rows import Row, columns

_ENCODINGS = """
40 null       fixed    0
41 boolean    fixed    0
42 boolean    fixed    0
43 uint       fixed    0
44 ulong      fixed    0
45 list       fixed    0
50 ubyte      fixed    1
51 byte       fixed    1
52 uint       fixed    1
53 ulong      fixed    1
54 int        fixed    1
55 long       fixed    1
56 boolean    fixed    1
60 ushort     fixed    2
61 short      fixed    2
70 uint       fixed    4
71 int        fixed    4
72 float      fixed    4
73 char       fixed    4
74 decimal32  fixed    4
80 ulong      fixed    8
81 long       fixed    8
82 double     fixed    8
83 timestamp  fixed    8
84 decimal64  fixed    8
94 decimal128 fixed    16
98 uuid       fixed    16
a0 binary     variable 1
a1 string     variable 1
a3 symbol     variable 1
b0 binary     variable 4
b1 string     variable 4
b3 symbol     variable 4
c0 list       compound 1
c1 map        compound 1
d0 list       compound 4
d1 map        compound 4
e0 array      array    1
f0 array      array    4
"""

_COMPOSITES = """
10 open             2.7.1    container_id:string! hostname:string max_frame_size:uint=4294967295 channel_max:ushort=65535 idle_time_out:milliseconds outgoing_locales:ietf-language-tag* incoming_locales:ietf-language-tag* offered_capabilities:symbol* desired_capabilities:symbol* properties:fields
11 begin            2.7.2    remote_channel:ushort next_outgoing_id:transfer-number! incoming_window:uint! outgoing_window:uint! handle_max:handle=4294967295 offered_capabilities:symbol* desired_capabilities:symbol* properties:fields
12 attach           2.7.3    name:string! handle:handle! role:role! snd_settle_mode:sender-settle-mode=mixed rcv_settle_mode:receiver-settle-mode=first source:* target:* unsettled:map incomplete_unsettled:boolean=false initial_delivery_count:sequence-no max_message_size:ulong offered_capabilities:symbol* desired_capabilities:symbol* properties:fields
13 flow             2.7.4    next_incoming_id:transfer-number incoming_window:uint! next_outgoing_id:transfer-number! outgoing_window:uint! handle:handle delivery_count:sequence-no link_credit:uint available:uint drain:boolean=false echo:boolean=false properties:fields
14 transfer         2.7.5    handle:handle! delivery_id:delivery-number delivery_tag:delivery-tag message_format:message-format settled:boolean more:boolean=false rcv_settle_mode:receiver-settle-mode state:* resume:boolean=false aborted:boolean=false batchable:boolean=false
15 disposition      2.7.6    role:role! first:delivery-number! last:delivery-number settled:boolean=false state:* batchable:boolean=false
16 detach           2.7.7    handle:handle! closed:boolean=false error:error
17 end              2.7.8    error:error
18 close            2.7.9    error:error
1d error            2.8.14   condition:symbol! description:string info:fields
23 received         3.4.1    section_number:uint! section_offset:ulong!
24 accepted         3.4.2
25 rejected         3.4.3    error:error
26 released         3.4.4
27 modified         3.4.5    delivery_failed:boolean undeliverable_here:boolean message_annotations:fields
28 source           3.5.3    address:* durable:terminus-durability=none expiry_policy:terminus-expiry-policy=session-end timeout:seconds=0 dynamic:boolean=false dynamic_node_properties:node-properties distribution_mode:symbol filter:filter-set default_outcome:* outcomes:symbol* capabilities:symbol*
29 target           3.5.4    address:* durable:terminus-durability=none expiry_policy:terminus-expiry-policy=session-end timeout:seconds=0 dynamic:boolean=false dynamic_node_properties:node-properties capabilities:symbol*
2b delete-on-close  3.5.10
2c delete-on-no-links 3.5.11
2d delete-on-no-messages 3.5.12
2e delete-on-no-links-or-messages 3.5.13
30 coordinator      4.5.1    capabilities:symbol*
31 declare          4.5.2    global_id:*
32 discharge        4.5.3    txn_id:*! fail:boolean
33 declared         4.5.5    txn_id:*!
34 transactional-state 4.5.6    txn_id:*! outcome:*
40 sasl-mechanisms  5.3.3.1  sasl_server_mechanisms:symbol*!
41 sasl-init        5.3.3.2  mechanism:symbol! initial_response:binary hostname:string
42 sasl-challenge   5.3.3.3  challenge:binary!
43 sasl-response    5.3.3.4  response:binary!
44 sasl-outcome     5.3.3.5  code:sasl-code! additional_data:binary
70 header           3.2.1    durable:boolean=false priority:ubyte=4 ttl:milliseconds first_acquirer:boolean=false delivery_count:uint=0
73 properties       3.2.4    message_id:* user_id:binary to:* subject:string reply_to:* correlation_id:* content_type:symbol content_encoding:symbol absolute_expiry_time:timestamp creation_time:timestamp group_id:string group_sequence:sequence-no reply_to_group_id:string
"""

_SECTIONS = """
70 header                 list   3.2.1
71 delivery-annotations   map    3.2.2
72 message-annotations    map    3.2.3
73 properties             list   3.2.4 bare
74 application-properties map    3.2.5 bare
75 data                   binary 3.2.6 bare
76 amqp-sequence          list   3.2.7 bare
77 amqp-value             any    3.2.8 bare
78 footer                 map    3.2.9
"""

_CONDITIONS = """
amqp:internal-error                   2.8.15  The peer failed inside; an operator may have to help.
amqp:not-found                        2.8.15  There is no such node or other entity.
amqp:unauthorized-access              2.8.15  The client may not do this with the node.
amqp:decode-error                     2.8.15  Data could not be decoded.
amqp:resource-limit-exceeded          2.8.15  The peer has too much of something already.
amqp:not-allowed                      2.8.15  The peer does not allow this now, or in this way.
amqp:invalid-field                    2.8.15  A field of a frame has a value that is not valid.
amqp:not-implemented                  2.8.15  The peer does not know how to do this.
amqp:resource-locked                  2.8.15  Another client has the entity for itself.
amqp:precondition-failed              2.8.15  Something that had to be so was not.
amqp:resource-deleted                 2.8.15  The entity was deleted while it was used.
amqp:illegal-state                    2.8.15  The frame is not allowed in the state of the session.
amqp:frame-size-too-small             2.8.15  The frame size that was agreed on is too small for this.
amqp:connection:forced                2.8.16  An operator or the peer's end closed the connection.
amqp:connection:framing-error         2.8.16  No valid frame could be made of the bytes.
amqp:connection:redirect              2.8.16  The host is another one; the error's info names it.
amqp:session:window-violation         2.8.17  More transfers were sent than the window allows.
amqp:session:errant-link              2.8.17  A frame came for a link that was detached with an error.
amqp:session:handle-in-use            2.8.17  An attach used a handle of another link.
amqp:session:unattached-handle        2.8.17  A frame but attach used a handle of no link.
amqp:link:detach-forced               2.8.18  An operator detached the link.
amqp:link:transfer-limit-exceeded     2.8.18  More was sent than the link's credit allows.
amqp:link:message-size-exceeded       2.8.18  The message is larger than the link allows.
amqp:link:redirect                    2.8.18  The address is elsewhere; the error's info says where.
amqp:link:stolen                      2.8.18  Another connection attached the link.
amqp:transaction:unknown-id           4.5.8   There is no transaction with this id.
amqp:transaction:rollback             4.5.8   The transaction was rolled back.
amqp:transaction:timeout              4.5.8   The transaction was not finished in time.
"""

FIRST_PERFORMATIVE, LAST_PERFORMATIVE, TRANSFER = 0x10, 0x18, 0x14
FIRST_SASL, LAST_SASL = 0x40, 0x44

SASL_CODES = ("ok", "auth", "sys", "sys-perm", "sys-temp")
"""Names of the codes of sasl-outcome, from 0 on (§5.3.3.6)."""

MESSAGES = ("send", "receive")
"""Methods of messages in the table `messages`; their frames are `transfer`."""

SECRETS = frozenset(("initial_response", "challenge", "response", "additional_data"))
"""Fields of SASL frames that carry secrets."""


class Encoding(Row):
    """One way to write a type: `code` is the constructor, `width` the bytes of a value, or of its
    size where the `category` is not `fixed`."""

    __slots__ = columns("code type category width")
    code: int
    type: str
    category: str
    width: int


class Field(Row):
    """A field of a composite type; `default` is None without one."""

    __slots__ = columns("name type mandatory multiple default")
    name: str
    type: str
    mandatory: bool
    multiple: bool
    default: str | None


class Composite(Row):
    """A described list with named fields."""

    __slots__ = columns("code name section fields")
    code: int
    name: str
    section: str
    fields: tuple[Field, ...]


class Section(Row):
    """A section of a message; `bare` where no intermediary may change it."""

    __slots__ = columns("code name kind section bare")
    code: int
    name: str
    kind: str
    section: str
    bare: bool


class Condition(Row):
    """A condition of an error; brokers have others of their own."""

    __slots__ = columns("name section meaning")
    name: str
    section: str
    meaning: str


def _field(text: str) -> Field:
    name, _, kind = text.partition(":")
    kind, _, default = kind.partition("=")
    mandatory = kind.endswith("!")
    kind = kind.removesuffix("!")
    multiple = len(kind) > 1 and kind.endswith("*")
    return Field(name, kind.removesuffix("*") or "*", mandatory, multiple, default or None)


def _lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().split("\n")]


ENCODINGS: tuple[Encoding, ...] = tuple(
    Encoding(int(code, 16), kind, category, int(width))
    for code, kind, category, width in _lines(_ENCODINGS)
)
COMPOSITES: tuple[Composite, ...] = tuple(
    Composite(int(code, 16), name, section, tuple(map(_field, fields)))
    for code, name, section, *fields in _lines(_COMPOSITES)
)
SECTIONS: tuple[Section, ...] = tuple(
    Section(int(code, 16), name, kind, section, bool(bare))
    for code, name, kind, section, *bare in _lines(_SECTIONS)
)

CONDITIONS: tuple[Condition, ...] = tuple(
    Condition(*line.split(maxsplit=2)) for line in _CONDITIONS.strip().split("\n")
)


def _is_performative(code: int) -> bool:
    return FIRST_PERFORMATIVE <= code <= LAST_PERFORMATIVE or FIRST_SASL <= code <= LAST_SASL


_BASES = {
    "handle": "uint", "transfer-number": "uint", "delivery-number": "uint", "sequence-no": "uint",
    "milliseconds": "uint", "seconds": "uint", "message-format": "uint", "role": "boolean",
    "sender-settle-mode": "ubyte", "receiver-settle-mode": "ubyte", "sasl-code": "ubyte",
    "terminus-durability": "uint", "terminus-expiry-policy": "symbol", "fields": "map",
    "ietf-language-tag": "symbol", "delivery-tag": "binary", "filter-set": "map",
    "node-properties": "map",
}  # fmt: skip
"""Types that another one restricts, and that one."""


def base_type(kind: str) -> str:
    """The primitive type that a field's type is; `*` and names of composites as they are."""
    return _BASES.get(kind, kind)


def virtual_host(hostname: object, product: object = None) -> str | None:
    """The virtual host that a client's open names, where the broker's says that it is `product`.

    Unless the hostname begins with `vhost:`, RabbitMQ uses default_vhost, which is / unless it is
    configured.
    """
    if isinstance(hostname, str) and hostname.startswith("vhost:"):
        return hostname.removeprefix("vhost:")
    if product == "RabbitMQ":
        return "/"
    return hostname if isinstance(hostname, str) else None


def find(name: str) -> list[Composite] | list[Condition]:
    """Rows of a composite by its name, or of a condition by its name or the end of it."""
    word = name.strip().lower().replace("_", "-")
    return [row for row in COMPOSITES if row.name == word] or [
        row for row in CONDITIONS if row.name == word or row.name.endswith(f":{word}")
    ]


PERFORMATIVES: tuple[Composite, ...] = tuple(
    row for row in COMPOSITES if _is_performative(row.code)
)
"""The composites that are bodies of frames, in the order of their descriptors."""

CBS_NODE = "$cbs"
"""End of the address of the node that takes tokens (claims-based security)."""

MANAGEMENT_NODE = "/management"
"""The address at which RabbitMQ 4 declares, binds and deletes."""

TOKEN_PATH = b"/auth/tokens"
TOKEN_OPERATION = b"put-token"
"""Bytes in the properties (RabbitMQ's path) and in the application-properties (Azure's operation)
of a message that has a token as its body."""
