"""SQL: results as an iterator, and values that Python, JSON or Arrow do not have."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.errors import FilterError
from amqpsniff.tables import export, query
from amqpsniff.tables.schema import FRAMES


@pytest.fixture(scope="module")
def capture(samples: Path) -> amqpsniff.Capture:
    return amqpsniff.open(samples / "pika_mix.pcap")


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Path]]:
    """The folders of statements that are under way."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: list(tmp_path.iterdir())


def test_a_result_is_read_from_its_beginning_every_time(
    capture: amqpsniff.Capture, waiting: Callable[[], list[Path]]
) -> None:
    result = capture.sql("SELECT unnest(range(10000)) AS n")
    assert len(waiting()) == 1
    for _ in range(2):
        assert result.table()["n"].to_pylist() == list(range(10_000))
        assert sum(batch.num_rows for batch in result) == 10_000
    assert waiting() == []
    starts = [next(result)["n"][0].as_py() for _ in range(2)]
    assert starts == [0, query.BATCH_ROWS]
    assert sum(batch.num_rows for batch in result) == 10_000


@pytest.mark.filterwarnings("error")
def test_a_result_that_is_let_go_leaves_nothing(
    capture: amqpsniff.Capture, waiting: Callable[[], list[Path]]
) -> None:
    result = capture.sql("SELECT * FROM frames")
    next(result)
    assert len(waiting()) == 1
    del result
    assert waiting() == []


STRANGE = {
    "TIMESTAMP_NS '2026-01-01 00:00:00.123456789'": "2026-01-01 00:00:00.123456789",
    "make_timestamp_ns(1767225600123456000)": "2026-01-01 00:00:00.123456",
    "[TIMESTAMP_NS '2026-01-01 00:00:00.123456789', NULL]": (
        "['2026-01-01 00:00:00.123456789', NULL]"
    ),
    "'10:11:12.123456789'::TIME_NS": "10:11:12.123456789",
    "[{'a': INTERVAL 3 DAY}]": "[{'a': 3 days}]",
    "union_value(n := 1)": "1",
    "row(1, 'x')": "(1, x)",
    "INTERVAL '-1 day'": "-1 day",
    "'a'::ENUM('a', 'b')": "a",
    "'{\"a\": NaN}'::JSON": '{"a": NaN}',
    "[1, 2]::INTEGER[2]": [1, 2],
}


@pytest.mark.parametrize("value", STRANGE)
def test_values_that_python_or_json_has_not(capture: amqpsniff.Capture, value: str) -> None:
    """Every format has some form for every value that DuckDB makes."""
    for format in export.FORMATS:
        result = capture.sql(f"SELECT {value} AS v")
        sink = io.BytesIO()
        assert export.write(result, result.schema, format, sink) == 1
        if format == "ndjson":
            assert json.loads(sink.getvalue(), parse_constant=pytest.fail) == {"v": STRANGE[value]}
    assert "<code>" in capture.sql(f"SELECT {value} AS v")._repr_html_()


def test_a_statement_within_a_statement(capture: amqpsniff.Capture) -> None:
    statement = "SELECT count(*) AS n FROM query('SELECT method FROM frames')"
    assert capture.sql(statement).table().to_pylist() == [{"n": 563}]


@pytest.mark.parametrize("where", ["true); SELECT (true", "true); SELECT 1; SELECT (true"])
def test_a_filter_is_one_expression(where: str) -> None:
    with pytest.raises(FilterError, match="is not one expression"):
        query.Filter(FRAMES, where)


def test_a_filter_over_whole_rows(capture: amqpsniff.Capture) -> None:
    """The table's name means all of its columns."""
    batches = capture.batches("frames")
    chosen = list(query.filtered(batches, FRAMES, "rows::VARCHAR LIKE '%basic.publish%'"))
    assert sum(batch.num_rows for batch in chosen) > 20
    whole = list(query.filtered(capture.batches("frames"), FRAMES, "rows IS NOT NULL"))
    assert sum(batch.num_rows for batch in whole) == 563
