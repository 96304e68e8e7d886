"""Findings: what is worth a person's attention, as rows.

`KINDS` is the catalogue: one row per code that says what it means, what on the wire shows it, what
to do and what may make it a false alarm. A stage that sees something calls `FindingLog.add` with a
code and a place; the log keeps one finding per (code, connection, channel) with a count, so that a
million broken frames are one row and not a million. What one finding brought about (the broker's
close after a wrong frame end, say) names it as its cause.
"""

from .catalogue import KINDS, SUBJECTS
from .finding import Finding
from .kind import GRADES, SEVERITIES, Kind
from .log import MAX_FINDINGS, MAX_PLACES, FindingLog
from .records import Records

__all__ = [
    "GRADES",
    "KINDS",
    "MAX_FINDINGS",
    "MAX_PLACES",
    "SEVERITIES",
    "SUBJECTS",
    "Finding",
    "FindingLog",
    "Kind",
    "Records",
]
