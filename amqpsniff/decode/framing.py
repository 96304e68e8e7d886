# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Framing: the octets of a half-stream cut into frames where they stand.

A frame that lies whole in the octets at hand is handed on there; one that only begins there is kept
until the rest comes, a body only counted. Framing that breaks (wrong end octet, impossible size) is
a finding, and `lose` decides how to go on: that, and holes, are in `recovery`; how a half-stream
begins is in `opening`.

`Framer` is the part of `recovery.RecoveringFramer` that knows its place. It has no state of its own
beside the `Half` it is called with.
"""

import cython
from cython.cimports.amqpsniff.decode.frames import FrameHandler
from cython.cimports.amqpsniff.decode.state import Half
from cython.cimports.amqpsniff.decode.values import ValueReader
from cython.cimports.amqpsniff.loads import u16, u32

from amqpsniff.decode import plan, state
from amqpsniff.decode.probe import MAX_KEPT_FRAME_OCTETS, FrameProbe

_START = cython.declare(cython.int, state.START)
_SEARCH = cython.declare(cython.int, state.SEARCH)
_FRAMES = cython.declare(cython.int, state.FRAMES)
_FOREIGN = cython.declare(cython.int, state.FOREIGN)
_END = cython.declare(cython.int, 0xCE)
_METHOD = cython.declare(cython.int, 1)
_BODY = cython.declare(cython.int, 3)
_STRANGE = cython.declare(cython.int, state.STRANGE)
MAX_REREAD_OCTETS = 128 * 1024
"""Largest frame with a wrong end octet that is searched for frames, for its size may be wrong: the
usual frame-max. Of octets made to break again and again each would be read that many times."""

_MAX_REREAD = cython.declare(cython.longlong, MAX_REREAD_OCTETS)
_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_OCTETS)


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=True)
def _take_header(half: Half, reader: ValueReader, at: cython.longlong) -> cython.bint:
    """Take the frame header at `at` for that of the frame under way; false if it cannot be one."""
    if at < 0 or at + 7 > len(reader.data):
        raise IndexError("frame header outside the data")
    with cython.boundscheck(False):  # it is there
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
        return kind == _BODY or size <= _MAX_KEPT
    return False


class Framer:
    """Cuts half-streams into frames and hands these on.

    Args:
        handler: Is given every frame.
    """

    def __init__(self, handler):
        self.handler = handler
        self.contents = handler.contents
        self.report = handler.report
        self.probe = FrameProbe(handler)

    def lose(self, half, forced):
        """Framing is lost at `half.offset`: give the half-stream up; `recovery` does better."""
        half.mode = _FOREIGN
        return 0

    def begin(self, half, reader, at, end):
        """First octets of a half-stream: take them for frames; `opening` does better."""
        half.mode = _FRAMES
        return at

    def search(self, half, reader, at, end):
        """Octets of a half-stream whose framing is lost; position gone on to."""
        half.offset += end - at
        return end

    def octets(self, half, octets, start, length):
        """Octets that are not in the block at hand."""
        reader: ValueReader = ValueReader.__new__(ValueReader)
        block: ValueReader = self.handler.block
        reader.out = block.out
        reader.kinds = block.kinds
        reader.widths = block.widths
        reader.base64 = block.base64
        reader.strange_tag = 0
        reader.floats = block.floats
        reader.doubles = block.doubles
        reader.read_from(octets)
        return self.data(half, reader, start, start + length)

    def data(self, half, reader, at, end):
        """The octets `at`..`end` of the reader's data are the next of a half-stream."""
        while at < end:
            if half.mode == _FRAMES:
                if half.left > 0:
                    at = self._counted(half, reader, at, end)
                elif half.kept > 0 or end - at < 7:
                    at = self._kept(half, reader, at, end)
                else:
                    at = self._frames(half, reader, at, end)
            elif half.mode == _START or half.mode == _STRANGE:
                at = self.begin(half, reader, at, end)
            elif half.mode == _SEARCH:
                at = self.search(half, reader, at, end)
            else:
                half.offset += end - at
                return 0
        return 0

    def _frames(self, half, reader, at, end):
        """Frames from a boundary on, as long as their headers are at hand; position gone on to."""
        handler: FrameHandler = self.handler
        stop: cython.longlong
        last: cython.int
        while half.mode == _FRAMES and end - at >= 7:
            if not _take_header(half, reader, at):
                self._refuse(half)
                return at
            stop = at + 7 + half.frame_size
            if stop >= end:
                return self._begun(half, reader, at, end)
            last = reader.data[stop]
            if half.frame_type == _METHOD:
                handler.method(half, reader, at + 7, stop, True)
            elif half.frame_type == _BODY:
                handler.body(half, reader, at + 7, stop)
            else:
                handler.frame(half, reader, at + 7, stop, True)
            if last == _END:
                if handler.claims is not None:
                    handler.claim_end(half, half.frame_offset + stop - at)
            else:
                self._wrong_end(half, last)
                if half.frame_type != _BODY and stop + 1 - at <= _MAX_REREAD:
                    stop = at + 6
                half.offset += stop + 1 - at
                self.lose(half, False)
                return stop + 1
            half.offset += stop + 1 - at
            at = stop + 1
        return at

    def _begun(self, half, reader, at, end):
        """A frame begins at `at` that is not whole; position gone on to."""
        if half.frame_type == _BODY:
            half.left = half.frame_size + 1
            half.offset += 7
            self.handler.claim_body(half)
            return at + 7
        half.expected = half.frame_size + 8
        count: cython.longlong = half.keep(reader, at, end - at)
        half.offset += count
        return at + count

    def is_tentative(self, half):
        """Whether a search found the framing, and not long ago; see `state.TENTATIVE_OCTETS`."""
        return half.search is not None and half.frame_offset < half.search

    def _refuse(self, half):
        """What stands where a frame header should be cannot be one."""
        kind: cython.int = half.frame_type
        if 0 < kind < 11:
            code = "frame-too-large"
            detail = f"{plan.frame_words(kind, -1)} of {half.frame_size} octets"
            if half.connection.frame_max > 0:
                detail += f", frame-max {half.connection.frame_max}"
        else:
            code, detail = "frame-type-unknown", f"type {kind}"
        if not self.is_tentative(half):
            self.report(code, half, detail)
        return self.lose(half, True)

    def _wrong_end(self, half, octet):
        if self.is_tentative(half):
            return
        found = f"{octet:#04x}" if half.frame_channel else "another octet"  # a login may be there
        detail = f"{found} instead of 0xce at stream offset {half.frame_offset}"
        self.report("frame-end-wrong", half, detail)

    def _counted(self, half, reader, at, end):
        """Inside a frame whose octets are only counted; position gone on to."""
        count: cython.longlong = half.left - 1
        if count > end - at:
            count = end - at
        if count > 0:
            if not half.skipping:
                self.contents.body_octets(half, reader, at, count)
            half.left -= count
            half.offset += count
            at += count
        if at < end:
            half.left = 0
            half.offset += 1
            self._end_counted(half)
            if reader.data[at] != _END:
                self._wrong_end(half, reader.data[at])
                self.lose(half, False)
            elif self.handler.claims is not None:
                self.handler.claim_end(half, half.offset - 1)
            at += 1
        return at

    def _end_counted(self, half):
        """The frame whose octets were only counted is over."""
        half.left = 0
        if half.skipping:
            return self._cut_frame(half)
        return self.handler.body_end(half)

    def _cut_frame(self, half):
        """A kept frame is over of which only a beginning was captured."""
        reader: ValueReader = self.handler.scratch
        reader.data = half.store.octets
        kept: cython.longlong = half.kept
        half.kept = 0
        half.skipping = False
        end: cython.longlong = min(kept, 7 + half.frame_size)
        self.handler.frame(half, reader, 7, end, kept >= 7 + half.frame_size)
        half.expected = 0
        return half.empty()

    def _kept(self, half, reader, at, end):
        """Inside a frame that is kept until it is whole; position gone on to."""
        if half.kept == 0:
            half.frame_offset = half.offset
            half.expected = 0
        wanted: cython.longlong = (half.expected or 7) - half.kept
        if wanted > end - at:
            wanted = end - at
        wanted = half.keep(reader, at, wanted)
        half.offset += wanted
        at += wanted
        if half.expected == 0 and half.kept == 7:
            self._kept_header(half)
        elif half.expected and half.kept == half.expected:
            self._kept_frame(half)
        return at

    def _kept_frame(self, half):
        """The frame that was kept is whole."""
        count: cython.longlong = half.kept
        half.kept = 0
        half.expected = 0
        store: ValueReader = self.handler.scratch
        store.data = half.store.octets
        last: cython.int = store.data[count - 1]
        self.handler.frame(half, store, 7, count - 1, True)
        if last == _END:
            self.handler.claim_end(half, half.frame_offset + count - 1)
        else:
            self._wrong_end(half, last)
            self._reread(half, bytes(half.store.octets[0:count]))
        if half.kept == 0:
            half.empty()
        return 0

    def _reread(self, half, frame):
        """Search in a kept frame whose end octet was wrong, as if it had come in one piece."""
        if len(frame) > _MAX_REREAD:
            return self.lose(half, False)
        half.offset -= len(frame) - 7
        self.lose(half, False)
        return self.octets(half, frame, 7, len(frame) - 7)

    def _kept_header(self, half):
        """The seven octets of a frame header came in pieces and are there now."""
        header: ValueReader = self.handler.scratch
        header.data = half.store.octets
        half.offset -= 7
        if not _take_header(half, header, 0):
            octets: bytes = bytes(half.store.octets[0:7])
            half.kept = 0
            self._refuse(half)
            return self.octets(half, octets, 0, 7)
        half.offset += 7
        if half.frame_type == _BODY:
            half.kept = 0
            half.left = half.frame_size + 1
            self.handler.claim_body(half)
        else:
            half.expected = half.frame_size + 8
        return 0
