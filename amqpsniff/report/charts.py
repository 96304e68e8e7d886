"""Charts as Vega-Lite specifications, with the rows they show inside.

Colours and fonts are left to the page, which has them light and dark. A chart is None where its
rows hold nothing to draw: no number, or zeros alone. Values that are not finite numbers are not
drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from amqpsniff.wire_text import exchange_name

MAX_BARS = 20
MAX_POINTS = 5_000
"""Rows in one chart: more cannot be distinguished, and every one is text in the page."""

BAR_STEP, LIFE_STEP = 18, 15
LINE_HEIGHT = 220
SPREAD_HEIGHT = 150
"""Heights in pixels; widths are those of the page."""

SEASON_MS, DAY_MS, HOUR_MS = 7_776_000_000, 86_400_000, 3_600_000
MINUTE_MS, SECOND_MS = 60_000, 1_000

MANY_TICKS, FEW_TICKS = 50, 6
"""Up to so high an axis of whole numbers might get fractions, and has so many ticks instead."""

CLOSE_POINTS = 60
SMALL_POINT, LARGE_POINT = 9, 28
"""Area in pixels of a point, where there are more of them than that, and where there are fewer."""

MIN_RATIO = 4.0
"""An axis of how long something took spans at least this: one bar alone is not the whole width."""

DECADE_TICKS = ((0, (1, 2, 3, 5, 7)), (1, (1, 2, 5)), (4, (1, 3)), (99, (1,)))
"""Round numbers of a decade that are written beside a logarithmic axis of up to so many more."""

COLOURS = 7
"""Colours of the page: series beyond them have the same ones with points of other shapes."""

SHAPES = ("circle", "triangle-up", "square", "diamond", "cross")

_SHORT = "datum.value >= 1000 ? format(datum.value, '~s') : datum.label"
"""Labels of large numbers: 5k, 2M."""

Rows = Sequence[Mapping[str, Any]]
Spec = dict[str, Any]


def bars(rows: Rows, title: str, name: str, values: Sequence[str], unit: str) -> Spec | None:
    """Horizontal bars of the first rows, stacked by several values; `name` is the axis of names."""
    data = [
        {"name": exchange_name(row[name]) or "(none)" if name == "exchange"
         else str(row[name] or "(none)"), "kind": value.replace("_", " "),
         "value": _number(row[value]) or 0}
        for row in rows[:MAX_BARS]
        for value in values
    ]  # fmt: skip
    if not any(bar["value"] for bar in data):
        return None
    return _framed(title, data, _height(data, "name", BAR_STEP)) | {
        "mark": {"type": "bar", "tooltip": True},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None},
            "x": {
                "field": "value",
                "type": "quantitative",
                "aggregate": "sum",
                "title": unit,
                "axis": _integer_axis(bar["value"] for bar in summed(data, "name", ["value"])),
            },
            **_color("kind", [value.replace("_", " ") for value in values]),
        },
    }


def lines(
    rows: Rows, title: str, time: str, value: str, series: str, unit: str, *, log: bool = False
) -> Spec | None:
    """A line for each series over time, which rows have as a datetime."""
    data = [
        {"time": _milliseconds(row[time]), "value": row[value], "series": str(row[series] or "")}
        for row in rows[:MAX_POINTS]
        if row[time] is not None and _number(row[value]) is not None
    ]
    if not any(point["value"] for point in data):
        return None
    scale: Spec = {"zero": True}
    upright: Spec = {"labelExpr": _SHORT, **_integer_axis(point["value"] for point in data)}
    positive = [point["value"] for point in data if point["value"] > 0]
    if log and positive:
        scale = {"type": "symlog", "constant": min(positive), "nice": False}
        upright |= {"values": [0, *_decades(positive)], "labelOverlap": "greedy"}
    return _framed(title, data, LINE_HEIGHT) | {
        "mark": {"type": "line", "point": True, "tooltip": True},
        "encoding": {
            "x": {
                "field": "time",
                "type": "temporal",
                "title": None,
                "scale": {"type": "utc"},
                "axis": _clock([point["time"] for point in data]),
            },
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": unit,
                "scale": scale,
                "axis": upright,
            },
            **_color("series", sorted({point["series"] for point in data})),
        },
    }


def broken(spec: Spec, holes: Iterable[tuple[int, int]]) -> Spec:
    """A chart of `lines` without lines across holes in time, given as (from, to) in ns."""
    if "mark" not in spec or spec["mark"]["type"] != "line":
        return spec
    data = spec["data"]["values"]
    times = sorted({point["time"] for point in data})
    steps = [after - before for before, after in pairwise(times)]
    least_ms = min(steps) if len(steps) > 1 else SECOND_MS  # files of a rotation follow closely
    series = {point["series"] for point in data}
    data += [
        {"time": (first_ns + last_ns) / 2e6, "value": None, "series": name}
        for first_ns, last_ns in holes
        if last_ns - first_ns > least_ms * 1e6
        for name in series
    ]
    return spec


def grid(rows: Rows, title: str, across: str, down: str, value: str, unit: str) -> Spec | None:
    """A field for each pair of names, the darker the more."""
    data = [
        {"across": str(row[across] or ""), "down": str(row[down] or ""), "value": row[value]}
        for row in rows[:MAX_POINTS]
        if _number(row[value])
    ]
    if not data:
        return None
    numbers = [row["value"] for row in data]
    return _framed(title, data, _height(data, "down", BAR_STEP)) | {
        "mark": {"type": "rect", "tooltip": True},
        "encoding": {
            "x": {"field": "across", "type": "nominal", "title": None},
            "y": {"field": "down", "type": "nominal", "title": None},
            "color": {
                "field": "value", "type": "quantitative", "aggregate": "sum", "title": unit,
                "scale": {"scheme": "blues"},
                "legend": {
                    "orient": "bottom",
                    **_integer_axis(numbers, min(numbers)),
                },
            },
        },
    }  # fmt: skip


def courses(
    series: Mapping[str, Sequence[float | None]],
    title: str,
    times: Sequence[float],
    unit: str,
    *,
    clock: str | None,
    log: bool = False,
    levels: bool = False,
) -> Spec | None:
    """A line for each series over the same times: seconds from a beginning, or milliseconds.

    A `clock` is the name of the time zone of the latter. A null is a break in a
    line. `levels` are whole numbers that hold until the next time.
    """
    data: list[dict[str, Any]] = [
        {"t": time, "v": _number(value), "s": name}
        for name, values in series.items()
        for time, value in zip(times, values, strict=True)
    ][:MAX_POINTS]
    drawn = [point["v"] for point in data if point["v"] and (point["v"] > 0 or not log)]
    if not drawn:
        return None
    scale: Spec = {"type": "log"} if log else {"zero": True, "nice": True}
    across: Spec = {"field": "t", "type": "quantitative", "title": "seconds since the beginning"}
    if clock:
        across = {"field": "t", "type": "temporal", "title": clock, "scale": {"type": "utc"},
                  "axis": _clock(times)}  # fmt: skip
    else:
        across["scale"] = {"zero": False, "nice": False}
    tip = {"field": "t", "title": "at", "type": across["type"]}
    if clock:
        tip["timeUnit"] = "utcyearmonthdatehoursminutesseconds"
    upright: Spec = {"labelExpr": _SHORT, **_integer_axis(drawn)}
    if log:
        upright["values"] = _decades(drawn)
    size = SMALL_POINT if len(times) > CLOSE_POINTS else LARGE_POINT
    return _framed(title, data, LINE_HEIGHT) | {
        "description": f"{title}: {', '.join(series)}",
        "mark": {
            "type": "line",
            "interpolate": "step-after" if levels else "linear",
            "point": {"filled": True, "size": size},
        },
        "encoding": {
            "x": across,
            "y": {
                "field": "v",
                "type": "quantitative",
                "title": unit,
                "scale": scale,
                "axis": upright,
            },
            "tooltip": [
                {"field": "s", "title": "what"},
                tip,
                {"field": "v", "title": unit, "type": "quantitative", "format": ",.4~g"},
            ],
            **_color("s", list(series)),
        },
    }


def spread(places: Rows, title: str, unit: str, marks: Mapping[str, float]) -> Spec | None:
    """The distribution of numbers, on a logarithmic axis; `marks` are lines with a name.

    Rows have `low`, `high` and `share`, in percent.
    """
    places = [
        place for place in places if all(_number(value) is not None for value in place.values())
    ]
    ends = [place[end] for place in places for end in ("low", "high")]
    if not ends or min(ends) <= 0:
        return None
    wider = MIN_RATIO**0.5 if max(ends) < MIN_RATIO * min(ends) else 1.0
    across = {"type": "log", "nice": False, "domain": [min(ends) / wider, max(ends) * wider]}
    return _framed(title, places, SPREAD_HEIGHT) | {
        "layer": [
            {
                "mark": {"type": "bar", "binSpacing": 0, "opacity": 0.6},
                "encoding": {
                    "x": {"field": "low", "type": "quantitative", "title": unit, "scale": across,
                          "axis": {"format": "~g", "values": _decades(ends)}},
                    "x2": {"field": "high"},
                    "y": {"field": "share", "type": "quantitative", "title": "share, %"},
                    "y2": {"datum": 0},
                    "tooltip": [
                        {"field": "low", "title": f"from {unit}", "format": ".3~g"},
                        {"field": "high", "title": f"to {unit}", "format": ".3~g"},
                        {"field": "share", "title": "%", "format": ".3~g"},
                    ],
                },
            },
            {
                "data": {"values": [{"at": at, "name": name} for name, at in marks.items()]},
                "mark": {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 2},
                "encoding": {
                    "x": {"field": "at", "type": "quantitative"},
                    "tooltip": [
                        {"field": "name", "title": "what"},
                        {"field": "at", "title": unit, "type": "quantitative", "format": ".4~g"},
                    ],
                    "color": {"field": "name", "type": "nominal", "title": None, "sort": None,
                              "legend": {"orient": "bottom"}},
                },
            },
        ],
    }  # fmt: skip


def lives(
    rows: Rows,
    title: str,
    kinds: Mapping[str, str],
    *,
    clock: str | None,
    span: tuple[float, float],
) -> Spec | None:
    """A bar from `begin` to `end` for each row, by its `name`; `kinds` are colours by `kind`.

    Times are as in `courses`; `about` is what a tooltip says more.
    """
    if not rows:
        return None
    across: Spec = {"field": "begin", "type": "quantitative",
                    "title": "seconds since the beginning"}  # fmt: skip
    scale: Spec = {"domain": list(span), "nice": False, "zero": False}
    if clock:
        across |= {"type": "temporal", "title": clock, "axis": _clock(span)}
        scale = {"type": "utc", "nice": False}
    shown = {row["kind"] for row in rows}
    domain = [kind for kind in kinds if kind in shown]
    return _framed(title, rows, _height(rows, "name", LIFE_STEP)) | {
        "mark": {"type": "bar", "strokeWidth": 1},
        "encoding": {
            "x": across | {"scale": scale},
            "x2": {"field": "end"},
            "y": {"field": "name", "type": "nominal", "sort": None, "title": None,
                  "scale": {"paddingInner": 0.4},
                  "axis": {"labelLimit": 250, "labelOverlap": False, "ticks": False,
                           "domain": False}},
            **{
                channel: {
                    "field": "kind", "type": "nominal", "title": None,
                    "scale": {"domain": domain, "range": [kinds[kind] for kind in domain]},
                    "legend": {"orient": "top", "columns": 3, "labelLimit": 220},
                }
                for channel in ("color", "stroke")
            },
            "tooltip": [
                {"field": "name", "title": "connection"},
                {"field": "kind", "title": "end"},
                {"field": "about", "title": "more"},
            ],
        },
    }  # fmt: skip


def _framed(title: str, values: Sequence[Mapping[str, Any]], height: int) -> Spec:
    """The parts of every chart: title, rows, size."""
    return {
        "title": title,
        "data": {"values": list(values)},
        "width": "container",
        "height": height,
    }


def _number(value: Any) -> float | None:
    """The value where it is a finite number; a chart has no place for another."""
    return value if isinstance(value, (int, float)) and math.isfinite(value) else None


def _height(rows: Rows, name: str, step: int) -> int:
    """Pixels of an axis of names."""
    return step * max(2, len({row[name] for row in rows}))


def summed(rows: Rows, name: str, values: Iterable[str]) -> list[dict[str, Any]]:
    """Rows added up by one column, the largest first."""
    sums: dict[Any, dict[str, Any]] = {}
    columns = list(values)
    for row in rows:
        total = sums.setdefault(row[name], {name: row[name], **dict.fromkeys(columns, 0)})
        for value in columns:
            total[value] += _number(row[value]) or 0
    return sorted(sums.values(), key=lambda row: -sum(row[value] for value in columns))


def _color(field: str, order: Sequence[str]) -> Spec:
    """The colour of each name, and the shape of its points where there are more names."""
    if len(order) < 2:
        return {}
    legend = {"orient": "bottom", "columns": 4, "labelLimit": 160}
    shown = {"field": field, "type": "nominal", "title": None, "legend": legend}
    encoding: Spec = {"color": shown | {"scale": {"domain": order}}}
    if len(order) > COLOURS:
        shapes = [SHAPES[at // COLOURS % len(SHAPES)] for at in range(len(order))]
        encoding["shape"] = shown | {"scale": {"domain": order, "range": shapes}}
    return encoding


def _decades(values: Sequence[float]) -> list[float]:
    """Round numbers for a logarithmic axis: the fewer to a decade, the more decades there are."""
    low, high = (math.floor(math.log10(value)) for value in (min(values), max(values)))
    ticks = next(ticks for limit, ticks in DECADE_TICKS if high - low <= limit)
    return [float(f"{tick}e{decade}") for decade in range(low, high + 2) for tick in ticks]


def _clock(times: Sequence[float]) -> Spec:
    """An axis of milliseconds: with the day where there are several, and no tick between two times
    that its labels can name."""
    span = max(times) - min(times) if times else 0
    if span > SEASON_MS:
        return {"format": "%Y-%m-%d", "tickMinStep": DAY_MS}
    if span > DAY_MS:
        return {"format": "%b %d %H:%M", "tickMinStep": MINUTE_MS}
    if span > HOUR_MS:
        return {"format": "%H:%M", "tickMinStep": MINUTE_MS}
    return {"format": "%H:%M:%S", "tickMinStep": SECOND_MS}


def _integer_axis(values: Iterable[float], lowest: float = 0) -> Spec:
    """An axis or a legend that begins at `lowest`, without fractions where all values are whole."""
    numbers = list(values)
    span = max(numbers) - lowest
    if span > MANY_TICKS or not all(isinstance(value, int) for value in numbers):
        return {}
    return {"tickCount": max(1, min(span, FEW_TICKS))}


def _milliseconds(time: Any) -> int:
    return int(time.timestamp() * 1000)
