# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Recent latencies of confirms and acknowledgements, of each connection and of all (live runs).

The publishes of a channel that was open before the capture began have unknown numbers.
But what is confirmed was published: with so many publishes seen until then, a confirm of tag n says
how many there were before, at least. As long as the channel was never seen with nothing unconfirmed
that is too few, a confirm is taken for that of a later publish, and its time is too short. So times
of such channels are the least that they can be. They are shown to people; rows have null.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import ACKED, CONFIRMED
from cython.cimports.amqpsniff.session.counts import LatencyHistogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.byteorder import IntView
    from amqpsniff.session.entities import Channel, Session

MAX_TIMES = 4_096
"""Publishes of a joined channel whose times are remembered, in 32 kB of memory. Confirms of older
ones are not measured."""

_HIGHEST = cython.declare(cython.longlong, 1 << 62)
"""Tags above are nonsense; no channel lives so long."""

_MAX = cython.declare(cython.longlong, MAX_TIMES)


class RecentLatencies:
    """Times of confirms and acknowledgements: `counts.LatencyHistogram`; a session has its own."""

    confirms: LatencyHistogram
    acks: LatencyHistogram

    def __init__(self) -> None:
        self.confirms = LatencyHistogram()
        self.acks = LatencyHistogram()

    def add(self, session: Session, outcome: cython.int, time_ns: cython.longlong) -> cython.int:
        """Count the time of an outcome with its connection; those that are neither are left out."""
        delays: LatencyHistogram = None
        if outcome == CONFIRMED:
            self.confirms.add(time_ns)
            if session.confirms is None:
                session.confirms = LatencyHistogram()
            delays = session.confirms
        elif outcome == ACKED:
            self.acks.add(time_ns)
            if session.acks is None:
                session.acks = LatencyHistogram()
            delays = session.acks
        if delays is not None:
            delays.add(time_ns)
        return 0

    def estimate(
        self, channel: Channel, tag: cython.longlong, multiple: cython.bint, ts_ns: cython.longlong
    ) -> cython.int:
        """The broker confirmed publishes of a channel that was open before."""
        if channel.midstream_confirms is None:
            channel.midstream_confirms = MidstreamConfirms()
        midstream_confirms: MidstreamConfirms = channel.midstream_confirms
        return midstream_confirms.confirm(channel, tag, multiple, ts_ns, self)

    def rotate(self) -> None:
        """Begin to forget; sessions are turned by themselves."""
        self.confirms.rotate()
        self.acks.rotate()


class MidstreamConfirms:
    """A confirming channel that was open before: the least that it can have.

    `before` publishes were made before its first confirm was seen, at least; `published` since
    then; `answered` is the highest number that was confirmed.
    """

    before: int
    published: int
    answered: int

    times: IntView

    def __init__(self) -> None:
        self.before = self.published = self.answered = 0
        self.times = array("q", bytes(8 * MAX_TIMES))

    @property
    def unconfirmed(self) -> Any:
        """The least number of publishes that are not confirmed."""
        return max(0, self.before + self.published - self.answered)

    def publish(self, ts_ns: cython.longlong) -> cython.int:
        """A publish at a time."""
        self.times[self.published % _MAX] = ts_ns
        self.published += 1
        return 0

    def confirm(
        self,
        channel: Channel,
        tag: cython.longlong,
        multiple: cython.bint,
        ts_ns: cython.longlong,
        latencies: RecentLatencies,
    ) -> cython.int:
        """A confirm of this number, or of all up to it (0: of all)."""
        number: cython.longlong = tag
        sent_ns: cython.longlong
        if tag <= 0:
            tag = self.before + self.published
        if tag > _HIGHEST:
            return 0
        if self.answered == 0:
            self.answered = tag
        if tag - self.published > self.before:
            self.before = tag - self.published
        number = self.answered + 1 if multiple else tag
        number = max(number, self.before + 1, self.before + self.published - _MAX + 1)
        while number <= tag:
            sent_ns = self.times[(number - self.before - 1) % _MAX]
            took: cython.longlong = elapsed(sent_ns, ts_ns)
            if took != NULL:
                latencies.add(channel.session, CONFIRMED, took)
            number += 1
        if tag > self.answered:
            self.answered = tag
        return 0
