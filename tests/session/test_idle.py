"""What very many idle connections share, and what is not kept for each of them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from amqpsniff.decode.state import Connection
from amqpsniff.session.entities import Session
from amqpsniff.session.method_frame import HandshakeArguments


def test_a_handshake_is_of_its_own_connection() -> None:
    peer = SimpleNamespace(began=True)
    one, other = Session(peer, None, 0), Session(peer, None, 1)
    one.take_handshake("connection.start", HandshakeArguments(b"{}", True))
    assert list(one.handshake) == ["connection.start"]
    assert other.handshake == Session(peer, None, 2).handshake == {}


@pytest.mark.parametrize(("response", "user"), [(b"\0app\0hush", "app"), (b"app hush", None)])
def test_a_login_is_forgotten_once_the_user_is_known(response: bytes, user: str | None) -> None:
    connection = Connection(SimpleNamespace(syn_seen=True))
    octets = len(response).to_bytes(4, "big") + response
    connection.login = b"\0\x0a\0\x0b" + bytes(4) + b"\x05PLAIN" + octets + b"\0"
    assert [connection.user, connection.user] == [user, user]
    assert connection.login is not None
    assert b"hush" not in str(connection.login).encode()
