"""`amqpsniff diagnose`: what is wrong in captures, the important first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from amqpsniff import __version__
from amqpsniff.analysis.quality import EMPTY, FLAWLESS
from amqpsniff.analysis.verdict import MAX_LEADS, SURE, and_others, gist, leading
from amqpsniff.errors import UsageError
from amqpsniff.findings import KINDS
from amqpsniff.units import count, plural
from amqpsniff.wire_text import ends, harmless

from .completions import words
from .files import standard_output, write_text
from .options import FailOn, Input, Rows, Wanted, at_least, offer, spread
from .output import Output, write_json
from .reading import Reading, judged
from .render.clock import LineClock
from .render.grid import INDENT, PROSE, Column, Grid, facts, or_none, packet_text, table
from .render.text import NONE, Words, of_severities

if TYPE_CHECKING:
    from amqpsniff.analysis.diagnosis import Diagnosis
    from amqpsniff.analysis.finding_tree import Case, Row
    from amqpsniff.findings.finding import Kind

FORMATS = ("text", "json", "ndjson", "sarif")
TARGETS = tuple(f"rabbitmq-4.{minor}" for minor in range(4))
PLACES = 3
"""Places shown of each finding by default: enough to see what they have in common."""


@spread("""
    Output:
        --for VERSION: Instead: what rabbitmq-4.0, 4.1, 4.2 or 4.3 does otherwise with this traffic.
        --evidence: With --format json: findings as a tree of causes, with the frames that show
            each. The captures are read twice.
        --brief: Only the verdict and the lines.
        -v --verbose: Details of all findings, not only of those that the verdict tells.
        --notes/--no-notes: Show notes on configuration and security, or leave them out, also of
            what --fail-on looks at.
        --places N: Places shown of each finding. [default]
        --fail-on SEVERITY: Exit with 1 if there is a finding of this severity (info, warning,
            error) or a worse one. Also if something could not be analysed: no AMQP, TLS without
            keys, one direction only, a version that is not decoded.
        --format F: Output format: {FORMATS}; json has the verdict, ndjson the rows of the findings
            table. [default]
""")
def diagnose(
    source: Input,
    rows: Rows,
    wanted: Wanted,
    for_: Annotated[str | None, offer(words(TARGETS))] = None,
    evidence: bool = False,
    brief: bool = False,
    verbose: bool = False,
    notes: bool = True,
    places: Annotated[int, at_least(1)] = PLACES,
    fail_on: FailOn = None,
    format_: str = FORMATS[0],
) -> int:
    """List problems in captures: the verdict first, then a line for each finding.

    Causes come before consequences. Details follow: the places, what to do, and what may be a false
    alarm. What was found on several connections is one finding. Notes on configuration and security
    stand at the end. `amqpsniff explain CODE` says more about each.

    Examples:

        amqpsniff diagnose trace.pcapng
        amqpsniff diagnose trace.pcapng --ignore connection-churn --brief
        amqpsniff diagnose captures/ --only frame-end-wrong,not-amqp --places 20
        amqpsniff diagnose trace.pcapng --fail-on error --format sarif > found.sarif
        amqpsniff diagnose trace.pcapng --format json --evidence > evidence.json
        amqpsniff diagnose trace.pcapng --for rabbitmq-4.3
    """
    if for_ is not None and format_ not in FORMATS[:2]:
        raise UsageError(f"--for has no format `{format_}`; it has {', '.join(FORMATS[:2])}")

    if evidence and (format_ != "json" or for_ is not None):
        raise UsageError("--evidence is for --format json, without --for")

    reading = Reading(source, rows, warned_of=())
    if for_ is not None:
        from .readiness import readiness

        return readiness(reading, for_, rows, format_, fail_on)
    if evidence:
        reading.passes.check_read_again("--evidence")
    with reading.passing() as capture:
        diagnosis = capture.diagnose(**vars(wanted), **rows.part())
    if format_ == "text":
        output = Output()
        text = DiagnosisText(
            diagnosis,
            output.room,
            LineClock("relative", reading.started),
            narrow=output.narrow,
            several=reading.several,
            places=places,
            limit=rows.limit,
            brief=brief,
            verbose=verbose,
            notes=notes,
        )
        output.show(*text.sections())
    elif format_ == "json":
        write_json(capture.evidence(diagnosis) if evidence else diagnosis.plain(rows.limit))
    elif format_ == "ndjson":
        from amqpsniff.tables.batches import finding_batch
        from amqpsniff.tables.export import write
        from amqpsniff.tables.schema import FINDINGS

        batch = finding_batch(diagnosis.found[: rows.limit])
        write([batch] if len(batch) else [], FINDINGS, format_, standard_output())
    else:
        from amqpsniff.analysis.sarif import log

        successful = reading.exit_code == 0
        shown = diagnosis.findings[: rows.limit]
        run = log(shown, reading.capture.names, version=__version__, successful=successful)
        write_text(json.dumps(run, indent=2) + "\n")
    return judged(reading.exit_code, diagnosis.failures(fail_on, notes), quiet=source.quiet)


WIDE = 100
"""Columns from which on places are a table."""
MIN_WIDTH = 40
"""Columns that a consequence is given, however deep it is."""


@dataclass
class DiagnosisText:
    """A diagnosis for a person: the verdict, a line for each finding, details, notes at the end.

    Attributes:
        found: The diagnosis.
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

    found: Diagnosis
    width: int
    clock: LineClock
    narrow: bool = False
    several: bool = False
    places: int = PLACES
    limit: int | None = None
    brief: bool = False
    verbose: bool = False
    notes: bool = True

    def __post_init__(self) -> None:
        self._clients = self.found.clients
        self._advised: set[str] = set()

    def sections(self) -> Iterator[Grid | Words]:
        """Everything, the verdict first and notes last."""
        shown = sorted(self.found.cases, key=lambda case: case.is_note)[: self.limit]
        cases = [case for case in shown if not case.is_note]
        notes = [case for case in shown if case.is_note and self.notes]
        yield from self._verdict()
        if cases:
            yield Words("")
            yield self._lines(pair for root in cases for pair in root.walk_deep())
        if not self.brief:
            yield from self._details(cases, notes)
        if notes:
            yield Words("")
            yield Words("notes on configuration and security", "heading")
            yield self._lines(((case, 0) for case in notes), notes=True)

    def _verdict(self) -> Iterator[Words]:
        """The verdict, a sentence a line, and the numbers under it."""
        severity = self.found.verdict.severity
        for sentence in self.found.verdict.sentences:
            title, colon, rest = sentence.partition(": ")
            style = "heading" if severity in (None, "info") or not rest else severity
            yield Words(title, style).add(colon + rest)
        yield Words("")
        yield _numbers(self.found)

    def _lines(self, pairs: Iterable[tuple[Case, int]], *, notes: bool = False) -> Grid:
        """Findings with their depth below a cause, one a line; a code alone is never cut."""
        sure: Column = ("sure", "case", lambda case: SURE[case.first["confidence"]])
        packet = ">=packet" if self.several else ">packet"
        return table(
            [{"case": case, "depth": depth} for case, depth in pairs],
            ("severity", "case", _severity),
            *(() if notes else (sure,)),
            (">times", "case", lambda case: count(case.count)),
            (packet, "case", lambda case: packet_text(case.first, self.several)),
            ("*client", "case", lambda case: self._clients.short(case.findings) or NONE),
            ("what" if self.narrow else "*what", "", lambda row: self._finding_text(**row)),
        )

    def _finding_text(self, case: Case, depth: int) -> Words:
        """The code of a finding, and where there is room its title and the gist of its detail."""
        text = Words("  " * (depth - 1) + "└ " if depth else "", "key").add(case.code, "name")
        if self.narrow:
            return text
        detail = gist(case.first["detail"], 0)
        if others := and_others(case.findings):
            detail += f" ({others})"
        text.add(f"  {KINDS[case.code].title}").add(f": {detail}" if detail else "")
        details = len({gist(finding.detail, 0) for finding in case.findings}) if case.is_note else 1
        return text.add(f" (the first of {count(details)})" if details > 1 and not others else "")

    def _details(self, cases: list[Case], notes: list[Case]) -> Iterator[Grid | Words]:
        """The places of findings and what to do: of all, or of those that the verdict tells."""
        shown = ([case for case in cases if leading(case)] or cases)[:MAX_LEADS]
        if self.verbose:
            shown = cases = cases + notes
        for case in shown:
            yield Words("")
            yield from self._case(case)
        hidden = len(cases) - len(shown)
        if hidden:
            yield Words("")
            yield Words(f"details of {plural(hidden, 'more finding')}: -v", "key")

    def _case(self, case: Case, depth: int = 0) -> Iterator[Grid | Words]:
        """A case with its places and what to do, and its consequences indented under it."""
        indent = 2 * INDENT * depth
        for part in self._parts(case, depth, max(self.width - indent - INDENT, MIN_WIDTH)):
            part.indent += indent
            yield part
        for consequence in case.consequences:
            yield Words("")
            yield from self._case(consequence, depth + 1)

    def _parts(self, case: Case, depth: int, width: int) -> Iterator[Grid | Words]:
        kind = KINDS[case.code]
        heading = Words("as a result: " if depth else "", "key").add(kind.severity, kind.severity)
        yield heading.add("  ").add(kind.title, "heading").add("  ").add(kind.code, "name")
        wide = width >= WIDE and any(finding.connection_id for finding in case.findings)
        yield self._places_table(case) if wide else self._places_text(case)
        omitted = len(case.findings) - self.places
        if omitted > 0:
            rest = f"and {plural(omitted, 'more place')}, {plural(case.count, 'time')} in all"
            yield Words(rest, "key", indent=INDENT)
        rows = (
            ("likely cause", "" if depth else _elsewhere(case.first)),
            ("what to do", self._advice(kind, depth)),
            ("false alarms", "" if depth else kind.false_alarms),
        )
        yield facts(rows, indent=INDENT, max_width=PROSE)

    def _advice(self, kind: Kind, depth: int) -> str:
        """Advice; that on a consequence is given once."""
        if depth and kind.code in self._advised:
            return ""
        self._advised.add(kind.code)
        return kind.advice

    def _places_text(self, case: Case) -> Words:
        """The places as text, for a terminal that is too narrow for a table."""
        lines: list[tuple[str, str]] = []
        for row in case.places(self.places):
            packet = _packets(row, self.several)
            several = "s" if "–" in packet else ""
            parts = [f"packet{several} {packet}"] if packet != NONE else []
            parts += [where] if (where := _connection_text(row)) != NONE else []
            parts += [name] if (name := self._clients.name(row["connection_id"])) else []
            if row["channel"] is not None:
                parts.append(f"channel {row['channel']}")
            if row["count"] > 1:
                parts.append(plural(row["count"], "time"))
            lines += [(", ".join(parts), "key"), (harmless(row["detail"] or ""), "")]
        text = Words(indent=INDENT)
        for at, (line, style) in enumerate(pair for pair in lines if pair[0]):
            text.add("\n" if at else "").add(line, style)
        return text

    def _places_table(self, case: Case) -> Grid:
        rows = case.places(self.places)
        has_names = any(self._clients.name(row["connection_id"]) for row in rows)
        name = (
            "*name",
            "connection_id",
            lambda connection_id: self._clients.name(connection_id) or NONE,
        )
        return table(
            rows,
            (">packets", "", lambda row: _packets(row, self.several)),
            ("?>seconds", "ts_ns", self.clock.show),
            (">times", "count", count),
            *([name] if has_names else []),
            ("*client → server", "", _connection_text),
            (">channel", "channel", or_none(str)),
            ("~detail", "detail", lambda detail: harmless(detail or "")),
            indent=INDENT,
        )


def _severity(case: Case) -> Words:
    severity = KINDS[case.code].severity
    return Words(severity, severity)


def _packets(row: Row, several: bool) -> str:
    """The first packet of a finding and the last one."""
    first, last = row["packet_number"], row["last_packet_number"]
    return packet_text(row, several) + (f"–{last}" if last not in (None, first) else "")


def _connection_text(row: Row) -> str:
    """The connection, or the capture for a finding without a connection."""
    if row["connection_id"] is None:
        return harmless(row["capture"] or NONE)
    return ends(row["client"], row["server"])


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
    share = f"{count(shown)} of {plural(all_of, 'finding')} match" if shown < all_of else ""
    if share and len(main) + notes < shown:  # several connections may have the same one
        share += f", in {plural(len(main) + notes, 'case')}"
    text = Words(share or ("" if parts else "no findings"))
    for at, (part, severity) in enumerate(parts):
        text.add(", " if at else ": " if share else "").add(part, severity)
    text.add(
        f" in {plural(found.packets, 'packet')}, {plural(found.connections, 'AMQP connection')}"
    )
    flawless = FLAWLESS if found.packets else EMPTY
    return text.add(f"; capture: {' · '.join(found.flaws) or flawless}")
