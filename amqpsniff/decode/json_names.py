# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Values of a JSON object by name, found without reading the others.

One pass over the first level of an object notes the positions of the values of known names.
Names are identified by a hash of their bytes, which takes only the character after the backslash of
an escape. A value is read only when it is requested. A cut object has the values before the cut.
The pass ends at the first byte that is not JSON.

Programs write the same names with values of the same sizes many times. So the result of a pass is
kept as a `Layout`: a text that differs only inside its values needs no second pass.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.columns import Octets
from cython.cimports.amqpsniff.decode.octets import ByteReader

from amqpsniff.decode.json_objects import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


if cython.compiled:
    from cython.cimports.libc.string import memchr, memcpy  # type: ignore[import-not-found]

_SINGLE = dict(zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True))
_ESCAPES = cython.declare(bytes, bytes(_SINGLE.get(character, 0) for character in range(256)))
"""By the character after a backslash, the character that both stand for; 0 for others."""

_INSTANT = cython.declare(bytes, b'"9999-99-99T99:99:99.999999+00:00"')
"""A time: a nine is any digit."""

_QUOTE = cython.declare(cython.int, 34)
_BACKSLASH = cython.declare(cython.int, 92)
_MAX_SIZE = cython.declare(cython.int, 63)
_OFFSET = cython.declare(cython.ulonglong, 0xCBF29CE484222325)  # FNV-1a of 64 bits
_PRIME = cython.declare(cython.ulonglong, 0x100000001B3)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


_MAX_LAYOUT = cython.declare(cython.longlong, 2048)
"""Longest text that is remembered as a layout: error messages with a stack trace are as long."""

LAYOUTS = 256
"""Layouts that are remembered, one of the sizes that are the same modulo this."""

INNER_LAYOUTS = 32
"""The same of objects inside others."""

_PATIENCE = cython.declare(cython.int, 8)
"""Texts more that have to miss a layout than fit it before it is replaced: to make one costs as
much as a pass."""

_SAME = cython.declare(cython.int, 255)
_DIGIT = cython.declare(cython.int, 0xF0)


@cython.final
@cython.cclass
class Layout:
    """A text that was read, and the positions of its values: they are the same for each text that
    differs from it only inside of values.

    `marks` has the bits in which a byte may not differ: all of them; those that digits share (other
    bytes that have them do not end a value either); or none, inside a text, where any byte may
    stand except a quote and a backslash. `indices`, `starts`, `ends` are those of the known names.
    """

    size: cython.longlong
    luck: cython.int
    shape: cython.ulonglong
    requested: bytes | None
    octets: bytes
    marks: bytes
    indices: cython.longlong[::1]
    starts: cython.longlong[::1]
    ends: cython.longlong[::1]

    def __init__(self) -> None:
        self.size = -1
        self.luck = 0
        self.requested = self.octets = None

    def is_to_learn(self, size: cython.longlong, requested: bytes | None) -> cython.bint:
        """True if a text that did not fit should be remembered: the second one of a size."""
        self.luck -= 1
        if self.luck >= 0:
            return False
        if self.size == size and self.requested is requested:
            self.luck = _PATIENCE
            return True
        self.size, self.requested, self.octets, self.luck = size, requested, None, 0
        return False


@cython.final
@cython.cclass
class ObjectNames(ByteReader):
    """Finds the values of some names; one object serves all texts in turn.

    `shape` is the same for objects with the same known names, in any order. `sizes` has, by first
    byte, a bit for each size of a known name, so that few other names are hashed.

    `nested` reads JSON in a text in the middle of a path, `octets` is this text without its
    escapes.

    Args:
        names: The names, as UTF-8. A dict has for each the names that are known inside its value,
            see `along`.
        layouts: Number of layouts that are remembered, a power of two.
    """

    shape: cython.ulonglong
    round: cython.longlong
    inside: list[ObjectNames | None]
    layouts: list[Layout | None]
    nested: ObjectNames
    octets: Octets
    outer_round: cython.longlong

    names: list[Any]
    slots: cython.int[::1]
    hashes: cython.ulonglong[::1]
    starts: cython.longlong[::1]
    ends: cython.longlong[::1]
    rounds: cython.longlong[::1]
    sizes: cython.ulonglong[::1]

    def __init__(self, names: Any, layouts: Any = LAYOUTS) -> None:
        ByteReader.__init__(self)
        self.names = list(names)
        count = len(self.names)
        size = 16
        while size < 4 * count:
            size *= 2
        self.slots = memoryview(bytearray(b"\xff" * (4 * size))).cast("i")
        self.hashes = memoryview(bytearray(8 * max(count, 1))).cast("Q")
        self.starts = memoryview(bytearray(8 * max(count, 1))).cast("q")
        self.ends = memoryview(bytearray(8 * max(count, 1))).cast("q")
        self.rounds = memoryview(bytearray(8 * max(count, 1))).cast("q")
        self.sizes = memoryview(bytearray(8 * 256)).cast("Q")
        self.round = self.shape = self.outer_round = 0
        self.nested = self.octets = None
        self.layouts = [None] * layouts
        inside = names if isinstance(names, dict) else {}
        self.inside = [
            ObjectNames(inside[name], INNER_LAYOUTS) if inside.get(name) else None for name in names
        ]
        octet: cython.uchar
        for index, name in enumerate(self.names):
            octets = name.encode()
            self.sizes[octets[0]] |= cython.cast(cython.ulonglong, 1) << min(len(octets), _MAX_SIZE)
            digest: cython.ulonglong = _OFFSET
            for octet in octets:
                digest = ((digest ^ octet) * _PRIME) & _MASK64
            self.hashes[index] = digest
            slot: cython.longlong = cython.cast(cython.longlong, digest & (size - 1))
            while self.slots[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            self.slots[slot] = index

    def found(self) -> Any:
        """The names that the last object has."""
        pairs = zip(self.names, self.rounds, strict=False)
        return frozenset(name for name, round_found in pairs if round_found == self.round)

    def has(self, index: cython.int) -> cython.bint:
        """True if the last object has the name at a place of `names`."""
        return self.rounds[index] == self.round

    @cython.ccall
    @cython.exceptval(-1)
    def forget(self) -> cython.int:
        """There is no object."""
        self.round += 1
        self.shape = 0
        return 0

    def is_plain(self, index: cython.int) -> cython.bint:
        """True if the value that the last object has is a text of ASCII without escapes."""
        start: cython.longlong = self.starts[index]
        if start < 0 or self.ends[index] > len(self.data):
            raise IndexError("a value outside the data")
        return self._is_plain(start, self.ends[index])

    def is_null(self, index: cython.int) -> cython.bint:
        """True if the value in the last object is null, or no valid JSON."""
        start: cython.longlong = self.starts[index]
        return 0 <= start < len(self.data) and self.data[start] == 110

    @cython.cfunc
    def text(self, index: cython.int) -> bytes:
        """The bytes of a text without escapes that the last object has; None for other values."""
        start: cython.longlong = self.starts[index]
        if not self.is_plain(index):
            return None
        return self.bytes_at(start + 1, self.ends[index] - start - 2)

    @cython.exceptval(-2)
    def digits(self, index: cython.int, path: tuple[Any, ...]) -> cython.Py_ssize_t:
        """The whole number at the end of a path inside a value; -1 for any other value."""
        start: cython.longlong = self.starts[index]
        end: cython.longlong = self.ends[index]
        if start < 0 or end > len(self.data):
            raise IndexError("a value outside the data")
        for step in path:
            start = self._step(start, end, step)
            if start < 0:
                return -1
        if path:
            end = self._value_end(start, end)
        if not 0 < end - start < 19:
            return -1
        number: cython.longlong = 0
        at: cython.longlong
        for at in range(start, end):
            if not 48 <= self.data[at] <= 57:
                return -1
            number = number * 10 + (self.data[at] - 48)
        return number

    @cython.ccall
    @cython.exceptval(-2)
    @cython.boundscheck(False)  # the range is checked
    def instant(self, index: cython.int) -> cython.Py_ssize_t:
        """Microseconds since 1970 of the last object's RFC 3339 text; -1 for another value."""
        start: cython.longlong = self.starts[index]
        size: cython.longlong = self.ends[index] - start
        if start < 0 or start + size > len(self.data) or (size != 27 and size != 34):
            return -1
        marks: cython.p_const_uchar = _INSTANT
        at: cython.longlong
        for at in range(size):
            mark: cython.int = marks[at + 7 if size == 27 and at > 19 else at]
            octet: cython.int = self.data[start + at]
            if octet != mark and (mark != 57 or octet < 48 or octet > 57):
                return -1
        year: cython.longlong = self._number(start + 1, 4)
        month: cython.longlong = self._number(start + 6, 2)
        day: cython.longlong = self._number(start + 9, 2)
        seconds: cython.longlong = self._number(start + 18, 2)
        minutes: cython.longlong = self._number(start + 15, 2)
        hours: cython.longlong = self._number(start + 12, 2)
        if not (1970 <= year < 2100 and 0 < month < 13 and 0 < day < 29):  # days of every month
            return -1
        if hours > 23 or minutes > 59 or seconds > 59:
            return -1
        # The civil date: years begin in March.
        year -= month < 3
        day += 365 * year + year // 4 - year // 100 + year // 400 - 719469
        day += (153 * ((month + 9) % 12) + 2) // 5
        seconds += (day * 24 + hours) * 3600 + minutes * 60
        return seconds * 1_000_000 + (self._number(start + 21, 6) if size == 34 else 0)

    @cython.exceptval(-2)
    @cython.boundscheck(False)  # `instant` checked the range
    def _number(self, at: cython.longlong, count: cython.int) -> cython.Py_ssize_t:
        """The number that some digits are."""
        number: cython.longlong = 0
        position: cython.longlong
        for position in range(at, at + count):
            number = number * 10 + (self.data[position] - 48)
        return number

    @cython.ccall
    def value(self, index: cython.int) -> Any:
        """Value of a name, by its index in `names`; None if the last object does not have it."""
        if not self.has(index):
            return None
        start: cython.longlong = self.starts[index]
        end: cython.longlong = self.ends[index]
        if start < 0 or end > len(self.data):
            raise IndexError("a value outside the data")
        if self.is_plain(index):
            return self.bytes_at(start + 1, end - start - 2).decode()
        return self._value_of(self.bytes_at(start, end - start))

    @cython.cfunc
    def _value_of(self, octets: bytes) -> Any:
        """The value that some bytes of JSON are; None if they are not JSON, and for null."""
        if octets == b"null":
            return None
        if octets.isdigit() and len(octets) < 19:
            return int(octets)
        text = octets.decode(errors="replace")
        try:
            value, end = read_json(text)
        except (ValueError, RecursionError):
            return None
        return value if end == len(text) else None

    @cython.ccall
    def along(self, index: cython.int, within: cython.int, path: tuple[Any, ...]) -> Any:
        """Value at the end of a path inside the value of a name; None if the path leads nowhere. A
        text in the middle of the path is read as JSON.

        Args:
            place: Index of the name in `names`.
            within: Index of the path's first step in the names of `inside`; -1: it is an index.
            path: The other steps, names (bytes) and indexes of lists.
        """
        if not self.has(index):
            return None
        if within < 0:
            return self._along(self.starts[index], self.ends[index], path)
        inner: ObjectNames = self.enter(index)
        if not path or not inner.has(within):
            return inner.value(within)
        return inner._along(inner.starts[within], inner.ends[within], path)

    @cython.cfunc
    def enter(self, index: cython.int) -> ObjectNames:
        """The names inside the value that the last object has of a name; see `along`."""
        inner: ObjectNames = self.inside[index]
        if inner.outer_round != self.round:
            inner.outer_round = self.round
            start: cython.longlong = self.starts[index]
            end: cython.longlong = self.ends[index]
            if self.data[start] == _QUOTE:
                start, end = 0, inner._open(self, start, end)
                inner.read(inner.octets.octets, start, end)
            else:
                inner.read(self.data, start, end)
        return inner

    @cython.exceptval(-2)
    def _open(
        self, outer: ObjectNames, start: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Take the text of another object, without its escapes, as the data; gives its size."""
        if self.octets is None:
            self.octets = Octets()
        self.octets.used = 0
        if not outer._unescape(start + 1, end - 1, self.octets):
            text = outer._value_of(outer.bytes_at(start, end - start)) or ""
            self.octets.used = 0
            self.octets.put_bytes(text.encode(errors="replace"))
        self.data = self.octets.octets
        return self.octets.used

    @cython.boundscheck(False)  # the range is checked, and there is room
    def _unescape(self, at: cython.longlong, end: cython.longlong, out: Octets) -> cython.bint:
        """Append a text without its escapes; false where one of them is no single character."""
        if at < 0 or end > len(self.data):
            raise IndexError("a text outside the data")
        if end > at:
            out.room(end - at)
        size: cython.longlong = out.used
        octet: cython.uchar
        count: cython.longlong
        escapes: cython.p_const_uchar = _ESCAPES
        while at < end:
            count = self._escape(at, end) - at
            if cython.compiled:
                source = cython.address(self.data[at])
                memcpy(cython.address(out.octets[size]), source, cython.cast(cython.size_t, count))
            else:
                out.storage[size : size + count] = self.data[at : at + count]
            size += count
            at += count + 1
            if at <= end:
                octet = escapes[self.data[at]] if at < end else 0
                if octet == 0:
                    return False
                out.octets[size] = octet
                size += 1
                at += 1
        out.used = size
        return True

    @cython.cfunc
    def _along(self, at: cython.longlong, end: cython.longlong, path: tuple[Any, ...]) -> Any:
        """Value at the end of a path within the value at `at`."""
        done: cython.Py_ssize_t = 0
        for step in path:
            at = self._blank(at, end)
            if at < end and self.data[at] == _QUOTE:
                break
            at = self._step(at, end, step)
            if at < 0:
                return None
            done += 1
        stop: cython.longlong = self._value_end(at, end)
        if stop < 0:
            return None
        if done == len(path):
            if self._is_plain(at, stop):
                return self.bytes_at(at + 1, stop - at - 2).decode()
            return self._value_of(self.bytes_at(at, stop - at))
        if self.nested is None:
            self.nested = ObjectNames((), 1)
        nested: ObjectNames = self.nested
        end = nested._open(self, at, stop)
        at = nested._blank(0, end)
        if at < end and nested.data[at] == _QUOTE:
            return None  # a text in a text has no names
        return nested._along(at, end, path[done:])

    @cython.exceptval(-2)
    def _step(self, at: cython.longlong, end: cython.longlong, step: Any) -> cython.Py_ssize_t:
        """Position of a step's member or item in the value at `at`; negative without it."""
        if isinstance(step, bytes):
            return self._member(at, end, step)
        return self._item(at, end, step)

    @cython.exceptval(-2)
    def _member(self, at: cython.longlong, end: cython.longlong, name: bytes) -> cython.Py_ssize_t:
        """Position of the value of a name in the object at `at`; negative without it."""
        if at >= end or self.data[at] != 123:
            return -1
        at = self._blank(at + 1, end)
        while at < end and self.data[at] == _QUOTE:
            start: cython.longlong = at
            at = self._text_end(at, end)
            if at < 0:
                return -1
            is_found = at - start - 2 == len(name) and self.bytes_at(start + 1, len(name)) == name
            at = self._blank(at, end)
            if at >= end or self.data[at] != 58:
                return -1
            at = self._blank(at + 1, end)
            if is_found:
                return at
            at = self._next(at, end)
            if at < 0:
                return -1
        return -1

    @cython.exceptval(-2)
    def _item(
        self, at: cython.longlong, end: cython.longlong, index: cython.longlong
    ) -> cython.Py_ssize_t:
        """Position of an item of the list at `at`; negative without it."""
        if at >= end or self.data[at] != 91:
            return -1
        first: cython.longlong = self._blank(at + 1, end)
        count: cython.longlong = 0
        at = first
        while index < 0 and 0 <= at < end and self.data[at] != 93:
            at = self._next(at, end)
            count += 1
        if index < 0:
            index += count
            at = first
        while index > 0 and 0 <= at < end:
            at = self._next(at, end)
            index -= 1
        return at if index == 0 and 0 <= at < end and self.data[at] != 93 else -1

    @cython.exceptval(-2)
    def _next(self, at: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """Position after a value in an object or a list; negative if the value is cut."""
        stop: cython.longlong = self._value_end(at, end)
        if stop <= at:
            return -1
        stop = self._blank(stop, end)
        return self._blank(stop + 1, end) if stop < end and self.data[stop] == 44 else stop

    @cython.exceptval(-2)
    @cython.boundscheck(False)  # `read` checked the range
    def _index_of(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Index in `names` of the name at `at`..`end`; -1 if it is not among them."""
        size: cython.longlong = end - at
        has_size: cython.ulonglong = self.sizes[self.data[at]] >> min(size, _MAX_SIZE)
        if not has_size & 1 and (size == 0 or self._escape(at, end) == end):
            return -1
        digest: cython.ulonglong = _OFFSET
        octet: cython.uchar
        while at < end:
            octet = self.data[at]
            if octet == _BACKSLASH and at + 1 < end:
                at += 1
                octet = self.data[at]
            digest = ((digest ^ octet) * _PRIME) & _MASK64
            at += 1
        mask: cython.longlong = len(self.slots) - 1
        slot: cython.longlong = cython.cast(cython.longlong, digest & _MASK64) & mask
        index: cython.int = self.slots[slot]
        while index >= 0 and self.hashes[index] != digest:
            slot = (slot + 1) & mask
            index = self.slots[slot]
        return index

    @cython.ccall
    @cython.exceptval(-1)
    def read(
        self,
        data: cython.const[cython.uchar][::1],
        at: cython.longlong,
        end: cython.longlong,
        requested: bytes | None = None,
    ) -> cython.int:
        """Go through the object at `at`; without an object no name is found. The data must not
        change while values are read.

        `requested` has a 1 for each requested name: the pass ends once all of them were found. None
        requests all names.
        """
        self.forget()
        self.data = data
        if at < 0 or end > len(data):
            raise IndexError("an object outside the data")
        size: cython.longlong = end - at
        if size < 2 or size > _MAX_LAYOUT:
            self._read(at, end, requested, None)
            return 0
        slot: cython.longlong = size & (len(self.layouts) - 1)
        layout: Layout = self.layouts[slot]
        if layout is None:
            layout = self.layouts[slot] = Layout()
        if (
            layout.octets is not None
            and layout.size == size
            and layout.requested is requested
            and self._is_like(layout, at)
        ):
            if layout.luck < _PATIENCE:
                layout.luck += 1
            return self._recall(layout, at)
        if not layout.is_to_learn(size, requested):
            self._read(at, end, requested, None)
            return 0
        marks = bytearray([_SAME]) * size
        stop: cython.longlong = self._read(at, end, requested, marks)
        return self._learn(layout, at, min(stop + 1, end), bytes(marks))

    @cython.boundscheck(False)  # `read` checked the range: a layout is not longer than its size
    def _is_like(self, layout: Layout, at: cython.longlong) -> cython.bint:
        """True if the text at `at` differs from that of a layout only where it may."""
        expected: cython.p_const_uchar = layout.octets
        marks: cython.p_const_uchar = layout.marks
        odd: cython.uchar = 0
        octet: cython.uchar
        position: cython.longlong
        for position in range(len(layout.octets)):  # one wide loop instead of tests
            octet = self.data[at + position]
            ends: cython.uchar = (octet == 34) | (octet == 92)
            odd |= ((octet ^ expected[position]) & marks[position]) | (
                (marks[position] ^ 255) & -ends
            )
        return odd == 0

    @cython.boundscheck(False)  # places are those of `_learn`
    def _recall(self, layout: Layout, at: cython.longlong) -> cython.int:
        """Take the positions of a text that fits a layout."""
        self.shape = layout.shape
        index: cython.longlong
        i: cython.longlong
        for i in range(len(layout.indices)):
            index = layout.indices[i]
            self.rounds[index] = self.round
            self.starts[index] = at + layout.starts[i]
            self.ends[index] = at + layout.ends[i]
        return 0

    def _learn(
        self, layout: Layout, at: cython.longlong, end: cython.longlong, marks: bytes
    ) -> cython.int:
        """Keep the positions found in `at`..`end` of a text as a layout."""
        indices = [index for index in range(len(self.names)) if self.rounds[index] == self.round]
        layout.octets, layout.marks = self.bytes_at(at, end - at), marks
        layout.shape = self.shape
        layout.indices = array("q", indices)
        layout.starts = array("q", [self.starts[index] - at for index in indices])
        layout.ends = array("q", [self.ends[index] - at for index in indices])
        return 0

    @cython.boundscheck(False)  # `read` checked the range, `marks` is as long
    def _loosen(
        self, marks: bytearray, base: cython.longlong, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Mark the bits that may differ in the value at `at`; `base`: where the marks begin."""
        octet: cython.uchar = self.data[at]
        texts: cython.bint = octet == _QUOTE or octet == 123 or octet == 91
        inside: cython.bint = False
        while at < end:
            octet = self.data[at]
            if octet == _QUOTE:
                inside = texts and not inside
            elif octet == _BACKSLASH and inside:
                at += 1
            elif inside:
                marks[at - base] = 0
            elif 48 <= octet <= 57:
                marks[at - base] = _DIGIT
            at += 1
        return 0

    @cython.exceptval(-2)
    def _read(
        self,
        at: cython.longlong,
        end: cython.longlong,
        requested: bytes | None,
        marks: bytearray | None,
    ) -> cython.Py_ssize_t:
        """Read an object; returns the position of its end. `marks` are for a layout, or None."""
        data = self.data
        base: cython.longlong = at
        remaining: cython.Py_ssize_t = 0 if requested is None else requested.count(1)
        at = self._blank(at, end)
        if at >= end or data[at] != 123:
            return at
        at = self._blank(at + 1, end)
        start: cython.longlong
        name: cython.longlong
        index: cython.int
        while at < end and data[at] == _QUOTE:
            name = at + 1
            at = self._text_end(at, end)
            if at < 0:
                return end
            index = self._index_of(name, at - 1)
            at = self._blank(at, end)
            if at >= end or data[at] != 58:
                return end
            start = at = self._blank(at + 1, end)
            at = self._value_end(at, end)
            if at < 0:
                return end
            if marks is not None:
                self._loosen(marks, base, start, at)
            if index >= 0:
                if self.rounds[index] != self.round:
                    if requested is not None and requested[index]:
                        remaining -= 1
                    self.shape = (self.shape + self.hashes[index] * _PRIME) & _MASK64
                self.rounds[index] = self.round
                self.starts[index] = start
                self.ends[index] = at
                if requested is not None and remaining == 0:
                    return at
            at = self._blank(at, end)
            if at >= end or data[at] != 44:
                return end
            at = self._blank(at + 1, end)
        return end

    @cython.exceptval(-2)
    @cython.boundscheck(False)  # `read` checked the range
    def _blank(self, at: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """The place of the next byte that is not white space."""
        octet: cython.uchar
        while at < end:
            octet = self.data[at]
            if octet > 32 or (octet != 32 and octet != 10 and octet != 13 and octet != 9):
                break
            at += 1
        return at

    @cython.exceptval(-2)
    @cython.boundscheck(False)  # `read` checked the range
    def _value_end(self, at: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """The end of a value; negative if that is not in the data."""
        if at >= end:
            return -1
        octet: cython.uchar = self.data[at]
        if octet == _QUOTE:
            return self._text_end(at, end)
        if octet == 123 or octet == 91:
            depth: cython.longlong = 0
            while at < end:
                octet = self.data[at]
                if octet == _QUOTE:
                    at = self._text_end(at, end)
                    if at < 0:
                        return -1
                    continue
                at += 1
                if octet == 123 or octet == 91:
                    depth += 1
                elif octet == 125 or octet == 93:
                    depth -= 1
                    if depth == 0:
                        return at
            return -1
        while at < end:
            octet = self.data[at]
            if octet == 125 or octet == 93 or (octet < 45 and (octet == 44 or octet <= 32)):
                return at
            at += 1
        return -1

    @cython.exceptval(-2)
    @cython.boundscheck(False)  # `read` checked the range
    def _text_end(self, at: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """The end of a text whose quote is at `at`."""
        at += 1
        if cython.compiled:
            first: cython.longlong = at
            back: cython.longlong
            while at < end:
                source = cython.cast(cython.p_char, cython.address(self.data[at]))
                quote = cython.cast(cython.p_char, memchr(source, _QUOTE, end - at))
                if quote == cython.NULL:
                    return -1
                back = at + (quote - source) - 1
                at = back + 2
                while back >= first and self.data[back] == _BACKSLASH:
                    back -= 1
                if (at - back) & 1 == 0:  # a backslash before it would be one too many
                    return at
            return -1
        while at < end:
            if self.data[at] == _QUOTE:
                return at + 1
            at += 2 if self.data[at] == _BACKSLASH else 1
        return -1

    @cython.exceptval(-2)
    @cython.boundscheck(False)  # the range was checked
    def _escape(self, at: cython.longlong, end: cython.longlong) -> cython.Py_ssize_t:
        """The place of the next backslash of a text that is not empty, or its end."""
        if cython.compiled:
            first = cython.cast(cython.p_char, cython.address(self.data[at]))
            backslash = cython.cast(cython.p_char, memchr(first, _BACKSLASH, end - at))
            return end if backslash == cython.NULL else at + (backslash - first)
        while at < end and self.data[at] != _BACKSLASH:
            at += 1
        return at

    @cython.boundscheck(False)  # `read` checked the range
    def _is_plain(self, at: cython.longlong, end: cython.longlong) -> cython.bint:
        """True if a value is a text of ASCII that has no backslash and no control character."""
        if self.data[at] != _QUOTE:
            return False
        odd: cython.uchar = 0
        octet: cython.uchar
        position: cython.longlong
        for position in range(at + 1, end - 1):  # one wide loop instead of tests
            octet = self.data[position]
            odd |= (octet < 32) | (octet > 126) | (octet == 92)
        return odd == 0
