"""The views of the dashboard: their columns, how they may be sorted, and rows as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from ..render.grid import Grid
from ..render.text import count, duration, harmless, octets, scaled

Row = dict[str, Any]
UNKNOWN = "?"
NONE = "-"
CHOSEN = "›"


def rate(value: float | None) -> str:
    """Events per second: `0`, `0.4`, `12.1`, `1,234`."""
    if not value:
        return NONE
    if value < 9.95:
        return f"{value:.1f}"
    return count(round(value)) if value < 99_999.5 else scaled(value).strip()


def flow(value: float | None) -> str:
    """Octets per second."""
    return f"{octets(value)}/s" if value and value >= 0.5 else NONE


def number(value: int | None) -> str:
    """A count; `-` for none."""
    return count(value) if value else NONE


def wait(value: float | None) -> str:
    """A latency given in ms; `-` where none was measured."""
    return duration(value * 1e6) if value is not None else NONE


def text(value: Any) -> str:
    """A text from the wire; `?` where it is not known."""
    return harmless(str(value)) if value is not None else UNKNOWN


def name(value: Any) -> str:
    """The name of an exchange, a key or a queue; the empty one in quotes."""
    return harmless(str(value)) if value else UNKNOWN if value is None else '""'


@dataclass(frozen=True)
class View:
    """One view.

    Attributes:
        name: What it is called.
        columns: Of each the key of the row, the heading with the marks of `Grid`, and how its
            value is written.
        sorts: Keys that rows may be sorted by, the usual one first.
    """

    name: str
    columns: tuple[tuple[str, str, Callable[[Any], str]], ...] = ()
    sorts: tuple[str, ...] = ()

    def grid(self, rows: list[Row], chosen: int | None) -> Grid:
        """Rows as a table, one of them marked."""
        grid = Grid(" |" + "|".join(heading for _, heading, _ in self.columns))
        for at, row in enumerate(rows):
            cells: list[Any] = [write(row.get(key)) for key, _, write in self.columns]
            if "severity" in row:
                cells = [Text(cell, row["severity"]) for cell in cells]
            elif row.get("blocked"):
                cells = [Text(cell, "warning") for cell in cells]
            grid.add(CHOSEN if at == chosen else " ", *cells)
        return grid


def clock(ts_ns: int | None) -> str:
    """The time of day in UTC."""
    from ..times import absolute

    return absolute(ts_ns)[11:19] if ts_ns else NONE


_NAMED = (
    ("published_per_s", ">pub/s", rate),
    ("delivered_per_s", ">dlv/s", rate),
    ("octets_per_s", ">?octets", flow),
    ("published", ">?published", number),
    ("delivered", ">?delivered", number),
)
_BY_RATE = ("published_per_s", "delivered_per_s", "octets_per_s", "published", "delivered")

CLIENTS = View(
    "clients",
    (
        ("label", "*client", text),
        ("published_per_s", ">pub/s", rate),
        ("delivered_per_s", ">dlv/s", rate),
        ("sent_per_s", ">??in", flow),
        ("received_per_s", ">??out", flow),
        ("unacked", ">unack", number),
        ("unconfirmed", ">unconf", number),
        ("confirm_p50_ms", ">?cnf p50", wait),
        ("confirm_p99_ms", ">cnf p99", wait),
        ("ack_p50_ms", ">?ack p50", wait),
        ("ack_p99_ms", ">ack p99", wait),
        ("channels", ">????ch", number),
        ("vhost", "*????vhost", text),
        ("user", "*?????user", text),
        ("product", "*?????product", text),
        ("client", "*???address", text),
    ),
    ("messages_per_s", "unacked", "unconfirmed", "ack_p99_ms", "confirm_p99_ms",
     "received_per_s", "sent_per_s", "label"),
)  # fmt: skip
EXCHANGES = View("exchanges", (("exchange", "*exchange", name), *_NAMED), _BY_RATE)
KEYS = View(
    "keys",
    (("exchange", "*exchange", name), ("routing_key", "*routing key", name), *_NAMED),
    _BY_RATE,
)
QUEUES = View(
    "queues",
    (
        ("queue", "*queue", name),
        ("delivered_per_s", ">dlv/s", rate),
        ("octets_per_s", ">octets", flow),
        ("delivered", ">delivered", number),
    ),
    ("delivered_per_s", "octets_per_s", "delivered", "queue"),
)
FINDINGS = View(
    "findings",
    (
        ("ts_ns", "time", clock),
        ("code", "*code", text),
        ("client", "*client", text),
        ("channel", ">?ch", text),
        ("count", ">times", count),
        ("detail", "*detail", text),
    ),
    ("ts_ns", "rank", "count", "code"),
)
CONNECTION = View(
    "connection",
    (
        ("channel", ">channel", text),
        ("mode", "mode", lambda value: value or NONE),
        ("prefetch", ">prefetch", lambda value: NONE if value is None else count(value)),
        ("consumers", ">consumers", number),
        ("published", ">published", number),
        ("unconfirmed", ">unconfirmed", number),
        ("delivered", ">delivered", number),
        ("unacked", ">unacked", number),
        ("requeued", ">?requeued", number),
        ("returned", ">?returned", number),
    ),
    ("channel", "unacked", "unconfirmed", "published", "delivered"),
)

VIEWS = (CLIENTS, EXCHANGES, QUEUES, FINDINGS, CONNECTION)
"""The views in the order of their keys, 1 to 5."""

ASCENDING = frozenset(("label", "queue", "code", "channel"))
"""Columns that are sorted from the least; of others the most comes first."""


def ordered(rows: list[Row], key: str, *, backwards: bool) -> list[Row]:
    """Rows sorted by a column; those that have nothing there come last."""
    if not key:
        return rows
    known = [row for row in rows if row.get(key) is not None]
    unknown = [row for row in rows if row.get(key) is None]
    known.sort(key=lambda row: row[key], reverse=(key in ASCENDING) == backwards)
    return known + unknown
