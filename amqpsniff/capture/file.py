"""One capture file, or a stream of one: opened by name, recognized by content, read by blocks.

Bytes are delivered as they arrive: a read takes the available bytes and never waits for a full
block, so a capture that is still being written to a pipe comes out packet by packet.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Protocol

from amqpsniff.capture.formats import shown
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcapng_interface import PcapngSection
from amqpsniff.capture.poll import readable
from amqpsniff.capture.push_reader import PushReader
from amqpsniff.capture.reader import MAX_TOLD, Reader
from amqpsniff.clock import steps_back
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding
from amqpsniff.units import duration

# Bytes asked for at once. Measured in processor time for a capture of 261 MB: the engine, making
# no rows, needs 0.27 s with blocks of 256 KiB, 0.26 s with 1 MiB, 0.28 s with 4 MiB, which take
# 16 MB more.
BLOCK_BYTES = 1 << 20

STANDARD_INPUT = "-"

MIN_DISORDER = 3
"""Packets of a file that are before the one in front of them, below which it is chance."""

Opener = Callable[[str], IO[bytes]]
"""Opens a file by its name, raising OSError."""


class ByteSource(Protocol):
    """A source of the bytes of a capture."""

    regular: bool

    @property
    def position(self) -> int:
        """Bytes read so far."""
        ...

    def read(self, octets: int) -> bytes:
        """What is there, at most `octets`; waits only while nothing is; empty at the end."""
        ...

    def back(self, octets: int) -> None:
        """Read the last bytes once more; only where the source is regular."""
        ...

    def at_rest(self) -> bool:
        """True if a read would wait, because the writer has no more bytes for now."""
        ...

    def park(self) -> None:
        """Give the descriptor back until the next read, where that can be done."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class CaptureFile:
    """An iterator over the batches of packets in one capture; `name` is a path or `-`.

    `opener` opens files that are not on this machine: given the name, a file to `read` and `seek`.
    With a `source` the bytes come from there, and the name only stands in rows.

    `capture` is the name shown in rows, `format` is `pcap` or `pcapng`, `compression` `gzip`,
    `zstd` or null. `findings`, `secrets`, `link_types` and `comments` grow while it is read and are
    whole when it is exhausted. Damage is a finding; raises CaptureError when the file cannot be
    opened and NotACapture when its content is no capture.
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        block_bytes: int = BLOCK_BYTES,
        opener: Opener | None = None,
        source: ByteSource | None = None,
    ) -> None:
        self.capture = os.fspath(name)
        self.block_bytes = block_bytes
        self._ahead: list[PacketBatch] = []
        self._clock_ns = self._set_back = 0
        self._disorder = _Disorder()
        self._source: ByteSource = source if source is not None else _Source(self.capture, opener)
        self._bytes = PushReader(self.capture)
        try:
            self._reader, self._blocks = self._recognised()
            self.compression = self._bytes.compression
            self._direct = self._source.regular and self.compression is None
        except BaseException:
            self._source.close()
            raise

    @property
    def format(self) -> str:
        """`pcap` or `pcapng`."""
        return self._reader.format

    @property
    def findings(self) -> list[Finding]:
        """Findings about the file so far."""
        return self._reader.findings

    @property
    def secrets(self) -> list[tuple[int, bytes]]:
        """Secrets type and bytes of every Decryption Secrets Block so far."""
        return self._reader.secrets

    @property
    def link_types(self) -> list[int]:
        """LINKTYPE_ values of the interfaces described so far, each once."""
        return self._reader.link_types

    @property
    def comments(self) -> list[str]:
        """Comments of the sections begun so far."""
        return self._reader.comments

    @property
    def sections(self) -> list[PcapngSection]:
        """Sections of a pcapng file begun so far; empty for a pcap file."""
        return getattr(self._reader, "sections", [])

    @property
    def packets(self) -> int:
        """Number of the last packet read, 0 before the first."""
        return self._reader.packets

    @property
    def regular(self) -> bool:
        """True if it can be opened again to read the same from the beginning."""
        return self._source.regular

    def __iter__(self) -> Iterator[PacketBatch]:
        return self

    def first_link_types(self) -> list[int]:
        """LINKTYPE_ values of the interfaces described before the first packets, or with them."""
        self._look_ahead(1)
        return self.link_types

    def ends_early(self) -> bool:
        """True if damage leaves at most the first packet of the file."""
        if self.packets <= 1:
            self._look_ahead(2)
        return self.packets <= 1 and bool(self.findings)

    def _look_ahead(self, batches: int) -> None:
        while len(self._ahead) < batches and (batch := self._next()) is not None:
            self._ahead.append(batch)

    def __next__(self) -> PacketBatch:
        batch = self._ahead.pop(0) if self._ahead else self._next()
        if batch is None:
            raise StopIteration
        return batch

    def _next(self) -> PacketBatch | None:
        reader = self._reader
        while not reader.ended:
            block = next(self._blocks, None)
            if block is None:
                return self._end()
            batch = reader.feed(block)
            if reader.ended:
                self._end()
            elif self._direct and batch is not None:
                self._source.back(reader.give_back())
            if batch is not None:
                self._check_clock(batch)
                return batch
        return None

    def _check_clock(self, batch: PacketBatch) -> None:
        """Report where the times of packets step back; a little, at the end of the file."""
        disorder: list[tuple[int, int]] = []
        self._clock_ns, steps = steps_back(batch.ts_ns, batch.end, self._clock_ns, disorder)
        if disorder:
            row = disorder[0][0]
            first = batch.number[row], batch.ts_ns[row]
            self._disorder.add(first, len(disorder), max(step_ns for _, step_ns in disorder))
        batch.set_back_ns = sum(step_ns for _, step_ns in steps)
        for row, step_ns in steps[: MAX_TOLD - self._set_back]:
            self._set_back += 1
            number = batch.number[row]
            detail = f"packet {number} is {duration(step_ns)} before the packet in front of it"
            location = self.capture, number, batch.ts_ns[row]
            self.findings.append(Finding("clock-set-back", detail, *location))

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; it cannot be read further."""
        self._reader.ended = True
        self._source.close()

    def at_rest(self) -> bool:
        """True if it is still being written, and all bytes so far were read."""
        return not self._ahead and self._source.at_rest()

    def park(self) -> None:
        """Close the file until the next read, if it can be opened again."""
        self._source.park()

    def _end(self) -> PacketBatch | None:
        self._source.close()
        finding = self._disorder.take(self.capture)
        if finding is not None:
            self.findings.append(finding)
        return self._bytes.finish(cut=False)

    def _recognised(self) -> tuple[Reader, Iterator[bytes]]:
        """The reader of the format that the first bytes show, and all bytes for it."""
        blocks = self._read()
        first = list(islice(blocks, 1))
        self._bytes.refuse()
        assert self._bytes.reader is not None
        return self._bytes.reader, chain(first, blocks)

    def _read(self) -> Iterator[bytes]:
        """All bytes, uncompressed, in blocks that never wait for later bytes."""
        for block in self._raw():
            yield from self._bytes.pieces(block, gather=self.block_bytes)
            if self._bytes.trouble:
                return
        yield from self._bytes.pieces(b"", last=True)

    def _raw(self) -> Iterator[bytes]:
        while True:
            try:
                octets = self._source.read(self.block_bytes)
            except OSError as error:
                position = f"at offset {self._source.position} of the file"
                detail = f"{_reason(error)} {position}"
                self._bytes.trouble = "capture-unreadable", detail
                return
            if not octets:
                return
            yield octets


class _Disorder:
    """Packets of a file that are a little before the packet in front of them."""

    def __init__(self) -> None:
        self._count = self._most_ns = 0
        self._first: tuple[int, int] | None = None

    def add(self, first: tuple[int, int], count: int, most_ns: int) -> None:
        """More of them: number and time of the first, how many, and by how much at most."""
        self._first = self._first or first
        self._count += count
        self._most_ns = max(self._most_ns, most_ns)

    def take(self, capture: str) -> Finding | None:
        """The finding about them, given once; None for fewer than `MIN_DISORDER` packets."""
        count, self._count = self._count, 0
        if count < MIN_DISORDER or self._first is None:
            return None
        detail = (
            f"{count:,} packets, by up to {duration(self._most_ns)} before the packet in front of "
            f"them"
        )
        return Finding("packets-out-of-order", detail, capture, *self._first, count=count)


def is_regular(name: str) -> bool:
    """True if a name stands for a file that gives the same bytes whenever it is opened.

    Pipes and devices do not, nor does a missing file.
    """
    try:
        return name != STANDARD_INPUT and stat.S_ISREG(Path(name).stat().st_mode)
    except OSError:
        return False


def open_capture(name: str | os.PathLike[str], *, block_bytes: int = BLOCK_BYTES) -> CaptureFile:
    """Open a capture by path, or `-` for standard input; raises CaptureError, NotACapture."""
    return CaptureFile(name, block_bytes=block_bytes)


def standard_input() -> io.FileIO:
    """Standard input, which stays open; raises CaptureError where it is closed or a terminal."""
    if os.isatty(0):  # refuse to read a capture from a terminal
        raise CaptureError(
            '-: standard input is a terminal; pipe a capture into it, as from "tcpdump -U -w -"'
        )
    with contextlib.suppress(OSError):
        if sys.__stdin__ is not None:  # else another file may have its number by now
            return io.FileIO(0, closefd=False)
    raise CaptureError("-: standard input is closed; pipe a capture into it")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


class _Source:
    """The bytes of a file or of standard input, with the position they are read from."""

    def __init__(self, name: str, opener: Opener | None = None) -> None:
        self._name = name
        self._opener = opener
        self._position = 0
        self.regular = False
        self._closed = False
        self._file: io.FileIO | IO[bytes] | None
        if name == STANDARD_INPUT:
            self._file = standard_input()
            return
        try:
            if opener is not None:
                self._file = opener(name)
                self.regular = True
                return
            file = self._file = io.FileIO(name)
            self.regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        except OSError as error:
            raise CaptureError(f"{shown(name)}: cannot be opened: {_reason(error)}") from None

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return self._position

    def read(self, octets: int) -> bytes:
        """What is there, at most `octets`; waits only while nothing is; empty at the end."""
        if self._closed:
            return b""
        if self._file is None:
            self._file = self._opener(self._name) if self._opener else io.FileIO(self._name)
            self._file.seek(self._position)
        block = self._file.read(octets)
        while block is None:  # a descriptor that does not block by itself
            readable(self._file, None)
            block = self._file.read(octets)
        self._position += len(block)
        return block

    def at_rest(self) -> bool:
        """True if a read would wait; never of a regular file."""
        if self.regular or self._closed or self._file is None:
            return False
        return not readable(self._file)

    def back(self, octets: int) -> None:
        """Read the last bytes once more; only where the file is regular."""
        self._position -= octets
        if octets and self._file is not None:
            self._file.seek(self._position)

    def park(self) -> None:
        if self.regular and self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        self._closed = True
        if self._file is not None:
            self._file.close()
