"""One screen of the dashboard: the header, the view, further panels below it, and the keys.

Everything is made of lines, so that the whole is as high as the terminal and never higher: the view
is given what the other parts leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from amqpsniff.analysis.top_rows import close_reason
from amqpsniff.errors import FilterError
from amqpsniff.live.picture import NAMED, Picture, Row, chosen
from amqpsniff.units import count, octets, plural
from amqpsniff.wire_text import harmless, named

from ..render.grid import Grid
from ..render.text import NONE, Paint, cells, cut, cut_middle, folded, of_severities
from .state import KEYS, WORDS, State
from .views import (
    AT_LEAST,
    MIN_RATE,
    clock,
    flow,
    often,
    ordered,
    queue_name,
    text,
    wait,
)
from .views import KEYS as KEYS_VIEW

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Selection


DOT = " · "

Part = str | tuple[str, str]

_SIDES = (
    ("publish", "published_per_s", "in", "sent_per_s", "cnf", "confirm", "unconfirmed"),
    ("deliver", "delivered_per_s", "out", "received_per_s", "ack", "ack", "unacked"),
)
"""Both directions of a client's messages: rate, bytes, latency, and how many wait."""


def line(width: int, *parts: Part) -> Text:
    """Parts with a dot between them, without empty ones and those for which there is no room."""
    shown = Text()
    for part in parts:
        words, style = part if isinstance(part, tuple) else (part, "")
        if not words:
            continue
        if not shown.plain:
            shown.append(cut(words, width), style)
        elif cells(shown.plain) + cells(words) + len(DOT) <= width:
            shown.append(DOT, "key").append(words, style)
    return shown


def sides(row: Row, width: int) -> list[Text]:
    """Two lines, for publishes and deliveries of clients; each figure has a fixed place.

    `row` is a connection, or the sum of all.
    """
    shown = []
    for label, messages, way, amount, short, latency, waiting in _SIDES:
        text = Text()
        text.append(f"{label:<7} ", "heading")
        text.append(f"{_zero(often(row[messages])):>7}/s  ")
        text.append(f"{way:<3} ", "key")
        text.append(f"{_zero(flow(row[amount]), ' B/s'):>9}  ")
        text.append(f"{short} ", "key")
        text.append(f"{_figure(row, f'{latency}_p50_ms', wait):>8}  ")
        text.append("p99 ", "key")
        text.append(f"{_figure(row, f'{latency}_p99_ms', wait):>8}  ")
        text.append(f"{waiting:<11} ", "key")
        text.append(f"{_figure(row, waiting, count):>6}")
        text.truncate(width, overflow="ellipsis")
        shown.append(text)
    return shown


def pair(left: str, right: str, width: int) -> Text:
    """A name and a number at both ends of a line."""
    shown = cut_middle(left, max(1, width - len(right) - 1))
    text = Text(shown, "name" if right != NONE else "key")
    text.append(" " * max(1, width - cells(shown) - len(right)) + right, "info")
    return text


def span(seconds: int) -> str:
    """A span as hours, minutes and seconds."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _zero(written: str, unit: str = "") -> str:
    return f"0{unit}" if written == NONE else written


def _figure(row: Row, name: str, write: Callable[[Any], str]) -> str:
    """A number of a row, marked if it is a lower bound."""
    return (AT_LEAST if row[name] and name in row["at_least"].split() else "") + write(row[name])


GAP = 3
RATE_CELLS = 6
MIN_CELLS = 14

_PANELS = (
    ("exchanges", "exchange", "published_per_s"),
    ("routing keys", "routing_key", "published_per_s"),
    ("queues", "queue", "delivered_per_s"),
)


def names(picture: Picture, width: int, lines: int) -> list[Text]:
    """Exchanges, keys and queues with the highest rates, side by side below a blank line."""
    tables = (picture.exchanges, picture.keys, picture.queues)
    shown = []
    several = len({row["vhost"] for rows in tables for row in rows}) > 1
    for (_, key, rated), rows in zip(_PANELS, tables, strict=True):
        write = queue_name if key == "queue" else named
        ranked = sorted(rows, key=lambda row: (-round(row[rated]), str(row[key])))[: lines - 2]
        vhosts = [f" ({named(row['vhost'])})" if several else "" for row in ranked]
        labels = map(str.__add__, (write(row[key]) for row in ranked), vhosts)
        shown.append([*zip(labels, (often(row[rated]) for row in ranked), strict=True)])
    widths = _widths(shown, width)
    columns: list[list[Text]] = []
    for (title, _, _), pairs, column_width in zip(_PANELS, shown, widths, strict=True):
        column = [Text(title, "heading"), *(pair(*entry, column_width) for entry in pairs)]
        column += [Text("") for _ in range(lines - 1 - len(column))]
        for line in column:
            line.pad_right(column_width - line.cell_len)
        columns.append(column)
    between = Text(" " * GAP)
    return [Text(""), *(between.join(row) for row in zip(*columns, strict=True))]


def _widths(shown: list[list[tuple[str, str]]], width: int) -> list[int]:
    """Width of each panel: a third, or the width that the names of the others leave."""
    widths = [
        max([MIN_CELLS, *(cells(left) + 1 + RATE_CELLS for left, _ in pairs)]) for pairs in shown
    ]
    third = (width - GAP * (len(widths) - 1)) // len(widths)
    if max(widths) <= third:  # names come and go; the panels stay where they are
        return [third] * len(widths)
    while sum(widths) + GAP * (len(widths) - 1) > width:
        widths[widths.index(max(widths))] -= 1
    return widths


def latest(picture: Picture, findings: Iterable[Row], width: int, lines: int) -> Iterator[Text]:
    """Notes on the capture, then the latest findings, errors first."""
    shown = [Text(cut(harmless(note), width), "warning") for note in picture.notes[::-1]]
    ranked = sorted(findings, key=lambda row: (row["rank"], row["ts_ns"] or 0), reverse=True)
    for row in ranked[:lines]:
        subject = ": ".join(filter(None, (row["who"], row["detail"])))
        line_text = f"{clock(row['ts_ns'])} {row['code']} {subject}".rstrip()
        shown.append(Text(cut(harmless(line_text), width), row["severity"]))
    yield from shown[:lines]


FINDING_LINES = 5
"""Lines of `finding`, with the empty one above."""


def finding(row: Row, width: int) -> Iterator[Text]:
    """One finding in full, as far as it fits."""
    yield Text("")
    yield line(
        width,
        (f"{row['severity']}: {row['title']}", row["severity"]),
        f"channel {row['channel']}" if row["channel"] is not None else "",
        f"packet {row['packet_number']}" if row["packet_number"] is not None else "",
        f"because of {row['cause_code']}" if row["cause_code"] else "",
    )
    first, *rest = folded(harmless(row["detail"]), width)
    yield Text(first)
    yield Text(cut(" ".join(rest), width))
    yield line(
        width,
        harmless(row["who"] or ""),
        row["client"] if row["client"] != row["who"] else "",
        (f"what to do: amqpsniff explain {row['code']}", "key"),
    )


MIN_ROWS = 5
"""Rows that the view has before anything stands below it."""

MIN_COLUMNS, MIN_LINES = 40, 11
FOOTER = "q quit  ? help  1-{} view  s sort  / filter  p pause  ↑↓ enter: connection"
PANEL_LINES = 6
LATEST_LINES = 4
METHODS_SHOWN = 8
HEAD_LINES = 6
CAPTURE_CELLS = 24


class Screen:
    """A renderable as large as the terminal.

    Attributes:
        rows: The rows of the view as they are shown, for keys that choose one.
    """

    def __init__(self, picture: Picture, state: State, selection: Selection) -> None:
        self._picture = picture
        self._state = state
        self._where = selection.where
        self._named = [
            f"{name} {getattr(selection, name)}" for name in NAMED if getattr(selection, name)
        ]
        self.rows: list[Row] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines, each as wide as the terminal or less, as many as it has."""
        width, height = options.max_width, options.height or console.height
        if width < MIN_COLUMNS or height < MIN_LINES:
            lines, last = [], Text(cut("the terminal is too small", width))
        else:
            lines = [*self._head(width), *self._body(width, height - HEAD_LINES - 1)]
            last = self._foot(width)
        blank = [Text("")] * (height - 1 - len(lines))
        screen = Text("\n", no_wrap=True, overflow="crop", end="")
        yield screen.join([*lines[: height - 1], *blank, last])

    # above

    def _head(self, width: int) -> Iterator[Text]:
        """Six lines: capture, published, delivered, open and found and sent, verdict, views."""
        picture = self._picture
        dropped = picture.dropped
        yield line(
            width,
            ("amqpsniff", "heading"),
            cut_middle(harmless(picture.capture), CAPTURE_CELLS),
            span(int(picture.seconds)),
            ("held", "warning") if self._state.paused else "",
            ("not written any more", "error") if picture.trouble else "",
            plural(picture.packets, "packet"),
            (f"{count(dropped)} dropped", "error" if dropped else "")
            if dropped is not None
            else "",
            f"{octets(picture.written)} written"
            if picture.written is not None and not picture.trouble
            else "",
        )
        yield from sides(picture.totals, width)
        ended = f", {count(picture.ended)} ended" if picture.ended else ""
        found = of_severities(picture.severities) or [("no findings", "key")]
        methods: list[Part] = [
            (f"{harmless(method)} {often(value)}/s", "key")
            for method, value in picture.methods.items()
            if value >= MIN_RATE
        ]
        yield line(
            width,
            f"{plural(picture.open, 'connection')}{ended}",
            *found,
            *methods[:METHODS_SHOWN],
        )
        yield Text(cut(harmless(str(picture.verdict)), width), picture.verdict.severity or "key")
        yield self._tabs(width)

    def _tabs(self, width: int) -> Text:
        state = self._state
        shown = Text()
        for at, view in enumerate(state.views, 1):
            shown.append(f" {at} {view.name} ", "reverse" if view.name == state.view else "key")
        if state.sort:
            shown.append(f"  by {state.shown.called(state.sort)}", "key")
            shown.append(" (turned)" if state.view in state.backwards else "", "key")
        shown.truncate(width, overflow="ellipsis")
        return shown

    # the view

    def _body(self, width: int, height: int) -> Iterator[Text]:
        state = self._state
        if state.help:
            yield from self._help(width)
            return
        detail = list(self._about(width)) if state.view == "connection" else []
        yield from detail
        height -= len(detail)
        self.rows = self._chosen_rows()
        at = state.at(self.rows)
        below = list(self._below(width, height - 1 - MIN_ROWS, at))
        room = max(1, height - 1 - len(below))
        first = max(0, min(at - room + 1, len(self.rows) - room)) if at >= room else 0
        shown = self.rows[first : first + room]
        if shown:
            yield from _table(state.shown.grid(shown, at - first), width)
        else:
            yield Text("")
            yield Text(cut(f"  {self._nothing()}", width), "key")
        yield from (Text("") for _ in range(room - max(len(shown), 1)))
        yield from below

    def _rows(self) -> list[Row]:
        picture, view = self._picture, self._state.view
        if view == "connection":
            return picture.channels
        rows: list[Row] = getattr(picture, "connections" if view == "clients" else view)
        return rows

    def _chosen_rows(self) -> list[Row]:
        """The rows that the filters let through, sorted."""
        state = self._state
        rows = self._rows()
        state.complaint = ""
        if self._where and state.view != "connection":
            try:
                rows = chosen(rows, self._where, expression=True)
            except FilterError:
                state.complaint = f"this view has no columns for: {self._where}"
        if state.filter and state.view != "connection":
            try:
                rows = chosen(rows, state.filter)
            except FilterError as error:
                state.complaint = str(error)
        before = state.calm.setdefault((state.view, state.sort), {})
        turned = state.view in state.backwards
        return ordered(rows, state.sort, backwards=turned, view=state.shown, before=before)

    def _nothing(self) -> str:
        picture, view = self._picture, self._state.view
        if view == "connection":
            if self._state.connection is None:
                return "choose a connection in view 1 and press enter"
            return "no channel is open"
        if self._rows():
            return "nothing that the filter lets through; escape clears it"
        if view == "findings":
            return "nothing was found"
        if not picture.open and not picture.ended:
            return "no AMQP yet"
        nothing = {"exchanges": "published", "queues": "delivered", "operations": "settled yet"}
        return f"nothing was {nothing[view]}" if view in nothing else "nothing is open"

    def _about(self, width: int) -> Iterator[Text]:
        """Facts of the connection on the screen: up to five lines."""
        picture, state = self._picture, self._state
        if state.connection is None:
            return
        login = picture.connection
        if login is None:
            yield Text(cut(f"connection {state.connection} is not known any more", width), "key")
            return
        row = next(
            (
                connection
                for connection in picture.connections
                if connection["connection_id"] == state.connection
            ),
            None,
        )
        yield line(
            width,
            (text(login["connection_name"] or state.connection), "heading"),
            f"{text(login['client'])} to {text(login['server'])}",
            state.connection if login["connection_name"] else "",
        )
        yield line(
            width,
            ("blocked by the broker", "warning") if row and row["blocked"] else "",
            f"user {text(login['user'])}",
            f"vhost {text(login['vhost'])}",
            f"heartbeat {text(login['heartbeat'])} s",
            f"{text(login['client_product'])} {text(login['client_version'])}",
            f"{text(login['server_product'])} {text(login['server_version'])}",
        )
        if row is not None:
            yield from sides(row, width)
            if login["owed"] is not None:
                yield line(width, (login["owed"], "key"))
            return
        reason = harmless(close_reason(login) or "")
        ending = f"ended by {text(login['closed_by'])}"
        yield line(width, (ending, "warning"), (reason, "warning"))
        messages = (f"{count(login[name])} {name}" for name in ("published", "delivered"))
        yield line(width, *messages)

    def _help(self, width: int) -> Iterator[Text]:
        yield Text("")
        for listed in (KEYS, WORDS):
            for keys, meaning in listed:
                shown = Text(f"  {keys:<14}", "heading")
                shown.append(meaning, "info")
                shown.truncate(width)
                yield shown

    # below

    def _below(self, width: int, room: int, at: int) -> Iterator[Text]:
        """The latest findings, names by rate, as there is room."""
        picture, view = self._picture, self._state.view
        findings = picture.findings
        if view == "clients" and room >= PANEL_LINES:
            lines = PANEL_LINES + max(0, min((room - PANEL_LINES - LATEST_LINES) // 2, 10))
            yield from names(picture, width, lines)
            room -= lines
        if view == "exchanges" and room >= PANEL_LINES:
            lines = max(PANEL_LINES, (room + MIN_ROWS) // 2)
            rows = self._keys()[: lines - 2]
            yield Text("")
            yield from _table(KEYS_VIEW.grid(rows, None), width)
            yield from (Text("") for _ in range(lines - 2 - len(rows)))
            room -= lines
        if view == "findings":
            if self.rows and room >= FINDING_LINES:
                yield from finding(self.rows[at], width)
            return
        if view == "connection":
            connection = self._state.connection
            findings = [row for row in findings if row["connection_id"] == connection]
        if room >= 1:
            yield from latest(picture, findings, width, min(room, LATEST_LINES))

    def _keys(self) -> list[Row]:
        """Exchanges with routing keys, the busiest first."""
        before = self._state.calm.setdefault((KEYS_VIEW.name, ""), {})
        rows, busiest = self._picture.keys, KEYS_VIEW.sorts[0]
        return ordered(rows, busiest, backwards=False, view=KEYS_VIEW, before=before)

    def _foot(self, width: int) -> Text:
        state = self._state
        if state.typed is not None:
            typed = f"/{harmless(state.typed)}▏"
            while cells(typed) > width:
                typed = typed[1:]
            return Text(typed, "heading")
        if state.complaint:
            return Text(cut(harmless(state.complaint), width), "error")
        shown = Text()
        for name in self._named:
            shown.append(f"{harmless(name)}  ", "warning")
        if self._where:
            shown.append(f"where {harmless(self._where)}  ", "warning")
        if state.filter:
            shown.append(f"/{harmless(state.filter)}  ", "warning")
        shown.append(FOOTER.format(len(state.views)), "key")
        shown.truncate(width, overflow="ellipsis")
        return shown


def _table(grid: Grid, width: int) -> Iterator[Text]:
    return map(Text.from_ansi, grid.lines(width, Paint(colour=True)))
