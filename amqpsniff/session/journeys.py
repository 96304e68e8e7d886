# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The way of messages from connection to connection: a publish, and the deliveries of it.

A broker gives a message no name, so a delivery is matched by what it is: virtual host, exchange,
routing key, size, properties and, where it was computed, the hash of the body (`likeness`).
Publishes that are alike form a line, and each queue hands them on in their order: the next that it
has not handed on yet is the one. A delivery that says it is not the first (`redelivered`, or
dead-lettered) is matched with what its queue has handed on before.

It is `exact` when only one publish can be meant and it has a message id; `likely` when only one of
those remembered can be meant; `ambiguous` when there were several alike and the order decided.

A queue that is not known (its consumer began before the capture) is the routing key with the
default exchange; with others every consumer is taken for one of a queue of its own.
"""

import json

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import rows as decoded
from amqpsniff.session import kinds, links
from amqpsniff.session.limits import Memory

if cython.compiled:
    from cython.cimports.amqpsniff.decode.rows import (  # type: ignore[import-not-found]
        Vocabularies,
    )
    from cython.cimports.amqpsniff.decode.state import Connection  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.calls import Call, Calls  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.likeness import (  # type: ignore[import-not-found]
        Likeness,
        coded,
        is_direct,
        mixed,
    )
    from cython.cimports.amqpsniff.session.lines import (  # type: ignore[import-not-found]
        Line,
        Lines,
        Publish,
    )
    from cython.cimports.amqpsniff.session.links import Links  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.state import Session  # type: ignore[import-not-found]
else:
    from amqpsniff.decode.rows import Vocabularies
    from amqpsniff.decode.state import Connection
    from amqpsniff.session.calls import Call, Calls
    from amqpsniff.session.likeness import Likeness, coded, is_direct, mixed
    from amqpsniff.session.lines import Line, Lines, Publish
    from amqpsniff.session.links import Links
    from amqpsniff.session.state import Session

_NULL = cython.declare(cython.longlong, NULL)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_DELIVER = cython.declare(cython.int, kinds.DELIVER)
_GET_OK = cython.declare(cython.int, kinds.GET_OK)
_INCOMPLETE = cython.declare(cython.int, decoded.INCOMPLETE)
_EXACT = cython.declare(cython.int, links.EXACT)
_LIKELY = cython.declare(cython.int, links.LIKELY)
_AMBIGUOUS = cython.declare(cython.int, links.AMBIGUOUS)
_ANYWHERE = cython.declare(cython.ulonglong, 0)
_REPLY = cython.declare(cython.ulonglong, 0x2545F4914F6CDD1D)
_SLASH = b"/"


class Place:
    """A connection of a batch: what its rows have in common."""

    def __init__(self, session: Session, connection_id, vhost):
        self.session = session
        self.connection_id = connection_id
        self.vhost = vhost


class Journeys:
    """Links the rows of messages; `hits` counts by name what was forgotten because of a limit."""

    def __init__(self, memory=None):
        self.memory = memory or Memory()
        self.likeness = Likeness()
        self.calls = Calls(self.memory.calls, self.memory.age_ns)
        self.lines = Lines(self.memory)
        self.vhosts = []
        self.unknown = False
        self.places = {}
        self.rows = None
        self.kinds = kinds.KINDS

    @property
    def hits(self):
        """How often each limit was reached."""
        return self.lines.hits | ({"calls": self.calls.hits} if self.calls.hits else {})

    def feed(self, messages, first, peers):
        """Link the rows from `first` on; `peers` are the decoder's connections by code."""
        row: cython.longlong
        method: cython.int
        kind: cython.int
        if messages.rows <= first:
            return 0
        if self.rows is not messages:
            self.rows = messages
            self.places.clear()
            if messages.links is None:
                messages.links = Links()
        found: Links = messages.links
        found.reserve(messages.capacity)
        for row in range(first, messages.rows):
            method = messages.method.values[row]
            if method < 0 or method >= len(self.kinds):
                continue
            kind = self.kinds[method]
            if kind == _PUBLISH:
                if messages.sender.values[row] == 0:
                    self._publish(messages, found, row, peers)
            elif (kind == _DELIVER or kind == _GET_OK) and messages.sender.values[row] == 1:
                self._deliver(messages, found, row, peers)
        return 0

    def end(self, peer):
        """A connection is over; call it before the tracker's `end`."""
        if peer.session is not None:
            self.calls.end(peer.session)

    # publishes

    def _publish(self, messages, found, row, peers):
        """Remember a publish; it may be a request, or a reply."""
        if messages.body_size.values[row] == _NULL or messages.status.values[row] == _INCOMPLETE:
            return 0
        words: Vocabularies = messages.vocabularies
        place: Place = self._place(messages, row, peers)
        routing_key: cython.ulonglong = coded(words.routing_key, messages.routing_key.values[row])
        exchange: cython.ulonglong = coded(words.exchange, messages.exchange.values[row])
        h: cython.ulonglong = mixed(mixed(self.likeness.of(messages, row), exchange), routing_key)
        publish: Publish = Publish()
        publish.key = mixed(h, place.vhost)
        publish.packet_number = messages.packet_number.values[row]
        publish.ts_ns = messages.ts_ns.values[row]
        publish.connection_id = place.connection_id
        publish.identified = row < messages.message_id.rows and messages.message_id.valid[row]
        if self.calls.waiting:
            publish.answers = self._reply(messages, found, row, place)
        if messages.reply_to.values[row] >= 0:
            publish.asks = self._ask(messages, row, place)
        self.lines.remember(publish)
        return 0

    # deliveries

    def _deliver(self, messages, found, row, peers):
        """Find the publish of a delivery, and the request that it brings the reply to."""
        if messages.body_size.values[row] == _NULL:
            return 0
        words: Vocabularies = messages.vocabularies
        place: Place = self._place(messages, row, peers)
        like: Likeness = self.likeness
        exchange: cython.ulonglong = coded(words.exchange, messages.exchange.values[row])
        routing_key: cython.ulonglong = coded(words.routing_key, messages.routing_key.values[row])
        h: cython.ulonglong = like.of(messages, row)
        line: Line = self._line(mixed(mixed(h, exchange), routing_key), place)
        if line is None and like.died:
            line = self._line(mixed(mixed(h, like.exchange), like.routing_key), place)
        publish: Publish = None
        if line is not None:
            again: cython.bint = messages.redelivered.values[row] == 1
            queue: cython.ulonglong = self._queue(messages, row, place)
            publish = self.lines.meant(line, queue, again or like.died)
            if publish is not None:
                self._link(messages, found, row, publish, again)
        if self.calls.waiting:
            self._bring(messages, found, row, place, publish)
        return 0

    def _line(self, h, place):
        """The line of publishes with a hash, in the virtual host of a connection."""
        line: Line = self.lines.get(mixed(h, place.vhost))
        vhost: cython.ulonglong
        if line is not None:
            return line
        if place.vhost != _ANYWHERE:
            return self.lines.get(mixed(h, _ANYWHERE)) if self.unknown else None
        for each in self.vhosts:
            vhost = each
            line = self.lines.get(mixed(h, vhost))
            if line is not None:
                return line
        return None

    def _queue(self, messages, row, place):
        """What tells the queue of a delivery from others."""
        words: Vocabularies = messages.vocabularies
        session: Session = place.session
        code: cython.int = messages.queue.values[row]
        if code >= 0 and not self.likeness.streamed:
            return coded(words.queue, code)
        if code < 0 and words.exchange.text(messages.exchange.values[row]) == "":
            return coded(words.routing_key, messages.routing_key.values[row])
        h: cython.ulonglong = coded(words.consumer_tag, messages.consumer_tag.values[row])
        number: cython.longlong = -1 if session is None else session.number
        return mixed(mixed(h, number & _MASK64), messages.channel.values[row] & _MASK64)

    def _link(self, messages, found, row, publish, again):
        """Say in a delivery's row where it was published."""
        ns: cython.longlong = _NULL
        match: cython.int = _AMBIGUOUS
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        number: cython.longlong = -1
        if ts_ns != _NULL and publish.ts_ns != _NULL:
            ns = ts_ns - publish.ts_ns
        if self.lines.candidates == 1:
            match = _EXACT if publish.identified else _LIKELY
        if not again and (self.lines.advanced or not self.likeness.died):
            publish.deliveries += 1
            number = publish.deliveries
        return found.published(row, publish.packet_number, publish.connection_id, ns, match, number)

    # requests and replies

    def _ask(self, messages, row, place):
        """Remember a request."""
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.reply_to.values[row]
        if words.reply_to.ends[code + 1] == words.reply_to.ends[code]:
            return None
        call: Call = Call(
            None if place.session is None else self.calls.asker(place.session),
            messages.packet_number.values[row],
            messages.ts_ns.values[row],
            place.connection_id,
        )
        h: cython.ulonglong
        if is_direct(words.reply_to, code):
            h = self._on_channel(messages, row, place)
        else:
            h = coded(words.reply_to, code)
        key: cython.ulonglong = mixed(self._correlated(messages, row, h), place.vhost)
        self.calls.ask(call, key, words.expiration.text(messages.expiration.values[row]))
        return call

    def _on_channel(self, messages, row, place):
        """The hash that stands for direct replies to a channel."""
        session: Session = place.session
        number: cython.longlong = -1 if session is None else session.number
        return mixed(mixed(_REPLY, number & _MASK64), messages.channel.values[row] & _MASK64)

    def _correlated(self, messages, row, h):
        """A hash of an address, with a message's correlation id."""
        return mixed(h, self.likeness.text(messages.correlation_id, row))

    def _waiting(self, h, place, delivered):
        """The request that a reply to a hash answers, in the virtual host of a connection."""
        call: Call = self.calls.find(mixed(h, place.vhost), delivered)
        vhost: cython.ulonglong
        if call is not None:
            return call
        if place.vhost != _ANYWHERE:
            return self.calls.find(mixed(h, _ANYWHERE), delivered) if self.unknown else None
        for each in self.vhosts:
            vhost = each
            call = self.calls.find(mixed(h, vhost), delivered)
            if call is not None:
                return call
        return None

    def _reply(self, messages, found, row, place):
        """The request that a publish answers; None for none."""
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.routing_key.values[row]
        if code < 0:
            return None
        key: cython.ulonglong = self._correlated(messages, row, coded(words.routing_key, code))
        call: Call = self._waiting(key, place, False)
        exchange = words.exchange.text(messages.exchange.values[row])
        if call is None and exchange:
            address: bytes = exchange.encode() + _SLASH + words.routing_key.text(code).encode()
            key = self._correlated(messages, row, self.likeness.octets(address))
            call = self._waiting(key, place, False)
        if call is None:
            return None
        call.replied = True
        self._say_reply(messages, found, row, call)
        return call

    def _bring(self, messages, found, row, place, publish):
        """Say what a delivery is the reply to, and learn where the reply to a request will go."""
        words: Vocabularies = messages.vocabularies
        call: Call = None
        code: cython.int = messages.reply_to.values[row]
        if publish is not None:
            if publish.asks is not None and code >= 0 and is_direct(words.reply_to, code):
                key: cython.ulonglong = coded(words.reply_to, code)
                key = mixed(self._correlated(messages, row, key), place.vhost)
                self.calls.wait(publish.asks, key)
            call = publish.answers
        if call is None and (publish is None or publish.asks is None):
            call = self._unseen(messages, row, place)
        if call is None or call.forgotten:
            return 0
        call.replied = True
        call.delivered = True
        return self._say_reply(messages, found, row, call)

    def _unseen(self, messages, row, place):
        """The request that a delivery answers whose publish was not captured."""
        words: Vocabularies = messages.vocabularies
        code: cython.int = messages.routing_key.values[row]
        if code < 0:
            return None
        h: cython.ulonglong = coded(words.routing_key, code)
        if is_direct(words.routing_key, code):
            h = self._on_channel(messages, row, place)
        return self._waiting(self._correlated(messages, row, h), place, True)

    def _say_reply(self, messages, found, row, call):
        """Say in a message's row what request it answers."""
        ns: cython.longlong = _NULL
        ts_ns: cython.longlong = messages.ts_ns.values[row]
        if ts_ns != _NULL and call.ts_ns != _NULL:
            ns = ts_ns - call.ts_ns
        late: cython.bint = self.calls.is_late(call, ts_ns)
        return found.replies(row, call.packet_number, call.connection_id, ns, late)

    # where messages are

    def _place(self, messages, row, peers):
        """The connection of a row."""
        code: cython.int = messages.connection.values[row]
        place: Place = self.places.get(code)
        if place is None:
            peer: Connection = peers[code]
            session: Session = peer.session
            vhost: cython.ulonglong = self._vhost(session)
            place = Place(session, peer.name()[0], vhost)
            self.places[code] = place
            self.unknown = self.unknown or vhost == _ANYWHERE
            if vhost not in self.vhosts and len(self.vhosts) < self.memory.vhosts:
                self.vhosts.append(vhost)
        return place

    def _vhost(self, session):
        """What stands for the virtual host of a connection; `_ANYWHERE` when it is not known."""
        octets = None if session is None else session.facts.get("connection.open")
        if not octets:
            return _ANYWHERE
        try:
            arguments = json.loads(octets)
        except ValueError:
            return _ANYWHERE
        vhost = arguments.get("virtual_host") if isinstance(arguments, dict) else None
        return self.likeness.octets(vhost.encode()) if isinstance(vhost, str) else _ANYWHERE
