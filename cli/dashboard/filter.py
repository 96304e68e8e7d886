"""Which rows of a view are wanted: by a text that they contain, or an SQL expression."""

from __future__ import annotations

import re
from typing import Any

from amqpsniff.analysis.selection import Selection, matches

from .views import FILTERS

Row = dict[str, Any]

_EXPRESSION = re.compile(r"[=<>()]|\b(like|ilike|is|in|between|and|or|not)\b", re.IGNORECASE)


def chosen(rows: list[Row], wanted: str, *, expression: bool = False) -> list[Row]:
    """The rows that are wanted; raises FilterError for an expression that does not run.

    A text is looked for in all texts of a row, whatever the case; what looks like an SQL expression
    is evaluated over the columns.
    """
    if not wanted or not rows:
        return rows
    if not expression and not _EXPRESSION.search(wanted):
        return [row for row in rows if _has(row, wanted.lower())]
    return _evaluated(rows, wanted)


def by_name(selection: Selection) -> dict[str, str]:
    """The filters by name as an SQL expression for each view that has their columns."""
    wanted = {}
    for view, filters in FILTERS.items():
        given = [
            f"({matches(columns, name, value)})"
            for name, columns in filters.items()
            if (value := getattr(selection, name)) is not None
        ]
        if view == "findings" and selection.errors:
            given.append("severity = 'error'")
        if given:
            wanted[view] = " AND ".join(given)
    return wanted


def _has(row: Row, part: str) -> bool:
    return any(isinstance(value, str) and part in value.lower() for value in row.values())


def _evaluated(rows: list[Row], expression: str) -> list[Row]:
    import pyarrow as pa

    from amqpsniff.tables.query import Filter

    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    place = "place"
    table = pa.RecordBatch.from_pydict(
        {name: _column(values) for name, values in columns.items()}
        | {place: pa.array(range(len(rows)), pa.int64())}
    )
    condition = Filter(table.schema, expression)
    try:
        return [rows[at] for at in condition.of(table).column(place).to_pylist()]
    finally:
        condition.close()


def _column(values: list[Any]) -> Any:
    import pyarrow as pa

    known = next((value for value in values if value is not None), "")
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    kind = kinds[type(known)]
    if kind == pa.int64() and any(isinstance(value, float) for value in values):
        kind = pa.float64()
    return pa.array(values, kind)
