"""The diagnosis: what is wrong in captures, the important first, and how much can be known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.finding_tree import Case, Row, cases, finding_rows, in_order
from amqpsniff.analysis.quality import flaws, quality
from amqpsniff.analysis.selection import RowFilter, Selection, Started, no_match
from amqpsniff.findings.catalogue import kind_of

if TYPE_CHECKING:
    from amqpsniff.findings import Finding
    from amqpsniff.pipeline import Totals


@dataclass
class Diagnosis:
    """The findings of captures.

    Attributes:
        findings: Rows of the findings table without `timestamp`, the important first: by severity,
            trouble before costs and settings, the surest first.
        packets, connections: Numbers of what was read.
        quality: Numbers of what is missing; see `amqpsniff.analysis.quality.quality`.
        flaws: Faults of the capture itself, in words.
    """

    findings: list[Row]
    packets: int
    connections: int
    quality: dict[str, Any]
    flaws: list[str]

    @cached_property
    def cases(self) -> list[Case]:
        """The findings as a tree: consequences under their cause, all places of one together."""
        return cases(self.findings)


class Diagnoser:
    """Collects findings from batches: `add` them, then take the `result`.

    Raises UsageError for a code that is not in the catalogue.

    Args:
        selection: The part of the findings that is wanted; its `limit` is not used.
        only: Codes of findings, with commas between or one by one; None for all.
        started: Gives the time at which the capture began.

    Attributes:
        tables: Names of the tables whose batches are needed.
    """

    def __init__(
        self, selection: Selection, only: str | Iterable[str] | None, started: Started
    ) -> None:
        codes = only.split(",") if isinstance(only, str) else only
        self._codes = None
        if codes is not None:
            self._codes = {kind_of(code.strip().lower()).code for code in codes}
        self._selection = selection
        self._matches = selection.matches_connection()
        self._missing = self._matches is not None
        self._filter = RowFilter(selection, "findings", started)
        self._found: list[Row] = []
        self.tables = ("findings", "connections") if self._missing else ("findings",)

    def add(self, table: str, batch: Any) -> None:
        """Take a batch of one of the tables."""
        if table == "findings":
            self._found += finding_rows(self._filter.of(batch))
        elif self._matches is not None:
            rows = batch.select(["connection_id", "client", "server"]).to_pylist()
            self._missing &= not any(
                self._matches(*(value or "" for value in row.values())) for row in rows
            )

    def result(self, totals: Totals, findings: Iterable[Finding]) -> Diagnosis:
        """The diagnosis of a pass with these totals and, before any selection, these findings.

        Raises UsageError for a connection that is not there: it would pass for a sound one.
        """
        if self._missing and totals.connections:
            raise no_match(self._selection, totals.connections)
        found = self._found
        if self._codes is not None:
            found = [row for row in found if row["code"] in self._codes]
        numbers = quality(totals)
        return Diagnosis(
            in_order(found),
            totals.packets,
            totals.connections,
            numbers,
            flaws(numbers, {finding.code for finding in findings}),
        )
