"""Batches that deal packets out by conversation write the rows that one engine gives.

What is dealt out is read again by those that it is for, and is gone when the tables are complete.
"""

from __future__ import annotations

import random
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from amqpsniff.archive import Batch
from amqpsniff.archive.batch import run_in_process
from amqpsniff.archive.dealing import DEALT
from amqpsniff.options import Options
from tests.thorough import rounds

from .broker import traffic
from .splits import TABLES, Packet, by_one_engine, deal, packets_of, write_pcap
from .tables import everything, manifest, written_rows

NAMES = "pika_mix php_churn node aiopika_rpc lost midstream snapped zerowindow".split()

SECOND = 1_000_000_000

IP = 14


def compared(
    paths: Sequence[Path], output: Path, task_bytes: int, tables: Sequence[str] = TABLES
) -> Batch:
    """A batch that deals packets out, whose rows are those of one engine."""
    batch = Batch(map(str, paths), str(output), task_bytes=task_bytes)
    batch.run()
    alone = by_one_engine(paths)
    for table in tables:
        assert written_rows(output, table) == alone[table], (table, batch.plan.why)
    assert not list((output / DEALT).glob("*"))
    return batch


def renumbered(packets: Sequence[Packet], client: int, later_ns: int) -> list[Packet]:
    """The same conversations of another client."""
    made = []
    for one in packets:
        octets = bytearray(one.octets)
        for at in (IP + 12, IP + 16):
            if octets[at : at + 4] != BROKER:
                octets[at : at + 4] = struct.pack(">I", 0x0A100000 + client)
        made.append(one._replace(octets=bytes(octets), ts_ns=one.ts_ns + later_ns))
    return made


BROKER = socket.inet_aton("172.28.0.2")


def clients(samples: Path, number: int, chance: random.Random) -> list[Packet]:
    """Packets of many clients at once, each with the conversations of a sample, from end to end."""
    own = packets_of([samples / "midstream.pcap"])[:60]
    ends = Counter(one.octets[IP + 12 : IP + 16] for one in own)
    assert len(ends) == 2
    packets = []
    for client in range(number):
        packets += renumbered(own, client, client * 1_000 + chance.randrange(900))
    return sorted(packets, key=lambda one: one.ts_ns)


def cut(packets: Sequence[Packet], folder: Path, files: int) -> list[Path]:
    """Packets cut in time."""
    folder.mkdir(exist_ok=True)
    cuts = [len(packets) * at // files for at in range(files + 1)]
    return [
        write_pcap(folder / f"{at:03d}.pcap", packets[begin:end])
        for at, (begin, end) in enumerate(pairwise(cuts))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_those_of_one_engine(samples: Path, tmp_path: Path, name: str) -> None:
    packets = packets_of([samples / f"{name}.pcap"])
    for turn in range(rounds(4)):
        chance = random.Random(f"{name}{turn}")
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, chance, chance.randint(4, 12))
        compared(paths, tmp_path / f"tables{turn}", chance.choice([500, 2_000, 20_000]))


def test_what_a_broker_passes_on(tmp_path: Path) -> None:
    for turn in range(rounds(4)):
        chance = random.Random(f"dealt{turn}")
        packets = [one for one in traffic(chance, 300) if chance.random() > 0.03 * (turn % 2)]
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, chance, chance.randint(4, 12))
        compared(paths, tmp_path / f"tables{turn}", chance.choice([500, 2_000]))


def test_many_connections_in_many_files(samples: Path, tmp_path: Path) -> None:
    packets = clients(samples, 24, random.Random(1))
    batch = compared(cut(packets, tmp_path / "captures", 12), tmp_path / "tables", 20_000)
    assert batch.plan.buckets > 4
    told = manifest(tmp_path / "tables")
    assert told["plan"].startswith("dealt out by conversation")
    read = told["bytes_read"]
    assert read["survey"] == read["captures"] == told["bytes"]
    assert 0 < read["dealt"] == told["bytes_written"]["dealt"] < told["bytes"]


def test_one_connection_that_has_most(samples: Path, tmp_path: Path) -> None:
    giant = packets_of([samples / "aiopika_rpc.pcap"])
    few = clients(samples, 6, random.Random(2))
    apart = giant[0].ts_ns - few[0].ts_ns
    packets = [*giant, *(one._replace(ts_ns=one.ts_ns + apart) for one in few)]
    packets.sort(key=lambda one: one.ts_ns)
    batch = compared(cut(packets, tmp_path / "captures", 30), tmp_path / "tables", 4_000)
    assert batch.plan.buckets


@pytest.mark.parametrize("jump", [-3, -86_400, 400 * 86_400])
def test_clocks_that_jump(samples: Path, tmp_path: Path, jump: int) -> None:
    packets = clients(samples, 6, random.Random(3))
    half = len(packets) // 2
    moved = [one._replace(ts_ns=one.ts_ns + jump * SECOND) for one in packets[half:]]
    files = cut([*packets[:half], *moved], tmp_path / "captures", 7)
    compared(files, tmp_path / "tables", 10_000)


def test_packets_out_of_order(samples: Path, tmp_path: Path) -> None:
    """As queues of a network card give them: a little late, across the ends of files too.

    Which finding stands for several takes their times, which run backwards.
    """
    chance = random.Random(4)
    packets = clients(samples, 8, chance)
    packets.sort(key=lambda one: one.ts_ns + chance.randrange(3_000))
    compared(cut(packets, tmp_path / "captures", 10), tmp_path / "tables", 5_000, TABLES[:-1])


def test_captures_of_two_hosts(samples: Path, tmp_path: Path) -> None:
    """A third of the connections are in both, 30 us later in the second one."""
    packets = clients(samples, 9, random.Random(5))
    hosts: list[list[Packet]] = [[], []]
    for one in packets:
        client = next(
            address
            for address in (one.octets[IP + 12 : IP + 16], one.octets[IP + 16 : IP + 20])
            if address != BROKER
        )
        for host in {0: (0,), 1: (1,), 2: (0, 1)}[client[-1] % 3]:
            hosts[host].append(one._replace(ts_ns=one.ts_ns + 30_000 * host))
    paths = [path for at, own in enumerate(hosts) for path in cut(own, tmp_path / f"{at}", 5)]
    compared(paths, tmp_path / "tables", 10_000)


def test_fragments_go_to_all(samples: Path, tmp_path: Path) -> None:
    """Of a fragment it is not known whose it is, nor in which file the rest comes."""
    packets: list[Packet] = []
    for number, one in enumerate(clients(samples, 8, random.Random(6))):
        packets += fragments(one, number) if number % 7 == 0 else [one]
    batch = compared(cut(packets, tmp_path / "captures", 6), tmp_path / "tables", 10_000)
    assert batch.plan.buckets


def fragments(packet: Packet, number: int) -> list[Packet]:
    """A packet of IPv4 in two fragments, where it is long enough."""
    octets = packet.octets
    head, rest = octets[: IP + 20], octets[IP + 20 :]
    if len(rest) < 48:
        return [packet]
    pieces = []
    for at, part, more in ((0, rest[:40], 0x2000), (40, rest[40:], 0)):
        made = bytearray(head + part)
        struct.pack_into(">HHH", made, IP + 2, 20 + len(part), number & 0xFFFF, more | at // 8)
        pieces.append(packet._replace(octets=bytes(made), original=len(made)))
    return pieces


def test_ports_that_are_not_wanted_are_not_dealt_out(samples: Path, tmp_path: Path) -> None:
    paths = cut(clients(samples, 12, random.Random(7)), tmp_path / "captures", 12)
    options = Options(ports=frozenset({1}))
    batch = Batch(map(str, paths), str(tmp_path / "tables"), options, task_bytes=10_000)
    batch.run()
    assert batch.plan.buckets
    assert manifest(tmp_path / "tables")["bytes_read"]["dealt"] == 0


class Killed(Exception):
    """What stops a run here."""


def test_what_was_dealt_out_is_not_dealt_out_again(samples: Path, tmp_path: Path) -> None:
    paths = cut(clients(samples, 8, random.Random(8)), tmp_path / "captures", 6)
    output, other = tmp_path / "tables", tmp_path / "other"
    turns = iter(range(9))

    def dying(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        done = run_in_process(function, items, watch)
        if items and hasattr(items[0], "task") and next(turns) == 0:
            raise Killed
        return done

    with pytest.raises(Killed):
        Batch(map(str, paths), str(output), task_bytes=10_000).run(dying)
    objects = {one: one.stat().st_mtime_ns for one in (output / DEALT).iterdir()}
    assert len(objects) == 2 * len(paths)
    seen = {}

    def watched(function: Callable[[Any], Any], items: Sequence[Any], watch: Any) -> list[Any]:
        done = run_in_process(function, items, watch)
        seen.update({one: one.stat().st_mtime_ns for one in (output / DEALT).glob("*")})
        return done

    Batch(map(str, paths), str(output), task_bytes=10_000).run(watched)
    assert seen == objects
    Batch(map(str, paths), str(other), task_bytes=10_000).run()
    assert everything(output) == everything(other)
    names = manifest(output)["tables"]["frames"]
    assert names == manifest(other)["tables"]["frames"]
    for name in names:
        assert (output / name).read_bytes() == (other / name).read_bytes()


def test_new_files_change_the_buckets_that_go_on_in_them(samples: Path, tmp_path: Path) -> None:
    chance = random.Random(9)
    first = cut(clients(samples, 18, chance), tmp_path / "captures", 8)
    output = tmp_path / "tables"
    Batch(map(str, first), str(output), task_bytes=10_000).run()
    before = set(manifest(output)["tables"]["frames"])
    last = packets_of([first[-1]])
    own = last[0].octets[IP + 12 : IP + 20]
    more = [
        one._replace(ts_ns=one.ts_ns + 2 * SECOND)
        for one in last
        if {one.octets[IP + 12 : IP + 16], one.octets[IP + 16 : IP + 20]} == {own[:4], own[4:]}
    ]
    new = write_pcap(tmp_path / "captures" / "999.pcap", more)
    compared([*first, new], output, 10_000)
    after = set(manifest(output)["tables"]["frames"])
    assert 0 < len(before - after) <= 2
    assert len(before) > 6
