"""What shares a connection."""

from __future__ import annotations

import pytest

from tests.findings.pairs_of_peers import opening
from tests.session.rules.found import details, found

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""


def both(publishes: int, deliveries: int, no_ack: int = 0) -> str:
    """Publishes and acknowledged deliveries on one connection."""
    lines = [OPEN, f"C1: basic.consume queue=q consumer_tag=t no_ack={no_ack}"]
    lines += ["S1: basic.consume-ok consumer_tag=t"]
    lines += ["C1: basic.publish exchange=e"] * publishes
    for tag in range(1, deliveries + 1):
        lines.append(f"S1: basic.deliver consumer_tag=t delivery_tag={tag}")
        lines += [] if no_ack else [f"C1: basic.ack delivery_tag={tag}"]
    return "\n".join(lines)


def test_publishing_and_consuming() -> None:
    text = both(10, 10)
    assert details(text, "connection-shared") == ["10 publishes and 10 acknowledged deliveries"]


def test_little_of_one_of_them() -> None:
    assert not found(both(9, 100), "connection-shared")
    assert not found(both(100, 9), "connection-shared")
    assert not found(both(10, 10, no_ack=1), "connection-shared")


def opened(count: int, apart_ms: int, more: str = "") -> str:
    """Channels that are opened and stay open."""
    lines = ["handshake"]
    for number in range(1, count + 1):
        lines.append(f"@+{apart_ms}ms C{number}: channel.open\nS{number}: channel.open-ok")
        if more:
            lines.append(f"C{number}: {more}")
    return "\n".join(lines)


def test_channels_that_leak() -> None:
    text = opened(150, 100)
    assert details(text, "channels-leaking") == ["150 channels are open; 150 of them are idle"]
    all_of_them = text.replace("handshake", opening(tuned="channel_max=150"))
    assert details(all_of_them, "channels-leaking") == [
        "150 channels are open; the negotiated channel-max allows no more; 150 of them are idle"
    ]


def test_channels_that_leak_one_by_one_are_told_early() -> None:
    row = found(opened(110, 1000, "basic.publish exchange=e"), "channels-leaking")
    assert row is not None
    assert row["detail"] == "101 channels are open; 96 of them are idle"


def test_channels_that_only_become_more() -> None:
    assert details(opened(20, 2000), "channels-leaking") == [
        "20 channels are open, opened over 38.0 s, none was closed; 20 of them are idle"
    ]


def test_a_pool_that_is_filled_at_the_start() -> None:
    text = opened(50, 1)
    assert not found(text + "\n@+60000ms C1: basic.publish exchange=e", "channels-leaking")


def test_channels_that_are_used() -> None:
    text = opened(120, 10)
    used = "\n".join(f"C{number}: basic.publish exchange=e" for number in range(1, 121))
    assert not found(text + "\n" + used, "channels-leaking")
    for method in ("consume queue=q consumer_tag=t", "get queue=q"):
        assert not found(opened(120, 100, f"basic.{method}"), "channels-leaking")


def test_channels_that_are_closed() -> None:
    lines = ["handshake"]
    for _ in range(150):
        lines.append(
            "C1: channel.open\nS1: channel.open-ok\nC1: channel.close\nS1: channel.close-ok"
        )
    assert not found("\n".join(lines), "channels-leaking")


def shut(count: int, apart_ms: int = 1, last_ms: int = 0) -> str:
    """A client closes its channels one by one, and then its connection."""
    lines = [
        f"@+{apart_ms}ms C{number}: channel.close\nS{number}: channel.close-ok"
        for number in range(1, count + 1)
    ]
    end = f"@+{last_ms}ms C: connection.close reply_code=200\nS: connection.close-ok"
    return "\n".join(["", *lines, end, ""])


def test_channels_that_leak_until_the_client_closes_them() -> None:
    for closed in (20, 19):  # the last one with its connection
        (row,) = details(opened(20, 2000) + shut(closed), "channels-leaking")
        before = "opened over 38.0 s, none was closed before the client closed all"
        assert row == f"20 channels were open, {before}; 20 of them were idle"
    many = opened(150, 1) + shut(150)
    assert details(many, "channels-leaking") == [
        "150 channels were open before the client closed all; 150 of them were idle"
    ]
    assert not found(many, "channel-churn")


def test_channels_that_are_closed_for_other_reasons() -> None:
    text = opened(20, 2000)
    consume = "C{n}: basic.consume queue=q consumer_tag=t\nS{n}: basic.consume-ok consumer_tag=t\n"
    cancel = "C{n}: basic.cancel consumer_tag=t\nS{n}: basic.cancel-ok consumer_tag=t\n"
    used = "".join((consume + cancel).format(n=n) for n in range(1, 4))
    again = "\nC1: channel.open\nS1: channel.open-ok\nC1: channel.close\nS1: channel.close-ok"
    for more in (
        "\n" + used + shut(20),
        shut(20, 1, 5000),  # so long after them the connection goes on without
        shut(20).replace("\n@+0ms", again + "\n@+0ms"),
    ):
        assert not found(text + more, "channels-leaking")


def test_how_long_channels_have_to_become_more() -> None:
    """19 times so long apart; as many that were used, or were closed, are no leak."""
    for ms, grown in ((1578, True), (1577, False)):  # and the answer, 1 ms after each
        assert bool(found(opened(20, ms), "channels-leaking")) is grown
    assert not found(opened(19, 2000), "channels-leaking")
    closed = "\nC1: channel.close\nS1: channel.close-ok\n"
    assert not found(opened(21, 2000) + closed, "channels-leaking")
    lost = opened(20, 2000).replace("S1: channel.open-ok", "S1: channel.open-ok\nGAP S 20", 1)
    assert not found(lost, "channels-leaking")


def test_a_tenth_of_the_channels_may_be_used() -> None:
    """Of 20 that became more, and of 101 when the last one is opened."""
    consume = "\nC{n}: basic.consume queue=q consumer_tag=t{n}"
    for used, leaks in ((2, True), (3, False)):
        text = opened(20, 2000) + "".join(consume.format(n=n) for n in range(1, used + 1))
        assert bool(found(text, "channels-leaking")) is leaks
    for used, leaks in ((10, True), (11, False)):
        text = opened(100, 1) + "".join(consume.format(n=n) for n in range(1, used + 1))
        text += "\n@+9000ms C101: channel.open\nS101: channel.open-ok"
        assert bool(found(text, "channels-leaking")) is leaks


def test_many_channels_are_said_once() -> None:
    row = found(opened(210, 1000), "channels-leaking")
    assert row is not None
    assert (row["count"], row["detail"]) == (1, "101 channels are open; 96 of them are idle")


@pytest.mark.parametrize("used", [11, 31])
def test_channels_are_looked_at_when_they_have_doubled(used: int) -> None:
    """Of 101 too many are used; of 201 few enough, or else all are looked at in the end."""
    lines = opened(340, 1000).splitlines()
    lines = [*lines[: 2 * used + 1], *consume(used), *lines[2 * used + 1 :]]
    row = found("\n".join(lines), "channels-leaking")
    assert row is not None
    assert row["detail"].startswith("201 channels" if used == 11 else "340 channels")


def consume(count: int) -> list[str]:
    """Consumers on the first channels."""
    return [f"C{n}: basic.consume queue=q consumer_tag=t{n}" for n in range(1, count + 1)]


def test_the_end_of_a_channel_that_was_open_before_the_capture() -> None:
    text = opened(101, 1).replace("handshake", "midstream\nC300: basic.publish exchange=e")
    closed = "\nC300: channel.close\nS300: channel.close-ok\n@+9000ms S: connection.unblocked"
    assert details(text + closed, "channels-leaking") == [
        "101 channels are open; 101 of them are idle"
    ]


@pytest.mark.parametrize(("count", "leaks"), [(101, False), (102, True)])
def test_channels_that_are_closed_are_not_counted(count: int, leaks: bool) -> None:
    closed = "\nC1: channel.close\nS1: channel.close-ok\n@+9000ms S: connection.unblocked"
    assert bool(found(opened(count, 1) + closed, "channels-leaking")) is leaks


@pytest.mark.parametrize(("ms", "idle"), [(4981, 91), (4980, 101)])
def test_channels_that_are_too_young_to_be_idle(ms: int, idle: int) -> None:
    """Of 101, when the last one is opened; or else all are in the end."""
    text = opened(100, 1) + f"\n@+{ms}ms C101: channel.open\nS101: channel.open-ok"
    assert details(text, "channels-leaking") == [f"101 channels are open; {idle} of them are idle"]


@pytest.mark.parametrize(("ms", "leaks"), [(5000, False), (5001, True)])
def test_channels_that_were_used_lately(ms: int, leaks: bool) -> None:
    used = "\n& ".join(f"C{n}: basic.publish exchange=e" for n in range(1, 12))
    text = f"{opened(101, 1)}\n{used}\n@+{ms}ms S: connection.unblocked"
    assert bool(found(text, "channels-leaking")) is leaks
