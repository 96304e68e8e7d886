# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Conversations dealt to readers that share the work on one capture.

The mark of a conversation is a hash of its two endpoints, whichever comes first, and the same on
every machine. All conversations of one mark go to one reader: those of endpoints that are used
again, and those whose marks happen to be equal, which costs nothing else.
"""

from __future__ import annotations

from array import array
from ipaddress import ip_address

import cython
from cython.cimports.amqpsniff.tcp.codes import (
    A_HIGH,
    A_LOW,
    B_HIGH,
    B_LOW,
    CHUNK,
    EXTRA,
    FLAGS,
    PACKET,
    PORTS,
    SEGMENT_FIELDS,
    UNREACHABLE,
)
from cython.cimports.amqpsniff.tcp.headers import HeaderParser
from cython.cimports.amqpsniff.tcp.limits import NO_TIME

from .fragments import Fragments
from .limits import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


COLUMN_NAMES = (
    "number", "ts_ns", "start", "captured", "original", "link_type", "passed", "order_ns"
)  # fmt: skip

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK63 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
_FIRST = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_SECOND = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)
_THIRD = cython.declare(cython.ulonglong, 0x165667B19E3779F9)

# Marks whose answer is remembered, so that nearly every packet is spared a look into a set or a
# dict: 256 KiB.
CELLS = cython.declare(cython.longlong, 16_384)

# Numbers of a packet that is dealt out, in the order of the columns of a `PacketBatch`.
COLUMNS = cython.declare(cython.longlong, len(COLUMN_NAMES))

# The bucket of packets that no reader needs, and of those that every reader needs.
NONE = cython.declare(cython.longlong, -1)
ALL = cython.declare(cython.longlong, -2)


@cython.cfunc
@cython.inline
@cython.exceptval(0, check=True)
def _end(high: cython.ulonglong, low: cython.ulonglong, port: cython.ulonglong) -> cython.ulonglong:
    """A hash of one endpoint."""
    h: cython.ulonglong = ((high ^ _THIRD) * _FIRST) & MASK64
    h = ((h ^ (h >> 32) ^ low) * _SECOND) & MASK64
    h = ((h ^ (h >> 29) ^ port) * _FIRST) & MASK64
    return h ^ (h >> 32)


def mark_of(
    a_high: cython.longlong,
    a_low: cython.longlong,
    b_high: cython.longlong,
    b_low: cython.longlong,
    ports: cython.longlong,
) -> cython.longlong:
    """The mark of a segment's conversation, from its row: at least 0, below 2^63."""
    end: cython.ulonglong = _end(a_high & MASK64, a_low & MASK64, (ports >> 16) & 0xFFFF)
    other_end: cython.ulonglong = _end(b_high & MASK64, b_low & MASK64, ports & 0xFFFF)
    h: cython.ulonglong = ((end + other_end) * _THIRD) & MASK64
    return (h ^ (h >> 31)) & MASK63


@cython.cfunc
@cython.exceptval(-1, check=True)
def _mark_at(rows: cython.longlong[::1], at: cython.longlong) -> cython.longlong:
    """The mark of the segment at `at`."""
    return mark_of(
        rows[at + A_HIGH], rows[at + A_LOW], rows[at + B_HIGH], rows[at + B_LOW], rows[at + PORTS]
    )


def marks_between(pairs: Any) -> list[Any] | None:
    """The marks of conversations given as pairs of `address:port`; None if one is not valid."""
    marks: list[Any] = []
    for end, other_end in pairs:
        try:
            a_high, a_low, a_port = _numbers(end)
            b_high, b_low, b_port = _numbers(other_end)
        except ValueError:
            return None
        marks.append(mark_of(a_high, a_low, b_high, b_low, a_port << 16 | b_port))
    return marks


def _numbers(name: Any) -> tuple[Any, ...]:
    """(upper half, lower half, port) of an endpoint; ValueError if it is not `address:port`."""
    host, _, port = (name or "").rpartition(":")
    address = int(ip_address(host.strip("[]").partition("%")[0]))
    high, low = address >> 64, address & 0xFFFFFFFFFFFFFFFF
    return high - ((high >> 63) << 64), low - ((low >> 63) << 64), int(port)


@cython.cclass
class Marks:
    """A number for each mark: what `find` gives for it. The last ones are remembered."""

    cells: cython.longlong[::1]
    answers: cython.longlong[::1]
    find: Any

    def __init__(self, find: Any) -> None:
        self.cells = array("q", [-1]) * CELLS
        self.answers = array("q", [0]) * CELLS
        self.find = find

    @cython.exceptval(-3)
    def number(self, mark: cython.longlong) -> cython.longlong:
        """The number of a mark."""
        cell: cython.longlong = mark & (CELLS - 1)
        if self.cells[cell] != mark:
            self.answers[cell] = self.find(mark)
            self.cells[cell] = mark
        return self.answers[cell]


@cython.cclass
class Partition(Marks):
    """The conversations of one reader: those with the marks of `only`, or all `but` these.

    The number of a mark is 1 if its conversations are among them, and 0 if not.
    """

    def __init__(self, only: Any = None, but: Any = None) -> None:
        if (only is None) == (but is None):
            raise ValueError("a partition has either the marks of its own or those of others")
        included = frozenset(() if only is None else only)
        excluded = frozenset(() if but is None else but)
        Marks.__init__(
            self, included.__contains__ if but is None else lambda mark: mark not in excluded
        )


@cython.cclass
class Columns:
    """The columns of a `PacketBatch`."""

    number: cython.longlong[::1]
    ts_ns: cython.longlong[::1]
    start: cython.longlong[::1]
    captured: cython.longlong[::1]
    original: cython.longlong[::1]
    link_type: cython.longlong[::1]

    def __init__(self, batch: Any) -> None:
        self.number, self.ts_ns, self.start = batch.number, batch.ts_ns, batch.start
        self.captured, self.original = batch.captured, batch.original
        self.link_type = batch.link_type


@cython.cclass
class Pile:
    """Packets of one bucket: their bytes, and `COLUMNS` numbers of each.

    `reached`: captured bytes of the capture up to the end of its last packet.
    """

    octets: Any
    numbers: Any
    table: cython.longlong[::1]
    count: cython.longlong
    reached: cython.longlong

    def __init__(self) -> None:
        self.reached = 0
        self._clear()

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _clear(self) -> cython.int:
        self.octets = bytearray()
        self.numbers = array("q", [0]) * (COLUMNS * 64)
        self.table = self.numbers
        self.count = 0
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def room(self) -> cython.longlong:
        """The index for the numbers of the next packet."""
        at: cython.longlong = self.count * COLUMNS
        if at + COLUMNS > len(self.table):
            self.table = self.numbers = self.numbers + array("q", [0]) * len(self.numbers)
        self.count += 1
        return at

    def take(self) -> tuple[Any, ...]:
        """(packets, the columns one after the other, bytes); starts empty again."""
        rows: array = self.numbers[: self.count * COLUMNS]
        columns: list[Any] = [rows[column::COLUMNS].tobytes() for column in range(COLUMNS)]
        contents = self.count, b"".join(columns), self.octets
        self._clear()
        return contents


@cython.cclass
class Dealer:
    """Deals the packets of one capture out to buckets: `feed` for each of its batches.

    `buckets` has the bucket of each mark, counted from 0; packets of conversations with other marks
    are left out. A fragment of an IP packet may belong to any conversation, so it goes to every
    bucket. Packets of the same chunk that are not TCP go there too. `take` gives the piles that
    are full.
    """

    parser: HeaderParser
    fragments: Any
    extra: list[Any]
    buckets: Marks
    piles: list[Any]
    full: list[Any]
    size: cython.longlong
    latest: cython.longlong
    seen: cython.longlong

    def __init__(
        self,
        buckets: dict[int, int],
        count: int,
        block_bytes: int,
        begin_ns: int,
        ports: frozenset[int] | None = None,
    ) -> None:
        self.fragments = Fragments(Limits())
        self.parser = HeaderParser(ports, self.fragments)
        self.extra = []
        self.buckets = Marks(lambda mark: buckets.get(mark, NONE))
        self.piles = [Pile() for _ in range(count)]
        self.full = []
        self.size = block_bytes
        self.latest = begin_ns
        self.seen = 0

    def feed(self, batch: Any) -> None:
        """Deal out the packets of a `PacketBatch`."""
        begin: cython.longlong = batch.begin
        end: cython.longlong = batch.end
        chunk: cython.longlong
        stop: cython.longlong
        count: cython.longlong
        fragments: cython.longlong
        for chunk in range(begin, end, CHUNK):
            stop = min(chunk + CHUNK, end)
            self.extra.clear()
            fragments = self.fragments.count
            count = self.parser.parse(batch, chunk, stop, self.extra)
            self._deal(batch, chunk, stop, count, self.fragments.count > fragments)

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _deal(
        self,
        batch: Any,
        begin: cython.longlong,
        end: cython.longlong,
        count: cython.longlong,
        loose: cython.bint,
    ) -> cython.int:
        """Deal out packets with `count` segments; `loose`: some packets are fragments."""
        rows: cython.longlong[::1] = self.parser.segments() if count else self.buckets.cells
        columns: Columns = Columns(batch)
        octets: bytes = batch.octets
        packet: cython.longlong
        at: cython.longlong = 0
        bucket: cython.longlong
        for packet in range(begin, end):
            if columns.ts_ns[packet] > self.latest:
                self.latest = columns.ts_ns[packet]
            bucket = ALL if loose else NONE
            if at < count * SEGMENT_FIELDS and rows[at + PACKET] == packet:
                if rows[at + EXTRA] < 0:
                    bucket = self.buckets.number(_mark_at(rows, at))
                at += SEGMENT_FIELDS
            if bucket >= 0:
                self._put(bucket, columns, octets, packet)
            elif bucket == ALL:
                for bucket in range(len(self.piles)):
                    self._put(bucket, columns, octets, packet)
            self.seen += columns.captured[packet]
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _put(
        self,
        bucket: cython.longlong,
        columns: Columns,
        octets: bytes,
        packet: cython.longlong,
    ) -> cython.int:
        pile: Pile = self.piles[bucket]
        start: cython.longlong = columns.start[packet]
        captured: cython.longlong = columns.captured[packet]
        at: cython.longlong = pile.room()
        pile.table[at] = columns.number[packet]
        pile.table[at + 1] = columns.ts_ns[packet]
        pile.table[at + 2] = len(pile.octets)
        pile.table[at + 3] = captured
        pile.table[at + 4] = columns.original[packet]
        pile.table[at + 5] = columns.link_type[packet]
        pile.table[at + 6] = self.seen - pile.reached
        pile.table[at + 7] = self.latest
        pile.octets += octets[start : start + captured]
        pile.reached = self.seen + captured
        if len(pile.octets) >= self.size:
            self.full.append((bucket, *pile.take()))
        return 0

    def take(self) -> list[tuple[int, int, bytes, bytearray]]:
        """Piles that are full: (bucket, packets, columns one after the other, bytes of packets)."""
        blocks, self.full = self.full, []
        return blocks

    def take_all(self) -> list[tuple[int, int, bytes, bytearray]]:
        """All piles that are not empty, in the same way."""
        pile: Pile
        for bucket, pile in enumerate(self.piles):
            if pile.count:
                self.full.append((bucket, *pile.take()))
        return self.take()

    def behind(self) -> list[int]:
        """Captured bytes of the capture behind the last packet of each bucket."""
        pile: Pile
        distances = []
        for pile in self.piles:
            distances.append(self.seen - pile.reached)
        return distances


@cython.cclass
class Survey:
    """Counts conversations without following them: `feed` for each batch of packets.

    `packet_count`, `segment_count` and `octets` (captured, of all packets) count its input.
    """

    parser: HeaderParser
    extra: list[Any]
    indexes: dict[Any, Any]
    marks: Marks
    counts: Any
    table: cython.longlong[::1]
    packets: cython.longlong
    segments: cython.longlong
    first: cython.longlong
    least: cython.longlong
    last: cython.longlong

    def __init__(self) -> None:
        self.parser = HeaderParser(None, Fragments(Limits()))
        self.extra = []
        indexes: dict[Any, Any] = {}
        self.indexes = indexes
        self.marks = Marks(lambda mark: indexes.setdefault(mark, len(indexes)))
        self.table = self.counts = array("q", [0]) * 64
        self.packets = self.segments = 0
        self.first = self.least = self.last = NO_TIME

    def feed(self, batch: Any) -> None:
        """Count the packets of a `PacketBatch`."""
        begin: cython.longlong = batch.begin
        end: cython.longlong = batch.end
        chunk: cython.longlong
        self._time(batch.ts_ns, begin, end)
        self.packets += end - begin
        for chunk in range(begin, end, CHUNK):
            self.extra.clear()
            self._count(
                self.parser.segments,
                self.parser.parse(batch, chunk, min(chunk + CHUNK, end), self.extra),
                batch.captured,
            )

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _time(
        self, times: cython.longlong[::1], begin: cython.longlong, end: cython.longlong
    ) -> cython.int:
        row: cython.longlong
        ts_ns: cython.longlong
        for row in range(begin, end):
            ts_ns = times[row]
            if ts_ns == NO_TIME:
                continue
            if self.first == NO_TIME:
                self.first = self.least = self.last = ts_ns
            elif ts_ns > self.last:
                self.last = ts_ns
            elif ts_ns < self.least:
                self.least = ts_ns
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _count(
        self, segments: Any, count: cython.longlong, captured: cython.longlong[::1]
    ) -> cython.int:
        rows: cython.longlong[::1]
        row: cython.longlong
        at: cython.longlong
        index: cython.longlong
        if count == 0:
            return 0
        rows = segments()
        self.segments += count
        for row in range(count):
            at = row * SEGMENT_FIELDS
            index = self.marks.number(_mark_at(rows, at))
            if index >= len(self.table):
                self.table = self.counts = self.counts + array("q", [0]) * len(self.counts)
            if rows[at + FLAGS] & UNREACHABLE:
                self.segments -= 1
            self.table[index] += captured[rows[at + PACKET]]
        return 0

    @property
    def octets(self) -> int:
        """Bytes of packets captured."""
        return self.parser.bytes_seen()

    @property
    def unread(self) -> dict[str, int]:
        """Packets of tunnels that are not read, by tunnel."""
        counts: dict[str, int] = self.parser.unread()
        return counts

    @property
    def packet_count(self) -> int:
        """Packets fed."""
        return self.packets

    @property
    def segment_count(self) -> int:
        """TCP segments among them."""
        return self.segments

    @property
    def times(self) -> tuple[int | None, int | None, int | None]:
        """First, earliest and latest time; null where no packet has one."""
        if self.first == NO_TIME:
            return None, None, None
        return self.first, self.least, self.last

    def conversations(self) -> tuple[array, array]:
        """Marks and bytes of packets, as arrays of 64-bit integers of one length."""
        marks = array("q", self.indexes)
        return marks, self.counts[: len(marks)]
