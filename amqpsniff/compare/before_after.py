"""Everything that differs between two captures, as one object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.compare import topology
from amqpsniff.compare.noise import FRACTIONS, direction, per_second, slower
from amqpsniff.compare.profile import CaptureProfile, FindingKey, Row
from amqpsniff.findings import KINDS, SEVERITIES
from amqpsniff.findings.finding import at_least
from amqpsniff.spec import FIRST_ERROR_CODE
from amqpsniff.units import duration


def before_and_after(
    before: CaptureProfile,
    after: CaptureProfile,
    *,
    fail_on: str | None = None,
    fail_slower: float | None = None,
) -> dict[str, Any]:
    """The differences, as `amqpsniff diff --format json` prints them. None means unknown.

    Args:
        before, after: The captures.
        fail_on: Severity from which on a new finding is one of the `failures`.
        fail_slower: Percent by which the 95th percentile of a latency must grow to be one.
    """
    report: dict[str, Any] = {
        "before": _side(before),
        "after": _side(after),
        "caveats": _caveats(before, after),
        "rates": rates(before, after),
        "latencies": latencies(before, after),
        "findings": compared_findings(before, after),
        "topology": topology.compared(before, after),
        "clients": _products("client", before, after),
        "servers": _products("server", before, after),
        "closes": _closes(before, after),
    }
    report["notable_count"] = sum(1 for _ in notable(report))
    report["failures"] = [*_new_findings(report, fail_on), *_slower(before, after, fail_slower)]
    return report


def _new_findings(report: Row, fail_on: str | None) -> Iterator[str]:
    """Findings that are new and bad enough, one line each."""
    for row in report["findings"]:
        if row["change"] == "new" and at_least(row["severity"], fail_on):
            yield f"new {row['severity']}: {row['title']} ({row['code']})"


def _slower(
    before: CaptureProfile, after: CaptureProfile, fail_slower: float | None
) -> Iterator[str]:
    """Latencies that grew by more than a number of percent, one line each."""
    if fail_slower is not None:
        for row in regressions(before, after, fail_slower):
            yield (
                f"slower: {row['name']}, p95 {duration(row['before']['p95_ns'])} before, "
                f"{duration(row['after']['p95_ns'])} after"
            )


def notable(report: dict[str, Any]) -> Any:
    """The rows of a report that are more than noise, as (section, row)."""
    for section in ("findings", "latencies", "rates", "closes", "clients", "servers"):
        yield from ((section, row) for row in report[section] if row["notable"])
    for section, rows in report["topology"].items():
        if section != "forgotten":
            yield from ((section, row) for row in rows if row["notable"])


def _side(facts: CaptureProfile) -> Row:
    return {
        "captures": facts.names,
        "start_ns": facts.start_ns,
        "span_ns": facts.span_ns,
        "packets": facts.packets,
        "connections": facts.connections,
        "midstream_connections": facts.midstream,
        "flaws": facts.flaws,
    }


def _caveats(before: CaptureProfile, after: CaptureProfile) -> list[str]:
    """Reasons why a difference may be one of the captures and not of the traffic."""
    found = []
    for name, facts in (("before", before), ("after", after)):
        if not facts.connections:
            found.append(f"{name}: there is no AMQP in it")
        elif facts.midstream == facts.connections:
            found.append(
                f"{name}: every connection began before the capture: what was declared, bound and "
                "consumed at its beginning was not seen"
            )
        if facts.connections and not facts.span_ns:
            found.append(f"{name}: no time passes in it, so nothing happens per second")
        found += [f"{name}: {flaw}" for flaw in facts.flaws]
    if before.span_ns and after.span_ns:
        longer, shorter = max(before.span_ns, after.span_ns), min(before.span_ns, after.span_ns)
        if longer > LENGTHS_ALIKE * shorter:
            found.append(
                "the captures differ much in length: what happens rarely is in the longer one alone"
            )
    return found


LENGTHS_ALIKE = 4
"""Factor between the lengths of two captures up to which there is no note about it."""


def _products(side: str, before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """Kinds of clients, or of servers, with their connections; those that are new or gone first."""
    kinds = [kind for kind in dict.fromkeys((*after.products, *before.products)) if kind[0] == side]
    rows = []
    for kind in kinds:
        old, new = before.products[kind], after.products[kind]
        change = "new" if not old else "gone" if not new else "same"
        rows.append(
            {
                **dict(zip(("product", "version", "platform"), kind[1:], strict=True)),
                "change": change,
                "before": {"connections": old},
                "after": {"connections": new},
                "notable": None if change == "same" else change,
            }
        )
    return sorted(rows, key=lambda row: CHANGES.index(row["change"]))


def _closes(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """Numbers of connections and channels by kind of end; a new error code is notable."""
    spans = (before.span_ns, after.span_ns)
    rows = []
    for key in dict.fromkeys((*before.closes, *after.closes)):
        old, new = before.closes[key], after.closes[key]
        kind, closed_by, code = key
        change = "new" if not old else "gone" if not new else "same"
        notable = direction(old, new, spans)
        if code is not None and code >= FIRST_ERROR_CODE and change != "same":
            notable = change
        rows.append(
            {
                "what": kind,
                "closed_by": closed_by,
                "code": code,
                "text": after.close_texts.get(key, before.close_texts.get(key)),
                "change": change if change != "same" or notable is None else "changed",
                "before": {"count": old, "per_second": per_second(old, before.span_ns)},
                "after": {"count": new, "per_second": per_second(new, after.span_ns)},
                "notable": notable,
            }
        )
    return sorted(rows, key=lambda row: (not row["notable"], row["what"], row["code"] or 0))


RATES = (
    "published", "published bytes", "confirmed", "rejected", "returned", "unconfirmed",
    "delivered", "delivered bytes", "acknowledged", "requeued", "discarded", "automatic",
    "unsettled", "frames", "bytes", "connections opened", "connections closed", "channels opened",
)  # fmt: skip
"""Names of counts, in the order in which they are shown."""


def rates(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """Counts of both captures: `count` and `per_second` of each, and the ratio of the rates.

    `notable` is `more`, `fewer` or null. Names that neither has are left out.
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
    """Times of outcomes of messages and replies of methods, the frequent ones first.

    `before` and `after` have `count` and the quantiles in ns, or are null where there was none.
    `notable` is `slower`, `faster` or null, `notable_at` the quantiles that say so.
    """
    names = dict.fromkeys((*before.latencies, *after.latencies))
    rows = [
        _latency(*name, before.latencies.get(name), after.latencies.get(name)) for name in names
    ]
    return sorted(rows, key=lambda row: (row["kind"] != "outcome", -_largest_count(row)))


def _largest_count(row: Row) -> int:
    return max(int(side["count"]) for side in (row["before"], row["after"]) if side is not None)


def _latency(kind: str, name: str, old: Any, new: Any) -> Row:
    notable, at = None, []
    if old is not None and new is not None:
        for word, first, second in (("slower", old, new), ("faster", new, old)):
            found = [name for name, part in FRACTIONS.items() if slower(first, second, part)]
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
    """Ratio of the 95th percentiles."""
    values = [None if latency is None else latency.quantiles(0.95)[0] for latency in (old, new)]
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


FINDING_RATIO = 2.0
"""Factor between how often a finding is seen in a second from which on it changed."""


def compared_findings(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """A row for each finding, the important first: those that are new, changed, gone, the same.

    Packet numbers, times, addresses and connection ids differ whenever an application runs again.
    A finding matches another one if both have the same code, the same client (the name that it gave
    itself, or its product) and the same names in their details: queues, exchanges, users, a reply
    code.

    `change` is `new`, `changed`, `gone` or `same`; `before` and `after` are null where it is not
    there, else `places` (connections and channels), `count`, and `capture`, `packet_number` and
    `detail` of the first.
    """
    old, new = dict(before.findings), dict(after.findings)
    _join_folded(old, new)
    spans = (before.span_ns, after.span_ns)
    rows = []
    for key in dict.fromkeys((*new, *old)):
        code, client, about = key
        sides = (old.get(key), new.get(key))
        kind = KINDS[code]
        change, notable = _change(*sides, spans)
        rows.append(
            {
                "change": change,
                "notable": notable,
                "code": code,
                "severity": kind.severity,
                "title": kind.title,
                "client": client,
                "about": list(about),
                "before": sides[0],
                "after": sides[1],
            }
        )
    return sorted(rows, key=_importance)


def _join_folded(old: dict[FindingKey, Row], new: dict[FindingKey, Row]) -> None:
    """Give findings that differ only in the detail of their first case the same key.

    A finding that stands for several cases on one connection has the detail of the first one, and
    which is first is chance. Such ones match by code and client, where nothing else does.
    """
    alone = {key[:2]: key for key in old if key not in new}
    for key in [key for key in new if key not in old]:
        other = alone.get(key[:2])
        if other is None or other not in old:
            continue
        if _folded(old[other]) or _folded(new[key]):
            old[key] = old.pop(other)


def _folded(row: Row) -> bool:
    return bool(row["count"] > row["places"])


def _change(
    old: Row | None, new: Row | None, spans: tuple[int | None, int | None]
) -> tuple[str, str | None]:
    """The change of a finding, and whether it is notable: `new`, `gone`, `more`, `fewer`."""
    if old is None:
        return "new", "new"
    if new is None:
        return "gone", "gone"
    notable = direction(old["count"], new["count"], spans, ratio=FINDING_RATIO)
    return ("same" if notable is None else "changed"), notable


CHANGES = ("new", "changed", "gone", "same")


def _importance(row: Row) -> tuple[int, int, str]:
    return CHANGES.index(row["change"]), -SEVERITIES.index(row["severity"]), row["code"]
