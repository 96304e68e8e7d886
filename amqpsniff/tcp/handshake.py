# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""SYN segments on a conversation that is known: its beginning, a copy of it, or another one's.

A SYN tells the first sequence number of its direction, its answer tells both (RFC 9293 §3.5). A
SYN with another number than the known one means that the endpoints are used again. In a
conversation that was joined in the middle a SYN shortly before the first octet captured is its
own, recorded late.
"""

import cython
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream

MASK = cython.declare(cython.longlong, 0xFFFFFFFF)
ACK = cython.declare(cython.int, 16)

# Whether the segment belongs to the conversation that is open, to a new one, or to none.
OURS = cython.declare(cython.int, 0)
ANOTHER = cython.declare(cython.int, 1)
NONE = cython.declare(cython.int, 2)


def greet(half: HalfStream, other: HalfStream, seq, ack, flags):
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
    """Whether what was captured of a direction can have begun with `isn`."""
    behind: cython.longlong
    if half.next_seq < 0:
        return True
    behind = -half.ahead(isn + 1) - half.next_offset
    return 0 <= behind <= half.limits.closed_near_octets


def begin(half: HalfStream, isn):
    """The direction begins with `isn`; offsets stay as they are when octets were handed on."""
    if half.isn < 0:
        half.isn = isn
    if half.next_seq < 0:
        half.start_at(isn + 1)
    return 0
