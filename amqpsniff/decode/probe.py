# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What could be a frame: the tests that the search for a frame boundary makes of octets.

A header is *plausible* when its type, channel and size go together and, of a method or a content
header, when the class and method are ones that this side may send. A whole frame is *strong* when
its payload proves it: a method whose arguments fit exactly, a content header whose properties do, a
body that is awaited, a heartbeat. Nothing is written and nothing remembered.
"""

import cython
from cython.cimports.amqpsniff.decode.state import Connection, Content

from amqpsniff.columns import Texts
from amqpsniff.decode import plan
from amqpsniff.decode.properties import PropertyDecoder
from amqpsniff.decode.values import ValueReader
from amqpsniff.spec import protocol_of

MAX_BODY_FRAME_OCTETS = 256 * 1024 * 1024
"""Largest body frame believed while frame-max is unknown; brokers default to 131072."""

MAX_KEPT_FRAME_OCTETS = 1024 * 1024
"""Largest frame whose octets are kept until it is whole: field tables seldom pass 10 kB."""

HEADER_OCTETS = 11
"""Octets that tell whether a frame may begin: its header, and class and method of its payload."""

_MAX_BODY = cython.declare(cython.longlong, MAX_BODY_FRAME_OCTETS)
_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_OCTETS)
_PROTOCOL_HEADER = cython.declare(cython.int, 65)


class FrameProbe:
    """Tests octets that `reader` reads from; `kind`, `channel` and `size` are of the last header.

    Args:
        handler: Its method decoder and contents are asked; no row is written.
    """

    def __init__(self, handler):
        self.handler = handler
        self.reader = ValueReader(Texts())
        self.properties = PropertyDecoder()

    def header(self, half, at, have, forced):
        """Whether a frame may begin at `at`, with `have` octets there: 1, 0, or -1 for too few.

        A protocol header has type 65 (its first letter) and, for want of a frame header, size 0.
        `forced` takes any header that can be followed to its end.
        """
        if have < 7:
            return -1
        kind: cython.int = self.reader.data[at]
        size: cython.longlong = self.reader.u32(at + 3)
        self.kind = kind
        self.channel = self.reader.u16(at + 1)
        self.size = size
        if forced:
            return kind == 3 or size <= _MAX_KEPT
        if kind == _PROTOCOL_HEADER:
            if have < 8:
                return -1
            self.channel = 0
            self.size = 0
            return self._is_protocol_header(at)
        if size > self._limit(half, kind):
            return 0
        if kind == 8:
            return size == 0 and self.channel == 0
        if kind == 3:
            return size > 0 and self.channel > 0
        if kind != 1 and kind != 2:
            return 0
        if have < 11:
            return -1
        first: cython.int = self.reader.u16(at + 7)
        second: cython.int = self.reader.u16(at + 9)
        if kind == 1:
            return size >= 4 and self._is_method(half, first, second)
        known: cython.bint = first in plan.content_classes[half.connection.dialect]
        return size >= 14 and known and second == 0 and self.channel > 0

    def _limit(self, half, kind):
        """The largest size that a frame of a type may have."""
        limit: cython.longlong = half.connection.frame_max
        if limit <= 0:
            limit = _MAX_BODY
        if kind != 3 and limit > _MAX_KEPT:
            limit = _MAX_KEPT
        return limit

    def _is_protocol_header(self, at):
        octets: bytes = bytes(self.reader.data[at : at + 8])
        return octets[:4] == b"AMQP" and protocol_of(octets[4:]) is not None

    def _is_method(self, half, class_id, method_id):
        """Whether the numbers name a method that this side may send."""
        connection: Connection = half.connection
        choice: cython.int = self.handler.decoder.find(connection.dialect, class_id, method_id)
        if choice < 0:
            return False
        if not connection.role_proved:
            return True
        side: cython.int = 1 if half.direction == connection.client_direction else 2
        while plan.choices[choice] >= 0:
            if plan.senders[plan.choices[choice]] & side:
                return True
            choice += 1
        return False

    def strong(self, half, kind, channel, at, size):
        """Whether the payload at `at` proves a frame."""
        if kind == 1:
            self.reader.out.used = 0
            dialect: cython.int = half.connection.dialect
            return self.handler.decoder.decode(self.reader, dialect, at, at + size, size) == 0
        if kind == 2:
            class_id: cython.int = self.reader.u16(at)
            return self.properties.locate(self.reader, class_id, at + 12, at + size) == 0
        if kind == 3:
            found = self.handler.contents._find(half, channel)
            if found is None:
                return False
            content: Content = found
            return content.state == 2 and content.body_rest() >= size
        return True
