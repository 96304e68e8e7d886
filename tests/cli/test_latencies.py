"""Times and outcomes in the summary, against the same counted from rows one by one."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amqpsniff
from amqpsniff.tables.histogram import Histogram
from tests.cli.running import run
from tests.cli.test_topology import capture
from tests.conftest import SAMPLES
from tests.session.script import Script

NAMES = ("aiopika_rpc.pcap", "pika_mix.pcap", "kombu.pcap.gz", "node.pcap", "midstream.pcap")


def summary(path: str | Path, *words: str) -> dict[str, Any]:
    result = run("summary", path, "--format", "json", *words)
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def place(values: list[int], fraction: float) -> int:
    """The value that this fraction does not exceed."""
    return sorted(values)[max(1, math.ceil(len(values) * fraction)) - 1]


def same_times(told: dict[str, Any], values: list[int]) -> None:
    """Quantiles as close as a histogram is."""
    for name, fraction in (("p50_ns", 0.5), ("p95_ns", 0.95), ("p99_ns", 0.99)):
        exact = place(values, fraction)
        assert exact * (1 - 1 / 128) <= told[name] <= exact
    assert told["max_ns"] == max(values)


@pytest.mark.parametrize("name", NAMES)
def test_times_and_outcomes(name: str) -> None:
    """Every number of the sections, from the rows of frames and messages."""
    found = summary(name)
    frames = amqpsniff.open(SAMPLES / name).table("frames").to_pylist()
    messages = amqpsniff.open(SAMPLES / name).table("messages").to_pylist()
    requests, outcomes = defaultdict(list), defaultdict(list)
    for row in frames:
        if row["response_ns"] is not None:
            requests[row["method"]].append(row["response_ns"])
    kinds = {"basic.publish": "publish", "basic.deliver": "delivery", "basic.get-ok": "delivery"}
    for row in messages:
        if row["outcome"] is not None:
            outcomes[kinds[row["method"]], row["outcome"]].append(row["outcome_ns"])
    assert {one["method"]: one["count"] for one in found["requests"]} == {
        method: len(times) for method, times in requests.items()
    }
    for one in found["requests"]:
        same_times(one, requests[one["method"]])
    assert len(found["outcomes"]) == len(outcomes)
    for one in found["outcomes"]:
        times = outcomes[one["message"], one["outcome"]]
        assert one["count"] == len(times)
        if one["outcome"] == "automatic" or None in times:
            assert one["p50_ns"] is None
        else:
            same_times(one, times)
    deliveries = [row for row in messages if kinds.get(row["method"]) == "delivery"]
    journeys = found["journeys"]
    assert journeys["deliveries"] == len(deliveries)
    assert Counter(row["match"] for row in deliveries) == Counter(
        {None: journeys["unmatched"], **{m: journeys[m] for m in ("exact", "likely", "ambiguous")}}
    )
    same_times(journeys, [row["published_ns"] for row in deliveries if row["match"]])
    replied = [row["request_ns"] for row in messages if row["request_ns"] is not None]
    calls = found["calls"]
    assert calls["replies"] + calls["replies_delivered"] == len(replied)
    assert calls["requests"] == sum(
        row["reply_to"] is not None and row["method"] == "basic.publish" for row in messages
    )


def test_fan_out_and_late_replies(tmp_path: Path) -> None:
    """Two publishes to one queue and one to three; a late reply."""
    opened = "".join(
        f"{name}.handshake\n{name}.C1: channel.open\n{name}.S1: channel.open-ok\n" for name in "pab"
    )
    consumed = "".join(
        f"{name}.C1: basic.consume queue={queue} consumer_tag={queue} no_ack=1\n"
        for name, queue in (("a", "q1"), ("a", "q2"), ("b", "q3"))
    )
    publish = "p.C1: basic.publish exchange={0} routing_key=k | body=5 message_id={1}\n"
    deliver = (
        "{2}.S1: basic.deliver consumer_tag={3} exchange={0} routing_key=k"
        " delivery_tag=1 | body=5 message_id={1}\n"
    )
    talk = opened + consumed
    for number in (1, 2):
        talk += publish.format("one", number) + deliver.format("one", number, "a", "q1")
    talk += publish.format("all", 3)
    talk += deliver.format("all", 3, "a", "q1") + deliver.format("all", 3, "a", "q2")
    talk += deliver.format("all", 3, "b", "q3")
    talk += deliver.format("all", 3, "b", "q3").replace(" delivery", " redelivered=1 delivery")
    talk += "p.C1: basic.publish routing_key=w | body=1 reply_to=r correlation_id=1 expiration=2\n"
    talk += "@+9ms b.C1: basic.publish routing_key=r | body=1 correlation_id=1\n"
    found = summary(capture(Script(talk), tmp_path / "talk.pcap"))
    assert found["journeys"]["fan_out"] == {"1": 2, "3": 1}
    assert found["journeys"]["again"] == 1
    calls = found["calls"]
    assert (calls["requests"], calls["replies"], calls["late"]) == (1, 1, 1)
    text = run("summary", tmp_path / "talk.pcap").out
    assert "1 again · deliveries of publishes: 1 of 2, 3 of 1" in text
    assert "1 request, 1 late" in text


def test_of_a_part() -> None:
    """A selection of rows is of times as well."""
    part = summary("aiopika_rpc.pcap", "--to", "+0.05s")
    every = summary("aiopika_rpc.pcap")
    assert 0 < part["journeys"]["deliveries"] < every["journeys"]["deliveries"]


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=200))
def test_histogram(values: list[int]) -> None:
    """Quantiles of any integers, as close as the buckets are wide."""
    histogram = Histogram()
    for value in values:
        histogram.put(value)
    known = [max(0, value) for value in values]
    for fraction in (0.0, 0.5, 0.95, 0.99, 1.0):
        (told,) = histogram.quantiles(fraction)
        exact = place(known, fraction)
        assert exact - exact // 128 <= told <= exact
    assert histogram.largest == max(known)
    assert histogram.count == len(values)


def test_an_empty_histogram() -> None:
    """Nothing is not known."""
    assert Histogram().quantiles(0.5, 0.99) == [None, None]
