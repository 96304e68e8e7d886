# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""A window on a half-stream: the octets that are still needed, and the packets they came in.

Octets are appended at the end and forgotten at the begin; they lie in one buffer, moved only when
it is full, so that each is copied about twice however small the pieces are.
"""

from collections import deque

import cython

FIRST_BUFFER_OCTETS = 1024
"""Octets there is room for at first, which do not count in the allowance."""

MAX_MARKS = 65536
"""Packets remembered of the octets kept. They are only that many when a peer sends its octets one
by one; the frames of older ones then get the number of the oldest that is remembered."""


class Window:
    """Octets from stream offset `base` on: `buffer[first:used]`.

    `marks` holds (stream offset after its last octet, packet number, ts_ns, moment when it came)
    of each packet.
    """

    def __init__(self, offset, allowance):
        self.allowance = allowance
        self.buffer = bytearray(FIRST_BUFFER_OCTETS)
        self.first = 0
        self.used = 0
        self.base = offset
        self.marks = deque()

    def end(self):
        """Stream offset after the last octet."""
        return self.base + self.used - self.first

    def fits(self, count):
        """Whether so many octets more may be kept."""
        kept: cython.longlong = self.used - self.first
        return kept + count <= len(self.buffer) or self.allowance.allows(2 * (kept + count))

    def __del__(self):
        self.allowance.held -= len(self.buffer) - FIRST_BUFFER_OCTETS

    def append(self, octets, number, ts_ns, moment):
        """These octets of a packet are the next."""
        count: cython.longlong = len(octets)
        kept: cython.longlong = self.used - self.first
        if self.used + count > len(self.buffer):
            old: bytearray = self.buffer
            if 2 * (kept + count) > len(old):
                self.buffer = bytearray(2 * (kept + count))
                self.allowance.held += len(self.buffer) - len(old)
            self.buffer[:kept] = old[self.first : self.used]
            self.first = 0
            self.used = kept
        self.buffer[self.used : self.used + count] = octets
        self.used += count
        if self.marks and self.marks[len(self.marks) - 1][1:3] == (number, ts_ns):
            moment = self.marks.pop()[3]
        self.marks.append((self.end(), number, ts_ns, moment))
        if len(self.marks) > MAX_MARKS:
            self.marks.popleft()
        return 0

    def packet_of(self, end):
        """(packet number, ts_ns, moment) of the octet before `end`, which came lately."""
        found = (0, 0, 0)
        for until, *packet in reversed(self.marks):
            if until < end:
                break
            found = packet
        return found

    def trim(self, keep):
        """Forget the octets before stream offset `keep`."""
        keep = min(keep, self.end())
        if keep > self.base:
            self.first += keep - self.base
            self.base = keep
            while self.marks and self.marks[0][0] <= keep:
                self.marks.popleft()
        return 0

    def jump(self, offset):
        """Forget everything; the next octets are those from `offset` on."""
        self.first = 0
        self.used = 0
        self.base = offset
        self.marks.clear()
        return 0

    def pieces(self, start, end):
        """The octets `start`..`end` of the stream as (octets, packet number, ts_ns, moment)."""
        found = []
        octets = memoryview(self.buffer)
        shift: cython.longlong = self.first - self.base
        for until, *packet in self.marks:
            stop = min(until, end)
            if start < stop:
                found.append((bytes(octets[start + shift : stop + shift]), *packet))
                start = stop
        return found
