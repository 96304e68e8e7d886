"""Whole processes, measured from outside: wall and CPU seconds, and the most memory they held."""

from __future__ import annotations

import os
import resource
import subprocess
import time
from typing import NamedTuple

ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""What programs are run in: Python may keep the bytecode of what it imports, as an installation
does, and need not compile it in each run."""


OURS = 3
"""Runs of ours in a round, which take a twentieth of tshark's one."""


class Run(NamedTuple):
    """One finished process: seconds, CPU seconds, megabytes resident at most, exit status."""

    wall: float
    cpu: float
    megabytes: float
    status: int


def run(command: list[str], core: int | None = 0, most_seconds: int | None = None) -> Run:
    """Run a command with its output thrown away, on one core unless `core` is None.

    One that takes more than `most_seconds` of a processor is ended: its status is negative.
    """

    def pin() -> None:
        if most_seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds))
        if core is not None:
            os.sched_setaffinity(0, {core})

    begin = time.perf_counter()
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=pin,
        env=ENVIRONMENT,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - begin
    cpu, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6
    return Run(wall, cpu, megabytes, process.returncode)


def median(values: list[float]) -> float:
    """The middle value."""
    return sorted(values)[len(values) // 2]


def contest(
    name: str,
    bar: float,
    ours: list[str],
    theirs: list[str],
    rounds: int,
    megabytes: int,
    octets: int,
) -> bool:
    """Measure ours against tshark on a capture of so many `octets`, print the ratio and our speed,
    and say whether the bars of ratio and memory are cleared."""
    mine, others = compare(ours, theirs, rounds)
    if any(run.status for run in (*mine, *others)):
        print(f"{name}: failed with {[run.status for run in (*mine, *others)]}")
        return False
    wall, other = median([r.wall for r in mine]), median([r.wall for r in others])
    spent = median([r.cpu for r in others]) / median([r.cpu for r in mine])
    memory = max(run.megabytes for run in mine)
    good = other / wall >= bar and memory < megabytes
    print(
        f"{name:20} {wall:7.2f} s  {octets / 1e6 / wall:4.0f} MB/s  "
        f"tshark {other:8.2f} s  ratio {other / wall:6.1f}, of CPU seconds {spent:6.1f} "
        f"(bar {bar:.0f})  {memory:4.0f} MB (bar {megabytes})  {'ok' if good else 'MISSED'}",
        flush=True,
    )
    return good


def compare(ours: list[str], theirs: list[str], rounds: int) -> tuple[list[Run], list[Run]]:
    """Both commands in turn, ours after a run that does not count, and `OURS` times in each round.

    The first run after tshark's, which holds gigabytes, pays for memory that the system has to give
    out anew: up to a tenth of a second on a virtual machine.
    """
    mine: list[Run] = []
    others: list[Run] = []
    for _ in range(rounds):
        run(ours)
        mine += [run(ours) for _ in range(OURS)]
        others.append(run(theirs))
    return mine, others
