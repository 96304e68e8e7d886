"""The reports on Spark: `amqpsniff.analysis.report_tables` over the tables of a batch.

    spark-submit spark_jobs/reports.py latency tables/

shows the first rows of a report; `-o` writes all of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema

from amqpsniff.analysis.report_tables import REPORTS, TOPOLOGY, find
from amqpsniff.archive.batch_reports import MAX_ROWS, FirstRows, bucket_of, check_report
from amqpsniff.archive.filesystem import Folder, StorageOptions
from amqpsniff.archive.output_folder import require_manifest
from amqpsniff.spark_jobs.errors import saving, tell
from amqpsniff.spark_jobs.options import json_object
from amqpsniff.spark_jobs.tables import read_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

BATCH_ROWS = 8_192
"""Rows of the graph's traffic that the driver holds at a time."""


def dataframe(
    spark: SparkSession,
    name: str,
    output: str,
    bucket_seconds: int = 0,
    storage: StorageOptions | None = None,
) -> DataFrame:
    """The rows of a report over the folder `output` of a batch.

    A time bucket has `bucket_seconds`; 0 to choose by the time that there is. `storage` are options
    for fsspec, if it reads the folder. Rows of `topology` are made at once, the others when Spark
    is asked for them. Raises UsageError for an unknown report, and for a folder without tables of a
    batch.
    """
    report, manifest = find(name), require_manifest(Folder(output, storage))
    check_report(name, manifest)
    tables = {
        table: read_table(spark, output, table, columns, storage, manifest)
        for table, columns in report.reads().items()
    }
    names = {table: f"{{{table}}}" for table in tables}
    statement = report.statement(bucket_seconds or bucket_of(manifest), names)
    rows = spark.sql(statement, **tables)
    return _graph(spark, rows) if name == TOPOLOGY else rows


def _graph(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The edges that the rows of `topology` show, made here of some rows at a time."""
    from amqpsniff.analysis import topology_edges

    first, *others = topology_edges.ORDER
    in_order = rows.orderBy(rows[first].asc_nulls_last(), *others).toLocalIterator()
    edges = topology_edges.edges(_batches(in_order, to_arrow_schema(rows.schema)))
    return spark.createDataFrame(edges)


def _batches(rows: Iterator[Row], kind: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    while batch := [row.asDict() for row in islice(rows, BATCH_ROWS)]:
        yield pa.RecordBatch.from_pylist(batch, kind)


def make(
    spark: SparkSession,
    name: str,
    output: str,
    shown: int,
    bucket_seconds: int = 0,
    storage: StorageOptions | None = None,
) -> FirstRows:
    """Run a report and show its first rows; see `dataframe`."""
    rows = dataframe(spark, name, output, bucket_seconds, storage)
    return FirstRows.of(name, rows.limit(MAX_ROWS + 1).toArrow(), shown)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one report with command-line arguments; the exit code."""
    arguments = parser().parse_args(argv)
    from amqpsniff.spark_jobs.session import session

    try:
        storage = json_object("--storage", arguments.storage)
        check_report(arguments.name, require_manifest(Folder(arguments.tables, storage)))
        spark = session(arguments.master, f"amqpsniff {arguments.name}", brief=True)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            if arguments.output:
                rows = dataframe(spark, arguments.name, arguments.tables, arguments.bucket, storage)
                writer = rows.write.mode("overwrite").format(arguments.format)
                with saving(arguments.output):
                    writer.option("header", "true").save(arguments.output)
            else:
                report = make(
                    spark,
                    arguments.name,
                    arguments.tables,
                    arguments.rows,
                    arguments.bucket,
                    storage,
                )
                print(report.as_text())
        finally:
            spark.stop()
    except Exception as error:  # noqa: BLE001 (raised again where it is not understood)
        return tell(error)
    return 0


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {report.name:12}{report.about}" for report in REPORTS.values())
    result = argparse.ArgumentParser(
        prog="amqpsniff-report",
        description=__doc__,
        epilog=f"reports:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = result.add_argument
    add("name", metavar="NAME", help="the report")
    add("tables", metavar="TABLES", help="a folder that a batch has written")
    add("-o", "--output", metavar="DIR", help="write all rows there instead of showing some")
    add("--format", choices=("parquet", "json", "csv"), default="parquet")
    add("--bucket", type=int, default=0, metavar="SECONDS", help="time bucket")
    add("--storage", default="{}", metavar="JSON", help="options for fsspec")
    add("--master", help="Spark master; default: what spark-submit says")
    add("--rows", type=int, default=20, help="how many rows to show")
    return result


if __name__ == "__main__":
    # spark-submit runs this file alone; its package is the installed one
    from amqpsniff.spark_jobs.reports import main as installed

    sys.exit(installed())
