"""Queues that a connection declares for itself alone, and queues that are deleted.

Of a queue that is gone nothing is delivered again: not what a channel had outstanding when the
queue was deleted, nor what a connection had outstanding of its exclusive queues when it ended
(0-9-1 §1.7.2.1). A queue is identified by the broker's address, its virtual host and its name.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from amqpsniff.decode.method_layout import NO_WAIT
from amqpsniff.session.rules.peers import application, said, server_end
from amqpsniff.session.rules.remembering import across, kept, report_at
from amqpsniff.session.rules.scene import Place, Rule, Scene, after
from amqpsniff.session.rules.wording import number_of, queue_text, when_closed

MAX_ASKED = 1_000
"""Declarations and deletions of one connection that wait for an answer, and exclusive queues of one
connection: programs have a few."""

MAX_DELETIONS = 8
"""Deletions of one queue that are remembered, the latest ones."""

MAX_QUEUES = 64
"""Queues of one channel whose deliveries are told apart; those of further ones may come again."""

Key = tuple[str, str, str]
"""A queue: the broker's address, the virtual host, the name."""


class Owner:
    """The connection that has a queue to itself."""

    def __init__(self) -> None:
        self.connection_id = ""
        self.words = ""
        self.capture: str | None = None


class Left:
    """What a channel had outstanding of one queue when it ended.

    Attributes:
        count: Deliveries.
        number: Packet of the first.
        last_ns: Time of the last.
        private: The queue ended with the connection.
    """

    def __init__(self, number: int, *, private: bool) -> None:
        self.count = 0
        self.number = number
        self.last_ns = 0
        self.private = private


def _key(scene: Scene, name: str) -> Key:
    """A queue of the scene's connection; of an unknown virtual host it is like no other."""
    vhost = said(scene, "connection.open").get("virtual_host")
    where = vhost if isinstance(vhost, str) else scene.session.peer.name()[0]
    return server_end(scene), where, name


def _asked(scene: Scene) -> None:
    """queue.declare of an exclusive queue, and queue.delete: remembered until the answer."""
    event = scene.event
    octets = event.octets or b""
    declares = event.name == "queue.declare"
    if declares and (b'"exclusive":true' not in octets or b'"passive":true' in octets):
        return
    name = event.queue if declares else scene.queue
    if event.flags & NO_WAIT:
        if declares and name:
            _own(scene, name, event.number)
        elif name and b'"if_unused":true' not in octets and b'"if_empty":true' not in octets:
            _deleted(scene, name)
        return
    asked = scene.memory.setdefault("queues asked", {})
    if len(asked) < MAX_ASKED:
        asked[scene.channel.number, event.number, event.row] = name
    else:
        scene.forget("queues")


@after("queues asked")
def _answered(scene: Scene) -> None:
    """queue.declare-ok and queue.delete-ok."""
    request = scene.request
    if request is None:
        return
    place = scene.channel.number, request.number, request.row
    asked = scene.memory["queues asked"]
    if place not in asked:
        return
    name = asked.pop(place)
    if scene.event.name == "queue.delete-ok":
        if name:
            _deleted(scene, name)
    elif scene.event.queue or name:
        _own(scene, scene.event.queue or name, request.number)


# exclusive queues


def _own(scene: Scene, name: str, number: int) -> None:
    """A connection has a queue to itself; `number` is the packet of its declaration."""
    own = scene.memory.setdefault("own queues", {})
    if len(own) >= MAX_ASKED:
        scene.forget("queues")
        return
    own[name] = None
    place = scene.place
    who = f"'{application(scene)}'" if application(scene) else "a connection"
    words = f"{who} ({place.client}) declared it exclusive in packet {number}"
    across(scene, judge_owned, _key(scene, name), place.connection_id, words, place.capture)


def judge_owned(
    scene: Scene, key: Key, connection_id: str, words: str, capture: str | None
) -> None:
    """A connection has a queue to itself."""
    owner = kept(scene, "owners", tuple(key), Owner)
    owner.connection_id = connection_id
    owner.words = words
    owner.capture = capture


def owner_words(scene: Scene, key: Sequence[str] | None, place: Place) -> str:
    """The connection that has a queue to itself, in words; empty if it is not in the capture."""
    owner: Owner | None = (
        None if key is None else scene.everything.get("owners", {}).get(tuple(key))
    )
    if owner is None or owner.connection_id == place.connection_id:
        return ""
    return owner.words + ("" if owner.capture == place.capture else f" of {owner.capture}")


@after("own queues")
def _released(scene: Scene) -> None:
    """connection.close-ok, or the connection is over: whichever comes first."""
    keys = tuple(_key(scene, name) for name in scene.memory["own queues"])
    across(scene, judge_released, scene.session.peer.name()[0], keys)


def judge_released(scene: Scene, connection_id: str, keys: tuple[Key, ...]) -> None:
    """A connection is over, and its exclusive queues with it."""
    owners = scene.everything.get("owners", {})
    for key in keys:
        if tuple(key) in owners and owners[tuple(key)].connection_id == connection_id:
            del owners[tuple(key)]


# deletions


def _deleted(scene: Scene, name: str) -> None:
    scene.memory.get("own queues", {}).pop(name, None)
    if scene.ts_ns is not None:
        across(scene, judge_deleted, _key(scene, name), scene.ts_ns, scene.number)


def judge_deleted(scene: Scene, key: Key, ts_ns: int, number: int) -> None:
    """A queue was deleted."""
    scene.everything.get("owners", {}).pop(tuple(key), None)
    deletions: deque[tuple[int, int]] = kept(
        scene, "deletions", tuple(key), lambda: deque(maxlen=MAX_DELETIONS)
    )
    deletions.append((ts_ns, number))


def _in_doubt(scene: Scene) -> None:
    """A channel ended with deliveries that were not settled."""
    channel = scene.channel
    if not scene.certain or not channel.known or not channel.closed_by or not channel.unsettled:
        return
    conversation = scene.session.peer.conversation
    entries = [entry for entry in channel.deliveries if entry.wants]
    if not entries:
        return
    closed_alone = channel.close_bytes is not None  # else its connection ended
    private = () if closed_alone else scene.memory.get("own queues", ())
    left: dict[str, Left] = {}
    for entry in entries:
        name = (entry.consumer.queue if entry.consumer else None) or ""
        if name not in left and len(left) >= MAX_QUEUES:
            continue
        if name not in left:
            left[name] = Left(entry.packet_number, private=name in private)
        left[name].count += 1
        left[name].last_ns = max(left[name].last_ns, entry.ts_ns)
    number = channel.closed_packet_number or conversation.last_packet_number
    ended_ns = channel.end_ns or conversation.end_ns
    place = scene.place._replace(
        capture=channel.capture, packet_number=number, ts_ns=ended_ns if ended_ns > 0 else None
    )
    across(
        scene,
        judge_left,
        tuple((_key(scene, name), *vars(one).values()) for name, one in left.items()),
        channel.unsettled,
        when_closed(channel.closed_by),
        channel.number,
        place,
    )


def judge_left(
    scene: Scene, left: tuple[Any, ...], total: int, when: str, channel: int, where: tuple[Any, ...]
) -> None:
    """Deliveries that a channel had outstanding: those of queues that are gone, and the others."""
    place = Place(*where)
    gone: list[Any] = []
    others: list[Any] = []
    for key, count, number, last_ns, private in left:
        why = (
            "exclusive to its connection"
            if private
            else _deletion(scene, key, last_ns, place.ts_ns)
        )
        (gone if why else others).append((key[2], count, number, why))
    lost = sum(count for _, count, _, _ in gone)
    for code, rows, count in (
        ("deliveries-deleted", gone, lost),
        ("deliveries-in-doubt", others, total - lost),
    ):
        if count:
            report_at(scene, place, code, _words(rows, count, when), count, None, channel)


def _deletion(scene: Scene, key: Key, last_ns: int, ended_ns: int | None) -> str:
    """Why deliveries until a time do not come again, in words; empty if they do."""
    for ts_ns, number in scene.everything.get("deletions", {}).get(tuple(key), ()):
        if ended_ns is not None and last_ns <= ts_ns <= ended_ns:
            return f"deleted in packet {number}"
    return ""


def _words(rows: list[Any], count: int, when: str) -> str:
    deliveries = number_of(count, "delivery", "deliveries")
    if not rows:
        return f"{deliveries}, {when}"
    named = ", ".join(
        queue_text(name) + (f" ({why})" if why else "") for name, _, _, why in sorted(rows)[:3]
    )
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    first = "the first in" if count > 1 else "in"
    number = min(number for _, _, number, _ in rows)
    return f"{deliveries} from {named}{more}, {first} packet {number}, {when}"


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (_asked,),
    "queue.delete": (_asked,),
    "queue.declare-ok": (_answered,),
    "queue.delete-ok": (_answered,),
    "channel-ends": (_in_doubt,),
    "connection.close-ok": (_released,),
    "connection-ends": (_released,),
}
"""The rules of this module by occasion."""
