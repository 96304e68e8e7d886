"""Packets out: pcapng files, one or a ring of them, written as the packets come.

Every file is a whole section: header, the interfaces its packets are of, packets, and at its end
what the kernel counted. A write that fails (a full disk) ends the writing, never the capture: the
file is cut after its last whole block, and `trouble` has the reason.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html, sections 4.1 to 4.6.
"""

from __future__ import annotations

import io
import os
import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from amqpsniff.capture.filter import WHOLE_BYTES
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcapng import enhanced_packets
from amqpsniff.capture.pcapng_interface import ENHANCED_PACKET, InterfaceStatistics
from amqpsniff.capture.pcapng_writer import interface_block, section_block, statistics_block

PACKET_OVERHEAD_BYTES = 36
"""What an Enhanced Packet Block adds to a packet, at most."""


@dataclass(frozen=True)
class Rotation:
    """The limit at which the next file begins, and how many to keep; None for never and for all."""

    octets: int | None = None
    seconds: float | None = None
    keep: int | None = None

    @property
    def wanted(self) -> bool:
        """True if the capture is split into several files."""
        return self.octets is not None or self.seconds is not None


class CaptureWriter:
    """Writes packets to `path`, or to files named after it when they are rotated.

    Raises OSError when the first file cannot be made.

    Args:
        path: `trace.pcapng`; rotated files are `trace_00001_20260131120000.pcapng` and so on.
        name_of: The name of an interface by the number that comes with a packet.
        application: The name of the writing program in the files.
        rotation: The limits after which the next file begins.
        statistics: The kernel's counts since the beginning; None without counts.

    Attributes:
        trouble: Why writing ended; None while it continues.
        packets, octets: Written so far.
        files: Names of the existing files, the oldest first.
    """

    def __init__(
        self,
        path: Path,
        name_of: Callable[[int], str],
        application: str,
        rotation: Rotation | None = None,
        statistics: Callable[[], InterfaceStatistics | None] = lambda: None,
    ) -> None:
        self.path = path
        self.trouble: str | None = None
        self.packets = self.octets = 0
        self.files: deque[Path] = deque()
        self._name_of = name_of
        self._application = application
        self._rotation = rotation or Rotation()
        self._statistics = statistics
        self._counted: tuple[int, int] = (0, 0)
        self._number = 0
        self._room = bytearray()
        self._file: io.FileIO | None = None
        self._begin()

    def write(self, batch: PacketBatch, interfaces: Sequence[int]) -> None:
        """Write the packets of a batch, with each one's interface."""
        rows, first = batch, batch.begin
        while len(rows) and self.trouble is None:
            if self._due():
                self._next()
            fits = self._fits(rows)
            part = rows.slice(rows.begin, rows.begin + fits)
            at = rows.begin - first
            self._write(part, interfaces[at : at + fits])
            rows = rows.slice(part.end, rows.end)
            if len(rows):
                self._next()

    def close(self) -> None:
        """End the file."""
        if self._file is not None and self.trouble is None:
            self._put(self._counts())
        self._shut()

    def _shut(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:  # some file systems report only now that they are full
                self.trouble = self.trouble or self._error_text(error)

    def _begin(self) -> None:
        """Make the next file, with its section header."""
        self._number += 1
        path = self.path
        if self._rotation.wanted:
            moment = time.strftime("%Y%m%d%H%M%S")
            path = path.with_name(f"{path.stem}_{self._number:05}_{moment}{path.suffix}")
        self._file = io.FileIO(str(path), "w")
        self.files.append(path)
        self._size = self._written_packets = 0
        self._numbers: dict[tuple[int, int], int] = {}
        self._began = time.monotonic()
        self._put(section_block(self._application))

    def _due(self) -> bool:
        """True if the file is old enough."""
        seconds = self._rotation.seconds
        aged = seconds is not None and time.monotonic() - self._began >= seconds
        return aged and self._written_packets > 0

    def _next(self) -> None:
        """End the file and begin another; remove the oldest if only some are kept."""
        if self.trouble is not None:
            return
        self._put(self._counts())
        self._shut()
        try:
            self._begin()
            while self._rotation.keep is not None and len(self.files) > self._rotation.keep:
                self.files.popleft().unlink(missing_ok=True)
        except OSError as error:
            self._fail(error)

    def _fits(self, rows: PacketBatch) -> int:
        """Number of these packets that fit into the file, at least one into an empty file."""
        max_bytes = self._rotation.octets
        if max_bytes is None:
            return len(rows)
        size = self._size
        for row in range(rows.begin, rows.end):
            size += rows.captured[row] + PACKET_OVERHEAD_BYTES
            if size > max_bytes and (self._written_packets or row > rows.begin):
                return row - rows.begin
        return len(rows)

    def _write(self, rows: PacketBatch, interfaces: Sequence[int]) -> None:
        if not len(rows):
            return
        numbers = array("q", bytes(8 * len(rows)))
        links = rows.link_type
        described = b""
        last = -1, -1
        number = 0
        for at, index in enumerate(interfaces):
            key = index, links[rows.begin + at]
            if key != last:
                last = key
                known_number = self._numbers.get(key)
                if known_number is None:
                    described += interface_block(key[1], WHOLE_BYTES, self._name_of(index))
                    known_number = self._numbers[key] = len(self._numbers)
                number = known_number
            numbers[at] = number
        if described:
            self._put(described)
        room = sum(rows.captured[rows.begin : rows.end]) + PACKET_OVERHEAD_BYTES * len(rows)
        if len(self._room) < room:
            self._room = bytearray(room)
        used = enhanced_packets(rows, numbers, self._room)
        if self._put(memoryview(self._room)[:used]):
            self.packets += len(rows)
            self._written_packets += len(rows)

    def _counts(self) -> bytes:
        """The kernel's counts during the writing of this file, as blocks."""
        now = self._statistics()
        if now is None:
            return b""
        before = self._counted
        self._counted = (now.received or 0, now.dropped_by_system or 0)
        received, dropped = (a - b for a, b in zip(self._counted, before, strict=True))
        described = b""
        number = next((at for key, at in self._numbers.items() if self._is(key, now)), None)
        if number is None:
            described = interface_block(1, WHOLE_BYTES, now.interface)
            number = len(self._numbers)
        counted = InterfaceStatistics(now.interface, received, None, dropped)
        return described + statistics_block(number, counted, time.time_ns())

    def _is(self, key: tuple[int, int], counted: InterfaceStatistics) -> bool:
        return self._name_of(key[0]) == counted.interface

    def _put(self, octets: bytes | memoryview) -> bool:
        """Write whole blocks; False when they could not be written."""
        if self.trouble is not None or self._file is None:
            return False
        rest = memoryview(octets)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            written, packets = _whole_blocks(octets, len(octets) - len(rest))
            self._size += written
            self.octets += written
            self.packets += packets
            self._fail(error)
            return False
        self._size += len(octets)
        self.octets += len(octets)
        return True

    def _fail(self, error: OSError) -> None:
        """Writing failed: keep the complete blocks."""
        self.trouble = self._error_text(error)
        if self._file is not None:
            with suppress(OSError):  # a pipe or a device cannot be cut
                os.ftruncate(self._file.fileno(), self._size)
        self._shut()

    def _error_text(self, error: OSError) -> str:
        return f"{error.filename or self.files[-1]}: {error.strerror or error}"


def _whole_blocks(octets: bytes | memoryview, byte_count: int) -> tuple[int, int]:
    """Bytes and packets of the complete blocks among the written bytes."""
    at = packets = 0
    while at + 8 <= byte_count:
        kind, length = struct.unpack_from("<II", octets, at)
        if at + length > byte_count:
            break
        at += length
        packets += kind == ENHANCED_PACKET
    return at, packets
