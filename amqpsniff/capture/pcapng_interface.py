"""Interfaces of a pcapng section: link type, clock, snap length, statistics.

Times in a pcapng file are 64-bit counts of an interface's own unit, 10^-n or 2^-n seconds, from an
offset in seconds. `instant` is exact for all of them, in Python integers; `multiplier` and
`plain_below` let a reader do the common units in 64 bits without overflow.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html, sections 3.5, 4.2, 4.5.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from amqpsniff.capture.formats import number, shown
from amqpsniff.capture.packets import NO_TIME

NS = 10**9
MICROSECONDS = 6

# Bytes kept of a name: Linux has 15, Windows some 50; a file of nothing but names must not fill
# memory.
MAX_NAME_BYTES = 255

# Bytes of an interface's options that are kept to be written again: names, a filter, a comment.
MAX_OPTION_BYTES = 1024

# Types of blocks with packets.
PACKET, ENHANCED_PACKET = 2, 6

OPT_COMMENT = 1
"""A comment, in any block; any number of them."""

# Option codes of an Interface Description Block and of an Interface Statistics Block.
IF_NAME, IF_TSRESOL, IF_TSOFFSET = 2, 9, 14
ISB_IFRECV, ISB_IFDROP, ISB_OSDROP = 4, 5, 7

_PACKET_NUMBERS = frozenset((2, 4, 5, 6))
"""Options of a packet that are one number: flags, drop count, packet id, queue."""
_INTERFACE_NUMBERS = frozenset((8, 10, 16, 17))
"""Options of an interface that are one number: speeds, time zone."""
_CUSTOM = frozenset((2988, 2989, 19372, 19373))
"""Options that begin with the number of their owner."""

Option = tuple[int, bytes]
"""An option's code and value, numbers in it little-endian."""


class InterfaceStatistics(NamedTuple):
    """Packets an interface received and lost, as the capturing program counted (None: unknown)."""

    interface: str
    received: int | None
    dropped: int | None
    dropped_by_system: int | None

    def text(self) -> str:
        """The counts for a person."""
        received = "an unknown number" if self.received is None else self.received
        dropped = self.dropped or 0
        return (
            f"{shown(self.interface)}: {dropped} packet{'' if dropped == 1 else 's'} dropped by "
            f"the interface, {self.dropped_by_system or 0} by the operating system, "
            f"{received} received"
        )


class Interface:
    """One Interface Description Block: `body` is the block without its type and lengths."""

    __slots__ = (
        "index",
        "_name",
        "link_type",
        "snap_bytes",
        "binary",
        "exponent",
        "offset_s",
        "statistics",
        "options",
    )

    def __init__(self, body: bytes, order: str, index: int) -> None:
        self.index = index
        self._name: str | None = None
        self.link_type = number(body[0:2], order)
        self.snap_bytes = number(body[4:8], order)
        self.binary = False
        self.exponent = MICROSECONDS
        self.offset_s = 0
        self.statistics: InterfaceStatistics | None = None
        self.options: list[Option] = []
        room = MAX_OPTION_BYTES
        for code, value in options(body[8:], order):
            if code == IF_NAME:
                self._name = value[:MAX_NAME_BYTES].decode("utf-8", "replace")
            elif code == IF_TSRESOL and value:
                self.binary = value[0] >= 0x80
                self.exponent = value[0] & 0x7F
            elif code == IF_TSOFFSET and len(value) == 8:
                self.offset_s = number(value, order, signed=True)
            if code not in (IF_TSRESOL, IF_TSOFFSET) and len(value) <= room:
                room -= len(value)
                self.options.append((code, _little(code, value, order, _INTERFACE_NUMBERS)))

    def repeated(self) -> Interface:
        """The interface after this one, of a block with the same bytes."""
        copy = Interface.__new__(Interface)
        copy.index = self.index + 1
        copy._name = self._name
        copy.link_type, copy.snap_bytes = self.link_type, self.snap_bytes
        copy.binary, copy.exponent, copy.offset_s = self.binary, self.exponent, self.offset_s
        copy.options = self.options
        copy.statistics = None
        return copy

    @property
    def name(self) -> str:
        """The name that the block gives, or one with the interface's number."""
        return f"interface {self.index}" if self._name is None else self._name

    @property
    def multiplier(self) -> int:
        """Nanoseconds in one unit, where that is a whole number, else 1."""
        plain = not self.binary and self.exponent <= 9
        return 10 ** (9 - self.exponent) if plain else 1

    @property
    def plain_below(self) -> int:
        """Upper 32 bits below which count * multiplier + offset_ns is the time and fits 64 bits."""
        if self.binary or self.exponent > 9 or abs(self.offset_ns) >= 2**62:
            return 0
        return (2**62 // self.multiplier) >> 32

    @property
    def offset_ns(self) -> int:
        """The offset of the interface's clock in nanoseconds (may need more than 64 bits)."""
        return self.offset_s * NS

    def instant(self, upper: int, lower: int) -> int:
        """Nanoseconds since the epoch of a count of units, rounded down; `NO_TIME` past 64 bits."""
        count = (upper << 32 | lower) * NS
        ns = count >> self.exponent if self.binary else count // 10**self.exponent
        ns += self.offset_ns
        return ns if NO_TIME < ns < -NO_TIME else NO_TIME

    def count(self, body: bytes, order: str) -> None:
        """Take the Interface Statistics Block with this body for the interface's latest counts."""
        counts = {
            code: number(value, order)
            for code, value in options(body[12:], order)
            if code in (ISB_IFRECV, ISB_IFDROP, ISB_OSDROP) and len(value) == 8
        }
        self.statistics = InterfaceStatistics(
            self.name, counts.get(ISB_IFRECV), counts.get(ISB_IFDROP), counts.get(ISB_OSDROP)
        )


def add_statistics(
    before: InterfaceStatistics | None, new: InterfaceStatistics
) -> InterfaceStatistics:
    """Counts of two sections together; None if neither has any."""
    if before is None:
        return new
    pairs = zip(before[1:], new[1:], strict=True)
    sums = [None if a is None and b is None else (a or 0) + (b or 0) for a, b in pairs]
    return InterfaceStatistics(new.interface, *sums)


def options(octets: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Code and value of each option; stops quietly at the end of options or at one that is cut."""
    position = 0
    while position + 4 <= len(octets):
        code = number(octets[position : position + 2], order)
        length = number(octets[position + 2 : position + 4], order)
        value = octets[position + 4 : position + 4 + length]
        if code == 0 or len(value) < length:
            return
        yield code, value
        position += 4 + (length + 3 & ~3)


def _little(code: int, value: bytes, order: str, numbers: frozenset[int]) -> bytes:
    """An option's value with its number, if it has one, little-endian."""
    if order != "big":
        return value
    width = len(value) if code in numbers else 4 if code in _CUSTOM else 0
    return value[:width][::-1] + value[width:]


class PcapngSection(NamedTuple):
    """A section: the last packet before it, its byte order, its interfaces by index.

    Rows of packets name no interface: few need it, and a column would cost all others. It stands in
    the header of the packet's block, right before its bytes.
    """

    packets_before: int
    order: str
    interfaces: list[Interface]

    def interface_of(self, octets: bytes, start: int, captured: int) -> Interface:
        """The interface of a packet whose `captured` bytes begin at `start` of the file's bytes."""
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

    def packet_options(self, octets: bytes, start: int, captured: int) -> Iterator[Option]:
        """The options of a packet, with its comments; those of a damaged block are left out."""
        begin = start - 28
        if begin < 0 or number(octets[begin : begin + 4], self.order) != ENHANCED_PACKET:
            return
        length = number(octets[begin + 4 : begin + 8], self.order)
        end = begin + (length + 3 & ~3)
        if number(octets[end - 4 : end], self.order) != length:
            return
        for code, value in options(octets[start + (captured + 3 & ~3) : end - 4], self.order):
            yield code, _little(code, value, self.order, _PACKET_NUMBERS)


def section_of(sections: Sequence[PcapngSection], number: int) -> PcapngSection:
    """The section of a packet among those begun so far; there is at least one."""
    return sections[bisect_left(sections, number, 1, key=_PACKETS_BEFORE) - 1]


_PACKETS_BEFORE = attrgetter("packets_before")
