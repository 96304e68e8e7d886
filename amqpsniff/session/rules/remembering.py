"""What rules remember across connections, and findings that stand for many connections.

Everything here is bounded: an attacker can open connections, and invent names, without end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from amqpsniff.findings import Finding
from amqpsniff.findings.records import Order, order_of, order_of_end
from amqpsniff.session.rules.scene import Place, Scene

MAX_KEPT = 10_000
"""Entries of one kind that are remembered; beyond, the oldest is forgotten. More clients than a
broker of any size has, and some 5 MB."""

Kept = TypeVar("Kept")


def first_place(scene: Scene) -> Place:
    """The first packet of a scene's connection."""
    session = scene.session
    conversation = session.peer.conversation
    number, ts_ns = conversation.first_packet_number, conversation.start_ns
    time = ts_ns if ts_ns > 0 else None
    return Place(session.capture, number or None, time, *session.peer.name())


def order(scene: Scene) -> Order:
    """When a scene is known: that of a connection's end is when it was taken for over."""
    session = scene.session
    conversation = session.peer.conversation
    if scene.event is None and not scene.facts:
        return order_of_end(conversation, session.capture)
    now = scene.tracker.now()
    if now is not None:
        capture, number, ts_ns = now
        return order_of(ts_ns, capture, number)
    return order_of(scene.ts_ns, session.capture, scene.number)


def across(scene: Scene, judge: Callable[..., None], *payload: Any) -> None:
    """Tell a judge what a connection contributes to what is about many.

    A judge is asked with the scene (of which it uses only what is about all connections) and the
    payload, plain values and places: at once, or, by a reader of some connections, when all are
    known.
    """
    records = scene.tracker.log.recorded
    if records is None:
        judge(scene, *payload)
    else:
        plain = (tuple(one) if isinstance(one, Place) else one for one in payload)
        name = f"{judge.__module__.rpartition('.')[2]}.{judge.__name__}"
        records.note(order(scene), name, *plain)


def kept(scene: Scene, name: str, key: object, make: Callable[[], Kept]) -> Kept:
    """What is remembered under a key of `name`, made when it is new."""
    entries: OrderedDict[Any, Kept] | None = scene.everything.get(name)
    if entries is None:
        entries = scene.everything[name] = OrderedDict()
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= MAX_KEPT:
            entries.popitem(last=False)
            scene.forget("clients")
        entry = entries[key] = make()
    return entry


def exchanges_of(scene: Scene) -> dict[str, tuple[int, ...]]:
    """What was counted by exchange, at the end; empty when that is recorded to be added up."""
    scene.tracker.count_exchanges()
    exchanges: dict[str, tuple[int, ...]] = scene.tracker.exchanges
    records = scene.tracker.log.recorded
    if records is None:
        return exchanges
    for name, counts in exchanges.items():
        records.exchanges[name] = counts
    return {}


def report_at(
    scene: Scene,
    place: Place,
    code: str,
    detail: str,
    count: int = 1,
    last: int | None = None,
    channel: int | None = None,
) -> None:
    """Raise a finding about the connection of a place; see `Scene.report`."""
    finding = Finding(code, detail, *place, channel, count=count, last_packet_number=last)
    scene.tracker.log.add(finding)


def report_once(
    scene: Scene,
    code: str,
    key: object,
    detail: Callable[[], str],
    place: Place | None = None,
    count: int = 1,
) -> None:
    """Raise one finding for all connections of a capture with a key: at the first, counting all.

    `detail` gives its words, when they are needed; `place` is where it is seen, when that is not
    the scene. The first stands for `count` connections, by judges of many (`across`).
    """
    key = (scene.session.capture if place is None else place.capture, key)
    first = scene.everything.get(code, {}).get(key)
    if first is not None:
        last = scene.number if place is None else place.packet_number
        if scene.tracker.log.again(code, first.connection_id, None, None, 1, last):
            return
    here = place or scene.place
    records = scene.tracker.log.recorded
    if records is not None:
        records.seen(order(scene), (code, *key), detail, tuple(here))
        return
    first = kept(scene, code, key, lambda: here)
    words = detail() if scene.tracker.log.has_room(code) else ""  # not shown without a place
    report_at(scene, first, code, words, count, here.packet_number)
