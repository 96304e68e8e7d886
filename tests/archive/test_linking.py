"""Messages are linked across tasks as one engine links them, however an archive is cut."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from amqpsniff.archive import Batch, linking
from amqpsniff.archive.batch import run_in_process
from amqpsniff.errors import UsageError
from amqpsniff.session import Memory, event_logs
from amqpsniff.tables.schema import LINKED_MESSAGES, TABLES
from tests.session.crossing import made
from tests.thorough import rounds

from .broker import traffic
from .splits import Packet, by_one_engine, deal, packets_of, rows_of, write_pcap
from .tables import manifest, written
from .test_equality import NAMES
from .test_leftovers import of_script

SCHEMA = LINKED_MESSAGES
SCHEMAS = TABLES | {"messages": SCHEMA}
MATCH, REQUEST = SCHEMA.names.index("link_confidence"), SCHEMA.names.index("request_packet_number")

Rows = list[tuple[Any, ...]]


def by_batch(paths: list[Path], output: Path, **more: Any) -> dict[str, Rows]:
    """The rows of messages and findings that a batch writes."""
    tables = ("messages", "findings")
    Batch(map(str, paths), str(output), tables=tables, links=True, **more).run()
    rows: dict[str, Rows] = {}
    for table in tables:
        names = manifest(output)["tables"][table]
        read = [parquet.ParquetFile(output / name).read() for name in names]
        assert all(one.schema.names == SCHEMAS[table].names for one in read)
        rows[table] = rows_of(pa.concat_tables(read)) if read else []
    return rows


def compared(packets: list[Packet], folder: Path, chance: random.Random) -> Rows:
    """Packets cut into files and read in both ways; the rows of messages."""
    folder.mkdir()
    paths = deal(packets, folder, chance, chance.randint(2, 8))
    alone = by_one_engine(paths, ("messages", "findings"), links=True)
    task_bytes = chance.choice([500, 3_000, 30_000])
    together = by_batch(paths, folder / "tables", task_bytes=task_bytes)
    for table, rows in together.items():
        assert rows == alone[table]
    return together["messages"]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even small captures have several row groups."""
    monkeypatch.setattr(event_logs, "ROWS", 20)
    monkeypatch.setattr(linking, "GROUP_ROWS", 5)


def test_links_do_not_depend_on_the_cuts(tmp_path: Path) -> None:
    """Messages much alike, requests and replies, connections that end or began before; in turn 13
    a reply comes after a reset of who asked.
    """
    told = set()
    for turn in {13, *range(1, 1 + rounds(50))}:
        chance = random.Random(f"links{turn}")
        script = made([chance.randrange(2**40) for _ in range(90)], holes=False)
        rows = compared(of_script(script), tmp_path / str(turn), chance)
        told |= {row[MATCH] for row in rows} | {row[REQUEST] is not None for row in rows}
    assert told == {None, "exact", "likely", "ambiguous", True, False}


def test_links_of_captures_that_lack_packets(tmp_path: Path) -> None:
    """What lies behind a hole is known later than it came, and links what is known by then; in turn
    27 a publish comes again before a hole is given up.
    """
    for turn in {27, *range(1, 1 + rounds(50))}:
        chance = random.Random(f"holes{turn}")
        script = made([chance.randrange(2**40) for _ in range(90)], holes=False)
        whole = traffic(chance, 200) if turn % 3 == 0 else of_script(script)
        packets = [one for one in whole if chance.random() > 0.03]
        compared(packets, tmp_path / str(turn), chance)


@pytest.mark.parametrize("name", [one for one in NAMES if one not in ("amqplib08", "v08_v09")])
def test_links_of_real_conversations(samples: Path, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    compared(packets_of([samples / f"{name}.pcap"]), tmp_path / name, chance)


def test_what_is_forgotten_does_not_depend_on_the_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four publishes are remembered, two requests, and one queue of a line beside the first."""
    few = Memory(publishes=4, calls=2, positions=1)
    monkeypatch.setattr("amqpsniff.session.linker.Memory", lambda: few)
    for turn in range(3):
        chance = random.Random(f"few{turn}")
        script = made([chance.randrange(2**40) for _ in range(90)], holes=False)
        compared(of_script(script), tmp_path / str(turn), chance)
        findings = written(tmp_path / str(turn) / "tables", "findings")
        (limit,) = findings.filter(pc.field("code") == "session-limit").to_pylist()
        assert limit["detail"].partition(":")[0] in ("publishes", "positions", "calls")
        assert limit["count"] > 1  # the others are counted with it


def test_what_is_linked_is_not_linked_again(samples: Path, tmp_path: Path) -> None:
    """Files that come later leave the files of other messages as they are."""
    captures, output = tmp_path / "captures", tmp_path / "tables"
    captures.mkdir()
    write_pcap(captures / "1.pcap", packets_of([samples / "aiopika_rpc.pcap"]))

    def run() -> set[str]:
        done: list[Any] = []

        def runner(function: Any, items: Any, watch: Any) -> list[Any]:
            done.extend(items)
            return run_in_process(function, items, watch)

        Batch([str(captures)], str(output), links=True, task_bytes=2_000).run(runner)
        ran.append(len(done))
        return set(manifest(output)["tables"]["messages"])

    ran: list[int] = []
    first = run()
    assert run() == first
    others = packets_of([samples / "node.pcap"])
    moved = [one._replace(ts_ns=one.ts_ns + 3_600_000_000_000) for one in others]
    write_pcap(captures / "2.pcap", moved)
    both = run()
    assert len(both) > len(first & both) > 0
    assert ran[0] > 0
    assert ran[1] == 0
    alone = by_one_engine(sorted(captures.iterdir()), ("messages",), links=True)["messages"]
    tables = [parquet.ParquetFile(output / name).read() for name in both]
    assert rows_of(pa.concat_tables(tables)) == alone


def test_links_need_messages(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="links are columns of the table messages"):
        Batch(["a.pcap"], str(tmp_path), tables=("frames",), links=True)
