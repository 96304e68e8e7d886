# cython: language_level=3, boundscheck=True, nonecheck=True
"""The two sides of a connection: addresses, names, and handshake arguments."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address
from typing import Any

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.codes import SERVER
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext

from amqpsniff.decode.json_objects import table_of
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import ALIKE, MAX_READ_BYTES, read
from amqpsniff.spec import PEER_PROPERTIES, peer_property

MAX_CLIENTS = 1_024
"""Different clients that are remembered, in some 2 MB."""

MAX_START_OK_BYTES = 8_192
"""Length of the arguments of start-ok of a client that is remembered: no library says as much."""


@cython.cclass
class Client:
    """The client of one or many connections: its host and user at a server, and its properties.

    Attributes:
        host: Its address without a port; empty if unknown.
        server: The server's address and port; empty if unknown.
        server_host: Its address alone.
        user: The user name of the login; None while unknown.
        key: The identity of the client: host, server and user.
        start_ok: The arguments of connection.start-ok; None if not captured.
        on_network: True if the network can read its traffic: no TLS, and not within one host.
        texts: Its properties that are texts, in the order of `PEER_PROPERTIES`.
        first: The number of its first connection.
        verdicts: The results of judges; see `shared_state.Alike`. None before its second
            connection: tens of thousands of clients may have one connection each.
        churn: Its connections that did next to nothing (`churn._Churn`), once there is a finding.
        short: The finding that counts connections of PHP that were short; None before it is raised.
    """

    host: str
    server: str
    server_host: str
    user: str | None
    key: tuple[str, str, str | None]
    start_ok: bytes | None
    on_network: cython.bint
    texts: tuple[str | None, ...]
    first: cython.int
    verdicts: dict[Any, Any] | None
    churn: Any
    short: Any

    def __init__(self, known: tuple[Any, ...], first: int) -> None:
        self.host, self.server, self.user, self.start_ok, encrypted = known
        self.key, self.first = known[:3], first
        self.server_host = host_of(self.server)
        self.on_network = not encrypted and _is_between_hosts(self.host, self.server_host)
        self.verdicts = self.churn = self.short = None
        short = self.start_ok is not None and len(self.start_ok) <= MAX_READ_BYTES
        self.texts = (_texts_alike if short else _texts)(self.start_ok)

    def text(self, name: str) -> str | None:
        """A text of its properties; None if it is missing, empty or not a text."""
        return self.texts[_PROPERTIES[name]]

    @property
    def words(self) -> str:
        """The client as text: user, product and host."""
        return client_words(self.user, self.application, self.host)

    @property
    def application(self) -> str:
        """The name that it gives itself: its connection's, else its product; may be empty."""
        return self.texts[_NAME] or self.texts[_PRODUCT] or ""


def _texts(start_ok: bytes | None) -> tuple[str | None, ...]:
    """The texts of a client's properties."""
    properties = table_of(read(start_ok), "client_properties")
    return tuple(peer_property(properties, name) or None for name in PEER_PROPERTIES)


_texts_alike = lru_cache(ALIKE)(_texts)


@cython.ccall
def client_of(context: RuleContext) -> Client:
    """The client of a context's connection: one object for connections that are alike.

    A connection remembers its client only if that has connected before. Of a client with one
    connection the object may be forgotten, and made again: tens of thousands may be open.
    """
    session: Session = context.session
    if session.client is not None:
        return session.client
    shared: dict[Any, Any] = context.shared
    client: Client
    of_session, client = shared.get("client", _NOBODY)
    if of_session is session:
        return client
    connection: Connection = session.connection
    start_ok = session.handshake_json("connection.start-ok")
    _, end, server = connection.name()
    key = (
        host_of(end),
        server or "",
        connection.user,
        start_ok,
        connection.conversation.tls is not None,
    )
    clients: dict[Any, Any] = shared.setdefault("clients", {})
    client = clients.get(key)
    if client is None:
        client = Client(key, session.number)
        if len(start_ok or b"") <= MAX_START_OK_BYTES:
            if len(clients) >= MAX_CLIENTS:
                clients.clear()
            clients[key] = client
    elif client.verdicts is None and client.first != session.number:
        client.verdicts = {}
    if start_ok is not None:
        if client.verdicts is None:
            shared["client"] = session, client
        else:
            session.client = client
    return client


_NOBODY = None, None


def handshake(context: RuleContext, method: str) -> dict[str, Any]:
    """Arguments of a method of the handshake; empty when it was not captured."""
    return read(context.session.handshake_json(method))


def vhost_of(context: RuleContext) -> str | None:
    """The virtual host of a context's connection; None while unknown."""
    session: Session = context.session
    opened = session.handshake.get("connection.open")
    return None if opened is None else _vhost_in(opened.json)


@lru_cache(ALIKE)
def _vhost_in(opened: bytes | None) -> str | None:
    vhost = read(opened).get("virtual_host")
    return vhost if isinstance(vhost, str) else None


_PROPERTIES = {name: place for place, name in enumerate(PEER_PROPERTIES)}
_NAME, _PRODUCT = _PROPERTIES["connection_name"], _PROPERTIES["product"]


def client_words(user: str | None, name: str, host: str) -> str:
    """A client that logged in as a user, calls itself by a name, and has an address."""
    who = f"user '{user}'" if user else "a client"
    if name:
        who += f" ({name})"
    return f"{who} from {host}" if host else who


def rabbitmq_release(context: RuleContext) -> tuple[int, int]:
    """The first two numbers of the version of a RabbitMQ; (0, 0) for another broker."""
    return _release(context.session.handshake_json("connection.start"))


@lru_cache(ALIKE)
def _release(start: bytes | None) -> tuple[int, int]:
    server = table_of(read(start), "server_properties")
    is_rabbitmq = peer_property(server, "product") == "RabbitMQ"
    return release(peer_property(server, "version")) if is_rabbitmq else (0, 0)


def ender(context: RuleContext) -> int | None:
    """The side that ended TCP first (0: the client); None if neither did, or if unknown.

    The other side's acknowledgement shows a FIN that was not captured, which may be the first.
    """
    connection = context.session.connection
    tcp, client = connection.conversation, connection.client_direction
    if tcp.ended is None or client < 0:
        return None
    if _has_acked_fin(tcp, 1 - tcp.ended_by):
        return None
    return int(tcp.ended_by ^ client)


def _has_acked_fin(tcp: Any, direction: int) -> bool:
    """True if the other side acknowledged a FIN of a direction."""
    read = tcp.octets[direction] + tcp.lost_bytes[direction] + tcp.cut_bytes[direction]
    return bool(tcp.acked[direction] == read + 1)


FORGOTTEN_NS = SECOND_NS
"""Silence of a side before the RST with which its end shows that it knows no such connection: less
is what a firewall rule that is set in the middle of traffic looks like."""


def forgotten(context: RuleContext) -> tuple[int, int] | None:
    """(side, its silence before) if TCP ended with a RST as of a host without such a connection."""
    session, client = context.session, context.session.connection.client_direction
    conversation = session.connection.conversation
    if client < 0 or not conversation.reset_by_stranger:
        return None
    if any(_has_acked_fin(conversation, direction) for direction in (0, 1)):
        return None
    side = int(conversation.ended_by ^ client)
    last = (session.last_client_ns, session.last_server_ns)
    silence, others = (conversation.ended_ns - last[one] for one in (side, 1 - side))
    if min(last) <= 0 or silence < FORGOTTEN_NS or others >= silence:
        return None
    return side, silence


def ended_by_server(context: RuleContext) -> bool:
    """True if the server ended TCP first."""
    return ender(context) == SERVER


def end_ns(context: RuleContext) -> int | None:
    """Time of a connection's last packet; None if packets have no times, or if the clock was set
    back to before the first.
    """
    conversation = context.session.connection.conversation
    time: int = conversation.end_ns
    return time if time > 0 and time >= conversation.start_ns else None


def over_ns(context: RuleContext) -> int | None:
    """Time at which a side ended TCP, after which it sends no frames; `end_ns` if that is unknown.

    The other side's packets may come long after a FIN.
    """
    now, tcp = end_ns(context), context.session.connection.conversation
    if now is None or ender(context) is None or tcp.ended_ns < tcp.start_ns:
        return now
    return int(min(now, tcp.ended_ns))


def last_packets_ns(context: RuleContext) -> tuple[int, int]:
    """Times of the last packets of client and broker."""
    connection: Connection = context.session.connection
    first, second = connection.conversation.last_times_ns
    return (first, second) if connection.client_direction == 0 else (second, first)


def began_ns(context: RuleContext) -> int | None:
    """Time of a connection's first packet; None if it was not captured or has no time."""
    connection = context.session.connection
    time: int = connection.conversation.start_ns
    return time if connection.began and time > 0 else None


@cython.ccall
def host_of(end: str | None) -> str:
    """The address of an address and port; empty if unknown."""
    return "" if not end else end.rpartition(":")[0].strip("[]")


def _is_between_hosts(client: str, server: str) -> bool:
    if not client or not server or client == server:
        return False
    return not (_is_loopback(server) and _is_loopback(client))


@lru_cache(ALIKE)
def _is_loopback(host: str) -> bool:
    if ":" not in host and not host.startswith("127."):
        return False  # most are: an address takes long to read
    try:
        address = ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def release(version: Any) -> tuple[int, int]:
    """The first two numbers of a version; (0, 0) when it has none."""
    parts = str(version).split(".")[:2] if isinstance(version, str) else []
    numbers = [int(part) for part in parts if part.isascii() and part.isdigit() and len(part) < 9]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)
