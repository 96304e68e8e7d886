"""Consumers that RabbitMQ cancels because a delivery was not settled in time.

Since 4.3 queues watch that time: the consumer is cancelled, its deliveries go back to the queue,
and it gets no deliveries until the client settles those that it held. Then it gets deliveries
again, without a new basic.consume. A link of AMQP 1.0 stays: a disposition of the broker releases
its deliveries. Measured with RabbitMQ 4.3.6.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from amqpsniff.decode.json_objects import table_of
from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read
from amqpsniff.session.rules.context import Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import name_at, number_of, queue_text
from amqpsniff.session.rules.links import leads_to, link_text
from amqpsniff.session.rules.occasions import EXTENDED
from amqpsniff.session.rules.peers import rabbitmq_release
from amqpsniff.session.rules.shared_state import drop, remember
from amqpsniff.units import duration

CANCELS_SINCE = (4, 3)
"""First series of RabbitMQ that cancels such a consumer; before, it closes the channel."""

LIMITED_SINCE = (3, 9)
"""First series of RabbitMQ in which all releases have the default below. Before 4.3 it is that of
all queues, since then of quorum queues."""

DEFAULT_NS = 1_800 * SECOND_NS
"""The time that a consumer has by default."""

LATE_NS = SECOND_NS
"""Time after which the broker has noticed; measured: a millisecond."""

EARLY_SHARE = 10
"""It counts from when the queue gave the delivery away, which the capture shows later: by 16 ms of
4 s, measured on a busy machine. A tenth of the timeout, and `LATE_NS` at most, is allowed."""

TIMEOUTS = "consumer timeouts"
"""Name in `RuleContext.memory` of x-consumer-timeout by queue, as the connection declared it, the
default of quorum queues without one."""

HELD = "held when cancelled"
"""Name in `RuleContext.memory` of consumers that held deliveries when the broker cancelled them: a
`_Cancelled` by channel number, its incarnation and consumer tag."""


class _Cancelled(NamedTuple):
    """A consumer that the broker cancelled: its unsettled deliveries and its end as text, the
    place, the queue and age of its oldest delivery, and a mark if it was reported.
    """

    held: str
    words: str
    number: int
    ts_ns: int
    held_ns: int
    queue: str | None
    reported: bool


@where(EXTENDED)
def declared(context: RuleContext) -> None:
    """queue.declare: note the queue's own timeout."""
    octets = context.frame.arguments_json or b""
    named = (b'"x-consumer-timeout"', b'"x-queue-type":"quorum"')
    if not context.frame.queue or not any(name in octets for name in named):
        return
    milliseconds = table_of(read(octets), "arguments").get("x-consumer-timeout")
    timeouts = context.memory.setdefault(TIMEOUTS, {})
    drop(context, timeouts, context.frame.queue)
    allowed_ns = milliseconds * 1_000_000 if isinstance(milliseconds, int) else DEFAULT_NS
    remember(context, timeouts, context.frame.queue, allowed_ns)


def allowed_ns(context: RuleContext, queue: str | None) -> int | None:
    """Maximum time that a delivery of a queue may be held; None for no or an unknown limit."""
    release = rabbitmq_release(context)
    known: int | None = context.memory.get(TIMEOUTS, {}).get(queue)
    limited = release >= LIMITED_SINCE and (release < CANCELS_SINCE or known is not None)
    return (known or DEFAULT_NS) if limited else None


def timed_out(context: RuleContext, consumer: Any) -> bool:
    """True if the broker cancels a consumer for its timeout; then that is reported.

    This needs a known time; else the consumer is noted, because it may get deliveries again.
    """
    channel, now_ns = context.channel, context.ts_ns
    if consumer is None or not consumer.unsettled or now_ns is None or not context.certain:
        return False
    if rabbitmq_release(context) < CANCELS_SINCE:
        return False
    outstanding = (
        entry for entry in channel.deliveries if entry.consumer is consumer and entry.held
    )
    oldest = next(outstanding, None)
    if oldest is None or oldest.ts_ns <= 0:
        return False
    held_ns = now_ns - oldest.ts_ns
    allowed_ns = context.memory.get(TIMEOUTS, {}).get(consumer.queue, DEFAULT_NS)
    held = (
        f"held {number_of(consumer.unsettled, 'delivery', 'deliveries')}, the oldest from packet "
        f"{oldest.packet_number} for {duration(held_ns)}"
    )
    name = f"consumer '{consumer.tag}' of {queue_text(consumer.queue)}"
    words = f"{name} {held}, when the broker cancelled it"
    early_ns = min(allowed_ns // EARLY_SHARE, LATE_NS)
    late: bool = -early_ns <= held_ns - allowed_ns <= LATE_NS
    if late:
        context.report("consumer-timed-out", words, subject=consumer.queue or "")
    noted = context.memory.setdefault(HELD, {})
    key = (channel.number, channel.incarnation, consumer.tag)
    number = context.number or 0
    cancelled = _Cancelled(held, words, number, now_ns, held_ns, consumer.queue, late)
    remember(context, noted, key, cancelled)
    return late


def held_words(context: RuleContext, channel: Any, tag: str) -> str:
    """The deliveries that a cancelled consumer held, in words that follow its name.

    Empty where it held none, or where brokers cancel no consumer for that.
    """
    known = context.memory.get(HELD, {}).get((channel.number, channel.incarnation, tag))
    return f", which {known.held}" if known else ""


@requires(HELD)
def consumed(context: RuleContext) -> None:
    """basic.consume: a consumer of this name that is new gets its own deliveries."""
    if context.frame.side == CLIENT:
        drop(context, context.memory[HELD], _key(context, context.frame.consumer_tag))


@requires(HELD)
def delivered(context: RuleContext) -> None:
    """redelivered: to a cancelled consumer, which waited until now."""
    facts, now_ns = context.facts, context.ts_ns
    tag = name_at(facts["rows"], "consumer_tag", facts["row"])
    known = drop(context, context.memory[HELD], _key(context, tag))
    if known is None or now_ns is None or not context.certain:
        return
    noted = context.memory[HELD]
    alike = [
        key
        for key, other in noted.items()
        if key[:2] == (context.channel.number, context.channel.incarnation)
        and other.queue == known.queue
        and abs(other.held_ns - known.held_ns) <= LATE_NS
    ]
    for consumer in (known, *(noted[key] for key in alike)):
        if not consumer.reported:
            at: Any = {"number": consumer.number, "ts_ns": consumer.ts_ns}
            context.report("consumer-timed-out", consumer.words, **at, subject=consumer.queue or "")
            _forget_cancelled(context, consumer.number)
    for key in alike:
        noted[key] = noted[key]._replace(reported=True)
    place = {"number": known.number, "ts_ns": known.ts_ns}
    waited_ns = now_ns - known.ts_ns
    if waited_ns >= LATE_NS:
        detail = (
            f"cancelled for its timeout, consumer '{tag}' got nothing for {duration(waited_ns)}, "
            f"until what it held was settled; packet {context.number} brings it deliveries again"
        )
        context.report(
            "consumer-starved-after-timeout", detail, until_ns=now_ns, **place,
            subject=known.queue or "",
        )  # fmt: skip


def taken_back(context: RuleContext) -> None:
    """deliveries-taken-back: RabbitMQ does so when a link has held them for too long."""
    found, waiting = context.facts["found"], context.facts["of"].unsettled[SERVER]
    oldest = waiting.find(found.first)
    if oldest is None or oldest.ts_ns <= 0 or context.ts_ns is None:
        return
    if rabbitmq_release(context) < CANCELS_SINCE:
        return
    name = "" if oldest.consumer is None else f" of {link_text(oldest.consumer)}"
    held = min((found.last - found.first & 0xFFFFFFFF) + 1, waiting.waiting)
    oldest_of, them = (", the oldest", "them") if held > 1 else ("", "it")
    context.report(
        "consumer-timed-out",
        f"{number_of(held, 'delivery', 'deliveries')}{name}{oldest_of} in packet "
        f"{oldest.packet_number}{',' if held > 1 else ''} had not been settled for "
        f"{duration(context.ts_ns - oldest.ts_ns)} when the broker took {them} back",
        subject=leads_to(oldest.consumer),
    )


def _forget_cancelled(context: RuleContext, number: int) -> None:
    """The consumers that were cancelled in a packet need not be started again."""
    cancelled = context.memory.get("cancelled", [])
    cancelled[:] = [row for row in cancelled if row[3] != number]


def _key(context: RuleContext, tag: str | None) -> tuple[int, int, str | None]:
    channel = context.channel
    return channel.number, channel.incarnation, tag


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (declared,),
    "basic.consume": (consumed,),
    "redelivered": (delivered,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"deliveries-taken-back": (taken_back,)}
