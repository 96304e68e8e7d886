"""AMQP 1.0 beside 0-9-1: frames a second, on one core, and what tshark does.

    python benchmarks/bench_amqp10.py [--megabytes 60] [--rounds 3]

Captures of real RabbitMQ traffic of both protocols are repeated with fresh addresses
(`captures.py`: `amqp10`, and `messages` of 0-9-1). Each command reads both as a whole process, by
turns; the best of the rounds counts, less the time of an empty capture. Prints frames a second and
their ratio; exits with 1 where AMQP 1.0 does not reach two thirds of 0-9-1.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bench_attack import EMPTY
from bench_commands import best
from captures import make
from measure import run

import amqpsniff

BAR = 2 / 3
MIXES = ("messages", "amqp10")
TSHARK_BYTES = 6_000_000
"""Bytes of a capture that tshark is given: it takes a minute for a hundred times as many."""


def commands(program: str, capture: Path, folder: Path) -> dict[str, list[str]]:
    """What is measured, by name."""
    export = [program, "export", str(capture), "-q", "--table"]
    return {
        "frames to Parquet": [*export, "frames", "-o", str(folder / "frames.parquet")],
        "messages to Parquet": [*export, "messages", "-o", str(folder / "messages.parquet")],
        "summary": [program, "summary", str(capture), "-q"],
        "diagnose": [program, "diagnose", str(capture), "-q"],
    }


def main() -> int:
    """Measure; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    missed = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        empty = folder / "empty.pcap"
        empty.write_bytes(EMPTY)
        octets = given.megabytes * 1_000_000
        captures = [make(name, octets, folder / f"{name}.pcap") for name in MIXES]
        frames = [_frames(capture) for capture in captures]
        for name in commands(program, empty, folder):
            listed = [commands(program, one, folder)[name] for one in (empty, *captures)]
            start, *runs = best(listed, given.rounds)
            rates = [
                number / max(ran.cpu - start.cpu, 0.01)
                for number, ran in zip(frames, runs, strict=True)
            ]
            good = rates[1] >= BAR * rates[0]
            missed += not good
            print(
                f"{name:20} 0-9-1 {rates[0] / 1e6:5.2f} M frames/s  1.0 {rates[1] / 1e6:5.2f} M "
                f"frames/s  {rates[1] / rates[0]:.2f} (bar {BAR:.2f})  "
                f"{runs[1].megabytes:.0f} MB  {'ok' if good else 'MISSED'}",
                flush=True,
            )
        if shutil.which("tshark"):
            _tshark(folder)
    return 1 if missed else 0


def _frames(capture: Path) -> int:
    return sum(
        batch.num_rows for batch in amqpsniff.open(capture).batches("frames", columns=["size"])
    )


def _tshark(folder: Path) -> None:
    """Print what tshark does with a few megabytes of each."""
    for name in MIXES:
        capture = make(name, TSHARK_BYTES, folder / f"few-{name}.pcap")
        fields = ["-e", "frame.number", "-e", "amqp.channel", "-e", "amqp.method.method"]
        command = ["tshark", "-r", str(capture), "-Y", "amqp", "-T", "fields", *fields]
        ran = run(command)
        print(f"tshark -T fields, {name}: {_frames(capture) / ran.cpu / 1e6:.3f} M frames/s")


if __name__ == "__main__":
    sys.exit(main())
