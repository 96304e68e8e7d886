# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Requests and their replies: the synchronous methods of each side, channel by channel."""

import cython
from cython.cimports.amqpsniff.decode.rows import FrameRows
from cython.cimports.amqpsniff.session.counts import Spread
from cython.cimports.amqpsniff.session.event import (
    Request,
    request_of,
)

from amqpsniff.columns import NULL
from amqpsniff.session import kinds

_NULL = cython.declare(cython.longlong, NULL)


_MAX_EARLY = cython.declare(cython.int, 16)


class Pairing:
    """Finds the request that a method answers.

    Where framing had to be found, frames come late, behind later ones of the other side: requests
    behind their replies. Of a lane that this may happen to, the last replies without a request are
    kept as (method, side, moment, packet number, ts_ns) in `early`. `late_row` is the row of a
    frame that is late, -1 for none, and `moment` when it came; see `FrameRows.moment`.

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
        self.late_row = self.moment = -1

    def measure(self):
        """Keep the times of replies from now on: a `counts.Spread` for each name of a request."""
        self.spreads = {}

    def ask(self, session, lane, frames, row, method, side, subject):
        """A request that waits for its reply from now on, unless it is late and that is there."""
        if lane.early and self._came(lane, frames, row, method, side):
            return 0
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
        """The request that a method, one of `ANSWERS`, answers, whose frame then says so; None
        where none waits for it.
        """
        place: cython.Py_ssize_t = 0
        request: Request = None
        while place < len(lane.requests):
            request = lane.requests[place]
            if request.side != side and self.replies[request.method * self.count + method]:
                break
            place += 1
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        if place == len(lane.requests):
            if lane.early is not None:
                late: cython.bint = self.late_row == row
                moment = self.moment if late else frames.moment_after(row)
                lane.early.append((method, side, moment, number, ts_ns))
                if len(lane.early) > _MAX_EARLY:
                    del lane.early[0]
            return None
        del lane.requests[place]
        request.rows.settle(request.row)
        self._answer(request, number, ts_ns)
        return request

    def _came(self, lane, frames, row, method, side):
        """Whether the reply of a request came before it, as its frame then says."""
        if self.late_row != row:
            lane.early = [one for one in lane.early if one[1] == side]
            return False
        request: Request = request_of(frames, row)
        for place, (reply, by, moment, number, ts_ns) in enumerate(lane.early):
            answers = by != side and self.replies[method * self.count + reply]
            if answers and moment > self.moment:
                del lane.early[place]
                self._answer(request, number, ts_ns)
                return True
        return False

    def _answer(self, request, number, ts_ns):
        """A request was answered in a packet, at a time."""
        rows: FrameRows = request.rows
        timed: cython.bint = request.ts_ns != _NULL and ts_ns != _NULL
        if self.spreads is not None and timed:
            name = self.names[request.method]
            spread: Spread = self.spreads.get(name)
            if spread is None:
                spread = self.spreads[name] = Spread()
            spread.add(ts_ns - request.ts_ns)
        if rows.wanted and not rows.given:
            rows.response_packet_number.values[request.row] = number
            if timed:
                rows.response_ns.values[request.row] = ts_ns - request.ts_ns
        return 0
