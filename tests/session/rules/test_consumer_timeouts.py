"""Consumers that RabbitMQ 4.3 cancels because a delivery was not settled in time."""

from __future__ import annotations

import pytest

from tests.session.rules.saying import said
from tests.session.rules.telling import told

LATE, STARVED = "consumer-timed-out", "consumer-starved-after-timeout"


def opened(version: str = "4.3.6", product: str = "RabbitMQ") -> str:
    server = f'{{"product": "{product}", "version": "{version}"}}'
    return f"handshake server='{server}'\nC1: channel.open\nS1: channel.open-ok\n"


def declared(milliseconds: int) -> str:
    table = f'{{"x-consumer-timeout": {milliseconds}}}'
    return f"C1: queue.declare queue=q arguments='{table}'\nS1: queue.declare-ok queue=q\n"


def consumed(tag: str = "t", queue: str = "q") -> str:
    return (
        f"C1: basic.consume queue={queue} consumer_tag={tag}\n"
        f"S1: basic.consume-ok consumer_tag={tag}\n"
    )


def delivered(number: int, tag: str = "t", more: str = "") -> str:
    return f"S1: basic.deliver consumer_tag={tag} delivery_tag={number} {more} | body=5\n"


def cancelled(wait_ms: int, tag: str = "t", label: str = "cancel") -> str:
    return f"[{label}] @+{wait_ms}ms S1: basic.cancel consumer_tag={tag} no_wait=1\n"


HELD = opened() + declared(12_000) + consumed() + delivered(1)
AGAIN = delivered(2, more="redelivered=1")
LATER = "@+9000ms C: connection.close\nS: connection.close-ok\n"


def test_a_timeout_that_was_declared() -> None:
    (line,) = said(HELD + cancelled(12_001) + LATER, LATE, "consumer-cancelled")
    assert line == (
        "consumer-timed-out cancel 1: consumer 't' of queue 'q' held 1 delivery, the oldest from "
        "packet #14 for 12.0 s, when the broker cancelled it"
    )


def test_the_time_by_default() -> None:
    text = opened() + consumed() + delivered(1)
    assert told(text + cancelled(1_800_000), LATE)
    assert not told(text + cancelled(1_798_999), LATE)
    assert not told(text + cancelled(1_801_001), LATE)


@pytest.mark.parametrize(
    "begun", [opened("4.2.1"), opened("4.3.0", "Other"), opened(""), "midstream\n"]
)
def test_brokers_that_do_not_cancel_for_it(begun: str) -> None:
    text = begun + declared(12_000) + consumed() + delivered(1) + cancelled(12_000)
    assert not told(text + "C1: basic.ack delivery_tag=1\n@+5000ms " + AGAIN, LATE, STARVED)


@pytest.mark.parametrize(
    "settled", ["C1: basic.ack delivery_tag=1\n", "C1: queue.delete queue=q\n", "GAP S 100\n"]
)
def test_nothing_held_or_deleted_or_not_certain(settled: str) -> None:
    assert not told(HELD + settled + cancelled(12_000 - 1) + LATER, LATE)


def test_a_consumer_that_gets_deliveries_again() -> None:
    text = opened() + consumed() + delivered(1) + cancelled(7_000)
    text += "@+3000ms C1: basic.ack delivery_tag=1\n[again] " + AGAIN
    starved, late = said(text + LATER, LATE, STARVED, "consumer-cancelled")
    assert late == (
        "consumer-timed-out cancel 1: consumer 't' of queue 'q' held 1 delivery, the oldest from "
        "packet #12 for 7.00 s, when the broker cancelled it"
    )
    assert starved == (
        "consumer-starved-after-timeout cancel 1: cancelled for its timeout, consumer 't' got "
        "nothing for 3.00 s, until what it held was settled; packet again brings it deliveries "
        "again"
    )


def test_a_consumer_that_is_started_again() -> None:
    text = opened() + consumed() + delivered(1) + cancelled(7_000) + consumed()
    assert not told(text + "@+3000ms " + AGAIN, LATE, STARVED)


def test_the_time_of_one_tells_that_of_another() -> None:
    text = opened() + consumed("one") + delivered(1, "one") + cancelled(7_000, "one")
    text += consumed("two") + delivered(2, "two") + cancelled(7_000, "two", "second")
    text += "C1: basic.ack delivery_tag=2 multiple=1\n"
    text += delivered(3, "one", "redelivered=1") + LATER
    (row,) = told(text, LATE)
    assert row["count"] == 2
    assert not told(text, "consumer-cancelled")


def test_frames_that_may_be_missing_before_it_gets_deliveries_again() -> None:
    text = opened() + consumed() + delivered(1) + cancelled(7_000) + "GAP C 100\n@+3000ms " + AGAIN
    assert not told(text, LATE, STARVED)


def test_a_queue_that_was_deleted_and_declared_again() -> None:
    begun = opened() + "C1: queue.delete queue=q\nS1: queue.delete-ok\n" + declared(12_000)
    held = begun + consumed() + delivered(1) + cancelled(12_001)
    assert told(held + LATER, LATE)
    assert not told(held.replace(consumed(), consumed() + "C1: queue.delete queue=q\n"), LATE)


def test_a_time_that_is_not_known() -> None:
    purged = opened() + "C1: queue.purge queue=q\nS1: queue.purge-ok\n"
    text = purged + consumed() + delivered(1) + cancelled(7_000) + LATER
    (row,) = told(text, "consumer-cancelled")
    assert row["cause_code"] is None
    assert row["detail"] == (
        "consumer 't' of queue 'q', which held 1 delivery, the oldest from packet 17 for 7.00 s, "
        "and nothing was consumed from it since"
    )
