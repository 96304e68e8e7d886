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

_MAX_KNOWN = cython.declare(cython.int, MAX_KNOWN)


class DeliveryColumns:
    """Columns of the rows of one batch of messages; null in rows of other messages."""

    reader: ByteReader
    words: dict[Any, Any]
    known: dict[Any, Any]
    transfers: Codes
    delivery_count: Codes
    state: Codes
    state_error: Codes
    settled_by: Codes
    transaction: Codes
    address: Codes
    message_bytes: Integers
    message_format: Integers
    tag: Texts
    annotations: Texts

    INTEGERS = ("message_bytes", "message_format")
    CODES = "transfers delivery_count state state_error settled_by transaction address".split()
    TEXTS = ("tag", "annotations")
    NAMES = "state state_error settled_by transaction address".split()

    def __init__(self) -> None:
        self.capacity = 0
        self.reader = ByteReader()
        for name in self.CODES:
            setattr(self, name, Codes())
        for name in self.INTEGERS:
            setattr(self, name, Integers())
        for name in self.TEXTS:
            setattr(self, name, Texts())
        self.words = {name: Vocabulary() for name in self.NAMES}
        self.known = {name: ({}, getattr(self, name)) for name in self.NAMES}

    def columns(self) -> Any:
        """Every column by name."""
        return {name: getattr(self, name) for name in (*self.CODES, *self.INTEGERS, *self.TEXTS)}

    def by_name(self) -> Any:
        """Vocabularies by the name of their columns."""
        return self.words

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

    def put_name(self, name: str, row: cython.longlong, text: str) -> cython.int:
        """Write a text that repeats; nothing for None."""
        if text is not None:
            pair: tuple[Any, ...] = self.known[name]
            codes: dict[Any, Any] = pair[0]
            column: Codes = pair[1]
            code = codes.get(text)
            if code is None:
                octets: bytes = text.encode(errors="replace")
                self.reader.read_from(octets)
                code = self.reader.code_in(self.words[name], 0, len(octets))
                if len(codes) < _MAX_KNOWN:
                    codes[text] = code
            column.values[row] = code
        return 0
