"""When a conversation begins and ends, and what comes after its end."""

import pytest

from amqpsniff.tcp import Limits
from tests.tcp.wire import ACK, FIN, MILLISECOND, RST, SYN, Packet, Talk, alike_in_any_batches, run


def spoken(isn: tuple[int, int] = (1000, 9000), port: int = 40000) -> Talk:
    talk = Talk(isn, ports=(port, 5672)).hands()
    talk.client(b"question")
    talk.server(b"answer")
    return talk


def test_closed_by_the_last_acknowledgement() -> None:
    result = alike_in_any_batches(spoken().goodbye().packets)
    assert result.events[-1][:1] + result.events[-1][5:6] == ("close", 8)
    assert result.conversations[0][10:13] == ("fin", 0, (5, 3))


def test_closed_without_the_last_acknowledgement() -> None:
    talk = spoken().goodbye()
    talk.packets.pop()
    other = Talk(ports=(40001, 5672), start_ns=talk.now + 1000 * MILLISECOND)
    other.client(flags=SYN)
    result = alike_in_any_batches([*talk.packets, *other.packets])
    assert result.kinds() == ["open", "data", "data", "close", "open", "close"]
    assert result.conversations[0][8] == 7


def test_ends_without_the_last_acknowledgement_come_in_order() -> None:
    talks = [Talk(ports=(port, 5672)).hands().goodbye() for port in (1, 2, 3)]
    clock = 1000 * MILLISECOND
    packets = [packet for talk in talks for packet in talk.packets[:-1]]
    packets = [packet._replace(ts_ns=clock + n) for n, packet in enumerate(packets)]
    packets[-1] = packets[-1]._replace(ts_ns=1)  # the last one's clock is the earliest
    late = spoken(port=4).packets[0]._replace(ts_ns=3 * clock)
    result = alike_in_any_batches([*packets, late])
    closed = [event.a[-1] for event in result.events if event.kind == "close"]
    assert closed == ["3", "1", "2", "4"]


def test_ends_that_are_waited_for_do_not_pile_up() -> None:
    """One that stays open is before thousands that did not have to wait to the end."""
    first = Talk(ports=(1, 5672)).hands().goodbye().packets[:-1]
    many = [Talk(ports=(port, 5672)).hands().goodbye() for port in range(2, 4000)]
    packets = [*first, *(packet for talk in many for packet in talk.packets)]
    result = run([packet._replace(ts_ns=1) for packet in packets])
    closed = [event.a for event in result.events if event.kind == "close"]
    assert closed == [*(f"10.0.0.1:{port}" for port in range(2, 4000)), "10.0.0.1:1"]


@pytest.mark.parametrize("side", [0, 1])
def test_reset(side: int) -> None:
    talk = spoken()
    talk.put(side, flags=RST | ACK)
    talk.put(side, flags=RST)
    talk.put(1 - side, b"in flight")
    talk.put(1 - side)
    result = alike_in_any_batches(talk.packets)
    assert result.kinds() == ["open", "data", "data", "data", "close"]
    assert result.stream(1 - side)[0].endswith(b"in flight")
    assert result.conversations[0][10:12] == ("rst", side)
    assert not result.findings


def test_reset_gives_up_holes() -> None:
    talk = spoken()
    talk.client(b"behind", at=12)
    talk.server(flags=RST | ACK, ack=8)
    result = alike_in_any_batches(talk.packets)
    assert result.stream(0) == [b"question", 4, b"behind"]


def test_reset_shows_what_was_sent_before_it() -> None:
    talk = spoken()
    talk.client(flags=RST, at=8 + 70)
    assert run(talk.packets).stream(0) == [b"question", 70]


def test_reset_with_any_number_shows_nothing() -> None:
    talk = spoken()
    talk.client(flags=RST, at=8 + (1 << 24) + 1)
    assert run(talk.packets).stream(0) == [b"question"]


@pytest.mark.parametrize("octets", [b"in flight", b""])
def test_when_a_reset_conversation_is_over(octets: bytes) -> None:
    """10 ms after the last bytes that were in flight; then what comes is not followed."""
    talk = spoken()
    talk.client(flags=RST | ACK)
    talk.wait(9 * MILLISECOND)
    talk.put(1, octets)
    other = Talk(ports=(1, 5672), start_ns=talk.now + 9 * MILLISECOND).hands()
    last = Talk(ports=(2, 5672), start_ns=other.now + 2 * MILLISECOND).hands()
    late = talk.put(1, b"late")._replace(ts_ns=last.now + 1)
    talk.packets.pop()
    result = alike_in_any_batches([*talk.packets, *other.packets, *last.packets, late])
    opened = [event.a[-1] for event in result.events if event.kind == "open"]
    assert opened == ["0", "1", "2"]
    order = [(event.kind, event.a[-1]) for event in result.events if event.kind != "data"]
    assert order.index(("close", "0")) == (2 if octets else 1)
    assert not result.findings


@pytest.mark.parametrize("late_ms", [1, 9, 11, 0])
def test_reset_that_overtook_what_it_answers(late_ms: int) -> None:
    """Bytes that a reset acknowledges, or follows, are waited for: either may be missing."""
    talk = Talk().hands()
    asked = talk.client(b"question")
    answered = talk.server(b"answer")
    last = talk.put(1, flags=RST | ACK)
    again = last._replace(ts_ns=last.ts_ns + 500)
    late = [
        packet._replace(ts_ns=last.ts_ns + late_ms * MILLISECOND + number)
        for number, packet in enumerate((asked, answered))
    ]
    other = Talk(ports=(1, 5672), start_ns=last.ts_ns + 60_100 * MILLISECOND).hands()
    hands = talk.packets[:3]
    late = late if late_ms else []
    result = alike_in_any_batches([*hands, last, again, *late, *other.packets])
    if late_ms:
        assert [result.stream(side) for side in (0, 1)] == [[b"question"], [b"answer"]]
    else:
        assert [result.stream(side) for side in (0, 1)] == [[8], [6]]
    assert result.conversations[0][10:12] == ("rst", 1)
    assert result.kinds()[-2:] == ["open", "close"]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("resetting", [0, 1])
def test_a_fin_before_a_reset_is_the_end(side: int, resetting: int) -> None:
    talk = spoken()
    talk.put(side, flags=FIN | ACK)
    talk.put(1 - side, b"in flight")
    talk.put(resetting, flags=RST)
    assert run(talk.packets).conversations[0][10:12] == ("fin", side)


def test_a_fin_that_crossed_a_reset_is_not_the_end() -> None:
    talk = spoken()
    talk.client(flags=RST | ACK)
    talk.server(flags=FIN | ACK)
    assert run(talk.packets).conversations[0][10:12] == ("rst", 0)


def test_reset_elsewhere_is_not_believed() -> None:
    talk = spoken()
    talk.client(flags=RST, at=1 << 31)
    talk.sent[0] = 8
    talk.client(b" more")
    result = run(talk.packets)
    assert result.stream(0) == [b"question more"]
    assert result.codes() == ["tcp-reset-ignored"]
    assert result.conversations[0][10:12] == (None, None)


def test_refused() -> None:
    talk = Talk()
    talk.client(flags=SYN)
    packets = talk.packets
    refusal = Talk((9000 - 1, 1000))
    refusal.ports = (5672, 40000)
    talk.isn[1] = -1
    talk.server(flags=RST | ACK, ack=0)
    result = run(packets)
    assert result.kinds() == ["open", "close"]
    assert result.conversations[0][10:12] == ("rst", 1)


def test_stragglers_open_nothing() -> None:
    talk = spoken().goodbye()
    talk.client(b"question", at=0)
    talk.server(flags=FIN | ACK)
    talk.client(flags=SYN, at=0)
    talk.client()
    assert alike_in_any_batches(talk.packets).kinds().count("open") == 1


def test_acknowledgements_open_nothing() -> None:
    talk = Talk()
    talk.client()
    talk.server(flags=FIN | ACK)
    talk.client(flags=RST)
    result = run(talk.packets)
    assert not result.events
    assert result.counters["segments"] == 3


def test_same_endpoints_again() -> None:
    first, second = spoken(), spoken((500_000, 70))
    result = alike_in_any_batches([*first.packets, *second.packets])
    assert result.kinds() == ["open", "data", "data", "close", "open", "data", "data", "close"]
    assert result.events[3].number == 7  # the answer to the SYN
    assert result.conversations[1][6] == 6
    one, two = (facts[5] for facts in result.conversations)
    assert one != two
    assert [facts[4] for facts in result.conversations] == [0, 1]
    assert run(second.packets).conversations[0][5] == two


def test_same_endpoints_again_by_the_answer() -> None:
    first, second = spoken(), spoken((500_000, 70))
    result = run([*first.packets, *second.packets[1:]])
    assert result.kinds().count("open") == 2
    assert run(second.packets).conversations[0][5] == result.conversations[1][5]


def test_same_endpoints_again_without_syn() -> None:
    first, second = spoken().goodbye(), spoken((300_000_000, 200_000_000))
    result = alike_in_any_batches([*first.packets, *second.packets[3:]])
    assert result.kinds().count("open") == 2
    assert result.conversations[1][2:5] == (False, None, 1)
    assert result.conversations[1][5] != run(second.packets[3:]).conversations[0][5]


def test_syn_again_is_no_new_conversation() -> None:
    talk = Talk()
    talk.client(flags=SYN)
    talk.client(flags=SYN)
    talk.server(flags=SYN | ACK)
    talk.server(flags=SYN | ACK)
    talk.client(b"question")
    talk.client(flags=SYN, at=0)
    result = alike_in_any_batches(talk.packets)
    assert result.kinds() == ["open", "data", "close"]


def test_both_sides_ask() -> None:
    talk = Talk()
    talk.client(flags=SYN)
    talk.server(flags=SYN)
    talk.client(flags=SYN | ACK)
    talk.server(flags=SYN | ACK)
    talk.client(b"question")
    talk.server(b"answer")
    result = run(talk.packets)
    assert result.kinds() == ["open", "data", "data", "close"]
    assert result.events[0].a == "10.0.0.1:40000"


def test_identity_is_the_same_from_either_end() -> None:
    talk = Talk()
    talk.client(b"question")
    talk.server(b"answer")
    forward, backward = run(talk.packets), run(talk.packets[::-1])
    assert forward.conversations[0][0] != backward.conversations[0][0]
    assert forward.conversations[0][5] == backward.conversations[0][5]
    assert len(str(forward.conversations[0][5])) == 16


def flood(count: int) -> list[Packet]:
    packets = []
    for number in range(count):
        talk = Talk(ports=(number + 1, 5672))
        talk.client(b"x")
        packets += talk.packets
    return packets


def test_limit_on_conversations() -> None:
    limits = Limits(conversations=10)
    assert not run(flood(10), limits=limits).findings
    result = alike_in_any_batches(flood(12), limits)
    assert result.codes() == ["tcp-conversation-limit"]
    assert result.kinds()[20:26] == ["close", "open", "data"] * 2
    closed = [event.a for event in result.events if event.kind == "close"]
    assert closed[:2] == ["10.0.0.1:1", "10.0.0.1:2"]


def test_least_active_goes_first_and_may_come_back() -> None:
    limits = Limits(conversations=3)
    talks = [Talk(ports=(number, 5672)) for number in (1, 2, 3, 4)]
    packets = [talk.client(b"a") for talk in talks[:3]]
    packets += [talks[0].client(b"b"), talks[3].client(b"c")]
    packets += [talks[2].client(b"d"), talks[1].client(b"e")]
    result = alike_in_any_batches(packets, limits)
    moved = [(e.kind, e.a[-1]) for e in result.events if e.kind in ("open", "close")]
    assert moved[3:7] == [("close", "2"), ("open", "4"), ("close", "1"), ("open", "2")]
    assert result.stream(0)[-1][-1:] == b"e"


def test_closed_conversations_are_forgotten() -> None:
    limits = Limits(closed_conversations=2)
    talks = [spoken(port=number).goodbye() for number in (1, 2, 3)]
    packets = [packet for talk in talks for packet in talk.packets]
    late = [talk.client(b"question", at=0) for talk in talks]
    result = alike_in_any_batches([*packets, late[1], late[2]], limits)
    assert result.kinds().count("open") == 3
    assert run([*packets, late[0]], limits=limits).kinds().count("open") == 4


def test_impossible_segments() -> None:
    talk = spoken()
    far = [talk.client(b"far %d" % n, at=(1 << 30) + 9 + 5 * n) for n in range(3)]
    del talk.packets[-3:]
    talk.sent[0] = 8
    ignored = alike_in_any_batches([*talk.packets, *far[:2], talk.client(b"!")])
    assert ignored.stream(0) == [b"question!"]
    assert ignored.codes() == ["tcp-impossible-sequence"]
    assert ignored.counters["impossible"] == 2
    talk.packets.pop()
    believed = alike_in_any_batches([*talk.packets, *far])
    assert believed.kinds() == ["open", "data", "data", "close", "open", "data", "close"]
    assert believed.events[-2].payload == b"far 2"
    reachable = talk.client(b"far", at=(1 << 30) + 8)
    assert run([*talk.packets[:-1], reachable]).stream(0) == [b"question", 1 << 30, b"far"]
