"""Consumers and how much they may hold: windows that are full for good, or overfull."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of
from amqpsniff.session.state import CLIENT
from amqpsniff.units import duration

STUCK_NS = 30_000_000_000
"""A window that stays full so long is suspicious, whatever is usual."""

STUCK_TIMES = 10
"""And so is only what lasts so many times longer than an acknowledgement takes on average."""

HELD_WITHOUT_LIMIT = 1_000
"""Deliveries that count as a full window where there is no prefetch count."""

CANCELLED = "cancelled while stuck"
"""Name in `Scene.memory` of consumers that were stuck when their client cancelled them: detail and
oldest delivery, of the first one on each channel."""

OLDEST = "oldest deliveries"
"""Name in `Scene.memory` of the oldest deliveries of a channel's consumers; see `_oldest`."""

FEW_HELD = 1_000
"""Deliveries that are gone through whenever something is asked of a channel."""

HELD_A_CHANGE = 8
"""Of more, this many for each delivery and acknowledgement since they were gone through last."""

EXCESS_TIMES = 2
"""A few deliveries too many for a moment can be acknowledgements that were captured late; so many
times what is allowed cannot, nor can what is too much when the consumer is over."""


def stuck(scene: Scene) -> None:
    """A channel is over: whether a consumer held all it may and had stopped acknowledging."""
    if scene.channel.last_delivery_ns <= 0:
        return
    scene.withdraw("consumer-stuck", scene.channel)
    end_ns = scene.channel.end_ns or scene.session.peer.conversation.end_ns
    scene.memory.get(OLDEST, {}).pop(scene.channel, None)
    for detail, entry in _stuck(scene, end_ns):
        scene.report("consumer-stuck", detail, number=entry.packet_number, ts_ns=entry.ts_ns)
    scene.memory.get(OLDEST, {}).pop(scene.channel, None)
    scene.memory.get(CANCELLED, {}).pop(scene.channel, None)


def foresee_stuck(scene: Scene) -> None:
    """channel-waits: whether one does by now. It may go on yet, and then it was not stuck."""
    detail, entry = next(_stuck(scene, scene.ts_ns), ("", None))
    if entry is None:
        scene.withdraw("consumer-stuck", scene.channel)
    else:
        scene.foresee("consumer-stuck", detail, entry.packet_number, entry.ts_ns)


def note_cancelled(scene: Scene) -> None:
    """A client cancels a consumer, as many do before they close: it may be stuck by then.

    What it holds can be acknowledged yet, so that is judged when the channel is over.
    """
    consumer = scene.channel.by_tag.get(scene.event.consumer_tag)
    if scene.event.side != CLIENT or consumer is None:
        return
    for noted in _stuck_now(scene, scene.ts_ns, (consumer,)):
        scene.memory.setdefault(CANCELLED, {}).setdefault(scene.channel, noted)


def _stuck(scene: Scene, now_ns: int | None) -> Iterator[tuple[str, Any]]:
    """Consumers that are stuck: in words, and the oldest delivery of each."""
    noted = scene.memory.get(CANCELLED, {}).get(scene.channel, ("", None))
    if noted[1] is not None and noted[1].held:
        yield noted
    for each in _stuck_now(scene, now_ns, scene.channel.by_tag.values()):
        if each[1] is not noted[1]:  # cancelled without an answer, it still looks open
            yield each


def _stuck_now(
    scene: Scene, now_ns: int | None, consumers: Iterable[Any]
) -> Iterator[tuple[str, Any]]:
    """The same of `consumers` that were not cancelled."""
    channel = scene.channel
    if not scene.certain or not channel.known or not channel.unsettled or now_ns is None:
        return
    quiet_ns = now_ns - max(channel.last_ack_ns, channel.last_delivery_ns)
    usual_ns = channel.ack_ns // channel.acknowledged if channel.acknowledged else 0
    if channel.last_delivery_ns <= 0 or quiet_ns < max(STUCK_NS, STUCK_TIMES * usual_ns):
        return
    for consumer, limit in _full(channel, consumers):
        entry = _oldest(scene).get(consumer)
        if entry is None or not entry.held:
            continue
        allowed = f"of {limit} allowed" if limit else "without a limit"
        detail = (
            f"consumer '{consumer.tag}' of queue '{consumer.queue}' held "
            f"{number_of(consumer.unsettled, 'delivery', 'deliveries')} {allowed}, the oldest from "
            f"packet {entry.packet_number}, and acknowledged nothing for {duration(quiet_ns)}"
        )
        yield detail, entry


def _oldest(scene: Scene) -> dict[Any, Any]:
    """The oldest delivery that each consumer of the channel holds, by the consumer.

    Where many are held they are gone through again only after as many changes as that is worth:
    meanwhile some may be settled, or those of new consumers missing.
    """
    channel = scene.channel
    changes, number = channel.delivered + channel.acks, len(channel.deliveries)
    known: dict[Any, tuple[int | None, dict[Any, Any]]] = scene.memory.setdefault(OLDEST, {})
    then, oldest = known.get(channel, (None, {}))
    more = number if then is None else HELD_A_CHANGE * (changes - then)
    if more and (number <= FEW_HELD or more >= number):
        oldest = {}
        for entry in channel.deliveries:
            oldest.setdefault(entry.consumer, entry)
        known[channel] = changes, oldest
    return oldest


def _full(channel: Any, consumers: Iterable[Any]) -> Iterator[tuple[Any, int | None]]:
    """Those of `consumers` whose window is full, with their limits, 0 or None for none."""
    for consumer in consumers:
        limit = consumer.prefetch
        if channel.prefetch_shared and channel.unsettled >= channel.prefetch_shared:
            yield consumer, channel.prefetch_shared
        elif consumer.unsettled >= (limit or HELD_WITHOUT_LIMIT):
            yield consumer, limit


def overfull(scene: Scene) -> None:
    """A consumer is over: whether it ever held more than its prefetch count."""
    channel, event = scene.channel, scene.event
    if not scene.certain or not channel.known or channel.mode == "tx":
        return
    consumers = channel.by_tag.values()
    if event is not None:
        if event.side != CLIENT:
            return
        consumer = channel.by_tag.get(event.consumer_tag)
        consumers = () if consumer is None else (consumer,)
    oldest: dict[Any, Any] = {}
    for consumer in consumers:
        limit = consumer.prefetch
        if not limit or limit != channel.prefetch_count:
            continue
        most, last = consumer.unsettled_max, consumer.unsettled
        held = most if most > EXCESS_TIMES * limit else last
        if held > limit:
            if scene.number is None and not oldest:
                for entry in channel.deliveries:
                    oldest.setdefault(entry.consumer, entry)
            first = oldest.get(consumer)
            scene.report(
                "prefetch-exceeded",
                f"consumer '{consumer.tag}' of queue '{consumer.queue}' held "
                f"{held} deliveries of {limit} allowed",
                number=None if first is None else first.packet_number,
                ts_ns=None if first is None else first.ts_ns,
            )


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.cancel": (note_cancelled, overfull),
    "channel-waits": (foresee_stuck,),
    "channel-ends": (stuck, overfull),
}
"""Rules by occasion."""
