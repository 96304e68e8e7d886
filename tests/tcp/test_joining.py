"""Handshakes captured after what follows them: who opened a conversation, where it begins."""

from __future__ import annotations

import itertools

import pytest

from amqpsniff.tcp import Limits, Reassembler
from amqpsniff.tcp.limits import NO_TIME
from amqpsniff.tcp.stream import POSITION_FIELDS
from tests.tcp.wire import (
    ACK,
    FIN,
    MILLISECOND,
    RST,
    Packet,
    Result,
    Talk,
    alike_in_any_batches,
    batch,
    run,
)

HEADER = b"AMQP\x00\x00\x09\x01"
START = b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0a\xce"


def greeting() -> Talk:
    """SYN, its answer, ACK, header, start, start-ok."""
    talk = Talk(isn=(2**32 - 4, 9000)).hands()
    talk.client(HEADER)
    talk.server(START)
    talk.client(b"\x01\x00\x00start-ok")
    return talk


def told(result: Result) -> tuple[object, ...]:
    """What must not depend on the order of packets."""
    (facts,) = result.conversations
    order = [(e.kind, e.direction, e.offset, e.payload) for e in result.events]
    return (order, facts[:6], facts[12:17])


def test_any_order() -> None:
    packets = greeting().packets
    whole = run(packets)
    for order in itertools.permutations(range(6)):
        result = alike_in_any_batches([packets[at] for at in order])
        if order.index(5) < min(order.index(0), order.index(1), order.index(3), order.index(4)):
            continue  # the first thing captured does not look like a begin
        assert result.stream(0) == whole.stream(0), order
        assert result.stream(1) == whole.stream(1), order
        assert told(result)[:2] == told(whole)[:2], order


def later(wait_ns: int) -> list[Packet]:
    """The handshake so much later than the header."""
    packets = greeting().packets
    packets = [packets[3], packets[4], *packets[:3], packets[5]]
    return [
        packet._replace(ts_ns=packets[0].ts_ns + (wait_ns if number > 1 else 0))
        for number, packet in enumerate(packets)
    ]


def test_patience() -> None:
    limits = Limits()
    known = run(later(limits.acked_hole_ns - 1)).conversations[0]
    assert known[2:4] == (True, 2**32 - 4)
    unknown = alike_in_any_batches(later(limits.acked_hole_ns))
    assert unknown.conversations[0][3] is None, "it went on without"
    assert unknown.stream(0) == [HEADER + b"\x01\x00\x00start-ok"]


def test_the_last_packet_of_a_conversation_that_waited() -> None:
    """The packet whose time lets it go on is the last one."""
    talk = Talk()
    talk.client(HEADER)
    talk.wait(5000 * MILLISECOND)
    talk.server(flags=FIN | ACK)
    facts = alike_in_any_batches(talk.packets).conversations[0]
    assert facts[8:10] == (2, talk.now)


MIDDLE = b"\x01\x00\x01 a method of a channel"


def middle() -> Talk:
    """A conversation that began before the capture."""
    talk = Talk()
    talk.sent = [5000, 7000]
    return talk


def test_what_does_not_look_like_a_begin_does_not_wait() -> None:
    machine = Reassembler()
    assert len(machine.feed(batch([middle().client(MIDDLE)]))) == 2
    assert len(Reassembler().feed(batch(greeting().packets[3:4]))) == 0


def test_time_alone_lets_it_go_on() -> None:
    """No packet comes, but somebody knows what time it is."""
    machine = Reassembler()
    packet = middle().client(START)
    assert len(machine.feed(batch([packet]))) == 0
    assert len(machine.wait(packet.ts_ns + Limits().acked_hole_ns - 1)) == 0
    assert [event[0] for event in machine.wait(packet.ts_ns + 10 * MILLISECOND).events()] == [
        "open", "data",
    ]  # fmt: skip
    assert [event[0] for event in machine.finish().events()] == ["close"]


@pytest.mark.parametrize("side", [0, 1])
def test_endpoints_that_are_used_again_at_once(side: int) -> None:
    """The end of a conversation that began before the capture, and the next one's begin."""
    old = middle()
    old.put(side, START)
    old.put(1 - side, b"news")
    new = Talk(isn=(2**31, 2**31), start_ns=old.now).hands()
    new.client(HEADER)
    result = alike_in_any_batches([*old.packets, *new.packets])
    assert [facts[2] for facts in result.conversations] == [False, True]
    both = [event.payload for event in result.events if event.kind == "data"]
    assert both == [START, b"news", HEADER]


def test_streams_begin_with_the_lowest_bytes_where_nothing_tells() -> None:
    talk = middle()
    first = talk.client(HEADER)
    second = talk.client(b"second")
    result = run([second._replace(octets=second.octets[:40] + START), first])
    assert result.conversations[0][2:4] == (False, None)
    assert run([first, second]).stream(0) == [HEADER + b"second"]
    third = talk.client(b"third")
    mixed = alike_in_any_batches([first, third, second])
    assert mixed.stream(0) == [HEADER + b"secondthird"]


@pytest.mark.parametrize("timed", [True, False])
def test_segments_that_wait_are_bounded(timed: bool) -> None:
    limits = Limits(joining_segments=5)
    talk = Talk()
    for _ in range(20):
        talk.client(START)
    packets = [p if timed else p._replace(ts_ns=NO_TIME) for p in talk.packets]
    machine = Reassembler(limits=limits)
    assert [len(machine.feed(batch([p], n))) for n, p in enumerate(packets, 1)][:7] == [
        *[0] * 4,
        6,
        1,
        1,
    ]


def test_bytes_that_wait_are_bounded() -> None:
    talk = Talk()
    talk.client(START + bytes(40))
    talk.client(bytes(60))
    for octets, rows in ((112, 0), (111, 3)):
        machine = Reassembler(limits=Limits(joining_bytes=octets))
        assert len(machine.feed(batch(talk.packets))) == rows
        assert len(machine.finish()) == 4 - rows


def test_conversations_that_wait_are_bounded() -> None:
    limits = Limits(joining_conversations=3)
    packets = [Talk(ports=(40000 + n, 5672)).client(HEADER) for n in range(10)]
    machine = Reassembler(limits=limits)
    assert len(machine.feed(batch(packets))) == 2 * 7
    assert len(machine.finish()) == 2 * 3 + 10
    assert len(run(packets, limits=limits).conversations) == 10


def test_time_of_another_conversation_counts() -> None:
    first = Talk().client(HEADER)
    machine = Reassembler()
    assert len(machine.feed(batch([first]))) == 0
    other = Talk(ports=(40001, 5672), start_ns=first.ts_ns + 10 * MILLISECOND - 1000).client(b"x")
    events = [event[:2] for event in machine.feed(batch([other], 2)).events()]
    assert [kind for kind, _ in events] == ["open", "data", "open", "data"]


def test_a_server_that_speaks_before_its_answer_to_the_syn() -> None:
    """The SYN is there: only the direction whose begin is not known waits."""
    talk = greeting()
    syn, answer, ack, header, start, start_ok = talk.packets
    result = alike_in_any_batches([syn, start, start_ok, header, answer, ack])
    assert told(result)[0] == told(run(talk.packets))[0]
    without = alike_in_any_batches([syn, start, start_ok, header])
    assert told(without)[0] == told(run(talk.packets))[0]


def twice_read(packets: list[Packet]) -> int:
    """Read twice, the second time with positions; gives what the first one remembered for it."""
    first = Reassembler()
    starts = first.keep_starts()
    events = [first.feed(batch(packets)), first.finish()]
    second = Reassembler(positions=True, starts=starts)
    again = second.feed(batch(packets))
    taken = second.take_positions()
    offsets = {
        (again.conversations[half >> 1].serial, half & 1, offset)
        for half, offset in zip(taken[1::POSITION_FIELDS], taken[2::POSITION_FIELDS], strict=True)
    }
    assert offsets == {
        (talk.serial, side, offset)
        for one in events
        for kind, talk, side, offset, _, _ in one.events()
        if kind == "data"
    }
    return len(starts)


def test_another_reading_is_told() -> None:
    """With positions nothing waits; what the first reading found out is used."""
    syn, answer, ack, header, start, start_ok = greeting().packets
    assert twice_read([start, header, syn, answer, ack, start_ok]) == 1
    assert twice_read([syn, start, start_ok, header]) == 1
    assert twice_read(greeting().packets) == 0


def test_another_reading_is_told_of_the_right_conversation() -> None:
    """Endpoints are used again while they wait, and another conversation begins between."""
    old = middle()
    old.client(START)
    old.client(flags=RST)
    other = Talk(ports=(40001, 5672), start_ns=old.now)
    other.client(b"between")
    new = Talk(isn=(2**31, 2**31), start_ns=other.now)
    new.client(b"of the same endpoints")
    late = Talk(ports=(40002, 5672), start_ns=new.now)
    late.client(b"after")
    late.client(HEADER, at=5)
    late.client(b"before", at=0)
    packets = [*old.packets, *other.packets, *new.packets, *late.packets[1:]]
    assert twice_read(packets) == 2
