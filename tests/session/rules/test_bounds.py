"""What rules remember does not grow without end, whatever a client makes up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from amqpsniff import Engine
from amqpsniff.findings import FindingLog
from amqpsniff.limits import Limits
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session import recent_publishes
from amqpsniff.session.limits import Limits as SessionLimits
from amqpsniff.session.rules import emitter
from amqpsniff.session.rules.churn import MAX_CLIENTS, judge_short
from amqpsniff.session.rules.consuming import MAX_QUEUES, judge_consumed, judge_lost
from amqpsniff.session.rules.context import Place, RuleContext
from amqpsniff.session.rules.shared_state import MAX_NAMES, MAX_OF_ALL_NAMES
from tests.session.rules.found import details, found
from tests.session.rules.test_topology import DECLARE, OPEN
from tests.session.script import KEY, Remembering, Script, feed
from tests.tcp import wire


def declared(names: int) -> str:
    """So many queues are declared."""
    return "".join(DECLARE.replace("jobs", f"q{n}") for n in range(names))


def test_names_beyond_the_limit_are_not_remembered() -> None:
    others = OPEN + declared(MAX_NAMES + 1) + DECLARE * 30
    assert not found(others, "declaration-repeated")
    assert details(others, "rules-limit") == ["forgotten: names (31)"]
    most = OPEN + declared(MAX_NAMES - 1) + DECLARE * 30
    assert not found(most, "rules-limit")
    assert found(most, "declaration-repeated")


DELETED = DECLARE + "C1: queue.delete queue=jobs\nS1: queue.delete-ok\n"
CHANNEL = (
    "C1: channel.open\nS1: channel.open-ok\n"
    "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
    "C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t\n"
    "C1: channel.close\nS1: channel.close-ok\n"
)
"""Three names are remembered of a channel while it is open."""


@pytest.mark.parametrize(
    ("room", "text", "forgotten"),
    [
        (2, OPEN + declared(3) + DECLARE * 30, ["forgotten: names (31)"]),
        (2, OPEN + "".join(DELETED.replace("jobs", f"q{n}") for n in range(3)), []),
        (3, "handshake\n" + CHANNEL * 5, []),
        (2, "handshake\n" + CHANNEL * 5, ["forgotten: names (10)"]),
    ],
    ids=["declared", "deleted", "channels", "larger channels"],
)
def test_names_beyond_the_limit_of_all_connections(
    room: int, text: str, forgotten: list[str]
) -> None:
    """Those of queues that are deleted, and of channels and connections that are over, leave."""
    memory = Remembering()
    shared = memory.pipeline.tracker.shared
    shared["names"] = others = MAX_OF_ALL_NAMES - room  # as of other connections
    assert [one.detail for one in memory.feed(Script(text)).findings("rules-limit")] == forgotten
    assert shared["names"] == others


@pytest.mark.parametrize("others", [MAX_CLIENTS - 1, MAX_CLIENTS])
def test_the_client_seen_first_is_forgotten_first(others: int) -> None:
    tracker = SimpleNamespace(log=FindingLog(), shared={}, settler=SimpleNamespace(hits={}))
    context = RuleContext(tracker, None, None, None, None)
    for number in (0, 0, 0, 0, *range(1, others + 1), 0, 0, 0, 0):
        place = Place("x.pcap", 1, 1, f"{number}", None, None)
        judge_short(context, (f"host {number}", "guest", ""), "words", place)
    found = {one.code for one in tracker.log.take()}
    assert ("connection-churn" in found) is (others < MAX_CLIENTS)


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


@pytest.mark.parametrize(
    "limits", [{"held_rows": 4}, {"open_rows": 4}], ids=["given out", "packed"]
)
def test_names_of_messages_whose_rows_are_gone(limits: dict[str, int]) -> None:
    """A publish is refused, or a server lost with a request, after very many wait: findings that
    name them are right, or do not name them."""
    publishes = "".join(
        f"C1: basic.publish exchange=e routing_key=k{n} | body=1\n" for n in range(9)
    )
    requests = "".join(
        f"S1: basic.deliver consumer_tag=t delivery_tag={n} routing_key=q | reply_to=r "
        f"correlation_id=c{n} body=1\n"
        for n in range(1, 10)
    )
    refused = (
        "C1: confirm.select\nS1: confirm.select-ok\n"
        + publishes
        + "S1: basic.nack delivery_tag=2\n"
    )
    lost = "C1: basic.consume queue=q\nS1: basic.consume-ok consumer_tag=t\n" + requests + "RST C\n"
    found = []
    for script in (refused, lost):
        options = Options(limits=Limits(rows_per_batch=1, session=SessionLimits(**limits)))
        joined = Pipeline(options, Plan(("messages", "findings")))
        talk = wire.Talk()
        talk.hands()
        for packet in Script(OPEN + script).packets:
            if packet.end:
                talk.client(flags=wire.RST)
            else:
                talk.put(0 if packet.sender == "client" else 1, packet.octets)
        for packet in talk.packets:
            joined.feed(wire.batch([packet]))
            list(joined.settled())
        joined.finish()
        found += [one for one in joined.findings() if one.code == "publish-rejected"]
    (finding,) = found
    assert finding.detail.endswith("to exchange 'e', routing key 'k1'")


@pytest.mark.parametrize("outstanding", [2, 20])
def test_messages_beyond_the_limit_do_not_wait(outstanding: int) -> None:
    """All are settled; nothing says that some were not, also where they were not followed."""
    script = (
        "C1: confirm.select\nS1: confirm.select-ok\n"
        "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
        + "C1: basic.publish routing_key=k | body=1\n" * 4
        + "S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1\n"
        + "S1: basic.deliver consumer_tag=t delivery_tag=2 | body=1\n"
        + "".join(f"S1: basic.ack delivery_tag={n}\n" for n in (1, 2, 3, 4))
        + "".join(f"C1: basic.ack delivery_tag={n}\n" for n in (1, 2))
        + "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
    )
    engine = Engine(limits=Limits(session=SessionLimits(outstanding=outstanding)))
    for packet in Script(OPEN + script).packets:
        engine.feed_bytes(KEY, packet.sender, packet.octets, packet.ts_ns)
    engine.finish()
    codes = {row["code"] for row in engine.take("findings").to_pylist()}
    assert ("session-limit" in codes) is (outstanding == 2)
    assert not codes & {"publishes-in-doubt", "deliveries-in-doubt"}


@pytest.mark.parametrize("others", [MAX_QUEUES - 1, MAX_QUEUES])
def test_a_consumer_that_came_back_long_ago(others: int) -> None:
    """Its host consumed from so many queues since then that this one was forgotten."""
    tracker = SimpleNamespace(log=FindingLog(), shared={}, settler=SimpleNamespace(hits={}))
    context = RuleContext(tracker, None, None, None, None)
    for queue in ("q", *(f"q{number}" for number in range(others))):
        judge_consumed(context, "10.0.0.1", queue, 2)
    key = "10.0.0.2:5672", "/", "q"
    place = "x.pcap", 1, 1, "connection", None, None
    judge_lost(context, "10.0.0.1", "consumer 't' of queue 'q'", "q", key, 1, place)
    found = {one.code for one in tracker.log.take()}
    assert found == ({"consumer-interrupted"} if others < MAX_QUEUES else set())


@pytest.mark.parametrize("channels", [3, 4])
def test_channels_beyond_the_limit_were_opened(channels: int) -> None:
    """Nothing is said of what came on a channel before it could be followed."""
    script = Script(
        "handshake\nb.handshake\nC1: channel.open\nS1: channel.open-ok\n"
        "b.C1: channel.open\nb.S1: channel.open-ok\n"
        "C: connection.close reply_code=200\nS: connection.close-ok\nFIN C\nFIN S\n"
        "@+5000ms b.C1: basic.publish routing_key=k | body=1\n"
        "b.C: connection.close reply_code=200\nb.S: connection.close-ok\nb.FIN C\nb.FIN S\n"
    )
    fed = feed(script, limits=Limits(session=SessionLimits(channels=channels)))
    codes = {finding.code for finding in fed.engine.findings()}
    assert ("session-limit" in codes) is (channels == 3)
    assert not codes & {"channel-not-open", "disconnect-unclean"}
