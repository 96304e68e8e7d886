"""Processes, containers and pods of ptcpdump's packet comments, and what eCapture writes.

Captures are written anew with the blocks and options that these programs write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture import open_capture
from amqpsniff.capture.pcapng_interface import OPT_COMMENT
from amqpsniff.capture.pcapng_writer import PcapngWriter
from amqpsniff.tables.schema import PROCESSES
from amqpsniff.tls.secrets import KEY_LOG
from tests.conftest import SAMPLES

BROKER_PORT = 5672
FLAGS, INBOUND, OUTBOUND = 2, 1, 2
COLUMNS = ["client", *sorted(PROCESSES)]

SHOP = "PID: 4711\nCmd: /usr/bin/python3.11\nArgs: python3 shop.py --password s3cret\nPodName: none"
THREAD = "ThreadId: 4712\nThreadName: python3"
PARENT = "ParentPID: 1\nParentCmd: /sbin/init\nParentArgs: init"
BROKER = "PID: 99\nCmd: /usr/lib/erlang/erts-13.1.5/bin/beam.smp\nArgs: beam.smp -W w..."
CONTAINER = (
    "ContainerName: shop\nContainerId: 6f2d\nContainerImage: shop:1\n"
    f"ContainerLabels: {json.dumps({'io.kubernetes.pod.name': 'shop-7c9'})}"
)
POD = (
    "PodName: shop-7c9\nPodNamespace: orders\nPodUID: 1-2-3\nPodLabels: {}\n"
    'PodAnnotations: {"token":"s3cret"}'
)

Comments = Callable[[bool, int], Iterable[str]]
"""Comments of a packet: whether the client sent it, and its number."""


def ptcpdump(path: Path, comments: Comments, source: Path = SAMPLES / "node.pcap") -> Path:
    """A capture as ptcpdump writes it: two interfaces, comments of packets and their direction."""
    with path.open("wb") as file, open_capture(source) as capture:
        writer = PcapngWriter(file, ["ptcpdump: https://github.com/mozillazg/ptcpdump"])
        for name in ("dummy-0", "eth0"):
            writer.interface(1, 0, name, [(12, b"linux")])
        for batch in capture:
            for row in range(batch.begin, batch.end):
                packet = batch.packet(row)
                sent = int.from_bytes(packet[36:38], "big") == BROKER_PORT
                options = [
                    (OPT_COMMENT, text.encode()) for text in comments(sent, batch.number[row])
                ]
                direction = OUTBOUND if sent else INBOUND
                options.append((FLAGS, direction.to_bytes(4, "little")))
                writer.packet(1, batch.ts_ns[row], packet, batch.original[row], options)
    return path


def rows(*paths: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        amqpsniff.open(*paths).table("connections", columns=COLUMNS).to_pylist()
    )
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def test_the_process_on_the_captured_machine(tmp_path: Path) -> None:
    """One process at the packets of both sides: ptcpdump does not say which end it is."""
    path = ptcpdump(tmp_path / "a.pcapng", lambda *_: [SHOP, THREAD, PARENT, CONTAINER, POD])
    (row,) = rows(path)
    del row["client"]
    assert row == {
        "pid": 4711,
        "process": "/usr/bin/python3.11",
        "container": "shop",
        "pod": "orders/shop-7c9",
    }


def test_both_ends_on_the_captured_machine(tmp_path: Path) -> None:
    path = ptcpdump(tmp_path / "a.pcapng", lambda sent, _: [SHOP, POD] if sent else [BROKER])
    (row,) = rows(path)
    assert (row["pid"], row["pod"], row["server_pid"]) == (4711, "orders/shop-7c9", 99)
    assert row["server_process"].endswith("/beam.smp")
    assert "server_pod" not in row


def test_what_is_known_later_and_of_one_side_only(tmp_path: Path) -> None:
    """The container's name comes later than the process, and only at the broker's packets."""
    path = ptcpdump(
        tmp_path / "a.pcapng",
        lambda sent, number: [] if sent else [SHOP, CONTAINER] if number > 20 else [SHOP],
    )
    (row,) = rows(path)
    assert (row["process"], row["container"]) == ("/usr/bin/python3.11", "shop")
    assert "server_pid" not in row


@pytest.mark.parametrize(
    "comments",
    [
        [],
        ["a remark of mine"],
        ["PID: many\nCmd: x"],
        ["PodName: \nPodNamespace: orders"],
        ["note\nPID: 5\nCmd: x"],
        ["PID"],
    ],
)
def test_other_comments_name_nothing(tmp_path: Path, comments: list[str]) -> None:
    (row,) = rows(ptcpdump(tmp_path / "a.pcapng", lambda *_: comments))
    assert list(row) == ["client"]


def test_captures_without_comments_beside_one_with_them(tmp_path: Path) -> None:
    named = ptcpdump(tmp_path / "a.pcapng", lambda *_: [SHOP])
    found = rows(SAMPLES / "bunny.pcapng", named, SAMPLES / "kombu.pcap.gz")
    assert len(found) > 2
    assert [row["pid"] for row in found if "pid" in row] == [4711]


def test_they_are_made_where_they_are_named(tmp_path: Path) -> None:
    path = ptcpdump(tmp_path / "a.pcapng", lambda *_: [SHOP, CONTAINER])
    capture = amqpsniff.open(path)
    assert PROCESSES.isdisjoint(capture.table("connections").schema.names)
    found = capture.sql("SELECT process, container FROM connections WHERE pid = 4711")
    assert found.arrow().to_pylist() == [{"process": "/usr/bin/python3.11", "container": "shop"}]
    capture.cut(tmp_path / "cut.pcapng", method="basic.publish")
    (row,) = rows(tmp_path / "cut.pcapng")
    assert row["container"] == "shop"


def ecapture(path: Path, keys: Iterable[str], after: int) -> Path:
    """A capture as eCapture writes it: a block for each secret, all `after` some packets."""
    with path.open("wb") as file, open_capture(SAMPLES / "tls13.pcap") as capture:
        writer = PcapngWriter(file, ["see https://ecapture.cc for more information."])
        for name in ("eth0", "lo", "eth0"):
            writer.interface(1, 65_535, name, [(OPT_COMMENT, "eCapture (旁观者)".encode())])
        number = 0
        for batch in capture:
            for row in range(batch.begin, batch.end):
                for line in keys if number == after else ():
                    writer.secrets(KEY_LOG, f"{line}\n".encode())
                writer.packet(0, batch.ts_ns[row], batch.packet(row), batch.original[row])
                number += 1
    return path


KEYS = (SAMPLES / "tls13.keys").read_text().split("\n")
LABELS = [line for line in KEYS if "_SECRET" in line]
PADDED = [f"{line:0<{len(line) + 128 - len(line.split()[2])}}" for line in LABELS]
"""For ciphers that it does not know eCapture writes all 64 bytes of its buffer."""


@pytest.mark.parametrize("after", [0, 12])
@pytest.mark.parametrize(
    "keys",
    [
        LABELS,
        [line for line in LABELS if "HANDSHAKE" not in line],
        PADDED,
    ],
    ids=["all", "without handshake", "padded"],
)
def test_ecapture(tmp_path: Path, keys: list[str], after: int) -> None:
    """Its packets are encrypted; the secrets are blocks of the file, also some packets later."""
    path = ecapture(tmp_path / "a.pcapng", keys, after)
    found = amqpsniff.open(path).table("messages", columns=["method", "body_size"])
    kept = amqpsniff.open(SAMPLES / "tls13.pcap", tls_keylog=SAMPLES / "tls13.keys")
    assert found == kept.table("messages", columns=["method", "body_size"])
    assert found.num_rows


def test_key_log_of_ecapture(tmp_path: Path) -> None:
    """`-m keylog` writes a line for each secret, in any order, without a comment."""
    path = tmp_path / "ecapture_masterkey.log"
    path.write_text("".join(f"{line}\n" for line in reversed(PADDED)))
    capture = amqpsniff.open(SAMPLES / "tls13.pcap", tls_keylog=path)
    assert capture.table("messages").num_rows
