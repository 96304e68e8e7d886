"""How large messages are."""

from __future__ import annotations

from tests.session.rules.found import details, found
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
    assert row["detail"] == "a body of 1.05 MB of exchange 'files' with routing key 'k'"
    assert not found(OPEN + publish(MIB), "message-oversized")


def test_a_body_that_brokers_refuse() -> None:
    row = found(OPEN + publish(16 * MIB + 1), "message-oversized")
    assert row is not None
    assert "RabbitMQ 4 refuses more than 16 MiB" in row["detail"]


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
        "headers of about 4.10 kB of exchange 'files' with routing key 'k'"
    ]
    assert not found(with_headers(4096), "overhead-high")


def small(count: int, body: int, more: str = "") -> str:
    """Many publishes, ten a millisecond."""
    return OPEN + (publish(body, more) + ("& " + publish(body, more)) * 9) * (count // 10)


def test_more_around_bodies_than_in_them() -> None:
    row = found(small(1000, 10), "overhead-high")
    assert row is not None
    assert row["detail"] == (
        "1000 publishes with bodies of 10 octets on average took 63 octets each"
    )


def test_larger_or_fewer_messages() -> None:
    assert not found(small(1000, 14), "overhead-high")
    assert not found(small(990, 10), "overhead-high")
    slowly = OPEN + ("@+11ms " + publish(10)) * 1000
    assert not found(slowly, "overhead-high")


def spread(consumers: int, body: int = 100_000) -> str:
    """A publish that is delivered to several consumers."""
    lines = [OPEN, f"C1: basic.publish exchange=news | body={body}"]
    for tag in range(1, consumers + 1):
        lines.append(f"S1: basic.deliver exchange=news delivery_tag={tag} | body={body}")
    return "\n".join(lines)


def test_an_exchange_that_multiplies() -> None:
    assert details(spread(11), "fanout-amplified") == [
        "exchange 'news': 1 message became 11, 11 times the octets"
    ]


def test_an_exchange_that_multiplies_less_or_little() -> None:
    assert not found(spread(10, 200_000), "fanout-amplified")
    assert not found(spread(11, 90_000), "fanout-amplified")


def test_deliveries_of_what_was_not_captured() -> None:
    text = spread(30).replace("basic.publish exchange=news", "basic.publish exchange=other")
    assert not found(text, "fanout-amplified")
