# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Finding the next frame boundary in octets whose beginning was not seen.

A capture that starts in the middle of a connection, or that lost packets, gives octets that begin
anywhere in a frame. Every octet that could begin a frame starts a *candidate*: a chain of frames,
each of which must end in the frame-end octet where its size says. A candidate dies at the first
frame that cannot be one. Candidates that meet at a boundary are the same chain; the earlier stays.

A chain is believed when one of its frames is *strong* (a method whose arguments fit exactly, a
content header whose properties do, a heartbeat, a protocol header) and it goes on plausibly: a
third frame, a plausible next header, or the end of the octets exactly at its boundary. A frame that
is only a size and an end octet (a body) proves little alone; several in a row, or one that ends
exactly where the octets end, are believed at the end of the half-stream or before a hole.

Nothing is decoded before a chain is believed, so a frame that was not there makes no row. Memory is
bounded: bodies are not kept while they are stepped over, and candidates are few.
"""

import cython

if cython.compiled:
    from cython.cimports.amqpsniff.decode.frames import (  # type: ignore[import-not-found]
        FrameHandler,
    )
    from cython.cimports.amqpsniff.decode.properties import (  # type: ignore[import-not-found]
        PropertyDecoder,
    )
    from cython.cimports.amqpsniff.decode.state import (  # type: ignore[import-not-found]
        Connection,
        Half,
    )
    from cython.cimports.amqpsniff.decode.values import (  # type: ignore[import-not-found]
        ValueReader,
    )
else:
    from amqpsniff.decode.frames import FrameHandler
    from amqpsniff.decode.properties import PropertyDecoder
    from amqpsniff.decode.state import Connection, Half
    from amqpsniff.decode.values import ValueReader

from amqpsniff.columns import Texts as TextColumn
from amqpsniff.decode import plan
from amqpsniff.spec import protocol_of

MAX_CANDIDATES = 64
"""Chains followed at once; octets made to look like frame headers could start one each."""

MAX_BODY_FRAME_OCTETS = 256 * 1024 * 1024
"""Largest body frame believed while frame-max is unknown; brokers default to 131072."""

MAX_KEPT_FRAME_OCTETS = 1024 * 1024
"""Largest method or content header believed while searching: field tables seldom pass 10 kB."""

FOREIGN_AFTER_OCTETS = 16 * 1024 * 1024
"""Octets searched in vain before a conversation is taken for another protocol."""

CHAIN_FRAMES = 3
"""Frames that make a chain with one strong frame believable without what follows."""

_END = cython.declare(cython.int, 0xCE)


class Candidate:
    """A chain of frames that begins at `start`; `next` is the boundary it expects.

    `frames` holds (offset, type, channel, size, payload or None, packet number, ts_ns).
    """

    __slots__ = ("frames", "next", "pending", "start", "strong")

    def __init__(self, start):
        self.start = start
        self.next = start
        self.frames = []
        self.strong = 0
        self.pending = None  # (type, channel, size) of the frame under way


@cython.cclass
class Search:
    """The search in one half-stream, from stream offset `offset` on.

    Args:
        handler: Its decoder and plan are used to test methods; no row is written.
        half: The half-stream.
        offset: Stream offset of the first octet that will be fed.
        forced: Take the frame header there for granted (framing was known up to it).
    """

    handler: FrameHandler
    half: Half
    probe: ValueReader
    properties: PropertyDecoder
    octets: bytearray
    base: cython.longlong
    scanned: cython.longlong
    searched: cython.longlong
    number: cython.longlong
    ts_ns: cython.longlong
    forced_at: cython.longlong
    candidates: list

    def __init__(self, handler, half, offset, forced=False):
        self.handler = handler
        self.half = half
        self.probe = ValueReader(TextColumn())
        self.properties = PropertyDecoder()
        self.octets = bytearray()
        self.base = offset
        self.scanned = offset
        self.searched = 0
        self.candidates = []
        self.forced_at = -1
        if forced:
            self.candidates.append(Candidate(offset))
            self.forced_at = offset
            self.scanned = offset + 1

    @property
    def end(self):
        """Stream offset after the last octet fed."""
        return self.base + len(self.octets)

    @property
    def hopeless(self):
        """Whether so much was searched in vain that this is another protocol."""
        return self.searched > FOREIGN_AFTER_OCTETS and not self.half.connection.is_amqp

    def feed(self, octets, number, ts_ns):
        """Search on with these octets; the chain that is believed, or None."""
        self.octets += octets
        self.searched += len(octets)
        self.number = number
        self.ts_ns = ts_ns
        self.probe.read_from(bytes(self.octets))
        self._scan()
        self._advance_all()
        for candidate in self.candidates:
            if self._believed(candidate):
                return candidate
        self._trim()
        return None

    def gap(self, missing):
        """`missing` octets are not in the capture: the chain believed before them, or None."""
        for candidate in self.candidates:
            if self._believed_at_end(candidate, True):
                return candidate
        end: cython.longlong = self.end + missing
        self.candidates = [c for c in self.candidates if self._survives(c, end)]
        self.octets = bytearray()
        self.base = end
        self.scanned = end
        return None

    def finish(self):
        """No more octets: the chain that is believed after all, or None."""
        for candidate in self.candidates:
            if self._believed_at_end(candidate, False):
                return candidate
        return None

    def rest(self, candidate):
        """Octets after the last whole frame of a chain; None when they were not kept."""
        start: cython.longlong = candidate.next - self.base
        if start < 0:
            return None
        return bytes(memoryview(self.octets)[start:])

    # candidates

    @cython.cfunc
    def _scan(self) -> cython.int:
        """Start a candidate at every octet that could begin a frame."""
        end: cython.longlong = self.base + len(self.octets)
        at: cython.longlong
        octet: cython.int
        while self.scanned + 7 <= end:
            at = self.scanned - self.base
            octet = self.probe.data[at]
            if octet == 1 or octet == 2 or octet == 3 or octet == 8 or octet == 65:
                header = self._header(self.scanned)
                if header is None:
                    break
                if header and not self._expected(self.scanned):
                    self._start(self.scanned, header)
            self.scanned += 1
        return 0

    @cython.cfunc
    def _start(self, offset: cython.longlong, header: object) -> cython.int:
        if len(self.candidates) >= MAX_CANDIDATES:
            weakest = min(self.candidates, key=_worth)
            self.candidates.remove(weakest)
        candidate = Candidate(offset)
        candidate.pending = header
        self.candidates.append(candidate)
        return self._advance(candidate)

    @cython.cfunc
    def _expected(self, offset: cython.longlong) -> cython.bint:
        """Whether a chain already has a boundary here."""
        for candidate in self.candidates:  # noqa: SIM110 (no closures in a C function)
            if candidate.next == offset:
                return True
        return False

    @cython.cfunc
    def _header(self, offset: cython.longlong) -> object:
        """(type, channel, size) of a frame that may begin here, False, or None for too few octets.

        A protocol header is given as type 65 with its eight octets as size 0.
        """
        at: cython.longlong = offset - self.base
        have: cython.longlong = len(self.octets) - at
        if have < 7:
            return None
        kind: cython.int = self.probe.data[at]
        channel: cython.int = self.probe.u16(at + 1)
        size: cython.longlong = self.probe.u32(at + 3)
        if offset == self.forced_at:
            return (kind == 3 or size <= MAX_KEPT_FRAME_OCTETS) and (kind, channel, size)
        if kind == 65:
            if have < 8:
                return None
            return self._is_protocol_header(at) and (65, 0, 0)
        if size > self._limit(kind):
            return False
        if kind == 8:
            return size == 0 and channel == 0 and (8, 0, 0)
        if kind == 3:
            return size > 0 and (3, channel, size)
        if kind != 1 and kind != 2:
            return False
        if have < 11:
            return None
        first: cython.int = self.probe.u16(at + 7)
        second: cython.int = self.probe.u16(at + 9)
        if kind == 1:
            return size >= 4 and self._is_method(first, second) and (1, channel, size)
        dialect: cython.int = self.half.connection.dialect
        known: cython.bint = first in plan.content_classes[dialect]
        return size >= 14 and known and second == 0 and channel > 0 and (2, channel, size)

    @cython.cfunc
    def _limit(self, kind: cython.int) -> cython.longlong:
        limit: cython.longlong = self.half.connection.frame_max
        if limit <= 0:
            limit = MAX_BODY_FRAME_OCTETS
        if kind != 3 and limit > MAX_KEPT_FRAME_OCTETS:
            limit = MAX_KEPT_FRAME_OCTETS
        return limit

    @cython.cfunc
    def _is_protocol_header(self, at: cython.longlong) -> cython.bint:
        octets: bytes = bytes(self.octets[at : at + 8])
        return octets[:4] == b"AMQP" and protocol_of(octets[4:]) is not None

    @cython.cfunc
    def _is_method(self, class_id: cython.int, method_id: cython.int) -> cython.bint:
        """Whether the numbers name a method that this side may send."""
        connection: Connection = self.half.connection
        choice: cython.int = self.handler.decoder.find(connection.dialect, class_id, method_id)
        if choice < 0:
            return False
        if not connection.role_proved:
            return True
        side: cython.int = 1 if self.half.direction == connection.client_direction else 2
        while plan.choices[choice] >= 0:
            if self.handler.senders[plan.choices[choice]] & side:
                return True
            choice += 1
        return False

    @cython.cfunc
    def _advance_all(self) -> cython.int:
        for candidate in list(self.candidates):
            self._advance(candidate)
        return 0

    @cython.cfunc
    def _advance(self, candidate: object) -> cython.int:
        """Step over every whole frame of a chain; drop the chain when one cannot be a frame."""
        end: cython.longlong = self.end
        kind: cython.int
        size: cython.longlong
        total: cython.longlong
        while candidate.next < end:
            if candidate.pending is None:
                header = self._header(candidate.next)
                if header is None:
                    return 0
                if not header:
                    return self._drop(candidate)
                candidate.pending = header
            kind, channel, size = candidate.pending
            total = size + 8
            if candidate.next + total > end:
                return 0
            if not self._whole(candidate, kind, channel, size):
                return self._drop(candidate)
            candidate.next += total
            candidate.pending = None
            self._merge(candidate)
        return 0

    @cython.cfunc
    def _drop(self, candidate: object) -> cython.int:
        if candidate in self.candidates:
            self.candidates.remove(candidate)
        return 0

    @cython.cfunc
    def _merge(self, candidate: object) -> cython.int:
        """Drop later chains that expect the same boundary."""
        for other in list(self.candidates):
            if other is not candidate and other.next == candidate.next:
                if other.start > candidate.start and not other.frames:
                    self.candidates.remove(other)
        return 0

    @cython.cfunc
    def _whole(
        self, candidate: object, kind: cython.int, channel: cython.int, size: cython.longlong
    ) -> cython.bint:
        """Take one whole frame into a chain; False when it is none."""
        at: cython.longlong = candidate.next - self.base
        payload: object = None
        if kind == 65:
            payload = bytes(self.octets[at : at + 8])
            candidate.strong += 1
        else:
            if self.probe.data[at + 7 + size] != _END:
                return False
            if kind != 3:
                payload = bytes(self.octets[at + 7 : at + 7 + size])
            if candidate.next == self.forced_at or self._strong(kind, channel, at + 7, size):
                candidate.strong += 1
        candidate.frames.append(
            (candidate.next, kind, channel, size, payload, self.number, self.ts_ns)
        )
        return True

    @cython.cfunc
    def _strong(
        self, kind: cython.int, channel: cython.int, at: cython.longlong, size: cython.longlong
    ) -> cython.bint:
        """Whether a frame proves by itself that it is one."""
        probe: ValueReader = self.probe
        if kind == 1:
            probe.out.used = 0
            dialect: cython.int = self.half.connection.dialect
            return self.handler.decoder.decode(probe, dialect, at, at + size, True) == 0
        if kind == 2:
            return self.properties.locate(probe, probe.u16(at), at + 12, at + size) == 0
        if kind == 3:
            content = self.handler.contents._find(self.half, channel)
            return (
                content is not None
                and content.state == 2
                and content.body_size - content.body_seen >= size
            )
        return True

    # belief

    @cython.cfunc
    def _believed(self, candidate: object) -> cython.bint:
        count: cython.int = len(candidate.frames)
        if candidate.start == self.forced_at and count:
            return True
        if candidate.strong:
            return (
                count >= CHAIN_FRAMES or candidate.next == self.end or candidate.pending is not None
            )
        return count > CHAIN_FRAMES

    @cython.cfunc
    def _believed_at_end(self, candidate: object, hole: cython.bint) -> cython.bint:
        """Whether a chain is believed when nothing more can confirm it."""
        if candidate.strong or (candidate.frames and candidate.next == self.end):
            return True
        if not hole or candidate.pending is None:
            return False
        return candidate.pending[0] in (1, 2)

    @cython.cfunc
    def _survives(self, candidate: object, end: cython.longlong) -> cython.bint:
        """Whether a hole up to `end` lies inside the body frame that a chain is in."""
        if candidate.pending is None or candidate.pending[0] != 3:
            return False
        return candidate.next + 7 + candidate.pending[2] >= end

    @cython.cfunc
    def _trim(self) -> cython.int:
        """Forget octets that no chain needs any more."""
        keep: cython.longlong = self.scanned
        for candidate in self.candidates:
            if candidate.pending is None or candidate.pending[0] != 3:
                keep = min(keep, candidate.next)
            else:
                keep = min(keep, candidate.next + 7 + candidate.pending[2])
        keep = min(keep, self.end)
        if keep > self.base:
            del self.octets[: keep - self.base]
            self.base = keep
        return 0


def _worth(candidate):
    """Which of too many chains to give up: the weakest, of those the earliest."""
    return candidate.strong, len(candidate.frames), candidate.start
