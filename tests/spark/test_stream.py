"""Captures of a folder as a stream: each once, when nobody writes to it any more."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

import amqpsniff

pytestmark = pytest.mark.spark


def test_captures_come_once_as_they_close(spark: Any, samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()

    def bring(name: str) -> int:
        (folder / name).write_bytes((samples / name).read_bytes())
        return amqpsniff.open(samples / name).table("messages").num_rows

    def run() -> int:
        time.sleep(0.6)
        source = spark.readStream.format("amqp").option("closeAfter", "0.5")
        rows = source.schema("capture string, method string").load(str(folder))
        query = (
            rows.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
        )
        query.awaitTermination()
        count: int = spark.read.parquet(str(tmp_path / "rows")).count()
        return count

    first = bring("pika_mix.pcap")
    assert run() == first
    assert run() == first
    second = bring("kombu.pcap.gz")
    os.utime(folder / "kombu.pcap.gz", (1, 1))  # as it is after a copy that keeps times
    assert run() == first + second
    folder.rename(tmp_path / "elsewhere")  # a share that is not mounted for a while
    assert run() == first + second
    (tmp_path / "elsewhere").rename(folder)
    assert run() == first + second


def test_a_file_that_is_written_to_waits(samples: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from pyspark.sql.types import StructType

    from amqpsniff.spark_jobs.source import AmqpStreamReader

    path = tmp_path / "open.pcap"
    path.write_bytes((samples / "pika_mix.pcap").read_bytes())
    options = {"path": str(tmp_path), "closeAfter": "3600", "table": "messages"}
    reader = AmqpStreamReader(options, StructType().add("method", "string"))
    assert reader.latestOffset() == reader.initialOffset()
    assert list(reader.partitions(reader.initialOffset(), reader.latestOffset())) == []
