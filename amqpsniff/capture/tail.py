"""Captures that another program is still writing: a pipe, a file that grows, a ring of files.

A file is read from its beginning; at its end it is checked repeatedly for more bytes. It has ended
if it was overwritten (it is shorter, or begins differently), or if the ring has a later file, which
is then read from its beginning; `Listing` selects it. In a ring the newest file is read first:
other commands can read older ones.
"""

from __future__ import annotations

import io
import math
import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from amqpsniff.capture.file import BLOCK_BYTES, STANDARD_INPUT, standard_input
from amqpsniff.capture.formats import (
    DESCRIBED_BYTES,
    MAGIC_BYTES,
    no_capture,
    recognise,
    shown,
)
from amqpsniff.capture.listing import HEAD_BYTES, Listing, Lost
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.poll import readable
from amqpsniff.capture.push_reader import BEFORE_READ, PushReader
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding

BLOCKS_AT_ONCE = 4
"""Blocks read before the caller gets control, to handle a key that was pressed, for example."""

MAX_LOST = 1000
"""Findings of lost files; a ring that is always quicker makes one with each file."""

Taken = tuple[PacketBatch, Sequence[int]]


class _Followed(ABC):
    """The base of captures of this module; `live` is whether the kernel counts drops."""

    live = False
    _bytes: PushReader

    def __init__(self, capture: str, block_bytes: int = BLOCK_BYTES) -> None:
        self.capture = capture
        self.block_bytes = block_bytes
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.ended = False
        self._packets = 0
        self._last: list[PacketBatch] = []

    @property
    def packets(self) -> int:
        """Packets taken so far."""
        return self._packets

    def name_of(self, _: int) -> str:
        """The name of the interface of a packet: that of the capture."""
        return self.capture

    def statistics(self) -> None:  # noqa: B027 (None is the answer of both)
        """Files have no drop counter."""

    def held(self) -> bool:
        """Files keep no packets back."""
        return False

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """Secrets for TLS that were read since the last call, as (type, bytes)."""
        return self._bytes.take_secrets()

    def take(self, max_packets: int) -> Iterator[Taken]:
        """Batches of the packets that are there, at most `packets`; raises NotACapture."""
        read_bytes = 0
        while read_bytes < BLOCKS_AT_ONCE * self.block_bytes and max_packets > 0 and not self.ended:
            octets = self._next()
            read_bytes += len(octets)
            last, self._last = self._last, []
            for batch in chain(last, self._bytes.feed(octets)):
                packets = self._counted(batch, max_packets)
                max_packets -= len(packets[0])
                yield packets
                if max_packets <= 0:
                    return
            if not octets:
                return

    def _next(self) -> bytes:
        """The next available bytes; a read error ends the input."""
        try:
            return self._next_bytes()
        except OSError as error:
            detail = f"{error.strerror or error}; {BEFORE_READ}"
            self.findings.append(Finding("capture-unreadable", detail, self._bytes.capture))
            self._end(cut=True)
            self.ended = True
            return b""

    def _end(self, *, cut: bool) -> None:
        """End of the present capture; `cut`: it continues, but is no longer read."""
        batch = self._bytes.finish(cut=cut)
        if batch is not None:
            self._last.append(batch)
        self.findings += self._bytes.findings

    def finish(self) -> None:
        """There will be no more: say what was wrong."""
        if not self.ended:
            self._end(cut=True)
            self.ended = True

    @abstractmethod
    def _next_bytes(self) -> bytes:
        """The next available bytes; empty if there are none for now."""

    def _counted(self, batch: PacketBatch, max_packets: int) -> Taken:
        """A limited number of packets of a batch."""
        if len(batch) > max_packets:
            batch = batch.slice(batch.begin, batch.begin + max_packets)
        self._packets += len(batch)
        return batch, [0] * len(batch)


class PipeCapture(_Followed):
    """Packets of a capture that comes on standard input, `-`, or through a pipe that has a name.

    Raises CaptureError without such an input.
    """

    def __init__(self, name: str = STANDARD_INPUT) -> None:
        super().__init__(name)
        self._bytes = PushReader(name)
        self._file = standard_input() if name == STANDARD_INPUT else _opened(name)

    def fileno(self) -> int:
        """The pipe, which is readable when there is more."""
        return self._file.fileno()

    def _next_bytes(self) -> bytes:
        if not readable(self._file):
            return b""
        octets = self._file.read(self.block_bytes)
        if octets == b"":
            self._bytes.refuse()
            self._end(cut=False)
            self.ended = True
        return octets or b""

    def close(self) -> None:
        """Let go of the pipe; standard input stays open."""
        self._file.close()


class FileCapture(_Followed):
    """Packets of a growing file, or of the newest of several files and of those that follow it.

    Names are files, directories and patterns. A file that was removed or overwritten before it was
    read is a note at once, and a finding. Raises CaptureError without any file.

    Args:
        names: The names to follow.
        block_bytes: Bytes that are read at once.
        look_seconds: Interval of looks for other files while this one has more: they may be removed
            before its end.
        gone_seconds: Time without a successor after which a removed file is reported.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        block_bytes: int = BLOCK_BYTES,
        look_seconds: float = 0.5,
        gone_seconds: float = 2.0,
    ) -> None:
        self.names = list(names)
        self.look_seconds = look_seconds
        self.gone_seconds = gone_seconds
        super().__init__(",".join(self.names), block_bytes)
        for name in self.names:
            if _is_pipe(name):
                raise CaptureError(f"{shown(name)}: a pipe can only be followed by itself")
        self._listing = Listing(self.names)
        newest = self._listing.newest()
        if newest is None:
            raise CaptureError(f"{shown(self.capture)}: no capture there to follow")
        self._file: io.FileIO | None = None
        self._looked = time.monotonic()
        self._waits = False
        self._missed_at = math.inf
        self._begin(newest, _opened(newest))
        self._check()

    def fileno(self) -> None:
        """None: no descriptor signals that a file grows."""

    def held(self) -> bool:
        """True if there may be newer files: large folders are listed seldom."""
        return self._waits

    def finish(self) -> None:
        """There will be no more: say what was wrong."""
        self.ended = self.ended or self._file is None
        super().finish()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_bytes(self) -> bytes:
        while True:
            octets = self._read()
            if octets and time.monotonic() - self._looked < self.look_seconds:
                return octets
            self._waits = not self._listing.due
            if self._waits:
                return octets
            later = self._look()
            octets = octets or self._read()  # bytes written before the later file was begun
            if octets or not self._turn_to(later):
                return octets

    def _begin(self, path: str, file: io.FileIO) -> None:
        self._file = file
        self._path = path
        self._position = self._size = 0
        self._head = b""
        self._bytes = PushReader(path)
        self._listing.turned(path, os.fstat(file.fileno()))

    def _check(self) -> None:
        """Raise NotACapture as soon as the bytes show that the file is no capture."""
        assert self._file is not None
        try:
            head = os.pread(self._file.fileno(), DESCRIBED_BYTES, 0)
        except OSError as error:
            reason = error.strerror
            raise CaptureError(f"{shown(self._path)}: cannot be read: {reason}") from None
        if len(head) >= MAGIC_BYTES and not recognise(head):
            self.close()
            raise no_capture(self._path, head)

    def _read(self) -> bytes:
        """The next bytes of the file; empty if it was overwritten: then it is released."""
        if self._file is None:
            return b""
        octets = self._file.read(self.block_bytes) or b""
        position = self._position + len(octets)
        head = os.pread(self._file.fileno(), HEAD_BYTES, 0)
        size = os.fstat(self._file.fileno()).st_size
        if size < position or not head.startswith(self._head):
            unread = self._size - self._position
            if unread > 0:
                event = f"was begun anew while it was read: {unread} bytes are lost"
                self._lose(Lost(self._path, f"{shown(self._path)} {event}"))
            self._end(cut=unread > 0)
            self.close()
            return b""
        self._position, self._size, self._head = position, size, head
        return octets

    def _look(self) -> list[str]:
        """The next captures; reports losses."""
        self._looked = time.monotonic()
        status = None if self._file is None else os.fstat(self._file.fileno())
        current = None if status is None else (status.st_dev, status.st_ino)
        later = self._listing.look(current)
        for lost in self._listing.lost:
            self._lose(lost)
        self.notes += self._listing.notes
        self._listing.lost, self._listing.notes = [], []
        self._miss(is_present=current is None or current in self._listing.present or bool(later))
        return later

    def _lose(self, lost: Lost) -> None:
        """Report a loss."""
        self.notes.append(lost.text)
        if len(self.findings) < MAX_LOST:
            self.findings.append(Finding("capture-unreadable", lost.text, lost.path))

    def _miss(self, *, is_present: bool) -> None:
        """Report a removed file if it has no successor for a while."""
        if is_present:
            self._missed_at = self._looked
        elif self._looked - self._missed_at >= self.gone_seconds:
            self._missed_at = math.inf
            self.notes.append(f"{shown(self._path)} is gone; what comes in its place is followed")

    def _turn_to(self, later: list[str]) -> bool:
        """Continue with the first of these files that still exists; False if none does."""
        for path in later:
            try:
                file = io.FileIO(path)
            except OSError:  # the next look finds its state
                continue
            if self._file is not None:
                head = self._head if self._bytes.packets else b""
                self._listing.read(self._path, os.fstat(self._file.fileno()), head)
                self._end(cut=False)
                self._file.close()
            self._begin(path, file)
            return True
        return False


def follow(names: Sequence[str]) -> PipeCapture | FileCapture:
    """The capture that follows these names: a single pipe, or files; raises CaptureError."""
    name = names[0] if len(names) == 1 else ""
    return PipeCapture(name) if name == STANDARD_INPUT or _is_pipe(name) else FileCapture(names)


def _is_pipe(name: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(name).stat().st_mode)
    except OSError:
        return False


def _opened(name: str) -> io.FileIO:
    try:
        return io.FileIO(name)
    except OSError as error:
        raise CaptureError(f"{shown(name)}: cannot be opened: {error.strerror}") from None
