"""The log of findings: what it folds, what it bounds, and what it takes for a cause."""

from __future__ import annotations

import time

import pytest

from amqpsniff.findings import KINDS, Finding, FindingLog, log


def seen(code: str, at: int, connection: str | None = "a", channel: int | None = None) -> Finding:
    """A finding in packet `at`, a second later for each packet."""
    return Finding(code, "", "x.pcap", at, at * 10**9, connection, "c:1", "s:2", channel)


def taken(*findings: Finding) -> dict[str, Finding]:
    """What the log makes of them, by code and channel where that is needed."""
    found = FindingLog()
    for finding in findings:
        found.add(finding)
    return {finding.code: finding for finding in found.take()}


def test_one_row_for_a_code_connection_and_channel() -> None:
    found = FindingLog()
    for at in range(1, 4):
        found.add(seen("content-weight", at, channel=1))
        found.add(seen("content-weight", at, channel=2))
        found.add(seen("content-weight", at, connection="b", channel=1))
    rows = found.take()
    assert [(row.connection_id, row.channel) for row in rows] == [("a", 1), ("a", 2), ("b", 1)]
    assert {(row.packet_number, row.last_packet_number, row.count) for row in rows} == {(1, 3, 3)}
    assert found.take() == []


def test_a_code_that_is_not_in_the_catalogue() -> None:
    with pytest.raises(KeyError):
        FindingLog().add(Finding("no-such-thing", ""))


def test_a_flood_of_one_code_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_PLACES", 3)
    found = FindingLog()
    for at in range(1, 11):
        found.add(seen("not-amqp", at, connection=f"{at}"))
        found.add(seen("not-amqp", at, connection=f"{at}"))
    found.add(seen("content-weight", 11))
    *placed, rest, limit = found.take()
    assert [row.connection_id for row in placed] == ["1", "2", "3", "a"]
    assert (rest.code, rest.connection_id, rest.count) == ("not-amqp", None, 14)
    assert (rest.packet_number, rest.last_packet_number) == (4, 10)
    assert limit.code == "findings-limit"
    assert "14" in limit.detail
    found.add(seen("not-amqp", 1))
    assert len(found.take()) == 1


def test_no_more_rows_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_FINDINGS", 4)
    found = FindingLog()
    for code in list(KINDS)[:6]:
        for channel in range(1, 3):
            found.add(seen(code, 1, channel=channel))
    rows = found.take()
    assert len(rows) == 4 + 4 + 1
    assert sum(row.count for row in rows if row.code != "findings-limit") == 12


def test_a_cause_on_the_same_connection() -> None:
    found = taken(seen("frame-end-wrong", 3), seen("connection-closed-by-broker", 5, channel=0))
    close = found["connection-closed-by-broker"]
    assert (close.cause_code, close.cause_packet_number) == ("frame-end-wrong", 3)
    assert found["frame-end-wrong"].cause_code is None


def test_the_last_of_several_causes() -> None:
    found = taken(
        seen("heartbeat-malformed", 1),
        seen("content-interrupted", 4, channel=7),
        seen("connection-closed-by-broker", 5, channel=0),
        seen("frame-end-wrong", 6),
    )
    close = found["connection-closed-by-broker"]
    assert (close.cause_code, close.cause_packet_number) == ("content-interrupted", 4)


@pytest.mark.parametrize(
    "cause",
    [
        seen("frame-end-wrong", 3, connection="b"),
        seen("frame-end-wrong", 6),
        seen("connection-unnamed", 3),
    ],
    ids=["another connection", "later", "not in the catalogue"],
)
def test_no_cause(cause: Finding) -> None:
    found = taken(cause, seen("connection-closed-by-broker", 5))
    assert found["connection-closed-by-broker"].cause_code is None


def test_channels_keep_causes_apart() -> None:
    effect = "publishes-discarded"
    close = "channel-closed-by-broker"
    for channel, wanted in ((1, close), (2, None), (None, close)):
        found = taken(seen(close, 1, channel=1), seen(effect, 2, channel=channel))
        assert found[effect].cause_code == wanted


def test_a_cause_in_the_capture_when_there_is_none_on_the_connection() -> None:
    cut = Finding("packets-cut", "", "x.pcap")
    found = taken(seen("arguments-cut", 5, channel=1), cut)
    assert found["arguments-cut"].cause_code == "packets-cut"
    assert found["arguments-cut"].cause_packet_number is None
    found = taken(seen("arguments-cut", 5, channel=1), cut, seen("tcp-gap", 2))
    assert found["arguments-cut"].cause_code == "tcp-gap"


def test_a_cause_that_is_given_is_kept() -> None:
    close = seen("connection-closed-by-broker", 5)
    close.cause_code, close.cause_packet_number = "limit-reached", 2
    found = taken(seen("frame-end-wrong", 3), close)
    assert found["connection-closed-by-broker"].cause_code == "limit-reached"


def test_causes_are_found_in_time_that_grows_with_the_findings() -> None:
    found = FindingLog()
    for channel in range(1, 10_000):
        found.add(seen("content-interrupted", channel, channel=channel))
        found.add(seen("content-unexpected-frame", channel, channel=channel))
        found.add(seen("publishes-in-doubt", channel, channel=channel))
        found.add(seen("channel-closed-by-broker", channel, channel=channel))
    began = time.process_time()
    rows = found.take()
    assert time.process_time() - began < 5
    assert sum(row.cause_code is not None for row in rows) == 2 * 9_999


def test_news_of_what_is_counted_again_without_words() -> None:
    found = FindingLog()
    found.watch()
    found.add(seen("content-weight", 1))
    assert [row.count for row in found.news()] == [1]
    assert found.again("content-weight", "a", None, None, 2, 3)
    assert [(row.count, row.last_packet_number) for row in found.news()] == [(3, 3)]
    assert found.news() == []
