"""Segments whose two endpoints are the same, which no TCP sends and anybody can forge."""

from __future__ import annotations

import struct
from pathlib import Path

import amqpsniff
from tests.capture.build import pcap_header, pcap_record
from tests.tcp.wire import IPV4_LINK

SYN, ACK, FIN = 2, 16, 1


def _packet(seq: int, ack: int, flags: int) -> bytes:
    """A segment from 10.0.0.1:5672 to 10.0.0.1:5672."""
    tcp = struct.pack(">HHIIBBHHH", 5672, 5672, seq, ack, 0x50, flags, 65_535, 0, 0)
    ends = bytes([10, 0, 0, 1]) * 2
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0) + ends + tcp


def test_a_conversation_with_itself_ends(tmp_path: Path) -> None:
    """Its two directions have one key."""
    path = tmp_path / "itself.pcap"
    segments = [(100, 0, SYN), (300, 101, SYN | ACK), (101, 301, ACK), (101, 301, FIN | ACK)]
    records = [pcap_record("<", 1, at, _packet(*one)) for at, one in enumerate(segments)]
    path.write_bytes(pcap_header(link=IPV4_LINK) + b"".join(records))
    assert amqpsniff.open(path).summary()["packets"] == len(segments)
