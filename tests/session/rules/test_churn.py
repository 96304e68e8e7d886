"""Connections and channels for next to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import pytest

from tests.session.rules.found import details, found, of_capture
from tests.session.rules.telling import several

SAMPLES = Path(__file__).parents[3] / "samples"


def connections(
    count: int, apart_ms: int = 0, publishes: int = 1, lasts_ms: int = 1, more: str = ""
) -> str:
    """Connections of 14 ms, or more, one after the other."""
    lines = ["z.midstream"] if apart_ms else []
    for number in range(count):
        name = f"c{number}"
        if apart_ms and number:
            lines.append(f"@+{apart_ms}ms z.S: connection.unblocked")
        lines.append(f"{name}.handshake")
        lines.append(f"{name}.C1: channel.open\n{name}.S1: channel.open-ok")
        lines += [f"{name}.C1: basic.publish exchange=e"] * publishes
        lines += [f"{name}.{line}" for line in more.splitlines()]
        lines.append(f"@+{lasts_ms}ms {name}.C: connection.close reply_code=200")
        lines.append(f"{name}.S: connection.close-ok")
        lines.append(f"{name}.FIN C\n{name}.FIN S")
    return "\n".join(lines)


def test_connections_for_a_message_each() -> None:
    row = found(connections(7), "connection-churn")
    assert row is not None
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (7, 1, 85)
    assert row["detail"] == (
        "user 'guest' from 10.0.0.1 opened 7 connections in 84.0 ms, one every 14.0 ms, and closed "
        "each within a second, with at most 3 messages on it"
    )


def test_connections_are_those_of_one_application() -> None:
    """Two programs of a host, each with its own pace; numbers and ids in names tell none apart."""

    def of(name: str, count: int, apart_ms: int) -> str:
        one = connections(count, apart_ms).replace("z.", f"{name}z.").replace("\nc", f"\n{name}c")
        lines = one.replace("@+1ms c", f"@+1ms {name}c").splitlines()
        for number in range(count):
            called = f"{name}-{number}-{uuid5(NAMESPACE_OID, str(number))}"
            client = f'{name}c{number}.handshake client=\'{{"connection_name":"{called}"}}\''
            lines[lines.index(f"{name}c{number}.handshake")] = client
        return "\n".join(lines)

    rows = details(of("cron", 5, 2000) + "\n" + of("lambda", 9, 100), "connection-churn")
    assert [row.partition(", and")[0].partition(" opened ")[2] for row in rows] == [
        "5 connections in 8.06 s, one every 2.01 s",
        "9 connections in 912 ms, one every 114 ms",
    ]
    assert rows[1].startswith("user 'guest' (lambda-0-")


DELIVER = "S1: basic.deliver consumer_tag=t delivery_tag=1\n"


@pytest.mark.parametrize(
    ("most", "one_more"),
    [
        ({"count": 5}, {"count": 4}),
        ({"publishes": 3}, {"publishes": 4}),
        ({"more": DELIVER * 3}, {"more": DELIVER * 4}),
        ({"lasts_ms": 987}, {"lasts_ms": 988}),
        ({"apart_ms": 2486}, {"apart_ms": 2487}),
    ],
)
def test_connections_that_are_used_or_seldom(
    most: dict[str, Any], one_more: dict[str, Any]
) -> None:
    assert found(connections(**{"count": 5} | most), "connection-churn")
    assert not found(connections(**{"count": 5} | one_more), "connection-churn")


@pytest.mark.parametrize(
    ("left_out", "churns"),
    [
        (("close", "FIN"), False),
        (("FIN",), True),
        (("close",), True),
        (("handshake",), False),
    ],
)
def test_connections_that_were_not_opened_or_go_on(left_out: tuple[str, ...], churns: bool) -> None:
    lines = connections(5).splitlines()
    kept = [line for line in lines if not any(word in line for word in left_out)]
    text = "\n".join(kept)
    if "handshake" in left_out:
        text = "".join(f"c{n}.midstream\n" for n in range(5)) + text
    assert bool(found(text, "connection-churn")) is churns


@pytest.mark.parametrize("line", ["C{n}: basic.publish exchange=e\n", "S{n}: " + DELIVER[4:]])
def test_messages_of_all_channels_count(line: str) -> None:
    """Two on a channel that was closed, and two on one that is open."""
    closed = "C1: channel.close\nS1: channel.close-ok\n"
    more = line.format(n=1) * 2 + closed + "C2: channel.open\nS2: channel.open-ok\n"
    for times, churns in ((1, True), (2, False)):
        text = connections(5, publishes=0, more=more + line.format(n=2) * times)
        assert bool(found(text, "connection-churn")) is churns


def test_connections_that_are_refused_are_no_churn() -> None:
    refused = """
        c{n}.hello
        c{n}.S: connection.start version_minor=9
        c{n}.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'
        c{n}.S: connection.close reply_code=403
        c{n}.FIN C
    """
    assert not found(several(refused, 7), "connection-churn")


def test_five_connections() -> None:
    row = found(connections(5), "connection-churn")
    assert row is not None
    assert (row["count"], row["last_packet_number"]) == (5, 57)


def test_where_connections_begin_to_come_often() -> None:
    """The first of five that were quick is where it is seen; later ones are counted with them."""
    pause = "@+20000ms z.S: connection.unblocked\n"
    quick = connections(7).split("c6.handshake")
    first, middle = quick[0].split("c1.handshake")
    text = f"z.midstream\n{first}{pause}c1.handshake{middle}{pause}c6.handshake{quick[1]}"
    row = found(text, "connection-churn")
    assert row is not None
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (6, 16, 87)


def test_connections_of_a_real_php_client() -> None:
    (row,) = (
        row for row in of_capture(SAMPLES / "php_churn.pcap") if row["code"] == "connection-churn"
    )
    assert row["count"] == 30


def channels(
    count: int, publishes: int, client: str = "{}", apart_ms: int = 20, more: str = ""
) -> str:
    """Channels of one connection, one after the other."""
    lines = [f"handshake client='{client}'"]
    for _ in range(count):
        lines.append(f"@+{apart_ms}ms C1: channel.open\nS1: channel.open-ok")
        lines += ["C1: basic.publish exchange=e"] * publishes
        lines.append(f"{more}C1: channel.close reply_code=200\nS1: channel.close-ok")
    return "\n".join(lines)


def test_channels_for_a_message_each() -> None:
    row = found(channels(10, 2), "channel-churn")
    assert row is not None
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (10, 8, 66)
    assert row["detail"] == "10 of 10 channels carried at most 2 messages, 43.7 of them a second"


GET = "C1: basic.get queue=q no_ack=1\nS1: basic.get-empty\n"


@pytest.mark.parametrize("more", [GET, DELIVER])
def test_channels_that_are_used(more: str) -> None:
    assert found(channels(10, 1, more=more), "channel-churn")
    assert not found(channels(10, 2, more=more), "channel-churn")


def test_channels_that_are_used_or_few() -> None:
    assert not found(channels(10, 3), "channel-churn")
    assert not found(channels(9, 1), "channel-churn")
    for used, churns in ((10, True), (11, False)):
        busy = channels(10, 1) + "\n" + channels(used, 3).partition("\n")[2]
        assert bool(found(busy, "channel-churn")) is churns


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("C1: channel.close reply_code=200\nS1: ", "S1: channel.close reply_code=404\nC1: "),
        ("S1: channel.close-ok", "S1: channel.close-ok\nGAP S 20"),
    ],
)
def test_channels_that_were_not_for_nothing(before: str, after: str) -> None:
    """The broker closed them, or something is missing."""
    text = channels(20, 1)
    assert found(text, "channel-churn")
    assert not found(text.replace(before, after), "channel-churn")


JAVA = '{"product": "RabbitMQ", "platform": "Java"}'


def test_channels_that_end_with_their_connection() -> None:
    """A pool of them, little used."""
    pool = "".join(
        f"C{n}: channel.open\nS{n}: channel.open-ok\nC{n}: basic.publish exchange=e\n"
        for n in range(1, 21)
    )
    close = "C: connection.close reply_code=200\nS: connection.close-ok"
    assert not found(f"handshake\n{pool}{close}", "channel-churn")


def test_channels_that_are_all_of_one_moment() -> None:
    """There is no rate then."""
    asked = "& ".join(f"C{n}: channel.open\n& C{n}: channel.close\n" for n in range(1, 11))
    answers = "".join(f"S{n}: channel.open-ok\nS{n}: channel.close-ok\n" for n in range(1, 11))
    assert details(f"handshake\n{asked}{answers}", "channel-churn") == [
        "10 of 10 channels carried at most 2 messages"
    ]


def test_a_channel_whose_begin_was_not_captured() -> None:
    opened = "C1: channel.open\nS1: channel.open-ok\n"
    for count in (10, 11):
        text = channels(count, 1).replace("handshake client='{}'", "midstream")
        assert bool(found(text.replace(opened, "", 1), "channel-churn")) is (count == 11)


def test_a_java_client_with_a_small_cache() -> None:
    row = found(channels(20, 0, JAVA, apart_ms=39), "spring-channel-cache")
    assert row is not None
    assert (row["cause_code"], row["packet_number"]) == ("channel-churn", 8)
    assert row["detail"] == "a Java client opens and closes 25.0 channels a second"


@pytest.mark.parametrize(
    ("client", "apart_ms"),
    [
        ('{"product": "RabbitMQ", "platform": ".NET"}', 20),
        ('{"product": "other", "platform": "Java"}', 20),
        ("{}", 20),
        (JAVA, 40),
    ],
)
def test_other_clients_and_a_lower_rate(client: str, apart_ms: int) -> None:
    assert not found(channels(20, 0, client, apart_ms=apart_ms), "spring-channel-cache")


def test_connections_that_the_broker_closes_are_no_churn() -> None:
    closed = """
        c{n}.handshake
        c{n}.S: connection.close reply_code=530
        c{n}.C: connection.close-ok
        c{n}.FIN C
    """
    assert not found(several(closed, 7), "connection-churn")
    assert found(
        several(
            closed.replace("S:", "C:").replace("C: connection.close-ok", "S: connection.close-ok"),
            7,
        ),
        "connection-churn",
    )


def test_connections_that_end_because_a_channel_failed_are_no_churn() -> None:
    text = "NOT_FOUND - no exchange 'e' in vhost '/'"
    refused = f'S1: channel.close reply_code=404 reply_text="{text}" class_id=60 method_id=40'
    assert not found(connections(7, more=refused), "connection-churn")
