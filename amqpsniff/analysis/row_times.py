# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Times in rows of frames and messages, grouped by method or outcome, and their sums by step.

`buckets` has the steps. Columns are buffers of numbers: those of the decoder, or of an Arrow array.
A time that is null is `NULL` there, and its row is left out; a code that is null is negative.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.decode.method_layout import SEND
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.counts import Histogram

from amqpsniff.decode.method_layout import FRAME_TYPE_NAMES, WAYS
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.spec import SIDES
from amqpsniff.spec.amqp010 import overhead_bytes

if cython.compiled:
    from cython.cimports.libc.math import log2  # type: ignore[import-not-found]
else:
    from math import log2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLACES_PER_OCTAVE = 12
MAX_OCTAVES = 44
PLACES = PLACES_PER_OCTAVE * MAX_OCTAVES
"""Times from 1 ns to 4.9 h, twelve to a doubling: a quantile of a step is within 3 %."""

MAX_NS = (1 << MAX_OCTAVES) - 1

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
_PLACES_PER_OCTAVE = cython.declare(cython.int, PLACES_PER_OCTAVE)
_MAX_NS = cython.declare(cython.longlong, MAX_NS)


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

    @cython.cfunc
    @cython.exceptval(-1, check=False)
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


# sums by step


def extent(numbers: cython.longlong[::1]) -> Any:
    """The smallest and the largest of some numbers."""
    least: cython.longlong = numbers[0]
    most: cython.longlong = numbers[0]
    at: cython.Py_ssize_t
    for at in range(1, len(numbers)):
        if numbers[at] < least:
            least = numbers[at]
        elif numbers[at] > most:
            most = numbers[at]
    return least, most


def in_order(numbers: cython.longlong[::1]) -> Any:
    """The numbers in ascending order, in which they mostly are."""
    at: cython.Py_ssize_t
    for at in range(1, len(numbers)):
        if numbers[at] < numbers[at - 1]:
            return array("q", sorted(array("q", bytes(numbers))))
    return numbers


def folded(sums: cython.longlong[::1], peaks: cython.longlong[::1]) -> Any:
    """Merge every two steps into one: the sums, and the peak of each above its beginning. The
    second half of the arrays is zero; `peaks` may be empty.
    """
    size: cython.Py_ssize_t = len(sums)
    at: cython.Py_ssize_t
    found = array("q", bytes(8 * size)), array("q", bytes(8 * len(peaks)))
    lower: cython.longlong[::1] = found[0]
    higher: cython.longlong[::1] = found[1]
    for at in range(size // 2):
        lower[at] = sums[2 * at] + sums[2 * at + 1]
        if len(peaks):
            higher[at] = max(peaks[2 * at], sums[2 * at] + peaks[2 * at + 1])
    return found


def add_sums(
    sums: cython.longlong[::1],
    times: cython.longlong[::1],
    amounts: cython.longlong[::1],
    begin: cython.longlong,
    width: cython.longlong,
) -> int:
    """Add the amount at each time, 1 where there are no amounts, to the sum of its step."""
    at: cython.Py_ssize_t
    counted: cython.bint = len(amounts) == 0
    for at in range(len(times)):
        sums[(times[at] - begin) // width] += 1 if counted else amounts[at]
    return 0


def add_levels(
    sums: cython.longlong[::1],
    peaks: cython.longlong[::1],
    begun: cython.longlong[::1],
    ended: cython.longlong[::1],
    begin: cython.longlong,
    width: cython.longlong,
) -> int:
    """One more at each time of the first, one less at each of the second, both in order: the sum of
    each step, and how far it rises above where it begins.
    """
    one: cython.Py_ssize_t = 0
    other: cython.Py_ssize_t = 0
    step: cython.longlong = -1
    rise: cython.longlong = 0
    first: cython.bint = True
    while one < len(begun) or other < len(ended):
        rises: cython.bint = other == len(ended) or (
            one < len(begun) and begun[one] <= ended[other]
        )
        place: cython.longlong = ((begun[one] if rises else ended[other]) - begin) // width
        if place != step:
            if step >= 0:
                sums[step] += rise
            step, rise = place, 0
            first = True
        rise += 1 if rises else -1
        if rises:
            one += 1
        else:
            other += 1
        if first or sums[step] + rise > peaks[step]:
            peaks[step] = max(peaks[step], sums[step] + rise)
            first = False
    if step >= 0:
        sums[step] += rise
    return 0


def add_delays(
    every: Histogram,
    by_step: dict[Any, Any],
    times: cython.longlong[::1],
    delays: cython.longlong[::1],
    begin: cython.longlong,
    width: cython.longlong,
) -> int:
    """Count each delay, and by the step of its time and its size.

    `by_step` has an array of 32 bits with `PLACES` for each step.
    """
    step: cython.longlong = -1
    counts: cython.int[::1] = array("i")
    at: cython.Py_ssize_t
    for at in range(len(times)):
        every.add(delays[at])
        if (times[at] - begin) // width != step:
            step = (times[at] - begin) // width
            if step not in by_step:
                by_step[step] = array("i", bytes(4 * PLACES))
            counts = by_step[step]
        place: cython.Py_ssize_t = int(_PLACES_PER_OCTAVE * log2(min(max(delays[at], 1), _MAX_NS)))
        counts[place] += 1
    return 0
