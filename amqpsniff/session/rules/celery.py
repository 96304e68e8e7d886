"""Load that Celery makes: events, tasks with an ETA, result queues."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.consumer_timeouts import allowed_ns
from amqpsniff.session.rules.context import Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import queue_text
from amqpsniff.session.rules.occasions import EXTENDED
from amqpsniff.session.rules.shared_state import MAX_NAMES, exchanges_of
from amqpsniff.units import duration

EVENTS = "celeryev"
"""The exchange of Celery's events."""

EVENT_SHARE = 0.3
"""Share of all messages from which on events are noise."""

EVENTS_SEEN = 100
"""Fewer events are no load."""

RISES = 3
"""Times that the prefetch count rose by one; a pool that grows does so too, but seldom."""

FRAMEWORK = "celery"
"""Its tasks have their ETA in a header, which is looked at without packs."""

ETA_PREFETCH = "celery-eta-prefetch"

FULL_NS = 10 * SECOND_NS
"""Time without a delivery from which on a full prefetch count is told."""

MAX_LATER = 1_000
"""Deliveries with an ETA that are remembered of a channel; prefetch counts are lower."""

RESULT_QUEUES = 3
"""Queues named by a UUID from which on each task has one; a client may have one for itself."""

_ETA = re.compile(rb'"eta":"([0-9T:.+Z-]{10,40})"')
_UUID = re.compile("[0-9a-f]{8}(-?)[0-9a-f]{4}\\1[0-9a-f]{4}\\1[0-9a-f]{4}\\1[0-9a-f]{12}")


def judge_events(context: RuleContext) -> None:
    """capture-ends: the share of events in all messages."""
    counts = exchanges_of(context)
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
    entry, rows, row = (context.facts[name] for name in ("entry", "rows", "row"))
    if entry is None or entry.consumer is None:
        return
    delayed = _delayed(context)
    delayed.tasks += 1
    eta = _ETA.search(rows.headers.bytes_of(row))
    due_ns = _due_ns(eta[1].decode()) if eta else None
    if due_ns is not None:
        hold_for_later(context, due_ns)


def hold_for_later(context: RuleContext, due_ns: int) -> None:
    """A message that a worker received before its due time, by a header or a pack."""
    entry, delayed = context.facts["entry"], _delayed(context)
    if entry is None or entry.consumer is None:
        return
    if len(delayed.later) < MAX_LATER:
        delayed.later.append((entry, due_ns))
    queue, code = entry.consumer.queue, "eta-beyond-consumer-timeout"
    waits_ns = due_ns - (context.ts_ns or due_ns)
    allowed = None if entry.consumer.no_ack else allowed_ns(context, queue)
    subject = queue or ""
    if allowed is not None and waits_ns > allowed and not context.count_more(code, subject):
        detail = f"from {queue_text(queue)}, due in {duration(waits_ns)}"
        context.report(code, f"{detail}; the broker allows {duration(allowed)}", subject=subject)


def held_for_later(context: RuleContext, now_ns: int) -> list[Any]:
    """Deliveries of a channel that a worker holds on purpose: their time lies ahead."""
    delayed = context.memory.get("eta", {}).get(context.channel.number)
    if delayed is None:
        return []
    return [entry for entry, due_ns in delayed.later if entry.held and due_ns > now_ns]


def _due_ns(eta: str) -> int | None:
    """A time of a header, in UTC unless it names a zone; None if invalid."""
    try:
        at = datetime.fromisoformat(eta)
    except ValueError:
        return None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * SECOND_NS)


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
    """A channel's tasks with an ETA, its prefetch count, how often that rose, and where.

    `later` are deliveries with the time they are due at.
    """

    def __init__(self) -> None:
        self.later: list[tuple[Any, int]] = []
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
    """channel-ends: tasks with an ETA that raise the prefetch count, or take up all of it."""
    delayed = context.memory["eta"].get(context.channel.number)
    if delayed is None:
        return
    if delayed.later:
        _judge_full(context)
    del context.memory["eta"][context.channel.number]
    if min(delayed.tasks, delayed.rises) < RISES:
        return
    context.report(
        ETA_PREFETCH,
        f"{delayed.tasks} tasks with an ETA; the prefetch count rose {delayed.rises} times, "
        f"to {delayed.prefetch}",
        number=delayed.number,
        ts_ns=delayed.ts_ns,
        count=delayed.rises,
        last=delayed.last,
    )


def _judge_full(context: RuleContext) -> None:
    """Report a prefetch count that is taken up by tasks whose time lies ahead."""
    channel = context.channel
    end_ns = channel.end_ns or context.session.connection.conversation.end_ns
    waited_ns = end_ns - channel.times.last_delivery_ns
    if not context.certain or not channel.known or end_ns <= 0 or waited_ns < FULL_NS:
        return
    later = held_for_later(context, end_ns)
    limit = channel.prefetch_shared or next((entry.consumer.prefetch for entry in later), 0)
    if not limit or len(later) < limit:
        return
    first = later[0]
    detail = (
        f"all {limit} deliveries that the prefetch count allows are tasks whose ETA lies ahead, "
        f"from {queue_text(first.consumer.queue)}: nothing else came for {duration(waited_ns)}"
    )
    context.report(ETA_PREFETCH, detail, number=first.packet_number, ts_ns=first.ts_ns)


@where(EXTENDED)
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
