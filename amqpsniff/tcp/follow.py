# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Conversations beyond the ordinary segment: beginnings, ends, holes, deadlines.

`Reassembler` finds the conversation of a segment and does the ordinary ones itself; the rest comes
here, segment by segment. `unusual` takes them in this order: SYN, whether the segment is possible
at all, acknowledgement, RST, payload, FIN; then it looks whether a hole is overdue or the end
reached.

What is due later (a hole given up, an end that is not acknowledged) waits in `deadlines`.
"""

from array import array

import cython

from amqpsniff.columns import NUMBER_MASK as _NUMBER_MASK

from .holding import HoldingPool
from .stream import TcpFinding

if cython.compiled:
    from cython.cimports.amqpsniff.tcp.conversation import Conversation  # type: ignore
    from cython.cimports.amqpsniff.tcp.deadlines import Deadlines  # type: ignore
    from cython.cimports.amqpsniff.tcp.events import EventWriter  # type: ignore
    from cython.cimports.amqpsniff.tcp.half_stream import HalfStream, later  # type: ignore
    from cython.cimports.amqpsniff.tcp.handshake import begin, greet  # type: ignore
    from cython.cimports.amqpsniff.tcp.history import History  # type: ignore
    from cython.cimports.amqpsniff.tcp.order import (  # type: ignore
        due,
        flush,
        forsake,
        make_room,
        release,
        waits,
        watch,
    )
    from cython.cimports.amqpsniff.tcp.table import ConversationTable  # type: ignore
    from cython.cimports.amqpsniff.tcp.windows import heed  # type: ignore
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize  # type: ignore
else:
    from .conversation import Conversation
    from .deadlines import Deadlines
    from .events import EventWriter
    from .half_stream import HalfStream, later
    from .handshake import begin, greet
    from .history import History
    from .order import due, flush, forsake, make_room, release, waits, watch
    from .table import ConversationTable
    from .windows import heed

OPEN = cython.declare(cython.int, 0)
CLOSE = cython.declare(cython.int, 3)

FIN = cython.declare(cython.int, 1)
SYN = cython.declare(cython.int, 2)
RST = cython.declare(cython.int, 4)

MOST_BEFORE_RESET = cython.declare(cython.int, 1 << 24)
"""Octets that a RST may show to be missing: some devices reset with any number, a real one is
within a window of the last octet that was captured."""
ACK = cython.declare(cython.int, 16)
NO_WINDOW = cython.declare(cython.int, 256)

RETRANSMITTED = cython.declare(cython.int, 1)
SAME_PACKET = cython.declare(cython.int, 2)
OUT_OF_ORDER = cython.declare(cython.int, 4)
CONFLICT = cython.declare(cython.int, 8)
LIMIT = cython.declare(cython.int, 16)
ANOTHER = cython.declare(cython.int, 1)
NONE = cython.declare(cython.int, 2)

MASK = cython.declare(cython.longlong, 0xFFFFFFFF)

NUMBER_MASK = cython.declare(cython.longlong, _NUMBER_MASK)

# Octets of a key: source and destination address, IP version and ports.
KEY_OCTETS = cython.declare(cython.longlong, 40)


@cython.cfunc
def _key(rows: cython.longlong[::1], at: cython.longlong) -> bytes:
    """The addresses and ports of the segment at `at`, as octets."""
    if not 0 <= at < len(rows) - 5:
        raise IndexError("no such row")
    if cython.compiled:
        first = cython.cast(cython.p_char, cython.address(rows[at + 1]))
        return PyBytes_FromStringAndSize(first, KEY_OCTETS)
    return rows[at + 1 : at + 6].tobytes()


class Follower:
    """State of all conversations; `expire` is to be called at `deadlines.next_ns`.

    `places`: see `Reassembler.take_places`; null where nobody asks.
    """

    def __init__(self, limits, places=False):
        self.limits = limits
        self.most = limits.conversations
        self.linger = limits.linger_ns
        self.writer = EventWriter()
        self.history = History(limits)
        self.pool = HoldingPool(limits)
        self.table = ConversationTable(limits)
        self.keys = self.table.keys
        self.turned = array("q", [0]) * 6
        self.deadlines = Deadlines()
        self.serial = 0
        self.cut = self.retransmissions = self.duplicates = 0
        self.out_of_order = self.impossible = 0
        self.limit_reported = False
        self.places = array("q") if places else None
        self.late = []

    def find(self, rows, at):
        """The half-stream of a segment, or None."""
        return self.keys.get(_key(rows, at))

    def _back_key(self, rows, at):
        """The key of the other direction."""
        ports: cython.longlong = rows[at + 5]
        turned: cython.longlong[::1] = self.turned
        turned[1], turned[2] = rows[at + 3], rows[at + 4]
        turned[3], turned[4] = rows[at + 1], rows[at + 2]
        turned[5] = (ports >> 32) << 32 | (ports & 0xFFFF) << 16 | (ports >> 16 & 0xFFFF)
        return _key(turned, 0)

    def unknown(self, rows, at, number, ts_ns):
        """A segment of no open conversation: gives the half-stream it opens, or -1."""
        flags: cython.int = rows[at + 8]
        if flags & RST or not (flags & SYN or rows[at + 12] > 0):
            return -1
        if self.table.straggler(_key(rows, at), rows[at + 6], flags & SYN != 0):
            return -1
        return self.open(rows, at, number, ts_ns)

    def open(self, rows, at, number, ts_ns):
        """Open a conversation with a segment; gives the segment's half-stream."""
        flags: cython.int = rows[at + 8]
        answer: cython.int = 1 if flags & SYN and flags & ACK else 0
        slot: cython.longlong
        conversation: Conversation
        while self.table.open >= self.most:
            self._evict(number, ts_ns)
        slot = self.table.free_slot()
        conversation = Conversation(
            HalfStream(self.writer, self.history, self.pool, slot * 2),
            HalfStream(self.writer, self.history, self.pool, slot * 2 + 1),
        )
        conversation.take_ends(rows, at, answer)
        conversation.first_packet_number = number & NUMBER_MASK
        conversation.start_ns = ts_ns
        if answer:
            conversation.key, conversation.back_key = self._back_key(rows, at), _key(rows, at)
            conversation.first_isn = (rows[at + 7] - 1) & MASK
            begin(conversation.second, rows[at + 6])
        else:
            conversation.key, conversation.back_key = _key(rows, at), self._back_key(rows, at)
            if flags & SYN:
                conversation.first_isn = rows[at + 6]
        if flags & SYN:
            conversation.syn_seen = True
            begin(conversation.first, conversation.first_isn)
        conversation.incarnation = self.table.incarnation(conversation.key)
        self.table.add(slot, conversation)
        self.writer.append(OPEN, slot * 2, -1, 0, 0, 0, number, ts_ns)
        return slot * 2 + answer

    def _evict(self, number, ts_ns):
        quiet: Conversation = self.table.least_active()
        if not self.limit_reported:
            self.limit_reported = True
            detail = f"more than {self.most} conversations are open"
            self._report("tcp-conversation-limit", quiet, number, ts_ns, detail, 1)
        self._close(quiet, quiet.last_number(), quiet.end_ns, 0)
        return 0

    def _close(self, conversation, number, ts_ns, over):
        """End a conversation; `over`: nothing more of it is to be expected."""
        first: HalfStream = conversation.first
        flush(first, conversation.second, number, ts_ns, self.history.seen)
        self.writer.append(CLOSE, first.index, -1, 0, 0, 0, number, ts_ns)
        self.table.remove(conversation, over != 0)
        return 0

    def close_all(self):
        """End every open conversation, in the order in which they were opened."""
        conversation: Conversation
        for conversation in self.table.all_open():
            self._close(conversation, conversation.last_number(), conversation.end_ns, 0)
        self.deadlines.clear()
        return 0

    def unusual(self, octets, index, rows, at, number, ts_ns):
        """Take any segment of an open conversation; `octets` is the block of packets."""
        half: HalfStream = self.table.halves[index]
        other: HalfStream = self.table.halves[index ^ 1]
        conversation: Conversation = self.table.conversations[index >> 1]
        flags: cython.int = rows[at + 8]
        seq: cython.longlong = rows[at + 6]
        length: cython.longlong = rows[at + 12]
        whose: cython.int
        if flags & SYN:
            whose = greet(half, other, seq, rows[at + 7], flags)
            if whose == NONE:
                return 0
            if whose == ANOTHER:
                return self._again(conversation, octets, rows, at, number, ts_ns)
            conversation.syn_seen = True
            seq = (seq + 1) & MASK
        if (length > 0 or flags & (FIN | RST)) and not half.possible(seq):
            if not self._believe(conversation, half, seq, length, number, ts_ns):
                return 0
            return self._again(conversation, octets, rows, at, number, ts_ns)
        self._count(half, number, ts_ns)
        if flags & ACK:
            if other.next_seq < 0 and half.isn >= 0 and seq == ((half.isn + 1) & MASK):
                other.start_at(rows[at + 7])  # the answer to the SYN was not captured
            other.acknowledge(rows[at + 7])
        if flags & RST:
            if half.next_seq >= 0 and half.ahead(seq) <= MOST_BEFORE_RESET:
                half.acknowledge(seq)  # its sender numbers it after the last octet that it sent
            if not (half.finished() and other.finished()):
                conversation.ended = "rst"
                if conversation.ended_by is None:
                    conversation.ended_by = index & 1
                    conversation.ended_ns, conversation.ended_number = ts_ns, number
            if self._overtook(conversation, half, other, ts_ns):
                return 0
            conversation.over_ns = ts_ns
            return self._close(conversation, number, ts_ns, 1)
        if flags & NO_WINDOW or half.shut or other.shut:
            heed(half, other, seq, length, flags & NO_WINDOW, number, ts_ns)
        if length > 0:
            half.strange = 0
            self._payload(conversation, half, other, octets, rows, at, seq, number, ts_ns)
        if flags & FIN:
            if half.next_seq < 0:
                half.start_at(seq + length)
            if half.finish_at(seq + length, number, ts_ns) and conversation.ended is None:
                conversation.ended, conversation.ended_by = "fin", index & 1
                conversation.ended_ns, conversation.ended_number = ts_ns, number
            release(half, other, number, ts_ns, rows[at + 13])
        self._settle(half, other, ts_ns)
        return self._end(conversation, half, other, number, ts_ns)

    def _overtook(self, conversation, half, other, ts_ns):
        """Whether octets that were there before a reset may still come, as with any hole."""
        if half.acked <= half.next_offset and other.acked <= other.next_offset:
            return 0
        if not conversation.lingers:
            conversation.lingers = True
            half.linger_ns = later(ts_ns, self.limits.acked_hole_ns)
            self.deadlines.linger(half, self.table.open)
            return 1
        return conversation.ended == "rst"

    def _again(self, conversation, octets, rows, at, number, ts_ns):
        """The endpoints are used again: the old conversation ends, the segment opens a new one."""
        conversation.over_ns = ts_ns
        self._close(conversation, number, ts_ns, 1)
        return self.unusual(octets, self.open(rows, at, number, ts_ns), rows, at, number, ts_ns)

    def _count(self, half, number, ts_ns):
        half.packets += 1
        half.last_number = number
        half.last_ns = ts_ns
        half.activity = self.serial
        return 0

    def _believe(self, conversation, half, seq, length, number, ts_ns):
        """Whether an impossible segment must be true, because so many agree with it."""
        near: cython.longlong = self.limits.closed_near_octets
        self.impossible += 1
        detail = f"{half.ahead(seq)} octets from the next one expected"
        self._report("tcp-impossible-sequence", conversation, number, ts_ns, detail, 1)
        if half.strange > 0 and ((seq - half.strange_seq + near) & MASK) > 2 * near:
            half.strange = 0
        half.strange += 1
        half.strange_seq = (seq + length) & MASK
        half.slow = 1
        return length > 0 and half.strange >= self.limits.impossible_in_a_row

    def _payload(self, conversation, half, other, octets, rows, at, seq, number, ts_ns):
        found: cython.int
        needs: cython.longlong = 0
        source: cython.int = rows[at + 9]
        captured: cython.longlong = rows[at + 11]
        length: cython.longlong = rows[at + 12]
        if half.next_seq < 0:
            half.start_at(seq)
        if self.places is not None and source < 0:
            self.places.extend(
                (rows[at], half.index, half.next_offset + half.ahead(seq), rows[at + 10], captured)
            )
        if captured < length:
            self.cut += 1
        block = octets if source < 0 else self.writer.extra[source]
        if rows[at + 8] & ACK:
            needs = other.offset_of(rows[at + 7])
        found = half.place(
            seq,
            block,
            source,
            rows[at + 10],
            captured,
            length,
            number,
            ts_ns,
            rows[at + 13],
            needs,
            waits(needs, other),
        )
        release(half, other, number, ts_ns, rows[at + 13])
        if make_room(half, other, rows[at + 13]):
            found |= LIMIT
        if found == 0:
            return 0
        if found & RETRANSMITTED:
            self.retransmissions += 1
        elif found & SAME_PACKET:
            self.duplicates += 1
        if found & OUT_OF_ORDER:
            self.out_of_order += 1
        if found & CONFLICT:
            detail = f"{length} octets sent again are not what was sent before"
            most = self.limits.conflict_findings
            self._report("tcp-overlap-conflict", conversation, number, ts_ns, detail, most)
        if found & LIMIT:
            detail = "octets held back for a missing segment reached the limit"
            self._report("tcp-buffer-limit", conversation, number, ts_ns, detail, 1)
        return 0

    def _report(self, code, conversation, number, ts_ns, detail, most):
        if conversation.findings_made is None:
            conversation.findings_made = {}
        made = conversation.findings_made.get(code, 0)
        if made < most:
            conversation.findings_made[code] = made + 1
            self.writer.findings.append(TcpFinding(code, conversation, number, ts_ns, detail))
        return 0

    def _settle(self, half, other, ts_ns):
        """Give up holes that are overdue, start the clocks of others, and see who is ordinary."""
        segments: cython.longlong = half.packets + other.packets
        waiting: cython.bint
        while self._overdue(half, other, segments, ts_ns) or self._overdue(
            other, half, segments, ts_ns
        ):
            pass
        waiting = half.waiting_until >= 0 or other.waiting_until >= 0
        waiting = waiting or half.fin_offset >= 0 or other.fin_offset >= 0
        waiting = waiting or half.shut or other.shut
        half.slow = waiting or half.needs_care(other)
        other.slow = waiting or other.needs_care(half)
        return 0

    def _overdue(self, half, other, segments, ts_ns):
        """Look at the clock of a direction; whether it was over."""
        if watch(half, other, segments, ts_ns):
            self.deadlines.add(half, half.deadline_ns, self.table.open)
        if not due(half, segments, ts_ns):
            return False
        forsake(half, other, self.history.seen)
        return True

    def _end(self, conversation, half, other, number, ts_ns):
        """Close a conversation whose FINs were both reached, at once or after a while."""
        if not (half.finished() and other.finished()):
            return 0
        if half.fin_acked and other.fin_acked:
            conversation.over_ns = ts_ns
            return self._close(conversation, number, ts_ns, 1)
        if not conversation.lingers:
            conversation.lingers = True
            half.linger_ns = later(ts_ns, self.linger)
            self.deadlines.linger(half, self.table.open)
        return 0

    def expire(self, ts_ns):
        """Capture time has come to the next deadline: see what is due."""
        half: HalfStream
        due_ns: cython.longlong
        first: cython.longlong
        while self.deadlines.next_ns <= ts_ns and self.deadlines.any():
            due_ns = self.deadlines.next_ns
            first = self.writer.count
            half = self.deadlines.take()
            if half.open:
                self._expire(half, ts_ns)
                self.note_late(first, -1, due_ns)
        return 0

    def _expire(self, half, ts_ns):
        """The deadline of a half-stream has come."""
        conversation: Conversation = self.table.conversations[half.index >> 1]
        other: HalfStream = self.table.halves[half.index ^ 1]
        if half.linger_ns <= ts_ns:
            conversation.over_ns = half.linger_ns
            return self._close(conversation, conversation.last_number(), conversation.end_ns, 1)
        self._settle(half, other, ts_ns)
        return self._end(conversation, half, other, conversation.last_number(), conversation.end_ns)

    def note_late(self, first, number, ts_ns):
        """Events from row `first` on were made known by a packet; note those of other packets."""
        row: cython.longlong
        for row in range(first, self.writer.count):
            if self.writer.number[row] != number:
                self.late.append((row, number, ts_ns))
        return 0
