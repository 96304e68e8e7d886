"""Declarations and polls that are repeated."""

from __future__ import annotations

import pytest

from tests.conftest import CAPTURES
from tests.session.rules.found import details, found, of_capture

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
        "10 repeated for 11 publishes, the first a queue.declare of queue 'jobs'; 22.0 ms "
        "of waiting for all declarations"
    )


PUBLISH = "C1: basic.publish exchange=e\n"


@pytest.mark.parametrize(("published", "repeats"), [(19, True), (20, False)])
def test_declarations_for_two_publishes_each(published: int, repeats: bool) -> None:
    assert bool(found(OPEN + DECLARE * 11 + PUBLISH * published, "declaration-repeated")) is repeats
    again = "C1: channel.close\nS1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    text = OPEN + PUBLISH * (published - 1) + again + DECLARE * 11 + PUBLISH
    assert bool(found(text, "declaration-repeated")) is repeats


def test_few_or_other_declarations() -> None:
    assert not found(OPEN + DECLARE * 10, "declaration-repeated")
    others = "".join(DECLARE.replace("jobs", f"q{n}") for n in range(30))
    assert not found(OPEN + others, "declaration-repeated")
    named_by_broker = DECLARE.replace("declare queue=jobs", "declare")
    assert not found(OPEN + named_by_broker * 30, "declaration-repeated")
    passive = DECLARE.replace("declare queue=jobs", "declare queue=jobs passive=1")
    assert not found(OPEN + passive * 30, "declaration-repeated")
    lost = OPEN + DECLARE * 30 + "GAP S 20\n" + DECLARE
    assert not found(lost, "declaration-repeated")


def test_declarations_that_are_never_alike() -> None:
    """So many of one queue are remembered: of more, none is known again."""
    each = [DECLARE.replace("=jobs", f"=jobs durable={n % 2} ticket={n}", 1) for n in range(11)]
    assert found(OPEN + "".join(each[:10] * 2), "declaration-repeated")
    row = found(OPEN + "".join(each) + each[9] * 20 + each[10] * 20, "declaration-repeated")
    assert row is not None
    assert row["count"] == 20


MADE = [
    ("queue.declare queue=q", "queue.delete queue=q", "queue.declare of queue 'q'"),
    ("queue.bind queue=q exchange=x", "queue.unbind queue=q", "queue.bind of queue 'q'"),
    (
        "exchange.declare exchange=x",
        "exchange.delete exchange=x",
        "exchange.declare of exchange 'x'",
    ),
    ("exchange.bind destination=d source=s", "exchange.unbind destination=d source=s", ""),
]


@pytest.mark.parametrize(("make", "unmake", "named"), MADE)
def test_what_was_deleted_is_declared_anew(make: str, unmake: str, named: str) -> None:
    def said(*lines: str) -> str:
        return "".join(f"C1: {line}\nS1: {line.split()[0]}-ok\n" for line in lines)

    (detail,) = details(OPEN + said(make) * 11, "declaration-repeated")
    assert named in detail
    assert detail.endswith("; 11.0 ms of waiting for all declarations")
    assert not found(OPEN + said(make, unmake) * 30, "declaration-repeated")


def polled(count: int, apart_ms: int) -> str:
    """Passive declarations of one queue."""
    line = f"@+{apart_ms}ms C1: queue.declare queue=jobs passive=1\nS1: queue.declare-ok\n"
    return OPEN + line * count


def test_a_queue_whose_length_is_polled() -> None:
    assert details(polled(10, 499), "queue-length-polling") == [
        "queue 'jobs': 10 times, 2.00 a second"
    ]
    row = found(polled(10, 998), "queue-length-polling")
    assert row is not None
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (10, 10, 28)


def test_channels_that_look_once_each_at_the_start() -> None:
    assert not found(polled(40, 70), "queue-length-polling")
    assert found(polled(40, 80), "queue-length-polling")
    rows = of_capture(CAPTURES / "cases" / "looks_at_start.pcap.gz")
    assert "queue-length-polling" not in {row["code"] for row in rows}


def test_a_length_that_is_asked_for_seldom() -> None:
    assert not found(polled(10, 999), "queue-length-polling")
    assert not found(polled(9, 499), "queue-length-polling")
    assert not found(polled(10, 499).replace(" passive=1", ""), "queue-length-polling")
    assert not found(polled(5, 499) + polled(5, 499).replace(OPEN, "").replace("jobs", "other"),
                     "queue-length-polling")  # fmt: skip


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
    for apart_ms, often in ((199, True), (200, False)):
        assert bool(found(gets(20, apart_ms, 3), "get-polling")) is often
    assert not found(gets(19, 99, 3), "get-polling")
    assert not found(gets(20, 99, 2), "get-polling")
    vain = gets(20, 99, 2).replace("S1: basic.get-ok delivery_tag=20", "S1: basic.get-empty")
    assert found(vain, "get-polling")


def test_gets_from_the_queue_that_was_declared_last() -> None:
    text = gets(20, 99, 3).replace("basic.get queue=jobs", "basic.get")
    assert details(text, "get-polling")[0].startswith("a queue not known: 20 gets")
    assert details(text.replace(OPEN, OPEN + DECLARE), "get-polling") == [
        "queue 'jobs': 20 gets, 10.0 a second, 14 of them in vain"
    ]


def test_gets_that_the_broker_does_not_hear() -> None:
    """The channel is closed, and the client does not know yet."""
    closed = gets(10, 99, 11) + "\nS1: channel.close reply_code=404\n"
    assert not found(closed + gets(10, 99, 11).replace(OPEN, ""), "get-polling")


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
        "10 queues declared and deleted: 10.5 changes a second, the first of queue 'q0'"
    ]
    row = found(made(10, 99, "queue.bind", "queue.unbind"), "topology-churn")
    assert row is not None
    assert row["detail"].startswith("10 bindings made and removed: ")
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (20, 10, 48)


def test_queues_that_stay_or_change_seldom() -> None:
    assert not found(made(9, 99), "topology-churn")
    for wait_ms, often in ((198, True), (199, False)):  # with 20 changes, in 4 s or not
        text = made(10, 199) + f"\n@+{wait_ms}ms C1: queue.declare queue=last"
        assert bool(found(text, "topology-churn")) is often
    assert not found(
        made(40, 99).replace("declare queue=q", "declare passive=1 queue=q"), "topology-churn"
    )
    assert not found(made(40, 10, "queue.declare", "queue.bind"), "topology-churn")


def test_what_is_done_at_once_has_no_rate() -> None:
    for text in (polled(20, 1), gets(40, 1, 50), made(20, 1)):
        lines = text.replace("@+1ms ", "").splitlines()
        asked = [line for line in lines[4:] if line.startswith("C1: ")]
        script = "\n".join([*lines[:4], asked[0], *(f"& {line}" for line in asked[1:])])
        for code in ("queue-length-polling", "get-polling", "topology-churn"):
            assert not found(script, code)
