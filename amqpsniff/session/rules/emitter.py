# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Emits the events that call rules: methods, and those of `occasions.EVENTS`.

The tracker passes on each frame, method, message and end. Silences, recent publishes, routes and
exchanges are counted here, and a count beyond a bound of `occasions` becomes an event. With a
`message_log`, events that need the messages of all connections are logged there and not judged.
"""

from __future__ import annotations

from array import array

import cython
from cython.cimports.amqpsniff.columns import Texts
from cython.cimports.amqpsniff.decode.codes import INCOMPLETE, TRUNCATED
from cython.cimports.amqpsniff.decode.meanings import Note
from cython.cimports.amqpsniff.decode.method_layout import FLAGS_CUT
from cython.cimports.amqpsniff.decode.rows import FrameRows, MessageRows
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import (
    Channel,
    ChannelSlot,
    LastSent,
    MessageTimes,
    PendingMessage,
    Session,
)
from cython.cimports.amqpsniff.session.event_logs import MessageLog
from cython.cimports.amqpsniff.session.method_flags import PUBLISH
from cython.cimports.amqpsniff.session.method_frame import HandshakeArguments, MethodFrame, Request
from cython.cimports.amqpsniff.session.methods import note_answer
from cython.cimports.amqpsniff.session.recent_publishes import RecentPublishes
from cython.cimports.amqpsniff.session.routes import Routes
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.gates import (
    argument_bits,
    ask,
    channel_bits,
    connection_bits,
    has_consumers,
)
from cython.cimports.amqpsniff.session.rules.occasions import (
    ANYTHING,
    BEHIND_NS,
    BULKY_BYTES,
    BULKY_NS,
    BY_BROKER,
    CONSUMES,
    EXCLUSIVE,
    EXTENDED,
    LARGE_BYTES,
    LARGE_HEADERS_BYTES,
    MANY_TABLES,
    MISSING_NS,
    NESTED,
    PASSIVE,
    QUIET_NS,
    SLOW_NS,
    STALLED_NS,
    TRANSFERRED_BYTES,
)

from amqpsniff.session import method_flags
from amqpsniff.session.method_frame import ALIKE
from amqpsniff.session.rules.occasions import PAUSED_NS, PROVISIONAL, SILENCES
from amqpsniff.session.rules.provisional import CHECK_BITS, check_waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.findings.log import FindingLog
    from amqpsniff.session.tracker import Tracker

_NONE = cython.declare(tuple, ())

# Length of arguments whose bits are remembered.
_MAX_ALIKE_BYTES = cython.declare(cython.int, 1_024)

_PAUSED = cython.declare(cython.longlong, PAUSED_NS[0])
_PAUSED_MOST = cython.declare(cython.longlong, PAUSED_NS[1])
_CHECK_BITS = cython.declare(cython.int, CHECK_BITS)
_ARGUMENTS = cython.declare(cython.int, PASSIVE | EXTENDED | NESTED | EXCLUSIVE)

MAX_TRACE_FORMATS = 8
"""Sets of conventions of tracing that are remembered of a connection: a program has one or two."""

MAX_EXCHANGES = 4_096
"""Exchanges whose messages are counted; a client may make up names."""

_LOOKED_FIRST = cython.declare(cython.longlong, 32)
_LOOKED_EACH = cython.declare(cython.longlong, 128)
"""Of publishes with values of `packs.catalogue.SAMPLED` on a connection rules look at the first 32,
and then at one in 128: a client that leaks a context or counts wrong goes on with it."""


@cython.final
@cython.cclass
class Emitter:
    """Emits the events of a `Tracker`, where findings are wanted: the rules of each are asked.

    Args:
        tracker: Has the log of findings and what rules remember.
    """

    tracker: Tracker
    log: FindingLog
    shared: dict[Any, Any]
    rules: dict[Any, Any]
    amqp10_rules: dict[Any, Any]
    of_methods: list[Any]
    gated: list[Any]
    known_bits: dict[Any, Any]
    names: list[Any]
    kinds: cython.const[cython.uchar][::1]
    recent_publishes: RecentPublishes
    routes_known: list[Any]
    exchange_words: Any
    exchanges: dict[Any, Any]
    exchange_counts: cython.longlong[::1]

    def __init__(self, tracker: Any) -> None:
        from amqpsniff.session.rules.registry import AMQP10_RULES, GATED, RULES

        self.tracker = tracker
        self.log, self.shared = tracker.log, tracker.shared
        self.names, self.kinds = method_flags.NAMES, method_flags.KINDS
        self.rules, self.amqp10_rules = RULES, AMQP10_RULES
        self.of_methods = [RULES.get(name, _NONE) for name in self.names]
        self.gated = [GATED.get(name, 0) for name in self.names]
        self.known_bits = {}
        self.recent_publishes = RecentPublishes()
        self.routes_known = [0]
        self.exchange_words = None
        self.exchanges = {}
        self.exchange_counts = array("q")

    # events

    @cython.ccall
    def emit(
        self,
        event: str,
        channel: Channel | None,
        number: Any,
        ts_ns: Any,
        facts: dict[Any, Any] | None,
        bits: cython.int = ANYTHING,
    ) -> None:
        """Ask the rules of an event on a channel; `bits`: see `rules.context.where`."""
        session: Session = channel.session
        connection: Connection = session.connection
        rules: Any = (self.amqp10_rules if connection.is_amqp10 else self.rules).get(event)
        if rules is not None:
            context = self._context(session, channel, number, ts_ns, None, None, facts)
            ask(rules, context, bits)

    @cython.ccall
    def emit_connection(
        self,
        event: str,
        session: Session | None,
        number: Any,
        ts_ns: Any,
        facts: dict[Any, Any] | None,
        bits: cython.int = ANYTHING,
    ) -> None:
        """Ask the rules of an event of a connection, None for all."""
        is_amqp10: cython.bint = session is not None and session.connection.is_amqp10
        rules = (self.amqp10_rules if is_amqp10 else self.rules).get(event, ())
        if rules:
            context = self._context(session, None, number, ts_ns, None, None, facts)
            ask(rules, context, bits)

    @cython.cfunc
    def _context(
        self,
        session: Session | None,
        channel: Channel | None,
        number: Any,
        ts_ns: Any,
        frame: MethodFrame | None,
        request: Request | None,
        facts: dict[Any, Any] | None,
    ) -> RuleContext:
        """A context, made without a call of its class: there are very many."""
        context: RuleContext = RuleContext.__new__(RuleContext)
        context.tracker, context.log, context.shared = self.tracker, self.log, self.shared
        context.place_at(session, channel, number, ts_ns, frame, request, facts)
        return context

    def emit_misplaced(
        self,
        event: str,
        session: Session,
        channel: Channel | None,
        frames: FrameRows,
        row: cython.longlong,
    ) -> cython.int:
        """Ask the rules about a method that may not come from its side, there, or now."""
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        facts = {
            "method": self.names[frames.method.values[row]],
            "channel": frames.channel.values[row],
            "side": frames.sender.values[row],
        }
        if channel is None:
            self.emit_connection(event, session, number, ts_ns, facts)
        else:
            self.emit(event, channel, number, ts_ns, facts)
        return 0

    def emit_method(
        self,
        session: Session,
        channel: Channel | None,
        frame: MethodFrame,
        request: Request | None,
    ) -> cython.int:
        """Ask the rules of a method, and those of a reply."""
        context: RuleContext = None
        rules: tuple[Any, ...] = self.of_methods[frame.method]
        if rules:
            context = self._context(
                session, channel, frame.number, frame.ts_ns, frame, request, None
            )
            ask(rules, context, self._method_bits(session, frame))
        if request is None or channel is None or request.side != 0:
            return 0
        if frame.ts_ns == NULL or request.ts_ns == NULL:
            return 0
        memory: dict[Any, Any] = session.memory
        if not session.connection.began:
            memory.setdefault("answered", {})[channel.number] = request.number
        took: cython.longlong = note_answer(
            memory, self.names[request.method], request, frame.ts_ns
        )
        if took >= SLOW_NS:
            memory["answered late"] = True
        if took > MISSING_NS or PROVISIONAL in memory:
            if context is None:
                context = self._context(
                    session, channel, frame.number, frame.ts_ns, frame, request, None
                )
            ask(self.rules.get("replied", _NONE), context, ANYTHING)
        return 0

    def _method_bits(self, session: Session, frame: MethodFrame) -> cython.int:
        """The bits of a method."""
        wanted: cython.int = self.gated[frame.method]
        if wanted == 0:
            return ANYTHING
        octets: Any = None
        if wanted & _ARGUMENTS:
            arguments: Texts = frame.rows.arguments
            if arguments is not None:
                octets = arguments.bytes_of(frame.row)
        handshake: HandshakeArguments = session.handshake.get(frame.name)
        if handshake is not None and handshake.json == octets:
            octets = handshake.json  # whose hash is known
        known: Any = self.known_bits.get(octets)
        if known is None:
            known = argument_bits(octets)
            if octets is None or len(octets) <= _MAX_ALIKE_BYTES:
                if len(self.known_bits) >= ALIKE:
                    self.known_bits.clear()
                self.known_bits[octets] = known
        bits: cython.int = known
        if wanted & CONSUMES and not has_consumers(session):
            bits &= ~CONSUMES
        if frame.flags & FLAGS_CUT:
            bits |= EXCLUSIVE
        if frame.side == 0:
            bits &= ~BY_BROKER
        return bits

    # ends

    def on_channel_end(self, channel: Channel) -> cython.int:
        """End of a channel incarnation; its open entries are not given up yet."""
        number = channel.closed_packet_number
        self.emit("channel-ends", channel, number, channel.end_ns, {}, channel_bits(channel))
        return 0

    def on_connection_end(self, session: Session) -> cython.int:
        """A connection is over; its channels are not ended yet."""
        connection: Connection = session.connection
        tcp = connection.conversation
        frames_ns: cython.longlong = max(session.last_client_ns, session.last_server_ns)
        if connection.ended_capture is not None and frames_ns <= tcp.ended_ns:
            session.note_capture(tcp.ended_ns, connection.ended_capture)
        if connection.last_capture is not None:
            session.note_capture(tcp.end_ns, connection.last_capture)
        bits: cython.int = connection_bits(session)
        self.emit_connection(
            "connection-ends", session, tcp.last_packet_number, tcp.end_ns, {}, bits
        )
        return 0

    def on_capture_end(self, number: Any, ts_ns: Any) -> cython.int:
        """Every connection is over."""
        from amqpsniff.session.rules.shared_state import of_messages

        forgotten = of_messages(self.recent_publishes, self.shared.get("came-again"))
        facts = {"exchanges": self._sum_exchanges(), "forgotten": forgotten}
        self.emit_connection("capture-ends", None, number, ts_ns, facts)
        return 0

    def on_loss(self, session: Session, side: cython.int) -> cython.int:
        """Frames of a side may be missing from here on."""
        if self.tracker.message_log is None:
            self.recent_publishes.lose(session.number, side)
        self.emit_connection("frames-lost", session, None, None, {"side": side})
        return 0

    # frames

    def on_frame(
        self, connection: Connection, frames: FrameRows, row: cython.longlong
    ) -> cython.int:
        """A frame of any type: its side is not silent."""
        side: cython.int = frames.sender.values[row]
        now: cython.longlong = frames.ts_ns.values[row]
        session: Session = connection.session
        if session is None and side == 0 and now != NULL:
            connection.greeted_ns = now
        if session is None or side < 0 or now == NULL:
            return 0
        session.frames += 1
        last: cython.longlong = max(session.last_client_ns, session.last_server_ns)
        if side == 0:
            if session.last_client_ns != NULL and (
                now - session.last_client_ns > session.silence_client_ns
            ):
                session.silence_client_ns = now - session.last_client_ns
                _note_silence(session, side, session.silence_client_ns, frames, row)
            session.last_client_ns = now
            if not connection.is_amqp10:
                self._note_sent(session, frames, row)
        else:
            if session.last_server_ns != NULL and (
                now - session.last_server_ns > session.silence_server_ns
            ):
                session.silence_server_ns = now - session.last_server_ns
                _note_silence(session, side, session.silence_server_ns, frames, row)
            session.last_server_ns = now
        if last != NULL and now >> _CHECK_BITS > last >> _CHECK_BITS:
            check_waiting(self, session, frames.packet_number.values[row], now)
        return 0

    def _note_sent(self, session: Session, frames: FrameRows, row: cython.longlong) -> cython.int:
        """A frame of the client, which the broker may object to."""
        kind: cython.int = -1
        method: cython.int = frames.method.values[row]
        channel: cython.int = frames.channel.values[row]
        number: cython.longlong = frames.packet_number.values[row]
        slot: ChannelSlot = session.last
        sent: LastSent = session.last_sent
        if 0 <= method < len(self.kinds):
            kind = self.kinds[method]
        if sent is None:
            sent = session.last_sent = LastSent()
        sent.note(kind, method, number)
        if channel == 0:
            return 0
        if slot is None or slot.number != channel:
            slot = session.slot(channel)
        if slot is not None:
            if slot.last_sent is None:
                slot.last_sent = LastSent()
            sent = slot.last_sent
            sent.note(kind, method, number)
        return 0

    # messages

    def on_message(
        self,
        channel: Channel,
        entry: PendingMessage | None,
        messages: MessageRows,
        row: cython.longlong,
        size: cython.longlong,
    ) -> cython.int:
        """Count a message, emit its notable events; `size` is the body size of its header."""
        publish: cython.bint = entry is None or entry.kind == PUBLISH
        times: MessageTimes = channel.own_times()
        self._count_exchange(messages, row, publish)
        self._count_route(channel, entry, messages, row, publish)
        if publish or messages.notes is not None:
            self._see_note(channel, entry, messages, row, publish)
        facts: dict[Any, Any]
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        message_log: MessageLog = self.tracker.dated_log(channel.session)
        if message_log is not None and publish:
            message_log.publish(channel, messages, row)
        elif message_log is not None and messages.redelivered.values[row] != 1:
            message_log.deliver(channel, messages, row)
        elif publish:
            session: Session = channel.session
            first: cython.longlong = self.recent_publishes.first(
                messages, row, session.number, session.server_seen
            )
            if first >= 0:
                times.repeats += 1
                times.last_repeat = number
                if times.repeats == 1:
                    facts = {"first": first, "rows": messages, "row": row}
                    self.emit("published-again", channel, number, ts_ns, facts)
        elif messages.redelivered.values[row] != 1:
            self._queued(channel, messages, row)
        if size >= TRANSFERRED_BYTES:
            self._see_size(channel, entry, messages, row, size)
        if messages.redelivered.values[row] == 1:
            times.redelivered += 1
            self._emit_message("redelivered", channel, entry, messages, row)
        if messages.headers.has(row):
            for event in _notable_headers(messages.headers, row):
                self._emit_message(event, channel, entry, messages, row)
        if publish:
            return self._check_publish(channel, entry, messages, row)
        if size >= BULKY_BYTES:
            self._note_bulky(channel, messages, row, size)
        elif channel.session.bulky is not None:
            self._see_behind(channel, number, ts_ns)
        if channel.session.pending_rpcs > 0 and (
            messages.correlation_id.has(row) or messages.status.values[row] == TRUNCATED
        ):
            self._emit_message("answered", channel, entry, messages, row)
        return 0

    @cython.cfunc
    def _emit_message(
        self,
        event: str,
        channel: Channel,
        entry: PendingMessage | None,
        messages: MessageRows,
        row: cython.longlong,
    ) -> None:
        """Ask the rules about a message."""
        facts = {"entry": entry, "rows": messages, "row": row}
        number: cython.longlong = messages.packet_number.values[row]
        self.emit(event, channel, number, messages.ts_ns.values[row], facts)

    def _see_note(
        self,
        channel: Channel,
        entry: PendingMessage | None,
        messages: MessageRows,
        row: cython.longlong,
        publish: cython.bint,
    ) -> cython.int:
        """Count a message with or without a trace context; emit the events of packs."""
        session: Session = channel.session
        note: Note = None
        if messages.notes is not None:
            note = messages.notes.pop(row, None)
        if note is not None and note.traced:
            if publish:
                session.traced_published += 1
                formats = session.memory.get("trace formats", ())
                if note.formats not in formats and len(formats) < MAX_TRACE_FORMATS:
                    session.memory["trace formats"] = (*formats, note.formats)
            else:
                session.traced_delivered += 1
        elif publish and (note is None or not note.internal):
            if messages.reply_to.values[row] >= 0 or not messages.correlation_id.has(row):
                session.untraced_published += 1  # what is not a reply
        if note is None:
            return 0
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        facts: dict[Any, Any]
        if note.role is not None and session.routes is not None:
            session.routes.mark(note.role, publish)
        if publish and note.fields is not None:
            session.looked += 1
            if session.looked <= _LOOKED_FIRST or session.looked % _LOOKED_EACH == 0:
                facts = {"entry": entry, "rows": messages, "row": row, "fields": note.fields}
                self.emit("looked-at", channel, number, ts_ns, facts)
        if note.meaning is not None:
            facts = {"entry": entry, "rows": messages, "row": row, "meaning": note.meaning}
            self.emit("noted", channel, number, ts_ns, facts)
        return 0

    def _count_route(
        self,
        channel: Channel,
        entry: PendingMessage | None,
        messages: MessageRows,
        row: cython.longlong,
        publish: cython.bint,
    ) -> cython.int:
        """Count a message for its route, which a publish keeps: it may be refused much later."""
        routes: Routes = channel.session.routes
        if routes is None:
            routes = channel.session.routes = Routes(self.routes_known)
        if not publish:
            return routes.deliver(messages, row, channel.incarnation)
        known: cython.bint = routes.publish(messages, row)
        if known and channel.numbering and entry is not None and entry.route is None:
            entry.route = routes.recent_published.names
        return 0

    def _see_size(
        self,
        channel: Channel,
        entry: PendingMessage | None,
        messages: MessageRows,
        row: cython.longlong,
        size: cython.longlong,
    ) -> cython.int:
        """Ask the rules about a message that is large, or was long on its way."""
        if size > LARGE_BYTES:
            self._emit_message("large", channel, entry, messages, row)
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        end_ns: cython.longlong = _end_ns(self.tracker.frames, messages, row)
        if NULL not in (ts_ns, end_ns) and end_ns - ts_ns >= BULKY_NS:
            number: cython.longlong = messages.packet_number.values[row]
            publish: cython.bint = entry is None or entry.kind == PUBLISH
            facts = {"publish": publish, "size": size, "end_ns": end_ns}
            self.emit("long-on-its-way", channel, number, ts_ns, facts)
        return 0

    def _note_bulky(
        self, channel: Channel, messages: MessageRows, row: cython.longlong, size: cython.longlong
    ) -> cython.int:
        """Remember a large delivery that was long on its way."""
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        channel.session.bulky = None
        end_ns: cython.longlong = _end_ns(self.tracker.frames, messages, row)
        if NULL not in (ts_ns, end_ns) and end_ns - ts_ns >= BULKY_NS:
            took: cython.longlong = end_ns - ts_ns
            channel.session.bulky = (channel.number, end_ns, end_ns + took, size, took)
        return 0

    def _see_behind(
        self, channel: Channel, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """See whether a delivery came right behind a large one of another channel, or behind one
        that did: what waited comes without a pause.
        """
        of, last_ns, until_ns, size, took_ns = channel.session.bulky
        if ts_ns - last_ns > BEHIND_NS or ts_ns > until_ns:
            channel.session.bulky = None
        elif ts_ns >= last_ns:
            channel.session.bulky = (of, ts_ns, until_ns, size, took_ns)
            if of != channel.number:
                self.emit("held-up", channel, number, ts_ns, {"behind": (of, size, took_ns)})
        return 0

    def _queued(self, channel: Channel, messages: MessageRows, row: cython.longlong) -> cython.int:
        """Count the queue time of a delivery, if its publish was captured."""
        slot: cython.longlong = self.recent_publishes.slot_of(messages, row)
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if slot < 0 or ts_ns == NULL:
            return 0
        waited: cython.longlong = ts_ns - self.recent_publishes.since.values[slot]
        if waited < 0:
            return 0
        times: MessageTimes = channel.own_times()
        number: cython.longlong = messages.packet_number.values[row]
        if times.add_wait(waited, number, ts_ns):
            queue = messages.vocabularies.queue.text(messages.queue.values[row])
            times.longest = (number, ts_ns, queue, self.recent_publishes.numbers.values[slot])
        return 0

    def _check_publish(
        self,
        channel: Channel,
        entry: PendingMessage | None,
        messages: MessageRows,
        row: cython.longlong,
    ) -> cython.int:
        """See whether a publish is a call, or stood still on its way."""
        facts: dict[Any, Any]
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        end_ns: cython.longlong = _end_ns(self.tracker.frames, messages, row)
        if messages.reply_to.values[row] >= 0 and messages.correlation_id.has(row):
            self._emit_message("called", channel, entry, messages, row)
        if messages.status.values[row] == INCOMPLETE:
            if channel.unfinished is not None:
                facts = {"rows": messages, "row": row, "took_ns": None}
                self.emit("half-sent", channel, number, ts_ns, facts)
        elif NULL not in (ts_ns, end_ns) and end_ns - ts_ns >= _PAUSED:
            facts = {"rows": messages, "row": row, "took_ns": end_ns - ts_ns}
            if end_ns - ts_ns <= _PAUSED_MOST:
                self.emit("paused", channel, number, ts_ns, facts)
            elif end_ns - ts_ns > STALLED_NS:
                self.emit("half-sent", channel, number, ts_ns, facts)
        return 0

    def _count_exchange(
        self, messages: MessageRows, row: cython.longlong, publish: cython.bint
    ) -> cython.int:
        """Count a message and its bytes for its exchange, except for a redelivery."""
        code: cython.longlong = messages.exchange.values[row]
        if code < 0 or messages.redelivered.values[row] == 1:
            return 0
        if messages.vocabularies is not self.exchange_words or 4 * code + 4 > len(
            self.exchange_counts
        ):
            self._sum_exchanges()
            self.exchange_words = messages.vocabularies
            self.exchange_counts = array("q", [0]) * (8 * (code + 16))
        size: cython.longlong = messages.sent(row)
        at: cython.longlong = 4 * code + (0 if publish else 2)
        self.exchange_counts[at] += 1
        if size > 0:
            self.exchange_counts[at + 1] += size
        return 0

    @cython.cfunc
    def _sum_exchanges(self) -> dict[Any, Any]:
        """Add the counts of the batch to those of exchanges by name, and give these."""
        code: cython.Py_ssize_t
        for code in range(len(self.exchange_counts) // 4):
            counts = list(self.exchange_counts[4 * code : 4 * code + 4])
            if not any(counts):
                continue
            name = self.exchange_words.exchange.text(code)
            if name not in self.exchanges and len(self.exchanges) >= MAX_EXCHANGES:
                continue
            before = self.exchanges.get(name, (0, 0, 0, 0))
            self.exchanges[name] = tuple(a + b for a, b in zip(before, counts, strict=True))
        self.exchange_counts = array("q")
        return self.exchanges


@cython.cfunc
@cython.exceptval(-1, check=True)
def _end_ns(frames: FrameRows, messages: MessageRows, row: cython.longlong) -> cython.longlong:
    """The time of the last byte of a message; `NULL` if unknown."""
    end: cython.longlong = messages.ended_at.values[row]
    if messages.status.values[row] == INCOMPLETE or not 0 < end <= frames.rows:
        return NULL
    return frames.ts_ns.values[end - 1]


@cython.cfunc
def _notable_headers(column: Texts, row: cython.longlong) -> tuple[Any, ...]:
    """The events of `rules.occasions` that headers, a row of the column of their JSON, are."""
    start: cython.longlong = column.offsets[row]
    end: cython.longlong = column.offsets[row + 1]
    if end - start <= LARGE_HEADERS_BYTES and not _may_stand_out(column, start, end):
        return _NONE
    octets: bytes = column.bytes_of(row)
    events: list[Any] = []
    if b'"x-death"' in octets:
        events.append("dead-lettered")
    if b'"eta":"' in octets:
        events.append("to-be-done-later")
    if len(octets) > LARGE_HEADERS_BYTES or octets.count(b"{") + octets.count(b"[") > MANY_TABLES:
        events.append("large-headers")
    return tuple(events)


@cython.cfunc
@cython.exceptval(-1, check=False)
@cython.boundscheck(False)  # the range is checked
def _may_stand_out(column: Texts, start: cython.longlong, end: cython.longlong) -> cython.bint:
    """True if headers are worth reading: many tables in them, or a name like one looked for."""
    tables: cython.int = 0
    named: cython.int = 0
    at: cython.longlong
    octets: cython.uchar[::1] = column.octets
    if start < 0 or end > len(octets):
        raise IndexError("headers outside the column")
    for at in range(start, end - 3):  # without branches: a compiler takes many octets at a time
        tables += (octets[at] == 0x7B) | (octets[at] == 0x5B)
        named |= (octets[at] == 0x22) & (  # a quote, and then `x-d` or `eta`
            ((octets[at + 1] == 0x78) & (octets[at + 3] == 0x64))
            | ((octets[at + 1] == 0x65) & (octets[at + 3] == 0x61))
        )
    return named != 0 or tables > MANY_TABLES


@cython.cfunc
@cython.exceptval(-1, check=True)
def _note_silence(
    session: Session,
    side: cython.int,
    silence: cython.longlong,
    frames: FrameRows,
    row: cython.longlong,
) -> cython.int:
    """The longest silence of a side so far is over, with a frame: note where."""
    if silence >= QUIET_NS:
        place = frames.packet_number.values[row], frames.ts_ns.values[row]
        session.memory[SILENCES[side]] = place
    return 0
