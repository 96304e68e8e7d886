"""Traffic by exchange, routing key, queue and client: messages and octets in, out and back.

Give it captures of one side of a broker: a message that crosses the wire twice, as published and as
delivered, is counted once in each of the columns.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Traffic by exchange, routing key, queue and client"

COLUMNS = (
    "method string, exchange string, routing_key string, queue string, client string, "
    "body_size long, body_captured long, status string"
)

DIRECTIONS = {
    "published": ("basic.publish",),
    "delivered": ("basic.deliver", "basic.get-ok"),
    "returned": ("basic.return",),
}
"""Prefix of a pair of columns -> methods that are counted in them."""


def build(spark: SparkSession, config: Config) -> DataFrame:
    """Messages and octets of their bodies; the default exchange is "", a publish has no queue.

    Columns: exchange, routing_key, queue, client (its address), then published, published_octets,
    delivered, delivered_octets, returned, returned_octets (long, 0 where there were none),
    mean_octets, max_octets (null where no size was captured).
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import host, load, sent_octets

    rows = load(spark, config, "messages", COLUMNS).withColumn("client", host())
    rows = rows.withColumn("sent", sent_octets())
    sums = []
    for name, methods in DIRECTIONS.items():
        mine = f.col("method").isin(*methods)
        sums.append(f.count_if(mine).alias(name))
        octets = f.sum(f.when(mine, f.col("sent")))
        sums.append(f.coalesce(octets, f.lit(0)).alias(f"{name}_octets"))
    sizes = [f.avg("sent").alias("mean_octets"), f.max("sent").alias("max_octets")]
    grouped = rows.groupBy("exchange", "routing_key", "queue", "client").agg(*sums, *sizes)
    return grouped.orderBy(
        f.desc(f.col("published") + f.col("delivered")), "exchange", "routing_key", "queue"
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Messages and octets by exchange, messages by queue and by client."""
    from amqpsniff.report.charts import bars, summed

    counts, octets = list(DIRECTIONS), [f"{one}_octets" for one in DIRECTIONS]
    return [
        bars(summed(rows, "exchange", counts), "By exchange", "exchange", counts, "messages"),
        bars(summed(rows, "exchange", octets), "By exchange", "exchange", octets, "octets"),
        bars(summed(rows, "routing_key", counts), "By routing key", "routing_key", counts,
             "messages"),
        bars(summed(rows, "client", counts), "By client", "client", counts, "messages"),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the busiest rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("traffic", argv)


if __name__ == "__main__":
    sys.exit(main())
