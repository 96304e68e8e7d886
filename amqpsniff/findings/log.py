# cython: language_level=3, boundscheck=True, nonecheck=True
"""The log of findings, which folds those of one kind and place into one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import cython
from cython.cimports.amqpsniff.findings.finding import Finding

from .causes import find_causes, is_of_capture
from .records import Records

MAX_FINDINGS = 100_000
"""Distinct findings kept; an attacker could otherwise make one per connection without end."""

MAX_PLACES = 10_000
"""Distinct findings of one code kept, so that a flood of one code leaves room for the others."""

MAX_CAUSES = 1_000
"""Latest findings among which the causes of news are looked for: it is done again and again."""


@cython.cclass
class FindingLog:
    """Collects findings, folding those of one code, connection, channel and variant into one.

    At most `MAX_FINDINGS` distinct ones are kept, and `MAX_PLACES` of one code. Later ones are
    counted in one finding without a place for each code, and `findings-limit` reports this.

    `most` is another bound, on all of them. `recorded` collects records about several connections,
    for a reader of some of them; None for a reader of all.
    """

    recorded: Records | None
    _most: int | None
    _findings: dict[tuple[object, ...], Finding]
    _places: dict[str, int]
    _unplaced: dict[str, Finding]
    _news: dict[tuple[object, ...], Finding] | None

    def __init__(self, most: int | None = None) -> None:
        self.recorded = self._news = None
        self._most = most
        self._findings = {}
        self._places = {}
        self._unplaced = {}

    def watch(self) -> None:
        """Record changes for `news` from now on."""
        self._news = {}

    @property
    def watched(self) -> bool:
        """True if `news` are asked for."""
        return self._news is not None

    def news(self) -> list[Finding]:
        """Copies of the findings that are new or were found again since the last call; with a count
        of 0 those that were withdrawn.

        Causes are those found so far. The log keeps all findings.
        """
        if not self._news:
            return []
        found = [replace(finding) for finding in self._news.values()]
        self._news.clear()
        find_causes(found, islice(reversed(self._findings.values()), MAX_CAUSES))
        return [finding for finding in found if not is_of_capture(finding)]

    @cython.ccall
    def add(self, finding: Finding) -> None:
        """Record one occurrence; a code that is not in the catalogue is a `KeyError`."""
        code = finding.code
        key = (code, finding.connection_id or finding.capture, finding.channel, finding.variant)
        logged = self._findings.get(key)
        if code not in self._places and logged is None:
            _ = finding.kind
        if self._news is not None:
            self._news[key] = logged or finding
        if logged is not None:
            _fold(finding, logged)
        elif self.has_room(code):
            if finding.last_packet_number is None:
                finding.last_packet_number = finding.packet_number
            self._findings[key] = finding
            self._places[code] = self._places.get(code, 0) + 1
        else:
            if self._news is not None:
                del self._news[key]
            self._add_unplaced(finding)

    def add_limits(self, hits: Mapping[str, int], capture: str | None) -> None:
        """Report the numbers of hits of session limits, by name, at the end of a capture."""
        if self.recorded is not None:
            self.recorded.hit(hits)
            return
        if hits:
            each = (f"{name}: {n} time{'' if n == 1 else 's'}" for name, n in hits.items())
            self.add(Finding("session-limit", ", ".join(each), capture, count=len(hits)))

    @cython.ccall
    @cython.exceptval(-1)
    def has_room(self, code: str) -> cython.bint:
        """True if there is room for another finding of a code."""
        if self._most is not None:
            return len(self._findings) < self._most
        return len(self._findings) < MAX_FINDINGS and self._places.get(code, 0) < MAX_PLACES

    @cython.ccall
    @cython.exceptval(-1)
    def count_more(
        self,
        code: str,
        connection_id: str | None,
        capture: str | None,
        channel: Any,
        count: cython.longlong,
        last: Any,
        variant: Any = None,
    ) -> cython.bint:
        """Count more cases of an existing finding, as `add` would, or of those without a place;
        False if there is none.

        A rule that raises a finding often calls this first, to avoid making its text again.
        """
        logged = self._findings.get((code, connection_id or capture, channel, variant))
        if logged is not None:
            self.count(logged, count, last)
            return True
        logged = self._unplaced.get(code)
        if logged is None or self.has_room(code):
            return False
        _count(logged, count, last)
        return True

    @cython.ccall
    def find(
        self, code: str, connection_id: str, channel: Any = None, variant: Any = None
    ) -> Finding | None:
        """The finding of a channel, or of a connection as a whole, or None."""
        return self._findings.get((code, connection_id, channel, variant))

    def move(self, logged: Finding, place: Iterable[object]) -> None:
        """A finding in the log was seen earlier, at this place."""
        self.withdraw(logged.key)
        (logged.capture, logged.packet_number, logged.ts_ns, logged.connection_id, logged.client,
         logged.server) = place  # fmt: skip
        self.add(logged)

    @cython.ccall
    def count(self, logged: Finding, count: cython.longlong, last: Any) -> None:
        """Count more of a finding that is in the log."""
        if self._news is not None:
            self._news[logged.key] = logged
        _count(logged, count, last)

    def foresee(self, finding: Finding, quiet: bool = False) -> bool:
        """Record a provisional finding; False if it exists already, or has no place.

        If `quiet`, it is not in `news` before `announce`.
        """
        if finding.key in self._findings or not self.has_room(finding.code):
            return False
        self.add(finding)
        if quiet and self._news is not None:
            del self._news[finding.key]
        return True

    def announce(self, key: tuple[object, ...]) -> None:
        """Put a quiet finding into `news`."""
        if self._news is not None and key in self._findings:
            self._news[key] = self._findings[key]

    def withdraw(self, key: tuple[object, ...]) -> None:
        """Remove a provisional finding: a final one replaces it, or the state has ended."""
        finding = self._findings.pop(key, None)
        if finding is not None:
            self._places[finding.code] -= 1
            if self._news is not None:
                self._news[key] = replace(finding, count=0)

    def _add_unplaced(self, finding: Finding) -> None:
        logged = self._unplaced.get(finding.code)
        if logged is not None:
            _fold(finding, logged)
            return
        self._unplaced[finding.code] = Finding(
            finding.code,
            "in further places, first: " + (finding.connection_id or finding.capture or "?"),
            finding.capture,
            finding.packet_number,
            finding.ts_ns,
            count=finding.count,
            last_packet_number=finding.last_packet_number or finding.packet_number,
        )

    def take(self, others: Iterable[Finding] = ()) -> list[Finding]:
        """All findings in the order of their first packets, with their causes, without those that
        only show a flaw of the capture; the log is empty afterwards.

        The order in which they were found would depend on batches: TCP's findings about a batch of
        packets come after the decoder's.

        `others` are findings outside of the log that may be causes.
        """
        findings = sorted(self._findings.values(), key=_place)
        find_causes(findings, others)
        findings = [finding for finding in findings if not is_of_capture(finding)]
        if self._unplaced:
            number = sum(finding.count for finding in self._unplaced.values())
            findings += self._unplaced.values()
            cases = "1 case" if number == 1 else f"{number} cases"
            detail = f"{cases} of {', '.join(sorted(self._unplaced))} without a place of their own"
            findings.append(Finding("findings-limit", detail))
        self._findings.clear()
        self._places.clear()
        self._unplaced.clear()
        return findings


def _place(finding: Finding) -> tuple[object, ...]:
    """Sort key of findings: time and packet, then their identity; those without a time are last."""
    ts_ns, number = finding.ts_ns, finding.packet_number
    where = (finding.connection_id or "", -1 if finding.channel is None else finding.channel)
    return (
        ts_ns is None, ts_ns or 0, number is None, number or 0, finding.code, *where, finding.detail
    )  # fmt: skip


@cython.cfunc
def _fold(finding: Finding, logged: Finding) -> None:
    """Count a finding with the one of its kind and place."""
    _count(logged, finding.count, finding.last_packet_number or finding.packet_number)


@cython.cfunc
def _count(logged: Finding, count: cython.longlong, last: Any) -> None:
    """Count more cases of a finding; at the end of a connection they may have earlier packets."""
    logged.count += count
    if last is not None:
        before = logged.last_packet_number
        if before is None or before < last:
            logged.last_packet_number = last
