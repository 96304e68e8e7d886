# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Values of AMQP 1.0: from bytes on the wire straight to JSON text.

A value begins with a constructor, one byte that says type and width; a described value has a zero
byte, a descriptor and a constructor. `TypedReader` reads both at a position of its `data`. The
forms are those of the table contract: timestamps as RFC 3339 strings, binary as
`{"base64": "…"}`, maps whose keys are not all texts as `{"map": [[key, value], …]}`. A described
list that the standard defines becomes an object with its `type` and the fields that were sent, any
other described value `{"descriptor": …, "value": …}`.

Nothing is read at or past `end` of the window given. Nesting is bounded, and so are elements that
take no bytes. Where bytes are missing, containers close themselves, so that the text stays whole.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Texts
from cython.cimports.amqpsniff.decode.values import TableCache, ValueReader

from amqpsniff.decode.values import LAST_SECOND, MALFORMED_TABLE, TOO_DEEP
from amqpsniff.spec.amqp10 import COMPOSITES, ENCODINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 32
"""Nesting that is written as JSON; deeper values are written as bytes."""

_MAX_EMPTY = cython.declare(cython.longlong, 1024)
"""Elements without bytes that are written of an array: four bytes can announce 2^32 of them."""

FIXED, VARIABLE, LIST, MAP, ARRAY = range(1, 6)
_SHAPES = {"fixed": FIXED, "variable": VARIABLE, "array": ARRAY}

_MAX_DEPTH = cython.declare(cython.int, MAX_DEPTH)
_LAST_SECOND = cython.declare(cython.longlong, LAST_SECOND)
_FIXED = cython.declare(cython.int, FIXED)
_VARIABLE = cython.declare(cython.int, VARIABLE)
_LIST = cython.declare(cython.int, LIST)
_MAP = cython.declare(cython.int, MAP)
_ARRAY = cython.declare(cython.int, ARRAY)
_SIGN32 = cython.declare(cython.longlong, 1 << 31)
_RANGE32 = cython.declare(cython.longlong, 1 << 32)

_shapes = bytearray(256)
_widths = bytearray(256)
for _row in ENCODINGS:
    _shapes[_row.code] = _SHAPES.get(_row.category) or (LIST if _row.type == "list" else MAP)
    _widths[_row.code] = _row.width
_shapes[0x45] = LIST

_SHAPE = cython.declare(bytes, bytes(_shapes))
WIDTHS = bytes(_widths)
_WIDTH = cython.declare(bytes, WIDTHS)

FIELD_KEYS: dict[int, list[bytes]] = {
    row.code: [f'"{field.name}":'.encode() for field in row.fields] for row in COMPOSITES
}
_KEYS = cython.declare(dict, FIELD_KEYS)
_TYPES = cython.declare(dict, {row.code: f'{{"type":"{row.name}"'.encode() for row in COMPOSITES})
_SYMBOLS = cython.declare(dict, {f"amqp:{row.name}:list".encode(): row.code for row in COMPOSITES})

_DECIMALS = {4: (101, 8, 23), 8: (398, 10, 53), 16: (6176, 14, 113)}
"""By width: bias and bits of the exponent, bits of the coefficient (IEEE 754-2008 §3.5.2, BID)."""


def decimal_text(octets: bytes) -> bytes:
    """JSON of a decimal floating-point number."""
    width = len(octets)
    bias, exponent_bits, coefficient_bits = _DECIMALS[width]
    bits = int.from_bytes(octets, "big")
    sign = "-" if bits >> (8 * width - 1) else ""
    combination = bits >> (8 * width - 6) & 0x1F
    if combination == 0x1F:
        return b'"NaN"'
    if combination == 0x1E:
        return f'"{sign}Infinity"'.encode()
    if combination >> 3 == 3:  # the coefficient begins with 100, which is not written
        exponent = bits >> (coefficient_bits - 2) & ((1 << exponent_bits) - 1)
        coefficient = (1 << coefficient_bits) | (bits & ((1 << (coefficient_bits - 2)) - 1))
    else:
        exponent = bits >> coefficient_bits & ((1 << exponent_bits) - 1)
        coefficient = bits & ((1 << coefficient_bits) - 1)
    if coefficient >= 10 ** {4: 7, 8: 16, 16: 34}[width]:
        coefficient = 0
    exponent -= bias
    return (
        f"{sign}{coefficient}e{exponent}".encode() if exponent else f"{sign}{coefficient}".encode()
    )


def uuid_text(octets: bytes) -> bytes:
    """A UUID as text."""
    digits = octets.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])).encode()


@cython.cclass
class TypedReader(ValueReader):
    """Reads values of `data`; `next` is the position after the last one that was written.

    For an opened list, `items` is the position of its first value, `limit` its end, `count` the
    number of values, `code` its descriptor as a number, -1 if the standard does not define it.
    """

    items: cython.longlong
    limit: cython.longlong
    count: cython.longlong
    code: cython.int

    def __init__(self, out: Any, reading: Any = "rabbitmq") -> None:
        ValueReader.__init__(self, out, reading)
        self.items = self.limit = self.count = 0
        self.code = -1

    def skip(
        self, at: cython.longlong, end: cython.longlong, depth: cython.int = 0
    ) -> cython.longlong:
        """Position after the value at `at`; -1 when it does not end before `end`."""
        if at >= end:
            return -1
        code: cython.int = self.data[at]
        if 0x50 <= code <= 0x53:  # most numbers are small
            return at + 2 if at + 2 <= end else -1
        if code >= 0xA0 and _SHAPE[code]:
            wide: cython.bint = code & 0x10 != 0
            if at + 2 + 3 * wide > end:
                return -1
            at += 5 + self.u32(at + 1) if wide else 2 + self.data[at + 1]
            return at if at <= end else -1
        if code:
            return self._after(code, at + 1, end)
        while code == 0:
            depth += 1
            if depth > _MAX_DEPTH:
                return -1
            if at + 2 < end and self.data[at + 1] == 0x53:
                at += 3
            else:
                at = self.skip(at + 1, end, depth)
            if at < 0 or at >= end:
                return -1
            code = self.data[at]
        return self._after(code, at + 1, end)

    def _after(
        self, code: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Position after the bare value of a constructor at `at`; -1 where it is not whole."""
        shape: cython.int = _SHAPE[code]
        width: cython.longlong = _WIDTH[code]
        if shape == 0 or at + width > end:
            return -1
        if shape != _FIXED and width:
            width += self.data[at] if width == 1 else self.u32(at)
            if at + width > end:
                return -1
        return at + width

    def wanted(self, at: cython.longlong, end: cython.longlong) -> cython.longlong:
        """Size of the value with its constructor at `at`, or a lower bound of it; never 0."""
        code: cython.int = self.data[at]
        width: cython.longlong = _WIDTH[code]
        if _SHAPE[code] == _FIXED or width == 0:
            return 1 + width
        if at + 1 + width > end:
            return 2 + width
        return 1 + width + (self.data[at + 1] if width == 1 else self.u32(at + 1))

    def descriptor(self, at: cython.longlong, end: cython.longlong) -> cython.longlong:
        """Position of the constructor of the described value at `at`, with its `code`.

        -1 if there is no described value. The code is -1 if the standard does not define it.
        """
        self.code = -1
        if at + 2 > end or self.data[at] != 0:
            return -1
        kind: cython.int = self.data[at + 1]
        if kind == 0x53 and at + 3 <= end:
            self.code = self.data[at + 2]
            return at + 3
        after: cython.longlong = self.skip(at + 1, end, 1)
        if after < 0:
            return -1
        if kind == 0x80:
            number: cython.longlong = self.i64(at + 2)
            self.code = cython.cast(cython.int, number) if 0 <= number < 0x10000 else -1
        elif kind == 0xA3:
            self.code = _SYMBOLS.get(self.bytes_at(at + 3, after - at - 3), -1)
        return after

    def open_list(self, at: cython.longlong, end: cython.longlong) -> cython.bint:
        """True if a list or map is at `at`: sets `items`, `limit` and `count`; it may be cut."""
        if at >= end:
            return False
        code: cython.int = self.data[at]
        if code == 0xC0 and at + 3 <= min(end, len(self.data)):
            self.items = at + 3
            with cython.boundscheck(False):  # they are there
                self.limit = at + 2 + self.data[at + 1]
                self.count = self.data[at + 2]
            return self.items <= self.limit
        shape: cython.int = _SHAPE[code]
        width: cython.longlong = _WIDTH[code]
        self.count = 0
        self.items = self.limit = at + 1
        if (shape != _LIST and shape != _MAP) or at + 1 + 2 * width > end:
            return False
        if width == 1:
            self.limit = at + 2 + self.data[at + 1]
            self.count = self.data[at + 2]
        elif width == 4:
            self.limit = at + 5 + self.u32(at + 1)
            self.count = self.u32(at + 5)
        self.items = at + 1 + 2 * width
        return self.items <= self.limit

    @cython.ccall
    @cython.exceptval(-1)
    def put_value(
        self, at: cython.longlong, end: cython.longlong, depth: cython.int = 0
    ) -> cython.bint:
        """Write the value at `at`; false (nothing written) where it is not whole."""
        after: cython.longlong = self.skip(at, end)
        if after < 0:
            return False
        if depth >= _MAX_DEPTH:
            self.oddities |= TOO_DEEP
            self._bytes(at, after - at)
        elif self.data[at] == 0:
            self._described(at, after, depth)
        else:
            self._bare(self.data[at], at + 1, after, depth)
        self.next = after
        return True

    def _described(
        self, at: cython.longlong, after: cython.longlong, depth: cython.int
    ) -> cython.int:
        """Write a described value that ends at `after`."""
        place: cython.longlong = self.descriptor(at, after)
        code: cython.int = self.code
        if place > 0 and code in _KEYS and _SHAPE[self.data[place]] == _LIST:
            return self._composite(code, place, after, depth)
        self.out.put_bytes(b'{"descriptor":')
        self.put_value(at + 1, after, depth + 1)
        self.out.put_bytes(b',"value":')
        self.put_value(place, after, depth + 1)
        return self.out.put_byte(125)

    def _composite(
        self, code: cython.int, at: cython.longlong, after: cython.longlong, depth: cython.int
    ) -> cython.int:
        """Write a described list of the standard as an object with its type."""
        self.out.put_bytes(_TYPES[code])
        if self.open_list(at, after):
            self._put_fields(code, self.items, self.limit, self.count, depth + 1)
        else:
            self.oddities |= MALFORMED_TABLE
        return self.out.put_byte(125)

    def _put_fields(
        self,
        code: cython.int,
        at: cython.longlong,
        limit: cython.longlong,
        count: cython.longlong,
        depth: cython.int,
    ) -> cython.bint:
        """Write the fields of a composite that are not null as names and values, behind others.

        False where the bytes end before the fields do.
        """
        out: Texts = self.out
        keys: list[Any] = _KEYS[code]
        place: cython.longlong = 0
        while place < count and place < len(keys):
            if at >= limit:
                return False
            if self.data[at] == 0x40:
                at += 1
            else:
                mark: cython.longlong = out.used
                out.put_byte(44)
                out.put_bytes(keys[place])
                if not self.put_value(at, limit, depth):
                    out.used = mark
                    self.oddities |= MALFORMED_TABLE
                    return False
                at = self.next
            place += 1
        return True

    def _bare(
        self, code: cython.int, at: cython.longlong, after: cython.longlong, depth: cython.int
    ) -> cython.int:
        """Write the value of a constructor that is at `at`..`after`."""
        shape: cython.int = _SHAPE[code]
        if shape == _FIXED:
            return self._fixed(code, at)
        width: cython.longlong = _WIDTH[code]
        if shape == _VARIABLE:
            if code & 0x0F == 0:
                return self._bytes(at + width, after - at - width)
            return self.put_text(at + width, after - at - width)
        if shape == _ARRAY:
            return self._items(at, after, depth)
        if not self.open_list(at - 1, after):
            self.oddities |= MALFORMED_TABLE
            return self._bytes(at, after - at)
        if shape == _LIST:
            return self._list(self.items, self.limit, self.count, depth)
        return self._map(self.items, self.limit, self.count, depth)

    def _list(
        self, at: cython.longlong, limit: cython.longlong, count: cython.longlong, depth: cython.int
    ) -> cython.int:
        """Write a list."""
        out: Texts = self.out
        place: cython.longlong
        mark: cython.longlong
        out.put_byte(91)
        for place in range(count):
            mark = out.used
            if place:
                out.put_byte(44)
            if not self.put_value(at, limit, depth + 1):
                out.used = mark
                self.oddities |= MALFORMED_TABLE
                break
            at = self.next
        return out.put_byte(93)

    def _map(
        self, at: cython.longlong, limit: cython.longlong, count: cython.longlong, depth: cython.int
    ) -> cython.int:
        """Write a map: as an object where all its keys are texts."""
        out: Texts = self.out
        texts: cython.bint = self._has_texts_for_keys(at, limit, count)
        place: cython.longlong
        mark: cython.longlong
        out.put_bytes(b"{" if texts else b'{"map":[')
        for place in range(count // 2):
            mark = out.used
            if place:
                out.put_byte(44)
            if not texts:
                out.put_byte(91)
            if not self.put_value(at, limit, depth + 1):
                out.used = mark
                self.oddities |= MALFORMED_TABLE
                break
            out.put_byte(58 if texts else 44)
            if not self.put_value(self.next, limit, depth + 1):
                out.used = mark
                self.oddities |= MALFORMED_TABLE
                break
            if not texts:
                out.put_byte(93)
            at = self.next
        return out.put_bytes(b"}" if texts else b"]}")

    def _has_texts_for_keys(
        self, at: cython.longlong, limit: cython.longlong, count: cython.longlong
    ) -> cython.bint:
        """True if every key of a map that is there is a symbol or a string in UTF-8."""
        start: cython.longlong
        after: cython.longlong
        for _ in range(count // 2):
            after = self.skip(at, limit)
            if after < 0:
                return True
            code: cython.int = self.data[at]
            if code != 0xA1 and code != 0xA3 and code != 0xB1 and code != 0xB3:
                return False
            start = at + (2 if code < 0xB0 else 5)
            if not self.is_text(start, after - start):
                return False
            at = self.skip(after, limit)
            if at < 0:
                return True
        return True

    def _items(self, at: cython.longlong, after: cython.longlong, depth: cython.int) -> cython.int:
        """Write an array: one constructor, then its elements."""
        out: Texts = self.out
        wide: cython.bint = self.data[at - 1] == 0xF0
        size: cython.longlong = 8 if wide else 2
        if at + size > after:
            self.oddities |= MALFORMED_TABLE
            return out.put_bytes(b"[]")
        count: cython.longlong = self.u32(at + 4) if wide else self.data[at + 1]
        begin: cython.longlong = at + size
        at = begin
        if count and at < after and self.data[at] == 0:
            at = self.descriptor(begin, after)
        code: cython.int = self.data[at] if 0 <= at < after else 0
        if code == 0:
            if count:
                self.oddities |= MALFORMED_TABLE
            return out.put_bytes(b"[]")
        kind: cython.int = self.code
        described: cython.bint = at > begin
        at += 1
        place: cython.longlong
        end: cython.longlong
        out.put_byte(91)
        for place in range(count):
            end = self._after(code, at, after)
            if end < 0 or (end == at and place >= _MAX_EMPTY):
                self.oddities |= MALFORMED_TABLE
                break
            if place:
                out.put_byte(44)
            if depth + 1 >= _MAX_DEPTH:
                self.oddities |= TOO_DEEP
                self._bytes(at, end - at)
            elif described:
                self._element(begin, kind, code, at, end, depth + 1)
            else:
                self._bare(code, at, end, depth + 1)
            at = end
        return out.put_byte(93)

    def _element(
        self,
        begin: cython.longlong,
        kind: cython.int,
        code: cython.int,
        at: cython.longlong,
        end: cython.longlong,
        depth: cython.int,
    ) -> cython.int:
        """Write a described element of an array; its descriptor stands at `begin`."""
        self.out.put_bytes(b'{"descriptor":')
        if kind >= 0:
            self._digits(kind)
        else:
            self.put_value(begin + 1, at, depth)
        self.out.put_bytes(b',"value":')
        self._bare(code, at, end, depth)
        return self.out.put_byte(125)

    def _fixed(self, code: cython.int, at: cython.longlong) -> cython.int:
        """Write a value of fixed width."""
        out: Texts = self.out
        if code in (0x43, 0x44, 0x50, 0x52, 0x53, 0x60, 0x70):
            return self._digits(self.of_unsigned(code, at))
        if code == 0x41 or code == 0x42:
            return out.put_bool(code == 0x41)
        if code == 0x56:
            return out.put_bool(self.data[at] != 0)
        if code == 0x40:
            return out.put_bytes(b"null")
        if code == 0x83:
            return self._moment(at)
        if code in (0x54, 0x55, 0x51, 0x61, 0x71, 0x81):
            return self._digits(self.of_signed(code, at))
        if code == 0x80:
            return self._unsigned(at)
        if code == 0x72 or code == 0x82:
            return self._float(at, 4 if code == 0x72 else 8)
        if code == 0x73:
            return self._char(at)
        if code == 0x98:
            return out.put_bytes(b'"' + uuid_text(self.bytes_at(at, 16)) + b'"')
        if code in (0x74, 0x84, 0x94):
            return out.put_bytes(decimal_text(self.bytes_at(at, _WIDTH[code])))
        return 0

    def of_unsigned(self, code: cython.int, at: cython.longlong) -> cython.longlong:
        """The number of an unsigned constructor up to 32 bits whose value is at `at`."""
        width: cython.int = _WIDTH[code]
        if width == 0:
            return 0
        if width == 1:
            return self.data[at]
        return self.u16(at) if width == 2 else self.u32(at)

    def of_signed(self, code: cython.int, at: cython.longlong) -> cython.longlong:
        """The number of a signed constructor whose value is at `at`."""
        width: cython.int = _WIDTH[code]
        if width == 1:
            return self.data[at] - (256 if self.data[at] > 127 else 0)
        if width == 2:
            return self.u16(at) - (65536 if self.u16(at) > 32767 else 0)
        if width == 4:
            return self.u32(at) - (_RANGE32 if self.u32(at) >= _SIGN32 else 0)
        return self.i64(at)

    def number(self, at: cython.longlong, end: cython.longlong) -> cython.longlong:
        """The unsigned number up to 32 bits that is at `at`, constructor and all; -1 for none."""
        if at >= end:
            return -1
        code: cython.int = self.data[at]
        if code in (0x43, 0x44):
            return 0
        if code in (0x50, 0x52, 0x53) and at + 2 <= end:
            return self.data[at + 1]
        if code == 0x60 and at + 3 <= end:
            return self.u16(at + 1)
        if code == 0x70 and at + 5 <= end:
            return self.u32(at + 1)
        if code == 0x80 and at + 9 <= end:
            return max(self.i64(at + 1), -1)
        return -1

    def truth(self, at: cython.longlong, end: cython.longlong) -> cython.int:
        """1 or 0 for the boolean at `at`; -1 if there is no boolean."""
        if at >= end:
            return -1
        code: cython.int = self.data[at]
        if code == 0x41 or code == 0x42:
            return code == 0x41
        if code == 0x56 and at + 2 <= end:
            return self.data[at + 1] != 0
        return -1

    def text_at(self, at: cython.longlong, end: cython.longlong) -> cython.longlong:
        """Length of the string, symbol or binary at `at`, whose bytes begin at `items`; else -1."""
        if at >= end:
            return -1
        code: cython.int = self.data[at]
        if (code == 0xA1 or code == 0xA3 or code == 0xA0) and at + 1 < end:
            self.items = at + 2
            return self.data[at + 1] if self.items + self.data[at + 1] <= end else -1
        if _SHAPE[code] != _VARIABLE:
            return -1
        after: cython.longlong = self.skip(at, end)
        if after < 0:
            return -1
        self.items = at + 1 + _WIDTH[self.data[at]]
        return after - self.items

    def moment_ms(self, at: cython.longlong, end: cython.longlong) -> cython.longlong:
        """Milliseconds since 1970 of the timestamp at `at`; -1 for none, or one before or far."""
        if at + 9 > end or self.data[at] != 0x83:
            return -1
        ms: cython.longlong = self.i64(at + 1)
        return ms if 0 <= ms <= _LAST_SECOND * 1000 else -1

    def _moment(self, at: cython.longlong) -> cython.int:
        """Write a timestamp: signed milliseconds since 1970."""
        ms: cython.longlong = self.i64(at)
        if ms < 0 or ms > _LAST_SECOND * 1000:
            return self._digits(ms)
        return self._date(ms // 1000, ms % 1000)

    def _char(self, at: cython.longlong) -> cython.int:
        """Write a character."""
        point: cython.longlong = self.u32(at)
        if point < 0x20 or point > 0x10FFFF or 0xD800 <= point < 0xE000 or point in (34, 92):
            return self.out.put_bytes(f'"\\u{point & 0xFFFF:04x}"'.encode())
        return self.out.put_bytes(f'"{chr(point)}"'.encode())


@cython.cclass
class ValueCache(TableCache):
    """Values, such as the maps of sections, and their JSON."""

    def _write(self, reader: Any, at: Any, end: Any) -> Any:
        """Read a value that is not in the cache."""
        typed: TypedReader = reader
        typed.put_value(at, end)
        return 0
