"""Captures of connections that publish, confirm, deliver and acknowledge without end.

Nothing about them is real but the frames: one publisher and consumer on one channel each, so that
it can be chosen how much of a capture a single connection has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from captures import FIRST_SECOND

CLIENT, SERVER = 0, 1
BROKER = 0x0A000001
PORT = 5672
BODY_BYTES = 512
STEP_MICROS = 20
"""Time between two packets."""

OTHERS = 63
"""Connections beside the one."""


class Connection:
    """A TCP connection of a client with the broker, as records of a capture."""

    def __init__(self, number: int) -> None:
        self.client = BROKER + 1 + number
        self.port = 40_000 + number % 20_000
        self.sent = [1000, 2000]

    def handshake(self) -> Iterator[bytes]:
        """The packets in which TCP opens the connection."""
        yield self.packet(CLIENT, b"", 0x02)
        yield self.packet(SERVER, b"", 0x12)

    def login(
        self, channel_max: int = 2047, properties: bytes = b""
    ) -> Iterator[tuple[int, bytes]]:
        """(sender, bytes) from the protocol header to an open connection.

        `properties` are the names and values of the client's table.
        """
        tune = struct.pack(">HIH", channel_max, 131_072, 60)
        plain = short(b"PLAIN") + long(b"\0app\0secret") + short(b"en_US")
        start = b"\0\x09" + long(b"") + long(b"PLAIN") + long(b"en_US")
        yield CLIENT, b"AMQP\0\0\x09\x01"
        yield SERVER, method(0, 10, 10, start)
        yield CLIENT, method(0, 10, 11, long(properties) + plain)
        yield SERVER, method(0, 10, 30, tune)
        yield CLIENT, method(0, 10, 31, tune) + method(0, 10, 40, short(b"/") + b"\0\0")
        yield SERVER, method(0, 10, 41, b"\0")

    def packet(self, sender: int, octets: bytes, flags: int = 0x18) -> bytes:
        """A packet with all headers, from the client (0) or the broker (1)."""
        ends = [(self.client, self.port), (BROKER, PORT)]
        (source, from_port), (target, to_port) = ends[sender], ends[1 - sender]
        number, other = self.sent[sender], self.sent[1 - sender]
        self.sent[sender] = (number + len(octets) + (flags & 2) // 2) & 0xFFFFFFFF
        return b"".join((
            b"\0" * 12 + b"\x08\0",
            struct.pack(">BBHHHBBHII", 0x45, 0, 40 + len(octets), 0, 0, 64, 6, 0, source, target),
            struct.pack(">HHIIBBHHH", from_port, to_port, number, other, 0x50, flags, 65_535, 0, 0),
            octets,
        ))  # fmt: skip


class Talk(Connection):
    """One connection: `opening`, then `turn` after `turn`, as records of a capture."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.tag = 0
        self.body = bytes(ord("a") + at % 26 for at in range(BODY_BYTES))

    def opening(self) -> Iterator[bytes]:
        """The packets from the handshake to the consumer."""
        yield from self.handshake()
        consume = b"\0\0" + short(b"work") + short(b"tag") + b"\0" + long(b"")
        for sender, octets in (
            *self.login(),
            (CLIENT, method(1, 20, 10, b"\0")),
            (SERVER, method(1, 20, 11, long(b""))),
            (CLIENT, method(1, 85, 10, b"\0")),
            (SERVER, method(1, 85, 11, b"")),
            (CLIENT, method(1, 60, 20, consume)),
            (SERVER, method(1, 60, 21, short(b"tag"))),
        ):
            yield self.packet(sender, octets)

    def turn(self) -> Iterator[bytes]:
        """A message is published, confirmed, delivered and acknowledged."""
        self.tag += 1
        tag = struct.pack(">QB", self.tag, 0)
        route = short(b"orders") + short(b"orders.eu")
        content = self.content()
        yield self.packet(0, method(1, 60, 40, b"\0\0" + route + b"\0") + content)
        yield self.packet(1, method(1, 60, 80, tag))
        yield self.packet(1, method(1, 60, 60, short(b"tag") + tag + route) + content)
        yield self.packet(0, method(1, 60, 80, tag))

    def closing(self) -> Iterator[bytes]:
        """The client closes the connection."""
        yield self.packet(CLIENT, method(0, 10, 50, b"\0\xc8" + short(b"bye") + b"\0" * 4))
        yield self.packet(SERVER, method(0, 10, 51))
        yield self.packet(CLIENT, b"", 0x11)
        yield self.packet(SERVER, b"", 0x11)

    def content(self) -> bytes:
        """Header and body of the next message."""
        told = short(b"application/json") + b"\x02" + short(b"%d-%d" % (self.port, self.tag))
        head = struct.pack(">HHQH", 60, 0, BODY_BYTES, 0x9080)
        return frame(2, 1, head + told) + frame(3, 1, self.body)


def make_talks(path: Path, octets: int, percent: int) -> Path:
    """A capture in which one connection has so many percent of the bytes, others the rest."""
    talks = [Talk(number) for number in range(OTHERS + 1)]
    return write(path, turns_of(talks, percent), octets)


def write(
    path: Path, turns: Iterable[Iterable[bytes]], octets: int, step_micros: int = STEP_MICROS
) -> Path:
    """Write packets, whole turns only, until the capture has at least N `octets`."""
    micros = FIRST_SECOND * 1_000_000
    size = 24
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        for packets in turns:
            for packet in packets:
                micros += step_micros
                seconds, rest = divmod(micros, 1_000_000)
                file.write(struct.pack("<IIII", seconds, rest, len(packet), len(packet)) + packet)
                size += 16 + len(packet)
            if size >= octets:
                break
    return path


def turns_of(talks: list[Talk], percent: int) -> Iterator[Iterator[bytes]]:
    """Whose turn it is, without end; everybody has equally many where `percent` is 0."""
    for talk in talks:
        yield talk.opening()
    owed = other = 0
    while True:
        owed += percent
        if owed >= 100:
            owed -= 100
            yield talks[0].turn()
        else:
            other += 1
            yield talks[other % len(talks)].turn()


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    """A method frame, by the numbers of its class and method."""
    return frame(1, channel, struct.pack(">HH", class_id, method_id) + arguments)


def short(octets: bytes) -> bytes:
    """A short string."""
    return bytes([len(octets)]) + octets


def long(octets: bytes) -> bytes:
    """A long string, or a table given by its names and values."""
    return struct.pack(">I", len(octets)) + octets
