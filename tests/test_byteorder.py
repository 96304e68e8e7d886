"""Numbers out of octets: what compiled modules load is what the plain functions say."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpsniff import byteorder

BYTES = st.binary(min_size=8, max_size=24)


@given(BYTES, st.integers(0, 16))
def test_numbers_are_those_of_struct(octets: bytes, at: int) -> None:
    at = min(at, len(octets) - 8)
    assert byteorder.u16(octets, at) == struct.unpack_from(">H", octets, at)[0]
    assert byteorder.u32(octets, at) == struct.unpack_from(">I", octets, at)[0]
    assert byteorder.u32_little(octets, at) == struct.unpack_from("<I", octets, at)[0]
    assert byteorder.i64(octets, at) == struct.unpack_from(">q", octets, at)[0]
    for big in (True, False):
        order = ">I" if big else "<I"
        assert byteorder.u32_in(octets, at, big) == struct.unpack_from(order, octets, at)[0]
        assert byteorder.checked_u32(octets, at, big) == struct.unpack_from(order, octets, at)[0]


def test_what_is_not_there_is_an_error() -> None:
    for at in (-1, 5):
        with pytest.raises(IndexError):
            byteorder.checked_u32(b"12345678", at, True)
