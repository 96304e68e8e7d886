"""The same meanings from a file, from packets one by one, and while a capture is read in pieces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import amqpsniff
from amqpsniff.archive import Batch
from amqpsniff.packs import COLUMNS
from tests.conftest import REPO
from tests.decode.feeding import packets_of

PACKS = REPO / "tests" / "captures" / "packs"
NAMES = sorted(path.name for path in PACKS.glob("*.gz"))


@pytest.mark.parametrize("name", NAMES)
def test_packets_one_by_one(name: str, tmp_path: Path) -> None:
    capture = amqpsniff.open(PACKS / name)
    given = amqpsniff.Engine()
    for _, ts_ns, octets, original, link in packets_of(PACKS / name):
        given.feed_packet(octets, ts_ns, link, original)
    given.finish()
    rows = pa.Table.from_batches([given.take("messages")]).select(COLUMNS)
    assert (
        rows.to_pylist() == capture.table("messages", columns=COLUMNS).select(COLUMNS).to_pylist()
    )


@pytest.mark.parametrize("name", ["unanswered", "workers"])
def test_findings_of_an_archive(name: str, tmp_path: Path) -> None:
    """Its tasks read some connections each; what is about all of them is judged together."""
    path = PACKS / f"{name}.pcap.gz"
    Batch([str(path)], str(tmp_path), task_bytes=2_000).run()
    files = (tmp_path / "findings").rglob("*.parquet")
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    found = [(one.code, one.detail, one.count) for one in amqpsniff.open(path).findings()]
    assert sorted((row["code"], row["detail"], row["count"]) for row in rows) == sorted(found)


@pytest.mark.parametrize("name", NAMES)
def test_other_columns_are_as_without_them(name: str) -> None:
    """The beginnings of bodies that packs read are in no column."""
    every = amqpsniff.open(PACKS / name).table("messages", columns=[*COLUMNS, "body", "headers"])
    plain = amqpsniff.open(PACKS / name).table("messages", columns=["headers", "body"])
    assert every.select(["headers", "body"]).equals(plain)
    assert every["body"].null_count == every.num_rows


def test_whole_bodies_beside_meanings() -> None:
    bodies = amqpsniff.open(PACKS / "celery.pcap.gz", bodies=True)
    rows = bodies.table("messages", columns=["operation", "body", "body_size"]).to_pylist()
    assert all(len(row["body"]) == row["body_size"] for row in rows)


def test_shortest_body(tmp_path: Path) -> None:
    """A body that has only room for a known name is read."""
    file = tmp_path / "shop.toml"
    file.write_text('[shop]\nframework = "shop"\nwhen = "body:k"\noperation = "body:k"\n')
    from amqpsniff.packs import PackFile
    from amqpsniff.tables.batches import Maker
    from tests.decode.script import sent
    from tests.packs.rebuilt import Rebuilt

    message = Rebuilt("shop", "shop", {}, {}, b'{"k":1}')
    done = sent(message.octets(), packs=(PackFile.read(file),), meanings=True)
    (row,) = Maker("messages", columns=["framework", "operation"]).make(done.taken).to_pylist()
    assert row == {"framework": "shop", "operation": "1"}


def test_secrets_in_headers_stay_hidden(tmp_path: Path) -> None:
    """A column has what the column `headers` has: a placeholder where that hides a value."""
    file = tmp_path / "shop.toml"
    file.write_text('[shop]\nframework = "shop"\nwhen = "header:authorization"\n'
                    'operation = "header:authorization"\n')  # fmt: skip
    from amqpsniff.packs import PackFile
    from amqpsniff.tables.batches import Maker
    from tests.decode.script import sent
    from tests.packs.rebuilt import Rebuilt

    message = Rebuilt("shop", "shop", {}, {"authorization": "Bearer abcdefghijklmnop"})
    done = sent(message.octets(), packs=(PackFile.read(file),), meanings=True)
    (row,) = Maker("messages", columns=["headers", "operation"]).make(done.taken).to_pylist()
    assert ("abcdefgh" in row["headers"]) == ("abcdefgh" in row["operation"])
