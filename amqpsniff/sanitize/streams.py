"""The bytes of every half-stream as they stand in the safe capture: by stream offset.

Filler everywhere, and over it the spans that were put there. A packet is filled from here alone, so
a byte that is sent again is the same as the first time, whatever the packet had, and nothing
that was not understood can come through. Spans' bytes wait in a temporary file (they are safe to
lie there); in memory are three integers for each run of spans that touch, some 24 bytes for each
frame with a body and none for most others.
"""

from __future__ import annotations

import mmap
import tempfile
from array import array
from bisect import bisect_right
from typing import IO

from amqpsniff.sanitize.policy import filler

RELEASED_BYTES = 1 << 26
"""Bytes that are read of the file before the pages they were on are let go of."""

_STEP = 3
"""Integers of a span: stream offset, bytes, place in the file."""

_OWN = -1
"""In place of a place: the packet's own bytes."""


class SafeStreams:
    """Spans are put first; after `seal` they are read."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with us)
        self._bytes: mmap.mmap | bytes = b""
        self._written_bytes = 0
        self._read_bytes = 0
        self._spans: dict[int, array[int]] = {}

    def __enter__(self) -> SafeStreams:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put(self, conversation: int, direction: int, offset: int, octets: bytes) -> None:
        """Put bytes at `offset` of a half-stream, over earlier ones."""
        if not octets:
            return
        spans = self._spans.setdefault(conversation * 2 + direction, array("q"))
        _make_room(spans, offset)
        if spans and spans[-3] + spans[-2] == offset and _end(spans) == self._written_bytes:
            spans[-2] += len(octets)
        else:
            spans.extend((offset, len(octets), self._written_bytes))
        self._file.write(octets)
        self._written_bytes += len(octets)

    def let_through(self, conversation: int, direction: int, offset: int, octets: int) -> None:
        """For this number of bytes each packet keeps its own."""
        if octets:
            spans = self._spans.setdefault(conversation * 2 + direction, array("q"))
            _make_room(spans, offset)
            spans.extend((offset, octets, _OWN))

    def mend(self, conversation: int, direction: int, offset: int, octets: bytes) -> None:
        """Write over bytes that were put before, except those put again since."""
        spans = self._spans.get(conversation * 2 + direction)
        at = _last_from(spans, offset) if spans else 0
        while spans and at < len(spans) and spans[at] < offset + len(octets):
            start, length, file_offset = spans[at : at + _STEP]
            first, stop = max(start, offset), min(start + length, offset + len(octets))
            if first < stop and file_offset != _OWN:
                self._file.seek(file_offset + first - start)
                self._file.write(octets[first - offset : stop - offset])
            at += _STEP
        self._file.seek(self._written_bytes)

    def seal(self) -> None:
        """End of spans: all of them can be read."""
        self._file.flush()
        if self._written_bytes:
            self._bytes = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def read(self, conversation: int, direction: int, offset: int, original: bytes) -> bytearray:
        """The safe bytes for a packet's `original`, at an offset that may be before the begin."""
        safe = bytearray(filler(len(original)))
        self.lay(conversation, direction, offset, original, safe)
        return safe

    def lay(
        self, conversation: int, direction: int, offset: int, original: bytes, safe: bytearray
    ) -> None:
        """Write spans over `safe`, the bytes so far, which is as long as `original`."""
        octets = len(original)
        spans = self._spans.get(conversation * 2 + direction)
        if spans is None:
            return
        at = _last_from(spans, offset)
        while at < len(spans):
            start, length, file_offset = spans[at], spans[at + 1], spans[at + 2]
            if start >= offset + octets:
                break
            first, stop = max(start, offset), min(start + length, offset + octets)
            if first < stop:
                target = slice(first - offset, stop - offset)
                source = slice(file_offset + first - start, file_offset + stop - start)
                safe[target] = original[target] if file_offset == _OWN else self._bytes[source]
            at += _STEP
        self._release_pages(octets)

    def _release_pages(self, octets: int) -> None:
        """Release the file's pages from memory each time `RELEASED_BYTES` were read."""
        self._read_bytes += octets
        if self._read_bytes > RELEASED_BYTES and isinstance(self._bytes, mmap.mmap):
            self._read_bytes = 0
            if hasattr(mmap, "MADV_DONTNEED"):  # not on every system
                self._bytes.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Close the file, which deletes it."""
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()
        self._bytes = b""
        self._file.close()


def _end(spans: array[int]) -> int:
    """End of the last span's bytes in the file."""
    return -1 if spans[-1] == _OWN else spans[-1] + spans[-2]


def _make_room(spans: array[int], offset: int) -> None:
    """Cut off the spans from an offset on: a frame was read again from there."""
    while spans and spans[-3] + spans[-2] > offset:
        if spans[-3] >= offset:
            del spans[-_STEP:]
        else:
            spans[-2] = offset - spans[-3]


def _last_from(spans: array[int], offset: int) -> int:
    """The place of the last span that begins at an offset or before, or of the first one."""
    begins = range(0, len(spans), _STEP)
    return max(bisect_right(begins, offset, key=spans.__getitem__) - 1, 0) * _STEP
