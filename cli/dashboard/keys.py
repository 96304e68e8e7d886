"""Keys as they are pressed: a terminal that gives them one by one, and what their bytes mean."""

from __future__ import annotations

import os
import sys
import termios
import tty
from typing import Any

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

    `descriptor` is null where there is none: then nobody presses anything.
    """

    def __init__(self) -> None:
        self.descriptor: int | None = None
        self._opened = False
        self._before: Any = None

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
        self._before = termios.tcgetattr(self.descriptor)
        tty.setcbreak(self.descriptor, termios.TCSANOW)

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self._before is not None and self.descriptor is not None:
            termios.tcsetattr(self.descriptor, termios.TCSANOW, self._before)
            self._before = None

    def pressed(self) -> list[str]:
        """The keys that were pressed since the last call: characters, and names of the others."""
        if self.descriptor is None:
            return []
        from amqpsniff.capture.poll import readable

        octets = b""
        while readable(self.descriptor):
            try:
                more = os.read(self.descriptor, 1024)
            except OSError:  # the terminal is gone
                more = b""
            if not more:
                self.descriptor = None
                break
            octets += more
        text = octets.decode(errors="ignore")
        return parse(text)


def parse(text: str) -> list[str]:
    """Keys of the characters that a terminal sent; sequences that are not known are left out."""
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
