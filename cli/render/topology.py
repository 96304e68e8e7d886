"""The topology as sections of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from amqpsniff.units import UNKNOWN, count, octets
from amqpsniff.wire_text import exchange_name, harmless, named

from .grid import Column, Grid, table
from .styled_text import Words

KEYS_SHOWN = 3


def sections(result: Mapping[str, Any]) -> Iterator[Grid | Words]:
    """Everything, in the order in which messages go."""
    several = len({row["vhost"] for name in COLUMNS for row in result[name]}) > 1
    first = True
    for name, columns in COLUMNS.items():
        if rows := result[name]:
            every = result[f"{name[:-1]}_count"]
            title = name + (f" ({len(rows)} of {count(every)})" if len(rows) < every else "")
            yield Words(title if first else f"\n{title}", "heading")
            yield table(rows, *(VHOST if several else ()), *columns)
            first = False
    if result["forgotten"]:
        yield Words("\nnames that are rarely used were forgotten: there were too many", "warning")


def _flags(*names: str) -> Column:
    """What is known to be so, in words."""

    def write(row: dict[str, Any]) -> str:
        if not row["declared"]:
            return ""
        words = ["transient"] if row["durable"] is False else []
        return " ".join(words + [name.replace("_", "-") for name in names if row[name]])

    return "flags", "", write


def arguments_text(arguments: Any) -> str:
    """Arguments of a declaration as JSON; empty where there are none."""
    return harmless(json.dumps(arguments, ensure_ascii=False)) if arguments else ""


def _keys(row: dict[str, Any]) -> str:
    keys = " ".join(named(key) for key in row["routing_keys"][:KEYS_SHOWN])
    number = row["routing_key_count"]
    if number is None:
        return f"{keys} …"
    return keys + (f" … {count(number)} in all" if number > KEYS_SHOWN else "")


def _type(row: dict[str, Any]) -> str:
    """The type of an exchange; that of the default one is fixed (0-9-1 §3.1.3.1)."""
    if row["exchange"] == "":
        return "direct"
    return harmless(row["type"]) if row["type"] else UNKNOWN


VHOST = (("*vhost", "vhost", named),)
_CLIENT = (("*client", "name", named), ("?*host", "host", named))
_EXCHANGE = ("*exchange", "exchange", exchange_name)
_QUEUE = ("*queue", "queue", named)
_ARGUMENTS = ("?*arguments", "arguments", arguments_text)
_PUBLISHED = ((">published", "published", count), (">bytes", "bytes", octets))
_DELIVERED = ((">delivered", "delivered", count), (">bytes", "bytes", octets))

COLUMNS: dict[str, tuple[Column, ...]] = {
    "publishers": (*_CLIENT, _EXCHANGE, ("*routing keys", "", _keys), *_PUBLISHED),
    "exchanges": (
        _EXCHANGE,
        ("type", "", _type),
        _flags("durable", "auto_delete", "internal", "removed"),
        _ARGUMENTS,
        *_PUBLISHED,
    ),
    "bindings": (
        _EXCHANGE,
        ("to", "destination_type", str),
        ("*destination", "destination", named),
        ("*routing key", "routing_key", named),
        _ARGUMENTS,
        ("flags", "removed", lambda removed: "removed" if removed else ""),
    ),
    "queues": (
        _QUEUE,
        _flags("durable", "exclusive", "auto_delete", "server_named", "removed"),
        _ARGUMENTS,
        *_DELIVERED,
    ),
    "consumers": (
        *_CLIENT,
        _QUEUE,
        (">consumers", "consumers", count),
        (">prefetch", "prefetch_count", count),
        ("?acknowledges", "no_ack", {None: UNKNOWN, True: "no", False: "yes"}.__getitem__),
        *_DELIVERED,
    ),
}
"""Columns of each section."""
