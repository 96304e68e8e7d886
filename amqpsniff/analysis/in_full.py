"""Frames and messages in full: fields by name.

A value is one of JSON, or a `Raw` text in our words.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.one_line import outcome_text, status, waits_in_vain
from amqpsniff.analysis.times import exact
from amqpsniff.units import duration, octets
from amqpsniff.wire_text import ends

if TYPE_CHECKING:
    from amqpsniff.analysis.timeline import Entry


PROPERTIES = (
    "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "message_timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
"""Columns of messages that are properties of the content."""

MESSAGE_COLUMNS = (
    "method", "last_packet_number", "exchange", "routing_key", "queue", "consumer_tag",
    "delivery_tag", "reply_code", "reply_text", "redelivered", "mandatory", "immediate",
    *PROPERTIES, "headers", "body_size", "body_captured", "status", "publish_number", "outcome",
    "outcome_packet_number", "outcome_ns",
)  # fmt: skip
"""The columns of messages that are shown."""

_PROPERTY_NAMES = {"message_timestamp": "timestamp"}
_MODES = {1: "1 (transient)", 2: "2 (persistent)"}


class Raw(str):
    """A text of our own, which is not quoted."""

    __slots__ = ()


def frame_fields(entry: Entry) -> dict[str, Any]:
    """A frame, and the message that it opens."""
    fields: dict[str, Any] = {"connection": _connection(entry), "frame": Raw(_frame(entry))}
    if entry.ts_ns is not None:
        fields["time"] = Raw(exact(entry.ts_ns))
    if entry.method is not None:
        fields["arguments"] = entry.arguments or Raw("none")
        if reply := _reply(entry):
            fields["reply"] = Raw(reply)
    if entry.message is not None:
        fields |= _content(entry.message)
    return fields


def message_fields(message: dict[str, Any]) -> dict[str, Any]:
    """A message with the columns of its connection and `MESSAGE_COLUMNS`."""
    return {"connection": _connection(SimpleNamespace(**message)), **_content(message)}


def _content(message: dict[str, Any]) -> dict[str, Any]:
    """The properties, headers and body of a message, from its columns."""
    properties: dict[str, Any] = {}
    for name in PROPERTIES:
        value = message[name]
        if name == "delivery_mode" and value in _MODES:
            value = Raw(_MODES[value])
        if value is not None:
            properties[_PROPERTY_NAMES.get(name, name)] = value
    annotations = json.loads(message.get("annotations") or "{}")
    properties |= annotations.pop("properties", {})
    fields: dict[str, Any] = {"properties": properties or Raw("none")}
    if message["headers"] is not None:
        fields["headers"] = json.loads(message["headers"]) or Raw("none")
    if annotations:
        fields["annotations"] = annotations
    fields["body"] = Raw(_body(message))
    if message["publish_number"] is not None:
        fields["publish_number"] = message["publish_number"]
    outcome = outcome_text(message)
    if outcome is not None:
        fields["outcome"] = Raw(outcome)
    return fields


def _reply(entry: Entry) -> str:
    """The reply of a request; nothing for other methods."""
    if entry.response_packet_number is not None:
        after = "" if entry.response_ns is None else f" after {duration(entry.response_ns)}"
        return f"in packet {entry.response_packet_number}{after}"
    return "none in the capture" if waits_in_vain(entry, entry.arguments or {}) else ""


def _connection(row: Any) -> Raw:
    return Raw(f"{row.connection_id} {ends(row.client, row.server)}")


def _frame(entry: Entry) -> str:
    sender = f"the {entry.sender}'s stream" if entry.sender else "a stream"
    size = octets(entry.size) if entry.size < 1000 else f"{entry.size:,} B"
    return f"{entry.frame_type}, {size} at offset {entry.stream_offset:,} of {sender}"


def _body(message: dict[str, Any]) -> str:
    size, captured = message["body_size"], message["body_captured"]
    if size is None:
        return f"of unknown size, {message['status']}"
    text = f"{size:,} B, {status(message)}"
    if message["last_packet_number"] is not None:
        text += f", ends in packet {message['last_packet_number']}"
    return text if captured is not None else f"{text}, nothing captured"
