"""Captures that are still being written: pipes, growing files, rings of files, and rotation."""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.capture.sources import read
from amqpsniff.capture.tail import FileCapture
from amqpsniff.capture.writer import CaptureWriter, Rotation
from amqpsniff.errors import CaptureError
from tests.cli.running import run
from tests.conftest import SAMPLES
from tests.live.sniffing import Sniffer, rows_of, taken
from tests.live.test_rows import alike
from tests.tcp.wire import IPV4_LINK, Talk
from tests.waiting import wait_for

SAMPLE = SAMPLES / "pika_mix.pcap"


def packets_of(batches: Any) -> list[tuple[int, bytes]]:
    """Times and bytes."""
    return [
        (batch.ts_ns[row], batch.packet(row))
        for batch in batches
        for row in range(batch.begin, batch.end)
    ]


def expected(table: str = "messages") -> list[dict[str, Any]]:
    """Rows of the sample."""
    return rows_of(run("export", SAMPLE, "-t", table).out)


def test_a_condition_names_columns_that_are_made_only_where_they_are_named(tmp_path: Path) -> None:
    where = "published_packet_number = 42"
    with SAMPLE.open("rb") as file:
        options = ("-t", "messages", "--where", where)
        sniffer = Sniffer("-", *options, folder=tmp_path, stdin=file)
        assert sniffer.finish() == 0, sniffer.err
    (row,) = sniffer.rows()
    assert row["method"] == "basic.deliver"
    assert "published_packet_number" not in row, "it chooses rows, and is not shown"
    (message,) = amqpsniff.watch(capture=str(SAMPLE), packets=568, where=where)
    assert (message.packet_number, message.link_confidence) == (row["packet_number"], "exact")


def test_rows_of_a_run_have_bodies_and_what_packs_say(tmp_path: Path) -> None:
    pack = tmp_path / "shop.toml"
    pack.write_text(
        '[shop]\nframework = "shop"\nwhen = "exchange ~ ^orders"\noperation = "message_id"\n'
    )
    options: Any = {"bodies": True, "body_sha256": True, "packs": pack}
    run = amqpsniff.watch(capture=str(SAMPLE), packets=568, message_id="m13", **options)
    live = next(run)
    (read, *_) = amqpsniff.open(SAMPLE, **options).messages(message_id="m13")
    assert live.body is not None
    assert live.body_sha256 is not None
    assert live.operation == "m13"
    assert live == read


@pytest.mark.parametrize("table", ["messages", "frames", "connections", "channels"])
def test_pipe_gives_the_rows_of_the_file(tmp_path: Path, table: str) -> None:
    """A capture on standard input, and the file that is written of it."""
    with SAMPLE.open("rb") as file:
        sniffer = Sniffer("-", "-t", table, "-w", "kept.pcapng", folder=tmp_path, stdin=file)
        assert sniffer.finish() == 0, sniffer.err
    assert alike(sniffer.rows()) == alike(expected(table))
    written = packets_of(read([tmp_path / "kept.pcapng"]))
    assert written == packets_of(read([SAMPLE]))


def test_a_hole_before_silence(tmp_path: Path) -> None:
    """What is behind a packet that never comes is given although no other one comes."""
    talk = Talk().hands()
    talk.client(b"AMQP\x00\x00\x09\x01")
    lost = talk.client(b"\x08\x00\x00\x00\x00\x00\x00\xce")
    talk.client(lost.octets[40:] * 4)
    talk.server()
    packets = [packet for packet in talk.packets if packet is not lost]
    reading, writing = os.pipe()
    with os.fdopen(reading) as there, os.fdopen(writing, "wb", buffering=0) as here:
        here.write(struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, IPV4_LINK))
        sniffer = Sniffer("-", "-t", "frames", "--settle", "0.3s", folder=tmp_path, stdin=there)
        for packet in packets:
            seconds, rest = divmod(packet.ts_ns, 10**9)
            length = len(packet.octets)
            here.write(struct.pack("<IIII", seconds, rest, length, length) + packet.octets)
        wait_for(lambda: len(sniffer.rows()) == 5)
    assert sniffer.finish() == 0, sniffer.err
    assert len(sniffer.rows()) == 5


@pytest.mark.parametrize("count", [1, 41, 10_000])
def test_count(tmp_path: Path, count: int) -> None:
    """It ends after so many packets, with the rows and the file of these."""
    with SAMPLE.open("rb") as file:
        arguments = ("-", "-t", "frames", "-c", str(count), "-w", "kept.pcapng")
        sniffer = Sniffer(*arguments, folder=tmp_path, stdin=file)
        assert sniffer.finish() == 0, sniffer.err
    whole = packets_of(read([SAMPLE]))
    assert packets_of(read([tmp_path / "kept.pcapng"])) == whole[:count]
    kept = run("export", tmp_path / "kept.pcapng", "-t", "frames")
    assert alike(sniffer.rows()) == alike(rows_of(kept.out))


def test_file_that_grows(tmp_path: Path) -> None:
    """Rows come as the file grows, in any pieces."""
    octets = SAMPLE.read_bytes()
    growing = tmp_path / "growing.pcap"
    growing.write_bytes(octets[:30])
    sniffer = Sniffer("growing.pcap", folder=tmp_path)
    with growing.open("ab", buffering=0) as file:
        for at in range(30, len(octets), 7001):
            file.write(octets[at : at + 7001])
            time.sleep(0.01)
    rows = expected()
    wait_for(lambda: len(sniffer.rows()) == len(rows))
    assert sniffer.stop() == 0, sniffer.err
    assert alike(sniffer.rows()) == alike(rows)


def test_ring_of_files(tmp_path: Path) -> None:
    """Files that follow each other, also where a name is used again."""
    batches = list(read([SAMPLE], block_bytes=8192))
    ring = tmp_path / "ring"
    ring.mkdir()
    (ring / "notes.txt").write_text("not a capture")

    def write(number: int, batch: PacketBatch) -> None:
        path = ring / f"{number % 3}.pcapng"
        writer = CaptureWriter(path, lambda _: "lo", "test")
        writer.write(batch, [0] * len(batch))
        writer.close()
        os.utime(path, (number, number))  # clocks of file systems are coarse

    write(0, batches[0])
    source = FileCapture([str(ring)])
    found = packets_of(taken(source))
    for number, batch in enumerate(batches[1:], 1):
        write(number, batch)
        found += packets_of(taken(source))
    source.finish()
    source.close()
    assert len(batches) > 6
    assert found == packets_of(batches)
    assert not source.findings


def test_file_that_is_replaced(tmp_path: Path) -> None:
    """A file of the same name that is another one is read from its beginning."""
    path = tmp_path / "one.pcap"
    path.write_bytes(SAMPLE.read_bytes())
    source = FileCapture([str(path)])
    whole = len(packets_of(taken(source)))
    path.rename(tmp_path / "old.pcap")
    assert not taken(source)
    path.write_bytes(SAMPLE.read_bytes())
    assert len(packets_of(taken(source))) == whole
    path.write_bytes(SAMPLE.read_bytes()[:2000])  # cut and begun anew
    assert packets_of(taken(source))
    source.close()


def test_nothing_to_follow(tmp_path: Path) -> None:
    """A name that is not there is said at once."""
    with pytest.raises(CaptureError, match="no such file"):
        FileCapture([str(tmp_path / "missing.pcap")])
    with pytest.raises(CaptureError, match="no capture there"):
        FileCapture([str(tmp_path)])


@pytest.mark.parametrize("keep", [None, 2])
def test_rotation(tmp_path: Path, keep: int | None) -> None:
    """Files of a size each, whole, together all packets; the oldest go where few are kept."""
    rotation = Rotation(octets=20_000, keep=keep)
    writer = CaptureWriter(tmp_path / "r.pcapng", lambda _: "lo", "test", rotation)
    for batch in read([SAMPLE]):
        writer.write(batch, [0] * len(batch))
    writer.close()
    files = sorted(tmp_path.iterdir())
    assert files == list(writer.files)
    assert all(file.stat().st_size <= 20_000 for file in files)
    written = packets_of(batch for file in files for batch in read([file]))
    original = packets_of(read([SAMPLE]))
    if keep is None:
        assert len(files) > 3
        assert written == original
    else:
        assert len(files) == keep
        assert written == original[-len(written) :]


def test_rotation_by_time(tmp_path: Path) -> None:
    """A file that is old enough is followed by another one when there are packets."""
    writer = CaptureWriter(tmp_path / "r.pcapng", lambda _: "lo", "test", Rotation(seconds=0.01))
    for batch in read([SAMPLE], block_bytes=8192):
        writer.write(batch, [0] * len(batch))
        time.sleep(0.02)
    writer.close()
    assert Counter(one.suffix for one in tmp_path.iterdir())[".pcapng"] > 3
    assert writer.packets == len(packets_of(read(sorted(map(os.fspath, tmp_path.iterdir())))))


def test_packets_without_a_time(tmp_path: Path) -> None:
    """They are written with the time 0."""
    (batch,) = read([SAMPLE])
    batch.ts_ns[0] = NO_TIME
    writer = CaptureWriter(tmp_path / "r.pcapng", lambda _: "lo", "test")
    writer.write(batch.slice(0, 2), [0, 0])
    writer.close()
    assert packets_of(read([tmp_path / "r.pcapng"]))[0][0] == 0
