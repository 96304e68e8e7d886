# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Bytes on the wire: numbers, copies, and texts as codes of a vocabulary.

A `ByteReader` reads one buffer after the other, and never outside of it. Unusual values set a bit
of `oddities`, which the caller reports.
"""

from __future__ import annotations

import os
import sys

import cython
from cython.cimports.amqpsniff.byteorder import i64, u16, u32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Octets, Vocabulary

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize  # type: ignore
    from cython.cimports.libc.string import memcmp, memcpy  # type: ignore


NOT_UTF8 = 1
"""The bit of `oddities` for a text that is not UTF-8; `values` has the others."""

_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_MULTIPLIER = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_MIX_1 = cython.declare(cython.ulonglong, 0xBF58476D1CE4E5B9)
_MIX_2 = cython.declare(cython.ulonglong, 0x94D049BB133111EB)
_BIG_ENDIAN = cython.declare(cython.bint, sys.byteorder == "big")
_SEED = cython.declare(cython.ulonglong, int.from_bytes(os.urandom(8), sys.byteorder))


def own_seed() -> Any:
    """The seed of this process."""
    return _SEED


@cython.cfunc
@cython.exceptval(check=False)
def _factor(seed: cython.ulonglong, index: cython.ulonglong) -> cython.ulonglong:
    """An odd number that looks like chance, for a word at a place of a body (SplitMix64)."""
    h: cython.ulonglong = (seed + index * _MULTIPLIER) & _MASK64
    h = ((h ^ (h >> 30)) * _MIX_1) & _MASK64
    h = ((h ^ (h >> 27)) * _MIX_2) & _MASK64
    return (h ^ (h >> 31)) | 1


@cython.cclass
class ByteReader:
    """Reads `data`."""

    oddities: cython.int

    data: cython.const[cython.uchar][::1]

    def __init__(self) -> None:
        self.data = b""
        self.oddities = 0

    @cython.ccall
    @cython.exceptval(-1)
    def read_from(self, data: cython.const[cython.uchar][::1]) -> cython.int:
        """Read from these bytes from now on."""
        self.data = data
        return 0

    def u16(self, at: cython.longlong) -> cython.longlong:
        """Unsigned 16-bit integer at `at`."""
        if at < 0 or at + 2 > len(self.data):
            raise IndexError("number outside the data")
        return u16(self.data, at)

    def u32(self, at: cython.longlong) -> cython.longlong:
        """Unsigned 32-bit integer at `at`."""
        if at < 0 or at + 4 > len(self.data):
            raise IndexError("number outside the data")
        return u32(self.data, at)

    def i64(self, at: cython.longlong) -> cython.longlong:
        """Signed 64-bit integer at `at`."""
        if at < 0 or at + 8 > len(self.data):
            raise IndexError("number outside the data")
        return i64(self.data, at)

    @cython.cfunc
    def bytes_at(self, start: cython.longlong, count: cython.longlong) -> bytes:
        """`count` bytes of the data from `start`; empty if that is below 1."""
        if count <= 0:
            return b""
        if start < 0 or start + count > len(self.data):
            raise IndexError("bytes outside the data")
        if cython.compiled:
            first = cython.cast(cython.p_char, cython.address(self.data[start]))
            return PyBytes_FromStringAndSize(first, count)
        return bytes(self.data[start : start + count])

    def has_twice(
        self, octet: cython.int, start: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """True if a byte stands twice in a row in `start`..`end`."""
        at: cython.longlong
        for at in range(start, end - 1):
            if self.data[at] == octet and self.data[at + 1] == octet:
                return True
        return False

    def copy_to(self, column: Octets, start: cython.longlong, count: cython.longlong) -> cython.int:
        """Append `count` bytes of the data from `start` to a column."""
        column.room(count)
        if start < 0 or start + count > len(self.data):
            raise IndexError("copy outside the data")
        if count > 0:
            if cython.compiled:
                memcpy(
                    cython.address(column.octets[column.used]),
                    cython.address(self.data[start]),
                    cython.cast(cython.size_t, count),
                )
            else:
                at = column.used
                column.storage[at : at + count] = bytes(self.data[start : start + count])
            column.used += count
        return 0

    def is_ascii(self, start: cython.longlong, count: cython.longlong) -> cython.bint:
        """True if no byte of these is above 127."""
        end: cython.longlong = start + count
        if start < 0 or end > len(self.data):
            raise IndexError("bytes outside the data")
        every: cython.uchar = 0
        i: cython.longlong
        with cython.boundscheck(False):  # the range was checked: one wide loop instead of tests
            for i in range(start, end):
                every |= self.data[i]
        return every < 128

    def is_text(self, start: cython.longlong, count: cython.longlong) -> cython.bint:
        """True if these bytes are UTF-8 (RFC 3629 §4)."""
        end: cython.longlong = start + count
        first: cython.int
        second: cython.int
        following: cython.int
        while start < end:
            first = self.data[start]
            start += 1
            if first < 0x80:
                continue
            if first < 0xC2 or first > 0xF4:
                return False
            following = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
            if start + following > end:
                return False
            second = self.data[start]
            if (first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F):
                return False
            if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F):
                return False
            while following > 0:
                if self.data[start] & 0xC0 != 0x80:
                    return False
                start += 1
                following -= 1
        return True

    def code_in(
        self, vocabulary: Vocabulary, start: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """The code of `count` bytes of the data from `start` in a vocabulary; new ones are added.

        Bytes that are not UTF-8 get the code of their replacement text.
        """
        code: cython.int = vocabulary.near
        if code >= 0 and self.is_word(vocabulary, code, start, count):
            return code
        digest: cython.ulonglong = self.hash_of(start, count)
        code = vocabulary.find(digest, count)
        while code >= 0:
            if self._equals(vocabulary, vocabulary.ends[code], start, count):
                if vocabulary.meant[code] == code:
                    vocabulary.near = code
                else:
                    self.oddities |= NOT_UTF8
                return vocabulary.meant[code]
            code = vocabulary.next(digest, count)
        self.copy_to(vocabulary, start, count)
        code = vocabulary.add(digest)
        if self.is_ascii(start, count) or self.is_text(start, count):
            return code
        self.oddities |= NOT_UTF8
        vocabulary.meant[code] = code_of(
            vocabulary, self.bytes_at(start, count).decode(errors="replace").encode()
        )
        return vocabulary.meant[code]

    @cython.exceptval(1)
    def hash_of(self, start: cython.longlong, count: cython.longlong) -> cython.ulonglong:
        """A hash of bytes of the data, with a secret seed: captures cannot aim at collisions."""
        return self.hash_with(_SEED, start, count)

    @cython.exceptval(1)
    def hash_with(
        self, seed: cython.ulonglong, start: cython.longlong, count: cython.longlong
    ) -> cython.ulonglong:
        """The same with another seed, for hashes that several processes are to agree on."""
        if start < 0 or start + count > len(self.data):
            raise IndexError("bytes outside the data")
        h: cython.ulonglong = seed ^ cython.cast(cython.ulonglong, count)
        word: cython.ulonglong = 0
        at: cython.longlong = start
        end: cython.longlong = start + count
        with cython.boundscheck(False):  # the range was checked
            if count >= 8:
                end -= 8  # the last word may share bytes with the one before it
                while at < end:
                    if cython.compiled:
                        memcpy(cython.address(word), cython.address(self.data[at]), 8)
                    else:
                        word = int.from_bytes(self.data[at : at + 8], sys.byteorder)
                    h = ((h ^ word) * _MULTIPLIER) & _MASK64
                    h ^= h >> 29
                    at += 8
                if cython.compiled:
                    memcpy(cython.address(word), cython.address(self.data[end]), 8)
                else:
                    word = int.from_bytes(self.data[end : end + 8], sys.byteorder)
            else:
                while at < end:
                    word = (word << 8) | self.data[at]
                    at += 1
        h = ((h ^ word) * _MULTIPLIER) & _MASK64
        h = ((h ^ (h >> 32)) * _MULTIPLIER) & _MASK64  # high bits of the last word go everywhere
        return h ^ (h >> 29)

    @cython.exceptval(1)
    def hash_part(
        self,
        seed: cython.ulonglong,
        start: cython.longlong,
        count: cython.longlong,
        position: cython.longlong,
    ) -> cython.ulonglong:
        """The share of `count` bytes in the hash of a body, in which they begin at `position`.

        Shares are added modulo 2^64. So the hash is the same however a body is cut into pieces: the
        sum of its words of 8 bytes, each times a number that its place and the seed make.
        """
        if start < 0 or position < 0 or start + count > len(self.data):
            raise IndexError("bytes outside the data")
        h: cython.ulonglong = 0
        word: cython.ulonglong = 0
        at: cython.longlong = start
        end: cython.longlong = start + count
        with cython.boundscheck(False):  # the range was checked
            while at < end:
                if position & 7 == 0 and end - at >= 8:
                    if cython.compiled:
                        memcpy(cython.address(word), cython.address(self.data[at]), 8)
                    else:
                        word = int.from_bytes(self.data[at : at + 8], sys.byteorder)
                    h = (h + word * _factor(seed, position >> 3)) & _MASK64
                    at += 8
                    position += 8
                else:
                    word = self.data[at]
                    shift: cython.int = 8 * (position & 7)
                    if _BIG_ENDIAN:
                        shift = 56 - shift
                    word = (word << shift) & _MASK64
                    h = (h + word * _factor(seed, position >> 3)) & _MASK64
                    at += 1
                    position += 1
        return h

    @cython.exceptval(1)
    def sketch(self, start: cython.longlong, count: cython.longlong) -> cython.ulonglong:
        """24 bits made of a few bytes of a method's payload: of its numbers and the last ones."""
        if start < 0 or count < 4 or start + count > len(self.data):
            raise IndexError("bytes outside the data")
        word: cython.ulonglong = 0
        first: cython.ulonglong
        with cython.boundscheck(False):  # the range was checked
            first = (self.data[start + 1] << 8) | self.data[start + 3]
            if count < 14:  # the bytes before the last one may be a delivery tag
                word = self.data[start + count - 1]
            elif cython.compiled:
                memcpy(cython.address(word), cython.address(self.data[start + count - 8]), 8)
            else:
                word = int.from_bytes(self.data[start + count - 8 : start + count], sys.byteorder)
        word ^= word >> 32
        first ^= cython.cast(cython.ulonglong, count) << 16
        return ((((word * _MULTIPLIER) ^ first ^ _SEED) * _MULTIPLIER) & _MASK64) >> 40

    def equals_but(
        self,
        vocabulary: Vocabulary,
        begin: cython.longlong,
        start: cython.longlong,
        count: cython.longlong,
        first: cython.longlong,
        gap: cython.longlong,
    ) -> cython.bint:
        """True if `count` bytes of the data are those of a vocabulary from `begin`.

        The `gap` bytes after the `first` are not compared, and not in the vocabulary.
        """
        tail_bytes: cython.longlong = count - first - gap
        if (
            begin < 0
            or first < 0
            or gap < 0
            or tail_bytes < 0
            or begin + count - gap > vocabulary.size
        ):
            raise IndexError("bytes outside a vocabulary")
        if start < 0 or start + count > len(self.data):
            raise IndexError("bytes outside the data")
        at: cython.longlong = start + count - tail_bytes
        if cython.compiled:
            with cython.boundscheck(False):  # the ranges were checked
                if tail_bytes and memcmp(
                    cython.address(vocabulary.octets[begin + first]),
                    cython.address(self.data[at]),
                    cython.cast(cython.size_t, tail_bytes),
                ):
                    return False
                return first == 0 or not memcmp(
                    cython.address(vocabulary.octets[begin]),
                    cython.address(self.data[start]),
                    cython.cast(cython.size_t, first),
                )
        stored = vocabulary.octets[begin : begin + first + tail_bytes]
        return stored[first:] == self.data[at : at + tail_bytes] and (
            stored[:first] == self.data[start : start + first]
        )

    def is_word(
        self,
        vocabulary: Vocabulary,
        code: cython.int,
        start: cython.longlong,
        count: cython.longlong,
    ) -> cython.bint:
        """True if bytes of the data are those of a code."""
        first: cython.int = vocabulary.ends[code]
        return vocabulary.ends[code + 1] - first == count and self._equals(
            vocabulary, first, start, count
        )

    def _equals(
        self,
        vocabulary: Vocabulary,
        first: cython.longlong,
        start: cython.longlong,
        count: cython.longlong,
    ) -> cython.bint:
        """True if bytes of the data are those of a vocabulary from `first`."""
        if count == 0:
            return True
        if first < 0 or first + count > vocabulary.size or start + count > len(self.data):
            raise IndexError("bytes outside the data")
        if cython.compiled:
            return (
                memcmp(
                    cython.address(vocabulary.octets[first]),
                    cython.address(self.data[start]),
                    cython.cast(cython.size_t, count),
                )
                == 0
            )
        return vocabulary.octets[first : first + count] == self.data[start : start + count]


def code_of(vocabulary: Vocabulary, text: bytes) -> cython.int:
    """The code of a text, which is UTF-8, in a vocabulary; new ones are added."""
    reader: ByteReader = ByteReader()
    reader.read_from(text)
    return reader.code_in(vocabulary, 0, len(text))
