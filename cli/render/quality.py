"""How good a capture is, in words."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from amqpsniff.quantities import octets

from .text import plural

FLAWLESS = "nothing missing"
"""What is said of a capture without flaws."""
EMPTY = "no packet in it"
"""What is said of a capture without packets."""

_ENDED_EARLY = {
    "capture-damaged": "a file is damaged",
    "capture-truncated": "a file is cut short",
    "capture-unreadable": "a file could not be read",
    "interface-dropped": "packets were dropped while capturing",
}
"""What is said of a capture's quality for a finding."""

_QUALITY = (
    ("lost_octets", "{gaps} with {lost_octets} lost", "gap"),
    ("unreadable_tls", "{} could not be read", "TLS conversation"),
    ("cut", "{} cut by the snap length", "packet"),
    ("retransmissions", "{} sent again", "segment"),
    ("out_of_order", "{} out of order", "segment"),
    ("duplicates", "{} captured twice", "packet"),
    ("impossible", "{} outside the window", "segment"),
    ("malformed", "{} with broken headers", "packet"),
)
"""What is said of a capture's quality where the number is not zero."""


def flaws(quality: dict[str, Any], codes: Collection[str]) -> list[str]:
    """What is wrong with a capture, from its counters and the codes of its findings."""
    parts = [_ENDED_EARLY[code] for code in sorted(set(codes) & set(_ENDED_EARLY))]
    for name, text, noun in _QUALITY:
        if not quality[name]:
            continue
        if name == "lost_octets":
            gaps = plural(quality["gaps"], noun)
            parts.append(text.format(gaps=gaps, lost_octets=octets(quality[name])))
        else:
            parts.append(text.format(plural(quality[name], noun)))
    for name in ("truncated", "incomplete"):
        if quality.get("messages", {}).get(name):
            parts.append(f"{plural(quality['messages'][name], 'message')} {name}")
    return parts
