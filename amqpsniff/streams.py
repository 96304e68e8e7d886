"""Connections whose bytes come without packets, by the key that the caller gives them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

from amqpsniff.capture.packets import NO_TIME
from amqpsniff.decode.preamble import may_open

AMQP_PORT = 5672

Key: TypeAlias = str | tuple[str, str]
Call: TypeAlias = tuple[bytes, int, int]  # bytes, number and time of a call


def connection_id_of(key: Key) -> str:
    """The 16 hex digits that stand in `connection_id` for a key of `Engine.feed_bytes`."""
    name = key if isinstance(key, str) else "\n".join(key)
    return blake2b(name.encode(errors="surrogatepass"), digest_size=8).hexdigest()


class Streams:
    """Connections whose bytes come without packets: their places in the decoder, by key."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder
        self._slots: dict[Key, int] = {}
        self._open: dict[int, Stream] = {}
        self._begins: dict[Key, list[Call]] = {}  # too short to tell what begins
        self._free: list[int] = []

    def data(self, key: Key, way: int, octets: bytes, number: int, ts_ns: int) -> None:
        """The next bytes of one direction."""
        if way or key in self._slots:
            self._feed(self._place(key), way, octets, number, ts_ns)
            return
        calls = self._begins.setdefault(key, [])
        calls.append((octets, number, ts_ns))
        began = may_open(b"".join(call[0] for call in calls))
        if began is not None:
            self._place(key, began)

    def gap(self, key: Key, way: int, missing: int, number: int, ts_ns: int) -> None:
        """The next bytes of one direction are missing."""
        slot = self._place(key)
        self._open[slot].lost(way, missing, number, ts_ns)
        self._decoder.gap(slot, way, missing, number, ts_ns)

    def _feed(self, slot: int, way: int, octets: bytes, number: int, ts_ns: int) -> None:
        self._open[slot].saw(way, len(octets), number, ts_ns)
        self._decoder.data(slot, way, octets, number, ts_ns)

    def _place(self, key: Key, began: bool | None = None) -> int:
        """The slot of a connection, which is opened when it is new."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = self._free.pop() if self._free else len(self._open)
            calls = self._begins.pop(key, [])
            stream = self._open[slot] = Stream(key, bool(calls) if began is None else began)
            self._decoder.open(slot, stream)
            for octets, number, ts_ns in calls:
                self._feed(slot, 0, octets, number, ts_ns)
        return slot

    def close(self, key: Key) -> None:
        if key in self._begins:
            self._place(key)
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._decoder.close(slot)
            self._free.append(slot)

    def close_all(self) -> None:
        for key in [*self._slots, *self._begins]:
            self.close(key)


class Stream:
    """What the decoder wants to know of a conversation (`amqpsniff.tcp.Conversation`).

    All that is public there is here, but for sequence numbers and what names captured packets.
    """

    def __init__(self, key: Key, began: bool) -> None:
        self.connection_id = connection_id_of(key)
        ends: tuple[str | None, str | None] = (None, None) if isinstance(key, str) else key
        self.a, self.b = ends
        self.ports = (0, AMQP_PORT)  # the caller says that direction 1 is the server's
        self.syn_seen = began
        self.first_packet_number: int | None = None
        self.last_packet_number: int | None = None
        self.start_ns = self.end_ns = NO_TIME
        self.ended = self.ended_by = None  # of TCP's end nothing is known
        self.ended_ns, self.ended_packet_number = -1, 0
        self.reset_by_stranger, self.unreachable = False, -1
        self.over_ns = self.reset_ns = -1
        self.packets, self.octets, self.gaps, self.lost_bytes = [0, 0], [0, 0], [0, 0], [0, 0]
        self.retransmissions = self.cut_bytes = self.awaited_acks = self.acked = (0, 0)
        self.owed = self.unacknowledged = (False, False)  # the caller gives every byte at once
        self.last_times_ns = [NO_TIME, NO_TIME]
        self.impaired = True  # it may be: the counts above tell
        self.zero_windows, self.tls = (None, None), None
        self.starts = (0, 0)  # whoever gives bytes has a connection

    def saw(self, way: int, octets: int, number: int, ts_ns: int) -> None:
        self.packets[way] += number != self.last_packet_number  # a call may come in pieces
        self._at(number, ts_ns)
        self.last_times_ns[way] = ts_ns
        self.octets[way] += octets

    def _at(self, number: int, ts_ns: int) -> None:
        if self.first_packet_number is None:
            self.first_packet_number, self.start_ns = number, ts_ns
        self.last_packet_number, self.end_ns = number, ts_ns

    def lost(self, way: int, octets: int, number: int, ts_ns: int) -> None:
        self._at(number, ts_ns)
        self.gaps[way] += 1
        self.lost_bytes[way] += octets
