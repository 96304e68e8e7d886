# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The handshake of one conversation: its messages, and the facts in them.

`Handshake` is given messages in the order in which they were captured, in clear and, once it opens,
within; it remembers the facts from which keys are derived, and those shown to people. Messages may
be cut: the captured fields are read, the others stay unknown. Nothing raises.

Source: RFC 8446 §4.1, RFC 5246 §7.4.1, RFC 6066 §3 (names), RFC 7301 (ALPN), RFC 7627 (extended
master secret), RFC 7366 (encrypt then MAC), RFC 5077 (tickets).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple

import cython

from .certificate import read_certificate
from .derive import master_secret
from .secrets import MASTER, PREMASTER, Secrets
from .suites import TLS_1_3, suite_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELLO_REQUEST, CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET = 0, 1, 2, 4
END_OF_EARLY_DATA, ENCRYPTED_EXTENSIONS = 5, 8
CERTIFICATE, SERVER_KEY_EXCHANGE, CERTIFICATE_REQUEST, CERTIFICATE_VERIFY = 11, 12, 13, 15
CLIENT_KEY_EXCHANGE, FINISHED, KEY_UPDATE = 16, 20, 24

MAX_TRANSCRIPT_BYTES = 1 << 17
"""Bytes of messages kept for the extended master secret; certificates have some thousand."""

SERVER_NAME, ALPN, ENCRYPT_THEN_MAC, EXTENDED_MASTER_SECRET = 0, 16, 22, 23
TICKET, PRE_SHARED_KEY, EARLY_DATA, SUPPORTED_VERSIONS = 35, 41, 42, 43

TLS_1_3_SUITES = 0x13
"""First byte of the suites that only TLS 1.3 has."""

RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""The random of a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3)."""

MAX_NAME_BYTES = 255
"""Bytes shown of a name in a handshake: more is no host name and no protocol's."""


@cython.cclass
class Fields:
    """Reads fields one after the other; past the end they are empty and `is_whole` is False."""

    octets: bytes
    at: cython.Py_ssize_t
    is_whole = cython.declare(cython.bint, visibility="readonly")

    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.at = 0
        self.is_whole = True

    @cython.ccall
    def take(self, count: cython.Py_ssize_t) -> bytes:
        """The next bytes; empty if fewer are left."""
        if count > len(self.octets) - self.at:
            self.is_whole = False
            self.at = len(self.octets)
            return b""
        self.at += count
        return self.octets[self.at - count : self.at]

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def number(self, count: cython.Py_ssize_t) -> cython.int:
        """The next bytes as a number, three at most; 0 past the end."""
        number: cython.int = 0
        octets: bytes = self.take(count)
        at: cython.Py_ssize_t
        for at in range(len(octets)):
            number = number << 8 | octets[at]
        return number

    @cython.ccall
    def vector(self, count: cython.Py_ssize_t) -> bytes:
        """The next bytes, behind their length in `count` bytes."""
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
    extensions = _extensions(fields)
    versions = Fields(extensions.get(SUPPORTED_VERSIONS, b"")[1:])
    offered = [version]
    while versions.more():
        offered.append(versions.number(2))
    known_versions = [
        version_offered for version_offered in offered if version_offered <= TLS_1_3
    ]  # others are fillers (RFC 8701) or drafts
    return ClientHello(
        random,
        session_id,
        suites,
        _server_name(extensions[SERVER_NAME]) if SERVER_NAME in extensions else "",
        read_protocols(extensions[ALPN]) if ALPN in extensions else (),
        max(known_versions, default=version),
        extensions.get(TICKET, b""),
        bool(session_id or extensions.get(TICKET)) and PRE_SHARED_KEY not in extensions,
        EARLY_DATA in extensions,
    )


def read_server_hello(body: bytes) -> ServerHello | None:
    """A ServerHello's body, or the beginning of one; None without its cipher suite."""
    fields = Fields(body)
    version = fields.number(2)
    random = fields.take(32)
    session_id = fields.vector(1)
    suite = fields.number(2)
    if not fields.is_whole:
        return None
    fields.take(1)
    extensions = _extensions(fields)
    chosen = extensions.get(SUPPORTED_VERSIONS, b"")
    if len(chosen) == 2:
        version = int.from_bytes(chosen, "big")
    elif suite >> 8 == TLS_1_3_SUITES:
        version = TLS_1_3
    return ServerHello(
        random,
        session_id,
        suite,
        version,
        "".join(read_protocols(extensions.get(ALPN, b""))[:1]),
        EXTENDED_MASTER_SECRET in extensions,
        ENCRYPT_THEN_MAC in extensions,
        PRE_SHARED_KEY in extensions,
    )


def read_encrypted_extensions(body: bytes) -> tuple[str, bool]:
    """The protocol chosen in TLS 1.3, or ""; True if early data is accepted."""
    extensions = _extensions(Fields(body))
    return "".join(read_protocols(extensions.get(ALPN, b""))[:1]), EARLY_DATA in extensions


def read_ticket(body: bytes) -> bytes:
    """The ticket of a NewSessionTicket of TLS 1.2."""
    fields = Fields(body)
    fields.take(4)
    return fields.vector(2)


def read_protocols(extension: bytes) -> tuple[str, ...]:
    """The protocol names of an ALPN extension."""
    names = Fields(extension[2:])
    protocols = []
    while names.more():
        name = names.vector(1)
        if name:
            protocols.append(_text(name))
    return tuple(protocols)


def _extensions(fields: Fields) -> dict[int, bytes]:
    """The extensions that are read, by type; of a cut message those before the cut."""
    length = fields.number(2)
    octets: bytes = fields.octets[fields.at : fields.at + length]
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(octets)
    extensions: dict[int, bytes] = {}
    while end - at >= 4:
        kind: cython.int = octets[at] << 8 | octets[at + 1]
        size: cython.Py_ssize_t = octets[at + 2] << 8 | octets[at + 3]
        at += 4
        if end - at < size:
            break
        if kind <= 43:  # up to `SUPPORTED_VERSIONS`; the highest type that is read
            extensions[kind] = octets[at : at + size]
        at += size
    return extensions


@lru_cache(256)
def _suites(octets: bytes) -> tuple[int, ...]:
    """Numbers of cipher suites, without the fillers of RFC 8701 and two signals.

    Those are renegotiation, 0x00ff (RFC 5746), and fallback, 0x5600 (RFC 7507).
    """
    suites = []
    at: cython.Py_ssize_t
    for at in range(0, len(octets) - 1, 2):
        high: cython.int = octets[at]
        low: cython.int = octets[at + 1]
        number: cython.int = high << 8 | low
        if (high != low or low & 15 != 10) and number != 0x00FF and number != 0x5600:
            suites.append(number)
    return tuple(suites)


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


@cython.cclass
class Handshake:
    """Facts of a handshake so far; None or empty if not known yet.

    Attributes:
        early: Whether the server takes the early data of TLS 1.3 that the client offered; None
            while that is not known, or when none was offered.
        asked: Whether the server asked for the client's certificate, as far as that was read.
    """

    client = cython.declare(object, visibility="public")
    server = cython.declare(object, visibility="public")
    suite = cython.declare(object, visibility="public")
    protocol = cython.declare(object, visibility="public")
    certificate = cython.declare(object, visibility="public")
    client_certificate = cython.declare(object, visibility="public")
    resumed = cython.declare(cython.bint, visibility="public")
    requests_certificate = cython.declare(cython.bint, visibility="public")
    early = cython.declare(object, visibility="public")
    master = cython.declare(object, visibility="public")
    _certified: cython.bint
    _transcript: Any
    _bytes: cython.longlong
    _session_hash: Any
    _exchange: Any
    _ticket: Any

    def __init__(self) -> None:
        self.client = None
        self.server = None
        self.suite = None
        self.protocol = ""
        self.certificate = None
        self.client_certificate = None
        self.resumed = self.requests_certificate = False
        self.early = None
        self.master = b""
        self._certified = False
        self._transcript = []
        self._bytes = 0
        self._session_hash = b""
        self._exchange = b""
        self._ticket = b""

    @property
    def version(self) -> int:
        """The version that was chosen, or that the client offered; 0 when neither was captured."""
        if self.server is not None:
            return self.server.version
        return self.client.version if self.client is not None else 0

    def renew(self) -> None:
        """Another handshake begins on the same conversation; known names stay."""
        self.server = None
        self.suite = None
        self.master = b""
        self._certified = False
        self._transcript = []
        self._bytes = 0
        self._session_hash = self._exchange = self._ticket = b""

    def message(self, kind: int, body: bytes, from_client: bool, is_whole: bool = True) -> None:
        """The next message of either side, or, when not `is_whole`, the beginning of one."""
        if kind == CLIENT_HELLO and self.master:
            self.renew()
        self._note(kind, body, is_whole)
        if kind == CLIENT_HELLO:
            self.client = read_client_hello(body) or self.client
        elif kind == SERVER_HELLO:
            self._server_hello(body)
        elif kind == ENCRYPTED_EXTENSIONS:
            protocol, self.early = read_encrypted_extensions(body)
            self.protocol = protocol or self.protocol
        elif kind == CERTIFICATE_REQUEST:
            self.requests_certificate = True
        elif kind == CERTIFICATE and is_whole:
            self._certificates(body, from_client)
        elif kind == CLIENT_KEY_EXCHANGE:
            self._key_exchange(body)
        elif kind == NEW_SESSION_TICKET and self.version != TLS_1_3:
            self._ticket = read_ticket(body)

    def _note(self, kind: int, body: bytes, is_whole: bool) -> None:
        """Keep a message for the session hash, as long as it may be needed."""
        if self._transcript is None or kind == HELLO_REQUEST:
            return
        self._bytes += len(body)
        if not is_whole or self._bytes > MAX_TRANSCRIPT_BYTES:
            self._transcript = None
            return
        self._transcript.append(bytes((kind,)) + len(body).to_bytes(3, "big") + body)

    def _server_hello(self, body: bytes) -> None:
        hello = read_server_hello(body)
        if hello is None:
            return
        if hello.is_retry:
            self.early = False
            return
        self.server = hello
        self.suite = suite_of(hello.suite)
        self.protocol = hello.protocol or self.protocol
        if hello.version == TLS_1_3:
            self.resumed = hello.resumes
            if not hello.resumes:
                self.early = False
        elif self.client is not None:
            self.resumed = bool(hello.session_id) and hello.session_id == self.client.session_id
        if not self.suite.is_rsa:
            self._transcript = None

    def _certificates(self, body: bytes, from_client: bool) -> None:
        fields = Fields(body)
        if self.version == TLS_1_3:
            fields.vector(1)
        first = Fields(fields.vector(3)).vector(3)
        if not first:
            return
        if from_client:
            self.client_certificate = read_certificate(first)
        else:
            self.certificate = read_certificate(first)
            self._certified = True

    def _key_exchange(self, body: bytes) -> None:
        self._exchange = Fields(body).vector(2)
        if self._transcript is not None and self.suite is not None and self.server is not None:
            digest = hashlib.new(self.suite.digest, b"".join(self._transcript))
            if self.server.extended_master_secret:
                self._session_hash = digest.digest()
        self._transcript = None

    def find_master(self, secrets: Secrets) -> bytes:
        """The master secret before TLS 1.3; empty when nothing gives it."""
        if not self.master and self.client is not None:
            self.master = (
                secrets.find(MASTER, self.client.random)
                or self._resumed_master(secrets)
                or self._exchanged_master(secrets)
            )
        return self.master

    def _resumed_master(self, secrets: Secrets) -> bytes:
        assert self.client is not None
        if self._certified or self.server is None:
            return b""
        master = None
        if self.server.session_id:
            master = secrets.session(self.server.session_id)
        if master is None and self.client.ticket:
            master = secrets.session(self.client.ticket)
        return master or b""

    def _exchanged_master(self, secrets: Secrets) -> bytes:
        """The master secret from what the client sent for the server's key."""
        if self.client is None or self.server is None or self.suite is None:
            return b""
        premaster = secrets.find(PREMASTER, self.client.random)
        if premaster is None and self.suite.is_rsa and self._exchange:
            modulus = self.certificate.modulus if self.certificate is not None else None
            premaster = _decrypted(secrets.key_for(modulus), self._exchange)
        if not premaster:
            return b""
        if self.server.extended_master_secret and not self._session_hash:
            return b""
        randoms = self.client.random + self.server.random
        return master_secret(
            self.server.version, self.suite, premaster, randoms, self._session_hash
        )

    def remember(self, secrets: Secrets) -> None:
        """A session that opened may be resumed."""
        if self.master and self.server is not None:
            secrets.remember(self.server.session_id, self.master)
            secrets.remember(self._ticket, self.master)


def _decrypted(key: Any, octets: bytes) -> bytes:
    """The premaster secret; empty without a key, or where the key is not of these bytes."""
    if key is None:
        return b""
    from cryptography.hazmat.primitives.asymmetric import padding

    try:
        return key.decrypt(octets, padding.PKCS1v15())
    except ValueError:
        return b""
