"""Counts in bounded memory: names by messages and octets, sizes by quantiles, peaks of rates."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

MOST_NAMES = 20_000
"""Names counted exactly. A client that makes a routing key per order has millions, and few that
matter; when there are more, the rarer half is forgotten, so that frequent ones stay exact."""

EXACT_SIZES = 4096
"""Sizes below are counted as they are; larger ones are rounded down to 12 bits, an error of at most
0.03 %."""

SECOND_NS = 1_000_000_000


WAYS = ("published", "delivered")
"""A message is published, or delivered; a get counts as a delivery, a return as neither."""


class Tally:
    """Messages and octets by name, both ways; `forgotten` says that rare names are missing."""

    def __init__(self) -> None:
        self.counts: dict[Any, list[int]] = {}
        self.forgotten = False

    def add(self, name: Any, way: str, messages: int, octets: int) -> None:
        """Count messages of one name, that went one of `WAYS`."""
        count = self.counts.get(name)
        if count is None:
            if len(self.counts) >= 2 * MOST_NAMES:
                self._forget()
            count = self.counts[name] = [0, 0, 0, 0]
        at = 2 * WAYS.index(way)
        count[at] += messages
        count[at + 1] += octets

    def top(self, most: int) -> list[tuple[Any, list[int]]]:
        """The most frequent names, with messages and octets published and delivered."""
        ranked = sorted(self.counts.items(), key=lambda item: -(item[1][0] + item[1][2]))
        return ranked[:most]

    def _forget(self) -> None:
        self.counts = dict(self.top(MOST_NAMES))
        self.forgotten = True


class Sizes:
    """Sizes of messages, enough of them for quantiles."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.messages = 0
        self.octets = 0
        self.largest = 0

    def add(self, sizes: Any) -> None:
        """Count an Arrow array of sizes; those that are null are not known and not counted."""
        import pyarrow.compute as pc

        sizes = sizes.drop_null()
        if not len(sizes):
            return
        self.messages += len(sizes)
        self.octets += pc.sum(sizes).as_py()
        self.largest = max(self.largest, pc.max(sizes).as_py())
        for size, count in _counted(_rounded(sizes)):
            self.counts[size] = self.counts.get(size, 0) + count

    def quantiles(self, *fractions: float) -> list[int | None]:
        """The size that this fraction of messages does not exceed; null without messages."""
        ranked = sorted(self.counts)
        upto = list(accumulate(self.counts[size] for size in ranked))
        return [
            ranked[bisect_left(upto, fraction * self.messages)] if ranked else None
            for fraction in fractions
        ]


def _rounded(sizes: Any) -> Any:
    """Sizes to 12 significant bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    large = pc.greater_equal(sizes, EXACT_SIZES)
    if not pc.any(large).as_py():
        return sizes
    bits = pc.subtract(pc.floor(pc.log2(pc.max_element_wise(sizes, 1))).cast(pa.int64()), 11)
    shift = pc.max_element_wise(bits, 0)
    return pc.shift_left(pc.shift_right(sizes, shift), shift)


def _counted(array: Any) -> Iterable[tuple[Any, int]]:
    """Every value of an Arrow array and how often it is there."""
    counted = array.value_counts()
    return zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)


class Rate:
    """How many messages in all, and in the second with the most."""

    def __init__(self) -> None:
        self.messages = 0
        self.peak = 0
        self.peak_second: int | None = None
        self._seconds: dict[int, int] = {}

    def add(self, times_ns: Any) -> None:
        """Count an Arrow array of times, later ones than before."""
        import pyarrow.compute as pc

        self.messages += len(times_ns)
        for second, count in _counted(pc.divide(times_ns.drop_null(), SECOND_NS)):
            total = self._seconds[second] = self._seconds.get(second, 0) + count
            if total > self.peak:
                self.peak, self.peak_second = total, second
        if len(self._seconds) > RECENT_SECONDS:
            for second in sorted(self._seconds)[:-RECENT_SECONDS]:
                del self._seconds[second]


RECENT_SECONDS = 600
"""Seconds in which messages may still be counted: rows come in the order in which messages end."""
