# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The beginning of a conversation: who is who, and where its streams begin.

A SYN tells the first sequence number of its direction, its answer tells both (RFC 9293 §3.5). A
SYN with another number than the known one means that the endpoints are used again. In a
conversation that was joined in the middle a SYN shortly before the first byte captured is its
own, recorded late. Without a SYN, the first segment with payload opens a conversation; of endpoints
that have an open one, only a segment whose payload and numbers show that they are used again.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_MASK
from cython.cimports.amqpsniff.tcp.codes import (
    ACK,
    ANOTHER,
    BEGINS,
    MASK,
    MAY_BEGIN,
    NONE,
    OPEN,
    OURS,
    RST,
    SYN,
)
from cython.cimports.amqpsniff.tcp.conversation import Conversation
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream, HoldingPool, later
from cython.cimports.amqpsniff.tcp.limits import MIN_JUMP
from cython.cimports.amqpsniff.tcp.stream import EventWriter
from cython.cimports.amqpsniff.tcp.table import ConversationTable, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.byteorder import IntView


def opened(
    table: ConversationTable,
    writer: EventWriter,
    pool: HoldingPool,
    rows: IntView,
    at: cython.longlong,
    number: cython.longlong,
    ts_ns: cython.longlong,
    serial: cython.longlong,
    known: Any,
) -> cython.int:
    """Open a conversation with a segment; gives the segment's half-stream.

    `serial`: see `Conversation`. `known`: the key of its originator and the first
    sequence number of each direction, by key, where another reading found that out; or null.
    """
    flags: cython.int = rows[at + 8]
    answer: cython.int = 1 if flags & SYN and flags & ACK else 0
    key: bytes = key_of(rows, at)
    slot: cython.longlong = table.free_slot()
    conversation: Conversation
    if known is not None and not flags & SYN:
        answer = known[0] != key
    conversation = Conversation(HalfStream(pool, slot * 2), HalfStream(pool, slot * 2 + 1))
    conversation.take_ends(rows, at, answer)
    conversation.first_packet_number = number & NUMBER_MASK
    conversation.start_ns = ts_ns
    conversation.key = table.key(rows, at)
    if flags & SYN:
        conversation.first_isn = rows[at + 6]
        if answer:
            conversation.first_isn = (rows[at + 7] - 1) & MASK
            begin(conversation.second, rows[at + 6])
        conversation.syn_seen = True
        begin(conversation.first, conversation.first_isn)
    conversation.incarnation = table.incarnation(conversation.key)
    half: HalfStream = (
        conversation.second if (key == conversation.key) == answer else conversation.first
    )
    table.add(slot, conversation, half, serial)
    if known is not None:
        begin_at(table, conversation, known[1])
    writer.append(OPEN, slot * 2, -1, 0, 0, 0, number, ts_ns)
    return slot * 2 + answer


def block_of(writer: EventWriter, octets: bytes, source: cython.longlong) -> bytes:
    """The bytes that a segment's row points into; `octets` are those of its batch."""
    return octets if source < 0 else writer.extra[source]


def may_open(
    table: ConversationTable,
    writer: EventWriter,
    octets: bytes,
    rows: IntView,
    at: cython.longlong,
) -> cython.bint:
    """True if a segment of no open conversation opens one, and is no late one of one that is over.

    What can only be the first of its sender, and comes after all that was sent, is not late.
    """
    flags: cython.int = rows[at + 8]
    if flags & RST or not (flags & SYN or rows[at + 12] > 0):
        return False
    if not table.straggler(rows, at, rows[at + 6], flags & SYN != 0):
        return True
    octets = block_of(writer, octets, rows[at + 9])
    return _opens(octets, rows[at + 10], rows[at + 11]) and table.is_beyond(rows, at)


def begins_anew(
    conversation: Conversation,
    half: HalfStream,
    other: HalfStream,
    writer: EventWriter,
    octets: bytes,
    rows: IntView,
    at: cython.longlong,
    ts_ns: cython.longlong,
) -> cython.int:
    """Check if a segment shows that the endpoints are used again, though no SYN was captured.

    Gives `BEGINS`, `MAY_BEGIN` if the answer to it has to show that, or 0. It is a protocol header,
    which is all of a segment, as clients wait for the answer to it, or a TLS ClientHello, and both
    directions jump: its own, and the other one as it acknowledges it. A body may carry those
    bytes, and lie behind a hole, but then not both sides have lost some. Where numbers are lower
    than before, what is sent again or was captured twice looks the same, unless it lies before the
    first byte or has other bytes.
    """
    start: cython.longlong = rows[at + 10]
    captured: cython.longlong = rows[at + 11]
    seq: cython.longlong = rows[at + 6]
    ack: cython.longlong = rows[at + 7]
    offset: cython.longlong
    back: cython.longlong
    if captured != rows[at + 12] or not rows[at + 8] & ACK or rows[at + 8] & SYN:
        return 0
    block: bytes = block_of(writer, octets, rows[at + 9])
    if not _opens(block, start, captured) or half.next_seq < 0 or other.next_seq < 0:
        return 0
    back = other.acknowledged() - other.next_offset - other.ahead(ack) if other.ack_seen else 0
    if _jumps(half, seq) and (_jumps(other, ack) or back >= MIN_JUMP):
        return BEGINS
    offset = half.next_offset + half.ahead(seq)
    if half.ahead(seq) >= 0 or (back <= 0 and not _jumps(other, ack)):
        return 0
    if offset >= 0:
        if half.differs(block, start, offset, captured, rows[at + 13], ts_ns):
            return MAY_BEGIN
    elif half.isn >= 0 or ts_ns > later(conversation.start_ns, half.pool.limits.acked_hole_ns):
        return MAY_BEGIN
    return 0


@cython.cfunc
@cython.exceptval(-1, check=True)
def _opens(octets: bytes, start: cython.longlong, captured: cython.longlong) -> cython.bint:
    """True if a segment's payload can only be the first of its sender.

    That is a protocol header and nothing else, or a TLS ClientHello whose record is that message
    and nothing else: of an encrypted record (RFC 5246 §6.2.1, RFC 8446 §4.1.2) the bytes after its
    length are not so by chance.
    """
    record: cython.int
    message: cython.int
    if captured == 8:
        return octets[start] == 0x41 and octets[start : start + 4] == b"AMQP"
    if captured < 11 or octets[start] != 0x16:
        return False
    if octets[start + 1] != 3 or octets[start + 5] != 1 or octets[start + 9] != 3:
        return False
    record = octets[start + 3] << 8 | octets[start + 4]
    message = octets[start + 6] << 16 | octets[start + 7] << 8 | octets[start + 8]
    return message == record - 4 and octets[start + 10] <= 3


@cython.cfunc
@cython.exceptval(-1, check=True)
def _jumps(half: HalfStream, seq: cython.longlong) -> cython.bint:
    """True if a number is ahead of all that is known of a direction, or far behind it."""
    ahead: cython.longlong
    if half.next_seq < 0:
        return False
    ahead = half.ahead(seq)
    if ahead < 0:
        return ahead < -half.pool.most_behind
    return ahead >= MIN_JUMP and half.next_offset + ahead > half.known_end() + MIN_JUMP


def begin_at(table: ConversationTable, conversation: Conversation, starts: Any) -> cython.int:
    """Directions begin with these sequence numbers, by key, where it is not known."""
    half: HalfStream
    for key, start in starts.items():
        half = table.keys[conversation.key]
        if key != conversation.key:
            half = table.halves[half.index ^ 1]
        if half.next_seq < 0:
            half.start_at(start)
    return 0


# SYN segments of a conversation that is open


def classify_syn(
    half: HalfStream,
    other: HalfStream,
    seq: cython.longlong,
    ack: cython.longlong,
    flags: cython.int,
) -> cython.int:
    """Take a SYN of direction `half` (its answer when `flags` has ACK) and say whose it is."""
    asked: cython.longlong = (ack - 1) & MASK
    whose: cython.int
    if flags & ACK:
        whose = _whose_answer(half, other, seq, asked)
        if whose == OURS:
            begin(half, seq)
            begin(other, asked)
        return whose
    whose = _whose_request(half, other, seq)
    if whose == OURS:
        begin(half, seq)
    return whose


@cython.cfunc
@cython.exceptval(-1, check=True)
def _whose_answer(
    half: HalfStream, other: HalfStream, seq: cython.longlong, asked: cython.longlong
) -> cython.int:
    if half.isn == seq:
        return OURS
    if other.isn >= 0 and other.isn != asked:
        # It may acknowledge what came with the SYN, too (RFC 7413).
        if half.isn < 0 and half.next_offset == 0:
            if ((asked - other.isn) & MASK) <= other.next_offset and _fits(half, seq):
                return OURS
        # Not the answer to our SYN; after data it means that the endpoints are used again.
        return ANOTHER if other.next_offset > 0 else NONE
    if half.isn < 0:
        return OURS if _fits(half, seq) and (other.isn >= 0 or _fits(other, asked)) else ANOTHER
    if half.next_offset > 0 or other.isn < 0:
        return NONE if other.isn >= 0 else ANOTHER
    half.isn = half.next_seq = -1  # the responder forgot its first answer (SYN cookies)
    return OURS


@cython.cfunc
@cython.exceptval(-1, check=True)
def _whose_request(half: HalfStream, other: HalfStream, seq: cython.longlong) -> cython.int:
    if half.isn >= 0:
        return OURS if half.isn == seq else ANOTHER
    if half.next_seq < 0 and other.isn >= 0 and other.next_offset == 0:
        return OURS  # both sides sent one (RFC 9293 §3.5, simultaneous open)
    return OURS if half.next_seq >= 0 and _fits(half, seq) else ANOTHER


@cython.cfunc
@cython.exceptval(-1, check=True)
def _fits(half: HalfStream, isn: cython.longlong) -> cython.int:
    """True if what was captured of a direction can have begun with `isn`."""
    behind: cython.longlong
    if half.next_seq < 0:
        return True
    behind = -half.ahead(isn + 1) - half.next_offset
    return 0 <= behind <= half.pool.limits.closed_near_bytes


def begin(half: HalfStream, isn: cython.longlong) -> cython.int:
    """The direction begins with `isn`; offsets stay as they are when bytes were handed on."""
    if half.isn < 0:
        half.isn = isn
    if half.next_seq < 0:
        half.start_at(isn + 1)
    return 0
