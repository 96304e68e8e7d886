# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Fingerprint of a message: its size and properties as one hash.

A broker delivers properties unchanged, with these exceptions, which are undone here: headers are in
any order, since RabbitMQ 4.3 sorts them by name; those that it adds (`ADDED`) or removes (`BCC`) do
not count; the address for direct replies is made unique in `reply_to`; a dead-lettered message
loses its `expiration`, and has another exchange and routing key. The last entry of the header
`x-death` has the original ones.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.octets import ByteReader
from cython.cimports.amqpsniff.decode.rows import (
    Vocabularies,
)
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.octets import own_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Texts, Vocabulary
    from amqpsniff.decode.rows import MessageRows

DIRECT = "amq.rabbitmq.reply-to"
"""The `reply_to` of direct replies (RabbitMQ, Direct Reply-to)."""

ADDED = frozenset(
    b"x-death x-delivery-count x-acquired-count x-stream-offset x-received-from x-routed-by "
    b"x-first-death-exchange x-first-death-queue x-first-death-reason x-last-death-exchange "
    b"x-last-death-queue x-last-death-reason timestamp_in_ms BCC".split()
)
"""Headers that are there on one side of a broker only: added by dead-lettering, quorum queues,
streams, federation and interceptors; `BCC` is taken off."""

_MULTIPLIER = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_DIRECT = DIRECT.encode()
_PREFIX = b"urn:uuid:"
_PREFIX_BYTES = cython.declare(cython.longlong, 9)
_URN_BYTES = cython.declare(cython.longlong, 45)
_NOTHING = cython.declare(cython.ulonglong, 0x5851F42D4C957F2D)


@cython.ccall
@cython.exceptval(1)
def mixed(hash_: cython.ulonglong, more: cython.ulonglong) -> cython.ulonglong:
    """A hash of a hash and one more number."""
    h: cython.ulonglong = ((hash_ ^ more) * _MULTIPLIER) & _MASK64
    return h ^ (h >> 29)


@cython.cfunc
def _end_of_string(
    octets: cython.uchar[::1], at: cython.longlong, end: cython.longlong
) -> cython.longlong:
    """The place of the closing quote of the string that begins at `at`."""
    at += 1
    while at < end and octets[at] != 0x22:
        at += 2 if octets[at] == 0x5C else 1
    return at


@cython.cclass
class Fingerprinter:
    """Computes the hashes of message rows.

    `seed` is that of the hashes: of this process, or shared by several.

    After `of`: `correlation` is the hash of the correlation-id; `died`: the message was
    dead-lettered, and `exchange` and `routing_key` are the hashes of the original ones; `streamed`:
    it came from a stream.
    """

    added: cython.bint
    died: cython.bint
    streamed: cython.bint
    timestamped: cython.bint
    own: cython.bint
    seed: cython.ulonglong
    exchange: cython.ulonglong
    routing_key: cython.ulonglong
    expiration: cython.ulonglong
    correlation: cython.ulonglong

    reader: ByteReader

    def __init__(self, seed: Any) -> None:
        self.reader = ByteReader()
        self.seed = seed
        self.own = seed == own_seed()
        self.correlation = 0
        self.added = self.died = self.streamed = False
        self.exchange = 0
        self.routing_key = 0
        self.expiration = 0
        self.timestamped = False

    @cython.exceptval(1)
    def of(self, messages: MessageRows, row: cython.longlong) -> cython.ulonglong:
        """The hash of a message's size and properties."""
        words: Vocabularies = messages.vocabularies
        headers: cython.ulonglong = self._headers(messages.headers, row)
        stamp: cython.longlong = (
            NULL if self.timestamped else messages.message_timestamp.values[row]
        )
        h: cython.ulonglong = mixed(headers, messages.body_size.values[row] & _MASK64)
        h = mixed(h, self.word(words.content_type, messages.content_type.values[row]))
        h = mixed(h, self.word(words.content_encoding, messages.content_encoding.values[row]))
        h = mixed(h, self._reply_to(words.reply_to, messages.reply_to.values[row]))
        if self.expiration:
            h = mixed(h, self.expiration)
        else:
            h = mixed(h, self.word(words.expiration, messages.expiration.values[row]))
        h = mixed(h, self.word(words.type, messages.type.values[row]))
        h = mixed(h, self.word(words.user_id, messages.user_id.values[row]))
        h = mixed(h, self.word(words.app_id, messages.app_id.values[row]))
        h = mixed(h, self.word(words.cluster_id, messages.cluster_id.values[row]))
        h = mixed(
            h, (messages.delivery_mode.values[row] + 1) * 65536 + messages.priority.values[row]
        )
        h = mixed(h, stamp & _MASK64)
        self.correlation = self.id_of(messages.correlation_id, row)
        h = mixed(h, self.correlation)
        h = mixed(h, self.id_of(messages.message_id, row))
        return mixed(h, self.text(messages.body_sha256, row))

    @cython.exceptval(1)
    def bare(self, messages: MessageRows, row: cython.longlong) -> cython.ulonglong:
        """The hash of the bare message of AMQP 1.0 (§3.2), which a broker delivers unchanged."""
        words: Vocabularies = messages.vocabularies
        h: cython.ulonglong = mixed(
            self._headers(messages.headers, row), messages.body_size.values[row] & _MASK64
        )
        h = mixed(h, self.word(words.content_type, messages.content_type.values[row]))
        h = mixed(h, self.word(words.content_encoding, messages.content_encoding.values[row]))
        h = mixed(h, self.word(words.reply_to, messages.reply_to.values[row]))
        h = mixed(h, self.word(words.type, messages.type.values[row]))
        h = mixed(h, self.id_of(messages.correlation_id, row))
        return mixed(h, self.text(messages.body_sha256, row))

    @cython.exceptval(1)
    def identity(self, messages: MessageRows, row: cython.longlong) -> cython.ulonglong:
        """The hash of message-id and correlation-id, 0 without a message-id."""
        if not messages.message_id.has(row):
            return 0
        h: cython.ulonglong = self.id_of(messages.message_id, row)
        return mixed(h, self.id_of(messages.correlation_id, row)) or 1

    @cython.exceptval(1)
    def id_of(self, column: Texts, row: cython.longlong) -> cython.ulonglong:
        """The hash of a message-id or correlation-id.

        A UUID of AMQP 1.0 is a text with a prefix in 0-9-1 (measured on RabbitMQ 4.3.6).
        """
        if row >= column.rows or not column.valid[row]:
            return _NOTHING
        start: cython.longlong = column.offsets[row]
        size: cython.longlong = column.offsets[row + 1] - start
        self.reader.read_from(column.octets)
        if size == _URN_BYTES and column.octets[start] == 0x75:
            if self.reader.bytes_at(start, _PREFIX_BYTES) == _PREFIX:
                start += _PREFIX_BYTES
                size -= _PREFIX_BYTES
        return self.reader.hash_with(self.seed, start, size)

    @cython.exceptval(1)
    def word(self, vocabulary: Vocabulary, code: cython.int) -> cython.ulonglong:
        """The hash of the text of a code."""
        if self.own or code < 0:
            return coded(vocabulary, code)
        start: cython.longlong = vocabulary.ends[code]
        self.reader.read_from(vocabulary.octets)
        return self.reader.hash_with(self.seed, start, vocabulary.ends[code + 1] - start)

    @cython.exceptval(1)
    def text(self, column: Texts, row: cython.longlong) -> cython.ulonglong:
        """The hash of a text of a row, the same as `word` gives for it."""
        if row >= column.rows or not column.valid[row]:
            return _NOTHING
        self.reader.read_from(column.octets)
        start: cython.longlong = column.offsets[row]
        return self.reader.hash_with(self.seed, start, column.offsets[row + 1] - start)

    @cython.ccall
    @cython.exceptval(1)
    def octets(self, octets: bytes | None) -> cython.ulonglong:
        """The hash of a text, the same as `word` gives for it."""
        if octets is None:
            return _NOTHING
        self.reader.read_from(octets)
        return self.reader.hash_with(self.seed, 0, len(octets))

    @cython.exceptval(1)
    def _reply_to(self, vocabulary: Vocabulary, code: cython.int) -> cython.ulonglong:
        """The hash of `reply_to`, the same for every address of direct replies."""
        if code >= 0 and is_direct(vocabulary, code):
            return self.octets(_DIRECT)
        return self.word(vocabulary, code)

    @cython.exceptval(1)
    def _headers(self, column: Texts, row: cython.longlong) -> cython.ulonglong:
        """The hash of the headers that client and broker hand on."""
        self.died = False
        self.streamed = False
        self.timestamped = False
        self.expiration = 0
        if row >= column.rows or not column.valid[row]:
            return _NOTHING
        start: cython.longlong = column.offsets[row]
        end: cython.longlong = column.offsets[row + 1]
        if end - start <= 2:
            return _NOTHING
        h: cython.ulonglong = self._members(column.octets, start, end)
        if self.added:
            self._learn(column.bytes_of(row))
        return h

    @cython.exceptval(1)
    def _members(
        self, octets: cython.uchar[::1], start: cython.longlong, end: cython.longlong
    ) -> cython.ulonglong:
        """The hash of the members of a JSON object in any order, without those of `ADDED`."""
        total: cython.ulonglong = 0
        depth: cython.int = 0
        octet: cython.int
        self.added = False
        self.reader.read_from(octets)
        at: cython.longlong = start + 1
        member: cython.longlong = at
        while at < end:
            octet = octets[at]
            if octet == 0x22:
                at = _end_of_string(octets, at, end)
            elif octet == 0x7B or octet == 0x5B:
                depth += 1
            elif depth == 0 and (octet == 0x2C or at == end - 1):
                if self._is_added(octets, member, at):
                    self.added = True
                else:
                    total += self.reader.hash_with(self.seed, member, at - member)
                member = at + 1
            elif octet == 0x7D or octet == 0x5D:
                depth -= 1
            at += 1
        return (total & _MASK64) or _NOTHING

    def _is_added(
        self, octets: cython.uchar[::1], start: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """True if a member of a JSON object has a name of `ADDED`."""
        first: cython.int = octets[start + 1]
        if first != 0x78 and first != 0x42 and first != 0x74:  # x, B, t
            return False
        count: cython.longlong = _end_of_string(octets, start, end) - start - 1
        return self.reader.bytes_at(start + 1, count) in ADDED

    def _learn(self, octets: bytes) -> cython.int:
        """Learn from the headers that a broker added."""
        headers = read_object(octets)
        self.streamed = "x-stream-offset" in headers
        self.timestamped = "timestamp_in_ms" in headers
        deaths = headers.get("x-death")
        if not isinstance(deaths, list) or not deaths:
            return 0
        first = deaths[len(deaths) - 1]
        if not isinstance(first, dict):
            return 0
        keys = first.get("routing-keys")
        exchange = first.get("exchange")
        expiration = first.get("original-expiration")
        if isinstance(expiration, str):
            self.expiration = self.octets(expiration.encode())
        if isinstance(exchange, str) and isinstance(keys, list) and keys:
            if isinstance(keys[0], str):
                self.died = True
                self.exchange = self.octets(exchange.encode())
                self.routing_key = self.octets(keys[0].encode())
        return 0


@cython.exceptval(1)
def coded(vocabulary: Vocabulary, code: cython.int) -> cython.ulonglong:
    """The hash of the text of a code, with the seed of this process."""
    if code < 0:
        return _NOTHING
    return vocabulary.hashes[code]


def is_direct(vocabulary: Vocabulary, code: cython.int) -> cython.bint:
    """True if a text, of a code that is not null, is an address of direct replies."""
    start: cython.longlong = vocabulary.ends[code]
    if vocabulary.ends[code + 1] - start < 21:
        return False
    if vocabulary.octets[start] != 0x61 or vocabulary.octets[start + 4] != 0x72:
        return False
    text: str = vocabulary.text(code)
    return text.startswith(DIRECT)
