"""Deliveries that were under way when the client cancelled their consumer, and were never settled.

For the broker they are outstanding until the channel ends: no other consumer gets them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from amqpsniff.session.codes import CLIENT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.format import number_of, queue_text
from amqpsniff.units import duration

LEFT_NS = 5 * SECOND_NS
"""Time that a client has to settle what came after its cancel, or to close the channel."""

CANCELLING = "cancelling consumers"
"""Name in `RuleContext.memory` of the consumers that the client cancelled: lists of `_Cancel` by
channel number and incarnation."""

MAX_CANCELS = 64
"""Cancelled consumers of a connection's open channels that are remembered, the first ones."""


class _Cancel(NamedTuple):
    """A basic.cancel of the client: its consumer, its place, and the last delivery tag then."""

    consumer: Any
    number: int | None
    ts_ns: int
    last_tag: int


def cancelled(context: RuleContext) -> None:
    """basic.cancel: later deliveries to the consumer were under way."""
    channel, ts_ns = context.channel, context.ts_ns
    consumer = channel.by_tag.get(context.frame.consumer_tag)
    if context.frame.side != CLIENT or consumer is None or consumer.no_ack or ts_ns is None:
        return
    noted = context.memory.setdefault(CANCELLING, {})
    if sum(map(len, noted.values())) < MAX_CANCELS:
        cancels = noted.setdefault((channel.number, channel.incarnation), [])
        cancels.append(_Cancel(consumer, context.number, ts_ns, channel.last_tag))


@requires(CANCELLING)
def left(context: RuleContext) -> None:
    """A channel is over: deliveries after a cancel that it still holds."""
    channel = context.channel
    cancels = context.memory[CANCELLING].pop((channel.number, channel.incarnation), ())
    if not cancels or not context.certain or not channel.known:
        return
    end_ns = channel.end_ns or context.session.connection.conversation.end_ns
    for consumer, number, ts_ns, last_tag in cancels:
        waited_ns = end_ns - ts_ns
        late = (entry for entry in channel.deliveries if entry.consumer is consumer and entry.held)
        entries = [entry for entry in late if entry.number > last_tag]
        if not entries or waited_ns < LEFT_NS:
            continue
        detail = (
            f"{number_of(len(entries), 'delivery', 'deliveries')} came to consumer "
            f"'{consumer.tag}' of {queue_text(consumer.queue)} after its basic.cancel, the first "
            f"in packet {entries[0].packet_number}, and were not settled in {duration(waited_ns)}"
        )
        at: Any = {"number": number, "ts_ns": ts_ns, "count": len(entries)}
        context.report("deliveries-after-cancel", detail, **at, subject=consumer.queue or "")


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.cancel": (cancelled,),
    "channel-ends": (left,),
}
