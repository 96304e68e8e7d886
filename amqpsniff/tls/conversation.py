"""One TLS conversation: handshake, keys and records of both directions.

Records in clear are the handshake and its alerts. Once a direction's records are encrypted they
wait, up to `MAX_WAITING_OCTETS`, until keys are found (the other direction's handshake may come
later, and a key log may grow); then they are opened in the order in which they came, and what they
carry is given to `sink`. Each record has a number that its check includes, so one that opens is in
its place; after a hole the number is found by trying.

TLS 1.3 has keys for the handshake and others for what follows. Key logs that lack the former do:
the records of the handshake do not open then, and the first that opens begins what follows.
"""

from __future__ import annotations

from typing import Any, Protocol

from .derive import key_block, next_secret
from .handshake import CLIENT_HELLO, FINISHED, KEY_UPDATE, SERVER_HELLO, Handshake
from .hello import TLS_1_3
from .records import (
    ALERT,
    CHANGE_CIPHER_SPEC,
    DATA,
    DEAF,
    HANDSHAKE,
    HEADER,
    SEARCHING,
    Direction,
)
from .secrets import HANDSHAKE as HANDSHAKE_SECRETS
from .secrets import TRAFFIC, Secrets
from .suites import ALERTS

MAX_WAITING_OCTETS = 1 << 18
"""Octets of records of one conversation that wait for keys: some seconds of traffic."""

MAX_MESSAGE_OCTETS = 1 << 18
"""Octets of one handshake message that is waited for: chains of certificates have less."""

MAX_ALERTS = 16
"""Alerts of one conversation that are remembered."""

MOST_FAILURES = 64
"""Records in a row that do not open before keys are given up: a handshake has fewer."""

FIRST_TRIES = 65_536
"""Record numbers tried at most to find the place after a hole, one conversation's share."""

TRIES_PER_RECORD = 64
"""And as many more for every record that opened: a crafted hole cannot cost more than it paid."""

CLEAR, ENCRYPTED, OPENED, SEALED = range(4)
"""What is known of a conversation: only its handshake; that records are encrypted; that they open;
that they will not."""

_GRACE = 8
"""Records looked for beyond those that fit into a hole: some carry nothing."""


class Sink(Protocol):
    """What is given the octets that were encrypted."""

    def put(
        self, direction: int, octets: bytes, offset: int, number: int, ts_ns: int
    ) -> None:  # pragma: no cover
        """The next octets of a direction."""
        ...

    def miss(
        self, direction: int, missing: int, offset: int, number: int, ts_ns: int
    ) -> None:  # pragma: no cover
        """The next octets are not in the capture."""
        ...


class Alert:
    """An alert: who sent it (0 the originator), level, description, and the packet."""

    __slots__ = ("direction", "fatal", "description", "number", "ts_ns")

    def __init__(self, direction: int, level: int, code: int, number: int, ts_ns: int) -> None:
        self.direction = direction
        self.fatal = level == 2
        self.description = ALERTS.get(code, f"alert {code}")
        self.number = number
        self.ts_ns = ts_ns


class TlsConversation:
    """Both directions of one conversation; what opens goes to `sink`.

    Attributes:
        state: `CLEAR`, `ENCRYPTED`, `OPENED` or `SEALED`.
        why: Why it will not open, in words, when it is `SEALED`.
        client: The direction of who sent the ClientHello; None when none was captured.
        octets: Octets given on, by direction.
        denied: It is no TLS after all.
    """

    def __init__(self, secrets: Secrets, sink: Sink) -> None:
        self.secrets = secrets
        self.sink = sink
        self.handshake = Handshake()
        self.directions = (Direction(self, 0), Direction(self, 1))
        self.state = CLEAR
        self.why = ""
        self.client: int | None = None
        self.octets = [0, 0]
        self.alerts: list[Alert] = []
        self.denied = False
        self.secured_ns: int | None = None
        self._revision = -1
        self._waiting: list[tuple[Direction, bytes, bytes, int, int]] = []
        self._waiting_octets = 0
        self._failures = [0, 0]
        self._tries = FIRST_TRIES

    # what directions tell

    def deny(self) -> None:
        """A direction does not begin with a record."""
        self.denied = self.state == CLEAR and self.handshake.server is None

    def astray(self, way: Direction) -> None:
        """A direction lost its place: go on where records can be told by opening them."""
        if self.state == SEALED or not self.secrets:
            way.silence()
            if self.state != SEALED:
                self._seal("octets of the handshake are missing from the capture")

    def record(
        self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int
    ) -> None:
        """A whole record, in its place."""
        if way.protection is not None:
            self._open(way, header, payload, number, ts_ns)
        elif header[0] == CHANGE_CIPHER_SPEC or not (way.encrypted or header[0] == DATA):
            self._clear(way, header[0], payload, number, ts_ns)
        else:
            self._wait(way, header, payload, number, ts_ns)

    def _clear(self, way: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
        """What a record carries that is not application data."""
        if kind == HANDSHAKE:
            self._messages(way, text, number, ts_ns)
        elif kind == ALERT:
            self._alert(way, text, number, ts_ns)
        elif kind == CHANGE_CIPHER_SPEC and self.handshake.version != TLS_1_3:
            self._change_cipher(way)

    def _alert(self, way: Direction, text: bytes, number: int, ts_ns: int) -> None:
        if len(text) >= 2 and len(self.alerts) < MAX_ALERTS:
            self.alerts.append(Alert(way.index, text[0], text[1], number, ts_ns))

    def _messages(self, way: Direction, text: bytes, number: int, ts_ns: int) -> None:
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
            self._message(way, kind, body, number, ts_ns)

    def _message(
        self, way: Direction, kind: int, body: bytes, number: int, ts_ns: int, whole: bool = True
    ) -> None:
        if kind == CLIENT_HELLO and self.client is None:
            self.client = way.index
        elif kind == SERVER_HELLO and self.client is None:
            self.client = 1 - way.index
        self.handshake.message(kind, body, way.index == self.client, whole)
        if kind == SERVER_HELLO and self.handshake.server is not None:
            self._hello(way)
        elif kind == FINISHED and way.protection is not None:
            self.secured_ns = ts_ns
            if way.later:
                self._use(way, way.later.pop(0))
            elif not way.protection.inner:
                self.handshake.remember(self.secrets)
        elif kind == KEY_UPDATE and way.secret:
            self._use(way, next_secret(self._digest(), way.secret))

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

    def _digest(self) -> str:
        return self.handshake.suite.digest if self.handshake.suite is not None else "sha256"

    def _use(self, way: Direction, secret: bytes) -> None:
        """Go on with the keys of a traffic secret."""
        from .protection import of_traffic_secret

        assert self.handshake.suite is not None
        way.secret = secret
        way.protection = of_traffic_secret(self.handshake.suite, secret)
        way.sequence = 0

    def find_keys(self) -> None:
        """Look for keys where some are needed; what waits is opened when they are found."""
        ways = [way for way in self.directions if way.encrypted and way.protection is None]
        if not ways or self.state == SEALED or self.handshake.suite is None:
            return
        if self.handshake.client is None or not self.secrets or self.secrets.needs:
            self._seal(self._reason())
        elif not self.handshake.suite.kind:
            self._seal(f"the cipher suite {self.handshake.suite.name} is not one that is opened")
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
        ways = sum(way.held + len(way.messages) for way in self.directions)
        return self._waiting_octets + ways

    def give_up(self, why: str) -> None:
        """Keep nothing of it."""
        self._seal(why)
        for way in self.directions:
            way.silence()
            way.messages.clear()

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
        assert self.handshake.client is not None
        random = self.handshake.client.random
        chains = []
        for way in ways:
            side = 0 if way.index == self.client else 1
            labels = (HANDSHAKE_SECRETS[side], TRAFFIC[side])
            found = [self.secrets.find(label, random) for label in labels]
            if found[1] is None:
                return False
            chains.append([secret for secret in found if secret is not None])
        for way, chain in zip(ways, chains, strict=True):
            self._use(way, chain.pop(0))
            way.later = chain
        return True

    # encrypted records

    def _wait(self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int) -> None:
        """Keep an encrypted record until there are keys."""
        if self.state == SEALED:
            return
        if self.handshake.client is None and self.handshake.server is None:
            self._seal(self._reason())
            return
        self._waiting.append((way, header, payload, number, ts_ns))
        self._waiting_octets += len(payload)
        if self._waiting_octets > MAX_WAITING_OCTETS:
            self._seal(self._reason())

    def _flush(self) -> None:
        """Open what waited."""
        waited, self._waiting = self._waiting, []
        self._waiting_octets = 0
        for way, header, payload, number, ts_ns in waited:
            if way.mode != DEAF:
                self.record(way, header, payload, number, ts_ns)

    def _open(self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int) -> None:
        """Open the next record of a direction."""
        if header[0] == CHANGE_CIPHER_SPEC and way.protection.inner:
            return
        text = way.protection.open(way.sequence, header, payload)
        if text is None:
            self._unopened(way, header, payload, number, ts_ns)
            return
        way.sequence += 1
        self._opened(way, header[0], text, number, ts_ns)

    def _opened(self, way: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
        """A record opened."""
        if not way.proven:
            way.proven = True
            self.state = OPENED
        self._failures[way.index] = 0
        self._tries += TRIES_PER_RECORD
        if way.protection.inner:
            text = text.rstrip(b"\0")
            if not text:
                return
            kind, text = text[-1], text[:-1]
        if kind == DATA:
            self._give(way, text, number, ts_ns)
        else:
            self._clear(way, kind, text, number, ts_ns)

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
        """A record did not open: its keys are others, its octets are wrong, or none fits."""
        if way.later:
            keys = (way.secret, way.protection, way.sequence)
            self._use(way, way.later[0])
            text = way.protection.open(0, header, payload)
            if text is not None:
                del way.later[0]
                way.sequence = 1
                self._opened(way, header[0], text, number, ts_ns)
                return
            way.secret, way.protection, way.sequence = keys
        self._failures[way.index] += 1
        if way.proven:
            way.sequence += 1
            if not way.later:
                self._miss(way, len(payload) - way.protection.overhead, number, ts_ns)
        most = MOST_FAILURES if way.proven or way.protection.inner else 1
        if self._failures[way.index] > most:
            self._give_up(way)

    def _give_up(self, way: Direction) -> None:
        """The keys of a direction open nothing."""
        way.silence()
        if self.state != OPENED:
            self._seal("the keys do not fit: no record opens with them")

    def broken(
        self, way: Direction, length: int, pieces: list[tuple[int, bytes]], number: int, ts_ns: int
    ) -> None:
        """A record of which octets are missing."""
        kind = pieces[0][1][0]
        protection = way.protection
        if protection is None:
            if not (way.encrypted or kind == DATA):
                self._cut_message(way, pieces[0][1][HEADER:], number, ts_ns)
            elif self.state != SEALED:
                self._seal("octets of the handshake are missing from the capture")
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

    def _cut_message(self, way: Direction, text: bytes, number: int, ts_ns: int) -> None:
        """The beginning of a record of handshake messages in clear."""
        way.messages += text
        self._messages(way, b"", number, ts_ns)
        if len(way.messages) > 4:
            kind, body = way.messages[0], bytes(way.messages[4:])
            self._message(way, kind, body, number, ts_ns, whole=False)
        way.messages.clear()

    def resume(
        self, way: Direction, header: bytes, payload: bytes, lost: int, number: int, ts_ns: int
    ) -> bool:
        """Whether a record after `lost` octets opens; then it is the next."""
        from .protection import of_traffic_secret

        protection, suite = way.protection, self.handshake.suite
        if protection is None or suite is None:
            return False
        each = HEADER + protection.overhead
        count = lost // each + _GRACE
        found = self._try(protection, way.sequence, count, header, payload)
        if found is None and way.secret:  # the keys may have been renewed in the hole
            secret = way.later[0] if way.later else next_secret(self._digest(), way.secret)
            renewed = of_traffic_secret(suite, secret)
            found = self._try(renewed, 0, count, header, payload)
            if found is not None:
                del way.later[:1]
                way.secret, way.protection = secret, renewed
                way.sequence = max(0, found[0] - lost // each)
        if found is None:
            if self._tries <= 0:
                way.silence()
            return False
        sequence, text = found
        passed = sequence - way.sequence
        way.sequence = sequence + 1
        self._miss(way, lost - passed * each if passed else 0, number, ts_ns)
        self._opened(way, header[0], text, number, ts_ns)
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

    def _seal(self, why: str) -> None:
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
        return "the key log does not have its keys"

    def finish(self) -> None:
        """The conversation is over."""
        if self.state == ENCRYPTED:
            self._seal(self._reason())
        elif self.state == CLEAR and any(way.mode == SEARCHING for way in self.directions):
            self.why = "octets of the handshake are missing from the capture"
