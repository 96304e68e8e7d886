# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The way of messages from connection to connection: a publish, and the deliveries of it.

A broker gives a message no name, so a delivery is matched by what it is: virtual host, exchange,
routing key, size, properties and, where it was computed, the hash of the body (`likeness`).
Publishes that are alike form a line, and each queue hands them on in their order: the next that it
has not handed on yet is the one. A delivery that says it is not the first (`redelivered`, or
dead-lettered) is matched with what its queue has handed on before.

It is `exact` when only one publish can be meant and it has a message id; `likely` when only one of
those remembered can be meant; `ambiguous` when there were several alike and the order decided, also
what such a choice left over.

A queue that is not known (its consumer began before the capture) is the routing key with the
default exchange; with others every consumer is taken for one of a queue of its own.

A linker is given messages one after the other, as `Linkable`s, whoever has read them.
"""

import cython
from cython.cimports.amqpsniff.session.calls import Call, Calls
from cython.cimports.amqpsniff.session.likeness import mixed
from cython.cimports.amqpsniff.session.lines import Lines

from amqpsniff.columns import NULL
from amqpsniff.session import linkable, links
from amqpsniff.session.limits import Memory

_NULL = cython.declare(cython.longlong, NULL)
_MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_EXACT = cython.declare(cython.int, links.EXACT)
_LIKELY = cython.declare(cython.int, links.LIKELY)
_AMBIGUOUS = cython.declare(cython.int, links.AMBIGUOUS)
_PUBLISH = cython.declare(cython.longlong, linkable.PUBLISH)
_IDENTIFIED = cython.declare(cython.longlong, linkable.IDENTIFIED)
_AGAIN = cython.declare(cython.longlong, linkable.AGAIN)
_DIED = cython.declare(cython.longlong, linkable.DIED)
_OWN_QUEUE = cython.declare(cython.longlong, linkable.OWN_QUEUE)
_ASKS = cython.declare(cython.longlong, linkable.ASKS)
_DIRECT_REPLY = cython.declare(cython.longlong, linkable.DIRECT_REPLY)
_ROUTED = cython.declare(cython.longlong, linkable.ROUTED)
_DIRECT_KEY = cython.declare(cython.longlong, linkable.DIRECT_KEY)
_ADDRESSED = cython.declare(cython.longlong, linkable.ADDRESSED)
_REPLY = cython.declare(cython.ulonglong, 0x2545F4914F6CDD1D)
_ANYWHERE = cython.declare(cython.ulonglong, 0)

ANYWHERE = 0
"""The virtual host of a connection whose own is not known."""


class Linker:
    """Links messages; `hits` counts by name what was forgotten because of a limit."""

    def __init__(self, memory=None):
        self.memory = memory or Memory()
        self.calls = Calls(self.memory.calls, self.memory.age_ns)
        self.lines = Lines(self.memory)
        self.vhosts = []
        self.unknown = False
        self.last_vhost = 0
        self.any_vhost = False

    @property
    def hits(self):
        """How often each limit was reached."""
        return self.lines.hits | ({"calls": self.calls.hits} if self.calls.hits else {})

    def link(self, one):
        """Find out what the next message belongs to."""
        one.clear()
        if not self.any_vhost or one.vhost != self.last_vhost:
            self._enter(one.vhost)
        if one.flags & _PUBLISH:
            return self._publish(one)
        return self._deliver(one)

    def _enter(self, vhost):
        """A message of another virtual host than the last one's."""
        self.last_vhost = vhost
        self.any_vhost = True
        self.unknown = self.unknown or vhost == _ANYWHERE
        if vhost not in self.vhosts and len(self.vhosts) < self.memory.vhosts:
            self.vhosts.append(vhost)
        return 0

    # publishes

    def _publish(self, one):
        """Remember a publish; it may be a request, or a reply."""
        at: cython.longlong = self.lines.at(
            self.lines.remember(
                mixed(one.line, one.vhost),
                one.packet_number,
                one.sent_ns,
                one.connection_id,
                one.flags & _IDENTIFIED != 0,
            )
        )
        if self.calls.waiting:
            self.lines.answers[at] = self._reply(one)
        if one.flags & _ASKS:
            self.lines.asks[at] = self._ask(one)
        return 0

    # deliveries

    def _deliver(self, one):
        """Find the publish of a delivery, and the request that it brings the reply to."""
        died: cython.bint = one.flags & _DIED != 0
        again: cython.bint = one.flags & _AGAIN != 0
        line: cython.longlong = self._line(one.line, one.vhost)
        if line < 0 and died:
            line = self._line(one.other, one.vhost)
        publish: cython.longlong = -1
        if line >= 0:
            queue: cython.ulonglong = one.queue
            if one.flags & _OWN_QUEUE:
                queue = mixed(mixed(queue, one.connection & _MASK64), one.channel & _MASK64)
            publish = self.lines.meant(line, queue, again or died)
            if publish >= 0:
                self._say_publish(one, self.lines.at(publish), again, died)
        if self.calls.waiting:
            self._bring(one, publish)
        return 0

    def _line(self, h, vhost):
        """The line of publishes with a hash, in a virtual host; -1 for none."""
        line: cython.longlong = self.lines.get(mixed(h, vhost))
        other: cython.ulonglong
        if line >= 0:
            return line
        if vhost != _ANYWHERE:
            return self.lines.get(mixed(h, _ANYWHERE)) if self.unknown else -1
        for each in self.vhosts:
            other = each
            line = self.lines.get(mixed(h, other))
            if line >= 0:
                return line
        return -1

    def _say_publish(self, one, at, again, died):
        """Say of a delivery where it was published; the publish stands at this place."""
        lines: Lines = self.lines
        one.published = True
        one.published_number = lines.packet_numbers[at]
        one.published_id = lines.connection_ids[at]
        if one.sent_ns != _NULL and lines.times[at] != _NULL:
            one.published_ns = one.sent_ns - lines.times[at]
        one.link_confidence = _AMBIGUOUS
        if lines.candidates == 1 and not lines.doubted[at]:
            one.link_confidence = _EXACT if lines.identified[at] else _LIKELY
        if not again and (lines.advanced or not died):
            lines.delivered[at] += 1
            one.delivery_number = lines.delivered[at]
        return 0

    # requests and replies

    def _ask(self, one):
        """Remember a request."""
        call: Call = Call(
            None if one.connection < 0 else self.calls.asker(one.connection, one.session),
            one.packet_number,
            one.sent_ns,
            one.connection_id,
            one.deadline,
        )
        h: cython.ulonglong = one.reply_to
        if one.flags & _DIRECT_REPLY:
            h = _on_channel(one)
        self.calls.ask(call, mixed(mixed(h, one.correlation), one.vhost))
        return call

    def _waiting(self, h, vhost, delivered):
        """The request that a reply to a hash answers, in a virtual host."""
        call: Call = self.calls.find(mixed(h, vhost), delivered)
        other: cython.ulonglong
        if call is not None:
            return call
        if vhost != _ANYWHERE:
            return self.calls.find(mixed(h, _ANYWHERE), delivered) if self.unknown else None
        for each in self.vhosts:
            other = each
            call = self.calls.find(mixed(h, other), delivered)
            if call is not None:
                return call
        return None

    def _reply(self, one):
        """The request that a publish answers; None for none."""
        if not one.flags & _ROUTED:
            return None
        call: Call = self._waiting(mixed(one.routing_key, one.correlation), one.vhost, False)
        if call is None and one.flags & _ADDRESSED:
            call = self._waiting(mixed(one.other, one.correlation), one.vhost, False)
        if call is not None:
            call.replied = True
            self._say_reply(one, call)
        return call

    def _bring(self, one, publish):
        """Say what a delivery is the reply to, and learn where the reply to a request will go."""
        call: Call = None
        asked: Call = None
        if publish >= 0:
            asked = self.lines.asks[self.lines.at(publish)]
            call = self.lines.answers[self.lines.at(publish)]
            if asked is not None and one.flags & _DIRECT_REPLY:
                key: cython.ulonglong = mixed(one.reply_to, one.correlation)
                self.calls.wait(asked, mixed(key, one.vhost))
        if call is None and asked is None:
            call = self._unseen(one)
        if call is None or call.forgotten:
            return 0
        call.replied = True
        call.delivered = True
        return self._say_reply(one, call)

    def _unseen(self, one):
        """The request that a delivery answers whose publish was not captured."""
        if not one.flags & _ROUTED:
            return None
        h: cython.ulonglong = one.routing_key
        if one.flags & _DIRECT_KEY:
            h = _on_channel(one)
        return self._waiting(mixed(h, one.correlation), one.vhost, True)

    def _say_reply(self, one, call):
        """Say of a message what request it answers."""
        one.replies = True
        one.request_number = call.packet_number
        one.request_id = call.connection_id
        if one.sent_ns != _NULL and call.ts_ns != _NULL:
            one.request_ns = one.sent_ns - call.ts_ns
        one.reply_late = self.calls.is_late(call, one.sent_ns)
        return 0


def _on_channel(one):
    """The hash that stands for direct replies to a message's channel."""
    return mixed(mixed(_REPLY, one.connection & _MASK64), one.channel & _MASK64)
