# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Framing of AMQP 0-10: frames named and counted, and nothing more.

A frame has a header of twelve bytes: flags, type of segment, size with the header, a zero byte,
track, channel and four zero bytes. Frames are put together to segments, whose first frame begins
with the numbers of class and unit where it is a control or a command (0-10 §4.4). Each frame is a
row with its segment's type; the first one of a control or a command has its name. Contents are not
read. Behind a hole or broken framing a direction is not read further.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.codes import AMQP010, UNSUPPORTED_VERSION
from cython.cimports.amqpsniff.decode.frames import FrameHandler
from cython.cimports.amqpsniff.decode.method_layout import FIRST_SEGMENT
from cython.cimports.amqpsniff.decode.state import Connection

from amqpsniff.decode import method_layout
from amqpsniff.spec.amqp010 import SEGMENT_HEADER_BYTES, UNITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.state import Half
    from amqpsniff.decode.values import ValueReader

HEADER = b"\1\1\0\x0a"
"""What follows `AMQP` in the protocol header."""

_UNIT_BYTES = cython.declare(cython.int, 2)
_FIRST_FRAME = cython.declare(cython.int, 0x02)
"""The flag of a segment's first frame."""

_HEADER_BYTES = cython.declare(cython.int, SEGMENT_HEADER_BYTES)
_CODES = cython.declare(
    dict, {unit: method_layout.FIRST_UNIT + at for at, unit in enumerate(UNITS)}
)


@cython.cclass
class Amqp010Framer:
    """Names the frames of half-streams.

    Args:
        handler: Begins rows and knows which side is the client.
    """

    handler: FrameHandler

    def __init__(self, handler: Any) -> None:
        self.handler = handler

    @cython.ccall
    def begin(self, half: Half) -> None:
        """A half-stream speaks AMQP 0-10 from here on."""
        half.mode = AMQP010
        half.forget_frame()

    def data(
        self, half: Half, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """The bytes `at`..`end` are the next of a half-stream; position gone on to."""
        while at < end and half.mode == AMQP010:
            count: cython.longlong
            if half.remaining > 0:
                count = min(half.remaining, end - at)
                half.remaining -= count
                if half.remaining == 0:
                    self._row(half)
            else:
                if half.stored == 0:
                    half.frame_offset = half.offset
                    half.expected = _HEADER_BYTES
                count = min(half.expected - half.stored, end - at)
                half.keep(reader, at, count)
                if half.skipping:  # there is no memory for it
                    self.lose(half)
                elif half.stored == half.expected:
                    self._take_header(half)
            half.offset += count
            at += count
        return at

    def _take_header(self, half: Half) -> cython.int:
        """The header is complete, or the header and the numbers of a unit."""
        octets: bytes = half.store.bytes_between(0, half.stored)
        size: cython.longlong = octets[2] << 8 | octets[3]
        if half.expected == _HEADER_BYTES:
            if octets[0] & 0xF0 or octets[1] > 3 or octets[4] or octets[8:] != b"\0\0\0\0":
                return self._refuse(half, "a header that is none of AMQP 0-10")
            if size < _HEADER_BYTES:
                return self._refuse(half, f"a frame of {size} bytes")
            half.frame_type = FIRST_SEGMENT + octets[1]
            half.frame_channel = octets[6] << 8 | octets[7]
            half.frame_size = size - _HEADER_BYTES
            if octets[1] < 2 and octets[0] & _FIRST_FRAME and half.frame_size >= _UNIT_BYTES:
                half.expected += _UNIT_BYTES
                return 0
        half.remaining = size - half.stored
        if half.remaining == 0:
            self._row(half)
        return 0

    def _row(self, half: Half) -> cython.int:
        """A frame is whole."""
        connection: Connection = half.connection
        handler: FrameHandler = self.handler
        connection.is_amqp010 = True
        if handler.methods_only and half.expected == _HEADER_BYTES:
            half.stored = half.expected = 0
            return handler.refresh(connection)
        handler._begin(half)
        if half.expected > _HEADER_BYTES:
            octets: bytes = half.store.bytes_between(0, half.expected)
            code = _CODES.get((octets[_HEADER_BYTES], octets[_HEADER_BYTES + 1]), -1)
            handler.frames.method.values[handler.frames.rows] = code
            if code < 0:
                handler.report("method-unknown", half, "a control or command of AMQP 0-10")
        handler.frames.rows += 1
        half.stored = half.expected = 0
        half.empty()
        return 0

    def _refuse(self, half: Half, detail: str) -> cython.int:
        """The bytes at a frame boundary are not a frame header."""
        self.handler.report("frame-type-unknown", half, detail)
        return self.lose(half)

    def gap(self, half: Half, missing: cython.longlong) -> cython.int:
        """Bytes of a half-stream are not in the capture."""
        counted: cython.longlong = min(half.remaining, missing)
        half.remaining -= counted
        half.offset += missing
        if counted < missing or half.remaining == 0:
            if counted and counted == missing:
                self._row(half)
            else:
                self.lose(half)
        return 0

    def lose(self, half: Half) -> cython.int:
        """The position of the next frame is unknown."""
        half.mode = UNSUPPORTED_VERSION
        half.forget_frame()
        half.lossy = True
        self.handler.contents.note_loss(half)
        return 0
