"""Captures cut into pieces in every way that an archive may be cut."""

from __future__ import annotations

import gzip
import random
import struct
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from amqpsniff.archive import TaskRun, make_plan, survey
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.merging import merge_findings
from amqpsniff.archive.message_logs import MessageLogFile
from amqpsniff.archive.task_io import TaskResult
from amqpsniff.capture import CaptureSet, read
from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from amqpsniff.tables.batches import Maker, finding_batch
from amqpsniff.tables.schema import LINKED_MESSAGES

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")
ETHERNET = 1

MAX_SIGHTINGS = 40
"""Sightings that a task holds, so that even small captures have several row groups."""


class Packet(NamedTuple):
    """A captured packet, ready to be written again."""

    ts_ns: int
    octets: bytes
    original: int
    link_type: int


def packets_of(paths: Iterable[Path]) -> list[Packet]:
    """All packets of captures, in the order of time."""
    packets = []
    with read(paths) as batches:
        for batch in batches:
            for row in range(batch.begin, batch.end):
                packets.append(
                    Packet(
                        batch.ts_ns[row],
                        batch.packet(row),
                        batch.original[row],
                        batch.link_type[row],
                    )
                )
    return packets


def write_pcap(path: Path, packets: Sequence[Packet]) -> Path:
    """A pcap file with nanoseconds; compressed when its name ends in `.gz`."""
    link_type = packets[0].link_type if packets else ETHERNET
    pieces = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link_type)]
    for one in packets:
        seconds, nanos = divmod(one.ts_ns, 1_000_000_000)
        pieces.append(struct.pack("<IIII", seconds, nanos, len(one.octets), one.original))
        pieces.append(one.octets)
    octets = b"".join(pieces)
    path.write_bytes(gzip.compress(octets, 1) if path.suffix == ".gz" else octets)
    return path


def write_pcapng(path: Path, packets: Sequence[Packet]) -> Path:
    """A pcapng file with one section and one interface of nanoseconds."""
    link_type = packets[0].link_type if packets else ETHERNET
    resolution = struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)
    pieces = [
        _block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        _block(1, struct.pack("<HHI", link_type, 0, 262144) + resolution),
    ]
    for one in packets:
        head = struct.pack(
            "<IIIII", 0, one.ts_ns >> 32, one.ts_ns & 0xFFFFFFFF, len(one.octets), one.original
        )
        pieces.append(_block(6, head + one.octets + bytes(-len(one.octets) % 4)))
    path.write_bytes(b"".join(pieces))
    return path


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def deal(
    packets: Sequence[Packet], folder: Path, chance: random.Random, pieces: int = 6
) -> list[Path]:
    """Write packets to some files: cut in time, or dealt out, with some of them in two files."""
    way = chance.choice(["cut", "cut", "dealt", "both"])
    hands: list[list[Packet]] = []
    cuts = sorted(chance.sample(range(1, len(packets)), min(pieces - 1, len(packets) - 1)))
    for begin, end in zip([0, *cuts], [*cuts, len(packets)], strict=True):
        piece = packets[begin:end]
        if way == "cut" or (way == "both" and chance.random() < 0.5):
            hands.append(list(piece))
            continue
        lanes: list[list[Packet]] = [[] for _ in range(chance.randint(2, 3))]
        for one in piece:
            lane = chance.randrange(len(lanes))
            lanes[lane].append(one)
            if chance.random() < 0.05:
                lanes[(lane + 1) % len(lanes)].append(one)
        hands += lanes
    names = [f"{chance.randrange(1000):03d}-{at:02d}" for at in range(len(hands))]
    paths = []
    for name, hand in zip(names, hands, strict=True):
        form = chance.choice([".pcap", ".pcap.gz", ".pcapng"])
        write = write_pcapng if form == ".pcapng" else write_pcap
        paths.append(write(folder / f"{name}{form}", hand))
    chance.shuffle(paths)
    return paths


def by_one_engine(
    paths: Iterable[Path],
    tables: Sequence[str] = TABLES,
    options: Options | None = None,
    links: bool = False,
) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the tables as one engine gives them, that reads all files."""
    pipeline = Pipeline(options or Options(), Plan({*tables, "messages"}, links=links))
    linked = {"messages": LINKED_MESSAGES.names} if links else {}
    makers = [Maker(table, columns=linked.get(table)) for table in tables]
    made: dict[str, list[Any]] = {table: [] for table in tables}
    with CaptureSet(sorted(map(str, paths))) as packets:
        for batch in packets:
            pipeline.feed(batch)
        pipeline.finish()
        taken = list(pipeline.rest())
        records = pipeline.records()
        found = [*packets.findings, *pipeline.findings(packets.findings)]
    for maker in makers:
        if maker.table in ("frames", "messages"):
            made[maker.table] = [maker.make(one) for one in taken]
        elif maker.table == "findings":
            made[maker.table] = [maker.make(found)]
        else:
            made[maker.table] = [maker.make(records[maker.table])]
    schemas = {maker.table: maker.schema for maker in makers}
    return {
        table: rows_of(pa.Table.from_batches(batches, schemas[table]))
        for table, batches in made.items()
    }


def by_tasks(
    paths: Iterable[Path],
    tables: Sequence[str] = TABLES,
    options: Options | None = None,
    **planning: int,
) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of the tables as the tasks of a plan give them."""
    plan = make_plan([survey(str(path)) for path in paths], **planning)
    made: dict[str, list[tuple[Any, ...]]] = {table: [] for table in tables}
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Folder(scratch)
        for number, task in enumerate(plan.tasks):
            with MessageLogFile(folder, f"{number}.parquet", 1) as file:
                file.log.most = MAX_SIGHTINGS
                run = TaskRun(task, options, tables, sightings=file.log)
                for table, batch in run.batches():
                    made[table] += rows_of(pa.Table.from_batches([batch]))
            result = TaskResult.of("", run)
            result.sighted = file.written
            results.append(TaskResult.from_bytes(result.to_bytes()))  # as workers hand it over
        found = merge_findings(results, plan.files, folder)
    if "findings" in tables:
        made["findings"] = rows_of(pa.Table.from_batches([finding_batch(found)]))
    return {table: sorted(rows, key=repr) for table, rows in made.items()}


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table, in an order that depends on nothing but them."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)
