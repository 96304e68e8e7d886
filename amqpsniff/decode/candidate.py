# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""A chain of frames that a search follows: where it began, where it is, what proof it has."""

import cython

from amqpsniff.decode.probe import HEADER_OCTETS, MAX_KEPT_FRAME_OCTETS

_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_OCTETS)
_HEADER = cython.declare(cython.longlong, HEADER_OCTETS)


class Candidate:
    """A chain of frames that begins at `start`; `next` is the boundary it is at.

    `frames` holds (offset, type, channel, size, payload or None, octets missing, packet number,
    ts_ns), `held` counts the octets of the payloads, `strong` the strong frames. Of the frame under
    way `kind` is -1 while its header is awaited. `wake` is the position whose turn decides what
    comes next.
    """

    def __init__(self, start):
        self.start = start
        self.next = start
        self.frames = []
        self.wake = start
        self.kind = -1
        self.channel = 0
        self.size = 0
        self.missing = 0
        self.strong = 0
        self.held = 0

    def keeps(self):
        """Whether the octets of the frame under way are kept until it is whole."""
        return self.size <= _MAX_KEPT and self.missing == 0

    def turn(self):
        """The position whose turn comes when the frame under way is whole."""
        return max(self.next, self.next + self.size + 8 - _HEADER)

    def worse(self, other):
        """Which of two to give up: that with less proof, else that which takes longer for some."""
        if self.strong != other.strong:
            return self.strong < other.strong
        if len(self.frames) != len(other.frames):
            return len(self.frames) < len(other.frames)
        return self.wake > other.wake
