# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Messages of a handshake that are in clear: ClientHello, ServerHello, and their extensions.

A message may be cut: the fields that are there are read, the others stay unknown. Nothing raises.

Source: RFC 8446 §4.1, RFC 5246 §7.4.1, RFC 6066 §3 (names), RFC 7301 (ALPN), RFC 7627 (extended
master secret), RFC 7366 (encrypt then MAC), RFC 5077 (tickets).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import cython

SERVER_NAME, ALPN, ENCRYPT_THEN_MAC, EXTENDED_MASTER_SECRET = 0, 16, 22, 23
TICKET, PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS = 35, 41, 42, 43

SSL_3_0, TLS_1_2, TLS_1_3 = 0x0300, 0x0303, 0x0304
TLS_1_3_SUITES = 0x13
"""First byte of the suites that only TLS 1.3 has."""

RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3)."""

MAX_NAME_BYTES = 255
"""Bytes shown of a name in a handshake: more is no host name and no protocol's."""


@cython.cclass
class Fields:
    """Reads fields one after the other; past the end they are empty and `whole` is False."""

    octets: bytes
    at: cython.Py_ssize_t
    whole = cython.declare(cython.bint, visibility="readonly")

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.at = 0
        self.whole = True

    @cython.ccall
    def take(self, count: cython.Py_ssize_t) -> bytes:
        """The next bytes, all of them or none."""
        if count > len(self.octets) - self.at:
            self.whole = False
            self.at = len(self.octets)
            return b""
        self.at += count
        return self.octets[self.at - count : self.at]

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def number(self, count: cython.Py_ssize_t) -> cython.int:
        """The next bytes as a number, three at most; 0 past the end."""
        found: cython.int = 0
        octets: bytes = self.take(count)
        at: cython.Py_ssize_t
        for at in range(len(octets)):
            found = found << 8 | octets[at]
        return found

    @cython.ccall
    def vector(self, count: cython.Py_ssize_t) -> bytes:
        """The next bytes, as many as a number of `count` bytes before them says."""
        return self.take(self.number(count))

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def more(self) -> cython.bint:
        """True if there are bytes left."""
        return self.at < len(self.octets)


class ClientHello(NamedTuple):
    """The offers of a client; empty if absent."""

    random: bytes
    session_id: bytes
    suites: tuple[int, ...]
    server_name: str
    protocols: tuple[str, ...]
    version: int
    ticket: bytes
    resumes: bool
    early_data: bool


class ServerHello(NamedTuple):
    """The choices of the server; `protocol` is empty where it is encrypted."""

    random: bytes
    session_id: bytes
    suite: int
    version: int
    protocol: str
    extended_master_secret: bool
    encrypt_then_mac: bool
    resumes: bool

    @property
    def is_retry(self) -> bool:
        """True if it asks for another ClientHello."""
        return self.random == RETRY_RANDOM


def read_client_hello(body: bytes) -> ClientHello | None:
    """A ClientHello's body, or the beginning of one; None without its random."""
    fields = Fields(body)
    version = fields.number(2)
    random = fields.take(32)
    if not random:
        return None
    session_id = fields.vector(1)
    suites = _suites(fields.vector(2))
    fields.vector(1)
    found = _extensions(fields)
    versions = Fields(found.get(SUPPORTED_VERSIONS, b"")[1:])
    offered = [version]
    while versions.more():
        offered.append(versions.number(2))
    known = [one for one in offered if one <= TLS_1_3]  # others are fillers (RFC 8701) or drafts
    return ClientHello(
        random,
        session_id,
        suites,
        _server_name(found[SERVER_NAME]) if SERVER_NAME in found else "",
        read_protocols(found[ALPN]) if ALPN in found else (),
        max(known, default=version),
        found.get(TICKET, b""),
        bool(session_id or found.get(TICKET)) and PRE_SHARED_KEY not in found,
        EARLY_DATA in found,
    )


def read_server_hello(body: bytes) -> ServerHello | None:
    """A ServerHello's body, or the beginning of one; None without its cipher suite."""
    fields = Fields(body)
    version = fields.number(2)
    random = fields.take(32)
    session_id = fields.vector(1)
    suite = fields.number(2)
    if not fields.whole:
        return None
    fields.take(1)
    found = _extensions(fields)
    chosen = found.get(SUPPORTED_VERSIONS, b"")
    if len(chosen) == 2:
        version = int.from_bytes(chosen, "big")
    elif suite >> 8 == TLS_1_3_SUITES:
        version = TLS_1_3
    return ServerHello(
        random,
        session_id,
        suite,
        version,
        "".join(read_protocols(found.get(ALPN, b""))[:1]),
        EXTENDED_MASTER_SECRET in found,
        ENCRYPT_THEN_MAC in found,
        PRE_SHARED_KEY in found,
    )


def read_encrypted_extensions(body: bytes) -> tuple[str, bool]:
    """The protocol chosen in TLS 1.3, empty when none was; and whether early data is taken."""
    found = _extensions(Fields(body))
    return "".join(read_protocols(found.get(ALPN, b""))[:1]), EARLY_DATA in found


def read_ticket(body: bytes) -> bytes:
    """The ticket of a NewSessionTicket of TLS 1.2."""
    fields = Fields(body)
    fields.take(4)
    return fields.vector(2)


def read_protocols(extension: bytes) -> tuple[str, ...]:
    """The protocol names of an ALPN extension."""
    names = Fields(extension[2:])
    found = []
    while names.more():
        name = names.vector(1)
        if name:
            found.append(_text(name))
    return tuple(found)


def _extensions(fields: Fields) -> dict[int, bytes]:
    """The extensions that are read, by type; those before a cut where there is one."""
    length = fields.number(2)
    octets: bytes = fields.octets[fields.at : fields.at + length]
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(octets)
    found: dict[int, bytes] = {}
    while end - at >= 4:
        kind: cython.int = octets[at] << 8 | octets[at + 1]
        size: cython.Py_ssize_t = octets[at + 2] << 8 | octets[at + 3]
        at += 4
        if end - at < size:
            break
        if kind <= 43:  # `SUPPORTED_VERSIONS`, the highest that is read: there may be thousands
            found[kind] = octets[at : at + size]
        at += size
    return found


@lru_cache(256)
def _suites(octets: bytes) -> tuple[int, ...]:
    """Numbers of cipher suites, without the fillers of RFC 8701 and two signals.

    Those are renegotiation, 0x00ff (RFC 5746), and fallback, 0x5600 (RFC 7507).
    """
    found = []
    at: cython.Py_ssize_t
    for at in range(0, len(octets) - 1, 2):
        high: cython.int = octets[at]
        low: cython.int = octets[at + 1]
        number: cython.int = high << 8 | low
        if (high != low or low & 15 != 10) and number != 0x00FF and number != 0x5600:
            found.append(number)
    return tuple(found)


def _server_name(extension: bytes) -> str:
    fields = Fields(extension)
    fields.take(2)
    while fields.more():
        kind = fields.number(1)
        name = fields.vector(2)
        if kind == 0:
            return _text(name)
    return ""


def _text(octets: bytes) -> str:
    return octets[:MAX_NAME_BYTES].decode("ascii", "backslashreplace")
