# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Methods that do not come with every message: tables of their handlers, and of the states that
methods lead to (`state_machine`).

A handler of `ON_CHANNEL` is called with the tracker, the channel, the frame, and the request that
the method answers, or None; one of `ON_CONNECTION` with the session in place of the channel. If the
method is a request, the returned value is kept for the handler of its reply. Methods without a
handler change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CLIENT, SERVER
from cython.cimports.amqpsniff.session.entities import Channel, ChannelSlot, Consumer, Session
from cython.cimports.amqpsniff.session.method_flags import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
)
from cython.cimports.amqpsniff.session.method_frame import MethodFrame, Request

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.method_layout import CUT, FLAGS_CUT, NO_ACK, NO_WAIT, REQUEUE
from amqpsniff.session import method_flags
from amqpsniff.session.method_frame import ALIKE, read_close, read_reason
from amqpsniff.session.owing import sentence
from amqpsniff.session.state_machine import BLOCKING, CHANNEL, CONNECTION, MODE
from amqpsniff.spec import FIRST_ERROR_CODE, SIDES

MAX_CANCELLED = 64
"""Consumers of a channel that the broker cancelled and that are remembered, the latest ones."""

_METHODS = cython.declare(cython.int, len(method_flags.NAMES))

_CONNECTION_AFTER = cython.declare(bytes, CONNECTION.after)
_CONNECTION_CLOSING = cython.declare(bytes, CONNECTION.closing)
_CHANNEL_AFTER = cython.declare(bytes, CHANNEL.after)
_CLOSES = cython.declare(bytes, method_flags.CLOSES)
_STEPS = cython.declare(bytes, method_flags.STEPS)
_CLOSED = cython.declare(cython.int, CHANNEL.code(CHANNEL.start))
# on which something comes although its beginning was not seen
_PROVED = cython.declare(cython.int, CHANNEL.code("open"))
_OVER = cython.declare(cython.int, CONNECTION.code("over"))


def move_connection(session: Session, method: cython.int, side: cython.int) -> cython.bint:
    """Apply a method to the connection's state; a side that closed expects no more replies."""
    slot: ChannelSlot
    other: cython.int = 1 - side
    session.state_code = _CONNECTION_AFTER[2 * (session.state_code * _METHODS + method) + side]
    if _CLOSES[method]:
        if not session.no_reply_expected & 1 << other:
            for slot in session.slots():
                drop_requests(slot, other, False)
        session.no_reply_expected |= 1 << other
    return session.state_code == _OVER


@cython.exceptval(check=False)
def has_closed(session: Session, side: cython.int) -> cython.bint:
    """True if a side has closed the connection."""
    return _CONNECTION_CLOSING[session.state_code] >> side & 1 != 0


def move_slot(slot: ChannelSlot, method: cython.int, side: cython.int) -> cython.int:
    """Apply a method to a channel number's state, and drop requests that will get no reply.

    Only channel.open begins an incarnation. Any other method, except channel.close-ok, on a closed
    number proves that one is open.
    """
    other: cython.int = 1 - side
    if method == CHANNEL_OPEN:
        drop_requests(slot, CLIENT, True)
        drop_requests(slot, SERVER, True)
        slot.no_reply_expected = 0
        slot.state_code = _CLOSED
    elif slot.state_code == _CLOSED:
        if method == CHANNEL_CLOSE_OK:
            return 0
        slot.state_code = _PROVED
    slot.state_code = _CHANNEL_AFTER[2 * (slot.state_code * _METHODS + method) + side]
    if method == CHANNEL_CLOSE:
        drop_requests(slot, other, False)
        slot.no_reply_expected |= 1 << other
    elif method == CHANNEL_CLOSE_OK and slot.state_code == _CLOSED:
        drop_requests(slot, CLIENT, False)
        drop_requests(slot, SERVER, False)
    return 0


def drop_requests(slot: ChannelSlot, side: cython.int, closes: cython.bint) -> cython.int:
    """Drop the requests of a side, which get no reply; close requests only if `closes`."""
    request: Request
    if not slot.requests:
        return 0
    kept: list[Any] = []
    for request in slot.requests:
        if request.side == side and (closes or not _CLOSES[request.method]):
            request.rows.settle(request.row)
        else:
            kept.append(request)
    slot.requests = kept
    return 0


_FREE = cython.declare(str, BLOCKING.start)

_MAX_LOST = cython.declare(cython.int, 16)

_UNKNOWN_TAG = re.compile(r"unknown delivery tag (\d+)")
_MAX_TAG = 2**63 - 1
_ACKNOWLEDGEMENTS = frozenset(("basic.ack", "basic.nack", "basic.reject"))


# channels


@cython.cfunc
def begin_channel(session: Session, slot: ChannelSlot, capture: Any, frame: MethodFrame) -> Channel:
    """A new incarnation of a channel; `frame` is its channel.open, None if it was not captured."""
    slot.incarnations += 1
    known: cython.bint = frame is not None
    channel: Channel = Channel(session, slot, capture, known)
    if known:
        channel.opened_number = frame.number
        channel.opened_ns = frame.ts_ns
    else:
        slot.state_code = _PROVED
    channel.broker_discards = has_closed(session, SERVER) or has_closed(session, CLIENT)
    slot.channel = channel
    session.channels_opened += 1
    return channel


def open_channel(
    tracker: Any, session: Session, slot: ChannelSlot, capture: Any, frame: MethodFrame
) -> cython.int:
    """channel.open: end the open incarnation of the number; its waiting requests get no reply."""
    if slot.channel is not None:
        if tracker.emitter is not None:
            tracker.emitter.emit(
                "channel-opened-twice", slot.channel, frame.number, frame.ts_ns, {}
            )
        tracker.settler.give_up_tentative(slot.channel, frame.ts_ns)
        _end_channel(tracker, slot)
    move_slot(slot, frame.method, frame.side)
    begin_channel(session, slot, capture, frame)
    if tracker.emitter is not None:
        tracker.emitter.emit("channel-begins", slot.channel, frame.number, frame.ts_ns, {})
    return 0


@cython.cfunc
def reopen_channel(
    tracker: Any, slot: ChannelSlot, capture: Any, ts_ns: cython.longlong
) -> Channel:
    """Another opening of a channel, whose channel.open is missing."""
    session: Session = slot.channel.session
    tracker.settler.give_up_tentative(slot.channel, ts_ns)
    _end_channel(tracker, slot)
    return begin_channel(session, slot, capture, None)


@cython.cfunc
def _end_channel(tracker: Any, slot: ChannelSlot) -> cython.int:
    channel: Channel = slot.channel
    slot.channel = None
    tracker.end_channel(channel)
    slot.state_code = _CLOSED
    return 0


def _open_ok(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    move_slot(channel.slot, frame.method, frame.side)


def _close(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    waiting = channel.slot.requests
    move_slot(channel.slot, frame.method, frame.side)
    channel.broker_discards = True
    if frame.side == SERVER:
        _refuse(tracker, channel, frame)
        if tracker.emitter is not None and waiting:
            method = read_reason(frame.arguments_json)[2]
            channel.blamed_packet_number = _blamed(waiting, CLIENT, method)
    close = read_close(frame.arguments_json)
    if _is_close_of(channel, close):
        channel.closed_by = SIDES[frame.side]
        channel.closed_packet_number = frame.number
        channel.end_ns = _time(frame.ts_ns)
        channel.close = close


def _is_close_of(closed: Any, close: Any) -> bool:
    """True for the first close, and for the first with an error where it crosses one without."""
    code = 0 if close is None else close[0] or 0
    return closed.closed_by is None or (closed.close_code or 0) < FIRST_ERROR_CODE <= code


def _refuse(tracker: Any, channel: Channel, frame: MethodFrame) -> None:
    """The server closed a channel: it may have refused acknowledgements on it."""
    if channel.tentative is None:
        return
    channel.refusals_lost = False
    _, text, blamed = read_reason(frame.arguments_json)
    found = _UNKNOWN_TAG.search(text or "")
    if found:
        tracker.settler.refuse(channel, min(int(found[1]), _MAX_TAG))
    elif blamed in _ACKNOWLEDGEMENTS:
        tracker.settler.refuse(channel, -1)
    else:
        tracker.settler.give_up_tentative(channel, frame.ts_ns)


def _close_ok(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    slot: ChannelSlot = channel.slot
    if frame.side == SERVER and channel.closing == (True, False):
        tracker.settler.accept_all(channel)
    move_slot(slot, frame.method, frame.side)
    if slot.state_code == _CLOSED:
        tracker.settler.give_up_tentative(channel, frame.ts_ns)
        _end_channel(tracker, slot)


def _blamed(requests: list[Any], side: int, method: str | None) -> int | None:
    """Packet of a side's oldest request of that method."""
    for request in requests:
        if request.side == side and method_flags.NAMES[request.method] == method:
            number: int = request.number
            return number
    return None


# modes


def _select(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if channel.mode is None:
        channel.mode = MODE.then(MODE.start, frame.method, frame.side)
        channel.numbering = channel.numbered = channel.mode == "confirm"
        if channel.mode == "tx":
            tracker.settler.select(channel)


def _selected(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if channel.mode is None and request is None:
        channel.mode = MODE.then(MODE.start, frame.method, frame.side)


def _commit(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> Any:
    times = channel.own_times()
    times.commits += 1
    if not channel.in_transaction:
        return None
    noted, channel.noted = channel.noted, []
    if noted:
        channel.committing.append(noted)
    return noted, channel.uncommitted_start + len(channel.uncommitted)


def _committed(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if request is None or request.subject is None:
        return
    noted, publishes = request.subject
    request.subject = None
    channel.committing = [one for one in channel.committing if one is not noted]
    tracker.settler.commit(channel, noted, frame.number, frame.ts_ns)
    tracker.settler.committed(channel, publishes)


def _roll_back(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if channel.in_transaction:
        tracker.settler.roll_back(channel)
        tracker.settler.committed(channel, channel.uncommitted_start + len(channel.uncommitted))


_read_qos = lru_cache(ALIKE)(read_object)
"""Reads the arguments of basic.qos, of many that are alike once; not to be changed."""


def _qos(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    arguments: dict[Any, Any] = _read_qos(frame.rows.arguments.bytes_of(frame.row))
    count = arguments.get("prefetch_count")
    if frame.flags & CUT:
        channel.session.has_loss = True
        channel.prefetch_count = count
        channel.prefetch_each = channel.prefetch_shared = None
        return
    if count is None:
        return
    channel.prefetch_count = count
    if arguments.get("global"):
        channel.prefetch_shared = count
    else:
        channel.prefetch_each = count
        channel.prefetch_shared = None  # RabbitMQ lifts it (seen with 3.10)


# queues and consumers


def _declare(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> Any:
    nameless: list[Any] = []  # consumers of the queue that the server names
    channel.last_queue = frame.queue or None
    channel.declaring = None if channel.last_queue else nameless
    return nameless


def _declared(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if request is None or request.subject is None or not frame.queue:
        return
    for consumer in request.subject:
        consumer.queue = frame.queue
    if request.subject is channel.declaring:
        channel.last_queue = frame.queue
        channel.declaring = None


def _name_queue(tracker: Any, channel: Channel, frame: MethodFrame, consumer: Any) -> None:
    """Give a consumer the queue that a consume or get names; an empty name is the last declared."""
    if frame.queue is None:
        return  # it was cut
    consumer.queue = frame.queue or channel.last_queue
    if consumer.queue is None and channel.declaring is not None:
        if len(channel.declaring) < tracker.limits.consumers:
            channel.declaring.append(consumer)
        else:
            tracker.settler.limit_reached("consumers")


def _no_ack(frame: MethodFrame) -> bool | None:
    """The argument no_ack; null when it was not captured."""
    return None if frame.flags & FLAGS_CUT else frame.flags & NO_ACK != 0


def _consume(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> Any:
    tag = frame.consumer_tag
    consumer = Consumer(tag, _no_ack(frame), channel.prefetch_each)
    _name_queue(tracker, channel, frame, consumer)
    no_wait = frame.flags & NO_WAIT
    if no_wait:
        channel.consumers += 1
    if tag and (no_wait or tag not in channel.by_tag):
        _add_consumer(tracker, channel, tag, consumer)
    return consumer


def _consumed(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    channel.consumers += 1
    tag = frame.consumer_tag
    if request is not None and request.subject is not None and tag is not None:
        request.subject.tag = tag
        _add_consumer(tracker, channel, tag, request.subject)


def _add_consumer(tracker: Any, channel: Channel, tag: str, consumer: Any) -> None:
    if tag not in channel.by_tag:
        few = len(channel.by_tag) < tracker.limits.consumers
        if not few or tracker.consumers_known >= tracker.limits.all_consumers:
            tracker.settler.limit_reached("consumers")
            return
        tracker.consumers_known += 1
    if channel.cancelled is not None:
        channel.cancelled.pop(tag, None)
    if not channel.by_tag:
        channel.by_tag = {}
    channel.by_tag[tag] = consumer
    channel.recent_consumer_batch = -1


def _cancelled(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if frame.side == SERVER:
        consumer = channel.by_tag.pop(frame.consumer_tag, None)
        channel.recent_consumer, channel.recent_consumer_batch = None, -1
        tracker.consumers_known -= consumer is not None
        if consumer is not None and frame.name == "basic.cancel":
            _keep_cancelled(channel, frame.consumer_tag, consumer)
        if tracker.emitter is not None and frame.name == "basic.cancel" and frame.whole:
            facts = {"consumer": consumer, "tag": frame.consumer_tag}
            tracker.emitter.emit("consumer-cancelled", channel, frame.number, frame.ts_ns, facts)


def _keep_cancelled(channel: Channel, tag: str, consumer: Any) -> None:
    """Keep a consumer that the broker cancelled: deliveries may come to it again."""
    if channel.cancelled is None:
        channel.cancelled = {}
    channel.cancelled[tag] = consumer
    if len(channel.cancelled) > MAX_CANCELLED:
        del channel.cancelled[next(iter(channel.cancelled))]


def resume_consumer(tracker: Any, channel: Channel, tag: str | None) -> Any:
    """The consumer that the broker cancelled under a tag and delivers to again."""
    consumer = None if channel.cancelled is None or tag is None else channel.cancelled.get(tag)
    if consumer is not None and tag is not None:
        _add_consumer(tracker, channel, tag, consumer)
    return consumer


def _get(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> Any:
    times = channel.own_times()
    times.gets += 1
    consumer = Consumer(None, _no_ack(frame))
    _name_queue(tracker, channel, frame, consumer)
    return consumer


def _recover(tracker: Any, channel: Channel, frame: MethodFrame, request: Request | None) -> None:
    if frame.side == CLIENT and not frame.whole:
        tracker.settler.acknowledge_in_part(channel, -1)
    elif frame.side == CLIENT and frame.flags & REQUEUE:
        until = tracker.answered_to(channel.deliveries, frame.row, frame.number, frame.ts_ns)
        if until is not None:
            tracker.settler.recover(channel, until, frame.number, frame.ts_ns)


ON_CHANNEL: dict[str, Callable[..., Any]] = {
    "channel.open-ok": _open_ok,
    "channel.close": _close,
    "channel.close-ok": _close_ok,
    "confirm.select": _select,
    "confirm.select-ok": _selected,
    "tx.select": _select,
    "tx.select-ok": _selected,
    "tx.commit": _commit,
    "tx.commit-ok": _committed,
    "tx.rollback": _roll_back,
    "basic.qos": _qos,
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


# connections


def learn(tracker: Any, session: Session, frame: MethodFrame, request: Request | None) -> None:
    """Keep the arguments of a handshake method, as JSON, its time and its packet."""
    place: cython.int = 2 * _STEPS[frame.method] - 2
    if session.steps[place + 1] == NULL:
        session.steps[place] = frame.ts_ns
        session.steps[place + 1] = frame.number
    if frame.name not in session.handshake:
        arguments = tracker.remember(frame.name, frame.arguments_json or b"", frame.whole)
        session.take_handshake(frame.name, arguments)


def _open_connection(
    tracker: Any, session: Session, frame: MethodFrame, request: Request | None
) -> None:
    """Heartbeats begin: the client's silence before does not count, nor the broker's until this."""
    learn(tracker, session, frame, request)
    if tracker.emitter is None:  # else a rule looks at it
        tracker.doubled.opened(session)
    session.opening_client_ns = session.silence_client_ns
    session.opening_server_ns = session.silence_server_ns
    if frame.ts_ns != NULL and session.last_server_ns > 0:
        since: cython.longlong = frame.ts_ns - session.last_server_ns
        session.opening_server_ns = max(session.opening_server_ns, since)


def _close_connection(
    tracker: Any, session: Session, frame: MethodFrame, request: Request | None
) -> None:
    slot: ChannelSlot
    for slot in session.slots():
        if slot.channel is not None:
            slot.channel.broker_discards = True
    close = read_close(frame.arguments_json)
    if _is_close_of(session, close):
        session.closed_by = SIDES[frame.side]
        session.close_packet_number = frame.number
        session.close_ns = _time(frame.ts_ns)
        session.close = close
        tracker.on_connection_closed(session)


def _close_connection_ok(
    tracker: Any, session: Session, frame: MethodFrame, request: Request | None
) -> None:
    if session.state_code == _OVER and not session.over:
        for slot in session.slots():
            if slot.channel is not None:
                if frame.side == SERVER and session.closed_by == SIDES[CLIENT]:
                    tracker.settler.accept_all(slot.channel)
                tracker.settler.give_up_tentative(slot.channel, frame.ts_ns)
        _end_channels(tracker, session)
        session.over = True


def _block(tracker: Any, session: Session, frame: MethodFrame, request: Request | None) -> None:
    """connection.blocked and unblocked: count the time between them."""
    before = session.blocking
    session.blocking = BLOCKING.then(before, frame.method, frame.side)
    if session.blocking == before:
        return
    if session.blocking == "blocked":
        session.blocked_since = frame.ts_ns
    elif before == _FREE:
        session.blocked_ns = None  # it was blocked before the capture began, or in a hole
    else:
        end_block(session, frame.ts_ns)


def end_block(session: Any, ts_ns: Any) -> Any:
    """End of a block: the broker takes publishes again, or the connection ends."""
    since = session.blocked_since
    session.blocked_since = None
    if session.blocked_ns is not None:
        known = since != NULL and ts_ns != NULL
        session.blocked_ns = session.blocked_ns + max(ts_ns - since, 0) if known else None
    return 0


ON_CONNECTION: dict[str, Callable[..., Any]] = {
    "connection.start": learn,
    "connection.start-ok": learn,
    "connection.tune": learn,
    "connection.tune-ok": learn,
    "connection.open": learn,
    "connection.open-ok": _open_connection,
    "connection.close": _close_connection,
    "connection.close-ok": _close_connection_ok,
    "connection.blocked": _block,
    "connection.unblocked": _block,
}


@cython.cfunc
def _end_channels(tracker: Any, session: Session) -> cython.int:
    """Every channel ends with its connection."""
    slot: ChannelSlot
    for slot in session.slots():
        if slot.channel is None:
            continue
        if slot.channel.closed_by is None:
            slot.channel.closed_by = session.closed_by
            slot.channel.closed_packet_number = session.close_packet_number
            slot.channel.end_ns = session.close_ns
        _end_channel(tracker, slot)
    return 0


def note_end(tracker: Any, session: Session) -> cython.int:
    """Note which side ended a connection, and each side's debts, before its channels end."""
    slot: ChannelSlot
    conversation = session.connection.conversation
    if session.closed_by is None:
        session.closed_by = conversation.ended
    for slot in session.slots():
        if slot.channel is not None:
            tracker.settler.give_up_tentative(slot.channel, conversation.end_ns)
    if tracker.wants_connections:
        session.owed = sentence(session)
    return 0


def end_connection(tracker: Any, session: Session) -> cython.int:
    """The connection is over, in whatever way."""
    slot: ChannelSlot
    conversation = session.connection.conversation
    _end_channels(tracker, session)
    for slot in session.slots():
        drop_requests(slot, CLIENT, True)
        drop_requests(slot, SERVER, True)
    if session.blocked_since is not None:
        end_block(session, conversation.end_ns)
    session.over = True
    return 0


def lose_frames(session: Session, side: cython.int, place: tuple[Any, ...]) -> cython.int:
    """Frames of a side may be missing before `place` (packet number, ts_ns)."""
    slot: ChannelSlot
    session.has_loss = True
    if session.lost_at is None:
        session.lost_at = ([], [])
    lost: list[Any] = session.lost_at[side]
    lost.append((*place, lost[len(lost) - 1][2] + 1 if lost else 1))
    if len(lost) > _MAX_LOST:
        del lost[0]
    session.missing |= 1 << side
    if side == SERVER:
        session.blocking = _FREE
        if session.blocked_since is not None:
            session.blocked_since = session.blocked_ns = None
    for slot in session.drain_used(side):
        drop_requests(slot, 1 - side, True)
        channel: Channel = slot.channel
        if channel is None:
            continue
        channel.declaring = None  # the queue's name is lost with its request
        if side == CLIENT:
            channel.numbering = False
            channel.last_queue = None
        mark_uncertain(channel, side)
    return 0


def resume_side(session: Session, side: cython.int) -> cython.int:
    """A side's first method after a loss: before it anything may have been answered."""
    slot: ChannelSlot
    session.missing &= ~(1 << side)
    for slot in session.slots():
        if slot.channel is not None:
            mark_uncertain(slot.channel, side)
    return 0


def mark_uncertain(channel: Channel, side: cython.int) -> cython.int:
    """Missing frames of a side may have answered the entries that wait on a channel."""
    channel.publishes_uncertain = channel.deliveries_uncertain = True
    channel.losses += 1
    if channel.unnumbered_confirms is not None:
        channel.unnumbered_confirms.forget()
    if side == CLIENT:
        last: cython.longlong = max(channel.last_tag, channel.deliveries.last)  # one may be cut
        channel.tag_before_loss = max(channel.tag_before_loss, last)
    else:
        channel.publish_before_loss = channel.next_number - 1
    return 0


@cython.cfunc
def _time(ts_ns: cython.longlong) -> Any:
    """A time, None for null."""
    return None if ts_ns == NULL else ts_ns


CHANNEL_HANDLERS = [ON_CHANNEL.get(name) for name in method_flags.NAMES]
CONNECTION_HANDLERS = [ON_CONNECTION.get(name) for name in method_flags.NAMES]
CONNECTION_STEP_HANDLERS = [
    None if one in (learn, _open_connection) else one for one in CONNECTION_HANDLERS
]
"""Handlers of connections where handshake arguments are not needed."""
