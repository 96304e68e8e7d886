"""Findings of a live run: when they are new, and when they have more cases.

A row of the findings table stands for all cases of a finding on a channel. It is returned at its
first case, and again with its new count: at most every `AGAIN_SECONDS`, and at the end. The last
row of a finding equals that of a file of the same packets; a withdrawn finding, for example of a
hang that ended, has a last row with a count of 0.
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


class _Given:
    """A finding as it was given last, when, and the highest count that it had."""

    __slots__ = ("finding", "given_ns", "max_count")

    def __init__(self, finding: Finding, now_ns: int) -> None:
        self.finding = finding
        self.given_ns = now_ns
        self.max_count = finding.count


class FindingUpdates:
    """Chooses the findings that are given now.

    `counts` has how often each code was found, which never goes down, `rows` how many rows of the
    findings table it has.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self._given: dict[Key, _Given] = {}
        self._later: dict[Key, Finding] = {}

    def add(self, findings: Iterable[Finding], now_ns: int) -> list[Finding]:
        """Take the new findings of the log; returns the rows to output now."""
        now: list[Finding] = []
        for finding in findings:
            key = finding.key
            given = self._given.get(key)
            if given is not None:
                self.counts[finding.code] += max(finding.count - given.max_count, 0)
                given.max_count = max(finding.count, given.max_count)
                self._later[key] = finding
            elif finding.count:
                self.rows[finding.code] += 1
                now.append(finding)
                if len(self._given) < MAX_REMEMBERED:
                    self.counts[finding.code] += finding.count
                    self._given[key] = _Given(finding, now_ns)
        for key in [key for key in self._later if self._is_due(key, now_ns)]:
            finding, given = self._later.pop(key), self._given[key]
            self.rows[finding.code] += bool(finding.count) - bool(given.finding.count)
            given.finding, given.given_ns = finding, now_ns
            now.append(finding)
        return now

    def rest(self, findings: Iterable[Finding]) -> list[Finding]:
        """Findings that changed since they were given, and given ones that were withdrawn."""
        found, missing = [], dict(self._given)
        for finding in findings:
            given = missing.pop(finding.key, None)
            if given is None or given.finding != finding:
                found.append(finding)
        withdrawn = (given.finding for given in missing.values())
        return found + [replace(finding, count=0) for finding in withdrawn if finding.count]

    def _is_due(self, key: Key, now_ns: int) -> bool:
        return now_ns - self._given[key].given_ns >= AGAIN_SECONDS * 1_000_000_000
