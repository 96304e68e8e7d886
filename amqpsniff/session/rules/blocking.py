"""Connections that the broker blocks, and those who publish on them all the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from amqpsniff.session.rules.heartbeats import quiet_ns
from amqpsniff.session.rules.peers import end_ns, last_packets_ns
from amqpsniff.session.rules.remembering import across, report_at
from amqpsniff.session.rules.scene import Place, Rule, Scene, after
from amqpsniff.session.rules.wording import number_of, reason_text
from amqpsniff.session.state import SERVER
from amqpsniff.units import duration

ROUND_TRIP_NS = 500_000_000
"""Time after connection.blocked within which publishes were under way: a round trip around the
world, and time for the client's threads to learn of it."""

LATE = "published while blocked"
"""Name in `Scene.memory` of publishes that are not told yet: a `Late` for each channel."""


def was_blocked(session: Any) -> bool:
    """Whether the broker blocks a connection, or did, be it before the capture or in a hole."""
    hidden = session.lossy or not session.peer.began
    before = session.blocked_ns is None and hidden
    return bool(before or session.blocked_ns or session.blocked_since is not None)


class Block(NamedTuple):
    """A block: the broker's reason, packet and time, and whether its end may be in a hole."""

    reason: str
    number: int | None
    since: int | None
    hidden: bool = False


class Late:
    """Publishes of one channel of which only the broker's next frame says that they were late: it
    may have unblocked the connection before them, in packets that were not captured.
    """

    def __init__(self, scene: Scene, detail: str) -> None:
        self.detail = detail
        self.number = self.last = scene.number
        self.ts_ns = self.last_ns = scene.ts_ns
        self.count = 1


def _blocked(scene: Scene) -> None:
    known = scene.memory.get("blocked")
    if known is not None:
        if not known.hidden:
            return
        _say(scene, None, "")
    reason = reason_text(scene.event.arguments.get("reason"))
    scene.memory["blocked"] = Block(reason, scene.number, scene.ts_ns)
    scene.memory["while blocked"] = [0, 0]
    if scene.tracker.log is not None and scene.tracker.log.recorded is None:
        scene.foresee("connection-blocked", reason, scene.number, scene.ts_ns, absent=False)
    across(scene, judge_blocked, scene.session.peer.name()[0])


def judge_blocked(scene: Scene, connection_id: str) -> None:
    """One more connection is blocked: of how many at this time?"""
    counts = scene.everything.setdefault("blocked", {})
    counts[connection_id] = len(counts) + 1


@after("blocked")
def _unblocked(scene: Scene) -> None:
    _say(scene, scene.ts_ns, "")


@after("blocked")
def _ended(scene: Scene) -> None:
    if not quiet_ns(scene):
        _say(scene, end_ns(scene), " until the end")
    else:
        _tell_sure(scene)
        heard_ns = last_packets_ns(scene)[SERVER]
        _say(scene, heard_ns, " at least, until nothing came from the broker any more")


@after("blocked")
def _lost(scene: Scene) -> None:
    """From here on it is not known whether the connection is blocked."""
    if scene.facts["side"] != SERVER:
        return
    _tell_sure(scene)
    scene.memory["blocked"] = scene.memory["blocked"]._replace(hidden=True)


def _tell_sure(scene: Scene) -> None:
    """Report those who published before the broker said something else; of others it is not known
    whether they were still blocked.
    """
    for channel, late in scene.memory.pop(LATE, {}).items():
        if _is_sure(scene, late):
            _tell(scene, channel, late)
        else:
            scene.withdraw("publish-while-blocked", channel)


def _say(scene: Scene, now: int | None, until: str) -> None:
    """Report the block that is over at the packet where it began, and who published until then."""
    for channel, late in scene.memory.pop(LATE, {}).items():
        _tell(scene, channel, late)
    scene.withdraw("connection-blocked")
    reason, number, since, hidden = scene.memory.pop("blocked")
    publishes, under_way = scene.memory["while blocked"]
    parts = [reason]
    if hidden:
        parts.append("when it ended was not captured")
    elif now is not None and since is not None:
        parts.append(f"for {duration(max(0, now - since))}{until}")
    if publishes and not hidden:
        parts.append(f"{number_of(publishes, 'publish', 'publishes')} meanwhile")
        if under_way:
            share = "all" if under_way == publishes else f"{under_way} of them"
            parts[-1] += f" ({share} in the first {duration(ROUND_TRIP_NS)})"
    place = scene.place._replace(packet_number=number, ts_ns=since)
    across(scene, judge_unblocked, ", ".join(parts), place)


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
    scene.memory["while blocked"][0] += 1
    number, since = blocked.number, blocked.since
    if since is None or scene.ts_ns is None:
        return
    if scene.ts_ns - since <= ROUND_TRIP_NS:
        scene.memory["while blocked"][1] += 1
        return
    waiting = scene.memory.setdefault(LATE, {})
    late = waiting.get(scene.channel)
    if late is not None and _is_sure(scene, late):
        _tell(scene, scene.channel, late)
        late = None
    if late is not None:
        late.count += 1
        late.last, late.last_ns = scene.number, scene.ts_ns
        return
    waited = duration(scene.ts_ns - since)
    detail = f"published {waited} after connection.blocked in packet {number}"
    waiting[scene.channel] = Late(scene, detail)
    scene.foresee("publish-while-blocked", detail, scene.number, scene.ts_ns)


def _is_sure(scene: Scene, late: Late) -> bool:
    """Whether the broker said something else after these publishes: nothing is missing before."""
    return bool(scene.session.last_server_ns > late.last_ns)


def _tell(scene: Scene, channel: Any, late: Late) -> None:
    before, scene.channel = scene.channel, channel
    scene.report(
        "publish-while-blocked",
        late.detail,
        number=late.number,
        ts_ns=late.ts_ns,
        count=late.count,
        last=late.last,
    )
    scene.channel = before


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.blocked": (_blocked,),
    "connection.unblocked": (_unblocked,),
    "published-while-blocked": (_published,),
    "frames-lost": (_lost,),
    "connection-ends": (_ended,),
}
"""The rules of this module by occasion."""
