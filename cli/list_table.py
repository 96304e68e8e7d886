"""The shared part of `connections`, `channels` and `links`: rows of things that last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .options import Input, Rows

Columns = dict[str, list[Any]]

FORMATS = ("text", "ndjson", "csv")

MAX_LAID_OUT = 10_000
"""Rows laid out as one table; of more there is a table for each so many."""


def show(source: Input, rows: Rows, table: str, form: str, *, verbose: bool) -> int:
    """Write the wanted rows of one of these tables; the exit code."""
    if form != "text":
        from .rows import write_rows

        return write_rows(source, rows, table, form)
    return _show_text(source, rows, table, verbose)


def _show_text(source: Input, rows: Rows, table: str, verbose: bool) -> int:
    from .output import Output
    from .reading import Reading
    from .render.list_table import blocks, grid

    reading, output = Reading(source, rows), Output()
    wanted = reading.row_filter(rows, table)
    several = len(reading.capture.names) > 1
    some = False
    for columns in _pieces(reading, wanted, table, verbose):
        some = True
        if verbose:
            output.lines(blocks(table, columns, output.paint))
        else:
            started, narrow = reading.started(), output.narrow
            output.show(grid(table, columns, started, several=several, narrow=narrow))
    if table == "connections" and rows == type(rows)(limit=rows.limit):
        from . import tls_table

        capture = reading.capture
        tls_table.show(
            capture.encrypted, capture.totals, output, rows.limit, below=some, verbose=verbose
        )
    reading.miss(wanted)
    return reading.exit_code


def _pieces(reading: Any, wanted: Any, table: str, verbose: bool) -> Iterator[Columns]:
    """The wanted rows as columns, so many at a time as are laid out together, in order."""
    from amqpsniff.tables.values import values

    needed = None
    if table == "connections" and not verbose:  # of which there may be very many
        needed = {table: wanted.columns.union(_CONNECTION)}
    held: Columns = {}
    rows = 0
    for _, batch in reading.rows(table, columns=needed, progress=True, shown=True):
        chosen, at = wanted.of(batch), 0
        while at < chosen.num_rows:
            part = chosen.slice(at, MAX_LAID_OUT - rows)
            for name in part.schema.names:
                if name not in _TIMES:
                    held.setdefault(name, []).extend(values(part, name))
            at, rows = at + part.num_rows, rows + part.num_rows
            if rows == MAX_LAID_OUT:
                yield _in_order(held)
                held, rows = {}, 0
        if wanted.done:
            break
    if rows:
        yield _in_order(held)


_TIMES = frozenset(("start", "end"))
"""Not shown: the same moments in nanoseconds are."""

_CONNECTION = (
    "capture", "connection_id", "client", "server", "client_product", "client_version", "vhost",
    "user", "connection_name", "midstream", "first_packet_number", "start_ns", "end_ns", "channels",
    "published", "delivered", "acknowledged", "client_bytes", "server_bytes", "blocked_ns",
    "closed_by", "close_code", "close_method", "close_text",
)  # fmt: skip
"""Columns of a connection's line."""

_BEGINS = ("opened_packet_number", "attached_packet_number", "first_packet_number")


def _in_order(columns: Columns) -> Columns:
    """What began first comes first; what began before the capture before all."""
    numbers = next(columns[name] for name in _BEGINS if name in columns)
    ids = columns["connection_id"]
    channels = columns.get("channel", numbers)
    times = zip(columns["start_ns"], numbers, ids, channels, strict=True)
    begins = [(start or 0, number or 0, id_, channel or 0) for start, number, id_, channel in times]
    if begins == sorted(begins):
        return columns
    order = sorted(range(len(begins)), key=begins.__getitem__)
    return {name: list(map(column.__getitem__, order)) for name, column in columns.items()}
