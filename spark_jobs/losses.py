"""Messages that may be lost: published without confirms, refused, returned, lost at close."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Publishes at risk"

COLUMNS = (
    "method string, exchange string, client string, outcome string, status string, "
    "publish_number long"
)


def build(spark: SparkSession, config: Config) -> DataFrame:
    """What became of publishes, by exchange and client.

    Columns: exchange, client (its address), published, confirmed, unprotected (without confirms and
    not returned), rejected (nacked by the broker), returned, unconfirmed (no answer by the end of
    the channel or of the capture), incomplete (the connection ended inside the message).
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import host, load

    rows = load(spark, config, "messages", COLUMNS).where("method = 'basic.publish'")
    outcome = f.col("outcome")
    bare = f.col("publish_number").isNull() & outcome.isNull()
    return (
        rows.groupBy("exchange", host().alias("client"))
        .agg(
            f.count("*").alias("published"),
            f.count_if(outcome == "confirmed").alias("confirmed"),
            f.count_if(bare).alias("unprotected"),
            f.count_if(outcome == "rejected").alias("rejected"),
            f.count_if(outcome == "returned").alias("returned"),
            f.count_if(outcome == "unconfirmed").alias("unconfirmed"),
            f.count_if(f.col("status") == "incomplete").alias("incomplete"),
        )
        .orderBy(
            f.desc(f.expr("rejected + returned + unconfirmed + incomplete")),
            f.desc("unprotected"),
            "exchange",
            "client",
        )
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Publishes at risk by exchange and by client."""
    from amqpsniff.report.charts import bars, summed

    kinds = ["unprotected", "rejected", "returned", "unconfirmed", "incomplete"]
    return [
        bars(summed(rows, name, kinds), f"By {name}", name, kinds, "publishes")
        for name in ("exchange", "client")
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("losses", argv)


if __name__ == "__main__":
    sys.exit(main())
