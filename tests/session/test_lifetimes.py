"""What is remembered of messages ends with them, however long a channel goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest

from amqpsniff.limits import Limits
from amqpsniff.session import entities
from amqpsniff.session.limits import Limits as SessionLimits
from tests.session.script import Remembering, Script

OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
CONFIRM = "C1: confirm.select\nS1: confirm.select-ok\n"


class Talk:
    """What is remembered while lines of a script are said again and again, with other numbers."""

    def __init__(self, opening: str, **limits: Any) -> None:
        self.memory = Remembering(Script(OPEN + opening), Limits(**limits))
        self.session = self.memory.session

    def say(self, lines: str, numbers: Iterable[int]) -> Talk:
        """Lines for each number: `{n}`."""
        for number in numbers:
            for packet in Script("midstream\n" + lines.replace("{n}", str(number))).packets:
                octets = packet.octets.replace(bytes.fromhex("08000000000000ce"), b"")
                self.memory.say(packet._replace(octets=octets))
        return self

    @property
    def tracker(self) -> Any:
        """What follows the session."""
        return self.memory.pipeline.tracker

    @property
    def channel(self) -> Any:
        """The only channel."""
        return self.session.slot(1).channel

    @property
    def outstanding(self) -> int:
        """What counts for the limit."""
        return int(self.tracker.settler.outstanding)


PUBLISH = "C1: basic.publish routing_key=k{n} mandatory=1 | body=5\n"


def test_confirmed_publishes_do_not_come_back() -> None:
    """Each has a routing key of its own."""
    talk = Talk(CONFIRM).say(PUBLISH + "S1: basic.ack delivery_tag={n}\n", range(1, 100))
    assert (talk.channel.awaiting_return, talk.channel.by_fingerprint, talk.outstanding) == (
        {},
        {},
        0,
    )


def test_nor_do_those_that_came_back() -> None:
    back = "S1: basic.return reply_code=312 routing_key=k{n} | body=5\n"
    talk = Talk("").say(PUBLISH + back, range(1, 100))
    assert (talk.channel.awaiting_return, talk.channel.by_fingerprint, talk.outstanding) == (
        {},
        {},
        0,
    )


def test_nor_those_of_a_transaction_that_was_committed() -> None:
    commit = "C1: tx.commit\nS1: tx.commit-ok\n"
    talk = Talk("C1: tx.select\nS1: tx.select-ok\n").say(PUBLISH + commit, range(1, 100))
    assert (talk.channel.awaiting_return, talk.channel.by_fingerprint, talk.outstanding) == (
        {},
        {},
        0,
    )


def test_confirms_in_any_order() -> None:
    """The same routing key, the newest confirmed first."""
    publish = PUBLISH.replace("k{n}", "k")
    talk = Talk(CONFIRM).say(publish, range(1, 50))
    assert talk.outstanding == 2 * 49
    talk.say("S1: basic.ack delivery_tag={n}\n", range(49, 1, -1))
    assert talk.channel.unconfirmed == 1
    talk.say("S1: basic.ack delivery_tag=1\n", [0])
    assert (talk.channel.awaiting_return, talk.channel.by_fingerprint, talk.outstanding) == (
        {},
        {},
        0,
    )


def test_publishes_that_nothing_confirms_are_done_with() -> None:
    """The oldest, when there are more than the limit; the others may come back."""
    talk = Talk("", session=SessionLimits(returnable=3))
    talk.say(PUBLISH, range(1, 10))
    assert [key for _, key in talk.channel.awaiting_return] == ["k7", "k8", "k9"]
    assert talk.outstanding == 3
    talk.say("S1: basic.return reply_code=312 routing_key=k{n} | body=5\n", (2, 8))
    rows = talk.memory.messages()
    assert [row["routing_key"] for row in rows if row["outcome"] == "returned"] == ["k8"]


DELIVER = "S1: basic.deliver consumer_tag=t delivery_tag={n} | body=5\n"
CONSUME = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"


def test_a_delivery_that_waits_does_not_keep_those_after_it() -> None:
    talk = Talk(CONSUME).say(DELIVER, [1])
    last = 2 * entities.MAX_ANSWERED
    talk.say(DELIVER + "C1: basic.ack delivery_tag={n}\n", range(2, last + 1))
    ledger = talk.channel.deliveries
    assert [entry.number for entry in ledger] == [1]
    assert len(ledger.order) <= entities.MAX_ANSWERED + 2
    talk.say("C1: basic.ack delivery_tag={n} multiple=1\n", [last])
    assert (talk.channel.acknowledged, talk.outstanding) == (
        last - 1,
        2,
    )
    talk.say("C1: channel.close\nS1: channel.close-ok\n", [0])
    assert talk.outstanding == 0


ACK = "C1: basic.ack delivery_tag={n}\n"


@pytest.mark.parametrize(
    ("delivered", "acknowledged", "left"),
    [
        ((2, 5, 9, 10, 17), (9, 4, 2, 17, 11, 1, 18, 10), [5]),  # tags were left out
        ((2, 5, 9, 10, 17), (9, 9, 10, 10), [2, 5, 17]),
        (range(1, 60), (*range(2, 60, 2), 30, 31), [n for n in range(1, 60, 2) if n != 31]),
        ((5, 3, 9, 4), (4, 9, 7), [5, 3]),  # they do not rise
        ((5, 3, 5, 9), (3, 9), [5]),
        ((7, 8), (8, 7, 8), []),
    ],
)
def test_a_delivery_is_found_by_its_tag(
    delivered: Iterable[int], acknowledged: Iterable[int], left: list[int]
) -> None:
    talk = Talk(CONSUME).say(DELIVER, delivered).say(ACK, acknowledged)
    assert [entry.number for entry in talk.channel.deliveries] == left
    talk.say(DELIVER, [100, 101]).say(ACK, [100, *left])
    assert [entry.number for entry in talk.channel.deliveries] == [101]
    talk.say("C1: channel.close\nS1: channel.close-ok\n", [0])
    assert talk.outstanding == 0


def test_a_message_that_waits_does_not_keep_its_batch() -> None:
    """Its row was given out before: nothing of its columns is left there."""
    talk = Talk(CONSUME, rows_per_batch=4, session=SessionLimits(held_rows=8)).say(DELIVER, [1])
    talk.say(DELIVER + "C1: basic.ack delivery_tag={n}\n", range(2, 20))
    entry = talk.channel.deliveries.find(1)
    assert entry.rows.given
    assert set(entry.rows.columns().values()) == {None}
    talk.say("C1: basic.ack delivery_tag={n}\n", [1])
    assert talk.outstanding == 0
    assert [row["outcome"] for row in talk.memory.messages()] == [None] + ["acked"] * 18


def test_a_confirming_publish_that_waits_for_long_does_not_come_back() -> None:
    """It still waits for its confirm; those that have theirs are not kept behind it."""
    talk = Talk(CONFIRM, session=SessionLimits(returnable=3))
    talk.say(PUBLISH, [1])
    talk.say(PUBLISH + "S1: basic.ack delivery_tag={n}\n", range(2, 50))
    assert (talk.channel.awaiting_return, talk.channel.by_fingerprint) == ({}, {})
    assert (talk.outstanding, talk.channel.unconfirmed) == (1, 1)
    talk.say("S1: basic.return reply_code=312 routing_key=k1 | body=5\n", [0])
    assert talk.channel.unconfirmed == 1
    talk.say("S1: basic.ack delivery_tag=1\n", [0])
    assert (talk.outstanding, talk.channel.times.confirmed) == (0, 49)


def test_nothing_is_kept_of_publishes_beyond_the_limit() -> None:
    talk = Talk("")
    talk.tracker.settler.most = 3
    talk.say(PUBLISH.replace("k{n}", "k"), range(1, 50))
    ((route, listed),) = talk.channel.awaiting_return.items()
    assert (route, len(listed)) == (("", "k"), 3)
    assert {len(one) for one in talk.channel.by_fingerprint.values()} == {3}


def test_commits_that_nobody_answers_keep_nothing() -> None:
    """A commit means the publishes before it, which are not listed once more for it."""
    talk = Talk("C1: tx.select\nS1: tx.select-ok\n", session=SessionLimits(returnable=5))
    talk.say(PUBLISH + "C1: tx.commit\n", range(1, 50))
    assert len(talk.channel.uncommitted) == 5 + 1  # the first is dropped with the next
    requests = talk.session.slot(1).requests
    assert [request.subject[1] for request in requests] == list(range(1, 50))
    talk.say("S1: tx.commit-ok\n", range(47))
    assert [key for _, key in talk.channel.awaiting_return] == ["k48", "k49"]
    talk.say("S1: tx.commit-ok\n", range(2))
    assert (talk.channel.awaiting_return, talk.outstanding) == ({}, 0)


def test_publishes_before_a_transaction_are_done_with_when_it_is_committed() -> None:
    select = "C1: tx.select\nS1: tx.select-ok\n"
    talk = Talk("").say(PUBLISH, [1, 2]).say(select, [0]).say(PUBLISH, [3])
    talk.say("C1: tx.commit\nS1: tx.commit-ok\n", [0])
    assert (talk.channel.awaiting_return, talk.outstanding) == ({}, 0)


@pytest.mark.skipif(entities.__file__.endswith(".py"), reason="the size of compiled objects")
def test_what_is_remembered_of_a_message_is_small() -> None:
    assert sys.getsizeof(entities.PendingMessage.__new__(entities.PendingMessage)) <= 136


def test_consumers_of_a_queue_that_never_gets_its_name_are_bounded() -> None:
    """As in a capture of the client's packets alone: it polls a queue that the server names."""
    talk = Talk("C1: queue.declare\n", session=SessionLimits(consumers=4))
    talk.say("C1: basic.get\n", range(10))
    assert len(talk.channel.declaring) == 4
    assert talk.tracker.settler.hits == {"consumers": 6}


def test_a_queue_whose_name_was_lost_gets_none() -> None:
    talk = Talk("C1: queue.declare\n")
    talk.memory.lose("server", 30)
    talk.say("C1: basic.get\n", range(10))
    assert talk.channel.declaring is None


def test_commits_without_an_answer_are_not_remembered() -> None:
    talk = Talk("C1: tx.select\nS1: tx.select-ok\n").say("C1: tx.commit\n", range(10))
    assert talk.channel.times.commits == 10
    assert talk.channel.committing == []
