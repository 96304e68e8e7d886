"""`amqpsniff connections`, `channels` and `links`: rows of things that last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from amqpsniff.process_tuning import gc_paused

from .export import write_rows
from .options import Input, Rows, spread
from .output import Output
from .reading import Reading
from .render.list_table import BEGINS, Columns, blocks, columns_of, grid

FORMATS = ("text", "ndjson", "csv")

MAX_LAID_OUT = 10_000
"""Most rows of one table; more are split over several."""


def _lists(table: str) -> Callable[[Callable[[], None]], Callable[..., int]]:
    """Make the command that lists the rows of a table; what is decorated has its help."""
    options = f"""
        Output:
            -v --verbose: All that is known of each {table[:-1]}, one field a line.
            --format F: Output format: {{FORMATS}}; the last two give the rows of the {table} table.
                [default]
    """

    def make(command: Callable[[], None]) -> Callable[..., int]:
        def run(
            source: Input,
            rows: Rows,
            verbose: bool = False,
            format_: str = FORMATS[0],
        ) -> int:
            if format_ != "text":
                return write_rows(source, rows, table, format_)
            with gc_paused():  # rows and cells stay, and are part of no cycle
                return _show_text(source, rows, table, verbose)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return spread(options)(run)

    return make


@_lists("connections")
def connections() -> None:
    """List connections: who, where, for how long, how much, and how they ended.

    `began` is in seconds since the capture began, `before` when the connection is older. A narrow
    terminal shows fewer columns.

    Examples:

        amqpsniff connections trace.pcapng
        amqpsniff connections trace.pcapng --errors -v
        amqpsniff connections trace.pcapng --from 12:00 --to 12:05 --format csv
    """


@_lists("channels")
def channels() -> None:
    """List channels: what they were used for, what was left open, and how they ended.

    A number that is opened again is a line of its own. `unsettled` counts deliveries without ack,
    `unconf` publishes without confirm: the most at once and, after a slash, those at the end. `?`
    means that the channel was open before the capture, or frames are missing. Other counts are of
    what was captured. A narrow terminal shows fewer columns.

    Examples:

        amqpsniff channels trace.pcapng --connection :43700
        amqpsniff channels trace.pcapng --where "closed_by = 'server'"
        amqpsniff channels trace.pcapng --where "unsettled_end > 0" -v
    """


@_lists("links")
def links() -> None:
    """List links of AMQP 1.0: where they lead, what went over them, credit, and how they ended.

    The arrow is the client's: `→` for a link on which it sends. `unsettled` is the most deliveries
    that waited for their settlement at once, and after a slash how many still did at the end.
    `starved` is how long the sender had to wait for credit. A connection of 0-9-1 has no links: its
    consumers are in `channels` and `topology`. A narrow terminal shows fewer columns.

    Examples:

        amqpsniff links trace.pcapng --queue orders
        amqpsniff links trace.pcapng --where "close_condition IS NOT NULL"
        amqpsniff links trace.pcapng --where "starved_ns > 1e9" -v
    """


def _show_text(source: Input, rows: Rows, table: str, verbose: bool) -> int:
    reading, output = Reading(source, rows), Output()
    wanted = reading.row_filter(rows, table)
    several = reading.several
    some = False
    for columns in _pieces(reading, wanted, table, verbose):
        some = True
        if verbose:
            output.lines(blocks(table, columns, output.paint))
        else:
            started, narrow = reading.started(), output.narrow
            output.show(grid(table, columns, started, several=several, narrow=narrow))
    if table == "connections" and rows == type(rows)(limit=rows.limit):
        from .render import tls_table

        passes = reading.passes
        tls_table.show(
            passes.encrypted,
            passes.totals,
            output,
            rows.limit,
            below=some,
            verbose=verbose,
        )
    reading.miss(wanted)
    return reading.exit_code


def _pieces(reading: Any, wanted: Any, table: str, verbose: bool) -> Iterator[Columns]:
    """The wanted rows in order, as columns; at most `MAX_LAID_OUT` at a time."""
    from amqpsniff.tables.values import values

    needed = None if verbose else columns_of(table)  # there may be very many rows
    held: Columns = {}
    rows = 0
    for chosen in reading.chosen(wanted, columns=needed, progress=True, shown=True):
        at = 0
        while at < chosen.num_rows:
            part = chosen.slice(at, MAX_LAID_OUT - rows)
            for name in part.schema.names:
                if name not in _TIMES:
                    held.setdefault(name, []).extend(values(part, name))
            at, rows = at + part.num_rows, rows + part.num_rows
            if rows == MAX_LAID_OUT:
                yield _in_order(table, held)
                held, rows = {}, 0
    if rows:
        yield _in_order(table, held)


_TIMES = frozenset(("start", "end"))
"""Not shown: the same moments in nanoseconds are."""


def _in_order(table: str, columns: Columns) -> Columns:
    """Rows by the time of their beginning; those from before the capture come first."""
    numbers, ids = columns[BEGINS[table]], columns["connection_id"]
    channels = columns.get("channel", numbers)
    times = zip(columns["start_ns"], numbers, ids, channels, strict=True)
    begins = [(start or 0, number or 0, id_, channel or 0) for start, number, id_, channel in times]
    if begins == sorted(begins):
        return columns
    order = sorted(range(len(begins)), key=begins.__getitem__)
    return {name: list(map(column.__getitem__, order)) for name, column in columns.items()}
