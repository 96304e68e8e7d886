"""Channels that the broker closes with an error, and what is published on them afterwards."""

from __future__ import annotations

from typing import Any

from amqpsniff.quantities import duration
from amqpsniff.session.event import read_reason
from amqpsniff.session.rules.remedies import is_exclusive, remedy
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import name_at, route
from amqpsniff.session.state import SERVER
from amqpsniff.spec import FIRST_ERROR_CODE, SIDES

_FAILED = 406
"""PRECONDITION_FAILED."""


def closed(scene: Scene) -> None:
    """The broker closed a channel: by its text, or by its code alone."""
    if scene.event.side != SERVER:
        return
    code, text, method = read_reason(scene.event.octets)
    if code is None or code < FIRST_ERROR_CODE:
        return
    said = f"{code} {text or ''}".strip() + _request(scene.channel, method)
    text = text or ""
    if code == _FAILED and "inequivalent arg" in text:
        scene.report("declaration-mismatch", said)
    elif code == _FAILED and "acknowledgement" in text and "timed out" in text:
        scene.report("acknowledgement-timeout", _oldest(scene) + said)
    elif code == _FAILED and "message size" in text and "larger than" in text:
        scene.report("message-too-large", said)
    elif not _named_elsewhere(scene.channel, code, text):
        what, variant = remedy(code, text)
        scene.report("channel-closed-by-broker", said + what, variant=variant)


def _named_elsewhere(channel: Any, code: int, text: str) -> bool:
    """Whether a rule of another subject says it better, of a channel that nobody had closed."""
    if channel.closed_by != SIDES[SERVER]:
        return False
    return is_exclusive(code, text) or (code == _FAILED and "user_id property set to" in text)


def _request(channel: Any, method: str | None) -> str:
    """What the broker objects to, in words: the request that waited, or the last publish."""
    if method is None:
        return ""
    if channel.blamed_packet_number is not None:
        return f"; answer to {method} in packet {channel.blamed_packet_number}"
    if method == "basic.publish" and channel.last_publish_number:
        return f"; answer to {method}, the last in packet {channel.last_publish_number}"
    return f"; answer to {method}"


def _oldest(scene: Scene) -> str:
    """The delivery that waits longest, in words."""
    channel = scene.channel
    entry = next((one for one in channel.deliveries if one.wants), None)
    if entry is None or scene.ts_ns is None or not channel.known:
        return ""
    queue = entry.consumer.queue if entry.consumer else None
    source = f" from queue '{queue}'" if queue else ""
    age = duration(max(0, scene.ts_ns - entry.ts_ns))
    return f"delivery {entry.number}{source}, packet {entry.packet_number}, waited {age}; "


def published_afterwards(scene: Scene) -> None:
    """A publish that the broker will drop."""
    channel, session = scene.channel, scene.session
    if session.lossy:
        return
    number, code = channel.closed_packet_number, channel.close_code
    if number is None:
        number, code = session.close_packet_number, session.close_code
    if scene.again("publishes-discarded"):
        return
    why = f" ({code})" if code else ""
    frames, row = scene.facts["frames"], scene.facts["row"]
    where = route(name_at(frames, "exchange", row), name_at(frames, "routing_key", row))
    detail = f"to {where}, sent after the broker's close in packet {number}{why}, and dropped"
    scene.report("publishes-discarded", detail)


RULES: dict[str, tuple[Rule, ...]] = {
    "channel.close": (closed,),
    "published-on-closed": (published_afterwards,),
}
"""Rules by occasion."""
