"""Methods that tshark sees are the methods we see; where the two differ is listed with the reason.

A disagreement that is gone fails too, so that the lists stay true.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.spec import METHODS
from tests.conftest import SHARED

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark"),
]

CAPTURES = SHARED / "captures"
NOT_DECODED = {"TLSv1_3.pcap", "amqp10.pcap"}  # encrypted; another protocol
Seen = Counter[tuple[int, int, int, int]]
"""How often a packet completes a method on a channel: (packet, channel, class, method)."""

ONLY_OURS: dict[str, Seen | None] = {
    # tshark shows no method number where it does not know the class.
    "violations.pcap": Counter({(797, 1, 99, 10): 1}),
    # tshark gives a stream up where the snap length cut it; None: how many is not said.
    "zerowindow.pcap": None,
}

IDS: dict[str, set[tuple[int, int]]] = defaultdict(set)
for _row in METHODS:
    IDS[_row.name].add((_row.class_id, _row.method_id))


def paths() -> list[Path]:
    """Captures of ours and of others."""
    own = sorted((CAPTURES / "own").glob("*.pcap"))
    others = [
        path
        for path in sorted((CAPTURES / "public").glob("*/*"))
        if path.suffix in (".pcap", ".pcapng") and path.parent.name not in ("negative", "formats")
    ]
    return [path for path in own + others if path.name not in NOT_DECODED]


def tshark(path: Path, rows: list[dict[str, Any]], *arguments: str) -> str:
    """What tshark writes of the AMQP packets of a capture, told the servers' ports."""
    ports = {row["server"].rpartition(":")[2] for row in rows if row["server"]}
    decode_as = [word for port in sorted(ports) for word in ("-d", f"tcp.port=={port},amqp")]
    command = ["tshark", "-n", "-r", str(path), "-o", "tcp.reassemble_out_of_order:TRUE"]
    run = subprocess.run(
        [*command, *decode_as, "-Y", "amqp", *arguments], capture_output=True, text=True, check=True
    )
    return run.stdout


FIELDS = ("frame.number", "amqp.type", "amqp.channel", "amqp.method.class", "amqp.method.method")


def methods_of_tshark(path: Path, rows: list[dict[str, Any]]) -> Seen:
    """Methods by their numbers."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    seen: Seen = Counter()
    for line in tshark(path, rows, "-T", "fields", "-E", "aggregator=,", *fields).splitlines():
        number, *columns = line.split("\t")
        types, channels, classes, methods = ([*filter(None, c.split(","))] for c in columns)
        of_methods = [
            channel for kind, channel in zip(types, channels, strict=False) if kind == "1"
        ]
        for each in zip(of_methods, classes, methods, strict=False):
            channel, class_id, method_id = map(int, each)
            seen[int(number), channel, class_id, method_id] += 1
    return seen


def numbers_of(row: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    """What a row may stand for: some names have other numbers in another dialect."""
    ids = IDS.get(row["method"])
    if ids is None:
        class_id, method_id = map(int, row["method"].split("."))
        ids = {(class_id, method_id)}
    return [(row["packet_number"], row["channel"], *pair) for pair in sorted(ids)]


def frames(path: Path) -> list[dict[str, Any]]:
    """Rows of frames."""
    columns = ("packet_number", "server", "channel", "frame_type", "method")
    rows: list[dict[str, Any]] = amqpsniff.open(path).table("frames", columns=columns).to_pylist()
    return rows


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.name)
def test_methods(path: Path) -> None:
    rows = frames(path)
    theirs = methods_of_tshark(path, rows)
    ours: Seen = Counter()
    for row in rows:
        if row["method"] is not None:
            maybe = numbers_of(row)
            ours[next((key for key in maybe if theirs[key] > ours[key]), maybe[0])] += 1
    assert theirs - ours == Counter()
    expected = ONLY_OURS.get(path.name, Counter())
    if expected is None:
        assert ours - theirs
    else:
        assert ours - theirs == expected


NAMED: dict[str, Counter[tuple[str, str]]] = {
    "amqplib08": Counter(
        {
            # 10/60 and 10/61 close in 0-8; tshark knows them as RabbitMQ's 0-9-1 has them.
            ("connection.close", "connection.blocked"): 1,
            ("connection.close-ok", "connection.unblocked"): 1,
        }
    ),
    # tshark has 40/41, RabbitMQ sends 40/51.
    "pika_mix": Counter({("exchange.unbind-ok", "exchange.?"): 1}),
    "v08_v09": Counter(
        {
            ("connection.close", "connection.blocked"): 3,
            ("connection.close-ok", "connection.unblocked"): 1,
            # No method of 0-8.
            ("85.10", "confirm.select"): 1,
            ("60.99", "basic.?"): 1,
        }
    ),
    "violations": Counter(
        {
            ("99.10", "?.?"): 1,
            ("60.99", "basic.?"): 1,
            # 10/70 and 10/71 are younger than tshark's list, 60/200 is RabbitMQ's own.
            ("connection.update-secret", "connection.?"): 1,
            ("connection.update-secret-ok", "connection.?"): 1,
            ("basic.credit", "basic.?"): 1,
        }
    ),
}
"""How often we call a method one name and tshark another; `?` where it has none."""

MALFORMED: dict[str, dict[int, str]] = {
    # channel.open-ok of 0-8 has no argument, basic.consume of 0-8 no table.
    "amqplib08": {15: "channel.open-ok", 131: "basic.consume"},
    "pika_mix": {},
    "v08_v09": {
        16: "channel.open-ok",
        21: "basic.consume",
        52: "channel.open-ok",
        72: "channel.open-ok",
        97: "channel.open-ok",
        115: "channel.open-ok",
    },
    # Here both agree: its arguments are cut.
    "violations": {833: "queue.declare"},
}
"""Packets that tshark calls malformed, and the method in each."""


def words(field: ET.Element | None) -> str:
    """The word in `Method: Close-Ok (51)`; a question mark where tshark has none."""
    shown = "" if field is None else field.get("showname", "")
    found = re.fullmatch(r"\w+: ([\w-]+) \(\d+\)", shown)
    return "?" if found is None or found[1].startswith("Unknown") else found[1].lower()


def named_by_tshark(text: str) -> Iterator[tuple[int, str, bool]]:
    """Methods as (packet, name, whether tshark finds the packet malformed)."""
    for packet in ET.fromstring(text).iter("packet"):
        number = packet.find("proto[@name='geninfo']/field[@name='num']")
        assert number is not None
        malformed = any(each.get("name") == "_ws.malformed" for each in packet.iter("proto"))
        for frame in packet.iterfind("proto[@name='amqp']"):
            class_field = frame.find(".//field[@name='amqp.method.class']")
            if class_field is not None:
                method = frame.find(".//field[@name='amqp.method.method']")
                name = f"{words(class_field)}.{words(method)}"
                yield int(number.get("show", "")), name, malformed


@pytest.mark.parametrize("name", NAMED)
def test_names(own_captures: Path, name: str) -> None:
    path = own_captures / f"{name}.pcap"
    rows = frames(path)
    ours: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        if row["method"] is not None:
            ours[row["packet_number"]].append(row["method"])
    theirs: dict[int, list[str]] = defaultdict(list)
    malformed: dict[int, str] = {}
    for number, method, bad in named_by_tshark(tshark(path, rows, "-T", "pdml", "-J", "amqp")):
        theirs[number].append(method)
        if bad:
            malformed[number] = method
    assert ours.keys() == theirs.keys()
    differ = Counter(
        pair
        for number in ours
        for pair in zip(sorted(ours[number]), sorted(theirs[number]), strict=True)
        if pair[0] != pair[1]
    )
    assert differ == NAMED[name]
    assert malformed == MALFORMED[name]


def test_what_tshark_calls_malformed_is_whole(own_captures: Path) -> None:
    """But for the packet whose arguments really are cut."""
    for name, packets in MALFORMED.items():
        found = amqpsniff.open(own_captures / f"{name}.pcap").table("findings").to_pylist()
        cut = {row["packet_number"] for row in found if row["code"] == "arguments-truncated"}
        assert packets.keys() & cut == ({833} if name == "violations" else set())
