"""pcapng files, written: one section, interfaces as they are met, packets, secrets, statistics.

Times are nanoseconds. It writes only what the caller gives: no host, no program, no comment, no
names except those of interfaces. The functions make single blocks.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html, sections 4.1 to 4.7.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING

from amqpsniff.capture.packets import NO_TIME, PacketBatch
from amqpsniff.capture.pcapng import (
    DECRYPTION_SECRETS,
    INTERFACE_DESCRIPTION,
    INTERFACE_STATISTICS,
    SECTION_HEADER,
)
from amqpsniff.capture.pcapng_interface import (
    ENHANCED_PACKET,
    IF_NAME,
    IF_TSRESOL,
    ISB_IFDROP,
    ISB_IFRECV,
    ISB_OSDROP,
    OPT_COMMENT,
    Interface,
    InterfaceStatistics,
    Option,
    PcapngSection,
    section_of,
)
from amqpsniff.errors import CaptureError

if TYPE_CHECKING:
    from amqpsniff.capture.open import AnyCapture

SIMPLE_PACKET = 3
CUSTOM = 0xBAD
"""A block that readers count as a record and pass over."""

_MAGIC = 0x1A2B3C4D
_OPT_APPLICATION = 4
_NANOSECONDS = b"\x09"
_NOT_A_TIME = (1 << 64) - 1
"""The latest time there is, which no 64 bits of nanoseconds since 1970 hold with a sign."""
_HIGHEST_OPTION_BYTES = 0xFFFF
_HIGHEST_LINK_TYPE = 0xFFFF
"""A pcap file has 26 bits for a link type, pcapng has 16."""
_COUNTS = (ISB_IFRECV, ISB_IFDROP, ISB_OSDROP)


def block(kind: int, body: bytes) -> bytes:
    """A block of a type around a body, which is filled up to whole words."""
    padded = len(body) + 3 & ~3
    length = struct.pack("<I", padded + 12)
    return struct.pack("<I", kind) + length + body.ljust(padded, b"\0") + length


def section_block(application: str | None = None, comments: Iterable[str] = ()) -> bytes:
    """A section header; `application` is the name of the writing program."""
    options = [comment_option(text) for text in comments]
    if application:
        options.append((_OPT_APPLICATION, application.encode()))
    return block(SECTION_HEADER, struct.pack("<IHHq", _MAGIC, 1, 0, -1) + _options(*options))


def comment_option(text: str) -> Option:
    """A comment as an option; a longer one than an option has room for is cut."""
    octets = text.encode(errors="backslashreplace")[:_HIGHEST_OPTION_BYTES]
    return OPT_COMMENT, octets.decode(errors="ignore").encode()


def interface_block(
    link_type: int, snap_bytes: int, name: str | None = None, options: Iterable[Option] = ()
) -> bytes:
    """An interface; `snap_bytes` is 0 for no limit, `options` are others than name and clock.

    Raises CaptureError for a link type that pcapng has no room for: LINKTYPE_ values are lower.
    """
    if link_type > _HIGHEST_LINK_TYPE:
        raise CaptureError(
            f"not a capture: its link type is {link_type}, and the highest is {_HIGHEST_LINK_TYPE}"
        )
    name_option = [(IF_NAME, name.encode(errors="surrogateescape"))] if name else []
    octets = _options(*name_option, *options, (IF_TSRESOL, _NANOSECONDS))
    return block(INTERFACE_DESCRIPTION, struct.pack("<HHI", link_type, 0, snap_bytes) + octets)


def statistics_block(interface: int, counted: InterfaceStatistics, ts_ns: int = 0) -> bytes:
    """The packets an interface received and lost until a time; its name is not written."""
    counts = (counted.received, counted.dropped, counted.dropped_by_system)
    options = _options(
        *(
            (code, struct.pack("<Q", count))
            for code, count in zip(_COUNTS, counts, strict=True)
            if count is not None
        )
    )
    head = struct.pack("<III", interface, ts_ns >> 32, ts_ns & 0xFFFFFFFF)
    return block(INTERFACE_STATISTICS, head + options)


class PcapngWriter:
    """Writes packets to a binary file; `interface` first, for each one that has packets.

    `comments` are those of the section. `octets`: number of bytes written.
    """

    def __init__(self, sink: IO[bytes], comments: Iterable[str] = ()) -> None:
        self._sink = sink
        self.octets = 0
        self._snap_bytes: list[int] = []
        self._put(section_block(comments=comments))

    def interface(
        self,
        link_type: int,
        snap_bytes: int,
        name: str | None = None,
        options: Iterable[Option] = (),
    ) -> int:
        """Describe an interface; its number. Arguments and errors as in `interface_block`."""
        self._put(interface_block(link_type, snap_bytes, name, options))
        self._snap_bytes.append(snap_bytes)
        return len(self._snap_bytes) - 1

    def packet(
        self,
        interface: int,
        ts_ns: int,
        octets: bytes,
        original: int,
        options: Iterable[Option] = (),
    ) -> None:
        """Write a packet; one without a time goes to the first interface if it fits there."""
        encoded_options = _options(*options)
        if (
            ts_ns == NO_TIME
            and interface == 0
            and not encoded_options
            and self._fits(octets, original)
        ):
            self._put(block(SIMPLE_PACKET, struct.pack("<I", original) + octets))
            return
        time = _NOT_A_TIME if ts_ns == NO_TIME else max(ts_ns, 0)
        head = struct.pack(
            "<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(octets), original
        )
        padding = bytes(-len(octets) & 3) if encoded_options else b""
        self._put(block(ENHANCED_PACKET, head + octets + padding + encoded_options))

    def secrets(self, kind: int, octets: bytes) -> None:
        """Write what opens TLS in the packets that follow."""
        self._put(block(DECRYPTION_SECRETS, struct.pack("<II", kind, len(octets)) + octets))

    def statistics(self, interface: int, counted: InterfaceStatistics) -> None:
        """Write what an interface received and lost."""
        self._put(statistics_block(interface, counted))

    def record(self) -> None:
        """Write a block that is no packet and takes a packet's number."""
        self._put(block(CUSTOM, struct.pack("<I", 0)))

    def _fits(self, octets: bytes, original: int) -> bool:
        """True if a packet without a captured length would be read as it is."""
        snap = self._snap_bytes[0]
        return len(octets) == (min(original, snap) if snap else original)

    def _put(self, octets: bytes) -> None:
        self._sink.write(octets)
        self.octets += len(octets)


def _options(*pairs: tuple[int, bytes]) -> bytes:
    """Options with their end; empty without options."""
    octets = b"".join(
        struct.pack("<HH", code, len(value)) + value.ljust(len(value) + 3 & ~3, b"\0")
        for code, value in pairs
    )
    return octets + bytes(4) if pairs else b""


class Interfaces:
    """Numbers of a capture's interfaces in a `PcapngWriter`, described as they are met.

    Each has its link type, its snap length and the options that `options_of` returns for it.
    """

    def __init__(
        self, writer: PcapngWriter, options_of: Callable[[Interface], Sequence[Option]]
    ) -> None:
        self._writer = writer
        self._options_of = options_of
        self._of_links: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._interfaces: list[Interface] = []
        self._counts: list[int] = []

    def look(self, capture: AnyCapture) -> None:
        """Describe the interfaces that were read since the last call."""
        for index, section in enumerate(_sections(capture)):
            if index == len(self._counts):
                self._counts.append(0)
            for interface in section.interfaces[self._counts[index] :]:
                self._numbers[id(interface)] = self._writer.interface(
                    interface.link_type, interface.snap_bytes, options=self._options_of(interface)
                )
                self._interfaces.append(interface)
            self._counts[index] = len(section.interfaces)

    def number(self, capture: AnyCapture, batch: PacketBatch, row: int) -> int:
        """The number of a packet's interface."""
        section = self.section(capture, batch.number[row])
        if section is not None and section.interfaces:
            interface = section.interface_of(batch.octets, batch.start[row], batch.captured[row])
            return self._numbers[id(interface)]
        return self.of_link(batch.link_type[row])

    def of_link(self, link_type: int) -> int:
        """The number of an interface that the capture does not describe."""
        if link_type not in self._of_links:
            self._of_links[link_type] = self._writer.interface(link_type, 0)
        return self._of_links[link_type]

    def finish(self) -> None:
        """Write what interfaces received and lost."""
        for interface in self._interfaces:
            if interface.statistics is not None:
                self._writer.statistics(self._numbers[id(interface)], interface.statistics)

    def section(self, capture: AnyCapture, number: int) -> PcapngSection | None:
        """The section of a packet, None in a file without sections."""
        sections = _sections(capture)
        return section_of(sections, number) if sections else None


def _sections(capture: AnyCapture) -> list[PcapngSection]:
    """The sections of a capture; empty if tshark reads it."""
    return getattr(capture, "sections", [])
