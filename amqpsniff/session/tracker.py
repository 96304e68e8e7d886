# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Reads the decoder's rows in their order and fills in what became of them.

Methods that come with every message are followed here; the others are in `methods`. A message's row
is written when its content ends, its method's frame long before: the decoder numbers contents, and
`opened` holds what is known of each until its row is there.

State from before the capture is unknown and stays so; a loss makes unknown what it may have hidden.
Nothing here raises on any rows.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import plan
from amqpsniff.session import kinds, state
from amqpsniff.session import methods as slow_methods
from amqpsniff.session.limits import Limits
from amqpsniff.session.records import channel_row, connection_row

if cython.compiled:
    from cython.cimports.amqpsniff.decode.octets import OctetReader  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.decode.rows import (  # type: ignore[import-not-found]
        FrameRows,
    )
    from cython.cimports.amqpsniff.decode.state import Connection  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.settling import Settler  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Channel,
        Consumer,
        Entry,
        Event,
        Lane,
        Request,
        Session,
    )
else:
    from amqpsniff.decode.octets import OctetReader
    from amqpsniff.decode.rows import FrameRows
    from amqpsniff.decode.state import Connection
    from amqpsniff.session.settling import Settler
    from amqpsniff.session.state import (
        Channel,
        Consumer,
        Entry,
        Event,
        Lane,
        Request,
        Session,
    )

_NULL = cython.declare(cython.longlong, NULL)
_METHOD_FRAME = cython.declare(cython.int, 1)
_CONNECTION_CLASS = cython.declare(cython.int, 10)

# What a method is to the tracker.
_OTHER = cython.declare(cython.int, kinds.OTHER)
_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_GET_OK = cython.declare(cython.int, kinds.GET_OK)
_RETURN = cython.declare(cython.int, kinds.RETURN)
_ACK = cython.declare(cython.int, kinds.ACK)
_NACK = cython.declare(cython.int, kinds.NACK)
_REJECT = cython.declare(cython.int, kinds.REJECT)
_MANDATORY = cython.declare(cython.int, plan.MANDATORY)
_IMMEDIATE = cython.declare(cython.int, plan.IMMEDIATE)
_MULTIPLE = cython.declare(cython.int, plan.MULTIPLE)
_REQUEUE = cython.declare(cython.int, plan.REQUEUE)
_NO_WAIT = cython.declare(cython.int, plan.NO_WAIT)

_AUTOMATIC = cython.declare(cython.int, state.AUTOMATIC)
_CONFIRMED = cython.declare(cython.int, state.CONFIRMED)
_REJECTED = cython.declare(cython.int, state.REJECTED)
_ACKED = cython.declare(cython.int, state.ACKED)
_REQUEUED = cython.declare(cython.int, state.REQUEUED)
_DISCARDED = cython.declare(cython.int, state.DISCARDED)

# Contents whose rows are not there yet, beyond which the oldest are kept apart.
_OPENED = cython.declare(cython.int, 65_536)


class Tracker:
    """Follows any number of connections at once: `feed` after each batch of the decoder, `end` for
    each connection that ended, `finish` when the capture is over.

    Args:
        limits: Other bounds than the usual ones.
        tables: Names of the tables whose rows are wanted, of `connections` and `channels`.
    """

    def __init__(self, limits=None, tables=("connections", "channels")):
        self.wants_connections = "connections" in tables
        self.wants_channels = "channels" in tables
        self.limits = limits or Limits()
        self.settler = Settler(self.limits)
        self.reader = OctetReader()
        self.opened = []
        self.first_opened = 0
        self.late = {}
        self.sessions = 0
        self.lanes = 0
        self.channels = []
        self.connections = []
        self.kinds = kinds.KINDS
        self.classes = kinds.ON_CHANNEL_ZERO
        self.senders = bytes(plan.senders)
        self.content = bytes(plan.content)
        self.synchronous = kinds.SYNCHRONOUS
        self.closes = kinds.CLOSES
        self.farewell = kinds.FAREWELL
        self.discarded = kinds.DISCARDED
        self.replies = kinds.REPLIES
        self.names = kinds.NAMES
        self.channel_handlers = kinds.CHANNEL_HANDLERS
        self.connection_handlers = kinds.CONNECTION_HANDLERS
        self.count = len(kinds.NAMES)

    def feed(self, frames, first_frame, messages, first_message, peers, losses, captures):
        """Follow the rows from these on.

        `peers` are the decoder's connections by code, `losses` (row, connection, direction) in
        order, `captures` the names of captures by code.
        """
        self.captures = captures
        row: cython.longlong
        message: cython.longlong = first_message
        last: cython.longlong = frames.rows
        lost: cython.Py_ssize_t = 0
        next_loss: cython.longlong = losses[0][0] if losses else last + 1
        next_message: cython.longlong = last + 1
        if message < messages.rows:
            next_message = messages.ended_at.values[message]
        for row in range(first_frame, last + 1):
            while next_message <= row:
                self._attach(messages, message)
                message += 1
                next_message = last + 1
                if message < messages.rows:
                    next_message = messages.ended_at.values[message]
            while next_loss <= row:
                self._lose(losses[lost][1], losses[lost][2])
                lost += 1
                next_loss = losses[lost][0] if lost < len(losses) else last + 1
            if row < last and frames.frame_type.values[row] == _METHOD_FRAME:
                self._method(frames, row, peers)
        return 0

    def _method(self, frames, row, peers):
        """One method frame."""
        method: cython.int = frames.method.values[row]
        side: cython.int = frames.sender.values[row]
        number: cython.int = frames.channel.values[row]
        entry: Entry = None
        if method < 0 or method >= len(self.kinds):
            return 0
        kind: cython.int = self.kinds[method]
        if (
            side >= 0
            and self.senders[method] & (1 << side)
            and (self.classes[method] == (number == 0))
        ):
            peer: Connection = peers[frames.connection.values[row]]
            session: Session = peer.session
            if session is None:
                session = self._begin(peer, self._capture(frames, row))
            lane: Lane = session.last
            if lane is None or lane.number != number:
                lane = self._lane(session, number)
            if lane is None:
                pass
            elif kind == _OTHER:
                self._other(session, lane, frames, row, method, side)
            elif session.over:
                pass
            elif kind == _ACK or kind == _NACK or kind == _REJECT:
                self._answer(session, lane, frames, row, kind, side)
            else:
                entry = self._content(session, lane, frames, row, kind)
        if self.content[method]:
            self.opened.append(entry)
            if len(self.opened) > 2 * _OPENED:
                self._put_late()
        return 0

    def _capture(self, frames, row):
        """Name of the capture of a row."""
        code: cython.int = frames.capture.values[row]
        return self.captures[code] if 0 <= code < len(self.captures) else None

    def _begin(self, peer, capture):
        session = Session(peer, capture, self.sessions)
        self.sessions += 1
        peer.session = session
        return session

    def _lane(self, session, number):
        """The lane of a channel number; None when there are too many."""
        lane: Lane = session.lanes.get(number)
        if lane is None:
            if self.lanes >= self.limits.channels:
                self.settler.hit("channels")
                return None
            lane = Lane(number)
            session.lanes[number] = lane
            self.lanes += 1
        session.last = lane
        return lane

    def _content(self, session, lane, frames, row, kind):
        """A method that carries content; gives what its message's row needs, None for nothing."""
        channel: Channel = lane.channel
        if channel is None:
            channel = slow_methods.begin_channel(session, lane, self._capture(frames, row))
        entry: Entry = Entry()
        entry.kind = kind
        entry.channel = channel
        entry.packet_number = frames.packet_number.values[row]
        entry.ts_ns = frames.ts_ns.values[row]
        if kind == _PUBLISH:
            return self._publish(channel, entry, frames, row)
        if kind == _RETURN:
            channel.returned += 1
            return entry
        channel.delivered += 1
        entry.number = frames.delivery_tag.values[row]
        consumer: Consumer = None
        if kind == _GET_OK:
            request: Request = self._reply(lane, frames, row, frames.method.values[row], 1)
            if request is not None:
                consumer = request.subject
        else:
            tag = frames.vocabularies.consumer_tag.text(frames.consumer_tag.values[row])
            consumer = channel.by_tag.get(tag)
        entry.consumer = consumer
        if consumer is not None and consumer.no_ack:
            entry.outcome = _AUTOMATIC
            entry.outcome_number = entry.packet_number
            entry.outcome_ns = entry.ts_ns
            return entry
        entry.wants = consumer is not None and consumer.no_ack is not None
        if entry.number >= 0:
            self.settler.deliver(channel, entry)
        return entry

    def _publish(self, channel, entry, frames, row):
        """A publish: numbered on a confirming channel, and kept where it may be returned."""
        channel.published += 1
        entry.number = -1
        if channel.numbering:
            entry.number = channel.next_number
            channel.next_number += 1
            entry.wants = True
            self.settler.publish(channel, entry)
        if frames.flags.values[row] & (_MANDATORY | _IMMEDIATE):
            words = frames.vocabularies
            entry.exchange = words.exchange.text(frames.exchange.values[row])
            entry.routing_key = words.routing_key.text(frames.routing_key.values[row])
            self.settler.expect_return(channel, entry)
        elif entry.number < 0:
            return None
        return entry

    def _answer(self, session, lane, frames, row, kind, side):
        """An ack, nack or reject of either side."""
        channel: Channel = lane.channel
        outcome: cython.int
        flags: cython.int = frames.flags.values[row]
        if channel is None:
            channel = slow_methods.begin_channel(session, lane, self._capture(frames, row))
        tag: cython.longlong = frames.delivery_tag.values[row]
        if tag < 0:
            return 0
        number: cython.longlong = frames.packet_number.values[row]
        ts_ns: cython.longlong = frames.ts_ns.values[row]
        multiple: cython.bint = flags & _MULTIPLE != 0
        if side == 1:
            if kind != _REJECT:
                outcome = _CONFIRMED if kind == _ACK else _REJECTED
                self.settler.confirm(channel, tag, multiple, outcome, number, ts_ns)
            return 0
        if channel.deaf:
            return 0
        outcome = _REQUEUED if flags & _REQUEUE else _DISCARDED
        if kind == _ACK:
            outcome = _ACKED
        self.settler.acknowledge(channel, tag, multiple, outcome, number, ts_ns)
        return 0

    def _other(self, session, lane, frames, row, method, side):
        """Any other method: it may answer a request, change the state, be a request."""
        if session.over and method != self.farewell:
            return 0
        request: Request = None
        subject: object = None
        if lane.requests:
            request = self._reply(lane, frames, row, method, side)
        if lane.number == 0:
            if self.connection_handlers[method] is not None:
                event: Event = Event(self.names[method], side, frames, row)
                subject = self.connection_handlers[method](self, session, event, request)
        else:
            subject = self._on_channel(session, lane, frames, row, method, side, request)
        if self.synchronous[method] and not (frames.flags.values[row] & _NO_WAIT):
            self._ask(session, lane, frames, row, method, side, subject)
        return 0

    def _on_channel(self, session, lane, frames, row, method, side, request):
        """Let a method change the state of its channel; gives what its handler does."""
        name: str = self.names[method]
        channel: Channel = lane.channel
        handler: object = self.channel_handlers[method]
        if name == "channel.open":
            slow_methods.open_channel(
                self, session, lane, self._capture(frames, row), Event(name, side, frames, row)
            )
            return None
        if channel is None:
            if name == "channel.close-ok":
                return None
            channel = slow_methods.begin_channel(session, lane, self._capture(frames, row))
        if handler is None or (side == 0 and channel.deaf and self.discarded[method]):
            return None
        return handler(self, lane, channel, Event(name, side, frames, row), request)

    def _ask(self, session, lane, frames, row, method, side, subject):
        """A request that waits for its reply from now on."""
        if (lane.dead[side] or session.dead[side]) and not self.closes[method]:
            return 0
        if len(lane.requests) >= self.limits.requests:
            return self.settler.hit("requests")
        request: Request = Request(method, side, frames, row)
        request.subject = subject
        lane.requests.append(request)
        frames.pending += 1
        return 0

    def _reply(self, lane, frames, row, method, side):
        """The request that a method answers, whose frame then says so; None for none."""
        place: cython.Py_ssize_t = 0
        request: Request = None
        while place < len(lane.requests):
            request = lane.requests[place]
            if request.side != side and self.replies[request.method * self.count + method]:
                break
            place += 1
        if place == len(lane.requests):
            return None
        del lane.requests[place]
        rows: FrameRows = request.rows
        rows.pending -= 1
        if rows.wanted and not rows.given:
            rows.response_packet_number.values[request.row] = frames.packet_number.values[row]
            if request.ts_ns != _NULL and frames.ts_ns.values[row] != _NULL:
                rows.response_ns.values[request.row] = frames.ts_ns.values[row] - request.ts_ns
        return request

    def _attach(self, messages, row):
        """A message's row is there: give it what is known of its method."""
        ordinal: cython.longlong = messages.ordinal.values[row] - self.first_opened
        entry: Entry
        if ordinal < 0:
            entry = self.late.pop(messages.ordinal.values[row], None)
        else:
            entry = self.opened[ordinal]
            self.opened[ordinal] = None
        if len(self.opened) > 4096 and ordinal == len(self.opened) - 1:
            self._put_late()
        if entry is None:
            return 0
        entry.mark = messages.mark.values[row]
        if entry.kind == _PUBLISH:
            if entry.number > 0:
                messages.publish_number.values[row] = entry.number
        elif entry.kind == _RETURN:
            words = messages.vocabularies
            entry.exchange = words.exchange.text(messages.exchange.values[row])
            entry.routing_key = words.routing_key.text(messages.routing_key.values[row])
            return self.settler.give_back(entry)
        elif entry.consumer is not None and entry.consumer.queue is not None:
            messages.queue.values[row] = self._queue_code(messages, entry.consumer)
        return self.settler.attach(entry, messages, row)

    def _queue_code(self, messages, consumer):
        """The code of a consumer's queue in the messages' vocabulary."""
        if consumer.vocabulary is not messages.vocabularies.queue:
            octets: bytes = consumer.queue.encode()
            self.reader.read_from(octets)
            consumer.vocabulary = messages.vocabularies.queue
            consumer.code = self.reader.code_in(consumer.vocabulary, 0, len(octets))
        return consumer.code

    def _put_late(self):
        """Keep contents whose rows are long in coming apart."""
        place: cython.longlong
        entry: Entry
        for place in range(len(self.opened)):
            entry = self.opened[place]
            if entry is not None:
                self.late[self.first_opened + place] = entry
        self.first_opened += len(self.opened)
        self.opened.clear()
        return 0

    def _lose(self, peer, direction):
        """Frames of one direction may be missing here."""
        if peer.session is not None and peer.client_direction >= 0:
            slow_methods.lose(peer.session, direction ^ peer.client_direction)
        return 0

    def end(self, peer, capture):
        """A connection is over, or the capture is: what is open stays as it is.

        `capture` is the one of a connection without a single method.
        """
        session: Session = peer.session
        if session is None:
            session = self._begin(peer, capture)
        slow_methods.end_connection(self, session)
        self.lanes -= len(session.lanes)
        if self.wants_connections:
            row = connection_row(session, plan.DIALECT_NAMES[peer.dialect])
            self.connections.append(row)
        peer.session = None
        return 0

    def add_channel(self, channel):
        """A channel incarnation is over."""
        self.settler.finish(channel)
        if self.wants_channels:
            self.channels.append(channel_row(channel))
        return 0

    @property
    def rows(self):
        """Rows of `connections` and `channels` since the last `take`."""
        return len(self.connections) + len(self.channels)

    def take(self):
        """Give the rows of `connections` and `channels` since the last call away, as two lists."""
        taken = (self.connections, self.channels)
        self.connections = []
        self.channels = []
        return taken
