"""Spans of a stream's bytes as sorted lists of [begin, end), and bytes that were carried again."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from amqpsniff.tcp.limits import Limits

MAX_SPANS = 4_096
"""Holes of one half-stream that are kept apart; then the first ones are taken for filled."""

MAX_REPEATS = 16_384
"""Segments of one half-stream, sent again, that are kept; the others are counted."""

RECENT = 16
"""Segments, twice as many at most, among which another copy of the same packet is looked for, as
reassembly does."""

DUPLICATE_NS = Limits().duplicate_ns


class Repeat(NamedTuple):
    """Bytes that a segment carried though they had come before.

    `acked`: the offset that the other side had acknowledged by then, -1 if it had not.
    """

    begin: int
    end: int
    ts_ns: int
    number: int
    acked: int = -1


class Coverage:
    """Bytes of a half-stream that the segments of one capture carried, and those sent again.

    Attributes:
        spans: Sorted, disjoint [begin, end) in stream offsets.
        repeats: What came again, in the order of the packets; a packet captured twice did not.
        forgotten: Repeats beyond `MAX_REPEATS`.
    """

    __slots__ = ("_recent", "forgotten", "repeats", "spans")

    def __init__(self) -> None:
        self.spans: list[list[int]] = []
        self.repeats: list[Repeat] = []
        self.forgotten = 0
        self._recent: list[tuple[int, int, int]] = []

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The lowest offset, and that behind the highest byte; None where nothing was carried."""
        return (self.spans[0][0], self.spans[-1][1]) if self.spans else None

    def add(self, begin: int, end: int, ts_ns: int, number: int, acked: int = -1) -> None:
        """A segment carried these bytes."""
        spans = self.spans
        if spans and begin == spans[-1][1]:
            spans[-1][1] = end
        elif not spans or begin > spans[-1][1]:
            spans.append([begin, end])
            if len(spans) > MAX_SPANS:
                spans[0:2] = [[spans[0][0], spans[1][1]]]
        elif end - begin <= 1 and begin == spans[-1][1] - 1:
            return  # a keep-alive
        else:
            self._add_repeated(begin, end, ts_ns, number, acked)
        self._recent.append((begin, end, ts_ns))
        if len(self._recent) > 2 * RECENT:
            del self._recent[:RECENT]

    def finish(self) -> None:
        """End of the segments."""
        self._recent = []

    def _add_repeated(self, begin: int, end: int, ts_ns: int, number: int, acked: int) -> None:
        """Add bytes, some of which were carried before: fill holes, and note the repeats."""
        if any(
            (begin, end) == seen[:2] and abs(ts_ns - seen[2]) <= DUPLICATE_NS
            for seen in self._recent
        ):
            return
        for first, stop in common(self.spans, begin, end):
            if len(self.repeats) < MAX_REPEATS:
                self.repeats.append(Repeat(first, stop, ts_ns, number, acked))
            else:
                self.forgotten += 1
        merge(self.spans, begin, end)


def merge(spans: list[list[int]], begin: int, end: int) -> None:
    """Add a span to a sorted list, and join what touches."""
    low = bisect_right(spans, [begin])
    if low and spans[low - 1][1] >= begin:
        low -= 1
    high = low
    while high < len(spans) and spans[high][0] <= end:
        begin, end = min(begin, spans[high][0]), max(end, spans[high][1])
        high += 1
    spans[low:high] = [[begin, end]]


def common(spans: list[list[int]], begin: int, end: int) -> list[tuple[int, int]]:
    """The parts of a span that a sorted list has."""
    found = []
    at = max(bisect_right(spans, [begin]) - 1, 0)
    while at < len(spans) and spans[at][0] < end:
        first, stop = max(begin, spans[at][0]), min(end, spans[at][1])
        if first < stop:
            found.append((first, stop))
        at += 1
    return found
