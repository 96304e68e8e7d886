"""Single lines of the dashboard: parts with dots between them, figures that keep their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.text import Text

from amqpsniff.units import count

from ..render.text import NONE, cells, cut, cut_middle
from .views import AT_LEAST, Row, flow, often, wait

DOT = " · "

Part = str | tuple[str, str]

_SIDES = (
    ("publish", "published_per_s", "in", "sent_per_s", "cnf", "confirm", "unconfirmed"),
    ("deliver", "delivered_per_s", "out", "received_per_s", "ack", "ack", "unacked"),
)
"""What a client sends and what it is sent: of each how many, how much, how quickly, what waits."""


def line(width: int, *parts: Part) -> Text:
    """Parts with a dot between them; those that are empty, and for which there is no room, are left
    out.
    """
    shown = Text()
    for part in parts:
        words, style = part if isinstance(part, tuple) else (part, "")
        if not words:
            continue
        if not shown.plain:
            shown.append(cut(words, width), style)
        elif cells(shown.plain) + cells(words) + len(DOT) <= width:
            shown.append(DOT, "key").append(words, style)
    return shown


def sides(row: Row, width: int) -> list[Text]:
    """Two lines, of what clients publish and of what they are delivered; each figure has its place.

    `row` is a connection, or the sum of all.
    """
    shown = []
    for what, messages, way, octets, short, latency, waiting in _SIDES:
        text = Text()
        text.append(f"{what:<7} ", "heading")
        text.append(f"{_zero(often(row[messages])):>7}/s  ")
        text.append(f"{way:<3} ", "key")
        text.append(f"{_zero(flow(row[octets]), ' B/s'):>9}  ")
        text.append(f"{short} ", "key")
        text.append(f"{_known(row, f'{latency}_p50_ms', wait):>8}  ")
        text.append("p99 ", "key")
        text.append(f"{_known(row, f'{latency}_p99_ms', wait):>8}  ")
        text.append(f"{waiting:<11} ", "key")
        text.append(f"{_known(row, waiting, count):>6}")
        text.truncate(width, overflow="ellipsis")
        shown.append(text)
    return shown


def pair(left: str, right: str, width: int) -> Text:
    """A name and a number at both ends of a line."""
    shown = cut_middle(left, max(1, width - len(right) - 1))
    text = Text(shown, "name" if right != NONE else "key")
    text.append(" " * max(1, width - cells(shown) - len(right)) + right, "info")
    return text


def span(seconds: int) -> str:
    """A span as hours, minutes and seconds."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _zero(written: str, unit: str = "") -> str:
    return f"0{unit}" if written == NONE else written


def _known(row: Row, name: str, write: Callable[[Any], str]) -> str:
    """A number of a row, marked where it is so high at least."""
    return (AT_LEAST if row[name] and name in row["at_least"].split() else "") + write(row[name])
