"""What rules had to forget: said once, at the end."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.scene import Rule, Scene


def judge(scene: Scene) -> None:
    """capture-ends: name the limits that were reached."""
    forgotten = dict(scene.everything.get("forgotten", {}))
    returns = scene.everything.get("came-again")
    forgotten |= of_messages(scene.tracker.repeats, returns)
    records = scene.tracker.log.recorded
    if records is not None:
        records.forget(forgotten)
    elif forgotten:
        scene.report("rules-limit", words(forgotten), count=len(forgotten))


def of_messages(repeats: Any, returns: Any) -> dict[str, int]:
    """What was forgotten of messages; `returns` may be None."""
    counts = {
        "publishes with an id": repeats.forgotten,
        "messages that came again": 0 if returns is None else returns.forgotten,
    }
    return {what: count for what, count in counts.items() if count}


def words(forgotten: dict[str, int]) -> str:
    """How much of what was forgotten."""
    counts = (f"{what} ({count})" for what, count in sorted(forgotten.items()))
    return "forgotten: " + ", ".join(counts)


RULES: dict[str, tuple[Rule, ...]] = {"capture-ends": (judge,)}
