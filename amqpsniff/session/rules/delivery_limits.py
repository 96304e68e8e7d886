"""Messages of quorum queues that come near the delivery limit of their queue.

A quorum queue counts in x-delivery-count how often a message came back, also because a connection
ended; with one more than x-delivery-limit it drops the message or dead-letters it.
"""

from __future__ import annotations

import re
from typing import Any

from amqpsniff.decode.json_objects import table_of
from amqpsniff.session.method_frame import read
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import when_closed
from amqpsniff.session.rules.occasions import DELIVERED, EXTENDED
from amqpsniff.session.rules.peers import rabbitmq_release
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.shared_state import contribute, drop, remember, remembered, report_at

LIMITED_SINCE = (4, 0)
"""First series of RabbitMQ with a limit by default."""

DEFAULT_LIMIT = 20
"""The limit by default."""

NEAR = 1
"""Attempts that are left when a message is near the limit."""

NEIGHBOURS = 3
"""Attempts that messages lost together, from which on it is told although the limit of their queue
was not captured: a restart explains one or two."""

COUNTED = "counted deliveries"
"""Name in `RuleContext.memory` of deliveries with an x-delivery-count, (entry, count), by channel
number and incarnation, the first `MAX_COUNTED` of each."""

MAX_COUNTED = 256
"""Counted deliveries of a channel that are remembered, settled or not."""

MAX_QUEUES = 64
"""Queues of one connection whose counts are told, one at a time, when they rise."""

_DELIVERY_COUNT = re.compile(rb'"x-delivery-count":(\d{1,9})[,}]')


class _Counts:
    """State of a queue.

    Attributes:
        limit: The greatest x-delivery-limit declared, None without one.
        default: The limit that its broker has by default, 0 for none.
        most, words, place: The greatest count, the delivery in words and where it was first.
        held: The least count of several deliveries that a channel held at its end; of such the
            greatest, with `neighbours` in words, `held_count` of them and their place.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.default = 0
        self.most = self.held = self.held_count = 0
        self.words = self.neighbours = ""
        self.place: Place | None = None
        self.held_place: Place | None = None


@where(EXTENDED)
def declared(context: RuleContext) -> None:
    """queue.declare: note the limit."""
    octets = context.frame.arguments_json or b""
    if b'"x-delivery-limit"' in octets and context.frame.queue:
        limit = table_of(read(octets), "arguments").get("x-delivery-limit")
        if isinstance(limit, int):
            contribute(context, judge_declared, queue_key(context, context.frame.queue), limit)


def judge_declared(context: RuleContext, key: Any, limit: int) -> None:
    """A queue has a limit."""
    known = remembered(context, "delivery counts", tuple(key), _Counts)
    known.limit = limit if known.limit is None else max(known.limit, limit)


def counted(context: RuleContext) -> None:
    """redelivered: the broker gives the number of the message's redeliveries."""
    rows, row, entry = context.facts["rows"], context.facts["row"], context.facts["entry"]
    found = _DELIVERY_COUNT.search(rows.headers.bytes_of(row) if rows.headers.has(row) else b"")
    if found is None or entry is None or entry.consumer is None or not entry.consumer.queue:
        return
    count, queue = int(found[1]), entry.consumer.queue
    noted = context.memory.setdefault(COUNTED, {})
    of_channel = remember(context, noted, (context.channel.number, context.channel.incarnation), [])
    if of_channel is not None and len(of_channel) < MAX_COUNTED:
        of_channel.append((entry, count))
    reported = context.memory.setdefault("counts reported", {})
    if count > reported.get(queue, 0) and (queue in reported or len(reported) < MAX_QUEUES):
        reported[queue] = count
        words = f"delivery {entry.number} from queue '{queue}' has x-delivery-count {count}"
        default = DEFAULT_LIMIT if rabbitmq_release(context) >= LIMITED_SINCE else 0
        contribute(
            context, judge_counted, queue_key(context, queue), count, default, words, context.place
        )


def judge_counted(
    context: RuleContext, key: Any, count: int, default: int, words: str, place: Any
) -> None:
    """Take the redelivery count of a message of a queue."""
    known = remembered(context, "delivery counts", tuple(key), _Counts)
    known.default = max(known.default, default)
    if count > known.most:
        known.most, known.words, known.place = count, words, Place(*place)


@where(DELIVERED)
@requires(COUNTED)
def held(context: RuleContext) -> None:
    """A channel is over: counted deliveries that it held together."""
    channel = context.channel
    noted = drop(context, context.memory[COUNTED], (channel.number, channel.incarnation)) or ()
    if not channel.closed_by or channel.closed_by == "client" or not context.certain:
        return
    conversation = context.session.connection.conversation
    end_ns = channel.end_ns or conversation.end_ns
    number = channel.closed_packet_number or conversation.last_packet_number
    place = context.place_of(number, end_ns if end_ns > 0 else None)
    together: dict[str, list[tuple[Any, int]]] = {}
    for entry, count in noted:
        if entry.held:
            together.setdefault(entry.consumer.queue, []).append((entry, count))
    for queue, entries in together.items():
        if len(entries) > 1:
            least = min(count for _, count in entries)
            count = len(entries)
            words = (
                f"{count} deliveries from queue '{queue}' with x-delivery-count {least} or more, "
                f"the first in packet {entries[0][0].packet_number}, were held together "
                f"{when_closed(channel.closed_by)}"
            )
            key = queue_key(context, queue)
            contribute(context, judge_held, key, least, count, words, place)


def judge_held(
    context: RuleContext, key: Any, least: int, count: int, words: str, place: Any
) -> None:
    """Messages of a queue were held together, and come back together."""
    known = remembered(context, "delivery counts", tuple(key), _Counts)
    if least > known.held:
        known.held, known.held_count = least, count
        known.neighbours, known.held_place = words, Place(*place)


def judge_limits(context: RuleContext) -> None:
    """capture-ends: queues whose messages came near the limit."""
    for key, known in context.shared.pop("delivery counts", {}).items():
        limit = known.default if known.limit is None else known.limit
        named = f"x-delivery-limit {limit}" + (", the default" if known.limit is None else "")
        if known.place is not None and 0 < limit <= known.most + NEAR:
            left = limit - known.most
            last = "this attempt is the last" if left <= 0 else f"{left} more is left after this"
            detail = f"{known.words} of {named}: {last}"
            report_at(context, known.place, "delivery-limit-near", detail, subject=key)
        if limit > 0:
            enough = limit - NEAR
        else:
            enough, named = NEIGHBOURS, "the delivery limit was not captured"
        if known.held_place is not None and known.held >= enough:
            detail = f"{known.neighbours}; {named}"
            place, count = known.held_place, known.held_count
            report_at(context, place, "delivery-limit-bystander", detail, count, subject=key)


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (declared,),
    "redelivered": (counted,),
    "channel-ends": (held,),
    "capture-ends": (judge_limits,),
}
