"""Captures that another program is still writing: a pipe, a file that grows, a ring of files.

A file is read from its beginning; at its end it is looked again and again whether there is more. It
is over when the file of that name is another one or has become shorter (it was begun anew), or when
a later file of the ring is there; then that one is read, from its beginning. Of a ring of files the
newest is read first: what is older can be read by the other commands.
"""

from __future__ import annotations

import glob
import io
import os
import select
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from amqpsniff.capture.compressed import Damaged, Decompressor, decompressor
from amqpsniff.capture.file import (
    BLOCK_OCTETS,
    READERS,
    STANDARD_INPUT,
    refuse_terminal,
)
from amqpsniff.capture.formats import (
    DESCRIBED_OCTETS,
    GZIP,
    MAGIC_OCTETS,
    ZSTD,
    inside,
    no_capture,
    recognise,
    shown,
)
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.reader import Reader
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding

OCTETS_AT_ONCE = 4 * BLOCK_OCTETS
"""Octets read before there is time for something else, such as a key that was pressed."""

Taken = tuple[PacketBatch, Sequence[int]]


class Octets:
    """The octets of one capture, in any pieces, into batches of packets."""

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self._head = b""
        self._inside = b""
        self._where = ""
        self._machine: Decompressor | None = None
        self._reader: Reader | None = None
        self._trouble: tuple[str, str] | None = None
        self._secrets = 0

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """Type and octets of the Decryption Secrets Blocks that were read since the last call."""
        found = self._reader.secrets[self._secrets :] if self._reader is not None else []
        self._secrets += len(found)
        return found

    @property
    def packets(self) -> int:
        """Packets so far."""
        return self._reader.packets if self._reader is not None else 0

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with the capture so far."""
        return self._reader.findings if self._reader is not None else []

    def feed(self, octets: bytes) -> Iterator[PacketBatch]:
        """Packets complete with these octets; raises NotACapture."""
        pieces: Iterable[bytes] = (octets,)
        if self._reader is None:
            self._head += octets
            if not self._recognised():
                return
            pieces, self._head = (self._head,), b""
        if self._machine is not None:
            pieces = self._unpacked(pieces)
        for piece in pieces:
            if self._reader is None:
                yield from self._inner(piece)
                continue
            batch = self._reader.feed(piece)
            if batch is not None:
                yield batch

    def finish(self, *, cut: bool) -> None:
        """There is no more; `cut` when it is we who stop, so that an unfinished end is none."""
        if self._reader is None:
            return
        if self._trouble is not None:
            self._reader.report(*self._trouble)
        self._reader.finish(explained=cut or self._trouble is not None)

    def _recognised(self) -> bool:
        """Whether it is known what the octets are; from then on there is a reader or a machine."""
        if self._machine is not None:
            return True
        if len(self._head) < MAGIC_OCTETS:
            return False
        found = recognise(self._head)
        if found in (GZIP, ZSTD):
            self._machine = decompressor(found, self.capture)
            self._where = inside(found)
            return True
        self._reader = self._reader_of(self._head)
        return True

    def _reader_of(self, head: bytes) -> Reader:
        found = recognise(head)
        if found not in READERS:
            raise no_capture(self.capture, head, self._where)
        return READERS[found](self.capture)

    def _inner(self, piece: bytes) -> Iterator[PacketBatch]:
        """Octets out of compression, before it is known what they are."""
        self._inside += piece
        if len(self._inside) < MAGIC_OCTETS:
            return
        self._reader = self._reader_of(self._inside)
        self._reader.unpacked = True
        batch = self._reader.feed(self._inside)
        self._inside = b""
        if batch is not None:
            yield batch

    def _unpacked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        assert self._machine is not None
        for piece in pieces:
            try:
                yield from self._machine.feed(piece)
            except Damaged as damage:
                self._trouble = ("capture-damaged", f"{damage}; everything before was read")
                return


class _Followed(ABC):
    """What captures of this module have in common; `live` is whether the kernel counts drops."""

    live = False
    _octets: Octets

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.ended = False
        self._packets = 0

    @property
    def packets(self) -> int:
        """Packets taken so far."""
        return self._packets

    def name_of(self, _: int) -> str:
        """The name of the interface of a packet: that of the capture."""
        return self.capture

    def statistics(self) -> None:  # noqa: B027 (None is the answer of both)
        """Nobody counts what is lost here."""

    def held(self) -> bool:
        """Nobody keeps packets back here."""
        return False

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """Secrets for TLS that were read since the last call, as (type, octets)."""
        return self._octets.take_secrets()

    def take(self, most: int) -> Iterator[Taken]:
        """Batches of what is there, at most so many packets; raises NotACapture."""
        read = 0
        while read < OCTETS_AT_ONCE and most > 0:
            octets = self._more()
            if not octets:
                return
            read += len(octets)
            for batch in self._octets.feed(octets):
                taken = self._counted(batch, most)
                most -= len(taken[0])
                yield taken
                if most <= 0:
                    return

    @abstractmethod
    def _more(self) -> bytes:
        """The next octets that are there; empty when there is nothing for now."""

    def _counted(self, batch: PacketBatch, most: int) -> Taken:
        """At most so many packets of a batch."""
        if len(batch) > most:
            batch = batch.slice(batch.begin, batch.begin + most)
        self._packets += len(batch)
        return batch, [0] * len(batch)


class PipeCapture(_Followed):
    """Packets of a capture that comes on standard input."""

    def __init__(self) -> None:
        super().__init__(STANDARD_INPUT)
        refuse_terminal()
        self._octets = Octets(STANDARD_INPUT)

    def fileno(self) -> int:
        """Standard input, which is readable when there is more."""
        return 0

    def _more(self) -> bytes:
        if not select.select([0], [], [], 0)[0]:
            return b""
        octets = os.read(0, BLOCK_OCTETS)
        if not octets:
            self.ended = True
        return octets

    def finish(self) -> None:
        """There will be no more: say what was wrong."""
        self._octets.finish(cut=not self.ended)
        self.findings += self._octets.findings
        self.ended = True

    def close(self) -> None:
        """Standard input stays open."""


class FileCapture(_Followed):
    """Packets of a file that grows, or of the newest of several and of those that come after it.

    Names are files, directories and patterns. Raises CaptureError when nothing is there.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        super().__init__(",".join(self.names))
        present = sorted(self._present(), key=_age)
        if not present:
            raise CaptureError(f"{shown(self.capture)}: no capture there to follow")
        self._done = {_identity(path): _state(path) for path in present[:-1]}
        self._file: io.FileIO | None = None
        self._open(present[-1])
        self._check()

    def fileno(self) -> None:
        """No descriptor says when a file grows."""

    def _more(self) -> bytes:
        while True:
            octets = self._read()
            if octets:
                return octets
            later = self._later()
            if later is None:
                return b""
            octets = self._read()  # what came before the later file was begun
            if octets:
                return octets
            self._turn_to(later)

    def finish(self) -> None:
        """There will be no more: say what was wrong."""
        self._octets.finish(cut=True)
        self.findings += self._octets.findings
        self.ended = True

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _present(self) -> Iterator[Path]:
        """The captures that the names mean now; raises CaptureError for a name without one."""
        for name in self.names:
            if Path(name).is_dir():
                yield from (one for one in Path(name).iterdir() if _is_capture(one))
            elif os.path.lexists(name):
                yield Path(name)
            elif glob.has_magic(name):
                yield from (Path(one) for one in glob.glob(name) if _is_capture(Path(one)))  # noqa: PTH207
            elif self._missing_at_first():
                raise CaptureError(f"{shown(name)}: no such file or directory")

    def _missing_at_first(self) -> bool:
        return not hasattr(self, "_octets")

    def _open(self, path: Path) -> None:
        try:
            self._file = io.FileIO(str(path))
        except OSError as error:
            raise CaptureError(f"{shown(str(path))}: cannot be opened: {error.strerror}") from None
        self._path = path
        self._position = 0
        self._octets = Octets(str(path))

    def _check(self) -> None:
        """Raise NotACapture when it can be told already that the file is none."""
        assert self._file is not None
        head = os.pread(self._file.fileno(), DESCRIBED_OCTETS, 0)
        if len(head) >= MAGIC_OCTETS and not recognise(head):
            self.close()
            raise no_capture(str(self._path), head)

    def _read(self) -> bytes:
        assert self._file is not None
        octets = self._file.read(BLOCK_OCTETS) or b""
        self._position += len(octets)
        return octets

    def _later(self) -> Path | None:
        """The file that goes on where this one ends; None while there is none."""
        assert self._file is not None
        mine = os.fstat(self._file.fileno())
        own = (mine.st_dev, mine.st_ino)
        try:
            if _identity(self._path) != own or mine.st_size < self._position:
                return self._path if _is_capture(self._path) else None
        except OSError:  # it was renamed or removed; another may come
            pass
        later = []
        for path in self._present():
            try:
                identity = _identity(path)
                if identity != own and self._done.get(identity) != _state(path):
                    if _is_capture(path):
                        later.append(path)
            except OSError:  # gone again
                continue
        return min(later, key=_age) if later else None

    def _turn_to(self, path: Path) -> None:
        """Go on with another file."""
        assert self._file is not None
        status = os.fstat(self._file.fileno())
        self._done[status.st_dev, status.st_ino] = (status.st_mtime_ns, status.st_size)
        self._octets.finish(cut=False)
        self.findings += self._octets.findings
        self._file.close()
        self._open(path)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _age(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, str(path)
    except OSError:
        return 0, str(path)


def _is_capture(path: Path) -> bool:
    """Whether a file begins like a capture; one that has no octets yet does not."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return bool(recognise(file.read(MAGIC_OCTETS)))
    except OSError:
        return False
