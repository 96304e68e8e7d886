# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Columns of messages that only deliveries of AMQP 1.0 have.

They are an attribute of the rows of a batch with such deliveries (`MessageRows.deliveries`); other
batches have none. The decoder writes the delivery's own fields, the session its outcome.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers, Texts, Vocabulary
from cython.cimports.amqpsniff.decode.octets import code_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_KNOWN = 1024
"""Texts of a column whose codes are remembered: outcomes, conditions, addresses that repeat."""

MAX_TEXT_BYTES = 256 * 1024
"""Bytes of texts that repeat with which columns are used again."""

_MAX_KNOWN = cython.declare(cython.int, MAX_KNOWN)


@cython.cclass
class Names(Codes):
    """Codes of texts that repeat, with their vocabulary `words`; `last` was written last."""

    last_code: cython.int

    words: Vocabulary
    known: dict[Any, Any]
    last: str

    def __init__(self) -> None:
        Codes.__init__(self)
        self.words = Vocabulary()
        self.known = {}
        self.last = None
        self.last_code = -1

    @cython.ccall
    @cython.exceptval(-1)
    def put(self, row: cython.longlong, text: str) -> cython.int:
        """Write a text; nothing for None."""
        if text is None:
            return 0
        if text is not self.last:
            code = self.known.get(text)
            if code is None:
                code = code_of(self.words, text.encode(errors="replace"))
                if len(self.known) < _MAX_KNOWN:
                    self.known[text] = code
            self.last_code = code
            self.last = text
        self.values[row] = self.last_code
        return 0


@cython.cclass
class SideColumns:
    """Columns that hang on the rows of one batch of messages, by the names that a class gives them:
    `NAMES`, `CODES`, `INTEGERS` and `TEXTS`; `made` are those that are made.
    """

    capacity: cython.longlong
    made: dict[Any, Any]

    NAMES: tuple[str, ...] = ()
    CODES: tuple[str, ...] = ()
    INTEGERS: tuple[str, ...] = ()
    TEXTS: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.capacity = 0
        self.made = {}
        kinds = ((self.NAMES, Names), (self.CODES, Codes), (self.INTEGERS, Integers))
        for names, kind in (*kinds, (self.TEXTS, Texts)):
            for name in names:
                self.made[name] = kind()
                setattr(self, name, self.made[name])

    def columns(self) -> Any:
        """Every column by name."""
        return self.made

    def by_name(self) -> Any:
        """Vocabularies by the name of their columns."""
        return {name: self.made[name].words for name in self.NAMES if name in self.made}

    def octets(self) -> Any:
        """Bytes of texts."""
        return sum([self.made[name].used for name in self.TEXTS if name in self.made])

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self, rows: cython.longlong) -> cython.int:
        """Make room for as many rows as their messages have."""
        if rows > self.capacity:
            for column in self.made.values():
                column.reserve(rows)
            self.capacity = rows
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def clear(self, rows: cython.longlong) -> cython.bint:
        """Forget the first `rows` rows; false (nothing done) where there are many texts."""
        if sum([words.used for words in self.by_name().values()]) > MAX_TEXT_BYTES:
            return False
        for column in self.made.values():
            column.clear(rows)
        return True


@cython.cclass
class DeliveryColumns(SideColumns):
    """Columns of deliveries; null in other rows. If not `all_columns`, only addresses are made.

    `answers` are the bodies of short answers of RabbitMQ's management, by ordinal, for rules.
    """

    all_columns: cython.bint
    answers: dict[Any, Any]

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

    def __init__(self, all_columns: Any) -> None:
        SideColumns.__init__(self)
        self.all_columns = all_columns
        self.answers = {}
        if not all_columns:
            self.made = {"address": self.address}
