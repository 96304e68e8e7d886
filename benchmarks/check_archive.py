"""Whether Spark gives the rows of one engine, on an archive of some gigabytes.

    python benchmarks/check_archive.py --gigabytes 2

The archive is made of the samples: connections of many clients at once, cut into files of a few
megabytes wherever that comes, some compressed, some packets in two files, one file that is none.
Addresses and ports come again. Every table of every run is brought down to the number of its rows
and the sum of their hashes, in which order does not count. The finding `rules-limit`, which says
what each way of reading forgot, is left out. Needs DuckDB, Java, and disk space for
the archive and as much again. The exit code is 1 when something differs.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import json
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyspark
from captures import FIRST_SECOND, MIXES, SAMPLES, records_of, renew

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")

MASTERS = ("local[2]", "local-cluster[2,1,2048]")

LANES = 24
"""Clients at a time."""

FILE_BYTES = 8_000_000
"""Where a file ends: a connection goes on in two or three, and nothing waits for its answer for
more rows than one engine remembers."""

REPEATED = 50
"""Of so many packets at the end of a file as many stand at the beginning of the next one too."""

ADDRESSES = 500
"""Rounds after which addresses come again."""

PAUSE_MICROS = 250_000
"""Time between a client's last packet and the first of the next one."""

ISN_STEP = 0x2468ACE1
"""How far apart the first sequence numbers of uses of an address are."""

IP = 16 + 14
"""Where the IP header stands in a record of an Ethernet frame."""

ALONE = """
import sys
from pathlib import Path
import amqpsniff
from amqpsniff.findings import log
from amqpsniff.tables.export import ParquetRows
from amqpsniff.tables.schema import LINKED_MESSAGES, schema_of
from amqpsniff.session.rules import shared_state
log.MAX_FINDINGS = log.MAX_PLACES = 5_000_000  # as many as a batch keeps
shared_state.MAX_KEPT = 5_000_000  # what is said once for many is counted without a bound there
folder, captures, wanted, *tables = sys.argv[1:]
folder, LINKS = Path(folder), wanted == "links"
folder.mkdir()
links = {"messages": LINKED_MESSAGES.names} if LINKS else {}
sinks = {table: (folder / f"{table}.parquet").open("wb") for table in tables}
schemas = {table: schema_of(table) for table in tables}
if LINKS:
    schemas["messages"] = LINKED_MESSAGES
writers = {table: ParquetRows(sink, schemas[table]) for table, sink in sinks.items()}
names = sorted(str(one) for one in Path(captures).iterdir())
rows = amqpsniff.open(*names, reader="own").tables(*tables, encoded=True, columns=links)
for table, batch in rows:
    writers[table].add(batch)
for table, writer in writers.items():
    writer.close()
    sinks[table].close()
"""


def packets() -> Iterator[bytearray]:
    """Records of all clients' packets, in the order of time, without end."""
    samples = [records_of(name) for name in MIXES["mixed"]]
    waiting = [(FIRST_SECOND * 1_000_000 + lane * 37_000, lane, 0) for lane in range(LANES)]
    turns = list(range(LANES))
    while True:
        micros, lane, at = heapq.heappop(waiting)
        turn = turns[lane]
        records = samples[(turn // LANES + lane) % len(samples)]
        offset, record = records[at]
        again, address = divmod(turn, ADDRESSES)
        renew(record, micros, address)
        made = bytearray(record)
        number_anew(made, again * ISN_STEP)
        yield made
        if at + 1 < len(records):
            heapq.heappush(waiting, (micros + records[at + 1][0] - offset, lane, at + 1))
        else:
            turns[lane] += LANES
            heapq.heappush(waiting, (micros + PAUSE_MICROS, lane, 0))


def number_anew(record: bytearray, offset: int) -> None:
    """Add to the sequence numbers of an IPv4 packet: who comes again counts from elsewhere."""
    at = IP + (record[IP] & 15) * 4 + 4
    for place in (at, at + 4):
        (number,) = struct.unpack_from(">I", record, place)
        struct.pack_into(">I", record, place, (number + offset) & 0xFFFFFFFF)


def make_archive(folder: Path, octets: int) -> int:
    """Write the archive; the number of its files."""
    folder.mkdir()
    head = (SAMPLES / "node.pcap").read_bytes()[:24]
    held: list[bytes] = []
    size = whole = number = 0
    for record in packets():
        held.append(bytes(record))
        size += len(record)
        if size < FILE_BYTES:
            continue
        content = head + b"".join(held)
        name = f"{number * 7919 % 10_000:04d}-{number:04d}.pcap"  # not in the order of time
        if number % 9 == 4:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content, 1))
        else:
            (folder / name).write_bytes(content)
        whole += size
        number += 1
        held = held[-REPEATED:] if number % 5 == 0 else []
        size = sum(map(len, held))
        if whole >= octets:
            break
    (folder / "5000-none.pcap").write_bytes(b"this is no capture")
    return number + 1


Digest = tuple[int, int]
"""The number of rows, and the sum of their hashes."""


def digest(table: str, files: list[str]) -> Digest:
    """The rows of a table's Parquet files, brought down to two numbers."""
    where = " WHERE code <> 'rules-limit'" if table == "findings" else ""
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT count(*), sum(hash(rows)::HUGEINT) "
            f"FROM read_parquet(?, hive_partitioning = false) AS rows{where}",
            [files],
        ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1] or 0)


def by_one(captures: Path, output: Path, links: bool) -> dict[str, Digest]:
    """The tables of one engine."""
    wanted = "links" if links else "no links"
    command = [sys.executable, "-c", ALONE, str(output), str(captures), wanted, *TABLES]
    subprocess.run(command, check=True)
    return {table: digest(table, [str(output / f"{table}.parquet")]) for table in TABLES}


def by_spark(captures: Path, output: Path, master: str, links: bool) -> dict[str, Digest]:
    """The tables that a batch writes."""
    command = [sys.executable, "-m", "amqpsniff.spark_jobs.batch", str(captures)]
    command += ["-o", str(output), "--master", master, *["--links"] * links]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        raise SystemExit(made.stderr)
    tables = json.loads((output / "_manifest.json").read_text())["tables"]
    return {
        table: digest(table, [str(output / name) for name in tables[table]]) for table in TABLES
    }


def main() -> int:
    """Make the archive, read it in every way, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--master", action="append", help=f"default: {' and '.join(MASTERS)}")
    parser.add_argument("--links", action="store_true", help="link messages too")
    given = parser.parse_args()
    worker_folder = Path(pyspark.__file__).parent / "work"
    left_before = worker_folder.exists()
    different = 0
    with tempfile.TemporaryDirectory() as scratch:
        captures = Path(scratch) / "captures"
        files = make_archive(captures, int(given.gigabytes * 1e9))
        octets = sum(one.stat().st_size for one in captures.iterdir())
        print(f"{files} files, {octets / 1e9:.2f} GB", flush=True)
        begin = time.perf_counter()
        alone = by_one(captures, Path(scratch) / "alone", given.links)
        print(f"one engine: {time.perf_counter() - begin:.0f} s", flush=True)
        for table, (rows, total) in alone.items():
            print(f"  {table:<12} {rows:>12,} rows  {total:x}")
        for master in given.master or MASTERS:
            output = Path(scratch) / "tables"
            begin = time.perf_counter()
            found = by_spark(captures, output, master, given.links)
            print(f"{master}: {time.perf_counter() - begin:.0f} s", flush=True)
            for table, (rows, total) in found.items():
                same = "the same" if alone[table] == (rows, total) else "DIFFERENT"
                different += same == "DIFFERENT"
                print(f"  {table:<12} {rows:>12,} rows  {total:x}  {same}", flush=True)
            shutil.rmtree(output)
    if not left_before:  # what workers of a local cluster leave
        shutil.rmtree(worker_folder, ignore_errors=True)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
