"""What rules remember does not grow without end, whatever a client makes up."""

from __future__ import annotations

from typing import Any

import pytest

from amqpsniff import Engine
from amqpsniff.limits import Limits
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session import recent_publishes
from amqpsniff.session.limits import Limits as SessionLimits
from amqpsniff.session.rules import churn, emitter, shared_state
from tests.session.rules.found import details, found
from tests.session.rules.test_churn import connections
from tests.session.rules.test_topology import DECLARE, OPEN
from tests.session.script import Script
from tests.tcp import wire


def test_names_beyond_the_limit_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_state, "MAX_NAMES", 2)
    others = "".join(DECLARE.replace("jobs", f"q{n}") for n in range(3))
    assert not found(OPEN + others + DECLARE * 30, "declaration-repeated")
    assert details(OPEN + others + DECLARE * 30, "rules-limit") == ["forgotten: names (31)"]
    assert not found(OPEN + DECLARE * 30, "rules-limit")
    assert found(OPEN + DECLARE * 30, "declaration-repeated")


def test_names_beyond_the_limit_of_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of queues that are deleted, and of connections that are over, count no more."""
    monkeypatch.setattr(shared_state, "MAX_OF_ALL_NAMES", 2)
    others = [DECLARE.replace("jobs", f"q{n}") for n in range(3)]
    assert details(OPEN + "".join(others) + DECLARE * 30, "rules-limit") == [
        "forgotten: names (31)"
    ]
    deleted = "C1: queue.delete queue=q{0}\nS1: queue.delete-ok\n"
    each = "".join(one + deleted.format(n) for n, one in enumerate(others))
    assert not found(OPEN + each + DECLARE * 30, "rules-limit")
    engine = Engine()
    for place in range(3):
        key = (f"10.0.0.1:{1000 + place}", "10.0.0.2:5672")
        for packet in Script(OPEN + others[0] + others[1]).packets:
            engine.feed_bytes(key, packet.sender, packet.octets, packet.ts_ns)
        engine.close(key)
    engine.finish()
    assert "rules-limit" not in {row["code"] for row in engine.take("findings").to_pylist()}


def test_the_client_seen_first_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(churn, "MAX_CLIENTS", 1)
    packets = Script(connections(4)).packets + Script(connections(4)).packets
    engine = Engine()
    for place, packet in enumerate(packets):
        turn = 0 if place < len(packets) // 2 else 1
        for address in ("10.0.0.1", "10.0.0.2") if turn == 0 else ("10.0.0.1",):
            port = 1000 * (turn + 1) + int(packet.connection[1:])
            key = (f"{address}:{port}", "10.0.0.9:5672")
            if packet.octets:
                engine.feed_bytes(key, packet.sender, packet.octets, packet.ts_ns)
            elif packet.sender == "server":
                engine.close(key)
    engine.finish()
    found = {row["code"]: row["detail"] for row in engine.take("findings").to_pylist()}
    assert "connection-churn" not in found
    assert found["rules-limit"] == "forgotten: clients (8)"


def test_exchanges_beyond_the_limit_are_not_counted() -> None:
    many = "".join(f"C1: basic.publish exchange=e{n}\n" for n in range(emitter.MAX_EXCHANGES))
    loud = "C1: basic.publish exchange=news | body=100000\n"
    loud += "S1: basic.deliver exchange=news delivery_tag=1 | body=100000\n" * 12
    assert found(OPEN + loud, "fanout-amplified")
    assert not found(OPEN + many + loud, "fanout-amplified")


def test_publishes_beyond_the_limit_are_forgotten() -> None:
    publish = Script(OPEN + "C1: basic.publish routing_key=k | message_id=00000").packets[-1].octets

    def told(numbers: range) -> list[tuple[str, str]]:
        engine = Engine()
        key = ("10.0.0.1:40000", "10.0.0.2:5672")
        for packet in Script(OPEN).packets:
            engine.feed_bytes(key, packet.sender, packet.octets, packet.ts_ns)
        octets = b"".join(publish.replace(b"00000", b"%05d" % number) for number in numbers)
        engine.feed_bytes(key, "client", octets + publish, 1)
        engine.finish()
        rows = engine.take("findings").to_pylist()
        wanted = ("rules-limit", "publish-repeated")
        return [(row["code"], row["detail"]) for row in rows if row["code"] in wanted]

    most = recent_publishes.MAX_PUBLISHES
    (repeated,) = told(range(most))
    assert repeated[0] == "publish-repeated"
    assert told(range(most + 2)) == [("rules-limit", "forgotten: publishes with an id (3)")]


def test_names_of_channels_that_are_over_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpsniff.session.rules.shared_state.MAX_OF_ALL_NAMES", 3)
    channel = (
        "C1: channel.open\nS1: channel.open-ok\n"
        "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
        "C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t\n"
        "C1: channel.close\nS1: channel.close-ok\n"
    )
    closed = "C: connection.close reply_code=200\nS: connection.close-ok\n"
    assert details("handshake\n" + channel * 5 + closed, "rules-limit") == []
    monkeypatch.setattr("amqpsniff.session.rules.shared_state.MAX_OF_ALL_NAMES", 2)
    assert details("handshake\n" + channel * 5 + closed, "rules-limit") == ["forgotten: names (10)"]


def test_rows_that_are_given_before_their_answers() -> None:
    script = "C1: confirm.select\nS1: confirm.select-ok\n" + "C1: basic.publish routing_key=k\n" * 9

    def said(**limits: Any) -> list[str]:
        tables = ("frames", "messages", "findings")
        joined = Pipeline(Options(limits=Limits(**limits)), Plan(tables))
        talk = wire.Talk()
        talk.hands()
        for packet in Script(OPEN + script).packets:
            talk.put(0 if packet.sender == "client" else 1, packet.octets)
        for packet in talk.packets:
            joined.feed(wire.batch([packet]))
            list(joined.settled())
        joined.finish()
        return [one.detail for one in joined.findings() if one.code == "session-limit"]

    assert said() == []
    (detail,) = said(rows_per_batch=1, session=SessionLimits(held_rows=4))
    assert detail.startswith("rows that wait: ")
