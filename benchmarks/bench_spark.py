"""What Spark costs and brings: archives decoded by one process, on one core of Spark and on two.

    python benchmarks/bench_spark.py --megabytes 300         # four minutes on two idle cores

Runs write Parquet, arguments, properties and lifecycles with it; `rows` are frames, messages,
connections and channels, `all` has the findings too. `wall` is the whole, `job` leaves out what
comes before there is something to decode with: the start of Spark, or the imports of one process.
`CPU` and `job CPU` are those of all processes, the JVM among them. A capture of one sample tells
what a job costs that has nothing to do; `beyond` is a job's time above that. `core 0` has
everything on one core: a Spark with one task at a time uses both for its JVM and its Python.
`MB held` is what the largest worker held at most, or the one process, and `driver` the first
process. The data source and the direct writer are measured when a session does it first, and warm.

At the end every bar stands beside its figure. The exit code is 0 whether they are met or not.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from captures import SAMPLES, make
from talk import make_talks
from watching import Cost, measure

ROWS = "frames,messages,connections,channels"
TABLES = {"rows": ROWS, "all": f"{ROWS},findings"}

ALONE = """
import json, os, sys
from amqpsniff.process_tuning import ARROW_MEMORY
os.environ.setdefault(*ARROW_MEMORY)
import pyarrow.parquet
from amqpsniff.archive import Batch, task_io
from amqpsniff.tables import export
print(json.dumps({"stage": "files"}), flush=True)
Batch([sys.argv[1]], sys.argv[2], tables=sys.argv[3].split(","), task_bytes=1 << 60).run()
print(json.dumps({"summary": {}}), flush=True)
"""

WARM = 5
"""Runs of each scan after the first of its kind, of which the quickest counts. A JVM compiles what
it does often, and has done so after some three."""

SOURCE = f"""
import json, shutil, sys, time
from pyspark.sql import functions as f
from amqpsniff.archive import Batch
from amqpsniff.spark_jobs.runner import SparkRunner
from amqpsniff.spark_jobs.session import session
small, capture, output = sys.argv[1:]
spark = session("local[2]")
spark.sparkContext.setLogLevel("ERROR")
WITH_BODY = (
    "capture string, packet_number long, ts_ns long, client string, server string, channel int, "
    "method string, exchange string, routing_key string, queue string, body_size long, "
    "message_id string, body binary"
)
def read(path, table, columns):
    source = spark.read.format("amqp").option("table", table).option("bodies", "body" in columns)
    return source.schema(columns).load(path)
def methods():
    source = spark.read.format("amqp").option("table", "frames")
    return source.option("where", "method is not null")
def scan(path):
    read(path, "messages", WITH_BODY).write.format("noop").mode("overwrite").save()
def count(path):
    read(path, "frames", "method string, size long").groupBy("method").agg(
        f.count("*"), f.sum("size")).collect()
THIRTEEN = (
    "capture string, packet_number long, ts_ns long, connection_id string, sender string, "
    "stream_offset long, channel int, size long, method string, arguments string, "
    "exchange string, routing_key string, response_ns long"
)
def some(path):
    methods().schema(THIRTEEN).load(path).write.mode("overwrite").parquet(output)
def whole(path):
    methods().load(path).write.mode("overwrite").parquet(output)
def direct(path):
    shutil.rmtree(output, ignore_errors=True)
    runner = SparkRunner(spark.sparkContext)
    Batch([path], output, tables=["frames"]).run(runner, lambda step: None, runner.cores)
print(json.dumps({{"stage": "files"}}), flush=True)
for name in ("scan", "count", "some", "whole", "direct"):
    globals()[name](small)
    for turn in ("first", *["warm"] * {WARM}):
        begin = time.perf_counter()
        globals()[name](capture)
        seconds = time.perf_counter() - begin
        print(json.dumps({{"source": name, turn: seconds}}), flush=True)
"""


class Bar(NamedTuple):
    """What is to be reached: at least, or, with `most`, at most."""

    what: str
    figure: float
    bar: float
    unit: str
    most: bool = False

    def __str__(self) -> str:
        met = self.figure <= self.bar if self.most else self.figure >= self.bar
        sign = "<=" if self.most else ">="
        return (
            f"{self.what:<66}{self.figure:8.2f}  {sign} {self.bar:g} {self.unit:<6}"
            f"{'met' if met else 'NOT MET'}"
        )


class Bench:
    """Runs jobs and prints a line for each."""

    def __init__(self, folder: Path, repeat: int) -> None:
        self._output = folder / "out"
        self._repeat = repeat
        self.most_megabytes = 0.0

    def job(
        self, name: str, captures: Path, tables: str, cores: int = 0, core: int | None = None
    ) -> Cost:
        """The quickest of some runs: of one process, or with `cores` of Spark.

        `tables` is a name of `TABLES` or of a table.
        """
        names = TABLES.get(tables, tables)
        command = [sys.executable, "-c", ALONE, str(captures), str(self._output), names]
        run = "one process"
        if cores:
            run = f"local[{cores}]"
            command = [sys.executable, "-m", "amqpsniff.spark_jobs.batch", str(captures)]
            command += ["-o", str(self._output), "--tables", names]
            command += ["--master", run, "--progress", "json"]
        runs = []
        for _ in range(self._repeat):
            shutil.rmtree(self._output, ignore_errors=True)
            runs.append(measure(command, core))
        cost = min(runs, key=lambda one: one.job)
        run += "" if core is None else f", core {core}"
        octets = _bytes(captures) / 1e6
        print(f"{name:<13}{tables:<7}{run:<18}{cost.wall:7.1f}{cost.job:7.2f}{cost.cpu:7.1f}"
              f"{cost.job_cpu:9.2f}{octets / cost.job:7.0f}{cost.megabytes:8.0f}"
              f"{cost.first_megabytes:8.0f}",
              flush=True)  # fmt: skip
        if cores:
            self.most_megabytes = max(self.most_megabytes, *(one.megabytes for one in runs))
        return cost

    def archives(self, small: Path, archives: dict[str, Path]) -> list[Bar]:
        """One process, one core and two: what a core of Spark does, and what another one brings."""
        bars = []
        for tables in TABLES:
            idle = [self.job("(a sample)", small, tables, cores).job for cores in range(3)]
            for name, captures in archives.items():
                runs = [self.job(name, captures, tables, cores) for cores in range(3)]
                job = [run.job for run in runs]
                beyond = [run.job - base for run, base in zip(runs, idle, strict=True)]
                what = f"{tables}, {name}: "
                bars += [
                    Bar(f"{what}local[1] to one process", job[0] / job[1] * 100, 70, "%"),
                    Bar(f"{what}the same, beyond", beyond[0] / beyond[1] * 100, 70, "%"),
                    Bar(
                        f"{what}the same, processor seconds of the job",
                        runs[0].job_cpu / runs[1].job_cpu * 100,
                        70,
                        "%",
                    ),
                    Bar(f"{what}local[1] to local[2]", job[1] / job[2], 1.6, "x"),
                    Bar(f"{what}the same, beyond", beyond[1] / beyond[2], 1.6, "x"),
                ]
                if name == "one file":
                    pinned = self.job(name, captures, tables, 1, 0)
                    on = "local[1] on core 0 to local[2] on both"
                    bars.append(Bar(f"{what}{on}", pinned.job / runs[2].job, 1.6, "x"))
        return bars

    def talks(self, folder: Path, octets: int) -> list[Bar]:
        """A capture of which one connection has most, against one where all have the same."""
        found = {}
        for percent in (0, 70, 100):
            path = make_talks(folder / f"{percent}.pcap", octets, percent)
            found[percent] = self.job(f"{percent}% in one", path, "rows", 2).job
            path.unlink()
        even = "of the bytes in one connection, to an even capture"
        bars = [Bar(f"{at} % {even}", found[at] / found[0], 1.2, "x", True) for at in (70, 100)]
        memory = Bar(
            "memory of a worker, the most of all runs", self.most_megabytes, 512, "MB", True
        )
        return [*bars, memory]

    def source(self, small: Path, captures: Path) -> list[Bar]:
        """The figures of one scan: the first of its kind in a session, and, for the bars, the
        quickest of the next, since the prototype was measured warm.
        """
        command = [sys.executable, "-c", SOURCE, str(small), str(captures), str(self._output)]
        shutil.rmtree(self._output, ignore_errors=True)
        facts = [one for one in measure(command).facts if "source" in one]
        octets = _bytes(captures) / 1e6
        for one in facts:
            turn = "warm" if "warm" in one else "first"
            rate = octets / float(str(one[turn]))
            print(f"{one['source']!s:<20}local[2], {turn:<16}{rate:26.0f} MB/s", flush=True)
        warm = [(str(one["source"]), float(str(one["warm"]))) for one in facts if "warm" in one]
        seconds = {name: min(value for other, value in warm if other == name) for name, _ in warm}
        rates = {name: octets / value for name, value in seconds.items()}
        self.job("one file", captures, "frames", 2)
        return [
            Bar("scan of messages, 13 columns with bodies (prototype: packets)", rates["scan"],
                335, "MB/s"),
            Bar("decoding to aggregates, of 500 MB", seconds["count"] * 500 / octets, 3.0, "s",
                True),
            Bar("13 columns of methods to Parquet through Spark", rates["some"], 150, "MB/s"),
            Bar("all columns of methods to Parquet through Spark", rates["whole"], 150, "MB/s"),
            Bar("all columns of frames with the direct writer", rates["direct"], 252, "MB/s"),
        ]  # fmt: skip


def _bytes(captures: Path) -> int:
    files = captures.iterdir() if captures.is_dir() else [captures]
    return sum(one.stat().st_size for one in files)


def rotate(whole: Path, folder: Path, files: int) -> Path:
    """Cut a capture into files of equal numbers of packets."""
    folder.mkdir(exist_ok=True)
    octets = whole.read_bytes()
    ends = []
    at = 24
    while at < len(octets):
        at += 16 + int.from_bytes(octets[at + 8 : at + 12], "little")
        ends.append(at)
    begin = 24
    for turn in range(files):
        end = ends[len(ends) * (turn + 1) // files - 1]
        (folder / f"{turn:03d}.pcap").write_bytes(octets[:24] + octets[begin:end])
        begin = end
    return folder


def main() -> None:
    """Measure, print a table, and the bars."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--repeat", type=int, default=1, help="runs, of which the quickest counts")
    parts = ("archives", "talks", "source")
    parser.add_argument("--only", choices=parts, nargs="+", default=parts, help="what is measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        octets = given.megabytes * 1_000_000
        small = SAMPLES / "pika_mix.pcap"
        whole = make("mixed", octets, folder / "mixed.pcap")
        rotated = rotate(whole, folder / "rotated", given.files)
        print(f"{octets / 1e6:.0f} MB; seconds; MB/s are those of the job\n")
        print(f"{'archive':<13}{'':<7}{'run':<18}{'wall':>7}{'job':>7}{'CPU':>7}"
              f"{'job CPU':>9}{'MB/s':>7}{'MB held':>8}{'driver':>8}", flush=True)  # fmt: skip
        bench = Bench(folder, given.repeat)
        measured = {
            "archives": lambda: bench.archives(
                small, {"one file": whole, f"{given.files} files": rotated}
            ),
            "talks": lambda: bench.talks(folder, octets),
            "source": lambda: bench.source(small, whole),
        }
        bars = [bar for part in parts if part in given.only for bar in measured[part]()]
    print()
    print("\n".join(map(str, bars)))


if __name__ == "__main__":
    main()
