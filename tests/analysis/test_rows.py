"""Analysis is a function of rows: it needs no capture, and no order but that of connections."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.analysis.selection import RowFilter, Selection
from amqpsniff.analysis.topology import COLUMNS, topology
from amqpsniff.errors import UsageError
from amqpsniff.session.counts import MAX_NAMES
from tests.cli.running import write_capture
from tests.conftest import SAMPLES
from tests.session.script import Script, wired, written
from tests.waiting import PATIENCE

MIX = SAMPLES / "pika_mix.pcap"


def batches(capture: amqpsniff.Capture, *, encoded: bool) -> Iterator[tuple[str, Any]]:
    return capture.tables(*COLUMNS, encoded=encoded, columns=COLUMNS)


def unordered(result: Any, section: str) -> list[str]:
    """The rows of a section; those that are used equally often are in any order."""
    for row in result[section]:
        row.get("routing_keys", []).sort()
    return sorted(map(str, result[section]))


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize("name", ["pika_mix.pcap", "node.pcap", "midstream.pcap"])
def test_a_topology_is_made_of_rows_from_anywhere(name: str, encoded: bool) -> None:
    """Rows of an archive: all frames first, then the messages, in batches of any size."""
    capture = amqpsniff.open(SAMPLES / name)
    expected = capture.topology(limit=None)
    tables = {table: capture.table(table) for table in COLUMNS}
    rows = [
        (table, batch)
        for table, whole in tables.items()
        for batch in (whole.combine_chunks().to_batches(max_chunksize=7))
    ]
    for made in (topology(rows), topology(batches(capture, encoded=encoded))):
        for section in ("exchanges", "queues", "bindings", "publishers", "consumers"):
            assert unordered(made, section) == unordered(expected, section)


def test_a_topology_does_not_name_queues_of_an_earlier_opening(tmp_path: Path) -> None:
    """Tags begin at 1 again after a loss: whose consumer has the tag now is not known."""
    script = Script("""
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5
        S1: basic.deliver consumer_tag=t delivery_tag=2 | body=5
    """)
    before = len(script.packets)
    script.add("""
        C1: channel.close reply_code=200
        S1: channel.close-ok
        C1: channel.open
        S1: channel.open-ok
        C1: basic.consume queue=r consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
    """)
    lost = range(before + 1, len(script.packets) + 1)
    script.add("""
        C1: basic.ack delivery_tag=1
        S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5
        S1: basic.deliver consumer_tag=t delivery_tag=2 | body=5
        S1: basic.deliver consumer_tag=t delivery_tag=3 | body=5
    """)
    packets = [packet for number, packet in wired(script) if number not in lost]
    capture = amqpsniff.open(write_capture(tmp_path / "hole.pcap", packets))
    delivered = {row["queue"]: row["delivered"] for row in capture.topology()["queues"]}
    assert delivered == {"q": 2, None: 3}


def test_a_routing_key_per_message_leaves_frequent_keys_exact(tmp_path: Path) -> None:
    """Of more keys than are remembered, the rarer ones are counted for their exchange alone."""
    orders, often = 2 * MAX_NAMES, 500
    script = Script("handshake\nC1: channel.open\nS1: channel.open-ok")
    script.add("C1: basic.publish exchange=orders routing_key=order-00000 | body=1")
    sent = script.packets[-1]
    keys = [b"%05d" % number for number in range(1, orders)] + [b"often"] * often
    octets = b"".join(sent.octets.replace(b"00000", key) for key in keys)
    script.packets.append(sent._replace(octets=octets))
    result = amqpsniff.open(written(script, tmp_path / "orders.pcap")).topology(limit=None)
    (publisher,) = result["publishers"]
    assert publisher["published"] == len(keys) + 1
    assert publisher["routing_key_count"] is None
    assert len(publisher["routing_keys"]) == MAX_NAMES
    assert publisher["routing_keys"][:2] == ["order-often", "order-00000"]


def test_rows_of_other_tables_are_skipped() -> None:
    capture = amqpsniff.open(MIX)
    everything = capture.tables("frames", "messages", "connections", "findings", encoded=True)
    assert topology(everything, 3, capture.names) == capture.topology(limit=3)


def test_a_filter_counts_and_stops() -> None:
    capture = amqpsniff.open(MIX)
    rows = RowFilter(Selection(limit=3, where="method = 'basic.ack'"), "frames", lambda: None)
    kept = [rows.of(batch) for batch in capture.batches("frames")]
    assert sum(batch.num_rows for batch in kept) == rows.matched == 3
    assert rows.done
    assert rows.columns == {"method"}


def test_times_count_from_the_beginning_of_the_capture() -> None:
    part = Selection(from_="1s", to="2026-01-31T12:00:00Z")
    assert part.span(lambda: 5) == (1_000_000_005, 1_769_860_800_000_000_000)
    assert part.chooses()
    assert not Selection(limit=3).chooses()


@pytest.mark.parametrize(
    ("wanted", "ends", "is_it"),
    [
        ("7F29", ("7f29aa", "10.0.0.1:5", "10.0.0.2:5672"), True),
        (":5", ("7f29aa", "10.0.0.1:5", "10.0.0.2:5672"), True),
        ("10.0.0.1:5", ("7f29aa", "10.0.0.1:5", "10.0.0.2:5672"), True),
        ("10.0.0.2:5672", ("7f29aa", "10.0.0.1:5", "10.0.0.2:5672"), False),
    ],
)
def test_a_connection_is_named_by_its_id_or_its_client(
    wanted: str, ends: tuple[str, str, str], is_it: bool
) -> None:
    matches = Selection(connection=wanted).matches_connection()
    assert matches is not None
    assert matches(*ends) is is_it


def test_connections_have_no_channel() -> None:
    with pytest.raises(UsageError):
        RowFilter(Selection(channel=1), "connections", lambda: None)


def test_the_room_knows_no_terminal_and_begins_without_arrow() -> None:
    script = (
        "import pkgutil, sys, importlib, amqpsniff.analysis as room\n"
        "for one in pkgutil.iter_modules(room.__path__):\n"
        "    importlib.import_module(f'amqpsniff.analysis.{one.name}')\n"
        "print(sorted(set('typer rich click pyarrow duckdb'.split()) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout == "[]\n"
