"""Which frame a broker's close is about, and which closes are the first."""

from __future__ import annotations

from functools import cache

import pytest

from amqpsniff import Engine
from tests.findings.cases import packets_of
from tests.session.rules.telling import one, told, told_of
from tests.session.script import Script, wired
from tests.tcp.wire import Packet

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
TWO = OPEN + "C2: channel.open\nS2: channel.open-ok\n"
DECLARE, BIND, PUBLISH, ACK, NACK, NONE = (50, 10), (50, 20), (60, 40), (60, 80), (60, 120), (0, 0)
"""Methods that are blamed, by their numbers."""

IN = "; answer to {} in packet {}"
LAST = "; the client's last frame before is {}"


@pytest.mark.parametrize(
    ("frames", "channel", "blamed", "said"),
    [
        ("C1: queue.declare", 1, DECLARE, IN.format("queue.declare", 15)),
        ("C1: queue.declare", 1, BIND, "; answer to queue.bind"),
        ("C1: queue.declare", 1, NONE, LAST.format("queue.declare in packet 15")),
        ("C1: queue.declare\nC1: queue.declare", 1, DECLARE, IN.format("queue.declare", 16)),
        ("C1: queue.declare\nC1: queue.bind", 1, DECLARE, IN.format("queue.declare", 15)),
        ("C1: basic.publish | body=1\nC1: tx.select", 1, PUBLISH, IN.format("basic.publish", 15)),
        ("C1: basic.ack delivery_tag=1\nC1: tx.select", 1, ACK, IN.format("basic.ack", 15)),
        ("C1: tx.select", 1, ACK, "; answer to basic.ack"),
        ("C1: tx.select", 1, PUBLISH, "; answer to basic.publish"),
        ("C1: basic.nack delivery_tag=1\nC1: tx.select", 1, NACK, IN.format("basic.nack", 15)),
        ("C1: tx.select\nC1: basic.publish | body=200000", 1, NONE, LAST.format("in packet 19")),
        (
            "C1: queue.declare\nS1: queue.declare-ok",
            1,
            NONE,
            LAST.format("queue.declare in packet 15"),
        ),
        ("C1: queue.declare\nC2: queue.declare", 1, DECLARE, IN.format("queue.declare", 15)),
        ("C1: queue.declare\nC2: queue.declare", 0, DECLARE, IN.format("queue.declare", 16)),
        (
            "C2: queue.declare\nC1: queue.declare\nC2: queue.bind",
            0,
            DECLARE,
            IN.format("queue.declare", 16),
        ),
        (
            "C1: queue.declare\nC: connection.close-ok",
            0,
            NONE,
            LAST.format("connection.close-ok in packet 16"),
        ),
        (
            "C1: queue.declare\nC: basic.publish | body=1",
            0,
            PUBLISH,
            IN.format("basic.publish", 16),
        ),
        (
            "C1: queue.declare\nC1: basic.deliver | body=1",
            0,
            (60, 60),
            IN.format("basic.deliver", 16),
        ),
        ("C7: basic.publish | body=1", 0, PUBLISH, IN.format("basic.publish", 15)),
        ("", 0, (10, 40), IN.format("connection.open", 9)),
        (
            "C1: tx.select\nb.handshake user=o\nb.C1: tx.select",
            1,
            (90, 10),
            IN.format("tx.select", 15),
        ),
    ],
)
def test_the_frame_that_a_close_answers(
    frames: str, channel: int, blamed: tuple[int, int], said: str
) -> None:
    what = "channel" if channel else "connection"
    code = "exclusive-queue-locked" if channel else "connection-closed-by-broker"
    numbers = "class_id={} method_id={}".format(*blamed)
    close = f"S{channel or ''}: {what}.close reply_code=405 reply_text=no {numbers}"
    assert one(f"{TWO}{frames}\n{close}", code)["detail"] == "405 no" + said


def test_a_frame_before_the_first_of_the_server() -> None:
    close = "S: connection.close reply_code=503 reply_text=no"
    assert one(f"midstream\n{close}", "connection-closed-by-broker")["detail"] == "503 no"


@cache
def _refused_after(others: int) -> list[tuple[int, Packet]]:
    """A request, packets of another connection, and the answer to the request."""
    noise = "b.S1: basic.cancel consumer_tag=t\n" * others
    close = "S: connection.close reply_code=503 reply_text=no class_id=50 method_id=10"
    script = Script(f"handshake\nC1: queue.declare\nb.midstream\n{noise}{close}")
    return list(wired(script))


@pytest.mark.parametrize(
    ("others", "batch"), [(0, 1), (0, 7), (0, 100_000), (3_000, 100), (3_000, 100_000)]
)
def test_it_is_known_in_whatever_batches_and_after_whatever_of_others(
    others: int, batch: int
) -> None:
    engine = Engine()
    asked = 0
    for number, packet in _refused_after(others):
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
        if b"\x00\x32\x00\x0a" in packet.octets and not asked:
            asked = engine.totals.packets
        if number % batch == 0:
            engine.take("frames")
    engine.finish()
    rows = engine.take("findings").to_pylist()
    (said,) = [row["detail"] for row in rows if row["code"] == "connection-closed-by-broker"]
    assert said == f"503 no; answer to queue.declare in packet {asked}"


def test_an_answer_to_a_request_whose_row_was_taken() -> None:
    engine = Engine()
    for _, packet in wired(Script("handshake\nC1: queue.declare queue=q\nS1: queue.declare-ok")):
        engine.feed_packet(packet.octets, packet.ts_ns, packet.link_type)
        engine.take("frames")
    engine.finish()
    assert "queue.declare-ok" not in str(engine.take("findings").to_pylist())


@pytest.mark.parametrize(("code", "is_error"), [(299, False), (300, True)])
def test_codes_of_errors(code: int, is_error: bool) -> None:
    close = f"S: connection.close reply_code={code} reply_text=no"
    assert bool(told(OPEN + close, "connection-closed-by-broker")) is is_error


def test_closes_that_came_second_or_are_cut_short() -> None:
    close = "S: connection.close reply_code=541 reply_text=no"
    late = OPEN + "C: connection.close reply_code={}\n" + close
    assert told(late.format(200), "connection-closed-by-broker")
    assert not told(late.format(501), "connection-closed-by-broker")
    packets = packets_of(OPEN + close)
    last = packets[-1]
    packets[-1] = last._replace(octets=last.octets[: 40 + 12], original=len(last.octets))
    assert not told_of(packets, "connection-closed-by-broker")
