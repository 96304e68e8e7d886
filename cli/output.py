"""Output for people: a terminal, where lines are cut and coloured, or a pipe: neither."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from .render.theme import Paint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .render.grid import Grid
    from .render.styled_text import Words

WIDE = 110
"""Columns from which on lines have room for whole addresses and dates."""

UNCUT = 100_000
"""Columns of a pipe, for what has to be laid out: wider than any line."""


LINES_AT_ONCE = 1_024
"""Lines that are put together before they are written."""


def write_json(value: Any) -> None:
    """Write a value to standard output, laid out to be read."""
    import json

    write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_text(text: str) -> None:
    """Write to standard output what programs read: UTF-8, whatever the locale."""
    from .rows import standard_output

    standard_output().write(text.encode(errors="backslashreplace"))


class Output:
    """Where a command writes its text: a file, standard output by default.

    Attributes:
        terminal: Whether a person watches.
        width: Columns that a line may take; None in a pipe, where nothing is cut.
        paint: Puts colour on words, where colour is wanted.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        self._file = file or sys.stdout
        self.terminal = self._file.isatty()
        self.width = columns(self._file) if self.terminal else None
        self.paint = Paint(coloured(self.terminal))

    @property
    def narrow(self) -> bool:
        """Whether whole addresses and dates would leave too little of a line for the rest."""
        return self.width is not None and self.width < WIDE

    @property
    def room(self) -> int:
        """Columns for what is laid out: those of the terminal, or as many as it takes."""
        return self.width or UNCUT

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines at once, for the next ones may be long in coming, and many one after the
        other: a conversation may have more of them than there is memory.
        """
        left = iter(lines)
        begun = False
        while some := list(islice(left, LINES_AT_ONCE)):
            if begun or some != [""]:
                self._file.write("\n".join(some) + "\n")
                begun = True
        self._file.flush()

    def show(self, *blocks: Grid | Words) -> None:
        """Write texts and tables, without the blanks at the end of their lines."""
        self.lines(line.rstrip() for block in blocks for line in self._laid_out(block))

    def _laid_out(self, block: Grid | Words) -> Iterator[str]:
        room = max(self.room - block.indent, 1)
        return (" " * block.indent + line for line in block.lines(room, self.paint))


def columns(file: IO[str]) -> int:
    """Columns of the terminal that a file is; `shutil` asks that of standard output alone."""
    usual = shutil.get_terminal_size().columns
    if file is sys.stdout or os.environ.get("COLUMNS"):
        return usual
    return os.get_terminal_size(file.fileno()).columns or usual


def coloured(terminal: bool) -> bool:
    """Whether to write colours: see https://no-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    return terminal and os.environ.get("TERM", "") not in ("", "dumb")
