"""Consumers that hold all they may and stopped acknowledging, or hold more than they may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from amqpsniff.session.codes import CLIENT
from amqpsniff.session.rules.celery import held_for_later
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.occasions import CONSUMES, HELD, OLDEST, STUCK
from amqpsniff.units import duration

STUCK_NS = 30_000_000_000
"""A window that stays full so long is suspicious, whatever is usual."""

STUCK_TIMES = 10
"""Minimum stall, as a multiple of the mean time to an acknowledgement."""

SUDDEN_NS = 10_000_000_000
"""A window that stays full so long is suspicious where acknowledgements were quick."""

SUDDEN_TIMES = 100
"""Average factor by which they were quicker."""

SUDDEN_ACKNOWLEDGED = 10
"""Acknowledged deliveries from which on an average says what is quick."""

FEW_ACKNOWLEDGED = 3
"""Those that say it where they were ten times as quick as that."""

HELD_WITHOUT_LIMIT = 1_000
"""Deliveries that count as a full window where there is no prefetch count."""

NEVER_ACKNOWLEDGED = 100
"""The same where the channel never acknowledged one: that was forgotten, more likely than not."""

FEW_HELD = 1_000
"""Deliveries that are gone through whenever something is asked of a channel."""

HELD_A_CHANGE = 8
"""Of more, this many for each delivery and acknowledgement since they were gone through last."""

EXCESS_TIMES = 2
"""A few deliveries too many for a moment can be acknowledgements that were captured late; so many
times what is allowed cannot, nor can what is too much when the consumer is over."""


@where(HELD)
def stuck(context: RuleContext) -> None:
    """A channel is over: whether a consumer held all it may and had stopped acknowledging."""
    if context.channel.times.last_delivery_ns <= 0:
        return
    context.withdraw("consumer-stuck", context.channel)
    end_ns = context.channel.end_ns or context.session.connection.conversation.end_ns
    context.memory.get(OLDEST, {}).pop(context.channel, None)
    ended = context.channel.closed_by or context.session.connection.conversation.ended
    for detail, entry in _stuck(context, end_ns, "" if ended else " so far"):
        at: Any = {"number": entry.packet_number, "ts_ns": entry.ts_ns}
        context.report("consumer-stuck", detail, **at, subject=entry.consumer.queue or "")
    context.memory.get(OLDEST, {}).pop(context.channel, None)
    context.memory.get(STUCK, {}).pop(context.channel, None)


def watch_stuck(context: RuleContext) -> None:
    """channel-waits: report a stuck consumer provisionally. If it continues, it was not stuck."""
    detail, entry = next(_stuck(context, context.ts_ns, " so far"), ("", None))
    if entry is None:
        context.withdraw("consumer-stuck", context.channel)
    else:
        place, subject = (entry.packet_number, entry.ts_ns), entry.consumer.queue or ""
        context.report_provisional("consumer-stuck", detail, *place, subject=subject)


def note_cancelled(context: RuleContext) -> None:
    """A client cancels a consumer, as many do before they close: it may be stuck by then.

    It can still acknowledge its deliveries, so it is judged at the end of the channel.
    """
    consumer = context.channel.by_tag.get(context.frame.consumer_tag)
    if context.frame.side != CLIENT or consumer is None:
        return
    for noted in _stuck_now(context, context.ts_ns, (consumer,), ""):
        context.memory.setdefault(STUCK, {}).setdefault(context.channel, noted)


def _stuck(context: RuleContext, now_ns: int | None, so_far: str) -> Iterator[tuple[str, Any]]:
    """Consumers that are stuck: in words, ending in `so_far`, and the oldest delivery of each."""
    noted = context.memory.get(STUCK, {}).get(context.channel, ("", None))
    if noted[1] is not None and noted[1].held:
        yield noted
    for each in _stuck_now(context, now_ns, context.channel.by_tag.values(), so_far):
        if each[1] is not noted[1]:  # cancelled without an answer, it still looks open
            yield each


def _stuck_now(
    context: RuleContext, now_ns: int | None, consumers: Iterable[Any], so_far: str
) -> Iterator[tuple[str, Any]]:
    """The same of `consumers` that were not cancelled."""
    channel = context.channel
    if not context.certain or not channel.known or not channel.unsettled or now_ns is None:
        return
    since_ns = max(channel.times.last_ack_ns, channel.times.last_delivery_ns)
    if not channel.times.acks and channel.unsettled >= NEVER_ACKNOWLEDGED:
        since_ns = channel.times.first_delivery_ns
    quiet_ns = now_ns - since_ns
    if channel.times.last_delivery_ns <= 0 or not _is_long(channel, quiet_ns):
        return
    later = Counter(entry.consumer for entry in held_for_later(context, now_ns))
    for consumer, limit in _full(channel, consumers, later):
        entry = _oldest(context).get(consumer)
        if entry is None or not entry.held:
            continue
        allowed = f"of {limit} allowed" if limit else "without a limit"
        detail = (
            f"consumer '{consumer.tag}' of queue '{consumer.queue}' held "
            f"{number_of(consumer.unsettled, 'delivery', 'deliveries')} {allowed}, the oldest from "
            f"packet {entry.packet_number}, and acknowledged nothing for {duration(quiet_ns)}"
            f"{so_far}"
        )
        yield detail, entry


def _is_long(channel: Any, quiet_ns: int) -> bool:
    """True if a channel acknowledged nothing for long, compared with its usual time."""
    number = channel.acknowledged
    usual_ns = channel.times.ack_ns // number if number else 0
    times = SUDDEN_TIMES if number >= SUDDEN_ACKNOWLEDGED else SUDDEN_TIMES * 10
    if number >= FEW_ACKNOWLEDGED and quiet_ns >= max(SUDDEN_NS, times * usual_ns):
        return True
    return bool(quiet_ns >= max(STUCK_NS, STUCK_TIMES * usual_ns))


def _oldest(context: RuleContext) -> dict[Any, Any]:
    """The oldest delivery that each consumer of the channel holds, by the consumer.

    Where many are held they are gone through again only after as many changes as that is worth:
    meanwhile some may be settled, or those of new consumers missing.
    """
    channel = context.channel
    changes, number = channel.delivered + channel.times.acks, len(channel.deliveries)
    known: dict[Any, tuple[int | None, dict[Any, Any]]] = context.memory.setdefault(OLDEST, {})
    then, oldest = known.get(channel, (None, {}))
    more = number if then is None else HELD_A_CHANGE * (changes - then)
    if more and (number <= FEW_HELD or more >= number):
        oldest = {}
        for entry in channel.deliveries:
            oldest.setdefault(entry.consumer, entry)
        known[channel] = changes, oldest
    return oldest


def _full(
    channel: Any, consumers: Iterable[Any], later: Counter[Any]
) -> Iterator[tuple[Any, int | None]]:
    """The `consumers` with a full window, with their limits, 0 or None.

    Deliveries that they hold on purpose, `later` by consumer, do not count.
    """
    shared = channel.prefetch_shared
    most = HELD_WITHOUT_LIMIT if channel.times.acks else NEVER_ACKNOWLEDGED
    for consumer in consumers:
        limit = consumer.prefetch
        if shared and channel.unsettled - later.total() >= shared:
            yield consumer, shared
        elif consumer.unsettled - later[consumer] >= (limit or most):
            yield consumer, limit


@where(CONSUMES)
def overfull(context: RuleContext) -> None:
    """A consumer is over: whether it ever held more than its prefetch count."""
    channel, frame = context.channel, context.frame
    if not context.certain or not channel.known or channel.mode == "tx":
        return
    consumers: Any = channel.by_tag.values()
    if frame is not None:
        if frame.side != CLIENT:
            return
        consumer = channel.by_tag.get(frame.consumer_tag)
        consumers = () if consumer is None else (consumer,)
    oldest: dict[Any, Any] = {}
    for consumer in consumers:
        limit = consumer.prefetch
        if not limit or limit != channel.prefetch_count:
            continue
        most, last = consumer.unsettled_max, consumer.unsettled
        held = most if most > EXCESS_TIMES * limit else last
        if held > limit:
            if context.number is None and not oldest:
                for entry in channel.deliveries:
                    oldest.setdefault(entry.consumer, entry)
            first = oldest.get(consumer)
            context.report(
                "prefetch-exceeded",
                f"consumer '{consumer.tag}' of queue '{consumer.queue}' held "
                f"{held} deliveries of {limit} allowed",
                number=None if first is None else first.packet_number,
                ts_ns=None if first is None else first.ts_ns,
                subject=consumer.queue or "",
            )


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.cancel": (note_cancelled, overfull),
    "channel-waits": (watch_stuck,),
    "channel-ends": (stuck, overfull),
}
