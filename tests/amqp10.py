"""AMQP 1.0 as bytes: values by their types, performatives by the names of their fields.

    frame("attach", name="s", handle=0, role=False, target=target("q"))

Fields that are not given are null. A Python value is written as what its field is; where a field
may be of any type, text is a string, bytes are binary, a number is an unsigned int; `Symbol` and
`Described` stand for what Python has no type for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from amqpsniff.spec.amqp10 import COMPOSITES, SECTIONS

HEADER = b"AMQP\0\1\0\0"
SASL_HEADER = b"AMQP\3\1\0\0"

_ROWS = {row.name: row for row in COMPOSITES}
_SECTION_CODES = {row.name: row.code for row in SECTIONS}
_NUMBERS = {"ubyte": (0x50, 1), "ushort": (0x60, 2), "uint": (0x70, 4), "ulong": (0x80, 8)}
_OF_FIELDS = {
    "handle": "uint", "transfer-number": "uint", "delivery-number": "uint", "sequence-no": "uint",
    "milliseconds": "uint", "message-format": "uint", "seconds": "uint",
    "sender-settle-mode": "ubyte", "receiver-settle-mode": "ubyte", "sasl-code": "ubyte",
    "terminus-durability": "uint",
}  # fmt: skip
_SYMBOLS = frozenset(("symbol", "terminus-expiry-policy", "ietf-language-tag"))


class Symbol(str):
    """A symbol."""


class Described(NamedTuple):
    """A described value."""

    code: int | str
    value: Any


def composite(name: str, /, **fields: Any) -> bytes:
    """A described list by the names of its fields, with `_` for `-`."""
    row = _ROWS[name.replace("_", "-")]
    given = [
        value(fields.pop(field.name, None), field.type if not field.multiple else "*")
        for field in row.fields
    ]
    assert not fields, f"{name} has no {', '.join(fields)}"
    while given and given[-1] == b"\x40":
        given.pop()
    octets = b"".join(given)
    size = (len(octets) + 4).to_bytes(4, "big") + len(given).to_bytes(4, "big")
    return b"\0\x53" + bytes([row.code]) + (b"\xd0" + size + octets if given else b"\x45")


def value(given: Any, kind: str = "*") -> bytes:
    """A value as a type of the standard; `*` for whatever it is."""
    kind = _OF_FIELDS.get(kind, kind)
    if given is None:
        return b"\x40"
    if isinstance(given, bool):
        return b"\x41" if given else b"\x42"
    if isinstance(given, int):
        code, width = _NUMBERS.get(kind, _NUMBERS["uint"])
        if given >> 8 * width:  # of a wrong type, then
            code, width = _NUMBERS["ulong"]
        return bytes([code]) + given.to_bytes(width, "big")
    if isinstance(given, Described):
        named = Symbol(given.code) if isinstance(given.code, str) else given.code
        return b"\0" + value(named, "ulong") + value(given.value)
    if isinstance(given, (Symbol, str)):
        code = 0xB3 if isinstance(given, Symbol) or kind in _SYMBOLS else 0xB1
        octets = given.encode()
        return bytes([code]) + len(octets).to_bytes(4, "big") + octets
    if isinstance(given, bytes) and given[:2] == b"\0\x53":
        return given  # a composite
    if isinstance(given, bytes):
        return b"\xb0" + len(given).to_bytes(4, "big") + given
    items = [one for pair in given.items() for one in pair] if isinstance(given, dict) else given
    octets = b"".join(map(value, items))
    size = (len(octets) + 4).to_bytes(4, "big") + len(items).to_bytes(4, "big")
    return (b"\xd1" if isinstance(given, dict) else b"\xd0") + size + octets


def frame(performative: str, /, channel: int = 0, payload: bytes = b"", **fields: Any) -> bytes:
    """A frame with a performative and its payload."""
    body = composite(performative, **fields) + payload
    kind = 1 if performative.startswith("sasl") else 0
    size = (len(body) + 8).to_bytes(4, "big")
    return size + bytes([2, kind]) + channel.to_bytes(2, "big") + body


EMPTY = b"\0\0\0\x08\2\0\0\0"


def source(address: str | None = None, **fields: Any) -> bytes:
    """A source."""
    return composite("source", address=address, **fields)


def target(address: str | None = None, **fields: Any) -> bytes:
    """A target."""
    return composite("target", address=address, **fields)


def error(condition: str, description: str | None = None) -> bytes:
    """An error."""
    return composite("error", condition=condition, description=description)


def message(body: bytes = b"hello", header: bytes = b"", **sections: Any) -> bytes:
    """The sections of a message: `properties` and `header` as composites, others as maps."""
    octets = header + sections.pop("properties", b"")
    for name, given in sections.items():
        octets += b"\0\x53" + bytes([_SECTION_CODES[name.replace("_", "-")]]) + value(given)
    return octets + b"\0\x53\x75" + value(body)
