# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Search for the next frame boundary in bytes without a known beginning.

A capture that starts in the middle of a connection, or that lost packets, gives bytes that begin
anywhere in a frame. Every byte where a plausible header stands starts a *candidate*: a
chain of frames, each of which must end in the frame-end byte where its size says and be followed
by a plausible header. A candidate dies where that fails. Candidates that meet at a
boundary are one chain from there on: one with a strong frame stays, else the earlier.

A body says so little that the first one of a chain has to be awaited, or to stand behind an end
byte or at the begin of the bytes. The rest of a content header often looks like one: the 3 of
a body size, flags for headers alone, the table's size, the table, and the header's end byte.

A chain is believed when it has a strong frame and a plausible header behind it, when it has three
frames of which one is strong, or when it has four that are only sizes and end bytes (bodies). At
the end of the half-stream or before a hole, where nothing more can confirm it, a strong frame is
enough, or a frame that ends exactly there; before a hole also the beginning of a method or content
header. The first chain to be believed wins, at the ends the earliest.

Bytes before a hole do not prove that the conversation is AMQP at all: bytes of any protocol with
binary counts and sizes sometimes look like the beginning of a frame.
Until something else has shown that it is, only the third beginning is believed, of three runs of
bytes between holes one after the other that begin with one, as those of packets that were cut do.

The result must not depend on the packets that the bytes came in. So everything is decided in
the order of the stream: each position, and each boundary that a candidate waits for, has its turn
as soon as `HEADER_BYTES` are there behind it, or a frame's end is; the search stops at belief, and
what lies behind the chain goes the way of all other bytes.

A header is *plausible* when its type, channel and size go together and, of a method or a content
header, when the class and method are ones that this side may send. A whole frame is *strong* when
its payload proves it: a method whose arguments fit exactly, a content header whose properties do, a
body that is awaited, a heartbeat.

Nothing is decoded before a chain is believed; payloads are kept for that moment, within bounds.
"""

from __future__ import annotations

from collections import deque

import cython
from cython.cimports.amqpsniff.decode.codes import BODY, FRAME_END
from cython.cimports.amqpsniff.decode.contents import PropertyDecoder
from cython.cimports.amqpsniff.decode.frames import FrameHandler
from cython.cimports.amqpsniff.decode.methods import MethodDecoder
from cython.cimports.amqpsniff.decode.state import Connection, Content, Half, MemoryBudget
from cython.cimports.amqpsniff.decode.values import ValueReader

from amqpsniff.columns import Texts
from amqpsniff.decode import method_layout
from amqpsniff.spec import protocol_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING  # type: ignore
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING  # type: ignore
    from cython.cimports.libc.string import memcpy  # type: ignore

_MAX_BODY = cython.declare(cython.longlong, 256 * 1024 * 1024)
"""Largest body frame believed while frame-max is unknown; brokers default to 131072."""

MAX_KEPT_FRAME_BYTES = 1024 * 1024
"""Largest frame whose bytes are kept until it is whole: field tables seldom pass 10 kB."""

HEADER_BYTES = 11
"""Bytes that tell whether a frame may begin: its header, and class and method of its payload."""

MAX_CANDIDATES = 64
"""Chains followed at once; bytes made to look like frame headers could start one each."""

MAX_HELD_BYTES = 4 * 1024 * 1024
"""Bytes of payloads that all candidates of a search keep: four of the largest frames kept."""

FOREIGN_AFTER_BYTES = 16 * 1024 * 1024
"""Bytes searched in vain before a conversation is taken for another protocol."""

CHAIN_FRAMES = 3
"""Frames that make a chain with one strong frame believable without what follows."""

CUT_BEGINNINGS = 3
"""Runs of bytes that begin like a method or a content header, one after the other, which show that
a conversation is AMQP of which every packet was cut."""

FIRST_FEED_BYTES = 1024
"""Bytes searched at first; then as many as were searched. A half-stream that breaks again and
again would otherwise have all of a large piece copied for each frame of it."""

FIRST_BUFFER_BYTES = 1024
"""Bytes of the first buffer, which do not count in the budget."""

MAX_MARKS = 65536
"""Packets remembered of the bytes kept. They are only that many when a peer sends its bytes one
by one; the frames of older ones then get the number of the oldest that is remembered."""

_MAX_KEPT = cython.declare(cython.longlong, MAX_KEPT_FRAME_BYTES)
_MAX_HELD = cython.declare(cython.longlong, MAX_HELD_BYTES)
_HEADER = cython.declare(cython.longlong, HEADER_BYTES)
_FRAME_HEADER = cython.declare(cython.longlong, 7)
_NEVER = cython.declare(cython.longlong, 1 << 62)
_PROTOCOL_HEADER = cython.declare(cython.int, 65)


@cython.cclass
class FrameProbe:
    """Tests bytes that `reader` reads from; `kind`, `channel` and `size` are of the last header.

    Args:
        handler: Its method decoder and contents are used; no row is written.
    """

    handler: FrameHandler
    reader: ValueReader
    properties: PropertyDecoder
    kind: cython.int
    channel: cython.int
    size: cython.longlong

    def __init__(self, handler: Any) -> None:
        self.handler = handler
        self.reader = ValueReader(Texts())
        self.properties = PropertyDecoder()

    @cython.exceptval(-2)
    def header(
        self, half: Half, at: cython.longlong, have: cython.longlong, forced: cython.bint
    ) -> cython.int:
        """1 if a frame may begin at `at`, of which `have` bytes exist; 0 if not, -1 for too few.

        A protocol header has type 65 (its first letter) and, for want of a frame header, size 0.
        `forced` takes any header that can be followed to its end.
        """
        if have < _FRAME_HEADER:
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
        if size < 14 or second != 0 or self.channel == 0:
            return 0
        return first in method_layout.content_classes[half.connection.dialect]

    def _limit(self, half: Half, kind: cython.int) -> cython.longlong:
        """The largest size that a frame of a type may have."""
        limit: cython.longlong = half.connection.frame_max
        if limit <= 0:
            limit = _MAX_BODY
        if kind != 3 and limit > _MAX_KEPT:
            limit = _MAX_KEPT
        return limit

    def _is_protocol_header(self, at: cython.longlong) -> cython.bint:
        octets: bytes = bytes(self.reader.data[at : at + 8])
        return octets[:4] == b"AMQP" and protocol_of(octets[4:]) is not None

    def _is_method(self, half: Half, class_id: cython.int, method_id: cython.int) -> cython.bint:
        """True if the numbers name a method that this side may send."""
        connection: Connection = half.connection
        decoder: MethodDecoder = self.handler.decoder
        choice: cython.int = decoder.find(connection.dialect, class_id, method_id)
        if choice < 0:
            return False
        if not connection.role_proved:
            return True
        side: cython.int = 1 if half.direction == connection.client_direction else 2
        while decoder.choices[choice] >= 0:
            if decoder.senders[decoder.choices[choice]] & side:
                return True
            choice += 1
        return False

    def strong(
        self,
        half: Half,
        kind: cython.int,
        channel: cython.int,
        at: cython.longlong,
        size: cython.longlong,
    ) -> cython.bint:
        """True if the payload at `at` proves a frame."""
        if kind == 1:
            self.reader.out.used = 0
            dialect: cython.int = half.connection.dialect
            return self.handler.decoder.decode(self.reader, dialect, at, at + size, size) == 0
        if kind == 2:
            class_id: cython.int = self.reader.u16(at)
            return self.properties.locate(self.reader, class_id, at + 12, at + size) == 0
        if kind == 3:
            opened = self.handler.contents._find(half, channel)
            if opened is None:
                return False
            content: Content = opened
            return content.state == 2 and content.body_rest() >= size
        return True


@cython.cclass
class Window:
    """The bytes of a half-stream that are still needed, and the packets they came in.

    From stream offset `base` on they are `buffer[first:used]`: appended at the end and forgotten at
    the begin, and moved only when the buffer is full, so that each is copied about twice however
    small the pieces are.

    `marks` holds (stream offset after its last byte, (packet number, ts_ns, moment when it came))
    of each packet.
    """

    budget: MemoryBudget
    buffer: bytearray
    first: cython.longlong
    used: cython.longlong
    base: cython.longlong
    marks: Any

    def __init__(self, offset: Any, budget: Any) -> None:
        self.budget = budget
        self.buffer = bytearray(FIRST_BUFFER_BYTES)
        self.first = 0
        self.used = 0
        self.base = offset
        self.marks = deque()

    @cython.exceptval(check=False)
    def end(self) -> cython.longlong:
        """Stream offset after the last byte."""
        return self.base + self.used - self.first

    def fits(self, count: cython.longlong) -> cython.bint:
        """True if `count` bytes more may be kept."""
        kept_bytes: cython.longlong = self.used - self.first
        return kept_bytes + count <= len(self.buffer) or self.budget.allows(
            2 * (kept_bytes + count)
        )

    def __del__(self) -> None:
        self.budget.held -= len(self.buffer) - FIRST_BUFFER_BYTES

    def append(
        self,
        octets: bytes,
        number: cython.longlong,
        ts_ns: cython.longlong,
        moment: cython.longlong,
    ) -> cython.int:
        """These bytes of a packet are the next."""
        count: cython.longlong = len(octets)
        kept_bytes: cython.longlong = self.used - self.first
        if self.used + count > len(self.buffer):
            old: bytearray = self.buffer
            if 2 * (kept_bytes + count) > len(old):
                self.buffer = bytearray(2 * (kept_bytes + count))
                self.budget.held += len(self.buffer) - len(old)
            self.buffer[:kept_bytes] = old[self.first : self.used]
            self.first = 0
            self.used = kept_bytes
        if cython.compiled:
            memcpy(
                PyByteArray_AS_STRING(self.buffer) + self.used,
                PyBytes_AS_STRING(octets),
                cython.cast(cython.size_t, count),
            )
        else:
            self.buffer[self.used : self.used + count] = octets
        self.used += count
        packet = (number, ts_ns, moment)
        if self.marks and self.marks[len(self.marks) - 1][1][:2] == (number, ts_ns):
            packet = self.marks.pop()[1]
        self.marks.append((self.end(), packet))
        if len(self.marks) > MAX_MARKS:
            self.marks.popleft()
        return 0

    @cython.cfunc
    def packet_of(self, end: cython.longlong) -> Any:
        """(packet number, ts_ns, moment) of the byte before `end`, which came lately."""
        latest = (0, 0, 0)
        for until, packet in reversed(self.marks):
            if until < end:
                break
            latest = packet
        return latest

    def trim(self, keep: cython.longlong) -> cython.int:
        """Forget the bytes before stream offset `keep`."""
        keep = min(keep, self.end())
        if keep > self.base:
            self.first += keep - self.base
            self.base = keep
            while self.marks and self.marks[0][0] <= keep:
                self.marks.popleft()
        return 0

    def jump(self, offset: cython.longlong) -> cython.int:
        """Forget everything; the next bytes are those from `offset` on."""
        self.first = 0
        self.used = 0
        self.base = offset
        self.marks.clear()
        return 0

    @cython.cfunc
    def pieces(self, start: cython.longlong, end: cython.longlong) -> list[Any]:
        """The bytes `start`..`end` of the stream as (bytes, packet number, ts_ns, moment)."""
        pieces = []
        octets = memoryview(self.buffer)
        shift: cython.longlong = self.first - self.base
        for until, packet in self.marks:
            stop = min(until, end)
            if start < stop:
                pieces.append((bytes(octets[start + shift : stop + shift]), *packet))
                start = stop
        return pieces


@cython.cclass
class Candidate:
    """A chain of frames that begins at `start`; `next` is the boundary it is at.

    `frames` holds (offset, type, channel, size, payload or None, bytes missing, (packet number,
    ts_ns, moment)), `held` counts the bytes of the payloads, `strong` the strong frames. `kind` is
    the type of the current frame, -1 before its header. The candidate is examined again at the
    position `wake`.
    """

    start: cython.longlong
    next: cython.longlong
    wake: cython.longlong
    size: cython.longlong
    missing: cython.longlong
    held: cython.longlong
    frames: list[Any]
    kind: cython.int
    channel: cython.int
    strong: cython.int

    def __init__(self, start: Any) -> None:
        self.start = start
        self.next = start
        self.frames = []
        self.wake = start
        self.kind = -1
        self.channel = 0
        self.size = 0
        self.missing = 0
        self.strong = 0
        self.held = 0

    @cython.exceptval(check=False)
    def keeps(self) -> cython.bint:
        """True if the bytes of the current frame are kept until it is complete."""
        return self.size <= _MAX_KEPT and self.missing == 0

    @cython.exceptval(check=False)
    def turn(self) -> cython.longlong:
        """The position to examine when the current frame is complete."""
        return max(self.next, self.next + self.size + 8 - _HEADER)

    def worse(self, other: Candidate) -> cython.bint:
        """True if this candidate has less proof than `other`, or the same and waits longer."""
        if self.strong != other.strong:
            return self.strong < other.strong
        if len(self.frames) != len(other.frames):
            return len(self.frames) < len(other.frames)
        return self.wake > other.wake


@cython.cclass
class Search:
    """The search in one half-stream, from stream offset `offset` on.

    Args:
        probe: Tests the bytes; may serve other searches in turn.
        half: The half-stream.
        offset: Stream offset of the first byte that will be fed.
        forced: Take the frame header there for granted (framing was known up to it).

    `tentative`: framing was uncertain before the search too; see `state.TENTATIVE_BYTES`.
    """

    probe: FrameProbe
    half: Half
    window: Window
    scanned: cython.longlong
    searched: cython.longlong
    held: cython.longlong
    forced_at: cython.longlong
    begin: cython.longlong
    beginnings: cython.int
    tentative: cython.bint
    candidates: list[Any]

    def __init__(self, probe: Any, half: Any, offset: Any, forced: Any = False) -> None:
        self.probe = probe
        self.half = half
        self.window = Window(offset, half.budget)
        self.scanned = self.begin = offset
        self.beginnings = 0
        self.tentative = True
        self.searched = 0
        self.held = 0
        self.candidates = []
        self.forced_at = -1
        if forced:
            self.candidates.append(Candidate(offset))
            self.forced_at = offset

    @cython.exceptval(check=False)
    def end(self) -> cython.longlong:
        """Stream offset after the last byte fed."""
        return self.window.end()

    def room(self) -> cython.longlong:
        """Maximum number of bytes to feed next."""
        room: cython.longlong = max(FIRST_FEED_BYTES, self.searched)
        if not self.half.budget.has_plenty():
            room = FIRST_FEED_BYTES
        if self.searched < FOREIGN_AFTER_BYTES:
            return min(room, FOREIGN_AFTER_BYTES - self.searched)
        return room

    def hopeless(self) -> cython.bint:
        """True if `FOREIGN_AFTER_BYTES` were searched without AMQP: it is another protocol."""
        return self.searched >= FOREIGN_AFTER_BYTES and not self.half.connection.is_amqp

    @cython.cfunc
    def feed(
        self,
        octets: bytes,
        number: cython.longlong,
        ts_ns: cython.longlong,
        moment: cython.longlong,
    ) -> Candidate:
        """Search on with the bytes of the next packet; the chain that is believed, or None."""
        if not self.window.fits(len(octets)):
            self._begin_anew()
        self.window.append(octets, number, ts_ns, moment)
        self.searched += len(octets)
        believed: Candidate = self._run(self.window.end() - _HEADER, False)
        if believed is None:
            self._trim()
        return believed

    @cython.cfunc
    def gap(self, missing: cython.longlong) -> Candidate:
        """`missing` bytes are not in the capture: the chain believed before them, or None."""
        believed: Candidate = self._conclude(True)
        if believed is not None:
            return believed
        begin: cython.longlong = self.window.end()
        end: cython.longlong = begin + missing
        candidate: Candidate
        for candidate in list(self.candidates):
            self._survive(candidate, begin, end)
        self.window.jump(end)
        self.scanned = self.begin = end
        return None

    @cython.cfunc
    def finish(self) -> Candidate:
        """End of the bytes: the chain to accept, or None."""
        return self._conclude(False)

    @cython.ccall
    def rest(self, start: cython.longlong, end: cython.longlong) -> list[Any]:
        """The bytes `start`..`end` of the stream as (bytes, packet number, ts_ns, moment)."""
        return self.window.pieces(start, end)

    def _begin_anew(self) -> cython.int:
        """Too much is held: forget every chain."""
        self.half.budget.refuse("frames while framing was searched")
        candidate: Candidate
        for candidate in list(self.candidates):
            self._drop(candidate)
        self.scanned = self.window.end()
        self.window = Window(self.scanned, self.half.budget)
        return 0

    def _trim(self) -> cython.int:
        """Forget bytes that no chain needs."""
        keep: cython.longlong = self.scanned
        candidate: Candidate
        for candidate in self.candidates:
            if candidate.kind != BODY or candidate.keeps():
                keep = min(keep, candidate.next)
            else:
                keep = min(keep, candidate.next + 7 + candidate.size)
        return self.window.trim(keep - 1)  # and the end byte before it

    # turns

    @cython.cfunc
    def _run(self, last: cython.longlong, ending: cython.bint) -> Candidate:
        """Give every position up to `last` its turn; the chain that is believed, or None."""
        if not self.candidates and (
            self.scanned > last or self.window.end() - self.scanned < _FRAME_HEADER
        ):
            return None
        self.probe.reader.read_from(self.window.buffer)
        candidate: Candidate
        first: Candidate
        wake: cython.longlong
        while True:
            wake = _NEVER
            first = None
            for candidate in self.candidates:
                if candidate.wake < wake:
                    wake = candidate.wake
                    first = candidate
            if self.scanned <= last and self.scanned < wake:
                if self._scan(min(wake, last + 1)):
                    continue
            if wake > last:
                return None
            if first.kind < 0:
                self._await_header(first)
            else:
                self._await_end(first, ending)
            if self._believed(first):
                return first

    def _scan(self, stop: cython.longlong) -> cython.bint:
        """Scan to `stop`, and start a candidate at each byte that can begin a frame."""
        data: cython.const[cython.uchar][::1] = self.probe.reader.data
        shift: cython.longlong = self.window.first - self.window.base
        at: cython.longlong = self.scanned + shift
        octet: cython.int
        stop = min(stop + shift, self.window.used)
        while at < stop:
            octet = data[at]
            at += 1
            if octet == 1 or octet == 2 or octet == 3 or octet == 8 or octet == _PROTOCOL_HEADER:
                if self.probe.header(self.half, at - 1, self.window.used - at + 1, False) == 1:
                    if octet == BODY and self._is_inside(at - 1):
                        continue
                    self.scanned = at - shift
                    if self._start(at - 1 - shift):
                        return True
        self.scanned = max(self.scanned, at - shift)
        return False

    def _is_inside(self, at: cython.longlong) -> cython.bint:
        """True if a body there is implausible: no frame ends before it, and no body is expected."""
        if at == self.window.first or self.window.buffer[at - 1] == FRAME_END:
            return False
        return not self.probe.strong(self.half, BODY, self.probe.channel, at + 7, self.probe.size)

    def _start(self, offset: cython.longlong) -> cython.bint:
        """Start a candidate, unless a chain has its boundary there or all candidates are better."""
        worst: Candidate = None
        other: Candidate
        for other in self.candidates:
            if other.next == offset:
                return False
            if other.start != self.forced_at and (worst is None or other.worse(worst)):
                worst = other
        candidate: Candidate = Candidate(offset)
        self._enter(candidate)
        if len(self.candidates) >= MAX_CANDIDATES:
            if not worst.worse(candidate):
                return False
            self._drop(worst)
        self.candidates.append(candidate)
        return True

    def _enter(self, candidate: Candidate) -> cython.int:
        """The header that the probe has just read is that of the candidate's next frame."""
        candidate.kind = self.probe.kind
        candidate.channel = self.probe.channel
        candidate.size = self.probe.size
        candidate.missing = 0
        candidate.wake = candidate.turn()
        return 0

    def _hold(self, octets: cython.longlong) -> cython.int:
        """Count kept payloads, or, if negative, released ones."""
        self.held += octets
        self.half.budget.held += octets
        return 0

    def __del__(self) -> None:
        self.half.budget.held -= self.held

    def _drop(self, candidate: Candidate) -> cython.int:
        self._hold(-candidate.held)
        candidate.held = 0
        candidate.frames = []
        candidate.strong = 0
        candidate.kind = -1
        self.candidates.remove(candidate)
        return 0

    def _await_header(self, candidate: Candidate) -> cython.int:
        """The header after a candidate's last frame is complete, or will never be."""
        other: Candidate
        met: list[Any] = []
        for other in self.candidates:
            if other.next == candidate.next and other is not candidate:
                met.append(other)
        for other in met:
            if other.strong and not candidate.strong and candidate.start != self.forced_at:
                return self._drop(candidate)
            self._drop(other)
        at: cython.longlong = candidate.next - self.window.base + self.window.first
        forced: cython.bint = candidate.next == self.forced_at
        answer: cython.int = self.probe.header(self.half, at, self.window.used - at, forced)
        if answer == 1:
            return self._enter(candidate)
        if answer == 0:
            return self._drop(candidate)
        candidate.wake = _NEVER
        return 0

    def _await_end(self, candidate: Candidate, ending: cython.bint) -> cython.int:
        """A candidate's frame is whole, or will never be."""
        size: cython.longlong = candidate.size
        at: cython.longlong = candidate.next - self.window.base + self.window.first
        payload: Any = None
        forced: cython.bint = candidate.next == self.forced_at
        if ending and at + size + 8 > self.window.used:
            candidate.wake = _NEVER
            return 0
        if candidate.kind == _PROTOCOL_HEADER and not forced:
            payload = bytes(self.window.buffer[at : at + 8])
            candidate.strong += 1
        else:
            if self.window.buffer[at + 7 + size] != FRAME_END:
                return self._drop(candidate)
            if candidate.keeps():
                if self.held + size <= _MAX_HELD and self.half.budget.allows(size):
                    payload = self.probe.reader.bytes_at(at + 7, size)
                elif candidate.kind != BODY:
                    return self._drop(candidate)
            if forced or self.probe.strong(
                self.half, candidate.kind, candidate.channel, at + 7, size
            ):
                candidate.strong += 1
        if payload is not None:
            candidate.held += len(payload)
            self._hold(len(payload))
        return self._add(candidate, payload)

    def _add(self, candidate: Candidate, payload: Any) -> cython.int:
        """Add the current frame to its chain."""
        offset: cython.longlong = candidate.next
        candidate.next += candidate.size + 8
        packet = self.window.packet_of(candidate.next)
        frame = (offset, candidate.kind, candidate.channel, candidate.size, payload)
        candidate.frames.append((*frame, candidate.missing, packet))
        candidate.kind = -1
        candidate.wake = candidate.next
        return 0

    # belief

    def _believed(self, candidate: Candidate) -> cython.bint:
        count: cython.int = len(candidate.frames)
        if count and candidate.start == self.forced_at:
            return True
        if candidate.strong:
            return count >= CHAIN_FRAMES or candidate.kind >= 0
        return count > CHAIN_FRAMES

    @cython.cfunc
    def _conclude(self, hole: cython.bint) -> Candidate:
        """The chain that is believed when nothing more can confirm it, or None."""
        end: cython.longlong = self.window.end()
        believed: Candidate = self._run(end, True)
        if believed is not None:
            return believed
        candidate: Candidate
        for candidate in self.candidates:
            if candidate.strong:
                return candidate
        is_known: cython.bint = self.half.connection.is_amqp
        for candidate in self.candidates:
            if candidate.frames and candidate.next == end and (is_known or not hole):
                return candidate
            if hole and (candidate.kind == 1 or candidate.kind == 2):
                if candidate.next != self.forced_at and (is_known or self._is_expected(candidate)):
                    return candidate
        if hole and end >= self.begin + _HEADER:
            self.beginnings = self.beginnings + 1 if self._begins_cut() else 0
        return None

    def _is_expected(self, candidate: Candidate) -> cython.bint:
        """True if a cut candidate begins its run of bytes, as those of the runs before it did."""
        return candidate.start == self.begin and self.beginnings >= CUT_BEGINNINGS - 1

    def _begins_cut(self) -> cython.bint:
        """True if the bytes since the last hole begin with a method or a content header."""
        candidate: Candidate
        for candidate in self.candidates:
            if candidate.start == self.begin and (candidate.kind == 1 or candidate.kind == 2):
                return True
        return False

    def _survive(
        self, candidate: Candidate, begin: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Continue a candidate after a hole inside its current body, else drop it."""
        if candidate.kind != BODY or candidate.next + 7 + candidate.size < end:
            return self._drop(candidate)
        # the hole is not in the frame header, which the probe needs whole
        candidate.missing += end - begin
        candidate.wake = candidate.turn()
        return 0
