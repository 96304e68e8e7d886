"""Findings of two captures, matched by what they are and what they are about.

Packet numbers, times, addresses and connection ids differ whenever an application runs again. A
finding matches another one if both have the same code, the same client (the name that it gave
itself, or its product) and the same names in their details: queues, exchanges, users, a reply code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.compare.names import lasting, subjects
from amqpsniff.compare.noise import direction
from amqpsniff.compare.profile import CaptureProfile, Row
from amqpsniff.findings import KINDS, SEVERITIES

FINDING_RATIO = 2.0
"""Factor between how often a finding is seen in a second from which on it changed."""

Key = tuple[str, str | None, tuple[str, ...]]


def compared(before: CaptureProfile, after: CaptureProfile) -> list[Row]:
    """A row for each finding, the important first: those that are new, changed, gone, the same.

    `change` is `new`, `changed`, `gone` or `same`; `before` and `after` are null where it is not
    there, else `places` (connections and channels), `count`, and `capture`, `packet_number` and
    `detail` of the first.
    """
    old, new = dict(_grouped(before)), dict(_grouped(after))
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


def _join_folded(old: dict[Key, Row], new: dict[Key, Row]) -> None:
    """Give what is the same but for its first case one key.

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
    """What became of a finding, and whether that is notable: `new`, `gone`, `more`, `fewer`."""
    if old is None:
        return "new", "new"
    if new is None:
        return "gone", "gone"
    notable = direction(old["count"], new["count"], spans, ratio=FINDING_RATIO)
    return ("same" if notable is None else "changed"), notable


CHANGES = ("new", "changed", "gone", "same")


def _importance(row: Row) -> tuple[int, int, str]:
    return CHANGES.index(row["change"]), -SEVERITIES.index(row["severity"]), row["code"]


def _grouped(facts: CaptureProfile) -> Iterator[tuple[Key, Row]]:
    """The findings of one side by what they are about."""
    groups: dict[Key, Row] = {}
    for row in facts.findings:
        key = _key(row, facts)
        known: Any = groups.get(key)
        if known is None:
            known = groups[key] = {
                "places": 0,
                "count": 0,
                "capture": row["capture"],
                "packet_number": row["packet_number"],
                "connection_id": row["connection_id"],
                "detail": row["detail"],
            }
        known["places"] += 1
        known["count"] += row["count"]
    yield from groups.items()


def _key(row: Row, facts: CaptureProfile) -> Key:
    client = facts.clients.get(row["connection_id"])
    about = subjects(row["detail"] or "")
    return row["code"], None if client is None else lasting(client), about
