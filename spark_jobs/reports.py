"""The reports on Spark: `amqpsniff.analysis.report_tables` over the tables of a batch, or captures.

    spark-submit spark_jobs/reports.py latency tables/

shows the first rows of a report; `-o` writes all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from amqpsniff.analysis.report_tables import (
    REPORTS,
    TOPOLOGY,
    find,
    schema,
)
from amqpsniff.archive.batch_reports import MAX_ROWS, Result, bucket_of, check_report
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.listing import list_captures
from amqpsniff.archive.output_folder import Manifest, manifest_of
from amqpsniff.archive.surveys import survey_files
from amqpsniff.errors import UsageError
from amqpsniff.spark_jobs.errors import saving, tell
from amqpsniff.spark_jobs.options import json_object
from amqpsniff.spark_jobs.tables import read_table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

BATCH_ROWS = 8_192
"""Rows of the graph's traffic that the driver holds at a time."""


@dataclass(frozen=True)
class Config:
    """The subject of a report.

    Attributes:
        inputs: The folder that a batch has written; or captures, folders, patterns.
        ports: For captures: comma-separated ports to follow; empty for any, by content.
        bucket_seconds: Length of a time bucket; 0 to choose one by the time that there is.
        rows: Rows that are shown.
        storage: Options for fsspec, if it reads the folder.
    """

    inputs: tuple[str, ...]
    ports: str = ""
    bucket_seconds: int = 0
    rows: int = 20
    storage: Mapping[str, Any] = field(default_factory=dict)


def dataframe(spark: SparkSession, name: str, config: Config) -> DataFrame:
    """The rows of a report; raises UsageError for a report that is not there.

    Those of `topology` are made at once, the others when Spark is asked for them.
    """
    report, manifest = find(name), _manifest(config)
    if manifest is not None:
        check_report(name, manifest)
        if config.ports:
            raise UsageError(f"--port is for captures, and {config.inputs[0]} is of a batch")
    tables = {
        table: _load(spark, config, manifest, table, columns)
        for table, columns in report.reads().items()
    }
    names = {table: f"{{{table}}}" for table in tables}
    bucket = config.bucket_seconds or _bucket(config, manifest)
    rows = spark.sql(report.statement(bucket, names), **tables)
    return _graph(spark, rows) if name == TOPOLOGY else rows


def _graph(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """The edges that the rows of `topology` show, made here of some rows at a time."""
    from amqpsniff.analysis import topology_edges

    first, *others = topology_edges.ORDER
    in_order = rows.orderBy(rows[first].asc_nulls_last(), *others).toLocalIterator()
    made = topology_edges.edges(_batches(in_order, to_arrow_schema(rows.schema)))
    return spark.createDataFrame(made)


def _batches(rows: Iterator[Row], kind: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    while some := [row.asDict() for row in islice(rows, BATCH_ROWS)]:
        yield pa.RecordBatch.from_pylist(some, kind)


def _manifest(config: Config) -> Manifest | None:
    """The manifest of the batch that is read; None for captures."""
    if len(config.inputs) != 1:
        return None
    return manifest_of(Folder(config.inputs[0], config.storage))


def _bucket(config: Config, manifest: Manifest | None) -> int:
    """Seconds of a time bucket with which there are few enough of them."""
    if manifest is None:
        files = survey_files(list_captures(config.inputs, config.storage), dict(config.storage))
        manifest = {"captures": [vars(one) for one in files]}
    return bucket_of(manifest)


def _load(
    spark: SparkSession,
    config: Config,
    manifest: Manifest | None,
    table: str,
    names: Iterable[str],
) -> DataFrame:
    if manifest is not None:
        return read_table(spark, config.inputs[0], table, names, config.storage, manifest)
    whole = from_arrow_schema(schema(table))
    columns = StructType([whole[name] for name in names])
    source = spark.read.format("amqp").option("table", table).option("port", config.ports)
    source = source.option("storageOptions", json.dumps(dict(config.storage)))
    return source.schema(columns).load(list(config.inputs))


def make(spark: SparkSession, name: str, config: Config) -> Result:
    """Run a report; raises UsageError for a report that is not there."""
    rows = dataframe(spark, name, config).limit(MAX_ROWS + 1).toArrow()
    return Result.of(name, rows, config.rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one report with command-line arguments; the exit code."""
    given = _parser().parse_args(argv)
    from amqpsniff.spark_jobs.session import session

    try:
        storage = json_object("--storage", given.storage)
        config = Config(tuple(given.inputs), given.port, given.bucket, given.rows, storage)
        find(given.name)
        if _manifest(config) is None:
            list_captures(config.inputs, config.storage)
        spark = session(given.master, f"amqpsniff {given.name}", brief=True)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            if given.output:
                rows = dataframe(spark, given.name, config)
                writer = rows.write.mode("overwrite").format(given.format)
                with saving(given.output):
                    writer.option("header", "true").save(given.output)
            else:
                print(make(spark, given.name, config).as_text())
        finally:
            spark.stop()
    except Exception as error:  # noqa: BLE001 (raised again where it is not understood)
        return tell(error)
    return 0


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {one.name:12}{one.about}" for one in REPORTS.values())
    parser = argparse.ArgumentParser(
        prog="amqpsniff-report",
        description=__doc__,
        epilog=f"reports:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="the report")
    add("inputs", nargs="+", metavar="INPUT", help="a folder that a batch has written, or captures")
    add("-o", "--output", metavar="DIR", help="write all rows there instead of showing some")
    add("--format", choices=("parquet", "json", "csv"), default="parquet")
    add("--port", default="", help="for captures: ports to follow, comma-separated")
    add("--bucket", type=int, default=0, metavar="SECONDS", help="time bucket")
    add("--storage", default="{}", metavar="JSON", help="options for fsspec")
    add("--master", help="Spark master; default: what spark-submit says")
    add("--rows", type=int, default=20, help="how many rows to show")
    return parser


if __name__ == "__main__":
    # spark-submit runs this file by itself; what it belongs to is the installed package
    from amqpsniff.spark_jobs.reports import main as installed

    sys.exit(installed())
