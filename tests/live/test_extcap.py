"""Live traffic as an interface of Wireshark: its questions are answered, its FIFO is filled."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import amqpsniff
from tests.cli.running import PROGRAM, environment, run
from tests.session.script import Script
from tests.waiting import PATIENCE, wait_for

REFUSED = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: queue.declare queue=q
    S1: channel.close reply_code=406 reply_text=PRECONDITION_FAILED
    C1: channel.close-ok
"""


def test_wireshark_is_told_what_there_is() -> None:
    told = run("extcap", "--extcap-interfaces", "--extcap-version=4.0").out
    assert "interface {value=amqpsniff}" in told
    of = ("--extcap-interface", "amqpsniff")
    assert run("extcap", "--extcap-dlts", *of).out.startswith("dlt {number=1}{name=EN10MB}")
    options = run("extcap", "--extcap-config", *of).out
    assert "{call=--interface}" in options
    assert "value {arg=0}{value=lo}{display=lo}" in options


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "amqpsniff extcap --install"),
        (("--capture", "--extcap-interface", "eth0"), "no interface eth0; there is amqpsniff"),
        (("--capture", "--extcap-interface", "amqpsniff"), "give --fifo FILE"),
        (
            ("--capture", "--extcap-interface", "amqpsniff", "--fifo", "x", "--port", "a"),
            "write 5672 or 5672,5673",
        ),
    ],
)
def test_errors(arguments: tuple[str, ...], said: str) -> None:
    done = run("extcap", *arguments)
    assert done.code == 2
    assert said in done.err


def test_the_installed_script_answers(tmp_path: Path) -> None:
    assert run("extcap", "--install", "--folder", tmp_path / "extcap").code == 0
    told = subprocess.run(
        (tmp_path / "extcap" / "amqpsniff", "--extcap-interfaces"), capture_output=True, check=True
    )
    assert b"interface {value=amqpsniff}" in told.stdout


def test_findings_are_comments_of_packets(tmp_path: Path) -> None:
    fifo, written = tmp_path / "fifo", tmp_path / "got.pcapng"
    os.mkfifo(fifo)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        options = ("--interface", "lo", "--port", port, "--fifo", str(fifo))
        with subprocess.Popen(
            (*PROGRAM, "extcap", "--capture", "--extcap-interface", "amqpsniff", *options),
            stderr=subprocess.PIPE, env=environment(),
        ) as running:  # fmt: skip
            reader = threading.Thread(target=_copy, args=(fifo, written))
            reader.start()
            wait_for(lambda: written.exists() and written.stat().st_size > 0)
            _talk(server)
            wait_for(lambda: b"channel-closed-by-broker" in written.read_bytes())
            running.send_signal(signal.SIGTERM)
            _, err = running.communicate(timeout=PATIENCE)
            assert err == b""
        reader.join(PATIENCE)
    (found,) = [
        one for one in amqpsniff.open(written).findings() if one.code == "channel-closed-by-broker"
    ]
    shown = subprocess.run(
        ("tshark", "-r", written, "-T", "fields", "-e", "frame.comment",
         "-Y", f"frame.number == {found.packet_number}"),
        capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    assert shown.startswith("error channel-closed-by-broker: ")


def _copy(fifo: Path, written: Path) -> None:
    """What Wireshark does: read the FIFO to its end."""
    with fifo.open("rb", buffering=0) as source, written.open("wb", buffering=0) as sink:
        while octets := source.read(1 << 16):
            sink.write(octets)


def _talk(server: socket.socket) -> None:
    """A conversation on loopback, in which the broker closes a channel."""
    client = socket.create_connection(server.getsockname())
    broker, _ = server.accept()
    with client, broker:
        for packet in Script(REFUSED).packets:
            sender, receiver = (client, broker) if packet.sender == "client" else (broker, client)
            sender.sendall(packet.octets)
            left = len(packet.octets)
            while left:
                left -= len(receiver.recv(left))
