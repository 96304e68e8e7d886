"""`amqpsniff topology`: who publishes where, what is bound to what, and who consumes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from amqpsniff.analysis.graph import WRITERS
from amqpsniff.units import UNKNOWN, count, octets, plural
from amqpsniff.wire_text import harmless, named

from .files import write_text
from .options import Input, Scope, at_least, spread
from .output import write_answer
from .reading import Reading
from .render.grid import EXCHANGE, QUEUE, ROUTING_KEY, Column, Grid, several_vhosts, table
from .render.text import Words

GRAPHS = ("dot", "mermaid")
FORMATS = ("text", *GRAPHS, "json")
TOP = 20
"""Default rows of a section and edges of a kind: as many as one can still look at."""


@spread("""
    Output:
        -n --limit N: Rows to show of each section; edges of each kind in a graph. [default]
""")
def topology(
    source: Input,
    scope: Scope,
    limit: Annotated[int, at_least(1)] = TOP,
    format_: str = FORMATS[0],
) -> int:
    """Show exchanges, queues, bindings and who uses them: publishers and consumers.

    What was declared and bound, and how many messages and bytes went along each edge. A graph
    leads from publishers over exchanges and queues to consumers.

    Examples:

        amqpsniff topology trace.pcapng
        amqpsniff topology trace.pcapng --format dot | dot -Tsvg > topology.svg
        amqpsniff topology captures/ --format mermaid --vhost shop
        amqpsniff topology trace.pcapng --format json | jq .queues
    """
    reading = Reading(source, scope)
    with reading.passing() as capture:
        result = capture.topology(limit=limit, **scope.part())
    _write(result, format_)
    if not any(number for name, number in result.items() if name.endswith("_count")):
        reading.warn_of_nothing("nothing was declared, published or delivered in what was captured")
    return reading.exit_code


def _write(result: Any, form: str) -> None:
    if form in GRAPHS:
        write_text(WRITERS[form](result))
    else:
        write_answer(result, form, sections(result))


KEYS_SHOWN = 3


def sections(result: Mapping[str, Any]) -> Iterator[Grid | Words]:
    """Everything, in the order in which messages go."""
    vhosts = several_vhosts(row["vhost"] for name in COLUMNS for row in result[name])
    first = True
    for name, columns in COLUMNS.items():
        if rows := result[name]:
            every = result[f"{name[:-1]}_count"]
            title = name + (f" ({len(rows)} of {count(every)})" if len(rows) < every else "")
            yield Words(title if first else f"\n{title}", "heading")
            yield table(rows, *vhosts, *columns)
            first = False
    if number := result["doubled_connections"]:
        twice = f"{plural(number, 'connection')} captured twice, on both sides of a proxy or NAT"
        yield Words(f"\n{twice}: all numbers count them twice", "warning")
    if result["forgotten"]:
        yield Words("\nnames that are rarely used were forgotten: there were too many", "warning")


def _flags(*names: str) -> Column:
    """A column of flags; unknown ones are left out."""

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


_CLIENT = (("*client", "name", named), ("?*host", "host", named))
_ARGUMENTS = ("?*arguments", "arguments", arguments_text)
_PUBLISHED = ((">published", "published", count), (">bytes", "bytes", octets))
_DELIVERED = ((">delivered", "delivered", count), (">bytes", "bytes", octets))

COLUMNS: dict[str, tuple[Column, ...]] = {
    "publishers": (*_CLIENT, EXCHANGE, ("*routing keys", "", _keys), *_PUBLISHED),
    "exchanges": (
        EXCHANGE,
        ("type", "", _type),
        _flags("durable", "auto_delete", "internal", "removed"),
        _ARGUMENTS,
        *_PUBLISHED,
    ),
    "bindings": (
        EXCHANGE,
        ("to", "destination_type", str),
        ("*destination", "destination", named),
        ROUTING_KEY,
        _ARGUMENTS,
        ("flags", "removed", lambda removed: "removed" if removed else ""),
    ),
    "queues": (
        QUEUE,
        _flags("durable", "exclusive", "auto_delete", "server_named", "removed"),
        _ARGUMENTS,
        *_DELIVERED,
    ),
    "consumers": (
        *_CLIENT,
        QUEUE,
        (">consumers", "consumers", count),
        (">prefetch", "prefetch_count", count),
        ("?acknowledges", "no_ack", {None: UNKNOWN, True: "no", False: "yes"}.__getitem__),
        *_DELIVERED,
    ),
}
"""Columns of each section."""
