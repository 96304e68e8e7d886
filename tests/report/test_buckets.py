"""Numbers over time: nothing is lost when the axis grows; quantiles are as exact as they say."""

from __future__ import annotations

import random
from array import array

import pytest

from amqpsniff.analysis.buckets import (
    FIRST_WIDTH_NS,
    MAX_STEPS,
    Counts,
    Delays,
    Levels,
    Steps,
)
from amqpsniff.analysis.row_times import MAX_NS
from amqpsniff.session.counts import Histogram

BEGIN_NS = 1_700_000_000_000_000_000


def _array(numbers: list[int]) -> array[int]:
    return array("q", numbers)


@pytest.mark.parametrize("length_ns", [1, 10**6, 10**9, 10**13, 10**17])
def test_counts_stay_where_they_were_whatever_comes(length_ns: int) -> None:
    chance = random.Random(length_ns)
    steps = Steps()
    counts = Counts(steps)
    times = [BEGIN_NS + chance.randrange(length_ns) for _ in range(2_000)]
    for at in range(0, len(times), 100):  # in no order, so the axis grows both ways
        counts.add(_array(times[at : at + 100]))
    assert counts.total == len(times)
    groups = steps.groups(200)
    assert len(groups) <= 200
    for group, rate in zip(groups, counts.rates(200), strict=True):
        low, high = steps.at(group.start), steps.at(group.stop)
        assert round(rate * steps.seconds(group)) == sum(low <= time < high for time in times)
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    used = steps.used[1] - steps.used[0]
    assert used <= MAX_STEPS
    assert used >= MAX_STEPS // 4 or steps.width_ns == FIRST_WIDTH_NS


def test_the_highest_level_within_a_step() -> None:
    steps = Steps()
    level = Levels(steps)
    begun, ended = [0, 1, 2, 10**10, 10**10 + 1], [3, 4, 10**10 + 1]
    level.add(*(_array([BEGIN_NS + at for at in times]) for times in (begun, ended)))
    found = level.levels(MAX_STEPS)
    assert (found[0], found[1], found[-1]) == (3, 1, 3)
    level.put(BEGIN_NS + 2 * 10**10, -2)
    assert (level.levels(MAX_STEPS)[-1], level.total) == (2, 0)  # two until then
    level.put(BEGIN_NS + 3 * 10**10, 1)
    assert level.levels(MAX_STEPS)[-1] == 1


@pytest.mark.parametrize("seed", range(5))
def test_peaks_do_not_depend_on_the_width_of_a_step(seed: int) -> None:
    """What is added in the order of time has its highest number, however often steps are folded."""
    chance = random.Random(seed)
    steps, held, levels, moves = Steps(), [], 0, []
    level = Levels(steps)
    now = BEGIN_NS
    for _ in range(20):
        times: tuple[list[int], list[int]] = ([], [])
        for _ in range(chance.randrange(40)):
            now += int(chance.expovariate(1) * 10 ** chance.randrange(3, 9))
            ends = bool(levels) and chance.random() < 0.5
            levels += -1 if ends else 1
            moves.append((now, levels))
            times[ends].append(now)
        level.add(*map(_array, times))
    held = [count for _, count in moves]
    assert max(level.levels(MAX_STEPS)) == max(held)
    for group, found in zip(steps.groups(7), level.levels(7), strict=True):
        first, last = steps.at(group.start), steps.at(group.stop)
        before = [count for at, count in moves if at < first][-1:]
        assert found == max([count for at, count in moves if first <= at < last] + before + [0])
    assert level.total == levels


def test_amounts_are_added_up() -> None:
    steps = Steps()
    sums = Counts(steps)
    sums.add(_array([BEGIN_NS, BEGIN_NS, BEGIN_NS + 10**12]), _array([5, 6, 7]))
    assert sums.total == 18
    first, _ = steps.groups(2)
    assert sums.rates(2)[0] * steps.seconds(first) == pytest.approx(11)


def test_a_rate_does_not_fall_because_the_capture_ends() -> None:
    steps = Steps()
    counts = Counts(steps)
    counts.add(_array([BEGIN_NS + 10**7 * at for at in range(6_001)]))
    for most in (7, 24, 120):
        assert counts.rates(most) == pytest.approx([100] * most, rel=0.05)


def test_quantiles_of_all_are_those_of_a_summary() -> None:
    chance = random.Random(7)
    steps = Steps()
    delays = Delays(steps)
    took = [int(chance.lognormvariate(13, 2)) + 1 for _ in range(5_000)]
    delays.add(_array([BEGIN_NS + 10**6 * at for at in range(5_000)]), _array(took))
    took.sort()
    for fraction, found in zip((0.5, 0.95, 0.99), delays.overall((0.5, 0.95, 0.99)), strict=True):
        assert found == pytest.approx(took[int(fraction * 5_000) - 1], rel=0.004)
    spread = Histogram()
    for one in took:
        spread.add(one)
    fractions = (0, 0.01, 0.5, 0.95, 0.99, 1)
    assert delays.overall(fractions) == spread.quantiles(*fractions)
    (row,) = delays.quantiles(fractions, 1)
    for coarse, fine in zip(row, spread.quantiles(*fractions), strict=True):
        assert coarse == pytest.approx(fine, rel=0.034)
    assert delays.number == sum(number for _, _, number in delays.spread()) == 5_000
    assert delays.largest == took[-1]


def test_the_only_time_is_exact() -> None:
    delays = Delays(Steps())
    delays.add(_array([BEGIN_NS]), _array([42_200_000]))
    assert delays.overall((0.5, 0.99)) == [42_200_000, 42_200_000]


def test_times_out_of_all_bounds_are_counted_at_the_bounds() -> None:
    delays = Delays(Steps())
    delays.add(_array([1, 2**62, 2**62]), _array([-5, 0, MAX_NS * 4]))
    assert delays.number == 2
    assert sum(number for _, _, number in delays.spread()) == 2
    assert len(delays.quantiles((0.5,), 100)) <= 100


def test_nothing_is_nothing() -> None:
    steps = Steps()
    counts, delays = Counts(steps), Delays(steps)
    counts.add(_array([]))
    delays.add(_array([]), _array([]))
    assert counts.rates(10) == delays.quantiles((0.5,), 10) == []
    assert delays.overall((0.5,)) == [None]
    assert list(delays.spread()) == []
