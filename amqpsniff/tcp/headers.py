# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Packets to TCP segments: one row of `SEGMENT_FIELDS` integers per segment.

Ethernet, IPv4 and TCP with nothing between are read in the loop of `HeaderParser.parse` itself; the
TCP header of other packets is found layer by layer. Packets without one are counted and skipped. A
segment is a row if the first 14 bytes of its header were captured; fewer bytes do not identify it.

First the link layer. Every link type ends in one of two ways of naming what follows: an EtherType,
or a PPP protocol number, which is turned into one. Tags that may stand between (802.1Q in any
depth, MPLS labels, PPPoE, LLC/SNAP, NSH) are taken off one after the other, `MAX_TAGS` of them at
most. A header is one integer here, `EtherType << OFFSET_BITS | offset`. `NOT_IP` stands for all
that leads to no IP header, also because the packet was cut before it.

NFLOG (what a netfilter rule logs) and PKTAP (what tcpdump on macOS writes when no interface is
named) put a header of their own before a packet. Both are in the byte order of the capturing host:
PKTAP is written by machines that are little-endian, for NFLOG it is what makes sense.

From the IP header on `Layers.walk` goes layer by layer through extension headers, fragments and
tunnels, `MAX_LAYERS` of them at most, and keeps where it is: `at` in `octets`, and two ends. `end`
is where the captured bytes stop and `wire_end` where the packet stopped on the wire. Each IP header
sets both from its own length, so that Ethernet padding is no payload, and a snap length or a
rewritten record length takes nothing from the segment's true length. An IP length of zero is a
packet caught before segmentation offload cut it: then the record's length stands.

Tunnels are transparent: the innermost addresses are the conversation's. Packets of tunnels that are
known and not read are counted by the tunnel's name in `unread`.

ICMP's destination unreachable quotes the packet that it is about (RFC 792, RFC 4443 §3.1): the
addresses and the TCP header are then those of the quoted packet, of which eight bytes of TCP are
enough, and `reason` is its code. Such a segment is a row too, marked `UNREACHABLE`.

Not read: 802.11, Bluetooth, USB and other links that carry no AMQP, which are counted as not IP;
encrypted payload (ESP), compressed headers, GRE version 1, and UDP tunnels on other ports than
those named here.

Link types: https://www.tcpdump.org/linktypes.html; PKTAP: libpcap's pcap/bpf.h and xnu's
net/pktap.h.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.byteorder import checked_u32, u16, u32
from cython.cimports.amqpsniff.link_types import (
    LINK_CISCO_HDLC,
    LINK_COOKED,
    LINK_COOKED_2,
    LINK_ETHERNET,
    LINK_IPV4,
    LINK_IPV6,
    LINK_LOOP,
    LINK_MPLS,
    LINK_NFLOG,
    LINK_NULL,
    LINK_PKTAP,
    LINK_PPP,
    LINK_PPP_DIRECTION,
    LINK_PPP_HDLC,
    LINK_PPP_PPPD,
    LINK_PPPOE,
    LINK_RAW,
)
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
    IPV4,
    IPV6,
    LENGTH,
    MALFORMED,
    MAX_LAYERS,
    NO_WINDOW,
    NOT_TCP,
    OFFSET_BITS,
    OFFSET_MASK,
    PACKET,
    PORTS,
    QUOTED,
    RANGE32,
    SEEN,
    SEGMENT_FIELDS,
    SEQ,
    SIGN32,
    START,
    TCP,
    UNREACHABLE,
)

from amqpsniff.findings import Finding

from .fragments import Fragments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_IP = cython.declare(cython.longlong, -1)
_UNREAD = cython.declare(cython.longlong, -2)  # a tunnel that is not read

# A real packet has a handful; the bound keeps a crafted one from costing more than its neighbours.
MAX_TAGS = cython.declare(cython.int, 16)

ETHERNET_BRIDGING = cython.declare(cython.int, 0x6558)
MPLS = cython.declare(cython.int, 0x8847)
MPLS_UPSTREAM = cython.declare(cython.int, 0x8848)
PPPOE_SESSION = cython.declare(cython.int, 0x8864)
CISCO_METADATA = cython.declare(cython.int, 0x8909)
NSH = cython.declare(cython.int, 0x894F)

ERSPAN = cython.declare(cython.int, 0x88BE)
ERSPAN_3 = cython.declare(cython.int, 0x22EB)

# Registered ports of tunnels over UDP, and Linux's own for VXLAN.
GTP_PORT = cython.declare(cython.int, 2152)
VXLAN_PORT = cython.declare(cython.int, 4789)
VXLAN_GPE_PORT = cython.declare(cython.int, 4790)
GENEVE_PORT = cython.declare(cython.int, 6081)
MPLS_PORT = cython.declare(cython.int, 6635)
VXLAN_PORT_OF_LINUX = cython.declare(cython.int, 8472)
# Those that are not read: L2TP, Teredo, LISP, IPsec.
UNREAD_PORTS = cython.declare(tuple, (1701, 3544, 4341, 4500))

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

GTP_PACKET = cython.declare(cython.int, 255)

# A packet logged by netfilter comes with some ten attributes; the bound is for crafted ones.
MAX_ATTRIBUTES = cython.declare(cython.int, 64)
NFLOG_PAYLOAD = cython.declare(cython.int, 9)
# A PKTAP header of the first version; its own length says where the packet begins.
PKTAP_BYTES = cython.declare(cython.int, 108)


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=True)
def _u16(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.int:
    """The same as `u16`, and IndexError where it is not in the bytes."""
    return octets[at] << 8 | octets[at + 1]


@cython.cfunc
@cython.exceptval(-2, check=True)
def _u16_little(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.int:
    return octets[at + 1] << 8 | octets[at]


@cython.cfunc
@cython.exceptval(-2, check=True)
def _header(ethertype: cython.longlong, at: cython.longlong) -> cython.longlong:
    return ethertype << OFFSET_BITS | at


@cython.cfunc
@cython.exceptval(-2, check=True)
def _ppp(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The header after a PPP protocol field of one or two bytes (RFC 1661 §6.5)."""
    protocol: cython.int
    if end - at < 2:
        return NOT_IP
    if octets[at] & 1:
        protocol = octets[at]
        at += 1
    else:
        protocol = _u16(octets, at)
        at += 2
    if protocol == 0x0021:
        return _header(IPV4, at)
    if protocol == 0x0057:
        return _header(IPV6, at)
    if protocol == 0x0281:
        return _header(MPLS, at)
    return NOT_IP


@cython.cfunc
@cython.exceptval(-2, check=True)
def _mpls(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The header after one label (RFC 3032); what follows the last one has to be guessed."""
    first: cython.int
    if end - at < 5:
        return NOT_IP
    at += 4
    if not octets[at - 2] & 1:
        return _header(MPLS, at)
    first = octets[at] >> 4
    if first == 4:
        return _header(IPV4, at)
    if first == 6:
        return _header(IPV6, at)
    if first == 0:  # a pseudowire control word (RFC 4385), then Ethernet
        return _header(ETHERNET_BRIDGING, at + 4)
    return NOT_IP


@cython.cfunc
@cython.exceptval(-2, check=True)
def _next_protocol(number: cython.int) -> cython.longlong:
    """The EtherType of a next protocol of NSH (RFC 8300 §2.2) and VXLAN-GPE; 0 for others."""
    if number == 1:
        return IPV4
    if number == 2:
        return IPV6
    if number == 3:
        return ETHERNET_BRIDGING
    if number == 4:
        return NSH
    return MPLS if number == 5 else 0


@cython.cfunc
@cython.exceptval(-2, check=True)
def _nsh(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The header after a network service header (RFC 8300 §2), whose length is in four bytes."""
    length: cython.longlong
    if end - at < 8 or octets[at] >> 6 != 0:
        return NOT_IP
    length = (octets[at + 1] & 0x3F) * 4
    return _header(_next_protocol(octets[at + 3]), at + length) if length >= 8 else NOT_IP


@cython.cfunc
@cython.exceptval(-2, check=True)
def _peel(
    octets: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    ethertype: cython.int,
) -> cython.longlong:
    """The header after one that is not yet IP."""
    if ethertype in (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300):
        return _header(_u16(octets, at + 2), at + 4) if end - at >= 4 else NOT_IP
    if ethertype == ETHERNET_BRIDGING:
        return _header(_u16(octets, at + 12), at + 14) if end - at >= 14 else NOT_IP
    if ethertype == MPLS or ethertype == MPLS_UPSTREAM:
        return _mpls(octets, at, end)
    if ethertype == PPPOE_SESSION:
        return _ppp(octets, at + 6, end)
    if ethertype == NSH:
        return _nsh(octets, at, end)
    if ethertype == CISCO_METADATA:
        return _header(_u16(octets, at + 6), at + 8) if end - at >= 8 else NOT_IP
    if ethertype <= 1500:  # a length: LLC and SNAP (RFC 1042)
        if end - at >= 8 and octets[at] == 0xAA and octets[at + 1] == 0xAA:
            return _header(_u16(octets, at + 6), at + 8)
    return NOT_IP


@cython.exceptval(-2)
def find_ip_below(
    octets: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    ethertype: cython.longlong,
) -> cython.longlong:
    """The IP header below `ethertype`, whose contents start at `at`; or `NOT_IP`."""
    header: cython.longlong = _header(ethertype, at)
    _tag: cython.int
    kind: cython.int
    for _tag in range(MAX_TAGS):
        kind = cython.cast(cython.int, header >> OFFSET_BITS)
        if kind == IPV4 or kind == IPV6:
            return header
        header = _peel(octets, header & OFFSET_MASK, end, kind)
        if header < 0:
            return NOT_IP
    return NOT_IP


@cython.exceptval(-9)
def header_in_udp(
    octets: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    port: cython.int,
) -> cython.longlong:
    """The inner header of a UDP tunnel with its own header at `at`; or `_UNREAD`, `NOT_IP`."""
    if end - at < 8:
        return NOT_IP
    if port == VXLAN_PORT or port == VXLAN_PORT_OF_LINUX:  # RFC 7348
        return _header(ETHERNET_BRIDGING, at + 8) if octets[at] & 8 else _UNREAD
    if port == VXLAN_GPE_PORT:
        return _vxlan_gpe(octets, at)
    if port == GENEVE_PORT:  # RFC 8926
        if octets[at] >> 6 != 0:
            return _UNREAD
        return _header(_u16(octets, at + 2), at + 8 + (octets[at] & 0x3F) * 4)
    if port == GTP_PORT:
        return _gtp(octets, at, end)
    if port == MPLS_PORT:  # RFC 7510
        return _header(MPLS, at)
    return _UNREAD if port in UNREAD_PORTS else NOT_IP


@cython.cfunc
@cython.exceptval(-9, check=True)
def _vxlan_gpe(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
    """The generic protocol extension of VXLAN (draft-ietf-nvo3-vxlan-gpe §3)."""
    flags: cython.int = octets[at]
    ethertype: cython.longlong = ETHERNET_BRIDGING
    if flags & 1:  # operations, administration and maintenance of the tunnel itself
        return NOT_IP
    if flags & 4:
        ethertype = _next_protocol(octets[at + 3])
    if flags & 0x30 or not flags & 8 or ethertype == 0:
        return _UNREAD
    return _header(ethertype, at + 8)


@cython.cfunc
@cython.exceptval(-9, check=True)
def _gtp(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """User packets of GTP (3GPP TS 29.281 §5): IP behind extension headers, without its type."""
    flags: cython.int = octets[at]
    kind: cython.int = 0
    length: cython.longlong
    if flags >> 4 != 3:
        return _UNREAD
    if octets[at + 1] != GTP_PACKET:
        return NOT_IP
    at += 8
    if flags & 7:
        if end - at < 4:
            return NOT_IP
        kind = octets[at + 3] if flags & 4 else 0
        at += 4
    while kind != 0:
        length = octets[at] * 4 if end > at else 0
        if length == 0 or end - at < length:
            return NOT_IP
        at += length
        kind = octets[at - 1]
    if end <= at:
        return NOT_IP
    return _by_version(octets, at, end) if octets[at] >> 4 in (4, 6) else _UNREAD


@cython.exceptval(-9)
def header_in_gre(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The header in GRE (RFC 2784, RFC 2890) and ERSPAN I to III; or `_UNREAD`, `NOT_IP`."""
    flags: cython.int
    ethertype: cython.int
    if end - at < 4:
        return NOT_IP
    flags = _u16(octets, at)
    ethertype = _u16(octets, at + 2)
    if flags & 0x4007:  # source routing (deprecated), or another version
        return _UNREAD
    at += 4 + (4 if flags & 0x8000 else 0) + (4 if flags & 0x2000 else 0)
    at += 4 if flags & 0x1000 else 0
    if ethertype == ERSPAN:
        return _header(ETHERNET_BRIDGING, at + (8 if flags & 0x1000 else 0))
    return _erspan_3(octets, at, end) if ethertype == ERSPAN_3 else _header(ethertype, at)


@cython.cfunc
@cython.exceptval(-9, check=True)
def _erspan_3(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """ERSPAN III (draft-foschiano-erspan §4.3): the mirrored packet is Ethernet, or IP."""
    kind: cython.int
    if end - at < 12:
        return NOT_IP
    kind = octets[at + 10] >> 2 & 31
    if octets[at] >> 4 != 2 or kind not in (0, 2):
        return _UNREAD
    at += 12 + (8 if octets[at + 11] & 1 else 0)  # the platform's own header
    return _header(ETHERNET_BRIDGING, at) if kind == 0 else _by_version(octets, at, end)


@cython.cfunc
@cython.exceptval(-2, check=True)
def _by_version(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    if end - at < 1:
        return NOT_IP
    if octets[at] >> 4 == 4:
        return _header(IPV4, at)
    if octets[at] >> 4 == 6:
        return _header(IPV6, at)
    return NOT_IP


@cython.cfunc
@cython.exceptval(-2, check=True)
def _by_address_family(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """NULL and LOOP: an address family in the byte order of a host that is not ours to know."""
    family: cython.int
    if end - at < 4:
        return NOT_IP
    if octets[at] == 0 and octets[at + 1] == 0:
        family = _u16(octets, at + 2)
    else:
        family = _u16_little(octets, at)
    if family == 2:
        return _header(IPV4, at + 4)
    if family in (10, 24, 28, 30):  # AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, macOS
        return _header(IPV6, at + 4)
    return NOT_IP


@cython.cfunc
@cython.exceptval(-2, check=True)
def _nflog_payload(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """Position of the packet in the NFLOG attributes at `at`; -1 without a packet."""
    _attribute: cython.int
    length: cython.longlong
    kind: cython.int
    at += 4
    for _attribute in range(MAX_ATTRIBUTES):
        if end - at < 4:
            return -1
        if octets[at + 3] == 0:  # kinds are small numbers: the byte that is zero is the upper one
            length = _u16_little(octets, at)
            kind = octets[at + 2]
        else:
            length = _u16(octets, at)
            kind = _u16(octets, at + 2)
        if length < 4:
            return -1
        if kind & 0x7FFF == NFLOG_PAYLOAD:
            return at + 4
        at += (length + 3) // 4 * 4
    return -1


@cython.cfunc
@cython.exceptval(-2, check=True)
def _pktap(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The header after a PKTAP header, which has the link type of its packet."""
    length: cython.longlong
    if end - at < PKTAP_BYTES or octets[at + 2] or octets[at + 3] or octets[at + 9]:
        return NOT_IP
    length = _u16_little(octets, at)
    if length < PKTAP_BYTES or octets[at + 10] or octets[at + 11]:
        return NOT_IP
    return find_ip(octets, at + length, end, octets[at + 8])


@cython.exceptval(-2)
def find_ip(
    octets: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    link_type: cython.longlong,
) -> cython.longlong:
    """The IP header of a packet at `at` (captured up to `end`); or `NOT_IP`."""
    size: cython.longlong = end - at
    if link_type == LINK_ETHERNET:
        return find_ip_below(octets, at, end, ETHERNET_BRIDGING)
    if link_type == LINK_COOKED:
        return find_ip_below(octets, at + 16, end, _u16(octets, at + 14)) if size >= 16 else NOT_IP
    if link_type == LINK_COOKED_2:
        return find_ip_below(octets, at + 20, end, _u16(octets, at)) if size >= 20 else NOT_IP
    if link_type == LINK_RAW or link_type == 12 or link_type == 14:
        return _by_version(octets, at, end)
    if link_type == LINK_NULL or link_type == LINK_LOOP:
        return _by_address_family(octets, at, end)
    if link_type == LINK_IPV4:
        return _header(IPV4, at)
    if link_type == LINK_IPV6:
        return _header(IPV6, at)
    if link_type == LINK_PKTAP:
        return _pktap(octets, at, end)
    if link_type == LINK_NFLOG:
        at = _nflog_payload(octets, at, end)
        return _by_version(octets, at, end) if at >= 0 else NOT_IP
    if link_type == LINK_MPLS:
        return find_ip_below(octets, at, end, MPLS)
    if link_type == LINK_CISCO_HDLC:
        return find_ip_below(octets, at + 4, end, _u16(octets, at + 2)) if size >= 4 else NOT_IP
    return _ppp_link(octets, at, end, link_type)


@cython.cfunc
@cython.exceptval(-2, check=True)
def _ppp_link(
    octets: cython.const[cython.uchar][::1],
    at: cython.longlong,
    end: cython.longlong,
    link_type: cython.int,
) -> cython.longlong:
    header: cython.longlong
    if link_type == LINK_PPP_DIRECTION:  # a byte with the direction, then PPP
        at += 1
        link_type = LINK_PPP
    if link_type == LINK_PPPOE:
        header = _ppp(octets, at + 6, end)
    elif link_type == LINK_PPP_PPPD:  # that byte instead of the address
        header = _ppp(octets, at + 2, end)
    elif link_type == LINK_PPP or link_type == LINK_PPP_HDLC:
        if end - at >= 4 and octets[at] in (0x0F, 0x8F):  # Cisco HDLC on the same link type
            header = _header(_u16(octets, at + 2), at + 4)
        elif end - at >= 4 and octets[at] == 0xFF and octets[at + 1] == 0x03:
            header = _ppp(octets, at + 2, end)
        else:
            header = _ppp(octets, at, end)
    else:
        return NOT_IP
    if header < 0:
        return NOT_IP
    return find_ip_below(octets, header & OFFSET_MASK, end, header >> OFFSET_BITS)


@cython.cfunc
@cython.exceptval(-2, check=True)
def _signed64(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.longlong:
    high: cython.longlong = checked_u32(octets, at, True)
    if high >= SIGN32:
        high -= RANGE32
    return high * RANGE32 + checked_u32(octets, at + 4, True)


WAITING = cython.declare(cython.int, -1)


@cython.final
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
        self.a_low = checked_u32(self.octets, at + 12, True)
        self.b_low = checked_u32(self.octets, at + 16, True)
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
            self.octets[at],
            checked_u32(self.octets, at + 4, True),
            offset & 0xFFF8,
            offset & 1 == 0,
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
        datagram = self.fragments.add(key, protocol, offset, last, octets, length, self.ts_ns)
        if datagram is None:
            return WAITING
        if self.source < 0:
            self.source = len(self.extra)
        else:  # fragments within fragments
            del self.extra[self.source :]
        self.extra.append(datagram.octets)
        self.octets = datagram.octets
        self.at = 0
        self.end = len(datagram.octets)
        self.wire_end = datagram.length
        return datagram.protocol

    @cython.exceptval(-9)
    def _udp(self) -> cython.int:
        """Tunnels over UDP, by port."""
        port: cython.int
        if self.end - self.at < 16:
            return NOT_TCP
        port = _u16(self.octets, self.at + 2)
        header: cython.longlong = header_in_udp(self.octets, self.at + 8, self.end, port)
        if header == _UNREAD:
            return self._unread(_PORTS[port])
        return self._inside(header)

    @cython.exceptval(-9)
    def _gre(self) -> cython.int:
        """GRE and ERSPAN."""
        header: cython.longlong = header_in_gre(self.octets, self.at, self.end)
        return self._unread("GRE") if header == _UNREAD else self._inside(header)

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


@cython.final
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

    @cython.ccall
    @cython.exceptval(-1)
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
        table: cython.longlong[::1]
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
        self._reserve(end - begin)
        table = self.table
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
            payload = _payload(self, view, at, stop, wire_stop)
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

    def _reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for `rows` rows."""
        if rows > self.capacity:
            self.capacity = rows
            self.rows = array("q", [0]) * (rows * SEGMENT_FIELDS)
            self.table = self.rows
        return 0

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
    parser: HeaderParser,
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
        parser.malformed += 1
        return -1
    start = at + (octets[at + 12] >> 4) * 4
    if start < at + 20 or start > wire_stop:
        parser.malformed += 1
        return -1
    if parser.filtered and not (
        parser.followed[u16(octets, at)] or parser.followed[u16(octets, at + 2)]
    ):
        parser.other_ports += 1
        return -1
    return start
