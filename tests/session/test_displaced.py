"""Captures whose packets are out of order, or whose times are wrong, give the frames of the whole.

Each packet is late by up to so many milliseconds, or by so many places, or keeps its place and has
a time that is wrong by as much. Some captures have real losses, and of some packets are taken out:
there it depends on the order of packets which responses are certain.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from amqpsniff import Engine
from amqpsniff.capture import open_capture
from tests.conftest import own_capture
from tests.thorough import some

Packet = tuple[bytes, int, int, int]
"""Bytes, time, link type and length on the wire."""

ASIDE = {"packet_number", "ts_ns", "timestamp", "response_packet_number", "response_ns"}

NAMES = (
    "aiopika_rpc amqplib08 blocked bunny kombu late_consumer lost midstream node php_churn "
    "pika_mix snapped zerowindow"
).split()

MILLISECOND = 1_000_000


def _paths() -> list[Path]:
    return [own_capture(name) for name in NAMES]


@cache
def _packets(path: Path) -> tuple[Packet, ...]:
    return tuple(
        (batch.octets[start : start + captured], batch.ts_ns[row], link, batch.original[row])
        for batch in open_capture(str(path))
        for row in range(batch.begin, batch.end)
        for start, captured, link in [(batch.start[row], batch.captured[row], batch.link_type[row])]
    )


def _streams(packets: list[Packet], responses: bool = True) -> dict[Any, list[Any]]:
    """What is seen of each direction of each connection, but packets and times; `responses`: and
    whether a frame has one."""
    engine = Engine()
    for octets, ts_ns, link_type, original in packets:
        engine.feed_packet(octets, ts_ns, link_type, original)
    engine.finish()
    streams = defaultdict(list)
    for row in engine.take("frames").to_pylist():
        answered = responses and row["response_packet_number"] is not None
        seen = [(name, value) for name, value in row.items() if name not in ASIDE]
        streams[row["connection_id"], row["sender"]].append((seen, answered))
    return streams


@cache
def _whole(path: Path) -> dict[Any, Any]:
    return _streams(list(_packets(path)))


def _late(packets: list[Packet], choose: random.Random, most: float) -> list[Packet]:
    """Late by up to `most` milliseconds; each keeps its time."""
    return sorted(packets, key=lambda packet: packet[1] + choose.random() * most * MILLISECOND)


def _displaced(packets: list[Packet], choose: random.Random, most: float) -> list[Packet]:
    """Late by up to `most` places, but not across a pause of half a millisecond."""
    bursts: list[list[Packet]] = []
    for packet in packets:
        if not bursts or packet[1] - bursts[-1][-1][1] > MILLISECOND // 2:
            bursts.append([])
        bursts[-1].append(packet)
    return [
        burst[at]
        for burst in bursts
        for at in sorted(range(len(burst)), key=lambda at: at + choose.random() * most)
    ]


def _mistimed(packets: list[Packet], choose: random.Random, most: float) -> list[Packet]:
    """In order, with times that are wrong by up to `most` milliseconds, and go back."""
    return [
        (octets, ts_ns + int(choose.random() * most * MILLISECOND), link_type, original)
        for octets, ts_ns, link_type, original in packets
    ]


WAYS = [(_late, 1), (_late, 2), (_displaced, 3), (_displaced, 12), (_mistimed, 3), (_mistimed, 8)]


CASES = [(path, way, most, losses) for losses in (0, 3) for path in _paths() for way, most in WAYS]


@pytest.mark.parametrize(
    ("path", "way", "most", "losses"), some(CASES), ids=lambda one: getattr(one, "name", None)
)
def test_frames_of_the_whole(path: Path, way: Any, most: float, losses: int) -> None:
    choose = random.Random(f"{path.name} {way.__name__} {most} {losses}")
    packets = list(_packets(path))
    for _ in range(losses):
        del packets[choose.randrange(len(packets) // 4, len(packets))]
    expected = _streams(packets, responses=False) if losses else _whole(path)
    assert _streams(way(packets, choose, most), responses=not losses) == expected
