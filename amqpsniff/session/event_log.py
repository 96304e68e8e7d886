# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Event log of a reader of some connections, in time order, to be merged with other readers' logs.

Each row has the packet that caused it, by time, capture and number, or the end of the capture. In
this order, the rows of all readers are those of one reader of everything. Rows are given away
`ROWS` at a time; none are kept.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.null import NULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROWS = 32_768
"""Rows that are held before they are given away, in 10 MB."""

ORDER = ["ts_ns", "capture", "number"]
"""Columns that say when it was; `capture` is an index, negative if unknown."""

_LAST = cython.declare(cython.longlong, 2**63 - 1)


@cython.cclass
class EventLog:
    """Writes rows.

    Args:
        seed: Seed of the hashes; the same for all readers whose rows are merged.
        give: Called with this object when its columns have `most` rows; the columns are then
            reused.
        numbers: Names of further columns of integers.

    `captures` are names by index. `over`: the capture has ended. `most`: rows held at a time,
    `ROWS` or fewer.
    """

    seed: cython.ulonglong
    give: Any
    over: cython.bint
    count: cython.longlong
    rows: cython.longlong
    most: cython.longlong
    last_ns: cython.longlong
    last_capture: cython.longlong
    last_number: cython.longlong
    recent_code: cython.longlong

    captures: list[Any]
    codes: dict[Any, Any]
    recent: Any
    ts_ns: Integers
    capture: Integers
    number: Integers

    def __init__(self, seed: Any, give: Any, numbers: Any) -> None:
        self.seed = seed
        self.give = give
        self.captures = []
        self.codes = {}
        self.recent, self.recent_code = None, -1
        self.count = self.rows = 0
        self.last_ns = NULL
        self.last_capture = self.last_number = 0
        self.over = False
        self.most = ROWS
        for name in [*ORDER, *numbers]:
            column: Integers = Integers(nulls=False)
            column.reserve(ROWS)
            setattr(self, name, column)

    @cython.ccall
    @cython.exceptval(-1)
    def at(self, capture: Any, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """Set the packet that brings about the next rows, or the time alone (`capture` None).

        Time does not run backwards here.
        """
        if ts_ns == NULL or ts_ns < self.last_ns:
            return 0
        code: cython.longlong = self.code_of(capture)
        if ts_ns == self.last_ns and code == self.last_capture and number < self.last_number:
            return 0
        self.last_ns, self.last_capture, self.last_number = ts_ns, code, number
        return 0

    @cython.exceptval(-2)
    def code_of(self, capture: Any) -> cython.longlong:
        """The index of a capture in `captures`, which it is put in; negative for None."""
        if capture is not self.recent:
            code: cython.longlong = -1
            if capture is not None:
                code = self.codes.setdefault(capture, len(self.captures))
                if code == len(self.captures):
                    self.captures.append(capture)
            self.recent, self.recent_code = capture, code
        return self.recent_code

    def at_end(self, conversation: Any) -> cython.int:
        """Set the end of the capture, on a conversation, as what brings about the next rows."""
        begun: cython.longlong = conversation.start_ns
        if self.last_ns == _LAST and begun < self.last_number:
            return 0
        self.last_ns, self.last_capture = _LAST, -1
        self.last_number = begun
        return 0

    @cython.ccall
    def finish(self) -> None:
        """Give away the remaining rows."""
        if self.rows:
            self.give(self)
            self.rows = 0

    def put_order(self) -> cython.longlong:
        """Begin a row: write when it was; gives its place."""
        row: cython.longlong = self.rows
        self.ts_ns.values[row] = self.last_ns
        self.capture.values[row] = self.last_capture
        self.number.values[row] = self.last_number
        return row

    def end_row(self) -> cython.int:
        """A row is written."""
        self.rows += 1
        self.count += 1
        if self.rows >= self.most:
            self.finish()
        return 0
