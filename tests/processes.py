"""Processes and open files as /proc has them; those of a Spark are its Java and its workers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path


def children(process: int, name: str = "") -> list[int]:
    """Processes with that parent whose name holds `name`."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            head, _, rest = (folder / "stat").read_text().rpartition(")")
            if int(rest.split()[1]) == process and name in head:
                found.append(int(folder.name))
    return found


def descriptors(place: Path) -> list[int]:
    """Descriptors of this process of a file, or of files in a folder, also of those unlinked."""
    found = []
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself is gone
            if one.readlink().is_relative_to(place):
                found.append(int(one.name))
    return found


def descendants(process: int) -> Iterator[int]:
    """The process, its children, and theirs."""
    yield process
    for child in children(process):
        yield from descendants(child)


def workers(java: int) -> list[int]:
    """Python workers of a Java: processes that the daemon has forked."""
    daemons = [one for one in children(java) if b"amqpsniff.spark_jobs.workers" in _command(one)]
    return [worker for daemon in daemons for worker in children(daemon)]


def _command(process: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


def told(text: str) -> list[str]:
    """Error messages of a job, also behind an unfinished line that a killed Java left."""
    return re.findall(r"(?<!INFO )amqpsniff: (.+)", text)


def kill(process: int) -> None:
    """Kill a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
