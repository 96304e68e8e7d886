"""Findings as HTML: a line for each, and folded under them its places and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape
from itertools import islice
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis.diagnosis import Diagnosis
from amqpsniff.analysis.finding_tree import Case
from amqpsniff.analysis.times import seconds, zone_name
from amqpsniff.analysis.top_rows import Row
from amqpsniff.analysis.verdict import SURE, gist
from amqpsniff.findings import KINDS
from amqpsniff.report.tables import Column, table
from amqpsniff.units import count, plural
from amqpsniff.wire_text import ends, harmless, shortened

MAX_CASES = 60
"""Findings of one report."""

MAX_LINES, FEW_LINES = 8, 3
"""Lines that are not folded, on a wide screen and on a phone: the first charts stand within a
screen and a half."""

MAX_PLACES = 10
"""Places of a finding: enough to see what they have in common."""

MAX_DETAIL, MAX_NAME = 300, 60
"""Characters of a detail, and of a client's name."""

_TITLES = ("severity", "sure", "times", "packet", "client", "what")

_FILTER = (
    '<div class="tools find"><input type="search" id="find" placeholder="Search findings" '
    'aria-label="Search findings"><select id="severity" aria-label="Severity">'
    '<option value="">all severities</option><option value="error warning">errors and warnings'
    '</option><option value="error">errors</option></select>'
    '<output class="matches" aria-live="polite"></output></div>'
)


class FindingList:
    """Writes findings.

    Args:
        diagnosis: The findings.
        clock: Writes a time as the charts have it; None where that is seconds since the beginning.
        several: True if a packet number needs its file's name.
        shown: Connections whose conversation the page can show.
    """

    def __init__(
        self,
        diagnosis: Diagnosis,
        clock: Callable[[int], str] | None,
        several: bool,
        shown: frozenset[str],
    ) -> None:
        self._diagnosis = diagnosis
        self._clients = diagnosis.clients
        self._clock = clock
        self._several = several
        self._shown = shown
        self._main = [case for case in diagnosis.cases if not case.is_note]
        self._notes = [case for case in diagnosis.cases if case.is_note]
        all_cases = (case for root in (*self._main, *self._notes) for case in root.walk())
        self._numbers = {id(case): at for at, case in enumerate(islice(all_cases, MAX_CASES), 1)}
        self._names: dict[str | None, str] = {}

    def lines(self) -> str:
        """A line for each finding, and the notes folded."""
        main = [self._line(*pair) for root in self._main for pair in root.walk_deep()]
        notes = [self._line(case, 0) for case in self._notes]
        if not main and not notes:
            return ""
        parts = [_FILTER] if len(main) + len(notes) > 1 else []
        if main:
            head = "".join(f"<span>{title}</span>" for title in _TITLES)
            parts.append(f'<div class="line head" aria-hidden="true">{head}</div>')
            parts.append(_listed(main[:FEW_LINES]))
            if others := main[FEW_LINES:]:
                shown = _listed(others[: MAX_LINES - FEW_LINES])
                if rest := main[MAX_LINES:]:
                    shown += _folded(plural(len(rest), "more finding"), _listed(rest))
                parts.append(_folded(plural(len(others), "more finding"), shown, "narrow"))
        if notes:
            heading = f"{plural(len(notes), 'note')} on configuration and security"
            parts.append(_folded(heading, _listed(notes)))
        return "".join(parts)

    def details(self) -> str:
        """The places of each finding and what to do, and how many there was no room for."""
        parts = [self._case(case) for case in self._main]
        if self._notes:
            heading = "Notes on configuration and security"
            parts.append(_folded(heading, "".join(map(self._case, self._notes))))
        number = sum(1 for root in self._diagnosis.cases for _ in root.walk())
        if number > MAX_CASES:
            omitted = number - MAX_CASES
            parts.append(
                f'<p class="about">{plural(omitted, "more finding")} not shown; '
                "<code>amqpsniff diagnose CAPTURE</code> shows all of them.</p>"
            )
        return "".join(parts)

    def _line(self, case: Case, depth: int) -> str:
        row, severity = case.first, KINDS[case.code].severity
        number = self._numbers.get(id(case))
        detail = gist(row["detail"], 0)
        title = f"{escape(KINDS[case.code].title)} <code>{escape(case.code)}</code>"
        if number is not None:
            title = f'<a href="#finding-{number}">{title}</a>'
        result = f'<span class="deep" style="--depth:{depth}">as a result: </span>' if depth else ""
        columns = (
            ("", f'<span class="badge {severity}">{severity}</span>'),
            ("sure", SURE[row["confidence"]]),
            ("times number", f"{count(case.count)}<i> ×</i>"),
            ("packet number", f"<i>packet </i>{escape(self._packets(row, last=False)) or '–'}"),
            ("client", escape(shortened(self._clients.short(case.findings), MAX_NAME)) or "–"),
            ("what", f"{result}{title}{f': {escape(detail)}' if detail else ''}"),
        )
        cells = "".join(f'<span class="{name}">{text}</span>' for name, text in columns)
        return f'<li class="line" data-severity="{severity}">{cells}</li>'

    def _case(self, case: Case, depth: int = 0) -> str:
        number = self._numbers.get(id(case))
        if number is None:
            return ""
        kind = KINDS[case.code]
        severity = kind.severity
        facts = "".join(
            f"<dt>{name}</dt><dd>{_marked(text)}</dd>"
            for name, text in (
                ("what to do", kind.advice),
                ("what shows it", kind.evidence),
                ("false alarms", kind.false_alarms),
            )
            if text
        )
        inside = "".join(self._case(consequence, depth + 1) for consequence in case.consequences)
        result = "as a result: " if depth else ""
        return (
            f'<details class="finding {severity}" id="finding-{number}"><summary>{result}'
            f'<span class="badge {severity}">{severity}</span> {escape(kind.title)} '
            f"<code>{escape(case.code)}</code> · {plural(len(case.findings), 'place')}, "
            f"{plural(case.count, 'time')}</summary>"
            f"{self._places(case, number)}<dl>{facts}</dl>{inside}</details>"
        )

    def _places(self, case: Case, number: int) -> str:
        rows = [self._place(row) for row in case.places(MAX_PLACES)]
        columns = [
            Column("packets", "packets"),
            Column("name", "client"),
            Column("detail", "detail", wide=True),
            Column("clock", zone_name(self._diagnosis.zone)),
            Column("seconds", "seconds", number=True, form=_seconds),
            Column("count", "times", number=True),
            Column("connection_id", "connection", form=self._ends, link=True),
            Column("channel", "channel", number=True),
        ]
        note, places = "", len(case.findings)
        if places > MAX_PLACES:
            note = (
                f"{plural(places - MAX_PLACES, 'more place')}: amqpsniff diagnose CAPTURE "
                f"--only {case.code} --places {places}"
            )
        self._names = {row["connection_id"]: row["ends"] for row in rows}
        return table(
            rows,
            columns,
            "Places",
            label=f"Places of finding {number}, {case.code}",
            note=note,
            links=self._shown,
            limit=MAX_DETAIL,
        )

    def _ends(self, connection: Any) -> str:
        return self._names.get(connection, "")

    def _place(self, row: Row) -> Row:
        place = harmless(row["capture"] or "")
        if row["connection_id"] is not None:
            place = ends(row["client"], row["server"])
        ts_ns = row["ts_ns"]
        since = None if ts_ns is None else ts_ns - (self._diagnosis.start_ns or 0)
        return {
            "packets": self._packets(row, last=True),
            "name": shortened(self._clients.name(row["connection_id"]), MAX_NAME),
            "clock": self._clock(ts_ns) if self._clock and ts_ns is not None else None,
            "seconds": since,
            "count": row["count"],
            "connection_id": row["connection_id"],
            "ends": place,
            "channel": row["channel"],
            "detail": harmless(row["detail"] or ""),
        }

    def _packets(self, row: Row, *, last: bool) -> str:
        """The packet of a finding, with its file where there are several, and the `last` one."""
        first, end = row["packet_number"], row["last_packet_number"]
        if first is None:
            return ""
        several = self._several and row["capture"]
        name = f"{harmless(PurePath(row['capture']).name)}#" if several else ""
        return shortened(name, 60) + f"{first}" + (f"–{end}" if last and end != first else "")


def _listed(lines: Iterable[str]) -> str:
    return f'<ol class="lines">{"".join(lines)}</ol>'


def _folded(heading: str, inside: str, where: str = "") -> str:
    """Lines behind a heading; the script folds those that fold on a `narrow` screen only."""
    kind = f'folded {where}" open' if where else 'folded"'
    return f'<details class="{kind}><summary>{heading}</summary>{inside}</details>'


def _marked(text: str) -> str:
    """Text of the catalogue as HTML: what stands in backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _seconds(since_ns: Any) -> str:
    return "" if since_ns is None else seconds(since_ns)
