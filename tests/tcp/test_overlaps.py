"""Bytes that come twice: what is counted, and what differs."""

import pytest

from amqpsniff.tcp import Limits
from tests.tcp.wire import MILLISECOND, Packet, Talk, alike_in_any_batches, run


def sent() -> Talk:
    talk = Talk().hands()
    for number in range(10):
        talk.client(b"%d is sent. " % number)
    talk.wait(300 * MILLISECOND)
    return talk


def test_retransmission() -> None:
    talk = sent()
    talk.client(b"3 is sent. ", at=33)
    result = alike_in_any_batches(talk.packets)
    assert len(result.stream(0)) == 1
    assert result.conversations[0][14] == (1, 0)
    assert result.counters["retransmissions"] == 1
    assert not result.findings


@pytest.mark.parametrize("at", [1, 33, 40, 108])
def test_different_bytes(at: int) -> None:
    talk = sent()
    talk.client(b"!", at=at)
    result = alike_in_any_batches(talk.packets)
    assert result.codes() == ["tcp-overlap-conflict"]
    assert b"!" not in result.stream(0)[0]


def test_partly_new() -> None:
    talk = sent()
    talk.client(b"sent. 10 is new", at=104)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0)[0].endswith(b"9 is sent. 10 is new")
    assert result.counters["retransmissions"] == 1
    assert not result.findings
    talk.packets.pop()
    talk.client(b"SENT. 10 is new", at=104)
    conflict = run(talk.packets)
    assert conflict.codes() == ["tcp-overlap-conflict"]
    assert conflict.stream(0) == result.stream(0)


def test_history_ends() -> None:
    limits = Limits(history_segments=4)
    for at, codes in ((66, ["tcp-overlap-conflict"]), (65, [])):
        talk = sent()
        talk.client(b"!", at=at)
        assert run(talk.packets, limits=limits).codes() == codes
    limits = Limits(history_bytes=3 * 51 + 41)
    for at, codes in ((77, ["tcp-overlap-conflict"]), (65, [])):
        talk = sent()
        talk.client(b"!", at=at)
        assert alike_in_any_batches(talk.packets, limits).codes() == codes


def test_held_bytes_stay() -> None:
    talk = Talk().hands()
    talk.client(b"first", at=5)
    talk.client(b"later", at=5)
    talk.client(b"new: laterend", at=0)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [b"new: firstend"]
    assert result.codes() == ["tcp-overlap-conflict"] * 2
    assert result.counters["retransmissions"] == 1


def test_findings_end() -> None:
    talk = sent()
    for at in range(1, 60):
        talk.client(b"!", at=at)
    result = run(talk.packets)
    assert len(result.findings) == Limits().conflict_findings
    assert result.counters["retransmissions"] == 59


def copies(wait_ns: int) -> list[Packet]:
    packets = []
    talk = Talk().hands()
    for number in range(5):
        talk.client(b"%02d" % number)
    for packet in talk.packets:
        packets += [packet, packet._replace(ts_ns=packet.ts_ns + wait_ns)]
    return sorted(packets, key=lambda packet: packet.ts_ns)


def test_one_packet_captured_twice() -> None:
    result = alike_in_any_batches(copies(50))
    assert result.stream(0) == [b"0001020304"]
    assert (result.counters["duplicates"], result.counters["retransmissions"]) == (5, 0)
    late = run(copies(MILLISECOND + 2))
    assert (late.counters["duplicates"], late.counters["retransmissions"]) == (0, 5)


def test_one_packet_at_hosts_whose_clocks_differ() -> None:
    """The identification of an IP packet tells; what TCP sends again has another."""
    numbered = [
        packet._replace(octets=packet.octets[:4] + bytes((number >> 8, number)) + packet.octets[6:])
        for number, packet in enumerate(copies(40 * MILLISECOND)[:8], 7)
    ]
    there = [packet._replace(ts_ns=packet.ts_ns + 40 * MILLISECOND) for packet in numbered]
    result = alike_in_any_batches([*numbered, *there])
    assert (result.counters["duplicates"], result.counters["retransmissions"]) == (5, 0)
    again = [
        packet._replace(octets=packet.octets[:4] + bytes((9, number)) + packet.octets[6:])
        for number, packet in enumerate(there)
    ]
    result = run([*numbered, *again])
    assert (result.counters["duplicates"], result.counters["retransmissions"]) == (0, 5)


@pytest.mark.parametrize(("first", "copies"), [(7, 10), (65_534, 10), (7 + 13, 0)])
def test_copies_farther_back_than_is_remembered(first: int, copies: int) -> None:
    """Their identification is before that of later packets, that of what is sent again is not."""

    def numbered(begin: int, wait_ns: int) -> list[Packet]:
        return [
            packet._replace(
                octets=packet.octets[:4] + (number & 0xFFFF).to_bytes(2, "big") + packet.octets[6:],
                ts_ns=packet.ts_ns + wait_ns,
            )
            for number, packet in enumerate(sent().packets, begin)
        ]

    there = numbered(first, 40 * MILLISECOND)
    begin = first if copies else first - 13
    result = alike_in_any_batches([*numbered(begin, 0), *there], Limits(history_segments=4))
    counters = result.counters["duplicates"], result.counters["retransmissions"]
    assert counters == (copies, 10 - copies)


def test_held_packet_captured_twice() -> None:
    talk = Talk().hands()
    held = talk.client(b"later", at=5)
    copy = held._replace(ts_ns=held.ts_ns + 50)
    result = run([*talk.packets, copy, talk.client(b"first", at=0)])
    assert result.stream(0) == [b"firstlater"]
    assert (result.counters["duplicates"], result.counters["retransmissions"]) == (1, 0)


@pytest.mark.parametrize("held", [False, True])
def test_sent_again_at_once(held: bool) -> None:
    talk = Talk().hands()
    first = talk.client(b"later" if held else b"first", at=5 if held else 0)
    octets = first.octets[:4] + b"\0\1" + first.octets[6:]
    again = first._replace(octets=octets, ts_ns=first.ts_ns + 50)
    rest = talk.client(b"first", at=0) if held else talk.client(b"later")
    result = alike_in_any_batches([*talk.packets[:-1], again, again, rest])
    assert result.stream(0) == [b"firstlater"]
    assert (result.counters["duplicates"], result.counters["retransmissions"]) == (
        (0, 2) if held else (1, 1)
    )


def _numbered(packet: Packet, number: int) -> Packet:
    """A packet whose IP header has this identification."""
    octets = packet.octets[:4] + number.to_bytes(2, "big") + packet.octets[6:]
    return packet._replace(octets=octets)


LATE, SENT_AGAIN = (1, 0), (0, 1)


@pytest.mark.parametrize(
    ("after_ms", "trip_ms", "later_by", "acked", "hands", "found"),
    [
        (20, 20, 1, False, True, SENT_AGAIN),
        (20, 20, 0, False, True, SENT_AGAIN),  # IP packets without identification
        (5, 20, 1, False, True, LATE),  # sooner than an answer can be
        (2, 0, 1, False, True, LATE),
        (20, 0, -1, False, True, LATE),  # sent before what follows it
        (5, 0, 1, True, True, LATE),  # its receiver had it: it was captured late
        (20, 0, 1, False, False, SENT_AGAIN),
        (20, 0, 0, False, False, LATE),  # nobody knows how long a round trip takes
    ],
)
def test_lost_before_the_capture(
    after_ms: int, trip_ms: int, later_by: int, acked: bool, hands: bool, found: tuple[int, int]
) -> None:
    """A segment that fills a hole a round trip later was sent again; one that was late was not."""
    talk = Talk(step_ns=trip_ms * MILLISECOND // 2)
    if hands:
        talk.hands()
    talk.client(b"one")
    behind = talk.client(b"three", at=6)
    if acked:
        talk.server(ack=11)
    filler = talk.client(b"two", at=3)._replace(ts_ns=behind.ts_ns + after_ms * MILLISECOND)
    packets = [*talk.packets[:-1], filler]
    if later_by:
        packets[packets.index(behind)] = _numbered(behind, 1_000)
        packets[-1] = _numbered(filler, 1_000 + later_by)
    result = alike_in_any_batches(packets)
    assert b"".join(map(bytes, result.stream(0))) == b"onetwothree"
    assert (result.counters["out_of_order"], result.counters["retransmissions"]) == found
    assert result.conversations[0][14][0] == found[1]


@pytest.mark.parametrize("probe", [b"", b"\0"])
def test_keep_alive(probe: bytes) -> None:
    talk = sent()
    talk.client(probe, at=109)
    talk.server()
    talk.client(b"10")
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0)[0].endswith(b"9 is sent. 10")
    assert not result.findings
    assert not result.counters["retransmissions"]


def test_probe_of_a_closed_window() -> None:
    talk = sent()
    for _ in range(3):
        talk.client(b"1", at=110)
    talk.client(b"10 is sent.", at=110)
    result = run(talk.packets)
    assert result.stream(0)[0].endswith(b"9 is sent. 10 is sent.")
    assert not result.findings
