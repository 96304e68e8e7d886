# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Reads the decoder's rows in their order and fills in what became of them.

Methods that come with every message are followed in `messages`; what the others change is in
`methods`, their states in `states`. What a message's row gets when its content ends is in
`attaching`. State from before the capture is unknown and stays so; a loss makes unknown what it may
have hidden.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import plan
from amqpsniff.decode.contents import LATE
from amqpsniff.session import kinds, methods
from amqpsniff.session.journeys import Journeys
from amqpsniff.session.limits import Limits
from amqpsniff.session.records import channel_row, connection_row
from amqpsniff.session.states import CONNECTION
from amqpsniff.spec import METHODS

if cython.compiled:
    from cython.cimports.amqpsniff.decode.state import Connection  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.event import (  # type: ignore[import-not-found]
        Event,
        Request,
        event_of,
    )
    from cython.cimports.amqpsniff.session.messages import MessageMethods  # type: ignore
    from cython.cimports.amqpsniff.session.methods import (  # type: ignore[import-not-found]
        end_connection,
        hear_again,
        lose,
        open_channel,
    )
    from cython.cimports.amqpsniff.session.moves import (  # type: ignore[import-not-found]
        has_closed,
        move_connection,
        move_lane,
    )
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Channel,
        Lane,
        Session,
    )
else:
    from amqpsniff.decode.state import Connection
    from amqpsniff.session.event import Event, Request, event_of
    from amqpsniff.session.messages import MessageMethods
    from amqpsniff.session.methods import end_connection, hear_again, lose, open_channel
    from amqpsniff.session.moves import has_closed, move_connection, move_lane
    from amqpsniff.session.state import Channel, Lane, Session

_OTHER = cython.declare(cython.int, kinds.OTHER)
_GET_OK = cython.declare(cython.int, kinds.GET_OK)
_ACK = cython.declare(cython.int, kinds.ACK)
_CHANNEL_OPEN = cython.declare(cython.int, kinds.CHANNEL_OPEN)
_CHANNEL_CLOSE_OK = cython.declare(cython.int, kinds.CHANNEL_CLOSE_OK)
_LATE = cython.declare(cython.int, LATE)
_NULL = cython.declare(cython.longlong, NULL)
_ALLOWED = cython.declare(bytes, CONNECTION.allowed)
_METHODS = cython.declare(cython.int, len(METHODS))
_NO_WAIT = cython.declare(cython.int, plan.NO_WAIT)


class Tracker(MessageMethods):
    """Follows any number of connections at once: `follow` after each batch of the decoder, `finish`
    when the capture is over.

    Args:
        asked: The `amqpsniff.plan.Plan` of the run; of frames alone only replies are found.
        log: Collects what the rules find.
        moments: The decoder's `Moments`; null for none.
        limits, memory: Other bounds than the usual ones; `memory` is of what is linked.
    """

    def __init__(self, asked, log, moments=None, limits=None, memory=None):
        tables = frozenset(asked.tables)
        MessageMethods.__init__(self, limits or Limits(), log if "findings" in tables else None)
        self.only_replies = tables == {"frames"}
        self.only_moves = self.only_replies and not asked.handshakes
        self.settles = asked.settles
        self.wants_connections = "connections" in tables
        self.wants_channels = "channels" in tables
        self.moments = moments
        self.sightings = asked.sightings
        if asked.links and "messages" in tables:
            self.journeys = Journeys(memory, asked.linkables)
        if asked.census is not None:
            self.settler.measure()
            self.settler.lately = asked.census.lately
            self.pairing.measure()
        self.sessions = 0
        self.lost_before = set()
        self.lanes = 0
        self.most_lanes = self.limits.channels
        self.channels = []
        self.connections = []
        self.classes = kinds.ON_CHANNEL_ZERO
        self.senders = bytes(plan.senders)
        self.content = bytes(plan.content)
        self.synchronous = kinds.SYNCHRONOUS
        self.answers = kinds.ANSWERS
        self.partings = kinds.PARTINGS
        self.farewells = kinds.FAREWELLS
        self.discarded = kinds.DISCARDED
        self.channel_handlers = methods.CHANNEL_HANDLERS
        self.connection_handlers = methods.CONNECTION_HANDLERS
        if not (asked.handshakes or self.wants_connections or self.judges):
            self.connection_handlers = methods.CONNECTION_STEP_HANDLERS
        self.followed = kinds.OF_REPLIES if self.only_moves else kinds.ALL

    def follow(self, frames, frame, messages, message, peers, losses, captures, ended, tell):
        """Follow the rows from these on, and the ends of connections where they stand between them.

        `ended` are connections, each with the row before which it ended, `tell` is called with
        those of them that lack something, before they end; see `feed` for the rest. They keep their
        sessions for those that are still to look at them.
        """
        peer: Connection
        row: cython.longlong
        first: cython.longlong = frame
        next_message: cython.longlong = message
        lost: cython.Py_ssize_t = 0
        self.pairing.late_row = -1
        for peer, row in ended:
            some: cython.Py_ssize_t = lost
            while lost < len(losses) and losses[lost][0] <= row:
                lost += 1
            next_message = self.feed(
                frames, first, messages, next_message, peers, losses[some:lost], captures, row
            )
            first = row
            if not peer.began or peer.conversation.impaired:
                tell(peer)
            session = peer.session
            self.end(peer, peer.capture)
            peer.session = session
        self.feed(frames, first, messages, next_message, peers, losses[lost:], captures)

    def feed(self, frames, first_frame, messages, first_message, peers, losses, captures, until=-1):
        """Follow the rows from these on, up to frame `until`, -1 for all; gives the next message.

        `peers` are the decoder's connections by code, `losses` (row, connection, direction) in
        order, `captures` the names of captures by code.
        """
        self.captures, self.frames = captures, frames
        row: cython.longlong
        method: cython.int
        message: cython.longlong = first_message
        last: cython.longlong = frames.rows if until < 0 else until
        lost: cython.Py_ssize_t = 0
        next_loss: cython.longlong = losses[0][0] if losses else last + 1
        next_message: cython.longlong = last + 1
        if message < messages.rows:
            next_message = messages.ended_at.values[message]
        for row in range(first_frame, last + 1):
            while next_message <= row:
                self.now_row = next_message - 1
                self.meet(messages, message, peers)
                message += 1
                next_message = last + 1
                if message < messages.rows:
                    next_message = messages.ended_at.values[message]
            while next_loss <= row:
                if losses[lost][2] == _LATE:
                    self.pairing.late_row, self.pairing.moment, _ = losses[lost]
                else:
                    self._lose(losses[lost][1], losses[lost][2])
                lost += 1
                next_loss = losses[lost][0] if lost < len(losses) else last + 1
            if row < last:
                self.now_row = row
                method = frames.method.values[row]
                if 0 <= method < len(self.followed) and self.followed[method]:
                    self._method(frames, row, method, peers)
                if self.judges:
                    self.hear(frames, row, peers)
        return message

    def _method(self, frames, row, method, peers):
        """One method frame."""
        side: cython.int = frames.sender.values[row]
        number: cython.int = frames.channel.values[row]
        opened: object = None
        kind: cython.int = self.kinds[method]
        may_send: cython.bint = side >= 0 and self.senders[method] & (1 << side) != 0
        if may_send and self.classes[method] == (number == 0):
            peer: Connection = peers[frames.connection.values[row]]
            session: Session = peer.session
            if session is None:
                session = self._begin(peer, self.capture_of(frames, row))
            if side == 1:
                session.heard = True
            if session.missing & (1 << side):
                hear_again(session, side)
            lane: Lane = session.last
            if lane is None or lane.number != number:
                lane = self._lane(session, number)
            if self.judges and has_closed(session, side) and not self.partings[method]:
                self.misplaced(frames, row, peers, "after-close")
            if lane is not None and (kind == _OTHER or not session.over):
                opened = self._follow(session, lane, frames, row, kind, side)
        elif self.judges and side >= 0:
            occasion = "wrong-channel" if may_send else "wrong-direction"
            self.misplaced(frames, row, peers, occasion)
        if self.content[method] and not self.only_replies:
            self.open(opened)
        return 0

    def _follow(self, session, lane, frames, row, kind, side):
        """A method in its place; gives what the row of its message needs, None for nothing."""
        method: cython.int = frames.method.values[row]
        if kind == _OTHER:
            self._other(session, lane, frames, row, method, side)
        elif self.only_replies:
            if kind == _GET_OK:
                self.pairing.reply(lane, frames, row, method, side)
        elif not self.settles:
            return self.source(lane, frames, row, kind)
        elif kind >= _ACK:  # or a nack, or a reject
            self.answer(session, lane, frames, row, kind, side)
        else:
            return self.carry(session, lane, frames, row, kind)
        return None

    def _begin(self, peer, capture):
        session: Session = Session(peer, capture, self.sessions)
        if peer in self.lost_before:
            session.lossy = True
            session.missing = 3
            self.lost_before.discard(peer)
        self.sessions += 1
        peer.session = session
        return session

    def _lane(self, session, number):
        """The lane of a channel number; None when there are too many."""
        lane: Lane = session.lanes.get(number)
        if lane is None:
            if self.lanes >= self.most_lanes:
                self.settler.hit("channels")
                return None
            lane = Lane(number)
            if session.lossy or not session.peer.began:
                lane.early = []
            session.lanes[number] = lane
            self.lanes += 1
        session.last = lane
        if session.changed is not None and lane.changed != 3:
            session.note_changed(lane)
        return lane

    def _other(self, session, lane, frames, row, method, side):
        """Any other method: it may answer a request, change the state, be a request."""
        if session.over and not self.farewells[method]:
            return 0
        request: Request = None
        subject: object = None
        if self.answers[method] and (lane.requests or lane.early is not None):
            request = self.pairing.reply(lane, frames, row, method, side)
        if self.only_moves:
            self._move(session, lane, method, side)
        elif lane.number == 0:
            subject = self._on_connection(session, frames, row, method, side, request)
        else:
            subject = self._on_channel(session, lane, frames, row, method, side, request)
        if self.synchronous[method] and not (frames.flags.values[row] & _NO_WAIT):
            self.pairing.ask(session, lane, frames, row, method, side, subject)
        return 0

    def _move(self, session, lane, method, side):
        """Let a method change the state of its connection or channel, of which nobody asks more."""
        if lane.number == 0:
            session.over = move_connection(session, method, side)
        else:
            move_lane(lane, method, side)
        return 0

    def _on_connection(self, session, frames, row, method, side, request):
        """Let a method change the state of its connection; gives what its handler does."""
        handler: object = self.connection_handlers[method]
        subject: object = None
        before: cython.int = session.step
        move_connection(session, method, side)
        if handler is None and not self.judges:
            return None
        event: Event = event_of(self.names[method], frames, row)
        if self.judges:
            if not _ALLOWED[2 * (before * _METHODS + method) + side]:
                state = CONNECTION.states[before]
                facts = {"method": event.name, "side": side, "state": state}
                self.tell_of("out-of-order", session, event.number, event.ts_ns, facts)
        if handler is not None:
            subject = handler(self, session, event, request)
        if self.judges:
            self.tell_method(session, None, event, request)
        return subject

    def _on_channel(self, session, lane, frames, row, method, side, request):
        """Let a method change the state of its channel; gives what its handler does."""
        channel: Channel = lane.channel
        handler: object = self.channel_handlers[method]
        subject: object = None
        event: Event = None
        if method == _CHANNEL_OPEN:
            event = event_of(self.names[method], frames, row)
            open_channel(self, session, lane, self.capture_of(frames, row), event)
            channel = lane.channel
        else:
            if channel is None:
                if method == _CHANNEL_CLOSE_OK:
                    return None
                channel = self.proved_channel(session, lane, frames, row)
            if handler is not None and not (side == 0 and channel.deaf and self.discarded[method]):
                event = event_of(self.names[method], frames, row)
                subject = handler(self, lane, channel, event, request)
        if self.judges:
            if event is None:
                event = event_of(self.names[method], frames, row)
            self.tell_method(session, channel, event, request)
        return subject

    def _lose(self, peer, direction):
        """Frames of one direction may be missing here."""
        session: Session = peer.session
        if session is None:
            self.lost_before.add(peer)
        elif peer.client_direction >= 0:
            side: cython.int = direction ^ peer.client_direction
            lose(session, side)
            if side == 1:
                self._lose_refusals(session)
            if self.judges:
                self.tell_of("frames-lost", session, None, None, {"side": side})
        return 0

    def _lose_refusals(self, session):
        """Frames of the broker may be missing, among them what it refused."""
        lane: Lane
        for lane in session.lanes.values():
            if lane.channel is not None and lane.channel.tentative is not None:
                self.settler.doubt(lane.channel, _NULL)
        return 0

    def end(self, peer, capture):
        """A connection is over, or the capture is: what is open stays as it is.

        `capture` is the one of a connection without a single method.
        """
        session: Session = peer.session or self._begin(peer, capture)
        if self.judges:
            tcp = peer.conversation
            self.tell_of("connection-ends", session, tcp.last_packet_number, tcp.end_ns, {})
        end_connection(self, session)
        self.see_over(session)
        self.lanes -= len(session.lanes)
        if self.wants_connections:
            self.connections.append(connection_row(session, peer.dialect_name))
        peer.session = None
        for said in session.facts.values():
            self.forget(said)
        return 0

    def add_channel(self, channel):
        """A channel incarnation is over."""
        if self.judges:
            self.tell("channel-ends", channel, channel.closed_packet_number, channel.end_ns, {})
        self.settler.finish(channel)
        self.see_closed(channel)
        self.consumers_known -= len(channel.by_tag)
        if self.wants_channels:
            self.channels.append(channel_row(channel))
        return 0

    def finish(self, number, ts_ns):
        """The capture is over, at a packet; every connection was ended before."""
        if self.judges:
            self.tell_of("capture-ends", None, number, ts_ns, {})
        for witness in self.witnesses():
            witness.finish()

    @property
    def rows(self):
        """Rows of `connections` and `channels` since the last `take`."""
        return len(self.connections) + len(self.channels)

    def take(self):
        """Give the rows of `connections` and `channels` since the last call away, as two lists."""
        taken = (self.connections, self.channels)
        self.connections, self.channels = [], []
        return taken
