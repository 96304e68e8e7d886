"""Findings: what is worth a person's attention, as rows.

`KINDS` is the catalogue: one row per code that says what it means, what on the wire shows it, what
to do and what may make it a false alarm. A stage that sees something calls `FindingLog.add` with a
code and a place; the log keeps one finding per (code, connection, channel) with a count, so that a
million broken frames are one row and not a million; the first subjects of a connection, such as
queues that are not there, have one each. What one finding brought about (the broker's
close after a wrong frame end, say) names it as its cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .finding import FURTHER, Finding
from .kind import CATEGORIES, CONFIDENCES, SEVERITIES, SHOWN, Kind
from .log import MAX_FINDINGS, MAX_PLACES, FindingLog
from .records import Records

if TYPE_CHECKING:
    from .catalogue import KINDS, SUBJECTS

__all__ = [
    "CATEGORIES",
    "CONFIDENCES",
    "FURTHER",
    "KINDS",
    "MAX_FINDINGS",
    "MAX_PLACES",
    "SEVERITIES",
    "SHOWN",
    "SUBJECTS",
    "Finding",
    "FindingLog",
    "Kind",
    "Records",
]


def __getattr__(name: str) -> Any:
    """The catalogue, imported at its first use: most of reading finds nothing."""
    if name not in ("KINDS", "SUBJECTS"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import catalogue

    return getattr(catalogue, name)
