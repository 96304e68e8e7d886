"""Segments that end a conversation only if TCP takes them: a RST, a SYN, another beginning.

A TCP discards a RST outside its receive window and answers one that is inside, but not exactly at
the next byte, with a challenge ACK (RFC 9293 §3.10.7.4, RFC 5961 §3). It answers a SYN in the same
way once a connection is synchronized (RFC 5961 §4). So such a segment is kept as a doubt, and what
follows decides: either its sender goes on, with bytes in sequence or acknowledgements of what came
since, or the conversation is over. A rare path, so plain Python.
"""

from __future__ import annotations

from .codes import ACK, ACKNOWLEDGED, FLAGS, LENGTH, MASK, RST, SEQ, SYN
from .late_handshake import KeptSegment


class Doubt:
    """A segment of direction `side` in packet `number`, which its sender may go on in spite of.

    `ends` and `covers`: offsets at which its own bytes, and those of the other direction, ended.
    """

    __slots__ = ("side", "number", "ts_ns", "ends", "covers")

    def __init__(self, side: int, number: int, ts_ns: int, ends: int, covers: int) -> None:
        self.side = side
        self.number = number
        self.ts_ns = ts_ns
        self.ends = ends
        self.covers = covers

    def goes_on(self, end: int, covered: int) -> bool:
        """True if a later segment of the same side has new bytes or acknowledges new ones."""
        return end > self.ends or covered > self.covers


class Reset(Doubt):
    """A RST: its place, sequence number and acknowledgement (-1 without one).

    `ends` is where it says that its sender's bytes end, `reached` where those captured do.
    `lived_ns`: when its sender went on, -1 if it has not. `quiet_ns`: time of the last payload.
    """

    __slots__ = ("place", "seq", "ack", "reached", "lived_ns", "quiet_ns")

    def __init__(
        self,
        side: int,
        number: int,
        ts_ns: int,
        ends: int,
        covers: int,
        place: int,
        seq: int,
        ack: int,
        reached: int,
    ) -> None:
        super().__init__(side, number, ts_ns, ends, covers)
        self.place = place
        self.seq = seq
        self.ack = ack
        self.reached = reached
        self.lived_ns = -1
        self.quiet_ns = ts_ns


class Another(Doubt):
    """Segments that may begin another conversation of the same endpoints, with other numbers.

    `keys`: those of the two directions, the sender's of the first segment first. `code` and
    `detail` are of the finding if the old conversation goes on; `code` is None for no finding.
    `with_syn`: the first is a SYN. Segments are given by their direction's key and their numbers.
    """

    __slots__ = ("keys", "segments", "code", "detail", "with_syn", "begins")

    def __init__(
        self,
        side: int,
        ends: int,
        covers: int,
        keys: tuple[bytes, bytes],
        segment: KeptSegment,
        code: str | None,
        detail: str,
    ) -> None:
        super().__init__(side, segment.number, segment.ts_ns, ends, covers)
        self.keys = keys
        self.segments = [segment]
        self.code = code
        self.detail = detail
        flags = segment.row[FLAGS]
        self.with_syn = bool(flags & SYN)
        seq = segment.row[SEQ] + (1 if flags & SYN else segment.row[LENGTH])
        self.begins: dict[bytes, int] = {keys[0]: seq & MASK}
        if flags & ACK:
            self.begins[keys[1]] = segment.row[ACKNOWLEDGED]

    def repeats(self, key: bytes, seq: int, flags: int) -> bool:
        """True for a copy of the first segment."""
        first = self.segments[0]
        return seq == first.row[SEQ] and flags == first.row[FLAGS] and key == first.key

    def confirms(
        self, key: bytes, seq: int, ack: int, flags: int, length: int, expected: int, near: int
    ) -> bool:
        """True if a segment belongs to the new conversation, so that this has begun.

        `expected`: the next sequence number of its direction in the old one.
        """
        answers = key == self.keys[1] and flags & ACK and ack == self.begins[self.keys[0]]
        if self.with_syn:
            if answers and flags & (SYN | RST):
                return True
            return not flags & SYN and seq != expected and self.begins.get(key) == seq
        if length == 0 or self.begins[key] != seq:
            return False
        return bool(answers) or (
            key == self.keys[0] and 0 < (ack - self.begins[self.keys[1]]) & MASK <= near
        )
