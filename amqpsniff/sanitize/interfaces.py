"""Interfaces of the capture that is read, described again in the one that is written.

Each is there with its link type and snap length, and with its name if that is one that systems give
(`eth0`, `any`): others may be a person's, or name the machine. What a section says of its machine,
program and user, comments, and names of hosts are not there to begin with.
"""

from __future__ import annotations

import re

from amqpsniff.capture import CaptureFile, PacketBatch
from amqpsniff.capture.pcapng_interface import Interface, Section
from amqpsniff.capture.pcapng_writer import PcapngWriter

_PLAIN = re.compile(r"(?:any|lo|en|eth|ens|enp|eno|wlan|wlp|bond|br|docker|tun|tap|veth|bridge)"
                    r"[\ds]{0,6}\d?")  # fmt: skip


class Interfaces:
    """Numbers of interfaces in a `PcapngWriter`, described as they are met."""

    def __init__(self, writer: PcapngWriter) -> None:
        self._writer = writer
        self._of_links: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._known: list[Interface] = []
        self._counts: list[int] = []
        self._section = 0

    def look(self, capture: CaptureFile) -> None:
        """Describe the interfaces that were read since the last call."""
        for index, section in enumerate(capture.sections):
            if index == len(self._counts):
                self._counts.append(0)
            for interface in section.interfaces[self._counts[index] :]:
                name = interface.name if _PLAIN.fullmatch(interface.name) else None
                snap = interface.snap_bytes
                described = self._writer.interface(interface.link_type, snap, name)
                self._numbers[id(interface)] = described
                self._known.append(interface)
            self._counts[index] = len(section.interfaces)

    def number(self, capture: CaptureFile, batch: PacketBatch, row: int) -> int:
        """The number of a packet's interface."""
        section = self._section_of(capture.sections, batch.number[row])
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

    def _section_of(self, sections: list[Section], number: int) -> Section | None:
        """The section of a packet; packets come in their order."""
        while (
            self._section + 1 < len(sections)
            and sections[self._section + 1].packets_before < number
        ):
            self._section += 1
        return sections[self._section] if sections else None
