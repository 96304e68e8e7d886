"""What the capture has not: when a hole is given up, and how much is held until then."""

import random

import pytest

from amqpsniff.tcp import Limits
from amqpsniff.tcp.limits import HELD_SEGMENT_BYTES, NO_TIME
from tests.tcp.wire import MILLISECOND, Packet, Talk, alike_in_any_batches, run
from tests.thorough import rounds

PIECES = [b"alpha", b"beta", b"gamma", b"delta", b"epsilon", b"zeta"]


def exchange(isn: tuple[int, int] = (1000, 9000)) -> Talk:
    talk = Talk(isn).hands()
    for piece in PIECES:
        talk.client(piece)
        talk.server(piece[::-1])
    return talk.goodbye()


@pytest.mark.parametrize("lost", range(3, 15))
@pytest.mark.parametrize("isn", [(1000, 9000), (2**32 - 12, 2**32 - 9)])
def test_one_lost_packet_is_one_gap(lost: int, isn: tuple[int, int]) -> None:
    packets = exchange(isn).packets
    result = alike_in_any_batches(packets[:lost] + packets[lost + 1 :])
    side, index = (lost - 3) % 2, (lost - 3) // 2
    pieces = PIECES if side == 0 else [piece[::-1] for piece in PIECES]
    expected = [
        b"".join(pieces[:index]),
        len(pieces[index]),
        b"".join(pieces[index + 1 :]),
    ]
    assert result.stream(side) == [part for part in expected if part]
    assert result.stream(1 - side) == [b"".join(p[::-1] if side == 0 else p for p in PIECES)]
    assert result.conversations[0][15][side] == 1
    assert result.conversations[0][16][side] == len(pieces[index])


def holed(acknowledge: bool = True) -> Talk:
    """A lost segment of 4 bytes, one after it, and, if asked, the acknowledgement of both."""
    talk = Talk().hands()
    talk.client(b"kept")
    talk.sent[0] = 8
    talk.client(b"next")
    if acknowledge:
        talk.server(ack=12)
    return talk


def test_acknowledged_hole_by_segments() -> None:
    talk = holed()
    for _ in range(7):
        talk.server(ack=12)
    result = alike_in_any_batches(talk.packets)
    assert [event.number for event in result.events[2:]] == [5, 5, 13]
    talk.server(ack=12)
    talk.client(b"more")
    more = alike_in_any_batches(talk.packets)
    assert more.stream(0) == [b"kept", 4, b"nextmore"]
    order = [(event.kind, event.number) for event in more.events]
    assert order == [("open", 1), ("data", 4), ("gap", 5), ("data", 5), ("data", 15), ("close", 15)]


def test_acknowledged_hole_by_time() -> None:
    talk = holed()
    talk.wait(10 * MILLISECOND - 3 * talk.step_ns)
    talk.client(b"kept", at=0)
    late = talk.client(b"lost", at=4)
    assert run(talk.packets).stream(0) == [b"keptlostnext"]
    packets = [*talk.packets[:-1], late._replace(ts_ns=late.ts_ns + talk.step_ns)]
    assert run(packets).stream(0) == [b"kept", 4, b"next"]


@pytest.mark.parametrize("seed", range(rounds(30)))
def test_holes_are_given_up_alike_whoever_else_is_there(seed: int) -> None:
    """Several holes in a row: the wait for the next one begins when the one before is over."""
    chance = random.Random(seed)
    talks = [exchange_slowly(chance, 40000 + at) for at in range(4)]
    packets = sorted(
        (one for talk in talks for one in talk.packets[:3] + lossy(chance, talk.packets[3:])),
        key=lambda one: one.ts_ns,
    )
    together = run(packets)
    for talk in talks:
        numbers = {one: at for at, one in enumerate(packets, 1)}
        own = [one for one in talk.packets if one in numbers]
        name = f":{talk.ports[0]}"
        among = [e for e in together.events if e.a.endswith(name)]
        alone = [e._replace(number=numbers[own[e.number - 1]]) for e in run(own).events]
        assert [e._replace(connection_id="") for e in alone] == [
            e._replace(connection_id="") for e in among
        ]


def lossy(chance: random.Random, packets: list[Packet]) -> list[Packet]:
    """Some of the packets."""
    return [one for one in packets if chance.random() < 0.6]


def exchange_slowly(chance: random.Random, port: int) -> Talk:
    """Some segments of both sides with pauses about as long as holes are waited for."""
    talk = Talk(ports=(port, 5672)).hands()
    for turn in range(40):
        talk.put(chance.randrange(2), b"%d" % (turn * port))
        talk.wait(chance.choice([1000, 3 * MILLISECOND, 9 * MILLISECOND, 700 * MILLISECOND]))
    return talk


def test_time_of_another_conversation_counts() -> None:
    talk = holed()
    other = Talk(ports=(40001, 5672), start_ns=talk.now + 10 * MILLISECOND).hands()
    result = alike_in_any_batches([*talk.packets, *other.packets])
    kinds = [(event.kind, event.a[-5:]) for event in result.events]
    assert kinds[2:5] == [("gap", "40000"), ("data", "40000"), ("open", "40001")]


def test_hole_without_acknowledgement_waits() -> None:
    talk = holed(acknowledge=False)
    talk.wait(3600 * 1000 * MILLISECOND)
    talk.server(ack=4)
    talk.client(b"lost", at=4)
    assert run(talk.packets).stream(0) == [b"keptlostnext"]


def one_direction(after_ns: int) -> list[Packet]:
    talk = Talk()
    talk.client(b"kept")
    talk.sent[0] = 8
    talk.client(b"next")
    talk.wait(after_ns - talk.step_ns)
    talk.client(b"lost", at=4)
    talk.client(b"more")
    return talk.packets


def test_one_direction_waits_two_seconds() -> None:
    assert run(one_direction(2000 * MILLISECOND - 1)).stream(0) == [b"keptlostnextmore"]
    result = alike_in_any_batches(one_direction(2000 * MILLISECOND))
    assert result.stream(0) == [b"kept", 4, b"nextmore"]


def test_one_direction_holds_so_many_segments() -> None:
    limits = Limits()
    talk = Talk()
    talk.client(b"kept")
    talk.sent[0] = 8
    for _ in range(limits.unacked_hole_segments - 1):
        talk.client(b"x")
    assert run([*talk.packets, talk.client(b"lost", at=4)]).stream(0)[0][:8] == b"keptlost"
    talk.packets.pop()
    talk.client(b"x")
    talk.client(b"lost", at=4)
    assert run(talk.packets).stream(0) == [b"kept", 4, b"x" * limits.unacked_hole_segments]


def test_packets_without_time_wait_for_segments_only() -> None:
    packets = [packet._replace(ts_ns=NO_TIME) for packet in exchange().packets]
    result = alike_in_any_batches(packets[:5] + packets[6:])
    assert result.stream(0) == [b"alpha", 4, b"gammadeltaepsilonzeta"]


def test_several_holes_acknowledged_at_once() -> None:
    talk = Talk().hands()
    for at in range(0, 40, 4):
        talk.client(b"%04d" % at, at=at * 2)
    talk.server()
    for _ in range(8):
        talk.server()
    talk.client(b"end")
    result = alike_in_any_batches(talk.packets)
    expected: list[bytes | int] = []
    for at in range(0, 40, 4):
        expected += [b"%04d" % at, 4]
    expected[-1:] = []
    assert isinstance(expected[-1], bytes)
    expected[-1] += b"end"
    assert result.stream(0) == expected


@pytest.mark.parametrize("captured", [40, 41, 50, 65])
def test_cut_by_the_snap_length(captured: int) -> None:
    talk = Talk().hands()
    payloads = [bytes([65 + number]) * 26 for number in range(4)]
    for payload in payloads:
        talk.client(payload)
    packets = [*talk.packets[:3], *(packet.cut(captured) for packet in talk.packets[3:])]
    result = alike_in_any_batches(packets)
    expected: list[bytes | int] = []
    for payload in payloads:
        expected += [payload[: captured - 40], 66 - captured]
    if captured == 40:
        expected = [4 * 26]
    assert result.stream(0) == expected
    assert result.counters["cut"] == 4
    assert not result.findings


def test_cut_segments_out_of_order() -> None:
    talk = Talk().hands()
    packets = [talk.client(bytes([65 + number]) * 20, at=20 * number) for number in (2, 1, 0)]
    result = alike_in_any_batches([*talk.packets[:3], *(packet.cut(50) for packet in packets)])
    assert result.stream(0) == [b"A" * 10, 10, b"B" * 10, 10, b"C" * 10, 10]


def test_last_segment_lost() -> None:
    talk = Talk().hands()
    talk.client(b"kept")
    talk.client(b"lost")
    talk.packets.pop()
    talk.server()
    assert run(talk.packets).stream(0) == [b"kept", 4]
    talk.goodbye()
    assert run(talk.packets).stream(0) == [b"kept", 4]


def test_last_segment_lost_before_an_empty_one_of_the_same_side() -> None:
    talk = Talk().hands()
    talk.client(b"kept")
    talk.client(b"lost")
    talk.packets.pop()
    talk.client()
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [b"kept", 4]
    assert result.conversations[0][16][0] == 4


def test_an_empty_segment_beyond_a_lost_one_that_is_sent_again() -> None:
    """What the sender numbers shows what it sent, not what arrived: the receiver still waits."""
    talk = Talk().hands()
    talk.client(b"kept")
    talk.server(ack=4)
    talk.client(b"lost")
    talk.packets.pop()
    talk.client()
    for _ in range(3):
        talk.client(b"next")
        talk.server(ack=4)
    talk.wait(100 * MILLISECOND)
    talk.server(ack=4)
    talk.client(b"lost", at=4)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [b"keptlostnextnextnext"]


def test_what_the_receiver_never_acknowledged_is_not_missing_from_the_capture() -> None:
    """It was lost on its way: the receiver, which is heard of for long enough, has not got it."""
    talk = Talk().hands()
    talk.client(b"kept")
    talk.client(b"lost")
    talk.packets.pop()
    talk.client()
    talk.wait(2_000 * MILLISECOND)
    talk.server(ack=4)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [b"kept"]
    assert result.conversations[0][16][0] == 0


def test_an_empty_segment_behind_a_fin_that_was_not_captured_is_no_gap() -> None:
    talk = Talk().hands()
    talk.client(b"kept")
    talk.client(at=5)
    assert run(talk.packets).stream(0) == [b"kept"]


def test_acknowledged_fin_that_was_not_captured_is_no_gap() -> None:
    talk = Talk().hands()
    talk.client(b"kept")
    talk.server(ack=5)
    assert run(talk.packets).stream(0) == [b"kept"]


def test_limit_of_segments_held() -> None:
    talk = holed(acknowledge=False)
    talk.client(b"12345")
    waits = run([*talk.packets, talk.client(b"lost", at=4)], limits=Limits(held_segments=2))
    assert waits.stream(0) == [b"keptlostnext12345"]
    gives_up = alike_in_any_batches(talk.packets, Limits(held_segments=1))
    assert gives_up.stream(0) == [b"kept", 4, b"next12345"]
    assert gives_up.codes() == ["tcp-buffer-limit"]


@pytest.mark.parametrize("which", ["held_bytes", "held_bytes_total"])
def test_limit_of_bytes_held(which: str) -> None:
    talk = holed(acknowledge=False)
    talk.client(b"12345")
    exact = 2 * HELD_SEGMENT_BYTES + 9
    waits = run([*talk.packets, talk.client(b"lost", at=4)], limits=Limits(**{which: exact}))
    assert waits.stream(0) == [b"keptlostnext12345"]
    assert not waits.findings
    gives_up = alike_in_any_batches(talk.packets, Limits(**{which: exact - 1}))
    assert gives_up.stream(0) == [b"kept", 4, b"next12345"]
    assert gives_up.findings == [
        ("tcp-buffer-limit", gives_up.events[0].connection_id, 6),
    ]


def test_limit_reached_by_the_segment_that_fills_the_hole() -> None:
    talk = Talk().hands()
    talk.client(b"ef", at=4)
    talk.client(b"ij", at=8)
    talk.client(b"abcdefghijkl", at=0)
    exact = 2 * HELD_SEGMENT_BYTES + 4
    for limit in (exact, exact + HELD_SEGMENT_BYTES + 1, 1 << 20):
        result = alike_in_any_batches(talk.packets, Limits(held_bytes=limit))
        assert result.stream(0) == [b"abcdefghijkl"]


def test_bytes_held_are_given_back() -> None:
    limits = Limits(held_bytes_total=2 * HELD_SEGMENT_BYTES)
    talk = Talk().hands()
    for at in range(0, 400, 4):
        talk.client(b"cd", at=at + 2)
        talk.client(b"ab", at=at)
    assert not run(talk.packets, limits=limits).findings


def test_deadlines_do_not_pile_up() -> None:
    talk = Talk()
    for at in range(3000):
        talk.client(b"b", at=2 * at + 1)
        talk.client(b"a", at=2 * at)
    packets = [packet._replace(ts_ns=1) for packet in talk.packets]
    assert run(packets).stream(0)[0] == b"b" + b"ab" * 2999
