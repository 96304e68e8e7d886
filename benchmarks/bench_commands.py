"""The cost of the commands that people run first: processor time against that of `summary`.

    python benchmarks/bench_commands.py [--megabytes 60] [--rounds 3] [--keep DIR]

Each command reads the ordinary captures of `captures.py` as a whole process on one core, by turns;
the best of the rounds counts. Prints processor seconds, and their ratio to `summary` of the same
capture. Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bench_attack import command
from captures import ORDINARY, make
from measure import Run, run

BARS = {"topology": 1.5, "diagnose": 2.5, "report": 4.0}
"""Bars: multiples of the time of `summary`, by command."""


def best(commands: list[list[str]], rounds: int, core: int | None = 0) -> list[Run]:
    """The quickest run of each command, run by turns."""
    turns = [[run(one, core) for one in commands] for _ in range(rounds)]
    return [
        min(runs, key=lambda one: (one.status != 0, one.cpu)) for runs in zip(*turns, strict=True)
    ]


def compare_commands(program: str, captures: list[Path], rounds: int) -> int:
    """Measure each command against `summary`; how many bars were missed."""
    missed = 0
    for capture in captures:
        names = ("summary", *BARS)
        runs = best([command(program, name, capture) for name in names], rounds)
        base = runs[0]
        print(f"{capture.stem}: summary {base.cpu:.2f} s, {base.megabytes:.0f} MB", flush=True)
        for (name, bar), ran in zip(BARS.items(), runs[1:], strict=True):
            good = ran.cpu <= bar * base.cpu and not ran.status
            missed += not good
            print(
                f"  {name:10} {ran.cpu:6.2f} s  {ran.cpu / base.cpu:5.1f} x (bar {bar})  "
                f"{ran.megabytes:4.0f} MB  {'ok' if good else 'MISSED'}",
                flush=True,
            )
    return missed


def main() -> int:
    """Measure; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="folder for the captures")
    given = parser.parse_args()
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or Path(made)
        folder.mkdir(exist_ok=True)
        octets = given.megabytes * 1_000_000
        captures = [make(name, octets, folder / f"{name}.pcap") for name in ORDINARY]
        missed = compare_commands(program, captures, given.rounds)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
