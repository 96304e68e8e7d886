"""Hostile traffic of other protocols and layers than AMQP 0-9-1: AMQP 1.0, WebSocket, TLS, 0-10,
TCP, IP and pcapng. Bytes are made here by hand: what is measured must not make what it measures.

An attack gives turns as those of `attacks.py`, whole packets, or blocks of a pcapng file.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from talk import BROKER, CLIENT, SERVER, Connection, frame, long, method, short

AMQP10 = b"AMQP\0\1\0\0"
MANY = 20_000
"""Deliveries of AMQP 1.0 that wait while others are settled, or are not."""

Turn = list[tuple[Connection, int, bytes]]


# AMQP 1.0


def sized(code: int, octets: bytes, items: int) -> bytes:
    """A list (0xd0) or map (0xd1) of items that are written already."""
    return bytes([code]) + struct.pack(">II", len(octets) + 4, items) + octets


def performative(code: int, *fields: bytes, channel: int = 0, payload: bytes = b"") -> bytes:
    """A frame of AMQP 1.0."""
    body = b"\0\x53" + bytes([code]) + sized(0xD0, b"".join(fields), len(fields)) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body


def uint(number: int) -> bytes:
    return b"\x70" + struct.pack(">I", number)


def text(octets: bytes) -> bytes:
    return b"\xb1" + long(octets)


NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"


def opened10() -> tuple[Connection, Turn]:
    """A connection of AMQP 1.0 with a session and a link on which the client sends."""
    connection = Connection(1)
    opening = performative(0x10, text(b"client"), NULL, uint(1 << 20))
    said = [(CLIENT, AMQP10), (SERVER, AMQP10), (CLIENT, opening), (SERVER, opening)]
    begin = [NULL, uint(0), uint(1 << 30), uint(1 << 30)]
    answer = [b"\x60\0\0", *begin[1:]]
    said += [(CLIENT, performative(0x11, *begin)), (SERVER, performative(0x11, *answer))]
    for sender in (CLIENT, SERVER):
        said.append((sender, attach(0, sender == SERVER)))
    return connection, [(connection, *one) for one in said]


def attach(handle: int, receives: bool, name: bytes = b"link") -> bytes:
    ends = b"\0\x53\x28" + sized(0xD0, text(b"q"), 1), b"\0\x53\x29" + sized(0xD0, text(b"q"), 1)
    role = TRUE if receives else FALSE
    return performative(0x12, text(name), uint(handle), role, NULL, NULL, *ends)


def transfer(number: int, payload: bytes, more: bool = False) -> bytes:
    tag = b"\xa0\x04" + struct.pack(">I", number)
    fields = uint(0), uint(number), tag, uint(0), FALSE, TRUE if more else FALSE
    return performative(0x14, *fields, payload=payload)


DATA = b"\0\x53\x75\xa0\1x"


def of_amqp10(*makes: Callable[[int], list[tuple[int, bytes]]], first: int = MANY) -> Callable:
    """Turns of one connection: `first` of what the first function makes, then the last for ever."""

    def turns() -> Iterator[Turn]:
        connection, said = opened10()
        yield said
        for number in count():
            make = makes[0] if number < first else makes[-1]
            yield [(connection, *one) for one in make(number)]

    return turns


def sent(number: int) -> list[tuple[int, bytes]]:
    return [(CLIENT, transfer(number, DATA))]


def deep_maps(number: int) -> list[tuple[int, bytes]]:
    value = sized(0xD1, text(b"k") + b"\x54\1", 2)
    for _ in range(60):
        value = sized(0xD1, text(b"k") + value, 2)
    return [(CLIENT, transfer(number, b"\0\x53\x74" + value + DATA))]


def wide_maps(number: int) -> list[tuple[int, bytes]]:
    items = b"".join(b"\xa1\4" + b"%04d" % at + b"\x43" for at in range(5_000))
    return [(CLIENT, transfer(number, b"\0\x53\x74" + sized(0xD1, items, 10_000) + DATA))]


def described(number: int) -> list[tuple[int, bytes]]:
    value = b"\0\x43" * 3_000 + b"\x43"
    return [(CLIENT, transfer(number, b"\0\x53\x77" + value))]


def disposition(number: int, settled: bytes) -> list[tuple[int, bytes]]:
    fields = TRUE, uint(0), uint(0xFFFFFFFF), settled, b"\0\x53\x23\x45"
    return [(SERVER, performative(0x15, *fields))]


def links(number: int) -> list[tuple[int, bytes]]:
    name = b"link%d" % number
    said = [(side, attach(number, side == SERVER, name)) for side in (CLIENT, SERVER)]
    return said + [(side, performative(0x16, uint(number), TRUE)) for side in (CLIENT, SERVER)]


def sessions(number: int) -> list[tuple[int, bytes]]:
    begin = performative(0x11, NULL, uint(0), uint(9), uint(9), channel=number % 65_535)
    return [(CLIENT, begin), (SERVER, begin)]


def flow(number: int) -> list[tuple[int, bytes]]:
    credit = uint(number), uint(9), uint(0), uint(9), uint(0), uint(number), uint(10), NULL
    return [(SERVER, performative(0x13, *credit))]


# WebSocket and TLS


def web_socket(frames: Callable[[int], bytes]) -> Callable:
    """Frames of a client, behind an upgrade for AMQP 1.0."""

    def turns() -> Iterator[Turn]:
        connection = Connection(1)
        asked = b"GET /ws HTTP/1.1\r\nHost: b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        asked += b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n"
        answer = (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        )
        answer += b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
        answer += b"Sec-WebSocket-Protocol: amqp\r\n"
        yield [(connection, CLIENT, asked + b"\r\n"), (connection, SERVER, answer + b"\r\n")]
        yield [(connection, CLIENT, b"\x02\x88" + bytes(4) + AMQP10)]
        for number in count():
            yield [(connection, CLIENT, frames(number))]

    return turns


def piece(octets: bytes, kind: int = 0) -> bytes:
    """A masked frame that ends nothing."""
    return bytes([kind, 0x80 | len(octets)]) + bytes(4) + octets


def hello(number: int, extensions: int) -> bytes:
    """A ClientHello, with very many extensions."""
    more = b"".join(struct.pack(">HH", 0xFA00 + at % 256, 0) for at in range(extensions))
    body = b"\3\3" + struct.pack(">Q", number) * 4 + b"\0" + struct.pack(">H", 60)
    body += bytes(range(60)) + b"\1\0" + struct.pack(">H", len(more)) + more
    return b"\x01" + struct.pack(">I", len(body))[1:] + body


def record(octets: bytes, kind: int = 22) -> bytes:
    return bytes([kind, 3, 3]) + struct.pack(">H", len(octets)) + octets


def tls_hellos() -> Iterator[Turn]:
    for number in count(1):
        yield [(Connection(number), CLIENT, record(hello(number, 50)))]


def tls_pieces() -> Iterator[Turn]:
    """Handshake messages of whole connections, a record for each byte."""
    for number in count(1):
        connection = Connection(number)
        octets = b"".join(record(bytes([one])) for one in hello(number, 3_000))
        yield [(connection, CLIENT, octets)]


def tls_records() -> Iterator[Turn]:
    """Encrypted records of a byte, for which no key will come."""
    connection = Connection(1)
    answer = b"\2\0\0\x2a\3\3" + bytes(32) + b"\0\x13\1\0\0\2\0\0"
    yield [(connection, CLIENT, record(hello(1, 1))), (connection, SERVER, record(answer))]
    for _ in count():
        yield [(connection, side, record(b"x", 23) * 200) for side in (CLIENT, SERVER)]


# other versions, packs


def amqp010() -> Iterator[Turn]:
    connection = Connection(1)
    header = b"AMQP\1\1\0\x0a"
    yield [(connection, CLIENT, header), (connection, SERVER, header)]
    for number in count():
        sent = struct.pack(">BBHBBHI", 0x0F, 1, 18, 0, 0, number % 999, 0) + b"\4\1\0\0\0\0"
        yield [(connection, CLIENT, sent)]


def of_packs(number: int) -> list[tuple[int, bytes]]:
    """Headers of Celery, and a body that it reads, as deep as they go."""
    given = b"[" * 400 + b"]" * 400
    names = b"".join(
        short(one) + b"S" + long(b"task.%d" % number)
        for one in (b"task", b"id", b"root_id", b"parent_id", b"argsrepr", b"kwargsrepr", b"eta")
    )
    told = b"\xb0\0" + short(b"application/json") + long(names) + b"\2" + short(b"%d" % number)
    head = struct.pack(">HHQ", 60, 0, len(given)) + told
    publish = method(1, 60, 40, b"\0\0" + short(b"e") + short(b"celery") + b"\0")
    return [(CLIENT, publish + frame(2, 1, head) + frame(3, 1, given))]


BOMB = zlib.compress(bytes(40_000_000), 9)


def gzip_bodies(number: int) -> list[tuple[int, bytes]]:
    """Bodies that say they are compressed, and grow a thousandfold; a message of MassTransit."""
    told = b"\xc0\0" + short(b"application/vnd.masstransit+json") + short(b"deflate")
    head = struct.pack(">HHQ", 60, 0, len(BOMB)) + told
    publish = method(1, 60, 40, b"\0\0" + short(b"e") + short(b"k") + b"\0")
    return [(CLIENT, publish + frame(2, 1, head) + frame(3, 1, BOMB))]


def envelopes(number: int) -> list[tuple[int, bytes]]:
    """Long envelopes of MassTransit whose values are what a reader looks for, again and again."""
    body = json.dumps({"messageId": "x" * 40, "messageType": [f"urn:message:{number}"] * 900})
    told = b"\x80\0" + short(b"application/vnd.masstransit+json")
    head = struct.pack(">HHQ", 60, 0, len(body)) + told
    publish = method(1, 60, 40, b"\0\0" + short(b"e") + short(b"k") + b"\0")
    return [(CLIENT, publish + frame(2, 1, head) + frame(3, 1, body.encode()))]


# TCP and IP, as packets


def ports_reused() -> Iterator[list[bytes]]:
    """The same endpoints again and again, each time with lower numbers and without an end."""
    for number in count():
        connection = Connection(1)
        connection.sent = [(1 << 31) - 9_000 * number & 0xFFFFFFFF, 7_000 * number & 0xFFFFFFFF]
        said = [connection.packet(side, octets) for side, octets in connection.login()]
        yield [*connection.handshake(), *said] if number % 2 else said


def doubts() -> Iterator[list[bytes]]:
    """After each segment a RST and a SYN that TCP ignores."""
    connection = Connection(1)
    yield [*connection.handshake(), *(connection.packet(*one) for one in connection.login())]
    for number in count(1):
        before = list(connection.sent)
        connection.sent[0] += 50_000_000
        made = [connection.packet(CLIENT, b"", 4)]
        connection.sent[0] = number * 77_777 & 0xFFFFFFFF
        made.append(connection.packet(CLIENT, b"", 2))
        connection.sent = before
        yield [*made, connection.packet(CLIENT, frame(8, 0, b""))]


def every_other_byte() -> Iterator[list[bytes]]:
    """Segments of one byte with one missing between them, in falling order."""
    connection = Connection(1)
    yield [*connection.handshake(), *(connection.packet(*one) for one in connection.login())]
    begin = connection.sent[0]
    while True:
        made = []
        for at in range(20_000, 0, -2):
            connection.sent[0] = begin + at & 0xFFFFFFFF
            made.append(connection.packet(CLIENT, b"x"))
        begin += 20_001
        yield made


def fragments() -> Iterator[list[bytes]]:
    """Fragments of IP packets that are never whole."""
    for number in count():
        head = struct.pack(
            ">BBHHHBBHII", 0x45, 0, 28, number % 65_536, 0x2000 | 1 + number % 8_000, 64, 6, 0,
            BROKER + 1 + number % 999, BROKER,
        )  # fmt: skip
        yield [b"\0" * 12 + b"\x08\0" + head + b"12345678"]


def vlan_towers() -> Iterator[list[bytes]]:
    """Packets of VLAN headers within each other, and IP in IP in IP."""
    outer = b"".join(
        struct.pack(">BBHHHBBHII", 0x45, 0, 20 * (70 - at), 0, 0, 64, 4, 0, BROKER + at, BROKER)
        for at in range(70)
    )
    yield from ([b"\0" * 12 + b"\x81\0\0\1" * 300 + b"\x08\0" + outer] for _ in count())


# pcapng


def block(kind: int, body: bytes) -> bytes:
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
INTERFACE = block(1, struct.pack("<HHI", 1, 0, 0))


def write_blocks(blocks: Callable[[int], bytes]) -> Callable[[Path, int], Path]:
    """A pcapng file of blocks without end, with a connection that logs in at its beginning."""

    def write(path: Path, octets: int) -> Path:
        connection = Connection(1)
        said = [connection.packet(*one) for one in connection.login()]
        made = [SECTION, INTERFACE]
        for packet in [*connection.handshake(), *said]:
            padded = packet + bytes(-len(packet) % 4)
            made.append(block(6, struct.pack("<IIIII", 0, 0, 1, len(packet), len(packet)) + padded))
        with path.open("wb") as file:
            size = file.write(b"".join(made))
            for number in count():
                size += file.write(blocks(number))
                if size >= octets:
                    return path
        return path

    return write


def secrets(number: int) -> bytes:
    lines = b"".join(b"CLIENT_RANDOM %064x %096x\n" % (number * 100 + at, at) for at in range(100))
    padded = lines + bytes(-len(lines) % 4)
    return block(10, struct.pack("<II", 0x544C534B, len(lines)) + padded)


def names(number: int) -> bytes:
    one = struct.pack(">I", BROKER + number) + b"name%07d\0" % number
    return block(4, struct.pack("<HH", 1, len(one)) + one + bytes(-len(one) % 4) + bytes(4))


FLOWS = {
    "1.0: maps in maps": of_amqp10(deep_maps),
    "1.0: maps of many names": of_amqp10(wide_maps),
    "1.0: descriptors of descriptors": of_amqp10(described),
    "1.0: everything settled again": of_amqp10(sent, lambda n: disposition(n, TRUE)),
    "1.0: everything accepted again": of_amqp10(sent, lambda n: disposition(n, FALSE)),
    "1.0: nothing settled": of_amqp10(sent),
    "1.0: a transfer without end": of_amqp10(lambda n: [(CLIENT, transfer(0, b"x", True))]),
    "1.0: links without end": of_amqp10(links),
    "1.0: sessions without end": of_amqp10(sessions),
    "1.0: flow": of_amqp10(flow),
    "WebSocket: continued without end": web_socket(lambda n: piece(b"x") * 100),
    "WebSocket: empty frames": web_socket(lambda n: piece(b"") * 100),
    "WebSocket: pings": web_socket(lambda n: piece(b"x" * 9, 0x89) * 100),
    "TLS: hellos": tls_hellos,
    "TLS: records of a byte": tls_records,
    "TLS: handshakes in pieces": tls_pieces,
    "0-10: commands": amqp010,
}
"""Attacks as turns."""

ON_CHANNEL = {
    "packs: deep bodies of Celery": of_packs,
    "packs: compressed bodies": gzip_bodies,
    "packs: long envelopes": envelopes,
}
"""Attacks as what is said on a channel of 0-9-1."""

PACKETS = {
    "TCP: ports reused": ports_reused,
    "TCP: RST and SYN ignored": doubts,
    "TCP: every other byte": every_other_byte,
    "IP: fragments": fragments,
    "IP: headers in headers": vlan_towers,
}
"""Attacks as packets."""

FILES = {
    "pcapng: interfaces": write_blocks(lambda number: INTERFACE),
    "pcapng: sections": write_blocks(lambda number: SECTION + INTERFACE),
    "pcapng: secrets": write_blocks(secrets),
    "pcapng: names": write_blocks(names),
    "pcapng: unknown blocks": write_blocks(lambda number: block(0x7777, b"")),
}
"""Attacks as files."""
