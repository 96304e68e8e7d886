"""Findings given while the traffic goes on: when they are new, and when they were found again.

A row of the findings table stands for every time that a thing was found on a channel. It is given
when it was found first, and again with its new count: not more often than every `AGAIN_SECONDS`,
and at the end. The last row of a finding is the one that reading a file of the same packets gives;
where that has none, because what hung went on, its last row has a count of 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from amqpsniff.findings import Finding

AGAIN_SECONDS = 10
"""A finding that comes with every message would otherwise be a row with every message."""

MAX_REMEMBERED = 100_000
"""Findings remembered as given, as many as the log keeps."""

Key = tuple[object, ...]


class News:
    """Chooses the findings that are given now.

    `counts` has how often each code was found, which never goes down, `rows` how many rows of the
    findings table it has.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self._counted: dict[Key, int] = {}
        self._given: dict[Key, tuple[int, Finding]] = {}
        self._later: dict[Key, Finding] = {}

    def add(self, findings: Iterable[Finding], now_ns: int) -> list[Finding]:
        """Take what the log has new; gives what is to be said now."""
        now: list[Finding] = []
        for finding in findings:
            key = finding.key
            self._count(key, finding)
            if key in self._given:
                self._later[key] = finding
            elif finding.count:
                self._give(key, finding, now_ns)
                now.append(finding)
        for key in [key for key in self._later if self._due(key, now_ns)]:
            finding = self._later.pop(key)
            self._give(key, finding, now_ns)
            now.append(finding)
        return now

    def rest(self, findings: Iterable[Finding]) -> list[Finding]:
        """Of all findings of the run, those that were not given as they are in the end, and those
        that were given and are none.
        """
        found, left = [], dict(self._given)
        for finding in findings:
            given = left.pop(finding.key, None)
            if given is None or given[1] != finding:
                found.append(finding)
        return found + [replace(one, count=0) for _, one in left.values() if one.count]

    def _count(self, key: Key, finding: Finding) -> None:
        """Count what came to a finding since it was counted last."""
        if len(self._counted) < MAX_REMEMBERED or key in self._counted:
            before = self._counted.get(key, 0)
            self.counts[finding.code] += max(finding.count - before, 0)
            self._counted[key] = max(finding.count, before)

    def _due(self, key: Key, now_ns: int) -> bool:
        given = self._given.get(key)
        return given is None or now_ns - given[0] >= AGAIN_SECONDS * 1_000_000_000

    def _give(self, key: Key, finding: Finding, now_ns: int) -> None:
        given = self._given.get(key)
        self.rows[finding.code] += bool(finding.count) - bool(given and given[1].count)
        if len(self._given) < MAX_REMEMBERED or key in self._given:
            self._given[key] = now_ns, finding
