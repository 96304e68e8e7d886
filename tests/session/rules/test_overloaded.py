"""Consumers that are the bottleneck of their queue."""

from __future__ import annotations

import heapq

import pytest

from tests.conftest import CAPTURES
from tests.session.rules.found import details, findings, of_capture
from tests.session.script import Script

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    b.handshake
    b.C1: channel.open
    b.S1: channel.open-ok
    b.C1: basic.qos prefetch_count={prefetch}
    b.S1: basic.qos-ok
    b.C1: basic.consume queue=jobs consumer_tag=t
    b.S1: basic.consume-ok consumer_tag=t
"""
MESSAGE = "routing_key=jobs | body=9 message_id=m{n}"
STEADY = [100 * n for n in range(100)]
"""Ten messages a second, for ten seconds."""


def worked(
    published_ms: list[int], works_ms: int, prefetch: int = 2, begins_ms: int = 0, limit: int = 0
) -> Script:
    """Messages of these times, and a consumer that works on one after the other.

    It begins at a time, and asks for a prefetch count of `limit`, where that is another.
    """
    said: list[tuple[int, int, str]] = []
    free: list[int] = [begins_ms] * prefetch
    done_ms = 0
    for n, at_ms in enumerate(published_ms, 1):
        said.append((at_ms, 0, "C1: basic.publish " + MESSAGE.format(n=n)))
        sent_ms = max(at_ms, heapq.heappop(free))
        done_ms = max(done_ms, sent_ms) + works_ms
        heapq.heappush(free, done_ms)
        deliver = f"b.S1: basic.deliver consumer_tag=t delivery_tag={n} " + MESSAGE.format(n=n)
        said += [(sent_ms, 2, deliver), (done_ms, 1, f"b.C1: basic.ack delivery_tag={n}")]
    script, now_ms = Script(OPEN.format(prefetch=limit or prefetch)), 0
    for at_ms, _, line in sorted(said, key=lambda one: one[:2]):
        script.add(f"@+{at_ms - now_ms}ms {line}")
        now_ms = at_ms
    return script


def test_a_consumer_that_cannot_keep_up() -> None:
    rows = {row["code"]: row for row in findings(worked(STEADY, 200))}
    row = rows["consumer-overloaded"]
    assert row["detail"] == (
        "10.0 messages a second were published for it, and it took 5.00, one every 200 ms, with "
        "all 2 in hand that a prefetch count of 2 allows, 99 % of the time (from 'jobs'): in "
        "17.6 s the time in the queue grew from 900 ms to 9.70 s"
    )
    waits = rows["queue-residence-long"]
    assert waits["cause_code"] == "consumer-overloaded"
    assert waits["cause_packet_number"] == row["packet_number"]
    assert waits["packet_number"] > row["packet_number"]
    assert waits["last_packet_number"] > waits["packet_number"]


def test_it_is_seen_where_the_queue_was_short_last() -> None:
    script = worked([*STEADY[:30:2], *(3_000 + at for at in STEADY)], 200)
    (row,) = (row for row in findings(script) if row["code"] == "consumer-overloaded")
    late = 1_000_000_000
    seen = [one for one in script.events if one.method in ("basic.publish", "basic.deliver")]
    published = {one.properties["message_id"]: one.ts_ns for one in seen if one.sender == "client"}
    waits = [
        (one.packet, one.ts_ns - published[one.properties["message_id"]])
        for one in seen
        if one.sender == "server"
    ]
    assert row["packet_number"] == max(number for number, wait in waits if wait < late)


@pytest.mark.parametrize("works_ms", [90, 100])
def test_one_that_keeps_up(works_ms: int) -> None:
    assert not details(worked(STEADY, works_ms), "consumer-overloaded")


@pytest.mark.parametrize(
    ("published_ms", "begins_ms"),
    [
        ([10 * n for n in range(100)], 0),  # in one second
        (STEADY, 10_000),  # the queue is full when it begins
        ([at + rest for rest in (0, 20_000, 40_000) for at in range(0, 1_000, 25)], 0),
        ([*range(0, 5_000, 50), *range(5_000, 45_000, 400)], 0),  # the queue gets shorter again
    ],
)
def test_a_backlog_that_is_worked_off(published_ms: list[int], begins_ms: int) -> None:
    script = worked(published_ms, 200, begins_ms=begins_ms)
    assert details(script, "queue-residence-long")
    assert not details(script, "consumer-overloaded")


@pytest.mark.parametrize(("prefetch", "limit"), [(1, 2), (2, 5)])
def test_a_count_that_is_not_used_up(prefetch: int, limit: int) -> None:
    """Something else holds the messages back."""
    assert not details(worked(STEADY, 200, prefetch, limit=limit), "consumer-overloaded")


def test_a_consumer_that_is_idle_between_its_messages() -> None:
    """It takes one at a time, and the broker gives it the next after a while."""
    script = worked([*STEADY, *(at + 10_000 for at in STEADY)], 200, 1)
    text = OPEN.format(prefetch=1)
    now_ms = 0
    for n in range(1, 31):
        text += f"@+1ms C1: basic.publish {MESSAGE.format(n=2 * n)}\n"
        text += f"@+1ms C1: basic.publish {MESSAGE.format(n=2 * n + 1)}\n"
        deliver = f"b.S1: basic.deliver consumer_tag=t delivery_tag={n} {MESSAGE.format(n=n + 1)}"
        text += f"@+300ms {deliver}\n@+100ms b.C1: basic.ack delivery_tag={n}\n"
        now_ms += 402
    assert details(script, "consumer-overloaded")
    assert details(text, "queue-residence-long")
    assert not details(text, "consumer-overloaded")


def test_a_real_one() -> None:
    """It takes a fifth of a second for each message."""
    rows = {row["code"]: row for row in of_capture(CAPTURES / "cases/consumer_overloaded.pcap.gz")}
    detail = rows["consumer-overloaded"]["detail"]
    assert detail.startswith("20.0 messages a second were published for it, and it took 4.85, ")
    assert detail.endswith("the time in the queue grew from 966 ms to 24.3 s")
    assert rows["queue-residence-long"]["cause_code"] == "consumer-overloaded"
