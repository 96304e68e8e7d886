"""Consumers that acknowledge by themselves, and consumers that the broker took away."""

from __future__ import annotations

from typing import Any

from amqpsniff.decode.method_layout import FLAGS_CUT, NO_ACK
from amqpsniff.session.rules.amounts import apart
from amqpsniff.session.rules.peers import client_host
from amqpsniff.session.rules.remembering import across, report_at
from amqpsniff.session.rules.scene import Place, Rule, Scene, after
from amqpsniff.session.state import CLIENT

RESUME_NS = 5_000_000_000
"""Time within which a client that handles a cancellation has consumed again or gone away."""

MAX_QUEUES = 10_000
"""Names of queues remembered; of a connection, and of all, the latest."""

MAX_CANCELLED = 1_000
"""Cancelled consumers of one connection that are followed."""

_OF_BROKER = ("amq.gen-", "amq.rabbitmq.reply-to")
"""Queues that only the client which asked for them knows: replies, not work."""


def declared(scene: Scene) -> None:
    """Remember queues that are private to the connection, or may be; None for one with its name
    cut.
    """
    event = scene.event
    private = event.flags & FLAGS_CUT or b'"exclusive":true' in (event.octets or b"")
    if private and event.queue != "":
        _note(scene, scene.memory.setdefault("exclusive", {}), event.queue, True)


def automatic(scene: Scene) -> None:
    """A consumer or get with no-ack, of a queue that is not private."""
    event = scene.event
    if not event.flags & NO_ACK or scene.channel.deaf:
        return
    queue, private = scene.queue, scene.memory.get("exclusive", {})
    if not queue or queue.startswith(_OF_BROKER) or queue in private or None in private:
        return
    tag = f", consumer '{event.consumer_tag}'" if event.consumer_tag else ""
    variant = apart(scene, "read without acknowledging", queue)
    detail = f"{event.name} of queue '{queue}'{tag}"
    scene.report("automatic-acknowledgement", detail, variant=variant)


def consumed(scene: Scene) -> None:
    """Remember when a host consumed from which queue, and forget what was cancelled before."""
    queue = scene.queue
    cancelled = scene.memory.get("cancelled", [])
    cancelled[:] = [one for one in cancelled if queue and one[1] not in (None, queue)]
    across(scene, judge_consumed, client_host(scene), queue, scene.ts_ns)


def judge_consumed(scene: Scene, host: str, queue: str | None, ts_ns: int | None) -> None:
    """A host consumes from a queue."""
    _note(scene, scene.everything.setdefault("consumed", {}), (host, queue), ts_ns)


def lost(scene: Scene) -> None:
    """frames-lost: a client may have consumed from any queue."""
    if scene.facts["side"] == CLIENT:
        across(scene, judge_unseen, client_host(scene))


def judge_unseen(scene: Scene, host: str) -> None:
    """What a host consumes from is not known."""
    _note(scene, scene.everything.setdefault("consumes lost", {}), host, True)


def deleted(scene: Scene) -> None:
    """Remember which queues the connection deleted itself: those cancellations are meant. None
    stands for one whose name was cut.
    """
    _note(scene, scene.memory.setdefault("deleted", {}), scene.event.queue, True)


def cancelled(scene: Scene) -> None:
    """The broker cancelled a consumer."""
    consumer = scene.facts["consumer"]
    queue = None if consumer is None else consumer.queue
    lost = scene.memory.setdefault("cancelled", [])
    deleted = scene.memory.get("deleted", {})
    if queue in deleted or None in deleted:
        return
    if len(lost) >= MAX_CANCELLED:
        scene.forget("consumers")
        return
    tag = "?" if consumer is None else consumer.tag
    lost.append((tag, queue, scene.channel, scene.number, scene.ts_ns))


@after("cancelled")
def judge_cancelled(scene: Scene) -> None:
    """A connection is over: consumers that were cancelled and not started again."""
    end_ns = scene.session.peer.conversation.end_ns
    for tag, queue, channel, number, ts_ns in scene.memory.get("cancelled", []):
        if ts_ns is None or end_ns - ts_ns < RESUME_NS or not scene.complete:
            continue
        place = Place(channel.capture, number, ts_ns, *scene.session.peer.name())
        what = (f"consumer '{tag}' of queue '{queue or '?'}'", queue, channel.number)
        across(scene, judge_lost, client_host(scene), *what, place)


def judge_lost(
    scene: Scene, host: str, what: str, queue: str | None, channel: int,
    where: tuple[Any, ...],
) -> None:  # fmt: skip
    """A consumer that was cancelled: did its host consume from the queue again?"""
    place = Place(*where)
    if host in scene.everything.get("consumes lost", {}):
        return
    consumed = scene.everything.get("consumed", {})
    for named in (queue, None):  # None: a name that was cut
        again = consumed.get((host, named))
        if again and place.ts_ns is not None and again > place.ts_ns:
            return
    detail = f"{what}, and nothing was consumed from it since"
    report_at(scene, place, "consumer-cancelled", detail, channel=channel)


def _note(scene: Scene, known: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember a value by key, at most `MAX_QUEUES` of them."""
    known.pop(key, None)
    known[key] = value
    if len(known) > MAX_QUEUES:
        del known[next(iter(known))]
        scene.forget("queues")


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (declared,),
    "queue.delete": (deleted,),
    "basic.consume": (automatic, consumed),
    "basic.get": (automatic,),
    "consumer-cancelled": (cancelled,),
    "frames-lost": (lost,),
    "connection-ends": (judge_cancelled,),
}
"""Rules by occasion."""
