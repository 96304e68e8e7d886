"""How long messages are in their queues, where both their publish and their delivery are known."""

from __future__ import annotations

from amqpsniff.session.rules.amounts import SECOND, queue_text, time_text
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of

LONG_NS = SECOND
"""Mean time in a queue that is long: with a consumer that keeps up it takes milliseconds."""

VERY_LONG_NS = 10 * SECOND
"""A single time that is long."""

FEW = 10
"""Messages below which a mean says little."""


def judge(scene: Scene) -> None:
    """channel-ends: messages that waited for their consumer."""
    channel = scene.channel
    if not channel.queued:
        return
    mean = channel.queued_ns / channel.queued
    often = channel.queued >= FEW and mean >= LONG_NS
    if not often and channel.queued_ns_max < VERY_LONG_NS:
        return
    number, ts_ns, queue, published = channel.longest
    detail = (
        f"{queue_text(queue)}: {number_of(channel.queued, 'message')} came {time_text(mean)} after "
        f"their publish on average and {time_text(channel.queued_ns_max)} at most, that from "
        f"packet {published}"
    )
    scene.report("queue-residence-long", detail, number=number, ts_ns=ts_ns, count=channel.queued)


RULES: dict[str, tuple[Rule, ...]] = {"channel-ends": (judge,)}
