"""Packets dealt out by conversation, to be decoded in another stage.

If conversations continue from pack to pack, the reader of a pack stores their packets: in one
object per capture, `_work/dealt/KEY.packets`, grouped by bucket. The task of a bucket reads its
ranges of these objects in place of the captures: packets keep their numbers and times, and the
bytes left out before each are counted, so that the rows are those of a reader of everything.

    block:   BLOCK (bytes that follow, packets, bytes unpacked), columns and bytes packed by LZ4
    object:  blocks; those of one bucket follow each other, over and over when a capture is large

`KEY.json`, written last, has the pieces by the key of their bucket: for a run after a killed one.
All of these are deleted when the tables are complete: connections that continue in new files are
dealt out again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from amqpsniff.capture import CaptureSet
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding
from amqpsniff.tcp.partition import COLUMN_NAMES, Dealer

from .filesystem import Folder
from .plan import FilePack, SourceFile, Task
from .prefetch import prefetched

DEALT = "_work/dealt"

FORM = 3
"""Number of the layout of an object; one with another number is written again."""

BLOCK = struct.Struct("<QQQ")

MAX_BLOCK_BYTES = 256 << 10
MIN_BLOCK_BYTES = 16 << 10
"""Bytes of packets that are packed at once: fewer where a capture has many buckets, whose piles
are `PILES_BYTES` together."""

PILES_BYTES = 64 << 20

HELD_BYTES = 64 << 20
"""Packed bytes that a capture may have before they are written: a file of 256 MB is written in one
or two rounds, a larger one in as many as it takes."""

READ_BYTES = 2 << 20
"""Packed bytes of a range that are read at once, which matters where each read is a request; and
as many of packets, about, are ready while the ones before them are decoded."""

AHEAD = 3
"""Captures whose packets are made ready by threads while the one before is decoded: what object
storage takes to answer is then hidden behind decoding."""

PIECE = ("bucket", "offset", "length", "behind")
"""Numbers of a piece, packets of a bucket that stand together in a capture's object: `behind` are
the captured bytes of the capture behind the bucket's last packet."""

Dealt = dict[str, "array[int]"]
"""Pieces by capture, one after the other, `PIECE` numbers each."""


@dataclass
class Deal:
    """An order to deal out packets of a pack's captures to the buckets of `keys`, by number. A
    bucket with the same key has the same packets.
    """

    pack: FilePack
    keys: dict[int, str]

    def of(self, path: str) -> dict[int, int]:
        """The buckets of marks in a capture, as far as they are to be dealt out."""
        pairs = zip(self.pack.marks[path], self.pack.buckets[path], strict=True)
        return {mark: bucket for mark, bucket in pairs if bucket in self.keys}


def object_name(source: SourceFile, ending: str = "packets") -> str:
    """The name of a capture's object, or of its JSON file."""
    facts = json.dumps([FORM, source.path, source.size, source.modified_ns])
    return f"{DEALT}/{hashlib.blake2b(facts.encode(), digest_size=10).hexdigest()}.{ending}"


class Objects(contextlib.ExitStack):
    """The objects of some captures while they are read: `feed` batches, then `finish`.

    A context manager: unfinished objects are deleted. Objects of an earlier run are not written
    again; `complete`: all of them exist.
    """

    def __init__(self, deal: Deal, folder: Folder, ports: frozenset[int] | None) -> None:
        super().__init__()
        self.dealt: Dealt = {}
        self._deal = deal
        self._folder = folder
        self._ports = ports
        self._open: dict[str, _Object] = {}
        sources = [source for source in deal.pack.task.sources if source.path in deal.pack.marks]
        self._sources = {source.path: source for source in sources}
        for source in sources:
            self._find(source)
        self.complete = self.dealt.keys() >= self._sources.keys()

    def feed(self, batch: PacketBatch) -> None:
        """Deal out the packets of a batch."""
        path = batch.capture
        if path in self.dealt or path not in self._sources:
            return
        if path not in self._open:
            source = self._sources[path]
            sink = self.enter_context(self._folder.create(object_name(source)))
            self._open[path] = _Object(self._deal.of(path), source, sink, self._ports)
        self._open[path].feed(batch)

    def finish(self, *, to_end: bool) -> None:
        """End the reading of all captures.

        With `to_end` each was read to its end, and later runs can use the pieces."""
        keys = self._deal.keys
        pieces_by_path = {path: opened.finish() for path, opened in self._open.items()}
        self.close()
        for path, pieces in pieces_by_path.items():
            self.dealt[path] = array("q", chain.from_iterable(pieces))
            by_key: dict[str, list[Any]] = {
                keys[bucket]: [] for bucket in self._deal.of(path).values()
            }
            for piece in pieces:
                by_key[keys[piece[0]]].append(piece)
            if to_end:
                name = object_name(self._sources[path], "json")
                self._folder.write(name, json.dumps(by_key).encode())

    def _find(self, source: SourceFile) -> None:
        """Take the pieces that an earlier run has written, if it has written all wanted ones."""
        buckets = {
            self._deal.keys[bucket]: bucket for bucket in self._deal.of(source.path).values()
        }
        written = json.loads(self._folder.read(object_name(source, "json")) or b"{}")
        if written.keys() >= buckets.keys():
            pieces = (
                (bucket, *piece[1:]) for key, bucket in buckets.items() for piece in written[key]
            )
            self.dealt[source.path] = array("q", chain.from_iterable(pieces))


class _Object:
    """The object of a capture, while it is written."""

    def __init__(
        self, marks: dict[int, int], source: SourceFile, sink: Any, ports: frozenset[int] | None
    ) -> None:
        self._buckets = sorted(set(marks.values()))
        places = {bucket: at for at, bucket in enumerate(self._buckets)}
        of_marks = {mark: places[bucket] for mark, bucket in marks.items()}
        size = max(MIN_BLOCK_BYTES, min(MAX_BLOCK_BYTES, PILES_BYTES // max(len(places), 1)))
        self._dealer = Dealer(of_marks, len(places), size, source.begin_ns, ports)
        self._sink = sink
        self._blocks: dict[int, list[bytes]] = defaultdict(list)
        self._held = 0
        self._runs: list[tuple[int, int, int]] = []

    def feed(self, batch: PacketBatch) -> None:
        self._dealer.feed(batch)
        self._pack(self._dealer.take())
        if self._held >= HELD_BYTES:
            self._write()

    def finish(self) -> list[tuple[int, ...]]:
        """Write the rest; the pieces."""
        self._pack(self._dealer.take_all())
        self._write()
        behind = self._dealer.behind()
        return [(self._buckets[at], *place, behind[at]) for at, *place in self._runs]

    def _pack(self, piles: list[tuple[int, int, bytes, bytearray]]) -> None:
        for bucket, packets, columns, octets in piles:
            plain = columns + octets
            packed = _codec().compress(plain, asbytes=True)
            self._blocks[bucket].append(BLOCK.pack(len(packed), packets, len(plain)) + packed)
            self._held += BLOCK.size + len(packed)

    def _write(self) -> None:
        for bucket in sorted(self._blocks):
            octets = b"".join(self._blocks[bucket])
            self._runs.append((bucket, self._sink.tell(), len(octets)))
            self._sink.write(octets)
        self._blocks.clear()
        self._held = 0


class Part(NamedTuple):
    """The packets of a bucket in one capture: ranges of its object.

    `skipped_bytes` of packets lie between it and the bucket's part of the capture before.
    """

    source: SourceFile
    ranges: list[tuple[int, int]]
    skipped_bytes: int


@dataclass
class Parts:
    """The packets of a bucket, to be read in another process: numbers of each piece of it.

    Attributes:
        files: A number of each capture, in the order of time.
        numbers: The number of the capture, then `PIECE` without the bucket, for each piece.
        lost: Findings about unreadable parts of the captures.
    """

    folder: Folder
    files: array[int]
    numbers: array[int] = field(default_factory=lambda: array("q"))
    lost: list[Finding] = field(default_factory=list)

    @property
    def octets(self) -> int:
        """Bytes of the ranges."""
        return sum(self.numbers[2 :: len(PIECE)])

    def captures(self, task: Task) -> dict[str, Part]:
        """The objects of captures of the task, by capture, in the order of time."""
        found: dict[str, Part] = {}
        places = {number: at for at, number in enumerate(self.files)}
        numbers = zip(*(self.numbers[at :: len(PIECE)] for at in range(len(PIECE))), strict=True)
        rows = sorted((places[number], *piece) for number, *piece in numbers)
        behind_before, counted = 0, 0
        for at, offset, length, behind in rows:
            source = task.sources[at]
            if source.path not in found:
                between = sum(task.skipped[counted + 1 : at + 1])
                found[source.path] = Part(source, [], behind_before + between)
                behind_before, counted = behind, at
            found[source.path].ranges.append((offset, length))
        return found

    def open(self, captures: Mapping[str, Part]) -> CaptureSet:
        """The packets, in time order; raises CaptureError without any."""
        if not captures:
            raise CaptureError("none of the captures could be read")
        begins = {path: part.source.begin_ns for path, part in captures.items()}
        opener = _opener(captures, self.folder)
        return CaptureSet(sorted(captures), open_file=opener, begins=begins)


def _opener(captures: Mapping[str, Part], folder: Folder) -> Callable[[str, int], DealtCapture]:
    """A function that opens the objects of captures; threads read the next ones ahead."""
    pool = ThreadPoolExecutor(AHEAD)
    begun: dict[str, Iterator[list[tuple[int, bytes]]]] = {}
    coming = iter(captures.items())

    def opened(path: str, _: int) -> DealtCapture:
        while path not in begun or len(begun) <= AHEAD:
            next_path, part = next(coming, ("", None))
            if part is None:
                break
            begun[next_path] = prefetched(_chunks(part, folder), pool)
        return DealtCapture(path, chain.from_iterable(begun.pop(path)))

    return opened


class DealtCapture:
    """The packets of one bucket, in batches, in place of a capture."""

    regular = True

    def __init__(self, path: str, blocks: Iterator[tuple[int, bytes]]) -> None:
        self.capture = path
        self.block_bytes = 0
        self.findings: list[Finding] = []
        self.secrets: list[tuple[int, bytes]] = []
        self.link_types: list[int] = []
        self.comments: list[str] = []
        self._blocks = blocks

    def __iter__(self) -> Iterator[PacketBatch]:
        return self

    def __next__(self) -> PacketBatch:
        packets, plain = next(self._blocks)
        head = 8 * packets * len(COLUMN_NAMES)
        view = memoryview(bytearray(plain[:head])).cast("q")
        columns = [view[at : at + packets] for at in range(0, len(view), packets)]
        return PacketBatch(self.capture, plain[head:], 0, packets, *columns)

    def at_rest(self) -> bool:
        """False: nothing is being written."""
        return False

    def park(self) -> None:
        """Keep open objects: a bucket has few captures at a time."""

    def close(self) -> None:
        """Let go of the packets."""
        self._blocks = iter(())


def _chunks(part: Part, folder: Folder) -> Iterator[list[tuple[int, bytes]]]:
    """The blocks of a part as (packets, unpacked bytes), some at a time."""
    import pyarrow as pa

    chunk: list[tuple[int, bytes]] = []
    size = 0
    with folder.open(object_name(part.source)) as file:
        for offset, length in part.ranges:
            held = min(length, READ_BYTES)
            octets = pa.BufferedInputStream(file.get_stream(offset, length), held)
            while head := octets.read(BLOCK.size):
                packed, packets, plain = BLOCK.unpack(head)
                unpacked = _codec().decompress(octets.read(packed), plain, asbytes=True)
                chunk.append((packets, unpacked))
                size += plain
                if size >= READ_BYTES:
                    yield chunk
                    chunk, size = [], 0
    yield chunk


def _codec() -> Any:
    from pyarrow import Codec

    return Codec("lz4_raw")
