# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""When to look at which half-stream next.

Deadlines stand in a heap, but those of ends, which come in order and are many, in a queue. A
deadline is only a reason to look: whether something is due is read from the half-stream's own
state, so deadlines that were overtaken by events need not be taken out.
"""

import heapq
from collections import deque

import cython
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream

NEVER = cython.declare(cython.longlong, 2**63 - 1)

# Deadlines beyond four for each open conversation before those of closed ones are taken out.
SPARE = cython.declare(cython.longlong, 1024)


class Deadlines:
    """Half-streams by deadline; `next_ns` is the earliest one, or later than any time."""

    def __init__(self):
        self.clear()

    def clear(self):
        """Forget all."""
        self.heap = []
        self.queue = deque()
        self.last_ns = -NEVER
        self.made = 0
        self.rooms_ns = NEVER
        self.next_ns = NEVER
        return 0

    def expect(self, rooms_ns):
        """Wake at a time for the beginnings that wait, too."""
        self.rooms_ns = rooms_ns
        self.next_ns = self._earliest()
        return 0

    def any(self):
        """Whether there are deadlines."""
        return len(self.heap) > 0 or len(self.queue) > 0

    def add(self, half, deadline_ns, conversations):
        """Look at a half-stream at a time; `conversations` are open."""
        if deadline_ns < NEVER:
            self.made += 1
            heapq.heappush(self.heap, (deadline_ns, self.made, half))
            if len(self.heap) > 4 * conversations + SPARE:
                self._clean_heap()
            self.next_ns = self._earliest()
        return 0

    def linger(self, half, conversations):
        """Look at a half-stream at its `linger_ns`, unless its conversation ends before."""
        if half.linger_ns < self.last_ns:
            return self.add(half, half.linger_ns, conversations)
        if half.linger_ns < NEVER:
            self._forget_closed()
            self.made += 1
            half.linger_turn = self.made
            self.last_ns = half.linger_ns
            self.queue.append(half)
            if len(self.queue) > 4 * conversations + SPARE:
                self._clean_queue()
            self.next_ns = self._earliest()
        return 0

    def take(self):
        """Take the earliest deadline out; gives its half-stream. There must be one."""
        half: HalfStream = self._first()
        self.next_ns = self._earliest()
        return half

    def _first(self):
        half: HalfStream
        if self.queue:
            half = self.queue[0]
            if not self.heap or (half.linger_ns, half.linger_turn) < self.heap[0][:2]:
                return self.queue.popleft()
        return heapq.heappop(self.heap)[2]

    def _earliest(self):
        half: HalfStream
        found: cython.longlong = self.heap[0][0] if self.heap else NEVER
        if self.queue:
            half = self.queue[0]
            found = min(found, half.linger_ns)
        return min(found, self.rooms_ns)

    def _clean_heap(self):
        """Forget deadlines that events have overtaken: what stays is two a half-stream at most."""
        half: HalfStream
        kept = []
        for entry in self.heap:
            half = entry[2]
            if half.open and (
                entry[0] == half.linger_ns
                or (half.waiting_until >= 0 and entry[0] == half.deadline_ns)
            ):
                kept.append(entry)
        heapq.heapify(kept)
        self.heap = kept
        return 0

    def _forget_closed(self):
        """Let go of ends that came before their deadline, as far as they are first in the queue."""
        half: HalfStream
        while self.queue:
            half = self.queue[0]
            if half.open:
                break
            self.queue.popleft()
        return 0

    def _clean_queue(self):
        """Let go of all of them; one a conversation stays."""
        half: HalfStream
        kept = deque()
        for half in self.queue:
            if half.open:
                kept.append(half)
        self.queue = kept
        return 0
