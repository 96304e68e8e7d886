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

Whether a conversation that does not open is AMQP cannot be seen; `suspicion` gives the reason why
it may be: the protocol that was agreed on (ALPN), the usual port, or a port that was asked for.
Against it speaks another protocol in the ALPN, or the port of another protocol; nothing else does.
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
"""Records looked for beyond those that fit into a hole: some carry nothing."""

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
"""What is known of a conversation: only its handshake; that records are encrypted; that they open;
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
"""Cipher suites of a ClientHello that are told: openssl's whole list has 90."""


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
        claims: Claims of records; None when they are not asked for.
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

    def astray(self, way: Direction) -> None:
        """A direction lost its place: go on where records can be told by opening them."""
        if way.index != self.client:
            self._take_early()
        if self.state == SEALED or not self.secrets:
            way.silence()
            if self.state != SEALED:
                self.seal(INCOMPLETE)

    def record(
        self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """A whole record, in its place."""
        if self.claims is not None:
            shown = payload if self._is_clear(way, header) else None
            self.claims.append(RecordClaim(self.serial, way.index, way.place, header, shown))
        self._take(way, header, payload, number, ts_ns)

    def _is_clear(self, way: Direction, header: bytes) -> bool:
        return header[0] == CHANGE_CIPHER_SPEC or not (way.encrypted or header[0] == DATA)

    def _take(self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int) -> None:
        if header[0] == ALERT and len(payload) == 2:  # one that is encrypted is longer
            self._alert(way, payload, number, ts_ns)
        elif way.protection is not None:
            self.open(way, header, payload, number, ts_ns)
        elif self._is_clear(way, header):
            self.clear(way, header[0], payload, number, ts_ns)
        else:
            self._wait(way, header, payload, number, ts_ns)

    def clear(self, way: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
        """What a record carries that is not application data."""
        if kind == HANDSHAKE:
            self._messages(way, text)
        elif kind == ALERT:
            self._alert(way, text, number, ts_ns)
        elif kind == CHANGE_CIPHER_SPEC and self.handshake.version != TLS_1_3:
            self._change_cipher(way)

    def _alert(self, way: Direction, text: bytes, number: int, ts_ns: int) -> None:
        if len(text) != 2 or len(self.alerts) >= MAX_ALERTS:
            return
        description = ALERTS.get(text[1], f"alert {text[1]}")
        if description not in _HARMLESS:
            self.alerts.append(Alert(way.index, description, number, ts_ns))

    def _messages(self, way: Direction, text: bytes) -> None:
        """Handshake messages, which may span records."""
        way.messages += text
        while len(way.messages) >= 4:
            length = int.from_bytes(way.messages[1:4], "big")
            if length > MAX_MESSAGE_BYTES:
                way.messages.clear()
                return
            if len(way.messages) < 4 + length:
                return
            kind, body = way.messages[0], bytes(way.messages[4 : 4 + length])
            del way.messages[: 4 + length]
            self._message(way, kind, body)

    def _message(self, way: Direction, kind: int, body: bytes, whole: bool = True) -> None:
        if kind == CLIENT_HELLO and self.client is None:
            self.client = way.index
        elif kind == SERVER_HELLO and self.client is None:
            self.client = 1 - way.index
        self.handshake.message(kind, body, way.index == self.client, whole)
        if kind == SERVER_HELLO and self.handshake.server is not None:
            self._hello(way)
        elif kind == ENCRYPTED_EXTENSIONS:
            self.find_keys()
        elif kind == END_OF_EARLY_DATA and len(way.later) > 1:
            self.use(way, way.later.pop(0))
        elif kind == FINISHED and way.protection is not None:
            if way.later:
                self.use(way, way.later.pop(0))
            elif not way.protection.inner:
                self.handshake.remember(self.secrets)
        elif kind == KEY_UPDATE and way.secret:
            self.use(way, next_secret(self.digest(), way.secret))

    def _hello(self, way: Direction) -> None:
        """The server has chosen: in TLS 1.3 all that follows is encrypted."""
        if self.handshake.version == TLS_1_3 and not way.encrypted:
            for one in self.directions:
                one.encrypted = True
            self._begin()

    def _change_cipher(self, way: Direction) -> None:
        """Before TLS 1.3: what this direction sends next is encrypted with the new keys."""
        way.encrypted = True
        way.protection = None
        way.proven = False
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
        ways = [way for way in self.directions if way.encrypted and way.protection is None]
        if not ways or self.state == SEALED or self.handshake.suite is None:
            return
        if self.handshake.client is None or not self.secrets or self.secrets.needs:
            self.seal(self._reason())
        elif self.handshake.version <= SSL_3_0:
            self.seal(f"SSL 3.0 is not opened, with whatever keys ({self.handshake.suite.name})")
        elif not self.handshake.suite.kind:
            self.seal(f"the cipher suite {self.handshake.suite.name} is not one that is opened")
        else:
            self._revision = self.secrets.revision
            made = self._keys_13 if self.handshake.version == TLS_1_3 else self._keys_12
            if made(ways):
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
        """Bytes that are kept."""
        one, other = self.directions
        messages = len(one.messages) + len(other.messages)
        return self._waiting_bytes + one.held + other.held + messages

    def give_up(self, why: str) -> None:
        """Keep nothing of it."""
        self.seal(why)
        for way in self.directions:
            way.silence()
            way.messages.clear()

    def assume(self, way: Direction) -> None:
        """A direction lost its place in the handshake: what follows may be encrypted already."""
        if self.handshake.server is not None and self.handshake.find_master(self.secrets):
            way.encrypted = True
            self._begin()

    def _keys_12(self, ways: list[Direction]) -> bool:
        """Give directions their keys before TLS 1.3; whether there are any."""
        from .protection import of_keys

        client, server, suite = self.handshake.client, self.handshake.server, self.handshake.suite
        master = self.handshake.find_master(self.secrets)
        if not master or client is None or server is None or suite is None:
            return False
        blocks = key_block(server.version, suite, master, server.random, client.random)
        for way in ways:
            keys = blocks[0 if way.index == self.client else 1]
            mac_last = server.encrypt_then_mac
            way.protection = of_keys(suite, server.version, keys, mac_last=mac_last)
            way.sequence = 0
        return True

    def _keys_13(self, ways: list[Direction]) -> bool:
        """Give directions their first keys of TLS 1.3; whether there are any for all of them."""
        chains = []
        for way in ways:
            chain = self._chain(0 if way.index == self.client else 1)
            if chain is None:
                return False
            chains.append(chain)
        for way, chain in zip(ways, chains, strict=True):
            if chain:
                self.use(way, chain.pop(0))
                way.later = chain
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
            return []  # the server's EncryptedExtensions say it
        early = self.secrets.find(EARLY, hello.random)
        if early is None:
            self.unread_early = 0
            return chain
        return [early, *chain]

    def _take_early(self) -> None:
        """What the server says of early data is not in the capture: it is taken where offered."""
        told = self.handshake
        if told.client is not None and told.client.early_data and told.early is None:
            told.early = True
            self.find_keys()

    # encrypted records

    def _wait(self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int) -> None:
        """Keep an encrypted record until there are keys."""
        if way.first is None:
            heard = self.directions[1 - way.index].end
            end = way.place + HEADER + len(payload)
            way.first = FirstRecord(len(payload), end, number, ts_ns, heard)
        if self.state == SEALED:
            way.silence()
            return
        if self.handshake.client is None and self.handshake.server is None:
            self.seal(self._reason())
            return
        self._waiting.append((way, header, payload, number, ts_ns))
        self._waiting_bytes += len(payload)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self.seal(self._reason())

    def _flush(self) -> None:
        """Open what waited."""
        waited, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        for way, header, payload, number, ts_ns in waited:
            if way.mode != DEAF:
                self._take(way, header, payload, number, ts_ns)

    def cut_short(self, way: Direction, kind: int, text: bytes) -> None:
        """The beginning of a record that is not encrypted, or has no keys yet."""
        if way.encrypted or kind == DATA:
            if self.state != SEALED:
                self.seal(INCOMPLETE)
            return
        way.messages += text
        self._messages(way, b"")
        if len(way.messages) > 4:
            kind, body = way.messages[0], bytes(way.messages[4:])
            self._message(way, kind, body, whole=False)
        way.messages.clear()

    # records of a direction that has keys

    def digest(self) -> str:
        return self.handshake.suite.digest if self.handshake.suite is not None else "sha256"

    def use(self, way: Direction, secret: bytes) -> None:
        """Continue with the keys of a traffic secret."""
        from .protection import of_traffic_secret

        assert self.handshake.suite is not None
        way.secret = secret
        way.protection = of_traffic_secret(self.handshake.suite, secret)
        way.sequence = 0

    def open(self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int) -> None:
        """Open the next record of a direction."""
        if header[0] == CHANGE_CIPHER_SPEC and way.protection.inner:
            return
        text = way.protection.open(way.sequence, header, payload)
        if text is None:
            self._unopened(way, header, payload, number, ts_ns)
            return
        self._opened(way, way.sequence, header, text, number, ts_ns)

    def _opened(
        self,
        way: Direction,
        sequence: int,
        header: bytes,
        text: bytes,
        number: int,
        ts_ns: int,
    ) -> None:
        """A record opened, the one that has this number under its keys."""
        way.sequence = sequence + 1
        kind = header[0]
        if not way.proven:
            way.proven = True
            self.state = OPENED
            if self.unread_early > 0 and way.secret and way.index == self.client:
                self._miss(way, self.unread_early - END_BYTES, number, ts_ns)
                self.unread_early = -1
        self._failures[way.index] = 0
        self._tries += TRIES_PER_RECORD
        if way.protection.inner:
            text = text.rstrip(b"\0")
            if not text:
                return
            last = len(text) - 1
            kind, text = text[last], text[:last]
        if kind == DATA:
            self._give(way, text, number, ts_ns)
        else:
            self.clear(way, kind, text, number, ts_ns)

    def _give(self, way: Direction, text: bytes, number: int, ts_ns: int) -> None:
        if text:
            self.sink.put(way.index, text, way.offset, number, ts_ns)
            way.offset += len(text)
            self.octets[way.index] += len(text)

    def _miss(self, way: Direction, missing: int, number: int, ts_ns: int) -> None:
        if missing > 0:
            self.sink.miss(way.index, missing, way.offset, number, ts_ns)
            way.offset += missing

    def _unopened(
        self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """A record did not open: its keys are others, its bytes are wrong, or none fits."""
        if way.later:
            kept = (way.secret, way.protection, way.sequence)
            self.use(way, way.later[0])
            text = way.protection.open(0, header, payload)
            if text is not None:
                del way.later[0]
                self._opened(way, 0, header, text, number, ts_ns)
                return
            way.secret, way.protection, way.sequence = kept
        self._failures[way.index] += 1
        if self.unread_early >= 0 and way.index == self.client and not way.proven:
            self.unread_early += max(0, len(payload) - way.protection.overhead)
        if way.proven:
            way.sequence += 1
            self.damaged = self.damaged or (way.index, number, ts_ns)
            if not way.later:
                self._miss(way, len(payload) - way.protection.overhead, number, ts_ns)
        most = MAX_FAILURES if way.proven or way.protection.inner else 1
        if self._failures[way.index] > most:
            self._give_up(way)

    def _give_up(self, way: Direction) -> None:
        """The keys of a direction open nothing."""
        way.silence()
        if self.state != OPENED:
            self.seal(WRONG_KEYS)

    def broken(
        self, way: Direction, length: int, pieces: list[tuple[int, bytes]], number: int, ts_ns: int
    ) -> None:
        """A record of which bytes are missing."""
        kind = pieces[0][1][0]
        protection = way.protection
        if protection is None:
            self.cut_short(way, kind, pieces[0][1][HEADER:])
            return
        sequence = way.sequence
        way.sequence += 1
        if way.later or kind != DATA:
            return
        head = pieces[0][1][HEADER : HEADER + protection.prefix]
        size = length - HEADER - protection.overhead
        at = 0
        for start, octets in () if self._failures[way.index] else pieces:
            begin = start - HEADER - protection.prefix
            skip = max(0, at - begin)
            part = octets[skip : max(0, size - begin)]
            if not part or begin + skip >= size:
                continue
            text = protection.peek(sequence, head, begin + skip, part)
            if text is None:
                break
            self._miss(way, begin + skip - at, number, ts_ns)
            self._give(way, text, number, ts_ns)
            at = begin + skip + len(text)
        self._miss(way, size - at, number, ts_ns)

    def resume(
        self, way: Direction, header: bytes, payload: bytes, lost: int, number: int, ts_ns: int
    ) -> bool:
        """True if a record after `lost` bytes opens; then it is the next."""
        from .protection import of_traffic_secret

        if way.protection is None:
            self.assume(way)
        protection, suite = way.protection, self.handshake.suite
        if protection is None or suite is None:
            return False
        each = HEADER + protection.overhead
        count = lost // each + _GRACE
        found = self._try(protection, way.sequence, count, header, payload)
        if found is None and way.secret:  # the keys may have been renewed in the hole
            secret = way.later[0] if way.later else next_secret(self.digest(), way.secret)
            renewed = of_traffic_secret(suite, secret)
            found = self._try(renewed, 0, count, header, payload)
            if found is not None:
                del way.later[:1]
                way.secret, way.protection, way.sequence = secret, renewed, 0
        if found is None:
            if self._tries <= 0:
                way.silence()
            return False
        sequence, text = found
        passed = sequence - way.sequence
        if passed > (0 if way.proven or way.protection.inner else 1):  # the first is Finished
            self._miss(way, max(1, lost - passed * each), number, ts_ns)
        self._opened(way, sequence, header, text, number, ts_ns)
        return True

    def _try(
        self, protection: Any, first: int, count: int, header: bytes, payload: bytes
    ) -> tuple[int, bytes] | None:
        """The number under which a record opens, and what it carries."""
        for sequence in range(first, first + min(count, self._tries)):
            self._tries -= 1
            text = protection.open(sequence, header, payload)
            if text is not None:
                return sequence, text
        return None

    # ends

    def seal(self, why: str) -> None:
        """It will not open."""
        self.state = SEALED
        self.why = why
        self._waiting = []
        self._waiting_bytes = 0
        self._silence()

    def _silence(self) -> None:
        """Listen no more to what is encrypted; an alert in clear may come from the other side.

        A client's first encrypted record tells how it ends the handshake.
        """
        for way in self.directions:
            if way.index == self.client and way.first is None and self.handshake.server is not None:
                continue
            if way.encrypted or self.handshake.server is None:
                way.silence()

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
        there = [self.secrets.find(label, self.handshake.client.random) for label in TRAFFIC]
        if self.handshake.version != TLS_1_3 or there.count(None) != 1:
            return "the key log does not have its keys"
        return f"the key log does not have {TRAFFIC[there.index(None)].decode()} of it"

    def finish(self) -> None:
        """The conversation is over."""
        self._take_early()
        if self.state == ENCRYPTED:
            self.seal(self._reason())
        elif self.state == CLEAR and (
            self._waiting or any(way.mode == SEARCHING for way in self.directions)
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
        told = self.handshake
        return {
            "tls_version": self._version_agreed() or None,
            "tls_cipher": told.suite.name if told.suite is not None else None,
            "tls_server_name": (told.client.server_name if told.client is not None else "") or None,
        }

    def facts(self, conversation: Any) -> dict[str, Any]:
        """Facts of the conversation, as a row; unknown ones are None."""
        told = self.handshake
        client = self.client_of(conversation)
        packets, octets = conversation.packets, conversation.octets
        ends = (conversation.a, conversation.b)
        hello, certificate, named = told.client, told.certificate, self.columns
        offered = hello.protocols if hello is not None else ()
        return {
            "connection_id": conversation.connection_id,
            "client": ends[client],
            "server": ends[1 - client],
            "first_packet_number": conversation.first_packet_number,
            "last_packet_number": conversation.last_packet_number,
            "start_ns": conversation.start_ns if conversation.start_ns > 0 else None,
            "end_ns": conversation.end_ns if conversation.end_ns > 0 else None,
            "version": named["tls_version"],
            "version_offered": self._version_offered() or None,
            "cipher": named["tls_cipher"],
            "ciphers_offered": _names_of(hello.suites if hello is not None else ()),
            "server_name": named["tls_server_name"],
            "protocols_offered": list(offered),
            "protocol": told.protocol or None,
            "resumed": told.resumed if told.server is not None else None,
            "certificate": None if certificate is None else _certificate(certificate),
            "client_certificate": (
                None if told.client_certificate is None else _certificate(told.client_certificate)
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
        why = self.suspicion(port, ports)
        decided = is_amqp or why
        if not decided:
            why = self._undecided(port)
            if not why:
                return
        yield from self._alert_troubles(conversation, "" if decided else why)
        server = self.handshake.server
        if self.damaged is not None:
            direction, number, ts_ns = self.damaged
            side = "client" if direction == self.client_of(conversation) else "server"
            yield Trouble(
                "tls-record-damaged", f"a record of the {side}; {self._shown()}", number, ts_ns
            )
        if server is not None and decided:
            yield from self._weaknesses(conversation)
        if self.state == OPENED or self.alerts:
            return
        refusal = self._refusal(conversation)
        if refusal is not None:
            code, detail, number, ts_ns = refusal
            shown = self._shown() if decided else f"{self._shown()}; {why}"
            yield Trouble(code, f"{detail}; {shown}", number, ts_ns)
            return
        if server is None and not self.why:
            silent = not conversation.octets[1 - self.client_of(conversation)]
            if decided and silent and conversation.ended and not any(conversation.gaps):
                yield Trouble(
                    "tls-handshake-unanswered", f"{self._shown()}; {_ended(conversation)}"
                )
            return
        if decided or self.why:
            yield self._unread_trouble("" if is_amqp else why)

    def _refusal(self, conversation: Any) -> Trouble | None:
        """The finding of a handshake that a side ended by an encrypted alert of TLS 1.3, or the
        client without an alert, or behind which the client had nothing to say; None for others.
        """
        client, server = self.client_of(conversation), 1 - self.client_of(conversation)
        first, told = self.directions[client].first, self.handshake
        ended, octets = conversation.ended is not None, conversation.octets
        missing = any(conversation.gaps) or any(conversation.cut_bytes)
        if told.server is None or not ended or missing or self.why == WRONG_KEYS:
            return None
        all_sent = first is not None and octets[client] == first.end
        if first is not None and told.version == TLS_1_3:
            if first.size < FINISHED_BYTES and all_sent:
                sent = f"what the client sent encrypted, {first.size} bytes, has"
                return Trouble("tls-alert-encrypted", f"{sent} {_OF_ALERT}", *first[2:4])
            answer = octets[server] - first.heard - HEADER
            if 0 < answer < FINISHED_BYTES:
                sent = f"all that the server sent after the client's handshake, {answer} bytes, has"
                return Trouble("tls-alert-encrypted", f"{sent} {_OF_ALERT}", *first[2:4])
        closed = first is not None and octets[client] - first.end in CLOSING_BYTES
        if not closed and (conversation.ended_by != client or not (all_sent or first is None)):
            return None
        code, what, after = (
            "connection-silent",
            "TLS" if closed else "TCP",
            "a finished TLS handshake",
        )
        if first is None:
            code, after = "tls-ended-early", "the server's messages of the handshake"
        detail = f"the client ended {what} after {after} ({conversation.ended.upper()})"
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
        detail = f"{self.why}; {self._shown()}"
        return Trouble(code, f"{suspected}; {detail}" if suspected else detail)

    def _alert_troubles(self, conversation: Any, why: str) -> Iterator[Trouble]:
        client, told = self.client_of(conversation), self.handshake
        for alert in self.alerts:
            side = "client" if alert.direction == client else "server"
            detail = f"the {side} sent {alert.description}"
            if told.asked and alert.direction != client:
                given = "gave none"
                if told.client_certificate is not None:
                    names = told.client_certificate.names[:NAMES_SHOWN]
                    given = f"gave that of {', '.join(names)}"
                detail += f"; it had asked for the client's certificate, and the client {given}"
            detail += f"; {self._shown()}" + (f"; {why}" if why else "")
            yield Trouble("tls-alert", detail, alert.number, alert.ts_ns)

    def _weaknesses(self, conversation: Any) -> Iterator[Trouble]:
        server, certificate = self.handshake.server, self.handshake.certificate
        assert server is not None
        if server.version < TLS_1_2:
            yield Trouble("tls-outdated", self._shown())
        if certificate is not None and certificate.expires and conversation.start_ns > 0:
            from datetime import datetime

            day = datetime.fromtimestamp(conversation.start_ns // 1_000_000_000, UTC).date()
            if certificate.expires < day.isoformat():
                names = ", ".join(certificate.names[:NAMES_SHOWN])
                yield Trouble(
                    "tls-certificate-expired",
                    f"the certificate of {names} expired on {certificate.expires}",
                )

    def _shown(self) -> str:
        """Version, cipher and names in one line."""
        told = self.handshake
        offered = self._version_offered()
        agreed = self._version_agreed() or (f"{offered} offered" if offered else "")
        parts = [part for part in (agreed, told.suite.name if told.suite else "") if part]
        if told.client is not None and told.client.server_name:
            parts.append(f"server name {told.client.server_name}")
        if told.certificate is not None and told.certificate.names:
            parts.append(f"certificate {', '.join(told.certificate.names[:NAMES_SHOWN])}")
        if told.protocol:
            parts.append(f"ALPN {told.protocol}")
        return ", ".join(parts) or "no handshake was captured"


@lru_cache(256)
def _names_of(suites: tuple[int, ...]) -> list[str]:
    """Names of the cipher suites that a client offers, in its order of preference."""
    return [suite_of(one).name for one in suites[:MAX_OFFERED]]


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
