"""Messages that come again: redeliveries, what is put back and thrown away, poison messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Redelivery and poison messages"

COLUMNS = (
    "method string, queue string, routing_key string, client string, redelivered boolean, "
    "outcome string, message_id string"
)

POISON_DELIVERIES = 5
"""Deliveries of one message that are too many: a broken network or a restart explains two or
three."""


def build(spark: SparkSession, config: Config) -> DataFrame:
    """Deliveries that were not the first of their message or did not end it, by queue and client.

    Columns: queue (the routing key where the queue is not known), client (its address), delivered,
    redelivered, requeued, discarded, redelivered_share, poison_messages (message ids delivered at
    least 5 times), most_deliveries (of one message id), worst_message_id.
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import host, load

    rows = load(spark, config, "messages", COLUMNS)
    rows = rows.where(f.col("method").isin("basic.deliver", "basic.get-ok"))
    rows = rows.withColumn("queue", f.coalesce("queue", "routing_key")).withColumn("client", host())
    counts = rows.groupBy("queue", "client").agg(
        f.count("*").alias("delivered"),
        f.count_if("redelivered").alias("redelivered"),
        f.count_if(f.col("outcome") == "requeued").alias("requeued"),
        f.count_if(f.col("outcome") == "discarded").alias("discarded"),
    )
    by_message = rows.where("message_id IS NOT NULL").groupBy("queue", "client", "message_id")
    poison = (
        by_message.agg(f.count("*").alias("times"), f.count_if("redelivered").alias("again"))
        .where("again > 0")
        .groupBy("queue", "client")
        .agg(
            f.count_if(f.col("times") >= POISON_DELIVERIES).alias("poison_messages"),
            f.max("times").alias("most_deliveries"),
            f.max_by("message_id", "times").alias("worst_message_id"),
        )
    )
    share = (f.col("redelivered") / f.col("delivered")).alias("redelivered_share")
    counted = f.coalesce("poison_messages", f.lit(0)).alias("poison_messages")
    return (
        counts.join(poison, ["queue", "client"], "left")
        .where("redelivered + requeued + discarded > 0")
        .select(*counts.columns, share, counted, "most_deliveries", "worst_message_id")
        .orderBy(f.desc("redelivered"), f.desc("requeued"), "queue", "client")
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """What came again, by queue."""
    from amqpsniff.report.charts import bars, summed

    kinds = ["redelivered", "requeued", "discarded"]
    return [bars(summed(rows, "queue", kinds), "By queue", "queue", kinds, "deliveries")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("redelivery", argv)


if __name__ == "__main__":
    sys.exit(main())
