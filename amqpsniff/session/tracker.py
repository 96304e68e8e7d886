# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Follows the decoder's rows in their order and fills in what became of them.

One method after the other: what those that come with every message mean stands here, what the
others change in `methods`, their states in `states`. A message's row is written when its content
ends, its method's frame long before: the decoder numbers contents, and what is known of each of
them is kept under that number. Rules are asked on their occasions, only where findings are
wanted; with `sightings`, what takes the messages of all connections is written down there and not
judged. State from before the capture is unknown and stays so; a loss makes unknown what it may
have hidden.
"""

from array import array

import cython
from cython.cimports.amqpsniff.decode.octets import ByteReader
from cython.cimports.amqpsniff.decode.rows import FrameRows, Vocabularies
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.event import Event, Request, Said, event_of
from cython.cimports.amqpsniff.session.headers import occasions_of
from cython.cimports.amqpsniff.session.methods import (
    begin_channel,
    end_connection,
    hear_again,
    lose,
    open_channel,
)
from cython.cimports.amqpsniff.session.moves import has_closed, move_connection, move_lane
from cython.cimports.amqpsniff.session.pairing import Pairing
from cython.cimports.amqpsniff.session.repeats import Repeats
from cython.cimports.amqpsniff.session.sent import Sent
from cython.cimports.amqpsniff.session.settling import Settler
from cython.cimports.amqpsniff.session.sightings import Sightings
from cython.cimports.amqpsniff.session.state import (
    Channel,
    Consumer,
    Entry,
    Lane,
    Session,
    entry_of,
)

from amqpsniff.columns import NULL
from amqpsniff.decode import method_layout, rows
from amqpsniff.decode.contents import LATE
from amqpsniff.session import kinds, methods, state
from amqpsniff.session.journeys import Journeys
from amqpsniff.session.limits import Limits
from amqpsniff.session.records import channel_row, connection_row
from amqpsniff.session.rules.foreseeing import LOOK_BITS, look
from amqpsniff.session.rules.scene import LARGE_BYTES, PAUSED_NS, STALLED_NS, Scene
from amqpsniff.session.states import CONNECTION
from amqpsniff.spec import METHODS

_OTHER = cython.declare(cython.int, kinds.OTHER)
_GET_OK = cython.declare(cython.int, kinds.GET_OK)
_ACK = cython.declare(cython.int, kinds.ACK)
_CHANNEL_OPEN = cython.declare(cython.int, kinds.CHANNEL_OPEN)
_CHANNEL_CLOSE_OK = cython.declare(cython.int, kinds.CHANNEL_CLOSE_OK)
_LATE = cython.declare(cython.int, LATE)
_NULL = cython.declare(cython.longlong, NULL)
_ALLOWED = cython.declare(bytes, CONNECTION.allowed)
_METHODS = cython.declare(cython.int, len(METHODS))
_NO_WAIT = cython.declare(cython.int, method_layout.NO_WAIT)

_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_DELIVER = cython.declare(cython.int, kinds.DELIVER)
_RETURN = cython.declare(cython.int, kinds.RETURN)
_REJECT = cython.declare(cython.int, kinds.REJECT)
_MANDATORY = cython.declare(cython.int, method_layout.MANDATORY)
_IMMEDIATE = cython.declare(cython.int, method_layout.IMMEDIATE)
_MULTIPLE = cython.declare(cython.int, method_layout.MULTIPLE)
_REQUEUE = cython.declare(cython.int, method_layout.REQUEUE)
_FLAGS_CUT = cython.declare(cython.int, method_layout.FLAGS_CUT)
_CUT = cython.declare(cython.int, method_layout.CUT)

_AUTOMATIC = cython.declare(cython.int, state.AUTOMATIC)
_CONFIRMED = cython.declare(cython.int, state.CONFIRMED)
_REJECTED = cython.declare(cython.int, state.REJECTED)
_ACKED = cython.declare(cython.int, state.ACKED)
_REQUEUED = cython.declare(cython.int, state.REQUEUED)
_DISCARDED = cython.declare(cython.int, state.DISCARDED)

# Contents whose rows are not there yet, beyond which they are kept apart from new ones.
_MAX_OPENED = cython.declare(cython.int, 131_072)
# Different handshakes that new ones are compared with.
_MAX_ALIKE = cython.declare(cython.int, 8)
# Contents after which it is worth while to forget those that have their rows.
_MANY_OPENED = cython.declare(cython.int, 4_096)

_METHOD_FRAME = cython.declare(cython.int, 1)
_INCOMPLETE = cython.declare(cython.int, rows.INCOMPLETE)
_TRUNCATED = cython.declare(cython.int, rows.TRUNCATED)
_PAUSED = cython.declare(cython.longlong, PAUSED_NS[0])
_PAUSED_MOST = cython.declare(cython.longlong, PAUSED_NS[1])
_LOOK_BITS = cython.declare(cython.int, LOOK_BITS)

MAX_EXCHANGES = 4_096
"""Exchanges whose messages are counted; a client may make up names."""


def _ask(rules, scene, memory):
    """Ask rules about one scene, which they share; `memory` is what was noted of its connection."""
    for noted, rule in rules:
        if noted is None or noted in memory:
            rule(scene)


class Tracker:
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
        log = log if "findings" in tables else None
        self.log = log
        self.judges = log is not None
        self.rules = {}
        self.memory = {}
        self.names = kinds.NAMES
        self.kinds = kinds.KINDS
        self.large = LARGE_BYTES
        self.repeats = Repeats() if self.judges else None
        if self.judges:
            from amqpsniff.session.rules.asking import RULES

            self.rules = RULES
        self.stalled = STALLED_NS
        self.journeys = None
        self.meeting = False
        self.frames = None
        self.captures = []
        self.now_row = -1
        self.words = None
        self.exchanges = {}
        self.tallies = array("q")
        self.limits = limits or Limits()
        self.most_fact = self.limits.fact
        self.most_facts = self.limits.facts
        self.settler = Settler(self.limits)
        self.settler.watcher = self if self.judges else None
        self.reader = ByteReader()
        self.consumers_known = 0
        self.facts_bytes = 0
        self.said = {}
        self.batch_words = None
        self.batch = 0
        self.opened = []
        self.first_opened = 0
        self.late = {}
        self.pairing = Pairing(self.limits, self.settler)
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
        self.senders = bytes(method_layout.senders)
        self.content = bytes(method_layout.content)
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

    # methods in their order

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

    # methods that come with every message

    def source(self, lane, frames, row, kind):
        """The consumer, or the basic.get, that a delivery is for; None where it is not known."""
        if kind == _GET_OK:
            request: Request = self.pairing.reply(lane, frames, row, frames.method.values[row], 1)
            return None if request is None else request.subject
        channel: Channel = lane.channel
        if kind != _DELIVER or channel is None:
            return None
        code: cython.int = frames.consumer_tag.values[row]
        words: Vocabularies = frames.vocabularies
        batch: cython.longlong = self.batch_of(words)
        if channel.near_code != code or channel.near_batch != batch:
            channel.near = channel.by_tag.get(words.consumer_tag.text(code))
            channel.near_code = code
            channel.near_batch = batch
        return channel.near

    def carry(self, session, lane, frames, row, kind):
        """A method that carries content; gives what its message's row needs: its entry, or only
        its channel.
        """
        channel: Channel = lane.channel
        if channel is None:
            channel = self.proved_channel(session, lane, frames, row)
        entry: Entry = entry_of(
            channel, kind, frames.packet_number.values[row], frames.ts_ns.values[row]
        )
        if kind == _PUBLISH:
            return entry if self._publish(session, channel, entry, frames, row) else channel
        if kind == _RETURN:
            channel.returned += 1
            if frames.flags.values[row] & _CUT:
                channel.return_doubt = channel.next_number - 1
            return entry
        channel.delivered += 1
        entry.number = frames.delivery_tag.values[row]
        if channel.first_delivery_ns == _NULL:
            channel.first_delivery_ns = entry.ts_ns
        channel.last_delivery_ns = entry.ts_ns
        if self.judges and channel.last_tag >= 0 and entry.number != channel.last_tag + 1:
            facts = {"tag": entry.number, "last": channel.last_tag}
            self.tell("delivery-tag-gap", channel, entry.packet_number, entry.ts_ns, facts)
        channel.last_tag = entry.number
        if channel.first_tag < 0:
            channel.first_tag = entry.number
        consumer: Consumer = self.source(lane, frames, row, kind)
        entry.consumer = consumer
        if consumer is not None:
            consumer.delivered += 1
        if consumer is not None and consumer.no_ack:
            self.settler.ended[_AUTOMATIC] += 1
            entry.outcome = _AUTOMATIC
            entry.outcome_number = entry.packet_number
            entry.outcome_ns = entry.ts_ns
            return entry
        known: cython.bint = consumer is not None and consumer.no_ack is not None
        entry.wants = known and self.pairing.late_row != row  # or it may be answered already
        if not entry.wants:
            channel.deliveries_uncertain = True
        if entry.number >= 0:
            self.settler.deliver(channel, entry)
        else:
            session.lossy = channel.deliveries_uncertain = True  # its tag was cut
        return entry

    def _publish(self, session, channel, entry, frames, row):
        """A publish, numbered on a confirming channel; gives whether the entry is needed."""
        channel.published += 1
        if channel.first_publish_number == 0:
            channel.first_publish_number = entry.packet_number
            channel.first_publish_ns = entry.ts_ns
        channel.last_publish_ns, channel.last_publish_number = entry.ts_ns, entry.packet_number
        if self.judges:
            if channel.deaf and (channel.closing[1] or session.closing[1]):
                facts = {"frames": frames, "row": row}
                self.tell("published-on-closed", channel, entry.packet_number, entry.ts_ns, facts)
            if session.blocked_since is not None:
                self.tell("published-while-blocked", channel, entry.packet_number, entry.ts_ns, {})
        if channel.joined is not None:
            channel.joined.publish(entry.ts_ns)
        entry.number = -1
        if channel.numbering:
            entry.number = channel.next_number
            channel.next_number += 1
            entry.wants = True
            self.settler.publish(channel, entry)
        if frames.flags.values[row] & (_MANDATORY | _IMMEDIATE):
            words = frames.vocabularies
            exchange = words.exchange.text(frames.exchange.values[row])
            entry.route = (exchange, words.routing_key.text(frames.routing_key.values[row]))
            self.settler.expect_return(channel, entry)
            return True
        return entry.number >= 0

    def answer(self, session, lane, frames, row, kind, side):
        """An ack, nack or reject of either side."""
        channel: Channel = lane.channel
        outcome: cython.int = _ACKED
        if channel is None:
            channel = self.proved_channel(session, lane, frames, row)
        flags: cython.int = frames.flags.values[row]
        tag: cython.longlong = frames.delivery_tag.values[row]
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        multiple: cython.bint = flags & _MULTIPLE != 0
        if side == 0 and channel.deaf:
            if self.pairing.late_row == row:  # it may have been sent before the close
                self._doubt(channel, kind, side, tag)
            return 0
        if flags & _CUT:
            self._doubt(channel, kind, side, tag)
        if tag < 0:
            return 0
        if self.pairing.late_row == row:
            there = channel.publishes if side == 1 else channel.deliveries
            last = self.due(there, row, number, ts_ns)
            if last is None or (tag > last and not multiple):
                return 0
            if side == 0 and tag > last:
                return self._doubt(channel, kind, side, last)  # the broker may have refused it
            tag = tag if 0 < tag < last else last
        if side == 1:
            if kind != _REJECT:
                outcome = _CONFIRMED if kind == _ACK else _REJECTED
                self.settler.confirm(channel, tag, multiple, outcome, number, ts_ns)
            return 0
        if kind != _ACK:
            if flags & _FLAGS_CUT:
                return 0
            outcome = _REQUEUED if flags & _REQUEUE else _DISCARDED
        self.settler.acknowledge(channel, tag, multiple, outcome, number, ts_ns)
        return 0

    def _doubt(self, channel, kind, side, tag):
        """An ack, nack or reject was cut: what else it may have answered is not known any more."""
        if side == 0:
            self.settler.acknowledge_in_part(channel, tag)
            if kind != _ACK and tag > 0:
                self.settler.refuse_in_part(channel, tag)
        elif kind != _REJECT:
            self.settler.confirm_in_part(channel, tag)
        return 0

    def due(self, there, row, number, ts_ns):
        """The number up to which a method in packet `number` answers what waits `there`; -1 for all
        of it, None for nothing: when one comes late, what was sent after it is there already.

        Each capture counts its packets, so what has an earlier time came before it as well.
        """
        if self.pairing.late_row != row:
            return -1
        before = (one for one in there if one.packet_number < number or one.ts_ns < ts_ns)
        return max([one.number for one in before], default=None)

    def capture_of(self, frames, row):
        """Name of the capture of a row."""
        return self.captures[frames.capture.values[row]]

    def proved_channel(self, session, lane, frames, row):
        """A method on a number that is not open: its beginning was not seen, or never was."""
        channel: Channel = begin_channel(session, lane, self.capture_of(frames, row), None)
        if self.judges:
            self.unopened(frames, row, channel)
        return channel

    # messages, from their methods to their rows

    def remember(self, name, octets, whole):
        """What was `Said` in a handshake; most connections say what others said before."""
        latest: list = self.said.setdefault(name, [])
        said: Said
        for said in latest:
            if said.octets == octets and said.whole == whole:
                break
        else:
            if len(octets) > self.most_fact or self.facts_bytes >= self.most_facts:
                self.settler.hit("handshakes")
                return Said(b"", False)
            said = Said(octets, whole)
            latest.append(said)
            if len(latest) > _MAX_ALIKE:
                del latest[0]
        if said.uses == 0:
            self.facts_bytes += len(said.octets)
        said.uses += 1
        return said

    def forget(self, said):
        """A connection that said so is over."""
        said.uses -= 1
        if said.uses == 0:
            self.facts_bytes -= len(said.octets)
        return 0

    def open(self, known):
        """The next content begins: `known` is its entry, only its channel or consumer, or None."""
        self.opened.append(known)
        if len(self.opened) > _MAX_OPENED:
            self._put_late()
        return 0

    def meet(self, messages, row, peers):
        """A message's row is there: see what became of it, and what it belongs to."""
        self.meeting = self.moments is not None and self.moments.meet()
        self.attach(messages, row)
        if self.journeys is not None:
            if self.journeys.written is not None:
                self.date(self.journeys.written, peers[messages.connection.values[row]])
            self.journeys.look(messages, row, peers)
        self.meeting = False
        return 0

    def attach(self, messages, row):
        """A message's row is there: give it what is known of its method."""
        ordinal: cython.longlong = messages.ordinal.values[row] - self.first_opened
        opened: object
        if ordinal < 0:
            opened = self.late.pop(messages.ordinal.values[row], None)
        else:
            opened = self.opened[ordinal]
            self.opened[ordinal] = None
        if len(self.opened) > _MANY_OPENED and ordinal == len(self.opened) - 1:
            self._put_late()
        if opened is None:
            return 0
        size: cython.longlong = messages.body_size.values[row]
        if type(opened) is Channel:
            return self.weigh(opened, None, messages, row, size)
        if type(opened) is Consumer:
            return self._name_queue(messages, row, opened)
        entry: Entry = opened
        entry.mark = max(messages.mark.values[row], 0)
        entry.body_mark = messages.body_mark.values[row]
        if entry.kind == _RETURN:
            words = messages.vocabularies
            exchange = words.exchange.text(messages.exchange.values[row])
            entry.route = (exchange, words.routing_key.text(messages.routing_key.values[row]))
            publish: Entry = self.settler.give_back(entry)
            if self.judges:
                facts = {"entry": publish, "rows": messages, "row": row}
                self.tell("returned", entry.channel, entry.packet_number, entry.ts_ns, facts)
            return 0
        if entry.kind == _PUBLISH:
            if entry.number > 0:
                messages.publish_number.values[row] = entry.number
        elif entry.consumer is not None:
            self._name_queue(messages, row, entry.consumer)
        self.settler.attach(entry, messages, row)
        return self.weigh(entry.channel, entry, messages, row, size)

    def _name_queue(self, messages, row, consumer):
        """Give a delivery the queue of its consumer, where that is known."""
        if consumer.queue is None:
            return 0
        words: Vocabularies = messages.vocabularies
        batch: cython.longlong = self.batch_of(words)
        if consumer.batch != batch:
            octets: bytes = consumer.queue.encode()
            self.reader.read_from(octets)
            consumer.batch = batch
            consumer.code = self.reader.code_in(words.queue, 0, len(octets))
        messages.queue.values[row] = consumer.code
        return 0

    def batch_of(self, words):
        """The number of the batch that has these vocabularies; codes in them hold for it only."""
        if self.batch_words is not words:
            self.batch_words = words
            self.batch += 1
        return self.batch

    def _put_late(self):
        """Keep contents whose rows are long in coming apart."""
        place: cython.longlong
        known: object
        for place in range(len(self.opened)):
            known = self.opened[place]
            if known is not None:
                self.late[self.first_opened + place] = known
        self.first_opened += len(self.opened)
        self.opened.clear()
        return 0

    # rules

    def hear(self, frames, row, peers):
        """A frame of any type: its side is not silent."""
        peer: Connection = peers[frames.connection.values[row]]
        side: cython.int = frames.sender.values[row]
        now: cython.longlong = frames.ts_ns.values[row]
        session: Session = peer.session
        if session is None or side < 0 or now == _NULL:
            return 0
        session.frames += 1
        last: cython.longlong = max(session.last_client_ns, session.last_server_ns)
        if side == 0:
            if session.last_client_ns != _NULL and (
                now - session.last_client_ns > session.silence_client_ns
            ):
                session.silence_client_ns = now - session.last_client_ns
            session.last_client_ns = now
            self._note_sent(session, frames, row)
        else:
            if session.last_server_ns != _NULL and (
                now - session.last_server_ns > session.silence_server_ns
            ):
                session.silence_server_ns = now - session.last_server_ns
            session.last_server_ns = now
        if last != _NULL and now >> _LOOK_BITS > last >> _LOOK_BITS:
            look(self, session, frames.packet_number.values[row], now)
        return 0

    def _note_sent(self, session, frames, row):
        """A frame of the client, which the broker may object to."""
        kind: cython.int = -1
        method: cython.int = frames.method.values[row]
        channel: cython.int = frames.channel.values[row]
        number: cython.longlong = frames.packet_number.values[row]
        lane: Lane = session.last
        sent: Sent = session.sent
        if 0 <= method < len(self.kinds):
            kind = self.kinds[method]
        if sent is None:
            sent = session.sent = Sent()
        sent.note(kind, method, number)
        if channel == 0:
            return 0
        if lane is None or lane.number != channel:
            lane = session.lanes.get(channel)
        if lane is not None:
            if lane.sent is None:
                lane.sent = Sent()
            sent = lane.sent
            sent.note(kind, method, number)
        return 0

    def tell(self, occasion, channel, number, ts_ns, facts):
        """Ask the rules of an occasion on a channel."""
        rules = self.rules.get(occasion, ())
        if rules:
            session: Session = channel.session
            scene = Scene(self, session, channel, number, ts_ns, None, None, facts)
            _ask(rules, scene, session.memory)

    def tell_of(self, occasion, session, number, ts_ns, facts):
        """Ask the rules of an occasion of a connection."""
        rules = self.rules.get(occasion, ())
        if rules:
            memory = {} if session is None else session.memory
            _ask(rules, Scene(self, session, None, number, ts_ns, None, None, facts), memory)

    def tell_method(self, session, channel, event, request):
        """Ask the rules of a method, and those of a reply."""
        rules = self.rules.get(event.name, ())
        if not rules and request is None:
            return
        scene = Scene(self, session, channel, event.number, event.ts_ns, event, request)
        _ask(rules, scene, session.memory)
        if request is not None:
            _ask(self.rules.get("replied", ()), scene, session.memory)

    def witness(self, session):
        """Where what concerns several connections is written down, as of now; None: nowhere."""
        if self.sightings is not None:
            self.date(self.sightings, session.peer)
        return self.sightings

    def date(self, witness, peer):
        """What is written down next is of now, on a connection."""
        if witness.over:
            return witness.at_end(peer.conversation)
        now = self.now()
        if now is not None:
            witness.at(now[0], now[1], now[2])
        return 0

    def now(self):
        """What brought about what is seen now (see `amqpsniff.decode.moments`).

        None where nobody asked for it, and at the end of the capture.
        """
        frames: FrameRows = self.frames
        row: cython.longlong = self.now_row
        if self.moments is None:
            return None
        if self.meeting:
            return self.moments.of_message()
        if not 0 <= row < frames.rows:
            return None
        return self.moments.of_frame(row) or (
            self.captures[frames.capture.values[row]],
            frames.packet_number.values[row],
            frames.ts_ns.values[row],
        )

    def see_closed(self, channel):
        """Write down that a channel is over."""
        if self.sightings is not None:
            self.witness(channel.session).close(channel)
        return 0

    def see_shut(self, session):
        """A connection was closed."""
        if self.journeys is not None:
            self.journeys.close(session)

    def see_over(self, session):
        """Write down that a connection is over."""
        if self.sightings is not None:
            self.sightings.end(session)
        if self.journeys is not None:
            self.journeys.end(session)
        return 0

    def begin_end(self):
        """There are no more packets: what comes until `finish` is brought about by that."""
        for witness in self.witnesses():
            witness.over = True

    def witnesses(self):
        """Who writes down what happens, for others to judge."""
        written = None if self.journeys is None else self.journeys.written
        return [one for one in (self.sightings, written) if one is not None]

    def misplaced(self, frames, row, peers, occasion):
        """Ask the rules about a method that may not come from its side, or on its channel."""
        peer: Connection = peers[frames.connection.values[row]]
        if peer.session is None:
            return 0
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        self.tell_of(occasion, peer.session, number, ts_ns, self._describe(frames, row))
        return 0

    def unopened(self, frames, row, channel):
        """Ask the rules about a method on a channel that is not open."""
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        self.tell("channel-not-open", channel, number, ts_ns, self._describe(frames, row))
        return 0

    def _describe(self, frames, row):
        """What is told of a method that is out of place."""
        return {
            "method": self.names[frames.method.values[row]],
            "channel": frames.channel.values[row],
            "side": frames.sender.values[row],
        }

    def weigh(self, channel, entry, messages, row, size):
        """Count a message's bytes, and ask the rules about messages that stand out; `size` is what
        its header announces.
        """
        publish: cython.bint = entry is None or entry.kind == _PUBLISH
        sent: cython.longlong = messages.sent(row)
        if sent > 0:
            if publish:
                channel.publish_bytes += sent
            else:
                channel.deliver_bytes += sent
        if not self.judges:
            return 0
        self._tally(messages, row, publish, sent)
        facts: dict
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        sightings: Sightings = self.witness(channel.session)
        if sightings is not None and publish:
            sightings.publish(channel, messages, row)
        elif sightings is not None and messages.redelivered.values[row] != 1:
            sightings.deliver(channel, messages, row)
        elif publish:
            first: cython.longlong = self.repeats.first(messages, row)
            if first >= 0:
                channel.repeats += 1
                channel.last_repeat = number
                if channel.repeats == 1:
                    facts = {"first": first, "rows": messages, "row": row}
                    self.tell("published-again", channel, number, ts_ns, facts)
        elif messages.redelivered.values[row] != 1:
            self._queued(channel, messages, row)
        if size > self.large:
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("large", channel, number, ts_ns, facts)
        if messages.redelivered.values[row] == 1:
            channel.redelivered += 1
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("redelivered", channel, number, ts_ns, facts)
        if messages.headers.has(row):
            self._look_at_headers(channel, entry, messages, row)
        if publish:
            return self._look(channel, entry, messages, row)
        if channel.session.calls > 0 and (
            messages.correlation_id.has(row) or messages.status.values[row] == _TRUNCATED
        ):
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("answered", channel, number, ts_ns, facts)
        return 0

    def _queued(self, channel, messages, row):
        """Count how long a delivery was in its queue, if its publish is known."""
        slot: cython.longlong = self.repeats.slot_of(messages, row)
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if slot < 0 or ts_ns == _NULL:
            return 0
        waited: cython.longlong = ts_ns - self.repeats.since.values[slot]
        if waited < 0:
            return 0
        channel.queued += 1
        channel.queued_ns += waited
        if waited > channel.queued_ns_max:
            channel.queued_ns_max = waited
            number: cython.longlong = messages.packet_number.values[row]
            queue = messages.vocabularies.queue.text(messages.queue.values[row])
            channel.longest = (number, ts_ns, queue, self.repeats.numbers.values[slot])
        return 0

    def _look(self, channel, entry, messages, row):
        """See whether a publish is a call, or stood still on its way."""
        facts: dict
        number: cython.longlong = messages.packet_number.values[row]
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        frames: FrameRows = self.frames
        after: cython.longlong = messages.ended_at.values[row]
        if messages.reply_to.values[row] >= 0 and messages.correlation_id.has(row):
            facts = {"entry": entry, "rows": messages, "row": row}
            self.tell("called", channel, number, ts_ns, facts)
        if messages.status.values[row] == _INCOMPLETE:
            if 0 < after <= frames.rows and (
                frames.connection.values[after - 1] == messages.connection.values[row]
                and frames.channel.values[after - 1] == messages.channel.values[row]
                and frames.frame_type.values[after - 1] == _METHOD_FRAME
                and frames.packet_number.values[after - 1] != number
            ):
                return 0  # another method stands where more of it should be
            facts = {"rows": messages, "row": row, "took_ns": None}
            self.tell("half-sent", channel, number, ts_ns, facts)
        elif ts_ns != _NULL and 0 < after <= frames.rows:
            took: cython.longlong = frames.ts_ns.values[after - 1]
            if took != _NULL and took - ts_ns >= _PAUSED:
                facts = {"rows": messages, "row": row, "took_ns": took - ts_ns}
                if took - ts_ns <= _PAUSED_MOST:
                    self.tell("paused", channel, number, ts_ns, facts)
                elif took - ts_ns > self.stalled:
                    self.tell("half-sent", channel, number, ts_ns, facts)
        return 0

    def _look_at_headers(self, channel, entry, messages, row):
        """Ask the rules about headers that stand out."""
        for occasion in occasions_of(messages.headers, row):
            facts = {"entry": entry, "rows": messages, "row": row}
            number: cython.longlong = messages.packet_number.values[row]
            self.tell(occasion, channel, number, messages.ts_ns.values[row], facts)
        return 0

    def _tally(self, messages, row, publish, size):
        """Count a message and its bytes for its exchange, but not when it comes again."""
        code: cython.longlong = messages.exchange.values[row]
        if code < 0 or messages.redelivered.values[row] == 1:
            return 0
        if messages.vocabularies is not self.words or 4 * code + 4 > len(self.tallies):
            self.count_exchanges()
            self.words = messages.vocabularies
            self.tallies = array("q", [0]) * (8 * (code + 16))
        at: cython.longlong = 4 * code + (0 if publish else 2)
        self.tallies[at] += 1
        if size > 0:
            self.tallies[at + 1] += size
        return 0

    def count_exchanges(self):
        """Enter the tallies so far in `exchanges`: name → publishes and their bytes, deliveries
        and theirs.
        """
        code: cython.Py_ssize_t
        for code in range(len(self.tallies) // 4):
            counts = list(self.tallies[4 * code : 4 * code + 4])
            if not any(counts):
                continue
            name = self.words.exchange.text(code)
            if name not in self.exchanges and len(self.exchanges) >= MAX_EXCHANGES:
                continue
            before = self.exchanges.get(name, (0, 0, 0, 0))
            self.exchanges[name] = tuple(a + b for a, b in zip(before, counts, strict=True))
        self.tallies = array("q")
        return 0
