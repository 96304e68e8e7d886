"""Findings: faults and risks in the traffic, as rows.

`KINDS` is the catalogue: one row per code with its meaning, its evidence on the wire, advice, and
possible false alarms. A stage that detects a case calls `FindingLog.add` with a code and a place.
The log keeps one finding per (code, connection, channel) with a count, so that a million broken
frames are one row; the first subjects of a connection, such as missing queues, have one each. A
finding names the one that caused it (the broker's close names the wrong frame end before it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .finding import CATEGORIES, CONFIDENCES, FURTHER, SEVERITIES, SHOWN, Finding, Kind
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
