# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""How far one capture goes before another's turn, over the times of a batch."""

from __future__ import annotations

import cython

from amqpsniff.capture.packets import NO_TIME


def run_end(
    ts_ns: cython.longlong[::1],
    row: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    limit: cython.longlong,
    inclusive: cython.bint,
) -> int:
    """The first of rows `row` to `end - 1` whose time is past the limit, else `end`.

    Times are nanoseconds; a row without a time is past no limit, and one at the limit is past it
    unless `inclusive`.
    """
    no_time: cython.longlong = NO_TIME
    time: cython.longlong
    while row < end:
        time = ts_ns[row]
        if time != no_time and (time > limit or (time == limit and not inclusive)):
            break
        row += 1
    return row
