# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Outcomes of messages: confirms, returns and acknowledgements find the entries they refer to.

An entry's outcome is written into its message's row, at once or when the row is there. A row that
may still change counts in its rows' `pending`, so that whoever gives rows out can wait for them.
"""

from __future__ import annotations

from array import array
from collections import deque
from operator import attrgetter

import cython
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.decode.rows import MessageRows
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import (
    ACKED,
    CONFIRMED,
    REQUEUED,
    RETURNED,
    UNCONFIRMED,
    UNSETTLED,
)
from cython.cimports.amqpsniff.session.counts import Histogram
from cython.cimports.amqpsniff.session.entities import (
    Channel,
    Consumer,
    Ledger,
    MessageTimes,
    PendingMessage,
)
from cython.cimports.amqpsniff.session.mandatory_publishes import (
    add_returnable,
    all_returnable,
    discard_returnable,
    find_returned,
    index_by_mark,
)
from cython.cimports.amqpsniff.session.midstream_confirms import MidstreamConfirms
from cython.cimports.amqpsniff.session.rules.occasions import LATE_CONFIRM_NS, PAUSED_ACKS_NS

from amqpsniff.session import entities
from amqpsniff.session.codes import OUTCOMES
from amqpsniff.session.midstream_confirms import FEW_PLACES, MAX_ALL_PLACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.byteorder import IntView
    from amqpsniff.session.recent_latencies import RecentLatencies

_BY_PLACE = attrgetter("packet_number", "number")
_MAX_WAIT_NS = cython.declare(cython.longlong, entities.MAX_WAIT_NS)
_FEW_PLACES = cython.declare(cython.longlong, FEW_PLACES)
_MAX_ALL_PLACES = cython.declare(cython.longlong, MAX_ALL_PLACES)
_UNKNOWN = cython.declare(cython.int, -1)

REFUSAL_NS = 2_000_000_000
"""Time within which a broker closes the channel because of an acknowledgement that it refuses:
RabbitMQ does so when it reads it. What it did not refuse by then took effect."""
_REFUSAL_NS = cython.declare(cython.longlong, REFUSAL_NS)


class Settler:
    """Outcomes of messages: finds those that a confirm, return or acknowledgement is about.

    `hits` counts, by name of the limit, what was not remembered because of one. `emitter`, when
    there is one, is told of what rules want to know. `ended` counts messages by outcome,
    `histograms` their times, once `measure` was called, and `bounds` those to confirms of channels
    from before the capture, which are lower bounds; `recent_latencies`, where it was set, has the
    latest times. `scope`: the `Census` whose part of the traffic is counted, None for all.
    `estimates`: somebody asks for such bounds; `more_places` counts what they need.
    """

    unanswered: Any
    most: int
    max_disorder: int
    max_returnable: int
    outstanding: int

    emitter: Any
    hits: dict[Any, Any]
    histograms: list[Any]
    scope: Any
    bounds: Histogram
    estimates: cython.bint
    more_places: int
    recent_latencies: RecentLatencies
    ended: IntView

    def __init__(self, limits: Any) -> None:
        self.most = limits.outstanding
        self.max_disorder = limits.disorder
        self.max_returnable = limits.returnable
        self.outstanding = 0
        self.unanswered: Any = deque()
        self.hits = {}
        self.emitter = None
        self.histograms = self.bounds = self.scope = None
        self.estimates = False
        self.more_places = 0
        self.recent_latencies = None
        self.ended = array("q", bytes(8 * len(OUTCOMES)))

    def limit_reached(self, name: str) -> cython.int:
        """A limit was reached."""
        self.hits[name] = self.hits.get(name, 0) + 1
        return 0

    def measure(self) -> None:
        """Keep the times of outcomes from now on, as a `counts.Histogram` each."""
        self.histograms = [Histogram() for _ in OUTCOMES]
        self.bounds = Histogram()
        self.estimates = True

    def endings(self) -> Any:
        """Number of messages with each of `OUTCOMES`, as a list."""
        return [self.ended[outcome] for outcome in range(len(OUTCOMES))]

    def settle(
        self,
        entry: PendingMessage,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """An entry has its outcome, by a packet at a time."""
        entry.outcome = outcome
        entry.outcome_number = number
        entry.outcome_ns = ts_ns
        counts: cython.bint = self.counts(entry)
        self.ended[outcome] += counts
        if entry.may_return:
            self.outstanding -= discard_returnable(entry)
        took: cython.longlong = elapsed(entry.ts_ns, ts_ns)
        if self.histograms is not None and took != NULL and counts:
            histogram: Histogram = self.histograms[outcome]
            histogram.add(took)
            if self.recent_latencies is not None:
                self.recent_latencies.add(entry.channel.session, outcome, took)
        if entry.rows is not None:
            self._write(entry)
            self._freeze_row(entry)
        return 0

    def counts(self, entry: PendingMessage) -> cython.bint:
        """True if a message is of the part of the traffic that is counted."""
        if self.scope is None:
            return True
        channel: Channel = entry.channel
        return self.scope.includes(channel.session.connection, channel.number, entry.ts_ns)

    def _write(self, entry: PendingMessage) -> cython.int:
        rows: MessageRows = entry.rows
        if rows.given:
            return 0
        rows.outcome.values[entry.row] = entry.outcome
        if entry.outcome_number >= 0:
            rows.outcome_packet_number.values[entry.row] = entry.outcome_number
            rows.outcome_ns.values[entry.row] = elapsed(entry.ts_ns, entry.outcome_ns)
        return 0

    def _freeze_row(self, entry: PendingMessage) -> cython.int:
        """An entry's row no longer changes."""
        if entry.open_row:
            entry.open_row = False
            entry.rows.settle(entry.row)
        return 0

    def _close_row(self, entry: PendingMessage, outcome: cython.int) -> cython.int:
        """An entry will not be settled: `outcome` says so, -1 for null."""
        if entry.outcome >= 0 or entry.ended:
            return 0
        entry.ended = True
        entry.outcome = outcome
        entry.outcome_number = -1
        if outcome >= 0:
            self.ended[outcome] += self.counts(entry)
        if entry.rows is not None:
            if outcome >= 0:
                self._write(entry)
            self._freeze_row(entry)
        return 0

    def attach(self, entry: PendingMessage, rows: MessageRows, row: cython.longlong) -> cython.int:
        """An entry's row is there."""
        entry.rows = rows
        entry.row = row
        if entry.outcome >= 0:
            return self._write(entry)
        if entry.ended:
            return 0
        entry.open_row = True
        rows.wait(row)
        if entry.may_return:
            index_by_mark(entry)
        return 0

    # entries begin

    def publish(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A numbered publish."""
        if channel.unconfirmed == 0:
            times = channel.own_times()
            times.waited_publishes += 1
        channel.unconfirmed += 1
        if channel.unconfirmed > channel.times.unconfirmed_max:
            channel.own_times().unconfirmed_max = channel.unconfirmed
        if self.outstanding >= self.most:
            channel.publishes_uncertain = True
            return self.limit_reached("outstanding")
        self.outstanding += 1
        if channel.publishes.shared:
            channel.publishes = Ledger()
        channel.publishes.add(entry)
        return 0

    def publish_unnumbered(
        self, channel: Channel, entry: PendingMessage, late: cython.bint
    ) -> cython.int:
        """A publish on a channel from before the capture; `late`: its frame is, see `Tracker`."""
        if not self.estimates:
            return 0
        if channel.midstream_confirms is None:
            channel.midstream_confirms = MidstreamConfirms()
        confirms: MidstreamConfirms = channel.midstream_confirms
        if confirms.is_crowded() and self.more_places < _MAX_ALL_PLACES:
            self.more_places += confirms.grow()
        return confirms.publish(entry.packet_number, entry.ts_ns, late)

    def deliver(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery that may be acknowledged."""
        before: PendingMessage = None
        if channel.tentative is not None:
            self.accept_until(channel, entry.ts_ns)
        if self.outstanding >= self.most:
            channel.deliveries_uncertain = True
            self.limit_reached("outstanding")
        elif channel.deliveries.disorder > self.max_disorder:
            channel.deliveries_uncertain = True
            self.limit_reached("disorder")
        else:
            self.outstanding += 1
            if channel.deliveries.shared:
                channel.deliveries = Ledger()
            before = channel.deliveries.add(entry)
        if before is not None:
            self.outstanding -= 1
            self._count_settled(channel, before)
            self._close_row(before, self._open_end(before))
        self._count_unsettled(channel, entry)
        if entry.wants and channel.unsettled == 1 and channel.times.last_ack_ns != NULL:
            self._wait(channel, entry)
        return 0

    def _wait(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery came when there was none to settle: count how long the consumer waited."""
        if entry.ts_ns == NULL:
            return 0
        wait: cython.longlong = entry.ts_ns - channel.times.last_ack_ns
        if 0 <= wait <= _MAX_WAIT_NS:
            times: MessageTimes = channel.own_times()
            times.waits += 1
            times.wait_ns += wait
            if times.wait_ns_min == NULL or wait < times.wait_ns_min:
                times.wait_ns_min = wait
        return 0

    def expect_return(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A publish that the broker may return."""
        if self.outstanding >= self.most:
            return self.limit_reached("outstanding")
        self.outstanding += 1
        entry.losses = channel.losses
        self.outstanding -= add_returnable(entry, self.unanswered)
        if len(self.unanswered) > self.max_returnable:
            self._give_up(self.unanswered.popleft())
        return 0

    def _give_up(self, entry: PendingMessage) -> cython.int:
        """A publish was not returned for long: it is done, or only waits for its confirm."""
        if entry.number <= 0:
            self._be_done(entry)
        elif entry.may_return:
            self.outstanding -= discard_returnable(entry)
        return 0

    # entries end

    def confirm(
        self,
        channel: Channel,
        tag: cython.longlong,
        multiple: cython.bint,
        until: cython.longlong,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """The broker's ack or nack; a `multiple` one answers all `until` a number, or -1."""
        entry: PendingMessage
        if channel.numbering and tag >= channel.next_number:
            channel.session.has_loss = True  # its publish was captured later, or not at all
        if not channel.numbering and (tag >= channel.next_number or (multiple and tag == 0)):
            times: MessageTimes = channel.own_times()
            times.unknown_confirm_number = number
        if channel.midstream_confirms is not None and not channel.numbered:
            return self._estimate(channel, tag, multiple, outcome, number, ts_ns)
        if multiple:
            doubt: cython.longlong = max(
                channel.times.maybe_confirmed_to, channel.publish_before_loss
            )
            for entry in channel.publishes.pop_until(until):
                sure: cython.bint = entry.number > doubt or entry.number == tag
                self._confirm(channel, entry, outcome if sure else _UNKNOWN, number, ts_ns)
            return 0
        entry = channel.publishes.pop(tag)
        if entry is not None:
            self._confirm(channel, entry, outcome, number, ts_ns)
        return 0

    def _estimate(
        self,
        channel: Channel,
        tag: cython.longlong,
        multiple: cython.bint,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """The broker's ack or nack on a channel from before the capture: the least times."""
        confirms: MidstreamConfirms = channel.midstream_confirms
        times: MessageTimes = channel.own_times()
        answered: cython.longlong = confirms.confirm(tag, multiple)
        if answered < 0 or outcome != CONFIRMED:
            return 0
        while answered <= tag:
            place: cython.longlong = confirms.place(answered)
            publish_ns: cython.longlong = confirms.sent[place + 1]
            took: cython.longlong = elapsed(publish_ns, ts_ns)
            if took != NULL:
                times.bounds += 1
                self._count_confirm(channel, confirms.sent[place], publish_ns, took, number, ts_ns)
                if self.bounds is not None:
                    self.bounds.add(took)
                if self.recent_latencies is not None:
                    self.recent_latencies.add(channel.session, CONFIRMED, took)
            answered += 1
        return 0

    def _count_confirm(
        self,
        channel: Channel,
        publish_number: cython.longlong,
        publish_ns: cython.longlong,
        took: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Count the time from a publish to its confirm in packet `number`."""
        times: MessageTimes = channel.own_times()
        times.confirm_ns += took
        if took > times.confirm_ns_max:
            times.confirm_ns_max = took
            times.slow_confirm_number = publish_number
            times.slow_confirm_ns = publish_ns
        if took >= LATE_CONFIRM_NS and self.emitter is not None:
            self.emitter.emit("confirmed-late", channel, number, ts_ns, {"since_ns": publish_ns})
        return 0

    def _confirm(
        self,
        channel: Channel,
        entry: PendingMessage,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        self.outstanding -= 1
        if entry.outcome >= 0:
            return 0
        channel.unconfirmed -= 1
        if entry.ended:
            return 0
        if outcome == _UNKNOWN or (
            entry.number <= channel.times.maybe_returned_to and entry.may_return
        ):
            return self._be_done(entry)
        took: cython.longlong = max(elapsed(entry.ts_ns, ts_ns), 0)
        if outcome == CONFIRMED:
            times: MessageTimes = channel.own_times()
            times.confirmed += 1
            self._count_confirm(channel, entry.packet_number, entry.ts_ns, took, number, ts_ns)
        else:
            times = channel.own_times()
            times.rejected += 1
            if self.emitter is not None:
                self.emitter.emit("rejected", channel, number, ts_ns, {"entry": entry})
        return self.settle(entry, outcome, number, ts_ns)

    def confirm_in_part(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """The broker's ack or nack, of which not all was captured."""
        last: cython.longlong = channel.next_number - 1
        channel.session.has_loss = True
        if not channel.numbering:
            channel.losses += 1
        times: MessageTimes = channel.own_times()
        times.maybe_confirmed_to = max(times.maybe_confirmed_to, tag if tag > 0 else last)
        return 0

    def acknowledge(
        self,
        channel: Channel,
        tag: cython.longlong,
        multiple: cython.bint,
        until: cython.longlong,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A client's ack, nack or reject; `until` as of `confirm`.

        A broker that does not know the tag refuses it and closes the channel: RabbitMQ does so
        before it settles anything, whatever `multiple` says, and discards what comes after it (seen
        with 3.10 and 4.3). What others do is seen by whether they close the channel. So what may be
        refused, and what follows it, is tentative until then.
        """
        entry: PendingMessage
        times: MessageTimes = channel.own_times()
        quiet: cython.longlong = elapsed(max(times.last_ack_ns, times.last_delivery_ns), ts_ns)
        times.acks += 1
        times.last_ack_ns = ts_ns
        if channel.tentative is not None:
            self.accept_until(channel, ts_ns)
        if multiple:
            times.multiple_acks += 1
            known: cython.bint = tag == 0 or channel.deliveries.find(tag) is not None
            if not known or 0 < tag <= channel.tag_before_loss:
                self._expect_refusal(channel, tag, ts_ns)
            doubt: cython.longlong = max(channel.maybe_settled_to, channel.tag_before_loss)
            for entry in channel.deliveries.pop_until(until):
                sure: cython.bint = entry.number > doubt or entry.number == tag
                self._acknowledge(channel, entry, outcome if sure else _UNKNOWN, number, ts_ns)
            if known:
                return 0
        else:
            entry = channel.deliveries.pop(tag)
            if entry is None or tag <= channel.tag_before_loss:
                self._expect_refusal(channel, tag, ts_ns)
            if entry is not None:
                if quiet >= PAUSED_ACKS_NS:
                    self._note_pause(channel, entry, quiet)
                return self._acknowledge(channel, entry, outcome, number, ts_ns)
        if self.emitter is not None:
            facts = {"tag": tag, "multiple": multiple, "outcome": outcome}
            self.emitter.emit("tag-unknown", channel, number, ts_ns, facts)
        return 0

    def _note_pause(
        self, channel: Channel, entry: PendingMessage, quiet: cython.longlong
    ) -> cython.int:
        """Nothing was acknowledged for a while: count it where the prefetch count was used up."""
        consumer: Consumer = entry.consumer
        limit = channel.prefetch_shared
        held: cython.longlong = channel.unsettled
        if not limit and consumer is not None:
            limit, held = consumer.prefetch, consumer.unsettled
        if not limit or held < limit:
            return 0
        times: MessageTimes = channel.own_times()
        times.pauses += 1
        times.pause_ns += quiet
        if times.pauses == 1:
            times.pause_number, times.pause_began_ns = entry.packet_number, entry.ts_ns
        return 0

    # acknowledgements that the broker may refuse

    def _expect_refusal(
        self, channel: Channel, tag: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """The broker may refuse the acknowledgement of a tag: what follows is tentative."""
        if channel.in_transaction:
            return 0  # nothing takes effect before the commit
        if self.outstanding >= self.most:
            return self.limit_reached("outstanding")
        if channel.tentative is None:
            channel.tentative = deque()
        self.outstanding += 1
        channel.tentative.append((None, tag, 0, -1, ts_ns))
        return 0

    def _settle_tentatively(
        self,
        channel: Channel,
        entry: PendingMessage,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """An acknowledgement takes effect unless the broker refuses it or one before it."""
        self._count_settled(channel, entry)
        channel.tentative.append((entry, 0, outcome, number, ts_ns))
        return 0

    def accept_until(self, channel: Channel, ts_ns: cython.longlong) -> cython.int:
        """Tentative acknowledgements take effect that the broker did not refuse by a time."""
        then: cython.longlong
        while channel.tentative is not None:
            item = channel.tentative[0]
            if item[0] is None:
                then = item[4]
                if then == NULL or ts_ns == NULL or ts_ns - then <= _REFUSAL_NS:
                    return 0
            self._accept_next(channel)
        return 0

    def accept_all(self, channel: Channel) -> cython.int:
        """The broker read all that was tentative, and refused nothing."""
        while channel.tentative is not None:
            self._accept_next(channel)
        return 0

    def _accept_next(self, channel: Channel) -> cython.int:
        """The first of the tentative acknowledgements takes effect."""
        entry: PendingMessage
        item: tuple[Any, ...] = channel.tentative.popleft()
        self.outstanding -= 1
        if not channel.tentative:
            channel.tentative = None
        entry = item[0]
        if entry is not None:
            self._conclude(channel, entry, item[2], item[3], item[4])
        return 0

    def refuse(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """The broker refused the acknowledgement of a tag, -1 for any, and so all after it."""
        entry: PendingMessage
        refused: cython.Py_ssize_t = -1
        place: cython.Py_ssize_t
        for place, item in enumerate(channel.tentative):
            if item[0] is None and (tag < 0 or item[1] == tag):
                refused = place
                break
        if refused < 0:
            return self.give_up_tentative(channel, NULL)
        for _ in range(refused):
            self._accept_next(channel)
        open_ones: list[Any] = list(channel.deliveries)
        for item in channel.tentative:
            entry = item[0]
            if entry is None:
                self.outstanding -= 1
            else:
                self._count_unsettled(channel, entry)
                open_ones.append(entry)
        channel.tentative = None
        channel.deliveries = Ledger()
        for entry in sorted(open_ones, key=_BY_PLACE):
            self._put_back(channel, entry)
        return 0

    def _count_unsettled(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery waits: it came, or the broker refused its acknowledgement."""
        if not entry.wants:
            return 0
        channel.unsettled += 1
        if channel.unsettled > channel.unsettled_max:
            channel.unsettled_max = channel.unsettled
            times: MessageTimes = channel.own_times()
            times.most_number, times.most_ns = entry.packet_number, entry.ts_ns
        if entry.consumer is not None:
            entry.consumer.unsettled += 1
            if entry.consumer.unsettled > entry.consumer.unsettled_max:
                entry.consumer.unsettled_max = entry.consumer.unsettled
        return 0

    def give_up_tentative(self, channel: Channel, ts_ns: cython.longlong) -> cython.int:
        """Nothing will show what the broker refused: what is tentative at a time has no outcome,
        except acknowledgements of deliveries from before the capture.
        """
        entry: PendingMessage
        tag: cython.longlong
        self.accept_until(channel, ts_ns)
        while channel.tentative is not None:
            item = channel.tentative[0]
            tag = item[1]
            if item[0] is None and (channel.known or tag >= channel.times.first_tag >= 0):
                break
            self._accept_next(channel)
        if channel.tentative is None:
            return 0
        channel.deliveries_uncertain = True
        for item in channel.tentative:
            self.outstanding -= 1
            entry = item[0]
            if entry is not None:
                self._conclude(channel, entry, _UNKNOWN, -1, NULL)
        channel.tentative = None
        return 0

    # acknowledgements end

    def acknowledge_in_part(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """A client's ack, nack, reject or recover, of which not all was captured."""
        channel.session.has_loss = True
        last: cython.longlong = max(channel.last_tag, channel.deliveries.last)
        channel.maybe_settled_to = max(channel.maybe_settled_to, tag if tag > 0 else last)
        return 0

    def refuse_in_part(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """A client's nack or reject of a delivery that may be requeued or discarded by it."""
        entry: PendingMessage = channel.deliveries.pop(tag)
        if entry is not None:
            self._finally_acknowledge(channel, entry, _UNKNOWN, -1, NULL)
        return 0

    def _acknowledge(
        self,
        channel: Channel,
        entry: PendingMessage,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        if channel.in_transaction:
            channel.noted.append((entry, outcome))
            return 0
        if channel.tentative is not None:
            return self._settle_tentatively(channel, entry, outcome, number, ts_ns)
        return self._finally_acknowledge(channel, entry, outcome, number, ts_ns)

    def _count_settled(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery does not wait any longer."""
        if entry.wants:
            channel.unsettled -= 1
            if entry.consumer is not None:
                entry.consumer.unsettled -= 1
        return 0

    def _finally_acknowledge(
        self,
        channel: Channel,
        entry: PendingMessage,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A delivery is settled, outside a transaction or at its commit, perhaps unknown how."""
        self.outstanding -= 1
        self._count_settled(channel, entry)
        return self._conclude(channel, entry, outcome, number, ts_ns)

    def _conclude(
        self,
        channel: Channel,
        entry: PendingMessage,
        outcome: cython.int,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """A delivery that does not wait any longer has its outcome."""
        if outcome == _UNKNOWN:
            return self._close_row(entry, _UNKNOWN)
        self.settle(entry, outcome, number, ts_ns)
        if outcome == ACKED:
            channel.acknowledged += 1
            took: cython.longlong = elapsed(entry.ts_ns, ts_ns)
            if took != NULL:
                times: MessageTimes = channel.own_times()
                times.ack_ns += took
                if took > times.ack_ns_max:
                    times.ack_ns_max = took
                    times.slow_ack_number = entry.packet_number
                    times.slow_ack_ns = entry.ts_ns
        elif outcome == REQUEUED:
            times = channel.own_times()
            times.requeued += 1
        else:
            times = channel.own_times()
            times.discarded += 1
        if outcome != ACKED and self.emitter is not None:
            event = "requeued" if outcome == REQUEUED else "discarded"
            self.emitter.emit(event, channel, number, ts_ns, {"entry": entry})
        return 0

    def recover(
        self,
        channel: Channel,
        until: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """What is outstanding up to a tag, all of it for -1, goes back to its queue."""
        for entry in channel.deliveries.pop_until(until):
            outcome: cython.int = REQUEUED if entry.number > channel.tag_before_loss else _UNKNOWN
            if channel.tentative is not None:
                self._settle_tentatively(channel, entry, outcome, number, ts_ns)
            else:
                self._finally_acknowledge(channel, entry, outcome, number, ts_ns)
        return 0

    def commit(
        self, channel: Channel, noted: list[Any], number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """What was noted in a transaction takes effect."""
        for entry, outcome in noted:
            self._finally_acknowledge(channel, entry, outcome, number, ts_ns)
        return 0

    def roll_back(self, channel: Channel) -> cython.int:
        """What was noted since the last commit can be settled again."""
        for entry, _ in channel.noted:
            self._put_back(channel, entry)
        channel.noted = []
        return 0

    def _put_back(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery can be settled again, unless its tag has been taken."""
        if channel.deliveries.find(entry.number) is None:
            channel.deliveries.add(entry)
            return 0
        self.outstanding -= 1
        self._count_settled(channel, entry)
        return self._close_row(entry, self._open_end(entry))

    # returns

    def settle_returned(self, returned: PendingMessage) -> PendingMessage:
        """A returned message: find its publish, or None; `returned` is the entry of the return.

        Where one of several publishes may be meant, none of them has an outcome. Nor has one before
        a loss: it may have been answered there, and the same message published again.
        """
        if None in returned.route:
            return None  # it was cut
        entry: PendingMessage
        candidates: list[Any] = find_returned(returned)
        channel: Channel = returned.channel
        if not candidates:
            return None
        entry = candidates[0]
        if len(candidates) > 1 or entry.losses != channel.losses:
            channel.publishes_uncertain = True
            for entry in candidates:
                self._be_done(entry)
            return None
        if entry.wants:
            entry.channel.unconfirmed -= 1
        self.settle(entry, RETURNED, returned.packet_number, returned.ts_ns)
        return entry

    def select(self, channel: Channel) -> cython.int:
        """A channel's publishes are in transactions from now on."""
        channel.in_transaction = True
        channel.noted, channel.committing = [], []
        channel.uncommitted = deque(all_returnable(channel.awaiting_return))
        return 0

    def committed(self, channel: Channel, number: cython.longlong) -> cython.int:
        """The first publishes of a channel's transactions, up to a number, cannot come back."""
        while channel.uncommitted and channel.uncommitted_start < number:
            channel.uncommitted_start += 1
            self._be_done(channel.uncommitted.popleft())
        return 0

    def _be_done(self, entry: PendingMessage) -> cython.int:
        """A publish can no longer come back."""
        self._close_row(entry, -1)
        if entry.may_return:
            self.outstanding -= discard_returnable(entry)
        return 0

    def finish(self, channel: Channel) -> cython.int:
        """A channel incarnation is over: what is open stays open.

        That nothing answered is said only where the answer would have been captured.
        """
        entry: PendingMessage
        doubt: cython.longlong = channel.doubtful_publish()
        if channel.midstream_confirms is not None:
            confirms: MidstreamConfirms = channel.midstream_confirms
            self.more_places -= confirms.places - _FEW_PLACES
        for entry in channel.publishes.pop_until(-1):
            self.outstanding -= 1
            self._close_row(entry, UNCONFIRMED if entry.number > doubt else -1)
        for entry in all_returnable(channel.awaiting_return) if channel.awaiting_return else ():
            self._be_done(entry)
        channel.awaiting_return = channel.by_fingerprint = {}
        for entry in channel.deliveries.pop_until(-1):
            self._leave_open(entry)
        if channel.in_transaction:
            channel.uncommitted.clear()
            for entry, _ in channel.noted:
                self._leave_open(entry)
            unknown: cython.bint = channel.may_be_committed()
            for noted in channel.committing:
                for entry, _ in noted:
                    if unknown:
                        self._close_row(entry, _UNKNOWN)
                    self._leave_open(entry)
            channel.noted, channel.committing = [], []
        return 0

    def _leave_open(self, entry: PendingMessage) -> cython.int:
        """A delivery is no longer settled."""
        self.outstanding -= 1
        return self._close_row(entry, self._open_end(entry))

    def _open_end(self, entry: PendingMessage) -> cython.int:
        """The outcome of a delivery that nothing settles; null if that may not be captured."""
        channel: Channel = entry.channel
        if not entry.wants or entry.number <= channel.doubtful_delivery():
            return _UNKNOWN
        return UNSETTLED
