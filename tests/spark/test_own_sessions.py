"""Jobs in a session that somebody else has made: a notebook's, in another zone, or far away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from tests.archive.tables import manifest

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"


@pytest.fixture
def honolulu(spark: Any) -> Iterator[Any]:
    """A session whose day is another one for most of the day."""
    zone = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "Pacific/Honolulu")
    yield spark
    spark.conf.set(ZONE, zone)


def test_days_are_those_of_utc(honolulu: Any, samples: Path, tmp_path: Path) -> None:
    from amqpsniff.spark_jobs.reports import make

    capture, output = str(samples / "pika_mix.pcap"), str(tmp_path / "out")
    Batch([capture], output, tables=["messages", "findings"]).run()
    names = {name.split("/")[1] for name in manifest(Path(output))["tables"]["messages"]}
    report = make(honolulu, "findings", output, 20)
    found = {str(row["day"]) for row in report.table.to_pylist()}
    assert {f"capture_date={one}" for one in found if one != "None"} == names


def test_what_java_knows_cannot_be_asked_far_away() -> None:
    from pyspark.errors import PySparkAttributeError

    from amqpsniff.spark_jobs.tables import java_knows

    class Connected:
        """As much of a session of Spark Connect as is looked at; the real one needs gRPC."""

        @property
        def sparkContext(self) -> Any:
            raise PySparkAttributeError("Attribute `sparkContext` is not supported")

    assert not java_knows(Connected(), "s3://bucket/tables")  # type: ignore[arg-type]
    assert java_knows(Connected(), "/tables")  # type: ignore[arg-type]
