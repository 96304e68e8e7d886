"""A diagnosis for a person: the verdict, a line for each finding, details, and notes at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amqpsniff.analysis.quality import EMPTY, FLAWLESS
from amqpsniff.analysis.verdict import MAX_LEADS, SURE, and_others, gist, leading
from amqpsniff.findings import KINDS
from amqpsniff.units import UNKNOWN, count, plural
from amqpsniff.wire_text import harmless

from .clock import LineClock
from .grid import INDENT, PROSE, Column, Grid, facts, or_none, packet_text, table
from .text import NONE, Words, of_severities

if TYPE_CHECKING:
    from amqpsniff.analysis.clients import Clients
    from amqpsniff.analysis.diagnosis import Diagnosis
    from amqpsniff.analysis.finding_tree import Case, Row
    from amqpsniff.findings.kind import Kind


WIDE = 100
"""Columns from which on places are a table."""
MIN_WIDTH = 40
"""Columns that a consequence is given, however deep it is."""


@dataclass(frozen=True)
class Layout:
    """Choices about the layout of a diagnosis.

    Attributes:
        width: Columns of a line.
        clock: Writes times.
        narrow: True if there is no room for titles beside codes.
        several: True if there are several captures: a packet number then needs its file's name.
        places: Most places shown of a finding.
        limit: Most findings shown; None for all.
        brief: True to leave out details.
        verbose: True for details of all findings.
        notes: True to show notes on configuration and security.
    """

    width: int
    clock: LineClock
    narrow: bool = False
    several: bool = False
    places: int = 3
    limit: int | None = None
    brief: bool = False
    verbose: bool = False
    notes: bool = True


def sections(found: Diagnosis, layout: Layout) -> Iterator[Grid | Words]:
    """Everything, the verdict first and notes last."""
    shown = sorted(found.cases, key=lambda case: case.is_note)[: layout.limit]
    cases = [case for case in shown if not case.is_note]
    notes = [case for case in shown if case.is_note and layout.notes]
    yield from _verdict(found)
    if cases:
        yield Words("")
        deep = (one for root in cases for one in root.walk_deep())
        yield _lines(deep, found.clients, layout)
    if not layout.brief:
        yield from _details(cases, notes, CaseText(found.clients, layout), layout)
    if notes:
        yield Words("")
        yield Words("notes on configuration and security", "heading")
        yield _lines(((case, 0) for case in notes), found.clients, layout, notes=True)


def _verdict(found: Diagnosis) -> Iterator[Words]:
    """The verdict, a sentence a line, and the numbers under it."""
    severity = found.verdict.severity
    for sentence in found.verdict.sentences:
        title, colon, rest = sentence.partition(": ")
        style = "heading" if severity in (None, "info") or not rest else severity
        yield Words(title, style).add(colon + rest)
    yield Words("")
    yield _numbers(found)


def _lines(
    found: Iterable[tuple[Case, int]], clients: Clients, layout: Layout, *, notes: bool = False
) -> Grid:
    """Findings with their depth below a cause, one a line; a code alone is never cut."""
    sure: Column = ("sure", "case", lambda case: SURE[case.first["confidence"]])
    packet = ">=packet" if layout.several else ">packet"
    return table(
        [{"case": case, "depth": depth} for case, depth in found],
        ("severity", "case", _severity),
        *(() if notes else (sure,)),
        (">times", "case", lambda case: count(case.count)),
        (packet, "case", lambda case: packet_text(case.first, layout.several)),
        ("*client", "case", lambda case: clients.short(case.findings) or NONE),
        ("what" if layout.narrow else "*what", "", lambda row: _what(layout=layout, **row)),
    )


def _severity(case: Case) -> Words:
    severity = KINDS[case.code].severity
    return Words(severity, severity)


def _what(case: Case, depth: int, layout: Layout) -> Words:
    """The code of a finding, and where there is room its title and the gist of its detail."""
    text = Words("  " * (depth - 1) + "└ " if depth else "", "key").add(case.code, "name")
    if layout.narrow:
        return text
    detail = gist(case.first["detail"], 0)
    if others := and_others(case.findings):
        detail += f" ({others})"
    text.add(f"  {KINDS[case.code].title}").add(f": {detail}" if detail else "")
    details = len({gist(one.detail, 0) for one in case.findings}) if case.is_note else 1
    return text.add(f" (the first of {count(details)})" if details > 1 and not others else "")


def _details(
    cases: list[Case], notes: list[Case], text: CaseText, layout: Layout
) -> Iterator[Grid | Words]:
    """The places of findings and what to do: of all, or of those that the verdict tells."""
    shown = ([one for one in cases if leading(one)] or cases)[:MAX_LEADS]
    if layout.verbose:
        shown = cases = cases + notes
    for case in shown:
        yield Words("")
        yield from text.case(case)
    left = len(cases) - len(shown)
    if left:
        yield Words("")
        yield Words(f"details of {plural(left, 'more finding')}: -v", "key")


class CaseText:
    """Writes cases with their places and what to do.

    Args:
        clients: Names of clients.
        layout: How they are laid out.
    """

    def __init__(self, clients: Clients, layout: Layout) -> None:
        self._clients = clients
        self._layout = layout
        self._advised: set[str] = set()

    def case(self, case: Case, depth: int = 0) -> Iterator[Grid | Words]:
        """A case, and its consequences indented under it."""
        left = 2 * INDENT * depth
        for part in self._parts(case, depth, max(self._layout.width - left - INDENT, MIN_WIDTH)):
            part.indent += left
            yield part
        for consequence in case.consequences:
            yield Words("")
            yield from self.case(consequence, depth + 1)

    def _parts(self, case: Case, depth: int, width: int) -> Iterator[Grid | Words]:
        kind = KINDS[case.code]
        heading = Words("as a result: " if depth else "", "key").add(kind.severity, kind.severity)
        yield heading.add("  ").add(kind.title, "heading").add("  ").add(kind.code, "name")
        wide = width >= WIDE and any(one.connection_id for one in case.findings)
        yield self._table(case) if wide else self._lines(case)
        more = len(case.findings) - self._layout.places
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
        """Advice; that on a consequence is given once."""
        if depth and kind.code in self._advised:
            return ""
        self._advised.add(kind.code)
        return kind.advice

    def _lines(self, case: Case) -> Words:
        """The places as text: what a narrow terminal has no columns for."""
        lines: list[tuple[str, str]] = []
        for row in case.places(self._layout.places):
            packet = _packets(row, self._layout.several)
            several = "s" if "–" in packet else ""
            parts = [f"packet{several} {packet}"] if packet != NONE else []
            parts += [ends] if (ends := _ends(row)) != NONE else []
            parts += [name] if (name := self._clients.name(row["connection_id"])) else []
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
        layout = self._layout
        return table(
            case.places(layout.places),
            (">packets", "", lambda row: _packets(row, layout.several)),
            ("?>seconds", "ts_ns", layout.clock.show),
            (">times", "count", count),
            ("*name", "connection_id", lambda one: self._clients.name(one) or NONE),
            ("*client → server", "", _ends),
            (">channel", "channel", or_none(str)),
            ("~detail", "detail", lambda detail: harmless(detail or "")),
            indent=INDENT,
        )


def _packets(row: Row, several: bool) -> str:
    """The first packet of a finding and the last one."""
    first, last = row["packet_number"], row["last_packet_number"]
    return packet_text(row, several) + (f"–{last}" if last not in (None, first) else "")


def _ends(row: Row) -> str:
    """The connection, or the capture for a finding without a connection."""
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


def _numbers(found: Diagnosis) -> Words:
    """One line: how many findings, how often in all, in how much, and how good the capture was."""
    notes = sum(case.is_note for case in found.cases)
    main = [case for root in found.cases if not root.is_note for case in root.walk()]
    parts = of_severities(Counter(KINDS[case.code].severity for case in main))
    if notes:
        parts.append((plural(notes, "note"), ""))
    shown, all_of = len(found.found), found.finding_count
    chosen = f"{count(shown)} of {plural(all_of, 'finding')} match" if shown < all_of else ""
    if chosen and len(main) + notes < shown:  # several connections may have the same one
        chosen += f", in {plural(len(main) + notes, 'case')}"
    text = Words(chosen or ("" if parts else "no findings"))
    for at, (part, severity) in enumerate(parts):
        text.add(", " if at else ": " if chosen else "").add(part, severity)
    text.add(
        f" in {plural(found.packets, 'packet')}, {plural(found.connections, 'AMQP connection')}"
    )
    flawless = FLAWLESS if found.packets else EMPTY
    return text.add(f"; capture: {' · '.join(found.flaws) or flawless}")
