# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy, or of address translation.

A proxy with one address is known at the login, address translation by TCP's first number. A proxy
with an address on each side is known at the end, by the bytes and by the times: what a client sends
is seen before the proxy first, what the broker answers behind it.
"""

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

from amqpsniff.decode.state import MARKED_BYTES
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import HANDSHAKE
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.context import Place, Rule
from amqpsniff.session.rules.opening import OF_CLIENT, step
from amqpsniff.session.rules.peers import host_of
from amqpsniff.session.rules.shared_state import contribute, first_place, report_at

WITHIN_NS = SECOND_NS
"""Time between the beginnings of both: a proxy opens its connection when it has the client's."""

PASSED_ON_NS = SECOND_NS // 50
"""Time in which a proxy passes on a step of the login."""

MIN_FRAMES = 10
"""Frames of a connection that say more than its login, which has eight."""

MAX_ALIKE = 64
"""Connections that log in with the same bytes and are remembered, the latest ones."""

TWINS = "logins at one time"
"""Name in `RuleContext.shared` of the ids of open connections that logged in with the same bytes as
another between other hosts, at about the same time."""

_NONE: set[str] = set()


def opened(context: RuleContext) -> None:
    """connection.open-ok: tell who connects to whom, and says what as it logs in."""
    client: Client = client_of(context)
    session: Session = context.session
    connection: Connection = session.connection
    conversation, server = connection.conversation, client.server_host
    if client.start_ok and server and conversation.start_ns > 0 and client.host != server:
        where = first_place(context)
        isn, digest = getattr(conversation, "isn", None), _digest(client.start_ok)
        then_ns = context.ts_ns or 0
        contribute(context, judge_passed_on, digest, client.host, server, where, isn, then_ns)


def ended(context: RuleContext) -> None:
    """connection-ends: tell what it said, and when it logged in, unless no other did just then."""
    session: Session = context.session
    connection: Connection = session.connection
    conversation = connection.conversation
    if context.log.recorded is None:
        twins: set[str] = context.shared.get(TWINS, _NONE)
        connection_id = connection.name()[0]
        if connection_id not in twins:
            return
        twins.discard(connection_id)
    if session.frames < MIN_FRAMES or not context.certain or conversation.start_ns <= 0:
        return
    client: Client = client_of(context)
    times = tuple(step(context, name)[0] for name in HANDSHAKE)
    if not client.start_ok or None in times:
        return
    marks = connection.marks
    if 0 in marks:
        return  # bytes that are fed without packets have none
    sizes = tuple(min(size, MARKED_BYTES) for size in conversation.octets)
    where = first_place(context)
    said, end_ns = (*marks, *sizes), conversation.ended_ns
    contribute(context, judge_alike, _digest(client.start_ok), said, times, end_ns, where)


_OF_CLIENT = tuple(name in OF_CLIENT for name in HANDSHAKE)


def judge_alike(
    context: RuleContext,
    digest: str,
    said: Sequence[int],
    times: Sequence[int],
    end_ns: int,
    where: Sequence[Any],
) -> None:
    """One more connection that is over: its bytes may be those of another between other hosts."""
    known: Alikes = remembered(context, "alike", (digest, *said), Alikes)
    place = Place(*where)
    hosts = host_of(place.client), host_of(place.server)
    for other_times, other_end_ns, there in known.around(hosts, times[0]):
        if (end_ns < 0) != (other_end_ns < 0) or abs(end_ns - other_end_ns) > WITHIN_NS:
            continue
        other = Place(*there)
        if _is_passed_on(other_times, times):
            _report(context, other, place)
        elif _is_passed_on(times, other_times):
            _report(context, place, other)
    known.add(hosts, times[0], (times, end_ns, where))


@cython.cclass
class Alikes:
    """Connections with the same bytes, the latest ones, by the time of a step of their login and by
    their hosts.
    """

    latest: dict[int, dict[tuple[str, str], list[Any]]]
    count: cython.int

    def __init__(self) -> None:
        self.latest = {}
        self.count = 0

    def around(self, hosts: tuple[str, str], ts_ns: int) -> list[Any]:
        """Those between other hosts with a time near `ts_ns`."""
        found: list[Any] = []
        client, server = hosts
        step = ts_ns // PASSED_ON_NS
        for at in (step - 1, step, step + 1):
            for others, listed in self.latest.get(at, {}).items():
                if client not in others and server not in others:
                    found += listed
        return found[-MAX_ALIKE:]

    def add(self, hosts: tuple[str, str], ts_ns: int, one: Any) -> None:
        """One more; those that were added first are forgotten."""
        self.latest.setdefault(ts_ns // PASSED_ON_NS, {}).setdefault(hosts, []).append(one)
        self.count += 1
        while self.count > 2 * MAX_ALIKE:
            oldest = self.latest.pop(next(iter(self.latest)))
            self.count -= sum(map(len, oldest.values()))


def _is_passed_on(front: Sequence[int], behind: Sequence[int]) -> bool:
    """True if each step of a login came there right after it was sent here."""
    for now, then, of_client in zip(front, behind, _OF_CLIENT, strict=True):
        wait = then - now if of_client else now - then
        if not 0 < wait <= PASSED_ON_NS:
            return False
    return True


def _report(context: RuleContext, front: Place, behind: Place) -> None:
    """One connection of a proxy is behind, the other in front of it."""
    detail = f"{behind.client} passes on to {behind.server} what {front.client} sends to "
    report_at(context, behind, "proxy-on-both-sides", f"{detail}{front.server}")


@cython.cclass
class Logins:
    """Connections that log in with the same bytes: client, server and place of the latest, and
    hosts among which all their clients are, and all their servers; `begun` has the places by what
    address translation leaves alone.
    """

    latest: list[tuple[str, str, Any, int]]
    clients: set[str]
    servers: set[str]
    begun: dict[tuple[int, str], Any]

    def __init__(self) -> None:
        self.latest, self.clients, self.servers, self.begun = [], set(), set(), {}

    def add(self, client: str, server: str, place: Any, then_ns: int) -> None:
        """One more, which was done at `then_ns`."""
        self.latest.append((client, server, place, then_ns))
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
    then_ns: int,
) -> None:
    """One more connection: its client or its server may be a proxy of one that is alike.

    Or it is that one: address translation leaves TCP's sequence numbers alone. Its login was done
    at `then_ns`.
    """
    logins: Logins = remembered(context, "logins", digest, Logins)
    for other_client, other_server, there, other_ns in reversed(logins.latest[-MAX_ALIKE:]):
        if abs(then_ns - other_ns) > PASSED_ON_NS:
            break
        if client not in (other_client, other_server) and server not in (
            other_client,
            other_server,
        ):
            context.shared.setdefault(TWINS, set()).update((where[3], there[3]))
    if isn is not None:
        _judge_translated(context, logins.begun, isn, Place(*where))
    meet = client in logins.servers or server in logins.clients
    for other_client, other_server, there, _ in logins.latest[-MAX_ALIKE:] if meet else ():
        if other_server != client and other_client != server:
            continue
        place, other = Place(*where), Place(*there)
        if abs((other.ts_ns or 0) - (place.ts_ns or 0)) > WITHIN_NS:
            continue
        front, behind = (other, place) if other_server == client else (place, other)
        _report(context, front, behind)
        break
    logins.add(client, server, where, then_ns)


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


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.open-ok": (opened,),
    "connection-ends": (ended,),
}
