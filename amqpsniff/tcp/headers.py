# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Packets to TCP segments: IP, its extension headers and tunnels, and the TCP header.

`HeaderParser.parse` reads packets of a batch and writes one row of `FIELDS` integers per TCP
segment; everything else is counted and left. Ethernet, IPv4 and TCP without anything between take a
short way through one function; the rest goes layer by layer, `MAX_LAYERS` of them at most.

Two ends are carried along: `end`, where the captured octets stop, and `wire_end`, where the packet
stopped on the wire. Each IP header sets both from its own length, so that Ethernet padding is no
payload, and a snap length or a rewritten record length takes nothing from the segment's true
length. An IP length of zero is a packet caught before segmentation offload cut it: then what the
record says is taken.

Tunnels are transparent: the innermost addresses are the conversation. Not read: encrypted payload
(ESP), compressed headers, GRE version 1, and UDP tunnels on other ports than the registered ones.
"""

from array import array

import cython

from .fragments import Fragments

if cython.compiled:
    from cython.cimports.amqpsniff.tcp.link import ip_place, link_place  # type: ignore
else:
    from .link import ip_place, link_place

# Columns of a segment's row. Addresses are 128 bits in two signed halves (IPv4: 0 and 32 bits);
# PORTS is IP version << 32 | source port << 16 | destination port. SOURCE is -1 for the batch's
# octets, else an index into `extra`; START to START + CAPTURED is the payload that was captured,
# LENGTH its octets on the wire. SEEN is how many octets of packets were captured up to this one, in all.
PACKET = 0
A_HIGH = 1
A_LOW = 2
B_HIGH = 3
B_LOW = 4
PORTS = 5
SEQ = 6
ACK = 7
FLAGS = 8
SOURCE = 9
START = 10
CAPTURED = 11
LENGTH = 12
SEEN = 13
FIELDS: cython.int = 14

FIN = 1
SYN = 2
RST = 4
ACK_FLAG = 16

# IP-in-IP, GRE and VXLAN nest two or three deep, with a few extension headers each; the bound keeps
# a packet of nothing but headers from costing more than its neighbours.
MAX_LAYERS: cython.int = 32

IPV4: cython.int = 0x0800
IPV6: cython.int = 0x86DD
ETHERNET_BRIDGING: cython.int = 0x6558
VXLAN_PORT: cython.int = 4789
GENEVE_PORT: cython.int = 6081

ERSPAN: cython.int = 0x88BE
PLACE_BITS: cython.int = 40
PLACE_MASK: cython.longlong = (1 << 40) - 1

# How a packet's layers end, where the next layer's protocol number is not the answer.
DONE: cython.int = -1
NOT_TCP: cython.int = -2
MALFORMED: cython.int = -3


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=True)
def _u16(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.int:
    return octets[at] << 8 | octets[at + 1]


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=True)
def _u32(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
    high: cython.longlong = octets[at] << 8 | octets[at + 1]
    return high << 16 | octets[at + 2] << 8 | octets[at + 3]


@cython.cfunc
@cython.exceptval(-2, check=True)
def _signed64(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
    high: cython.longlong = _u32(octets, at)
    if high >= 0x80000000:
        high -= 0x100000000
    return high * 0x100000000 + _u32(octets, at + 4)


@cython.cclass
class HeaderParser:
    """Packets in, rows of TCP segments out; counts what it skips.

    `ports`: only segments from or to one of them become rows (null: all). `fragments` holds IP
    fragments until their packet is whole.
    """

    rows: object
    extra: list
    fragments: object
    not_ip: cython.longlong
    not_tcp: cython.longlong
    malformed: cython.longlong
    other_ports: cython.longlong
    table: cython.longlong[::1]
    seen: cython.longlong
    capacity: cython.longlong
    count: cython.longlong
    block: cython.const[cython.uchar][::1]
    octets: cython.const[cython.uchar][::1]
    source: cython.longlong
    filtered: cython.bint
    followed: cython.const[cython.uchar][::1]
    packet: cython.longlong
    ts_ns: cython.longlong
    at: cython.longlong
    end: cython.longlong
    wire_end: cython.longlong
    protocol: cython.int
    family: cython.longlong
    a_high: cython.longlong
    a_low: cython.longlong
    b_high: cython.longlong
    b_low: cython.longlong

    def __init__(self, ports: frozenset[int] | None, fragments: Fragments) -> None:
        self.filtered = ports is not None
        self.followed = bytes(port in (ports or ()) for port in range(65536))
        self.fragments = fragments
        self.extra = []
        self.capacity = 0
        self.seen = 0
        self.not_ip = self.not_tcp = self.malformed = self.other_ports = 0

    def counts(self) -> dict[str, int]:
        """What was skipped, in packets."""
        return {
            "not_ip": self.not_ip,
            "not_tcp": self.not_tcp,
            "malformed": self.malformed,
            "other_ports": self.other_ports,
        }

    def segments(self) -> object:
        """The rows written by the last `parse`, row after row of `FIELDS` integers."""
        return self.rows

    def octets_seen(self) -> int:
        """Octets of packets captured so far."""
        return self.seen

    def parse(
        self, batch: object, begin: cython.longlong, end: cython.longlong, extra: list
    ) -> cython.longlong:
        """Read packets `begin` to `end - 1` of a batch; gives the number of rows written.

        A packet gives one row at most. Rows are good until the next call; the octets of packets
        that arrived in fragments are appended to `extra`.
        """
        start: cython.longlong[::1] = batch.start
        captured: cython.longlong[::1] = batch.captured
        original: cython.longlong[::1] = batch.original
        link_type: cython.longlong[::1] = batch.link_type
        ts_ns: cython.longlong[::1] = batch.ts_ns
        block: cython.const[cython.uchar][::1] = batch.octets
        packet: cython.longlong
        at: cython.longlong
        stop: cython.longlong
        place: cython.longlong
        size: cython.longlong = len(block)
        if end - begin > self.capacity:
            self.capacity = end - begin
            self.rows = array("q", [0]) * (self.capacity * FIELDS)
            self.table = self.rows
        self.extra = extra
        self.block = block
        self.octets = block
        self.source = -1
        self.count = 0
        for packet in range(begin, end):
            at = start[packet]
            stop = min(at + captured[packet], size)
            self.packet = packet
            self.seen += captured[packet]
            self.end = stop
            self.wire_end = max(at + original[packet], stop)
            if (
                link_type[packet] == 1
                and stop - at >= 54
                and block[at + 12] == 8
                and block[at + 13] == 0
                and block[at + 14] == 0x45
                and block[at + 23] == 6
                and block[at + 20] & 0xBF == 0
                and block[at + 21] == 0
            ):
                self._plain(block, at + 14)
                continue
            place = link_place(block, at, stop, link_type[packet])
            if place < 0:
                self.not_ip += 1
                continue
            self.ts_ns = ts_ns[packet]
            self._layers(place)
        return self.count

    @cython.cfunc
    @cython.inline
    def _plain(
        self, block: cython.const[cython.uchar][::1], at: cython.longlong
    ) -> cython.longlong:
        """TCP straight in IPv4 without options, neither a fragment; 40 octets are there."""
        total: cython.longlong = block[at + 2] << 8 | block[at + 3]
        if total != 0:
            if total < 20:
                self.malformed += 1
                return 0
            self.wire_end = at + total
            self.end = min(self.end, self.wire_end)
        self.family = 4
        self.a_high = 0
        self.b_high = 0
        self.a_low = _u32(block, at + 12)
        self.b_low = _u32(block, at + 16)
        return self._tcp(block, at + 20)

    @cython.cfunc
    @cython.inline
    def _tcp(self, block: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
        """Write the row of a segment whose header starts at `at`."""
        row: cython.longlong = self.count * FIELDS
        source_port: cython.longlong
        target_port: cython.longlong
        payload: cython.longlong
        if self.end - at < 14:
            self.malformed += 1
            return 0
        source_port = block[at] << 8 | block[at + 1]
        target_port = block[at + 2] << 8 | block[at + 3]
        if self.filtered and not (self.followed[source_port] or self.followed[target_port]):
            self.other_ports += 1
            return 0
        payload = at + (block[at + 12] >> 4) * 4
        if payload < at + 20 or payload > self.wire_end:
            self.malformed += 1
            return 0
        self.table[row] = self.packet
        self.table[row + 1] = self.a_high
        self.table[row + 2] = self.a_low
        self.table[row + 3] = self.b_high
        self.table[row + 4] = self.b_low
        self.table[row + 5] = self.family << 32 | source_port << 16 | target_port
        self.table[row + 6] = _u32(block, at + 4)
        self.table[row + 7] = _u32(block, at + 8)
        self.table[row + 8] = block[at + 13]
        self.table[row + 9] = self.source
        self.table[row + 10] = payload
        self.table[row + 11] = max(self.end - payload, 0)
        self.table[row + 12] = self.wire_end - payload
        self.table[row + 13] = self.seen
        self.count += 1
        return 1

    @cython.cfunc
    @cython.exceptval(-2, check=True)
    def _layers(self, place: cython.longlong) -> cython.longlong:
        """Go from the IP header at `place` inwards to a TCP header, or count why not."""
        before: cython.longlong = self.count
        extras: cython.longlong = len(self.extra)
        layer: cython.int
        kind: cython.int = cython.cast(cython.int, place >> PLACE_BITS)
        self.at = place & PLACE_MASK
        for layer in range(MAX_LAYERS):
            kind = self._layer(kind)
            if kind < 0:
                break
        else:
            self.malformed += 1
        if kind == NOT_TCP:
            self.not_tcp += 1
        elif kind == MALFORMED:
            self.malformed += 1
        if self.source >= 0:
            self.source = -1
            if self.count == before:
                del self.extra[extras:]
            self.octets = self.block
        return 0

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _layer(self, kind: cython.int) -> cython.int:
        """Read one header: an EtherType of IP, else an IP protocol; gives the next or how it ends."""
        if kind == IPV4 or kind == 4:
            return self._ipv4()
        if kind == IPV6 or kind == 41:
            return self._ipv6()
        if kind == 6:
            self._tcp(self.octets, self.at)
            return DONE
        if kind == 17:
            return self._udp()
        if kind == 47:
            return self._gre()
        if kind == 44:
            return self._fragment_header()
        if kind == 51:
            return self._extension(4, 8)
        if kind in (0, 43, 60, 135, 139, 140):
            return self._extension(8, 8)
        return NOT_TCP

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _ipv4(self) -> cython.int:
        at: cython.longlong = self.at
        header: cython.longlong
        total: cython.longlong
        fragment: cython.int
        if self.end - at < 20 or self.octets[at] >> 4 != 4:
            return MALFORMED
        header = (self.octets[at] & 15) * 4
        total = _u16(self.octets, at + 2)
        if total != 0:
            self.wire_end = at + total
            self.end = min(self.end, self.wire_end)
        if header < 20 or self.wire_end < at + header:
            return MALFORMED
        self.family = 4
        self.a_high = self.b_high = 0
        self.a_low = _u32(self.octets, at + 12)
        self.b_low = _u32(self.octets, at + 16)
        self.at = at + header
        fragment = _u16(self.octets, at + 6)
        if fragment & 0x3FFF:
            return self._fragment(
                self.octets[at + 9],
                _u16(self.octets, at + 4),
                (fragment & 0x1FFF) * 8,
                fragment & 0x2000 == 0,
            )
        return self.octets[at + 9]

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _ipv6(self) -> cython.int:
        at: cython.longlong = self.at
        length: cython.longlong
        if self.end - at < 40 or self.octets[at] >> 4 != 6:
            return MALFORMED
        length = _u16(self.octets, at + 4)
        if length != 0:  # zero: a jumbogram (RFC 2675) or offloaded segmentation
            self.wire_end = at + 40 + length
            self.end = min(self.end, self.wire_end)
        self.family = 6
        self.a_high = _signed64(self.octets, at + 8)
        self.a_low = _signed64(self.octets, at + 16)
        self.b_high = _signed64(self.octets, at + 24)
        self.b_low = _signed64(self.octets, at + 32)
        self.at = at + 40
        return self.octets[at + 6]

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _extension(self, unit: cython.longlong, base: cython.longlong) -> cython.int:
        """An extension header: next header, length in `unit` octets beyond the first `base`."""
        at: cython.longlong = self.at
        if self.end - at < 2:
            return MALFORMED
        self.at = at + base + self.octets[at + 1] * unit
        return self.octets[at]

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _fragment_header(self) -> cython.int:
        """The fragment header of IPv6 (RFC 8200 §4.5); an atomic fragment (RFC 6946) is whole."""
        at: cython.longlong = self.at
        offset: cython.int
        if self.end - at < 8:
            return MALFORMED
        offset = _u16(self.octets, at + 2)
        self.at = at + 8
        if offset & 0xFFF9 == 0:
            return self.octets[at]
        return self._fragment(
            self.octets[at], _u32(self.octets, at + 4), offset & 0xFFF8, offset & 1 == 0
        )

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _fragment(
        self,
        protocol: cython.int,
        identification: cython.longlong,
        offset: cython.longlong,
        last: cython.bint,
    ) -> cython.int:
        """Hand a fragment in; go on in the whole packet when this one completed it."""
        stop: cython.longlong = max(self.end, self.at)
        addresses = (self.a_high, self.a_low, self.b_high, self.b_low)
        key = (self.family, addresses, identification, protocol if self.family == 4 else 0)
        octets = bytes(self.octets[self.at : stop])
        length: cython.longlong = self.wire_end - self.at
        whole = self.fragments.add(key, protocol, offset, last, octets, length, self.ts_ns)
        if whole is None:
            return DONE
        self.source = len(self.extra)
        self.extra.append(whole.octets)
        self.octets = whole.octets
        self.at = 0
        self.end = len(whole.octets)
        self.wire_end = whole.length
        return whole.protocol

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _inner(self, ethertype: cython.int, at: cython.longlong) -> cython.int:
        """Go on at the IP header below `ethertype`."""
        place: cython.longlong = ip_place(self.octets, at, self.end, ethertype)
        if place < 0:
            return NOT_TCP
        self.at = place & PLACE_MASK
        return cython.cast(cython.int, place >> PLACE_BITS)

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _udp(self) -> cython.int:
        """VXLAN (RFC 7348) and Geneve (RFC 8926), by their registered ports."""
        at: cython.longlong = self.at
        port: cython.int
        if self.end - at < 16:
            return NOT_TCP
        port = _u16(self.octets, at + 2)
        if port == VXLAN_PORT and self.octets[at + 8] & 8:
            return self._inner(ETHERNET_BRIDGING, at + 16)
        if port == GENEVE_PORT and self.octets[at + 8] >> 6 == 0:
            options: cython.longlong = (self.octets[at + 8] & 0x3F) * 4
            return self._inner(_u16(self.octets, at + 10), at + 16 + options)
        return NOT_TCP

    @cython.cfunc
    @cython.exceptval(-9, check=True)
    def _gre(self) -> cython.int:
        """GRE (RFC 2784, RFC 2890) and ERSPAN I and II over it."""
        at: cython.longlong = self.at
        flags: cython.int
        ethertype: cython.int
        if self.end - at < 4:
            return NOT_TCP
        flags = _u16(self.octets, at)
        ethertype = _u16(self.octets, at + 2)
        if flags & 0x4007:  # source routing (deprecated), or another version
            return NOT_TCP
        at += 4 + (4 if flags & 0x8000 else 0) + (4 if flags & 0x2000 else 0)
        at += 4 if flags & 0x1000 else 0
        if ethertype == ERSPAN:
            return self._inner(ETHERNET_BRIDGING, at + (8 if flags & 0x1000 else 0))
        return self._inner(ethertype, at)
