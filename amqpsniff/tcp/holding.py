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

    `identification` is that of its IP packet, -1 for none.
    """

    start: int
    end: int
    octets: bytes
    number: int
    ts_ns: int
    identification: int


class Held:
    """The pieces of one half-stream."""

    __slots__ = ("pool", "starts", "pieces", "octets")

    def __init__(self, pool: HoldingPool) -> None:
        self.pool = pool
        self.starts: list[int] = []
        self.pieces: list[Piece] = []
        self.octets = 0

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def first(self) -> int:
        """Where the first piece starts; -1 when nothing is held."""
        return self.starts[0] if self.starts else -1

    @property
    def end(self) -> int:
        """Where the last piece ends; -1 when nothing is held."""
        return self.pieces[-1].end if self.pieces else -1

    @property
    def full(self) -> bool:
        """Whether this half-stream, or all together, hold more than they may."""
        limits = self.pool.limits
        return self.octets > limits.held_octets or self.pool.total > limits.held_octets_total

    def find(self, start: int, end: int) -> Piece | None:
        """The piece that is exactly this range."""
        index = bisect_left(self.starts, start)
        if index < len(self.starts) and self.pieces[index][:2] == (start, end):
            return self.pieces[index]
        return None

    def add(self, piece: Piece) -> tuple[bool, bool]:
        """Hold what of `piece` is not held yet.

        Gives whether anything was, and whether octets that were held already differ from it.
        """
        index = bisect_right(self.starts, piece.start)
        if index and self.pieces[index - 1].end > piece.start:
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
        octets = piece.octets[start - piece.start : end - piece.start]
        self.starts.insert(index, start)
        kept = Piece(start, end, octets, piece.number, piece.ts_ns, piece.identification)
        self.pieces.insert(index, kept)
        self._account(len(octets) + HELD_SEGMENT_OCTETS)

    def _account(self, octets: int) -> None:
        self.octets += octets
        self.pool.total += octets

    def take_run(self, position: int) -> list[Piece]:
        """Remove and give the pieces that follow each other from `position`."""
        count = 0
        for piece in self.pieces:
            if piece.start != position:
                break
            position = piece.end
            count += 1
        run = self.pieces[:count]
        del self.pieces[:count]
        del self.starts[:count]
        self._account(-sum(len(piece.octets) + HELD_SEGMENT_OCTETS for piece in run))
        return run


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
