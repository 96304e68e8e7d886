"""Findings folded for reading: consequences of the same cause in many places are one case.

A finding's place in the tree is the path of codes from its first cause to itself. Findings with the
same path, on any number of connections, are the places of one case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from typing import Any

from amqpsniff.findings import CONFIDENCES, KINDS, SHOWN, Finding
from amqpsniff.findings.finding import rank

_CONFIDENCES = tuple(CONFIDENCES)

Row = dict[str, Any]
"""A row of the findings table; see `finding_row`."""

_CATEGORIES = ("problem", "capture", "cost", "note")
"""Categories of findings, the important first."""

_BROAD = frozenset(
    ("broker-stopped", "connection-blocked", "path-interrupted", "connect-refused",
     "connect-unanswered")
)  # fmt: skip
"""Findings that are about all clients of a broker, or of a path to it."""

_OWN = (
    "capture", "packet_number", "ts_ns", "connection_id", "client", "server", "channel", "code",
    "detail", "count", "last_packet_number", "cause_code", "cause_packet_number",
)  # fmt: skip
"""Columns of the findings table that are fields of a finding, except `timestamp`."""

_values = attrgetter(*_OWN)

_REPEAT = frozenset("capture connection_id client server code cause_code".split())
"""Columns with texts that other findings have too."""


@dataclass
class Case:
    """One finding in all its places.

    Attributes:
        code: Of the finding.
        findings: One for each place, in the order of time.
        consequences: Cases that this one caused, important ones first.
    """

    code: str
    findings: list[Finding] = field(default_factory=list)
    consequences: list[Case] = field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """The rows of all places."""
        return self.places()

    def places(self, limit: int | None = None) -> list[Row]:
        """The rows of the first places."""
        return list(map(finding_row, self.findings[:limit]))

    @cached_property
    def first(self) -> Row:
        """The row of the place that was seen first."""
        return finding_row(self.findings[0])

    @property
    def count(self) -> int:
        """Occurrences in all places together."""
        return sum(finding.count for finding in self.findings)

    @property
    def is_note(self) -> bool:
        """True if it and all that came of it are notes on configuration and security."""
        return all(KINDS[case.code].category == "note" for case in self.walk())

    def walk(self) -> Iterator[Case]:
        """This case and all that came of it."""
        return (case for case, _ in self.walk_deep())

    def walk_deep(self, depth: int = 0) -> Iterator[tuple[Case, int]]:
        """The cases of the tree, each with the number of causes above it."""
        yield self, depth
        for case in self.consequences:
            yield from case.walk_deep(depth + 1)


def findings_of(batch: Any) -> list[Finding]:
    """The findings of a batch of their table; equal texts are one object."""
    shared: dict[Any, Any] = {}
    columns = {}
    for name in _OWN:
        values = batch.column(name).to_pylist()
        repeats = name in _REPEAT
        columns[name] = [shared.setdefault(value, value) for value in values] if repeats else values
    return [
        Finding(**dict(zip(_OWN, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    ]


def finding_row(finding: Finding) -> Row:
    """The row of a finding as in a batch of the table; `timestamp` is the time of `ts_ns`."""
    row = _blank(finding.code).copy()  # room for all findings
    row.update(zip(_OWN, _values(finding), strict=True))
    for name in ("capture", "detail"):  # Arrow keeps no text that is not UTF-8
        text = row[name]
        if text is not None and not text.isascii():
            row[name] = text.encode(errors="backslashreplace").decode()
    return row


@cache
def _blank(code: str) -> Row:
    """A row with only the catalogue's values of a code."""
    return dict.fromkeys(_OWN) | {name: getattr(KINDS[code], name) for name in SHOWN}


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By importance: severity, problems before costs and notes, what concerns all clients of a
    broker, how sure they are, time.
    """
    return sorted(_in_time(findings), key=lambda finding: _importance_of(finding.code))


def _in_time(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: finding.ts_ns or 0)


@cache
def _importance_of(code: str) -> tuple[int, int, bool, int]:
    kind = KINDS[code]
    category, confidence = _CATEGORIES.index(kind.category), _CONFIDENCES.index(kind.confidence)
    return -rank(kind.severity), category, code not in _BROAD, confidence


def cases(findings: Iterable[Finding]) -> list[Case]:
    """The cases that stand for themselves, the one with the worst in it first."""
    ordered = _in_time(findings)
    paths = _Causes(ordered).paths
    by_path: dict[tuple[str, ...], Case] = {}
    roots: list[Case] = []
    for path in sorted(dict.fromkeys(paths), key=len):
        case = by_path[path] = Case(path[-1])
        (by_path[path[:-1]].consequences if len(path) > 1 else roots).append(case)
    for finding, path in zip(ordered, paths, strict=True):
        by_path[path].findings.append(finding)
    for case in by_path.values():
        case.consequences.sort(key=_importance)
    return sorted(roots, key=_importance)


def headings(roots: Iterable[Case], severity: str) -> list[Case]:
    """The cases of a severity, consequences too: each of them has a heading of its own."""
    all_cases = [case for root in roots for case in root.walk()]
    return [case for case in all_cases if KINDS[case.code].severity == severity]


def _importance(case: Case) -> tuple[int, int, bool, int, int]:
    worst = max(rank(KINDS[node.code].severity) for node in case.walk())
    return -worst, *_importance_of(case.code)[1:], case.findings[0].ts_ns or 0


class _Causes:
    """Looks for the finding that another names as its cause.

    `findings` are in time order; those of one time are in any order. Only the named cause may begin
    after its consequence, while that lasts. No finding is its own cause through others.
    """

    def __init__(self, findings: list[Finding]) -> None:
        # by code, connection or capture (null for all of them), and packet
        self._named: dict[tuple[Any, ...], Finding] = {}
        causes = {finding.cause_code for finding in findings}
        for finding in findings:
            if finding.code in causes:
                for key in _keys(finding):
                    self._named.setdefault(key, finding)
        alone = {code: (code,) for code in {finding.code for finding in findings}}
        self._paths: dict[int, tuple[str, ...]] = {}
        self.paths = [
            alone[finding.code] if finding.cause_code is None else self._path(finding)
            for finding in findings
        ]

    def _path(self, finding: Finding) -> tuple[str, ...]:
        """Codes from the first cause to the finding itself."""
        chain: dict[int, Finding] = {}
        cause: Finding | None = finding
        while cause is not None and id(cause) not in self._paths and id(cause) not in chain:
            chain[id(cause)] = cause
            cause = self._cause(cause)
        path = self._paths.get(id(cause), ())
        for step in reversed(chain.values()):
            path = self._paths[id(step)] = (*path, step.code)
        return path

    def _cause(self, finding: Finding) -> Finding | None:
        """The one that brought this one about; None if it is not among the findings."""
        if finding.cause_code is None:
            return None
        for key in _keys_of_cause(finding):
            cause = self._named.get(key)
            is_named_cause = (
                cause is not None and cause.packet_number == finding.cause_packet_number
            )
            if cause is not None and (is_named_cause or (cause.ts_ns or 0) <= (finding.ts_ns or 0)):
                return cause
        return None


def _keys(finding: Finding) -> Iterator[tuple[Any, ...]]:
    """Under which keys a finding is looked for."""
    code, connection = finding.code, finding.connection_id
    if connection is not None:
        yield code, connection, finding.packet_number
        yield code, connection
    yield code, finding.capture, finding.packet_number


def _keys_of_cause(finding: Finding) -> Iterator[tuple[Any, ...]]:
    """Under which keys the cause of a finding is looked for."""
    code = finding.cause_code
    for place in (finding.connection_id, finding.capture, None):
        yield code, place, finding.cause_packet_number
    yield code, finding.connection_id  # a case of it that is not the first
