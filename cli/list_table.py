"""The shared part of `connections`, `channels` and `links`: rows of things that last."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from .options import Input, Rows

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
    found = _rows(reading, wanted, table, verbose)
    several = len(reading.capture.names) > 1
    some = False
    while piece := list(islice(found, MAX_LAID_OUT)):
        some = True
        piece.sort(key=_begin)
        if verbose:
            output.lines(blocks(table, piece, output.paint))
        else:
            started, narrow = reading.started(), output.narrow
            output.show(grid(table, piece, started, several=several, narrow=narrow))
    if table == "connections" and rows == type(rows)(limit=rows.limit):
        from . import tls_table

        capture = reading.capture
        tls_table.show(
            capture.encrypted, capture.totals, output, rows.limit, below=some, verbose=verbose
        )
    reading.miss(wanted)
    return reading.exit_code


def _rows(reading: Any, wanted: Any, table: str, verbose: bool) -> Iterator[dict[str, Any]]:
    from amqpsniff.tables.values import rows_of

    columns = None
    if table == "connections" and not verbose:  # of which there may be very many
        columns = {table: wanted.columns.union(_CONNECTION)}
    for _, batch in reading.rows(table, columns=columns, progress=True, shown=True):
        chosen = wanted.of(batch)
        yield from rows_of(chosen.drop_columns(_TIMES.intersection(chosen.schema.names)))
        if wanted.done:
            return


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


def _begin(row: dict[str, Any]) -> tuple[Any, ...]:
    """What began first comes first; what began before the capture before all."""
    number = next((row[name] for name in _BEGINS if name in row), None)
    return row["start_ns"] or 0, number or 0, row["connection_id"], row.get("channel", 0)
