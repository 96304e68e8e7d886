"""Messages of quorum queues that come near the delivery limit of their queue."""

from __future__ import annotations

import pytest

from tests.session.rules.saying import said
from tests.session.rules.telling import told

NEAR, BYSTANDER = "delivery-limit-near", "delivery-limit-bystander"


def opened(version: str = "3.10.8") -> str:
    server = f'{{"product": "RabbitMQ", "version": "{version}"}}'
    return f"handshake server='{server}'\nC1: channel.open\nS1: channel.open-ok\n"


def declared(limit: int) -> str:
    table = f'{{"x-delivery-limit": {limit}}}'
    return f"C1: queue.declare queue=q arguments='{table}'\nS1: queue.declare-ok queue=q\n"


CONSUMED = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"


def delivered(number: int, count: int) -> str:
    headers = f'{{"x-delivery-count": {count}}}'
    return (
        f"[d{number}] S1: basic.deliver consumer_tag=t delivery_tag={number} redelivered=1 "
        f"| headers='{headers}' body=5\n"
    )


def test_the_last_attempt_and_the_one_before() -> None:
    text = opened() + declared(5) + CONSUMED
    assert said(text + delivered(1, 4), NEAR) == [
        (
            "delivery-limit-near d1 -: delivery 1 from queue 'q' has x-delivery-count 4 of "
            "x-delivery-limit 5: 1 more is left after this"
        )
    ]
    (line,) = said(text + delivered(1, 5), NEAR)
    assert line.endswith("x-delivery-count 5 of x-delivery-limit 5: this attempt is the last")
    assert not told(text + delivered(1, 3), NEAR, BYSTANDER)


def test_the_limit_by_default() -> None:
    for version, count, says in (
        ("4.0.5", 19, True),
        ("4.0.5", 18, False),
        ("3.13.7", 19, False),
    ):
        assert bool(told(opened(version) + CONSUMED + delivered(1, count), NEAR)) is says


def test_a_declared_limit_goes_before_the_default() -> None:
    assert not told(opened("4.0.5") + declared(50) + CONSUMED + delivered(1, 20), NEAR)


BOTH = opened() + declared(3) + CONSUMED + delivered(1, 2) + delivered(2, 2)


CLOSED = "S1: channel.close reply_code=541\nC1: channel.close-ok\n"


def test_a_channel_that_the_broker_closed() -> None:
    assert told(BOTH + CLOSED, BYSTANDER)


def test_messages_that_were_held_together() -> None:
    (line,) = said(BOTH + "[cut] RST C\n", BYSTANDER)
    assert line == (
        "delivery-limit-bystander cut - x2: 2 deliveries from queue 'q' with x-delivery-count 2 "
        "or more, the first in packet d1, were held together when TCP was reset; "
        "x-delivery-limit 3"
    )


@pytest.mark.parametrize(
    "more",
    [
        "C1: basic.ack delivery_tag=2\nRST C\n",
        "C1: basic.nack delivery_tag=2 requeue=1\nRST C\n",
        "C: connection.close\nS: connection.close-ok\n",
        "C1: channel.close\nS1: channel.close-ok\nRST C\n",
        "GAP C 100\nC1: basic.qos prefetch_count=1\n" + CLOSED,
        "",
    ],
)
def test_one_that_was_settled_or_a_channel_that_was_closed(more: str) -> None:
    assert not told(BOTH + more, BYSTANDER)


def test_a_limit_that_was_not_captured() -> None:
    for count, says in ((3, True), (2, False)):
        text = opened() + CONSUMED + delivered(1, count) + delivered(2, count)
        assert bool(told(text + "RST C\n", BYSTANDER)) is says
        assert not told(text + "RST C\n", NEAR)
