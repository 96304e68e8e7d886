# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Caches of decoded bytes, for bytes that are repeated.

A publisher sends to the same few exchanges and routing keys with the same headers, and clients of
one kind send the same handshake. A cache keeps bytes that were decoded without oddities, and the
result. It holds a fixed number of entries, is emptied when it is full, and skips lookups for a
while after most were misses.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Octets, Texts, Vocabulary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.values import ValueReader

MAX_ENTRIES = 2048
"""Distinct methods, and distinct field tables, in a cache: what a busy broker's connections send
at one time. Each entry takes some 300 bytes beside its own."""

MAX_BYTES = 1024
"""Longest method or field table that is kept: longer ones seldom come twice."""

TRIAL_LOOKUPS = 2048
"""Lookups after which a cache checks if they are worth it."""

SKIPPED_LOOKUPS = 16 * TRIAL_LOOKUPS
"""Lookups that are skipped if they are not: the time lost is then below a tenth."""

_MAX = cython.declare(cython.int, MAX_ENTRIES)
_LONGEST = cython.declare(cython.longlong, MAX_BYTES)
_TRIAL = cython.declare(cython.int, TRIAL_LOOKUPS)
_SKIPPED = cython.declare(cython.int, SKIPPED_LOOKUPS)


def integers(count: Any) -> Any:
    """Room for `count` 64-bit integers."""
    return memoryview(bytearray(8 * count)).cast("q")


@cython.cclass
class Cache:
    """Bytes that were read before, by code, and the JSON that each of them came to."""

    lookups: cython.int
    hits: cython.int
    skips: cython.int

    words: Vocabulary
    json: Octets
    starts: cython.longlong[::1]

    def __init__(self) -> None:
        self.lookups = 0
        self.hits = 0
        self.skips = 0
        self.starts = integers(MAX_ENTRIES + 1)
        self.clear()

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self) -> cython.int:
        """Remember nothing."""
        self.words = Vocabulary()
        self.json = Octets()
        return 0

    def is_worthwhile(self) -> cython.bint:
        """True if it is worth looking something up now."""
        if self.skips > 0:
            self.skips -= 1
            return False
        self.lookups += 1
        if self.lookups > _TRIAL:
            if 4 * self.hits < self.lookups:
                self.skips = _SKIPPED
            self.lookups = 1
            self.hits = 0
        return True


@cython.cclass
class TableCache(Cache):
    """Field tables and their JSON; `last` is the code of the one written last, -1 for none."""

    last: cython.int

    def __init__(self) -> None:
        Cache.__init__(self)
        self.last = -1

    def put_table(
        self, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Write the field table `at`..`end` of a reader's data as an object, as the reader does."""
        count: cython.longlong = end - at
        self.last = -1
        if count > _LONGEST or not self.is_worthwhile():
            return self._write(reader, at, end)
        out: Texts = reader.out
        words: Vocabulary = self.words
        digest: cython.ulonglong = reader.hash_of(at, count)
        code: cython.int = words.find(digest, count)
        while code >= 0:
            if reader._equals(words, words.ends[code], at, count):
                self.hits += 1
                self.last = code
                return out.put_from(
                    self.json, self.starts[code], self.starts[code + 1] - self.starts[code]
                )
            code = words.next(digest, count)
        odd: cython.int = reader.oddities
        mark: cython.longlong = out.used
        reader.oddities = 0
        answer: cython.int = self._write(reader, at, end)
        if answer == 0 and reader.oddities == 0:
            self._store(reader, digest, at, count, mark)
        reader.oddities |= odd
        return answer

    def _write(self, reader: ValueReader, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Read a table that is not in the cache; returns its oddities, 0 for none."""
        return reader.put_table(at, end)

    def _store(
        self,
        reader: ValueReader,
        digest: cython.ulonglong,
        at: cython.longlong,
        count: cython.longlong,
        mark: cython.longlong,
    ) -> cython.int:
        """Remember a table that was not found, and the JSON from `mark` on."""
        if self.words.count >= _MAX:
            self.clear()
            self.words.find(digest, count)
        code: cython.int = self.words.count
        reader.copy_to(self.words, at, count)
        self.words.add(digest)
        self.starts[code] = self.json.used
        self.json.put_from(reader.out, mark, reader.out.used - mark)
        self.starts[code + 1] = self.json.used
        self.last = code
        return 0
