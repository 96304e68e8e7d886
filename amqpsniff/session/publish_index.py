# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Publishes that are remembered, alike ones in one line, and how far queues are with them.

A line is in the order of its publishes; a queue hands them on in that order. Publishes are
forgotten from the oldest on, of all lines.

Publishes are numbered as they come. Those that are remembered follow one another, so a ring holds
them: columns of numbers, in which the place of a publish is its number modulo the ring's size.
Lines are rows of columns too, found in a table of slots by the hash that their publishes have. So a
publish that is alone in its line takes some 130 bytes, where objects would take 310.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.fingerprint import mixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_AGAIN = cython.declare(cython.ulonglong, 0x9E6C63D0876A9A35)
_NONE = cython.declare(cython.longlong, -1)
_FIRST_SIZE = 256

_PUBLISHES = {
    "keys": "Q", "packet_numbers": "q", "times": "q", "connection_ids": "q", "places": "q",
    "delivered": "q", "later": "q", "identified": "B", "doubted": "B",
}  # fmt: skip
"""Columns of publishes: the hash of what they are, `places` in their lines, how often they were
`delivered`, the number of the next alike (`later`), whether they have a message id, and whether a
queue may have handed on the one before or after instead (`doubted`)."""

_LINES = {"first": "q", "last": "q", "reached": "q", "queues": "Q"}
"""Columns of lines: numbers of publishes, `reached` by the first of its `queues`."""


def _column(code: Any, size: Any) -> Any:
    """A column of zeros."""
    return memoryview(bytearray(size * (1 if code == "B" else 8))).cast(code)


@cython.cclass
class PublishIndex:
    """Lines of equal publishes, first in first out, by their hash; -1 for no publish and no line.

    After `meant`: `candidates` is the number of publishes that were equal, `is_first_hop` is True
    if its queue delivers it for the first time. `hits` counts dropped entries by name of the limit.
    """

    memory: Any
    most: cython.longlong
    age_ns: cython.longlong
    size: cython.longlong
    used: cython.longlong
    oldest: cython.longlong
    next_id: cython.longlong
    positions: cython.longlong
    candidates: cython.longlong
    is_first_hop: cython.bint

    keys: cython.ulonglong[::1]
    queues: cython.ulonglong[::1]
    packet_numbers: cython.longlong[::1]
    times: cython.longlong[::1]
    connection_ids: cython.longlong[::1]
    places: cython.longlong[::1]
    delivered: cython.longlong[::1]
    later: cython.longlong[::1]
    identified: cython.uchar[::1]
    doubted: cython.uchar[::1]
    first: cython.longlong[::1]
    last: cython.longlong[::1]
    reached: cython.longlong[::1]
    slots: cython.int[::1]
    asks: list[Any]
    answers: list[Any]
    free: list[Any]
    more: dict[Any, Any]
    hits: dict[Any, Any]

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.most = memory.publishes
        self.age_ns = memory.age_ns
        self.size = _FIRST_SIZE
        for name, code in _PUBLISHES.items():
            setattr(self, name, _column(code, self.size))
        for name, code in _LINES.items():
            setattr(self, name, _column(code, self.size))
        self.asks = [None] * self.size
        self.answers = [None] * self.size
        self.slots = memoryview(bytearray(b"\xff") * (8 * self.size)).cast("i")
        self.free = []
        self.used = 0
        self.more = {}
        self.oldest = 0
        self.next_id = 0
        self.positions = 0
        self.candidates = 0
        self.is_first_hop = False
        self.hits = {}

    def __len__(self) -> Any:
        """Number of publishes that are remembered."""
        return self.next_id - self.oldest

    # publishes

    @cython.exceptval(check=False)
    def at(self, publish: cython.longlong) -> cython.longlong:
        """The place of a publish in the columns."""
        return publish % self.size

    @cython.ccall
    @cython.exceptval(-2)
    def remember(
        self,
        key: cython.ulonglong,
        packet_number: cython.longlong,
        ts_ns: cython.longlong,
        connection_id: cython.longlong,
        identified: cython.bint,
    ) -> cython.longlong:
        """Append a publish to its line, and return it; forget those too old or too many.

        `asks` has its own request, and `answers` the request that it answers, at its index.
        """
        while self.oldest < self.next_id and self._is_old(ts_ns):
            self._forget()
        if self.next_id - self.oldest >= self.most:
            self._forget()
            self._limit_reached("publishes")
        if self.next_id - self.oldest == self.size:
            self._grow()
        publish: cython.longlong = self.next_id
        at: cython.longlong = self.at(publish)
        slot: cython.longlong = self._slot(key)
        line: cython.longlong = self.slots[slot]
        self.next_id += 1
        self.keys[at] = key
        self.packet_numbers[at] = packet_number
        self.times[at] = ts_ns
        self.connection_ids[at] = connection_id
        self.identified[at] = identified
        self.delivered[at] = 0
        self.doubted[at] = False
        self.later[at] = _NONE
        if line < 0:
            self.places[at] = 0
            self.slots[slot] = self._new_line(publish)
        else:
            last: cython.longlong = self.at(self.last[line])
            self.places[at] = self.places[last] + 1
            self.later[last] = publish
            self.last[line] = publish
        return publish

    def _is_old(self, ts_ns: cython.longlong) -> cython.bint:
        """True if the oldest publish is too old."""
        then: cython.longlong = self.times[self.at(self.oldest)]
        return then != NULL and ts_ns != NULL and ts_ns - then > self.age_ns

    def _forget(self) -> cython.int:
        """Forget the oldest publish, and its line if it was the only one."""
        at: cython.longlong = self.at(self.oldest)
        slot: cython.longlong = self._slot(self.keys[at])
        line: cython.longlong = self.slots[slot]
        if self.later[at] == _NONE:
            if self.more:
                self.positions -= len(self.more.pop(line, ()))
            self._empty(slot)
            self.free.append(line)
        else:
            self.first[line] = self.later[at]
        self.asks[at] = None
        self.answers[at] = None
        self.oldest += 1
        return 0

    def _grow(self) -> cython.int:
        """Have room for twice as many, but not for more than will be remembered."""
        size: cython.longlong = min(2 * self.size, self.most)
        for name, code in _PUBLISHES.items():
            column = _column(code, size)
            self._copy(getattr(self, name), column, size)
            setattr(self, name, column)
        for name in ("asks", "answers"):
            calls: list[Any] = [None] * size
            self._copy(getattr(self, name), calls, size)
            setattr(self, name, calls)
        for name, code in _LINES.items():
            column = _column(code, size)
            column[: self.used] = getattr(self, name)[: self.used]
            setattr(self, name, column)
        lines = [line for line in self.slots if line >= 0]
        self.slots = memoryview(bytearray(b"\xff") * (8 * len(self.slots))).cast("i")
        self.size = size
        for line in lines:
            self.slots[self._slot(self.keys[self.at(self.first[line])])] = line
        return 0

    def _copy(self, source: Any, target: Any, size: cython.longlong) -> cython.int:
        """Copy a column of publishes to a ring of another size."""
        for publish in range(self.oldest, self.next_id):
            target[publish % size] = source[publish % self.size]
        return 0

    # lines

    @cython.ccall
    @cython.exceptval(-2)
    def get(self, key: cython.ulonglong) -> cython.longlong:
        """The line of a hash."""
        return self.slots[self._slot(key)]

    @cython.exceptval(-2)
    def _slot(self, key: cython.ulonglong) -> cython.longlong:
        """The slot of a hash's line, or where it would stand; slots are a power of two, twice the
        lines."""
        mask: cython.longlong = len(self.slots) - 1
        slot: cython.longlong = cython.cast(cython.longlong, key & 0x7FFFFFFF) & mask
        line: cython.longlong = self.slots[slot]
        while line >= 0 and self.keys[self.at(self.first[line])] != key:
            slot = (slot + 1) & mask
            line = self.slots[slot]
        return slot

    def _empty(self, slot: cython.longlong) -> cython.int:
        """Empty a slot: lines after it move up where they would be lost."""
        mask: cython.longlong = len(self.slots) - 1
        at: cython.longlong = slot
        line: cython.longlong
        home: cython.longlong
        while True:
            at = (at + 1) & mask
            line = self.slots[at]
            if line < 0:
                break
            key: cython.ulonglong = self.keys[self.at(self.first[line])]
            home = cython.cast(cython.longlong, key & 0x7FFFFFFF) & mask
            if ((at - home) & mask) >= ((at - slot) & mask):
                self.slots[slot] = cython.cast(cython.int, line)
                slot = at
        self.slots[slot] = -1
        return 0

    def _new_line(self, publish: cython.longlong) -> cython.int:
        """A line of one publish."""
        line: cython.int = self.used
        if self.free:
            line = self.free.pop()
        else:
            self.used += 1
        self.first[line] = publish
        self.last[line] = publish
        self.reached[line] = _NONE
        self.queues[line] = 0
        return line

    # queues

    @cython.ccall
    @cython.exceptval(-2)
    def match(
        self, line: cython.longlong, queue: cython.ulonglong, again: cython.bint
    ) -> cython.longlong:
        """The publish that a queue hands on; -1 when it handed on all there were."""
        first: cython.longlong = self.first[line]
        last: cython.longlong = self.last[line]
        reached: cython.longlong = self._position(line, queue)
        begin: cython.longlong = self.places[self.at(first)]
        before: cython.longlong = 0
        if reached >= first:
            before = self.places[self.at(reached)] - begin + 1
        requires: cython.longlong = self.places[self.at(last)] - begin + 1 - before
        self.is_first_hop = False
        if again and before:
            self.candidates = before
            return first if before == 1 else self._again(line, queue, reached)
        if requires == 0:
            self.candidates = 1
            return last if last == first and self.identified[self.at(last)] else _NONE
        chosen: cython.longlong = self.later[self.at(reached)] if before else first
        self.candidates = requires
        self.is_first_hop = True
        if requires > 1:
            self.doubted[self.at(chosen)] = True
            self.doubted[self.at(self.later[self.at(chosen)])] = True
        self._put(line, queue, chosen)
        return chosen

    @cython.exceptval(-2)
    def _again(
        self, line: cython.longlong, queue: cython.ulonglong, reached: cython.longlong
    ) -> cython.longlong:
        """The next of the publishes that a queue hands on once more: from the oldest, in order."""
        key: cython.ulonglong = mixed(queue, _AGAIN)
        last: cython.longlong = self._position(line, key)
        chosen: cython.longlong = self.first[line]
        if chosen <= last < reached:
            chosen = self.later[self.at(last)]
        self._put(line, key, chosen)
        return chosen

    @cython.exceptval(-2)
    def _position(self, line: cython.longlong, queue: cython.ulonglong) -> cython.longlong:
        """The last publish that a queue handed on, which may be forgotten."""
        if self.queues[line] == queue:
            return self.reached[line]
        if not self.more:
            return _NONE
        positions = self.more.get(line)
        return _NONE if positions is None else positions.get(queue, _NONE)

    def _put(
        self, line: cython.longlong, queue: cython.ulonglong, publish: cython.longlong
    ) -> cython.int:
        """Note how far a queue is."""
        if self.queues[line] == queue or self.reached[line] == _NONE:
            self.queues[line] = queue
            self.reached[line] = publish
            return 0
        positions: dict[Any, Any] = self.more.get(line)
        if positions is None:
            positions = self.more[line] = {}
        if queue not in positions:
            if self.positions >= self.memory.positions:
                return self._limit_reached("positions")
            self.positions += 1
        positions[queue] = publish
        return 0

    def _limit_reached(self, name: str) -> cython.int:
        """A limit was reached."""
        self.hits[name] = self.hits.get(name, 0) + 1
        return 0
