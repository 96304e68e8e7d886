# ruff: noqa: E501 (one packet, one line)
"""Returns: which publish each is of."""

from pathlib import Path

import pytest

import amqpsniff
from tests.decode.feeding import packets_of
from tests.session.comparing import CONFIRMING, by_engine, check
from tests.session.conftest import Ask
from tests.session.damaging import rows_of
from tests.session.script import Script

CAPTURES = Path(__file__).parent.parent / "captures"


def test_returned_stays_when_the_confirm_follows(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e routing_key=none mandatory=1 | body=5
        [p2] C1: basic.publish exchange=e routing_key=some mandatory=1 | body=5
        [r] S1: basic.return reply_code=312 reply_text=NO_ROUTE exchange=e routing_key=none | body=5
        [a] S1: basic.ack delivery_tag=2 multiple=1
        """,
        """
        messages:
            p1 publish number=1 returned r 2ms
            p2 publish number=2 confirmed a 2ms
            r return -
        channels:
            1.1 opened=open mode=confirm published=2 confirmed=1 returned=1 unconfirmed=2/0
        """,
    )


def test_headers_that_the_broker_sorts(ask: Ask) -> None:
    """RabbitMQ 4.3 sorts them by name; every version takes BCC off. Values tell publishes apart."""
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5 headers='{"b":{"z":1,"a":2},"a":"x"}'
        [p2] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5 headers='{"b":{"z":1,"a":3},"BCC":["q"],"a":"x"}'
        [r2] S1: basic.return reply_code=312 exchange=e routing_key=k | body=5 headers='{"a":"x","b":{"z":1,"a":3}}'
        [a2] S1: basic.ack delivery_tag=2
        [a1] S1: basic.ack delivery_tag=1
        """,
        """
        messages:
            p1 publish number=1 confirmed a1 4ms
            p2 publish number=2 returned r2 1ms
            r2 return -
        channels:
            1.1 opened=open mode=confirm published=2 confirmed=1 returned=1 unconfirmed=2/0
        """,
    )


def test_returns_find_the_oldest_that_fits(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [p1] C1: basic.publish exchange=e routing_key=k | body=5
        [p2] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5
        [p3] C1: basic.publish exchange=e routing_key=k immediate=1 | body=5
        [p4] C1: basic.publish exchange=f routing_key=k mandatory=1 | body=5
        [p5] C1: basic.publish exchange=e routing_key=j mandatory=1 | body=5
        [r1] S1: basic.return reply_code=312 exchange=e routing_key=k | body=5
        [r2] S1: basic.return reply_code=313 exchange=e routing_key=k | body=5
        [r3] S1: basic.return reply_code=313 exchange=e routing_key=k | body=5
        """,
        """
        messages:
            p1 publish -
            p2 publish returned r1 4ms
            p3 publish returned r2 4ms
            p4 publish -
            p5 publish -
            r1 return -
            r2 return -
            r3 return -
        channels:
            1.1 opened=open published=5 returned=3
        """,
    )


def test_returns_are_of_the_same_content(ask: Ask) -> None:
    check(
        ask,
        """
        handshake
        [open] C1: channel.open
        S1: channel.open-ok
        [p1] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5 message_id=1
        [p2] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5 message_id=2
        [p3] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=6 message_id=2
        [r3] S1: basic.return reply_code=312 exchange=e routing_key=k | body=6 message_id=2
        [r2] S1: basic.return reply_code=312 exchange=e routing_key=k | body=5 message_id=2
        [r1] S1: basic.return reply_code=312 exchange=e routing_key=k | body=7
        [r4] S1: basic.return reply_code=312 exchange=e routing_key=k | body=5 message_id=3
        [q1] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5 message_id=1
        [r5] S1: basic.return reply_code=312 exchange=e routing_key=k | body=5 message_id=3
        """,
        """
        messages:
            p1 publish -
            p2 publish returned r2 3ms
            p3 publish returned r3 1ms
            q1 publish -
            r1 return -
            r2 return -
            r3 return -
            r4 return -
            r5 return -
        """,
    )


def test_a_settled_publish_is_not_returned(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        [p1] C1: basic.publish exchange=e routing_key=k mandatory=1
        [a1] S1: basic.ack delivery_tag=1
        [p2] C1: basic.publish exchange=e routing_key=k mandatory=1
        [r] S1: basic.return reply_code=312 exchange=e routing_key=k
        """,
        """
        messages:
            p1 publish number=1 confirmed a1 1ms
            p2 publish number=2 returned r 1ms
            r return -
        """,
    )


def test_a_return_on_another_channel(ask: Ask) -> None:
    check(
        ask,
        CONFIRMING
        + """
        C2: channel.open
        [p1] C1: basic.publish exchange=e routing_key=k mandatory=1
        [p2] C2: basic.publish exchange=e routing_key=k mandatory=1
        [r] S2: basic.return reply_code=312 exchange=e routing_key=k
        """,
        """
        messages:
            p1 publish number=1 unconfirmed
            p2 publish returned r 1ms
            r return -
        """,
    )


@pytest.mark.parametrize("options", [{}, {"body_sha256": True}, {"bodies": True}])
def test_the_bytes_of_the_body_say_which_publish_was_returned(options: dict[str, bool]) -> None:
    """Of four publishes that are alike but for the body, the second and the fourth came back."""
    path = CAPTURES / "hostile" / "sem2_return_after_multi.pcap"
    rows = amqpsniff.open(path, **options).table("messages").to_pylist()
    outcomes = ["confirmed", "returned", "confirmed", "returned", None, None]
    assert [row["outcome"] for row in rows] == outcomes


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000, 200_000])
def test_bodies_that_differ_in_one_byte(size: int) -> None:
    """However they are cut into frames and segments."""
    for place in {0, size // 2, size - 1}:
        bodies = [bytes(size), bytes(place) + b"x" + bytes(size - place - 1)]
        made = Script(CONFIRMING)
        for body in bodies:
            made.wait()
            arguments = {"exchange": "e", "mandatory": True}
            made.method("a", "client", 1, "basic.publish", arguments, body)
        made.add("C2: channel.open")
        arguments = {"exchange": "e", "reply_code": 312}
        made.method("a", "server", 1, "basic.return", arguments, bodies[1])
        made.add("S1: basic.ack delivery_tag=2 multiple=1")
        assert [row["outcome"] for row in by_engine(made).messages] == [
            "confirmed", "returned", None,
        ]  # fmt: skip


def test_a_body_that_was_not_captured_leaves_both_without_an_outcome() -> None:
    path = CAPTURES / "hostile" / "sem2_return_after_multi.pcap"
    packets = packets_of(path)
    cut = [(n, t, o[:-3] if n in (15, 16) else o, full, link) for n, t, o, full, link in packets]
    outcomes = [row["outcome"] for row in rows_of(cut).messages]
    assert outcomes[:4] == [None, None, "confirmed", "returned"]


@pytest.mark.parametrize(
    ("confirm", "first"), [("S1: basic.ack delivery_tag=1", "-"), ("", "returned r 4ms")]
)
def test_one_of_two_publishes_whose_numbers_are_unknown(ask: Ask, confirm: str, first: str) -> None:
    """The confirm may be of either, so the return may be too; a return of the other one is sure."""
    check(
        ask,
        f"""
        midstream
        C1: channel.flow active=1
        [p1] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5
        {confirm or "S1: channel.flow-ok active=1"}
        [p2] C1: basic.publish exchange=e routing_key=k mandatory=1 | body=5
        [p3] C1: basic.publish exchange=e routing_key=j mandatory=1 | body=5
        [r] S1: basic.return reply_code=312 exchange=e routing_key=k | body=5
        [s] S1: basic.return reply_code=312 exchange=e routing_key=j | body=5
        """,
        f"""
        messages:
            p1 publish {first}
            p2 publish -
            p3 publish returned s 2ms
            r return -
            s return -
        """,
    )
