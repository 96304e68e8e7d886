"""Values of columns as Python has them; any one value as JSON text, the slow way, for types that
tables of ours do not have.

The rules are those of the table contract: bytes that are not UTF-8 are `{"base64": …}`, timestamps
RFC 3339, decimals numbers with their digits, floats that JSON has no number for strings.
"""

from __future__ import annotations

import base64
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from amqpsniff.columns import Integers, Texts
from amqpsniff.decode.codes import STATUS_NAMES
from amqpsniff.decode.method_layout import FRAME_TYPE_NAMES, NAMES
from amqpsniff.null import NULL
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.spec import SIDES

_ENDS = ("connection_id", "client", "server")
_TRUTHS = dict.fromkeys(("redelivered", "mandatory", "immediate"), (False, True))
WORDS: dict[str, Sequence[Any]] = {
    "sender": SIDES, "frame_type": FRAME_TYPE_NAMES, "method": NAMES, "status": STATUS_NAMES,
    "outcome": OUTCOMES, **_TRUTHS,
}  # fmt: skip
"""What the codes of a column stand for."""

ROWS_AT_ONCE = 1_024
"""Rows of a batch that are made dicts together."""


class PlainRows:
    """Rows as Python values, column by column: a batch for `values` that needs no Arrow."""

    def __init__(self, cells: dict[str, list[Any]], num_rows: int) -> None:
        self.cells = cells
        self.num_rows = num_rows

    def slice(self, begin: int, length: int | None = None) -> PlainRows:
        """So many rows from one on; None for all of them."""
        rows = range(self.num_rows)[begin : None if length is None else begin + length]
        cells = {name: cells[rows.start : rows.stop] for name, cells in self.cells.items()}
        return PlainRows(cells, len(rows))


def numbers_of(rows: Any, name: str) -> memoryview[int]:
    """The numbers or codes of a column of frames or messages, of what `Pipeline.take` gives."""
    column = rows.columns()["connection" if name in _ENDS else name]
    numbers = memoryview(column.storage).cast("q" if isinstance(column, Integers) else "i")
    return numbers[: rows.rows]


def plain_rows(
    rows: Any,
    chosen: Sequence[int],
    names: Iterable[str],
    connections: Sequence[tuple[Any, ...]],
    captures: Sequence[str],
    method_names: Sequence[str],
) -> PlainRows:
    """Columns of the rows with these numbers, of what `Pipeline.take` gives."""
    columns = rows.columns()
    vocabularies = rows.vocabularies.by_name()
    ends = list(zip(*connections, strict=True)) or [()] * len(_ENDS)
    words = dict(zip(_ENDS, ends, strict=True)) | WORDS | {"capture": captures}
    words["method"] = [*NAMES, *method_names]
    cells: dict[str, list[Any]] = {}
    for name in names:
        column = columns["connection" if name in _ENDS else name]
        if isinstance(column, Texts):
            octets = map(column.bytes_of, chosen)
            if name == "body":  # the one column of bytes
                cells[name] = list(octets)
            else:
                cells[name] = [None if text is None else text.decode() for text in octets]
            continue
        all_numbers = numbers_of(rows, name)
        numbers = [all_numbers[row] for row in chosen]
        texts: Any = words.get(name)
        if name in vocabularies:
            texts = {code: vocabularies[name].text(code) for code in set(numbers) if code >= 0}
        if isinstance(column, Integers):
            cells[name] = [None if number == NULL else number for number in numbers]
        elif texts is None:
            cells[name] = [None if code < 0 else code for code in numbers]
        else:
            cells[name] = [None if code < 0 else texts[code] for code in numbers]
    return PlainRows(cells, len(chosen))


def values(batch: Any, name: str) -> list[Any]:
    """A column as Python values; repeated strings are one object."""
    if isinstance(batch, PlainRows):
        return batch.cells[name]
    column = batch.column(name)
    return _decoded(column, texts_of(column))


def rows_of(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a batch as dicts, only a few at a time: one takes two kilobytes, and a
    batch may hold every connection of a capture. Repeated strings are one object.
    """
    names = batch.schema.names
    dictionaries = [texts_of(column) for column in batch.columns]
    for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
        columns = batch.slice(begin, ROWS_AT_ONCE).columns
        cells = map(_decoded, columns, dictionaries)
        for row in zip(*cells, strict=True):
            yield dict(zip(names, row, strict=True))


def texts_of(column: Any) -> list[Any] | None:
    """The texts that the codes of a column stand for; None for a column without codes."""
    dictionary = getattr(column, "dictionary", None)
    return None if dictionary is None else dictionary.to_pylist()


def _decoded(column: Any, texts: list[Any] | None) -> list[Any]:
    if texts is None:
        return python_values(column)
    return [None if code is None else texts[code] for code in python_values(column.indices)]


def python_values(column: Any) -> list[Any]:
    """Values of an array of any type.

    Numbers of 32 bits have the digits that distinguish them from their neighbours, as floats.
    """
    import pyarrow as pa

    if column.type == pa.float32():
        return [
            None if text is None else float(text) for text in column.cast(pa.string()).to_pylist()
        ]
    if column.null_count == len(column):
        return [None] * len(column)
    # `to_pylist` takes ten times as long as this
    if column.null_count == 0 and isinstance(column, pa.Array) and pa.types.is_integer(column.type):
        kind = "bhiq"[column.type.bit_width.bit_length() - 4]
        numbers = array(kind if pa.types.is_signed_integer(column.type) else kind.upper())
        begin, width = column.offset, column.type.bit_width // 8
        octets = memoryview(column.buffers()[1]).cast("B")
        numbers.frombytes(octets[begin * width : (begin + len(column)) * width])
        return numbers.tolist()
    return column.to_pylist()  # type: ignore[no-any-return]


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
        fields = (f"{json_text(str(name))}:{json_text(item)}" for name, item in value.items())
        return f"{{{','.join(fields)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, datetime):
        return json.dumps(_rfc3339(value))
    if isinstance(value, (date, time)):
        return json.dumps(value.isoformat())
    return json_text(str(value))


def bytes_text(octets: bytes) -> str:
    """Bytes as JSON text: a string if they are UTF-8, else `{"base64": …}`."""
    try:
        return json.dumps(octets.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return f'{{"base64":"{base64.b64encode(octets).decode()}"}}'


def _infinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _rfc3339(value: datetime) -> str:
    """With a Z if the zone is known, else without a zone."""
    text = value.astimezone(UTC) if value.tzinfo else value
    return text.replace(tzinfo=None).isoformat(timespec="microseconds") + (
        "Z" if value.tzinfo else ""
    )
