# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Message rows: one content, with its method's arguments and its properties, as one row.

The content keeps the payloads of its method and header frames in a store of its own; they are read
here, once, when the content is over, so that rows come in the order in which contents end.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.columns import Octets
from cython.cimports.amqpsniff.decode.cache import TableCache
from cython.cimports.amqpsniff.decode.codes import COMPLETE, INCOMPLETE, TRUNCATED
from cython.cimports.amqpsniff.decode.meanings import MeaningWriter, NoteWriter
from cython.cimports.amqpsniff.decode.method_layout import FLAGS_CUT
from cython.cimports.amqpsniff.decode.properties import PropertyDecoder
from cython.cimports.amqpsniff.decode.rows import (
    MessageRows,
    Vocabularies,
    copy_name,
    copy_text,
    put_text,
)
from cython.cimports.amqpsniff.decode.values import ValueReader
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode import method_layout
from amqpsniff.decode.meanings import READS
from amqpsniff.decode.values import OUT_OF_RANGE, oddity_codes, oddity_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Codes, Texts, Vocabulary
    from amqpsniff.decode.state import Content, Half
    from amqpsniff.options import Options
    from amqpsniff.packs import Packs
    from amqpsniff.plan import Plan


@cython.cclass
class MessageWriter:
    """Writes `MessageRows`.

    Args:
        plan, options, packs: See `Decoder`.
        report: Called for a finding; see `Decoder._report`.
        messages: Where the rows go.
        properties: Finds the properties of a content header.
    """

    keep_bodies: cython.bint
    reads_every_body: cython.bint
    report: Any
    capture_code: cython.int
    batch: cython.longlong

    messages: MessageRows
    reader: ValueReader
    tables: TableCache
    properties: PropertyDecoder
    meanings: MeaningWriter
    notes: NoteWriter
    calls: NoteWriter
    captures: list[Any]
    capture: Any
    flags_of: cython.int[::1]

    def __init__(
        self,
        plan: Plan,
        options: Options,
        packs: Packs | None,
        report: Any,
        messages: Any,
        properties: Any,
    ) -> None:
        self.messages = messages
        self.reader = ValueReader(messages.headers, options.table_dialect)
        self.tables = TableCache()
        self.report = report
        self.properties = properties
        self.keep_bodies = options.bodies
        self.meanings = MeaningWriter(packs) if packs is not None and plan.meanings else None
        self.notes = NoteWriter(packs, False) if packs is not None and plan.judged else None
        self.calls = NoteWriter(packs, True) if packs is not None and plan.links else None
        self.reads_every_body = self.meanings is not None or self.calls is not None
        self.flags_of = method_layout.flag_masks
        self.batch = 0
        self.capture_code = 0
        self.captures = []
        self.capture = None

    def use(self, messages: Any) -> None:
        """Write into these rows from now on."""
        self.messages = messages
        self.batch += 1
        self.reader.out = messages.headers

    def write(
        self,
        half: Half,
        content: Content,
        status: cython.int,
        sound: cython.longlong,
        frames: cython.longlong,
    ) -> cython.int:
        """Write the row of a content that is over; `frames` is the number of frame rows so far.

        Bytes of the body after the first `sound` are not believed.
        """
        out: MessageRows = self.messages
        reader: ValueReader = self.reader
        if out.wanted or content.batch != self.batch:
            # Before the columns: references are counted with a barrier, which waits for writes.
            reader.data = content.store.octets
        if out.rows >= out.capacity:
            out.reserve()
        row: cython.longlong = out.rows
        if status != INCOMPLETE and content.body_missing:
            status = TRUNCATED
        captured: cython.longlong = content.body_seen - content.body_missing
        if captured < 0:
            captured = 0
        elif content.body_size != NULL and captured > content.body_size:
            captured = content.body_size
        has: cython.int = 0 if content.flags & FLAGS_CUT else self.flags_of[content.method]
        capture: cython.int = self.capture_code
        if content.capture is not self.capture:
            capture = self.code_of(content.capture)
        if row >= out.capacity:
            raise IndexError("no room for a row")
        with cython.boundscheck(False):  # every column has room for as many rows
            out.capture.values[row] = capture
            out.connection.values[row] = half.connection.row_code
            out.sender.values[row] = (
                -1 if half.connection.client_direction < 0
                else half.direction ^ half.connection.client_direction
            )  # fmt: skip
            out.channel.values[row] = content.channel
            out.method.values[row] = content.method
            out.reply_code.values[row] = content.reply_code
            out.packet_number.values[row] = content.number
            out.ts_ns.values[row] = content.ts_ns
            out.last_packet_number.values[row] = content.last_number
            out.delivery_tag.values[row] = content.delivery_tag
            out.body_size.values[row] = content.body_size
            out.body_captured.values[row] = captured
            out.status.values[row] = status
            out.ordinal.values[row] = content.ordinal
            out.mark.values[row] = content.mark
            if content.body_marking and status == COMPLETE and content.body_missing == 0:
                out.body_mark.values[row] = content.body_mark >> 1
            out.ended_at.values[row] = frames
            # the bit arguments: null where the method has no such, or it was not captured
            out.mandatory.values[row] = content.flags & 1 if has & 1 else -1
            out.immediate.values[row] = content.flags >> 1 & 1 if has & 2 else -1
            out.redelivered.values[row] = content.flags >> 2 & 1 if has & 4 else -1
        self._write_names(content, row)
        if not out.wanted:
            out.rows += 1
            return 0
        if content.safe_text is None:
            copy_text(out.reply_text, row, reader, content.text_start, content.text_length)
        else:
            put_text(out.reply_text, row, content.safe_text)
        self._write_properties(half, content, row)
        self._write_body(content, status, sound, row)
        if self.notes is not None or self.reads_every_body:
            body: Octets = content.body if content.keeping else None
            kept: cython.longlong = 0 if body is None else min(body.used, sound)
            reads: cython.int = half.connection.reads_bodies
            if self.notes is not None:
                self.notes.note(out, row, body, kept, reads, self.tables)
            if self.calls is not None:
                self.calls.note(out, row, body, kept, True, self.tables)
            if self.meanings is not None:
                self.meanings.write(out, row, body, kept, self.tables)
            if reads == 0 and self.notes is not None and self.notes.wants_body:
                half.connection.reads_bodies = READS
        out.rows += 1
        return 0

    @cython.exceptval(-2)
    def code_of(self, capture: Any) -> cython.int:
        """The code of the capture in which a message began; None for the present one."""
        if capture is None or capture is self.capture:
            return self.capture_code
        if capture not in self.captures:
            self.captures.append(capture)
        return self.captures.index(capture)

    def _write_names(self, content: Content, row: cython.longlong) -> cython.int:
        """Write the names of the method; with the codes of its frame if that is in the batch."""
        out: MessageRows = self.messages
        reader: ValueReader = self.reader
        words: Vocabularies = out.vocabularies
        if content.batch == self.batch:
            out.exchange.values[row] = content.exchange
            out.routing_key.values[row] = content.routing_key
            out.consumer_tag.values[row] = content.consumer_tag
            return 0
        copy_name(
            out.exchange,
            words.exchange,
            row,
            reader,
            content.exchange_start,
            content.exchange_length,
        )
        copy_name(
            out.routing_key, words.routing_key, row, reader, content.key_start, content.key_length
        )
        copy_name(
            out.consumer_tag, words.consumer_tag, row, reader, content.tag_start, content.tag_length
        )
        return 0

    def _write_properties(self, half: Half, content: Content, row: cython.longlong) -> cython.int:
        """Write the columns of properties that are made."""
        out: MessageRows = self.messages
        reader: ValueReader = self.reader
        found: PropertyDecoder = self.properties
        if content.header_start < 0 or out.made == 0:
            return 0
        reader.oddities = 0
        at: cython.longlong = content.header_start + 12
        if content.located != found.located:
            found.locate(reader, content.class_id, at, content.header_end)
        words: Vocabularies = out.vocabularies
        there: cython.int = found.present & out.made
        if there & 1:
            self._name(out.content_type, words.content_type, row, at, 0)
        if there & 1 << 1:
            self._name(out.content_encoding, words.content_encoding, row, at, 1)
        if there & 1 << 2:
            out.headers.begin(row)
            self.tables.put_table(
                reader, at + found.starts[2], at + found.starts[2] + found.lengths[2]
            )
            out.headers.end()
        if there & 1 << 3:
            out.delivery_mode.values[row] = reader.data[at + found.starts[3]]
        if there & 1 << 4:
            out.priority.values[row] = reader.data[at + found.starts[4]]
        if there & 1 << 5:
            self._text(out.correlation_id, row, at, 5)
        if there & 1 << 6:
            self._name(out.reply_to, words.reply_to, row, at, 6)
        if there & 1 << 7:
            self._name(out.expiration, words.expiration, row, at, 7)
        if there & 1 << 8:
            self._text(out.message_id, row, at, 8)
        if there & 1 << 9:
            ms: cython.longlong = reader.timestamp_ms(at + found.starts[9])
            if ms >= 0:
                out.message_timestamp.values[row] = ms * 1000
            else:
                reader.oddities |= OUT_OF_RANGE
        if there & 1 << 10:
            self._name(out.type, words.type, row, at, 10)
        if there & 1 << 11:
            self._name(out.user_id, words.user_id, row, at, 11)
        if there & 1 << 12:
            self._name(out.app_id, words.app_id, row, at, 12)
        if there & 1 << 13:
            self._name(out.cluster_id, words.cluster_id, row, at, 13)
        if reader.oddities:
            for code in oddity_codes(reader.oddities):
                where = f"properties of {method_layout.method_name(content.method)}"
                detail = oddity_text(code, where, reader.strange_tag)
                self.report(code, half, detail, content.place())
        return 0

    def _text(
        self, column: Texts, row: cython.longlong, at: cython.longlong, place: cython.int
    ) -> cython.int:
        """Write the property at a place of the list at `at`."""
        start: cython.longlong = at + self.properties.starts[place]
        return copy_text(column, row, self.reader, start, self.properties.lengths[place])

    def _name(
        self,
        column: Codes,
        vocabulary: Vocabulary,
        row: cython.longlong,
        at: cython.longlong,
        place: cython.int,
    ) -> cython.int:
        """Write the property at a place of the list at `at` as a code."""
        start: cython.longlong = at + self.properties.starts[place]
        length: cython.longlong = self.properties.lengths[place]
        return copy_name(column, vocabulary, row, self.reader, start, length)

    def _write_body(
        self, content: Content, status: cython.int, sound: cython.longlong, row: cython.longlong
    ) -> cython.int:
        """Write the body and its hash, where they were asked for."""
        out: MessageRows = self.messages
        if content.keeping and self.keep_bodies:
            out.body.begin(row)
            out.body.put_from(content.body, 0, min(content.body.used, sound))
            out.body.end()
        if content.hash is not None and status == COMPLETE:
            out.body_sha256.begin(row)
            out.body_sha256.put_bytes(content.hash.hexdigest().encode())
            out.body_sha256.end()
        return 0
