"""What rules remember across connections, and findings that stand for many connections.

Everything here is bounded: an attacker can open connections, and invent names, without end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from amqpsniff.findings import Finding
from amqpsniff.session.rules.scene import Scene

MOST_KEPT = 10_000
"""Entries of one kind that are remembered; beyond, the oldest is forgotten. More clients than a
broker of any size has, and some 5 MB."""

Kept = TypeVar("Kept")


class Place(NamedTuple):
    """Where something was: what a finding says of its place, without a channel."""

    capture: str | None
    packet_number: int | None
    ts_ns: int | None
    connection_id: str
    client: str | None
    server: str | None


def place_of(scene: Scene) -> Place:
    """The connection, packet and time of a scene."""
    connection_id, client, server = scene.session.peer.name()
    return Place(scene.session.capture, scene.number, scene.ts_ns, connection_id, client, server)


def first_place(scene: Scene) -> Place:
    """The first packet of a scene's connection."""
    session = scene.session
    conversation = session.peer.conversation
    number, ts_ns = conversation.first_packet_number, conversation.start_ns
    time = ts_ns if ts_ns > 0 else None
    return Place(session.capture, number or None, time, *session.peer.name())


def kept(scene: Scene, name: str, key: object, make: Callable[[], Kept]) -> Kept:
    """What is remembered under a key of `name`, made when it is new."""
    entries: dict[Any, Kept] = scene.everything.setdefault(name, {})
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= MOST_KEPT:
            del entries[next(iter(entries))]
            scene.forget("clients")
        entry = entries[key] = make()
    return entry


def report_at(
    scene: Scene, place: Place, code: str, detail: str, count: int = 1, last: int | None = None
) -> None:
    """Raise a finding about the connection of a place; see `Scene.report`."""
    log = scene.tracker.log
    ended = last or place.packet_number
    if not log.again(code, place.connection_id, None, None, count, ended):
        log.add(Finding(code, detail, *place, count=count, last_packet_number=last))


def report_once(
    scene: Scene,
    code: str,
    key: object,
    detail: Callable[[], str],
    place: Place | None = None,
) -> None:
    """Raise one finding for all connections of a capture with a key: at the first, counting all.

    `detail` gives its words, when they are needed; `place` is where it is seen, when that is not
    the scene.
    """
    key = (scene.session.capture, key)
    first = scene.everything.get(code, {}).get(key)
    if first is not None:
        last = scene.number if place is None else place.packet_number
        if scene.tracker.log.again(code, first.connection_id, None, None, 1, last):
            return
    here = place or place_of(scene)
    first = kept(scene, code, key, lambda: here)
    report_at(scene, first, code, detail(), last=here.packet_number)
