"""Numbers over time in bounded memory: a fixed number of steps, which grow wider with the time.

`Steps` is the shared axis: `MAX_STEPS` of equal width from a beginning. If a time lies outside, two
steps at a time are merged into one until it fits, and so are all counts. `Counts` adds numbers up
by step; `Levels` has the highest number within each; `Delays` counts times by step and size, for
quantiles over time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from sys import byteorder
from typing import Any

from amqpsniff.analysis.row_times import (
    PLACES,
    PLACES_PER_OCTAVE,
    add_delays,
    add_levels,
    add_sums,
    extent,
    folded,
    in_order,
)
from amqpsniff.session.counts import Histogram, quantile_places

MAX_STEPS = 1_024
"""Steps in time, at least half of them used: four or more to a point of a chart."""

FIRST_WIDTH_NS = 20_000
"""Width of a step in the beginning; a capture of 20 ms is seen in full detail."""


class Steps:
    """The axis: `begin_ns` is where it starts, `width_ns` how wide a step is.

    Both are None and 0 before the first time.
    """

    def __init__(self) -> None:
        self.begin_ns: int | None = None
        self.width_ns = FIRST_WIDTH_NS
        self._first = self._last = 0
        self._followers: list[Counts | Levels | Delays] = []

    def join(self, follower: Counts | Levels | Delays) -> None:
        """Have something moved along."""
        self._followers.append(follower)

    def cover(self, first_ns: int, last_ns: int) -> None:
        """Make room for these times."""
        if self.begin_ns is None:
            self.begin_ns = first_ns
            self._first, self._last = first_ns, last_ns
        self._first, self._last = min(first_ns, self._first), max(last_ns, self._last)
        while first_ns < self.begin_ns:
            self._reach_back(first_ns)
        while last_ns >= self.begin_ns + MAX_STEPS * self.width_ns:
            self._fold()

    def _reach_back(self, first_ns: int) -> None:
        """Move everything up by as many steps as are missing, or make wider ones of two each."""
        assert self.begin_ns is not None
        missing = -((first_ns - self.begin_ns) // self.width_ns)
        last = (self._last - self.begin_ns) // self.width_ns
        if last + missing >= MAX_STEPS:
            self._fold()
            return
        self.begin_ns -= missing * self.width_ns
        for follower in self._followers:
            follower.move(missing)

    def _fold(self) -> None:
        """Make two steps one."""
        self.width_ns *= 2
        for follower in self._followers:
            follower.fold()

    @property
    def used(self) -> tuple[int, int]:
        """The first step with a time and the one after the last."""
        if self.begin_ns is None:
            return 0, 0
        ends = ((time - self.begin_ns) // self.width_ns for time in (self._first, self._last))
        first, last = ends
        return first, last + 1

    @property
    def several(self) -> bool:
        """True if there is more than one time, so that something may have a rate."""
        return self._first < self._last

    def groups(self, limit: int) -> list[range]:
        """Groups of steps for a chart; their lengths differ by one step at most."""
        first, last = self.used
        number = min(limit, last - first)
        ends = [first + at * (last - first) // number for at in range(number + 1)] if number else []
        return [range(*pair) for pair in pairwise(ends)]

    def seconds(self, group: range) -> float:
        """The seconds of a group, without those before the first time or after the last.

        It is never less than a step: a rate is not to be large because a capture ended.
        """
        begin = max(self.at(group.start), self._first)
        end = min(self.at(group.stop), self._last + 1)
        return max(end - begin, self.width_ns) / 1e9

    def at(self, step: int) -> int:
        """The time at which a step begins."""
        assert self.begin_ns is not None
        return self.begin_ns + step * self.width_ns


class Counts:
    """Sums by step."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._sums = array("q", bytes(8 * MAX_STEPS))
        steps.join(self)

    def fold(self) -> None:
        """Two steps become one."""
        self._sums, _ = folded(self._sums, array("q"))

    def move(self, steps: int) -> None:
        """The axis begins this number of steps earlier."""
        self._sums = (array("q", bytes(8 * steps)) + self._sums)[:MAX_STEPS]

    def add(self, times: Any, amounts: Any = None) -> None:
        """Add an amount at each time, 1 if none is given; both are arrays of 64 bits."""
        if times:
            self._steps.cover(*extent(times))
            steps = self._steps
            add_sums(self._sums, times, amounts or array("q"), steps.begin_ns, steps.width_ns)

    def rates(self, limit: int) -> list[float]:
        """Amounts per second, in a limited number of groups of steps."""
        steps = self._steps
        return [
            sum(self._sums[group.start : group.stop]) / steps.seconds(group)
            for group in steps.groups(limit)
        ]

    @property
    def total(self) -> int:
        """The sum of all."""
        return sum(self._sums)


class Levels:
    """A level over time, such as open connections: sums by step, and the highest within each.

    A step's peak is its maximum above its beginning. Values of one call are sorted by time; values
    of a later call count as later within their step.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._sums = array("q", bytes(8 * MAX_STEPS))
        self._peaks = array("q", bytes(8 * MAX_STEPS))
        steps.join(self)

    def fold(self) -> None:
        """Two steps become one."""
        self._sums, self._peaks = folded(self._sums, self._peaks)

    def move(self, steps: int) -> None:
        """The axis begins this number of steps earlier."""
        missing = array("q", bytes(8 * steps))
        self._sums = (missing + self._sums)[:MAX_STEPS]
        self._peaks = (missing + self._peaks)[:MAX_STEPS]

    def add(self, begun: Any, ended: Any) -> None:
        """One more at each time of the first array, one less at each of the second."""
        up, down = in_order(begun), in_order(ended)
        if up or down:
            steps, ends = self._steps, [*up[:1], *down[:1], *up[-1:], *down[-1:]]
            steps.cover(min(ends), max(ends))
            add_levels(self._sums, self._peaks, up, down, steps.begin_ns, steps.width_ns)

    def put(self, time_ns: int, amount: int) -> None:
        """Add an amount at one time."""
        self._steps.cover(time_ns, time_ns)
        assert self._steps.begin_ns is not None
        place = (time_ns - self._steps.begin_ns) // self._steps.width_ns
        self._peaks[place] = max(self._peaks[place], self._sums[place] + amount)
        self._sums[place] += amount

    def levels(self, limit: int) -> list[float]:
        """The highest number within each of a limited number of groups of steps."""
        sums = accumulate(self._sums, initial=0)
        highest = [level + peak for level, peak in zip(sums, self._peaks, strict=False)]
        return [max(highest[group.start : group.stop]) for group in self._steps.groups(limit)]

    @property
    def total(self) -> int:
        """The level at the end."""
        return sum(self._sums)


class Delays:
    """Times by step and size, and all of them together, more exactly, as a `counts.Histogram`.

    The quantiles of a summary over the same times are equal, to the digit.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._counts: dict[int, array[int]] = {}
        self._all: Any = Histogram()
        steps.join(self)

    @property
    def number(self) -> int:
        """The number of times."""
        return int(self._all.facts()[0])

    @property
    def largest(self) -> int:
        """The largest; 0 without any."""
        return self._all.facts()[2] or 0

    def move(self, steps: int) -> None:
        """The axis begins this number of steps earlier."""
        self._counts = {step + steps: counts for step, counts in self._counts.items()}

    def fold(self) -> None:
        """Two steps become one."""
        before, self._counts = self._counts, {}
        for step, counts in before.items():
            folded = self._counts.get(step // 2)
            self._counts[step // 2] = counts if folded is None else _total((folded, counts))

    def add(self, times: Any, delays: Any) -> None:
        """Count a delay at each time; both are arrays of 64 bits, in ns.

        A time below zero, of clocks that were set back, is not counted.
        """
        at, took = times, delays
        if took and extent(took)[0] < 0:
            rows = [row for row, delay_ns in enumerate(took) if delay_ns >= 0]
            at, took = (array("q", [column[row] for row in rows]) for column in (at, took))
        if at:
            steps = self._steps
            steps.cover(*extent(at))
            add_delays(self._all, self._counts, at, took, steps.begin_ns, steps.width_ns)

    def quantiles(self, fractions: Sequence[float], limit: int) -> list[list[float | None]]:
        """Of each group of steps the times in ns that these fractions do not exceed, or None."""
        return [_quantiles(self._sum(group), fractions) for group in self._steps.groups(limit)]

    def overall(self, fractions: Sequence[float]) -> list[int | None]:
        """The same of all times."""
        found: list[int | None] = self._all.quantiles(*fractions)
        return found

    def spread(self) -> Iterator[tuple[float, float, int]]:
        """(from, to, how many) of every size between the smallest and the largest, in ns."""
        counts = self._sum(self._counts)
        used = [place for place, count in enumerate(counts) if count]
        for place in range(used[0], used[-1] + 1) if used else ():
            yield _at(place), _at(place + 1), counts[place]

    def _sum(self, steps: Any) -> array[int]:
        return _total(self._counts[step] for step in steps if step in self._counts)


def _total(several: Iterable[array[int]]) -> array[int]:
    """Sums of arrays of 32 bits as large numbers, ten times as quick; no place overflows."""
    total = sum(int.from_bytes(counts, byteorder) for counts in several)
    return array("i", total.to_bytes(4 * PLACES, byteorder))


def _at(place: float) -> float:
    """The least time that is counted at a place."""
    return float(2 ** (place / PLACES_PER_OCTAVE))


def _quantiles(counts: Sequence[int], fractions: Sequence[float]) -> list[float | None]:
    places = quantile_places(array("q", counts), fractions)
    return [None if place is None else _at(place + 0.5) for place in places]
