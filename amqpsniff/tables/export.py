"""Rows out: NDJSON, CSV, Parquet and Arrow, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from amqpsniff.errors import UsageError
from amqpsniff.tables.batches import plain
from amqpsniff.tables.schema import JSON_COLUMNS

FORMATS: Final = ("ndjson", "csv", "parquet", "arrow")


def write(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, format: str, sink: str | Path | IO[bytes]
) -> int:
    """Write batches to a file by name or to an open binary file; gives the number of rows."""
    if format not in FORMATS:
        raise UsageError(f"no format `{format}`; the formats are {', '.join(FORMATS)}")
    if isinstance(sink, (str, Path)):
        with Path(sink).open("wb") as file:
            return write(batches, schema, format, file)
    rows = 0
    if format == "ndjson":
        for batch in batches:
            rows += batch.num_rows
            for row in plain(batch).to_pylist():
                for name in JSON_COLUMNS & row.keys():
                    if row[name] is not None:
                        row[name] = json.loads(row[name])
                sink.write(json.dumps(row, default=str).encode() + b"\n")
        return rows
    with _writer(schema, format, sink) as writer:
        for batch in batches:
            rows += batch.num_rows
            writer.write_batch(plain(batch))
    return rows


def _writer(schema: pa.Schema, format: str, sink: Any) -> Any:
    if format == "csv":
        from pyarrow import csv

        return csv.CSVWriter(sink, schema)
    if format == "arrow":
        return pa.ipc.new_stream(sink, schema)
    from pyarrow import parquet

    return parquet.ParquetWriter(sink, schema, compression="zstd", store_schema=False)
