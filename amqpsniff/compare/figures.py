"""How much happened in a second, and how long it took, in two captures."""

from __future__ import annotations

from typing import Any

from amqpsniff.compare.noise import FRACTIONS, direction, per_second, slower
from amqpsniff.compare.profile import CaptureProfile, Row

RATES = (
    "published", "published bytes", "confirmed", "rejected", "returned", "unconfirmed",
    "delivered", "delivered bytes", "acknowledged", "requeued", "discarded", "automatic",
    "unsettled", "frames", "bytes", "connections opened", "connections closed", "channels opened",
)  # fmt: skip
"""What is counted, in the order in which it is shown."""


def rates(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """What happened how often: `count` and `per_second` of both, and the ratio of the rates.

    `notable` is `more`, `fewer` or null. What neither has is left out.
    """
    rows = []
    spans = (before.span_ns, after.span_ns)
    for name in RATES:
        old, new = before.counts[name], after.counts[name]
        if not old and not new:
            continue
        events = None
        if name in before.events or name in after.events:
            events = (before.events.get(name, 0), after.events.get(name, 0))
        old_rate, new_rate = (per_second(n, s) for n, s in zip((old, new), spans, strict=True))
        rows.append(
            {
                "name": name,
                "before": {"count": old, "per_second": old_rate},
                "after": {"count": new, "per_second": new_rate},
                "ratio": round(new_rate / old_rate, 4) if old_rate and new_rate else None,
                "notable": direction(old, new, spans, events=events),
            }
        )
    return rows


def latencies(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """How long outcomes of messages and replies of methods took, the frequent ones first.

    `before` and `after` have `count` and the quantiles in ns, or are null where there was none.
    `notable` is `slower`, `faster` or null, `notable_at` the quantiles that say so.
    """
    names = dict.fromkeys((*before.latencies, *after.latencies))
    rows = [
        _latency(*name, before.latencies.get(name), after.latencies.get(name)) for name in names
    ]
    return sorted(rows, key=lambda row: (row["kind"] != "outcome", -_most(row)))


def _most(row: Row) -> int:
    return max(int(side["count"]) for side in (row["before"], row["after"]) if side is not None)


def _latency(kind: str, name: str, old: Any, new: Any) -> Row:
    notable, at = None, []
    if old is not None and new is not None:
        for word, one, other in (("slower", old, new), ("faster", new, old)):
            found = [name for name, part in FRACTIONS.items() if slower(one, other, part)]
            if found:  # the lower quantiles say more: they rest on more
                notable, at = word, found
                break
    return {
        "kind": kind,
        "name": name,
        "before": _times(old),
        "after": _times(new),
        "p95_ratio": _ratio(old, new),
        "notable": notable,
        "notable_at": at,
    }


def _ratio(old: Any, new: Any) -> float | None:
    """How much larger the 95th percentile is."""
    values = [None if one is None else one.quantiles(0.95)[0] for one in (old, new)]
    return round(values[1] / values[0], 4) if values[0] and values[1] else None


def _times(spread: Any) -> Row | None:
    if spread is None or not spread.facts()[0]:
        return None
    number, _, largest = spread.facts()
    found = spread.quantiles(*FRACTIONS.values())
    quantiles = {f"{name}_ns": value for name, value in zip(FRACTIONS, found, strict=True)}
    return {"count": number, **quantiles, "max_ns": largest}


def regressions(before: CaptureProfile, after: CaptureProfile, percent: float) -> list[Row]:
    """The rows of `latencies` whose 95th percentile grew by more than this, beyond chance.

    Where there are too few times to say so of the 95th percentile, the median must have grown by as
    much too.
    """
    ratio = 1 + percent / 100
    found = []
    for key in before.latencies.keys() & after.latencies.keys():
        old, new = before.latencies[key], after.latencies[key]
        row = _latency(*key, old, new)
        if (row["p95_ratio"] or 0) > ratio and any(
            slower(old, new, FRACTIONS[name], ratio) for name in ("p50", "p95")
        ):
            found.append(row)
    return sorted(found, key=lambda row: -row["p95_ratio"])
