# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Output of reassembly: events of TCP conversations as rows over the packets' own bytes.

Four kinds of event, in the order in which they became known:

* `OPEN`: a conversation begins, `conversations[half >> 1]`; nothing of it comes before.
* `DATA`: the next `length` bytes of one half-stream, at `octets[start:start + length]`, or in
  `extra[source]` where they had to be held back.
* `GAP`: `length` bytes of a half-stream that the capture has not; the next `DATA` follows them.
* `CLOSE`: the conversation is over; nothing of it comes after.

Within one half-stream `DATA` and `GAP` are contiguous: each `stream_offset` is the one before plus
its `length`. Several conversations interleave as they do in the capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import cython
from cython.cimports.amqpsniff.tcp.codes import DATA, GAP

from amqpsniff.columns import room_for
from amqpsniff.packet_numbers import NUMBER_MASK

POSITION_FIELDS = 6
"""Integers of a segment's position, see `Reassembler.take_positions`."""

MORE_ROWS = cython.declare(cython.longlong, 64)
"""Rows made ready at once when a batch has more events than were expected."""

KIND_NAMES = ("open", "data", "gap", "close")


class TcpFinding(NamedTuple):
    """One thing wrong with a conversation's segments; `code` is a row of `amqpsniff.findings`.

    `packet_number` is as in `StreamBatch`.
    """

    code: str
    conversation: Any
    packet_number: int
    ts_ns: int
    detail: str


Late = tuple[int, int, int]
"""An event that was held back, by row, and what gave it free: a packet's number and time, or a
deadline, with a negative number."""


class StreamBatch:
    """Events of one batch of packets: rows 0 to `count - 1` of the arrays.

    A slot names one conversation from its `OPEN` to its `CLOSE` and is given to another one in a
    later batch at the earliest, so `conversations[half >> 1]` is right for every row.
    """

    __slots__ = (
        "octets",  # bytes of the packets
        "extra",  # bytes that had to be held back, or came in IP fragments
        "count",
        # columns
        "kind",
        "half",  # slot * 2 + direction; direction 0 is the originator
        "source",  # -1 for `octets`, otherwise an index into `extra`
        "start",  # 0 for `GAP`, `OPEN` and `CLOSE`
        "length",  # the bytes missing for `GAP`, 0 for `OPEN` and `CLOSE`
        "stream_offset",  # from the byte after the SYN, without a SYN from the first byte captured
        "number",  # of the packet that carried it, or filled the hole before it; above the
        # `NUMBER_BITS` is the index of its capture in `captures`
        "ts_ns",  # of that packet
        # beside them
        "conversations",  # by slot
        "findings",
        "captures",
        "late",  # the events that became known by another packet
        "resets",  # slots of conversations that had a RST, or data after one
    )

    def __init__(
        self,
        octets: bytes,
        extra: list[bytes],
        columns: tuple[Sequence[int], ...],
        conversations: list[Any],
        findings: list[TcpFinding],
        captures: list[str],
    ) -> None:
        self.octets = octets
        self.extra = extra
        self.kind, self.half, self.source = columns[:3]
        self.start, self.length, self.stream_offset, self.number, self.ts_ns = columns[3:]
        self.count = len(self.kind)
        self.conversations = conversations
        self.findings = findings
        self.captures = captures
        self.late: list[Late] = []
        self.resets: list[int] = []

    def __len__(self) -> int:
        return self.count

    def with_events(self, columns: tuple[Sequence[int], ...], extra: list[bytes]) -> StreamBatch:
        """Other events of the same conversations, over the same bytes and those of `extra`.

        The caller sets which of them are `late`.
        """
        shared = (self.conversations, self.findings, self.captures)
        batch = StreamBatch(self.octets, extra, columns, *shared)
        batch.resets = self.resets
        return batch

    def payload(self, row: int) -> bytes:
        """The bytes of a `DATA` row (a copy; for people and tests, not for the decoder)."""
        source = self.source[row]
        block = self.octets if source < 0 else self.extra[source]
        start = self.start[row]
        return block[start : start + self.length[row]]

    def events(self) -> Iterator[tuple[str, Any, int, int, int, bytes | int]]:
        """Rows as (kind name, conversation, direction, stream offset, packet number, payload).

        The payload is bytes for `data`, the number of bytes missing for `gap`, b"" otherwise.
        """
        for row in range(self.count):
            kind, half = self.kind[row], self.half[row]
            conversation = self.conversations[half >> 1]
            assert conversation is not None
            payload: bytes | int = b""
            if kind == DATA:
                payload = self.payload(row)
            elif kind == GAP:
                payload = self.length[row]
            yield (
                KIND_NAMES[kind],
                conversation,
                half & 1,
                self.stream_offset[row],
                self.number[row] & NUMBER_MASK,
                payload,
            )


def _column(code: Any, rows: Any) -> Any:
    """An uninitialized column of `rows` numbers, `i` of 32 and `q` of 64 bits."""
    return memoryview(room_for((4 if code == "i" else 8) * rows)).cast(code)


@cython.cclass
class EventWriter:
    """Writes the next `StreamBatch`: columns of events, bytes that were held back, findings."""

    columns: list[Any]
    extra: list[Any]
    findings: list[Any]
    late: list[Any]
    resets: list[Any]
    count: cython.longlong
    capacity: cython.longlong
    kind: cython.int[::1]
    half: cython.int[::1]
    source: cython.int[::1]
    start: cython.longlong[::1]
    length: cython.longlong[::1]
    stream_offset: cython.longlong[::1]
    number: cython.longlong[::1]
    ts_ns: cython.longlong[::1]

    def __init__(self) -> None:
        self.late = []
        self.resets = []
        self.reserve(0)

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self, rows: cython.longlong) -> cython.int:
        """Start a batch with room for `rows` events."""
        self.count = 0
        self.extra = []
        self.findings = []
        self.columns = [_column(code, rows) for code in "iiiqqqqq"]
        return self._bind(rows)

    def _bind(self, rows: cython.longlong) -> cython.int:
        self.kind, self.half, self.source = self.columns[:3]
        self.start, self.length, self.stream_offset, self.number, self.ts_ns = self.columns[3:]
        self.capacity = rows
        return 0

    def _grow(self) -> cython.int:
        rows = self.capacity * 2 + MORE_ROWS
        columns = self.columns
        self.columns = [_column(column.format, rows) for column in columns]
        for new, old in zip(self.columns, columns, strict=True):
            new[: self.capacity] = old
        return self._bind(rows)

    def append(
        self,
        kind: cython.int,
        half: cython.int,
        source: cython.int,
        start: cython.longlong,
        length: cython.longlong,
        stream_offset: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
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

    def note_late(
        self, first: cython.longlong, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """A packet caused the events from row `first` on; note those with other packet numbers."""
        row: cython.longlong
        for row in range(first, self.count):
            if self.number[row] != number:
                self.late.append((row, number, ts_ns))
        return 0

    def take(self, octets: Any, conversations: Any, captures: Any = ()) -> Any:
        """The events written since `reserve`, as a batch; the writer is empty afterwards."""
        full_columns, count, extra, findings = self.columns, self.count, self.extra, self.findings
        self.reserve(0)
        columns = tuple([column[:count] for column in full_columns])
        return StreamBatch(octets, extra, columns, list(conversations), findings, captures)
