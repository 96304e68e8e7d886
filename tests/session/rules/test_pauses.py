"""Messages whose rest waits for a delayed acknowledgement."""

from __future__ import annotations

from typing import Any

import pytest

from tests import encoder
from tests.conftest import SAMPLES
from tests.session.events import DEFINED
from tests.session.rules.found import of_capture
from tests.session.rules.telling import told_of
from tests.tcp import wire

US = 1_000
MS = 1_000_000
ARGUMENTS = {"ticket": 0, "exchange": b"", "routing_key": b"q", "mandatory": 0, "immediate": 0}
PUBLISH = encoder.content(DEFINED["basic.publish"], ARGUMENTS, b"x" * 100)


def publishes(
    acknowledged_ns: int = 40 * MS, then_ns: int = 20 * US, times: int = 5, others: int = 0
) -> list[wire.Packet]:
    """Publishes whose method is acknowledged after a time, and the rest of which comes after it;
    `others` of them take as long, but their method is acknowledged at once.
    """
    talk = wire.Talk(step_ns=0)
    talk.hands()
    talk.client(encoder.PROTOCOL_HEADERS["0-9-1"])
    talk.server()
    for number in range(times + others):
        talk.wait(MS)
        talk.client(PUBLISH[0])
        talk.wait(acknowledged_ns if number < times else 10 * US)
        talk.server()
        talk.wait(then_ns if number < times else acknowledged_ns)
        talk.client(PUBLISH[1] + PUBLISH[2])
        talk.wait(10 * US)
        talk.server()
    return talk.goodbye().packets


def stalls(packets: list[wire.Packet]) -> list[dict[str, Any]]:
    """What is found of it."""
    return told_of(packets, "delayed-ack-stall")


def test_each_message_waits() -> None:
    (row,) = stalls(publishes())
    assert (row["packet_number"], row["last_packet_number"], row["count"]) == (6, 22, 5)
    assert row["detail"] == (
        "5 publishes took 40.0 ms on average: 5 times the client held the rest back until TCP's "
        "delayed acknowledgement came"
    )


def test_three_of_four_that_take_as_long() -> None:
    (row,) = stalls(publishes(times=6, others=2))
    assert row["count"] == 6
    assert row["detail"].startswith("8 publishes took 40.0 ms on average: 6 times")
    assert not stalls(publishes(times=8, others=3))


@pytest.mark.parametrize(
    "more",
    [
        {"times": 4},
        {"times": 4, "others": 1},
        {"acknowledged_ns": 34 * MS},
        {"acknowledged_ns": 51 * MS},
        {"then_ns": 2 * MS},
        {"others": 2},
    ],
)
def test_what_waits_for_something_else(more: dict[str, int]) -> None:
    assert not stalls(publishes(**more))


def test_publishes_far_apart_that_are_sent_at_once() -> None:
    talk = wire.Talk(step_ns=0)
    talk.hands()
    talk.client(encoder.PROTOCOL_HEADERS["0-9-1"])
    for _ in range(9):
        talk.client(b"".join(PUBLISH))
        talk.wait(40 * MS)
        talk.server()
        talk.wait(20 * US)
    assert not stalls(talk.packets)


def test_a_client_without_no_delay() -> None:
    found = {row["code"]: row for row in of_capture(SAMPLES / "delayed_ack.pcap")}
    assert found["delayed-ack-stall"]["count"] == 12
