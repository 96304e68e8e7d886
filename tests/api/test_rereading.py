"""What the API gives can be read again, and is the same then; where it cannot, that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.errors import UsageError
from tests.conftest import SAMPLES

MIX = SAMPLES / "pika_mix.pcap"

RESULTS: dict[str, Callable[[amqpsniff.Capture], Any]] = {
    "sql": lambda capture: capture.sql("SELECT method, size FROM frames"),
    "sql that sorts": lambda capture: capture.sql("SELECT * FROM messages ORDER BY body_size"),
    "frames": lambda capture: capture.frames(),
    "messages": lambda capture: capture.messages(),
    "findings": lambda capture: capture.findings(),
}


def _plain(item: Any) -> Any:
    return item.as_dict() if hasattr(item, "as_dict") else item.to_pylist()


@pytest.mark.parametrize("name", RESULTS)
def test_every_loop_reads_everything(name: str) -> None:
    result = RESULTS[name](amqpsniff.open(MIX))
    first = list(map(_plain, result))
    assert first
    assert list(map(_plain, result)) == first
    for _ in result:
        break
    assert list(map(_plain, result)) == first
    assert [_plain(next(result)) for _ in first[:3]] == first[:3]
    assert list(map(_plain, result)) == first
    if len(first) > 3:
        assert _plain(next(result)) == first[3]
    outer, inner = iter(result), iter(result)
    assert _plain(next(outer)) == _plain(next(inner)) == first[0]


def test_a_table_of_a_statement_is_the_same_twice() -> None:
    result = amqpsniff.open(MIX).sql("SELECT method, count(*) AS n FROM frames GROUP BY 1")
    assert result.table().num_rows > 10
    assert result.table().sort_by("method") == result.table().sort_by("method")


@pytest.mark.parametrize("name", RESULTS)
def test_what_can_be_read_once_is_not_empty_the_second_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = amqpsniff.open(MIX)
    monkeypatch.setattr(capture.passes, "once", ["-"])
    result = RESULTS[name](capture)
    assert len(list(result)) > 0
    with pytest.raises(UsageError, match="can be read only once"):
        list(result)


@pytest.mark.parametrize("name", RESULTS)
def test_a_closed_capture_says_so(name: str) -> None:
    with amqpsniff.open(MIX) as capture:
        result = RESULTS[name](capture)
        first = len(list(result))
    assert first
    with pytest.raises(UsageError, match="closed"):
        list(result)


def test_rows_of_batches_are_one_pass(tmp_path: Path) -> None:
    batches = amqpsniff.open(MIX).batches("frames")
    assert sum(batch.num_rows for batch in batches) == 563
    assert list(batches) == []
