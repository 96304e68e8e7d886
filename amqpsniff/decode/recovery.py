# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Recovery: going on after holes and broken framing.

After a hole the place is kept by arithmetic when the hole lies inside a frame whose size is known:
a body goes on behind it, of another frame what was captured is handed on as cut. Otherwise, and
where framing breaks, `synchronize` looks for the next boundary; the frames of the chain it believes
are handed on as if they had been read in order.
"""

from operator import itemgetter

import cython
from cython.cimports.amqpsniff.decode.opening import OpeningFramer
from cython.cimports.amqpsniff.decode.values import ValueReader

from amqpsniff.columns import NULL
from amqpsniff.decode import plan, state
from amqpsniff.decode.claims import UNFINISHED
from amqpsniff.decode.contents import LATE
from amqpsniff.decode.foreign import is_amqp_1_0
from amqpsniff.decode.opening import FIRST_OCTETS
from amqpsniff.decode.state import TENTATIVE_OCTETS
from amqpsniff.decode.synchronize import Search
from amqpsniff.spec import PROTOCOL_HEADERS

_START = cython.declare(cython.int, state.START)
_SEARCH = cython.declare(cython.int, state.SEARCH)
_FRAMES = cython.declare(cython.int, state.FRAMES)
_FOREIGN = cython.declare(cython.int, state.FOREIGN)
_SILENT = cython.declare(cython.int, state.SILENT)
_STRANGE = cython.declare(cython.int, state.STRANGE)
_BY_ROW = itemgetter(0)
_NULL = cython.declare(cython.longlong, NULL)
_BODY = cython.declare(cython.int, 3)
_AMQP_1_0 = next(row.octets for row in PROTOCOL_HEADERS if row.protocol == "1.0")
_UNREAD = frozenset(row.octets for row in PROTOCOL_HEADERS) - frozenset(plan.HEADER_DIALECTS)
"""What follows `AMQP` in protocol headers of versions that are not decoded."""


class RecoveringFramer(OpeningFramer):
    """A framer that finds its place again."""

    def gap(self, half, missing):
        """`missing` octets of a half-stream are not in the capture."""
        if half.mode == _SEARCH and half.connection.asked in _UNREAD:
            half.mode = _SILENT
            half.search = None
        while half.mode == _SEARCH:
            search = half.search
            chain = search.gap(missing)
            if chain is None:
                half.offset = search.end
                self.contents.note_loss(half)
                return 0
            self._take_up(half, search, chain, search.end, self.handler.frames.moment())
        if half.mode == _STRANGE:
            half.mode = _FOREIGN
        if half.mode == _FOREIGN or half.mode == _SILENT:
            half.offset += missing
            return 0
        if half.mode == _START:
            half.kept = 0
            half.mode = _FRAMES
        if half.left > 0:
            missing = self._gap_in_counted(half, missing)
        elif half.kept > 0:
            missing = self._gap_in_kept(half, missing)
        half.offset += missing
        if missing:
            self._lose(half, half.offset - missing, False)
            half.search.tentative = True
        return 0

    def finish(self, half):
        """No more octets of a half-stream: take what the search believes after all."""
        if half.mode == _START and half.kept:
            self._end_start(half)
        if half.mode == _FRAMES and half.kept and self.handler.claims is not None:
            begin: bytes = bytes(half.store.octets[0 : half.kept])
            self.handler.claim(half, UNFINISHED, half.frame_offset, 0, 0, begin, -1, False)
        while half.mode == _SEARCH:
            search = half.search
            chain = search.finish()
            if chain is None:
                half.search = None  # the two hold each other
                return 0
            self._take_up(half, search, chain, search.end, self.handler.frames.moment())
        return 0

    def _end_start(self, half):
        """A half-stream ended in what could have been a proxy's header."""
        octets: bytes = bytes(half.store.octets[0 : half.kept])
        if octets[:4] != b"AMQP"[: len(octets)]:
            half.number = 0
            half.ts_ns = _NULL
            self._headless(half, octets)
        return 0

    def _gap_in_counted(self, half, missing):
        """A hole in a frame that is counted; octets of the hole behind that frame."""
        payload: cython.longlong = min(missing, half.left - 1)
        if not half.skipping:
            self.contents.body_missing(half, payload)
        if missing < half.left:
            half.left -= missing
            half.offset += missing
            return 0
        missing -= half.left
        half.offset += half.left
        self._end_counted(half)
        return missing

    def _gap_in_kept(self, half, missing):
        """A hole in a frame that is kept; octets of the hole behind that frame."""
        if half.expected == 0:
            missing += half.kept
            half.offset -= half.kept
            half.kept = 0
            return missing
        to_come: cython.longlong = half.expected - half.kept
        if missing < to_come:
            half.skipping = True
            half.left = to_come - missing
            half.offset += missing
            return 0
        half.offset += to_come
        self._cut_frame(half)
        return missing - to_come

    def lose(self, half, forced):
        """Framing is lost in the frame under way: search from `half.offset` on."""
        if self.is_tentative(half) and not half.connection.began:
            self._unlearn(half.connection)
        return self._lose(half, half.frame_offset, forced)

    def _lose(self, half, begin, forced):
        """What the octets from `begin` on mean is not known: search from `half.offset` on."""
        self.contents.lose(half, begin)
        tentative: cython.bint = half.mode == _FRAMES and self.is_tentative(half)
        if tentative and not half.connection.began:
            half.connection.role_proved = False
        half.forget_frame()
        half.mode = _SEARCH
        half.search = Search(self.probe, half, half.offset, forced)
        half.search.tentative = tentative
        return 0

    def _unlearn(self, connection):
        """Forget what frames told of a connection that may have been octets of a body."""
        connection.past_login = False
        connection.dialect = self.handler.dialect
        connection.frame_max = -1
        connection.login = connection.asked = None

    def search(self, half, reader, at, end):
        """Search on with these octets, or some of them; position gone on to."""
        search = half.search
        count: cython.longlong = min(end - at, search.room)
        octets: bytes = reader.octets_at(at, count)
        if self._is_unread(half, octets):
            half.offset += end - at
            return end
        if len(half.first_octets) < FIRST_OCTETS and not half.connection.is_amqp:
            half.first_octets = (half.first_octets + octets)[:FIRST_OCTETS]
        begin: cython.longlong = search.end
        moment: cython.longlong = self.handler.frames.moment()
        chain = search.feed(octets, half.number, half.ts_ns, moment)
        if chain is not None:
            self._take_up(half, search, chain, begin, moment)
            return at + max(0, chain.next - begin)
        half.offset += count
        if search.hopeless:
            half.mode = _FOREIGN
            half.search = None
        return at + count

    def _is_unread(self, half, octets):
        """Whether a connection speaks an AMQP that is not decoded; its header may be missing."""
        connection = half.connection
        if connection.asked not in _UNREAD:
            if connection.is_amqp or not is_amqp_1_0(octets):
                return False
            connection.is_amqp = True
            connection.asked = _AMQP_1_0
            self.handler.refresh(connection)
        half.mode = _SILENT
        half.search = None
        self._other_protocol(half, connection.asked)
        return True

    def _take_up(self, half, search, chain, until, now):
        """Take the frames of a chain that is believed and the octets between it and `until`; it is
        this moment now.
        """
        half.search = chain.start + TENTATIVE_OCTETS if search.tentative else None
        half.first_octets = b""
        half.mode = _FRAMES
        half.connection.is_amqp = True
        self._prove_role(half, chain.frames)
        number, ts_ns = half.number, half.ts_ns
        noted = len(self.contents.losses)
        for *frame, half.number, half.ts_ns, moment in chain.frames:
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

    def _note_late(self, first, moment):
        """Rows from `first` on are of octets that came at a moment; the other side went on then."""
        for row in range(first, self.handler.frames.rows):
            self.contents.losses.append((row, moment, LATE))

    def _prove_role(self, half, frames):
        """Let the methods of a chain tell who is the client before any row is written."""
        reader: ValueReader = self.handler.scratch
        for _, kind, _, _, payload, *_ in frames:
            if half.connection.role_proved:
                return
            if kind == 1 and len(payload) >= 4:
                reader.read_from(payload)
                self.handler.prove_role(half, reader, 0, len(payload))

    def _chain_frame(self, half, offset, kind, channel, size, payload, missing):
        """Hand on one frame of a chain that is believed."""
        half.frame_offset = offset
        half.frame_type = kind
        half.frame_channel = channel
        half.frame_size = size
        if kind == _BODY:
            self.handler.claim_body(half)
            self._chain_body(half, payload, missing)
            self.handler.body_end(half)
        elif len(payload) > size:
            self._protocol_header(half, payload)
        else:
            reader: ValueReader = self.handler.scratch
            reader.read_from(payload)
            self.handler.frame(half, reader, 0, size, True)
        if kind == _BODY or len(payload) <= size:
            self.handler.claim_end(half, offset + 7 + size)

    def _chain_body(self, half, payload, missing):
        """Hand on a body of a chain; of one that was not kept the octets are only counted."""
        if payload is not None:
            reader: ValueReader = self.handler.scratch
            reader.read_from(payload)
            self.contents.body_octets(half, reader, 0, half.frame_size)
            return
        content = self.contents._awaiting(half)
        if content is not None:
            content.hash = None
            content.body_marking = False
            if content.keeping:
                self.contents._let_go(content)
            self.contents.body_octets(half, self.handler.scratch, 0, half.frame_size - missing)
            self.contents.body_missing(half, missing)
