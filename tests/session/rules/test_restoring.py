"""Clients that come back and do not consume again."""

from __future__ import annotations

import pytest

from amqpsniff.session.rules.shared_state import MAX_KEPT
from tests.session.rules.saying import said
from tests.session.rules.telling import told

CODE = "consumer-not-restored"
NAMED = 'client=\'{"connection_name": "app"}\''


def login(name: str, client: str = NAMED) -> str:
    return f"{name}.handshake {client}\n{name}.C1: channel.open\n{name}.S1: channel.open-ok\n"


def consume(name: str, queue: str = "q", tag: str = "t", more: str = "") -> str:
    return (
        f"{name}.C1: basic.consume queue={queue} consumer_tag={tag} {more}\n"
        f"{name}.S1: basic.consume-ok consumer_tag={tag}\n"
    )


CONSUMING = login("a") + consume("a")
RESET = "[lost] a.RST C\n"
LATER = "@+31000ms b.C: connection.close\nb.S: connection.close-ok\nb.FIN C\n"
BACK = login("b")


def test_back_without_its_consumer() -> None:
    (line,) = said(CONSUMING + RESET + BACK + LATER, CODE)
    assert line == (
        "consumer-not-restored #13 -: user 'guest' (app) from 10.0.0.1 consumed from queue 'q' "
        "until its connection ended in packet lost, came back, and did not consume from it in "
        "31.0 s"
    )


def test_still_connected_at_the_end() -> None:
    stays = "@+31000ms b.C1: basic.publish routing_key=x | body=1\n"
    assert told(CONSUMING + RESET + BACK + stays, CODE)


def test_several_queues_are_one_finding() -> None:
    text = CONSUMING + "".join(consume("a", f"q{n}", f"t{n}") for n in range(4))
    (line,) = said(text + RESET + BACK + LATER, CODE)
    assert "from queue 'q', 'q0', 'q1' and 2 more until" in line


@pytest.mark.parametrize(
    "ended",
    [
        "a.S: connection.close reply_code=320\na.C: connection.close-ok\na.FIN S\n",
        "a.FIN C\n",
        "a.RST S\n",
    ],
    ids=["broker", "fin", "reset"],
)
def test_ends_that_the_client_did_not_ask_for(ended: str) -> None:
    assert told(CONSUMING + ended + BACK + LATER, CODE)


@pytest.mark.parametrize(
    "ended",
    [
        "a.C: connection.close\na.S: connection.close-ok\na.FIN C\n",
        "a.C1: channel.close\na.S1: channel.close-ok\na.RST C\n",
        "a.C1: basic.cancel consumer_tag=t\na.S1: basic.cancel-ok consumer_tag=t\na.RST C\n",
        "a.C1: basic.cancel consumer_tag=t no_wait=1\na.RST C\n",
    ],
    ids=["connection.close", "channel.close", "basic.cancel", "without an answer"],
)
def test_consumers_that_the_client_gave_up(ended: str) -> None:
    assert not told(CONSUMING + ended + BACK + LATER, CODE)


def test_cancelled_and_consumed_again() -> None:
    again = "a.C1: basic.cancel consumer_tag=t no_wait=1\n" + consume("a", tag="u")
    assert told(CONSUMING + again + RESET + BACK + LATER, CODE)


@pytest.mark.parametrize(
    "restored",
    [
        consume("b"),
        "b.C1: basic.consume consumer_tag=t\n",
        login("c", "") + consume("c"),
        "@+20000ms " + consume("b"),
    ],
    ids=["the same", "a queue not known", "another client", "late"],
)
def test_somebody_consumes_again(restored: str) -> None:
    assert not told(CONSUMING + RESET + BACK + restored + LATER, CODE)


def test_another_queue_is_consumed() -> None:
    assert told(CONSUMING + RESET + BACK + consume("b", "other") + LATER, CODE)


@pytest.mark.parametrize("until", ["", "c.C: connection.close\nc.S: connection.close-ok\n"])
def test_another_connection_of_the_client_still_consumes(until: str) -> None:
    other = login("c") + consume("c")
    assert not told(other + CONSUMING + RESET + BACK + until + LATER, CODE)


def test_the_old_connection_ends_after_the_new_one_consumes() -> None:
    new = login("b") + consume("b")
    assert not told(CONSUMING + new + "@+9000ms a.RST S\n" + login("c") + LATER, CODE)


@pytest.mark.parametrize(
    "client", ['client=\'{"connection_name": "other"}\'', 'client=\'{"product": "app"}\'']
)
def test_another_client(client: str) -> None:
    assert not told(CONSUMING + RESET + login("b", client) + LATER, CODE)


def test_another_virtual_host() -> None:
    assert not told(CONSUMING + RESET + login("b", NAMED + " vhost=other") + LATER, CODE)


def test_clients_without_a_name() -> None:
    product = 'client=\'{"product": "app"}\''
    lost = login("a", product) + consume("a") + RESET
    assert told(lost + login("b", product) + LATER, CODE)
    lost = login("a", "") + consume("a") + RESET
    assert not told(lost + login("b", "") + LATER, CODE)


def test_queues_of_one_connection() -> None:
    own = "a.C1: queue.declare queue=q exclusive=1\na.S1: queue.declare-ok queue=q\n"
    assert not told(login("a") + own + consume("a") + RESET + BACK + LATER, CODE)
    assert not told(login("a") + consume("a", "amq.gen-1") + RESET + BACK + LATER, CODE)


@pytest.mark.parametrize("hole", ["a.GAP C 100\n", "b.GAP C 100\n", "c.GAP C 100\n"])
def test_frames_that_may_be_missing(hole: str) -> None:
    lost = "a.S: connection.close reply_code=320\na.C: connection.close-ok\n"
    stays = "@+31000ms b.C1: basic.publish routing_key=x | body=1\n"
    rest = {"a": ("", lost + BACK), "b": (lost + BACK, ""), "c": (lost, BACK)}[hole[0]]
    begun = CONSUMING + login("c")
    assert told(begun + "".join(rest) + stays, CODE)
    assert not told(begun + rest[0] + hole + rest[1] + stays, CODE)


def test_a_connection_that_began_before_the_capture() -> None:
    hidden = "c.midstream\nc.S1: basic.deliver consumer_tag=t delivery_tag=4 | body=1\n"
    assert not told(hidden + CONSUMING + RESET + BACK + LATER, CODE)
    assert told(hidden + "c.RST C\n" + CONSUMING + RESET + BACK + LATER, CODE)


def test_nothing_is_said_when_clients_were_forgotten() -> None:
    more = "".join(consume("a", f"r{n}", f"u{n}") for n in range(MAX_KEPT))
    assert not told(login("a") + more + consume("a") + RESET + BACK + LATER, CODE)
