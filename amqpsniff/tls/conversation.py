# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One TLS conversation: handshake, keys and records of both directions, and its description.

Records in clear are the handshake and its alerts. Once a direction's records are encrypted they
wait, up to `MAX_WAITING_BYTES`, until keys are found (the other direction's handshake may come
later, and a key log may grow); then they are opened in the order in which they came, and what they
carry is given to `sink`.

Each record has a number that its check includes, so one that opens is in its place; after a hole
the number is found by trying. A record with a hole in it cannot be checked: where the cipher is a
stream, the bytes that were captured are decrypted all the same.

TLS 1.3 has keys for the handshake and others for what follows. Key logs that lack the former do:
the records of the handshake do not open then, and the first that opens begins what follows.

A conversation that does not open does not show if it is AMQP; `suspicion` gives the reason why
it may be: the negotiated protocol (ALPN), the usual port, or a requested port. Only another
protocol in the ALPN, or the port of another protocol, excludes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import cython

from .derive import key_block, next_secret
from .handshake import (
    CLIENT_HELLO,
    ENCRYPTED_EXTENSIONS,
    END_OF_EARLY_DATA,
    FINISHED,
    KEY_UPDATE,
    SERVER_HELLO,
    Handshake,
)
from .records import (
    ALERT,
    CHANGE_CIPHER_SPEC,
    DATA,
    DEAF,
    HANDSHAKE,
    HEADER,
    SEARCHING,
    Direction,
    FirstRecord,
    RecordClaim,
)
from .secrets import EARLY, TRAFFIC, Secrets
from .secrets import HANDSHAKE as HANDSHAKE_SECRETS
from .suites import ALERTS, SSL_3_0, TLS_1_2, TLS_1_3, VERSIONS, suite_of

MAX_WAITING_BYTES = 1 << 18
"""Bytes of records of one conversation that wait for keys: some seconds of traffic."""

MAX_MESSAGE_BYTES = 1 << 18
"""Bytes of one handshake message that is waited for: chains of certificates have less."""

MAX_ALERTS = 16
"""Alerts of one conversation that are remembered."""

INCOMPLETE = "bytes of the handshake are missing from the capture"

_HARMLESS = frozenset(("close_notify", "user_canceled", "no_renegotiation"))

MAX_FAILURES = 64
"""Records in a row that do not open before keys are given up: a handshake has fewer."""

FIRST_TRIES = 65_536
"""Record numbers tried at most to find the place after a hole, one conversation's share."""

TRIES_PER_RECORD = 64
"""And as many more for every record that opened: a crafted hole cannot cost more than it paid."""

END_BYTES = 4
"""Bytes of EndOfEarlyData, the last record of early data."""

_GRACE = 8
"""Record numbers tried beyond those that fit into a hole: some records are empty."""

FINISHED_BYTES = 53
"""The smallest Finished that TLS 1.3 encrypts: four bytes of header, 32 of hash, the type, a tag of
16. If all that a client sends encrypted is less, it is an alert: 19 bytes, and 35 as Java pads it.
"""

CLOSING_BYTES = frozenset((23, 24, 31))
"""Sizes of a record with a close_notify, of TLS 1.2 with ChaCha20, of TLS 1.3, of TLS 1.2 with GCM.
A protocol header makes records of six bytes more."""

NO_KEYS = "no keys were given"
WRONG_KEYS = "the keys do not fit: no record opens with them"

CLEAR, ENCRYPTED, OPENED, SEALED = range(4)
"""States of a conversation: only its handshake was read; records are encrypted; records open;
that they will not."""

AMQPS_PORT = 5671
"""The registered port of AMQP over TLS."""

OTHER_PROTOCOLS = {
    443: "HTTPS", 465: "SMTP", 563: "NNTP", 636: "LDAP", 853: "DNS", 990: "FTP", 993: "IMAP",
    995: "POP3", 1433: "SQL Server", 2376: "Docker", 2379: "etcd", 2380: "etcd", 3269: "LDAP",
    3306: "MySQL", 3389: "RDP", 5061: "SIP", 5223: "XMPP", 5349: "STUN", 5432: "PostgreSQL",
    5551: "RabbitMQ streams", 6379: "Redis", 6380: "Redis", 6443: "Kubernetes", 6514: "syslog",
    8443: "HTTPS", 8883: "MQTT", 9042: "Cassandra", 9092: "Kafka", 9093: "Kafka", 9094: "Kafka",
    9200: "Elasticsearch", 9443: "HTTPS", 10250: "Kubernetes", 15671: "RabbitMQ management",
    15691: "RabbitMQ metrics", 25672: "RabbitMQ nodes", 27017: "MongoDB", 61614: "STOMP",
}  # fmt: skip
"""Ports on which TLS carries another protocol, unless AMQP is expected there."""

_OF_ALERT = "the size of an alert"

NAMES_SHOWN = 3
"""Names of a certificate that are shown."""

MAX_OFFERED = 128
"""Cipher suites of a ClientHello that are shown: openssl's whole list has 90."""


class Sink(Protocol):
    """The receiver of decrypted bytes."""

    def put(
        self, direction: int, octets: bytes, offset: int, number: int, ts_ns: int
    ) -> None:  # pragma: no cover
        """The next bytes of a direction."""
        ...

    def miss(
        self, direction: int, missing: int, offset: int, number: int, ts_ns: int
    ) -> None:  # pragma: no cover
        """The next bytes are not in the capture."""
        ...


class Alert(NamedTuple):
    """An alert that ends a conversation: its direction, its text, and its packet."""

    direction: int
    description: str
    number: int
    ts_ns: int


class Trouble(NamedTuple):
    """Something wrong with a conversation: the finding's code, its detail, and the packet."""

    code: str
    detail: str
    number: int | None = None
    ts_ns: int | None = None


@cython.cclass
class TlsConversation:
    """Both directions of one conversation; what opens goes to `sink`.

    Attributes:
        state: `CLEAR`, `ENCRYPTED`, `OPENED` or `SEALED`.
        why: The reason why it cannot be decrypted, as text, if it is `SEALED`.
        denied: It turned out not to be TLS.
        client: The direction of the sender of the ClientHello; None if none was captured.
        octets: Bytes passed on, by direction.
        alerts: Those that report an error.
        damaged: (direction, packet number, ts_ns) of the first record that did not open among
            others that did, or None.
        claims: Claims of records; None if they are not requested.
        serial: Serial number of the conversation, for claims.
        unread_early: Bytes of the client's early data for which there is no key; -1 for none.
    """

    secrets = cython.declare(object, visibility="public")
    sink = cython.declare(object, visibility="public")
    handshake = cython.declare(object, visibility="public")
    state = cython.declare(cython.longlong, visibility="public")
    client = cython.declare(object, visibility="public")
    octets = cython.declare(object, visibility="public")
    damaged = cython.declare(object, visibility="public")
    claims = cython.declare(object, visibility="public")
    serial = cython.declare(cython.longlong, visibility="public")
    unread_early = cython.declare(cython.longlong, visibility="public")
    _failures: Any
    _tries: cython.longlong
    directions = cython.declare(object, visibility="public")
    why = cython.declare(object, visibility="public")
    alerts = cython.declare(object, visibility="public")
    denied = cython.declare(cython.bint, visibility="public")
    _revision: cython.longlong
    _waiting: Any
    _waiting_bytes: cython.longlong

    def __init__(self, secrets: Secrets, sink: Sink) -> None:
        self.secrets = secrets
        self.sink = sink
        self.handshake = Handshake()
        self.state = CLEAR
        self.client = None
        self.octets = [0, 0]
        self.damaged = None
        self.claims = None
        self.serial = -1
        self.unread_early = -1
        self._failures = [0, 0]
        self._tries = FIRST_TRIES
        self.directions = (Direction(self, 0), Direction(self, 1))
        self.why = ""
        self.alerts = []
        self.denied = False
        self._revision = -1
        self._waiting = []
        self._waiting_bytes = 0

    def client_of(self, conversation: Any) -> int:
        """The client's direction: by the handshake, else by the SYN, else of the higher port."""
        if self.client is not None:
            return self.client
        first, second = conversation.ports
        return 0 if conversation.syn_seen else int(first < second)

    # what directions tell

    def deny(self) -> None:
        """A direction does not begin with a record."""
        self.denied = self.state == CLEAR and self.handshake.server is None

    def astray(self, direction: Direction) -> None:
        """A direction lost its place: continue where a record opens."""
        if direction.index != self.client:
            self._take_early()
        if self.state == SEALED or not self.secrets:
            direction.silence()
            if self.state != SEALED:
                self.seal(INCOMPLETE)

    def record(
        self, direction: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """A whole record, in its place."""
        if self.claims is not None:
            clear_payload = payload if self._is_clear(direction, header) else None
            self.claims.append(
                RecordClaim(
                    self.serial, direction.index, direction.record_offset, header, clear_payload
                )
            )
        self._take(direction, header, payload, number, ts_ns)

    def _is_clear(self, direction: Direction, header: bytes) -> bool:
        return header[0] == CHANGE_CIPHER_SPEC or not (direction.encrypted or header[0] == DATA)

    def _take(
        self, direction: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        if header[0] == ALERT and len(payload) == 2:  # one that is encrypted is longer
            self._alert(direction, payload, number, ts_ns)
        elif direction.protection is not None:
            self.open(direction, header, payload, number, ts_ns)
        elif self._is_clear(direction, header):
            self.clear(direction, header[0], payload, number, ts_ns)
        else:
            self._wait(direction, header, payload, number, ts_ns)

    def clear(self, direction: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
        """What a record carries that is not application data."""
        if kind == HANDSHAKE:
            self._messages(direction, text)
        elif kind == ALERT:
            self._alert(direction, text, number, ts_ns)
        elif kind == CHANGE_CIPHER_SPEC and self.handshake.version != TLS_1_3:
            self._change_cipher(direction)

    def _alert(self, direction: Direction, text: bytes, number: int, ts_ns: int) -> None:
        if len(text) != 2 or len(self.alerts) >= MAX_ALERTS:
            return
        description = ALERTS.get(text[1], f"alert {text[1]}")
        if description not in _HARMLESS:
            self.alerts.append(Alert(direction.index, description, number, ts_ns))

    def _messages(self, direction: Direction, text: bytes) -> None:
        """Handshake messages, which may span records."""
        direction.messages += text
        while len(direction.messages) >= 4:
            length = int.from_bytes(direction.messages[1:4], "big")
            if length > MAX_MESSAGE_BYTES:
                direction.messages.clear()
                return
            if len(direction.messages) < 4 + length:
                return
            kind, body = direction.messages[0], bytes(direction.messages[4 : 4 + length])
            del direction.messages[: 4 + length]
            self._message(direction, kind, body)

    def _message(self, direction: Direction, kind: int, body: bytes, is_whole: bool = True) -> None:
        if kind == CLIENT_HELLO and self.client is None:
            self.client = direction.index
        elif kind == SERVER_HELLO and self.client is None:
            self.client = 1 - direction.index
        self.handshake.message(kind, body, direction.index == self.client, is_whole)
        if kind == SERVER_HELLO and self.handshake.server is not None:
            self._hello(direction)
        elif kind == ENCRYPTED_EXTENSIONS:
            self.find_keys()
        elif kind == END_OF_EARLY_DATA and len(direction.later) > 1:
            self.use(direction, direction.later.pop(0))
        elif kind == FINISHED and direction.protection is not None:
            if direction.later:
                self.use(direction, direction.later.pop(0))
            elif not direction.protection.inner:
                self.handshake.remember(self.secrets)
        elif kind == KEY_UPDATE and direction.secret:
            self.use(direction, next_secret(self.digest(), direction.secret))

    def _hello(self, direction: Direction) -> None:
        """The server has chosen: in TLS 1.3 all that follows is encrypted."""
        if self.handshake.version == TLS_1_3 and not direction.encrypted:
            for peer in self.directions:
                peer.encrypted = True
            self._begin()

    def _change_cipher(self, direction: Direction) -> None:
        """Before TLS 1.3: what this direction sends next is encrypted with the new keys."""
        direction.encrypted = True
        direction.protection = None
        direction.proven = False
        self._begin()

    def _begin(self) -> None:
        """A direction's records are encrypted from here on."""
        if self.state == SEALED:
            self._silence()
            return
        if self.state == CLEAR:
            self.state = ENCRYPTED
        self.find_keys()

    # keys

    def find_keys(self) -> None:
        """Look for keys where some are needed; what waits is opened when they are found."""
        directions = [
            direction
            for direction in self.directions
            if direction.encrypted and direction.protection is None
        ]
        if not directions or self.state == SEALED or self.handshake.suite is None:
            return
        if self.handshake.client is None or not self.secrets or self.secrets.needs:
            self.seal(self._reason())
        elif self.handshake.version <= SSL_3_0:
            self.seal(f"SSL 3.0 is not opened, with whatever keys ({self.handshake.suite.name})")
        elif not self.handshake.suite.kind:
            self.seal(f"the cipher suite {self.handshake.suite.name} is not one that is opened")
        else:
            self._revision = self.secrets.revision
            assign_keys = self._keys_13 if self.handshake.version == TLS_1_3 else self._keys_12
            if assign_keys(directions):
                self._flush()

    def look_again(self) -> None:
        """New secrets may have come."""
        if self._revision != self.secrets.revision:
            self.find_keys()

    @property
    def needs_keys(self) -> bool:
        """True if records wait for keys."""
        return bool(self._waiting)

    @property
    def held(self) -> int:
        """Number of bytes kept."""
        first, second = self.directions
        messages = len(first.messages) + len(second.messages)
        return self._waiting_bytes + first.held + second.held + messages

    def give_up(self, reason: str) -> None:
        """Keep nothing of it."""
        self.seal(reason)
        for direction in self.directions:
            direction.silence()
            direction.messages.clear()

    def assume(self, direction: Direction) -> None:
        """A direction lost its place in the handshake: what follows may be encrypted already."""
        if self.handshake.server is not None and self.handshake.find_master(self.secrets):
            direction.encrypted = True
            self._begin()

    def _keys_12(self, directions: list[Direction]) -> bool:
        """Give directions their keys before TLS 1.3; False if there are none."""
        from .protection import of_keys

        client, server, suite = self.handshake.client, self.handshake.server, self.handshake.suite
        master = self.handshake.find_master(self.secrets)
        if not master or client is None or server is None or suite is None:
            return False
        blocks = key_block(server.version, suite, master, server.random, client.random)
        for direction in directions:
            keys = blocks[0 if direction.index == self.client else 1]
            mac_last = server.encrypt_then_mac
            direction.protection = of_keys(suite, server.version, keys, mac_last=mac_last)
            direction.sequence = 0
        return True

    def _keys_13(self, directions: list[Direction]) -> bool:
        """Give directions their first keys of TLS 1.3; False if one has none."""
        chains = []
        for direction in directions:
            chain = self._chain(0 if direction.index == self.client else 1)
            if chain is None:
                return False
            chains.append(chain)
        for direction, chain in zip(directions, chains, strict=True):
            if chain:
                self.use(direction, chain.pop(0))
                direction.later = chain
        return True

    def _chain(self, side: int) -> list[bytes] | None:
        """The secrets of a side in their order; None without the last, none while they may begin
        with that of early data."""
        hello = self.handshake.client
        assert hello is not None
        labels = (HANDSHAKE_SECRETS[side], TRAFFIC[side])
        first, last = (self.secrets.find(label, hello.random) for label in labels)
        if last is None:
            return None
        chain = [last] if first is None else [first, last]
        if side or not hello.early_data or self.handshake.early is False:
            return chain
        if self.handshake.early is None and self.secrets.find(HANDSHAKE_SECRETS[1], hello.random):
            return []  # the server's EncryptedExtensions decide
        early = self.secrets.find(EARLY, hello.random)
        if early is None:
            self.unread_early = 0
            return chain
        return [early, *chain]

    def _take_early(self) -> None:
        """The server's answer to early data was not captured: offered data counts as accepted."""
        handshake = self.handshake
        if handshake.client is not None and handshake.client.early_data and handshake.early is None:
            handshake.early = True
            self.find_keys()

    # encrypted records

    def _wait(
        self, direction: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """Keep an encrypted record until there are keys."""
        if direction.first is None:
            answered_end = self.directions[1 - direction.index].end
            end = direction.record_offset + HEADER + len(payload)
            direction.first = FirstRecord(len(payload), end, number, ts_ns, answered_end)
        if self.state == SEALED:
            direction.silence()
            return
        if self.handshake.client is None and self.handshake.server is None:
            self.seal(self._reason())
            return
        self._waiting.append((direction, header, payload, number, ts_ns))
        self._waiting_bytes += len(payload)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self.seal(self._reason())

    def _flush(self) -> None:
        """Open what waited."""
        waited, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        for direction, header, payload, number, ts_ns in waited:
            if direction.mode != DEAF:
                self._take(direction, header, payload, number, ts_ns)

    def cut_short(self, direction: Direction, kind: int, text: bytes) -> None:
        """The beginning of a record that is not encrypted, or has no keys yet."""
        if direction.encrypted or kind == DATA:
            if self.state != SEALED:
                self.seal(INCOMPLETE)
            return
        direction.messages += text
        self._messages(direction, b"")
        if len(direction.messages) > 4:
            kind, body = direction.messages[0], bytes(direction.messages[4:])
            self._message(direction, kind, body, is_whole=False)
        direction.messages.clear()

    # records of a direction that has keys

    def digest(self) -> str:
        return self.handshake.suite.digest if self.handshake.suite is not None else "sha256"

    def use(self, direction: Direction, secret: bytes) -> None:
        """Continue with the keys of a traffic secret."""
        from .protection import of_traffic_secret

        assert self.handshake.suite is not None
        direction.secret = secret
        direction.protection = of_traffic_secret(self.handshake.suite, secret)
        direction.sequence = 0

    def open(
        self, direction: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """Open the next record of a direction."""
        if header[0] == CHANGE_CIPHER_SPEC and direction.protection.inner:
            return
        text = direction.protection.open(direction.sequence, header, payload)
        if text is None:
            self._unopened(direction, header, payload, number, ts_ns)
            return
        self._opened(direction, direction.sequence, header, text, number, ts_ns)

    def _opened(
        self,
        direction: Direction,
        sequence: int,
        header: bytes,
        text: bytes,
        number: int,
        ts_ns: int,
    ) -> None:
        """A record opened, the one that has this number under its keys."""
        direction.sequence = sequence + 1
        kind = header[0]
        if not direction.proven:
            direction.proven = True
            self.state = OPENED
            if self.unread_early > 0 and direction.secret and direction.index == self.client:
                self._miss(direction, self.unread_early - END_BYTES, number, ts_ns)
                self.unread_early = -1
        self._failures[direction.index] = 0
        self._tries += TRIES_PER_RECORD
        if direction.protection.inner:
            text = text.rstrip(b"\0")
            if not text:
                return
            last = len(text) - 1
            kind, text = text[last], text[:last]
        if kind == DATA:
            self._give(direction, text, number, ts_ns)
        else:
            self.clear(direction, kind, text, number, ts_ns)

    def _give(self, direction: Direction, text: bytes, number: int, ts_ns: int) -> None:
        if text:
            self.sink.put(direction.index, text, direction.offset, number, ts_ns)
            direction.offset += len(text)
            self.octets[direction.index] += len(text)

    def _miss(self, direction: Direction, missing: int, number: int, ts_ns: int) -> None:
        if missing > 0:
            self.sink.miss(direction.index, missing, direction.offset, number, ts_ns)
            direction.offset += missing

    def _unopened(
        self, direction: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """A record did not open: it has other keys, or wrong bytes, or no keys fit."""
        if direction.later:
            previous = (direction.secret, direction.protection, direction.sequence)
            self.use(direction, direction.later[0])
            text = direction.protection.open(0, header, payload)
            if text is not None:
                del direction.later[0]
                self._opened(direction, 0, header, text, number, ts_ns)
                return
            direction.secret, direction.protection, direction.sequence = previous
        self._failures[direction.index] += 1
        if self.unread_early >= 0 and direction.index == self.client and not direction.proven:
            self.unread_early += max(0, len(payload) - direction.protection.overhead)
        if direction.proven:
            direction.sequence += 1
            self.damaged = self.damaged or (direction.index, number, ts_ns)
            if not direction.later:
                self._miss(direction, len(payload) - direction.protection.overhead, number, ts_ns)
        max_failures = MAX_FAILURES if direction.proven or direction.protection.inner else 1
        if self._failures[direction.index] > max_failures:
            self._give_up(direction)

    def _give_up(self, direction: Direction) -> None:
        """The keys of a direction open nothing."""
        direction.silence()
        if self.state != OPENED:
            self.seal(WRONG_KEYS)

    def broken(
        self,
        direction: Direction,
        length: int,
        pieces: list[tuple[int, bytes]],
        number: int,
        ts_ns: int,
    ) -> None:
        """A record with missing bytes."""
        kind = pieces[0][1][0]
        protection = direction.protection
        if protection is None:
            self.cut_short(direction, kind, pieces[0][1][HEADER:])
            return
        sequence = direction.sequence
        direction.sequence += 1
        if direction.later or kind != DATA:
            return
        head = pieces[0][1][HEADER : HEADER + protection.prefix]
        size = length - HEADER - protection.overhead
        at = 0
        for start, octets in () if self._failures[direction.index] else pieces:
            begin = start - HEADER - protection.prefix
            skip = max(0, at - begin)
            part = octets[skip : max(0, size - begin)]
            if not part or begin + skip >= size:
                continue
            text = protection.peek(sequence, head, begin + skip, part)
            if text is None:
                break
            self._miss(direction, begin + skip - at, number, ts_ns)
            self._give(direction, text, number, ts_ns)
            at = begin + skip + len(text)
        self._miss(direction, size - at, number, ts_ns)

    def resume(
        self,
        direction: Direction,
        header: bytes,
        payload: bytes,
        lost: int,
        number: int,
        ts_ns: int,
    ) -> bool:
        """True if a record after `lost` bytes opens; then it is the next."""
        from .protection import of_traffic_secret

        if direction.protection is None:
            self.assume(direction)
        protection, suite = direction.protection, self.handshake.suite
        if protection is None or suite is None:
            return False
        record_overhead = HEADER + protection.overhead
        count = lost // record_overhead + _GRACE
        opened = self._try(protection, direction.sequence, count, header, payload)
        if opened is None and direction.secret:  # the keys may have been renewed in the hole
            secret = (
                direction.later[0]
                if direction.later
                else next_secret(self.digest(), direction.secret)
            )
            renewed = of_traffic_secret(suite, secret)
            opened = self._try(renewed, 0, count, header, payload)
            if opened is not None:
                del direction.later[:1]
                direction.secret, direction.protection, direction.sequence = secret, renewed, 0
        if opened is None:
            if self._tries <= 0:
                direction.silence()
            return False
        sequence, text = opened
        passed = sequence - direction.sequence
        if passed > (
            0 if direction.proven or direction.protection.inner else 1
        ):  # the first is Finished
            self._miss(direction, max(1, lost - passed * record_overhead), number, ts_ns)
        self._opened(direction, sequence, header, text, number, ts_ns)
        return True

    def _try(
        self, protection: Any, first: int, count: int, header: bytes, payload: bytes
    ) -> tuple[int, bytes] | None:
        """The number under which a record opens, and its content."""
        for sequence in range(first, first + min(count, self._tries)):
            self._tries -= 1
            text = protection.open(sequence, header, payload)
            if text is not None:
                return sequence, text
        return None

    # ends

    def seal(self, reason: str) -> None:
        """It will not open."""
        self.state = SEALED
        self.why = reason
        self._waiting = []
        self._waiting_bytes = 0
        self._silence()

    def _silence(self) -> None:
        """Ignore encrypted records; an alert in clear may come from the other side.

        A client's first encrypted record shows how it ends the handshake.
        """
        for direction in self.directions:
            if (
                direction.index == self.client
                and direction.first is None
                and self.handshake.server is not None
            ):
                continue
            if direction.encrypted or self.handshake.server is None:
                direction.silence()

    def _reason(self) -> str:
        """The reason why there are no keys, as text."""
        if self.secrets.needs and self.secrets:
            return self.secrets.needs
        if self.handshake.client is None:
            return "its handshake is not in the capture"
        if not self.secrets:
            return NO_KEYS
        if not self.secrets.has_lines:
            suite = self.handshake.suite
            if suite is not None and not suite.is_rsa:
                return f"a private key does not open {suite.name}: a key log is needed"
            return "the private key is not the one of the server's certificate"
        if self.secrets.odd:
            return "the key log has no line that is a key"
        return self._lacking()

    def _lacking(self) -> str:
        """The keys that a key log does not have, in words."""
        found = [self.secrets.find(label, self.handshake.client.random) for label in TRAFFIC]
        if self.handshake.version != TLS_1_3 or found.count(None) != 1:
            return "the key log does not have its keys"
        return f"the key log does not have {TRAFFIC[found.index(None)].decode()} of it"

    def finish(self) -> None:
        """The conversation is over."""
        self._take_early()
        if self.state == ENCRYPTED:
            self.seal(self._reason())
        elif self.state == CLEAR and (
            self._waiting or any(direction.mode == SEARCHING for direction in self.directions)
        ):
            self.seal(INCOMPLETE)

    @property
    def opened(self) -> bool:
        """True if records of it opened."""
        return self.state == OPENED

    # description

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns of the connections table."""
        handshake = self.handshake
        return {
            "tls_version": self._version_agreed() or None,
            "tls_cipher": handshake.suite.name if handshake.suite is not None else None,
            "tls_server_name": (
                handshake.client.server_name if handshake.client is not None else ""
            )
            or None,
        }

    def facts(self, conversation: Any) -> dict[str, Any]:
        """Facts of the conversation, as a row; unknown ones are None."""
        handshake = self.handshake
        client = self.client_of(conversation)
        packets, octets = conversation.packets, conversation.octets
        ends = (conversation.a, conversation.b)
        hello, certificate, columns = handshake.client, handshake.certificate, self.columns
        offered = hello.protocols if hello is not None else ()
        return {
            "connection_id": conversation.connection_id,
            "client": ends[client],
            "server": ends[1 - client],
            "first_packet_number": conversation.first_packet_number,
            "last_packet_number": conversation.last_packet_number,
            "start_ns": conversation.start_ns if conversation.start_ns > 0 else None,
            "end_ns": conversation.end_ns if conversation.end_ns > 0 else None,
            "version": columns["tls_version"],
            "version_offered": self._version_offered() or None,
            "cipher": columns["tls_cipher"],
            "ciphers_offered": _names_of(hello.suites if hello is not None else ()),
            "server_name": columns["tls_server_name"],
            "protocols_offered": list(offered),
            "protocol": handshake.protocol or None,
            "resumed": handshake.resumed if handshake.server is not None else None,
            "certificate": None if certificate is None else _certificate(certificate),
            "client_certificate": (
                None
                if handshake.client_certificate is None
                else _certificate(handshake.client_certificate)
            ),
            "alerts": [
                {
                    "sender": "client" if alert.direction == client else "server",
                    "description": alert.description,
                    "packet_number": alert.number,
                }
                for alert in self.alerts
            ],
            "client_packets": packets[client],
            "server_packets": packets[1 - client],
            "client_bytes": octets[client],
            "server_bytes": octets[1 - client],
            "ended": conversation.ended,
            "opened": self.opened,
            "why": self.why or None,
        }

    def troubles(
        self, conversation: Any, ports: Collection[int], is_amqp: bool
    ) -> Iterator[Trouble]:
        """What is wrong with a conversation that is AMQP, or may be."""
        port = conversation.ports[1 - self.client_of(conversation)]
        reason = self.suspicion(port, ports)
        decided = is_amqp or reason
        if not decided:
            reason = self._undecided(port)
            if not reason:
                return
        yield from self._alert_troubles(conversation, "" if decided else reason)
        server = self.handshake.server
        if self.damaged is not None:
            direction, number, ts_ns = self.damaged
            side = "client" if direction == self.client_of(conversation) else "server"
            yield Trouble(
                "tls-record-damaged", f"a record of the {side}; {self._parties()}", number, ts_ns
            )
        if server is not None and decided:
            yield from self._weaknesses(conversation)
        if self.state == OPENED or self.alerts:
            return
        refusal = self._refusal(conversation)
        if refusal is not None:
            code, detail, number, ts_ns = refusal
            parties = self._parties() if decided else f"{self._parties()}; {reason}"
            yield Trouble(code, f"{detail}; {parties}", number, ts_ns)
            return
        if server is None and not self.why:
            silent = not conversation.octets[1 - self.client_of(conversation)]
            if decided and silent and conversation.ended and not any(conversation.gaps):
                yield Trouble(
                    "tls-handshake-unanswered", f"{self._parties()}; {_ended(conversation)}"
                )
            return
        if decided or self.why:
            yield self._unread_trouble("" if is_amqp else reason)

    def _refusal(self, conversation: Any) -> Trouble | None:
        """The finding of a handshake that a side ended by an encrypted alert of TLS 1.3, or the
        client without an alert, or after which the client sent nothing; None for others.
        """
        client, server = self.client_of(conversation), 1 - self.client_of(conversation)
        first, handshake = self.directions[client].first, self.handshake
        ended, octets = conversation.ended is not None, conversation.octets
        missing = any(conversation.gaps) or any(conversation.cut_bytes)
        if handshake.server is None or not ended or missing or self.why == WRONG_KEYS:
            return None
        all_sent = first is not None and octets[client] == first.end
        if first is not None and handshake.version == TLS_1_3:
            if first.size < FINISHED_BYTES and all_sent:
                evidence = f"what the client sent encrypted, {first.size} bytes, has"
                return Trouble("tls-alert-encrypted", f"{evidence} {_OF_ALERT}", *first[2:4])
            answer = octets[server] - first.heard - HEADER
            if 0 < answer < FINISHED_BYTES:
                evidence = (
                    f"all that the server sent after the client's handshake, {answer} bytes, has"
                )
                return Trouble("tls-alert-encrypted", f"{evidence} {_OF_ALERT}", *first[2:4])
        closed = first is not None and octets[client] - first.end in CLOSING_BYTES
        if not closed and (conversation.ended_by != client or not (all_sent or first is None)):
            return None
        code, layer, after = (
            "connection-silent",
            "TLS" if closed else "TCP",
            "a finished TLS handshake",
        )
        if first is None:
            code, after = "tls-ended-early", "the server's messages of the handshake"
        detail = f"the client ended {layer} after {after} ({conversation.ended.upper()})"
        return Trouble(code, detail, conversation.last_packet_number, conversation.end_ns)

    def suspicion(self, port: int, ports: Collection[int]) -> str:
        """Why a conversation may be AMQP, in words; empty when nothing speaks for it."""
        hello = self.handshake.client
        offered = hello.protocols if hello is not None else ()
        names = [name for name in (self.handshake.protocol, *offered) if name.startswith("amqp")]
        if names:
            return f"AMQP by its ALPN, {names[0]}"
        if self.octets[0] or self.octets[1]:
            return ""
        if port == AMQPS_PORT:
            return f"perhaps AMQP: port {AMQPS_PORT} is the one of AMQP over TLS"
        return f"perhaps AMQP: port {port}" if port in ports else ""

    def _undecided(self, port: int) -> str:
        """Why a conversation that nothing speaks for may be AMQP still; empty when it is not."""
        hello = self.handshake.client
        offered = hello.protocols if hello is not None else ()
        if self.octets[0] or self.octets[1] or self.handshake.protocol or offered:
            return ""
        if port in OTHER_PROTOCOLS:
            return ""
        return f"perhaps AMQP: neither port {port} nor the ALPN names another protocol"

    def _version_agreed(self) -> str:
        """The version agreed on; empty while the server has not chosen."""
        server = self.handshake.server
        return "" if server is None else _version(server.version)

    def _version_offered(self) -> str:
        """The highest version that the client offers; empty without its first message."""
        client = self.handshake.client
        return "" if client is None else _version(client.version)

    def _unread_trouble(self, suspected: str) -> Trouble:
        code = "tls-keys-wrong" if self.why == WRONG_KEYS else "tls-unreadable"
        detail = f"{self.why}; {self._parties()}"
        return Trouble(code, f"{suspected}; {detail}" if suspected else detail)

    def _alert_troubles(self, conversation: Any, reason: str) -> Iterator[Trouble]:
        client, handshake = self.client_of(conversation), self.handshake
        for alert in self.alerts:
            side = "client" if alert.direction == client else "server"
            detail = f"the {side} sent {alert.description}"
            if handshake.requests_certificate and alert.direction != client:
                answer = "gave none"
                if handshake.client_certificate is not None:
                    names = handshake.client_certificate.names[:NAMES_SHOWN]
                    answer = f"gave that of {', '.join(names)}"
                detail += f"; it had asked for the client's certificate, and the client {answer}"
            detail += f"; {self._parties()}" + (f"; {reason}" if reason else "")
            yield Trouble("tls-alert", detail, alert.number, alert.ts_ns)

    def _weaknesses(self, conversation: Any) -> Iterator[Trouble]:
        server, certificate = self.handshake.server, self.handshake.certificate
        assert server is not None
        if server.version < TLS_1_2:
            yield Trouble("tls-outdated", self._parties())
        if certificate is not None and certificate.expires and conversation.start_ns > 0:
            from datetime import datetime

            day = datetime.fromtimestamp(conversation.start_ns // 1_000_000_000, UTC).date()
            if certificate.expires < day.isoformat():
                names = ", ".join(certificate.names[:NAMES_SHOWN])
                yield Trouble(
                    "tls-certificate-expired",
                    f"the certificate of {names} expired on {certificate.expires}",
                )

    def _parties(self) -> str:
        """Version, cipher and names in one line."""
        handshake = self.handshake
        offered = self._version_offered()
        agreed = self._version_agreed() or (f"{offered} offered" if offered else "")
        parts = [part for part in (agreed, handshake.suite.name if handshake.suite else "") if part]
        if handshake.client is not None and handshake.client.server_name:
            parts.append(f"server name {handshake.client.server_name}")
        if handshake.certificate is not None and handshake.certificate.names:
            parts.append(f"certificate {', '.join(handshake.certificate.names[:NAMES_SHOWN])}")
        if handshake.protocol:
            parts.append(f"ALPN {handshake.protocol}")
        return ", ".join(parts) or "no handshake was captured"


@lru_cache(256)
def _names_of(suites: tuple[int, ...]) -> list[str]:
    """Names of the cipher suites that a client offers, in its order of preference."""
    return [suite_of(number).name for number in suites[:MAX_OFFERED]]


def _version(number: int) -> str:
    return VERSIONS.get(number) or f"version 0x{number:04x}"


def _certificate(certificate: Any) -> dict[str, Any]:
    return {
        "names": list(certificate.names),
        "issuer": certificate.issuer or None,
        "expires": certificate.expires or None,
    }


def _ended(conversation: Any) -> str:
    ends = {"fin": "the connection was closed", "rst": "the connection was reset"}
    return ends.get(conversation.ended, "the connection ended")
