"""Connections, channels and links: as a table, and one by one in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis import times
from amqpsniff.spec import FIRST_ERROR_CODE, SIDES
from amqpsniff.units import BEFORE, UNKNOWN, count, duration, lasted, octets
from amqpsniff.wire_text import harmless, named

from .clock import date_and_time
from .grid import Grid
from .styled_text import Words
from .text import NONE
from .theme import Paint
from .tree import Raw, tree

CONNECTION_COLUMNS = (
    "????server|*??vhost|*?????user|*??name|*??????product|>????began|>???lasted|>?????channels|"
    ">?published|>?delivered|>????acked|>?????sent|>?????received|>????blocked|closed|~~why"
)
CHANNEL_COLUMNS = (
    ">ch|>????began|>???lasted|??mode|>?????prefetch|>?published|>?????confirmed|>?????returned|"
    ">unconf|>?delivered|>?????acked|>unsettled|>??????consumers|closed|~~why"
)
LINK_COLUMNS = (
    ">ch|way|**=link|*address|>????began|>???lasted|>?deliveries|>?accepted|>???rejected|>???released|"
    ">???modified|>unsettled|>??credit|>????starved|closed|~~why"
)
_WHOSE = frozenset(("connection_id", "client", "server"))


def grid(
    table: str,
    rows: Iterable[dict[str, Any]],
    start_ns: int | None,
    *,
    several: bool,
    narrow: bool,
) -> Grid:
    """The rows of a table, one a line; with `several` captures each says which it is of."""
    columns, cells = _TABLES[table]
    laid_out = Grid(("*capture|" if several else "") + "id|=client|" + columns)
    rows = list(rows)
    hosts = {(row["client"] or "").rpartition(":")[0] for row in rows}
    narrow = narrow and len(hosts) == 1  # a port alone names no client among several hosts
    for row in rows:
        capture = [harmless(PurePath(row["capture"] or "").name)] if several else []
        client = named(row["client"])
        if narrow:
            client = f":{client.rpartition(':')[2]}"
        whose = (Words(row["connection_id"][:8], "connection"), Words(client, "connection"))
        laid_out.add(*capture, *whose, *cells(row, start_ns))
    return laid_out


def _connection(row: dict[str, Any], start_ns: int | None) -> Iterator[Any]:
    product = " ".join(filter(None, (row["client_product"], row["client_version"])))
    yield named(row["server"])
    yield named(row["vhost"])
    yield named(row["user"])
    yield named(row["connection_name"] or product or None)
    yield named(product or None)
    yield BEFORE if row["midstream"] else _since(row["start_ns"], start_ns)
    yield lasted(row["start_ns"], row["end_ns"])
    for name in ("channels", "published", "delivered", "acknowledged"):
        yield count(row[name])
    for side in SIDES:
        yield octets(row[f"{side}_bytes"])
    yield NONE if row["blocked_ns"] == 0 else duration(row["blocked_ns"])
    yield from _closed(row)


def _channel(row: dict[str, Any], start_ns: int | None) -> Iterator[Any]:
    nth = row["incarnation"]
    yield str(row["channel"]) + (f" #{nth}" if nth > 1 else "")
    yield BEFORE if row["opened_packet_number"] is None else _since(row["start_ns"], start_ns)
    yield lasted(row["start_ns"], row["end_ns"])
    yield row["mode"] or NONE
    prefetch = row["prefetch_count"]
    yield NONE if prefetch is None else count(prefetch)
    for name in ("published", "confirmed", "returned"):
        yield count(row[name])
    yield _waiting(row, "unconfirmed")
    for name in ("delivered", "acknowledged"):
        yield count(row[name])
    yield _waiting(row, "unsettled")
    yield count(row["consumers"])
    yield from _closed(row)


def _link(row: dict[str, Any], start_ns: int | None) -> Iterator[Any]:
    sends = row["role"] == "sender"
    yield str(row["channel"])
    yield "→" if sends else "←"
    yield named(row["link"])
    yield named(row["target" if sends else "source"])
    yield BEFORE if row["attached_packet_number"] is None else _since(row["start_ns"], start_ns)
    yield lasted(row["start_ns"], row["end_ns"])
    for name in ("deliveries", "accepted", "rejected", "released", "modified"):
        yield count(row[name])
    yield _waiting(row, "unsettled")
    yield UNKNOWN if row["credit_end"] is None else count(row["credit_end"])
    yield duration(row["starved_ns"]) if row["starved_ns"] else NONE
    yield _detached(row)
    said = (row["close_condition"], row["close_text"])
    yield harmless(": ".join(filter(None, said)))


def _detached(row: dict[str, Any]) -> Words:
    """The end of a link: who detached it first, and if it was refused."""
    by = row["closed_by"]
    if by is None:
        return Words("open")
    if row["refused"]:
        return Words(f"refused by {by}", "error")
    if by in ("fin", "rst"):
        return Words(by, "warning")
    verb = "left" if row["suspended"] else "closed"
    return Words(f"{verb} by {by}", "error" if row["close_condition"] else "")


_TABLES = {
    "connections": (CONNECTION_COLUMNS, _connection),
    "channels": (CHANNEL_COLUMNS, _channel),
    "links": (LINK_COLUMNS, _link),
}


def _since(time_ns: int | None, start_ns: int | None) -> str:
    if time_ns is None or start_ns is None:
        return UNKNOWN
    return times.seconds(time_ns - start_ns)


def _waiting(row: dict[str, Any], what: str) -> str | Words:
    most, end = row[f"{what}_max"], row[f"{what}_end"]
    if most is None:
        return UNKNOWN
    text = f"{count(most)}/{count(end)}"
    return Words(text, "warning") if end else text


def _closed(row: dict[str, Any]) -> tuple[str | Words, str]:
    """How it ended, and the reason where that is an error."""
    by, code = row["closed_by"], row["close_code"]
    said = ended(by, code)
    if code is None or code < FIRST_ERROR_CODE:
        return said, ""
    blamed = f" on {row['close_method']}" if row["close_method"] else ""
    return said, harmless(row["close_text"] or "") + blamed


def ended(by: str | None, code: int | None) -> Words:
    """How a connection or channel ended: the code of its close and whose it was, or TCP's end."""
    if by is None:
        return Words("open")
    if code is None:
        return Words(by, "warning") if by in ("fin", "rst") else Words(f"by {by}")
    return Words(f"{code} by {by}", "error" if code >= FIRST_ERROR_CODE else "")


def blocks(table: str, rows: Iterable[dict[str, Any]], paint: Paint) -> Iterator[str]:
    """All that is known of each row, one field a line."""
    for row in rows:
        ends = f"{named(row['client'])} → {named(row['server'])}"
        place = f" channel {row['channel']}" if table != "connections" else ""
        yield f"{paint('connection', row['connection_id'])} {ends}{place}"
        yield from tree(_fields(row), paint, 1)


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in row.items():
        if value is None or name in _WHOSE:
            continue
        if name in ("start_ns", "end_ns"):
            fields[name.removesuffix("_ns")] = Raw(date_and_time(value))
        elif name.endswith("_ns"):
            fields[name.removesuffix("_ns")] = Raw(duration(value) if value else NONE)
        elif name.endswith("_bytes"):
            fields[name] = Raw(f"{count(value)} B")
        else:
            fields[name] = value
    if row["start_ns"] is not None and row["end_ns"] is not None:
        fields["lasted"] = Raw(lasted(row["start_ns"], row["end_ns"]))
    return fields
