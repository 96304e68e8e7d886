"""When rules are asked about what goes on, so that a person need not wait for its end.

Most of what hangs is judged when its channel or connection is over, which may be a long time after
somebody who watches wants to know. A finding that is foreseen is made earlier, by the time of the
packets alone: it is the same in a file and on an interface.

Most of what is foreseen rests on something that did not come. It is no news while bytes are waited
for that may bring it, and it is taken back once frames may be missing.
"""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.scene import FORESEEN, Rule, Scene, after

LOOK_BITS = 32
"""Bits of a time that are left out: a connection is looked at when a frame of it comes in other
4.3 s than the one before. That is seldom enough to cost nothing, and the same however they come in.
"""

MAX_LOOKED = 64
"""Channels of a connection that are looked at: who opens more has the pattern in those."""

LOOKED_AT_A_FRAME = 16
"""Steps of looking for each frame of the connection beyond those for its first channel: a quarter
of a channel where something waits. A connection with many of them, where little comes, is
looked at with every few frames."""

CHANNEL_STEPS = 64
"""Steps that the rules of one channel take, besides one for each consumer."""

NEXT_LOOK = "next look"
"""Name in `Scene.memory` of the number of frames after which a connection is looked at again."""


def look(tracker: Any, session: Any, number: int, ts_ns: int) -> None:
    """Ask the rules of `channel-waits` and `connection-waits` where something waits, or did when it
    was foreseen, and nobody closed it.
    """
    if session.closed_by is not None or session.frames < session.memory.get(NEXT_LOOK, 0):
        return
    steps = session.calls
    foreseen = bool(session.memory.get(FORESEEN))
    waits = foreseen or session.calls > 0
    for _, lane in zip(range(MAX_LOOKED), session.lanes.values(), strict=False):
        channel = lane.channel
        waits = waits or bool(lane.requests)
        steps += 1 + min(len(lane.requests), MAX_LOOKED)
        if channel is None or any(channel.closing):
            continue
        if foreseen or channel.unconfirmed > 0 or channel.unsettled > 0:
            steps += CHANNEL_STEPS + len(channel.by_tag)
            tracker.tell("channel-waits", channel, number, ts_ns, {})
    if waits:
        tracker.tell_of("connection-waits", session, number, ts_ns, {})
    if steps > CHANNEL_STEPS:
        pause = (steps - CHANNEL_STEPS) // LOOKED_AT_A_FRAME
        session.memory[NEXT_LOOK] = session.frames + pause


@after(FORESEEN)
def take_back(scene: Scene) -> None:
    """frames-lost, connection-ends: what seemed to be missing may not have been captured."""
    if scene.complete:
        return
    foreseen = scene.memory[FORESEEN]
    for code, channel in [key for key, noted in foreseen.items() if noted.absent]:
        scene.withdraw(code, channel)


RULES: dict[str, tuple[Rule, ...]] = {
    "frames-lost": (take_back,),
    "connection-ends": (take_back,),
}
"""The rules of this module by occasion; the last to be asked."""
