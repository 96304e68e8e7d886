"""Beginnings that were captured out of order: the handshake after what follows it.

A conversation whose first segment captured has no SYN began before the capture, or its SYN comes
late. Where that segment looks like the begin of a connection, segments wait for a moment in a
`PendingConversation` (see `Limits`), until it is known who opened the conversation and where both
streams begin.
Where nothing tells, a stream begins with the lowest of its bytes that are there. So do the
segments of a responder whose answer to the SYN is still to come. A rare path, so plain Python.

What looks otherwise does not wait: when it belongs to a connection that began before the capture,
as it mostly does, its rows would come behind those of others, and what it published would not be
there when another one delivers it. Of 424 captures that begin at any packet of seven, 59 lost links
between connections that way, and 4 where only channel.open waits.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import NamedTuple

from .codes import ACK, ACKNOWLEDGED, FLAGS, LENGTH, MASK, SEQ, SYN
from .limits import NEVER, Limits

_FIRST_BYTES = (b"AMQP", b"PROXY ", b"\x16\x03")
"""A protocol header (some write it in small letters), what a proxy says first, a TLS handshake."""

_CONNECTION_CLASS = b"\x00\x0a"


class KeptSegment(NamedTuple):
    """A segment that waits: its key, its row, the bytes captured of its payload.

    `place`: how many segments came before it, of all conversations.
    """

    key: bytes
    row: array[int]
    octets: bytes
    number: int
    ts_ns: int
    place: int


class PendingConversations:
    """Pending conversations by key, and in the order of their deadlines."""

    __slots__ = ("limits", "by_key", "queue")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.by_key: dict[bytes, PendingConversation] = {}
        self.queue: deque[PendingConversation] = deque()

    def __len__(self) -> int:
        return len(self.queue)

    @property
    def full(self) -> bool:
        """True if there can be no more."""
        return len(self.queue) >= self.limits.joining_conversations

    @property
    def deadline_ns(self) -> int:
        """When the first one goes on."""
        return self.queue[0].deadline_ns if self.queue else NEVER

    def make(self, keys: tuple[bytes, bytes], serial: int, deadline_ns: int) -> PendingConversation:
        """A new pending conversation."""
        pending = PendingConversation(keys, serial, self.limits.closed_near_bytes, deadline_ns)
        for key in keys:
            self.by_key[key] = pending
        self.queue.append(pending)
        return pending

    def remove(self, pending: PendingConversation) -> None:
        """Forget a pending conversation."""
        for key in pending.keys:
            del self.by_key[key]
        self.queue.remove(pending)


class PendingConversation:
    """Segments of one conversation that wait; `keys`: those of its two directions.

    `serial` is that of the conversation; it goes on at `deadline_ns` at the latest. `near`: bytes
    within which segments of one stream are.
    """

    __slots__ = ("keys", "serial", "near", "deadline_ns", "segments", "octets")

    def __init__(self, keys: tuple[bytes, bytes], serial: int, near: int, deadline_ns: int) -> None:
        self.keys = keys
        self.near = near
        self.serial = serial
        self.deadline_ns = deadline_ns
        self.segments: list[KeptSegment] = []
        self.octets = 0

    def add(self, segment: KeptSegment, limits: Limits) -> bool:
        """Let a segment wait; whether there is nothing more to wait for, or no more room."""
        self.segments.append(segment)
        self.octets += len(segment.octets)
        full = len(self.segments) >= limits.joining_segments or self.octets > limits.joining_bytes
        return full or all(self._known(*way) is not None for way in self._ways())

    def fits(self, key: bytes, seq: int, acknowledged: int, flags: int) -> bool:
        """True if segments that wait can belong to a SYN; if not, endpoints are used again."""
        isns = {key: seq}
        if flags & ACK:
            isns[self.keys[self.keys[0] == key]] = (acknowledged - 1) & MASK
        return all(self._follows(segment, isns) for segment in self.segments)

    def _follows(self, segment: KeptSegment, isns: dict[bytes, int]) -> bool:
        """True if a segment is of a conversation with these initial numbers, where known."""
        row = segment.row
        isn, other = isns.get(segment.key), isns.get(self.keys[self.keys[0] == segment.key])
        if isn is not None and not self._near(row[SEQ], isn, row[FLAGS]):
            return False
        return other is None or not row[FLAGS] & ACK or self._near(row[ACKNOWLEDGED], other, 0)

    def _near(self, number: int, isn: int, flags: int) -> bool:
        """True if a number is that of a SYN, or not far behind it."""
        if flags & SYN:
            return number == isn
        return (number - isn - 1) & MASK <= self.near

    def arranged(self) -> list[KeptSegment]:
        """The segments, those with a SYN first, its answer after it."""
        return sorted(self.segments, key=_turn)

    def first_key(self) -> bytes:
        """The direction of the side that opened the conversation."""
        first = self.arranged()[0]
        answers = _turn(first) == 1
        return self.keys[self.keys[0] == first.key] if answers else first.key

    def starts(self) -> dict[bytes, int]:
        """The sequence number of the first byte of each direction, where anything tells."""
        found = {}
        for key, back in self._ways():
            start = self._known(key, back)
            if start is None:
                start = self._lowest(key, back)
            if start is not None:
                found[key] = start
        return found

    def _ways(self) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
        one, other = self.keys
        return (one, other), (other, one)

    def _isn(self, key: bytes) -> int | None:
        """A direction's initial sequence number: from its SYN, or from the answer to it."""
        for segment in self.segments:
            if segment.key == key and _turn(segment) < 2:
                return segment.row[SEQ]
            if segment.key != key and _turn(segment) == 1:
                return (segment.row[ACKNOWLEDGED] - 1) & MASK
        return None

    def _known(self, key: bytes, back: bytes) -> int | None:
        """Where a direction begins, as a SYN says or what the other side sends after its own."""
        isn = self._isn(key)
        if isn is not None:
            return (isn + 1) & MASK
        other = self._isn(back)
        if other is None:
            return None
        for segment in self.segments:
            row = segment.row
            if segment.key == back and row[FLAGS] & (ACK | SYN) == ACK:
                if row[SEQ] == (other + 1) & MASK:
                    return row[ACKNOWLEDGED]
        return None

    def _lowest(self, key: bytes, back: bytes) -> int | None:
        """The lowest sequence number of bytes near those of a direction's first segment.

        Of a direction that has none, what the other side acknowledges.
        """
        numbers = [one.row[SEQ] for one in self.segments if one.key == key and one.row[LENGTH] > 0]
        if not numbers:
            numbers = [
                one.row[ACKNOWLEDGED]
                for one in self.segments
                if one.key == back and one.row[FLAGS] & ACK
            ]
        if not numbers:
            return None
        behind = [(numbers[0] - number) & MASK for number in numbers]
        return (numbers[0] - max(less for less in behind if less <= self.near)) & MASK


def _turn(segment: KeptSegment) -> int:
    """0 for a SYN, 1 for the answer to one, 2 for others."""
    flags = segment.row[FLAGS]
    return 2 if not flags & SYN else 1 if flags & ACK else 0


def begins(octets: bytes, start: int, captured: int) -> bool:
    """True if a segment's payload looks like one of the first of a connection.

    A protocol header, a method of class connection on channel 0, a TLS handshake.
    """
    first = octets[start : start + min(captured, 16)]
    return first.upper().startswith(_FIRST_BYTES) or (
        first[:3] == b"\x01\x00\x00" and first[7:9] == _CONNECTION_CLASS
    )
