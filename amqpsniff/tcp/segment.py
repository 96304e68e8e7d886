# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""A segment as an object, for all that does not go through the loop of `reassembly`.

The loop reads the row of a segment where it stands, since an object for each would cost too much.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.tcp.codes import (
    ACKNOWLEDGED,
    CAPTURED,
    EXTRA,
    FLAGS,
    LENGTH,
    MASK,
    SEEN,
    SEQ,
    START,
    SYN,
)
from cython.cimports.amqpsniff.tcp.stream import EventWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


@cython.no_gc
@cython.cclass
class Segment:
    """A TCP segment: the columns of its row, see `codes`, and its packet."""

    rows: cython.longlong[::1]
    at: cython.longlong  # where its row begins in `rows`
    number: cython.longlong  # of its packet, with the index of its capture
    ts_ns: cython.longlong  # of its packet
    seq: cython.longlong
    payload_seq: cython.longlong  # of the first byte of its payload, behind that of a SYN
    ack: cython.longlong
    flags: cython.int
    octets: bytes  # the bytes that its payload is in
    extra: cython.longlong  # where these are in `extra`, -1 for those of the batch
    start: cython.longlong  # of its payload in `octets`
    captured: cython.longlong
    length: cython.longlong
    seen: cython.longlong  # bytes of packets captured up to it

    def read(
        self,
        writer: EventWriter,
        octets: bytes,
        rows: cython.longlong[::1],
        at: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Take the values of the row at `at`; `octets` are the bytes of the batch."""
        self.rows, self.at = rows, at
        self.number, self.ts_ns = number, ts_ns
        self.seq, self.ack = rows[at + SEQ], rows[at + ACKNOWLEDGED]
        self.flags = rows[at + FLAGS]
        self.payload_seq = (self.seq + 1) & MASK if self.flags & SYN else self.seq
        self.extra = rows[at + EXTRA]
        self.octets = octets if self.extra < 0 else writer.extra[self.extra]
        self.start, self.captured = rows[at + START], rows[at + CAPTURED]
        self.length, self.seen = rows[at + LENGTH], rows[at + SEEN]
        return 0
