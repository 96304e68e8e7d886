"""Real conversations with a RabbitMQ: each shows a finding, or nearly does.

`python -m tests.findings.conversations PORT [CODE…]` holds the conversations of `scripts` with the
broker on that port and writes what tcpdump saw of them to `captures/shown` and `captures/nearly`.
The broker needs users guest and u with the password `secret` and all permissions.

The client says what a script has for it; for what the script has for the server, a method of that
name is waited for. Where a script waits for long, nobody does: the packets after it are moved in
the capture. What no broker says is written into the capture afterwards, see `EDITS`.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from amqpsniff.spec import METHODS
from tests.findings.edits import EDITS
from tests.findings.phrases import LOGIN
from tests.findings.scripts import CONVERSATIONS
from tests.session.script import MS, Script

FOLDER = Path(__file__).parent / "captures"
NAMES = {
    (method.class_id, method.method_id): method.name
    for method in METHODS
    if "0-9-1" in method.dialects
}
PATIENCE = 10.0
PAUSE_NS = 20 * MS
"""Waits from which on the packets are moved instead."""

Packets = list[tuple[int, bytes]]


class Pause(NamedTuple):
    """Time passes: before what comes `after` a time, or before what the broker says then."""

    after: int
    ns: int
    client: bool


class Client:
    """One connection, which sends bytes and waits for methods."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(PATIENCE)
        self.octets = b""
        self.heard: list[tuple[int, str]] = []

    def wait(self, channel: int, method: str) -> None:
        """Until the broker has said a method on a channel."""
        while (channel, method) not in self.heard:
            more = self.socket.recv(1 << 20)
            assert more, f"the broker ended TCP before {method}, after {self.heard}"
            self.octets += more
            self._read()
        self.heard.remove((channel, method))

    def _read(self) -> None:
        while len(self.octets) >= 7:
            kind, channel, size = struct.unpack(">BHI", self.octets[:7])
            if len(self.octets) < size + 8:
                return
            if kind == 1:
                ids = struct.unpack(">HH", self.octets[7:11])
                self.heard.append((channel, NAMES[ids]))
            self.octets = self.octets[size + 8 :]

    def end(self, how: str, sender: str) -> None:
        """TCP ends, by this side or by the broker."""
        if sender == "server":
            with contextlib.suppress(ConnectionResetError):
                while self.socket.recv(1 << 20):
                    pass
        elif how == "RST":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def hold(script: Script, port: int) -> tuple[list[Pause], list[Client]]:
    """Hold a conversation; gives its pauses and its clients."""
    clients: dict[str, Client] = {}
    pauses: list[Pause] = []
    before = sent = 0
    for number, packet in enumerate(script.packets, 1):
        client = clients.get(packet.connection)
        if client is None:
            client = clients[packet.connection] = Client(port)
        pause = packet.ts_ns - before if before else 0
        before = packet.ts_ns
        speaks = packet.sender == "client" or bool(packet.end)
        if pause >= PAUSE_NS:
            time.sleep(0.004 if speaks else 0)
            pauses.append(Pause(time.time_ns() if speaks else sent, pause, speaks))
            time.sleep(0.002 if speaks else 0)
        if packet.end:
            client.end(packet.end, packet.sender)
        elif packet.sender == "client":
            sent = time.time_ns()
            client.socket.sendall(packet.octets)
        else:
            for event in script.events:
                if event.packet == number:
                    client.wait(event.channel, event.method)
    return pauses, list(clients.values())


def captured(script: Script, port: int) -> Packets:
    """The packets of a conversation, with its pauses."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.pcap"
        command = f"tcpdump -i lo -U -s 0 -B 16384 --immediate-mode -w {path} tcp port {port}"
        dump = subprocess.Popen(command.split(), stderr=subprocess.PIPE)
        assert dump.stderr
        while b"listening" not in dump.stderr.readline():
            pass
        time.sleep(0.1)
        try:
            pauses, clients = hold(script, port)
        finally:
            time.sleep(0.3)
            dump.terminate()
            dump.communicate()
        for client in clients:
            client.socket.close()
        return _moved(path.read_bytes(), pauses, port)


def _moved(octets: bytes, pauses: list[Pause], port: int) -> Packets:
    """The packets of a capture of Ethernet, those after a pause later by it."""
    packets: Packets = []
    at, late = 24, 0
    while at + 16 <= len(octets):
        seconds, micros, size = struct.unpack("<III", octets[at : at + 12])
        packet = octets[at + 16 : at + 16 + size]
        ts_ns = seconds * 10**9 + micros * 1000
        while pauses and ts_ns >= pauses[0].after and (_speaks(packet, port) or pauses[0].client):
            late += pauses.pop(0).ns
        packets.append((ts_ns + late, _to_usual_port(packet, port)))
        at += 16 + size
    return packets


def _to_usual_port(packet: bytes, port: int) -> bytes:
    """A packet of IPv4 as if the broker had listened on 5672."""
    head = 14 + 4 * (packet[14] & 15)
    before, after = (struct.pack(">H", one) for one in (port, 5672))
    ports = (packet[at : at + 2] for at in (head, head + 2))
    moved = [after if one == before else one for one in ports]
    return packet[:head] + b"".join(moved) + packet[head + 4 :]


def _speaks(packet: bytes, port: int) -> bool:
    """Whether a packet of IPv4 carries something from the broker."""
    head = 14 + 4 * (packet[14] & 15)
    size = struct.unpack(">H", packet[16:18])[0] - (head - 14) - 4 * (packet[head + 12] >> 4)
    return bool(packet[head : head + 2] == struct.pack(">H", port) and size > 0)


def write(path: Path, packets: Packets) -> None:
    """A compressed capture of Ethernet packets."""
    octets = [struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)]
    for ts_ns, packet in packets:
        head = struct.pack("<II", ts_ns // 10**9, ts_ns % 10**9 // 1000)
        octets += [head, struct.pack("<II", len(packet), len(packet)), packet]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b"".join(octets), 9, mtime=0))


def _clean(port: int, text: str) -> None:
    """Delete what earlier conversations left."""
    queues = sorted(set(re.findall(r"(?:queue|routing_key)=([\w.-]+)", text)))
    deletes = "".join(f"C1: queue.delete queue={one}\nS1: queue.delete-ok\n" for one in queues)
    for one in sorted(set(re.findall(r"exchange=(\w+)", text))):
        deletes += f"C1: exchange.delete exchange={one}\nS1: exchange.delete-ok\n"
    opened = f"{LOGIN}C1: channel.open\nS1: channel.open-ok\n"
    hold(Script(opened + deletes + "C: connection.close\nS: connection.close-ok\n"), port)


def main(port: int, codes: list[str]) -> None:
    """Make the captures of these codes, of all without any."""
    for code in codes or CONVERSATIONS:
        for kind, text in zip(("shown", "nearly"), CONVERSATIONS[code], strict=True):
            _clean(port, text)
            packets = captured(Script(text), port)
            edit = EDITS.get((code, kind))
            packets = edit(packets) if edit else packets
            write(FOLDER / kind / f"{code}.pcap.gz", packets)
            print(code, kind, len(packets))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
