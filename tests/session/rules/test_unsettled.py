"""What channels left, as it is remembered; `test_acknowledging` has what is found with it."""

from __future__ import annotations

import pytest

from amqpsniff.findings.records import order_of
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.session.rules import acknowledging
from amqpsniff.session.rules.acknowledging import Unsettled, UnsettledChannels
from amqpsniff.session.rules.deferred import MAX_DEFERRED
from tests.findings.cases import packets_of
from tests.session.rules.found import details
from tests.tcp import wire


def left(at: int, *tags: tuple[int, int]) -> Unsettled:
    """What a channel left that ended in a packet of that number and time."""
    return Unsettled(order_of(at, "x.pcap", at), at, tags)


@pytest.mark.parametrize("tag", range(9))
def test_tags_that_were_outstanding(tag: int) -> None:
    assert left(1, (2, 3), (5, 5), (7, 7)).holds(tag) is (tag in (2, 3, 5, 7))


@pytest.mark.parametrize(
    ("tags", "ranges"),
    [((), ()), ((4,), ((4, 4),)), ((1, 2, 3, 5, 7, 8), ((1, 3), (5, 5), (7, 8)))],
)
def test_tags_as_ranges(tags: tuple[int, ...], ranges: tuple[tuple[int, int], ...]) -> None:
    assert acknowledging._ranges(tags) == ranges


def test_the_last_that_was_left_by_then() -> None:
    lefts = UnsettledChannels()
    for at in (5, 3, 8):
        assert not lefts.add("a", left(at, (at, at)))
    found = {at: lefts.before("a", order_of(at, "x.pcap", at)) for at in (2, 3, 7, 8, 9)}
    assert {at: one and one.packet_number for at, one in found.items()} == {
        2: None, 3: 3, 7: 5, 8: 8, 9: 8
    }  # fmt: skip
    assert lefts.before("b", order_of(9, "x.pcap", 9)) is None


def test_the_oldest_is_forgotten_whatever_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acknowledging, "MAX_UNSETTLED_CHANNELS", 3)
    lefts = UnsettledChannels()
    forgotten = [lefts.add(key, left(at)) for at, key in enumerate("aabcd", 1)]
    assert forgotten == [False, False, False, True, True]
    assert len(lefts) == 3
    assert {key: [one.packet_number for one in kept] for key, kept in lefts._by_key.items()} == {
        "b": [3], "c": [4], "d": [5]
    }  # fmt: skip
    assert lefts.add("d", left(6))
    assert lefts.add("d", left(7))
    assert [one.packet_number for one in lefts._by_key["d"]] == [5, 6, 7]
    assert lefts.add("d", left(8))
    assert [one.packet_number for one in lefts._by_key["d"]] == [6, 7, 8]


OPENED = "handshake\n" + "".join(f"C{n}: channel.open\nS{n}: channel.open-ok\n" for n in (1, 2, 3))


@pytest.mark.parametrize(("most", "forgotten"), [(2, ["forgotten: channels (1)"]), (3, [])])
def test_numbers_of_channels_that_are_open(
    most: int, forgotten: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acknowledging, "MAX_UNSETTLED_CHANNELS", most)
    assert details(OPENED, "rules-limit") == forgotten


def test_nothing_is_kept_of_channels_that_left_nothing() -> None:
    pipeline = Pipeline(plan=Plan(("findings",)))
    closed = "".join(f"C{n}: channel.close\nS{n}: channel.close-ok\n" for n in (1, 3))
    pipeline.feed(wire.batch(packets_of(OPENED + closed)))
    assert list(pipeline.tracker.shared["open-channels"]) == [("10.0.0.1", 2)]
    assert "left-outstanding" not in pipeline.tracker.shared


def test_what_is_outstanding_is_not_gone_through_for_each_tag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor are words made that nobody reads: a client may send such tags without end."""
    asked: list[str] = []
    inner, why = acknowledging._unsettled_of, acknowledging._why
    monkeypatch.setattr(
        acknowledging, "_unsettled_of", lambda one: (asked.append("left"), inner(one))[1]
    )
    monkeypatch.setattr(
        acknowledging, "_why", lambda context, tag: (asked.append("why"), why(context, tag))[1]
    )
    opened = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
    delivered = "".join(
        f"S1: basic.deliver consumer_tag=t delivery_tag={tag}\n" for tag in range(1, 21)
    )
    acked = "".join(
        f"C1: basic.ack delivery_tag={tag}\n" for tag in range(100, 100 + MAX_DEFERRED + 500)
    )
    ended = "C: connection.close reply_code=200\nS: connection.close-ok\n"
    found = details(opened + delivered + acked + ended, acknowledging.INVALID)
    assert found == ["delivery 100 was not sent on this channel, the last was 20"]
    assert asked.count("why") == MAX_DEFERRED
    assert asked.count("left") <= 1  # the channel's own, at its end
