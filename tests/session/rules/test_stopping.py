# ruff: noqa: E501 (one packet, one line)
"""Channels that one side stops with channel.flow."""

from __future__ import annotations

import pytest

from tests.session.rules.telling import one, told

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
STOP = "S1: channel.flow active=0\nC1: channel.flow-ok active=0\n"
GO = "@+4000ms S1: channel.flow active=1\nC1: channel.flow-ok active=1\n"
PUBLISH = "C1: basic.publish exchange=e | body=1\n"
END = "@+1000ms C1: channel.close reply_code=200\nS1: channel.close-ok\n"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (STOP + GO + PUBLISH + END, "the broker stopped the client for 4.00 s"),
        (STOP + PUBLISH * 2 + GO + END, "the broker stopped the client for 4.00 s, 2 messages sent all the same"),
        (STOP + PUBLISH + END, "the broker stopped the client for 1.00 s until the end, 1 message sent all the same"),
        ("S1: channel.flow active=0\n" + PUBLISH + "C1: channel.flow-ok active=0\n" + GO + END, "the broker stopped the client for 4.00 s"),
        ("C1: channel.flow active=0\nS1: channel.flow-ok active=0\nS1: basic.deliver consumer_tag=t delivery_tag=1 | body=1\n" + END, "the client stopped the broker for 1.00 s until the end, 1 message sent all the same"),
    ],
)  # fmt: skip
def test_for_how_long_and_what_came_all_the_same(text: str, detail: str) -> None:
    row = one(OPEN + text, "channel-stopped")
    assert (row["detail"], row["channel"]) == (detail, 1)


def test_nothing_is_said_of_a_channel_that_goes_on() -> None:
    assert not told(OPEN + GO + PUBLISH + END, "channel-stopped")
    assert not told(OPEN + "C1: channel.flow-ok active=0\n" + PUBLISH + END, "channel-stopped")


def test_nobody_is_stopped_who_does_not_agree() -> None:
    """RabbitMQ does not: it closes the connection with 540."""
    refused = (
        "S: connection.close reply_code=540 reply_text=NOT_IMPLEMENTED\nC: connection.close-ok\n"
    )
    assert not told(OPEN + "C1: channel.flow active=0\n" + refused, "channel-stopped")


def test_after_a_loss_it_may_have_gone_on() -> None:
    row = one(OPEN + STOP + "GAP S 60\n" + PUBLISH + END, "channel-stopped")
    assert row["detail"] == "the broker stopped the client"
