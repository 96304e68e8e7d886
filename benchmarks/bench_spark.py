"""What Spark costs and brings: an archive decoded by one process, on one core of Spark and on two.

Every run writes all tables as Parquet, arguments, properties and lifecycles with them; `rows only`
leaves out the findings. Beside wall time stand the processor seconds of every process of the run
and the most memory that one Python worker held. The time to start Spark is told apart.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from captures import make

TABLES = "frames,messages,connections,channels"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")

ALONE = """
import sys
from amqpsniff.archive import Batch
Batch([sys.argv[1]], sys.argv[2], tables=sys.argv[3].split(","), task_octets=1 << 60).run()
"""


class Cost(NamedTuple):
    """Seconds from start to end, of the job without the start of Spark, of processors; megabytes
    of the largest Python process.
    """

    wall: float
    job: float
    cpu: float
    megabytes: float


class Watch(threading.Thread):
    """Adds up what the processes of a session use, for as long as they are there."""

    def __init__(self, session: int) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._cpu: dict[int, float] = {}
        self.megabytes = 0.0
        self.over = threading.Event()

    @property
    def cpu(self) -> float:
        """Processor seconds so far."""
        return sum(self._cpu.values())

    def run(self) -> None:
        while not self.over.wait(0.05):
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
                used = (int(fields[11]) + int(fields[12])) / TICKS
                self._cpu[int(folder.name)] = used
                if "python" in name:
                    resident = int(fields[21]) * PAGE / 1e6
                    self.megabytes = max(self.megabytes, resident)


def measure(command: list[str]) -> Cost:
    """Run a command in a session of its own."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    watch = Watch(process.pid)
    watch.start()
    first = begin
    assert process.stdout is not None
    for line in process.stdout:
        if first == begin and json.loads(line).get("stage") == "files":
            first = time.perf_counter()
        if '"summary"' in line:
            end = time.perf_counter()
            watch.look()
            break
    else:
        end = time.perf_counter()
    process.stdout.read()
    status = process.wait()
    watch.look()
    watch.over.set()
    watch.join()
    if status:
        raise SystemExit(f"{' '.join(command)} ended with {status}")
    return Cost(time.perf_counter() - begin, end - first, watch.cpu, watch.megabytes)


def runs(captures: Path, output: Path, tables: str) -> Iterator[tuple[str, Cost]]:
    """The same work by one process and on Spark."""
    python = sys.executable
    shutil.rmtree(output, ignore_errors=True)
    yield "one process", measure([python, "-c", ALONE, str(captures), str(output), tables])
    for cores in (1, 2):
        shutil.rmtree(output, ignore_errors=True)
        job = [python, "-m", "amqpsniff.spark_jobs.batch", str(captures), "-o", str(output)]
        job += ["--master", f"local[{cores}]", "--tables", tables, "--progress", "json"]
        yield f"local[{cores}]", measure(job)


def rotate(whole: Path, folder: Path, files: int) -> Path:
    """Cut a capture into files of equal numbers of packets."""
    from amqpsniff.capture import CaptureSet

    folder.mkdir(exist_ok=True)
    octets = whole.read_bytes()
    with CaptureSet([str(whole)]) as packets:
        total = sum(map(len, packets))
    at, number = 24, 0
    for turn in range(files):
        begin = at
        until = total * (turn + 1) // files
        while number < until:
            at += 16 + int.from_bytes(octets[at + 8 : at + 12], "little")
            number += 1
        (folder / f"{turn:03d}.pcap").write_bytes(octets[:24] + octets[begin:at])
    return folder


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--files", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        octets = given.megabytes * 1_000_000
        whole = make("mixed", octets, folder / "mixed.pcap")
        rotated = rotate(whole, folder / "rotated", given.files)
        print(f"{octets / 1e6:.0f} MB; seconds; MB/s are of the job, without Spark's start\n")
        print(f"{'archive':<12}{'tables':<12}{'run':<14}{'wall':>7}{'job':>7}{'CPU':>7}"
              f"{'MB/s':>7}{'worker MB':>11}")  # fmt: skip
        for name, captures in (("one file", whole), (f"{given.files} files", rotated)):
            for what, tables in (("rows only", TABLES), ("all", TABLES + ",findings")):
                for run, cost in runs(captures, folder / "out", tables):
                    print(f"{name:<12}{what:<12}{run:<14}{cost.wall:7.1f}{cost.job:7.1f}"
                          f"{cost.cpu:7.1f}{octets / 1e6 / cost.job:7.0f}{cost.megabytes:11.0f}",
                          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
