"""Bytes of any kind raise nothing, and the events are the same in batches of any size."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpsniff.tcp import Limits
from tests.conftest import SHARED
from tests.fuzz.fuzz_tcp import LIMITS, LINK_TYPES, one_input
from tests.fuzz.fuzz_tcp import packets as packets_of
from tests.tcp.test_headers import CASES
from tests.tcp.wire import START_NS, Packet, Talk, run
from tests.thorough import rounds


@settings(max_examples=rounds(400))
@given(st.binary(max_size=400))
def test_instructions(data: bytes) -> None:
    one_input(data)


@st.composite
def mutated(draw: st.DrawFn) -> Packet:
    link_type, layers = CASES[draw(st.sampled_from(sorted(CASES)))]
    octets = bytearray(bytes(layers))
    for _ in range(draw(st.integers(0, 5))):
        octets[draw(st.integers(0, len(octets) - 1))] = draw(st.integers(0, 255))
    cut = draw(st.integers(0, len(octets)))
    original = draw(st.sampled_from([len(octets), cut, 0, 2**31]))
    link_type = draw(st.sampled_from([link_type, *LINK_TYPES]))
    return Packet(bytes(octets[:cut]), START_NS, original, link_type)


@settings(max_examples=rounds(300))
@given(st.lists(mutated(), max_size=8))
def test_damaged_packets(packets: list[Packet]) -> None:
    assert run(packets) == run(packets, 1)


@settings(max_examples=rounds(200))
@given(st.lists(st.tuples(st.binary(max_size=120), st.sampled_from(LINK_TYPES)), max_size=8))
def test_garbage(octets: list[tuple[bytes, int]]) -> None:
    run([Packet(block, START_NS, None, link_type) for block, link_type in octets])


@pytest.mark.parametrize("seed", range(rounds(30)))
def test_wild_talk(seed: int) -> None:
    choose = random.Random(seed)
    limits = Limits(held_bytes=3000, conversations=4, closed_conversations=2)
    talks = [Talk((choose.getrandbits(32), 2**32 - 40), ports=(n, 5672)) for n in range(1, 7)]
    packets = []
    for _ in range(400):
        talk = choose.choice(talks)
        at = choose.choice([None, None, None, choose.randrange(400), choose.getrandbits(32)])
        flags = choose.choice([16] * 12 + [2, 18, 17, 4, 0])
        payload = choose.randbytes(choose.choice([0, 1, 8, 90]))
        packet = talk.put(choose.randrange(2), payload, at=at, flags=flags)
        talk.sent = [sent & 0x1FF for sent in talk.sent]
        packets.append(packet.cut(choose.choice([1000, 1000, 60])))
    assert run(packets, limits=limits) == run(packets, 3, limits)


def instructions(choose: random.Random) -> bytes:
    """Instructions for segments near each other, payload told by the sequence number."""
    found = bytearray()
    for _ in range(200):
        flags = choose.choice([16] * 14 + [2, 17, 4, 0x90, 0])
        length = 0 if flags == 2 else choose.choice([0, 1, 5, 10, 20, 30])
        kind = choose.choice([0, 1, 0, 1, 0, 1, 2, 3, 4, 12, 16, 28])
        place, answered = choose.randrange(95, 200), choose.choice([100, 110, 130, 200])
        found += bytes((kind, place, length, flags, answered, choose.choice([0] * 9 + [1, 3, 4])))
    return bytes(found)


@pytest.mark.parametrize("seed", range(rounds(60)))
def test_bytes_stay_in_their_place(seed: int) -> None:
    data = instructions(random.Random(seed))
    one_input(data)
    shifts: dict[tuple[str, int], set[int]] = {}
    for event in run(packets_of(data), limits=LIMITS).events:
        if event.kind == "open":
            shifts[event.connection_id, 0] = set()
            shifts[event.connection_id, 1] = set()
        elif isinstance(event.payload, bytes):
            shift = shifts[event.connection_id, event.direction]
            for position, octet in enumerate(event.payload, event.offset):
                shift.add((octet - position) & 0xFF)
            assert len(shift) <= 1


def test_raw_streams_as_packets() -> None:
    files = sorted((SHARED / "captures" / "public" / "raw").rglob("*.raw"))
    if not files:
        pytest.skip("no raw captures beside the repository (AMQPSNIFF_SHARED)")
    for file in files:
        octets = file.read_bytes()
        pieces = [octets[at : at + 80] for at in range(0, len(octets), 80)]
        for link_type in (1, 101, 113):
            run([Packet(piece, START_NS, None, link_type) for piece in pieces])
