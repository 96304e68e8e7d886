"""What is remembered over all connections is bounded, let go of with them, and said when it is not
remembered."""

from __future__ import annotations

from typing import Any

from amqpsniff import Engine
from amqpsniff.limits import Limits
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session.limits import Limits as SessionLimits
from tests.amqp10 import composite, frame, message
from tests.findings.pairs_of_links import opening, sender
from tests.session.script import Script
from tests.tcp import wire

TABLES = ("messages", "connections", "findings")
OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONSUME = "C1: basic.consume queue=q{0} consumer_tag=t{0}\nS1: basic.consume-ok consumer_tag=t{0}\n"
DELIVER = "S1: basic.deliver consumer_tag=t{0} delivery_tag=1 | body=1\n"
CANCEL = "C1: basic.cancel consumer_tag=t{0}\nS1: basic.cancel-ok consumer_tag=t{0}\n"


def fed(scripts: list[str], *, goodbye: bool = False, **limits: int) -> Pipeline:
    """Connections one after the other, which are over when they say goodbye."""
    joined = Pipeline(Options(limits=Limits(session=SessionLimits(**limits))), Plan(TABLES))
    for place, script in enumerate(scripts):
        talk = wire.Talk(ports=(40000 + place, 5672), start_ns=wire.START_NS + place * 10**10)
        talk.hands()
        for packet in Script(script).packets:
            if packet.octets:
                talk.put(0 if packet.sender == "client" else 1, packet.octets)
        if goodbye:
            talk.goodbye()
        joined.feed(wire.batch(talk.packets))
    return joined


def limits_hit(joined: Pipeline) -> list[str]:
    joined.finish()
    return [each.detail for each in joined.findings() if each.code == "session-limit"]


def queues(joined: Pipeline) -> list[Any]:
    found: list[Any] = []
    for _, messages, *_ in joined.rest():
        words = messages.vocabularies.queue
        codes = memoryview(messages.queue.storage).cast("i")
        found += [words.text(codes[row]) for row in range(messages.rows)]
    return found


def test_consumers_of_all_connections() -> None:
    """A later one has no queue, until one is cancelled."""
    script = OPEN + "".join((CONSUME + DELIVER).format(n) for n in range(2))
    joined = fed([script, script], all_consumers=3)
    assert limits_hit(joined) == ["consumers: 2 times"]
    assert queues(joined) == ["q0", "q1", "q0", None]
    joined = fed([script + CANCEL.format(1), script], all_consumers=3)
    assert limits_hit(joined) == []


def test_consumers_end_with_their_connection() -> None:
    script = OPEN + "".join((CONSUME + DELIVER).format(n) for n in range(2))
    joined = fed([script] * 3, goodbye=True, all_consumers=2)
    assert limits_hit(joined) == []
    assert queues(joined) == ["q0", "q1"] * 3
    assert joined.tracker.consumers_known == 0


def products(joined: Pipeline) -> list[Any]:
    return [row["client_product"] for row in joined.records()["connections"]]


def test_handshakes_of_all_connections() -> None:
    joined = fed([OPEN, OPEN], facts=1)
    assert limits_hit(joined) == ["handshakes: 10 times"]
    joined = fed([OPEN, OPEN])
    assert joined.tracker.handshakes_bytes > 0
    assert limits_hit(joined) == []
    assert joined.tracker.handshakes_bytes == 0


def test_what_many_connections_say_is_kept_once() -> None:
    one, many = fed([OPEN]), fed([OPEN] * 50)
    assert 0 < one.tracker.handshakes_bytes == many.tracker.handshakes_bytes
    assert products(many) == 50 * products(one)
    others = fed([OPEN.replace("handshake", f"handshake vhost=v{n}") for n in range(50)])
    assert others.tracker.handshakes_bytes > one.tracker.handshakes_bytes
    for joined in (one, many, others):
        assert limits_hit(joined) == []
        assert joined.tracker.handshakes_bytes == 0


def test_handshakes_that_are_too_long() -> None:
    joined = fed([OPEN], fact=4)
    assert limits_hit(joined) == ["handshakes: 6 times"]
    assert products(joined) == [None]


def test_deliveries_that_are_named_again_and_again() -> None:
    """By dispositions of AMQP 1.0 that settle nothing: what became of them is not known then."""

    def outcomes(sent: int, times: int) -> tuple[set[str | None], list[str]]:
        steps = [*opening(), *sender()]
        for at in range(sent):
            tag = at.to_bytes(4, "big")
            given = {"handle": 0, "delivery_id": at, "delivery_tag": tag, "message_format": 0}
            steps.append(("C", frame("transfer", payload=message(), settled=False, **given)))
        named = {"role": True, "first": 0, "last": 2**32 - 1, "state": composite("accepted")}
        steps += [("S", frame("disposition", **named, settled=False))] * times
        talk = wire.Talk().hands()
        for side, octets in steps:
            talk.put("CS".index(side), octets)
        limits = Limits(session=SessionLimits(disorder=100))
        engine = Engine(limits=limits)
        for packet in talk.goodbye().packets:
            engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
        engine.finish()
        hit = [each.detail for each in engine.findings() if each.code == "session-limit"]
        return {row["outcome"] for row in engine.take("messages").to_pylist()}, hit

    assert outcomes(20, 4) == ({"confirmed"}, [])
    assert outcomes(20, 60) == ({None}, ["disorder: 1 time"])
