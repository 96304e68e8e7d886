# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Messages of a connection by route: publishes by exchange and routing key, the deliveries of each
consumer by route, and their times.

Names have codes that hold for one batch of rows. A message on the same route as the one before
costs a comparison, any other message two names and a dictionary look-up.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.rows import Vocabularies
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows

_MAX_ROUTES = cython.declare(cython.int, 256)
"""Routes of one connection that are kept apart; messages on further ones are not counted. Programs
that make up a routing key for each message have no routes that could be judged."""

_MAX_OF_ALL = cython.declare(cython.longlong, 50_000)
"""The same over all connections that are open, in some 30 MB."""

MAX_STEPS = 64
"""Steps of a route that are kept; of more, every other one goes, and they are twice as long."""

_MAX_STEPS = cython.declare(cython.int, MAX_STEPS)
_STEP_BITS = cython.declare(cython.int, 20)  # of a time in ns: the first steps take 1 ms


@cython.freelist(64)
@cython.cclass
class Route:
    """Messages on one route: their number, packet and time of the first and the last.

    `names`: its exchange and routing key. `has_steps`: arrivals over time are kept, see `steps`.
    `roles`: roles of its messages in frameworks, see `packs.catalogue.ROLES`. `mandatory`: at least
    one publish was mandatory. `origin`: a rule's report about the connection, for its end.
    """

    count: cython.longlong
    first_number: cython.longlong
    last_number: cython.longlong
    first_ns: cython.longlong
    last_ns: cython.longlong
    step: cython.longlong
    step_bits: cython.int
    has_steps: cython.bint
    mandatory: cython.bint

    names: tuple[Any, ...]
    later: list[Any]
    origin: Any
    roles: tuple[Any, ...]

    def __init__(self) -> None:
        self.count = 0
        self.first_number = self.last_number = 0
        self.first_ns = self.last_ns = NULL
        self.step = -1
        self.step_bits = _STEP_BITS
        self.has_steps = True
        self.names = self.later = self.origin = None
        self.roles = ()
        self.mandatory = False

    def add(self, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """One more message."""
        if self.count == 0:
            self.first_number, self.first_ns = number, ts_ns
            self.step = ts_ns >> self.step_bits
        elif self.has_steps and ts_ns >> self.step_bits != self.step:
            self._begin_step(ts_ns)
        self.count += 1
        self.last_number, self.last_ns = number, ts_ns
        return 0

    def _begin_step(self, ts_ns: cython.longlong) -> cython.int:
        if self.later is None:
            self.later = []
        self.later.append((ts_ns, self.count))
        if len(self.later) >= _MAX_STEPS:
            del self.later[::2]
            self.step_bits += 1
        self.step = ts_ns >> self.step_bits
        return 0

    def steps(self) -> tuple[Any, ...]:
        """(Time, messages before it) of each step: one every 2 to the power of `step_bits` ns."""
        return ((self.first_ns, 0), *(self.later or ()))


def known_until(steps: Any, ts_ns: Any) -> Any:
    """Messages of a route that came until a time, at least."""
    return max((before for at, before in steps if at <= ts_ns), default=0)


def known_after(count: Any, steps: Any, ts_ns: Any) -> Any:
    """Messages of a route that came after a time, at least; `count` and `steps` as of a `Route`."""
    return next((count - before for at, before in steps if at > ts_ns), 0)


def keep(
    kept: Any, where: tuple[Any, ...], routes: Any, origin: Any, most: cython.Py_ssize_t,
    of_each: cython.Py_ssize_t,
) -> bool:  # fmt: skip
    """Put routes by exchange and routing key where those of all connections are: lists of at most
    `of_each` by (*where, exchange, routing key). False if there would be more than `most` of them.
    """
    names: tuple[Any, ...]
    route: Route
    for names, route in routes.items():
        name = where + names
        listed = kept.get(name)
        if listed is None:
            if len(kept) >= most:
                return False
            listed = kept[name] = []
        if len(listed) < of_each:
            route.origin = origin
            listed.append(route)
    return True


@cython.cclass
class Routes:
    """The routes of a connection.

    `published` by exchange and routing key; `delivered` the same by consumer: channel number, its
    incarnation, consumer tag (None for basic.get). `consumed`: some of that came to consumers.
    `full`: there are more than `count`. `of_all` has the number of routes of all connections.

    `recent_published` and `recent_delivered` are the routes of the last messages, with the codes of
    `words`; `consumer` is the one that the last delivery came to.
    """

    full: cython.bint
    consumed: cython.bint
    count: cython.int
    recent_exchange: cython.longlong
    recent_key: cython.longlong
    delivered_exchange: cython.longlong
    delivered_key: cython.longlong
    delivered_tag: cython.longlong
    delivered_channel: cython.longlong
    delivered_incarnation: cython.longlong

    of_all: list[Any]
    published: dict[Any, Any]
    delivered: dict[Any, Any]
    words: Vocabularies
    consumer: tuple[Any, ...]
    consumer_routes: dict[Any, Any]
    recent_published: Route
    recent_delivered: Route

    def __init__(self, of_all: Any) -> None:
        self.of_all = of_all
        self.published = {}
        self.delivered = {}
        self.full = self.consumed = False
        self.count = 0
        self.words = None
        self.consumer = self.consumer_routes = None
        self.recent_published = self.recent_delivered = None
        self.recent_exchange = self.recent_key = -1
        self.delivered_exchange = self.delivered_key = self.delivered_tag = -1
        self.delivered_channel = self.delivered_incarnation = -1

    def publish(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """A message that was published; 1 if `recent_published` is its route."""
        exchange: cython.longlong = messages.exchange.values[row]
        key: cython.longlong = messages.routing_key.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if exchange < 0 or key < 0 or ts_ns == NULL:
            return 0
        if messages.vocabularies is not self.words:
            self._begin(messages.vocabularies)
        if exchange != self.recent_exchange or key != self.recent_key:
            self.recent_exchange, self.recent_key = exchange, key
            known: cython.longlong = len(self.published)
            self.recent_published = self._known(self.published, exchange, key, known)
        if self.recent_published is None:
            return 0
        self.recent_published.add(messages.packet_number.values[row], ts_ns)
        if messages.mandatory.values[row] == 1:
            self.recent_published.mandatory = True
        return 1

    def deliver(
        self, messages: MessageRows, row: cython.longlong, incarnation: cython.longlong
    ) -> cython.int:
        """A message that came to a consumer, or by basic.get, on a channel's incarnation."""
        exchange: cython.longlong = messages.exchange.values[row]
        key: cython.longlong = messages.routing_key.values[row]
        tag: cython.longlong = messages.consumer_tag.values[row]
        channel: cython.longlong = messages.channel.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if exchange < 0 or key < 0 or ts_ns == NULL:
            return 0
        if messages.vocabularies is not self.words:
            self._begin(messages.vocabularies)
        if (
            tag != self.delivered_tag
            or channel != self.delivered_channel
            or incarnation != self.delivered_incarnation
        ):
            self._come_to(tag, channel, incarnation)
        if exchange != self.delivered_exchange or key != self.delivered_key:
            self.delivered_exchange, self.delivered_key = exchange, key
            self.recent_delivered = self._deliveries(exchange, key)
        if self.recent_delivered is not None:
            self.recent_delivered.add(messages.packet_number.values[row], ts_ns)
        return 0

    def mark(self, role: Any, published: cython.bint) -> cython.int:
        """The message that was published last, or delivered, is that to a framework."""
        route: Route = self.recent_published if published else self.recent_delivered
        if route is not None and role not in route.roles:
            route.roles = (*route.roles, role)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def forget(self) -> cython.int:
        """The connection is over."""
        self.of_all[0] -= self.count
        self.count = 0
        self.published, self.delivered = {}, {}
        return 0

    def _begin(self, words: Vocabularies) -> cython.int:
        """Other codes hold from now on."""
        self.words = words
        self.recent_published = self.recent_delivered = None
        self.recent_exchange = self.recent_key = -1
        self.delivered_exchange = self.delivered_channel = -1
        return 0

    def _come_to(
        self, tag: cython.longlong, channel: cython.longlong, incarnation: cython.longlong
    ) -> cython.int:
        """Switch to another consumer for the following deliveries."""
        self.delivered_tag, self.delivered_channel = tag, channel
        self.delivered_incarnation = incarnation
        self.delivered_exchange = -1
        self.consumer = channel, incarnation, self.words.consumer_tag.text(tag)
        self.consumer_routes = self.delivered.get(self.consumer, {})
        return 0

    @cython.cfunc
    def _deliveries(self, exchange: cython.longlong, key: cython.longlong) -> Route:
        """The route of these codes in the consumer's deliveries; None beyond the limit."""
        known: cython.longlong = self.count - len(self.published)
        route: Route = self._known(self.consumer_routes, exchange, key, known)
        if route is not None and route.count == 0:
            route.has_steps = False
            if len(self.consumer_routes) == 1:
                self.delivered[self.consumer] = self.consumer_routes
                self.consumed = self.consumed or self.consumer[2] is not None
        return route

    @cython.cfunc
    def _known(
        self,
        routes: dict[Any, Any],
        exchange: cython.longlong,
        key: cython.longlong,
        known: cython.longlong,
    ) -> Route:
        """The route that codes stand for, new where there are not too many `known`; else None."""
        words: Vocabularies = self.words
        names: tuple[Any, ...] = (words.exchange.text(exchange), words.routing_key.text(key))
        route: Route = routes.get(names)
        if route is None:
            of_all: cython.longlong = self.of_all[0]
            if known >= _MAX_ROUTES or of_all >= _MAX_OF_ALL:
                self.full = True
                return None
            route = routes[names] = Route()
            route.names = names
            self.count += 1
            self.of_all[0] = of_all + 1
        return route
