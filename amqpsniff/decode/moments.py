# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Packets that completed rows; used to merge rows of several readers in order.

A row is complete when the packet comes that ends its frame, or its content. But bytes after a hole
wait until a later packet fills the hole or shows that it stays, or until a deadline. Their rows
have the numbers of their own packets, and are completed later.
"""

from __future__ import annotations

from bisect import bisect_right

import cython
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.packet_numbers import NUMBER_BITS, NUMBER_MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_END = cython.declare(cython.longlong, 2**62)
_FIRST = cython.declare(cython.longlong, 1024)


@cython.cclass
class Moments:
    """The packet or deadline that completed each message's row and each loss; for rows of frames
    only where they were held back.

    `sources` are the captures by their place in packet numbers. A moment is (capture, number,
    time); for a deadline the capture is None and the number -1. `capture`, `number` and `ts_ns` are
    that of the message that was `meet` last.
    """

    number: cython.longlong
    ts_ns: cython.longlong
    count: cython.longlong
    next: cython.longlong
    next_loss: cython.longlong
    frame_rows: cython.longlong
    message_rows: cython.longlong

    sources: list[Any]
    capture: Any
    numbers: Integers
    times: Integers
    losses: list[Any]
    late_rows: list[Any]
    late: dict[Any, Any]

    def __init__(self, sources: Any) -> None:
        self.sources = sources
        self.numbers, self.times = Integers(False), Integers(False)
        self.losses = []
        self.late_rows = []
        self.late = {}
        self.frame_rows = self.message_rows = 0
        self.count = self.next = self.next_loss = 0
        self.capture = None
        self.number = self.ts_ns = 0

    def begin(self, batch: Any, frames: cython.longlong, messages: cython.longlong) -> cython.int:
        """A `StreamBatch` is about to be decoded; rows of frames and messages so far."""
        self.late = {moment[0]: moment[1:] for moment in batch.late}
        self.frame_rows, self.message_rows = frames, messages
        return 0

    def note(
        self,
        event: cython.Py_ssize_t,
        number: cython.longlong,
        ts_ns: cython.longlong,
        frames: cython.longlong,
        messages: cython.longlong,
        losses: cython.Py_ssize_t,
    ) -> cython.int:
        """An event of a packet is decoded; rows of frames and messages, and losses, so far."""
        late: Any = self.late.get(event) if self.late else None
        if late is not None:
            number, ts_ns = late
            if frames > self.frame_rows:
                self.late_rows.append((self.frame_rows, frames, number, ts_ns))
        while self.message_rows < messages:
            if self.count >= self.numbers.capacity:
                self.numbers.reserve(max(_FIRST, 2 * self.count))
                self.times.reserve(max(_FIRST, 2 * self.count))
            self.numbers.values[self.count] = number
            self.times.values[self.count] = ts_ns
            self.count += 1
            self.message_rows += 1
        while len(self.losses) < losses:
            self.losses.append((number, ts_ns))
        self.frame_rows, self.message_rows = frames, messages
        return 0

    @cython.ccall
    def clear(self) -> None:
        """The rows so far are not needed any longer."""
        self.losses.clear()
        self.late_rows.clear()
        self.count = self.next = self.next_loss = 0

    def meet(self) -> cython.bint:
        """Advance to the next message; True if it has a moment."""
        row: cython.longlong = self.next
        self.next += 1
        if row >= self.count:
            return False
        self.number, self.ts_ns = self.numbers.values[row], self.times.values[row]
        self.capture = None
        if self.number < 0:
            self.number = -1
        else:
            self.capture = self.sources[self.number >> NUMBER_BITS]
            self.number &= NUMBER_MASK
        return True

    @cython.cfunc
    def of_next_loss(self) -> Any:
        """Advance to the next loss; returns its moment, or None."""
        at: cython.Py_ssize_t = self.next_loss
        self.next_loss += 1
        if at >= len(self.losses):
            return None
        number, ts_ns = self.losses[at]
        return self._moment(number, ts_ns)

    @cython.cfunc
    def of_frame(self, row: cython.longlong) -> Any:
        """The moment of a frame's row that was held back, else None."""
        at: cython.Py_ssize_t = bisect_right(self.late_rows, (row, _END)) - 1
        if at < 0:
            return None
        _, end, number, ts_ns = self.late_rows[at]
        return self._moment(number, ts_ns) if row < end else None

    @cython.cfunc
    def _moment(self, number: cython.longlong, ts_ns: cython.longlong) -> Any:
        if number < 0:
            return None, -1, ts_ns
        return self.sources[number >> NUMBER_BITS], number & NUMBER_MASK, ts_ns
