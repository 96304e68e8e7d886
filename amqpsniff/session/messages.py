# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The methods that come with every message: publishes, deliveries, returns, and what answers them.

`MessageMethods` is the part of `tracker.Tracker` that follows them.
"""

import cython

from amqpsniff.columns import NULL
from amqpsniff.decode import plan
from amqpsniff.session import kinds, state

if cython.compiled:
    from cython.cimports.amqpsniff.decode.rows import (  # type: ignore[import-not-found]
        Vocabularies,
    )
    from cython.cimports.amqpsniff.session.attaching import Attacher  # type: ignore
    from cython.cimports.amqpsniff.session.event import Request  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.methods import (  # type: ignore[import-not-found]
        begin_channel,
    )
    from cython.cimports.amqpsniff.session.pairing import Pairing  # type: ignore[import-not-found]
    from cython.cimports.amqpsniff.session.state import (  # type: ignore[import-not-found]
        Channel,
        Consumer,
        Entry,
        entry_of,
    )
else:
    from amqpsniff.decode.rows import Vocabularies
    from amqpsniff.session.attaching import Attacher
    from amqpsniff.session.event import Request
    from amqpsniff.session.methods import begin_channel
    from amqpsniff.session.pairing import Pairing
    from amqpsniff.session.state import Channel, Consumer, Entry, entry_of

_NULL = cython.declare(cython.longlong, NULL)
_PUBLISH = cython.declare(cython.int, kinds.PUBLISH)
_DELIVER = cython.declare(cython.int, kinds.DELIVER)
_GET_OK = cython.declare(cython.int, kinds.GET_OK)
_RETURN = cython.declare(cython.int, kinds.RETURN)
_ACK = cython.declare(cython.int, kinds.ACK)
_REJECT = cython.declare(cython.int, kinds.REJECT)
_MANDATORY = cython.declare(cython.int, plan.MANDATORY)
_IMMEDIATE = cython.declare(cython.int, plan.IMMEDIATE)
_MULTIPLE = cython.declare(cython.int, plan.MULTIPLE)
_REQUEUE = cython.declare(cython.int, plan.REQUEUE)
_FLAGS_CUT = cython.declare(cython.int, plan.FLAGS_CUT)
_CUT = cython.declare(cython.int, plan.CUT)

_AUTOMATIC = cython.declare(cython.int, state.AUTOMATIC)
_CONFIRMED = cython.declare(cython.int, state.CONFIRMED)
_REJECTED = cython.declare(cython.int, state.REJECTED)
_ACKED = cython.declare(cython.int, state.ACKED)
_REQUEUED = cython.declare(cython.int, state.REQUEUED)
_DISCARDED = cython.declare(cython.int, state.DISCARDED)


class MessageMethods(Attacher):
    """Follows the methods of messages: `carry` those that carry content, `answer` the others, or,
    where nobody asks what becomes of messages, `source` alone.
    """

    def __init__(self, limits, log):
        Attacher.__init__(self, limits, log)
        self.pairing = Pairing(limits, self.settler)

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
