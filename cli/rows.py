"""Rows as data: a table's rows to standard output or a file, in a format for machines."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import IO, Any

from amqpsniff.errors import UsageError
from amqpsniff.wire_text import harmless

from .options import Input, Rows
from .reading import Reading


def write_rows(
    source: Input,
    rows: Rows,
    table: str,
    form: str,
    *,
    bodies: bool = False,
    warned_of: Collection[str] | None = None,
) -> int:
    """Write the wanted rows of a table to standard output; the exit code."""
    export = Export(source, rows, table, bodies=bodies, warned_of=warned_of)
    return export.write(form, standard_output())


class Export:
    """The wanted rows and columns of one table.

    Args:
        columns: Names of the columns in the order wanted; null for all.
        progress: Whether to say on a terminal how far it is.
        warned_of: As `Reading` has it.
    """

    def __init__(
        self,
        source: Input,
        rows: Rows,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        bodies: bool = False,
        body_sha256: bool = False,
        progress: bool = False,
        warned_of: Collection[str] | None = None,
    ) -> None:
        from amqpsniff.tables.schema import schema_of

        self._table = table
        self._schema = _schema(schema_of(table, everything=columns is not None), table, columns)
        self._columns = columns
        self._progress = progress
        self._reading = Reading(
            source, rows, bodies=bodies, body_sha256=body_sha256, warned_of=warned_of
        )
        self._wanted = self._reading.row_filter(rows, table)

    def write(self, form: str, sink: IO[bytes]) -> int:
        """Write them in a format of `amqpsniff.tables.export`; the exit code."""
        from amqpsniff.tables.export import write
        from amqpsniff.tables.schema import IN_EVERY_ROW

        there = IN_EVERY_ROW.get(self._table, ())
        write(self._batches(), self._schema, form, sink, there)
        if self._wanted.selection.chooses():  # of findings, say, there may well be none
            self._reading.miss(self._wanted)
        return self._reading.exit_code

    def _batches(self) -> Iterator[Any]:
        needed = None
        if self._columns is not None:
            needed = {self._table: {*self._columns, *self._wanted.columns}}
        for _, batch in self._reading.rows(self._table, columns=needed, progress=self._progress):
            kept = self._wanted.of(batch)
            if kept.num_rows:
                yield kept if self._columns is None else kept.select(list(self._columns))
            if self._wanted.done:
                return


def _schema(schema: Any, table: str, columns: Sequence[str] | None) -> Any:
    """The schema with the wanted columns; raises UsageError for one that the table has not, and for
    one that is named twice.
    """
    import pyarrow as pa

    if columns is None:
        return schema
    for name in columns:
        if name not in schema.names:
            from amqpsniff.tables.statements import no_column

            raise UsageError(f"{table}: {no_column(name, schema.names)}")
        if columns.count(name) > 1:
            raise UsageError(f"--columns names `{name}` more than once")
    return pa.schema([schema.field(name) for name in columns])


def standard_output() -> IO[bytes]:
    """Standard output for bytes; on a terminal those that steer it are written as escapes."""

    return _Harmless() if sys.stdout.isatty() else sys.stdout.buffer  # type: ignore[return-value]


class _Harmless:
    """A binary file before a terminal."""

    closed = False

    def write(self, octets: Any) -> int:

        text = bytes(octets).decode(errors="replace")
        sys.stdout.write("\n".join(map(harmless, text.split("\n"))))
        return len(octets)

    def flush(self) -> None:

        sys.stdout.flush()
