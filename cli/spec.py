"""`amqpsniff spec`: the protocol's own rows, for reading."""

from __future__ import annotations

from typing import Annotated, Any

from amqpsniff.errors import UsageError
from amqpsniff.spec import (
    DIALECTS,
    FIELD_TAGS,
    FRAME_TYPES,
    METHODS,
    PROTOCOL_HEADERS,
    REPLY_CODES,
    Row,
    properties_for,
    reply_code,
)
from amqpsniff.spec.describe import describe

from .completions import methods
from .options import offer, one_of, spread
from .output import Output, write_json
from .render.spec import code_page, listing, method_pages

FORMATS = ("text", "json")

TOPICS: dict[str, tuple[Row, ...]] = {
    "codes": REPLY_CODES,
    "tags": FIELD_TAGS,
    "frames": FRAME_TYPES,
    "headers": PROTOCOL_HEADERS,
}
"""What is not a method, by the word a person types for it."""


@spread("""
    Arguments:
        NAME: A method (basic.publish, publish, 60/40), a class (queue, 50), a reply code (404), or
            one of: codes, tags, frames, headers. Without it: all methods.

    Output:
        --dialect D: Only this dialect: {DIALECTS}.
        --format F: Output format: {FORMATS}. [default]
""")
def spec(
    name: Annotated[str, offer(methods)] = "",
    dialect: Annotated[str | None, one_of(DIALECTS, "no dialect {}")] = None,
    format_: Annotated[str, one_of(FORMATS, "no format {} here")] = FORMATS[0],
) -> int:
    """Look up the protocol: methods, classes, reply codes, tags of field tables.

    Ids, arguments with their types, who sends a method and what answers it, for AMQP 0-8, 0-9 and
    0-9-1 with the extensions of RabbitMQ, Qpid and OpenAMQ.

    Examples:

        amqpsniff spec basic.publish
        amqpsniff spec queue --dialect 0-9-1
        amqpsniff spec 404
    """
    rows = _wanted(name)
    if dialect is not None:
        rows = [row for row in rows if dialect in getattr(row, "dialects", (dialect,))]
        if not rows:
            raise UsageError(f"{dialect} has nothing called `{name}`; leave out --dialect")
    if format_ == "json":
        write_json([_plain(row) for row in rows])
    else:
        _write_text(rows, name)
    return 0


def _wanted(name: str) -> list[Any]:
    """The rows a person means: all of one kind."""
    word = name.strip().lower()
    if not word:
        return list(METHODS)
    if word in TOPICS:
        return list(TOPICS[word])
    code = reply_code(int(word)) if word.isascii() and word.isdigit() and len(word) == 3 else None
    return [code] if code is not None and code.code >= 200 else list(describe(word))


def _plain(value: Any) -> Any:
    """A row as JSON has it: objects by column, bytes in hex, without `index`, a detail."""
    if isinstance(value, Row):
        columns = (name for name in value.__slots__ if name != "index")
        row = {name: _plain(getattr(value, name)) for name in columns}
        if "content" in row and value.content:  # type: ignore[attr-defined]
            row["properties"] = _plain(_properties(value))
        return row
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.hex() if isinstance(value, bytes) else value


def _properties(method: Any) -> tuple[Row, ...]:
    return properties_for(method.dialects[-1], method.class_id)


def _write_text(rows: list[Any], name: str) -> None:

    output = Output()
    kind = type(rows[0]).__name__
    if kind == "Method" and len({row.name for row in rows}) <= MAX_PAGES and name:
        output.show(*method_pages(rows))
    elif kind == "ReplyCode" and len(rows) == 1:
        output.show(code_page(rows[0]))
    else:
        output.show(listing(rows))


MAX_PAGES = 3
"""Methods that are shown with all their arguments; more of them are listed, one a line."""
