# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One direction of a conversation: segments in any order in, octets in order and gaps out.

Positions are 64-bit offsets from the octet after the SYN (or from the first octet captured). A
segment's 32-bit sequence number is placed relative to `next_seq`, the number of the octet at
`next_offset` that is waited for, so that the wrap at 2^32 is nowhere else.

Invariants: what is below `next_offset` was handed on, as octets or as a gap, and never is again;
what is held begins above it; nothing lies beyond `fin_offset` once that is known.

When what is held is handed on, and holes are given up, is decided in `amqpsniff.tcp.order`, which
sees both directions. This module knows neither the other one nor the conversation.
"""

import cython
from cython.cimports.amqpsniff.tcp.events import EventWriter
from cython.cimports.amqpsniff.tcp.history import History

from .holding import Held, Piece
from .limits import NEVER, NO_TIME

DATA = cython.declare(cython.int, 1)
GAP = cython.declare(cython.int, 2)

MASK = cython.declare(cython.longlong, 0xFFFFFFFF)
_RANGE32 = cython.declare(cython.longlong, 1 << 32)
_SIGN32 = cython.declare(cython.longlong, 1 << 31)

# What `place` found; the first two exclude each other. Out of order is what comes after octets that
# follow it.
RETRANSMITTED = cython.declare(cython.int, 1)
SAME_PACKET = cython.declare(cython.int, 2)
OUT_OF_ORDER = cython.declare(cython.int, 4)
CONFLICT = cython.declare(cython.int, 8)

HISTORY_SAME_PACKET = cython.declare(cython.int, 1)
HISTORY_CONFLICT = cython.declare(cython.int, 2)

_NO_TIME = cython.declare(cython.longlong, NO_TIME)
_NEVER = cython.declare(cython.longlong, NEVER)


def later(ts_ns, wait_ns):
    """The time `wait_ns` after `ts_ns`; `NEVER` when that has no time or does not fit."""
    if ts_ns == _NO_TIME or ts_ns >= _NEVER - wait_ns:
        return _NEVER
    return ts_ns + wait_ns


class HalfStream:
    """State of one direction; `index` is its number in the rows (slot * 2 + direction).

    Counts: `packets`, `retransmissions`, `gaps`, `lost_octets` (those of the gaps), `cut_octets`
    (those that the snap length cut off). `isn`, `next_seq`, `fin_offset` are -1 while not known.
    `acked` is the highest offset that the other side has acknowledged, `ack_seq` the last number
    that it acknowledged. `doubted`: an end of the conversation is in doubt. `acked_late_ns`: time
    of a delayed acknowledgement of all that was sent, 0 for none; `awaited_acks`: see
    `Conversation`.
    `shut`, `shuts`: its sender can, or could, take no more; see `windows`. `repeat_…`: the last
    segment that was sent again. `forsaken`: octets before this offset are not waited for, and none
    are while the direction is `absent`: acknowledged, but not in the capture.
    """

    def __init__(self, writer: EventWriter, history: History, pool: object, index: int) -> None:
        self.writer = writer
        self.history = history
        self.pool = pool
        self.limits = pool.limits
        self.most_ahead = self.limits.impossible_ahead_octets
        self.most_behind = self.limits.impossible_behind_octets
        self.index = index
        self.cell = -1
        self.held = None
        self.open = 1
        self.slow = 1
        self.isn = self.next_seq = self.fin_offset = -1
        self.next_offset = self.acked = 0
        self.ack_seen = self.fin_acked = 0
        self.ack_seq = 0
        self.doubted = 0
        self.last_row = -1
        self.packets = self.retransmissions = self.gaps = self.lost_octets = 0
        self.cut_octets = 0
        self.last_number = self.last_ns = self.activity = 0
        self.acked_late_ns = self.awaited_acks = 0
        self.delivered_number = self.delivered_ns = 0
        self.waiting_until = self.forsaken = -1
        self.waiting_acked = self.absent = 0
        self.deadline_segments = self.deadline_ns = 0
        self.linger_ns = _NEVER
        self.linger_turn = 0
        self.strange = 0
        self.strange_seq = 0
        self.repeat_offset = self.repeat_length = self.repeat_identification = -1
        self.repeat_ns = NO_TIME
        self.shut = self.probed = 0
        self.shut_number = self.shut_ns = 0
        self.shuts = None

    @property
    def octets(self) -> int:
        """Octets of the stream that were captured."""
        return self.next_offset - self.lost_octets - self.cut_octets

    def count(self, number, ts_ns, serial):
        """A packet of this direction, the one with this serial number of all segments."""
        self.packets += 1
        self.last_number = number
        self.last_ns = ts_ns
        self.activity = serial
        return 0

    def start_at(self, seq):
        """The octet numbered `seq` is the first one: offset 0."""
        self.next_seq = seq & MASK
        self.next_offset = 0
        return 0

    def ahead(self, seq):
        """How far `seq` is beyond the octet waited for; negative when before it."""
        distance: cython.longlong = (seq - self.next_seq) & MASK
        return distance - _RANGE32 if distance >= _SIGN32 else distance

    def possible(self, seq):
        """Whether a segment can lie at `seq`, given where the half-stream is."""
        distance: cython.longlong
        if self.next_seq < 0:
            return True
        distance = self.ahead(seq)
        if self.isn >= 0 and self.next_offset + distance < -1:
            return False  # before the first octet; a keep-alive is one before it at most
        return -self.most_behind <= distance <= self.most_ahead

    def offset_of(self, ack):
        """The offset before which the other side has every octet, if that is ahead; otherwise 0."""
        distance: cython.longlong
        if self.next_seq < 0:
            return 0
        distance = self.ahead(ack)
        return self.next_offset + distance if 0 < distance <= self.most_ahead else 0

    def acknowledge(self, ack):
        """The other side has every octet before the one numbered `ack`."""
        offset: cython.longlong = self.offset_of(ack)
        self.ack_seen = 1
        self.ack_seq = ack
        if offset > 0:
            if self.fin_offset >= 0 and offset > self.fin_offset:
                self.fin_acked = 1
                offset = self.fin_offset
            self.acked = max(self.acked, offset)
        return 0

    def finish_at(self, seq, number, ts_ns):
        """A FIN stands after the octet before `seq`; the first one that is possible counts."""
        offset: cython.longlong = self.next_offset + self.ahead(seq)
        if self.fin_offset >= 0 or offset < self.next_offset:
            return False
        if self.held is not None and self.held.end > offset:
            return False
        self.fin_offset = offset
        self.fin_number = number
        self.fin_ns = ts_ns
        if self.acked > offset:
            self.acked = offset
            self.fin_acked = 1
        return True

    def finished(self):
        """Whether everything up to the FIN was handed on."""
        return self.fin_offset >= 0 and self.next_offset == self.fin_offset

    def captured_end(self):
        """Where what was captured or acknowledged ends, behind holes too; a FIN counts as one."""
        end: cython.longlong = max(self.next_offset, self.acked)
        if self.held is not None and self.held:
            end = max(end, self.held.end)
        return max(end, self.fin_offset + 1) if self.fin_offset >= 0 else end

    def acknowledged(self):
        """The offset that the other side acknowledged last; unknown: as far back as can be."""
        if not self.ack_seen:
            return self.next_offset - self.limits.closed_near_octets
        return self.next_offset + self.ahead(self.ack_seq)

    def differs(self, octets, start, offset, captured, seen, ts_ns):
        """True if octets at an offset are known to be others than those captured there before."""
        result: cython.int = self.history.compare(
            self.last_row, octets, start, offset, captured, seen, ts_ns
        )
        return result & HISTORY_CONFLICT != 0

    def needs_care(self, other):
        """Whether the next segment may not be ordinary; `other` is the other direction."""
        if self.next_seq < 0 or self.strange > 0 or self.absent:
            return True
        if self.held is not None and self.held:
            return True
        if self.isn >= 0 and other.isn >= 0 and not other.ack_seen:
            return True  # the acknowledgement that ends the handshake, which is timed
        return other.next_seq < 0 and self.isn >= 0 and self.next_offset == 0

    def stray(self, seq, length):
        """A segment that is impossible; gives how many in a row follow each other."""
        near: cython.longlong = self.limits.closed_near_octets
        if self.strange > 0 and ((seq - self.strange_seq + near) & MASK) > 2 * near:
            self.strange = 0
        self.strange += 1
        self.strange_seq = (seq + length) & MASK
        self.slow = 1
        return self.strange

    def place(self, octets, rows, at, seq, number, ts_ns, needs, waits):
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
                return 0  # a keep-alive: its octet, if any, means nothing (RFC 1122 §4.2.3.6)
            return self._old(octets, start, offset, min(captured, length), seen, ts_ns)
        if offset < self.next_offset:
            before = self.next_offset - offset
            found = self._old(octets, start, offset, min(captured, before), seen, ts_ns)
            start += before
            captured = max(captured - before, 0)
            offset = self.next_offset
        captured = min(captured, end - offset)
        first = self.held.first if self.held is not None else -1
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

    def _old(self, octets, start, offset, captured, seen, ts_ns):
        """Octets that were handed on before: count them, compare them with what was."""
        result: cython.int = self.history.compare(
            self.last_row, octets, start, offset, captured, seen, ts_ns
        )
        if result == HISTORY_SAME_PACKET:
            return SAME_PACKET
        if self._repeated(offset, captured, ts_ns):
            return SAME_PACKET
        self.retransmissions += 1
        return RETRANSMITTED | (CONFLICT if result & HISTORY_CONFLICT else 0)

    def _repeated(self, offset, length, ts_ns):
        """Whether the last segment sent again was captured once more; it is remembered if not."""
        if (
            offset == self.repeat_offset
            and length == self.repeat_length
            and self.history.copies(self.repeat_identification, self.repeat_ns, ts_ns)
        ):
            return True
        self.repeat_offset = offset
        self.repeat_length = length
        self.repeat_identification = self.history.identification
        self.repeat_ns = ts_ns
        return False

    def _hold(self, octets, start, captured, offset, end, number, ts_ns, needs):
        """Keep octets that lie beyond a hole, or have to wait for the other direction."""
        found: cython.int = 0
        if self.held is None:
            self.held = Held(self.pool)
        there = self.held.find(offset, end)
        latest: cython.longlong = self.held.end
        piece = Piece(
            offset,
            end,
            octets[start : start + captured],
            number,
            ts_ns,
            self.history.identification,
            needs,
        )
        added, conflict = self.held.add(piece)
        if conflict:
            found |= CONFLICT
        if added:
            found |= OUT_OF_ORDER if offset < latest else 0
        elif (
            there is not None
            and not conflict
            and self.history.copies(there.identification, there.ts_ns, ts_ns)
        ):
            found |= SAME_PACKET
        else:
            self.retransmissions += 1
            found |= RETRANSMITTED
        return found

    def _deliver(self, octets, source, start, captured, length, number, ts_ns, seen):
        """Hand on the next `length` octets, of which `captured` are there."""
        block: cython.longlong
        writer: EventWriter = self.writer
        if captured > 0:
            writer.append(
                DATA, self.index, source, start, captured, self.next_offset, number, ts_ns
            )
            block = self.history.block
            if source >= 0:
                block = self.history.remember(octets, seen)
            self.last_row = self.history.add(
                self.last_row, block, start, self.next_offset, captured, seen, ts_ns
            )
            self._advance(captured)
        if captured < length:
            self.lose(length - captured, number, ts_ns)
            self.gaps -= 1
            self.lost_octets -= length - captured
            self.cut_octets += length - captured
        self.delivered_number = number
        self.delivered_ns = ts_ns
        return 0

    def _advance(self, octets):
        self.next_offset += octets
        self.next_seq = (self.next_seq + octets) & MASK
        return 0

    def lose(self, octets, number, ts_ns):
        """Hand on a gap."""
        self.writer.append(GAP, self.index, -1, 0, octets, self.next_offset, number, ts_ns)
        self.gaps += 1
        self.lost_octets += octets
        return self._advance(octets)

    def deliver_piece(self, piece, number, ts_ns, seen):
        """Hand on a piece that was held, as of a packet."""
        identification: cython.longlong = self.history.identification
        self.writer.extra.append(piece.octets)
        self.history.identification = piece.identification
        self._deliver(
            piece.octets,
            len(self.writer.extra) - 1,
            0,
            len(piece.octets),
            piece.end - piece.start,
            number,
            ts_ns,
            seen,
        )
        self.history.identification = identification
        return 0

    def end(self, number, ts_ns):
        """Nothing more comes: what was acknowledged but not seen is a gap."""
        missing: cython.longlong = self.acked - self.next_offset
        if self.fin_offset < 0 and missing == 1:
            missing = 0  # a FIN that was not captured
        if missing > 0 and self.next_seq >= 0:
            self.lose(missing, number, ts_ns)
        self.open = 0
        self.held = None
        return 0
