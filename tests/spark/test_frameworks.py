"""Columns of packs from the data source: those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import amqpsniff
from tests.conftest import REPO

PACKS = REPO / "tests" / "captures" / "packs"


def test_columns_of_packs(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(
        "[shop]\nframework = 'shop'\nwhen = 'exchange = celeryev'\noperation = 'routing_key'\n"
    )
    source = spark.read.format("amqp").option("packs", str(file))
    paths = [str(path) for path in sorted(PACKS.glob("*.gz"))]
    capture = amqpsniff.open(*paths, packs=file)
    names = ["operation", "framework", "message_key", "retry_count"]
    schema = "operation string, framework string, message_key string, retry_count long"
    rows = source.option("table", "messages").schema(schema).load(paths).collect()
    alone = capture.table("messages", columns=names).select(names).to_pylist()
    assert sorted(map(repr, map(tuple, rows))) == sorted(repr(tuple(one.values())) for one in alone)
    assert any(row["framework"] == "shop" for row in rows)
    clients = source.option("table", "connections").schema("client_framework string").load(paths)
    told = capture.table("connections", columns=["client_framework"]).to_pylist()
    assert sorted(map(repr, map(tuple, clients.collect()))) == sorted(
        repr(tuple(one.values())) for one in told
    )
