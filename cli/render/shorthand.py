"""The field's shorthand: `basic.publish x=orders rk=eu.new 241 B`.

A line is a list of parts. Each has a style, a text that stays and a text that may be cut, so that
a line can be made to fit a terminal where it hurts least: in its longest names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from amqpsniff.quantities import octets
from amqpsniff.spec import FIRST_ERROR_CODE, METHODS, PEER_PROPERTIES, peer_property

from .text import cells, cut, harmless, quoted, word
from .theme import Paint

NAMES = {
    "exchange": "x",
    "routing_key": "rk",
    "queue": "q",
    "consumer_tag": "ct",
    "delivery_tag": "dt",
}
"""What arguments are called in a line; others keep their name. These are shown empty too."""

UNSAID = frozenset(
    "ticket out_of_band channel_id capabilities insist known_hosts version_major version_minor "
    "locale locales mechanisms response challenge class_id method_id cluster_id".split()
)
"""Arguments that say nothing in a line: reserved ones, secrets, what a tree shows in full."""

USUAL_ARGUMENTS = (("prefetch_size", 0),)
"""What arguments say so often that a line leaves it out."""

BASE64 = {"base64"}
"""Keys of what stands for octets that are no text."""

DECISIONS = frozenset(("requeue", "active"))
"""Bits of which false says as much as true; of others only true is shown, by name."""

SAID_PROPERTIES = (
    "content_encoding", "message_id", "correlation_id", "reply_to", "type", "expiration",
    "priority", "app_id", "user_id",
)  # fmt: skip
"""Properties that a line shows by name."""

USUAL = ("", 0, "utf-8", "UTF-8")
"""Values of properties that a line leaves out: a client's defaults."""

PERSISTENT = 2
"""The delivery mode of a message that is written to disk."""

LEAST_CELLS = (24, 10, 7)
"""Columns that are left of a name that is cut: the first of these that makes the whole line fit.
Where none does it is the first, and the end of the line is cut."""

_METHOD_NAMES = {
    (row.class_id, row.method_id): row.name for row in reversed(METHODS) if "0-9-1" in row.dialects
}
_LAYOUTS: dict[str, list[frozenset[str]]] = {}
for _row in METHODS:
    _LAYOUTS.setdefault(_row.name, []).append(frozenset(one.name for one in _row.arguments))


class Part(NamedTuple):
    """A word of a line: `fixed` is never cut alone, `text` may be, when it is long."""

    style: str
    fixed: str
    text: str = ""


def argument_parts(method: str, arguments: dict[str, Any]) -> Iterator[Part]:
    """The arguments of a method, flags last, and whether some of them are not known."""
    if arguments.keys() == BASE64:
        yield Part("name", "", _value(arguments))
        return
    flags = []
    for name, value in arguments.items():
        if name in UNSAID:
            continue
        if isinstance(value, bool):
            if name in DECISIONS:
                flags.append(Part("key", f"{name}={str(value).lower()}"))
            elif value:
                flags.append(Part("key", name))
        elif name == "reply_code":
            yield Part("error" if value >= FIRST_ERROR_CODE else "key", str(value))
        elif name == "reply_text":
            text = quoted(harmless(value)) if isinstance(value, str) else _value(value)
            yield Part("name", "", text)
        elif name.endswith("_properties") and isinstance(value, dict):
            yield from _identity(value)
        elif isinstance(value, dict) and value.keys() != BASE64:
            if value:
                yield Part("name", "", table(value))
        elif (value != "" or name in NAMES) and (name, value) not in USUAL_ARGUMENTS:
            yield named(name, value)
    yield from flags
    culprit = _culprit(arguments)
    if culprit:
        yield Part("key", f"on {culprit}")
    layouts = _LAYOUTS.get(method, ())
    if layouts and not any(layout <= arguments.keys() for layout in layouts):
        yield Part("warning", "arguments incomplete")


def named(name: str, value: Any) -> Part:
    """One argument with its name."""
    text = word(value) if isinstance(value, str) else _value(value)
    return Part("name", f"{NAMES.get(name, name)}=", text)


def message_parts(message: dict[str, Any]) -> Iterator[Part]:
    """What a line says of a message after its method: where it goes, how large it is, its state."""
    if message["delivery_tag"] is not None:
        yield named("delivery_tag", message["delivery_tag"])
    if message["queue"] is not None:
        yield named("queue", message["queue"])
    if message["reply_code"] is not None:
        yield Part("error", str(message["reply_code"]))
        yield Part("name", "", quoted(harmless(message["reply_text"] or "")))
    for name in ("exchange", "routing_key"):
        if message[name] is not None:
            yield named(name, message[name])
        elif message["method"].startswith("basic."):
            yield Part("warning", f"{NAMES[name]}=?")
    if message["body_size"] is not None:
        yield Part("size", octets(message["body_size"]))
    if message["status"] != "complete":
        yield Part("warning", status(message))
    for name in ("redelivered", "mandatory", "immediate"):
        if message[name]:
            yield Part("key", name)
    if message["consumer_tag"] is not None:
        yield named("consumer_tag", message["consumer_tag"])


def property_parts(message: dict[str, Any]) -> Iterator[Part]:
    """What a line says of a message's properties."""
    if message["content_type"] is not None:
        yield Part("name", "", word(message["content_type"]))
    if message["delivery_mode"] == PERSISTENT:
        yield Part("key", "persistent")
    for name in SAID_PROPERTIES:
        if message[name] not in (None, *USUAL):
            yield named(name, message[name])


def status(message: dict[str, Any]) -> str:
    """The status of a message that is not complete, with what was captured of it."""
    if message["body_size"] is None or message["body_captured"] == message["body_size"]:
        return message["status"]  # type: ignore[no-any-return]
    return f"{message['status']} ({octets(message['body_captured'])} captured)"


LINE_COLUMNS = (
    "method", "consumer_tag", "delivery_tag", "queue", "reply_code", "reply_text", "exchange",
    "routing_key", "body_size", "redelivered", "mandatory", "immediate", "status", "body_captured",
    "outcome", "outcome_packet_number", "outcome_ns",
)  # fmt: skip
"""The columns of messages that `message_parts` and `outcomes.outcome_parts` need."""


def _identity(properties: dict[str, Any]) -> Iterator[Part]:
    *product, name = (peer_property(properties, one) for one in PEER_PROPERTIES)
    said = [one for one in product if one is not None]
    if said:
        yield Part("name", "", quoted(harmless(" ".join(said))))
    if name is not None:
        yield Part("name", "name=", word(name))


def _culprit(arguments: dict[str, Any]) -> str:
    """The method that a close blames; empty when it blames none."""
    numbers = arguments.get("class_id"), arguments.get("method_id")
    if not numbers[0] or not isinstance(numbers[0], int):
        return ""
    return _METHOD_NAMES.get(numbers, f"{numbers[0]}/{numbers[1]}")  # type: ignore[arg-type]


def table(value: dict[str, Any]) -> str:
    """A field table in one line: `{x-max-length=10 x-queue-type=quorum}`."""
    return "{" + " ".join(f"{word(name)}={_value(one)}" for name, one in value.items()) + "}"


def base64_of(value: dict[str, Any]) -> str | None:
    """The base64 of a text that is not UTF-8; None for a table."""
    text = value["base64"] if value.keys() == BASE64 else None
    return text if isinstance(text, str) else None


def _value(value: Any) -> str:
    if isinstance(value, dict):
        text = base64_of(value)
        return table(value) if text is None else f"base64:{word(text)}"
    if isinstance(value, list):
        return "[" + " ".join(map(_value, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return word(value) if isinstance(value, str) else str(value)


def joined(
    parts: Iterable[Part],
    paint: Paint,
    room: int | None,
    more: Iterable[Part] = (),
    last: Iterable[Part] = (),
) -> str:
    """The parts as one text of at most `room` columns; null does not cut.

    `last` stands behind the parts, which are cut to make room for it; it is never more than half.
    Of `more` there is as much as has room behind both.
    """
    parts, more, last = list(parts), list(more), list(last)
    if room is None:
        parts += last + more
    else:
        taken = sum(cells(part.fixed + part.text) + 1 for part in last)
        if taken > room // 2:
            parts, last, taken = parts + last, [], 0
        parts = fitted(parts, room - taken) + last
        left = room - sum(cells(part.fixed + part.text) + 1 for part in parts)
        if more and left > 1:
            parts += _within(more, *_widths(more), left)
    if not paint.colour:
        return " ".join([fixed + text for _, fixed, text in parts])
    words = []
    for style, fixed, text in parts:
        words.append(paint("key", fixed) + paint(style, text) if text else paint(style, fixed))
    return " ".join(words)


def fitted(parts: list[Part], room: int) -> list[Part]:
    """Parts that fit: the longest names are cut first, then the end of the line."""
    fixed, texts = _widths(parts)
    most = room - sum(fixed) - len(parts) + 1
    for least in LEAST_CELLS:
        cut_texts = _shortened(texts, most, least)
        if sum(cut_texts) <= most:
            return list(_within(parts, fixed, cut_texts, room))
    return list(_within(parts, fixed, _shortened(texts, most, LEAST_CELLS[0]), room))


def _widths(parts: list[Part]) -> tuple[list[int], list[int]]:
    """Columns of the fixed texts and of the others."""
    return [cells(part.fixed) for part in parts], [cells(part.text) for part in parts]


def _shortened(widths: list[int], most: int, least: int) -> list[int]:
    """The widths, the largest made smaller but not below `least`, until they are `most` in all."""
    widths = list(widths)
    excess = sum(widths) - most
    while excess > 0 and max(widths) > least:
        longest = max(widths)
        at = widths.index(longest)
        second = max((one for one in widths if one < longest), default=0)
        even = -(-excess // widths.count(longest))
        widths[at] = max(least, second, longest - even)
        excess -= longest - widths[at]
    return widths


def _within(parts: list[Part], fixed: list[int], texts: list[int], room: int) -> Iterator[Part]:
    for part, width, text_width in zip(parts, fixed, texts, strict=True):
        if room < 1:
            return
        if part.text and room <= width:
            yield Part(part.style, cut(part.fixed + part.text, room))
            return
        kept = cut(part.fixed, room)
        yield Part(
            part.style, kept, cut(part.text, min(text_width, room - width)) if room > width else ""
        )
        room -= width + text_width + 1
