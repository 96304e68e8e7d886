"""The ten reports over the tables of an archive: seconds and memory of each, as a whole process.

    python benchmarks/bench_archive_reports.py [--gigabytes 1] [--rounds 2] [--keep DIR]

The captures are the mixes of `captures.py`, a quarter each; one process
makes their tables. Each report is then made from the Parquet files, on all cores. Prints processor
and wall seconds, and memory. Exits with 1 where a report takes more than `BAR` processor seconds a
gigabyte of captures, or `MAX_MB`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from bench_commands import best
from captures import ORDINARY, make
from measure import Run, run

from amqpsniff.analysis.report_tables import REPORTS

BAR = 10.0
"""Processor seconds of a report for each gigabyte of captures, its start included."""

MAX_MB = 1_500

TABLES = "import sys; from amqpsniff.archive import Batch; Batch(sys.argv[1:2], sys.argv[2]).run()"
REPORT = (
    "import sys; from amqpsniff.archive.batch_reports import make_here; "
    "from amqpsniff.archive.filesystem import Folder; "
    "print(make_here(Folder(sys.argv[1]), sys.argv[2], 20).as_text())"
)


def tables_of(octets: int, folder: Path) -> Path:
    """The tables of captures of so many bytes, made unless they are there."""
    captures, tables = folder / "captures", folder / "tables"
    captures.mkdir(exist_ok=True, parents=True)
    for name in ORDINARY:
        make(name, octets // len(ORDINARY), captures / f"{name}.pcap")
    if not (tables / "_manifest.json").exists():
        made = run([sys.executable, "-c", TABLES, str(captures), str(tables)], core=None)
        print(
            f"tables: {made.cpu:.1f} s, wall {made.wall:.1f} s, {made.megabytes:.0f} MB", flush=True
        )
    return tables


def main() -> int:
    """Measure; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for the captures and the tables")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        tables = tables_of(int(given.gigabytes * 1e9), given.keep or Path(made))
        size = sum(one.stat().st_size for one in tables.rglob("*.parquet"))
        print(f"{given.gigabytes:g} GB of captures, {size / 1e6:.0f} MB of tables", flush=True)
        missed = 0
        commands = [[sys.executable, "-c", REPORT, str(tables), name] for name in REPORTS]
        for name, ran in zip(REPORTS, best(commands, given.rounds, core=None), strict=True):
            missed += not show(name, ran, BAR * given.gigabytes)
    return 1 if missed else 0


def show(name: str, ran: Run, bar: float) -> bool:
    """Print the figures of a report; False where it is too slow or too large."""
    good = ran.cpu <= bar and ran.megabytes <= MAX_MB and not ran.status
    print(
        f"  {name:10} {ran.cpu:6.2f} s (bar {bar:g})  wall {ran.wall:6.2f} s  "
        f"{ran.megabytes:5.0f} MB (bar {MAX_MB})  {'ok' if good else 'MISSED'}",
        flush=True,
    )
    return good


if __name__ == "__main__":
    sys.exit(main())
