"""Spark serves the rows that one machine serves."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import amqpsniff
from amqpsniff.tables.query import filtered
from amqpsniff.tables.schema import EVERYTHING, TABLES, schema_of
from tests.archive.broker import ACROSS, traffic
from tests.archive.splits import deal, packets_of
from tests.conftest import CAPTURES

pytestmark = pytest.mark.spark

NAMES = [
    "pika_mix.pcap",
    "php_churn.pcap",
    "kombu.pcap.gz",
    "bunny.pcapng",
    "snapped.pcap",
    "midstream.pcap",
    "lost.pcap",
]


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_one_machine(spark: Any, samples: Path, table: str) -> None:
    paths = [str(samples / name) for name in NAMES]
    if table == "links":
        paths += [
            str(CAPTURES / "amqp10" / name) for name in ("links.pcap", "rabbit_outcomes.pcap")
        ]
    source = spark.read.format("amqp").option("table", table).option("taskBytes", "100000")
    frame = source.load(paths[::-1])
    alone = amqpsniff.open(*sorted(paths)).table(table)
    assert frame.rdd.getNumPartitions() > 1 or table == "findings"
    together = frame.toArrow()
    assert together.schema.names == alone.schema.names
    assert together.schema.types == alone.schema.types
    assert alone.num_rows > 0
    assert _rows(together) == _rows(alone)


def test_schema_is_that_of_the_contract(spark: Any, samples: Path) -> None:
    for table in TABLES:
        frame = spark.read.format("amqp").option("table", table).load(str(samples))
        assert frame.columns == schema_of(table).names


def test_chosen_columns_come_in_the_order_asked_for(spark: Any, samples: Path) -> None:
    path = str(samples / "pika_mix.pcap")
    schema = "body_size long, method string"
    frame = spark.read.format("amqp").schema(schema).load(path)
    alone = amqpsniff.open(path).table("messages").select(["body_size", "method"])
    assert _rows(frame.toArrow()) == _rows(alone)


def test_several_conditions_in_one_query(spark: Any, samples: Path) -> None:
    """Each part of a query has its own, though they read one data source."""
    names = [str(samples / name) for name in NAMES]
    frame = spark.read.format("amqp").option("table", "messages").load(names)
    alone = amqpsniff.open(*names).table("messages").column("method").to_pylist()
    methods = ("basic.publish", "basic.deliver", "basic.get-ok")
    parts = [frame.where(f"method = '{name}'").groupBy("method").count() for name in methods]
    counts = dict(map(tuple, parts[0].union(parts[1]).union(parts[2]).collect()))
    assert counts == {name: alone.count(name) for name in methods}


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("frames", "method like 'basic.%' and arguments is not null"),
        ("messages", "body_size > 20 and routing_key <> ''"),
        ("messages", "link_confidence = 'exact'"),
        ("connections", "vhost = 'shop'"),
        ("channels", "channel > 1"),
        ("findings", "severity <> 'info'"),
    ],
)
def test_conditions_are_those_of_the_command_line(
    spark: Any, samples: Path, table: str, where: str
) -> None:
    """And chosen columns are, though the condition is on others."""
    paths = [str(samples / name) for name in (*NAMES[:3], "aiopika_rpc.pcap")]
    names = schema_of(table).names
    capture = amqpsniff.open(*sorted(paths))
    everything = [*names, "link_confidence"] if table == "messages" else names
    alone = list(filtered(capture.table(table, columns=everything).to_batches(),
                          schema_of(table, everything=True), where))  # fmt: skip
    source = spark.read.format("amqp").option("table", table).option("where", where)
    if table == "messages":
        names = ["queue"]
        source = source.schema("queue string")
    rows = _rows(source.option("taskBytes", "200000").load(paths).toArrow())
    assert rows == _rows(pa.Table.from_batches(alone).select(names))
    assert 0 < len(rows) < capture.table(table).num_rows


def test_conditions_that_are_none(spark: Any, samples: Path) -> None:
    source = spark.read.format("amqp").option("where", "nonsense = 1")
    with pytest.raises(Exception, match=r"option where: .*nonsense"):
        source.load(str(samples / NAMES[0])).collect()
    bad = samples / "README.md"
    errors = spark.read.format("amqp").option("table", "errors").load(str(bad))
    assert errors.count() == 1
    none = spark.read.format("amqp").option("table", "errors").option("where", "path is null")
    assert none.load(str(bad)).count() == 0


def test_headers_are_a_variant_by_parse_json(spark: Any, samples: Path) -> None:
    """The one text that every table has; Spark reads all of it."""
    path = str(samples / "pika_mix.pcap")
    source = spark.read.format("amqp").option("table", "messages").load(path)
    read = source.where("headers IS NOT NULL").selectExpr(
        "headers", "to_json(parse_json(headers)) AS again",
        "variant_get(parse_json(headers), '$.s', 'string') AS value",
    )  # fmt: skip
    rows = read.collect()
    assert rows
    for row in rows:
        assert json.loads(row["again"]) == json.loads(row["headers"])
        assert row["value"] == json.loads(row["headers"])["s"]


def test_links_are_made_where_they_are_named(spark: Any, samples: Path) -> None:
    paths = [str(samples / name) for name in (*NAMES, "aiopika_rpc.pcap")]
    schema = (
        "packet_number long, reply_late boolean, request_connection_id string, "
        "link_confidence string"
    )
    source = spark.read.format("amqp").schema(schema).option("taskBytes", "100000")
    frame = source.load(paths[::-1])
    assert frame.rdd.getNumPartitions() == 1
    names = schema.split()[::2]
    alone = amqpsniff.open(*sorted(paths)).table("messages", columns=names).select(names)
    rows = _rows(frame.toArrow())
    assert rows == _rows(alone)
    assert {row[3] for row in rows} >= {None, "exact"}
    assert {row[1] for row in rows} == {None, False}


def test_partitions_share_what_is_about_all(spark: Any, tmp_path: Path) -> None:
    """Findings of several connections, links and a condition, in many tasks."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    captures, scratch = tmp_path / "captures", tmp_path / "scratch"
    captures.mkdir()
    paths = sorted(map(str, deal(traffic(random.Random(5), 400), captures, random.Random(6), 6)))
    source = spark.read.format("amqp").option("taskBytes", "5000").option("scratch", str(scratch))
    alone = amqpsniff.open(*paths)
    findings = source.option("table", "findings").load(paths)
    assert findings.rdd.getNumPartitions() > 2
    rows = _rows(findings.toArrow())
    assert rows == _rows(alone.table("findings"))
    assert {value for row in rows for value in row} >= ACROSS
    names = ["method", "published_packet_number", "link_confidence", "packet_number"]
    condition = "published_packet_number IS NOT NULL AND body_size >= 0"
    fields = [field for field in from_arrow_schema(EVERYTHING["messages"]) if field.name in names]
    linked = source.option("table", "messages").option("where", condition)
    frame = linked.schema(StructType(fields)).load(paths)
    assert frame.rdd.getNumPartitions() > 2
    everything = alone.table("messages", columns=[*frame.columns, "body_size"]).to_batches()
    schema = schema_of("messages", everything=True)
    wanted = pa.Table.from_batches(filtered(everything, schema, condition)).select(frame.columns)
    assert 0 < wanted.num_rows < sum(one.num_rows for one in everything)
    assert _rows(frame.toArrow()) == _rows(wanted)
    assert _rows(frame.toArrow()) == _rows(wanted)  # of what is there by now


def test_parquet_is_like_that_of_the_direct_writer(
    spark: Any, samples: Path, tmp_path: Path
) -> None:
    frame = spark.read.format("amqp").option("table", "frames").load(str(samples / NAMES[0]))
    frame.write.parquet(str(tmp_path / "frames"))
    (file,) = (tmp_path / "frames").glob("*.parquet")
    group = parquet.read_metadata(file).row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(23)}
    assert columns["timestamp"].physical_type == "INT64"
    for name in ("packet_number", "ts_ns", "timestamp", "stream_offset"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings
    assert columns["method"].has_dictionary_page


def test_options_reach_the_engine(spark: Any, samples: Path) -> None:
    path = str(samples / "kombu.pcap.gz")
    source = spark.read.format("amqp").schema("body binary, body_sha256 string")
    frame = source.option("bodies", "true").option("bodySha256", "true").load(path)
    alone = amqpsniff.open(path, bodies=True, body_sha256=True).table("messages")
    rows = _rows(frame.toArrow())
    assert any(body for body, _ in rows)
    assert rows == _rows(alone.select(["body", "body_sha256"]))
    none = spark.read.format("amqp").option("table", "frames").option("port", "1").load(path)
    assert none.count() == 0


def test_keys_reach_every_task(spark: Any, samples: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    deal(packets_of([samples / "tls13.pcap"]), tmp_path, random.Random(3), 3)
    keylog = str(samples / "tls13.keys")
    source = spark.read.format("amqp").option("taskBytes", "2000").option("tlsKeylog", keylog)
    frame = source.load(str(tmp_path))
    alone = amqpsniff.open(*sorted(map(str, tmp_path.iterdir())), tls_keylog=keylog)
    assert frame.rdd.getNumPartitions() > 1
    rows = _rows(frame.toArrow())
    assert rows
    assert rows == _rows(alone.table("messages"))


def test_a_folder_is_read_whole(spark: Any, samples: Path) -> None:
    frame = spark.read.format("amqp").schema("capture string").load(str(samples))
    named = {row.capture for row in frame.distinct().collect()}
    alone = amqpsniff.open(str(samples)).table("messages", columns=["capture"])
    assert named == set(alone.column("capture").to_pylist())


@pytest.mark.parametrize(
    ("options", "schema", "words"),
    [
        ({"table": "letters"}, None, "no table `letters`"),
        ({"tabel": "frames"}, None, "no option `tabel` .did you mean table"),
        ({"port": "x"}, None, "not a list of numbers"),
        ({"mode": "LENIENT"}, None, "no mode `LENIENT`"),
        ({"bodies": "perhaps"}, None, "neither true nor false"),
        ({}, "colour string", "no column `colour`"),
        ({}, "method long", "is string, not bigint"),
    ],
)
def test_what_makes_no_sense_is_refused(
    spark: Any, samples: Path, options: dict[str, str], schema: str | None, words: str
) -> None:
    source = spark.read.format("amqp").options(**options)
    if schema:
        source = source.schema(schema)
    with pytest.raises(Exception, match=words):
        source.load(str(samples / "kombu.pcap.gz")).count()


def test_a_file_that_is_no_capture(spark: Any, samples: Path, tmp_path: Path) -> None:
    bad = tmp_path / "notes.pcap"
    bad.write_text("these are notes and no packets at all\n" * 10)
    paths = [str(bad), str(samples / "kombu.pcap.gz")]
    source = spark.read.format("amqp").option("mode", "PERMISSIVE")
    good = amqpsniff.open(paths[1]).table("messages").num_rows
    assert source.load(paths).count() == good
    findings = source.option("table", "findings").load(paths)
    (row,) = findings.where("code = 'capture-unreadable'").collect()
    assert row.capture == str(bad)
    dropped = source.option("mode", "DROPMALFORMED").load(paths)
    assert dropped.where("code = 'capture-unreadable'").count() == 0
    with pytest.raises(Exception, match=r"notes\.pcap"):
        source.option("mode", "FAILFAST").load(paths).count()


def test_workers_of_another_python_are_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from amqpsniff.spark_jobs import register

    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(spark.sparkContext, "pythonExec", "/bin/sh")
        with pytest.warns(UserWarning, match="PYSPARK_PYTHON="):
            register(spark)
    register(spark)  # which keeps the Python that it was given with
