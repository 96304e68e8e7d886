"""Who reads what: the files of an archive, and the conversations in them, as tasks.

Files stand in the order of time and are packed in that order, `TASK_BYTES` to a pack, or a part
of it: small tasks come last and fill what cores have left. A
conversation whose packets are all in one pack belongs to that pack's tasks. One that goes on in
another pack belongs to a task that reads every file in which its conversations occur: these are
gathered by the pack they begin in, so that files which come later change the tasks of connections
that go on in them, and no others.

Every conversation is in one task, whole; that is all that rows depend on. How many tasks read a
file is bounded by `MAX_READS`: beyond it tasks become larger, not more. A connection cannot be
divided, so the largest one is the longest task.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from .survey import Surveyed, integers

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
"""How much larger tasks are that share files, since each of them reads the whole (a file of 300 MB
alone: 2.40 processor seconds as one task, 2.54 as two, 2.78 as four)."""

MAX_READS = 8
"""Tasks that read one file, at most. To pass over a packet costs 4 % of decoding it (measured: 3.1
GB/s against 120 MB/s), so the eighth reader brings the cost of an archive to 1.3 times what one
engine needs."""


PASSED = 25
"""Packets passed over that take as long as one that is decoded."""

KEY_DIGITS = 20
"""Hex digits of a task's key."""


@dataclass(frozen=True)
class Source:
    """A file that a task reads; `skipped_bytes` of packets lie between it and the one before."""

    path: str
    size: int | None
    modified_ns: int | None
    skipped_bytes: int = 0


@dataclass
class Task:
    """Files, and the conversations in them that are this task's.

    Attributes:
        sources: What it reads, in the order that breaks ties between packets of one time.
        marks: Marks of its conversations, or, `inverted`, of those that are not; None for all.
        octets: Captured bytes of its own packets.
        read_bytes: Captured bytes of all packets that it reads.
        packets: Packets that it reads.
    """

    sources: list[Source]
    marks: array[int] | None = None
    inverted: bool = False
    octets: int = 0
    read_bytes: int = 0
    packets: int = 0

    def key(self, salt: str = "") -> str:
        """20 hex digits that are the same while files, share and `salt` (options) are."""
        facts = [[one.path, one.size, one.modified_ns, one.skipped_bytes] for one in self.sources]
        machine = hashlib.blake2b(
            json.dumps([salt, facts, self.inverted]).encode(), digest_size=KEY_DIGITS // 2
        )
        if self.marks is not None:
            machine.update(array("q", sorted(self.marks)).tobytes())
        return machine.hexdigest()


@dataclass
class Plan:
    """The tasks that read an archive, the heaviest first, and what is wrong with its files."""

    tasks: list[Task] = field(default_factory=list)
    files: list[Surveyed] = field(default_factory=list)

    @property
    def octets(self) -> int:
        """Captured bytes of all packets, each once."""
        return sum(one.octets for one in self.files)

    @property
    def read_bytes(self) -> int:
        """Captured bytes that all tasks read together."""
        return sum(task.read_bytes for task in self.tasks)


def make_plan(
    files: Sequence[Surveyed], *, task_bytes: int = TASK_BYTES, max_reads: int = MAX_READS
) -> Plan:
    """A plan for these files, in whatever order they are listed."""
    listed = sorted(files, key=lambda one: one.path)
    known = [one for one in listed if one.error is None and one.packets]
    ordered = [known[at] for at in _in_time(known)]
    packs = _packs(ordered, task_bytes)
    spans = _Spans(ordered, packs)
    tasks = [*_local(ordered, packs, spans, task_bytes, max_reads)]
    tasks += _crossing(ordered, packs, spans, task_bytes, max_reads)
    tasks.sort(key=lambda task: -task.octets - task.read_bytes // PASSED)
    return Plan(tasks, listed)


def _in_time(files: Sequence[Surveyed]) -> list[int]:
    """Indices in the order of first times; a file without one stays behind the one before it."""
    times: list[tuple[int, int]] = []
    time = -(2**63)
    for at, one in enumerate(files):
        time = time if one.first_ns is None else one.first_ns
        times.append((time, at))
    return [at for _, at in sorted(times)]


def _packs(files: Sequence[Surveyed], task_bytes: int) -> list[int]:
    """The pack of each file."""
    packs: list[int] = []
    pack, held = 0, 0
    for one in files:
        if held and held + one.octets > task_bytes // PARTS[pack % len(PARTS)]:
            pack, held = pack + 1, 0
        held += one.octets
        packs.append(pack)
    return packs


class _Spans:
    """The files of conversations: `rows` has (mark, file, bytes), `crossing` the marks that occur
    in more than one pack with their first and last pack and bytes.
    """

    def __init__(self, files: Sequence[Surveyed], packs: list[int]) -> None:
        import pyarrow as pa

        counts = [len(one.marks) for one in files]
        places = array("q")
        of_packs = array("q")
        for at, count in enumerate(counts):
            places.extend(array("q", [at]) * count)
            of_packs.extend(array("q", [packs[at]]) * count)
        marks, octets = array("q"), array("q")
        for one in files:
            marks.extend(one.marks)
            octets.extend(one.mark_bytes)
        columns = [integers(one) for one in (marks, places, of_packs, octets)]
        self.rows = pa.Table.from_arrays(columns, names=["mark", "file", "pack", "bytes"])
        grouped = self.rows.group_by("mark").aggregate(
            [("pack", "min"), ("pack", "max"), ("bytes", "sum")]
        )
        grouped = grouped.rename_columns(["mark", "first", "last", "bytes"])
        import pyarrow.compute as pc

        apart = pc.not_equal(grouped["first"], grouped["last"])
        self.crossing = grouped.filter(apart)
        self.staying = grouped.filter(pc.invert(apart))

    def occurrences(self, marks: Any) -> Any:
        """The rows of these marks."""
        import pyarrow.compute as pc

        return self.rows.filter(pc.is_in(self.rows["mark"], value_set=marks))


def _local(
    files: Sequence[Surveyed], packs: list[int], spans: _Spans, task_bytes: int, max_reads: int
) -> list[Task]:
    """Tasks of the conversations that stay in one pack."""
    strangers: dict[int, array[int]] = {}
    for row in spans.occurrences(spans.crossing["mark"]).to_pylist():
        strangers.setdefault(row["pack"], array("q")).append(row["mark"])
    own: dict[int, list[tuple[int, int]]] = {}
    for row in spans.staying.to_pylist():
        own.setdefault(row["first"], []).append((row["mark"], row["bytes"]))
    tasks = []
    for pack, group in groupby(range(len(packs)), packs.__getitem__):
        members = list(group)
        mine = own.get(pack, [])
        octets = sum(one for _, one in mine)
        parts = _parts(octets, READ_TWICE * task_bytes, max_reads)
        shares = _even(mine, parts, sum(files[at].octets for at in members))
        if len(shares) > 1:
            for share in shares:
                marks = array("q", sorted(mark for mark, _ in share))
                share_bytes = sum(one for _, one in share)
                tasks.append(_task(files, members, marks, False, share_bytes))
            continue
        others = strangers.get(pack)
        strange = None if others is None else array("q", sorted(set(others)))
        if mine or strange is None:
            tasks.append(_task(files, members, strange, strange is not None, octets))
    return tasks


def _even(marks: list[tuple[int, int]], parts: int, read_bytes: int) -> list[list[tuple[int, int]]]:
    """Conversations dealt out so that all parts have about as many bytes.

    What is left beside a large one is a part of its own only where it is more work than to pass
    over the packets that are read for it.
    """
    if parts == 1:
        return [marks]
    shares: list[list[tuple[int, int]]] = [[] for _ in range(parts)]
    held = [0] * parts
    for mark, octets in sorted(marks, key=lambda one: (-one[1], one[0])):
        least = held.index(min(held))
        shares[least].append((mark, octets))
        held[least] += octets
    order = sorted(range(parts), key=lambda part: -held[part])
    heavy = [part for part in order if held[part] * PASSED > read_bytes] or order[:1]
    for part in order[len(heavy) :]:
        shares[heavy[-1]] += shares[part]
    return [shares[part] for part in heavy]


def _crossing(
    files: Sequence[Surveyed], packs: list[int], spans: _Spans, task_bytes: int, max_reads: int
) -> list[Task]:
    """Tasks of the conversations that go from pack to pack, by the packs in which they begin."""
    rows = spans.crossing.to_pylist()
    if not rows:
        return []
    width = 1
    while True:
        families = _families(rows, width, task_bytes // LIGHT)
        parts = {
            family: _parts(sum(row["bytes"] for row in members), READ_TWICE * task_bytes, max_reads)
            for family, members in families.items()
        }
        if width > packs[-1] or _readers(families, parts, packs[-1] + 1) <= max_reads:
            break
        width *= 2
    if width > packs[-1]:
        parts = {family: min(parts[family], max_reads) for family in parts}
    places: dict[int, list[int]] = {}
    for row in spans.occurrences(spans.crossing["mark"]).to_pylist():
        places.setdefault(row["mark"], []).append(row["file"])
    tasks = []
    for family in sorted(families):
        mine = [(row["mark"], row["bytes"]) for row in families[family]]
        tasks += _shared(files, places, mine, parts[family])
    return tasks


def _families(
    rows: list[dict[str, int]], width: int, light_bytes: int
) -> dict[int, list[dict[str, int]]]:
    """Conversations by the packs in which they begin, `width` of them to a family; families with
    few bytes that are side by side are one.
    """
    apart: dict[int, list[dict[str, int]]] = {}
    for row in rows:
        apart.setdefault(row["first"] // width, []).append(row)
    families: dict[int, list[dict[str, int]]] = {}
    held, last = 0, -1
    for family in sorted(apart):
        octets = sum(row["bytes"] for row in apart[family])
        held += octets
        if families and held <= light_bytes:
            families[last] += apart[family]
        else:
            families[family], held, last = apart[family], octets, family
    return families


def _readers(families: dict[int, list[dict[str, int]]], parts: dict[int, int], packs: int) -> int:
    """How many tasks read the pack that most of them read."""
    changes = [0] * (packs + 1)
    for family, members in families.items():
        changes[min(row["first"] for row in members)] += parts[family]
        changes[max(row["last"] for row in members) + 1] -= parts[family]
    most = present = 0
    for change in changes:
        present += change
        most = max(most, present)
    return most


def _parts(octets: int, task_bytes: int, max_reads: int) -> int:
    """Into how many tasks so many bytes go: a power of 2, so that growing seldom changes it."""
    parts = 1
    while parts < max_reads and octets > parts * task_bytes:
        parts *= 2
    return min(parts, max_reads)


def _shared(
    files: Sequence[Surveyed],
    places: dict[int, list[int]],
    marks: list[tuple[int, int]],
    parts: int,
) -> list[Task]:
    """Tasks that share conversations by their marks, so that new ones change few of them; `places`
    are the files of each.
    """
    tasks = []
    for part in range(parts):
        mine = [one for one in marks if one[0] % parts == part]
        if not mine:
            continue
        members = sorted({at for mark, _ in mine for at in places[mark]})
        own = array("q", sorted(mark for mark, _ in mine))
        tasks.append(_task(files, members, own, False, sum(octets for _, octets in mine)))
    return tasks


def _task(
    files: Sequence[Surveyed],
    members: list[int],
    marks: array[int] | None,
    inverted: bool,
    octets: int,
) -> Task:
    """A task over some files, named in the order of their names."""
    sources = []
    before = members[0]
    for at in members:
        skipped = sum(files[one].octets for one in range(before + 1, at))
        one = files[at]
        sources.append(Source(one.path, one.size, one.modified_ns, skipped))
        before = at
    sources.sort(key=lambda source: source.path)
    read = sum(files[at].octets for at in members)
    packets = sum(files[at].packets for at in members)
    return Task(sources, marks, inverted, octets, read, packets)
