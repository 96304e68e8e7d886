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
        detail = ", ".join(f"{count} {what}" for what, count in sorted(forgotten.items()))
        scene.report("rules-limit", detail, count=len(forgotten))


RULES: dict[str, tuple[Rule, ...]] = {"capture-ends": (judge,)}
