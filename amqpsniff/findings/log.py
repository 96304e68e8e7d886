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

    At most `MAX_FINDINGS` distinct ones are kept, and `MAX_PLACES` of one code. What comes after is
    counted in one finding for each code that has no place, and `findings-limit` says so.

    `most` is another bound, on all of them. `recorded` collects what concerns several connections,
    for a reader of some of them; null for a reader of all.
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
        """Remember from now on what `news` is to give."""
        self._news = {}

    @property
    def watched(self) -> bool:
        """True if `news` are asked for."""
        return self._news is not None

    def news(self) -> list[Finding]:
        """Copies of the findings that are new or were found again since the last call; with a count
        of 0 those that were withdrawn.

        Causes are those that are known now. Nothing is taken out of the log.
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
        known = self._findings.get(key)
        if code not in self._places and known is None:
            _ = finding.kind
        if self._news is not None:
            self._news[key] = known or finding
        if known is not None:
            _fold(finding, known)
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
        """Say how often limits of the session were reached, by name, at the end of a capture."""
        if self.recorded is not None:
            self.recorded.hit(hits)
            return
        if hits:
            each = (f"{name}: {n} time{'' if n == 1 else 's'}" for name, n in hits.items())
            self.add(Finding("session-limit", ", ".join(each), capture, count=len(hits)))

    @cython.ccall
    @cython.exceptval(-1)
    def has_room(self, code: str) -> cython.bint:
        """True if another finding of a code gets a place of its own."""
        if self._most is not None:
            return len(self._findings) < self._most
        return len(self._findings) < MAX_FINDINGS and self._places.get(code, 0) < MAX_PLACES

    @cython.ccall
    @cython.exceptval(-1)
    def again(
        self,
        code: str,
        connection_id: str | None,
        capture: str | None,
        channel: Any,
        count: cython.longlong,
        last: Any,
        variant: Any = None,
    ) -> cython.bint:
        """Count more of a finding that there is already, as `add` would, or of those without a
        place; False if there is none.

        Who raises a finding often asks this first, and need not put it into words again.
        """
        known = self._findings.get((code, connection_id or capture, channel, variant))
        if known is not None:
            self.count(known, count, last)
            return True
        known = self._unplaced.get(code)
        if known is None or self.has_room(code):
            return False
        _count(known, count, last)
        return True

    @cython.ccall
    def find(
        self, code: str, connection_id: str, channel: Any = None, variant: Any = None
    ) -> Finding | None:
        """The finding of a channel, or of a connection as a whole; None if there is none."""
        return self._findings.get((code, connection_id, channel, variant))

    def move(self, known: Finding, place: Iterable[object]) -> None:
        """A finding in the log was seen earlier, at this place."""
        self.withdraw(known.key)
        (known.capture, known.packet_number, known.ts_ns, known.connection_id, known.client,
         known.server) = place  # fmt: skip
        self.add(known)

    @cython.ccall
    def count(self, known: Finding, count: cython.longlong, last: Any) -> None:
        """Count more of a finding that is in the log."""
        if self._news is not None:
            self._news[known.key] = known
        _count(known, count, last)

    def foresee(self, finding: Finding, quiet: bool = False) -> bool:
        """Record what goes on; False when it is there already, or has no place.

        If `quiet`, it is no news before `announce`.
        """
        if finding.key in self._findings or not self.has_room(finding.code):
            return False
        self.add(finding)
        if quiet and self._news is not None:
            del self._news[finding.key]
        return True

    def announce(self, key: tuple[object, ...]) -> None:
        """What was recorded quietly is news now."""
        if self._news is not None and key in self._findings:
            self._news[key] = self._findings[key]

    def withdraw(self, key: tuple[object, ...]) -> None:
        """Take out what was foreseen: it comes again as it is known at the end, or it is over."""
        finding = self._findings.pop(key, None)
        if finding is not None:
            self._places[finding.code] -= 1
            if self._news is not None:
                self._news[key] = replace(finding, count=0)

    def _add_unplaced(self, finding: Finding) -> None:
        known = self._unplaced.get(finding.code)
        if known is not None:
            _fold(finding, known)
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
        """All findings in the order of what they are first seen in, with their causes, but for what
        is only of the capture; the log is empty afterwards.

        That is the order of time and packets, whenever they became known: what TCP tells of a batch
        of packets comes behind what is decoded of it, so that would depend on how packets came.

        `others` are findings that are not in the log and may have brought about some that are.
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
    """What findings are sorted by: time and packet, then what they are; what has none is last."""
    ts_ns, number = finding.ts_ns, finding.packet_number
    where = (finding.connection_id or "", -1 if finding.channel is None else finding.channel)
    return (
        ts_ns is None, ts_ns or 0, number is None, number or 0, finding.code, *where, finding.detail
    )  # fmt: skip


@cython.cfunc
def _fold(finding: Finding, known: Finding) -> None:
    """Count a finding with the one of its kind and place."""
    _count(known, finding.count, finding.last_packet_number or finding.packet_number)


@cython.cfunc
def _count(known: Finding, count: cython.longlong, last: Any) -> None:
    """Count more of a finding; what is said when a connection ends may be of an earlier packet."""
    known.count += count
    if last is not None:
        before = known.last_packet_number
        if before is None or before < last:
            known.last_packet_number = last
