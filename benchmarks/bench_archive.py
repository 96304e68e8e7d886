"""An archive whose connections never end, on Spark: processor time, bytes by stage, memory.

    python benchmarks/bench_archive.py --gigabytes 2 10 --files 200 --lives 0 50 --straight

Every connection occurs in every file, so there is nothing that one file says alone; with `--lives`
one is closed after so many messages, and another takes its place. Smaller archives are the first
files of the largest. `--python` may name the Python of another installation, for both to be
measured in one run; `--one` reads the archive in one process too, `--straight` never deals out.
Bytes are those of the manifest, memory is what all processes of the
job hold together (PSS), or one of a kind at most; it is looked at four times a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from captures import FIRST_SECOND
from talk import Talk

STEP_MICROS = 10
"""Time between two packets."""

BURST = 8
"""Messages of a connection before it is the next one's turn."""

LOOK_SECONDS = 0.25

ONE = """
import sys
from amqpsniff.archive import Batch
Batch(sys.argv[2:], sys.argv[1], task_bytes=1 << 60).run()
"""
"""Everything as one task, without Spark."""

STRAIGHT = """
import sys
from amqpsniff.archive import batch, make_plan
from amqpsniff.spark_jobs.batch import main
batch.make_plan = lambda files, **more: make_plan(files, **more | {"deals": False})
sys.exit(main())
"""
"""The job, with a plan in which nothing is dealt out."""


def bursts(connections: int, giant: int, lives: int) -> Iterator[bytes]:
    """Packets of connections in turn, without end; the first has so many percent of them."""
    talks = [Talk(number) for number in range(connections)]
    for talk in talks:
        yield from talk.opening()
    owed = other = 0
    begun = connections
    while True:
        owed += giant
        at = 0
        if owed < 100:
            other += 1
            at = other % connections
        else:
            owed -= 100
        talk = talks[at]
        if lives and talk.tag >= lives:
            yield from talk.closing()
            talk = talks[at] = Talk(begun)
            begun += 1
            yield from talk.opening()
        for _ in range(BURST):
            yield from talk.turn()


def make_archive(
    folder: Path, octets: int, files: int, connections: int, giant: int, lives: int
) -> None:
    """Write the archive."""
    folder.mkdir(parents=True)
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
    micros = FIRST_SECOND * 1_000_000
    packets = bursts(connections, giant, lives)
    for number in range(files):
        size = 0
        with (folder / f"{number:05d}.pcap").open("wb", buffering=1 << 20) as file:
            file.write(head)
            while size < octets // files:
                packet = next(packets)
                micros += STEP_MICROS
                seconds, rest = divmod(micros, 1_000_000)
                file.write(struct.pack("<IIII", seconds, rest, len(packet), len(packet)) + packet)
                size += 16 + len(packet)


TICKS = os.sysconf("SC_CLK_TCK")


def look(session: int, most: dict[str, int], seconds: dict[int, float]) -> None:
    """Kilobytes that processes of a session hold, by what they are, and their processor time."""
    held = Counter[str]()
    for one in Path("/proc").iterdir():
        if not one.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, StopIteration):
            number = int(one.name)
            if os.getsid(number) != session:
                continue
            fields = (one / "stat").read_text().rpartition(")")[2].split()
            seconds[number] = sum(map(int, fields[11:13])) / TICKS
            java = (one / "comm").read_text().strip() == "java"
            kind = "java" if java else "driver" if number == session else "worker"
            lines = (one / "smaps_rollup").read_text().splitlines()
            pss = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            held["all"] += pss
            held[kind] = max(held[kind], pss)
    for kind, kilobytes in held.items():
        most[kind] = max(most.get(kind, 0), kilobytes)


def measured(command: list[str]) -> dict[str, float]:
    """Run a command; wall and processor seconds, and most megabytes by kind of process."""
    begin = time.perf_counter()
    most: dict[str, int] = {}
    seconds: dict[int, float] = {}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True, cwd="/"
        )
        while process.poll() is None:
            look(process.pid, most, seconds)
            time.sleep(LOOK_SECONDS)
        if process.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode(errors="replace")[-2000:])
    figures = {"wall": time.perf_counter() - begin, "cpu": sum(seconds.values())}
    return figures | {f"{kind} MB": most[kind] / 1024 for kind in sorted(most)}


def main() -> None:
    """Make the archive and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--gigabytes", type=float, nargs="+", default=[2.0])
    add("--files", type=int, default=40, help="of the largest archive")
    add("--connections", type=int, default=200, help="at a time")
    add("--lives", type=int, nargs="+", default=[0], help="messages of a connection; 0: no end")
    add("--giant", type=int, default=0, help="percent that one connection has")
    add("--master", default="local[2]")
    add("--tables", default="frames,messages,connections,channels,findings")
    add("--python", action="append", help="Pythons that have amqpsniff")
    add("--rounds", type=int, default=2)
    add("--one", action="store_true", help="in one process too")
    add("--straight", action="store_true", help="with nothing dealt out too")
    add("--folder", help="where the archive is made, and tables are written")
    given = parser.parse_args()
    for lives in given.lives:
        with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
            captures = Path(scratch) / "captures"
            octets = int(max(given.gigabytes) * 1e9)
            make_archive(captures, octets, given.files, given.connections, given.giant, lives)
            names = sorted(map(str, captures.iterdir()))
            for gigabytes in given.gigabytes:
                count = round(given.files * gigabytes / max(given.gigabytes))
                print(f"{gigabytes:g} GB, {count} files, lives {lives or 'for ever'}", flush=True)
                measure(given, names[:count], Path(scratch) / "tables")


def measure(given: argparse.Namespace, captures: list[str], output: Path) -> None:
    """Measure the runs that are wanted of some captures, and print the figures."""
    for _ in range(given.rounds):
        for python in given.python or [sys.executable]:
            job = ["--master", given.master, "--tables", given.tables, "-o", str(output)]
            job += captures
            runs = {given.master: [python, "-m", "amqpsniff.spark_jobs.batch", *job]}
            if given.straight:
                runs["straight"] = [python, "-c", STRAIGHT, *job]
            if given.one:
                runs["one process"] = [python, "-c", ONE, str(output), *captures]
            for name, command in runs.items():
                figures = measured(command)
                told = "  ".join(f"{key} {value:.1f}" for key, value in figures.items())
                manifest = json.loads((output / "_manifest.json").read_text())
                print(f"{python} {name}: {told}; load {os.getloadavg()[0]:.0f}", flush=True)
                for key in ("plan", "bytes", "bytes_read", "bytes_written", "rows"):
                    if key in manifest:
                        print(f"    {key}: {json.dumps(manifest[key])}", flush=True)
                shutil.rmtree(output)


if __name__ == "__main__":
    main()
