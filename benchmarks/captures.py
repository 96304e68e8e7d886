"""Big captures for measuring, made from the real ones in `samples/`.

Each round repeats the samples' packets with other addresses and later times, so that every
connection of every round is one of its own and nothing else about the traffic changes.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

SAMPLES = Path(__file__).parent.parent / "samples"
AMQP10 = Path(__file__).parent.parent / "tests" / "captures" / "amqp10"
PACKS = Path(__file__).parent.parent / "tests" / "captures" / "packs"
OURS = Path(__file__).parent / "traffic"
"""Captures that are only of use here; see the README."""

MIXES = {
    "mixed": ("pika_mix", "aiopika_rpc", "node", "blocked", "php_churn"),
    "messages": ("node",),
    "connections": ("php_churn",),
    "bodies": ("bodies",),
    "acks": ("acks",),
    "rpc": ("aiopika_rpc",),
    "tls": ("tls13",),
    "amqp10": ("rabbit_outcomes",),
    "steady10": ("steady10",),
}
"""Name of a capture → the real captures it repeats."""

ORDINARY = ("mixed", "messages", "connections", "acks")
"""Of these, ordinary traffic: a mix of everything, much in few messages, short connections, and
acknowledgements one by one."""

FIRST_SECOND = 1_700_000_000
_ETHERNET_IPV4 = b"\x08\x00"


def bytes_of(sample: str) -> bytes:
    """A real capture, of the samples or of ours."""
    for folder in (SAMPLES, AMQP10):
        path = folder / f"{sample}.pcap"
        if path.exists():
            return path.read_bytes()
    folder = PACKS if (PACKS / f"{sample}.pcap.gz").exists() else OURS
    return gzip.decompress((folder / f"{sample}.pcap.gz").read_bytes())


def records_of(sample: str) -> list[tuple[int, bytearray]]:
    """(microseconds since the sample's first packet, record with its header) of each packet."""
    octets = bytes_of(sample)
    records = []
    at = 24
    begin = None
    while at + 16 <= len(octets):
        seconds, micros, captured, _ = struct.unpack_from("<IIII", octets, at)
        time = seconds * 1_000_000 + micros
        begin = time if begin is None else begin
        records.append((time - begin, bytearray(octets[at : at + 16 + captured])))
        at += 16 + captured
    return records


def make(name: str, octets: int, path: Path) -> Path:
    """Write the capture `name` of at least `octets` bytes to `path`, unless it is there."""
    if path.exists() and path.stat().st_size >= octets:
        return path
    samples = [records_of(sample) for sample in MIXES[name]]
    time = FIRST_SECOND * 1_000_000
    size = 24
    turn = 0
    with path.open("wb") as file:
        file.write(bytes_of(MIXES[name][0])[:24])
        while size < octets:
            for records in samples:
                for offset, record in records:
                    renew(record, time + offset, turn)
                    file.write(record)
                    size += len(record)
                time += records[-1][0] + 1000
            turn += 1
    return path


def renew(record: bytearray, micros: int, turn: int) -> None:
    """Give a packet another time, and the addresses of this round."""
    struct.pack_into("<II", record, 0, micros // 1_000_000, micros % 1_000_000)
    if record[28:30] == _ETHERNET_IPV4:
        high, low = turn >> 8 & 255, turn & 255
        record[43:45] = bytes((high, low))  # the middle two bytes of the source address
        record[47:49] = bytes((high, low))  # and of the destination
