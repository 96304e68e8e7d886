"""Capture files by hand, and what readers make of them, for the tests of this folder."""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from amqpsniff.capture.packets import NO_TIME, PacketBatch

MICROSECONDS, NANOSECONDS, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34


class Row(NamedTuple):
    """One packet as a reader gives it."""

    number: int
    ts_ns: int
    octets: bytes
    original: int
    link_type: int


def rows(batches: Iterable[PacketBatch | None]) -> list[Row]:
    """Every packet of the batches."""
    return [
        Row(
            batch.number[row],
            batch.ts_ns[row],
            batch.packet(row),
            batch.original[row],
            batch.link_type[row],
        )
        for batch in batches
        if batch is not None
        for row in range(batch.begin, batch.end)
    ]


def pcap_header(
    order: str = "<", magic: int = MICROSECONDS, link: int = 1, minor: int = 4, snap: int = 65535
) -> bytes:
    return struct.pack(order + "IHHiIII", magic, 2, minor, 0, 0, snap, link)


def pcap_record(
    order: str,
    seconds: int,
    fraction: int,
    octets: bytes,
    original: int | None = None,
    modified: bool = False,
) -> bytes:
    whole = len(octets) if original is None else original
    header = struct.pack(order + "IIII", seconds, fraction, len(octets), whole)
    if modified:
        header += struct.pack(order + "IHBB", 3, 0x800, 0, 0)
    return header + octets


def pcap(order: str = "<", packets: int = 3, **header: int) -> bytes:
    """A file of packets 0, 1, 2, … bytes long, a second apart."""
    modified = header.get("magic") == MODIFIED
    return pcap_header(order, **header) + b"".join(
        pcap_record(order, 100 + n, n, bytes([n]) * n, n + 5, modified) for n in range(packets)
    )


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def options(order: str, *pairs: tuple[int, bytes]) -> bytes:
    octets = b"".join(
        struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in pairs
    )
    return octets + bytes(4) if pairs else b""


def section(order: str = "<", *pairs: tuple[int, bytes], major: int = 1) -> bytes:
    body = struct.pack(order + "IHHq", 0x1A2B3C4D, major, 0, -1)
    return block(0x0A0D0D0A, body + options(order, *pairs), order)


def interface(order: str = "<", *pairs: tuple[int, bytes], link: int = 1, snap: int = 0) -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, snap) + options(order, *pairs), order)


def enhanced(
    order: str,
    units: int,
    octets: bytes,
    *pairs: tuple[int, bytes],
    index: int = 0,
    original: int | None = None,
) -> bytes:
    whole = len(octets) if original is None else original
    body = struct.pack(order + "IIIII", index, units >> 32, units & 0xFFFFFFFF, len(octets), whole)
    return block(6, body + octets + bytes(-len(octets) % 4) + options(order, *pairs), order)


def obsolete(order: str, units: int, octets: bytes, index: int = 0) -> bytes:
    upper, lower = units >> 32, units & 0xFFFFFFFF
    body = struct.pack(order + "HHIIII", index, 7, upper, lower, len(octets), len(octets))
    return block(2, body + octets, order)


def simple(order: str, octets: bytes, original: int | None = None) -> bytes:
    whole = len(octets) if original is None else original
    return block(3, struct.pack(order + "I", whole) + octets, order)


def statistics(order: str, index: int, *pairs: tuple[int, int]) -> bytes:
    counts = [(code, struct.pack(order + "Q", count)) for code, count in pairs]
    return block(5, struct.pack(order + "III", index, 0, 0) + options(order, *counts), order)


def secrets(order: str, kind: int, octets: bytes) -> bytes:
    return block(10, struct.pack(order + "II", kind, len(octets)) + octets, order)


def pcapng(order: str = "<") -> bytes:
    """A file with every kind of block: eight packets in two sections of different byte order."""
    other = "<" if order == ">" else ">"
    return b"".join(
        (
            section(order, (1, b"first")),
            interface(order, (2, b"eth0"), (9, b"\x06")),
            interface(order, (2, b"nano"), (9, b"\x09"), link=113, snap=4),
            secrets(order, 0x544C534B, b"CLIENT_RANDOM 1 2\n"),
            enhanced(order, 1_000_001, b"abcde", (1, b"a comment")),
            enhanced(order, 1_500_000_000_000_000_001, b"abcd", index=1, original=900),
            block(4, bytes(8), order),
            simple(order, b"abcdef"),
            obsolete(order, 2_000_000, b"abcdefg"),
            block(0x1234, b"unknown", order),
            enhanced(order, 3_000_000, b""),
            statistics(order, 0, (4, 100), (5, 3)),
            section(other, (1, b"second")),
            interface(other, (14, struct.pack(other + "q", -10)), link=101),
            enhanced(other, 4_000_000, b"xyz"),
            block(0xBAD, struct.pack(other + "I", 32473) + b"custom", other),
            enhanced(other, 30_000_000, b"xyz0"),
            simple(other, b"12345678"),
        )
    )


PCAPNG_ROWS = [
    Row(1, 1_000_001_000, b"abcde", 5, 1),
    Row(2, 1_500_000_000_000_000_001, b"abcd", 900, 113),
    Row(3, NO_TIME, b"abcdef", 6, 1),
    Row(4, 2_000_000_000, b"abcdefg", 7, 1),
    Row(5, 3_000_000_000, b"", 0, 1),
    Row(6, -6_000_000_000, b"xyz", 3, 101),
    # 7 is the custom block, which Wireshark counts.
    Row(8, 20_000_000_000, b"xyz0", 4, 101),
    Row(9, NO_TIME, b"12345678", 8, 101),
]
