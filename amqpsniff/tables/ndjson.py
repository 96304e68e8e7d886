# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Record batches as NDJSON: one JSON object a line, columns in their order, nulls as `null`.

A batch is prepared column by column and written row by row. Preparation makes a cell of every
column: its key as JSON text, and the whole text of a value if there are few values (encoded
strings, booleans). Columns that are the same in every row, null ones above all, become part of the
key after them; neighbours that share their codes become one.

A cell writes its key and the value of one row. What is the same in all rows is prepared text; what
differs is written from the column's own buffers. From the line of a row in which all is null
`_write_rows` copies the bytes between two values, so that nulls cost a test.

`arguments` and `headers` hold JSON objects already and are copied. Types that the tables of the
contract do not have come from SQL and take the slow way, through `values.json_text`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import IO, Any, Literal

import cython
import pyarrow as pa
from cython.cimports.amqpsniff.columns import Octets
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.tables.schema import JSON_COLUMNS
from amqpsniff.tables.values import bytes_text, json_text, python_values

if cython.compiled:
    from cython.cimports.libc.string import memcpy  # type: ignore[import-not-found]

FIRST_BYTES = 1 << 16

KEPT_BYTES = 1 << 22
"""The buffer for lines is replaced when a line made it larger than this."""

WRITE_BYTES = 1 << 18
"""Bytes after which lines are handed to the sink: a core's cache still holds them then."""

PIECES, TRUTHS, LONG, INT, TIME, TEXT, BYTES, RAW = range(8)
"""Kinds of cells. PIECES, TRUTHS: the text of the row's code or bit. LONG, INT: a number. TIME:
microseconds as a timestamp. TEXT: a string. BYTES: a string or base64. RAW: JSON as it is."""

_WRITE_BYTES = cython.declare(cython.longlong, WRITE_BYTES)
_PIECES = cython.declare(cython.int, PIECES)
_TRUTHS = cython.declare(cython.int, TRUTHS)
_LONG = cython.declare(cython.int, LONG)
_INT = cython.declare(cython.int, INT)
_TIME = cython.declare(cython.int, TIME)
_TEXT = cython.declare(cython.int, TEXT)
_RAW = cython.declare(cython.int, RAW)
_MILLION = cython.declare(cython.longlong, 1_000_000)
_DAY = cython.declare(cython.longlong, 86_400)
_INFINITE = cython.declare(cython.longlong, 2**63 - 1)
_NO_SECOND = cython.declare(cython.longlong, 2**62)
_SHORT = cython.declare(cython.longlong, 8)  # bytes up to which a loop is quicker than memcpy
_HEX = b"0123456789abcdef"


class Writer:
    """Writes batches of one schema, encoded or not.

    A string field with metadata `json` is of rows that SQL made: `object` where only JSON objects,
    `any` where any JSON is to be nested. What is not that is written as a string.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._keys = [
            f"{',' if i else '{'}{json_text(name)}:".encode() for i, name in enumerate(schema.names)
        ]
        self._marks = [(field.metadata or {}).get(b"json") for field in schema]
        self._out = Octets(FIRST_BYTES)

    def write(self, batch: pa.RecordBatch, sink: IO[bytes]) -> None:
        """Write a batch as lines to a sink, whose `write` must not keep its argument."""
        prepared, tail = self._prepare(batch)
        _write_rows([item.cell() for item in prepared], tail, batch.num_rows, self._out, sink)
        if self._out.size > KEPT_BYTES:
            self._out = Octets(FIRST_BYTES)

    def _prepare(self, batch: pa.RecordBatch) -> tuple[list[_Prepared], bytes]:
        """What cells are made from, and what every line ends in."""
        prepared: list[_Prepared] = []
        lead = b"" if self._keys else b"{"
        names = batch.schema.names
        for key, mark, name, array in zip(
            self._keys, self._marks, names, batch.columns, strict=True
        ):
            lead += key
            raw = mark is None and name in JSON_COLUMNS
            plain = _simple(array, raw or mark is not None)
            constant = _same_throughout(plain)
            if constant is not None:
                lead += constant
                continue
            item = _prepared(plain, raw, mark, lead)
            lead = b""
            if not (prepared and prepared[len(prepared) - 1].joined(item)):
                prepared.append(item)
        return prepared, lead + b"}\n"


class _Prepared:
    """A column on its way to a cell; see `Cell` for the meaning of the arguments.

    `shared` is equal for columns that have the same codes; None for a column without codes.
    """

    def __init__(
        self,
        kind: int,
        texts: list[bytes],
        array: pa.Array | None,
        shared: object = None,
        **options: Any,
    ) -> None:
        self.kind = kind
        self.texts = texts
        self.shared = shared
        self.options = options
        if array is not None:
            self.options["offset"] = array.offset
            if array.null_count:
                self.options["valid"] = _bytes(array.buffers()[0])

    def joined(self, other: _Prepared) -> bool:
        """Join another column to this one; False if it has other codes."""
        if self.shared is None or self.shared != other.shared:
            return False
        self.texts = [first + second for first, second in zip(self.texts, other.texts, strict=True)]
        return True

    def cell(self) -> Cell:
        return Cell(self.kind, self.texts, **self.options)


def _bytes(buffer: pa.Buffer | None) -> memoryview:
    """An Arrow buffer as unsigned bytes."""
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _numbers(array: pa.Array, count: int, format: Literal["q", "i"]) -> memoryview:
    """The first `count` numbers of an array's data, or of its offsets."""
    width = 8 if format == "q" else 4
    return _bytes(array.buffers()[1])[: count * width].cast(format)


def _same_throughout(array: pa.Array) -> bytes | None:
    """JSON text of the value that every row has; None when they differ."""
    if array.null_count == len(array):
        return b"null"
    if not pa.types.is_dictionary(array.type) or len(array.dictionary) != 1 or array.null_count:
        return None
    return json_text(array.dictionary[0].as_py()).encode()


def _simple(array: pa.Array, one_by_one: bool) -> pa.Array:
    """The same values in a type that has its own kind of cell, if there is one.

    Dictionaries are decoded when values are looked at `one_by_one`.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        if kind == pa.dictionary(pa.int32(), pa.string()) and not one_by_one:
            return array
        return _simple(array.dictionary_decode(), one_by_one)
    if kind in (pa.large_string(), pa.string_view()):
        return array.cast(pa.string())
    if pa.types.is_integer(kind) and kind not in (pa.int64(), pa.int32(), pa.uint64()):
        return array.cast(pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit in ("s", "ms"):
        return array.cast(pa.timestamp("us", kind.tz))
    return array


def _prepared(array: pa.Array, raw: bool, mark: bytes | None, lead: bytes) -> _Prepared:
    """An array prepared; `raw`: its strings are JSON; `mark`: they may be."""
    kind = array.type
    last = array.offset + len(array)
    if pa.types.is_dictionary(kind):
        return _encoded(array, lead)
    if kind == pa.bool_():
        texts = [lead + b"false", lead + b"true", lead + b"null"]
        return _Prepared(TRUTHS, texts, array, octets=_bytes(array.buffers()[1]))
    texts = [lead, lead + b"null"]
    if kind == pa.int64():
        return _Prepared(LONG, texts, array, longs=_numbers(array, last, "q"))
    if kind == pa.int32():
        return _Prepared(INT, texts, array, ints=_numbers(array, last, "i"))
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        zone = kind.tz is not None
        return _Prepared(TIME, texts, array, longs=_numbers(array, last, "q"), zone=zone)
    if mark is not None:
        return _one_by_one(array, lead, partial(_judged, kind=mark))
    if kind not in (pa.string(), pa.binary()):
        return _one_by_one(array, lead, json_text)
    cell_kind = BYTES if kind == pa.binary() else RAW if raw else TEXT
    octets = _bytes(array.buffers()[2])
    return _Prepared(cell_kind, texts, array, ints=_numbers(array, last + 1, "i"), octets=octets)


def _encoded(array: pa.Array, lead: bytes) -> _Prepared:
    """Dictionary-encoded strings: a text for each of them."""
    texts = [lead + json_text(word).encode() for word in (*array.dictionary.to_pylist(), None)]
    addresses = [None if buffer is None else buffer.address for buffer in array.buffers()]
    shared = (addresses, array.offset, len(texts))
    codes = _numbers(array, array.offset + len(array), "i")
    return _Prepared(PIECES, texts, array, shared, ints=codes)


def _one_by_one(array: pa.Array, lead: bytes, text: Callable[[Any], str]) -> _Prepared:
    """Values of any type: a text for each row."""
    values = python_values(array)
    texts = [lead + (b"null" if value is None else text(value).encode()) for value in values]
    codes = memoryview(bytearray(4 * len(values))).cast("i")
    for row in range(len(values)):
        codes[row] = row
    return _Prepared(PIECES, texts, None, ints=codes)


def _refused(number: str) -> None:
    """NaN and Infinity are no JSON, though Python and DuckDB read them."""
    raise ValueError(number)


def _judged(value: str, kind: bytes) -> str:
    """Text of a value that should be JSON: the value if it is, else a JSON string."""
    try:
        parsed = json.loads(value, parse_constant=_refused)
        sound = kind == b"any" or isinstance(parsed, dict)
    except (ValueError, RecursionError):
        sound = False
    return value.replace("\n", " ").replace("\r", " ") if sound else json_text(value)


@cython.cclass
class Cell:
    """A column of a batch, ready to be written; it stands between `begin` and `end` of the line.

    Args:
        kind: What it writes.
        texts: For PIECES and TRUTHS the texts of the codes or bits, each with the key before it,
            and last the one for null; otherwise the key, and the key with `null`.
        offset: Row n of the batch is at `offset + n` of the buffers.
        valid: Bitmap of the rows that are not null; None if none is null.
        longs: 64-bit numbers.
        ints: 32-bit numbers, codes, or offsets into `octets`.
        octets: Text of the rows, or bits.
        zone: Times are UTC, not of an unknown zone.
    """

    kind: cython.int
    offset: cython.Py_ssize_t
    nullable: cython.bint
    zone: cython.bint
    odd: cython.bint
    valid: cython.const[cython.uchar][::1]
    longs: cython.const[cython.longlong][::1]
    ints: cython.const[cython.int][::1]
    octets: cython.const[cython.uchar][::1]
    pieces: Octets
    ends: cython.const[cython.longlong][::1]
    key: cython.longlong
    begin: cython.longlong
    end: cython.longlong
    second: cython.longlong
    second_text: Octets

    def __init__(
        self,
        kind: Any,
        texts: Any,
        offset: Any = 0,
        valid: Any = None,
        longs: Any = None,
        ints: Any = None,
        octets: Any = b"",
        zone: Any = False,
    ) -> None:
        self.kind = kind
        self.offset = offset
        self.nullable = valid is not None
        self.valid = valid if valid is not None else b""
        self.longs = longs if longs is not None else memoryview(b"").cast("q")
        self.ints = ints if ints is not None else memoryview(b"").cast("i")
        self.octets = octets
        self.zone = zone
        self.second = _NO_SECOND
        self.second_text = Octets(32)
        self.pieces = Octets()
        ends = memoryview(bytearray(8 * (len(texts) + 1))).cast("q")
        for i, text in enumerate(texts):
            self.pieces.put_bytes(text)
            ends[i + 1] = self.pieces.used
        self.ends = ends
        self.key = ends[1]
        self.begin = self.end = 0
        self.odd = False  # a text column without an odd byte is not searched row by row
        if kind == TEXT:
            self.odd = _has_odd(self, self.ints[offset], self.ints[len(self.ints) - 1])


def _write_rows(
    cells: list[Any], tail: bytes, rows: cython.Py_ssize_t, out: Octets, sink: Any
) -> None:
    """Write rows 0 to `rows - 1` to a sink, each by all cells and `tail`; `out` is overwritten."""
    row: cython.Py_ssize_t
    cell: Cell
    line = _line_of(cells, tail)
    done: cython.longlong
    out.used = 0
    for row in range(rows):
        done = 0
        for cell in cells:
            done = _write_cell(cell, row + cell.offset, line, done, out)
        out.put_from(line, done, line.used - done)
        if out.used >= _WRITE_BYTES:
            sink.write(memoryview(out.storage)[: out.used])
            out.used = 0
    if out.used:
        sink.write(memoryview(out.storage)[: out.used])


@cython.cfunc
def _line_of(cells: list[Any], tail: bytes) -> Octets:
    """The line of a row in which all is null; each cell notes its position there."""
    line: Octets = Octets()
    cell: Cell
    for cell in cells:
        cell.begin = line.used
        null: cython.longlong = cell.ends[len(cell.ends) - 2]
        line.put_from(cell.pieces, null, cell.pieces.used - null)
        cell.end = line.used
    line.put_bytes(tail)
    return line


@cython.cfunc
@cython.exceptval(-1, check=False)
def _write_cell(
    cell: Cell, at: cython.Py_ssize_t, line: Octets, done: cython.longlong, out: Octets
) -> cython.longlong:
    """Write the value of a row, if it has one, and before it the `line` from `done` on, which is
    what was written of it; where that ends now.
    """
    if cell.nullable and not (cell.valid[at >> 3] >> (at & 7)) & 1:
        return done
    kind: cython.int = cell.kind
    if kind == _PIECES or kind == _TRUTHS:
        if done < cell.begin:
            out.put_from(line, done, cell.begin - done)
        piece: cython.Py_ssize_t
        piece = cell.ints[at] if kind == _PIECES else (cell.octets[at >> 3] >> (at & 7)) & 1
        begin: cython.longlong = cell.ends[piece]
        out.put_from(cell.pieces, begin, cell.ends[piece + 1] - begin)
        return cell.end
    out.put_from(line, done, cell.begin + cell.key - done)
    if kind == _LONG:
        _put_number(out, cell.longs[at])
    elif kind == _INT:
        _put_number(out, cell.ints[at])
    elif kind == _TIME:
        _put_time(out, cell, cell.longs[at])
    elif kind == _TEXT:
        _put_text(out, cell, cell.ints[at], cell.ints[at + 1])
    elif kind == _RAW:
        _put_plain(out, cell, cell.ints[at], cell.ints[at + 1] - cell.ints[at])
    else:
        _put_bytes(out, cell, cell.ints[at], cell.ints[at + 1])
    return cell.end


@cython.cfunc
def _put_bytes(out: Octets, cell: Cell, start: cython.longlong, end: cython.longlong) -> cython.int:
    """Bytes as a string or base64; apart, since a slice costs every cell of its function."""
    octets: bytes = bytes(cell.octets[start:end])
    return out.put_bytes(bytes_text(octets).encode())


@cython.cfunc
def _put_number(out: Octets, number: cython.longlong) -> cython.int:
    if number < 0:
        if number == NULL:
            return out.put_bytes(b"-9223372036854775808")
        out.put_byte(45)
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
def _put_time(out: Octets, cell: Cell, micros: cython.longlong) -> cython.int:
    """Microseconds since 1970 as `"2026-11-21T04:20:39.000001Z"`, or in DuckDB's word."""
    if micros == _INFINITE or micros == -_INFINITE:
        word = b'"infinity"' if micros > 0 else b'"-infinity"'
        return out.put_bytes(word)
    second: cython.longlong = micros // _MILLION
    fraction: cython.longlong = micros - second * _MILLION
    if fraction < 0:  # compiled, division rounds towards zero
        fraction += _MILLION
        second -= 1
    if second != cell.second:
        cell.second = second
        _set_second(cell.second_text, second)
    out.put_from(cell.second_text, 0, cell.second_text.used)
    _put_digits(out, fraction, 6)
    if cell.zone:
        out.put_byte(90)
    return out.put_byte(34)


@cython.cfunc
def _set_second(text: Octets, second: cython.longlong) -> cython.int:
    """Date and time up to the point before the fraction, with the quote before it."""
    text.used = 0
    days: cython.longlong = second // _DAY
    of_day: cython.longlong = second - days * _DAY
    if of_day < 0:
        of_day += _DAY
        days -= 1
    # The civil date: years begin in March, 400 of them are an era.
    days += 719_468
    era: cython.longlong = days // 146_097
    of_era: cython.longlong = days - era * 146_097
    if of_era < 0:
        of_era += 146_097
        era -= 1
    year: cython.longlong = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year: cython.longlong = of_era - (365 * year + year // 4 - year // 100)
    month: cython.longlong = (5 * of_year + 2) // 153
    day: cython.longlong = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (1 if month <= 2 else 0)
    text.put_byte(34)
    if year < 0 or year > 9999:  # as ISO 8601 writes them: RFC 3339 cannot
        text.put_byte(45 if year < 0 else 43)
        _put_digits(text, -year if year < 0 else year, 6)
    else:
        _put_digits(text, year, 4)
    text.put_byte(45)
    _put_digits(text, month, 2)
    text.put_byte(45)
    _put_digits(text, day, 2)
    text.put_byte(84)
    _put_digits(text, of_day // 3600, 2)
    text.put_byte(58)
    _put_digits(text, of_day // 60 % 60, 2)
    text.put_byte(58)
    _put_digits(text, of_day % 60, 2)
    return text.put_byte(46)


@cython.cfunc
def _put_plain(
    out: Octets, cell: Cell, start: cython.longlong, count: cython.longlong
) -> cython.int:
    """Bytes of the cell's column as they are."""
    if out.used + count > out.size:
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
        with cython.boundscheck(False):  # the range was checked, and room was reserved
            for i in range(count):
                out.octets[at + i] = cell.octets[start + i]
    out.used = at + count
    return 0


@cython.cfunc
def _has_odd(cell: Cell, start: cython.longlong, end: cython.longlong) -> cython.bint:
    """True if a byte of a range is one that JSON does not allow in strings."""
    octet: cython.uchar
    odd: cython.uchar = 0
    at: cython.longlong
    if start < 0 or end > len(cell.octets):
        raise IndexError("text outside a buffer")
    with cython.boundscheck(False):  # one wide loop is enough for most texts
        for at in range(start, end):
            octet = cell.octets[at]
            odd |= (octet < 32) | (octet == 34) | (octet == 92)
    return odd != 0


@cython.cfunc
def _put_text(out: Octets, cell: Cell, start: cython.longlong, end: cython.longlong) -> cython.int:
    """Text in quotes, what JSON does not allow in strings escaped."""
    octet: cython.uchar
    odd: cython.bint = cell.odd and _has_odd(cell, start, end)
    out.room(2 + end - start)
    out.octets[out.used] = 34
    out.used += 1
    clean: cython.longlong = start
    at: cython.longlong
    for at in range(start, end if odd else start):
        octet = cell.octets[at]
        if octet >= 32 and octet != 34 and octet != 92:
            continue
        _put_plain(out, cell, clean, at - clean)
        _put_escape(out, octet)
        clean = at + 1
    _put_plain(out, cell, clean, end - clean)
    if out.used == out.size:
        out.room(1)
    out.octets[out.used] = 34
    out.used += 1
    return 0


@cython.cfunc
def _put_escape(out: Octets, octet: cython.int) -> cython.int:
    out.put_byte(92)
    if octet == 34 or octet == 92:
        return out.put_byte(octet)
    if octet == 10:
        return out.put_byte(110)
    if octet == 9:
        return out.put_byte(116)
    if octet == 13:
        return out.put_byte(114)
    out.put_bytes(b"u00")
    out.put_byte(_HEX[octet >> 4])
    return out.put_byte(_HEX[octet & 15])
