# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One direction of a conversation: segments in any order in, bytes in order and gaps out.

Positions are 64-bit offsets from the byte after the SYN (or from the first byte captured). A
segment's 32-bit sequence number is placed relative to `next_seq`, the number of the byte at
`next_offset` that is waited for, so that the wrap at 2^32 is nowhere else.

Invariants: every offset below `next_offset` was delivered once, as bytes or as a gap; held pieces
begin above it; no piece lies beyond `fin_offset` once that is known.

Bytes that arrive out of order are held in pieces, disjoint and in order. If two segments overlap,
the bytes captured first stay: a new segment fills the free ranges, which may be several. Held bytes
are bounded by `Limits.held_bytes` and `held_bytes_total`.

`amqpsniff.tcp.out_of_order`, which sees both directions, decides when held bytes are delivered and
holes are given up. This module knows no conversation, and of the other direction only the
numbers that a segment is compared with.

A side's TCP window is closed from a segment with window 0 to the side's next one with another
window. It counts only if the other side had bytes to send: it then sends probes, which repeat the
byte before the next one or carry the next one (RFC 9293 §3.8.6.1). Bytes beyond the next one are
sent only to an open window. If the segment that opened it was not captured, the window counts as
closed until the last segment with window 0.
"""

from __future__ import annotations

from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp.codes import (
    ACK,
    ACKNOWLEDGED,
    CAPTURED,
    CONFLICT,
    DATA,
    EXTRA,
    FLAGS,
    GAP,
    HISTORY_CONFLICT,
    HISTORY_SAME_PACKET,
    LENGTH,
    MASK,
    NO_WINDOW,
    OUT_OF_ORDER,
    RANGE32,
    RETRANSMITTED,
    SAME_PACKET,
    SEEN,
    SEQ,
    SIGN32,
    START,
    SYN,
)
from cython.cimports.amqpsniff.tcp.limits import (
    HELD_SEGMENT_BYTES,
    MIN_RESENT_NS,
    NEVER,
    NO_TIME,
)
from cython.cimports.amqpsniff.tcp.retransmissions import History
from cython.cimports.amqpsniff.tcp.stream import EventWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@cython.no_gc
@cython.cclass
class Segment:
    """A TCP segment: the columns of its row, see `codes`, and its packet.

    For all that does not go through the loop of `reassembly`, which reads the row of a segment
    where it stands, since an object for each would cost too much.
    """

    rows: cython.longlong[::1]
    at: cython.longlong  # where its row begins in `rows`
    number: cython.longlong  # of its packet, with the index of its capture
    ts_ns: cython.longlong  # of its packet
    seq: cython.longlong
    payload_seq: cython.longlong  # of the first byte of its payload, behind that of a SYN
    ack: cython.longlong
    flags: cython.int
    octets: bytes  # the bytes that its payload is in
    extra: cython.longlong  # where these are in `extra`, -1 for those of the batch
    start: cython.longlong  # of its payload in `octets`
    captured: cython.longlong
    length: cython.longlong
    seen: cython.longlong  # bytes of packets captured up to it

    def read(
        self,
        writer: EventWriter,
        octets: bytes,
        rows: cython.longlong[::1],
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Take the values of the row at `at`; `octets` are the bytes of the batch."""
        self.rows, self.at = rows, at
        self.number, self.ts_ns = number, ts_ns
        self.seq, self.ack = rows[at + SEQ], rows[at + ACKNOWLEDGED]
        self.flags = rows[at + FLAGS]
        self.payload_seq = (self.seq + 1) & MASK if self.flags & SYN else self.seq
        self.extra = rows[at + EXTRA]
        self.octets = octets if self.extra < 0 else writer.extra[self.extra]
        self.start, self.captured = rows[at + START], rows[at + CAPTURED]
        self.length, self.seen = rows[at + LENGTH], rows[at + SEEN]
        return 0


# Results of `Held.add`.
ADDED = cython.declare(cython.int, 1)
DIFFERS = cython.declare(cython.int, 2)


def later(ts_ns: cython.longlong, wait_ns: cython.longlong) -> cython.longlong:
    """The time `wait_ns` after `ts_ns`; `NEVER` when that has no time or does not fit."""
    if ts_ns == NO_TIME or ts_ns >= NEVER - wait_ns:
        return NEVER
    return ts_ns + wait_ns


@cython.cclass
class HoldingPool:
    """Shared state of all half-streams: limits, writer, history, and the number of held bytes."""

    writer: EventWriter
    history: History
    limits: Any
    total: cython.longlong  # bytes held by all half-streams
    max_total: cython.longlong  # bounds of `Limits`: bytes held by all,
    max_bytes: cython.longlong  # bytes and segments held by one,
    max_segments: cython.longlong
    max_ahead: cython.longlong  # bytes that a segment may lie ahead or behind
    max_behind: cython.longlong

    def __init__(self, limits: Any, writer: EventWriter, history: History) -> None:
        self.limits = limits
        self.writer = writer
        self.history = history
        self.max_ahead = limits.impossible_ahead_bytes
        self.max_behind = limits.impossible_behind_bytes
        self.total = 0
        self.max_total = limits.held_bytes_total
        self.max_bytes = limits.held_bytes
        self.max_segments = limits.held_segments


@cython.cclass
class Piece:
    """A range of a half-stream that is held back."""

    start: cython.longlong  # offsets of the half-stream
    end: cython.longlong
    octets: bytes  # fewer than in the range where a snap length cut the packet
    number: cython.longlong  # of its packet
    ts_ns: cython.longlong
    identification: cython.longlong  # of its IP packet, -1 for none
    needs: cython.longlong  # the offset of the other direction that it acknowledges


@cython.cfunc
def piece_of(
    start: cython.longlong,
    end: cython.longlong,
    octets: bytes,
    number: cython.longlong,
    ts_ns: cython.longlong,
    identification: cython.longlong,
    needs: cython.longlong,
) -> Piece:
    """A piece with these attributes."""
    piece: Piece = Piece.__new__(Piece)
    piece.start = start
    piece.end = end
    piece.octets = octets
    piece.number = number
    piece.ts_ns = ts_ns
    piece.identification = identification
    piece.needs = needs
    return piece


@cython.cclass
class Held:
    """The pieces of one half-stream: those of a list from index `head` on."""

    head: cython.Py_ssize_t
    octets: cython.longlong  # bytes of the pieces, and `HELD_SEGMENT_BYTES` for each

    pool: HoldingPool
    pieces: list[Any]

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.pieces = []
        self.head = 0
        self.octets = 0

    def count(self) -> cython.Py_ssize_t:
        """Number of pieces."""
        return len(self.pieces) - self.head

    @cython.cfunc
    def front(self) -> Piece:
        """The first piece; there must be one."""
        return self.pieces[self.head]

    @cython.exceptval(-2)
    def first(self) -> cython.longlong:
        """Start of the first piece; -1 without pieces."""
        piece: Piece
        if self.count() == 0:
            return -1
        piece = self.pieces[self.head]
        return piece.start

    @cython.exceptval(-2)
    def end(self) -> cython.longlong:
        """End of the last piece; -1 without pieces."""
        piece: Piece
        if self.count() == 0:
            return -1
        piece = self.pieces[len(self.pieces) - 1]
        return piece.end

    @cython.exceptval(-2)
    def run_end(self) -> cython.longlong:
        """End of the contiguous pieces from the first on; there must be one."""
        piece: Piece
        index: cython.Py_ssize_t
        position: cython.longlong = self.first()
        for index in range(self.head, len(self.pieces)):
            piece = self.pieces[index]
            if piece.start != position:
                break
            position = piece.end
        return position

    @cython.exceptval(-2)
    def after(self, position: cython.longlong) -> cython.longlong:
        """Start of the first piece at or after a position; -1 for none."""
        piece: Piece
        index: cython.Py_ssize_t = self._index(position)
        if index >= len(self.pieces):
            return -1
        piece = self.pieces[index]
        return piece.start

    @cython.exceptval(-2)
    def _index(self, position: cython.longlong) -> cython.Py_ssize_t:
        """Index of the first piece at or after a position."""
        piece: Piece
        low: cython.Py_ssize_t = self.head
        high: cython.Py_ssize_t = len(self.pieces)
        middle: cython.Py_ssize_t = high - 1  # mostly nothing lies behind it
        while low < high:
            piece = self.pieces[middle]
            if piece.start < position:
                low = middle + 1
            else:
                high = middle
            middle = (low + high) >> 1
        return low

    def full(self) -> cython.bint:
        """True if this half-stream, or all together, hold more than they may."""
        pool: HoldingPool = self.pool
        if self.count() > pool.max_segments:
            return True
        return self.octets > pool.max_bytes or pool.total > pool.max_total

    @cython.cfunc
    def find(self, start: cython.longlong, end: cython.longlong) -> Piece:
        """The piece that is exactly this range, or None."""
        piece: Piece
        index: cython.Py_ssize_t = self._index(start)
        if index < len(self.pieces):
            piece = self.pieces[index]
            if piece.start == start and piece.end == end:
                return piece
        return None

    def add(self, piece: Piece) -> cython.int:
        """Hold what of `piece` is not held yet.

        Gives `ADDED` if anything was, and `DIFFERS` if bytes that were held already differ.
        """
        neighbor: Piece
        index: cython.Py_ssize_t = self._index(piece.start)
        position: cython.longlong = piece.start
        stop: cython.longlong
        result: cython.int = 0
        if index > self.head:
            neighbor = self.pieces[index - 1]
            if neighbor.end > piece.start:
                index -= 1
        while position < piece.end:
            neighbor = self.pieces[index] if index < len(self.pieces) else None
            if neighbor is None or position < neighbor.start:
                stop = piece.end if neighbor is None else min(neighbor.start, piece.end)
                index = self._insert(index, piece, position, stop)
                result |= ADDED
                position = stop
            else:
                if _differ(neighbor, piece):
                    result |= DIFFERS
                position = neighbor.end
            index += 1
        return result

    def _insert(
        self, index: cython.Py_ssize_t, piece: Piece, start: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Hold the range `start`..`end` of a piece before those from `index` on; its index."""
        if start != piece.start or end != piece.end:
            octets: bytes = piece.octets[start - piece.start : end - piece.start]
            piece = piece_of(
                start, end, octets, piece.number, piece.ts_ns, piece.identification, piece.needs
            )
        if index == len(self.pieces):
            self.pieces.append(piece)
        elif index > self.head:  # moves those behind it at once, where `insert` moves one by one
            self.pieces[index:index] = [piece]
        else:  # before all: there is room for half as many more, for they may come so
            if self.head == 0:
                self.head = len(self.pieces) // 2 + 8
                self.pieces[:0] = [None] * self.head
            self.head -= 1
            index = self.head
            self.pieces[index] = piece
        self._account(len(piece.octets) + HELD_SEGMENT_BYTES)
        return cython.cast(cython.int, index)

    def _account(self, octets: cython.longlong) -> cython.int:
        self.octets += octets
        self.pool.total += octets
        return 0

    @cython.cfunc
    def take_front(self) -> Piece:
        """Remove and give the first piece."""
        piece: Piece = self.pieces[self.head]
        self.pieces[self.head] = None
        self.head += 1
        if self.head * 2 >= len(self.pieces):
            del self.pieces[: self.head]
            self.head = 0
        self._account(-len(piece.octets) - HELD_SEGMENT_BYTES)
        return piece


@cython.cfunc
@cython.exceptval(-1, check=True)
def _differ(piece: Piece, other: Piece) -> cython.bint:
    """True if two pieces have captured bytes of one place that are not the same."""
    start: cython.longlong = max(piece.start, other.start)
    end: cython.longlong = min(piece.start + len(piece.octets), other.start + len(other.octets))
    if start >= end:
        return False
    return (
        piece.octets[start - piece.start : end - piece.start]
        != other.octets[start - other.start : end - other.start]
    )


class ZeroWindow(NamedTuple):
    """The times that a side's TCP window was 0 while the other side had something to send.

    `packet_number` is the packet that closed it first, `start_ns` its time, `times` how often it
    was closed, `total_ns` for how long in all, and `longest_ns` at most.
    """

    packet_number: int
    start_ns: int
    times: int
    total_ns: int
    longest_ns: int


@cython.no_gc
@cython.cclass
class HalfStream:
    """State of one direction of a conversation.

    There may be very many: rare facts are in one object, and none is part of a reference cycle.
    """

    pool: HoldingPool
    index: cython.int  # its number in rows of events: slot * 2 + direction
    cell: cython.int  # the cell of `Reassembler.cache` that names it, -1 for none
    open: cython.schar  # its conversation has not ended
    slow: cython.schar  # the next segment may not be ordinary, and is for `SlowPath`
    doubted: cython.schar  # a segment that may end the conversation is in doubt, see `doubt`

    # position in the stream
    syn_captured: cython.schar  # a SYN of it was captured
    isn: cython.longlong  # initial sequence number, -1 while unknown
    next_seq: cython.longlong  # number of the byte at `next_offset`, -1 while unknown
    next_offset: cython.longlong  # all bytes before it were handed on
    held: Held  # pieces behind it, None before the first one
    fin_offset: cython.longlong  # where a FIN ends the stream, -1 while unknown
    fin_number: cython.longlong  # the packet of that FIN
    fin_ns: cython.longlong
    delivered_number: cython.longlong  # the packet of the bytes handed on last
    delivered_ns: cython.longlong
    last_row: cython.longlong  # row of these bytes in `History`, -1 for none

    # bytes shown to be sent by the number of an empty segment
    sent: cython.longlong  # the highest offset
    sent_ns: cython.longlong  # the time of the first segment that shows it

    # acknowledgements by the other side
    ack_seen: cython.schar  # there was one
    ack_seq: cython.uint  # number of the last one
    acked: cython.longlong  # the highest offset acknowledged
    fin_acked: cython.schar
    acked_late_ns: cython.longlong  # time of a delayed one of all that was sent, 0 for none
    awaited_acks: cython.longlong  # see `Conversation`

    # counts
    packets: cython.longlong
    copies: cython.longlong  # packets among them that had been captured already
    empty_seen: cython.longlong  # identifications of the last three without payload, 16 bits each
    retransmissions: cython.longlong
    gaps: cython.longlong
    lost_bytes: cython.longlong  # those of the gaps
    cut_bytes: cython.longlong  # those that the snap length cut off

    # the last packet
    last_number: cython.longlong
    last_ns: cython.longlong
    activity: cython.longlong  # how many segments of all conversations were read, with this one

    # bytes that are missing
    waiting_until: cython.longlong  # the half-stream waits for bytes before this offset; -1 if not
    waiting_acked: cython.schar  # `ack_seen` when the wait began
    deadline_segments: (
        cython.longlong
    )  # the wait ends at this number of the conversation's segments
    deadline_ns: cython.longlong  # or at this time
    abandoned_below: cython.longlong  # holes before this offset are given up
    not_captured: cython.schar  # bytes are acknowledged and not in the capture: none are waited for

    # end of the conversation after FINs or a RST
    linger_ns: cython.longlong  # its time, `NEVER` for none
    linger_turn: cython.longlong  # the order of those at one time

    # segments that lie where they cannot
    impossible_count: cython.int  # how many in a row follow each other
    impossible_seq: cython.uint  # the number behind the last one

    # bytes sent again
    first_retransmission: tuple[Any, ...]  # (packet number, ts_ns)
    resent: Any  # a `Resent`
    repeated: tuple[Any, ...]  # the last segment: (offset, length, identification, ts_ns)

    # zero windows of the side that sends this direction
    closed_window: tuple[Any, ...]  # the present one: (packet number, its time, last time, ack)
    probed: cython.schar  # the other side had something to send to it
    zero_windows: Any  # a `ZeroWindow` of those that are over

    def __init__(self, pool: Any, index: int) -> None:
        self.pool = pool
        self.index = index
        self.cell = -1
        self.held = None
        self.open = 1
        self.slow = 1
        self.isn = self.next_seq = self.fin_offset = -1
        self.next_offset = self.acked = self.sent = self.sent_ns = 0
        self.ack_seen = self.fin_acked = self.syn_captured = 0
        self.ack_seq = 0
        self.doubted = 0
        self.last_row = -1
        self.packets = self.retransmissions = self.gaps = self.lost_bytes = 0
        self.copies = self.empty_seen = 0
        self.cut_bytes = 0
        self.last_number = self.last_ns = self.activity = 0
        self.acked_late_ns = self.awaited_acks = 0
        self.delivered_number = self.delivered_ns = 0
        self.waiting_until = self.abandoned_below = -1
        self.waiting_acked = self.not_captured = 0
        self.deadline_segments = self.deadline_ns = 0
        self.linger_ns = NEVER
        self.linger_turn = 0
        self.impossible_count = 0
        self.impossible_seq = 0
        self.probed = 0
        self.first_retransmission = self.resent = self.repeated = None
        self.closed_window = self.zero_windows = None

    @property
    def octets(self) -> int:
        """Bytes of the stream that were captured."""
        return self.next_offset - self.lost_bytes - self.cut_bytes

    def count(
        self, number: cython.longlong, ts_ns: cython.longlong, segment_serial: cython.longlong
    ) -> cython.int:
        """Count a packet; `segment_serial`: see `activity`."""
        self.packets += 1
        self.last_number = number
        self.last_ns = ts_ns
        self.activity = segment_serial
        return 0

    def count_empty(self, identification: cython.longlong) -> cython.bint:
        """Count a segment without payload as a copy if it is the same IP packet as one of the last
        three; gives whether it is. `identification`: of its IP packet; without one there is no
        telling.
        """
        seen: cython.longlong = self.empty_seen
        if identification <= 0:
            return False
        if identification in (seen & 0xFFFF, seen >> 16 & 0xFFFF, seen >> 32):
            self.copies += 1
            return True
        self.empty_seen = (seen & 0xFFFFFFFF) << 16 | identification
        return False

    def start_at(self, seq: cython.longlong) -> cython.int:
        """The byte numbered `seq` is the first one: offset 0."""
        self.next_seq = seq & MASK
        self.next_offset = 0
        return 0

    def ahead(self, seq: cython.longlong) -> cython.longlong:
        """Distance of `seq` from the next expected byte; negative before it."""
        distance: cython.longlong = (seq - self.next_seq) & MASK
        return distance - RANGE32 if distance >= SIGN32 else distance

    def possible(self, seq: cython.longlong) -> cython.bint:
        """True if a segment can lie at `seq`, given where the half-stream is."""
        distance: cython.longlong
        if self.next_seq < 0:
            return True
        distance = self.ahead(seq)
        if self.isn >= 0 and self.next_offset + distance < -1:
            return False  # before the first byte; a keep-alive is one before it at most
        return -self.pool.max_behind <= distance <= self.pool.max_ahead

    def offset_of(self, ack: cython.longlong) -> cython.longlong:
        """The offset before which the other side has every byte, if that is ahead; otherwise 0."""
        distance: cython.longlong
        if self.next_seq < 0:
            return 0
        distance = self.ahead(ack)
        return self.next_offset + distance if 0 < distance <= self.pool.max_ahead else 0

    def acknowledge(self, ack: cython.longlong) -> cython.int:
        """The other side has every byte before the one numbered `ack`."""
        self.ack_seen = 1
        self.ack_seq = ack
        if self.fin_offset >= 0 and self.offset_of(ack) > self.fin_offset:
            self.fin_acked = 1
        self.acked = max(self.acked, self._before_fin(self.offset_of(ack)))
        return 0

    def sent_before(self, seq: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """Every byte before `seq` was sent, because an empty segment has this number. The bytes may
        be lost, and sent again.
        """
        offset: cython.longlong = self._before_fin(self.offset_of(seq))
        if offset > self.sent:
            self.sent, self.sent_ns = offset, ts_ns
        return 0

    @cython.exceptval(-2)
    def _before_fin(self, offset: cython.longlong) -> cython.longlong:
        return min(offset, self.fin_offset) if self.fin_offset >= 0 else offset

    @cython.exceptval(-2)
    def known_end(self) -> cython.longlong:
        """End of the bytes that were certainly sent, apart from held ones."""
        return max(self.acked, self.sent)

    def finish_at(
        self, seq: cython.longlong, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """A FIN stands after the byte before `seq`; the first one that is possible counts."""
        offset: cython.longlong = self.next_offset + self.ahead(seq)
        if self.fin_offset >= 0 or offset < self.next_offset:
            return False
        if self.held is not None and self.held.end() > offset:
            return False
        self.fin_offset = offset
        self.fin_number = number
        self.fin_ns = ts_ns
        self.sent = min(self.sent, offset)
        if self.acked > offset:
            self.acked = offset
            self.fin_acked = 1
        return True

    def holds(self) -> cython.bint:
        """True if bytes are held back."""
        return self.held is not None and self.held.count() > 0

    def finished(self) -> cython.bint:
        """True if everything up to the FIN was handed on."""
        return self.fin_offset >= 0 and self.next_offset == self.fin_offset

    def captured_end(self) -> cython.longlong:
        """End of the captured or acknowledged bytes, also after holes; a FIN counts as a byte."""
        end: cython.longlong = max(self.next_offset, self.known_end())
        if self.holds():
            end = max(end, self.held.end())
        return max(end, self.fin_offset + 1) if self.fin_offset >= 0 else end

    def acknowledged(self) -> cython.longlong:
        """The offset that the other side acknowledged last; unknown: as far back as can be."""
        if not self.ack_seen:
            return self.next_offset - self.pool.limits.closed_near_bytes
        return self.next_offset + self.ahead(self.ack_seq)

    def differs(self, segment: Segment, offset: cython.longlong) -> cython.bint:
        """True if bytes at an offset differ from those captured there before."""
        result: cython.int = self._compare(segment, segment.start, offset, segment.captured)
        return result & HISTORY_CONFLICT != 0

    def _compare(
        self,
        segment: Segment,
        start: cython.longlong,
        offset: cython.longlong,
        captured: cython.longlong,
    ) -> cython.int:
        """Compare a part of a segment with the delivered bytes, see `History.compare`."""
        return self.pool.history.compare(
            self.last_row, segment.octets, start, offset, captured, segment.seen, segment.ts_ns
        )

    def needs_care(self, other: HalfStream) -> cython.bint:
        """True if the next segment may not be ordinary; `other` is the other direction."""
        if self.next_seq < 0 or self.impossible_count > 0 or self.not_captured:
            return True
        if self.holds():
            return True
        if self.isn >= 0 and other.isn >= 0 and not other.ack_seen:
            return True  # the acknowledgement that ends the handshake, which is timed
        return other.next_seq < 0 and self.isn >= 0 and self.next_offset == 0

    def count_impossible(self, seq: cython.longlong, length: cython.longlong) -> cython.int:
        """Count a segment that lies where it cannot; gives how many in a row follow each other."""
        near: cython.longlong = self.pool.limits.closed_near_bytes
        if self.impossible_count > 0:
            if ((seq - self.impossible_seq + near) & MASK) > 2 * near:
                self.impossible_count = 0
        self.impossible_count += 1
        self.impossible_seq = (seq + length) & MASK
        self.slow = 1
        return self.impossible_count

    def lost_before(self, segment: Segment, round_trip_ns: cython.longlong) -> cython.bint:
        """True if a segment before held bytes was lost before the capture point, and sent again.

        Its sender detects the loss by the answer to later segments, so it comes a round trip after
        these, as a later IP packet, and is not acknowledged yet. `round_trip_ns`: that of the
        handshake, later ones may take half of it; -1 if unknown, then the IP packet decides.
        """
        piece: Piece
        index: cython.Py_ssize_t
        later_by: cython.longlong = 0
        ahead: cython.longlong = self.ahead(segment.payload_seq)
        identification: cython.longlong = self.pool.history.identification
        if not self.holds() or (self.ack_seen and self.ahead(self.ack_seq) > ahead):
            return False
        index = self.held._index(self.next_offset + max(ahead, 0))
        if index >= len(self.held.pieces):
            return False
        piece = self.held.pieces[index]
        if identification > 0 and piece.identification > 0:
            later_by = (identification - piece.identification) & 0xFFFF
        if later_by >= 0x8000 or (later_by == 0 and round_trip_ns < 0):
            return False
        return segment.ts_ns >= later(piece.ts_ns, max(round_trip_ns >> 1, MIN_RESENT_NS))

    def insert(self, segment: Segment, needs: cython.longlong, waits: cython.bint) -> cython.int:
        """Insert the payload of a segment: deliver the next bytes, hold those after a hole.

        `needs`: the offset of the other direction that it acknowledges; `waits`: hold it until that
        offset was delivered. Returns bits: `RETRANSMITTED` and those after it.
        """
        start: cython.longlong = segment.start
        captured: cython.longlong = segment.captured
        offset: cython.longlong = self.next_offset + self.ahead(segment.payload_seq)
        end: cython.longlong = offset + segment.length
        result: cython.int = 0
        before: cython.longlong
        room: cython.longlong
        first: cython.longlong
        self.not_captured = 0
        if self.fin_offset >= 0:
            end = min(end, self.fin_offset)
        if end <= self.next_offset:
            if segment.length <= 1 and offset == self.next_offset - 1:
                return 0  # a keep-alive: its byte, if any, means nothing (RFC 1122 §4.2.3.6)
            return self._count_resent(segment, start, offset, min(captured, segment.length))
        if offset < self.next_offset:
            before = self.next_offset - offset
            result = self._count_resent(segment, start, offset, min(captured, before))
            start += before
            captured = max(captured - before, 0)
            offset = self.next_offset
        captured = min(captured, end - offset)
        first = self.held.first() if self.held is not None else -1
        if waits or offset > self.next_offset or first == offset:
            return result | self._hold(segment, start, captured, offset, end, needs)
        room = end if first < 0 else min(end, first)
        before = min(captured, room - offset)
        self._deliver(
            segment.octets, segment.extra, start, before, room - offset, segment.number,
            segment.ts_ns, segment.seen,
        )  # fmt: skip
        result |= OUT_OF_ORDER if first >= 0 else 0
        if room < end:
            result |= self._hold(segment, start + before, captured - before, room, end, needs)
        return result

    def _count_resent(
        self,
        segment: Segment,
        start: cython.longlong,
        offset: cython.longlong,
        captured: cython.longlong,
    ) -> cython.int:
        """Count bytes that were delivered before, and compare them with those."""
        result: cython.int = self._compare(segment, start, offset, captured)
        if result == HISTORY_SAME_PACKET or self._repeated(offset, captured, segment.ts_ns):
            return SAME_PACKET
        self.retransmissions += 1
        return RETRANSMITTED | (CONFLICT if result & HISTORY_CONFLICT else 0)

    def _repeated(
        self, offset: cython.longlong, length: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """True if the last segment sent again was captured once more; it is remembered if not."""
        if self.repeated is not None:
            last_offset, size, identification, before_ns = self.repeated
            if last_offset == offset and size == length:
                if self.pool.history.copies(identification, before_ns, ts_ns):
                    return True
        self.repeated = offset, length, self.pool.history.identification, ts_ns
        return False

    def _hold(
        self,
        segment: Segment,
        start: cython.longlong,
        captured: cython.longlong,
        offset: cython.longlong,
        end: cython.longlong,
        needs: cython.longlong,
    ) -> cython.int:
        """Keep bytes that lie beyond a hole, or have to wait for the other direction."""
        result: cython.int = 0
        if self.held is None:
            self.held = Held(self.pool)
        stored: Piece = self.held.find(offset, end)
        latest: cython.longlong = self.held.end()
        piece: Piece = piece_of(
            offset,
            end,
            segment.octets[start : start + captured],
            segment.number,
            segment.ts_ns,
            self.pool.history.identification,
            needs,
        )
        outcome: cython.int = self.held.add(piece)
        if outcome & DIFFERS:
            result |= CONFLICT
        if outcome & ADDED:
            result |= OUT_OF_ORDER if offset < latest else 0
        elif (
            stored is not None
            and not result
            and self.pool.history.copies(stored.identification, stored.ts_ns, segment.ts_ns)
        ):
            result |= SAME_PACKET
        else:
            self.retransmissions += 1
            result |= RETRANSMITTED
        return result

    def _deliver(
        self,
        octets: bytes,
        source: cython.int,
        start: cython.longlong,
        captured: cython.longlong,
        length: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
        seen: cython.longlong,
    ) -> cython.int:
        """Deliver the next `length` bytes; `captured` of them were captured."""
        block: cython.longlong
        writer: EventWriter = self.pool.writer
        if captured > 0:
            writer.append(
                DATA, self.index, source, start, captured, self.next_offset, number, ts_ns
            )
            block = self.pool.history.block
            if source >= 0:
                block = self.pool.history.remember(octets, seen)
            self.last_row = self.pool.history.add(
                self.last_row, block, start, self.next_offset, captured, seen, ts_ns, number
            )
            self._advance(captured)
        if captured < length:
            self.lose(length - captured, number, ts_ns)
            self.gaps -= 1
            self.lost_bytes -= length - captured
            self.cut_bytes += length - captured
        self.delivered_number = number
        self.delivered_ns = ts_ns
        return 0

    def _advance(self, octets: cython.longlong) -> cython.int:
        self.next_offset += octets
        self.next_seq = (self.next_seq + octets) & MASK
        return 0

    def lose(
        self, octets: cython.longlong, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """Hand on a gap."""
        self.pool.writer.append(GAP, self.index, -1, 0, octets, self.next_offset, number, ts_ns)
        self.gaps += 1
        self.lost_bytes += octets
        return self._advance(octets)

    def deliver_piece(
        self, piece: Piece, number: cython.longlong, ts_ns: cython.longlong, seen: cython.longlong
    ) -> cython.int:
        """Hand on a piece that was held, as of a packet."""
        identification: cython.longlong = self.pool.history.identification
        self.pool.writer.extra.append(piece.octets)
        self.pool.history.identification = piece.identification
        self._deliver(
            piece.octets,
            len(self.pool.writer.extra) - 1,
            0,
            len(piece.octets),
            piece.end - piece.start,
            number,
            ts_ns,
            seen,
        )
        self.pool.history.identification = identification
        return 0

    def end(self, other: HalfStream, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """End of the direction. Bytes that were certainly sent but not captured are a gap, unless
        the other side sent later segments without acknowledging them: then the network lost them.
        """
        missing: cython.longlong = self.known_end() - self.next_offset
        if other.last_ns >= later(self.sent_ns, self.pool.limits.linger_ns):
            missing = self.acked - self.next_offset
        if self.fin_offset < 0 and missing == 1:
            missing = 0  # a FIN that was not captured
        if missing > 0 and self.next_seq >= 0:
            self.lose(missing, number, ts_ns)
        self.open = 0
        self.held = None
        return 0

    # A window that is closed

    def update_window(self, other: HalfStream, segment: Segment) -> cython.int:
        """Take a segment of this direction that has a zero window, or comes after one that has."""
        closed: cython.bint = segment.flags & NO_WINDOW != 0
        ack: cython.longlong = segment.ack if segment.flags & ACK else -1
        if other.closed_window is not None:
            if segment.length > 0 or ((segment.payload_seq + 1) & MASK) == self.next_seq:
                other.probed = True
        if self.closed_window is not None and (not closed or self._was_open(ack)):
            if self.probed:
                self.zero_windows = self._with_window(ack, segment.ts_ns)
            self.closed_window = None
        if closed:
            if self.closed_window is None:
                number: cython.longlong = segment.number & NUMBER_MASK
                self.closed_window = number, segment.ts_ns, segment.ts_ns, ack
                self.probed = False
            else:
                self.closed_window = (*self.closed_window[:2], segment.ts_ns, ack)
        return 0

    @cython.cfunc
    def zero_window(self, other: HalfStream, end_ns: cython.longlong) -> Any:
        """The `ZeroWindow` of the sender, until `end_ns`; None when nothing waited for it."""
        if self.closed_window is not None and self.probed:
            return self._with_window(other.next_seq, end_ns)
        return self.zero_windows

    @cython.exceptval(-1, check=False)
    def _was_open(self, seq: cython.longlong) -> cython.bint:
        """True if the other side sent more than a probe, up to `seq`, since a window was closed."""
        closed_at: cython.longlong = self.closed_window[3]
        return seq >= 0 and 1 < ((seq - closed_at) & MASK) < 0x80000000

    @cython.cfunc
    def _with_window(self, seq: cython.longlong, end_ns: cython.longlong) -> Any:
        """The `ZeroWindow` with the time that ends now, with bytes up to `seq`."""
        closed_number, closed_ns, seen_ns, _ = self.closed_window
        if self._was_open(seq):
            end_ns = seen_ns
        since: cython.longlong = closed_ns
        lasted: cython.longlong = 0
        if since != NO_TIME and end_ns > since:
            lasted = end_ns - since
        if self.zero_windows is None:
            return ZeroWindow(closed_number, closed_ns, 1, lasted, lasted)
        number, start_ns, times, total_ns, longest_ns = self.zero_windows
        return ZeroWindow(number, start_ns, times + 1, total_ns + lasted, max(longest_ns, lasted))
