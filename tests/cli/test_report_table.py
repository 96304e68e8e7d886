"""`amqpsniff report-table`: reports as tables, and the list of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.analysis.report_tables import REPORTS
from tests.cli.running import SAMPLES, run

CAPTURE = "pika_mix.pcap"


def test_without_a_name_it_lists_the_reports() -> None:
    text = run("report-table")
    assert text.code == 0
    assert [line.split()[0] for line in text.out.splitlines()[1:]] == list(REPORTS)
    rows = json.loads(run("report-table", "--format", "json").out)
    assert [row["report"] for row in rows] == list(REPORTS)
    assert all(row["about"].endswith(".") for row in rows)


@pytest.mark.parametrize("name", REPORTS)
def test_formats_hold_the_rows_of_the_library(name: str) -> None:
    table = amqpsniff.open(SAMPLES / CAPTURE).report_table(name)
    as_json = json.loads(run("report-table", name, CAPTURE, "--format", "json").out)
    assert [list(row) for row in as_json] == [table.column_names] * table.num_rows
    lines = run("report-table", name, CAPTURE, "--format", "ndjson").out.splitlines()
    numbers = [
        {key: value for key, value in row.items() if not isinstance(value, str)} for row in as_json
    ]
    for line, row in zip(lines, numbers, strict=True):
        assert json.loads(line).items() >= row.items()
    rows = list(csv.reader(io.StringIO(run("report-table", name, CAPTURE, "--format", "csv").out)))
    assert (rows[0], len(rows)) == (table.column_names, table.num_rows + 1)


def test_captures_are_counted_together() -> None:
    def connections(*captures: str) -> int:
        rows = json.loads(run("report-table", "churn", *captures, "--format", "json").out)
        return sum(row["connections"] for row in rows)

    assert connections(CAPTURE, "node.pcap") == connections(CAPTURE) + connections("node.pcap")


def test_a_folder_and_a_limit(tmp_path: Path) -> None:
    for name in (CAPTURE, "node.pcap"):
        (tmp_path / name).symlink_to(SAMPLES / name)
    whole = run("report-table", "traffic", tmp_path, "--format", "ndjson").out.splitlines()
    some = run("report-table", "traffic", tmp_path, "--format", "ndjson", "--limit", "2").out
    assert some.splitlines() == whole[:2]


def test_buckets() -> None:
    rows = json.loads(
        run("report-table", "latency", CAPTURE, "--bucket", "3600", "--format", "json").out
    )
    assert {row["time"][14:19] for row in rows} == {"00:00"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("latence", CAPTURE), "no report `latence`; there are traffic, latency, saturation, "),
        (("latency",), "no capture; see `amqpsniff report-table --help`"),
        ((CAPTURE,), f"no report `{CAPTURE}`; there are traffic"),
        ((CAPTURE, "losses"), "the report stands first: amqpsniff report-table losses CAPTURE"),
        (("latency", CAPTURE, "--format", "xml"), "no format `xml` here"),
    ],
)
def test_usage(words: tuple[str, ...], said: str) -> None:
    result = run("report-table", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"amqpsniff: {said}")
    assert result.err.count("\n") == 1


def test_nothing_of_the_kind() -> None:
    result = run("report-table", "redelivery", "php_churn.pcap")
    assert (result.code, result.err) == (
        0,
        "amqpsniff: warning: nothing of the kind was captured\n",
    )
