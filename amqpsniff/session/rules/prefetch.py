"""Prefetch counts, backlogs of deliveries in clients, pace of acknowledgements."""

from __future__ import annotations

from math import ceil
from typing import Any

from amqpsniff.decode.method_layout import FLAGS_CUT, NO_ACK
from amqpsniff.null import NULL
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import names_text, number_of, queue_text, queues_read, took_text
from amqpsniff.session.rules.occasions import BUSY, PROVISIONAL, WAITED
from amqpsniff.session.rules.peers import rabbitmq_release
from amqpsniff.session.rules.shared_state import drop, remember
from amqpsniff.units import duration, octets, rate

BACKLOG_BYTES = 100_000_000
"""Unsettled deliveries that weigh on any client's memory."""

BACKLOG_SECONDS = 10
"""Work that a client holds: for so long no other consumer can take it over."""

BACKLOG_DELIVERIES = 100
"""Below this a client that is slow has a small prefetch count already."""

SMALL_PREFETCH = 10
"""Counts above this keep a consumer busy over any usual network."""

WAITED_DELIVERIES = 50
"""Deliveries after which waits are a pattern."""

WAITED_SHARE = 0.3
"""Share of a consumer's time that goes into waiting, from which on it matters."""

IDLE_SHARE = 0.5
"""The same where it was captured at the broker, and is what work and network leave."""

FULL_SHARE = 0.9
"""Share of the time in which the broker had sent all it may, where a consumer was never without
messages. One for which they come at a steady pace below that is not held up."""

WORK_KNOWN = 100
"""Times that a round trip may be as long as the work, which is what remains of it to an
acknowledgement: of less is not known how long it takes."""

PAUSES = 2
"""Pauses of a consumer from which on it is no chance."""

PAUSES_NS = 2 * SECOND_NS
"""Time of all of them, from which on it matters."""

PAUSES_SHARE = 0.2
"""The same as a share of the consumer's time."""

PAUSED_DELIVERIES = 0.25
"""Share of the deliveries that lie in a pause, beyond which that is how the consumer works: slowly,
or in batches."""

NETWORK_NS = 1_000_000
"""Round trips below 1 ms are those of one host or rack: there is nothing to gain."""

SPREAD_NS = 2_000_000
"""Waits for the network differ by less; those for messages differ by more."""

ACKS_PER_SECOND = 1_000
"""Rate from which on the frames of acknowledgements are a cost."""

SLOW_NS = SECOND_NS
"""Mean time to an acknowledgement that a person would call long."""

VERY_SLOW_NS = 30 * SECOND_NS
"""A single time that is long; the usual consumer is done within it."""

CANCELLED = "queues of cancelled consumers"
"""Name in `RuleContext.memory` of the queues that were read on each channel."""

NAMED_QUEUES = 3
"""Consumers without a limit whose queues are named."""

MIN_SAMPLES = 10
"""Acknowledgements below which a mean says little."""


LIMITS_EACH_SINCE = (4, 3)
"""First RabbitMQ with a global prefetch count for each consumer; measured with 4.3.6."""

GLOBAL = "global prefetch counts"
"""Name in `RuleContext.memory` of the last basic.qos with global set: its packet and row."""


class Unlimited:
    """Consumers of one channel that no prefetch count limits.

    Attributes:
        unanswered: Those that the broker has not answered: packet, time and queue by packet and row
            of basic.consume.
        count, first, last: Those it accepted; packet and time of the first, packet of the last.
        queues: Names of the first of them.
    """

    def __init__(self) -> None:
        self.unanswered: dict[tuple[int, int], tuple[int, int | None, str | None]] = {}
        self.count = self.last = 0
        self.first: tuple[int, int | None] | None = None
        self.queues: list[str | None] = []

    def add(self, number: int, ts_ns: int | None, queue: str | None) -> None:
        """The broker accepted one."""
        self.count += 1
        if self.first is None or number < self.first[0]:
            self.first = number, ts_ns
        self.last = max(self.last, number)
        if len(self.queues) < NAMED_QUEUES:
            self.queues.append(queue)


def note_global(context: RuleContext) -> None:
    """basic.qos: note a count for the channel, until the broker takes or refuses it."""
    if b'"global":true' in (context.frame.arguments_json or b""):
        context.memory[GLOBAL] = context.frame.number, context.frame.row


@requires(GLOBAL)
def judge_global(context: RuleContext) -> None:
    """basic.qos-ok: the broker took it, and limits each consumer."""
    request = context.request
    if request is None or context.memory[GLOBAL] != (request.number, request.row):
        return
    del context.memory[GLOBAL]
    version = rabbitmq_release(context)
    if version >= LIMITS_EACH_SINCE:
        detail = (
            f"basic.qos with global in packet {request.number}, accepted by RabbitMQ "
            f"{version[0]}.{version[1]}, which gives each consumer of the channel that limit"
        )
        context.report("prefetch-global-ignored", detail)


def note_unlimited(context: RuleContext) -> None:
    """basic.consume: remember one without a limit on its channel."""
    channel, frame = context.channel, context.frame
    if channel.broker_discards or not channel.known or not context.complete or frame.queue is None:
        return
    if frame.flags & (NO_ACK | FLAGS_CUT) or channel.prefetch_each or channel.prefetch_shared:
        return
    noted = context.memory.setdefault("unlimited", {})
    unlimited = remember(context, noted, (channel.number, channel.incarnation), Unlimited())
    if unlimited is not None:
        consume = (context.number, context.ts_ns, context.queue)
        remember(context, unlimited.unanswered, (frame.number, frame.row), consume)


@requires("unlimited")
def note_accepted(context: RuleContext) -> None:
    """basic.consume-ok: a later loss cannot hide a refusal."""
    channel, request = context.channel, context.request
    unlimited = context.memory["unlimited"].get((channel.number, channel.incarnation))
    if unlimited is None or request is None:
        return
    consume = drop(context, unlimited.unanswered, (request.number, request.row))
    if consume is not None:
        unlimited.add(*consume)


@requires("unlimited")
def judge_unlimited(context: RuleContext) -> None:
    """channel-ends: consumers that no prefetch count limits.

    Those without an answer count where the whole connection was captured: a refusal would be seen.
    """
    channel = context.channel
    unlimited = drop(context, context.memory["unlimited"], (channel.number, channel.incarnation))
    if unlimited is None:
        return
    consumes = [drop(context, unlimited.unanswered, key) for key in list(unlimited.unanswered)]
    refused = channel.close_method == "basic.consume" or not channel.blames
    if channel.closed_by == "server" and refused:
        consumes = consumes[:-1]  # the last one was refused, or may have been
    for consumer in consumes if context.complete else ():
        unlimited.add(*consumer)
    if unlimited.first is None or channel.prefetch_shared:
        return
    most = channel.unsettled_max
    held = "1 delivery was" if most == 1 else f"{most} deliveries were"
    more = f"at most {held} unacknowledged" if most else "it was sent nothing yet"
    named = ", ".join(dict.fromkeys(map(queue_text, unlimited.queues)))
    others = (
        f" and {unlimited.count - len(unlimited.queues)} more"
        if unlimited.count > len(unlimited.queues)
        else ""
    )
    detail = f"{named}{others}; {more}"
    if most and channel.delivered:
        size = channel.unsettled_max * channel.times.deliver_bytes / channel.delivered
        detail += f", about {octets(size)}" if size >= 1 else ""
    number, ts_ns = unlimited.first
    context.report(
        "prefetch-unlimited",
        detail,
        number=number,
        ts_ns=ts_ns,
        count=unlimited.count,
        last=unlimited.last,
    )


@where(BUSY)
def judge_backlog(context: RuleContext) -> None:
    """channel-ends: more deliveries in the client than it can soon settle."""
    channel = context.channel
    if not context.complete or not channel.known or not channel.delivered:
        return
    size = channel.unsettled_max * channel.times.deliver_bytes / channel.delivered
    busy = busy_ns(channel)
    work = 0.0
    if channel.unsettled_max >= BACKLOG_DELIVERIES and channel.acknowledged >= MIN_SAMPLES:
        work = channel.unsettled_max * busy / channel.acknowledged
    if size <= BACKLOG_BYTES and work < BACKLOG_SECONDS * SECOND_NS:
        return
    detail = f"{channel.unsettled_max} deliveries unacknowledged at once, about {octets(size)}"
    if work:
        pace = rate(channel.acknowledged * SECOND_NS / busy)
        detail += f"; at {pace} a second that is work for {duration(work)}"
    _report(context, "backlog-in-client", detail, channel.times.most_number, channel.times.most_ns)


@where(BUSY)
def judge_waits(context: RuleContext) -> None:
    """channel-ends: a prefetch count so small that the consumer waits for the network."""
    detail = network_wait_text(context)
    if detail:
        channel = context.channel
        place = channel.opened_packet_number, channel.start_ns
        _report(context, "prefetch-too-small", detail, *place)


def network_wait_text(context: RuleContext) -> str:
    """The waits of a channel's consumers for the network, as text; empty without any."""
    channel = context.channel
    prefetch = channel.prefetch_each or channel.prefetch_shared
    if not prefetch or prefetch > SMALL_PREFETCH or not context.complete or not channel.known:
        return ""
    if channel.delivered < WAITED_DELIVERIES or channel.unsettled_max < prefetch:
        return ""
    return _waits_at_client(context, prefetch) or _waits_at_broker(context, prefetch)


def _waits_at_client(context: RuleContext, prefetch: int) -> str:
    """Captured at the client: deliveries that come a round trip after an acknowledgement."""
    channel = context.channel
    spent = channel.times.last_delivery_ns - channel.times.first_delivery_ns
    if spent <= 0 or channel.times.waits * prefetch * 2 < channel.delivered:
        return ""
    wait = channel.times.wait_ns / channel.times.waits
    if wait < NETWORK_NS or wait > channel.times.wait_ns_min + SPREAD_NS:
        return ""
    answered = _answered_ns(context)
    if answered < NETWORK_NS or wait > answered + SPREAD_NS:
        return ""  # it waited for messages
    if channel.times.wait_ns < WAITED_SHARE * spent:
        return ""
    detail = (
        f"prefetch count {prefetch}: {channel.times.waits} of {channel.delivered} deliveries came "
        f"{duration(wait)} after an acknowledgement with none left to work on, "
        f"{100 * channel.times.wait_ns // spent} % of the time"
    )
    work = (spent - channel.times.wait_ns) / (channel.delivered - 1)
    if work > 0:
        enough = prefetch + ceil(wait / work)
        detail += f"; with {duration(work)} of work each, {enough} would keep it busy"
    return detail


def _waits_at_broker(context: RuleContext, prefetch: int) -> str:
    """Captured at the broker: acknowledgements come a round trip after their deliveries, while the
    whole prefetch count is under way.

    A consumer works while other deliveries are under way, so a larger prefetch count shortens its
    waits.
    """
    channel, times = context.channel, context.channel.times
    most, count, trip = channel.unsettled_max, channel.acknowledged, round_trip_ns(context) or 0
    if trip < NETWORK_NS or not count or times.ack_ns < FULL_SHARE * most * busy_ns(channel):
        return ""
    held = times.ack_ns / count
    work = held - trip
    if work < 0 or trip - (most - 1) * work < IDLE_SHARE * held:
        return ""
    detail = (
        f"prefetch count {prefetch}: {count} deliveries were acknowledged after {duration(held)} "
        f"on average, of which the round trip to the client takes {duration(trip)}, and the next "
        "came after that"
    )
    if trip <= WORK_KNOWN * work:
        enough = most + ceil(trip / work)
        detail += f"; with {duration(work)} of work each, {enough} would keep it busy"
    return detail


def round_trip_ns(context: RuleContext) -> int | None:
    """The round trip of TCP's handshake, the same wherever it was captured; None for unknown."""
    trip: int = context.session.connection.conversation.round_trip_ns
    return None if trip < 0 else trip


def _answered_ns(context: RuleContext) -> float:
    """The time to an answer of basic.qos, for which the broker has nothing to do."""
    answers = context.memory["waited"].by_method() if "waited" in context.memory else {}
    qos = answers.get("basic.qos")
    return qos.took_ns / qos.count if qos else 0


@where(BUSY)
def judge_single(context: RuleContext) -> None:
    """channel-ends: report many acknowledgements of one delivery each, nacks and rejects apart."""
    channel = context.channel
    busy, count = busy_ns(channel), channel.acknowledged
    if (
        channel.times.multiple_acks
        or count < ACKS_PER_SECOND
        or busy <= 0
        or channel.maybe_settled_to
    ):
        return
    pace = count * SECOND_NS / busy
    if pace > ACKS_PER_SECOND:
        detail = f"{count} acknowledgements, {rate(pace)} a second, each of one delivery"
        _report(
            context,
            "acknowledgements-single",
            detail,
            channel.opened_packet_number,
            channel.start_ns,
        )


@where(BUSY | WAITED)
def judge_slow(context: RuleContext) -> None:
    """channel-ends: deliveries that are acknowledged late, one by one."""
    channel = context.channel
    if not channel.acknowledged or 2 * channel.times.multiple_acks > channel.times.acks:
        return
    if channel.maybe_settled_to or not context.complete:
        return
    mean = channel.times.ack_ns / channel.acknowledged
    often = channel.acknowledged >= MIN_SAMPLES and mean >= SLOW_NS
    if often or channel.times.ack_ns_max >= VERY_SLOW_NS:
        took = took_text(channel.acknowledged, channel.times.ack_ns, channel.times.ack_ns_max)
        detail = f"{number_of(channel.acknowledged, 'acknowledgement')}, after {took}"
        _report(
            context,
            "consumer-slow",
            detail,
            channel.times.slow_ack_number,
            channel.times.slow_ack_ns,
        )
    elif pauses := _pauses_text(channel):
        place = channel.times.pause_number, channel.times.pause_began_ns
        _report(context, "consumer-slow", pauses, *place)


def _pauses_text(channel: Any) -> str:
    """Pauses of a consumer that else is quick, and that take a good part of its time, in words;
    else empty.
    """
    times, spent = channel.times, busy_ns(channel)
    limit = channel.prefetch_each or channel.prefetch_shared or 1
    if limit == 1 or times.pauses * limit > PAUSED_DELIVERIES * channel.acknowledged:
        return ""
    if times.pauses < PAUSES or times.pause_ns < max(PAUSES_NS, PAUSES_SHARE * spent):
        return ""
    return (
        f"{number_of(times.pauses, 'time')} nothing was acknowledged for "
        f"{duration(times.pause_ns / times.pauses)} on average, with all {limit} deliveries in "
        f"hand that the prefetch count allows: {duration(times.pause_ns)} of {duration(spent)}"
    )


def judge_held_before(context: RuleContext) -> None:
    """tag-unknown: a delivery from before the capture is acknowledged, late at least."""
    channel, start_ns = context.channel, context.session.connection.conversation.start_ns
    before = not context.session.connection.began and not channel.known and channel.last_tag < 0
    if not before or context.ts_ns is None or start_ns <= 0 or not context.complete:
        return
    held_ns = context.ts_ns - start_ns
    if held_ns >= VERY_SLOW_NS and context.memory.setdefault("held before", channel) is channel:
        tag, many = context.facts["tag"], context.facts["multiple"]
        what, was = ("deliveries up to", "were") if many and tag > 1 else ("delivery", "was")
        held = f"{what} {tag} came before the capture, and {was} acknowledged"
        context.report("consumer-slow", f"{held} {duration(held_ns)} after it began")


def watch_slow(context: RuleContext) -> None:
    """channel-waits: the oldest delivery is not acknowledged for very long."""
    channel = context.channel
    if not context.certain or context.ts_ns is None or context.is_provisional("consumer-slow"):
        return
    entry = next(iter(channel.deliveries), None)
    if entry is None or not entry.wants or entry.ts_ns == NULL:
        return
    waited = context.ts_ns - entry.ts_ns
    if waited >= VERY_SLOW_NS and 2 * channel.times.multiple_acks <= channel.times.acks:
        detail = f"delivery {entry.number} was not acknowledged for {duration(waited)}"
        detail += from_queues(context)
        context.report_provisional("consumer-slow", detail, entry.packet_number, entry.ts_ns)


@requires(PROVISIONAL)
def left_slow(context: RuleContext) -> None:
    """channel-ends: a delivery that was foreseen to be slow, and was never acknowledged."""
    channel = context.channel
    foreseen = context.memory[PROVISIONAL].get(("consumer-slow", channel))
    entry = next(iter(channel.deliveries), None)
    if foreseen is None or entry is None or entry.packet_number != foreseen.number:
        return
    end_ns = channel.end_ns or context.session.connection.conversation.end_ns
    detail = f"delivery {entry.number} was not acknowledged for {duration(end_ns - entry.ts_ns)}"
    detail += from_queues(context)
    context.report("consumer-slow", detail, number=entry.packet_number, ts_ns=entry.ts_ns)


def busy_ns(channel: Any) -> int:
    """From the first delivery of a channel to its last acknowledgement."""
    busy: int = channel.times.last_ack_ns - channel.times.first_delivery_ns
    return max(busy, 0) if channel.times.acks and channel.delivered else 0


def note_cancelled(context: RuleContext) -> None:
    """basic.cancel, consumer-cancelled: keep the queue's name; many cancel before they close."""
    consumer = context.facts.get("consumer")
    if context.frame is not None:
        consumer = context.channel.by_tag.get(context.frame.consumer_tag)
    if consumer is not None and consumer.queue and not consumer.no_ack:
        names = context.memory.setdefault(CANCELLED, {}).setdefault(context.channel, {})
        remember(context, names, consumer.queue, True)


@requires(CANCELLED)
def forget_cancelled(context: RuleContext) -> None:
    """channel-ends: the names of its queues were used by now."""
    names = context.memory[CANCELLED].pop(context.channel, {})
    for name in list(names):
        drop(context, names, name)


def from_queues(context: RuleContext) -> str:
    """The queues that a channel's consumers read or have read, to be added."""
    names = names_text(queues_worked(context))
    return f" (from {names})" if names else ""


def queues_worked(context: RuleContext) -> set[str]:
    """Names of the queues whose deliveries a channel's consumers acknowledge, or did before."""
    cancelled = context.memory.get(CANCELLED, {}).get(context.channel, ())
    return queues_read(context.channel) | set(cancelled)


def _report(
    context: RuleContext, code: str, detail: str, number: int | None, ts_ns: int | None
) -> None:
    context.report(code, detail + from_queues(context), number=number, ts_ns=ts_ns)


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.qos": (note_global,),
    "basic.qos-ok": (judge_global,),
    "basic.consume": (note_unlimited,),
    "basic.consume-ok": (note_accepted,),
    "basic.cancel": (note_cancelled,),
    "consumer-cancelled": (note_cancelled,),
    "channel-waits": (watch_slow,),
    "tag-unknown": (judge_held_before,),
    "channel-ends": (
        judge_unlimited,
        judge_backlog,
        judge_waits,
        judge_single,
        judge_slow,
        left_slow,
        forget_cancelled,
    ),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"channel-ends": (judge_backlog,)}
