# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Framing: the bytes of a half-stream cut into frames.

A half-stream begins with a protocol header, with a proxy's header before it, or with other bytes.
Those may be AMQP from the middle of a connection, for which `search` looks. If the beginning of the
connection was captured, they are another protocol, and the first bytes are kept to identify it. A
capture may lack only the TCP handshake, for example after a display filter: then connection.start,
the answer to the protocol header, is recognized by its own first bytes.

At a known boundary, a frame that is complete in the current bytes is passed on from there; an
incomplete frame is kept until the rest comes, and a body is only counted. Broken framing (wrong end
byte, impossible size) is a finding.

After a hole inside a frame of known size, the next boundary is computed: a body continues after the
hole, any other frame is passed on as cut. Otherwise, and after broken framing, `resync` looks for
the next boundary; the frames of the chain that it accepts are passed on as if read in order.
"""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter

import cython
from cython.cimports.amqpsniff.byteorder import u16, u32
from cython.cimports.amqpsniff.decode.amqp010 import Amqp010Framer
from cython.cimports.amqpsniff.decode.amqp10.framer import Amqp10Framer
from cython.cimports.amqpsniff.decode.amqp10.values import TypedReader
from cython.cimports.amqpsniff.decode.codes import (
    AMQP010,
    AMQP10,
    AMQP_BYTES,
    BODY,
    FRAME_END,
    FRAMES,
    METHOD,
    NOT_AMQP,
    PROTOCOL_HEADER,
    SEARCH,
    START,
    UNIDENTIFIED,
    UNSUPPORTED_VERSION,
)
from cython.cimports.amqpsniff.decode.frames import FrameHandler
from cython.cimports.amqpsniff.decode.resync import Candidate, FrameProbe, Search
from cython.cimports.amqpsniff.decode.state import Connection, Half
from cython.cimports.amqpsniff.decode.values import ValueReader
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode import method_layout
from amqpsniff.decode.amqp010 import HEADER as AMQP010_HEADER
from amqpsniff.decode.amqp10.framer import HEADERS as AMQP10_HEADERS
from amqpsniff.decode.claims import PROXY, UNFINISHED
from amqpsniff.decode.contents import LATE
from amqpsniff.decode.preamble import (
    FIRST_BYTES_OF_PREAMBLES,
    MAX_PREAMBLE_BYTES,
    is_amqp_1_0,
    preamble_bytes,
)
from amqpsniff.decode.resync import MAX_KEPT_FRAME_BYTES
from amqpsniff.decode.state import TENTATIVE_BYTES
from amqpsniff.spec import PROTOCOL_HEADERS, protocol_of

_IN_FRONT = (
    ", as RabbitMQ 4, which speaks both, answers bytes before the client's header: a proxy between "
    "them sends such with the PROXY protocol"
)
_alike = lru_cache(16)(bytes)
"""Gives one object for equal versions: very many connections request the same one."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.contents import ContentAssembler

_MAX_REREAD = cython.declare(cython.longlong, 128 * 1024)
"""Largest frame with a wrong end byte that is searched for frames, for its size may be wrong: the
usual frame-max. Of bytes made to break again and again each would be read that many times."""

FIRST_BYTES = 16
"""Bytes kept of a half-stream that is not AMQP, to identify it."""

START_BYTES = 11
"""Bytes that tell connection.start: the frame's header, class and method."""

_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_BYTES)
_DIALECTS = cython.declare(dict, method_layout.HEADER_DIALECTS)
_VERSIONS = cython.declare(dict, {b"AMQP" + row.octets: row.octets for row in PROTOCOL_HEADERS})
_BY_ROW = itemgetter(0)
_UNREAD = (
    frozenset(row.octets for row in PROTOCOL_HEADERS)
    - frozenset(method_layout.HEADER_DIALECTS)
    - AMQP10_HEADERS
)
"""What follows `AMQP` in protocol headers of versions that are not decoded."""


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=True)
def _take_header(half: Half, reader: ValueReader, at: cython.longlong) -> cython.bint:
    """Take the frame header at `at` for that of the frame under way; false if it cannot be one."""
    if at < 0 or at + 7 > len(reader.data):
        raise IndexError("frame header outside the data")
    with cython.boundscheck(False):  # the caller checked the range
        kind: cython.int = reader.data[at]
        channel: cython.int = cython.cast(cython.int, u16(reader.data, at + 1))
        size: cython.longlong = u32(reader.data, at + 3)
    half.frame_offset = half.offset
    half.frame_type = kind
    half.frame_channel = channel
    half.frame_size = size
    # RabbitMQ compares the payload alone with frame-max (measured on 3.10.8)
    limit: cython.longlong = half.connection.frame_max
    if 0 < kind < 11 and (limit <= 0 or size <= limit):
        return kind == BODY or size <= _MAX_KEPT
    return False


@cython.cclass
class Framer:
    """Cuts half-streams into frames and hands these on.

    Its state is in the `Half` that each call passes.

    Args:
        handler: Gets every frame.
        amqp10_frames: Gets the frames of AMQP 1.0.
    """

    probe: FrameProbe
    report: Any
    amqp010: Amqp010Framer

    handler: FrameHandler
    contents: ContentAssembler
    amqp10: Amqp10Framer

    def __init__(self, handler: Any, amqp10_frames: Any) -> None:
        self.handler = handler
        self.contents = handler.contents
        self.report = handler.report
        self.probe = FrameProbe(handler)
        self.amqp010 = Amqp010Framer(handler)
        self.amqp10 = Amqp10Framer(handler, amqp10_frames, self._protocol_header)

    def octets(
        self, half: Half, octets: bytes, start: cython.longlong, length: cython.longlong
    ) -> cython.int:
        """Bytes that are not in the block at hand."""
        end: cython.longlong = start + length
        search: Search
        if half.mode == SEARCH:
            search = half.search
            start += self._search(half, octets[start : min(end, start + search.room())])
        if start == end:
            return 0
        reader: ValueReader = self.handler.block.over(octets)
        return self.data(half, reader, start, end)

    def data(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """The bytes `at`..`end` of the reader's data are the next of a half-stream."""
        search: Search
        while at < end:
            if half.mode == FRAMES:
                if half.remaining > 0:
                    at = self._continue_counted(half, reader, at, end)
                elif half.stored > 0 or end - at < 7:
                    at = self._continue_kept(half, reader, at, end)
                else:
                    at = self._frames(half, reader, at, end)
            elif half.mode == START or half.mode == UNIDENTIFIED:
                at = self._begin(half, reader, at, end)
            elif half.mode == SEARCH:
                search = half.search
                at += self._search(half, reader.bytes_at(at, min(end - at, search.room())))
            elif half.mode == AMQP10:
                typed: TypedReader = cython.cast(TypedReader, reader, typecheck=True)
                at = self.amqp10.data(half, typed, at, end)
            elif half.mode == AMQP010:
                at = self.amqp010.data(half, reader, at, end)
            else:
                half.offset += end - at
                return 0
        return 0

    def gap(self, half: Half, missing: cython.longlong) -> cython.int:
        """`missing` bytes of a half-stream are not in the capture."""
        if half.mode == AMQP10:
            return self.amqp10.gap(half, missing)
        if half.mode == AMQP010:
            return self.amqp010.gap(half, missing)
        if half.connection.is_amqp10 and (half.mode == START or half.mode == SEARCH):
            half.stored = 0
            half.offset += missing
            self.amqp10.begin(half)
            self.amqp10.search(half)
            return 0
        if (
            half.mode == SEARCH
            and half.connection.requested_protocol is not None
            and (half.connection.requested_protocol in _UNREAD)
        ):
            half.mode = UNSUPPORTED_VERSION
            half.search = None
        search: Search
        while half.mode == SEARCH:
            search = half.search
            chain = search.gap(missing)
            if chain is None:
                half.offset = search.end()
                self.contents.note_loss(half)
                return 0
            self._take_up(half, search, chain, search.end(), self.handler.frames.moment())
        if half.mode == UNIDENTIFIED:
            half.mode = NOT_AMQP
        if half.mode == NOT_AMQP or half.mode == UNSUPPORTED_VERSION:
            half.offset += missing
            return 0
        if half.mode == START:
            half.stored = 0
            half.mode = FRAMES
        if half.remaining > 0:
            missing = self._gap_in_counted(half, missing)
        elif half.stored > 0:
            missing = self._gap_in_kept(half, missing)
        half.offset += missing
        if missing:
            self._lose(half, half.offset - missing, False)
            half.search.tentative = True
        return 0

    def finish(self, half: Half) -> cython.int:
        """End of a half-stream: pass on the best chain of the search."""
        if half.mode == AMQP10:
            self.amqp10.finish(half)
        if half.mode == START and half.stored:
            self._end_start(half)
        if half.mode == FRAMES and half.stored and self.handler.claims is not None:
            begin: bytes = half.store.bytes_between(0, half.stored)
            self.handler.claim(half, UNFINISHED, half.frame_offset, 0, 0, begin, -1, False)
        search: Search
        while half.mode == SEARCH:
            search = half.search
            chain = search.finish()
            if chain is None:
                half.search = None  # the two hold each other
                return 0
            self._take_up(half, search, chain, search.end(), self.handler.frames.moment())
        return 0

    # at a known place

    def _frames(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Frames from a boundary on, as long as their headers are at hand; position gone on to."""
        handler: FrameHandler = self.handler
        stop: cython.longlong
        last: cython.int
        while half.mode == FRAMES and end - at >= 7:
            if not _take_header(half, reader, at):
                self._refuse(half)
                return at
            stop = at + 7 + half.frame_size
            if stop >= end:
                return self._begun(half, reader, at, end)
            last = reader.data[stop]
            if half.frame_type == METHOD:
                handler.method(half, reader, at + 7, stop, True)
            elif half.frame_type == BODY:
                handler.body(half, reader, at + 7, stop)
            else:
                handler.frame(half, reader, at + 7, stop, True)
            if last == FRAME_END:
                if handler.claims is not None:
                    handler.claim_end(half, half.frame_offset + stop - at)
            else:
                self._wrong_end(half, last)
                if half.frame_type != BODY and stop + 1 - at <= _MAX_REREAD:
                    stop = at + 6
                half.offset += stop + 1 - at
                self._lose_frame(half, False)
                return stop + 1
            half.offset += stop + 1 - at
            at = stop + 1
        return at

    def _begun(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """A frame begins at `at` that is not whole; position gone on to."""
        if half.frame_type == BODY:
            half.remaining = half.frame_size + 1
            half.offset += 7
            self.handler.claim_body(half)
            return at + 7
        half.expected = half.frame_size + 8
        count: cython.longlong = half.keep(reader, at, end - at)
        half.offset += count
        return at + count

    def is_tentative(self, half: Any) -> Any:
        """True if a search found the framing, and not long ago; see `state.TENTATIVE_BYTES`."""
        return half.search is not None and half.frame_offset < half.search

    def _refuse(self, half: Half) -> cython.int:
        """The bytes at a frame boundary are not a frame header."""
        kind: cython.int = half.frame_type
        if 0 < kind < 11:
            code = "frame-too-large"
            detail = f"{method_layout.frame_words(kind, -1)} of {half.frame_size} bytes"
            if half.connection.frame_max > 0:
                detail += f", frame-max {half.connection.frame_max}"
        else:
            code, detail = "frame-type-unknown", f"type {kind}"
        if not self.is_tentative(half):
            self.report(code, half, detail)
        return self._lose_frame(half, True)

    def _wrong_end(self, half: Any, octet: Any) -> None:
        if self.is_tentative(half):
            return
        end_octet = (
            f"{octet:#04x}" if half.frame_channel else "another byte"
        )  # a login may be there
        detail = f"{end_octet} instead of 0xce at stream offset {half.frame_offset}"
        self.report("frame-end-wrong", half, detail)

    def _continue_counted(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Inside a frame whose bytes are only counted; returns the next position."""
        count: cython.longlong = half.remaining - 1
        if count > end - at:
            count = end - at
        if count > 0:
            if not half.skipping:
                self.handler.body_bytes(half, reader, at, count)
            half.remaining -= count
            half.offset += count
            at += count
        if at < end:
            half.remaining = 0
            half.offset += 1
            self._end_counted(half)
            if reader.data[at] != FRAME_END:
                self._wrong_end(half, reader.data[at])
                self._lose_frame(half, False)
            elif self.handler.claims is not None:
                self.handler.claim_end(half, half.offset - 1)
            at += 1
        return at

    def _end_counted(self, half: Half) -> cython.int:
        """The frame whose bytes were only counted is over."""
        half.remaining = 0
        if half.skipping:
            return self._cut_frame(half)
        return self.handler.body_end(half)

    def _cut_frame(self, half: Half) -> cython.int:
        """End of a kept frame of which only the beginning was captured."""
        reader: ValueReader = self.handler.scratch
        reader.data = half.store.octets
        kept_bytes: cython.longlong = half.stored
        half.stored = 0
        half.skipping = False
        end: cython.longlong = min(kept_bytes, 7 + half.frame_size)
        self.handler.frame(half, reader, 7, end, kept_bytes >= 7 + half.frame_size)
        half.expected = 0
        return half.empty()

    def _continue_kept(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Inside a frame that is kept until it is whole; returns the next position."""
        if half.stored == 0:
            half.frame_offset = half.offset
            half.expected = 0
        count: cython.longlong = (half.expected or 7) - half.stored
        if count > end - at:
            count = end - at
        count = half.keep(reader, at, count)
        half.offset += count
        at += count
        if half.expected == 0 and half.stored == 7:
            self._kept_header(half)
        elif half.expected and half.stored == half.expected:
            self._kept_frame(half)
        return at

    def _kept_frame(self, half: Half) -> cython.int:
        """The frame that was kept is whole."""
        count: cython.longlong = half.stored
        half.stored = 0
        half.expected = 0
        store: ValueReader = self.handler.scratch
        store.data = half.store.octets
        last: cython.int = store.data[count - 1]
        self.handler.frame(half, store, 7, count - 1, True)
        if last == FRAME_END:
            self.handler.claim_end(half, half.frame_offset + count - 1)
        else:
            self._wrong_end(half, last)
            self._reread(half, half.store.bytes_between(0, count))
        if half.stored == 0:
            half.empty()
        return 0

    def _reread(self, half: Any, frame: Any) -> Any:
        """Search in a kept frame whose end byte was wrong, as if it had come in one piece."""
        if len(frame) > _MAX_REREAD:
            return self._lose_frame(half, False)
        half.offset -= len(frame) - 7
        self._lose_frame(half, False)
        return self.octets(half, frame, 7, len(frame) - 7)

    def _kept_header(self, half: Half) -> cython.int:
        """The seven bytes of a frame header came in pieces and are complete."""
        header: ValueReader = self.handler.scratch
        header.data = half.store.octets
        half.offset -= 7
        if not _take_header(half, header, 0):
            octets: bytes = half.store.bytes_between(0, 7)
            half.stored = 0
            self._refuse(half)
            return self.octets(half, octets, 0, 7)
        half.offset += 7
        if half.frame_type == BODY:
            half.stored = 0
            half.remaining = half.frame_size + 1
            self.handler.claim_body(half)
        else:
            half.expected = half.frame_size + 8
        return 0

    # the first bytes of a half-stream

    def _begin(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """At the first bytes of a half-stream; returns the next position."""
        if half.mode == UNIDENTIFIED:
            self._strange(half, reader.bytes_at(at, min(end - at, FIRST_BYTES)))
            half.offset += end - at
            return end
        start_captured: cython.bint = half.connection.conversation.syn_seen
        if start_captured and half.stored == 0:
            if end - at >= 8 and reader.u32(at) == AMQP_BYTES:
                half.frame_offset = half.offset
                half.offset += 8
                self._protocol_header(half, reader.bytes_at(at, 8))
                return at + 8
            if half.direction and half.connection.is_amqp and reader.data[at] == METHOD:
                half.mode = FRAMES
                return at
        first: cython.bint = half.offset == half.stored and not (start_captured and half.direction)
        proxied: cython.longlong = 0
        if first:  # some headers end with a mark: search for it in all bytes
            kept_octets: bytes = half.store.bytes_between(0, half.stored) if half.stored else b""
            begun: bytes = kept_octets + reader.bytes_at(at, min(end - at, MAX_PREAMBLE_BYTES))
            if begun[:1] in FIRST_BYTES_OF_PREAMBLES:
                proxied = preamble_bytes(begun, start_captured)
        count: cython.longlong = max(0, max(8, proxied) - half.stored)
        if proxied == 0 and 8 <= half.stored < START_BYTES:
            count = START_BYTES - half.stored
        if count > end - at:
            count = end - at
        half.keep(reader, at, count)
        half.offset += count
        at += count
        octets: bytes = half.store.bytes_between(0, half.stored)
        if proxied:
            if proxied == len(octets):
                if self.handler.claims is not None:
                    self.handler.claim(half, PROXY, 0, 0, len(octets), octets, -1, True)
                half.stored = 0
                self._note_first(half, octets)
        elif octets[:4] != b"AMQP"[: len(octets)] or self._is_text(half, octets):
            if not self._is_answer(half, octets):
                self._headless(half, octets)
            elif len(octets) == START_BYTES:
                half.stored = 0
                half.offset -= START_BYTES
                half.mode = FRAMES
                self.octets(half, octets, 0, START_BYTES)
        elif len(octets) == 8:
            half.stored = 0
            half.frame_offset = half.offset - 8
            self._protocol_header(half, octets)
        return at

    def _strange(self, half: Any, octets: Any) -> None:
        """More bytes of a half-stream that is not AMQP: its first bytes are kept."""
        half.first_bytes = (half.first_bytes + octets)[:FIRST_BYTES]
        if len(half.first_bytes) == FIRST_BYTES:
            half.mode = NOT_AMQP

    def _note_first(self, half: Half, octets: Any) -> None:
        """Remember first bytes that are not AMQP, in case it is not AMQP that follows."""
        half.first_bytes = octets[:FIRST_BYTES]
        half.first_number = half.number
        half.first_ns = half.ts_ns

    def _is_text(self, half: Half, octets: Any) -> Any:
        """True if AMQP is but a part of something, such as the mechanism AMQPLAIN."""
        if len(octets) < 8 or half.connection.conversation.syn_seen:
            return False
        return protocol_of(octets[4:]) is None

    def _is_answer(self, half: Half, octets: Any) -> Any:
        """True if these are, or may become, connection.start after a protocol header."""
        connection: Connection = half.connection
        answers: cython.bint = half.direction != connection.client_direction
        if connection.conversation.syn_seen or not connection.began or not answers:
            return False
        begun = octets[:3] == b"\1\0\0"[: len(octets)]
        return begun and octets[7:] == b"\0\x0a\0\x0a"[: max(0, len(octets) - 7)]

    @cython.ccall
    @cython.exceptval(-1)
    def _protocol_header(self, half: Half, octets: bytes) -> cython.int:
        """Eight bytes that begin with AMQP, at the begin of a half-stream."""
        connection: Connection = half.connection
        if self.handler.claims is not None:
            self.handler.claim(
                half, PROTOCOL_HEADER, half.frame_offset, 0, 8, bytes(octets), -1, True
            )
        connection.is_amqp = True
        connection.began = connection.began or half.search is None
        if not connection.role_proved:
            self.handler.refresh(connection)
            if connection.client_direction < 0:
                self.handler.set_client(connection, half.direction)
        self.handler.protocol_header(half)
        half.mode = FRAMES
        version: bytes = _VERSIONS.get(octets)
        if version is None:
            version = _alike(octets[4:])
        from_client: cython.bint = half.direction == connection.client_direction
        if from_client:
            connection.requested_protocol = version
        elif (
            connection.requested_protocol is None
            or connection.requested_protocol == version
            or (connection.requested_protocol in AMQP10_HEADERS and version in AMQP10_HEADERS)
        ):
            half.first_bytes = octets  # an answer, or a refusal of the bytes before
        else:
            requested, offered = _version(connection.requested_protocol), _version(version)
            detail = f"the client asked for {requested}, the broker offers {offered}"
            if version in AMQP10_HEADERS and connection.requested_protocol in _DIALECTS:
                detail += _IN_FRONT
            self.report("protocol-version-refused", half, detail, (None, half.number, half.ts_ns))
        dialect: cython.int = _DIALECTS.get(version, 0)
        if version in AMQP10_HEADERS:
            self.amqp10.begin(half)
        elif dialect == 0:
            self._other_protocol(half, version)
            if version == AMQP010_HEADER:
                self.amqp010.begin(half)
        elif connection.dialect == 0 and from_client:
            connection.dialect = dialect
        return 0

    def _other_protocol(self, half: Any, version: Any) -> None:
        """A protocol header opens none of the dialects."""
        if protocol_of(version) is None:
            code = "protocol-header-unknown"
        else:
            code = "protocol-not-decoded"
            half.mode = UNSUPPORTED_VERSION
            if half.connection.requested_protocol is None:  # the client's header was not captured
                half.connection.requested_protocol = version
        self.report(code, half, _version(version), (None, half.number, half.ts_ns))

    def _headless(self, half: Half, octets: Any) -> None:
        """The first bytes of a half-stream are no protocol header."""
        half.stored = 0
        half.offset -= len(octets)
        known_start = half.connection.conversation.syn_seen
        if known_start and half.direction == 0:
            half.mode = UNIDENTIFIED
            half.offset += len(octets)
            half.first_number = half.number
            half.first_ns = half.ts_ns
            self._strange(half, octets)
            return
        if known_start and half.offset == 0:
            self._note_first(half, octets)
        if not known_start:
            half.lossy = True
            half.opened_since = set()
        half.mode = SEARCH
        half.search = Search(self.probe, half, half.offset)
        self.octets(half, octets, 0, len(octets))

    def _end_start(self, half: Half) -> cython.int:
        """A half-stream ended within a possible proxy header."""
        octets: bytes = half.store.bytes_between(0, half.stored)
        if octets[:4] != b"AMQP"[: len(octets)]:
            half.number = 0
            half.ts_ns = NULL
            self._headless(half, octets)
        return 0

    # after holes and broken framing

    def _gap_in_counted(self, half: Half, missing: cython.longlong) -> cython.longlong:
        """A hole in a frame that is counted; bytes of the hole behind that frame."""
        payload: cython.longlong = min(missing, half.remaining - 1)
        if not half.skipping:
            self.handler.body_missing(half, payload)
        if missing < half.remaining:
            half.remaining -= missing
            half.offset += missing
            return 0
        missing -= half.remaining
        half.offset += half.remaining
        self._end_counted(half)
        return missing

    def _gap_in_kept(self, half: Half, missing: cython.longlong) -> cython.longlong:
        """A hole in a frame that is kept; bytes of the hole behind that frame."""
        if half.expected == 0:
            missing += half.stored
            half.offset -= half.stored
            half.stored = 0
            return missing
        to_come: cython.longlong = half.expected - half.stored
        if missing < to_come:
            half.skipping = True
            half.remaining = to_come - missing
            half.offset += missing
            return 0
        half.offset += to_come
        self._cut_frame(half)
        return missing - to_come

    def _lose_frame(self, half: Half, forced: cython.bint) -> cython.int:
        """Framing is lost in the frame under way: search from `half.offset` on."""
        if self.is_tentative(half) and not half.connection.began:
            self._unlearn(half.connection)
        return self._lose(half, half.frame_offset, forced)

    def _lose(self, half: Half, begin: cython.longlong, forced: cython.bint) -> cython.int:
        """Framing is lost from `begin` on: search from `half.offset` on."""
        self.contents.lose(half, begin)
        tentative: cython.bint = half.mode == FRAMES and self.is_tentative(half)
        if tentative and not half.connection.began:
            half.connection.role_proved = False
        half.forget_frame()
        half.mode = SEARCH
        half.search = Search(self.probe, half, half.offset, forced)
        half.search.tentative = tentative
        return 0

    def _unlearn(self, connection: Any) -> None:
        """Forget the facts of a connection that came from frames which may be bytes of a body."""
        connection.past_login = False
        connection.dialect = self.handler.dialect
        connection.frame_max = -1
        connection.login = connection.requested_protocol = None

    def _search(self, half: Half, octets: bytes) -> cython.longlong:
        """Search on with these bytes; how many of them are done with."""
        search: Search = half.search
        count: cython.longlong = len(octets)
        before: bytes = half.first_bytes
        if half.offset != len(before) or half.connection.is_amqp:
            before = b""
        if self._is_amqp10(half, before + octets):
            self.amqp10.begin(half)
            self.amqp10.search(half, half.offset == len(before))
            half.offset -= len(before)
            reader = self.handler.block.over(before)
            self.amqp10.data(half, cython.cast(TypedReader, reader, typecheck=True), 0, len(before))
            return 0
        if (
            half.connection.requested_protocol is not None
            and half.connection.requested_protocol in _UNREAD
        ):
            half.mode = UNSUPPORTED_VERSION
            half.search = None
            self._other_protocol(half, half.connection.requested_protocol)
            return 0
        if len(half.first_bytes) < FIRST_BYTES and not half.connection.is_amqp:
            half.first_bytes = (half.first_bytes + octets)[:FIRST_BYTES]
        begin: cython.longlong = search.end()
        moment: cython.longlong = self.handler.frames.moment()
        chain = search.feed(octets, half.number, half.ts_ns, moment)
        if chain is not None:
            self._take_up(half, search, chain, begin, moment)
            return max(0, chain.next - begin)
        half.offset += count
        if search.hopeless():
            half.mode = NOT_AMQP
            half.search = None
        return count

    def _is_amqp10(self, half: Half, octets: bytes) -> cython.bint:
        """True if a connection speaks AMQP 1.0; its protocol header may be missing."""
        connection = half.connection
        if connection.is_amqp10:
            return True
        if (
            connection.is_amqp
            or connection.requested_protocol is not None
            or not is_amqp_1_0(octets)
        ):
            return False
        self.handler.refresh(connection)
        return True

    def _take_up(
        self,
        half: Half,
        search: Search,
        chain: Candidate,
        until: cython.longlong,
        now: cython.longlong,
    ) -> None:
        """Take the frames of a believed chain and the bytes from it to `until`, at this moment."""
        half.search = chain.start + TENTATIVE_BYTES if search.tentative else None
        half.first_bytes = b""
        half.mode = FRAMES
        half.connection.is_amqp = True
        self._prove_role(half, chain.frames)
        number, ts_ns = half.number, half.ts_ns
        noted = len(self.contents.losses)
        for *frame, packet in chain.frames:
            half.number, half.ts_ns, moment = packet
            first: cython.longlong = self.handler.frames.rows
            self._chain_frame(half, *frame)
            if moment != now:
                self._note_late(first, moment)
        half.offset = chain.next
        for octets, half.number, half.ts_ns, moment in search.rest(chain.next, until):
            first = self.handler.frames.rows
            self.octets(half, octets, 0, len(octets))
            if moment != now:
                self._note_late(first, moment)
        half.number, half.ts_ns = number, ts_ns
        self.contents.losses[noted:] = sorted(self.contents.losses[noted:], key=_BY_ROW)

    def _note_late(self, first: Any, moment: Any) -> None:
        """Mark rows from `first` on as late: their bytes came at `moment`."""
        for row in range(first, self.handler.frames.rows):
            self.contents.losses.append((row, moment, LATE))

    def _prove_role(self, half: Half, frames: Any) -> None:
        """Identify the client by the methods of a chain, before any row is written."""
        reader: ValueReader = self.handler.scratch
        for _, kind, _, _, payload, *_ in frames:
            if half.connection.role_proved:
                return
            if kind == 1 and len(payload) >= 4:
                reader.read_from(payload)
                self.handler.prove_role(half, reader, 0, len(payload))

    def _chain_frame(
        self,
        half: Half,
        offset: Any,
        kind: Any,
        channel: Any,
        size: Any,
        payload: Any,
        missing: Any,
    ) -> None:
        """Hand on one frame of a chain that is believed."""
        half.frame_offset = offset
        half.frame_type = kind
        half.frame_channel = channel
        half.frame_size = size
        if kind == BODY:
            self.handler.claim_body(half)
            self._chain_body(half, payload, missing)
            self.handler.body_end(half)
        elif len(payload) > size:
            self._protocol_header(half, payload)
        else:
            reader: ValueReader = self.handler.scratch
            reader.read_from(payload)
            self.handler.frame(half, reader, 0, size, True)
        if kind == BODY or len(payload) <= size:
            self.handler.claim_end(half, offset + 7 + size)

    def _chain_body(self, half: Half, payload: Any, missing: Any) -> None:
        """Hand on a body of a chain; if it was not kept, its bytes are only counted."""
        if payload is not None:
            reader: ValueReader = self.handler.scratch
            reader.read_from(payload)
            self.handler.body_bytes(half, reader, 0, half.frame_size)
            return
        self.handler.refresh(half.connection)
        content = self.contents._awaiting(half)
        if content is not None:
            content.hash = None
            content.body_marking = False
            if content.keeping:
                self.contents._let_go(content)
            self.contents.body_bytes(half, self.handler.scratch, 0, half.frame_size - missing)
            self.contents.body_missing(half, missing)


def _version(octets: Any) -> Any:
    """The protocol version of a protocol header, as text."""
    protocol = protocol_of(octets)
    if protocol is None:
        return "AMQP " + " ".join(str(octet) for octet in octets)
    return f"AMQP {protocol.protocol}"
