"""Jobs of many processes, measured from outside: seconds of the clock and of processors, memory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")

LOOK_SECONDS = 0.1
"""Time between two looks at the processes, each of which takes some 3 ms of a processor."""


class Cost(NamedTuple):
    """Seconds of the whole, of the job without the start of what it runs on; of processors for
    both; megabytes that the largest Python process held at most, but for the first (the driver of a
    Spark) where there are others, and those of the first; what the job said.
    """

    wall: float
    job: float
    cpu: float
    job_cpu: float
    megabytes: float
    first_megabytes: float
    facts: list[dict[str, object]]


class Watch(threading.Thread):
    """Adds up what the processes of a session use, for as long as they are there."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._cpu: dict[int, float] = {}
        self._held: dict[int, float] = {}
        self.over = threading.Event()

    @property
    def cpu(self) -> float:
        """Processor seconds so far."""
        return sum(self._cpu.values())

    @property
    def megabytes(self) -> tuple[float, float]:
        """What Python processes held at most: the largest but the first, and the first."""
        first = self._held.get(self._session, 0.0)
        others = [held for process, held in self._held.items() if process != self._session]
        return max(others, default=first), first

    def run(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            self.look()

    def look(self) -> None:
        """Read the state of every process."""
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError):
                name, _, rest = (folder / "stat").read_text().rpartition(")")
                fields = rest.split()
                if int(fields[3]) != self._session:
                    continue
                self._cpu[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICKS
                if "python" in name:
                    held = max(self._held.get(int(folder.name), 0.0), _most_resident(folder))
                    self._held[int(folder.name)] = held


def _most_resident(folder: Path) -> float:
    for line in (folder / "status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def measure(command: list[str], core: int | None = None) -> Cost:
    """Run a command in a session of its own, on one core unless that is None.

    It says facts, a JSON object a line; the job begins with one whose stage is `files` and ends
    with `summary`.
    """
    begin = time.perf_counter()
    pin = [] if core is None else ["taskset", "-c", str(core)]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*pin, *command], stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True
        )
        watch = Watch(process.pid)
        watch.start()
        first, end = (begin, 0.0), None
        facts = []
        for fact in _facts(process):
            facts.append(fact)
            watch.look()
            if first[0] == begin and fact.get("stage") == "files":
                first = time.perf_counter(), watch.cpu
            if "summary" in fact and end is None:
                end = time.perf_counter(), watch.cpu
        status = process.wait()
        watch.over.set()
        watch.join()
        if status:
            said.seek(0)
            raise SystemExit(f"a run ended with {status}: {said.read()[-2000:]}")
    whole = time.perf_counter(), watch.cpu
    job, job_cpu = ((end or whole)[at] - first[at] for at in range(2))
    return Cost(whole[0] - begin, job, watch.cpu, job_cpu, *watch.megabytes, facts)


def _facts(process: subprocess.Popen[str]) -> Iterator[dict[str, object]]:
    assert process.stdout is not None
    for line in process.stdout:
        with contextlib.suppress(ValueError):
            yield json.loads(line)
