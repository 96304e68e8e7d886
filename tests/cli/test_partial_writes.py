"""Output that the system takes in parts: Python loses the rest where it does not buffer."""

from __future__ import annotations

import fcntl
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.cli.running import PROGRAM, environment, run
from tests.conftest import SAMPLES
from tests.waiting import PATIENCE, wait_for

LONG = "node.pcap"
"""A sample of which commands write more than a pipe holds."""


@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [
        ("export -t frames --format ndjson", ""),
        ("export -t frames --format csv", "1"),
        ("inspect", ""),
        ("inspect", "1"),
    ],
)
def test_stopped_and_continued(arguments: str, unbuffered: str) -> None:
    """Who stops a program (Ctrl-Z) while it waits for its reader has it write part of something."""
    command, *options = arguments.split()
    with subprocess.Popen(
        (*PROGRAM, command, LONG, *options), stdout=subprocess.PIPE, cwd=SAMPLES,
        env=environment(PYTHONUNBUFFERED=unbuffered),
    ) as running:  # fmt: skip
        assert running.stdout is not None
        pipe = running.stdout.fileno()
        wait_for(lambda: _full(pipe, running.pid))
        running.send_signal(signal.SIGSTOP)
        wait_for(lambda: _state(running.pid) == "T")
        running.send_signal(signal.SIGCONT)
        wait_for(lambda: _state(running.pid) != "T")
        out = running.stdout.read()
        assert running.wait(PATIENCE) == 0
    assert out.decode() == run(command, LONG, *options).out


def _full(pipe: int, writer: int) -> bool:
    """Whether a process waits for somebody to read a pipe."""
    (before,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    time.sleep(0.02)
    (after,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    room = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    return bool(before == after > room / 2 and _state(writer) == "S")


def _state(process: int) -> str:
    """What a process does, in the system's one letter: `S` it waits, `T` it is stopped."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
