# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Content properties: flags first, then the values of those that are set.

The flags are 16-bit words, property 0 in bit 15 of the first; bit 0 says that another word follows
(0-9-1 §4.2.6.1). `PropertyDecoder.locate` walks the list once and notes where each value is; the
message row then copies what it needs from there.
"""

import cython

from amqpsniff.decode import plan

COLUMNS = (
    "content_type content_encoding headers delivery_mode priority correlation_id reply_to "
    "expiration message_id timestamp type user_id app_id cluster_id"
).split()
"""Properties that the messages table has, in the order of `starts`."""

EXACT = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
TRAILING = cython.declare(cython.int, 2)
UNDEFINED_FLAGS = cython.declare(cython.int, 3)

_OCTET = cython.declare(cython.int, 111)
_SHORTSTR = cython.declare(cython.int, 115)
_TIMESTAMP = cython.declare(cython.int, 84)
_TABLE = cython.declare(cython.int, 70)


class PropertyDecoder:
    """Finds the properties of a content header; one object serves all headers in turn.

    `present` has a bit for each of `COLUMNS` that was found, from the lowest; `starts` and
    `lengths` are of those. `located` counts headers: who remembers it can tell whether what is
    noted is still his.
    """

    def __init__(self):
        self.starts = memoryview(bytearray(8 * 16)).cast("q")
        self.lengths = memoryview(bytearray(8 * 16)).cast("q")
        self.plans = {}
        self.present = self.located = 0
        self.class_id = -1
        self.types = b""
        self.places = b""

    def _select(self, class_id):
        """Use the property rows of a class."""
        known = self.plans.get(class_id)
        if known is None:
            rows = plan.property_rows(0, class_id)
            types = bytes(ord(kind) for _, kind in rows)
            places = bytes(COLUMNS.index(name) if name in COLUMNS else 15 for name, _ in rows)
            known = self.plans[class_id] = (types, places)
        self.types, self.places = known
        self.class_id = class_id
        return 0

    def locate(self, reader, class_id, at, end):
        """Note where each property of the list at `at` (its flags) is, counted from there.

        Answers `EXACT`, `CUT` (octets ran out), `TRAILING` (octets left over) or
        `UNDEFINED_FLAGS` (a flag is set that the class has no property for).
        """
        if class_id != self.class_id:
            self._select(class_id)
        self.present = 0
        self.located += 1
        base: cython.longlong = at
        if at + 2 > end:
            return CUT
        flags: cython.int = reader.u16(at)
        word: cython.int = flags
        answer: cython.int = EXACT
        at += 2
        while word & 1:
            if at + 2 > end:
                return CUT
            word = reader.u16(at)
            at += 2
            if word & 0xFFFE:
                answer = UNDEFINED_FLAGS
        count: cython.int = len(self.types)
        i: cython.int
        for i in range(15):
            if not (flags >> (15 - i)) & 1:
                continue
            if i >= count:
                answer = UNDEFINED_FLAGS
                continue
            at = self._one(reader, i, at, end, base)
            if at < 0:
                return CUT
        if at < end and answer == EXACT:
            return TRAILING
        return answer

    def _one(self, reader, i, at, end, base):
        """Note property `i` at `at`; position after it, -2 when it is cut."""
        kind: cython.int = self.types[i]
        place: cython.int = self.places[i]
        start: cython.longlong = at
        length: cython.longlong = 0
        if kind == _SHORTSTR:
            if at + 1 > end:
                return -2
            start = at + 1
            length = reader.data[at]
        elif kind == _OCTET:
            length = 1
        elif kind == _TIMESTAMP:
            length = 8
        elif kind == _TABLE:
            if at + 4 > end:
                return -2
            length = 4 + reader.u32(at)
        if start + length > end:
            return -2
        self.present |= 1 << place
        self.starts[place] = start - base
        self.lengths[place] = length
        return start + length
