"""How publishers make sure: confirms and transactions."""

from __future__ import annotations

import pytest

from amqpsniff import Engine
from tests.session.rules.found import details, found
from tests.session.script import HEARTBEATS, Script, wired

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
CONFIRMING = f"""{OPEN}
    C1: confirm.select
    S1: confirm.select-ok
"""
TRANSACTED = f"""{OPEN}
    C1: tx.select
    S1: tx.select-ok
"""


def published(count: int, confirm_ms: int, think_ms: int = 1, first: int = 1) -> str:
    """Publishes, each after the confirm of the one before."""
    return "\n".join(
        f"@+{think_ms}ms C1: basic.publish exchange=e | body=5\n"
        f"@+{confirm_ms}ms S1: basic.ack delivery_tag={tag}"
        for tag in range(first, first + count)
    )


def test_slow_confirms() -> None:
    row = found(CONFIRMING + published(10, 500), "confirms-slow")
    assert row is not None
    assert row["detail"] == "10 confirms, after 500 ms on average and 500 ms at most"
    assert not found(CONFIRMING + published(10, 499), "confirms-slow")
    assert not found(CONFIRMING + published(3, 500), "confirms-slow")


@pytest.mark.parametrize(
    ("round_trip_ns", "told"),
    [(3_000_000, "40.0 ms on average, 3.00 ms of it the network's round trip, and "),
     (41_000_000, "40.0 ms on average, and ")],
)  # fmt: skip
def test_the_round_trip_of_the_network(round_trip_ns: int, told: str) -> None:
    """It is measured when TCP connects, and told where it explains not all of the time."""
    engine = Engine()
    packets = [packet for _, packet in wired(Script(CONFIRMING + published(50, 40)))]
    begun_ns = packets[0].ts_ns - round_trip_ns
    for place, packet in enumerate(packets):
        engine.feed_packet(packet.octets, packet.ts_ns if place else begun_ns, packet.link_type)
    engine.finish()
    (row,) = (one for one in engine.take("findings").to_pylist() if "confirm" in one["code"])
    assert told in row["detail"]


def test_one_very_slow_confirm() -> None:
    script = Script(CONFIRMING + published(30, 1))
    script.add("[slow] C1: basic.publish exchange=e")
    script.add("@+5000ms S1: basic.ack delivery_tag=31")
    row = found(script, "confirms-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["slow"]


def test_slow_confirms_of_a_blocked_connection() -> None:
    text = CONFIRMING + "C1: basic.publish exchange=e\nS: connection.blocked reason=memory\n"
    row = found(text + "@+6000ms S1: basic.ack delivery_tag=1", "confirms-slow")
    assert row is not None
    assert row["cause_code"] in (None, "connection-blocked")


ALIVE = "@+{}ms S: connection.unblocked\n"


def test_a_confirm_that_does_not_come() -> None:
    """The publisher waits for ever: nothing is slow, for nothing came."""
    script = Script(CONFIRMING + published(3, 1))
    script.add("[first] C1: basic.publish exchange=e\nC1: basic.publish exchange=e")
    script.add(ALIVE.format(3000) + ALIVE.format(4000))
    row = found(script, "confirms-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["first"]
    assert row["detail"] == "2 publishes without a confirm, the first, number 4, for 7.00 s"


def test_what_came_late_and_what_did_not_come() -> None:
    script = Script(CONFIRMING + published(1, 6000))
    script.add("C1: basic.publish exchange=e\n" + ALIVE.format(5000))
    row = found(script, "confirms-slow")
    assert row is not None
    assert row["detail"] == (
        "1 confirm, after 6.00 s; 1 publish without a confirm, the first, number 2, for 5.00 s"
    )


@pytest.mark.parametrize(
    "text",
    [
        "C1: basic.publish exchange=e\n" + ALIVE.format(4999),
        "C1: basic.publish exchange=e\n@+6000ms C: connection.update-secret-ok",  # is it alive?
        "C1: basic.publish exchange=e\nGAP S 30\n" + ALIVE.format(6000),
        "C1: basic.publish exchange=e\nS1: basic.nack delivery_tag=1\n" + ALIVE.format(6000),
    ],
)
def test_a_confirm_that_may_come(text: str) -> None:
    assert not found(CONFIRMING + text, "confirms-slow")


def test_a_message_that_was_not_sent_to_its_end() -> None:
    """The broker has nothing to confirm yet."""
    script = Script(CONFIRMING + "C1: basic.publish exchange=e | body=100")
    whole = script.packets.pop()
    script.packets.append(whole._replace(octets=whole.octets[:60]))
    assert not found(script.add(ALIVE.format(6000)), "confirms-slow")


def test_a_publisher_that_waits_for_each_confirm() -> None:
    (detail,) = details(CONFIRMING + published(50, 9), "confirm-per-message")
    assert detail == (
        "50 publishes, each after the confirm of the one before; "
        "a confirm took 9.00 ms on average, and 102 messages a second were published"
    )


def test_a_publisher_with_little_to_send() -> None:
    assert not found(CONFIRMING + published(50, 9, think_ms=5), "confirm-per-message")
    assert not found(CONFIRMING + published(49, 9), "confirm-per-message")


def test_a_publisher_that_sends_meanwhile() -> None:
    text = CONFIRMING + "C1: basic.publish exchange=e\n" * 10 + published(60, 9, first=1)
    assert not found(text, "confirm-per-message")


def commits(count: int, publishes: int, acks: int = 0) -> str:
    """Transactions of so many publishes and acknowledgements each."""
    step = "C1: basic.publish exchange=e | body=5\n" * publishes
    step += "S1: basic.deliver consumer_tag=t delivery_tag=1 | body=5\n" * acks
    step += "C1: basic.ack delivery_tag=1\n" * acks
    return (step + "C1: tx.commit\nS1: tx.commit-ok\n") * count


def test_a_transaction_for_each_message() -> None:
    row = found(TRANSACTED + commits(10, 1), "transaction-per-message")
    assert row is not None
    assert (row["count"], row["detail"]) == (10, "10 commits for 10 publishes")


def test_a_transaction_for_each_acknowledgement() -> None:
    assert details(TRANSACTED + commits(10, 0, 1), "transaction-per-message") == [
        "10 commits for 0 publishes and 10 acknowledgements"
    ]


def test_transactions_of_several_operations() -> None:
    assert not found(TRANSACTED + commits(10, 2), "transaction-per-message")
    assert not found(TRANSACTED + commits(10, 1, 1), "transaction-per-message")
    assert not found(TRANSACTED + commits(9, 1), "transaction-per-message")
    assert not found(TRANSACTED + commits(10, 0), "transaction-per-message")


def test_a_little_of_what_is_published_does_not_wait() -> None:
    """Of 100 publishes 95 have to wait for the confirm before, as the first of several does."""
    for together, waits in ((6, True), (7, False)):
        alone = published(100 - together, 9, first=1)
        tags = range(101 - together, 101)
        text = alone + "\n" + "C1: basic.publish exchange=e | body=5\n" * together
        text += "".join(f"S1: basic.ack delivery_tag={tag}\n" for tag in tags)
        assert bool(found(CONFIRMING + text, "confirm-per-message")) is waits


def test_publishes_at_one_time() -> None:
    text = "C1: basic.publish exchange=e\n& C1: basic.publish exchange=e\n"
    assert not found(CONFIRMING + text, "confirm-per-message")


def test_the_packet_of_the_slowest_confirm() -> None:
    script = Script(CONFIRMING + "[slow] " + published(1, 6000).strip().partition(" ")[2])
    script.add("C1: basic.publish exchange=e\n" + ALIVE.format(7000))
    row = found(script, "confirms-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["slow"]


def test_where_the_first_commit_is() -> None:
    script = Script(TRANSACTED + "C1: basic.publish exchange=e\n[first] C1: tx.commit\n")
    script.add("S1: tx.commit-ok\n" + commits(8, 1) + "C1: basic.publish exchange=e\n")
    script.add("[last] C1: tx.commit\nS1: tx.commit-ok")
    row = found(script, "transaction-per-message")
    assert row is not None
    assert row["packet_number"] == script.labels["first"]
    assert row["last_packet_number"] == script.labels["last"]


STALLED = "C1: basic.publish routing_key=k | body=1\n@+{ms}ms S1: basic.ack delivery_tag={n}\n"


def stalls(late: int, quick: int, ms: int = 1400) -> str:
    """Confirms that come late, and 1,000 of 1 ms for each of `quick`, 9 ms apart."""
    text = "".join(STALLED.format(ms=ms, n=n + 1) for n in range(late))
    more = STALLED.replace("C1: b", "@+9ms C1: b")
    return CONFIRMING + text + "".join(more.format(ms=1, n=late + n + 1) for n in range(quick))


def test_time_that_goes_into_waiting() -> None:
    row = found(stalls(4, 20), "confirms-slow")
    assert row is not None
    assert row["detail"] == (
        "4 confirms took 500 ms or longer, the longest 1.40 s: 5.60 s of 5.80 s were spent waiting "
        "for them"
    )


def test_little_time_that_goes_into_waiting() -> None:
    assert not found(stalls(1, 20), "confirms-slow")  # 1.4 s in all
    assert not found(stalls(8, 20, 499), "confirms-slow")
    pause = (
        "@+30000ms C1: basic.publish routing_key=k | body=1\n@+1ms S1: basic.ack delivery_tag=25"
    )
    assert not found(stalls(4, 20) + pause, "confirms-slow")  # 5.6 s of 36 s


def test_waits_that_overlap_count_once() -> None:
    text = CONFIRMING + 8 * "C1: basic.publish routing_key=k | body=1\n"
    text += "@+1400ms S1: basic.ack delivery_tag=8 multiple=1\n"
    quick = STALLED.replace("C1: b", "@+9ms C1: b")
    text += "".join(quick.format(ms=1, n=9 + n) for n in range(30))
    assert not found(text, "confirms-slow")


def test_late_confirms_of_a_capture_with_a_hole() -> None:
    hole = "GAP S 100\nS: connection.unblocked"
    assert found(stalls(4, 20) + hole, "confirms-slow")
    waits = f"{CONFIRMING}C1: basic.publish exchange=e\n{ALIVE.format(9000)}"
    assert found(waits, "confirms-slow")
    assert not found(f"{waits}\n{hole}", "confirms-slow")  # it may be in the hole


def test_slow_confirms_behind_a_hole() -> None:
    text = CONFIRMING + published(3, 1) + "\nGAP C 50\n"
    row = found(text + published(10, 500, first=99), "confirms-slow")
    assert row is not None
    assert row["detail"].startswith("10 confirms took 500 ms or longer, the longest at least 500")
    assert not found(text + published(10, 400, first=99), "confirms-slow")


JOINED = "midstream\n"
"""Numbers of publishes are unknown, and times to confirms lower bounds."""


def test_slow_confirms_of_a_channel_from_before_the_capture() -> None:
    row = found(JOINED + published(10, 500, first=91), "confirms-slow")
    assert row is not None
    assert row["detail"] == "10 confirms, after at least 500 ms on average and 500 ms at most"
    assert not found(JOINED + published(10, 499, first=91), "confirms-slow")
    assert not found(JOINED + published(3, 500, first=91), "confirms-slow")


def test_one_very_slow_confirm_of_such_a_channel() -> None:
    script = Script(JOINED + published(3, 1, first=91))
    script.add("[slow] C1: basic.publish exchange=e")
    script.add("@+5000ms S1: basic.ack delivery_tag=94")
    row = found(script, "confirms-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["slow"]


def test_what_was_unconfirmed_before_the_capture() -> None:
    """The confirm of 93 is that of the first publish here, but it may be that of the second."""
    text = JOINED + "C1: basic.publish exchange=e\n@+4000ms C1: basic.publish exchange=e\n"
    text += "S1: basic.ack delivery_tag=91\nS1: basic.ack delivery_tag=92\n"
    assert not found(text + "@+4997ms S1: basic.ack delivery_tag=93", "confirms-slow")
    assert found(text + "@+4998ms S1: basic.ack delivery_tag=93", "confirms-slow")


def test_several_confirmed_together_on_such_a_channel() -> None:
    text = JOINED + published(1, 1, first=91) + "\n" + 10 * "C1: basic.publish exchange=e\n"
    for answer, told in (
        ("delivery_tag=101 multiple=1", "11 confirms, after at least 4.55 s on average"),
        ("delivery_tag=101", "2 confirms, after at least 2.50 s on average"),
    ):
        row = found(f"{text}@+5000ms S1: basic.ack {answer}", "confirms-slow")
        assert row is not None
        assert row["detail"].startswith(told), row["detail"]
    refused = f"{text}@+5000ms S1: basic.nack delivery_tag=101 multiple=1"
    assert not found(refused, "confirms-slow")
    more = "\nC1: basic.publish exchange=e\nS1: basic.ack delivery_tag=102"
    assert not found(refused + more, "confirms-slow")


def test_time_that_goes_into_waiting_on_such_a_channel() -> None:
    text = stalls(4, 20).removeprefix(CONFIRMING)
    row = found(JOINED + text, "confirms-slow")
    assert row is not None
    assert row["detail"] == (
        "4 confirms took 500 ms or longer, the longest at least 1.40 s: at least 5.60 s of 5.80 s "
        "were spent waiting for them"
    )
    assert not found(JOINED + stalls(1, 20).removeprefix(CONFIRMING), "confirms-slow")


def test_a_confirm_that_does_not_come_on_such_a_channel() -> None:
    script = Script(JOINED + published(3, 1, first=91))
    script.add("[first] C1: basic.publish exchange=e\nC1: basic.publish exchange=e")
    script.add(ALIVE.format(3000) + ALIVE.format(4000))
    row = found(script, "confirms-slow")
    assert row is not None
    assert row["packet_number"] == script.labels["first"]
    assert row["detail"] == "at least 2 publishes without a confirm, the first for 7.00 s"


@pytest.mark.parametrize(
    "text",
    [
        "C1: basic.publish exchange=e\n" + ALIVE.format(9000),  # perhaps without confirms
        published(3, 1, first=91) + "\nC1: basic.publish exchange=e\n" + ALIVE.format(4999),
        published(3, 1, first=91) + "\nGAP C 50\n" + published(1, 4999, first=99),
        published(3, 1, first=91) + "\nS1: basic.ack delivery_tag=0 multiple=1\n"
        + "C1: basic.publish exchange=e\n@+4999ms S1: basic.ack delivery_tag=99",
        published(3, 1, first=91) + f"\n@+9000ms S1: basic.ack delivery_tag={2**63 - 1}",
    ],
)  # fmt: skip
def test_what_is_not_known_of_such_a_channel(text: str) -> None:
    assert not found(JOINED + text, "confirms-slow")


def test_publishes_that_come_late_because_framing_had_to_be_found() -> None:
    """The confirm of the first stands before it; that says nothing of publishes before it."""
    script = Script(JOINED + published(1, 1, first=91) + "\n@+6000ms S: connection.unblocked")
    script.add(published(6, 1, first=92))
    packets = [one._replace(octets=one.octets.removeprefix(HEARTBEATS)) for one in script.packets]
    script.packets = packets
    assert not found(script, "confirms-slow")
