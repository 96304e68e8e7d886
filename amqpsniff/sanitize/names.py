"""Pseudonyms for names: as long as the name, the same wherever it stands, in order of appearance.

A name is taken apart at dots, slashes and the like, and each word has its pseudonym, so that
patterns of topics still match, a routing key that is a queue's name still is, and `*` and `#` stay.
What brokers reserve (`amq.` and the names behind it) stays as well. Numbered in the order in which
words are met, pseudonyms show only their length. Pseudonyms of pseudonyms are the same again.
"""

from __future__ import annotations

import re

from amqpsniff.sanitize.policy import filler

MAX_WORDS = 1 << 20
"""Words remembered, some 150 bytes each. Beyond, new ones are filler: message ids may be without
number."""

_PAD = ord("n")
_DIGITS = b"0123456789abcdefghijklmopqrstuvwxyz"
_WORDS = re.compile(rb"%(?:2[03AEFaef]|3[Aa]|40)|((?:[^./:*#@ %]|%(?!2[03AEFaef]|3[Aa]|40))+)")
"""Percent-encoded separators in an address of AMQP 1.0, and the words between separators."""
_ADDRESS = frozenset(
    b"queues exchanges bindings queue exchange topic amq management $me $cbs $management "
    b"Subscriptions subscriptions $deadletterqueue $DeadLetterQueue ConsumerGroups Partitions "
    b"$Default".split()
)
"""Parts of addresses of AMQP 1.0 that name a kind of thing."""
_BINDING = re.compile(rb"(src=|;dst[eq]=|;key=|;args=)([^;]*)")
"""The parts of a binding in a path of RabbitMQ's `/management`."""
_RESERVED = re.compile(rb"amq\.(?:gen-|ctag-|rabbitmq\.(?:reply-to|trace|log)|[a-z]+(?=\.|$))?")


class Pseudonyms:
    """Gives names pseudonyms; `forgotten`: there were more than `max_words`."""

    def __init__(self, max_words: int = MAX_WORDS) -> None:
        self._max_words = max_words
        self._words: dict[bytes, bytes] = {}
        self._counts: dict[int, int] = {}
        self.forgotten = False

    def name(self, name: bytes) -> bytes:
        """The pseudonym of a name."""
        reserved = _RESERVED.match(name)
        kept_bytes = reserved.end() if reserved is not None else 0
        return name[:kept_bytes] + _WORDS.sub(
            lambda match: self.whole(match[1]) if match[1] else match[0], name[kept_bytes:]
        )

    def address(self, address: bytes) -> bytes:
        """The pseudonym of an address of AMQP 1.0: names between slashes."""
        parts = address.split(b"/")
        shown = [self._part(part) for part in parts]
        if parts[1:2] == [b"queues"] and parts[3:] == [b"messages"]:  # what a purge deletes
            shown[3] = parts[3]
        return b"/".join(shown)

    def _part(self, part: bytes) -> bytes:
        """The pseudonym of what is between the slashes of an address."""
        if part in _ADDRESS:
            return part
        if not part.startswith(b"src="):
            return self.name(part)
        return _BINDING.sub(lambda found: found[1] + self.name(found[2]), part)

    def whole(self, word: bytes) -> bytes:
        """The pseudonym of bytes that are one word."""
        pseudonym = self._words.get(word)
        if pseudonym is not None:
            return pseudonym
        if len(self._words) >= self._max_words:
            self.forgotten = True
            return filler(len(word))
        number = self._counts.get(len(word), 0)
        self._counts[len(word)] = number + 1
        pseudonym = self._words[word] = _numbered(number, len(word))
        return pseudonym


def _numbered(number: int, octets: int) -> bytes:
    """A number in `octets` letters and digits; its end, if it has more."""
    letters = bytearray(bytes([_PAD])) * octets
    at = octets
    while at > 0 and (number or at == octets):
        at -= 1
        number, digit = divmod(number, len(_DIGITS))
        letters[at] = _DIGITS[digit]
    return bytes(letters)
