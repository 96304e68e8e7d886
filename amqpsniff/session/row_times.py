# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Times in rows of frames and messages, grouped by method or outcome.

Columns are buffers of numbers: those of the decoder, or of an Arrow array. A time that is null is
`NULL` there, and its row is left out; a code that is null is negative.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.decode.method_layout import SEND
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.method_layout import FRAME_TYPE_NAMES, WAYS
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.spec import SIDES
from amqpsniff.spec.amqp010 import overhead_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRAME_COLUMNS = ("sender", "frame_type", "ts_ns", "size", "response_ns")
MESSAGE_COLUMNS = ("method", "outcome", "ts_ns", "outcome_ns", "connection_id", "channel")
"""Columns whose buffers are needed, in their order."""

_WAITED_FOR = ("confirmed", "rejected", "unconfirmed")
_SETTLED_LATER = ("acked", "requeued", "discarded", "unsettled")
"""Outcomes of publishes that waited for a confirm, and of deliveries that waited for an ack. In
AMQP 1.0 all outcomes of what a client sends are answers."""

_ways = cython.declare(bytes, WAYS)
_waits = cython.declare(
    tuple, tuple(bytes(n in some for n in OUTCOMES) for some in (_WAITED_FOR, _SETTLED_LATER))
)
_done = cython.declare(tuple, (OUTCOMES.index("confirmed"), OUTCOMES.index("acked")))
_overheads = cython.declare(bytes, bytes(map(overhead_bytes, FRAME_TYPE_NAMES)))
_ZERO = array("q", [0])


@cython.cclass
class Times:
    """Times, each with an amount."""

    times: cython.longlong[::1]
    amounts: cython.longlong[::1]
    count: cython.longlong

    def __init__(self, rows: cython.longlong) -> None:
        self.times = _ZERO * rows
        self.amounts = _ZERO * rows
        self.count = 0

    def add(self, time: cython.longlong, amount: cython.longlong) -> cython.int:
        self.times[self.count] = time
        self.amounts[self.count] = amount
        self.count += 1
        return 0

    def given(self) -> tuple[Any, Any]:
        return self.times[: self.count], self.amounts[: self.count]


def frame_times(
    rows: cython.longlong,
    sender: cython.int[::1],
    frame_type: cython.int[::1],
    ts_ns: cython.longlong[::1],
    size: cython.longlong[::1],
    response_ns: cython.longlong[::1],
) -> list[Any]:
    """(times, amounts): bytes of frames by sender, and how long replies took."""
    row: cython.longlong
    sides: list = [Times(rows) for _ in (*SIDES, "replies")]
    client: Times = sides[0]
    server: Times = sides[1]
    replies: Times = sides[2]
    for row in range(rows):
        time: cython.longlong = ts_ns[row]
        if time == NULL:
            continue
        octets: cython.longlong = size[row] + _overheads[frame_type[row]]
        if sender[row] == 0:
            client.add(time, octets)
        elif sender[row] == 1:
            server.add(time, octets)
        if response_ns[row] != NULL:
            replies.add(time + response_ns[row], response_ns[row])
    return [one.given() for one in sides]


def message_times(
    rows: cython.longlong,
    method: cython.int[::1],
    outcome: cython.int[::1],
    ts_ns: cython.longlong[::1],
    outcome_ns: cython.longlong[::1],
    connection: cython.int[::1],
    channel: cython.int[::1],
) -> list[Any]:
    """Of publishes and of deliveries: times of all; (times, delays) of confirms or acks; times at
    which what waits began to wait, and ended; how many do not end, by (connection's code, channel).
    """
    row: cython.longlong
    way: cython.int
    code: cython.int
    ended: cython.longlong
    found: list = [[Times(rows) for _ in range(4)] for _ in range(2)]
    left: tuple = ({}, {})
    for row in range(rows):
        way = _ways[method[row]] if 0 <= method[row] < len(_ways) else 2
        if way == 2 or ts_ns[row] == NULL:
            continue
        listed: list = found[way]
        begun: Times = listed[0]
        done: Times = listed[1]
        waits: Times = listed[2]
        ends: Times = listed[3]
        waiting: bytes = _waits[way]
        begun.add(ts_ns[row], 0)
        code = outcome[row]
        ended = outcome_ns[row]
        if code < 0:
            continue
        if ended != NULL and code == _done[way]:
            done.add(ts_ns[row] + ended, ended)
        if waiting[code] or method[row] == SEND:
            waits.add(ts_ns[row], 0)
            if ended != NULL:
                ends.add(ts_ns[row] + ended, 0)
            else:
                known: dict = left[way]
                place = connection[row], channel[row]
                known[place] = known.get(place, 0) + 1
    return [
        (begun.given()[0], done.given(), waits.given()[0], ends.given()[0], left[way])
        for way, (begun, done, waits, ends) in enumerate(found)
    ]
