# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""IP fragments until their packet is whole (RFC 791 §3.2, RFC 8200 §4.5).

TCP avoids fragments, tunnels and odd MTUs make some; an attacker may send nothing else. Of
overlapping fragments the first one captured wins, byte by byte. Fragments cut by a snap length
count with their length on the wire; the packet then ends, as captured, where the first byte is
missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.tcp.limits import NO_TIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .limits import Limits

LARGEST_PACKET = 65_535


class Whole(NamedTuple):
    """A packet's payload put together: bytes as far as captured, its length on the wire."""

    octets: bytes
    length: int
    protocol: int


@cython.cclass
class _Partial:
    """The fragments of one packet: disjoint ranges in order; `length` is -1 while unknown."""

    first_ns: cython.longlong
    starts: list[Any]
    ends: list[Any]
    pieces: list[Any]
    length: cython.longlong
    protocol: cython.int
    held: cython.longlong

    def __init__(self, first_ns: cython.longlong) -> None:
        self.first_ns = first_ns
        self.starts = []
        self.ends = []
        self.pieces = []
        self.length = -1
        self.protocol = -1
        self.held = 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def add(self, start: cython.longlong, end: cython.longlong, octets: bytes) -> cython.int:
        """Take what of `start` to `end` is not there yet; `octets` may be shorter than that."""
        piece: bytes
        position: cython.longlong
        following: cython.longlong
        stop: cython.longlong
        if not self.ends or start >= self.ends[len(self.ends) - 1]:
            piece = octets[: end - start]
            self.starts.append(start)
            self.ends.append(end)
            self.pieces.append(piece)
            self.held += len(piece)
            return 0
        index: cython.Py_ssize_t = bisect_right(self.starts, start)
        if index and self.ends[index - 1] > start:
            index -= 1
        position = start
        while position < end:
            following = self.starts[index] if index < len(self.starts) else end
            if following > position:
                stop = min(following, end)
                piece = octets[position - start : stop - start]
                self.starts.insert(index, position)
                self.ends.insert(index, stop)
                self.pieces.insert(index, piece)
                self.held += len(piece)
                index += 1
                position = stop
            else:
                position = max(position, self.ends[index])
                index += 1
        return 0

    @cython.cfunc
    def whole(self) -> Any:
        """The packet, if no byte is missing."""
        if self.length < 0 or self.protocol < 0:
            return None
        position = 0
        captured: list[bytes] = []
        cut = False
        for start, end, piece in zip(self.starts, self.ends, self.pieces, strict=True):
            if start != position:
                return None
            if not cut:
                captured.append(piece)
                cut = len(piece) < end - start
            position = end
        if position < self.length:
            return None
        return Whole(b"".join(captured)[: self.length], self.length, self.protocol)


@cython.cclass
class Fragments:
    """Fragments in, payloads of whole packets out; bounded in packets, bytes and capture time.

    `count` is the number of fragments seen, `dropped` the number of packets given up.
    """

    count = cython.declare(cython.longlong, visibility="readonly")
    dropped = cython.declare(cython.longlong, visibility="readonly")
    max_packets: cython.longlong
    max_bytes: cython.longlong
    max_pieces: cython.longlong
    max_ns: cython.longlong
    held: cython.longlong
    partials: Any

    def __init__(self, limits: Limits) -> None:
        self.max_packets, self.max_bytes = limits.fragmented_packets, limits.fragment_bytes
        self.max_pieces, self.max_ns = limits.fragments_per_packet, limits.fragment_ns
        self.count = self.dropped = self.held = 0
        self.partials = OrderedDict()

    def add(
        self,
        key: Any,
        protocol: cython.int,
        offset: cython.longlong,
        last: cython.bint,
        octets: bytes,
        length: cython.longlong,
        ts_ns: cython.longlong,
    ) -> Any:
        """Take one fragment: `octets` of its payload captured, `length` on the wire.

        `key` names the packet (version, addresses, identification). Gives the packet's payload when
        this was the last fragment missing.
        """
        self.count += 1
        partial: _Partial
        self._expire(ts_ns)
        if length <= 0 or offset + length > LARGEST_PACKET:
            return None
        partial = self.partials.get(key)
        if partial is None:
            partial = self.partials[key] = _Partial(ts_ns)
        before: cython.longlong = partial.held
        partial.add(offset, offset + length, octets)
        if last and partial.length < 0:
            partial.length = offset + length
        if offset == 0 and partial.protocol < 0:
            partial.protocol = protocol
        self.held += partial.held - before
        datagram = partial.whole()
        if datagram is not None:
            self._forget(key)
        elif len(partial.starts) >= self.max_pieces:
            self.dropped += 1
            self._forget(key)
        while len(self.partials) > self.max_packets or (
            self.held > self.max_bytes and self.partials
        ):
            self._drop()
        return datagram

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _forget(self, key: Any) -> cython.int:
        partial: _Partial = self.partials.pop(key)
        self.held -= partial.held
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _expire(self, ts_ns: cython.longlong) -> cython.int:
        partial: _Partial
        while ts_ns != NO_TIME and self.partials:
            partial = self.partials[next(iter(self.partials))]
            if partial.first_ns != NO_TIME and ts_ns - partial.first_ns <= self.max_ns:
                return 0
            self._drop()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _drop(self) -> cython.int:
        """Give up the oldest packet."""
        partial: _Partial = self.partials.popitem(False)[1]
        self.dropped += 1
        self.held -= partial.held
        return 0
