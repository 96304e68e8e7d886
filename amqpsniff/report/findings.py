"""Findings as HTML: the important first, each with its places and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis.finding_tree import Case
from amqpsniff.analysis.times import seconds
from amqpsniff.analysis.top_rows import Row
from amqpsniff.findings import KINDS
from amqpsniff.report.tables import Column, shortened, table
from amqpsniff.units import plural
from amqpsniff.wire_text import harmless

MAX_CASES = 60
"""Findings of one report."""

MAX_PLACES = 12
"""Places of a finding: enough to see what they have in common."""

OPEN = 3
"""Findings that are unfolded when the page is opened."""

MAX_DETAIL = 300


class Evidence:
    """Writes cases.

    Args:
        start_ns: When the capture began; None when it has no times.
        clock: Writes a time as the charts have it; None where that is seconds since the beginning.
        several: True if a packet number needs its file's name.
        shown: Connections whose conversation the page can show.
    """

    def __init__(
        self,
        start_ns: int | None,
        clock: Callable[[int], str] | None,
        several: bool,
        shown: frozenset[str],
    ) -> None:
        self._start = start_ns
        self._clock = clock
        self._several = several
        self._shown = shown
        self._left = MAX_CASES
        self._tables = 0
        self._names: dict[str | None, str] = {}

    def html(self, cases: list[Case]) -> str:
        """All of them, and how many there was no room for."""
        number = sum(1 for root in cases for _ in root.walk())
        parts = [self._case(case, unfolded=at < OPEN) for at, case in enumerate(cases)]
        if number > MAX_CASES:
            more = number - MAX_CASES
            parts.append(
                f'<p class="about">{plural(more, "more finding")} not shown; '
                "<code>amqpsniff diagnose CAPTURE</code> shows all of them.</p>"
            )
        return "".join(parts)

    def _case(self, case: Case, *, unfolded: bool, depth: int = 0) -> str:
        if self._left <= 0:
            return ""
        self._left -= 1
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
        inside = "".join(
            self._case(one, unfolded=unfolded, depth=depth + 1) for one in case.consequences
        )
        so = "so: " if depth else ""
        return (
            f'<details class="finding {severity}"{" open" if unfolded else ""}><summary>{so}'
            f'<span class="badge {severity}">{severity}</span> {escape(kind.title)} '
            f"<code>{escape(case.code)}</code> · {plural(len(case.rows), 'place')}, "
            f"{plural(case.count, 'time')}</summary>"
            f"{self._places(case)}<dl>{facts}</dl>{inside}</details>"
        )

    def _places(self, case: Case) -> str:
        rows = [self._place(row) for row in case.rows[:MAX_PLACES]]
        columns = [
            Column("packets", "packets"),
            Column("detail", "detail", wide=True),
            *([Column("clock", "UTC")] if self._clock else []),
            Column("seconds", "seconds", number=True, form=_seconds),
            Column("count", "times", number=True),
            Column("connection_id", "connection", form=self._name, link=True),
            Column("channel", "channel", number=True),
        ]
        more = ""
        if len(case.rows) > MAX_PLACES:
            more = (
                f"{plural(len(case.rows) - MAX_PLACES, 'more place')}: amqpsniff diagnose CAPTURE "
                f"--only {case.code} --places {len(case.rows)}"
            )
        self._names = {row["connection_id"]: row["ends"] for row in rows}
        self._tables += 1
        return table(
            rows,
            columns,
            "Places",
            label=f"Places of finding {self._tables}, {case.code}",
            more=more,
            links=self._shown,
            most=MAX_DETAIL,
        )

    def _name(self, connection: Any) -> str:
        name: str = self._names[connection]
        return name

    def _place(self, row: Row) -> Row:
        ends = f"{row['client'] or '?'} → {row['server'] or '?'}"
        if row["connection_id"] is None:
            ends = row["capture"] or ""
        ts_ns = row["ts_ns"]
        since = None if ts_ns is None else ts_ns - (self._start or 0)
        return {
            "packets": self._packets(row),
            "clock": self._clock(ts_ns) if self._clock and ts_ns is not None else None,
            "seconds": since,
            "count": row["count"],
            "connection_id": row["connection_id"],
            "ends": harmless(ends),
            "channel": row["channel"],
            "detail": harmless(row["detail"] or ""),
        }

    def _packets(self, row: Row) -> str:
        if row["packet_number"] is None:
            return ""
        several = self._several and row["capture"]
        name = f"{harmless(PurePath(row['capture']).name)}#" if several else ""
        first, last = row["packet_number"], row["last_packet_number"]
        return shortened(name, 60) + f"{first}" + (f"–{last}" if last not in (None, first) else "")


def _marked(text: str) -> str:
    """Text of the catalogue as HTML: what stands in backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _seconds(since_ns: Any) -> str:
    return "" if since_ns is None else seconds(since_ns)
