"""How long messages are in their queues, where both their publish and their delivery are known."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of, queue_text, took_text

RESIDENCE = "queue-residence-long"

LONG_NS = SECOND_NS
"""Mean time in a queue that is long: with a consumer that keeps up it takes milliseconds."""

VERY_LONG_NS = 10 * SECOND_NS
"""A single time that is long."""

FEW = 10
"""Messages below which a mean says little."""


def judge(scene: Scene) -> None:
    """channel-ends: messages that waited for their consumer."""
    channel = scene.channel
    if is_long(channel):
        number, ts_ns, queue, published = channel.longest
        detail = words(channel, queue, published)
        scene.report(RESIDENCE, detail, number=number, ts_ns=ts_ns, count=channel.queued)


def is_long(times: Any) -> bool:
    """Whether times in a queue are; `queued`, `queued_ns` and `queued_ns_max` as of a channel."""
    often = times.queued >= FEW and times.queued_ns / times.queued >= LONG_NS
    return bool(often or times.queued_ns_max >= VERY_LONG_NS)


def words(times: Any, queue: str | None, published: int) -> str:
    """What is said of them; `published` is the packet of the publish with the longest."""
    took = took_text(times.queued, times.queued_ns, times.queued_ns_max)
    return (
        f"{queue_text(queue)}: {number_of(times.queued, 'message')}, delivered after {took} "
        f"(published in packet {published})"
    )


RULES: dict[str, tuple[Rule, ...]] = {"channel-ends": (judge,)}
