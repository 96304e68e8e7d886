"""Reports of tables whose columns are null, and of texts that are not UTF-8."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.places import Folder
from amqpsniff.spark_jobs.reports import REPORTS, Config, make, write_page
from tests.cli.running import write_capture
from tests.cli.test_null_rows import CAPTURE, all_null, changing, halves
from tests.conversations import NOT_UTF8, full, packets, texts, with_texts

pytestmark = pytest.mark.spark


def _reports(spark: Any, tables: Path) -> None:
    """Every report of tables, as text, JSON, files and on the page."""
    made = [make(spark, name, Config((str(tables),), bucket_seconds=60)) for name in REPORTS]
    folder = Folder(str(tables))
    for report in made:
        assert report.title in report.as_text()
        assert json.loads(json.dumps(report.as_json()))["report"] == report.name
        report.write(folder)
    write_page(folder, made)
    page = (tables / "report.html").read_text()
    assert all(report.title in page for report in made)


@pytest.mark.parametrize("change", [halves(1), all_null], ids=["half", "all"])
def test_nulls(
    change: Callable[[str, Any], Any],
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changing(monkeypatch, change)
    Batch([str(CAPTURE)], str(tmp_path)).run()
    _reports(spark, tmp_path)


def test_texts_that_are_not_utf8(spark: Any, tmp_path: Path) -> None:
    frames = full()
    said = with_texts(frames, list(texts(frames)), NOT_UTF8)
    whole = [*packets(said, 40_000), *packets(full(prefix=b"healthy."), 39_999)]
    capture = write_capture(tmp_path / "texts.pcap", sorted(whole, key=lambda one: one.ts_ns))
    Batch([str(capture)], str(tmp_path / "tables")).run()
    _reports(spark, tmp_path / "tables")
    topology = make(spark, "topology", Config((str(tmp_path / "tables"),)))
    assert "healthy." in topology.as_text()
    bound = {(row["source"], row["target"]) for row in topology.rows if row["messages"] is None}
    assert ("\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd") in bound
    assert not any("base64" in str(row) for row in topology.rows)
