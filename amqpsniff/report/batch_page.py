"""One HTML page with the reports of a batch, that can be mailed and kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.report_tables import Report, find

from .page import Page
from .report_charts import CHARTS
from .tables import Column, table

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SHOWN = 50
"""Rows of a report's table on the page; all of them are beside it as CSV and Parquet."""


def page(manifest: dict[str, Any], tables: Mapping[str, pa.Table]) -> str:
    """The page of reports, given as rows by name; `manifest` is that of the batch.

    Raises UsageError if a package is missing.
    """
    made = Page("AMQP traffic", _summary(manifest))
    for name, whole in tables.items():
        report, rows = find(name), whole.to_pylist()
        charts = made.charts(CHARTS[name](rows)) if rows else ""
        made.section(name, report.title, charts, _table(report, rows), about=report.about)
    return made.html()


def _summary(manifest: dict[str, Any]) -> str:
    captures = manifest.get("captures", [])
    times = [one[end] for one in captures for end in ("first_ns", "last_ns") if one[end]]
    octets = sum(one["bytes"] for one in captures)
    parts = [f"{len(captures):,} files", f"{octets / 1e6:,.1f} MB of packets"]
    if times:
        ends = [datetime.fromtimestamp(one / 1e9, timezone.utc) for one in (min(times), max(times))]
        parts.append(" to ".join(f"{one:%Y-%m-%d %H:%M:%S}" for one in ends) + " UTC")
    rows = manifest.get("rows", {})
    parts += [f"{rows[name]:,} {name}" for name in rows if name != "errors"]
    if rows.get("errors"):
        parts.append(f"{rows['errors']:,} errors in files")
    return " · ".join(parts)


def _table(report: Report, rows: list[dict[str, Any]]) -> str:
    shown = rows[:MAX_SHOWN]
    numeric = {
        name for name in report.columns if any(isinstance(row[name], (int, float)) for row in shown)
    }
    columns = [Column(name, name, number=name in numeric) for name in report.columns]
    total = len(rows)
    more = f"the first {MAX_SHOWN} of {total:,} rows" if total > MAX_SHOWN else f"{total:,} rows"
    files = f"reports/{report.name}.csv, reports/{report.name}.parquet"
    return table(shown, columns, report.title, more=f"{more}; all of them in {files}")
