"""One HTML page with all reports of a batch, that can be mailed and kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from amqpsniff.report.page import Page
from amqpsniff.report.tables import Column, table

if TYPE_CHECKING:
    from .reports import Report

MOST_SHOWN = 50
"""Rows of a report's table on the page; all of them are beside it as CSV and Parquet."""


def page(manifest: dict[str, Any], reports: Sequence[Report]) -> str:
    """The page; `manifest` is that of the batch. Raises UsageError when a package is missing."""
    made = Page("AMQP traffic", _summary(manifest))
    for one in reports:
        charts = made.charts(one.charts) if one.rows else ""
        made.section(one.name, one.title, charts, _table(one), about=one.about)
    return made.html()


def _summary(manifest: dict[str, Any]) -> str:
    captures = manifest.get("captures", [])
    times = [one[end] for one in captures for end in ("first_ns", "last_ns") if one[end]]
    octets = sum(one["octets"] for one in captures)
    parts = [f"{len(captures):,} files", f"{octets / 1e6:,.1f} MB of packets"]
    if times:
        ends = [datetime.fromtimestamp(one / 1e9, timezone.utc) for one in (min(times), max(times))]
        parts.append(" to ".join(f"{one:%Y-%m-%d %H:%M:%S}" for one in ends) + " UTC")
    rows = manifest.get("rows", {})
    parts += [f"{rows[name]:,} {name}" for name in rows if name != "errors"]
    if rows.get("errors"):
        parts.append(f"{rows['errors']:,} errors in files")
    return " · ".join(parts)


def _table(report: Report) -> str:
    rows = report.rows[:MOST_SHOWN]
    numeric = {
        name for name in report.columns if any(isinstance(row[name], (int, float)) for row in rows)
    }
    columns = [Column(name, name, number=name in numeric) for name in report.columns]
    total = len(report.rows)
    more = f"the first {MOST_SHOWN} of {total:,} rows" if total > MOST_SHOWN else f"{total:,} rows"
    files = f"reports/{report.name}.csv, reports/{report.name}.parquet"
    return table(rows, columns, report.title, more=f"{more}; all of them in {files}")
