"""A ring of blocks in memory shared with the kernel, which writes an interface's packets into it.

The kernel fills a block with packets, hands it over when it is full or `RETIRE_MS` old, and
continues with the next; if all wait to be read it counts the packets that it drops. Before each
batch of packets all finished blocks are copied and returned, so the ring has to last for one batch
only, and packets that are decoded too slowly wait in copies. The caller owns the socket.

Source: linux/Documentation/networking/packet_mmap.rst (TPACKET_V3).
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

from amqpsniff.capture.blocks import VLAN_BYTES, block_bytes, walk
from amqpsniff.capture.packets import PacketBatch, PacketRows
from amqpsniff.errors import CaptureError

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
"""Blocks read before there is time for something else, such as a key that was pressed."""

RETIRE_MS = 40
"""Age at which the kernel hands over a block that is not full: rows come this much later."""

_SOL_PACKET = 263
_RX_RING, _STATISTICS, _VERSION, _RESERVE = 5, 6, 10, 12
_TPACKET_V3 = 2
_FRAME_BYTES = 1 << 11
_USER = 1
_MIN_PACKET_BYTES = 80


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

    def take(self, most: int) -> Iterator[tuple[PacketBatch, array[int]]]:
        """Batches of the available packets, with a maximum, and the interface of each packet.

        At most `BLOCKS_AT_ONCE` blocks are read, however quickly more of them come.
        """
        left = BLOCKS_AT_ONCE
        while most > 0 and left and self._empty():
            left -= 1
            taken = self._packets(self._copies.popleft(), most)
            if taken is not None:
                most -= len(taken[0])
                yield taken

    def _empty(self) -> bool:
        """Copy blocks that are full and give them back to the kernel, as many as there is room for;
        True if any copy is there.
        """
        status = self._status
        while self._room > 0 and status[(self._next * BLOCK_BYTES + 8) // 4] & _USER:
            begin = self._next * BLOCK_BYTES
            _, used = block_bytes(self._view, begin)
            copy = bytearray(self._view[begin : begin + min(used, BLOCK_BYTES)])
            status[(begin + 12) // 4] = 0
            status[(begin + 8) // 4] = 0
            self._next = (self._next + 1) % self._blocks
            self._room -= len(copy)
            self._copies.append(copy)
        return bool(self._copies)

    def _packets(self, block: bytearray, most: int) -> tuple[PacketBatch, array[int]] | None:
        """The packets of a block, with a maximum; None for none."""
        self._room += len(block)
        there = min(block_bytes(block, 0)[0], BLOCK_BYTES // _MIN_PACKET_BYTES)
        rows = PacketRows(0)
        while rows.capacity < there:
            rows.grow()
        interfaces = array("q", bytes(8 * max(there, 1)))
        count = walk(block, 0, len(block), self.packets + 1, most, rows, interfaces)
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
