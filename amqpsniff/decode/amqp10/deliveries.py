# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Deliveries: the payloads of the transfers of one message, put together.

A message is the payload of one or more transfers of a link, between which those of other links may
stand. It is a row of sections. Those before the body are kept until the message is over; bodies
are read as they come, by the size that their section begins with, so that no size of a message
needs its bytes in memory.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.byteorder import u32
from cython.cimports.amqpsniff.columns import Codes, Octets, Texts, Vocabulary
from cython.cimports.amqpsniff.decode.amqp10.columns import DeliveryColumns
from cython.cimports.amqpsniff.decode.amqp10.performatives import Performative, PerformativeDecoder
from cython.cimports.amqpsniff.decode.amqp10.values import TypedReader, ValueCache
from cython.cimports.amqpsniff.decode.codes import ABORTED, COMPLETE, INCOMPLETE, TRUNCATED
from cython.cimports.amqpsniff.decode.contents import ContentAssembler, MessageWriter
from cython.cimports.amqpsniff.decode.method_layout import RECEIVE, SEND
from cython.cimports.amqpsniff.decode.rows import (
    MessageRows,
    Vocabularies,
    copy_text,
    put_text,
)
from cython.cimports.amqpsniff.decode.state import Connection, StreamBuffer
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.amqp10.values import WIDTHS, uuid_text
from amqpsniff.decode.meanings import MAX_BODY_BYTES
from amqpsniff.decode.state import MAX_KEPT_BYTES
from amqpsniff.spec.amqp10 import TOKEN_OPERATION, TOKEN_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.meanings import MeaningWriter
    from amqpsniff.decode.state import Half, MemoryBudget
    from amqpsniff.plan import Plan

MAX_SECTION_BYTES = 1024 * 1024
"""Largest section before the body that is kept; what is larger ends the reading of its message."""

_MAX_DESCRIPTOR = cython.declare(cython.longlong, 512)
"""Longest beginning of a section that is waited for: a descriptor and a constructor."""

_MAX_OPEN = cython.declare(cython.longlong, 1024)
"""Deliveries under way of one direction: one a link; more are given up, the oldest first."""

_MAX_TAG = cython.declare(cython.longlong, 64)
"""Bytes of a delivery tag that are written; the standard allows 32."""

_MAX_ANSWER = cython.declare(cython.longlong, 1024)
"""Bytes of the largest answer of RabbitMQ's management that rules are told, and number of those
that wait for them; an error is a sentence."""

_MAX_ALL_OPEN = cython.declare(cython.longlong, 65_536)
"""The same of all connections, some 1 KB each; more are cut at their first transfer."""

_MAX_SECTION = cython.declare(cython.longlong, MAX_SECTION_BYTES)
_MAX_READ = cython.declare(cython.longlong, MAX_BODY_BYTES)
_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_BYTES)

# sections, by their descriptor less that of the first
_FIRST_SECTION = cython.declare(cython.int, 0x70)
_HEADER = cython.declare(cython.int, 0)
_PROPERTIES = cython.declare(cython.int, 3)
_APPLICATION_PROPERTIES = cython.declare(cython.int, 4)
_TOKEN_SIGNS = cython.declare(dict, {3: TOKEN_PATH, 4: TOKEN_OPERATION})
"""By section, the bytes that show that the body is a token."""

_DATA = cython.declare(cython.int, 5)
_VALUE = cython.declare(cython.int, 7)
_FOOTER = cython.declare(cython.int, 8)
_HEX = cython.declare(bytes, b"0123456789abcdef")
_LENGTHS = cython.declare(
    bytes, bytes(width if code >= 0xA0 else 0 for code, width in enumerate(WIDTHS))
)
"""Bytes of the length that values of a constructor begin with; 0 for none."""
_ANNOTATIONS = cython.declare(tuple, ((1, b'"delivery":'), (2, b'"message":'), (8, b'"footer":')))
_NO_COLUMN = cython.declare(
    dict,
    {
        8: b'"absolute_expiry_time":',
        10: b'"group_id":',
        11: b'"group_sequence":',
        12: b'"reply_to_group_id":',
    },
)
"""Fields of the section `properties` that have no column, by their places (§3.2.4)."""


@cython.final
@cython.cclass
class Delivery:
    """An incomplete message, from its first transfer on.

    `reads`: the sections before the body are requested. `body_left`: remaining bytes of the current
    body section. `store` holds the complete sections, each from its constructor on at one of
    `places`, and after them, from `read` on, the beginning of an incomplete one, which needs
    `wanted` bytes. If one frame has the whole message, its sections stay in the data of `source`;
    else `source` is None. `unread`: the following bytes are only counted. `lost` counts bytes
    that were not captured, `seen` those that were. `answers`: it is of RabbitMQ's management.
    """

    ordinal: cython.longlong
    key: cython.longlong
    number: cython.longlong
    last_number: cython.longlong
    ts_ns: cython.longlong
    delivery_id: cython.longlong
    format: cython.longlong
    seen: cython.longlong
    lost: cython.longlong
    body_left: cython.longlong
    body_bytes: cython.longlong
    body_seen: cython.longlong
    read: cython.longlong
    wanted: cython.longlong
    channel: cython.int
    transfers: cython.int
    reads: cython.bint
    secret: cython.bint
    answers: cython.bint
    unread: cython.bint
    keeping: cython.bint
    aborted: cython.bint
    holed: cython.bint
    more: cython.bint
    listed: cython.bint
    tag_bytes: cython.int
    capture: Any
    hash: Any
    store: StreamBuffer
    source: TypedReader
    body: Octets
    places: cython.longlong[9]
    sizes: cython.longlong[9]
    tag: cython.uchar[64]

    def __init__(self, budget: Any) -> None:
        if not cython.compiled:
            self.places, self.sizes, self.tag = [-1] * 9, [0] * 9, bytearray(_MAX_TAG)
        self.store = StreamBuffer(budget)
        self.source = None
        self.body = None
        self.hash = None

    def begin(self, half: Half, ordinal: cython.longlong, capture: Any) -> cython.int:
        """The first transfer of a message."""
        place: cython.int
        self.ordinal = ordinal
        self.capture = capture
        self.channel = half.frame_channel
        self.number = self.last_number = half.number
        self.ts_ns = half.ts_ns
        self.transfers = 0
        self.seen = self.lost = self.body_left = self.body_bytes = self.body_seen = 0
        self.read = self.wanted = 0
        self.store.used = 0
        self.secret = self.answers = self.unread = self.keeping = False
        self.aborted = self.holed = False
        self.hash = None
        for place in range(9):
            self.places[place] = -1
        return 0


@cython.final
@cython.cclass
class DeliveryAssembler:
    """Puts deliveries together and writes their rows.

    Args:
        plan: The plan of the run.
        contents: The assembler of 0-9-1, whose treatment of bodies is used here too.
        messages: The rows to write.

    `all_columns`: write all columns of deliveries, else only addresses.
    """

    report: Any
    new_hash: Any
    keep_bodies: cython.bint
    all_columns: cython.bint
    ttl: cython.longlong
    ttl_code: cython.int
    begun: cython.longlong
    open: cython.longlong

    messages: MessageRows
    writer: MessageWriter
    budget: MemoryBudget
    meanings: MeaningWriter
    reader: TypedReader
    properties: ValueCache
    annotations: ValueCache
    ttl_words: Vocabularies
    idle: Delivery
    spare: list[Any]
    ended_at: cython.longlong

    def __init__(self, plan: Plan, contents: ContentAssembler, messages: Any) -> None:
        self.messages = messages
        self.writer = contents.writer
        self.report = contents.report
        self.budget = contents.budget
        self.new_hash = contents.new_hash
        self.keep_bodies = contents.keep_bodies
        self.meanings = contents.writer.meanings
        self.all_columns = _has_all_columns(plan)
        self.reader = TypedReader(messages.headers)
        self.properties, self.annotations = ValueCache(), ValueCache()
        self.ttl = self.ttl_code = -1
        self.ttl_words = None
        self.idle = None
        self.spare = []
        self.begun = self.open = 0

    def use(self, messages: Any) -> None:
        """Write into these rows from now on."""
        self.messages = messages
        self.ttl_words = None

    # transfers

    @cython.cfunc
    def transfer(
        self,
        half: Half,
        under_way: dict[Any, Any],
        sent: Performative,
        key: cython.longlong,
        fields: PerformativeDecoder,
        reader: TypedReader,
        secret: cython.bint,
        whole: cython.bint,
    ) -> Delivery:
        """A transfer's fields are read; gives the delivery that its payload is of.

        `under_way` are the deliveries of this direction by channel and handle, which are its `key`;
        a delivery that is over with its first transfer, which is there as a `whole`, is not among
        them.
        """
        known: Delivery
        known = under_way.get(key) if len(under_way) else None
        if known is not None and fields.start(1) >= 0:
            if known.delivery_id >= 0 and sent.first != known.delivery_id:
                self.end(half, known, INCOMPLETE)
                del under_way[key]
                known = None
        aborted: cython.bint = sent.aborted == 1
        more: cython.bint = not aborted and sent.more == 1
        if known is None:
            listed: cython.bint = more or not whole
            full: cython.bint = listed and self.open >= _MAX_ALL_OPEN
            if listed and len(under_way) and (full or len(under_way) >= _MAX_OPEN):
                self.end(half, under_way.pop(next(iter(under_way))), INCOMPLETE)
                self.budget.refuse("deliveries")
            elif full:
                self.budget.refuse("deliveries")
                listed = False
            known = self._new(half, fields, reader)
            known.delivery_id = sent.first
            known.secret = secret
            known.listed = listed
            known.source = None if listed else reader
            known.holed = full and not listed
            if listed:
                self.open += 1
                under_way[key] = known
        known.key = key
        known.transfers += 1
        known.last_number = half.number
        if aborted:
            known.aborted = True
        known.more = more and not known.aborted and known.listed
        return known

    @cython.cfunc
    def _new(self, half: Half, fields: PerformativeDecoder, reader: TypedReader) -> Delivery:
        found: Delivery
        found = self.idle
        if found is not None:
            self.idle = None
        else:
            found = self.spare.pop() if self.spare else Delivery(self.budget)
        found.begin(half, self.begun, self.writer.capture)
        self.begun += 1
        found.format = found.tag_bytes = -1
        found.reads = self.messages.wanted
        if found.reads and self.all_columns:
            found.format = fields.number(reader, 3)
            at: cython.longlong = fields.start(2)
            count: cython.longlong = -1 if at < 0 else reader.text_at(at, fields.ends[2])
            i: cython.longlong
            if count >= 0:
                found.tag_bytes = min(count, _MAX_TAG)
                for i in range(found.tag_bytes):
                    found.tag[i] = reader.data[reader.items + i]
        return found

    def transfer_end(self, half: Half, under_way: dict[Any, Any], found: Delivery) -> cython.int:
        """The payload of a transfer is over."""
        if not found.more:
            if found.listed:
                del under_way[found.key]
            self.end(half, found, ABORTED if found.aborted else COMPLETE)
        return 0

    def payload(
        self, found: Delivery, reader: TypedReader, at: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """Bytes of a payload."""
        end: cython.longlong = at + count
        found.seen += count
        if found.unread:
            return 0
        while at < end and not found.unread:
            if found.body_left > 0:
                count = min(found.body_left, end - at)
                self._body(found, reader, at, count)
                found.body_left -= count
                at += count
            elif found.store.used == found.read:
                at = self._sections(found, reader, at, end)
            else:
                at = self._go_on(found, reader, at, end)
        return 0

    def missing(self, found: Delivery, count: cython.longlong) -> cython.int:
        """Bytes of a payload that were not captured."""
        found.lost += count
        found.hash = None
        known: cython.longlong = min(found.body_left, count)
        found.body_left -= known
        if known < count:
            found.unread = True
        return 0

    def lose(self, under_way: dict[Any, Any]) -> None:
        """Frames of a half-stream may be missing, also of its incomplete messages."""
        found: Delivery
        for found in under_way.values():
            found.holed = found.unread = True
            found.hash = None

    def _sections(
        self, found: Delivery, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Read sections from a boundary on; returns the position reached. Keeps incomplete ones."""
        code: cython.int
        place: cython.longlong
        after: cython.longlong
        size: cython.longlong
        if at < 0 or end > len(reader.data):
            raise IndexError("sections outside the data")
        while at < end:
            with cython.boundscheck(False):  # the range was checked
                if at + 3 < end and reader.data[at] == 0 and reader.data[at + 1] == 0x53:
                    place = at + 3
                    code = reader.data[at + 2] - _FIRST_SECTION
                else:
                    place = reader.descriptor(at, end)
                    code = reader.code - _FIRST_SECTION
                if (
                    place < 0
                    or place >= end
                    or (reader.data[place] == 0 and reader.skip(place, end) < 0)
                ):
                    if end - at > _MAX_DESCRIPTOR or reader.data[at] != 0:
                        found.unread = True  # no section begins so
                        return end
                    found.wanted = end - at + 1
                    break
            after = _after(reader, place, end)
            if _DATA <= code <= _VALUE:
                after = self._begin_body(found, reader, place, end, code, after)
                if after < 0:
                    found.wanted = end - at + 1
                    break
                at = after
                if found.body_left > 0:
                    return at
                continue
            if after < 0:
                size = reader.wanted(place, end)
                if size > _MAX_SECTION:
                    found.unread = True
                    return end
                found.wanted = place - at + size
                break
            if not found.reads or code < 0 or code > _FOOTER:
                pass
            elif not self.all_columns and (code == 1 or code == 2 or code == _FOOTER):
                pass  # annotations that are not requested
            elif found.source is not None or self._may_keep(found, after - place):
                if found.places[code] < 0:
                    found.places[code] = place if found.source is not None else found.store.used
                    found.sizes[code] = after - place
                if found.source is None:
                    reader.copy_to(found.store, place, after - place)
                    found.read = found.store.used
                if code == _PROPERTIES or code == _APPLICATION_PROPERTIES:
                    if self._brings_token(code, reader, place, after):
                        found.secret = True
            at = after
        if at < end:
            if not self._may_keep(found, end - at):
                found.unread = True
                return end
            reader.copy_to(found.store, at, end - at)
        return end

    def _brings_token(
        self, section: cython.int, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """True if a section announces a token in the body, even without a captured attach."""
        if not (self.keep_bodies or self.meanings is not None):
            return False
        sign: bytes = _TOKEN_SIGNS[section]
        return reader.bytes_at(at, end - at).find(sign) >= 0  # `in` is slow for bytes

    def _may_keep(self, found: Delivery, count: cython.longlong) -> cython.bint:
        if not found.store.fits(count) or found.store.used + count > 2 * _MAX_SECTION:
            self.budget.refuse("sections")
            return False
        return True

    def _go_on(
        self, found: Delivery, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """More bytes of a section that was not whole; position gone on to."""
        if not self._may_keep(found, end - at):
            found.unread = True
            return end
        reader.copy_to(found.store, at, end - at)
        begin: cython.longlong = found.read
        whole: cython.longlong = found.store.used
        if whole - begin < found.wanted:
            return end
        kept: bytes = found.store.bytes_between(begin, whole)
        found.store.used = begin
        again: TypedReader = self.reader
        again.read_from(kept)
        at = 0
        while at < whole - begin and not found.unread:
            if found.body_left > 0:
                count: cython.longlong = min(found.body_left, whole - begin - at)
                self._body(found, again, at, count)
                found.body_left -= count
                at += count
            else:
                at = self._sections(found, again, at, whole - begin)
                if found.store.used > found.read:
                    break
        again.read_from(b"")
        return end

    @cython.exceptval(-2)
    def _begin_body(
        self,
        found: Delivery,
        reader: TypedReader,
        place: cython.longlong,
        end: cython.longlong,
        code: cython.int,
        after: cython.longlong,
    ) -> cython.Py_ssize_t:
        """A body section with its constructor at `place` and its end at `after`; returns this end.
        Both are -1 if there are too few bytes.

        The body is the content of a data section, or the encoded value of a value or a sequence.
        """
        width: cython.longlong = 0
        content: cython.longlong = place
        octet: cython.int = reader.data[place]
        if octet == 0:
            if after < 0:
                return -1
            content = after
            size: cython.longlong = after - place
        else:
            if octet >= 0xA0:
                width = 4 if octet & 0x10 else 1
                if place + 1 + width > end:
                    return -1
                size = reader.u32(place + 1) if width == 4 else reader.data[place + 1]
            elif after < 0:
                return -1
            else:
                size = after - place - 1
            content = place + 1 + width
            if code != _DATA:
                size += 1 + width
                content = place
        if found.body_seen == 0:
            if self.new_hash is not None and found.lost == 0:
                found.hash = self.new_hash()
            kept: cython.bint = self.keep_bodies or self.meanings is not None or found.answers
            if kept and not found.secret:
                found.keeping = True
                if found.body is None:
                    found.body = Octets(256)
                found.body.used = 0
        found.body_bytes += size
        found.body_left = size
        return after if content == after and size == after - place else content

    def _body(
        self, found: Delivery, reader: TypedReader, at: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """Bytes of the body."""
        found.body_seen += count
        if found.hash is not None:
            found.hash.update(reader.bytes_at(at, count))
        if found.keeping:
            if not self.keep_bodies:
                count = min(count, max(_MAX_READ - found.body.used, 0))
            reader.copy_to(found.body, at, count)
        return 0

    # the end

    @cython.ccall
    def finish(self, half: Half, under_way: dict[Any, Any]) -> None:
        """End of a half-stream."""
        for found in under_way.values():
            self.end(half, found, INCOMPLETE)
        under_way.clear()

    def end(self, half: Half, found: Delivery, status: cython.int) -> cython.int:
        """A delivery is over: write its row."""
        if found.listed:
            self.open -= 1
        if half.lossy and (found.unread or found.delivery_id < 0):
            found.holed = True  # its first transfer, which has an id, may be missing (1.0 §2.7.5)
        if (found.lost or found.holed) and status == COMPLETE:
            status = TRUNCATED
        self._write(half, found, status)
        if found.body is not None and found.body.size > _MAX_KEPT:
            found.body = None
        if not found.store.should_release():
            if self.idle is None:
                self.idle = found
            elif len(self.spare) < 64:
                self.spare.append(found)
        return 0

    def _write(self, half: Half, found: Delivery, status: cython.int) -> cython.int:
        out: MessageRows = self.messages
        connection: Connection = half.connection
        if out.rows >= out.capacity:
            out.reserve()
        row: cython.longlong = out.rows
        side: cython.int = -1
        if connection.client_direction >= 0:
            side = half.direction ^ connection.client_direction
        if out.deliveries is None:
            out.deliveries = DeliveryColumns(self.all_columns)
        more: DeliveryColumns = out.deliveries
        if more.capacity < out.capacity:
            more.reserve(out.capacity)
        capture: cython.int = self.writer.code_of(found.capture)
        whole: cython.bint = not found.unread and status == COMPLETE
        if row >= min(out.capacity, more.capacity):
            raise IndexError("no room for a row")
        with cython.boundscheck(False):  # every column has room for as many rows
            out.capture.values[row] = capture
            out.connection.values[row] = connection.row_code
            out.sender.values[row] = side
            out.channel.values[row] = found.channel
            out.method.values[row] = RECEIVE if side == 1 else SEND
            out.reply_code.values[row] = -1
            out.packet_number.values[row] = found.number
            out.ts_ns.values[row] = found.ts_ns
            out.last_packet_number.values[row] = found.last_number
            out.delivery_tag.values[row] = found.delivery_id if found.delivery_id >= 0 else NULL
            out.body_size.values[row] = found.body_bytes if whole or found.body_bytes else NULL
            out.body_captured.values[row] = found.body_seen
            out.status.values[row] = status
            out.ordinal.values[row] = found.ordinal
            out.mark.values[row] = 0
            out.ended_at.values[row] = self.ended_at
            out.mandatory.values[row] = -1
            out.immediate.values[row] = -1
            out.redelivered.values[row] = -1
            if more.all_columns:
                more.transfers.values[row] = found.transfers
                more.message_bytes.values[row] = NULL if found.holed else found.seen + found.lost
                if found.format >= 0:
                    more.message_format.values[row] = found.format
        if found.reads:
            self._write_sections(half, found, row)
        if out.wanted:
            if more.all_columns and found.tag_bytes >= 0:
                _put_tag(more.tag, row, found)
            if found.answers and found.keeping and found.body.used <= _MAX_ANSWER:
                if len(more.answers) < _MAX_ANSWER:  # who asks for it takes it out
                    more.answers[found.ordinal] = found.body.bytes_between(0, found.body.used)
            if self.meanings is not None:
                body: Octets = found.body if found.keeping else None
                self.meanings.write(out, row, body, 0 if body is None else body.used, None)
            if found.keeping and self.keep_bodies:
                out.body.begin(row)
                out.body.put_from(found.body, 0, found.body.used)
                out.body.end()
            if found.hash is not None and whole:
                put_text(out.body_sha256, row, found.hash.hexdigest().encode())
        out.rows += 1
        return 0

    def _write_sections(self, half: Half, found: Delivery, row: cython.longlong) -> cython.int:
        """Write the columns that are made of the sections before the body."""
        out: MessageRows = self.messages
        reader: TypedReader = found.source
        end: cython.longlong = found.read
        if reader is None:
            reader = self.reader
            reader.data = found.store.octets
        else:
            end = len(reader.data)
        if not out.wanted:
            if found.places[_PROPERTIES] >= 0:
                self._write_properties(reader, found.places[_PROPERTIES], end, row, 0)
            return 0
        before: Texts = reader.out
        reader.out = out.headers
        reader.oddities = 0
        if found.places[_HEADER] >= 0:
            self._write_header(half, reader, found.places[_HEADER], end, row)
        if found.places[_PROPERTIES] >= 0:
            self._write_properties(reader, found.places[_PROPERTIES], end, row, out.made)
        if found.places[_APPLICATION_PROPERTIES] >= 0 and out.made & 1 << 2:
            at: cython.longlong = found.places[_APPLICATION_PROPERTIES]
            out.headers.begin(row)
            self.properties.put_table(reader, at, at + found.sizes[_APPLICATION_PROPERTIES])
            out.headers.end()
        further: list[Any] = self._further(reader, found) if self.all_columns else []
        if further or found.places[1] >= 0 or found.places[2] >= 0 or found.places[_FOOTER] >= 0:
            self._write_annotations(reader, found, row, further)
        reader.out = before
        if reader.oddities or (found.unread and not (found.lost or found.holed or found.aborted)):
            place = (found.channel, found.number, found.ts_ns)
            self.report("field-table-malformed", half, "sections of a message", place)
        return 0

    @cython.cfunc
    def _further(self, reader: TypedReader, found: Delivery) -> list[Any]:
        """Properties that have no column: key, begin and end of each."""
        further: list[Any] = []
        at: cython.longlong = found.places[_PROPERTIES]
        if at < 0 or not reader.open_list(at, at + found.sizes[_PROPERTIES]) or reader.count <= 8:
            return further
        at = reader.items
        end: cython.longlong = min(reader.limit, len(reader.data))
        for field in range(min(reader.count, 13)):
            after: cython.longlong = _after(reader, at, end) if at < end else -1
            if after < 0:
                break
            if field in _NO_COLUMN and reader.data[at] != 0x40:
                further.append((_NO_COLUMN[field], at, after))
            at = after
        return further

    def _write_annotations(
        self,
        reader: TypedReader,
        found: Delivery,
        row: cython.longlong,
        further: list[Any],
    ) -> cython.int:
        """Write delivery annotations, message annotations, footer, and the properties without a
        column, as one object."""
        more: DeliveryColumns = self.messages.deliveries
        column: Texts = more.annotations
        reader.out = column
        column.begin(row)
        column.put_byte(123)
        first: cython.bint = True
        for section, key in _ANNOTATIONS:
            place: cython.longlong = found.places[section]
            if place < 0:
                continue
            if not first:
                column.put_byte(44)
            first = False
            column.put_bytes(key)
            self.annotations.put_table(reader, place, place + found.sizes[section])
        if further:
            column.put_bytes(b'"properties":{' if first else b',"properties":{')
            for key, place, after in further:
                if key is not further[0][0]:
                    column.put_byte(44)
                column.put_bytes(key)
                reader.put_value(place, after)
            column.put_byte(125)
        column.put_byte(125)
        reader.out = self.messages.headers
        return column.end()

    def _write_header(
        self,
        half: Half,
        reader: TypedReader,
        at: cython.longlong,
        end: cython.longlong,
        row: cython.longlong,
    ) -> cython.int:
        """Write the columns of the section `header`."""
        out: MessageRows = self.messages
        more: DeliveryColumns = out.deliveries
        if not reader.open_list(at, end):
            return 0
        at = reader.items
        end = min(reader.limit, end)
        made: cython.int = out.made
        first: cython.int = -1
        count: cython.longlong = -1
        value: cython.longlong
        place: cython.longlong
        after: cython.longlong
        octet: cython.int
        truth: cython.bint
        if at < 0 or end > len(reader.data):
            raise IndexError("fields outside the data")
        for place in range(min(reader.count, 5)):
            if at >= end:
                break
            with cython.boundscheck(False):  # the range was checked
                octet = reader.data[at]
                if octet == 0x40:
                    at += 1
                    continue
                truth = place == 0 or place == 3
                if truth and (octet == 0x41 or octet == 0x42):
                    after = at + 1
                    value = octet == 0x41
                elif not truth and octet == 0x50 and at + 2 <= end:
                    after = at + 2
                    value = reader.data[at + 1]
                elif not truth and octet == 0x70 and at + 5 <= end:
                    after = at + 5
                    value = u32(reader.data, at + 1)
                else:
                    after = reader.skip(at, end)
                    if after < 0:
                        break
                    value = reader.truth(at, after) if truth else reader.number(at, after)
            at = after
            if place == 0:
                if value >= 0 and made & 1 << 3:
                    out.delivery_mode.values[row] = 1 + (value != 0)
            elif place == 1:
                if value >= 0 and made & 1 << 4:
                    out.priority.values[row] = cython.cast(cython.int, value)
            elif place == 2:
                if value >= 0 and made & 1 << 7:
                    out.expiration.values[row] = self._code_of_ttl(value)
            elif place == 3:
                first = cython.cast(cython.int, value)
            else:
                count = value
        if count > 0 or (first == 0 and half.amqp10.tells_redelivered):
            out.redelivered.values[row] = 1
        elif first == 1:
            out.redelivered.values[row] = 0
        if count >= 0 and more.all_columns:
            more.delivery_count.values[row] = min(count, 0x7FFFFFFF)
        return 0

    def _code_of_ttl(self, ttl: cython.longlong) -> cython.int:
        """The code that milliseconds to live have as an expiration."""
        words: Vocabularies = self.messages.vocabularies
        if ttl != self.ttl or words is not self.ttl_words:
            octets: bytes = str(ttl).encode()
            self.ttl_code = self.reader.over(octets).code_in(words.expiration, 0, len(octets))
            self.ttl, self.ttl_words = ttl, words
        return self.ttl_code

    def _write_properties(
        self,
        reader: TypedReader,
        at: cython.longlong,
        end: cython.longlong,
        row: cython.longlong,
        made: cython.int,
    ) -> cython.int:
        """Write the columns of the section `properties` that are in `made`."""
        if not reader.open_list(at, end):
            return 0
        at = reader.items
        end = min(reader.limit, end)
        place: cython.longlong
        after: cython.longlong
        octet: cython.int
        out: MessageRows = self.messages
        words: Vocabularies = out.vocabularies
        if at < 0 or end > len(reader.data):
            raise IndexError("fields outside the data")
        for place in range(min(reader.count, 10)):
            if at >= end:
                break
            with cython.boundscheck(False):  # the range was checked
                octet = reader.data[at]
                if octet == 0x40:
                    at += 1
                    continue
                if (octet == 0xA1 or octet == 0xA3) and at + 1 < end:
                    after = at + 2 + reader.data[at + 1]
                    if after > end:
                        break
                else:
                    after = _after(reader, at, end)
                    if after < 0:
                        break
            _put_property(out, words, row, reader, at, after, place, made)
            at = after
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(-2, check=False)
def _after(reader: TypedReader, at: cython.longlong, end: cython.longlong) -> cython.longlong:
    """Position after the value at `at`, which is before `end`; -1 when it does not end before."""
    if at < 0 or at >= end or end > len(reader.data):
        raise IndexError("a value outside the data")
    with cython.boundscheck(False):  # the range was checked, and the table has all octets
        octet: cython.int = reader.data[at]
        width: cython.int = _LENGTHS[octet]
        if width == 1 and at + 1 < end:
            at += 2 + reader.data[at + 1]
            return at if at <= end else -1
        if width == 4 and at + 4 < end:
            at += 5 + u32(reader.data, at + 1)
            return at if at <= end else -1
        if octet == 0x83:
            return at + 9 if at + 9 <= end else -1
    return reader.skip(at, end)


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _put_property(
    out: MessageRows,
    words: Vocabularies,
    row: cython.longlong,
    reader: TypedReader,
    at: cython.longlong,
    end: cython.longlong,
    place: cython.longlong,
    made: cython.int,
) -> cython.int:
    """Write the field `at`..`end` of the properties, by its place, if its column is `made`."""
    if place == 0:
        if made & 1 << 8:
            _put_id(out.message_id, row, reader, at, end)
    elif place == 1:
        if made & 1 << 11:
            _put_name(out.user_id, words.user_id, row, reader, at, end)
    elif place == 2:
        more: DeliveryColumns = out.deliveries
        odd: cython.int = reader.oddities
        _put_name(more.address, more.address.words, row, reader, at, end)
        reader.oddities = odd
    elif place == 3:
        if made & 1 << 10:
            _put_name(out.type, words.type, row, reader, at, end)
    elif place == 4:
        if made & 1 << 6:
            _put_name(out.reply_to, words.reply_to, row, reader, at, end)
    elif place == 5:
        if made & 1 << 5:
            _put_id(out.correlation_id, row, reader, at, end)
    elif place == 6:
        if made & 1:
            _put_name(out.content_type, words.content_type, row, reader, at, end)
    elif place == 7:
        if made & 1 << 1:
            _put_name(out.content_encoding, words.content_encoding, row, reader, at, end)
    elif place == 9 and made & 1 << 9:
        ms: cython.longlong = reader.moment_ms(at, end)
        if ms >= 0:
            out.message_timestamp.values[row] = ms * 1000
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _put_name(
    column: Codes,
    vocabulary: Vocabulary,
    row: cython.longlong,
    reader: TypedReader,
    at: cython.longlong,
    end: cython.longlong,
) -> cython.int:
    """Write the text at `at`..`end`, if one is there, as a code."""
    start: cython.longlong = at + 2
    octet: cython.int = reader.data[at]
    if octet == 0xA1 or octet == 0xA3:
        length: cython.longlong = reader.data[at + 1]  # it is whole
    else:
        length = reader.text_at(at, end)
        start = reader.items
    if length < 0:
        return 0
    code: cython.int = vocabulary.near
    if code >= 0:  # most are like the one before
        first: cython.longlong = vocabulary.ends[code]
        if vocabulary.ends[code + 1] - first != length or not reader._equals(
            vocabulary, first, start, length
        ):
            code = vocabulary.near = -1  # not to be compared again
    if code < 0:
        code = reader.code_in(vocabulary, start, length)
    column.values[row] = code
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _put_id(
    column: Texts,
    row: cython.longlong,
    reader: TypedReader,
    at: cython.longlong,
    end: cython.longlong,
) -> cython.int:
    """Write an identifier as text: a string as it is, a number, a UUID, bytes in hex."""
    code: cython.int = reader.data[at]
    if code == 0xA1 or code == 0xA3:
        return copy_text(column, row, reader, at + 2, reader.data[at + 1])  # it is whole
    if code == 0xB1 or code == 0xB3:
        return copy_text(column, row, reader, at + 5, reader.u32(at + 1))
    if code == 0x98:
        return put_text(column, row, uuid_text(reader.bytes_at(at + 1, 16)))
    if code == 0xA0 or code == 0xB0:
        length: cython.longlong = reader.text_at(at, end)
        return put_text(column, row, reader.bytes_at(reader.items, length).hex().encode())
    number: cython.longlong = reader.number(at, end)
    if code == 0x80 and number < 0:
        return put_text(column, row, str(int(reader.i64(at + 1)) + (1 << 64)).encode())
    return put_text(column, row, str(number).encode()) if number >= 0 else 0


@cython.cfunc
def _put_tag(column: Texts, row: cython.longlong, found: Delivery) -> cython.int:
    """Write a delivery tag as text: a UUID where it has 16 bytes, else hex."""
    i: cython.longlong
    count: cython.longlong = found.tag_bytes
    column.begin(row)
    column.room(2 * count + 4)
    at: cython.longlong = column.used
    for i in range(count):
        if count == 16 and (i == 4 or i == 6 or i == 8 or i == 10):
            column.octets[at] = 45
            at += 1
        octet: cython.int = found.tag[i]
        column.octets[at] = _HEX[octet >> 4]
        column.octets[at + 1] = _HEX[octet & 15]
        at += 2
    column.used = at
    return column.end()


def _has_all_columns(plan: Plan) -> bool:
    """True if columns of deliveries are read: in the messages that are asked for, or by others."""
    if plan.judged or "links" in plan.tables:
        return True
    columns = plan.columns_of("messages")
    if columns is None:
        return "messages" in plan.tables
    return not DeliveryColumns(True).made.keys().isdisjoint(columns)
