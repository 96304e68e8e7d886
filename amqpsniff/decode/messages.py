# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Message rows: one content, with its method's arguments and its properties, as one row.

The content keeps the payloads of its method and header frames in a store of its own; they are read
here, once, when the content is over, so that rows come in the order in which contents end.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import plan, rows
from amqpsniff.decode.oddities import oddity_codes

if cython.compiled:
    from cython.cimports.amqpsniff.decode.memory import (  # type: ignore[import-not-found]
        TableMemory,
    )
    from cython.cimports.amqpsniff.decode.properties import (  # type: ignore[import-not-found]
        PropertyDecoder,
    )
    from cython.cimports.amqpsniff.decode.rows import (  # type: ignore[import-not-found]
        MessageRows,
        Vocabularies,
        copy_name,
        copy_text,
        put_text,
    )
    from cython.cimports.amqpsniff.decode.values import (  # type: ignore[import-not-found]
        ValueReader,
    )
else:
    from amqpsniff.decode.memory import TableMemory
    from amqpsniff.decode.properties import PropertyDecoder
    from amqpsniff.decode.rows import (
        MessageRows,
        Vocabularies,
        copy_name,
        copy_text,
        put_text,
    )
    from amqpsniff.decode.values import ValueReader

_NULL = cython.declare(cython.longlong, NULL)
_COMPLETE = cython.declare(cython.int, rows.COMPLETE)
_TRUNCATED = cython.declare(cython.int, rows.TRUNCATED)
_INCOMPLETE = cython.declare(cython.int, rows.INCOMPLETE)
_FLAGS_CUT = cython.declare(cython.int, plan.FLAGS_CUT)


class MessageWriter:
    """Writes `MessageRows`.

    Args:
        messages: Where the rows go.
        reading: The reading of field-value tags.
        report: Called with (code, half, channel, packet number, ts_ns, detail) for a finding.
        properties: Finds the properties of a content header.
    """

    def __init__(self, messages, reading, report, properties):
        self.messages = messages
        self.reader = ValueReader(messages.headers, reading)
        self.tables = TableMemory()
        self.report = report
        self.properties = properties
        self.flags_of = plan.flag_masks
        self.capture_code = 0
        self.captures = []
        self.capture = None

    def use(self, messages):
        """Write into these rows from now on."""
        self.messages = messages
        self.reader.out = messages.headers

    def write(self, half, content, status, frames):
        """Write the row of a content that is over, when there are so many frames."""
        out: MessageRows = self.messages
        reader: ValueReader = self.reader
        out.reserve()
        row: cython.longlong = out.rows
        if status != _INCOMPLETE and content.body_missing:
            status = _TRUNCATED
        captured: cython.longlong = content.body_seen - content.body_missing
        if captured < 0:
            captured = 0
        elif content.body_size != _NULL and captured > content.body_size:
            captured = content.body_size
        out.capture.values[row] = (
            self.capture_code if content.capture is self.capture else self._capture_of(content)
        )
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
        out.ended_at.values[row] = frames
        self._write_flags(content, row)
        reader.data = content.store.octets
        self._write_names(content, row)
        if not out.wanted:
            out.rows += 1
            return 0
        if content.safe_text is None:
            copy_text(out.reply_text, row, reader, content.text_start, content.text_length)
        else:
            put_text(out.reply_text, row, content.safe_text)
        self._write_properties(half, content, row)
        self._write_body(content, status, row)
        out.rows += 1
        return 0

    def _capture_of(self, content):
        """The code of the capture in which a content began, which is not the present one."""
        if content.capture is None:
            return self.capture_code
        if content.capture not in self.captures:
            self.captures.append(content.capture)
        return self.captures.index(content.capture)

    def _write_names(self, content, row):
        """Write what the method names; its codes are those of its frame if that is in the batch."""
        out: MessageRows = self.messages
        reader: ValueReader = self.reader
        words: Vocabularies = out.vocabularies
        if content.vocabularies is words:
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

    def _write_flags(self, content, row):
        """Write the bit arguments; null where the method has no such, or it was not captured."""
        out: MessageRows = self.messages
        flags: cython.int = content.flags
        has: cython.int = 0 if flags & _FLAGS_CUT else self.flags_of[content.method]
        out.mandatory.values[row] = (flags & 1) if has & 1 else -1
        out.immediate.values[row] = ((flags >> 1) & 1) if has & 2 else -1
        out.redelivered.values[row] = ((flags >> 2) & 1) if has & 4 else -1
        return 0

    def _write_properties(self, half, content, row):
        """Write the property columns."""
        out: MessageRows = self.messages
        reader: ValueReader = self.reader
        found: PropertyDecoder = self.properties
        reader.oddities = 0
        at: cython.longlong = content.header_start + 12
        if content.header_start < 0:
            found.forget()
        elif content.located != found.located:
            found.locate(reader, content.class_id, at, content.header_end)
        words: Vocabularies = out.vocabularies
        self._name(out.content_type, words.content_type, row, at, 0)
        self._name(out.content_encoding, words.content_encoding, row, at, 1)
        if found.starts[2] >= 0:
            out.headers.begin(row)
            self.tables.put_table(
                reader, at + found.starts[2], at + found.starts[2] + found.lengths[2]
            )
            out.headers.end()
        out.delivery_mode.values[row] = self._octet(at, 3)
        out.priority.values[row] = self._octet(at, 4)
        self._text(out.correlation_id, row, at, 5)
        self._name(out.reply_to, words.reply_to, row, at, 6)
        self._name(out.expiration, words.expiration, row, at, 7)
        self._text(out.message_id, row, at, 8)
        out.message_timestamp.values[row] = _NULL
        if found.starts[9] >= 0:
            ms: cython.longlong = reader.timestamp_ms(at + found.starts[9])
            if ms >= 0:
                out.message_timestamp.values[row] = ms * 1000
        self._name(out.type, words.type, row, at, 10)
        self._name(out.user_id, words.user_id, row, at, 11)
        self._name(out.app_id, words.app_id, row, at, 12)
        self._name(out.cluster_id, words.cluster_id, row, at, 13)
        if reader.oddities:
            for code in oddity_codes(reader.oddities):
                where = (half, content.channel, content.number, content.ts_ns)
                self.report(code, *where, "properties")
        return 0

    def _text(self, column, row, at, place):
        """Write the property at a place of the list at `at`, when it is there."""
        start: cython.longlong = self.properties.starts[place]
        if start < 0:
            return 0
        return copy_text(column, row, self.reader, at + start, self.properties.lengths[place])

    def _name(self, column, vocabulary, row, at, place):
        """Write the property at a place of the list at `at`, when it is there, as a code."""
        start: cython.longlong = self.properties.starts[place]
        if start < 0:
            return 0
        length: cython.longlong = self.properties.lengths[place]
        return copy_name(column, vocabulary, row, self.reader, at + start, length)

    def _octet(self, at, place):
        """The value of a one-octet property; -1 when it is absent."""
        start: cython.longlong = self.properties.starts[place]
        return self.reader.data[at + start] if start >= 0 else -1

    def _write_body(self, content, status, row):
        """Write the body and its hash, where they were asked for."""
        out: MessageRows = self.messages
        if content.chunks is not None:
            octets: bytes = b"".join(content.chunks)
            out.body.begin(row)
            out.body.put_bytes(octets)
            out.body.end()
        if content.hash is not None and status == _COMPLETE:
            out.body_sha256.begin(row)
            out.body_sha256.put_bytes(content.hash.hexdigest().encode())
            out.body_sha256.end()
        return 0
