"""Rows out: NDJSON, CSV, Parquet and Arrow streams, batch by batch.

The output has the types of the table contract for any encoding of the batches. Parquet and NDJSON
are quicker with `encoded` batches. Rows of any other schema, such as results of SQL, are written as
well. Memory is bounded by a batch, in Parquet by a row group.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from amqpsniff.errors import UsageError
from amqpsniff.tables.values import json_text, python_values

Sink = str | Path | IO[bytes]

ROW_GROUP_ROWS = 131_072
"""Rows of a Parquet row group. Fewer cost speed and size (1.75 M frames: 0.28 s and 12.1 MB with
65,536, 0.25 s and 11.3 MB with this, 0.24 s and 11.0 MB with twice as many), more cost memory."""

ROW_GROUP_BYTES = 32 * 1024 * 1024
"""Bytes in memory at which a row group ends, however few its rows: bodies may be large."""

PLAIN_BYTES = 8 * 1024 * 1024
"""The same where no strings are encoded, as in what SQL gives: they are many times as large then,
and Parquet encodes them beside. With 32 MiB `sql` of whole messages takes 25 MB more."""

RISING: Final = frozenset(
    "packet_number last_packet_number outcome_packet_number response_packet_number "
    "first_packet_number opened_packet_number closed_packet_number ts_ns timestamp start_ns end_ns "
    "start end stream_offset row".split()
)
"""Columns whose values hardly ever repeat and grow or stay near one another: written as
differences, without a dictionary (1.75 M frames: 22 MB and 0.34 s become 11 MB and 0.33 s). `row`
is that of messages which wait for their links (`amqpsniff.archive.linking`)."""

# Columns by whose range a reader may skip row groups; ranges of the others are useless and
# take a quarter of the time.
_RANGED = RISING - {"stream_offset", "row"} | {"capture", "reply_code"}


def write(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    format: str,
    sink: Sink,
    in_every_row: Collection[str] = (),
) -> int:
    """Write batches to a file, by name or open for bytes; gives the number of rows written.

    `format` is one of `FORMATS`, `schema` that of the rows, whether they are encoded or not. A file
    named is made or overwritten; one that is open stays open. Columns `in_every_row` are never
    null, and are declared so if the format can. Raises UsageError for an unknown format,
    OSError when writing fails.
    """
    writer = _WRITERS.get(format)
    if writer is None:
        raise UsageError(f"no format `{format}`; the formats are {', '.join(FORMATS)}")
    if format == "parquet":
        schema = without_nulls(schema, in_every_row)
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch
            del batch  # release it before the next is made

    if isinstance(sink, (str, Path)):
        with Path(sink).open("wb") as file:
            writer(counted(), schema, file)
    else:
        writer(counted(), schema, sink)
    return rows


def without_nulls(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """A schema in which columns of these names cannot be null."""
    return pa.schema(
        [field.with_nullable(field.nullable and field.name not in names) for field in schema]
    )


def _ndjson(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from amqpsniff.tables.ndjson import Writer

    writer = Writer(schema)
    for batch in batches:
        writer.write(batch, sink)


def _csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from pyarrow import csv

    fields = [pa.field(field.name, _text_type(field.type)) for field in schema]
    with csv.CSVWriter(sink, pa.schema(fields)) as writer:
        for batch in batches:
            columns = [_text_column(column) for column in batch.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))


def _text_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column has in CSV: bytes, lists and structures are text."""
    if pa.types.is_dictionary(kind):
        return _text_type(kind.value_type)
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return pa.string() if is_binary or pa.types.is_nested(kind) else kind


def _text_column(column: pa.Array) -> pa.Array:
    """Bytes become text, or `{"base64": …}` where they are not UTF-8; nested values become JSON."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _text_type(column.type) == column.type:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.string())
    return pa.array([_text(value) for value in python_values(column)], pa.string())


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    return json_text(value)


def _arrow(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from amqpsniff.tables.batches import plain, plain_schema

    with pa.ipc.new_stream(sink, plain_schema(schema)) as writer:
        for batch in batches:
            writer.write_batch(plain(batch))


def _parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    writer = ParquetRows(sink, schema)
    for batch in batches:
        writer.add(batch)
        del batch
    writer.close()


class ParquetRows:
    """A Parquet file that is given batches of rows, encoded or not: `add` them, then `close`.

    Columns that cannot be null in the schema can be in the batches' own, but are not.
    """

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._sink = sink
        self._schema = schema
        self._writer: Any = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; they are written once there are enough for a row group."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.get_total_buffer_size()
        encoded = any(pa.types.is_dictionary(kind) for kind in batch.schema.types)
        max_bytes = ROW_GROUP_BYTES if encoded else PLAIN_BYTES
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= max_bytes:
            self._write_group()

    def close(self) -> None:
        """Write the remaining rows; the sink stays open."""
        if self._rows:
            self._write_group()
        if self._writer is None:
            self._writer = _parquet_writer(self._sink, self._schema)
        self._writer.close()

    def _write_group(self) -> None:
        """Write the held rows as a row group, with one dictionary for a column."""
        group = pa.Table.from_batches(self._waiting).unify_dictionaries()
        required = [field.name for field in self._schema if not field.nullable]
        group = pa.Table.from_arrays(group.columns, schema=without_nulls(group.schema, required))
        self._waiting = []
        self._rows = self._bytes = 0
        if self._writer is None:
            self._writer = self._open(group.schema)
        self._writer.write_table(group, row_group_size=len(group))

    def _open(self, schema: pa.Schema) -> Any:
        names = self._schema.names
        rising = [
            field.name for field in self._schema if field.name in RISING and _counts(field.type)
        ]
        return _parquet_writer(
            self._sink,
            schema,
            compression="snappy",
            use_dictionary=[name for name in names if name not in rising],
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            write_statistics=[name for name in names if name in _RANGED],
            write_batch_size=ROW_GROUP_ROWS,
        )


def _parquet_writer(sink: Any, schema: pa.Schema, **chosen: Any) -> Any:
    """pyarrow's writer of Parquet, for a sink that is open.

    The public writer checks and opens more than is needed here, and its module imports every
    file system and TLS along: 0.011 processor seconds, of the 0.18 that a small capture takes.
    """
    chosen |= {"version": "2.6", "writer_engine_version": "V2", "store_schema": False}
    try:
        from pyarrow._parquet import ParquetWriter

        return ParquetWriter(sink, schema, **chosen)
    except (ImportError, TypeError, ValueError):  # in a pyarrow that has another
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(sink, schema, **chosen)


def _counts(kind: pa.DataType) -> bool:
    return bool(kind == pa.int64() or pa.types.is_timestamp(kind))


_WRITERS: Final[dict[str, Callable[..., None]]] = {
    "ndjson": _ndjson,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}

FORMATS: Final = tuple(_WRITERS)
"""Names of the formats."""
