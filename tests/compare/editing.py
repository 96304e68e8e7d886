"""Captures changed as networks, hosts and tcpdump would."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import amqpsniff
from amqpsniff.capture import open_capture
from amqpsniff.compare import SameTraffic
from tests.cli.running import write_capture
from tests.conftest import SAMPLES
from tests.tcp.wire import Packet

PAIRS = SAMPLES / "compared"


def packets(path: Path) -> list[Packet]:
    """The packets of a capture."""
    found = []
    with open_capture(path) as capture:
        for batch in capture:
            found += [
                Packet(
                    batch.packet(row), batch.ts_ns[row], batch.original[row], batch.link_type[row]
                )
                for row in range(batch.begin, batch.end)
            ]
    return found


def without(path: Path, target: Path, *numbers: int) -> Path:
    """A capture that lacks some packets, by their number from 1."""
    listed = packets(path)
    return write_capture(target, [p for at, p in enumerate(listed, 1) if at not in numbers])


def shifted(path: Path, target: Path, clock: Callable[[int], int]) -> Path:
    """A capture made on a host with another clock."""
    return write_capture(target, [p._replace(ts_ns=clock(p.ts_ns)) for p in packets(path)])


def replaced(path: Path, target: Path, old: bytes, new: bytes) -> Path:
    """A capture in which bytes of one packet, the first that has them, are others."""
    listed, done = [], False
    for packet in packets(path):
        if not done and old in packet.octets:
            done = True
            packet = packet._replace(octets=packet.octets.replace(old, new, 1))  # noqa: PLW2901
        listed.append(packet)
    assert done
    return write_capture(target, listed)


def compared(client: Path, broker: Path, **options: Any) -> dict[str, Any]:
    """What the comparison of two captures of the same traffic says."""
    traffic = SameTraffic(amqpsniff.open(client, **options), amqpsniff.open(broker, **options))
    for _ in traffic.read():
        pass
    try:
        return traffic.report()
    finally:
        traffic.close()


def data_packets(path: Path, marks: Iterable[bytes]) -> list[int]:
    """Numbers of the packets that hold these bytes, the first one for each."""
    listed = packets(path)
    return [next(at for at, one in enumerate(listed, 1) if mark in one.octets) for mark in marks]
