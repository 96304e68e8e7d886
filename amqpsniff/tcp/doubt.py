"""Segments that end a conversation only if TCP accepts them: a RST, a SYN, another beginning.

A TCP discards a RST outside its receive window and answers one that is inside, but not exactly at
the next byte, with a challenge ACK (RFC 9293 §3.10.7.4, RFC 5961 §3). It answers a SYN in the same
way once a connection is synchronized (RFC 5961 §4). So such a segment is kept as a doubt, and later
segments decide: if its sender continues, with bytes in sequence or acknowledgements of later bytes,
the conversation is open, else it has ended. A rare path, so plain Python.
"""

from __future__ import annotations

from .codes import ACK, ACKNOWLEDGED, FLAGS, LENGTH, MASK, RST, SEQ, SYN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .half_stream import Segment
    from .handshake import KeptSegment


class Doubt:
    """A segment that ends a conversation, unless its sender continues in spite of it."""

    __slots__ = ("side", "number", "ts_ns", "own_end", "other_end")

    def __init__(self, side: int, number: int, ts_ns: int, own_end: int, other_end: int) -> None:
        self.side = side  # the direction it is of
        self.number = number  # its packet
        self.ts_ns = ts_ns
        self.own_end = own_end  # the offset at which the bytes of its direction end
        self.other_end = other_end  # and those of the other direction

    def goes_on(self, end: int, covered: int) -> bool:
        """True if a later segment of the same side has new bytes or acknowledges new ones."""
        return end > self.own_end or covered > self.other_end


class Reset(Doubt):
    """A RST."""

    __slots__ = ("window_position", "seq", "ack", "captured_end", "went_on_ns", "payload_ns")

    def __init__(
        self,
        segment: Segment,
        side: int,
        own_end: int,
        other_end: int,
        window_position: int,
        captured_end: int,
    ) -> None:
        super().__init__(side, segment.number, segment.ts_ns, own_end, other_end)
        self.window_position = window_position  # `CERTAIN`, `AHEAD` or `OUTSIDE`
        self.seq = segment.seq
        self.ack = segment.ack if segment.flags & ACK else -1
        self.captured_end = captured_end  # the RST may be numbered after bytes not captured
        self.went_on_ns = -1  # when its sender continued, -1 if it has not
        self.payload_ns = segment.ts_ns  # time of the last payload of either side since


class PossibleSuccessor(Doubt):
    """Segments that may begin another conversation of the same endpoints, with other numbers."""

    __slots__ = ("keys", "segments", "code", "detail", "with_syn", "next_seqs")

    def __init__(
        self,
        side: int,
        own_end: int,
        other_end: int,
        keys: tuple[bytes, bytes],
        first: KeptSegment,
        code: str | None,
        detail: str,
    ) -> None:
        super().__init__(side, first.number, first.ts_ns, own_end, other_end)
        self.keys = keys  # those of the two directions, the one of the first segment first
        self.segments = [first]
        self.code = code  # of the finding if the old conversation continues, None for no finding
        self.detail = detail
        flags = first.row[FLAGS]
        self.with_syn = bool(flags & SYN)
        seq = first.row[SEQ] + (1 if flags & SYN else first.row[LENGTH])
        self.next_seqs: dict[bytes, int] = {keys[0]: seq & MASK}
        if flags & ACK:
            self.next_seqs[keys[1]] = first.row[ACKNOWLEDGED]

    def repeats(self, key: bytes, segment: Segment) -> bool:
        """True for a copy of the first segment; `key` is that of the direction."""
        first = self.segments[0]
        is_same = segment.seq == first.row[SEQ] and segment.flags == first.row[FLAGS]
        return is_same and key == first.key

    def confirms(self, key: bytes, segment: Segment, expected: int, near: int) -> bool:
        """True if a segment belongs to the new conversation, so that this has begun.

        `key` is that of its direction, `expected` the next sequence number there in the old
        conversation. `near`: how many bytes at most its acknowledgement lies ahead.
        """
        flags, seq, ack = segment.flags, segment.seq, segment.ack
        answers = key == self.keys[1] and flags & ACK and ack == self.next_seqs[self.keys[0]]
        if self.with_syn:
            if answers and flags & (SYN | RST):
                return True
            return not flags & SYN and seq != expected and self.next_seqs.get(key) == seq
        if segment.length == 0 or self.next_seqs[key] != seq:
            return False
        return bool(answers) or (
            key == self.keys[0] and 0 < (ack - self.next_seqs[self.keys[1]]) & MASK <= near
        )
