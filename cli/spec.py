"""`amqpsniff spec`: the protocol's own rows, for reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated, Any

from amqpsniff.spec import READINGS, properties_for
from amqpsniff.spec.describe import SPOKEN, look_up, plain
from amqpsniff.spec.describe import names as known_names

from .options import offer, one_of, spread
from .output import Output, write_json
from .render.grid import METHOD, Column, Grid
from .render.text import Words

FORMATS = ("text", "json")


def names(incomplete: str) -> list[tuple[str, str]]:
    """Names that a shell offers: methods, classes, reply codes, and the other topics."""
    return [item for item in known_names().items() if item[0].startswith(incomplete)]


@spread("""
    Arguments:
        NAME: A method (basic.publish, publish, 60/40), a class (queue, 50), a reply code (404), a
            performative or a condition of 1.0 (attach, amqp:not-found), or one of: codes, tags,
            frames, headers, performatives, conditions. Without it: all methods.

    Output:
        --dialect D: Only this dialect: {SPOKEN}.
""")
def spec(
    name: Annotated[str, offer(names)] = "",
    dialect: Annotated[str | None, one_of(SPOKEN, "no dialect {}")] = None,
    format_: str = FORMATS[0],
) -> int:
    """Look up the protocol: methods, performatives, reply codes, conditions, tags of field tables.

    Ids, arguments with their types, who sends a method and what answers it, for AMQP 0-8, 0-9 and
    0-9-1 with the extensions of RabbitMQ, Qpid and OpenAMQ. Fields of the performatives, outcomes
    and termini of AMQP 1.0; a name that both have is that of 1.0 with --dialect 1.0.

    Examples:

        amqpsniff spec basic.publish
        amqpsniff spec queue --dialect 0-9-1
        amqpsniff spec 404
        amqpsniff spec amqp:not-found
    """
    rows = look_up(name, dialect)
    if format_ == "json":
        write_json([plain(row) for row in rows])
    else:
        _write_text(rows, name)
    return 0


def _write_text(rows: list[Any], name: str) -> None:
    output = Output()
    kind = type(rows[0]).__name__
    if kind == "Method" and len({row.name for row in rows}) <= MAX_PAGES and name:
        output.show(*method_pages(rows))
    elif kind == "ReplyCode" and len(rows) == 1:
        output.show(code_page(rows[0]))
    elif kind == "Composite" and len(rows) == 1:
        output.show(*composite_page(rows[0]))
    else:
        output.show(listing(rows))


MAX_PAGES = 3
"""Methods that are shown with all their arguments; more of them are listed, one a line."""


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

_CLOSES = {"soft": "closes the channel", "hard": "closes the connection", "success": "no error"}


def listing(rows: Sequence[Any]) -> Grid:
    """Rows of one kind, one a line; methods by class."""
    kind = type(rows[0]).__name__
    plain = [{name: getattr(row, name) for name in row.__slots__} for row in rows]
    if kind == "FieldTag":
        return _tags(plain)
    grid = Grid("|".join(heading for heading, _, _ in _COLUMNS[kind]))
    for index, (_, group) in enumerate(groupby(plain, lambda row: row.get("class_name"))):
        if index:
            grid.add(*[""] * len(_COLUMNS[kind]))
        for row in group:
            grid.add(*(write(row[key] if key else row) for _, key, write in _COLUMNS[kind]))
    return grid


def _answers(replies: Sequence[str]) -> str:
    return " or ".join(name.partition(".")[2] for name in replies)


_NOTE = ("~note", "note", str)
_DIALECTS = ("dialects", "dialects", " ".join)
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Method": (
        ("id", "", lambda row: f"{row['class_id']}/{row['method_id']}"),
        ("method", "name", METHOD),
        ("sent by", "sender", str),
        ("*answered by", "replies", _answers),
        ("content", "content", lambda content: "content" if content else ""),
        _DIALECTS,
        ("?of", "source", str),
        ("?~note", "note", str),
    ),
    "ReplyCode": (
        ("code", "code", str),
        ("name", "name", METHOD),
        ("kind", "kind", str),
        _DIALECTS,
        ("~meaning", "meaning", str),
    ),
    "FrameType": (("type", "code", str), ("name", "name", METHOD), _DIALECTS, _NOTE),
    "Composite": (
        ("code", "code", "0x{:02x}".format),
        ("name", "name", METHOD),
        ("1.0 §", "section", str),
        ("~fields", "fields", lambda fields: " ".join(field.name for field in fields)),
    ),
    "Condition": (
        ("condition", "name", METHOD),
        ("1.0 §", "section", str),
        ("~meaning", "meaning", str),
    ),
    "ProtocolHeader": (
        ("bytes", "octets", lambda octets: f"AMQP {' '.join(map(str, octets))}"),
        ("protocol", "protocol", METHOD),
        _NOTE,
    ),
}
"""Columns of the rows of each kind."""


def _tags(rows: Sequence[dict[str, Any]]) -> Grid:
    tags: dict[int, dict[str, Any]] = {}
    for row in rows:
        tags.setdefault(row["tag"], {})[row["reading"]] = row
    grid = Grid("tag|byte|rabbitmq|spec091|py-amqp|~note")
    for tag, by_reading in sorted(tags.items(), key=lambda item: chr(item[0]).lower()):
        kinds = [by_reading[r]["type"] if r in by_reading else "-" for r in READINGS]
        noted = {r: row["note"] for r, row in by_reading.items() if row["note"]}
        notes = dict.fromkeys(f"{reading}: {note}" for reading, note in noted.items())
        grid.add(METHOD(chr(tag) if tag else "\\0"), f"0x{tag:02x}", *kinds, "; ".join(notes))
    return grid


def code_page(row: Any) -> Words:
    """One reply code."""
    closes = f"{row.kind}: {_CLOSES[row.kind]} · {', '.join(row.dialects)}"
    return Words(f"{row.code} {row.name}", "heading").add(f"\n  {closes}\n  {row.meaning}")


def composite_page(row: Any) -> Iterable[Grid | Words]:
    """A performative or another composite of AMQP 1.0, with its fields."""
    yield Words(row.name, "heading").add(f"\n  0x{row.code:02x} in 1.0 · §{row.section}")
    grid = Grid("|||", indent=INDENT)
    for index, field in enumerate(row.fields):
        type_name = "any" if field.type == "*" else field.type
        notes = [
            *(["mandatory"] if field.mandatory else []),
            *(["one or several"] if field.multiple else []),
            *([f"{field.default} without it"] if field.default is not None else []),
        ]
        first = Words("fields" if index == 0 else "", "key")
        grid.add(first, Words(field.name, "name"), type_name, ", ".join(notes))
    yield grid if row.fields else Words("  no fields")


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
    sender = "either side" if row.sender == "both" else f"the {row.sender}"
    parts = [f"{row.class_id}/{row.method_id} in {', '.join(row.dialects)}", f"sent by {sender}"]
    if row.synchronous:
        parts.append(f"waits for {' or '.join(row.replies)}")
    elif row.replies:
        parts.append(f"may be answered by {' or '.join(row.replies)}")
    if row.content:
        parts.append("carries content")
    if row.source != "spec":
        parts.append(f"as in {row.source}")
    yield Words(" · ".join(parts))
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
