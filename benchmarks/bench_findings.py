"""What findings cost a batch: processor seconds without them and with them, in turns.

    python benchmarks/bench_findings.py --megabytes 500 --lives 0 50

Archives are those of `bench_archive.py`. Tasks run in two processes of this machine, forked as
Spark's workers are, so that neither figure has the start of Spark. Medians are printed, of the
driver and its tasks together.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_archive import make_archive

ROWS = "frames,messages,connections,channels"

BATCH = """
import resource, sys
from multiprocessing import get_context
from amqpsniff.spark_jobs import workers

workers.prepare()

from amqpsniff.archive import Batch

def used():
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)

def run(function, items, watch):
    with get_context("fork").Pool(2) as pool:
        made = pool.map(function, items, 1)
        pool.close()
        pool.join()
    return made

begin = used()
Batch(sys.argv[3:], sys.argv[1], tables=sys.argv[2].split(",")).run(run, cores=2)
print(used() - begin)
"""


def seconds(captures: Path, output: Path, tables: str) -> float:
    """Processor seconds of a batch."""
    command = [sys.executable, "-c", BATCH, str(output), tables, str(captures)]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(output)
    return float(made.stdout)


def main() -> None:
    """Make the archives and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--megabytes", type=int, default=500)
    add("--files", type=int, default=10)
    add("--connections", type=int, default=200, help="at a time")
    add("--lives", type=int, nargs="+", default=[0, 50], help="messages of a connection; 0: no end")
    add("--turns", type=int, default=5)
    given = parser.parse_args()
    for lives in given.lives:
        with tempfile.TemporaryDirectory() as scratch:
            captures, output = Path(scratch) / "captures", Path(scratch) / "tables"
            octets = given.megabytes * 1_000_000
            make_archive(captures, octets, given.files, given.connections, 0, lives)
            wanted = (ROWS, f"{ROWS},findings")
            turns = [
                [seconds(captures, output, tables) for tables in wanted] for _ in range(given.turns)
            ]
            rows, findings = map(statistics.median, zip(*turns, strict=True))
            print(f"lives {lives}: {rows:.2f} s, {findings:.2f} s, {findings / rows:.2f}")


if __name__ == "__main__":
    main()
