# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""TCP reassembly: batches of packets in, events of conversations out.

The ordinary segment, the next one of its half-stream with nothing missing on either side, goes
through one loop: its conversation is found in a small cache, one event row is written, counters
move. Everything else (a new conversation, SYN, FIN, RST, a hole, a retransmission, a cut payload)
leaves the loop for `SlowPath.handle_segment` and the modules beside this one.

Events come in the order in which the packets made them known, and depend on the packets only, never
on how these came in batches. Time is the packets' own: a hole's or an end's deadline passes when a
packet of any conversation shows a later time.

When a conversation is opened: by a SYN, by the answer to one, or by payload. When it is closed: a
while after a RST that TCP takes, so that bytes in flight are followed; when both FINs were reached
and acknowledged (or some time after); when another conversation of the same endpoints has begun;
when three segments in a row agree on a place where it cannot be; by the limit on conversations; by
`finish`. A RST or SYN that TCP does not take closes nothing (`doubt`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import cython
from cython.cimports.amqpsniff.packet_numbers import NUMBER_BITS
from cython.cimports.amqpsniff.tcp.codes import (
    A_HIGH,
    A_LOW,
    ACK,
    ACKNOWLEDGED,
    B_HIGH,
    B_LOW,
    CAPTURED,
    CHUNK,
    DATA,
    EXTRA,
    FIN,
    FLAGS,
    IDENTIFICATION,
    LENGTH,
    MASK,
    NO_WINDOW,
    PACKET,
    PORTS,
    RST,
    SEEN,
    SEGMENT_FIELDS,
    SEQ,
    START,
    SYN,
    UNREACHABLE,
)
from cython.cimports.amqpsniff.tcp.half_stream import HalfStream
from cython.cimports.amqpsniff.tcp.headers import HeaderParser
from cython.cimports.amqpsniff.tcp.limits import MAX_DELAY_NS, MIN_DELAY_NS, PROMPT_NS
from cython.cimports.amqpsniff.tcp.out_of_order import Deadlines
from cython.cimports.amqpsniff.tcp.partition import Partition, mark_of
from cython.cimports.amqpsniff.tcp.retransmissions import History
from cython.cimports.amqpsniff.tcp.slow_path import SlowPath
from cython.cimports.amqpsniff.tcp.stream import EventWriter

from .fragments import Fragments
from .limits import Limits
from .stream import StreamBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SPECIAL = cython.declare(cython.int, NO_WINDOW | ACK | SYN | FIN | RST)


# Cells of the cache from addresses and ports to half-streams (768 KiB in all, of which only the
# cells in use are touched). A cell has the index of a half-stream, then its addresses and ports in
# the columns of a segment's row. A miss costs one look-up in a dict, so a crafted set of addresses
# gains nothing.
CELLS = cython.declare(cython.longlong, 16_384)
CELL = cython.declare(cython.longlong, PORTS + 1)

# Room for events in addition to one for each packet.
SPARE_EVENTS = cython.declare(cython.longlong, 8)


@cython.cclass
class Reassembler:
    """Batches of packets in, batches of TCP events out: `feed` for each, `finish` after the last.

    Nothing a packet contains raises.

    Args:
        ports: Only conversations that have one of them are followed; None for all.
        limits: Other bounds than the usual ones.
        partition: Only conversations of it are followed; None for all. Their events are the same as
            without one.
        positions: Collect where segments lie in their streams, see `take_positions`. Then no
            segment waits for a handshake that was captured after it.
        starts: In place of that wait, the starts of streams that an earlier reading of the same
            packets found, see `keep_starts`.
    """

    parser: HeaderParser
    fragments: Any
    slow_path: SlowPath
    writer: EventWriter
    history: History
    halves: list[Any]
    names: list[Any]
    capture_indexes: dict[Any, Any]
    tunnels: dict[Any, Any]
    capture_index: cython.longlong
    partition: Any
    cache: cython.longlong[::1]
    ahead_limit: cython.longlong
    keeps_positions: cython.bint
    packets: cython.longlong
    segments: cython.longlong

    def __init__(
        self,
        ports: frozenset[int] | None = None,
        limits: Limits | None = None,
        partition: Partition | None = None,
        positions: bool = False,
        starts: dict[int, object] | None = None,
    ) -> None:
        limits = limits or Limits()
        self.fragments = Fragments(limits)
        self.parser = HeaderParser(ports, self.fragments)
        self.slow_path = SlowPath(limits, positions, starts)
        self.keeps_positions = positions
        self.writer = self.slow_path.writer
        self.history = self.slow_path.history
        self.halves = self.slow_path.table.halves
        self.cache = array("q", [-1]) * (CELLS * CELL)
        self.ahead_limit = limits.impossible_ahead_bytes
        self.names = []
        self.capture_indexes = {}
        self.tunnels = {}
        self.capture_index = 0
        self.partition = partition
        self.packets = self.segments = 0

    @property
    def captures(self) -> list[str]:
        """Names of the captures fed, by their index in packet numbers."""
        return self.names

    @property
    def unread_tunnels(self) -> dict[str, dict[str, int]]:
        """Packets of tunnels that are not read, by capture and tunnel."""
        return self.tunnels

    @property
    def counters(self) -> dict[str, int]:
        """Counts so far, in packets or segments.

        `packets` = `not_ip` + `not_tcp` + `malformed` + `other_ports` + `fragments` that completed
        nothing + `segments`. `cut`: segments whose payload the snap length cut. `duplicates`:
        segments that are one packet captured twice; they are not `retransmissions`.
        """
        return {
            "packets": self.packets,
            **self.parser.counts(),
            "fragments": self.fragments.count,
            "segments": self.segments,
            "cut": self.slow_path.cut,
            "retransmissions": self.slow_path.retransmissions,
            "duplicates": self.slow_path.duplicates,
            "out_of_order": self.slow_path.out_of_order,
            "impossible": self.slow_path.impossible,
        }

    def keep_starts(self) -> dict[int, object]:
        """Remember the starts of streams whose handshake is late, for a second reading."""
        self.slow_path.starts = {}
        return self.slow_path.starts

    def take_positions(self) -> Any:
        """Positions of the last batch's payload in its streams: `POSITION_FIELDS` per segment.

        These are its row in the batch, its half-stream (as in `StreamBatch.half`), the stream
        offset of its first byte, where that byte is in the batch's bytes, how many bytes were
        captured, and the offset that the other side had acknowledged last, -1 if it had not. A
        segment without a conversation is left out, and so is one that came in IP fragments. A
        repeated segment has the offsets of the bytes that it repeats. The first byte of a stream is
        0, so offsets of bytes before it are negative.
        """
        positions, self.slow_path.positions = self.slow_path.positions, array("q")
        return positions

    def feed(self, batch: Any) -> StreamBatch:
        """Take a `PacketBatch`; returns the events that its packets cause."""
        begin: cython.longlong = batch.begin
        end: cython.longlong = batch.end
        chunk: cython.longlong
        count: cython.longlong
        self._use(batch.capture)
        self.slow_path.table.begin_batch()
        self.writer.reserve(end - begin + SPARE_EVENTS)
        self.history.begin_batch(batch.octets, self.parser.bytes_seen())
        for chunk in range(begin, end, CHUNK):
            count = self.parser.parse(batch, chunk, min(chunk + CHUNK, end), self.writer.extra)
            self._segments(batch, count)
        self.history.end_batch(self.parser.bytes_seen())
        self.packets += end - begin
        if self.parser.unread():
            self._take_unread(batch.capture)
        return self._new_batch(batch.octets)

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _take_unread(self, capture: Any) -> cython.int:
        """Packets of tunnels that were not read are of this capture."""
        found: dict[Any, Any] = self.parser.unread()
        totals: dict[Any, Any] = self.tunnels.setdefault(capture, {})
        for tunnel, count in found.items():
            totals[tunnel] = totals.get(tunnel, 0) + count
        found.clear()
        return 0

    @cython.cfunc
    def _new_batch(self, octets: bytes) -> Any:
        """The events written, as a batch."""
        batch = self.writer.take(octets, self.slow_path.table.conversations, self.names)
        batch.late, self.writer.late = self.writer.late, []
        batch.resets, self.writer.resets = self.writer.resets, []
        return batch

    def wait(self, ts_ns: cython.longlong) -> StreamBatch:
        """No packets come up to a time: returns the events that this completes."""
        self.slow_path.table.begin_batch()
        if ts_ns >= self.slow_path.deadlines.next_ns:
            self.slow_path.expire(ts_ns)
        return self._new_batch(b"")

    def skip(self, octets: cython.longlong) -> None:
        """Skip packets with this many captured bytes."""
        self.parser.skip(octets)

    def expect(self, captures: Iterable[str]) -> None:
        """Set the captures whose packets may come, in the order of their packet numbers.

        If only some of their packets come, the packets alone do not show this order.
        """
        for capture in captures:
            if capture not in self.capture_indexes:
                self.capture_indexes[capture] = len(self.names)
                self.names.append(capture)

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _use(self, capture: Any) -> cython.int:
        """Packets from here on are of this capture."""
        if not self.names or self.names[self.capture_index] != capture:
            self.expect((capture,))
            self.capture_index = self.capture_indexes[capture]
        return 0

    def finish_some(self, max_count: int) -> StreamBatch | None:
        """Close up to `max_count` open conversations; None where `finish` closes the rest."""
        return self._finish(max_count) if self.slow_path.table.open_count > max_count else None

    def finish(self) -> StreamBatch:
        """End of packets: give up and close every open conversation."""
        return self._finish(-1)

    @cython.cfunc
    def _finish(self, max_count: cython.longlong) -> Any:
        self.slow_path.table.begin_batch()
        self.slow_path.close_all(max_count)
        return self._new_batch(b"")

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _segments(self, batch: Any, count: cython.longlong) -> cython.int:
        """The hot loop: `count` rows of the parser."""
        rows: cython.longlong[::1] = self.parser.segments()
        numbers: cython.longlong[::1] = batch.number
        times: cython.longlong[::1] = batch.ts_ns
        octets: bytes = batch.octets
        slow_path: SlowPath = self.slow_path
        history: History = self.history
        deadlines: Deadlines = slow_path.deadlines
        half: HalfStream
        other: HalfStream
        row: cython.longlong
        at: cython.longlong
        packet: cython.longlong
        number: cython.longlong
        ts_ns: cython.longlong
        a_high: cython.longlong
        a_low: cython.longlong
        b_high: cython.longlong
        b_low: cython.longlong
        ports: cython.longlong
        flags: cython.int
        length: cython.longlong
        ahead: cython.longlong
        index: cython.int
        low: cython.longlong
        cell: cython.longlong
        slot: cython.longlong
        cache: cython.longlong[::1] = self.cache
        high: cython.longlong = self.capture_index << NUMBER_BITS
        first: cython.longlong
        unfollowed: cython.longlong = 0
        partition: Partition = self.partition
        if count * SEGMENT_FIELDS > len(rows) or len(cache) < CELLS * CELL:
            raise IndexError("rows that are not there")
        for row in range(count):
            at = row * SEGMENT_FIELDS
            with cython.boundscheck(False):  # the row is there
                packet = rows[at + PACKET]
                a_high, a_low = rows[at + A_HIGH], rows[at + A_LOW]
                b_high, b_low = rows[at + B_HIGH], rows[at + B_LOW]
                ports = rows[at + PORTS]
                flags = cython.cast(cython.int, rows[at + FLAGS])
                length = rows[at + LENGTH]
                history.seen = rows[at + SEEN]
                history.identification = rows[at + IDENTIFICATION]
            number = numbers[packet] | high
            ts_ns = times[packet]
            slow_path.segment_serial += 1
            if ts_ns >= deadlines.next_ns:
                slow_path.expire(ts_ns)
            if partition is not None and not partition.number(
                mark_of(a_high, a_low, b_high, b_low, ports)
            ):
                unfollowed += 1
                continue
            if flags & UNREACHABLE:
                unfollowed += 1
                slow_path.note_unreachable(rows, at)
                continue
            low = (a_low & MASK) * 0x1E3779B1 + (b_low & MASK) * 0x05EBCA77
            cell = ((low + (ports & MASK) * 0x42B2AE3D) >> 20) & (CELLS - 1)
            slot = cell * CELL
            index = -1
            with cython.boundscheck(False):  # every cell is there
                if (
                    cache[slot + PORTS] == ports
                    and cache[slot + A_LOW] == a_low
                    and cache[slot + B_LOW] == b_low
                    and cache[slot + A_HIGH] == a_high
                    and cache[slot + B_HIGH] == b_high
                ):
                    index = cython.cast(cython.int, cache[slot])
            if index >= 0:
                half = self.halves[index]
                if not half.open or half.cell != cell:
                    index = -1
            if index < 0:
                half = slow_path.find(rows, at)
                if half is None:
                    first = self.writer.count
                    index = slow_path.unknown(octets, rows, at, number, ts_ns)
                    self.writer.note_late(first, number, ts_ns)
                    if index < 0:
                        continue
                    half = self.halves[index]
                index = half.index
                self._keep(half, rows, at, cell)
            if flags & SPECIAL == ACK and not half.slow:
                other = self.halves[index ^ 1]
                other.ack_seen = 1
                ahead = (rows[at + ACKNOWLEDGED] - other.next_seq) & MASK
                if ahead == 0 or ahead > self.ahead_limit or other.next_seq < 0:
                    if rows[at + SEQ] == half.next_seq and (
                        length == 0 or (rows[at + CAPTURED] == length and rows[at + EXTRA] < 0)
                    ):
                        half.packets += 1
                        half.last_number = number
                        half.last_ns = ts_ns
                        half.activity = slow_path.segment_serial
                        other.ack_seq = rows[at + ACKNOWLEDGED]
                        if length > 0:
                            if self.keeps_positions:
                                slow_path.note_position(half, half.next_offset, rows, at)
                            self._deliver(half, rows[at + START], length, number, ts_ns)
                            if half.acked_late_ns > 0:
                                if ts_ns - half.acked_late_ns <= PROMPT_NS:
                                    half.awaited_acks += 1
                                half.acked_late_ns = 0
                        else:
                            half.count_empty(history.identification)
                            if MIN_DELAY_NS <= ts_ns - other.last_ns <= MAX_DELAY_NS:
                                other.acked_late_ns = ts_ns
                        continue
            first = self.writer.count
            slow_path.handle_segment(octets, index, rows, at, number, ts_ns)
            self.writer.note_late(first, number, ts_ns)
        self.segments += count - unfollowed
        return 0

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1, check=True)
    def _deliver(
        self,
        half: HalfStream,
        start: cython.longlong,
        length: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Hand on payload that is next in its half-stream and whole."""
        self.writer.append(DATA, half.index, -1, start, length, half.next_offset, number, ts_ns)
        half.last_row = self.history.add(
            half.last_row,
            self.history.block,
            start,
            half.next_offset,
            length,
            self.history.seen,
            ts_ns,
            number,
        )
        half.next_offset += length
        half.next_seq = (half.next_seq + length) & MASK
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _keep(
        self,
        half: HalfStream,
        rows: cython.longlong[::1],
        at: cython.longlong,
        cell: cython.longlong,
    ) -> cython.int:
        """Find a segment's half-stream in a cell, which is right if the half-stream points back."""
        column: cython.longlong
        slot: cython.longlong = cell * CELL
        half.cell = cell
        self.cache[slot] = half.index
        for column in range(A_HIGH, PORTS + 1):
            self.cache[slot + column] = rows[at + column]
        return 0
