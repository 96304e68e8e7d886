"""Who owes whom at the end of a connection: the column `owed` of `connections`."""

from __future__ import annotations

from typing import Any

import pytest

import amqpsniff
from amqpsniff.limits import Limits
from amqpsniff.session.limits import Limits as SessionLimits
from tests.conftest import CAPTURES
from tests.decode.amqp10.truth import capture
from tests.findings.cases import packets_of
from tests.findings.pairs_of_links import EMPTY, detaches, frame, opening, sender
from tests.findings.pairs_of_links import said as script_of
from tests.session.script import Script, feed

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONFIRM = OPEN + "C1: confirm.select\nS1: confirm.select-ok\n"
PUBLISH = "C1: basic.publish routing_key=k | body=5\n"
CONSUME = OPEN + (
    "C1: basic.qos prefetch_count=10\nS1: basic.qos-ok\n"
    "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
)
DELIVER = "S1: basic.deliver consumer_tag=t delivery_tag={n} | body=5\n"
NOTHING = "nothing outstanding"
ELSE = "; nothing else outstanding"
CLOSE = "C: connection.close\n"


def owed(text: str) -> list[str | None]:
    rows = feed(Script(text)).engine.take("connections").to_pylist()
    return [row["owed"] for row in rows]


def owed10(*steps: Any) -> list[str | None]:
    engine = amqpsniff.Engine()
    for packet in packets_of(script_of(*steps)):
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
    engine.finish()
    return [row["owed"] for row in engine.take("connections").to_pylist()]


def test_nothing_is_owed() -> None:
    assert owed(OPEN) == [NOTHING]


@pytest.mark.parametrize(
    ("answers", "did"),
    [
        ("S1: basic.ack delivery_tag=3 multiple=1", "confirmed all 3 publishes"),
        (
            "S1: basic.nack delivery_tag=1\nS1: basic.ack delivery_tag=3 multiple=1",
            "answered all 3 publishes, 1 with a nack",
        ),
    ],
)
def test_a_broker_that_confirmed_all(answers: str, did: str) -> None:
    assert owed(CONFIRM + 3 * PUBLISH + answers) == [f"{NOTHING}; broker {did}"]
    mid = "midstream\nC1: confirm.select\nS1: confirm.select-ok\n"
    assert owed(mid + 3 * PUBLISH + answers) == [None]


def test_confirms() -> None:
    (text,) = owed(CONFIRM + 3 * PUBLISH + "@+4000ms C2: channel.open\nS2: channel.open-ok\n")
    assert text == f"broker owes 3 confirms since 4.00 s (packet 15){ELSE}"


def test_acknowledgements() -> None:
    held = "".join(DELIVER.format(n=n) for n in range(1, 4))
    (text,) = owed(CONSUME + held + "C1: basic.ack delivery_tag=1\n")
    assert text is not None
    assert text.startswith("client owes acknowledgements of 2 deliveries (of 10 allowed) since 2.0")
    assert text.endswith(ELSE)


def test_both_sides() -> None:
    both = CONSUME + DELIVER.format(n=1) + "C1: queue.declare queue=x\nC1: queue.declare queue=y\n"
    (text,) = owed(both)
    assert text is not None
    broker, client, _ = text.split("; ")
    assert broker.startswith("broker owes replies to 2 requests, queue.declare first since 1.00 ms")
    assert client.startswith("client owes acknowledgements of 1 delivery (of 10 allowed)")


def test_a_block() -> None:
    (text,) = owed(OPEN + "S: connection.blocked reason=memory\n@+8000ms C2: channel.open\n")
    assert text is not None
    assert "connection.unblocked since 8.00 s" in text


def test_after_a_close_only_its_answer() -> None:
    held = CONSUME + DELIVER.format(n=1)
    (text,) = owed(held + CLOSE)
    assert text is not None
    assert text.startswith("broker owes the reply to connection.close since 0 ns")
    assert owed(held + CLOSE + "S: connection.close-ok\n") == [NOTHING]


@pytest.mark.parametrize(
    "text",
    [
        "midstream\nC1: channel.open\nS1: channel.open-ok\n" + PUBLISH,
        CONFIRM + PUBLISH + "GAP S 100\n" + PUBLISH,
        CONSUME + DELIVER.format(n=1) + "GAP C 100\n" + PUBLISH,
        "hello\n",
    ],
    ids=["midstream", "confirms may be lost", "acknowledgements may be lost", "one side"],
)
def test_what_the_capture_cannot_tell(text: str) -> None:
    assert owed(text) == [None]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cases/traffic_stopped.pcap.gz", "broker owes 1 confirm since 40.0 s (packet 551)"),
        (
            "cases/publish_incomplete.pcap.gz",
            "client owes the rest of a publish (40.0 kB of 100 kB sent) since 301 ms (packet 18)",
        ),
        (
            "incidents/a_prefetch.pcap",
            "client owes acknowledgements of 10 deliveries (of 10 allowed) since 16.1 s",
        ),
    ],
)
def test_captures(name: str, words: str) -> None:
    batches = amqpsniff.open(CAPTURES / name).batches("connections")
    said = [row["owed"] for batch in batches for row in batch.to_pylist()]
    assert sum(one.startswith(words) for one in said) == 1


def test_silences() -> None:
    """Who owed whom while nothing but heartbeats was sent, as `follow` shows it."""
    capture = amqpsniff.open(CAPTURES / "cases" / "consumer_starved_after_timeout.pcap.gz")
    conversation = capture.follow("c0e003ee")
    assert conversation is not None
    said = [(one.packet_number, one.lasted_ns // 10**6, one.owed) for one in conversation.silences]
    owes = "client owes acknowledgements of"
    assert said == [
        (60, 11997, f"{owes} 3 deliveries (of 3 allowed) since 12.0 s (packet 58){ELSE}"),
        (62, 18077, f"{owes} 3 deliveries since 30.1 s (packet 58){ELSE}"),
        (103, 11991, f"{owes} 6 deliveries (of 3 allowed) since 42.1 s (packet 58){ELSE}"),
        (108, 7060, f"{owes} 6 deliveries (of 6 allowed) since 7.06 s (packet 106){ELSE}"),
    ]


def test_silences_are_told_up_to_a_bound() -> None:
    path = CAPTURES / "cases" / "consumer_starved_after_timeout.pcap.gz"
    capture = amqpsniff.open(path, limits=Limits(session=SessionLimits(silences=1)))
    conversation = capture.follow("c0e003ee")
    assert conversation is not None
    (last,) = conversation.silences
    assert last.packet_number == 60
    assert last.owed.endswith("; later silences of the connection are not told, it has many "
                              "channels or consumers")  # fmt: skip


def test_silences_in_which_nothing_is_owed() -> None:
    capture = amqpsniff.open(CAPTURES / "cases" / "proxy_detection.pcap.gz")
    conversation = capture.follow(":43658")
    assert conversation is not None
    assert not conversation.silences


def test_deliveries_and_publishes_of_amqp10() -> None:
    """Who owes a settlement, at the end and in a silence; not where the receiver has spoken."""
    owed_of = {
        name: amqpsniff.open(capture(name)).table("connections").to_pylist()[0]["owed"]
        for name in ("rabbit_crash", "rhea_unsettled")
    }
    assert owed_of["rabbit_crash"].startswith("broker owes 5 confirms since 3.00 s (packet 19)")
    assert owed_of["rhea_unsettled"] == NOTHING
    opened = amqpsniff.open(capture("rabbitmq43_consumers"))
    clients = opened.table("connections")["client"].to_pylist()
    told = [one.owed for name in clients for one in opened.follow(client=name).silences]
    assert any("acknowledgements of 5 deliveries (of 5 allowed)" in one for one in told)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([opening()[:5]], "broker owes the reply to begin"),
        ([opening(), sender()[:1]], "broker owes the reply to attach of link 'out'"),
        ([opening(), sender(), detaches("C", 0)], "broker owes the reply to detach of link 'out'"),
        ([opening(), sender(), detaches("S", 0)], "client owes the reply to detach of link 'out'"),
        ([opening(), sender(), ("C", frame("end"))], "broker owes the reply to end"),
        ([opening(), sender(), ("S", frame("close"))], "client owes the reply to close"),
    ],
)
def test_replies_of_amqp10(steps: list[Any], words: str) -> None:
    (text,) = owed10(*steps, ("C" if words[0] == "b" else "S", EMPTY, 4000))
    assert text is not None
    assert text.startswith(f"{words} since 4.00 s (packet ")
    assert text.endswith(ELSE)


def test_an_open_of_amqp10() -> None:
    """Servers that answer SASL and no open, and end TCP."""
    rows = amqpsniff.open(capture("handshakes")).table("connections").to_pylist()
    said = [row["owed"] or "" for row in rows]
    assert sum(one.startswith("broker owes the reply to open since 5") for one in said) == 3


@pytest.mark.parametrize(
    "steps",
    [
        [detaches("C", 0), detaches("S", 0)],
        [("C", frame("end")), ("S", frame("end"))],
        [("C", frame("close")), ("S", frame("close"))],
    ],
)
def test_answers_of_amqp10(steps: list[Any]) -> None:
    assert owed10(opening(), sender(), *steps) == [NOTHING]
