"""Channels on which one side stopped the contents of the other (channel.flow, 0-9-1 1.5.2.3)."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.peers import end_ns
from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.rules.wording import number_of
from amqpsniff.session.state import CLIENT, SERVER
from amqpsniff.units import duration

STOPPED = "stopped"
"""Name in `Scene.memory` of channels that are stopped: (number, the side that did it) → packet and
time of its channel.flow, and how much the other side had sent when it agreed, None before that."""

_NAMES = ("the client", "the broker")


def _sent(channel: Any, side: int) -> int:
    """Messages that a side has sent on a channel."""
    return int(channel.published if side == CLIENT else channel.delivered)


def _asked(scene: Scene) -> None:
    active = scene.event.arguments.get("active")
    side = scene.event.side
    if active is None or scene.channel is None:
        return
    stopped = scene.memory.setdefault(STOPPED, {})
    if not active:
        stopped.setdefault((scene.channel.number, side), [scene.number, scene.ts_ns, None])
    else:
        _say(scene, side, scene.ts_ns, "")


@after(STOPPED)
def _agreed(scene: Scene) -> None:
    """What was sent until then was under way."""
    if scene.channel is None:
        return
    side = 1 - scene.event.side
    stopped = scene.memory[STOPPED].get((scene.channel.number, side))
    if stopped is not None and scene.event.arguments.get("active") is False:
        stopped[2] = _sent(scene.channel, scene.event.side)


@after(STOPPED)
def _ended(scene: Scene) -> None:
    for side in (CLIENT, SERVER):
        _say(scene, side, end_ns(scene), " until the end")


def _say(scene: Scene, side: int, now: int | None, until: str) -> None:
    """Report what is over, at the packet where it began; after a loss it may have been earlier."""
    stopped = scene.memory.get(STOPPED, {}).pop((scene.channel.number, side), None)
    if stopped is None or stopped[2] is None:
        return
    number, since, before = stopped
    detail = f"{_NAMES[side]} stopped {_NAMES[1 - side]}"
    if scene.complete:
        if now is not None and since is not None:
            detail += f" for {duration(now - since)}{until}"
        sent = _sent(scene.channel, 1 - side) - before
        if sent > 0:
            detail += f", {number_of(sent, 'message')} sent all the same"
    scene.report("channel-stopped", detail, number=number, ts_ns=since)


RULES: dict[str, tuple[Rule, ...]] = {
    "channel.flow": (_asked,),
    "channel.flow-ok": (_agreed,),
    "channel-ends": (_ended,),
}
"""The rules of this module by occasion."""
