# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Content properties: flags first, then the values of those that are set.

The flags are 16-bit words, property 0 in bit 15 of the first; bit 0 says that another word follows
(0-9-1 §4.2.6.1). `PropertyDecoder.locate` walks the list once and notes where each value is; the
message row then copies what it needs from there.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.method_layout import BYTE, SHORTSTR, TABLE, TIMESTAMP

from amqpsniff.spec import properties_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.values import ValueReader

COLUMNS = (
    "content_type content_encoding headers delivery_mode priority correlation_id reply_to "
    "expiration message_id timestamp type user_id app_id cluster_id"
).split()
"""Properties that the messages table has, in the order of `starts`."""

EXACT = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
TRAILING = cython.declare(cython.int, 2)
UNDEFINED_FLAGS = cython.declare(cython.int, 3)

PLACES = {name: place for place, name in enumerate(COLUMNS)}
"""Bit in `present`, and place in `starts`, by property."""

_SLOTS = cython.declare(cython.int, 64)  # as many as there is room for
_WIDTH = cython.declare(cython.int, 32)


@cython.cclass
class PropertyDecoder:
    """Finds the properties of a content header; one object serves all headers in turn.

    `present` has a bit for each of `COLUMNS` that was found, from the lowest; `starts` and
    `lengths` are their positions. `located` counts headers: a caller compares it to see if the
    positions are still those of its header.
    """

    present: cython.int
    located: cython.longlong

    starts: cython.longlong[16]
    lengths: cython.longlong[16]
    known: cython.longlong[64]
    orders: cython.uchar[2048]
    rows: dict[Any, Any]

    def __init__(self) -> None:
        if not cython.compiled:
            self.starts = [0] * 16
            self.lengths = [0] * 16
            self.known = [0] * _SLOTS
            self.orders = [0] * (_WIDTH * _SLOTS)
        slot: cython.int
        for slot in range(_SLOTS):
            self.known[slot] = -1
        self.rows = {}
        self.present = self.located = 0

    def _order(self, class_id: cython.int, flags: cython.int) -> cython.int:
        """Index in `orders` of the layout for these flags of a class.

        A layout has the number of properties, a mark for flags that the class does not define, and
        the type and place of each property.
        """
        key: cython.longlong = flags << 16 | class_id
        slot: cython.int = ((flags >> 1) ^ (flags >> 7) ^ (flags >> 12) ^ class_id) & (_SLOTS - 1)
        if self.known[slot] != key:
            self._learn(_WIDTH * slot, class_id, flags)
            self.known[slot] = key
        return _WIDTH * slot

    def _learn(self, order: cython.int, class_id: cython.int, flags: cython.int) -> cython.int:
        """Write the layout for flags at an index of `orders`."""
        rows = self.rows.get(class_id)
        if rows is None:
            rows = self.rows[class_id] = properties_for(None, class_id)
        chosen = [i for i in range(15) if (flags >> (15 - i)) & 1]
        there = [rows[i] for i in chosen if i < len(rows)]
        self.orders[order] = len(there)
        self.orders[order + 1] = len(there) < len(chosen)
        for row in there:
            order += 2
            self.orders[order] = ord(row.type)
            self.orders[order + 1] = PLACES.get(row.name, 15)
        return 0

    def locate(
        self, reader: ValueReader, class_id: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Note where each property of the list at `at` (its flags) is, counted from there.

        Answers `EXACT`, `CUT` (bytes ran out), `TRAILING` (bytes left over) or
        `UNDEFINED_FLAGS` (a flag is set that the class has no property for).
        """
        self.present = 0
        self.located += 1
        base: cython.longlong = at
        if at + 2 > end:
            return CUT
        flags: cython.int = reader.u16(at)
        order: cython.int = self._order(class_id, flags)
        answer: cython.int = EXACT
        at += 2
        if flags & 1:
            word: cython.int = flags
            while word & 1:
                if at + 2 > end:
                    return CUT
                word = reader.u16(at)
                at += 2
                if word & 0xFFFE:
                    answer = UNDEFINED_FLAGS
        if self.orders[order + 1]:
            answer = UNDEFINED_FLAGS
        if at < 0 or end > len(reader.data):
            raise IndexError("properties outside the data")
        kind: cython.int
        place: cython.int
        length: cython.longlong
        last: cython.int = order + 2 * self.orders[order]
        while order < last:
            order += 2
            kind = self.orders[order]
            place = self.orders[order + 1]
            length = 0
            if kind == SHORTSTR:
                if at >= end:
                    return CUT
                with cython.boundscheck(False):  # the range was checked
                    length = reader.data[at]
                at += 1
            elif kind == BYTE:
                length = 1
            elif kind == TIMESTAMP:
                length = 8
            elif kind == TABLE:
                if at + 4 > end:
                    return CUT
                length = 4 + reader.u32(at)
            if at + length > end:
                return CUT
            self.present |= 1 << place
            self.starts[place] = at - base
            self.lengths[place] = length
            at += length
        if at < end and answer == EXACT:
            return TRAILING
        return answer
