"""How long confirms and acknowledgements take, by client, exchange and time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.spark_jobs.reports import Config

TITLE = "Confirm and acknowledgement latency"

COLUMNS = (
    "method string, exchange string, client string, ts_ns long, outcome string, outcome_ns long"
)

QUANTILES = {"p50_ms": 0.5, "p90_ms": 0.9, "p95_ms": 0.95, "p99_ms": 0.99}

ACCURACY = 10_000
"""Of `percentile_approx`: the rank is right to a ten-thousandth."""


def build(spark: SparkSession, config: Config) -> DataFrame:
    """Time from publish to confirm or nack, and from delivery to its settlement.

    Columns: kind (`confirm`, `settle`), client (its address), exchange, time (beginning of the
    step), messages, p50_ms, p90_ms, p95_ms, p99_ms, max_ms.
    """
    from pyspark.sql import functions as f

    from amqpsniff.spark_jobs.reports import bucket, host, load

    rows = load(spark, config, "messages", COLUMNS)
    publish = (f.col("method") == "basic.publish") & f.col("outcome").isin("confirmed", "rejected")
    settled = f.col("outcome").isin("acked", "requeued", "discarded")
    kind = f.when(publish, "confirm").when(settled, "settle")
    rows = rows.withColumn("kind", kind).where("kind IS NOT NULL AND outcome_ns IS NOT NULL")
    milliseconds = f.col("outcome_ns") / 1e6
    quantiles = f.percentile_approx(milliseconds, list(QUANTILES.values()), ACCURACY)
    grouped = rows.groupBy(
        "kind", host().alias("client"), "exchange", bucket(spark, config).alias("time")
    ).agg(
        f.count("*").alias("messages"),
        quantiles.alias("quantiles"),
        f.max(milliseconds).alias("max_ms"),
    )
    named = [f.col("quantiles")[at].alias(name) for at, name in enumerate(QUANTILES)]
    columns = ["kind", "client", "exchange", "time", "messages", *named, "max_ms"]
    return grouped.select(*columns).orderBy("kind", f.desc("p99_ms"), "client", "exchange", "time")


def charts(rows: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """The 99th percentile over time by client, for confirms and for settlements."""
    from amqpsniff.report.charts import lines

    made = []
    for kind, what in (("confirm", "Publish to confirm"), ("settle", "Delivery to settlement")):
        worst: dict[tuple[Any, Any], dict[str, Any]] = {}
        for row in rows:
            key = row["client"], row["time"]
            if row["kind"] == kind and _slowest(row) >= _slowest(worst.get(key, row)):
                worst[key] = row
        if worst:
            title = f"{what}: 99th percentile of the slowest exchange, by client"
            ordered = [worst[key] for key in sorted(worst, key=_known_first)]
            made.append(lines(ordered, title, "time", "p99_ms", "client", "ms", log=True))
    return made


def _known_first(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """What to sort names and times by, of which any may be null."""
    return [(part is None, part) for part in key]


def _slowest(row: dict[str, Any]) -> float:
    return row["p99_ms"] or 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the slowest rows, or write them all to a folder; the exit code."""
    from amqpsniff.spark_jobs.reports import run_job

    return run_job("latency", argv)


if __name__ == "__main__":
    sys.exit(main())
