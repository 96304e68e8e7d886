"""One task in another process: its specification, its result, and the Parquet files it writes.

The result is written last, so a task that was killed has left nothing that counts. Files are named
by the task's key: a task that runs twice writes the same files.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field
from typing import Any, NamedTuple

from amqpsniff.capture.formats import is_remote
from amqpsniff.findings import Finding, Records
from amqpsniff.options import Options
from amqpsniff.session.event_logs import ROWS

from .dealing import Deal, Dealt, Objects, Parts
from .encoding import pack, unpack
from .filesystem import Folder, Opener
from .linking import UNLINKED, LinkLogFile, with_ordinals
from .message_logs import MessageLogFile
from .ordered_merge import WrittenLog
from .plan import Task
from .prefetch import prefetched
from .task import TaskRun

RESULTS = "_work/tasks"

RUNNING = "_work/running"

HEARTBEAT_SECONDS = 0.5
"""Time between two heartbeats of a task."""

SIGHTINGS = "_work/sightings"

LINKABLES = "_work/linkables"

NO_DATE = "1970-01-01"
"""The date of rows without a time. Hive's name for null is no date to pandas."""

MAX_DAYS = 366
"""Days of one task that have files of their own in each table; the clock of a capture may say
anything. Rows of further days stand with those that have no date."""

MAX_WAITING = 4
"""Batches of rows that wait for the thread that writes them, at most: some 10 MB each."""

MAX_OPEN = 256
"""Files that are held open at a time, of the 1,024 that a process usually may. The one that was not
written to for the longest time is closed; rows that are its after all go to another file."""

TIMES = dict.fromkeys(("frames", "messages"), "ts_ns") | dict.fromkeys(
    ("connections", "channels", "links"), "start_ns"
)
"""The column of each table that says which day a row is of."""


@dataclass
class TaskSpec:
    """A task with all data to do it in another process, which writes to `folder`.

    `seed` is that of sightings.

    With `links` messages wait in `linking.UNLINKED`, together with their link records. `columns`
    are those of tables with other than the usual columns. Event logs have row groups of
    `held_rows`, which are read at once.

    `deal` has the packets to deal out to others, `parts` the packets dealt out to it.

    With `beside` a thread continues to decode while rows are written: for a task that is longer
    than its core's share of the work, when other cores are idle.
    """

    task: Task
    key: str
    base: str
    options: Options
    tables: tuple[str, ...]
    folder: Folder
    beside: bool = False
    seed: int = 0
    links: bool = False
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    held_rows: int = ROWS
    deal: Deal | None = None
    parts: Parts | None = None
    opener: Opener | None = None


@dataclass
class TaskResult:
    """The result of a task: files and rows by table, findings of its connections, files it lost.

    `base` is the key without TLS secrets, `encrypted` the number of TLS conversations: without any,
    the result is valid for all TLS secrets. `dealt_bytes` counts the bytes of packets dealt out to
    it, `written_bytes` those of its files.
    """

    key: str
    base: str = ""
    seed: int = 0
    encrypted: int = 0
    files: dict[str, list[str]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    connections: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    lost: list[Finding] = field(default_factory=list)
    records: Records = field(default_factory=Records)
    sighted: WrittenLog | None = None
    linkable: WrittenLog | None = None
    dealt_bytes: int = 0
    written_bytes: int = 0

    @property
    def names(self) -> list[str]:
        """Its files; the result counts if all are there."""
        rows = [name for names in self.files.values() for name in names]
        return rows + [log.name for log in self.event_logs]

    @property
    def event_logs(self) -> list[WrittenLog]:
        """Its files for the stages that bring tasks together."""
        return [log for log in (self.sighted, self.linkable) if log is not None]

    @classmethod
    def of(cls, key: str, run: TaskRun) -> TaskResult:
        """The result of a finished run, without its files and rows."""
        return cls(
            key,
            encrypted=run.totals.encrypted,
            connections=run.totals.connections,
            counters={name: run.totals.counters.get(name, 0) for name in ("segments", "cut")},
            found=run.found,
            lost=run.lost,
            records=run.records,
        )

    @property
    def place(self) -> str:
        """The name of its file."""
        return f"{RESULTS}/{self.key}.result"

    def to_bytes(self) -> bytes:
        """Itself, packed."""
        facts = vars(self) | {"records": self.records.plain()}
        for name in ("sighted", "linkable"):
            facts[name] = facts[name] and astuple(facts[name])
        return pack(facts, "found", "lost")

    @classmethod
    def from_bytes(cls, octets: bytes | None) -> TaskResult:
        """The opposite of `to_bytes`; raises ValueError for other or damaged bytes."""
        facts = unpack(octets, "found", "lost")
        for name in ("sighted", "linkable"):
            facts[name] = facts[name] and WrittenLog(*facts[name])
        facts["records"] = Records.of(facts["records"])
        return cls(**facts)


class Done(NamedTuple):
    """The end of a task: its key, its result as bytes (empty if it only deals out), the files that
    it could not read, and the packets that it dealt out to others.
    """

    key: str
    result: bytes
    lost: list[Finding]
    dealt: Dealt


class Heartbeat:
    """A small file of a task: the part that is done (1: all), its rows, its findings.

    Call it with packets read and rows made. It writes now and then on this machine, where that
    costs nothing to speak of. Elsewhere a task counts when it is `done`.
    """

    def __init__(self, folder: Folder, key: str, packets: int) -> None:
        self._folder = folder
        self._name = f"{RUNNING}/{key}.json"
        self._packets = packets
        self._next = time.monotonic() + HEARTBEAT_SECONDS
        self._enabled = packets > 0 and not is_remote(folder.name)

    def __call__(self, packets: int, rows: int) -> None:
        """Write the file when the last one is old."""
        if self._enabled and time.monotonic() >= self._next:
            self.write(min(packets / self._packets, 0.9999), rows)
            self._next = time.monotonic() + HEARTBEAT_SECONDS

    def write(self, part: float, rows: int, findings: int = 0) -> None:
        """Write the file."""
        self._folder.write(self._name, json.dumps([part, rows, findings]).encode())


def carry_out(spec: TaskSpec) -> Done:
    """Do a task and write its rows and its result; a task that only deals out has no result."""
    folder = spec.folder
    objects = Objects(spec.deal, folder, spec.options.ports or None) if spec.deal else None
    tables = [table for table in spec.tables if table != "findings"]
    rows = dict.fromkeys(tables, 0)
    heartbeat = Heartbeat(folder, spec.key, spec.task.packets)
    seen = linkables = None
    if "findings" in spec.tables:
        seen = MessageLogFile(folder, f"{SIGHTINGS}/{spec.key}.parquet", spec.seed)
    if spec.links:
        linkables = LinkLogFile(folder, f"{LINKABLES}/{spec.key}.parquet", spec.seed)
    run = TaskRun(
        spec.task, spec.options, spec.tables, columns=spec.columns, encoded=True,
        opener=spec.opener,
        watch=lambda packets: heartbeat(packets, sum(rows.values())),
        sightings=seen.log if seen else None, linkables=linkables.log if linkables else None,
        parts=spec.parts, objects=objects,
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        if objects is not None:
            stack.enter_context(objects)
        for log_file in filter(None, (seen, linkables)):
            log_file.log.most = min(log_file.log.most, spec.held_rows)
            stack.enter_context(log_file)
        places = {"messages": UNLINKED} if spec.links else {}
        days = _Days(folder, spec.key, stack, places)
        batches = run.batches()
        if spec.beside:
            pool = ThreadPoolExecutor(1)
            stack.callback(pool.shutdown, cancel_futures=True)
            batches = prefetched(batches, pool, MAX_WAITING)
        for table, batch in batches:
            waits = table in places
            days.add(table, with_ordinals(batch, rows[table]) if waits else batch)
            rows[table] += batch.num_rows
        files = days.close()
    dealt = objects.dealt if objects else {}
    if not spec.key:
        return Done("", b"", run.lost, dealt)
    result = TaskResult.of(spec.key, run)
    result.base, result.seed = spec.base, spec.seed
    result.sighted = seen.written if seen else None
    result.linkable = linkables.written if linkables else None
    result.rows, result.files, result.written_bytes = rows, files, days.written_bytes
    result.dealt_bytes = spec.parts.octets if spec.parts else 0
    octets = result.to_bytes()
    folder.write(result.place, octets)
    heartbeat.write(1, sum(rows.values()), len(result.found))
    return Done(spec.key, octets, result.lost, dealt)


class _Days:
    """Parquet files by table and day; `places` are folders of tables that wait elsewhere."""

    def __init__(
        self, folder: Folder, key: str, stack: contextlib.ExitStack, places: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._key = key
        self._stack = stack
        self._places = places
        self._open: dict[tuple[str, str], tuple[Any, Any, contextlib.ExitStack]] = {}
        self._begun: Counter[tuple[str, str]] = Counter()
        self._names: dict[str, list[str]] = {}
        self.written_bytes = 0

    def add(self, table: str, batch: Any) -> None:
        """Write rows to the files of their days."""
        for day, rows in by_day(batch, TIMES[table]):
            self._writer(table, day, rows.schema).add(rows)

    def close(self) -> dict[str, list[str]]:
        """Finish all files; their names by table."""
        for place in list(self._open):
            self._finish(place)
        return self._names

    def _writer(self, table: str, day: str, schema: Any) -> Any:
        place = table, day
        if place not in self._open and self._begun.total() >= MAX_DAYS * len(TIMES):
            place = table, NO_DATE
        if place not in self._open and len(self._open) >= MAX_OPEN:
            self._finish(next(iter(self._open)))
        opened = self._open.pop(place, None) or self._begin(place, schema)
        self._open[place] = opened  # the last one that was used
        return opened[0]

    def _begin(self, place: tuple[str, str], schema: Any) -> tuple[Any, Any, contextlib.ExitStack]:
        from amqpsniff.tables.export import ParquetRows, without_nulls
        from amqpsniff.tables.schema import IN_EVERY_ROW

        table, day = place
        suffix = f"-{self._begun[place]}" if self._begun[place] else ""
        self._begun[place] += 1
        folder = self._places.get(table, table)
        name = f"{folder}/capture_date={day}/{self._key}{suffix}.parquet"
        self._names.setdefault(table, []).append(name)
        stack = self._stack.enter_context(contextlib.ExitStack())
        sink = stack.enter_context(self._folder.create(name))
        return ParquetRows(sink, without_nulls(schema, IN_EVERY_ROW.get(table, ()))), sink, stack

    def _finish(self, place: tuple[str, str]) -> None:
        writer, sink, stack = self._open.pop(place)
        writer.close()
        self.written_bytes += sink.tell()
        stack.close()


def by_day(batch: Any, column: str) -> Sequence[tuple[str, Any]]:
    """The rows of a batch by the date of their time; those of none have `NO_DATE`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = batch.column(column).cast(pa.timestamp("ns")).cast(pa.date32())
    dates = days.unique()
    found = dates.to_pylist() or [None]
    if len(found) == 1:
        return [(str(found[0] or NO_DATE), batch)]
    places = pc.index_in(days, value_set=dates)
    return [
        (str(day or NO_DATE), batch.filter(pc.equal(places, at))) for at, day in enumerate(found)
    ]
