# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The decoder: bytes of TCP conversations in, rows of frames and messages out.

Each half-stream is cut into frames (`framer`), each frame becomes a row and methods are read
(`frames`, `methods`), content is put together (`contents`).

`feed` takes the events of reassembly (`amqpsniff.tcp.stream`); a caller with bytes and no packets
calls `open`, `data`, `gap` and `close` directly. Rows gather in the handler until `take`. No input
bytes raise an exception.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.amqp10.frames import Amqp10Frames
from cython.cimports.amqpsniff.decode.codes import (
    AWAIT_METHOD,
    NOT_AMQP,
    SEARCH,
    START,
    UNIDENTIFIED,
    UNSUPPORTED_VERSION,
)
from cython.cimports.amqpsniff.decode.framer import Framer
from cython.cimports.amqpsniff.decode.frames import FrameHandler
from cython.cimports.amqpsniff.decode.moments import Moments
from cython.cimports.amqpsniff.decode.state import Connection, Half, Repeated
from cython.cimports.amqpsniff.decode.values import ValueReader
from cython.cimports.amqpsniff.findings.log import FindingLog
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.packet_numbers import NUMBER_BITS, NUMBER_MASK

from amqpsniff.decode.non_amqp import NonAmqpReporter, is_unanswered, left_text
from amqpsniff.decode.preamble import name_protocol
from amqpsniff.findings import Finding
from amqpsniff.spec import PROTOCOL_HEADER_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.options import Options
    from amqpsniff.packs import Packs
    from amqpsniff.plan import Plan

_AMQP10_HEADER, _SASL_HEADER = b"\0\1\0\0", b"AMQP\3\1\0\0"
_BEFORE = (
    "the broker answers the client's protocol header with the same, and so refuses bytes that came "
    "before it, as a proxy between them sends with the PROXY protocol"
)
_UNASKED = (
    "the broker sent a protocol header before the client's first byte, and so refuses bytes that "
    "came before that, as a proxy between them sends with the PROXY protocol"
)
# the kinds of events of tcp.stream
_OPEN = cython.declare(cython.int, 0)
_GAP = cython.declare(cython.int, 2)
_CLOSE = cython.declare(cython.int, 3)


# Half-streams of closed conversations kept for reuse: making one, with its buffers, takes longer
# than everything else that a short conversation costs here.
_SPARE_HALVES = cython.declare(cython.Py_ssize_t, 64)


@cython.cclass
class Decoder:
    """Decodes any number of conversations at once.

    Args:
        log: Collects the findings.
        plan: The plan of the run.
        options: Options of decoding. The stages below take the same.
        packs: The packs that describe messages of frameworks; None if they are not needed.
        moments: Records which packet completed each row; or None.
    """

    handler = cython.declare(FrameHandler, visibility="public")
    amqp10: Amqp10Frames
    framer: Framer
    halves: list[Any]
    spare: list[Any]
    ended: list[Any]
    encrypted: list[Any]
    foreign: cython.longlong
    bystanders = cython.declare(object, visibility="public")
    log: FindingLog
    capture_names: list[Any]
    unreported: list[Any]
    moments = cython.declare(Moments, visibility="public")

    def __init__(
        self,
        log: FindingLog,
        plan: Plan,
        options: Options,
        packs: Packs | None = None,
        moments: Any = None,
    ) -> None:
        self.log = log
        self.handler = FrameHandler(plan, options, packs, self._report)
        self.amqp10 = Amqp10Frames(plan, options, self.handler)
        self.framer = Framer(self.handler, self.amqp10)
        self.halves = []
        self.spare = []
        self.ended = []
        self.encrypted = []
        self.foreign = 0
        self.bystanders = NonAmqpReporter(log, self.handler.ports)
        self.capture_names = []
        self.moments = moments
        self.unreported = []

    @property
    def rows(self) -> Any:
        """Rows made since the last `take`: those of the larger requested table."""
        return max(
            self.handler.frames.rows if self.handler.frames.wanted else 0,
            self.handler.messages.rows if self.handler.messages.wanted else 0,
        )

    @property
    def octets(self) -> Any:
        """Bytes of text and bodies in the rows made since the last `take`."""
        frames, messages = self.handler.frames, self.handler.messages
        return frames.octets() + messages.octets() + frames.vocabularies.octets()

    @property
    def names(self) -> Any:
        """Connections and distinct texts since the last `take`."""
        return len(self.handler.peers) + self.handler.frames.vocabularies.count()

    @property
    def other_methods(self) -> Any:
        """Names of the methods that no dialect has, in the order of their codes."""
        return self.handler.method_names

    @property
    def hits(self) -> Any:
        """Number of items that were not kept because of the memory limit, by kind."""
        return self.handler.contents.budget.refused

    def use_capture(self, name: Any) -> None:
        """The following bytes belong to this capture."""
        self.handler.use_capture(name)

    def take_ended(self) -> Any:
        """Conversations that ended since the last call.

        Those that were AMQP, each as a `state.Connection` with the row of frames before which it
        ended; how many were not; and those that were TLS, AMQP or not.
        """
        ended = (self.ended, self.foreign, self.encrypted)
        self.ended = []
        self.encrypted = []
        self.foreign = 0
        return ended

    def take_claims(self) -> Any:
        """The claims made since the last call, in the order in which they were made.

        None without `claims`.
        """
        claims = self.handler.claims
        if claims is not None:
            self.handler.claims = []
        return claims

    def look(self) -> Any:
        """The rows since the last `take`, to be read before they are returned.

        (frames, messages, connections by code, places of losses since the last call, captures by
        code); see `contents.ContentAssembler.losses`.
        """
        handler: FrameHandler = self.handler
        losses = handler.contents.losses
        handler.contents.losses = []
        return handler.frames, handler.messages, handler.peers, losses, handler.captures

    def drop_unwanted(self) -> None:
        """Forget the rows of tables that are not requested."""
        if not self.handler.frames.wanted:
            self.handler.frames.rewind()
        if not self.handler.messages.wanted:
            self.handler.messages.rewind()

    def take(self) -> Any:
        """Give the rows away; see `FrameHandler.take`."""
        rows = self.handler.take()
        self.amqp10.use(self.handler.frames, self.handler.messages)
        return rows

    def feed(self, batch: Any, capture: Any) -> None:
        """Decode the events of one `StreamBatch`; `capture` is the one of its packets.

        Events that earlier packets made are of those packets' captures.
        """
        self.use_capture(capture)
        captures: list[Any] = batch.captures
        self.capture_names = captures
        capture_index: cython.longlong = captures.index(capture) if capture in captures else 0
        kinds: cython.const[cython.int][::1] = batch.kind
        slots: cython.const[cython.int][::1] = batch.half
        sources: cython.const[cython.int][::1] = batch.source
        starts: cython.const[cython.longlong][::1] = batch.start
        lengths: cython.const[cython.longlong][::1] = batch.length
        numbers: cython.const[cython.longlong][::1] = batch.number
        times: cython.const[cython.longlong][::1] = batch.ts_ns
        block: ValueReader = self.handler.block
        block.read_from(batch.octets)
        half: Half
        i: cython.Py_ssize_t
        count: cython.Py_ssize_t = batch.count
        if count > min(
            len(kinds), len(slots), len(sources), len(starts), len(lengths), len(numbers),
            len(times),
        ):  # fmt: skip
            raise IndexError("no such events")
        moments: Moments = self.moments
        number: cython.longlong = 0
        ts_ns: cython.longlong = 0
        if moments is not None:
            moments.begin(batch, self.handler.frames.rows, self.handler.messages.rows)
        for i in range(count):
            if i > 0 and moments is not None:
                self._note(i - 1, number, ts_ns)
            with cython.boundscheck(False):  # every column has as many rows
                kind: cython.int = kinds[i]
                slot: cython.int = slots[i]
                source: cython.int = sources[i]
                start: cython.longlong = starts[i]
                length: cython.longlong = lengths[i]
                number = numbers[i]
                ts_ns = times[i]
            if number >> NUMBER_BITS != capture_index:
                capture_index = number >> NUMBER_BITS
                self.use_capture(captures[capture_index])
            if kind == _OPEN:
                self.open(slot >> 1, batch.conversations[slot >> 1])
                continue
            if kind == _CLOSE:
                self.close(slot >> 1)
                continue
            half = self.halves[slot]
            if half.mode == NOT_AMQP or half.mode == UNSUPPORTED_VERSION:
                half.offset += length
                continue
            half.number = number & NUMBER_MASK
            half.ts_ns = ts_ns
            if kind == _GAP:
                self.framer.gap(half, length)
                continue
            if source < 0:
                self.framer.data(half, block, start, start + length)
            else:
                octets = batch.extra[source]
                self.framer.octets(half, octets, start, length)
        if count > 0 and moments is not None:
            self._note(count - 1, number, ts_ns)
        block.read_from(b"")
        self._report_repeated()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _note(
        self, event: cython.Py_ssize_t, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """An event of a packet is decoded."""
        frames: cython.longlong = self.handler.frames.rows
        messages: cython.longlong = self.handler.messages.rows
        losses: cython.Py_ssize_t = len(self.handler.contents.losses)
        return self.moments.note(event, number, ts_ns, frames, messages, losses)

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def open(self, slot: cython.Py_ssize_t, conversation: Any) -> cython.int:
        """A conversation begins on a slot."""
        connection: Connection = Connection(conversation)
        connection.dialect = self.handler.dialect
        connection.capture = self._capture()
        if connection.began:
            connection.role_proved = True
            connection.client_direction = 0
        while len(self.halves) < 2 * slot + 2:
            self.halves.append(None)
        self.halves[2 * slot] = self._half(connection, 0)
        self.halves[2 * slot + 1] = self._half(connection, 1)
        return 0

    @cython.cfunc
    def _half(self, connection: Connection, direction: cython.int) -> Half:
        """A half-stream of a conversation that begins."""
        half: Half
        if not self.spare:
            return Half(connection, direction, self.handler.contents.budget)
        half = self.spare.pop()
        half.begin(connection, direction)
        return half

    def connection(self, slot: Any) -> Any:
        """The connection on a slot; None where it is over."""
        half: Half = self.halves[2 * slot]
        return None if half is None else half.connection

    def data(
        self, slot: Any, direction: Any, octets: Any, number: Any = 0, ts_ns: Any = NULL
    ) -> None:
        """The next bytes of one half-stream, as a bytes object."""
        half: Half = self.halves[2 * slot + direction]
        if half.mode == NOT_AMQP or half.mode == UNSUPPORTED_VERSION:
            half.offset += len(octets)
        else:
            half.number, half.ts_ns = number, ts_ns
            self.framer.octets(half, octets, 0, len(octets))

    def gap(
        self, slot: Any, direction: Any, missing: Any, number: Any = 0, ts_ns: Any = NULL
    ) -> None:
        """The next `missing` bytes of one half-stream are not in the capture."""
        half: Half = self.halves[2 * slot + direction]
        if half.mode == NOT_AMQP or half.mode == UNSUPPORTED_VERSION:
            half.offset += missing
        else:
            half.number, half.ts_ns = number, ts_ns
            self.framer.gap(half, missing)

    @cython.ccall
    @cython.exceptval(-1, check=True)
    def close(self, slot: cython.Py_ssize_t) -> cython.int:
        """The conversation on a slot is over."""
        first: Half = self.halves[2 * slot]
        second: Half = self.halves[2 * slot + 1]
        connection: Connection = first.connection
        conversation = connection.conversation
        self._finish(first)
        self._finish(second)
        self._report_repeated()
        if connection.is_amqp:
            if len(self.capture_names) > 1:
                names = self.capture_names
                connection.last_capture = names[conversation.last_number() >> NUMBER_BITS]
                if conversation.ended is not None:
                    connection.ended_capture = names[conversation.ended_number >> NUMBER_BITS]
            self._report_foreign(first, second)
            self._note_unread(first)
            self._note_unread(second)
            self.ended.append((connection, self.handler.frames.rows))
        elif conversation.tls is None or conversation.tls.opened:
            self.foreign += 1
        self.bystanders.ended(connection)
        if conversation.tls is not None:
            self.bystanders.encrypted(connection, self.handler.ports, self.capture_names)
            self.encrypted.append(connection)
        self.halves[2 * slot] = None
        self.halves[2 * slot + 1] = None
        self._keep(first)
        self._keep(second)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _finish(self, half: Half) -> cython.int:
        """End of a half-stream."""
        self.framer.finish(half)
        if half.connection.is_amqp:
            self.handler.refresh(half.connection)
        if half.content is not None and (half.content.state != AWAIT_METHOD or half.other_contents):
            self.handler.contents.finish(half)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _note_unread(self, half: Half) -> cython.int:
        """Frames may be missing where no boundary was found in a direction."""
        if half.mode == SEARCH or (half.mode == NOT_AMQP and half.lossy):
            self.handler.contents.note_loss(half)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _keep(self, half: Half) -> cython.int:
        """Keep a half-stream that is over for another conversation, unless it has grown."""
        if len(self.spare) < _SPARE_HALVES and not half.has_grown():
            half.begin(None, 0)
            self.spare.append(half)
        return 0

    def finish(self, capture: Any) -> None:
        """The capture is over: close every conversation that is still open."""
        if capture is not None:
            self.use_capture(capture)
        for slot in range(len(self.halves) // 2):
            if self.halves[2 * slot] is not None:
                self.close(slot)
        self.bystanders.finish()

    def _report(self, code: Any, half: Half, detail: Any, packet: Any = None) -> None:
        """Record a finding about the frame under way or a (channel, packet number, ts_ns)."""
        if packet is None and half.repeats(code):
            return
        channel, number, ts_ns = packet or (half.frame_channel, half.number, half.ts_ns)
        connection: Connection = half.connection
        self.handler.refresh(connection)
        connection_id, client, server = connection.name()
        capture = self._capture()
        if self.log.count_more(code, connection_id, capture, channel, 1, number or None):
            if packet is None:
                half.repeated = half.repeated or {}
                half.repeated[code] = Repeated(half, code, detail, self.unreported)
            return
        self.log.add(
            Finding(
                code,
                detail,
                capture=capture,
                packet_number=number or None,
                ts_ns=None if ts_ns == NULL else ts_ns,
                connection_id=connection_id,
                client=client,
                server=server,
                channel=channel,
            )
        )

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _report_repeated(self) -> cython.int:
        """Add the counts of repeated findings to the log."""
        repeated: Repeated
        for repeated in self.unreported:
            count, number = repeated.count, repeated.last or None
            repeated.count = 0
            connection_id, client, server = repeated.connection.name()
            capture, channel = self._capture(), repeated.channel
            if not self.log.count_more(
                repeated.code, connection_id, capture, channel, count, number
            ):
                location = (capture, number, None, connection_id, client, server, channel)
                self.log.add(Finding(repeated.code, repeated.detail, *location, count))
        self.unreported.clear()
        return 0

    @cython.cfunc
    def _capture(self) -> Any:
        """Name of the capture that is being decoded."""
        captures = self.handler.captures
        return captures[len(captures) - 1] if captures else None

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _report_foreign(self, client: Half, server: Half) -> cython.int:
        """Report a conversation with AMQP on one side only, or with an unidentified client."""
        conversation = client.connection.conversation
        unheard: cython.bint = client.lossy or server.lossy  # a login, perhaps, or a header
        refused: cython.bint = client.connection.login is None and not unheard
        is_preamble: cython.bint = client.mode == START and len(client.first_bytes) > 0
        if client.mode == NOT_AMQP or client.mode == UNIDENTIFIED:
            self._say_of("not-amqp", client, name_protocol(client.first_bytes))
        elif refused and conversation.syn_seen and _was_unasked(client, server):
            self._report("not-amqp", server, _UNASKED, (None, server.number, server.ts_ns))
        elif (
            refused
            and client.connection.requested_protocol == _AMQP10_HEADER
            and server.first_bytes == _SASL_HEADER
        ):
            packet = (None, server.number, server.ts_ns)
            self._report("login-demanded", server, "AMQP 1.0 without SASL was asked for", packet)
        elif (
            refused
            and client.connection.requested_protocol == _SASL_HEADER[4:]
            and server.first_bytes == b"AMQP" + _AMQP10_HEADER
        ):
            packet = (None, server.number, server.ts_ns)
            detail = "the client asked for AMQP 1.0 SASL, the broker offers AMQP 1.0"
            self._report("protocol-version-refused", server, detail, packet)
        elif conversation.tls is not None or (
            client.connection.requested_protocol is None and not is_preamble
        ):
            pass
        elif server.first_bytes[:4] == b"AMQP":
            if server.offset != PROTOCOL_HEADER_BYTES:
                pass
            elif client.first_bytes:
                self._say_of("not-amqp", client, name_protocol(client.first_bytes))
            elif refused and conversation.ended is not None and not client.connection.is_amqp10:
                self._report("not-amqp", server, _BEFORE, (None, server.number, server.ts_ns))
        elif server.first_bytes and not client.first_bytes:  # else a proxy may have answered
            detail = name_protocol(server.first_bytes, "server")
            self._say_of("server-not-amqp", server, detail)
        elif server.offset == 0 and is_unanswered(conversation):
            packet = (None, conversation.first_packet_number, conversation.start_ns)
            self._report("protocol-header-unanswered", client, left_text(conversation), packet)
        return 0

    def _say_of(self, code: Any, half: Any, detail: Any) -> None:
        """A finding about the first bytes of a side."""
        self._report(code, half, detail, (None, half.first_number, half.first_ns))


@cython.cfunc
def _was_unasked(client: Half, server: Half) -> cython.bint:
    """True if the server's protocol header came first, followed at most by the client's."""
    if server.first_bytes[:4] != b"AMQP" or server.offset != PROTOCOL_HEADER_BYTES:
        return False
    if client.connection.conversation.ended is None or client.first_bytes:
        return False
    if client.offset == 0:
        return True
    return client.offset == PROTOCOL_HEADER_BYTES and 0 < server.ts_ns < client.ts_ns
