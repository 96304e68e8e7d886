"""Rows as data: a table's rows to standard output or a file, in a format for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .options import Input, Rows


def write_rows(source: Input, rows: Rows, table: str, form: str) -> int:
    """Write the wanted rows of a table to standard output; the exit code."""
    from amqpsniff.tables.export import write
    from amqpsniff.tables.schema import schema_of

    from .reading import Reading
    from .selection import Selection

    reading = Reading(source)
    selection = Selection(rows, table, reading.started)
    selection.check()
    write(chosen(reading.rows(table), selection), schema_of(table), form, standard_output())
    return reading.exit_code


def chosen(batches: Iterable[tuple[str, Any]], selection: Any) -> Iterator[Any]:
    """The wanted rows of the batches, until there are enough."""
    for _, batch in batches:
        kept = selection.of(batch)
        if kept.num_rows:
            yield kept
        if selection.done:
            return


def standard_output() -> IO[bytes]:
    """Standard output for octets; on a terminal those that steer it are written as escapes."""
    import sys

    return _Harmless() if sys.stdout.isatty() else sys.stdout.buffer  # type: ignore[return-value]


class _Harmless:
    """A binary file before a terminal."""

    closed = False

    def write(self, octets: Any) -> int:
        import sys

        from .render.text import harmless

        text = bytes(octets).decode(errors="replace")
        sys.stdout.write("\n".join(map(harmless, text.split("\n"))))
        return len(octets)

    def flush(self) -> None:
        import sys

        sys.stdout.flush()
