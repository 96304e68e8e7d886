"""Random conversations over several connections, between which messages go: legal ones and others.

Publishes are few and much alike, so that most deliveries may be of several: the same message twice,
a delivery before its publish or without one, redeliveries, dead letters, requests and replies with
ids or without, connections of which one direction or the beginning is missing, holes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.encoder import Field
from tests.session.linking import DIRECT
from tests.session.script import Script

NAMES = ("a", "b", "c", "d")
VHOSTS = ("/", "/", "/", "v", None)
"""Virtual hosts of connections; None for one that began before the capture."""
QUEUES = ("q", "r")
Content = tuple[dict[str, Any], bytes, dict[str, Any]]


class World:
    """Connections to one broker, and what was published on them."""

    def __init__(self, vhosts: list[str | None], sides: list[str], holes: bool) -> None:
        self.script = Script()
        self.sides = dict(zip(NAMES, sides, strict=True))
        self.holes = holes
        self.published: list[Content] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.over: set[str] = set()
        self.name = NAMES[0]
        self.channel = 1
        self.tags = 0
        for name, vhost in zip(NAMES, vhosts, strict=True):
            if vhost is None or self.sides[name]:
                self.script.add(f"{name}.midstream")
            else:
                self.script.add(f"{name}.handshake vhost={vhost}")
        for place, name in enumerate(NAMES):
            self.name, self.channel = name, 1
            self.say("client", "channel.open")
            self.say("server", "channel.open-ok")
            self.consume(place, 0)

    def do(self, action: str, choice: int) -> None:
        """One thing happens."""
        choice, name = divmod(choice, len(NAMES))
        choice, channel = divmod(choice, 4)
        self.name, self.channel = NAMES[name], 2 if channel == 3 else 1
        if self.name not in self.over:
            self.script.wait(str(1 + choice % 3))
            ACTIONS[action](self, choice // 3 % 997, choice // 3 // 997)

    def say(self, sender: str, method: str, content: Content | None = None, **more: Any) -> None:
        """A method, unless that direction is not captured."""
        if self.sides[self.name] in ("", sender):
            arguments, body, properties = content or ({}, None, None)
            channel = 0 if method.startswith("connection.") else self.channel
            given = {**arguments, **more}
            self.script.method(self.name, sender, channel, method, given, body, properties)
            self.script.wait()

    def publish(self, one: int, two: int) -> None:
        """A message like many others."""
        properties: dict[str, Any] = {}
        if one % 3 == 2:
            properties["message_id"] = b"%d" % (one // 3 % 2)
        if one % 7 == 1:
            properties["priority"] = 1
        if one % 5 == 1:
            odd = Field("S", b'}],"x-death":[{\\')
            properties["headers"] = [(b"n", Field("I", one // 5 % 2)), (b"Bcc", odd)]
        route = {"exchange": ("", "x")[two % 2], "routing_key": (*QUEUES, "w")[two // 2 % 3]}
        content = route, b"xy"[: 1 + two // 6 % 2], properties
        self.published.append(content)
        self.say("client", "basic.publish", content)

    def request(self, one: int, two: int) -> None:
        """A publish that wants a reply."""
        addresses = (*QUEUES, DIRECT, DIRECT, "x/q", "")
        properties: dict[str, Any] = {"reply_to": addresses[one % len(addresses)].encode()}
        if one // 6 % 3:
            properties["correlation_id"] = b"%d" % (one // 6 % 3)
        if one % 4 == 1:
            properties["expiration"] = b"%d" % (3 * (two % 4))
        content = {"exchange": "", "routing_key": "w"}, b"ask", properties
        self.published.append(content)
        self.asked.append((f"{DIRECT}.{self.name}{self.channel}", properties))
        self.say("client", "basic.publish", content)

    def reply(self, one: int, two: int) -> None:
        """An answer to one of the requests, or to the last again, or to none."""
        if not self.asked:
            return
        direct, asked = self.asked[-1 - one % min(4, len(self.asked))]
        address = asked["reply_to"].decode()
        address = direct if address == DIRECT else address
        exchange, _, key = address.rpartition("/") if two % 5 else ("", "", address)
        properties = (
            {"correlation_id": asked["correlation_id"]} if "correlation_id" in asked else {}
        )
        if one % 11 == 10:
            properties = {"correlation_id": b"9"}
        content = {"exchange": exchange, "routing_key": key}, b"reply", properties
        self.published.append(content)
        if two % 7:
            self.say("client", "basic.publish", content)

    def deliver(self, one: int, two: int) -> None:
        """A publish comes to a consumer: the last, or one before."""
        if not self.published:
            return
        content = self._brought(one, two)
        tag = ("t", "t", "u", "other")[two // 7 % 4]
        self.tags += 1
        redelivered = two // 28 % 4 == 3
        self.say(
            "server",
            "basic.deliver",
            content,
            consumer_tag=tag,
            delivery_tag=self.tags,
            redelivered=redelivered,
        )

    def get(self, one: int, two: int) -> None:
        """A publish is fetched."""
        if not self.published:
            return
        self.say("client", "basic.get", queue=QUEUES[two % 2])
        self.tags += 1
        self.say("server", "basic.get-ok", self._brought(one, two), delivery_tag=self.tags)

    def _brought(self, one: int, two: int) -> Content:
        """A publish as a broker hands it on."""
        route, body, properties = self.published[-1 - one % min(6, len(self.published))]
        route, properties = dict(route), dict(properties)
        if properties.get("reply_to") == DIRECT.encode():
            where = next(there for there, asked in self.asked if asked == properties)
            properties["reply_to"] = where.encode()
        headers = sorted(properties.pop("headers", []), key=lambda header: header[0])
        added = two // 112 % 12
        if added == 9:
            headers.append((b"x-delivery-count", Field("I", 1)))
        elif added == 10:
            headers.append((b"x-stream-offset", Field("l", 7)))
        elif added == 11:
            headers.append((b"x-death", Field("A", [Field("F", _death(route, properties))])))
            route = {"exchange": "dead", "routing_key": "q"}
        if headers:
            properties["headers"] = headers
        return route, body, properties

    def consume(self, one: int, two: int) -> None:
        """A consumer of a queue."""
        tag = "tu"[two % 2]
        self.say("client", "basic.consume", queue=QUEUES[one % 2], consumer_tag=tag, no_ack=True)
        self.say("server", "basic.consume-ok", consumer_tag=tag)

    def end(self, one: int, two: int) -> None:
        """A connection is closed or reset, or loses bytes."""
        if one % 3 == 0 and not self.holes:
            self.script.add(f"{self.name}.RST {'CS'[two % 2]}")
            self.over.add(self.name)
        elif one % 3 == 1:
            self.say("client" if two % 2 else "server", "connection.close", reply_code=320)
            self.over.add(self.name)
        elif self.holes and not self.sides[self.name]:
            self.script.add(f"{self.name}.GAP {'CS'[two % 2]} {1 + one}")


def _death(route: dict[str, Any], properties: dict[str, Any]) -> list[tuple[bytes, Field]]:
    """What a broker writes of a message that died; it takes the expiration away."""
    died = [
        (b"count", Field("l", 1)),
        (b"exchange", Field("S", route["exchange"].encode())),
        (b"routing-keys", Field("A", [Field("S", route["routing_key"].encode())])),
    ]
    if "expiration" in properties:
        died.append((b"original-expiration", Field("S", properties.pop("expiration"))))
    return died


WEIGHTS = {"publish": 6, "deliver": 9, "request": 4, "reply": 4, "get": 2, "consume": 1, "end": 1}
ACTIONS: dict[str, Callable[[World, int, int], None]] = {
    name: getattr(World, name) for name in WEIGHTS
}
_MAX = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
_MIX = 0x9E3779B97F4A7C15


def crossings(holes: bool = False) -> st.SearchStrategy[Script]:
    """Conversations of four connections, of some hundred packets."""
    numbers = st.lists(st.integers(0, 2**40), min_size=20, max_size=90)
    return numbers.map(lambda drawn: made(drawn, holes))


def made(drawn: list[int], holes: bool) -> Script:
    vhosts = [VHOSTS[number % len(VHOSTS)] for number in drawn[:4]]
    sides = [("", "", "", "", "client", "server")[number % 6] for number in drawn[4:8]]
    world = World(vhosts, sides, holes)
    for number in filter(None, drawn[8:]):
        choice, action = divmod(number * _MIX % 2**64, len(_MAX))
        world.do(_MAX[action], choice)
    return world.script
