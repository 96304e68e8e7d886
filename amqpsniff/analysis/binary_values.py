"""Binary formats of bodies as text: MessagePack, CBOR, protobuf, Avro, pickle, values of AMQP 1.0.

Reading is bounded by `MAX_VALUES` and `MAX_DEPTH`, and no value is ever built as an object of its
own type or executed: a pickle is listed as opcodes. A body that is cut, or that is not of the
format, raises ValueError.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

MAX_VALUES = 10_000
"""Values of a body that are read: more than a person looks at."""

MAX_DEPTH = 32
"""Values inside each other: a kilobyte can nest a thousand of them."""

MAX_OPCODES = 400
"""Opcodes of a pickle that are listed."""

_BINARIES, _STRINGS = (0xA0, 0xB0), (0xA1, 0xB1, 0xA3, 0xB3)
"""Constructors of AMQP 1.0."""


class _Octets:
    """Bytes that are read from their beginning."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.at = self.values = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.octets):
            raise ValueError("it ends too early")
        self.at += count
        return self.octets[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self, depth: int) -> None:
        """One value more, so deep."""
        self.values += 1
        if self.values > MAX_VALUES or depth > MAX_DEPTH:
            raise ValueError("too many values, or too deep")

    @property
    def rest(self) -> int:
        return len(self.octets) - self.at


def _text(octets: bytes) -> Any:
    """Bytes as a text where they are one, else in hexadecimal digits."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return {"hex": octets.hex()}


def _pairs(count: int, read: Callable[[], Any]) -> dict[str, Any]:
    found = {}
    for _ in range(count):
        key = read()
        found[_name(key)] = read()
    return found


_MSGPACK = {
    0xC0: None, 0xC2: False, 0xC3: True,
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
"""Values by first byte: as they are, or the form of a number."""

_MSGPACK_SIZES = {
    0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"),
    0xC7: ("ext", ">B"), 0xC8: ("ext", ">H"), 0xC9: ("ext", ">I"),
    0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip


def msgpack(octets: bytes) -> str:
    """One value of MessagePack as JSON."""
    data = _Octets(octets)

    def read(depth: int = 0) -> Any:
        data.count(depth)
        first = data.number(">B")
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 0x100
        if first in _MSGPACK:
            form = _MSGPACK[first]
            return data.number(form) if isinstance(form, str) else form
        if 0xD4 <= first <= 0xD8:
            kind, size = "ext", 1 << (first - 0xD4)
        elif first in _MSGPACK_SIZES:
            kind, form = _MSGPACK_SIZES[first]
            size = data.number(form)
        else:
            kind = "map" if first < 0x90 else "list" if first < 0xA0 else "text"
            size = first & (0x1F if kind == "text" else 0x0F)
            if first == 0xC1:
                raise ValueError("0xc1 is never used")
        if kind == "map":
            return _pairs(size, lambda: read(depth + 1))
        if kind == "list":
            return [read(depth + 1) for _ in range(size)]
        if kind == "ext":
            return {"ext": data.number(">b"), "hex": data.take(size).hex()}
        return _text(data.take(size))

    return _to_json(data, read())


_BREAK = object()
"""The byte that ends a CBOR value of unknown length."""

_CBOR_SIMPLE = {20: False, 21: True, 22: None, 23: None, 31: _BREAK}
_CBOR_FLOATS = {25: ">e", 26: ">f", 27: ">d"}


def cbor(octets: bytes) -> str:
    """One value of CBOR (RFC 8949) as JSON; a tag is an object with its value."""
    data = _Octets(octets)

    def several(count: int | None, depth: int) -> list[Any]:
        values: list[Any] = []
        while count is None or len(values) < count:
            value = read(depth + 1)
            if value is _BREAK:
                if count is not None:
                    raise ValueError("a break inside a value of known length")
                break
            values.append(value)
        return values

    def read(depth: int = 0) -> Any:
        data.count(depth)
        first = data.number(">B")
        kind, info = first >> 5, first & 31
        if kind == 7:
            if info in _CBOR_FLOATS:
                return data.number(_CBOR_FLOATS[info])
            if info not in _CBOR_SIMPLE:
                raise ValueError("not a simple value")
            return _CBOR_SIMPLE[info]
        size: int | None = info
        if 24 <= info < 28:
            size = data.number((">B", ">H", ">I", ">Q")[info - 24])
        elif info == 31 and 2 <= kind <= 5:
            size = None
        elif info > 27:
            raise ValueError("not a size")
        return of_kind(kind, size, depth)

    def of_kind(kind: int, size: int | None, depth: int) -> Any:
        if kind == 4:
            return several(size, depth)
        if kind == 5:
            flat = iter(several(None if size is None else 2 * size, depth))
            return {_name(key): value for key, value in zip(flat, flat, strict=False)}
        if size is None:
            return "".join(map(str, several(None, depth)))
        if kind == 6:
            return {f"tag {size}": read(depth + 1)}
        if kind == 0:
            return size
        return -1 - size if kind == 1 else _text(data.take(size))

    return _to_json(data, read())


def protobuf(octets: bytes) -> str:
    """The fields of a protobuf message as they are on the wire: number, type, value.

    Without its schema the types of fields are unknown: bytes that are a text are shown as text.
    """
    data = _Octets(octets)
    lines = []
    while data.rest:
        data.count(0)
        key = _varint(data)
        number, kind = key >> 3, key & 7
        if not 0 < number < 1 << 29:
            raise ValueError("not the number of a field")
        if kind == 0:
            value: Any = _varint(data)
        elif kind == 1:
            value = f"0x{data.number('<Q'):016x}"
        elif kind == 2:
            value = json.dumps(_text(data.take(_varint(data))), ensure_ascii=False)
        elif kind == 5:
            value = f"0x{data.number('<I'):08x}"
        else:
            raise ValueError("not the type of a field")
        lines.append(f"{number}: {value}")
    return "\n".join(lines)


def amqp_value(octets: bytes) -> str:
    """A value of AMQP 1.0 (§1.6): a string as it is, another value as JSON, but no binary."""
    from amqpsniff.columns import Texts
    from amqpsniff.decode.amqp10.values import TypedReader

    out = Texts()
    reader = TypedReader(out)
    reader.read_from(octets)
    if octets[0] in _BINARIES or reader.put_value(0, len(octets) - 1):
        raise ValueError("bytes of no kind, or bytes behind a value")
    if not reader.put_value(0, len(octets)) or reader.oddities:
        raise ValueError("no value of AMQP 1.0")
    text = bytes(memoryview(out.storage)[: out.used]).decode()
    return str(json.loads(text)) if octets[0] in _STRINGS else text


def amqp_binary(octets: bytes) -> bytes | None:
    """The bytes in a value of AMQP 1.0 of type binary (§1.6.19); None for any other value."""
    size = {_BINARIES[0]: 1, _BINARIES[1]: 4}.get(octets[0] if octets else -1, 0)
    begin = 1 + size
    is_whole = size and int.from_bytes(octets[1:begin]) == len(octets) - begin
    return octets[begin:] if is_whole and len(octets) >= begin else None


def _varint(data: _Octets) -> int:
    """A number in groups of 7 bits, the lowest first."""
    number = 0
    for shift in range(0, 70, 7):
        octet: int = data.number(">B")
        number |= (octet & 127) << shift
        if octet < 128:
            return number
    raise ValueError("a number of more than 64 bits")


def avro(octets: bytes) -> str:
    """The schema and codec in the header of an Avro object container."""
    data = _Octets(octets)
    if data.take(4) != b"Obj\x01":
        raise ValueError("no Avro container")
    found = {}
    while count := _zigzag(data):
        if count < 0:
            _zigzag(data)  # bytes of the block
        for _ in range(abs(count)):
            data.count(0)
            name = data.take(_zigzag(data)).decode(errors="replace")
            found[name] = _text(data.take(_zigzag(data)))
    return "\n".join(f"{name}: {value}" for name, value in found.items())


def _zigzag(data: _Octets) -> int:
    number = _varint(data)
    return (number >> 1) ^ -(number & 1)


def pickle(octets: bytes) -> str:
    """The opcodes of a pickle, which is never loaded: loading executes its contents."""
    import pickletools  # few captures have one, and every page would wait for it

    lines = []
    try:
        for opcode, argument, _ in pickletools.genops(octets):
            lines.append(opcode.name if argument is None else f"{opcode.name} {argument!r}")
            if len(lines) >= MAX_OPCODES:
                lines.append("…")
                break
    except (KeyError, IndexError, OverflowError, EOFError, struct.error) as error:
        raise ValueError(str(error)) from None
    return "\n".join(lines)


def _name(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _to_json(data: _Octets, value: Any) -> str:
    if data.rest or value is _BREAK:
        raise ValueError("bytes are left over")
    return json.dumps(value, ensure_ascii=False)
