# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Bitmaps of what is null, times in microseconds and other codes, from the decoder's columns.

The decoder writes nulls as values (`amqpsniff.columns`), Arrow wants a bitmap beside them: bit n is
set where row n has a value, least significant bit first. A function here reads a column's storage
once and gives `(bitmap, nulls)`; the bitmap is None when nothing is null or everything is, and the
caller looks at `nulls` to tell which.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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


def recoded(storage: bytearray, rows: cython.Py_ssize_t, places: array) -> bytearray:
    """32-bit codes with other codes in their place: `places[code]`; negative ones stay."""
    codes: cython.const[cython.int][::1] = memoryview(storage).cast("i")
    others: cython.const[cython.int][::1] = places
    result = bytearray(4 * rows)
    made: cython.int[::1] = memoryview(result).cast("i")
    row: cython.Py_ssize_t
    for row in range(rows):
        made[row] = others[codes[row]] if codes[row] >= 0 else codes[row]
    return result


@cython.cfunc
def _packed(octets: cython.const[cython.uchar][::1], rows: cython.Py_ssize_t) -> bytearray:
    """Bytes that are 0 or 1 as bits, the first of eight the lowest."""
    _check(len(octets), rows)
    bitmap = bytearray((rows + 7) >> 3)
    bits: cython.uchar[::1] = bitmap
    place: cython.Py_ssize_t
    at: cython.Py_ssize_t
    with cython.boundscheck(False):
        for place in range(rows >> 3):
            at = place << 3
            bits[place] = (
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
def _check(there: cython.Py_ssize_t, rows: cython.Py_ssize_t) -> cython.int:
    """There are as many rows: loops over them need no test of their own."""
    if rows < 0 or rows > there:
        raise IndexError("rows outside a column")
    return 0
