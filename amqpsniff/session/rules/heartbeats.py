"""Heartbeats: off, too frequent, or missing.

A peer sends something at least every half interval, and is given up after two (measured on RabbitMQ
3.10.8: RST at 2.96 s for an interval of 1 s). What counts as silence is time without any frame.
Where both sides are silent and no packet comes from one of them, neither missed its heartbeats:
they did not get through.
"""

from __future__ import annotations

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.peers import (
    application,
    client_host,
    end_ns,
    ender,
    last_packets_ns,
    said,
    server_end,
    shown,
)
from amqpsniff.session.rules.remembering import report_once
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of
from amqpsniff.session.state import CLIENT, SERVER
from amqpsniff.units import duration

TOO_SHORT_S = 5
"""Interval in seconds below which pauses of a network or a process end connections."""


def interval(scene: Scene) -> int | None:
    """The interval of tune-ok in seconds, 0 when heartbeats are off; None when not captured."""
    beat = said(scene, "connection.tune-ok").get("heartbeat")
    return beat if isinstance(beat, int) else None


def _tuned(scene: Scene) -> None:
    beat = interval(scene)
    if beat is None or beat >= TOO_SHORT_S:
        return
    client = (client_host(scene), server_end(scene), application(scene))
    if beat == 0:
        report_once(scene, "heartbeat-disabled", client, lambda: f"{shown(scene)}: heartbeat 0")
    else:
        report_once(
            scene, "heartbeat-too-short", (client, beat), lambda: f"{shown(scene)}: {beat} s"
        )


def _opened(scene: Scene) -> None:
    """What was silent before does not count, nor the broker until this: heartbeats begin here."""
    session = scene.session
    broker_ns = session.silence_server_ns
    if scene.ts_ns is not None and session.last_server_ns > 0:
        broker_ns = max(broker_ns, scene.ts_ns - session.last_server_ns)
    scene.memory["silence"] = (session.silence_client_ns, broker_ns)


def _ended(scene: Scene) -> None:
    beat = interval(scene)
    if not beat or _longest_ns(scene) <= beat * SECOND_NS or not scene.certain:
        return
    if "silence" not in scene.memory:
        return
    found, cut = [], ""
    for side, unheard, at_end in _silences(scene):
        silence = unheard - _blocked_ns(scene) if side == "client" else unheard
        if silence > 2 * beat * SECOND_NS or (at_end and silence > beat * SECOND_NS):
            found.append(f"nothing from the {side} for {duration(silence)}")
            cut = "; then TCP was ended by the other side" if at_end else cut
    if found and interrupted_ns(scene):
        scene.report("path-interrupted", _interruption(scene, beat, cut))
    elif found:
        scene.report("heartbeat-missed", f"{', '.join(found)}, heartbeat {beat} s{cut}")


def interrupted_ns(scene: Scene) -> int:
    """Time at the end of a connection in which nothing got through; 0 if that is not known."""
    return quiet_ns(scene) if interval(scene) and scene.certain else 0


def quiet_ns(scene: Scene) -> int:
    """Time at the end of a connection without frames in which a host sent no packet; 0 if that is
    not longer than the heartbeat interval, or than the shortest usual one where it is not known.

    While a window is closed, or a program hangs, both hosts still send packets.
    """
    beat, session, now = interval(scene), scene.session, end_ns(scene)
    if beat == 0 or now is None or session.closed_by is not None:
        return 0
    longest_ns = (beat or TOO_SHORT_S) * SECOND_NS
    frames_ns = max(session.last_client_ns, session.last_server_ns)
    quiet: int = now - max(frames_ns, 0)
    if quiet <= longest_ns or now - min(last_packets_ns(scene)) <= longest_ns:
        return 0
    return quiet


def _interruption(scene: Scene, beat: int, cut: str) -> str:
    """The same in words: who still sent packets, and whether they were answered."""
    client, broker = last_packets_ns(scene)
    side, other, direction = ("client", "broker", scene.session.peer.client_direction)
    if client < broker:
        side, other, direction = ("broker", "client", 1 - direction)
    detail = f"no frame of either side for {duration(interrupted_ns(scene))}, heartbeat {beat} s; "
    detail += (
        f"no packet from the {other} for {duration(int(end_ns(scene) or 0) - min(client, broker))}"
    )
    again = scene.session.peer.conversation.retransmissions[direction]
    if again:
        detail += f", though the {side} sent {number_of(again, 'segment')} again"
    return detail + cut


def _longest_ns(scene: Scene) -> int:
    """No side was silent for longer; very much while a side said nothing."""
    session = scene.session
    before = max(session.silence_client_ns, session.silence_server_ns)
    at_end = (end_ns(scene) or 0) - min(session.last_client_ns, session.last_server_ns)
    return int(max(before, at_end))


def _silences(scene: Scene) -> list[tuple[str, int, bool]]:
    """(side, longest silence, whether the other side ended TCP in it) for both sides."""
    session, now = scene.session, end_ns(scene)
    ended = session.peer.conversation.ended is not None and session.closed_by is None
    ended_by = ender(scene)
    found = []
    sides = (
        ("client", session.silence_client_ns, session.last_client_ns, ended_by == SERVER),
        ("broker", session.silence_server_ns, session.last_server_ns, ended_by == CLIENT),
    )
    for place, (side, longest, last, by_other) in enumerate(sides):
        silence = longest if longest > scene.memory["silence"][place] else 0
        rest = 0
        if now is not None and last > 0 and session.closed_by is None:
            rest = now - last
        found.append((side, max(silence, rest), ended and by_other and rest >= silence))
    return found


def _blocked_ns(scene: Scene) -> int:
    """How long the connection was blocked: a client may wait then, and RabbitMQ does not watch."""
    session, now = scene.session, end_ns(scene)
    blocked: int = session.blocked_ns or 0
    if session.blocked_since is not None and now is not None:
        blocked += max(0, now - session.blocked_since)
    return blocked


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.tune-ok": (_tuned,),
    "connection.open-ok": (_opened,),
    "connection-ends": (_ended,),
}
"""The rules of this module by occasion."""
