"""The cost of the commands that people run first: processor time against that of `summary`.

    python benchmarks/bench_commands.py [--megabytes 60] [--rounds 3] [--keep DIR]

Each command reads the mixes of `captures.py` as a whole process on one core, by turns; the best of
the rounds counts. Prints processor seconds, and their ratio to `summary` of the
same capture. `diagnose` also reads attacks with very many connections (`attacks.py`), whose seconds
per megabyte are compared with those of ordinary traffic as `bench_attack.py` does, and its memory
is measured with 65,536 connections open. Exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from attacks import make_attack
from bench_attack import EMPTY, MAX_MB, MAX_TIMES, ORDINARY_MEGABYTES, command
from captures import make
from measure import Run, run

MIXES = ("mixed", "messages", "connections", "acks")
BARS = {"topology": 1.5, "diagnose": 2.5, "report": 4.0}
"""Bars: multiples of the time of `summary`, by command."""

ATTACKS = ("connections closed", "connections open", "findings, connections")
ATTACK_MEGABYTES = 10
OPEN_MEGABYTES = 61
"""A capture of `connections open` of this size has 65,536 of them."""


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


def compare_attacks(program: str, folder: Path, rounds: int) -> int:
    """Measure `diagnose` of very many connections; how many bars were missed."""
    empty = folder / "empty.pcap"
    empty.write_bytes(EMPTY)
    ordinary = make("mixed", ORDINARY_MEGABYTES * 1_000_000, folder / "ordinary.pcap")
    paths = [folder / f"{name.replace(',', '').replace(' ', '-')}.pcap" for name in ATTACKS]
    captures = [
        make_attack(name, ATTACK_MEGABYTES * 1_000_000, path)
        for name, path in zip(ATTACKS, paths, strict=True)
    ]
    commands = [command(program, "diagnose", one) for one in (empty, ordinary, *captures)]
    start, usual, *runs = best(commands, rounds)
    cost = (usual.cpu - start.cpu) / (ordinary.stat().st_size / 1e6)
    print(f"diagnose: ordinary traffic {cost:.3f} s/MB", flush=True)
    missed = 0
    for name, capture, ran in zip(ATTACKS, captures, runs, strict=True):
        each = (ran.cpu - start.cpu) / (capture.stat().st_size / 1e6)
        good = each <= MAX_TIMES * cost and not ran.status
        missed += not good
        print(
            f"  {name:24} {each:6.3f} s/MB  {each / cost:5.1f} x (bar {MAX_TIMES:.0f})  "
            f"{'ok' if good else 'MISSED'}",
            flush=True,
        )
    many = make_attack("connections open", OPEN_MEGABYTES * 1_000_000, folder / "open.pcap")
    ran = run(command(program, "diagnose", many))
    good = ran.megabytes <= MAX_MB and not ran.status
    print(
        f"  65,536 connections open  {ran.megabytes:4.0f} MB (bar {MAX_MB})  "
        f"{'ok' if good else 'MISSED'}",
        flush=True,
    )
    return missed + (not good)


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
        captures = [make(name, octets, folder / f"{name}.pcap") for name in MIXES]
        missed = compare_commands(program, captures, given.rounds)
        missed += compare_attacks(program, folder, given.rounds)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
