"""Tasks on a real Spark, watched no more often than it is worth."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def waits_for(place: str) -> str:
    """A task that ends when a file is there."""
    while not Path(place).exists():
        time.sleep(0.01)
    return place


def test_looks_that_take_long_are_seldom(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amqpsniff.spark_jobs import runner

    monkeypatch.setattr(runner, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(runner, "LOOK_PART", 0.1)
    ended = tmp_path / "ended"
    looks: list[tuple[float, float]] = []

    def watch() -> None:
        began = time.monotonic()
        time.sleep(0.03)
        looks.append((began, time.monotonic()))
        if len(looks) == 4:
            ended.touch()

    on_spark = runner.SparkRunner(spark.sparkContext)
    assert on_spark(waits_for, [str(ended)], watch) == [str(ended)]
    for (begun, done), (following, _) in pairwise(looks[:4]):
        assert following - done > 8 * (done - begun)
    assert runner.pause(0) == 0.01
