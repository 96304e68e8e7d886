"""How deliveries flow to consumers: prefetch counts, backlogs, acknowledgements."""

from __future__ import annotations

from math import ceil

from amqpsniff.columns import NULL
from amqpsniff.decode.method_layout import FLAGS_CUT, NO_ACK
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.amounts import drop, queues_of, remember
from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.rules.wording import number_of, queue_text, took_text
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
"""Name in `Scene.memory` of the queues that were read on each channel."""

NAMED_QUEUES = 3
"""Consumers without a limit whose queues are named."""

FEW = 10
"""Acknowledgements below which a mean says little."""


class Unlimited:
    """Consumers of one channel that no prefetch count limits.

    Attributes:
        asked: Those that the broker has not answered, by packet and row of basic.consume: packet,
            time and queue of each.
        count, first, last: Those it accepted; packet and time of the first, packet of the last.
        queues: Names of the first of them.
    """

    def __init__(self) -> None:
        self.asked: dict[tuple[int, int], tuple[int, int | None, str | None]] = {}
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


def note_unlimited(scene: Scene) -> None:
    """basic.consume: remember one without a limit on its channel."""
    channel, event = scene.channel, scene.event
    if channel.deaf or not channel.known or not scene.complete or event.queue is None:
        return
    if event.flags & (NO_ACK | FLAGS_CUT) or channel.prefetch_each or channel.prefetch_shared:
        return
    noted = scene.memory.setdefault("unlimited", {})
    one = remember(scene, noted, (channel.number, channel.incarnation), Unlimited())
    if one is not None:
        asked = (scene.number, scene.ts_ns, scene.queue)
        remember(scene, one.asked, (event.number, event.row), asked)


@after("unlimited")
def note_accepted(scene: Scene) -> None:
    """basic.consume-ok: what is lost from now on does not refuse it."""
    channel, request = scene.channel, scene.request
    one = scene.memory["unlimited"].get((channel.number, channel.incarnation))
    if one is None or request is None:
        return
    asked = drop(scene, one.asked, (request.number, request.row))
    if asked is not None:
        one.add(*asked)


@after("unlimited")
def judge_unlimited(scene: Scene) -> None:
    """channel-ends: consumers that no prefetch count limits.

    Those without an answer count where the whole connection was captured: a refusal would be seen.
    """
    channel = scene.channel
    one = drop(scene, scene.memory["unlimited"], (channel.number, channel.incarnation))
    if one is None:
        return
    asked = [drop(scene, one.asked, key) for key in list(one.asked)]
    refused = channel.close_method == "basic.consume" or not channel.blames
    if channel.closed_by == "server" and refused:
        asked = asked[:-1]  # the last one was refused, or may have been
    for consumer in asked if scene.complete else ():
        one.add(*consumer)
    if one.first is None or channel.prefetch_shared:
        return
    most = channel.unsettled_max
    held = "1 delivery was" if most == 1 else f"{most} deliveries were"
    more = f"at most {held} unacknowledged" if most else "it was sent nothing yet"
    named = ", ".join(dict.fromkeys(map(queue_text, one.queues)))
    others = f" and {one.count - len(one.queues)} more" if one.count > len(one.queues) else ""
    detail = f"{named}{others}; {more}"
    if most and channel.delivered:
        size = channel.unsettled_max * channel.deliver_bytes / channel.delivered
        detail += f", about {octets(size)}" if size >= 1 else ""
    number, ts_ns = one.first
    scene.report(
        "prefetch-unlimited", detail, number=number, ts_ns=ts_ns, count=one.count, last=one.last
    )


def judge_backlog(scene: Scene) -> None:
    """channel-ends: more deliveries in the client than it can soon settle."""
    channel = scene.channel
    if not scene.complete or not channel.known or not channel.delivered:
        return
    size = channel.unsettled_max * channel.deliver_bytes / channel.delivered
    busy = _busy_ns(channel)
    work = 0.0
    if channel.unsettled_max >= BACKLOG_DELIVERIES and channel.acknowledged >= FEW:
        work = channel.unsettled_max * busy / channel.acknowledged
    if size <= BACKLOG_BYTES and work < BACKLOG_SECONDS * SECOND_NS:
        return
    detail = f"{channel.unsettled_max} deliveries unacknowledged at once, about {octets(size)}"
    if work:
        pace = rate(channel.acknowledged * SECOND_NS / busy)
        detail += f"; at {pace} a second that is work for {duration(work)}"
    _report(scene, "backlog-in-client", detail, channel.most_number, channel.most_ns)


def judge_waits(scene: Scene) -> None:
    """channel-ends: a prefetch count so small that the consumer waits for the network."""
    channel = scene.channel
    prefetch = channel.prefetch_each or channel.prefetch_shared
    if not prefetch or prefetch > SMALL_PREFETCH or not scene.complete or not channel.known:
        return
    spent = channel.last_delivery_ns - channel.first_delivery_ns
    if spent <= 0 or channel.delivered < WAITED_DELIVERIES:
        return
    if channel.waits * prefetch * 2 < channel.delivered:
        return
    wait = channel.wait_ns / channel.waits
    if wait < NETWORK_NS or wait > channel.wait_ns_min + SPREAD_NS:
        return
    if channel.wait_ns < WAITED_SHARE * spent:
        return
    detail = (
        f"prefetch count {prefetch}: {channel.waits} of {channel.delivered} deliveries came "
        f"{duration(wait)} after an acknowledgement with none left to work on, "
        f"{100 * channel.wait_ns // spent} % of the time"
    )
    work = (spent - channel.wait_ns) / (channel.delivered - 1)
    if work > 0:
        enough = prefetch + ceil(wait / work)
        detail += f"; with {duration(work)} of work each, {enough} would keep it busy"
    _report(scene, "prefetch-too-small", detail, channel.opened_packet_number, channel.start_ns)


def judge_single(scene: Scene) -> None:
    """channel-ends: very many acknowledgements of one delivery each; what is given back is none."""
    channel = scene.channel
    busy, count = _busy_ns(channel), channel.acknowledged
    if channel.multiple_acks or count < ACKS_PER_SECOND or busy <= 0 or channel.delivery_doubt:
        return
    pace = count * SECOND_NS / busy
    if pace > ACKS_PER_SECOND:
        detail = f"{count} acknowledgements, {rate(pace)} a second, each of one delivery"
        _report(
            scene, "acknowledgements-single", detail, channel.opened_packet_number, channel.start_ns
        )


def judge_slow(scene: Scene) -> None:
    """channel-ends: deliveries that are acknowledged late, one by one."""
    channel = scene.channel
    if not channel.acknowledged or 2 * channel.multiple_acks > channel.acks:
        return
    if channel.delivery_doubt or not scene.complete:
        return
    mean = channel.ack_ns / channel.acknowledged
    often = channel.acknowledged >= FEW and mean >= SLOW_NS
    if often or channel.ack_ns_max >= VERY_SLOW_NS:
        took = took_text(channel.acknowledged, channel.ack_ns, channel.ack_ns_max)
        detail = f"{number_of(channel.acknowledged, 'acknowledgement')}, after {took}"
        _report(scene, "consumer-slow", detail, channel.slow_ack_number, channel.slow_ack_ns)


def foresee_slow(scene: Scene) -> None:
    """channel-waits: the oldest delivery is not acknowledged for very long."""
    channel = scene.channel
    if not scene.certain or scene.ts_ns is None or scene.foreseen("consumer-slow"):
        return
    entry = next(iter(channel.deliveries), None)
    if entry is None or not entry.wants or entry.ts_ns == NULL:
        return
    waited = scene.ts_ns - entry.ts_ns
    if waited >= VERY_SLOW_NS and 2 * channel.multiple_acks <= channel.acks:
        detail = f"delivery {entry.number} was not acknowledged for {duration(waited)}"
        detail += _from_queues(scene)
        scene.foresee("consumer-slow", detail, entry.packet_number, entry.ts_ns)


def _busy_ns(channel: object) -> int:
    """From the first delivery of a channel to its last acknowledgement."""
    busy: int = channel.last_ack_ns - channel.first_delivery_ns  # type: ignore[attr-defined]
    return max(busy, 0) if channel.acks and channel.delivered else 0  # type: ignore[attr-defined]


def note_cancelled(scene: Scene) -> None:
    """basic.cancel, consumer-cancelled: keep the name of the queue; many clients cancel before they
    close.
    """
    consumer = scene.facts.get("consumer")
    if scene.event is not None:
        consumer = scene.channel.by_tag.get(scene.event.consumer_tag)
    if consumer is not None and consumer.queue:
        names = scene.memory.setdefault(CANCELLED, {}).setdefault(scene.channel, {})
        remember(scene, names, consumer.queue, True)


@after(CANCELLED)
def forget_cancelled(scene: Scene) -> None:
    """channel-ends: the names of its queues were used by now."""
    names = scene.memory[CANCELLED].pop(scene.channel, {})
    for name in list(names):
        drop(scene, names, name)


def _from_queues(scene: Scene) -> str:
    """The queues that a channel's consumers read or have read, to be added."""
    names = queues_of(scene.channel, scene.memory.get(CANCELLED, {}).get(scene.channel, ()))
    return f" (from {names})" if names else ""


def _report(scene: Scene, code: str, detail: str, number: int | None, ts_ns: int | None) -> None:
    scene.report(code, detail + _from_queues(scene), number=number, ts_ns=ts_ns)


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (note_unlimited,),
    "basic.consume-ok": (note_accepted,),
    "basic.cancel": (note_cancelled,),
    "consumer-cancelled": (note_cancelled,),
    "channel-waits": (foresee_slow,),
    "channel-ends": (
        judge_unlimited,
        judge_backlog,
        judge_waits,
        judge_single,
        judge_slow,
        forget_cancelled,
    ),
}
