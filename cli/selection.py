"""Which rows of a table are wanted: the options `Scope` and `Rows`, applied to record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from amqpsniff.errors import FilterError, UsageError

from . import times

if TYPE_CHECKING:
    from amqpsniff.tables.query import Filter

    from .options import Scope

LASTING = ("connections", "channels")
"""Tables of what lasts: `--from` and `--to` choose the rows that reach into that time."""


class Selection:
    """Chooses rows of one table, batch by batch, until there are enough.

    `started` gives the time at which the capture began, null while that is not known; it is asked
    when the first batch comes. `kept` counts the rows chosen, `left` those that `--limit` leaves.
    """

    def __init__(self, rows: Scope, table: str, started: Callable[[], int | None]) -> None:
        from .options import Rows

        self.rows = rows
        self.table = table
        self.where = rows.where if isinstance(rows, Rows) else None
        self.left = rows.limit if isinstance(rows, Rows) else None
        self.kept = 0
        self._filter: Filter | None = None
        self._started = started
        (rows.connection or "").encode()  # Arrow says of what cannot be that it is no text
        if rows.connection == "":
            raise UsageError("--connection is empty; `amqpsniff connections` lists their ids")
        self._from, self._to = times.span(rows.from_, rows.to)
        if rows.channel is not None and table == "connections":
            raise UsageError("connections have no --channel; use channels, or --table channels")

    @property
    def done(self) -> bool:
        """Whether `--limit` is reached."""
        return self.left is not None and self.left <= 0

    def wants(self) -> Callable[[str, str, str], bool] | None:
        """Says of a connection's id, client and server whether it is wanted; None for all."""
        wanted = self.rows.connection
        if wanted is None:
            return None
        if ":" not in wanted:
            beginning = wanted.lower()
            return lambda connection_id, client, server: connection_id.startswith(beginning)
        if wanted.startswith(":"):
            return lambda connection_id, client, server: client.endswith(wanted)
        return lambda connection_id, client, server: client == wanted

    def span(self) -> tuple[int | None, int | None]:
        """The first nanosecond that is wanted, and the first that is not any more."""
        started = self._started() or 0
        from_ns = self._from(started) if self._from is not None else None
        return from_ns, self._to(started) if self._to is not None else None

    @property
    def chooses(self) -> bool:
        """Whether the options leave anything out, but by `--limit`."""
        from .options import Scope

        return self.where is not None or any(
            getattr(self.rows, field.name) is not None for field in fields(Scope)
        )

    @property
    def limits(self) -> bool:
        """Whether the options leave anything out, be it by `--limit`."""
        return self.left is not None or self.chooses

    @property
    def needs_all_columns(self) -> bool:
        """Whether any column may be asked for by `--where`."""
        return self.where is not None

    def of(self, batch: Any) -> Any:
        """The wanted rows of a batch, as a batch that may be empty."""
        for holds in self._masks():
            batch = batch.filter(holds(batch))
        if self.where is not None and batch.num_rows:
            batch = self._where(batch)
        if self.left is not None:
            batch = batch.slice(0, self.left)
            self.left -= batch.num_rows
        self.kept += batch.num_rows
        return batch

    def check(self) -> None:
        """Raise FilterError for an expression that cannot be evaluated, before anything is read."""
        if self.where is not None:
            from amqpsniff.tables.query import Filter
            from amqpsniff.tables.schema import schema_of

            try:
                self._filter = Filter(schema_of(self.table), self.where)
            except FilterError as error:
                raise FilterError(f"--where: {error}") from None

    def _where(self, batch: Any) -> Any:
        if self._filter is None:
            self.check()
        assert self._filter is not None
        try:
            return self._filter.of(batch)
        except FilterError as error:
            raise FilterError(f"--where: {error}") from None

    def _masks(self) -> Iterator[Callable[[Any], Any]]:
        """What rows must fulfil, cheap conditions first."""
        if self.rows.channel is not None:
            yield lambda rows: _compute().equal(rows.column("channel"), self.rows.channel)
        wanted = self.rows.connection
        if wanted is not None:
            yield lambda rows: _of_connection(rows, wanted)
        first, last = ("start_ns", "end_ns") if self.table in LASTING else ("ts_ns", "ts_ns")
        if self._from is not None:
            from_ns = self._from(self._started() or 0)
            yield lambda rows: _kept(_compute().greater_equal(rows.column(last), from_ns), last)
        if self._to is not None:
            to_ns = self._to(self._started() or 0)
            yield lambda rows: _kept(_compute().less(rows.column(first), to_ns), first)


def _compute() -> Any:
    """Arrow's functions, which take as long to import as a small capture to read."""
    import pyarrow.compute

    return pyarrow.compute


def _kept(mask: Any, name: str) -> Any:
    """The mask; a beginning or an end that is not known is outside the capture, so it holds."""
    return mask if name == "ts_ns" else _compute().fill_null(mask, True)


def _of_connection(rows: Any, wanted: str) -> Any:
    """Which rows are of a connection, named by its id or its client, in full or in part."""
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
