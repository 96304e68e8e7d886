"""Rows of the tables `connections` and `channels`, as mappings of their columns."""

from __future__ import annotations

from typing import Any

from amqpsniff.columns import NULL
from amqpsniff.decode.json_objects import read_object
from amqpsniff.spec import peer_property

Row = dict[str, Any]

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
    }


def connection_row(session: Any, dialect: str | None) -> Row:
    """The row of a connection that is over."""
    conversation = session.peer.conversation
    direction = session.peer.client_direction
    client = 1 if direction == 1 else 0
    packets, tls = conversation.packets, conversation.tls
    octets = conversation.octets if tls is None else tls.octets
    sides_known = direction >= 0
    facts = {name: read_object(known.json) for name, known in session.handshake.items()}
    return {
        "capture": session.capture,
        **_ends(session.peer),
        "first_packet_number": conversation.first_packet_number or None,
        "last_packet_number": conversation.last_packet_number or None,
        "start_ns": _time(conversation.start_ns),
        "end_ns": _time(conversation.end_ns),
        "protocol": dialect,
        "midstream": not session.peer.began,
        **_login(facts),
        "user": session.peer.user,
        **_products(facts),
        **_tuning(facts),
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
        **(_NO_TLS if tls is None else tls.columns),
    }


def _ends(peer: Any) -> Row:
    """The connection's id and its two ends."""
    connection_id, client, server = peer.name()
    return {"connection_id": connection_id, "client": client, "server": server}


def _login(facts: dict[str, Row]) -> Row:
    start_ok = facts.get("connection.start-ok", {})
    opened = facts.get("connection.open", {})
    return {
        "vhost": _text(opened, "virtual_host"),
        "mechanism": _text(start_ok, "mechanism"),
    }


def _products(facts: dict[str, Row]) -> Row:
    client = _table(facts.get("connection.start-ok", {}), "client_properties")
    server = _table(facts.get("connection.start", {}), "server_properties")
    return {
        "client_product": peer_property(client, "product"),
        "client_version": peer_property(client, "version"),
        "client_platform": peer_property(client, "platform"),
        "connection_name": peer_property(client, "connection_name"),
        "server_product": peer_property(server, "product"),
        "server_version": peer_property(server, "version"),
    }


def _tuning(facts: dict[str, Row]) -> Row:
    tuned = facts.get("connection.tune-ok", {})
    return {name: tuned.get(name) for name in ("channel_max", "frame_max", "heartbeat")}


def _table(arguments: Row, name: str) -> Row:
    value = arguments.get(name)
    return value if isinstance(value, dict) else {}


def _text(arguments: Row, name: str) -> str | None:
    value = arguments.get(name)
    return value if isinstance(value, str) else None


def _time(ts_ns: int) -> int | None:
    return None if ts_ns == NULL or ts_ns <= 0 else ts_ns
