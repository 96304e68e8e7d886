# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Methods that do not come with every message: the states that they lead to (`state_machine`), the
requests that they answer (`ReplyMatcher`), and their handlers.

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
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.decode.rows import FrameRows
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CLIENT, SERVER
from cython.cimports.amqpsniff.session.counts import Histogram
from cython.cimports.amqpsniff.session.entities import Channel, ChannelSlot, Consumer, Session
from cython.cimports.amqpsniff.session.method_flags import (
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
)
from cython.cimports.amqpsniff.session.method_frame import MethodFrame, Request, request_of

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.method_layout import CUT, FLAGS_CUT, NO_ACK, NO_WAIT, REQUEUE
from amqpsniff.session import method_flags
from amqpsniff.session.method_frame import ALIKE, read_close, read_reason
from amqpsniff.session.owing import sentence
from amqpsniff.session.state_machine import BLOCKING, CHANNEL, CONNECTION, MODE
from amqpsniff.spec import FIRST_ERROR_CODE, SIDES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from amqpsniff.session.settling import Settler

MAX_CANCELLED = 64
"""Consumers of a channel that the broker cancelled and that are remembered, the latest ones."""

MAX_EARLY_REPLIES = 16
"""Replies of a channel number that wait for a late request, the latest ones."""

_METHODS = cython.declare(cython.int, len(method_flags.NAMES))
_NAMES = cython.declare(list, method_flags.NAMES)
"""By number, since dialects may have methods of one name."""

_CONNECTION_AFTER = cython.declare(bytes, CONNECTION.after)
_CONNECTION_CLOSING = cython.declare(bytes, CONNECTION.closing)
_CHANNEL_AFTER = cython.declare(bytes, CHANNEL.after)
_CLOSES = cython.declare(bytes, method_flags.CLOSES)
_REPLIES = cython.declare(bytes, method_flags.REPLIES)
_STEPS = cython.declare(bytes, method_flags.STEPS)
_CLOSED = cython.declare(cython.int, CHANNEL.code(CHANNEL.start))
_FREE = cython.declare(str, BLOCKING.start)

_MAX_LOST = cython.declare(cython.int, 16)

_UNKNOWN_TAG = re.compile(r"unknown delivery tag (\d+)")
_MAX_TAG = 2**63 - 1
_ACKNOWLEDGEMENTS = frozenset(("basic.ack", "basic.nack", "basic.reject"))
# on which something comes although its beginning was not seen
_PROVED = cython.declare(cython.int, CHANNEL.code("open"))
_OVER = cython.declare(cython.int, CONNECTION.code("over"))


# states


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


# requests and their replies


_NO_REQUESTS: list[Any] = cython.declare(list, [])
"""Of slots where nothing waits: never added to."""


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


@cython.cfunc
def _is_later(place: Any, request: Request) -> cython.bint:
    """True if a place (packet number, ts_ns) comes after a request by its packet and by its time:
    each capture has packet numbers of its own.
    """
    return place[0] > request.number and place[1] >= request.ts_ns


@cython.cfunc
def _losses(session: Session, side: cython.int) -> cython.longlong:
    """The number of losses of frames of a side so far."""
    lost: list[Any] = session.lost_at[side] if session.lost_at is not None else None
    return lost[len(lost) - 1][2] if lost else 0


@cython.cfunc
def _losses_before(session: Session, request: Request) -> cython.longlong:
    """The number of losses of the other side's frames before a request; -1 if that is forgotten."""
    if session.lost_at is None:
        return 0
    lost: list[Any] = session.lost_at[1 - request.side]
    for at, (*place, count) in enumerate(lost):
        if _is_later(place, request):
            return count - 1 if at or count == 1 else -1
    return _losses(session, 1 - request.side)


@cython.cclass
class ReplyMatcher:
    """Finds the request that a method answers.

    After a resynchronization, or a wait for a hole, frames come late, after later frames of the
    other side: requests after their replies, and after a loss of these replies. So the last replies
    of a channel slot without a request are kept as (method, side, packet number, ts_ns, losses of
    that side so far), and packet numbers decide the order.

    Args:
        limits: Bounds on what is remembered.
        settler: Counts the entries dropped because of a limit; has the scope of the census.
        measures: Keep times of replies: a `counts.Histogram` for each request by name.
    """

    most: cython.longlong

    settler: Settler
    histograms: dict[Any, Any]

    def __init__(self, limits: Any, settler: Any, measures: bool) -> None:
        self.most = limits.requests
        self.settler = settler
        self.histograms = {} if measures else None

    def ask(
        self,
        session: Session,
        slot: ChannelSlot,
        frames: FrameRows,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
        subject: Any,
    ) -> cython.int:
        """A request that waits for its reply from now on, unless it is late and that is there."""
        request: Request = request_of(frames, row)
        before: cython.longlong = _losses_before(session, request)
        if slot.early_replies and self._find_early_reply(session, slot, request, before):
            return 0
        if before < _losses(session, 1 - side):
            return 0  # its reply may be missing
        if (slot.no_reply_expected | session.no_reply_expected) & (1 << side) and not _CLOSES[
            method
        ]:
            return 0
        if len(slot.requests) >= self.most:
            return self.settler.limit_reached("requests")
        request.subject = subject
        if not slot.requests:
            slot.requests = []
        slot.requests.append(request)
        frames.wait(row)
        return 0

    @cython.cfunc
    def reply(
        self,
        session: Session,
        slot: ChannelSlot,
        frames: FrameRows,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
    ) -> Request:
        """The request that a method of `ANSWERS` answers, noted in its frame; or None."""
        place: cython.Py_ssize_t = 0
        request: Request = None
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        while place < len(slot.requests):
            request = slot.requests[place]
            if (
                request.side != side
                and _REPLIES[request.method * _METHODS + method]
                and not (number < request.number and ts_ns <= request.ts_ns)
            ):
                break
            place += 1
        if place == len(slot.requests):
            early = (method, side, number, ts_ns, _losses(session, side))
            slot.early_replies = [*slot.early_replies[-MAX_EARLY_REPLIES + 1 :], early]
            return None
        del slot.requests[place]
        if not slot.requests:
            slot.requests = _NO_REQUESTS
        request.rows.settle(request.row)
        self._answer(session, slot, request, number, ts_ns)
        return request

    def _find_early_reply(
        self, session: Session, slot: ChannelSlot, request: Request, before: cython.longlong
    ) -> cython.bint:
        """True if a reply came before a request; it is its own if nothing was lost `before` it."""
        kept = [
            one
            for one in slot.early_replies
            if one[1] == request.side or _is_later(one[2:4], request)
        ]
        slot.early_replies = kept
        for place, (reply, by, number, ts_ns, losses) in enumerate(kept):
            if by != request.side and _REPLIES[request.method * _METHODS + reply]:
                del kept[place]
                if losses <= before:
                    self._answer(session, slot, request, number, ts_ns)
                return True
        return False

    def _answer(
        self,
        session: Session,
        slot: ChannelSlot,
        request: Request,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A request was answered in a packet, at a time."""
        rows: FrameRows = request.rows
        took: cython.longlong = elapsed(request.ts_ns, ts_ns)
        counts: cython.bint = True
        if self.settler.scope is not None:
            counts = self.settler.scope.includes(session.connection, slot.number, request.ts_ns)
        if self.histograms is not None and took != NULL and counts:
            name = _NAMES[request.method]
            histogram: Histogram = self.histograms.get(name)
            if histogram is None:
                histogram = self.histograms[name] = Histogram()
            histogram.add(took)
        if rows.wanted and not rows.given:
            rows.response_packet_number.values[request.row] = number
            rows.response_ns.values[request.row] = took
        return 0


# times of replies


@cython.no_gc
@cython.cclass
class ReplyTimes:
    """Times that answers to one method took. `number` and `ts_ns` are of the slowest request.

    `before`: those of the method that was answered first before it, or None.
    """

    name: str
    before: ReplyTimes
    count: cython.longlong
    took_ns: cython.longlong
    longest_ns: cython.longlong
    number: cython.longlong
    ts_ns: cython.longlong

    def __init__(self, name: str, before: ReplyTimes | None) -> None:
        self.name, self.before = name, before
        self.count = self.took_ns = self.number = 0
        self.longest_ns = -1
        self.ts_ns = NULL


@cython.no_gc
@cython.cclass
class Waited:
    """Time in which a connection waited for answers, overlapping waits counted once. `number` and
    `ts_ns` are of the first request; `latest` is of the method that was answered first last.
    """

    latest: ReplyTimes

    number: cython.longlong
    ts_ns: cython.longlong
    count: cython.longlong
    waited_ns: cython.longlong
    until_ns: cython.longlong

    def __init__(self, request: Request) -> None:
        self.number, self.ts_ns = request.number, request.ts_ns
        self.count = self.waited_ns = self.until_ns = 0
        self.latest = None

    def by_method(self) -> dict[str, ReplyTimes]:
        """The answers by method, in the order in which each was answered first."""
        answers: ReplyTimes = self.latest
        found: list[Any] = []
        while answers is not None:
            found.append((answers.name, answers))
            answers = answers.before
        return dict(reversed(found))


def note_answer(
    memory: dict[Any, Any], name: str, request: Request, now: cython.longlong
) -> cython.longlong:
    """Remember how long an answer took, by the request's method, and give that."""
    took: cython.longlong = max(now - request.ts_ns, 0)
    waited: Waited = memory.get("waited")
    if waited is None:
        waited = memory["waited"] = Waited(request)
    answers: ReplyTimes = waited.latest
    while answers is not None and answers.name != name:
        answers = answers.before
    if answers is None:
        answers = waited.latest = ReplyTimes(name, waited.latest)
    answers.count += 1
    answers.took_ns += took
    if took > answers.longest_ns:
        answers.longest_ns = took
        answers.number, answers.ts_ns = request.number, request.ts_ns
    waited.count += 1
    since: cython.longlong = max(request.ts_ns, waited.until_ns)
    if now > since:
        waited.waited_ns += now - since
    waited.until_ns = now
    return took


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
    channel.session.has_consumed = True
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
        until = tracker.last_answerable(channel.deliveries, frame.row, frame.number, frame.ts_ns)
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
