"""`amqpsniff connections`, `channels` and `links`: rows of things that last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis import times
from amqpsniff.analysis.in_full import Raw
from amqpsniff.analysis.top_rows import is_error
from amqpsniff.process_tuning import gc_paused
from amqpsniff.spec import given_name
from amqpsniff.units import BEFORE, UNKNOWN, count, duration, lasted, octets
from amqpsniff.wire_text import ends, harmless, named

from .export import write_rows
from .options import Input, Rows, spread
from .output import Output
from .reading import Reading
from .render.clock import date_and_time
from .render.grid import Grid, ended, or_none, short_id
from .render.text import NONE, Paint, Words
from .render.tree import tree

FORMATS = ("text", "ndjson", "csv")

Columns = dict[str, list[Any]]
"""Rows as the values of each column, by its name."""

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
    row_filter = reading.row_filter(rows, table)
    several = reading.several
    has_rows = False
    for columns in _pieces(reading, row_filter, table, verbose):
        has_rows = True
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
            below=has_rows,
            verbose=verbose,
        )
    reading.miss(row_filter)
    return reading.exit_code


def _pieces(reading: Any, row_filter: Any, table: str, verbose: bool) -> Iterator[Columns]:
    """The wanted rows in order, as columns; at most `MAX_LAID_OUT` at a time."""
    from amqpsniff.tables.values import values

    needed = None if verbose else columns_of(table)  # there may be very many rows
    held: Columns = {}
    rows = 0
    for chosen in reading.chosen(row_filter, columns=needed, progress=True, shown=True):
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


_WHOSE = frozenset(("connection_id", "client", "server"))


def grid(
    table: str,
    columns: Columns,
    start_ns: int | None,
    *,
    several: bool,
    narrow: bool,
) -> Grid:
    """The rows of a table, one a line; with `several` captures each says which it is of."""
    columns = columns | {_STARTED: [start_ns] * len(columns["client"])}
    headings = "|".join(heading for heading, *_ in _TABLES[table])
    styles = {"id": "connection", "client": "connection"}
    laid_out = Grid(("*capture|" if several else "") + "id|=client|" + headings, styles=styles)
    clients = _map_rows(named, columns["client"])
    if narrow:  # a port alone names no client among several hosts
        hosts = {(client or "").rpartition(":")[0] for client in columns["client"]}
        if len(hosts) == 1:
            clients = [f":{client.rpartition(':')[2]}" for client in clients]
    first_columns = [_map_rows(short_id, columns["connection_id"]), clients]
    if several:
        first_columns.insert(
            0, _map_rows(lambda path: harmless(PurePath(path or "").name), columns["capture"])
        )
    shown = [
        _map_rows(write, *map(columns.__getitem__, names)) for _, write, *names in _TABLES[table]
    ]
    laid_out.extend([*first_columns, *shown])
    return laid_out


def columns_of(table: str) -> list[str]:
    """The columns of a table that its lines need."""
    shown = (name for _, _, *names in _TABLES[table] for name in names if name != _STARTED)
    return list(dict.fromkeys(("capture", "connection_id", "client", BEGINS[table], *shown)))


def _map_rows(write: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    """`write` of each row of some columns, called once for rows that are alike."""
    if len(columns) == 1:
        (column,) = columns
        plain = write is named and None not in column and "" not in column
        if plain and "".join(column).isprintable():
            return column
        texts = {value: write(value) for value in set(column)}
    else:
        texts = {row: write(*row) for row in set(zip(*columns, strict=True))}
    if len(texts) == 1:
        return [*texts.values()] * len(columns[0])
    rows = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
    return list(map(texts.__getitem__, rows))


def _name(name: str | None, product: str | None, version: str | None) -> str:
    return named(given_name(name, " ".join(filter(None, (product, version)))))


def _began(capture_ns: int | None, start_ns: int | None, before: bool | None) -> str:
    """Its begin, in seconds since that of the capture."""
    if before:
        return BEFORE
    if start_ns is None or capture_ns is None:
        return UNKNOWN
    return times.seconds(start_ns - capture_ns)


def _began_in(capture_ns: int | None, start_ns: int | None, packet: int | None) -> str:
    return _began(capture_ns, start_ns, packet is None)


def _lasted(start_ns: int | None, end_ns: int | None) -> str:
    return duration(None if start_ns is None or end_ns is None else end_ns - start_ns)


def _time(ns: int | None) -> str:
    return NONE if ns == 0 else duration(ns)


def _opening(number: int, nth: int) -> str:
    return str(number) + (f" #{nth}" if nth > 1 else "")


def _max_and_last(maximum: int | None, end: int | None) -> str | Words:
    if maximum is None:
        return UNKNOWN
    text = f"{count(maximum)}/{count(end)}"
    return Words(text, "warning") if end else text


def _close_reason(code: int | None, method: str | None, text: str | None) -> str:
    if not is_error(code, text):
        return ""
    return harmless(text or "") + (f" on {method}" if method else "")


def _detached(
    by: str | None, refused: bool | None, suspended: bool | None, condition: str | None
) -> Words:
    """The end of a link: the side that detached it first, and a refusal."""
    if by is None:
        return Words("open")
    if refused:
        return Words(f"refused by {by}", "error")
    if by in ("fin", "rst"):
        return Words(by, "warning")
    verb = "left" if suspended else "closed"
    return Words(f"{verb} by {by}", "error" if condition else "")


def _condition(*parts: str | None) -> str:
    return harmless(": ".join(filter(None, parts)))


def _address(role: str, target: str | None, source: str | None) -> str:
    return named(target if role == "sender" else source)


_STARTED = "capture_start_ns"
"""An additional column: the time at which the capture began."""

_LASTED = (">???lasted", _lasted, "start_ns", "end_ns")
_CLOSED = ("closed", ended, "closed_by", "close_code", "close_text")
_WHY = ("~~why", _close_reason, "close_code", "close_method", "close_text")

_TABLES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "connections": (
        ("????server", named, "server"),
        ("*??vhost", named, "vhost"),
        ("*?????user", named, "user"),
        ("*??name", _name, "connection_name", "client_product", "client_version"),
        ("*??????product", partial(_name, None), "client_product", "client_version"),
        (">????began", _began, _STARTED, "start_ns", "midstream"),
        _LASTED,
        (">?????channels", count, "channels"),
        (">?published", count, "published"),
        (">?delivered", count, "delivered"),
        (">????acked", count, "acknowledged"),
        (">?????sent", octets, "client_bytes"),
        (">?????received", octets, "server_bytes"),
        (">????blocked", _time, "blocked_ns"),
        _CLOSED,
        _WHY,
    ),
    "channels": (
        (">ch", _opening, "channel", "incarnation"),
        (">????began", _began_in, _STARTED, "start_ns", "opened_packet_number"),
        _LASTED,
        ("??mode", lambda mode: mode or NONE, "mode"),
        (">?????prefetch", or_none(count), "prefetch_count"),
        (">?published", count, "published"),
        (">?????confirmed", count, "confirmed"),
        (">?????returned", count, "returned"),
        (">unconf", _max_and_last, "unconfirmed_max", "unconfirmed_end"),
        (">?delivered", count, "delivered"),
        (">?????acked", count, "acknowledged"),
        (">unsettled", _max_and_last, "unsettled_max", "unsettled_end"),
        (">??????consumers", count, "consumers"),
        _CLOSED,
        _WHY,
    ),
    "links": (
        (">ch", str, "channel"),
        ("way", lambda role: "→" if role == "sender" else "←", "role"),
        ("**=link", named, "link"),
        ("*address", _address, "role", "target", "source"),
        (">????began", _began_in, _STARTED, "start_ns", "attached_packet_number"),
        _LASTED,
        (">?deliveries", count, "deliveries"),
        (">?accepted", count, "accepted"),
        (">???rejected", count, "rejected"),
        (">???released", count, "released"),
        (">???modified", count, "modified"),
        (">unsettled", _max_and_last, "unsettled_max", "unsettled_end"),
        (">??credit", count, "credit_end"),
        (">????starved", lambda ns: _time(ns or 0), "starved_ns"),
        ("closed", _detached, "closed_by", "refused", "suspended", "close_condition"),
        ("~~why", _condition, "close_condition", "close_text"),
    ),
}
"""Of each table the columns of a line: heading, how it is written, and of what."""

BEGINS = {
    "connections": "first_packet_number",
    "channels": "opened_packet_number",
    "links": "attached_packet_number",
}
"""The column of the packet with which a row begins, by table."""


def blocks(table: str, columns: Columns, paint: Paint) -> Iterator[str]:
    """Each row in full, one field a line."""
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        place = ends(row["client"], row["server"])
        place += f" channel {row['channel']}" if table != "connections" else ""
        yield f"{paint('connection', row['connection_id'])} {place}"
        yield from tree(_fields(row), paint, 1)


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or name in _WHOSE:
            continue
        if name in ("start_ns", "end_ns"):
            fields[name.removesuffix("_ns")] = Raw(date_and_time(value))
        elif name.endswith("_ns"):
            fields[name.removesuffix("_ns")] = Raw(duration(value) if value else NONE)
        elif name.endswith("_bytes"):
            fields[name] = Raw(f"{count(value)} B")
        else:
            fields[name] = value
    if row["start_ns"] is not None and row["end_ns"] is not None:
        fields["lasted"] = Raw(lasted(row["start_ns"], row["end_ns"]))
    return fields
