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
    conversation = scene.session.peer.conversation
    number, ts_ns = conversation.first_packet_number, conversation.start_ns
    return place_of(scene)._replace(
        packet_number=number or None, ts_ns=ts_ns if ts_ns > 0 else None
    )


def kept(scene: Scene, name: str, key: object, make: Callable[[], Kept]) -> Kept:
    """What is remembered under a key of `name`, made when it is new."""
    entries: dict[Any, Kept] = scene.everything.setdefault(name, {})
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= MOST_KEPT:
            del entries[next(iter(entries))]
        entry = entries[key] = make()
    return entry


def report_at(
    scene: Scene, place: Place, code: str, detail: str, count: int = 1, last: int | None = None
) -> None:
    """Raise a finding about the connection of a place; see `Scene.report`."""
    finding = Finding(code, detail, *place, count=count, last_packet_number=last)
    scene.tracker.log.add(finding)


def report_once(
    scene: Scene, code: str, key: object, detail: str, place: Place | None = None
) -> None:
    """Raise one finding for all connections of a capture with a key: at the first, counting all.

    `place` is where it is seen, when that is not the scene.
    """
    here = place or place_of(scene)
    first = kept(scene, code, (here.capture, key), lambda: here)
    report_at(scene, first, code, detail, last=here.packet_number)
