# cython: language_level=3, boundscheck=True, nonecheck=True
"""Routes: messages that reach no queue, and consumers that stop getting messages.

A capture shows the bindings that clients make during it, and none from before. So findings about
bindings refer to captured ones, and need at least one captured binding of the exchange: then the
programs that bind were started in the capture. If a binding, a declaration or a message may be in a
hole of the capture, nothing is reported. All is judged at the end, in any order of connections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.codes import CLIENT, SERVER
from cython.cimports.amqpsniff.session.entities import Channel, ChannelSlot, Session
from cython.cimports.amqpsniff.session.method_frame import MethodFrame
from cython.cimports.amqpsniff.session.routes import Route, Routes
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import CONSUMES
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.entities import capture_at
from amqpsniff.session.method_frame import read
from amqpsniff.session.routes import keep, known_after, known_until
from amqpsniff.session.rules.consuming import OF_BROKER
from amqpsniff.session.rules.context import Place, Rule, requires
from amqpsniff.session.rules.context import where as asked_where
from amqpsniff.session.rules.format import (
    exchange_text,
    in_packet,
    name_at,
    names_text,
    number_of,
    queue_text,
    route,
)
from amqpsniff.session.rules.occasions import SINCE
from amqpsniff.session.rules.peers import (
    end_ns,
    last_packets_ns,
    vhost_of,
)
from amqpsniff.session.rules.shared_state import (
    MAX_KEPT,
    contribute,
    open_channels,
    remembered,
    report_at,
)
from amqpsniff.units import duration

TYPES = {
    "amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic",
    "amq.headers": "headers", "amq.match": "headers",
}  # fmt: skip
"""Exchanges that are always there."""

KNOWN_TYPES = {"direct", "fanout", "topic", "headers"}
"""Types of exchanges whose bindings say which messages they take."""

WAITED_NS = SECOND_NS
"""Time in which a message that is in a queue comes to a consumer that waits."""

MISSING = 3
"""Messages that waiting consumers did not get, at least."""

STOPPED_NS = 10 * SECOND_NS
"""Time without a delivery that is long where they came before."""

STOPPED_TIMES = 10
"""The same as a multiple of the usual time between deliveries."""

STOPPED_DELIVERED = 3
"""Messages that a consumer got before, at least."""

STOPPED_PUBLISHED = 10
"""Messages that were published for it since, at least."""

MAX_LISTED = 256
"""Connections on one route, and bindings of one exchange, that are remembered."""

MAX_COMPARED = 100_000_000
"""Words of routing keys times those of binding keys that are compared with each other, in some
seconds: 10,000 routes and 256 bindings of six words each."""

MAX_NOTED = 256
"""Queues, exchanges, bindings and cancelled consumers of one connection that are remembered: more
than programs have that declare what they use."""

MADE = "bindings made"
"""Name in `RuleContext.memory` of what the connection binds: (source, key, queue, exchange), either
of the last two None."""

DECLARED = "queues declared"
"""Name in `RuleContext.memory` of queues by name: when the connection declared them last."""

EXCHANGES = "exchanges declared"
"""Name in `RuleContext.memory` of exchanges by name: their types, empty for one that has somewhere
else to send what no binding takes."""

CANCELLED = "consumers that were cancelled"
"""Name in `RuleContext.memory` of (channel number, consumer tag)."""

HIDDEN = "bindings that are not known"
"""Name in `RuleContext.memory` of whether the connection bound or declared something of which not
all is known."""

THERE = "consumers until the close"
"""Name in `RuleContext.memory` of when a side closes the connection, and the consumers that are
there then: those that got messages, and those that got none."""

WAITING = "queues with a waiting consumer"
"""Name in `RuleContext.memory` of queues: until when a consumer was there that could take more."""

PUBLISHED = "published by route"
"""Name in `RuleContext.shared` of what each connection published, by route: `Route` as they are, of
which few are ever looked at, or `_Published` of other readers."""

DELIVERED = "delivered by route"
"""Name in `RuleContext.shared` of what each consumer got, by route: `Route` or `_Delivered`."""

COMPARED = "words compared"
"""Name in `RuleContext.shared` of how many were, see `MAX_COMPARED`."""

REACHED = "queues reached"
"""Name in `RuleContext.shared` of the queues that messages on a route reach, see `_reached`."""

BY_QUEUE = "routes by queue"
"""Name in `RuleContext.shared` of what `routes_to` has made: by server, the routes by queue."""

TAKEN = "deliveries by queue"
"""Name in `RuleContext.shared` of what `delivered_to` has counted."""

LIMITS = "queues with a length limit"
"""Name in `RuleContext.memory` of x-max-length by queue, where messages go from the queue's head
and nowhere else than to consumers; None where they also go another way."""

NOTED = (MADE, DECLARED, EXCHANGES, LIMITS, WAITING)

KEPT_ELSEWHERE = (
    b'"x-dead-letter-exchange"', b'"x-message-ttl"', b'"x-expires"', b'"x-max-length-bytes"',
    b'"x-queue-type":"stream"', b'"x-overflow":"reject-',
)  # fmt: skip
"""Arguments of queues with which messages leave them otherwise too, or stay for others."""

GONE = "private queues that are gone"
"""Name in `RuleContext.memory` and `shared` of private queues: when they went, whose they were, and
what became of that."""

Vhost = tuple[str, str]
"""The broker's address, and a virtual host."""


# what a connection makes


def declared(context: RuleContext) -> None:
    """queue.declare: note when."""
    frame: MethodFrame = context.frame
    if frame.side == CLIENT and frame.queue and context.ts_ns is not None:
        note(context, DECLARED, frame.queue, context.ts_ns)


def note_limit(context: RuleContext, octets: bytes, arguments: dict[str, Any]) -> None:
    """A queue was declared with these arguments: note its length limit."""
    if b'"x-max-length"' in octets:
        most = arguments.get("x-max-length")
        elsewhere = not isinstance(most, int) or any(name in octets for name in KEPT_ELSEWHERE)
        note(context, LIMITS, context.frame.queue, None if elsewhere else most)


def purged(context: RuleContext) -> None:
    """queue.purge: messages leave the queue otherwise."""
    note(context, LIMITS, context.queue, None)


def declared_exchange(context: RuleContext) -> None:
    """exchange.declare: note the type."""
    frame = context.frame
    octets, name = frame.arguments_json or b"", name_at(frame.rows, "exchange", frame.row)
    if frame.side != CLIENT or not name or b'"passive":true' in octets:
        return
    kind = read(octets).get("type")
    whole = frame.whole and isinstance(kind, str) and b'"alternate-exchange"' not in octets
    note(context, EXCHANGES, name, kind if whole else "")


def bound(context: RuleContext) -> None:
    """queue.bind, exchange.bind: note it, also where it is undone later."""
    frame = context.frame
    if frame.side != CLIENT:
        return
    arguments = frame.arguments
    source = arguments.get("exchange" if frame.name == "queue.bind" else "source")
    queue = context.queue if frame.name == "queue.bind" else None
    further = arguments.get("destination") if queue is None else None
    key = arguments.get("routing_key")
    if isinstance(source, str) and isinstance(key, str) and frame.whole:
        note(context, MADE, (source, key, queue, further), True)
    else:
        context.memory[HIDDEN] = True


def cancelled(context: RuleContext) -> None:
    """basic.cancel of either side: the consumer gets nothing more on purpose."""
    _note_waiting(context, context.channel, context.frame.consumer_tag)
    note(context, CANCELLED, (context.channel.number, context.frame.consumer_tag), True)


def consumed(context: RuleContext) -> None:
    """basic.consume: note when; the same tag is another consumer."""
    number, queue = context.channel.number, context.queue
    context.memory.get(CANCELLED, {}).pop((number, context.frame.consumer_tag), None)
    if queue and context.ts_ns is not None:
        note(context, SINCE, (number, queue), (context.ts_ns, context.number))


def note(context: RuleContext, name: str, key: Any, value: Any) -> None:
    """Remember a value under a key of `name`; connections with more are not judged."""
    noted = context.memory.setdefault(name, {})
    if key in noted or len(noted) < MAX_NOTED:
        noted[key] = value
    else:
        context.memory[HIDDEN] = True


@requires(SINCE)
def channel_closed(context: RuleContext) -> None:
    """channel.close: its consumers were there until now."""
    _note_waiting(context, context.channel)


def _note_waiting(context: RuleContext, channel: Any, only: str | None = None) -> None:
    """Note queues with a consumer on a channel that waits by now, and did for a while."""
    gone, since = context.memory.get(CANCELLED, {}), context.memory.get(SINCE, {})
    now_ns = context.ts_ns or min(last_packets_ns(context)[SERVER], end_ns(context) or 0)
    if not since or not context.certain:
        return
    named = channel.by_tag.get(only)
    for tag, consumer in channel.by_tag.items() if only is None else [(only, named)]:
        at = None if consumer is None else since.get((channel.number, consumer.queue))
        if (channel.number, tag) not in gone and at is not None:
            if at[0] + WAITED_NS <= now_ns and not _is_full(channel, consumer):
                note(context, WAITING, consumer.queue, now_ns)


@asked_where(CONSUMES)
def closed(context: RuleContext) -> None:
    """connection.close: its channels end before it does."""
    if SINCE in context.memory:
        for channel in open_channels(context.session):
            _note_waiting(context, channel)
    if THERE not in context.memory:
        context.memory[THERE] = (context.ts_ns, _consumers(context), _idle(context))


# what is told of a connection at its end


class _Exchange:
    """An exchange: its types as declared, and bindings (key, queue, further exchange)."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self.bindings: set[tuple[str, str | None, str | None]] = set()
        self.words = 0  # of all their keys


class _Published(NamedTuple):
    """Publishes of one connection on one route; `who` is the client, `place` where the first is,
    `last_in` the capture of the last, `roles` as of a `Route`.
    """

    total: int
    steps: Any
    last_number: int
    last_ns: int
    mandatory: bool
    roles: tuple[str, ...]
    who: str
    last_in: str | None
    place: Place

    @property
    def last_place(self) -> Place:
        """The place of the last."""
        return self.place._replace(
            capture=self.last_in, packet_number=self.last_number, ts_ns=self.last_ns
        )


class _Delivered(NamedTuple):
    """Deliveries to one consumer on one route: which queue's, when the last was, how many."""

    consumer: tuple[Any, ...]
    queue: str | None
    last_ns: int
    total: int
    roles: tuple[str, ...] = ()


class _Consumer(NamedTuple):
    """A consumer that existed to the end: its deliveries by route, and the unsettled deliveries of
    its channel; `ends` are client and server, `heard_ns` is the time of its broker's last frame.
    """

    connection_id: str
    channel: int
    incarnation: int
    tag: str
    queue: str | None
    held: int
    routes: Any
    total: int
    first_ns: int
    last_number: int
    last_ns: int
    last_in: str | None
    ends: Sequence[str | None]
    heard_ns: int

    @property
    def consumer(self) -> tuple[Any, ...]:
        """The consumer as a `_Delivered` names it."""
        return self[:4]

    @property
    def words(self) -> str:
        """The consumer for a person."""
        return f"consumer '{self.tag}' of {queue_text(self.queue)}"

    @property
    def place(self) -> Place:
        """The place of the last delivery."""
        seen = self.last_in, self.last_number, self.last_ns
        return Place(*seen, self.connection_id, *self.ends)


def ended(context: RuleContext) -> None:
    """connection-ends: its messages by route, its declarations and bindings."""
    if is_given_up(context):
        return
    session: Session = context.session
    connection: Connection = session.connection
    memory: dict[str, Any] = context.memory
    routes: Routes = session.routes
    client: Client = client_of(context)
    server = client.server
    vhost: str | None = vhost_of(context)
    hidden = HIDDEN in memory or not context.complete
    where = server, vhost or ""
    if hidden or vhost is None or not connection.began or (routes is not None and routes.full):
        contribute(context, judge_hidden, server, hidden)
    if not session.handshake and _is_resting(context):
        contribute(context, judge_resting, server, context.place)
    if SINCE in memory and THERE not in memory:
        for channel in open_channels(session):
            _note_waiting(context, channel)
    made: list[Any] = [list(memory[name].items()) if name in memory else () for name in NOTED]
    published: Any = ()
    delivered: Any = ()
    consuming: tuple[Any, ...] = (0, (), ())
    if not hidden and routes is not None:
        if routes.published:
            published = _published(context, where)
        if routes.delivered:
            delivered = _delivered(context, where)
    if not hidden and (SINCE in memory or (routes is not None and routes.consumed)):
        until_ns, *rows = memory.get(THERE) or (None, _consumers(context), _idle(context))
        now_ns = until_ns or context.ts_ns or end_ns(context) or 0
        consuming = (min(last_packets_ns(context)[SERVER], now_ns), *rows)
    if published or delivered or consuming[1] or consuming[2] or any(made):
        contribute(context, judge_connection, where, made, published, delivered, *consuming)


def _is_resting(context: RuleContext) -> bool:
    """True if only heartbeats came for long on a connection without a captured handshake."""
    session = context.session
    if any(slot.key for slot in session.slots()) or session.closed_by is not None:
        return False
    seen_ns = min(last_packets_ns(context)) - session.connection.conversation.start_ns
    alive = context.complete and all(session.connection.conversation.octets)
    return alive and seen_ns >= STOPPED_NS


def _published(context: RuleContext, where: Vhost) -> list[tuple[Any, ...]]:
    """Publishes by route, each as exchange, routing key and the fields of a `_Published`. A reader
    of all connections keeps the routes directly, and returns none.
    """
    session: Session = context.session
    client: Client = client_of(context)
    connection: Connection = session.connection
    routes: Routes = session.routes
    who, ends = client.application or client.host, connection.name()
    if context.log.recorded is None:
        origin = who, session.capture, session.captures, ends
        _keep(context, PUBLISHED, where, routes.published, origin)
        return []
    return [
        (
            exchange, key, route.count, route.steps(), route.last_number, route.last_ns,
            route.mandatory, route.roles, who, session.capture_at(route.last_ns),
            (session.capture_at(route.first_ns), route.first_number, route.first_ns, *ends),
        )
        for (exchange, key), route in routes.published.items()
    ]  # fmt: skip


def _keep(context: RuleContext, name: str, where: Vhost, routes: Any, origin: Any) -> None:
    """Add routes to those of all connections; give up beyond the limit."""
    if not keep(_kept(context, name), where, routes, origin, MAX_KEPT, MAX_LISTED):
        _give_up(context)


def _kept(context: RuleContext, name: str) -> dict[Any, list[Any]]:
    """The routes of all connections that are kept: `PUBLISHED` or `DELIVERED`."""
    kept: dict[Any, list[Any]] = context.shared.setdefault(name, {})
    return kept


def _listed(context: RuleContext, name: str, key: Any) -> list[Any]:
    """The list kept for one route, created if absent; gives up beyond the limit."""
    kept = _kept(context, name)
    if key not in kept and len(kept) >= MAX_KEPT:
        _give_up(context)
        return []
    return kept.setdefault(key, [])


def _give_up(context: RuleContext) -> None:
    """There are too many routes: keep none, for none is judged; see `is_given_up`."""
    for name in (PUBLISHED, DELIVERED):
        context.shared.pop(name, None)
    context.forget("routes", MAX_KEPT)


def is_given_up(context: RuleContext) -> bool:
    """True if facts about routes were forgotten: nothing is judged then."""
    forgotten = context.shared.get("forgotten")
    return forgotten is not None and ("routes" in forgotten or "clients" in forgotten)


def _delivered(context: RuleContext, where: Vhost) -> list[tuple[Any, ...]]:
    """Deliveries by consumer and route, unless they are kept directly as in `_published`; the queue
    is None if it was forgotten.
    """
    session: Session = context.session
    connection: Connection = session.connection
    routes: Routes = session.routes
    connection_id = connection.name()[0]
    rows: list[tuple[Any, ...]] = []
    for name, by_route in routes.delivered.items():
        channel: Channel = _channel_of(context, name)
        consumer = None if channel is None else channel.by_tag.get(name[2])
        consumer_key = (connection_id, *name), None if consumer is None else consumer.queue
        if context.log.recorded is None:
            _keep(context, DELIVERED, where, by_route, consumer_key)
        else:
            rows += [
                (*names, *consumer_key, route.last_ns, route.count, route.roles)
                for names, route in by_route.items()
            ]
    return rows


def _consumers(context: RuleContext) -> list[tuple[Any, ...]]:
    """The current consumers, except those with a full window."""
    session: Session = context.session
    routes: Routes = session.routes
    gone = context.memory.get(CANCELLED, ())
    consumers = []
    for name, rows in routes.delivered.items() if routes is not None else ():
        channel = _channel_of(context, name)
        is_open = channel is not None and not any(channel.closing)
        if is_open and name[2] is not None and (name[0], name[2]) not in gone:
            consumers.append(_consumer(context, name, channel, rows))
    return [consumer for consumer in consumers if consumer is not None]


def _idle(context: RuleContext) -> list[tuple[Any, ...]]:
    """The consumers that are there and got nothing."""
    memory = context.memory
    gone, since = memory.get(CANCELLED, {}), memory.get(SINCE, {})
    if not since:
        return []
    found: list[tuple[Any, ...]] = []
    for channel in open_channels(context.session) if context.certain else ():
        for tag, consumer in channel.by_tag.items():
            at = since.get((channel.number, consumer.queue))
            if consumer.delivered or at is None or (channel.number, tag) in gone:
                continue
            if not any(channel.closing) and len(found) < MAX_NOTED:
                words = f"consumer '{tag}' of {queue_text(consumer.queue)}"
                here = tuple(context.place_of(at[1], at[0]))
                found.append((words, consumer.queue, channel.number, here))
    return found


def _channel_of(context: RuleContext, name: tuple[Any, ...]) -> Any:
    """The channel with a number and incarnation; None if it has ended."""
    session: Session = context.session
    slot: ChannelSlot = session.slot(name[0])
    channel: Channel = None if slot is None else slot.channel
    return channel if channel is not None and channel.incarnation == name[1] else None


def _consumer(
    context: RuleContext, name: tuple[Any, ...], channel: Any, rows: dict[Any, Any]
) -> tuple[Any, ...] | None:
    """The facts of a consumer; None if its window is full."""
    known = channel.by_tag.get(name[2])
    if _is_full(channel, known):
        return None
    route: Route
    last: Route = None
    total: cython.longlong = 0
    first_ns: cython.longlong = 0
    for route in rows.values():
        total += route.count
        if last is None or route.first_ns < first_ns:
            first_ns = route.first_ns
        if last is None or route.last_ns > last.last_ns:
            last = route
    session: Session = context.session
    connection: Connection = session.connection
    connection_id, *ends = connection.name()
    return (
        connection_id, *name, None if known is None else known.queue,
        len(channel.deliveries) if channel.times.acks else 0, tuple(rows), total, first_ns,
        last.last_number, last.last_ns, session.capture_at(last.last_ns), tuple(ends),
    )  # fmt: skip


def _is_full(channel: Any, consumer: Any) -> bool:
    """True if a consumer, None for an unknown one, holds all it may hold."""
    shared = channel.prefetch_shared
    of_it = consumer is not None and consumer.prefetch and consumer.unsettled >= consumer.prefetch
    return bool(of_it or (shared and channel.unsettled >= shared))


def queues_on(context: RuleContext, exchange: str, key: str) -> set[str]:
    """Queues that messages on a route reach, as far as the connection itself bound them."""
    if not exchange:
        return {key}
    kind = context.memory.get(EXCHANGES, {}).get(exchange, TYPES.get(exchange, ""))
    made = context.memory.get(MADE, ())
    return {
        queue
        for source, pattern, queue, _ in made
        if source == exchange and queue is not None and _takes(kind, pattern, key)
    }


# what all connections together show


def judge_hidden(context: RuleContext, server: str, lost: bool) -> None:
    """Something of a connection to a broker was not captured: its beginning, or frames."""
    hidden = remembered(context, "hidden from routes", server, lambda: [False])
    hidden[0] = hidden[0] or lost


def judge_resting(context: RuleContext, server: str, place: Sequence[Any]) -> None:
    """A connection from before the capture has only heartbeats."""
    resting: list[Place] = remembered(context, "resting connections", server, list)
    if len(resting) < MAX_LISTED:
        resting.append(Place(*place))


def judge_connection(
    context: RuleContext,
    where: Vhost,
    made: Iterable[Any],
    published: Iterable[Any],
    delivered: Iterable[Any],
    heard_ns: int,
    consumers: Iterable[Any],
    idle: Sequence[Any],
) -> None:
    """Take a connection's bindings, declarations, messages, consumers until `heard_ns`."""
    if is_given_up(context):
        return
    bindings, queues, types, limits, waiting = made
    for (source, *binding), _ in bindings:
        known = remembered(context, "exchanges of routes", (*where, source), _Exchange)
        if len(known.bindings) < MAX_LISTED:
            known.bindings.add(tuple(binding))
            known.words += _words_in(binding[0])
        else:
            known.types.add("")
    for queue, ts_ns in queues:
        times = remembered(context, "queues of routes", (*where, queue), lambda: [0])
        times[0] = max(times[0], ts_ns)
    for exchange, kind in types:
        remembered(context, "exchanges of routes", (*where, exchange), _Exchange).types.add(kind)
    for queue, most in limits:
        limited: set[int | None] = remembered(context, "limits of routes", (*where, queue), set)
        limited.add(most)
    for queue, ts_ns in waiting:
        until = remembered(context, WAITING, (*where, queue), lambda: [0])
        until[0] = max(until[0], ts_ns)
    if idle:
        unused: list[Any] = remembered(context, "idle consumers", where, list)
        unused.extend((heard_ns, *row) for row in idle[: MAX_LISTED - len(unused)])
    for row in published:
        listed = _listed(context, PUBLISHED, (*where, *row[:2]))
        if len(listed) < MAX_LISTED:
            listed.append(_Published._make((*row[2:-1], Place(*row[-1]))))
    for exchange, key, name, *rest in delivered:
        got = _listed(context, DELIVERED, (*where, exchange, key))
        if len(got) < MAX_LISTED:
            got.append(_Delivered(tuple(name), *rest))
    for row in consumers:
        known_consumers: list[_Consumer] = remembered(context, "consumers of routes", where, list)
        if len(known_consumers) < MAX_LISTED:
            known_consumers.append(_Consumer._make((*row, heard_ns)))


def judge_routes(context: RuleContext) -> None:
    """capture-ends: messages that no consumer gets, and consumers that get none."""
    shared = context.shared
    if is_given_up(context):
        return
    hidden = shared.get("hidden from routes", {})
    published = shared.get(PUBLISHED, {})
    shown: list[_Shown] = []
    fed = {
        name[:2]
        for name, known in shared.get("exchanges of routes", {}).items()
        if any(queue for _, queue, _ in known.bindings)
    }  # virtual hosts with queues bound to exchanges
    for key, rows in published.items():
        where, exchange = key[:2], key[2]
        if not exchange or where[0] in hidden:
            continue
        reached = _reached(context, where, exchange, key[3])
        if reached is None and where in fed and _has_no_queue(context, where, exchange, rows):
            reached = set(), set()
        if reached is not None:
            shown.append((key, rows, reached))
    if is_given_up(context):
        return
    judge_unbound(context, shown)
    judge_unmatched(context, shown)
    seen = {server for server, (lost,) in hidden.items() if not lost}.union(
        key[0] for key in published if key[0] not in hidden
    )
    judge_deleted(context, {key: rows for key, rows in published.items() if key[0] in seen})
    for where, consumers in shared.get("consumers of routes", {}).items():
        for consumer in consumers if where[0] in seen else ():
            judge_stopped(context, where, consumer, published)
    for where, idle in shared.get("idle consumers", {}).items():
        if where[0] not in hidden and idle:
            judge_idle(context, where, idle, published)
    limited = {
        queue: max(limits)
        for queue, limits in shared.get("limits of routes", {}).items()
        if queue[0] not in hidden and None not in limits
    }
    judge_limited(context, limited, published)
    by_server: dict[str, dict[Any, list[_Published]]] = {}
    resting = shared.get("resting connections", {})
    for key, rows in published.items() if resting else ():
        by_server.setdefault(key[0], {})[key] = read_all(rows)
    for server, places in resting.items():
        if server in seen:
            judge_unreceived(context, places, by_server.get(server, {}))


def routes_to(context: RuleContext, queue: Sequence[str]) -> list[tuple[Any, bool]]:
    """Routes of publishes that reach a queue (server, virtual host, name), as far as the capture
    shows, and whether each reaches no other. At the end of the capture.
    """
    by_server: dict[str, dict[Any, list[Any]]] = context.shared.setdefault(BY_QUEUE, {})
    if not by_server:
        for name in context.shared.get(PUBLISHED, {}):
            by_server.setdefault(name[0], {None: []})[None].append(name)
    by_queue = by_server.get(queue[0], {})
    for name in by_queue.pop(None, ()):  # asked for the first time
        queues = queues_of(context, name[:2], *name[2:])
        for reached in queues:
            by_queue.setdefault((*name[:2], reached), []).append((name, len(queues) == 1))
    return by_queue.get(tuple(queue), [])


def delivered_to(context: RuleContext, queue: Sequence[str]) -> int:
    """Deliveries from a queue (server, virtual host, name), and those of its virtual host whose
    queue is unknown. At the end of the capture.
    """
    got: Counter[tuple[Any, ...]] | None = context.shared.get(TAKEN)
    if got is None:
        got = context.shared[TAKEN] = Counter()
        for name, rows in context.shared.get(DELIVERED, {}).items():
            for row in rows:
                if isinstance(row, _Delivered):
                    got[(*name[:2], row.queue)] += row.total
                else:
                    got[(*name[:2], row.origin[1])] += row.count
    return got[tuple(queue)] + got[(*queue[:2], None)]


def read_all(rows: Iterable[Any]) -> list[_Published]:
    """The publishes on a route, as they are kept, with names."""
    return [row if isinstance(row, _Published) else _publishes(row) for row in rows]


def _publishes(route: Any) -> _Published:
    who, capture, captures, ends = route.origin
    first_in, last_in = (
        capture_at(capture, captures, at) for at in (route.first_ns, route.last_ns)
    )
    place = Place(first_in, route.first_number, route.first_ns, *ends)
    facts = route.mandatory, route.roles, who, last_in
    return _Published(route.count, route.steps(), route.last_number, route.last_ns, *facts, place)


def extent(publishes: Collection[_Published]) -> tuple[_Published, int, int]:
    """The first of some publishes, how many messages they are, and the packet of the last."""
    first = min(publishes, key=lambda one: one.place.ts_ns or 0)
    total = sum(publish.total for publish in publishes)
    return first, total, max(publish.last_number for publish in publishes)


_Reached = tuple[set[str], set[str]]
"""Queues that are reached, and those that may be; see `_reached`."""

_Shown = tuple[Any, Any, _Reached]
"""A route, its publishes, and the queues that they reach; see `_reached`."""


def judge_unbound(context: RuleContext, published: Iterable[_Shown]) -> None:
    """Report messages that no binding takes, of those that the capture shows."""
    found: dict[tuple[str, ...], dict[str, list[_Published]]] = {}
    for (*where, exchange, key), rows, reached in published:
        if any(reached):
            continue
        publishes = read_all(rows)
        mandatory = any(publish.mandatory for publish in publishes)
        if not mandatory and not got_on(context, (*where, exchange, key), 0):
            found.setdefault((*where, exchange), {})[key] = publishes
    for (*at, exchange), by_key in found.items():
        first, count, last = extent([publish for rows in by_key.values() for publish in rows])
        bindings = len(context.shared["exchanges of routes"][(*at, exchange)].bindings)
        keys = "routing key" if len(by_key) == 1 else "routing keys"
        detail = (
            f"{number_of(count, 'message')} to {exchange_text(exchange)} with {keys} "
            f"{names_text(by_key.keys())}: taken by none of the "
            f"{number_of(bindings, 'binding')} that the capture shows, and delivered to nobody"
            if bindings
            else f"{number_of(count, 'message')} to {exchange_text(exchange)}, which the capture "
            f"shows to be declared and never bound, delivered to nobody"
        )
        about = (*at, exchange)
        report_at(context, first.place, "publishes-unbound", detail, count, last, subject=about)


def _has_no_queue(
    context: RuleContext, where: Sequence[str], exchange: str, rows: Iterable[Any]
) -> bool:
    """True for an unbound exchange of a MassTransit type."""
    known = context.shared.get("exchanges of routes", {})
    own = known.get((*where, exchange))
    if own is None or own.bindings or own.types != {"fanout"} or ":" not in exchange:
        return False
    return any("event" in row.roles for row in rows)


def judge_unmatched(context: RuleContext, published: Iterable[_Shown]) -> None:
    """Report messages led to queues by headers only, which consumers that waited did not get."""
    for (*where, exchange, key), rows, reached in published:
        if reached[0] or not reached[1]:
            continue
        publishes = read_all(rows)
        waited = context.shared.get(WAITING, {})
        until_ns = min(waited.get((*where, queue), (0,))[0] for queue in reached[1]) - WAITED_NS
        count = sum(
            publish.total if publish.last_ns <= until_ns else known_until(publish.steps, until_ns)
            for publish in publishes
        )
        count -= sum(publish.total for publish in got_on(context, (*where, exchange, key), 0))
        if count < MISSING or any(publish.mandatory for publish in publishes):
            continue
        first, every, last = extent(publishes)
        total = number_of(every, "message")
        detail = (
            f"{count} or more of {total} to {route(exchange, key)} came to nobody: bindings by "
            f"headers lead to {queue_text(min(reached[1]))}"
            + (f" and {len(reached[1]) - 1} more" if len(reached[1]) > 1 else "")
            + ", where a consumer waited"
        )
        about = (*where, exchange, key)
        report_at(context, first.place, "publishes-unbound", detail, count, last, subject=about)


def judge_deleted(context: RuleContext, published: Mapping[Any, list[Any]]) -> None:
    """Report messages that are published for a queue after its deletion."""
    deleted = {
        tuple(key): deletions[-1] for key, deletions in context.shared.get("deletions", {}).items()
    }
    if not deleted:
        return
    found: dict[Any, list[tuple[str, str, _Published]]] = {}
    ways = {
        name
        for name, known in context.shared.get("exchanges of routes", {}).items()
        if any(more or (*name[:2], queue) in deleted for _, queue, more in known.bindings)
    }  # exchanges that may lead to such a queue
    for (*where, exchange, key), rows in published.items():
        if (*where, exchange) not in ways if exchange else (*where, key) not in deleted:
            continue
        queues = queues_of(context, (where[0], where[1]), exchange, key)
        gone = [(*where, queue) for queue in queues if _is_gone(context, (*where, queue), deleted)]
        if not gone or len(gone) < len(queues):
            continue
        name = max(gone, key=lambda one: deleted[one][0])
        ts_ns = deleted[name][0]
        if not got_on(context, (*where, exchange, key), ts_ns):
            after = [
                (exchange, key, publish) for publish in read_all(rows) if publish.last_ns > ts_ns
            ]
            found.setdefault(name, []).extend(after)
    for name, after in found.items():
        if after:
            _report_deleted(context, name[2], deleted[name], after)


def _is_gone(context: RuleContext, name: Any, deleted: Mapping[Any, Any]) -> bool:
    """True if a queue was deleted, not declared since, and not the private one of a client."""
    again = context.shared.get("queues of routes", {}).get(name, (0,))[0]
    gone = context.shared.get(GONE, {})
    private = (name in gone and gone[name][0] >= again) or name[2].startswith(OF_BROKER)
    return name in deleted and again <= deleted[name][0] and not private


def _report_deleted(
    context: RuleContext, queue: str, at: Any, after: list[tuple[str, str, _Published]]
) -> None:
    """Report publishes for a queue after its deletion, at the first if known, else at the last."""
    ts_ns, words = at
    count = sum(known_after(publish.total, publish.steps, ts_ns) or 1 for _, _, publish in after)
    exchange, key, last = max(after, key=lambda row: row[2].last_ns)
    detail = (
        f"{queue_text(queue)} was {words}; {last.who} published to {route(exchange, key)} until "
        f"{duration(last.last_ns - ts_ns)} later, {number_of(count, 'message')} at least"
    )
    first, place = extent([publish for _, _, publish in after])[0].place, last.last_place
    if (first.ts_ns or 0) > ts_ns:
        place = first
    many = (count, last.last_number)
    report_at(context, place, "publishes-after-deletion", detail, *many, subject=queue)


def judge_stopped(
    context: RuleContext, where: Vhost, consumer: _Consumer, by_route: Mapping[Any, list[Any]]
) -> None:
    """Report a consumer that gets nothing more, though messages on its routes are published."""
    gap_ns = (consumer.last_ns - consumer.first_ns) // max(consumer.total - 1, 1)
    if consumer.total < STOPPED_DELIVERED or (
        consumer.queue and consumer.queue.startswith(OF_BROKER)
    ):
        return
    quiet_ns = consumer.heard_ns - consumer.last_ns
    if quiet_ns < max(STOPPED_NS, STOPPED_TIMES * gap_ns):
        return
    published = [
        row for names in consumer.routes for row in read_all(by_route.get((*where, *names), ()))
    ]
    for names in consumer.routes:
        for other in got_on(context, (*where, *names), consumer.last_ns):
            if other.consumer != consumer.consumer and (
                other.queue is None or consumer.queue is None or other.queue == consumer.queue
            ):
                return
    count = sum(known_after(row.total, row.steps, consumer.last_ns) for row in published)
    if count < STOPPED_PUBLISHED:
        return
    detail = (
        f"{consumer.words} got {number_of(consumer.total, 'message')}, the last"
        f"{in_packet(consumer.last_number)}, and none in the {duration(quiet_ns)} after, in which "
        f"{count} or more were published with the same exchange and routing key"
    )
    if consumer.held:
        held = number_of(consumer.held, "delivery", "deliveries")
        detail += f", and {held} of its channel not acknowledged"
    about = consumer.queue or consumer.words
    report_at(
        context,
        consumer.place,
        "deliveries-stopped",
        detail,
        channel=consumer.channel,
        subject=about,
    )


def judge_idle(
    context: RuleContext, where: Vhost, idle: list[Any], by_route: Mapping[Any, list[Any]]
) -> None:
    """Report consumers that got nothing, though messages for their queue are published."""
    for heard_ns, words, queue, channel, place in idle:
        here = Place(*place)
        reached = [name for name, _ in routes_to(context, (*where, queue))]
        until_ns = heard_ns - STOPPED_NS
        rows = [row for name in reached for row in read_all(by_route[name])]
        count = sum(known_until(row.steps, until_ns) for row in rows)
        others = [delivery for name in reached for delivery in got_on(context, name, 0)]
        taken = any(delivery.queue is None or delivery.queue == queue for delivery in others)
        gone = (*where, queue) in context.shared.get("deletions", {})
        if count < STOPPED_PUBLISHED or (here.ts_ns or 0) > until_ns or taken or gone:
            continue
        detail = (
            f"{words} got nothing in {duration(heard_ns - (here.ts_ns or 0))}, though {count} or "
            f"more messages were published for that queue"
        )
        if not queue.startswith(OF_BROKER):
            report_at(context, here, "deliveries-stopped", detail, channel=channel, subject=queue)


def judge_limited(
    context: RuleContext, limited: Mapping[Any, int], published: Mapping[Any, list[Any]]
) -> None:
    """Report queues that got more than their limit and what their consumers got allow."""
    for key, most in limited.items():
        names = [name for name, alone in routes_to(context, key) if alone]
        if not names or key in context.shared.get("deletions", {}):
            continue
        first, came, last = extent([one for name in names for one in read_all(published[name])])
        taken = delivered_to(context, key)
        if came - taken <= most:
            continue
        detail = (
            f"{queue_text(key[2])} was declared with x-max-length {most}; {first.who} published "
            f"{number_of(came, 'message')} for it and {number_of(taken, 'message')} came to "
            f"consumers: {came - taken - most} or more are gone"
        )
        many = (came - taken - most, last)
        report_at(context, first.place, "messages-dropped", detail, *many, subject=key[2])


def judge_unreceived(
    context: RuleContext, resting: list[Place], published: Mapping[Any, list[_Published]]
) -> None:
    """Report messages published for a while but not delivered, while connections are idle."""
    found = {}
    for (*where, exchange, key), rows in published.items():
        first_ns = min(publish.place.ts_ns or 0 for publish in rows)
        long = max(publish.last_ns for publish in rows) - first_ns >= STOPPED_NS
        count = sum(publish.total for publish in rows)
        if long and count >= STOPPED_PUBLISHED and not got_on(context, (*where, exchange, key), 0):
            found[exchange, key] = (rows, count)
    if not found:
        return
    (exchange, key), (rows, count) = max(found.items(), key=lambda item: item[1][1])
    first, _, last = extent(rows)
    spent_ns = max(publish.last_ns for publish in rows) - (first.place.ts_ns or 0)
    more = f" (and on {number_of(len(found) - 1, 'other route')})" if len(found) > 1 else ""
    clients = names_text([publish.client or "?" for publish in resting])
    detail = (
        f"{number_of(count, 'message')} to {route(exchange, key)} in {duration(spent_ns)}{more}, "
        f"and none of them came to a consumer, while {number_of(len(resting), 'connection')} from "
        f"before the capture had nothing but heartbeats ({clients})"
    )
    report_at(context, first.place, "publishes-unreceived", detail, count, last)


def got_on(context: RuleContext, key: Sequence[str], ts_ns: int | None) -> list[_Delivered]:
    """Consumers that got messages on a delivery after a time, or at all."""
    return [
        delivery
        if isinstance(delivery, _Delivered)
        else _Delivered._make((*delivery.origin, delivery.last_ns, delivery.count, delivery.roles))
        for delivery in context.shared.get(DELIVERED, {}).get(key, ())
        if ts_ns is None or delivery.last_ns > ts_ns
    ]


def _takes(kind: str, pattern: str, key: str) -> bool:
    """True if a binding takes messages with a key (0-9-1 §3.1.3), or may."""
    if kind == "direct":
        return pattern == key
    return kind != "topic" or _matches(pattern.split("."), key.split("."))


@cython.cfunc
@cython.exceptval(-1, check=True)
def _matches(pattern: list[str], words: list[str]) -> cython.bint:
    """True if words fit a pattern in which `*` is any word and `#` any number of words."""
    at: cython.Py_ssize_t = 0
    word: cython.Py_ssize_t = 0
    many: cython.Py_ssize_t = -1  # place of the last `#`
    many_end: cython.Py_ssize_t = 0  # the word behind those that it stands for
    while word < len(words):
        if at < len(pattern) and pattern[at] == "#":
            many, many_end = at, word
            at += 1
        elif at < len(pattern) and (pattern[at] == "*" or pattern[at] == words[word]):
            at += 1
            word += 1
        elif many >= 0:  # it stands for one word more
            many_end += 1
            at, word = many + 1, many_end
        else:
            return False
    while at < len(pattern) and pattern[at] == "#":
        at += 1
    return at == len(pattern)


def _words_in(key: str) -> int:
    return key.count(".") + 1


def queues_of(context: RuleContext, where: Vhost, exchange: str, key: str) -> set[str]:
    """Queues that messages on a route reach, as far as the capture shows; none if some may be."""
    reached = (({key}, ()) if not exchange else _reached(context, where, exchange, key)) or ((), ())
    return set() if reached[1] else set(reached[0])


def _reached(
    context: RuleContext, where: Sequence[str], exchange: str, key: str
) -> _Reached | None:
    """Queues that messages on a route reach by the captured bindings, and those that they may reach
    by their headers; None if an exchange on the way is unknown. At the end of the capture.
    """
    known: dict[tuple[str, ...], _Reached | None] = context.shared.setdefault(REACHED, {})
    name = (*where, exchange, key)
    if name not in known:
        known[name] = _follow_bindings(context, where, exchange, key)
    return known[name]


def _follow_bindings(
    context: RuleContext, where: Sequence[str], exchange: str, key: str
) -> _Reached | None:
    exchanges = context.shared.get("exchanges of routes", {})
    queues: tuple[set[str], set[str]] = (set(), set())
    words = _words_in(key)
    ways, seen = [(exchange, False)], set()
    while ways:
        source, perhaps = way = ways.pop()
        known = exchanges.get((*where, source))
        if known is None or not known.bindings:
            return None
        types = known.types | {TYPES[source]} if source in TYPES else known.types
        if len(types) != 1 or not types <= KNOWN_TYPES:
            return None
        (kind,) = types
        compared = context.shared.get(COMPARED, 0) + known.words * words
        context.shared[COMPARED] = compared
        if compared > MAX_COMPARED:
            _give_up(context)
            return None
        may = perhaps or kind == "headers"
        seen.add(way)
        for pattern, queue, further in known.bindings:
            if _takes(kind, pattern, key):
                if queue is not None:
                    queues[may].add(queue)
                elif further is None or len(seen) > MAX_LISTED:
                    return None
                elif (further, may) not in seen:
                    ways.append((further, may))
    return queues


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (declared,),
    "queue.purge": (purged,),
    "exchange.declare": (declared_exchange,),
    "queue.bind": (bound,),
    "exchange.bind": (bound,),
    "basic.cancel": (cancelled,),
    "basic.consume": (consumed,),
    "channel.close": (channel_closed,),
    "connection.close": (closed,),
    "connection-ends": (ended,),
    "capture-ends": (judge_routes,),
}
