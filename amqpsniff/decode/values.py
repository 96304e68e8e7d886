# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""AMQP values: from octets on the wire straight to JSON text.

`ValueReader` reads one value at a position of its `data` and appends its JSON to a text column; no
Python object is made for it.

Invariants: nothing is read at or past `end` of the window given; what was written is whole JSON
even when the octets run out inside a table (containers close themselves); nesting is bounded. A
method answers `OK`, `CUT` (the octets ran out, nothing usable written: the caller takes the text
back to its mark) or `PARTIAL` (they ran out inside a container; what is there is whole JSON). What
is odd about a value is a bit of `oddities`, the caller's to report.

Field-value tags are read by one of three readings (`spec.field_tags`): what RabbitMQ and the Qpid
family write, the grammar of 0-9-1, or py-amqp's.
"""

import cython
from cython.cimports.amqpsniff.columns import Texts
from cython.cimports.amqpsniff.decode.json_text import JsonWriter

from amqpsniff.decode.oddities import (
    DUPLICATE_NAME,
    MALFORMED_TABLE,
    NOT_UTF8,
    TOO_DEEP,
    UNKNOWN_TAG,
    UNUSUAL_TAG,
)
from amqpsniff.spec import READINGS, field_tags, unusual_tags

MAX_TABLE_DEPTH = 32
"""Nesting kept as JSON: as deep as the Java client reads; deeper ones are a stack attack."""

# answers
OK = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
PARTIAL = cython.declare(cython.int, 2)

_MAX_DEPTH = cython.declare(cython.int, MAX_TABLE_DEPTH)
_SIGN32 = cython.declare(cython.longlong, 1 << 31)
_RANGE32 = cython.declare(cython.longlong, 1 << 32)

# kinds of field values: places in spec.FIELD_TYPES
_BOOL = cython.declare(cython.int, 1)
_INT8 = cython.declare(cython.int, 2)
_UINT8 = cython.declare(cython.int, 3)
_INT16 = cython.declare(cython.int, 4)
_UINT16 = cython.declare(cython.int, 5)
_INT32 = cython.declare(cython.int, 6)
_UINT32 = cython.declare(cython.int, 7)
_INT64 = cython.declare(cython.int, 8)
_UINT64 = cython.declare(cython.int, 9)
_FLOAT = cython.declare(cython.int, 10)
_DOUBLE = cython.declare(cython.int, 11)
_DECIMAL = cython.declare(cython.int, 12)
_SHORTSTR = cython.declare(cython.int, 13)
_LONGSTR = cython.declare(cython.int, 14)
_ARRAY = cython.declare(cython.int, 15)
_TIMESTAMP = cython.declare(cython.int, 16)
_TABLE = cython.declare(cython.int, 17)
_VOID = cython.declare(cython.int, 18)
_OCTETS = cython.declare(cython.int, 19)
_UNUSUAL = cython.declare(cython.int, 0x80)
_WIDTHS = bytes((0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 5, 1, 4, 4, 8, 4, 0, 4))
"""Octets a value of each kind takes at least."""


def _tag_kinds(reading: str) -> bytes:
    """256 octets: the kind of each tag in a reading, with `_UNUSUAL` set on odd ones."""
    pairs = zip(field_tags(reading), unusual_tags(reading), strict=True)
    return bytes(kind | (_UNUSUAL if unusual else 0) for kind, unusual in pairs)


_KINDS = {reading: _tag_kinds(reading) for reading in READINGS}


class ValueReader(JsonWriter):
    """Reads values of `data` and writes them as JSON to `out`.

    Args:
        out: The text column whose last row is being written.
        reading: Name of the reading of field-value tags.
    """

    def __init__(self, out, reading="rabbitmq"):
        JsonWriter.__init__(self, out)
        self.kinds = _KINDS[reading]
        self.widths = _WIDTHS
        self.next = self.strange_tag = 0

    # typed values of method arguments and properties: each checks the window first

    def put_octet(self, at, end):
        """Write an octet."""
        if at + 1 > end:
            return CUT
        return self._digits(self.data[at])

    def put_short(self, at, end):
        """Write a short."""
        if at + 2 > end:
            return CUT
        return self._digits(self.u16(at))

    def put_long(self, at, end):
        """Write a long."""
        if at + 4 > end:
            return CUT
        return self._digits(self.u32(at))

    def put_longlong(self, at, end):
        """Write a longlong, which is unsigned."""
        if at + 8 > end:
            return CUT
        return self._unsigned(at)

    def put_timestamp(self, at, end):
        """Write a timestamp."""
        if at + 8 > end:
            return CUT
        return self._timestamp(at)

    def put_shortstr(self, at, end):
        """Write a short string."""
        if at + 1 > end or at + 1 + self.data[at] > end:
            return CUT
        used: cython.longlong = self.out.used
        self.put_text(at + 1, self.data[at])
        if self.out.octets[used] == 123:
            self.oddities |= NOT_UTF8
        return OK

    def put_longstr(self, at, end):
        """Write a long string: any octets."""
        if at + 4 > end or at + 4 + self.u32(at) > end:
            return CUT
        return self.put_text(at + 4, self.u32(at))

    def put_table(self, at, end, depth=0):
        """Write a field table as an object."""
        if at + 4 > end:
            return CUT
        size: cython.longlong = self.u32(at)
        limit: cython.longlong = at + 4 + size
        if depth >= _MAX_DEPTH:
            self.oddities |= TOO_DEEP
            return CUT if limit > end else self._octets(at + 4, size)
        cut: cython.bint = limit > end
        self.out.put_octet(123)
        answer: cython.int = self._pairs(at + 4, end if cut else limit, cut, depth)
        self.out.put_octet(125)
        return answer

    def _pairs(self, at, limit, cut, depth):
        """Write name/value pairs up to `limit`; `cut` says that the table goes on past it."""
        out: Texts = self.out
        first: cython.bint = True
        mark: cython.longlong
        answer: cython.int
        length: cython.longlong
        count: cython.int = 0
        seen: cython.longlong = 0
        bit: cython.int
        names: cython.longlong = at
        while at < limit:
            mark = out.used
            length = self.data[at]
            if at + 2 + length > limit:
                break
            if not first:
                out.put_octet(44)
            first = False
            self._name(at, length)
            bit = (length + 3 * self.data[at + 1] + 5 * self.data[at + length]) & 31
            if (seen >> bit) & 1 and count < 64 and self._repeated(names, at, length):
                self.oddities |= DUPLICATE_NAME
            seen |= cython.cast(cython.longlong, 1) << bit
            count += 1
            out.put_octet(58)
            answer = self._tagged(at + 1 + length, limit, cut, depth)
            if answer != OK:
                if answer == CUT:
                    out.used = mark
                    break
                return PARTIAL
            at = self.next
        if at < limit:
            if not cut:
                self.oddities |= MALFORMED_TABLE
                return OK
            return PARTIAL
        return PARTIAL if cut else OK

    def _name(self, at, length):
        """Write a field name as a JSON string; octets that are not UTF-8 as U+FFFD."""
        out: Texts = self.out
        mark: cython.longlong = out.used
        self.put_text(at + 1, length)
        if out.octets[mark] == 123:
            out.used = mark
            self.oddities |= NOT_UTF8
            name: str = bytes(self.data[at + 1 : at + 1 + length]).decode(errors="replace")
            escaped = "".join(f"\\u{ord(c):04x}" if c < " " or c in '"\\' else c for c in name)
            out.put_bytes(b'"' + escaped.encode() + b'"')
        return 0

    def _repeated(self, at, until, length):
        """Whether a name of this table between `at` and `until` equals the one at `until`."""
        i: cython.longlong
        while at < until:
            if self.data[at] == length:
                i = 1
                while i <= length and self.data[at + i] == self.data[until + i]:
                    i += 1
                if i > length:
                    return True
            at = self._skip(at + 1 + self.data[at], until)
            if at < 0:
                return False
        return False

    def _skip(self, at, limit):
        """Position after the tagged value at `at`; -1 when it cannot be told."""
        kind: cython.int = self.kinds[self.data[at]] & 0x7F
        if kind == 0 or at + 1 + self.widths[kind] > limit:
            return -1
        if kind == _SHORTSTR:
            return at + 2 + self.data[at + 1]
        if kind in (_LONGSTR, _OCTETS, _TABLE, _ARRAY):
            return at + 5 + self.u32(at + 1)
        return at + 1 + self.widths[kind]

    def _tagged(self, at, limit, cut, depth):
        """Write the value whose tag is at `at`; `next` is then the position after it."""
        tag: cython.int = self.data[at]
        kind: cython.int = self.kinds[tag]
        if kind & _UNUSUAL:
            self.oddities |= UNUSUAL_TAG
            self.strange_tag = tag
            kind &= 0x7F
        start: cython.longlong = at + 1
        if kind == 0:
            return self._unread(at, limit)
        if start + self.widths[kind] > limit:
            return CUT
        self.next = start + self.widths[kind]
        if kind in (_TABLE, _ARRAY):
            return self._container(kind, start, limit, cut, depth)
        if kind in (_LONGSTR, _OCTETS):
            self.next += self.u32(start)
            return CUT if self.next > limit else self.put_text(start + 4, self.u32(start))
        if kind == _SHORTSTR:
            self.next += self.data[start]
            return CUT if self.next > limit else self.put_text(start + 1, self.data[start])
        return self._scalar(kind, start)

    def _container(self, kind, start, limit, cut, depth):
        """Write a nested table or array."""
        end: cython.longlong = start + 4 + self.u32(start)
        if end > limit and not cut:
            return CUT
        self_next: cython.longlong = end
        if kind == _TABLE:
            answer: cython.int = self.put_table(start, limit, depth + 1)
        else:
            answer = self._array(start, limit, cut, depth + 1)
        self.next = self_next
        return answer

    def _array(self, at, limit, cut, depth):
        """Write a field array; its length counts octets, not items."""
        size: cython.longlong = self.u32(at)
        end: cython.longlong = at + 4 + size
        if depth >= _MAX_DEPTH:
            self.oddities |= TOO_DEEP
            return CUT if end > limit else self._octets(at + 4, size)
        if end > limit:
            end = limit
        else:
            cut = False
        out: Texts = self.out
        out.put_octet(91)
        at += 4
        first: cython.bint = True
        answer: cython.int = OK
        mark: cython.longlong
        while at < end and answer == OK:
            mark = out.used
            if not first:
                out.put_octet(44)
            first = False
            answer = self._tagged(at, end, cut, depth)
            if answer == CUT:
                out.used = mark
                break
            at = self.next
        out.put_octet(93)
        if answer == CUT and not cut:
            self.oddities |= MALFORMED_TABLE
            return OK
        return PARTIAL if cut or answer == PARTIAL else OK

    def _unread(self, at, limit):
        """Write a value whose tag is unknown: the tag and the rest of its container, raw."""
        self.oddities |= UNKNOWN_TAG
        self.strange_tag = self.data[at]
        out: Texts = self.out
        out.put_bytes(b'{"tag":')
        self._digits(self.data[at])
        out.put_bytes(b',"base64":"')
        self._base64(at + 1, limit - at - 1)
        out.put_bytes(b'"}')
        self.next = limit
        return OK

    def _scalar(self, kind, at):
        """Write a value of fixed width."""
        if kind == _BOOL:
            return self.out.put_bool(self.data[at] != 0)
        if kind == _VOID:
            return self.out.put_bytes(b"null")
        if kind == _UINT8:
            return self._digits(self.data[at])
        if kind == _INT8:
            return self._digits(self.data[at] - (256 if self.data[at] > 127 else 0))
        if kind == _UINT16:
            return self._digits(self.u16(at))
        if kind == _INT16:
            return self._digits(self.u16(at) - (65536 if self.u16(at) > 32767 else 0))
        if kind == _UINT32:
            return self._digits(self.u32(at))
        if kind == _INT32:
            return self._digits(self.u32(at) - (_RANGE32 if self.u32(at) >= _SIGN32 else 0))
        if kind == _INT64:
            return self._digits(self.i64(at))
        if kind == _UINT64:
            return self._unsigned(at)
        if kind == _TIMESTAMP:
            return self._timestamp(at)
        if kind == _DECIMAL:
            return self._decimal(at)
        return self._float(at, 4 if kind == _FLOAT else 8)
