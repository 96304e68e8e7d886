"""Push parser: the bytes of one capture in any pieces in, batches of packets out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpsniff.capture.compressed import Damaged, Decompressor, decompressor
from amqpsniff.capture.file import BEFORE_READ, NOTHING_READ, READERS
from amqpsniff.capture.formats import (
    GZIP,
    MAGIC_BYTES,
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


class PushReader:
    """The bytes of one capture, in any pieces, into batches of packets."""

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
        """Type and bytes of the Decryption Secrets Blocks that were read since the last call."""
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
        """Packets complete with these bytes; raises NotACapture."""
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

    def finish(self, *, cut: bool) -> PacketBatch | None:
        """End of input. With `cut`, an incomplete last record is not an error.

        Gives the last packets where the end was needed to know them.
        """
        if self._reader is None:
            return None
        if self._trouble is not None:
            code, detail = self._trouble
            self._reader.report(code, f"{detail}; {BEFORE_READ}")
        return self._reader.finish(explained=cut or self._trouble is not None)

    def refuse(self) -> None:
        """Raise NotACapture where nothing told what the bytes are, and no more will come."""
        if self._reader is None:
            where = self._where
            why = None if self._trouble is None else self._trouble[1]
            if why is None and self._machine is not None and self._machine.inside:
                why = f"the file ends {self._where.strip()}"
            if why is not None:
                raise CaptureError(f"{shown(self.capture)}: {why}; {NOTHING_READ}")
            raise no_capture(self.capture, self._inside if where else self._head, where)

    def _recognised(self) -> bool:
        """True if it is known what the bytes are; from then on there is a reader or a machine."""
        if self._machine is not None:
            return True
        if len(self._head) < MAGIC_BYTES:
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
        """Bytes out of compression, before it is known what they are."""
        self._inside += piece
        if len(self._inside) < MAGIC_BYTES:
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
                self._trouble = ("capture-damaged", str(damage))
                return
