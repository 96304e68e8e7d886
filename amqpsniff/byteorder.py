"""Big-endian numbers out of bytes. Only `checked_u32` checks bounds; other callers have done so.

Compiled modules have these from `byteorder.pxd`, where each is one load. C compilers make no such
thing of an expression that indexes a memoryview for every byte.
"""

from __future__ import annotations

from collections.abc import Sequence

ByteView = Sequence[int]
"""Bytes to read by index: bytes, or a view of them."""


def u16(octets: ByteView, at: int) -> int:
    """Unsigned 16-bit integer in network order."""
    return octets[at] << 8 | octets[at + 1]


def u32(octets: ByteView, at: int) -> int:
    """Unsigned 32-bit integer in network order."""
    return u16(octets, at) << 16 | u16(octets, at + 2)


def u32_little(octets: ByteView, at: int) -> int:
    """Unsigned 32-bit integer, least byte first."""
    return octets[at + 3] << 24 | octets[at + 2] << 16 | octets[at + 1] << 8 | octets[at]


def u32_in(octets: ByteView, at: int, big: bool) -> int:
    """Unsigned 32-bit integer in network order if `big`, else least byte first."""
    return u32(octets, at) if big else u32_little(octets, at)


def checked_u32(octets: ByteView, at: int, big: bool) -> int:
    """The same; IndexError where it is not in the bytes."""
    if at < 0 or at + 4 > len(octets):
        raise IndexError("a number outside the bytes")
    return u32_in(octets, at, big)


def i64(octets: ByteView, at: int) -> int:
    """Signed 64-bit integer in network order."""
    value = u32(octets, at) << 32 | u32(octets, at + 4)
    return value - (value >> 63 << 64)
