"""Traffic of a made-up broker: messages come again, and wait for clients on other connections."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.session.script import Script
from tests.tcp import wire

from .splits import Packet

ACROSS = {"publish-repeated", "poison-message", "queue-residence-long"}
"""Findings that take the messages of all connections."""

QUEUES = ("q", "r")
PUBLISHERS = 3
CONSUMERS = 3


class Held(NamedTuple):
    """A message in a queue: how it is published, and how often it came."""

    queue: str
    content: str
    times: int = 0


class Broker:
    """Writes a script, a random step at a time."""

    def __init__(self, chance: random.Random) -> None:
        self.script = Script()
        self._chance = chance
        self._queues: dict[str, list[Held]] = {name: [] for name in QUEUES}
        self._published = [0] * PUBLISHERS
        self._tags = [0] * CONSUMERS
        self._lives = [0] * CONSUMERS
        self._out: list[dict[int, Held]] = [{} for _ in range(CONSUMERS)]
        self._numbers = 0
        for at in range(PUBLISHERS):
            self._say(f"p{at}.handshake\np{at}.C1: channel.open\np{at}.S1: channel.open-ok")
            self._say(f"p{at}.C1: confirm.select\np{at}.S1: confirm.select-ok")
        for at in range(CONSUMERS):
            self._begin(at)

    def step(self) -> None:
        """One thing that may happen."""
        weights = {self.publish: 6, self.deliver: 6, self.settle: 5, self.die: 0.2}
        self._chance.choices([*weights], [*weights.values()])[0]()

    def publish(self) -> None:
        """A publish, new or again, and what the broker says to it."""
        at = self._chance.randrange(PUBLISHERS)
        queue = self._chance.choice(QUEUES)
        self._published[at] += 1
        route = f"p{at}.C1: basic.publish routing_key={queue} mandatory=1 | "
        content = self._content()
        self._say(self._wait() + route + content)
        answer = self._chance.random()
        if answer < 0.08:
            self._say(
                f"p{at}.S1: basic.return reply_code=312 reply_text=NO_ROUTE routing_key={queue}"
                f" | {content}"
            )
        elif answer < 0.16:
            self._say(f"p{at}.S1: basic.nack delivery_tag={self._published[at]}")
            return
        else:
            self._queues[queue].append(Held(queue, content))
        self._say(f"p{at}.S1: basic.ack delivery_tag={self._published[at]}")

    def deliver(self) -> None:
        """The next message of a queue, to any consumer."""
        queue = self._chance.choice([name for name in QUEUES if self._queues[name]] or [""])
        if queue:
            at = self._chance.randrange(CONSUMERS)
            held = self._queues[queue].pop(0)
            self._tags[at] += 1
            self._out[at][self._tags[at]] = held
            headers = ""
            if held.times > 3 and self._chance.random() < 0.2:
                headers = f" 'headers={{\"x-delivery-count\": {held.times}}}'"
            self._say(
                f"{self._wait()}{self._consumer(at)}.S1: basic.deliver consumer_tag={queue} "
                f"delivery_tag={self._tags[at]} redelivered={int(held.times > 0)} "
                f"routing_key={queue} | {held.content}{headers}"
            )

    def settle(self) -> None:
        """A consumer takes a message, gives it back or throws it away."""
        at = self._chance.randrange(CONSUMERS)
        if not self._out[at]:
            return
        tag = self._chance.choice([*self._out[at]])
        held = self._out[at].pop(tag)
        what = self._chance.random()
        method = "ack" if what < 0.35 else "nack" if what < 0.95 else "reject"
        back = " requeue=1" if method == "nack" else ""
        self._say(f"{self._consumer(at)}.C1: basic.{method} delivery_tag={tag}{back}")
        if back:
            self._queues[held.queue].insert(0, held._replace(times=held.times + 1))

    def die(self) -> None:
        """A consumer's connection ends, and it comes again."""
        at = self._chance.randrange(CONSUMERS)
        self._say(f"{self._consumer(at)}.RST C")
        for held in self._out[at].values():
            self._queues[held.queue].insert(0, held._replace(times=held.times + 1))
        self._lives[at] += 1
        self._begin(at)

    def _begin(self, at: int) -> None:
        self._tags[at], self._out[at] = 0, {}
        name = self._consumer(at)
        self._say(f"{name}.handshake\n{name}.C1: channel.open\n{name}.S1: channel.open-ok")
        for queue in QUEUES:
            self._say(f"{name}.C1: basic.consume queue={queue} consumer_tag={queue}")
            self._say(f"{name}.S1: basic.consume-ok consumer_tag={queue}")

    def _consumer(self, at: int) -> str:
        return f"c{at}x{self._lives[at]}"

    def _content(self) -> str:
        kind = self._chance.random()
        if kind < 0.3:
            return f"body=3 message_id=m{self._chance.randrange(30)}"
        if kind < 0.6:
            self._numbers += 1
            return f"body=3 message_id=n{self._numbers}"
        if kind < 0.8:
            return f"body=3 correlation_id=k{self._chance.randrange(60)}"
        return f"body={self._chance.randrange(4)}"

    def _wait(self) -> str:
        return f"@+{self._chance.choice([1, 3, 20, 300, 900])}ms "

    def _say(self, lines: str) -> None:
        for line in lines.splitlines():
            wait, _, rest = line.rpartition("ms ") if line.startswith("@") else ("", "", line)
            self.script.add(f"{wait}ms {rest}" if wait else rest)


def traffic(chance: random.Random, steps: int) -> list[Packet]:
    """So many steps of a broker, as packets."""
    broker = Broker(chance)
    for _ in range(steps):
        broker.step()
    talks: dict[str, wire.Talk] = {}
    packets: list[Packet] = []
    for said in broker.script.packets:
        talk = talks.get(said.connection)
        if talk is None:
            ports = (40_000 + len(talks), 5672)
            talk = talks[said.connection] = wire.Talk(ports=ports, start_ns=said.ts_ns - 100_000)
            talk.hands()
        talk.now = said.ts_ns
        flags = wire.RST if said.end else wire.ACK
        talk.put(int(said.sender == "server"), said.octets, flags=flags)
    for talk in talks.values():
        for one in talk.packets:
            packets.append(Packet(one.ts_ns, one.octets, len(one.octets), one.link_type))
    return sorted(packets, key=lambda one: one.ts_ns)
