"""What became of a request or a message: `→ ok 1.20 ms`, `→ confirmed 8.00 ms`, `→ no reply`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from amqpsniff.quantities import duration
from amqpsniff.spec import METHODS

from .shorthand import Part

if TYPE_CHECKING:
    from ..timeline import Entry

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
    name: any(one.name == "no_wait" for one in row.arguments) for name, row in _REQUESTS.items()
}


def outcome_parts(message: dict[str, Any], *, early: bool = False) -> Iterator[Part]:
    """What a line says of a message's outcome. `early`: what is not there may still come."""
    outcome = message["outcome"]
    if outcome is None or (early and outcome in WAITING):
        return
    text = f"→ {outcome}"
    if message["outcome_ns"]:
        text += f" {duration(message['outcome_ns'])}"
    yield Part(STYLES.get(outcome, "key"), text)


def reply_parts(entry: Entry, arguments: dict[str, Any]) -> Iterator[Part]:
    """What a line says of a request's reply; nothing of other methods."""
    if entry.response_packet_number is not None:
        said = "answered" if len(_replies(entry)) > 1 else "ok"
        took = "" if entry.response_ns is None else f" {duration(entry.response_ns)}"
        yield Part("key", f"→ {said}{took}")
    elif waits_in_vain(entry, arguments):
        yield Part("warning", "→ no reply")


def waits_in_vain(entry: Entry, arguments: dict[str, Any]) -> bool:
    """Whether it is a request to which no reply was seen, for all that is known."""
    row = _REQUESTS.get(entry.method or "")
    if row is None or entry.early or entry.response_packet_number is not None:
        return False
    if row.sender not in ("both", entry.sender):
        return False
    return not _ASKS[row.name] or arguments.get("no_wait") is False


def links(entry: Entry) -> dict[str, str]:
    """What a tree says of a request's reply."""
    if entry.response_packet_number is not None:
        after = "" if entry.response_ns is None else f" after {duration(entry.response_ns)}"
        return {"reply": f"in packet {entry.response_packet_number}{after}"}
    arguments = json.loads(entry.arguments) if entry.arguments else {}
    return {"reply": "none in the capture"} if waits_in_vain(entry, arguments) else {}


def outcome_text(message: dict[str, Any]) -> str | None:
    """What a tree says of a message's outcome."""
    outcome, packet_number = message["outcome"], message["outcome_packet_number"]
    if outcome is None or packet_number is None:
        return outcome  # type: ignore[no-any-return]
    if not message["outcome_ns"]:
        return f"{outcome} in packet {packet_number}"
    return f"{outcome} in packet {packet_number} after {duration(message['outcome_ns'])}"


def _replies(entry: Entry) -> tuple[str, ...]:
    row = _REQUESTS.get(entry.method or "")
    return row.replies if row is not None else ()
