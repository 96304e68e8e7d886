# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One direction of a conversation: segments in any order in, bytes in order and gaps out.

Positions are 64-bit offsets from the byte after the SYN (or from the first byte captured). A
segment's 32-bit sequence number is placed relative to `next_seq`, the number of the byte at
`next_offset` that is waited for, so that the wrap at 2^32 is nowhere else.

Invariants: what is below `next_offset` was handed on, as bytes or as a gap, and never is again;
what is held begins above it; nothing lies beyond `fin_offset` once that is known.

Bytes that arrive before the ones they follow are held in pieces, disjoint and in order. Where two
segments overlap, the bytes captured first stay: a new segment fills what is free, which may be
several places. What is held is bounded by `Limits.held_bytes` and `held_bytes_total`.

When what is held is handed on, and holes are given up, is decided in `amqpsniff.tcp.out_of_order`,
which sees both directions. This module knows neither the other one nor the conversation.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.tcp.codes import (
    CONFLICT,
    DATA,
    GAP,
    HISTORY_CONFLICT,
    HISTORY_SAME_PACKET,
    MASK,
    OUT_OF_ORDER,
    RANGE32,
    RETRANSMITTED,
    SAME_PACKET,
    SIGN32,
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

    from amqpsniff.byteorder import IntView

# What `Held.add` found.
ADDED = cython.declare(cython.int, 1)
DIFFERS = cython.declare(cython.int, 2)


def later(ts_ns: cython.longlong, wait_ns: cython.longlong) -> cython.longlong:
    """The time `wait_ns` after `ts_ns`; `NEVER` when that has no time or does not fit."""
    if ts_ns == NO_TIME or ts_ns >= NEVER - wait_ns:
        return NEVER
    return ts_ns + wait_ns


class HoldingPool:
    """What all half-streams hold back together, their limits, writer and history."""

    writer: EventWriter
    history: History
    limits: Any
    total: int
    max_total: int
    max_bytes: int
    max_segments: int
    most_ahead: int
    most_behind: int

    def __init__(self, limits: Any, writer: EventWriter, history: History) -> None:
        self.limits = limits
        self.writer = writer
        self.history = history
        self.most_ahead = limits.impossible_ahead_bytes
        self.most_behind = limits.impossible_behind_bytes
        self.total = 0
        self.max_total = limits.held_bytes_total
        self.max_bytes = limits.held_bytes
        self.max_segments = limits.held_segments


class Piece:
    """A range of a half-stream; `octets` is shorter than it when a snap length cut them.

    `identification` is that of its IP packet, -1 for none; `needs`: what it acknowledges, as an
    offset of the other direction.
    """

    start: int
    end: int
    number: int
    ts_ns: int
    identification: int
    needs: int
    octets: bytes


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


class Held:
    """The pieces of one half-stream, from index `begin` of a list on."""

    begin: int
    octets: int

    pool: HoldingPool
    pieces: list[Any]

    def __init__(self, pool: Any) -> None:
        self.pool = pool
        self.pieces = []
        self.begin = 0
        self.octets = 0

    def count(self) -> cython.Py_ssize_t:
        """How many pieces are held."""
        return len(self.pieces) - self.begin

    def front(self) -> Piece:
        """The first piece; there must be one."""
        return self.pieces[self.begin]

    def first(self) -> cython.longlong:
        """Where the first piece starts; -1 when nothing is held."""
        piece: Piece
        if self.count() == 0:
            return -1
        piece = self.pieces[self.begin]
        return piece.start

    def end(self) -> cython.longlong:
        """Where the last piece ends; -1 when nothing is held."""
        piece: Piece
        if self.count() == 0:
            return -1
        piece = self.pieces[len(self.pieces) - 1]
        return piece.end

    def run_end(self) -> cython.longlong:
        """Where the pieces end that follow each other from the first one; there must be one."""
        piece: Piece
        index: cython.Py_ssize_t
        position: cython.longlong = self.first()
        for index in range(self.begin, len(self.pieces)):
            piece = self.pieces[index]
            if piece.start != position:
                break
            position = piece.end
        return position

    def after(self, position: cython.longlong) -> cython.longlong:
        """Where the first piece at or after a position starts; -1 for none."""
        piece: Piece
        index: cython.Py_ssize_t = self._index(position)
        if index >= len(self.pieces):
            return -1
        piece = self.pieces[index]
        return piece.start

    def _index(self, position: cython.longlong) -> cython.Py_ssize_t:
        """Index of the first piece at or after a position."""
        piece: Piece
        low: cython.Py_ssize_t = self.begin
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
        there: Piece
        index: cython.Py_ssize_t = self._index(piece.start)
        position: cython.longlong = piece.start
        stop: cython.longlong
        found: cython.int = 0
        if index > self.begin:
            there = self.pieces[index - 1]
            if there.end > piece.start:
                index -= 1
        while position < piece.end:
            there = self.pieces[index] if index < len(self.pieces) else None
            if there is None or position < there.start:
                stop = piece.end if there is None else min(there.start, piece.end)
                index = self._insert(index, piece, position, stop)
                found |= ADDED
                position = stop
            else:
                if _differ(there, piece):
                    found |= DIFFERS
                position = there.end
            index += 1
        return found

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
        elif index > self.begin:  # moves those behind it at once, where `insert` moves one by one
            self.pieces[index:index] = [piece]
        else:  # before all: there is room for half as many more, for they may come so
            if self.begin == 0:
                self.begin = len(self.pieces) // 2 + 8
                self.pieces[:0] = [None] * self.begin
            self.begin -= 1
            index = self.begin
            self.pieces[index] = piece
        self._account(len(piece.octets) + HELD_SEGMENT_BYTES)
        return cython.cast(cython.int, index)

    def _account(self, octets: cython.longlong) -> cython.int:
        self.octets += octets
        self.pool.total += octets
        return 0

    def take_front(self) -> Piece:
        """Remove and give the first piece."""
        piece: Piece = self.pieces[self.begin]
        self.pieces[self.begin] = None
        self.begin += 1
        if self.begin * 2 >= len(self.pieces):
            del self.pieces[: self.begin]
            self.begin = 0
        self._account(-len(piece.octets) - HELD_SEGMENT_BYTES)
        return piece


@cython.cfunc
@cython.exceptval(-1, check=True)
def _differ(one: Piece, other: Piece) -> cython.bint:
    """True if two pieces have captured bytes of one place that are not the same."""
    start: cython.longlong = max(one.start, other.start)
    end: cython.longlong = min(one.start + len(one.octets), other.start + len(other.octets))
    if start >= end:
        return False
    return (
        one.octets[start - one.start : end - one.start]
        != other.octets[start - other.start : end - other.start]
    )


@cython.no_gc  # type: ignore[attr-defined]
@cython.cclass
class HalfStream:
    """State of one direction; `index` is its number in the rows (slot * 2 + direction).

    Counts: `packets`, `retransmissions`, `gaps`, `lost_bytes` (those of the gaps), `cut_bytes`
    (those that the snap length cut off). `isn`, `next_seq`, `fin_offset` are -1 while not known.
    `acked` is the highest offset that the other side has acknowledged, `ack_seq` the last number
    that it acknowledged, `sent` the highest offset that empty segments show to have been sent, the
    first of them at `sent_ns`. `doubted`: an end of the conversation is in doubt. `acked_late_ns`:
    time of a delayed acknowledgement of all that was sent, 0 for none; `awaited_acks`: see
    `Conversation`. `shut`, `shuts`: its sender can, or could, take no more; see `zero_window`.
    `first_retransmission`: (packet number, ts_ns), else None. `resent`: see `Resent`.
    `repeated`: the last segment that was sent again, as (offset, length, identification, ts_ns).
    `forsaken`: bytes before this offset are not waited for, and none are while the direction is
    `absent`: acknowledged, but not in the capture. There may be very many: what few have is in one
    object, and none is of a cycle.
    """

    index: int
    cell: int
    open: cython.bint
    slow: cython.bint
    ack_seen: cython.bint
    fin_acked: cython.bint
    waiting_acked: cython.bint
    absent: cython.bint
    isn: int
    next_seq: int
    fin_offset: int
    next_offset: int
    acked: int
    sent: int
    sent_ns: int
    ack_seq: int
    doubted: cython.bint
    last_row: int
    packets: int
    retransmissions: int
    gaps: int
    lost_bytes: int
    cut_bytes: int
    last_number: int
    last_ns: int
    activity: int
    acked_late_ns: int
    awaited_acks: int
    delivered_number: int
    delivered_ns: int
    forsaken: int
    waiting_until: int
    deadline_segments: int
    deadline_ns: int
    linger_ns: int
    linger_turn: int
    strange: int
    probed: cython.bint
    strange_seq: int

    pool: HoldingPool
    held: Held
    fin_number: int
    fin_ns: int
    first_retransmission: tuple[Any, ...]
    resent: Any
    repeated: tuple[Any, ...]
    shut: tuple[Any, ...]
    shuts: Any

    def __init__(self, pool: Any, index: int) -> None:
        self.pool = pool
        self.index = index
        self.cell = -1
        self.held = None
        self.open = 1
        self.slow = 1
        self.isn = self.next_seq = self.fin_offset = -1
        self.next_offset = self.acked = self.sent = self.sent_ns = 0
        self.ack_seen = self.fin_acked = 0
        self.ack_seq = 0
        self.doubted = 0
        self.last_row = -1
        self.packets = self.retransmissions = self.gaps = self.lost_bytes = 0
        self.cut_bytes = 0
        self.last_number = self.last_ns = self.activity = 0
        self.acked_late_ns = self.awaited_acks = 0
        self.delivered_number = self.delivered_ns = 0
        self.waiting_until = self.forsaken = -1
        self.waiting_acked = self.absent = 0
        self.deadline_segments = self.deadline_ns = 0
        self.linger_ns = NEVER
        self.linger_turn = 0
        self.strange = 0
        self.strange_seq = 0
        self.probed = 0
        self.first_retransmission = self.resent = self.repeated = self.shut = self.shuts = None

    @property
    def octets(self) -> int:
        """Bytes of the stream that were captured."""
        return self.next_offset - self.lost_bytes - self.cut_bytes

    def count(
        self, number: cython.longlong, ts_ns: cython.longlong, serial: cython.longlong
    ) -> cython.int:
        """A packet of this direction, the one with this serial number of all segments."""
        self.packets += 1
        self.last_number = number
        self.last_ns = ts_ns
        self.activity = serial
        return 0

    def start_at(self, seq: cython.longlong) -> cython.int:
        """The byte numbered `seq` is the first one: offset 0."""
        self.next_seq = seq & MASK
        self.next_offset = 0
        return 0

    def ahead(self, seq: cython.longlong) -> cython.longlong:
        """How far `seq` is beyond the byte waited for; negative when before it."""
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
        return -self.pool.most_behind <= distance <= self.pool.most_ahead

    def offset_of(self, ack: cython.longlong) -> cython.longlong:
        """The offset before which the other side has every byte, if that is ahead; otherwise 0."""
        distance: cython.longlong
        if self.next_seq < 0:
            return 0
        distance = self.ahead(ack)
        return self.next_offset + distance if 0 < distance <= self.pool.most_ahead else 0

    def acknowledge(self, ack: cython.longlong) -> cython.int:
        """The other side has every byte before the one numbered `ack`."""
        self.ack_seen = 1
        self.ack_seq = ack
        if self.fin_offset >= 0 and self.offset_of(ack) > self.fin_offset:
            self.fin_acked = 1
        self.acked = max(self.acked, self._before_fin(self.offset_of(ack)))
        return 0

    def sent_before(self, seq: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """Every byte before the one numbered `seq` was sent, as an empty segment shows that has
        this number. Whether it arrived is not known: it may come again.
        """
        offset: cython.longlong = self._before_fin(self.offset_of(seq))
        if offset > self.sent:
            self.sent, self.sent_ns = offset, ts_ns
        return 0

    def _before_fin(self, offset: cython.longlong) -> cython.longlong:
        return min(offset, self.fin_offset) if self.fin_offset >= 0 else offset

    def known_end(self) -> cython.longlong:
        """Where the bytes end that are known to have been sent, without those that are held."""
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
        """Where what was captured or acknowledged ends, behind holes too; a FIN counts as one."""
        end: cython.longlong = max(self.next_offset, self.known_end())
        if self.holds():
            end = max(end, self.held.end())
        return max(end, self.fin_offset + 1) if self.fin_offset >= 0 else end

    def acknowledged(self) -> cython.longlong:
        """The offset that the other side acknowledged last; unknown: as far back as can be."""
        if not self.ack_seen:
            return self.next_offset - self.pool.limits.closed_near_bytes
        return self.next_offset + self.ahead(self.ack_seq)

    def differs(
        self,
        octets: bytes,
        start: cython.longlong,
        offset: cython.longlong,
        captured: cython.longlong,
        seen: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.bint:
        """True if bytes at an offset are known to be others than those captured there before."""
        result: cython.int = self.pool.history.compare(
            self.last_row, octets, start, offset, captured, seen, ts_ns
        )
        return result & HISTORY_CONFLICT != 0

    def needs_care(self, other: HalfStream) -> cython.bint:
        """True if the next segment may not be ordinary; `other` is the other direction."""
        if self.next_seq < 0 or self.strange > 0 or self.absent:
            return True
        if self.holds():
            return True
        if self.isn >= 0 and other.isn >= 0 and not other.ack_seen:
            return True  # the acknowledgement that ends the handshake, which is timed
        return other.next_seq < 0 and self.isn >= 0 and self.next_offset == 0

    def stray(self, seq: cython.longlong, length: cython.longlong) -> cython.int:
        """A segment that is impossible; gives how many in a row follow each other."""
        near: cython.longlong = self.pool.limits.closed_near_bytes
        if self.strange > 0 and ((seq - self.strange_seq + near) & MASK) > 2 * near:
            self.strange = 0
        self.strange += 1
        self.strange_seq = (seq + length) & MASK
        self.slow = 1
        return self.strange

    def lost_before(
        self, seq: cython.longlong, ts_ns: cython.longlong, round_trip_ns: cython.longlong
    ) -> cython.bint:
        """True if what comes before bytes that are held was lost on its way here, and sent again.

        Its sender learns of the loss by the answer to what follows, so it comes a round trip after
        that and as a later IP packet, and nobody has acknowledged it. `round_trip_ns`: of the
        handshake, which others may beat by half; -1 for unknown, then the IP packet decides.
        """
        piece: Piece
        index: cython.Py_ssize_t
        later_by: cython.longlong = 0
        identification: cython.longlong = self.pool.history.identification
        if not self.holds() or (self.ack_seen and self.ahead(self.ack_seq) > self.ahead(seq)):
            return False
        index = self.held._index(self.next_offset + max(self.ahead(seq), 0))
        if index >= len(self.held.pieces):
            return False
        piece = self.held.pieces[index]
        if identification > 0 and piece.identification > 0:
            later_by = (identification - piece.identification) & 0xFFFF
        if later_by >= 0x8000 or (later_by == 0 and round_trip_ns < 0):
            return False
        return ts_ns >= later(piece.ts_ns, max(round_trip_ns >> 1, MIN_RESENT_NS))

    def place(
        self,
        octets: bytes,
        rows: IntView,
        at: cython.longlong,
        seq: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
        needs: cython.longlong,
        waits: cython.bint,
    ) -> cython.int:
        """Take the payload of the segment at `at`, captured in `octets`, which begins at `seq`.

        `needs`: the offset of the other direction that it acknowledges, and whether it `waits` for
        that. Gives what was found, as bits.
        """
        source: cython.int = rows[at + 9]
        start: cython.longlong = rows[at + 10]
        captured: cython.longlong = rows[at + 11]
        length: cython.longlong = rows[at + 12]
        seen: cython.longlong = rows[at + 13]
        offset: cython.longlong = self.next_offset + self.ahead(seq)
        end: cython.longlong = offset + length
        found: cython.int = 0
        before: cython.longlong
        room: cython.longlong
        first: cython.longlong
        self.absent = 0
        if self.fin_offset >= 0:
            end = min(end, self.fin_offset)
        if end <= self.next_offset:
            if length <= 1 and offset == self.next_offset - 1:
                return 0  # a keep-alive: its byte, if any, means nothing (RFC 1122 §4.2.3.6)
            return self._old(octets, start, offset, min(captured, length), seen, ts_ns)
        if offset < self.next_offset:
            before = self.next_offset - offset
            found = self._old(octets, start, offset, min(captured, before), seen, ts_ns)
            start += before
            captured = max(captured - before, 0)
            offset = self.next_offset
        captured = min(captured, end - offset)
        first = self.held.first() if self.held is not None else -1
        if waits or offset > self.next_offset or first == offset:
            return found | self._hold(octets, start, captured, offset, end, number, ts_ns, needs)
        room = end if first < 0 else min(end, first)
        before = min(captured, room - offset)
        self._deliver(octets, source, start, before, room - offset, number, ts_ns, seen)
        found |= OUT_OF_ORDER if first >= 0 else 0
        if room < end:
            start += before
            captured -= before
            found |= self._hold(octets, start, captured, room, end, number, ts_ns, needs)
        return found

    def _old(
        self,
        octets: bytes,
        start: cython.longlong,
        offset: cython.longlong,
        captured: cython.longlong,
        seen: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Bytes that were handed on before: count them, compare them with what was."""
        result: cython.int = self.pool.history.compare(
            self.last_row, octets, start, offset, captured, seen, ts_ns
        )
        if result == HISTORY_SAME_PACKET:
            return SAME_PACKET
        if self._repeated(offset, captured, ts_ns):
            return SAME_PACKET
        self.retransmissions += 1
        return RETRANSMITTED | (CONFLICT if result & HISTORY_CONFLICT else 0)

    def _repeated(
        self, offset: cython.longlong, length: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """True if the last segment sent again was captured once more; it is remembered if not."""
        if self.repeated is not None:
            there, size, identification, before_ns = self.repeated
            if there == offset and size == length:
                if self.pool.history.copies(identification, before_ns, ts_ns):
                    return True
        self.repeated = offset, length, self.pool.history.identification, ts_ns
        return False

    def _hold(
        self,
        octets: bytes,
        start: cython.longlong,
        captured: cython.longlong,
        offset: cython.longlong,
        end: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
        needs: cython.longlong,
    ) -> cython.int:
        """Keep bytes that lie beyond a hole, or have to wait for the other direction."""
        found: cython.int = 0
        if self.held is None:
            self.held = Held(self.pool)
        there: Piece = self.held.find(offset, end)
        latest: cython.longlong = self.held.end()
        piece: Piece = piece_of(
            offset,
            end,
            octets[start : start + captured],
            number,
            ts_ns,
            self.pool.history.identification,
            needs,
        )
        added: cython.int = self.held.add(piece)
        if added & DIFFERS:
            found |= CONFLICT
        if added & ADDED:
            found |= OUT_OF_ORDER if offset < latest else 0
        elif (
            there is not None
            and not found
            and self.pool.history.copies(there.identification, there.ts_ns, ts_ns)
        ):
            found |= SAME_PACKET
        else:
            self.retransmissions += 1
            found |= RETRANSMITTED
        return found

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
        """Hand on the next `length` bytes, of which `captured` are there."""
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
        """Nothing more comes: what is known to have been sent but was not seen is a gap, unless the
        other side was still heard of and never acknowledged it: then the network lost it.
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
