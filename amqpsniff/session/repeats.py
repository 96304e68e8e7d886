# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Messages that come again: publishes that are repeated, and deliveries of what was published.

A message is known by the `mark` of its content header (size and properties) and its route. Bodies
are not compared, so only messages with a message-id or a correlation-id are looked at. One slot is
kept for each remainder of a mark; the next publish with that remainder takes it: what is forgotten
is not found, and nothing is found that is not there. `amqpsniff.session.journeys` finds more, for
those who ask for links, at several times the cost.
"""

import cython

from amqpsniff.columns import NULL

if cython.compiled:
    from cython.cimports.amqpsniff.columns import Integers  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.likeness import (  # type: ignore[import-not-found]
        coded,
        mixed,
    )
else:
    from amqpsniff.columns import Integers
    from amqpsniff.session.likeness import coded, mixed

SLOTS = 65_536
"""Publishes remembered, a power of 2: some seconds of a busy broker, in 2.5 MB."""

WITHIN_NS = 300_000_000_000
"""Time within which a publisher that is in doubt tries again; later ones mean it."""

_NULL = cython.declare(cython.longlong, NULL)
_MASK = cython.declare(cython.longlong, SLOTS - 1)
_WITHIN = cython.declare(cython.longlong, WITHIN_NS)
_MASK63 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)


class Repeats:
    """The publishes with an id that came last.

    `since` is when one was published whose deliveries can only be of it, else null.
    """

    def __init__(self):
        self.marks = Integers()
        self.routes = Integers()
        self.numbers = Integers()
        self.times = Integers()
        self.since = Integers()
        for column in (self.marks, self.routes, self.numbers, self.times, self.since):
            column.reserve(SLOTS)

    def first(self, messages, row):
        """Packet of the publish that a row repeats; -1 for none, and it is remembered itself."""
        named: cython.bint = messages.message_id.has(row)
        if not named and not messages.correlation_id.has(row):
            return -1
        mark: cython.longlong = messages.mark.values[row]
        now: cython.longlong = messages.ts_ns.values[row]
        slot: cython.longlong = mark & _MASK
        route: cython.longlong = self._route(messages, row)
        if self.marks.values[slot] == mark and self.routes.values[slot] == route:
            self.since.values[slot] = _NULL
            if named and now != _NULL and now - self.times.values[slot] <= _WITHIN:
                return self.numbers.values[slot]
        else:
            self.since.values[slot] = now
        self.marks.values[slot] = mark
        self.routes.values[slot] = route
        self.numbers.values[slot] = messages.packet_number.values[row]
        self.times.values[slot] = now
        return -1

    def slot_of(self, messages, row):
        """Where the publish is that a delivery is of; -1 when it is not known or has no time."""
        mark: cython.longlong = messages.mark.values[row]
        slot: cython.longlong = mark & _MASK
        if self.marks.values[slot] != mark or self.since.values[slot] == _NULL:
            return -1
        if self.routes.values[slot] != self._route(messages, row):
            return -1
        return slot

    def _route(self, messages, row):
        """A number for exchange and routing key."""
        words = messages.vocabularies
        exchange: cython.ulonglong = coded(words.exchange, messages.exchange.values[row])
        h: cython.ulonglong = coded(words.routing_key, messages.routing_key.values[row])
        return mixed(exchange, h) & _MASK63

    def forget(self, mark):
        """The broker did not take the publish of this mark: it should come again."""
        slot: cython.longlong = mark & _MASK
        if self.marks.values[slot] == mark:
            self.marks.values[slot] = _NULL
        return 0
