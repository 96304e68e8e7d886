"""Push parser: the bytes of one capture in any pieces in, batches of packets out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpsniff.capture.compressed import Damaged, Decompressor, decompressor
from amqpsniff.capture.formats import (
    GZIP,
    MAGIC_BYTES,
    PCAP,
    PCAPNG,
    ZSTD,
    inside,
    no_capture,
    recognise,
    shown,
)
from amqpsniff.capture.packets import PacketBatch
from amqpsniff.capture.pcap import PcapReader
from amqpsniff.capture.pcapng import PcapngReader
from amqpsniff.capture.reader import Reader
from amqpsniff.errors import CaptureError
from amqpsniff.findings import Finding

BEFORE_READ = "everything before was read"
NOTHING_READ = "nothing of it could be read; get it once more from where it was made"

READERS: dict[str, type[Reader]] = {PCAP: PcapReader, PCAPNG: PcapngReader}
"""The reader of each format that is read here."""


class PushReader:
    """The bytes of one capture, in any pieces, into batches of packets.

    Attributes:
        capture: The name shown in rows.
        compression: `gzip` or `zstd`; None without, and as long as it is unknown.
        reader: The reader of the format; None until the format is known.
        trouble: Why the bytes end early, as code and detail of a finding; None if they do not.
    """

    def __init__(self, capture: str) -> None:
        self.capture = capture
        self.compression: str | None = None
        self.reader: Reader | None = None
        self.trouble: tuple[str, str] | None = None
        self._head = b""
        self._machine: Decompressor | None = None
        self._secrets = 0

    def take_secrets(self) -> list[tuple[int, bytes]]:
        """Type and bytes of the Decryption Secrets Blocks that were read since the last call."""
        secrets = self.reader.secrets[self._secrets :] if self.reader is not None else []
        self._secrets += len(secrets)
        return secrets

    @property
    def packets(self) -> int:
        """Packets so far."""
        return self.reader.packets if self.reader is not None else 0

    @property
    def findings(self) -> list[Finding]:
        """Findings about the capture so far."""
        return self.reader.findings if self.reader is not None else []

    def feed(self, octets: bytes) -> Iterator[PacketBatch]:
        """Packets complete with these bytes; raises NotACapture."""
        for piece in self.pieces(octets):
            assert self.reader is not None
            batch = self.reader.feed(piece)
            if batch is not None:
                yield batch

    def pieces(self, octets: bytes, *, gather: int = 0, last: bool = False) -> Iterator[bytes]:
        """The bytes without their compression, once there is a reader for them.

        Decompressed pieces are joined to at least `gather` bytes, except the last. With the `last`
        bytes a format is recognized by as few as there are. Raises NotACapture.
        """
        pieces: Iterable[bytes] = (octets,)
        if self.reader is None and self._machine is None:
            head = self._whole_head(octets, last=last)
            if head is None:
                return
            format_name = recognise(head)
            if format_name in (GZIP, ZSTD):
                self.compression = format_name
                self._machine = decompressor(format_name, self.capture)
            pieces = (head,)
        if self._machine is not None:
            pieces = self._unpacked(self._machine, pieces, gather)
        for piece in pieces:
            yield from self._recognized(piece)
        if last:
            self._end_compression()
            if self.reader is None:
                yield from self._recognized(b"", last=True)

    def _whole_head(self, octets: bytes, *, last: bool) -> bytes | None:
        """The first bytes, once there are enough of them to recognise a format."""
        self._head += octets
        if len(self._head) < MAGIC_BYTES and (self.trouble or not last):
            return None
        head, self._head = self._head, b""
        return head

    def _recognized(self, piece: bytes, *, last: bool = False) -> Iterator[bytes]:
        """A piece for the reader, which is made when the first bytes tell the format."""
        if self.reader is None:
            head = self._whole_head(piece, last=last)
            if head is None:
                return
            format_name = recognise(head)
            if format_name not in READERS:
                raise no_capture(self.capture, head, self._where)
            self.reader = READERS[format_name](self.capture)
            self.reader.unpacked = self.compression is not None
            piece = head
        yield piece

    def _unpacked(
        self, machine: Decompressor, pieces: Iterable[bytes], gather: int
    ) -> Iterator[bytes]:
        gathered: list[bytes] = []
        size = 0
        try:
            for octets in pieces:
                for piece in machine.feed(octets):
                    gathered.append(piece)
                    size += len(piece)
                    if size >= gather:
                        yield b"".join(gathered)
                        gathered, size = [], 0
        except Damaged as damage:
            self.trouble = "capture-damaged", str(damage)
        if gathered:
            yield b"".join(gathered)

    @property
    def _where(self) -> str:
        return "" if self.compression is None else inside(self.compression)

    def _end_compression(self) -> None:
        """End of the bytes: the compressed data may be incomplete."""
        if self._machine is not None and self._machine.inside and not self.trouble:
            self.trouble = "capture-truncated", f"the file ends {self._where.strip()}"

    def finish(self, *, cut: bool) -> PacketBatch | None:
        """End of input. With `cut`, an incomplete last record is not an error.

        Returns the last packets, if only the file's end completes them.
        """
        if self.reader is None:
            return None
        if self.trouble is not None:
            code, detail = self.trouble
            self.reader.report(code, f"{detail}; {BEFORE_READ}")
        return self.reader.finish(explained=cut or self.trouble is not None)

    def refuse(self) -> None:
        """Raise NotACapture if the format is still unknown and no more will come."""
        if self.reader is not None:
            return
        self._end_compression()
        if self.trouble is not None:
            code, detail = self.trouble
            consequence = "" if code == "capture-unreadable" else f"; {NOTHING_READ}"
            raise CaptureError(f"{shown(self.capture)}: {detail}{consequence}")
        raise no_capture(self.capture, self._head, self._where)
