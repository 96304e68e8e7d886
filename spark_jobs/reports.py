"""The reports on Spark: `amqpsniff.analysis.report_tables` over the tables of a batch, or captures.

    spark-submit spark_jobs/reports.py latency tables/

shows the first rows of a report; `-o` writes all of them.
"""

from __future__ import annotations

import argparse
import json
import re
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
    Report,
    bucket_for,
    find,
    schema,
)
from amqpsniff.archive.filesystem import Folder, whole_path
from amqpsniff.archive.listing import MANIFEST, list_captures
from amqpsniff.archive.survey_cache import survey_files
from amqpsniff.report.batch_page import page
from amqpsniff.report.tables import plain
from amqpsniff.spark_jobs.errors import saving, tell
from amqpsniff.spark_jobs.options import json_object
from amqpsniff.spark_jobs.parquet_source import java_knows, read_tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

MAX_ROWS = 100_000
"""Rows of a report that are taken to the driver, to be shown and written as one file; `-o` of the
job writes all of them."""

BATCH_ROWS = 8_192
"""Rows of the graph's traffic that the driver holds at a time."""

_PATTERN = re.compile(r"[\[\]{}*?\\]")
"""What Spark takes for a pattern in the name of a folder."""


Manifest = dict[str, Any]


@dataclass(frozen=True)
class Config:
    """What a report is about.

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
    report, manifest = find(name), manifest_of(config)
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


def manifest_of(config: Config) -> Manifest | None:
    """The manifest of the batch that is read; None for captures."""
    if len(config.inputs) != 1:
        return None
    content = Folder(config.inputs[0], config.storage).read(MANIFEST)
    return None if content is None else dict(json.loads(content))


def _bucket(config: Config, manifest: Manifest | None) -> int:
    """Seconds of a time bucket with which there are few enough of them."""
    if manifest is not None:
        ends = [(one["first_ns"], one["last_ns"]) for one in manifest["captures"]]
    else:
        files = survey_files(list_captures(config.inputs, config.storage), dict(config.storage))
        ends = [(one.first_ns, one.last_ns) for one in files]
    times = [time for both in ends for time in both if time is not None]
    return bucket_for(min(times, default=None), max(times, default=None))


def _load(
    spark: SparkSession,
    config: Config,
    manifest: Manifest | None,
    table: str,
    names: Iterable[str],
) -> DataFrame:
    """Columns of a table; empty if the batch has not written it."""
    whole = from_arrow_schema(schema(table))
    columns = StructType([whole[name] for name in names])
    if manifest is None:
        source = spark.read.format("amqp").option("table", table).option("port", config.ports)
        source = source.option("storageOptions", json.dumps(dict(config.storage)))
        return source.schema(columns).load(list(config.inputs))
    base = whole_path(config.inputs[0]).rstrip("/")
    if "format" in manifest and table in manifest["tables"]:  # Spark has written it
        return spark.read.format(manifest["format"]).load(f"{base}/{table}").select(*names)
    written = manifest["tables"].get(table, ())
    if not written:
        return spark.createDataFrame([], columns)
    if config.storage or _PATTERN.search(base) or not java_knows(spark, base):
        return read_tables(spark, base, written, columns, config.storage)
    files = [f"{base}/{name}" for name in written]
    rows = spark.read.schema(columns).option("basePath", f"{base}/{table}").parquet(*files)
    return rows.select(*names)


@dataclass
class Result:
    """The first rows of a report; `more` says that there are others, `shown` how many to show."""

    report: Report
    table: pa.Table
    more: bool
    shown: int

    def write(self, folder: Folder) -> None:
        """Write the rows as CSV and Parquet to the folder `reports` of a batch."""
        from pyarrow import csv, parquet

        with folder.create(f"reports/{self.report.name}.parquet") as file:
            parquet.write_table(self.table, file)
        with folder.create(f"reports/{self.report.name}.csv") as file:
            csv.write_csv(self.table, file)

    def as_json(self) -> dict[str, Any]:
        """The rows to show, for a program that shows them."""
        return {
            "report": self.report.name,
            "title": self.report.title,
            "columns": self.table.column_names,
            "rows": self._cells(),
            "total": f"{self.table.num_rows}{'+' if self.more else ''}",
        }

    def as_text(self) -> str:
        """The rows to show, as a table of text."""
        lines = [self.table.column_names, *self._cells()]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        made = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
                for line in lines]  # fmt: skip
        return "\n".join([self.report.title, *(line.rstrip() for line in made)])

    def _cells(self) -> list[list[str]]:
        rows = self.table.slice(0, self.shown).to_pylist()
        return [[plain(value) for value in row.values()] for row in rows]


def make(spark: SparkSession, name: str, config: Config) -> Result:
    """Run a report; raises UsageError for a report that is not there."""
    table = dataframe(spark, name, config).limit(MAX_ROWS + 1).toArrow()
    more = table.num_rows > MAX_ROWS
    return Result(find(name), table.slice(0, MAX_ROWS), more, config.rows)


def write_page(folder: Folder, results: Iterable[Result]) -> None:
    """Write the page with all reports to a batch's folder."""
    content = folder.read(MANIFEST)
    manifest = json.loads(content) if content else {}
    tables = {one.report.name: one.table for one in results}
    folder.write("report.html", page(manifest, tables).encode())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one report with command-line arguments; the exit code."""
    given = _parser().parse_args(argv)
    from amqpsniff.spark_jobs.session import session

    try:
        storage = json_object("--storage", given.storage)
        config = Config(tuple(given.inputs), given.port, given.bucket, given.rows, storage)
        find(given.name)
        if manifest_of(config) is None:
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
