# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Packets to TCP segments: one row of `SEGMENT_FIELDS` integers per segment.

Ethernet, IPv4 and TCP with nothing between are read in the loop itself; `layers` finds the
TCP header of all other packets. Other packets are counted and skipped. A segment is a row if
the first 14 bytes of its header were captured; fewer bytes do not identify it. A segment that ICMP
reports as undeliverable is a row too, marked `UNREACHABLE`.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.byteorder import u16, u32
from cython.cimports.amqpsniff.tcp.codes import (
    A_HIGH,
    A_LOW,
    ACKNOWLEDGED,
    B_HIGH,
    B_LOW,
    CAPTURED,
    EXTRA,
    FLAGS,
    IDENTIFICATION,
    LENGTH,
    MALFORMED,
    NO_WINDOW,
    NOT_TCP,
    PACKET,
    PORTS,
    QUOTED,
    SEEN,
    SEGMENT_FIELDS,
    SEQ,
    START,
    TCP,
    UNREACHABLE,
)
from cython.cimports.amqpsniff.tcp.layers import Layers, find_ip

from amqpsniff.findings import Finding

from .fragments import Fragments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@cython.cfunc
@cython.inline
@cython.boundscheck(False)
@cython.exceptval(-1, check=False)
def _is_plain(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.int:
    """True if a frame of Ethernet at `at`, of 54 bytes or more, is TCP in IPv4 without options."""
    return (
        octets[at + 12] == 8
        and octets[at + 13] == 0
        and octets[at + 14] == 0x45
        and octets[at + 23] == 6
        and octets[at + 20] & 0xBF == 0  # no fragment
        and octets[at + 21] == 0
    )


def unread_tunnels(capture: str, unread: dict[str, int]) -> Finding:
    """The finding about packets of tunnels that are not read, from their numbers by tunnel."""
    parts = ", ".join(f"{unread[tunnel]} in {tunnel}" for tunnel in sorted(unread))
    return Finding("tunnel-unreadable", f"packets: {parts}", capture)


@cython.cclass
class HeaderParser:
    """Packets in, rows of TCP segments out; counts the skipped packets.

    `ports`: only segments from or to one of them become rows (None: all). `fragments` holds IP
    fragments until their packet is whole.
    """

    layers: Layers
    rows: Any
    table: cython.longlong[::1]
    capacity: cython.longlong
    filtered: cython.bint
    followed: cython.const[cython.uchar][::1]
    seen: cython.longlong
    not_ip: cython.longlong
    not_tcp: cython.longlong
    malformed: cython.longlong
    other_ports: cython.longlong

    def __init__(self, ports: frozenset[int] | None, fragments: Fragments) -> None:
        self.layers = Layers(fragments)
        self.filtered = ports is not None
        followed = bytearray(65536)
        for port in ports or ():
            followed[port] = 1
        self.followed = bytes(followed)
        self.capacity = 0
        self.seen = 0
        self.not_ip = self.not_tcp = self.malformed = self.other_ports = 0

    def counts(self) -> dict[str, int]:
        """Numbers of skipped packets."""
        return {
            "not_ip": self.not_ip,
            "not_tcp": self.not_tcp,
            "malformed": self.malformed,
            "other_ports": self.other_ports,
        }

    def unread(self) -> dict[str, int]:
        """Packets of tunnels that are not read, by tunnel; they are among those `not_tcp`."""
        return self.layers.unread

    def segments(self) -> Any:
        """The rows written by the last `parse`, row after row of `SEGMENT_FIELDS` integers."""
        return self.rows

    def skip(self, octets: cython.longlong) -> None:
        """Count bytes of captured packets that are not parsed."""
        self.seen += octets

    def bytes_seen(self) -> int:
        """Bytes of packets captured so far."""
        return self.seen

    @cython.boundscheck(False)  # each range is checked at once, which is quicker than one by one
    def parse(
        self, batch: Any, begin: cython.longlong, end: cython.longlong, extra: list[Any]
    ) -> cython.longlong:
        """Read packets `begin` to `end - 1` of a batch; gives the number of rows written.

        A packet gives one row at most. Rows are good until the next call; the bytes of packets
        that arrived in fragments are appended to `extra`.
        """
        start: cython.longlong[::1] = batch.start
        captured: cython.longlong[::1] = batch.captured
        original: cython.longlong[::1] = batch.original
        link_type: cython.longlong[::1] = batch.link_type
        ts_ns: cython.longlong[::1] = batch.ts_ns
        block: cython.const[cython.uchar][::1] = batch.octets
        view: cython.const[cython.uchar][::1] = block
        table: cython.longlong[::1] = self._table(end - begin)
        layers: Layers = self.layers
        size: cython.longlong = len(block)
        packet: cython.longlong
        at: cython.longlong
        stop: cython.longlong
        wire_stop: cython.longlong
        total: cython.longlong
        family: cython.longlong
        a_high: cython.longlong
        a_low: cython.longlong
        b_high: cython.longlong
        b_low: cython.longlong
        ports: cython.longlong
        identification: cython.longlong
        payload: cython.longlong
        flags: cython.longlong
        kind: cython.int
        row: cython.longlong = 0
        seen: cython.longlong = self.seen
        if begin < 0 or end > min(
            len(start), len(captured), len(original), len(link_type), len(ts_ns)
        ):
            raise IndexError("no such packets")
        layers.begin_batch(block, extra)
        for packet in range(begin, end):
            at = start[packet]
            stop = min(at + captured[packet], size)
            wire_stop = max(at + original[packet], stop)
            seen += captured[packet]
            if link_type[packet] == 1 and at >= 0 and stop - at >= 54 and _is_plain(block, at):
                at += 14
                total = u16(block, at + 2)
                if total != 0:
                    wire_stop = at + total
                    stop = min(stop, wire_stop)
                family = 4
                a_high = b_high = 0
                a_low = u32(block, at + 12)
                b_low = u32(block, at + 16)
                identification = u16(block, at + 4)
                at += 20
            else:
                layers.end = stop
                layers.wire_end = wire_stop
                layers.ts_ns = ts_ns[packet]
                kind = self._walk(find_ip(block, at, stop, link_type[packet]))
                if kind == QUOTED:
                    row += self._quote(table, row, packet, seen)
                if kind != TCP:
                    continue
                at, stop, wire_stop = layers.at, layers.end, layers.wire_end
                family = layers.family
                a_high, a_low = layers.a_high, layers.a_low
                b_high, b_low = layers.b_high, layers.b_low
                identification = layers.identification
                if layers.source >= 0:
                    view = layers.octets
            payload = self._payload(view, at, stop, wire_stop)
            if payload >= 0:
                ports = u32(view, at)
                flags = view[at + 13]
                if stop - at >= 16 and view[at + 15] == 0 and view[at + 14] == 0:
                    flags |= NO_WINDOW
                if row + SEGMENT_FIELDS > len(table):
                    raise IndexError("no room for a row")
                table[row + PACKET] = packet
                table[row + A_HIGH] = a_high
                table[row + A_LOW] = a_low
                table[row + B_HIGH] = b_high
                table[row + B_LOW] = b_low
                table[row + PORTS] = family << 32 | ports
                table[row + SEQ] = u32(view, at + 4)
                table[row + ACKNOWLEDGED] = u32(view, at + 8)
                table[row + FLAGS] = flags
                table[row + EXTRA] = layers.source
                table[row + START] = payload
                table[row + CAPTURED] = max(stop - payload, 0)
                table[row + LENGTH] = wire_stop - payload
                table[row + SEEN] = seen
                table[row + IDENTIFICATION] = identification
                row += SEGMENT_FIELDS
            if layers.source >= 0:
                layers.leave(payload >= 0)
                view = block
        self.seen = seen
        if batch.passed is not None:
            self._pass(batch.passed, begin, end, row)
        return row // SEGMENT_FIELDS

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _pass(
        self,
        passed: cython.longlong[::1],
        begin: cython.longlong,
        end: cython.longlong,
        stop: cython.longlong,
    ) -> cython.int:
        """Count the bytes of packets that were left out, in the rows below `stop` too."""
        at: cython.longlong
        packet: cython.longlong = begin
        octets: cython.longlong = 0
        for at in range(0, stop, SEGMENT_FIELDS):
            while packet <= self.table[at + PACKET]:
                octets += passed[packet]
                packet += 1
            self.table[at + SEEN] += octets
        while packet < end:
            octets += passed[packet]
            packet += 1
        self.seen += octets
        return 0

    @cython.cfunc
    def _table(self, rows: cython.longlong) -> cython.longlong[::1]:
        """Room for `rows` rows."""
        if rows > self.capacity:
            self.capacity = rows
            self.rows = array("q", [0]) * (rows * SEGMENT_FIELDS)
            self.table = self.rows
        return self.table

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _walk(self, header: cython.longlong) -> cython.int:
        """Result of walking the layers from an IP header on; counts packets that are not TCP."""
        kind: cython.int
        if header < 0:
            self.not_ip += 1
            return NOT_TCP
        kind = self.layers.walk(header)
        if kind == TCP:
            return kind
        if kind == NOT_TCP or kind == QUOTED:
            self.not_tcp += 1
        elif kind == MALFORMED:
            self.malformed += 1
        if self.layers.source >= 0:
            self.layers.leave(False)
            return NOT_TCP
        return kind

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _quote(
        self,
        table: cython.longlong[::1],
        row: cython.longlong,
        packet: cython.longlong,
        seen: cython.longlong,
    ) -> cython.longlong:
        """Write the row of a segment that ICMP quotes; gives its length, 0 if not followed."""
        layers: Layers = self.layers
        at: cython.longlong = layers.at
        ports: cython.longlong = u32(layers.octets, at)
        if self.filtered and not (self.followed[ports >> 16] or self.followed[ports & 0xFFFF]):
            return 0
        if row + SEGMENT_FIELDS > len(table):
            raise IndexError("no room for a row")
        table[row + PACKET] = packet
        table[row + A_HIGH], table[row + A_LOW] = layers.a_high, layers.a_low
        table[row + B_HIGH], table[row + B_LOW] = layers.b_high, layers.b_low
        table[row + PORTS] = layers.family << 32 | ports
        table[row + SEQ] = u32(layers.octets, at + 4)
        table[row + ACKNOWLEDGED], table[row + FLAGS] = layers.reason, UNREACHABLE
        table[row + EXTRA], table[row + START] = -1, at
        table[row + CAPTURED] = table[row + LENGTH] = 0
        table[row + SEEN], table[row + IDENTIFICATION] = seen, -1
        return SEGMENT_FIELDS

    @cython.cfunc
    @cython.inline
    @cython.boundscheck(False)
    @cython.exceptval(-2, check=True)
    def _payload(
        self,
        octets: cython.const[cython.uchar][::1],
        at: cython.longlong,
        stop: cython.longlong,
        wire_stop: cython.longlong,
    ) -> cython.longlong:
        """Start of the payload of the segment at `at`; -1 if cut, malformed or not followed.

        Otherwise at least the first 14 bytes of the header were captured.
        """
        start: cython.longlong
        if at < 0 or stop > len(octets):
            raise IndexError("a segment outside a buffer")
        if stop - at < 14:
            self.malformed += 1
            return -1
        start = at + (octets[at + 12] >> 4) * 4
        if start < at + 20 or start > wire_stop:
            self.malformed += 1
            return -1
        if self.filtered and not (
            self.followed[u16(octets, at)] or self.followed[u16(octets, at + 2)]
        ):
            self.other_ports += 1
            return -1
        return start
