"""Bytes that a side sends again and again, because nothing makes it go on.

TCP sends the first bytes that are not acknowledged again, after longer and longer times, until an
acknowledgement reaches it (RFC 6298 §5). For how long it does so is how long the path was cut,
though AMQP may have nothing to say meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

from .limits import NO_TIME


class ResentTime(NamedTuple):
    """The longest time in which a side sent the same bytes again.

    Attributes:
        packet_number, start_ns: When they were sent first, as far as that is known.
        last_ns: When they were sent last.
        times: How often they were sent again.
        heard_ns: When a packet of the other side came last before that.
        acked: True if the capture shows their acknowledgement, which did not reach the side.
        is_last: True if the side sent nothing that follows them.
    """

    packet_number: int
    start_ns: int
    last_ns: int
    times: int
    heard_ns: int
    acked: bool
    is_last: bool

    @property
    def lasted_ns(self) -> int:
        """From the first time to the last one; 0 where packets have no times."""
        return 0 if self.start_ns == NO_TIME else max(0, self.last_ns - self.start_ns)


class Resent:
    """The bytes from `seq` on that a side sends again; `longest` is the longest time before."""

    __slots__ = ("seq", "first", "last", "times", "next_offset", "longest")

    def __init__(self, seq: int, packet_number: int, start_ns: int, before: Resent | None) -> None:
        self.seq, self.first, self.times = seq, (packet_number, start_ns), 0
        self.longest = None if before is None else before.time(-1)

    def again(self, ts_ns: int, heard_ns: int, acked: bool, next_offset: int) -> None:
        """They were sent again; nothing but what comes before `next_offset` was sent yet."""
        self.times += 1
        self.last = ts_ns, heard_ns, acked
        self.next_offset = next_offset

    def time(self, next_offset: int) -> ResentTime:
        """The longest time; `next_offset` is what the side has come to."""
        ts_ns, heard_ns, acked = self.last
        is_last = next_offset == self.next_offset
        now = ResentTime(*self.first, ts_ns, self.times, heard_ns, acked, is_last)
        before = self.longest
        return now if before is None or now.lasted_ns >= before.lasted_ns else before
