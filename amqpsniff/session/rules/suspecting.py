"""Faults that are told only when it is sure that the other side's packets show no excuse.

The two directions of a connection are read apart: where packets of one are missing or late, the
other is ahead of it for a while, and acknowledges what was not seen yet. So a suspicion waits until
the broker closes the channel or connection, or until the connection is over, and is dropped when
something turned out to be missing or late by then.
"""

from __future__ import annotations

from collections.abc import Callable

from amqpsniff.session.rules.leftovers import Question, ask
from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.state import SERVER

MAX_SUSPICIONS = 1_000
"""Channels, codes and tags of one connection that wait; a connection has few faults before it is
closed."""


class Suspicion:
    """A fault of one kind on one channel: where it was seen first and last, and how often.

    `awaited`: a delivery tag that excuses it when it comes after all; None for none. `question`:
    what only a reader of all connections can say of it; None for nothing.
    """

    def __init__(
        self,
        scene: Scene,
        code: str,
        detail: Callable[[], str],
        awaited: int | None,
        question: Question | None,
    ) -> None:
        self.code = code
        self.detail = detail()
        self.channel = scene.channel
        self.number = scene.number
        self.ts_ns = scene.ts_ns
        self.last = scene.number
        self.count = 1
        self.awaited = awaited
        self.question = question

    @property
    def excused(self) -> bool:
        """Whether what seemed to be missing came late."""
        return self.awaited is not None and self.channel.last_tag >= self.awaited


def suspect(
    scene: Scene,
    code: str,
    detail: Callable[[], str],
    awaited: int | None = None,
    question: Question | None = None,
) -> None:
    """Tell of a fault on the scene's channel when it is sure; see `Suspicion`.

    `detail` gives its words, when they are needed.
    """
    waiting = scene.memory.setdefault("suspicions", {})
    key = (code, scene.channel.number, scene.channel.incarnation, awaited)
    known = waiting.get(key)
    if known is not None:
        known.count += 1
        known.last = scene.number
    elif len(waiting) < MAX_SUSPICIONS:
        waiting[key] = Suspicion(scene, code, detail, awaited, question)
    else:
        scene.forget("suspicions")


@after("suspicions")
def _answered(scene: Scene) -> None:
    if scene.event.side == SERVER:
        tell(scene)


@after("suspicions")
def _excuse(scene: Scene) -> None:
    """Packets of a connection that come in another order than they were sent leave it uncertain."""
    if any(one.excused for one in scene.memory.get("suspicions", {}).values()):
        scene.session.lossy = True


@after("suspicions")
def tell(scene: Scene) -> None:
    """Everything of the other side is there: tell what was suspected."""
    _excuse(scene)
    waiting = scene.memory.pop("suspicions", {})
    if not scene.certain:
        return
    before = scene.channel
    for one in waiting.values():
        scene.channel = one.channel
        scene.report(
            one.code,
            one.detail,
            number=one.number,
            ts_ns=one.ts_ns,
            count=one.count,
            last=one.last,
            variant=None if one.question is None else ask(scene, one.question),
        )
    scene.channel = before


RULES: dict[str, tuple[Rule, ...]] = {
    "channel.close": (_answered,),
    "channel-ends": (_excuse,),
    "connection.close": (_answered,),
    "connection-ends": (tell,),
}
"""Rules by occasion."""
