"""The traffic job counts what the rows hold."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.archive import Batch
from amqpsniff.spark_jobs.reports import dataframe

pytestmark = pytest.mark.spark


def test_counts_are_those_of_the_rows(spark: Any, samples: Path, tmp_path: Path) -> None:
    paths = [str(samples / name) for name in ("pika_mix.pcap", "node.pcap", "aiopika_rpc.pcap")]
    prefixes = {
        "basic.publish": "published",
        "basic.deliver": "delivered",
        "basic.get-ok": "delivered",
        "basic.return": "returned",
    }
    wanted: Counter[tuple[str | None, ...]] = Counter()
    for row in amqpsniff.open(*paths).table("messages").to_pylist():
        place = row["exchange"], row["routing_key"], row["queue"], row["client"].rpartition(":")[0]
        name = prefixes[row["method"]]
        wanted[(*place, name)] += 1
        wanted[(*place, f"{name}_bytes")] += row["body_size"] or 0
    counted: Counter[tuple[str | None, ...]] = Counter()
    Batch(paths, str(tmp_path / "tables")).run()
    rows = dataframe(spark, "traffic", str(tmp_path / "tables")).collect()
    for row in rows:
        place = row.exchange, row.routing_key, row.queue, row.client
        for name in set(prefixes.values()):
            counted[(*place, name)] = row[name]
            counted[(*place, f"{name}_bytes")] = row[f"{name}_bytes"]
    assert +counted == +wanted
    assert len(rows) == len({key[:4] for key in wanted})
