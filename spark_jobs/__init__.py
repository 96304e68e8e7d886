"""Batches of captures on Spark, installed as `amqpsniff.spark_jobs`: a source and a job a file.

from amqpsniff.spark_jobs import register

register(spark)
spark.read.format("amqp").option("table", "messages").load("captures/")
"""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from amqpsniff.options import Options

__all__ = ["archive", "register"]


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("amqp")` known to a session; see `AmqpDataSource` for its options.

    Warns where workers run another Python than this one, which may not have this package.
    """
    from .source import AmqpDataSource

    spark.dataSource.register(AmqpDataSource)
    context: SparkContext | None = getattr(spark, "_sc", None)  # there is none over Spark Connect
    if context is not None and (context.master or "").startswith("local"):
        _warn_of_another_python(context)  # on another machine it cannot be seen


def archive(
    spark: SparkSession,
    captures: str | Sequence[str],
    output: str,
    *,
    links: bool = False,
    frameworks: bool = False,
    options: Options | None = None,
    tables: Iterable[str] = (),
    storage: Mapping[str, Any] | None = None,
    replace: bool = False,
    variant: bool = False,
) -> dict[str, DataFrame]:
    """Bring the tables of captures in the folder `output` up to date, in tasks of this session.

    It does what `amqpsniff batch` does, in an existing session. Gives the tables by name,
    `errors` among them, as they are now; `tables` names some of them. With `variant` their columns
    of JSON are VARIANT. Other arguments and errors are those of `amqpsniff.archive.Batch`. Over
    Spark Connect, which runs no such tasks, UsageError.
    """
    from amqpsniff.archive import Batch
    from amqpsniff.errors import UsageError
    from amqpsniff.tables.schema import TABLES

    from .runner import SparkRunner
    from .tables import read_table

    context: SparkContext | None = getattr(spark, "_sc", None)
    if context is None:
        raise UsageError("Spark Connect runs no tasks of a batch: run `amqpsniff batch` there")
    register(spark)
    runner = SparkRunner(context)
    inputs = [captures] if isinstance(captures, str) else captures
    names = tuple(tables) or tuple(TABLES)
    batch = Batch(
        inputs, output, options, names, links=links, frameworks=frameworks, storage=storage,
        replace=replace,
    )  # fmt: skip
    batch.run(runner, cores=runner.cores)
    return {
        name: read_table(spark, output, name, storage=storage, variant=variant)
        for name in (*names, "errors")
    }


def _warn_of_another_python(context: SparkContext) -> None:
    python = shutil.which(context.pythonExec)
    if python is None or not Path(python).samefile(sys.executable):
        warnings.warn(
            f"workers run {python or context.pythonExec}; unless it has amqpsniff too, set "
            f"PYSPARK_PYTHON={sys.executable} before the session begins",
            stacklevel=3,
        )
