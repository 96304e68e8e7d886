# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Conversations beyond the ordinary segment: beginnings, ends, holes, deadlines.

`Reassembler` finds the conversation of a segment and handles ordinary segments itself; all others
come here one by one. `handle_segment` checks the SYN, the RST, the plausibility of the position,
the acknowledgement, the payload and the FIN, in this order; then it gives up overdue holes, and
closes the conversation at its end. Often only later segments decide about a RST or SYN (`doubt`).

Later checks (of a hole, of an unacknowledged end) wait in `deadlines`.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp import out_of_order
from cython.cimports.amqpsniff.tcp.codes import (
    ACK,
    ACKNOWLEDGED,
    AHEAD,
    CAPTURED,
    CERTAIN,
    CLOSE,
    CONFLICT,
    CURRENT,
    EXTRA,
    FIN,
    IDENTIFICATION,
    LIMIT,
    MASK,
    MAYBE_REUSED,
    NEITHER,
    NO_WINDOW,
    OUT_OF_ORDER,
    OUTSIDE,
    PACKET,
    RETRANSMITTED,
    REUSED,
    RST,
    SAME_PACKET,
    SEEN,
    SEGMENT_FIELDS,
    SEQ,
    START,
    SUCCESSOR,
    SYN,
)
from cython.cimports.amqpsniff.tcp.conversation import Conversation, ConversationTable, key_of
from cython.cimports.amqpsniff.tcp.half_stream import (
    HalfStream,
    HoldingPool,
    Segment,
    later,
)
from cython.cimports.amqpsniff.tcp.handshake import (
    classify_syn,
    detect_reuse,
    may_be_first,
    may_open,
    open_conversation,
    set_starts,
)
from cython.cimports.amqpsniff.tcp.limits import NEVER
from cython.cimports.amqpsniff.tcp.out_of_order import Deadlines
from cython.cimports.amqpsniff.tcp.retransmissions import History
from cython.cimports.amqpsniff.tcp.stream import EventWriter

from .doubt import PossibleSuccessor, Reset
from .handshake import KeptSegment, PendingConversations
from .retransmissions import Resent
from .stream import TcpFinding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MAX_BEFORE_RESET = cython.declare(cython.int, 1 << 24)
"""Bytes that a RST may show to be missing: some devices reset with any number, a real one is
within a window of the last byte that was captured."""
SOON_NS = cython.declare(cython.longlong, 200_000_000)
"""Time within which no SYN is sent again: TCP waits for a second (RFC 6298 §2.1)."""
_ROW = array("q", [0]) * SEGMENT_FIELDS


@cython.final
@cython.no_gc
@cython.cclass
class FollowedSegment(Segment):
    """A segment of an open conversation, once `_handle` has found where it belongs."""

    half: HalfStream
    other: HalfStream  # the other direction
    conversation: Conversation


@cython.cclass
class SlowPath:
    """State of all conversations; `expire` is to be called at `deadlines.next_ns`."""

    limits: Any
    max_conversations: cython.longlong
    linger_after_ns: cython.longlong
    near_bytes: cython.longlong
    segment_serial: cython.longlong  # how many segments were read, with the present one
    limit_reported: cython.bint

    # counters, see `Reassembler.counters`
    cut: cython.longlong
    retransmissions: cython.longlong
    duplicates: cython.longlong
    out_of_order: cython.longlong
    impossible: cython.longlong

    pool: HoldingPool
    table: ConversationTable
    writer: EventWriter
    history: History
    deadlines: Deadlines
    pending: Any  # the `PendingConversations`
    pending_by_key: dict[Any, Any]
    positions: Any  # see `Reassembler.take_positions`, or None
    starts: Any  # see `Reassembler.keep_starts`, or None; with `positions` it is only read

    def __init__(self, limits: Any, positions: Any = False, starts: Any = None) -> None:
        self.limits = limits
        self.max_conversations = limits.conversations
        self.linger_after_ns = limits.linger_ns
        self.near_bytes = limits.closed_near_bytes
        self.writer = EventWriter()
        self.history = History(limits)
        self.pool = HoldingPool(limits, self.writer, self.history)
        self.table = ConversationTable(limits)
        self.deadlines = Deadlines()
        self.pending = PendingConversations(limits)
        self.pending_by_key = self.pending.by_key
        self.starts = starts
        self.segment_serial = 0
        self.cut = self.retransmissions = self.duplicates = 0
        self.out_of_order = self.impossible = 0
        self.limit_reported = False
        self.positions = array("q") if positions else None

    @cython.cfunc
    def find(self, rows: cython.longlong[::1], at: cython.longlong) -> HalfStream:
        """The half-stream of a segment, or None."""
        return self.table.find(rows, at)

    def note_unreachable(self, rows: cython.longlong[::1], at: cython.longlong) -> cython.int:
        """ICMP reports an undelivered segment: note the first report about a SYN."""
        half: HalfStream = self.find(rows, at)
        if half is None or half.isn != rows[at + SEQ]:
            return 0
        conversation: Conversation = self.table.conversations[half.index >> 1]
        if conversation.unreachable < 0:
            conversation.unreachable = rows[at + ACKNOWLEDGED]
        return 0

    @cython.exceptval(-2)
    def unknown(
        self,
        octets: bytes,
        rows: cython.longlong[::1],
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A segment of no open conversation: gives the half-stream it opens, or -1."""
        segment: FollowedSegment = self._segment(octets, rows, at, number, ts_ns)
        is_syn: cython.bint = segment.flags & SYN != 0
        key: bytes = key_of(rows, at)
        pending = self.pending_by_key.get(key) if self.pending_by_key else None
        if pending is not None:
            if not is_syn or pending.fits(key, segment):
                return self._queue_pending(pending, key, segment) - 1
            self._replay_pending(pending)
            if self.find(rows, at) is not None:
                return self.find(rows, at).index
        if not may_open(self.table, segment):
            return -1
        if not is_syn and segment.extra < 0:
            if may_be_first(octets, segment.start, segment.captured):
                pending = self._make_pending(key, segment, number)
                if pending is not None:
                    return self._queue_pending(pending, key, segment) - 1
        return self._open(segment, number)

    @cython.cfunc
    def _segment(
        self,
        octets: bytes,
        rows: cython.longlong[::1],
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> FollowedSegment:
        """The segment with the row at `at`; `octets` are the bytes of the batch."""
        segment: FollowedSegment = FollowedSegment.__new__(FollowedSegment)
        segment.read(self.writer, octets, rows, at, number, ts_ns)
        return segment

    @cython.cfunc
    def _make_pending(self, key: bytes, segment: Segment, serial: cython.longlong) -> Any:
        """A pending conversation for segments before its SYN; None beyond the limit."""
        if self.pending.full or self.positions is not None:
            return None
        keys = key, self.table.back_key(segment.rows, segment.at)
        pending = self.pending.make(keys, serial, later(segment.ts_ns, self.limits.acked_hole_ns))
        self.deadlines.expect(self.pending.deadline_ns)
        return pending

    def _queue_pending(self, pending: Any, key: bytes, segment: Segment) -> cython.int:
        """Let a segment wait, until the beginning of its conversation is known."""
        if pending.add(self._kept_segment(key, segment), self.limits):
            self._replay_pending(pending)
        return 0

    def _replay_pending(self, pending: Any) -> cython.int:
        """Open the conversation of segments that waited, and follow them."""
        segment: FollowedSegment
        half: HalfStream
        identification: cython.longlong = self.history.identification
        current_serial: cython.longlong = self.segment_serial
        serial: cython.longlong = pending.serial
        opened: cython.bint = False
        starts = pending.starts()
        if self.starts is not None and self.positions is None:
            self.starts[serial] = (pending.first_key(), starts)
        self.pending.remove(pending)
        self.deadlines.expect(self.pending.deadline_ns)
        for saved in pending.arranged():
            segment = self._recall(saved)
            if self.find(segment.rows, 0) is None:
                if opened:
                    if not may_open(self.table, segment):
                        continue
                    serial = saved.number
                self._open(segment, serial)
            if not opened:
                half = self.find(segment.rows, 0)
                set_starts(self.table, self.table.conversations[half.index >> 1], starts)
            opened = True
            self._replay(saved, segment)
        self.history.identification, self.segment_serial = identification, current_serial
        return 0

    def _replay_segments(self, segments: Any) -> cython.int:
        """Follow the segments that may have begun a conversation, when the old one is over."""
        segment: FollowedSegment
        identification: cython.longlong = self.history.identification
        current_serial: cython.longlong = self.segment_serial
        for saved in segments:
            segment = self._recall(saved)
            self.segment_serial = saved.segment_serial
            if self.find(segment.rows, 0) is None:
                self._open(segment, saved.number)
            self._replay(saved, segment)
        self.history.identification, self.segment_serial = identification, current_serial
        return 0

    @cython.cfunc
    def _kept_segment(self, key: bytes, segment: Segment) -> Any:
        """The `KeptSegment` of a segment, to be followed later."""
        rows: cython.longlong[::1] = segment.rows
        at: cython.longlong = segment.at
        payload = segment.octets[segment.start : segment.start + segment.captured]
        column: cython.longlong
        row = _ROW[:]
        row_view: cython.longlong[::1] = row
        for column in range(SEGMENT_FIELDS):
            row_view[column] = rows[at + column]
        return KeptSegment(key, row, payload, segment.number, segment.ts_ns, self.segment_serial)

    @cython.cfunc
    def _recall(self, saved: Any) -> FollowedSegment:
        """A segment that was kept: its payload is now in bytes of its own."""
        self.writer.extra.append(saved.octets)
        row: cython.longlong[::1] = saved.row
        row[EXTRA], row[START], row[SEEN] = len(self.writer.extra) - 1, 0, self.history.seen
        return self._segment(saved.octets, row, 0, saved.number, saved.ts_ns)

    def _replay(self, saved: Any, segment: FollowedSegment) -> cython.int:
        """Follow a segment that was kept, as of the time when it came."""
        self.history.identification = segment.rows[IDENTIFICATION]
        self.segment_serial = saved.segment_serial
        return self._handle(segment, self.find(segment.rows, 0).index)

    def _open(self, segment: Segment, serial: cython.longlong) -> cython.int:
        """Open a conversation, see `open_conversation`; gives the segment's half-stream."""
        while self.table.open_count >= self.max_conversations:
            self._evict(segment.number, segment.ts_ns)
        start_facts = (
            None if self.positions is None or self.starts is None else self.starts.get(serial)
        )
        return open_conversation(self.table, self.writer, self.pool, segment, serial, start_facts)

    def _evict(self, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """Close the least active conversation, to make room for another."""
        quiet: Conversation = self.table.least_active()
        if not self.limit_reported:
            self.limit_reported = True
            detail = f"more than {self.max_conversations} conversations are open"
            self._report("tcp-conversation-limit", quiet, number, ts_ns, detail, 1)
        self._close(quiet, quiet.last_number(), quiet.end_ns, 0)
        return 0

    def _close(
        self,
        conversation: Conversation,
        number: cython.longlong,
        ts_ns: cython.longlong,
        has_ended: cython.int,
    ) -> cython.int:
        """End a conversation; `has_ended`: it will not continue."""
        first: HalfStream = conversation.first
        if self.pending_by_key and conversation.key in self.pending_by_key:
            self._replay_pending(self.pending_by_key[conversation.key])
            if not first.open:
                return 0
        if conversation.reset is not None:
            self._apply_reset(conversation)
        out_of_order.flush(first, conversation.second, number, ts_ns, self.history.seen)
        self.writer.append(CLOSE, first.index, -1, 0, 0, 0, number, ts_ns)
        self.table.remove(conversation, has_ended != 0)
        if conversation.successor is not None:
            self._replay_segments(conversation.successor.segments)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def close_all(self, max_count: cython.longlong) -> cython.int:
        """End every open conversation: those that wait for a time as if it had come, and
        `max_count` of the others in the order in which they were opened.
        """
        conversation: Conversation
        remaining: cython.longlong = max_count
        self.expire(NEVER - 1)
        while self.pending:
            self._replay_pending(self.pending.queue[0])
        while self.table.open_count and remaining:  # to close one may open another
            for conversation in self.table.all_open(
                remaining if remaining > 0 else self.table.open_count
            ):
                remaining -= 1
                self._close(conversation, conversation.last_number(), conversation.end_ns, 0)
        if not self.table.open_count:
            self.deadlines.clear()
        return 0

    def handle_segment(
        self,
        octets: bytes,
        index: cython.int,
        rows: cython.longlong[::1],
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Take any segment of an open conversation; `octets` is the block of packets."""
        return self._handle(self._segment(octets, rows, at, number, ts_ns), index)

    def _handle(self, segment: FollowedSegment, index: cython.int) -> cython.int:
        """Take a segment of the half-stream with an index, in the order of the module's prose."""
        half: HalfStream = self.table.halves[index]
        other: HalfStream = self.table.halves[index ^ 1]
        conversation: Conversation = self.table.conversations[index >> 1]
        flags: cython.int = segment.flags
        owner: cython.int
        reused: cython.int
        segment.half, segment.other, segment.conversation = half, other, conversation
        if conversation.successor is not None:
            owner = self._classify_doubtful(segment)
            if owner == SUCCESSOR:
                return self._reuse_endpoints(segment)
            if owner == NEITHER:
                return 0
        if flags & SYN:
            owner = classify_syn(half, other, segment)
            if owner == NEITHER:
                return 0
            if owner == SUCCESSOR:
                return self._start_doubt(segment)
        if flags & RST:
            half.count(segment.number, segment.ts_ns, self.segment_serial)
            return 0 if self._waits_for_handshake(segment) else self._take_reset(segment)
        if segment.length > 0:
            reused = detect_reuse(conversation, half, other, segment)
            if reused == MAYBE_REUSED:
                return self._start_doubt(segment)
            if reused == REUSED or self._is_far(segment):
                return self._reuse_endpoints(segment)
        if (segment.length > 0 or flags & FIN) and not half.possible(segment.payload_seq):
            if self.table.is_straggler(segment.rows, segment.at, segment.payload_seq, False):
                return 0  # of the conversation before this one
            return self._reuse_endpoints(segment) if self._accept_impossible(segment) else 0
        return self._take_possible(segment)

    def _classify_doubtful(self, segment: FollowedSegment) -> cython.int:
        """Whose a segment is while another conversation may have begun: `SUCCESSOR` if it has."""
        key: bytes = key_of(segment.rows, segment.at)
        successor = segment.conversation.successor
        if successor.confirms(key, segment, segment.half.next_seq, self.near_bytes):
            return SUCCESSOR
        if not successor.repeats(key, segment):
            return CURRENT
        if len(successor.segments) < self.limits.doubtful_segments:
            successor.segments.append(self._kept_segment(key, segment))
        return NEITHER

    def _take_possible(self, segment: FollowedSegment) -> cython.int:
        """Take a segment that belongs to its conversation and lies where it can."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        seq: cython.longlong = segment.payload_seq
        length: cython.longlong = segment.length
        number: cython.longlong = segment.number
        ts_ns: cython.longlong = segment.ts_ns
        flags: cython.int = segment.flags
        side: cython.int = half.index & 1
        before_ns: cython.longlong = half.last_ns
        half.count(number, ts_ns, self.segment_serial)
        if length == 0:
            copy: cython.bint = half.count_empty(self.history.identification)
            if flags & SYN and half.syn_captured and not copy:
                self._count_syn_again(segment, before_ns)
        if flags & SYN:
            half.syn_captured = 1
        if half.doubted:
            self._resolve_doubt(segment)
        if flags & ACK:
            if other.next_seq < 0 and half.isn >= 0 and seq == ((half.isn + 1) & MASK):
                other.start_at(segment.ack)  # the answer to the SYN was not captured
            syn_ns: cython.longlong = conversation.syn_ns
            timed: cython.bint = conversation.syn_seen and syn_ns >= 0
            if timed and conversation.round_trip_ns < 0 and side == 0:
                conversation.round_trip_ns = ts_ns - syn_ns if ts_ns > syn_ns else 0
            other.acknowledge(segment.ack)
        if self._waits_for_handshake(segment):
            return 0
        if length == 0 and not flags & FIN:
            half.sent_before(seq, ts_ns)
        if flags & NO_WINDOW or half.closed_window is not None or other.closed_window is not None:
            half.update_window(other, segment)
        if length > 0:
            half.impossible_count = 0
            self._take_payload(segment)
        if flags & FIN:
            if half.next_seq < 0:
                half.start_at(seq + length)
            if half.finish_at(seq + length, number, ts_ns) and conversation.ended is None:
                conversation.ended, conversation.ended_by = "fin", side
                conversation.ended_ns, conversation.ended_number = ts_ns, number
            out_of_order.release(half, other, number, ts_ns, segment.seen)
        self._settle(half, other, ts_ns)
        return self._close_if_finished(conversation, half, other, number, ts_ns)

    def _count_syn_again(self, segment: FollowedSegment, before_ns: cython.longlong) -> cython.int:
        """A SYN, or the answer to one, was sent again, the last one at `before_ns`. Behind the
        first bytes it may be a copy, and so may it be if it comes soon without an identification.
        """
        half: HalfStream = segment.half
        conversation: Conversation = segment.conversation
        soon: cython.bint = segment.ts_ns <= later(before_ns, SOON_NS)
        if half.next_offset + segment.other.next_offset > 0:
            return 0
        if self.history.identification <= 0 and soon:
            half.copies += 1
            return 0
        self.retransmissions += 1
        half.retransmissions += 1
        if half.first_retransmission is None:
            half.first_retransmission = segment.number & NUMBER_MASK, segment.ts_ns
        if half.index & 1:
            conversation.answers_again += 1
        else:
            conversation.syns_again += 1
            if conversation.round_trip_ns < 0:
                conversation.syn_ns = segment.ts_ns
        return 0

    def _waits_for_handshake(self, segment: FollowedSegment) -> cython.bint:
        """True if a segment came before the handshake, and waits for it, or is dropped."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        acks: cython.bint = segment.flags & ACK != 0
        half_known: cython.bint = half.next_seq >= 0
        other_known: cython.bint = other.next_seq >= 0
        if half_known and other_known:
            if self.pending_by_key and conversation.key in self.pending_by_key:
                self._replay_pending(self.pending_by_key[conversation.key])
            return not half.open
        if not half_known and other.isn >= 0 and acks:
            if (segment.ack - other.isn - 1) & MASK > self.limits.closed_near_bytes:
                return True  # it answers segments before the SYN
        if segment.length == 0 or not (
            (not half_known and other.isn >= 0) or (not other_known and half.isn >= 0 and acks)
        ):
            return False
        key = key_of(segment.rows, segment.at)
        pending = self.pending_by_key.get(key)
        if pending is None:
            pending = self._make_pending(key, segment, conversation.serial)
        if pending is None:
            return False
        half.packets -= 1  # it is counted when it is followed
        self._queue_pending(pending, key, segment)
        return True

    def _start_doubt(self, segment: FollowedSegment) -> cython.int:
        """Keep a segment that may begin another conversation, unless that is certain."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        reset = conversation.reset
        is_known: cython.bint = half.next_seq >= 0 and other.next_seq >= 0
        is_known = is_known or half.next_offset > 0 or other.next_offset > 0
        is_over: cython.bint = half.finished() and other.finished()
        if is_over or not is_known or (reset is not None and reset.window_position == CERTAIN):
            return self._reuse_endpoints(segment)
        key = key_of(segment.rows, segment.at)
        code, detail = "tcp-syn-ignored", ""
        if not segment.flags & SYN:
            code = "tcp-overlap-conflict" if half.possible(segment.payload_seq) else None
            detail = f"{segment.length} bytes sent again are not what was sent before"
        conversation.successor = PossibleSuccessor(
            half.index & 1,
            half.captured_end(),
            other.captured_end(),
            (key, self.table.back_key(segment.rows, segment.at)),
            self._kept_segment(key, segment),
            code,
            detail,
        )
        half.doubted = other.doubted = half.slow = other.slow = 1
        return 0

    def _take_reset(self, segment: FollowedSegment) -> cython.int:
        """Take a RST: it ends the conversation after a while, or once nothing else follows it."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        ts_ns: cython.longlong = segment.ts_ns
        captured_end: cython.longlong = half.captured_end()
        end: cython.longlong = captured_end
        offset: cython.longlong = half.next_offset + half.ahead(segment.seq)
        position: cython.int = OUTSIDE
        refused: cython.bint = False
        if half.next_seq < 0:
            if other.isn < 0:
                position = CERTAIN
            elif segment.flags & ACK:
                # the answer to a SYN (RFC 9293 §3.10.7.3)
                refused = (segment.ack - other.isn - 1) & MASK <= other.captured_end()
                position = CERTAIN if refused else OUTSIDE
        elif half.acknowledged() <= offset <= end:
            position = CERTAIN
        elif end < offset <= end + MAX_BEFORE_RESET:
            position = AHEAD
            end = offset
        if half.finished() and other.finished():
            return self._close_now(segment)
        if conversation.reset is None or conversation.reset.window_position > position:
            conversation.reset = Reset(
                segment, half.index & 1, end, other.captured_end(), position, captured_end
            )
            half.doubted = other.doubted = half.slow = other.slow = 1
            if position == CERTAIN:
                conversation.reset_ns = ts_ns
                self.writer.resets.append(half.index >> 1)
            if position != OUTSIDE:
                half.linger_ns = later(ts_ns, self._reset_wait(conversation))
                self.deadlines.add(half, half.linger_ns, self.table.open_count)
        return self._close_now(segment) if refused else 0

    def _close_now(self, segment: FollowedSegment) -> cython.int:
        """End the conversation of a segment: nothing more of it is to be expected."""
        segment.conversation.over_ns = segment.ts_ns
        return self._close(segment.conversation, segment.number, segment.ts_ns, 1)

    def _reset_wait(self, conversation: Conversation) -> cython.longlong:
        """Time that a conversation stays open after a RST, for bytes in flight: a round trip."""
        wait_ns: cython.longlong = self.linger_after_ns
        if conversation.reset.window_position != CERTAIN:
            return self.limits.doubtful_reset_ns
        if conversation.round_trip_ns >= 0 and conversation.round_trip_ns < wait_ns:
            wait_ns = min(wait_ns, max(2 * conversation.round_trip_ns, self.limits.acked_hole_ns))
        return wait_ns

    def _apply_reset(self, conversation: Conversation) -> cython.int:
        """A conversation ends by the RST that it had: bytes sent before that are missing.

        After a FIN the RST only answers what was sent to a side that is gone.
        """
        reset = conversation.reset
        half: HalfStream = conversation.second if reset.side else conversation.first
        other: HalfStream = conversation.first if reset.side else conversation.second
        inside: cython.bint = reset.window_position != OUTSIDE
        if conversation.ended is None or (inside and reset.ts_ns < conversation.ended_ns):
            conversation.ended, conversation.ended_by = "rst", reset.side
            conversation.ended_ns, conversation.ended_number = reset.ts_ns, reset.number
        if inside:
            if half.next_seq < 0 and half.ack_seen:  # nothing of it was captured before
                half.start_at(half.ack_seq)
            if half.next_seq >= 0:
                half.acknowledge(reset.seq)  # it is numbered after the last byte sent
            if reset.ack >= 0:
                other.acknowledge(reset.ack)
        return 0

    def _resolve_doubt(self, segment: FollowedSegment) -> cython.int:
        """Check if a side continues after its RST, or after a possible new beginning."""
        conversation: Conversation = segment.conversation
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        ts_ns: cython.longlong = segment.ts_ns
        side: cython.int = half.index & 1
        offset: cython.longlong
        end: cython.longlong = -1
        covered: cython.longlong = -1
        reset = conversation.reset
        if half.next_seq < 0:
            end = segment.length
        else:
            offset = half.next_offset + half.ahead(segment.payload_seq)
            if offset <= half.captured_end():  # in sequence
                end = offset + segment.length + (segment.flags & FIN)
        if segment.flags & ACK and other.next_seq >= 0:
            covered = other.next_offset + other.ahead(segment.ack)
            if covered > other.captured_end():
                covered = -1
        successor = conversation.successor
        if successor is not None and successor.side == side and successor.goes_on(end, covered):
            conversation.successor = None
            if successor.code is not None:
                packet = segment.number & NUMBER_MASK
                detail = successor.detail or f"the sender went on in packet {packet}"
                self._report_doubt(successor.code, conversation, successor, detail)
        if reset is not None:
            outside: cython.bint = reset.window_position == OUTSIDE
            if segment.length > 0:
                reset.payload_ns = ts_ns
            if reset.side != side:
                if reset.went_on_ns >= 0 and covered > reset.captured_end:
                    self._ignore_reset(conversation, segment.number)
            elif reset.goes_on(end, covered):
                if outside or ts_ns > later(reset.ts_ns, self.limits.acked_hole_ns):
                    if reset.went_on_ns < 0:
                        reset.went_on_ns = ts_ns
                    if outside or ts_ns >= later(reset.ts_ns, self.linger_after_ns):
                        self._ignore_reset(conversation, segment.number)
        half.doubted = conversation.reset is not None or conversation.successor is not None
        other.doubted = half.doubted
        return 0

    def _ignore_reset(self, conversation: Conversation, number: cython.longlong) -> cython.int:
        """The conversation continued after a RST."""
        reset = conversation.reset
        half: HalfStream = conversation.second if reset.side else conversation.first
        half.linger_ns = NEVER
        conversation.reset = None
        conversation.reset_ns = -1
        self.writer.resets.append(half.index >> 1)
        detail = f"it went on in packet {number & NUMBER_MASK}"
        return self._report_doubt("tcp-reset-ignored", conversation, reset, detail)

    def _is_far(self, segment: FollowedSegment) -> cython.bint:
        """True if a segment after a RST lies too far away to have been in flight at it."""
        half: HalfStream = segment.half
        reset = segment.conversation.reset
        if reset is None or reset.window_position != CERTAIN or half.next_seq < 0:
            return False
        return not -self.near_bytes <= half.ahead(segment.payload_seq) <= self.near_bytes

    def _reuse_endpoints(self, segment: FollowedSegment) -> cython.int:
        """The endpoints are used again: the old conversation ends, the segment opens a new one."""
        self._close_now(segment)
        half: HalfStream = self.find(segment.rows, segment.at)  # what waited may have opened one
        index: cython.int = self._open(segment, segment.number) if half is None else half.index
        return self._handle(segment, index)

    def _accept_impossible(self, segment: FollowedSegment) -> cython.bint:
        """Count an impossible segment; True if enough of them agree to be accepted."""
        half: HalfStream = segment.half
        seq: cython.longlong = segment.payload_seq
        self.impossible += 1
        detail = f"{half.ahead(seq)} bytes from the next one expected"
        self._report_segment("tcp-impossible-sequence", segment, detail, 1)
        in_a_row: cython.int = half.count_impossible(seq, segment.length)
        return in_a_row >= self.limits.impossible_in_a_row and segment.length > 0

    def note_position(
        self,
        half: HalfStream,
        offset: cython.longlong,
        rows: cython.longlong[::1],
        at: cython.longlong,
    ) -> cython.int:
        """Note where the payload of the segment at `at` lies: at an offset of its half-stream."""
        acked: cython.longlong = half.acknowledged() if half.ack_seen else -1
        packet, start, captured = rows[at + PACKET], rows[at + START], rows[at + CAPTURED]
        self.positions.extend((packet, half.index, offset, start, captured, acked))
        return 0

    def _take_payload(self, segment: FollowedSegment) -> cython.int:
        """Insert the payload of a segment; count and report its anomalies."""
        result: cython.int
        offset: cython.longlong
        half: HalfStream = segment.half
        other: HalfStream = segment.other
        if half.next_seq < 0:
            half.start_at(segment.payload_seq)
        if self.positions is not None and segment.extra < 0:
            offset = half.next_offset + half.ahead(segment.payload_seq)
            self.note_position(half, offset, segment.rows, segment.at)
        if segment.captured < segment.length:
            self.cut += 1
        needs: cython.longlong = other.offset_of(segment.ack) if segment.flags & ACK else 0
        was_lost: cython.bint = half.lost_before(segment, segment.conversation.round_trip_ns)
        result = half.insert(segment, needs, out_of_order.waits(needs, other))
        if was_lost and result & OUT_OF_ORDER:
            result ^= OUT_OF_ORDER
            if not result & RETRANSMITTED:
                result |= RETRANSMITTED
                half.retransmissions += 1
                self.history.sent_number = -1  # its first copy is not in the capture
        out_of_order.release(half, other, segment.number, segment.ts_ns, segment.seen)
        if out_of_order.make_room(half, other, segment.seen):
            result |= LIMIT
        if result == 0:
            return 0
        if result & RETRANSMITTED:
            self.retransmissions += 1
            if half.first_retransmission is None:
                half.first_retransmission = segment.number & NUMBER_MASK, segment.ts_ns
            if other.closed_window is None:  # to a closed window they are probes
                self._note_resent(segment)
        elif result & SAME_PACKET:
            self.duplicates += 1
            half.copies += 1
        if result & OUT_OF_ORDER:
            self.out_of_order += 1
        if result & CONFLICT:
            detail = f"{segment.length} bytes sent again are not what was sent before"
            max_findings = self.limits.conflict_findings
            self._report_segment("tcp-overlap-conflict", segment, detail, max_findings)
        if result & LIMIT:
            detail = "bytes held back for a missing segment reached the limit"
            self._report_segment("tcp-buffer-limit", segment, detail, 1)
        return 0

    def _note_resent(self, segment: FollowedSegment) -> cython.int:
        """A retransmission: note how long its sender has repeated the same bytes."""
        half: HalfStream = segment.half
        seq: cython.longlong = segment.payload_seq
        end: cython.longlong = half.ahead(seq) + segment.length
        acked: cython.bint = half.ack_seen and half.ahead(half.ack_seq) >= end
        sent_number: cython.longlong = self.history.sent_number
        resent = half.resent
        if resent is None or resent.seq != seq:
            start = sent_number & NUMBER_MASK, self.history.sent_ns
            if sent_number < 0:
                start = segment.number & NUMBER_MASK, segment.ts_ns
            half.resent = resent = Resent(seq, *start, resent)
        resent.again(segment.ts_ns, segment.other.last_ns, acked, half.next_offset)
        return 0

    def _report_segment(
        self, code: Any, segment: FollowedSegment, detail: Any, max_findings: cython.int
    ) -> cython.int:
        return self._report(
            code, segment.conversation, segment.number, segment.ts_ns, detail, max_findings
        )

    def _report_doubt(
        self, code: Any, conversation: Conversation, doubt: Any, detail: Any
    ) -> cython.int:
        return self._report(code, conversation, doubt.number, doubt.ts_ns, detail, 1)

    def _report(
        self,
        code: Any,
        conversation: Conversation,
        number: cython.longlong,
        ts_ns: cython.longlong,
        detail: Any,
        max_findings: cython.int,
    ) -> cython.int:
        if conversation.may_report(code, max_findings):
            self.writer.findings.append(TcpFinding(code, conversation, number, ts_ns, detail))
        return 0

    def _close_if_finished(
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
            half.linger_ns = later(ts_ns, self.linger_after_ns)
            self.deadlines.linger(half, self.table.open_count)
        return 0

    def expire(self, ts_ns: cython.longlong) -> cython.int:
        """Capture time has reached the next deadline: check all that are due."""
        half: HalfStream
        due_ns: cython.longlong
        first: cython.longlong
        while self.deadlines.next_ns <= ts_ns and (self.pending_by_key or self.deadlines.any()):
            due_ns = self.deadlines.next_ns
            first = self.writer.count
            if self.pending_by_key and self.pending.deadline_ns <= due_ns:
                self._replay_pending(self.pending.queue[0])
            else:
                half = self.deadlines.take()
                if half.open:
                    self._expire_half(half, due_ns)
            self.writer.note_late(first, -1, due_ns)
        return 0

    def _expire_half(self, half: HalfStream, ts_ns: cython.longlong) -> cython.int:
        """The deadline of a half-stream has come."""
        conversation: Conversation = self.table.conversations[half.index >> 1]
        other: HalfStream = self.table.halves[half.index ^ 1]
        reset = conversation.reset
        has_ended: cython.bint = True
        if half.linger_ns <= ts_ns:
            if reset is not None:
                has_ended = reset.window_position == CERTAIN
                due_ns = later(reset.payload_ns, self._reset_wait(conversation))
                if due_ns > half.linger_ns:
                    half.linger_ns = due_ns
                    return self.deadlines.add(half, due_ns, self.table.open_count)
            conversation.over_ns = half.linger_ns
            return self._close(
                conversation, conversation.last_number(), conversation.end_ns, has_ended
            )
        self._settle(half, other, ts_ns)
        number: cython.longlong = conversation.last_number()
        return self._close_if_finished(conversation, half, other, number, conversation.end_ns)

    def _settle(self, half: HalfStream, other: HalfStream, ts_ns: cython.longlong) -> cython.int:
        """Give up overdue holes, see `out_of_order`."""
        seen: cython.longlong = self.history.seen
        open_count: cython.longlong = self.table.open_count
        return out_of_order.settle(half, other, ts_ns, seen, self.deadlines, open_count)
