# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What made rows known, for those who bring rows of several readers into one order.

A row is known when the packet comes that ends its frame, or its content. But bytes behind a hole
wait until another packet fills it or makes it known that nothing will, or until a deadline: then
they have the numbers of their own packets, and are known later than these came.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

import cython

from amqpsniff.columns import NUMBER_BITS, NUMBER_MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_END = cython.declare(cython.longlong, 2**62)


class Moments:
    """The packet or deadline that made each message's row and each loss known; for rows of frames
    only where they were held back.

    `sources` are the captures by their place in packet numbers. A moment is (capture, number,
    time); for a deadline the capture is None and the number -1.
    """

    def __init__(self, sources: Any) -> None:
        self.sources = sources
        self.messages = array("q")
        self.losses = array("q")
        self.late_rows: list[Any] = []
        self.late: dict[Any, Any] = {}
        self.frame_rows = self.message_rows = 0
        self.next = self.next_loss = 0

    def begin(self, batch: Any, frames: Any, messages: Any) -> None:
        """A `StreamBatch` is about to be decoded; rows of frames and messages so far."""
        self.late = {one[0]: one[1:] for one in batch.late}
        self.frame_rows, self.message_rows = frames, messages

    def note(self, batch: Any, event: Any, frames: Any, messages: Any, losses: Any) -> None:
        """An event of the batch is decoded; rows of frames and messages, and losses, so far."""
        late = self.late.get(event)
        made: cython.Py_ssize_t = messages - self.message_rows
        lost: cython.Py_ssize_t = losses - len(self.losses) // 2
        if made > 0 or lost > 0:
            moment = late or (batch.number[event], batch.ts_ns[event])
            self.messages.extend(moment * made)
            self.losses.extend(moment * lost)
        if late is not None and frames > self.frame_rows:
            self.late_rows.append((self.frame_rows, frames, *late))
        self.frame_rows, self.message_rows = frames, messages

    def clear(self) -> None:
        """The rows so far are not needed any longer."""
        del self.messages[:]
        del self.losses[:]
        self.late_rows.clear()
        self.next = self.next_loss = 0

    def meet(self) -> Any:
        """Go on to the next message; whether its moment is known."""
        self.next += 2
        return self.next <= len(self.messages)

    def of_message(self) -> Any:
        """The moment of that message."""
        at: cython.Py_ssize_t = self.next - 2
        return self._moment(self.messages[at], self.messages[at + 1])

    def of_next_loss(self) -> Any:
        """Go on to the next loss; its moment, None where it is not known."""
        at: cython.Py_ssize_t = self.next_loss
        self.next_loss += 2
        return self._moment(*self.losses[at : at + 2]) if at < len(self.losses) else None

    def of_frame(self, row: Any) -> Any:
        """The moment of a frame's row that was held back; None when it was not."""
        at: cython.Py_ssize_t = bisect_right(self.late_rows, (row, _END)) - 1
        if at < 0:
            return None
        _, end, number, ts_ns = self.late_rows[at]
        return self._moment(number, ts_ns) if row < end else None

    def _moment(self, number: Any, ts_ns: Any) -> Any:
        if number < 0:
            return None, -1, ts_ns
        return self.sources[number >> NUMBER_BITS], number & NUMBER_MASK, ts_ns
