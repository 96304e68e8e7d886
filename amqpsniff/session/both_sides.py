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
from cython.cimports.amqpsniff.tcp.conversation import Conversation

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
_ASKED = cython.declare(cython.int, HANDSHAKE.index("connection.start-ok"))


@cython.ccall
def login_of(session: Session, client: Any, server: Any, place: Any) -> Any:
    """A login from a host to a server, for `Logins.add`; None where it is not whole.

    The digest of its bytes, the hosts, the client's port, the place of the connection's first
    packet, TCP's first sequence number, and the times of the steps.
    """
    connection: Connection = session.connection
    conversation = connection.conversation
    start_ok = session.handshake_json("connection.start-ok")
    if not start_ok or not server or conversation.start_ns <= 0 or client == server:
        return None
    port = conversation.ports[1 if connection.client_direction == 1 else 0]
    isn = getattr(conversation, "isn", None)
    return _digest(start_ok), client, server, port, place, isn, session.step_times()


@lru_cache(ALIKE)
def _digest(said: bytes) -> str:
    return blake2b(said, digest_size=16).hexdigest()


@cython.cclass
class Login:
    """A connection that logged in: its hosts, its place, and the times of the steps."""

    client: Any
    server: Any
    place: Any
    times: tuple[int, ...]
    asked_ns: cython.longlong  # the client's first step
    done_ns: cython.longlong  # the broker's last one

    def __init__(self, client: Any, server: Any, place: Place, times: tuple[int, ...]) -> None:
        self.client, self.server, self.place, self.times = client, server, place, times
        self.asked_ns, self.done_ns = times[_ASKED], times[len(times) - 1]


@cython.cclass
class Logins:
    """Connections that log in with the same bytes: the `latest`, and the hosts among which all
    their clients are, and all their servers; `begun` has the client's port and the place by TCP's
    first sequence number.

    A place is (capture, packet number, ts_ns, connection, client, server) of a first packet, the
    ends with ports. Hosts and ends are texts for findings, numbers for a count.
    """

    latest: list[Login]
    clients: set[Any]
    servers: set[Any]
    begun: dict[int, Any]

    def __init__(self) -> None:
        self.latest, self.clients, self.servers, self.begun = [], set(), set(), {}

    def add(
        self,
        client: Any,
        server: Any,
        port: int,
        place: Place,
        isn: int | None,
        times: tuple[int, ...],
    ) -> list[tuple[Place, str]]:
        """One more connection: its client or its server may be a proxy of one that is alike.

        Or it is that one: address translation leaves TCP's sequence numbers alone. Gives the
        places of what is behind another, with words about both.
        """
        found: list[tuple[Place, str]] = []
        if isn is not None:
            self._translated(found, isn, port, place)
        meet: cython.bint = client in self.servers or server in self.clients
        this: Login = Login(client, server, place, times)
        other: Login
        at: cython.Py_ssize_t
        for at in range(len(self.latest) - 1, -1, -1):
            other = self.latest[at]
            if not meet:
                if abs(this.done_ns - other.done_ns) > _PASSED_ON:
                    break
                if (this.done_ns < other.done_ns) == (this.asked_ns < other.asked_ns):
                    continue  # one login is not within the other
            there = other.place
            if other.server == client or other.client == server:
                if _begin_together(there, place):
                    in_front = other.server == client
                    found.append(_passed_on(there, place) if in_front else _passed_on(place, there))
                    break
            elif client != other.client and server != other.server:
                if this.done_ns < other.done_ns:
                    if _is_passed_on(other.times, times):
                        found.append(_passed_on(there, place))
                elif _is_passed_on(times, other.times):
                    found.append(_passed_on(place, there))
        self._remember(this)
        return found

    def _remember(self, login: Login) -> None:
        one: Login
        self.latest.append(login)
        if len(self.latest) >= 2 * MAX_ALIKE:
            del self.latest[:MAX_ALIKE]
            self.clients, self.servers = set(), set()
            for one in self.latest:
                self.clients.add(one.client)
                self.servers.add(one.server)
        self.clients.add(login.client)
        self.servers.add(login.server)

    def _translated(
        self, found: list[tuple[Place, str]], isn: int, port: int, place: Place
    ) -> None:
        """One more connection that began with a sequence number: its ends may have other names."""
        if len(self.begun) >= 2 * MAX_ALIKE:
            self.begun.clear()
        other_port, there = self.begun.setdefault(isn, (port, place))
        if there is place or not _begin_together(there, place):
            return
        if port == other_port and (there[4] != place[4] or there[5] != place[5]):
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


@cython.cclass
class DoubledConnections:
    """Counts the connections that the capture shows behind another of it: `count`."""

    logins: Any
    known: set[Any]
    count: cython.longlong

    def __init__(self) -> None:
        self.logins = OrderedDict()
        self.known = set()
        self.count = 0

    @cython.ccall
    def opened(self, session: Session) -> None:
        """A connection was opened, where no rule looks at it."""
        connection: Connection = session.connection
        if not isinstance(connection.conversation, Conversation):
            return  # bytes that were fed without packets
        conversation: Conversation = connection.conversation
        client = conversation.a_high, conversation.a_low
        server = conversation.b_high, conversation.b_low
        ends = (client, conversation.a_port), (server, conversation.b_port)
        if connection.client_direction == 1:
            client, server, ends = server, client, (ends[1], ends[0])
        place = (None, None, conversation.start_ns, session.number, ends[0], ends[1])
        login = login_of(session, client, server, place)
        if login is None:
            return
        alike: Logins = self.logins.get(login[0])
        if alike is None:
            if len(self.logins) >= MAX_LOGINS:
                self.logins.popitem(last=False)
            alike = self.logins[login[0]] = Logins()
        for behind, _ in alike.add(*login[1:]):
            self.found(behind[3])

    @cython.ccall
    def found(self, connection: Any) -> None:
        """A connection is behind another: its number or its id."""
        if connection not in self.known:
            self.count += 1
            if len(self.known) < MAX_COUNTED:
                self.known.add(connection)
