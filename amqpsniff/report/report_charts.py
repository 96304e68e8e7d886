"""Charts of the reports: functions from the rows of a report to Vega-Lite specifications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from amqpsniff.spec import FIRST_ERROR_CODE
from amqpsniff.units import UNKNOWN

from .charts import bars, grid, lines, summed

Rows = list[dict[str, Any]]
Specs = list[dict[str, Any] | None]

MAX_EDGES = 60
COLUMN_OF = {("client", "from"): 0, ("exchange", ""): 1, ("queue", ""): 2, ("client", "to"): 3}
"""Columns of the nodes of a graph, from left to right."""


BARS = {
    "traffic": (
        ("Messages by exchange", "exchange", "published delivered returned", "messages"),
        ("Bytes by exchange", "exchange", "published_bytes delivered_bytes returned_bytes",
         "bytes"),
        ("Messages by routing key", "routing_key", "published delivered returned", "messages"),
        ("Messages by client", "client", "published delivered returned", "messages"),
    ),
    "redelivery": (
        ("Deliveries by queue", "queue", "redelivered requeued discarded", "deliveries"),
    ),
    "losses": tuple(
        (f"Publishes by {name}", name, "unprotected rejected returned unconfirmed incomplete",
         "publishes")
        for name in ("exchange", "client")
    ),
    "churn": (
        ("Connections", "client", "connections", "connections"),
        ("Connections by kind", "client", "short left_open midstream", "connections"),
        ("Channels opened", "client", "channels", "channels"),
    ),
    "operations": (
        ("Messages", "operation", "published delivered", "messages"),
        ("Trouble", "operation", "failed retried refused", "messages"),
    ),
}  # fmt: skip
"""Charts of bars by report: title, column of names, columns that are added up, unit."""


def charts(name: str, rows: Rows) -> Specs:
    """The charts of the report with this name."""
    specs = [_bars(rows, *arguments) for arguments in BARS.get(name, ())]
    return specs + (MORE[name](rows) if name in MORE else [])


def _bars(rows: Rows, title: str, name: str, columns: str, unit: str) -> dict[str, Any] | None:
    values = columns.split()
    if name != "client" and len({row.get("vhost") for row in rows}) > 1:
        rows = [
            row | {name: "{} ({})".format(*(row[column] or UNKNOWN for column in (name, "vhost")))}
            for row in rows
        ]
    return bars(summed(rows, name, values), title, name, values, unit)


def latency(rows: Rows) -> Specs:
    """The 99th percentile over time by client, for confirms and for settlements."""
    specs = []
    for kind, label in (("confirm", "Publish to confirm"), ("settle", "Delivery to settlement")):
        worst: dict[tuple[Any, Any], dict[str, Any]] = {}
        for row in rows:
            key = row["client"], row["time"]
            if row["kind"] == kind and _slowest(row) >= _slowest(worst.get(key, row)):
                worst[key] = row
        if worst:
            title = f"{label}: p99 by client"
            ordered = [worst[key] for key in sorted(worst, key=_known_first)]
            specs.append(lines(ordered, title, "time", "p99_ms", "client", "ms", log=True))
    return specs


def _known_first(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """A key to sort names and times by, any of which may be None."""
    return [(part is None, part) for part in key]


def _slowest(row: dict[str, Any]) -> float:
    return row["p99_ms"] or 0.0


def saturation(rows: Rows) -> Specs:
    """Saturation, unsettled deliveries and unconfirmed publishes over time, by client."""
    return [
        lines(rows, "Unsettled deliveries as a share of the prefetch count", "time", "saturation",
              "client", "share"),
        lines(rows, "Deliveries not settled", "time", "unsettled", "client", "deliveries"),
        lines(rows, "Publishes not confirmed", "time", "unconfirmed", "client", "publishes"),
    ]  # fmt: skip


def churn(rows: Rows) -> Specs:
    """Findings of clients; all rows of a client have the same numbers."""
    codes = "reconnect_loops connection_churn channel_churn leaks"
    one_each = list({row["client"]: row for row in rows}.values())
    found = any(row[code] for row in one_each for code in codes.split())
    return [_bars(one_each, "Found", "client", codes, "times")] if found else []


def closes(rows: Rows) -> Specs:
    """Errors by client and code, and by the method that caused them."""
    errors = [
        row | {"code": str(row["code"]), "method": row["method"] or "(none)"}
        for row in rows
        if (row["code"] or 0) >= FIRST_ERROR_CODE
    ]
    if not errors:
        return []
    return [
        grid(errors, "Errors by code and client", "code", "client", "closes", "closes"),
        _bars(errors, "Errors by method", "method", "closes", "closes"),
    ]


def topology(rows: Rows) -> Specs:
    """The graph of the busiest edges, publishers on the left, consumers on the right."""
    nodes: dict[tuple[int, Any, Any], int] = {}
    several = len({row["vhost"] for row in rows}) > 1
    places: list[dict[str, Any]] = []
    edges = []
    counts = [0, 0, 0, 0]
    for row in rows[:MAX_EDGES]:
        ends = []
        for end, side in (("source", "from"), ("target", "to")):
            kind, name, vhost = row[f"{end}_kind"], row[end], row["vhost"]
            column = COLUMN_OF.get((kind, side), COLUMN_OF.get((kind, ""), 0))
            if (column, vhost, name) not in nodes:
                nodes[column, vhost, name] = counts[column]
                shown = "(default exchange)" if name == "" else name or UNKNOWN
                shown += f" ({vhost or UNKNOWN})" if several else ""
                places.append({"x": column, "y": -counts[column], "name": shown, "kind": kind})
                counts[column] += 1
            ends.append((column, nodes[column, vhost, name]))
        (x, y), (x2, y2) = ends
        edges.append({"x": x, "y": -y, "x2": x2, "y2": -y2, "messages": row["messages"] or 0})
    if not edges:
        return []
    place: dict[str, Any] = {
        name: {"field": name, "axis": None, "type": "quantitative"} for name in ("x", "y")
    }
    place["x"]["scale"] = {"domain": [-0.4, 3.4]}
    width = {"field": "messages", "type": "quantitative", "legend": None,
             "scale": {"type": "symlog", "range": [1, 6]}}  # fmt: skip
    kind = {"field": "kind", "type": "nominal", "title": None, "legend": {"orient": "bottom"}}
    return [
        {
            "title": "Clients → exchanges → queues → clients",
            "width": "container",
            "height": max(160, 26 * max(counts)),
            "layer": [
                {
                    "data": {"values": edges},
                    "mark": {"type": "rule", "tooltip": True, "opacity": 0.6, "color": "#8a94a6"},
                    "encoding": place
                    | {"x2": {"field": "x2"}, "y2": {"field": "y2"}, "strokeWidth": width},
                },
                {
                    "data": {"values": places},
                    "mark": {"type": "circle", "size": 90, "opacity": 1, "tooltip": True},
                    "encoding": place | {"color": kind},
                },
                {
                    "data": {"values": places},
                    "mark": {"type": "text", "dy": -10, "fontSize": 11},
                    "encoding": place | {"text": {"field": "name"}},
                },
            ],
        }
    ]


def quality(rows: Rows) -> Specs:
    """Lost bytes, holes and messages that are not whole, of the worst files."""
    worst = [row for row in rows if row["error"] or row["lost_bytes"] or row["midstream"]]
    if not worst:
        return []
    return [
        bars(worst, "Messages that are not whole", "capture", ["truncated", "incomplete"],
             "messages"),
        bars(worst, "Connections", "capture", ["midstream", "one_sided"], "connections"),
        bars(worst, "Bytes lost", "capture", ["lost_bytes"], "bytes"),
    ]  # fmt: skip


def findings(rows: Rows) -> Specs:
    """Findings by code, for each severity."""
    specs = []
    for severity in ("error", "warning", "info"):
        chosen = [row for row in rows if row["severity"] == severity]
        if chosen:
            title = f"{severity.capitalize()}s" if severity != "info" else "Info"
            specs.append(_bars(chosen, title, "code", "findings", "findings"))
    return specs


MORE: dict[str, Callable[[Rows], Specs]] = {
    "latency": latency,
    "saturation": saturation,
    "churn": churn,
    "closes": closes,
    "topology": topology,
    "quality": quality,
    "findings": findings,
}
"""Other charts by the name of the report."""
