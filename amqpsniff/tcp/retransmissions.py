# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Retransmissions: compares their bytes with the delivered ones, and counts how long they come.

`History` has the last segments that were delivered, to compare retransmissions with. One ring of
rows serves all half-streams; a row names its half-stream's previous row, so that each half-stream
has a chain from its newest segment back. Rows have positions, not bytes: the blocks of packets are
kept alive instead, for `Limits.history_bytes` captured bytes. The age of a row is counted in
packets, so it does not depend on batches.

`Resent` times bytes that a side retransmits repeatedly, because no acknowledgement reaches it. TCP
retransmits the first unacknowledged bytes, at growing intervals, until an acknowledgement arrives
(RFC 6298 §5). The duration shows how long the path was cut, even if AMQP was silent then.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.tcp.codes import (
    HISTORY_CONFLICT,
    HISTORY_SAME_PACKET,
    SENT_BLOCK,
    SENT_FIELDS,
    SENT_IDENTIFICATION,
    SENT_LENGTH,
    SENT_NUMBER,
    SENT_OFFSET,
    SENT_POSITION,
    SENT_PREVIOUS,
    SENT_SEEN,
    SENT_TS_NS,
)
from cython.cimports.amqpsniff.tcp.limits import NO_TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Rows of the ring: more than `Limits.history_bytes` of captured packets of 512 bytes.
ROWS = cython.declare(cython.longlong, 16_384)


@cython.cclass
class History:
    """Positions of the bytes of the last segments; one object for all half-streams.

    The argument `seen` of its methods is the number of bytes of packets captured so far.
    """

    segments: cython.longlong  # how many of a half-stream are compared at most
    octets: cython.longlong  # for how many captured bytes they are kept
    duplicate_ns: cython.longlong  # see `Limits`

    table: cython.longlong[::1]  # the ring of rows, whose columns `codes` names
    head: cython.longlong  # number of the next row
    blocks: dict[Any, Any]  # blocks of packets by number
    blocks_made: cython.longlong
    block: cython.longlong  # the number of the batch's block
    order: Any  # [number, bytes seen up to its last row] of each block, oldest first
    entry: list[Any]  # that of the batch's block

    # the packet being read
    seen: cython.longlong  # bytes of packets captured up to it
    identification: cython.longlong  # of the IP packet, -1 if it has none

    # the packet that had the first of the bytes compared last, -1 if unknown
    sent_number: cython.longlong
    sent_ns: cython.longlong

    def __init__(self, limits: Any) -> None:
        self.segments = limits.history_segments
        self.octets = limits.history_bytes
        self.duplicate_ns = limits.duplicate_ns
        self.table = array("q", [0]) * (ROWS * SENT_FIELDS)
        self.head = 0
        self.blocks = {}
        self.order: Any = deque()
        self.block = -1
        self.blocks_made = 0
        self.seen = 0
        self.identification = self.sent_number = self.sent_ns = -1

    @cython.ccall
    @cython.exceptval(-1)
    def remember(self, octets: Any, seen: cython.longlong) -> cython.longlong:
        """Keep a block alive; gives its number."""
        serial: cython.longlong = self.blocks_made
        self.blocks_made += 1
        self.blocks[serial] = octets
        self.order.append([serial, seen])
        return serial

    @cython.ccall
    @cython.exceptval(-1)
    def begin_batch(self, octets: Any, seen: cython.longlong) -> cython.int:
        """Packets from here on are in `octets`: it becomes `block`."""
        while self.order and self.order[0][1] < seen - self.octets:
            del self.blocks[self.order.popleft()[0]]
        if self.blocks.get(self.block) is not octets:
            self.block = self.remember(octets, seen)
            self.entry = self.order[len(self.order) - 1]
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def end_batch(self, seen: cython.longlong) -> cython.int:
        """The batch's last packet was read: its block has rows up to here."""
        self.entry[1] = seen
        return 0

    def add(
        self,
        previous: cython.longlong,
        block: cython.longlong,
        position: cython.longlong,
        offset: cython.longlong,
        length: cython.longlong,
        seen: cython.longlong,
        ts_ns: cython.longlong,
        packet: cython.longlong,
    ) -> cython.longlong:
        """Remember a segment; gives its row number, to be given as `previous` with the next one."""
        row: cython.longlong = (self.head & (ROWS - 1)) * SENT_FIELDS
        with cython.boundscheck(False):  # the table has as many rows
            self.table[row + SENT_PREVIOUS] = previous
            self.table[row + SENT_BLOCK] = block
            self.table[row + SENT_POSITION] = position
            self.table[row + SENT_OFFSET] = offset
            self.table[row + SENT_LENGTH] = length
            self.table[row + SENT_SEEN] = seen
            self.table[row + SENT_TS_NS] = ts_ns
            self.table[row + SENT_IDENTIFICATION] = self.identification
            self.table[row + SENT_NUMBER] = packet
        self.head += 1
        return self.head - 1

    def copies(
        self, identification: cython.longlong, before_ns: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """True if the packet being read is the one that was captured at `before_ns`, once more.

        A retransmission is another IP packet with another identification. The clocks of two
        capturing hosts may differ. For packets without identification (IPv6, or 0) only the time
        decides, by `Limits.duplicate_ns`.
        """
        if identification != self.identification:
            return 0
        return identification > 0 or _near(before_ns, ts_ns, self.duplicate_ns)

    def compare(
        self,
        last: cython.longlong,
        octets: bytes,
        position: cython.longlong,
        offset: cython.longlong,
        length: cython.longlong,
        seen: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Compare a segment with the chain that ends in row `last`.

        Returns `HISTORY_CONFLICT` if common bytes differ, plus `HISTORY_SAME_PACKET` if it is a
        copy of one of them. A segment older than the history also counts as a copy if its
        identification is before the newest one: a retransmission has a later identification.
        """
        result: cython.int = 0
        number: cython.longlong = last
        row: cython.longlong
        first: cython.longlong
        stop: cython.longlong
        sent_offset: cython.longlong
        sent_at: cython.longlong
        at: cython.longlong
        identification: cython.longlong
        _step: cython.longlong
        forgotten: cython.bint = True
        newest: cython.longlong = -1
        self.sent_number = self.sent_ns = -1
        for _step in range(self.segments):
            if number < 0 or number + ROWS < self.head:
                break
            row = (number & (ROWS - 1)) * SENT_FIELDS
            if seen - self.table[row + SENT_SEEN] > self.octets:
                break
            if newest < 0:
                newest = self.table[row + SENT_IDENTIFICATION]
            number = self.table[row + SENT_PREVIOUS]
            sent_offset = self.table[row + SENT_OFFSET]
            if sent_offset == offset and self.table[row + SENT_LENGTH] == length:
                identification = self.table[row + SENT_IDENTIFICATION]
                if self.copies(identification, self.table[row + SENT_TS_NS], ts_ns):
                    result |= HISTORY_SAME_PACKET
            first = max(offset, sent_offset)
            stop = min(offset + length, sent_offset + self.table[row + SENT_LENGTH])
            if stop <= offset:
                forgotten = False
                break  # it was delivered before these bytes, and so were all before it
            if first < stop:
                self.sent_number = self.table[row + SENT_NUMBER]
                self.sent_ns = self.table[row + SENT_TS_NS]
                block = self.blocks[self.table[row + SENT_BLOCK]]
                sent_at = self.table[row + SENT_POSITION] + first - sent_offset
                at = position + first - offset
                if block[sent_at : sent_at + stop - first] != octets[at : at + stop - first]:
                    result |= HISTORY_CONFLICT
        if forgotten and self.sent_number < 0 and self.identification > 0 and newest > 0:
            if 0 < (newest - self.identification) & 0xFFFF < 0x8000:
                result |= HISTORY_SAME_PACKET
        return result


@cython.cfunc
@cython.exceptval(-1, check=True)
def _near(a: cython.longlong, b: cython.longlong, distance: cython.longlong) -> cython.int:
    """True if two times, if known, lie within `distance`; halved, so that nothing overflows."""
    if a == NO_TIME or b == NO_TIME:
        return 0
    if a < b:
        a, b = b, a
    return (a >> 1) - (b >> 1) <= distance >> 1


class ResentTime(NamedTuple):
    """The longest time in which a side sent the same bytes again.

    Attributes:
        packet_number, start_ns: Packet and time of the first transmission, if captured.
        last_ns: Time of the last transmission.
        times: Number of retransmissions.
        heard_ns: Time of the other side's last packet before that.
        acked: True if the capture shows their acknowledgement, which did not reach the side.
        is_last: True if the side sent no later bytes.
    """

    packet_number: int
    start_ns: int
    last_ns: int
    times: int
    heard_ns: int
    acked: bool
    is_last: bool

    @property
    def lasted_ns(self) -> int:
        """From the first time to the last one; 0 where packets have no times."""
        return 0 if self.start_ns == NO_TIME else max(0, self.last_ns - self.start_ns)


class Resent:
    """The bytes from `seq` on that a side sends again; `longest` is the longest time before."""

    __slots__ = ("seq", "first", "last", "times", "next_offset", "longest")

    def __init__(self, seq: int, packet_number: int, start_ns: int, before: Resent | None) -> None:
        self.seq, self.first, self.times = seq, (packet_number, start_ns), 0
        self.longest = None if before is None else before.time(-1)

    def again(self, ts_ns: int, heard_ns: int, acked: bool, next_offset: int) -> None:
        """Count a retransmission; so far only bytes before `next_offset` were sent."""
        self.times += 1
        self.last = ts_ns, heard_ns, acked
        self.next_offset = next_offset

    def time(self, next_offset: int) -> ResentTime:
        """The longest time; `next_offset` is the side's next byte."""
        ts_ns, heard_ns, acked = self.last
        is_last = next_offset == self.next_offset
        now = ResentTime(*self.first, ts_ns, self.times, heard_ns, acked, is_last)
        before = self.longest
        return now if before is None or now.lasted_ns >= before.lasted_ns else before
