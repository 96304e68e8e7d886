"""One HTML page with the reports of a batch, that can be mailed and kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.report_tables import Report, find
from amqpsniff.analysis.verdict import MAX_LEADS, NOT_LOOKED_AT
from amqpsniff.findings import KINDS
from amqpsniff.units import octets, plural
from amqpsniff.wire_text import exchange_name, harmless, shortened

from .charts import broken
from .page import Page
from .report_charts import charts as charts_of
from .tables import Column, plain, table

if TYPE_CHECKING:
    import pyarrow as pa

Row = dict[str, Any]

MAX_SHOWN = 50
"""Rows of a report's table on the page; CSV and Parquet files next to it have all."""


def page(manifest: dict[str, Any], tables: Mapping[str, pa.Table]) -> str:
    """The page of reports, given as rows by name; `manifest` is that of the batch.

    Raises UsageError if a package is missing.
    """
    document = Page("AMQP traffic", _summary(manifest))
    rows = {name: report_table.to_pylist() for name, report_table in tables.items()}
    if "findings" in rows:
        document.section("verdict", "Verdict", *_verdict(manifest, rows))
    breaks = list(_uncaptured(manifest))
    for name, report_rows in rows.items():
        report = find(name)
        specs = [spec and broken(spec, breaks) for spec in charts_of(name, report_rows)]
        charts = document.charts(specs) if report_rows else ""
        document.section(
            name, report.title, charts, _table(report, report_rows), about=report.about
        )
    return document.html()


def _verdict(manifest: Row, rows: Mapping[str, list[Row]]) -> Iterator[str]:
    """Sentences about the findings and about what could not be looked at, then all findings."""
    kinds = _kinds(rows["findings"])
    main = [kind for kind in kinds if KINDS[kind["code"]].category != "note"]
    sentences = list(_sentences(main, manifest, rows.get("quality", [])))
    worst = next((kind["severity"] for kind in main if _leads(kind)), "")
    paragraphs = "".join(f"<p>{text}</p>" for text in sentences)
    yield f'<div class="verdict {worst}">{paragraphs}</div>'
    columns = [
        Column("severity", "severity"),
        Column("what", "what", wide=True),
        Column("occurrences", "times", number=True),
        Column("connections", "connections", number=True),
        Column("clients", "clients"),
        Column("days", "days"),
    ]
    if main:
        yield table(main, columns, "Findings")
    notes = [kind for kind in kinds if kind not in main]
    if notes:
        heading = f"{plural(len(notes), 'note')} on configuration and security"
        content = table(notes, columns, "Notes")
        yield f'<details class="folded"><summary>{heading}</summary>{content}</details>'


def _kinds(rows: Iterable[Row]) -> list[Row]:
    """A row for each code, in the order of the report: the gravest first."""
    grouped: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["code"]].append(row)
    made = []
    for code, listed in grouped.items():
        clients = sorted({row["client"] for row in listed if row["client"]})
        days = sorted({str(row["day"]) for row in listed if row["day"]})
        made.append({
            "severity": listed[0]["severity"],
            "code": code,
            "title": listed[0]["title"],
            "occurrences": sum(row["occurrences"] for row in listed),
            "connections": sum(row["connections"] for row in listed),
            "clients": _first(clients),
            "what": f"{listed[0]['title']} ({code})",
            "days": f"{days[0]} to {days[-1]}" if days[1:] else "".join(days),
        })  # fmt: skip
    return made


def _leads(kind: Row) -> bool:
    return KINDS[kind["code"]].category in ("problem", "cost")


def _sentences(main: list[Row], manifest: Row, quality: list[Row]) -> Iterator[str]:
    """Sentences as HTML: the gravest findings, then what could not be looked at."""
    leads = [kind for kind in main if _leads(kind)]
    number = sum(row["connections"] or 0 for row in quality)
    for lead in leads[:MAX_LEADS]:
        clients = f", {escape(lead['clients'])}" if lead["clients"] else ""
        yield f"<b>{escape(lead['title'])}</b>: {plural(lead['occurrences'], 'time')}{clients}."
    others = len(leads) - MAX_LEADS
    if others > 0:
        yield f"{plural(others, 'more kind')} of findings {'is' if others == 1 else 'are'} below."
    if not number:
        yield "No AMQP was found in the captures."
    elif not leads:
        connections = plural(number, "connection")
        yield f"Nothing wrong was found in what the captures show of {connections}."
    for kind in main:
        if kind["code"] in NOT_LOOKED_AT:
            times = plural(kind["occurrences"], "time")
            yield f"Not all could be looked at. {escape(kind['title'])}: {times}."
    sided = sum(row["one_sided"] or 0 for row in quality)
    if sided:
        yield f"Of {plural(sided, 'connection')} only one direction was captured."
    failed = sum(row["error"] is not None for row in quality)
    if failed:
        yield f"{plural(failed, 'file')} could not be read in full."
    lost = sum(row["lost_bytes"] or 0 for row in quality)
    if lost:
        yield f"{octets(lost)} are missing from connections."


def _first(names: list[str]) -> str:
    """The first name, and how many more there are."""
    first = shortened(harmless(names[0]), 60) if names else ""
    return f"{first} +{len(names) - 1}" if names[1:] else first


def _uncaptured(manifest: Row) -> Iterator[tuple[int, int]]:
    """Times between captures, as (end of one, beginning of the next) in ns."""
    spans = sorted(
        (capture["first_ns"], capture["last_ns"])
        for capture in manifest.get("captures", [])
        if capture["first_ns"] and capture["last_ns"]
    )
    reached = 0
    for (_, last_ns), (first_ns, _) in pairwise(spans):
        reached = max(reached, last_ns)
        if first_ns > reached:
            yield reached, first_ns


def _summary(manifest: dict[str, Any]) -> str:
    captures = manifest.get("captures", [])
    times = [
        capture[end] for capture in captures for end in ("first_ns", "last_ns") if capture[end]
    ]
    size = sum(capture["bytes"] for capture in captures)
    parts = [plural(len(captures), "file"), f"{size / 1e6:,.1f} MB of packets"]
    if times:
        ends = [datetime.fromtimestamp(time / 1e9, UTC) for time in (min(times), max(times))]
        parts.append(" to ".join(f"{time:%Y-%m-%d %H:%M:%S}" for time in ends) + " UTC")
    rows = manifest.get("rows", {})
    parts += [plural(rows[name], name.removesuffix("s")) for name in rows if name != "errors"]
    if rows.get("errors"):
        parts.append(f"{plural(rows['errors'], 'error')} in files")
    return " · ".join(parts)


def _table(report: Report, rows: list[dict[str, Any]]) -> str:
    shown = rows[:MAX_SHOWN]
    numeric = {
        name for name in report.columns if any(isinstance(row[name], (int, float)) for row in shown)
    }
    columns = [
        Column(
            name,
            name.replace("_", " "),
            exchange_name if name == "exchange" else plain,
            number=name in numeric,
        )
        for name in report.columns
    ]
    total = len(rows)
    number = f"the first {MAX_SHOWN} of {total:,} rows" if total > MAX_SHOWN else f"{total:,} rows"
    files = f"reports/{report.name}.csv, reports/{report.name}.parquet"
    return table(shown, columns, report.title, note=f"{number}; all of them in {files}")
