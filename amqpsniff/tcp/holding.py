"""Octets that arrived before the ones they follow, until the hole is filled or given up.

Pieces of one half-stream are disjoint and in order. Where two segments overlap, the octets captured
first stay: a new segment fills what is free, which may be several places. A rare path, so plain
Python; what it holds is bounded by `Limits.held_octets` and `held_octets_total`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from .limits import HELD_SEGMENT_OCTETS, Limits


class HoldingPool:
    """How much all half-streams together hold back, in octets."""

    __slots__ = ("total", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.total = 0


class Piece(NamedTuple):
    """A range of a half-stream; `octets` is shorter than it when a snap length cut them.

    `identification` is that of its IP packet, -1 for none; `needs`: what it acknowledges, as an
    offset of the other direction.
    """

    start: int
    end: int
    octets: bytes
    number: int
    ts_ns: int
    identification: int
    needs: int


_TAKEN = Piece(0, 0, b"", 0, 0, -1, 0)


class Held:
    """The pieces of one half-stream, from index `begin` of two lists on."""

    __slots__ = ("pool", "starts", "pieces", "begin", "octets")

    def __init__(self, pool: HoldingPool) -> None:
        self.pool = pool
        self.starts: list[int] = []
        self.pieces: list[Piece] = []
        self.begin = 0
        self.octets = 0

    def __len__(self) -> int:
        return len(self.pieces) - self.begin

    @property
    def front(self) -> Piece:
        """The first piece; there must be one."""
        return self.pieces[self.begin]

    @property
    def first(self) -> int:
        """Where the first piece starts; -1 when nothing is held."""
        return self.starts[self.begin] if self.begin < len(self.starts) else -1

    @property
    def end(self) -> int:
        """Where the last piece ends; -1 when nothing is held."""
        return self.pieces[-1].end if self.begin < len(self.pieces) else -1

    def run_end(self) -> int:
        """Where the pieces end that follow each other from the first one; there must be one."""
        position = self.starts[self.begin]
        for index in range(self.begin, len(self.starts)):
            if self.starts[index] != position:
                break
            position = self.pieces[index].end
        return position

    def after(self, position: int) -> int:
        """Where the first piece at or after a position starts; -1 for none."""
        index = bisect_left(self.starts, position, self.begin)
        return self.starts[index] if index < len(self.starts) else -1

    @property
    def full(self) -> bool:
        """Whether this half-stream, or all together, hold more than they may."""
        limits = self.pool.limits
        if len(self.pieces) - self.begin > limits.held_segments:
            return True
        return self.octets > limits.held_octets or self.pool.total > limits.held_octets_total

    def find(self, start: int, end: int) -> Piece | None:
        """The piece that is exactly this range."""
        index = bisect_left(self.starts, start, self.begin)
        if index < len(self.starts) and self.pieces[index][:2] == (start, end):
            return self.pieces[index]
        return None

    def add(self, piece: Piece) -> tuple[bool, bool]:
        """Hold what of `piece` is not held yet.

        Gives whether anything was, and whether octets that were held already differ from it.
        """
        index = bisect_right(self.starts, piece.start, self.begin)
        if index > self.begin and self.pieces[index - 1].end > piece.start:
            index -= 1
        position, added, conflict = piece.start, False, False
        while position < piece.end:
            there = self.pieces[index] if index < len(self.pieces) else None
            if there is None or position < there.start:
                stop = piece.end if there is None else min(there.start, piece.end)
                self._insert(index, piece, position, stop)
                added = True
                position = stop
            else:
                conflict = conflict or _differ(there, piece)
                position = there.end
            index += 1
        return added, conflict

    def _insert(self, index: int, piece: Piece, start: int, end: int) -> None:
        if (start, end) != piece[:2]:
            octets = piece.octets[start - piece.start : end - piece.start]
            piece = piece._replace(start=start, end=end, octets=octets)
        self.starts.insert(index, start)
        self.pieces.insert(index, piece)
        self._account(len(piece.octets) + HELD_SEGMENT_OCTETS)

    def _account(self, octets: int) -> None:
        self.octets += octets
        self.pool.total += octets

    def take_front(self) -> Piece:
        """Remove and give the first piece."""
        piece = self.pieces[self.begin]
        self.pieces[self.begin] = _TAKEN
        self.begin += 1
        if self.begin * 2 >= len(self.pieces):
            del self.pieces[: self.begin]
            del self.starts[: self.begin]
            self.begin = 0
        self._account(-len(piece.octets) - HELD_SEGMENT_OCTETS)
        return piece


def _differ(one: Piece, other: Piece) -> bool:
    """Whether two pieces have captured octets of one place that are not the same."""
    start = max(one.start, other.start)
    end = min(one.start + len(one.octets), other.start + len(other.octets))
    if start >= end:
        return False
    return (
        one.octets[start - one.start : end - one.start]
        != other.octets[start - other.start : end - other.start]
    )
