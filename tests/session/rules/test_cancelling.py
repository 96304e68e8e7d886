"""Deliveries after the client's basic.cancel that are never settled."""

from __future__ import annotations

import pytest

from tests.session.rules.saying import said
from tests.session.rules.telling import told

CODE = "deliveries-after-cancel"

OPENED = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONSUMED = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
CANCEL = "[cancel] C1: basic.cancel consumer_tag=t\n"
CANCELLED = "S1: basic.cancel-ok consumer_tag=t\n"


def delivered(number: int) -> str:
    return f"[d{number}] S1: basic.deliver consumer_tag=t delivery_tag={number} | body=5\n"


def closed(wait_ms: int = 5_000) -> str:
    return f"@+{wait_ms}ms C: connection.close\nS: connection.close-ok\n"


BEFORE = OPENED + CONSUMED + delivered(1) + CANCEL
LATE = BEFORE + delivered(2) + delivered(3) + CANCELLED


@pytest.mark.parametrize("end", [closed(), "@+5000ms C1: basic.qos prefetch_count=1\n"])
def test_deliveries_between_cancel_and_its_answer(end: str) -> None:
    (line,) = said(LATE + end, CODE)
    assert line.startswith(
        "deliveries-after-cancel cancel 1 x2: 2 deliveries came to consumer 't' of queue 'q' after "
        "its basic.cancel, the first in packet d2, and were not settled in 5.0"
    )


@pytest.mark.parametrize(
    "more",
    [
        "C1: basic.ack delivery_tag=3 multiple=1\n",
        "C1: basic.nack delivery_tag=0 multiple=1 requeue=1\n",
        "C1: channel.close\nS1: channel.close-ok\n",
        "GAP C 100\n",
    ],
)
def test_deliveries_that_were_settled_or_may_be(more: str) -> None:
    assert not told(LATE + more + closed(), CODE)


def test_what_came_before_the_cancel() -> None:
    assert not told(BEFORE + CANCELLED + closed(), CODE)


def test_a_channel_that_ends_soon() -> None:
    assert not told(LATE + closed(4_000), CODE)


def test_consumers_that_need_not_acknowledge() -> None:
    text = LATE.replace("queue=q consumer_tag=t", "queue=q consumer_tag=t no_ack=1")
    assert not told(text + closed(), CODE)
