"""Charts as Vega-Lite specifications, with the rows they show inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOST_BARS = 20
MOST_POINTS = 5_000
"""Rows in one chart: more cannot be told apart, and every one is text in the page."""

Rows = Sequence[Mapping[str, Any]]


def bars(rows: Rows, title: str, name: str, values: Sequence[str], unit: str) -> dict[str, Any]:
    """Horizontal bars of the first rows, stacked by several values; `name` is the axis of names."""
    data = [
        {"name": str(row[name] if row[name] not in (None, "") else "(none)"), "kind": value,
         "value": row[value] or 0}
        for row in rows[:MOST_BARS]
        for value in values
    ]  # fmt: skip
    return {
        "title": title,
        "data": {"values": data},
        "width": "container",
        "height": {"step": 18},
        "mark": {"type": "bar", "tooltip": True},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None},
            "x": {"field": "value", "type": "quantitative", "aggregate": "sum", "title": unit},
            "color": _color("kind", len(values) > 1),
        },
    }


def lines(
    rows: Rows, title: str, time: str, value: str, series: str, unit: str, *, log: bool = False
) -> dict[str, Any]:
    """A line for each series over time."""
    data = [
        {"time": _milliseconds(row[time]), "value": row[value], "series": str(row[series] or "")}
        for row in rows[:MOST_POINTS]
        if row[time] is not None and row[value] is not None
    ]
    many = len({one["series"] for one in data}) > 1
    scale = {"type": "symlog"} if log else {"zero": True}
    return {
        "title": title,
        "data": {"values": data},
        "width": "container",
        "height": 220,
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": {"field": "time", "type": "temporal", "title": None, "scale": {"type": "utc"}},
            "y": {"field": "value", "type": "quantitative", "title": unit, "scale": scale},
            "color": _color("series", many),
        },
    }


def grid(rows: Rows, title: str, across: str, down: str, value: str, unit: str) -> dict[str, Any]:
    """A field for each pair of names, the darker the more."""
    data = [
        {"across": str(row[across] or ""), "down": str(row[down] or ""), "value": row[value]}
        for row in rows[:MOST_POINTS]
    ]
    return {
        "title": title,
        "data": {"values": data},
        "width": "container",
        "height": {"step": 18},
        "mark": {"type": "rect", "tooltip": True},
        "encoding": {
            "x": {"field": "across", "type": "nominal", "title": None},
            "y": {"field": "down", "type": "nominal", "title": None},
            "color": {
                "field": "value", "type": "quantitative", "aggregate": "sum", "title": unit,
                "scale": {"scheme": "blues"},
            },
        },
    }  # fmt: skip


def summed(rows: Rows, name: str, values: Iterable[str]) -> list[dict[str, Any]]:
    """Rows added up by one column, the largest first."""
    sums: dict[Any, dict[str, Any]] = {}
    wanted = list(values)
    for row in rows:
        one = sums.setdefault(row[name], {name: row[name], **dict.fromkeys(wanted, 0)})
        for value in wanted:
            one[value] += row[value] or 0
    return sorted(sums.values(), key=lambda row: -sum(row[value] for value in wanted))


def _color(field: str, many: bool) -> dict[str, Any]:
    if not many:
        return {"value": "#3b6fb6"}
    return {"field": field, "type": "nominal", "title": None, "legend": {"orient": "bottom"}}


def _milliseconds(time: Any) -> int:
    return int(time.timestamp() * 1000)
