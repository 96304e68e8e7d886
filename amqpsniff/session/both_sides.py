# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections that a capture shows twice: on both sides of a proxy, or of address translation.

They log in with the same bytes. A proxy with one address is known by that, address translation by
TCP's first number. A proxy with an address on each side is known by the times of the login: what a
client sends is seen before the proxy first, what the broker answers behind it.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from hashlib import blake2b

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Session

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import HANDSHAKE, OF_CLIENT
from amqpsniff.session.method_frame import ALIKE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Place = tuple[Any, ...]

WITHIN_NS = SECOND_NS
"""Time between the beginnings of both: a proxy opens its connection when it has the client's."""

PASSED_ON_NS = SECOND_NS // 50
"""Time in which a proxy passes on a step of the login."""

MAX_ALIKE = 64
"""Connections that log in with the same bytes and are remembered, the latest ones."""

MAX_LOGINS = 1_000
"""Different logins that are remembered for the count, the latest ones: both come at one time."""

MAX_COUNTED = 10_000
"""Connections that are remembered as counted; later ones may count again for each one in front."""

_PASSED_ON = cython.declare(cython.longlong, PASSED_ON_NS)
_OF_CLIENT = cython.declare(tuple, tuple(name in OF_CLIENT for name in HANDSHAKE))


def login_of(session: Session, place: Any) -> Any:
    """What a login is known by, with the place of its connection's first packet; else None.

    The digest of its bytes, the hosts of client and server, the place, TCP's first sequence number,
    and the times of its steps.
    """
    connection: Connection = session.connection
    start_ok = session.handshake_json("connection.start-ok")
    client, server = (_host_of(end) for end in connection.name()[1:])
    if not start_ok or not server or connection.conversation.start_ns <= 0 or client == server:
        return None
    isn = getattr(connection.conversation, "isn", None)
    return _digest(start_ok), client, server, place, isn, session.step_times()


def _host_of(end: str | None) -> str:
    return "" if not end else end.rpartition(":")[0].strip("[]")


@lru_cache(ALIKE)
def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


@cython.cclass
class Logins:
    """Connections that log in with the same bytes, the `latest` as (client, server, place, times of
    its login), and the hosts among which all their clients are, and all their servers; `begun` has
    the places by TCP's first sequence number.

    A place is (capture, packet number, ts_ns, connection id, client, server) of a first packet.
    """

    latest: list[tuple[str, str, Any, Any]]
    clients: set[str]
    servers: set[str]
    begun: dict[int, Any]

    def __init__(self) -> None:
        self.latest, self.clients, self.servers, self.begun = [], set(), set(), {}

    def add(
        self, client: str, server: str, place: Place, isn: int | None, times: tuple[int, ...]
    ) -> list[tuple[Place, str]]:
        """One more connection: its client or its server may be a proxy of one that is alike.

        Or it is that one: address translation leaves TCP's sequence numbers alone. Gives the
        places of what is behind another, with words about both.
        """
        found: list[tuple[Place, str]] = []
        if isn is not None:
            self._translated(found, isn, place)
        meet = client in self.servers or server in self.clients
        done_ns: cython.longlong = times[len(times) - 1]
        for other in reversed(self.latest):
            other_client, other_server, there, other_times = other
            other_ns: cython.longlong = other_times[len(other_times) - 1]
            if not meet and abs(done_ns - other_ns) > _PASSED_ON:
                break
            if other_server == client or other_client == server:
                if _begin_together(there, place):
                    in_front = other_server == client
                    found.append(_passed_on(there, place) if in_front else _passed_on(place, there))
                    break
            elif client != other_client and server != other_server:
                if done_ns < other_ns:
                    if _is_passed_on(other_times, times):
                        found.append(_passed_on(there, place))
                elif _is_passed_on(times, other_times):
                    found.append(_passed_on(place, there))
        self._remember(client, server, place, times)
        return found

    def _remember(self, client: str, server: str, place: Place, times: tuple[int, ...]) -> None:
        self.latest.append((client, server, place, times))
        if len(self.latest) >= 2 * MAX_ALIKE:
            del self.latest[:MAX_ALIKE]
            self.clients = {one[0] for one in self.latest}
            self.servers = {one[1] for one in self.latest}
        self.clients.add(client)
        self.servers.add(server)

    def _translated(self, found: list[tuple[Place, str]], isn: int, place: Place) -> None:
        """One more connection that began with a sequence number: its ends may have other names."""
        if len(self.begun) >= 2 * MAX_ALIKE:
            self.begun.clear()
        there = self.begun.setdefault(isn, place)
        if there is place or not _begin_together(there, place):
            return
        if there[4:] != place[4:] and _port(there[4]) == _port(place[4]):
            front, behind = (there, place) if (there[2] or 0) <= (place[2] or 0) else (place, there)
            one, again = f"{front[4]} to {front[5]}", f"{behind[4]} to {behind[5]}"
            detail = f"{one} and {again} are one connection, before and after address translation"
            said = f"{detail}: client's port, first TCP sequence number and login are the same"
            found.append((behind, said))


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


def _begin_together(one: Place, other: Place) -> bool:
    return abs((one[2] or 0) - (other[2] or 0)) <= WITHIN_NS


def _passed_on(front: Place, behind: Place) -> tuple[Place, str]:
    """One connection of a proxy is behind, the other in front of it."""
    return behind, f"{behind[4]} passes on to {behind[5]} what {front[4]} sends to {front[5]}"


def _port(end: str | None) -> str:
    return (end or "").rpartition(":")[2]


@cython.cclass
class DoubledConnections:
    """Counts the connections that the capture shows behind another of it: `count`."""

    logins: Any
    known: set[str]
    count: cython.longlong

    def __init__(self) -> None:
        self.logins = OrderedDict()
        self.known = set()
        self.count = 0

    def opened(self, session: Session) -> None:
        """A connection was opened."""
        connection: Connection = session.connection
        start_ns = connection.conversation.start_ns
        login = login_of(session, (None, None, start_ns, *connection.name()))
        if login is None:
            return
        digest, *known = login
        alike: Logins = self.logins.get(digest)
        if alike is None:
            if len(self.logins) >= MAX_LOGINS:
                self.logins.popitem(last=False)
            alike = self.logins[digest] = Logins()
        for place, _ in alike.add(*known):
            if place[3] not in self.known:
                self.count += 1
                if len(self.known) < MAX_COUNTED:
                    self.known.add(place[3])
