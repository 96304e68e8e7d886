# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Bitmaps of what is null, times in microseconds and other codes, from the decoder's columns.

The decoder writes nulls as values (`amqpsniff.columns`), Arrow wants a bitmap beside them: bit n is
set where row n has a value, least significant bit first. A function here reads a column's storage
once and gives `(bitmap, nulls)`; the bitmap is None when nothing is null or everything is, and the
caller looks at `nulls` to tell which.
"""

from array import array

import cython

from amqpsniff.columns import NULL

_NULL = cython.declare(cython.longlong, NULL)


def of_integers(storage: bytearray, rows: cython.Py_ssize_t) -> tuple:
    """For 64-bit integers: `NULL` is null."""
    values: cython.const[cython.longlong][::1] = memoryview(storage).cast("q")
    nulls: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    for row in range(rows):
        nulls += values[row] == _NULL
    if nulls == 0 or nulls == rows:
        return None, nulls
    bitmap = bytearray((rows + 7) >> 3)
    bits: cython.uchar[::1] = bitmap
    for row in range(rows):
        if values[row] != _NULL:
            bits[row >> 3] |= 1 << (row & 7)
    return bitmap, nulls


def of_codes(storage: bytearray, rows: cython.Py_ssize_t) -> tuple:
    """For 32-bit codes: negative ones are null."""
    codes: cython.const[cython.int][::1] = memoryview(storage).cast("i")
    nulls: cython.Py_ssize_t = 0
    row: cython.Py_ssize_t
    for row in range(rows):
        nulls += codes[row] < 0
    if nulls == 0 or nulls == rows:
        return None, nulls
    bitmap = bytearray((rows + 7) >> 3)
    bits: cython.uchar[::1] = bitmap
    for row in range(rows):
        if codes[row] >= 0:
            bits[row >> 3] |= 1 << (row & 7)
    return bitmap, nulls


def of_octets(storage: bytearray, rows: cython.Py_ssize_t) -> bytearray:
    """The bitmap alone, for one octet a row: zero is null, or false."""
    octets: cython.const[cython.uchar][::1] = storage
    bitmap = bytearray((rows + 7) >> 3)
    bits: cython.uchar[::1] = bitmap
    row: cython.Py_ssize_t
    for row in range(rows):
        if octets[row]:
            bits[row >> 3] |= 1 << (row & 7)
    return bitmap


def of_truths(storage: bytearray, rows: cython.Py_ssize_t) -> bytearray:
    """For 32-bit codes, a bit set where the code is 1: the values of a column of booleans."""
    codes: cython.const[cython.int][::1] = memoryview(storage).cast("i")
    bitmap = bytearray((rows + 7) >> 3)
    bits: cython.uchar[::1] = bitmap
    row: cython.Py_ssize_t
    for row in range(rows):
        if codes[row] == 1:
            bits[row >> 3] |= 1 << (row & 7)
    return bitmap


def microseconds(storage: bytearray, rows: cython.Py_ssize_t) -> bytearray:
    """Nanoseconds as microseconds, rounded down; what stands in a null's place means nothing."""
    times: cython.const[cython.longlong][::1] = memoryview(storage).cast("q")
    result = bytearray(8 * rows)
    micros: cython.longlong[::1] = memoryview(result).cast("q")
    row: cython.Py_ssize_t
    quotient: cython.longlong
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
