# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Contents: a method, its header and its body, put together into one message row.

Each channel of a half-stream has one open content or none (`state.Content`); frames of different
channels interleave freely. A frame that does not fit the state of its channel is a finding, unless
bytes were lost before it: then it belongs to a content whose beginning is missing.

After a loss of unidentified bytes (`lossy`), the next frame on a channel may belong to a later
content. A header then never belongs to the method before the loss. A body does if the missing bytes
are too few for the rest of the body, a method and a header. In doubt the content ends there.

A body is kept only if it is requested, and its beginning only if packs read it. Bytes that are
missing from the capture are counted: `body_captured` is the number of captured bytes, and a message
that lacks any is `truncated`; only the bytes of its body before the first missing one are kept.

The properties of a content header begin with flags of 16-bit words, property 0 in bit 15 of the
first; bit 0 says that another word follows (0-9-1 §4.2.6.1). The values of those that are set
follow. `PropertyDecoder.locate` walks the list once and notes where each value is.

A content keeps the payloads of its method and header frames in a store of its own. `MessageWriter`
reads them once, when the content is over, so that rows come in the order in which contents end.
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter

import cython
from cython.cimports.amqpsniff.columns import Octets
from cython.cimports.amqpsniff.decode.codes import (
    AWAIT_BODY,
    AWAIT_HEADER,
    AWAIT_METHOD,
    COMPLETE,
    INCOMPLETE,
    TRUNCATED,
)
from cython.cimports.amqpsniff.decode.meanings import MeaningWriter, NoteWriter, may_be_object
from cython.cimports.amqpsniff.decode.method_layout import (
    BYTE,
    FLAGS_CUT,
    SHORTSTR,
    TABLE,
    TIMESTAMP,
)
from cython.cimports.amqpsniff.decode.rows import (
    MessageRows,
    Vocabularies,
    copy_name,
    copy_text,
    put_text,
)
from cython.cimports.amqpsniff.decode.state import Content, MemoryBudget
from cython.cimports.amqpsniff.decode.values import TableCache, ValueReader
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode import method_layout
from amqpsniff.decode.meanings import MAX_BODY_BYTES as PACKS_READ
from amqpsniff.decode.meanings import READS
from amqpsniff.decode.octets import own_seed
from amqpsniff.decode.rows import PROPERTIES
from amqpsniff.decode.values import OUT_OF_RANGE, oddity_codes, oddity_text
from amqpsniff.spec import properties_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Codes, Texts, Vocabulary
    from amqpsniff.decode.methods import DecodedMethod
    from amqpsniff.decode.rows import FrameRows
    from amqpsniff.decode.state import Half
    from amqpsniff.options import Options
    from amqpsniff.packs import Packs
    from amqpsniff.plan import Plan

MAX_OPEN_CONTENTS = 2047
"""Contents open at once in one half-stream: RabbitMQ's default channel-max. A hostile stream could
open one on each of 65,535 channels, in every connection."""

MAX_BODY_BYTES = 128 * 1024 * 1024
"""Bytes of bodies held at once if bodies are requested: the largest message RabbitMQ took up to
3.13. A body that does not fit has its size but no bytes."""

_OTHER = cython.declare(cython.longlong, 1024)
"""What a content costs beside the current one of its half-stream, whatever is in it."""

METHOD_BYTES = 1280
"""Bytes of a method with content in which all its texts are; more than that is left over."""

_OPENING = cython.declare(cython.longlong, 39)
"""Bytes of the smallest frames that open a content: basic.publish (17) and its header (22)."""

# what `PropertyDecoder.locate` answers
EXACT = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
TRAILING = cython.declare(cython.int, 2)
UNDEFINED_FLAGS = cython.declare(cython.int, 3)

_INDICES = {name: index for index, name in enumerate(PROPERTIES)}
"""Bit in `present`, and place in `starts`, by property."""

_SLOTS = cython.declare(cython.int, 64)  # the size of `PropertyDecoder.keys`
_WIDTH = cython.declare(cython.int, 32)

_METHOD = cython.declare(cython.longlong, METHOD_BYTES)
_HEADERS = cython.declare(cython.int, _INDICES["headers"])
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_RETURNABLE = cython.declare(cython.int, method_layout.MANDATORY | method_layout.IMMEDIATE)
_RETURNS = cython.declare(bytes, bytes(method_layout.returns))
_BY_NUMBER = attrgetter("number")

LATE = 2
"""In place of a direction: the frame comes after later ones of the other side."""


@cython.cclass
class ContentAssembler:
    """Puts contents together and writes `MessageRows`.

    Args:
        plan, options, packs: See `Decoder`.
        report: Called for a finding; see `Decoder._report`.
        frames: The frames' rows; when a method begins a content, its row is the last.
        messages: The rows to write.

    `unread`: messages have no rows. `losses` are places where frames may be missing: (row of the
    next frame, connection, direction, packet number and ts_ns of the bytes after the loss), and
    frames that come `LATE`: (row, `FrameRows.moment` of its bytes, LATE). `seed` is that of the
    marks, which are computed if `marking`: for all messages with `marking_all`, else only for those
    that the broker may return.
    """

    report: Any
    new_hash: Any
    keep_bodies: cython.bint
    keeps_all: cython.bint
    unread: cython.bint
    marking: cython.bint
    marking_all: cython.bint
    held: cython.longlong
    opened: cython.longlong
    min_body_size: cython.longlong
    max_kept: cython.longlong
    max_held: cython.longlong
    seed: cython.ulonglong

    frames: FrameRows
    writer: MessageWriter
    properties: PropertyDecoder
    budget: MemoryBudget
    losses: list[Any]

    def __init__(
        self,
        plan: Plan,
        options: Options,
        packs: Packs | None,
        report: Any,
        frames: Any,
        messages: Any,
    ) -> None:
        self.frames = frames
        self.writer = MessageWriter(plan, options, packs, report, messages)
        self.properties = self.writer.properties
        self.report = report
        self.new_hash = import_module("hashlib").sha256 if options.body_sha256 else None
        self.keep_bodies = options.bodies
        self.max_held = MAX_BODY_BYTES
        self.min_body_size = 0 if self.keep_bodies or packs is None else packs.least_body()
        self.max_kept = MAX_BODY_BYTES if self.keep_bodies else PACKS_READ
        self.keeps_all = self.keep_bodies or self.writer.reads_every_body
        self.seed = own_seed() if plan.sightings is None else plan.sightings.seed
        self.held = self.opened = 0
        self.budget = MemoryBudget()
        self.unread = frozenset(plan.tables) == {"frames"}
        self.marking = plan.settles
        self.marking_all = plan.judged
        self.losses = []

    @cython.cfunc
    def _find(self, half: Half, channel: cython.int) -> Content:
        """The content of a channel, open or not; None before the first."""
        if half.content is not None and half.content.channel == channel:
            return half.content
        if half.other_contents:
            return half.other_contents.get(channel)
        return None

    @cython.cfunc
    def _free_content(self, half: Half, channel: cython.int) -> Content:
        """The content object to open on a channel."""
        content = self._find(half, channel)
        if content is not None:
            return content
        if half.content is None:
            half.content = Content()
        if half.content.state == AWAIT_METHOD:
            return half.content
        full: cython.bint = not self.budget.allows(_OTHER) and half.other_contents
        if full or len(half.other_contents) >= MAX_OPEN_CONTENTS:
            self._forget_oldest(half)
        if not half.other_contents:
            half.other_contents = {}
        half.other_contents[half.content.channel] = half.content
        half.content = Content()
        self.budget.held += _OTHER
        return half.content

    def _forget_oldest(self, half: Any) -> Any:
        channel = next(iter(half.other_contents))
        content = half.other_contents.pop(channel)
        self.budget.held -= _OTHER
        if content.state != AWAIT_METHOD:
            detail = (
                f"given up: {method_layout.method_name(content.method)} of packet {content.number}"
            )
            self.report("channel-limit", half, detail, (channel, half.number, half.ts_ns))
            self._end(half, content, INCOMPLETE)
        return 0

    def method(
        self,
        half: Half,
        facts: DecodedMethod,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.int:
        """A method that carries content: open one on its channel; its frame is the last row."""
        channel: cython.int = half.frame_channel
        content: Content = half.content
        if content is None or content.channel != channel:
            content = self._free_content(half, channel)
        if content.state != AWAIT_METHOD:
            self._interrupt(half, content)
        content.open(channel, self.budget)
        if half.lossy:
            half.opened_since.add(channel)
        content.method, content.class_id = facts.method, facts.class_id
        content.capture = self.writer.capture
        content.number = content.last_number = half.number
        content.ts_ns = half.ts_ns
        content.delivery_tag, content.reply_code = facts.delivery_tag, facts.reply_code
        content.flags = facts.flags
        content.safe_text = facts.safe_text
        content.ordinal, content.mark = self.opened, 0
        self.opened += 1
        if self.unread:
            return 0
        row: cython.longlong = self.frames.rows - 1
        content.batch = self.writer.batch
        content.exchange = self.frames.exchange.values[row]
        content.routing_key = self.frames.routing_key.values[row]
        content.consumer_tag = self.frames.consumer_tag.values[row]
        reader.copy_to(content.store, at, min(end - at, _METHOD))
        content.exchange_start, content.exchange_length = facts.starts[1], facts.lengths[1]
        content.key_start, content.key_length = facts.starts[2], facts.lengths[2]
        content.tag_start, content.tag_length = facts.starts[4], facts.lengths[4]
        content.text_start, content.text_length = facts.starts[5], facts.lengths[5]
        return 0

    def other_method(self, half: Half) -> cython.int:
        """A method without content: an open content of the channel ends here."""
        content: Content = self._find(half, half.frame_channel)
        if content is not None and content.state != AWAIT_METHOD:
            self._interrupt(half, content)
        return 0

    def _interrupt(self, half: Half, content: Content) -> cython.int:
        """A content ends before it is complete."""
        if content.lossy or content.lost:
            self._end(half, content, TRUNCATED)
            return 0
        method = self.frames.method.values[self.frames.rows - 1] if half.frame_type == 1 else -1
        came = method_layout.frame_words(half.frame_type, method)
        if content.state == AWAIT_BODY and content.body_seen:
            size = "too many" if content.body_size == NULL else content.body_size
            detail = f"{content.body_seen} of {size} bytes, then {came}"
            self.report("content-body-shorter", half, detail)
        else:
            awaited = "content header" if content.state == AWAIT_HEADER else "body"
            name = method_layout.method_name(content.method)
            detail = f"{came} came where the {awaited} of {name} should"
            self.report("content-interrupted", half, detail)
        self._end(half, content, INCOMPLETE)
        return 0

    def _orphan(self, half: Any, detail: Any) -> None:
        """A content frame without its beginning, which may have been lost."""
        is_certain: cython.bint = not half.lossy or half.frame_channel in half.opened_since
        if is_certain and not half.repeats("content-unexpected-frame"):
            self.report("content-unexpected-frame", half, detail)

    def unsure(self, half: Any, channel: Any) -> None:
        """A frame of the channel was cut before it could be identified: it may begin a content."""
        if not half.lossy:
            half.lossy = True
            half.opened_since = set()
        half.opened_since.discard(channel)

    def note_loss(self, half: Half) -> None:
        """Frames of a half-stream may be missing before the next row."""
        packet = (half.number, half.ts_ns)
        self.losses.append((self.frames.rows, half.connection, half.direction, *packet))

    def lose(self, half: Half, begin: cython.longlong) -> cython.int:
        """Unidentified bytes are missing from `begin` on: open contents may lack frames."""
        self.note_loss(half)
        half.lossy = True
        half.opened_since = set()
        for content in half.contents():
            if not content.lossy:
                content.lossy = True
                content.lost_at = begin

    def header(
        self,
        half: Half,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        whole: cython.bint,
    ) -> cython.int:
        """The frame under way is a content header with payload `at`..`end`."""
        content: Content = self._find(half, half.frame_channel)
        if content is None or content.state != AWAIT_HEADER:
            self._orphan(half, "content header without a method")
            if content is not None and content.state == AWAIT_BODY:
                self._interrupt(half, content)
            return 0
        if content.lossy:
            return self._end(half, content, TRUNCATED)
        if end - at < 12:
            if whole:
                self.report("properties-malformed", half, f"content header of {end - at} bytes")
            else:
                self.unsure(half, half.frame_channel)
            return self._end(half, content, TRUNCATED)
        self._check_header(half, content, reader, at, end, whole)
        if not self.unread:
            content.located = self.properties.located
            content.body_marking = self.marking and self._may_return(content)
            if self.marking_all or content.body_marking:
                mark: cython.ulonglong = self._mark(reader, at, end)
                content.mark = cython.cast(cython.longlong, mark >> 1)
                if not whole:
                    content.mark = -content.mark
            if self.writer.messages.wanted:
                self._keep_header(content, reader, at, end)
        size: cython.longlong = reader.i64(at + 4)
        if size < 0:
            self.report("number-out-of-range", half, "a body size of 2^63 or more")
            size = NULL
        content.body_size = size
        content.last_number = half.number
        content.state = AWAIT_BODY
        if size == 0:
            self._end(half, content, COMPLETE)
        elif self.writer.messages.wanted:
            self._begin_body(half, content)
        return 0

    @cython.exceptval(1)
    def _mark(
        self, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.ulonglong:
        """A hash of the size and properties in a content header, with headers in any order."""
        if not self.properties.present >> _HEADERS & 1:
            return reader.hash_with(self.seed, at + 4, end - at - 4)
        start: cython.longlong = at + 12 + self.properties.starts[_HEADERS]
        stop: cython.longlong = start + self.properties.lengths[_HEADERS]
        before: cython.ulonglong = reader.hash_with(self.seed, at + 4, start - at - 4)
        after: cython.ulonglong = reader.hash_with(self.seed, stop, end - stop)
        headers: cython.ulonglong = reader.table_mark(self.seed, start, stop)
        return (before + 3 * headers + 5 * after) & _MASK64

    def _keep_header(
        self, content: Content, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Keep a content header for the row of its message."""
        if not content.store.fits(end - at):
            return self.budget.refuse("content headers")
        content.header_start = content.store.used
        reader.copy_to(content.store, at, end - at)
        content.header_end = content.store.used
        return 0

    def _may_return(self, content: Content) -> cython.bint:
        """True for a message that the broker may return, and for one that it returns."""
        return content.flags & _RETURNABLE or _RETURNS[content.method]

    def _begin_body(self, half: Half, content: Content) -> cython.int:
        if self.new_hash is not None:
            content.hash = self.new_hash()
        if content.channel == 0:  # there it may be a login
            return 0
        if 0 <= content.body_size < self.min_body_size:  # too short for a name that packs know
            return 0
        return content.begin_body() if self.keeps_all or half.connection.reads_bodies else 0

    def _check_header(
        self,
        half: Half,
        content: Content,
        reader: ValueReader,
        at: cython.longlong,
        end: cython.longlong,
        whole: cython.bint,
    ) -> cython.int:
        class_id: cython.int = reader.u16(at)
        answer: cython.int = self.properties.locate(reader, class_id, at + 12, end)
        if class_id == content.class_id and answer == EXACT and reader.u16(at + 2) == 0:
            return 0
        if class_id != content.class_id:
            detail = f"class {class_id}, method of class {content.class_id}"
            self.report("content-class-wrong", half, detail)
        if reader.u16(at + 2):
            detail = f"weight {reader.u16(at + 2)}"
            self.report("content-weight", half, detail)
        if answer == UNDEFINED_FLAGS:
            detail = f"flags {reader.u16(at + 12):#06x}"
            self.report("property-flags-undefined", half, detail)
        elif answer and whole:
            detail = "bytes left over" if answer == TRAILING else "bytes missing"
            self.report("properties-malformed", half, detail)
        return 0

    @cython.cfunc
    def _awaiting(self, half: Half) -> Content:
        """The content that the body frame under way belongs to, or None."""
        content: Content = self._find(half, half.frame_channel)
        if content is None or content.state != AWAIT_BODY:
            return None
        if content.lossy:
            lost_bytes: cython.longlong = content.lost + half.frame_offset - content.lost_at
            if lost_bytes - _OPENING >= content.body_rest():
                self._end(half, content, TRUNCATED)
                return None
            if content.lost == 0:
                content.sound = content.body_seen
            content.lossy = False
            content.lost = lost_bytes
        return content

    def body_bytes(
        self, half: Half, reader: ValueReader, at: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """Bytes of a body, a frame or a piece of one."""
        content: Content = self._awaiting(half)
        if content is None:
            return 0
        expected_bytes: cython.longlong = content.body_rest()
        if content.body_marking:
            share: cython.ulonglong = reader.hash_part(
                self.seed, at, min(count, expected_bytes), content.body_seen
            )
            content.body_mark = (content.body_mark + share) & _MASK64
        content.body_seen += count
        if content.hash is not None or content.keeping:
            self._take(half, content, reader, at, min(count, expected_bytes))
        return 0

    def _take(
        self,
        half: Half,
        content: Content,
        reader: ValueReader,
        at: cython.longlong,
        count: cython.longlong,
    ) -> cython.int:
        """Bytes of a body that is kept."""
        if content.hash is not None:
            content.hash.update(reader.bytes_at(at, count))
        if content.keeping and not content.body_missing:
            if not self.keep_bodies:
                first: cython.bint = content.body.used == 0 and count > 1
                if first and not may_be_object(reader.data[at], reader.data[at + 1]):
                    return content.end_body()
                count = min(count, max(self.max_kept - content.body.used, 0))
            if self.held + count > self.max_held:
                self.report("body-limit", half, "", content.place())
                self._let_go(content)
            else:
                reader.copy_to(content.body, at, count)
                self.held += count
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def _let_go(self, content: Content) -> cython.int:
        """Release the kept bytes of a body."""
        self.held -= content.body.used
        content.end_body()
        return 0

    def body_missing(self, half: Half, count: cython.longlong) -> cython.int:
        """Bytes of a body that are not in the capture."""
        content: Content = self._awaiting(half)
        if content is not None:
            content.body_seen += count
            content.body_missing += count
        return 0

    def body_end(self, half: Half) -> cython.int:
        """The body frame under way ended."""
        content: Content = self._find(half, half.frame_channel)
        if content is None or content.state != AWAIT_BODY:
            if content is not None and content.state == AWAIT_HEADER:
                self._interrupt(half, content)
            else:
                self._orphan(half, "body without a content header")
            return 0
        content.last_number = half.number
        if content.body_rest() > 0:
            return 0
        if content.body_seen > content.body_size:
            if content.lost:
                return self._end(half, content, TRUNCATED)
            detail = f"{content.body_seen} bytes, {content.body_size} declared"
            self.report("content-body-longer", half, detail)
        self._end(half, content, COMPLETE)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def finish(self, half: Half) -> cython.int:
        """End of the half-stream: open contents are incomplete."""
        for content in sorted(half.contents(), key=_BY_NUMBER):
            if content.state != AWAIT_METHOD:
                self._end(half, content, INCOMPLETE)
        self.budget.held -= _OTHER * len(half.other_contents)
        half.other_contents = {}
        return 0

    def _end(self, half: Half, content: Content, status: cython.int) -> cython.int:
        """End of a content: write its row if messages have rows."""
        content.state = AWAIT_METHOD
        if self.unread:
            return content.close()
        if content.body_size == 0 and status == COMPLETE:
            self._begin_body(half, content)
        sound: cython.longlong = content.body_seen
        if content.lost and (status != COMPLETE or content.body_missing):
            sound = content.sound
        self.writer.write(half, content, status, sound, self.frames.rows)
        if content.keeping:
            self._let_go(content)
        content.hash = None
        return content.close()


@cython.cclass
class PropertyDecoder:
    """Finds the properties of a content header; one object serves all headers in turn.

    `present` has a bit for each of `PROPERTIES` that was found, from the lowest; `starts` and
    `lengths` are their positions. `located` counts headers: a caller compares it to see if the
    positions are still those of its header.
    """

    present: cython.int
    located: cython.longlong

    starts: cython.longlong[16]
    lengths: cython.longlong[16]
    keys: cython.longlong[64]
    orders: cython.uchar[2048]
    rows: dict[Any, Any]

    def __init__(self) -> None:
        if not cython.compiled:
            self.starts = [0] * 16
            self.lengths = [0] * 16
            self.keys = [0] * _SLOTS
            self.orders = [0] * (_WIDTH * _SLOTS)
        slot: cython.int
        for slot in range(_SLOTS):
            self.keys[slot] = -1
        self.rows = {}
        self.present = self.located = 0

    def _order(self, class_id: cython.int, flags: cython.int) -> cython.int:
        """Index in `orders` of the layout for these flags of a class.

        A layout has the number of properties, a mark for flags that the class does not define, and
        the type and place of each property.
        """
        key: cython.longlong = flags << 16 | class_id
        slot: cython.int = ((flags >> 1) ^ (flags >> 7) ^ (flags >> 12) ^ class_id) & (_SLOTS - 1)
        if self.keys[slot] != key:
            self._learn(_WIDTH * slot, class_id, flags)
            self.keys[slot] = key
        return _WIDTH * slot

    def _learn(self, order: cython.int, class_id: cython.int, flags: cython.int) -> cython.int:
        """Write the layout for flags at an index of `orders`."""
        rows = self.rows.get(class_id)
        if rows is None:
            rows = self.rows[class_id] = properties_for(None, class_id)
        chosen = [i for i in range(15) if (flags >> (15 - i)) & 1]
        defined = [rows[i] for i in chosen if i < len(rows)]
        self.orders[order] = len(defined)
        self.orders[order + 1] = len(defined) < len(chosen)
        for row in defined:
            order += 2
            self.orders[order] = ord(row.type)
            self.orders[order + 1] = _INDICES.get(row.name, 15)
        return 0

    def locate(
        self, reader: ValueReader, class_id: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Note the position of each property of the list at `at` (its flags), relative to it.

        Answers `EXACT`, `CUT` (bytes ran out), `TRAILING` (bytes left over) or
        `UNDEFINED_FLAGS` (a flag is set that the class has no property for).
        """
        self.present = 0
        self.located += 1
        base: cython.longlong = at
        if at + 2 > end:
            return CUT
        flags: cython.int = reader.u16(at)
        order: cython.int = self._order(class_id, flags)
        answer: cython.int = EXACT
        at += 2
        if flags & 1:
            word: cython.int = flags
            while word & 1:
                if at + 2 > end:
                    return CUT
                word = reader.u16(at)
                at += 2
                if word & 0xFFFE:
                    answer = UNDEFINED_FLAGS
        if self.orders[order + 1]:
            answer = UNDEFINED_FLAGS
        if at < 0 or end > len(reader.data):
            raise IndexError("properties outside the data")
        kind: cython.int
        index: cython.int
        length: cython.longlong
        last: cython.int = order + 2 * self.orders[order]
        while order < last:
            order += 2
            kind = self.orders[order]
            index = self.orders[order + 1]
            length = 0
            if kind == SHORTSTR:
                if at >= end:
                    return CUT
                with cython.boundscheck(False):  # the range was checked
                    length = reader.data[at]
                at += 1
            elif kind == BYTE:
                length = 1
            elif kind == TIMESTAMP:
                length = 8
            elif kind == TABLE:
                if at + 4 > end:
                    return CUT
                length = 4 + reader.u32(at)
            if at + length > end:
                return CUT
            self.present |= 1 << index
            self.starts[index] = at - base
            self.lengths[index] = length
            at += length
        if at < end and answer == EXACT:
            return TRAILING
        return answer


@cython.cclass
class MessageWriter:
    """Writes `MessageRows`.

    Args:
        plan, options, packs: See `Decoder`.
        report: Called for a finding; see `Decoder._report`.
        messages: Where the rows go.

    `properties` finds those of a content header, for its row and for checks of the header.
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
        self, plan: Plan, options: Options, packs: Packs | None, report: Any, messages: Any
    ) -> None:
        self.messages = messages
        self.reader = ValueReader(messages.headers, options.table_dialect)
        self.tables = TableCache()
        self.report = report
        self.properties = PropertyDecoder()
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
            kept_bytes: cython.longlong = 0 if body is None else min(body.used, sound)
            reads: cython.int = half.connection.reads_bodies
            if self.notes is not None:
                self.notes.note(out, row, body, kept_bytes, reads, self.tables)
            if self.calls is not None:
                self.calls.note(out, row, body, kept_bytes, True, self.tables)
            if self.meanings is not None:
                self.meanings.write(out, row, body, kept_bytes, self.tables)
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
        properties: PropertyDecoder = self.properties
        if content.header_start < 0 or out.made == 0:
            return 0
        reader.oddities = 0
        at: cython.longlong = content.header_start + 12
        if content.located != properties.located:
            properties.locate(reader, content.class_id, at, content.header_end)
        words: Vocabularies = out.vocabularies
        present: cython.int = properties.present & out.made
        if present & 1:
            self._name(out.content_type, words.content_type, row, at, 0)
        if present & 1 << 1:
            self._name(out.content_encoding, words.content_encoding, row, at, 1)
        if present & 1 << 2:
            out.headers.begin(row)
            self.tables.put_table(
                reader, at + properties.starts[2], at + properties.starts[2] + properties.lengths[2]
            )
            out.headers.end()
        if present & 1 << 3:
            out.delivery_mode.values[row] = reader.data[at + properties.starts[3]]
        if present & 1 << 4:
            out.priority.values[row] = reader.data[at + properties.starts[4]]
        if present & 1 << 5:
            self._text(out.correlation_id, row, at, 5)
        if present & 1 << 6:
            self._name(out.reply_to, words.reply_to, row, at, 6)
        if present & 1 << 7:
            self._name(out.expiration, words.expiration, row, at, 7)
        if present & 1 << 8:
            self._text(out.message_id, row, at, 8)
        if present & 1 << 9:
            ms: cython.longlong = reader.timestamp_ms(at + properties.starts[9])
            if ms >= 0:
                out.message_timestamp.values[row] = ms * 1000
            else:
                reader.oddities |= OUT_OF_RANGE
        if present & 1 << 10:
            self._name(out.type, words.type, row, at, 10)
        if present & 1 << 11:
            self._name(out.user_id, words.user_id, row, at, 11)
        if present & 1 << 12:
            self._name(out.app_id, words.app_id, row, at, 12)
        if present & 1 << 13:
            self._name(out.cluster_id, words.cluster_id, row, at, 13)
        if reader.oddities:
            for code in oddity_codes(reader.oddities):
                where = f"properties of {method_layout.method_name(content.method)}"
                detail = oddity_text(code, where, reader.strange_tag)
                self.report(code, half, detail, content.place())
        return 0

    def _text(
        self, column: Texts, row: cython.longlong, at: cython.longlong, index: cython.int
    ) -> cython.int:
        """Write the property with this index of the list at `at`."""
        start: cython.longlong = at + self.properties.starts[index]
        return copy_text(column, row, self.reader, start, self.properties.lengths[index])

    def _name(
        self,
        column: Codes,
        vocabulary: Vocabulary,
        row: cython.longlong,
        at: cython.longlong,
        index: cython.int,
    ) -> cython.int:
        """Write the property with this index of the list at `at` as a code."""
        start: cython.longlong = at + self.properties.starts[index]
        length: cython.longlong = self.properties.lengths[index]
        return copy_name(column, vocabulary, row, self.reader, start, length)

    def _write_body(
        self, content: Content, status: cython.int, sound: cython.longlong, row: cython.longlong
    ) -> cython.int:
        """Write the body and its hash, if they were requested."""
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
