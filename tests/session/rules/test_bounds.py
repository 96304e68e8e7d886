"""What rules remember does not grow without end, whatever a client makes up."""

from __future__ import annotations

import pytest

from amqpsniff import Engine
from amqpsniff.session import watcher
from amqpsniff.session.rules import amounts, churn
from tests.session.rules.found import found
from tests.session.rules.test_churn import connections
from tests.session.rules.test_topology import DECLARE, OPEN
from tests.session.script import Script


def test_names_beyond_the_limit_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amounts, "MOST_NAMES", 2)
    memory: dict[str, int] = {}
    assert [amounts.remember(memory, name, 7) for name in "abca"] == [7, 7, None, 7]
    others = "".join(DECLARE.replace("jobs", f"q{n}") for n in range(3))
    assert not found(OPEN + others + DECLARE * 30, "declaration-repeated")
    assert found(OPEN + DECLARE * 30, "declaration-repeated")


def test_the_client_seen_first_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(churn, "MOST_CLIENTS", 1)
    packets = Script(connections(4)).packets + Script(connections(4)).packets
    engine = Engine()
    for place, packet in enumerate(packets):
        turn = 0 if place < len(packets) // 2 else 1
        for address in ("10.0.0.1", "10.0.0.2") if turn == 0 else ("10.0.0.1",):
            port = 1000 * (turn + 1) + int(packet.connection[1:])
            key = (f"{address}:{port}", "10.0.0.9:5672")
            if packet.octets:
                engine.feed_octets(key, packet.sender, packet.octets, packet.ts_ns)
            elif packet.sender == "server":
                engine.close(key)
    engine.finish()
    codes = [row["code"] for row in engine.take("findings").to_pylist()]
    assert "connection-churn" not in codes


def test_exchanges_beyond_the_limit_are_not_counted() -> None:
    many = "".join(f"C1: basic.publish exchange=e{n}\n" for n in range(watcher.MOST_EXCHANGES))
    loud = "C1: basic.publish exchange=news | body=100000\n"
    loud += "S1: basic.deliver exchange=news delivery_tag=1 | body=100000\n" * 12
    assert found(OPEN + loud, "fanout-amplified")
    assert not found(OPEN + many + loud, "fanout-amplified")
