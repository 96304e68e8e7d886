# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Quantiles of times in bounded memory: counts by size, exact below 256, then to 8 bits.

A quantile is rounded down by less than 0.8 %. Times below zero, of clocks that were set back, count
as zero.
"""

import math

import cython

EXACT = 256
"""Values below have a count of their own; from there each power of two has 128."""

BUCKETS = EXACT + 128 * 56
"""Enough for every 64-bit integer: 59 kB."""

_EXACT = cython.declare(cython.longlong, EXACT)


class Histogram:
    """Counts of nanoseconds, or of any integers.

    Attributes:
        count: How many there are.
        total: Their sum.
        largest: The largest, -1 while there is none.
    """

    def __init__(self):
        self.storage = bytearray(8 * BUCKETS)
        self.counts = memoryview(self.storage).cast("q")
        self.count = 0
        self.largest = -1

    def put(self, value):
        """Count one value."""
        shift: cython.int = 0
        if value < 0:
            value = 0
        self.count += 1
        if value > self.largest:
            self.largest = value
        if value >= _EXACT:
            rest: cython.longlong = value >> 8
            while rest:
                rest >>= 1
                shift += 1
            value = _EXACT + (shift - 1) * 128 + (value >> shift) - 128
        self.counts[value] += 1
        return 0

    def quantiles(self, *fractions):
        """The values that these fractions of all do not exceed; None while there is none."""
        if self.count == 0:
            return [None] * len(fractions)
        return [self._value(max(1, math.ceil(self.count * fraction))) for fraction in fractions]

    def _value(self, number):
        """The value of this place in order, from 1."""
        seen: cython.longlong = 0
        bucket: cython.longlong = 0
        for bucket in range(BUCKETS):
            seen += self.counts[bucket]
            if seen >= number:
                break
        if bucket < _EXACT:
            return bucket
        shift: cython.longlong = (bucket - _EXACT) // 128 + 1
        return (128 + (bucket - _EXACT) % 128) << shift


def count_grouped(histograms, groups, values):
    """Count 64-bit values, each in the histogram of its group.

    `groups` are 32-bit places in the list `histograms`; None there is for groups not wanted.
    """
    codes: cython.const[cython.int][::1] = groups
    numbers: cython.const[cython.longlong][::1] = values
    histogram: Histogram
    i: cython.Py_ssize_t
    for i in range(len(numbers)):
        histogram = histograms[codes[i]]
        if histogram is not None:
            histogram.put(numbers[i])
    return 0


def count_all(histogram: Histogram, values):
    """Count 64-bit values in one histogram."""
    numbers: cython.const[cython.longlong][::1] = values
    i: cython.Py_ssize_t
    for i in range(len(numbers)):
        histogram.put(numbers[i])
    return 0
