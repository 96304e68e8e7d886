"""How long archives take on clusters, by simulation of their plans; no capture is read.

    python benchmarks/plan_archive.py                       # archives of 166 GB, by lifetime
    python benchmarks/plan_archive.py --day 0.1             # a tenth of a day of 3.3 TB

Files of 256 MB with connections that begin anywhere and live as long as is said are planned as
surveys of them would be. Tasks are given to cores, the largest first. What a core does is in
`RATES`: object storage, since on a disk that all cores share the disk decides. Of each task the
network and the processor work at the same time, for what is dealt out is read ahead. With `--day`
the connections last from the first file to the last one, and of the plan itself it is said what it
costs the driver; figures of a part of a day are not scaled up.
"""

from __future__ import annotations

import argparse
import heapq
import pickle
import random
import resource
import time
from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from amqpsniff.archive import Plan, Surveyed, make_plan
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.plan import Task
from amqpsniff.archive.task_io import TaskSpec
from amqpsniff.options import Options

FILE_BYTES = 256 << 20

CORES = (2, 8, 16, 100, 1_600)


class Rates(NamedTuple):
    """Bytes in a second of a core, and what else a task costs."""

    network: float = 100e6
    decode: float = 31e6  # with findings (docs/spark.md)
    survey: float = 3e9
    deal: float = 400e6
    packed: float = 0.5  # bytes of what is dealt out, of those captured
    request: float = 0.02  # seconds until object storage answers
    ahead: int = 3  # requests at a time
    task: float = 0.05  # seconds


RATES = Rates()


def archive(files: int, connections: int, lifetime: float, chance: random.Random) -> list[Surveyed]:
    """Files in each of which so many connections occur, that live for so many files on average."""
    held: list[dict[int, int]] = [{} for _ in range(files)]
    share = FILE_BYTES // connections
    for mark in range(int(files * connections / (1 + lifetime))):
        begin = chance.uniform(-lifetime, files)
        end = begin + chance.expovariate(1 / lifetime)
        first, last = max(int(begin), 0), min(int(end), files - 1)
        if begin > 0 or end >= 0:
            for at in range(first, last + 1):
                held[at][mark] = share
    return [surveyed(at, one) for at, one in enumerate(held)]


def surveyed(at: int, marks: dict[int, int]) -> Surveyed:
    """A file with these conversations."""
    octets = sum(marks.values())
    return Surveyed(
        f"{at:06d}.pcap", octets, 1, packets=octets // 500, octets=octets, first_ns=at,
        least_ns=at, last_ns=at, marks=array("q", marks), mark_bytes=array("q", marks.values()),
    )  # fmt: skip


def on_cores(seconds: Iterable[float], cores: int) -> float:
    """When the last of some tasks is done, of which whoever is free takes the next."""
    free = [0.0] * cores
    for one in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + one + RATES.task)
    return max(free)


def reading(task: Task, dealt: float) -> float:
    """Seconds of a task that reads files, and deals out so many bytes."""
    network = (task.read_bytes + dealt * RATES.packed) / RATES.network
    processor = task.octets / RATES.decode + task.read_bytes / RATES.survey + dealt / RATES.deal
    return max(network, processor)


def gathered(task: Task) -> float:
    """Seconds of a task that reads what was dealt out to it."""
    network = task.octets * RATES.packed / RATES.network
    network += len(task.sources) * RATES.request / RATES.ahead
    return max(network, task.octets / RATES.decode)


def minutes(plan: Plan, cores: int) -> float:
    """Minutes of a run with its survey."""
    survey = [one.octets / RATES.network for one in plan.files]
    dealing = {id(pack.task): pack for pack in plan.packs}
    own = defaultdict(float, {id(task): 0.0 for task in plan.tasks})
    for pack in plan.packs:
        own[id(pack.task)] = float(pack.task.read_bytes - pack.task.octets)
    readers = [task for task in plan.tasks if task.bucket is None]
    readers += [one.task for one in dealing.values() if not one.task.decodes]
    first = [reading(task, own[id(task)]) for task in readers]
    second = [gathered(task) for task in plan.tasks if task.bucket is not None]
    return sum(on_cores(stage, cores) for stage in (survey, first, second)) / 60


def told(name: str, files: list[Surveyed]) -> None:
    """Plan an archive in both ways and print what it takes."""
    for deals in (False, True):
        begin = time.perf_counter()
        plan = make_plan(files, deals=deals)
        seconds = time.perf_counter() - begin
        dealt = sum(task.octets for task in plan.tasks if task.bucket is not None)
        way = "dealt" if plan.buckets else "straight"
        read = 1 + (plan.read_bytes + dealt) / plan.octets
        cells = [f"{minutes(plan, cores):.1f}" for cores in CORES]
        most = max(task.octets for task in plan.tasks) / 1e9
        print(f"| {name} | {way} | {len(plan.tasks)} | {read:.1f} | {most:.2f} | "
              f"{' | '.join(cells)} |", flush=True)  # fmt: skip
        if name == "day":
            _costs(plan, seconds)
        if not plan.buckets and deals:
            return


def _costs(plan: Plan, seconds: float) -> None:
    """Print what the plan costs the driver."""
    rows = sum(len(one.marks) for one in plan.files)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    task = max(plan.tasks, key=lambda one: len(one.sources))
    spec = TaskSpec(task, "", "", Options(), (), Folder("/"))
    pieces = sum(len(one.sources) for one in plan.tasks if one.bucket is not None)
    print(f"  {rows / 1e6:.1f} M conversations in files, {seconds:.1f} s, {kilobytes / 1e6:.2f} GB "
          f"at most; a task's order {len(pickle.dumps(spec)) / 1e3:.0f} kB; "
          f"{pieces / 1e6:.2f} M pieces of 32 bytes")  # fmt: skip


def main() -> None:
    """Plan and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=650)
    parser.add_argument("--connections", type=int, default=400, help="in each file")
    parser.add_argument("--day", type=float, help="so much of a day of 3.3 TB")
    given = parser.parse_args()
    cores = " | ".join(f"{one:,}" for one in CORES)
    print(f"| archive | read | tasks | readings | largest task, GB | {cores} |")
    print("|---" * (5 + len(CORES)) + "|")
    if given.day:
        marks = dict.fromkeys(range(4_000), FILE_BYTES // 4_000)
        told("day", [surveyed(at, marks) for at in range(int(13_000 * given.day))])
        return
    for lifetime in (0.3, 1.0, 3.0, 20.0):
        chance = random.Random(lifetime)
        told(f"{lifetime:g} files", archive(given.files, given.connections, lifetime, chance))


if __name__ == "__main__":
    main()
