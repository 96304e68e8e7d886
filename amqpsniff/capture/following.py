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
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from amqpsniff.capture.file import BLOCK_OCTETS, STANDARD_INPUT, standard_input
from amqpsniff.capture.formats import (
    DESCRIBED_OCTETS,
    MAGIC_OCTETS,
    no_capture,
    recognise,
    shown,
)
from amqpsniff.capture.octets import Octets
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding

OCTETS_AT_ONCE = 4 * BLOCK_OCTETS
"""Octets read before there is time for something else, such as a key that was pressed."""

Taken = tuple[PacketBatch, Sequence[int]]


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
        self._last: list[PacketBatch] = []

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
        while read < OCTETS_AT_ONCE and most > 0 and not self.ended:
            octets = self._next()
            read += len(octets)
            last, self._last = self._last, []
            for batch in chain(last, self._octets.feed(octets)):
                taken = self._counted(batch, most)
                most -= len(taken[0])
                yield taken
                if most <= 0:
                    return
            if not octets:
                return

    def _next(self) -> bytes:
        """The next octets that are there; what cannot be read any more is over."""
        try:
            return self._more()
        except OSError as error:
            detail = f"{error.strerror or error}; everything before was read"
            self.findings.append(Finding("capture-unreadable", detail, self._octets.capture))
            self._over(cut=True)
            self.ended = True
            return b""

    def _over(self, *, cut: bool) -> None:
        """The present capture is over; `cut` when it goes on without us."""
        batch = self._octets.finish(cut=cut)
        if batch is not None:
            self._last.append(batch)
        self.findings += self._octets.findings

    def finish(self) -> None:
        """There will be no more: say what was wrong."""
        if not self.ended:
            self._over(cut=True)
            self.ended = True

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
    """Packets of a capture that comes on standard input, `-`, or through a pipe that has a name.

    Raises CaptureError where there is none.
    """

    def __init__(self, name: str = STANDARD_INPUT) -> None:
        super().__init__(name)
        self._octets = Octets(name)
        self._file = standard_input() if name == STANDARD_INPUT else _opened(name)

    def fileno(self) -> int:
        """The pipe, which is readable when there is more."""
        return self._file.fileno()

    def _more(self) -> bytes:
        if not select.select([self._file], [], [], 0)[0]:
            return b""
        octets = self._file.read(BLOCK_OCTETS)
        if octets == b"":
            self._octets.refuse()
            self._over(cut=False)
            self.ended = True
        return octets or b""

    def close(self) -> None:
        """Let go of the pipe; standard input stays open."""
        self._file.close()


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
                if _is_pipe(name):
                    raise CaptureError(f"{shown(name)}: a pipe can only be followed by itself")
                yield Path(name)
            elif glob.has_magic(name):
                yield from (Path(one) for one in glob.glob(name) if _is_capture(Path(one)))  # noqa: PTH207
            elif self._missing_at_first():
                raise CaptureError(f"{shown(name)}: no such file or directory")

    def _missing_at_first(self) -> bool:
        return not hasattr(self, "_octets")

    def _open(self, path: Path) -> None:
        self._file = _opened(str(path))
        self._path = path
        self._position = 0
        self._octets = Octets(str(path))

    def _check(self) -> None:
        """Raise NotACapture when it can be told already that the file is none."""
        assert self._file is not None
        try:
            head = os.pread(self._file.fileno(), DESCRIBED_OCTETS, 0)
        except OSError as error:
            what = error.strerror
            raise CaptureError(f"{shown(str(self._path))}: cannot be read: {what}") from None
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
        self._over(cut=False)
        self._file.close()
        self._open(path)


def follow(names: Sequence[str]) -> PipeCapture | FileCapture:
    """What follows these names: a pipe by itself, or files; raises CaptureError."""
    one = names[0] if len(names) == 1 else ""
    return PipeCapture(one) if one == STANDARD_INPUT or _is_pipe(one) else FileCapture(names)


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
