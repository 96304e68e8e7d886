# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Follows the decoder's rows in their order and fills in replies and outcomes.

Methods that come with every message are handled here, all others in `methods`; `state_machine` has
the states. A message's row is written when its content ends, its method's frame long before: the
decoder numbers contents, and the state of each open one is kept under that number. If findings are
enabled, an `Emitter` of `rules.emitter` gets every event and calls the rules; with `message_log`,
events of rules that need the messages of all connections are logged there instead. State from
before the capture is unknown and stays so; a loss makes unknown the state it may have changed.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.amqp10.performatives import Performative
from cython.cimports.amqpsniff.decode.codes import HEARTBEAT, INCOMPLETE, METHOD
from cython.cimports.amqpsniff.decode.method_layout import (
    CUT,
    FLAGS_CUT,
    IMMEDIATE,
    MANDATORY,
    MULTIPLE,
    NO_WAIT,
    REQUEUE,
    SEND,
)
from cython.cimports.amqpsniff.decode.moments import Moments
from cython.cimports.amqpsniff.decode.octets import code_of
from cython.cimports.amqpsniff.decode.rows import FrameRows, Vocabularies
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.findings.log import FindingLog
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.amqp10 import Amqp10Tracker
from cython.cimports.amqpsniff.session.both_sides import DoubledConnections
from cython.cimports.amqpsniff.session.codes import (
    ACKED,
    AUTOMATIC,
    CONFIRMED,
    DISCARDED,
    REJECTED,
    REQUEUED,
)
from cython.cimports.amqpsniff.session.entities import (
    Channel,
    ChannelSlot,
    Consumer,
    MessageTimes,
    PendingMessage,
    Session,
    pending_message,
)
from cython.cimports.amqpsniff.session.event_logs import MessageLog
from cython.cimports.amqpsniff.session.method_flags import (
    ACK,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    DELIVER,
    GET_OK,
    OTHER,
    PUBLISH,
    REJECT,
    RETURN,
)
from cython.cimports.amqpsniff.session.method_frame import (
    HandshakeArguments,
    MethodFrame,
    Request,
    frame_of,
)
from cython.cimports.amqpsniff.session.methods import (
    ReplyMatcher,
    begin_channel,
    end_connection,
    has_closed,
    lose_frames,
    move_connection,
    move_slot,
    note_end,
    open_channel,
    reopen_channel,
    resume_side,
)
from cython.cimports.amqpsniff.session.rules.emitter import Emitter
from cython.cimports.amqpsniff.session.settling import Settler, answer_of

from amqpsniff.decode import method_layout
from amqpsniff.decode.contents import LATE
from amqpsniff.session import method_flags, methods
from amqpsniff.session.limits import Limits
from amqpsniff.session.link_recorder import LinkRecorder
from amqpsniff.session.owing import silence_before
from amqpsniff.session.state_machine import CHANNEL, CONNECTION
from amqpsniff.session.table_rows import (
    CHANNEL_COLUMNS,
    CONNECTION_COLUMNS,
    Rows,
    channel_values,
    connection_values,
    link_row,
)
from amqpsniff.spec import METHODS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows
    from amqpsniff.packs import Packs
    from amqpsniff.plan import Plan
    from amqpsniff.session.amqp10_links import Link
    from amqpsniff.session.event_logs import EventLog

_OPENING = cython.declare(cython.int, CHANNEL.code("opening"))
_LATE = cython.declare(cython.int, LATE)
_ALLOWED = cython.declare(bytes, CONNECTION.allowed)
_METHODS = cython.declare(cython.int, len(METHODS))
# Of each method, by its code.
_KINDS = cython.declare(bytes, method_flags.KINDS)
_ON_CHANNEL_ZERO = cython.declare(bytes, method_flags.ON_CHANNEL_ZERO)
_SENDERS = cython.declare(bytes, bytes(method_layout.senders))
_CONTENT = cython.declare(bytes, bytes(method_layout.content))
_SYNCHRONOUS = cython.declare(bytes, method_flags.SYNCHRONOUS)
_ANSWERS = cython.declare(bytes, method_flags.ANSWERS)
_CLOSING = cython.declare(bytes, method_flags.CLOSING_METHODS)
_CLOSE_OK = cython.declare(bytes, method_flags.CLOSE_OK_METHODS)
_DISCARDED = cython.declare(bytes, method_flags.DISCARDED)

# Contents whose rows are not there yet, beyond which they are kept apart from new ones.
_MAX_OPENED = cython.declare(cython.int, 131_072)
# Different handshakes that new ones are compared with.
_MAX_ALIKE = cython.declare(cython.int, 8)
# Contents after which it is worth while to forget those that have their rows.
_MANY_OPENED = cython.declare(cython.int, 4_096)


@cython.cclass
class Tracker:
    """Follows any number of connections at once: `follow` after each batch of the decoder, `finish`
    when the capture is over.

    `unmeasured` counts publishes without a confirm time, of ended channels: the channel is
    from before the capture, or earlier frames of the client are missing.

    Args:
        plan: The plan of the run; for `frames` alone only replies are found.
        log: Collects the findings of the rules.
        moments: The decoder's `Moments`, or None.
        limits, memory: Other bounds than the usual ones; `memory` is of what is linked.
        packs: The packs that identify the framework of a client; None if it is not needed.
    """

    log: FindingLog
    moments: Moments
    on_silence: Any
    in_message_row: cython.bint
    now_row: cython.longlong
    late_row: cython.longlong
    ending: Session
    loss_moment: tuple[Any, ...]
    limits: Any
    consumers_known: cython.longlong
    handshakes_bytes: cython.longlong
    max_handshake_bytes: cython.longlong
    max_all_handshakes_bytes: cython.longlong
    batch: cython.longlong
    first_open_content: cython.longlong
    replies_only: cython.bint
    states_only: cython.bint
    settles: cython.bint
    wants_connections: cython.bint
    wants_channels: cython.bint
    wants_links: cython.bint
    sessions: cython.longlong
    unmeasured: cython.longlong
    slots: cython.longlong
    max_slots: cython.longlong

    shared: dict[Any, Any]
    names: list[Any]
    captures: list[Any]
    peers: list[Any]
    emitter: Emitter
    doubled: DoubledConnections
    amqp10: Amqp10Tracker
    message_log: MessageLog
    link_recorder: LinkRecorder
    frames: FrameRows
    settler: Settler
    open_contents: list[Any]
    handshakes: dict[Any, Any]
    batch_words: Vocabularies
    late_contents: dict[Any, Any]
    reply_matcher: ReplyMatcher
    channels: list[Any]
    connections: list[Any]
    link_rows: list[Any]
    channel_handlers: list[Any]
    connection_handlers: list[Any]
    packs: Any
    lost_before: set[Any]
    followed: cython.const[cython.uchar][::1]

    def __init__(
        self,
        plan: Plan,
        log: Any,
        moments: Any = None,
        limits: Any = None,
        memory: Any = None,
        packs: Packs | None = None,
    ) -> None:
        tables = frozenset(plan.tables)
        self.log = log if "findings" in tables else None
        self.shared = {}
        self.doubled = DoubledConnections()
        self.emitter = None if self.log is None else Emitter(self)
        self.names = method_flags.NAMES
        self.link_recorder = None
        self.packs = packs
        self.in_message_row = False
        self.frames = None
        self.captures = []
        self.peers = []
        self.now_row = -1
        self.ending = self.loss_moment = None
        self.limits = limits or Limits()
        self.max_handshake_bytes = self.limits.fact
        self.max_all_handshakes_bytes = self.limits.facts
        self.settler = Settler(self.limits, self.emitter, plan.census)
        self.amqp10 = Amqp10Tracker(self, self.settler, plan)
        self.consumers_known = 0
        self.handshakes_bytes = 0
        self.handshakes = {}
        self.batch_words = None
        self.batch = 0
        self.open_contents = []
        self.first_open_content = 0
        self.late_contents = {}
        self.reply_matcher = ReplyMatcher(self.limits, self.settler, plan.census is not None)
        self.replies_only = tables == {"frames"}
        self.states_only = self.replies_only and not plan.handshakes
        self.settles = plan.settles
        self.on_silence = plan.on_silence
        self.wants_connections = "connections" in tables
        self.wants_channels = "channels" in tables
        self.wants_links = "links" in tables
        self.moments = moments
        self.message_log = plan.sightings
        if plan.links and "messages" in tables:
            self.link_recorder = LinkRecorder(memory, plan.linkables)
        self.sessions = self.unmeasured = 0
        self.lost_before = set()
        self.slots = 0
        self.max_slots = self.limits.channels
        self.channels = []
        self.connections = []
        self.link_rows = []
        self.channel_handlers = methods.CHANNEL_HANDLERS
        self.connection_handlers = methods.CONNECTION_HANDLERS
        if not plan.peers:
            self.connection_handlers = methods.CONNECTION_STEP_HANDLERS
        self.followed = method_flags.OF_REPLIES if self.states_only else method_flags.ALL

    # methods in their order

    def follow(
        self,
        frames: FrameRows,
        frame: cython.longlong,
        messages: MessageRows,
        message: cython.longlong,
        connections: list[Any],
        losses: list[Any],
        captures: list[Any],
        ended: list[Any],
        report_incomplete: Any,
    ) -> None:
        """Follow the rows from these on, and the ends of connections where they stand between them.

        `connections` are the decoder's, by code, `captures` the names of captures by code, `losses`
        those of `contents.ContentAssembler` in order. `ended` are connections, each with the row
        before which it ended. `report_incomplete` is called with those of them that lack something,
        before they end. They keep their sessions for those that are still to look at them.
        """
        connection: Connection
        row: cython.longlong
        lost: cython.Py_ssize_t = 0
        self.frames, self.peers, self.captures = frames, connections, captures
        self.late_row = -1
        self.now_row = frame - 1
        for connection, row in ended:
            some: cython.Py_ssize_t = lost
            while lost < len(losses) and losses[lost][0] <= row:
                lost += 1
            message = self._follow_rows(frame, row, messages, message, losses[some:lost])
            frame = row
            if not connection.began or connection.conversation.impaired:
                report_incomplete(connection)
            session = connection.session
            self.end(connection)
            connection.session = session
        self._follow_rows(frame, frames.rows, messages, message, losses[lost:])

    def _follow_rows(
        self,
        first: cython.longlong,
        last: cython.longlong,
        messages: MessageRows,
        message: cython.longlong,
        losses: list[Any],
    ) -> cython.longlong:
        """Follow the frames from `first` to before `last`, with the message rows and losses between
        them; returns the next message.
        """
        frames: FrameRows = self.frames
        row: cython.longlong
        method: cython.int
        lost: cython.Py_ssize_t = 0
        next_loss: cython.longlong = losses[0][0] if losses else last + 1
        next_message: cython.longlong = last + 1
        if message < messages.rows:
            next_message = messages.ended_at.values[message]
        for row in range(first, last + 1):
            while next_message <= row:
                self.now_row = next_message - 1
                self.on_message_row(messages, message)
                message += 1
                next_message = last + 1
                if message < messages.rows:
                    next_message = messages.ended_at.values[message]
            while next_loss <= row:
                if self.moments is not None:
                    self.loss_moment = self.moments.of_next_loss()
                if losses[lost][2] == _LATE:
                    self.late_row = losses[lost][0]
                else:
                    self.on_loss(losses[lost][1], losses[lost][2], losses[lost][3:])
                self.loss_moment = None
                lost += 1
                next_loss = losses[lost][0] if lost < len(losses) else last + 1
            if row < last:
                self.now_row = row
                if self.on_silence is not None:
                    self._end_silence(row)
                if self.emitter is not None and len(self.captures) > 1:
                    self._note_capture(row)
                method = frames.method.values[row]
                if 0 <= method < len(self.followed) and self.followed[method]:
                    self._method(row, method)
                elif _METHODS <= method < SEND:
                    self._performative(row)
                if self.emitter is not None:
                    self.emitter.on_frame(self.peers[frames.connection.values[row]], frames, row)
        return message

    def _note_capture(self, row: cython.longlong) -> cython.int:
        """A frame may be in another capture than those of its connection before it."""
        frames: FrameRows = self.frames
        connection: Connection = self.peers[frames.connection.values[row]]
        session: Session = connection.session
        if session is None:
            return 0
        return session.note_capture(frames.ts_ns.values[row], self.capture_of(row))

    def _end_silence(self, row: cython.longlong) -> cython.int:
        """Report the silence that a frame ends."""
        frames: FrameRows = self.frames
        connection: Connection = self.peers[frames.connection.values[row]]
        now: cython.longlong = frames.ts_ns.values[row]
        if connection.session is None or now == NULL:
            return 0
        if frames.frame_type.values[row] == HEARTBEAT:
            return 0
        number = frames.packet_number.values[row]
        silence = silence_before(connection.session, number, now, self.limits.silences)
        if silence is not None:
            self.on_silence(silence)
        return 0

    def _performative(self, row: cython.longlong) -> cython.int:
        """One frame of AMQP 1.0."""
        frames: FrameRows = self.frames
        found: Performative = cython.cast(Performative, frames.next_performative())
        connection: Connection = self.peers[frames.connection.values[row]]
        side: cython.int = frames.sender.values[row]
        if side < 0:
            return 0
        if connection.session is None:
            self._begin(connection)
        session: Session = cython.cast(Session, connection.session)
        if session.missing & (1 << side):
            resume_side(session, side)
        return self.amqp10.follow(session, row, side, found)

    def _method(self, row: cython.longlong, method: cython.int) -> cython.int:
        """One method frame."""
        frames: FrameRows = self.frames
        side: cython.int = frames.sender.values[row]
        number: cython.int = frames.channel.values[row]
        opened: Any = None
        kind: cython.int = _KINDS[method]
        may_send: cython.bint = side >= 0 and _SENDERS[method] & (1 << side) != 0
        if may_send and _ON_CHANNEL_ZERO[method] == (number == 0):
            connection: Connection = self.peers[frames.connection.values[row]]
            session: Session = connection.session
            if session is None:
                session = self._begin(connection)
            if side == 1:
                session.server_seen = True
            if session.missing & (1 << side):
                resume_side(session, side)
                if side == 1:
                    self._lose_refusals(session)
            slot: ChannelSlot = session.last
            if slot is None or slot.number != number:
                slot = self._slot(session, number)
            if self.emitter is not None and has_closed(session, side) and not _CLOSING[method]:
                self.emitter.emit_misplaced("after-close", session, None, frames, row)
            if slot is not None and (kind == OTHER or not session.over):
                opened = self._follow(session, slot, row, kind, side)
        elif self.emitter is not None and side >= 0:
            session = self.peers[frames.connection.values[row]].session
            if session is not None:
                event = "wrong-channel" if may_send else "wrong-direction"
                self.emitter.emit_misplaced(event, session, None, frames, row)
        if _CONTENT[method] and not self.replies_only:
            self.begin_content(opened)
        return 0

    @cython.cfunc
    def _follow(
        self,
        session: Session,
        slot: ChannelSlot,
        row: cython.longlong,
        kind: cython.int,
        side: cython.int,
    ) -> Any:
        """Follow a method; returns the state that its message's row needs, None if none."""
        frames: FrameRows = self.frames
        method: cython.int = frames.method.values[row]
        if kind == OTHER:
            self._other(session, slot, row, method, side)
        elif self.replies_only:
            if kind == GET_OK:
                self.reply_matcher.reply(session, slot, frames, row, method, side)
        elif not self.settles:
            channel: Channel = self.channel_for(session, slot, row, kind)
            if kind == DELIVER or kind == GET_OK:
                channel.last_tag = frames.delivery_tag.values[row]
            return self.consumer_for(session, slot, row, kind)
        elif kind >= ACK:  # or a nack, or a reject
            self.acknowledge(session, slot, row, kind, side)
        else:
            return self.begin_message(session, slot, row, kind)
        return None

    @cython.cfunc
    def _begin(self, connection: Connection) -> Session:
        session: Session = Session(connection, connection.capture, self.sessions)
        if connection in self.lost_before:
            session.has_loss = True
            session.missing = 3
            self.lost_before.discard(connection)
        self.sessions += 1
        connection.session = session
        return session

    @cython.cfunc
    def _slot(self, session: Session, number: cython.int) -> ChannelSlot:
        """The channel slot of a channel number; None beyond the limit."""
        slot: ChannelSlot = session.slot(number)
        if slot is None:
            if self.slots >= self.max_slots:
                self.settler.limit_reached("channels")
                session.has_loss = True  # for rules: frames of it are not followed
                return None
            slot = ChannelSlot(number)
            session.add_slot(slot)
            self.slots += 1
        session.last = slot
        if session.used_since_loss is not None and slot.used_since_loss != 3:
            session.note_used(slot)
        return slot

    def _other(
        self,
        session: Session,
        slot: ChannelSlot,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
    ) -> cython.int:
        """Any other method: it may answer a request, change the state, be a request."""
        frames: FrameRows = self.frames
        if session.over and not _CLOSE_OK[method]:
            return 0
        request: Request = None
        subject: Any = None
        if _ANSWERS[method]:
            request = self.reply_matcher.reply(session, slot, frames, row, method, side)
        if self.states_only:
            self._move(session, slot, method, side)
        elif slot.number == 0:
            subject = self._on_connection(session, row, method, side, request)
        else:
            subject = self._on_channel(session, slot, row, method, side, request)
        if _SYNCHRONOUS[method] and not (frames.flags.values[row] & NO_WAIT):
            self.reply_matcher.ask(session, slot, frames, row, method, side, subject)
        return 0

    def _move(
        self, session: Session, slot: ChannelSlot, method: cython.int, side: cython.int
    ) -> cython.int:
        """Apply only the state transition of a method."""
        if slot.number == 0:
            session.over = move_connection(session, method, side)
        else:
            move_slot(slot, method, side)
        return 0

    @cython.cfunc
    def _on_connection(
        self,
        session: Session,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
        request: Request,
    ) -> Any:
        """Let a method change the state of its connection; gives what its handler does."""
        handler: Any = self.connection_handlers[method]
        subject: Any = None
        before: cython.int = session.state_code
        move_connection(session, method, side)
        if handler is None and self.emitter is None:
            return None
        frame: MethodFrame = frame_of(self.names[method], self.frames, row)
        if self.emitter is not None:
            if not _ALLOWED[2 * (before * _METHODS + method) + side]:
                state = CONNECTION.states[before]
                facts = {"method": frame.name, "side": side, "state": state}
                self.emitter.emit_connection(
                    "out-of-order", session, frame.number, frame.ts_ns, facts
                )
        if handler is not None:
            subject = handler(self, session, frame, request)
        if self.emitter is not None:
            self.emitter.emit_method(session, None, frame, request)
        return subject

    @cython.cfunc
    def _on_channel(
        self,
        session: Session,
        slot: ChannelSlot,
        row: cython.longlong,
        method: cython.int,
        side: cython.int,
        request: Request,
    ) -> Any:
        """Let a method change the state of its channel; gives what its handler does."""
        frames: FrameRows = self.frames
        channel: Channel = slot.channel
        handler: Any = self.channel_handlers[method]
        subject: Any = None
        frame: MethodFrame = None
        if method == CHANNEL_OPEN:
            frame = frame_of(self.names[method], frames, row)
            open_channel(self, session, slot, self.capture_of(row), frame)
            channel = slot.channel
        else:
            if channel is None:
                if method == CHANNEL_CLOSE_OK:
                    return None
                channel = self.proved_channel(session, slot, row)
            elif (
                request is None
                and slot.state_code != _OPENING
                and self.names[method] == "channel.open-ok"
            ):  # the channel.open that it answers is missing
                self.on_loss(session.connection, session.connection.client_direction, (0, NULL))
                capture, ts_ns = self.capture_of(row), frames.ts_ns.values[row]
                channel = reopen_channel(self, slot, capture, ts_ns)
            if handler is not None and not (
                side == 0 and channel.broker_discards and _DISCARDED[method]
            ):
                frame = frame_of(self.names[method], frames, row)
                subject = handler(self, channel, frame, request)
        if self.emitter is not None:
            if frame is None:
                frame = frame_of(self.names[method], frames, row)
            self.emitter.emit_method(session, channel, frame, request)
        return subject

    def on_loss(self, connection: Connection, direction: cython.int, place: Any) -> cython.int:
        """Frames of one direction may be missing here, before a place: (packet number, ts_ns)."""
        session: Session = connection.session
        if session is None:
            self.lost_before.add(connection)
        elif connection.client_direction >= 0:
            side: cython.int = direction ^ connection.client_direction
            lose_frames(session, side, place)
            if side == 1:
                self._lose_refusals(session)
            message_log: MessageLog = self.dated_log(session)
            if message_log is not None:
                message_log.lose(session, side)
            if self.emitter is not None:
                self.emitter.on_loss(session, side)
        return 0

    def _lose_refusals(self, session: Session) -> cython.int:
        """Frames of the broker may be missing, among them refusals of acknowledgements."""
        slot: ChannelSlot
        for slot in session.slots():
            if slot.channel is not None and slot.channel.tentative is not None:
                slot.channel.refusals_lost = True
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def end(self, connection: Connection) -> cython.int:
        """End of a connection, or of the capture: open entries stay as they are."""
        session: Session = connection.session or self._begin(connection)
        self.ending = session
        if self.emitter is not None:
            self.emitter.on_connection_end(session)
        note_end(self, session)
        if connection.is_amqp10:
            self.amqp10.end(session)
        end_connection(self, session)
        if self.message_log is not None:
            self.message_log.end(session)
        if self.link_recorder is not None:
            self.link_recorder.end(session)
        if session.routes is not None:
            session.routes.forget()
        self.slots -= session.slot_count
        if self.wants_connections:
            self.connections.append(connection_values(session, self.packs))
        connection.session = self.ending = None
        for known in session.handshake.values():
            self.forget(known)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def end_channel(self, channel: Channel) -> cython.int:
        """A channel incarnation is over: its sums are those of its connection from now on."""
        if self.emitter is not None:
            self.emitter.on_channel_end(channel)
        self.settler.finish(channel)
        if self.message_log is not None:
            self.dated_log(channel.session).close(channel)
        self.consumers_known -= len(channel.by_tag)
        if self.wants_channels:
            self.channels.append(channel_values(channel))
        session: Session = channel.session
        times: MessageTimes = channel.times
        if not times.bounds and not channel.numbering and channel.amqp10 is None:
            if channel.numbered or not channel.known:
                self.unmeasured += max(channel.published - channel.next_number + 1, 0)
        session.published += channel.published
        session.delivered += channel.delivered
        session.acknowledged += channel.acknowledged
        session.publish_bytes += times.publish_bytes
        session.deliver_bytes += times.deliver_bytes
        return 0

    def end_link(self, link: Link, channel: Channel) -> cython.int:
        """A link of AMQP 1.0 is over."""
        if self.emitter is not None:
            number = link.detached_number if link.detached_number > 0 else None
            self.emitter.emit("link-ends", channel, number, link.detached_ns, {"link": link})
        if self.wants_links:
            self.link_rows.append(link_row(link, channel))
        return 0

    def finish(self, number: Any, ts_ns: Any) -> None:
        """The capture is over, at a packet; every connection was ended before."""
        if self.emitter is not None:
            self.emitter.on_capture_end(number, ts_ns)
        for event_log in self.event_logs():
            event_log.finish()

    @property
    def rows(self) -> Any:
        """Rows of `connections`, `channels` and `links` since the last `drain`."""
        return len(self.connections) + len(self.channels) + len(self.link_rows)

    def drain(self) -> Any:
        """Give the rows since the last call away: of `connections`, `channels` and `links`."""
        connections = Rows(CONNECTION_COLUMNS, self.connections)
        taken = (connections, Rows(CHANNEL_COLUMNS, self.channels), self.link_rows)
        self.connections, self.channels, self.link_rows = [], [], []
        return taken

    # methods that come with every message

    @cython.cfunc
    def consumer_for(
        self, session: Session, slot: ChannelSlot, row: cython.longlong, kind: cython.int
    ) -> Consumer:
        """The consumer, or the basic.get, that a delivery is for, or None."""
        frames: FrameRows = self.frames
        if kind == GET_OK:
            request: Request = self.reply_matcher.reply(
                session, slot, frames, row, frames.method.values[row], 1
            )
            got: Consumer = None if request is None else request.subject
            if self.emitter is not None and got is not None and got.no_ack:
                facts = {"queue": got.queue}
                self.emitter.emit(
                    "got-automatically", slot.channel, request.number, request.ts_ns, facts
                )
            return got
        channel: Channel = slot.channel
        if kind != DELIVER or channel is None:
            return None
        code: cython.int = frames.consumer_tag.values[row]
        words: Vocabularies = frames.vocabularies
        batch: cython.longlong = self.batch_of(words)
        if channel.recent_consumer_code != code or channel.recent_consumer_batch != batch:
            tag = words.consumer_tag.text(code)
            channel.recent_consumer = channel.by_tag.get(tag)
            if channel.recent_consumer is None and channel.cancelled is not None:
                channel.recent_consumer = methods.resume_consumer(self, channel, tag)
            channel.recent_consumer_code = code
            channel.recent_consumer_batch = batch
        return channel.recent_consumer

    @cython.cfunc
    def channel_for(
        self, session: Session, slot: ChannelSlot, row: cython.longlong, kind: cython.int
    ) -> Channel:
        """The channel of a method with content: a new one where tags begin again after a loss."""
        frames: FrameRows = self.frames
        channel: Channel = slot.channel
        if channel is None:
            channel = self.proved_channel(session, slot, row)
        tag: cython.longlong = frames.delivery_tag.values[row]
        came: cython.bint = kind == DELIVER or kind == GET_OK
        if came and 0 <= tag <= channel.last_tag == channel.tag_before_loss:
            ts_ns = frames.ts_ns.values[row]
            return reopen_channel(self, slot, self.capture_of(row), ts_ns)
        return channel

    @cython.cfunc
    def begin_message(
        self, session: Session, slot: ChannelSlot, row: cython.longlong, kind: cython.int
    ) -> Any:
        """A method with content; gives what its message's row needs: its entry, or its channel."""
        frames: FrameRows = self.frames
        channel: Channel = self.channel_for(session, slot, row, kind)
        entry: PendingMessage = pending_message(
            channel, kind, frames.packet_number.values[row], frames.ts_ns.values[row]
        )
        if kind == PUBLISH:
            return entry if self._publish(session, channel, entry, row) else channel
        if kind == RETURN:
            times: MessageTimes = channel.own_times()
            times.returned += 1
            if frames.flags.values[row] & CUT:
                times.maybe_returned_to = channel.next_number - 1
            return entry
        entry.number = frames.delivery_tag.values[row]
        channel.delivered += 1
        times = channel.own_times()
        if times.first_delivery_ns == NULL:
            times.first_delivery_ns = entry.ts_ns
        times.last_delivery_ns = entry.ts_ns
        if (
            self.emitter is not None
            and channel.last_tag >= 0
            and entry.number != channel.last_tag + 1
        ):
            facts = {"tag": entry.number, "last": channel.last_tag}
            self.emitter.emit("delivery-tag-gap", channel, entry.packet_number, entry.ts_ns, facts)
        if session.has_loss:
            self.settler.follow_tag(channel, entry.number)
        channel.last_tag = entry.number
        if times.first_tag < 0:
            times.first_tag = entry.number
        consumer: Consumer = self.consumer_for(session, slot, row, kind)
        entry.consumer = consumer
        if consumer is not None:
            consumer.delivered += 1
        if consumer is not None and consumer.no_ack:
            self.settler.ended[AUTOMATIC] += self.settler.counts(entry)
            entry.outcome = AUTOMATIC
            entry.outcome_number = entry.packet_number
            entry.outcome_ns = entry.ts_ns
            return entry
        known: cython.bint = consumer is not None and consumer.no_ack is not None
        entry.wants = known and self.late_row != row  # or it may be answered already
        if not entry.wants:
            channel.deliveries_uncertain = True
        if entry.number >= 0:
            self.settler.deliver(channel, entry)
        else:
            session.has_loss = channel.deliveries_uncertain = True  # its tag was cut
        return entry

    def _publish(
        self, session: Session, channel: Channel, entry: PendingMessage, row: cython.longlong
    ) -> cython.bint:
        """A publish, numbered on a confirming channel; gives whether the entry is needed."""
        frames: FrameRows = self.frames
        channel.published += 1
        times: MessageTimes = channel.own_times()
        if times.first_publish_number == 0:
            times.first_publish_number = entry.packet_number
            times.first_publish_ns = entry.ts_ns
        times.last_publish_ns, times.last_publish_number = entry.ts_ns, entry.packet_number
        if self.emitter is not None:
            if (
                channel.closing[1] or session.closing[1]
                if channel.broker_discards
                else self._is_after_end(session, channel, entry)
            ):
                facts = {"frames": frames, "row": row}
                self.emitter.emit(
                    "published-on-closed", channel, entry.packet_number, entry.ts_ns, facts
                )
            if session.blocked_since is not None:
                self.emitter.emit(
                    "published-while-blocked", channel, entry.packet_number, entry.ts_ns, {}
                )
        entry.number = -1
        if channel.numbering:
            entry.number = channel.next_number
            channel.next_number += 1
            entry.wants = True
            self.settler.publish(channel, entry)
        elif channel.numbered or not channel.known:
            self.settler.publish_unnumbered(channel, entry, self.late_row == row)
        if frames.flags.values[row] & (MANDATORY | IMMEDIATE):
            words = frames.vocabularies
            exchange = words.exchange.text(frames.exchange.values[row])
            entry.route = (exchange, words.routing_key.text(frames.routing_key.values[row]))
            self.settler.expect_return(channel, entry)
            return True
        return entry.number >= 0

    def _is_after_end(
        self, session: Session, channel: Channel, entry: PendingMessage
    ) -> cython.bint:
        """True if TCP has ended and the publish may be later: frames follow a batch of packets."""
        connection: Connection = session.connection
        tcp = connection.conversation
        if tcp.ended is None:
            return False
        if channel.closed_packet_number is not None or session.close_packet_number is not None:
            return True
        return entry.ts_ns > tcp.ended_ns

    def acknowledge(
        self,
        session: Session,
        slot: ChannelSlot,
        row: cython.longlong,
        kind: cython.int,
        side: cython.int,
    ) -> cython.int:
        """An ack, nack or reject of either side."""
        frames: FrameRows = self.frames
        channel: Channel = slot.channel
        outcome: cython.int = ACKED
        if channel is None:
            channel = self.proved_channel(session, slot, row)
        flags: cython.int = frames.flags.values[row]
        tag: cython.longlong = frames.delivery_tag.values[row]
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        multiple: cython.bint = flags & MULTIPLE != 0
        until: cython.longlong = tag or -1
        if side == 0 and channel.broker_discards:
            if self.late_row == row:  # it may have been sent before the close
                self._acknowledge_in_part(channel, kind, side, tag)
            return 0
        if flags & CUT:
            self._acknowledge_in_part(channel, kind, side, tag)
        if tag < 0:
            return 0
        if self.late_row == row:
            there = channel.publishes if side == 1 else channel.deliveries
            last = self.last_answerable(there, row, number, ts_ns)
            if last is None or (tag > last and not multiple):
                return 0
            if side == 0 and tag > last:
                return self._acknowledge_in_part(
                    channel, kind, side, last
                )  # the broker may have refused it
            until = tag if 0 < tag < last else last
        if side == 1:
            if kind != REJECT:
                outcome = CONFIRMED if kind == ACK else REJECTED
                answer = answer_of(outcome, number, ts_ns, tag, multiple)
                self.settler.confirm(channel, answer, until)
            return 0
        if kind != ACK:
            if flags & FLAGS_CUT:
                return 0
            outcome = REQUEUED if flags & REQUEUE else DISCARDED
        answer = answer_of(outcome, number, ts_ns, tag, multiple)
        return self.settler.acknowledge(channel, answer, until)

    def _acknowledge_in_part(
        self, channel: Channel, kind: cython.int, side: cython.int, tag: cython.longlong
    ) -> cython.int:
        """An ack, nack or reject was cut: what else it may have answered becomes unknown."""
        if side == 0:
            self.settler.acknowledge_in_part(channel, tag)
            if kind != ACK and tag > 0:
                self.settler.refuse_in_part(channel, tag)
        elif kind != REJECT:
            self.settler.confirm_in_part(channel, tag)
        return 0

    def last_answerable(self, there: Any, row: Any, number: Any, ts_ns: Any) -> Any:
        """The highest number of the entries in `there` that a method in packet `number` can answer;
        -1 for all, None for no entry. A late method cannot answer entries sent after it.

        Each capture counts its packets, so an entry with an earlier time also came before.
        """
        if self.late_row != row:
            return -1
        before = (one for one in there if one.packet_number < number or one.ts_ns < ts_ns)
        return max([one.number for one in before], default=None)

    @cython.cfunc
    def capture_of(self, row: cython.longlong) -> Any:
        """Name of the capture of a row."""
        return self.captures[self.frames.capture.values[row]]

    @cython.cfunc
    def proved_channel(self, session: Session, slot: ChannelSlot, row: cython.longlong) -> Channel:
        """A method on a number that is not open: its beginning was not seen, or never was."""
        channel: Channel = begin_channel(session, slot, self.capture_of(row), None)
        if self.emitter is not None:
            self.emitter.emit_misplaced("channel-not-open", session, channel, self.frames, row)
        return channel

    # handshakes, which connections share

    @cython.ccall
    def remember(self, name: str, octets: bytes, whole: cython.bint) -> HandshakeArguments:
        """The arguments of a handshake method; connections with equal arguments share them."""
        latest: list[Any] = self.handshakes.setdefault(name, [])
        known: HandshakeArguments
        for known in latest:
            if known.json == octets and known.whole == whole:
                break
        else:
            is_full: cython.bint = self.handshakes_bytes >= self.max_all_handshakes_bytes
            if is_full or len(octets) > self.max_handshake_bytes:
                self.settler.limit_reached("handshakes")
                return HandshakeArguments(b"", False)
            known = HandshakeArguments(octets, whole)
            latest.append(known)
            if len(latest) > _MAX_ALIKE:
                del latest[0]
        if known.uses == 0:
            self.handshakes_bytes += len(known.json)
        known.uses += 1
        return known

    def forget(self, known: HandshakeArguments) -> cython.int:
        """A connection with these arguments is over."""
        known.uses -= 1
        if known.uses == 0:
            self.handshakes_bytes -= len(known.json)
        return 0

    # messages, from their methods to their rows

    def begin_content(self, known: Any) -> cython.int:
        """The next content begins: `known` is its entry, only its channel or consumer, or None."""
        self.open_contents.append(known)
        if len(self.open_contents) > _MAX_OPENED:
            self._set_aside()
        return 0

    def on_message_row(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """A message's row was written: attach its method's state, and link it."""
        self.in_message_row = self.moments is not None and self.moments.meet()
        self.attach(messages, row)
        if self.link_recorder is not None:
            link_log: EventLog = self.link_recorder.log
            if link_log is not None:
                self.set_time(link_log, self.peers[messages.connection.values[row]])
            self.link_recorder.observe(messages, row, self.peers)
        self.in_message_row = False
        return 0

    def attach(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """A message's row was written: attach the state kept since its method."""
        if messages.deliveries is not None and messages.method.values[row] >= SEND:
            return self.amqp10.attach(messages, row)
        ordinal: cython.longlong = messages.ordinal.values[row] - self.first_open_content
        opened: Any
        if ordinal < 0:
            opened = self.late_contents.pop(messages.ordinal.values[row], None)
        else:
            opened = self.open_contents[ordinal]
            self.open_contents[ordinal] = None
        if len(self.open_contents) > _MANY_OPENED and ordinal == len(self.open_contents) - 1:
            self._set_aside()
        if opened is None:
            return 0
        size: cython.longlong = messages.body_size.values[row]
        if type(opened) is Channel:
            return self.count_message(opened, None, messages, row, size)
        if type(opened) is Consumer:
            return self._name_queue(messages, row, opened)
        entry: PendingMessage = opened
        entry.mark = max(messages.mark.values[row], 0)
        entry.body_mark = messages.body_mark.values[row]
        if entry.kind == RETURN:
            words = messages.vocabularies
            exchange = words.exchange.text(messages.exchange.values[row])
            entry.route = (exchange, words.routing_key.text(messages.routing_key.values[row]))
            publish: PendingMessage = self.settler.settle_returned(entry)
            if self.emitter is not None:
                facts = {"entry": publish, "rows": messages, "row": row}
                self.emitter.emit(
                    "returned", entry.channel, entry.packet_number, entry.ts_ns, facts
                )
            return 0
        if entry.kind == PUBLISH:
            if entry.number > 0:
                messages.publish_number.values[row] = entry.number
        elif entry.consumer is not None:
            self._name_queue(messages, row, entry.consumer)
        self.settler.attach(entry, messages, row)
        return self.count_message(entry.channel, entry, messages, row, size)

    def count_message(
        self,
        channel: Channel,
        entry: PendingMessage,
        messages: MessageRows,
        row: cython.longlong,
        size: cython.longlong,
    ) -> cython.int:
        """Count a message's bytes; `size` is the body size of its header."""
        publish: cython.bint = entry is None or entry.kind == PUBLISH
        sent: cython.longlong = messages.sent(row)
        times: MessageTimes = channel.own_times()
        if sent > 0:
            if publish:
                times.publish_bytes += sent
            else:
                times.deliver_bytes += sent
        if messages.status.values[row] == INCOMPLETE:
            self._note_unfinished(channel, messages, row, 0 if publish else 1)
        if self.emitter is None:
            return 0
        return self.emitter.on_message(channel, entry, messages, row, size)

    def _note_unfinished(
        self, channel: Channel, messages: MessageRows, row: cython.longlong, side: cython.int
    ) -> cython.int:
        """A content is not whole: the rest may come yet, unless another method stands there."""
        frames: FrameRows = self.frames
        number: cython.longlong = messages.packet_number.values[row]
        after: cython.longlong = messages.ended_at.values[row]
        if 0 < after <= frames.rows and (
            frames.connection.values[after - 1] == messages.connection.values[row]
            and frames.channel.values[after - 1] == messages.channel.values[row]
            and frames.sender.values[after - 1] == side
            and frames.frame_type.values[after - 1] == METHOD
            and frames.packet_number.values[after - 1] != number
        ):
            channel.unfinished = None
        else:
            captured = messages.body_captured.values[row]
            size = messages.body_size.values[row]
            channel.unfinished = side, number, messages.ts_ns.values[row], captured, size
        return 0

    def _name_queue(
        self, messages: MessageRows, row: cython.longlong, consumer: Consumer
    ) -> cython.int:
        """Give a delivery the queue of its consumer, if known."""
        if consumer.queue is None:
            return 0
        words: Vocabularies = messages.vocabularies
        batch: cython.longlong = self.batch_of(words)
        if consumer.batch != batch:
            consumer.batch = batch
            consumer.code = code_of(words.queue, consumer.queue.encode())
        messages.queue.values[row] = consumer.code
        return 0

    def batch_of(self, words: Vocabularies) -> cython.longlong:
        """The number of the batch that has these vocabularies; codes in them hold for it only."""
        if self.batch_words is not words:
            self.batch_words = words
            self.batch += 1
        return self.batch

    def _set_aside(self) -> cython.int:
        """Keep contents whose rows are long in coming apart."""
        place: cython.longlong
        known: Any
        for place in range(len(self.open_contents)):
            known = self.open_contents[place]
            if known is not None:
                self.late_contents[self.first_open_content + place] = known
        self.first_open_content += len(self.open_contents)
        self.open_contents.clear()
        return 0

    # event logs for merging, and their time

    @cython.ccall
    def dated_log(self, session: Session) -> MessageLog:
        """The message log, set to the current time, or None."""
        if self.message_log is not None:
            self.set_time(self.message_log, session.connection)
        return self.message_log

    def set_time(self, event_log: EventLog, connection: Connection) -> cython.int:
        """Set the current packet as what brings about the next rows of a log."""
        if event_log.over:
            return event_log.at_end(connection.conversation)
        moments: Moments = self.moments
        if self.in_message_row:
            return event_log.at(moments.capture, moments.number, moments.ts_ns)
        now = self.now()
        if now is not None:
            event_log.at(now[0], now[1], now[2])
        return 0

    @cython.ccall
    def now(self) -> tuple[Any, ...]:
        """The packet that caused the current event (see `amqpsniff.decode.moments`).

        None if order is not requested, and at the end of the capture.
        """
        frames: FrameRows = self.frames
        moments: Moments = self.moments
        row: cython.longlong = self.now_row
        if moments is None:
            return None
        if self.loss_moment is not None:
            return self.loss_moment
        if self.in_message_row:
            return moments.capture, moments.number, moments.ts_ns
        if not 0 <= row < frames.rows:
            return None
        return moments.of_frame(row) or (
            self.captures[frames.capture.values[row]],
            frames.packet_number.values[row],
            frames.ts_ns.values[row],
        )

    @cython.ccall
    def on_connection_closed(self, session: Session) -> None:
        """A connection was closed."""
        if self.link_recorder is not None:
            self.link_recorder.close(session)

    def on_reset(self, connection: Any) -> None:
        """A connection had a TCP RST, or data after one; None if the connection has ended."""
        if connection is not None and connection.session is not None:
            self.on_connection_closed(connection.session)

    def begin_finish(self) -> None:
        """End of packets: events from here to `finish` are caused by the end of the capture."""
        for event_log in self.event_logs():
            event_log.over = True

    def event_logs(self) -> Any:
        """The event logs that are written for merging with those of other readers."""
        link_log = None if self.link_recorder is None else self.link_recorder.log
        return [one for one in (self.message_log, link_log) if one is not None]
