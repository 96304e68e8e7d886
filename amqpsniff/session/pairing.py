# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Requests and their replies: the synchronous methods of each side, channel by channel."""

import cython

from amqpsniff.columns import NULL
from amqpsniff.session import kinds

if cython.compiled:
    from cython.cimports.amqpsniff.decode.rows import FrameRows  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.counts import Spread  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.event import (  # type: ignore[import-not-found]
        Request,
        request_of,
    )
else:
    from amqpsniff.decode.rows import FrameRows
    from amqpsniff.session.counts import Spread
    from amqpsniff.session.event import Request, request_of

_NULL = cython.declare(cython.longlong, NULL)


class Pairing:
    """Finds the request that a method answers.

    Args:
        settler: Counts what was not remembered because of a limit.
    """

    def __init__(self, limits, settler):
        self.most = limits.requests
        self.settler = settler
        self.closes = kinds.CLOSES
        self.replies = kinds.REPLIES
        self.names = kinds.NAMES  # dialects may have methods of one name
        self.count = len(self.names)
        self.spreads = None

    def measure(self):
        """Keep the times of replies from now on: a `counts.Spread` for each name of a request."""
        self.spreads = {}

    def ask(self, session, lane, frames, row, method, side, subject):
        """A request that waits for its reply from now on."""
        if (lane.dead | session.dead) & (1 << side) and not self.closes[method]:
            return 0
        if len(lane.requests) >= self.most:
            return self.settler.hit("requests")
        request: Request = request_of(frames, row)
        request.subject = subject
        lane.requests.append(request)
        frames.wait(row)
        return 0

    def reply(self, lane, frames, row, method, side):
        """The request that a method answers, whose frame then says so; None for none."""
        place: cython.Py_ssize_t = 0
        request: Request = None
        while place < len(lane.requests):
            request = lane.requests[place]
            if request.side != side and self.replies[request.method * self.count + method]:
                break
            place += 1
        if place == len(lane.requests):
            return None
        del lane.requests[place]
        asked: cython.longlong = request.ts_ns
        if self.spreads is not None and asked != _NULL and frames.ts_ns.values[row] != _NULL:
            name = self.names[request.method]
            spread: Spread = self.spreads.get(name)
            if spread is None:
                spread = self.spreads[name] = Spread()
            spread.add(frames.ts_ns.values[row] - asked)
        rows: FrameRows = request.rows
        rows.settle(request.row)
        if rows.wanted and not rows.given:
            rows.response_packet_number.values[request.row] = frames.packet_number.values[row]
            if request.ts_ns != _NULL and frames.ts_ns.values[row] != _NULL:
                rows.response_ns.values[request.row] = frames.ts_ns.values[row] - request.ts_ns
        return request
