"""Findings by day and client."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Findings by day and client"

COLUMNS = (
    "ts_ns long, client string, connection_id string, code string, severity string, "
    "title string, count long, cause_code string"
)

RANKS = {"error": 0, "warning": 1, "info": 2}


def build(spark: SparkSession, config: Config) -> DataFrame:
    """How often each thing was found, the gravest first.

    Columns: day (UTC, null where a finding has no time), client (its address, null where a finding
    is about the capture), severity, code, title, findings, occurrences, connections, consequences
    (findings that another one brought about).
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import day, host, load

    rows = load(spark, config, "findings", COLUMNS)
    rank = f.when(f.col("severity") == "error", 0).when(f.col("severity") == "warning", 1)
    return (
        rows.groupBy(day().alias("day"), host().alias("client"), "severity", "code", "title")
        .agg(
            f.count("*").alias("findings"),
            f.sum("count").alias("occurrences"),
            f.count_distinct("connection_id").alias("connections"),
            f.count("cause_code").alias("consequences"),
        )
        .orderBy(rank.otherwise(2), f.desc("occurrences"), "code", "day", "client")
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Occurrences by code, and by client."""
    from amqpsniff.report.charts import bars, summed

    made = []
    for severity in RANKS:
        mine = [row for row in rows if row["severity"] == severity]
        if mine:
            title = f"{severity.capitalize()}s" if severity != "info" else "Info"
            by_code = summed(mine, "code", ["findings"])
            made.append(bars(by_code, title, "code", ["findings"], "findings"))
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("findings", argv)


if __name__ == "__main__":
    sys.exit(main())
