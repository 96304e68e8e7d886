"""Acknowledgements that mean no delivery."""

from __future__ import annotations

from amqpsniff.session.event import read_reason
from amqpsniff.session.rules.leftovers import (
    INVALID,
    STALE,
    left_before,
    note_begun,
    note_left,
    stale_words,
    wonder,
)
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.suspecting import suspect
from amqpsniff.session.state import CLIENT, SERVER


def unknown_tag(scene: Scene) -> None:
    """A client settled a delivery that is not outstanding."""
    channel = scene.channel
    if not scene.certain or not channel.known or channel.closing[CLIENT]:
        return
    if scene.tracker.settler.hits:
        return
    tag = scene.facts["tag"]
    scene.memory.setdefault("refused", {})[channel.number] = channel.incarnation
    if tag <= channel.last_tag:
        suspect(scene, INVALID, lambda: f"delivery {tag} {_why(scene, tag)}")
        return
    left = left_before(scene, tag)
    if left is None:
        question = wonder(scene, tag)
        suspect(scene, INVALID, lambda: f"delivery {tag} {_why(scene, tag)}", tag, question)
    else:
        suspect(scene, STALE, lambda: stale_words(tag, left, channel.opened_packet_number), tag)


def _why(scene: Scene, tag: int) -> str:
    """Why a tag means nothing."""
    channel = scene.channel
    if tag == 0:
        return "does not exist: 0 means all, and only with multiple"
    if tag > channel.last_tag:
        last = f"the last was {channel.last_tag}" if channel.last_tag >= 0 else "which had none"
        return f"was not sent on this channel, {last}{_elsewhere(scene, tag)}"
    if channel.acks == 1:
        return "needed no acknowledgement (no-ack)"
    if any(consumer.no_ack for consumer in channel.by_tag.values()):
        return "was settled before, or needed no acknowledgement (no-ack)"
    return "was settled before"


def _elsewhere(scene: Scene, tag: int) -> str:
    """The other channel of the connection where a tag is outstanding, in words."""
    other = scene.session.holder(tag, scene.channel)
    return "" if other is None else f"; it is outstanding on channel {other.number}"


def refused_tag(scene: Scene) -> None:
    """The broker says that a tag is unknown, where what was captured could not show it."""
    channel = scene.channel
    if scene.event.side != SERVER:
        return
    code, text, _ = read_reason(scene.event.octets)
    seen = scene.memory.get("refused", {}).get(channel.number) == channel.incarnation
    if code == 406 and text and "unknown delivery tag" in text and not seen:
        scene.report(INVALID, f"the broker says: {text}")


def gap(scene: Scene) -> None:
    """A delivery tag was skipped: what else is missing nobody knows."""
    tag, last = scene.facts["tag"], scene.facts["last"]
    if tag > last:
        scene.report("delivery-tag-gap", f"delivery tag {tag} follows {last}")
        scene.session.lossy = True


RULES: dict[str, tuple[Rule, ...]] = {
    "tag-unknown": (unknown_tag,),
    "channel.close": (refused_tag,),
    "channel-begins": (note_begun,),
    "channel-ends": (note_left,),
    "delivery-tag-gap": (gap,),
}
"""Rules by occasion."""
