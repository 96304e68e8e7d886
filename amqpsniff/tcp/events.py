# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Where events of conversations are written: the columns of the next `StreamBatch`."""

import cython

from amqpsniff.storage import room_for

from .stream import StreamBatch

# Rows made ready at once when a batch has more events than were expected.
MORE_ROWS = 64


def _column(code, rows):
    """A column of so many numbers, `i` of 32 and `q` of 64 bits, whatever they are."""
    return memoryview(room_for((4 if code == "i" else 8) * rows)).cast(code)


class EventWriter:
    """Rows of events, octets that were held back, and findings, until `take` gives them away."""

    def __init__(self):
        self.late = []
        self.reserve(0)

    def reserve(self, rows):
        """Start a batch with room for `rows` events."""
        self.count = 0
        self.extra = []
        self.findings = []
        self.columns = [_column(code, rows) for code in "iiiqqqqq"]
        return self._look(rows)

    def _look(self, rows):
        self.kind, self.half, self.source = self.columns[:3]
        self.start, self.length, self.stream_offset, self.number, self.ts_ns = self.columns[3:]
        self.capacity = rows
        return 0

    def _grow(self):
        rows = self.capacity * 2 + MORE_ROWS
        columns = self.columns
        self.columns = [_column(column.format, rows) for column in columns]
        for new, old in zip(self.columns, columns, strict=True):
            new[: self.capacity] = old
        return self._look(rows)

    def append(self, kind, half, source, start, length, stream_offset, number, ts_ns):
        """Write one event (see `StreamBatch` for the columns)."""
        row: cython.longlong = self.count
        if row >= self.capacity:
            self._grow()
        with cython.boundscheck(False):  # every column has room for as many rows
            self.kind[row] = kind
            self.half[row] = half
            self.source[row] = source
            self.start[row] = start
            self.length[row] = length
            self.stream_offset[row] = stream_offset
            self.number[row] = number
            self.ts_ns[row] = ts_ns
        self.count = row + 1
        return 0

    def note_late(self, first, number, ts_ns):
        """Events from row `first` on were made known by a packet; note those of other packets."""
        row: cython.longlong
        for row in range(first, self.count):
            if self.number[row] != number:
                self.late.append((row, number, ts_ns))
        return 0

    def take(self, octets, conversations, captures=()):
        """The events written since `reserve`, as a batch; the writer is empty afterwards."""
        columns, count, extra, findings = self.columns, self.count, self.extra, self.findings
        self.reserve(0)
        columns = tuple([column[:count] for column in columns])
        return StreamBatch(octets, extra, columns, list(conversations), findings, captures)
