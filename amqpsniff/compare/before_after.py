"""Everything that differs between two captures, as one object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.compare import figures, findings, topology
from amqpsniff.compare.noise import direction, per_second
from amqpsniff.compare.profile import CaptureProfile, Row
from amqpsniff.findings.kind import at_least
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
        "rates": figures.rates(before, after),
        "latencies": figures.latencies(before, after),
        "findings": findings.compared(before, after),
        "topology": topology.compared(before, after),
        "clients": _products("client", before, after),
        "servers": _products("server", before, after),
        "closes": _closes(before, after),
    }
    report["notable_count"] = sum(1 for _ in notable(report))
    report["failures"] = [*_new(report, fail_on), *_slower(before, after, fail_slower)]
    return report


def _new(report: Row, fail_on: str | None) -> Iterator[str]:
    """Findings that are new and bad enough, one line each."""
    for row in report["findings"]:
        if row["change"] == "new" and at_least(row["severity"], fail_on):
            yield f"new {row['severity']}: {row['title']} ({row['code']})"


def _slower(
    before: CaptureProfile, after: CaptureProfile, fail_slower: float | None
) -> Iterator[str]:
    """Latencies that grew by more than so many percent, one line each."""
    if fail_slower is not None:
        for row in figures.regressions(before, after, fail_slower):
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
    """Why a difference may be one of the captures and not of the traffic."""
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
"""Factor between the lengths of two captures up to which nothing is said of it."""


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
    return sorted(rows, key=lambda row: findings.CHANGES.index(row["change"]))


def _closes(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """How connections and channels ended, with how many; an error code that is new is notable."""
    spans = (before.span_ns, after.span_ns)
    rows = []
    for key in dict.fromkeys((*before.closes, *after.closes)):
        old, new = before.closes[key], after.closes[key]
        what, by, code = key
        change = "new" if not old else "gone" if not new else "same"
        notable = direction(old, new, spans)
        if code is not None and code >= FIRST_ERROR_CODE and change != "same":
            notable = change
        rows.append(
            {
                "what": what,
                "closed_by": by,
                "code": code,
                "text": after.close_texts.get(key, before.close_texts.get(key)),
                "change": change if change != "same" or notable is None else "changed",
                "before": {"count": old, "per_second": per_second(old, before.span_ns)},
                "after": {"count": new, "per_second": per_second(new, after.span_ns)},
                "notable": notable,
            }
        )
    return sorted(rows, key=lambda row: (not row["notable"], row["what"], row["code"] or 0))
