"""Packets on their way into the engine: rows over one block of bytes.

A batch makes no object per packet. Each packet is one row of six columns of 64-bit integers, and
its bytes are a slice of the batch's one immutable block. A block is never written to or reused, so
whatever keeps a batch (or a view of it) keeps valid bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from amqpsniff.columns import room_for

NO_TIME = -(2**63)
"""`ts_ns` of a packet whose record carries no time, or one that 64 bits cannot hold."""

# Rows are allocated for packets of this size on average and doubled when there are more; small
# enough that most captures need one allocation, large enough that few rows stay unused.
BYTES_PER_ROW = 128
MIN_ROWS = 16

_COLUMNS = ("number", "ts_ns", "start", "captured", "original", "link_type")


class PacketBatch:
    """Packets of one capture: rows `begin` to `end - 1` of the columns, bytes in one block.

    `number` is 1-based within the capture, `ts_ns` nanoseconds since the epoch or `NO_TIME`,
    `start` the offset of the captured bytes in `octets`, `captured` and `original` lengths in
    bytes, `link_type` a LINKTYPE_ value (https://www.tcpdump.org/linktypes.html).

    In a part of a capture, `passed` are the captured bytes of packets left out before each one, and
    `order_ns` is the latest time in the capture so far: when the packet comes among those of other
    captures. Of a whole capture `passed` is None, and `order_ns` are the times themselves.
    `set_back_ns`: by how much the capturing host's clock was set back in or right before it.
    """

    __slots__ = (
        "capture", "octets", "begin", "end", *_COLUMNS, "passed", "order_ns", "set_back_ns",
    )  # fmt: skip

    def __init__(
        self,
        capture: str,
        octets: bytes,
        begin: int,
        end: int,
        number: Sequence[int],
        ts_ns: Sequence[int],
        start: Sequence[int],
        captured: Sequence[int],
        original: Sequence[int],
        link_type: Sequence[int],
        passed: Sequence[int] | None = None,
        order_ns: Sequence[int] | None = None,
    ) -> None:
        self.capture = capture
        self.octets = octets
        self.begin = begin
        self.end = end
        self.number = number
        self.ts_ns = ts_ns
        self.start = start
        self.captured = captured
        self.original = original
        self.link_type = link_type
        self.passed = passed
        self.order_ns = ts_ns if order_ns is None else order_ns
        self.set_back_ns = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def __repr__(self) -> str:
        return f"<PacketBatch {self.capture} {self.end - self.begin} packets>"

    def slice(self, begin: int, end: int) -> PacketBatch:
        """Rows `begin` to `end - 1`, counted as in the attributes; nothing is copied."""
        if not self.begin <= begin <= end <= self.end:
            raise IndexError(f"rows {begin}:{end} are not within {self.begin}:{self.end}")
        return PacketBatch(
            self.capture,
            self.octets,
            begin,
            end,
            self.number,
            self.ts_ns,
            self.start,
            self.captured,
            self.original,
            self.link_type,
            self.passed,
            self.order_ns,
        )

    def packet(self, row: int) -> bytes:
        """The captured bytes of one row."""
        start = self.start[row]
        return self.octets[start : start + self.captured[row]]


class PacketRows:
    """The columns of a batch while a reader fills them: `capacity` rows, doubled by `grow`.

    A row is uninitialized before it is filled.
    """

    __slots__ = ("capacity", *_COLUMNS)

    number: memoryview
    ts_ns: memoryview
    start: memoryview
    captured: memoryview
    original: memoryview
    link_type: memoryview

    def __init__(self, octets: int) -> None:
        self.capacity = max(MIN_ROWS, octets // BYTES_PER_ROW)
        for column in _COLUMNS:
            setattr(self, column, memoryview(room_for(8 * self.capacity)).cast("q"))

    def grow(self) -> None:
        """Double the rows; rows already filled stay."""
        for column in _COLUMNS:
            larger = memoryview(room_for(16 * self.capacity)).cast("q")
            larger[: self.capacity] = getattr(self, column)
            setattr(self, column, larger)
        self.capacity *= 2

    def batch(self, capture: str, octets: bytes, count: int) -> PacketBatch:
        """The first `count` rows as a batch over `octets`; the rows must not be filled again."""
        columns = [getattr(self, column)[:count] for column in _COLUMNS]
        return PacketBatch(capture, octets, 0, count, *columns)
