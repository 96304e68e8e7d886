"""Findings of all tasks as those of one reader: what is about more than one connection.

Each task finds what its connections show by themselves. What is left for here is whatever counts or
names several connections, and what brought findings about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amqpsniff.findings import Finding, FindingLog

from .output import Note
from .survey import Surveyed

_BYSTANDERS = ("capture-inconclusive", "connection-silent")
_GLOBAL = ("packets-cut", "findings-limit")


def merge_findings(notes: Iterable[Note], files: Sequence[Surveyed]) -> list[Finding]:
    """The findings of the whole archive, those about files first."""
    notes = list(notes)
    of_files = [one for file in files for one in file.findings]
    lost = [one for note in notes for one in note.lost]
    known = {(one.capture, one.code) for one in of_files}
    of_files += [one for one in lost if (one.capture, one.code) not in known]
    log = FindingLog()
    found = [one for note in notes for one in note.found if one.code not in _GLOBAL]
    for one in sorted(found, key=_order):
        one.cause_code = one.cause_packet_number = None
        log.add(one)
    _add_cut(log, notes, files)
    return [*of_files, *log.take(of_files)]


def _order(finding: Finding) -> tuple[int, str, int]:
    return finding.ts_ns or 0, finding.capture or "", finding.packet_number or 0


def _add_cut(log: FindingLog, notes: Sequence[Note], files: Sequence[Surveyed]) -> None:
    """Say how many segments the snap length cut, over all tasks."""
    cut = sum(note.counters.get("cut", 0) for note in notes)
    if cut:
        segments = sum(note.counters.get("segments", 0) for note in notes)
        read = [one.path for one in files if one.packets]
        capture = read[0] if len(read) == 1 else None
        log.add(Finding("packets-cut", f"{cut} of {segments} segments", capture))
