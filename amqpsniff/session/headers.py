# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Headers of messages that rules are asked about, found without reading those of every message."""

import cython

from amqpsniff.session.rules.scene import LARGE_HEADERS_BYTES, MANY_TABLES

_MANY_TABLES = cython.declare(cython.int, MANY_TABLES)
_LARGE_HEADERS = cython.declare(cython.longlong, LARGE_HEADERS_BYTES)
_NONE = cython.declare(tuple, ())


def occasions_of(column, row):
    """The occasions of `rules.scene` that headers, a row of the column of their JSON, are."""
    start: cython.longlong = column.offsets[row]
    end: cython.longlong = column.offsets[row + 1]
    if end - start <= _LARGE_HEADERS and not _may_stand_out(column, start, end):
        return _NONE
    octets: bytes = column.bytes_of(row)
    occasions: list = []
    if b'"x-death"' in octets:
        occasions.append("dead-lettered")
    if b'"eta":"' in octets:
        occasions.append("to-be-done-later")
    if len(octets) > _LARGE_HEADERS or octets.count(b"{") + octets.count(b"[") > MANY_TABLES:
        occasions.append("large-headers")
    return tuple(occasions)


def _may_stand_out(column, start, end):
    """Whether headers are worth reading: many tables in them, or a name like one looked for."""
    tables: cython.int = 0
    at: cython.longlong
    octet: cython.int
    for at in range(start, end - 3):
        octet = column.octets[at]
        if octet == 0x22:  # a quote, and then `x-d` or `eta`
            octet = column.octets[at + 1]
            if octet == 0x78 and column.octets[at + 3] == 0x64:
                return True
            if octet == 0x65 and column.octets[at + 2] == 0x74 and column.octets[at + 3] == 0x61:
                return True
        elif octet == 0x7B or octet == 0x5B:
            tables += 1
    return tables > _MANY_TABLES
