"""Handshakes that were captured after segments that follow them.

If the first segment of a conversation has no SYN, the conversation began before the capture, or its
SYN was captured late. A segment that may be the first with payload waits in a `PendingConversation`
for a short time (see `Limits`), with later ones, until the originator and the beginning of both
streams are known. If they stay unknown, a stream begins with its lowest captured byte. Segments of
a responder wait in the same way while its answer to the SYN is missing. A rare path, so plain
Python.

Other segments do not wait. Mostly they belong to a connection that began before the capture. Their
rows would come after those of other connections, so a delivery there would not find its publish. Of
424 captures that begin at any packet of seven, 59 lost links between connections that way, and 4 if
only channel.open waits.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import NamedTuple

from .codes import ACK, ACKNOWLEDGED, FLAGS, LENGTH, MASK, SEQ, SYN
from .limits import NEVER, Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .segment import Segment

_FIRST_BYTES = (b"AMQP", b"PROXY ", b"\x16\x03")
"""A protocol header (some write it in small letters), what a proxy says first, a TLS handshake."""

_CONNECTION_CLASS = b"\x00\x0a"


class KeptSegment(NamedTuple):
    """A segment that waits."""

    key: bytes  # of its direction, see `table.key_of`
    row: array[int]
    octets: bytes  # those captured of its payload
    number: int
    ts_ns: int
    segment_serial: int  # how many segments of all conversations were read, with this one


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
        """True if no more conversations fit."""
        return len(self.queue) >= self.limits.joining_conversations

    @property
    def deadline_ns(self) -> int:
        """The latest time at which the first conversation is opened."""
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
    """Segments of one conversation that wait."""

    __slots__ = ("keys", "serial", "near", "deadline_ns", "segments", "octets")

    def __init__(self, keys: tuple[bytes, bytes], serial: int, near: int, deadline_ns: int) -> None:
        self.keys = keys  # of its two directions
        self.near = near  # bytes within which segments of one stream are
        self.serial = serial  # of the conversation
        self.deadline_ns = deadline_ns  # it is opened at this time at the latest
        self.segments: list[KeptSegment] = []
        self.octets = 0

    def add(self, segment: KeptSegment, limits: Limits) -> bool:
        """Add a waiting segment; True if nothing is left to wait for, or no more segments fit."""
        self.segments.append(segment)
        self.octets += len(segment.octets)
        full = len(self.segments) >= limits.joining_segments or self.octets > limits.joining_bytes
        return full or all(self._known_start(*keys) is not None for keys in self._directions())

    def fits(self, key: bytes, syn: Segment) -> bool:
        """True if segments that wait can belong to a SYN; if not, endpoints are used again."""
        isns = {key: syn.seq}
        if syn.flags & ACK:
            isns[self.keys[self.keys[0] == key]] = (syn.ack - 1) & MASK
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
        return sorted(self.segments, key=_handshake_step)

    def first_key(self) -> bytes:
        """The direction of the side that opened the conversation."""
        first = self.arranged()[0]
        answers = _handshake_step(first) == 1
        return self.keys[self.keys[0] == first.key] if answers else first.key

    def starts(self) -> dict[bytes, int]:
        """The sequence number of the first byte of each direction, if it can be derived."""
        found = {}
        for key, back in self._directions():
            start = self._known_start(key, back)
            if start is None:
                start = self._lowest_start(key, back)
            if start is not None:
                found[key] = start
        return found

    def _directions(self) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
        one, other = self.keys
        return (one, other), (other, one)

    def _isn(self, key: bytes) -> int | None:
        """A direction's initial sequence number: from its SYN, or from the answer to it."""
        for segment in self.segments:
            if segment.key == key and _handshake_step(segment) < 2:
                return segment.row[SEQ]
            if segment.key != key and _handshake_step(segment) == 1:
                return (segment.row[ACKNOWLEDGED] - 1) & MASK
        return None

    def _known_start(self, key: bytes, back: bytes) -> int | None:
        """Beginning of a direction, by a SYN or by the other side's segments after its own."""
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

    def _lowest_start(self, key: bytes, back: bytes) -> int | None:
        """The lowest sequence number of bytes near those of a direction's first segment.

        For a direction without segments, the number that the other side acknowledges.
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


def _handshake_step(segment: KeptSegment) -> int:
    """0 for a SYN, 1 for the answer to one, 2 for others."""
    flags = segment.row[FLAGS]
    return 2 if not flags & SYN else 1 if flags & ACK else 0


def may_be_first(octets: bytes, start: int, captured: int) -> bool:
    """True if a segment's payload looks like one of the first of a connection.

    That is a protocol header, a method of class connection on channel 0, or a TLS handshake.
    """
    first = octets[start : start + min(captured, 16)]
    return first.upper().startswith(_FIRST_BYTES) or (
        first[:3] == b"\x01\x00\x00" and first[7:9] == _CONNECTION_CLASS
    )
