"""Records of TLS: what of a handshake is no secret stays, all that is encrypted is filler.

Headers of records stay, and the parameters that the two sides negotiate: versions, suites,
randoms, the extensions that a row names, and of certificates what `certificates` lets through.
Host names are names; tickets of sessions, before TLS 1.3, are numbers. Keys that were sent
encrypted, signatures, and messages and extensions that no row names are filler; lengths stay, so
that it is still a handshake.

Source: RFC 8446 §4, RFC 5246 §7.4, RFC 6066 §3, RFC 7301.
"""

from __future__ import annotations

from collections.abc import Iterator

from amqpsniff.sanitize.certificates import safe_certificate
from amqpsniff.sanitize.policy import EXTENSIONS, HIDDEN, KEEP, PROTOCOL_NAMES, actions, filler
from amqpsniff.sanitize.values import ValueCleaner
from amqpsniff.tls.handshake import (
    CERTIFICATE,
    CERTIFICATE_REQUEST,
    CERTIFICATE_VERIFY,
    CLIENT_HELLO,
    CLIENT_KEY_EXCHANGE,
    NEW_SESSION_TICKET,
    SERVER_HELLO,
    SERVER_KEY_EXCHANGE,
)
from amqpsniff.tls.records import ALERT, CHANGE_CIPHER_SPEC, HANDSHAKE, RecordClaim

_NAMED_CURVE = 3
_SERVER_NAME, _PROTOCOLS, _SESSION_TICKET = 0, 16, 35

MAX_MESSAGE_BYTES = 1 << 18
"""Bytes of a handshake message that is waited for; of a longer one nothing stays."""

MAX_WAITING = 4096
"""Directions with a message that is not whole; beyond, what the oldest have is filler."""

MAX_TICKETS = 65_536
"""Tickets that have a number; a later one is filler."""

Span = tuple[int, int, int, bytes]
"""Conversation, direction, stream offset, and the bytes at it."""


class _Waiting:
    """Records of a direction whose handshake messages are not whole."""

    def __init__(self) -> None:
        self.claims: list[RecordClaim] = []
        self.octets = self._end = 0

    def takes(self, claim: RecordClaim) -> bool:
        """Take the next record; true if the messages end with it.

        They are looked at when the last one can be whole, and not for each record of a byte.
        """
        self.claims.append(claim)
        self.octets += len(claim.payload or b"")
        if self.octets >= self._end:
            octets, self._end = self.joined(), 0
            while self._end + 4 <= len(octets):
                self._end += 4 + int.from_bytes(octets[self._end + 1 : self._end + 4], "big")
            if self._end < len(octets):
                self._end += 4  # the head of the next one
        return self.octets == self._end

    def joined(self) -> bytes:
        """The payloads of the records, one after the other."""
        return b"".join(claim.payload or b"" for claim in self.claims)


class RecordCleaner:
    """Cleans records; what belongs to a message that is not whole waits for its rest.

    Args:
        values: What cleans names.
    """

    def __init__(self, values: ValueCleaner) -> None:
        self._values = values
        self._tickets: dict[bytes, int] = {}
        self._extensions = actions(EXTENSIONS)
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    def clean(self, claim: RecordClaim) -> Iterator[Span]:
        """The spans that are complete now, in the order of their offsets."""
        half = (claim.conversation, claim.direction)
        if claim.payload is not None and claim.header[0] == HANDSHAKE:
            waiting = self._waiting.setdefault(half, _Waiting())
            if waiting.takes(claim) or waiting.octets > MAX_MESSAGE_BYTES:
                yield from self._release(half)
            elif len(self._waiting) > MAX_WAITING:
                yield from self._release(next(iter(self._waiting)))
            return
        yield from self._release(half)
        yield (*half, claim.offset, claim.header + _safe_payload(claim))

    def finish(self) -> Iterator[Span]:
        """The records that still wait."""
        for half in list(self._waiting):
            yield from self._release(half)

    def _release(self, half: tuple[int, int]) -> Iterator[Span]:
        """The records that waited, with what may stay of their messages."""
        waiting = self._waiting.pop(half, None) or _Waiting()
        safe = self.messages(waiting.joined())
        at = 0
        for claim in waiting.claims:
            size = len(claim.payload or b"")
            yield (*half, claim.offset, claim.header + safe[at : at + size])
            at += size

    def messages(self, octets: bytes) -> bytes:
        """Handshake messages one after the other; the last may be cut."""
        safe = bytearray(filler(len(octets)))
        at = 0
        while at + 4 <= len(octets):
            length = int.from_bytes(octets[at + 1 : at + 4], "big")
            if length > MAX_MESSAGE_BYTES:
                break
            end = min(at + 4 + length, len(octets))
            safe[at : at + 4] = octets[at : at + 4]
            self._message(octets[at], _Fields(octets, safe, at + 4, end))
            at += 4 + length
        return bytes(safe)

    def _message(self, kind: int, fields: _Fields) -> None:
        if kind == CLIENT_HELLO:
            fields.keep(2 + 32)
            for size in (1, 2, 1):  # session id, suites, compression
                fields.keep(fields.length(size))
            self._hello_extensions(fields)
        elif kind == SERVER_HELLO:
            fields.keep(2 + 32)
            fields.keep(fields.length(1))
            fields.keep(3)
            self._hello_extensions(fields)
        elif kind == NEW_SESSION_TICKET:
            self._ticket(fields)
        elif kind == CERTIFICATE_REQUEST:
            self._request(fields)
        elif kind in (SERVER_KEY_EXCHANGE, CLIENT_KEY_EXCHANGE, CERTIFICATE_VERIFY):
            _keys(kind, fields)
        elif kind == CERTIFICATE:
            fields.length(3)
            while fields.more:
                self._der(fields, 3)

    def _der(self, fields: _Fields, count: int) -> None:
        """A certificate, or a name as in one, behind its length in `count` bytes."""
        size = fields.length(count)
        start, octets = fields.at, fields.take(size)
        safe_certificate(octets, fields.safe, start, self._name)

    def _request(self, fields: _Fields) -> None:
        """Which certificates a server takes."""
        fields.keep(fields.length(1))
        size = int.from_bytes(fields.octets[fields.at : fields.at + 2], "big")
        if fields.at + 2 + size < fields.end:  # from TLS 1.2 on signature algorithms come first
            fields.keep(2 + size)
        fields.length(2)
        while fields.more:
            self._der(fields, 2)

    def _ticket(self, fields: _Fields) -> None:
        """For how long a session may be resumed, and what with."""
        fields.keep(4)
        size = fields.length(2)
        start, ticket = fields.at, fields.take(size)
        fields.safe[start : start + len(ticket)] = self._numbered(ticket)

    def _numbered(self, ticket: bytes) -> bytes:
        """A number of the same length in place of a ticket, which a resumed session repeats."""
        number = self._tickets.get(ticket)
        if number is None:
            if len(self._tickets) >= MAX_TICKETS:
                return filler(len(ticket))
            number = self._tickets[ticket] = len(self._tickets)
        return (filler(len(ticket)) + b"%d" % number)[-len(ticket) :] if ticket else b""

    def _name(self, name: bytes) -> bytes:
        return self._values.text(name, HIDDEN)

    def _hello_extensions(self, fields: _Fields) -> None:
        fields.length(2)
        while fields.more:
            kind = int.from_bytes(fields.keep(2), "big")
            size = fields.length(2)
            end = fields.at + size
            if self._extensions.get(b"%d" % kind) == KEEP:
                fields.keep(size)
            elif kind in (_SERVER_NAME, _PROTOCOLS) and size > 2:
                self._names(kind, _Fields(fields.octets, fields.safe, fields.at, end))
            elif kind == _SESSION_TICKET:
                start, ticket = fields.at, fields.take(size)
                fields.safe[start : start + len(ticket)] = self._numbered(ticket)
            fields.at = end

    def _names(self, kind: int, fields: _Fields) -> None:
        """The requested host, or the offered protocols."""
        fields.length(2)
        while fields.more:
            if kind == _SERVER_NAME:
                fields.keep(1)
            size = fields.length(2 if kind == _SERVER_NAME else 1)
            start, name = fields.at, fields.take(size)
            if kind == _SERVER_NAME:
                fields.safe[start : start + len(name)] = self._name(name)
            elif name in PROTOCOL_NAMES:
                fields.safe[start : start + len(name)] = name


def _keys(kind: int, fields: _Fields) -> None:
    """Keys that are agreed on, and signatures: lengths, curves and algorithms."""
    if kind == SERVER_KEY_EXCHANGE:
        if fields.octets[fields.at : fields.at + 1] == bytes((_NAMED_CURVE,)):
            fields.keep(3)
            fields.take(fields.length(1))
        else:
            for _ in range(3):  # prime, generator, public key
                fields.take(fields.length(2))
    if kind == CLIENT_KEY_EXCHANGE:
        size = fields.end - fields.at
        for count in (1, 2):
            if int.from_bytes(fields.octets[fields.at : fields.at + count], "big") == size - count:
                fields.keep(count)
                return
    elif fields.end - fields.at >= 4:
        length = int.from_bytes(fields.octets[fields.at + 2 : fields.at + 4], "big")
        fields.keep(4 if fields.at + 4 + length == fields.end else 0)


class _Fields:
    """Fields of a message from `at` to `end`; those that are kept are written to `safe`."""

    def __init__(self, octets: bytes, safe: bytearray, at: int, end: int) -> None:
        self.octets = octets
        self.safe = safe
        self.at = at
        self.end = min(end, len(octets))

    @property
    def more(self) -> bool:
        """True if there are bytes left."""
        return self.at < self.end

    def take(self, count: int) -> bytes:
        """The next bytes, fewer at the end."""
        taken = self.octets[self.at : min(self.at + count, self.end)]
        self.at += count
        return taken

    def keep(self, count: int) -> bytes:
        """The next bytes, which stay."""
        start = self.at
        taken = self.take(count)
        self.safe[start : start + len(taken)] = taken
        return taken

    def length(self, count: int) -> int:
        """A length in `count` bytes, which stays."""
        return int.from_bytes(self.keep(count), "big")


def _safe_payload(claim: RecordClaim) -> bytes:
    """The payload of a record that is no handshake."""
    payload = claim.payload
    if payload is None:
        return b""
    sizes = {CHANGE_CIPHER_SPEC: 1, ALERT: 2}
    return payload if sizes.get(claim.header[0]) == len(payload) else b""
