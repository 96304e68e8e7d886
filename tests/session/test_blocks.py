"""How long a connection was blocked."""

from __future__ import annotations

import pytest

from amqpsniff.capture.packets import NO_TIME
from tests.session.rules.saying import said
from tests.session.script import Script, feed


def test_blocked_again_after_a_block_that_began_before_the_capture() -> None:
    """How long it was blocked in all is not known; that it is, is."""
    text = """
        midstream
        C1: basic.publish exchange=e routing_key=k
        S: connection.unblocked
        C1: basic.publish exchange=e routing_key=k
        S: connection.blocked reason=memory
        [late] @+900ms C1: basic.publish exchange=e routing_key=k
        """
    found = said(text, "publish-while-blocked", "connection-blocked")
    lasted = "it lasted for the first 1.00 ms of the capture, 1 publish meanwhile, and ended here"
    assert found == [
        f"connection-blocked #2 -: a block whose beginning and reason were not captured; {lasted}",
        "connection-blocked #4 -: memory, for 900 ms until the end, 1 publish meanwhile",
        "publish-while-blocked late 1: published 900 ms after connection.blocked in packet #4",
    ]


@pytest.mark.parametrize("timeless", [{"blocked"}, {"unblocked"}, {"blocked", "unblocked"}])
def test_how_long_it_was_blocked_is_unknown_without_times(timeless: set[str]) -> None:
    """Packets without a time among others, as in Simple Packet Blocks: no number comes of them."""
    script = Script(
        """
        handshake
        [blocked] S: connection.blocked reason=memory
        [unblocked] S: connection.unblocked
        S: connection.blocked reason=memory
        @+30ms S: connection.unblocked
        """
    )
    for label in timeless:
        at = script.labels[label] - 1
        script.packets[at] = script.packets[at]._replace(ts_ns=NO_TIME)
    (row,) = feed(script).engine.take("connections").to_pylist()
    assert row["blocked_ns"] is None


HANDSHAKE = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
BLOCKED = HANDSHAKE + "[blocked] S: connection.blocked reason=memory\n"
LATE = "@+{}ms C1: basic.publish exchange=e routing_key=k\n"


def _blocked_ns(text: str) -> int | None:
    (row,) = feed(Script(text)).engine.take("connections").to_pylist()
    blocked_ns: int | None = row["blocked_ns"]
    return blocked_ns


def test_a_hole_of_the_broker_may_have_ended_a_block() -> None:
    """What was published before it is not known to be late either, nor how much."""
    text = BLOCKED + LATE.format(900) + "GAP S 12\n" + LATE.format(900) + "S: connection.blocked"
    found = said(text, "publish-while-blocked", "connection-blocked")
    assert found == [
        "connection-blocked blocked -: memory, when it ended was not captured",
        "connection-blocked #14 -: no reason given",
    ]
    assert _blocked_ns(text) is None
    assert _blocked_ns(BLOCKED + "GAP C 12\n" + LATE.format(900)) == 901_000_000


def test_what_the_broker_said_before_a_hole_shows_that_it_still_blocked() -> None:
    text = BLOCKED + LATE.format(900) + "S1: channel.flow active=1\nGAP S 12\n" + LATE.format(900)
    assert said(text, "publish-while-blocked") == [
        "publish-while-blocked #11 1: published 900 ms after connection.blocked in packet blocked"
    ]


def test_a_block_of_which_only_the_end_was_captured() -> None:
    whole = BLOCKED + "@+30ms S: connection.unblocked\n"
    assert _blocked_ns(whole) == 30_000_000
    assert _blocked_ns(whole + "GAP S 12\nS: connection.unblocked") is None
    assert _blocked_ns(whole + "GAP S 12\nC1: basic.qos") == 30_000_000


def test_publishes_of_two_channels_and_two_blocks_are_counted() -> None:
    text = HANDSHAKE + "C2: channel.open\nS2: channel.open-ok\n[stop] S: connection.blocked\n"
    text += LATE.format(900) + LATE.format(1).replace("C1", "C2")
    text += "S1: channel.flow active=1\n" + LATE.format(1) + LATE.format(1)
    text += "S: connection.unblocked\nS: connection.blocked\n" + LATE.format(700)
    assert said(text, "publish-while-blocked") == [
        "publish-while-blocked #13 1 x4: published 900 ms after connection.blocked in packet stop",
        "publish-while-blocked #14 2: published 901 ms after connection.blocked in packet stop",
    ]
