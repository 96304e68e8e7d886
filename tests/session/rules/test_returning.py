# ruff: noqa: E501 (one packet, one line)
"""Clients that come again to fail the same way, for a moment, or without leaving."""

from __future__ import annotations

import pytest

from tests.session.rules.telling import one, several, told

REFUSED = """
    c{n}.hello
    c{n}.S: connection.start version_minor=9
    c{n}.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'
    c{n}.S: connection.tune channel_max=9 frame_max=131072 heartbeat=60
    c{n}.C: connection.tune-ok channel_max=9 frame_max=131072 heartbeat=60
    c{n}.C: connection.open virtual_host=v{n}
    @+9000ms c{n}.S: connection.close reply_code=530 reply_text='NOT_ALLOWED - vhost v{n} not found' class_id=10 method_id=40
    c{n}.C: connection.close-ok
    c{n}.FIN C
    c{n}.FIN S
"""


def test_a_client_that_fails_again_and_again() -> None:
    row = one(several(REFUSED, 5), "reconnect-loop")
    assert (
        row["detail"]
        == "user 'joe' from 10.0.0.1: 5 connections in 36.0 s ended with: 530 NOT_ALLOWED - vhost v2 not found"
    )
    assert row["count"] == 5
    assert row["cause_code"] == "vhost-refused"


@pytest.mark.parametrize(("before", "after"), [
    ("9000ms", "40000ms"),
    ("reply_code=530", "reply_code=200"),
    ("\\0joe", "\\0joe{n}"),
])  # fmt: skip
def test_ends_that_are_no_loop(before: str, after: str) -> None:
    assert before in REFUSED
    assert not told(several(REFUSED.replace(before, after), 5), "reconnect-loop")


def test_connections_that_end_together_are_no_loop() -> None:
    """Each was opened once; the two that come after are a loop with the one before."""
    forced = "reply_code=320 reply_text='CONNECTION_FORCED - maintenance'"
    closed = f"""
        c{{n}}.S: connection.close {forced}
        c{{n}}.C: connection.close-ok
        c{{n}}.FIN C
        c{{n}}.FIN S
    """
    opened = "c{n}.handshake user=svc\n"
    together = several(opened, 4) + several(closed, 4)
    assert not told(together, "reconnect-loop")
    again = "".join((opened + closed).format(n=number) for number in (4, 5))
    assert one(together + again, "reconnect-loop")["count"] == 3


SHORT = """
    c{n}.handshake user=web client='{"product": "AMQPLib", "platform": "PHP"}'
    c{n}.C1: channel.open
    c{n}.S1: channel.open-ok
    c{n}.C1: basic.publish routing_key=q | body=1
    c{n}.C: connection.close reply_code=200
    c{n}.S: connection.close-ok
    c{n}.FIN C
    c{n}.FIN S
"""


def test_a_connection_for_each_request_of_php() -> None:
    row = one(several(SHORT, 7), "php-short-connections")
    assert (
        row["detail"]
        == "user 'web' (AMQPLib) from 10.0.0.1: 5 connections that lived less than a second, this one 13.0 ms for 1 publish"
    )
    assert row["count"] == 7


@pytest.mark.parametrize(("count", "before", "after"), [
    (4, "", ""),
    (7, "AMQPLib", "pika"),
    (7, "c{n}.C: connection.close ", "@+2000ms c{n}.C: connection.close "),
    (7, "| body=1\n", "| body=1\n" + "c{n}.C1: basic.publish | body=1\n" * 3),
])  # fmt: skip
def test_connections_that_are_used(count: int, before: str, after: str) -> None:
    assert not told(several(SHORT.replace(before, after), count), "php-short-connections")


LEFT = """
    c{n}.handshake user=app
    @+3000ms c{n}.C1: channel.open
    c{n}.S1: channel.open-ok
"""
LATER = "\nz.handshake\n@+20000ms z.C1: channel.open"


def test_connections_that_are_never_closed() -> None:
    row = one(several(LEFT, 25) + LATER, "connections-leaking")
    assert row["detail"].startswith("user 'app' from 10.0.0.1 opened 25 connections in 72.")
    assert row["count"] == 25


def test_connections_that_end_with_their_program() -> None:
    ends = several("c{n}.RST C\n", 25)
    row = one(several(LEFT, 25) + LATER + "\n" + ends, "connections-leaking")
    told_of = "connections in 72.2 s, which were open and idle until the client ended them together"
    assert row["detail"] == f"user 'app' from 10.0.0.1 opened 25 {told_of}"
    assert row["count"] == 25
    in_turn = several("@+101ms c{n}.RST C\n", 25)
    assert not told(several(LEFT, 25) + LATER + "\n" + in_turn, "connections-leaking")
    of_broker = several("c{n}.RST S\n", 25)
    assert not told(several(LEFT, 25) + LATER + "\n" + of_broker, "connections-leaking")


@pytest.mark.parametrize(("count", "text"), [
    (15, LEFT),
    (25, LEFT.replace("3000ms", "30ms")),
    (25, LEFT + "c{n}.C1: basic.consume queue=q consumer_tag=t"),
    (25, LEFT + "c{n}.FIN C"),
    (25, LEFT.replace("user=app", "user=app{n}")),
])  # fmt: skip
def test_connections_that_are_wanted(count: int, text: str) -> None:
    assert not told(several(text, count) + LATER, "connections-leaking")


@pytest.mark.parametrize(("count", "idle_ms", "leaks"), [
    (20, 10_000, True), (20, 9_999, False), (19, 10_000, False),
])  # fmt: skip
def test_how_many_are_idle_for_how_long(count: int, idle_ms: int, leaks: bool) -> None:
    """The last one is idle from its publish on."""
    text = several(LEFT, count) + "@+7ms c0.C1: basic.publish | body=1\nz.hello\n"
    assert bool(told(text + f"@+{idle_ms - 1}ms z.RST C", "connections-leaking")) is leaks


@pytest.mark.parametrize(("before", "after"), [
    ("c{n}.handshake user=app", "c{n}.midstream\n    c{n}.C1: basic.qos"),
    ("c{n}.S1: channel.open-ok", "c{n}.C: connection.close"),
])  # fmt: skip
def test_connections_of_which_it_is_not_known_or_that_were_closed(before: str, after: str) -> None:
    assert not told(several(LEFT.replace(before, after), 25) + LATER, "connections-leaking")


def test_clients_without_a_name_are_not_told_from_each_other() -> None:
    text = REFUSED.replace(
        "c{n}.C: connection.start-ok mechanism=PLAIN response='\\0joe\\0x'",
        "c{n}.C: connection.start-ok mechanism=EXTERNAL",
    )
    assert not told(several(text, 5), "reconnect-loop")
    named = text.replace("EXTERNAL", 'EXTERNAL client_properties=\'{"product": "p"}\'')
    assert told(several(named, 5), "reconnect-loop")
