"""Tables in formats that only Spark knows (Delta Lake's own, Iceberg).

Workers make them as Parquet first, below the output, as every batch does: a run decodes only what
is new. Spark then writes all of it anew. The manifest is written last; while tables are written
there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpsniff.archive.batch import Batch, Summary
from amqpsniff.archive.output_folder import clear, write_manifest
from amqpsniff.archive.task_io import DAY_NS, TIMES
from amqpsniff.tables.file_errors import schema as error_schema
from amqpsniff.tables.schema import TABLES, batch_schema

from .errors import saving

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DIRECT = "_work/direct"
"""Folder of the Parquet files that Spark reads; kept for the next run."""


def write_frames(spark: SparkSession, batch: Batch, form: str) -> Summary:
    """Write every table of a batch as a DataFrame, partitioned by capture date."""
    with batch:
        return _write_frames(spark, batch, form)


def _write_frames(spark: SparkSession, batch: Batch, form: str) -> Summary:
    from .runner import SparkRunner

    batch.find()
    clear(batch.folder, set(TABLES).difference(batch.tables))
    direct = Batch(
        batch.inputs,
        f"{batch.folder.name}/{DIRECT}",
        batch.given,
        batch.tables,
        links=batch.links,
        frameworks=batch.frameworks,
        storage=batch.storage,
        task_bytes=batch.task_bytes,
    )
    runner = SparkRunner(spark.sparkContext)
    summary = direct.run(runner, cores=runner.cores)
    for table in [*batch.tables, "errors"]:
        target = f"{batch.folder.name}/{table}"
        rows = _made(spark, direct, table)
        writer = rows.write
        if table != "errors":
            dated = rows.withColumn("capture_date", day(TIMES.get(table, "ts_ns")))
            writer = dated.write.partitionBy("capture_date")
        with saving(target):
            writer.mode("overwrite").format(form).save(target)
    batch.plan, batch.results = direct.plan, direct.results
    batch.lock.check()
    files = dict.fromkeys(summary.rows, ())
    write_manifest(
        batch.folder, batch.inputs, batch.plan.files, files, summary.rows, form,
        frameworks=batch.frameworks,
    )  # fmt: skip
    return summary


def _made(spark: SparkSession, direct: Batch, table: str) -> DataFrame:
    """A table that workers have written."""
    from .tables import read_table

    more = {"links": direct.links, "frameworks": direct.frameworks}
    schema = error_schema() if table == "errors" else batch_schema(table, **more)
    return read_table(spark, direct.folder.name, table, schema.names, direct.storage)


def day(column: str = "ts_ns") -> Column:
    """The day of a time in UTC, in any time zone of the session; null without a time."""
    from pyspark.sql import functions as f

    days = f"({column} - pmod({column}, {DAY_NS})) div {DAY_NS}"  # of integers, so it is exact
    return f.date_from_unix_date(f.expr(days).cast("int"))
