"""pcapng files, written: one section, interfaces as they are met, packets, statistics.

Times are nanoseconds. Nothing is written but what it is given: no host, no program, no comment, no
name but those of interfaces.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html.
"""

from __future__ import annotations

import struct
from typing import IO

from amqpsniff.capture.interface import ISB_IFDROP, ISB_IFRECV, ISB_OSDROP, InterfaceStatistics
from amqpsniff.capture.packets import NO_TIME

SECTION_HEADER, INTERFACE, SIMPLE_PACKET, STATISTICS, ENHANCED_PACKET = 0x0A0D0D0A, 1, 3, 5, 6
CUSTOM = 0xBAD
"""A block that readers count as a record and pass over."""

_MAGIC = 0x1A2B3C4D
_NAME, _RESOLUTION = 2, 9
_NANOSECONDS = b"\x09"
_NOT_A_TIME = (1 << 64) - 1
"""The latest time there is, which no 64 bits of nanoseconds since 1970 hold with a sign."""

_COUNTS = (ISB_IFRECV, ISB_IFDROP, ISB_OSDROP)


class PcapngWriter:
    """Writes packets to a binary file; `interface` first, for each one that has packets.

    `octets` is how much was written.
    """

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self.octets = 0
        self._interfaces = 0
        self._snap_octets: list[int] = []
        self._block(SECTION_HEADER, struct.pack("<IHHq", _MAGIC, 1, 0, -1))

    def interface(self, link_type: int, snap_octets: int, name: str | None = None) -> int:
        """Describe an interface; its number. `snap_octets` is 0 for no limit."""
        options = _option(_NAME, name.encode()) if name else b""
        options += _option(_RESOLUTION, _NANOSECONDS) + _option(0, b"")
        self._block(INTERFACE, struct.pack("<HHI", link_type, 0, snap_octets) + options)
        self._snap_octets.append(snap_octets)
        self._interfaces += 1
        return self._interfaces - 1

    def packet(self, interface: int, ts_ns: int, octets: bytes, original: int) -> None:
        """Write a packet; one without a time goes to the first interface if it fits there."""
        if ts_ns == NO_TIME and interface == 0 and self._fits(octets, original):
            self._block(SIMPLE_PACKET, struct.pack("<I", original) + octets)
            return
        time = _NOT_A_TIME if ts_ns == NO_TIME else max(ts_ns, 0)
        head = struct.pack(
            "<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(octets), original
        )
        self._block(ENHANCED_PACKET, head + octets)

    def statistics(self, interface: int, counted: InterfaceStatistics) -> None:
        """Write what an interface received and lost; its name is not written."""
        counts = (counted.received, counted.dropped, counted.dropped_by_system)
        options = b"".join(
            _option(code, struct.pack("<Q", count))
            for code, count in zip(_COUNTS, counts, strict=True)
            if count is not None
        )
        body = struct.pack("<III", interface, 0, 0) + options + _option(0, b"")
        self._block(STATISTICS, body)

    def record(self) -> None:
        """Write a block that is no packet and takes a packet's number."""
        self._block(CUSTOM, struct.pack("<I", 0))

    def _fits(self, octets: bytes, original: int) -> bool:
        """Whether a packet without a captured length would be read as it is."""
        snap = self._snap_octets[0]
        return len(octets) == (min(original, snap) if snap else original)

    def _block(self, kind: int, body: bytes) -> None:
        padded = len(body) + 3 & ~3
        length = struct.pack("<I", padded + 12)
        block = struct.pack("<I", kind) + length + body.ljust(padded, b"\0") + length
        self._sink.write(block)
        self.octets += len(block)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value.ljust(len(value) + 3 & ~3, b"\0")
