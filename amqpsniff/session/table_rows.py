"""Rows of the tables `connections`, `channels` and `links`, as mappings of their columns."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from amqpsniff.columns import NULL
from amqpsniff.decode.json_objects import read_object
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.spec import peer_property

Row = dict[str, Any]

_NO_WINDOWS = dict.fromkeys(
    "server_channel client_window client_window_min server_window server_window_min "
    "stalled_ns".split()
)
_NO_TLS = dict.fromkeys(("tls_version", "tls_cipher", "tls_server_name"))


def channel_row(channel: Any) -> Row:
    """The row of a channel incarnation that is over."""
    counts_deliveries = channel.counts_deliveries()
    counts_publishes = channel.counts_publishes()
    return {
        "capture": channel.capture,
        **_ends(channel.session.peer),
        "channel": channel.number,
        "incarnation": channel.incarnation,
        "opened_packet_number": channel.opened_packet_number,
        "closed_packet_number": channel.closed_packet_number,
        "start_ns": channel.start_ns,
        "end_ns": channel.end_ns,
        "mode": channel.mode,
        "prefetch_count": channel.prefetch_count,
        "published": channel.published,
        "confirmed": channel.confirmed,
        "returned": channel.returned,
        "delivered": channel.delivered,
        "acknowledged": channel.acknowledged,
        "unsettled_max": channel.unsettled_max if counts_deliveries else None,
        "unsettled_end": channel.unsettled if counts_deliveries else None,
        "unconfirmed_max": channel.unconfirmed_max if counts_publishes else None,
        "unconfirmed_end": channel.unconfirmed if counts_publishes else None,
        "consumers": channel.consumers,
        "closed_by": channel.closed_by,
        "close_code": channel.close_code,
        "close_text": channel.close_text,
        "close_method": channel.close_method,
        **_windows(channel.amqp10),
    }


def _windows(session: Any) -> Row:
    """Columns that only sessions of AMQP 1.0 have."""
    if session is None:
        return dict(_NO_WINDOWS)
    windows = session.windows
    return {
        "server_channel": _known(session.server_channel),
        "client_window": _known(windows.client_size),
        "client_window_min": _known(windows.client.least),
        "server_window": _known(windows.server_size),
        "server_window_min": _known(windows.server.least),
        "stalled_ns": windows.stalled_ns,
    }


def link_row(link: Any, channel: Any) -> Row:
    """The row of a link that is over."""
    address, credit, whole = link.address, link.credit, link.whole and channel.counts_deliveries()
    return {
        "capture": channel.capture,
        **_ends(channel.session.peer),
        "channel": channel.number,
        "incarnation": channel.incarnation,
        "link": link.name,
        "role": "sender" if link.sends else "receiver",
        "client_handle": _known(link.client_handle),
        "server_handle": _known(link.server_handle),
        "attached_packet_number": _known(link.attached_number),
        "detached_packet_number": _known(link.detached_number),
        "start_ns": _time(link.attached_ns),
        "end_ns": _time(link.detached_ns) or channel.end_ns,
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


def connection_row(session: Any, dialect: str | None, packs: Any = None) -> Row:
    """The row of a connection that is over; `packs` say of which framework its client is."""
    conversation = session.peer.conversation
    direction = session.peer.client_direction
    client = 1 if direction == 1 else 0
    packets, tls = conversation.packets, conversation.tls
    octets = conversation.octets if tls is None else tls.octets
    sides_known = direction >= 0
    login, products, tuning = _said(*map(session.handshake_json, _SAID), packs)
    return {
        "capture": session.capture,
        **_ends(session.peer),
        "first_packet_number": conversation.first_packet_number or None,
        "last_packet_number": conversation.last_packet_number or None,
        "start_ns": _time(conversation.start_ns),
        "end_ns": _time(conversation.end_ns),
        "protocol": dialect,
        "midstream": not session.peer.began,
        **login,
        "user": session.peer.user,
        **products,
        **tuning,
        "channels": session.channels_opened,
        "client_packets": packets[client] if sides_known else None,
        "server_packets": packets[1 - client] if sides_known else None,
        "client_bytes": octets[client] if sides_known else None,
        "server_bytes": octets[1 - client] if sides_known else None,
        "published": session.published,
        "delivered": session.delivered,
        "acknowledged": session.acknowledged,
        "retransmissions": sum(conversation.retransmissions),
        "gaps": sum(conversation.gaps),
        "lost_bytes": sum(conversation.lost_bytes),
        "blocked_ns": session.blocked_ns,
        "closed_by": session.closed_by,
        "close_code": session.close_code,
        "close_text": session.close_text,
        "close_method": session.close_method,
        "owed": session.owed,
        **(_NO_TLS if tls is None else tls.columns),
    }


def _ends(peer: Any) -> Row:
    """The connection's id and its two ends."""
    connection_id, client, server = peer.name()
    return {"connection_id": connection_id, "client": client, "server": server}


_read = lru_cache(ALIKE)(read_object)
_SAID = ("connection.start", "connection.start-ok", "connection.open", "connection.tune-ok")


@lru_cache(ALIKE)
def _said(
    start: bytes | None,
    start_ok: bytes | None,
    opened: bytes | None,
    tune_ok: bytes | None,
    packs: Any,
) -> tuple[Row, Row, Row]:
    """What the arguments of a handshake tell: the login, the products, and the limits."""
    told, tuned = read_object(start_ok), _read(tune_ok)
    client = _table(told, "client_properties")
    server = _table(_read(start), "server_properties")
    login = {
        "vhost": _text(_read(opened), "virtual_host"),
        "mechanism": _text(told, "mechanism"),
    }
    products = {
        "client_product": peer_property(client, "product"),
        "client_version": peer_property(client, "version"),
        "client_platform": peer_property(client, "platform"),
        "connection_name": peer_property(client, "connection_name"),
        "server_product": peer_property(server, "product"),
        "server_version": peer_property(server, "version"),
    }
    if packs is not None:
        framework, application = packs.client(client)
        products |= {"client_framework": framework, "client_application": application}
    limits = {name: tuned.get(name) for name in ("channel_max", "frame_max", "heartbeat")}
    return login, products, limits


def _table(arguments: Row, name: str) -> Row:
    value = arguments.get(name)
    return value if isinstance(value, dict) else {}


def _text(arguments: Row, name: str) -> str | None:
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _time(ts_ns: int) -> int | None:
    return None if ts_ns == NULL or ts_ns <= 0 else ts_ns
