# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Records of a direction that has keys, opened one after the other, also after holes.

Each record has a number that its check includes, so one that opens is in its place; after a hole
the number is found by trying. A record with a hole in it cannot be checked: where the cipher is a
stream, the octets that were captured are decrypted all the same.

TLS 1.3 has keys for the handshake and others for what follows. Key logs that lack the former do:
the records of the handshake do not open then, and the first that opens begins what follows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from .claims import Keys, OpenedClaim, RecordClaim
from .derive import next_secret
from .handshake import Handshake
from .records import CHANGE_CIPHER_SPEC, DATA, HEADER, Direction
from .secrets import Secrets

MOST_FAILURES = 64
"""Records in a row that do not open before keys are given up: a handshake has fewer."""

FIRST_TRIES = 65_536
"""Record numbers tried at most to find the place after a hole, one conversation's share."""

TRIES_PER_RECORD = 64
"""And as many more for every record that opened: a crafted hole cannot cost more than it paid."""

END_OCTETS = 4
"""Octets of EndOfEarlyData, the last record of early data."""

_GRACE = 8
"""Records looked for beyond those that fit into a hole: some carry nothing."""

KEYS_MISFIT = "the keys do not fit: no record opens with them"

CLEAR, ENCRYPTED, OPENED, SEALED = range(4)
"""What is known of a conversation: only its handshake; that records are encrypted; that they open;
that they will not."""


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


class Opener(ABC):
    """Opens records and gives what they carry to `sink`, or, what is no data, to `clear`.

    Attributes:
        state: `CLEAR`, `ENCRYPTED`, `OPENED` or `SEALED`.
        client: The direction of who sent the ClientHello; None when none was captured.
        octets: Octets given on, by direction.
        damaged: (direction, packet number, ts_ns) of records that did not open among others that
            did: the first of them; None while there is none.
        claims: Claims of records; None when they are not asked for.
        serial: Serial number of the conversation, for claims.
        unread_early: Octets of the client's early data for which there is no key; -1 for none.
    """

    def __init__(self, secrets: Secrets, sink: Sink) -> None:
        self.secrets = secrets
        self.sink = sink
        self.handshake = Handshake()
        self.state = CLEAR
        self.client: int | None = None
        self.octets = [0, 0]
        self.damaged: tuple[int, int, int] | None = None
        self.claims: list[RecordClaim | OpenedClaim] | None = None
        self.serial = -1
        self.unread_early = -1
        self._failures = [0, 0]
        self._tries = FIRST_TRIES

    @abstractmethod
    def clear(self, way: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
        """What a record carries that is not application data."""

    @abstractmethod
    def cut_short(self, way: Direction, kind: int, text: bytes, number: int, ts_ns: int) -> None:
        """The beginning of a record that is not encrypted, or has no keys yet."""

    @abstractmethod
    def assume(self, way: Direction) -> None:
        """A direction lost its place in the handshake: what follows may be encrypted already."""

    @abstractmethod
    def seal(self, why: str) -> None:
        """It will not open."""

    def digest(self) -> str:
        return self.handshake.suite.digest if self.handshake.suite is not None else "sha256"

    def use(self, way: Direction, secret: bytes) -> None:
        """Go on with the keys of a traffic secret."""
        from .protection import of_traffic_secret

        assert self.handshake.suite is not None
        way.secret = secret
        way.protection = of_traffic_secret(self.handshake.suite, secret)
        way.sequence = 0
        self.name_keys(way, None)

    def name_keys(self, way: Direction, label: bytes | None) -> None:
        """Say what a direction's new keys are, where claims are made; without a label that of its
        traffic secret is looked up."""
        client, server, suite = self.handshake.client, self.handshake.server, self.handshake.suite
        if self.claims is None or client is None or server is None or suite is None:
            return
        side = int(way.index != self.client)
        if label is None:
            label = self.secrets.label(side, client.random, way.secret)
        way.keys = Keys(
            suite, server.version, side, label, client.random, server.random,
            self.secrets.session_of(way.secret or self.handshake.master, client.random),
            server.encrypt_then_mac, None if label else way.keys,
        )  # fmt: skip

    def _claim(
        self, way: Direction, number: int, header: bytes, payload: bytes, kind: int, text: bytes
    ) -> None:
        """Claim a record that opened, of whose payload at least the prefix was captured."""
        if self.claims is None or way.keys is None:
            return
        protection = way.protection
        prefix, size = payload[: protection.prefix], header[3] << 8 | header[4]
        padding = size - protection.overhead - len(text) if protection.inner else 0
        self.claims.append(
            OpenedClaim(
                self.serial, way.index, way.place, header, size, prefix, number, way.keys,
                kind, way.offset, text, padding,
            )
        )  # fmt: skip

    def open(self, way: Direction, header: bytes, payload: bytes, number: int, ts_ns: int) -> None:
        """Open the next record of a direction."""
        if header[0] == CHANGE_CIPHER_SPEC and way.protection.inner:
            return
        text = way.protection.open(way.sequence, header, payload)
        if text is None:
            self._unopened(way, header, payload, number, ts_ns)
            return
        self._opened(way, way.sequence, header, payload, text, number, ts_ns)

    def _opened(
        self,
        way: Direction,
        sequence: int,
        header: bytes,
        payload: bytes,
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
                self._miss(way, self.unread_early - END_OCTETS, number, ts_ns)
                self.unread_early = -1
        self._failures[way.index] = 0
        self._tries += TRIES_PER_RECORD
        if way.protection.inner:
            text = text.rstrip(b"\0")
            if not text:
                return
            last = len(text) - 1
            kind, text = text[last], text[:last]
        self._claim(way, sequence, header, payload, kind, text)
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
        """A record did not open: its keys are others, its octets are wrong, or none fits."""
        if way.later:
            kept = (way.secret, way.protection, way.sequence, way.keys)
            self.use(way, way.later[0])
            text = way.protection.open(0, header, payload)
            if text is not None:
                del way.later[0]
                self._opened(way, 0, header, payload, text, number, ts_ns)
                return
            way.secret, way.protection, way.sequence, way.keys = kept
        self._failures[way.index] += 1
        if self.unread_early >= 0 and way.index == self.client and not way.proven:
            self.unread_early += max(0, len(payload) - way.protection.overhead)
        if way.proven:
            way.sequence += 1
            self.damaged = self.damaged or (way.index, number, ts_ns)
            if not way.later:
                self._miss(way, len(payload) - way.protection.overhead, number, ts_ns)
        most = MOST_FAILURES if way.proven or way.protection.inner else 1
        if self._failures[way.index] > most:
            self._give_up(way)

    def _give_up(self, way: Direction) -> None:
        """The keys of a direction open nothing."""
        way.silence()
        if self.state != OPENED:
            self.seal(KEYS_MISFIT)

    def broken(
        self, way: Direction, length: int, pieces: list[tuple[int, bytes]], number: int, ts_ns: int
    ) -> None:
        """A record of which octets are missing."""
        kind = pieces[0][1][0]
        protection = way.protection
        if protection is None:
            self.cut_short(way, kind, pieces[0][1][HEADER:], number, ts_ns)
            return
        sequence = way.sequence
        way.sequence += 1
        if way.later or kind != DATA:
            return
        head = pieces[0][1][HEADER : HEADER + protection.prefix]
        size = length - HEADER - protection.overhead
        if protection.exact and size >= 0 and len(head) == protection.prefix:
            self._claim(way, sequence, pieces[0][1][:HEADER], head, kind, bytes(size))
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
        """Whether a record after `lost` octets opens; then it is the next."""
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
                self.name_keys(way, None)
        if found is None:
            if self._tries <= 0:
                way.silence()
            return False
        sequence, text = found
        passed = sequence - way.sequence
        if passed > (0 if way.proven or way.protection.inner else 1):  # the first is Finished
            self._miss(way, max(1, lost - passed * each), number, ts_ns)
        self._opened(way, sequence, header, payload, text, number, ts_ns)
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
