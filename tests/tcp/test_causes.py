"""What a segment acknowledges was sent before it, in whatever order packets were captured."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amqpsniff.tcp import Limits
from amqpsniff.tcp.limits import HELD_SEGMENT_BYTES, NO_TIME
from tests.tcp.wire import ACK, FIN, MILLISECOND, Packet, Talk, alike_in_any_batches, run
from tests.thorough import rounds


def said(packets: list[Packet], limits: Limits | None = None) -> list[tuple[int, bytes | int]]:
    """(direction, bytes or bytes missing) in the order in which they were handed on."""
    result = alike_in_any_batches(packets, limits)
    return [(e.direction, e.payload) for e in result.events if e.kind in ("data", "gap")]


def asked_and_answered(questions: int = 3) -> Talk:
    talk = Talk().hands()
    for number in range(questions):
        talk.client(b"question%d" % number)
        talk.server(b"answer%d" % number)
    return talk


def test_an_answer_waits_for_its_question() -> None:
    packets = asked_and_answered().packets
    packets[3], packets[4] = packets[4], packets[3]
    assert said(packets) == said(asked_and_answered().packets)
    numbers = [event.number for event in run(packets).events]
    assert numbers == [1, 5, 5, 6, 7, 8, 9, 9], "known as of the packet that was late"


def test_a_question_that_is_missing_is_given_up_before_what_followed() -> None:
    packets = asked_and_answered().packets
    del packets[5]
    expected = said(asked_and_answered().packets)
    expected[2] = (0, len(b"question1"))
    assert said(packets) == expected
    events = run(packets).events
    assert [event.number for event in events] == [1, 4, 5, 7, 6, 7, 8, 8]


def waited(segments: int, wait_ns: int = 0, limits: Limits | None = None) -> list[bytes | int]:
    """The client's stream where a segment comes so late that was acknowledged before."""
    talk = asked_and_answered(1)
    talk.sent[0] += 4
    talk.client(b"next")
    talk.server()
    for _ in range(segments):
        talk.server()
    talk.wait(wait_ns - segments * talk.step_ns)
    talk.client(b"lost", at=9)
    return run(talk.packets, limits=limits).stream(0)


def test_patience() -> None:
    limits = Limits()
    got, late = [b"question0lostnext"], [b"question0", 4, b"next"]
    assert waited(limits.acked_hole_segments - 2) == got
    assert waited(limits.acked_hole_segments) == late
    assert waited(1, limits.acked_hole_ns - 1001) == got
    assert waited(1, limits.acked_hole_ns - 1000) == late


def test_an_answer_to_what_is_not_in_the_capture_waits_once() -> None:
    """Nothing of the client is captured any more: one answer waits, later ones do not."""
    talk = asked_and_answered(1)
    for number in range(3):
        talk.sent[0] += 100
        talk.server(b"more%d" % number)
        talk.wait(20 * MILLISECOND)
    result = alike_in_any_batches(talk.packets)
    data = [(e.payload, e.number) for e in result.events if e.direction == 1 and e.kind == "data"]
    assert data[1:] == [(b"more0", 6), (b"more1", 7), (b"more2", 8)]
    assert result.stream(0) == [b"question0", 300]
    one = Talk(ports=(40001, 5672), start_ns=talk.now).hands().packets
    kinds = [(e.kind, e.payload) for e in run(talk.packets + one).events]
    assert kinds.index(("data", b"more2")) < kinds.index(("open", b""), 1)


def test_a_late_segment_after_patience_is_taken_where_nothing_came_after_it() -> None:
    talk = asked_and_answered(1)
    talk.sent[0] += 4
    talk.server(b"more")
    talk.wait(20 * MILLISECOND)
    talk.client(b"lost", at=9)
    talk.client(b"next")
    assert said(talk.packets)[2:] == [(1, b"more"), (0, b"lost"), (0, b"next")]


def test_sent_again_with_a_newer_acknowledgement() -> None:
    """The question is not captured; the copy sent again acknowledges the answer to it."""
    talk = Talk().hands()
    talk.sent[0] = 8
    talk.server(b"answer")
    talk.client(b"question", at=0)
    talk.client(b"thanks")
    assert said(talk.packets) == [(0, b"question"), (1, b"answer"), (0, b"thanks")]


def test_a_fin_that_is_acknowledged_is_waited_for_and_not_more() -> None:
    talk = asked_and_answered(1)
    talk.server(b"bye", ack=talk.sent[0] + 1)
    talk.client(flags=FIN | ACK)
    assert said(talk.packets)[2:] == [(1, b"bye")]
    assert [event.number for event in run(talk.packets).events[3:]] == [7, 7]


@pytest.mark.parametrize("times", [True, False])
def test_two_real_holes_are_given_up_in_the_order_of_capture(times: bool) -> None:
    talk = asked_and_answered(40)
    packets = [p for number, p in enumerate(talk.packets) if number not in (9, 20, 45)]
    if not times:
        packets = [packet._replace(ts_ns=NO_TIME) for packet in packets]
    expected: list[tuple[int, bytes | int]] = said(talk.packets)
    for number in (9, 20, 45):
        side, octets = expected[number - 3]
        assert isinstance(octets, bytes)
        expected[number - 3] = (side, len(octets))
    found = said(packets, Limits(acked_hole_segments=8))
    assert found == expected == said(packets)


def test_what_waits_for_the_other_side_is_held_within_limits() -> None:
    talk = asked_and_answered(1)
    talk.sent[0] += 4
    for _ in range(4):
        talk.server(b"12345")
    exact = 4 * (HELD_SEGMENT_BYTES + 5)
    talk.client(b"lost", at=9)
    waits = alike_in_any_batches(talk.packets, Limits(held_bytes=exact))
    assert not waits.findings
    assert [event.number for event in waits.events[3:]] == [10] * 6
    gives_up = alike_in_any_batches(talk.packets, Limits(held_bytes=exact - 1))
    assert gives_up.codes() == ["tcp-buffer-limit"]
    assert [event.number for event in gives_up.events[3:]] == [6, 7, 8, 9, 10, 10]


def test_acknowledgements_without_end_hold_nothing_for_ever() -> None:
    """Each segment acknowledges bytes that are never sent."""
    choose = random.Random(3)
    talk = Talk().hands()
    for _ in range(3000):
        talk.put(choose.randrange(2), b"x", ack=choose.randrange(1 << 20))
    result = run(talk.packets, limits=Limits(held_bytes=1 << 14))
    lengths = [sum(len(p) for p in result.stream(side) if isinstance(p, bytes)) for side in (0, 1)]
    assert sum(lengths) == 3000


@settings(max_examples=rounds(200))
@given(st.randoms(use_true_random=False), st.integers(0, 12), st.booleans(), st.floats(0, 0.2))
def test_displaced_packets(choose: random.Random, far: int, timed: bool, loss: float) -> None:
    """Displaced by so many places, some missing: every answer after its question, all bytes."""
    talk = Talk().hands()
    for number in range(60):
        talk.put(choose.randrange(2), b"%02d" % number)
    talk.goodbye()
    kept = talk.packets[:3] + [p for p in talk.packets[3:] if choose.random() >= loss]
    order = sorted(range(3, len(kept)), key=lambda at: at + choose.random() * far)
    displaced = kept[:3] + [kept[at] for at in order]
    if timed:
        displaced = [p._replace(ts_ns=q.ts_ns) for p, q in zip(displaced, kept, strict=True)]
    result = alike_in_any_batches(displaced)
    plain = run(kept)
    assert [result.stream(side) for side in (0, 1)] == [plain.stream(side) for side in (0, 1)]
