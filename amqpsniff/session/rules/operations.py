"""What clients delete, and what they send to exhaust a reader."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.peers import shown
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of

MANY_ENTRIES = 10_000
"""Entries of a field table that no application needs."""

MANY_ENTRIES_OCTETS = 50_000
"""Length of arguments as JSON below which they cannot have so many entries."""

HUGE_BODY = 512 << 20
"""Octets of a body that RabbitMQ since 4.3 refuses by its header alone."""

MANY_CHANNELS = 1_000
CHANNELS_WITHIN_NS = 1_000_000_000
"""Channels opened within this time that no program has a use for."""

_DELETED = {
    "queue.delete": "deleted queue",
    "queue.purge": "emptied queue",
    "exchange.delete": "deleted exchange",
    "queue.unbind": "unbound queue",
    "exchange.unbind": "unbound exchange",
}

_OWN = "amq.gen"
"""What the names begin with that the broker gives to temporary queues."""


def _deletes(scene: Scene) -> None:
    channel = scene.channel
    if channel is None or channel.deaf:
        return
    arguments = scene.event.arguments
    names = (arguments.get(name) for name in ("queue", "destination", "exchange"))
    name = next((name for name in names if name), None) or channel.last_queue or ""
    if not str(name).startswith(_OWN):
        detail = f"{shown(scene)} {_DELETED[scene.event.name]} `{name}`"
        scene.report("operation-destructive", detail)


def _declares(scene: Scene) -> None:
    octets = scene.event.octets
    if octets is None or len(octets) < MANY_ENTRIES_OCTETS:
        return
    arguments = scene.event.arguments
    entries = _entries(arguments) - len(arguments)
    if entries > MANY_ENTRIES:
        detail = f"{scene.event.name} with {number_of(entries, 'entry', 'entries')} in its tables"
        scene.report("resource-bomb", detail)


def _entries(value: Any) -> int:
    """Entries of all tables and arrays in a value; the decoder bounds their depth."""
    values = value.values() if isinstance(value, dict) else value
    return len(value) + sum(_entries(one) for one in values if isinstance(one, (dict, list)))


def _large(scene: Scene) -> None:
    rows, row = scene.facts["rows"], scene.facts["row"]
    size = memoryview(rows.body_size.storage).cast("q")[row]
    if size > HUGE_BODY:
        scene.report("resource-bomb", f"a content header declares {number_of(size, 'octet')}")


def _opens(scene: Scene) -> None:
    """Channels opened in one second."""
    if scene.ts_ns is None:
        return
    since, count = scene.memory.get("channels opened", (scene.ts_ns, 0))
    if not 0 <= scene.ts_ns - since < CHANNELS_WITHIN_NS:
        since, count = scene.ts_ns, 0
    scene.memory["channels opened"] = (since, count + 1)
    if count + 1 == MANY_CHANNELS:
        detail = f"{MANY_CHANNELS} channels opened within a second"
        Scene(scene.tracker, scene.session, None, scene.number, scene.ts_ns).report(
            "resource-bomb", detail
        )


RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(_DELETED, (_deletes,)),
    "queue.declare": (_declares,),
    "exchange.declare": (_declares,),
    "queue.bind": (_declares,),
    "basic.consume": (_declares,),
    "connection.start-ok": (_declares,),
    "large": (_large,),
    "channel-begins": (_opens,),
}
"""The rules of this module by occasion."""
