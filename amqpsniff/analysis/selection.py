"""Which part of the traffic is wanted, and the rows of a table that belong to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis import times
from amqpsniff.errors import FilterError, UsageError

if TYPE_CHECKING:
    from amqpsniff.tables.query import Filter

Started = Callable[[], int | None]
"""Gives the time at which the capture began in nanoseconds, None while that is not known."""

SPANNING = ("connections", "channels")
"""Tables whose rows last: `from_` and `to` choose the rows that reach into that time."""


@dataclass(frozen=True)
class Selection:
    """A part of the traffic. None leaves nothing out.

    Raises UsageError for a time that cannot be read, for times with nothing between them, and for
    an empty connection.

    Attributes:
        connection: A connection's id or the beginning of it, its client's `address:port`, or
            `:port`.
        channel: A channel's number.
        from_, to: Times: from the first on, before the second. Seconds since the capture began
            (`3.5`), `500ms`, `1m30s`, `12:00:00` (UTC, the day the capture began),
            `2026-01-31T12:00:00Z`, or seconds since 1970.
        where: A SQL expression over the columns of the table that is read.
        limit: Rows after which to stop.
    """

    connection: str | None = None
    channel: int | None = None
    from_: str | None = None
    to: str | None = None
    where: str | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        (self.connection or "").encode()  # of a lone surrogate Arrow says only that it is no text
        if self.connection == "":
            raise UsageError("--connection is empty; `amqpsniff connections` lists their ids")
        times.span(self.from_, self.to)

    def chooses(self) -> bool:
        """True if anything but `limit` leaves rows out."""
        return any(value is not None for name, value in vars(self).items() if name != "limit")

    def matches_connection(self) -> Callable[[str, str, str], bool] | None:
        """A test of a connection's id, client and server; None if every connection is wanted."""
        wanted = self.connection
        if wanted is None:
            return None
        if ":" not in wanted:
            beginning = wanted.lower()
            return lambda connection_id, client, server: connection_id.startswith(beginning)
        if wanted.startswith(":"):
            return lambda connection_id, client, server: client.endswith(wanted)
        return lambda connection_id, client, server: client == wanted

    def span(self, started: Started) -> tuple[int | None, int | None]:
        """The first nanosecond that is wanted and the first that no longer is; None for open."""
        start_ns = started() or 0
        first, last = times.span(self.from_, self.to)
        return (
            None if first is None else first(start_ns),
            None if last is None else last(start_ns),
        )


class RowFilter:
    """The rows of one table that a selection chooses, batch by batch.

    Raises FilterError for a `where` that cannot be evaluated, before anything is read, and
    UsageError for a `channel` of the table `connections`.

    Attributes:
        selection: The part that is wanted.
        table: The name of the table.
        kept: Rows chosen so far.
        left: Rows that `limit` still leaves; None without a limit.
    """

    def __init__(self, selection: Selection, table: str, started: Started) -> None:
        self.selection = selection
        self.table = table
        self.kept = 0
        self.left = selection.limit
        self._started = started
        if selection.channel is not None and table == "connections":
            raise UsageError("connections have no --channel; use channels, or --table channels")
        self._where: Filter | None = None
        if selection.where is not None:
            self._where = _expression(table, selection.where)

    @property
    def done(self) -> bool:
        """True once `limit` is reached."""
        return self.left is not None and self.left <= 0

    @property
    def needs_all_columns(self) -> bool:
        """True if `where` may use any column."""
        return self._where is not None

    def of(self, batch: Any) -> Any:
        """The wanted rows of a batch, as a batch that may be empty."""
        for holds in self._masks():
            batch = batch.filter(holds(batch))
        if self._where is not None and batch.num_rows:
            try:
                batch = self._where.of(batch)
            except FilterError as error:
                raise FilterError(f"--where: {error}") from None
        if self.left is not None:
            batch = batch.slice(0, self.left)
            self.left -= batch.num_rows
        self.kept += batch.num_rows
        return batch

    def _masks(self) -> Iterator[Callable[[Any], Any]]:
        """The conditions that rows must fulfil, cheap ones first."""
        wanted = self.selection
        if wanted.channel is not None:
            yield lambda rows: _compute().equal(rows.column("channel"), wanted.channel)
        if wanted.connection is not None:
            yield lambda rows: _of_connection(rows, wanted.connection or "")
        from_ns, to_ns = wanted.span(self._started) if wanted.from_ or wanted.to else (None, None)
        first, last = ("start_ns", "end_ns") if self.table in SPANNING else ("ts_ns", "ts_ns")
        if from_ns is not None:
            yield lambda rows: _known(_compute().greater_equal(rows.column(last), from_ns), last)
        if to_ns is not None:
            yield lambda rows: _known(_compute().less(rows.column(first), to_ns), first)


def no_connection(name: str, number: int) -> UsageError:
    """The error for a connection that is not among the `number` connections of a capture."""
    return UsageError(f"no connection `{name}` among {number}; `amqpsniff connections` lists them")


def _expression(table: str, where: str) -> Filter:
    from amqpsniff.tables.query import Filter
    from amqpsniff.tables.schema import schema_of

    try:
        return Filter(schema_of(table), where)
    except FilterError as error:
        raise FilterError(f"--where: {error}") from None


def _compute() -> Any:
    """Arrow's functions, which take as long to import as a small capture to read."""
    import pyarrow.compute

    return pyarrow.compute


def _known(mask: Any, name: str) -> Any:
    """The mask; a beginning or an end that is not known lies outside the capture, so it holds."""
    return mask if name == "ts_ns" else _compute().fill_null(mask, True)


def _of_connection(rows: Any, wanted: str) -> Any:
    """A mask of the rows of a connection, named by its id or its client, in full or in part."""
    import pyarrow as pa

    pc = _compute()

    def mask(name: str, test: Callable[[Any], Any]) -> Any:
        column = rows.column(name)
        if not pa.types.is_dictionary(column.type):
            return test(column)
        return pc.take(test(column.dictionary), column.indices)

    if ":" not in wanted:
        return mask("connection_id", lambda ids: pc.starts_with(ids, wanted.lower()))
    if wanted.startswith(":"):
        return mask("client", lambda names: pc.ends_with(names, wanted))
    return mask("client", lambda names: pc.equal(names, wanted))
