"""How publishers make sure: confirms and transactions."""

from __future__ import annotations

from tests.session.rules.found import details, found
from tests.session.script import Script

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
    assert not found(CONFIRMING + published(9, 500), "confirms-slow")


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


def test_a_publisher_that_waits_for_each_confirm() -> None:
    assert details(CONFIRMING + published(50, 9), "confirm-per-message") == [
        "50 publishes, each after the confirm of the one before; 9.00 ms each allow 102 a second"
    ]


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
