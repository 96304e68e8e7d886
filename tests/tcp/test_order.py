"""Segments in any order, twice, cut anew, across the wrap: the same bytes in order."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpsniff.tcp import Limits
from tests.tcp.wire import ACK, FIN, SYN, Packet, Talk, alike_in_any_batches, run
from tests.thorough import rounds

PATIENT = Limits(acked_hole_segments=10_000, acked_hole_ns=10**15, unacked_hole_ns=10**15)


def conversation(isn: tuple[int, int] = (1000, 9000)) -> Talk:
    talk = Talk(isn).hands()
    for number in range(6):
        talk.client(b"question %d " % number)
        talk.server(b"answer %d " % number)
    return talk.goodbye()


def test_in_order() -> None:
    result = alike_in_any_batches(conversation().packets)
    assert result.kinds() == ["open", *["data"] * 12, "close"]
    assert result.stream(0) == [b"".join(b"question %d " % number for number in range(6))]
    assert result.stream(1) == [b"".join(b"answer %d " % number for number in range(6))]
    assert [event.number for event in result.events] == [1, *range(4, 16), 18]
    assert result.events[0].a == "10.0.0.1:40000"
    (facts,) = result.conversations
    assert facts[:5] == ("10.0.0.1:40000", "10.0.0.2:5672", True, 1000, 0)
    assert facts[6] == 1
    assert facts[8] == 18
    assert facts[10:] == ("fin", 0, (10, 8), (66, 54), (0, 0), (0, 0), (0, 0))


@pytest.mark.parametrize("distance", [0, 1, 5, 11, 12, 13, 40])
@pytest.mark.parametrize("side", [0, 1])
def test_wrap(side: int, distance: int) -> None:
    isn = [1000, 9000]
    isn[side] = 2**32 - 1 - distance
    result = run(conversation((isn[0], isn[1])).packets)
    plain = run(conversation().packets)
    assert [event[3:] for event in result.events] == [event[3:] for event in plain.events]


@pytest.mark.parametrize("seed", range(5))
def test_queues_read_out_of_step(seed: int) -> None:
    """Packets come up to six packets late, and their acknowledgements before them."""
    talk = Talk(step_ns=50_000).hands()
    for number in range(100):
        talk.client(b"question %d " % number)
        talk.server(b"answer %d " % number)
    choose = random.Random(seed)
    late = [
        packet._replace(ts_ns=packet.ts_ns + choose.randrange(300_000)) for packet in talk.packets
    ]
    result = run(talk.packets[:3] + sorted(late[3:], key=lambda packet: packet.ts_ns))
    whole = run(talk.packets)
    assert [result.stream(side) for side in (0, 1)] == [whole.stream(side) for side in (0, 1)]
    assert result.counters["retransmissions"] == 0


def segments(draw: st.DrawFn, octets: bytes) -> list[tuple[int, bytes]]:
    """Pieces of `octets` that cover it, some twice and cut elsewhere."""
    pieces = []
    for _ in range(draw(st.integers(1, 3))):
        cuts = sorted(draw(st.sets(st.integers(1, len(octets) - 1), max_size=8)))
        edges = [0, *cuts, len(octets)]
        pieces += [(a, octets[a:b]) for a, b in itertools.pairwise(edges)]
    order = draw(st.permutations(pieces))
    return list(order)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[Packet], bytes, bytes]:
    isn = (draw(st.sampled_from([0, 77, 2**31 - 20, 2**32 - 20])), 2**32 - 5)
    talk = Talk(isn).hands()
    streams = (bytes(range(60)), bytes(range(100, 140)))
    waiting = [segments(draw, octets) for octets in streams]
    while any(waiting):
        side = draw(st.sampled_from([side for side in (0, 1) if waiting[side]]))
        at, octets = waiting[side].pop()
        talk.put(side, octets, at=at, ack=draw(st.integers(0, len(streams[1 - side]))))
    talk.sent = [60, 40]
    return talk.goodbye().packets, *streams


@settings(max_examples=rounds(300))
@given(shuffled())
def test_any_order_any_pieces(case: tuple[list[Packet], bytes, bytes]) -> None:
    packets, client, server = case
    result = alike_in_any_batches(packets, PATIENT)
    assert result.stream(0) == [client]
    assert result.stream(1) == [server]
    assert not result.findings
    assert result.conversations[0][15] == (0, 0)


def test_filled_hole_belongs_to_the_packet_that_filled_it() -> None:
    talk = Talk().hands()
    for at in (3, 6, 9, 0):
        talk.client(b"%03d" % at, at=at)
    result = alike_in_any_batches(talk.packets)
    assert [event.number for event in result.events[1:-1]] == [7, 7, 7, 7]
    assert result.stream(0) == [b"000003006009"]
    assert result.counters["out_of_order"] == 1
    assert result.counters["retransmissions"] == 0


def test_middle_of_a_conversation() -> None:
    talk = Talk()
    talk.sent = [5000, 7000]
    talk.client()
    talk.server(b"old")
    talk.client(b"new")
    talk.client(b"before", at=4990)
    result = alike_in_any_batches(talk.packets)
    assert result.events[0].a == "10.0.0.2:5672"
    assert result.stream(0) == [b"old"]
    assert result.stream(1) == [b"new"]
    assert result.events[0].number == 2
    assert result.conversations[0][2:4] == (False, None)


def test_data_on_syn() -> None:
    talk = Talk()
    talk.client(b"early", flags=SYN)
    talk.server(flags=SYN | ACK)
    talk.client(b" late")
    for packets in (talk.packets, [*talk.packets[:1], *talk.packets]):
        result = run(packets)
        assert result.stream(0) == [b"early late"]
        assert result.kinds().count("open") == 1


def test_only_the_answer_of_the_handshake() -> None:
    talk = conversation()
    result = run(talk.packets[1:])
    whole = run(talk.packets)
    assert result.events[0].a == "10.0.0.1:40000"
    assert result.conversations[0][2:6] == whole.conversations[0][2:6]
    assert [e.offset for e in result.events] == [e.offset for e in whole.events]


def test_syn_and_first_data_lost() -> None:
    talk = conversation()
    lost = [packet for number, packet in enumerate(talk.packets) if number not in (0, 3)]
    result = run(lost)
    assert result.stream(0)[0] == 11
    no_answer = [packet for number, packet in enumerate(talk.packets) if number not in (1, 4)]
    assert run(no_answer).stream(1)[0] == 9


def test_late_syn_is_the_conversations_own() -> None:
    packets = conversation().packets
    result = run([packets[3], packets[4], *packets[:3], *packets[5:]])
    assert result.kinds().count("open") == 1
    assert result.stream(0) == run(packets).stream(0)


def test_ports() -> None:
    packets = conversation().packets + Talk(ports=(40001, 80)).hands().packets
    result = run(packets, ports=frozenset({5672}))
    assert {event.a for event in result.events} == {"10.0.0.1:40000"}
    assert result.counters["other_ports"] == 3
    assert len(run(packets).conversations) == 2


def test_many_conversations_in_any_batches() -> None:
    choose = random.Random(5)
    talks = [Talk((n, n * 7), ports=(40000 + n, 5672)).hands() for n in range(40)]
    for _ in range(10):
        for talk in talks:
            talk.put(choose.randrange(2), bytes(choose.randrange(50)))
    for talk in talks[::2]:
        talk.goodbye()
    waiting = [list(talk.packets) for talk in talks]
    packets = []
    while any(waiting):
        packets.append(choose.choice([queue for queue in waiting if queue]).pop(0))
    result = alike_in_any_batches(packets)
    assert len(result.conversations) == 40
    assert not result.counters["retransmissions"]


def test_fin_waits_for_bytes_before_it() -> None:
    talk = Talk().hands()
    talk.client(b"two", at=3)
    talk.client(flags=FIN | ACK)
    talk.client(b"one", at=0)
    talk.server(flags=FIN | ACK, ack=7)
    talk.client(at=7, ack=1)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [b"onetwo"]
    assert result.events[-1].number == 8


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_handshake_in_any_order_was_sent_once(order: tuple[int, ...]) -> None:
    talk = Talk().hands()
    talk.client(b"first")
    packets = talk.packets[:]
    result = run([packets[place] for place in order])
    assert result.counters["retransmissions"] == 0
    again = run([packets[0], packets[0]._replace(ts_ns=packets[0].ts_ns + 10**9), *packets[1:]])
    assert again.counters["retransmissions"] == 1
