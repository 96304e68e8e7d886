"""Conditions that tasks apply leave the rows that Spark would leave."""

from pathlib import Path
from typing import Any

import pytest

import amqpsniff

pytestmark = pytest.mark.spark

APPLIED = [
    "method is not null",
    "method is null",
    "method = 'basic.publish'",
    "method <> 'basic.publish'",
    "method in ('basic.publish', 'queue.declare')",
    "method like 'basic.%'",
    "method like '%-ok'",
    "not method like '%deliver%'",
    "method > 'channel'",
    "size >= 14 and size < 40",
    "not size <= 14",
    "channel = 1 and delivery_tag is not null",
    "reply_code in (0, 200)",
    "queue = ''",
]
LEFT = [
    "method not in ('basic.publish', 'queue.declare')",
    "method = 'basic.publish' or size > 40",
    "timestamp > timestamp'2020-01-01 00:00:00'",
    "length(routing_key) > 4",
]


@pytest.fixture(scope="module")
def known(spark: Any, samples: Path) -> Any:
    """The frames of one process, which Spark filters by itself."""
    rows = amqpsniff.open(str(samples / "pika_mix.pcap")).table("frames")
    made = spark.createDataFrame(rows).cache()
    yield made
    made.unpersist()


def _lines(frame: Any) -> list[str]:
    return sorted(map(repr, frame.toArrow().to_pylist()))


@pytest.mark.parametrize("condition", [*APPLIED, *LEFT, " and ".join(APPLIED[2:6:3])])
def test_rows_are_those_that_spark_leaves(
    spark: Any, samples: Path, known: Any, condition: str
) -> None:
    source = spark.read.format("amqp").option("table", "frames")
    frame = source.load(str(samples / "pika_mix.pcap")).where(condition)
    assert _lines(frame) == _lines(known.where(condition))


@pytest.mark.parametrize("table", ["messages", "connections", "channels", "findings", "errors"])
def test_conditions_on_every_table(spark: Any, samples: Path, table: str) -> None:
    frame = spark.read.format("amqp").option("table", table).load(str(samples / "pika_mix.pcap"))
    name = "path" if table == "errors" else "capture"
    assert frame.where(f"{name} = 'nothing'").count() == 0
    assert frame.where(f"{name} is not null").count() == frame.count()


@pytest.mark.parametrize(("condition", "applied"), [(APPLIED[0], True), (LEFT[0], False)])
def test_what_is_applied_is_no_work_of_spark(
    spark: Any, samples: Path, condition: str, applied: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    source = spark.read.format("amqp").option("table", "frames").schema("method string")
    source.load(str(samples / "pika_mix.pcap")).where(condition).explain()
    assert (" Filter " not in capsys.readouterr().out) == applied


def test_a_session_that_hands_over_no_conditions(spark: Any, samples: Path) -> None:
    setting = "spark.sql.python.filterPushdown.enabled"
    frame = spark.read.format("amqp").option("table", "frames").load(str(samples / "pika_mix.pcap"))
    with_tasks = frame.where(APPLIED[2]).count()
    spark.conf.set(setting, "false")
    try:
        source = spark.read.format("amqp").option("table", "frames")
        again = source.load(str(samples / "pika_mix.pcap")).where(APPLIED[2])
        assert again.count() == with_tasks > 0
    finally:
        spark.conf.set(setting, "true")
