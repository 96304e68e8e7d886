"""The quality of a capture: traffic that is missing from it, as numbers and in words."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from amqpsniff.units import octets, plural

if TYPE_CHECKING:
    from amqpsniff.pipeline import Totals

COUNTERS = (
    "cut", "retransmissions", "out_of_order", "duplicates", "impossible", "not_ip", "not_tcp",
    "malformed", "other_ports", "fragments",
)  # fmt: skip
"""Counters of packets and segments that say how good a capture is."""


FLAWLESS = "nothing missing"
"""Written for a capture without flaws."""
EMPTY = "no packet in it"
"""Written for a capture without packets."""

ENDED_EARLY = {
    "capture-damaged": "a file is damaged",
    "capture-truncated": "a file is cut short",
    "capture-unreadable": "a file could not be read",
    "clock-set-back": "the clock was set back",
    "packets-out-of-order": "packets are not in the order of their times",
    "interface-dropped": "packets were dropped while capturing",
}
"""Flaws by the code of a finding."""

_QUALITY = (
    ("midstream_connections", "{} began before it", "connection"),
    ("doubled_connections", "{} captured twice, on both sides of a proxy or NAT", "connection"),
    ("one_sided_connections", "one direction of {} is missing", "connection"),
    ("lost_bytes", "{gaps} with {lost_bytes} lost", "gap"),
    ("unreadable_tls", "{} could not be read", "TLS conversation"),
    ("cut", "{} cut by the snap length", "packet"),
    ("retransmissions", "{} sent again", "segment"),
    ("out_of_order", "{} out of order", "segment"),
    ("duplicates", "{} captured twice", "packet"),
    ("impossible", "{} outside the window", "segment"),
    ("malformed", "{} with broken headers", "packet"),
)
"""Flaws by the name of a number, where that is not zero."""


def quality(totals: Totals) -> dict[str, Any]:
    """Numbers of gaps, bytes, connections, packets and segments, by name."""
    return {
        "gaps": totals.gaps,
        "lost_bytes": totals.lost_bytes,
        "midstream_connections": totals.midstream,
        "doubled_connections": totals.doubled,
        "one_sided_connections": totals.one_sided,
        "foreign_conversations": totals.foreign,
        "unreadable_tls": totals.sealed,
        "failed_connects": totals.unconnected,
        "unmeasured_publishes": totals.unmeasured,
        **{name: totals.counters.get(name, 0) for name in COUNTERS},
        "retransmissions": totals.retransmissions,
    }


def flaws(quality: dict[str, Any], codes: Collection[str]) -> list[str]:
    """The flaws of a capture in words, from its numbers and the codes of its findings."""
    parts = [ENDED_EARLY[code] for code in sorted(set(codes) & set(ENDED_EARLY))]
    for name, text, noun in _QUALITY:
        if not quality[name]:
            continue
        if name == "lost_bytes":
            gaps = plural(quality["gaps"], noun)
            parts.append(text.format(gaps=gaps, lost_bytes=octets(quality[name])))
        else:
            parts.append(text.format(plural(quality[name], noun)))
    for name in ("truncated", "incomplete"):
        if quality.get("messages", {}).get(name):
            parts.append(f"{plural(quality['messages'][name], 'message')} {name}")
    return parts
