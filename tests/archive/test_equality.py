"""Tasks of a plan give the rows that one engine gives, however an archive is cut."""

import random
import re
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from amqpsniff.session.rules import requeueing, routes
from amqpsniff.tables.schema import schema_of
from tests.conftest import CAPTURES, own_capture
from tests.findings.cases import packets_of as packets_of_script
from tests.findings.pairs_of_frameworks import PAIRS
from tests.thorough import rounds

from .broker import ACROSS, traffic
from .splits import TABLES, Packet, by_one_engine, by_tasks, deal, packets_of, write_pcap

NAMES = (
    "pika_mix php_churn node aiopika_rpc blocked lost midstream snapped zerowindow v08_v09 "
    "amqplib08"
).split()

BESIDE = "TLSv1_3 aiopika_multi amqp10 bunny kombu violations".split()
"""Own captures of which no sample is a copy, or not as a file that can be cut here."""

CASES = (
    "cases/caller_gone",
    "cases/callers_gave_up",
    "cases/consumer_left",
    "cases/consumer_not_restored",
    "cases/consumer_overloaded",
    "cases/consumer_restored",
    "cases/consumer_starved_after_timeout",
    "cases/delivery_limit",
    "cases/faults_in_turn",
    "cases/messages_expired",
    "cases/put_back_in_turn",
    "cases/queue_expired",
    "cases/retries_that_end",
    "cases/rpc_server_busy",
    "packs/streams",
    "packs/workers",
    "packs/dead_letters",
    "amqp10/rabbitmq43_window",
)
"""Captures with findings about several connections, and near ones."""

TCP = 6

CODE = schema_of("findings").names.index("code")

TURNS = rounds(10)


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_the_cuts(samples: Path, tmp_path: Path, name: str) -> None:
    own = packets_of([samples / f"{name}.pcap"])
    for turn in range(TURNS):
        chance = random.Random(f"{name}{turn}")
        packets = own
        if chance.random() < 0.4:  # two captures of one time
            other = packets_of([samples / f"{chance.choice(NAMES)}.pcap"])
            apart = own[0].ts_ns - other[0].ts_ns
            moved = [one._replace(ts_ns=one.ts_ns + apart) for one in other]
            if moved[0].link_type == own[0].link_type:
                packets = sorted([*own, *moved], key=lambda one: one.ts_ns)
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, chance, chance.randint(2, 10))
        task_bytes = chance.choice([2_000, 20_000, 200_000])
        alone = by_one_engine(paths)
        together = by_tasks(paths, task_bytes=task_bytes, max_reads=chance.choice([1, 2, 8]))
        for table in TABLES:
            assert together[table] == alone[table], (turn, table)


@pytest.mark.parametrize("name", [*BESIDE, *CASES])
def test_nor_do_those_of_other_captures(tmp_path: Path, name: str) -> None:
    case = CAPTURES / f"{name}.pcap.gz"
    packets = packets_of([case if name in CASES else own_capture(name)])
    for turn in range(rounds(10)):
        chance = random.Random(f"{name}{turn}")
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, chance, chance.randint(2, 10))
        alone = by_one_engine(paths)
        task_bytes = chance.choice([20_000, 200_000])
        together = by_tasks(paths, task_bytes=task_bytes, max_reads=chance.choice([1, 2, 8]))
        for table in TABLES:
            assert together[table] == alone[table], (turn, table)


@pytest.mark.parametrize("name", ["pika_mix", "php_churn", "aiopika_rpc"])
def test_nor_do_those_of_endpoints_that_are_used_again(
    samples: Path, tmp_path: Path, name: str
) -> None:
    once = packets_of([samples / f"{name}.pcap"])
    span = once[-1].ts_ns - once[0].ts_ns + 1_000_000_000
    packets = [_later(one, turn, span) for turn in range(3) for one in once]
    chance = random.Random(name)
    paths = deal(packets, tmp_path, chance, 8)
    alone = by_one_engine(paths)
    assert len(alone["connections"]) == 3 * len(
        by_one_engine([samples / f"{name}.pcap"])["connections"]
    )
    together = by_tasks(paths, task_bytes=20_000, max_reads=4)
    for table in TABLES:
        assert together[table] == alone[table], table


def _later(packet: Packet, turn: int, span: int) -> Packet:
    """The same packet of a later connection: other sequence numbers, the same endpoints."""
    octets = bytearray(packet.octets)
    tcp = 14 + (octets[14] & 15) * 4
    if octets[12:14] == b"\x08\x00" and octets[23] == TCP:
        acknowledges = octets[tcp + 13] & 16
        for at in (tcp + 4, tcp + 8) if acknowledges else (tcp + 4,):
            (number,) = struct.unpack_from(">I", octets, at)
            struct.pack_into(">I", octets, at, (number + turn * 77_777_777) & 0xFFFFFFFF)
    return packet._replace(octets=bytes(octets), ts_ns=packet.ts_ns + turn * span)


def test_findings_that_take_all_messages_do_not_depend_on_the_cuts(tmp_path: Path) -> None:
    """Messages go from connection to connection, and come again on others; in turn 8 a connection
    ends before the first frame of a batch.
    """
    told = set()
    for turn in {8, *range(1, 2 + TURNS)}:
        chance = random.Random(f"across{turn}")
        packets = traffic(chance, 400)
        folder = tmp_path / str(turn)
        folder.mkdir()
        paths = deal(packets, folder, chance, chance.randint(2, 10))
        alone = by_one_engine(paths, ("findings",))["findings"]
        together = by_tasks(
            paths, ("findings",), task_bytes=2_000, max_reads=chance.choice([2, 8])
        )["findings"]
        assert together == alone, turn
        told |= {row[CODE] for row in alone}
    assert told >= ACROSS


ONE_A_CAUSE = (
    "dead-letter-unread dead-letter-target-missing delayed-mandatory task-result-unread "
    "notifications-unread celery-protocol-mixed trace-unsampled trace-context-never "
    "attempts-exceeded message-id-missing"
).split()
"""Findings of packs that are made of what several connections say, or stand for all of them."""


def test_findings_of_packs_do_not_depend_on_the_cuts(tmp_path: Path) -> None:
    for code in ONE_A_CAUSE:
        packets = [
            Packet(one.ts_ns, one.octets, len(one.octets), one.link_type)
            for one in packets_of_script(PAIRS[code].shown)
        ]
        folder = tmp_path / code
        folder.mkdir()
        paths = deal(packets, folder, random.Random(code), 4)
        alone = by_one_engine(paths, ("findings",))["findings"]
        assert by_tasks(paths, ("findings",), task_bytes=500)["findings"] == alone, code
        assert code in {row[CODE] for row in alone}


def test_what_is_forgotten_does_not_depend_on_the_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requeueing, "MAX_MESSAGES", 5)
    monkeypatch.setattr(requeueing, "MAX_REDELIVERED", 2)
    monkeypatch.setattr(routes, "MAX_KEPT", 1)
    chance = random.Random(7)
    paths = deal(traffic(chance, 600), tmp_path, chance, 6)
    alone = by_one_engine(paths, ("findings",))["findings"]
    together = by_tasks(paths, ("findings",), task_bytes=2_000)["findings"]
    assert together == alone
    assert {"rules-limit", "poison-message"} <= {row[CODE] for row in alone}
    assert any("routes (1)" in str(row) for row in alone)


@pytest.mark.parametrize("name", ["php_churn", "zerowindow", "node"])
def test_findings_are_one_a_cause_and_not_one_a_file(
    samples: Path, tmp_path: Path, name: str
) -> None:
    """But for captures and numbers of packets they are those of the uncut capture."""
    whole = samples / f"{name}.pcap"
    packets = packets_of([whole])
    paths = [
        write_pcap(tmp_path / f"{at:04d}.pcap", packets[at : at + 97])
        for at in range(0, len(packets), 97)
    ]
    assert len(paths) > 5
    names = schema_of("findings").names
    places = {"capture", "packet_number", "last_packet_number", "cause_packet_number"}

    def bare(rows: list[tuple[object, ...]]) -> list[str]:
        kept = [
            [value for column, value in zip(names, row, strict=True) if column not in places]
            for row in rows
        ]
        return sorted(re.sub(r"packets? \d+( to \d+)?", "packet", str(row)) for row in kept)

    alone = bare(by_one_engine([whole], ("findings",))["findings"])
    assert bare(by_one_engine(paths, ("findings",))["findings"]) == alone
    assert bare(by_tasks(paths, ("findings",), task_bytes=20_000)["findings"]) == alone


def test_the_whole_is_that_of_the_uncut_capture(samples: Path, tmp_path: Path) -> None:
    """Cut in time, nothing but the names and numbers of packets differs."""
    whole = samples / "pika_mix.pcap"
    packets = packets_of([whole])
    cuts = [0, 60, 61, 300, 301, 800, len(packets)]
    paths = [
        write_pcap(tmp_path / f"{at}.pcap", packets[begin:end])
        for at, (begin, end) in enumerate(pairwise(cuts))
    ]
    alone = by_one_engine([whole], ("messages",))["messages"]
    together = by_tasks(paths, ("messages",), task_bytes=2_000)["messages"]
    places = {0, 1, 9, -2}  # capture, packet_number, last_packet_number, outcome_packet_number

    def bare(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        width = len(rows[0])
        dropped = {place % width for place in places}
        return sorted(
            (tuple(v for at, v in enumerate(row) if at not in dropped) for row in rows), key=repr
        )

    assert bare(together) == bare(alone)
