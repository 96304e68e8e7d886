"""Where segments lie in their streams: also those sent again, out of order, or overlapping."""

from __future__ import annotations

import random

import pytest

from amqpsniff.tcp import POSITION_FIELDS, Reassembler
from tests.tcp.wire import SYN, Packet, Talk, batch, tcp

STREAM = bytes(range(256)) * 8


def positions(packets: list[Packet], size: int) -> list[tuple[int, int, int, bytes]]:
    """(conversation, direction, offset, bytes) of every segment that has a position."""
    machine = Reassembler(positions=True)
    found = []
    for first in range(0, len(packets), size):
        fed = batch(packets[first : first + size], first + 1)
        events = machine.feed(fed)
        taken = machine.take_positions()
        for at in range(0, len(taken), POSITION_FIELDS):
            _, half, offset, start, captured, _ = taken[at : at + POSITION_FIELDS]
            serial = events.conversations[half >> 1].serial
            octets = fed.octets[start : start + captured]
            found.append((serial, half & 1, offset, octets))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_segments_of_one_stream(seed: int) -> None:
    """Whatever is sent in whatever order, bytes of the stream are at their offsets."""
    choose = random.Random(seed)
    talk = Talk(isn=(2**32 - 700, 9000)).hands()  # numbers wrap around
    sent = 0
    while sent < len(STREAM):
        begin = max(0, sent - choose.choice((0, 0, 0, 5, 200)))
        end = min(len(STREAM), begin + choose.randrange(1, 300))
        talk.put(0, STREAM[begin:end], at=begin)
        sent = max(sent, end)
        if choose.random() < 0.3:
            talk.server()
    packets = talk.packets[:3] + _disturbed(talk.packets[3:], choose)
    for size in (1, 3, 1000):
        found = positions(packets, size)
        assert all(octets == STREAM[at : at + len(octets)] for _, _, at, octets in found)
        assert {(serial, direction) for serial, direction, _, _ in found} == {(1, 0)}
        assert found == positions(packets, 1)
        assert len(found) == sum(len(packet.octets) > 40 for packet in packets)


def _disturbed(packets: list[Packet], choose: random.Random) -> list[Packet]:
    """Neighbours change places, and some come twice."""
    there = list(packets)
    for at in range(len(there) - 1):
        if choose.random() < 0.3:
            there[at], there[at + 1] = there[at + 1], there[at]
    return [again for each in there for again in [each] * choose.choice((1, 1, 1, 2))]


def test_a_snap_length() -> None:
    talk = Talk().hands()
    packet = talk.client(STREAM[:100])
    found = positions([*talk.packets[:3], packet.cut(40 + 30)], 10)
    assert found == [(1, 0, 0, STREAM[:30])]


def test_what_came_before_the_capture() -> None:
    """Offsets of what is older than the first byte captured are negative."""
    talk = Talk()
    talk.put(0, STREAM[500:600], at=500)
    talk.put(0, STREAM[400:520], at=400)
    assert [(at, octets) for _, _, at, octets in positions(talk.packets, 10)] == [
        (0, STREAM[500:600]), (-100, STREAM[400:520]),
    ]  # fmt: skip


def test_segments_without_a_position() -> None:
    """A segment that is impossible, and one after the end of its conversation."""
    talk = Talk().hands()
    talk.client(b"here")
    strange = Packet(tcp(talk.isn[0] + 2**31, b"nowhere"), talk.now + 1)
    found = positions([*talk.packets, strange], 10)
    assert [octets for *_, octets in found] == [b"here"]
    assert positions([Packet(tcp(1000, b"", SYN))], 1) == []
