"""The dashboard on a terminal: drawn calmly, steered by keys, gone without a trace at the end."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.theme import Theme

from ..output import coloured
from ..render.text import STYLES
from .keys import Keyboard
from .screen import Screen
from .snapshot import Picture, Pictures
from .state import State
from .views import OPERATIONS, VIEWS, by_name

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Selection
    from amqpsniff.live.figures import Figures
    from amqpsniff.live.watch import Watch

_LEAVE = f"{Control.alt_screen(False)}{Control.show_cursor(True)}"
"""What gives a terminal back its screen and its cursor."""

DRAW_SECONDS = 0.5
"""How often it is drawn when no key is pressed: numbers that change faster cannot be read."""


class Dashboard:
    """A context in which the terminal shows a run.

    Args:
        watch: The run.
        figures: Its figures.
        selection: The part of the traffic that is shown.
        by: What messages are counted by too: `operation`; None for nothing.
    """

    def __init__(
        self, watch: Watch, figures: Figures, selection: Selection, by: str | None = None
    ) -> None:
        self.state = State()
        if by:
            self.state.views, self.state.view = (*VIEWS, OPERATIONS), OPERATIONS.name
        self.pictures = Pictures(watch, figures, by_name(selection))
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
        self._due = False
        self._stopping = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Dashboard:
        self.keyboard.__enter__()
        try:
            if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
                self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._on_stop)
            if signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL:
                self._before[signal.SIGQUIT] = signal.signal(signal.SIGQUIT, self._on_quit)
            self._before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._on_resize)
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        try:
            self._end()
        finally:
            self.keyboard.__exit__()

    @property
    def over(self) -> bool:
        """True if somebody pressed q."""
        return self.state.over

    def step(self) -> None:
        """Take what keys were pressed, and draw when it is time."""
        if self._stopping:
            self._stopping = False
            self._stop()
        keys = self.keyboard.pressed()
        for key in keys:
            self.state.press(key, self._screen.rows if self._screen is not None else [])
            self._due = True
        if self.state.redraw:
            self.state.redraw = False
            self._console.clear()
        if self._due or time.monotonic() - self._drawn >= DRAW_SECONDS:
            self.draw()

    def draw(self) -> None:
        """Draw the screen."""
        self._due = False
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
        self._due = True

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
    """The environment without a size: what a shell has exported stays when the window changes."""
    return {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
