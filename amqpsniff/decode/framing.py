# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Framing: the octets of a half-stream cut into frames where they stand.

A frame that lies whole in the octets at hand is handed on there; one that only begins there is kept
until the rest comes, a body only counted. Framing that breaks (wrong end octet, impossible size) is
a finding, and `lose` decides how to go on: that, and holes, are in `recovery`.

`Framer` is the part of `recovery.RecoveringFramer` that knows its place. It has no state of its own
beside the `Half` it is called with.
"""

import cython

from amqpsniff.decode import plan
from amqpsniff.decode.claims import PROTOCOL_HEADER, PROXY
from amqpsniff.decode.probe import MAX_KEPT_FRAME_OCTETS, FrameProbe
from amqpsniff.decode.synchronize import Search
from amqpsniff.decode.tunnelled import MAX_PREAMBLE_OCTETS, preamble_octets
from amqpsniff.spec import protocol_of

if cython.compiled:
    from cython.cimports.amqpsniff.decode.state import (  # type: ignore[import-not-found]
        Connection,
    )
    from cython.cimports.amqpsniff.decode.values import (  # type: ignore[import-not-found]
        ValueReader,
    )
else:
    from amqpsniff.decode.state import Connection
    from amqpsniff.decode.values import ValueReader

_START = cython.declare(cython.int, 0)
_SEARCH = cython.declare(cython.int, 1)
_FRAMES = cython.declare(cython.int, 2)
_FOREIGN = cython.declare(cython.int, 3)
_SILENT = cython.declare(cython.int, 4)
_END = cython.declare(cython.int, 0xCE)
_METHOD = cython.declare(cython.int, 1)
_BODY = cython.declare(cython.int, 3)
_AMQP = cython.declare(cython.longlong, 0x414D5150)
_STRANGE = cython.declare(cython.int, 5)
FIRST_OCTETS = 16
"""Octets kept of a half-stream that is not AMQP, to say what it is."""

MAX_REREAD_OCTETS = 128 * 1024
"""Largest frame with a wrong end octet that is searched for frames, for its size may be wrong: the
usual frame-max. Of octets made to break again and again each would be read that many times."""

_DIALECTS = cython.declare(dict, plan.HEADER_DIALECTS)
_MAX_REREAD = cython.declare(cython.longlong, MAX_REREAD_OCTETS)
_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_OCTETS)


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
                    at = self._boundary(half, reader, at, end)
            elif half.mode == _START:
                at = self._start(half, reader, at, end)
            elif half.mode == _SEARCH:
                at = self.search(half, reader, at, end)
            elif half.mode == _STRANGE:
                self._strange(half, reader.octets_at(at, min(end - at, FIRST_OCTETS)))
                half.offset += end - at
                return 0
            else:
                half.offset += end - at
                return 0
        return 0

    def _boundary(self, half, reader, at, end):
        """At a frame boundary with a whole frame header at hand; position gone on to."""
        if not self._header(half, reader, at):
            self.lose(half, True)
            return at
        size: cython.longlong = half.frame_size
        count: cython.longlong = size + 8
        if end - at < count:
            if half.frame_type == _BODY:
                half.left = size + 1
                half.offset += 7
                self.handler.claim_body(half)
                return at + 7
            half.expected = count
            count = half.keep(reader, at, end - at)
        elif not self._frame(half, reader, at):
            if half.frame_type != _BODY and count <= _MAX_REREAD:
                count = 7
            half.offset += count
            self.lose(half, False)
            return at + count
        half.offset += count
        return at + count

    def _header(self, half, reader, at):
        """Take the frame header at `at` for that of the frame under way; false if it cannot be."""
        if at < 0 or at + 7 > len(reader.data):
            raise IndexError("frame header outside the data")
        with cython.boundscheck(False):  # it is there
            kind: cython.int = reader.data[at]
            channel: cython.int = (reader.data[at + 1] << 8) | reader.data[at + 2]
            high: cython.longlong = (reader.data[at + 3] << 8) | reader.data[at + 4]
            size: cython.longlong = high << 16 | (reader.data[at + 5] << 8) | reader.data[at + 6]
        half.frame_offset = half.offset
        half.frame_type = kind
        half.frame_channel = channel
        half.frame_size = size
        limit: cython.longlong = half.connection.frame_max
        if 0 < kind < 11:
            # RabbitMQ compares the payload alone with frame-max (measured on 3.10.8)
            if limit <= 0 or size <= limit:
                if kind == _BODY or size <= _MAX_KEPT:
                    return True
            return self._too_large(half, limit)
        self.report("frame-type-unknown", half, channel, half.number, half.ts_ns, f"type {kind}")
        return False

    def _frame(self, half, reader, at):
        """Hand a whole frame on that begins at `at`; whether its end octet was right."""
        begin: cython.longlong = half.frame_offset
        end: cython.longlong = at + 7 + half.frame_size
        last: cython.int = reader.data[end]
        if half.frame_type == _BODY:
            self.handler.body(half, reader, at + 7, end)
        else:
            self.handler.frame(half, reader, at + 7, end, True)
        if last == _END:
            if self.handler.claims is not None:
                self.handler.claim_end(half, begin + end - at)
            return True
        self._wrong_end(half, last)
        return False

    def _wrong_end(self, half, octet):
        detail = f"{octet:#04x} instead of 0xce at stream offset {half.frame_offset}"
        self.report("frame-end-wrong", half, half.frame_channel, half.number, half.ts_ns, detail)

    def _too_large(self, half, limit):
        detail = f"type {half.frame_type}, {half.frame_size} octets"
        if limit > 0:
            detail += f", frame-max {limit}"
        self.report("frame-too-large", half, half.frame_channel, half.number, half.ts_ns, detail)
        return False

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
        half.frame_type = reader.data[0]
        half.frame_channel = reader.u16(1)
        half.frame_size = reader.u32(3)
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
            whole: cython.longlong = half.kept
            half.kept = 0
            half.expected = 0
            store: ValueReader = self.handler.scratch
            store.data = half.store.octets
            half.frame_type = store.data[0]
            half.frame_channel = store.u16(1)
            half.frame_size = store.u32(3)
            if not self._frame(half, store, 0):
                self._reread(half, bytes(half.store.octets[0:whole]))
            if half.kept == 0:
                half.empty()
        return at

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
        if not self._header(half, header, 0):
            octets: bytes = bytes(half.store.octets[0:7])
            half.kept = 0
            self.lose(half, True)
            return self.octets(half, octets, 0, 7)
        half.offset += 7
        if half.frame_type == _BODY:
            half.kept = 0
            half.left = half.frame_size + 1
            self.handler.claim_body(half)
        else:
            half.expected = half.frame_size + 8
        return 0

    def _start(self, half, reader, at, end):
        """At the first octets of a half-stream; position gone on to."""
        known: cython.bint = half.connection.conversation.syn_seen
        if known and half.kept == 0:
            if half.direction == 0 and end - at >= 8 and reader.u32(at) == _AMQP:
                half.frame_offset = half.offset
                half.offset += 8
                self._protocol_header(half, reader.octets_at(at, 8))
                return at + 8
            if half.direction and half.connection.is_amqp and reader.data[at] == _METHOD:
                half.mode = _FRAMES
                return at
        first: cython.bint = half.offset == half.kept and not (known and half.direction)
        proxied: cython.longlong = 0
        if first:  # all that is there is looked at: the end of some headers has to be searched for
            kept: bytes = bytes(half.store.octets[0 : half.kept]) if half.kept else b""
            there: bytes = reader.octets_at(at, min(end - at, MAX_PREAMBLE_OCTETS))
            proxied = preamble_octets(kept + there, known)
        wanted: cython.longlong = max(0, max(8, proxied) - half.kept)
        if wanted > end - at:
            wanted = end - at
        half.keep(reader, at, wanted)
        half.offset += wanted
        at += wanted
        octets: bytes = bytes(half.store.octets[0 : half.kept])
        if proxied:
            if proxied == len(octets):
                if self.handler.claims is not None:
                    self.handler.claim(half, PROXY, 0, 0, len(octets), octets, -1, True)
                half.kept = 0
        elif octets[:4] != b"AMQP"[: len(octets)] or self._is_text(half, octets):
            self._headless(half, octets)
        elif len(octets) == 8:
            half.kept = 0
            half.frame_offset = half.offset - 8
            self._protocol_header(half, octets)
        return at

    def _strange(self, half, octets):
        """More octets of a half-stream that is not AMQP: the first of all are kept."""
        half.first_octets = (half.first_octets + octets)[:FIRST_OCTETS]
        if len(half.first_octets) == FIRST_OCTETS:
            half.mode = _FOREIGN

    def _is_text(self, half, octets):
        """Whether AMQP is but a part of something, such as the mechanism AMQPLAIN."""
        if len(octets) < 8 or half.connection.conversation.syn_seen:
            return False
        return protocol_of(octets[4:]) is None

    def _protocol_header(self, half, octets):
        """Eight octets that begin with AMQP, at the begin of a half-stream."""
        connection: Connection = half.connection
        if self.handler.claims is not None:
            self.handler.claim(
                half, PROTOCOL_HEADER, half.frame_offset, 0, 8, bytes(octets), -1, True
            )
        connection.is_amqp = True
        connection.began = True
        if not connection.role_proved:
            self.handler.refresh(connection)
            if connection.client_direction < 0:
                self.handler.set_client(connection, half.direction)
        self.handler.protocol_header(half)
        half.mode = _FRAMES
        version: bytes = octets[4:]
        from_client: cython.bint = half.direction == connection.client_direction
        if from_client:
            connection.asked = version
        elif connection.asked is not None and connection.asked != version:
            detail = f"asked for {_version(connection.asked)}, offers {_version(version)}"
            self.report("protocol-version-refused", half, None, half.number, half.ts_ns, detail)
        dialect: cython.int = _DIALECTS.get(version, 0)
        if dialect == 0:
            self._other_protocol(half, version)
        elif connection.dialect == 0 and from_client:
            connection.dialect = dialect
        return 0

    def _other_protocol(self, half, version):
        """A protocol header opens none of the dialects."""
        if protocol_of(version) is None:
            code = "protocol-header-unknown"
        else:
            code = "protocol-not-decoded"
            half.mode = _SILENT
        self.report(code, half, None, half.number, half.ts_ns, _version(version))

    def _headless(self, half, octets):
        """The first octets of a half-stream are no protocol header."""
        half.kept = 0
        half.offset -= len(octets)
        known_start = half.connection.conversation.syn_seen
        if known_start and half.direction == 0:
            half.mode = _STRANGE
            half.offset += len(octets)
            half.first_number = half.number
            half.first_ns = half.ts_ns
            self._strange(half, octets)
            return
        if not known_start:
            half.lossy = True
            half.opened_since = set()
        half.mode = _SEARCH
        half.search = Search(self.probe, half, half.offset)
        self.octets(half, octets, 0, len(octets))


def _version(octets):
    """What a protocol header names, for a person."""
    protocol = protocol_of(octets)
    if protocol is None:
        return "AMQP " + " ".join(str(octet) for octet in octets)
    return f"AMQP {protocol.protocol}"
