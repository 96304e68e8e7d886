"""What Celery does to a broker."""

from __future__ import annotations

from uuid import UUID

from tests.session.rules.found import details, found

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
"""


def events(count: int, others: int) -> str:
    """Events and other messages."""
    lines = ["C1: basic.publish exchange=celeryev routing_key=worker.heartbeat | body=5"] * count
    return OPEN + "\n".join(lines + ["C1: basic.publish exchange=tasks | body=5"] * others)


def test_events_that_are_a_large_share() -> None:
    assert details(events(100, 200), "celery-event-noise") == [
        "100 events published and 0 delivered, 33 % of all messages"
    ]
    assert not found(events(100, 240), "celery-event-noise")
    assert not found(events(99, 10), "celery-event-noise")


def tasks(count: int, headers: str, rises: bool = True) -> str:
    """Deliveries, after each of which the prefetch count is set."""
    lines = [OPEN, "C1: basic.qos prefetch_count=4\nS1: basic.qos-ok"]
    lines += ["C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t"]
    for tag in range(1, count + 1):
        lines.append(
            f"S1: basic.deliver consumer_tag=t delivery_tag={tag} | body=5 headers='{headers}'"
        )
        lines.append(f"C1: basic.qos prefetch_count={4 + tag if rises else 4}\nS1: basic.qos-ok")
    return "\n".join(lines)


ETA = '{"eta": "2030-01-01T00:00:00", "task": "t"}'


def test_tasks_with_an_eta_that_raise_the_prefetch_count() -> None:
    row = found(tasks(3, ETA), "celery-eta-prefetch")
    assert row is not None
    assert row["detail"] == "3 tasks with an ETA; the prefetch count rose 3 times, to 7"


def test_other_tasks_and_other_prefetch_counts() -> None:
    assert not found(tasks(2, ETA), "celery-eta-prefetch")
    assert not found(tasks(9, '{"task": "eta"}'), "celery-eta-prefetch")
    assert not found(tasks(9, ETA, rises=False), "celery-eta-prefetch")


def results(names: list[str], arguments: str = '{"x-expires": 86400000}') -> str:
    """Queues for results."""
    return OPEN + "\n".join(
        f"C1: queue.declare queue={name} arguments='{arguments}'\nS1: queue.declare-ok queue={name}"
        for name in names
    )


def test_a_queue_for_each_result() -> None:
    names = [str(UUID(int=n)) for n in (7, 8)] + [UUID(int=9).hex]
    row = found(results(names), "celery-result-queues")
    assert row is not None
    assert row["count"] == 3
    assert names[0] in row["detail"]


def test_one_queue_for_all_results_and_other_queues() -> None:
    names = [str(UUID(int=n)) for n in (7, 8, 9)]
    assert not found(results(names[:2] * 4), "celery-result-queues")
    assert not found(results(names, "{}"), "celery-result-queues")
    assert not found(results(["q" + name for name in names]), "celery-result-queues")
