"""Interfaces of captures that are read, described again in the one that is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from amqpsniff.capture.open import AnyCapture
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcapng_interface import Interface, Option, Section, section_of
from amqpsniff.capture.pcapng_writer import PcapngWriter


class Interfaces:
    """Numbers of a capture's interfaces in a `PcapngWriter`, described as they are met.

    Each is there with its link type, its snap length and the options that `kept` gives of it.
    """

    def __init__(self, writer: PcapngWriter, kept: Callable[[Interface], Sequence[Option]]) -> None:
        self._writer = writer
        self._kept = kept
        self._of_links: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._known: list[Interface] = []
        self._counts: list[int] = []

    def look(self, capture: AnyCapture) -> None:
        """Describe the interfaces that were read since the last call."""
        for index, section in enumerate(_sections(capture)):
            if index == len(self._counts):
                self._counts.append(0)
            for interface in section.interfaces[self._counts[index] :]:
                self._numbers[id(interface)] = self._writer.interface(
                    interface.link_type, interface.snap_bytes, options=self._kept(interface)
                )
                self._known.append(interface)
            self._counts[index] = len(section.interfaces)

    def number(self, capture: AnyCapture, batch: PacketBatch, row: int) -> int:
        """The number of a packet's interface."""
        section = self.section(capture, batch.number[row])
        if section is not None and section.interfaces:
            found = section.interface_of(batch.octets, batch.start[row], batch.captured[row])
            return self._numbers[id(found)]
        return self.of_link(batch.link_type[row])

    def of_link(self, link_type: int) -> int:
        """The number of an interface that the capture does not describe."""
        if link_type not in self._of_links:
            self._of_links[link_type] = self._writer.interface(link_type, 0)
        return self._of_links[link_type]

    def finish(self) -> None:
        """Write what interfaces received and lost."""
        for interface in self._known:
            if interface.statistics is not None:
                self._writer.statistics(self._numbers[id(interface)], interface.statistics)

    def section(self, capture: AnyCapture, number: int) -> Section | None:
        """The section of a packet, None in a file without sections."""
        sections = _sections(capture)
        return section_of(sections, number) if sections else None


def _sections(capture: AnyCapture) -> list[Section]:
    """The sections of a capture; tshark's reading of one has none."""
    return getattr(capture, "sections", [])
