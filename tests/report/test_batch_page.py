"""The page of a batch: the verdict first, whatever the captures do not hold."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.report.batch_page import page
from tests.cli.running import write_capture
from tests.compare.editing import packets
from tests.conftest import SAMPLES
from tests.report.drawn import wrong
from tests.report.pages import data_of
from tests.tcp.wire import Talk

pytest.importorskip("vl_convert")


def _no_amqp(folder: Path) -> Path:
    talk = Talk().hands()
    talk.client(b"hello")
    return write_capture(folder / "none.pcap", talk.packets)


def _part(folder: Path, chosen: slice) -> Path:
    return write_capture(folder / "part.pcap", packets(SAMPLES / "pika_mix.pcap")[chosen])


def _one_way(folder: Path) -> Path:
    whole = packets(SAMPLES / "pika_mix.pcap")
    sent = [one for one in whole if (5672).to_bytes(2, "big") == bytes(one.octets[34:36])]
    return write_capture(folder / "one_way.pcap", sent)


CAPTURES = {
    "no AMQP": (_no_amqp, "No AMQP was found in the captures."),
    "TLS only": (lambda _: SAMPLES / "tls13.pcap", "An encrypted connection cannot be read: 2"),
    "one direction": (_one_way, "only one direction was captured."),
    "nothing redelivered": (lambda _: SAMPLES / "php_churn.pcap", "Connections are opened for a"),
    "no messages": (lambda folder: _part(folder, slice(14)), "Nothing wrong was found in what"),
}


@pytest.mark.parametrize("name", CAPTURES)
def test_nothing_passes_that_is_not_there(name: str, tmp_path: Path) -> None:
    made, sentence = CAPTURES[name]
    capture = amqpsniff.open(made(tmp_path))
    tables = {one: capture.report_table(one) for one in REPORTS}
    html = page({}, tables)
    found = re.search(r'<div class="verdict.*?</div>', html, re.S)
    assert found is not None
    assert sentence in unescape(re.sub("<[^>]+>", "", found[0]))
    assert html.index('id="verdict"') < html.index('id="traffic"')
    charts: list[dict[str, Any]] = data_of(html)["charts"]
    assert wrong(charts) == []


def test_one_file_is_one() -> None:
    captures = [{"first_ns": 1, "last_ns": 2, "bytes": 1_000_000}]
    made = page({"captures": captures, "rows": {"frames": 2, "connections": 1}}, {})
    assert "1 file · 1.0 MB of packets" in made
    assert "2 frames · 1 connection" in made


def test_no_line_is_drawn_between_captures() -> None:
    names = ("pika_mix.pcap", "node.pcap")
    captures = [amqpsniff.open(SAMPLES / name) for name in names]
    spans = []
    for capture in captures:
        capture.summary()
        spans.append({
            "first_ns": capture.totals.first_ns, "last_ns": capture.totals.last_ns, "bytes": 1,
        })  # fmt: skip
    both = amqpsniff.open(*(SAMPLES / name for name in names))
    table = both.report_table("saturation", bucket_seconds=1)
    charts = data_of(page({"captures": spans}, {"saturation": table}))["charts"]
    (early, late) = sorted((one["first_ns"] / 1e6, one["last_ns"] / 1e6) for one in spans)
    for chart in charts:
        broken = [one["time"] for one in chart["data"]["values"] if one["value"] is None]
        assert broken
        assert all(early[1] < time < late[0] for time in broken)
