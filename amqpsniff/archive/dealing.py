"""Packets dealt out by conversation, for those who decode them in another stage.

Where conversations go on from pack to pack, whoever reads a pack puts aside the packets of such
conversations: an object for each capture, `_work/dealt/KEY.packets`, in which the packets of one
bucket stand together. Whoever decodes a bucket reads its ranges of these objects, which stand for
the captures: packets have their numbers and times, and the bytes of what was left out before each
are counted, so that rows are those of one who reads everything.

    block:   BLOCK (bytes that follow, packets, bytes unpacked), columns and bytes packed by LZ4
    object:  blocks; those of one bucket follow each other, over and over when a capture is large
    end:     pieces by the key of their bucket as JSON, END (its length)

The end is for a run that goes on where another was killed. Nothing of it is kept when the tables
are complete: connections that go on in new files are dealt out again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from amqpsniff.capture import CaptureSet
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding
from amqpsniff.tcp.partition import COLUMN_NAMES, Dealer

from .filesystem import Folder
from .plan import Pack, Source

DEALT = "_work/dealt"

FORM = 2
"""Number of the layout of an object; one with another number is written again."""

BLOCK = struct.Struct("<QQQ")
END = struct.Struct("<Q")

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


PIECE = ("bucket", "offset", "length", "first_ns", "behind")
"""Numbers of a piece, packets of a bucket that stand together in a capture's object: the time at
which the first one comes, and the captured bytes of the capture behind the bucket's last packet."""


@dataclass
class Deal:
    """An order to deal out packets of a pack's captures to the buckets of `keys`, by number. A
    bucket with the same key has the same packets.
    """

    pack: Pack
    keys: dict[int, str]

    def of(self, path: str) -> dict[int, int]:
        """The buckets of marks in a capture, as far as they are to be dealt out."""
        pairs = zip(self.pack.marks[path], self.pack.buckets[path], strict=True)
        return {mark: bucket for mark, bucket in pairs if bucket in self.keys}


Dealt = dict[str, "array[int]"]
"""Pieces by capture, one after the other, `PIECE` numbers each."""


def object_name(source: Source) -> str:
    """The name of a capture's object."""
    facts = json.dumps([FORM, source.path, source.size, source.modified_ns])
    return f"{DEALT}/{hashlib.blake2b(facts.encode(), digest_size=10).hexdigest()}.packets"


class Objects:
    """The objects of some captures while they are read: `feed` batches, then `close`.

    A context manager: objects are there when it ends well. Those that an earlier run has written
    are not written again; `complete` says that these are all.
    """

    def __init__(self, deal: Deal, folder: Folder, ports: frozenset[int] | None) -> None:
        self.dealt: Dealt = {}
        self._deal = deal
        self._folder = folder
        self._ports = ports
        self._open: dict[str, _Object] = {}
        self._stack = contextlib.ExitStack()
        self._names = {
            one.path: object_name(one)
            for one in deal.pack.task.sources
            if one.path in deal.pack.marks
        }
        for path, name in self._names.items():
            pieces = _kept(folder, name, deal, path)
            if pieces is not None:
                self.dealt[path] = pieces
        self.complete = self.dealt.keys() >= self._names.keys()

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def feed(self, batch: PacketBatch) -> None:
        """Deal out the packets of a batch."""
        path = batch.capture
        if path in self.dealt or path not in self._names:
            return
        if path not in self._open:
            sink = self._stack.enter_context(self._folder.create(self._names[path]))
            self._open[path] = _Object(self._deal, path, sink, self._ports)
        self._open[path].feed(batch)

    def close(self, *, whole: bool) -> None:
        """All captures were read, to their ends if they are `whole`."""
        for path, one in self._open.items():
            self.dealt[path] = one.close(whole)


class _Object:
    """The object of a capture, while it is written."""

    def __init__(self, deal: Deal, path: str, sink: Any, ports: frozenset[int] | None) -> None:
        marks = deal.of(path)
        self._buckets = sorted(set(marks.values()))
        self._keys = deal.keys
        places = {bucket: at for at, bucket in enumerate(self._buckets)}
        of_marks = {mark: places[bucket] for mark, bucket in marks.items()}
        size = max(MIN_BLOCK_BYTES, min(MAX_BLOCK_BYTES, PILES_BYTES // max(len(places), 1)))
        self._dealer = Dealer(of_marks, len(places), size, deal.pack.begins[path], ports)
        self._sink = sink
        self._blocks: dict[int, list[bytes]] = defaultdict(list)
        self._first: dict[int, int] = {}
        self._held = self._written = 0
        self._runs: list[tuple[int, int, int]] = []

    def feed(self, batch: PacketBatch) -> None:
        self._dealer.feed(batch)
        self._pack(self._dealer.take())
        if self._held >= HELD_BYTES:
            self._write()

    def close(self, whole: bool) -> array[int]:
        """Write the rest; the pieces."""
        self._pack(self._dealer.take_all())
        self._write()
        behind = self._dealer.behind()
        pieces = array("q")
        by_key: dict[str, list[tuple[int, ...]]] = {self._keys[one]: [] for one in self._buckets}
        for at, *place in self._runs:
            bucket, piece = self._buckets[at], (*place, self._first[at], behind[at])
            pieces.extend((bucket, *piece))
            by_key[self._keys[bucket]].append(piece)
        if whole:  # else it is not one for another run
            told = json.dumps(by_key).encode()
            self._sink.write(told + END.pack(len(told)))
        return pieces

    def _pack(self, piles: list[tuple[int, int, bytes, bytearray]]) -> None:
        for bucket, packets, columns, octets in piles:
            if bucket not in self._first:
                at = 8 * packets * COLUMN_NAMES.index("order_ns")
                (self._first[bucket],) = struct.unpack_from("=q", columns, at)
            plain = columns + octets
            packed = _codec().compress(plain, asbytes=True)
            self._blocks[bucket].append(BLOCK.pack(len(packed), packets, len(plain)) + packed)
            self._held += BLOCK.size + len(packed)

    def _write(self) -> None:
        for bucket in sorted(self._blocks):
            octets = b"".join(self._blocks[bucket])
            self._sink.write(octets)
            self._runs.append((bucket, self._written, len(octets)))
            self._written += len(octets)
        self._blocks.clear()
        self._held = 0


def _kept(folder: Folder, name: str, deal: Deal, path: str) -> array[int] | None:
    """The pieces in an object that an earlier run has written, if all that are wanted are there."""
    try:
        with folder.open(name) as file:
            size = file.seek(0, 2)
            file.seek(max(size - END.size, 0))
            (length,) = END.unpack(file.read(END.size))
            file.seek(size - END.size - length)
            there = json.loads(file.read(length))
    except (OSError, ValueError, struct.error):
        return None
    wanted = {deal.keys[bucket]: bucket for bucket in deal.of(path).values()}
    if not there.keys() >= wanted.keys():
        return None
    pieces = array("q")
    for key, bucket in wanted.items():
        for piece in there[key]:
            pieces.extend((bucket, *piece))
    return pieces


class Part(NamedTuple):
    """The packets of a bucket in one capture: ranges of the object `name`.

    `skipped_bytes` of packets lie between it and the bucket's part of the capture before.
    """

    name: str
    ranges: list[tuple[int, int]]
    first_ns: int
    skipped_bytes: int


@dataclass
class Parts:
    """The packets of a bucket, to be read in another process: numbers of each piece of it.

    Attributes:
        sources, files: The captures in the order of time, and a number of each.
        numbers: The number of the capture, then `PIECE` but for the bucket, for each piece.
        lost: What could not be read of the captures.
    """

    folder: str
    storage: Mapping[str, Any]
    sources: list[Source]
    files: array[int]
    numbers: array[int] = field(default_factory=lambda: array("q"))
    lost: list[Finding] = field(default_factory=list)

    @property
    def octets(self) -> int:
        """Bytes of the ranges."""
        return sum(self.numbers[2 :: len(PIECE)])

    def captures(self) -> dict[str, Part]:
        """Objects that are there, by capture."""
        found: dict[str, Part] = {}
        places = {number: at for at, number in enumerate(self.files)}
        numbers = zip(*(self.numbers[at :: len(PIECE)] for at in range(len(PIECE))), strict=True)
        rows = sorted((places[number], *piece) for number, *piece in numbers)
        behind_before, counted = 0, 0
        for at, offset, length, first_ns, behind in rows:
            source = self.sources[at]
            if source.path not in found:
                between = sum(one.skipped_bytes for one in self.sources[counted + 1 : at + 1])
                skipped = behind_before + between
                found[source.path] = Part(object_name(source), [], first_ns, skipped)
                behind_before, counted = behind, at
            found[source.path].ranges.append((offset, length))
        return found

    def open(self, captures: Mapping[str, Part]) -> CaptureSet:
        """The packets, in the order of time; raises CaptureError where there are none."""
        if not captures:
            raise CaptureError("none of the captures could be read")
        begins = {path: one.first_ns for path, one in captures.items()}
        readers = _Readers(captures, Folder(self.folder, self.storage).open)
        return CaptureSet(sorted(captures), open_file=readers.open, begins=begins)


class _Readers:
    """Opens what stands for captures; those that come next are read in threads meanwhile."""

    def __init__(self, captures: Mapping[str, Part], opener: Callable[[str], IO[bytes]]) -> None:
        self._pool = ThreadPoolExecutor(AHEAD)
        self._begun: dict[str, Iterator[tuple[int, bytes]]] = {}
        order = sorted(captures, key=lambda path: (captures[path].first_ns, path))
        self._coming = iter([(path, _chunks(captures[path], opener)) for path in order])

    def open(self, path: str, _: int) -> DealtCapture:
        """The object that stands for a capture."""
        while path not in self._begun or len(self._begun) <= AHEAD:
            one, chunks = next(self._coming, ("", None))
            if chunks is None:
                break
            self._begun[one] = self._ahead(chunks, self._pool.submit(next, chunks, None))
        return DealtCapture(path, self._begun.pop(path))

    def _ahead(
        self, chunks: Iterator[list[tuple[int, bytes]]], coming: Future[Any]
    ) -> Iterator[tuple[int, bytes]]:
        """The blocks of chunks, of which the next one is made ready in a thread."""
        while (chunk := coming.result()) is not None:
            coming = self._pool.submit(next, chunks, None)
            yield from chunk


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
        """Keep what is open: a bucket has few captures at a time."""

    def close(self) -> None:
        """Let go of the packets."""
        self._blocks = iter(())


def _chunks(part: Part, opener: Callable[[str], IO[bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """The blocks of a part as (packets, unpacked bytes), some at a time."""
    with opener(part.name) as file:
        for offset, length in part.ranges:
            file.seek(offset)
            left, held = length, b""
            while left:
                more = file.read(min(left, READ_BYTES))
                if not more:
                    raise OSError(f"{part.name}: cut off before offset {offset + length}")
                left -= len(more)
                held += more
                chunk: list[tuple[int, bytes]] = []
                begin, size = BLOCK.size, 0
                while begin <= len(held):
                    packed, packets, plain = BLOCK.unpack_from(held, begin - BLOCK.size)
                    end = begin + packed
                    if end > len(held):
                        break
                    octets = _codec().decompress(held[begin:end], plain, asbytes=True)
                    chunk.append((packets, octets))
                    begin = end + BLOCK.size
                    size += plain
                    if size >= READ_BYTES:  # what is packed may be very small
                        yield chunk
                        chunk, size = [], 0
                held = held[begin - BLOCK.size :]
                yield chunk


def _codec() -> Any:
    from pyarrow import Codec

    return Codec("lz4_raw")
