"""What goes wrong while a capture runs: it goes on where it can, and says what happened."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpsniff.capture.live_capture import InterfaceCapture
from amqpsniff.capture.packet_ring import BLOCK_BYTES, RETIRE_MS, RING_PART
from amqpsniff.capture.sources import read
from amqpsniff.capture.writer import CaptureWriter, Rotation
from tests.cli.running import PROGRAM, environment, run
from tests.conftest import SAMPLES
from tests.live.broker import Broker
from tests.live.clients import keep_busy, with_amqp, with_pika
from tests.live.sniffing import Sniffer, rows_of
from tests.live.test_metrics import scraped
from tests.live.test_rows import alike, offline
from tests.processes import descriptors
from tests.waiting import PATIENCE, free_port, wait_for

SAMPLE = SAMPLES / "pika_mix.pcap"


def test_packets_that_come_while_others_are_decoded() -> None:
    """Full blocks are copied before each batch, so more wait than the ring has room for."""
    port = free_port()
    source = InterfaceCapture(["lo"], f"udp port {port}", 4 << 20)
    room = (4 << 20) // RING_PART
    sent, rounds, octets = 0, 6, 60_000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(rounds):
            for _ in range(2 * BLOCK_BYTES // octets):
                sent += sender.sendto(bytes(octets), ("127.0.0.1", port)) // octets
            wait_for(lambda: next(source.take(1 << 40), None))
    assert (sent - source.packets) * octets > room
    wait_for(lambda: not list(source.take(1 << 40)) and source.packets == sent)
    assert not source.statistics().dropped_by_system
    source.close()


@contextlib.contextmanager
def cable(name: str) -> Iterator[str]:
    """A pair of network interfaces."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network interfaces need iproute2 and root")
    commands = (
        f"link add {name}a type veth peer name {name}b",
        f"link set {name}a up",
        f"link set {name}b up",
    )
    try:
        for command in commands:
            if subprocess.run(
                ["ip", *command.split()], capture_output=True, check=False
            ).returncode:
                pytest.skip("no veth interfaces here")
        yield f"{name}a"
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], capture_output=True, check=False)


def says(sniffer: Sniffer, words: str) -> None:
    """Wait until it wrote these words to standard error."""
    assert sniffer.running.stderr is not None
    for line in sniffer.running.stderr:
        sniffer.err += line.decode()
        if words in line.decode():
            return
    raise AssertionError(sniffer.err)


@pytest.mark.parametrize("interfaces", [1, 2])
def test_interface_goes_away_and_comes_back(tmp_path: Path, interfaces: int) -> None:
    """Capturing goes on when there is an interface of that name again."""
    name = f"as{os.getpid() % 10_000}{interfaces}"
    more = ("-i", "lo") if interfaces == 2 else ()
    with cable(name) as interface:
        sniffer = Sniffer("-i", interface, *more, "-w", "kept.pcapng", folder=tmp_path)
        subprocess.run(["ip", "link", "del", interface], check=True)
        says(sniffer, f"interface {interface} went away")
        with cable(name):
            says(sniffer, f"interface {interface} is back")
            time.sleep(2 * RETIRE_MS / 1000)
            before = (tmp_path / "kept.pcapng").stat().st_size
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            sender.bind((interface, 0x88B5))
            sender.send(bytes(12) + b"\x88\xb5" + bytes(50))
            sender.close()
            wait_for(lambda: (tmp_path / "kept.pcapng").stat().st_size > before)
            assert sniffer.stop() == 0, sniffer.err


def test_interface_goes_down_and_up(tmp_path: Path) -> None:
    """One that is there and sees nothing is told from one that is quiet."""
    with cable(f"as{os.getpid() % 10_000}d") as interface:
        sniffer = Sniffer("-i", interface, folder=tmp_path)
        for word in ("down", "up"):
            subprocess.run(["ip", "link", "set", interface, word], check=True)
            says(sniffer, f"interface {interface} is {word}")
        assert sniffer.stop() == 0, sniffer.err


@pytest.mark.broker
def test_broker_restarts(broker: Broker, tmp_path: Path) -> None:
    """Connections end with the broker, and those to the new one are followed."""
    port = str(broker.port)
    sniffer = Sniffer(
        "-i", "lo", "--port", port, "-t", "connections", "-w", "kept.pcapng", folder=tmp_path
    )
    going, over = threading.Event(), threading.Event()

    def busy() -> None:
        with contextlib.suppress(Exception):
            keep_busy("127.0.0.1", broker.port, going, over)

    running = threading.Thread(target=busy)
    running.start()
    assert going.wait(PATIENCE)
    broker.stop()
    over.set()
    running.join()
    broker.start()
    with_pika("127.0.0.1", broker.port)
    assert sniffer.stop() == 0, sniffer.err
    live = sniffer.rows()
    assert [row["closed_by"] for row in live][-1] == "client"
    assert {"fin", "rst", "server"} & {row["closed_by"] for row in live[:-1]}
    assert alike(live) == alike(offline(tmp_path / "kept.pcapng", "connections", "--port", port))


@pytest.mark.broker
def test_disk_is_full(broker: Broker, tmp_path: Path) -> None:
    """The file ends whole, rows go on, and the exit code says that something is missing."""

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    sniffer = Sniffer(
        "-i", "lo", "--port", str(broker.port), "-w", "kept.pcapng", folder=tmp_path,
        stdout=subprocess.PIPE, preexec_fn=small_files,
    )  # fmt: skip
    with_amqp("127.0.0.1", broker.port)
    says(sniffer, "packets are not written any more")
    sniffer.running.send_signal(signal.SIGINT)
    out, _ = sniffer.running.communicate(timeout=PATIENCE)
    assert sniffer.running.returncode == 3
    assert len(rows_of(out.decode())) == 120
    kept = tmp_path / "kept.pcapng"
    assert 0 < kept.stat().st_size <= 4_000
    done = run("summary", kept, "--format", "json")
    assert done.code == 0
    assert "cut" not in done.err


def test_kernel_drops(tmp_path: Path) -> None:
    """What there was no room for while we did not read is counted, said, and a finding."""
    kept, metrics, port = tmp_path / "kept.pcapng", free_port(), free_port()
    sniffer = Sniffer(
        "-i", "lo", "-f", f"udp port {port}", "--buffer", "4MiB", "-t", "findings", "-w", kept,
        "--metrics", f":{metrics}", folder=tmp_path,
    )  # fmt: skip
    sniffer.running.send_signal(signal.SIGSTOP)
    sent = 500
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(sent):
            sender.sendto(bytes(60_000), ("127.0.0.1", port))
    sniffer.running.send_signal(signal.SIGCONT)
    names = ("amqpsniff_packets_total", "amqpsniff_packets_dropped_total")
    wait_for(lambda: sum(scraped(metrics)[name] for name in names) == sent)
    dropped = scraped(metrics)["amqpsniff_packets_dropped_total"]
    assert dropped
    assert sniffer.stop() == 0, sniffer.err
    (finding,) = sniffer.rows()
    assert finding["code"] == "interface-dropped"
    assert f"{dropped:.0f} by the operating system" in finding["detail"]
    assert f"{dropped:.0f}" in sniffer.err
    read = offline(kept, "findings")
    assert [row["code"] for row in read] == ["interface-dropped"]
    assert read[0]["detail"] == finding["detail"]


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of a hundred thousand bytes."""
    disk = folder / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=100k,mode=1777", "tmpfs", str(disk)]
    if (
        shutil.which("mount") is None
        or subprocess.run(["mount", *options], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file systems can be mounted here")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def test_file_system_is_full(tmp_path: Path) -> None:
    """A whole file as large as there was room, and every row."""
    with small_disk(tmp_path) as disk, SAMPLE.open("rb") as file:
        kept = disk / "kept.pcapng"
        sniffer = Sniffer("-", "-w", kept, folder=tmp_path, stdin=file)
        assert sniffer.finish() == 3
        assert f"{kept}: No space left on device" in sniffer.err
        assert "packets are not written any more" in sniffer.err
        assert alike(sniffer.rows()) == alike(rows_of(run("export", SAMPLE, "-t", "messages").out))
        assert 90_000 < kept.stat().st_size <= 102_400
        done = run("summary", kept, "--format", "json")
        assert done.code == 0
        assert "cut" not in done.err


@pytest.mark.parametrize("name", ["/dev/full", "pipe"])
def test_what_cannot_be_cut_takes_no_more(tmp_path: Path, name: str) -> None:
    """A device that is full, a pipe that nobody reads any more: rows go on."""
    os.mkfifo(tmp_path / "pipe")
    reading = subprocess.Popen(
        ["head", "-c", "1000", "pipe"], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    try:
        with SAMPLE.open("rb") as file:
            sniffer = Sniffer("-", "-w", name, folder=tmp_path, stdin=file)
            assert sniffer.finish() == 3
    finally:
        reading.terminate()
        reading.wait()
    assert f"packets are not written any more: {name}: " in sniffer.err
    assert alike(sniffer.rows()) == alike(rows_of(run("export", SAMPLE, "-t", "messages").out))


def test_a_file_that_fails_at_its_end(tmp_path: Path) -> None:
    """Some file systems say only when a file is closed that they are full."""
    writer = CaptureWriter(tmp_path / "kept.pcapng", lambda _: "lo", "test")
    (descriptor,) = descriptors(tmp_path)
    os.close(descriptor)
    writer.close()
    assert writer.trouble == f"{tmp_path}/kept.pcapng: Bad file descriptor"


def test_a_next_file_that_cannot_be_made(tmp_path: Path) -> None:
    """It is that file which is named."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "r.pcapng"
    writer = CaptureWriter(path, lambda _: "lo", "test", Rotation(octets=20_000))
    (tmp_path / "in").rename(tmp_path / "out")
    for batch in read([SAMPLE]):
        writer.write(batch, [0] * len(batch))
    assert writer.trouble is not None
    assert writer.trouble.startswith(f"{tmp_path}/in/r_00002_")
    assert writer.trouble.endswith(": No such file or directory")
    assert sum(map(len, read([tmp_path / "out"]))) == writer.packets


@pytest.mark.broker
@pytest.mark.parametrize("writes", [True, False])
def test_standard_output_closes(broker: Broker, tmp_path: Path, writes: bool) -> None:
    """`| head -1` ends it quietly, also when no row comes; the packets it wrote can be read."""
    sniffer = Sniffer(
        "-i", "lo", "--port", str(broker.port), "-w", "kept.pcapng", folder=tmp_path,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert sniffer.running.stdout is not None
    sniffer.running.stdout.close()
    sniffer.running.stdout = None
    if writes:
        with_amqp("127.0.0.1", broker.port)
    assert sniffer.finish() == 0
    assert "Traceback" not in sniffer.err
    assert run("summary", tmp_path / "kept.pcapng", "--format", "json").code == 0


def test_clock_jumps(tmp_path: Path) -> None:
    """Packets whose times jump back and forth by days are rows like any others."""
    done = run("export", SAMPLE, "-t", "messages")
    expected = rows_of(done.out)
    octets = bytearray(SAMPLE.read_bytes())
    at, number = 24, 0
    while at < len(octets):
        size = int.from_bytes(octets[at + 8 : at + 12], "little")
        seconds = int.from_bytes(octets[at : at + 4], "little")
        moved = seconds + (0, 86_400, -86_400, 3_600)[number // 50 % 4]
        octets[at : at + 4] = moved.to_bytes(4, "little")
        at += 16 + size
        number += 1
    jumping = tmp_path / "jumping.pcap"
    jumping.write_bytes(octets)
    with jumping.open("rb") as file:
        sniffer = Sniffer("-", "-w", "kept.pcapng", folder=tmp_path, stdin=file)
        assert sniffer.finish() == 0, sniffer.err
    live = sniffer.rows()
    assert len(live) == len(expected)
    assert alike(live) == alike(offline(tmp_path / "kept.pcapng", "messages"))


def test_bytes_that_are_no_capture(tmp_path: Path) -> None:
    """What is piped in and is none ends with one line."""
    done = subprocess.run(
        (*PROGRAM, "live", "-", "-q"), input=b"nothing like a capture at all", capture_output=True,
        env=environment(), cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1
