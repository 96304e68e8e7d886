"""The log of findings: what it folds, what it bounds, and what it takes for a cause."""

from __future__ import annotations

import pytest

from amqpsniff.findings import KINDS, Finding, FindingLog, Records
from amqpsniff.findings.log import MAX_FINDINGS, MAX_PLACES


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


def test_a_flood_of_one_code_leaves_room_for_others() -> None:
    found = FindingLog()
    last = MAX_PLACES + 7
    for at in range(1, last + 1):
        found.add(seen("not-amqp", at, connection=f"{at}"))
        found.add(seen("not-amqp", at, connection=f"{at}"))
    found.add(seen("content-weight", last + 1))
    *placed, rest, limit = found.take()
    assert [row.connection_id for row in placed] == [*map(str, range(1, MAX_PLACES + 1)), "a"]
    assert (rest.code, rest.connection_id, rest.count) == ("not-amqp", None, 14)
    assert (rest.packet_number, rest.last_packet_number) == (MAX_PLACES + 1, last)
    assert limit.code == "findings-limit"
    assert "14" in limit.detail
    found.add(seen("not-amqp", 1))
    assert len(found.take()) == 1


def test_no_more_rows_than_the_limit() -> None:
    found = FindingLog()
    codes = list(KINDS)[: MAX_FINDINGS // MAX_PLACES + 2]
    for code in codes:
        for channel in range(MAX_PLACES):
            found.add(seen(code, 1, channel=channel))
    rows = found.take()
    assert len(rows) == MAX_FINDINGS + 2 + 1
    counts = [row.count for row in rows if row.code != "findings-limit"]
    assert sum(counts) == len(codes) * MAX_PLACES


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


@pytest.mark.parametrize(
    ("causes", "cause"),
    [
        ([seen("content-interrupted", 2, channel=7), seen("content-interrupted", 4, channel=8)], 4),
        ([Finding("packets-cut", "")], None),
    ],
    ids=["the last of one code", "of all captures"],
)
def test_causes_near_and_far(causes: list[Finding], cause: int | None) -> None:
    code = "connection-closed-by-broker" if cause else "arguments-cut"
    found = FindingLog()
    for each in (*causes, seen(code, 5)):
        found.add(each)
    (effect,) = (one for one in found.take() if one.code == code)
    assert (effect.cause_code, effect.cause_packet_number) == (causes[-1].code, cause)


def test_a_cause_of_the_connection_for_a_channel() -> None:
    found = taken(seen("tcp-gap", 3), seen("arguments-cut", 5, channel=7))
    assert found["arguments-cut"].cause_code == "tcp-gap"


def test_what_has_no_time_may_be_of_any() -> None:
    effect = seen("connection-closed-by-broker", 5)
    effect.ts_ns = None
    found = taken(effect, seen("frame-end-wrong", 9))
    assert found["connection-closed-by-broker"].cause_packet_number == 9


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


class Time(int):
    """A time that counts how often times are compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Time.compared += 1
        return int(self) < int(other)


def test_causes_are_found_in_steps_that_grow_with_the_findings() -> None:
    found = FindingLog()
    codes = (
        "content-interrupted content-unexpected-frame publishes-in-doubt channel-closed-by-broker"
    )
    for channel in range(1, 10_000):
        for code in (*codes.split(), "channel-closed-by-broker"):
            one = seen(code, channel, channel=channel)
            one.ts_ns = Time(one.ts_ns)
            found.add(one)
    rows = found.take()
    assert 2 * 9_999 < Time.compared < 40 * len(rows)
    assert sum(row.cause_code is not None for row in rows) == 2 * 9_999


def test_news_of_what_is_counted_again_without_words() -> None:
    found = FindingLog()
    found.watch()
    found.add(seen("content-weight", 1))
    assert [row.count for row in found.news()] == [1]
    assert found.count_more("content-weight", "a", None, None, 2, 3)
    assert [(row.count, row.last_packet_number) for row in found.news()] == [(3, 3)]
    assert found.news() == []


def test_news_has_what_was_found_by_then() -> None:
    """Folded, with causes; what has no place is none."""
    found = FindingLog()
    assert found.news() == []
    found.watch()
    found.add(seen("frame-end-wrong", 3))
    found.add(seen("connection-closed-by-broker", 4))
    found.add(seen("connection-closed-by-broker", 5))
    _, close = found.news()
    assert (close.count, close.last_packet_number, close.cause_code) == (2, 5, "frame-end-wrong")


def test_what_has_no_place_is_no_news() -> None:
    found = FindingLog(1)
    found.watch()
    for at in (1, 2):
        found.add(seen("not-amqp", at, connection=f"{at}"))
    assert [row.connection_id for row in found.news()] == ["1"]
    assert not found.foresee(seen("not-amqp", 3, connection="3"))
    found.withdraw(seen("not-amqp", 1, connection="1").key)
    for at, has_place in ((3, True), (4, False)):
        assert found.foresee(seen("not-amqp", at, connection=f"{at}")) is has_place


@pytest.mark.parametrize("most", [None, 0])
@pytest.mark.parametrize(
    ("packets", "last"), [([(7, None)], 7), ([(7, 9)], 9), ([(7, None), (2, 9)], 9),
                          ([(None, None), (4, None)], 4)]
)  # fmt: skip
def test_the_last_packet(
    most: int | None, packets: list[tuple[int | None, int | None]], last: int
) -> None:
    """With a place of their own and without."""
    found = FindingLog(most)
    for number, until in packets:
        found.add(Finding("packets-cut", "", "c", number, last_packet_number=until))
    assert found.take()[0].last_packet_number == last


def test_what_nobody_watches_is_withdrawn() -> None:
    found = FindingLog()
    going_on = seen("confirms-slow", 1)
    assert found.foresee(going_on)
    found.withdraw(going_on.key)
    assert found.take() == []


def test_the_last_packet_of_what_is_counted_in_any_order() -> None:
    log = FindingLog()
    for at in (5, 3, None):
        assert log.count_more("packets-cut", None, "x.pcap", None, 2, at) is (at != 5)
        if at == 5:
            log.add(Finding("packets-cut", "", "x.pcap", at))
    (row,) = log.take()
    assert (row.count, row.packet_number, row.last_packet_number) == (5, 5, 5)


def test_a_log_of_few() -> None:
    found = FindingLog(most=2)
    for at in range(1, 5):
        found.add(seen("content-weight", at, channel=at))
    *rows, rest, limit = found.take()
    assert ([row.channel for row in rows], rest.count) == ([1, 2], 2)
    assert limit.detail == "2 cases of content-weight without a place of their own"


@pytest.mark.parametrize(
    ("place", "named"),
    [({"connection_id": "a", "capture": "c"}, "a"), ({"capture": "c"}, "c"), ({}, "?")],
)
def test_where_those_without_a_place_begin(place: dict[str, str], named: str) -> None:
    found = FindingLog(most=0)
    found.add(Finding("packets-cut", "", **place))  # type: ignore[arg-type]
    assert found.take()[0].detail == f"in further places, first: {named}"


def test_limits_of_the_session() -> None:
    found = FindingLog()
    found.add_limits({}, "x.pcap")
    assert found.take() == []
    found.add_limits({"rows": 1, "names": 2}, "x.pcap")
    assert [(row.detail, row.count) for row in found.take()] == [
        ("rows: 1 time, names: 2 times", 2)
    ]
    found.recorded = Records()
    found.add_limits({"rows": 1}, "x.pcap")
    found.add_limits({"rows": 2}, "y.pcap")
    assert (found.take(), found.recorded.limits) == ([], {"rows": 3})


def test_what_passes_a_proxy_was_not_published_again() -> None:
    """It is left out where its connection is known to be behind a proxy, and there alone."""
    again, other = seen("publish-repeated", 3), seen("publish-repeated", 4, "b")
    found = taken(seen("proxy-on-both-sides", 1), again, other)
    assert found["publish-repeated"] is other


def test_answers_that_come_late_where_the_network_loses_packets() -> None:
    found = taken(seen("tcp-retransmissions", 1), seen("broker-slow", 2))
    assert found["broker-slow"].cause_code == "tcp-retransmissions"
