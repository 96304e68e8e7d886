"""Everything about a frame or a message, one field a line, indented under its line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from amqpsniff.analysis.one_line import base64_of, links, outcome_text, status
from amqpsniff.analysis.times import exact
from amqpsniff.units import octets
from amqpsniff.wire_text import harmless, quoted, word

from .text import Paint, cells

if TYPE_CHECKING:
    from amqpsniff.analysis.timeline import Entry


INDENT = "    "

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


def entry_tree(entry: Entry, paint: Paint) -> Iterator[str]:
    """A frame in full, and the message that it opens."""
    fields: dict[str, Any] = {"connection": _connection(entry), "frame": Raw(_frame(entry))}
    if entry.ts_ns is not None:
        fields["time"] = Raw(exact(entry.ts_ns))
    arguments = entry.arguments or {}
    if entry.method is not None:
        fields["arguments"] = arguments or Raw("none")
        fields |= {name: Raw(text) for name, text in links(entry).items()}
    if entry.message is not None:
        fields |= message_fields(entry.message)
    return tree(fields, paint)


def message_tree(message: dict[str, Any], paint: Paint) -> Iterator[str]:
    """A message in full."""
    place = SimpleNamespace(**message)
    return tree({"connection": _connection(place), **message_fields(message)}, paint)


def message_fields(message: dict[str, Any]) -> dict[str, Any]:
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


def tree(fields: dict[str, Any], paint: Paint, depth: int = 2) -> Iterator[str]:
    """Names and values, tables and lists under their name."""
    width = max((cells(harmless(name)) for name in fields), default=0)
    for name, value in fields.items():
        key = word(name) if depth > 2 else harmless(name)
        children = _children(value)
        if children is None:
            gap = " " * (width - cells(key) + 1)
            yield f"{INDENT * depth}{paint('key', key)}{gap}{_leaf(value)}"
        else:
            yield f"{INDENT * depth}{paint('key', key)}"
            yield from tree(children, paint, depth + 1)


class Raw(str):
    """A text of our own, which is not quoted."""

    __slots__ = ()


def _children(value: Any) -> dict[str, Any] | None:
    """What is below a name; null for a value that fits its line."""
    if isinstance(value, dict) and value and base64_of(value) is None:
        return value
    if isinstance(value, list) and value:
        return {str(index): one for index, one in enumerate(value)}
    return None


def _leaf(value: Any) -> str:
    if isinstance(value, Raw):
        return value
    if isinstance(value, str):
        return quoted(harmless(value))
    if isinstance(value, dict):
        text = base64_of(value)
        return "{}" if text is None else f"base64 {word(text)}"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return json.dumps(value)


def _connection(row: Any) -> Raw:
    return Raw(f"{row.connection_id} {row.client or '?'} → {row.server or '?'}")


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
