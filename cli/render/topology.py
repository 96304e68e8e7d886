"""The topology as sections of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from amqpsniff.units import UNKNOWN, count, octets
from amqpsniff.wire_text import exchange_name, harmless, named

from .grid import Grid
from .styled_text import Words

SECTIONS = ("publishers", "exchanges", "bindings", "queues", "consumers")
KEYS_SHOWN = 3


def sections(result: Mapping[str, Any]) -> Iterator[Grid | Words]:
    """Everything, in the order in which messages go."""
    several = len({row["vhost"] for name in SECTIONS for row in result[name]}) > 1
    first = True
    for name in SECTIONS:
        if result[name]:
            shown, every = len(result[name]), result[f"{name[:-1]}_count"]
            title = name + (f" ({shown} of {count(every)})" if shown < every else "")
            yield Words(title if first else f"\n{title}", "heading")
            yield _BUILDERS[name](result[name], several)
            first = False
    if result["forgotten"]:
        yield Words("\nnames that are rarely used were forgotten: there were too many", "warning")


def _grid(columns: str, several: bool) -> Grid:
    return Grid(("*vhost|" if several else "") + columns)


def _where(row: dict[str, Any], several: bool) -> list[str]:
    return [named(row["vhost"])] if several else []


def _flags(row: dict[str, Any], *names: str) -> str:
    """What is known to be so, in words."""
    if not row["declared"]:
        return ""
    words = [name.replace("_", "-") for name in names if row[name]]
    if row["durable"] is False:
        words.insert(0, "transient")
    return " ".join(words)


def _arguments(arguments: Any) -> str:
    return harmless(json.dumps(arguments, ensure_ascii=False)) if arguments else ""


def _client(row: dict[str, Any]) -> list[str]:
    return [named(row["name"]), named(row["host"])]


def _publishers(rows: list[dict[str, Any]], several: bool) -> Grid:
    table = _grid("*client|?*host|*exchange|*routing keys|>published|>bytes", several)
    for row in rows:
        keys = " ".join(named(key) for key in row["routing_keys"][:KEYS_SHOWN])
        number = row["routing_key_count"]
        if number is None or number > KEYS_SHOWN:
            keys += " …" if number is None else f" … {count(number)} in all"
        table.add(
            *_where(row, several),
            *_client(row),
            exchange_name(row["exchange"]),
            keys,
            count(row["published"]),
            octets(row["bytes"]),
        )
    return table


def _exchanges(rows: list[dict[str, Any]], several: bool) -> Grid:
    table = _grid("*exchange|type|flags|?*arguments|>published|>bytes", several)
    for row in rows:
        table.add(
            *_where(row, several),
            exchange_name(row["exchange"]),
            _type(row),
            _flags(row, "durable", "auto_delete", "internal", "removed"),
            _arguments(row["arguments"]),
            count(row["published"]),
            octets(row["bytes"]),
        )
    return table


def _type(row: dict[str, Any]) -> str:
    """The type of an exchange; that of the default one is fixed (0-9-1 §3.1.3.1)."""
    if row["exchange"] == "":
        return "direct"
    return harmless(row["type"]) if row["type"] else UNKNOWN


def _bindings(rows: list[dict[str, Any]], several: bool) -> Grid:
    table = _grid("*exchange|to|*destination|*routing key|?*arguments|flags", several)
    for row in rows:
        table.add(
            *_where(row, several),
            exchange_name(row["exchange"]),
            row["destination_type"],
            named(row["destination"]),
            named(row["routing_key"]),
            _arguments(row["arguments"]),
            "removed" if row["removed"] else "",
        )
    return table


def _queues(rows: list[dict[str, Any]], several: bool) -> Grid:
    table = _grid("*queue|flags|?*arguments|>delivered|>bytes", several)
    for row in rows:
        table.add(
            *_where(row, several),
            named(row["queue"]),
            _flags(row, "durable", "exclusive", "auto_delete", "server_named", "removed"),
            _arguments(row["arguments"]),
            count(row["delivered"]),
            octets(row["bytes"]),
        )
    return table


def _consumers(rows: list[dict[str, Any]], several: bool) -> Grid:
    table = _grid(
        "*client|?*host|*queue|>consumers|>prefetch|?acknowledges|>delivered|>bytes", several
    )
    for row in rows:
        acknowledges = {None: UNKNOWN, True: "no", False: "yes"}[row["no_ack"]]
        table.add(
            *_where(row, several),
            *_client(row),
            named(row["queue"]),
            count(row["consumers"]),
            count(row["prefetch_count"]),
            acknowledges,
            count(row["delivered"]),
            octets(row["bytes"]),
        )
    return table


_BUILDERS = {
    "publishers": _publishers,
    "exchanges": _exchanges,
    "bindings": _bindings,
    "queues": _queues,
    "consumers": _consumers,
}
