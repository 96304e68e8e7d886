"""One row of the catalogue of findings."""

from __future__ import annotations

from typing import NamedTuple

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


def rank(severity: str) -> int:
    """The place of a severity in `SEVERITIES`; raises UsageError for any other text."""
    if severity not in SEVERITIES:
        raise UsageError(f"no severity `{severity}`; there are {', '.join(SEVERITIES)}")
    return SEVERITIES.index(severity)


def at_least(severity: str, bound: str | None) -> bool:
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
