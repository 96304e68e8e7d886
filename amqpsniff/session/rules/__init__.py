"""The rules that raise findings about sessions: which one is asked on which occasion.

A rule is a function of a `Scene`. Each module here has a table `RULES`: occasion → rules. An
occasion is the name of a method that the tracker hands to a handler (asked after the handler), or
one of `OCCASIONS`. Rules keep what they need to remember in `Scene.memory`, which lives as long as
the connection, or in `Scene.everything`, which lives as long as the tracker.
"""

from __future__ import annotations

from amqpsniff.session.rules import (
    calls,
    celery,
    churn,
    confirming,
    flow,
    reading,
    sharing,
    sizes,
    stalls,
    topology,
    waits,
)
from amqpsniff.session.rules.scene import OCCASIONS, Rule, Scene

_MODULES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    waits.RULES,
    calls.RULES,
    celery.RULES,
    churn.RULES,
    confirming.RULES,
    flow.RULES,
    sharing.RULES,
    sizes.RULES,
    stalls.RULES,
    topology.RULES,
    reading.RULES,
)


def _gather() -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for table in _MODULES:
        for occasion, more in table.items():
            rules[occasion] = (*rules.get(occasion, ()), *more)
    return rules


RULES = _gather()
"""Every rule by its occasion."""

__all__ = ["OCCASIONS", "RULES", "Rule", "Scene"]
