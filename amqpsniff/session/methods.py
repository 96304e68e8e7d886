# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What the methods that do not come with every message change: a table of handlers.

A handler of `ON_CHANNEL` is called with the tracker, the lane of the channel number, the channel,
the event, and the request that the method answers (None where it answers none); one of
`ON_CONNECTION` with the session in place of lane and channel. What it returns is kept with the
request that the method is, for the handler of the reply. Methods without a handler change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.event import (
    Event,
    Request,
)
from cython.cimports.amqpsniff.session.moves import (
    drop_requests,
    has_closed,
    move_lane,
)
from cython.cimports.amqpsniff.session.state import (
    Channel,
    Lane,
    Session,
)

from amqpsniff.columns import NULL
from amqpsniff.session import consumers, kinds, moves, state
from amqpsniff.session.event import read_reason
from amqpsniff.session.states import BLOCKING, CHANNEL, CONNECTION, MODE
from amqpsniff.spec import SIDES

_CLIENT = cython.declare(cython.int, state.CLIENT)
_SERVER = cython.declare(cython.int, state.SERVER)
_NULL = cython.declare(cython.longlong, NULL)

_CLOSED = cython.declare(cython.int, CHANNEL.code(CHANNEL.start))
_OVER = cython.declare(cython.int, CONNECTION.code("over"))
_FREE = cython.declare(str, BLOCKING.start)
_PROVED = cython.declare(cython.int, moves.PROVED)

_UNKNOWN_TAG = re.compile(r"unknown delivery tag (\d+)")
_MAX_TAG = 2**63 - 1
_ACKNOWLEDGEMENTS = frozenset(("basic.ack", "basic.nack", "basic.reject"))


# channels


def begin_channel(session, lane, capture, event):
    """A new incarnation of a channel; `event` is its channel.open, None when that was not seen."""
    lane.incarnations += 1
    known: cython.bint = event is not None
    channel: Channel = Channel(session, lane, capture, known)
    if known:
        channel.opened_packet_number = event.number
        channel.start_ns = _time(event.ts_ns)
    else:
        lane.step = _PROVED
    channel.deaf = has_closed(session, _SERVER) or has_closed(session, _CLIENT)
    lane.channel = channel
    session.channels_opened += 1
    return channel


def open_channel(tracker, session, lane, capture, event):
    """channel.open: what was open on the number ends, what waits for a reply gets none."""
    if lane.channel is not None:
        if tracker.judges:
            tracker.tell("channel-opened-twice", lane.channel, event.number, event.ts_ns, {})
        tracker.settler.doubt(lane.channel, event.ts_ns)
        _end_channel(tracker, session, lane)
    move_lane(lane, event.method, event.side)
    begin_channel(session, lane, capture, event)
    if tracker.judges:
        tracker.tell("channel-begins", lane.channel, event.number, event.ts_ns, {})
    return 0


def _end_channel(tracker, session, lane):
    channel: Channel = lane.channel
    lane.channel = None
    tracker.add_channel(channel)
    lane.step = _CLOSED
    session.published += channel.published
    session.delivered += channel.delivered
    session.acknowledged += channel.acknowledged
    return 0


def _open_ok(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    move_lane(lane, event.method, event.side)


def _close(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    waiting = lane.requests
    move_lane(lane, event.method, event.side)
    channel.deaf = True
    if event.side == _SERVER:
        _refuse(tracker, channel, event)
        if tracker.judges and waiting:
            method = read_reason(event.octets)[2]
            channel.blamed_packet_number = _blamed(waiting, _CLIENT, method)
    if channel.closed_by is None:
        channel.closed_by = SIDES[event.side]
        channel.closed_packet_number = event.number
        channel.end_ns = _time(event.ts_ns)
        channel.close_bytes = event.octets


def _refuse(tracker: Any, channel: Channel, event: Event) -> None:
    """The server closed a channel: it may have refused acknowledgements on it."""
    if channel.tentative is None:
        return
    _, text, blamed = read_reason(event.octets)
    found = _UNKNOWN_TAG.search(text or "")
    if found:
        tracker.settler.refuse(channel, min(int(found[1]), _MAX_TAG))
    elif blamed in _ACKNOWLEDGEMENTS:
        tracker.settler.refuse(channel, -1)
    else:
        tracker.settler.doubt(channel, event.ts_ns)


def _close_ok(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if event.side == _SERVER and channel.closing == (True, False):
        tracker.settler.believe_all(channel)
    move_lane(lane, event.method, event.side)
    if lane.step == _CLOSED:
        tracker.settler.doubt(channel, event.ts_ns)
        _end_channel(tracker, channel.session, lane)


def _blamed(requests: list[Any], side: int, method: str | None) -> int | None:
    """Packet of a side's oldest request of that method."""
    for request in requests:
        if request.side == side and kinds.NAMES[request.method] == method:
            number: int = request.number
            return number
    return None


# modes


def _select(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if channel.mode is None:
        channel.mode = MODE.then(MODE.start, event.method, event.side)
        channel.numbering = channel.numbered = channel.mode == "confirm"
        if channel.mode == "tx":
            tracker.settler.select(channel)


def _selected(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if channel.mode is None and request is None:
        channel.mode = MODE.then(MODE.start, event.method, event.side)


def _commit(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> Any:
    channel.commits += 1
    if not channel.in_transaction:
        return None
    noted, channel.noted = channel.noted, []
    if noted:
        channel.committing.append(noted)
    return noted, channel.passed + len(channel.uncommitted)


def _committed(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if request is None or request.subject is None:
        return
    noted, publishes = request.subject
    request.subject = None
    channel.committing = [one for one in channel.committing if one is not noted]
    tracker.settler.commit(channel, noted, event.number, event.ts_ns)
    tracker.settler.committed(channel, publishes)


def _roll_back(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if channel.in_transaction:
        tracker.settler.roll_back(channel)
        tracker.settler.committed(channel, channel.passed + len(channel.uncommitted))


def _qos(tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None) -> None:
    arguments = event.arguments
    count = arguments.get("prefetch_count")
    if not event.whole:
        channel.session.lossy = True
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
    **consumers.HANDLERS,
}


# connections


def learn(tracker: Any, session: Session, event: Event, request: Request | None) -> None:
    """Keep what the peers say of themselves and agree on, as JSON."""
    facts: dict[str, Any] = session.facts
    if event.name not in facts:
        facts[event.name] = tracker.remember(event.name, event.octets or b"", event.whole)


def _close_connection(
    tracker: Any, session: Session, event: Event, request: Request | None
) -> None:
    lane: Lane
    for lane in session.lanes.values():
        if lane.channel is not None:
            lane.channel.deaf = True
    if session.closed_by is None:
        session.closed_by = SIDES[event.side]
        session.close_packet_number = event.number
        session.close_ns = _time(event.ts_ns)
        session.close_bytes = event.octets
        tracker.see_shut(session)


def _close_connection_ok(
    tracker: Any, session: Session, event: Event, request: Request | None
) -> None:
    if session.step == _OVER and not session.over:
        for lane in session.lanes.values():
            if lane.channel is not None:
                if event.side == _SERVER and session.closed_by == SIDES[_CLIENT]:
                    tracker.settler.believe_all(lane.channel)
                tracker.settler.doubt(lane.channel, event.ts_ns)
        _end_channels(tracker, session)
        session.over = True


def _block(tracker: Any, session: Session, event: Event, request: Request | None) -> None:
    """connection.blocked and unblocked: count the time between them."""
    before = session.blocking
    session.blocking = BLOCKING.then(before, event.method, event.side)
    if session.blocking == before:
        return
    if session.blocking == "blocked":
        session.blocked_since = event.ts_ns
    elif before == _FREE:
        session.blocked_ns = None  # it was blocked before the capture began, or in a hole
    else:
        _end_block(session, event.ts_ns)


def _end_block(session, ts_ns):
    """The broker takes publishes again, or there is no more to see of it."""
    since = session.blocked_since
    session.blocked_since = None
    if session.blocked_ns is not None:
        known = since != _NULL and ts_ns != _NULL
        session.blocked_ns = session.blocked_ns + max(ts_ns - since, 0) if known else None
    return 0


ON_CONNECTION: dict[str, Callable[..., Any]] = {
    "connection.start": learn,
    "connection.start-ok": learn,
    "connection.tune": learn,
    "connection.tune-ok": learn,
    "connection.open": learn,
    "connection.open-ok": learn,
    "connection.close": _close_connection,
    "connection.close-ok": _close_connection_ok,
    "connection.blocked": _block,
    "connection.unblocked": _block,
}


def _end_channels(tracker, session):
    """Every channel ends with its connection."""
    lane: Lane
    for lane in session.lanes.values():
        if lane.channel is None:
            continue
        if lane.channel.closed_by is None:
            lane.channel.closed_by = session.closed_by
            lane.channel.closed_packet_number = session.close_packet_number
            lane.channel.end_ns = session.close_ns
        _end_channel(tracker, session, lane)
    return 0


def end_connection(tracker, session):
    """The connection is over, in whatever way."""
    lane: Lane
    peer: Connection = session.peer
    conversation = peer.conversation
    if session.closed_by is None:
        session.closed_by = conversation.ended
    for lane in session.lanes.values():
        if lane.channel is not None:
            tracker.settler.doubt(lane.channel, conversation.end_ns)
    _end_channels(tracker, session)
    for lane in session.lanes.values():
        drop_requests(lane, _CLIENT, True)
        drop_requests(lane, _SERVER, True)
    if session.blocked_since is not None:
        _end_block(session, conversation.end_ns)
    session.over = True
    return 0


def lose(session, side):
    """Frames that a side sent may be missing from here on, until it is heard again."""
    lane: Lane
    session.lossy = True
    session.missing |= 1 << side
    if side == _SERVER:
        session.blocking = _FREE
        if session.blocked_since is not None:
            session.blocked_since = session.blocked_ns = None
    for lane in session.take_changed(side):
        if lane.early is None:
            lane.early = []
        drop_requests(lane, 1 - side, True)
        channel: Channel = lane.channel
        if channel is None:
            continue
        channel.declaring = None  # whose name is lost with the request that waited for it
        if side == _CLIENT:
            channel.numbering = False
            channel.last_queue = None
        doubt_answers(channel, side)
    return 0


def hear_again(session, side):
    """The first method of a side after frames of it may have been missing: in them it may have
    answered whatever stands before this method.
    """
    lane: Lane
    session.missing &= ~(1 << side)
    for lane in session.lanes.values():
        if lane.channel is not None:
            doubt_answers(lane.channel, side)
    return 0


def doubt_answers(channel, side):
    """What waits on a channel may have been answered by frames of a side that are missing."""
    channel.publishes_uncertain = channel.deliveries_uncertain = True
    channel.joined = None  # what was confirmed until then is not known any more
    if side == _CLIENT:
        channel.lost_tag = max(channel.lost_tag, channel.last_tag)
    else:
        channel.lost_publish = channel.next_number - 1
    return 0


def _time(ts_ns):
    """A time, None for null."""
    return None if ts_ns == _NULL else ts_ns


CHANNEL_HANDLERS = [ON_CHANNEL.get(name) for name in kinds.NAMES]
CONNECTION_HANDLERS = [ON_CONNECTION.get(name) for name in kinds.NAMES]
CONNECTION_STEP_HANDLERS = [one if one is not learn else None for one in CONNECTION_HANDLERS]
"""Those of connections where nobody asks what the peers said of themselves."""
