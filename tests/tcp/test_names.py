"""What a conversation is called, wherever it is read: its endpoints as text, and its id."""

from __future__ import annotations

import struct
from hashlib import blake2b
from ipaddress import IPv4Address, ip_address
from itertools import permutations

import pytest

from amqpsniff.tcp import Limits
from amqpsniff.tcp.conversation import MAX_HOSTS
from tests.tcp.wire import ACK, SYN, Packet, run, tcp

Endpoint = tuple[str, int]

ENDPOINTS = (
    (("10.0.0.1", 40000), ("10.0.0.2", 5672)),
    (("10.0.0.1", 5672), ("10.0.0.1", 5673)),
    (("128.0.0.0", 65535), ("127.255.255.255", 1)),
    (("2001:db8::1", 40000), ("2001:db8::2", 5672)),
    (("ffff::ffff:ffff:ffff:ffff", 256), ("7fff:0:0:ffff::", 255)),
)


def segment(one: Endpoint, other: Endpoint, seq: int, payload: bytes, flags: int) -> Packet:
    """A segment from one endpoint to the other."""
    octets = tcp(seq, payload, flags, ports=(one[1], other[1]))
    ends = ip_address(one[0]).packed + ip_address(other[0]).packed
    if len(ends) == 8:
        return Packet(octets[:12] + ends + octets[20:])
    header = struct.pack(">IHBB", 6 << 28, len(octets) - 20, 6, 64)
    return Packet(header + ends + octets[20:], link_type=229)


def packed(end: Endpoint) -> bytes:
    return ip_address(end[0]).packed + struct.pack(">H", end[1])


def shown(end: Endpoint) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"


@pytest.mark.parametrize("ends", [pair for two in ENDPOINTS for pair in permutations(two)])
@pytest.mark.parametrize("isn", [0, 0xFFFFFFFF, None])
def test_names(ends: tuple[Endpoint, Endpoint], isn: int | None) -> None:
    """The id is the digest of the endpoints, the lower first, and the initial sequence number."""
    first = segment(*ends, isn or 0, b"", SYN) if isn is not None else segment(*ends, 7, b"x", ACK)
    (facts,) = run([first]).conversations
    octets = b"".join(sorted(map(packed, ends)))
    if isn is not None:
        octets += struct.pack(">I", isn)
    assert facts[:2] == tuple(map(shown, ends))
    assert facts[5] == blake2b(octets, digest_size=8).hexdigest()


def test_the_use_of_the_ports_names_what_began_before_the_capture() -> None:
    one, other = ENDPOINTS[0]
    rst = segment(one, other, 8, b"", 4 | ACK)
    again = segment(one, other, 2**31, b"x", ACK)
    first, second = run([segment(one, other, 7, b"x", ACK), rst, again]).conversations
    ends = b"".join(sorted(map(packed, (one, other))))
    assert first[5] == blake2b(ends, digest_size=8).hexdigest()
    assert second[5] == blake2b(ends + struct.pack(">Q", 1), digest_size=8).hexdigest()


def test_more_hosts_than_are_remembered() -> None:
    names = [str(IPv4Address(0x0A000000 + i)) for i in range(MAX_HOSTS + 5)] * 2
    packets = [
        segment((name, 1000 + i // len(set(names))), ("10.1.0.0", 5672), 7, b"", SYN)
        for i, name in enumerate(names)
    ]
    found = run(packets, limits=Limits(conversations=10_000)).conversations
    assert [facts[0].partition(":")[0] for facts in found] == names  # type: ignore[attr-defined]
