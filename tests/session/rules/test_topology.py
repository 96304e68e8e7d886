"""Declarations and polls that are repeated."""

from __future__ import annotations

from tests.session.rules.found import details, found

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""
DECLARE = "C1: queue.declare queue=jobs\n@+2ms S1: queue.declare-ok queue=jobs\n"


def test_a_declaration_for_each_publish() -> None:
    text = OPEN + (DECLARE + "C1: basic.publish exchange=e\n") * 11
    row = found(text, "declaration-repeated")
    assert row is not None
    assert row["count"] == 10
    assert row["detail"] == (
        "10 repeated for 11 publishes; first queue.declare of queue 'jobs'; 22.0 ms of waiting for "
        "all declarations"
    )


def test_few_or_other_declarations() -> None:
    assert not found(OPEN + DECLARE * 10, "declaration-repeated")
    others = "".join(DECLARE.replace("jobs", f"q{n}") for n in range(30))
    assert not found(OPEN + others, "declaration-repeated")
    named_by_broker = DECLARE.replace("declare queue=jobs", "declare")
    assert not found(OPEN + named_by_broker * 30, "declaration-repeated")
    many = (DECLARE + "C1: basic.publish exchange=e\n" * 3) * 20
    assert not found(OPEN + many, "declaration-repeated")


def test_a_queue_that_was_deleted_is_declared_anew() -> None:
    text = OPEN + (DECLARE + "C1: queue.delete queue=jobs\nS1: queue.delete-ok\n") * 30
    assert not found(text, "declaration-repeated")


def polled(count: int, apart_ms: int) -> str:
    """Passive declarations of one queue."""
    line = f"@+{apart_ms}ms C1: queue.declare queue=jobs passive=1\nS1: queue.declare-ok\n"
    return OPEN + line * count


def test_a_queue_whose_length_is_polled() -> None:
    assert details(polled(10, 499), "queue-length-polling") == [
        "queue 'jobs': 10 times, 2.00 a second"
    ]


def test_a_length_that_is_asked_for_seldom() -> None:
    assert not found(polled(10, 1000), "queue-length-polling")
    assert not found(polled(9, 499), "queue-length-polling")


def gets(count: int, apart_ms: int, found_each: int) -> str:
    """Gets from one queue of which every so many find a message."""
    lines = [OPEN]
    for number in range(1, count + 1):
        lines.append(f"@+{apart_ms}ms C1: basic.get queue=jobs no_ack=1")
        full = number % found_each == 0
        lines.append(f"S1: basic.get-ok delivery_tag={number}" if full else "S1: basic.get-empty")
    return "\n".join(lines)


def test_a_queue_that_is_polled_in_vain() -> None:
    assert details(gets(20, 99, 3), "get-polling") == [
        "queue 'jobs': 20 gets, 10.0 a second, 14 of them in vain"
    ]


def test_gets_that_are_few_or_seldom_or_find_messages() -> None:
    assert not found(gets(19, 99, 3), "get-polling")
    assert not found(gets(20, 220, 3), "get-polling")
    assert not found(gets(20, 99, 2), "get-polling")


def made(
    count: int, apart_ms: int, method: str = "queue.declare", other: str = "queue.delete"
) -> str:
    """Things that are made and unmade."""
    lines = [OPEN]
    for number in range(count):
        for each in (method, other):
            lines.append(f"@+{apart_ms}ms C1: {each} queue=q{number}\nS1: {each}-ok")
    return "\n".join(lines)


def test_queues_that_come_and_go() -> None:
    assert details(made(10, 99), "topology-churn") == [
        "10 queues declared and deleted, 0 bindings made and removed: 10.5 changes a second"
    ]
    assert found(made(10, 99, "queue.bind", "queue.unbind"), "topology-churn")


def test_queues_that_stay_or_change_seldom() -> None:
    assert not found(made(9, 99), "topology-churn")
    assert not found(made(10, 220), "topology-churn")
    assert not found(made(40, 10, "queue.declare", "queue.bind"), "topology-churn")
