# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Blocks of a pcapng file: read one after the other, and searched for after damage.

The scan runs over whole blocks and fills rows from the three kinds that carry packets. It stops at
section headers, interface descriptions, statistics and decryption secrets, which are read in plain
Python, at damage, and steps over every other kind.

The search finds where blocks begin again. There is no mark to look for, so a block has to prove
itself: it has the same length at both ends and holds what its kind asks for.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.byteorder import checked_u32

from amqpsniff.capture.packets import NO_TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Wireshark's own limit; a damaged length would otherwise make a reader wait for, and hold, 4 GiB.
MAX_BLOCK_BYTES = 1 << 24

# Blocks that a search believes: a packet is no longer (see `pcap`), and for a wrong one it waits.
MAX_FOUND_BYTES = 1 << 20

# The least packet of a Simple Packet Block that a search believes is an Ethernet header: small
# numbers in a row look like such a block without a packet.
MIN_SIMPLE_BYTES = 32

SECTION_HEADER = 0x0A0D0D0A
INTERFACE_DESCRIPTION = 1
INTERFACE_STATISTICS = 5
DECRYPTION_SECRETS = 0xA

# Records to Wireshark but not packets: systemd journal entries, custom blocks, sysdig events.
NUMBERED = frozenset((9, 0xBAD, 0x40000BAD, 0x204, 0x208, 0x216, 0x217, 0x221, 0x222))
READ = frozenset((INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, DECRYPTION_SECRETS)) | NUMBERED

# What a row of the interface table holds for the scan: link type, nanoseconds in a unit, upper half
# of a time from which 64 bits are not enough, offset in nanoseconds, snap length.
_PER_INTERFACE = cython.declare(cython.Py_ssize_t, 5)

# Why the scan stopped.
MORE, FULL, BLOCK, LENGTH, TRAILER, CAPTURED, NO_INTERFACE = range(7)


@cython.cfunc
@cython.exceptval(-2, check=True)
def _block_at(
    octets: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    big: cython.bint,
    known: cython.longlong,
    end: cython.Py_ssize_t,
) -> cython.longlong:
    """Bytes that a block takes which may begin here; 0 where none does, -1 where some are missing.

    `known` is how many interfaces there are, `end` where the bytes end.
    """
    kind: cython.longlong = checked_u32(octets, at, big)
    if not (kind == 10 or (0 < kind < 7 and kind != 4)):
        return 0
    length: cython.longlong = checked_u32(octets, at + 4, big)
    if length & 3 or not 20 <= length <= MAX_FOUND_BYTES:
        return 0
    if end - at < length:
        return -length
    if checked_u32(octets, at + length - 4, big) != length:
        return 0
    index: cython.longlong = checked_u32(octets, at + 8, big)
    if kind == 6 or kind == 2:
        if kind == 2:
            index = index >> 16 if big else index & 0xFFFF
        if length < 32 or index >= known or checked_u32(octets, at + 20, big) > length - 32:
            return 0
    elif kind == 5:
        if length < 24 or index >= known:
            return 0
    elif kind == 3 and (known == 0 or length < MIN_SIMPLE_BYTES):
        return 0
    return length


def find_block(
    octets: cython.const[cython.uchar][::1],
    order: str,
    known: cython.longlong,
    state: cython.longlong[::1],
    final: cython.bint,
) -> bool:
    """True if blocks begin again in the bytes; `state` is where, as in a scan.

    Where they do not, the search is to go on there with so many bytes at least; `final` says that
    there will be no more. Without a byte order only the header of a section is looked for; `known`
    is how many interfaces the present one has.
    """
    big: cython.bint = order == "big"
    inside: cython.bint = order != ""
    at: cython.Py_ssize_t = state[0]
    end: cython.Py_ssize_t = len(octets)
    needed: cython.longlong = 12
    length: cython.longlong
    magic: cython.longlong
    found: cython.bint = False
    while end - at >= 12:
        if octets[at] == 0x0A and checked_u32(octets, at, big) == 0x0A0D0D0A:
            magic = checked_u32(octets, at + 8, big)
            if magic == 0x1A2B3C4D or magic == 0x4D3C2B1A:
                found = True
                break
        if inside:
            length = _block_at(octets, at, big, known, end)
            if length > 0:
                found = True
                break
            if length < 0 and not final:
                needed = -length
                break
        at += 1
    state[0] = at
    state[1] = needed
    return found


def begins_block(
    octets: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, big: cython.bint
) -> bool:
    """True if the twelve bytes from `at` on may be the begin of a block of a known kind."""
    if at + 12 > len(octets):
        return False
    kind: cython.longlong = checked_u32(octets, at, big)
    length: cython.longlong = checked_u32(octets, at + 4, big)
    if kind == 0x0A0D0D0A:
        return True
    return (0 < kind < 7 or kind in READ) and 12 <= length <= MAX_BLOCK_BYTES


def scan_blocks(
    octets: cython.const[cython.uchar][::1],
    big: cython.bint,
    table: cython.longlong[::1],
    interfaces: list[Any],
    state: cython.longlong[::1],
    row: cython.Py_ssize_t,
    rows: Any,
) -> cython.Py_ssize_t:
    """Fill rows from `row` on until bytes, rows or sense end, or a block is to be read.

    `table` has what is to be known of each interface. `state` is the position, the bytes needed
    from there on (of a block that is whole, its bytes), why the scan stopped, the kind of the
    block there, the last packet's number. Returns the next row.
    """
    numbers: cython.longlong[::1] = rows.number
    ts_ns: cython.longlong[::1] = rows.ts_ns
    start: cython.longlong[::1] = rows.start
    captured: cython.longlong[::1] = rows.captured
    original: cython.longlong[::1] = rows.original
    link_type: cython.longlong[::1] = rows.link_type
    capacity: cython.Py_ssize_t = len(numbers)
    end: cython.Py_ssize_t = len(octets)
    known: cython.longlong = len(interfaces)
    limit: cython.longlong = MAX_BLOCK_BYTES
    no_time: cython.longlong = NO_TIME
    position: cython.Py_ssize_t = state[0]
    last: cython.longlong = state[4]
    needed: cython.longlong = 12
    why: cython.longlong = MORE
    kind: cython.longlong = 0
    length: cython.longlong
    padded: cython.longlong
    header: cython.Py_ssize_t
    index: cython.longlong
    entry: cython.Py_ssize_t
    upper: cython.longlong
    lower: cython.longlong
    seen: cython.longlong
    whole: cython.longlong
    moment: cython.longlong

    while end - position >= 12:
        kind = checked_u32(octets, position, big)
        if kind == 0x0A0D0D0A:
            needed = 12
            why = BLOCK
            break
        length = checked_u32(octets, position + 4, big)
        if length < 12 or length > limit:
            why = LENGTH
            break
        padded = (length + 3) // 4 * 4
        if end - position < padded:
            needed = padded
            break
        if checked_u32(octets, position + padded - 4, big) != length:
            why = TRAILER
            break
        if kind == 6 or kind == 2:
            if row == capacity:
                why = FULL
                break
            header = 28
            if length < 32:
                why = CAPTURED
                break
            index = checked_u32(octets, position + 8, big)
            if kind == 2:
                index = index >> 16 if big else index & 0xFFFF
            seen = checked_u32(octets, position + 20, big)
            whole = checked_u32(octets, position + 24, big)
            if index >= known:
                why = NO_INTERFACE
                break
            if seen > length - 32:
                why = CAPTURED
                break
            entry = index * _PER_INTERFACE
            upper = checked_u32(octets, position + 12, big)
            lower = checked_u32(octets, position + 16, big)
            if upper < table[entry + 2]:
                moment = (upper << 32 | lower) * table[entry + 1] + table[entry + 3]
            else:
                moment = interfaces[index].instant(upper, lower)
        elif kind == 3:
            if row == capacity:
                why = FULL
                break
            header = 12
            if length < 16:
                why = CAPTURED
                break
            if known == 0:
                why = NO_INTERFACE
                break
            entry = 0
            moment = no_time
            whole = checked_u32(octets, position + 8, big)
            seen = length - 16
            seen = min(seen, whole)
            if table[4] != 0:
                seen = min(seen, table[4])
        else:
            if kind in READ:
                needed = padded
                why = BLOCK
                break
            position += padded
            continue
        last += 1
        numbers[row] = last
        ts_ns[row] = moment
        start[row] = position + header
        captured[row] = seen
        original[row] = whole
        link_type[row] = table[entry]
        row += 1
        position += padded

    state[0] = position
    state[1] = needed
    state[2] = why
    state[3] = kind
    state[4] = last
    return row
