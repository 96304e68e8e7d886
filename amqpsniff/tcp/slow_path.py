# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Conversations beyond the ordinary segment: beginnings, ends, holes, deadlines.

`Reassembler` finds the conversation of a segment and does the ordinary ones itself; the rest comes
here, segment by segment. `handle_segment` checks in this order: SYN, RST, possible at all,
acknowledgement, payload, FIN; then if a hole is overdue or the end reached. What a RST
or SYN means is often known only by what follows (`doubt`).

What is due later (a hole given up, an end that is not acknowledged) waits in `deadlines`.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp import out_of_order
from cython.cimports.amqpsniff.tcp.codes import (
    ACK,
    AHEAD,
    ANOTHER,
    CERTAIN,
    CLOSE,
    CONFLICT,
    FIN,
    LIMIT,
    MASK,
    MAY_BEGIN,
    NO_WINDOW,
    NONE,
    OUT_OF_ORDER,
    OUTSIDE,
    RETRANSMITTED,
    RST,
    SAME_PACKET,
    SEGMENT_FIELDS,
    SYN,
)
from cython.cimports.amqpsniff.tcp.conversation import Conversation
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream, HoldingPool, later
from cython.cimports.amqpsniff.tcp.handshake import (
    begin_at,
    begins_anew,
    block_of,
    classify_syn,
    may_open,
    opened,
)
from cython.cimports.amqpsniff.tcp.limits import NEVER
from cython.cimports.amqpsniff.tcp.out_of_order import Deadlines
from cython.cimports.amqpsniff.tcp.retransmissions import History
from cython.cimports.amqpsniff.tcp.stream import EventWriter
from cython.cimports.amqpsniff.tcp.table import ConversationTable, key_of
from cython.cimports.amqpsniff.tcp.zero_window import update_window

from .doubt import Another, Reset
from .late_handshake import KeptSegment, PendingConversations, begins
from .resent import Resent
from .stream import TcpFinding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.byteorder import IntView

MAX_BEFORE_RESET = cython.declare(cython.int, 1 << 24)
"""Bytes that a RST may show to be missing: some devices reset with any number, a real one is
within a window of the last byte that was captured."""
_ROW = array("q", [0]) * SEGMENT_FIELDS


class Segment:
    """A segment, and where it belongs.

    `octets`: the block of packets. `rows`, `at`: its row, see `codes`, from which `seq`,
    `ack`, `flags` and `length` are. `half`: its half-stream, `other` the other one of its
    conversation. `seq` is where its payload begins once a SYN was looked at.
    """

    octets: bytes
    rows: IntView
    at: int
    number: int
    ts_ns: int
    seq: int
    ack: int
    flags: int
    length: int
    half: HalfStream
    other: HalfStream
    conversation: Conversation


def segment_of(
    octets: bytes,
    rows: IntView,
    at: cython.longlong,
    number: cython.longlong,
    ts_ns: cython.longlong,
) -> Segment:
    """A segment by its row."""
    segment: Segment = Segment.__new__(Segment)
    segment.octets, segment.rows, segment.at = octets, rows, at
    segment.number, segment.ts_ns = number, ts_ns
    segment.seq, segment.ack = rows[at + 6], rows[at + 7]
    segment.flags, segment.length = rows[at + 8], rows[at + 12]
    return segment


class SlowPath:
    """State of all conversations; `expire` is to be called at `deadlines.next_ns`.

    `places`, `joined`: see `Reassembler`, or None. `joined` has what `opened` wants
    to know, by serial number; with `places` it is read, without written.
    """

    limits: Any
    most: int
    linger: int
    near: int
    pending: Any
    joined: Any
    serial: int
    cut: int
    retransmissions: int
    duplicates: int
    out_of_order: int
    impossible: int
    limit_reported: cython.bint
    places: Any

    pool: HoldingPool
    table: ConversationTable
    writer: EventWriter
    history: History
    deadlines: Deadlines
    early: dict[Any, Any]

    def __init__(self, limits: Any, places: Any = False, joined: Any = None) -> None:
        self.limits = limits
        self.most = limits.conversations
        self.linger = limits.linger_ns
        self.near = limits.closed_near_bytes
        self.writer = EventWriter()
        self.history = History(limits)
        self.pool = HoldingPool(limits, self.writer, self.history)
        self.table = ConversationTable(limits)
        self.deadlines = Deadlines()
        self.pending = PendingConversations(limits)
        self.early = self.pending.by_key
        self.joined = joined
        self.serial = 0
        self.cut = self.retransmissions = self.duplicates = 0
        self.out_of_order = self.impossible = 0
        self.limit_reported = False
        self.places = array("q") if places else None

    def find(self, rows: IntView, at: cython.longlong) -> HalfStream:
        """The half-stream of a segment, or None."""
        return self.table.find(rows, at)

    def note_unreachable(self, rows: IntView, at: cython.longlong) -> cython.int:
        """ICMP says that a segment did not reach its destination: note the first about a SYN."""
        half: HalfStream = self.find(rows, at)
        if half is None or half.isn != rows[at + 6]:
            return 0
        conversation: Conversation = self.table.conversations[half.index >> 1]
        if conversation.unreachable < 0:
            conversation.unreachable = rows[at + 7]
        return 0

    def unknown(
        self,
        octets: bytes,
        rows: IntView,
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A segment of no open conversation: gives the half-stream it opens, or -1."""
        segment: Segment = segment_of(octets, rows, at, number, ts_ns)
        flags: cython.int = segment.flags
        key: bytes = key_of(rows, at)
        pending = self.early.get(key) if self.early else None
        if pending is not None:
            if not flags & SYN or pending.fits(key, segment.seq, segment.ack, flags):
                return self._wait(pending, key, segment) - 1
            self._enter(pending)
            if self.find(rows, at) is not None:
                return self.find(rows, at).index
        if not may_open(self.table, self.writer, octets, rows, at):
            return -1
        if not flags & SYN and rows[at + 9] < 0 and begins(octets, rows[at + 10], rows[at + 11]):
            pending = self._begin_pending(key, segment, number)
            if pending is not None:
                return self._wait(pending, key, segment) - 1
        return self._open(segment, number)

    def _begin_pending(self, key: bytes, segment: Segment, serial: cython.longlong) -> Any:
        """A pending conversation for what comes before its SYN; None if there may be no more."""
        if self.pending.full or self.places is not None:
            return None
        keys = key, self.table.back_key(segment.rows, segment.at)
        pending = self.pending.make(keys, serial, later(segment.ts_ns, self.limits.acked_hole_ns))
        self.deadlines.expect(self.pending.deadline_ns)
        return pending

    def _wait(self, pending: Any, key: bytes, segment: Segment) -> cython.int:
        """Let a segment wait, until its conversation's begin is known."""
        if pending.add(self._keep(key, segment), self.limits):
            self._enter(pending)
        return 0

    def _enter(self, pending: Any) -> cython.int:
        """Follow the segments that waited."""
        segment: Segment
        half: HalfStream
        identification: cython.longlong = self.history.identification
        now: cython.longlong = self.serial
        serial: cython.longlong = pending.serial
        opened: cython.bint = False
        starts = pending.starts()
        if self.joined is not None and self.places is None:
            self.joined[serial] = (pending.first_key(), starts)
        self.pending.remove(pending)
        self.deadlines.expect(self.pending.deadline_ns)
        for kept in pending.arranged():
            segment = self._recall(kept)
            if self.find(segment.rows, 0) is None:
                if opened:
                    if not may_open(self.table, self.writer, b"", segment.rows, 0):
                        continue
                    serial = kept.number
                self._open(segment, serial)
            if not opened:
                half = self.find(segment.rows, 0)
                begin_at(self.table, self.table.conversations[half.index >> 1], starts)
            opened = True
            self._follow(kept, segment)
        self.history.identification, self.serial = identification, now
        return 0

    def _follow_kept(self, segments: Any) -> cython.int:
        """Follow the segments that may have begun a conversation, when the old one is over."""
        segment: Segment
        identification: cython.longlong = self.history.identification
        now: cython.longlong = self.serial
        for kept in segments:
            segment = self._recall(kept)
            self.serial = kept.place
            if self.find(segment.rows, 0) is None:
                self._open(segment, kept.number)
            self._follow(kept, segment)
        self.history.identification, self.serial = identification, now
        return 0

    def _keep(self, key: bytes, segment: Segment) -> Any:
        """A segment with what was captured of it, to be followed later."""
        rows: cython.longlong[::1] = segment.rows
        at: cython.longlong = segment.at
        start: cython.longlong = rows[at + 10]
        block: bytes = block_of(self.writer, segment.octets, rows[at + 9])
        payload = block[start : start + rows[at + 11]]
        place: cython.longlong
        row = _ROW[:]
        kept: cython.longlong[::1] = row
        for place in range(SEGMENT_FIELDS):
            kept[place] = rows[at + place]
        return KeptSegment(key, row, payload, segment.number, segment.ts_ns, self.serial)

    def _recall(self, kept: Any) -> Segment:
        """A segment that was kept; its row names the bytes that it has now."""
        self.writer.extra.append(kept.octets)
        row: cython.longlong[::1] = kept.row
        row[9], row[10], row[13] = len(self.writer.extra) - 1, 0, self.history.seen
        return segment_of(b"", row, 0, kept.number, kept.ts_ns)

    def _follow(self, kept: Any, segment: Segment) -> cython.int:
        """Follow a segment that was kept, as of the time when it came."""
        self.history.identification, self.serial = segment.rows[14], kept.place
        return self._handle(segment, self.find(segment.rows, 0).index)

    def _open(self, segment: Segment, serial: cython.longlong) -> cython.int:
        """Open a conversation, see `opened`; gives the segment's half-stream."""
        number: cython.longlong = segment.number
        ts_ns: cython.longlong = segment.ts_ns
        while self.table.open >= self.most:
            self._evict(number, ts_ns)
        known = None if self.places is None or self.joined is None else self.joined.get(serial)
        return opened(
            self.table, self.writer, self.pool, segment.rows, segment.at, number, ts_ns, serial,
            known,
        )  # fmt: skip

    def _evict(self, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        quiet: Conversation = self.table.least_active()
        if not self.limit_reported:
            self.limit_reported = True
            detail = f"more than {self.most} conversations are open"
            self._report("tcp-conversation-limit", quiet, number, ts_ns, detail, 1)
        self._close(quiet, quiet.last_number(), quiet.end_ns, 0)
        return 0

    def _close(
        self,
        conversation: Conversation,
        number: cython.longlong,
        ts_ns: cython.longlong,
        over: cython.int,
    ) -> cython.int:
        """End a conversation; `over`: nothing more of it is to be expected."""
        first: HalfStream = conversation.first
        if self.early and conversation.key in self.early:
            self._enter(self.early[conversation.key])
            if not first.open:
                return 0
        if conversation.reset is not None:
            self._apply_reset(conversation)
        out_of_order.flush(first, conversation.second, number, ts_ns, self.history.seen)
        self.writer.append(CLOSE, first.index, -1, 0, 0, 0, number, ts_ns)
        self.table.remove(conversation, over != 0)
        if conversation.another is not None:
            self._follow_kept(conversation.another.segments)
        return 0

    def close_all(self, most: cython.longlong) -> cython.int:
        """End every open conversation: those that wait for a time as if it had come, and `most` of
        the others in the order in which they were opened.
        """
        conversation: Conversation
        left: cython.longlong = most
        self.expire(NEVER - 1)
        while self.pending:
            self._enter(self.pending.queue[0])
        while self.table.open and left:  # to close one may open another
            for conversation in self.table.all_open(left if left > 0 else self.table.open):
                left -= 1
                self._close(conversation, conversation.last_number(), conversation.end_ns, 0)
        if not self.table.open:
            self.deadlines.clear()
        return 0

    def handle_segment(
        self,
        octets: bytes,
        index: cython.int,
        rows: IntView,
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Take any segment of an open conversation; `octets` is the block of packets."""
        return self._handle(segment_of(octets, rows, at, number, ts_ns), index)

    def _handle(self, segment: Segment, index: cython.int) -> cython.int:
        half: HalfStream = self.table.halves[index]
        other: HalfStream = self.table.halves[index ^ 1]
        conversation: Conversation = self.table.conversations[index >> 1]
        flags: cython.int = segment.flags
        whose: cython.int
        segment.half, segment.other, segment.conversation = half, other, conversation
        if conversation.another is not None:
            whose = self._is_others(segment)
            if whose == ANOTHER:
                return self._again(segment)
            if whose == NONE:
                return 0
        if flags & SYN:
            whose = classify_syn(half, other, segment.seq, segment.ack, flags)
            if whose == NONE:
                return 0
            if whose == ANOTHER:
                return self._doubt_another(segment)
            segment.seq = (segment.seq + 1) & MASK
        if flags & RST:
            half.count(segment.number, segment.ts_ns, self.serial)
            return 0 if self._is_early(segment) else self._reset(segment)
        if segment.length > 0:
            whose = begins_anew(
                conversation, half, other, self.writer, segment.octets, segment.rows, segment.at,
                segment.ts_ns,
            )  # fmt: skip
            if whose == MAY_BEGIN:
                return self._doubt_another(segment)
            if whose or self._is_far(segment):
                return self._again(segment)
        if (segment.length > 0 or flags & FIN) and not half.possible(segment.seq):
            if self.table.straggler(segment.rows, segment.at, segment.seq, False):
                return 0  # of the conversation before this one
            return self._again(segment) if self._believe(segment) else 0
        return self._possible(segment)

    def _is_others(self, segment: Segment) -> cython.int:
        """Whose a segment is while another conversation may have begun: `ANOTHER` if it has."""
        key: bytes = key_of(segment.rows, segment.at)
        another = segment.conversation.another
        numbers = segment.seq, segment.ack, segment.flags, segment.length, segment.half.next_seq
        if another.confirms(key, *numbers, self.near):
            return ANOTHER
        if not another.repeats(key, segment.seq, segment.flags):
            return 0
        if len(another.segments) < self.limits.doubtful_segments:
            another.segments.append(self._keep(key, segment))
        return NONE

    def _possible(self, segment: Segment) -> cython.int:
        """Take a segment that belongs to its conversation and lies where it can."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        seq: cython.longlong = segment.seq
        length: cython.longlong = segment.length
        number: cython.longlong = segment.number
        ts_ns: cython.longlong = segment.ts_ns
        flags: cython.int = segment.flags
        side: cython.int = half.index & 1
        half.count(number, ts_ns, self.serial)
        if half.doubted:
            self._weigh(segment)
        if flags & ACK:
            if other.next_seq < 0 and half.isn >= 0 and seq == ((half.isn + 1) & MASK):
                other.start_at(segment.ack)  # the answer to the SYN was not captured
            start_ns: cython.longlong = conversation.start_ns
            timed: cython.bint = conversation.syn_seen and start_ns >= 0
            if timed and conversation.round_trip_ns < 0 and side == 0:
                conversation.round_trip_ns = ts_ns - start_ns if ts_ns > start_ns else 0
            other.acknowledge(segment.ack)
        if self._is_early(segment):
            return 0
        if length == 0 and not flags & FIN:
            half.sent_before(seq, ts_ns)
        if flags & NO_WINDOW or half.shut is not None or other.shut is not None:
            ack: cython.longlong = segment.ack if flags & ACK else -1
            update_window(half, other, seq, length, ack, flags & NO_WINDOW, number, ts_ns)
        if length > 0:
            half.strange = 0
            self._payload(segment)
        if flags & FIN:
            if half.next_seq < 0:
                half.start_at(seq + length)
            if half.finish_at(seq + length, number, ts_ns) and conversation.ended is None:
                conversation.ended, conversation.ended_by = "fin", side
                conversation.ended_ns, conversation.ended_number = ts_ns, number
            out_of_order.release(half, other, number, ts_ns, segment.rows[segment.at + 13])
        out_of_order.settle(half, other, ts_ns, self.history.seen, self.deadlines, self.table.open)
        return self._end(conversation, half, other, number, ts_ns)

    def _is_early(self, segment: Segment) -> cython.bint:
        """True if a segment came before its conversation's begin, and waits, or is void now."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        acks: cython.bint = segment.flags & ACK != 0
        half_known: cython.bint = half.next_seq >= 0
        other_known: cython.bint = other.next_seq >= 0
        if half_known and other_known:
            if self.early and conversation.key in self.early:
                self._enter(self.early[conversation.key])
            return not half.open
        if not half_known and other.isn >= 0 and acks:
            if (segment.ack - other.isn - 1) & MASK > self.limits.closed_near_bytes:
                return True  # it answers what came before the SYN
        if segment.length == 0 or not (
            (not half_known and other.isn >= 0) or (not other_known and half.isn >= 0 and acks)
        ):
            return False
        key = key_of(segment.rows, segment.at)
        pending = self.early.get(key) or self._begin_pending(key, segment, conversation.serial)
        if pending is None:
            return False
        half.packets -= 1  # it is counted when it is followed
        self._wait(pending, key, segment)
        return True

    def _doubt_another(self, segment: Segment) -> cython.int:
        """Keep a segment that may begin another conversation, unless that is certain."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        reset = conversation.reset
        known: cython.bint = half.next_seq >= 0 and other.next_seq >= 0
        known = known or half.next_offset > 0 or other.next_offset > 0
        over: cython.bint = half.finished() and other.finished()
        if over or not known or (reset is not None and reset.place == CERTAIN):
            return self._again(segment)
        keys = (
            key_of(segment.rows, segment.at),
            self.table.back_key(segment.rows, segment.at),
        )
        code, detail = "tcp-syn-ignored", ""
        if not segment.flags & SYN:
            code = "tcp-overlap-conflict" if half.possible(segment.seq) else None
            detail = f"{segment.length} bytes sent again are not what was sent before"
        conversation.another = Another(
            half.index & 1,
            half.captured_end(),
            other.captured_end(),
            keys,
            self._keep(keys[0], segment),
            code,
            detail,
        )
        half.doubted = other.doubted = half.slow = other.slow = 1
        return 0

    def _reset(self, segment: Segment) -> cython.int:
        """Take a RST: it ends the conversation after a while, or once nothing else follows it."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        number: cython.longlong = segment.number
        ts_ns: cython.longlong = segment.ts_ns
        seq: cython.longlong = segment.rows[segment.at + 6]
        ack: cython.longlong = segment.ack if segment.flags & ACK else -1
        reached: cython.longlong = half.captured_end()
        end: cython.longlong = reached
        offset: cython.longlong = half.next_offset + half.ahead(seq)
        place: cython.int = OUTSIDE
        refused: cython.bint = False
        if half.next_seq < 0:
            if other.isn < 0:
                place = CERTAIN
            elif ack >= 0 and (ack - other.isn - 1) & MASK <= other.captured_end():
                place = CERTAIN  # the answer to a SYN (RFC 9293 §3.10.7.3)
                refused = True
        elif half.acknowledged() <= offset <= end:
            place = CERTAIN
        elif end < offset <= end + MAX_BEFORE_RESET:
            place = AHEAD
            end = offset
        if half.finished() and other.finished():
            conversation.over_ns = ts_ns
            return self._close(conversation, number, ts_ns, 1)
        if conversation.reset is None or conversation.reset.place > place:
            covers = other.captured_end()
            conversation.reset = Reset(
                half.index & 1, number, ts_ns, end, covers, place, seq, ack, reached
            )
            half.doubted = other.doubted = half.slow = other.slow = 1
            if place == CERTAIN:
                conversation.reset_ns = ts_ns
                self.writer.resets.append(half.index >> 1)
            if place != OUTSIDE:
                half.linger_ns = later(ts_ns, self._reset_wait(conversation))
                self.deadlines.add(half, half.linger_ns, self.table.open)
        if refused:
            conversation.over_ns = ts_ns
            return self._close(conversation, number, ts_ns, 1)
        return 0

    def _reset_wait(self, conversation: Conversation) -> cython.longlong:
        """How long a conversation stays open after a RST; what is in flight takes a round trip."""
        wait_ns: cython.longlong = self.linger
        if conversation.reset.place != CERTAIN:
            return self.limits.doubtful_reset_ns
        if conversation.round_trip_ns >= 0 and conversation.round_trip_ns < wait_ns:
            wait_ns = min(wait_ns, max(2 * conversation.round_trip_ns, self.limits.acked_hole_ns))
        return wait_ns

    def _apply_reset(self, conversation: Conversation) -> cython.int:
        """A conversation ends by the RST that it had: bytes sent before that are missing."""
        reset = conversation.reset
        half: HalfStream = conversation.second if reset.side else conversation.first
        other: HalfStream = conversation.first if reset.side else conversation.second
        conversation.ended = "rst"
        if conversation.ended_by is None:
            conversation.ended_by = reset.side
            conversation.ended_ns, conversation.ended_number = reset.ts_ns, reset.number
        if reset.place != OUTSIDE:
            if half.next_seq < 0 and half.ack_seen:  # nothing of it was captured before
                half.start_at(half.ack_seq)
            if half.next_seq >= 0:
                half.acknowledge(reset.seq)  # it is numbered after the last byte sent
            if reset.ack >= 0:
                other.acknowledge(reset.ack)
        return 0

    def _weigh(self, segment: Segment) -> cython.int:
        """Check if a side goes on that sent a RST, or began something else."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        number: cython.longlong = segment.number
        ts_ns: cython.longlong = segment.ts_ns
        side: cython.int = half.index & 1
        offset: cython.longlong
        end: cython.longlong = -1
        covered: cython.longlong = -1
        reset = conversation.reset
        if half.next_seq < 0:
            end = segment.length
        else:
            offset = half.next_offset + half.ahead(segment.seq)
            if offset <= half.captured_end():  # in sequence
                end = offset + segment.length + (segment.flags & FIN)
        if segment.flags & ACK and other.next_seq >= 0:
            covered = other.next_offset + other.ahead(segment.ack)
            if covered > other.captured_end():
                covered = -1
        another = conversation.another
        if another is not None and another.side == side and another.goes_on(end, covered):
            conversation.another = None
            if another.code is not None:
                detail = another.detail or f"the sender went on in packet {number & NUMBER_MASK}"
                self._report(another.code, conversation, another.number, another.ts_ns, detail, 1)
        if reset is not None:
            if segment.length > 0:
                reset.quiet_ns = ts_ns
            if reset.side != side:
                if reset.lived_ns >= 0 and covered > reset.reached:
                    self._ignore_reset(conversation, number)
            elif reset.goes_on(end, covered) and (
                reset.place == OUTSIDE or ts_ns > later(reset.ts_ns, self.limits.acked_hole_ns)
            ):
                if reset.lived_ns < 0:
                    reset.lived_ns = ts_ns
                if reset.place == OUTSIDE or ts_ns >= later(reset.ts_ns, self.linger):
                    self._ignore_reset(conversation, number)
        half.doubted = conversation.reset is not None or conversation.another is not None
        other.doubted = half.doubted
        return 0

    def _ignore_reset(self, conversation: Conversation, number: cython.longlong) -> cython.int:
        """The conversation went on after a RST."""
        reset = conversation.reset
        half: HalfStream = conversation.second if reset.side else conversation.first
        half.linger_ns = NEVER
        conversation.reset = None
        conversation.reset_ns = -1
        self.writer.resets.append(half.index >> 1)
        detail = f"it went on in packet {number & NUMBER_MASK}"
        return self._report("tcp-reset-ignored", conversation, reset.number, reset.ts_ns, detail, 1)

    def _is_far(self, segment: Segment) -> cython.bint:
        """True if a segment after a RST lies too far away to have been in flight at it."""
        half: HalfStream = segment.half
        reset = segment.conversation.reset
        if reset is None or reset.place != CERTAIN or half.next_seq < 0:
            return False
        return not -self.near <= half.ahead(segment.seq) <= self.near

    def _again(self, segment: Segment) -> cython.int:
        """The endpoints are used again: the old conversation ends, the segment opens a new one."""
        conversation: Conversation = segment.conversation
        conversation.over_ns = segment.ts_ns
        self._close(conversation, segment.number, segment.ts_ns, 1)
        segment.seq = segment.rows[segment.at + 6]
        half: HalfStream = self.find(segment.rows, segment.at)  # what waited may have opened one
        index: cython.int = self._open(segment, segment.number) if half is None else half.index
        return self._handle(segment, index)

    def _believe(self, segment: Segment) -> cython.bint:
        """True if so many impossible segments agree that they must be right."""
        half: HalfStream = segment.half
        length: cython.longlong = segment.length
        self.impossible += 1
        detail = f"{half.ahead(segment.seq)} bytes from the next one expected"
        self._tell("tcp-impossible-sequence", segment, detail, 1)
        return half.stray(segment.seq, length) >= self.limits.impossible_in_a_row and length > 0

    def _payload(self, segment: Segment) -> cython.int:
        found: cython.int
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        rows: cython.longlong[::1] = segment.rows
        at: cython.longlong = segment.at
        seq: cython.longlong = segment.seq
        length: cython.longlong = segment.length
        number: cython.longlong = segment.number
        ts_ns: cython.longlong = segment.ts_ns
        captured: cython.longlong = rows[at + 11]
        if half.next_seq < 0:
            half.start_at(seq)
        if self.places is not None and rows[at + 9] < 0:
            self.places.extend(
                (
                    rows[at],
                    half.index,
                    half.next_offset + half.ahead(seq),
                    rows[at + 10],
                    captured,
                    half.acknowledged() if half.ack_seen else -1,
                )
            )
        if captured < length:
            self.cut += 1
        block: bytes = block_of(self.writer, segment.octets, rows[at + 9])
        needs: cython.longlong = other.offset_of(segment.ack) if segment.flags & ACK else 0
        waits: cython.bint = out_of_order.waits(needs, other)
        lost: cython.bint = half.lost_before(seq, ts_ns, segment.conversation.round_trip_ns)
        found = half.place(block, rows, at, seq, number, ts_ns, needs, waits)
        if lost and found & OUT_OF_ORDER:
            found ^= OUT_OF_ORDER
            if not found & RETRANSMITTED:
                found |= RETRANSMITTED
                half.retransmissions += 1
                self.history.sent_number = -1  # its first copy is not in the capture
        out_of_order.release(half, other, number, ts_ns, rows[at + 13])
        if out_of_order.make_room(half, other, rows[at + 13]):
            found |= LIMIT
        if found == 0:
            return 0
        if found & RETRANSMITTED:
            self.retransmissions += 1
            if half.first_retransmission is None:
                half.first_retransmission = number & NUMBER_MASK, ts_ns
            if other.shut is None:  # to a closed window they are probes
                self._note_resent(segment)
        elif found & SAME_PACKET:
            self.duplicates += 1
        if found & OUT_OF_ORDER:
            self.out_of_order += 1
        if found & CONFLICT:
            detail = f"{length} bytes sent again are not what was sent before"
            most = self.limits.conflict_findings
            self._tell("tcp-overlap-conflict", segment, detail, most)
        if found & LIMIT:
            detail = "bytes held back for a missing segment reached the limit"
            self._tell("tcp-buffer-limit", segment, detail, 1)
        return 0

    def _note_resent(self, segment: Segment) -> cython.int:
        """A segment was sent again: note for how long nothing made its sender go on."""
        half: HalfStream = segment.half
        end: cython.longlong = half.ahead(segment.seq) + segment.length
        acked: cython.bint = half.ack_seen and half.ahead(half.ack_seq) >= end
        sent_number: cython.longlong = self.history.sent_number
        resent = half.resent
        if resent is None or resent.seq != segment.seq:
            start = sent_number & NUMBER_MASK, self.history.sent_ns
            if sent_number < 0:
                start = segment.number & NUMBER_MASK, segment.ts_ns
            half.resent = resent = Resent(segment.seq, *start, resent)
        resent.again(segment.ts_ns, segment.other.last_ns, acked, half.next_offset)
        return 0

    def _tell(self, code: Any, segment: Segment, detail: Any, most: cython.int) -> cython.int:
        return self._report(code, segment.conversation, segment.number, segment.ts_ns, detail, most)

    def _report(
        self,
        code: Any,
        conversation: Conversation,
        number: cython.longlong,
        ts_ns: cython.longlong,
        detail: Any,
        most: cython.int,
    ) -> cython.int:
        if conversation.may_report(code, most):
            self.writer.findings.append(TcpFinding(code, conversation, number, ts_ns, detail))
        return 0

    def _end(
        self,
        conversation: Conversation,
        half: HalfStream,
        other: HalfStream,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Close a conversation whose FINs were both reached, at once or after a while."""
        if not (half.finished() and other.finished()):
            return 0
        if half.fin_acked and other.fin_acked:
            conversation.over_ns = ts_ns
            return self._close(conversation, number, ts_ns, 1)
        if not conversation.lingers and half.linger_ns == other.linger_ns == NEVER:
            conversation.lingers = True
            half.linger_ns = later(ts_ns, self.linger)
            self.deadlines.linger(half, self.table.open)
        return 0

    def expire(self, ts_ns: cython.longlong) -> cython.int:
        """Capture time has come to the next deadline: see what is due."""
        half: HalfStream
        due_ns: cython.longlong
        first: cython.longlong
        while self.deadlines.next_ns <= ts_ns and (self.pending or self.deadlines.any()):
            due_ns = self.deadlines.next_ns
            first = self.writer.count
            if self.pending and self.pending.deadline_ns <= due_ns:
                self._enter(self.pending.queue[0])
            else:
                half = self.deadlines.take()
                if half.open:
                    self._expire(half, due_ns)
            self.writer.note_late(first, -1, due_ns)
        return 0

    def _expire(self, half: HalfStream, ts_ns: cython.longlong) -> cython.int:
        """The deadline of a half-stream has come."""
        conversation: Conversation = self.table.conversations[half.index >> 1]
        other: HalfStream = self.table.halves[half.index ^ 1]
        reset = conversation.reset
        over: cython.bint = True
        if half.linger_ns <= ts_ns:
            if reset is not None:
                over = reset.place == CERTAIN
                due_ns = later(reset.quiet_ns, self._reset_wait(conversation))
                if due_ns > half.linger_ns:
                    half.linger_ns = due_ns
                    return self.deadlines.add(half, due_ns, self.table.open)
            conversation.over_ns = half.linger_ns
            return self._close(conversation, conversation.last_number(), conversation.end_ns, over)
        out_of_order.settle(half, other, ts_ns, self.history.seen, self.deadlines, self.table.open)
        return self._end(conversation, half, other, conversation.last_number(), conversation.end_ns)
