"""Why connections and channels were closed: codes, by client and by the method that caused them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from amqpsniff.spec import FIRST_ERROR_CODE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Close codes by client and method"

COLUMNS = "client string, closed_by string, close_code int, close_text string, close_method string"


def build(spark: SparkSession, config: Config) -> DataFrame:
    """Closes of connections and channels.

    Columns: kind (`connection`, `channel`), closed_by (`client`, `server`, `fin`, `rst`), code,
    method (that caused it, null for none), client (its address), closes, example_text.
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import host, load

    kinds = []
    for kind in ("connection", "channel"):
        rows = load(spark, config, f"{kind}s", COLUMNS).where("closed_by IS NOT NULL")
        kinds.append(rows.withColumn("kind", f.lit(kind)))
    return (
        kinds[0]
        .union(kinds[1])
        .groupBy(
            "kind",
            "closed_by",
            f.col("close_code").alias("code"),
            f.col("close_method").alias("method"),
            host().alias("client"),
        )
        .agg(f.count("*").alias("closes"), f.min("close_text").alias("example_text"))
        .orderBy(
            f.desc(f.coalesce("code", f.lit(0)) >= FIRST_ERROR_CODE),
            f.desc("closes"),
            "code",
            "client",
        )
    )


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """Errors by client and code, and by the method that caused them."""
    from amqpsniff.report.charts import bars, grid, summed

    errors = [
        row | {"code": str(row["code"]), "method": row["method"] or "(none)"}
        for row in rows
        if (row["code"] or 0) >= FIRST_ERROR_CODE
    ]
    if not errors:
        return []
    return [
        grid(errors, "Errors by code and client", "code", "client", "closes", "closes"),
        bars(summed(errors, "method", ["closes"]), "Errors by method", "method", ["closes"],
             "closes"),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the first rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("closes", argv)


if __name__ == "__main__":
    sys.exit(main())
