"""Bytes that a side retransmits repeatedly, because no acknowledgement reaches it.

TCP retransmits the first unacknowledged bytes, at growing intervals, until an acknowledgement
arrives (RFC 6298 §5). The duration shows how long the path was cut, even if AMQP was silent then.
"""

from __future__ import annotations

from typing import NamedTuple

from .limits import NO_TIME


class ResentTime(NamedTuple):
    """The longest time in which a side sent the same bytes again.

    Attributes:
        packet_number, start_ns: Packet and time of the first transmission, if captured.
        last_ns: Time of the last transmission.
        times: Number of retransmissions.
        heard_ns: Time of the other side's last packet before that.
        acked: True if the capture shows their acknowledgement, which did not reach the side.
        is_last: True if the side sent no later bytes.
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
        """Count a retransmission; so far only bytes before `next_offset` were sent."""
        self.times += 1
        self.last = ts_ns, heard_ns, acked
        self.next_offset = next_offset

    def time(self, next_offset: int) -> ResentTime:
        """The longest time; `next_offset` is the side's next byte."""
        ts_ns, heard_ns, acked = self.last
        is_last = next_offset == self.next_offset
        now = ResentTime(*self.first, ts_ns, self.times, heard_ns, acked, is_last)
        before = self.longest
        return now if before is None or now.lasted_ns >= before.lasted_ns else before
