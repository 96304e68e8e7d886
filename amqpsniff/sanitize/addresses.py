"""Pseudonyms for addresses and ports, in the order in which they are met.

IPv4 networks of 24 bits become 10.0.0.0/24, 10.0.1.0/24 and so on, and hosts in them .1, .2 and so
on; IPv6 networks of 64 bits become fd00::/64, fd00:0:0:1::/64, …; so what was in one network still
is. MAC addresses become 02:00:00:00:00:01 and on. Ports from 32,768 on, which clients are given by
their system, are numbered from there; those below identify a service and stay, as do addresses
that identify no host: unspecified, loopback, multicast and broadcast ones. Pseudonyms of pseudonyms
are the same again.
"""

from __future__ import annotations

from typing import Any

FIRST_CLIENT_PORT = 32_768
"""Where Linux begins to give ports to clients; other systems begin at 49,152."""

MAX = 1 << 20
"""Addresses of a kind remembered. A scan of more is given pseudonyms that repeat."""

_TEN = 10 << 24
_UNIQUE_LOCAL = 0xFD00 << 48
_LINK_LOCAL = 0xFE80 << 48
_MAPPED = bytes(10) + b"\xff\xff"


class AddressPseudonyms:
    """Gives addresses and ports pseudonyms."""

    def __init__(self) -> None:
        self._ipv4: dict[bytes, bytes] = {}
        self._ipv6: dict[bytes, bytes] = {}
        self._macs: dict[bytes, bytes] = {}
        self._ports: dict[int, int] = {}
        self._ipv4_networks: dict[bytes, int] = {}
        self._ipv6_networks: dict[bytes, int] = {}
        self._hosts: dict[bytes, int] = {}

    def ipv4(self, address: bytes) -> bytes:
        """Of four bytes."""
        if address[0] in (0, 127) or address[0] >= 224:
            return address
        pseudonym = self._ipv4.get(address)
        if pseudonym is None:
            network = _numbered(self._ipv4_networks, address[:3])
            number = _TEN + (network << 8) + (self._host(address[:3]) & 0xFF)
            pseudonym = self._ipv4[address] = (number & 0xFFFFFFFF).to_bytes(4, "big")
            _bound(self._ipv4)
        return pseudonym

    def ipv6(self, address: bytes) -> bytes:
        """Of sixteen bytes."""
        if address[:15] == bytes(15) or address[0] == 0xFF:
            return _without_interface(address)
        if address.startswith(_MAPPED):
            return _MAPPED + self.ipv4(address[12:])
        pseudonym = self._ipv6.get(address)
        if pseudonym is None:
            prefix = address[:8]
            upper = _LINK_LOCAL
            if prefix[:2] != b"\xfe\x80":
                upper = _UNIQUE_LOCAL + _numbered(self._ipv6_networks, prefix)
            pseudonym = upper.to_bytes(8, "big") + self._host(prefix).to_bytes(8, "big")
            self._ipv6[address] = pseudonym
            _bound(self._ipv6)
        return pseudonym

    def mac(self, address: bytes) -> bytes:
        """Of six bytes; group addresses of IPv6 lose the part that is a host's."""
        if address[:2] == b"\x33\x33" and address[2] == 0xFF:
            return address[:3] + bytes(3)
        if address[0] & 1 or address == bytes(6):
            return address
        pseudonym = self._macs.get(address)
        if pseudonym is None:
            pseudonym = self._macs[address] = b"\x02" + (len(self._macs) + 1).to_bytes(5, "big")
            _bound(self._macs)
        return pseudonym

    def port(self, port: int) -> int:
        """A TCP or UDP port."""
        if port < FIRST_CLIENT_PORT:
            return port
        return self._ports.setdefault(port, FIRST_CLIENT_PORT + len(self._ports))

    def _host(self, prefix: bytes) -> int:
        """The number of the next host in a network."""
        _bound(self._hosts)
        number = self._hosts[prefix] = self._hosts.get(prefix, 0) + 1
        return number


def _without_interface(address: bytes) -> bytes:
    """A solicited-node group (RFC 4291 §2.7.1) without the part of a host's address in it."""
    if address[0] == 0xFF and address[2:13] == bytes(9) + b"\x01\xff":
        return address[:13] + bytes(3)
    return address


def _numbered(networks: dict[bytes, int], prefix: bytes) -> int:
    """The number of a network."""
    _bound(networks)
    return networks.setdefault(prefix, len(networks))


def _bound(remembered: dict[bytes, Any]) -> None:
    if len(remembered) > MAX:
        remembered.clear()
