# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Counts in bounded memory: names by messages and bytes, numbers by quantiles, peaks of rates."""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import ACKED, CONFIRMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.session.entities import Session


MAX_NAMES = 20_000
"""Names counted exactly. A client that makes a routing key per order has millions, and few that
matter; when there are more, the rarer half is forgotten, so that frequent ones stay exact."""

EXACT_SIZES = 4096
"""Numbers below are counted as they are; larger ones are rounded down to 9 bits, an error of less
than 0.4 %."""

STEPS, DROPPED_BITS = 256, 4
PLACES = EXACT_SIZES + 51 * STEPS

DELAY_PLACES = 16 + 8 * 36
"""Times up to 19 hours: microseconds as they are up to 15, then eight to a doubling."""

RECENT_SECONDS = 600
"""Seconds in which messages may still be counted: rows come in the order in which messages end."""

SECOND_NS = 1_000_000_000

RECENT_ROUTES = 512
"""RouteCounters that are found without looking in a dict: 14 million instructions of 634 for
`summary` of 37,000 messages with 360 pairs of exchange and routing key."""

_SECOND = cython.declare(cython.longlong, SECOND_NS)
_EXACT = cython.declare(cython.longlong, EXACT_SIZES)
_STEPS = cython.declare(cython.longlong, STEPS)
_DROPPED = cython.declare(cython.longlong, DROPPED_BITS)
_RECENT_ROUTES = cython.declare(cython.longlong, RECENT_ROUTES)


@cython.ccall
def quantile_places(counts: cython.longlong[::1], fractions: Any) -> list[Any]:
    """For each fraction, the first place at which the cumulated counts reach this share.

    None if the counts are all 0. All quantiles are computed here; histograms differ in the value of
    a place.
    """
    number: cython.longlong = 0
    upto: cython.longlong
    place: cython.Py_ssize_t
    for place in range(len(counts)):
        number += counts[place]
    found: list[Any] = []
    for fraction in fractions:
        wanted: cython.double = fraction * number
        upto = 0
        reached = None
        for place in range(len(counts)):
            upto += counts[place]
            if counts[place] and upto >= wanted:
                reached = place
                break
        found.append(reached)
    return found


@cython.cclass
class Histogram:
    """Numbers, enough of them for quantiles: sizes, or times in ns."""

    total: cython.longlong
    number: cython.longlong
    largest: cython.longlong

    counts: cython.longlong[::1]

    def __init__(self) -> None:
        self.counts = array("q", bytes(8 * PLACES))
        self.total = self.number = 0
        self.largest = -1

    @cython.ccall
    @cython.exceptval(-1)
    def add(self, value: cython.longlong) -> cython.int:
        """Count a number; negative ones are unknown and not counted."""
        if value < 0:
            return 0
        self.number += 1
        self.total += value
        if value > self.largest:
            self.largest = value
        place: cython.longlong = value
        if value >= _EXACT:
            octave: cython.int = 0
            while (value >> octave) >= 16 * _EXACT:
                octave += 4
            while (value >> octave) >= 2 * _EXACT:
                octave += 1
            place = _EXACT + octave * _STEPS + (((value >> octave) - _EXACT) >> _DROPPED)
        self.counts[place] += 1
        return 0

    def facts(self) -> Any:
        """(how many, their sum, the largest or None)."""
        return self.number, self.total, self.largest if self.number else None

    def upto(self, *limits: Any) -> Any:
        """Count of the numbers up to each limit, at the resolution of the places."""
        found: list[Any] = []
        place: cython.Py_ssize_t = 0
        count: cython.longlong = 0
        for limit in limits:
            while place < PLACES and _value_at(place) <= limit:
                count += self.counts[place]
                place += 1
            found.append(count)
        return found

    def quantiles(self, *fractions: Any) -> Any:
        """The number that this fraction does not exceed; None without any.

        It is rounded down, except the largest number where nothing else is counted at its place.
        """
        found: list[Any] = []
        last: cython.Py_ssize_t = PLACES - 1
        while last > 0 and self.counts[last] == 0:
            last -= 1
        for place in quantile_places(self.counts, fractions):
            if place == last and self.counts[last] == 1:
                found.append(self.largest)
            else:
                found.append(None if place is None else _value_at(place))
        return found


@cython.cclass
class LatencyHistogram:
    """Recent times in little memory, one of these a connection: quantiles are within 9 %.

    Each `rotate` forgets the times before the previous `rotate`.
    """

    number: cython.longlong

    now: cython.int[::1]
    before: cython.int[::1]

    def __init__(self) -> None:
        self.now = array("i", bytes(4 * DELAY_PLACES))
        self.before = array("i", bytes(4 * DELAY_PLACES))
        self.number = 0

    @cython.ccall
    @cython.exceptval(-1)
    def add(self, time_ns: cython.longlong) -> cython.int:
        """Count a time; microseconds below 16 have a place each."""
        value: cython.longlong = time_ns // 1000
        place: cython.longlong = value
        octave: cython.int = 0
        if value < 0:
            return 0
        if value >= 16:
            while (value >> octave) >= 16:
                octave += 1
            place = 8 * octave + (value >> octave)
        if place >= DELAY_PLACES:
            place = DELAY_PLACES - 1
        self.now[place] += 1
        self.number += 1
        return 0

    def rotate(self) -> None:
        """Begin to forget."""
        self.before = self.now
        self.now = array("i", bytes(4 * DELAY_PLACES))
        self.number = 0

    def quantiles(self, *fractions: Any) -> Any:
        """The time in ns that this fraction does not exceed; None without any."""
        counts = array("q", bytes(8 * DELAY_PLACES))
        both: cython.longlong[::1] = counts
        place: cython.Py_ssize_t
        for place in range(DELAY_PLACES):
            both[place] = self.now[place] + self.before[place]
        places = quantile_places(counts, fractions)
        return [None if one is None else _delay_at(one) for one in places]


@cython.cclass
class RecentLatencies:
    """Recent times of confirms and acknowledgements (live runs); each session has its own too."""

    confirms: LatencyHistogram
    acks: LatencyHistogram

    def __init__(self) -> None:
        self.confirms = LatencyHistogram()
        self.acks = LatencyHistogram()

    def add(self, session: Session, outcome: cython.int, time_ns: cython.longlong) -> cython.int:
        """Count the time of an outcome with its connection; those that are neither are left out."""
        delays: LatencyHistogram = None
        if outcome == CONFIRMED:
            self.confirms.add(time_ns)
            if session.confirms is None:
                session.confirms = LatencyHistogram()
            delays = session.confirms
        elif outcome == ACKED:
            self.acks.add(time_ns)
            if session.acks is None:
                session.acks = LatencyHistogram()
            delays = session.acks
        if delays is not None:
            delays.add(time_ns)
        return 0

    def rotate(self) -> None:
        """Begin to forget; sessions are turned by themselves."""
        self.confirms.rotate()
        self.acks.rotate()


def _delay_at(place: Any) -> Any:
    """The middle of the times that are counted at a place, in ns."""
    if place < 16:
        return 1000 * place + 500
    octave, step = divmod(place - 8, 8)
    return (((step + 8) << octave) * 2 + (1 << octave)) * 500


def _value_at(place: Any) -> Any:
    """The least number that is counted at a place."""
    if place < EXACT_SIZES:
        return place
    octave, step = divmod(place - EXACT_SIZES, STEPS)
    return (EXACT_SIZES + (step << DROPPED_BITS)) << octave


@cython.cclass
class Rate:
    """Number of messages, in all and in the second with the most."""

    messages: cython.longlong
    peak: cython.longlong
    last: cython.longlong
    run: cython.longlong

    peak_second: Any
    seconds: dict[Any, Any]

    def __init__(self) -> None:
        self.messages = self.peak = self.run = 0
        self.peak_second = None
        self.seconds = {}
        self.last = -1

    @cython.ccall
    @cython.exceptval(-1)
    def add(self, ts_ns: cython.longlong) -> cython.int:
        """Count a message at a time."""
        self.messages += 1
        if ts_ns == NULL:
            return 0
        second: cython.longlong = ts_ns // _SECOND
        if second != self.last:
            self._flush()
            self.last = second
        self.run += 1
        return 0

    def _flush(self) -> cython.int:
        if self.run == 0:
            return 0
        total = self.seconds.get(self.last, 0) + self.run
        self.seconds[self.last] = total
        self.run = 0
        if total > self.peak:
            self.peak, self.peak_second = total, self.last
        if len(self.seconds) > 2 * RECENT_SECONDS:
            for second in sorted(self.seconds)[:-RECENT_SECONDS]:
                del self.seconds[second]
        return 0

    @property
    def remembered(self) -> Any:
        """Seconds in which messages may still be counted."""
        return len(self.seconds)

    def facts(self) -> Any:
        """(messages, most in a second, that second since the epoch or None)."""
        self._flush()
        return self.messages, self.peak, self.peak_second


class TopCounts:
    """Messages and bytes by name, both ways; `forgotten`: rare names are missing.

    Counts are [published, bytes of them, delivered, bytes of them, published whose bytes are
    known, delivered whose bytes are].
    """

    def __init__(self) -> None:
        self.counts: dict[Any, Any] = {}
        self.forgotten = False

    def add(self, name: Any, counts: Any) -> None:
        """Add to the counts of a name."""
        every: dict[Any, Any] = self.counts
        known: list[Any] = every.get(name)
        place: cython.Py_ssize_t = 0
        if known is not None:
            for count in counts:
                known[place] += count
                place += 1
            return
        if len(every) >= 2 * MAX_NAMES:
            every = self.counts = dict(self.top(MAX_NAMES))
            self.forgotten = True
        every[name] = list(counts)

    def top(self, most: Any) -> Any:
        """The most frequent names and their counts."""
        ranked = sorted(self.counts.items(), key=lambda item: -(item[1][0] + item[1][2]))
        return ranked[:most]


NO_COUNTS = (0, 0, 0, 0, 0, 0)
"""Counts of a name that has no messages, in the form of `TopCounts`."""


def amounts(counts: Any) -> Any:
    """(published, bytes, delivered, bytes) of counts in the form of `TopCounts`; bytes are None if
    there are messages, all of unknown size."""
    published, sent, delivered, received, sized, sized_too = counts
    return (
        published,
        sent if sized or not published else None,
        delivered,
        received if sized_too or not delivered else None,
    )


@cython.cclass
class ConnectionCounters:
    """Counters of one connection; the number of its virtual host, negative before a message."""

    vhost: cython.longlong
    frames: cython.longlong
    channels: cython.longlong
    client_bytes: cython.longlong
    server_bytes: cython.longlong

    def __init__(self) -> None:
        self.vhost = -1
        self.frames = self.channels = self.client_bytes = self.server_bytes = 0

    def facts(self) -> Any:
        """(frames, channels opened, bytes of the client, bytes of the server)."""
        return self.frames, self.channels, self.client_bytes, self.server_bytes


@cython.cclass
class RouteCounter:
    """Messages and bytes that went each way."""

    published: cython.longlong
    published_bytes: cython.longlong
    delivered: cython.longlong
    delivered_bytes: cython.longlong
    published_sized: cython.longlong
    delivered_sized: cython.longlong

    def __init__(self) -> None:
        self.published = self.published_bytes = self.delivered = self.delivered_bytes = 0
        self.published_sized = self.delivered_sized = 0

    def add(self, way: cython.int, size: cython.longlong) -> cython.int:
        """Count a message that was published (0) or delivered (1)."""
        known: cython.bint = size >= 0
        if way == 0:
            self.published += 1
            if known:
                self.published_sized += 1
                self.published_bytes += size
        else:
            self.delivered += 1
            if known:
                self.delivered_sized += 1
                self.delivered_bytes += size
        return 0

    def merge(self, other: RouteCounter) -> cython.int:
        """Count what another one has counted."""
        self.published += other.published
        self.published_bytes += other.published_bytes
        self.delivered += other.delivered
        self.delivered_bytes += other.delivered_bytes
        self.published_sized += other.published_sized
        self.delivered_sized += other.delivered_sized
        return 0

    def facts(self) -> Any:
        """The counts in the form of `TopCounts`."""
        return (
            self.published,
            self.published_bytes,
            self.delivered,
            self.delivered_bytes,
            self.published_sized,
            self.delivered_sized,
        )


@cython.cclass
class RouteCounters:
    """A `RouteCounter` for each of many numbers; a few numbers occur most of the time.

    `recent` caches the latest counters, each at the place of its number in `recent_numbers`.
    """

    by_number: dict[Any, Any]
    recent_numbers: cython.longlong[::1]
    recent: list[Any]

    def __init__(self) -> None:
        self.by_number = {}
        self.recent_numbers = array("q", [-1]) * RECENT_ROUTES
        self.recent = [None] * RECENT_ROUTES

    def __len__(self) -> Any:
        return len(self.by_number)

    @cython.cfunc
    def of(self, number: cython.longlong) -> RouteCounter:
        """The counter of a number, 0 or more; made when it is new."""
        place: cython.Py_ssize_t = (number ^ (number >> 24) * 37 ^ (number >> 48) * 101) & (
            _RECENT_ROUTES - 1
        )
        if self.recent_numbers[place] == number:
            return self.recent[place]
        flow: RouteCounter = self.by_number.get(number)
        if flow is None:
            flow = self.by_number[number] = RouteCounter()
        self.recent_numbers[place] = number
        self.recent[place] = flow
        return flow

    def drain(self) -> Any:
        """Give all away, as pairs of number and flow in the order in which they came first."""
        taken = list(self.by_number.items())
        self.__init__()  # type: ignore[misc]
        return taken
