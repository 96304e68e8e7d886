"""Methods and messages in one line: `basic.publish x=orders rk=eu.new 241 B → confirmed 8.00 ms`.

A line is a list of parts. Each has a style, a text that stays and a text that may be cut, so that
a line can be made to fit where it hurts least: in its longest names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpsniff.spec import FIRST_ERROR_CODE, METHODS, PEER_PROPERTIES, peer_property
from amqpsniff.spec.amqp10 import MANAGEMENT_NODE
from amqpsniff.spec.management import REFUSED
from amqpsniff.units import duration, octets
from amqpsniff.wire_text import harmless, quoted, word

if TYPE_CHECKING:
    from amqpsniff.analysis.timeline import Entry


NAMES = {
    "exchange": "x",
    "routing_key": "rk",
    "queue": "q",
    "consumer_tag": "ct",
    "delivery_tag": "dt",
}
"""Names of arguments in a line; others keep their own. These are shown empty too."""

UNSAID = frozenset(
    "ticket out_of_band channel_id capabilities insist known_hosts version_major version_minor "
    "locale locales mechanisms response challenge class_id method_id cluster_id".split()
)
"""Arguments that a line leaves out: reserved ones, secrets, and those that a tree shows in full."""

ERRORS = frozenset(
    ("connection.close", "channel.close", "basic.return", "basic.nack", "channel.alert",
     "connection.blocked")
)  # fmt: skip
"""Methods that stand out in a list; a close only when its code is an error's."""

USUAL_ARGUMENTS = (("prefetch_size", 0),)
"""Usual values of arguments, which a line leaves out."""

BASE64 = {"base64"}
"""Keys of what stands for bytes that are no text."""

DECISIONS = {
    "requeue": ("false", "true"), "active": ("false", "true"), "role": ("sender", "receiver"),
}  # fmt: skip
"""Bits of which false says as much as true, and the words for both (`role`: AMQP 1.0 §2.8.1); of
others only true is shown, by name."""

SAID_PROPERTIES = (
    "content_encoding", "message_id", "correlation_id", "reply_to", "type", "expiration",
    "priority", "app_id", "user_id",
)  # fmt: skip
"""Properties that a line shows by name."""

USUAL = ("", 0, "utf-8", "UTF-8")
"""Values of properties that a line leaves out: a client's defaults."""

NOBODY = ""
"""Sender of a line that is not a method."""

PERSISTENT = 2
"""The delivery mode of a message that is written to disk."""

_METHOD_NAMES = {
    (row.class_id, row.method_id): row.name for row in reversed(METHODS) if "0-9-1" in row.dialects
}
_LAYOUTS: dict[str, list[frozenset[str]]] = {}
for _row in METHODS:
    _LAYOUTS.setdefault(_row.name, []).append(
        frozenset(argument.name for argument in _row.arguments)
    )


class Part(NamedTuple):
    """A word of a line: `fixed` is never cut alone, `text` may be, when it is long."""

    style: str
    fixed: str
    text: str = ""


def argument_parts(method: str, arguments: dict[str, Any]) -> Iterator[Part]:
    """The arguments of a method, flags last, and True if some of them are unknown."""
    if arguments.keys() == BASE64:
        yield Part("name", "", _value(arguments))
        return
    flags = []
    management = arguments.get("management")
    if isinstance(management, dict):
        yield from _managed(management)
    for name, value in arguments.items():
        if name in UNSAID or value is management:
            continue
        if isinstance(value, bool):
            if name in DECISIONS:
                flags.append(Part("key", f"{name}={DECISIONS[name][value]}"))
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
    culprit = _blamed_method(arguments)
    if culprit:
        yield Part("key", f"on {culprit}")
    layouts = _LAYOUTS.get(method, ())
    if layouts and not any(layout <= arguments.keys() for layout in layouts):
        yield Part("warning", "arguments incomplete")


def _managed(management: dict[str, Any]) -> Iterator[Part]:
    """A request to RabbitMQ's management as `PUT /queues/orders`, or its answer."""
    status, body = management.get("status"), management.get("body")
    if status is None:
        yield Part("key", _value(management.get("method")))
        yield Part("name", "", _value(management.get("path")))
    else:
        yield Part("error" if status >= REFUSED else "key", str(status))
    if body is not None:
        yield Part("name", "", quoted(harmless(body)) if isinstance(body, str) else _value(body))


def named(name: str, value: Any) -> Part:
    """One argument with its name."""
    text = word(value) if isinstance(value, str) else _value(value)
    return Part("name", f"{NAMES.get(name, name)}=", text)


def message_parts(message: dict[str, Any]) -> Iterator[Part]:
    """A message after its method: where it goes, how large it is, its state."""
    for name in ("delivery_tag", "queue"):
        if message[name] is not None:
            yield named(name, message[name])
    if message["reply_code"] is not None:
        yield Part("error", str(message["reply_code"]))
        yield Part("name", "", quoted(harmless(message["reply_text"] or "")))
    for name in ("exchange", "routing_key"):
        if message[name] == MANAGEMENT_NODE and message.get("address"):
            yield Part("name", "", word(message["address"]))
        elif message[name] is not None:
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
    """The properties of a message."""
    if message["content_type"] is not None:
        yield Part("name", "", word(message["content_type"]))
    if message["delivery_mode"] == PERSISTENT:
        yield Part("key", "persistent")
    for name in SAID_PROPERTIES:
        if message[name] not in (None, *USUAL):
            yield named(name, message[name])


def status(message: dict[str, Any]) -> str:
    """The status of an incomplete message, with the number of captured bytes."""
    if message["body_size"] is None or message["body_captured"] == message["body_size"]:
        return message["status"]  # type: ignore[no-any-return]
    return f"{message['status']} ({octets(message['body_captured'])} captured)"


LINE_COLUMNS = (
    "method", "consumer_tag", "delivery_tag", "queue", "reply_code", "reply_text", "exchange",
    "routing_key", "body_size", "redelivered", "mandatory", "immediate", "status", "body_captured",
    "outcome", "outcome_packet_number", "outcome_ns",
)  # fmt: skip
"""The columns of messages that `message_parts` and `outcome_parts` need."""


def _identity(properties: dict[str, Any]) -> Iterator[Part]:
    *product, name = (peer_property(properties, property_) for property_ in PEER_PROPERTIES)
    words = [text for text in product if text is not None]
    if words:
        yield Part("name", "", quoted(harmless(" ".join(words))))
    if name is not None:
        yield Part("name", "name=", word(name))


def _blamed_method(arguments: dict[str, Any]) -> str:
    """The method that a close blames; empty if it blames no method."""
    numbers = arguments.get("class_id"), arguments.get("method_id")
    if not numbers[0] or not isinstance(numbers[0], int):
        return ""
    return _METHOD_NAMES.get(numbers, f"{numbers[0]}/{numbers[1]}")  # type: ignore[arg-type]


def table(value: dict[str, Any]) -> str:
    """A field table in one line: `{x-max-length=10 x-queue-type=quorum}`."""
    return "{" + " ".join(f"{word(name)}={_value(item)}" for name, item in value.items()) + "}"


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


STYLES = {
    "confirmed": "key",
    "acked": "key",
    "automatic": "key",
    "rejected": "error",
    "returned": "error",
    "discarded": "warning",
    "requeued": "warning",
    "unconfirmed": "warning",
    "unsettled": "warning",
}
"""Outcomes of messages, and how they stand out."""

WAITING = ("unconfirmed", "unsettled")
"""Outcomes that say that nothing was seen by the end of the capture."""

_REQUESTS = {row.name: row for row in METHODS if row.synchronous}
_ASKS = {
    name: any(argument.name == "no_wait" for argument in row.arguments)
    for name, row in _REQUESTS.items()
}


def outcome_parts(message: dict[str, Any], *, early: bool = False) -> Iterator[Part]:
    """The outcome of a message. With `early` a missing outcome may still come."""
    outcome = message["outcome"]
    if outcome is None or (early and outcome in WAITING):
        return
    text = f"→ {outcome}"
    if message["outcome_ns"]:
        text += f" {duration(message['outcome_ns'])}"
    yield Part(STYLES.get(outcome, "key"), text)


def reply_parts(entry: Entry, arguments: dict[str, Any]) -> Iterator[Part]:
    """The reply of a request; nothing for other methods."""
    if entry.response_packet_number is not None:
        reply = "answered" if len(_replies(entry)) > 1 else "ok"
        took = "" if entry.response_ns is None else f" {duration(entry.response_ns)}"
        yield Part("key", f"→ {reply}{took}")
    elif waits_in_vain(entry, arguments):
        yield Part("warning", "→ no reply")


def waits_in_vain(entry: Entry, arguments: dict[str, Any]) -> bool:
    """True for a request whose reply should have been captured and was not."""
    row = _REQUESTS.get(entry.method or "")
    if row is None or entry.early or entry.response_packet_number is not None:
        return False
    if row.sender not in ("both", entry.sender):
        return False
    return not _ASKS[row.name] or arguments.get("no_wait") is False


def outcome_text(message: dict[str, Any]) -> str | None:
    """The outcome of a message in words."""
    outcome, packet_number = message["outcome"], message["outcome_packet_number"]
    if outcome is None or packet_number is None:
        return outcome  # type: ignore[no-any-return]
    if not message["outcome_ns"]:
        return f"{outcome} in packet {packet_number}"
    return f"{outcome} in packet {packet_number} after {duration(message['outcome_ns'])}"


def _replies(entry: Entry) -> tuple[str, ...]:
    row = _REQUESTS.get(entry.method or "")
    return row.replies if row is not None else ()


def is_error(method: str, arguments: dict[str, Any]) -> bool:
    """True if a method reports that something went wrong."""
    code = arguments.get("reply_code")
    return method in ERRORS and not (isinstance(code, int) and code < FIRST_ERROR_CODE)
