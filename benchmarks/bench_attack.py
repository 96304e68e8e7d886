"""The cost of hostile traffic: seconds per megabyte against those of ordinary traffic.

    python benchmarks/bench_attack.py [--megabytes 10] [--attack WORD] [--command WORD] [--keep DIR]

Each command reads an empty capture, the ordinary ones (`ORDINARY`, and one connection that goes on)
and one of each attack (`attacks.py`), as a whole process on one core. What the empty one takes,
which is the start of the program, is taken from the others: the rest, by megabyte of the capture,
is the cost. Prints processor seconds per megabyte, the ratio to the costliest ordinary capture of
the same command and to `mixed`, and the peak of the memory. Exits with 1 where the first ratio is
above `MAX_TIMES` or a peak above `MAX_MB`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from attacks import ATTACKS, make_attack
from captures import ORDINARY, make
from measure import run
from talk import Talk, turns_of, write

from amqpsniff.packs import COLUMNS
from amqpsniff.tables.schema import TABLES

MAX_TIMES = 10.0
MAX_MB = 400
MAX_SECONDS = 30
"""Processor seconds after which a run is ended; its figures are then what it took until then."""

MIN_CPU_SECONDS = 0.1
"""Processor seconds above those of the start that are not told from chance."""

ORDINARY_MEGABYTES = 20
MANY_OPEN = {"connections open": 61, "channels closed in many words": 67}
"""Attacks whose size, in megabytes, makes them take the most memory: 65,536 connections that are
open at once, more than are followed, and 131,000 channels."""

USAGE = 2
"""The exit status of a command that is refused."""

EMPTY = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
CAPTURE = "CAPTURE"

COMMANDS = {
    "summary": ("summary", CAPTURE),
    "inspect": ("inspect", CAPTURE),
    "messages": ("messages", CAPTURE),
    "connections": ("connections", CAPTURE),
    "channels": ("channels", CAPTURE),
    "topology": ("topology", CAPTURE),
    "trace": ("trace", CAPTURE, "--where", "body_size >= 0"),
    "follow": ("follow", CAPTURE, "--connection", "10.0.0.3:40001"),
    "diagnose": ("diagnose", CAPTURE),
    "report": ("report", CAPTURE, "-o", os.devnull),
    "sanitize": ("sanitize", CAPTURE, "-o", os.devnull),
    **{
        f"export {table}": ("export", CAPTURE, "-t", table, "--format", "parquet")
        for table in TABLES
    },
    "packs": (
        *("export", CAPTURE, "-t", "messages", "--format", "ndjson", "-o", os.devnull),
        *("--columns", ",".join([*TABLES["messages"].names, *COLUMNS])),
    ),
}
"""By what they are called here."""


def command(program: str, name: str, capture: Path) -> list[str]:
    """A command that reads a capture."""
    named = [str(capture) if word == CAPTURE else word for word in COMMANDS[name]]
    return [program, *named, "-q"]


def megabytes(path: Path) -> float:
    """The size of a file."""
    return path.stat().st_size / 1e6


def main() -> int:
    """Measure; 1 where an attack costs too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=10)
    parser.add_argument("--attack", default="", help="only attacks with this word in their name")
    parser.add_argument("--command", default="", help="only commands with this word in their name")
    parser.add_argument("--keep", type=Path, help="folder for the captures")
    given = parser.parse_args()
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    missed = 0
    with tempfile.TemporaryDirectory() as made:
        folder = given.keep or Path(made)
        folder.mkdir(exist_ok=True)
        empty = folder / "empty.pcap"
        empty.write_bytes(EMPTY)
        size = ORDINARY_MEGABYTES * 1_000_000
        ordinary = {name: make(name, size, folder / f"{name}.pcap") for name in ORDINARY}
        ordinary["one"] = write(folder / "one.pcap", turns_of([Talk(1)], 100), size)
        chosen = [name for name in ATTACKS if given.attack in name]
        attacks = [(name, given.megabytes) for name in chosen]
        attacks += [(name, size) for name, size in MANY_OPEN.items() if name in chosen]
        for name in (name for name in COMMANDS if given.command in name):
            start = run(command(program, name, empty)).cpu
            costs = [
                max(run(command(program, name, path)).cpu - start, 0.01) / megabytes(path)
                for path in ordinary.values()
            ]
            told = ", ".join(f"{one} {cost:.3f}" for one, cost in zip(ordinary, costs, strict=True))
            print(f"{name}: {start:.2f} s of a start; s/MB of ordinary traffic: {told}", flush=True)
            for attack, size in attacks:
                path = folder / f"{attack.replace(',', '').replace(' ', '-')}-{size}.pcap"
                capture = make_attack(attack, size * 1_000_000, path)
                ran = run(command(program, name, capture), most_seconds=MAX_SECONDS)
                spent = ran.cpu - start
                each = spent / megabytes(capture)
                times = each / max(costs)
                good = spent < MIN_CPU_SECONDS or times <= MAX_TIMES
                refused = ran.status == USAGE and name == "follow"  # many have the same ends
                good = good and ran.megabytes <= MAX_MB and (ran.status in (0, 1) or refused)
                missed += not good
                print(
                    f"  {name:20} {attack:32} {each:7.3f} s/MB  {times:6.1f} x, of mixed "
                    f"{each / costs[0]:6.1f} x  {ran.megabytes:4.0f} MB  "
                    f"{'ok' if good else 'MISSED'}",
                    flush=True,
                )
                if not given.keep:
                    path.unlink()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
