"""Traffic by exchange and routing key: messages and octets that went in, came out, came back.

Give it captures of one side of a broker: a message that crosses the wire twice, as published and as
delivered, is counted once in each of the two columns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amqpsniff.errors import CaptureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNREADABLE = 3
"""Exit code when a capture is not there, as on the command line."""

COLUMNS = "method string, exchange string, routing_key string, body_size long"

DIRECTIONS = {
    "published": ("basic.publish",),
    "delivered": ("basic.deliver", "basic.get-ok"),
    "returned": ("basic.return",),
}
"""Prefix of a pair of columns -> methods that are counted in them."""


@dataclass(frozen=True)
class Config:
    """What to read.

    Attributes:
        inputs: Captures, folders or patterns.
        ports: Comma-separated ports to follow; empty for any, by content.
    """

    inputs: tuple[str, ...]
    ports: str = ""


def build(spark: SparkSession, config: Config) -> DataFrame:
    """One row for each exchange and routing key: counts of messages, and octets of their bodies.

    Columns: exchange, routing_key, then published, published_octets, delivered, delivered_octets,
    returned, returned_octets (long, 0 where there were none). The default exchange is "".
    """
    from pyspark.sql import functions as f

    rows = (
        spark.read.format("amqp")
        .option("table", "messages")
        .option("port", config.ports)
        .schema(COLUMNS)
        .load(list(config.inputs))
    )
    sums = []
    for name, methods in DIRECTIONS.items():
        mine = f.col("method").isin(*methods)
        sums.append(f.count_if(mine).alias(name))
        octets = f.sum(f.when(mine, f.col("body_size")))
        sums.append(f.coalesce(octets, f.lit(0)).alias(f"{name}_octets"))
    return rows.groupBy("exchange", "routing_key").agg(*sums)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job: show the busiest rows, or write them all to a folder; the exit code."""
    parser = argparse.ArgumentParser(prog="amqpsniff-traffic", description=__doc__)
    parser.add_argument("inputs", nargs="+", metavar="CAPTURE", help="file, folder or pattern")
    parser.add_argument("-o", "--output", metavar="DIR", help="write there instead of showing")
    parser.add_argument("--format", choices=("parquet", "json", "csv"), default="parquet")
    parser.add_argument("--port", default="", help="ports to follow, comma-separated")
    parser.add_argument("--master", default="local[*]", help="Spark master")
    parser.add_argument("--rows", type=int, default=20, help="how many rows to show")
    arguments = parser.parse_args(argv)

    from amqpsniff.capture import expand

    try:
        expand(arguments.inputs)
    except CaptureError as error:
        print(f"amqpsniff: {error}", file=sys.stderr)
        return UNREADABLE

    from .session import session

    spark = session(arguments.master, "amqpsniff traffic")
    try:
        frame = build(spark, Config(tuple(arguments.inputs), arguments.port))
        if arguments.output:
            frame.write.mode("overwrite").format(arguments.format).save(arguments.output)
        else:
            frame.orderBy("published", "delivered", ascending=False).show(arguments.rows, False)
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
