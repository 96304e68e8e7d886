"""The cost of hostile traffic: seconds per megabyte against those of ordinary traffic.

    python benchmarks/bench_attack.py [--megabytes 10] [--attack WORD] [--command WORD] [--keep DIR]

Each command reads an empty capture, an ordinary one (the mix `mixed` of `captures.py`) and one of
each attack (`attacks.py`), as a whole process on one core. What the empty one takes, which is the
start of the program, is taken from the others: the rest, by megabyte of the capture, is the cost.
Prints processor seconds per megabyte, the ratio to ordinary traffic of the same command, and the
peak of the memory. Exits with 1 where a ratio is above `MAX_TIMES` or a peak above `MAX_MB`.
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
from captures import make
from measure import run

from amqpsniff.tables.schema import TABLES

MAX_TIMES = 10.0
MAX_MB = 400
MAX_SECONDS = 30
"""Processor seconds after which a run is ended; its figures are then what it took until then."""

MIN_CPU_SECONDS = 0.1
"""Processor seconds above those of the start that are not told from chance."""

ORDINARY_MEGABYTES = 20
EMPTY = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
CAPTURE = "CAPTURE"

COMMANDS = {
    "summary": ("summary", CAPTURE),
    "inspect": ("inspect", CAPTURE),
    "messages": ("messages", CAPTURE),
    "connections": ("connections", CAPTURE),
    "channels": ("channels", CAPTURE),
    "topology": ("topology", CAPTURE),
    "trace": ("trace", CAPTURE, "--routing-key", "k"),
    "follow": ("follow", CAPTURE, "--connection", ":40001"),
    "diagnose": ("diagnose", CAPTURE),
    "report": ("report", CAPTURE, "-o", os.devnull),
    "sanitize": ("sanitize", CAPTURE, "-o", os.devnull),
    **{
        f"export {table}": ("export", CAPTURE, "-t", table, "--format", "parquet")
        for table in TABLES
    },
}
"""By what they are called here."""


def command(program: str, name: str, capture: Path) -> list[str]:
    """A command that reads a capture."""
    named = [str(capture) if word == CAPTURE else word for word in COMMANDS[name]]
    return [program, *named, "-q"]


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
        ordinary = make("mixed", ORDINARY_MEGABYTES * 1_000_000, folder / "ordinary.pcap")
        chosen = [name for name in ATTACKS if given.attack in name]
        for name in (name for name in COMMANDS if given.command in name):
            start = run(command(program, name, empty))
            usual = run(command(program, name, ordinary))
            cost = max(usual.cpu - start.cpu, 0.01) / (ordinary.stat().st_size / 1e6)
            print(
                f"{name}: {start.cpu:.2f} s of a start, ordinary traffic {cost:.3f} s/MB, "
                f"{usual.megabytes:.0f} MB",
                flush=True,
            )
            for attack in chosen:
                path = folder / f"{attack.replace(',', '').replace(' ', '-')}.pcap"
                capture = make_attack(attack, given.megabytes * 1_000_000, path)
                ran = run(command(program, name, capture), most_seconds=MAX_SECONDS)
                spent = ran.cpu - start.cpu
                each = spent / (capture.stat().st_size / 1e6)
                good = spent < MIN_CPU_SECONDS or each / cost <= MAX_TIMES
                good = good and ran.megabytes <= MAX_MB and ran.status >= 0
                missed += not good
                print(
                    f"  {name:20} {attack:32} {each:7.3f} s/MB  {each / cost:6.1f} x  "
                    f"{ran.megabytes:4.0f} MB  {'ok' if good else 'MISSED'}",
                    flush=True,
                )
                if not given.keep:
                    path.unlink()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
