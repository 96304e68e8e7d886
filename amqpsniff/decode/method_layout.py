"""The protocol's rows, flattened for the decoder.

The compiled decoder cannot afford to look at row objects, so this module lays the rows of
`amqpsniff.spec` out in plain arrays once, at import: the possible methods of a (dialect, class,
method), and for every argument its type, its role, and its name as JSON text. All of it comes from
the rows.
"""

from array import array

from amqpsniff.spec import (
    CONTENT_CLASSES,
    DELIVERIES,
    DIALECTS,
    FRAME_TYPES,
    METHODS,
    PROTOCOL_HEADERS,
    PUBLISHES,
    Method,
    methods_for,
)
from amqpsniff.spec.amqp010 import SEGMENTS, UNITS
from amqpsniff.spec.amqp10 import PERFORMATIVES

DIALECT_CODES: dict[str | None, int] = {None: 0} | {d: i + 1 for i, d in enumerate(DIALECTS)}
"""0 stands for an unknown dialect."""

HEADER_DIALECTS: dict[bytes, int] = {
    row.octets: DIALECT_CODES[row.protocol]
    for row in PROTOCOL_HEADERS
    if row.protocol in DIALECT_CODES
}
"""The dialect that a protocol header opens, by the four bytes after `AMQP`; others open none."""

FIRST_PERFORMATIVE = len(METHODS)
"""Codes in `NAMES` from here on are of performatives of AMQP 1.0, and of its two directions."""

NAMES = [
    *(_method.name for _method in METHODS),
    *(_row.name for _row in PERFORMATIVES),
    "send",
    "receive",
    *(f"0-10:{name}" for name in UNITS.values()),
]
"""Names of methods in rows of frames and messages, by code. Those of AMQP 0-10 are marked, since
many of 0-9-1 have the same name and another meaning."""

WAYS = bytes(0 if name in PUBLISHES else 1 if name in DELIVERIES else 2 for name in NAMES)
"""Which way a message goes by the method of its row: published, delivered, or returned."""

FIRST_UNIT = len(NAMES) - len(UNITS)
"""Codes from here on are of controls and commands of AMQP 0-10."""

SEND, RECEIVE = FIRST_UNIT - 2, FIRST_UNIT - 1
"""A delivery of AMQP 1.0 from the client, and one from the server."""

DIALECT_NAMES: tuple[str | None, ...] = (None, *DIALECTS)

# Roles of arguments, besides being shown.
EXCHANGE, ROUTING_KEY, QUEUE, CONSUMER_TAG, REPLY_TEXT = 1, 2, 3, 4, 5
DELIVERY_TAG, REPLY_CODE, SECRET, FRAME_MAX = 6, 7, 8, 9
CLASS_ID, METHOD_ID, VERSION_MAJOR, VERSION_MINOR = 10, 11, 12, 13
FLAG_ROLES = 32  # 32 + n: bit n of the flags
FLAG_NAMES = ("mandatory", "immediate", "redelivered", "multiple", "requeue", "no_ack", "no_wait")
MANDATORY, IMMEDIATE, REDELIVERED, MULTIPLE, REQUEUE, NO_ACK, NO_WAIT = (
    1 << n for n in range(len(FLAG_NAMES))
)
FLAGS_CUT = 1 << len(FLAG_NAMES)
"""Beside them: some were not captured."""

CUT = FLAGS_CUT << 1
"""And: some argument, of whatever type, was not."""

# Types of arguments, as `spec` writes them.
BIT, BYTE, SHORT, LONG, LONGLONG, SHORTSTR, LONGSTR, TIMESTAMP, TABLE, CONTENT = b"bohlLsSTFC"

_ROLES = {
    "exchange": EXCHANGE,
    "routing_key": ROUTING_KEY,
    "queue": QUEUE,
    "consumer_tag": CONSUMER_TAG,
    "reply_text": REPLY_TEXT,
    "delivery_tag": DELIVERY_TAG,
    "reply_code": REPLY_CODE,
    "frame_max": FRAME_MAX,
    "class_id": CLASS_ID,
    "method_id": METHOD_ID,
    "version_major": VERSION_MAJOR,
    "version_minor": VERSION_MINOR,
} | {name: FLAG_ROLES + n for n, name in enumerate(FLAG_NAMES)}

SENDER_CLIENT, SENDER_SERVER = 1, 2
_SENDERS = {"client": SENDER_CLIENT, "server": SENDER_SERVER, "both": 3}

NO_TAG, TAG_FIRST, TAG_AFTER_TEXT = 1, 2, 3
"""Where a method that may be remembered has its delivery tag; 0 stands for one that may not."""

_FREQUENT = frozenset(("basic.ack", "basic.nack", "basic.reject", "basic.get", "basic.get-empty"))

# One entry a method, in the order of METHODS.
first_argument = array("i", [0])
content = bytearray()
arguments_known = bytearray()
senders = bytearray()
frequent = bytearray()  # comes with every message: a content, an acknowledgement, a get
dialects = bytearray()  # bit n: DIALECTS[n]; those of all rows that read and mean the same
tag_places = bytearray()
returns = bytearray()  # gives a message back that was published
secrets = bytearray()  # carries one
flag_masks = array("i")  # which of FLAG_NAMES the method has
# One entry an argument.
types = bytearray()
roles = bytearray()
key_starts = array("i")
key_lengths = array("i")
keys = bytearray()


def _tag_place(method: Method) -> int:
    """Position of the delivery tag of a method for `MethodCache`; 0 if it holds a secret."""
    if method.has_secret:
        return 0
    kinds = [a.type if a.name != "delivery_tag" else "tag" for a in method.arguments]
    if "tag" not in kinds:
        return NO_TAG
    if kinds[0] == "tag":
        return TAG_FIRST
    return TAG_AFTER_TEXT if kinds[:2] == ["s", "tag"] else 0


def _meaning(method: Method) -> tuple[object, ...]:
    """Equal for rows whose numbers stand for the same name and arguments."""
    arguments = method.arguments if method.arguments_known else ("?",)
    # rows share equal arguments, and comparing those by value is most of what this module takes
    return (method.class_id, method.method_id, method.name, *map(id, arguments))


_masks: dict[tuple[object, ...], int] = {}
_meanings = [_meaning(_method) for _method in METHODS]
for _method, _one in zip(METHODS, _meanings, strict=True):
    _bits = sum(1 << DIALECTS.index(dialect) for dialect in _method.dialects)
    _masks[_one] = _masks.get(_one, 0) | _bits

for _method, _one in zip(METHODS, _meanings, strict=True):
    content.append(_method.content)
    arguments_known.append(_method.arguments_known)
    frequent.append(_method.content or _method.name in _FREQUENT)
    tag_places.append(_tag_place(_method) if _method.arguments_known else 0)
    returns.append(_method.name.endswith(".return"))
    secrets.append(_method.has_secret)
    senders.append(_SENDERS[_method.sender])
    flag_masks.append(sum(1 << FLAG_NAMES.index(a.name) for a in _method.arguments
                          if a.name in FLAG_NAMES))  # fmt: skip
    dialects.append(_masks[_one])
    for _position, _argument in enumerate(_method.arguments):
        _key = f'{"," if _position else ""}"{_argument.name}":'.encode()
        types.append(ord(_argument.type))
        roles.append(SECRET if _argument.secret else _ROLES.get(_argument.name, 0))
        key_starts.append(len(keys))
        key_lengths.append(len(_key))
        keys += _key
    first_argument.append(len(types))

secret_methods = tuple(sorted({(m.class_id, m.method_id) for m in METHODS if m.has_secret}))
"""(class, method) of the methods that carry a secret."""

secret_classes = frozenset(class_id for class_id, _ in secret_methods)
"""Classes with such methods: of these a dialect may lack one that is sent all the same."""

harmless_methods = frozenset((m.class_id, m.method_id) for m in METHODS) - set(secret_methods)
"""(class, method) of the methods that carry no secret."""

CLASS_LIMIT, METHOD_LIMIT = 128, 256
"""Ids below these are found in `lookup`, the few beyond in `far`."""

lookup = array("i", [-1]) * (len(DIALECT_NAMES) * CLASS_LIMIT * METHOD_LIMIT)
"""[dialect code][class][method] → where the choices begin in `choices`; -1 for no such method."""

far: dict[tuple[int, int, int], int] = {}
far_classes = bytearray(65_536)  # by id: the class has methods in `far`
choices = array("i")
"""Method indices in order of preference, each list ended by -1."""

_ids = sorted({(m.class_id, m.method_id) for m in METHODS})
for _code, _dialect in enumerate(DIALECT_NAMES):
    for _id in _ids:
        _candidates = methods_for(_dialect, *_id)
        if not _candidates:
            continue
        if _id[0] < CLASS_LIMIT and _id[1] < METHOD_LIMIT:
            lookup[(_code * CLASS_LIMIT + _id[0]) * METHOD_LIMIT + _id[1]] = len(choices)
        else:
            far[(_code, _id[0], _id[1])] = len(choices)
            far_classes[_id[0]] = 1
        choices.extend([*[m.index for m in _candidates], -1])

content_classes: tuple[frozenset[int], ...] = (
    frozenset().union(*CONTENT_CLASSES.values()),
    *(frozenset(CONTENT_CLASSES[d]) for d in DIALECTS),
)
"""Classes that carry content, by dialect code."""


_FRAME_NAMES = {row.code: row.name for row in FRAME_TYPES}
FRAME_TYPE_NAMES = [
    *(_FRAME_NAMES.get(_code, f"type-{_code}") for _code in range(256)),
    "protocol-header",
    "performative",
    "sasl",
    *SEGMENTS,
]
"""Names of frame types by the decoder's code: behind those on the wire the ones of AMQP 1.0, then
the segments of AMQP 0-10."""

FIRST_SEGMENT = len(FRAME_TYPE_NAMES) - len(SEGMENTS)


def method_name(method: int) -> str:
    """Name of a method by its index."""
    return NAMES[method] if 0 <= method < len(NAMES) else "an unknown method"


def frame_words(kind: int, method: int) -> str:
    """A frame by its type, or its method by its index, in words."""
    if kind == 1:
        return method_name(method)
    name = _FRAME_NAMES.get(kind)
    return f"a {name} frame" if name else f"a frame of type {kind}"
