# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""TCP windows that are closed: a side says that it can take no more bytes.

Its window is 0 from the segment that says so to its next one that does not. That counts only if the
other side had something to send meanwhile: it then sends probes, which repeat the byte before the
next one or carry the next one (RFC 9293 §3.8.6.1).

Bytes beyond the next one are sent only to an open window. If the segment that opened it was not
captured, the window was closed until the last segment that says so.
"""

from __future__ import annotations

from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp.codes import MASK
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream
from cython.cimports.amqpsniff.tcp.limits import NO_TIME

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


def update_window(
    half: HalfStream,
    other: HalfStream,
    seq: cython.longlong,
    length: cython.longlong,
    ack: cython.longlong,
    closed: cython.bint,
    number: cython.longlong,
    ts_ns: cython.longlong,
) -> cython.int:
    """A segment of direction `half`; its sender's window is `closed`, or the other side's was."""
    if other.shut is not None and (length > 0 or ((seq + 1) & MASK) == half.next_seq):
        other.probed = True
    if half.shut is not None and (not closed or _was_open(half, ack)):
        if half.probed:
            half.shuts = _with(half, ack, ts_ns)
        half.shut = None
    if closed:
        if half.shut is None:
            half.shut = number & NUMBER_MASK, ts_ns, ts_ns, ack
            half.probed = False
        else:
            half.shut = half.shut[0], half.shut[1], ts_ns, ack
    return 0


def zero_window(half: HalfStream, other: HalfStream, end_ns: cython.longlong) -> Any:
    """The `ZeroWindow` of a direction's sender, until `end_ns`; null when nothing waited for it."""
    if half.shut is not None and half.probed:
        return _with(half, other.next_seq, end_ns)
    return half.shuts


@cython.cfunc
@cython.exceptval(-1, check=False)
def _was_open(half: HalfStream, seq: cython.longlong) -> cython.bint:
    """True if the other side sent more than a probe, up to `seq`, since a window was closed."""
    closed_at: cython.longlong = half.shut[3]
    return seq >= 0 and 1 < ((seq - closed_at) & MASK) < 0x80000000


@cython.cfunc
def _with(half: HalfStream, seq: cython.longlong, end_ns: cython.longlong) -> Any:
    """The `ZeroWindow` with the time that ends now, with bytes up to `seq`."""
    shut_number, shut_ns, seen_ns, _ = half.shut
    if _was_open(half, seq):
        end_ns = seen_ns
    since: cython.longlong = shut_ns
    lasted: cython.longlong = 0
    if since != NO_TIME and end_ns > since:
        lasted = end_ns - since
    if half.shuts is None:
        return ZeroWindow(shut_number, shut_ns, 1, lasted, lasted)
    number, start_ns, times, total_ns, longest_ns = half.shuts
    return ZeroWindow(number, start_ns, times + 1, total_ns + lasted, max(longest_ns, lasted))
