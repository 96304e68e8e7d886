"""Rows of integers that are written once, in order, and read often: in memory while they are few,
in a temporary file beyond."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from typing import IO

IN_MEMORY = 16 * 1024 * 1024
"""Bytes of rows kept in memory, of all logs of one file together; some 400,000 frames."""

INTEGER_BYTES = 8


class Spill:
    """A temporary file for many logs; `close` deletes it."""

    def __init__(self, limit: int = IN_MEMORY) -> None:
        self._file: IO[bytes] | None = None
        self._grown: list[Log] = []
        self._room = self._limit = limit // INTEGER_BYTES

    def took(self, log: Log, integers: int) -> None:
        """A log grew; all are written to the file when they have become too large together."""
        if integers == len(log.rows):
            self._grown.append(log)
        self._room -= integers
        if self._room < 0:
            for grown in self._grown:
                grown.move()
            self._grown.clear()
            self._room = self._limit

    def write(self, integers: array[int]) -> int:
        """Append to the file; gives the place where it stands."""
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with us)
        place = self._file.seek(0, 2)
        integers.tofile(self._file)
        return place

    def read(self, place: int, count: int) -> array[int]:
        """A number of integers at a position."""
        assert self._file is not None
        self._file.seek(place)
        integers = array("q")
        integers.frombytes(self._file.read(count * INTEGER_BYTES))
        return integers

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._grown.clear()


class Log:
    """Rows of `width` integers, in the order in which they came; `rows` are those in memory."""

    __slots__ = ("_chunks", "_spill", "rows", "width")

    def __init__(self, spill: Spill, width: int) -> None:
        self._spill = spill
        self.width = width
        self.rows = array("q")
        self._chunks: list[int] | None = None

    def add(self, *integers: int) -> None:
        """Append a row."""
        self.rows.extend(integers)
        self._spill.took(self, self.width)

    def move(self) -> None:
        """Put the rows in memory into the file."""
        if self.rows:
            if self._chunks is None:
                self._chunks = []
            self._chunks += (self._spill.write(self.rows), len(self.rows))
            self.rows = array("q")

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """The rows, from the first one."""
        chunks = self._chunks or ()
        for at in range(0, len(chunks), 2):
            yield from self._split(self._spill.read(chunks[at], chunks[at + 1]))
        yield from self._split(self.rows)

    def _split(self, integers: array[int]) -> Iterator[tuple[int, ...]]:
        return zip(*(integers[at :: self.width] for at in range(self.width)), strict=True)
