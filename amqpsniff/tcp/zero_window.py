# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""TCP windows that are closed: a side announces a window of 0 bytes.

The window is closed from a segment with window 0 to the side's next one with another window. It
counts only if the other side had bytes to send: it then sends probes, which repeat the byte before
the next one or carry the next one (RFC 9293 §3.8.6.1).

Bytes beyond the next one are sent only to an open window. If the segment that opened it was not
captured, the window counts as closed until the last segment with window 0.
"""

from __future__ import annotations

from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp.codes import ACK, MASK, NO_WINDOW
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream
from cython.cimports.amqpsniff.tcp.limits import NO_TIME
from cython.cimports.amqpsniff.tcp.segment import Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ZeroWindow(NamedTuple):
    """The times that a side's TCP window was 0 while the other side had something to send.

    `packet_number` is the packet that closed it first, `start_ns` its time, `times` how often it
    was closed, `total_ns` for how long in all, and `longest_ns` at most.
    """

    packet_number: int
    start_ns: int
    times: int
    total_ns: int
    longest_ns: int


def update_window(half: HalfStream, other: HalfStream, segment: Segment) -> cython.int:
    """Take a segment of direction `half` that has a zero window, or comes after one that has."""
    closed: cython.bint = segment.flags & NO_WINDOW != 0
    ack: cython.longlong = segment.ack if segment.flags & ACK else -1
    if other.closed_window is not None:
        if segment.length > 0 or ((segment.payload_seq + 1) & MASK) == half.next_seq:
            other.probed = True
    if half.closed_window is not None and (not closed or _was_open(half, ack)):
        if half.probed:
            half.zero_windows = _with(half, ack, segment.ts_ns)
        half.closed_window = None
    if closed:
        if half.closed_window is None:
            number: cython.longlong = segment.number & NUMBER_MASK
            half.closed_window = number, segment.ts_ns, segment.ts_ns, ack
            half.probed = False
        else:
            half.closed_window = (*half.closed_window[:2], segment.ts_ns, ack)
    return 0


@cython.cfunc
def zero_window(half: HalfStream, other: HalfStream, end_ns: cython.longlong) -> Any:
    """The `ZeroWindow` of a direction's sender, until `end_ns`; null when nothing waited for it."""
    if half.closed_window is not None and half.probed:
        return _with(half, other.next_seq, end_ns)
    return half.zero_windows


@cython.cfunc
@cython.exceptval(-1, check=False)
def _was_open(half: HalfStream, seq: cython.longlong) -> cython.bint:
    """True if the other side sent more than a probe, up to `seq`, since a window was closed."""
    closed_at: cython.longlong = half.closed_window[3]
    return seq >= 0 and 1 < ((seq - closed_at) & MASK) < 0x80000000


@cython.cfunc
def _with(half: HalfStream, seq: cython.longlong, end_ns: cython.longlong) -> Any:
    """The `ZeroWindow` with the time that ends now, with bytes up to `seq`."""
    closed_number, closed_ns, seen_ns, _ = half.closed_window
    if _was_open(half, seq):
        end_ns = seen_ns
    since: cython.longlong = closed_ns
    lasted: cython.longlong = 0
    if since != NO_TIME and end_ns > since:
        lasted = end_ns - since
    if half.zero_windows is None:
        return ZeroWindow(closed_number, closed_ns, 1, lasted, lasted)
    number, start_ns, times, total_ns, longest_ns = half.zero_windows
    return ZeroWindow(number, start_ns, times + 1, total_ns + lasted, max(longest_ns, lasted))
