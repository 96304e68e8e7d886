# ruff: noqa: E501 (one packet, one line)
"""Deliveries whose queue is gone when their channel ends do not come again."""

from __future__ import annotations

import pytest

from tests.session.rules.saying import said

CODES = ("deliveries-in-doubt", "deliveries-deleted")
OPEN = "handshake\nC1: channel.open\nS1: channel.open-ok\n"
OPS = "b.handshake\nb.C1: channel.open\nb.S1: channel.open-ok\n"
CONSUMER = "C1: basic.consume queue=q consumer_tag=t\nS1: basic.consume-ok consumer_tag=t\n"
WORK = OPEN + CONSUMER + "[first] S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1\n"
DELETED = "b.C1: queue.delete queue=q\n[gone] b.S1: queue.delete-ok\n"
END = "[end] C: connection.close reply_code=200\nS: connection.close-ok\nFIN C\nFIN S\n"
CLOSE = "[end] C1: channel.close reply_code=200\nS1: channel.close-ok\n"
TWICE = "deliveries-in-doubt end 1: 1 delivery from queue 'q', in packet first, when {}"
NEVER = "deliveries-deleted end 1: 1 delivery from queue 'q' ({}), in packet first, when {}"
CLIENT, BY_DELETION = "the client closed it", "deleted in packet gone by 10.0.0.1"


@pytest.mark.parametrize("end", [END, CLOSE])
@pytest.mark.parametrize(
    "deleted",
    [
        DELETED,
        DELETED.replace("b.", ""),
        "b.C1: queue.declare queue=q\nb.S1: queue.declare-ok queue=q\n"
        + DELETED.replace("=q", "="),
        "[gone] b.C1: queue.delete queue=q no_wait=1\n",
    ],
)
def test_a_queue_that_somebody_deleted(deleted: str, end: str) -> None:
    text = OPS + WORK + deleted + ("S1: basic.cancel consumer_tag=t\n" if "b." in deleted else "")
    told = said(text + end, *CODES)
    if end == CLOSE:
        assert told[0].startswith("deliveries-deleted")
    else:
        end_of = "end 1" if "end 1" in told[0] else told[0].split(":")[0].partition(" ")[2]
        assert told == [NEVER.format(BY_DELETION, CLIENT).replace("end 1", end_of)]


@pytest.mark.parametrize(
    "deleted",
    [
        "",
        DELETED.replace("=q", "=other"),
        "b.C1: queue.delete queue=q if_unused=1\n[gone] b.S1: channel.close reply_code=406 reply_text='in use'\n",
        "b.C1: queue.delete queue=q if_unused=1 no_wait=1\n",
        "b.C1: queue.purge queue=q\nb.S1: queue.purge-ok\n",
    ],
)
def test_a_queue_that_is_still_there(deleted: str) -> None:
    (told,) = said(OPS + WORK + deleted + END, *CODES)
    assert told.startswith("deliveries-in-doubt ")


def test_a_queue_of_another_virtual_host() -> None:
    (told,) = said(OPS.replace("handshake", "handshake vhost=other") + WORK + DELETED + END, *CODES)
    assert told.startswith("deliveries-in-doubt ")


def test_a_queue_that_was_made_again() -> None:
    again = "S1: basic.deliver consumer_tag=t delivery_tag=2 | body=1\n"
    (told,) = said(OPS + WORK + DELETED + again + END, *CODES)
    assert told.startswith("deliveries-in-doubt ")
    assert "2 deliveries from queue 'q'" in told


def test_a_queue_that_is_deleted_later() -> None:
    """Its messages may have come again before."""
    (told,) = said(OPS + WORK + CLOSE + DELETED + END, *CODES)
    assert told.startswith("deliveries-in-doubt ")


def test_one_of_two_queues() -> None:
    other = CONSUMER.replace("queue=q", "queue=p").replace("=t", "=u")
    more = "S1: basic.deliver consumer_tag=u delivery_tag=2 | body=1\n"
    told = said(OPS + WORK + other + more + DELETED + END, *CODES)
    assert [line.split(" ")[0] for line in told] == ["deliveries-deleted", "deliveries-in-doubt"]
    assert "queue 'q' (deleted" in told[0]
    assert "queue 'p', in packet" in told[1]


PRIVATE = OPEN + "C1: queue.declare queue=q exclusive=1\nS1: queue.declare-ok queue=q\n"
HELD = CONSUMER + "[first] S1: basic.deliver consumer_tag=t delivery_tag=1 | body=1\n"


@pytest.mark.parametrize("end", [END, "RST C\n", "FIN S\nFIN C\n"])
def test_an_exclusive_queue_ends_with_its_connection(end: str) -> None:
    (told,) = said(PRIVATE + HELD + end, *CODES)
    assert told.startswith("deliveries-deleted ")
    assert "queue 'q' (exclusive to its connection)" in told


def test_an_exclusive_queue_outlives_a_channel() -> None:
    (told,) = said(PRIVATE + HELD + CLOSE + END, *CODES)
    assert told.startswith("deliveries-in-doubt ")


def test_an_exclusive_queue_that_was_refused() -> None:
    refused = "C2: channel.open\nS2: channel.open-ok\nC2: queue.declare queue=q exclusive=1\nS2: channel.close reply_code=405\n"
    (told,) = said(OPEN + refused + HELD + END, *CODES)
    assert told.startswith("deliveries-in-doubt ")


OTHER = 'b.handshake client=\'{"connection_name": "second"}\'\nb.C1: channel.open\nb.S1: channel.open-ok\n'
OTHERS = CONSUMER.replace("C1:", "b.C1:").replace("S1:", "b.S1:")
TOO = "; 'second' (10.0.0.1:40001) consumed from there too"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (OTHER + OTHERS, TOO),
        (OTHER + OTHERS.replace("queue=q", "queue=r"), ""),
    ],
    ids=["of the same queue", "of another queue"],
)  # fmt: skip
def test_who_else_consumes_from_the_queue(other: str, words: str) -> None:
    """The deliveries come again to one of them."""
    (line,) = said(WORK + other + END, "deliveries-in-doubt")
    assert line == TWICE.format(CLIENT) + words
