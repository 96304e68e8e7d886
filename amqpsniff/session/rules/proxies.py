# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy that passes bytes on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of
from cython.cimports.amqpsniff.session.rules.shared_state import remembered

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.context import Place, Rule
from amqpsniff.session.rules.shared_state import contribute, report_at

WITHIN_NS = SECOND_NS
"""Time between the beginnings of both: a proxy opens its connection when it has the client's."""

MAX_ALIKE = 64
"""Connections that log in with the same bytes and are remembered, the latest ones."""


def opened(context: RuleContext) -> None:
    """connection.open-ok: tell who connects to whom, and says what as it logs in."""
    client: Client = client_of(context)
    session: Session = context.session
    connection: Connection = session.connection
    conversation, server = connection.conversation, client.server_host
    start_ns = conversation.start_ns
    if client.start_ok and server and start_ns > 0 and client.host != server:
        where = (
            session.capture,
            conversation.first_packet_number or None,
            start_ns,
            *connection.name(),
        )
        contribute(context, judge_passed_on, _digest(client.start_ok), client.host, server, where)


@cython.cclass
class Logins:
    """Connections that log in with the same bytes: client, server and place of the latest, and
    hosts among which all their clients are, and all their servers.
    """

    latest: list[tuple[str, str, Any]]
    clients: set[str]
    servers: set[str]

    def __init__(self) -> None:
        self.latest, self.clients, self.servers = [], set(), set()

    def add(self, client: str, server: str, place: Any) -> None:
        """One more."""
        self.latest.append((client, server, place))
        if len(self.latest) >= 2 * MAX_ALIKE:
            del self.latest[:MAX_ALIKE]
            self.clients = {one[0] for one in self.latest}
            self.servers = {one[1] for one in self.latest}
        self.clients.add(client)
        self.servers.add(server)


@lru_cache(ALIKE)
def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


def judge_passed_on(
    context: RuleContext, digest: str, client: str, server: str, where: Sequence[Any]
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike."""
    logins: Logins = remembered(context, "logins", digest, Logins)
    meet = client in logins.servers or server in logins.clients
    for other_client, other_server, there in logins.latest[-MAX_ALIKE:] if meet else ():
        if other_server != client and other_client != server:
            continue
        place, other = Place(*where), Place(*there)
        if abs((other.ts_ns or 0) - (place.ts_ns or 0)) > WITHIN_NS:
            continue
        front, behind = (other, place) if other_server == client else (place, other)
        detail = f"{behind.client} passes on to {behind.server} what {front.client} sends to "
        report_at(context, behind, "proxy-on-both-sides", f"{detail}{front.server}")
        break
    logins.add(client, server, where)


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
