"""Batches of captures on Spark, installed as `amqpsniff.spark_jobs`: a source and a job a file.

from amqpsniff.spark_jobs import register

register(spark)
spark.read.format("amqp").option("table", "messages").load("captures/")
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("amqp")` known to a session; see `AmqpDataSource` for its options.

    Warns where workers run another Python than this one, which may not have this package.
    """
    from .parquet_source import TablesSource
    from .source import AmqpDataSource

    spark.dataSource.register(AmqpDataSource)
    spark.dataSource.register(TablesSource)
    context: SparkContext | None = getattr(spark, "_sc", None)  # there is none over Spark Connect
    if context is not None and (context.master or "").startswith("local"):
        _warn_of_another_python(context)  # on another machine it cannot be seen


def _warn_of_another_python(context: SparkContext) -> None:
    python = shutil.which(context.pythonExec)
    if python is None or not Path(python).samefile(sys.executable):
        warnings.warn(
            f"workers run {python or context.pythonExec}; unless it has amqpsniff too, set "
            f"PYSPARK_PYTHON={sys.executable} before the session begins",
            stacklevel=3,
        )
