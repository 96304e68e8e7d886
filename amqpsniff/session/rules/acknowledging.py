"""Acknowledgements that mean no delivery, and deliveries that were never acknowledged."""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

from amqpsniff.session.methods import close_reason
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.suspecting import suspect
from amqpsniff.session.rules.wording import number_of
from amqpsniff.session.state import CLIENT, SERVER

LEFT_CHANNELS = 4_096
"""Channels whose outstanding tags are remembered after their end, the latest ones."""

LEFT_TAGS = 1_024
"""Outstanding tags remembered of such a channel; a prefetch count is rarely higher."""

_ANSWERED = {"acked": "acknowledged", "requeued": "given back", "discarded": "rejected"}


class Left(NamedTuple):
    """What was outstanding on a channel when it ended, and the packet of its end."""

    tags: frozenset[int]
    packet_number: int


def unknown_tag(scene: Scene) -> None:
    """A client settled a delivery that is not outstanding."""
    channel = scene.channel
    if not scene.certain or not channel.known or channel.closing[CLIENT]:
        return
    if scene.tracker.settler.hits:
        return
    tag = scene.facts["tag"]
    scene.memory.setdefault("refused", {})[channel.number] = channel.incarnation
    left = _left_before(scene) if tag > channel.last_tag else None
    if left is not None and tag in left.tags:
        detail = (
            f"delivery {tag} was sent on the channel that ended in packet {left.packet_number}, "
            f"and this one was opened later, in packet {channel.opened_packet_number}"
        )
        suspect(scene, "acknowledgement-stale", detail, tag)
        return
    awaited = tag if tag > channel.last_tag else None
    suspect(scene, "acknowledgement-invalid", f"delivery {tag} {_why(scene, tag)}", awaited)


def _why(scene: Scene, tag: int) -> str:
    """Why a tag means nothing."""
    channel = scene.channel
    if tag == 0:
        return "does not exist: 0 means all, and only with multiple"
    if tag > channel.last_tag:
        last = f"the last was {channel.last_tag}" if channel.last_tag >= 0 else "none was"
        return f"was not sent on this channel, {last}{_elsewhere(scene, tag)}"
    if channel.acks == 1:
        return "needed no acknowledgement (no-ack)"
    if any(consumer.no_ack for consumer in channel.by_tag.values()):
        return "was settled before, or needed no acknowledgement (no-ack)"
    return "was settled before"


def _elsewhere(scene: Scene, tag: int) -> str:
    """The other channel of the connection where a tag is outstanding, in words."""
    for lane in scene.session.lanes.values():
        other = lane.channel
        if other is not None and other is not scene.channel and tag in other.deliveries.entries:
            return f"; it is outstanding on channel {other.number}"
    return ""


def refused_tag(scene: Scene) -> None:
    """The broker says that a tag is unknown, where what was captured could not show it."""
    channel = scene.channel
    if scene.event.side != SERVER:
        return
    code, text, _ = close_reason(scene.event)
    seen = scene.memory.get("refused", {}).get(channel.number) == channel.incarnation
    if code == 406 and text and "unknown delivery tag" in text and not seen:
        scene.report("acknowledgement-invalid", f"the broker says: {text}")


def begun(scene: Scene) -> None:
    """A channel begins: the one before it, of a connection that TCP has ended, is over."""
    open_ones = scene.everything.setdefault("open-channels", {})
    for key in _places(scene):
        before = open_ones.pop(key, None)
        if before is not None and before.session.peer.conversation.ended:
            _leave(scene, key, before)
        open_ones[key] = scene.channel
    while len(open_ones) > LEFT_CHANNELS:
        del open_ones[next(iter(open_ones))]
        scene.forget("channels")


def remember_left(scene: Scene) -> None:
    """A channel ends: its outstanding tags may be acknowledged on the next one."""
    open_ones = scene.everything.get("open-channels", {})
    for key in _places(scene):
        if key not in open_ones or open_ones[key] is scene.channel:
            open_ones.pop(key, None)
            _leave(scene, key, scene.channel)


def _leave(scene: Scene, key: tuple[Any, ...], channel: Any) -> None:
    remembered = scene.everything.setdefault("left-outstanding", {})
    remembered.pop(key, None)
    if not channel.deliveries.entries:
        return
    number = channel.closed_packet_number or channel.session.peer.conversation.last_packet_number
    tags = frozenset(islice(channel.deliveries.entries, LEFT_TAGS))
    remembered[key] = Left(tags, number or 0)
    if len(remembered) > LEFT_CHANNELS:
        del remembered[next(iter(remembered))]
        scene.forget("channels")


def _left_before(scene: Scene) -> Left | None:
    """What the channel of this number had outstanding that ended before this one was opened."""
    remembered = scene.everything.get("left-outstanding", {})
    for key in _places(scene):
        left: Left | None = remembered.get(key)
        if left is not None and left.packet_number <= scene.channel.opened_packet_number:
            return left
    return None


def _places(scene: Scene) -> tuple[tuple[Any, ...], ...]:
    """Keys of a channel number: on its connection, and on any of the client's host."""
    connection_id, client, _ = scene.session.peer.name()
    host = client.rpartition(":")[0] if client else None
    number = scene.channel.number
    return (connection_id, number), (host, number, "host")


def in_doubt(scene: Scene) -> None:
    """A channel ended with deliveries that were not settled."""
    channel = scene.channel
    if not scene.certain or not channel.known or not channel.closed_by or not channel.unsettled:
        return
    conversation = scene.session.peer.conversation
    entries = [entry for entry in channel.deliveries.entries.values() if entry.wants]
    if not entries:
        return
    queues = sorted({entry.consumer.queue or "?" for entry in entries if entry.consumer})
    named = ", ".join(f"'{queue}'" for queue in queues[:3])
    scene.report(
        "deliveries-in-doubt",
        f"{number_of(channel.unsettled, 'delivery', 'deliveries')} of {named}, the first in "
        f"packet {entries[0].packet_number}, when closed by {channel.closed_by}",
        number=channel.closed_packet_number or conversation.last_packet_number,
        ts_ns=channel.end_ns or conversation.end_ns,
        count=channel.unsettled,
    )


def gap(scene: Scene) -> None:
    """A delivery tag was skipped: what else is missing nobody knows."""
    tag, last = scene.facts["tag"], scene.facts["last"]
    if tag > last:
        scene.report("delivery-tag-gap", f"delivery {tag} follows {last}")
        scene.session.lossy = True


RULES: dict[str, tuple[Rule, ...]] = {
    "tag-unknown": (unknown_tag,),
    "channel.close": (refused_tag,),
    "channel-begins": (begun,),
    "channel-ends": (in_doubt, remember_left),
    "delivery-tag-gap": (gap,),
}
"""Rules by occasion."""
