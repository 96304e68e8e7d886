"""Charts of rows with little or nothing in them: left out, or drawn with numbers that can be."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from amqpsniff.report import charts
from amqpsniff.report.page import NOTHING, Page
from tests.report.drawn import svg, wrong

DAY = datetime(2026, 1, 2, tzinfo=UTC)
LATER = datetime(2026, 1, 3, tzinfo=UTC)

Draw = Callable[[list[Any]], "dict[str, Any] | None"]


def _rows(values: list[Any]) -> list[dict[str, Any]]:
    return [
        {"name": f"n{at}", "time": DAY if at % 2 else LATER, "v": value, "w": value}
        for at, value in enumerate(values)
    ]


def _courses(values: list[Any], **more: Any) -> dict[str, Any] | None:
    series = {"one": values, "two": values}
    return charts.courses(series, "T", [float(at) for at in range(len(values))], "u", **more)


def _spread(values: list[Any]) -> dict[str, Any] | None:
    places = [{"low": value, "high": value and value * 2, "share": 1} for value in values]
    known = [value for value in values if value and math.isfinite(value)]
    return charts.spread(places, "T", "ms", {"p50": known[0] if known else 1.0})


def _lives(values: list[Any]) -> dict[str, Any] | None:
    rows = [
        {"name": "n", "kind": "open", "begin": 0, "end": value, "about": ""} for value in values
    ]
    known = [value for value in values if value and math.isfinite(value)]
    return charts.lives(rows, "T", {"open": "red"}, clock=None, span=(0, max(known)))


DRAWN: dict[str, Draw] = {
    "bars": lambda values: charts.bars(_rows(values), "T", "name", ["v", "w"], "u"),
    "sums": lambda values: charts.bars(
        charts.summed(_rows(values), "name", ["v"]), "T", "name", ["v"], "u"
    ),
    "lines": lambda values: charts.lines(_rows(values), "T", "time", "v", "name", "u"),
    "lines by size": lambda values: charts.lines(
        _rows(values), "T", "time", "v", "name", "u", log=True
    ),
    "grid": lambda values: charts.grid(_rows(values), "T", "name", "name", "v", "u"),
    "courses": lambda values: _courses(values, clock=None),
    "courses of the clock": lambda values: _courses(values, clock="UTC"),
    "courses by size": lambda values: _courses(values, clock=None, log=True),
    "levels": lambda values: _courses(values, clock=None, levels=True),
    "spread": _spread,
    "lives": _lives,
}

POOR: dict[str, list[Any]] = {
    "none": [],
    "a null": [None],
    "nulls": [None, None, None],
    "a zero": [0],
    "zeros": [0, 0.0, 0],
    "not a number": [math.nan, math.nan],
    "infinities": [math.inf, -math.inf],
}
THIN: dict[str, list[Any]] = {
    "one": [1],
    "one of several": [None, 3, None],
    "alike": [5, 5, 5],
    "a number and no numbers": [2, math.nan, math.inf, None],
    "very large": [1, 9_000_000_000_000_000_000],
    "very small": [1e-9, 2e-9],
}


@pytest.mark.parametrize("values", POOR)
@pytest.mark.parametrize("name", sorted(set(DRAWN) - {"lives"}))
def test_what_holds_nothing_is_left_out(name: str, values: str) -> None:
    assert DRAWN[name](POOR[values]) is None


def test_no_lives_are_left_out() -> None:
    assert charts.lives([], "T", {}, clock=None, span=(0, 1)) is None


@pytest.mark.parametrize("values", THIN)
@pytest.mark.parametrize("name", DRAWN)
def test_what_holds_little_is_drawn(name: str, values: str) -> None:
    pytest.importorskip("vl_convert")
    made = DRAWN[name](THIN[values])
    assert made is not None
    assert wrong([made]) == []


def test_a_sentence_stands_for_charts_that_are_left_out() -> None:
    page = Page("T", "")
    assert NOTHING in page.charts([None, None])
    assert page.charts([]) == ""
    assert NOTHING not in page.charts([None, DRAWN["bars"]([1])])


def test_a_page_holds_only_numbers_that_json_knows() -> None:
    from amqpsniff.report.page import in_script

    text = in_script({"a": [math.nan, {"b": -math.inf}], "c": 1.5, "d": (math.inf,)})
    assert text == '{"a":[null,{"b":null}],"c":1.5,"d":[null]}'


def _labels(spec: dict[str, Any] | None) -> list[str]:
    """Labels of axes and legends."""
    assert spec is not None
    drawn = svg(spec)
    groups = re.findall(r'role-(?:axis|legend)-label"[^>]*>(.*?)</g>', drawn, re.S)
    return [text for group in groups for text in re.findall(r"<text[^>]*>([^<]*)</text>", group)]


@pytest.mark.parametrize(("step", "digits"), [(1, 8), (1000, 5), (40_000, 12)])
def test_no_two_ticks_have_the_same_time(step: int, digits: int) -> None:
    """A label without fractions at a tick between two seconds would name another time."""
    pytest.importorskip("vl_convert")
    rows = [{"time": DAY + timedelta(seconds=at * step), "v": 0.5, "name": ""} for at in range(5)]
    times = [one["time"].timestamp() * 1000 for one in rows]
    for made in (
        charts.lines(rows, "T", "time", "v", "name", "u"),
        charts.courses({"one": [0.5] * 5}, "T", times, "u", clock="UTC"),
    ):
        shown = [text for text in _labels(made) if ":" in text]
        assert len(shown) == len(set(shown)) > 1
        assert {len(text) for text in shown} == {digits}


@pytest.mark.parametrize("name", ["bars", "lines", "grid", "courses of the clock"])
def test_counts_have_no_fractions(name: str) -> None:
    pytest.importorskip("vl_convert")
    assert [text for text in _labels(DRAWN[name]([1, 2, 1])) if "." in text] == []


def test_the_legend_of_a_low_grid_is_whole() -> None:
    """It stands below: beside two rows it would be cut."""
    made = DRAWN["grid"]([1, 2])
    assert made is not None
    assert made["encoding"]["color"]["legend"]["orient"] == "bottom"


def test_more_series_than_colours_can_be_told_apart() -> None:
    pytest.importorskip("vl_convert")
    made = charts.lines(_rows([1.0] * 11), "T", "time", "v", "name", "u")
    assert made is not None
    first, _, *_, last = made["encoding"]["shape"]["scale"]["range"]
    assert first != last
    assert "shape" not in (DRAWN["lines"]([1, 2]) or {})["encoding"]
    assert wrong([made]) == []


def test_decades_of_latencies_are_written_beside_them() -> None:
    pytest.importorskip("vl_convert")
    assert {"0", "1", "10", "100", "1k"} <= set(_labels(DRAWN["lines by size"]([0, 1, 1400])))
