"""Arrow batches from the decoder's columns, mostly without copying.

Strings that repeat (method, connection, …) come from the decoder as codes and stay dictionary
encoded here, as the writers need them; `plain` turns a batch into the types of `schema`. Only
the requested columns are made. Arrow's compute functions and its conversion of Python lists are
not used for the batches: the first take longer than the rows, the second imports pandas if it is
installed.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from amqpsniff.columns import Integers, Texts
from amqpsniff.decode.amqp10.columns import DeliveryColumns
from amqpsniff.decode.codes import STATUS_NAMES
from amqpsniff.decode.meanings import MeaningColumns
from amqpsniff.decode.method_layout import FRAME_TYPE_NAMES, NAMES
from amqpsniff.decode.rows import FrameRows, MessageRows
from amqpsniff.errors import UsageError
from amqpsniff.findings import SHOWN, Finding, Kind
from amqpsniff.plan import Plan
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.session.link_recorder import LinkColumns
from amqpsniff.session.linker import MATCHES
from amqpsniff.session.row_buffer import CHANGING
from amqpsniff.session.table_rows import Rows
from amqpsniff.tables import bitmaps
from amqpsniff.tables.schema import (
    FINDINGS,
    LINKED,
    MEANINGS,
    OUTCOME,
    PROCESSES,
    schema_of,
)
from amqpsniff.tables.statements import no_column

Connections = Sequence[tuple[str, str | None, str | None]]

_ENCODED = pa.dictionary(pa.int32(), pa.string())

# The decoder's column that a column of the table is made from, where it has another name.
_SOURCES = {
    "connection_id": "connection",
    "client": "connection",
    "server": "connection",
    "timestamp": "ts_ns",
}


def _array(kind: pa.DataType, rows: int, nulls: int, *buffers: Any) -> pa.Array:
    """An array of some buffers; the first, the bitmap, may be None."""
    if nulls == rows:
        return pa.nulls(rows, kind)
    shared = [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]
    return pa.Array.from_buffers(kind, rows, shared, nulls)


def _strings(values: Iterable[str | None]) -> pa.Array:
    listed = list(values)
    *buffers, nulls = bitmaps.of_texts(listed)
    return _array(pa.string(), len(listed), nulls, *buffers)


class _Words:
    """The strings that the codes of a column stand for, each once.

    A dictionary that had a string twice would be written to Parquet without a dictionary, or with
    bytes behind it that were never written. `new_codes`
    are other codes in place of the column's, None where those are right.
    """

    def __init__(self, values: Sequence[str | None]) -> None:
        different = dict.fromkeys(values)
        self.strings = _strings(different)
        self.new_codes: array[int] | None = None
        if len(different) < len(values):
            code_by_value = {value: code for code, value in enumerate(different)}
            self.new_codes = array("i", map(code_by_value.__getitem__, values))


SETTLED = CHANGING - {"waiting"}
"""Columns of a row that change after it was made; `waiting` is in no table."""

NEVER_NULL = frozenset("packet_number channel stream_offset size body_captured".split())
"""Columns that the decoder writes for every row, never null: they are not searched for nulls. They
are out of the processor's cache by then, and reading them took a tenth of making a batch."""

_WORDS = {
    "sender": _Words(["client", "server"]),
    "frame_type": _Words(FRAME_TYPE_NAMES),
    "method": _Words(NAMES),
    "status": _Words(STATUS_NAMES),
    "outcome": _Words(OUTCOMES),
    "link_confidence": _Words(MATCHES),
}


_CODED = frozenset((*MeaningColumns.CODES, *DeliveryColumns.NAMES, *LinkColumns().by_name()))
"""Columns with words of their own that batches have or have not."""


class _Columns:
    """Makes columns of one batch; each of the decoder's columns is taken once, at its first use.

    Those of `SETTLED` are copied where the rows were not given: they may still change.

    `words` are the strings that the codes of a column stand for, by the column's name.
    """

    def __init__(self, rows: FrameRows | MessageRows, words: Mapping[str, _Words]) -> None:
        self._source = rows.columns()
        further = [getattr(rows, name, None) for name in ("links", "deliveries", "meanings")]
        self._rows = rows.rows
        self._is_given = rows.given
        self._words = words
        self._vocabularies = rows.vocabularies.by_name()
        for rows_of_part in further:
            if rows_of_part is not None:
                self._source |= rows_of_part.columns()
                self._vocabularies |= rows_of_part.by_name()
        self._taken_columns: dict[str, tuple[Any, Any, int]] = {}
        self._empty: dict[pa.DataType, pa.Array] = {}

    def make(self, name: str, kind: pa.DataType) -> pa.Array:
        """The column of that name and type; all null if the decoder does not have it."""
        source = _SOURCES.get(name, name)
        column = self._source.get(source)
        if column is None:  # as batches that have it: those of a file are alike
            return self._nulls(_ENCODED if name in _CODED else kind)
        if isinstance(column, Texts):
            return self._texts(column, kind)
        storage, bitmap, nulls = self._take(source, column)
        if name in self._vocabularies:
            return self._coded(name, storage, bitmap, nulls)
        if name in self._words:
            return self._dictionary_column(self._words[name], storage, bitmap, nulls)
        if name == "timestamp":
            storage = bitmaps.microseconds(storage, self._rows)
        elif kind == pa.bool_():
            storage = bitmaps.of_truths(storage, self._rows)
        return self._array(kind, storage, bitmap, nulls)

    def _nulls(self, kind: pa.DataType) -> pa.Array:
        """A column without a value, one for all of a kind."""
        nulls = self._empty.get(kind)
        if nulls is None:
            nulls = self._empty[kind] = pa.nulls(self._rows, kind)
        return nulls

    def _coded(self, name: str, storage: Any, bitmap: Any, nulls: int) -> pa.Array:
        """A column of texts that repeat."""
        if nulls == self._rows:
            return self._nulls(_ENCODED)
        vocabulary = self._vocabularies[name]
        entries = vocabulary.entries()
        if entries is None:
            return self._dictionary_column(_Words(vocabulary.texts()), storage, bitmap, nulls)
        strings = _array(pa.string(), vocabulary.count, 0, None, *entries)
        codes = self._array(pa.int32(), storage, bitmap, nulls)
        return pa.DictionaryArray.from_arrays(codes, strings, safe=False)

    def _dictionary_column(self, words: _Words, storage: Any, bitmap: Any, nulls: int) -> pa.Array:
        """A column of codes of words."""
        if nulls == self._rows:
            return self._nulls(_ENCODED)
        if words.new_codes is not None:
            storage = bitmaps.recoded(storage, self._rows, words.new_codes)
        codes = self._array(pa.int32(), storage, bitmap, nulls)
        return pa.DictionaryArray.from_arrays(codes, words.strings, safe=False)

    def _take(self, source: str, column: Any) -> tuple[Any, Any, int]:
        """Storage, bitmap and number of nulls of a column of numbers."""
        parts = self._taken_columns.get(source)
        if parts is None:
            may_change = source in SETTLED and not self._is_given
            storage = bytearray(column.storage) if may_change else column.take(self._rows)
            if source in NEVER_NULL:
                bitmap, nulls = None, 0
            else:
                of = bitmaps.of_integers if isinstance(column, Integers) else bitmaps.of_codes
                bitmap, nulls = of(storage, self._rows)
            parts = self._taken_columns[source] = (storage, bitmap, nulls)
        return parts

    def _texts(self, column: Texts, kind: pa.DataType) -> pa.Array:
        offsets, valid, octets, values = column.take(self._rows)
        nulls = self._rows - values
        bitmap = bitmaps.of_bytes(valid, self._rows) if 0 < nulls < self._rows else None
        return self._array(kind, offsets, bitmap, nulls, octets)

    def _array(
        self, kind: pa.DataType, storage: Any, bitmap: Any, nulls: int, *further: Any
    ) -> pa.Array:
        if nulls == self._rows:
            return self._nulls(kind)
        return _array(kind, self._rows, nulls, bitmap, storage, *further)


def _batch(
    schema: pa.Schema,
    rows: FrameRows | MessageRows,
    connections: Connections,
    captures: Sequence[str],
    method_names: Sequence[str] = (),
) -> pa.RecordBatch:
    """Rows of frames or messages, or some columns of them; strings that repeat are encoded."""
    ids, clients, servers = zip(*connections, strict=True) if connections else ((), (), ())
    words = _WORDS | {
        "capture": _Words(captures),
        "connection_id": _Words(ids),
        "client": _Words(clients),
        "server": _Words(servers),
    }
    if method_names:
        words["method"] = _Words([*NAMES, *method_names])
    columns = _Columns(rows, words)
    arrays = [columns.make(field.name, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def settled_columns(rows: FrameRows | MessageRows, schema: pa.Schema) -> dict[str, pa.Array]:
    """The columns of a schema that changed after the batch was made, as they are now, by name."""
    columns = _Columns(rows, _WORDS)
    return {
        field.name: columns.make(field.name, field.type)
        for field in schema
        if field.name in SETTLED
    }


def waiting_rows(rows: Any) -> pa.BooleanArray:
    """Mask of the rows that may still change."""
    bits = bitmaps.of_truths(rows.waiting.storage, rows.rows)
    return _array(pa.bool_(), rows.rows, 0, None, bits)


def record_batch(rows: Rows | Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows of `connections`, `channels` or `links` as the tracker gives them."""
    arrays = [_record_column(rows, field.name, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _record_column(
    rows: Rows | Sequence[Mapping[str, Any]], name: str, kind: pa.DataType
) -> pa.Array:
    source = f"{name}_ns" if pa.types.is_timestamp(kind) else name
    values = rows.column(source) if isinstance(rows, Rows) else [row[source] for row in rows]
    if kind == pa.bool_():
        count = len(values)
        present = bytearray(value is not None for value in values)
        bits = (bitmaps.of_bytes(flags, count) for flags in (present, bytearray(map(bool, values))))
        return _array(kind, count, values.count(None), *bits)
    return _strings(values) if kind == pa.string() else _integers(values, kind)


def finding_batch(findings: Iterable[Finding], schema: pa.Schema = FINDINGS) -> pa.RecordBatch:
    """The `findings` table's rows, or some columns of them; nothing is encoded."""
    listed = list(findings)
    kinds = [finding.kind for finding in listed]
    arrays = [_finding_column(listed, kinds, field.name, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, names=schema.names)


def _finding_column(
    findings: list[Finding], kinds: list[Kind], name: str, kind: pa.DataType
) -> pa.Array:
    rows: Sequence[object] = kinds if name in SHOWN else findings
    values = map(attrgetter("ts_ns" if pa.types.is_timestamp(kind) else name), rows)
    return _strings(values) if kind == pa.string() else _integers(values, kind)


def _integers(values: Iterable[int | None], kind: pa.DataType) -> pa.Array:
    """An array of integers, or of times in nanoseconds."""
    listed = list(values)
    bitmap, numbers, nulls = bitmaps.of_numbers(listed, kind.bit_width == 32)
    if pa.types.is_timestamp(kind):
        numbers = bitmaps.microseconds(numbers, len(listed))
    return _array(kind, len(listed), nulls, bitmap, numbers)


def integer_array(storage: bytearray, rows: int) -> pa.Array:
    """An array of the first rows of `Integers`, without copying them."""
    bitmap, nulls = bitmaps.of_integers(storage, rows)
    return _array(pa.int64(), rows, nulls, bitmap, storage)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with every dictionary decoded: the types of the table contract."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the result of `plain` for batches of this schema."""
    return pa.schema([(field.name, _decoded(field.type)) for field in schema])


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def plan_for(makers: Collection[Maker], tables: Iterable[str] = (), **fields: Any) -> Plan:
    """The plan of a run that feeds makers, with further `tables` and further fields of `Plan`."""
    produced = {*tables, *(maker.table for maker in makers)}
    if "findings" in produced:
        produced.add("messages")  # some findings are made together with a message's row
    fields.setdefault("links", any(maker.links for maker in makers))
    fields.setdefault("meanings", any(maker.meanings for maker in makers))
    fields.setdefault("processes", any(maker.processes for maker in makers))
    columns = {maker.table: maker.schema.names for maker in makers}
    if fields["meanings"] and "messages" in columns:
        columns["messages"] = [*columns["messages"], *MessageRows.PROPERTIES]  # what packs read
    outcomes = any(maker.outcomes for maker in makers)
    return Plan(frozenset(produced), columns, outcomes, **fields)


class Maker:
    """Makes the batches of one table from what a pipeline gives.

    `schema` is that of the batches that `make` gives when they are not `encoded`. `columns` names
    the requested columns, in the table's order; None for all but those that link messages across
    connections, which are made if they are named, or with `everything`. Raises UsageError for an
    unknown table or column.
    """

    def __init__(
        self,
        table: str,
        *,
        encoded: bool = False,
        columns: Collection[str] | None = None,
        everything: bool = False,
    ) -> None:
        self.table = table
        self.encoded = encoded
        self.schema = schema_of(table, everything=everything or columns is not None)
        if columns is not None:
            for name in columns:
                if name not in self.schema.names:
                    raise UsageError(f"{table}: {no_column(name, self.schema.names)}")
            self.schema = pa.schema([field for field in self.schema if field.name in columns])

    @property
    def outcomes(self) -> bool:
        """True if a column with the outcome of a message is requested."""
        return self.table == "messages" and not OUTCOME.isdisjoint(self.schema.names)

    @property
    def links(self) -> bool:
        """True if a requested column links messages across connections."""
        return self.table == "messages" and not LINKED.isdisjoint(self.schema.names)

    @property
    def meanings(self) -> bool:
        """True if packs fill a requested column."""
        return not MEANINGS.isdisjoint(self.schema.names)

    @property
    def processes(self) -> bool:
        """True if packet comments fill a requested column."""
        return self.table == "connections" and not PROCESSES.isdisjoint(self.schema.names)

    def make(self, rows: Any) -> pa.RecordBatch:
        """A batch from what `Pipeline.take` gave; for `findings`, `connections`, `channels` and
        `links` from a list of them.
        """
        if self.table == "findings":
            return finding_batch(rows, self.schema)
        if self.table in ("connections", "channels", "links"):
            return record_batch(rows, self.schema)
        frames, messages, connections, captures, method_names = rows
        if self.table == "frames":
            batch = _batch(self.schema, frames, connections, captures, method_names)
        else:
            batch = _batch(self.schema, messages, connections, captures)
        return batch if self.encoded else plain(batch)
