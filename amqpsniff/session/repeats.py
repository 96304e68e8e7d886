# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Publishes that came before: with the same message-id, properties, size and route.

Bodies are not compared, so publishes without a message-id are not looked at. One slot is kept for
each remainder of a publish's `mark`; the next with that remainder takes it. Where a batch of rows
ends, exchange and routing key get other codes, and what came before it is not found any more.
"""

import cython

from amqpsniff.columns import NULL

if cython.compiled:
    from cython.cimports.amqpsniff.columns import Integers  # type: ignore[import-not-found]
else:
    from amqpsniff.columns import Integers

SLOTS = 16_384
"""Publishes remembered, a power of 2: some seconds of a busy broker, in 400 KB."""

WITHIN_NS = 300_000_000_000
"""Time within which a publisher that is in doubt tries again; later ones mean it."""

_NULL = cython.declare(cython.longlong, NULL)
_MASK = cython.declare(cython.longlong, SLOTS - 1)
_WITHIN = cython.declare(cython.longlong, WITHIN_NS)


class Repeats:
    """The publishes with a message-id that came last."""

    def __init__(self):
        self.marks = Integers()
        self.routes = Integers()
        self.numbers = Integers()
        self.times = Integers()
        for column in (self.marks, self.routes, self.numbers, self.times):
            column.reserve(SLOTS)

    def first(self, messages, row):
        """Packet of the publish that a row repeats; -1 for none, and it is remembered itself."""
        if not messages.message_id.has(row):
            return -1
        mark: cython.longlong = messages.mark.values[row]
        now: cython.longlong = messages.ts_ns.values[row]
        slot: cython.longlong = mark & _MASK
        route: cython.longlong = messages.exchange.values[row]
        route = (route << 32) + messages.routing_key.values[row]
        if (
            self.marks.values[slot] == mark
            and self.routes.values[slot] == route
            and now != _NULL
            and now - self.times.values[slot] <= _WITHIN
        ):
            return self.numbers.values[slot]
        self.marks.values[slot] = mark
        self.routes.values[slot] = route
        self.numbers.values[slot] = messages.packet_number.values[row]
        self.times.values[slot] = now
        return -1

    def forget(self, mark):
        """The broker did not take the publish of this mark: it should come again."""
        slot: cython.longlong = mark & _MASK
        if self.marks.values[slot] == mark:
            self.marks.values[slot] = _NULL
        return 0
