"""How long messages are in their queues."""

from __future__ import annotations

import pytest

from tests.conftest import SAMPLES
from tests.session.rules.found import details, found, of_capture
from tests.session.script import Script

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    b.handshake
    b.C1: channel.open
    b.S1: channel.open-ok
    b.C1: basic.consume queue=jobs consumer_tag=t
    b.S1: basic.consume-ok consumer_tag=t
"""


def queued(count: int, wait_ms: int, publish: str = "", deliver: str = "") -> Script:
    """Messages that are published, and delivered on another connection after a time."""
    script = Script(OPEN)
    for number in range(1, count + 1):
        script.add(
            f"[p{number}] C1: basic.publish exchange=e routing_key=k | body=9 message_id=m{number}"
            + publish
        )
        script.add(
            f"[d{number}] @+{wait_ms}ms b.S1: basic.deliver consumer_tag=t delivery_tag={number} "
            f"exchange=e routing_key=k | body=9 message_id=m{number}" + deliver
        )
    return script


def test_a_queue_that_holds_messages_for_long() -> None:
    script = queued(10, 1000)
    row = found(script, "queue-residence-long")
    assert row is not None
    assert (row["packet_number"], row["count"]) == (script.labels["d1"], 10)
    assert row["detail"].startswith(
        "queue 'jobs': 10 messages, delivered after 1.00 s on average and 1.00 s at most "
        "(published in packet "
    )


def test_messages_that_did_not_wait_are_not_counted() -> None:
    script = queued(9, 1)
    script.add("C1: basic.publish exchange=e routing_key=k | body=9 message_id=m")
    late = "exchange=e routing_key=k | body=9 message_id=m"
    script.add(f"@+10000ms b.S1: basic.deliver consumer_tag=t delivery_tag=10 {late}")
    row = found(script, "queue-residence-long")
    assert row is not None
    assert row["count"] == 1
    assert row["detail"].endswith("; 1 of them after 1.00 s or longer")


def test_a_single_message_that_waited() -> None:
    script = queued(1, 10_000)
    row = found(script, "queue-residence-long")
    assert row is not None
    assert row["packet_number"] == script.labels["d1"]
    assert not found(queued(1, 9_999), "queue-residence-long")


@pytest.mark.parametrize(("count", "wait_ms"), [(9, 5000), (10, 999)])
def test_what_is_not_long(count: int, wait_ms: int) -> None:
    assert not found(queued(count, wait_ms), "queue-residence-long")


@pytest.mark.parametrize(
    ("publish", "deliver"),
    [("", " message_id=other"), (" type=a", " type=b"), ("", " content_type=x")],
)
def test_another_message(publish: str, deliver: str) -> None:
    assert not found(queued(12, 2000, publish, deliver), "queue-residence-long")


def test_messages_that_are_not_to_be_told_apart() -> None:
    text = "C1: basic.publish exchange=e routing_key=k | body=9 message_id=same\n" * 2 + (
        "@+20000ms b.S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=k "
        "| body=9 message_id=same"
    )
    assert not found(OPEN + text, "queue-residence-long")
    assert found(OPEN + text.partition("\n")[2], "queue-residence-long")


@pytest.mark.parametrize("name", ["", "b.", "c."])
def test_a_message_that_may_have_been_published_again(name: str) -> None:
    """On any connection, in what is missing."""
    text = OPEN + "c.handshake\nC1: basic.publish exchange=e routing_key=k | body=9 message_id=a\n"
    deliver = (
        "@+20000ms b.S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=k "
        "| body=9 message_id=a"
    )
    assert found(f"{text}{name}GAP S 100\n{deliver}", "queue-residence-long")
    assert not found(f"{text}{name}GAP C 100\n{deliver}", "queue-residence-long")


def test_a_redelivery_waited_for_something_else() -> None:
    text = (
        "C1: basic.publish exchange=e routing_key=k | body=9 message_id=a\n"
        "@+20000ms b.S1: basic.deliver consumer_tag=t delivery_tag=1 exchange=e routing_key=k "
        "redelivered=1 | body=9 message_id=a"
    )
    assert not found(OPEN + text, "queue-residence-long")
    assert found(OPEN + text.replace(" redelivered=1", ""), "queue-residence-long")


def test_a_message_that_is_polled_for() -> None:
    text = """
        C1: basic.publish routing_key=jobs | body=9 correlation_id=c
        @+15000ms b.C1: basic.get queue=jobs
        b.S1: basic.get-ok delivery_tag=1 routing_key=jobs | body=9 correlation_id=c
    """
    (detail,) = details(OPEN + text, "queue-residence-long")
    assert detail.startswith("queue 'jobs': 1 message, delivered after 15.0 s (")


def test_a_consumer_that_comes_late() -> None:
    found = {row["code"]: row for row in of_capture(SAMPLES / "late_consumer.pcap")}
    row = found["queue-residence-long"]
    assert (row["packet_number"], row["count"]) == (94, 11)
    assert "queue 'reports': 11 messages, delivered after 1.41 s" in row["detail"]
