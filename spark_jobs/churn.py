"""How connections and channels come and go: rates, lifetimes, reconnect loops, leaks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Churn of connections and channels"

CONNECTIONS = (
    "client string, server string, connection_name string, client_product string, "
    "midstream boolean, start_ns long, end_ns long, closed_by string, channels int, "
    "published long, delivered long"
)
FINDINGS = "client string, code string, count long"

SHORT_NS = 1_000_000_000
"""Life of a connection that was not worth its opening."""

CODES = {
    "reconnect_loops": ("reconnect-loop",),
    "connection_churn": ("connection-churn", "php-short-connections"),
    "channel_churn": ("channel-churn", "spring-channel-cache"),
    "leaks": ("connections-leaking", "channels-leaking"),
}
"""Columns -> codes of findings that are counted in them."""


def build(spark: SparkSession, config: Config) -> DataFrame:
    """Connections by the client's address and what it calls itself.

    Columns: client, application, connections, midstream, per_minute (connections opened, over the
    time from the first to the last beginning; null for one), p50_life_s, p95_life_s (of those that
    ended), short (lived less than a second), left_open (not ended in the capture), channels (opened
    by all), channels_each, reconnect_loops, connection_churn, channel_churn, leaks (occurrences in
    findings about the client's address).
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import host, load

    rows = load(spark, config, "connections", CONNECTIONS).withColumn("client", host())
    name = f.coalesce("connection_name", "client_product", f.lit(""))
    life = (f.col("end_ns") - f.col("start_ns")) / 1e9
    ended = f.col("closed_by").isNotNull() & ~f.col("midstream")
    span = (f.max("start_ns") - f.min("start_ns")) / 60e9
    quantiles = f.percentile_approx(f.when(ended, life), [0.5, 0.95], 10_000)
    counts = rows.groupBy("client", name.alias("application")).agg(
        f.count("*").alias("connections"),
        f.count_if("midstream").alias("midstream"),
        f.when(span > 0, (f.count("*") - 1) / span).alias("per_minute"),
        quantiles[0].alias("p50_life_s"),
        quantiles[1].alias("p95_life_s"),
        f.count_if(ended & (life < SHORT_NS / 1e9)).alias("short"),
        f.count_if(f.col("closed_by").isNull()).alias("left_open"),
        f.sum("channels").alias("channels"),
        f.avg("channels").alias("channels_each"),
    )
    findings = load(spark, config, "findings", FINDINGS).withColumn("client", host())
    said = findings.groupBy("client").agg(
        *(f.sum(f.when(f.col("code").isin(*codes), f.col("count"))).alias(name)
          for name, codes in CODES.items())
    )  # fmt: skip
    columns = [f.coalesce(name, f.lit(0)).alias(name) for name in CODES]
    joined = counts.join(said, "client", "left").select(*counts.columns, *columns)
    return joined.orderBy(f.desc("connections"), "client", "application")


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Connections and channels by client, and what was found about them."""
    from amqpsniff.report.charts import bars, summed

    of_client = ["short", "left_open", "midstream"]
    made = [
        bars(summed(rows, "client", ["connections"]), "Connections", "client", ["connections"],
             "connections"),
        bars(summed(rows, "client", of_client), "Of them", "client", of_client, "connections"),
        bars(summed(rows, "client", ["channels"]), "Channels opened", "client", ["channels"],
             "channels"),
    ]  # fmt: skip
    codes = list(CODES)
    one_each = list({row["client"]: row for row in rows}.values())
    if any(row[code] for row in one_each for code in codes):
        made.append(bars(summed(one_each, "client", codes), "Found", "client", codes, "times"))
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("churn", argv)


if __name__ == "__main__":
    sys.exit(main())
