"""RST and SYN segments that TCP ignores, and beginnings without a SYN: what follows decides.

RFC 9293 §3.10.7.4, RFC 5961 §3 and §4.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.tcp.wire import ACK, MILLISECOND, RST, SYN, Packet, Talk, alike_in_any_batches, run

HEADER = b"AMQP\x00\x00\x09\x01"
SECOND = 1000 * MILLISECOND


def spoken(isn: tuple[int, int] = (1000, 9000)) -> Talk:
    talk = Talk(isn).hands()
    talk.client(HEADER)
    talk.server(b"start")
    return talk


def forged(talk: Talk, side: int, flags: int, seq: int, ack: int = 0) -> None:
    """A segment in the name of a side, with any numbers."""
    isn, sent = list(talk.isn), list(talk.sent)
    talk.isn[side], talk.isn[1 - side] = seq - (0 if flags & SYN else 1), ack - 1
    talk.put(side, flags=flags, at=0, ack=0)
    talk.isn, talk.sent = isn, sent


def go_on(talk: Talk) -> None:
    talk.client(b"question")
    talk.server(b"answer")
    talk.client(b"thanks")


PLACES: dict[str, Callable[[int], int]] = {
    "zero": lambda number: 0,
    "far ahead": lambda number: number + 50_000_000,
    "impossible": lambda number: number + 3_000_000_000,
    "in the window": lambda number: number + 1000,
    "behind": lambda number: number - 5,
    "far behind": lambda number: number - 100_000,
}


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pause_ms", [20, 30_000])
def test_a_conversation_that_goes_on_after_a_reset(side: int, place: str, pause_ms: int) -> None:
    talk = spoken((1_000_000, 2_000_000))
    talk.put(1 - side)  # what was sent is acknowledged
    forged(talk, side, RST, PLACES[place](talk.isn[side] + 1 + talk.sent[side]))
    talk.wait(pause_ms * MILLISECOND)
    go_on(talk)
    talk.goodbye()
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [HEADER + b"questionthanks"]
    assert result.stream(1) == [b"startanswer"]
    assert result.codes() == ["tcp-reset-ignored"]
    assert result.conversations[0][10] == "fin"
    assert result.kinds().count("open") == 1


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("place", PLACES)
def test_a_reset_that_nothing_follows(side: int, place: str) -> None:
    talk = spoken((1_000_000, 2_000_000))
    talk.put(1 - side)
    forged(talk, side, RST, PLACES[place](talk.isn[side] + 1 + talk.sent[side]))
    result = alike_in_any_batches(talk.packets)
    assert result.conversations[0][10:12] == ("rst", side)
    assert not result.findings
    lost = {"in the window": 1000}.get(place, 0)
    assert sum(part for part in result.stream(side) if isinstance(part, int)) == lost


@pytest.mark.parametrize("after_s", [59, 61])
def test_a_reset_in_the_window_is_waited_for_by_heartbeats(after_s: int) -> None:
    """After a minute the conversation is over; what comes then is one joined in the middle."""
    talk = spoken()
    forged(talk, 0, RST, talk.isn[0] + 1 + 8 + 1000)
    talk.wait(after_s * SECOND)
    talk.packets += Talk(ports=(1, 5672), start_ns=talk.now).hands().packets
    talk.now += MILLISECOND
    talk.server(b"heartbeat")
    talk.client(b"heartbeat")
    result = run(talk.packets)
    of = {event.connection_id for event in result.events if event.payload == b"heartbeat"}
    assert len(of) == 1
    assert result.kinds().count("open") == (2 if after_s < 60 else 3)
    assert result.codes() == (["tcp-reset-ignored"] if after_s < 60 else [])


@pytest.mark.parametrize("answered", [True, False])
def test_a_reset_of_a_firewall(answered: bool) -> None:
    """It stands where its receiver takes it; bytes of the sender that were in flight follow."""
    talk = spoken()
    forged(talk, 1, RST, talk.isn[1] + 1 + 5)
    talk.server(b"in flight")
    if answered:
        forged(talk, 0, RST, talk.isn[0] + 1 + 8)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(1) == [b"startin flight"]
    assert result.conversations[0][10:12] == ("rst", 1)
    assert not result.findings


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("flags", [SYN, SYN | ACK])
@pytest.mark.parametrize("isn", [5_555_555, 0, 900])
@pytest.mark.parametrize("challenged", [True, False])
def test_a_syn_that_begins_nothing(side: int, flags: int, isn: int, challenged: bool) -> None:
    talk = spoken()
    forged(talk, side, flags, isn, 77)
    if challenged:
        talk.put(1 - side)
    go_on(talk)
    talk.goodbye()
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [HEADER + b"questionthanks"]
    assert result.stream(1) == [b"startanswer"]
    assert result.codes() == ["tcp-syn-ignored"]
    assert result.conversations[0][10] == "fin"
    assert result.kinds().count("open") == 1


def second(talk: Talk, isn: tuple[int, int], lost: tuple[int, ...] = ()) -> list[Packet]:
    """Another conversation of the same endpoints, without the packets that were lost."""
    again = Talk(isn, start_ns=talk.now + MILLISECOND).hands()
    go_on(again)
    return [packet for number, packet in enumerate(again.packets) if number not in lost]


@pytest.mark.parametrize("isn", [(500_000, 70), (10, 10), (1003, 9003)])
@pytest.mark.parametrize("lost", [(), (0,), (1,), (2,), (0, 2), (1, 2)])
def test_a_syn_that_begins_another_conversation(isn: tuple[int, int], lost: tuple[int]) -> None:
    """Whichever packet of its handshake is captured, neither conversation loses anything."""
    talk = spoken()
    result = alike_in_any_batches([*talk.packets, *second(talk, isn, lost)])
    assert result.kinds().count("open") == 2
    first, other = dict.fromkeys(event.connection_id for event in result.events)
    said = {
        (name, side): b"".join(
            event.payload
            for event in result.events
            if isinstance(event.payload, bytes)
            and (event.connection_id, event.direction) == (name, side)
        )
        for name in (first, other)
        for side in (0, 1)
    }
    assert said[first, 0], said[first, 1] == (HEADER, b"start")
    assert said[other, 0], said[other, 1] == (b"questionthanks", b"answer")
    assert not result.findings
    assert result.conversations[1][12] == (4 - len([n for n in lost if n != 1]), 2 - (1 in lost))


def test_a_syn_that_is_refused() -> None:
    """The server knows nothing of the old conversation: it ended before."""
    talk = spoken()
    forged(talk, 0, SYN, 5_000_000)
    forged(talk, 1, RST | ACK, 0, 5_000_001)
    result = alike_in_any_batches(talk.packets)
    assert result.kinds() == ["open", "data", "data", "close", "open", "close"]
    assert [facts[10] for facts in result.conversations] == [None, "rst"]


def test_a_client_that_began_anew_resets_the_old_conversation() -> None:
    """A challenge ACK lets it send a RST (RFC 5961 §4.2), and then its SYN is taken."""
    talk = spoken()
    forged(talk, 0, SYN, 5_000_000)
    talk.server()
    forged(talk, 0, RST, talk.isn[0] + 1 + 8)
    again = Talk((5_000_000, 7_000_000), start_ns=talk.now + SECOND).hands()
    go_on(again)
    result = alike_in_any_batches([*talk.packets, *again.packets])
    assert result.kinds().count("open") == 2
    assert [facts[10] for facts in result.conversations] == ["rst", None]
    assert result.stream(0) == [HEADER + b"questionthanks"]
    assert not result.findings


def test_a_syn_that_is_never_answered() -> None:
    """It is a conversation of its own, with every time it was sent."""
    talk = spoken()
    for _ in range(3):
        forged(talk, 0, SYN, 5_000_000)
        talk.wait(SECOND)
    result = alike_in_any_batches(talk.packets)
    assert result.kinds() == ["open", "data", "data", "close", "open", "close"]
    assert result.conversations[1][12] == (3, 0)


def test_more_copies_of_a_syn_than_are_kept() -> None:
    talk = spoken()
    for _ in range(40):
        forged(talk, 0, SYN, 5_000_000)
    assert run(talk.packets).conversations[1][12] == (16, 0)


# beginnings without a SYN, with lower numbers


def lower(talk: Talk, by: int, lost: tuple[int, ...] = (), first: bytes = HEADER) -> list[Packet]:
    isn = tuple((number - by) % 2**32 for number in talk.isn)
    again = Talk((isn[0], isn[1]), start_ns=talk.now + 20 * MILLISECOND).hands()
    again.client(first)
    again.server(b"start")
    go_on(again)
    return [packet for number, packet in enumerate(again.packets[3:]) if number not in lost]


@pytest.mark.parametrize("end", ["", "fin", "rst"])
@pytest.mark.parametrize("by", [5000, 100_000, 20_000_000])
@pytest.mark.parametrize("lost", [(), (1,), (2,)])
@pytest.mark.parametrize("hands", [True, False])
def test_lower_numbers_than_before(end: str, by: int, lost: tuple[int], hands: bool) -> None:
    talk = spoken((30_000_000, 40_000_000))
    if end == "fin":
        talk.goodbye()
    elif end == "rst":
        talk.client(flags=RST | ACK)
    packets = talk.packets if hands else talk.packets[3:]
    result = alike_in_any_batches([*packets, *lower(talk, by, lost)])
    assert result.kinds().count("open") == 2
    said = [event.payload for event in result.events if event.kind == "data"]
    assert said.count(HEADER) == 2
    assert said.count(b"thanks") == 1
    assert "tcp-impossible-sequence" not in result.codes()


def test_lower_numbers_among_bytes_that_were_captured() -> None:
    talk = spoken()
    for number in range(20):
        talk.client(b"%050d" % number)
        talk.server(b"%050d" % number)
    packets = lower(talk, -300)
    result = alike_in_any_batches([*talk.packets, *packets])
    assert result.kinds().count("open") == 2
    assert result.stream(0)[-1].endswith(HEADER + b"questionthanks")
    assert not result.findings


def test_a_second_capture_of_everything_begins_nothing() -> None:
    """A copy of a conversation in which a protocol header does not come first, 50 ms late."""
    talk = Talk().hands()
    talk.client(b"CONNECT")
    talk.server(b"200")
    talk.client(HEADER)
    go_on(talk)
    copies = [packet._replace(ts_ns=packet.ts_ns + 50 * MILLISECOND) for packet in talk.packets]
    result = alike_in_any_batches([*talk.packets, *copies[3:]])
    assert result.kinds().count("open") == 1
    assert not result.findings


def test_lower_numbers_without_a_beginning_are_a_finding() -> None:
    """Nothing lies before the first byte; three segments in a row are another conversation."""
    talk = spoken((30_000_000, 40_000_000))
    packets = lower(talk, 5000, (0,))
    assert run([*talk.packets, *packets[:2]]).codes() == ["tcp-impossible-sequence"]
    again = Talk((29_000_000, 39_000_000), start_ns=talk.now + 20 * MILLISECOND).hands()
    for number in range(5):
        again.client(b"segment %d" % number)
    result = alike_in_any_batches([*talk.packets, *again.packets[3:]])
    assert set(result.codes()) == {"tcp-impossible-sequence"}
    assert result.kinds().count("open") == 2
    assert result.stream(0)[-1].endswith(b"segment 2segment 3segment 4")


@pytest.mark.parametrize("seed", range(5))
def test_doubts_at_random(seed: int) -> None:
    """Forged segments anywhere, and nothing of what was said is lost."""
    choose = random.Random(seed)
    for _ in range(20):
        talk = Talk((choose.randrange(2**32), choose.randrange(2**32))).hands()
        said = [b"", b""]
        turns = choose.randrange(3, 12)
        for turn in range(turns):
            side = choose.randrange(2)
            octets = bytes([turn]) * choose.randrange(1, 40)
            said[side] += octets
            talk.put(side, octets)
            talk.put(1 - side)
            if choose.random() < 0.4:
                side = choose.randrange(2)
                flags = choose.choice((RST, RST | ACK, SYN, SYN | ACK))
                far = choose.randrange(1000, 2**32 - 1000)
                number = talk.isn[side] + 1 + talk.sent[side] + far
                forged(talk, side, flags, number % 2**32, choose.randrange(2**32))
        talk.wait(20 * MILLISECOND)
        go_on(talk)
        go_on(talk)
        talk.goodbye()
        result = run(talk.packets)
        assert result.kinds().count("open") == 1
        assert result.stream(0) == [said[0] + b"questionthanks" * 2]
        assert result.stream(1) == [said[1] + b"answer" * 2]
        assert result.conversations[0][10] == "fin"
        assert set(result.codes()) <= {"tcp-reset-ignored", "tcp-syn-ignored"}
        assert run(talk.packets, 1) == result
