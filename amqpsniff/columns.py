# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Growable typed columns: where the engine's hot stages put their rows.

A stage that finds a row writes one value into each column of its table; nothing else is made for
it. A column is a buffer that Arrow can take over without a copy (`amqpsniff.tables` does that), so
this module needs no Arrow. Nulls are in the values: `NULL` in an integer column, a negative code in
a code column, a zero byte of `valid` in a text column. A row is null until it is written.

The columns of one table grow together: the table asks `reserve(rows)` before it writes a row, and
writes `values[row]` directly. A text is begun at its row (`begin`; rows passed over are null),
appended byte by byte (`room` first, then `octets[used]`) and closed with `end`. Texts that repeat
are entered into a `Vocabulary` and stand in the rows as its codes.
"""

from __future__ import annotations

import sys

import cython
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize  # type: ignore
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize  # type: ignore
    from cython.cimports.libc.string import memcpy  # type: ignore[import-not-found]

PADDING_BYTES = 64
"""Bytes up to a multiple of which Arrow's streams have buffers."""

# Repeating one byte is quick, repeating eight is not: integers are copied from a block of nulls.
_NULLS_ROWS = 4096
_NULLS = NULL.to_bytes(8, sys.byteorder, signed=True) * _NULLS_ROWS


@cython.ccall
def null_integers(rows: cython.longlong) -> bytearray:
    """Storage of `rows` 64-bit nulls."""
    return bytearray().join([_NULLS] * (rows // _NULLS_ROWS) + [_NULLS[: 8 * (rows % _NULLS_ROWS)]])


@cython.ccall
def null_codes(rows: cython.longlong) -> bytearray:
    """Storage of `rows` 32-bit nulls, which are -1."""
    return bytearray(b"\xff") * (4 * rows)


@cython.ccall
def room_for(octets: cython.longlong) -> bytearray:
    """Storage of `octets` bytes, uninitialized: call `sealed` before it leaves the process."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, octets)
    return bytearray(octets)


@cython.ccall
def sealed(storage: bytearray, used: cython.longlong) -> bytearray:
    """Zero the bytes behind the last used one: Arrow sends them as padding."""
    behind = storage[used : used + PADDING_BYTES]
    storage[used : used + PADDING_BYTES] = bytes(len(behind))
    return storage


@cython.cclass
class Integers:
    """64-bit integers; `values[row]` is `NULL` for null.

    Rows are null before they are written, or anything without `nulls`: where every row is written.
    """

    capacity: cython.longlong
    nulls: cython.bint
    storage: Any

    values: cython.longlong[::1]

    def __init__(self, nulls: Any = True) -> None:
        self.nulls = nulls
        self.capacity = 0
        self.storage = bytearray()

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for `rows` rows in all."""
        storage = null_integers(rows) if self.nulls else room_for(8 * rows)
        storage[: len(self.storage)] = self.storage
        self.storage = storage
        self.values = memoryview(storage).cast("q")
        self.capacity = rows
        return 0

    def at(self, row: cython.longlong) -> int:
        """The number of a row; `NULL` for null."""
        return self.values[row]

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self, rows: cython.longlong) -> cython.int:
        """Make the first `rows` rows null again."""
        row: cython.longlong
        if not self.nulls:
            return 0
        if rows > self.capacity:
            raise IndexError("no such rows")
        with cython.boundscheck(False):  # they are there
            for row in range(rows):
                self.values[row] = NULL
        return 0

    def take(self, rows: Any) -> Any:
        """Give the storage away, of which `rows` rows are used, and start empty."""
        storage = self.storage
        self.capacity = 0
        self.storage = bytearray()
        return sealed(storage, 8 * rows)


@cython.cclass
class Codes:
    """32-bit indices into a list of strings kept elsewhere; negative for null.

    Rows are null before they are written, or anything without `nulls`, as in `Integers`.
    """

    capacity: cython.longlong
    nulls: cython.bint
    storage: Any

    values: cython.int[::1]

    def __init__(self, nulls: Any = True) -> None:
        self.nulls = nulls
        self.capacity = 0
        self.storage = bytearray()

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for `rows` rows in all."""
        storage = null_codes(rows) if self.nulls else room_for(4 * rows)
        storage[: len(self.storage)] = self.storage
        self.storage = storage
        self.values = memoryview(storage).cast("i")
        self.capacity = rows
        return 0

    def at(self, row: cython.longlong) -> int:
        """The code of a row; negative for null."""
        return self.values[row]

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self, rows: cython.longlong) -> cython.int:
        """Make the first `rows` rows null again."""
        row: cython.longlong
        if not self.nulls:
            return 0
        if rows > self.capacity:
            raise IndexError("no such rows")
        with cython.boundscheck(False):  # they are there
            for row in range(rows):
                self.values[row] = -1
        return 0

    def take(self, rows: Any) -> Any:
        """Give the storage away, of which `rows` rows are used, and start empty."""
        storage = self.storage
        self.capacity = 0
        self.storage = bytearray()
        return sealed(storage, 4 * rows)


@cython.cclass
class Octets:
    """Bytes that grow at their end; `used` of them are there."""

    storage: Any
    used: cython.longlong
    size: cython.longlong

    octets: cython.uchar[::1]

    def __init__(self, size: Any = 256) -> None:
        self.used = 0
        self.size = size
        self.storage = room_for(size)
        self.octets = self.storage

    def room(self, count: cython.longlong) -> cython.int:
        """Make sure that `count` more bytes can be written at `used`."""
        if self.used + count > self.size:
            self._grow(count)
        return 0

    def _grow(self, count: cython.longlong) -> cython.int:
        size: cython.longlong = self.size * 2
        while size < self.used + count:
            size *= 2
        storage = room_for(size)
        memoryview(storage)[: self.used] = memoryview(self.storage)[: self.used]
        self.storage = storage
        self.octets = storage
        self.size = size
        return 0

    def trim(self) -> None:
        """Give up the room that is not used."""
        self.size = max(self.used, 1)
        self.storage = self.storage[: self.size]
        self.octets = self.storage

    def put_byte(self, octet: cython.uchar) -> cython.int:
        """Append one byte."""
        if self.used + 1 > self.size:
            self._grow(1)
        self.octets[self.used] = octet
        self.used += 1
        return 0

    @cython.cfunc
    def bytes_between(self, start: cython.longlong, end: cython.longlong) -> bytes:
        """A copy of the bytes from `start` up to `end`."""
        if start == end:
            return b""
        if not 0 <= start < end <= self.size:
            raise IndexError("bytes outside a buffer")
        if cython.compiled:
            first = cython.cast(cython.p_char, cython.address(self.octets[start]))
            return PyBytes_FromStringAndSize(first, end - start)
        return bytes(self.octets[start:end])

    def put_from(
        self, source: Octets, start: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """Append `count` bytes of another `Octets` from `start`."""
        if self.used + count > self.size:
            self._grow(count)
        if start < 0 or start + count > source.size:
            raise IndexError("copy outside a buffer")
        if count > 0:
            if cython.compiled:
                memcpy(
                    cython.address(self.octets[self.used]),
                    cython.address(source.octets[start]),
                    cython.cast(cython.size_t, count),
                )
            else:
                part = source.storage[start : start + count]
                self.storage[self.used : self.used + count] = part
        self.used += count
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def put_bytes(self, octets: bytes) -> cython.int:
        """Append a bytes object."""
        count: cython.longlong = len(octets)
        if self.used + count > self.size:
            self._grow(count)
        if count > 0:
            if cython.compiled:
                memcpy(
                    cython.address(self.octets[self.used]),
                    cython.cast(cython.p_char, octets),
                    cython.cast(cython.size_t, count),
                )
            else:
                self.storage[self.used : self.used + count] = octets
        self.used += count
        return 0

    def put_bool(self, value: cython.bint) -> cython.int:
        """Append `true` or `false`."""
        if self.used + 5 > self.size:
            self._grow(5)
        at: cython.longlong = self.used
        if value:
            self.octets[at] = 116
            self.octets[at + 1] = 114
            self.octets[at + 2] = 117
            self.octets[at + 3] = 101
            self.used = at + 4
        else:
            self.octets[at] = 102
            self.octets[at + 1] = 97
            self.octets[at + 2] = 108
            self.octets[at + 3] = 115
            self.octets[at + 4] = 101
            self.used = at + 5
        return 0


_FIRST_SLOTS = 256
_MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cclass
class Vocabulary(Octets):
    """Distinct texts, each once, by code: 0 for the first that was added, and so on.

    A caller that adds a text looks for it first, with its own hash. A code stands for bytes that
    are not UTF-8 if `meant` has another code for it: that one has the text written in their place.
    `near` is the code found last, negative for none: the next text is often the same.
    """

    count: cython.int
    near: cython.int
    ends_storage: Any
    slot: cython.longlong

    ends: cython.int[::1]
    meant: cython.int[::1]
    slots: cython.int[::1]
    hashes: cython.ulonglong[::1]
    strings: list[Any]

    def __init__(self) -> None:
        Octets.__init__(self, 1024)
        self.count = self.slot = 0
        self.near = -1
        self.ends_storage = bytearray(4 * (_FIRST_SLOTS // 2 + 1))
        self.ends = memoryview(self.ends_storage).cast("i")
        self.meant = memoryview(bytearray(4 * (_FIRST_SLOTS // 2))).cast("i")
        self.hashes = memoryview(bytearray(8 * (_FIRST_SLOTS // 2))).cast("Q")
        self.slots = memoryview(null_codes(_FIRST_SLOTS)).cast("i")
        self.strings = []

    @cython.exceptval(-2)
    def find(self, digest: cython.ulonglong, length: cython.longlong) -> cython.int:
        """The first code whose text may have this hash and length, or a negative number.

        Call `next` for further candidates, and `add` if no candidate fits.
        """
        self.slot = cython.cast(cython.longlong, digest & _MASK32) & (len(self.slots) - 1)
        return self._candidate(digest, length)

    @cython.exceptval(-2)
    def next(self, digest: cython.ulonglong, length: cython.longlong) -> cython.int:
        """The next code after the one that `find` or `next` gave."""
        self.slot = (self.slot + 1) & (len(self.slots) - 1)
        return self._candidate(digest, length)

    @cython.exceptval(-2)
    def _candidate(self, digest: cython.ulonglong, length: cython.longlong) -> cython.int:
        code: cython.int
        while True:
            code = self.slots[self.slot]
            if code < 0 or (
                self.hashes[code] == digest and self.ends[code + 1] - self.ends[code] == length
            ):
                return code
            self.slot = (self.slot + 1) & (len(self.slots) - 1)

    def add(self, digest: cython.ulonglong) -> cython.int:
        """Enter the bytes appended since the last text as a new one, after `find`; its code."""
        code: cython.int = self.count
        self.hashes[code] = digest
        self.ends[code + 1] = self.used
        self.meant[code] = code
        self.slots[self.slot] = code
        self.count = code + 1
        if 2 * self.count >= len(self.slots):
            self._grow_slots()
        return code

    def _grow_slots(self) -> cython.int:
        size: cython.longlong = 4 * len(self.slots)
        code: cython.int
        slot: cython.longlong
        ends = bytearray(4 * (size // 2 + 1))
        ends[: len(self.ends_storage)] = self.ends_storage
        self.ends_storage = ends
        self.ends = memoryview(ends).cast("i")
        self.meant = memoryview(bytearray(memoryview(self.meant)) + bytes(3 * size // 2)).cast("i")
        hashes = bytearray(memoryview(self.hashes)) + bytes(3 * size)
        self.hashes = memoryview(hashes).cast("Q")
        self.slots = memoryview(null_codes(size)).cast("i")
        for code in range(self.count):
            slot = cython.cast(cython.longlong, self.hashes[code] & _MASK32) & (size - 1)
            while self.slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            self.slots[slot] = code
        return 0

    @cython.ccall
    def text(self, code: cython.int) -> str:
        """The text of a code as a string; the same object each time. Null for a negative code."""
        if code < 0:
            return None
        while len(self.strings) <= code:
            at: cython.int = len(self.strings)
            octets: bytes = self.bytes_between(self.ends[at], self.ends[at + 1])
            self.strings.append(octets.decode("utf-8", "replace"))
        return self.strings[code]

    def entries(self) -> Any:
        """Offsets and bytes of every text, in the order of codes, where each is one; else None.

        The offsets are 32-bit integers, one more than there are texts.
        """
        if all(self.meant[code] == code for code in range(self.count)):
            return bytearray(self.ends_storage), self.storage[: self.used]
        return None

    def texts(self) -> list[str]:
        """The text of every code; the replacement text where the bytes were not text."""
        return [self.text(self.meant[code]) for code in range(self.count)]


@cython.final
@cython.cclass
class Texts(Octets):
    """Byte strings of any length, one after the other, with 32-bit offsets."""

    offsets: cython.int[::1]
    valid: cython.uchar[::1]
    offsets_storage: Any
    valid_storage: Any
    rows: cython.longlong
    capacity: cython.longlong
    values: cython.longlong

    def __init__(self, size: Any = 256) -> None:
        Octets.__init__(self, size)
        self._clear()

    def _clear(self) -> None:
        self.rows = self.capacity = self.values = 0
        self.offsets_storage = bytearray(4)
        self.valid_storage = bytearray()
        self.offsets = memoryview(self.offsets_storage).cast("i")
        self.valid = memoryview(self.valid_storage).cast("B")

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for `rows` rows in all."""
        offsets = bytearray(4 * (rows + 1))
        offsets[: len(self.offsets_storage)] = self.offsets_storage
        valid = bytearray(rows)
        valid[: len(self.valid_storage)] = self.valid_storage
        self.offsets_storage, self.valid_storage = offsets, valid
        self.offsets = memoryview(offsets).cast("i")
        self.valid = memoryview(valid).cast("B")
        self.capacity = rows
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def begin(self, row: cython.longlong) -> cython.int:
        """Begin this row: the rows passed over are null."""
        rows: cython.longlong = self.rows
        if rows < row:
            if row >= len(self.offsets):
                raise IndexError("no room for a row")
            end: cython.int = cython.cast(cython.int, self.used)
            with cython.boundscheck(False):  # it is there
                while rows < row:
                    rows += 1
                    self.offsets[rows] = end
            self.rows = rows
        return 0

    def end(self) -> cython.int:
        """Close the row being written as a value."""
        self.valid[self.rows] = 1
        self.rows += 1
        self.values += 1
        self.offsets[self.rows] = self.used
        return 0

    def repeat(self, row: cython.longlong, source: cython.longlong) -> cython.int:
        """Write at this row what an earlier one has."""
        start: cython.longlong = self.offsets[source]
        self.begin(row)
        self.put_from(self, start, self.offsets[source + 1] - start)
        return self.end()

    @cython.ccall
    @cython.exceptval(-1)
    def has(self, row: cython.longlong) -> cython.bint:
        """True if a row has a value."""
        return 0 <= row < self.rows and self.valid[row] != 0

    @cython.ccall
    def bytes_of(self, row: cython.longlong) -> bytes:
        """The bytes of a row, None for null."""
        if row < 0 or row >= self.rows or not self.valid[row]:
            return None
        return self.bytes_between(self.offsets[row], self.offsets[row + 1])

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self, rows: cython.longlong) -> cython.int:
        """Forget every row; there are `rows` at most."""
        self.valid_storage[: self.rows] = bytes(self.rows)
        self.used = self.rows = self.values = 0
        return 0

    def take(self, rows: Any) -> Any:
        """Give (offsets, valid, bytes, values that are not null) of `rows` rows away."""
        self.begin(rows)
        octets = sealed(self.storage, self.used)
        taken = (self.offsets_storage, self.valid_storage, octets, self.values)
        Octets.__init__(self)
        self._clear()
        return taken
