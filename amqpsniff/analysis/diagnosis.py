"""The diagnosis: faults in captures, the important first, and the limits of the captures."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.clients import Clients, Introductions
from amqpsniff.analysis.finding_tree import Case, Row, cases, finding_row, findings_of, in_order
from amqpsniff.analysis.quality import flaws, quality
from amqpsniff.analysis.selection import RowFilter, Selection, Started, no_match
from amqpsniff.analysis.verdict import NOT_LOOKED_AT, Verdict, verdict
from amqpsniff.arguments import several
from amqpsniff.errors import UsageError
from amqpsniff.findings import KINDS, SEVERITIES
from amqpsniff.findings.catalogue import kind_of
from amqpsniff.findings.finding import at_least

if TYPE_CHECKING:
    from amqpsniff.findings import Finding
    from amqpsniff.pipeline import Totals


@dataclass
class Diagnosis:
    """The findings of captures.

    Attributes:
        found: The findings, the important first: by severity, problems before costs and notes, the
            surest first.
        packets, connections: Numbers of packets and connections read.
        quality: Numbers of missing data; see `amqpsniff.analysis.quality.quality`.
        flaws: Faults of the capture itself, as text.
        finding_count: All findings, with those that the selection left out.
        clients: Names of the connections in findings.
        start_ns: The time of the first packet; None if no packet has one.
        zone: The time zone of times of day in the verdict; None for UTC.
    """

    found: list[Finding]
    packets: int
    connections: int
    quality: dict[str, Any]
    flaws: list[str]
    finding_count: int = 0
    clients: Clients = field(default_factory=Clients)
    start_ns: int | None = None
    zone: str | None = None

    @cached_property
    def findings(self) -> list[Row]:
        """Findings as rows of the findings table, without `timestamp`."""
        return list(map(finding_row, self.found))

    @cached_property
    def cases(self) -> list[Case]:
        """The findings as a tree: consequences under their cause, all places of one together."""
        return cases(self.found)

    @cached_property
    def verdict(self) -> Verdict:
        """A few sentences: the fault, its begin, its client, and its confidence."""
        return verdict(
            self.cases,
            self.clients,
            self.quality,
            packets=self.packets,
            connections=self.connections,
            start_ns=self.start_ns,
            zone=self.zone,
            finding_count=self.finding_count,
        )

    def fails(self, fail_on: str | None, notes: bool = True) -> bool:
        """True if a check must not pass: there are `failures`."""
        return bool(self.failures(fail_on, notes))

    def failures(self, fail_on: str | None, notes: bool = True) -> list[str]:
        """Reasons in words why a check fails: traffic that could not be looked at, and findings as
        bad as `fail_on`, with or without notes. Empty if `fail_on` is None.
        """
        if fail_on is None:
            return []
        kinds = [KINDS[code] for code in dict.fromkeys(finding.code for finding in self.found)]
        bad = [
            kind
            for kind in kinds
            if at_least(kind.severity, fail_on) and (notes or kind.category != "note")
        ]
        return [
            *(f"not judged: {text}" for text in self.verdict.unseen),
            *(f"found {kind.severity}: {kind.title} ({kind.code})" for kind in bad),
        ]

    def plain(self, limit: int | None = None) -> dict[str, Any]:
        """The diagnosis for JSON, with at most `limit` findings."""
        return {
            "verdict": self.verdict.plain(),
            "findings": [
                finding_row(finding)
                | {"client_name": self.clients.name(finding.connection_id) or None}
                for finding in self.found[:limit]
            ],
            "finding_count": self.finding_count,
            "packets": self.packets,
            "connection_count": self.connections,
            "quality": self.quality,
        }


def diagnosis_of(
    findings: Iterable[Finding],
    totals: Totals,
    introductions: Introductions,
    open_: Iterable[Row] = (),
    zone: str | None = None,
) -> Diagnosis:
    """The diagnosis of a run, of all its findings; `open_` names the clients that are connected."""
    found = in_order(findings)
    codes = {finding.code for finding in found}
    start_ns = totals.span[0]
    return _diagnosis(found, codes, len(found), totals, introductions, start_ns, zone, open_)


def _diagnosis(
    found: list[Finding],
    codes: Set[str],
    finding_count: int,
    totals: Totals,
    introductions: Introductions,
    start_ns: int | None,
    zone: str | None,
    open_: Iterable[Row] = (),
) -> Diagnosis:
    """The diagnosis of the findings that are wanted; `codes` are those of all findings."""
    numbers = quality(totals)
    return Diagnosis(
        found,
        totals.packets,
        totals.connections,
        numbers,
        flaws(numbers, codes),
        finding_count,
        Clients((*introductions.rows({finding.connection_id for finding in found}), *open_)),
        start_ns,
        zone,
    )


class WantedFindings:
    """A filter of findings by code and severity.

    Raises UsageError for a code that is not in the catalogue, and for an unknown severity.

    Args:
        only: Codes of findings, with commas between or one by one; None for all.
        ignore: Codes that are left out.
        severity: Only findings of this severity or a worse one.
    """

    def __init__(
        self,
        only: str | Iterable[str] | None = None,
        ignore: str | Iterable[str] | None = None,
        severity: str | None = None,
    ) -> None:
        if severity is not None and severity not in SEVERITIES:
            raise UsageError(f"no severity `{severity}`; there are {', '.join(SEVERITIES)}")
        self._only = None if only is None else _codes(only)
        self._ignored = frozenset() if ignore is None else _codes(ignore)
        self._severity = severity

    def of(self, findings: Iterable[Finding]) -> list[Finding]:
        """The wanted ones, the important first."""
        candidates = list(findings)
        codes = set(filter(self._is_wanted, {finding.code for finding in candidates}))
        return in_order(finding for finding in candidates if finding.code in codes)

    def _is_wanted(self, code: str) -> bool:
        chosen = self._only is None or code in self._only
        severe = (
            self._severity is None
            or at_least(KINDS[code].severity, self._severity)
            or code in NOT_LOOKED_AT
        )
        return chosen and severe and code not in self._ignored


class Diagnoser:
    """Collects findings from batches: `add` them, then take the `result`.

    Args:
        selection: The part of the findings that is wanted; its `limit` is not used.
        wanted: The filter of these findings.
        started: Returns the time at which the capture began.

    Attributes:
        tables: Names of the tables whose batches are needed; none if no selection needs them:
            `result` gets all findings anyway.
        introductions: Gets the connections that end.
    """

    def __init__(self, selection: Selection, wanted: WantedFindings, started: Started) -> None:
        self._wanted = wanted
        self._selection = selection
        self._matches = selection.matches_connection()
        self._missing = self._matches is not None
        self._filter = RowFilter(selection, "findings", started)
        self._started = started
        self._found: list[Finding] = []
        self._count = 0
        self.introductions = Introductions()
        self.tables: tuple[str, ...] = ()
        if selection.chooses():
            self.tables = ("findings", "connections") if self._missing else ("findings",)

    def add(self, table: str, batch: Any) -> None:
        """Take a batch of one of the tables."""
        if table == "findings":
            self._count += batch.num_rows
            self._found += findings_of(self._filter.of(batch))
        elif self._matches is not None:
            rows = batch.select(["connection_id", "client", "server"]).to_pylist()
            self._missing &= not any(
                self._matches(*(value or "" for value in row.values())) for row in rows
            )

    def result(self, totals: Totals, findings: Iterable[Finding]) -> Diagnosis:
        """The diagnosis of a pass with these totals and, before any selection, these findings.

        Raises UsageError for an unknown connection: an empty answer would look like a sound one.
        """
        if self._missing and totals.connections:
            raise no_match(self._selection, totals.connections)
        listed = list(findings)
        if not self.tables:
            self._found, self._count = listed, len(listed)
        codes = {finding.code for finding in listed}
        found = self._wanted.of(self._found)
        start_ns, zone = self._started(), self._selection.tz
        return _diagnosis(found, codes, self._count, totals, self.introductions, start_ns, zone)


def _codes(codes: str | Iterable[str]) -> frozenset[str]:
    """Codes of the catalogue, in one text with commas between or one by one."""
    names = codes.split(",") if isinstance(codes, str) else several("finding", codes, str)
    return frozenset(kind_of(code.strip().lower()).code for code in names)
