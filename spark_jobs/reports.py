"""Reports: what the jobs of this folder have in common.

A job is a module with `TITLE`, `build` (the result as a DataFrame, the rows that matter most first)
and `charts` (what is worth seeing of it). It reads tables that a batch has written, or captures.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from amqpsniff.archive.listing import MANIFEST
from amqpsniff.archive.output import DAY_NS
from amqpsniff.archive.places import Folder, whole_path
from amqpsniff.errors import UsageError
from amqpsniff.report.tables import plain

from .elsewhere import java_knows, read_tables
from .failures import saving, tell
from .options import json_object

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REPORTS = (
    "traffic", "latency", "saturation", "redelivery", "losses", "churn", "closes", "topology",
    "quality", "findings",
)  # fmt: skip
"""The jobs, each a module of this package, in the order in which the page shows them."""

MOST_ROWS = 100_000
"""Rows of a report that are taken to the driver, to be shown and written as one file; a job's own
`-o` writes all of them."""

BUCKETS = (1, 10, 60, 600, 3_600, 86_400)
"""Lengths of the steps in which a report goes through time, in seconds."""

MOST_BUCKETS = 120
"""Steps of a chart that can be told from each other."""

_PATTERN = re.compile(r"[\[\]{}*?\\]")
"""What Spark takes for a pattern in the name of a folder."""


@dataclass(frozen=True)
class Config:
    """What a report is about.

    Attributes:
        inputs: The folder that a batch has written; or captures, folders, patterns.
        ports: For captures: comma-separated ports to follow; empty for any, by content.
        bucket_seconds: Length of a step in time; 0 to choose one by the time that there is.
        rows: Rows that are shown.
        storage: What fsspec is told, where the folder is read by it.
    """

    inputs: tuple[str, ...]
    ports: str = ""
    bucket_seconds: int = 0
    rows: int = 20
    storage: Mapping[str, Any] = field(default_factory=dict)


def load(spark: SparkSession, config: Config, table: str, columns: str) -> DataFrame:
    """Columns of a table, given as `name type, …`; empty when the batch has not written it."""
    manifest = manifest_of(config)
    names = [one.split()[0] for one in columns.split(",")]
    if manifest is None:
        source = spark.read.format("amqp").option("table", table).option("port", config.ports)
        source = source.option("storageOptions", json.dumps(dict(config.storage)))
        return source.schema(columns).load(list(config.inputs)).select(*names)
    base = whole_path(config.inputs[0]).rstrip("/")
    if "format" in manifest and table in manifest["tables"]:  # Spark has written it
        return spark.read.format(manifest["format"]).load(f"{base}/{table}").select(*names)
    written = manifest["tables"].get(table, ())
    if not written:
        return spark.createDataFrame([], columns)
    if config.storage or _PATTERN.search(base) or not java_knows(spark, base):
        return read_tables(spark, base, written, columns, config.storage)
    files = [f"{base}/{name}" for name in written]
    return spark.read.schema(columns).option("basePath", f"{base}/{table}").parquet(*files)


def manifest_of(config: Config) -> dict[str, Any] | None:
    """The manifest of the batch that is read; None when captures are."""
    if len(config.inputs) != 1:
        return None
    octets = Folder(config.inputs[0], config.storage).read(MANIFEST)
    manifest: dict[str, Any] | None = None if octets is None else json.loads(octets)
    return manifest


def bucket(spark: SparkSession, config: Config, column: str = "ts_ns") -> Column:
    """The beginning of the step in which a time lies, as a timestamp."""
    from pyspark.sql import functions as f

    seconds = config.bucket_seconds or _bucket_seconds(spark, config)
    whole = f.floor(f.col(column) / f.lit(seconds * 1_000_000_000)) * f.lit(seconds)
    return f.timestamp_seconds(whole)


def day(column: str = "ts_ns") -> Column:
    """The day of a time in UTC, whatever zone the session is in; null without a time."""
    from pyspark.sql import functions as f

    days = f"({column} - pmod({column}, {DAY_NS})) div {DAY_NS}"  # of integers, so it is exact
    return f.date_from_unix_date(f.expr(days).cast("int"))


def _bucket_seconds(spark: SparkSession, config: Config) -> int:
    manifest = manifest_of(config)
    if manifest is not None:
        captures = manifest["captures"]
        times = [one[end] for one in captures for end in ("first_ns", "last_ns")]
        known = [time for time in times if time is not None]
        ends = (min(known), max(known)) if known else (0, 0)
    else:
        from pyspark.sql import functions as f

        rows = load(spark, config, "connections", "start_ns long, end_ns long")
        found = rows.agg(f.min("start_ns"), f.max("end_ns")).first()
        ends = (found[0] or 0, found[1] or 0) if found else (0, 0)
    span = (ends[1] - ends[0]) / 1e9
    return next((one for one in BUCKETS if span / one <= MOST_BUCKETS), BUCKETS[-1])


def sent_octets() -> Column:
    """Octets of a message's body that were sent: those announced, or seen of one that never ended.

    Needs the columns body_size, body_captured and status.
    """
    from pyspark.sql import functions as f

    never_ended = (f.col("status") == "incomplete") & f.col("body_size").isNotNull()
    return f.when(never_ended, f.col("body_captured")).otherwise(f.col("body_size"))


def host(column: str = "client") -> Column:
    """An `address:port` without its port."""
    from pyspark.sql import functions as f

    return f.regexp_replace(column, ":[0-9]+$", "")


@dataclass
class Report:
    """A job's result: `rows` are dicts of plain values, `more` says that there are others."""

    name: str
    title: str
    about: str
    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool
    charts: list[dict[str, Any] | None]
    shown: int
    table: Any

    def write(self, folder: Folder) -> None:
        """Write the rows as CSV and Parquet to the folder `reports` of a batch."""
        from pyarrow import csv, parquet

        with folder.create(f"reports/{self.name}.parquet") as file:
            parquet.write_table(self.table, file)
        with folder.create(f"reports/{self.name}.csv") as file:
            csv.write_csv(self.table, file)

    def as_json(self) -> dict[str, Any]:
        """What is to be shown of it, for a program that shows it."""
        shown = [[plain(row[name]) for name in self.columns] for row in self.rows[: self.shown]]
        return {
            "report": self.name,
            "title": self.title,
            "columns": self.columns,
            "rows": shown,
            "total": f"{len(self.rows)}{'+' if self.more else ''}",
        }

    def as_text(self) -> str:
        """What is to be shown of it, as a table of text."""
        shown = [[plain(row[name]) for name in self.columns] for row in self.rows[: self.shown]]
        lines = [self.columns, *shown]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        made = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
                for line in lines]  # fmt: skip
        return "\n".join([f"{self.title}", *(line.rstrip() for line in made)])


def make(spark: SparkSession, name: str, config: Config) -> Report:
    """Run a job; raises UsageError for a name that is not there."""
    if name not in REPORTS:
        raise UsageError(f"no report `{name}`; there are {', '.join(REPORTS)}")
    job = import_module(f"amqpsniff.spark_jobs.{name}")
    table = job.build(spark, config).limit(MOST_ROWS + 1).toArrow()
    more = table.num_rows > MOST_ROWS
    table = table.slice(0, MOST_ROWS)
    rows = table.to_pylist()
    about = (job.build.__doc__ or "").partition("\n")[0]
    charts = job.charts(rows)
    names = list(table.column_names)
    return Report(name, job.TITLE, about, names, rows, more, charts, config.rows, table)


def write_page(folder: Folder, reports: Sequence[Report]) -> None:
    """Write the page with all reports to a batch's folder."""
    from .page import page

    octets = folder.read(MANIFEST)
    manifest = json.loads(octets) if octets else {}
    folder.write("report.html", page(manifest, reports).encode())


def run_job(name: str, argv: Sequence[str] | None) -> int:
    """Run one job with command-line arguments; the exit code."""
    given = _parser(name).parse_args(argv)
    from .session import session

    try:
        storage = json_object("--storage", given.storage)
        config = Config(tuple(given.inputs), given.port, given.bucket, given.rows, storage)
        _check(config)
        spark = session(given.master, f"amqpsniff {name}", brief=True)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            if given.output:
                build: Callable[..., DataFrame]
                build = import_module(f"amqpsniff.spark_jobs.{name}").build
                writer = build(spark, config).write.mode("overwrite").format(given.format)
                with saving(given.output):
                    writer.option("header", "true").save(given.output)
            else:
                print(make(spark, name, config).as_text())
        finally:
            spark.stop()
    except Exception as error:  # noqa: BLE001 (raised again where it is not understood)
        return tell(error)
    return 0


def _check(config: Config) -> None:
    from amqpsniff.archive.listing import list_captures

    if manifest_of(config) is None:
        list_captures(config.inputs, config.storage)


def _parser(name: str) -> argparse.ArgumentParser:
    job = import_module(f"amqpsniff.spark_jobs.{name}")
    parser = argparse.ArgumentParser(prog=f"amqpsniff-{name}", description=job.__doc__)
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="a folder that a batch has written, or captures")
    add("-o", "--output", metavar="DIR", help="write all rows there instead of showing some")
    add("--format", choices=("parquet", "json", "csv"), default="parquet")
    add("--port", default="", help="for captures: ports to follow, comma-separated")
    add("--bucket", type=int, default=0, metavar="SECONDS", help="step in time")
    add("--storage", default="{}", metavar="JSON", help="what fsspec is told")
    add("--master", help="Spark master; default: what spark-submit says")
    add("--rows", type=int, default=20, help="how many rows to show")
    return parser
