"""How large messages are."""

from __future__ import annotations

import pytest

from tests.amqp10 import message
from tests.findings.cases import packets_of
from tests.findings.pairs_of_links import ACCEPTED, opening, said, sender, sends, settles
from tests.session.rules.found import details, found
from tests.session.rules.telling import told_of
from tests.session.script import Script

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
MIB = 1 << 20


def publish(body: int, more: str = "") -> str:
    """A publish to a named exchange."""
    return f"C1: basic.publish exchange=files routing_key=k | body={body} {more}\n"


def test_a_large_body() -> None:
    script = Script(OPEN + "[large] " + publish(MIB + 1))
    row = found(script, "message-oversized")
    assert row is not None
    assert row["packet_number"] == script.labels["large"]
    assert row["detail"] == "a body of 1.05 MB to exchange 'files' with routing key 'k'"
    assert not found(OPEN + publish(MIB), "message-oversized")


def test_a_body_that_brokers_refuse() -> None:
    words = "; RabbitMQ 4 refuses more than 16 MiB unless it is told otherwise"
    for octets, refused in ((16 * MIB, False), (16 * MIB + 1, True)):
        (detail,) = details(OPEN + publish(octets), "message-oversized")
        assert detail.endswith(words) is refused


@pytest.mark.parametrize(
    ("most", "code"), [(MIB, "message-too-large"), (3 * MIB, "message-oversized")]
)
def test_a_body_on_a_link_is_said_to_be_large_once(most: int, code: str) -> None:
    steps = (opening(), sender(max_message_size=most),
             sends("C", 0, payload=message(b"x" * 2 * MIB)), settles("S", 0, ACCEPTED))  # fmt: skip
    rows = told_of(packets_of(said(*steps)), "message-oversized", "message-too-large")
    assert [row["code"] for row in rows] == [code]


def test_a_large_delivery_is_of_a_queue() -> None:
    text = (
        OPEN
        + """
        C1: basic.consume queue=jobs consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        S1: basic.deliver consumer_tag=t delivery_tag=1 | body=2000000
    """
    )
    assert details(text, "message-oversized") == ["a body of 2.00 MB from queue 'jobs'"]


def with_headers(octets: int) -> str:
    """A publish whose headers are so large."""
    return OPEN + publish(5, "headers='" + '{"h": "' + "x" * (octets - 8) + "\"}'")


def test_large_headers() -> None:
    assert details(with_headers(4097), "overhead-high") == [
        "headers of about 4.10 kB to exchange 'files' with routing key 'k'"
    ]
    assert not found(with_headers(4096), "overhead-high")
    unkeyed = with_headers(4097).replace("routing_key=k", "")
    assert details(unkeyed, "overhead-high") == ["headers of about 4.10 kB to exchange 'files'"]
    nested = '{"h": [' + ",".join(["[]"] * 20) + "]}"  # many tables, and few bytes
    assert not found(OPEN + publish(5, f"headers='{nested}'"), "overhead-high")


def small(count: int, body: int, more: str = "") -> str:
    """Many publishes, ten a millisecond."""
    return OPEN + (publish(body, more) + ("& " + publish(body, more)) * 9) * (count // 10)


def received(count: int, body: int) -> str:
    """Many deliveries at once."""
    lines = [OPEN, "C1: basic.consume queue=q consumer_tag=t no_ack=1"]
    lines.append("S1: basic.consume-ok consumer_tag=t")
    for tag in range(1, count + 1):
        join = "& " if tag > 1 else ""
        lines.append(f"{join}S1: basic.deliver consumer_tag=t delivery_tag={tag} | body={body}")
    return "\n".join(lines)


CLOSE = "C1: channel.close\nS1: channel.close-ok\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (small(1000, 10), "1000 publishes took 63 bytes each on average, for bodies of 10 bytes"),
        (small(1000, 13), "1000 publishes took 66 bytes each on average, for bodies of 13 bytes"),
        (small(1000, 14), None),
        (small(1000, 10).replace("& ", "", 1).replace(publish(10), "", 1), None),
        (small(1000, 10) + CLOSE, "1000 publishes took 63 bytes each"),
        (small(500, 10) + CLOSE + small(500, 10).replace("handshake", ""), "1000 publishes"),
        (small(1000, 10) + "@+9892ms S: connection.unblocked", "1000 publishes"),
        (small(1000, 10) + "@+9893ms S: connection.unblocked", None),
        (small(1000, 10) + "GAP S 8\nS: connection.unblocked", None),
        (
            received(1000, 10),
            "1000 deliveries took 65 bytes each on average, for bodies of 10 bytes",
        ),
        (received(1000, 14), None),
        (received(999, 10), None),
        (received(1000, 10) + "\n" + CLOSE, "1000 deliveries took 65 bytes each on"),
    ],
)
def test_much_around_bodies(text: str, said: str | None) -> None:
    row = found(text, "overhead-high")
    assert (row is not None) is (said is not None)
    if row is not None and said is not None:
        assert row["packet_number"] == 1
        assert row["detail"].startswith(said)


def spread(consumers: int, body: int = 100_000) -> str:
    """A publish that is delivered to several consumers."""
    lines = [OPEN, f"C1: basic.publish exchange=news | body={body}"]
    for tag in range(1, consumers + 1):
        lines.append(f"S1: basic.deliver exchange=news delivery_tag={tag} | body={body}")
    return "\n".join(lines)


def test_an_exchange_that_multiplies() -> None:
    assert details(spread(11), "fanout-amplified") == [
        "exchange 'news': 1 message became 11, 11 times the bytes"
    ]


def test_an_exchange_that_multiplies_less_or_little() -> None:
    assert not found(spread(10, 200_000), "fanout-amplified")
    for body, amplified in ((MIB // 16, True), (MIB // 16 - 1, False)):
        assert bool(found(spread(16, body), "fanout-amplified")) is amplified


def test_exchanges_whose_messages_were_there_before() -> None:
    """Of one publish, even of an empty one, 10 deliveries are not more than ten times as many."""
    for deliveries, amplified in ((10, False), (11, True)):
        text = spread(deliveries, MIB).replace("news | body=1048576", "news | body=0", 1)
        assert bool(found(text, "fanout-amplified")) is amplified


def test_the_exchanges_that_multiply_most() -> None:
    text = OPEN + "".join(
        spread(10 + n, 110_000).replace(OPEN, "").replace("=news", f"=e{n}") for n in range(1, 8)
    )
    row = found(text, "fanout-amplified")
    assert row is not None
    assert row["count"] == 7
    assert row["detail"].split("; ") == [
        f"exchange 'e{n}': 1 message became {10 + n}, {10 + n} times the bytes"
        for n in (7, 6, 5, 4, 3)
    ]


def test_what_is_delivered_again() -> None:
    """A message that one consumer refuses over and over is not multiplied by its exchange."""
    text = spread(30)
    for tag in range(11, 31):
        assert found(text, "fanout-amplified")
        text = text.replace(f"tag={tag} ", f"tag={tag} redelivered=1 ")
    assert not found(text, "fanout-amplified")


def test_deliveries_of_what_was_not_captured() -> None:
    text = spread(30).replace("basic.publish exchange=news", "basic.publish exchange=other")
    assert not found(text, "fanout-amplified")
