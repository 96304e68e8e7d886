# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Recent latencies of confirms and acknowledgements, of each connection and of all (live runs)."""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.session.codes import ACKED, CONFIRMED
from cython.cimports.amqpsniff.session.counts import LatencyHistogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amqpsniff.session.entities import Session


@cython.cclass
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

    def rotate(self) -> None:
        """Begin to forget; sessions are turned by themselves."""
        self.confirms.rotate()
        self.acks.rotate()
