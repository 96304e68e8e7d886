# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The rows a decoder makes: frames and messages, as typed columns.

Strings that belong to a connection, a capture or a method are codes here (indices into lists that
travel with the rows); `amqpsniff.tables` turns them into the columns of the table contract. Text of
arguments and properties is copied from the wire as UTF-8; octets that are not UTF-8 become U+FFFD.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode.oddities import NOT_UTF8

if cython.compiled:
    from cython.cimports.amqpsniff.columns import (  # type: ignore[import-not-found]
        Codes,
        Integers,
        Texts,
    )
else:
    from amqpsniff.columns import Codes, Integers, Texts

_NULL = cython.declare(cython.longlong, NULL)
FIRST_ROWS = 1024
"""Rows that a table has room for at first; it doubles from there."""

COMPLETE, TRUNCATED, INCOMPLETE = 0, 1, 2
STATUS_NAMES = ("complete", "truncated", "incomplete")


def copy_text(column, row, reader, start, count):
    """Write octets of a reader to a row of a text column as UTF-8; nothing when `start` < 0."""
    if start < 0:
        return 0
    column.begin(row)
    if not reader.is_ascii(start, count) and not reader.is_text(start, count):
        octets: bytes = bytes(reader.data[start : start + count])
        reader.oddities |= NOT_UTF8
        column.put_bytes(octets.decode(errors="replace").encode())
    else:
        reader.copy_to(column, start, count)
    return column.end()


def copy_plain(column, row, reader, start, count):
    """Write octets of a reader that are known to be ASCII to a row; nothing when `start` < 0."""
    if start < 0:
        return 0
    column.begin(row)
    reader.copy_to(column, start, count)
    return column.end()


def put_text(column, row, octets):
    """Write a bytes object to a row of a text column as UTF-8."""
    column.begin(row)
    column.put_bytes(octets.decode(errors="replace").encode())
    return column.end()


class FrameRows:
    """Rows of the `frames` table, one per frame; `rows_expected` of them, and
    `octets_expected` of arguments, are made room for.

    When they are not `wanted`, rows are written over one another and none is there in the end.
    """

    def __init__(self, rows_expected=FIRST_ROWS, wanted=True, octets_expected=256):
        self.rows = 0
        self.wanted = wanted
        self.capacity = 0
        self.rows_expected = rows_expected
        self.capture_code = 0
        self.capture = Codes()
        self.connection = Codes()
        self.sender = Codes()
        self.channel = Codes()
        self.frame_type = Codes()
        self.method = Codes()
        self.reply_code = Codes()
        self.packet_number = Integers()
        self.ts_ns = Integers()
        self.stream_offset = Integers()
        self.size = Integers()
        self.delivery_tag = Integers()
        self.arguments = Texts(octets_expected)
        self.exchange = Texts()
        self.routing_key = Texts()
        self.queue = Texts()
        self.consumer_tag = Texts()
        self.reply_text = Texts()

    def columns(self):
        """Every column by name."""
        return {
            name: getattr(self, name)
            for name in (
                "capture connection sender channel frame_type method reply_code packet_number "
                "ts_ns stream_offset size delivery_tag arguments exchange routing_key queue "
                "consumer_tag reply_text"
            ).split()
        }

    def reserve(self):
        """Make room for one more row."""
        if self.rows < self.capacity:
            return 0
        self.capacity = max(self.rows_expected, 2 * self.capacity)
        for column in self.columns().values():
            column.reserve(self.capacity)
        return 0

    def begin(self, connection, sender, number, ts_ns, offset, channel, frame_type, size):
        """Write what every frame has."""
        row: cython.longlong = self.rows
        self.connection.values[row] = connection
        self.sender.values[row] = sender
        self.packet_number.values[row] = number
        self.ts_ns.values[row] = ts_ns
        self.stream_offset.values[row] = offset
        self.channel.values[row] = channel
        self.frame_type.values[row] = frame_type
        self.size.values[row] = size
        self.capture.values[row] = self.capture_code
        self.method.values[row] = -1
        self.reply_code.values[row] = -1
        self.delivery_tag.values[row] = _NULL
        return 0

    def end_plain(self):
        """Close the row of a frame that has no method."""
        if self.wanted:
            self.rows += 1
        return 0

    def end_method(self, method, decoder, reader):
        """Close the row of a method frame whose arguments are in the open row of `arguments`."""
        row: cython.longlong = self.rows
        if not self.wanted:
            self.arguments.used = 0
            return 0
        self.method.values[row] = method
        self.reply_code.values[row] = decoder.reply_code
        self.delivery_tag.values[row] = decoder.delivery_tag
        self.arguments.end()
        if decoder.plain:
            copy_plain(self.exchange, row, reader, decoder.starts[1], decoder.lengths[1])
            copy_plain(self.routing_key, row, reader, decoder.starts[2], decoder.lengths[2])
            copy_plain(self.queue, row, reader, decoder.starts[3], decoder.lengths[3])
            copy_plain(self.consumer_tag, row, reader, decoder.starts[4], decoder.lengths[4])
        else:
            copy_text(self.exchange, row, reader, decoder.starts[1], decoder.lengths[1])
            copy_text(self.routing_key, row, reader, decoder.starts[2], decoder.lengths[2])
            copy_text(self.queue, row, reader, decoder.starts[3], decoder.lengths[3])
            copy_text(self.consumer_tag, row, reader, decoder.starts[4], decoder.lengths[4])
        if decoder.safe_text is None:
            copy_text(self.reply_text, row, reader, decoder.starts[5], decoder.lengths[5])
        else:
            put_text(self.reply_text, row, decoder.safe_text)
        self.rows += 1
        return 0


class MessageRows:
    """Rows of the `messages` table, one per content; `rows_expected` are made room for.

    When they are not `wanted`, no row is written.
    """

    TEXTS = (
        "content_type content_encoding headers correlation_id reply_to expiration message_id "
        "type user_id app_id cluster_id exchange routing_key consumer_tag reply_text body "
        "body_sha256"
    ).split()
    CODES = (
        "capture connection sender channel method reply_code redelivered mandatory immediate "
        "delivery_mode priority status"
    ).split()
    INTEGERS = (
        "packet_number ts_ns last_packet_number delivery_tag message_timestamp body_size "
        "body_captured"
    ).split()

    def __init__(self, rows_expected=FIRST_ROWS, wanted=True):
        self.rows = 0
        self.wanted = wanted
        self.capacity = 0
        self.rows_expected = rows_expected
        for name in self.TEXTS:
            setattr(self, name, Texts())
        for name in self.CODES:
            setattr(self, name, Codes())
        for name in self.INTEGERS:
            setattr(self, name, Integers())

    def columns(self):
        """Every column by name."""
        return {name: getattr(self, name) for name in self.CODES + self.INTEGERS + self.TEXTS}

    def reserve(self):
        """Make room for one more row."""
        if self.rows < self.capacity:
            return 0
        self.capacity = max(self.rows_expected, 2 * self.capacity)
        for column in self.columns().values():
            column.reserve(self.capacity)
        return 0
