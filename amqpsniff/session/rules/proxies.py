# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy, or of address translation."""

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
        isn, digest = getattr(conversation, "isn", None), _digest(client.start_ok)
        contribute(context, judge_passed_on, digest, client.host, server, where, isn)


@cython.cclass
class Logins:
    """Connections that log in with the same bytes: client, server and place of the latest, and
    hosts among which all their clients are, and all their servers; `begun` has the places by what
    address translation leaves alone.
    """

    latest: list[tuple[str, str, Any]]
    clients: set[str]
    servers: set[str]
    begun: dict[tuple[int, str], Any]

    def __init__(self) -> None:
        self.latest, self.clients, self.servers, self.begun = [], set(), set(), {}

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
    context: RuleContext,
    digest: str,
    client: str,
    server: str,
    where: Sequence[Any],
    isn: int | None,
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike.

    Or it is that one: address translation leaves TCP's sequence numbers alone.
    """
    logins: Logins = remembered(context, "logins", digest, Logins)
    if isn is not None:
        _judge_translated(context, logins.begun, isn, Place(*where))
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


def _judge_translated(
    context: RuleContext, begun: dict[tuple[int, str], Any], isn: int, place: Place
) -> None:
    """One more connection that began with a sequence number: its ends may have other names."""
    key = isn, (place.client or "").rpartition(":")[2]
    if len(begun) >= 2 * MAX_ALIKE:
        begun.clear()
    other: Place = begun.setdefault(key, place)
    apart = abs((other.ts_ns or 0) - (place.ts_ns or 0))
    if (other.client, other.server) != (place.client, place.server) and apart <= WITHIN_NS:
        front, behind = sorted((other, place), key=lambda one: one.ts_ns or 0)
        one, again = f"{front.client} to {front.server}", f"{behind.client} to {behind.server}"
        detail = f"{one} and {again} are one connection, before and after address translation"
        said = f"{detail}: client's port, first TCP sequence number and login are the same"
        report_at(context, behind, "proxy-on-both-sides", said)


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
