# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The beginning of a conversation: its originator, and the first sequence numbers of its streams.

A SYN has the first sequence number of its direction, its answer has both (RFC 9293 §3.5). A SYN
with another number than before means that the endpoints are used again. If the capture began after
the conversation, a SYN shortly before the first captured byte is its own, captured late. Without a
SYN, the first segment with payload opens a conversation. While the endpoints have an open
conversation, a segment opens another one only if its payload and numbers prove the reuse.

A handshake may be captured after segments that follow it. If the first segment of a conversation
has no SYN, the conversation began before the capture, or its SYN was captured late. A segment that
may be the first with payload waits in a `PendingConversation` for a short time (see `Limits`), with
later ones, until the originator and the beginning of both streams are known. If they stay unknown,
a stream begins with its lowest captured byte. Segments of a responder wait in the same way while
its answer to the SYN is missing.

Other segments do not wait. Mostly they belong to a connection that began before the capture. Their
rows would come after those of other connections, so a delivery there would not find its publish. Of
424 captures that begin at any packet of seven, 59 lost links between connections that way, and 4 if
only channel.open waits.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp.codes import (
    ACK,
    ACKNOWLEDGED,
    CURRENT,
    FLAGS,
    LENGTH,
    MASK,
    MAYBE_REUSED,
    NEITHER,
    OPEN,
    REUSED,
    RST,
    SEQ,
    SUCCESSOR,
    SYN,
)
from cython.cimports.amqpsniff.tcp.conversation import Conversation, ConversationTable, key_of
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream, HoldingPool, Segment, later
from cython.cimports.amqpsniff.tcp.limits import MIN_JUMP, NEVER
from cython.cimports.amqpsniff.tcp.stream import EventWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .limits import Limits


_FIRST_BYTES = (b"AMQP", b"PROXY ", b"\x16\x03")
"""A protocol header (some write it in small letters), what a proxy says first, a TLS handshake."""

_CONNECTION_CLASS = b"\x00\x0a"


def open_conversation(
    table: ConversationTable,
    writer: EventWriter,
    pool: HoldingPool,
    segment: Segment,
    serial: cython.longlong,
    start_facts: Any,
) -> cython.int:
    """Open a conversation with a segment; gives the index of the segment's half-stream.

    `serial`: see `Conversation`. `start_facts`: if an earlier reading found out how it begins, the
    key of its originator and the first sequence number of each direction by key; otherwise None.
    """
    flags: cython.int = segment.flags
    answer: cython.int = 1 if flags & SYN and flags & ACK else 0
    key: bytes = key_of(segment.rows, segment.at)
    slot: cython.longlong = table.free_slot()
    conversation: Conversation
    if start_facts is not None and not flags & SYN:
        answer = start_facts[0] != key
    conversation = Conversation(HalfStream(pool, slot * 2), HalfStream(pool, slot * 2 + 1))
    conversation.take_ends(segment.rows, segment.at, answer)
    conversation.first_packet_number = segment.number & NUMBER_MASK
    conversation.start_ns = conversation.syn_ns = segment.ts_ns
    conversation.key = table.key(segment.rows, segment.at)
    if flags & SYN:
        conversation.first_isn = segment.seq
        if answer:
            conversation.first_isn = (segment.ack - 1) & MASK
            set_isn(conversation.second, segment.seq)
        conversation.syn_seen = True
        set_isn(conversation.first, conversation.first_isn)
    conversation.incarnation = table.incarnation(conversation.key)
    half: HalfStream = (
        conversation.second if (key == conversation.key) == answer else conversation.first
    )
    table.add(slot, conversation, half, serial)
    if start_facts is not None:
        set_starts(table, conversation, start_facts[1])
    writer.append(OPEN, slot * 2, -1, 0, 0, 0, segment.number, segment.ts_ns)
    return slot * 2 + answer


def may_open(table: ConversationTable, segment: Segment) -> cython.bint:
    """True if a segment of no open conversation opens one, and is no late one of one that is over.

    What can only be the first of its sender, and comes after all that was sent, is not late.
    """
    rows: cython.longlong[::1] = segment.rows
    if segment.flags & RST or not (segment.flags & SYN or segment.length > 0):
        return False
    if not table.is_straggler(rows, segment.at, segment.seq, segment.flags & SYN != 0):
        return True
    return _must_be_first(segment) and table.is_beyond(rows, segment.at)


def detect_reuse(
    conversation: Conversation, half: HalfStream, other: HalfStream, segment: Segment
) -> cython.int:
    """Check if a segment shows that the endpoints are used again, though no SYN was captured.

    Returns `REUSED`, `MAYBE_REUSED` if the answer has to prove it, or 0. Such a segment has only a
    protocol header, because clients wait for its answer, or a TLS ClientHello; and the numbers of
    both directions jump, its own and the acknowledged one. A body after a hole may have the same
    bytes, but then only one side has a loss. If the numbers are lower than before, a retransmission
    or a duplicate looks the same, unless it lies before the first byte or has other bytes.
    """
    seq: cython.longlong = segment.seq
    ack: cython.longlong = segment.ack
    offset: cython.longlong
    back: cython.longlong
    if segment.captured != segment.length or segment.flags & (ACK | SYN) != ACK:
        return 0
    if not _must_be_first(segment) or half.next_seq < 0 or other.next_seq < 0:
        return 0
    back = other.acknowledged() - other.next_offset - other.ahead(ack) if other.ack_seen else 0
    if _jumps(half, seq) and (_jumps(other, ack) or back >= MIN_JUMP):
        return REUSED
    offset = half.next_offset + half.ahead(seq)
    if half.ahead(seq) >= 0 or (back <= 0 and not _jumps(other, ack)):
        return 0
    if offset >= 0:
        return MAYBE_REUSED if half.differs(segment, offset) else 0
    wait_ns: cython.longlong = half.pool.limits.acked_hole_ns
    if half.isn >= 0 or segment.ts_ns > later(conversation.start_ns, wait_ns):
        return MAYBE_REUSED
    return 0


@cython.cfunc
@cython.exceptval(-1, check=True)
def _must_be_first(segment: Segment) -> cython.bint:
    """True if a segment's payload can only be the first of its sender.

    It is either only a protocol header, or a TLS record with only a ClientHello: in an encrypted
    record (RFC 5246 §6.2.1, RFC 8446 §4.1.2) the bytes after the length do not match by chance.
    """
    octets: bytes = segment.octets
    start: cython.longlong = segment.start
    record: cython.int
    message: cython.int
    if segment.captured == 8:
        return octets[start] == 0x41 and octets[start : start + 4] == b"AMQP"
    if segment.captured < 11 or octets[start] != 0x16:
        return False
    if octets[start + 1] != 3 or octets[start + 5] != 1 or octets[start + 9] != 3:
        return False
    record = octets[start + 3] << 8 | octets[start + 4]
    message = octets[start + 6] << 16 | octets[start + 7] << 8 | octets[start + 8]
    return message == record - 4 and octets[start + 10] <= 3


@cython.cfunc
@cython.exceptval(-1, check=True)
def _jumps(half: HalfStream, seq: cython.longlong) -> cython.bint:
    """True if a number is ahead of all captured bytes of a direction, or far behind them."""
    ahead: cython.longlong
    if half.next_seq < 0:
        return False
    ahead = half.ahead(seq)
    if ahead < 0:
        return ahead < -half.pool.max_behind
    return ahead >= MIN_JUMP and half.next_offset + ahead > half.known_end() + MIN_JUMP


def set_starts(table: ConversationTable, conversation: Conversation, starts: Any) -> cython.int:
    """Set the first sequence numbers of directions, by key, unless they are set already."""
    half: HalfStream
    for key, start in starts.items():
        half = table.keys[conversation.key]
        if key != conversation.key:
            half = table.halves[half.index ^ 1]
        if half.next_seq < 0:
            half.start_at(start)
    return 0


# SYN segments of a conversation that is open


def classify_syn(half: HalfStream, other: HalfStream, segment: Segment) -> cython.int:
    """Classify a SYN of direction `half`, or the answer to one, by its conversation."""
    seq: cython.longlong = segment.seq
    acked_isn: cython.longlong = (segment.ack - 1) & MASK
    owner: cython.int
    if segment.flags & ACK:
        owner = _whose_answer(half, other, seq, acked_isn)
        if owner == CURRENT:
            set_isn(half, seq)
            set_isn(other, acked_isn)
        return owner
    owner = _whose_request(half, other, seq)
    if owner == CURRENT:
        set_isn(half, seq)
    return owner


@cython.cfunc
@cython.exceptval(-1, check=True)
def _whose_answer(
    half: HalfStream, other: HalfStream, seq: cython.longlong, acked_isn: cython.longlong
) -> cython.int:
    if half.isn == seq:
        return CURRENT
    if other.isn >= 0 and other.isn != acked_isn:
        # It may acknowledge the data of the SYN, too (RFC 7413).
        if half.isn < 0 and half.next_offset == 0:
            if ((acked_isn - other.isn) & MASK) <= other.next_offset and _fits(half, seq):
                return CURRENT
        # Not the answer to our SYN; after data it means that the endpoints are used again.
        return SUCCESSOR if other.next_offset > 0 else NEITHER
    if half.isn < 0:
        is_near: cython.bint = _fits(half, seq) and (other.isn >= 0 or _fits(other, acked_isn))
        return CURRENT if is_near else SUCCESSOR
    if half.next_offset > 0 or other.isn < 0:
        return NEITHER if other.isn >= 0 else SUCCESSOR
    half.isn = half.next_seq = -1  # the responder forgot its first answer (SYN cookies)
    return CURRENT


@cython.cfunc
@cython.exceptval(-1, check=True)
def _whose_request(half: HalfStream, other: HalfStream, seq: cython.longlong) -> cython.int:
    if half.isn >= 0:
        return CURRENT if half.isn == seq else SUCCESSOR
    if half.next_seq < 0 and other.isn >= 0 and other.next_offset == 0:
        return CURRENT  # both sides sent one (RFC 9293 §3.5, simultaneous open)
    return CURRENT if half.next_seq >= 0 and _fits(half, seq) else SUCCESSOR


@cython.cfunc
@cython.exceptval(-1, check=True)
def _fits(half: HalfStream, isn: cython.longlong) -> cython.int:
    """True if the captured bytes of a direction can have begun with `isn`."""
    distance: cython.longlong
    if half.next_seq < 0:
        return True
    distance = -half.ahead(isn + 1) - half.next_offset
    return 0 <= distance <= half.pool.limits.closed_near_bytes


def set_isn(half: HalfStream, isn: cython.longlong) -> cython.int:
    """The direction begins with `isn`; offsets stay as they are when bytes were handed on."""
    if half.isn < 0:
        half.isn = isn
    if half.next_seq < 0:
        half.start_at(isn + 1)
    return 0


# Segments that wait for their handshake


class KeptSegment(NamedTuple):
    """A segment that waits."""

    key: bytes  # of its direction, see `conversation.key_of`
    row: array[int]
    octets: bytes  # those captured of its payload
    number: int
    ts_ns: int
    segment_serial: int  # how many segments of all conversations were read, with this one


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
        starts_by_key = {}
        for key, back in self._directions():
            start = self._known_start(key, back)
            if start is None:
                start = self._lowest_start(key, back)
            if start is not None:
                starts_by_key[key] = start
        return starts_by_key

    def _directions(self) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
        key, other_key = self.keys
        return (key, other_key), (other_key, key)

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
        numbers = [
            segment.row[SEQ]
            for segment in self.segments
            if segment.key == key and segment.row[LENGTH] > 0
        ]
        if not numbers:
            numbers = [
                segment.row[ACKNOWLEDGED]
                for segment in self.segments
                if segment.key == back and segment.row[FLAGS] & ACK
            ]
        if not numbers:
            return None
        distances = [(numbers[0] - number) & MASK for number in numbers]
        return (
            numbers[0] - max(distance for distance in distances if distance <= self.near)
        ) & MASK


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


def _handshake_step(segment: KeptSegment) -> int:
    """0 for a SYN, 1 for the answer to one, 2 for others."""
    flags = segment.row[FLAGS]
    return 2 if not flags & SYN else 1 if flags & ACK else 0


def may_be_first(octets: bytes, start: cython.longlong, captured: cython.longlong) -> cython.bint:
    """True if a segment's payload looks like one of the first of a connection.

    That is a protocol header, a method of class connection on channel 0, or a TLS handshake.
    """
    first: bytes = octets[start : start + min(captured, 16)]
    return first.upper().startswith(_FIRST_BYTES) or (
        first[:3] == b"\x01\x00\x00" and first[7:9] == _CONNECTION_CLASS
    )
