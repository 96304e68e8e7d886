"""How full clients are over time: deliveries they have not settled, against their prefetch count,
and publishes that wait for their confirm.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Unsettled deliveries and prefetch over time"

MESSAGES = (
    "connection_id string, client string, channel int, method string, ts_ns long, outcome string, "
    "outcome_ns long, publish_number long"
)
CHANNELS = (
    "connection_id string, client string, channel int, end_ns long, prefetch_count int, "
    "published long, delivered long, unsettled_end long, unconfirmed_end long"
)

FULL = 0.9
"""Share of the prefetch count from which on a channel waits for its consumer."""


def build(spark: SparkSession, config: Config) -> DataFrame:
    """What is outstanding at most in each step in time in which it changed, by client.

    Columns: time, client (its address), channels, unknown_channels (those of which not all is
    known: open before the capture, or frames are missing), unsettled (deliveries), unconfirmed
    (publishes; both are sums of the most that each channel had for certain, null where nothing is
    known), prefetch (sum of the channels' prefetch counts, null where none is known), saturation
    (unsettled of the prefetch count, on channels of which both are known), full_channels (at 90 %
    of it or more).
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import bucket, host, load

    place = ["connection_id", "client", "channel"]
    messages = load(spark, config, "messages", MESSAGES)
    held = f.col("method").isin("basic.deliver", "basic.get-ok") & (
        f.col("outcome").isNull() | (f.col("outcome") != "automatic")
    )
    waiting = (f.col("method") == "basic.publish") & f.col("publish_number").isNotNull()
    messages = messages.where(held | waiting).withColumn("held", held)
    known = f.col("outcome").isNotNull()
    begun = messages.select(*place, "held", "ts_ns", known.cast("int").alias("step"))
    over = messages.where(known & f.col("outcome_ns").isNotNull()).select(
        *place, "held", (f.col("ts_ns") + f.col("outcome_ns")).alias("ts_ns"), f.lit(-1)
    )
    channels = load(spark, config, "channels", CHANNELS)
    before = f.lag("end_ns").over(Window.partitionBy(*place).orderBy("end_ns"))
    ended = channels.where("end_ns IS NOT NULL").select(
        *place, "end_ns", f.coalesce(before, f.lit(-(2**63))).alias("began_ns")
    )
    left = (
        messages.where("outcome IN ('unsettled', 'unconfirmed')")
        .join(ended, place)
        .where("began_ns < ts_ns AND ts_ns <= end_ns")
        .select(*place, "held", "end_ns", f.lit(-1))
    )
    changes = begun.union(over).union(left)
    so_far = (
        Window.partitionBy(*place)
        .orderBy("ts_ns", "step")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    held_by_then = f.sum(f.when(f.col("held"), f.col("step")).otherwise(0)).over(so_far)
    waiting_by_then = f.sum(f.when(f.col("held"), 0).otherwise(f.col("step"))).over(so_far)
    state = (
        changes.where("ts_ns IS NOT NULL")
        .select(
            *place,
            bucket(spark, config).alias("time"),
            f.greatest(held_by_then, f.lit(0)).alias("unsettled"),
            f.greatest(waiting_by_then, f.lit(0)).alias("unconfirmed"),
        )
        .groupBy(*place, "time")
        .agg(f.max("unsettled").alias("unsettled"), f.max("unconfirmed").alias("unconfirmed"))
    )
    limits = channels.groupBy("connection_id", "channel").agg(
        f.max(f.when(f.col("prefetch_count") > 0, f.col("prefetch_count"))).alias("prefetch"),
        f.bool_or(f.expr("delivered > 0 AND unsettled_end IS NULL")).alias("unsettled_unknown"),
        f.bool_or(f.expr("published > 0 AND unconfirmed_end IS NULL")).alias("unconfirmed_unknown"),
    )
    limited = state.join(limits, ["connection_id", "channel"], "left")
    for name in ("unsettled", "unconfirmed"):
        nothing = f.col(f"{name}_unknown") & (f.col(name) == 0)
        limited = limited.withColumn(name, f.when(~nothing | nothing.isNull(), f.col(name)))
    full = f.col("unsettled") >= FULL * f.col("prefetch")
    counts = f.col("prefetch").isNotNull() & ~f.col("unsettled_unknown")
    share = f.sum(f.when(counts, f.col("unsettled"))) / f.sum(f.when(counts, f.col("prefetch")))
    return (
        limited.groupBy("time", host().alias("client"))
        .agg(
            f.count("*").alias("channels"),
            f.count_if(f.expr("unsettled_unknown OR unconfirmed_unknown")).alias(
                "unknown_channels"
            ),
            f.sum("unsettled").alias("unsettled"),
            f.sum("unconfirmed").alias("unconfirmed"),
            f.sum("prefetch").alias("prefetch"),
            share.alias("saturation"),
            f.count_if(full).alias("full_channels"),
        )
        .orderBy("time", "client")
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Saturation, unsettled deliveries and unconfirmed publishes over time, by client."""
    from amqpsniff.report.charts import lines

    return [
        lines(rows, "Unsettled deliveries as a share of the prefetch count", "time", "saturation",
              "client", "share"),
        lines(rows, "Deliveries not settled", "time", "unsettled", "client", "deliveries"),
        lines(rows, "Publishes not confirmed", "time", "unconfirmed", "client", "publishes"),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("saturation", argv)


if __name__ == "__main__":
    sys.exit(main())
