"""Captures as events: what the engine decoded of them, for the reference to make rows of."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

import amqpsniff
from tests.session.comparing import FRAMES, MESSAGES
from tests.session.connecting import CHANNEL, CONNECTION
from tests.session.events import DEFINED, Event, Row, Rows

PROPERTIES = (
    "content_type content_encoding headers delivery_mode priority correlation_id reply_to "
    "expiration message_id message_timestamp type user_id app_id cluster_id"
).split()


def events_of(path: Path) -> list[Event]:
    """Methods of a capture without losses, by packet; what TCP has to say is left out."""
    frames, messages = _read(path, "frames"), _read(path, "messages")
    contents: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in messages:
        contents[_place(row)].append(row)
    events = []
    for row in sorted(frames, key=lambda row: row["packet_number"]):
        name = row["method"]
        if name not in DEFINED:
            continue
        body, properties = None, {}
        if DEFINED[name].content and contents[_place(row)]:
            message = contents[_place(row)].pop(0)
            body = b"x" * (message["body_size"] or 0)
            properties = {each: message[each] for each in PROPERTIES}
        given = json.loads(row["arguments"])
        if given.get("mechanism") == "AMQPLAIN":
            given["response"] = _login(given["response"])
        place = (row["packet_number"], row["ts_ns"], row["connection_id"])
        events.append(Event(*place, row["sender"], row["channel"], name, given, body, properties))
    return events


def rows_of(path: Path) -> Rows:
    """What the engine says of a capture, to compare with the reference: see `comparable`."""
    frames = [row for row in _chosen(path, "frames", FRAMES) if row["method"] in DEFINED]
    spoken = {row["connection"] for row in frames}
    connections = _chosen(path, "connections", ["midstream", "protocol", *CONNECTION])
    return comparable(
        Rows(
            frames,
            _chosen(path, "messages", MESSAGES),
            _chosen(path, "channels", ["channel", "incarnation", *CHANNEL]),
            [row for row in connections if row["connection"] in spoken],
        )
    )


def comparable(rows: Rows) -> Rows:
    """The rows without what depends on the dialect, on FIN, RST and the last packet."""
    for row in (*rows.channels, *rows.connections):
        if row["closed_by"] in ("fin", "rst"):
            row["closed_by"] = None
    for row in rows.connections:
        del row["protocol"], row["blocked_ns"]
    return rows


def _read(path: Path, table: str) -> list[Row]:
    rows: list[Row] = amqpsniff.open(path, show_secrets=True).table(table).to_pylist()
    return rows


def _chosen(path: Path, table: str, columns: Any) -> list[Row]:
    return [
        {"connection": row["connection_id"], **{name: row[name] for name in columns}}
        for row in _read(path, table)
    ]


def _place(row: Row) -> tuple[Any, ...]:
    return row["connection_id"], row["packet_number"], row["channel"], row["method"]


def _login(response: str | dict[str, str]) -> dict[str, str]:
    """The name in an AMQPLAIN response."""
    octets = response.encode() if isinstance(response, str) else b""
    at = octets.find(b"\x05LOGINS")
    if at < 0:
        return {}
    (length,) = struct.unpack_from(">I", octets, at + 7)
    return {"LOGIN": octets[at + 11 : at + 11 + length].decode()}
