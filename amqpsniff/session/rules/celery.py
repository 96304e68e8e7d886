"""Load that Celery makes: events, tasks with an ETA, result queues."""

from __future__ import annotations

import re

from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.shared_state import MAX_NAMES, exchanges_of

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


def judge_events(context: RuleContext) -> None:
    """capture-ends: the share of events in all messages."""
    judge_noise(context, exchanges_of(context))


def judge_noise(context: RuleContext, counts: dict[str, tuple[int, ...]]) -> None:
    """Counts of all exchanges: publishes and their bytes, deliveries and theirs."""
    published, _, delivered, _ = counts.get(EVENTS, (0, 0, 0, 0))
    everything = sum(one[0] + one[2] for one in counts.values())
    events = published + delivered
    if events >= EVENTS_SEEN and events > EVENT_SHARE * everything:
        detail = (
            f"{published} events published and {delivered} delivered, "
            f"{100 * events // everything} % of all messages"
        )
        context.report("celery-event-noise", detail)


def note_eta(context: RuleContext) -> None:
    """to-be-done-later: a task that a worker received before its time."""
    entry = context.facts["entry"]
    if entry is not None and entry.consumer is not None:
        _delayed(context).tasks += 1


def note_prefetch(context: RuleContext) -> None:
    """basic.qos: count the rises of the prefetch count by one."""
    delayed = _delayed(context)
    count = context.channel.prefetch_count
    if delayed.prefetch is not None and count == delayed.prefetch + 1:
        if not delayed.rises:
            delayed.number, delayed.ts_ns = context.number, context.ts_ns
        delayed.rises += 1
        delayed.last = context.number
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


def _delayed(context: RuleContext) -> Delayed:
    channels: dict[int, Delayed] = context.memory.setdefault("eta", {})
    if context.channel.number not in channels:
        channels[context.channel.number] = Delayed()
    return channels[context.channel.number]


@requires("eta")
def judge_eta(context: RuleContext) -> None:
    """channel-ends: tasks with an ETA that raise the prefetch count."""
    delayed = context.memory["eta"].pop(context.channel.number, None)
    if delayed is None or min(delayed.tasks, delayed.rises) < RISES:
        return
    context.report(
        "celery-eta-prefetch",
        f"{delayed.tasks} tasks with an ETA; the prefetch count rose {delayed.rises} times, "
        f"to {delayed.prefetch}",
        number=delayed.number,
        ts_ns=delayed.ts_ns,
        count=delayed.rises,
        last=delayed.last,
    )


def note_queue(context: RuleContext) -> None:
    """queue.declare: remember a queue that is made for one result."""
    frame = context.frame
    if not frame.queue or not _UUID.fullmatch(frame.queue):
        return
    arguments = frame.arguments
    table = arguments.get("arguments")
    if arguments.get("passive") or not isinstance(table, dict) or "x-expires" not in table:
        return
    queues = context.memory.setdefault("result queues", {})
    if len(queues) < MAX_NAMES:
        queues.setdefault(frame.queue, (context.number, context.ts_ns))
    elif frame.queue not in queues:
        context.forget("names")


@requires("result queues")
def judge_queues(context: RuleContext) -> None:
    """connection-ends: many such queues."""
    queues = context.memory["result queues"]
    if len(queues) >= RESULT_QUEUES:
        places = list(queues.values())
        number, ts_ns = places[0]
        detail = f"{len(queues)} queues named by a UUID that expire, first {next(iter(queues))}"
        last = places[-1][0]
        context.report(
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
