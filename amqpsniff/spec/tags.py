"""Field-table tags: which octet announces a value of which type, in three readings.

`rabbitmq` is what brokers and most clients use and the default. `spec091` is the grammar of 0-9-1,
which no library sends by default (php-amqplib can). `py-amqp` is what Celery's library reads. They
differ in `s`, `b`, `B`, `l`, so a value is kept with its tag and octets and can be read again.
"""

from .rows import Row, columns

FIELD_TYPES = (
    "", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float",
    "double", "decimal", "shortstr", "longstr", "array", "timestamp", "table", "void", "octets",
)  # fmt: skip
"""Types of field values; the index is the type code of `field_tags`, 0 is no type.

decimal: a scale octet and a signed 32-bit integer. timestamp: 64-bit seconds since the epoch.
array and table: a 32-bit count of octets, then values, or names and values. octets: as longstr,
but never text.
"""

READINGS = ("rabbitmq", "spec091", "py-amqp")
"""Names of the readings, the default first."""


class FieldTag(Row):
    """The meaning of a tag octet in one reading. `unusual`: readable, but not regular."""

    __slots__ = columns("reading tag type unusual note")
    reading: str
    tag: int
    type: str
    unusual: bool
    note: str


_COMMON = (
    "t:bool u:uint16 I:int32 i:uint32 L:int64 U:int16 f:float d:double D:decimal S:longstr A:array "
    "T:timestamp F:table V:void x:octets "
)
_TAGS = {
    "rabbitmq": _COMMON + "b:int8 B:uint8 s:int16 l:int64 \0:void c:longstr C:longstr k:uint8",
    "spec091": _COMMON + "b:int8 B:uint8 s:shortstr l:uint64",
    "py-amqp": _COMMON + "b:uint8 B:int8 s:shortstr l:uint64",
}
_UNUSUAL = {
    ("rabbitmq", "U"): "RabbitMQ closes with 541 in headers and drops the connection in arguments",
    ("rabbitmq", "\0"): "seen in the wild as void; RabbitMQ refuses it",
    ("rabbitmq", "c"): "a string of ASCII, of Qpid Broker-J alone; RabbitMQ refuses it",
    ("rabbitmq", "C"): "a wide string, of Qpid Broker-J alone; RabbitMQ refuses it",
    ("rabbitmq", "k"): "a character, as its number, of Qpid Broker-J alone; RabbitMQ refuses it",
    ("spec091", "x"): "not in the grammar",
}
_NOTES = {
    ("rabbitmq", "L"): "written by py-amqp; Java, Go, .NET, Node and Ruby clients cannot read it",
    ("rabbitmq", "l"): "unsigned in the grammar of 0-9-1",
    ("rabbitmq", "s"): "a short string in the grammar of 0-9-1",
    ("rabbitmq", "x"): "not in the grammar of 0-9-1",
    ("py-amqp", "b"): "signed everywhere else",
    ("py-amqp", "B"): "unsigned everywhere else",
}


def _field_tag(reading: str, word: str) -> FieldTag:
    tag, _, kind = word.partition(":")
    unusual = _UNUSUAL.get((reading, tag))
    note = unusual or _NOTES.get((reading, tag), "")
    return FieldTag(reading, ord(tag), kind, unusual is not None, note)


FIELD_TAGS: tuple[FieldTag, ...] = tuple(
    _field_tag(reading, word) for reading in READINGS for word in _TAGS[reading].split(" ")
)
"""All tags of all readings; `rabbitmq` has Qpid's own `c`, `C` and `k`, which mean nothing else."""


def _bytes(reading: str) -> tuple[bytes, bytes]:
    codes, unusual = bytearray(256), bytearray(256)
    for row in FIELD_TAGS:
        if row.reading == reading:
            codes[row.tag] = FIELD_TYPES.index(row.type)
            unusual[row.tag] = row.unusual
    return bytes(codes), bytes(unusual)


_BYTES = {reading: _bytes(reading) for reading in READINGS}


def field_tags(reading: str = "rabbitmq") -> bytes:
    """256 type codes by tag octet (indexes of `FIELD_TYPES`); 0 where the octet is no tag.

    Raises KeyError for a reading that is not in `READINGS`.
    """
    return _BYTES[reading][0]


def unusual_tags(reading: str = "rabbitmq") -> bytes:
    """256 octets by tag octet: 1 where the tag is readable and worth a remark, else 0."""
    return _BYTES[reading][1]
