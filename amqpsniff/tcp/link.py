# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Link layers: from the first byte of a packet to its IPv4 or IPv6 header.

Every link type ends in one of two ways of naming what follows: an EtherType, or a PPP protocol
number, which is turned into one. Tags that may stand between (802.1Q in any depth, MPLS labels,
PPPoE, LLC/SNAP, NSH) are taken off one after the other, `MAX_TAGS` of them at most.

A header is one integer here, `EtherType << OFFSET_BITS | offset`. `NOT_IP` stands for all that
leads to no IP header, also because the packet was cut before it.

NFLOG (what a netfilter rule logs) and PKTAP (what tcpdump on macOS writes when no interface is
named) put a header of their own before a packet. Both are in the byte order of the capturing host:
PKTAP is written by machines that are little-endian, for NFLOG it is what makes sense.

Link types: https://www.tcpdump.org/linktypes.html; PKTAP: libpcap's pcap/bpf.h and xnu's
net/pktap.h. What is not read: 802.11, Bluetooth, USB and others that carry no AMQP; they are
counted as not IP.
"""

from __future__ import annotations

import cython
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
from cython.cimports.amqpsniff.tcp.codes import IPV4, IPV6, OFFSET_BITS, OFFSET_MASK, UNREAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

NOT_IP = cython.declare(cython.longlong, -1)

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

GTP_PACKET = cython.declare(cython.int, 255)

# A packet logged by netfilter comes with some ten attributes; the bound is for crafted ones.
MAX_ATTRIBUTES = cython.declare(cython.int, 64)
NFLOG_PAYLOAD = cython.declare(cython.int, 9)
# A PKTAP header of the first version; its own length says where the packet begins.
PKTAP_BYTES = cython.declare(cython.int, 108)


@cython.cfunc
@cython.exceptval(-2, check=True)
def _u16(octets: cython.const[cython.uchar][::1], at: cython.longlong) -> cython.int:
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
    """The inner header of a UDP tunnel with its own header at `at`; or `UNREAD`, `NOT_IP`."""
    if end - at < 8:
        return NOT_IP
    if port == VXLAN_PORT or port == VXLAN_PORT_OF_LINUX:  # RFC 7348
        return _header(ETHERNET_BRIDGING, at + 8) if octets[at] & 8 else UNREAD
    if port == VXLAN_GPE_PORT:
        return _vxlan_gpe(octets, at)
    if port == GENEVE_PORT:  # RFC 8926
        if octets[at] >> 6 != 0:
            return UNREAD
        return _header(_u16(octets, at + 2), at + 8 + (octets[at] & 0x3F) * 4)
    if port == GTP_PORT:
        return _gtp(octets, at, end)
    if port == MPLS_PORT:  # RFC 7510
        return _header(MPLS, at)
    return UNREAD if port in UNREAD_PORTS else NOT_IP


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
        return UNREAD
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
        return UNREAD
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
    return _by_version(octets, at, end) if octets[at] >> 4 in (4, 6) else UNREAD


@cython.exceptval(-9)
def header_in_gre(
    octets: cython.const[cython.uchar][::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The header in GRE (RFC 2784, RFC 2890) and ERSPAN I to III; or `UNREAD`, `NOT_IP`."""
    flags: cython.int
    ethertype: cython.int
    if end - at < 4:
        return NOT_IP
    flags = _u16(octets, at)
    ethertype = _u16(octets, at + 2)
    if flags & 0x4007:  # source routing (deprecated), or another version
        return UNREAD
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
        return UNREAD
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
