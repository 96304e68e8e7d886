# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The memory that columns are made of."""

import sys

import cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize  # type: ignore

NULL_INTEGER = -(2**63 - 1) - 1

PADDING_BYTES = 64
"""Bytes up to a multiple of which Arrow's streams have buffers."""

# Repeating one byte is quick, repeating eight is not: integers are copied from a block of nulls.
_NULLS_ROWS = 4096
_NULLS = NULL_INTEGER.to_bytes(8, sys.byteorder, signed=True) * _NULLS_ROWS


def null_integers(rows):
    """Storage of so many 64-bit nulls."""
    return bytearray().join([_NULLS] * (rows // _NULLS_ROWS) + [_NULLS[: 8 * (rows % _NULLS_ROWS)]])


def null_codes(rows):
    """Storage of so many 32-bit nulls, which are -1."""
    return bytearray(b"\xff") * (4 * rows)


def room_for(octets):
    """Storage of so many bytes, whatever they are: who gives it away seals it."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, octets)
    return bytearray(octets)


def sealed(storage, used):
    """Storage without what was in that memory before: Arrow sends some bytes behind the last."""
    behind = storage[used : used + PADDING_BYTES]
    storage[used : used + PADDING_BYTES] = bytes(len(behind))
    return storage
