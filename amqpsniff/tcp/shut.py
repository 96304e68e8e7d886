"""How long a side of a conversation could receive nothing."""

from __future__ import annotations

from typing import NamedTuple


class Shut(NamedTuple):
    """The times that a side's TCP window was 0 while the other side had something to send.

    `packet_number` is the packet that closed it first, `start_ns` its time, `times` how often it
    was closed, `total_ns` for how long in all, and `longest_ns` at most.
    """

    packet_number: int
    start_ns: int
    times: int
    total_ns: int
    longest_ns: int
