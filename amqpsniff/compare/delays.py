"""How long frames took from one capture to the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import pairwise
from typing import Any

from amqpsniff.compare.clock import Clock
from amqpsniff.compare.matching import Pair
from amqpsniff.compare.sighting import NO_TIME, Direction
from amqpsniff.session.counts import Histogram
from amqpsniff.spec import FRAME_OVERHEAD_BYTES

Frame = tuple[int, ...]
"""Columns of `sighting.FRAME`."""


def both(pair: Pair, direction: int) -> Iterator[tuple[Frame | None, Frame | None]]:
    """Frames of a direction of the client's capture, as (there, at the broker's), in order.

    None where one of them has not that frame. Offsets are those of the client's capture.
    """
    near = pair.client.directions[direction]
    far = pair.broker.directions[direction ^ pair.turned]
    mine, yours = _forward(near, 0), _forward(far, pair.shifts[direction])
    one, other = next(mine, None), next(yours, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            yield one, None
            one = next(mine, None)
        elif one is None or other[0] < one[0]:
            yield None, other
            other = next(yours, None)
        else:
            yield one, other
            one, other = next(mine, None), next(yours, None)


def _forward(direction: Direction, shift: int) -> Iterator[Frame]:
    """Frames with their offsets shifted; what was read again after a hole is left out.

    One in which a hole of the capture lies has no time: the packet that completed it is not known.
    """
    last = None
    spans = direction.coverage.spans
    holes = [(one[1], two[0]) for one, two in pairwise(spans)]
    at = 0
    for frame in direction.frames:
        begin = frame[0]
        while at < len(holes) and holes[at][1] <= begin:
            at += 1
        if at < len(holes) and holes[at][0] < begin + frame[3] + FRAME_OVERHEAD_BYTES:
            frame = (begin, NO_TIME, *frame[2:])  # noqa: PLW2901
        if last is None or begin > last:
            last = begin
            yield (begin + shift, *frame[1:]) if shift else frame


@dataclass
class Slow:
    """A frame that took long."""

    delay_ns: int
    raw_ns: int
    pair: Pair
    way: int
    near: Frame
    far: Frame

    def __lt__(self, other: Slow) -> bool:
        return self.delay_ns < other.delay_ns


@dataclass
class Delays:
    """Delays of one way: `raw`, as the two clocks say, less `base_ns`; `corrected` by the clock."""

    base_ns: int = 0
    raw: Any = field(default_factory=Histogram)
    corrected: Any = field(default_factory=Histogram)

    def report(self, *, known: bool) -> dict[str, Any] | None:
        """Quantiles in ns; None without a frame. Corrected ones are null where `known` is not."""
        if not self.raw.facts()[0]:
            return None
        return {
            "frames": self.raw.facts()[0],
            "raw": _quantiles(self.raw, self.base_ns),
            "corrected": _quantiles(self.corrected, 0) if known else None,
        }


def _quantiles(spread: Any, base_ns: int) -> dict[str, int]:
    names = ("min_ns", "p50_ns", "p95_ns", "p99_ns")
    found = dict(zip(names, spread.quantiles(0, 0.5, 0.95, 0.99), strict=True))
    found["max_ns"] = spread.facts()[2]
    return {name: value + base_ns for name, value in found.items()}


class Slowest:
    """The frames that took longest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[int, int, Slow]] = []
        self._count = 0

    def add(self, slow: Slow) -> None:
        """Take a frame, if it is one of the slowest so far."""
        self._count += 1
        if len(self._kept) < self._most:
            heappush(self._kept, (slow.delay_ns, -self._count, slow))
        elif slow.delay_ns > self._kept[0][0]:
            heappushpop(self._kept, (slow.delay_ns, -self._count, slow))

    def slower_than(self, delay_ns: int) -> bool:
        """True if a delay would be among them."""
        return len(self._kept) < self._most or delay_ns > self._kept[0][0]

    def listed(self) -> list[Slow]:
        """Them, the slowest first."""
        return [slow for _, _, slow in sorted(self._kept, reverse=True)]


def timed(near: Frame, far: Frame, way: int) -> tuple[int, int, int] | None:
    """When a frame was sent, when it came, and when on the client's clock; None without times.

    `way` is 0 from the client to the broker, 1 back.
    """
    if NO_TIME in (near[1], far[1]):
        return None
    return (far[1], near[1], near[1]) if way else (near[1], far[1], near[1])


def learn(clock: Clock, pair: Pair, way: int) -> None:
    """Let the clock see every frame of one way of a connection."""
    for near, far in both(pair, direction_of(pair, way)):
        if near is not None and far is not None:
            times = timed(near, far, way)
            if times is not None:
                clock.learn(way, times[0], times[1])


def direction_of(pair: Pair, way: int) -> int:
    """The direction, in the client's capture, of what goes to the broker (0) or comes back (1)."""
    return (pair.client.client or 0) ^ way
