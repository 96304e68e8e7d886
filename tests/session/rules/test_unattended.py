# ruff: noqa: E501 (one packet, one line)
"""Queues that nobody reads any more, and what is said only where the capture shows all of it."""

from __future__ import annotations

import pytest

from amqpsniff.options import Options
from amqpsniff.pipeline import Pipeline
from amqpsniff.plan import Plan
from tests.session.rules.saying import said
from tests.session.script import Script
from tests.tcp import wire

OPEN = """
    handshake client='{"connection_name": "shop"}'
    C1: channel.open
    S1: channel.open-ok
"""
OTHER = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"
QUEUE = "C1: queue.declare queue=q\nS1: queue.declare-ok queue=q\n"
CONSUME = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
DELIVER = "S1: basic.deliver consumer_tag=t routing_key=q delivery_tag={n} | body=5\n"
GOT = DELIVER.format(n=1) + "C1: basic.ack delivery_tag=1\n"
CANCEL = "[cancel] C1: basic.cancel consumer_tag=t\nS1: basic.cancel-ok consumer_tag=t\n"
PUBLISH = "C1: basic.publish routing_key=q | body=5\n"
LATER = f"@+1100ms {PUBLISH}" * 10
LEFT = OPEN + QUEUE + CONSUME + GOT + CANCEL + LATER

# consumers that left


def test_a_consumer_that_was_cancelled() -> None:
    assert said(LEFT, "queue-abandoned") == [
        "queue-abandoned cancel 1: consumer 't' of queue 'q' was cancelled by the client in packet cancel, and its connection went on; 10 or more messages were published for the queue in the 11.0 s since, and nobody got one"
    ]


@pytest.mark.parametrize("side", ["C", "S"])
def test_a_consumer_whose_channel_was_closed(side: str) -> None:
    other = {"C": "S", "S": "C"}[side]
    close = f"[close] {side}2: channel.close reply_code=200\n{other}2: channel.close-ok\n"
    second = (CONSUME + GOT).replace("1: ", "2: ")
    text = OPEN + "C2: channel.open\nS2: channel.open-ok\n" + second + close + LATER
    who = {"C": "the client", "S": "the broker"}[side]
    (line,) = said(text, "queue-abandoned")
    assert f"of queue 'q' left when {who} closed its channel in packet close" in line


def test_messages_by_way_of_an_exchange() -> None:
    bound = "C1: exchange.declare exchange=e type=fanout\nS1: exchange.declare-ok\nC1: queue.bind queue=q exchange=e\nS1: queue.bind-ok\n"
    text = OPEN + QUEUE + bound + CONSUME + GOT + CANCEL
    assert said(text + LATER.replace("routing_key=q", "exchange=e"), "queue-abandoned")


@pytest.mark.parametrize(
    "text",
    [
        OPEN + QUEUE + CONSUME + CANCEL + LATER,
        OPEN + QUEUE + CONSUME + GOT + CANCEL + PUBLISH * 20,
        LEFT + CONSUME,
        LEFT + "@+1100ms S1: basic.get-ok routing_key=q delivery_tag=2 | body=5\n",
        LEFT.replace("queue=q\nS1: queue.declare-ok", "queue=q auto_delete=1\nS1: queue.declare-ok"),
        LEFT.replace("queue=q\nS1: queue.declare-ok", "queue=q arguments='{\"x-expires\": 9}'\nS1: queue.declare-ok"),
        LEFT + "C1: queue.delete queue=q\nS1: queue.delete-ok\n",
        LEFT + "GAP S 40\n",
        OTHER + "b.C1: basic.consume queue=q consumer_tag=u\nb.S1: basic.consume-ok consumer_tag=u\n" + LEFT,
        OPEN + QUEUE + CONSUME + CONSUME.replace("tag=t", "tag=u") + GOT + CANCEL + LATER,
        OTHER + OPEN + QUEUE + CONSUME + GOT + CANCEL + "C: connection.close reply_code=200\nS: connection.close-ok\n" + LATER.replace("C1", "b.C1"),
    ],
    ids=[
        "got nothing", "soon", "came back", "basic.get", "auto-delete", "expires", "deleted", "a hole", "another consumer",
        "another of its own", "its connection ended",
    ],
)  # fmt: skip
def test_queues_that_are_read_or_gone(text: str) -> None:
    assert said(text, "queue-abandoned") == []


# callers that have gone

PRIVATE = "b.C1: queue.declare queue=r exclusive=1\nb.S1: queue.declare-ok queue=r\n"
OVER = "b.C: connection.close reply_code=200\nb.S: connection.close-ok\n"
ANSWER = "[p] C1: basic.publish routing_key=r | body=5\n"


def test_an_answer_for_a_caller_that_has_gone() -> None:
    (line,) = said(OPEN + OTHER + PRIVATE + OVER + ANSWER, "rpc-caller-gone")
    assert line.startswith(
        "rpc-caller-gone p -: shop published 1 message for 1 private queue that had gone: queue 'r' of 'a connection'"
    )
    assert line.endswith(", whose connection ended 1.00 ms before")


READS = (
    "b.C1: basic.consume queue=r consumer_tag=u no_ack=1\nb.S1: basic.consume-ok consumer_tag=u\n"
)
PASSING = PRIVATE.replace("exclusive=1", "exclusive=1 auto_delete=1")
STOPS = "b.C1: basic.cancel consumer_tag=u\nb.S1: basic.cancel-ok consumer_tag=u\n"
SHUT = "b.C1: channel.close reply_code=200\nb.S1: channel.close-ok\n"
DELETE = "b.C1: queue.delete queue=r\nb.S1: queue.delete-ok\n"


@pytest.mark.parametrize(("text", "how"), [
    (PASSING + READS + STOPS, "whose consumer was cancelled"),
    (PASSING + READS + SHUT, "whose channel was closed"),
    (PASSING + READS + STOPS + SHUT, "whose consumer was cancelled"),
    (PRIVATE + DELETE, "which was deleted"),
    (PRIVATE + READS + STOPS, None),
    (PASSING + READS + READS.replace("=u", "=v") + STOPS, None),
    (PASSING + SHUT, None),
    (PASSING + READS + STOPS + PASSING, None),
])  # fmt: skip
def test_private_queues_that_go_before_their_connection(text: str, how: str | None) -> None:
    lines = said(OPEN + OTHER + text + ANSWER, "rpc-caller-gone", "publishes-after-deletion")
    assert len(lines) == (how is not None)
    assert all(f"queue 'r' of 'a connection' (10.0.0.1:40001), {how}" in line for line in lines)


DIRECT = "amq.rabbitmq.reply-to"
SERVER = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
CALLS = f"b.C1: basic.consume queue={DIRECT} consumer_tag=u no_ack=1\nb.S1: basic.consume-ok consumer_tag=u\n"
ASK = f"b.C1: basic.publish routing_key=q | body=5 correlation_id=1 reply_to={DIRECT}\n"
ASKED = f"S1: basic.deliver consumer_tag=t delivery_tag=1 routing_key=q | body=5 correlation_id=1 reply_to={DIRECT}.x\n"
REPLY = f"[p] C1: basic.publish routing_key={DIRECT}.x | body=5 correlation_id=1\n"
COMES = f"b.S1: basic.deliver consumer_tag=u delivery_tag=1 routing_key={DIRECT}.x | body=5 correlation_id=1\n"


@pytest.mark.parametrize(("end", "how"), [
    (SHUT, "whose channel was closed"),
    (STOPS, "whose consumer was cancelled"),
    (OVER, "whose connection ended"),
    ("", None),
])  # fmt: skip
def test_a_direct_reply_for_a_caller_that_gave_up(end: str, how: str | None) -> None:
    asked = OPEN + OTHER + SERVER + CALLS + ASK + ASKED
    lines = said(asked + end + REPLY, "rpc-caller-gone")
    assert len(lines) == (how is not None)
    words = (
        f"1 private queue that had gone: direct reply-to of 'a connection' (10.0.0.1:40001), {how}"
    )
    assert all(words in line for line in lines)
    for text in (
        asked + REPLY + COMES + end,
        asked + end + REPLY + COMES,
        asked.replace(ASKED, "") + end + REPLY,
    ):
        assert said(text, "rpc-caller-gone") == []


@pytest.mark.parametrize(
    "text",
    [
        OPEN + OTHER + PRIVATE + ANSWER + OVER,
        OPEN + OTHER + PRIVATE + ANSWER,
        OPEN + OTHER + PRIVATE + OVER + QUEUE.replace("=q", "=r") + ANSWER,
        OPEN + OTHER + PRIVATE + OVER + ANSWER.replace("routing_key", "mandatory=1 routing_key"),
        OPEN + OTHER + PRIVATE.replace("exclusive=1", "") + OVER + ANSWER,
        OPEN + OTHER + PRIVATE + OVER + ANSWER + "GAP C 40\n",
    ],
    ids=["before", "open", "declared again", "mandatory", "not private", "a hole"],
)  # fmt: skip
def test_answers_that_may_have_come(text: str) -> None:
    assert said(text, "rpc-caller-gone") == []


# queues that expired

EXPIRING = (
    "C1: queue.declare queue=q arguments='{\"x-expires\": 1000}'\nS1: queue.declare-ok queue=q\n"
)
ABSENT = "@+{ms}ms C1: basic.consume queue=q\n[close] S1: channel.close reply_code=404 reply_text=\"NOT_FOUND - no queue 'q' in vhost '/'\"\n"


def test_a_queue_that_expired_is_why_it_is_not_there() -> None:
    text = OPEN + EXPIRING + ABSENT.format(ms=2000)
    assert said(text, "queue-expired")[0].startswith(
        "queue-expired close 1: queue 'q' was declared with x-expires 1000 in packet #10 by shop, 2.00 s before"
    )


@pytest.mark.parametrize(
    "text",
    [
        OPEN + EXPIRING + ABSENT.format(ms=900),
        OPEN + EXPIRING.replace("x-expires", "x-message-ttl") + ABSENT.format(ms=2000),
        OPEN + EXPIRING + "C1: queue.delete queue=q\nS1: queue.delete-ok\n" + ABSENT.format(ms=2000),
        OPEN + EXPIRING + ABSENT.format(ms=2000).replace("'q'", "'p'"),
        OPEN + EXPIRING + ABSENT.format(ms=2000) + "GAP C 40\n",
    ],
    ids=["too early", "another argument", "deleted", "another queue", "a hole"],
)  # fmt: skip
def test_queues_that_are_not_there_for_another_reason(text: str) -> None:
    assert said(text, "queue-expired") == []


# messages that expire

LIMITED = (
    "C1: queue.declare queue=q arguments='{\"x-message-ttl\": 100}'\nS1: queue.declare-ok queue=q\n"
)
END = "@+2000ms C1: basic.qos\nS1: basic.qos-ok\n"


def test_messages_that_expired_without_a_word() -> None:
    text = OPEN + LIMITED + CONSUME + "[p] " + PUBLISH * 12 + DELIVER.format(n=1) + END
    assert said(text, "messages-dropped") == [
        "messages-dropped p - x11: queue 'q' was declared with x-message-ttl 100 and without a dead-letter exchange; 12 messages came into it until they had to expire, and 1 message to consumers: 11 or more are gone"
    ]


@pytest.mark.parametrize(
    "text",
    [
        OPEN + LIMITED + PUBLISH * 12 + "@+200ms C1: basic.qos\nS1: basic.qos-ok\n",
        OPEN + LIMITED.replace("100}", '100, "x-dead-letter-exchange": ""}') + PUBLISH * 12 + END,
        OPEN + LIMITED + CONSUME + PUBLISH * 12 + DELIVER.format(n=1) * 5 + END,
        OPEN + LIMITED + PUBLISH * 12 + "C1: queue.purge queue=q\nS1: queue.purge-ok\n" + END,
        OPEN + LIMITED + PUBLISH * 12 + END + "GAP S 40\n",
        OPEN + LIMITED + PUBLISH * 12 + END + "b.midstream\nb.C1: basic.publish | body=1\nb.S1: basic.qos-ok\n",
    ],
    ids=["too early", "a dead-letter exchange", "delivered", "purged", "a hole", "a connection from before"],
)  # fmt: skip
def test_messages_that_need_not_be_lost(text: str) -> None:
    assert said(text, "messages-dropped") == []


@pytest.mark.parametrize(
    ("arguments", "rest"),
    [
        ("x-message-ttl", LIMITED + PUBLISH * 12 + END),
        ("x-max-length", LIMITED + PUBLISH * 120 + END),
    ],
)
def test_an_answer_that_is_read_later_than_its_declaration(arguments: str, rest: str) -> None:
    """Readers take some packets at a time, and forget the rows of frames that nobody asked for."""
    joined = Pipeline(Options(), Plan(("messages", "findings")))
    talk = wire.Talk()
    talk.hands()
    script = Script(OPEN + rest.replace("x-message-ttl", arguments))
    for packet in script.packets:
        talk.now = packet.ts_ns
        talk.put(0 if packet.sender == "client" else 1, packet.octets)
    for packet in talk.packets:
        joined.feed(wire.batch([packet]))
    joined.finish()
    found = [one.detail for one in joined.findings() if one.code == "messages-dropped"]
    assert len(found) == 1
    assert f"was declared with {arguments} 100" in found[0]


# names that differ by a letter

READ = CONSUME.replace("queue=q", "queue=reports")
MISNAMED = ("[p] " + PUBLISH * 10).replace("routing_key=q", "routing_key=~")


@pytest.mark.parametrize("key", ["report", "reportts", "raports", "repotrs", "Reports"])
def test_a_name_that_differs_by_a_letter(key: str) -> None:
    assert said(OPEN + READ + MISNAMED.replace("~", key), "publishes-unbound") == [
        f"publishes-unbound p - x10: 10 messages to the default exchange with routing key '{key}': the capture declares no such queue, but 'reports', which has a consumer and gets nothing"
    ]


@pytest.mark.parametrize(
    "text",
    [
        READ + MISNAMED.replace("~", "reports"),
        READ + MISNAMED.replace("~", "reports2"),
        READ + MISNAMED.replace("~", "reprot"),
        READ + QUEUE.replace("=q", "=report") + MISNAMED.replace("~", "report"),
        READ + CONSUME.replace("=q", "=report") + MISNAMED.replace("~", "report"),
        READ + MISNAMED.replace("~", "report") + PUBLISH.replace("=q", "=reports"),
        READ + MISNAMED.replace("~", "report").replace("routing", "mandatory=1 routing"),
        READ + MISNAMED.replace("~", "report") + "GAP S 40\n",
    ],
    ids=["the name", "a digit", "two letters", "declared", "read", "in use", "mandatory", "a hole"],
)  # fmt: skip
def test_names_that_are_meant(text: str) -> None:
    assert said(OPEN + text, "publishes-unbound") == []


# transactions

SELECT = "[tx] C1: tx.select\nS1: tx.select-ok\n"


def test_a_transaction_that_is_not_committed() -> None:
    text = (
        OPEN
        + CONSUME
        + SELECT
        + DELIVER.format(n=1)
        + "C1: basic.ack delivery_tag=1\n"
        + PUBLISH * 2
    )
    close = "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
    (line,) = said(text + close, "transaction-uncommitted")
    assert line.startswith(
        "transaction-uncommitted tx 1 x3: 2 publishes to the default exchange, routing key 'q' and 1 acknowledgement since tx.select in packet tx, and no tx.commit until the client closed the channel, 6.00 ms later"
    )


@pytest.mark.parametrize(
    "text",
    [
        SELECT + PUBLISH + "C1: tx.commit\nS1: tx.commit-ok\n",
        SELECT + PUBLISH + "C1: tx.rollback\nS1: tx.rollback-ok\n",
        PUBLISH + SELECT,
        SELECT + PUBLISH + "GAP C 40\n",
    ],
    ids=["committed", "rolled back", "before", "a hole"],
)  # fmt: skip
def test_transactions_with_nothing_to_commit(text: str) -> None:
    close = "C1: channel.close reply_code=200\nS1: channel.close-ok\n"
    assert said(OPEN + text + close, "transaction-uncommitted") == []


def test_a_transaction_that_goes_on() -> None:
    text = OPEN + SELECT + PUBLISH * 10
    assert said(text, "transaction-uncommitted") == []
    assert said(text + "@+60000ms S1: basic.qos-ok\n", "transaction-uncommitted")
