# cython: language_level=3, boundscheck=True, nonecheck=True, annotation_typing=False
"""Consumers that acknowledge by themselves, and consumers that the broker took away."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CLIENT
from cython.cimports.amqpsniff.session.rules.occasions import EXCLUSIVE

from amqpsniff.decode.method_layout import FLAGS_CUT, NO_ACK
from amqpsniff.session.rules.consumer_timeouts import held_words, timed_out
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import queue_text
from amqpsniff.session.rules.peers import client_of
from amqpsniff.session.rules.queues import deletion_words, queue_key
from amqpsniff.session.rules.shared_state import contribute, report_at
from amqpsniff.spec import SIDES
from amqpsniff.units import duration

RESUME_NS = 5_000_000_000
"""Time within which a client that handles a cancellation has consumed again or gone away."""

DELETED_NS = 1_000_000_000
"""Time between a consumer's cancellation and the answer to who deleted its queue, at most."""

INTERRUPTED = "consumer-interrupted"

MAX_QUEUES = 10_000
"""Names of queues remembered; of a connection, and of all, the latest."""

MAX_CANCELLED = 1_000
"""Cancelled consumers of one connection that are followed."""

OF_BROKER = ("amq.gen-", "amq.rabbitmq.reply-to")
"""Queues that only the client which asked for them knows: replies, not work."""


@where(EXCLUSIVE)
def declared(context: RuleContext) -> None:
    """Remember queues that are or may be private to the connection; None for a cut name."""
    frame = context.frame
    private = frame.flags & FLAGS_CUT or b'"exclusive":true' in (frame.arguments_json or b"")
    if private and frame.queue != "":
        _note(context, context.memory.setdefault("exclusive", OrderedDict()), frame.queue, True)


def automatic(context: RuleContext) -> None:
    """basic.consume: a consumer with no-ack."""
    frame = context.frame
    if frame.flags & NO_ACK and not context.channel.broker_discards:
        tag = f", consumer '{frame.consumer_tag}'" if frame.consumer_tag else ""
        _report_automatic(context, "basic.consume", context.queue, tag)


def got(context: RuleContext) -> None:
    """got-automatically: a get with no-ack that was not for nothing."""
    _report_automatic(context, "basic.get", context.facts["queue"])


def _report_automatic(context: RuleContext, name: str, queue: str | None, tag: str = "") -> None:
    """Report consuming without acknowledgements, from a queue that is not private."""
    if may_be_private(context, queue):
        return
    detail = f"{name} of queue '{queue}'{tag}"
    context.report("automatic-acknowledgement", detail, subject=queue)


def may_be_private(context: RuleContext, queue: str | None) -> bool:
    """True if a queue is, or may be, exclusive to the connection."""
    lost, private = context.session.lost_at, context.memory.get("exclusive", {})
    if not context.session.connection.began or (lost and lost[CLIENT]):
        return True  # the declaration may be missing
    return not queue or queue.startswith(OF_BROKER) or queue in private or None in private


def consumed(context: RuleContext) -> None:
    """Remember the time at which a host consumed from a queue; forget earlier cancels of it, and
    its deletion: it is a new queue.
    """
    queue = context.queue
    context.memory.get("deleted", {}).pop(queue, None)
    cancelled = context.memory.get("cancelled", [])
    for tag, _, channel, number, ts_ns in [row for row in cancelled if queue and row[1] == queue]:
        if ts_ns is not None and context.ts_ns is not None and context.complete:
            what = f"consumer '{tag}' of {queue_text(queue)}{held_words(context, channel, tag)}"
            later = f"{duration(context.ts_ns - ts_ns)} later, in packet {context.number}"
            detail = f"{what}, and the queue was consumed from again {later}"
            place = context.place_of(number, ts_ns)
            variant, detail = context.variant_for(INTERRUPTED, queue, detail)
            report_at(context, place, INTERRUPTED, detail, channel=channel.number, variant=variant)
    cancelled[:] = [row for row in cancelled if queue and row[1] is not None and row[1] != queue]
    contribute(context, judge_consumed, client_of(context).host, queue, context.ts_ns)


def judge_consumed(context: RuleContext, host: str, queue: str | None, ts_ns: int | None) -> None:
    """A host consumes from a queue."""
    _note(context, context.shared.setdefault("consumed", OrderedDict()), (host, queue), ts_ns)


def lost(context: RuleContext) -> None:
    """frames-lost: a client may have consumed from any queue."""
    if context.facts["side"] == CLIENT:
        contribute(context, judge_unseen, client_of(context).host)


def judge_unseen(context: RuleContext, host: str) -> None:
    """Note that a host's consumed queues are unknown."""
    _note(context, context.shared.setdefault("consumes lost", OrderedDict()), host, True)


def deleted(context: RuleContext) -> None:
    """Remember queues that the connection deleted itself; None stands for a cut name."""
    _note(context, context.memory.setdefault("deleted", OrderedDict()), context.frame.queue, True)


def deleted_before(context: RuleContext) -> None:
    """queue.delete-ok whose request, with the name of the queue, is from before the capture."""
    if context.request is None:
        _note(context, context.memory.setdefault("deleted", OrderedDict()), None, True)


def cancelled(context: RuleContext) -> None:
    """The broker cancelled a consumer."""
    consumer = context.facts["consumer"]
    queue = None if consumer is None else consumer.queue
    lost = context.memory.setdefault("cancelled", [])
    deleted = context.memory.get("deleted", {})
    if queue in deleted or None in deleted or timed_out(context, consumer):
        return
    session = context.session
    if queue is None and not session.connection.began and session.last_client_ns == NULL:
        return  # an unanswered deletion may be the client's last frame
    if len(lost) >= MAX_CANCELLED:
        context.forget("consumers")
        return
    lost.append((context.facts["tag"], queue, context.channel, context.number, context.ts_ns))


@requires("cancelled")
def judge_cancelled(context: RuleContext) -> None:
    """A connection is over: consumers that were cancelled and not started again."""
    end_ns = context.session.connection.conversation.end_ns
    deleted = context.memory.get("deleted", {})  # its client's frames may have been read later
    for tag, queue, channel, number, ts_ns in context.memory.get("cancelled", []):
        stayed = ts_ns is not None and end_ns - ts_ns >= RESUME_NS
        if ts_ns is None or not (stayed or _left(context)) or not context.complete:
            continue
        if queue in deleted or None in deleted or (deleted and queue is None):
            continue
        if _was_resumed(context, channel, tag, ts_ns):
            continue
        place = context.place_of(number, ts_ns)
        key = queue_key(context, queue or "")
        words = f"consumer '{tag}' of {queue_text(queue)}{held_words(context, channel, tag)}"
        what = (words, queue, key, channel.number)
        judge = judge_lost if stayed else judge_left
        contribute(context, judge, client_of(context).host, *what, place)


def _left(context: RuleContext) -> bool:
    """True if the client closed the connection."""
    return bool(context.session.closed_by == SIDES[CLIENT])


def judge_left(context: RuleContext, *lost: Any) -> None:
    """The client of a cancelled consumer left before long: it may come back."""
    left: list[Any] = context.shared.setdefault("cancelled and left", [])
    if len(left) < MAX_CANCELLED:
        left.append(lost)
    else:
        context.forget("consumers")


def judge_stayed_away(context: RuleContext) -> None:
    """capture-ends: clients that left when their consumer was cancelled, and are not back."""
    for host, what, queue, key, channel, place in context.shared.pop("cancelled and left", ()):
        about = Place(*place).ts_ns or 0
        if context.ts_ns is None or context.ts_ns - about < RESUME_NS:
            continue
        if not deletion_words(context, key, about - DELETED_NS, about + DELETED_NS):
            judge_lost(context, host, f"{what}, whose client left", queue, key, channel, place)


def _was_resumed(context: RuleContext, channel: Any, tag: str, ts_ns: int) -> bool:
    """True if deliveries came after the cancellation, as RabbitMQ 4.3 sends settled timeouts."""
    routes, place = context.session.routes, (channel.number, channel.incarnation, tag)
    delivered = {} if routes is None else routes.delivered.get(place, {})
    return any(route.last_ns > ts_ns for route in delivered.values())


def judge_lost(
    context: RuleContext, host: str, what: str, queue: str | None, key: Any, channel: int,
    where: tuple[Any, ...],
) -> None:  # fmt: skip
    """A consumer that was cancelled: did its host consume from the queue again?"""
    place = Place(*where)
    if host in context.shared.get("consumes lost", {}):
        return
    consumed, about = context.shared.get("consumed", {}), place.ts_ns or 0
    if queue is not None and (consumed.get((host, None)) or 0) > about:
        return  # a name that was cut
    deletion = deletion_words(context, key, about - DELETED_NS, about + DELETED_NS)
    gone = f" ({deletion})" if queue and deletion else ""
    if (consumed.get((host, queue)) or 0) > about:
        if queue is not None:
            detail = f"{what}{gone}, and the queue was consumed from again"
            report_at(context, place, INTERRUPTED, detail, channel=channel, subject=queue)
        return
    if (host, queue) not in consumed and len(consumed) >= MAX_QUEUES:
        if (next(iter(consumed.values())) or 0) > about:
            return  # it may have been forgotten
    detail = f"{what}{gone}, and nothing was consumed from it since"
    report_at(context, place, "consumer-cancelled", detail, channel=channel, subject=queue or "")


def _note(context: RuleContext, known: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    """Remember a value by key, at most `MAX_QUEUES` of them."""
    known.pop(key, None)
    known[key] = value
    if len(known) > MAX_QUEUES:
        known.popitem(last=False)
        context.forget("queues")


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (declared,),
    "queue.delete": (deleted,),
    "queue.delete-ok": (deleted_before,),
    "basic.consume": (automatic, consumed),
    "got-automatically": (got,),
    "consumer-cancelled": (cancelled,),
    "frames-lost": (lost,),
    "connection-ends": (judge_cancelled,),
    "capture-ends": (judge_stayed_away,),
}
