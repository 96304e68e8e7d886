"""The choices of the dashboard's user, changed by keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from amqpsniff.live.picture import Row

from .views import VIEWS, View

KEYS = (
    ("1, 2 …, tab", "another view"),
    ("↑ ↓ page", "choose a line"),
    ("enter", "the connection chosen"),
    ("escape", "back to all connections"),
    ("s", "sort by the next column"),
    ("r", "sort the other way round"),
    ("/", "filter: a text, or an SQL expression over the columns"),
    ("p, space", "hold the picture; the capture goes on"),
    ("ctrl-l", "draw anew"),
    ("?", "these keys"),
    ("q", "quit, with a summary"),
)
"""Every key, for the help."""

WORDS = (
    ("in, out", "bytes from the clients, and to them"),
    ("cnf, ack", "publish to confirm, delivery to acknowledgement, in the last minute"),
    ("?  ≥", "not known: it was not captured; at least so much"),
)
"""Words of the screen, for the help."""

PAGE = 10
MAX_TYPED = 500


@dataclass
class State:
    """The state of the dashboard.

    Attributes:
        views: The views that there are.
        view: Name of the view.
        sorts: Number of the column sorted by, by view.
        backwards: Views that are sorted the other way round.
        filter: What rows must fulfil; empty for nothing.
        typed: The filter while it is typed; None while it is not.
        chosen: Identity of the chosen row, by view; none means the first row, whichever it is.
        places: Number of that line as it was shown last, by view.
        calm: By which numbers rows are sorted, by view and column.
        connection: The connection that is looked at; None for none.
        complaint: What is wrong with the filter; empty for nothing.
        paused, help, over, redraw: As they are called.
    """

    views: tuple[View, ...] = VIEWS
    view: str = VIEWS[0].name
    sorts: dict[str, int] = field(default_factory=dict)
    backwards: set[str] = field(default_factory=set)
    filter: str = ""
    typed: str | None = None
    chosen: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    calm: dict[tuple[str, str], dict[tuple[Any, ...], float]] = field(default_factory=dict)
    connection: str | None = None
    complaint: str = ""
    paused: bool = False
    help: bool = False
    over: bool = False
    redraw: bool = False

    def press(self, key: str, rows: list[Row]) -> None:
        """A key; `rows` are those of the view, as they are shown."""
        if self.typed is not None:
            self._type(key)
        elif key in ("q", "interrupt"):
            self.over = True
        elif key.isdecimal() and 0 < int(key) <= len(self.views):
            self._turn_to(int(key) - 1)
        elif key in ("tab", "right", "back-tab", "left"):
            step = 1 if key in ("tab", "right") else -1
            self._turn_to((self._place + step) % len(self.views))
        elif key in ("up", "down", "page-up", "page-down", "home", "end", "k", "j"):
            self._move(key, rows)
        elif key == "enter":
            self._open(rows)
        elif key == "escape":
            self._go_back()
        elif key == "s":
            self.sorts[self.view] = (self.sorts.get(self.view, 0) + 1) % max(1, len(self._sorts))
            self.backwards.discard(self.view)
        elif key == "r":
            self.backwards ^= {self.view}
        elif key == "/":
            self.typed = self.filter
        elif key in ("p", " "):
            self.paused = not self.paused
        elif key in ("?", "h"):
            self.help = not self.help
        elif key == "redraw":
            self.redraw = True

    @property
    def shown(self) -> View:
        """The view."""
        return self.views[self._place]

    @property
    def sort(self) -> str:
        """The column of the sort order; empty without a choice."""
        return self._sorts[self.sorts.get(self.view, 0)] if self._sorts else ""

    @property
    def _place(self) -> int:
        return next(at for at, view in enumerate(self.views) if view.name == self.view)

    @property
    def _sorts(self) -> tuple[str, ...]:
        return self.shown.sorts

    def _turn_to(self, place: int) -> None:
        self.view = self.views[place].name
        self.help = False

    def at(self, rows: list[Row]) -> int:
        """The present number of the chosen line, whose row may have moved."""
        chosen = self.chosen.get(self.view)
        if chosen is None or not rows:
            return 0
        for number, row in enumerate(rows):
            if self.shown.identity(row) == chosen:
                self.places[self.view] = number
                return number
        return min(self.places.get(self.view, 0), len(rows) - 1)

    def _move(self, key: str, rows: list[Row]) -> None:
        if not rows:
            return
        last = len(rows) - 1
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -PAGE, "page-down": PAGE,
                 "home": -last, "end": last}  # fmt: skip
        at = max(0, min(self.at(rows) + steps[key], last))
        self.places[self.view] = at
        if at == 0:
            self.chosen.pop(self.view, None)
        else:
            self.chosen[self.view] = self.shown.identity(rows[at])

    def _open(self, rows: list[Row]) -> None:
        """Look at the connection of the line chosen."""
        named = rows[self.at(rows)].get("connection_id") if rows else None
        if named is not None:
            self.connection = str(named)
            self.view = "connection"

    def _go_back(self) -> None:
        if self.help:
            self.help = False
        elif self.view == "connection":
            self.view = self.views[0].name
        else:
            self.filter = ""

    def _type(self, key: str) -> None:
        """A key while the filter is typed."""
        assert self.typed is not None
        if key == "enter":
            self.filter, self.typed = self.typed.strip(), None
        elif key in ("escape", "interrupt"):
            self.typed = None
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif key == "erase":
            self.typed = ""
        elif len(key) == 1 and len(self.typed) < MAX_TYPED:
            self.typed += key
