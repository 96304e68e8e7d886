"""Sightings of tasks (`amqpsniff.session.sightings`) in files, and all of them as one again.

A task writes its sightings beside its rows, a row group at a time. Whoever brings tasks together
reads the files in the order of time: each from when its first sighting was, and of those that are
open about a row group at a time. So memory is bounded on both sides, however many messages there
are. Words and places of what was found are read afterwards, of those rows alone.
"""

from __future__ import annotations

import contextlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from amqpsniff.columns import NULL
from amqpsniff.findings import Finding, FindingLog
from amqpsniff.session.review import COLUMNS, Review, Seen
from amqpsniff.session.rules.publishing import REPEATED, repeat_words
from amqpsniff.session.rules.queueing import RESIDENCE, is_long, words
from amqpsniff.session.rules.requeueing import POISON, poison_words
from amqpsniff.session.sightings import NUMBERS, PLACES, TEXTS, Sightings

from .places import Folder

if TYPE_CHECKING:
    import pyarrow as pa

Open = Callable[[str], IO[bytes]]

_REPEATING = ["capture", "kind", "connection", "channel", *TEXTS[:3], *PLACES]


_PLACE_TYPES = {"place": "binary", "channel_number": "int32"}


@dataclass
class Sighted:
    """A file of sightings, its number of rows, and when the first one was."""

    name: str
    rows: int
    first_ns: int


class SightingsFile:
    """Writes what a task sees to a file of a folder, if it is anything; a context manager.

    `sightings` is what the task is to be given; `sighted` says at the end what there is, None for
    nothing.
    """

    def __init__(self, folder: Folder, name: str, seed: int) -> None:
        self.sightings = Sightings(seed, self.add)
        self.sighted: Sighted | None = None
        self._folder = folder
        self._name = name
        self._stack = contextlib.ExitStack()
        self._writer: Any = None

    def __enter__(self) -> SightingsFile:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._writer is not None:
            self._writer.close()
        self._stack.__exit__(*error)

    def add(self, sightings: Sightings) -> None:
        """Write what is in the columns."""
        import pyarrow as pa
        from pyarrow import parquet

        columns = _columns(sightings)
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        if self._writer is None:
            sink = self._stack.enter_context(self._folder.create(self._name))
            self.sighted = Sighted(self._name, 0, batch.column("ts_ns")[0].as_py())
            self._writer = parquet.ParquetWriter(
                sink,
                batch.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=_REPEATING,
                write_statistics=False,
            )
        self._writer.write_batch(batch)
        assert self.sighted is not None
        self.sighted.rows += batch.num_rows


def _columns(sightings: Sightings) -> dict[str, pa.Array]:
    """The columns of a row group."""
    import pyarrow as pa

    rows = sightings.rows
    columns = {}
    for name in NUMBERS:
        storage = bytes(memoryview(getattr(sightings, name).storage)[: 8 * rows])
        columns[name] = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(storage)])
    codes = [None if code < 0 else code for code in columns["capture"].to_pylist()]
    columns["capture"] = pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32()), pa.array(map(_octets, sightings.captures), pa.binary())
    ).cast(pa.binary())
    for name in TEXTS:
        kind = pa.binary() if name == "message_id" else pa.string()
        columns[name] = pa.array(getattr(sightings, name), kind)
    places: list[list[Any]] = [[None] * rows for _ in PLACES]
    for row, *place in sightings.places:
        for values, value in zip(places, place, strict=True):
            values[row] = value
    places[0] = [None if name is None else _octets(name) for name in places[0]]
    for name, values in zip(PLACES, places, strict=True):
        columns[name] = pa.array(values, _PLACE_TYPES.get(name, "string"))
    return columns


def _octets(capture: str) -> bytes:
    """The name of a capture, which need not be text."""
    return capture.encode(errors="surrogateescape")


# all files as one


class _Lane:
    """A file that is being read: `held` are rows that were read and wait for their time."""

    def __init__(self, task: int, sighted: Sighted, open_file: Open, ranks: pa.Array) -> None:
        from pyarrow import parquet

        self._task = task
        self._ranks = ranks
        self._file = parquet.ParquetFile(open_file(sighted.name))
        self._groups = deque(range(self._file.num_row_groups))
        self._row = 0
        self.held: Any = None
        self.load()

    @property
    def more(self) -> bool:
        """Whether there are row groups that were not read."""
        return bool(self._groups)

    def fill(self, limit: int | None) -> bool:
        """Have rows from after `limit`, the last time held; False: there are none at all."""
        while self.more and (not self.held.num_rows or self.last_ns == limit):
            self.load()
        if not self.held.num_rows:
            self._file.close(force=True)
        return bool(self.held.num_rows)

    @property
    def last_ns(self) -> int:
        """The time of the last row held."""
        time: int = self.held["ts_ns"][-1].as_py()
        return time

    def load(self) -> None:
        """Read one more row group."""
        import pyarrow as pa
        import pyarrow.compute as pc

        read = self._file.read_row_group(self._groups.popleft(), columns=NUMBERS)
        ranks = pc.index_in(read["capture"], value_set=self._ranks)
        at = read.column_names.index("capture")
        read = read.set_column(at, "capture", pc.fill_null(ranks, -1))
        rows = array("q", range(self._row, self._row + read.num_rows))
        self._row += read.num_rows
        tasks = array("q", [self._task]) * len(rows)
        for name, values in (("row", rows), ("task", tasks)):
            read = read.append_column(name, pa.array(values, pa.int64()))
        self.held = read if self.held is None else pa.concat_tables([self.held, read])

    def take(self, limit: int | None) -> pa.Table:
        """The rows held from before a time; None: all of them."""
        import pyarrow.compute as pc

        count = self.held.num_rows
        if limit is not None:
            count = pc.sum(pc.less(self.held["ts_ns"], limit)).as_py() or 0
        taken = self.held.slice(0, count)
        self.held = self.held.slice(count)
        return taken


def in_order(
    sighted: Sequence[Sighted], open_file: Open, captures: Iterable[str]
) -> Iterator[pa.Table]:
    """All sightings in the order of time, some at a time, with columns `task` and `row`.

    `task` is the place in `sighted`. `captures` are all names, in the order that breaks ties.
    """
    import pyarrow as pa

    ranks = pa.array(map(_octets, dict.fromkeys(captures)), pa.binary())
    places = sorted(range(len(sighted)), key=lambda at: sighted[at].first_ns)
    waiting = deque((at, sighted[at]) for at in places)
    lanes: list[_Lane] = []
    while waiting or lanes:
        limit = min((lane.last_ns for lane in lanes if lane.more), default=None)
        opening = bool(waiting) and (limit is None or waiting[0][1].first_ns <= limit)
        limit = waiting[0][1].first_ns if opening else limit
        taken = [one for one in (lane.take(limit) for lane in lanes) if one.num_rows]
        if len(taken) > 1:
            by = [(name, "ascending") for name in ("ts_ns", "capture", "number")]
            yield pa.concat_tables(taken).sort_by(by)
        else:
            yield from taken
        if opening:
            lanes.append(_Lane(*waiting.popleft(), open_file, ranks))
        lanes = [lane for lane in lanes if lane.fill(None if opening else limit)]


# what they show


def review_sightings(
    sighted: Sequence[Sighted], open_file: Open, captures: Iterable[str], log: FindingLog
) -> Review:
    """Add to a log what all sightings together show; gives what went over them."""
    review = Review()
    for table in in_order(sighted, open_file, captures):
        review.feed({name: _buffer(table[name]) for name in COLUMNS}, table.num_rows)
    for found in _worded(review, sighted, open_file):
        log.add(found)
    return review


def _buffer(column: pa.ChunkedArray) -> Any:
    """A column of integers as a buffer of them."""
    import pyarrow as pa

    chunk = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    begin = chunk.offset * 8
    return memoryview(chunk.buffers()[1])[begin : begin + 8 * len(chunk)].cast("q")


@dataclass
class _Verdict:
    """A finding that is not in words: it is about the channel of `seen`, and a sighting."""

    order: int
    code: str
    seen: Seen
    row: int
    number: int
    ts_ns: int
    count: int
    last: int
    word: Callable[[dict[str, Any]], str]


def _verdicts(seen: Seen) -> Iterator[_Verdict]:
    first = seen.repeated
    if first is not None:
        known = first.known
        yield _Verdict(
            first.order, REPEATED, seen, first.row, first.number, first.ts_ns,
            seen.repeats, max(first.number, seen.last_repeat),
            lambda texts: repeat_words(
                _text(texts["message_id"]), texts["exchange"], texts["routing_key"], known
            ),
        )  # fmt: skip
    again = seen.poisoned
    if again is not None:
        yield _Verdict(
            again.order, POISON, seen, again.row, again.number, again.ts_ns,
            seen.poisons, seen.last_poison,
            lambda texts: poison_words(
                again.kind, again.known, None if texts["route"] == NULL else texts["route"],
                texts["queue"], texts["message_id"],
            ),
        )  # fmt: skip
    if seen.longest is not None and is_long(seen):
        number, ts_ns, row, published = seen.longest
        yield _Verdict(
            seen.channel, RESIDENCE, seen, row, number, ts_ns, seen.queued, number,
            lambda texts: words(seen, texts["queue"], published),
        )  # fmt: skip


def _text(octets: bytes) -> str:
    return octets.decode(errors="replace")


def _worded(review: Review, sighted: Sequence[Sighted], open_file: Open) -> list[Finding]:
    """What a review found, in the order in which it was found."""
    told = [one for seen in review.seen.values() for one in _verdicts(seen)]
    told.sort(key=lambda one: one.order)
    rows: dict[int, set[int]] = {}
    for one in told:
        rows.setdefault(one.seen.task, set()).update((one.row, one.seen.channel))
    texts = {task: _read_rows(open_file(sighted[task].name), rows[task]) for task in sorted(rows)}
    found = []
    for one in told:
        place = texts[one.seen.task][one.seen.channel]
        found.append(
            Finding(
                one.code,
                one.word(texts[one.seen.task][one.row]),
                capture=place["place"].decode(errors="surrogateescape"),
                packet_number=one.number,
                ts_ns=None if one.ts_ns == NULL else one.ts_ns,
                connection_id=place["connection_id"],
                client=place["client"],
                server=place["server"],
                channel=place["channel_number"],
                count=one.count,
                last_packet_number=one.last,
            )
        )
    return found


def _read_rows(file: IO[bytes], rows: set[int]) -> dict[int, dict[str, Any]]:
    """Texts and places of some rows of a file, by row."""
    from pyarrow import parquet

    with parquet.ParquetFile(file) as opened:
        found: dict[int, dict[str, Any]] = {}
        wanted = deque(sorted(rows))
        begin = 0
        for group in range(opened.num_row_groups):
            end = begin + opened.metadata.row_group(group).num_rows
            here = []
            while wanted and wanted[0] < end:
                here.append(wanted.popleft())
            if here:
                read = opened.read_row_group(group, columns=["route", *TEXTS, *PLACES])
                values = read.take([row - begin for row in here]).to_pylist()
                found.update(zip(here, values, strict=True))
            begin = end
    return found
