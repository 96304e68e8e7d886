# cython: language_level=3, boundscheck=True, nonecheck=True
"""One finding, a row of the findings table; its kind, a row of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import cython

from amqpsniff.errors import UsageError

SEVERITIES = ("info", "warning", "error")
"""Severities, the mildest first."""

CONFIDENCES = {
    "high": "seen in the bytes themselves",
    "medium": "follows from the state of a connection or channel, followed from its beginning",
    "low": "follows from rates and counts",
}
"""Levels of confidence, the surest first."""

CATEGORIES = {
    "problem": "something failed, was refused, was lost or waits",
    "cost": "it works, and takes more than it needs",
    "note": "clients and the broker are set up or used this way, whatever happened",
    "capture": "the capture does not show everything",
}
"""Categories of findings, by their use for a person who looks for a fault."""

SHOWN = ("severity", "title", "advice", "confidence")
"""Fields of a `Kind` that are columns of its findings."""


def rank(severity: Any) -> int:
    """The place of a severity in `SEVERITIES`; raises UsageError for any other text."""
    if severity not in SEVERITIES:
        raise UsageError(f"no severity `{severity}`; there are {', '.join(SEVERITIES)}")
    return SEVERITIES.index(severity)


def at_least(severity: Any, bound: Any) -> bool:
    """True if a severity is as bad as a bound, or worse; no severity reaches None."""
    return bound is not None and rank(severity) >= rank(bound)


class Kind(NamedTuple):
    """One row of the catalogue.

    Attributes:
        code: Stable name, in kebab case.
        severity: One of `SEVERITIES`.
        confidence: One of `CONFIDENCES`.
        title: The fault, in one line.
        evidence: Its evidence on the wire.
        advice: Its remedy.
        false_alarms: Harmless cases that look the same; empty if none are known.
        causes: Codes of findings that cause this one if they come before it on the same connection.
        category: One of `CATEGORIES`.
    """

    code: str
    severity: str
    confidence: str
    title: str
    evidence: str
    advice: str
    false_alarms: str = ""
    causes: tuple[str, ...] = ()
    category: str = "problem"


FURTHER = "further ones, first: "
"""Begins the detail of the finding that counts all subjects after the first ones."""


@dataclass
@cython.cclass
class Finding:
    """One finding: its first place, its number of cases, and its last place.

    All fields except `code`, `detail` and `count` may be None: unknown, or not about a packet.
    Numbers of packets and channels and the time are integers, the others are texts.
    `cause_code` and `cause_packet_number` name the finding that caused this one, by its code and
    first packet; None without a cause. `variant` separates findings of one code and place, such as
    the queues for which channels were closed. `until_ns`: the end of a state that began at `ts_ns`:
    a cause may have come in that time.
    """

    code: str
    detail: str
    capture: Any = None
    packet_number: Any = None
    ts_ns: Any = None
    connection_id: Any = None
    client: Any = None
    server: Any = None
    channel: Any = None
    count: cython.longlong = 1
    last_packet_number: Any = None
    cause_code: Any = None
    cause_packet_number: Any = None
    variant: Any = None
    until_ns: Any = None

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of a finding: code, connection or capture, channel, variant."""
        return self.code, self.connection_id or self.capture, self.channel, self.variant

    @property
    def kind(self) -> Kind:
        """The catalogue's row for this finding's code."""
        return _kinds()[self.code]


@cache
def _kinds() -> dict[str, Kind]:
    from .catalogue import KINDS  # most captures have none of these

    return KINDS
