"""Texts that are not UTF-8, cut packets, holes: every command shows the rest of the capture."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests import conversations
from tests.cli import every_way
from tests.cli.running import run, write_capture
from tests.conftest import REPO
from tests.conversations import NOT_UTF8, full, packets, texts, with_texts
from tests.encoder import PROTOCOL_HEADERS
from tests.tcp.wire import Packet
from tests.thorough import THOROUGH, some

HEALTHY = 39_999
"""Client's port of a connection in which nothing is wrong; its names begin with `healthy.`"""

FIRST = HEALTHY + 1
BY_NOBODY = (
    "saturation", "redelivery", "churn", "closes", "quality", "findings", "operations",
)  # fmt: skip
LINKS = ("links {capture}", "-t links", "FROM links")
SHOWS_ONE = ("follow", "--names", *LINKS, *(f"report-table {name}" for name in BY_NOBODY))
"""Ways that show one connection, replace names, have rows of AMQP 1.0 alone, or add up by the
client's address or by operation."""

HOSTILE = REPO / "tests" / "captures" / "hostile"
BY_NAME = (
    "summary {capture}",
    "diagnose {capture}",
    "follow {capture} --connection {connection}",
    "topology {capture}",
    "topology {capture} --format dot",
    "topology {capture} --format mermaid",
    "topology {capture} --format json",
    "diff {capture} {other}",
    "report {capture} -o {out}/page.html",
    "export {capture} -t findings --format ndjson",
)
"""Ways that count, sort or compare names and sizes."""


def _capture(path: Path, conversations: Iterable[list[Packet]]) -> Path:
    """Conversations at the same time, and the healthy one."""
    healthy = packets(full(prefix=b"healthy."), HEALTHY)
    every = [*healthy, *(packet for packets in conversations for packet in packets)]
    return write_capture(path, sorted(every, key=lambda packet: packet.ts_ns))


def _check(capture: Path, connection: str, folder: Path, turn: int) -> None:
    """Run every way over a capture; the healthy connection is in what comes out.

    Every other way, those of the `turn`, unless all cases are tried.
    """
    other = write_capture(folder / "other.pcap", packets(full(prefix=b"x."), 1))
    for number, way in enumerate(every_way.WAYS):
        if not THOROUGH and number % 2 != turn:
            continue
        out = folder / str(number)
        result = every_way.go(way, capture, other, connection, out)
        every_way.check(way, result)
        text = every_way.written(result, out)
        shown = "healthy." in text or f":{HEALTHY}" in text
        assert shown or any(word in way for word in SHOWS_ONE), way


def test_every_command_and_format_has_a_way() -> None:
    assert not every_way.missing()


def test_texts_that_are_not_utf8(tmp_path: Path) -> None:
    """All texts of a conversation at once, and in parts so that some stand beside plain names."""
    made = []
    for dialect in PROTOCOL_HEADERS:
        frames = full(dialect)
        places = list(texts(frames))
        random.Random(1).shuffle(places)
        parts = [places[start::4] for start in range(4)] if dialect == "0-9-1" else []
        for part in (places, *parts):
            said = with_texts(frames, part, NOT_UTF8)
            made.append(packets(said, FIRST + len(made), dialect))
    _check(_capture(tmp_path / "texts.pcap", made), f":{FIRST}", tmp_path, 0)


def test_packets_that_are_cut_or_missing(tmp_path: Path) -> None:
    """Snap lengths from 60 on, a lost packet, many lost packets, and a capture that begins late."""
    made = []
    whole = packets(full(), FIRST)
    snaps = range(60, 300, 80)
    holes = some(range(3, len(whole), 26), 2)
    for _ in range(len(snaps) + 3 * len(holes)):
        made.append(packets(full(), FIRST + len(made)))
    for at, octets in enumerate(snaps):
        made[at] = [packet.cut(octets) for packet in made[at]]
    for number, hole in enumerate(holes):
        at = len(snaps) + 3 * number
        del made[at][hole]
        made[at + 1] = made[at + 1][hole:]
        made[at + 2] = [one for place, one in enumerate(made[at + 2]) if (place - hole) % 7]
    _check(_capture(tmp_path / "cut.pcap", made), f":{FIRST + 1}", tmp_path, 1)


@pytest.mark.parametrize(
    "name",
    [path.name for path in sorted(HOSTILE.glob("bad8_*.pcap"))]
    + ["snap96_small.pcap", "snap96_pika_mix.pcap", "report_none.pcap"],
)
def test_captures(name: str, tmp_path: Path) -> None:
    capture = HOSTILE / name
    listed = run("connections", capture, "--format", "ndjson").out.splitlines()
    connection = json.loads(listed[0])["connection_id"]
    for way in BY_NAME:
        every_way.check(way, every_way.go(way, capture, capture, connection, tmp_path))
    shown = run("diagnose", capture, "--format", "ndjson").out
    assert ("text-not-utf8" in shown) == name.startswith("bad8_")


def test_a_property_that_no_column_holds() -> None:
    shown = run("diagnose", HOSTILE / "tables.pcap", "--format", "ndjson").out.splitlines()
    found = [row for row in map(json.loads, shown) if row["code"] == "number-out-of-range"]
    assert [row["packet_number"] for row in found] == [15]


def test_names_are_the_same_in_columns_and_in_the_topology() -> None:
    """A name that is not UTF-8 has one form wherever names are counted and compared."""
    shown = run("topology", HOSTILE / "bad8_q.pcap", "--format", "json").out
    queues = {row["queue"] for row in json.loads(shown)["queues"] if row["declared"]}
    rows = run("export", HOSTILE / "bad8_q.pcap", "-t", "frames").out.splitlines()
    declared = [row for row in map(json.loads, rows) if row["method"] == "queue.declare"]
    assert queues == {row["queue"] for row in declared}
    assert declared[0]["arguments"]["queue"].keys() == {"base64"}


def test_every_text_has_a_place() -> None:
    """The conversation has every text argument of 0-9-1, and names and values of tables."""
    frames = full()
    found = {(frames[place[0]].row.name, place[1]) for place in texts(frames)}
    rows = conversations.methods("0-9-1")
    asked = {(row.name, one.name) for row in rows for one in row.arguments if one.type in "sSF"}
    assert asked <= found
