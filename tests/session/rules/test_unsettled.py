"""What channels left, as it is remembered; `test_acknowledging` has what is found with it."""

from __future__ import annotations

import pytest

from amqpsniff.findings.records import order_of
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session.rules.acknowledging import (
    INVALID,
    MAX_UNSETTLED_CHANNELS,
    Unsettled,
    UnsettledChannels,
)
from tests.findings.cases import packets_of
from tests.session.rules.found import details
from tests.tcp import wire


def left(at: int, *tags: tuple[int, int]) -> Unsettled:
    """What a channel left that ended in a packet of that number and time."""
    return Unsettled(order_of(at, "x.pcap", at), at, tags)


@pytest.mark.parametrize("tag", range(9))
def test_tags_that_were_outstanding(tag: int) -> None:
    assert left(1, (2, 3), (5, 5), (7, 7)).holds(tag) is (tag in (2, 3, 5, 7))


def test_the_last_that_was_left_by_then() -> None:
    lefts = UnsettledChannels()
    for at in (5, 3, 8):
        assert not lefts.add("a", left(at, (at, at)))
    found = {at: lefts.before("a", order_of(at, "x.pcap", at)) for at in (2, 3, 7, 8, 9)}
    assert {at: one and one.packet_number for at, one in found.items()} == {
        2: None, 3: 3, 7: 5, 8: 8, 9: 8
    }  # fmt: skip
    assert lefts.before("b", order_of(9, "x.pcap", 9)) is None


def test_the_oldest_is_forgotten_whatever_its_key() -> None:
    lefts = UnsettledChannels()
    most = MAX_UNSETTLED_CHANNELS

    def kept(key: str) -> list[int]:
        found = [lefts.before(key, order_of(at, "x.pcap", at)) for at in range(most + 9)]
        return sorted({one.packet_number for one in found if one is not None})

    assert not any(lefts.add("a" if at < 2 else "b", left(at)) for at in range(most))
    assert (len(lefts), kept("a"), kept("b")[0]) == (most, [0, 1], 2)
    assert lefts.add("c", left(most))
    assert lefts.add("c", left(most + 1))
    assert (len(lefts), kept("a"), kept("b")[0]) == (most, [], 2)
    assert lefts.add("b", left(most + 2))
    assert (len(lefts), kept("b")[0], kept("b")[-1]) == (most, 3, most + 2)
    assert kept("c") == [most, most + 1]


def opened(channels: int) -> str:
    """So many channels are opened, from number 1 on."""
    lines = "C{0}: channel.open\nS{0}: channel.open-ok\n"
    return "handshake\n" + "".join(lines.format(number) for number in range(1, channels + 1))


@pytest.mark.parametrize(("more", "forgotten"), [(1, ["forgotten: channels (1)"]), (0, [])])
def test_numbers_of_channels_that_are_open(more: int, forgotten: list[str]) -> None:
    assert details(opened(MAX_UNSETTLED_CHANNELS + more), "rules-limit") == forgotten


def test_nothing_is_kept_of_channels_that_left_nothing() -> None:
    pipeline = Pipeline(plan=Plan(("findings",)))
    closed = "".join(f"C{n}: channel.close\nS{n}: channel.close-ok\n" for n in (1, 3))
    pipeline.feed(wire.batch(packets_of(opened(3) + closed)))
    assert list(pipeline.tracker.shared["open-channels"]) == [("10.0.0.1", 2)]
    assert "left-outstanding" not in pipeline.tracker.shared


def test_what_is_outstanding_is_not_gone_through_for_each_tag() -> None:
    """A client may send such tags without end: as many times as much would take minutes."""
    delivered = "".join(
        f"S1: basic.deliver consumer_tag=t delivery_tag={tag}\n" for tag in range(1, 10_001)
    )
    acked = "".join(f"C1: basic.ack delivery_tag={tag}\n" for tag in range(20_000, 30_000))
    ended = "C: connection.close reply_code=200\nS: connection.close-ok\n"
    found = details(opened(1) + delivered + acked + ended, INVALID)
    assert found == ["delivery 20000 was not sent on this channel, the last was 10000"]
