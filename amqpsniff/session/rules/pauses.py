"""Messages of which the client sends a part, and the rest when the broker acknowledges that.

A host does not acknowledge a segment at once that it does not answer: it waits, on Linux for 40 ms,
for something to send with it. A sender without TCP_NODELAY waits for that acknowledgement before it
sends another segment that is not full (RFC 896).
"""

from __future__ import annotations

from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.rules.wording import number_of
from amqpsniff.units import duration

OFTEN = 5
MAX_OF = 0.75
"""So many messages that wait, and this share of those that take as long, are no coincidence: a
program's own pauses of 42 ms ended within 1 ms of the acknowledgement half of the time (measured).
"""


class Paused:
    """Messages of one connection that paused on their way: how many, for how long in all."""

    def __init__(self, scene: Scene) -> None:
        self.number, self.ts_ns = scene.number, scene.ts_ns
        self.last = scene.number
        self.count = 0
        self.took_ns = 0


def note(scene: Scene) -> None:
    """paused: count it."""
    paused = scene.memory.get("paused")
    if paused is None:
        paused = scene.memory["paused"] = Paused(scene)
    paused.count += 1
    paused.took_ns += scene.facts["took_ns"]
    paused.last = scene.number


@after("paused")
def judge(scene: Scene) -> None:
    """connection-ends: as many messages waited as segments that were sent upon a late ACK."""
    paused = scene.memory["paused"]
    count = paused.count
    direction = scene.session.peer.client_direction
    waited = scene.session.peer.conversation.awaited_acks[direction]
    if min(count, waited) < OFTEN or waited < MAX_OF * count:
        return
    detail = (
        f"{number_of(count, 'publish', 'publishes')} took {duration(paused.took_ns / count)} on "
        f"average from method to end: {number_of(waited, 'time')} the client sent the rest when a "
        "delayed acknowledgement of TCP came"
    )
    scene.report(
        "delayed-ack-stall",
        detail,
        number=paused.number,
        ts_ns=paused.ts_ns,
        count=min(count, waited),
        last=paused.last,
    )


RULES: dict[str, tuple[Rule, ...]] = {"paused": (note,), "connection-ends": (judge,)}
