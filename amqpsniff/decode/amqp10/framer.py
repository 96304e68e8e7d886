# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Framing of AMQP 1.0: the bytes of a half-stream cut into frames.

A protocol header may stand at any boundary: as the size of a frame its first letters would mean
1.1 GB. After it, or after a boundary that a search found, one frame follows the other. A frame is
kept until it is complete; for a large transfer the fields are read as soon as they are complete,
and the payload is passed on as it comes. A hole inside a frame is skipped by the frame's size. Any
other hole, or broken framing, begins a search: for a protocol header, or for a frame header with
its performative, whose frame must end where another one begins or where the bytes end.
"""

from __future__ import annotations

import re
from collections import deque

import cython
from cython.cimports.amqpsniff.byteorder import u16, u32
from cython.cimports.amqpsniff.decode.amqp10.frames import Amqp10Half
from cython.cimports.amqpsniff.decode.amqp10.values import TypedReader
from cython.cimports.amqpsniff.decode.codes import AMQP10, AMQP_BYTES

from amqpsniff.decode.amqp10 import frames
from amqpsniff.decode.claims import AMQP10 as FRAME_CLAIM
from amqpsniff.decode.claims import AMQP10_PAYLOAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.amqp10.frames import Amqp10Frames
    from amqpsniff.decode.frames import FrameHandler
    from amqpsniff.decode.state import Half

MAX_FRAME_BYTES = 256 * 1024 * 1024
"""Largest frame that is believed."""

MAX_KEPT_FRAME_BYTES = 1024 * 1024
"""Largest frame whose bytes are kept until it is whole; of others the rest is only counted."""

_FIRST_PART = cython.declare(cython.longlong, 64 * 1024)
"""Bytes of a frame after which the payload of a transfer is handed on as it comes."""

MAX_SEARCHED_BYTES = 256 * 1024
"""Bytes that wait for the end of a frame that a search may have found."""

HEADER_BYTES = 8

HEADERS = frozenset((b"\0\1\0\0", b"\3\1\0\0"))
"""The bytes behind `AMQP` in protocol headers of AMQP 1.0."""

_START = re.compile(
    rb"AMQP[\0\x03]\x01\0\0"
    rb"|\0[\0-\x0f]..\x02[\0\x01]..\0(?:\x53|\x80\0{7})[\x10-\x18\x40-\x44][\x45\xc0\xd0]",
    re.DOTALL,
)
_NEXT = re.compile(
    rb"AMQP[\0\x03]\x01\0\0|\0\0\0\x08\x02\0..|\0[\0-\x0f]..[\x02-\x08][\0\x01]..\0[\x53\x80\xa3]",
    re.DOTALL,
)

_EMPTY = re.compile(rb"\0\0\0\x08\x02\0..", re.DOTALL)

_START_BYTES, _NEXT_BYTES = 20, 18
"""Bytes that a match of either takes at most."""
_SHORTEST = HEADER_BYTES + 3  # a frame with the shortest descriptor there is
_LETTER = ord("A")

_HEADER = cython.declare(cython.longlong, HEADER_BYTES)
_PERFORMATIVE = cython.declare(cython.int, frames.PERFORMATIVE)
_MAX_FRAME = cython.declare(cython.longlong, MAX_FRAME_BYTES)
_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_BYTES)


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=True)
def _take_header(half: Half, reader: TypedReader, at: cython.longlong) -> cython.bint:
    """Read the frame header at `at`; False if it is invalid."""
    if at < 0 or at + _HEADER > len(reader.data):
        raise IndexError("a header outside the data")
    size: cython.longlong = u32(reader.data, at)
    with cython.boundscheck(False):  # it is there
        offset: cython.int = reader.data[at + 4]
        kind: cython.int = reader.data[at + 5]
    half.frame_offset = half.offset
    half.frame_type = _PERFORMATIVE + kind
    half.frame_channel = u16(reader.data, at + 6) if kind == 0 else 0
    half.frame_size = size - _HEADER
    return _HEADER <= size <= _MAX_FRAME and offset >= 2 and 4 * offset <= size


class Search:
    """Bytes in which the next boundary is searched, and the packets that they came in.

    `first`: they are the first of their half-stream, before which no frame is missing. `dropped`
    counts bytes before the boundary.
    """

    def __init__(self, first: Any = False) -> None:
        self.pieces: Any = deque()
        self.octets = bytearray()
        self.first = first
        self.dropped = 0

    def add(self, octets: Any, number: Any, ts_ns: Any) -> None:
        """More bytes."""
        self.pieces.append((len(octets), number, ts_ns))
        self.octets += octets

    def put_back(self, octets: Any, number: Any, ts_ns: Any) -> None:
        """Bytes before the first ones."""
        if octets:
            self.pieces.appendleft((len(octets), number, ts_ns))
            self.octets[:0] = octets

    def drop(self, count: Any) -> None:
        """Forget the first bytes."""
        self.dropped += count
        del self.octets[:count]
        while count and self.pieces:
            length, number, ts_ns = self.pieces.popleft()
            if length > count:
                self.pieces.appendleft((length - count, number, ts_ns))
                return
            count -= length

    def pop(self) -> Any:
        """Take the bytes of the first packet: (bytes, packet number, ts_ns)."""
        length, number, ts_ns = self.pieces.popleft()
        octets = bytes(self.octets[:length])
        del self.octets[:length]
        return octets, number, ts_ns

    def find(self, ended: Any) -> Any:
        """Drop the bytes before the next boundary; True if one was found.

        With `ended`, at the end of the bytes, a possible frame is accepted.
        """
        octets, at = self.octets, 0
        if self.first and not self.dropped and _EMPTY.match(octets):
            return True
        while (found := _START.search(octets, at)) is not None:
            at = found.start()
            end = at + int.from_bytes(octets[at : at + 4], "big")
            there = len(octets)
            if end < at + _SHORTEST:
                at += 1
                continue
            if octets[at] == _LETTER or end == there or _NEXT.match(octets, end):
                self.drop(at)
                return True
            if there < end + _NEXT_BYTES and (ended or end - at <= MAX_SEARCHED_BYTES):
                self.drop(at)
                return ended
            at += 1
        self.drop(max(0, len(octets) - _START_BYTES))
        return False


@cython.final
@cython.cclass
class Amqp10Framer:
    """Cuts half-streams into frames and hands these on.

    Args:
        handler: The handler of all frames.
        frames: Is given every frame.
        protocol_header: Is called with a half-stream and eight bytes.
    """

    protocol_header: Any
    report: Any

    handler: FrameHandler
    frames: Amqp10Frames
    nothing: cython.const[cython.uchar][::1]

    def __init__(self, handler: Any, frames: Any, protocol_header: Any) -> None:
        self.handler = handler
        self.frames = frames
        self.protocol_header = protocol_header
        self.nothing = b""
        self.report = handler.report

    @cython.ccall
    def begin(self, half: Half) -> None:
        """A half-stream speaks AMQP 1.0 from here on."""
        half.mode = AMQP10
        half.search = None
        if half.amqp10 is None:
            half.amqp10 = Amqp10Half()
        half.connection.is_amqp = True
        half.connection.is_amqp10 = True

    @cython.ccall
    def search(self, half: Half, first: cython.bint = False) -> Any:
        """The next boundary of a half-stream is unknown: begin a search.

        `first`: the half-stream begins here.
        """
        state: Amqp10Half = half.amqp10
        half.forget_frame()
        state.search = Search(first)
        state.current = None
        state.first_part = 0
        if not first:
            self.handler.contents.note_loss(half)
        self.frames.deliveries.lose(state.under_way)
        half.lossy = True
        return 0

    def data(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Take the bytes `at`..`end` as the next of a half-stream; gives the position reached."""
        state: Amqp10Half = half.amqp10
        at = self._read(half, reader, at, end)
        if state.search is not None:
            self._take_up(half, False)
        return at

    def _read(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Frames, or bytes in which the next one is searched; position gone on to."""
        state: Amqp10Half = half.amqp10
        while at < end and half.mode == AMQP10:
            if state.search is not None:
                self._search_in(half, reader.bytes_at(at, end - at))
                at = end
            elif half.remaining > 0:
                at = self._counted(half, reader, at, end)
            elif half.stored > 0 or end - at < _HEADER:
                at = self._kept(half, reader, at, end)
            else:
                at = self._frames(half, reader, at, end)
        return at

    def _frames(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Frames from a boundary on, as long as they are whole; position gone on to."""
        if at < 0 or end > len(reader.data):
            raise IndexError("frames outside the data")
        while end - at >= _HEADER:
            if u32(reader.data, at) == AMQP_BYTES:
                half.frame_offset = half.offset
                half.offset += _HEADER
                self.protocol_header(half, reader.bytes_at(at, _HEADER))
                at += _HEADER
                if half.mode != AMQP10:
                    return at
                continue
            if not _take_header(half, reader, at):
                self._refuse(half)
                return at
            size: cython.longlong = half.frame_size + _HEADER
            if size > end - at:
                return self._begun(half, reader, at, end)
            half.offset += size
            self._frame(half, reader, at, at + size)
            at += size
        return at

    def _refuse(self, half: Half) -> cython.int:
        """The bytes at a frame boundary are not a frame header."""
        size = half.frame_size + _HEADER
        code = "frame-too-large" if size > _MAX_FRAME else "frame-type-unknown"
        self.report(code, half, f"a frame of {size} bytes, or a header that is too short")
        self.search(half)
        return 0

    @cython.exceptval(-2)
    def _frame(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """A frame is there, whole or up to `end`."""
        state: Amqp10Half = half.amqp10
        if self.handler.claims is not None and state.first_part == 0:
            self._claim(half, FRAME_CLAIM, half.frame_offset, reader.bytes_at(at, end - at))
        if at < 0 or at + _HEADER > len(reader.data):
            raise IndexError("a frame outside the data")
        with cython.boundscheck(False):  # it is there
            words: cython.longlong = reader.data[at + 4]
        begin: cython.longlong = at + 4 * words
        size: cython.longlong = half.frame_size + _HEADER + at - begin
        kind: cython.int = half.frame_type - _PERFORMATIVE
        if kind > 1:
            self.report("frame-type-unknown", half, f"type {kind}")
            half.frame_type = _PERFORMATIVE
        if state.first_part == 0:
            state.current = None
        payload: cython.longlong = self.frames.frame(half, reader, begin, end, size)
        if state.current is not None and begin + size <= end and state.first_part == 0:
            self.frames.transfer_end(half)
        return payload

    @cython.ccall
    def _claim(self, half: Half, kind: cython.int, offset: cython.longlong, octets: bytes) -> None:
        """Label bytes, if claims are requested."""
        self.handler.claim(half, kind, offset, half.frame_channel, len(octets), octets, -1, True)

    def _begun(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """A frame begins at `at` that is not whole; position gone on to."""
        half.expected = min(half.frame_size + _HEADER, _FIRST_PART)
        if end - at > half.expected:
            end = at + half.expected
        count: cython.longlong = half.keep(reader, at, end - at)
        half.offset += count
        return at + count

    def _kept(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Inside a frame that is kept; position gone on to."""
        if half.stored == 0:
            half.frame_offset = half.offset
            half.expected = 0
        wanted: cython.longlong = (half.expected or _HEADER) - half.stored
        if wanted > end - at:
            wanted = end - at
        wanted = half.keep(reader, at, wanted)
        half.offset += wanted
        at += wanted
        store: TypedReader = self.frames.scratch
        store.data = half.store.octets
        if half.skipping:
            half.remaining = half.frame_size + _HEADER - half.stored
        elif half.expected == 0 and half.stored == _HEADER:
            self._kept_header(half, store)
        elif half.expected and half.stored == half.expected:
            self._kept_part(half, store)
        store.data = self.nothing
        return at

    def _kept_header(self, half: Half, store: TypedReader) -> cython.int:
        """The header of a frame was kept, or eight bytes of a protocol header."""
        if store.u32(0) == AMQP_BYTES:
            half.stored = 0
            self.protocol_header(half, store.bytes_at(0, _HEADER))
            return 0
        offset: cython.longlong = half.frame_offset
        believed: cython.bint = _take_header(half, store, 0)
        half.frame_offset = offset
        if not believed:
            octets: bytes = store.bytes_at(0, _HEADER)
            self._refuse(half)
            half.offset -= _HEADER
            return self._search_in(half, octets)
        half.expected = min(half.frame_size + _HEADER, _FIRST_PART)
        if half.stored == half.expected:
            self._kept_part(half, store)
        return 0

    def _kept_part(self, half: Half, store: TypedReader) -> cython.int:
        """The frame that was kept is whole, or as much of it as is kept."""
        state: Amqp10Half = half.amqp10
        size: cython.longlong = half.frame_size + _HEADER
        kept: cython.longlong = half.stored
        if kept < size and not self._is_large_transfer(half, store, kept):
            half.expected = size if size <= _MAX_KEPT else kept
            if half.expected == kept:
                half.skipping = True
                half.remaining = size - kept
            return 0
        half.stored = half.expected = 0
        if kept < size:
            if self.handler.claims is not None:
                self._claim(half, FRAME_CLAIM, half.frame_offset, store.bytes_at(0, kept))
            words: cython.longlong = store.data[4]
            self.frames.begin_large(half, store, 4 * words, kept)
            state.first_part = kept
            half.remaining = size - kept
        else:
            self._frame(half, store, 0, kept)
            half.empty()
        return 0

    def _is_large_transfer(
        self, half: Half, store: TypedReader, kept: cython.longlong
    ) -> cython.bint:
        """True if the frame that is kept is a transfer whose fields are all there."""
        words: cython.longlong = store.data[4]
        begin: cython.longlong = 4 * words
        if half.frame_type != _PERFORMATIVE or begin + 3 > kept:
            return False
        at: cython.longlong = store.descriptor(begin, kept)
        return at > 0 and store.code == 0x14 and store.skip(at, kept) > 0

    def _counted(
        self, half: Half, reader: TypedReader, at: cython.longlong, end: cython.longlong
    ) -> cython.Py_ssize_t:
        """Inside a large transfer, or a frame that is skipped; position gone on to."""
        state: Amqp10Half = half.amqp10
        count: cython.longlong = min(half.remaining, end - at)
        if state.current is not None and not half.skipping:
            if self.handler.claims is not None:
                self._claim(half, AMQP10_PAYLOAD, half.offset, reader.bytes_at(at, count))
            self.frames.deliveries.payload(state.current, reader, at, count)
            state.current.last_number = half.number
        half.remaining -= count
        half.offset += count
        if half.remaining == 0:
            self._end_counted(half)
        return at + count

    def _end_counted(self, half: Half) -> cython.int:
        """A frame is over that was not kept as a whole."""
        state: Amqp10Half = half.amqp10
        if half.skipping:
            kept: cython.longlong = half.stored
            store: TypedReader = self.frames.scratch
            store.data = half.store.octets
            missing: cython.longlong = half.frame_size + _HEADER - kept
            half.stored = half.expected = 0
            half.skipping = False
            if self._frame(half, store, 0, kept) >= 0 and state.current is not None:
                self.frames.deliveries.missing(state.current, missing)
            store.data = self.nothing
            half.empty()
        elif state.first_part:
            self._end_large(half)
        self.frames.transfer_end(half)
        return 0

    def _end_large(self, half: Half) -> cython.int:
        """A large transfer is over: its row is written, now that its last packet is there."""
        state: Amqp10Half = half.amqp10
        store: TypedReader = self.frames.scratch
        store.data = half.store.octets
        self._frame(half, store, 0, state.first_part)
        state.first_part = 0
        store.data = self.nothing
        half.empty()
        return 0

    # holes

    @cython.ccall
    @cython.exceptval(-1)
    def gap(self, half: Half, missing: cython.longlong) -> cython.int:
        """Bytes of a half-stream are not in the capture."""
        state: Amqp10Half = half.amqp10
        passed: cython.longlong
        if state.search is None and half.remaining > 0:
            passed = min(missing, half.remaining)
            if state.current is not None and not half.skipping:
                self.frames.deliveries.missing(state.current, passed)
            half.remaining -= passed
            half.offset += passed
            missing -= passed
            if half.remaining == 0:
                self._end_counted(half)
        elif state.search is None and half.stored > 0 and half.expected:
            half.skipping = True
            half.remaining = half.frame_size + _HEADER - half.stored
            return self.gap(half, missing)
        if missing == 0:
            return 0
        if state.search is not None:
            self._take_up(half, True)
        half.stored = 0
        half.offset += missing
        self.search(half)
        return 0

    def _search_in(self, half: Half, octets: bytes) -> cython.int:
        """Search these bytes for the next boundary."""
        state: Amqp10Half = half.amqp10
        half.offset += len(octets)
        state.search.add(octets, half.number, half.ts_ns)
        return 0

    def _take_up(self, half: Half, ended: cython.bint) -> cython.int:
        """Continue after every boundary that the search finds."""
        state: Amqp10Half = half.amqp10
        number, ts_ns = half.number, half.ts_ns
        while state.search is not None and state.search.find(ended):
            search = state.search
            state.search = None
            if search.first and search.dropped:
                self.handler.contents.note_loss(half)  # a frame may have been among them
            search.first = False
            half.offset -= len(search.octets)
            while search.pieces and half.mode == AMQP10:
                octets, half.number, half.ts_ns = search.pop()
                reader: TypedReader = self.frames.reader
                reader.read_from(octets)
                self._read(half, reader, 0, len(octets))
                reader.read_from(b"")
                if state.search is not None:
                    half.offset += len(search.octets)
                    search.put_back(state.search.octets, half.number, half.ts_ns)
                    state.search = search
                    break
        half.number, half.ts_ns = number, ts_ns
        return 0

    @cython.ccall
    def finish(self, half: Half) -> None:
        """End of a half-stream."""
        state: Amqp10Half = half.amqp10
        if state.search is not None:
            self._take_up(half, True)
        if state.search is not None and state.search.first:
            self.handler.contents.note_loss(half)
        if half.mode == AMQP10 and half.stored and self.handler.claims is not None:
            begun: bytes = bytes(half.store.octets[0 : half.stored])
            self._claim(half, FRAME_CLAIM, half.frame_offset, begun)
        self.frames.finish(half)
