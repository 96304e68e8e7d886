"""Times and outcomes in the summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from .grid import Grid
from .text import count, duration, plural

UNKNOWN = "?"
NONE = "-"
NAMES = ("p50_ns", "p95_ns", "p99_ns", "max_ns")

BAD = frozenset(("rejected", "returned", "unconfirmed", "requeued", "discarded", "unsettled"))
"""Outcomes that somebody may want to look into."""


def outcomes(result: dict[str, Any]) -> Grid:
    """What became of publishes and deliveries, and how long it took."""
    table = Grid("message|outcome|>number|>p50|>p95|>p99|>longest")
    for one in result["outcomes"]:
        style = "warning" if one["outcome"] in BAD else ""
        table.add(
            one["message"], Text(one["outcome"], style), count(one["count"]), *_durations(one)
        )
    return table


def times(result: dict[str, Any]) -> Grid:
    """How long messages, calls and the slowest requests took, and what more is known of them."""
    table = Grid("from|to|>number|>p50|>p95|>p99|>longest|?~")
    for start, end, number, one, more in _paths(result):
        table.add(start, end, count(number), *_durations(one), more)
    return table


def _paths(result: dict[str, Any]) -> Iterator[tuple[str, str, int, dict[str, Any], str]]:
    journeys, calls = result["journeys"], result["calls"]
    matched = journeys["deliveries"] - journeys["unmatched"]
    if matched:
        yield "publish", "delivery", matched, journeys, _journeys(journeys)
    if calls["replies"]:
        more = plural(calls["requests"], "request")
        if calls["late"]:
            more += f", {count(calls['late'])} late"
        yield "call", "reply published", calls["replies"], calls["reply"], more
    if calls["replies_delivered"]:
        yield "call", "reply delivered", calls["replies_delivered"], calls["round_trip"], ""
    for one in result["requests"]:
        yield one["method"], "reply", one["count"], one, ""


def _journeys(journeys: dict[str, Any]) -> str:
    """How sure, how many to each publish, how many again."""
    parts = []
    if journeys["ambiguous"]:
        parts.append(f"{count(journeys['ambiguous'])} ambiguous")
    if journeys["again"]:
        parts.append(f"{count(journeys['again'])} again")
    fan_out = journeys["fan_out"]
    if set(fan_out) - {"1"}:
        each = ", ".join(f"{number} of {count(fan_out[number])}" for number in fan_out)
        parts.append(f"deliveries of publishes: {each}")
    return " · ".join(parts)


def _durations(one: dict[str, Any]) -> list[str]:
    return [NONE if one[name] is None else duration(one[name]) for name in NAMES]
