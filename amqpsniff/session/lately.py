# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Times of late: how long confirms and acknowledgements take now, of each connection and of all."""

import cython

from amqpsniff.session import state

if cython.compiled:
    from cython.cimports.amqpsniff.session.counts import Delays  # type: ignore[import-not-found]
else:
    from amqpsniff.session.counts import Delays

_CONFIRMED = cython.declare(cython.int, state.CONFIRMED)
_ACKED = cython.declare(cython.int, state.ACKED)


class Lately:
    """Times of confirms and of acknowledgements, as `counts.Delays`; a session has its own."""

    def __init__(self):
        self.confirms = Delays()
        self.acks = Delays()

    def add(self, session, outcome, time_ns):
        """Count the time of an outcome with its connection; those that are neither are left out."""
        delays: Delays = None
        if outcome == _CONFIRMED:
            self.confirms.add(time_ns)
            if session.confirms is None:
                session.confirms = Delays()
            delays = session.confirms
        elif outcome == _ACKED:
            self.acks.add(time_ns)
            if session.acks is None:
                session.acks = Delays()
            delays = session.acks
        if delays is not None:
            delays.add(time_ns)
        return 0

    def turn(self):
        """Begin to forget; sessions are turned by themselves."""
        self.confirms.turn()
        self.acks.turn()
