"""The rules that raise findings about sessions: which one is asked on which occasion.

A rule is a function of a `Scene`. Each module here has a table `RULES`: occasion → rules. An
occasion is the name of a method that the tracker hands to a handler (asked after the handler), or
one of `OCCASIONS`. Rules keep what they need to remember in `Scene.memory`, which lives as long as
the connection, or in `Scene.everything`, which lives as long as the tracker.
"""

from __future__ import annotations

from amqpsniff.session.rules import (
    access,
    acknowledging,
    blocking,
    calls,
    celery,
    churn,
    closing,
    confirming,
    consuming,
    ending,
    flow,
    heartbeats,
    limits,
    misuse,
    network,
    opening,
    operations,
    pauses,
    publishing,
    queueing,
    reading,
    refusals,
    requeueing,
    returning,
    sharing,
    sizes,
    stalls,
    suspecting,
    topology,
    waits,
    windows,
)
from amqpsniff.session.rules.scene import OCCASIONS, Rule, Scene

_MODULES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    suspecting.RULES,
    acknowledging.RULES,
    consuming.RULES,
    misuse.RULES,
    publishing.RULES,
    refusals.RULES,
    requeueing.RULES,
    windows.RULES,
    opening.RULES,
    closing.RULES,
    access.RULES,
    operations.RULES,
    heartbeats.RULES,
    blocking.RULES,
    ending.RULES,
    network.RULES,
    waits.RULES,
    calls.RULES,
    celery.RULES,
    churn.RULES,
    confirming.RULES,
    flow.RULES,
    queueing.RULES,
    sharing.RULES,
    sizes.RULES,
    stalls.RULES,
    pauses.RULES,
    topology.RULES,
    reading.RULES,
    returning.RULES,  # what the others found is known by then
    limits.RULES,
)


Asked = tuple[str | None, Rule]
"""A rule, and what must have been noted for it to be asked; see `scene.after`."""


def _gather() -> dict[str, tuple[Asked, ...]]:
    rules: dict[str, tuple[Asked, ...]] = {}
    for table in _MODULES:
        for occasion, more in table.items():
            asked = [(getattr(rule, "noted", None), rule) for rule in more]
            rules[occasion] = (*rules.get(occasion, ()), *asked)
    return rules


RULES = _gather()
"""Every rule by its occasion."""

__all__ = ["OCCASIONS", "RULES", "Asked", "Rule", "Scene"]
