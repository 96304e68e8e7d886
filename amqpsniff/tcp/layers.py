# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Layers from an IP header inwards: extension headers, fragments and tunnels, to the TCP header.

`Layers.walk` goes layer by layer, `MAX_LAYERS` of them at most, and keeps where it is: `at` in
`octets`, and two ends. `end` is where the captured bytes stop and `wire_end` where the packet
stopped on the wire. Each IP header sets both from its own length, so that Ethernet padding is no
payload, and a snap length or a rewritten record length takes nothing from the segment's true
length. An IP length of zero is a packet caught before segmentation offload cut it: then the
record's length stands.

Tunnels are transparent: the innermost addresses are the conversation's. Not read: encrypted payload
(ESP), compressed headers, GRE version 1, and UDP tunnels on other ports than those named here.
Packets of tunnels that are known and not read are counted by the tunnel's name in `unread`.

ICMP's destination unreachable quotes the packet that it is about (RFC 792, RFC 4443 §3.1): the
addresses and the TCP header are then those of the quoted packet, of which eight bytes of TCP are
enough, and `reason` is its code.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.tcp.codes import (
    IPV4,
    IPV6,
    MALFORMED,
    MAX_LAYERS,
    NOT_TCP,
    OFFSET_BITS,
    OFFSET_MASK,
    QUOTED,
    RANGE32,
    SIGN32,
    TCP,
    UNREAD,
)
from cython.cimports.amqpsniff.tcp.link import find_ip_below, header_in_gre, header_in_udp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_PORTS = cython.declare(
    dict,
    {
        1701: "L2TP",
        2152: "GTP",
        3544: "Teredo",
        4341: "LISP",
        4500: "IPsec",
        4789: "VXLAN",
        4790: "VXLAN-GPE",
        6081: "Geneve",
        8472: "VXLAN",
    },
)
"""Tunnels over UDP by port that are not read, or not in every version."""

_PROTOCOLS = cython.declare(dict, {50: "IPsec", 108: "IPComp", 115: "L2TP"})
"""Tunnels that are not read, by IP protocol."""

WAITING = cython.declare(cython.int, -1)


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
    if high >= SIGN32:
        high -= RANGE32
    return high * RANGE32 + _u32(octets, at + 4)


@cython.cclass
class Layers:
    """A packet's innermost header; the caller sets `end`, `wire_end` and `ts_ns`.

    `source` is -1 while `octets` are the batch's; after a packet put together from fragments it is
    where that is in `extra`. Addresses are 128 bits in two signed halves (IPv4: 0 and 32 bits).
    """

    fragments: Any
    source: cython.longlong
    identification: cython.longlong
    reason: cython.longlong

    extra: list[Any]
    unread: dict[Any, Any]
    block: cython.const[cython.uchar][::1]
    octets: cython.const[cython.uchar][::1]
    at: cython.longlong
    end: cython.longlong
    wire_end: cython.longlong
    ts_ns: cython.longlong
    family: cython.longlong
    a_high: cython.longlong
    a_low: cython.longlong
    b_high: cython.longlong
    b_low: cython.longlong

    def __init__(self, fragments: Any) -> None:
        self.fragments = fragments
        self.extra = []
        self.unread = {}
        self.source = -1
        self.identification = -1
        self.reason = 0

    def begin_batch(self, octets: cython.const[cython.uchar][::1], extra: list[Any]) -> cython.int:
        """Packets from here on are in `octets`; whole packets of fragments go to `extra`."""
        self.block = octets
        self.octets = octets
        self.extra = extra
        self.source = -1
        return 0

    def leave(self, used: cython.bint) -> cython.int:
        """Done with a packet that came in fragments; `used`: its bytes are needed on."""
        self.octets = self.block
        if not used:
            del self.extra[self.source :]
        self.source = -1
        return 0

    @cython.exceptval(-9)
    def walk(self, header: cython.longlong) -> cython.int:
        """Go from an IP header to `TCP`, with `at` at its header, or to another end."""
        _layer_number: cython.int
        kind: cython.int = cython.cast(cython.int, header >> OFFSET_BITS)
        self.at = header & OFFSET_MASK
        for _layer_number in range(MAX_LAYERS):
            kind = self._layer(kind)
            if kind < 0 or kind == TCP:
                return kind
        return MALFORMED

    @cython.exceptval(-9)
    def _layer(self, kind: cython.int) -> cython.int:
        """Read one header, by EtherType or IP protocol; gives the next one or how it ends."""
        if kind == IPV4 or kind == 4:
            return self._ipv4()
        if kind == IPV6 or kind == 41:
            return self._ipv6()
        if kind == 17:
            return self._udp()
        if kind == 47:
            return self._gre()
        if kind == 44:
            return self._fragment_header()
        if kind == 51:
            return self._extension(4)
        if kind in (0, 43, 60, 135, 139, 140):
            return self._extension(8)
        if kind == 1:
            return self._icmp(3)
        if kind == 58:
            return self._icmp(1)
        if kind in _PROTOCOLS:
            return self._unread(_PROTOCOLS[kind])
        return NOT_TCP

    @cython.exceptval(-9)
    def _unread(self, tunnel: Any) -> cython.int:
        """Count a packet of a tunnel that is not read."""
        self.unread[tunnel] = self.unread.get(tunnel, 0) + 1
        return NOT_TCP

    @cython.exceptval(-9)
    def _icmp(self, unreachable: cython.int) -> cython.int:
        """ICMP: what a packet of type `unreachable` quotes, if that is TCP."""
        at: cython.longlong = self.at
        kind: cython.int = NOT_TCP
        if self.end - at < 28 or self.octets[at] != unreachable:
            return NOT_TCP
        self.reason = self.octets[at + 1]
        if unreachable == 3 and self.reason == 4:  # it was too large for the path
            return NOT_TCP
        self.at = at + 8
        if unreachable == 1:
            kind = self._ipv6()
        elif _u16(self.octets, at + 14) & 0x3FFF == 0:  # no fragment
            kind = self._ipv4()
        return QUOTED if kind == TCP and self.end - self.at >= 8 else NOT_TCP

    @cython.exceptval(-9)
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
        self.identification = _u16(self.octets, at + 4)
        self.a_high = self.b_high = 0
        self.a_low = _u32(self.octets, at + 12)
        self.b_low = _u32(self.octets, at + 16)
        self.at = at + header
        fragment = _u16(self.octets, at + 6)
        if fragment & 0x3FFF:
            return self._fragment(
                self.octets[at + 9],
                self.identification,
                (fragment & 0x1FFF) * 8,
                fragment & 0x2000 == 0,
            )
        return self.octets[at + 9]

    @cython.exceptval(-9)
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
        self.identification = -1
        self.a_high = _signed64(self.octets, at + 8)
        self.a_low = _signed64(self.octets, at + 16)
        self.b_high = _signed64(self.octets, at + 24)
        self.b_low = _signed64(self.octets, at + 32)
        self.at = at + 40
        return self.octets[at + 6]

    @cython.exceptval(-9)
    def _extension(self, unit: cython.longlong) -> cython.int:
        """An extension header: next header, length in units of `unit` bytes beyond the first 8."""
        at: cython.longlong = self.at
        if self.end - at < 2:
            return MALFORMED
        self.at = at + 8 + self.octets[at + 1] * unit
        return self.octets[at]

    @cython.exceptval(-9)
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

    @cython.exceptval(-9)
    def _fragment(
        self,
        protocol: cython.int,
        identification: cython.longlong,
        offset: cython.longlong,
        last: cython.bint,
    ) -> cython.int:
        """Add a fragment; continue in the whole packet if this one completed it."""
        stop: cython.longlong = max(self.end, self.at)
        addresses = (self.a_high, self.a_low, self.b_high, self.b_low)
        key = (self.family, addresses, identification, protocol if self.family == 4 else 0)
        octets = bytes(self.octets[self.at : stop])
        length: cython.longlong = self.wire_end - self.at
        whole = self.fragments.add(key, protocol, offset, last, octets, length, self.ts_ns)
        if whole is None:
            return WAITING
        if self.source < 0:
            self.source = len(self.extra)
        else:  # fragments within fragments
            del self.extra[self.source :]
        self.extra.append(whole.octets)
        self.octets = whole.octets
        self.at = 0
        self.end = len(whole.octets)
        self.wire_end = whole.length
        return whole.protocol

    @cython.exceptval(-9)
    def _udp(self) -> cython.int:
        """Tunnels over UDP, by port."""
        port: cython.int
        if self.end - self.at < 16:
            return NOT_TCP
        port = _u16(self.octets, self.at + 2)
        header: cython.longlong = header_in_udp(self.octets, self.at + 8, self.end, port)
        if header == UNREAD:
            return self._unread(_PORTS[port])
        return self._inside(header)

    @cython.exceptval(-9)
    def _gre(self) -> cython.int:
        """GRE and ERSPAN."""
        header: cython.longlong = header_in_gre(self.octets, self.at, self.end)
        return self._unread("GRE") if header == UNREAD else self._inside(header)

    @cython.exceptval(-9)
    def _inside(self, header: cython.longlong) -> cython.int:
        """Continue with the header inside a tunnel."""
        ip: cython.longlong
        if header < 0:
            return NOT_TCP
        ip = find_ip_below(self.octets, header & OFFSET_MASK, self.end, header >> OFFSET_BITS)
        if ip < 0:
            return NOT_TCP
        self.at = ip & OFFSET_MASK
        return cython.cast(cython.int, ip >> OFFSET_BITS)
