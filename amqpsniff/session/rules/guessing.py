"""Logins that fail again and again."""

from __future__ import annotations

from collections import deque
from typing import Any

from amqpsniff.session.rules.peers import client_host, server_end, user_of
from amqpsniff.session.rules.remembering import across, kept, report_once
from amqpsniff.session.rules.scene import Place, Scene
from amqpsniff.units import duration

REFUSALS = 5
"""Refused logins within `WINDOW_NS` of one address, or user names refused, that are no accident."""

WINDOW_NS = 60_000_000_000


class _Refusals:
    """The last refused logins of an address, and its first user names."""

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=REFUSALS)
        self.users: set[str] = set()


def note_refused_login(scene: Scene) -> None:
    """A login was refused: is it one of many from its address?"""
    scene.memory["failure"] = "the login was refused"
    client = (client_host(scene), server_end(scene))
    across(scene, judge_refused, client, scene.ts_ns, user_of(scene), scene.place)


def judge_refused(
    scene: Scene,
    client: tuple[str, str],
    ts_ns: int | None,
    user: str | None,
    place: tuple[Any, ...],
) -> None:
    """One more login of an address that was refused."""
    refusals = kept(scene, "refusals", client, _Refusals)
    if ts_ns is not None:
        refusals.times.append(ts_ns)
    here = Place(*place)
    if user is not None and len(refusals.users) < REFUSALS:
        refusals.users.add(user)
    times = refusals.times
    spread_ns = max(times) - min(times) if times else 0
    if len(refusals.users) == REFUSALS:
        names = f"logins refused under {REFUSALS} user names or more"
        detail = f"{client[0]}: {names}"
        report_once(scene, "password-guessing", client, lambda: detail, here, REFUSALS)
    elif len(times) == REFUSALS and spread_ns <= WINDOW_NS:
        often = f"{REFUSALS} logins refused in {duration(spread_ns)}"
        detail = f"{client[0]}: {often}"
        report_once(scene, "password-guessing", client, lambda: detail, here, REFUSALS)
