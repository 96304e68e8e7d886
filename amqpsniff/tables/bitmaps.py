# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The buffers that Arrow's arrays have, from the decoder's columns and from lists.

The decoder writes nulls as values (`amqpsniff.columns`), Arrow wants a bitmap beside them: bit n is
set where row n has a value, least significant bit first. A function here reads a column's storage
once and gives `(bitmap, nulls)`; the bitmap is None when nothing is null or everything is, and the
caller looks at `nulls` to tell which. Those of lists give the other buffers as well.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ESCAPES = "backslashreplace"


def of_integers(storage: bytearray, rows: cython.Py_ssize_t) -> tuple[Any, ...]:
    """For 64-bit integers: `NULL` is null."""
    values: cython.const[cython.longlong][::1] = memoryview(storage).cast("q")
    nulls: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    _check(len(values), rows)
    with cython.boundscheck(False):
        for row in range(rows):
            nulls += values[row] == NULL
    if nulls == 0 or nulls == rows:
        return None, nulls
    valid: cython.uchar[::1] = bytearray(rows)
    with cython.boundscheck(False):
        for row in range(rows):
            valid[row] = values[row] != NULL
    return _packed(valid, rows), nulls


def of_codes(storage: bytearray, rows: cython.Py_ssize_t) -> tuple[Any, ...]:
    """For 32-bit codes: negative ones are null."""
    codes: cython.const[cython.int][::1] = memoryview(storage).cast("i")
    nulls: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    _check(len(codes), rows)
    with cython.boundscheck(False):
        for row in range(rows):
            nulls += codes[row] < 0
    if nulls == 0 or nulls == rows:
        return None, nulls
    valid: cython.uchar[::1] = bytearray(rows)
    with cython.boundscheck(False):
        for row in range(rows):
            valid[row] = codes[row] >= 0
    return _packed(valid, rows), nulls


def of_bytes(storage: bytearray, rows: cython.Py_ssize_t) -> bytearray:
    """The bitmap alone, for one byte a row: zero is null, or false."""
    octets: cython.const[cython.uchar][::1] = storage
    true: cython.uchar[::1] = bytearray(rows)
    row: cython.Py_ssize_t
    _check(len(octets), rows)
    with cython.boundscheck(False):
        for row in range(rows):
            true[row] = octets[row] != 0
    return _packed(true, rows)


def of_truths(storage: bytearray, rows: cython.Py_ssize_t) -> bytearray:
    """For 32-bit codes, a bit set where the code is 1: the values of a column of booleans."""
    codes: cython.const[cython.int][::1] = memoryview(storage).cast("i")
    true: cython.uchar[::1] = bytearray(rows)
    row: cython.Py_ssize_t
    _check(len(codes), rows)
    with cython.boundscheck(False):
        for row in range(rows):
            true[row] = codes[row] == 1
    return _packed(true, rows)


def microseconds(storage: bytearray, rows: cython.Py_ssize_t) -> bytearray:
    """Nanoseconds as microseconds, rounded down; what stands in a null's place means nothing."""
    times: cython.const[cython.longlong][::1] = memoryview(storage).cast("q")
    result = bytearray(8 * rows)
    micros: cython.longlong[::1] = memoryview(result).cast("q")
    row: cython.Py_ssize_t
    quotient: cython.longlong
    _check(len(times), rows)
    with cython.boundscheck(False):
        for row in range(rows):
            quotient = times[row] // 1000
            if times[row] < quotient * 1000:  # compiled, division rounds towards zero
                quotient -= 1
            micros[row] = quotient
    return result


def recoded(storage: bytearray, rows: cython.Py_ssize_t, new_codes: array) -> bytearray:
    """32-bit codes with other codes in their place: `new_codes[code]`; negative ones stay."""
    codes: cython.const[cython.int][::1] = memoryview(storage).cast("i")
    mapping: cython.const[cython.int][::1] = new_codes
    result = bytearray(4 * rows)
    written: cython.int[::1] = memoryview(result).cast("i")
    row: cython.Py_ssize_t
    for row in range(rows):
        written[row] = mapping[codes[row]] if codes[row] >= 0 else codes[row]
    return result


def of_numbers(values: list[Any], narrow: cython.bint) -> tuple[Any, ...]:
    """(bitmap, numbers, nulls) of integers and None in a list; `narrow`: of 32 bits, not 64."""
    rows: cython.Py_ssize_t = len(values)
    nulls: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    storage = bytearray(8 * rows)
    numbers: cython.longlong[::1] = memoryview(storage).cast("q")
    valid: cython.uchar[::1] = bytearray(rows)
    for row in range(rows):
        if values[row] is None:
            nulls += 1
        else:
            numbers[row] = values[row]
            valid[row] = 1
    bitmap = _packed(valid, rows) if 0 < nulls < rows else None
    return bitmap, _narrowed(numbers, rows) if narrow else storage, nulls


def of_texts(values: list[Any]) -> tuple[Any, ...]:
    """(bitmap, offsets, bytes, nulls) of strings and None in a list, as UTF-8.

    The name of a file may hold bytes that are not UTF-8: they are escaped.
    """
    rows: cython.Py_ssize_t = len(values)
    nulls: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    value: str
    joined: str = "".join([value for value in values if value is not None])
    octets: bytes = joined.encode(errors=_ESCAPES)
    plain: cython.bint = len(octets) == len(joined)
    storage = bytearray(4 * rows + 4)
    offsets: cython.int[::1] = memoryview(storage).cast("i")
    valid: cython.uchar[::1] = bytearray(rows)
    for row in range(rows):
        value = values[row]
        if value is None:
            nulls += 1
        else:
            size += len(value) if plain else len(value.encode(errors=_ESCAPES))
            valid[row] = 1
        offsets[row + 1] = size
    return _packed(valid, rows) if 0 < nulls < rows else None, storage, octets, nulls


@cython.cfunc
def _narrowed(numbers: cython.longlong[::1], rows: cython.Py_ssize_t) -> bytearray:
    """Integers of 64 bits as such of 32."""
    storage = bytearray(4 * rows)
    narrow: cython.int[::1] = memoryview(storage).cast("i")
    row: cython.Py_ssize_t
    for row in range(rows):
        if numbers[row] != cython.cast(cython.int, numbers[row]):
            raise OverflowError(f"{numbers[row]} has more than 32 bits")
        narrow[row] = cython.cast(cython.int, numbers[row])
    return storage


@cython.cfunc
def _packed(octets: cython.const[cython.uchar][::1], rows: cython.Py_ssize_t) -> bytearray:
    """Bytes that are 0 or 1 as bits, the first of eight the lowest."""
    _check(len(octets), rows)
    bitmap = bytearray((rows + 7) >> 3)
    bits: cython.uchar[::1] = bitmap
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t
    with cython.boundscheck(False):
        for i in range(rows >> 3):
            at = i << 3
            bits[i] = (
                octets[at]
                | octets[at + 1] << 1
                | octets[at + 2] << 2
                | octets[at + 3] << 3
                | octets[at + 4] << 4
                | octets[at + 5] << 5
                | octets[at + 6] << 6
                | octets[at + 7] << 7
            )
        for at in range(rows & ~7, rows):
            bits[at >> 3] |= octets[at] << (at & 7)
    return bitmap


@cython.cfunc
def _check(available: cython.Py_ssize_t, rows: cython.Py_ssize_t) -> cython.int:
    """There are as many rows: loops over them need no test of their own."""
    if rows < 0 or rows > available:
        raise IndexError("rows outside a column")
    return 0
