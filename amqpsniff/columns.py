# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Growable typed columns: where the engine's hot stages put their rows.

A stage that finds a row writes one value into each column of its table; nothing else is made for
it. A column is a buffer that Arrow can take over without a copy (`amqpsniff.tables` does that), so
this module needs no Arrow. Nulls are in the values: `NULL` in an integer column, a negative code in
a code column, a zero octet of `valid` in a text column.

The columns of one table grow together: the table asks `reserve(rows)` before it writes a row, and
writes `values[row]` directly. A text is begun at its row (`begin`; rows passed over are null),
appended octet by octet (`room` first, then `octets[used]`) and closed with `end`.
"""

import cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy  # type: ignore[import-not-found]

NULL = -(2**63)
"""The integer that stands for null in `Integers`; no column of ours can hold it as a value."""


@cython.cfunc
def _copy(
    target: cython.uchar[::1],
    at: cython.longlong,
    source: cython.const[cython.uchar][::1],
    start: cython.longlong,
    count: cython.longlong,
) -> cython.int:
    """Copy `count` octets; checks both ranges itself, for memcpy does not."""
    if count <= 0:
        return 0
    if at < 0 or start < 0 or at + count > len(target) or start + count > len(source):
        raise IndexError("copy outside a buffer")
    if cython.compiled:
        memcpy(
            cython.address(target[at]),
            cython.address(source[start]),
            cython.cast(cython.size_t, count),
        )
    else:
        target[at : at + count] = source[start : start + count]
    return 0


class Integers:
    """64-bit integers; `values[row]` is `NULL` for null."""

    def __init__(self):
        self.capacity = 0
        self.storage = bytearray()

    def reserve(self, rows):
        """Make room for `rows` rows in all."""
        storage = bytearray(8 * rows)
        storage[: len(self.storage)] = self.storage
        self.storage = storage
        self.values = memoryview(storage).cast("q")
        self.capacity = rows
        return 0

    def take(self):
        """Give the storage away and start empty."""
        storage = self.storage
        self.capacity = 0
        self.storage = bytearray()
        return storage


class Codes:
    """32-bit indices into a list of strings kept elsewhere; negative for null."""

    def __init__(self):
        self.capacity = 0
        self.storage = bytearray()

    def reserve(self, rows):
        """Make room for `rows` rows in all."""
        storage = bytearray(4 * rows)
        storage[: len(self.storage)] = self.storage
        self.storage = storage
        self.values = memoryview(storage).cast("i")
        self.capacity = rows
        return 0

    def take(self):
        """Give the storage away and start empty."""
        storage = self.storage
        self.capacity = 0
        self.storage = bytearray()
        return storage


class Octets:
    """Octets that grow at their end; `used` of them are there."""

    def __init__(self, size=256):
        self.used = 0
        self.size = size
        self.storage = bytearray(size)
        self.octets = self.storage

    def room(self, count):
        """Make sure that `count` more octets can be written at `used`."""
        if self.used + count > self.size:
            self._grow(count)
        return 0

    def _grow(self, count):
        size: cython.longlong = self.size * 2
        while size < self.used + count:
            size *= 2
        storage = bytearray(size)
        view: cython.uchar[::1] = storage
        _copy(view, 0, self.octets, 0, self.used)
        self.storage = storage
        self.octets = view
        self.size = size
        return 0

    def put_octet(self, octet):
        """Append one octet."""
        self.room(1)
        self.octets[self.used] = octet
        self.used += 1
        return 0

    def put(self, source, start, count):
        """Append `count` octets of `source` from `start`."""
        self.room(count)
        _copy(self.octets, self.used, source, start, count)
        self.used += count
        return 0

    def put_from(self, source, start, count):
        """Append `count` octets of another `Octets` from `start`; quicker than `put`."""
        self.room(count)
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
                self.octets[self.used : self.used + count] = source.octets[start : start + count]
        self.used += count
        return 0

    def put_bytes(self, octets):
        """Append a bytes object."""
        count: cython.longlong = len(octets)
        self.room(count)
        if count > 64:
            view: cython.const[cython.uchar][::1] = octets
            return self.put(view, 0, count)
        i: cython.Py_ssize_t
        for i in range(count):
            self.octets[self.used + i] = octets[i]
        self.used += count
        return 0

    def put_bool(self, value):
        """Append `true` or `false`."""
        self.room(5)
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


class Texts(Octets):
    """Octet strings of any length, one after the other, with 32-bit offsets."""

    def __init__(self, size=256):
        Octets.__init__(self, size)
        self._clear()

    def _clear(self):
        self.rows = 0
        self.capacity = 0
        self.values = 0
        self.offsets_storage = bytearray(4)
        self.valid_storage = bytearray()
        self.offsets = memoryview(self.offsets_storage).cast("i")
        self.valid = memoryview(self.valid_storage).cast("B")

    def reserve(self, rows):
        """Make room for `rows` rows in all."""
        offsets = bytearray(4 * (rows + 1))
        offsets[: len(self.offsets_storage)] = self.offsets_storage
        valid = bytearray(rows)
        valid[: len(self.valid_storage)] = self.valid_storage
        self.offsets_storage = offsets
        self.valid_storage = valid
        self.offsets = memoryview(offsets).cast("i")
        self.valid = memoryview(valid).cast("B")
        self.capacity = rows
        return 0

    def begin(self, row):
        """Go on at this row: the rows passed over are null."""
        while self.rows < row:
            self.rows += 1
            self.offsets[self.rows] = self.used
        return 0

    def end(self):
        """Close the row being written as a value."""
        self.valid[self.rows] = 1
        self.rows += 1
        self.values += 1
        self.offsets[self.rows] = self.used
        return 0

    def take(self, rows):
        """Give (offsets, valid, octets, values that are not null) of `rows` rows away."""
        self.begin(rows)
        taken = (self.offsets_storage, self.valid_storage, self.storage, self.values)
        Octets.__init__(self)
        self._clear()
        return taken
