"""Messages that come again: put back by their consumers, or dead-lettered in a circle.

A message is known again by its message-id, and otherwise by its queue and the `mark` of its entry
(properties and size). What is marked alike may be many messages, so without an id not the
redeliveries are counted but the rounds: a delivery that follows a requeue of the same mark is taken
for the same message, and how often it went round is an average over those put back first.
"""

from __future__ import annotations

import json
import re
from typing import Any

from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import duration, name_at

POISON_DELIVERIES = 5
"""Deliveries of one message that are too many: a broken network or a restart explains two or three.
"""

MOST_MESSAGES = 10_000
"""Messages that came again which are remembered, the latest ones."""

MOST_REDELIVERED = 4_096
"""Redeliveries outstanding on a connection that are told from first deliveries."""

STORM_NS = 10_000_000_000
STORM_SHARE = 0.2
STORM_REQUEUED = 20
"""A storm: so many requeues in that time, and that share of the deliveries; fewer are no load."""

ROUNDS = 3
"""Times a message went through a queue by dead-lettering from which on it is called a circle."""

_DELIVERY_COUNT = re.compile(rb'"x-delivery-count":(\d{1,18})[,}]')


class Rounds:
    """One message, or messages alike: how often it came again or was put back."""

    def __init__(self) -> None:
        self.again = 0
        self.put_back = 0
        self.awaited = 0
        self.rounds = 0


def redelivered(scene: Scene) -> None:
    """A delivery that the broker calls a redelivery."""
    rows, row, entry = scene.facts["rows"], scene.facts["row"], scene.facts["entry"]
    counted = _DELIVERY_COUNT.search(rows.headers.octets_of(row) if rows.headers.has(row) else b"")
    if counted and int(counted[1]) + 1 >= POISON_DELIVERIES:
        _poison(scene, "its x-delivery-count", int(counted[1]) + 1)
    if rows.message_id.has(row):
        name = rows.message_id.octets_of(row).decode(errors="replace")
        known = _known(scene, (name_at(rows, "routing_key", row), name))
        known.again += 1
        if known.again + 1 >= POISON_DELIVERIES:
            _poison(scene, f"message-id '{name}'", known.again + 1)
    elif entry is not None:
        _come_again(scene, entry)


def _come_again(scene: Scene, entry: Any) -> None:
    """A redelivery without an id: it may be one that was put back before."""
    known = _known(scene, _alike(entry))
    outstanding = scene.memory.setdefault("redelivered", {})
    if known.awaited > 0 and len(outstanding) < MOST_REDELIVERED:
        known.awaited -= 1
        outstanding[_place(entry)] = known


def requeued(scene: Scene) -> None:
    """A consumer put a delivery back."""
    entry = scene.facts["entry"]
    known = scene.memory.get("redelivered", {}).pop(_place(entry), None)
    if known is None:
        known = _known(scene, _alike(entry))
        known.put_back += 1
    else:
        known.rounds += 1
        if known.rounds + 1 >= POISON_DELIVERIES * known.put_back:
            _poison(scene, "properties and size", known.rounds // known.put_back + 1)
    known.awaited += 1
    _storm(scene)


def discarded(scene: Scene) -> None:
    """A consumer rejected a delivery: it does not come again."""
    outstanding = scene.memory.get("redelivered")
    if outstanding:
        outstanding.pop(_place(scene.facts["entry"]), None)


def _poison(scene: Scene, known_by: str, times: int) -> None:
    entry = scene.facts["entry"]
    consumer = entry.consumer if entry is not None else None
    queue = f" of queue '{consumer.queue}'" if consumer and consumer.queue else ""
    detail = f"delivery {entry.number}{queue}" if entry is not None else "a delivery"
    scene.report("poison-message", f"{detail}: time {times} of that message, by {known_by}")


def _alike(entry: Any) -> tuple[Any, ...]:
    return (entry.consumer.queue if entry.consumer else None), entry.mark


def _place(entry: Any) -> tuple[Any, ...]:
    return entry.channel.number, entry.channel.incarnation, entry.number


def _known(scene: Scene, key: tuple[Any, ...]) -> Rounds:
    messages = scene.everything.setdefault("came-again", {})
    known: Rounds = messages.pop(key, None) or Rounds()
    messages[key] = known
    if len(messages) > MOST_MESSAGES:
        del messages[next(iter(messages))]
        scene.forget("messages that came again")
    return known


# storms


def _storm(scene: Scene) -> None:
    """Count a requeue; when the time is over, judge it."""
    channel, now = scene.channel, scene.ts_ns
    if now is None:
        return
    windows = scene.memory.setdefault("storms", {})
    window = windows.get(channel.number)
    if window is None or window[0] != channel.incarnation:
        windows[channel.number] = _window(channel, now)
    elif now - window[1] >= STORM_NS:
        _judge(scene, window, now)
        windows[channel.number] = _window(channel, now)


def _window(channel: Any, now: int) -> tuple[int, int, int, int, int]:
    """Incarnation, time, and what was delivered, requeued and redelivered by then."""
    return (
        channel.incarnation,
        now,
        channel.delivered,
        channel.requeued,
        channel.redelivered,
    )


def _judge(scene: Scene, window: tuple[int, int, int, int, int], now: int) -> None:
    _, began, delivered_before, requeued_before, redelivered_before = window
    channel = scene.channel
    back = channel.requeued - requeued_before
    delivered = channel.delivered - delivered_before
    again = channel.redelivered - redelivered_before
    # What is given back once and for all, at a shutdown, does not come again.
    if back >= STORM_REQUEUED and back > STORM_SHARE * delivered and 2 * again >= back:
        spent = duration(now - began)
        scene.report("requeue-storm", f"{back} of {delivered} deliveries put back in {spent}")


# circles


def dead_lettered(scene: Scene) -> None:
    """A message that was dead-lettered before."""
    rows, row = scene.facts["rows"], scene.facts["row"]
    most, queue = 0, ""
    for death in _deaths(rows.headers.octets_of(row)):
        count, name = death.get("count"), death.get("queue")
        if isinstance(count, int) and count > most:
            most, queue = count, str(name)
    if most >= ROUNDS:
        where = route_of(scene)
        scene.report("dead-letter-cycle", f"{most} times through queue '{queue}', now {where}")


def route_of(scene: Scene) -> str:
    """Where a dead-lettered message is now, in words."""
    entry = scene.facts["entry"]
    consumer = entry.consumer if entry is not None else None
    if consumer is not None and consumer.queue:
        return f"delivered from queue '{consumer.queue}'"
    rows, row = scene.facts["rows"], scene.facts["row"]
    return f"with routing key '{name_at(rows, 'routing_key', row) or ''}'"


def _deaths(headers: bytes) -> list[dict[str, Any]]:
    """The entries of an x-death header."""
    try:
        found = json.loads(headers).get("x-death")
    except (ValueError, RecursionError):
        return []
    deaths = found if isinstance(found, list) else []
    return [death for death in deaths if isinstance(death, dict)]


RULES: dict[str, tuple[Rule, ...]] = {
    "redelivered": (redelivered,),
    "requeued": (requeued,),
    "discarded": (discarded,),
    "dead-lettered": (dead_lettered,),
}
"""Rules by occasion."""
