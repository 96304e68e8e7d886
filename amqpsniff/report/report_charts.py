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
"""Where the nodes of a graph stand, from left to right."""


def traffic(rows: Rows) -> Specs:
    """Messages and bytes by exchange, messages by queue and by client."""
    counts = ["published", "delivered", "returned"]
    octets = [f"{one}_bytes" for one in counts]
    return [
        bars(summed(rows, "exchange", counts), "Messages by exchange", "exchange", counts,
             "messages"),
        bars(summed(rows, "exchange", octets), "Bytes by exchange", "exchange", octets, "bytes"),
        bars(summed(rows, "routing_key", counts), "Messages by routing key", "routing_key", counts,
             "messages"),
        bars(summed(rows, "client", counts), "Messages by client", "client", counts, "messages"),
    ]  # fmt: skip


def latency(rows: Rows) -> Specs:
    """The 99th percentile over time by client, for confirms and for settlements."""
    made = []
    for kind, what in (("confirm", "Publish to confirm"), ("settle", "Delivery to settlement")):
        worst: dict[tuple[Any, Any], dict[str, Any]] = {}
        for row in rows:
            key = row["client"], row["time"]
            if row["kind"] == kind and _slowest(row) >= _slowest(worst.get(key, row)):
                worst[key] = row
        if worst:
            title = f"{what}: p99 by client"
            ordered = [worst[key] for key in sorted(worst, key=_known_first)]
            made.append(lines(ordered, title, "time", "p99_ms", "client", "ms", log=True))
    return made


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


def redelivery(rows: Rows) -> Specs:
    """Deliveries that were not the first or the last of their message, by queue."""
    kinds = ["redelivered", "requeued", "discarded"]
    return [bars(summed(rows, "queue", kinds), "Deliveries by queue", "queue", kinds, "deliveries")]


def losses(rows: Rows) -> Specs:
    """Publishes at risk by exchange and by client."""
    kinds = ["unprotected", "rejected", "returned", "unconfirmed", "incomplete"]
    return [
        bars(summed(rows, name, kinds), f"Publishes by {name}", name, kinds, "publishes")
        for name in ("exchange", "client")
    ]


def churn(rows: Rows) -> Specs:
    """Connections and channels by client, and what was found about them."""
    of_client = ["short", "left_open", "midstream"]
    made = [
        bars(summed(rows, "client", ["connections"]), "Connections", "client", ["connections"],
             "connections"),
        bars(summed(rows, "client", of_client), "Connections by kind", "client", of_client,
             "connections"),
        bars(summed(rows, "client", ["channels"]), "Channels opened", "client", ["channels"],
             "channels"),
    ]  # fmt: skip
    codes = ["reconnect_loops", "connection_churn", "channel_churn", "leaks"]
    one_each = list({row["client"]: row for row in rows}.values())
    if any(row[code] for row in one_each for code in codes):
        made.append(bars(summed(one_each, "client", codes), "Found", "client", codes, "times"))
    return made


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
        bars(summed(errors, "method", ["closes"]), "Errors by method", "method", ["closes"],
             "closes"),
    ]  # fmt: skip


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
    axis = {"axis": None, "type": "quantitative", "scale": {"domain": [-0.4, 3.4]}}
    down = {"axis": None, "type": "quantitative"}
    return [
        {
            "title": "Clients → exchanges → queues → clients",
            "width": "container",
            "height": max(160, 26 * max(counts)),
            "layer": [
                {
                    "data": {"values": edges},
                    "mark": {"type": "rule", "tooltip": True, "opacity": 0.6, "color": "#8a94a6"},
                    "encoding": {
                        "x": {"field": "x", **axis},
                        "y": {"field": "y", **down},
                        "x2": {"field": "x2"},
                        "y2": {"field": "y2"},
                        "strokeWidth": {
                            "field": "messages",
                            "type": "quantitative",
                            "scale": {"type": "symlog", "range": [1, 6]},
                            "legend": None,
                        },
                    },
                },
                {
                    "data": {"values": places},
                    "mark": {"type": "circle", "size": 90, "opacity": 1, "tooltip": True},
                    "encoding": {
                        "x": {"field": "x", **axis},
                        "y": {"field": "y", **down},
                        "color": {
                            "field": "kind",
                            "type": "nominal",
                            "title": None,
                            "legend": {"orient": "bottom"},
                        },
                    },
                },
                {
                    "data": {"values": places},
                    "mark": {"type": "text", "dy": -10, "fontSize": 11},
                    "encoding": {
                        "x": {"field": "x", **axis},
                        "y": {"field": "y", **down},
                        "text": {"field": "name"},
                    },
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
    made = []
    for severity in ("error", "warning", "info"):
        mine = [row for row in rows if row["severity"] == severity]
        if mine:
            title = f"{severity.capitalize()}s" if severity != "info" else "Info"
            by_code = summed(mine, "code", ["findings"])
            made.append(bars(by_code, title, "code", ["findings"], "findings"))
    return made


def operations(rows: Rows) -> Specs:
    """Messages and failures by operation."""
    counts, worse = ["published", "delivered"], ["failed", "retried", "refused"]
    return [
        bars(summed(rows, "operation", counts), "Messages", "operation", counts, "messages"),
        bars(summed(rows, "operation", worse), "Trouble", "operation", worse, "messages"),
    ]


CHARTS: dict[str, Callable[[Rows], Specs]] = {
    "traffic": traffic,
    "latency": latency,
    "saturation": saturation,
    "redelivery": redelivery,
    "losses": losses,
    "churn": churn,
    "closes": closes,
    "topology": topology,
    "operations": operations,
    "quality": quality,
    "findings": findings,
}
"""Charts by the name of the report."""
