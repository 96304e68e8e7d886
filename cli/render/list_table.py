"""Connections, channels and links: as a table, and one by one in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any

from amqpsniff.analysis import times
from amqpsniff.analysis.top_rows import is_error
from amqpsniff.spec import SIDES
from amqpsniff.units import BEFORE, UNKNOWN, count, duration, lasted, octets
from amqpsniff.wire_text import harmless, named

from .clock import date_and_time
from .grid import Grid
from .text import NONE, Paint, Words
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
Columns = dict[str, list[Any]]
"""Rows as the values of each column, by its name."""

_WHOSE = frozenset(("connection_id", "client", "server"))


def grid(
    table: str,
    columns: Columns,
    start_ns: int | None,
    *,
    several: bool,
    narrow: bool,
) -> Grid:
    """The rows of a table, one a line; with `several` captures each says which it is of."""
    headings, cells = _TABLES[table]
    styles = {"id": "connection", "client": "connection"}
    laid_out = Grid(("*capture|" if several else "") + "id|=client|" + headings, styles=styles)
    clients = _names(columns["client"])
    if narrow:  # a port alone names no client among several hosts
        hosts = {(one or "").rpartition(":")[0] for one in columns["client"]}
        if len(hosts) == 1:
            clients = [f":{one.rpartition(':')[2]}" for one in clients]
    whose = [[one[:8] for one in columns["connection_id"]], clients]
    if several:
        whose.insert(0, _each(lambda path: harmless(PurePath(path or "").name), columns["capture"]))
    laid_out.extend([*whose, *cells(columns, start_ns)])
    return laid_out


def _each(make: Callable[..., Any], *columns: list[Any]) -> list[Any]:
    """`make` of each row of some columns, called once for rows that are alike."""
    if len(columns) == 1:
        made = {value: make(value) for value in set(columns[0])}
    else:
        made = {row: make(*row) for row in set(zip(*columns, strict=True))}
    if len(made) == 1:
        return [*made.values()] * len(columns[0])
    rows = columns[0] if len(columns) == 1 else zip(*columns, strict=True)
    return list(map(made.__getitem__, rows))


def _names(column: list[Any]) -> list[str]:
    """`named` of each."""
    if None not in column and "" not in column and "".join(column).isprintable():
        return column
    return _each(named, column)


def _connections(of: Columns, start_ns: int | None) -> Iterator[list[Any]]:
    product, version, name = of["client_product"], of["client_version"], of["connection_name"]
    yield _names(of["server"])
    yield _names(of["vhost"])
    yield _names(of["user"])
    yield _each(lambda one, *more: named(one or _product(*more)), name, product, version)
    yield _each(lambda *both: named(_product(*both)), product, version)
    yield _since(of["start_ns"], start_ns, of["midstream"])
    yield _lasted(of)
    for counted in ("channels", "published", "delivered", "acknowledged"):
        yield _each(count, of[counted])
    for side in SIDES:
        yield _each(octets, of[f"{side}_bytes"])
    yield _each(lambda ns: NONE if ns == 0 else duration(ns), of["blocked_ns"])
    yield from _closed(of)


def _product(product: str | None, version: str | None) -> str | None:
    return " ".join(filter(None, (product, version))) or None


def _channels(of: Columns, start_ns: int | None) -> Iterator[list[Any]]:
    yield _each(_opening, of["channel"], of["incarnation"])
    before = [number is None for number in of["opened_packet_number"]]
    yield _since(of["start_ns"], start_ns, before)
    yield _lasted(of)
    yield _each(lambda mode: mode or NONE, of["mode"])
    yield _each(lambda most: NONE if most is None else count(most), of["prefetch_count"])
    yield _each(count, of["published"])
    yield _each(lambda known: UNKNOWN if known is None else count(known), of["confirmed"])
    yield _each(count, of["returned"])
    yield _waiting(of, "unconfirmed")
    for name in ("delivered", "acknowledged"):
        yield _each(count, of[name])
    yield _waiting(of, "unsettled")
    yield _each(count, of["consumers"])
    yield from _closed(of)


def _opening(number: int, nth: int) -> str:
    return str(number) + (f" #{nth}" if nth > 1 else "")


def _links(of: Columns, start_ns: int | None) -> Iterator[list[Any]]:
    yield _each(str, of["channel"])
    yield _each(lambda role: "→" if role == "sender" else "←", of["role"])
    yield _names(of["link"])
    ends = zip(of["role"], of["target"], of["source"], strict=True)
    yield [named(target if role == "sender" else source) for role, target, source in ends]
    before = [number is None for number in of["attached_packet_number"]]
    yield _since(of["start_ns"], start_ns, before)
    yield _lasted(of)
    for name in ("deliveries", "accepted", "rejected", "released", "modified"):
        yield _each(count, of[name])
    yield _waiting(of, "unsettled")
    yield _each(count, of["credit_end"])
    yield _each(lambda ns: duration(ns) if ns else NONE, of["starved_ns"])
    yield _each(_detached, *(of[name] for name in _DETACHED))
    said = of["close_condition"], of["close_text"]
    yield _each(lambda *both: harmless(": ".join(filter(None, both))), *said)


_DETACHED = ("closed_by", "refused", "suspended", "close_condition")


def _detached(
    by: str | None, refused: bool | None, suspended: bool | None, condition: str | None
) -> Words:
    """The end of a link: who detached it first, and if it was refused."""
    if by is None:
        return Words("open")
    if refused:
        return Words(f"refused by {by}", "error")
    if by in ("fin", "rst"):
        return Words(by, "warning")
    verb = "left" if suspended else "closed"
    return Words(f"{verb} by {by}", "error" if condition else "")


_TABLES = {
    "connections": (CONNECTION_COLUMNS, _connections),
    "channels": (CHANNEL_COLUMNS, _channels),
    "links": (LINK_COLUMNS, _links),
}


def _since(times_ns: list[Any], start_ns: int | None, before: list[Any]) -> list[str]:
    """When each began, in seconds since the capture did."""
    if start_ns is None:
        return [BEFORE if older else UNKNOWN for older in before]
    return [
        BEFORE if older else UNKNOWN if ts_ns is None else times.seconds(ts_ns - start_ns)
        for ts_ns, older in zip(times_ns, before, strict=True)
    ]


def _lasted(of: Columns) -> list[str]:
    spans = [
        None if start is None or end is None else end - start
        for start, end in zip(of["start_ns"], of["end_ns"], strict=True)
    ]
    return _each(duration, spans)


def _waiting(of: Columns, what: str) -> list[str | Words]:
    return _each(_most_and_last, of[f"{what}_max"], of[f"{what}_end"])


def _most_and_last(most: int | None, end: int | None) -> str | Words:
    if most is None:
        return UNKNOWN
    text = f"{count(most)}/{count(end)}"
    return Words(text, "warning") if end else text


def _closed(of: Columns) -> tuple[list[Words], list[str]]:
    """Two columns: how each row ended, and the reason of an error."""
    closes = (of[name] for name in ("closed_by", "close_code", "close_method", "close_text"))
    ends = _each(lambda by, *why: (ended(by, why[0], why[2]), _why(*why)), *closes)
    return [end for end, _ in ends], [why for _, why in ends]


def _why(code: int | None, method: str | None, text: str | None) -> str:
    if not is_error(code, text):
        return ""
    return harmless(text or "") + (f" on {method}" if method else "")


def ended(by: str | None, code: int | None, text: str | None) -> Words:
    """How a connection or channel ended: the code of its close and whose it was, or TCP's end."""
    if by is None:
        return Words("open")
    role = "error" if is_error(code, text) else ""
    if code is None:
        return Words(by, role or "warning") if by in ("fin", "rst") else Words(f"by {by}", role)
    return Words(f"{code} by {by}", role)


def blocks(table: str, columns: Columns, paint: Paint) -> Iterator[str]:
    """All that is known of each row, one field a line."""
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
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
