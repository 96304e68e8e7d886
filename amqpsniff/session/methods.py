# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What the methods that do not come with every message change: a table of handlers.

A handler of `ON_CHANNEL` is called with the tracker, the lane of the channel number, the channel,
the event, and the request that the method answers (None where it answers none); one of
`ON_CONNECTION` with the session in place of lane and channel. What it returns is kept with the
request that the method is, for the handler of the reply. Methods without a handler change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cython

from amqpsniff.columns import NULL
from amqpsniff.session import consumers
from amqpsniff.session.state import CLIENT, SERVER, Reason, read_reason
from amqpsniff.session.states import BLOCKING, CHANNEL, CONNECTION, MODE
from amqpsniff.spec import METHODS, SIDES

if cython.compiled:
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Channel,
        Event,
        Lane,
        Request,
        Session,
    )
else:
    from amqpsniff.session.state import Channel, Event, Lane, Request, Session

# What a client sends and the server discards once it has closed the channel.
DISCARDED = frozenset(
    "basic.recover basic.recover-async basic.recover-sync tx.commit tx.rollback tx.select "
    "confirm.select basic.qos queue.declare basic.consume basic.cancel".split()
)


_PROVED = "open"
"""State of a channel on which something comes although its beginning was not seen."""


# channels


def begin_channel(
    session: Session, lane: Lane, capture: str | None, event: Event | None = None
) -> Any:
    """A new incarnation of a channel; `event` is its channel.open, None when that was not seen."""
    lane.incarnations += 1
    channel = Channel(session, capture, lane.number, lane.incarnations, event is not None)
    channel.state = _PROVED
    if event is not None:
        channel.state = CHANNEL.after[CHANNEL.start, event.side, event.name]
        channel.opened_packet_number = event.number
        channel.start_ns = _time(event.ts_ns)
    channel.deaf = session.closing[SERVER]
    lane.channel = channel
    session.channels_opened += 1
    return channel


def open_channel(
    tracker: Any, session: Session, lane: Lane, capture: str | None, event: Event
) -> None:
    """channel.open: what was open on the number ends, what waits for a reply gets none."""
    if lane.channel is not None:
        if tracker.judges:
            tracker.tell("channel-opened-twice", lane.channel, event.number, event.ts_ns, {})
        _end_channel(tracker, session, lane)
    drop_requests(lane, CLIENT)
    drop_requests(lane, SERVER)
    lane.dead = [False, False]
    channel = begin_channel(session, lane, capture, event)
    if tracker.judges:
        tracker.tell("channel-begins", channel, event.number, event.ts_ns, {})


def _end_channel(tracker: Any, session: Session, lane: Lane) -> None:
    channel = lane.channel
    lane.channel = None
    tracker.add_channel(channel)
    session.published += channel.published
    session.delivered += channel.delivered
    session.acknowledged += channel.acknowledged


def drop_requests(lane: Lane, side: int, *keep: str) -> None:
    """Requests of a side get no reply any more, but those of the methods to `keep`."""
    if not lane.requests:
        return
    kept = []
    for request in lane.requests:
        if request.side == side and METHODS[request.method].name not in keep:
            request.rows.settle(request.row)
        else:
            kept.append(request)
    lane.requests = kept


def _move_channel(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    """The state of a channel after a method, and who has closed it."""
    channel.state = CHANNEL.after[channel.state, event.side, event.name]
    channel.closing = CHANNEL.closing[channel.state]


def _close(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    other = 1 - event.side
    waiting = lane.requests
    _move_channel(tracker, lane, channel, event, request)
    drop_requests(lane, other, "channel.close")
    lane.dead[other] = True
    if event.side == SERVER:
        channel.deaf = True
    if event.side == SERVER and tracker.judges and waiting:
        channel.blamed_packet_number = _blamed(waiting, other, close_reason(event)[2])
    if channel.closed_by is None:
        channel.closed_by = SIDES[event.side]
        channel.closed_packet_number = event.number
        channel.end_ns = _time(event.ts_ns)
        channel.close_octets = event.octets


def _close_ok(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    _move_channel(tracker, lane, channel, event, request)
    if channel.state != CHANNEL.start:
        return
    drop_requests(lane, CLIENT, "channel.close")
    drop_requests(lane, SERVER, "channel.close")
    _end_channel(tracker, channel.session, lane)


def _blamed(requests: list[Any], side: int, method: str | None) -> int | None:
    """Packet of a side's oldest request of that method."""
    for request in requests:
        if request.side == side and METHODS[request.method].name == method:
            number: int = request.number
            return number
    return None


def close_reason(event: Event) -> Reason:
    """Code, text and blamed method of a close; each null when it was not captured."""
    return read_reason(event.octets)


# modes


def _select(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if channel.mode is None:
        channel.mode = MODE.after[MODE.start, event.side, event.name]
        channel.numbering = channel.numbered = channel.mode == "confirm"
        if channel.mode == "tx":
            tracker.settler.select(channel)


def _selected(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> None:
    if channel.mode is None and request is None:
        channel.mode = MODE.after[MODE.start, event.side, event.name]


def _commit(
    tracker: Any, lane: Lane, channel: Channel, event: Event, request: Request | None
) -> Any:
    channel.commits += 1
    if not channel.in_transaction:
        return None
    noted, channel.noted = channel.noted, []
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
    count = event.arguments.get("prefetch_count")
    if count is None:
        return
    channel.prefetch_count = count
    if event.arguments.get("global"):
        channel.prefetch_shared = count
    else:
        channel.prefetch_each = count
        channel.prefetch_shared = None  # RabbitMQ lifts it (seen with 3.10)


ON_CHANNEL: dict[str, Callable[..., Any]] = {
    "channel.open-ok": _move_channel,
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


def move_connection(tracker: Any, session: Session, side: int, name: str) -> bool:
    """The state of a connection after a method that has a step in the table, and who has closed it.

    Gives whether the method was out of order, which only rules want to know.
    """
    before = session.state
    then = CONNECTION.after[before, side, name]
    if then != before:
        session.state = then
        session.closing = CONNECTION.closing[then]
    return tracker.judges and not CONNECTION.allows(before, side, name)


def learn(tracker: Any, session: Session, event: Event, request: Request | None) -> None:
    """Keep what the peers say of themselves and agree on, as JSON."""
    session.facts.setdefault(event.name, event.octets)


def _close_connection(
    tracker: Any, session: Session, event: Event, request: Request | None
) -> None:
    other = 1 - event.side
    session.dead[other] = True
    for lane in session.lanes.values():
        drop_requests(lane, other, "channel.close", "connection.close")
        if event.side == SERVER and lane.channel is not None:
            lane.channel.deaf = True
    if session.closed_by is None:
        session.closed_by = SIDES[event.side]
        session.close_packet_number = event.number
        session.close_ns = _time(event.ts_ns)
        session.close_octets = event.octets
        tracker.see_shut(session)


def _close_connection_ok(
    tracker: Any, session: Session, event: Event, request: Request | None
) -> None:
    if session.state == "over" and not session.over:
        _end_channels(tracker, session)
        session.over = True


def _block(tracker: Any, session: Session, event: Event, request: Request | None) -> None:
    """connection.blocked and unblocked: count the time between them."""
    before = session.blocking
    session.blocking = BLOCKING.after[before, event.side, event.name]
    if before == BLOCKING.start and session.blocking == "freed":
        session.blocked_ns = None  # it was blocked before the capture began
    elif session.blocking != before and session.blocked_ns is not None:
        if session.blocked_since is None:
            session.blocked_since = event.ts_ns
        else:
            session.blocked_ns += event.ts_ns - session.blocked_since
            session.blocked_since = None


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


def _end_channels(tracker: Any, session: Session) -> None:
    """Every channel ends with its connection."""
    for lane in session.lanes.values():
        if lane.channel is None:
            continue
        if lane.channel.closed_by is None:
            lane.channel.closed_by = session.closed_by
            lane.channel.closed_packet_number = session.close_packet_number
            lane.channel.end_ns = session.close_ns
        _end_channel(tracker, session, lane)


def end_connection(tracker: Any, session: Session) -> None:
    """The connection is over, in whatever way."""
    conversation = session.peer.conversation
    if session.closed_by is None:
        session.closed_by = conversation.ended
    _end_channels(tracker, session)
    for lane in session.lanes.values():
        drop_requests(lane, CLIENT)
        drop_requests(lane, SERVER)
    if session.blocked_since is not None:
        if conversation.end_ns >= session.blocked_since > 0:
            session.blocked_ns += conversation.end_ns - session.blocked_since
        session.blocked_since = None
    session.over = True


def lose(session: Session, side: int) -> None:
    """Frames that a side sent may be missing from here on."""
    session.lossy = True
    for lane in session.lanes.values():
        drop_requests(lane, 1 - side)
        channel = lane.channel
        if channel is not None and side == CLIENT:
            channel.numbering = False
            channel.last_queue = channel.declaring = None


def _time(ts_ns: int) -> int | None:
    return None if ts_ns == NULL else ts_ns
