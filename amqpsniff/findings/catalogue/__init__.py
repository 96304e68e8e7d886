"""The catalogue of findings: every row, by subject and by code."""

from __future__ import annotations

from typing import Any

from amqpsniff.errors import UsageError
from amqpsniff.findings.finding import Kind

from . import (
    captures,
    channels,
    closings,
    delivery,
    efficiency,
    frames,
    frameworks,
    handshake,
    links,
    methods,
    publishing,
    security,
    timing,
)

SUBJECTS: dict[str, tuple[Kind, ...]] = {
    "capture": captures.CAPTURES,
    "handshake": handshake.HANDSHAKE,
    "frames": frames.FRAMES,
    "methods": methods.METHODS,
    "contents": frames.CONTENTS,
    "channels": channels.CHANNELS,
    "closings": closings.CLOSINGS,
    "links": links.LINKS,
    "publishing": publishing.PUBLISHING,
    "delivery": delivery.DELIVERY,
    "timing": timing.TIMING,
    "efficiency": efficiency.EFFICIENCY,
    "security": security.SECURITY,
    "frameworks": frameworks.FRAMEWORKS,
}
"""The catalogue's rows by what they are about."""

KINDS: dict[str, Kind] = {kind.code: kind for kinds in SUBJECTS.values() for kind in kinds}
"""The catalogue's rows by code."""

MIN_LIKENESS = 0.5
"""Likeness of a code to one that is proposed instead of it: with less, any would be."""


def kind_of(code: str) -> Kind:
    """The catalogue's row of a code; raises UsageError that proposes codes like it."""
    if code in KINDS:
        return KINDS[code]
    from difflib import get_close_matches

    alike = [known for known in KINDS if code and code in known][:3]
    alike += [one for one in get_close_matches(code, KINDS, 3, MIN_LIKENESS) if one not in alike]
    hint = f"did you mean {', '.join(alike[:3])}?" if alike else "`amqpsniff explain` lists them"
    if code.isdecimal():
        hint = f"`amqpsniff spec {code}` knows reply codes"
    raise UsageError(f"no finding has the code `{code}`; {hint}")


def described(kind: Kind) -> dict[str, Any]:
    """A row of the catalogue with its subject; `leads_to` are the codes that have it as a cause."""
    subject = next(name for name, kinds in SUBJECTS.items() if kind in kinds)
    return {
        "code": kind.code,
        "subject": subject,
        "category": kind.category,
        "severity": kind.severity,
        "confidence": kind.confidence,
        "title": kind.title,
        "evidence": kind.evidence,
        "advice": kind.advice,
        "false_alarms": kind.false_alarms or None,
        "causes": list(kind.causes),
        "leads_to": [other.code for other in KINDS.values() if kind.code in other.causes],
    }
