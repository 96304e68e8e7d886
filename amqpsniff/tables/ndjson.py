# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Record batches as NDJSON: one JSON object a line, columns in their order, nulls as `null`.

A batch is prepared column by column and written row by row. Preparation makes a cell of every
column: its key as JSON text, and the whole text of a value where there are few values (encoded
strings, booleans). Columns that are the same in every row, null ones above all, become part of the
key after them; neighbours that share their codes become one. What is left for a row is to copy some
pieces and write the numbers and texts that differ.

`arguments` and `headers` hold JSON objects already and are copied. Types that the tables of the
contract do not have come from SQL and take the slow way, through `values.json_text`.
"""

import json

import cython
import pyarrow as pa

from amqpsniff.columns import NULL
from amqpsniff.tables.schema import JSON_COLUMNS
from amqpsniff.tables.values import json_text, octets_text

if cython.compiled:
    from cython.cimports.amqpsniff.columns import Octets  # type: ignore[import-not-found]
    from cython.cimports.libc.string import memcpy  # type: ignore[import-not-found]
else:
    from amqpsniff.columns import Octets

WRITE_OCTETS = 1 << 18
"""Octets after which lines are handed to the sink: a core's cache still holds them then."""

KEPT_OCTETS = 1 << 22
"""The buffer for lines is made anew when a line made it larger than this."""

_WRITE_OCTETS = cython.declare(cython.longlong, WRITE_OCTETS)

# What a cell writes. PIECES, TRUTHS: the piece of the row's code or bit. LONG, INT: a number. TIME:
# microseconds as a timestamp. TEXT: a string. OCTETS: a string or base64. RAW: JSON as it is.
_PIECES = cython.declare(cython.int, 0)
_TRUTHS = cython.declare(cython.int, 1)
_LONG = cython.declare(cython.int, 2)
_INT = cython.declare(cython.int, 3)
_TIME = cython.declare(cython.int, 4)
_TEXT = cython.declare(cython.int, 5)
_OCTETS = cython.declare(cython.int, 6)
_RAW = cython.declare(cython.int, 7)

_MILLION = cython.declare(cython.longlong, 1_000_000)
_DAY = cython.declare(cython.longlong, 86_400)
_LOWEST = cython.declare(cython.longlong, NULL)
_NO_SECOND = cython.declare(cython.longlong, 2**62)
_SHORT = cython.declare(cython.longlong, 16)  # octets up to which a loop is quicker than memcpy
_HEX = b"0123456789abcdef"


@cython.cclass
class _Cell:
    """A column of a batch, ready to be written; row n of the batch is at `offset + n`.

    `pieces` holds texts one after the other, each with the key before it: for PIECES and TRUTHS
    text n ends at `ends[n + 1]` and that for null is the last; otherwise the key alone is the first
    `key` octets, and the text for null the rest.
    """

    kind: cython.int
    offset: cython.Py_ssize_t
    nullable: cython.bint
    valid: cython.const[cython.uchar][::1]
    longs: cython.const[cython.longlong][::1]
    ints: cython.const[cython.int][::1]
    octets: cython.const[cython.uchar][::1]
    ends: cython.const[cython.longlong][::1]
    pieces: Octets
    key: cython.longlong
    zone: cython.bint
    second: cython.longlong
    second_text: Octets
    texts: list
    shared: object

    def __init__(self, kind, array):
        validity = array.buffers()[0]
        self.kind = kind
        self.offset = array.offset
        self.nullable = array.null_count > 0
        self.valid = _octets(validity)
        self.longs = _numbers(None, 0, "q", 8)
        self.ints = _numbers(None, 0, "i", 4)
        self.octets = b""
        self.second = _NO_SECOND
        self.second_text = Octets(32)
        self.key = 0
        self.zone = False
        self.texts = []
        self.shared = None

    def finish(self):
        """Lay out the texts."""
        self.pieces = Octets()
        ends = memoryview(bytearray(8 * (len(self.texts) + 1))).cast("q")
        for place, text in enumerate(self.texts):
            self.pieces.put_bytes(text)
            ends[place + 1] = self.pieces.used
        self.ends = ends
        self.key = ends[1]


def _octets(buffer):
    """An Arrow buffer as unsigned octets."""
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _numbers(buffer, count, format, width):
    """The first `count` numbers of an Arrow buffer."""
    return _octets(buffer)[: count * width].cast(format)


class Writer:
    """Writes batches of one schema, encoded or not.

    With `checked`, values of columns named like those that hold JSON are looked at first, and those
    that are no JSON object are written as strings: for rows that SQL made.
    """

    def __init__(self, schema, checked=False):
        self._keys = [
            f"{',' if place else '{'}{json_text(name)}:".encode()
            for place, name in enumerate(schema.names)
        ]
        self._checked = checked
        self._out = Octets(1 << 16)

    def write(self, batch, sink):
        """Write a batch as lines to a sink, whose `write` may use what it is given only then."""
        cells, tail = self._prepare(batch)
        _write_rows(cells, tail, batch.num_rows, self._out, sink)
        if self._out.size > KEPT_OCTETS:
            self._out = Octets(1 << 16)

    def _prepare(self, batch):
        """The cells of a batch, and what every line ends in."""
        cells: list = []
        cell: _Cell
        last: _Cell
        lead: bytes = b"" if self._keys else b"{"
        for key, name, array in zip(self._keys, batch.schema.names, batch.columns, strict=True):
            lead += key
            same = _same_throughout(array)
            if same is not None:
                lead += same
                continue
            cell = self._cell(name, _simple(name, array), lead)
            lead = b""
            last = cells[len(cells) - 1] if cells else cell
            if cells and cell.shared is not None and cell.shared == last.shared:
                last.texts = [a + b for a, b in zip(last.texts, cell.texts, strict=True)]
            else:
                cells.append(cell)
        for cell in cells:
            cell.finish()
        return cells, lead + b"}\n"

    def _cell(self, name, array, lead):
        kind = array.type
        if pa.types.is_dictionary(kind):
            return _encoded_cell(array, lead)
        if kind == pa.bool_():
            return _truth_cell(array, lead)
        if kind == pa.int64():
            return _number_cell(array, lead, _LONG)
        if kind == pa.int32():
            return _number_cell(array, lead, _INT)
        if pa.types.is_timestamp(kind) and kind.unit == "us":
            return _time_cell(array, lead)
        if kind == pa.binary():
            return _text_cell(array, lead, _OCTETS)
        if kind != pa.string():
            return _other_cell(array, lead, json_text)
        if name not in JSON_COLUMNS:
            return _text_cell(array, lead, _TEXT)
        return _other_cell(array, lead, _judged) if self._checked else _text_cell(array, lead, _RAW)


def _same_throughout(array):
    """JSON text of the value that every row has, or None when they differ."""
    if array.null_count == len(array):
        return b"null"
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) != 1 or array.null_count:
        return None
    return json_text(array.dictionary[0].as_py()).encode()


def _simple(name, array):
    """The same values in a type that has a cell of its own, where there is one."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if kind == pa.dictionary(pa.int32(), pa.string()) and name not in JSON_COLUMNS:
            return array
        return _simple(name, array.dictionary_decode())
    if kind == pa.large_string() or kind == pa.string_view():
        return array.cast(pa.string())
    if pa.types.is_integer(kind) and kind not in (pa.int64(), pa.int32(), pa.uint64()):
        return array.cast(pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return array.cast(pa.timestamp("us", kind.tz))
    return array


def _judged(value):
    """Text of a value that should be a JSON object: itself when it is one, else a string."""
    try:
        is_object = isinstance(json.loads(value), dict)
    except (TypeError, ValueError, RecursionError):
        is_object = False
    return value.replace("\n", " ").replace("\r", " ") if is_object else json_text(value)


def _encoded_cell(array, lead):
    cell: _Cell = _Cell(_PIECES, array)
    words = array.dictionary.to_pylist()
    buffers = array.buffers()
    cell.texts = [lead + json_text(word).encode() for word in (*words, None)]
    cell.ints = _numbers(buffers[1], array.offset + len(array), "i", 4)
    where = [None if buffer is None else buffer.address for buffer in buffers]
    cell.shared = (where, array.offset, len(words))
    return cell


def _truth_cell(array, lead):
    cell: _Cell = _Cell(_TRUTHS, array)
    cell.texts = [lead + b"false", lead + b"true", lead + b"null"]
    cell.octets = _octets(array.buffers()[1])
    return cell


def _number_cell(array, lead, kind):
    cell: _Cell = _Cell(kind, array)
    cell.texts = [lead, b"null"]
    count = array.offset + len(array)
    if kind == _INT:
        cell.ints = _numbers(array.buffers()[1], count, "i", 4)
    else:
        cell.longs = _numbers(array.buffers()[1], count, "q", 8)
    return cell


def _time_cell(array, lead):
    cell: _Cell = _number_cell(array, lead, _TIME)
    cell.zone = array.type.tz is not None
    return cell


def _text_cell(array, lead, kind):
    cell: _Cell = _Cell(kind, array)
    cell.texts = [lead, b"null"]
    _, offsets, octets = array.buffers()
    cell.ints = _numbers(offsets, array.offset + len(array) + 1, "i", 4)
    cell.octets = _octets(octets)
    return cell


def _other_cell(array, lead, text):
    """Values of any type: a piece for each."""
    cell: _Cell = _Cell(_PIECES, array)
    cell.nullable = False
    cell.offset = 0
    cell.texts = [
        lead + (b"null" if value is None else text(value).encode()) for value in array.to_pylist()
    ]
    codes = memoryview(bytearray(4 * len(array))).cast("i")
    for row in range(len(array)):
        codes[row] = row
    cell.ints = codes
    return cell


# rows


@cython.cfunc
def _write_rows(
    cells: list, tail: bytes, rows: cython.Py_ssize_t, out: Octets, sink: object
) -> cython.int:
    row: cython.Py_ssize_t
    cell: _Cell
    out.used = 0
    for row in range(rows):
        for cell in cells:
            _write_cell(cell, row + cell.offset, out)
        out.put_bytes(tail)
        if out.used >= _WRITE_OCTETS:
            sink.write(memoryview(out.storage)[: out.used])
            out.used = 0
    if out.used:
        sink.write(memoryview(out.storage)[: out.used])
    return 0


@cython.cfunc
def _write_cell(cell: _Cell, at: cython.Py_ssize_t, out: Octets) -> cython.int:
    null: cython.bint = cell.nullable and not (cell.valid[at >> 3] >> (at & 7)) & 1
    kind: cython.int = cell.kind
    if kind == _PIECES or kind == _TRUTHS:
        place: cython.Py_ssize_t
        if null:
            place = len(cell.ends) - 2
        elif kind == _PIECES:
            place = cell.ints[at]
        else:
            place = (cell.octets[at >> 3] >> (at & 7)) & 1
        begin: cython.longlong = cell.ends[place]
        return out.put_from(cell.pieces, begin, cell.ends[place + 1] - begin)
    if null:
        return out.put_from(cell.pieces, 0, cell.pieces.used)
    out.put_from(cell.pieces, 0, cell.key)
    if kind == _LONG:
        return _put_number(out, cell.longs[at])
    if kind == _INT:
        return _put_number(out, cell.ints[at])
    if kind == _TIME:
        return _put_time(out, cell, cell.longs[at])
    start: cython.longlong = cell.ints[at]
    end: cython.longlong = cell.ints[at + 1]
    if kind == _TEXT:
        return _put_text(out, cell, start, end)
    if kind == _RAW:
        return _put_plain(out, cell, start, end - start)
    octets: bytes = bytes(cell.octets[start:end])
    return out.put_bytes(octets_text(octets).encode())


@cython.cfunc
def _put_number(out: Octets, number: cython.longlong) -> cython.int:
    if number < 0:
        if number == _LOWEST:
            return out.put_bytes(b"-9223372036854775808")
        out.put_octet(45)
        number = -number
    digits: cython.int = 1
    limit: cython.longlong = 10
    while digits < 19 and number >= limit:
        digits += 1
        if digits < 19:
            limit *= 10
    return _put_digits(out, number, digits)


@cython.cfunc
def _put_digits(out: Octets, number: cython.longlong, digits: cython.int) -> cython.int:
    """The last `digits` decimal digits of a number that is not negative, with zeros before it."""
    out.room(digits)
    at: cython.longlong = out.used + digits
    out.used = at
    while digits > 0:
        at -= 1
        out.octets[at] = 48 + number % 10
        number //= 10
        digits -= 1
    return 0


@cython.cfunc
def _put_time(out: Octets, cell: _Cell, micros: cython.longlong) -> cython.int:
    """Microseconds since the epoch as `"2026-11-21T04:20:39.000001Z"`."""
    fraction: cython.longlong = micros % _MILLION
    if cython.compiled and fraction < 0:
        fraction += _MILLION
    second: cython.longlong = (micros - fraction) // _MILLION
    if second != cell.second:
        cell.second = second
        _set_second(cell.second_text, second)
    out.put_from(cell.second_text, 0, cell.second_text.used)
    _put_digits(out, fraction, 6)
    if cell.zone:
        out.put_octet(90)
    return out.put_octet(34)


@cython.cfunc
def _set_second(text: Octets, second: cython.longlong) -> cython.int:
    """Date and time up to the point before the fraction, with the quote before it."""
    text.used = 0
    of_day: cython.longlong = second % _DAY
    if cython.compiled and of_day < 0:
        of_day += _DAY
    # Civil date from days, counted in years that begin in March (eras of 400 years).
    days: cython.longlong = (second - of_day) // _DAY + 719_468
    of_era: cython.longlong = days % 146_097
    if cython.compiled and of_era < 0:
        of_era += 146_097
    era: cython.longlong = (days - of_era) // 146_097
    year: cython.longlong = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year: cython.longlong = of_era - (365 * year + year // 4 - year // 100)
    month: cython.longlong = (5 * of_year + 2) // 153
    day: cython.longlong = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (1 if month <= 2 else 0)
    text.put_octet(34)
    if year < 0 or year > 9999:  # as ISO 8601 writes them: RFC 3339 cannot
        text.put_octet(45 if year < 0 else 43)
        _put_digits(text, -year if year < 0 else year, 6)
    else:
        _put_digits(text, year, 4)
    text.put_octet(45)
    _put_digits(text, month, 2)
    text.put_octet(45)
    _put_digits(text, day, 2)
    text.put_octet(84)
    _put_digits(text, of_day // 3600, 2)
    text.put_octet(58)
    _put_digits(text, of_day // 60 % 60, 2)
    text.put_octet(58)
    _put_digits(text, of_day % 60, 2)
    return text.put_octet(46)


@cython.cfunc
def _put_plain(
    out: Octets, cell: _Cell, start: cython.longlong, count: cython.longlong
) -> cython.int:
    """Octets of the cell's column as they are."""
    out.room(count)
    if start < 0 or start + count > len(cell.octets):
        raise IndexError("copy outside a buffer")
    at: cython.longlong = out.used
    if cython.compiled and count > _SHORT:
        memcpy(
            cython.address(out.octets[at]),
            cython.address(cell.octets[start]),
            cython.cast(cython.size_t, count),
        )
    else:
        i: cython.longlong
        for i in range(count):
            out.octets[at + i] = cell.octets[start + i]
    out.used = at + count
    return 0


@cython.cfunc
def _put_text(out: Octets, cell: _Cell, start: cython.longlong, end: cython.longlong) -> cython.int:
    """Text between quotes, what JSON does not allow in strings escaped."""
    out.put_octet(34)
    octet: cython.uchar
    clean: cython.longlong = start
    at: cython.longlong
    for at in range(start, end):
        octet = cell.octets[at]
        if octet >= 32 and octet != 34 and octet != 92:
            continue
        _put_plain(out, cell, clean, at - clean)
        _put_escape(out, octet)
        clean = at + 1
    _put_plain(out, cell, clean, end - clean)
    return out.put_octet(34)


@cython.cfunc
def _put_escape(out: Octets, octet: cython.int) -> cython.int:
    out.put_octet(92)
    if octet == 34 or octet == 92:
        return out.put_octet(octet)
    if octet == 10:
        return out.put_octet(110)
    if octet == 9:
        return out.put_octet(116)
    if octet == 13:
        return out.put_octet(114)
    out.put_bytes(b"u00")
    out.put_octet(_HEX[octet >> 4])
    return out.put_octet(_HEX[octet & 15])
