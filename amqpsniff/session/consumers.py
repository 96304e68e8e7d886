# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Methods about queues and who consumes from them: a table of handlers, as in `methods`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cython.cimports.amqpsniff.session.event import (
    Event,
    Request,
)
from cython.cimports.amqpsniff.session.state import (
    Channel,
    Consumer,
    Lane,
)

from amqpsniff.decode.method_layout import FLAGS_CUT, NO_ACK, NO_WAIT, REQUEUE
from amqpsniff.session.state import CLIENT, SERVER


def _declare(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> Any:
    nameless: list[Any] = []  # consumers of the queue that the server names
    channel.last_queue = event.queue or None
    channel.declaring = None if channel.last_queue else nameless
    return nameless


def _declared(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if request is None or request.subject is None or not event.queue:
        return
    for consumer in request.subject:
        consumer.queue = event.queue
    if request.subject is channel.declaring:
        channel.last_queue = event.queue
        channel.declaring = None


def _name_queue(tracker: Any, channel: Channel, event: Event, consumer: Any) -> None:
    """Give a consumer the queue that a consume or get names; an empty name is the last declared."""
    if event.queue is None:
        return  # it was cut
    consumer.queue = event.queue or channel.last_queue
    if consumer.queue is None and channel.declaring is not None:
        if len(channel.declaring) < tracker.limits.consumers:
            channel.declaring.append(consumer)
        else:
            tracker.settler.hit("consumers")


def _no_ack(event: Event) -> bool | None:
    """The argument no_ack; null when it was not captured."""
    return None if event.flags & FLAGS_CUT else event.flags & NO_ACK != 0


def _consume(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> Any:
    tag = event.consumer_tag
    consumer = Consumer(tag, _no_ack(event), channel.prefetch_each)
    _name_queue(tracker, channel, event, consumer)
    no_wait = event.flags & NO_WAIT
    if no_wait:
        channel.consumers += 1
    if tag and (no_wait or tag not in channel.by_tag):
        _add_consumer(tracker, channel, tag, consumer)
    return consumer


def _consumed(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    channel.consumers += 1
    tag = event.consumer_tag
    if request is not None and request.subject is not None and tag is not None:
        request.subject.tag = tag
        _add_consumer(tracker, channel, tag, request.subject)


def _add_consumer(tracker: Any, channel: Channel, tag: str, consumer: Any) -> None:
    if tag not in channel.by_tag:
        limits = tracker.limits
        if (
            len(channel.by_tag) >= limits.consumers
            or tracker.consumers_known >= limits.all_consumers
        ):
            tracker.settler.hit("consumers")
            return
        tracker.consumers_known += 1
    channel.by_tag[tag] = consumer
    channel.near_batch = -1


def _cancelled(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if event.side == SERVER:
        consumer = channel.by_tag.pop(event.consumer_tag, None)
        channel.near, channel.near_batch = None, -1
        tracker.consumers_known -= consumer is not None
        if tracker.judges and event.name == "basic.cancel" and event.whole:
            facts = {"consumer": consumer}
            tracker.tell("consumer-cancelled", channel, event.number, event.ts_ns, facts)


def _get(tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None) -> Any:
    channel.gets += 1
    consumer = Consumer(None, _no_ack(event))
    _name_queue(tracker, channel, event, consumer)
    return consumer


def _recover(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if event.side == CLIENT and not event.whole:
        tracker.settler.acknowledge_in_part(channel, -1)
    elif event.side == CLIENT and event.flags & REQUEUE:
        until = tracker.due(channel.deliveries, event.row, event.number, event.ts_ns)
        if until is not None:
            tracker.settler.recover(channel, until, event.number, event.ts_ns)


HANDLERS: dict[str, Callable[..., Any]] = {
    "queue.declare": _declare,
    "queue.declare-ok": _declared,
    "basic.consume": _consume,
    "basic.consume-ok": _consumed,
    "basic.cancel": _cancelled,
    "basic.cancel-ok": _cancelled,
    "basic.get": _get,
    "basic.recover": _recover,
    "basic.recover-async": _recover,
    "basic.recover-sync": _recover,
}
