# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Rewrites packets with another payload: headers are kept, contents replaced, checksums corrected.

`PacketRewriter.rewrite` walks as `headers` does, from the link header inwards through tags
and tunnels, and keeps only the header fields that it knows: those needed to deliver the packet. TCP
payload is replaced by the caller's bytes, or by filler. Everything else becomes zeros: bytes that
are not TCP, unknown bytes, and those after the end in the IP header (padding, check sequences); so
do IP options, and TCP options that TCP itself does not need. Lengths stay as they are.

A checksum is that of the whole packet with the new payload: the missing bytes of a packet that was
cut by a snap length count as filler. Wrong checksums, as in packets captured before checksum
offload, are corrected. Fragments of IP packets keep their IP header.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.link_types import (
    LINK_COOKED,
    LINK_COOKED_2,
    LINK_ETHERNET,
    LINK_NFLOG,
    LINK_PKTAP,
)
from cython.cimports.amqpsniff.tcp.codes import IPV4, IPV6, MAX_LAYERS, OFFSET_BITS, OFFSET_MASK
from cython.cimports.amqpsniff.tcp.headers import (
    find_ip,
    find_ip_below,
    header_in_gre,
    header_in_udp,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ARP = cython.declare(cython.int, 0x0806)
ETHERNET_BRIDGING = cython.declare(cython.int, 0x6558)
NSH = cython.declare(cython.int, 0x894F)
GENEVE_PORT = cython.declare(cython.int, 6081)
GTP_PORT = cython.declare(cython.int, 2152)

_EXTENSIONS = (0, 43, 60, 135, 139, 140)
_TCP_OPTIONS = (2, 3, 4, 5, 8)
"""Maximum segment size, window scale, selective acknowledgements, timestamps."""
_ICMP_PLAIN = (0, 3, 8, 11)
_ICMPV6_PLAIN = (1, 2, 3, 4, 128, 129)
"""ICMP messages whose second word is a number: an identifier, a sequence, an MTU, a pointer."""
_ARP_BYTES = 28
_MAX_MISSING = cython.declare(cython.longlong, 1 << 20)
"""Bytes that a packet may lack for its checksum to be made: no packet is longer, but a record's
length may have any value."""
_FILLER = b"\x78"


class PacketRewriter:
    """Writes packets again.

    Args:
        addresses: Gives other addresses and ports (`amqpsniff.sanitize.addresses`); null to keep
            those that are there.
    """

    def __init__(self, addresses: Any = None) -> None:
        self.addresses = addresses
        self.out = bytearray()
        self.payload = None
        self.payload_at = -1
        self.is_tcp = False
        self.tcp_at = -1
        self.source = (b"", 0)
        self.target = (b"", 0)
        self._before = b""

    def ends(self) -> frozenset[tuple[bytes, int]]:
        """Original endpoints of the last packet's TCP conversation; empty if it is not TCP."""
        return frozenset((self.source, self.target)) if self.is_tcp else frozenset()

    def rewrite(
        self, octets: bytes, link_type: int, original: int, payload: Any, payload_at: int
    ) -> bytearray:
        """A sanitized packet of `link_type`, from its captured `octets` of `original` bytes.

        `payload` is written at `payload_at`, if a TCP header ends there; otherwise, and if it is
        None, filler is written. Afterwards `is_tcp` is True if there is a TCP header, `tcp_at` is
        its position, `source` and `target` are its original endpoints.
        """
        self.out = bytearray(octets)
        self.payload, self.payload_at = payload, payload_at
        self.is_tcp = False
        end: cython.longlong = len(octets)
        header: cython.longlong = find_ip(octets, 0, end, link_type)
        if header < 0:
            self._not_ip(link_type, end)
            return self.out
        self._link_header(link_type, header & OFFSET_MASK)
        wire_end = max(min(original, end + _MAX_MISSING), end)
        self._network(header >> OFFSET_BITS, header & OFFSET_MASK, end, wire_end, 0)
        return self.out

    # link headers

    def _link_header(self, link_type: int, end: int) -> None:
        """Keep the headers before the IP header at `end`."""
        if link_type == LINK_PKTAP:  # names of interfaces and processes, and their numbers
            header = self.out[0] | self.out[1] << 8
            self._blank(12, header)
            self._link_addresses(self.out[8], header)
        elif link_type == LINK_NFLOG:
            self._attributes(end)
        else:
            self._link_addresses(link_type, 0)
            if link_type == LINK_ETHERNET and self._u16(12) == NSH:
                self._blank(22, 14 + (self.out[15] & 0x3F) * 4)

    def _attributes(self, end: int) -> None:
        """NFLOG: what attributes before the packet hold, not their kinds and lengths."""
        at = 4
        while at < end:
            little = self.out[at + 3] == 0
            length = self.out[at + 1] << 8 | self.out[at] if little else self._u16(at)
            self._blank(at + 4, min(at + length, end))
            at += (length + 3) // 4 * 4

    def _link_addresses(self, link_type: int, at: int) -> None:
        if self.addresses is None:
            return
        if link_type == LINK_ETHERNET:
            self._macs(at)
        elif link_type == LINK_COOKED:
            self._mac(at + 6)
        elif link_type == LINK_COOKED_2:
            self._mac(at + 12)

    def _macs(self, at: int) -> None:
        if self.addresses is not None:
            self._mac(at)
            self._mac(at + 6)

    def _mac(self, at: int) -> None:
        if at + 6 <= len(self.out):
            self.out[at : at + 6] = self.addresses.mac(bytes(self.out[at : at + 6]))

    def _not_ip(self, link_type: int, end: int) -> None:
        """A packet without an IP header: keep a known link header."""
        kept_bytes = 14 if link_type == LINK_ETHERNET else 16 if link_type == LINK_COOKED else 0
        kept_bytes = 20 if link_type == LINK_COOKED_2 else kept_bytes
        if end < kept_bytes:
            kept_bytes = 0
        elif kept_bytes:
            self._link_addresses(link_type, 0)
        if link_type == LINK_ETHERNET and end >= 14 and self._u16(12) == ARP:
            kept_bytes = self._arp(end)
        self._blank(kept_bytes, end)

    def _arp(self, end: int) -> int:
        """ARP of Ethernet and IPv4; returns the position after its kept fields."""
        at = 14
        if end - at < _ARP_BYTES or bytes(self.out[at : at + 6]) != b"\0\x01\x08\0\x06\x04":
            return at
        if self.addresses is not None:
            for field in (at + 8, at + 18):
                self._mac(field)
                ip = field + 6
                self.out[ip : ip + 4] = self.addresses.ipv4(bytes(self.out[ip : ip + 4]))
        return at + _ARP_BYTES

    # network

    def _network(self, kind: int, at: int, end: int, wire_end: int, depth: int) -> None:
        """An IP header at `at`; packets captured up to `end` went on to `wire_end`."""
        if depth > MAX_LAYERS:
            self._blank(at, end)
        elif kind in (IPV4, 4):
            self._ipv4(at, end, wire_end, depth)
        elif kind in (IPV6, 41):
            self._ipv6(at, end, wire_end, depth)
        else:
            self._blank(at, end)

    def _ipv4(self, at: int, end: int, wire_end: int, depth: int) -> None:
        out = self.out
        if end - at < 20 or out[at] >> 4 != 4:
            self._blank(at, end)
            return
        header = (out[at] & 15) * 4
        total = self._u16(at + 2)
        if total:
            wire_end = at + total
            self._blank(min(end, wire_end), end)
            end = min(end, wire_end)
        if header < 20 or wire_end < at + header or end < at + 20:
            self._blank(at, end)
            return
        self._before = bytes(out[at + 12 : at + 20])
        if self.addresses is not None:
            for field in (at + 12, at + 16):
                out[field : field + 4] = self.addresses.ipv4(bytes(out[field : field + 4]))
        options = min(at + header, end)
        out[at + 20 : options] = b"\x01" * (options - at - 20)
        ends = bytes(out[at + 12 : at + 20])
        if self._u16(at + 6) & 0x3FFF:
            self._blank(options, end)
        else:
            self._transport(out[at + 9], at + header, end, wire_end, ends, depth)
        out[at + 10 : at + 12] = b"\0\0"
        if options == at + header:
            out[at + 10 : at + 12] = _checksum(bytes(out[at:options]))

    def _ipv6(self, at: int, end: int, wire_end: int, depth: int) -> None:
        out = self.out
        if end - at < 40 or out[at] >> 4 != 6:
            self._blank(at, end)
            return
        length = self._u16(at + 4)
        if length:
            wire_end = at + 40 + length
            self._blank(min(end, wire_end), end)
            end = min(end, wire_end)
        self._before = bytes(out[at + 8 : at + 40])
        if self.addresses is not None:
            for field in (at + 8, at + 24):
                out[field : field + 16] = self.addresses.ipv6(bytes(out[field : field + 16]))
        self._transport(out[at + 6], at + 40, end, wire_end, bytes(out[at + 8 : at + 40]), depth)

    def _transport(
        self, kind: int, at: int, end: int, wire_end: int, ends: bytes, depth: int
    ) -> None:
        """The protocol after an IP header; `ends` are the IP addresses, for checksums."""
        out = self.out
        for _ in range(MAX_LAYERS):
            if kind == 44 and end - at >= 8 and self._u16(at + 2) & 0xFFF9 == 0:
                kind = out[at]  # an atomic fragment is whole (RFC 6946)
                at += 8
                continue
            if kind not in _EXTENSIONS and kind != 51:
                break
            if end - at < 2:
                self._blank(at, end)
                return
            length = 8 + out[at + 1] * (4 if kind == 51 else 8)
            kind = out[at]
            self._blank(at + 2, min(at + length, end))
            at += length
        if at >= end:
            return
        if kind == 6:
            self._tcp(at, end, wire_end, ends)
        elif kind == 17:
            self._udp(at, end, wire_end, ends, depth)
        elif kind == 47:
            self._gre(at, end, wire_end, depth)
        elif kind in (4, 41):
            self._network(kind, at, end, wire_end, depth + 1)
        elif kind == 1 or kind == 58:
            self._icmp(kind, at, end, wire_end, ends)
        else:
            self._blank(at + 8 if kind == 44 and end - at >= 8 else at, end)

    # transport

    def _tcp(self, at: int, end: int, wire_end: int, ends: bytes) -> None:
        out = self.out
        header = (out[at + 12] >> 4) * 4 if end - at >= 14 else 0
        if header < 20 or at + header > wire_end:
            self._blank(at, end)
            return
        self.is_tcp = True
        self.tcp_at = at
        half = len(self._before) // 2
        self.source = (self._before[:half], self._u16(at))
        self.target = (self._before[half:], self._u16(at + 2))
        self._ports(at)
        start = at + header
        self._tcp_options(at + 20, min(start, end))
        if start < end:
            payload = self.payload
            if payload is None or self.payload_at != start or len(payload) != end - start:
                payload = _FILLER * (end - start)
            out[start:end] = payload
        if end - at < 20:
            self._blank(at + 16, end)
            return
        out[at + 16 : at + 18] = b"\0\0"
        if start <= end:
            missing = _FILLER * (wire_end - end)
            out[at + 16 : at + 18] = self._summed(6, at, end, ends, missing)

    def _ports(self, at: int) -> None:
        """Other ports for those of TCP or UDP."""
        if self.addresses is not None:
            for field in (at, at + 2):
                port = self.addresses.port(self._u16(field))
                self.out[field : field + 2] = port.to_bytes(2, "big")

    def _tcp_options(self, at: int, end: int) -> None:
        """Keep the options that TCP itself needs; others keep kind and length."""
        out = self.out
        while at < end:
            kind = out[at]
            if kind == 1:
                at += 1
                continue
            if kind == 0 or end - at < 2 or not 2 <= out[at + 1] <= end - at:
                break
            if kind not in _TCP_OPTIONS:
                self._blank(at + 2, at + out[at + 1])
            at += out[at + 1]
        self._blank(at, end)

    def _udp(self, at: int, end: int, wire_end: int, ends: bytes, depth: int) -> None:
        out = self.out
        if end - at < 8:
            self._blank(at + 4, end)
            return
        port = self._u16(at + 2)
        header: cython.longlong = header_in_udp(bytes(out), at + 8, end, port)
        if header >= 0:
            inside = header & OFFSET_MASK
            if port == GENEVE_PORT:
                self._blank(at + 16, min(inside, end))
            elif port == GTP_PORT:
                self._gtp_extensions(at + 20, min(inside, end))
            self._inner(header >> OFFSET_BITS, inside, end, wire_end, depth)
        else:
            self._blank(at + 8, end)
        self._ports(at)
        if out[at + 6] or out[at + 7]:
            out[at + 6 : at + 8] = b"\0\0"
            missing = (_FILLER if self.is_tcp else b"\0") * (wire_end - end)
            checksum = self._summed(17, at, end, ends, missing)
            out[at + 6 : at + 8] = checksum if checksum != b"\0\0" else b"\xff\xff"

    def _gtp_extensions(self, at: int, end: int) -> None:
        """Extension headers keep their length and the kind of the next one."""
        while at < end:
            length = max(self.out[at] * 4, 4)
            self._blank(at + 1, min(at + length - 1, end))
            at += length

    def _icmp(self, kind: int, at: int, end: int, wire_end: int, ends: bytes) -> None:
        """Keep type, code and a number, but not the quoted packet."""
        out = self.out
        if end - at < 8:
            self._blank(at + 2, end)
            return
        plain = out[at] in (_ICMP_PLAIN if kind == 1 else _ICMPV6_PLAIN)
        self._blank(at + 2, at + 4)
        self._blank(at + 8 if plain else at + 4, end)
        if kind == 1:
            out[at + 2 : at + 4] = _checksum(bytes(out[at:end]))
        else:
            out[at + 2 : at + 4] = self._summed(58, at, end, ends, b"\0" * (wire_end - end))

    def _gre(self, at: int, end: int, wire_end: int, depth: int) -> None:
        """GRE and ERSPAN, as in `headers`."""
        out = self.out
        header: cython.longlong = header_in_gre(bytes(out), at, end)
        if header < 0:
            self._blank(at, end)
            return
        flags = self._u16(at)
        self._inner(header >> OFFSET_BITS, header & OFFSET_MASK, end, wire_end, depth)
        if flags & 0x8000 and end - at >= 8:
            out[at + 4 : at + 6] = b"\0\0"
            missing = (_FILLER if self.is_tcp else b"\0") * (wire_end - end)
            out[at + 4 : at + 6] = _checksum(bytes(out[at:end]) + missing)

    def _inner(self, ethertype: int, at: int, end: int, wire_end: int, depth: int) -> None:
        """Continue in a tunnel, with the header of `ethertype`."""
        header: cython.longlong = -1
        if at < end:
            header = find_ip_below(bytes(self.out), at, end, ethertype)
        if header < 0:
            self._blank(min(at, end), end)
            return
        if ethertype == ETHERNET_BRIDGING:
            self._macs(at)
            ethertype = self._u16(at + 12)
            at += 14
        if ethertype == NSH:
            self._blank(at + 8, min(at + (self.out[at + 1] & 0x3F) * 4, end))
        self._network(header >> OFFSET_BITS, header & OFFSET_MASK, end, wire_end, depth + 1)

    def segment(
        self,
        seq: int,
        ack: int,
        flags: int,
        window: int,
        payload: bytes,
        missing: int,
        ends: tuple[tuple[bytes, int], tuple[bytes, int]],
    ) -> bytes:
        """A packet of link type RAW between two ends, cut before its last `missing` bytes.

        One too long for an IP header has the length 0 there, as from cards that cut packets up.
        """
        (source, source_port), (target, target_port) = ends
        if self.addresses is not None:
            renamed = self.addresses.ipv4 if len(source) == 4 else self.addresses.ipv6
            source, target = renamed(source), renamed(target)
            source_port = self.addresses.port(source_port)
            target_port = self.addresses.port(target_port)
        words = (source_port, target_port, seq >> 16, seq & 0xFFFF, ack >> 16, ack & 0xFFFF)
        tcp = b"".join(word.to_bytes(2, "big") for word in (*words, 5 << 12 | flags, window))
        tcp += bytes(4) + payload
        size = len(tcp) + missing
        pseudo = source + target + size.to_bytes(4, "big") + (6).to_bytes(4, "big")
        tcp = tcp[:16] + _checksum(pseudo + tcp + _FILLER * missing) + tcp[18:]
        if len(source) == 16:
            length = (size if size <= 0xFFFF else 0).to_bytes(2, "big")
            return b"\x60\0\0\0" + length + b"\x06\x40" + source + target + tcp
        length = (20 + size if 20 + size <= 0xFFFF else 0).to_bytes(2, "big")
        ip = b"\x45\0" + length + b"\0\0\x40\0\x40\x06\0\0" + source + target
        return ip[:10] + _checksum(ip) + ip[12:] + tcp

    def _summed(self, kind: int, at: int, end: int, ends: bytes, missing: bytes) -> bytes:
        """The checksum of TCP, UDP or ICMPv6 with its pseudo-header."""
        length = end - at + len(missing)
        pseudo = ends + length.to_bytes(4, "big") + kind.to_bytes(4, "big")
        return _checksum(pseudo + bytes(self.out[at:end]) + missing)

    def _blank(self, at: int, end: int) -> None:
        end = min(end, len(self.out))
        if at < end:
            self.out[at:end] = bytes(end - at)

    def _u16(self, at: int) -> int:
        return self.out[at] << 8 | self.out[at + 1]


def _checksum(octets: bytes) -> bytes:
    """The complement of the ones' complement sum of 16-bit words (RFC 1071).

    That sum is the remainder of the whole number by 65,535, with 0 only if all words are 0.
    """
    if len(octets) & 1:
        octets += b"\0"
    number = int.from_bytes(octets, "big")
    remainder = number % 65535
    if remainder == 0 and number:
        remainder = 65535
    return (65535 - remainder).to_bytes(2, "big")
