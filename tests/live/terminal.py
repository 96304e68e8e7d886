"""A program on a pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import PROGRAM, environment

SECONDS = 20


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
        """Make the terminal the one of a new session."""
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal larger or smaller."""
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._follower, termios.TIOCSWINSZ, size)
        self.screen.resize(lines, columns)

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self.leader, keys.encode())

    def read(self, seconds: float = 0.05) -> None:
        """Show what was written meanwhile."""
        while select.select([self.leader], [], [], seconds)[0]:
            try:
                octets = os.read(self.leader, 65536)
            except OSError:
                return
            if not octets:
                return
            self.written += octets
            self._stream.feed(octets)

    @property
    def text(self) -> str:
        """The screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, words: str) -> str:
        """Wait until the screen has these words; gives it."""
        end = time.monotonic() + SECONDS
        while words not in self.text:
            assert time.monotonic() < end, f"no {words!r} on the screen:\n{self.text}"
            assert self.running.poll() is None or select.select([self.leader], [], [], 0)[0], (
                f"it ended:\n{self.text}"
            )
            self.read()
        return self.text

    def end(self) -> int:
        """Wait for the end, reading what is written; the exit code."""
        end = time.monotonic() + SECONDS
        while self.running.poll() is None and time.monotonic() < end:
            self.read()
        if self.running.poll() is None:
            self.running.send_signal(signal.SIGKILL)
        self.read(0.2)
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
