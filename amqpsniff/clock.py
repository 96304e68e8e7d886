# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The clock of the capturing host, which may be set back during the capture.

Packets keep the order of the file and their captured times. The time between two packets is
unknown if the later packet has the earlier time.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SET_BACK_NS = 1_000_000_000
"""Packets of several interfaces, queues or threads are not out of order by so much: this is a clock
that was set."""

DISORDER_NS = 1_000_000
"""So much matters for times. Of 344 captures that were looked at, one is out of order by more."""

_SET_BACK_NS = cython.declare(cython.longlong, SET_BACK_NS)
_DISORDER_NS = cython.declare(cython.longlong, DISORDER_NS)


@cython.cfunc
@cython.exceptval(check=False)
def elapsed(begin_ns: cython.longlong, end_ns: cython.longlong) -> cython.longlong:
    """The time between two; `NULL` where one is, or where the clock was set back between them."""
    return NULL if begin_ns == NULL or end_ns < begin_ns else end_ns - begin_ns


def steps_back(
    ts_ns: cython.longlong[::1],
    rows: cython.Py_ssize_t,
    before_ns: cython.longlong,
    disorder: list[Any],
) -> tuple[int, list[Any]]:
    """The last time of packets, and (row, ns) where one is `SET_BACK_NS` or more before the last.

    `before_ns` is the time before the first row. Unknown times are 0 or negative. Smaller steps, of
    `DISORDER_NS` or more, are added to `disorder` as (row, ns).
    """
    row: cython.Py_ssize_t
    step: cython.longlong
    found: list = []
    for row in range(rows):
        if ts_ns[row] > 0:
            step = before_ns - ts_ns[row]
            if step >= _SET_BACK_NS:
                found.append((row, step))
            elif step >= _DISORDER_NS:
                disorder.append((row, step))
            before_ns = ts_ns[row]
    return before_ns, found
