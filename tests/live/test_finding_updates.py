"""Which findings are given while the traffic goes on, and how often."""

from __future__ import annotations

from dataclasses import replace

from amqpsniff.findings import Finding
from amqpsniff.live.finding_updates import AGAIN_SECONDS, FindingUpdates

SECOND = 1_000_000_000


def refusal(code: int, count: int = 1) -> Finding:
    """A channel that was closed with a reply code so often."""
    return Finding(
        "channel-closed-by-broker", f"{code}", "x.pcap", code, 1, "a", "c:1", "s:2", 3, count,
        variant=code,
    )  # fmt: skip


def test_rows_of_one_code_and_channel_that_are_kept_apart() -> None:
    news = FindingUpdates()
    not_found, refused = refusal(404), refusal(403)
    assert news.add([not_found, refused], 0) == [not_found, refused]
    assert news.rows == {"channel-closed-by-broker": 2}
    assert news.counts == {"channel-closed-by-broker": 2}
    assert news.rest([not_found, refused]) == []


def test_what_is_taken_back_is_given_without_a_count() -> None:
    news = FindingUpdates()
    first, gone = refusal(404), refusal(404, count=0)
    assert news.add([gone], 0) == []  # nobody heard of it
    assert news.add([first], 0) == [first]
    assert news.add([gone], AGAIN_SECONDS * SECOND) == [gone]
    assert (news.counts, news.rows) == (
        {"channel-closed-by-broker": 1}, {"channel-closed-by-broker": 0}
    )  # fmt: skip
    assert news.rest([]) == []
    assert news.add([first], 2 * AGAIN_SECONDS * SECOND) == [first]
    assert (news.counts, news.rows) == (
        {"channel-closed-by-broker": 1}, {"channel-closed-by-broker": 1}
    )  # fmt: skip
    assert news.rest([]) == [gone]


def test_what_is_found_again_is_given_with_its_new_count_after_a_while() -> None:
    news = FindingUpdates()
    first = refusal(404)
    assert news.add([first], 0) == [first]
    second, third = replace(first, count=2), replace(first, count=3)
    assert news.add([second], SECOND) == []
    assert news.add([third], 2 * SECOND) == []
    assert news.add([], AGAIN_SECONDS * SECOND) == [third]
    assert news.counts == {"channel-closed-by-broker": 3}
    assert news.rest([third]) == []
    assert news.rest([replace(first, count=4)]) == [replace(first, count=4)]
