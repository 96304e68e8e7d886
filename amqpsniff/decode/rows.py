# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The rows a decoder makes: frames and messages, as typed columns.

Strings that belong to a connection, a capture or a method are codes here (indices into lists that
travel with the rows), and so are texts that repeat (codes of a vocabulary); `amqpsniff.tables`
turns them into the columns of the table contract. Text of arguments and properties is copied from
the wire as UTF-8; bytes that are not UTF-8 become U+FFFD.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Codes, Integers, Texts, Vocabulary
from cython.cimports.amqpsniff.decode.codes import INCOMPLETE
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.octets import NOT_UTF8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.methods import DecodedMethod
    from amqpsniff.decode.values import ValueReader

FIRST_ROWS = 1024
"""Rows of a new table's first allocation, which doubles from there."""


PROPERTIES = (
    "content_type content_encoding headers delivery_mode priority correlation_id reply_to "
    "expiration message_id timestamp type user_id app_id cluster_id"
).split()
"""Properties that the messages table has, in the order of `starts`."""


def _names(text: Any) -> Any:
    """The words of a text."""
    return tuple(text.split())


def as_many(count: Any) -> Any:
    """Room for as many again, and some more: batches of one capture are alike."""
    return max(FIRST_ROWS, count + count // 8)


@cython.ccall
def copy_text(
    column: Texts,
    row: cython.longlong,
    reader: ValueReader,
    start: cython.longlong,
    count: cython.longlong,
) -> cython.int:
    """Write bytes of a reader to a row of a text column as UTF-8; nothing when `start` < 0."""
    if start < 0:
        return 0
    if column.rows < row:
        column.begin(row)
    if not reader.is_ascii(start, count) and not reader.is_text(start, count):
        octets: bytes = reader.bytes_at(start, count)
        reader.oddities |= NOT_UTF8
        column.put_bytes(octets.decode(errors="replace").encode())
    else:
        reader.copy_to(column, start, count)
    return column.end()


@cython.ccall
def copy_name(
    column: Codes,
    vocabulary: Vocabulary,
    row: cython.longlong,
    reader: ValueReader,
    start: cython.longlong,
    count: cython.longlong,
) -> cython.int:
    """Write the code that bytes of a reader have in a vocabulary; nothing when `start` < 0."""
    if start >= 0:
        column.values[row] = reader.code_in(vocabulary, start, count)
    return 0


@cython.ccall
def put_text(column: Texts, row: cython.longlong, octets: bytes | None) -> cython.int:
    """Write a bytes object to a row of a text column as UTF-8."""
    column.begin(row)
    column.put_bytes(octets.decode(errors="replace").encode())
    return column.end()


@cython.cclass
class Vocabularies:
    """The texts that repeat, of the rows of one batch: one vocabulary a column.

    Both tables share them, so that a message's exchange is the one of its method's frame.
    """

    exchange: Vocabulary
    routing_key: Vocabulary
    queue: Vocabulary
    consumer_tag: Vocabulary
    content_type: Vocabulary
    content_encoding: Vocabulary
    reply_to: Vocabulary
    expiration: Vocabulary
    type: Vocabulary
    user_id: Vocabulary
    app_id: Vocabulary
    cluster_id: Vocabulary

    NAMES = _names(
        "exchange routing_key queue consumer_tag content_type content_encoding reply_to expiration "
        "type user_id app_id cluster_id"
    )

    def __init__(self) -> None:
        for name in self.NAMES:
            setattr(self, name, Vocabulary())

    def count(self) -> Any:
        """Distinct texts in all."""
        return sum(getattr(self, name).count for name in self.NAMES)

    def octets(self) -> Any:
        """Bytes of all of them."""
        return sum([getattr(self, name).used for name in self.NAMES])

    def by_name(self) -> Any:
        """Every vocabulary by the name of its columns."""
        return {name: getattr(self, name) for name in self.NAMES}


@cython.cclass
class Rows:
    """Rows of a table as columns, whose names are in `CODES`, `INTEGERS` and `TEXTS`; those in
    `WRITTEN` are written in every row.

    There is room for `rows_expected` at first. Rows that are not `wanted` are for the session only.
    The columns `unmade` stay empty. `pending` counts rows that
    may still change, which are `waiting`; none does once they were `given` out. Before its first
    row there were `first` others.
    """

    rows: cython.longlong
    first: cython.longlong
    capacity: cython.longlong
    rows_expected: cython.longlong
    pending: cython.longlong
    wanted: cython.bint
    given: cython.bint
    unmade: Any

    vocabularies: Vocabularies
    waiting: Codes

    CODES: tuple[str, ...] = ()
    INTEGERS: tuple[str, ...] = ()
    TEXTS: tuple[str, ...] = ()
    WRITTEN: frozenset[str] = frozenset()

    def __init__(
        self, vocabularies: Any, rows_expected: Any, wanted: Any, unmade: Any = frozenset()
    ) -> None:
        self.rows = self.first = 0
        self.pending = 0
        self.given = False
        self.wanted = wanted
        self.unmade = unmade
        self.capacity = 0
        self.rows_expected = rows_expected
        self.vocabularies = vocabularies
        for name in self.CODES:
            setattr(self, name, Codes(name not in self.WRITTEN))
        for name in self.INTEGERS:
            setattr(self, name, Integers(name not in self.WRITTEN))
        for name in self.TEXTS:
            setattr(self, name, Texts())

    def columns(self) -> Any:
        """Every column that is made by name."""
        names = self.CODES + self.INTEGERS + self.TEXTS
        return {name: getattr(self, name) for name in names if name not in self.unmade}

    def octets(self) -> Any:
        """Bytes of texts."""
        return sum([getattr(self, name).used for name in self.TEXTS])

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self) -> cython.int:
        """Make room for one more row."""
        if self.rows < self.capacity:
            return 0
        self.capacity = max(self.rows_expected, 2 * self.capacity)
        for column in self.columns().values():
            column.reserve(self.capacity)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def rewind(self) -> cython.int:
        """Forget every row."""
        if self.rows == 0:
            return 0
        for column in self.columns().values():
            column.clear(self.rows)
        self.first += self.rows
        self.rows = 0
        return 0

    def name_at(self, column: str, row: cython.longlong) -> Any:
        """The text of a code of a row, by the name of its column; None for null, and for a row that
        was given out or packed.
        """
        codes: Codes = getattr(self, column)
        if codes is None or row >= len(codes.values):
            return None
        words: Vocabulary = getattr(self.vocabularies, column)
        return words.text(codes.values[row])

    @cython.ccall
    @cython.exceptval(-1)
    def wait(self, row: cython.longlong) -> cython.int:
        """A row may still change."""
        self.pending += 1
        if self.wanted and not self.given:
            self.waiting.values[row] = 1
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def settle(self, row: cython.longlong) -> cython.int:
        """A row that could change is final."""
        self.pending -= 1
        if self.wanted and not self.given:
            self.waiting.values[row] = 0
        return 0

    def give(self) -> Any:
        """These rows as another object, to be given out.

        Messages that wait for their outcome still refer to this object, which has no columns then:
        else one message that is never settled would hold a batch of them.
        """
        batch = type(self)(self.vocabularies, 1, self.wanted)
        batch.unmade = self.unmade
        for name in self.CODES + self.INTEGERS + self.TEXTS:
            setattr(batch, name, getattr(self, name))
            setattr(self, name, None)
        batch.rows, batch.pending, batch.capacity = self.rows, self.pending, self.capacity
        batch.given = self.given = True
        self.vocabularies = None
        return batch


_MOMENT_BITS = cython.declare(cython.int, 20)
_MAX_MOMENTS = cython.declare(cython.longlong, (1 << 20) - 1)


@cython.cclass
class FrameRows(Rows):
    """Rows of the `frames` table, one per frame; `rows_expected` of them, and
    `bytes_expected` of arguments, are made room for.

    The methods that come with every message have their arguments as JSON only if `wanted`.
    `performatives` are those of the rows of AMQP 1.0, in order: the session has not come to those
    from `performatives_taken` to `performatives_made`; the others are objects to be used again.
    """

    capture_code: cython.int
    moments: cython.longlong
    performatives_made: cython.longlong
    performatives_taken: cython.longlong

    performatives: list[Any]
    capture: Codes
    connection: Codes
    sender: Codes
    channel: Codes
    frame_type: Codes
    method: Codes
    reply_code: Codes
    flags: Codes
    exchange: Codes
    routing_key: Codes
    queue: Codes
    consumer_tag: Codes
    packet_number: Integers
    ts_ns: Integers
    stream_offset: Integers
    size: Integers
    delivery_tag: Integers
    response_packet_number: Integers
    response_ns: Integers
    arguments: Texts
    reply_text: Texts

    CODES = _names(
        "capture connection sender channel frame_type method reply_code flags exchange routing_key "
        "queue consumer_tag waiting"
    )
    INTEGERS = _names(
        "packet_number ts_ns stream_offset size delivery_tag response_packet_number response_ns"
    )
    TEXTS = ("arguments", "reply_text")
    WRITTEN = frozenset(
        _names(
            "capture connection sender channel frame_type packet_number ts_ns stream_offset size"
        )
    )

    def __init__(
        self,
        vocabularies: Any,
        rows_expected: Any = FIRST_ROWS,
        wanted: Any = True,
        bytes_expected: Any = 256,
    ) -> None:
        Rows.__init__(self, vocabularies, rows_expected, wanted)
        self.capture_code = 0
        self.moments = 0
        self.arguments = Texts(bytes_expected)
        self.performatives = []
        self.performatives_made = self.performatives_taken = 0

    @cython.cfunc
    def next_performative(self) -> Any:
        """Take the first of the performatives that the session has not come to."""
        performative: Any = self.performatives[self.performatives_taken]
        self.performatives_taken += 1
        if self.performatives_taken == self.performatives_made:
            self.performatives_made = self.performatives_taken = 0
        return performative

    @cython.ccall
    @cython.exceptval(-1)
    def follow(self, previous: FrameRows) -> cython.int:
        """These rows come after others."""
        self.first = previous.first + previous.rows
        self.moments = previous.moments
        return 0

    def moment(self) -> cython.longlong:
        """A number for now: it grows with every row of all, and with every call."""
        self.moments = (self.moments + 1) & _MAX_MOMENTS
        return ((self.first + self.rows) << _MOMENT_BITS) | self.moments

    def open_arguments(self) -> cython.int:
        """Begin to write arguments of the next row."""
        if self.rows >= self.capacity:
            self.reserve()
        return self.arguments.begin(self.rows)

    def end_method(
        self, facts: DecodedMethod, reader: ValueReader, at: cython.longlong
    ) -> cython.int:
        """Close the row of a method frame with its payload at `at`.

        Its arguments are in the open row of `arguments`.
        """
        row: cython.longlong = self.rows
        words: Vocabularies = self.vocabularies
        self.method.values[row] = facts.method
        self.reply_code.values[row] = facts.reply_code
        self.delivery_tag.values[row] = facts.delivery_tag
        self.flags.values[row] = facts.flags
        if facts.has_json:
            self.arguments.end()
        self._name(self.exchange, words.exchange, facts, 1, reader, at)
        self._name(self.routing_key, words.routing_key, facts, 2, reader, at)
        self._name(self.queue, words.queue, facts, 3, reader, at)
        self._name(self.consumer_tag, words.consumer_tag, facts, 4, reader, at)
        if facts.safe_text is not None:
            put_text(self.reply_text, row, facts.safe_text)
        elif facts.starts[5] >= 0:
            copy_text(self.reply_text, row, reader, at + facts.starts[5], facts.lengths[5])
        self.rows += 1
        return 0

    def _name(
        self,
        column: Codes,
        vocabulary: Vocabulary,
        facts: DecodedMethod,
        role: cython.int,
        reader: ValueReader,
        at: cython.longlong,
    ) -> cython.int:
        """Write the text that a method has for a role as a code."""
        if facts.starts[role] >= 0:
            start: cython.longlong = at + facts.starts[role]
            copy_name(column, vocabulary, self.rows, reader, start, facts.lengths[role])
        return 0


_PROPERTIES = tuple("message_timestamp" if name == "timestamp" else name for name in PROPERTIES)


@cython.cclass
class MessageRows(Rows):
    """Rows of the `messages` table, one per content; `rows_expected` of them, and
    `bytes_expected` of headers, are made room for.

    Properties and bodies are written only if `wanted`. Besides the table's columns a row has the
    `ordinal` of its content among all opened contents; a `mark`, equal for equal properties and
    body size (0 if not captured, negative if incomplete); for a publish that the broker may return
    a `body_mark`, equal for equal bodies (`NULL` if not captured); and `ended_at`, the number of
    frames at its end. `made` has a bit for each of `PROPERTIES` that is written, from the lowest.
    `links` are `amqpsniff.session.link_recorder.LinkColumns`, None without links, `deliveries`
    those of `amqp10.columns`, `meanings` those of `meanings`; `notes` and `calls` are written by
    its `NoteWriter`, None without any.
    """

    made: cython.int

    capture: Codes
    connection: Codes
    sender: Codes
    channel: Codes
    method: Codes
    reply_code: Codes
    redelivered: Codes
    mandatory: Codes
    immediate: Codes
    delivery_mode: Codes
    priority: Codes
    status: Codes
    outcome: Codes
    exchange: Codes
    routing_key: Codes
    queue: Codes
    consumer_tag: Codes
    content_type: Codes
    content_encoding: Codes
    reply_to: Codes
    expiration: Codes
    type: Codes
    user_id: Codes
    app_id: Codes
    cluster_id: Codes
    packet_number: Integers
    ts_ns: Integers
    last_packet_number: Integers
    delivery_tag: Integers
    message_timestamp: Integers
    body_size: Integers
    body_captured: Integers
    publish_number: Integers
    outcome_packet_number: Integers
    outcome_ns: Integers
    ordinal: Integers
    mark: Integers
    body_mark: Integers
    ended_at: Integers
    links: Any
    deliveries: Any
    meanings: Any
    notes: dict[Any, Any]
    calls: dict[Any, Any]
    headers: Texts
    correlation_id: Texts
    message_id: Texts
    reply_text: Texts
    body: Texts
    body_sha256: Texts

    TEXTS = _names("headers correlation_id message_id reply_text body body_sha256")
    CODES = (
        _names(
            "capture connection sender channel method reply_code redelivered mandatory immediate "
            "delivery_mode priority status outcome waiting"
        )
        + Vocabularies.NAMES
    )
    INTEGERS = _names(
        "packet_number ts_ns last_packet_number delivery_tag message_timestamp body_size "
        "body_captured publish_number outcome_packet_number outcome_ns ordinal mark ended_at "
        "body_mark"
    )
    WRITTEN = frozenset(
        _names(
            "capture connection sender channel method reply_code redelivered mandatory immediate "
            "status packet_number ts_ns last_packet_number delivery_tag body_size body_captured "
            "ordinal mark ended_at"
        )
    )

    PROPERTIES = _PROPERTIES
    """Columns of properties, in the order of these on the wire; those that may stay `unmade`."""

    def __init__(
        self,
        vocabularies: Any,
        rows_expected: Any = FIRST_ROWS,
        wanted: Any = True,
        bytes_expected: Any = 256,
        unmade: Any = frozenset(),
    ) -> None:
        Rows.__init__(self, vocabularies, rows_expected, wanted, unmade)
        self.headers = Texts(bytes_expected)
        self.links = self.deliveries = self.meanings = None
        self.notes = self.calls = None
        self.made = 0
        for index, name in enumerate(self.PROPERTIES):
            if name not in unmade:
                self.made |= 1 << index

    def sent(self, row: cython.longlong) -> cython.longlong:
        """Bytes of a body that were sent: its size, or the captured bytes if it is incomplete;
        `NULL` if its header is missing.
        """
        size: cython.longlong = self.body_size.values[row]
        if size != NULL and self.status.values[row] == INCOMPLETE:
            return self.body_captured.values[row]
        return size

    @cython.ccall
    @cython.exceptval(-1)
    def reserve(self) -> cython.int:
        """Make room for one more row."""
        Rows.reserve(self)
        if self.meanings is not None:
            self.meanings.reserve(self.capacity)
        if self.deliveries is not None:
            self.deliveries.reserve(self.capacity)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def rewind(self) -> cython.int:
        """Forget every row."""
        self.meanings = self.notes = self.calls = None
        if self.deliveries is not None and not self.deliveries.clear(self.rows):
            self.deliveries = None
        return Rows.rewind(self)

    def octets(self) -> Any:
        """Bytes of texts."""
        columns = (self.deliveries, self.meanings)
        return Rows.octets(self) + sum([rows.octets() for rows in columns if rows is not None])

    def give(self) -> Any:
        """These rows as another object, with their links; see `Rows.give`."""
        batch = Rows.give(self)
        batch.links, batch.deliveries = self.links, self.deliveries
        batch.meanings = self.meanings
        self.links = self.deliveries = self.meanings = self.notes = self.calls = None
        return batch
