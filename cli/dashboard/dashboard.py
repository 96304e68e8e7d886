"""The dashboard on a terminal: drawn calmly, steered by keys, gone without a trace at the end."""

from __future__ import annotations

import os
import signal
import sys
import termios
import time
import tty
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.theme import Theme

from amqpsniff.live.picture import Picture, Pictures

from ..interrupts import handled
from ..output import coloured
from ..render.text import STYLES
from .screen import Screen
from .state import State
from .views import OPERATIONS, VIEWS

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Selection
    from amqpsniff.live.watch import Watch


ESCAPES = {
    "\x1b[A": "up", "\x1b[B": "down", "\x1b[C": "right", "\x1b[D": "left",
    "\x1bOA": "up", "\x1bOB": "down", "\x1bOC": "right", "\x1bOD": "left",
    "\x1b[5~": "page-up", "\x1b[6~": "page-down", "\x1b[H": "home", "\x1b[F": "end",
    "\x1b[1~": "home", "\x1b[4~": "end", "\x1b[Z": "back-tab", "\x1b[3~": "backspace",
}  # fmt: skip
"""Sequences that terminals of the VT100 family send."""

NAMES = {
    "\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\x08": "backspace",
    "\x1b": "escape", "\x03": "interrupt", "\x15": "erase", "\x0c": "redraw",
}  # fmt: skip


class Keyboard:
    """The keys of the terminal: standard input, or where that is something else its terminal.

    `descriptor` is None without a terminal: no keys are read then.
    """

    def __init__(self) -> None:
        self.descriptor: int | None = None
        self._opened = False
        self._terminal_settings: Any = None

    def __enter__(self) -> Keyboard:
        if sys.stdin is not None and sys.stdin.isatty():
            self.descriptor = sys.stdin.fileno()
        else:
            try:
                self.descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
                self._opened = True
            except OSError:
                return self
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self._opened and self.descriptor is not None:
            os.close(self.descriptor)

    def begin(self) -> None:
        """Have keys one by one, and not shown."""
        if self.descriptor is None:
            return
        self._terminal_settings = termios.tcgetattr(self.descriptor)
        tty.setcbreak(self.descriptor, termios.TCSANOW)

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._terminal_settings is not None and self.descriptor is not None:
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self._terminal_settings)
            self._terminal_settings = None

    def pressed(self) -> list[str]:
        """The keys that were pressed since the last call: characters, and names of the others."""
        if self.descriptor is None:
            return []
        from amqpsniff.capture.poll import readable

        octets = b""
        while readable(self.descriptor):
            try:
                piece = os.read(self.descriptor, 1024)
            except OSError:  # the terminal is gone
                piece = b""
            if not piece:
                self.descriptor = None
                break
            octets += piece
        text = octets.decode(errors="ignore")
        return parse(text)


def parse(text: str) -> list[str]:
    """Keys of the characters that a terminal sent; unknown sequences are left out."""
    keys: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\x1b" or at + 1 == len(text) or text[at + 1] not in "[O":
            keys.append(NAMES.get(text[at], text[at] if text[at].isprintable() else ""))
            at += 1
            continue
        end = at + 2
        while end < len(text) and not (text[end].isalpha() or text[end] == "~"):
            end += 1
        keys.append(ESCAPES.get(text[at : end + 1], ""))
        at = end + 1
    return [key for key in keys if key]


_LEAVE = f"{Control.alt_screen(False)}{Control.show_cursor(True)}"
"""The sequence that restores the screen and the cursor of a terminal."""

DRAW_SECONDS = 0.5
"""How often it is drawn when no key is pressed: numbers that change faster cannot be read."""


class Dashboard:
    """A context in which the terminal shows a run.

    Args:
        watch: The run.
        selection: The part of the traffic that is shown.
        by: What messages are counted by too: `operation`; None for nothing.
    """

    def __init__(self, watch: Watch, selection: Selection, by: str | None = None) -> None:
        self.state = State()
        if by:
            self.state.views, self.state.view = (*VIEWS, OPERATIONS), OPERATIONS.name
        self.pictures = Pictures(watch, selection)
        self.keyboard = Keyboard()
        self._selection = selection
        self._console = Console(
            theme=Theme(STYLES), highlight=False, markup=False, emoji=False, legacy_windows=False,
            no_color=not coloured(True), force_terminal=True,
            _environ=_resizable(),
        )  # fmt: skip
        self._live: Live | None = None
        self._picture: Picture | None = None
        self._screen: Screen | None = None
        self._drawn = 0.0
        self._redraw_due = False
        self._stopping = False
        self._held = ExitStack()

    def __enter__(self) -> Dashboard:
        handlers: dict[int, Any] = {signal.SIGWINCH: self._on_resize}
        if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
            handlers[signal.SIGTSTP] = self._on_stop
        if signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL:
            handlers[signal.SIGQUIT] = self._on_quit
        with ExitStack() as held:
            held.enter_context(self.keyboard)
            held.callback(self._end)
            held.enter_context(handled(handlers))
            self._begin()
            self._held = held.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def over(self) -> bool:
        """True if q was pressed."""
        return self.state.over

    def step(self) -> None:
        """Take what keys were pressed, and draw when it is time."""
        if self._stopping:
            self._stopping = False
            self._stop()
        keys = self.keyboard.pressed()
        for key in keys:
            self.state.press(key, self._screen.rows if self._screen is not None else [])
            self._redraw_due = True
        if self.state.redraw:
            self.state.redraw = False
            self._console.clear()
        if self._redraw_due or time.monotonic() - self._drawn >= DRAW_SECONDS:
            self.draw()

    def draw(self) -> None:
        """Draw the screen."""
        self._redraw_due = False
        self._drawn = time.monotonic()
        if self._picture is None or not self.state.paused:
            self._picture = self.pictures.take(self.state.connection)
        self._screen = Screen(self._picture, self.state, self._selection)
        if self._live is not None:
            self._live.update(self._screen, refresh=True)

    def _begin(self) -> None:
        """Take the terminal."""
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False,
            redirect_stderr=False, vertical_overflow="crop",
        )  # fmt: skip
        self._live.start()
        self.draw()

    def _end(self) -> None:
        """Give the terminal back."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _on_resize(self, *_: object) -> None:
        self._redraw_due = True

    def _on_stop(self, *_: object) -> None:
        self._stopping = True  # not now: something may be half drawn

    def _on_quit(self, *_: object) -> None:
        """Ctrl-\\: end at once, as the signal does by itself, and leave no more than a terminal.

        What is half drawn stays where it is: it may be what hangs.
        """
        if self._live is not None:
            os.write(self._console.file.fileno(), _LEAVE.encode())
        self.keyboard.end()
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGQUIT)

    def _stop(self) -> None:
        """Ctrl-Z: give the terminal back, and take it again when we are woken.

        The signal does what it does by itself, which is nothing where no shell could wake us.
        """
        self._end()
        self.keyboard.end()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._on_stop)
        self.keyboard.begin()
        self._begin()


def _resizable() -> dict[str, str]:
    """The environment without a size: a shell's exported size does not follow the window."""
    return {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
