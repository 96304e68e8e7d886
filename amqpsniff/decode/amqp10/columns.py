# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Columns of messages that only deliveries of AMQP 1.0 have.

They hang on the rows of a batch with such deliveries (`MessageRows.deliveries`), so that others do
without. The decoder writes what the delivery says, the session what became of it.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers, Texts, Vocabulary
from cython.cimports.amqpsniff.decode.octets import ByteReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_KNOWN = 1024
"""Texts of a column whose codes are remembered: outcomes, conditions, addresses that repeat."""

MAX_TEXT_BYTES = 256 * 1024
"""Bytes of texts that repeat with which columns are used again."""

_MAX_KNOWN = cython.declare(cython.int, MAX_KNOWN)


class Names(Codes):
    """Codes of texts that repeat, with their vocabulary `words`; `last` was written last."""

    last_code: int

    words: Vocabulary
    known: dict[Any, Any]
    last: str

    def __init__(self) -> None:
        Codes.__init__(self)
        self.words = Vocabulary()
        self.known = {}
        self.last = None
        self.last_code = -1

    def put(self, row: cython.longlong, text: str) -> cython.int:
        """Write a text; nothing for None."""
        if text is None:
            return 0
        if text is not self.last:
            code = self.known.get(text)
            if code is None:
                octets: bytes = text.encode(errors="replace")
                reader: ByteReader = ByteReader()
                reader.read_from(octets)
                code = reader.code_in(self.words, 0, len(octets))
                if len(self.known) < _MAX_KNOWN:
                    self.known[text] = code
            self.last_code = code
            self.last = text
        self.values[row] = self.last_code
        return 0


class DeliveryColumns:
    """Columns of the rows of one batch of messages; null in rows of other messages."""

    capacity: int

    transfers: Codes
    delivery_count: Codes
    state: Names
    state_error: Names
    settled_by: Names
    transaction: Names
    address: Names
    message_bytes: Integers
    message_format: Integers
    tag: Texts
    annotations: Texts

    INTEGERS = ("message_bytes", "message_format")
    CODES = ("transfers", "delivery_count")
    NAMES = ("state", "state_error", "settled_by", "transaction", "address")
    TEXTS = ("tag", "annotations")

    def __init__(self) -> None:
        self.capacity = 0
        for name in self.CODES:
            setattr(self, name, Codes())
        for name in self.NAMES:
            setattr(self, name, Names())
        for name in self.INTEGERS:
            setattr(self, name, Integers())
        for name in self.TEXTS:
            setattr(self, name, Texts())

    def columns(self) -> Any:
        """Every column by name."""
        names = (*self.CODES, *self.NAMES, *self.INTEGERS, *self.TEXTS)
        return {name: getattr(self, name) for name in names}

    def by_name(self) -> Any:
        """Vocabularies by the name of their columns."""
        return {name: getattr(self, name).words for name in self.NAMES}

    def octets(self) -> Any:
        """Bytes of texts."""
        return self.tag.used + self.annotations.used

    def reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for as many rows as their messages have."""
        if rows > self.capacity:
            for column in self.columns().values():
                column.reserve(rows)
            self.capacity = rows
        return 0

    def clear(self, rows: cython.longlong) -> cython.bint:
        """Forget the first `rows` rows; false (nothing done) where there are many texts."""
        if sum([words.used for words in self.by_name().values()]) > MAX_TEXT_BYTES:
            return False
        for column in self.columns().values():
            column.clear(rows)
        return True
