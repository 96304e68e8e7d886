"""The views of the dashboard: columns and orders of their rows, and rows as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amqpsniff.findings import KINDS
from amqpsniff.live.picture import Row
from amqpsniff.units import UNKNOWN, count, duration, octets, rate
from amqpsniff.wire_text import harmless, named

from ..render.clock import date_and_time
from ..render.grid import Grid
from ..render.text import NONE, Words

CHOSEN = "›"
AT_LEAST = "≥"
"""Mark of a number that may be higher; `at_least` of a row names such columns."""

_CALLED = {
    "urgency": "what hangs, messages/s",
    "messages_per_s": "messages/s",
    "rank": "severity",
    "bytes_per_s": "bytes/s",
}

MIN_RATE = 0.05
"""Lowest rate shown: an average that fades out is lower."""


def often(value: float | None) -> str:
    """Events per second; `-` for none."""
    return rate(value) if value and value >= MIN_RATE else NONE


def flow(value: float | None) -> str:
    """Bytes per second."""
    return f"{octets(value)}/s" if value and value >= 0.5 else NONE


def number(value: int | None) -> str:
    """A count; `-` for none."""
    return count(value) if value else NONE


def count_or_unknown(value: int | None) -> str:
    """A count; `-` for none, `?` if unknown."""
    return UNKNOWN if value is None else number(value)


def wait(value: float | None) -> str:
    """A latency given in ms; `-` where none was measured."""
    return duration(value * 1e6) if value is not None else NONE


def text(value: Any) -> str:
    """A text from the wire; `?` if unknown."""
    return harmless(str(value)) if value is not None else UNKNOWN


def queue_name(value: str | None) -> str:
    """The name of a queue; in words where consumers from before take from it."""
    return named(value) if value is not None else "? (consumers from before)"


CODE_CELLS = max(map(len, KINDS))
"""Width of the column of codes, so that the columns beside it keep their place."""

MARKS = {"error": "E", "warning": "W", "info": "i"}
"""Severities in one letter, for terminals without colours."""


@dataclass(frozen=True)
class View:
    """One view.

    Attributes:
        name: What it is called.
        columns: Of each the key of the row, the heading with the marks of `Grid`, and how its
            value is written. Virtual hosts that tell names apart are there if there are several.
        sorts: Keys that rows may be sorted by, the usual one first.
        key: What of a row tells it from all others.
    """

    name: str
    columns: tuple[tuple[str, str, Callable[[Any], str]], ...] = ()
    sorts: tuple[str, ...] = ()
    key: tuple[str, ...] = ()

    def identity(self, row: Row) -> tuple[Any, ...]:
        """The values by which a row is recognised while its numbers change."""
        return tuple(row.get(name) for name in self.key)

    def called(self, sort: str) -> str:
        """A key that rows are sorted by, in words."""
        headings = {key: heading.lstrip(">*?=~") for key, heading, _ in self.columns}
        return {**headings, **_CALLED}.get(sort, sort)

    def grid(self, rows: list[Row], chosen: int | None) -> Grid:
        """Rows as a table, one of them marked."""
        several = "vhost" not in self.key or len({row["vhost"] for row in rows}) > 1
        columns = [column for column in self.columns if column[0] != "vhost" or several]
        grid = Grid(" |" + "|".join(heading for _, heading, _ in columns))
        for at, row in enumerate(rows):
            cells: list[Any] = [_cell(row, key, write) for key, _, write in columns]
            if "severity" in row:
                cells = [Words(cell, row["severity"]) for cell in cells]
            elif row.get("waits"):
                cells = [Words(cell, "warning") for cell in cells]
            grid.add(CHOSEN if at == chosen else " ", *cells)
        return grid


def _cell(row: Row, key: str, write: Callable[[Any], str]) -> str:
    """A value as text; with a mark if it is a lower bound."""
    written = write(row.get(key))
    marked = key in row.get("at_least", "").split() and written not in (NONE, UNKNOWN)
    return AT_LEAST + written if marked else written


def clock(ts_ns: int | None) -> str:
    """The time of day."""
    return date_and_time(ts_ns)[11:19] if ts_ns else NONE


_NAMED = (
    ("published_per_s", ">pub/s", often),
    ("delivered_per_s", ">dlv/s", often),
    ("bytes_per_s", ">?bytes", flow),
    ("published", ">?published", number),
    ("delivered", ">?delivered", number),
)
_BY_RATE = ("published_per_s", "delivered_per_s", "bytes_per_s", "published", "delivered")

CLIENTS = View(
    "clients",
    (
        ("label", "=client", text),
        ("waits", "=hangs", lambda value: value or NONE),
        ("published_per_s", ">pub/s", often),
        ("delivered_per_s", ">dlv/s", often),
        ("sent_per_s", ">??in", flow),
        ("received_per_s", ">??out", flow),
        ("unacked", ">unack", count_or_unknown),
        ("unconfirmed", ">unconf", count_or_unknown),
        ("confirm_p50_ms", ">?cnf p50", wait),
        ("confirm_p99_ms", ">cnf p99", wait),
        ("ack_p50_ms", ">?ack p50", wait),
        ("ack_p99_ms", ">ack p99", wait),
        ("channels", ">????ch", number),
        ("vhost", "=????vhost", text),
        ("user", "=?????user", text),
        ("product", "=?????product", text),
        ("client", "=?????address", text),
    ),
    ("urgency", "messages_per_s", "unacked", "unconfirmed", "ack_p99_ms", "confirm_p99_ms",
     "received_per_s", "sent_per_s", "label"),
    ("connection_id",),
)  # fmt: skip
_VHOST = ("vhost", "=vhost", text)
EXCHANGES = View(
    "exchanges",
    (_VHOST, ("exchange", "=exchange", named), *_NAMED),
    _BY_RATE,
    ("vhost", "exchange"),
)
KEYS = View(
    "keys",
    (_VHOST, ("exchange", "=exchange", named), ("routing_key", "=routing key", named), *_NAMED),
    _BY_RATE,
    ("vhost", "exchange", "routing_key"),
)
QUEUES = View(
    "queues",
    (
        _VHOST,
        ("queue", "=queue", queue_name),
        ("delivered_per_s", ">dlv/s", often),
        ("bytes_per_s", ">bytes", flow),
        ("delivered", ">delivered", number),
    ),
    ("delivered_per_s", "bytes_per_s", "delivered", "queue"),
    ("vhost", "queue"),
)
FINDINGS = View(
    "findings",
    (
        ("ts_ns", "time", clock),
        ("severity", "", lambda value: MARKS[value]),
        ("code", "code", lambda value: f"{value:<{CODE_CELLS}}"),
        ("who", "=???client", text),
        ("count", ">times", count),
        ("detail", "*detail", text),
    ),
    ("ts_ns", "rank", "count", "code"),
    ("code", "connection_id", "capture", "channel"),
)
CONNECTION = View(
    "connection",
    (
        ("channel", ">channel", text),
        ("mode", "mode", lambda value: value or NONE),
        ("prefetch", ">prefetch", lambda value: NONE if value is None else count(value)),
        ("consumers", ">consumers", number),
        ("published", ">published", number),
        ("unconfirmed", ">unconf", count_or_unknown),
        ("delivered", ">delivered", number),
        ("unacked", ">unack", count_or_unknown),
        ("requeued", ">?requeued", number),
        ("returned", ">?returned", number),
    ),
    ("channel", "unacked", "unconfirmed", "published", "delivered"),
    ("channel",),
)

OPERATIONS = View(
    "operations",
    (
        ("operation", "=operation", named),
        ("framework", "=?framework", text),
        ("published_per_s", ">pub/s", often),
        ("delivered_per_s", ">dlv/s", often),
        ("published", ">published", number),
        ("delivered", ">?delivered", number),
        ("retried", ">?retried", number),
        ("refused", ">refused", number),
        ("failed", ">failed", number),
        ("queue_p50_ms", ">?queue p50", wait),
        ("queue_p95_ms", ">???queue p95", wait),
        ("work_p50_ms", ">?work p50", wait),
        ("work_p95_ms", ">???work p95", wait),
        ("error_type", "*?error", lambda value: text(value) if value else NONE),
    ),
    ("failed", "published_per_s", "delivered_per_s", "published", "retried", "work_p95_ms",
     "queue_p95_ms", "operation"),
    ("framework", "operation"),
)  # fmt: skip
"""The view that `live --by operation` adds."""

VIEWS = (CLIENTS, EXCHANGES, QUEUES, FINDINGS, CONNECTION)
"""The views in the order of their keys, 1 to 5."""

ASCENDING = frozenset(("label", "queue", "code", "channel", "operation"))
"""Columns that are sorted from the least; of others the most comes first."""


CALM = 0.2
"""Part of itself by which a number must change before its row may change places: rates of equal
clients go up and down by less."""


def ordered(
    rows: list[Row],
    key: str,
    *,
    backwards: bool,
    view: View,
    before: dict[tuple[Any, ...], float] | None = None,
) -> list[Row]:
    """Rows sorted by a column; those that have nothing there come last.

    `before` remembers by which number each row was sorted, so that the order changes rarely; it is
    written to. Rows with the same number are sorted by what they are of.
    """
    if not key:
        return rows
    valued = [row for row in rows if row.get(key) is not None]
    empty = [row for row in rows if row.get(key) is None]
    valued.sort(key=lambda row: tuple(map(str, view.identity(row))))
    places = {id(row): row[key] for row in valued}
    if before is not None and key != "ts_ns" and key not in ASCENDING:
        places = _steady_numbers(valued, key, view, before)
    valued.sort(key=lambda row: places[id(row)], reverse=(key in ASCENDING) == backwards)
    return valued + empty


def _steady_numbers(
    rows: list[Row], key: str, view: View, before: dict[tuple[Any, ...], float]
) -> dict[int, float]:
    """The number that sorts each row, by `id`: the one of before while it is nearly right."""
    numbers: dict[tuple[Any, ...], float] = {}
    places: dict[int, float] = {}
    for row in rows:
        identity, now = view.identity(row), row[key]
        held = before.get(identity)
        if held is None or abs(now - held) > CALM * max(now, held):
            held = now
        numbers[identity] = places[id(row)] = held
    before.clear()
    before.update(numbers)
    return places
