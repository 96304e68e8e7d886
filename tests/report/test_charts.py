"""Charts of rows with little or nothing in them: left out, or drawn with numbers that can be."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from amqpsniff.report import charts
from amqpsniff.report.page import NOTHING, Page
from tests.report.drawn import wrong

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
