"""The way of messages as text: a heading for each, and a line for everything that befell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpsniff.analysis.one_line import STYLES, WAITING, Part, named, property_parts, status
from amqpsniff.spec import DELIVERIES, PUBLISHES
from amqpsniff.units import duration, octets
from amqpsniff.wire_text import harmless, quoted

from ..output import Output
from .fitting import joined
from .lines import NOBODY, Lines

if TYPE_CHECKING:
    from amqpsniff.analysis.trace import Row, TracedMessage


DEEDS = dict.fromkeys(PUBLISHES, "published") | dict.fromkeys(DELIVERIES, "delivered")
DEEDS |= {"basic.get-ok": "got", "basic.return": "returned"}
"""What a row says befell the message."""

UNSAID = ("returned", "automatic")
"""Outcomes without a line of their own: one is a row, the other nothing that happens."""


class Step(NamedTuple):
    """Something that befell a message: when and where, and what a line says of it."""

    place: Any
    parts: list[Part]


def told(messages: Iterable[TracedMessage], lines: Lines, output: Output) -> Iterator[str]:
    """The lines of all messages, an empty one between them."""
    for number, message in enumerate(messages):
        if number:
            yield ""
        yield from _told(message, lines, output)


def _told(message: TracedMessage, lines: Lines, output: Output) -> Iterator[str]:
    yield joined(_heading(message), output.paint, output.width)
    began_ns = message.rows[0]["ts_ns"]
    for step in sorted(_steps(message), key=_when):
        last = []
        if step.place.ts_ns is not None and began_ns is not None and step.place.ts_ns > began_ns:
            last.append(Part("key", f"+{duration(step.place.ts_ns - began_ns)}"))
        yield lines.step(step.place, step.parts, last)
    for reply in message.replies:
        yield from _told(reply, lines, output)


def _heading(message: TracedMessage) -> Iterator[Part]:
    """What the message is; of several rows the first says it."""
    first = message.rows[0]
    publishes = sum(row["method"] in PUBLISHES for row in message.rows)
    if message.requested_ns is None:
        yield Part("heading", "message")
    elif first["ts_ns"] is not None:
        yield Part("heading", f"reply after {duration(first['ts_ns'] - message.requested_ns)}")
    else:
        yield Part("heading", "reply")
    if publishes > 1:
        yield Part("warning", f"published {publishes} times")
    if not publishes:
        yield Part("warning", "publish not captured")
    for name in ("exchange", "routing_key"):
        if first[name] is not None:
            yield named(name, first[name])
    if first["body_size"] is not None:
        yield Part("size", octets(first["body_size"]))
    yield from property_parts(first)


def _steps(message: TracedMessage) -> Iterator[Step]:
    for row in message.rows:
        yield Step(SimpleNamespace(**row), list(_deed(row, message.rows[0])))
        outcome = row["outcome"]
        if outcome in (None, *UNSAID, *WAITING):
            continue
        known = row["ts_ns"] is not None and row["outcome_ns"] is not None
        place = SimpleNamespace(
            **{
                **row,
                "packet_number": row["outcome_packet_number"],
                "ts_ns": row["ts_ns"] + row["outcome_ns"] if known else None,
                "sender": NOBODY,
            }
        )
        yield Step(place, [Part(_emphasis(outcome), str(outcome)), *_what(row)])


def _deed(row: Row, first: Row) -> Iterator[Part]:
    """What a row says befell the message, but for what the heading says of the first row."""
    method = row["method"]
    style = "method.error" if method == "basic.return" else "method"
    yield Part(style, DEEDS.get(method) or str(method))
    if row["redelivered"]:
        yield Part("warning", "again")
    if row["reply_code"] is not None:
        yield Part("error", str(row["reply_code"]))
        yield Part("name", "", quoted(harmless(row["reply_text"] or "")))
    yield from _what(row)
    for name in ("exchange", "routing_key"):
        if row[name] not in (None, first[name]):
            yield named(name, row[name])
    if row["mandatory"]:
        yield Part("key", "mandatory")
    if row["status"] != "complete":
        yield Part("warning", status(row))
    if row["consumer_tag"] is not None:
        yield named("consumer_tag", row["consumer_tag"])
    if row["outcome"] == "automatic":
        yield Part("key", "without ack")
    if row["outcome"] in WAITING:
        yield Part("warning", row["outcome"])


def _what(row: Row) -> Iterator[Part]:
    """By what a delivery is told from others."""
    if row["queue"] is not None:
        yield named("queue", row["queue"])
    if row["delivery_tag"] is not None:
        yield named("delivery_tag", row["delivery_tag"])


def _emphasis(outcome: str) -> str:
    style = STYLES.get(outcome, "key")
    return "method" if style == "key" else style


def _when(step: Step) -> tuple[int, int]:
    return step.place.ts_ns or 0, step.place.packet_number or 0
