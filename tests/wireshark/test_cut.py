"""`amqpsniff cut` writes the packets of a part of the traffic, and they are what they were."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.capture import open_capture
from amqpsniff.errors import UsageError
from tests.capture import build
from tests.cli.running import process, run, write_capture
from tests.conftest import SAMPLES
from tests.tcp.wire import Packet

PIKA = SAMPLES / "pika_mix.pcap"


def packets(path: Path) -> list[tuple[int, bytes]]:
    """Time and bytes of each packet."""
    return [(ts_ns, octets) for _, ts_ns, octets, *_ in build.rows(open_capture(path))]


def numbers(path: Path, part: Path) -> list[int]:
    """The numbers that packets of a part have in the capture."""
    before = packets(path)
    found = [before.index(packet) + 1 for packet in packets(part)]
    assert found == sorted(found)
    return found


def test_a_message_with_its_content_and_outcomes(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    assert run("cut", PIKA, "--message-id", "m13", "-o", part) == (
        0, "", f"amqpsniff: 9 packets of 2 connections, 4.31 kB, in {part}\n"
    )  # fmt: skip
    expected: set[int] = set()
    for row in amqpsniff.open(PIKA).trace(message_id="m13")[0].rows:
        last, outcome = row["last_packet_number"], row["outcome_packet_number"]
        expected.update((row["packet_number"], last, outcome))
    assert expected < set(numbers(PIKA, part))
    messages = amqpsniff.open(part).messages(message_id="m13")
    assert [message.method for message in messages] == ["basic.publish", *["basic.deliver"] * 2]
    assert all(message.status == "complete" for message in messages)


def test_connections_are_written_as_they_are(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    done = amqpsniff.open(PIKA).cut(part, connection=":43706")
    assert (done.packets, done.connections) == (224, 1)
    for table in ("frames", "messages", "connections", "findings"):
        columns = ["connection_id", "ts_ns"] if table != "connections" else ["start_ns", "end_ns"]
        before = amqpsniff.open(PIKA).table(table, columns=columns, connection=":43706")
        assert amqpsniff.open(part).table(table, columns=columns).equals(before) or (
            table == "findings"  # those about all connections are less
        )
    whole = tmp_path / "whole.pcapng"
    assert amqpsniff.open(PIKA).cut(whole, connection=":43706", method="tx.*", whole=True) == done
    assert packets(whole) == packets(part)


def test_times_and_numbers(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    assert run("cut", PIKA, "--packet", "42-46", "-o", part).code == 0
    assert numbers(PIKA, part) == [42, 43, 44, 45, 46]
    assert " 1 packet of 1 connection, " in run("cut", PIKA, "--packet", "325", "-o", part).err
    assert run("cut", PIKA, "--from", "0.0148", "--to", "0.0188", "-o", part).code == 0
    assert numbers(PIKA, part)[0] == 42
    first = packets(PIKA)[0][0]
    assert all(14_800_000 <= at - first < 18_800_000 for at, _ in packets(part))
    assert run("cut", PIKA, "--packet", "42", "--whole", "-q", "-o", part) == (0, "", "")
    (connection,) = amqpsniff.open(part).table("connections").to_pylist()
    assert connection["client"].endswith(":43700")


def test_findings_and_where(tmp_path: Path) -> None:
    part, code = tmp_path / "part.pcapng", "channel-closed-by-broker"
    assert run("cut", PIKA, "--finding", code, "-o", part).code == 0
    found = {one.packet_number for one in amqpsniff.open(PIKA).findings() if one.code == code}
    assert found
    assert found <= set(numbers(PIKA, part))
    where = "method = 'channel.close'"
    assert run("cut", PIKA, "--where", where, "-o", part).code == 0
    frames = amqpsniff.open(PIKA).table("frames", where=where)
    assert numbers(PIKA, part) == frames.column("packet_number").to_pylist()
    assert run("cut", PIKA, "--finding", "nonsense", "-o", part).code == 2


def test_a_frame_over_several_packets(tmp_path: Path) -> None:
    """All of them are there, so the frame is whole."""
    part = tmp_path / "part.pcapng"
    capture = amqpsniff.open(SAMPLES / "lost.pcap")
    done = capture.cut(part, where="size > 2000")
    assert done.packets
    bodies = amqpsniff.open(part).table("frames", where="size > 2000").num_rows
    assert bodies == capture.table("frames", where="size > 2000").num_rows


@pytest.mark.parametrize("words", [("--packet", "24"), ("--from", "0.011", "--to", "0.012")])
def test_times_and_packets_of_tls(words: tuple[str, ...], tmp_path: Path) -> None:
    """The whole conversation to which they belong, which can be decrypted; the other one is not."""
    part, source = tmp_path / "part.pcapng", SAMPLES / "tls12.pcapng"
    result = run("cut", "tls12.pcapng", *words, "-o", part)
    assert "of 1 connection," in result.err
    client = "127.0.0.1:33420"
    kept = amqpsniff.open(part).table("frames", columns=["method"])
    assert kept == amqpsniff.open(source).table("frames", columns=["method"], connection=client)


def test_tls_stays_whole_with_its_secrets(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    assert run("cut", "tls12.pcapng", "--method", "publish", "-o", part).code == 0
    assert packets(part) == packets(SAMPLES / "tls12.pcapng")
    columns = ["connection_id", "ts_ns", "method", "routing_key"]
    assert (
        amqpsniff.open(part)
        .table("frames", columns=columns)
        .equals(amqpsniff.open(SAMPLES / "tls12.pcapng").table("frames", columns=columns))
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_interfaces_and_comments_stay(order: str, tmp_path: Path) -> None:
    """In either byte order, with the options of packets."""
    path, part = tmp_path / "whole.pcapng", tmp_path / "part.pcapng"
    octets = packets(SAMPLES / "bunny.pcapng")
    comment = struct.pack(f"{order}HH", 1, 7) + b"look at\0" + bytes(4)
    flags = struct.pack(f"{order}HHI", 2, 4, 1)
    blocks = [
        build.section(order),
        build.interface(order, (2, b"eth7"), (3, b"to the broker"), (1, b"mirror port")),
    ]
    for number, (_, packet) in enumerate(octets):
        made = build.enhanced(order, 1_700_000_000_000_000 + number, packet)
        if number == 9:
            kind, length = struct.unpack(f"{order}II", made[:8])
            size = length + len(flags + comment)
            made = struct.pack(f"{order}II", kind, size) + made[8:-4] + flags + comment
            made += struct.pack(f"{order}I", size)
        blocks.append(made)
    path.write_bytes(b"".join(blocks))
    amqpsniff.open(path).cut(part, packet="5-20")
    assert packets(part) == packets(path)[4:20]
    written = part.read_bytes()
    for text in (b"eth7", b"to the broker", b"mirror port", b"look at"):
        assert text in written
    assert struct.pack("<HHI", 2, 4, 1) in written
    if shutil.which("tshark"):
        wanted = ("frame.number", "frame.interface_name", "frame.comment")
        fields = [word for name in wanted for word in ("-e", name)]
        done = subprocess.run(
            ["tshark", "-r", part, "-T", "fields", *fields],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[5] == "6\teth7\tlook at"


def in_fragments(path: Path, made: Path) -> Path:
    """The capture again, in IP fragments of 64 bytes of payload, those of a packet backwards."""
    rows = [
        Packet(piece, ts_ns, link_type=1)
        for ts_ns, octets in packets(path)
        for piece in reversed(fragments_of(octets))
    ]
    return write_capture(made, rows)


def fragments_of(octets: bytes) -> list[bytes]:
    """The fragments of an Ethernet frame with IPv4."""
    header, payload = octets[14:34], octets[34:]
    pieces = []
    for at in range(0, len(payload), 64):
        piece = payload[at : at + 64]
        more = at + 64 < len(payload)
        field = more << 13 | at // 8
        sizes = struct.pack(">H2sH", 20 + len(piece), header[4:6], field)
        pieces.append(octets[:14] + header[:2] + sizes + header[8:] + piece)
    return pieces


@pytest.mark.parametrize("filters", [{"connection": ":43706"}, {"message_id": "m13"}])
def test_ip_fragments_come_together(filters: dict[str, str], tmp_path: Path) -> None:
    """All packets of a chosen segment are written, and none of others."""
    source = in_fragments(PIKA, tmp_path / "whole.pcap")
    part, fragments = tmp_path / "part.pcapng", tmp_path / "fragments.pcapng"
    amqpsniff.open(PIKA).cut(part, **filters)
    amqpsniff.open(source).cut(fragments, **filters)
    wanted = [piece for _, octets in packets(part) for piece in reversed(fragments_of(octets))]
    assert [octets for _, octets in packets(fragments)] == wanted


def test_several_captures(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    names = [PIKA, SAMPLES / "node.pcap"]
    done = amqpsniff.open(*names).cut(part, method="queue.declare")
    alone = [amqpsniff.open(name).cut(os.devnull, method="queue.declare") for name in names]
    assert done.packets == sum(one.packets for one in alone)
    times = [at for at, _ in packets(part)]
    assert times == sorted(times)


def test_what_cannot_be(tmp_path: Path) -> None:
    part = tmp_path / "part.pcapng"
    assert process("cut", "-", "-o", part, octets=PIKA.read_bytes()).code == 2
    said = run("cut", PIKA, "--queue", "nothing", "-o", part).err
    assert said.startswith("amqpsniff: warning: no packet matches the options\n")
    assert packets(part) == []
    copy = shutil.copy(PIKA, tmp_path / "copy.pcap")
    assert run("cut", copy, "-o", copy).code == 2
    with pytest.raises(UsageError, match="is the capture itself"):
        amqpsniff.open(copy).cut(copy)
    assert packets(Path(copy)) == packets(PIKA)
