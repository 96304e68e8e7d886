"""Reports of tables whose columns are null, and of texts that are not UTF-8."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.analysis.report_tables import REPORTS
from amqpsniff.archive import Batch
from amqpsniff.archive.batch_reports import make_here, write_page
from amqpsniff.archive.filesystem import Folder
from amqpsniff.report.report_charts import charts
from amqpsniff.spark_jobs.reports import make
from tests.cli.running import write_capture
from tests.cli.test_null_rows import CAPTURE, changing, halves
from tests.conversations import NOT_UTF8, full, packets, texts, with_texts
from tests.thorough import some

pytestmark = pytest.mark.spark


def _nulls(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows with each column null in every row, and in every other row."""
    names = rows[0] if rows else ()
    return [
        [row | {name: None} if at % step == 0 else row for at, row in enumerate(rows)]
        for name in names
        if name not in NEVER
        for step in (1, 2)
    ]


NEVER = {"kind", "messages", "p99_ms", "severity", "code", "findings", "source_kind", "target_kind"}
"""Columns of reports that are counts or words of their own."""


def test_reports(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text, JSON, files and on the page; and charts of rows with further nulls."""
    frames = full()
    said = with_texts(frames, list(texts(frames)), NOT_UTF8)
    whole = [*packets(said, 40_000), *packets(full(prefix=b"healthy."), 39_999)]
    capture = write_capture(tmp_path / "texts.pcap", sorted(whole, key=lambda one: one.ts_ns))
    tables = tmp_path / "tables"
    changing(monkeypatch, halves(1))
    Batch([str(CAPTURE), str(capture)], str(tables), links=True, frameworks=True).run()
    folder = Folder(str(tables))
    made = {name: make_here(folder, name, 20, 60) for name in REPORTS}
    for name in some(list(REPORTS)):
        by_spark = make(spark, name, str(tables), 20, 60)
        assert by_spark.table.to_pylist() == made[name].table.to_pylist()
        assert by_spark.as_text() == made[name].as_text()
    for name, report in made.items():
        assert report.report.title in report.as_text()
        assert json.loads(json.dumps(report.as_json()))["report"] == name
        assert report.table.num_rows
        report.write(folder)
        for rows in _nulls(report.table.to_pylist()):
            assert json.loads(json.dumps(charts(name, rows))) is not None
    write_page(folder, list(made.values()))
    page = (tables / "report.html").read_text()
    assert all(report.report.title in page for report in made.values())
    topology = made["topology"].table.to_pylist()
    assert "healthy." in "".join(str(row) for row in topology)
    bound = {(row["source"], row["target"]) for row in topology if row["messages"] is None}
    assert ("\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd") in bound
    assert not any("base64" in str(row) for row in topology)
