"""The protocol's rows as lists and pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from amqpsniff.spec import READINGS, properties_for

from .grid import Grid

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
    "FieldTag": "tag|octet|rabbitmq|spec091|py-amqp|~note",
    "FrameType": "type|name|dialects|~note",
    "ProtocolHeader": "octets|protocol|~note",
}
_CLOSES = {"soft": "closes the channel", "hard": "closes the connection", "success": "no error"}


def listing(rows: Sequence[Any], width: int) -> Table:
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
    return grid.build(width)


def _dialects(row: Any) -> str:
    return " ".join(row.dialects)


def _short(name: str) -> str:
    return name.partition(".")[2]


def _method_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Text]]:
    for index, (_, group) in enumerate(groupby(rows, lambda row: row.class_name)):
        if index:
            yield ("",) * len(_HEADINGS["Method"].split("|"))
        for row in group:
            yield (
                f"{row.class_id}/{row.method_id}",
                Text(row.name, style="method"),
                row.sender,
                " or ".join(map(_short, row.replies)),
                "content" if row.content else "",
                _dialects(row),
                row.source,
                row.note,
            )


def _code_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Text]]:
    for row in rows:
        yield str(row.code), Text(row.name, "method"), row.kind, _dialects(row), row.meaning


def _tag_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Text]]:
    tags: dict[int, dict[str, Any]] = {}
    for row in rows:
        tags.setdefault(row.tag, {})[row.reading] = row
    for tag, by_reading in sorted(tags.items(), key=lambda item: chr(item[0]).lower()):
        kinds = [by_reading[r].type if r in by_reading else "-" for r in READINGS]
        notes = dict.fromkeys(f"{r}: {row.note}" for r, row in by_reading.items() if row.note)
        shown = chr(tag) if tag else "\\0"
        yield Text(shown, "method"), f"0x{tag:02x}", *kinds, "; ".join(notes)


def _frame_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Text]]:
    for row in rows:
        yield str(row.code), Text(row.name, "method"), _dialects(row), row.note


def _header_lines(rows: Sequence[Any]) -> Iterable[Sequence[str | Text]]:
    for row in rows:
        numbers = " ".join(map(str, row.octets))
        yield f"AMQP {numbers}", Text(row.protocol, "method"), row.note


def code_page(row: Any) -> Any:
    """One reply code."""
    return Text.assemble(
        (f"{row.code} {row.name}", "heading"),
        f"\n  {row.kind}: {_CLOSES[row.kind]} · {', '.join(row.dialects)}\n  {row.meaning}",
    )


def method_pages(rows: Sequence[Any]) -> Iterable[Any]:
    """Methods with their arguments, a page for each name."""
    for index, (name, group) in enumerate(groupby(rows, lambda row: row.name)):
        if index:
            yield Text("")
        yield Text(name, style="heading")
        for row in group:
            yield from (Padding(part, (0, 0, 0, 2)) for part in _method_page(row))


def _method_page(row: Any) -> Iterable[Any]:
    by = "either side" if row.sender == "both" else f"the {row.sender}"
    facts = [f"{row.class_id}/{row.method_id} in {', '.join(row.dialects)}", f"sent by {by}"]
    if row.synchronous:
        facts.append(f"waits for {' or '.join(row.replies)}")
    elif row.replies:
        facts.append(f"may be answered by {' or '.join(row.replies)}")
    if row.content:
        facts.append("carries content")
    if row.source != "spec":
        facts.append(f"as in {row.source}")
    yield Text(" · ".join(facts))
    if row.note:
        yield Text(f"note: {row.note}")
    if not row.arguments_known:
        yield Text("its arguments are not known")
    elif row.arguments:
        yield _fields("arguments", row.arguments)
    else:
        yield Text("no arguments")
    properties = properties_for(row.dialects[-1], row.class_id) if row.content else ()
    if properties:
        yield _fields("properties", properties)


def _fields(heading: str, fields: Sequence[Any]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for index, field in enumerate(fields):
        secret = " (secret)" if getattr(field, "secret", False) else ""
        first = Text(heading if index == 0 else "", "key")
        table.add_row(first, Text(field.name, "name"), Text(TYPES[field.type] + secret))
    return table
