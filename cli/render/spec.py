"""The protocol's rows as lists and pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from amqpsniff.spec import READINGS, properties_for

from .grid import Grid
from .styled_text import Words

INDENT = 2

TYPES = {
    "o": "octet",
    "h": "short",
    "l": "long",
    "L": "longlong",
    "b": "bit",
    "s": "short string",
    "S": "long string",
    "T": "timestamp",
    "F": "field table",
    "C": "content",
}
"""Names of the one-letter types, as the specification has them."""

_HEADINGS = {
    "Method": "id|method|sent by|*answered by|content|dialects|?of|?~note",
    "ReplyCode": "code|name|kind|dialects|~meaning",
    "FieldTag": "tag|byte|rabbitmq|spec091|py-amqp|~note",
    "FrameType": "type|name|dialects|~note",
    "ProtocolHeader": "bytes|protocol|~note",
}
_CLOSES = {"soft": "closes the channel", "hard": "closes the connection", "success": "no error"}


def listing(rows: Sequence[Any]) -> Grid:
    """Rows of one kind, one a line; methods by class."""
    kind = type(rows[0]).__name__
    lines = {
        "Method": _method_lines,
        "ReplyCode": _code_lines,
        "FieldTag": _tag_lines,
        "FrameType": _frame_lines,
        "ProtocolHeader": _header_lines,
    }[kind]
    grid = Grid(_HEADINGS[kind])
    for line in lines(rows):
        grid.add(*line)
    return grid


def _dialects(row: Any) -> str:
    return " ".join(row.dialects)


def _short(name: str) -> str:
    return name.partition(".")[2]


def _method_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Words]]:
    for index, (_, group) in enumerate(groupby(rows, lambda row: row.class_name)):
        if index:
            yield ("",) * len(_HEADINGS["Method"].split("|"))
        for row in group:
            yield (
                f"{row.class_id}/{row.method_id}",
                Words(row.name, "method"),
                row.sender,
                " or ".join(map(_short, row.replies)),
                "content" if row.content else "",
                _dialects(row),
                row.source,
                row.note,
            )


def _code_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Words]]:
    for row in rows:
        yield str(row.code), Words(row.name, "method"), row.kind, _dialects(row), row.meaning


def _tag_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Words]]:
    tags: dict[int, dict[str, Any]] = {}
    for row in rows:
        tags.setdefault(row.tag, {})[row.reading] = row
    for tag, by_reading in sorted(tags.items(), key=lambda item: chr(item[0]).lower()):
        kinds = [by_reading[r].type if r in by_reading else "-" for r in READINGS]
        notes = dict.fromkeys(f"{r}: {row.note}" for r, row in by_reading.items() if row.note)
        shown = chr(tag) if tag else "\\0"
        yield Words(shown, "method"), f"0x{tag:02x}", *kinds, "; ".join(notes)


def _frame_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Words]]:
    for row in rows:
        yield str(row.code), Words(row.name, "method"), _dialects(row), row.note


def _header_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Words]]:
    for row in rows:
        numbers = " ".join(map(str, row.octets))
        yield f"AMQP {numbers}", Words(row.protocol, "method"), row.note


def code_page(row: Any) -> Words:
    """One reply code."""
    closes = f"{row.kind}: {_CLOSES[row.kind]} · {', '.join(row.dialects)}"
    return Words(f"{row.code} {row.name}", "heading").add(f"\n  {closes}\n  {row.meaning}")


def method_pages(rows: Sequence[Any]) -> Iterable[Grid | Words]:
    """Methods with their arguments, a page for each name."""
    for index, (name, group) in enumerate(groupby(rows, lambda row: row.name)):
        if index:
            yield Words("")
        yield Words(name, "heading")
        for row in group:
            for part in _method_page(row):
                part.indent = INDENT
                yield part


def _method_page(row: Any) -> Iterable[Grid | Words]:
    by = "either side" if row.sender == "both" else f"the {row.sender}"
    told = [f"{row.class_id}/{row.method_id} in {', '.join(row.dialects)}", f"sent by {by}"]
    if row.synchronous:
        told.append(f"waits for {' or '.join(row.replies)}")
    elif row.replies:
        told.append(f"may be answered by {' or '.join(row.replies)}")
    if row.content:
        told.append("carries content")
    if row.source != "spec":
        told.append(f"as in {row.source}")
    yield Words(" · ".join(told))
    if row.note:
        yield Words(f"note: {row.note}")
    if not row.arguments_known:
        yield Words("its arguments are not known")
    elif row.arguments:
        yield _fields("arguments", row.arguments)
    else:
        yield Words("no arguments")
    properties = properties_for(row.dialects[-1], row.class_id) if row.content else ()
    if properties:
        yield _fields("properties", properties)


def _fields(heading: str, fields: Sequence[Any]) -> Grid:
    grid = Grid("||")
    for index, field in enumerate(fields):
        secret = " (secret)" if getattr(field, "secret", False) else ""
        first = Words(heading if index == 0 else "", "key")
        grid.add(first, Words(field.name, "name"), TYPES[field.type] + secret)
    return grid
