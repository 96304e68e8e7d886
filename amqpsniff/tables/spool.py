"""Rows that wait in a file until the process that makes them has ended.

The engine that reads a capture and DuckDB where it sorts or joins both want much memory,
each by itself bearable. Rows wait as the encoded batches that they came in, which takes a
fifteenth of the time that reading the capture takes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from amqpsniff.process_tuning import release_memory

IN_MEMORY = 4 * 1024 * 1024
"""Bytes of packed rows that wait in memory: small captures need no file."""


def spooled(
    batches: Iterable[pa.RecordBatch], folder: str, in_memory: int = IN_MEMORY
) -> Iterator[pa.RecordBatch]:
    """The same batches, the first given when the last was taken; a file in the folder holds them.

    They are of one schema. The file is gone when all were given, or when the iterator is closed.
    """
    with tempfile.SpooledTemporaryFile(in_memory, dir=folder) as file:
        if not _write(batches, file):
            return
        del batches
        release_memory()
        file.seek(0)
        with pa.ipc.open_stream(file) as reader:
            yield from reader


class Spool:
    """Encoded batches of one schema in a file, written once and read as often as needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Write a batch."""
        if self._writer is None:
            self._writer = pa.ipc.new_stream(str(self._path), batch.schema, options=_packed())
        self._writer.write_batch(batch)

    def batches(self, _: object = None) -> Iterator[pa.RecordBatch]:
        """The batches from the first on; none can be added any longer."""
        if self._writer is None:
            return
        self._writer.close()
        with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
            yield from reader


def _packed() -> pa.ipc.IpcWriteOptions:
    return pa.ipc.IpcWriteOptions(compression="lz4")


def _write(batches: Iterable[pa.RecordBatch], file: IO[bytes]) -> bool:
    """Write batches as a stream, packed; False without batches."""
    writer: Any = None
    for batch in batches:
        if writer is None:
            writer = pa.ipc.new_stream(file, batch.schema, options=_packed())
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    return writer is not None
