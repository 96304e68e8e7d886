# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Times of confirms of publishes whose numbers are unknown, as lower bounds.

The channel was open before the capture began, or publishes of it may be missing. But every
confirmed number was published: with `published` publishes captured so far, a confirm of tag n
proves at least n - `published` publishes before them. `before` is the largest of these differences.
So a confirm of tag n answers the captured publish n - `before` or an earlier one, and the time
since that publish is a lower bound. Once no publish was unconfirmed for a moment, the times are
exact.

Publishes and confirms come in the order in which they were sent: the reassembler delivers
acknowledged data before the segment that acknowledges it. After a resynchronization publishes may
come after their confirms (`late` publishes). After missing frames the count begins again.
"""

from __future__ import annotations

from array import array

import cython

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


FEW_PLACES = 8
"""Publishes of a channel that are remembered at first, in 128 bytes: most channels need no more."""

BLIND_PLACES = 64
"""The most before the first confirm: perhaps there is none."""

MAX_PLACES = 4_096
"""The most, in 64 kB. Confirms of older publishes are not measured."""

MAX_ALL_PLACES = 1 << 20
"""The most beyond the first ones of each channel, over all of them: 16 MB."""

_FEW = cython.declare(cython.longlong, FEW_PLACES)
_BLIND = cython.declare(cython.longlong, BLIND_PLACES)
_MAX = cython.declare(cython.longlong, MAX_PLACES)

_HIGHEST = cython.declare(cython.longlong, 1 << 62)
"""Tags above are nonsense; no channel lives so long."""


@cython.cclass
class UnnumberedConfirms:
    """Confirms of a channel from a point on where the numbers of its publishes are unknown.

    `before` publishes were made before that point, at least; `counted` of them were captured.
    `published` were captured since. `answered` is the highest number that was confirmed or refused,
    0 before there was one. `sent` has packet and time of the last `places` publishes, from the one
    after `oldest` on; `missed`: one was asked for that is no longer there.
    """

    counted: cython.longlong
    before: cython.longlong
    published: cython.longlong
    answered: cython.longlong
    places: cython.longlong
    oldest: cython.longlong
    missed: cython.bint

    sent: cython.longlong[::1]

    def __init__(self, counted: int = 0) -> None:
        self.places = _FEW
        self.sent = array("q", bytes(16 * FEW_PLACES))
        self.counted = counted
        self.forget()

    @cython.ccall
    @cython.exceptval(-1)
    def forget(self) -> cython.int:
        """Begin again: frames may be missing, so that the numbers are unknown."""
        self.before = self.counted
        self.published = self.answered = self.oldest = 0
        self.missed = False
        return 0

    @property
    def unconfirmed(self) -> Any:
        """The least number of publishes that are not confirmed."""
        return max(0, self.before + self.published - self.answered)

    def waiting(self) -> list[tuple[int, int]]:
        """Packet and time of each publish that is certainly not confirmed, where one ever was."""
        first: cython.longlong = max(self.answered - self.before, self.oldest)
        if self.answered == 0:
            return []
        at: cython.longlong
        found = []
        for at in range(first, self.published):
            place = 2 * (at % self.places)
            found.append((self.sent[place], self.sent[place + 1]))
        return found

    @cython.ccall
    @cython.exceptval(-1)
    def is_crowded(self) -> cython.bint:
        """True if there should be more places."""
        if self.places >= (_MAX if self.answered else _BLIND):
            return False
        waiting: cython.longlong = self.before + self.published - self.answered
        return self.missed or 2 * waiting >= self.places

    @cython.ccall
    @cython.exceptval(-1)
    def grow(self) -> cython.int:
        """Make twice as many places; gives how many more there are."""
        at: cython.longlong
        more: cython.longlong = self.places
        sent: cython.longlong[::1] = array("q", bytes(32 * self.places))
        for at in range(self.oldest, self.published):
            sent[2 * (at % (2 * more))] = self.sent[2 * (at % more)]
            sent[2 * (at % (2 * more)) + 1] = self.sent[2 * (at % more) + 1]
        self.sent = sent
        self.places = 2 * more
        self.missed = False
        return more

    @cython.ccall
    @cython.exceptval(-1)
    def publish(
        self, number: cython.longlong, ts_ns: cython.longlong, late: cython.bint
    ) -> cython.int:
        """A publish in a packet, at a time; `late`: it may have come before confirms so far."""
        if late:
            self.before = self.counted
        place: cython.longlong = 2 * (self.published % self.places)
        self.sent[place] = number
        self.sent[place + 1] = ts_ns
        self.published += 1
        self.oldest = max(self.oldest, self.published - self.places)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def confirm(self, tag: cython.longlong, multiple: cython.bint) -> cython.longlong:
        """Publishes are confirmed, or refused: one with this number, or all up to it (0: all).

        Gives the first number, up to the tag, of those that it was said of now and whose publishes
        are remembered, see `place`; -1 if there are none.
        """
        first: cython.longlong = tag
        if tag <= 0 or tag > _HIGHEST:
            if tag == 0:
                self.forget()
            return -1
        if multiple and 0 < self.answered < tag:
            first = self.answered + 1
        self.before = max(self.before, tag - self.published)
        self.answered = max(self.answered, tag)
        if self.before < first <= self.before + self.oldest:
            self.missed = True
        first = max(first, self.before + self.oldest + 1)
        return first if first <= tag else -1

    @cython.ccall
    @cython.exceptval(-1)
    def place(self, tag: cython.longlong) -> cython.longlong:
        """The place in `sent` of the publish with a number, or of a later one."""
        return 2 * ((tag - self.before - 1) % self.places)
