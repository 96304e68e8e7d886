# ruff: noqa: E501 (one packet, one line)
"""Consumers whose window is full for good, or overfull."""

import pytest

from tests.session.rules.saying import found, said

OPEN = """
    handshake
    C1: channel.open
    S1: channel.open-ok
    C1: basic.qos prefetch_count=2
    S1: basic.qos-ok
    C1: basic.consume queue=q consumer_tag=t
    S1: basic.consume-ok consumer_tag=t
    [d1] S1: basic.deliver consumer_tag=t delivery_tag=1
    [d2] S1: basic.deliver consumer_tag=t delivery_tag=2
"""
ALIVE = "\n@+40000ms S: connection.blocked\nC: connection.unblocked"
CLOSED = "\nC: connection.close reply_code=200\nS: connection.close-ok"


def test_stuck() -> None:
    assert said(OPEN + ALIVE, "consumer-stuck") == [
        "consumer-stuck d1 1: consumer 't' of queue 'q' held 2 deliveries of 2 allowed, the oldest from packet d1, and acknowledged nothing for 40.0 s so far"
    ]


def test_too_many_when_the_capture_ends() -> None:
    third = "S1: basic.deliver consumer_tag=t delivery_tag=3"
    assert found(OPEN + third, "prefetch-exceeded") == ["prefetch-exceeded d1"]


def test_stuck_after_it_had_worked() -> None:
    script = (
        OPEN + "C1: basic.ack delivery_tag=1\n[d3] S1: basic.deliver consumer_tag=t delivery_tag=3"
    )
    assert said(script + ALIVE + CLOSED, "consumer-stuck") == [
        "consumer-stuck d2 1: consumer 't' of queue 'q' held 2 deliveries of 2 allowed, the oldest from packet d2, and acknowledged nothing for 40.0 s"
    ]


def test_stuck_until_it_is_cancelled() -> None:
    """As clients do that close what they opened."""
    cancel = "\n@+40000ms C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t\n"
    assert said(OPEN + cancel + CLOSED, "consumer-stuck") == [
        "consumer-stuck d1 1: consumer 't' of queue 'q' held 2 deliveries of 2 allowed, the oldest from packet d1, and acknowledged nothing for 40.0 s"
    ]
    unanswered = "\n@+40000ms C1: basic.cancel consumer_tag=t no_wait=1"
    assert found(OPEN + unanswered + CLOSED, "consumer-stuck") == ["consumer-stuck d1"]
    assert " x2" not in said(OPEN + unanswered + CLOSED, "consumer-stuck")[0]
    other = cancel.replace("consumer_tag=t", "consumer_tag=u")
    done = "C1: basic.ack delivery_tag=2 multiple=1"  # what it was about is done before the end
    for script in (cancel + done + CLOSED, other + done, cancel.replace("40000", "20000")):
        assert said(OPEN + script, "consumer-stuck") == []


def test_stuck_with_a_limit_for_the_channel() -> None:
    script = OPEN.replace("prefetch_count=2", "prefetch_count=2 global=1")
    assert len(said(script + ALIVE, "consumer-stuck")) == 1


def test_a_limit_for_consumers_lifts_that_of_the_channel() -> None:
    """RabbitMQ 3.10 says so of itself: `list_channels global_prefetch_count`."""
    shared = "C1: basic.qos prefetch_count=2 global=1\n    S1: basic.qos-ok\n"
    each = "C1: basic.qos prefetch_count=9\n    S1: basic.qos-ok\n"
    before = "    C1: basic.qos prefetch_count=2\n    S1: basic.qos-ok\n"
    assert said(OPEN.replace(before, f"    {shared}    {each}") + ALIVE, "consumer-stuck") == []
    assert len(said(OPEN.replace(before, f"    {each}    {shared}") + ALIVE, "consumer-stuck")) == 1


def test_stuck_without_a_limit() -> None:
    """A hundred where none was ever acknowledged, though more come; else a thousand."""
    script = OPEN.replace("prefetch_count=2", "prefetch_count=0")
    lines = [f"S1: basic.deliver consumer_tag=t delivery_tag={n}\n" for n in range(3, 1002)]
    late = f"@+20000ms {lines[98]}@+20000ms"
    forgotten = script + "".join(lines[:98]) + ALIVE.replace("@+40000ms", late)
    assert "101 deliveries without a limit" in said(forgotten, "consumer-stuck")[0]
    assert said(script + "".join(lines[:97]) + ALIVE, "consumer-stuck") == []
    acknowledged = script + "C1: basic.ack delivery_tag=1\n" + "".join(lines)
    assert "1000 deliveries without a limit" in said(acknowledged + ALIVE, "consumer-stuck")[0]
    assert said(acknowledged.replace(lines[-1], "") + ALIVE, "consumer-stuck") == []


def test_waiting_for_messages_is_not_being_stuck() -> None:
    for script in (
        OPEN + "C1: basic.ack delivery_tag=1" + ALIVE,
        OPEN + "C1: basic.ack delivery_tag=2 multiple=1" + ALIVE + CLOSED,
        OPEN + "\n@+20000ms S: connection.blocked",
    ):
        assert said(script, "consumer-stuck") == []


def test_long_jobs_take_as_long_as_they_do() -> None:
    script = (
        OPEN
        + """
        @+20000ms C1: basic.ack delivery_tag=1
        S1: basic.deliver consumer_tag=t delivery_tag=3
    """
    )
    assert said(script + ALIVE, "consumer-stuck") == []


@pytest.mark.parametrize(("worked", "waited", "said_so"), [(5, 10_000, True), (5, 9_990, False), (1, 10_000, False)])  # fmt: skip
def test_quick_acknowledgements_that_stop(worked: int, waited: int, said_so: bool) -> None:
    """After three that took milliseconds, ten seconds are long."""
    rounds = "".join(
        f"\nC1: basic.ack delivery_tag={2 * n} multiple=1"
        f"\nS1: basic.deliver consumer_tag=t delivery_tag={2 * n + 1}"
        f"\nS1: basic.deliver consumer_tag=t delivery_tag={2 * n + 2}"
        for n in range(1, worked + 1)
    )
    script = OPEN + rounds + f"\n@+{waited}ms S: connection.blocked"
    lines = said(script, "consumer-stuck")
    assert bool(lines) == said_so
    assert all(line.endswith(" so far") for line in lines)
    assert not any("so far" in line for line in said(script + CLOSED, "consumer-stuck"))


def test_a_capture_that_lost_something_does_not_say() -> None:
    assert said(OPEN + "GAP C 60" + ALIVE, "consumer-stuck", "prefetch-exceeded") == []


def test_more_than_the_prefetch_count() -> None:
    more = "".join(f"S1: basic.deliver consumer_tag=t delivery_tag={n}\n" for n in (3, 4, 5))
    script = OPEN + more
    cancelled = "[cancel] C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t"
    assert said(script + cancelled, "prefetch-exceeded") == [
        "prefetch-exceeded cancel 1: consumer 't' of queue 'q' held 5 deliveries of 2 allowed"
    ]
    assert len(said(script + CLOSED, "prefetch-exceeded")) == 1


def test_one_more_to_the_end() -> None:
    """No acknowledgement comes late any more."""
    script = OPEN + "S1: basic.deliver consumer_tag=t delivery_tag=3"
    held = "consumer 't' of queue 'q' held 3 deliveries of 2 allowed"
    cancelled = "\n[cancel] C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t"
    assert said(script + cancelled, "prefetch-exceeded") == [f"prefetch-exceeded cancel 1: {held}"]
    closed = "\n[end] C1: channel.close\nS1: channel.close-ok\n"
    assert said(script + closed, "prefetch-exceeded") == [f"prefetch-exceeded end 1: {held}"]
    acked = "\nC1: basic.ack delivery_tag=3"
    assert said(script + acked + cancelled, "prefetch-exceeded") == []
    assert said(OPEN + cancelled, "prefetch-exceeded") == []


def test_twice_as_many_are_no_late_acknowledgements() -> None:
    def held(count: int) -> list[str]:
        more = [f"S1: basic.deliver consumer_tag=t delivery_tag={n}" for n in range(3, count + 1)]
        acked = f"C1: basic.ack delivery_tag={count} multiple=1"
        return said("\n".join([OPEN, *more, acked]) + CLOSED, "prefetch-exceeded")

    assert held(4) == []
    assert len(held(5)) == 1


def test_a_few_more_may_be_acknowledged_already() -> None:
    script = OPEN + "S1: basic.deliver consumer_tag=t delivery_tag=3\nC1: basic.ack delivery_tag=1"
    assert said(script + CLOSED, "prefetch-exceeded") == []


def test_as_many_as_the_prefetch_count() -> None:
    script = OPEN + "C1: basic.ack delivery_tag=1\nS1: basic.deliver consumer_tag=t delivery_tag=3"
    assert said(script + CLOSED, "prefetch-exceeded") == []


def test_a_count_that_was_changed_later() -> None:
    script = (
        OPEN
        + """
        C1: basic.qos prefetch_count=3
        S1: basic.qos-ok
        S1: basic.deliver consumer_tag=t delivery_tag=3
    """
    )
    assert said(script + CLOSED, "prefetch-exceeded") == []


def test_more_than_the_prefetch_count_where_that_says_nothing() -> None:
    more = "".join(f"S1: basic.deliver consumer_tag=t delivery_tag={n}\n" for n in range(3, 8))
    qos = "C1: basic.qos prefetch_count=3\nS1: basic.qos-ok\n"
    transacted = OPEN.replace(
        "C1: basic.qos ", "C1: tx.select\n    S1: tx.select-ok\n    C1: basic.qos "
    )
    for script in (
        OPEN + qos + more + CLOSED,  # of the next consumers
        transacted + more + CLOSED,
        OPEN + "GAP C 60\n" + more + "C: connection.unblocked",  # acknowledgements may be lost
        OPEN.replace("prefetch_count=2", "prefetch_count=0") + more + CLOSED,
    ):
        assert said(script, "prefetch-exceeded") == []


def test_which_consumer_holds_too_much() -> None:
    """One that is cancelled says nothing of another."""
    other = "C1: basic.consume queue=r consumer_tag=u\nS1: basic.consume-ok consumer_tag=u\n"
    more = "".join(f"S1: basic.deliver consumer_tag=t delivery_tag={n}\n" for n in (3, 4, 5))
    cancelled = "C1: basic.cancel consumer_tag=u\n[end] S1: basic.cancel-ok consumer_tag=u\n"
    closed = "[end] C1: channel.close\nS1: channel.close-ok\n"
    assert said(OPEN + other + more + cancelled + closed, "prefetch-exceeded") == [
        "prefetch-exceeded end 1: consumer 't' of queue 'q' held 5 deliveries of 2 allowed"
    ]


def test_which_consumer_of_a_channel_is_stuck() -> None:
    """With a limit for the channel: who holds what is allowed, not who is kept from it."""
    shared = OPEN.replace("prefetch_count=2", "prefetch_count=2 global=1")
    other = "C1: basic.consume queue=r consumer_tag=u\nS1: basic.consume-ok consumer_tag=u\n"
    assert said(shared + other + ALIVE, "consumer-stuck") == [
        "consumer-stuck d1 1: consumer 't' of queue 'q' held 2 deliveries of 2 allowed, the oldest from packet d1, and acknowledged nothing for 40.0 s so far"
    ]
    assert said(shared + "C1: basic.ack delivery_tag=1" + ALIVE, "consumer-stuck") == []


def test_a_channel_that_was_closed_in_time() -> None:
    closed = "@+29000ms C1: channel.close\nS1: channel.close-ok\n"
    assert said(OPEN + closed + ALIVE, "consumer-stuck") == []


def test_what_was_asked_for_is_no_consumers() -> None:
    """Messages of basic.get count for the limit of a channel; nobody was sent them."""
    got = """
        handshake
        C1: channel.open
        S1: channel.open-ok
        C1: basic.qos prefetch_count=1 global=1
        S1: basic.qos-ok
        C1: basic.consume queue=q consumer_tag=t
        S1: basic.consume-ok consumer_tag=t
        C1: basic.get queue=r
        S1: basic.get-ok delivery_tag=1
    """
    assert said(got + ALIVE, "consumer-stuck") == []


def test_almost_as_many_as_nobody_should_hold() -> None:
    script = OPEN.replace("prefetch_count=2", "prefetch_count=0") + "C1: basic.ack delivery_tag=1\n"
    more = "".join(f"S1: basic.deliver consumer_tag=t delivery_tag={n}\n" for n in range(3, 1001))
    assert said(script + more + ALIVE, "consumer-stuck") == []
