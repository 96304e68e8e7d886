# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Rows of the tables `connections`, `channels` and `links`, as mappings of their columns.

A capture may have more connections than anything else, so those that are over are tuples (`Rows`).
"""

from __future__ import annotations

from functools import lru_cache

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Channel, Session

from amqpsniff.clock import SET_BACK_NS
from amqpsniff.decode.json_objects import read_object, table_of, text_of
from amqpsniff.session.method_frame import ALIKE, read
from amqpsniff.spec import peer_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, Any]


_NO_WINDOWS = cython.declare(tuple, (None,) * 6)
_LOGIN = ("vhost", "mechanism")
_PRODUCTS = tuple(
    "client_product client_version client_platform connection_name server_product "
    "server_version".split()
)
_LIMITS = ("channel_max", "frame_max", "heartbeat")
_TLS = ("tls_version", "tls_cipher", "tls_server_name")
_NO_TLS = cython.declare(tuple, (None, None, None))
CONNECTION_COLUMNS = (
    "capture", "connection_id", "client", "server", "first_packet_number", "last_packet_number",
    "start_ns", "end_ns", "protocol", "midstream", "user", "channels", "client_packets",
    "server_packets", "client_bytes", "server_bytes", "published", "delivered", "acknowledged",
    "retransmissions", "gaps", "lost_bytes", "blocked_ns", "closed_by", "close_code", "close_text",
    "close_method", "owed", *_TLS, *_LOGIN, *_PRODUCTS, *_LIMITS, "client_framework",
    "client_application",
)  # fmt: skip
"""Names of the values of a connection; those of packs, at the end, are there only with packs."""

CHANNEL_COLUMNS = (
    "capture", "connection_id", "client", "server", "channel", "incarnation",
    "opened_packet_number", "closed_packet_number", "start_ns", "end_ns", "mode", "prefetch_count",
    "published", "confirmed", "returned", "delivered", "acknowledged", "unsettled_max",
    "unsettled_end", "unconfirmed_max", "unconfirmed_end", "consumers", "closed_by", "close_code",
    "close_text", "close_method", "server_channel", "client_window", "client_window_min",
    "server_window", "server_window_min", "stalled_ns",
)  # fmt: skip
"""Names of the values of a channel."""


class Rows:
    """Final rows of a table, stored as tuples and read as mappings or as columns."""

    def __init__(self, names: Any, rows: Any) -> None:
        self._names = names
        self._rows = rows
        self._columns: Any = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return (dict(zip(self._names, row)) for row in self._rows)  # noqa: B905

    def column(self, name: Any) -> Any:
        """The values of a column."""
        if self._columns is None:
            columns = zip(*self._rows, strict=True) if self._rows else [()] * len(self._names)
            self._columns = dict(zip(self._names, columns))  # noqa: B905
        return self._columns[name]


def channel_values(channel: Channel) -> tuple[Any, ...]:
    """Values of `CHANNEL_COLUMNS` of a channel incarnation that is over."""
    counts_deliveries = channel.counts_deliveries()
    counts_publishes = channel.counts_publishes()
    session: Session = channel.session
    connection: Connection = session.connection
    return (
        channel.capture,
        *connection.name(),
        channel.number,
        channel.incarnation,
        channel.opened_packet_number,
        channel.closed_packet_number,
        channel.start_ns,
        channel.end_ns if _late(channel) else _end(channel.start_ns, channel.end_ns),
        channel.mode,
        channel.prefetch_count,
        channel.published,
        _confirmed(channel, counts_publishes),
        channel.times.returned,
        channel.delivered,
        channel.acknowledged,
        channel.unsettled_max if counts_deliveries else None,
        channel.unsettled if counts_deliveries else None,
        channel.times.unconfirmed_max if counts_publishes else None,
        channel.unconfirmed if counts_publishes else None,
        channel.consumers,
        channel.closed_by,
        channel.close_code,
        channel.close_text,
        channel.close_method,
        *_windows(channel.amqp10),
    )


def _confirmed(channel: Channel, counted: cython.bint) -> Any:
    """Number of confirmed publishes; None if a late beginning may hide all of them."""
    hidden = channel.published and not counted and not channel.known and channel.amqp10 is None
    return channel.times.confirmed or (None if hidden else 0)


def _windows(session: Any) -> tuple[Any, ...]:
    """Columns that only sessions of AMQP 1.0 have."""
    if session is None:
        return _NO_WINDOWS
    windows = session.windows
    return (
        _known(session.server_channel),
        _known(windows.client_size),
        _known(windows.client.least),
        _known(windows.server_size),
        _known(windows.server.least),
        windows.stalled_ns,
    )


def link_row(link: Any, channel: Any) -> Row:
    """The row of a link that is over."""
    address, credit, whole = link.address, link.credit, link.whole and channel.counts_deliveries()
    return {
        "capture": channel.capture,
        **_ends(channel.session.connection),
        "channel": channel.number,
        "incarnation": channel.incarnation,
        "link": link.name,
        "role": "sender" if link.sends else "receiver",
        "client_handle": _known(link.client_handle),
        "server_handle": _known(link.server_handle),
        "attached_packet_number": _known(link.attached_number),
        "detached_packet_number": _known(link.detached_number),
        "start_ns": _time(link.attached_ns),
        "end_ns": _end(_time(link.attached_ns), _time(link.detached_ns) or channel.end_ns),
        "source": link.source,
        "target": link.target,
        "queue": address and address.queue,
        "exchange": address and address.exchange,
        "routing_key": address and address.routing_key,
        "dynamic": link.dynamic,
        "durable": link.durable,
        "expiry_policy": link.expiry_policy,
        "distribution_mode": link.distribution_mode,
        "filter": link.filter,
        "sender_settle_mode": link.sender_mode,
        "receiver_settle_mode": link.receiver_mode,
        "max_message_size": _known(link.limit_bytes),
        "refused": link.refused and not link.deliveries if link.whole else None,
        "deliveries": link.deliveries,
        "accepted": link.accepted,
        "rejected": link.rejected,
        "released": link.released,
        "modified": link.modified,
        "presettled": link.presettled,
        "aborted": link.aborted,
        "unsettled_max": link.unsettled_max if whole else None,
        "unsettled_end": link.unsettled if whole else None,
        "message_bytes": link.bytes,
        "flows": link.flows,
        "drains": link.drains,
        "delivery_count": _known(credit.used),
        "credit_granted": credit.granted,
        "credit_max": _known(credit.most),
        "credit_end": credit.balance,
        "starved_ns": credit.waited_ns,
        "closed_by": link.closed_by,
        "close_condition": link.condition,
        "close_text": link.description,
        "suspended": link.suspended,
    }


def connection_row(session: Session) -> Row:
    """The row of a connection."""
    return dict(zip(CONNECTION_COLUMNS, connection_values(session)))  # noqa: B905


def connection_values(session: Session, packs: Any = None) -> tuple[Any, ...]:
    """Values of `CONNECTION_COLUMNS`; `packs` identify the framework of the client."""
    connection: Connection = session.connection
    conversation = connection.conversation
    tls = conversation.tls
    traffic: tuple[Any, ...] = (None, None, None, None)
    if connection.client_direction >= 0:
        traffic = (*conversation.packets, *(conversation if tls is None else tls).octets)
        if connection.client_direction == 1:
            traffic = (traffic[1], traffic[0], traffic[3], traffic[2])
    arguments: Any = _NO_HANDSHAKE
    if session.handshake:
        arguments = map(session.handshake_json, _HANDSHAKE_METHODS)
    close: tuple[Any, ...] = (None, None, None)
    if session.close is not None:
        close = session.close[:3]
    return (
        session.capture,
        *connection.name(),
        conversation.first_packet_number or None,
        conversation.last_packet_number or None,
        _time(conversation.start_ns),
        _end(_time(conversation.start_ns), _time(conversation.end_ns)),
        connection.dialect_name,
        not connection.began,
        connection.user,
        session.channels_opened,
        *traffic,
        session.published,
        session.delivered,
        session.acknowledged,
        sum(conversation.retransmissions),
        *conversation.holes,
        session.blocked_ns,
        session.closed_by,
        *close,
        session.owed,
        *(_NO_TLS if tls is None else map(tls.columns.get, _TLS)),
        *_handshake_values(*arguments, packs),
    )


def _ends(connection: Any) -> Row:
    """The connection's id and its two ends."""
    connection_id, client, server = connection.name()
    return {"connection_id": connection_id, "client": client, "server": server}


_HANDSHAKE_METHODS = tuple(
    f"connection.{name}" for name in ("start", "start-ok", "open", "tune-ok")
)
_NO_HANDSHAKE = cython.declare(tuple, (None,) * len(_HANDSHAKE_METHODS))


@lru_cache(ALIKE)
def _handshake_values(
    start: bytes | None,
    start_ok: bytes | None,
    opened: bytes | None,
    tune_ok: bytes | None,
    packs: Any,
) -> tuple[Any, ...]:
    """Login, products and limits from the arguments of a handshake; with packs also the framework
    and its application."""
    login, tuned = read_object(start_ok), read(tune_ok)
    client = table_of(login, "client_properties")
    server = table_of(read(start), "server_properties")
    return (
        text_of(read(opened), "virtual_host"),
        text_of(login, "mechanism"),
        *(peer_property(client, name) for name in ("product", "version", "platform")),
        peer_property(client, "connection_name"),
        *(peer_property(server, name) for name in ("product", "version")),
        *(tuned.get(name) for name in _LIMITS),
        *(() if packs is None else packs.client(client)),
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _time(ts_ns: Any) -> int | None:
    return None if ts_ns == NULL or ts_ns <= 0 else ts_ns


def _late(channel: Channel) -> bool:
    """True if a channel was opened behind the close of its connection, which is its end."""
    opened, closed = channel.opened_packet_number, channel.closed_packet_number
    return opened is not None and closed is not None and opened > closed


def _end(start_ns: int | None, end_ns: int | None) -> int | None:
    """The time of an end; None where the clock was set back before it."""
    if start_ns is None or end_ns is None or start_ns - end_ns < SET_BACK_NS:
        return end_ns
    return None
