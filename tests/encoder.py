"""Bytes of AMQP 0-8, 0-9 and 0-9-1 from the protocol's rows, and the JSON that stands for them.

Written for the tests and apart from the decoder: nothing of `amqpsniff.decode` is used here. Field
values are `Field(tag, value)`; `json_value` is what a table column shows of one under a reading.
"""

from __future__ import annotations

import base64
import datetime
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from amqpsniff.spec import FIELD_TAGS, FIELD_TYPES, Method, field_tags, properties_for

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
PROTOCOL_HEADERS = {
    "0-8": b"AMQP\x01\x01\x08\x00",
    "0-9": b"AMQP\x01\x01\x00\x09",
    "0-9-1": b"AMQP\x00\x00\x09\x01",
}
MILLISECONDS_FROM = 10**12
LAST_SECOND = 253402300799


class Field(NamedTuple):
    """A field value: its tag byte as a character and what it holds.

    Integers, bool, float; decimal as (scale, unscaled); text and bytes as bytes; array as a list
    of Fields, table as a list of (name as bytes, Field); void None.
    """

    tag: str
    value: Any


# bytes


def shortstr(octets: bytes) -> bytes:
    """A short string."""
    return bytes([len(octets)]) + octets


def longstr(octets: bytes) -> bytes:
    """A long string."""
    return struct.pack(">I", len(octets)) + octets


_NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "uint8": ">B",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "uint64": ">Q",
    "float": ">f",
    "double": ">d",
    "timestamp": ">Q",
}


def type_of(tag: str, reading: str = "rabbitmq") -> str:
    """The type that a tag announces in a reading; "" for none."""
    return FIELD_TYPES[field_tags(reading)[ord(tag)]]


def value_bytes(field: Field, reading: str = "rabbitmq") -> bytes:
    """A field value without its tag."""
    kind = type_of(field.tag, reading)
    if kind in _NUMBERS:
        return struct.pack(_NUMBERS[kind], field.value)
    if kind == "decimal":
        return struct.pack(">Bi", *field.value)
    if kind == "shortstr":
        return shortstr(field.value)
    if kind in ("longstr", "octets"):
        return longstr(field.value)
    if kind == "array":
        return longstr(b"".join(tagged(item, reading) for item in field.value))
    if kind == "table":
        return table(field.value, reading)
    if kind == "void":
        return b""
    raise ValueError(f"{field.tag!r} is no tag in {reading}")


def tagged(field: Field, reading: str = "rabbitmq") -> bytes:
    """A field value with its tag."""
    return field.tag.encode("latin-1") + value_bytes(field, reading)


def pairs(fields: Iterable[tuple[bytes, Field]], reading: str = "rabbitmq") -> bytes:
    """The names and values of a table, without its length."""
    return b"".join(shortstr(name) + tagged(field, reading) for name, field in fields)


def table(fields: Iterable[tuple[bytes, Field]], reading: str = "rabbitmq") -> bytes:
    """A field table."""
    return longstr(pairs(fields, reading))


def typed(kind: str, value: Any, reading: str = "rabbitmq") -> bytes:
    """An argument or property by its type letter; bits are not bytes, see `arguments`."""
    if kind in "ohlLT":
        return struct.pack({"o": ">B", "h": ">H", "l": ">I", "L": ">Q", "T": ">Q"}[kind], value)
    if kind == "s":
        return shortstr(value)
    if kind == "S":
        return longstr(value)
    if kind == "F":
        return table(value, reading)
    if kind == "C":
        reference, octets = value
        return bytes([reference]) + longstr(octets)
    raise ValueError(f"no type {kind!r}")


def arguments(row: Method, values: Mapping[str, Any], reading: str = "rabbitmq") -> bytes:
    """The arguments of a method; bits that follow each other share bytes, low bit first."""
    octets = bytearray()
    bit = 0
    for argument in row.arguments:
        if argument.type == "b":
            if bit % 8 == 0:
                octets.append(0)
            octets[-1] |= bool(values[argument.name]) << (bit % 8)
            bit += 1
        else:
            bit = 0
            octets += typed(argument.type, values[argument.name], reading)
    return bytes(octets)


def frame(kind: int, channel: int, payload: bytes, end: int = FRAME_END) -> bytes:
    """One frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([end])


def method_payload(row: Method, values: Mapping[str, Any], reading: str = "rabbitmq") -> bytes:
    """The payload of a method frame."""
    return struct.pack(">HH", row.class_id, row.method_id) + arguments(row, values, reading)


def method(
    row: Method, values: Mapping[str, Any], channel: int = 1, reading: str = "rabbitmq"
) -> bytes:
    """A method frame."""
    return frame(METHOD, channel, method_payload(row, values, reading))


def header_payload(
    class_id: int,
    body_size: int,
    properties: Mapping[str, Any] | None = None,
    weight: int = 0,
    reading: str = "rabbitmq",
    dialect: str = "0-9-1",
) -> bytes:
    """The payload of a content header frame."""
    given = properties or {}
    flags, octets = 0, b""
    for place, row in enumerate(properties_for(dialect, class_id)):
        if row.name in given:
            flags |= 1 << (15 - place)
            octets += typed(row.type, given[row.name], reading)
    return struct.pack(">HHQH", class_id, weight, body_size, flags) + octets


def header(channel: int, class_id: int, body_size: int, **given: Any) -> bytes:
    """A content header frame."""
    return frame(HEADER, channel, header_payload(class_id, body_size, **given))


def body(channel: int, octets: bytes) -> bytes:
    """A body frame."""
    return frame(BODY, channel, octets)


HEARTBEAT_FRAME = frame(HEARTBEAT, 0, b"")


def content(
    row: Method, values: Mapping[str, Any], octets: bytes, channel: int = 1, **given: Any
) -> list[bytes]:
    """Method, header and body frames of one message, the body in one frame."""
    bodies = [body(channel, octets)] if octets else []
    return [
        method(row, values, channel),
        header(channel, row.class_id, len(octets), **given),
        *bodies,
    ]


# what the tables show


def json_text(octets: bytes) -> Any:
    """Text, or bytes that are not UTF-8."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(octets).decode()}


def json_timestamp(number: int) -> Any:
    """RFC 3339 text, read as milliseconds from 10^12 on; the number where there is no date."""
    seconds, ms = divmod(number, 1000) if number >= MILLISECONDS_FROM else (number, 0)
    if seconds > LAST_SECOND:
        return number
    date = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return date.strftime(f"{date.year:04d}-%m-%dT%H:%M:%S") + (f".{ms:03d}" if ms else "") + "Z"


def json_float(number: float, kind: str = "double") -> Any:
    """A number, or the string for what JSON has no number for."""
    if kind == "float":
        (number,) = struct.unpack(">f", struct.pack(">f", number))
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    return number


def json_value(field: Field, reading: str = "rabbitmq") -> Any:
    """What a JSON column shows of a field value; decimals as `Decimal`."""
    kind = type_of(field.tag, reading)
    if kind == "decimal":
        scale, unscaled = field.value
        return Decimal(unscaled).scaleb(-scale) if scale else unscaled
    if kind in ("shortstr", "longstr", "octets"):
        return json_text(field.value)
    if kind == "array":
        return [json_value(item, reading) for item in field.value]
    if kind == "table":
        return json_table(field.value, reading)
    if kind == "timestamp":
        return json_timestamp(field.value)
    if kind in ("float", "double"):
        return json_float(field.value, kind)
    return field.value


def json_table(fields: Sequence[tuple[bytes, Field]], reading: str = "rabbitmq") -> dict[str, Any]:
    """What a JSON column shows of a table; of a name that comes twice the last value."""
    return {name.decode(errors="replace"): json_value(field, reading) for name, field in fields}


def json_argument(kind: str, value: Any, secret: bool = False, reading: str = "rabbitmq") -> Any:
    """What the arguments column shows of an argument."""
    if secret:
        return "[redacted]"
    if kind in "sS":
        return json_text(value)
    if kind == "F":
        return json_table(value, reading)
    if kind == "T":
        return json_timestamp(value)
    if kind == "C":
        reference, octets = value
        return {"reference" if reference else "inline": json_text(octets)}
    return value


def json_arguments(
    row: Method, values: Mapping[str, Any], show_secrets: bool = False, reading: str = "rabbitmq"
) -> dict[str, Any]:
    """What the arguments column shows of a method."""
    return {
        argument.name: json_argument(
            argument.type, values[argument.name], argument.secret and not show_secrets, reading
        )
        for argument in row.arguments
    }


TAGS = {
    reading: [chr(row.tag) for row in FIELD_TAGS if row.reading == reading]
    for reading in ("rabbitmq", "spec091", "py-amqp")
}
"""The tags that each reading knows."""
