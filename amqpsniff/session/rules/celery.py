"""What Celery does to a broker: events, tasks with an ETA, result queues."""

from __future__ import annotations

import re

from amqpsniff.session.rules.amounts import MAX_NAMES
from amqpsniff.session.rules.remembering import exchanges_of
from amqpsniff.session.rules.scene import Rule, Scene, after

EVENTS = "celeryev"
"""The exchange of Celery's events."""

EVENT_SHARE = 0.3
"""Share of all messages from which on events are noise."""

EVENTS_SEEN = 100
"""Fewer events are no load."""

RISES = 3
"""Times that the prefetch count rose by one; a pool that grows does so too, but seldom."""

RESULT_QUEUES = 3
"""Queues named by a UUID from which on each task has one; a client may have one for itself."""

_UUID = re.compile("[0-9a-f]{8}(-?)[0-9a-f]{4}\\1[0-9a-f]{4}\\1[0-9a-f]{4}\\1[0-9a-f]{12}")


def judge_events(scene: Scene) -> None:
    """capture-ends: the share of events in all messages."""
    judge_noise(scene, exchanges_of(scene))


def judge_noise(scene: Scene, counts: dict[str, tuple[int, ...]]) -> None:
    """Counts of all exchanges: publishes and their bytes, deliveries and theirs."""
    published, _, delivered, _ = counts.get(EVENTS, (0, 0, 0, 0))
    everything = sum(one[0] + one[2] for one in counts.values())
    events = published + delivered
    if events >= EVENTS_SEEN and events > EVENT_SHARE * everything:
        detail = (
            f"{published} events published and {delivered} delivered, "
            f"{100 * events // everything} % of all messages"
        )
        scene.report("celery-event-noise", detail)


def note_eta(scene: Scene) -> None:
    """to-be-done-later: a task that a worker received before its time."""
    entry = scene.facts["entry"]
    if entry is not None and entry.consumer is not None:
        _delayed(scene).tasks += 1


def note_prefetch(scene: Scene) -> None:
    """basic.qos: has the prefetch count risen by one?"""
    delayed = _delayed(scene)
    count = scene.channel.prefetch_count
    if delayed.prefetch is not None and count == delayed.prefetch + 1:
        if not delayed.rises:
            delayed.number, delayed.ts_ns = scene.number, scene.ts_ns
        delayed.rises += 1
        delayed.last = scene.number
    delayed.prefetch = count


class Delayed:
    """A channel's tasks with an ETA, its prefetch count, how often that rose, and where."""

    def __init__(self) -> None:
        self.tasks = 0
        self.prefetch: int | None = None
        self.rises = 0
        self.number: int | None = None
        self.ts_ns: int | None = None
        self.last: int | None = None


def _delayed(scene: Scene) -> Delayed:
    channels: dict[int, Delayed] = scene.memory.setdefault("eta", {})
    if scene.channel.number not in channels:
        channels[scene.channel.number] = Delayed()
    return channels[scene.channel.number]


@after("eta")
def judge_eta(scene: Scene) -> None:
    """channel-ends: tasks with an ETA that raise the prefetch count."""
    delayed = scene.memory["eta"].pop(scene.channel.number, None)
    if delayed is None or min(delayed.tasks, delayed.rises) < RISES:
        return
    scene.report(
        "celery-eta-prefetch",
        f"{delayed.tasks} tasks with an ETA; the prefetch count rose {delayed.rises} times, "
        f"to {delayed.prefetch}",
        number=delayed.number,
        ts_ns=delayed.ts_ns,
        count=delayed.rises,
        last=delayed.last,
    )


def note_queue(scene: Scene) -> None:
    """queue.declare: a queue for one result?"""
    event = scene.event
    if not event.queue or not _UUID.fullmatch(event.queue):
        return
    arguments = event.arguments
    table = arguments.get("arguments")
    if arguments.get("passive") or not isinstance(table, dict) or "x-expires" not in table:
        return
    queues = scene.memory.setdefault("result queues", {})
    if len(queues) < MAX_NAMES:
        queues.setdefault(event.queue, (scene.number, scene.ts_ns))
    elif event.queue not in queues:
        scene.forget("names")


@after("result queues")
def judge_queues(scene: Scene) -> None:
    """connection-ends: many such queues."""
    queues = scene.memory["result queues"]
    if len(queues) >= RESULT_QUEUES:
        places = list(queues.values())
        number, ts_ns = places[0]
        detail = f"{len(queues)} queues named by a UUID that expire, first {next(iter(queues))}"
        last = places[-1][0]
        scene.report(
            "celery-result-queues", detail, number=number, ts_ns=ts_ns, count=len(queues), last=last
        )


RULES: dict[str, tuple[Rule, ...]] = {
    "to-be-done-later": (note_eta,),
    "basic.qos": (note_prefetch,),
    "queue.declare": (note_queue,),
    "channel-ends": (judge_eta,),
    "connection-ends": (judge_queues,),
    "capture-ends": (judge_events,),
}
