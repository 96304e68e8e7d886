"""What rules had to forget: said once, at the end."""

from __future__ import annotations

from amqpsniff.session.rules.scene import Rule, Scene


def judge(scene: Scene) -> None:
    """capture-ends: name the limits that were reached."""
    forgotten = dict(scene.everything.get("forgotten", {}))
    published = scene.tracker.repeats.forgotten
    if published:
        forgotten["publishes with an id"] = published
    if forgotten:
        scene.report("rules-limit", words(forgotten), count=len(forgotten))


def words(forgotten: dict[str, int]) -> str:
    """How much of what was forgotten."""
    return ", ".join(f"{count} {what}" for what, count in sorted(forgotten.items()))


RULES: dict[str, tuple[Rule, ...]] = {"capture-ends": (judge,)}
