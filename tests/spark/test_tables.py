"""Tables of a batch in a session: made there, read as of one run, and found without registering."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.batch_reports import make_here
from amqpsniff.archive.filesystem import Folder
from amqpsniff.errors import UsageError
from amqpsniff.spark_jobs import archive, lookup, reports
from amqpsniff.spark_jobs import batch as job
from amqpsniff.spark_jobs.reports import dataframe
from amqpsniff.spark_jobs.tables import read_table
from amqpsniff.tables.schema import TABLES
from tests.archive.splits import by_one_engine, deal, packets_of
from tests.docs.notebook import SPARK_PAGE, executed, read
from tests.thorough import only_thorough

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cut(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures whose connections go on from file to file, with headers, on two days."""
    folder = tmp_path_factory.mktemp("captures")
    chance = random.Random(5)
    for name in ("aiopika_rpc.pcap", "kombu.pcap.gz"):
        (folder / name).mkdir()
        deal(packets_of([samples / name]), folder / name, chance, 4)
    return folder


@pytest.fixture(scope="module")
def made(spark: Any, cut: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """The folder of their tables, and the tables."""
    output = str(tmp_path_factory.mktemp("tables"))
    return output, archive(spark, str(cut), output, links=True)


def test_a_session_makes_what_a_batch_makes(made: tuple[str, Any], cut: Path) -> None:
    _, tables = made
    alone = by_one_engine([one for one in cut.rglob("*") if one.is_file()], links=True)
    for name in TABLES:
        rows = tables[name].drop("capture_date").toArrow()
        columns = [column.to_pylist() for column in rows.columns]
        assert sorted(zip(*columns, strict=True), key=repr) == alone[name], name
    types = dict(tables["messages"].dtypes)
    assert types["timestamp"] == types["message_timestamp"] == "timestamp"
    assert types["capture_date"] == "date"
    assert tables["errors"].count() == 0


def test_the_source_reads_tables_in_many_tasks(
    spark: Any, made: tuple[str, Any], cut: Path, tmp_path: Path
) -> None:
    output, tables = str(tmp_path / "tables"), made[1]
    Batch([str(cut)], output, links=True, task_bytes=15_000).run()
    columns = "packet_number long, published_packet_number long"
    linked = spark.read.format("amqp").schema(columns).load(output)
    assert linked.rdd.getNumPartitions() > 1
    known = tables["messages"].select("packet_number", "published_packet_number")
    assert sorted(linked.collect(), key=repr) == sorted(known.collect(), key=repr)
    assert linked.where("published_packet_number is not null").count() > 0
    source = spark.read.format("amqp").option("table", "findings")
    found = source.option("where", "severity <> 'info'").load(output)
    assert found.count() == tables["findings"].where("severity <> 'info'").count() > 0


@pytest.mark.parametrize(
    ("options", "schema", "words"),
    [
        ({"port": "1"}, "", "option port is for captures"),
        ({"FROM": "2026-01-01"}, "", "option from is for captures"),
        ({}, "method string, published_ns long", "no column published_ns; run .* with --links"),
        ({}, "framework string", "run `batch` with --frameworks"),
        ({"where": "state = 'accepted'"}, "method string", "no column state; only captures"),
    ],
)
def test_what_an_archive_has_not_is_refused(
    spark: Any, cut: Path, tmp_path: Path, options: dict[str, str], schema: str, words: str
) -> None:
    output = str(tmp_path / "tables")
    Batch([str(cut / "kombu.pcap.gz")], output, tables=["messages"]).run()
    source = spark.read.format("amqp").options(**options)
    with pytest.raises(Exception, match=words):
        (source.schema(schema) if schema else source).load(output).count()


def test_columns_that_a_batch_has_not_written(spark: Any, cut: Path, tmp_path: Path) -> None:
    Batch([str(cut)], str(tmp_path / "tables")).run()
    with pytest.raises(UsageError, match="no column published_ns, state; run `batch` with --links"):
        read_table(spark, str(tmp_path / "tables"), "messages", ["published_ns", "state"])


def test_json_becomes_variant(made: tuple[str, Any]) -> None:
    """As the page on Spark has it."""
    _, tables = made
    headers = tables["messages"].selectExpr("headers", "try_parse_json(headers) AS parsed")
    assert dict(headers.dtypes)["parsed"] == "variant"
    assert headers.where("headers is not null and parsed is null").count() == 0
    first = headers.selectExpr("variant_get(parsed, '$.nested.a[0]', 'int') AS first")
    assert first.where("first = 1").count() > 0


def test_columns_of_json_are_read_as_variant(spark: Any, made: tuple[str, Any]) -> None:
    output, tables = made
    for name, column in (("messages", "headers"), ("frames", "arguments")):
        rows = read_table(spark, output, name, variant=True)
        assert dict(rows.dtypes)[column] == "variant"
        known = tables[name].where(f"{column} is not null").count()
        assert rows.where(f"{column} is not null").count() == known > 0
    first = "variant_get(headers, '$.nested.a[0]', 'int') = 1"
    assert read_table(spark, output, "messages", variant=True).where(first).count() > 0


def test_what_no_batch_has_written(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no batch has written there"):
        read_table(spark, str(tmp_path), "messages")


def test_a_table_that_the_batch_has_not_written(
    spark: Any, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture, output = str(samples / "pika_mix.pcap"), str(tmp_path / "tables")
    Batch([capture], output, tables=["frames"]).run()
    missing = "`messages` is not in this archive, which has frames, errors"
    ways = (
        lambda: read_table(spark, output, "messages"),
        lambda: dataframe(spark, "latency", output),
        lambda: make_here(Folder(output), "latency", 20),
        lambda: spark.read.format("amqp").load(output).count(),
    )
    for way in ways:
        with pytest.raises(Exception, match=missing):
            way()
    for wanted in (["--report", "latency"], ["--html"]):
        given = [capture, "-o", str(tmp_path / "other"), "--tables", "frames", *wanted]
        assert job.main([*given, "--master", "local[1]"]) == 2
        assert missing in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_part_that_is_damaged_unseen(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its size is right: `batch` has not made it anew."""
    capture, output = str(samples / "pika_mix.pcap"), tmp_path / "tables"
    Batch([capture], str(output)).run()
    (part,) = output.glob("messages/*/*.parquet")
    part.write_bytes(bytes(part.stat().st_size))
    given = [capture, "-o", str(output), "--report", "traffic", "--master", "local[1]"]
    for main, arguments in ((job.main, given), (reports.main, ["traffic", str(output)])):
        assert main(arguments) == 3
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("amqpsniff: the tables cannot be read: ")
        assert part.name in said


def test_what_is_done_needs_no_spark(
    cut: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "tables"
    Batch([str(cut)], str(output)).run()

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("amqpsniff.spark_jobs.session.context", never)
    again = [str(cut), "-o", str(output), "--master", "local[1]", "--report", "traffic"]
    assert job.main(again) == 0
    assert "Traffic by exchange" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="Spark was started"):
        job.main([*again, "--bodies"])


def test_sql_finds_the_source_unregistered(samples: Path, spark: Any) -> None:
    fresh = spark.newSession()
    given = f"path '{samples / 'pika_mix.pcap'}', table 'frames'"
    fresh.sql(f"CREATE TEMPORARY VIEW frames USING amqp OPTIONS ({given})")
    assert fresh.sql("SELECT count(*) FROM frames").first()[0] == 563


SCRIPT = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.ui.enabled", "false").remote("local[1]").getOrCreate()
given = f"path '{sys.argv[1]}', table 'frames'"
spark.sql(f"CREATE TEMPORARY VIEW frames USING amqp OPTIONS ({given})")
print("frames:", spark.sql("SELECT count(*) FROM frames").first()[0])
"""


@only_thorough
def test_spark_connect_finds_the_source(samples: Path, spark: Any) -> None:
    for package in ("grpc", "grpc_status", "pandas"):
        pytest.importorskip(package)
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(samples / "pika_mix.pcap")],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "PYTHONPATH": str(next(iter(lookup.__path__))),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
    assert "frames: 563" in said.stdout, said.stderr


def test_the_notebook_shows_what_its_cells_give(spark: Any) -> None:
    page = read(SPARK_PAGE)
    assert executed(copy.deepcopy(page)) == page
