"""Findings of all tasks as those of one reader.

Each task reports the findings of its own connections, and records their contributions to findings
about many: here these are judged, in time order, and causes are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from amqpsniff.findings import Finding, FindingLog, Records
from amqpsniff.session.rules.acknowledging import settle_stale
from amqpsniff.session.rules.registry import judge_together
from amqpsniff.session.rules.shared_state import of_messages

from .filesystem import Folder
from .message_logs import replay_messages
from .surveys import Surveyed
from .task_io import TaskResult

MAX_FINDINGS = 5_000_000
"""Findings of an archive that are kept, of whatever code, some 500 bytes each: more than the
bounds of one reader, which keep it small."""

# Findings of a task about its whole reading, which are made again for all tasks together.
_OF_ALL = ("packets-cut", "tunnel-unreadable", "findings-limit")


def merge_findings(
    results: Iterable[TaskResult],
    files: Sequence[Surveyed],
    folder: Folder,
    hits: Mapping[str, int] | None = None,
) -> list[Finding]:
    """The findings of the whole archive, those about files first; `folder` has the sightings.

    They are taken out of the results, for there are many. `hits`: limits that were reached since,
    by name.
    """
    results = list(results)
    of_files = [finding for file in files for finding in file.findings]
    reported = {(finding.capture, finding.code) for finding in of_files}
    for finding in chain.from_iterable(result.lost for result in results):
        if (finding.capture, finding.code) not in reported:
            reported.add((finding.capture, finding.code))
            of_files.append(finding)
    log = FindingLog(MAX_FINDINGS)
    records = Records()
    found = []
    for result in results:
        records.add(result.records)
        found += [finding for finding in result.found if finding.code not in _OF_ALL]
        result.found, result.records = [], Records()
    records.hit(hits or {})
    settle_stale(found, records, records.forget)
    found.sort(key=_order)
    for finding in found:
        finding.cause_code = finding.cause_packet_number = None
        log.add(finding)
    del found
    written = [result.sighted for result in results if result.sighted is not None]
    captures = sorted(file.path for file in files)
    replay = replay_messages(written, folder.open, captures, log)
    records.forget(of_messages(replay.recent_publishes, replay.requeues))
    ends = [(file.last_ns, file.path) for file in files if file.last_ns is not None]
    judge_together(records, log, max(ends)[0] if ends else None)
    log.add_limits(records.limits, max(ends)[1] if ends else None)
    cut = sum(result.counters.get("cut", 0) for result in results)
    if cut:
        segments = sum(result.counters.get("segments", 0) for result in results)
        read = [file.path for file in files if file.packets]
        capture = read[0] if len(read) == 1 else None
        log.add(Finding("packets-cut", f"{cut} of {segments} segments", capture))
    return [*of_files, *log.take(of_files)]


def _order(finding: Finding) -> tuple[int, str, int]:
    return finding.ts_ns or 0, finding.capture or "", finding.packet_number or 0
