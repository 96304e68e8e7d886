"""Clients that come again and again: to fail the same way, for a moment, or without leaving.

Its rules are the last to be asked: those before them say in `memory["failure"]` why a connection
failed.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.peers import (
    application,
    began_ns,
    client_host,
    client_says,
    end_ns,
    server_end,
    shown,
    user_of,
    words,
)
from amqpsniff.session.rules.remembering import MAX_KEPT, across, first_place, kept, report_at
from amqpsniff.session.rules.scene import Place, Rule, Scene, after
from amqpsniff.session.rules.wording import number_of
from amqpsniff.units import duration

FAILURES = 3
FAILURES_WITHIN_NS = 60_000_000_000
"""Connections of a client that end the same way within this time, from which on it is a loop."""

SHORT_NS = SECOND_NS
SHORT_PUBLISHES = 3
SHORT_CONNECTIONS = 5
"""A connection is short that lives less than the first and publishes no more than the second; so
many of them in PHP are its requests, fewer may be scripts run by hand."""

LEAKING = 20
LEAKING_WITHIN_NS = 30_000_000_000
"""Idle connections that a client opened and left open, over at least this time: a pool opens its
connections at once, and few applications have one so large."""

IDLE_NS = 10_000_000_000
"""Time without a message after which a connection without consumers is idle."""

_NAMES = re.compile(r"'[^']*'|\d+")


class _Series:
    """Connections of one client that failed the same way."""

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=FAILURES)
        self.first: Place | None = None
        self.count = 0
        self.told = False


@after("failure")
def _failed(scene: Scene) -> None:
    failure, now = scene.memory.get("failure"), end_ns(scene)
    if failure is None or now is None:
        return
    user, name = user_of(scene), application(scene)
    if not user and not name:
        return
    if not client_says(scene, "connection_name") and _is_cut(scene):
        return
    client = (scene.session.capture, client_host(scene), server_end(scene), user, name)
    here = scene.place
    across(scene, judge_failure, client, failure, now, shown(scene), here)


def _is_cut(scene: Scene) -> bool:
    """Whether a client may have said more of itself than was captured."""
    session, method = scene.session, "connection.start-ok"
    return method in session.facts and not session.said_whole(method)


def judge_failure(
    scene: Scene, client: tuple[Any, ...], failure: str, now: int, who: str, place: tuple[Any, ...]
) -> None:
    """One more connection of a client that failed."""
    here = Place(*place)
    series = kept(scene, "failures", (client, _NAMES.sub("…", failure)), _Series)
    series.times.append(now)
    series.count += 1
    if series.first is None:
        series.first = here
    times = series.times
    if not series.told:
        spread_ns = max(times) - min(times)
        if len(times) < FAILURES or spread_ns > FAILURES_WITHIN_NS:
            return
        series.told = True
        within = duration(spread_ns)
        detail = f"{who}: {FAILURES} connections in {within} ended with: {failure}"
        report_at(scene, series.first, "reconnect-loop", detail, series.count, here.packet_number)
    else:
        report_at(scene, series.first, "reconnect-loop", "", last=here.packet_number)


class _Short:
    """Short connections of one client."""

    def __init__(self) -> None:
        self.first: Place | None = None
        self.count = 0


def _was_short(scene: Scene) -> None:
    """A connection of PHP that was for one request."""
    began, now = began_ns(scene), end_ns(scene)
    conversation = scene.session.peer.conversation
    if began is None or now is None or now - began >= SHORT_NS:
        return
    lived, published = now - began, _published(scene)
    if conversation.ended is None or published > SHORT_PUBLISHES or not scene.complete:
        return
    if client_says(scene, "product") != "AMQPLib":
        return
    client = (scene.session.capture, client_host(scene), server_end(scene))
    did = f"{duration(lived)} for {number_of(published, 'publish', 'publishes')}"
    across(scene, judge_short, client, shown(scene), did, scene.place)


def judge_short(
    scene: Scene, client: tuple[Any, ...], who: str, did: str, place: tuple[Any, ...]
) -> None:
    """One more short connection of a client."""
    here = Place(*place)
    short = kept(scene, "short", client, _Short)
    short.count += 1
    if short.first is None:
        short.first = here
    if short.count == SHORT_CONNECTIONS:
        detail = f"{who}: {short.count} connections that lived less than a second, this one {did}"
        report_at(
            scene, short.first, "php-short-connections", detail, short.count, here.packet_number
        )
    elif short.count > SHORT_CONNECTIONS:
        report_at(scene, short.first, "php-short-connections", "", last=here.packet_number)


def _published(scene: Scene) -> int:
    """Publishes of a connection that ends now, whose channels may have ended before."""
    session = scene.session
    channels = (lane.channel for lane in session.lanes.values())
    count: int = session.published
    for channel in channels:
        count += 0 if channel is None else channel.published
    return count


def _stays(scene: Scene) -> None:
    """A connection that was opened in the capture and is idle at its end."""
    session, began = scene.session, began_ns(scene)
    if session.peer.conversation.ended is not None or session.closed_by is not None:
        return
    if began is None or "connection.open-ok" not in session.facts or not scene.certain:
        return
    last = began
    for lane in session.lanes.values():
        channel = lane.channel
        if channel is not None:
            if channel.by_tag:
                return
            last = max(last, channel.last_publish_ns, channel.last_delivery_ns)
    names = (user_of(scene), application(scene))
    client = (session.capture, client_host(scene), server_end(scene), *names)
    across(scene, judge_left, client, last, first_place(scene))


def judge_left(scene: Scene, client: tuple[Any, ...], last: int, where: tuple[Any, ...]) -> None:
    """One more connection that stays."""
    left: list[Any] = kept(scene, "left", client, list)
    if len(left) < MAX_KEPT:
        left.append((last, where))


def judge_leaks(scene: Scene) -> None:
    """capture-ends: clients that left many connections open."""
    now = scene.ts_ns
    for client, left in scene.everything.pop("left", {}).items():
        if now is None:
            return
        idle = [Place(*where) for last, where in left if now - last >= IDLE_NS]
        idle.sort(key=lambda place: place.ts_ns or 0)
        if len(idle) < LEAKING:
            continue
        times = [place.ts_ns or 0 for place in idle]
        if times[-1] - times[0] >= LEAKING_WITHIN_NS:
            _, host, _, user, name = client
            detail = (
                f"{words(user, name, host)} opened {len(idle)} connections in "
                f"{duration(times[-1] - times[0])}, "
                "which are open and idle at the end of the capture"
            )
            last = idle[-1].packet_number
            report_at(scene, idle[0], "connections-leaking", detail, len(idle), last)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (_failed, _was_short, _stays),
    "capture-ends": (judge_leaks,),
}
"""The rules of this module by occasion."""
