"""Rows out: NDJSON, CSV, Parquet and Arrow streams, batch by batch.

What is written has the types of the table contract whatever encoding the batches come in. Give the
batches `encoded` for Parquet and NDJSON, which are quicker for it. Rows of any other schema, as SQL
gives them, are written as well. Memory is bounded by a batch, in Parquet by a row group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from amqpsniff.errors import UsageError

Sink = str | Path | IO[bytes]

ROW_GROUP_ROWS = 131_072
"""Rows of a Parquet row group. Fewer cost speed and size (1.75 M frames: 0.28 s and 12.1 MB with
65,536, 0.25 s and 11.3 MB with this, 0.24 s and 11.0 MB with twice as many), more cost memory."""

ROW_GROUP_OCTETS = 32 * 1024 * 1024
"""Octets in memory at which a row group ends, however few its rows: bodies may be large."""

# Columns whose values hardly ever repeat and grow or stay near one another: written as differences,
# without a dictionary (1.75 M frames: 22 MB and 0.34 s become 11 MB and 0.33 s).
_RISING = frozenset(
    "packet_number last_packet_number outcome_packet_number response_packet_number "
    "first_packet_number opened_packet_number closed_packet_number ts_ns timestamp start_ns end_ns "
    "start end stream_offset".split()
)

# Columns by whose range a reader may pass over row groups; ranges of the others say nothing and
# take a quarter of the time.
_RANGED = _RISING - {"stream_offset"} | {"capture", "reply_code"}


def write(batches: Iterable[pa.RecordBatch], schema: pa.Schema, format: str, sink: Sink) -> int:
    """Write batches to a file, by name or open for octets; gives the number of rows written.

    `format` is one of `FORMATS`, `schema` that of the rows, whether they are encoded or not. A file
    named is made or overwritten; one that is open stays open. Raises UsageError for a format that
    is not there, OSError when writing fails.
    """
    writer = _WRITERS.get(format)
    if writer is None:
        raise UsageError(f"no format `{format}`; the formats are {', '.join(FORMATS)}")
    counted = _Counted(batches)
    if isinstance(sink, (str, Path)):
        with Path(sink).open("wb") as file:
            writer(counted, schema, file)
    else:
        writer(counted, schema, sink)
    return counted.rows


class _Counted:
    """Batches that are counted as they pass."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _ndjson(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from amqpsniff.tables.ndjson import Writer

    writer = Writer(schema)
    for batch in batches:
        writer.write(batch, sink)


def _csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from pyarrow import csv

    from amqpsniff.tables.text import as_text, text_schema

    with csv.CSVWriter(sink, text_schema(schema)) as writer:
        for batch in batches:
            writer.write_batch(as_text(batch))


def _arrow(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from amqpsniff.tables.batches import plain

    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(plain(batch))


def _parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    from pyarrow import parquet

    writer: Any = None
    rising = [field.name for field in schema if field.name in _RISING and _counts(field.type)]
    for group in _row_groups(batches):
        if writer is None:
            writer = parquet.ParquetWriter(
                sink,
                group.schema,
                compression="snappy",
                store_schema=False,
                use_dictionary=[name for name in schema.names if name not in rising],
                column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
                write_statistics=[name for name in schema.names if name in _RANGED],
                write_batch_size=ROW_GROUP_ROWS,
            )
        writer.write_table(group, row_group_size=len(group))
    if writer is None:
        writer = parquet.ParquetWriter(sink, schema, store_schema=False)
    writer.close()


def _counts(kind: pa.DataType) -> bool:
    return bool(kind == pa.int64() or pa.types.is_timestamp(kind))


def _row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches gathered to row groups, each with one dictionary for a column."""
    held: list[pa.RecordBatch] = []
    rows = octets = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        octets += batch.get_total_buffer_size()
        if rows >= ROW_GROUP_ROWS or octets >= ROW_GROUP_OCTETS:
            yield pa.Table.from_batches(held).unify_dictionaries()
            held = []
            rows = octets = 0
    if rows:
        yield pa.Table.from_batches(held).unify_dictionaries()


_WRITERS: Final[dict[str, Callable[..., None]]] = {
    "ndjson": _ndjson,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
}

FORMATS: Final = tuple(_WRITERS)
"""The formats there are."""
