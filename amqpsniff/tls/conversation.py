# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""One TLS conversation: handshake, keys and records of both directions.

Records in clear are the handshake and its alerts. Once a direction's records are encrypted they
wait, up to `MAX_WAITING_OCTETS`, until keys are found (the other direction's handshake may come
later, and a key log may grow); then they are opened in the order in which they came, and what they
carry is given to `sink`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from .claims import RecordClaim
from .derive import key_block, next_secret
from .handshake import (
    CLIENT_HELLO,
    ENCRYPTED_EXTENSIONS,
    END_OF_EARLY_DATA,
    FINISHED,
    KEY_UPDATE,
    SERVER_HELLO,
)
from .hello import SSL_3_0, TLS_1_3
from .opening import CLEAR, ENCRYPTED, OPENED, SEALED, Opener, Sink
from .records import ALERT, CHANGE_CIPHER_SPEC, DATA, DEAF, HANDSHAKE, SEARCHING, Direction
from .secrets import EARLY, MASTER, TRAFFIC, Secrets
from .secrets import HANDSHAKE as HANDSHAKE_SECRETS
from .suites import ALERTS

MAX_WAITING_OCTETS = 1 << 18
"""Octets of records of one conversation that wait for keys: some seconds of traffic."""

MAX_MESSAGE_OCTETS = 1 << 18
"""Octets of one handshake message that is waited for: chains of certificates have less."""

MAX_ALERTS = 16
"""Alerts of one conversation that are remembered."""

INCOMPLETE = "octets of the handshake are missing from the capture"

_HARMLESS = frozenset(("close_notify", "user_canceled", "no_renegotiation"))


class Alert(NamedTuple):
    """An alert that ends a conversation: the direction it went, what it says, and its packet."""

    direction: int
    description: str
    number: int
    ts_ns: int


class TlsConversation(Opener):
    """Both directions of one conversation; what opens goes to `sink`.

    Attributes:
        why: Why it will not open, in words, when it is `SEALED`.
        denied: It is no TLS after all.
        alerts: Those that report an error.
    """

    def __init__(self, secrets: Secrets, sink: Sink) -> None:
        super().__init__(secrets, sink)
        self.directions = (Direction(self, 0), Direction(self, 1))
        self.why = ""
        self.alerts: list[Alert] = []
        self.denied = False
        self._revision = -1
        self._waiting: list[tuple[Direction, int, bytes, bytes, int, int]] = []
        self._waiting_octets = 0

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
        if way.protection is not None:
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
            if length > MAX_MESSAGE_OCTETS:
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
        """Whether records wait for keys."""
        return bool(self._waiting)

    @property
    def held(self) -> int:
        """Octets that are kept."""
        one, other = self.directions
        messages = len(one.messages) + len(other.messages)
        return self._waiting_octets + one.held + other.held + messages

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
            self.name_keys(way, MASTER)
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
        if self.state == SEALED:
            return
        if self.handshake.client is None and self.handshake.server is None:
            self.seal(self._reason())
            return
        self._waiting.append((way, way.place, header, payload, number, ts_ns))
        self._waiting_octets += len(payload)
        if self._waiting_octets > MAX_WAITING_OCTETS:
            self.seal(self._reason())

    def _flush(self) -> None:
        """Open what waited."""
        waited, self._waiting = self._waiting, []
        self._waiting_octets = 0
        for way, place, header, payload, number, ts_ns in waited:
            if way.mode != DEAF:
                here, way.place = way.place, place
                self._take(way, header, payload, number, ts_ns)
                way.place = here

    def cut_short(self, way: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
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

    # ends

    def seal(self, why: str) -> None:
        """It will not open."""
        self.state = SEALED
        self.why = why
        self._waiting = []
        self._waiting_octets = 0
        self._silence()

    def _silence(self) -> None:
        """Listen no more to what is encrypted; an alert in clear may come from the other side."""
        for way in self.directions:
            if way.encrypted or self.handshake.server is None:
                way.silence()

    def _reason(self) -> str:
        """Why there are no keys."""
        if self.secrets.needs and self.secrets:
            return self.secrets.needs
        if self.handshake.client is None:
            return "its handshake is not in the capture"
        if not self.secrets:
            return "no keys were given"
        if not self.secrets.has_lines:
            suite = self.handshake.suite
            if suite is not None and not suite.is_rsa:
                return f"a private key does not open {suite.name}: a key log is needed"
            return "the private key is not the one of the server's certificate"
        if self.secrets.odd:
            return "the key log has no line that is a key"
        return "the key log does not have its keys"

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
        """Whether records of it opened."""
        return self.state == OPENED

    @property
    def columns(self) -> dict[str, str | None]:
        """What the connections table has of it."""
        from .telling import columns

        return columns(self)

    def facts(self, conversation: Any) -> dict[str, Any]:
        """What is known of it, as a row; `conversation` is the TCP conversation."""
        from .telling import facts

        return facts(self, conversation)

    def troubles(self, conversation: Any, ports: Collection[int], is_amqp: bool) -> Iterable[Any]:
        """What is wrong with it: code, detail, packet number, time; nothing where no AMQP is."""
        from .telling import troubles

        return troubles(self, conversation, ports, is_amqp)
