# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Blocks of packets that the kernel filled (TPACKET_V3), and blocks of a pcapng file.

The kernel hands over blocks of its ring: a header, then packets one after the other, each with its
time, lengths, and a link-level address that says on which interface and which way it went. `walk`
turns a block into rows of a batch, without copying a packet. `enhanced_packets` writes packets as
blocks of a pcapng file. Numbers are in the machine's byte order, which is little-endian where the
ring is used; lengths that a header gives are checked all the same.

Sources: linux/Documentation/networking/packet_mmap.rst, linux/include/uapi/linux/if_packet.h,
https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html section 4.3.
"""

from __future__ import annotations

import cython

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ETHERNET = 1
RAW_IP = 101
"""LINKTYPE_ values (https://www.tcpdump.org/linktypes.html): what a packet of an Ethernet-like
interface begins with, and of any other, of which only the IP packet is taken."""

_ETHERNET = cython.declare(cython.longlong, ETHERNET)
_RAW = cython.declare(cython.longlong, RAW_IP)
_LOOPBACK = cython.declare(cython.int, 772)
_OUTGOING = cython.declare(cython.int, 4)
_VLAN_VALID = cython.declare(cython.int, 0x10)
_VLAN_TPID_VALID = cython.declare(cython.int, 0x40)
_SECOND = cython.declare(cython.longlong, 1_000_000_000)
_MASK = cython.declare(cython.ulonglong, 0xFFFFFFFF)
# Offsets within a packet's header, and within the address that follows it.
_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 68)
_ADDRESS = cython.declare(cython.Py_ssize_t, 48)

VLAN_BYTES = 4
"""Bytes of a VLAN tag, which the kernel is asked to leave room for before each packet."""


@cython.cfunc
@cython.inline
def _u16(octets: cython.uchar[::1], at: cython.Py_ssize_t) -> cython.int:
    return octets[at] | octets[at + 1] << 8


@cython.cfunc
@cython.inline
def _u32(octets: cython.uchar[::1], at: cython.Py_ssize_t) -> cython.longlong:
    return (
        octets[at]
        | octets[at + 1] << 8
        | octets[at + 2] << 16
        | cython.cast(cython.longlong, octets[at + 3]) << 24
    )


@cython.cfunc
def _put_tag(
    ring: cython.uchar[::1], start: cython.Py_ssize_t, tag: cython.int, kind: cython.int
) -> cython.int:
    """Put a VLAN tag back behind the two addresses, which move to where room was left."""
    at: cython.Py_ssize_t
    for at in range(start, start + 12):
        ring[at - 4] = ring[at]
    ring[start + 8] = kind >> 8
    ring[start + 9] = kind & 0xFF
    ring[start + 10] = tag >> 8
    ring[start + 11] = tag & 0xFF
    return 0


def block_bytes(ring: cython.uchar[::1], begin: cython.Py_ssize_t) -> tuple[Any, ...]:
    """(packets, bytes used) of the block that begins at an offset of the ring."""
    return _u32(ring, begin + 12), _u32(ring, begin + 20)


def walk(
    ring: cython.uchar[::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    first: cython.longlong,
    most: cython.longlong,
    rows: Any,
    interfaces: cython.longlong[::1],
) -> cython.longlong:
    """Fill rows with the packets of the block `begin` to `end`; returns their number.

    Packets are numbered from `first`, at most `most` are taken; `start` is counted from `begin`,
    and `interfaces` has the kernel's index of each packet's interface. `rows` and `interfaces` have
    room for all. What a loopback interface sends is left out: it comes once more, as received.
    """
    numbers: cython.longlong[::1] = rows.number
    ts_ns: cython.longlong[::1] = rows.ts_ns
    starts: cython.longlong[::1] = rows.start
    captured: cython.longlong[::1] = rows.captured
    original: cython.longlong[::1] = rows.original
    link_type: cython.longlong[::1] = rows.link_type
    there: cython.longlong = _u32(ring, begin + 12)
    at: cython.Py_ssize_t = begin + _u32(ring, begin + 16)
    row: cython.longlong = 0
    start: cython.Py_ssize_t
    size: cython.longlong
    whole: cython.longlong
    kind: cython.int
    status: cython.int
    tag_kind: cython.int

    while there > 0 and row < most and at + _HEADER_BYTES <= end:
        there -= 1
        kind = _u16(ring, at + _ADDRESS + 8)
        if kind != _LOOPBACK or ring[at + _ADDRESS + 10] != _OUTGOING:
            size = _u32(ring, at + 12)
            whole = _u32(ring, at + 16)
            start = at + _u16(ring, at + 24)
            if kind == _LOOPBACK or kind == 1:
                link_type[row] = _ETHERNET
                status = cython.cast(cython.int, _u32(ring, at + 20))
                if status & _VLAN_VALID and size >= 12:
                    tag_kind = _u16(ring, at + 36) if status & _VLAN_TPID_VALID else 0x8100
                    _put_tag(ring, start, cython.cast(cython.int, _u32(ring, at + 32)), tag_kind)
                    start -= 4
                    size += 4
                    whole += 4
            else:
                link_type[row] = _RAW
                status = _u16(ring, at + 26) - _u16(ring, at + 24)
                if 0 < status <= size:
                    start += status
                    size -= status
                    whole -= status
            if size < 0 or start + size > end:
                break
            numbers[row] = first + row
            ts_ns[row] = _u32(ring, at + 4) * _SECOND + _u32(ring, at + 8)
            starts[row] = start - begin
            captured[row] = size
            original[row] = whole
            interfaces[row] = _u32(ring, at + _ADDRESS + 4)
            row += 1
        if _u32(ring, at) == 0:
            break
        at += _u32(ring, at)
    return row


@cython.cfunc
@cython.inline
def _put(target: cython.uchar[::1], at: cython.Py_ssize_t, value: cython.ulonglong) -> cython.int:
    target[at] = value & 0xFF
    target[at + 1] = value >> 8 & 0xFF
    target[at + 2] = value >> 16 & 0xFF
    target[at + 3] = value >> 24 & 0xFF
    return 0


def enhanced_packets(batch: Any, indices: cython.longlong[::1], out: Any) -> cython.longlong:
    """Write a batch as Enhanced Packet Blocks to a bytearray that has room; gives their bytes.

    `indices` are the places of each row's interface in the section. Times are written in ns.
    """
    octets: cython.const[cython.uchar][::1] = batch.octets
    target: cython.uchar[::1] = out
    source = memoryview(batch.octets)
    sink = memoryview(out)
    ts_ns: cython.longlong[::1] = batch.ts_ns
    starts: cython.longlong[::1] = batch.start
    captured: cython.longlong[::1] = batch.captured
    original: cython.longlong[::1] = batch.original
    first: cython.Py_ssize_t = batch.begin
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    octet: cython.Py_ssize_t
    length: cython.longlong
    moment: cython.ulonglong
    for row in range(first, batch.end):
        size = captured[row]
        length = 32 + (size + 3) // 4 * 4
        moment = ts_ns[row] if ts_ns[row] > 0 else 0
        _put(target, at, 6)
        _put(target, at + 4, length)
        _put(target, at + 8, indices[row - first])
        _put(target, at + 12, moment >> 32)
        _put(target, at + 16, moment & _MASK)
        _put(target, at + 20, size)
        _put(target, at + 24, original[row])
        at += 28
        if size <= 64:
            for octet in range(size):
                target[at + octet] = octets[starts[row] + octet]
        else:
            sink[at : at + size] = source[starts[row] : starts[row] + size]
        at += size
        while at % 4:
            target[at] = 0
            at += 1
        _put(target, at, length)
        at += 4
    return at
