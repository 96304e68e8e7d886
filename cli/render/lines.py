"""Lines of a list of methods and messages: time, packet, client and contents.

Parts of a line are fitted into the columns of a terminal: the longest names are cut first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.client_names import ClientNames
from amqpsniff.analysis.one_line import (
    NOBODY,
    Part,
    argument_parts,
    is_error,
    message_parts,
    outcome_parts,
    property_parts,
    reply_parts,
)
from amqpsniff.units import octets
from amqpsniff.wire_text import harmless, word

from ..output import Output
from .clock import LineClock
from .text import Paint, cells, cut, folded

if TYPE_CHECKING:
    from amqpsniff.analysis.timeline import Entry

    from ..reading import Reading


MIN_CELLS = (24, 10, 7)
"""Columns of a name that is cut: the first of these with which the line fits.
Where none does it is the first, and the end of the line is cut."""


MAX_ALIKE = 256
"""Characters of arguments that are remembered: most methods come again with the same ones."""


@lru_cache(1_024)
def _read(method: str, text: str) -> tuple[dict[str, Any], tuple[Part, ...]]:
    """Arguments of a method from their JSON, not to be changed, and what a line shows of them."""
    arguments: dict[str, Any] = json.loads(text or "null") or {}
    return arguments, tuple(argument_parts(method, arguments))


def joined(
    parts: Iterable[Part],
    paint: Paint,
    room: int | None,
    extra: Iterable[Part] = (),
    last: Iterable[Part] = (),
) -> str:
    """The parts as one text of at most `room` columns; None does not cut.

    `last` stands at the right edge; the parts are cut to make room for it, and it is never more
    than half. Of `extra` there is as much as fits between them.
    """
    if room is None:
        return painted([*parts, *last, *extra], paint)
    parts, extra, last = list(parts), list(extra), list(last)
    taken = _taken(last)
    if taken > room // 2:
        parts, last, taken = parts + last, [], 0
    parts = fitted(parts, room - taken)
    free = room - taken - _taken(parts)
    if extra and free > 1:
        parts += _within(extra, *_widths(extra), free)
    if not last:
        return painted(parts, paint)
    blanks = room - taken - _taken(parts) + 2
    return painted(parts, paint) + " " * max(blanks, 1) + painted(last, paint)


def painted(parts: Iterable[Part], paint: Paint) -> str:
    """Parts as one text, in their colours."""
    if not paint.colour:
        return " ".join([fixed + text for _, fixed, text in parts])
    words = []
    for style, fixed, text in parts:
        words.append(paint("key", fixed) + paint(style, text) if text else paint(style, fixed))
    return " ".join(words)


def _taken(parts: Iterable[Part]) -> int:
    """Columns of parts, each with a blank."""
    return sum(cells(part.fixed + part.text) + 1 for part in parts)


def fitted(parts: list[Part], room: int) -> list[Part]:
    """Parts that fit: the longest names are cut first, then the end of the line."""
    fixed, texts = _widths(parts)
    total_width = room - sum(fixed) - len(parts) + 1
    for least in MIN_CELLS:
        cut_texts = _shortened(texts, total_width, least)
        if sum(cut_texts) <= total_width:
            return list(_within(parts, fixed, cut_texts, room))
    return list(_within(parts, fixed, _shortened(texts, total_width, MIN_CELLS[0]), room))


def _widths(parts: list[Part]) -> tuple[list[int], list[int]]:
    return [cells(part.fixed) for part in parts], [cells(part.text) for part in parts]


def _shortened(widths: list[int], total_width: int, lowest: int) -> list[int]:
    """The widths, the largest reduced, but not below `lowest`, until their sum is `total_width`."""
    widths = list(widths)
    excess = sum(widths) - total_width
    while excess > 0 and max(widths) > lowest:
        longest = max(widths)
        at = widths.index(longest)
        second = max((width for width in widths if width < longest), default=0)
        share = -(-excess // widths.count(longest))
        widths[at] = max(lowest, second, longest - share)
        excess -= longest - widths[at]
    return widths


def _within(parts: list[Part], fixed: list[int], texts: list[int], room: int) -> Iterator[Part]:
    for part, width, text_width in zip(parts, fixed, texts, strict=True):
        if room < 1:
            return
        if part.text and room <= width:
            yield Part(part.style, cut(part.fixed + part.text, room))
            return
        fixed_text = cut(part.fixed, room)
        yield Part(
            part.style,
            fixed_text,
            cut(part.text, min(text_width, room - width)) if room > width else "",
        )
        room -= width + text_width + 1


SPACING = 6
"""Columns of an arrow and of the blanks around it and between words, and one to spare: in some
fonts arrows are two columns wide."""

MIN_ROOM = 20
"""Least columns for text that is folded, however narrow the terminal is."""

CLIENT_WIDTH = 21
NARROW_WIDTH = 16
NAME_WIDTH = 13
PORT_WIDTH = 6
"""Columns of a client: of an address with its port, with little room, of a name, of a port."""

OUTCOME_WIDTH = 18
"""Columns of an outcome and the time it took."""

NO_OUTCOME = " " * (OUTCOME_WIDTH + 1)

MAX_CLIENTS = 10_000
"""Names of clients kept at once."""

ARROWS: dict[str | None, str] = {"client": "→", "server": "←", NOBODY: " "}
"""Towards the server, and from it."""


class Lines:
    """Writes entries as lines.

    Args:
        output: Where they go; decides their width and colour.
        reading: Their captures. Where there are several, a packet number has its file's name.
        form: How times are written; see `LineClock`.
        clients: Names of clients, and whether there are several hosts.
        whose: Whether lines say whose connection they are of.
    """

    def __init__(
        self,
        output: Output,
        reading: Reading,
        form: str,
        clients: ClientNames | None = None,
        *,
        whose: bool = True,
    ) -> None:
        self._paint = output.paint
        self._width = output.width
        self._clock = LineClock(form, reading.started, short=output.narrow)
        self._reading = reading
        self._wide = not output.narrow
        self._whose = whose
        self._time_width = self._clock.width
        self._names = clients or ClientNames()
        self._clients: dict[str | None, str] = {}
        self._client_width = 0

    def frame(self, entry: Entry, *, bare: bool = False) -> str:
        """The line of a frame; of a message, its method's. `bare` leaves out the message."""
        if entry.method is None:
            parts = [Part("method", entry.frame_type)]
            if entry.size and entry.frame_type != "protocol-header":
                parts.append(Part("size", octets(entry.size)))
            return self._line(entry, parts)
        text = "" if entry.message else entry.arguments_json or ""
        read = _read if len(text) <= MAX_ALIKE else _read.__wrapped__
        arguments, described = read(entry.method, text)
        parts = [Part(_style(entry.method, arguments), entry.method)]
        last: Iterable[Part] = ()
        if entry.message is not None and not bare:
            parts += message_parts(entry.message)
            last = outcome_parts(entry.message, early=entry.early)
        else:
            parts += described
            if not bare:
                last = reply_parts(entry, arguments)
            if entry.waiting and not bare:
                parts.append(Part("warning", "unfinished"))
        return self._line(entry, parts, outcome=last)

    def message(self, row: dict[str, Any]) -> str:
        """The line of a message; of its properties there are as many as there is room for."""
        parts = [Part(_style(row["method"], {}), row["method"]), *message_parts(row)]
        outcome = outcome_parts(row, early=self._reading.passes.early)
        place = SimpleNamespace(**row)
        return self._line(place, parts, property_parts(row), outcome=outcome)

    def step(self, place: Any, parts: list[Part], last: Iterable[Part]) -> str:
        """A line of these parts; one whose sender is `NOBODY` has no arrow."""
        return self._line(place, parts, last=last)

    def aside(self, place: Any, style: str, text: str) -> Iterator[str]:
        """Lines about a hole or a finding; `place` as an entry.

        One line in a pipe, on a terminal as many as it takes: the end of it matters most.
        """
        time = self._clock.show(place.ts_ns).rjust(self._time_width)
        packet = self._packet(place).rjust(5)
        head = f"{self._paint('time', time)} {self._paint('packet', packet)} "
        if self._width is None:
            yield head + self._paint(style, text)
            return
        used = len(time) + len(packet) + 2
        room = max(self._width - used, MIN_ROOM)
        for line in folded(text, room, "  "):
            yield head + self._paint(style, line)
            head = " " * used

    def _line(
        self,
        entry: Any,
        parts: list[Part],
        extra: Iterable[Part] = (),
        last: Iterable[Part] = (),
        outcome: Iterable[Part] | None = None,
    ) -> str:
        """A line: its beginning as in all lines, and the parts, cut to the rest of the width.

        The outcome has a column of its own: at the right edge where there is one, else in front.
        """
        time = self._clock.show(entry.ts_ns).rjust(self._time_width)
        packet = self._packet(entry).rjust(5)
        client = ""
        if self._whose:
            client = (self._clients.get(entry.connection_id) or self._client(entry)) + " "
        arrow = ARROWS.get(entry.sender, "?")
        channel = str(entry.channel if entry.channel is not None else "-").rjust(2)
        paint, room = self._paint, None
        front = ""
        if outcome is not None:
            front = NO_OUTCOME if self._width is None else ""
            for style, text, _ in outcome:  # one at most
                short = text.removeprefix("→ ")
                if self._width is None:
                    front = paint(style, short.ljust(OUTCOME_WIDTH)) + " "
                else:
                    last = (Part(style, short),)
        if self._width is not None:
            used = len(time) + len(packet) + len(client) + len(channel) + SPACING - 1
            room = max(self._width - used, 0)
        body = joined(parts, paint, room, extra, last)
        if not paint.colour:
            return f"{time} {packet} {client}{arrow}{channel} {front}{body}"
        return (
            f"{paint('time', time)} {paint('packet', packet)} {paint('connection', client)}"
            f"{arrow}{paint('channel', channel)} {front}{body}"
        )

    def _packet(self, entry: Any) -> str:
        if self._reading.several:
            return f"{harmless(PurePath(entry.capture).name)}#{entry.packet_number}"
        return str(entry.packet_number)

    def _client(self, entry: Any) -> str:
        """The label of a connection, from a cache: many lines have the same.

        That is its name with its port, else host and port; the port alone on a narrow terminal
        where there is one host.
        """
        names, client = self._names, entry.client
        names.see(client)
        if not self._client_width:
            short = not (self._wide or names.several_hosts or names.names)
            self._client_width = PORT_WIDTH if short else self._max_client_width
        width = self._client_width
        if client is None:
            return str(entry.connection_id or "")[:PORT_WIDTH].ljust(width)
        port = f":{client.rpartition(':')[2]}"
        name = names.names.get(entry.connection_id)
        if name is not None:
            label = cut(word(name), max(width, self._max_client_width) - len(port)) + port
        else:
            label = client if self._wide or names.several_hosts else port
        label += " " * max(width - cells(label), 0)
        if name is not None or names.several_hosts or self._wide:  # else it may get longer
            if len(self._clients) >= MAX_CLIENTS:
                self._clients.clear()
            self._clients[entry.connection_id] = label
        return label

    @property
    def _max_client_width(self) -> int:
        """Columns of a client."""
        if self._wide:
            return CLIENT_WIDTH
        return NARROW_WIDTH if self._names.several_hosts else NAME_WIDTH


def _style(method: str, arguments: dict[str, Any]) -> str:
    return "method.error" if is_error(method, arguments) else "method"
