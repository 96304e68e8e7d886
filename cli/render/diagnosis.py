"""Findings for a person: what, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from amqpsniff.analysis.finding_tree import headings
from amqpsniff.analysis.quality import EMPTY, FLAWLESS
from amqpsniff.findings import KINDS, SEVERITIES
from amqpsniff.units import UNKNOWN, count, of_severity, plural
from amqpsniff.wire_text import harmless

from .findings import INDENT, PROSE
from .grid import Grid, facts
from .styled_text import Words
from .text import NONE

if TYPE_CHECKING:
    from amqpsniff.analysis.diagnosis import Diagnosis
    from amqpsniff.analysis.finding_tree import Case, Row
    from amqpsniff.findings.kind import Kind

    from .clock import Clock

WIDE = 100
"""Columns from which on places are a table."""
MIN_WIDTH = 40
"""Columns that a consequence is given, however deep it is."""


class CaseText:
    """Writes cases.

    Args:
        width: Columns of a line.
        clock: Writes times.
        places: Most places shown of a case.
        several: Whether there are several captures, so that a packet number needs its file's name.
    """

    def __init__(self, width: int, clock: Clock, places: int, *, several: bool) -> None:
        self._width = width
        self._clock = clock
        self._places = places
        self._several = several
        self._advised: set[str] = set()

    def case(self, case: Case, depth: int = 0) -> Iterator[Grid | Words]:
        """A case, its consequences indented under it, and a blank line behind all of it."""
        left = 2 * INDENT * depth
        for part in self._parts(case, depth, max(self._width - left - INDENT, MIN_WIDTH)):
            part.indent += left
            yield part
        yield Words("")
        for consequence in case.consequences:
            yield from self.case(consequence, depth + 1)

    def _parts(self, case: Case, depth: int, width: int) -> Iterator[Grid | Words]:
        kind = KINDS[case.code]
        heading = Words("as a result: " if depth else "", "key").add(kind.severity, kind.severity)
        yield heading.add("  ").add(kind.title, "heading").add("  ").add(kind.code, "name")
        wide = width >= WIDE and any(row["connection_id"] for row in case.rows)
        yield self._table(case) if wide else self._lines(case)
        more = len(case.rows) - self._places
        if more > 0:
            rest = f"and {plural(more, 'more place')}, {plural(case.count, 'time')} in all"
            yield Words(rest, "key", indent=INDENT)
        told = (
            ("likely cause", "" if depth else _elsewhere(case.first)),
            ("what to do", self._advice(kind, depth)),
            ("false alarms", "" if depth else kind.false_alarms),
        )
        yield facts(told, indent=INDENT, most=PROSE)

    def _advice(self, kind: Kind, depth: int) -> str:
        """What to do; of what was brought about it is said once."""
        if depth and kind.code in self._advised:
            return ""
        self._advised.add(kind.code)
        return kind.advice

    def _lines(self, case: Case) -> Words:
        """The places as text: what a narrow terminal has no columns for."""
        lines: list[tuple[str, str]] = []
        for row in case.rows[: self._places]:
            packet = self._packet(row)
            several = "s" if "–" in packet else ""
            parts = [f"packet{several} {packet}"] if packet != NONE else []
            parts += [ends] if (ends := _ends(row)) != NONE else []
            if row["channel"] is not None:
                parts.append(f"channel {row['channel']}")
            if row["count"] > 1:
                parts.append(plural(row["count"], "time"))
            lines += [(", ".join(parts), "key"), (harmless(row["detail"] or ""), "")]
        text = Words(indent=INDENT)
        for at, (line, style) in enumerate(one for one in lines if one[0]):
            text.add("\n" if at else "").add(line, style)
        return text

    def _table(self, case: Case) -> Grid:
        """The places in columns."""
        columns = ">packets|?>seconds|>times|*client → server|>channel|~detail"
        grid = Grid(columns, indent=INDENT)
        for row in case.rows[: self._places]:
            grid.add(
                self._packet(row),
                self._clock.show(row["ts_ns"]),
                count(row["count"]),
                _ends(row),
                NONE if row["channel"] is None else str(row["channel"]),
                harmless(row["detail"] or ""),
            )
        return grid

    def _packet(self, row: Row) -> str:
        if row["packet_number"] is None:
            return NONE
        several = self._several and row["capture"]
        name = f"{harmless(PurePath(row['capture']).name)}#" if several else ""
        first, last = row["packet_number"], row["last_packet_number"]
        return f"{name}{first}" + (f"–{last}" if last not in (None, first) else "")


def _ends(row: Row) -> str:
    """Which connection it is, or which capture where it is not about one."""
    if row["connection_id"] is None:
        return harmless(row["capture"] or NONE)
    return harmless(f"{row['client'] or UNKNOWN} → {row['server'] or UNKNOWN}")


def _elsewhere(row: Row) -> str:
    """The cause of a finding that is not shown with its cause."""
    if row["cause_code"] is None:
        return ""
    text = f"{KINDS[row['cause_code']].title} ({row['cause_code']}"
    if row["cause_packet_number"] is not None:
        text += f", packet {row['cause_packet_number']}"
    return f"{text}), which is not among the findings shown"


def verdict(found: Diagnosis) -> Words:
    """One line: how many headings, how often in all, in how much, and how good the capture was."""
    numbers = {severity: headings(found.cases, severity) for severity in reversed(SEVERITIES)}
    parts = [
        (of_severity(len(shown), severity), severity)
        for severity, shown in numbers.items()
        if shown
    ]
    text = Words("nothing found" if not parts else "")
    for at, (part, severity) in enumerate(parts):
        text.add(", " if at else "")
        text.add(part, severity)
    shown = [case for one in numbers.values() for case in one]
    often = sum(case.count for case in shown)
    if often > len(shown):
        text.add(f", {plural(often, 'time')} in all,")
    text.add(
        f" in {plural(found.packets, 'packet')}, {plural(found.connections, 'AMQP connection')}"
    )
    flawless = FLAWLESS if found.packets else EMPTY
    return text.add(f"; capture: {' · '.join(found.flaws) or flawless}")
