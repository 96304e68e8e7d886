"""Values of columns as Python has them; any one value as JSON text, the slow way, for types that
tables of ours do not have.

The rules are those of the table contract: bytes that are not UTF-8 are `{"base64": …}`, timestamps
RFC 3339, decimals numbers with their digits, floats that JSON has no number for strings.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

ROWS_AT_ONCE = 1_024
"""Rows of a batch that are made dicts together."""


def values(batch: Any, name: str) -> list[Any]:
    """A column as Python values; repeated strings are one object."""
    column = batch.column(name)
    return _decoded(column, _dictionary(column))


def rows_of(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dicts, of which few exist at a time: one takes two kilobytes, and a
    batch may hold every connection of a capture. Repeated strings are one object.
    """
    names = batch.schema.names
    dictionaries = [_dictionary(column) for column in batch.columns]
    for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
        columns = batch.slice(begin, ROWS_AT_ONCE).columns
        cells = map(_decoded, columns, dictionaries)
        for row in zip(*cells, strict=True):
            yield dict(zip(names, row, strict=True))


def _dictionary(column: Any) -> list[Any] | None:
    """The texts that the codes of a column stand for; None for a column without codes."""
    dictionary = getattr(column, "dictionary", None)
    return None if dictionary is None else dictionary.to_pylist()


def _decoded(column: Any, texts: list[Any] | None) -> list[Any]:
    if texts is None:
        return python_values(column)
    return [None if code is None else texts[code] for code in column.indices.to_pylist()]


def python_values(array: Any) -> list[Any]:
    """Values of an array of any type.

    Numbers of 32 bits have the digits that tell them from their neighbours, not those of a double.
    """
    import pyarrow as pa

    if array.type == pa.float32():
        return [
            None if text is None else float(text) for text in array.cast(pa.string()).to_pylist()
        ]
    return array.to_pylist()  # type: ignore[no-any-return]


def json_text(value: Any) -> str:
    """A Python value, as `python_values` gives it, as JSON text."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else json.dumps(_infinite(value))
    if isinstance(value, Decimal):
        return f"{value:f}" if value.is_finite() else json.dumps(str(value))
    if isinstance(value, bytes):
        return bytes_text(value)
    if isinstance(value, dict):
        fields = (f"{json_text(str(name))}:{json_text(one)}" for name, one in value.items())
        return f"{{{','.join(fields)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, datetime):
        return json.dumps(_rfc3339(value))
    if isinstance(value, (date, time)):
        return json.dumps(value.isoformat())
    return json_text(str(value))


def bytes_text(octets: bytes) -> str:
    """Bytes as JSON text: a string when they are UTF-8, else `{"base64": …}`."""
    try:
        return json.dumps(octets.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return f'{{"base64":"{base64.b64encode(octets).decode()}"}}'


def _infinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _rfc3339(value: datetime) -> str:
    """With a Z where the zone is known; a time of no zone has none."""
    text = value.astimezone(UTC) if value.tzinfo else value
    return text.replace(tzinfo=None).isoformat(timespec="microseconds") + (
        "Z" if value.tzinfo else ""
    )
