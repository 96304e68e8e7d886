"""What rules ask about the two sides of a connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from amqpsniff.decode.state import Connection
from amqpsniff.session.entities import Session
from amqpsniff.session.method_frame import HandshakeArguments
from amqpsniff.session.rules import peers
from amqpsniff.session.rules.context import RuleContext


def context(
    client: str | None = "10.0.0.1:40000",
    server: str | None = "10.0.0.2:5672",
    start_ok: bytes | None = None,
    **given: Any,
) -> Any:
    """A context of a connection; `given` is of its conversation, and its peer's."""
    conversation = SimpleNamespace(
        connection_id=f"id of {client}",  # a new text each time, as of any conversation
        a=server if given.get("client_direction") == 1 else client,
        b=client if given.get("client_direction") == 1 else server,
        ports=(40000, 5672),
        syn_seen=given.get("began", True),
        tls=given.get("tls"),
        ended=given.get("ended"),
        ended_by=given.get("ended_by"),
        acked=given.get("acked", (0, 0)),
        octets=(9, 9),
        lost_bytes=(0, 0),
        cut_bytes=(0, 0),
        start_ns=given.get("start_ns", 5),
        end_ns=given.get("end_ns", 9),
    )
    peer = Connection(conversation)
    peer.login, peer.client_direction = given.get("user"), given.get("client_direction", 0)
    session = Session(peer, None, 0)
    if start_ok is not None:
        session.take_handshake("connection.start-ok", HandshakeArguments(start_ok, True))
    return RuleContext(SimpleNamespace(log=None, shared={}), session, None, 1, 1)


@pytest.mark.parametrize(
    ("client", "host"),
    [("10.0.0.1:5", "10.0.0.1"), ("[::1]:5", "::1"), ("", ""), (None, "")],
)
def test_the_address_of_a_client(client: str | None, host: str) -> None:
    asked = context(client)
    assert [peers.client_of(asked).host for _ in range(2)] == [host, host]


def test_the_address_of_a_broker() -> None:
    assert peers.client_of(context()).server == "10.0.0.2:5672"
    assert peers.client_of(context(server=None)).server == ""


@pytest.mark.parametrize(
    ("start_ok", "product"),
    [
        (b'{"client_properties": {"product": "p"}}', "p"),
        (b'{"client_properties": {"product": ""}}', None),
        (b'{"client_properties": {"product": 1}}', None),
        (b'{"client_properties": []}', None),
        (b"[]", None),
        (b'{"client', None),
        (None, None),
    ],
)
def test_what_a_client_says_of_itself(start_ok: bytes | None, product: str | None) -> None:
    asked = context(start_ok=start_ok)
    assert peers.client_of(asked).text("product") == product
    assert peers.client_of(asked).application == (product or "")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "a client from 10.0.0.1"),
        ({"user": "joe"}, "user 'joe' from 10.0.0.1"),
        ({"client": None}, "a client"),
        (
            {"start_ok": b'{"client_properties": {"product": "p", "connection_name": "c"}}'},
            "a client (c) from 10.0.0.1",
        ),
    ],
)
def test_a_client_for_a_person(given: dict[str, Any], text: str) -> None:
    assert peers.client_of(context(**given)).words == text


def test_a_user_is_known_from_then_on() -> None:
    asked = context(user="joe", start_ok=b"{}")
    assert peers.client_of(asked).user == "joe"
    asked.session.connection.login = None
    assert peers.client_of(asked).user == "joe"


@pytest.mark.parametrize(
    ("client", "server", "tls", "on_network"),
    [
        ("10.0.0.1:1", "10.0.0.2:2", None, True),
        ("10.0.0.1:1", "10.0.0.2:2", "1.3", False),
        ("127.0.0.1:1", "127.0.0.2:2", None, False),
        ("127.0.0.1:1", "10.0.0.2:2", None, True),
        ("10.0.0.2:1", "10.0.0.2:2", None, False),
        ("10.0.0.1:1", "127.0.0.1:2", None, True),
        ("[::1]:1", "[::1]:2", None, False),
        ("[::ffff:127.0.0.1]:1", "127.0.0.1:2", None, False),
        ("[::ffff:10.0.0.1]:1", "127.0.0.1:2", None, True),
        ("name:1", "127.0.0.1:2", None, True),
        (None, "10.0.0.2:2", None, False),
        ("10.0.0.1:1", None, None, False),
    ],
)
def test_who_can_be_heard_on_the_way(
    client: str | None, server: str | None, tls: str | None, on_network: bool
) -> None:
    assert peers.client_of(context(client, server, tls=tls)).on_network is on_network


@pytest.mark.parametrize(
    ("given", "by_server"),
    [
        ({"ended": "fin", "ended_by": 1}, True),
        ({"ended": "fin", "ended_by": 0}, False),
        ({"ended": "fin", "ended_by": 0, "client_direction": 1}, True),
        ({"ended": "fin", "ended_by": 1, "acked": (10, 0)}, False),  # the client's FIN is missing
        ({"ended": "fin", "ended_by": 1, "acked": (9, 9)}, True),
        ({"ended": None, "ended_by": 1}, False),
        ({"ended": "fin", "ended_by": 2, "client_direction": -1}, False),
    ],
)
def test_who_ended_tcp(given: dict[str, Any], by_server: bool) -> None:
    assert peers.ended_by_server(context(**given)) is by_server


@pytest.mark.parametrize(("ns", "known"), [(-1, None), (0, None), (1, 1)])
def test_times_of_a_connection(ns: int, known: int | None) -> None:
    assert peers.end_ns(context(start_ns=1, end_ns=ns)) == known
    assert peers.began_ns(context(start_ns=ns)) == known
    assert peers.began_ns(context(start_ns=ns, began=False)) is None
