"""Rows of any columns, as SQL gives them, laid out as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from amqpsniff.wire_text import harmless

from ..output import Output
from .clock import zoned
from .grid import GAP, Grid
from .text import Paint, Words, cells

MAX_LAID_OUT = 10_000
"""Most rows of one table; more are split over several."""

NULL = Words("null", "key")
"""Null, which only its colour tells from the text."""


def show(result: Any, output: Output) -> None:
    """Write the rows of a result, a table for each `MAX_LAID_OUT`; without any, headings.

    `result` gives record batches and has their `schema`.
    """
    grid = _headings(result.schema)
    for number, row in enumerate(_rows(result)):
        if number and not number % MAX_LAID_OUT:
            show_grid(grid, output)
            grid = _headings(result.schema)
        grid.add(*map(_cell, row))
    show_grid(grid, output)


def _headings(schema: Any) -> Grid:
    marks = ["*" if not _is_number(field.type) else ">" for field in schema]
    names = [harmless(name).replace("|", "\\x7c") for name in schema.names]
    return Grid("|".join(mark + name for mark, name in zip(marks, names, strict=True)))


def show_grid(grid: Grid, output: Output) -> None:
    """Write a table; where there is too little room for it, its rows one by one."""
    if grid.fits(output.room):
        output.lines(grid.lines(output.room, output.paint))
    else:
        output.lines(_blocks(grid, output.paint))


def _blocks(table: Grid, paint: Paint) -> Iterator[str]:
    """Each row of a table as lines of name and value, with an empty line between rows."""
    for number, fields in enumerate(table.fields()):
        if number:
            yield ""
        width = max(cells(name) for name, _ in fields)
        for name, value in fields:
            gap = " " * (width - cells(name) + GAP)
            yield f"{paint('key', name)}{gap}{value}"


def _rows(batches: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    from amqpsniff.tables.values import python_values

    for batch in batches:
        yield from zip(*map(python_values, batch.columns), strict=True)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _cell(value: Any) -> str | Words:
    if value is None:
        return NULL
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, datetime):
        return zoned(value).isoformat().replace("+00:00", "Z")
    from amqpsniff.tables.values import json_text

    text = json_text(value)
    return harmless(json.loads(text) if text.startswith('"') else text)
