"""Captures of a folder as a stream: each once, when nobody writes to it any more."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.archive.splits import packets_of, write_pcap

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
    folder.rename(tmp_path / "elsewhere")  # a share that is not mounted for a while
    assert run() == first
    (tmp_path / "elsewhere").rename(folder)
    second = bring("kombu.pcap.gz")
    os.utime(folder / "kombu.pcap.gz", (1, 1))  # as it is after a copy that keeps times
    assert run() == first + second


@pytest.mark.parametrize("table", ["frames", "messages", "connections"])
def test_a_connection_is_followed_from_batch_to_batch(
    samples: Path, tmp_path: Path, table: str
) -> None:
    """But for what later files say of a row, rows are those of one reader of all."""
    pytest.importorskip("pyspark")
    from pyspark.sql.types import StructType

    from amqpsniff.spark_jobs.source import AmqpStreamReader

    packets = packets_of([samples / "pika_mix.pcap"])
    part = len(packets) // 4 + 1
    key = "connection_id" if table == "connections" else "packet_number"
    more = "vhost" if table == "connections" else "queue"
    names = ["capture", key, more, "client"]
    schema = StructType()
    for name in names:
        schema = schema.add(name, "long" if name == "packet_number" else "string")

    def read(**options: str) -> list[tuple[Any, ...]]:
        given = {"path": str(tmp_path), "closeAfter": "0", "table": table, **options}
        reader = AmqpStreamReader(given, schema)
        status = [path.stat() for path in tmp_path.glob("*.pcap")]
        times = [0, *sorted(max(one.st_mtime_ns, one.st_ctime_ns) for one in status)]
        found = []
        for begin, end in pairwise(times):
            for one in reader.partitions({"until_ns": begin}, {"until_ns": end}):
                for batch in reader.read(one):
                    found += [tuple(row.values()) for row in batch.to_pylist()]
        return sorted(found, key=repr)

    for at in range(4):
        write_pcap(tmp_path / f"{at}.pcap", packets[at * part : (at + 1) * part])
        time.sleep(0.01)
    whole = amqpsniff.open(*sorted(tmp_path.glob("*.pcap"))).table(table).select(names)
    alone = sorted((tuple(row.values()) for row in whole.to_pylist()), key=repr)
    followed = read(lookBack="1000000000")
    if table == "connections":  # one for each batch in which it has packets
        assert set(followed) == set(alone)
        assert len(followed) > len(alone)
    else:
        assert followed == alone
    assert (read() == alone) == (table == "frames")


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
