# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The handshake of one conversation: what its messages tell, in clear and, once it opens, within.

`Handshake` is given messages in the order in which they were captured and remembers what is needed
to derive keys and what a person wants to know. Messages may be cut; what was not captured is not
known, and nothing raises.
"""

from __future__ import annotations

import hashlib

import cython

from .certificate import read_certificate
from .derive import master_secret
from .hello import (
    TLS_1_3,
    Fields,
    read_client_hello,
    read_encrypted_extensions,
    read_server_hello,
    read_ticket,
)
from .secrets import MASTER, PREMASTER, Secrets
from .suites import suite_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELLO_REQUEST, CLIENT_HELLO, SERVER_HELLO, NEW_SESSION_TICKET = 0, 1, 2, 4
END_OF_EARLY_DATA, ENCRYPTED_EXTENSIONS = 5, 8
CERTIFICATE, SERVER_KEY_EXCHANGE, CERTIFICATE_REQUEST, CERTIFICATE_VERIFY = 11, 12, 13, 15
CLIENT_KEY_EXCHANGE, FINISHED, KEY_UPDATE = 16, 20, 24

MAX_TRANSCRIPT_BYTES = 1 << 17
"""Bytes of messages kept for the extended master secret; certificates have some thousand."""


@cython.cclass
class Handshake:
    """Facts that a handshake has told so far; None or empty where it has not.

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
    asked = cython.declare(cython.bint, visibility="public")
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
        self.resumed = self.asked = False
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
        """Another handshake begins on the same conversation; names that are known stay."""
        self.server = None
        self.suite = None
        self.master = b""
        self._certified = False
        self._transcript = []
        self._bytes = 0
        self._session_hash = self._exchange = self._ticket = b""

    def message(self, kind: int, body: bytes, from_client: bool, whole: bool = True) -> None:
        """The next message of either side, or, when not `whole`, the beginning of one."""
        if kind == CLIENT_HELLO and self.master:
            self.renew()
        self._note(kind, body, whole)
        if kind == CLIENT_HELLO:
            self.client = read_client_hello(body) or self.client
        elif kind == SERVER_HELLO:
            self._server_hello(body)
        elif kind == ENCRYPTED_EXTENSIONS:
            protocol, self.early = read_encrypted_extensions(body)
            self.protocol = protocol or self.protocol
        elif kind == CERTIFICATE_REQUEST:
            self.asked = True
        elif kind == CERTIFICATE and whole:
            self._certificates(body, from_client)
        elif kind == CLIENT_KEY_EXCHANGE:
            self._key_exchange(body)
        elif kind == NEW_SESSION_TICKET and self.version != TLS_1_3:
            self._ticket = read_ticket(body)

    def _note(self, kind: int, body: bytes, whole: bool) -> None:
        """Keep a message for the session hash, as long as it may be needed."""
        if self._transcript is None or kind == HELLO_REQUEST:
            return
        self._bytes += len(body)
        if not whole or self._bytes > MAX_TRANSCRIPT_BYTES:
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
        found = None
        if self.server.session_id:
            found = secrets.session(self.server.session_id)
        if found is None and self.client.ticket:
            found = secrets.session(self.client.ticket)
        return found or b""

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
