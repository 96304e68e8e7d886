"""The traffic job counts what the rows hold."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.spark_jobs.traffic import Config, build

pytestmark = pytest.mark.spark


def test_counts_are_those_of_the_rows(spark: Any, samples: Path) -> None:
    paths = [str(samples / name) for name in ("pika_mix.pcap", "node.pcap", "aiopika_rpc.pcap")]
    prefixes = {
        "basic.publish": "published",
        "basic.deliver": "delivered",
        "basic.get-ok": "delivered",
        "basic.return": "returned",
    }
    wanted: Counter[tuple[str | None, str | None, str]] = Counter()
    for path in paths:
        for row in amqpsniff.open(path).table("messages").to_pylist():
            exchange, routing_key = row["exchange"], row["routing_key"]
            prefix = prefixes[row["method"]]
            wanted[exchange, routing_key, prefix] += 1
            wanted[exchange, routing_key, f"{prefix}_octets"] += row["body_size"] or 0
    counted: Counter[tuple[str | None, str | None, str]] = Counter()
    rows = build(spark, Config(tuple(paths))).collect()
    for row in rows:
        values = row.asDict()
        exchange, routing_key = values.pop("exchange"), values.pop("routing_key")
        for name, value in values.items():
            counted[exchange, routing_key, name] = value
    assert +counted == +wanted
    assert len(rows) == len({key[:2] for key in wanted})
