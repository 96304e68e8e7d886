# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What a method does to the state of its connection or channel number, and to the requests that
wait there: all that replies are found by.
"""

import cython
from cython.cimports.amqpsniff.session.event import Request
from cython.cimports.amqpsniff.session.state import Lane

from amqpsniff.session import kinds
from amqpsniff.session.states import CHANNEL, CONNECTION

PROVED = CHANNEL.code("open")
"""State of a channel on which something comes although its beginning was not seen."""

_CLIENT = cython.declare(cython.int, 0)
_SERVER = cython.declare(cython.int, 1)
_METHODS = cython.declare(cython.int, len(kinds.NAMES))
_CHANNEL_OPEN = cython.declare(cython.int, kinds.CHANNEL_OPEN)
_CHANNEL_CLOSE = cython.declare(cython.int, kinds.CHANNEL_CLOSE)
_CHANNEL_CLOSE_OK = cython.declare(cython.int, kinds.CHANNEL_CLOSE_OK)

_CONNECTION_AFTER = cython.declare(bytes, CONNECTION.after)
_CONNECTION_CLOSING = cython.declare(bytes, CONNECTION.closing)
_CHANNEL_AFTER = cython.declare(bytes, CHANNEL.after)
_CLOSES = cython.declare(bytes, kinds.CLOSES)
_CLOSED = cython.declare(cython.int, CHANNEL.code(CHANNEL.start))
_PROVED = cython.declare(cython.int, PROVED)
_OVER = cython.declare(cython.int, CONNECTION.code("over"))


def move_connection(session, method, side):
    """A method moves its connection; who has closed sends no replies any more."""
    lane: Lane
    other: cython.int = 1 - side
    session.step = _CONNECTION_AFTER[2 * (session.step * _METHODS + method) + side]
    if _CLOSES[method]:
        if not session.dead & 1 << other:
            for lane in session.lanes.values():
                drop_requests(lane, other, False)
        session.dead |= 1 << other
    return session.step == _OVER


def has_closed(session, side):
    """Whether a side has closed the connection."""
    return _CONNECTION_CLOSING[session.step] >> side & 1 != 0


def move_lane(lane, method, side):
    """A method moves its channel number; what will get no reply any more does not wait for one.

    Nothing but channel.open begins an incarnation, and channel.close-ok is of no other; any other
    method proves one.
    """
    other: cython.int = 1 - side
    if method == _CHANNEL_OPEN:
        drop_requests(lane, _CLIENT, True)
        drop_requests(lane, _SERVER, True)
        lane.dead = 0
        lane.step = _CLOSED
    elif lane.step == _CLOSED:
        if method == _CHANNEL_CLOSE_OK:
            return 0
        lane.step = _PROVED
    lane.step = _CHANNEL_AFTER[2 * (lane.step * _METHODS + method) + side]
    if method == _CHANNEL_CLOSE:
        drop_requests(lane, other, False)
        lane.dead |= 1 << other
    elif method == _CHANNEL_CLOSE_OK and lane.step == _CLOSED:
        drop_requests(lane, _CLIENT, False)
        drop_requests(lane, _SERVER, False)
    return 0


def drop_requests(lane, side, closes):
    """Requests of a side get no reply any more; those to close only where `closes` says so."""
    request: Request
    if not lane.requests:
        return 0
    kept: list = []
    for request in lane.requests:
        if request.side == side and (closes or not _CLOSES[request.method]):
            request.rows.settle(request.row)
        else:
            kept.append(request)
    lane.requests = kept
    return 0
