# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""JSON text of wire values, written straight into a text column.

`JsonWriter` reads at a position of its `data` and appends to `out`: numbers, strings, dates and
base64, in the forms of the table contract: text that is not UTF-8 as `{"base64": "…"}`, timestamps
as RFC 3339 strings, decimals with their digits. The caller has checked that the octets are there.
"""

import struct

import cython
from cython.cimports.amqpsniff.columns import Texts
from cython.cimports.amqpsniff.decode.octets import OctetReader

from amqpsniff.columns import NULL
from amqpsniff.decode.oddities import MILLISECONDS

MAX_FLOATS = 1024
"""Floats whose text is remembered: making it costs more than all else about a float, and headers
repeat theirs."""

MILLISECONDS_FROM = 10**12
"""A timestamp from here on is read as milliseconds (10^12 s would be the year 33658)."""

LAST_SECOND = 253402300799
"""9999-12-31T23:59:59Z, the last that RFC 3339 can write."""

_MILLISECONDS_FROM = cython.declare(cython.longlong, MILLISECONDS_FROM)
_LAST_SECOND = cython.declare(cython.longlong, LAST_SECOND)
_SIGN32 = cython.declare(cython.longlong, 1 << 31)
_RANGE32 = cython.declare(cython.longlong, 1 << 32)
_LOWEST = cython.declare(cython.longlong, NULL)  # -(2**63), as a literal too large for C
_FLOAT32 = struct.Struct(">f")
_FLOAT64 = struct.Struct(">d")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_HEX = b"0123456789abcdef"


def _float_text(bits: int, width: int) -> bytes:
    """JSON of a float of 4 or 8 octets, given as an integer."""
    number = (
        _FLOAT32.unpack(_UINT32.pack(bits)) if width == 4 else _FLOAT64.unpack(_INT64.pack(bits))
    )
    value = number[0]
    if value != value:
        return b'"NaN"'
    if value in (float("inf"), float("-inf")):
        return b'"Infinity"' if value > 0 else b'"-Infinity"'
    return repr(value).encode()


class JsonWriter(OctetReader):
    """Writes wire values as JSON; `data` are the octets, `out` the column.

    Args:
        out: The text column whose open row is written.
    """

    def __init__(self, out):
        OctetReader.__init__(self)
        self.out = out
        self.base64 = _BASE64
        self.plain = True
        self.floats = {}
        self.doubles = {}

    def _digits(self, number):
        """Write a signed 64-bit integer."""
        out: Texts = self.out
        out.room(20)
        if number < 0:
            if number == _LOWEST:
                return out.put_bytes(b"-9223372036854775808")
            out.octets[out.used] = 45
            out.used += 1
            number = -number
        width: cython.int = 1
        rest: cython.longlong = number
        while rest >= 10_000:
            rest //= 10_000
            width += 4
        if rest >= 10:
            width += 1 if rest < 100 else 2 if rest < 1000 else 3
        return self._padded(number, width)

    def _padded(self, number, width):
        """Write a non-negative integer in exactly `width` digits."""
        out: Texts = self.out
        out.room(width)
        at: cython.longlong = out.used + width
        out.used = at
        with cython.boundscheck(False):  # there is room
            while width > 0:
                at -= 1
                width -= 1
                out.octets[at] = cython.cast(cython.uchar, 48 + number % 10)
                number //= 10
        return 0

    def _octets(self, start, count):
        """Write octets as a base64 object."""
        self.out.put_bytes(b'{"base64":"')
        self._base64(start, count)
        return self.out.put_bytes(b'"}')

    def _base64(self, start, count):
        """Write octets in base64 (RFC 4648 §4)."""
        out: Texts = self.out
        out.room((count + 2) // 3 * 4)
        to: cython.longlong = out.used
        end: cython.longlong = start + count
        three: cython.int
        shift: cython.int
        left: cython.longlong
        while start < end:
            left = end - start
            three = self.data[start] << 16
            if left > 1:
                three |= self.data[start + 1] << 8
            if left > 2:
                three |= self.data[start + 2]
            for shift in range(4):
                if shift > left:
                    out.octets[to] = 61
                else:
                    out.octets[to] = self.base64[(three >> (18 - 6 * shift)) & 63]
                to += 1
            start += 3
        out.used = to
        return 0

    def put_text(self, start, count):
        """Write `count` octets as a JSON string, or as a base64 object when they are not UTF-8."""
        out: Texts = self.out
        i: cython.longlong
        end: cython.longlong = start + count
        if start < 0 or end > len(self.data):
            raise IndexError("octets outside the data")
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
            return self._octets(start, count)
        return out.put_octet(34)

    def _escape(self, start, count):
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

    def _float(self, start, width):
        """Write a 4- or 8-octet float; one that JSON has no number for as a string."""
        bits: cython.longlong = self.u32(start) if width == 4 else self.i64(start)
        known: dict = self.floats if width == 4 else self.doubles
        text = known.get(bits)
        if text is None:
            if len(known) >= MAX_FLOATS:
                known.clear()
            text = known[bits] = _float_text(bits, width)
        return self.out.put_bytes(text)

    def _decimal(self, at):
        """Write scale octet and signed long as a number with its digits."""
        scale: cython.int = self.data[at]
        unscaled: cython.longlong = self.u32(at + 1)
        if unscaled >= _SIGN32:
            unscaled -= _RANGE32
        if scale == 0:
            return self._digits(unscaled)
        if unscaled < 0:
            self.out.put_octet(45)
            unscaled = -unscaled
        digits: str = str(unscaled).rjust(scale + 1, "0")
        cut: cython.Py_ssize_t = len(digits) - scale
        return self.out.put_bytes((digits[:cut] + "." + digits[cut:]).encode())

    def timestamp_ms(self, at):
        """Milliseconds since 1970 of a timestamp; -1 when it is beyond the year 9999."""
        seconds: cython.longlong = self.i64(at)
        if seconds < 0:
            return -1
        if seconds >= _MILLISECONDS_FROM:
            self.oddities |= MILLISECONDS
            return seconds if seconds // 1000 <= _LAST_SECOND else -1
        return seconds * 1000 if seconds <= _LAST_SECOND else -1

    def _timestamp(self, at):
        """Write a 64-bit timestamp as an RFC 3339 string, or its number when it has no date."""
        ms: cython.longlong = self.timestamp_ms(at)
        if ms < 0:
            return self._unsigned(at)
        return self._date(ms // 1000, ms % 1000)

    def _date(self, seconds, ms):
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
        out.put_octet(34)
        self._padded(yoe + era * 400 + (1 if month <= 2 else 0), 4)
        out.put_octet(45)
        self._padded(month, 2)
        out.put_octet(45)
        self._padded(doy - (153 * mp + 2) // 5 + 1, 2)
        out.put_octet(84)
        self._padded(second // 3600, 2)
        out.put_octet(58)
        self._padded(second // 60 % 60, 2)
        out.put_octet(58)
        self._padded(second % 60, 2)
        if ms:
            out.put_octet(46)
            self._padded(ms, 3)
        return out.put_bytes(b'Z"')

    def _unsigned(self, at):
        """Write an unsigned 64-bit integer."""
        number: cython.longlong = self.i64(at)
        if number >= 0:
            return self._digits(number)
        return self.out.put_bytes(str(int(number) + (1 << 64)).encode())
