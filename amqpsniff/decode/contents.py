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
"""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter

import cython
from cython.cimports.amqpsniff.decode.codes import (
    AWAIT_BODY,
    AWAIT_HEADER,
    AWAIT_METHOD,
    COMPLETE,
    INCOMPLETE,
    TRUNCATED,
)
from cython.cimports.amqpsniff.decode.meanings import may_be_object
from cython.cimports.amqpsniff.decode.messages import MessageWriter
from cython.cimports.amqpsniff.decode.properties import PropertyDecoder
from cython.cimports.amqpsniff.decode.state import Content, MemoryBudget
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode import method_layout
from amqpsniff.decode.meanings import MAX_BODY_BYTES as PACKS_READ
from amqpsniff.decode.octets import own_seed
from amqpsniff.decode.properties import PLACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.methods import DecodedMethod
    from amqpsniff.decode.rows import FrameRows
    from amqpsniff.decode.state import Half
    from amqpsniff.decode.values import ValueReader
    from amqpsniff.options import Options
    from amqpsniff.packs import Packs
    from amqpsniff.plan import Plan

MAX_OPEN_CONTENTS = 2047
"""Contents open at once in one half-stream: RabbitMQ's default channel-max. A hostile stream could
open one on each of 65,535 channels, in every connection."""

MAX_BODY_BYTES = 128 * 1024 * 1024
"""Bytes of bodies held at once when bodies are asked for: the largest message RabbitMQ took up to
3.13. A body that does not fit has its size but no bytes."""

_OTHER = cython.declare(cython.longlong, 1024)
"""What a content costs beside the current one of its half-stream, whatever is in it."""

METHOD_BYTES = 1280
"""Bytes of a method with content in which all its texts are; more than that is left over."""

_OPENING = cython.declare(cython.longlong, 39)
"""Bytes of the smallest frames that open a content: basic.publish (17) and its header (22)."""

_METHOD = cython.declare(cython.longlong, METHOD_BYTES)
_HEADERS = cython.declare(cython.int, PLACES["headers"])
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
    marks, which are computed while `marking`: for all messages with `marking_all`, else only for
    those that the broker may return.
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
    least_kept: cython.longlong
    most_kept: cython.longlong
    most_held: cython.longlong
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
        self.properties = PropertyDecoder()
        self.writer = MessageWriter(plan, options, packs, report, messages, self.properties)
        self.report = report
        self.new_hash = import_module("hashlib").sha256 if options.body_sha256 else None
        self.keep_bodies = options.bodies
        self.most_held = MAX_BODY_BYTES
        self.least_kept = 0 if self.keep_bodies or packs is None else packs.least_body()
        self.most_kept = MAX_BODY_BYTES if self.keep_bodies else PACKS_READ
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
        if half.active is not None and half.active.channel == channel:
            return half.active
        if half.others:
            return half.others.get(channel)
        return None

    @cython.cfunc
    def _place(self, half: Half, channel: cython.int) -> Content:
        """The content object to open on a channel."""
        content = self._find(half, channel)
        if content is not None:
            return content
        if half.active is None:
            half.active = Content()
        if half.active.state == AWAIT_METHOD:
            return half.active
        full: cython.bint = not self.budget.allows(_OTHER) and half.others
        if full or len(half.others) >= MAX_OPEN_CONTENTS:
            self._forget_oldest(half)
        if not half.others:
            half.others = {}
        half.others[half.active.channel] = half.active
        half.active = Content()
        self.budget.held += _OTHER
        return half.active

    def _forget_oldest(self, half: Any) -> Any:
        channel = next(iter(half.others))
        content = half.others.pop(channel)
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
        content: Content = half.active
        if content is None or content.channel != channel:
            content = self._place(half, channel)
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
        """A method without content: one that is open on the channel ends here."""
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
        known: cython.bint = not half.lossy or half.frame_channel in half.opened_since
        if known and not half.repeats("content-unexpected-frame"):
            self.report("content-unexpected-frame", half, detail)

    def unsure(self, half: Any, channel: Any) -> None:
        """A frame of the channel was cut before it could be identified: it may begin a content."""
        if not half.lossy:
            half.lossy = True
            half.opened_since = set()
        half.opened_since.discard(channel)

    def note_loss(self, half: Half) -> None:
        """Frames of a half-stream may be missing before the next row."""
        place = (half.number, half.ts_ns)
        self.losses.append((self.frames.rows, half.connection, half.direction, *place))

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
        if 0 <= content.body_size < self.least_kept:  # too short for a name that packs know
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
        if class_id == content.class_id and answer == 0 and reader.u16(at + 2) == 0:
            return 0
        if class_id != content.class_id:
            detail = f"class {class_id}, method of class {content.class_id}"
            self.report("content-class-wrong", half, detail)
        if reader.u16(at + 2):
            detail = f"weight {reader.u16(at + 2)}"
            self.report("content-weight", half, detail)
        if answer == 3:
            detail = f"flags {reader.u16(at + 12):#06x}"
            self.report("property-flags-undefined", half, detail)
        elif answer and whole:
            detail = "bytes left over" if answer == 2 else "bytes missing"
            self.report("properties-malformed", half, detail)
        return 0

    @cython.cfunc
    def _awaiting(self, half: Half) -> Content:
        """The content that the body frame under way belongs to, or None."""
        content: Content = self._find(half, half.frame_channel)
        if content is None or content.state != AWAIT_BODY:
            return None
        if content.lossy:
            lost: cython.longlong = content.lost + half.frame_offset - content.lost_at
            if lost - _OPENING >= content.body_rest():
                self._end(half, content, TRUNCATED)
                return None
            if content.lost == 0:
                content.sound = content.body_seen
            content.lossy = False
            content.lost = lost
        return content

    def body_bytes(
        self, half: Half, reader: ValueReader, at: cython.longlong, count: cython.longlong
    ) -> cython.int:
        """Bytes of a body, a frame or a piece of one."""
        content: Content = self._awaiting(half)
        if content is None:
            return 0
        rest: cython.longlong = content.body_rest()
        if content.body_marking:
            share: cython.ulonglong = reader.hash_part(
                self.seed, at, min(count, rest), content.body_seen
            )
            content.body_mark = (content.body_mark + share) & _MASK64
        content.body_seen += count
        if content.hash is not None or content.keeping:
            self._take(half, content, reader, at, min(count, rest))
        return 0

    def _take(
        self,
        half: Half,
        content: Content,
        reader: ValueReader,
        at: cython.longlong,
        count: cython.longlong,
    ) -> cython.int:
        """Bytes of a body that is asked for."""
        if content.hash is not None:
            content.hash.update(reader.bytes_at(at, count))
        if content.keeping and not content.body_missing:
            if not self.keep_bodies:
                first: cython.bint = content.body.used == 0 and count > 1
                if first and not may_be_object(reader.data[at], reader.data[at + 1]):
                    return content.end_body()
                count = min(count, max(self.most_kept - content.body.used, 0))
            if self.held + count > self.most_held:
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
        self.budget.held -= _OTHER * len(half.others)
        half.others = {}
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
