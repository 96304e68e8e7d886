"""What Celery does to a broker."""

from __future__ import annotations

from uuid import UUID

import pytest

from amqpsniff.session.rules.shared_state import MAX_NAMES
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
    assert found(events(121, 280), "celery-event-noise")
    assert not found(events(120, 280), "celery-event-noise")
    assert not found(events(99, 10), "celery-event-noise")
    assert not found(events(100, 10).replace("celeryev", "other"), "celery-event-noise")


def test_events_that_are_delivered() -> None:
    received = "\nS1: basic.deliver exchange=celeryev delivery_tag=1 | body=5" * 60
    tasks_received = "\nS1: basic.deliver exchange=tasks delivery_tag=1 | body=5"
    assert details(events(40, 100) + received, "celery-event-noise") == [
        "40 events published and 60 delivered, 50 % of all messages"
    ]
    assert not found(events(40, 100) + received + tasks_received * 134, "celery-event-noise")


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
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (3, 15, 21)
    other = "\nC2: channel.open\nS2: channel.open-ok\nC2: channel.close\nS2: channel.close-ok"
    assert found(tasks(3, ETA) + other, "celery-eta-prefetch")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("prefetch_count=7", "prefetch_count=8"),  # by two at last
        ("prefetch_count=7", "prefetch_count=6"),
        ("S1: basic.deliver consumer_tag=t delivery_tag=3", "C1: basic.publish"),
        ("S1: basic.deliver consumer_tag=t delivery_tag=3", "S1: basic.get-ok delivery_tag=3"),
        ("C1: basic.qos prefetch_count=7", "C2: basic.qos prefetch_count=7"),
    ],
)
def test_too_few_of_them(before: str, after: str) -> None:
    text = tasks(3, ETA).replace(before, after)
    assert text != tasks(3, ETA)
    assert not found(text, "celery-eta-prefetch")


def test_other_tasks_and_other_prefetch_counts() -> None:
    assert not found(tasks(2, ETA), "celery-eta-prefetch")
    assert not found(tasks(9, '{"task": "eta"}'), "celery-eta-prefetch")
    assert not found(tasks(9, ETA, rises=False), "celery-eta-prefetch")


def test_a_channel_that_is_opened_again_begins_anew() -> None:
    again = "\nC1: channel.close\nS1: channel.close-ok\nC1: channel.open\nS1: channel.open-ok\n"
    two = tasks(2, ETA)
    assert not found(two + again + two.replace(OPEN, ""), "celery-eta-prefetch")


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
    assert row["detail"] == f"3 queues named by a UUID that expire, first {names[0]}"
    assert (row["count"], row["packet_number"], row["last_packet_number"]) == (3, 10, 14)


def test_one_queue_for_all_results_and_other_queues() -> None:
    names = [str(UUID(int=n)) for n in (7, 8, 9)]
    assert not found(results(names[:2] * 4), "celery-result-queues")
    assert not found(results(names, "{}"), "celery-result-queues")
    assert not found(results(["q" + name for name in names]), "celery-result-queues")
    assert not found(results([name + "q" for name in names]), "celery-result-queues")
    assert not found(
        results(names).replace("declare queue=", "declare passive=1 queue="), "celery-result-queues"
    )
    cut = [name.replace("-", "", 1) for name in names]
    assert not found(results(cut), "celery-result-queues")


def test_result_queues_that_are_remembered() -> None:
    names = [str(UUID(int=n)) for n in range(MAX_NAMES + 2)]
    text = results(names + names)
    assert details(text, "rules-limit")[0].startswith("forgotten: names (")
    row = found(text, "celery-result-queues")
    assert row is not None
    assert row["count"] == MAX_NAMES


def held(count: int, eta: str = ETA) -> str:
    """A worker with a prefetch count of 4 that got tasks, and nothing for 12 s."""
    later = "\n@+12000ms C2: channel.open\nS2: channel.open-ok"
    return tasks(count, eta, rises=False) + later


PAST = ETA.replace("2030", "2000")


REBUS = (
    '{"rbs2-msg-id": "m", "rbs2-msg-type": "Bill", '
    '"rbs2-deferred-until": "2030-01-01T00:00:00.0000000+00:00"}'
)


@pytest.mark.parametrize("eta", [ETA, REBUS])
def test_tasks_with_an_eta_that_take_up_the_prefetch_count(eta: str) -> None:
    (detail,) = details(held(4, eta), "celery-eta-prefetch")
    assert detail == (
        "all 4 deliveries that the prefetch count allows are tasks whose ETA lies ahead, from "
        "queue 'q': nothing else came for 12.0 s"
    )
    for text in (held(3), held(4, PAST), held(4, '{"eta": "soon"}'), held(4, eta) + "\nGAP C 30"):
        assert not found(text, "celery-eta-prefetch")


@pytest.mark.parametrize(("eta", "stuck"), [(ETA, False), (PAST, True), ("{}", True)])
def test_what_is_held_for_later_is_not_stuck(eta: str, stuck: bool) -> None:
    text = held(4, eta).replace("@+12000ms", "@+31000ms")
    assert bool(found(text, "consumer-stuck")) == stuck
