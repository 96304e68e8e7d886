"""Packets of captures, written again as one section of pcapng.

A packet keeps its time to the nanosecond, its interface and its options; the section has the
comments of the captures, and secrets of TLS stand before the packets that they open.
Counts of interfaces (received, dropped) stay only where every packet does.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import IO

from amqpsniff.capture import CaptureSet, PacketBatch
from amqpsniff.capture.open import AnyCapture
from amqpsniff.capture.pcapng_writer import Interfaces, PcapngWriter, comment_option


class PacketCopier:
    """Writes packets of a `CaptureSet` while it is read: `begin` each batch, `write` its rows.

    Attributes:
        packets: Packets written so far.
    """

    def __init__(self, captures: CaptureSet, sink: IO[bytes]) -> None:
        self.packets = 0
        self._captures = captures
        self._sink = sink
        self._writer: PcapngWriter | None = None
        self._interfaces: dict[str, Interfaces] = {}
        self._numbers: dict[str, int] = {}

    @property
    def octets(self) -> int:
        """Bytes written so far."""
        return 0 if self._writer is None else self._writer.octets

    def begin(self, batch: PacketBatch) -> None:
        """Describe what a batch is the first to need."""
        writer = self._open()
        for kind, octets in self._captures.take_secrets():
            writer.secrets(kind, octets)
        if batch.capture not in self._interfaces:
            self._interfaces[batch.capture] = Interfaces(writer, attrgetter("options"))
        self._look(batch)

    def write(
        self, batch: PacketBatch, row: int, comments: Iterable[str] = (), *, numbered: bool = False
    ) -> None:
        """Write a packet of the batch, with more comments.

        If packets are `numbered` as before, records that are no packets stay between them.
        """
        writer, number = self._open(), batch.number[row]
        if numbered:
            for _ in range(self._numbers.get(batch.capture, 0) + 1, number):
                writer.record()
        self._numbers[batch.capture] = number
        interfaces, file = self._interfaces[batch.capture], self._file()
        section = interfaces.section(file, number)
        start, captured = batch.start[row], batch.captured[row]
        options = list(section.packet_options(batch.octets, start, captured)) if section else []
        options += map(comment_option, comments)
        interface = interfaces.number(file, batch, row)
        octets, original = batch.packet(row), batch.original[row]
        writer.packet(interface, batch.ts_ns[row], octets, original, options)
        self.packets += 1

    def finish(self, batch: PacketBatch | None, *, counts: bool) -> None:
        """End the section; with `counts`, write how many packets interfaces received and lost."""
        self._open()
        if batch is not None:
            self._look(batch)
        if counts:
            for interfaces in self._interfaces.values():
                interfaces.finish()

    def _look(self, batch: PacketBatch) -> None:
        self._interfaces[batch.capture].look(self._file())

    def _file(self) -> AnyCapture:
        return self._captures.file()

    def _open(self) -> PcapngWriter:
        """The writer, made once the comments at the begin of the captures were read."""
        if self._writer is None:
            self._writer = PcapngWriter(self._sink, self._captures.comments)
        return self._writer
