"""Who reads a table by its Delta log sees one state of it, also while a run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.output_folder import write_manifest
from amqpsniff.archive.task_io import NO_DATE
from amqpsniff.tables.schema import TABLES

from .tables import written_rows


def rows_by_log(output: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows as a reader of Delta tables sees them, DuckDB over what the log names."""
    there = deltalake.DeltaTable(str(output / table)).to_pyarrow_dataset()
    names = [one for one in there.schema.names if one != "capture_date"]
    columns = ", ".join(f'"{name}"' for name in names)
    found = duckdb.sql(f"SELECT {columns} FROM there").to_arrow_table()
    return sorted(map(tuple, (row.values() for row in found.to_pylist())), key=repr)


def test_readers_see_the_old_state_or_the_new_one(
    captures: Path, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "tables"
    Batch([str(captures)], str(output)).run()
    before = {table: written_rows(output, table) for table in TABLES}
    assert {table: rows_by_log(output, table) for table in TABLES} == before
    (captures / "more.pcap").write_bytes((samples / "node.pcap").read_bytes())
    looks = []

    def run(
        function: Callable[[Any], Any], items: Sequence[Any], watch: Callable[[], None]
    ) -> list[Any]:
        done = [function(item) for item in items]
        looks.append({table: rows_by_log(output, table) for table in TABLES} == before)
        return done

    def committed(*given: Any, **more: Any) -> None:  # files of both states are there
        new = {table: rows_by_log(output, table) for table in TABLES}
        write_manifest(*given, **more)
        looks.append(new != before)
        looks.append(len(list((output / "frames").rglob("*.parquet"))) > 1)

    monkeypatch.setattr("amqpsniff.archive.batch.write_manifest", committed)
    Batch([str(captures)], str(output)).run(run)
    assert looks
    assert all(looks)
    after = {table: written_rows(output, table) for table in TABLES}
    assert {table: rows_by_log(output, table) for table in TABLES} == after
    assert len(after["frames"]) > len(before["frames"])


def test_versions_follow_each_other(captures: Path, samples: Path, tmp_path: Path) -> None:
    output = tmp_path / "tables"

    def versions(table: str) -> int:
        return int(deltalake.DeltaTable(str(output / table)).version())

    Batch([str(captures)], str(output)).run()
    Batch([str(captures)], str(output)).run()
    assert versions("messages") == versions("errors") == 0  # nothing was new
    Batch([str(captures)], str(output), links=True).run()
    assert versions("messages") == 1
    names = deltalake.DeltaTable(str(output / "messages")).schema().to_json()
    assert "published_packet_number" in names
    assert deltalake.DeltaTable(str(output / "messages")).metadata().partition_columns == [
        "capture_date"
    ]
    Batch([str(captures)], str(output), tables=["messages"], replace=True).run()
    assert versions("messages") == 2
    assert not (output / "frames").exists() or not list((output / "frames").rglob("*.json"))


@pytest.mark.parametrize("damage", ["cut", "foreign", "missing"])
def test_a_log_that_is_not_ours_is_begun_anew(captures: Path, tmp_path: Path, damage: str) -> None:
    output = tmp_path / "tables"
    Batch([str(captures)], str(output)).run()
    log = output / "messages" / "_delta_log"
    first = log / f"{0:020}.json"
    if damage == "cut":
        first.write_bytes(first.read_bytes()[:100])
    elif damage == "foreign":
        (log / f"{1:020}.json").write_text(json.dumps({"txn": {"appId": "x", "version": 1}}))
    else:
        first.rename(log / f"{1:020}.json")
    Batch([str(captures)], str(output)).run()
    assert rows_by_log(output, "messages") == written_rows(output, "messages")


@pytest.mark.parametrize("table", ["findings", "channels"])
def test_rows_without_a_time_are_read_everywhere(samples: Path, tmp_path: Path, table: str) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    notes = tmp_path / "notes.pcap"
    notes.write_text("no packets " * 10)
    output = tmp_path / "tables"
    Batch([str(notes), str(samples / "midstream.pcap")], str(output)).run()
    files = str(output / table / "**" / "*.parquet")
    dates = [
        pandas.read_parquet(output / table)["capture_date"],
        polars.read_parquet(files, hive_partitioning=True)["capture_date"],
        [date for (date,) in duckdb.sql(f"SELECT capture_date FROM '{files}'").fetchall()],
        deltalake.DeltaTable(str(output / table)).to_pyarrow_table()["capture_date"].to_pylist(),
    ]
    first, *others = (sorted(map(str, some)) for some in dates)
    assert first[0] == NO_DATE < first[-1]
    assert others == [first] * len(others)
