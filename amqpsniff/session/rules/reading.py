"""Sides that do not read: their TCP windows are closed while data waits for them."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.units import duration

SHUT_NS = SECOND_NS
"""Time for which a window must be closed in all; shorter pauses are ordinary."""

CODES = (("client", "client-not-reading"), ("broker", "broker-not-reading"))


def shut_of(session: Any, side: int) -> Any:
    """The `tcp.Shut` of a side's window (0: the client's); None when data never waited for it."""
    direction = session.peer.client_direction
    return None if direction < 0 else session.peer.conversation.zero_windows[direction ^ side]


def judge(scene: Scene) -> None:
    """connection-ends: windows that were closed for long."""
    for side, (name, code) in enumerate(CODES):
        shut = shut_of(scene.session, side)
        if shut is None or shut.total_ns < SHUT_NS:
            continue
        detail = f"the {name}'s window was closed for {duration(shut.total_ns)}"
        if shut.times > 1:
            detail += f" in {shut.times} times, {duration(shut.longest_ns)} at most"
        _raise(scene, code, detail, shut)


def _raise(scene: Scene, code: str, detail: str, shut: Any) -> None:
    scene.report(code, detail, number=shut.packet_number, ts_ns=shut.start_ns, count=shut.times)


RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (judge,)}
