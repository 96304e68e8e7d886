"""Columns of JSON have one shape: the same text in every table, the object in Python and NDJSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import amqpsniff
from tests.cli.running import run
from tests.conftest import SAMPLES

MIX = SAMPLES / "pika_mix.pcap"
HEADER = "s"


@pytest.fixture(scope="module")
def capture() -> amqpsniff.Capture:
    return amqpsniff.open(MIX)


@pytest.mark.parametrize(("table", "column"), [("messages", "headers"), ("frames", "arguments")])
def test_one_text_everywhere(
    capture: amqpsniff.Capture, table: str, column: str, tmp_path: Path
) -> None:
    kept = capture.table(table, columns=[column])
    assert kept.schema.field(column).type == pa.string()
    texts = kept.column(column).to_pylist()
    assert any(texts)

    found = capture.sql(f"SELECT {column} FROM {table}").arrow()
    assert found.column(column).to_pylist() == texts
    assert capture.scan(table).select(column).collect()[column].to_list() == texts

    objects = [None if text is None else json.loads(text) for text in texts]
    rows: Any = capture.messages() if table == "messages" else capture.frames()
    assert [getattr(row, column) for row in rows] == objects

    for form in ("parquet", "ndjson", "csv"):
        assert run("export", MIX, "-t", table, "--format", form, "-o", tmp_path / form).code == 0
    read = pq.read_table(tmp_path / "parquet", columns=[column])
    assert (read.schema.field(column).type, read.column(column).to_pylist()) == (pa.string(), texts)
    lines = (tmp_path / "ndjson").read_text("utf-8").splitlines()
    assert [json.loads(line)[column] for line in lines] == objects
    with (tmp_path / "csv").open(newline="", encoding="utf-8") as file:
        assert [row[column] for row in csv.DictReader(file)] == [text or "" for text in texts]


def test_entries_have_the_object(capture: amqpsniff.Capture) -> None:
    frames = {(one.packet_number, one.method): one.arguments for one in capture.frames()}
    entries = list(capture.timeline(method="queue.*"))
    assert entries
    for entry in entries:
        assert entry.arguments == frames[entry.packet_number, entry.method]


def test_a_header_is_found_by_every_engine(capture: amqpsniff.Capture) -> None:
    """As the documentation says."""
    expected = [one.headers.get(HEADER) for one in capture.messages() if one.headers]
    assert any(expected)
    found = capture.sql(
        f"SELECT headers->>'{HEADER}' AS value FROM messages WHERE headers IS NOT NULL"
    ).arrow()
    assert found.column("value").to_pylist() == expected
    path = pl.col("headers").str.json_path_match(f"$.{HEADER}")
    read = capture.scan("messages").filter(pl.col("headers").is_not_null())
    assert read.select(path).collect()["headers"].to_list() == expected
