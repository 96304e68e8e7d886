"""Reports over the tables of a batch.

Where the tables are on this machine DuckDB makes the rows, elsewhere Spark does. Here is also what
is shown and written of them, by either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.report_tables import DUCKDB_SETUP, Report, bucket_for, find, schema
from amqpsniff.errors import UsageError
from amqpsniff.report.batch_page import page
from amqpsniff.report.tables import plain
from amqpsniff.tables.schema import LINKED, MEANINGS, TABLES, batch_schema

from .filesystem import Folder
from .output_folder import Manifest, require_manifest

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 100_000
"""Rows of a report that are shown and written as one file."""


def files_of(manifest: Manifest, table: str, columns: Iterable[str] = ()) -> list[str]:
    """Names of the files of a table; raises UsageError for a table, or one of some columns, that
    the batch has not written.
    """
    tables: dict[str, list[str]] = manifest["tables"]
    if table not in tables:
        raise UsageError(
            f"the table `{table}` is not in this archive, which has {', '.join(tables)}; "
            "run `batch` with it among --tables"
        )
    options = manifest.get("options", ())
    links, frameworks = "--links" in options, "--frameworks" in options
    names = batch_schema(table, links=links, frameworks=frameworks).names if table in TABLES else ()
    lacking = [column for column in columns if table in TABLES and column not in names]
    if lacking:
        groups = {"--links": LINKED, "--frameworks": MEANINGS}
        needed = [name for name, group in groups.items() if not group.isdisjoint(lacking)]
        raise UsageError(
            f"the table `{table}` of this archive has no column {', '.join(lacking)}; "
            + (f"run `batch` with {' '.join(needed)}" if needed else "only captures give it")
        )
    return tables[table]


def check_report(name: str, manifest: Manifest) -> None:
    """Raise UsageError for a report of tables or columns that a batch has not written."""
    for table, columns in find(name).reads().items():
        files_of(manifest, table, columns)


def bucket_of(manifest: Manifest) -> int:
    """Seconds of a time bucket with which the captures of a batch have few enough of them."""
    ends = [(capture["first_ns"], capture["last_ns"]) for capture in manifest["captures"]]
    times = [time for span in ends for time in span if time is not None]
    return bucket_for(min(times, default=None), max(times, default=None))


@dataclass
class FirstRows:
    """The first rows of a report; `has_more`: there are others, `shown`: number of rows to show."""

    report: Report
    table: pa.Table
    has_more: bool
    shown: int

    @classmethod
    def of(cls, name: str, rows: pa.Table, shown: int) -> FirstRows:
        """The first of these rows."""
        return cls(find(name), rows.slice(0, MAX_ROWS), rows.num_rows > MAX_ROWS, shown)

    def write(self, folder: Folder) -> None:
        """Write the rows as CSV and Parquet to the folder `reports` of a batch."""
        from pyarrow import csv, parquet

        with folder.create(f"reports/{self.report.name}.parquet") as file:
            parquet.write_table(self.table, file)
        with folder.create(f"reports/{self.report.name}.csv") as file:
            csv.write_csv(self.table, file)

    def as_json(self) -> dict[str, Any]:
        """The rows to show, for a program that shows them; `times` are columns of UTC."""
        from pyarrow.types import is_timestamp

        return {
            "report": self.report.name,
            "title": self.report.title,
            "columns": self.table.column_names,
            "times": [field.name for field in self.table.schema if is_timestamp(field.type)],
            "rows": self._cells(),
            "total": f"{self.table.num_rows}{'+' if self.has_more else ''}",
        }

    def as_text(self) -> str:
        """The rows to show, as a table of text."""
        lines = [self.table.column_names, *self._cells()]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
                for line in lines]  # fmt: skip
        return "\n".join([self.report.title, *(line.rstrip() for line in padded)])

    def _cells(self) -> list[list[str]]:
        rows = self.table.slice(0, self.shown).to_pylist()
        return [[plain(value) for value in row.values()] for row in rows]


def make_here(folder: Folder, name: str, shown: int, bucket_seconds: int = 0) -> FirstRows:
    """Make a report by DuckDB, of files on this machine; raises UsageError for an unknown report,
    and for a folder without tables of a batch.
    """
    import pyarrow as pa

    from amqpsniff.tables.query import answer_files

    report = find(name)
    manifest = require_manifest(folder)
    check_report(name, manifest)
    tables = {}
    for table, columns in report.reads().items():
        files = [Path(folder.name, file) for file in files_of(manifest, table)]
        tables[table] = pa.schema([schema(table).field(column) for column in columns]), files
    statement = report.statement(bucket_seconds or bucket_of(manifest))
    return FirstRows.of(name, report.finished(answer_files(statement, tables, DUCKDB_SETUP)), shown)


def write_page(folder: Folder, results: Iterable[FirstRows]) -> None:
    """Write the page with all reports to a batch's folder."""
    tables: Mapping[str, pa.Table] = {result.report.name: result.table for result in results}
    folder.write("report.html", page(require_manifest(folder), tables).encode())
