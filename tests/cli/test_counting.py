"""Counts of summaries: exact as far as memory goes, and never more memory than that."""

from __future__ import annotations

import contextlib
import json
import random
import zlib
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.cli import codec, connections, digest, tally
from amqpsniff.cli.counting import counted, grouped, is_one_of
from tests.cli.running import run


@given(st.lists(st.integers(0, 4095), min_size=1), st.floats(0.01, 1))
def test_small_sizes_are_exact(sizes: list[int], fraction: float) -> None:
    found = tally.Sizes()
    found.add(pa.array(sizes, pa.int64()))
    (size,) = found.quantiles(fraction)
    assert size is not None
    ranked = sorted(sizes)
    assert sum(one <= size for one in sizes) >= fraction * len(sizes)
    assert sum(one < size for one in ranked) < fraction * len(sizes)
    assert (found.messages, found.octets, found.largest) == (len(sizes), sum(sizes), max(sizes))


@given(st.lists(st.integers(0, 2**50), min_size=1))
def test_large_sizes_are_nearly_exact(sizes: list[int]) -> None:
    found = tally.Sizes()
    found.add(pa.array(sizes, pa.int64()))
    (size,) = found.quantiles(1.0)
    assert size is not None
    assert max(sizes) * (1 - 2**-11) <= size <= max(sizes)
    assert len(found.counts) <= len(sizes)


def test_no_sizes() -> None:
    found = tally.Sizes()
    found.add(pa.array([None], pa.int64()))
    assert found.quantiles(0.5, 0.99) == [None, None]


def test_frequent_names_stay_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "MOST_NAMES", 50)
    names = [f"often-{n % 5}" for n in range(5000)] + [f"once-{n}" for n in range(5000)]
    random.Random(1).shuffle(names)
    found = tally.Tally()
    for name in names:
        found.add(name, "published", 1, 10)
        assert len(found.counts) <= 100
    assert found.forgotten
    assert {name: counts[0] for name, counts in found.top(5)} == {
        f"often-{n}": 1000 for n in range(5)
    }


def test_peaks_of_rates() -> None:
    rate = tally.Rate()
    second = tally.SECOND_NS
    rate.add(pa.array([0, 1, second, second + 5, second + 9], pa.int64()))
    rate.add(pa.array([second + 10, 3 * second], pa.int64()))
    assert (rate.messages, rate.peak, rate.peak_second) == (7, 4, 1)


def test_seconds_long_past_are_forgotten() -> None:
    rate = tally.Rate()
    for second in range(0, 10_000, 10):
        rate.add(pa.array([second * tally.SECOND_NS], pa.int64()))
    assert rate.messages == 1000
    assert len(rate._seconds) <= tally.RECENT_SECONDS


def test_encoded_columns_count_as_plain_ones() -> None:
    texts = ["a", None, "b", "a"]
    plain = pa.array(texts)
    for column in (plain, plain.dictionary_encode()):
        assert Counter(dict(counted(column))) == {"a": 2, "b": 1}
        chosen = is_one_of(column, frozenset("a")).fill_null(False)
        assert chosen.to_pylist() == [True, False, False, True]
    for column in (plain, plain.dictionary_encode()):
        batch = pa.record_batch({"name": column, "size": pa.array([1, 2, 3, 4])})
        sums = [([], "count_all"), ("size", "sum"), ("row", "min")]
        assert sorted(grouped(batch, ("name",), sums), key=str) == sorted(
            [("a", 2, 5, 0), (None, 1, 2, 1), ("b", 1, 3, 2)], key=str
        )


def test_connections_and_errors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = json.loads(run("summary", "pika_mix.pcap", "--format", "json").out)
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(connections, "MOST_TELLING_OCTETS", 1)
    monkeypatch.setattr(digest, "MOST_ERRORS", 3)
    part = json.loads(run("summary", "pika_mix.pcap", "--format", "json").out)
    names = {one["client"]: one["client_octets"] for one in whole["connections"]}
    assert len(part["connections"]) < len(names)
    assert part["connections"][0]["client"] == whole["connections"][0]["client"]
    assert part["connection_count"] == 4
    assert [one["count"] for one in part["errors"] if one["reply_code"] is None] == [2, 2]
    assert sum(one["count"] for one in part["errors"]) == part["error_count"] == 7


@pytest.mark.parametrize("name", ["gzip", "deflate", "zlib", "application/x-gzip", "zstd"])
@given(octets=st.binary(max_size=300))
def test_encodings_are_undone(name: str, octets: bytes) -> None:
    import gzip

    import zstandard

    bare = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(octets) + gzip.compress(b"more"),
        "deflate": bare.compress(octets) + bare.flush(),
        "zlib": zlib.compress(octets),
        "application/x-gzip": zlib.compress(octets),
        "zstd": zstandard.compress(octets),
    }[name]
    assert b"".join(codec.decoded(packed, name)) == octets + (b"more" if name == "gzip" else b"")


@given(st.sampled_from(sorted(codec.ENCODINGS)), st.binary(max_size=100))
def test_what_does_not_decode_is_said(name: str, octets: bytes) -> None:
    with contextlib.suppress(codec.NotDecodable):
        b"".join(codec.decoded(octets, name))
