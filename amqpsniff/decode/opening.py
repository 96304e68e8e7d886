# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""How a half-stream begins: with a protocol header, a proxy's header before it, or anything else.

What is neither may be AMQP all the same, captured from somewhere in its midst, for which `search`
looks; where the begin is in the capture, it is another protocol, of which the first octets are kept
to say which. A capture may lack the TCP handshake alone, as one that a display filter left of it
does: then connection.start, which answers the protocol header, is known by its own first octets.
"""

import cython
from cython.cimports.amqpsniff.decode.framing import Framer
from cython.cimports.amqpsniff.decode.state import Connection

from amqpsniff.decode import plan, state
from amqpsniff.decode.claims import PROTOCOL_HEADER, PROXY
from amqpsniff.decode.synchronize import Search
from amqpsniff.decode.tunnelled import MAX_PREAMBLE_OCTETS, preamble_octets
from amqpsniff.spec import protocol_of

_FRAMES = cython.declare(cython.int, state.FRAMES)
_SEARCH = cython.declare(cython.int, state.SEARCH)
_FOREIGN = cython.declare(cython.int, state.FOREIGN)
_SILENT = cython.declare(cython.int, state.SILENT)
_STRANGE = cython.declare(cython.int, state.STRANGE)
_METHOD = cython.declare(cython.int, 1)
_AMQP = cython.declare(cython.longlong, 0x414D5150)
FIRST_OCTETS = 16
"""Octets kept of a half-stream that is not AMQP, to say what it is."""

START_OCTETS = 11
"""Octets that tell connection.start: the frame's header, class and method."""

_DIALECTS = cython.declare(dict, plan.HEADER_DIALECTS)


class OpeningFramer(Framer):
    """Cuts half-streams from their first octets on."""

    def begin(self, half, reader, at, end):
        """At the first octets of a half-stream; position gone on to."""
        if half.mode == _STRANGE:
            self._strange(half, reader.octets_at(at, min(end - at, FIRST_OCTETS)))
            half.offset += end - at
            return end
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
        if proxied == 0 and 8 <= half.kept < START_OCTETS:
            wanted = START_OCTETS - half.kept
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
                self._note_first(half, octets)
        elif octets[:4] != b"AMQP"[: len(octets)] or self._is_text(half, octets):
            if not self._is_answer(half, octets):
                self._headless(half, octets)
            elif len(octets) == START_OCTETS:
                half.kept = 0
                half.offset -= START_OCTETS
                half.mode = _FRAMES
                self.octets(half, octets, 0, START_OCTETS)
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

    def _note_first(self, half, octets):
        """Remember first octets that are not AMQP, in case it is not AMQP that follows."""
        half.first_octets = octets[:FIRST_OCTETS]
        half.first_number = half.number
        half.first_ns = half.ts_ns

    def _is_text(self, half, octets):
        """Whether AMQP is but a part of something, such as the mechanism AMQPLAIN."""
        if len(octets) < 8 or half.connection.conversation.syn_seen:
            return False
        return protocol_of(octets[4:]) is None

    def _is_answer(self, half, octets):
        """Whether these are, or may become, connection.start after a protocol header."""
        connection: Connection = half.connection
        answers: cython.bint = half.direction != connection.client_direction
        if connection.conversation.syn_seen or not connection.began or not answers:
            return False
        begun = octets[:3] == b"\1\0\0"[: len(octets)]
        return begun and octets[7:] == b"\0\x0a\0\x0a"[: max(0, len(octets) - 7)]

    def _protocol_header(self, half, octets):
        """Eight octets that begin with AMQP, at the begin of a half-stream."""
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
        half.mode = _FRAMES
        version: bytes = octets[4:]
        from_client: cython.bint = half.direction == connection.client_direction
        if from_client:
            connection.asked = version
        elif connection.asked is None or connection.asked == version:
            half.first_octets = octets  # an answer, or a refusal of what came before
        else:
            asked, offered = _version(connection.asked), _version(version)
            detail = f"the client asked for {asked}, the broker offers {offered}"
            self.report("protocol-version-refused", half, detail, (None, half.number, half.ts_ns))
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
            if half.connection.asked is None:  # the client's header was not captured
                half.connection.asked = version
        self.report(code, half, _version(version), (None, half.number, half.ts_ns))

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
        if known_start and half.offset == 0:
            self._note_first(half, octets)
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
