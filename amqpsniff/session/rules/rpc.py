"""Requests and answers by message: reply-to, correlation-id, reply queues.

A request is followed where its answer comes back on the same connection: its caller consumes there
from the queue that reply-to names, or by direct reply-to.
"""

from __future__ import annotations

from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.format import exchange_text, key_text, name_at, number_of
from amqpsniff.session.rules.shared_state import MAX_NAMES, remember
from amqpsniff.units import duration

SLOW_NS = SECOND_NS
"""Mean time to an answer that is long."""

VERY_SLOW_NS = 10 * SECOND_NS
"""A single time that is long; the usual caller has given up by then."""

UNANSWERED_NS = 10 * SECOND_NS
"""Time in which an answer should have come before the capture says that none did."""

MIN_CALLS = 3
"""Calls with a reply queue each from which on it is how the program works."""

DIRECT = "amq.rabbitmq.reply-to"


def note_consumer(context: RuleContext) -> None:
    """basic.consume: answers may come from its queue."""
    if not context.channel.broker_discards:
        if context.queue:
            remember(context, context.memory.setdefault("read", {}), context.queue, True)


def note_call(context: RuleContext) -> None:
    """called: a request, whose answer will be looked for when it can come here."""
    rows, row = context.facts["rows"], context.facts["row"]
    queue = name_at(rows, "reply_to", row)
    if queue != DIRECT:
        queues = context.memory.setdefault("reply queues", {})
        if remember(context, queues, queue, [0, context.number, context.ts_ns]) is not None:
            queues[queue][0] += 1
    identity = rows.correlation_id.bytes_of(row)
    calls = context.memory.setdefault("calls", {})
    if queue not in context.memory.get("read", {}):
        return
    if len(calls) >= MAX_NAMES:
        context.forget("requests")
        return
    if context.ts_ns is not None:
        route = (name_at(rows, "exchange", row), name_at(rows, "routing_key", row))
        calls.setdefault(identity, (context.number, context.ts_ns, context.channel.number, route))
        context.session.pending_rpcs = len(calls)


def note_reply(context: RuleContext) -> None:
    """answered: which request, and how long it took."""
    rows, row = context.facts["rows"], context.facts["row"]
    calls = context.memory.get("calls", {})
    if not rows.correlation_id.has(row):
        context.memory["answer cut"] = True  # it may be any
        return
    call = calls.get(rows.correlation_id.bytes_of(row))
    if call is None or context.ts_ns is None or context.ts_ns < call[1]:
        return
    del calls[rows.correlation_id.bytes_of(row)]
    context.session.pending_rpcs = len(calls)
    took = context.ts_ns - call[1]
    seen = context.memory.setdefault("replies", [0, 0, -1, None])
    seen[0] += 1
    seen[1] += took
    if took > seen[2]:
        seen[2:] = [took, call]


@requires("replies")
def judge_slow(context: RuleContext) -> None:
    """connection-ends: answers that came late."""
    count, total, longest, call = context.memory["replies"]
    if total < SLOW_NS * count and longest < VERY_SLOW_NS:
        return
    number, ts_ns, channel, route = call
    detail = (
        f"{number_of(count, 'answer')}, after {duration(total / count)} on average; the latest "
        f"after {duration(longest)}, to the request sent on channel {channel} to {_what(route)}"
    )
    context.report("rpc-slow", detail, number=number, ts_ns=ts_ns)


@requires("calls")
def judge_unanswered(context: RuleContext) -> None:
    """connection-ends: requests without an answer, though there was time."""
    context.withdraw("rpc-unanswered")
    late = _unanswered(context)
    if late:
        number, ts_ns, *_ = late[0]
        count, last = len(late), late[-1][0]
        detail = _unanswered_text(context, late)
        context.report("rpc-unanswered", detail, number=number, ts_ns=ts_ns, count=count, last=last)


@requires("calls")
def watch_unanswered(context: RuleContext) -> None:
    """connection-waits: the same by now. What is answered late after all is slow."""
    late = _unanswered(context)
    if late:
        number, ts_ns, *_ = late[0]
        detail = _unanswered_text(context, late)
        context.report_provisional("rpc-unanswered", detail, number, ts_ns, len(late), late[-1][0])
    else:
        context.withdraw("rpc-unanswered")


def _unanswered(context: RuleContext) -> list[Any]:
    """Requests that had time to be answered, and were not."""
    now_ns = context.ts_ns
    if now_ns is None or not context.complete or "answer cut" in context.memory:
        return []
    calls = context.memory["calls"].values()
    return [call for call in calls if now_ns - call[1] > UNANSWERED_NS]


def _unanswered_text(context: RuleContext, late: list[Any]) -> str:
    """Requests without an answer, in words."""
    _, ts_ns, channel, route = late[0]
    waited = duration(int(context.ts_ns or 0) - ts_ns)
    what = f"{number_of(len(late), 'request')} without an answer"
    which = "; the first, " if len(late) > 1 else ", "
    return f"{what}{which}on channel {channel} to {_what(route)}, for {waited}"


def _what(route: tuple[str | None, str | None]) -> str:
    """A request by its exchange and routing key."""
    return f"{exchange_text(route[0])} with {key_text(route[1])}"


@requires("reply queues")
def judge_queues(context: RuleContext) -> None:
    """connection-ends: a reply queue for each call."""
    queues = context.memory["reply queues"]
    read = context.memory.get("read", {})
    own = {queue: one for queue, one in queues.items() if queue in read}
    calls = sum(one[0] for one in own.values())
    if len(own) < MIN_CALLS or 2 * calls > 3 * len(own) or not context.complete:
        return
    first = next(iter(own))
    _, number, ts_ns = own[first]
    detail = f"{len(own)} reply queues for {calls} requests, the first '{first}'"
    context.report("reply-queue-per-call", detail, number=number, ts_ns=ts_ns, count=len(own))


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (note_consumer,),
    "called": (note_call,),
    "answered": (note_reply,),
    "connection-waits": (watch_unanswered,),
    "connection-ends": (judge_slow, judge_unanswered, judge_queues),
}
