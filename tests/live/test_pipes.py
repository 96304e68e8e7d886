"""Captures that come through pipes, with a name and without one, and what is no capture."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

import amqpsniff
from amqpsniff.capture.tail import FileCapture, PipeCapture, follow
from amqpsniff.errors import CaptureError
from tests.capture.build import enhanced, interface, section
from tests.cli.running import PROGRAM, environment, run
from tests.conftest import SAMPLES
from tests.live.sniffing import Sniffer, rows_of, taken
from tests.live.test_metrics import scraped
from tests.live.test_rows import alike
from tests.processes import descriptors
from tests.tcp.wire import IPV4_LINK, tcp
from tests.waiting import PATIENCE, free_port, wait_for

SAMPLE = SAMPLES / "pika_mix.pcap"


def followed(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    """`amqpsniff live` until its end."""
    return subprocess.run(
        (*PROGRAM, "live", "-t", "findings", *arguments), env=environment(), text=True,
        capture_output=True, timeout=PATIENCE, check=False, **more,
    )  # fmt: skip


def test_a_pipe_with_a_name(tmp_path: Path) -> None:
    """It is followed until whoever writes it ends, as with `<(tcpdump …)` in a shell."""
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", f"cat {SAMPLE} > pipe"], cwd=tmp_path):
        sniffer = Sniffer("pipe", "-t", "messages", folder=tmp_path)
        assert sniffer.finish() == 0, sniffer.err
    assert alike(sniffer.rows()) == alike(rows_of(run("export", SAMPLE, "-t", "messages").out))


def test_the_summary_at_the_end_agrees_with_diagnose() -> None:
    done = followed(SAMPLE, "--duration", "1s")
    said = str(amqpsniff.open(SAMPLE).diagnose().verdict)
    assert " ".join(said.split()) in " ".join(done.stderr.split())
    assert "looks for more" not in done.stderr


def test_a_pipe_among_files(tmp_path: Path) -> None:
    """Files that follow each other, and a pipe that is one of them, do not go together."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CaptureError, match="a pipe can only be followed by itself"):
        FileCapture([str(tmp_path / "pipe"), str(SAMPLE)])


def test_standard_input_that_is_closed() -> None:
    """It is said what is missing."""
    done = followed("-", stdin=None, preexec_fn=lambda: os.close(0))
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "standard input is closed" in done.stderr


@pytest.mark.parametrize(
    ("octets", "what"),
    [
        (b"", "it is empty"),
        (b"hello\n", "it is ASCII text"),
        (b"\x1f\x8b\x08" + bytes(9), "nothing of it could be read"),
    ],
)
def test_a_pipe_without_a_capture(octets: bytes, what: str) -> None:
    """Whoever gives too little to be told is refused as a file is."""
    done = followed("-", stdin=_pipe_of(octets))
    assert (done.returncode, what in done.stderr) == (3, True), done.stderr


def _pipe_of(octets: bytes) -> int:
    reading, writing = os.pipe()
    os.write(writing, octets)
    os.close(writing)
    return reading


def test_a_last_packet_that_the_end_tells(tmp_path: Path) -> None:
    """A packet longer than it ever was is believed once another record follows, or the end."""
    header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    packet = struct.pack("<IIII", 1_600_000_000, 0, 62, 60) + bytes(60)
    path = tmp_path / "one.pcap"
    path.write_bytes(header + packet)
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", "cat one.pcap > pipe"], cwd=tmp_path) as writing:
        source = follow([str(tmp_path / "pipe")])
        writing.wait()
        assert sum(map(len, taken(source))) == 1
    assert source.ended
    source.finish()
    assert [one.code for one in source.findings] == ["capture-damaged"]
    source.close()


def test_a_last_packet_before_the_next_file(tmp_path: Path) -> None:
    """The same where another file goes on."""
    header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    packet = struct.pack("<IIII", 1_600_000_000, 0, 62, 60) + bytes(60)
    (tmp_path / "1.pcap").write_bytes(header + packet)
    source = FileCapture([str(tmp_path)])
    assert sum(map(len, taken(source))) == 0
    (tmp_path / "2.pcap").write_bytes(header)
    assert sum(map(len, taken(source))) == 1
    source.close()


def test_bytes_that_cannot_be_read(tmp_path: Path) -> None:
    """The system says no: at once, or later, when what came before is kept."""
    with pytest.raises(CaptureError, match="cannot be read: Input/output error"):
        FileCapture(["/proc/self/mem"])
    path = tmp_path / "one.pcap"
    path.write_bytes(SAMPLE.read_bytes())
    source = follow([str(path)])
    assert isinstance(source, FileCapture)
    assert sum(map(len, taken(source))) == 568
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    (descriptor,) = descriptors(path)
    os.dup2(memory, descriptor)
    os.close(memory)
    assert sum(map(len, taken(source))) == 0
    assert source.ended
    assert [one.code for one in source.findings] == ["capture-unreadable"]
    source.close()


def test_names_choose() -> None:
    """Standard input is a pipe, a file is none."""
    assert isinstance(follow([str(SAMPLE)]), FileCapture)
    with open(SAMPLE, "rb") as file:  # noqa: PTH123
        before = os.dup(0)
        try:
            os.dup2(file.fileno(), 0)
            source = follow(["-"])
            assert isinstance(source, PipeCapture)
            assert sum(map(len, taken(source))) == 568
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_a_pipe_is_silent_at_the_end_of_time(tmp_path: Path) -> None:
    """Of a packet with the latest time there is, as anybody can write one, nothing is later."""
    packet = enhanced("<", 2**63 - 2, tcp(1, b"AMQP"))
    octets = section() + interface("<", (9, b"\x09"), link=IPV4_LINK) + packet
    reading, writing = os.pipe()
    with os.fdopen(reading) as there, os.fdopen(writing, "wb", buffering=0) as here:
        here.write(octets)
        arguments = ("-", "-t", "frames", "--settle", "0.1s", "--duration", "1s")
        sniffer = Sniffer(*arguments, folder=tmp_path, stdin=there)
        assert sniffer.finish() == 0, sniffer.err


def test_metrics_of_names_that_are_not_known(tmp_path: Path) -> None:
    """The default exchange and one that the capture does not say are two."""
    port = free_port()
    reading, writing = os.pipe()
    with os.fdopen(reading) as there, os.fdopen(writing, "wb", buffering=0) as here:
        here.write((SAMPLES / "snapped.pcap").read_bytes())
        arguments = ("-", "-t", "findings", "--metrics", f":{port}")
        sniffer = Sniffer(*arguments, folder=tmp_path, stdin=there)
        name = "amqpsniff_exchange_{}_messages_total {} shop"
        wait_for(lambda: scraped(port).get(name.format("delivered", "(unknown)")) == 41)
        assert scraped(port)[name.format("published", "")] == 2
    assert sniffer.finish() == 0, sniffer.err


def test_metrics_of_findings_whatever_the_table(tmp_path: Path) -> None:
    port = free_port()
    reading, writing = os.pipe()
    with os.fdopen(reading) as there, os.fdopen(writing, "wb", buffering=0) as here:
        here.write((SAMPLES / "php_churn.pcap").read_bytes()[:60_000])
        arguments = ("-", "-t", "messages", "--metrics", f":{port}")
        sniffer = Sniffer(*arguments, folder=tmp_path, stdin=there)
        wait_for(lambda: any(name.startswith("amqpsniff_findings_total") for name in scraped(port)))
    assert sniffer.finish() == 0, sniffer.err
