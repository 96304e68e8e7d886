"""A section of a pcapng file, for those who must know which interface a packet came from.

Rows of packets name no interface: few ask, and a column would cost all others. It stands in the
header of the packet's block, right before its octets.
"""

from __future__ import annotations

from typing import NamedTuple

from amqpsniff.capture.formats import number
from amqpsniff.capture.interface import Interface

PACKET = 2
ENHANCED_PACKET = 6


class Section(NamedTuple):
    """A section: the last packet before it, its byte order, its interfaces by index."""

    packets_before: int
    order: str
    interfaces: list[Interface]

    def interface_of(self, octets: bytes, start: int, captured: int) -> Interface:
        """The interface of a packet, of which `captured` octets begin at `start` of the file's."""
        begin = start - 28
        kind = number(octets[begin : begin + 4], self.order) if begin >= 0 else 0
        index = 0
        # A Simple Packet Block has its own length there, which is more.
        if (
            kind in (ENHANCED_PACKET, PACKET)
            and number(octets[start - 8 : start - 4], self.order) == captured
        ):
            width = 4 if kind == ENHANCED_PACKET else 2
            index = number(octets[start - 20 : start - 20 + width], self.order)
        return self.interfaces[index if index < len(self.interfaces) else 0]
