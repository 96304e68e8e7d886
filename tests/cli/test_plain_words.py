"""Outputs that misled readers: words that must be in them, and words that must not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import amqpsniff
from tests.cli.running import run
from tests.conftest import OWN, SAMPLES

INCIDENTS = OWN.parent / "incidents"
UNSEEN = "not among the findings shown"

SAID: dict[str, tuple[tuple[str | Path, ...], tuple[str, ...], tuple[str, ...]]] = {
    "errors are findings": (
        ("summary", SAMPLES / "pika_mix.pcap"), ("errors", "404"), ("no findings",)
    ),
    "a cause in another section": (
        ("diagnose", INCIDENTS / "i_dead.pcap"), ("path-interrupted",), (UNSEEN,)
    ),
    "a cause that is nested": (
        ("diagnose", INCIDENTS / "i_dead_path.pcap"), ("path-interrupted",), (UNSEEN,)
    ),
    "drops behind the tap": (
        ("diff", "--same-traffic", INCIDENTS / "d_client.pcap", INCIDENTS / "d_broker.pcap"),
        ("came unacknowledged and was sent again",),
        ("needlessly",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_words(name: str) -> None:
    command, there, false = SAID[name]
    out = run(*command).out
    assert [words for words in there if words not in out] == []
    assert [words for words in false if words in out] == []


def test_the_last_line_counts_what_the_headings_name() -> None:
    """Severities by their names, and notes of the configuration apart from them."""
    out = run("diagnose", SAMPLES / "zerowindow.pcap").out
    count = re.search(r"(\d+) warnings?, (\d+) info, (\d+) notes? in", out)
    assert count is not None
    above, below = out.split("notes on configuration and security", 1)
    assert len(re.findall(r"^info +\w+ +\d+ ", above, re.M)) == int(count[2])
    assert len(re.findall(r"^warning +\w+ +\d+ ", above, re.M)) == int(count[1])
    assert len(re.findall(r"^(?:error|warning|info) ", below, re.M)) == int(count[3])
    assert "the client: no connection_name" not in out


def test_a_result_is_there_when_it_is_read_again() -> None:
    with amqpsniff.open(SAMPLES / "bunny.pcapng") as capture:
        result = capture.sql("SELECT method FROM messages LIMIT 2")
        assert [result.table().num_rows for _ in range(2)] == [2, 2]


def test_no_text_names_a_page_that_an_installation_has_not() -> None:
    package = Path(amqpsniff.__file__).parent
    named = re.compile(r"docs/\w+\.md")
    texts = [one for one in package.rglob("*") if one.suffix in (".py", ".toml")]
    assert [one.name for one in texts if named.search(one.read_text(encoding="utf-8"))] == []
