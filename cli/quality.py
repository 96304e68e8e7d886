"""How good a capture is: what of the traffic it shows is not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amqpsniff.pipeline import Totals

COUNTERS = (
    "cut", "retransmissions", "out_of_order", "duplicates", "impossible", "not_ip", "not_tcp",
    "malformed", "other_ports", "fragments",
)  # fmt: skip
"""Counters of packets and segments that say how good a capture is."""


def quality(totals: Totals) -> dict[str, Any]:
    """Numbers of holes, octets, connections, packets and segments, by name."""
    return {
        "gaps": totals.gaps,
        "lost_octets": totals.lost_octets,
        "midstream_connections": totals.midstream,
        "foreign_conversations": totals.foreign,
        "unreadable_tls": totals.sealed,
        "failed_connects": totals.unconnected,
        **{name: totals.counters.get(name, 0) for name in COUNTERS},
        "retransmissions": totals.retransmissions,
    }
