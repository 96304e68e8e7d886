"""Queues, exchanges and bindings of clients that send requests to RabbitMQ's `/management`."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from tests.archive.splits import packets_of, write_pcap
from tests.cli.running import run
from tests.conftest import CAPTURES

CAPTURE = CAPTURES / "amqp10" / "rabbitmq43_declared.pcap.gz"
BEFORE_DELETIONS = "0.243"

QUORUM = {"x-queue-type": "quorum", "x-deliver-limit": 5, "x-dead-letter-exchange": "dead"}
QUEUES = {
    "orders eu": (True, False, False, QUORUM),
    "work": (True, True, True, {"x-queue-type": "classic", "x-message-ttl": 60000}),
    "log": (True, False, False, {"x-queue-type": "stream", "x-max-age": "3600s"}),
}
EXCHANGES = {
    "shop/orders": ("topic", True, False, False),
    "audit": ("headers", True, False, False),
    "dead": ("fanout", True, False, True),
}


def topology(path: Path, *words: str) -> dict[str, Any]:
    """The topology as the command writes it."""
    result = run("topology", path, "--format", "json", *words)
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def queues(found: dict[str, Any]) -> dict[str, Any]:
    """Durable, exclusive, auto-delete and arguments of what was declared, by name."""
    names = ("durable", "exclusive", "auto_delete", "arguments")
    declared = [row for row in found["queues"] if row["declared"]]
    return {row["queue"]: tuple(row[name] for name in names) for row in declared}


def bindings(found: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Ends, key, arguments and whether it was removed."""
    names = ("exchange", "destination_type", "destination", "routing_key")
    return {
        (*(row[name] for name in names), row["arguments"].get("x-match"), row["removed"])
        for row in found["bindings"]
    }


def test_what_was_declared() -> None:
    """Types, flags and arguments; refused requests declare nothing, and `/management` is no queue.

    Of two bindings that differ in their arguments the one whose path was asked for is removed.
    """
    found = topology(CAPTURE, "--to", BEFORE_DELETIONS)
    assert queues(found) == QUEUES
    names = ("type", "durable", "auto_delete", "internal")
    declared = [row for row in found["exchanges"] if row["declared"]]
    assert {row["exchange"]: tuple(map(row.get, names)) for row in declared} == EXCHANGES
    assert bindings(found) == {
        ("shop/orders", "queue", "orders eu", "eu.#", None, True),
        ("shop/orders", "exchange", "audit", "#", None, False),
        ("dead", "queue", "log", "", None, False),
        ("audit", "queue", "log", "", "all", True),
        ("audit", "queue", "log", "", "any", False),
    }
    assert {row["queue"] for row in found["queues"]} == QUEUES.keys()
    assert [row["exchange"] for row in found["publishers"]] == [""]
    assert not found["consumers"]


def test_what_was_deleted() -> None:
    """Deletions remove bindings too; with and without Arrow it is the same."""
    found = topology(CAPTURE)
    gone = {row["queue"] for row in found["queues"] if row["removed"]}
    assert gone == {"orders eu", "log"}
    gone = {row["exchange"] for row in found["exchanges"] if row["removed"]}
    assert gone == {"shop/orders", "dead"}
    assert all(row["removed"] for row in found["bindings"])
    assert topology(CAPTURE, "--channel", "0") == found


def part(tmp_path: Path, *, begin: int = 0, snap: int = 65535, side: str = "") -> Path:
    """A part of the capture: from a packet on, cut, or of one side."""
    packets = []
    for packet in packets_of([CAPTURE])[begin:]:
        from_broker = packet.octets[34:36] == (5672).to_bytes(2, "big")
        if side in ("", "server" if from_broker else "client"):
            packets.append(packet._replace(octets=packet.octets[:snap]))
    return write_pcap(tmp_path / "part.pcap", packets)


def test_from_before_the_capture(tmp_path: Path) -> None:
    """Links whose attach was not captured are known by what is sent on them."""
    path = part(tmp_path, begin=25)
    found = topology(path)
    assert queues(found) == QUEUES
    assert len(bindings(found)) == len(found["bindings"]) == 5
    refused = run("diagnose", path, "--only", "management-refused").out
    assert "PUT /queues/orders%20eu" in refused


def test_one_side_alone(tmp_path: Path) -> None:
    """Answers tell of queues what requests do not; requests alone may have been refused."""
    assert queues(topology(part(tmp_path, side="server"))) == QUEUES
    assert not queues(topology(part(tmp_path, side="client")))


def test_bodies_that_were_cut(tmp_path: Path) -> None:
    """What was answered is there; of what its cut body said nothing is known."""
    found = queues(topology(part(tmp_path, snap=300)))
    assert found["orders eu"] == (None, None, None, None)
    assert found["log"] == QUEUES["log"]
    topology(part(tmp_path, snap=190))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xa1\x03204", b"\xa1\x03004"),
        (b"\x00\x53\x74", b"\x00\x53\x73"),  # the section `properties` twice
        (b"\x00\x53\x77", b"\x00\x53\x73"),
        (b"/queues/", b"/auth/tt"),
        (b"\xa1\x04name", b"\xa1\x04nama"),
        (b"\xa1\x0bbinding_key", b"\xa1\x0bbinding_kex"),
        (b"\x43", b"\x41"),
    ],
)
def test_what_nobody_sends(before: bytes, after: bytes, tmp_path: Path) -> None:
    """Arguments stay JSON, and commands work, with the same topology by either way."""
    packets = [
        packet._replace(octets=packet.octets[:66] + packet.octets[66:].replace(before, after))
        for packet in packets_of([CAPTURE])
    ]
    path = write_pcap(tmp_path / "damaged.pcap", packets)
    assert all(isinstance(row.arguments, dict | None) for row in amqpsniff.open(path).frames())
    assert topology(path, "--channel", "0")["queues"] == topology(path)["queues"]
    assert run("summary", path).code in (0, 1)


def test_depths() -> None:
    """Answers tell how many messages and consumers a queue has, as queue.declare-ok does."""
    result = run("summary", CAPTURE, "--format", "json")
    found = {row["queue"]: row for row in json.loads(result.out)["queues"]["rows"]}
    assert (found["orders eu"]["message_count"], found["orders eu"]["consumer_count"]) == (2, 0)
    assert list(found) == ["orders eu"]  # not /management
    errors = json.loads(result.out)["errors"]
    assert sorted(one["reply_code"] for one in errors) == [400, 403, 404, 409]


def test_frames() -> None:
    """A request has its names, and its answer unless it was refused; an answer has its status."""
    found = {row.packet_number: row for row in amqpsniff.open(CAPTURE).frames()}
    asked = found[55]
    assert (asked.queue, asked.response_packet_number) == ("orders eu", 56)
    assert asked.response_ns == 568_000
    assert (found[56].reply_code, found[56].reply_text) == (200, None)
    assert found[64].response_packet_number is None
    assert found[65].reply_code == 409
    assert str(found[65].reply_text).startswith("inequivalent arg")
    asked = found[60]
    path = "/bindings/src=shop%2Forders;dstq=orders%20eu;key=eu.%23;args="
    assert (asked.arguments or {})["management"]["path"] == path
    named = asked.exchange, asked.queue, asked.routing_key
    assert named == ("shop/orders", "orders eu", "eu.#")


def test_lines() -> None:
    """Lists show requests by method and path, and filters by name find them."""
    shown = run("inspect", CAPTURE, "--queue", "orders eu", "--where", "method = 'transfer'").out
    assert "transfer GET /queues/orders%20eu handle" in shown
    assert "ok 568 µs" in shown
    assert '409 "inequivalent arg' in run("inspect", CAPTURE, "--errors").out
    sent = run("messages", CAPTURE, "--limit", "1").out
    assert "send dt=0 /exchanges/shop%2Forders 63 B" in sent


@pytest.mark.parametrize("secrets", [(), ("--show-secrets",)])
def test_tokens_are_no_declarations(secrets: tuple[str, ...]) -> None:
    """The body of PUT /auth/tokens is not among the arguments."""
    path = CAPTURES / "amqp10" / "rabbitmq43_management.pcap.gz"
    shown = run("inspect", path, "--where", "method = 'transfer'", *secrets).out
    assert "PUT /auth/tokens handle" in shown
    assert "eyJ" not in shown


def test_a_safe_capture_declares_the_same(tmp_path: Path) -> None:
    """Without secrets it has the same exchanges, queues and bindings."""
    path = tmp_path / "safe.pcapng"
    assert run("sanitize", CAPTURE, "-o", path).code == 0
    safe, found = (topology(one, "--to", BEFORE_DELETIONS) for one in (path, CAPTURE))
    assert bindings(safe) == bindings(found)
    assert queues(safe).keys() == queues(found).keys()
    assert queues(safe)["work"] == QUEUES["work"]
    assert b"rab@localhost" not in path.read_bytes()


def test_declarations_under_pseudonyms(tmp_path: Path) -> None:
    """With pseudonyms for names there are as many of each, removed or not, and purged queues."""
    path = tmp_path / "safe.pcapng"
    assert run("sanitize", CAPTURE, "-o", path, "--names").code == 0
    safe, found = topology(path), topology(CAPTURE)
    for kind, columns in (
        ("exchanges", ("type", "durable", "internal", "removed")),
        ("queues", ("durable", "exclusive", "auto_delete", "removed")),
        ("bindings", ("destination_type", "removed")),
    ):
        shape, expected = (
            Counter(tuple(row[column] for column in columns) for row in one[kind])
            for one in (safe, found)
        )
        assert shape == expected
    octets = path.read_bytes()
    assert b"/messages" in octets
    for name in (b"orders", b"audit", b"dead", b"work", b"log"):
        assert b"/" + name not in octets
        assert b"=" + name not in octets


def test_archives(tmp_path: Path) -> None:
    """The report of an archive has the same edges as that of the capture."""
    here = run("report-table", "topology", CAPTURE, "--format", "csv")
    edges = list(csv.reader(here.out.splitlines()))
    assert ["/", "exchange", "audit", "queue", "log", "", "true", "", ""] in edges
    batch = run("batch", CAPTURE, "-o", tmp_path / "tables", "-q", "--report", "topology")
    assert batch.code == 0, batch.err
    written = (tmp_path / "tables" / "reports" / "topology.csv").read_text()
    assert list(csv.reader(written.splitlines())) == edges
