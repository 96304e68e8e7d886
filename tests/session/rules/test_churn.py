"""Connections and channels for next to nothing."""

from __future__ import annotations

from pathlib import Path

from tests.session.rules.found import details, found, of_capture

SAMPLES = Path(__file__).parents[3] / "samples"


def connections(count: int, apart_ms: int = 1, publishes: int = 1, lasts_ms: int = 1) -> str:
    """Connections one after the other."""
    lines = []
    for number in range(count):
        name = f"c{number}"
        lines.append(f"{name}.handshake")
        lines.append(f"{name}.C1: channel.open\n{name}.S1: channel.open-ok")
        lines += [f"{name}.C1: basic.publish exchange=e"] * publishes
        lines.append(f"@+{lasts_ms}ms {name}.C: connection.close reply_code=200")
        lines.append(f"{name}.S: connection.close-ok")
        lines.append(f"{name}.FIN C\n@+{apart_ms}ms {name}.FIN S")
    return "\n".join(lines)


def test_connections_for_a_message_each() -> None:
    row = found(connections(7), "connection-churn")
    assert row is not None
    assert row["count"] == 7
    assert row["detail"].startswith("10.0.0.1 opens a connection every ")
    assert not found(connections(4), "connection-churn")


def test_connections_that_are_used_or_seldom() -> None:
    assert not found(connections(7, publishes=4), "connection-churn")
    assert not found(connections(7, lasts_ms=1000), "connection-churn")
    assert not found(connections(7, apart_ms=2600), "connection-churn")


def test_connections_of_a_real_php_client() -> None:
    (row,) = (
        row for row in of_capture(SAMPLES / "php_churn.pcap") if row["code"] == "connection-churn"
    )
    assert row["count"] == 30


def channels(count: int, publishes: int, client: str = "{}", apart_ms: int = 20) -> str:
    """Channels of one connection, one after the other."""
    lines = [f"handshake client='{client}'"]
    for _ in range(count):
        lines.append(f"@+{apart_ms}ms C1: channel.open\nS1: channel.open-ok")
        lines += ["C1: basic.publish exchange=e"] * publishes
        lines.append("C1: channel.close reply_code=200\nS1: channel.close-ok")
    return "\n".join(lines)


def test_channels_for_a_message_each() -> None:
    assert details(channels(10, 2), "channel-churn") == [
        "10 of 10 channels carried at most 2 messages, 43.7 of them a second"
    ]


def test_channels_that_are_used_or_few() -> None:
    assert not found(channels(10, 3), "channel-churn")
    assert not found(channels(9, 1), "channel-churn")
    busy = channels(10, 1) + "\n" + channels(11, 3).partition("\n")[2]
    assert not found(busy, "channel-churn")


JAVA = '{"product": "RabbitMQ", "platform": "Java"}'


def test_a_java_client_with_a_small_cache() -> None:
    row = found(channels(20, 1, JAVA), "spring-channel-cache")
    assert row is not None
    assert row["cause_code"] == "channel-churn"


def test_other_clients_and_a_lower_rate() -> None:
    other = '{"product": "RabbitMQ", "platform": ".NET"}'
    assert not found(channels(20, 1, other), "spring-channel-cache")
    assert not found(channels(20, 1, JAVA, apart_ms=50), "spring-channel-cache")
