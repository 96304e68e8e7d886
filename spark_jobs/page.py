"""One HTML page with all reports: nothing is loaded from anywhere, so it can be mailed and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from html import escape
from typing import TYPE_CHECKING, Any

from amqpsniff.errors import UsageError

if TYPE_CHECKING:
    from .reports import Report

MOST_SHOWN = 50
"""Rows of a report's table on the page; all of them are beside it as CSV and Parquet."""

_STYLE = """
:root { color-scheme: light; --line: #d9dee7; --soft: #5b6472; --accent: #1f4f8f; }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0; color: #1b2330; background: #f6f7f9; }
header { background: #14263f; color: #fff; padding: 1.2rem 2rem; }
header h1 { margin: 0 0 .3rem; font-size: 1.35rem; }
header p { margin: 0; color: #c5d1e2; }
nav { position: sticky; top: 0; background: #fff; border-bottom: 1px solid var(--line);
  padding: .5rem 2rem; z-index: 2; }
nav a { margin-right: 1rem; color: var(--accent); text-decoration: none; white-space: nowrap; }
main { max-width: 1280px; margin: 0 auto; padding: 1rem 2rem 4rem; }
section { background: #fff; border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.4rem;
  margin: 1.2rem 0; scroll-margin-top: 3.5rem; }
h2 { margin: .1rem 0; font-size: 1.15rem; }
.about { color: var(--soft); margin: .1rem 0 .8rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 1rem; }
.charts.wide { grid-template-columns: 1fr; }
.chart { min-width: 0; width: 100%; }
.table { overflow-x: auto; max-height: 26rem; overflow-y: auto; margin-top: .8rem; }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { text-align: left; padding: .22rem .6rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; max-width: 26rem; overflow: hidden; text-overflow: ellipsis; }
th { position: sticky; top: 0; background: #eef1f5; font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.none { color: var(--soft); font-style: italic; }
"""

_SCRIPT = """
for (const [at, spec] of SPECS.entries()) {
  spec.$schema = "https://vega.github.io/schema/vega-lite/v5.json";
  spec.config = { font: "system-ui, sans-serif", axis: { labelLimit: 220 },
    title: { anchor: "start", fontSize: 13 }, view: { stroke: null } };
  vegaEmbed("#chart" + at, spec, { actions: false, renderer: "svg" });
}
"""


def page(manifest: dict[str, Any], reports: Sequence[Report]) -> str:
    """The page; `manifest` is that of the batch. Raises UsageError when a package is missing."""
    specs: list[dict[str, Any]] = []
    sections = [_section(report, specs) for report in reports]
    links = " ".join(f'<a href="#{one.name}">{escape(one.name)}</a>' for one in reports)
    # "</" would end the script, wherever it stands
    data = json.dumps(specs, default=str).replace("</", "<\\/")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8"><title>amqpsniff report</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>{_STYLE}</style></head><body>",
            f"<header><h1>AMQP traffic</h1><p>{_summary(manifest)}</p></header>",
            f"<nav>{links}</nav><main>{''.join(sections)}</main>",
            f'<script type="module">{_bundle()}\nconst SPECS = {data};{_SCRIPT}</script>',
            "</body></html>",
        ]
    )


def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    try:
        from vl_convert import javascript_bundle
    except ImportError:
        raise UsageError(
            'charts need the package vl-convert-python ("pip install amqpsniff[spark]")'
        ) from None
    bundle: str = javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


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
    return escape(" · ".join(parts))


def _section(report: Report, specs: list[dict[str, Any]]) -> str:
    charts = []
    for spec in report.charts:
        charts.append(f'<div class="chart" id="chart{len(specs)}"></div>')
        specs.append(spec)
    wide = " wide" if len(charts) == 1 else ""
    about = f'<p class="about">{escape(report.about)}</p>'
    return (
        f'<section id="{report.name}"><h2>{escape(report.title)}</h2>{about}'
        f'<div class="charts{wide}">{"".join(charts)}</div>{_table(report)}</section>'
    )


def _table(report: Report) -> str:
    from .reports import plain

    if not report.rows:
        return '<p class="none">Nothing of the kind was captured.</p>'
    numeric = {
        name
        for name in report.columns
        if any(isinstance(row[name], (int, float)) for row in report.rows[:MOST_SHOWN])
    }
    kinds = {name: ' class="number"' if name in numeric else "" for name in report.columns}
    head = "".join(f"<th{kinds[name]}>{escape(name)}</th>" for name in report.columns)
    body = "".join(
        "<tr>"
        + "".join(f"<td{kinds[name]}>{escape(plain(row[name]))}</td>" for name in report.columns)
        + "</tr>"
        for row in report.rows[:MOST_SHOWN]
    )
    total = len(report.rows)
    more = f"the first {MOST_SHOWN} of {total:,} rows" if total > MOST_SHOWN else f"{total:,} rows"
    files = f"reports/{report.name}.csv, reports/{report.name}.parquet"
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f'</div><p class="about">{more}; all of them in {files}</p>'
    )
