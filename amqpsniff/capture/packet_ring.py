# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""A ring of blocks in memory shared with the kernel, which writes an interface's packets into it.

The kernel fills a block with packets, hands it over when it is full or `RETIRE_MS` old, and
continues with the next; if all wait to be read it counts the packets that it drops. Before each
batch of packets all finished blocks are copied and returned, so the ring has to last for one batch
only, and packets that are decoded too slowly wait in copies. The caller owns the socket.

A block is a header, then packets one after the other, each with its time, lengths, and a link-level
address that says on which interface and which way it went. Blocks become rows of a batch without
copying a packet. Numbers are in the machine's byte order, which is little-endian where the ring is
used; lengths that a header gives are checked all the same.

Sources: linux/Documentation/networking/packet_mmap.rst (TPACKET_V3),
linux/include/uapi/linux/if_packet.h.
"""

from __future__ import annotations

import mmap
import select
import socket
import struct
import sys
from array import array
from collections import deque
from collections.abc import Iterator

import cython
from cython.cimports.amqpsniff.link_types import LINK_ETHERNET, LINK_RAW

from amqpsniff.capture.packets import PacketBatch, PacketRows
from amqpsniff.errors import CaptureError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


BLOCK_BYTES = 1 << 18
"""A block must hold the largest packet, 65,550 bytes on loopback. The kernel hands over a block
that is not full too, so the ring holds traffic of at most `RETIRE_MS` times its blocks, however
little that is: blocks are to be small."""

BUFFER_BYTES = 64 << 20
"""Default size of ring and copies: half a second of traffic at 1 Gbit/s; time for a slow disk or a
reader that stops."""

RING_PART = 4
"""The ring has the size of the buffer divided by this. With a broker at full load on the same two
cores, at most 26 of its 64 blocks waited for a batch, and 35 beside ten busy processes."""

MIN_BLOCKS = 4

BLOCKS_AT_ONCE = 32
"""Blocks read before the caller gets control, to handle a key that was pressed, for example."""

RETIRE_MS = 40
"""Age at which the kernel hands over a block that is not full: rows come this much later."""

_SOL_PACKET = 263
_RX_RING, _STATISTICS, _VERSION, _RESERVE = 5, 6, 10, 12
_TPACKET_V3 = 2
_FRAME_BYTES = 1 << 11
_USER = 1
_MIN_PACKET_BYTES = 80

_LOOPBACK = cython.declare(cython.int, 772)
_OUTGOING = cython.declare(cython.int, 4)
_VLAN_VALID = cython.declare(cython.int, 0x10)
_VLAN_TPID_VALID = cython.declare(cython.int, 0x40)
_SECOND = cython.declare(cython.longlong, 1_000_000_000)
# Offsets within a packet's header, and within the address that follows it.
_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 68)
_ADDRESS = cython.declare(cython.Py_ssize_t, 48)

VLAN_BYTES = 4
"""Bytes of a VLAN tag, which the kernel is asked to leave room for before each packet."""


class Ring:
    """The packets of one packet socket, as batches."""

    def __init__(self, capture: str, socket_: socket.socket, octets: int = BUFFER_BYTES) -> None:
        if sys.byteorder != "little":
            raise CaptureError(
                f"{capture}: capturing needs a little-endian machine; "
                "use `tcpdump -U -w - | amqpsniff live -`"
            )
        self.capture = capture
        self.socket = socket_
        self.packets = 0
        self._blocks = max(MIN_BLOCKS, octets // RING_PART // BLOCK_BYTES)
        self._next = 0
        self._copies: deque[bytearray] = deque()
        self._room = octets - self._blocks * BLOCK_BYTES
        self._memory, self._view = self._share()
        self._status = self._view.cast("I")
        self._poll = select.poll()
        self._poll.register(socket_, select.POLLIN | select.POLLERR)

    def _share(self) -> tuple[mmap.mmap, memoryview]:
        size = self._blocks * BLOCK_BYTES
        frames = size // _FRAME_BYTES
        request = (BLOCK_BYTES, self._blocks, _FRAME_BYTES, frames, RETIRE_MS, 0, 0)
        try:
            self.socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
            self.socket.setsockopt(_SOL_PACKET, _RESERVE, VLAN_BYTES)
            self.socket.setsockopt(_SOL_PACKET, _RX_RING, struct.pack("7I", *request))
            memory = mmap.mmap(self.socket.fileno(), size)
        except OSError as error:
            raise CaptureError(
                f"{self.capture}: no ring of {size >> 20} MB for packets ({error.strerror}); give "
                "a smaller buffer"
            ) from None
        return memory, memoryview(memory)

    def fileno(self) -> int:
        """The socket's descriptor, for `select`."""
        return self.socket.fileno()

    def take(self, max_packets: int) -> Iterator[tuple[PacketBatch, array[int]]]:
        """Batches of the available packets, with a maximum, and the interface of each packet.

        At most `BLOCKS_AT_ONCE` blocks are read, however quickly more of them come.
        """
        blocks_left = BLOCKS_AT_ONCE
        while max_packets > 0 and blocks_left and self._empty():
            blocks_left -= 1
            packets = self._packets(self._copies.popleft(), max_packets)
            if packets is not None:
                max_packets -= len(packets[0])
                yield packets

    def _empty(self) -> bool:
        """Copy blocks that are full and give them back to the kernel, as long as there is room;
        True if there is a copy.
        """
        status = self._status
        while self._room > 0 and status[(self._next * BLOCK_BYTES + 8) // 4] & _USER:
            begin = self._next * BLOCK_BYTES
            _, used = _block_bytes(self._view, begin)
            copy = bytearray(self._view[begin : begin + min(used, BLOCK_BYTES)])
            status[(begin + 12) // 4] = 0
            status[(begin + 8) // 4] = 0
            self._next = (self._next + 1) % self._blocks
            self._room -= len(copy)
            self._copies.append(copy)
        return bool(self._copies)

    def _packets(self, block: bytearray, max_packets: int) -> tuple[PacketBatch, array[int]] | None:
        """The packets of a block, at most `max_packets`; None if it has none."""
        self._room += len(block)
        packet_count = min(_block_bytes(block, 0)[0], BLOCK_BYTES // _MIN_PACKET_BYTES)
        rows = PacketRows(0)
        while rows.capacity < packet_count:
            rows.grow()
        interfaces = array("q", bytes(8 * max(packet_count, 1)))
        count = _walk(block, 0, len(block), self.packets + 1, max_packets, rows, interfaces)
        self.packets += count
        if not count:
            return None
        return rows.batch(self.capture, bytes(block), count), interfaces

    @property
    def held(self) -> bool:
        """True if the kernel still fills a block that has packets."""
        return self._status[(self._next * BLOCK_BYTES + 12) // 4] > 0

    def statistics(self) -> tuple[int, int]:
        """(packets received, packets dropped for want of room) since the last call."""
        octets = self.socket.getsockopt(_SOL_PACKET, _STATISTICS, 12)
        received, dropped, _ = struct.unpack("3I", octets)
        return received, dropped

    def error(self) -> int:
        """The socket's error since the last call, 0 for none: ENETDOWN when its interface went."""
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def close(self) -> None:
        """Give the memory back; the socket is its owner's to close."""
        self._status.release()
        self._view.release()
        self._memory.close()


def index_of(name: str) -> int:
    """The kernel's index of an interface; 0 for an unknown name."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


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


@cython.cfunc
def _block_bytes(ring: cython.uchar[::1], begin: cython.Py_ssize_t) -> tuple:
    """(packets, bytes used) of the block that begins at an offset of the ring."""
    return _u32(ring, begin + 12), _u32(ring, begin + 20)


@cython.cfunc
@cython.exceptval(-1, check=True)
def _walk(
    ring: cython.uchar[::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    first: cython.longlong,
    max_packets: cython.longlong,
    rows: Any,
    interfaces: cython.longlong[::1],
) -> cython.longlong:
    """Fill rows with the packets of the block `begin` to `end`; returns their number.

    Packets are numbered from `first`, at most `max_packets` are taken; `start` is counted from
    `begin`, and `interfaces` has the kernel's index of each packet's interface. `rows` and
    `interfaces` have room for all. Packets that a loopback interface sends are left out: each comes
    once more, as received.
    """
    numbers: cython.longlong[::1] = rows.number
    ts_ns: cython.longlong[::1] = rows.ts_ns
    starts: cython.longlong[::1] = rows.start
    captured: cython.longlong[::1] = rows.captured
    original: cython.longlong[::1] = rows.original
    link_type: cython.longlong[::1] = rows.link_type
    packets_left: cython.longlong = _u32(ring, begin + 12)
    at: cython.Py_ssize_t = begin + _u32(ring, begin + 16)
    row: cython.longlong = 0
    start: cython.Py_ssize_t
    size: cython.longlong
    original_bytes: cython.longlong
    kind: cython.int
    status: cython.int
    tag_kind: cython.int

    while packets_left > 0 and row < max_packets and at + _HEADER_BYTES <= end:
        packets_left -= 1
        kind = _u16(ring, at + _ADDRESS + 8)
        if kind != _LOOPBACK or ring[at + _ADDRESS + 10] != _OUTGOING:
            size = _u32(ring, at + 12)
            original_bytes = _u32(ring, at + 16)
            start = at + _u16(ring, at + 24)
            if kind == _LOOPBACK or kind == 1:
                link_type[row] = LINK_ETHERNET
                status = cython.cast(cython.int, _u32(ring, at + 20))
                if status & _VLAN_VALID and size >= 12:
                    tag_kind = _u16(ring, at + 36) if status & _VLAN_TPID_VALID else 0x8100
                    _put_tag(ring, start, cython.cast(cython.int, _u32(ring, at + 32)), tag_kind)
                    start -= 4
                    size += 4
                    original_bytes += 4
            else:
                link_type[row] = LINK_RAW
                status = _u16(ring, at + 26) - _u16(ring, at + 24)
                if 0 < status <= size:
                    start += status
                    size -= status
                    original_bytes -= status
            if size < 0 or start + size > end:
                break
            numbers[row] = first + row
            ts_ns[row] = _u32(ring, at + 4) * _SECOND + _u32(ring, at + 8)
            starts[row] = start - begin
            captured[row] = size
            original[row] = original_bytes
            interfaces[row] = _u32(ring, at + _ADDRESS + 4)
            row += 1
        if _u32(ring, at) == 0:
            break
        at += _u32(ring, at)
    return row
