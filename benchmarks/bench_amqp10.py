"""AMQP 1.0 beside 0-9-1: frames a second, on one core, and what tshark does.

    python benchmarks/bench_amqp10.py [--megabytes 200] [--rounds 5]

Captures of real RabbitMQ traffic of both protocols are repeated with fresh addresses
(`captures.py`: `messages` of 0-9-1, `amqp10` with a connection for every 112 frames, and
`steady10` with 1,000 messages a connection, as `messages` has them). Each command reads all as a
whole process, by turns; the best of the rounds counts, less the time of an empty capture.

Prints frames, messages and megabytes a second: a message takes three frames of 0-9-1 and often one
of 1.0. Exits with 1 where AMQP 1.0 does not reach a third of 0-9-1's frames.
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

BAR = 1 / 3
MIXES = ("messages", "amqp10", "steady10")
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
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    missed = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        empty = folder / "empty.pcap"
        empty.write_bytes(EMPTY)
        size = given.megabytes * 1_000_000
        captures = [make(name, size, folder / f"{name}.pcap") for name in MIXES]
        amounts = [
            (_rows(one, "frames", "size"), _rows(one, "messages", "body_size"), one.stat().st_size)
            for one in captures
        ]
        for name in commands(program, empty, folder):
            listed = [commands(program, one, folder)[name] for one in (empty, *captures)]
            start, *runs = best(listed, given.rounds)
            rates = [
                [amount / max(ran.cpu - start.cpu, 0.01) / 1e6 for amount in of]
                for of, ran in zip(amounts, runs, strict=True)
            ]
            for mix, (frames, messages, octets), ran in zip(MIXES, rates, runs, strict=True):
                ratio = frames / rates[0][0]
                missed += ratio < BAR
                print(
                    f"{name:20} {mix:9} {frames:5.2f} M frames/s  {messages:5.2f} M messages/s  "
                    f"{octets:4.0f} MB/s  {ratio:.2f} of 0-9-1's frames (bar {BAR:.2f})  "
                    f"{ran.megabytes:.0f} MB resident  {'ok' if ratio >= BAR else 'MISSED'}",
                    flush=True,
                )
        if shutil.which("tshark"):
            _tshark(folder)
    return 1 if missed else 0


def _rows(capture: Path, table: str, column: str) -> int:
    """Rows of a table of a capture."""
    batches = amqpsniff.open(capture).batches(table, columns=[column])
    return sum(batch.num_rows for batch in batches)


def _tshark(folder: Path) -> None:
    """Print what tshark does with a few megabytes of each."""
    for name in MIXES[:2]:
        capture = make(name, TSHARK_BYTES, folder / f"few-{name}.pcap")
        fields = ["-e", "frame.number", "-e", "amqp.channel", "-e", "amqp.method.method"]
        command = ["tshark", "-r", str(capture), "-Y", "amqp", "-T", "fields", *fields]
        ran = run(command)
        rate = _rows(capture, "frames", "size") / ran.cpu / 1e6
        print(f"tshark -T fields, {name}: {rate:.3f} M frames/s")


if __name__ == "__main__":
    sys.exit(main())
