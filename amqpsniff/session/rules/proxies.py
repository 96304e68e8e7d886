# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy, or of address translation.

A proxy with one address is recognized by that, address translation by TCP's first sequence number.
A proxy with an address on each side is recognized by the times of the login: the client's frames
are captured before the proxy first, the broker's answers after it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of
from cython.cimports.amqpsniff.session.rules.shared_state import remembered

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import HANDSHAKE
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.context import Place, Rule
from amqpsniff.session.rules.opening import OF_CLIENT
from amqpsniff.session.rules.shared_state import contribute, first_place, report_at

WITHIN_NS = SECOND_NS
"""Time between the beginnings of both: a proxy opens its connection when it has the client's."""

PASSED_ON_NS = SECOND_NS // 50
"""Time in which a proxy passes on a step of the login."""

MAX_ALIKE = 64
"""Connections that log in with the same bytes and are remembered, the latest ones."""

_PASSED_ON = cython.declare(cython.longlong, PASSED_ON_NS)
_OF_CLIENT = cython.declare(tuple, tuple(name in OF_CLIENT for name in HANDSHAKE))


def opened(context: RuleContext) -> None:
    """connection.open-ok: contribute the endpoints, and the time of each step of the login."""
    client: Client = client_of(context)
    session: Session = context.session
    connection: Connection = session.connection
    conversation, server = connection.conversation, client.server_host
    if client.start_ok and server and conversation.start_ns > 0 and client.host != server:
        isn, digest = getattr(conversation, "isn", None), _digest(client.start_ok)
        times = session.step_times()
        where = first_place(context)
        contribute(context, judge_login, digest, client.host, server, where, isn, times)


@cython.cfunc
@cython.exceptval(-1, check=True)
def _is_passed_on(front: tuple[int, ...], behind: tuple[int, ...]) -> cython.bint:
    """True if each step of a login came there right after it was sent here."""
    place: cython.Py_ssize_t
    for place in range(len(_OF_CLIENT)):
        now: cython.longlong = front[place]
        then: cython.longlong = behind[place]
        wait: cython.longlong = then - now if _OF_CLIENT[place] else now - then
        if not 0 < wait <= _PASSED_ON or NULL in (now, then):
            return False
    return True


def _report(context: RuleContext, front: Place, behind: Place) -> None:
    """One connection of a proxy is behind, the other in front of it."""
    detail = f"{behind.client} passes on to {behind.server} what {front.client} sends to "
    report_at(context, behind, "proxy-on-both-sides", f"{detail}{front.server}")


@cython.cclass
class Logins:
    """Connections that log in with the same bytes, the `latest` as (client, server, place, times of
    its login), and the hosts among which all their clients are, and all their servers; `begun` has
    the places by TCP's first sequence number.
    """

    latest: list[tuple[str, str, Any, Any]]
    clients: set[str]
    servers: set[str]
    begun: dict[int, Any]

    def __init__(self) -> None:
        self.latest, self.clients, self.servers, self.begun = [], set(), set(), {}

    def add(self, client: str, server: str, place: Any, times: Any) -> None:
        """One more."""
        self.latest.append((client, server, place, times))
        if len(self.latest) >= 2 * MAX_ALIKE:
            del self.latest[:MAX_ALIKE]
            self.clients = {one[0] for one in self.latest}
            self.servers = {one[1] for one in self.latest}
        self.clients.add(client)
        self.servers.add(server)


@lru_cache(ALIKE)
def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


def judge_login(
    context: RuleContext,
    digest: str,
    client: str,
    server: str,
    where: Sequence[Any],
    isn: int | None,
    times: tuple[int, ...],
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike.

    Or it is that one: address translation leaves TCP's sequence numbers alone.
    """
    logins: Logins = remembered(context, "logins", digest, Logins)
    if isn is not None:
        _judge_translated(context, logins.begun, isn, where)
    meet = client in logins.servers or server in logins.clients
    done_ns: cython.longlong = times[len(times) - 1]
    for other in reversed(logins.latest):
        other_client, other_server, there, other_times = other
        other_ns: cython.longlong = other_times[len(other_times) - 1]
        if not meet and abs(done_ns - other_ns) > _PASSED_ON:
            break
        if other_server == client or other_client == server:
            if abs((there[2] or 0) - (where[2] or 0)) <= WITHIN_NS:
                front, behind = (there, where) if other_server == client else (where, there)
                _report(context, Place(*front), Place(*behind))
                break
        elif client != other_client and server != other_server:
            if done_ns < other_ns:
                if _is_passed_on(other_times, times):
                    _report(context, Place(*there), Place(*where))
            elif _is_passed_on(times, other_times):
                _report(context, Place(*where), Place(*there))
    logins.add(client, server, where, times)


def _judge_translated(
    context: RuleContext, begun: dict[int, Any], isn: int, where: Sequence[Any]
) -> None:
    """One more connection that began with a sequence number: its ends may have other names."""
    if len(begun) >= 2 * MAX_ALIKE:
        begun.clear()
    there = begun.setdefault(isn, where)
    if there is where or abs((there[2] or 0) - (where[2] or 0)) > WITHIN_NS:
        return
    other, place = Place(*there), Place(*where)
    if other[4:] != place[4:] and _port(other.client) == _port(place.client):
        front, behind = sorted((other, place), key=lambda one: one.ts_ns or 0)
        one, again = f"{front.client} to {front.server}", f"{behind.client} to {behind.server}"
        detail = f"{one} and {again} are one connection, before and after address translation"
        said = f"{detail}: client's port, first TCP sequence number and login are the same"
        report_at(context, behind, "proxy-on-both-sides", said)


def _port(end: str | None) -> str:
    return (end or "").rpartition(":")[2]


RULES: dict[str, tuple[Rule, ...]] = {"connection.open-ok": (opened,)}
