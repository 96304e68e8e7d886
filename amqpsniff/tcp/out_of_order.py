# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Both directions of a conversation: which bytes are held, for how long, and in which order.

Packets of a capture may be out of order, and some are missing. Acknowledged bytes were sent before
the segment that acknowledges them, so its own bytes are held until those were delivered; and bytes
after a hole are held until it is filled. A hole that the other side has acknowledged is waited for
during a limited time (see `Limits`): `settle` starts and checks this time. Then the missing bytes
are given up: their holes become gaps, and the held bytes of both directions are delivered in the
order of capture. So a request comes before its reply, even if one of them was captured late or
never.

In an ordinary capture no bytes are held, and no function here is called.

Deadlines are in a heap, except those of ends, which come in order and are many: these are in a
queue. A deadline only triggers a check of the half-stream's own state, so obsolete deadlines stay.
"""

from __future__ import annotations

import heapq
from collections import deque

import cython
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream, Piece, later, piece_of
from cython.cimports.amqpsniff.tcp.limits import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOTHING = cython.declare(cython.longlong, -1)
"""What a hole acknowledges."""

SPARE_DEADLINES = cython.declare(cython.longlong, 1024)
"""Deadlines beyond four for each open conversation before those of closed ones are taken out."""


@cython.cclass
class Deadlines:
    """Half-streams by deadline."""

    next_ns: cython.longlong  # the earliest deadline, or `NEVER`
    heap: list[Any]  # (deadline, its number, half-stream)
    queue: Any  # half-streams by `linger_ns`
    last_ns: cython.longlong  # the latest deadline in the queue
    made: cython.longlong  # deadlines so far
    pending_ns: cython.longlong  # the deadline of `PendingConversations`

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> cython.int:
        """Forget all."""
        self.heap = []
        self.queue = deque()
        self.last_ns = -NEVER
        self.made = 0
        self.pending_ns = NEVER
        self.next_ns = NEVER
        return 0

    def expect(self, pending_ns: cython.longlong) -> cython.int:
        """Wake at a time for the beginnings that wait, too."""
        self.pending_ns = pending_ns
        self.next_ns = self._earliest()
        return 0

    def any(self) -> cython.bint:
        """True if there are deadlines."""
        return len(self.heap) > 0 or len(self.queue) > 0

    def add(
        self, half: HalfStream, deadline_ns: cython.longlong, conversations: cython.longlong
    ) -> cython.int:
        """Look at a half-stream at a time; `conversations` are open."""
        if deadline_ns < NEVER:
            self.made += 1
            heapq.heappush(self.heap, (deadline_ns, self.made, half))
            if len(self.heap) > 4 * conversations + SPARE_DEADLINES:
                self._clean_heap()
            self.next_ns = self._earliest()
        return 0

    def linger(self, half: HalfStream, conversations: cython.longlong) -> cython.int:
        """Look at a half-stream at its `linger_ns`, unless its conversation ends before."""
        if half.linger_ns < self.last_ns:
            return self.add(half, half.linger_ns, conversations)
        if half.linger_ns < NEVER:
            self._forget_closed()
            self.made += 1
            half.linger_turn = self.made
            self.last_ns = half.linger_ns
            self.queue.append(half)
            if len(self.queue) > 4 * conversations + SPARE_DEADLINES:
                self._clean_queue()
            self.next_ns = self._earliest()
        return 0

    @cython.cfunc
    def take(self) -> HalfStream:
        """Take the earliest deadline out; gives its half-stream. There must be one."""
        half: HalfStream = self._first()
        self.next_ns = self._earliest()
        return half

    @cython.cfunc
    def _first(self) -> HalfStream:
        half: HalfStream
        if self.queue:
            half = self.queue[0]
            if not self.heap or (half.linger_ns, half.linger_turn) < self.heap[0][:2]:
                return self.queue.popleft()
        return heapq.heappop(self.heap)[2]

    @cython.exceptval(-2)
    def _earliest(self) -> cython.longlong:
        half: HalfStream
        earliest_ns: cython.longlong = self.heap[0][0] if self.heap else NEVER
        if self.queue:
            half = self.queue[0]
            earliest_ns = min(earliest_ns, half.linger_ns)
        return min(earliest_ns, self.pending_ns)

    def _clean_heap(self) -> cython.int:
        """Forget deadlines that events have overtaken: what stays is two a half-stream at most."""
        half: HalfStream
        entries = []
        for entry in self.heap:
            half = entry[2]
            if half.open and (
                entry[0] == half.linger_ns
                or (half.waiting_until >= 0 and entry[0] == half.deadline_ns)
            ):
                entries.append(entry)
        heapq.heapify(entries)
        self.heap = entries
        return 0

    def _forget_closed(self) -> cython.int:
        """Let go of ends that came before their deadline, as far as they are first in the queue."""
        half: HalfStream
        while self.queue:
            half = self.queue[0]
            if half.open:
                break
            self.queue.popleft()
        return 0

    def _clean_queue(self) -> cython.int:
        """Let go of all of them; one a conversation stays."""
        half: HalfStream
        halves: deque[HalfStream] = deque()
        for half in self.queue:
            if half.open:
                halves.append(half)
        self.queue = halves
        return 0


def release(
    half: HalfStream,
    other: HalfStream,
    number: cython.longlong,
    ts_ns: cython.longlong,
    seen: cython.longlong,
) -> cython.int:
    """Deliver held bytes that need not wait, and make gaps of holes given up.

    The events are those of packet `number`. It is -1 if no packet caused them: then each segment
    has its own packet, but never one before that of the last delivery.
    """
    own_piece: Piece
    other_piece: Piece
    while True:
        own_piece = _next(half)
        other_piece = _next(other)
        if own_piece is None and other_piece is None:
            return 0
        if _own_is_first(own_piece, other_piece, half, other):
            if not _hand_on(own_piece, half, other, number, ts_ns, seen):
                return 0
        elif not _hand_on(other_piece, other, half, number, ts_ns, seen):
            return 0


@cython.cfunc
def _next(half: HalfStream) -> Piece:
    """The piece held that is next; None if nothing is held, or a hole before it is waited for.

    A hole that is given up is a piece that needs `NOTHING`, as of the packet behind it.
    """
    piece: Piece
    if half.holds():
        piece = half.held.front()
        if piece.start == half.next_offset:
            return piece
        if piece.start <= half.abandoned_below:
            return _hole(half, piece.start, piece.number, piece.ts_ns)
    elif half.next_offset < half.fin_offset <= half.abandoned_below:
        return _hole(half, half.fin_offset, half.fin_number, half.fin_ns)
    return None


@cython.cfunc
def _hole(
    half: HalfStream, end: cython.longlong, number: cython.longlong, ts_ns: cython.longlong
) -> Piece:
    """A hole that is given up, as of the packet behind it."""
    return piece_of(half.next_offset, end, b"", number, ts_ns, -1, NOTHING)


@cython.cfunc
@cython.exceptval(-1, check=True)
def _own_is_first(
    own_piece: Piece | None, other_piece: Piece | None, half: HalfStream, other: HalfStream
) -> cython.bint:
    """True if `own_piece` is to be handed on before `other_piece`; one of the two may be None."""
    waiting: cython.bint
    if own_piece is None or other_piece is None:
        return other_piece is None
    waiting = waits(own_piece.needs, other)
    if waiting != waits(other_piece.needs, half):
        return not waiting
    # Each acknowledging the other, the later one was sent again, with a newer acknowledgement.
    return (own_piece.number > other_piece.number) == waiting


def waits(needs: cython.longlong, other: HalfStream) -> cython.bint:
    """True if what `other` sent up to an offset is still to come."""
    return needs > other.next_offset and not other.not_captured and not other.finished()


@cython.cfunc
@cython.exceptval(-1, check=True)
def _hand_on(
    piece: Piece,
    half: HalfStream,
    other: HalfStream,
    number: cython.longlong,
    ts_ns: cython.longlong,
    seen: cython.longlong,
) -> cython.bint:
    """Hand on the piece or the hole that is next, unless it has to wait."""
    if waits(piece.needs, other) and piece.needs > other.abandoned_below and _next(other) is None:
        return False
    if number < 0:
        number, ts_ns = _not_before(half, other, piece.number, piece.ts_ns)
    if piece.needs == NOTHING:
        half.lose(piece.end - piece.start, number, ts_ns)
    else:
        half.deliver_piece(half.held.take_front(), number, ts_ns, seen)
    return True


@cython.cfunc
def _not_before(
    half: HalfStream, other: HalfStream, number: cython.longlong, ts_ns: cython.longlong
) -> tuple[Any, ...]:
    """A packet held back and its time, or those of the last one handed on if that was later."""
    if number < half.delivered_number:
        number, ts_ns = half.delivered_number, half.delivered_ns
    if number < other.delivered_number:
        number, ts_ns = other.delivered_number, other.delivered_ns
    return number, ts_ns


def settle(
    half: HalfStream,
    other: HalfStream,
    ts_ns: cython.longlong,
    seen: cython.longlong,
    deadlines: Deadlines,
    conversations: cython.longlong,
) -> cython.int:
    """Give up overdue holes, start the time of others, and find half-streams without holes."""
    segments: cython.longlong = half.packets + other.packets
    waiting: cython.bint
    while _give_up_overdue(
        half, other, segments, ts_ns, seen, deadlines, conversations
    ) or _give_up_overdue(other, half, segments, ts_ns, seen, deadlines, conversations):
        pass
    waiting = half.waiting_until >= 0 or other.waiting_until >= 0
    waiting = waiting or half.fin_offset >= 0 or other.fin_offset >= 0
    waiting = waiting or half.closed_window is not None or other.closed_window is not None
    waiting = waiting or half.doubted
    half.slow = waiting or half.needs_care(other)
    other.slow = waiting or other.needs_care(half)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=True)
def _give_up_overdue(
    half: HalfStream,
    other: HalfStream,
    segments: cython.longlong,
    ts_ns: cython.longlong,
    seen: cython.longlong,
    deadlines: Deadlines,
    conversations: cython.longlong,
) -> cython.bint:
    """Give up the overdue bytes of a direction; True if there were any."""
    if _start_or_stop_wait(half, other, segments, ts_ns):
        deadlines.add(half, half.deadline_ns, conversations)
    if not _is_due(half, segments, ts_ns):
        return False
    half.abandoned_below = max(half.abandoned_below, half.waiting_until)
    half.waiting_until = -1
    if not half.holds():
        half.not_captured = half.ack_seen  # until something of it is captured again
    release(half, other, -1, 0, seen)
    return True


@cython.cfunc
@cython.exceptval(-1, check=True)
def _start_or_stop_wait(
    half: HalfStream, other: HalfStream, segments: cython.longlong, ts_ns: cython.longlong
) -> cython.bint:
    """Begin to wait for bytes that should be there by now, or end a wait for bytes that came.

    `segments`: segments of the conversation so far. True if a wait began.
    """
    hole_start: cython.longlong
    end: cython.longlong
    blocks: cython.bint
    if half.held is None and other.held is None and half.fin_offset <= half.next_offset:
        half.waiting_until = -1
        return False
    hole_start = _hole_start(half)
    end = _hole_end(half, hole_start)
    if end <= half.abandoned_below:
        end = -1
    blocks = _next(other) is not None
    if half.waiting_until >= 0 and (
        half.waiting_until <= hole_start
        or half.waiting_acked != half.ack_seen
        or (end < 0 and not blocks)
    ):
        half.waiting_until = -1
    if half.waiting_until >= 0 or (end < 0 and not blocks):
        return False
    if half.ack_seen:
        if half.acked <= max(hole_start, half.abandoned_below) or (half.acked < end and not blocks):
            return False
    half.waiting_acked = half.ack_seen
    if half.ack_seen:
        half.waiting_until = half.acked
        half.deadline_segments = segments + half.pool.limits.acked_hole_segments
        half.deadline_ns = later(ts_ns, half.pool.limits.acked_hole_ns)
    elif end >= 0:
        half.waiting_until = max(end, half.held.end() if half.held is not None else -1)
        half.deadline_segments = NEVER
        half.deadline_ns = later(ts_ns, half.pool.limits.unacked_hole_ns)
    return half.waiting_until >= 0


@cython.cfunc
@cython.exceptval(-1, check=True)
def _hole_start(half: HalfStream) -> cython.longlong:
    """Start of the first hole: all bytes before it were delivered, or are held."""
    if not half.holds() or _next(half) is None:
        return half.next_offset
    return half.held.run_end()


@cython.cfunc
@cython.exceptval(-2, check=True)
def _hole_end(half: HalfStream, hole_start: cython.longlong) -> cython.longlong:
    """End of the hole that begins at `hole_start`, at held bytes or at the FIN; -1 for no hole."""
    end: cython.longlong
    if half.holds():
        end = half.held.after(hole_start)
        if end >= 0:
            return end
    return half.fin_offset if half.fin_offset > hole_start else -1


@cython.cfunc
@cython.exceptval(-1, check=True)
def _is_due(half: HalfStream, segments: cython.longlong, ts_ns: cython.longlong) -> cython.bint:
    """True if the bytes that are missing have been waited for long enough."""
    if half.waiting_until < 0:
        return False
    if segments >= half.deadline_segments or ts_ns >= half.deadline_ns:
        return True
    return (
        not half.ack_seen
        and half.held is not None
        and half.held.count() >= half.pool.limits.unacked_hole_segments
    )


def make_room(half: HalfStream, other: HalfStream, seen: cython.longlong) -> cython.bint:
    """Deliver bytes until the held ones are within the limit; True if there were too many."""
    piece: Piece
    had_too_many: cython.bint = False
    while half.holds() and half.held.full():
        had_too_many = True
        piece = half.held.front()
        half.abandoned_below = max(half.abandoned_below, piece.start)
        other.abandoned_below = max(other.abandoned_below, piece.needs)
        release(half, other, -1, 0, seen)
    return had_too_many


def flush(
    half: HalfStream,
    other: HalfStream,
    number: cython.longlong,
    ts_ns: cython.longlong,
    seen: cython.longlong,
) -> cython.int:
    """End of the conversation: give up every hole, and bytes acknowledged but not captured."""
    half.abandoned_below = other.abandoned_below = NEVER
    release(half, other, -1, 0, seen)
    half.end(other, number, ts_ns)
    other.end(half, number, ts_ns)
    return 0
