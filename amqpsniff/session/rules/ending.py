"""How connections end: without a close, after one that nobody answered, or by something between."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.heartbeats import interval
from amqpsniff.session.rules.opening import STEPS
from amqpsniff.session.rules.peers import (
    application,
    began_ns,
    end_ns,
    ended_by_server,
    ender,
    server_end,
)
from amqpsniff.session.rules.remembering import across, kept, report_once
from amqpsniff.session.rules.scene import Place, Rule, Scene
from amqpsniff.session.rules.wording import number_of
from amqpsniff.spec import SIDES
from amqpsniff.units import duration

MIN_IDLE_NS = 30_000_000_000
"""Idle time below which nobody cuts a connection for it; the shortest known is 60 s."""

SAME_IDLE_NS = 2_000_000_000
"""How far idle times of one cause may differ: timers of firewalls tick in seconds."""

CUT_CONNECTIONS = 3
"""Connections cut after the same idle time that are no accident."""

_SIDES = ("the client", "the broker")

_IDLE_KEPT = 64
"""Idle times remembered for a server; the oldest are forgotten."""


def _ended(scene: Scene) -> None:
    session = scene.session
    if session.peer.conversation.ended is None or not scene.complete or not session.lanes:
        return
    if session.closed_by is None:
        if "parted" not in scene.memory or session.peer.began:
            _unclean(scene)
    elif not session.over and "parted" not in scene.memory and _was_open(session):
        _unanswered(scene)


def _was_open(session: Any) -> bool:
    """True if a connection was open: of one from before the capture its channels show that."""
    if "connection.open-ok" in session.facts or session.peer.began:
        return "connection.open-ok" in session.facts
    return any(session.lanes) and not any(step in session.facts for step in STEPS)


def _parted(scene: Scene) -> None:
    """close-ok: the close may have come before the capture, or be read later where it begins."""
    scene.memory["parted"] = True


def _unclean(scene: Scene) -> None:
    """TCP ended and nobody had closed the connection."""
    conversation = scene.session.peer.conversation
    side = ender(scene)
    who = "TCP was ended" if side is None else f"{_SIDES[side]} ended TCP"
    how = conversation.ended.upper()
    parts = [f"{who}{_age(scene)} ({how}){_last_frames(scene)}"]
    if ended_by_server(scene):
        scene.memory.setdefault("failure", f"the broker ended TCP ({how})")
    left = _left(scene)
    if left:
        parts.append(f"left open: {left}")
    scene.report("disconnect-unclean", "; ".join(parts))
    _cut(scene)


def _age(scene: Scene) -> str:
    began, now = began_ns(scene), end_ns(scene)
    return "" if began is None or now is None else f" after {duration(now - began)}"


def _last_frames(scene: Scene) -> str:
    """How long before the end each side's last frame was."""
    now, session = end_ns(scene), scene.session
    sides = (("client", session.last_client_ns), ("broker", session.last_server_ns))
    if now is None:
        return ""
    times = [f"the {side}'s {duration(now - last)} before" for side, last in sides if last > 0]
    return ", last frames: " + ", ".join(times) if times else ""


def _left(scene: Scene) -> str:
    """What was not done yet, on all channels."""
    channels = [lane.channel for lane in scene.session.lanes.values() if lane.channel is not None]
    unsettled = sum(channel.unsettled for channel in channels)
    unconfirmed = sum(channel.unconfirmed for channel in channels)
    consumers = sum(len(channel.by_tag) for channel in channels)
    counts = (
        number_of(len(channels), "channel") if channels else "",
        number_of(consumers, "consumer") if consumers else "",
        number_of(unsettled, "delivery", "deliveries") + " not acknowledged" if unsettled else "",
        number_of(unconfirmed, "publish", "publishes") + " not confirmed" if unconfirmed else "",
    )
    return ", ".join(count for count in counts if count)


# after a close


def _after_close(scene: Scene) -> None:
    """The answer to the close comes late, or not at all, where frames are missing."""
    if scene.certain:
        side = _SIDES[scene.facts["side"]]
        scene.report("traffic-after-close", f"{side} sent {scene.facts['method']} after its close")


def _unanswered(scene: Scene) -> None:
    """TCP ended between connection.close and close-ok."""
    session = scene.session
    side = ender(scene)
    if side is None or session.closed_by == SIDES[side]:
        return
    detail = f"{_SIDES[side]} ended TCP and did not answer connection.close in packet "
    detail += str(session.close_packet_number)
    scene.report("traffic-after-close", detail)


# something between


def _cut(scene: Scene) -> None:
    """A connection that ended while it was idle: after the same time as others?"""
    now, session = end_ns(scene), scene.session
    last = max(session.last_client_ns, session.last_server_ns)
    if now is None or last <= 0 or now - last < MIN_IDLE_NS:
        return
    idle, beat = now - last, interval(scene)
    if beat is None or 0 < beat * SECOND_NS <= idle:
        return
    beats = f"a heartbeat of {beat} s" if beat else "heartbeats off"
    place = scene.place
    across(scene, judge_cut, server_end(scene), idle, application(scene), beats, place)


def judge_cut(
    scene: Scene, server: str, idle: int, name: str, beats: str, place: tuple[Any, ...]
) -> None:
    """One more connection that ended while it was idle."""
    times = kept(scene, "idle", server, list)
    times.append(idle)
    del times[:-_IDLE_KEPT]
    same = [one for one in times if abs(one - idle) <= SAME_IDLE_NS]
    if len(same) >= CUT_CONNECTIONS:
        ends = f"{len(same)} connections to {server} ended after {_span(same)} without traffic"
        detail = f"{ends}; the last{f', of {name},' if name else ''} had {beats}"
        here = Place(*place)
        report_once(scene, "idle-connection-cut", server, lambda: detail, here, len(same))


def _span(times: list[int]) -> str:
    """Times that are nearly alike, in words."""
    least, most = duration(min(times)), duration(max(times))
    return least if least == most else f"{least} to {most}"


RULES: dict[str, tuple[Rule, ...]] = {
    "after-close": (_after_close,),
    "connection.close-ok": (_parted,),
    "connection-ends": (_ended,),
}
"""The rules of this module by occasion."""
