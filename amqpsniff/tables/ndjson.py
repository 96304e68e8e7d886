"""Record batches as NDJSON: one JSON object a line, columns in their order, nulls as `null`.

A batch is prepared column by column and written row by row (`amqpsniff.tables.cells`). Preparation
makes a cell of every column: its key as JSON text, and the whole text of a value where there are
few values (encoded strings, booleans). Columns that are the same in every row, null ones above all,
become part of the key after them; neighbours that share their codes become one.

`arguments` and `headers` hold JSON objects already and are copied. Types that the tables of the
contract do not have come from SQL and take the slow way, through `values.json_text`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import IO, Any, Literal

import pyarrow as pa

from amqpsniff.columns import Octets
from amqpsniff.tables import cells
from amqpsniff.tables.cells import Cell, write_rows
from amqpsniff.tables.schema import JSON_COLUMNS
from amqpsniff.tables.values import json_text, python_values

FIRST_BYTES = 1 << 16

KEPT_BYTES = 1 << 22
"""The buffer for lines is replaced when a line made it larger than this."""


class Writer:
    """Writes batches of one schema, encoded or not.

    A string field with metadata `json` is of rows that SQL made: `object` where only JSON objects,
    `any` where any JSON is to be nested. What is not that is written as a string.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._keys = [
            f"{',' if place else '{'}{json_text(name)}:".encode()
            for place, name in enumerate(schema.names)
        ]
        self._marks = [(field.metadata or {}).get(b"json") for field in schema]
        self._out = Octets(FIRST_BYTES)

    def write(self, batch: pa.RecordBatch, sink: IO[bytes]) -> None:
        """Write a batch as lines to a sink, whose `write` may use what it is given only then."""
        prepared, tail = self._prepare(batch)
        write_rows([one.cell() for one in prepared], tail, batch.num_rows, self._out, sink)
        if self._out.size > KEPT_BYTES:
            self._out = Octets(FIRST_BYTES)

    def _prepare(self, batch: pa.RecordBatch) -> tuple[list[_Prepared], bytes]:
        """What cells are made from, and what every line ends in."""
        prepared: list[_Prepared] = []
        lead = b"" if self._keys else b"{"
        names = batch.schema.names
        for key, mark, name, array in zip(
            self._keys, self._marks, names, batch.columns, strict=True
        ):
            lead += key
            raw = mark is None and name in JSON_COLUMNS
            plain = _simple(array, raw or mark is not None)
            same = _same_throughout(plain)
            if same is not None:
                lead += same
                continue
            one = _prepared(plain, raw, mark, lead)
            lead = b""
            if not (prepared and prepared[-1].joined(one)):
                prepared.append(one)
        return prepared, lead + b"}\n"


class _Prepared:
    """A column on its way to a cell; see `Cell` for the meaning of the arguments.

    `shared` tells columns that have the same codes; None for a column that has none.
    """

    def __init__(
        self,
        kind: int,
        texts: list[bytes],
        array: pa.Array | None,
        shared: object = None,
        **more: Any,
    ) -> None:
        self.kind = kind
        self.texts = texts
        self.shared = shared
        self.more = more
        if array is not None:
            self.more["offset"] = array.offset
            if array.null_count:
                self.more["valid"] = _bytes(array.buffers()[0])

    def joined(self, other: _Prepared) -> bool:
        """Take another column with the same codes in, if it has them."""
        if self.shared is None or self.shared != other.shared:
            return False
        self.texts = [one + more for one, more in zip(self.texts, other.texts, strict=True)]
        return True

    def cell(self) -> Cell:
        return Cell(self.kind, self.texts, **self.more)


def _bytes(buffer: pa.Buffer | None) -> memoryview:
    """An Arrow buffer as unsigned bytes."""
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _numbers(array: pa.Array, count: int, format: Literal["q", "i"]) -> memoryview:
    """The first `count` numbers of an array's data, or of its offsets."""
    width = 8 if format == "q" else 4
    return _bytes(array.buffers()[1])[: count * width].cast(format)


def _same_throughout(array: pa.Array) -> bytes | None:
    """JSON text of the value that every row has; None when they differ."""
    if array.null_count == len(array):
        return b"null"
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) != 1 or array.null_count:
        return None
    return json_text(array.dictionary[0].as_py()).encode()


def _simple(array: pa.Array, one_by_one: bool) -> pa.Array:
    """The same values in a type that has a cell of its own, where there is one.

    Dictionaries are decoded when values are looked at `one_by_one`.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        if kind == pa.dictionary(pa.int32(), pa.string()) and not one_by_one:
            return array
        return _simple(array.dictionary_decode(), one_by_one)
    if kind in (pa.large_string(), pa.string_view()):
        return array.cast(pa.string())
    if pa.types.is_integer(kind) and kind not in (pa.int64(), pa.int32(), pa.uint64()):
        return array.cast(pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return array.cast(pa.timestamp("us", kind.tz))
    return array


def _prepared(array: pa.Array, raw: bool, mark: bytes | None, lead: bytes) -> _Prepared:
    """An array prepared; `raw` says that its strings are JSON, `mark` that they may be."""
    kind = array.type
    last = array.offset + len(array)
    if pa.types.is_dictionary(kind):
        return _encoded(array, lead)
    if kind == pa.bool_():
        texts = [lead + b"false", lead + b"true", lead + b"null"]
        return _Prepared(cells.TRUTHS, texts, array, octets=_bytes(array.buffers()[1]))
    texts = [lead, lead + b"null"]
    if kind == pa.int64():
        return _Prepared(cells.LONG, texts, array, longs=_numbers(array, last, "q"))
    if kind == pa.int32():
        return _Prepared(cells.INT, texts, array, ints=_numbers(array, last, "i"))
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        zone = kind.tz is not None
        return _Prepared(cells.TIME, texts, array, longs=_numbers(array, last, "q"), zone=zone)
    if mark is not None:
        return _one_by_one(array, lead, partial(_judged, kind=mark))
    if kind not in (pa.string(), pa.binary()):
        return _one_by_one(array, lead, json_text)
    written = cells.BYTES if kind == pa.binary() else cells.RAW if raw else cells.TEXT
    octets = _bytes(array.buffers()[2])
    return _Prepared(written, texts, array, ints=_numbers(array, last + 1, "i"), octets=octets)


def _encoded(array: pa.Array, lead: bytes) -> _Prepared:
    """Dictionary-encoded strings: a text for each of them."""
    texts = [lead + json_text(word).encode() for word in (*array.dictionary.to_pylist(), None)]
    where = [None if buffer is None else buffer.address for buffer in array.buffers()]
    shared = (where, array.offset, len(texts))
    codes = _numbers(array, array.offset + len(array), "i")
    return _Prepared(cells.PIECES, texts, array, shared, ints=codes)


def _one_by_one(array: pa.Array, lead: bytes, text: Callable[[Any], str]) -> _Prepared:
    """Values of any type: a text for each row."""
    values = python_values(array)
    texts = [lead + (b"null" if value is None else text(value).encode()) for value in values]
    codes = memoryview(bytearray(4 * len(values))).cast("i")
    for row in range(len(values)):
        codes[row] = row
    return _Prepared(cells.PIECES, texts, None, ints=codes)


def _refused(number: str) -> None:
    """NaN and Infinity are no JSON, though Python and DuckDB read them."""
    raise ValueError(number)


def _judged(value: str, kind: bytes) -> str:
    """Text of a value that should be JSON: itself when it is, else a string."""
    try:
        parsed = json.loads(value, parse_constant=_refused)
        sound = kind == b"any" or isinstance(parsed, dict)
    except (ValueError, RecursionError):
        sound = False
    return value.replace("\n", " ").replace("\r", " ") if sound else json_text(value)
