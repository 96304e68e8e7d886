"""Which rule is asked on which occasion."""

from __future__ import annotations

from amqpsniff.session.rules import (
    access,
    acknowledging,
    amounts,
    blocking,
    calls,
    celery,
    churn,
    closing,
    confirming,
    consuming,
    ending,
    flow,
    foreseeing,
    heartbeats,
    limits,
    misuse,
    network,
    opening,
    operations,
    pauses,
    publishing,
    queueing,
    queues,
    reading,
    refusals,
    requeueing,
    returning,
    sharing,
    sizes,
    stalls,
    stopping,
    suspecting,
    topology,
    waits,
    windows,
)
from amqpsniff.session.rules.scene import Rule

_MODULES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    suspecting.RULES,
    queues.RULES,
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
    stopping.RULES,
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
    amounts.RULES,
    foreseeing.RULES,
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
