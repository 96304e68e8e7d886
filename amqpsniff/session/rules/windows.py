"""Consumers and how much they may hold: windows that are full for good, or overfull."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.quantities import duration
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of
from amqpsniff.session.state import CLIENT

STUCK_NS = 30_000_000_000
"""A window that stays full so long is suspicious, whatever is usual."""

STUCK_TIMES = 10
"""And so is only what lasts so many times longer than an acknowledgement takes on average."""

HELD_WITHOUT_LIMIT = 1_000
"""Deliveries that count as a full window where there is no prefetch count."""

CANCELLED = "cancelled while stuck"
"""Name in `Scene.memory` of consumers that were stuck when their client cancelled them: detail and
oldest delivery, of the first one on each channel."""

EXCESS_TIMES = 2
"""A few deliveries too many for a moment can be acknowledgements that were captured late; so many
times what is allowed cannot, nor can what is too much when the consumer is over."""


def stuck(scene: Scene) -> None:
    """A channel is over: whether a consumer held all it may and had stopped acknowledging."""
    scene.withdraw("consumer-stuck", scene.channel)
    end_ns = scene.channel.end_ns or scene.session.peer.conversation.end_ns
    for detail, entry in _stuck(scene, end_ns):
        scene.report("consumer-stuck", detail, number=entry.packet_number, ts_ns=entry.ts_ns)
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
    if scene.event.side != CLIENT:
        return
    for detail, entry in _stuck_now(scene, scene.ts_ns):
        if entry.consumer.tag == scene.event.consumer_tag:
            scene.memory.setdefault(CANCELLED, {}).setdefault(scene.channel, (detail, entry))


def _stuck(scene: Scene, now_ns: int | None) -> Iterator[tuple[str, Any]]:
    """Consumers that are stuck: in words, and the oldest delivery of each."""
    noted = scene.memory.get(CANCELLED, {}).get(scene.channel, ("", None))
    if noted[1] is not None and any(one is noted[1] for one in scene.channel.deliveries):
        yield noted
    for each in _stuck_now(scene, now_ns):
        if each[1] is not noted[1]:  # cancelled without an answer, it still looks open
            yield each


def _stuck_now(scene: Scene, now_ns: int | None) -> Iterator[tuple[str, Any]]:
    """The same of consumers that were not cancelled."""
    channel = scene.channel
    if not scene.certain or not channel.known or not channel.unsettled or now_ns is None:
        return
    quiet_ns = now_ns - max(channel.last_ack_ns, channel.last_delivery_ns)
    usual_ns = channel.ack_ns // channel.acknowledged if channel.acknowledged else 0
    if channel.last_delivery_ns <= 0 or quiet_ns < max(STUCK_NS, STUCK_TIMES * usual_ns):
        return
    for consumer, limit in _full(channel):
        entry = next((one for one in channel.deliveries if one.consumer is consumer), None)
        if entry is None:
            continue
        allowed = f"of {limit} allowed" if limit else "without a limit"
        detail = (
            f"consumer '{consumer.tag}' of queue '{consumer.queue}' held "
            f"{number_of(consumer.unsettled, 'delivery', 'deliveries')} {allowed}, the oldest from "
            f"packet {entry.packet_number}, and acknowledged nothing for {duration(quiet_ns)}"
        )
        yield detail, entry


def _full(channel: Any) -> Iterator[tuple[Any, int | None]]:
    """Consumers whose window is full, with their limits, 0 or None for none."""
    for consumer in channel.by_tag.values():
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
        consumers = [one for one in consumers if one.tag == event.consumer_tag]
    for consumer in consumers:
        limit = consumer.prefetch
        if not limit or limit != channel.prefetch_count:
            continue
        most, last = consumer.unsettled_max, consumer.unsettled
        held = most if most > EXCESS_TIMES * limit else last
        if held > limit:
            held_ones = (one for one in channel.deliveries if one.consumer is consumer)
            oldest = next(held_ones, None) if scene.number is None else None
            scene.report(
                "prefetch-exceeded",
                f"consumer '{consumer.tag}' of queue '{consumer.queue}' held "
                f"{held} deliveries of {limit} allowed",
                number=None if oldest is None else oldest.packet_number,
                ts_ns=None if oldest is None else oldest.ts_ns,
            )


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.cancel": (note_cancelled, overfull),
    "channel-waits": (foresee_stuck,),
    "channel-ends": (stuck, overfull),
}
"""Rules by occasion."""
