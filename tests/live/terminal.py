"""A program on a pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PROGRAM, environment
from tests.waiting import PATIENCE

BEGIN = b"\x1b[H"
"""What every drawing begins with."""


class Terminal:
    """`amqpsniff live` with these arguments on a terminal of this size; or what `program` says."""

    def __init__(
        self,
        *arguments: str | Path,
        columns: int = 80,
        lines: int = 24,
        program: tuple[str, ...] = PROGRAM,
    ) -> None:
        pyte = pytest.importorskip("pyte", reason="pyte is not installed")
        self.leader, self._follower = pty.openpty()
        self.before = termios.tcgetattr(self._follower)
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.resize(columns, lines)
        self.running: subprocess.Popen[Any] = subprocess.Popen(
            (*program, "live", *map(str, arguments)), stdin=self._follower, stdout=self._follower,
            stderr=self._follower, env=environment(), preexec_fn=self._own,  # noqa: PLW1509
        )  # fmt: skip

    def _own(self) -> None:
        """Make the terminal the one of a new session, and leave nothing of what ends badly."""
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal larger or smaller."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._follower, termios.TIOCSWINSZ, size)
        self.screen.resize(lines, columns)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self.leader, keys.encode())

    def read(self) -> int:
        """Show what was written, some of it or what comes in a moment; the number of bytes."""
        if not select.select([self.leader], [], [], 0.05)[0]:
            return 0
        octets = os.read(self.leader, 65536)
        self.written += octets
        self._stream.feed(octets)
        return len(octets)

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, words: str) -> str:
        """Wait until the screen has these words; gives it."""
        self.until(lambda: words in self.text, f"no {words!r} on the screen")
        return self.text

    def until(self, holds: Callable[[], object], what: str = "it never was so") -> None:
        """Wait until something holds, reading what is written."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"{what}:\n{self.text}"
            over = self.running.poll() is not None
            if not self.read() and over:
                assert holds(), f"{what}, and it ended:\n{self.text}"

    def drawn(self, times: int) -> None:
        """Wait until it was drawn so often from now on; what was begun before is there then."""
        until = self.written.count(BEGIN) + times
        self.until(lambda: self.written.count(BEGIN) >= until)

    def end(self) -> int:
        """Wait for the end, reading what is written; the exit code."""
        self.until(lambda: self.running.poll() is not None)
        while self.read():
            pass
        return self.running.wait()

    def restored(self) -> bool:
        """Whether the terminal is as it was: modes, cursor, and the screen that was before."""
        modes = termios.tcgetattr(self._follower) == self.before
        left = self.written.rfind(b"\x1b[?1049l") > self.written.rfind(b"\x1b[?1049h")
        shown = self.written.rfind(b"\x1b[?25h") > self.written.rfind(b"\x1b[?25l")
        return modes and left and shown

    def close(self) -> None:
        """Let go of it."""
        if self.running.poll() is None:
            self.running.kill()
            self.running.wait()
        os.close(self.leader)
        os.close(self._follower)
