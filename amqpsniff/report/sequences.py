"""Sequence diagrams of some connections: their beginnings, what stands around findings, their ends.

The captures are read a second time, but only the conversations that are shown are followed. Of each
a bounded number of events is kept; what is left out is said where it is missing.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.body_text import COLUMNS as READ_BY
from amqpsniff.analysis.body_text import body_text
from amqpsniff.analysis.conversation import share_of
from amqpsniff.analysis.finding_tree import finding_row
from amqpsniff.analysis.one_line import (
    LINE_COLUMNS,
    Part,
    argument_parts,
    is_error,
    message_parts,
    outcome_parts,
    reply_parts,
)
from amqpsniff.analysis.timeline import (
    CONTENT_METHODS,
    FOLDED,
    FRAME_COLUMNS,
    GAP,
    MESSAGE_KEY,
    Entry,
    Gaps,
    Timeline,
    stand_in,
)
from amqpsniff.analysis.times import seconds
from amqpsniff.analysis.top_rows import Row
from amqpsniff.decode.method_layout import FRAME_TYPE_NAMES
from amqpsniff.findings import KINDS
from amqpsniff.spec import SIDES, given_name
from amqpsniff.spec.amqp010 import overhead_bytes
from amqpsniff.tables.values import PlainRows, numbers_of, plain_rows
from amqpsniff.units import octets, plural
from amqpsniff.wire_text import harmless, shortened

if TYPE_CHECKING:
    from amqpsniff.analysis.report_data import ReportData
    from amqpsniff.findings import Finding

MAX_CONVERSATIONS = 12
"""Conversations in a report: one for each finding that matters, or those that were named."""

FIRST_EVENTS, LAST_EVENTS, MAX_AROUND = 70, 40, 90
"""Events kept of a conversation: of its beginning, its end, and around findings."""

BEFORE, AFTER = 6, 4
"""Events kept before and after one with a finding."""

MAX_FINDINGS = 30
"""Findings shown in a conversation."""

MAX_CHARACTERS = 240
"""Characters of an event: an argument may have a hundred thousand."""

NOTE = "note"
"""Stands for a side in events that neither side sent."""

LEFT_OUT = "left out"
"""The frame type of an entry that stands for a number of others that cannot be shown."""

_FOLDED = frozenset(map(FRAME_TYPE_NAMES.index, FOLDED))
_OVERHEADS = list(map(overhead_bytes, FRAME_TYPE_NAMES))

Event = list[Any]
"""[time, packet, side, channel, method, detail, outcome, level], for the page's script."""


def choose(data: ReportData, order: Iterable[Finding]) -> list[Row]:
    """The connections to be shown: those that were named, or one for each finding, or the largest.

    `order` are findings, the important first.
    """
    named_rows = [row for rows in data.named.values() for row in rows]
    if data.named:
        return list({row["connection_id"]: row for row in named_rows}.values())[:MAX_CONVERSATIONS]
    rows_by_id = {row["connection_id"]: row for row in data.connections.rows}
    chosen: dict[str, Row] = {}
    codes: set[str] = set()
    for finding in order:
        name = finding.connection_id
        if finding.code not in codes and name in rows_by_id and len(chosen) < MAX_CONVERSATIONS:
            codes.add(finding.code)
            chosen.setdefault(name, rows_by_id[name])
    for name, row in rows_by_id.items():
        if len(chosen) >= MAX_CONVERSATIONS:
            break
        chosen.setdefault(name, row)
    return list(chosen.values())


class Sequences:
    """Events of the chosen connections, from a second pass over their frames and messages.

    Args:
        data: The first pass.
        chosen: Rows of connections.
        body_limit: Bytes of each body that are shown, 0 for none.

    Attributes:
        share: The conversations to follow; None for all, if some cannot be distinguished.
        columns: Columns that are to be read, by table.
    """

    def __init__(self, data: ReportData, chosen: list[Row], body_limit: int = 0) -> None:
        message_columns = (*LINE_COLUMNS, *READ_BY) if body_limit else LINE_COLUMNS
        self.columns: dict[str, Collection[str]] = {
            "frames": FRAME_COLUMNS, "messages": (*MESSAGE_KEY, *message_columns),
        }  # fmt: skip
        several = len(data.summary["captures"]) > 1
        self.share = share_of(chosen)
        self._sequences = {
            row["connection_id"]: _Sequence(
                row, data.start_ns, several, message_columns, body_limit
            )
            for row in chosen
        }
        for finding in data.diagnosis.found:
            sequence = self._sequences.get(finding.connection_id)
            if sequence is not None:
                sequence.expect(finding)

    def add_rows(self, frames: Any, messages: Any, connections: list[Any], *names: Any) -> None:
        """Take the rows of a pipeline."""
        followed = [self._sequences.get(connection[0]) for connection in connections]
        for table, rows in (("frames", frames), ("messages", messages)):
            rows_of_sequences: dict[_Sequence, list[int]] = {
                sequence: [] for sequence in followed if sequence is not None
            }
            for row, code in enumerate(numbers_of(rows, "connection_id")):
                sequence = followed[code]
                if sequence is not None:
                    rows_of_sequences[sequence].append(row)
            make_plain = partial(
                plain_rows, rows, names=self.columns[table], connections=connections,
                captures=names[0], method_names=names[1],
            )  # fmt: skip
            for sequence, own_rows in rows_of_sequences.items():
                if own_rows:
                    sequence.take(table, rows, own_rows, make_plain)

    def conversations(self) -> list[dict[str, Any]]:
        """The conversations as the page's script expects them."""
        return [sequence.conversation() for sequence in self._sequences.values()]


class _Sequence:
    """Makes events of the entries of one conversation, and keeps some of them."""

    def __init__(
        self, row: Row, start_ns: int | None, several: bool, columns: Sequence[str], body_limit: int
    ) -> None:
        self._body_limit = body_limit
        self.row = row
        self._start = start_ns
        self._several = several
        self._timeline = Timeline(CONTENT_METHODS, tuple(columns))
        self._gaps = Gaps()
        self._findings: deque[Row] = deque()
        self._events: list[Event] = []
        self._last: deque[Entry | Event] = deque(maxlen=LAST_EVENTS)
        self._around = 0
        self._after = 0
        self._left_out = 0
        self._number = 0

    def expect(self, finding: Finding) -> None:
        """A finding that is to stand in its place; the important come first."""
        if len(self._findings) < MAX_FINDINGS:
            insort(self._findings, finding_row(finding), key=_place)

    def take(
        self,
        table: str,
        rows: Any,
        own_rows: list[int],
        make_plain: Callable[[list[int]], PlainRows],
    ) -> None:
        """Take the rows with the numbers `own_rows`; `make_plain` gives rows as Python values."""
        if table == "messages":
            numbers, packets = numbers_of(rows, "packet_number"), self._timeline.packets
            needed = [row for row in own_rows if numbers[row] in packets]
            self._add_entries(self._timeline.messages(make_plain(needed)))
        else:
            self._take_frames(make_plain, self._shown_entries(rows, own_rows))
        self._add_entries(self._timeline.ready())

    def _take_frames(
        self, make_plain: Callable[[list[int]], PlainRows], chosen: list[tuple[int, str, int]]
    ) -> None:
        """Put entries into the timeline: frames, and what stands for bytes and events."""
        batch, begin = make_plain([row for row, *_ in chosen]), 0
        for at, (_, kind, size) in enumerate(chosen):
            if kind:
                self._timeline.frames(batch.slice(begin, at - begin))
                self._timeline.put(stand_in(batch.slice(at, 1), kind, size))
                begin = at + 1
        self._timeline.frames(batch.slice(begin))

    def _shown_entries(self, rows: Any, own_rows: list[int]) -> list[tuple[int, str, int]]:
        """The entries of frames that may be shown, as (row, kind, size), and how many others stand
        before a row; the kind of a frame is empty.

        Shown are those at the beginning, around findings, and at the end, which may be the end of
        any batch. Entries of one packet are kept from the first on: messages find theirs by it.
        """
        names = ("frame_type", "sender", "stream_offset", "size", "packet_number", "ts_ns")
        kinds, senders, offsets, sizes, packets, times = (numbers_of(rows, name) for name in names)
        entries: list[tuple[int, str, int]] = []
        for row in own_rows:
            kind, sender = kinds[row], senders[row]
            if sender >= 0 and (
                missing := self._gaps.before(sender, offsets[row], sizes[row] + _OVERHEADS[kind])
            ):
                entries.append((row, GAP, missing))
            if kind not in _FOLDED:
                entries.append((row, "", 0))
        ranges = [(0, AFTER if len(self._events) >= FIRST_EVENTS else FIRST_EVENTS)]
        bars = deque(map(_place, self._findings))
        for at, (row, *_) in enumerate(entries if bars else ()):
            while bars and bars[0] <= (max(times[row], 0), packets[row]):
                bars.popleft()
                ranges.append((at - LAST_EVENTS, at + AFTER))
        ranges.append((len(entries) - LAST_EVENTS, len(entries)))
        shown: list[tuple[int, str, int]] = []
        end = 0
        for start, stop in ranges:
            begin = max(start, end)
            while begin > end and packets[entries[begin - 1][0]] == packets[entries[begin][0]]:
                begin -= 1
            if begin > end:
                shown.append((entries[begin][0], LEFT_OUT, begin - end))
            shown += entries[begin:stop]
            end = max(end, min(stop, len(entries)))
        return shown

    def conversation(self) -> dict[str, Any]:
        """The conversation for the script of the page."""
        self._add_entries(self._timeline.ready(last=True))
        while self._findings:
            self._keep(self._finding(self._findings.popleft()), True)
        self._bring_last(len(self._last))
        row = self.row
        return {
            "id": row["connection_id"],
            "client": name_of(row, 60),
            "server": harmless(row["server"] or "?"),
            "about": f"{plural(self._number, 'event')}. amqpsniff follow CAPTURE --connection "
            f"{row['connection_id']} shows all of them, with the beginnings of bodies.",
            "events": self._events,
        }

    def _add_entries(self, entries: Iterator[Entry]) -> None:
        for entry in entries:
            if entry.frame_type == LEFT_OUT:
                self._number += entry.size
                self._left_out += entry.size
                continue
            self._number += 1
            place = entry.ts_ns or 0, entry.packet_number
            while self._findings and _place(self._findings[0]) <= place:
                self._keep(self._finding(self._findings.popleft()), True)
            self._keep(entry, False)

    def _keep(self, event: Entry | Event, is_finding: bool) -> None:
        """Put an event where it stays: at the beginning, around a finding, or among the last.

        Most of the last ones are never shown, so entries are written as events when they are.
        """
        if len(self._events) < FIRST_EVENTS:
            self._events.append(self._shown(event))
            return
        if is_finding and self._around < MAX_AROUND:
            self._bring_last(BEFORE)
            self._after = AFTER
        if (is_finding or self._after > 0) and self._around < MAX_AROUND and not self._last:
            self._after -= not is_finding
            self._around += 1
            self._events.append(self._shown(event))
            return
        self._left_out += len(self._last) == LAST_EVENTS
        self._last.append(event)

    def _bring_last(self, limit: int) -> None:
        """Put the latest events behind those that are kept, and say how many are missing."""
        events = list(self._last)[-limit:] if limit else []
        missing = self._left_out + len(self._last) - len(events)
        if missing:
            text = f"{plural(missing, 'event')} not shown"
            self._events.append(["", "", NOTE, "", "", text, "", ""])
        self._events += map(self._shown, events)
        self._around += len(events)
        self._last.clear()
        self._left_out = 0

    def _shown(self, event: Entry | Event) -> Event:
        return self._event(event) if isinstance(event, Entry) else event

    def _finding(self, row: Row) -> Event:
        text = f"{KINDS[row['code']].title}: {row['detail'] or ''}".rstrip(": ")
        if row["count"] > 1:
            text += f" ({plural(row['count'], 'time')})"
        text = shortened(harmless(text), MAX_CHARACTERS)
        when = [self._time_text(row["ts_ns"]), self._packet(row)]
        return [*when, NOTE, _channel(row["channel"]), "", text, "", row["severity"]]

    def _event(self, entry: Entry) -> Event:
        when = [self._time_text(entry.ts_ns), str(entry.packet_number)]
        if entry.frame_type == GAP:
            text = f"{octets(entry.size)} of the {entry.sender} are missing or not decoded"
            return [*when, NOTE, "", "", text, "", "warning"]
        if entry.method is None:
            side = entry.sender if entry.sender in SIDES else NOTE
            return [*when, side, "", entry.frame_type, "", "", ""]
        arguments = entry.arguments or {}
        if entry.message is not None:
            detail, last = message_parts(entry.message), outcome_parts(entry.message)
        else:
            detail, last = argument_parts(entry.method, arguments), reply_parts(entry, arguments)
        ending = list(last)
        level = _level(entry.method, arguments, ending)
        side = entry.sender if entry.sender in SIDES else NOTE
        texts = [shortened(_text(parts), MAX_CHARACTERS) for parts in (detail, ending)]
        if entry.message is not None and self._body_limit:
            texts[0] = f"{texts[0]} {self._body(entry.message)}".rstrip()
        return [*when, side, _channel(entry.channel), entry.method, *texts, level]

    def _body(self, message: Row) -> str:
        """The beginning of a body, as all commands show it; bytes that are no text in hex."""
        found = body_text(message, self._body_limit)
        if found is None or not found.octets:
            return ""
        text = found.octets[: self._body_limit].hex(" ") if found.text is None else found.text
        form = f"{found.form}: " if found.form else ""
        return form + shortened(harmless(text), self._body_limit)

    def _time_text(self, ts_ns: int | None) -> str:
        return "" if ts_ns is None else seconds(ts_ns - (self._start or 0))

    def _packet(self, row: Row) -> str:
        return "" if row["packet_number"] is None else str(row["packet_number"])


def name_of(row: Row, limit: int) -> str:
    """A connection by its name or product, cut to `limit` characters, and its address."""
    given = given_name(row["connection_name"], row["client_product"]) or ""
    name = shortened(harmless(given), limit)
    return f"{name} {row['client'] or row['connection_id'][:8]}".strip()


def _place(finding: Row) -> tuple[int, int]:
    return finding["ts_ns"] or 0, finding["packet_number"] or 0


def _channel(number: int | None) -> str:
    return str(number) if number else ""


def _text(parts: Iterable[Part]) -> str:
    return " ".join(fixed + text for _, fixed, text in parts)


def _level(method: str, arguments: Row, ending: list[Part]) -> str:
    """The emphasis of an event: `error`, `warning`, or nothing."""
    if is_error(method, arguments):
        return "error"
    styles = {part.style for part in ending}
    return next((style for style in ("error", "warning") if style in styles), "")
