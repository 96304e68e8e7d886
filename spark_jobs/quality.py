"""How good the captures are: what they lack, file by file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Quality of the captures"

CONNECTIONS = (
    "capture string, midstream boolean, client_packets long, server_packets long, "
    "retransmissions long, gaps long, lost_octets long"
)
MESSAGES = "capture string, status string"
ERRORS = "path string, kind string, detail string, skipped_octets long"


def build(spark: SparkSession, config: Config) -> DataFrame:
    """What is missing from each capture, the worst first.

    Columns: capture, connections, midstream (began before it), one_sided (packets of one direction
    only), packets (of AMQP connections that begin in it), retransmissions, gaps, lost_octets,
    truncated, incomplete (messages that begin in it), error (what is wrong with the file, else
    null), skipped_octets.
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import load

    connections = load(spark, config, "connections", CONNECTIONS)
    one_sided = (f.col("client_packets") == 0) | (f.col("server_packets") == 0)
    of_connections = connections.groupBy("capture").agg(
        f.count("*").alias("connections"),
        f.count_if("midstream").alias("midstream"),
        f.count_if(one_sided).alias("one_sided"),
        f.sum(f.col("client_packets") + f.col("server_packets")).alias("packets"),
        f.sum("retransmissions").alias("retransmissions"),
        f.sum("gaps").alias("gaps"),
        f.sum("lost_octets").alias("lost_octets"),
    )
    of_messages = (
        load(spark, config, "messages", MESSAGES)
        .groupBy("capture")
        .agg(
            f.count_if(f.col("status") == "truncated").alias("truncated"),
            f.count_if(f.col("status") == "incomplete").alias("incomplete"),
        )
    )
    of_files = (
        load(spark, config, "errors", ERRORS)
        .groupBy(f.col("path").alias("capture"))
        .agg(
            f.concat_ws("; ", f.collect_list("kind")).alias("error"),
            f.sum("skipped_octets").alias("skipped_octets"),
        )
    )
    joined = of_connections.join(of_messages, "capture", "outer").join(of_files, "capture", "outer")
    numbers = [
        name for name in [*of_connections.columns, *of_messages.columns] if name != "capture"
    ]
    zeros = [f.coalesce(name, f.lit(0)).alias(name) for name in dict.fromkeys(numbers)]
    return joined.select("capture", *zeros, "error", "skipped_octets").orderBy(
        f.col("error").isNull(), f.desc("lost_octets"), f.desc("gaps"), "capture"
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Lost octets, holes and messages that are not whole, of the worst files."""
    from amqpsniff.report.charts import bars

    worst = [row for row in rows if row["error"] or row["lost_octets"] or row["midstream"]]
    if not worst:
        return []
    return [
        bars(worst, "Messages that are not whole", "capture", ["truncated", "incomplete"],
             "messages"),
        bars(worst, "Connections", "capture", ["midstream", "one_sided"], "connections"),
        bars(worst, "Octets lost", "capture", ["lost_octets"], "octets"),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("quality", argv)


if __name__ == "__main__":
    sys.exit(main())
