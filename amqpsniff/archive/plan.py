"""The plan of a run: the files of an archive, and the conversations in them, as tasks.

Files are packed in time order, `TASK_BYTES` to a pack, or a part of it: small tasks come last, to
use idle cores. A conversation with all packets in one pack belongs to that pack's task. The others
are grouped by their first pack, so that later files change only the tasks of connections that
continue in them. There are two ways to read those:

straight: a task reads every file in which its conversations occur, and skips other packets.
dealt: the reader of a pack stores their packets by task (`dealing`), and the task reads these.

The second is chosen if it reads and writes less, and always if more than `STRAIGHT_READS` tasks
would read a file. A run that cannot store packets reads straight: then `MAX_READS` bounds the
number of tasks that read a file; beyond it tasks become larger, not more.

Every conversation is in one task, whole; that is all that rows depend on. A connection cannot be
divided, so the largest one is the longest task.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

from amqpsniff.units import octets as amount

from .encoding import integers, numbers
from .surveys import Surveyed

TASK_BYTES = 64 << 20
"""Captured bytes that one task decodes, about: half a second of work, against some 0.03 s that a
task costs by itself. Larger tasks leave cores idle at the end of a run."""

PARTS = (1, 1, 1, 2, 4)
"""Packs hold so many parts of `TASK_BYTES`, over and over: with packs that are alike cores are
idle at the end of a run for half a task on average. (40 files of 7 MB on two cores: the longer one
has 141 MB of 281 instead of 155.)"""

LIGHT = 32
"""Conversations that go from pack to pack are gathered with those of the next pack as long as all
have less than this part of `TASK_BYTES`: what a task costs by itself."""

READ_TWICE = 4
"""Factor by which tasks that share files are larger, since each reads whole files (of 300 MB
alone: 2.40 processor seconds as one task, 2.54 as two, 2.78 as four)."""

STRAIGHT_READS = 2
"""Tasks that may read one file before its packets are dealt out: with the survey a file is then
read three times, as one is that is dealt out as a whole."""

STAGE_TASKS = 4
"""A second stage costs as much as so many tasks read: cores are idle at the end of the first."""

RANGE_PART = 128
"""Files are dealt out to so many tasks that each has this part of `TASK_BYTES` of a file on
average, 512 kB: reading less at once costs object storage more than the bytes do, and the driver
knows each of these ranges."""

MAX_READS = 8
"""Tasks that read one file, at most, where nothing can be put aside. To pass over a packet costs
4 % of decoding it (measured: 3.1 GB/s against 120 MB/s), so the eighth reader brings the cost of an
archive to 1.3 times what one engine needs."""

PASSED = 25
"""Packets passed over that take as long as one that is decoded."""

LOOKED_UP = 1_000_000
"""Conversations of files that are looked up at a time: 30 MB."""

KEY_DIGITS = 20
"""Hex digits of a task's key."""


@dataclass(frozen=True)
class SourceFile:
    """A file that tasks read, and when it begins."""

    path: str
    size: int | None
    modified_ns: int | None
    begin_ns: int = 0

    @cached_property
    def digest(self) -> bytes:
        """A hash of itself: the same file may be read by thousands of tasks."""
        facts = json.dumps([self.path, self.size, self.modified_ns])
        return hashlib.blake2b(facts.encode(), digest_size=16).digest()


@dataclass
class Task:
    """A task's files, and its conversations in them.

    Attributes:
        sources: Its files, in the order of first times.
        skipped: Captured bytes of the files between each of them and the one before.
        marks: Marks of its conversations, or with `inverted` of all others; None for all.
        octets: Captured bytes of its own packets.
        read_bytes: Captured bytes of all packets that it reads.
        packets: Packets that it reads.
        bucket: Its number among the tasks with dealt packets; None for one that reads files.
    """

    sources: list[SourceFile]
    skipped: array[int] = field(default_factory=lambda: array("q"))
    marks: array[int] | None = None
    inverted: bool = False
    octets: int = 0
    read_bytes: int = 0
    packets: int = 0
    bucket: int | None = None

    def key(self, salt: str = "") -> str:
        """20 hex digits that are the same while files, share and `salt` (options) are."""
        facts = json.dumps([salt, len(self.sources), self.inverted])
        machine = hashlib.blake2b(facts.encode(), digest_size=KEY_DIGITS // 2)
        for source in self.sources:
            machine.update(source.digest)
        machine.update(self.skipped.tobytes())
        if self.marks is not None:
            machine.update(array("q", sorted(self.marks)).tobytes())
        return machine.hexdigest()

    @property
    def decodes(self) -> bool:
        """True unless it has no conversations, and only deals out those of others."""
        return self.marks is None or self.inverted or bool(self.marks)


@dataclass
class FilePack:
    """Files that are read together by a task, and whose packets it deals out: marks and their
    buckets by path.
    """

    task: Task
    marks: dict[str, array[int]] = field(default_factory=dict)
    buckets: dict[str, array[int]] = field(default_factory=dict)


@dataclass
class Plan:
    """The tasks that read an archive, the heaviest first, and findings about its files.

    Attributes:
        tasks: The tasks that decode packets.
        files: The files, by name.
        packs: The packets to deal out, if tasks have a `bucket`.
        why: The reason for this plan, as text.
    """

    tasks: list[Task] = field(default_factory=list)
    files: list[Surveyed] = field(default_factory=list)
    packs: list[FilePack] = field(default_factory=list)
    why: str = ""

    @property
    def octets(self) -> int:
        """Captured bytes of all packets, each once."""
        return sum(file.octets for file in self.files)

    @property
    def buckets(self) -> int:
        """The number of tasks whose packets are dealt out."""
        return sum(task.bucket is not None for task in self.tasks)

    @property
    def read_bytes(self) -> int:
        """Captured bytes of files that are read, by those too that only deal out."""
        readers = [task for task in self.tasks if task.bucket is None]
        readers += [pack.task for pack in self.packs if not pack.task.decodes]
        return sum(task.read_bytes for task in readers)


def make_plan(
    files: Sequence[Surveyed],
    *,
    task_bytes: int = TASK_BYTES,
    max_reads: int = MAX_READS,
    deals: bool = False,
) -> Plan:
    """A plan for these files, in whatever order they are listed; it `deals` where that is less."""
    ordered = sorted(files, key=lambda file: file.path)
    readable = [file for file in ordered if file.error is None and file.packets]
    times = _in_time(readable)
    planning = _Planning([readable[at] for _, at in times], [time for time, _ in times], task_bytes)
    plan = planning.dealt() if deals and planning.deals else planning.straight(max_reads)
    plan.tasks.sort(key=lambda task: -task.octets - task.read_bytes // PASSED)
    plan.files = ordered
    return plan


def _in_time(files: Sequence[Surveyed]) -> list[tuple[int, int]]:
    """(time, index) in the order of first times; a file without one stays behind the one before."""
    times: list[tuple[int, int]] = []
    time = -(2**63)
    for at, file in enumerate(files):
        time = time if file.first_ns is None else file.first_ns
        times.append((time, at))
    return sorted(times)


def _packs(files: Sequence[Surveyed], task_bytes: int) -> list[int]:
    packs: list[int] = []
    pack, held = 0, 0
    for file in files:
        if held and held + file.octets > task_bytes // PARTS[pack % len(PARTS)]:
            pack, held = pack + 1, 0
        held += file.octets
        packs.append(pack)
    return packs


class _Family(NamedTuple):
    """Conversations that begin in packs side by side, from `first` to `last` pack, in `parts`."""

    first: int
    last: int
    octets: int
    conversations: int
    parts: int = 1

    def with_next(self, other: _Family) -> _Family:
        """Both together."""
        return _Family(
            self.first,
            max(self.last, other.last),
            self.octets + other.octets,
            self.conversations + other.conversations,
        )

    def divided(self, part_bytes: int, max_parts: int) -> _Family:
        """The family in parts of about this size, at most `max_parts`."""
        parts = _parts(self.octets, part_bytes, min(max_parts, self.conversations))
        return self._replace(parts=parts)


class _Planning:
    """Files in time order, with `times`, and the conversations that continue in other packs.

    Attributes:
        sources: The files, in the form of tasks.
        begins: Captured bytes of all files before each, and of all.
        deals: True to deal out packets, if the run can.
        why: The reason for it, as text.
    """

    def __init__(self, files: Sequence[Surveyed], times: Sequence[int], task_bytes: int) -> None:
        self.files = files
        self.sources = [
            SourceFile(file.path, file.size, file.modified_ns, time)
            for file, time in zip(files, times, strict=True)
        ]
        self.begins = [*accumulate((file.octets for file in files), initial=0)]
        self.task_bytes = task_bytes
        self.large = READ_TWICE * task_bytes
        packs = _packs(files, task_bytes)
        self.members = [list(group) for _, group in groupby(range(len(files)), packs.__getitem__)]
        self.spans = _Spans(files, packs)
        self._choose()

    def _choose(self) -> None:
        octets = [sum(self.files[at].octets for at in members) for members in self.members]
        families = self._bounded(MAX_READS)
        readers = _readers(families, len(self.members))
        for pack, own in self.spans.own.items():
            readers[pack] += len(self._shares(pack, own, MAX_READS))
        reads = max(readers, default=0)
        crossing = sum(family.octets for family in families)
        straight = sum(map(int.__mul__, readers, octets))
        dealt = sum(octets) + 2 * crossing + STAGE_TASKS * self.task_bytes
        self.deals = reads > STRAIGHT_READS or straight > dealt
        manner = "dealt out by conversation" if self.deals else "read straight"
        if reads <= 1 and not crossing:
            self.why = f"{manner}: no conversation goes on in another pack of files"
            return
        self.why = (
            f"{manner}: {amount(crossing)} of {amount(sum(octets))} belong to conversations that "
            f"go on in other packs of files; read straight, tasks would read {amount(straight)}, a "
            f"file {reads} times at most; dealt out, {amount(dealt)} would be read and written"
        )

    def straight(self, max_reads: int) -> Plan:
        """Every task reads the files of its conversations."""
        tasks = [task for _, task in self._local_tasks(max_reads)]
        return Plan([*tasks, *self._gathered(self._bounded(max_reads))], why=self.why)

    def dealt(self) -> Plan:
        """Read packs once; deal out conversations that continue elsewhere, and large packs."""
        self.spans.move(pack for pack, own in self.spans.own.items() if own > self.large)
        tasks = self._gathered(
            [self._finely(family) for family in self._families()], self.task_bytes // 2
        )
        for bucket, task in enumerate(tasks):
            task.bucket, task.read_bytes = bucket, task.octets
        local = dict(self._local_tasks(1))
        packs: dict[int, FilePack] = {}
        for at, marks, buckets in self.spans.dealt():
            number = self.spans.packs[at]
            pack = packs.get(number)
            if pack is None:
                task = local.get(number) or self._task(self.members[number], array("q"), False, 0)
                pack = packs[number] = FilePack(task)
            path = self.files[at].path
            pack.marks[path], pack.buckets[path] = marks, buckets
        return Plan([*tasks, *local.values()], packs=list(packs.values()), why=self.why)

    def _families(self, width: int = 1) -> list[_Family]:
        """Conversations by the packs in which they begin, `width` of them to a family; families
        with few bytes that are side by side are one.
        """
        groups: dict[int, _Family] = {}
        for begun in self.spans.begun():
            family = _Family(*begun)
            group = family.first // width
            groups[group] = groups[group].with_next(family) if group in groups else family
        families: list[_Family] = []
        group_bytes = 0
        for family in groups.values():
            group_bytes += family.octets
            if families and group_bytes <= self.task_bytes // LIGHT:
                families[-1] = families[-1].with_next(family)
            else:
                families.append(family)
                group_bytes = family.octets
        return families

    def _bounded(self, max_reads: int) -> list[_Family]:
        """Divide families so that no pack has more readers than allowed: fewer parts first, then
        larger families.
        """
        width = 1
        while True:
            families = self._families(width)
            max_parts = max_reads
            while max_parts:
                divided = [family.divided(self.large, max_parts) for family in families]
                if max(_readers(divided, len(self.members)), default=0) <= max_reads:
                    return divided
                max_parts //= 2
            width *= 2

    def _finely(self, family: _Family) -> _Family:
        """A family in parts of `task_bytes`, as long as each has enough of a file."""
        files = sum(map(len, self.members[family.first : family.last + 1]))
        max_parts = family.octets * RANGE_PART // (files * self.task_bytes)
        return family.divided(self.task_bytes, max(max_parts, 1))

    def _local_tasks(self, max_reads: int) -> Iterator[tuple[int, Task]]:
        """(pack, task) of the conversations that stay in a pack."""
        crossing_marks = self.spans.crossing_marks()
        for pack, members in enumerate(self.members):
            own = self.spans.own.get(pack, 0)
            crossing = crossing_marks.get(pack)
            shares = self._shares(pack, own, max_reads)
            if len(shares) > 1:
                for share in shares:
                    marks = array("q", sorted(mark for mark, _ in share))
                    octets = sum(size for _, size in share)
                    yield pack, self._task(members, marks, False, octets)
            elif shares or crossing is None:
                yield pack, self._task(members, crossing, crossing is not None, own)

    def _shares(self, pack: int, own: int, max_reads: int) -> list[list[tuple[int, int]]]:
        """The conversations that stay in a pack, by part; a single part does not list them."""
        parts = _parts(own, self.large, max_reads)
        if parts == 1:
            return [[]] if own else []
        octets = sum(self.files[at].octets for at in self.members[pack])
        return _even_shares(self.spans.staying_in(pack), parts, octets)

    def _gathered(self, families: list[_Family], heavy: int | None = None) -> list[Task]:
        """Tasks of the conversations that go from pack to pack."""
        parts = self.spans.gather(families, heavy)
        return [self._task(members, marks, False, octets) for marks, members, octets in parts]

    def _task(
        self, members: Sequence[int], marks: array[int] | None, inverted: bool, octets: int
    ) -> Task:
        between = (self.begins[at] - self.begins[before + 1] for before, at in pairwise(members))
        return Task(
            [self.sources[at] for at in members],
            array("q", [0, *between]),
            marks,
            inverted,
            octets,
            read_bytes=sum(self.files[at].octets for at in members),
            packets=sum(self.files[at].packets for at in members),
        )


class _Spans:
    """The files of conversations, in Arrow, for there are many.

    Attributes:
        packs: The pack of each file.
        crossing, staying: (mark, first, last, bytes) of conversations that occur in several packs
            and in one, first and last pack.
        own: Bytes of conversations that stay, by pack.
    """

    def __init__(self, files: Sequence[Surveyed], packs: list[int]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self.packs = packs
        self._marks = [integers(file.marks) for file in files]  # as they are, not copied
        repeated = [
            pa.repeat(pa.scalar(pack, pa.int32()), len(marks))
            for pack, marks in zip(packs, self._marks, strict=True)
        ]
        octets = [integers(file.mark_bytes) for file in files]
        columns = [
            pa.chunked_array(self._marks, pa.int64()),
            pa.chunked_array(repeated, pa.int32()),
            pa.chunked_array(octets, pa.int64()),
        ]
        rows = pa.Table.from_arrays(columns, names=["mark", "pack", "bytes"])
        grouped = rows.group_by("mark").aggregate(
            [("pack", "min"), ("pack", "max"), ("bytes", "sum")]
        )
        grouped = grouped.rename_columns(["mark", "first", "last", "bytes"])
        self._divide(grouped, pc.not_equal(grouped["first"], grouped["last"]))

    def _divide(self, conversations: Any, crosses: Any) -> None:
        import pyarrow.compute as pc

        self.crossing = conversations.filter(crosses)
        self.staying = conversations.filter(pc.invert(crosses))
        own = self.staying.group_by("first").aggregate([("bytes", "sum")])
        columns = [own[name].to_pylist() for name in ("first", "bytes_sum")]
        self.own = dict(zip(*columns, strict=True))

    def move(self, packs: Iterable[int]) -> None:
        """Treat the conversations that stay in these packs like ones that continue elsewhere."""
        import pyarrow as pa
        import pyarrow.compute as pc

        large = pa.array(packs, pa.int32())
        everything = pa.concat_tables([self.crossing, self.staying])
        crosses = pc.not_equal(everything["first"], everything["last"])
        self._divide(everything, pc.or_(crosses, pc.is_in(everything["first"], value_set=large)))

    def begun(self) -> list[tuple[int, int, int, int]]:
        """(first pack, last pack of any, bytes, number) of conversations that go from pack to pack,
        by first pack.
        """
        facts = [("last", "max"), ("bytes", "sum"), ("mark", "count")]
        conversations = self.crossing.group_by("first").aggregate(facts)
        names = ("first", *("_".join(fact) for fact in facts))
        columns = [conversations[name].to_pylist() for name in names]
        return sorted(zip(*columns, strict=True))

    def staying_in(self, pack: int) -> list[tuple[int, int]]:
        """(mark, bytes) of the conversations that stay in a pack."""
        import pyarrow.compute as pc

        chosen = self.staying.filter(pc.equal(self.staying["first"], pack))
        return list(zip(chosen["mark"].to_pylist(), chosen["bytes"].to_pylist(), strict=True))

    def crossing_marks(self) -> dict[int, array[int]]:
        """Marks of conversations in a pack that continue elsewhere, by pack."""
        import pyarrow as pa

        by_pack = groupby(self._occurrences(), lambda row: self.packs[row[0]])
        return {
            pack: numbers(pa.chunked_array([marks for _, marks, _ in group]).unique().sort())
            for pack, group in by_pack
        }

    def gather(
        self, families: list[_Family], heavy: int | None
    ) -> Iterator[tuple[array[int], Sequence[int], int]]:
        """(marks, files, bytes) of the parts of families.

        Parts are by marks, so that new conversations change few of them. But conversations with
        more bytes than `heavy`, and than half of what a part has on average, are alone.
        """
        import pyarrow.compute as pc

        if not families:
            return
        first, marks, octets = (self.crossing[name] for name in ("first", "mark", "bytes"))
        begins = accumulate((family.parts for family in families), initial=0)
        bases, masks, limits = array("q"), array("q"), array("q")  # by first pack
        ends = [family.first for family in families[1:]] + [len(self.packs)]
        for family, base, end in zip(families, begins, ends, strict=False):
            half = max(heavy or 0, family.octets // (2 * family.parts))
            for column, value in ((bases, base), (masks, family.parts - 1), (limits, half)):
                column.extend(array("q", [value]) * (end - len(column)))
        part = pc.bit_wise_and(marks, pc.take(integers(masks), first))
        part = pc.add(part, pc.take(integers(bases), first))
        if heavy is not None:  # by the mark: a number that no part has
            alone = pc.greater(octets, pc.take(integers(limits), first))
            part = pc.if_else(alone, pc.subtract(-1, marks), part)
        self.crossing = self.crossing.append_column("part", part)
        self._parts = pc.unique(part).sort()
        members: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
        for at, _, places in self._occurrences():
            for number in pc.unique(self.crossing["part"].take(places)).to_pylist():
                members[number].append(at)
        facts = [("mark", "list"), ("bytes", "sum")]
        parts = self.crossing.sort_by("mark").group_by("part", use_threads=False).aggregate(facts)
        columns = parts.sort_by("part").select(["part", "mark_list", "bytes_sum"]).columns
        for number, own, size in zip(*columns, strict=True):
            yield numbers(own.values), members[number.as_py()], size.as_py()

    def dealt(self) -> Iterator[tuple[int, array[int], array[int]]]:
        """(file, marks, buckets) of the packets to deal out: a bucket is a part, in their order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        buckets = pc.index_in(self.crossing["part"], value_set=self._parts).cast(pa.int64())
        for at, marks, places in self._occurrences():
            yield at, numbers(marks), numbers(buckets.take(places))

    def _occurrences(self) -> Iterator[tuple[int, Any, Any]]:
        """(file, marks, rows of `crossing`) of conversations that continue elsewhere, by file.

        They are looked up for some files at a time, to bound memory.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        all_marks = self.crossing["mark"]
        batch_size = max(len(all_marks), LOOKED_UP)
        begin = 0
        while begin < len(self._marks):
            held, end = 0, begin
            while end < len(self._marks) and (held < batch_size or end == begin):
                held += len(self._marks[end])
                end += 1
            chunk = pa.chunked_array(self._marks[begin:end], pa.int64())
            found = pc.index_in(chunk, value_set=all_marks)
            held = 0
            for at in range(begin, end):
                marks = self._marks[at]
                places = found.slice(held, len(marks))
                held += len(marks)
                crossing = marks.filter(places.is_valid())
                if len(crossing):
                    yield at, crossing, places.drop_null()
            begin = end


def _even_shares(
    marks: list[tuple[int, int]], parts: int, read_bytes: int
) -> list[list[tuple[int, int]]]:
    """Divide conversations into parts of about equal bytes.

    The conversations left over by a large one get their own part only if they are more work than
    the packets that this part has to skip.
    """
    shares: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
    loads = [0] * parts
    for mark, octets in sorted(marks, key=lambda pair: (-pair[1], pair[0])):
        smallest = loads.index(min(loads))
        shares[smallest].append((mark, octets))
        loads[smallest] += octets
    order = sorted(range(parts), key=lambda part: -loads[part])
    heavy = [part for part in order if loads[part] * PASSED > read_bytes] or order[:1]
    for part in order[len(heavy) :]:
        shares[heavy[-1]] += shares[part]
    return [shares[part] for part in heavy]


def _readers(families: list[_Family], packs: int) -> list[int]:
    """The number of tasks that read each pack."""
    changes = [0] * (packs + 1)
    for family in families:
        changes[family.first] += family.parts
        changes[family.last + 1] -= family.parts
    return list(accumulate(changes))[:packs]


def _parts(octets: int, task_bytes: int, max_parts: int) -> int:
    """Number of tasks for these bytes: a power of 2, so that growth seldom changes it."""
    parts = 1
    while 2 * parts <= max_parts and octets > parts * task_bytes:
        parts *= 2
    return parts
