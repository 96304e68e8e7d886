"""Connections that the broker blocks, and those who publish on them all the same."""

from __future__ import annotations

from typing import Any

from amqpsniff.quantities import duration
from amqpsniff.session.rules.peers import end_ns
from amqpsniff.session.rules.remembering import Place, across, place_of, report_at
from amqpsniff.session.rules.scene import Rule, Scene, after
from amqpsniff.session.rules.wording import number_of, reason_text

ROUND_TRIP_NS = 500_000_000
"""Time after connection.blocked within which publishes were under way: a round trip around the
world, and time for the client's threads to learn of it."""


def was_blocked(session: Any) -> bool:
    """Whether the broker blocks a connection, or did, be it before the capture."""
    before = session.blocked_ns is None and not session.peer.began
    return bool(before or session.blocked_ns or session.blocked_since is not None)


def _blocked(scene: Scene) -> None:
    if "blocked" in scene.memory:
        return
    reason = reason_text(scene.event.arguments.get("reason"))
    scene.memory["blocked"] = (reason, scene.number, scene.ts_ns)
    scene.memory["while blocked"] = 0
    if scene.tracker.log is not None and scene.tracker.log.recorded is None:
        scene.foresee("connection-blocked", reason, scene.number, scene.ts_ns)
    across(scene, judge_blocked, scene.session.peer.name()[0])


def judge_blocked(scene: Scene, connection_id: str) -> None:
    """One more connection is blocked: of how many at this time?"""
    counts = scene.everything.setdefault("blocked", {})
    counts[connection_id] = len(counts) + 1


def _unblocked(scene: Scene) -> None:
    _say(scene, scene.ts_ns, "")


@after("blocked")
def _ended(scene: Scene) -> None:
    _say(scene, end_ns(scene), " until the end")


def _say(scene: Scene, now: int | None, until: str) -> None:
    """Report the block that is over, at the packet where it began."""
    blocked = scene.memory.pop("blocked", None)
    if blocked is None:
        return
    scene.withdraw("connection-blocked")
    reason, number, since = blocked
    parts = [reason]
    if now is not None and since is not None:
        parts.append(f"for {duration(now - since)}{until}")
    publishes = scene.memory["while blocked"]
    if publishes:
        parts.append(f"{number_of(publishes, 'publish', 'publishes')} meanwhile")
    place = place_of(scene)._replace(packet_number=number, ts_ns=since)
    across(scene, judge_unblocked, ", ".join(parts), tuple(place))


def judge_unblocked(scene: Scene, detail: str, where: tuple[Any, ...]) -> None:
    """A connection is not blocked any more."""
    place = Place(*where)
    count = scene.everything.setdefault("blocked", {}).pop(place.connection_id, 1)
    if count > 1:
        detail += f", {number_of(count, 'connection')} blocked at that time"
    report_at(scene, place, "connection-blocked", detail)


def _published(scene: Scene) -> None:
    blocked = scene.memory.get("blocked")
    if blocked is None:
        return
    scene.memory["while blocked"] += 1
    _, number, since = blocked
    if since is None or scene.ts_ns is None or scene.ts_ns - since <= ROUND_TRIP_NS:
        return
    if scene.again("publish-while-blocked"):
        return
    waited = duration(scene.ts_ns - since)
    detail = f"published {waited} after connection.blocked in packet {number}"
    scene.report("publish-while-blocked", detail)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.blocked": (_blocked,),
    "connection.unblocked": (_unblocked,),
    "published-while-blocked": (_published,),
    "connection-ends": (_ended,),
}
"""The rules of this module by occasion."""
