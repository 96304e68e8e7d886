"""Output for people: a terminal, where lines are cut and coloured, or a pipe: neither."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any

from .files import write_text
from .render.text import Paint, Words

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

    from .render.grid import Grid

COLOURS = ("auto", "always", "never")
"""When there are colours: `--color`."""

WIDE = 110
"""Columns from which on lines have room for whole addresses and dates."""

UNCUT = 100_000
"""Columns of a pipe, for what has to be laid out: wider than any line."""


LINES_AT_ONCE = 1_024
"""Lines that are written at once."""


def write_json(value: Any) -> None:
    """Write a value to standard output, laid out to be read."""
    import json

    write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_answer(value: Any, form: str, blocks: Iterable[Grid | Words]) -> None:
    """Write a value as JSON, or the blocks that show it."""
    if form == "json":
        write_json(value)
    else:
        Output().show(*blocks)


@dataclass
class Settings:
    """The settings of a command's text, from its options.

    Attributes:
        color: One of `COLOURS`.
        width: Columns of a line; None for those of the terminal.
        zone: Time zone of what is shown; None for UTC.
        left_out: Columns of tables that had no room so far, in order.
    """

    color: str = COLOURS[0]
    width: int | None = None
    zone: str | None = None
    left_out: dict[str, None] = field(default_factory=dict)


settings = Settings()


@contextmanager
def shown(
    *,
    color: str = COLOURS[0],
    width: int | None = None,
    tz: str | None = None,
    pager: bool = True,
) -> Iterator[None]:
    """A context in which output follows the options of a command."""
    if tz is not None:
        from amqpsniff.analysis.times import time_zone

        time_zone(tz)
    settings.__init__(color, width, tz)  # type: ignore[misc]
    command = _pager() if pager and sys.stdout.isatty() else ""
    before = sys.stdout
    paged = Paged(before, command) if command else None
    if paged is not None:
        sys.stdout = paged
    try:
        yield
        if settings.left_out:
            names = ", ".join(settings.left_out)
            note = f"left out for want of width: {names} (--width N shows them)"
            settings.left_out = {}
            Output().show(Words(note, "key"))
    finally:
        if paged is not None:
            sys.stdout = before
            paged.close()


def _pager() -> str:
    """The command that pages, as git finds it; empty for none."""
    command = os.environ.get("AMQPSNIFF_PAGER", os.environ.get("PAGER"))
    if command is not None:
        return "" if command.strip() == "cat" else command.strip()
    found = os.environ.get("TERM", "") not in ("", "dumb") and shutil.which("less")
    return "less" if found else ""


class Paged:
    """A terminal before which what is longer than its screen goes to a pager.

    Until there is that much, text is held back.
    """

    def __init__(self, file: IO[str], command: str) -> None:
        self._file = file
        self._command = command
        self._held: list[str] = []
        self._screen = shutil.get_terminal_size()
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None
        self._later: list[str] = []
        self.encoding = str(getattr(file, "encoding", "utf-8"))

    def write(self, text: str) -> int:
        """Write to the pager if there is one."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.write(text)
            return len(text)
        self._held.append(text)
        lines = text.split("\n")
        self._lines += len(lines) - 1 + sum(len(line) // self._screen.columns for line in lines)
        if self._lines >= self._screen.lines:
            self._begin()
        return len(text)

    def _begin(self) -> None:
        import shlex
        import subprocess

        try:
            self._process = subprocess.Popen(
                shlex.split(self._command),
                stdin=subprocess.PIPE,
                encoding="utf-8",
                errors="backslashreplace",
                env={"LESS": "FRX", "LV": "-c", **os.environ},
            )
        except (OSError, ValueError):  # no such program
            self._lines = -sys.maxsize
            self._give(self._file)
        else:
            self._give(self._process.stdin)

    def _give(self, file: IO[str] | None) -> None:
        held, self._held = self._held, []
        if file is not None:
            file.write("".join(held))

    def flush(self) -> None:
        """Write the text that the pager has not got yet."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.flush()

    def say(self, text: str) -> bool:
        """Keep a warning until the pager is left; False without one: earlier text is written."""
        if self._process is None:
            self._give(self._file)
            self._file.flush()
            return False
        self._later.append(text)
        return True

    def isatty(self) -> bool:
        """True: it stands for a terminal."""
        return True

    def fileno(self) -> int:
        """The descriptor of the terminal."""
        return self._file.fileno()

    def close(self) -> None:
        """Write the text that was held back, or wait until the pager is left."""
        if self._process is None:
            self._give(self._file)
            return
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        while True:
            try:
                self._process.wait()
                break
            except KeyboardInterrupt:  # which is the pager's
                continue
        for text in self._later:
            sys.stderr.write(text)


class Output:
    """The target of a command's text: a file, standard output by default.

    Attributes:
        terminal: Whether a person watches.
        width: Columns that a line may take; None in a pipe, where nothing is cut.
        paint: Puts colour on words, where colour is wanted.
    """

    def __init__(self, file: IO[str] | None = None) -> None:
        self._file = file or sys.stdout
        self.terminal = self._file.isatty()
        self.width = settings.width or (columns(self._file) if self.terminal else None)
        self.paint = Paint(coloured(self.terminal))

    @property
    def narrow(self) -> bool:
        """True if whole addresses and dates would leave too little of a line for the rest."""
        return self.width is not None and self.width < WIDE

    @property
    def room(self) -> int:
        """Columns for tables: those of the terminal, or any number."""
        return self.width or UNCUT

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines one by one at once: the next may take long, or there may be very many."""
        remaining = iter(lines)
        begun = False
        while batch := list(islice(remaining, LINES_AT_ONCE)):
            if begun or batch != [""]:
                self._file.write("\n".join(batch) + "\n")
                begun = True
        self._file.flush()

    def show(self, *blocks: Grid | Words) -> None:
        """Write texts and tables."""
        self.lines(chain.from_iterable(map(self._laid_out, blocks)))

    def _laid_out(self, block: Grid | Words) -> Iterator[str]:
        room = max(self.room - block.indent, 1)
        if self._file is sys.stdout:  # elsewhere there may be rows for programs on it
            settings.left_out.update(dict.fromkeys(block.left_out(room)))
        lines, blanks = block.lines(room, self.paint), " " * block.indent
        return (line and blanks + line for line in lines) if blanks else lines


def columns(file: IO[str]) -> int:
    """Columns of the terminal that a file is; `shutil` asks that of standard output alone."""
    usual = shutil.get_terminal_size().columns
    if file is sys.stdout or isinstance(file, Paged) or os.environ.get("COLUMNS"):
        return usual
    return os.get_terminal_size(file.fileno()).columns or usual


def coloured(terminal: bool) -> bool:
    """True if there are colours: see https://no-color.org and https://bixense.com/clicolors."""
    if settings.color != "auto":
        return settings.color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(
        os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")
    ):
        return True
    if os.environ.get("CLICOLOR") == "0":
        return False
    return terminal and os.environ.get("TERM", "") not in ("", "dumb")
