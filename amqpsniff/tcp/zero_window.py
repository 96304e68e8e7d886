# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""TCP windows that are closed: a side says that it can take no more bytes.

Its window is 0 from the segment that says so to its next one that does not. That counts only if the
other side had something to send meanwhile: it then sends probes, which repeat the byte before the
next one or carry the next one (RFC 9293 §3.8.6.1).
"""

from __future__ import annotations

from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream

from amqpsniff.columns import NUMBER_MASK as _NUMBER_MASK

from .limits import NO_TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MASK = cython.declare(cython.longlong, 0xFFFFFFFF)
NUMBER_MASK = cython.declare(cython.longlong, _NUMBER_MASK)
_NO_TIME = cython.declare(cython.longlong, NO_TIME)


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
    closed: cython.bint,
    number: cython.longlong,
    ts_ns: cython.longlong,
) -> cython.int:
    """A segment of direction `half`; its sender's window is `closed`, or the other side's was."""
    if other.shut is not None and (length > 0 or ((seq + 1) & MASK) == half.next_seq):
        other.probed = True
    if closed and half.shut is None:
        half.shut = number & NUMBER_MASK, ts_ns
        half.probed = False
    elif half.shut is not None and not closed:
        if half.probed:
            half.shuts = _with(half, ts_ns)
        half.shut = None
    return 0


def zero_window(half: HalfStream, end_ns: cython.longlong) -> Any:
    """The `ZeroWindow` of a direction's sender, until `end_ns`; null when nothing waited for it."""
    return _with(half, end_ns) if half.shut is not None and half.probed else half.shuts


@cython.cfunc
def _with(half: HalfStream, end_ns: cython.longlong) -> Any:
    """The `ZeroWindow` with the time that ends now."""
    shut_number, shut_ns = half.shut
    since: cython.longlong = shut_ns
    lasted: cython.longlong = 0
    if since != _NO_TIME and end_ns > since:
        lasted = end_ns - since
    if half.shuts is None:
        return ZeroWindow(shut_number, shut_ns, 1, lasted, lasted)
    number, start_ns, times, total_ns, longest_ns = half.shuts
    return ZeroWindow(number, start_ns, times + 1, total_ns + lasted, max(longest_ns, lasted))
