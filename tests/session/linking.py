"""Which messages name which others, computed in the plainest way, to compare the engine with.

Written apart from `amqpsniff.session.link_recorder` and never quick: every question is a search
through everything that was published. Messages are looked at in the order of their packets, over
all connections. A message whose content is not whole, or whose sender may not send it, is none.

Publishes and deliveries

L1  A delivery (basic.deliver, basic.get-ok) is *alike* a publish before it when size, properties
    and, where it is computed, the hash of the body are the same, and exchange and routing key are.
    Headers that brokers add do not count, nor does what stands in `reply_to` for direct replies
    after its prefix.
L2  A delivery with an `x-death` header is compared with the `original-expiration` of its last entry
    instead of its own; if no publish goes with its own exchange and routing key, with those there.
L3  Both are in the same virtual host. One whose connection.open was not captured may be in any:
    where the delivery's is known, publishes there go before publishes of an unknown one; where it
    is not, those of an unknown one first, then those of each virtual host in the order in which
    messages of it were seen. Only the first of these that has an alike publish is looked at.
L4  Each queue hands alike publishes on in their order. A queue is known by its name; otherwise, in
    the default exchange, by the routing key; otherwise each consumer (connection, channel, tag) has
    one of its own. Consumers of streams always have.
L5  A delivery that is not the first (redelivered, or with a known `x-death`), of a queue that has
    handed on something of these, is one of what was handed on: the only one, or the next after
    what such a delivery was taken for last, the oldest after the last. Any other is the next that
    the queue has not handed on. When there is none: the only alike publish, if there is only one
    and it has a message id, else none.
L6  `link_confidence`: of one possible publish, `exact` with a message id and `likely` without;
    `ambiguous` of several. What is possible is what was handed on, or what is still to be, in L5.
    What a queue handed on for the first time while others were to be, and the next after it, are
    `ambiguous` from then on, whichever queue hands them on.
L7  `delivery_number` counts the deliveries of a publish from 1; null for redelivered ones, and for
    dead-lettered ones of a queue that has handed on everything.
L8  Only so many publishes are remembered, the latest; so many requests likewise. What is forgotten
    counts nowhere above.

Requests and replies

C1  A publish with a `reply_to` that is not empty is a request, from then on. Its reply comes under
    its address (`reply_to`) with the same correlation id, or none, in the same virtual host; an
    unknown one as in L3. Of a request for direct replies the address is known from a delivery of
    it on, which has it in `reply_to`; replies may also be delivered to the channel of the request.
C2  A publish is a reply to the request whose address its routing key is, or `exchange/key` if there
    is none: the first that came there and has no reply, or the last that came. To the address of
    direct replies they come as they are delivered, which need not be as they were asked.
C3  A delivery of a publish that is a reply is the reply too. One of a publish that is neither reply
    nor request, or of none, is one if its routing key is the address of a request, or its channel
    where it is one for direct replies: the first that came there and has no reply delivered, or the
    last that came.
C4  A request that is forgotten has no more replies.
C5  `reply_late` is set when it comes after the request's `expiration`, or after its connection was
    closed: by connection.close, or a reset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.session.events import RST, Event, Row
from tests.session.reference import expected
from tests.session.script import MS, Script

DIRECT = "amq.rabbitmq.reply-to"
ADDED = {"x-death", "x-delivery-count", "x-stream-offset"}
"""Headers that brokers add, of those that tests write."""


class Message(NamedTuple):
    """A message as it is compared: where it is, what it is, and what it says of its past."""

    event: Event
    queue: str | None
    vhost: str | None
    size: Any
    properties: tuple[Any, ...]
    routes: list[tuple[str, str]]
    died: bool
    streamed: bool


class Publish:
    """A publish, and what became of it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.deliveries = 0
        self.doubted = False
        self.asks: Request | None = None
        self.answers: Request | None = None


class Request:
    """A request, and what became of it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.replied = self.delivered = False


def linked(
    script: Script, bodies: bool = False, memory: tuple[int, int] = (1000, 1000)
) -> list[Row]:
    """The link columns of a script's messages, in order; `memory`: of publishes and requests."""
    found = Links(script, *memory)
    return [found.row(message) for message in _messages(script, bodies)]


class Links:
    """Everything that was published and asked so far."""

    def __init__(self, script: Script, publishes: int, requests: int) -> None:
        self.script = script
        self.most = publishes, requests
        self.publishes: list[Publish] = []
        self.requests: list[Request] = []
        self.waiting: list[tuple[tuple[Any, Any, Any], Request]] = []
        self.vhosts: list[str | None] = []
        self.handed: list[tuple[Any, Publish]] = []
        self.again: list[tuple[Any, Publish]] = []

    def row(self, message: Message) -> Row:
        """The links of the next message."""
        if message.vhost not in self.vhosts:
            self.vhosts.append(message.vhost)
        columns = (
            "published_packet_number published_connection published_ns link_confidence "
            "delivery_number request_packet_number request_connection request_ns reply_late"
        )
        row: Row = dict.fromkeys(columns.split())
        row["packet_number"] = message.event.packet
        if message.event.method == "basic.publish":
            self._publish(message, row)
        elif message.event.method in ("basic.deliver", "basic.get-ok"):
            self._deliver(message, row)
        return row

    # publishes

    def _publish(self, message: Message, row: Row) -> None:
        publish = Publish(message)
        exchange, key = message.routes[0]
        for address in (key, f"{exchange}/{key}" if exchange else key):
            if publish.answers is None:
                publish.answers = self._waiting(message, address, delivered=False)
        if publish.answers is not None:
            publish.answers.replied = True
            self._answer(publish.answers, message, row)
        address = _text(message, "reply_to")
        if address:
            publish.asks = Request(message)
            place = (message.event.connection, message.event.channel)
            direct = address.startswith(DIRECT)
            self._wait(publish.asks, message, place if direct else address)
            self.requests = [*self.requests, publish.asks][-self.most[1] :]
        self.publishes = [*self.publishes, publish][-self.most[0] :]

    def _deliver(self, message: Message, row: Row) -> None:
        publish = self._published(message, row)
        answered = None if publish is None else publish.answers
        if publish is not None and publish.asks is not None:
            address = _text(message, "reply_to")
            if address and address.startswith(DIRECT):
                self._wait(publish.asks, message, address)
        elif answered is None:
            key: Any = message.routes[0][1]
            if key.startswith(DIRECT):
                key = (message.event.connection, message.event.channel)
            answered = self._waiting(message, key, delivered=True)
        if answered in self.requests and answered is not None:
            answered.replied = answered.delivered = True
            self._answer(answered, message, row)

    def _published(self, message: Message, row: Row) -> Publish | None:
        """What a delivery is of."""
        alike = self._alike(message)
        if not alike:
            return None
        kind = alike[0].message
        queue = (kind.vhost, kind.routes[0], kind.size, kind.properties, self._queue(message))
        reached = [publish for known, publish in self.handed if known == queue]
        placed = reached and reached[-1] in alike
        before = alike[: alike.index(reached[-1]) + 1] if placed else []
        after = alike[len(before) :]
        again = bool(message.event.arguments.get("redelivered"))
        first = False
        if (again or message.died) and before:
            chosen, possible = self._next_again(queue, before), len(before)
        elif after:
            chosen, possible, first = after[0], len(after), True
            self.handed.append((queue, chosen))
            for one in after[:2] if possible > 1 else []:
                one.doubted = True
        elif len(alike) == 1 and _text(alike[0].message, "message_id") is not None:
            chosen, possible = alike[0], 1
        else:
            return None
        named = _text(chosen.message, "message_id") is not None
        sure = "exact" if named else "likely"
        row["link_confidence"] = sure if possible == 1 and not chosen.doubted else "ambiguous"
        row["published_packet_number"] = chosen.message.event.packet
        row["published_connection"] = chosen.message.event.connection
        row["published_ns"] = message.event.ts_ns - chosen.message.event.ts_ns
        if not again and (first or not message.died):
            chosen.deliveries += 1
            row["delivery_number"] = chosen.deliveries
        return chosen

    def _next_again(self, queue: Any, before: list[Publish]) -> Publish:
        """The next of what a queue has handed on."""
        if len(before) == 1:
            return before[0]
        last = [publish for known, publish in self.again if known == queue]
        place = before.index(last[-1]) + 1 if last and last[-1] in before else 0
        chosen = before[place % len(before)]
        self.again.append((queue, chosen))
        return chosen

    def _alike(self, message: Message) -> list[Publish]:
        """The publishes that a delivery may be of, in their order."""
        for route in message.routes:
            for vhost in self._places(message.vhost):
                alike = [
                    publish
                    for publish in self.publishes
                    if publish.message.vhost == vhost
                    and publish.message.routes[0] == route
                    and publish.message.size == message.size
                    and publish.message.properties == message.properties
                ]
                if alike:
                    return alike
        return []

    def _places(self, vhost: str | None) -> list[str | None]:
        """Virtual hosts in which to look."""
        return [vhost, None] if vhost is not None else [None, *self.vhosts]

    def _queue(self, message: Message) -> Any:
        exchange, key = message.event.arguments["exchange"], message.event.arguments["routing_key"]
        if message.queue is not None and not message.streamed:
            return message.queue
        if message.queue is None and exchange == "":
            return key
        event = message.event
        return event.connection, event.channel, event.arguments.get("consumer_tag")

    # requests

    def _wait(self, request: Request, message: Message, address: Any) -> None:
        place = message.vhost, address, _text(message, "correlation_id")
        if (place, request) not in self.waiting:
            self.waiting.append((place, request))

    def _waiting(self, message: Message, address: Any, delivered: bool) -> Request | None:
        """The request that a message with an address answers."""
        identity = _text(message, "correlation_id")
        for vhost in self._places(message.vhost):
            place = vhost, address, identity
            came = [request for known, request in self.waiting if known == place]
            those = [request for request in came if request in self.requests]
            free = [one for one in those if not (one.delivered if delivered else one.replied)]
            if those:
                return free[0] if free else those[-1]
        return None

    def _answer(self, request: Request, message: Message, row: Row) -> None:
        asked, now = request.message.event, message.event.ts_ns
        row["request_packet_number"] = asked.packet
        row["request_connection"] = asked.connection
        row["request_ns"] = now - asked.ts_ns
        expiration = _text(request.message, "expiration")
        expired = expiration is not None and now > asked.ts_ns + int(expiration) * MS
        row["reply_late"] = expired or any(
            event.connection == asked.connection
            and event.method in ("connection.close", RST)
            and event.ts_ns < now
            for event in self.script.events
        )


def _text(message: Message, name: str) -> str | None:
    value = message.event.properties.get(name)
    return value.decode() if isinstance(value, bytes) else None


def _messages(script: Script, bodies: bool) -> Iterator[Message]:
    queues: dict[str, list[str | None]] = {}
    for row in expected(script.events, frozenset(script.midstream)).messages:
        queues.setdefault(row["connection"], []).append(row["queue"])
    vhosts = {
        event.connection: event.arguments["virtual_host"]
        for event in script.events
        if event.method == "connection.open"
    }
    for event in script.events:
        if event.body is not None:
            queue = queues[event.connection].pop(0)
            yield _message(event, queue, vhosts.get(event.connection), bodies)


def _message(event: Event, queue: str | None, vhost: str | None, bodies: bool) -> Message:
    properties = dict(event.properties)
    headers = [(name.decode(), field) for name, field in properties.pop("headers", [])]
    if (properties.get("reply_to") or b"").startswith(DIRECT.encode()):
        properties["reply_to"] = DIRECT
    routes = [(event.arguments.get("exchange", ""), event.arguments.get("routing_key", ""))]
    death = dict(
        next((field.value for name, field in headers if name == "x-death"), [])
        and next(field.value for name, field in headers if name == "x-death")[-1].value
    )
    if b"original-expiration" in death:
        properties["expiration"] = death[b"original-expiration"].value
    if death:
        keys = death[b"routing-keys"].value
        routes.append((death[b"exchange"].value.decode(), keys[0].value.decode()))
    rest = sorted((name, repr(field)) for name, field in headers if name not in ADDED)
    streamed = any(name == "x-stream-offset" for name, _ in headers)
    what = event.body if bodies else len(event.body or b"")
    same = (*sorted(properties.items()), ("headers", tuple(rest)))
    return Message(event, queue, vhost, what, same, routes, bool(death), streamed)
