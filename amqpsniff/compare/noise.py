"""The test whether a difference is more than chance.

Two captures of one application never agree: there are some messages more, some confirms slower. A
difference is notable when it is both larger than what chance makes of so many, and large enough to
matter. The first assumes that events are independent. Bursts are not, which is one reason for the
second.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

MIN_COUNT = 20
"""Events below which a difference is not judged: of fewer a 95th percentile is a guess."""

DEVIATIONS = 2.58
"""Standard deviations that a difference must exceed, or an interval reach: 99 %. A comparison looks
at some fifty numbers, so that 95 % would call noise a change in nearly every one."""

NOTABLE_RATIO = 1.25
"""Factor between two rates, or two times, from which on they are worth a person's attention."""

MIN_TIME_NS = 100_000
"""Difference of two times below which they are equal: the scheduling of hosts and the time stamps
of captures make as much (measured on an idle veth pair: 20 to 80 µs)."""

FRACTIONS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
"""The quantiles that are compared."""


def _interval(spread: Any, fraction: float) -> tuple[int, int, float]:
    """A quantile of a `session.counts.Histogram` in ns, and between which times that of the whole
    traffic lies (99 %).

    The bounds are order statistics: of n times, the one of rank n·p is wrong by √(n·p·(1-p)) ranks.
    Where there are too few times (fewer than 127 for the 95th percentile, than 660 for the 99th)
    there is no upper bound.
    """
    wrong = DEVIATIONS * sqrt(fraction * (1 - fraction) / spread.facts()[0])
    value, low, high = spread.quantiles(
        fraction, max(fraction - wrong, 0.0), min(fraction + wrong, 1.0)
    )
    return value, low, inf if fraction + wrong >= 1 else high


def slower(before: Any, after: Any, fraction: float, ratio: float = NOTABLE_RATIO) -> bool:
    """True if times grew by more than a ratio, beyond what chance makes of their numbers."""
    if min(before.facts()[0], after.facts()[0]) < MIN_COUNT:
        return False
    old, _, old_high = _interval(before, fraction)
    new, new_low, new_high = _interval(after, fraction)
    beyond_chance = new_high < inf and new_low > old_high
    return beyond_chance and new > ratio * old and new - old >= MIN_TIME_NS


def per_second(count: int, span_ns: int | None) -> float | None:
    """A rate; None where the capture has no length."""
    return round(count * 1e9 / span_ns, 6) if span_ns else None


def has_risen(
    before: int,
    after: int,
    spans_ns: tuple[int | None, int | None],
    *,
    events: tuple[int, int] | None = None,
    ratio: float = NOTABLE_RATIO,
) -> bool:
    """True if the rate rose notably; False where no time is known.

    `events` are how many things the counts are of, where they are not counts of things: bytes come
    by the message.
    """
    old_ns, new_ns = spans_ns
    if not old_ns or not new_ns:
        return False
    old_events, new_events = events or (before, after)
    if max(old_events, new_events) < MIN_COUNT:
        return False
    old, new = before / old_ns, after / new_ns
    if new <= ratio * old:
        return False
    wrong = _error(before, old_events, old_ns) + _error(after, new_events, new_ns)
    return new - old > DEVIATIONS * sqrt(wrong)


def _error(count: int, events: int, span_ns: int) -> float:
    """The square of a rate's error: the error of a count of n events is √n of them."""
    return (count / span_ns) ** 2 / events if events else 0.0


def direction(
    before: int,
    after: int,
    spans_ns: tuple[int | None, int | None],
    *,
    events: tuple[int, int] | None = None,
    ratio: float = NOTABLE_RATIO,
) -> str | None:
    """`more` or `fewer` where a rate changed notably, else None."""
    if has_risen(before, after, spans_ns, events=events, ratio=ratio):
        return "more"
    turned = None if events is None else (events[1], events[0])
    if has_risen(after, before, (spans_ns[1], spans_ns[0]), events=turned, ratio=ratio):
        return "fewer"
    return None
