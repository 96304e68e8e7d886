"""Counts of summaries: exact as far as memory goes, and never more memory than that."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff.analysis import content_encoding
from amqpsniff.analysis.counting import grouped, is_one_of
from amqpsniff.session import counts
from tests.cli.running import run


def _spread(numbers: list[int]) -> counts.Histogram:
    found = counts.Histogram()
    for number in numbers:
        found.add(number)
    return found


@given(st.lists(st.integers(0, 4095), min_size=1), st.floats(0.01, 1))
def test_small_numbers_are_exact(sizes: list[int], fraction: float) -> None:
    found = _spread(sizes)
    (size,) = found.quantiles(fraction)
    assert size is not None
    assert sum(one <= size for one in sizes) >= fraction * len(sizes)
    assert sum(one < size for one in sizes) < fraction * len(sizes)
    assert found.facts() == (len(sizes), sum(sizes), max(sizes))


@given(st.lists(st.integers(0, 2**50), min_size=1))
def test_large_numbers_are_nearly_exact(sizes: list[int]) -> None:
    (size,) = _spread(sizes).quantiles(1.0)
    assert size is not None
    assert max(sizes) * (1 - 2**-8) <= size <= max(sizes)


def test_no_numbers() -> None:
    found = _spread([-(2**63)])
    assert found.quantiles(0.5, 0.99) == [None, None]
    assert found.facts() == (0, 0, None)


def test_frequent_names_stay_when_there_are_too_many() -> None:
    most = counts.MAX_NAMES
    names = [f"often-{n % 5}" for n in range(5000)] + [f"once-{n}" for n in range(4 * most)]
    random.Random(1).shuffle(names)
    found = counts.TopCounts()
    for name in names:
        found.add(name, (1, 10, 0, 0))
        assert len(found.counts) <= 2 * most
    assert found.forgotten
    assert {name: counted[0] for name, counted in found.top(5)} == {
        f"often-{n}": 1000 for n in range(5)
    }


def test_peaks_of_rates() -> None:
    rate = counts.Rate()
    second = counts.SECOND_NS
    for time in (0, 1, second, second + 5, second + 9, second + 10, 3 * second):
        rate.add(time)
    assert rate.facts() == (7, 4, 1)


def test_seconds_long_past_are_forgotten() -> None:
    rate = counts.Rate()
    for second in range(0, 100_000, 10):
        rate.add(second * counts.SECOND_NS)
    assert rate.facts()[0] == 10_000
    assert rate.remembered <= 2 * counts.RECENT_SECONDS + 1


def test_encoded_columns_count_as_plain_ones() -> None:
    texts = ["a", None, "b", "a"]
    plain = pa.array(texts)
    for column in (plain, plain.dictionary_encode()):
        chosen = is_one_of(column, frozenset("a")).fill_null(False)
        assert chosen.to_pylist() == [True, False, False, True]
    for column in (plain, plain.dictionary_encode()):
        batch = pa.record_batch({"name": column, "size": pa.array([1, 2, 3, 4])})
        sums = [([], "count_all"), ("size", "sum"), ("row", "min")]
        assert sorted(grouped(batch, ("name",), sums), key=str) == sorted(
            [("a", 2, 5, 0), (None, 1, 2, 1), ("b", 1, 3, 2)], key=str
        )


def test_connections_are_bounded() -> None:
    whole = json.loads(run("summary", "pika_mix.pcap", "--format", "json").out)
    part = json.loads(run("summary", "pika_mix.pcap", "--format", "json", "--limit", "2").out)
    assert part["connections"] == whole["connections"][:2]
    assert part["connection_count"] == 4


@pytest.mark.parametrize("name", ["gzip", "deflate", "zlib", "application/x-gzip", "zstd"])
@given(octets=st.binary(max_size=300))
def test_encodings_are_undone(name: str, octets: bytes) -> None:
    import zstandard

    bare = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(octets) + gzip.compress(b"more"),
        "deflate": bare.compress(octets) + bare.flush(),
        "zlib": zlib.compress(octets),
        "application/x-gzip": zlib.compress(octets),
        "zstd": zstandard.compress(octets),
    }[name]
    assert b"".join(content_encoding.decoded(packed, name)) == octets + (
        b"more" if name == "gzip" else b""
    )


def test_what_decodes_to_too_much_is_not_decoded() -> None:
    bomb = gzip.compress(bytes(1000))
    assert b"".join(content_encoding.decoded(bomb, "gzip", limit=1000)) == bytes(1000)
    with pytest.raises(content_encoding.NotDecodable, match="more than 999 bytes"):
        list(content_encoding.decoded(bomb, "gzip", limit=999))


@given(st.sampled_from(sorted(content_encoding.ENCODINGS)), st.binary(max_size=100))
def test_what_does_not_decode_is_said(name: str, octets: bytes) -> None:
    with contextlib.suppress(content_encoding.NotDecodable):
        b"".join(content_encoding.decoded(octets, name))


@pytest.mark.parametrize("capture", ["midstream.pcap", "v08_v09.pcap", "pika_mix.pcap"])
def test_summary_counts_the_channels_that_tables_have(capture: str) -> None:
    """Those that were open before the capture too."""
    rows = run("export", capture, "-t", "connections", "-q").out.splitlines()
    table = {row["connection_id"]: row["channels"] for row in map(json.loads, rows)}
    result = json.loads(run("summary", capture, "--format", "json", "-q").out)
    assert {one["connection_id"]: one["channels"] for one in result["connections"]}.items() <= (
        table.items()
    )


@pytest.mark.parametrize("capture", ["v08_v09.pcap", "pika_mix.pcap"])
def test_summary_counts_every_reply(capture: str) -> None:
    """Methods of one name, whatever the dialects of their connections."""
    asked = (
        "SELECT method, count(*) AS n, max(response_ns) AS most FROM frames WHERE response_ns >= 0"
    )
    rows = run("sql", capture, f"{asked} GROUP BY method", "--format", "ndjson", "-q").out
    counted = {row["method"]: (row["n"], row["most"]) for row in map(json.loads, rows.splitlines())}
    result = json.loads(run("summary", capture, "--format", "json", "--limit", "99", "-q").out)
    assert {one["method"]: (one["count"], one["max_ns"]) for one in result["replies"]} == counted
