"""Event logs of tasks (`amqpsniff.session.event_logs`) in files, and their merge in order of time.

A task writes beside its rows, a row group at a time. The driver reads the files
in the order of time: each from when its first row was, and of those that are open about a row group
at a time. So memory is bounded on both sides, however much there is.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from amqpsniff.session.event_logs import ORDER, EventLog

from .encoding import integers
from .filesystem import Folder

if TYPE_CHECKING:
    import pyarrow as pa

Open = Callable[[str], IO[bytes]]

RISING = ("number", "seen_number", "message", "packet_number", "ts_ns", "seen_ns", "sent_ns")
"""Columns that grow or stay near one another: written as differences."""


@dataclass
class WrittenLog:
    """A file that a task has written, its number of rows, when the first one was, and the captures
    that numbers in it stand for.
    """

    name: str
    rows: int
    first_ns: int
    captures: list[str]


class EventLogFile(contextlib.ExitStack):
    """Writes a task's event log to a file of a folder, if it has rows; a context manager.

    `log` of a subclass is the log for the task. `columns` makes the columns of a row group.
    `written` describes the file at the end, None without rows.
    """

    log: EventLog

    def __init__(
        self,
        folder: Folder,
        name: str,
        columns: Callable[[Any], dict[str, pa.Array]],
    ) -> None:
        super().__init__()
        self.written: WrittenLog | None = None
        self._folder = folder
        self._name = name
        self._columns = columns
        self._writer: Any = None

    def add(self, events: EventLog) -> None:
        """Write the rows in the columns."""
        import pyarrow as pa

        columns = self._columns(events)
        schema = pa.schema(
            pa.field(name, column.type, nullable=not pa.types.is_int64(column.type))
            for name, column in columns.items()
        )
        batch = pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
        if self._writer is None:
            sink = self.enter_context(self._folder.create(self._name))
            self.written = WrittenLog(
                self._name, 0, batch.column("ts_ns")[0].as_py(), events.captures
            )
            self._writer = self._open(sink, batch.schema)
            self.callback(self._writer.close)
        self._writer.write_batch(batch)
        assert self.written is not None
        self.written.rows += batch.num_rows

    def _open(self, sink: Any, schema: pa.Schema) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        rising = [name for name in schema.names if name in RISING]
        return parquet.ParquetWriter(
            sink,
            schema,
            compression="lz4",  # half the time of zstd, and a hundredth of the captures' size more
            use_dictionary=[field.name for field in schema if not pa.types.is_int64(field.type)],
            column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            write_statistics=False,
        )


def number_columns(events: EventLog, names: Sequence[str]) -> dict[str, pa.Array]:
    """Times of the rows, and further columns of integers, without a copy."""
    return {name: integers(getattr(events, name).storage, events.rows) for name in [*ORDER, *names]}


def ordinals(first: int, count: int) -> pa.Array:
    """Numbers that rise by one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=first - 1)


class _Lane:
    """A file that is being read: `held` are rows that were read and wait for their time."""

    def __init__(
        self,
        task: int,
        written: WrittenLog,
        open_file: Open,
        ranks: Mapping[str, int],
        names: Sequence[str],
    ) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._task = task
        self._ranks = pa.array(
            [*(ranks.get(capture, -1) for capture in written.captures), -1], pa.int64()
        )
        self._names = [*ORDER, *names]
        self._total = written.rows
        self._rows = 0
        self._file = parquet.ParquetFile(open_file(written.name))
        self._groups = iter(range(self._file.num_row_groups))
        self.held = self._load()

    @property
    def has_more(self) -> bool:
        """True if there are rows that were not read."""
        return self._rows < self._total

    @property
    def last_ns(self) -> int:
        """The time of the last row held."""
        time: int = self.held["ts_ns"][-1].as_py()
        return time

    def fill(self, limit: int | None) -> bool:
        """Read rows beyond `limit`, the last time held; False if the file has no more."""
        import pyarrow as pa

        while self.has_more and (not self.held.num_rows or self.last_ns == limit):
            self.held = pa.concat_tables([self.held, self._load()])
        if not self.held.num_rows:
            self._file.close(force=True)
        return bool(self.held.num_rows)

    def _load(self) -> pa.Table:
        """One more row group."""
        import pyarrow as pa
        import pyarrow.compute as pc

        read = self._file.read_row_group(next(self._groups), columns=self._names)
        at = read.column_names.index("capture")
        last = pa.scalar(len(self._ranks) - 1)
        codes = pc.if_else(pc.less(read["capture"], 0), last, read["capture"])
        read = read.set_column(at, "capture", pc.take(self._ranks, codes))
        read = read.append_column("row", ordinals(self._rows, read.num_rows))
        self._rows += read.num_rows
        task = pa.repeat(pa.scalar(self._task, pa.int64()), read.num_rows)
        return read.append_column("task", task)

    def take(self, limit: int | None) -> pa.Table:
        """The rows held from before a time; None: all of them."""
        import pyarrow.compute as pc

        count = self.held.num_rows
        if limit is not None:
            count = pc.sum(pc.less(self.held["ts_ns"], limit)).as_py() or 0
        rows = self.held.slice(0, count)
        self.held = self.held.slice(count)
        return rows


def in_order(
    written: Sequence[WrittenLog], open_file: Open, captures: Iterable[str], names: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows of all files in time order, some at a time, with columns `task` and `row`.

    `names` are further columns of integers. `task` is the index in `written`.
    `captures` are all names, in the order that breaks ties.
    """
    import pyarrow as pa

    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(captures))}
    places = sorted(range(len(written)), key=lambda at: written[at].first_ns)
    waiting = deque((at, written[at]) for at in places)
    lanes: list[_Lane] = []
    while waiting or lanes:
        limit = min((lane.last_ns for lane in lanes if lane.has_more), default=None)
        opening = bool(waiting) and (limit is None or waiting[0][1].first_ns <= limit)
        limit = waiting[0][1].first_ns if opening else limit
        tables = [rows for rows in (lane.take(limit) for lane in lanes) if rows.num_rows]
        if len(tables) > 1:
            order = [(name, "ascending") for name in ORDER]
            yield pa.concat_tables(tables).sort_by(order)
        else:
            yield from tables
        if opening:
            lanes.append(_Lane(*waiting.popleft(), open_file, ranks, names))
        lanes = [lane for lane in lanes if lane.fill(None if opening else limit)]
