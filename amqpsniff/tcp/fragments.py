"""IP fragments until their packet is whole (RFC 791 §3.2, RFC 8200 §4.5).

A rare path: TCP avoids fragments, tunnels and odd MTUs make some. Of overlapping fragments the
first one captured wins, byte by byte. Fragments cut by a snap length count with their length on
the wire; the packet then ends, as captured, where the first byte is missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from .limits import NO_TIME, Limits

LARGEST_PACKET = 65_535


class Whole(NamedTuple):
    """A packet's payload put together: bytes as far as captured, its length on the wire."""

    octets: bytes
    length: int
    protocol: int


class _Partial:
    """The fragments of one packet: disjoint ranges in order; `length` is -1 while not known."""

    __slots__ = ("first_ns", "starts", "ends", "pieces", "length", "protocol", "held")

    def __init__(self, first_ns: int) -> None:
        self.first_ns = first_ns
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.pieces: list[bytes] = []
        self.length = -1
        self.protocol = -1
        self.held = 0

    def add(self, start: int, end: int, octets: bytes) -> None:
        """Take what of `start` to `end` is not there yet; `octets` may be shorter than that."""
        if not self.ends or start >= self.ends[-1]:
            self.starts.append(start)
            self.ends.append(end)
            self.pieces.append(octets[: end - start])
            self.held += len(self.pieces[-1])
            return
        index = bisect_right(self.starts, start)
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

    def whole(self) -> Whole | None:
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


class Fragments:
    """Fragments in, payloads of whole packets out; bounded in packets, bytes and capture time.

    `count` is the number of fragments seen, `dropped` the number of packets given up.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.count = 0
        self.dropped = 0
        self._held = 0
        self._partials: OrderedDict[Hashable, _Partial] = OrderedDict()

    def add(
        self,
        key: Hashable,
        protocol: int,
        offset: int,
        last: bool,
        octets: bytes,
        length: int,
        ts_ns: int,
    ) -> Whole | None:
        """Take one fragment: `octets` of its payload captured, `length` on the wire.

        `key` names the packet (version, addresses, identification). Gives the packet's payload when
        this was the last fragment missing.
        """
        self.count += 1
        self._expire(ts_ns)
        if length <= 0 or offset + length > LARGEST_PACKET:
            return None
        partial = self._partials.get(key)
        if partial is None:
            partial = self._partials[key] = _Partial(ts_ns)
        before = partial.held
        partial.add(offset, offset + length, octets)
        if last and partial.length < 0:
            partial.length = offset + length
        if offset == 0 and partial.protocol < 0:
            partial.protocol = protocol
        self._held += partial.held - before
        whole = partial.whole()
        if whole is not None:
            self._forget(key)
        elif len(partial.starts) >= self.limits.fragments_per_packet:
            self.dropped += 1
            self._forget(key)
        most, most_bytes = self.limits.fragmented_packets, self.limits.fragment_bytes
        while self._partials and (len(self._partials) > most or self._held > most_bytes):
            self._drop()
        return whole

    def _forget(self, key: Hashable) -> None:
        self._held -= self._partials.pop(key).held

    def _expire(self, ts_ns: int) -> None:
        while self._partials and ts_ns != NO_TIME:
            first_ns = self._partials[next(iter(self._partials))].first_ns
            if first_ns != NO_TIME and ts_ns - first_ns <= self.limits.fragment_ns:
                return
            self._drop()

    def _drop(self) -> None:
        """Give up the oldest packet."""
        self.dropped += 1
        self._held -= self._partials.popitem(last=False)[1].held
