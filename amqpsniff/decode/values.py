# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""AMQP values: from bytes on the wire straight to JSON text.

`ValueReader` reads one value at a position of its `data` and appends its JSON to a text column; no
Python object is made for it. The forms are those of the table contract: text that is not UTF-8 as
`{"base64": "…"}`, timestamps as RFC 3339 strings, decimals with their digits.

Invariants: nothing is read at or past `end` of the window given; what was written is whole JSON
even when the bytes run out inside a table (containers close themselves); nesting is bounded. A
method answers `OK`, `CUT` (the bytes ran out, nothing usable written: the caller takes the text
back to its mark) or `PARTIAL` (they ran out inside a container; what is there is whole JSON). An
oddity of a value is a bit of `oddities`; the caller, who has packet and channel, reports it as a
finding.

Field-value tags are read by one of three readings (`spec.field_tags`): what RabbitMQ and the Qpid
family write, the grammar of 0-9-1, or py-amqp's.

Bytes repeat: a publisher sends to the same few exchanges and routing keys with the same headers,
and clients of one kind send the same handshake. A `Cache` keeps bytes that were read without
oddities, and the result. It holds a fixed number of entries, is emptied when it is full, and skips
lookups for a while after most were misses.
"""

from __future__ import annotations

import struct

import cython
from cython.cimports.amqpsniff.columns import Octets, Texts, Vocabulary
from cython.cimports.amqpsniff.decode.octets import ByteReader
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.octets import NOT_UTF8
from amqpsniff.spec import READINGS, field_tags, unusual_tags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MAX_TABLE_DEPTH = 32
"""Nesting kept as JSON: as deep as the Java client reads; deeper ones are a stack attack."""

MAX_FLOATS = 1024
"""Floats whose text is remembered: making it costs more than all else about a float, and headers
repeat theirs."""

MILLISECONDS_FROM = 10**12
"""A timestamp of this value or more is in milliseconds (10^12 s would be the year 33658)."""

LAST_SECOND = 253402300799
"""9999-12-31T23:59:59Z, the last that RFC 3339 can write."""

MAX_CACHED = 2048
"""Distinct methods, and distinct field tables, in a cache: what a busy broker's connections send
at one time. Each entry takes some 300 bytes beside its own."""

MAX_CACHED_BYTES = 1024
"""Longest method or field table that is cached: longer ones seldom come twice."""

TRIAL_LOOKUPS = 2048
"""Lookups after which a cache checks if they are worth it."""

SKIPPED_LOOKUPS = 16 * TRIAL_LOOKUPS
"""Lookups that are skipped if they are not: the time lost is then below a tenth."""

# oddities, one bit each
UNKNOWN_TAG = 2
UNUSUAL_TAG = 4
MALFORMED_TABLE = 8
TOO_DEEP = 16
DUPLICATE_NAME = 32
MILLISECONDS = 64
OUT_OF_RANGE = 128

ODDITY_CODES = (
    (NOT_UTF8, "text-not-utf8"),
    (UNKNOWN_TAG, "field-tag-unknown"),
    (UNUSUAL_TAG, "field-tag-unusual"),
    (MALFORMED_TABLE, "field-table-malformed"),
    (TOO_DEEP, "field-table-too-deep"),
    (DUPLICATE_NAME, "field-name-duplicate"),
    (MILLISECONDS, "timestamp-milliseconds"),
    (OUT_OF_RANGE, "number-out-of-range"),
)
"""Which finding each bit of `oddities` stands for."""

_OF_TAGS = ("field-tag-unknown", "field-tag-unusual")

# answers
OK = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
PARTIAL = cython.declare(cython.int, 2)

_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
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
_BYTES = cython.declare(cython.int, 19)
_UNUSUAL = cython.declare(cython.int, 0x80)
_WIDTHS = bytes((0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 5, 1, 4, 4, 8, 4, 0, 4))
"""Bytes a value of each kind takes at least."""

_MILLISECONDS_FROM = cython.declare(cython.longlong, MILLISECONDS_FROM)
_LAST_SECOND = cython.declare(cython.longlong, LAST_SECOND)
_MAX = cython.declare(cython.int, MAX_CACHED)
_LONGEST = cython.declare(cython.longlong, MAX_CACHED_BYTES)
_TRIAL = cython.declare(cython.int, TRIAL_LOOKUPS)
_SKIPPED = cython.declare(cython.int, SKIPPED_LOOKUPS)
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_HEX = b"0123456789abcdef"


def oddity_text(code: str, where: str, tag: int) -> str:
    """The text about an oddity: its place, and the tag for an unusual tag."""
    if code not in _OF_TAGS:
        return where
    letter = f" ('{chr(tag)}')" if 32 < tag < 127 else ""
    return f"tag {tag:#04x}{letter} in the {where}"


def oddity_codes(oddities: int) -> list[str]:
    """The finding codes of the bits that are set."""
    return [code for bit, code in ODDITY_CODES if oddities & bit]


def _float_text(bits: int, width: int) -> bytes:
    """JSON of a float of 4 or 8 bytes, given as an integer."""
    octets = struct.pack(">I", bits) if width == 4 else struct.pack(">q", bits)
    (value,) = struct.unpack(">f" if width == 4 else ">d", octets)
    if value != value:
        return b'"NaN"'
    if value in (float("inf"), float("-inf")):
        return b'"Infinity"' if value > 0 else b'"-Infinity"'
    return repr(value).encode()


def _tag_kinds(reading: str) -> bytes:
    """256 octets: the kind of each tag in a reading, with `_UNUSUAL` set on odd ones."""
    pairs = zip(field_tags(reading), unusual_tags(reading), strict=True)
    return bytes(kind | (_UNUSUAL if unusual else 0) for kind, unusual in pairs)


_KINDS = {reading: _tag_kinds(reading) for reading in READINGS}


@cython.cclass
class ValueReader(ByteReader):
    """Reads values of `data` and writes them as JSON to `out`.

    Args:
        out: The text column whose last row is being written.
        reading: Name of the reading of field-value tags.
    """

    plain: cython.bint
    next: cython.longlong
    strange_tag: cython.int

    out: Texts
    base64: cython.const[cython.uchar][::1]
    floats: dict[Any, Any]
    doubles: dict[Any, Any]
    kinds: cython.const[cython.uchar][::1]
    widths: cython.const[cython.uchar][::1]

    def __init__(self, out: Any, reading: Any = "rabbitmq") -> None:
        ByteReader.__init__(self)
        self.out = out
        self.base64 = _BASE64
        self.plain = True
        self.floats = {}
        self.doubles = {}
        self.kinds = _KINDS[reading]
        self.widths = _WIDTHS
        self.next = self.strange_tag = 0

    @cython.cfunc
    def over(self, octets: bytes) -> ValueReader:
        """A reader of other bytes that writes to the same column."""
        other: ValueReader = type(self).__new__(type(self))
        other.out = self.out
        other.base64 = self.base64
        other.floats = self.floats
        other.doubles = self.doubles
        other.kinds = self.kinds
        other.widths = self.widths
        other.strange_tag = 0
        other.read_from(octets)
        return other

    # typed values of method arguments and properties: each checks the window first

    def put_byte(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a byte."""
        if at + 1 > end:
            return CUT
        return self._digits(self.data[at])

    def put_short(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a short."""
        if at + 2 > end:
            return CUT
        return self._digits(self.u16(at))

    def put_long(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a long."""
        if at + 4 > end:
            return CUT
        return self._digits(self.u32(at))

    def put_longlong(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a longlong, which is unsigned."""
        if at + 8 > end:
            return CUT
        return self._unsigned(at)

    def put_timestamp(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a timestamp."""
        if at + 8 > end:
            return CUT
        return self._timestamp(at)

    def put_shortstr(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a short string."""
        if at + 1 > end or at + 1 + self.data[at] > end:
            return CUT
        used: cython.longlong = self.out.used
        self.put_text(at + 1, self.data[at])
        if self.out.octets[used] == 123:
            self.oddities |= NOT_UTF8
        return OK

    def put_longstr(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Write a long string: any bytes."""
        if at + 4 > end or at + 4 + self.u32(at) > end:
            return CUT
        return self.put_text(at + 4, self.u32(at))

    def put_table(
        self, at: cython.longlong, end: cython.longlong, depth: cython.int = 0
    ) -> cython.int:
        """Write a field table as an object."""
        if at + 4 > end:
            return CUT
        size: cython.longlong = self.u32(at)
        limit: cython.longlong = at + 4 + size
        if depth >= _MAX_DEPTH:
            self.oddities |= TOO_DEEP
            return CUT if limit > end else self._bytes(at + 4, size)
        cut: cython.bint = limit > end
        self.out.put_byte(123)
        answer: cython.int = self._pairs(at + 4, end if cut else limit, cut, depth)
        self.out.put_byte(125)
        return answer

    def _pairs(
        self, at: cython.longlong, limit: cython.longlong, cut: cython.bint, depth: cython.int
    ) -> cython.int:
        """Write name/value pairs up to `limit`; `cut`: the table continues beyond it."""
        out: Texts = self.out
        first: cython.bint = True
        mark: cython.longlong
        answer: cython.int
        length: cython.longlong
        count: cython.int = 0
        seen_bits: cython.longlong = 0
        bit: cython.int
        names: cython.longlong = at
        while at < limit:
            mark = out.used
            length = self.data[at]
            if at + 2 + length > limit:
                break
            if not first:
                out.put_byte(44)
            first = False
            self._name(at, length)
            bit = (length + 3 * self.data[at + 1] + 5 * self.data[at + length]) & 31
            if (seen_bits >> bit) & 1 and count < 64 and self._repeated(names, at, length):
                self.oddities |= DUPLICATE_NAME
            seen_bits |= cython.cast(cython.longlong, 1) << bit
            count += 1
            out.put_byte(58)
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

    def _name(self, at: cython.longlong, length: cython.longlong) -> cython.int:
        """Write a field name as a JSON string; bytes that are not UTF-8 as U+FFFD."""
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

    def _repeated(
        self, at: cython.longlong, until: cython.longlong, length: cython.longlong
    ) -> cython.bint:
        """True if a name of this table between `at` and `until` equals the one at `until`."""
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

    @cython.exceptval(-2)
    def _skip(self, at: cython.longlong, limit: cython.longlong) -> cython.longlong:
        """Position after the tagged value at `at`; -1 if unknown."""
        kind: cython.int = self.kinds[self.data[at]] & 0x7F
        if kind == 0 or at + 1 + self.widths[kind] > limit:
            return -1
        if kind == _SHORTSTR:
            return at + 2 + self.data[at + 1]
        if kind in (_LONGSTR, _BYTES, _TABLE, _ARRAY):
            return at + 5 + self.u32(at + 1)
        return at + 1 + self.widths[kind]

    @cython.exceptval(1)
    def table_mark(
        self, seed: cython.ulonglong, at: cython.longlong, end: cython.longlong
    ) -> cython.ulonglong:
        """A hash of the entries of a field table in any order: RabbitMQ 4.3 sorts headers by name.

        `BCC` does not count, because a broker removes it. If the entries cannot be read, it is the
        hash of the bytes.
        """
        start: cython.longlong = at
        limit: cython.longlong = at + 4 + self.u32(at)
        total: cython.ulonglong = 0
        name: cython.longlong
        length: cython.longlong
        at += 4
        while at < limit <= end:
            name = at + 1
            length = self.data[at]
            if name + length >= limit:
                break
            at = self._skip(name + length, limit)
            if not name < at <= limit:
                break
            if length != 3 or self.data[name] != 0x42 or self.bytes_at(name, 3) != b"BCC":
                total += self.hash_with(seed, name - 1, at - name + 1)
        if at != limit:
            return self.hash_with(seed, start, end - start)
        return total & _MASK64

    def _tagged(
        self, at: cython.longlong, limit: cython.longlong, cut: cython.bint, depth: cython.int
    ) -> cython.int:
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
        if kind in (_LONGSTR, _BYTES):
            self.next += self.u32(start)
            return CUT if self.next > limit else self.put_text(start + 4, self.u32(start))
        if kind == _SHORTSTR:
            self.next += self.data[start]
            return CUT if self.next > limit else self.put_text(start + 1, self.data[start])
        return self._scalar(kind, start)

    def _container(
        self,
        kind: cython.int,
        start: cython.longlong,
        limit: cython.longlong,
        cut: cython.bint,
        depth: cython.int,
    ) -> cython.int:
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

    def _array(
        self, at: cython.longlong, limit: cython.longlong, cut: cython.bint, depth: cython.int
    ) -> cython.int:
        """Write a field array; its length counts bytes, not items."""
        size: cython.longlong = self.u32(at)
        end: cython.longlong = at + 4 + size
        if depth >= _MAX_DEPTH:
            self.oddities |= TOO_DEEP
            return CUT if end > limit else self._bytes(at + 4, size)
        if end > limit:
            end = limit
        else:
            cut = False
        out: Texts = self.out
        out.put_byte(91)
        at += 4
        first: cython.bint = True
        answer: cython.int = OK
        mark: cython.longlong
        while at < end and answer == OK:
            mark = out.used
            if not first:
                out.put_byte(44)
            first = False
            answer = self._tagged(at, end, cut, depth)
            if answer == CUT:
                out.used = mark
                break
            at = self.next
        out.put_byte(93)
        if answer == CUT and not cut:
            self.oddities |= MALFORMED_TABLE
            return OK
        return PARTIAL if cut or answer == PARTIAL else OK

    def _unread(self, at: cython.longlong, limit: cython.longlong) -> cython.int:
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

    def _scalar(self, kind: cython.int, at: cython.longlong) -> cython.int:
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

    # JSON of a value whose bytes are complete

    def _digits(self, number: cython.longlong) -> cython.int:
        """Write a signed 64-bit integer."""
        out: Texts = self.out
        out.room(20)
        if number < 0:
            if number == NULL:
                return out.put_bytes(b"-9223372036854775808")
            out.octets[out.used] = 45
            out.used += 1
            number = -number
        width: cython.int = 1
        quotient: cython.longlong = number
        while quotient >= 10_000:
            quotient //= 10_000
            width += 4
        if quotient >= 10:
            width += 1 if quotient < 100 else 2 if quotient < 1000 else 3
        return self._padded(number, width)

    def _padded(self, number: cython.longlong, width: cython.int) -> cython.int:
        """Write a non-negative integer in exactly `width` digits."""
        out: Texts = self.out
        out.room(width)
        at: cython.longlong = out.used + width
        out.used = at
        with cython.boundscheck(False):  # the room was reserved
            while width > 0:
                at -= 1
                width -= 1
                out.octets[at] = cython.cast(cython.uchar, 48 + number % 10)
                number //= 10
        return 0

    def _bytes(self, start: cython.longlong, count: cython.longlong) -> cython.int:
        """Write bytes as a base64 object."""
        self.out.put_bytes(b'{"base64":"')
        self._base64(start, count)
        return self.out.put_bytes(b'"}')

    def _base64(self, start: cython.longlong, count: cython.longlong) -> cython.int:
        """Write bytes in base64 (RFC 4648 §4)."""
        out: Texts = self.out
        out.room((count + 2) // 3 * 4)
        to: cython.longlong = out.used
        end: cython.longlong = start + count
        three: cython.int
        shift: cython.int
        remaining: cython.longlong
        while start < end:
            remaining = end - start
            three = self.data[start] << 16
            if remaining > 1:
                three |= self.data[start + 1] << 8
            if remaining > 2:
                three |= self.data[start + 2]
            for shift in range(4):
                if shift > remaining:
                    out.octets[to] = 61
                else:
                    out.octets[to] = self.base64[(three >> (18 - 6 * shift)) & 63]
                to += 1
            start += 3
        out.used = to
        return 0

    def put_text(self, start: cython.longlong, count: cython.longlong) -> cython.int:
        """Write `count` bytes as a JSON string, or as a base64 object when they are not UTF-8."""
        out: Texts = self.out
        i: cython.longlong
        end: cython.longlong = start + count
        if start < 0 or end > len(self.data):
            raise IndexError("bytes outside the data")
        odd: cython.uchar = 0
        octet: cython.uchar
        with cython.boundscheck(False):  # as in is_ascii
            for i in range(start, end):
                octet = self.data[i]
                odd |= (octet < 32) | (octet > 126) | (octet == 34) | (octet == 92)
        self.plain = odd == 0
        out.room(count + 2)
        out.octets[out.used] = 34
        out.used += 1
        if self.plain:
            self.copy_to(out, start, count)
        elif not self._escape(start, count):
            out.used -= 1
            return self._bytes(start, count)
        return out.put_byte(34)

    def _escape(self, start: cython.longlong, count: cython.longlong) -> cython.bint:
        """Write text that needs care; False (nothing written) when it is not UTF-8."""
        out: Texts = self.out
        if not self.is_text(start, count):
            return False
        out.room(6 * count)
        i: cython.longlong
        c: cython.int
        at: cython.longlong = out.used
        for i in range(start, start + count):
            c = self.data[i]
            if c == 34 or c == 92:
                out.octets[at] = 92
                out.octets[at + 1] = c
                at += 2
            elif c >= 32:
                out.octets[at] = c
                at += 1
            else:
                out.octets[at] = 92
                out.octets[at + 1] = 117
                out.octets[at + 2] = 48
                out.octets[at + 3] = 48
                out.octets[at + 4] = 48 + (c >> 4)
                out.octets[at + 5] = _HEX[c & 15]
                at += 6
        out.used = at
        return True

    def _float(self, start: cython.longlong, width: cython.int) -> cython.int:
        """Write a 4- or 8-byte float; one that JSON has no number for as a string."""
        bits: cython.longlong = self.u32(start) if width == 4 else self.i64(start)
        texts: dict[Any, Any] = self.floats if width == 4 else self.doubles
        text = texts.get(bits)
        if text is None:
            if len(texts) >= MAX_FLOATS:
                texts.clear()
            text = texts[bits] = _float_text(bits, width)
        return self.out.put_bytes(text)

    def _decimal(self, at: cython.longlong) -> cython.int:
        """Write scale byte and signed long as a number with its digits."""
        scale: cython.int = self.data[at]
        unscaled: cython.longlong = self.u32(at + 1)
        if unscaled >= _SIGN32:
            unscaled -= _RANGE32
        if scale == 0:
            return self._digits(unscaled)
        if unscaled < 0:
            self.out.put_byte(45)
            unscaled = -unscaled
        digits: str = str(unscaled).rjust(scale + 1, "0")
        cut: cython.Py_ssize_t = len(digits) - scale
        return self.out.put_bytes((digits[:cut] + "." + digits[cut:]).encode())

    @cython.exceptval(-2)
    def timestamp_ms(self, at: cython.longlong) -> cython.longlong:
        """Milliseconds since 1970 of a timestamp; -1 when it is beyond the year 9999."""
        seconds: cython.longlong = self.i64(at)
        if seconds < 0:
            return -1
        if seconds >= _MILLISECONDS_FROM:
            self.oddities |= MILLISECONDS
            return seconds if seconds // 1000 <= _LAST_SECOND else -1
        return seconds * 1000 if seconds <= _LAST_SECOND else -1

    def _timestamp(self, at: cython.longlong) -> cython.int:
        """Write a 64-bit timestamp as an RFC 3339 string, or its number when it has no date."""
        ms: cython.longlong = self.timestamp_ms(at)
        if ms < 0:
            return self._unsigned(at)
        return self._date(ms // 1000, ms % 1000)

    def _date(self, seconds: cython.longlong, ms: cython.longlong) -> cython.int:
        """Write an RFC 3339 string; civil date by days since 0000-03-01 (Gregorian cycles)."""
        days: cython.longlong = seconds // 86400 + 719468
        second: cython.longlong = seconds % 86400
        era: cython.longlong = days // 146097
        doe: cython.longlong = days - era * 146097
        yoe: cython.longlong = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
        doy: cython.longlong = doe - (365 * yoe + yoe // 4 - yoe // 100)
        mp: cython.longlong = (5 * doy + 2) // 153
        month: cython.longlong = mp + 3 if mp < 10 else mp - 9
        out: Texts = self.out
        out.put_byte(34)
        self._padded(yoe + era * 400 + (1 if month <= 2 else 0), 4)
        out.put_byte(45)
        self._padded(month, 2)
        out.put_byte(45)
        self._padded(doy - (153 * mp + 2) // 5 + 1, 2)
        out.put_byte(84)
        self._padded(second // 3600, 2)
        out.put_byte(58)
        self._padded(second // 60 % 60, 2)
        out.put_byte(58)
        self._padded(second % 60, 2)
        if ms:
            out.put_byte(46)
            self._padded(ms, 3)
        return out.put_bytes(b'Z"')

    def _unsigned(self, at: cython.longlong) -> cython.int:
        """Write an unsigned 64-bit integer."""
        number: cython.longlong = self.i64(at)
        if number >= 0:
            return self._digits(number)
        return self.out.put_bytes(str(int(number) + (1 << 64)).encode())


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
        self.starts = integers(MAX_CACHED + 1)
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
    """Field tables and their JSON; `last` is the code of the one written last, or -1."""

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
        """Read a table that is not in the cache; returns its oddities."""
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
