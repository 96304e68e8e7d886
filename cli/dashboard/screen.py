"""One screen: what stands above, the view, what has room below it, and the keys.

Everything is made of parts whose height is known, so that the whole is as high as the terminal and
never higher: the view is given what the other parts leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from amqpsniff.errors import FilterError

from ..render.text import cells, count, cut, harmless, plural
from .choice import chosen
from .picture import Picture
from .state import KEYS, State
from .views import KEYS as KEYS_VIEW
from .views import NONE, VIEWS, Row, clock, flow, name, ordered, rate, wait

LEAST_ROWS = 5
"""Rows that the view has before anything stands below it."""

LEAST_COLUMNS, LEAST_LINES = 40, 10
FOOTER = "q quit  ? help  1-5 view  s sort  / filter  p pause  ↑↓ enter connection"
PANEL_LINES = 6
LATEST_LINES = 4
METHODS_SHOWN = 8


class Screen:
    """A renderable as large as the terminal.

    Attributes:
        rows: The rows of the view as they are shown, for keys that choose one.
    """

    def __init__(self, picture: Picture, state: State, where: str | None = None) -> None:
        self._picture = picture
        self._state = state
        self._where = where
        self.rows: list[Row] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines, each as wide as the terminal or less, as many as it has."""
        width, height = options.max_width, options.height or console.height
        parts: list[Any] = []
        if width < LEAST_COLUMNS or height < LEAST_LINES:
            parts = [Text(cut("the terminal is too small", width))]
        else:
            parts = [*self._head(width), *self._body(width, height - 6), self._foot(width)]
        lines: list[list[Segment]] = []
        for part in parts:
            lines += console.render_lines(
                part, options.update(height=None), pad=True, new_lines=False
            )
        *above, last = lines
        above = above[: height - 1]
        above += [[Segment(" " * width)]] * (height - 1 - len(above))
        for line in above:
            yield from line
            yield Segment.line()
        yield from last

    # above

    def _head(self, width: int) -> Iterator[Text]:
        """Five lines: the capture, the traffic, latencies, methods, the views."""
        picture = self._picture
        totals = picture.totals
        dropped = picture.dropped
        yield _line(
            width,
            ("amqpsniff", "heading"),
            harmless(picture.capture),
            _clock(int(picture.seconds)),
            plural(picture.packets, "packet"),
            (f"{count(dropped)} dropped", "error" if dropped else "")
            if dropped is not None
            else "",
            picture.written,
            ("held", "warning") if self._state.paused else "",
        )
        ended = f" ({count(picture.ended)} ended)" if picture.ended else ""
        yield _line(
            width,
            f"{plural(picture.open, 'connection')}{ended}",
            f"pub {rate(totals['published_per_s'])}/s",
            f"dlv {rate(totals['delivered_per_s'])}/s",
            f"in {flow(totals['sent_per_s'])}",
            f"out {flow(totals['received_per_s'])}",
        )
        found = [
            (
                f"{count(number)} {severity}{'s' if number > 1 and severity != 'info' else ''}",
                severity,
            )
            for severity, number in sorted(picture.severities.items())
        ]
        yield _line(
            width,
            *found,
            f"unack {count(totals['unacked'])}",
            f"unconf {count(totals['unconfirmed'])}",
            f"cnf {_both(totals, 'confirm')}",
            f"ack {_both(totals, 'ack')}",
        )
        methods = [
            f"{harmless(method)} {rate(value)}/s"
            for method, value in picture.methods.items()
            if value
        ]
        yield _line(width, *(methods[:METHODS_SHOWN] or ["no methods"]))
        yield self._tabs(width)

    def _tabs(self, width: int) -> Text:
        state = self._state
        line = Text()
        for at, view in enumerate(VIEWS, 1):
            line.append(f" {at} {view.name} ", "reverse" if view.name == state.view else "key")
        if state.sort:
            order = "reversed" if state.view in state.backwards else ""
            line.append(f"  by {state.sort} {order}".rstrip(), "key")
        line.truncate(width)
        return line

    # the view

    def _body(self, width: int, height: int) -> Iterator[Any]:
        state = self._state
        if state.help:
            yield from self._help(width)
            return
        detail = list(self._about(width)) if state.view == "connection" else []
        yield from detail
        height -= len(detail)
        self.rows = self._wanted()
        at = min(state.chosen.get(state.view, 0), max(0, len(self.rows) - 1))
        below = list(self._below(width, height - 1 - LEAST_ROWS))
        room = max(1, height - 1 - sum(lines for lines, _ in below))
        first = max(0, min(at - room + 1, len(self.rows) - room)) if at >= room else 0
        shown = self.rows[first : first + room]
        if not shown:
            yield Text("")
            yield Text(f"  {self._nothing()}", "key")
            yield from (Text("") for _ in range(room - 1))
        else:
            yield state.shown.grid(shown, at - first).build(width)
            yield from (Text("") for _ in range(room - len(shown)))
        for _, part in below:
            yield part

    def _rows(self) -> list[Row]:
        """All rows of the view."""
        picture, view = self._picture, self._state.view
        if view == "connection":
            return picture.channels
        rows: list[Row] = getattr(picture, "connections" if view == "clients" else view)
        return rows

    def _wanted(self) -> list[Row]:
        """The rows that the filters let through, sorted."""
        state = self._state
        rows = self._rows()
        state.complaint = ""
        if self._where:
            try:
                rows = chosen(rows, self._where, expression=True)
            except FilterError:
                state.complaint = f"this view has no columns for: {self._where}"
        if state.filter:
            try:
                rows = chosen(rows, state.filter)
            except FilterError as error:
                state.complaint = str(error)
        return ordered(rows, state.sort, backwards=state.view in state.backwards)

    def _nothing(self) -> str:
        if self._state.view == "connection" and self._state.connection is None:
            return "choose a connection in view 1 and press enter"
        if self._rows():
            return "nothing that the filter lets through"
        if self._state.view == "findings":
            return "nothing was found"
        return "no AMQP yet" if not self._picture.ended else "nothing is open"

    def _about(self, width: int) -> Iterator[Text]:
        """What is known of the connection that is looked at: up to four lines."""
        picture, state = self._picture, self._state
        row = next(
            (one for one in picture.connections if one["connection_id"] == state.connection), None
        )
        if state.connection is None:
            return
        if row is None:
            yield Text(cut(f"connection {state.connection} is not open any more", width), "warning")
            return
        login = picture.connection or {}
        yield _line(
            width,
            (state.connection, "heading"),
            f"{harmless(row['client'] or '?')} to {harmless(row['server'] or '?')}",
            harmless(row["name"] or ""),
        )
        yield _line(
            width,
            f"user {_known(row['user'])}",
            f"vhost {_known(row['vhost'])}",
            f"client {_known(row['product'])}",
            f"server {_known(login.get('server_product'))} {_known(login.get('server_version'))}",
        )
        yield _line(
            width,
            f"pub {rate(row['published_per_s'])}/s",
            f"dlv {rate(row['delivered_per_s'])}/s",
            f"in {flow(row['sent_per_s'])}",
            f"out {flow(row['received_per_s'])}",
            f"unack {count(row['unacked'])}",
            f"unconf {count(row['unconfirmed'])}",
        )
        yield _line(
            width,
            f"cnf {_both(row, 'confirm')}",
            f"ack {_both(row, 'ack')}",
            f"heartbeat {_known(login.get('heartbeat'))} s",
            f"frame_max {_known(login.get('frame_max'))}",
            ("blocked by the broker", "warning") if row["blocked"] else "",
        )

    def _help(self, width: int) -> Iterator[Text]:
        yield Text("")
        for keys, what in KEYS:
            line = Text(f"  {keys:<14}", "heading")
            line.append(what, "info")
            line.truncate(width)
            yield line

    # below

    def _below(self, width: int, room: int) -> Iterator[tuple[int, Any]]:
        """Parts with their heights: the latest findings, names by rate, as there is room."""
        picture, view = self._picture, self._state.view
        if view in ("clients", "connection") and room >= PANEL_LINES:
            more = max(0, min((room - PANEL_LINES - LATEST_LINES) // 2, 10))
            lines = PANEL_LINES + more
            yield lines, self._names(width, lines - 1)
            room -= lines
        if view == "exchanges" and room >= PANEL_LINES:
            lines = max(PANEL_LINES, (room + LEAST_ROWS) // 2)
            grid = KEYS_VIEW.grid(picture.keys[: lines - 2], None)
            yield 1, Text("")
            yield (
                lines - 1,
                _filled(grid.build(width), lines - 1, len(picture.keys[: lines - 2]) + 1),
            )
            room -= lines
        if view != "findings" and room >= 1:
            yield from ((1, line) for line in self._latest(width, min(room, LATEST_LINES)))

    def _names(self, width: int, lines: int) -> Table:
        """Exchanges, routing keys and queues with the highest rates, side by side."""
        picture = self._picture
        panels = (
            ("exchanges", picture.exchanges, "exchange", "published_per_s"),
            ("routing keys", picture.keys, "routing_key", "published_per_s"),
            ("queues", picture.queues, "queue", "delivered_per_s"),
        )
        table = Table.grid(padding=(0, 2, 0, 0))
        each = (width - 2 * len(panels)) // len(panels)
        columns: list[list[Text]] = []
        for title, rows, key, rated in panels:
            table.add_column(width=each, no_wrap=True)
            ranked = sorted(rows, key=lambda row: -row[rated])[: lines - 1]
            columns.append(
                [
                    Text(title, "heading"),
                    *(_pair(name(row[key]), rate(row[rated]), each) for row in ranked),
                ]
            )
        for at in range(lines + 1):
            table.add_row(
                *(column[at - 1] if 0 < at <= len(column) else Text("") for column in columns)
            )
        return table

    def _latest(self, width: int, lines: int) -> Iterator[Text]:
        """The latest findings and what happened to the capture, the latest last."""
        picture = self._picture
        texts = [Text(cut(harmless(note), width), "warning") for note in picture.notes]
        for row in picture.findings[-lines:]:
            what = f"{clock(row['ts_ns'])} {row['code']} {row['detail']}"
            texts.append(Text(cut(harmless(what), width), row["severity"]))
        yield from texts[-lines:]

    def _foot(self, width: int) -> Text:
        state = self._state
        if state.typed is not None:
            shown = f"/{harmless(state.typed)}"
            return Text(shown[-(width - 1) :] + "▏", "heading")
        if state.complaint:
            return Text(cut(harmless(state.complaint), width), "error")
        line = Text()
        if self._where:
            line.append(f"where {harmless(self._where)}  ", "warning")
        if state.filter:
            line.append(f"/{harmless(state.filter)}  ", "warning")
        line.append(FOOTER, "key")
        line.truncate(width, overflow="ellipsis")
        return line


def _clock(seconds: int) -> str:
    """A span as hours, minutes and seconds."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _both(row: Row, what: str) -> str:
    """The quantiles of a latency; `-` where none was measured."""
    if row[f"{what}_p50_ms"] is None:
        return NONE
    return f"{wait(row[f'{what}_p50_ms'])} p99 {wait(row[f'{what}_p99_ms'])}"


def _known(value: Any) -> str:
    return harmless(str(value)) if value is not None else "?"


def _line(width: int, *parts: str | tuple[str, str]) -> Text:
    """Parts with a dot between them, those that are empty left out, cut to the width."""
    line = Text()
    for part in parts:
        words, style = part if isinstance(part, tuple) else (part, "")
        if words:
            if line.plain:
                line.append(" · ", "key")
            line.append(words, style)
    line.truncate(width, overflow="ellipsis")
    return line


def _pair(left: str, right: str, width: int) -> Text:
    """A name and a number at both ends of a line."""
    shown = cut(left, max(1, width - len(right) - 1))
    line = Text(shown, "name" if right != NONE else "key")
    line.append(" " * max(1, width - cells(shown) - len(right)) + right, "info")
    return line


def _filled(table: Any, lines: int, used: int) -> Any:
    from rich.console import Group

    return Group(table, *(Text("") for _ in range(lines - used)))
