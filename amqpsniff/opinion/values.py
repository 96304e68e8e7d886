"""Values: JSON of ours held against the fields and texts of tshark.

tshark gives a field's bytes where the field is an argument or a property; of what is inside a
table it gives no more than a label, `name (type): text`, cut at some 240 bytes. So strings are
compared by their bytes where they are there, and else as tshark would write them. Newer versions
(seen with 4.6) give name, type and value below the label, the value with its bytes.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from amqpsniff.capture.tshark_frames import TsharkField

LABEL_BYTES = 230
"""Bytes of a label from which on it may have been cut: tshark's limit is 240 with its dots."""

_TYPED = re.compile(r" \(((?:unknown type[^)]*)|[a-z0-9 ]+)\)(?:: ?|$)")
_CONTROLS = [*range(1, 32), 127]
_ESCAPES = (
    {code: f"\\x{code:x}" for code in _CONTROLS} | dict.fromkeys(map(ord, "\t\n\r"), " "),
    {code: f"\\x{code:02X}" for code in _CONTROLS}
    | {code: f"\\u{code:04X}" for code in range(128, 160)}
    | dict(zip(map(ord, "\a\b\t\n\v\f\r"), (rf"\{one}" for one in "abtnvfr"), strict=True)),
)
"""Control characters in labels: of tshark 4.0, where XML makes blanks of some, and of 4.6."""
_ABOUT_VALUE = ("amqp.field.name", "amqp.field.type")
_TABLE_TYPE, _ARRAY_TYPE = "field table", "array"


class Table(tuple[tuple[str, Any], ...]):
    """An object of our JSON: names and values in their order."""

    __slots__ = ()


class Pair(NamedTuple):
    """Two values that differ: the way to them, ours, theirs as text."""

    name: str
    ours: Any
    theirs: str | None
    tag: str
    """tshark's word for the type of a value in a table."""


def parsed(text: str | None) -> Any:
    """Our JSON with objects as `Table`s and numbers with a fraction as texts; null stays null."""
    if text is None:
        return None
    return json.loads(text, object_pairs_hook=Table, parse_float=_Fraction)


class _Fraction(str):
    """A number with a fraction, with its digits."""

    __slots__ = ()


def plain(value: Any) -> Any:
    """A value as `json` writes it."""
    if isinstance(value, Table):
        return {name: plain(item) for name, item in value}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, _Fraction) else value


def compare(name: str, ours: Any, field: TsharkField) -> Iterator[Pair]:
    """Where our value of an argument or property and tshark's field of it differ."""
    octets = bytes_of(ours)
    if isinstance(ours, Table) and octets is None:
        yield from _tables(name, ours, field.fields)
        return
    if not _same_field(ours, octets, field):
        yield Pair(name, plain(ours), field.show, "")


def _same_field(ours: Any, octets: bytes | None, field: TsharkField) -> bool:
    if isinstance(ours, bool):
        return field.show.lower() in (("1", "true") if ours else ("0", "false"))
    if isinstance(ours, int):
        if field.octets is not None:
            return int.from_bytes(field.octets, "big") == ours
        return field.show == str(ours)
    if octets is None:
        return field.show == str(ours)
    theirs = field.octets
    if theirs is None:
        return field.show.encode() == octets or (not octets and _is_nothing(field))
    if field.name.endswith(".timestamp") and len(theirs) == 8:
        return seconds_of(ours) == int.from_bytes(theirs, "big")
    with_length = (octets, bytes([len(octets) & 255]) + octets,
                   len(octets).to_bytes(4, "big") + octets)  # fmt: skip
    return theirs in with_length or _is_replaced(ours, theirs)


def _is_replaced(ours: Any, theirs: bytes) -> bool:
    """True if ours is the text of a column for their bytes, which are not UTF-8."""
    if not isinstance(ours, str) or "\ufffd" not in ours:
        return False
    return any(theirs[length:].decode(errors="replace") == ours for length in (0, 1, 4))


def _is_nothing(field: TsharkField) -> bool:
    return field.show in ("", "<MISSING>") or field.label.endswith("<MISSING>")


def bytes_of(value: Any) -> bytes | None:
    """The bytes of a text, or of a value of bytes; None for other values."""
    if isinstance(value, _Fraction):
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, Table) and len(value) == 1 and value[0][0] == "base64":
        try:
            return base64.b64decode(value[0][1], validate=True)
        except (ValueError, TypeError):
            return None
    return None


def seconds_of(text: Any) -> int | None:
    """Seconds since the epoch of an RFC 3339 text."""
    try:
        moment = datetime.fromisoformat(str(text).replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())


def _tables(path: str, ours: Table, fields: list[TsharkField]) -> Iterator[Pair]:
    """Pairs of a table: tshark has them in the same order."""
    for index, (name, value) in enumerate(ours):
        inside = f"{path}.{name}"
        if index >= len(fields):
            yield Pair(inside, plain(value), None, "")
            continue
        yield from _labelled(inside, name, value, fields[index])
    for field in fields[len(ours) :]:
        yield Pair(f"{path}.{field.label[:80]}", None, field.label, "")


def _arrays(path: str, ours: list[Any], fields: list[TsharkField]) -> Iterator[Pair]:
    for index, value in enumerate(ours):
        inside = f"{path}[{index}]"
        if index >= len(fields):
            yield Pair(inside, plain(value), None, "")
            continue
        yield from _labelled(inside, f"[{index}]", value, fields[index])
    for field in fields[len(ours) :]:
        yield Pair(f"{path}{field.label[:80]}", None, field.label, "")


def _labelled(path: str, name: str, value: Any, field: TsharkField) -> Iterator[Pair]:
    """A value in a table or an array, for which tshark gives a label."""
    inside, octets = _below(field)
    label = field.label.lstrip().removeprefix("[truncated]").lstrip()
    known = (len(one) for one in _escaped(name) if label.startswith(one))
    typed = _TYPED.match(label, next(known, len(label)))
    if typed is None:
        yield Pair(path, plain(value), field.label, "")
        return
    kind, text = typed[1], label[typed.end() :]
    if kind == _TABLE_TYPE and isinstance(value, Table):
        yield from _tables(path, value, inside)
    elif kind == _ARRAY_TYPE and isinstance(value, list):
        yield from _arrays(path, value, inside)
    elif not _same_text(kind, value, text, octets):
        yield Pair(path, plain(value), f"({kind}) {text}", kind)


def _below(field: TsharkField) -> tuple[list[TsharkField], bytes | None]:
    """The values inside a value of a table, and its own bytes, None if tshark does not show them.

    Some types have a field name of their own (`amqp.field.timestamp`), so a value inside is known
    by its label, which has a type.
    """
    octets, inside = field.octets, []
    for inner in field.fields:
        if inner.name in _ABOUT_VALUE:
            continue
        if inner.name != field.name and inner.name.startswith("amqp.field."):
            octets = inner.octets
        if inner.name == field.name or _TYPED.search(inner.label):
            inside.append(inner)
    return inside, octets


def _same_text(kind: str, value: Any, text: str, theirs: bytes | None) -> bool:
    if value is None:
        return kind == "void" and not text.strip()
    if isinstance(value, bool):
        return text.lower() == str(value).lower()
    if kind in ("float", "double", "decimal"):
        try:
            return f"{float(value):f}" == text or float(value) == float(text)
        except (TypeError, ValueError):
            return str(value).lower().removesuffix("inity") == text.lower()
    if isinstance(value, int):
        return text == str(value)
    octets = bytes_of(value)
    if octets is None:
        return False
    if kind == "timestamp":
        return theirs is not None and seconds_of(value) == int.from_bytes(theirs[-8:], "big")
    if kind in ("byte array", "string") and theirs is not None:
        return theirs in (octets, len(octets).to_bytes(4, "big") + octets)
    return _same_string(octets, text)


def _same_string(octets: bytes, text: str) -> bool:
    ours = _escaped(octets.decode(errors="replace"))
    if text in ours:
        return True
    cut = text.rstrip("…").removesuffix("...")
    is_long = len(octets) + 20 >= LABEL_BYTES // 2 and len(cut) > 20
    return is_long and any(one.startswith(cut) for one in ours)


def _escaped(text: str) -> tuple[str, ...]:
    """A text as versions of tshark write it in a label."""
    return tuple(text.translate(one) for one in _ESCAPES)
