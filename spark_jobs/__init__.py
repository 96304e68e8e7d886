"""Batches of captures on Spark, installed as `amqpsniff.spark_jobs`: a source and a job a file.

from amqpsniff.spark_jobs import register

register(spark)
spark.read.format("amqp").option("table", "messages").load("captures/")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("amqp")` known to a session; see `AmqpDataSource` for its options."""
    from .parquet_source import TablesSource
    from .source import AmqpDataSource

    spark.dataSource.register(AmqpDataSource)
    spark.dataSource.register(TablesSource)
