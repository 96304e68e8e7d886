# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The last publishes with an id: to find repeated ones, and the time of deliveries in their queue.

A message is known by the `mark` of its content header (size and properties) and its route. Bodies
are not compared, so only messages with a message-id or a correlation-id are looked at. The last
`MAX_PUBLISHES` are kept, in a ring; of those with one mark the last. What is forgotten is not
found, and nothing is found that is not there. `amqpsniff.session.link_recorder` finds more, for
those who ask for links, at several times the cost.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.session.fingerprint import (
    coded,
    mixed,
)

from amqpsniff.columns import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows

MAX_PUBLISHES = 65_536
"""Publishes remembered: some seconds of a busy broker, in 10 MB."""

WITHIN_NS = 300_000_000_000
"""Time within which a publisher that is in doubt tries again; later ones mean it."""

_NULL = cython.declare(cython.longlong, NULL)
_MAX = cython.declare(cython.longlong, MAX_PUBLISHES)
_WITHIN = cython.declare(cython.longlong, WITHIN_NS)
_MASK63 = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)


class RecentPublishes:
    """The publishes with an id that came last; `forgotten` counts those before them.

    `since` is when one was published whose deliveries can only be of it, else null.
    """

    count: int
    forgotten: int

    places: dict[Any, Any]
    marks: Integers
    routes: Integers
    numbers: Integers
    times: Integers
    since: Integers

    def __init__(self) -> None:
        self.places = {}
        self.count = self.forgotten = 0
        self.marks = Integers()
        self.routes = Integers()
        self.numbers = Integers()
        self.times = Integers()
        self.since = Integers()
        for column in (self.marks, self.routes, self.numbers, self.times, self.since):
            column.reserve(MAX_PUBLISHES)

    def first(self, messages: MessageRows, row: cython.longlong) -> cython.longlong:
        """Packet of the publish that a row repeats; or -1, and then it is remembered itself."""
        keyed: cython.bint = messages.routing_key.values[row] >= 0  # it was not cut
        named: cython.bint = keyed and messages.message_id.has(row)
        if not named and not messages.correlation_id.has(row):
            return -1
        return self.publish(
            messages.mark.values[row],
            self._route(messages, row),
            named,
            messages.packet_number.values[row],
            messages.ts_ns.values[row],
        )

    def publish(
        self,
        mark: cython.longlong,
        route: cython.longlong,
        named: cython.bint,
        number: cython.longlong,
        now: cython.longlong,
    ) -> cython.longlong:
        """The same of a publish with an id, as numbers."""
        place: Any = self.places.get(mark)
        slot: cython.longlong
        since: cython.longlong = now
        if place is None:
            slot = self._free()
            self.marks.values[slot] = mark
            self.places[mark] = slot
        else:
            slot = place
            if self.routes.values[slot] == route:
                since = _NULL
                before: cython.longlong = self.times.values[slot]
                if named and _NULL not in (now, before) and now - before <= _WITHIN:
                    self.since.values[slot] = _NULL
                    return self.numbers.values[slot]
        self.since.values[slot] = since
        self.routes.values[slot] = route
        self.numbers.values[slot] = number
        self.times.values[slot] = now
        return -1

    def slot_of(self, messages: MessageRows, row: cython.longlong) -> cython.longlong:
        """The slot of the publish that a delivery is of, or -1 if it is unknown or has no time."""
        if not self.places:
            return -1
        mark: cython.longlong = messages.mark.values[row]
        if mark not in self.places:
            return -1
        return self.place_of(mark, self._route(messages, row))

    def place_of(self, mark: cython.longlong, route: cython.longlong) -> cython.longlong:
        """The same of a delivery with this mark and route."""
        place: Any = self.places.get(mark)
        if place is None:
            return -1
        slot: cython.longlong = place
        if self.since.values[slot] == _NULL:
            return -1
        return slot if self.routes.values[slot] == route else -1

    def _free(self) -> cython.longlong:
        """The next place of the ring; what was there is forgotten."""
        slot: cython.longlong = self.count % _MAX
        if self.count >= _MAX:
            before: Any = self.marks.values[slot]
            if self.places.get(before) == slot:
                del self.places[before]
                self.forgotten += 1
        self.count += 1
        return slot

    def _route(self, messages: MessageRows, row: cython.longlong) -> cython.longlong:
        """A number for exchange and routing key."""
        words = messages.vocabularies
        exchange: cython.ulonglong = coded(words.exchange, messages.exchange.values[row])
        h: cython.ulonglong = coded(words.routing_key, messages.routing_key.values[row])
        return mixed(exchange, h) & _MASK63

    def forget(self, mark: cython.longlong) -> cython.int:
        """The broker did not take the publish of this mark: it should come again."""
        self.places.pop(mark, None)
        return 0
