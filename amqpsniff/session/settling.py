# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Outcomes of messages: confirms, returns and acknowledgements find the entries they refer to.

An entry's outcome is written into its message's row, at once or when the row exists. A row that
may still change counts in its rows' `pending`, so that batches wait for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
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
from cython.cimports.amqpsniff.session.counts import Histogram, RecentLatencies
from cython.cimports.amqpsniff.session.entities import (
    Channel,
    Consumer,
    Ledger,
    MessageTimes,
    PendingMessage,
)
from cython.cimports.amqpsniff.session.rules.occasions import LATE_CONFIRM_NS, PAUSED_ACKS_NS

from amqpsniff.session import entities
from amqpsniff.session.codes import OUTCOMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BY_PLACE = attrgetter("packet_number", "number")
_MAX_WAIT_NS = cython.declare(cython.longlong, entities.MAX_WAIT_NS)
_UNKNOWN = cython.declare(cython.int, -1)

REFUSAL_NS = 2_000_000_000
"""Time within which a broker closes the channel because of an acknowledgement that it refuses:
RabbitMQ does so when it reads it. What it did not refuse by then took effect."""
_REFUSAL_NS = cython.declare(cython.longlong, REFUSAL_NS)

MAX_MISSED_TAGS = 1_000
"""Tags of deliveries of a channel that are missing and remembered: more were under way in no loss
that ended soon."""


@cython.final
@cython.freelist(16)
@cython.cclass
class Answer:
    """The outcome that a method in packet `number` gives to the message with the `tag`, or to all
    up to it with `multiple`. `outcome` is a code of `OUTCOMES`, -1 if it may belong to another.
    """

    tag: cython.longlong
    multiple: cython.bint
    outcome: cython.int
    number: cython.longlong
    ts_ns: cython.longlong


@cython.cfunc
def answer_of(
    outcome: cython.int,
    number: cython.longlong,
    ts_ns: cython.longlong,
    tag: cython.longlong = 0,
    multiple: cython.bint = False,
) -> Answer:
    """The answer of a method in packet `number`."""
    answer: Answer = Answer.__new__(Answer)
    answer.tag, answer.multiple = tag, multiple
    answer.outcome, answer.number, answer.ts_ns = outcome, number, ts_ns
    return answer


_UNKNOWN_ANSWER = cython.declare(Answer, answer_of(_UNKNOWN, -1, NULL))
"""The answer to a message that may have had another one, which is missing."""


FEW_PLACES = 8
"""Publishes of a channel that are remembered at first, in 128 bytes: most channels need no more."""

BLIND_PLACES = 64
"""The most before the first confirm: perhaps there is none."""

MAX_PLACES = 4_096
"""The most, in 64 kB. Confirms of older publishes are not measured."""

MAX_ALL_PLACES = 1 << 20
"""The most beyond the first ones of each channel, over all of them: 16 MB."""

_FEW_PLACES = cython.declare(cython.longlong, FEW_PLACES)
_BLIND_PLACES = cython.declare(cython.longlong, BLIND_PLACES)
_MAX_PLACES = cython.declare(cython.longlong, MAX_PLACES)
_MAX_ALL_PLACES = cython.declare(cython.longlong, MAX_ALL_PLACES)

_HIGHEST_TAG = cython.declare(cython.longlong, 1 << 62)
"""Tags above are nonsense; no channel lives so long."""


@cython.cclass
class UnnumberedConfirms:
    """Times of confirms of publishes whose numbers are unknown, as lower bounds.

    The channel was open before the capture began, or publishes of it may be missing. But every
    confirmed number was published: with `published` publishes captured so far, a confirm of tag n
    proves at least n - `published` publishes before them. `before` is the largest of these
    differences. So a confirm of tag n answers the captured publish n - `before` or an earlier one,
    and the time since that publish is a lower bound. Once no publish was unconfirmed for a moment,
    the times are exact.

    Publishes and confirms come in the order in which they were sent: the reassembler delivers
    acknowledged data before the segment that acknowledges it. After a resynchronization publishes
    may come after their confirms (`late` publishes). After missing frames the count begins again.

    At least `before` publishes were made before that point; `counted` of them were captured.
    `published` were captured since. `answered` is the highest number that was confirmed or refused,
    0 before there was one. `sent` has packet and time of the last `places` publishes, from the one
    after `oldest` on; `missed`: a confirm was of an older one.
    """

    counted: cython.longlong
    before: cython.longlong
    published: cython.longlong
    answered: cython.longlong
    places: cython.longlong
    oldest: cython.longlong
    missed: cython.bint

    sent: cython.longlong[::1]

    def __init__(self, counted: int = 0) -> None:
        self.places = _FEW_PLACES
        self.sent = array("q", bytes(16 * FEW_PLACES))
        self.counted = counted
        self.forget()

    @cython.ccall
    @cython.exceptval(-1)
    def forget(self) -> cython.int:
        """Begin again: frames may be missing, so that the numbers are unknown."""
        self.before = self.counted
        self.published = self.answered = self.oldest = 0
        self.missed = False
        return 0

    @property
    def unconfirmed(self) -> Any:
        """The least number of publishes that are not confirmed."""
        return max(0, self.before + self.published - self.answered)

    def waiting(self) -> list[tuple[int, int]]:
        """Packet and time of each publish that is certainly not confirmed, where one ever was."""
        first: cython.longlong = max(self.answered - self.before, self.oldest)
        if self.answered == 0:
            return []
        at: cython.longlong
        found = []
        for at in range(first, self.published):
            place = 2 * (at % self.places)
            found.append((self.sent[place], self.sent[place + 1]))
        return found

    @cython.ccall
    @cython.exceptval(-1)
    def is_crowded(self) -> cython.bint:
        """True if there should be more places."""
        if self.places >= (_MAX_PLACES if self.answered else _BLIND_PLACES):
            return False
        waiting: cython.longlong = self.before + self.published - self.answered
        return self.missed or 2 * waiting >= self.places

    @cython.ccall
    @cython.exceptval(-1)
    def grow(self) -> cython.int:
        """Make twice as many places; gives how many more there are."""
        at: cython.longlong
        more: cython.longlong = self.places
        sent: cython.longlong[::1] = array("q", bytes(32 * self.places))
        for at in range(self.oldest, self.published):
            sent[2 * (at % (2 * more))] = self.sent[2 * (at % more)]
            sent[2 * (at % (2 * more)) + 1] = self.sent[2 * (at % more) + 1]
        self.sent = sent
        self.places = 2 * more
        self.missed = False
        return more

    @cython.ccall
    @cython.exceptval(-1)
    def publish(
        self, number: cython.longlong, ts_ns: cython.longlong, late: cython.bint
    ) -> cython.int:
        """A publish in a packet, at a time; `late`: it may have come before confirms so far."""
        if late:
            self.before = self.counted
        place: cython.longlong = 2 * (self.published % self.places)
        self.sent[place] = number
        self.sent[place + 1] = ts_ns
        self.published += 1
        self.oldest = max(self.oldest, self.published - self.places)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def confirm(self, tag: cython.longlong, multiple: cython.bint) -> cython.longlong:
        """Publishes are confirmed, or refused: one with this number, or all up to it (0: all).

        Gives the first number, up to the tag, of those that it was said of now and whose publishes
        are remembered, see `place`; -1 if there are none.
        """
        first: cython.longlong = tag
        if tag <= 0 or tag > _HIGHEST_TAG:
            if tag == 0:
                self.forget()
            return -1
        if multiple and 0 < self.answered < tag:
            first = self.answered + 1
        self.before = max(self.before, tag - self.published)
        self.answered = max(self.answered, tag)
        if self.before < first <= self.before + self.oldest:
            self.missed = True
        first = max(first, self.before + self.oldest + 1)
        return first if first <= tag else -1

    @cython.ccall
    @cython.exceptval(-1)
    def place(self, tag: cython.longlong) -> cython.longlong:
        """The place in `sent` of the publish with a number, or of a later one."""
        return 2 * ((tag - self.before - 1) % self.places)


@cython.final
@cython.cclass
class Settler:
    """Finds the messages that a confirm, return or acknowledgement refers to, and their outcomes.

    `hits` counts, by name of the limit, the entries dropped because of one. With a `census`,
    `ended` counts messages by outcome, `histograms` has their times, and `bounds` the lower bounds
    of confirm times of publishes without a known number; `recent_latencies` of a live census has
    the latest times. `scope`: the census whose part of the traffic is counted, None for all.
    `estimates`: such bounds are requested; `more_places` counts the places that they need.

    Args:
        limits: Bounds on what is remembered.
        emitter: Gets the events of the rules; None without rules.
        census: Counts outcomes and times; None without one.
    """

    returnable: Any
    most: cython.longlong
    max_disorder: cython.longlong
    max_returnable: cython.longlong
    outstanding: cython.longlong

    emitter: Any
    hits: dict[Any, Any]
    histograms: list[Any]
    scope: Any
    bounds: Histogram
    estimates: cython.bint
    more_places: cython.longlong
    recent_latencies: RecentLatencies
    ended: cython.longlong[::1]

    def __init__(self, limits: Any, emitter: Any, census: Any) -> None:
        self.most = limits.outstanding
        self.max_disorder = limits.disorder
        self.max_returnable = limits.returnable
        self.outstanding = 0
        self.returnable: Any = deque()
        self.hits = {}
        self.emitter = emitter
        self.histograms = self.bounds = self.scope = self.recent_latencies = None
        if census is not None:
            self.histograms = [Histogram() for _ in OUTCOMES]
            self.bounds = Histogram()
            self.recent_latencies = census.lately
            if census.is_of_part:
                self.scope = census
        self.estimates = emitter is not None or census is not None
        self.more_places = 0
        self.ended = array("q", bytes(8 * len(OUTCOMES)))

    @cython.ccall
    @cython.exceptval(-1)
    def limit_reached(self, name: str) -> cython.int:
        """A limit was reached."""
        self.hits[name] = self.hits.get(name, 0) + 1
        return 0

    def endings(self) -> Any:
        """Number of messages with each of `OUTCOMES`, as a list."""
        return [self.ended[outcome] for outcome in range(len(OUTCOMES))]

    def settle(self, entry: PendingMessage, answer: Answer) -> cython.int:
        """An entry has its outcome."""
        entry.outcome = answer.outcome
        entry.outcome_number = answer.number
        entry.outcome_ns = answer.ts_ns
        counts: cython.bint = self.counts(entry)
        self.ended[entry.outcome] += counts
        self._discard_returnable(entry)
        took: cython.longlong = elapsed(entry.ts_ns, entry.outcome_ns)
        if self.histograms is not None and took != NULL and counts:
            histogram: Histogram = self.histograms[entry.outcome]
            histogram.add(took)
            if self.recent_latencies is not None:
                self.recent_latencies.add(entry.channel.session, entry.outcome, took)
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

    def leave(self, entry: PendingMessage, outcome: cython.int) -> cython.int:
        """End an entry that will not be settled, with this `outcome`, -1 for null."""
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
            _index_when_written(entry)
        return 0

    # entries begin

    def publish(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A numbered publish."""
        if self.outstanding >= self.most:
            channel.publishes_uncertain = True
            return self.limit_reached("outstanding")
        if channel.unconfirmed == 0:
            times = channel.own_times()
            times.waited_publishes += 1
        channel.unconfirmed += 1
        if channel.unconfirmed > channel.times.unconfirmed_max:
            channel.own_times().unconfirmed_max = channel.unconfirmed
        self.outstanding += 1
        if channel.publishes.shared:
            channel.publishes = Ledger()
        channel.publishes.add(entry)
        return 0

    def publish_unnumbered(
        self, channel: Channel, entry: PendingMessage, late: cython.bint
    ) -> cython.int:
        """A publish without a known number; `late`: its frame is, see `Tracker`."""
        if not self.estimates:
            return 0
        if channel.unnumbered_confirms is None:
            channel.unnumbered_confirms = UnnumberedConfirms(channel.next_number - 1)
        confirms: UnnumberedConfirms = channel.unnumbered_confirms
        if confirms.is_crowded() and self.more_places < _MAX_ALL_PLACES:
            self.more_places += confirms.grow()
        return confirms.publish(entry.packet_number, entry.ts_ns, late)

    def follow_tag(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """A delivery came with a tag: those between it and the last one were delivered in a loss,
        and the broker had not closed the channel.
        """
        last: cython.longlong = channel.last_tag
        if tag > last:
            channel.refusals_lost = False
        if tag <= last + 1 or last < 0 or channel.publish_before_loss < 0:
            return 0
        if channel.missed_tags is None:
            channel.missed_tags = []
        first: cython.longlong = max(last + 1, tag - MAX_MISSED_TAGS + len(channel.missed_tags))
        channel.missed_tags.extend(range(first, tag))
        return 0

    def deliver(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery that may be acknowledged."""
        if channel.tentative is not None:
            self.accept_until(channel, entry.ts_ns)
        if self.outstanding >= self.most:
            channel.deliveries_uncertain = True
            return self.limit_reached("outstanding")
        if channel.deliveries.disorder > self.max_disorder:
            channel.deliveries_uncertain = True
            return self.limit_reached("disorder")
        self.outstanding += 1
        if channel.deliveries.shared:
            channel.deliveries = Ledger()
        before: PendingMessage = channel.deliveries.add(entry)
        if before is not None:
            self.count_settled(channel, before)
            self._leave_open(before)
        self.count_unsettled(channel, entry)
        if entry.wants and channel.unsettled == 1 and channel.times.last_ack_ns != NULL:
            self._count_wait(channel, entry)
        return 0

    def _count_wait(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery came while none was unsettled: count how long the consumer had waited."""
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
        self.outstanding -= _add_returnable(entry, self.returnable)
        if len(self.returnable) > self.max_returnable:
            self._give_up(self.returnable.popleft())
        return 0

    def _give_up(self, entry: PendingMessage) -> cython.int:
        """A publish was not returned for long: it is done, or only waits for its confirm."""
        if entry.number <= 0:
            return self._end_publish(entry)
        return self._discard_returnable(entry)

    # entries end

    def confirm(self, channel: Channel, answer: Answer, until: cython.longlong) -> cython.int:
        """The broker's ack or nack; a `multiple` one answers all `until` a number, or -1."""
        entry: PendingMessage
        tag: cython.longlong = answer.tag
        multiple: cython.bint = answer.multiple
        if channel.numbering and tag >= channel.next_number:
            channel.session.has_loss = True  # its publish was captured later, or not at all
        if not channel.numbering and (tag >= channel.next_number or (multiple and tag == 0)):
            times: MessageTimes = channel.own_times()
            times.unknown_confirm_number = answer.number
        if channel.unnumbered_confirms is not None:
            self._estimate(channel, answer)
        if multiple:
            doubt: cython.longlong = max(
                channel.times.maybe_confirmed_to, channel.publish_before_loss
            )
            for entry in channel.publishes.pop_until(until):
                sure: cython.bint = entry.number > doubt or entry.number == tag
                self.confirm_one(channel, entry, answer if sure else _UNKNOWN_ANSWER)
            return 0
        entry = channel.publishes.pop(tag)
        return 0 if entry is None else self.confirm_one(channel, entry, answer)

    def _estimate(self, channel: Channel, answer: Answer) -> cython.int:
        """The broker's ack or nack may answer publishes without a known number: the least times."""
        confirms: UnnumberedConfirms = channel.unnumbered_confirms
        times: MessageTimes = channel.own_times()
        answered: cython.longlong = confirms.confirm(answer.tag, answer.multiple)
        if answered < 0 or answer.outcome != CONFIRMED:
            return 0
        while answered <= answer.tag:
            place: cython.longlong = confirms.place(answered)
            publish_ns: cython.longlong = confirms.sent[place + 1]
            took: cython.longlong = elapsed(publish_ns, answer.ts_ns)
            if took != NULL:
                times.bounds += 1
                self._count_confirm(channel, confirms.sent[place], publish_ns, took, answer)
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
        answer: Answer,
    ) -> cython.int:
        """Count the time from a publish to its confirm."""
        times: MessageTimes = channel.own_times()
        times.confirm_ns += took
        if took > times.confirm_ns_max:
            times.confirm_ns_max = took
            times.slow_confirm_number = publish_number
            times.slow_confirm_ns = publish_ns
        if took >= LATE_CONFIRM_NS and self.emitter is not None:
            facts = {"since_ns": publish_ns}
            self.emitter.emit("confirmed-late", channel, answer.number, answer.ts_ns, facts)
        return 0

    def confirm_one(self, channel: Channel, entry: PendingMessage, answer: Answer) -> cython.int:
        """A publish is confirmed or rejected, or its outcome is unknown."""
        self.outstanding -= 1
        if entry.outcome >= 0:
            return 0
        channel.unconfirmed -= 1
        if entry.ended:
            return 0
        if answer.outcome == _UNKNOWN or (
            entry.number <= channel.times.maybe_returned_to and entry.may_return
        ):
            return self._end_publish(entry)
        times: MessageTimes = channel.own_times()
        if answer.outcome == CONFIRMED:
            times.confirmed += 1
            took: cython.longlong = max(elapsed(entry.ts_ns, answer.ts_ns), 0)
            self._count_confirm(channel, entry.packet_number, entry.ts_ns, took, answer)
        else:
            times.rejected += 1
            if self.emitter is not None:
                facts = {"entry": entry}
                self.emitter.emit("rejected", channel, answer.number, answer.ts_ns, facts)
        return self.settle(entry, answer)

    def confirm_in_part(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """An ack or nack of the broker that was captured only in part."""
        last: cython.longlong = channel.next_number - 1
        channel.session.has_loss = True
        if not channel.numbering:
            channel.losses += 1
        times: MessageTimes = channel.own_times()
        times.maybe_confirmed_to = max(times.maybe_confirmed_to, tag if tag > 0 else last)
        return 0

    def acknowledge(self, channel: Channel, answer: Answer, until: cython.longlong) -> cython.int:
        """A client's ack, nack or reject; `until` as of `confirm`.

        A broker that does not know the tag refuses it and closes the channel. RabbitMQ does so
        before it settles anything, also with `multiple`, and discards later frames (measured with
        3.10 and 4.3). For other brokers the closing of the channel shows the refusal. So an
        acknowledgement that may be refused, and all after it, are tentative until then.
        """
        entry: PendingMessage
        tag: cython.longlong = answer.tag
        ts_ns: cython.longlong = answer.ts_ns
        times: MessageTimes = channel.own_times()
        quiet: cython.longlong = elapsed(max(times.last_ack_ns, times.last_delivery_ns), ts_ns)
        times.acks += 1
        times.last_ack_ns = ts_ns
        if channel.tentative is not None:
            self.accept_until(channel, ts_ns)
        if answer.multiple:
            times.multiple_acks += 1
            known: cython.bint = tag == 0 or channel.deliveries.find(tag) is not None
            if channel.missed_tags is not None and _take_missed(channel, tag, True):
                known = True
            if not known or 0 < tag <= channel.tag_before_loss:
                self._expect_refusal(channel, answer)
            doubt: cython.longlong = max(channel.maybe_settled_to, channel.tag_before_loss)
            for entry in channel.deliveries.pop_until(until):
                sure: cython.bint = entry.number > doubt or entry.number == tag
                self._acknowledge(channel, entry, answer if sure else _UNKNOWN_ANSWER)
            if known:
                return 0
        else:
            entry = channel.deliveries.pop(tag)
            missed: cython.bint = (
                entry is None
                and channel.missed_tags is not None
                and _take_missed(channel, tag, False)
            )
            if (entry is None and not missed) or tag <= channel.tag_before_loss:
                self._expect_refusal(channel, answer)
            if missed:
                return 0
            if entry is not None:
                if quiet >= PAUSED_ACKS_NS:
                    self._note_pause(channel, entry, quiet)
                return self._acknowledge(channel, entry, answer)
        if self.emitter is not None:
            facts = {"tag": tag, "multiple": answer.multiple, "outcome": answer.outcome}
            self.emitter.emit("tag-unknown", channel, answer.number, ts_ns, facts)
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

    def _expect_refusal(self, channel: Channel, answer: Answer) -> cython.int:
        """The broker may refuse an acknowledgement: what follows is tentative."""
        if channel.in_transaction:
            return 0  # nothing takes effect before the commit
        if self.outstanding >= self.most:
            return self.limit_reached("outstanding")
        if channel.tentative is None:
            channel.tentative = deque()
        self.outstanding += 1
        channel.tentative.append((None, answer))
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def accept_until(self, channel: Channel, ts_ns: cython.longlong) -> cython.int:
        """Tentative acknowledgements take effect that the broker did not refuse by a time."""
        answer: Answer
        while channel.tentative is not None and not channel.refusals_lost:
            entry, answer = channel.tentative[0]
            if entry is None:
                then: cython.longlong = answer.ts_ns
                if then == NULL or ts_ns == NULL or ts_ns - then <= _REFUSAL_NS:
                    return 0
            self._accept_next(channel)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def accept_all(self, channel: Channel) -> cython.int:
        """The broker read all that was tentative, and refused nothing, as far as was captured."""
        if channel.refusals_lost:
            return self.give_up_tentative(channel, NULL)
        while channel.tentative is not None:
            self._accept_next(channel)
        return 0

    def _accept_next(self, channel: Channel) -> cython.int:
        """The first of the tentative acknowledgements takes effect."""
        entry: PendingMessage
        answer: Answer
        entry, answer = channel.tentative.popleft()
        self.outstanding -= 1
        if not channel.tentative:
            channel.tentative = None
        return 0 if entry is None else self.conclude(channel, entry, answer)

    @cython.ccall
    @cython.exceptval(-1)
    def refuse(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """The broker refused the acknowledgement of a tag, -1 for any, and so all after it."""
        entry: PendingMessage
        answer: Answer
        refused: cython.Py_ssize_t = -1
        place: cython.Py_ssize_t
        for place, (entry, answer) in enumerate(channel.tentative):
            if entry is None and (tag < 0 or answer.tag == tag):
                refused = place
                break
        if refused < 0:
            return self.give_up_tentative(channel, NULL)
        for _ in range(refused):
            self._accept_next(channel)
        open_ones: list[Any] = list(channel.deliveries)
        for entry, _ in channel.tentative:
            if entry is None:
                self.outstanding -= 1
            else:
                self.count_unsettled(channel, entry)
                open_ones.append(entry)
        channel.tentative = None
        channel.deliveries = Ledger()
        for entry in sorted(open_ones, key=_BY_PLACE):
            self._put_back(channel, entry)
        return 0

    def count_unsettled(self, channel: Channel, entry: PendingMessage) -> cython.int:
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

    @cython.ccall
    @cython.exceptval(-1)
    def give_up_tentative(self, channel: Channel, ts_ns: cython.longlong) -> cython.int:
        """No later frame can show a refusal: entries that are tentative at this time get no
        outcome, except for deliveries from before the capture.
        """
        entry: PendingMessage
        answer: Answer
        self.accept_until(channel, ts_ns)
        channel.refusals_lost = False
        while channel.tentative is not None:
            entry, answer = channel.tentative[0]
            if entry is None and (channel.known or answer.tag >= channel.times.first_tag >= 0):
                break
            self._accept_next(channel)
        if channel.tentative is None:
            return 0
        channel.deliveries_uncertain = True
        for entry, _ in channel.tentative:
            self.outstanding -= 1
            if entry is not None:
                self.leave(entry, _UNKNOWN)
        channel.tentative = None
        return 0

    # acknowledgements end

    @cython.ccall
    @cython.exceptval(-1)
    def acknowledge_in_part(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """An ack, nack, reject or recover of a client that was captured only in part."""
        channel.session.has_loss = True
        last: cython.longlong = max(channel.last_tag, channel.deliveries.last)
        channel.maybe_settled_to = max(channel.maybe_settled_to, tag if tag > 0 else last)
        return 0

    def refuse_in_part(self, channel: Channel, tag: cython.longlong) -> cython.int:
        """A client's nack or reject of a delivery that may be requeued or discarded by it."""
        entry: PendingMessage = channel.deliveries.pop(tag)
        return 0 if entry is None else self._take_effect(channel, entry, _UNKNOWN_ANSWER)

    def _acknowledge(self, channel: Channel, entry: PendingMessage, answer: Answer) -> cython.int:
        """A delivery is acknowledged: now, with its transaction, or if the broker allows it."""
        if channel.in_transaction:
            channel.noted.append((entry, answer.outcome))
            return 0
        return self._settle_delivery(channel, entry, answer)

    def _settle_delivery(
        self, channel: Channel, entry: PendingMessage, answer: Answer
    ) -> cython.int:
        """A delivery is settled, unless the broker refuses it or an acknowledgement before it."""
        if channel.tentative is None:
            return self._take_effect(channel, entry, answer)
        channel.tentative.append((entry, answer))
        return self.count_settled(channel, entry)

    def count_settled(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery does not wait any longer."""
        if entry.wants:
            channel.unsettled -= 1
            if entry.consumer is not None:
                entry.consumer.unsettled -= 1
        return 0

    def _take_effect(self, channel: Channel, entry: PendingMessage, answer: Answer) -> cython.int:
        """A delivery is settled, outside a transaction or at its commit, perhaps unknown how."""
        self.outstanding -= 1
        self.count_settled(channel, entry)
        return self.conclude(channel, entry, answer)

    def conclude(self, channel: Channel, entry: PendingMessage, answer: Answer) -> cython.int:
        """A delivery that does not wait any longer has its outcome."""
        outcome: cython.int = answer.outcome
        if outcome == _UNKNOWN:
            return self.leave(entry, _UNKNOWN)
        self.settle(entry, answer)
        times: MessageTimes = channel.own_times()
        if outcome == ACKED:
            channel.acknowledged += 1
            took: cython.longlong = elapsed(entry.ts_ns, answer.ts_ns)
            if took != NULL:
                times.ack_ns += took
                if took > times.ack_ns_max:
                    times.ack_ns_max = took
                    times.slow_ack_number = entry.packet_number
                    times.slow_ack_ns = entry.ts_ns
            return 0
        times.requeued += outcome == REQUEUED
        if self.emitter is not None:
            event = "requeued" if outcome == REQUEUED else "discarded"
            self.emitter.emit(event, channel, answer.number, answer.ts_ns, {"entry": entry})
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def recover(
        self,
        channel: Channel,
        until: cython.longlong,
        number: cython.longlong,
        ts_ns: cython.longlong,
    ) -> cython.int:
        """Requeue the outstanding deliveries up to a tag, all for -1."""
        answer: Answer = answer_of(REQUEUED, number, ts_ns)
        for entry in channel.deliveries.pop_until(until):
            sure: cython.bint = entry.number > channel.tag_before_loss
            self._settle_delivery(channel, entry, answer if sure else _UNKNOWN_ANSWER)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def commit(
        self, channel: Channel, noted: list[Any], number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """Apply the acknowledgements noted in a transaction."""
        for entry, outcome in noted:
            self._take_effect(channel, entry, answer_of(outcome, number, ts_ns))
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def roll_back(self, channel: Channel) -> cython.int:
        """Undo the acknowledgements noted since the last commit."""
        for entry, _ in channel.noted:
            self._put_back(channel, entry)
        channel.noted = []
        return 0

    def _put_back(self, channel: Channel, entry: PendingMessage) -> cython.int:
        """A delivery can be settled again, unless its tag has been taken."""
        if channel.deliveries.find(entry.number) is None:
            channel.deliveries.add(entry)
            return 0
        self.count_settled(channel, entry)
        return self._leave_open(entry)

    # returns

    @cython.cfunc
    def settle_returned(self, returned: PendingMessage) -> PendingMessage:
        """A returned message: find its publish, or None; `returned` is the entry of the return.

        Where one of several publishes may be meant, none of them has an outcome. Nor has one before
        a loss: it may have been answered there, and the same message published again.
        """
        if None in returned.route:
            return None  # it was cut
        entry: PendingMessage
        candidates: list[Any] = _find_returned(returned)
        channel: Channel = returned.channel
        if not candidates:
            return None
        entry = candidates[0]
        if len(candidates) > 1 or entry.losses != channel.losses:
            channel.publishes_uncertain = True
            for entry in candidates:
                self._end_publish(entry)
            return None
        if entry.wants:
            entry.channel.unconfirmed -= 1
        self.settle(entry, answer_of(RETURNED, returned.packet_number, returned.ts_ns))
        return entry

    @cython.ccall
    @cython.exceptval(-1)
    def select(self, channel: Channel) -> cython.int:
        """A channel's publishes are in transactions from now on."""
        channel.in_transaction = True
        channel.noted, channel.committing = [], []
        channel.uncommitted = deque(_all_returnable(channel.awaiting_return))
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def committed(self, channel: Channel, number: cython.longlong) -> cython.int:
        """The first publishes of a channel's transactions, up to a number, cannot come back."""
        while channel.uncommitted and channel.uncommitted_start < number:
            channel.uncommitted_start += 1
            self._end_publish(channel.uncommitted.popleft())
        return 0

    def _end_publish(self, entry: PendingMessage) -> cython.int:
        """A publish can no longer come back."""
        self.leave(entry, -1)
        return self._discard_returnable(entry)

    def _discard_returnable(self, entry: PendingMessage) -> cython.int:
        """A publish is no longer among those that may come back."""
        if entry.may_return:
            entry.may_return = False
            channel: Channel = entry.channel
            if channel.by_fingerprint:
                _trim(channel.by_fingerprint, (entry.route, entry.mark))
                _trim(channel.by_fingerprint, (entry.route, entry.mark, entry.body_mark))
            self.outstanding -= _trim(channel.awaiting_return, entry.route)
        return 0

    @cython.ccall
    @cython.exceptval(-1)
    def finish(self, channel: Channel) -> cython.int:
        """End of a channel incarnation: open entries stay open.

        A publish is `unconfirmed` only if its confirm would have been captured.
        """
        entry: PendingMessage
        doubt: cython.longlong = channel.doubtful_publish()
        if channel.unnumbered_confirms is not None:
            confirms: UnnumberedConfirms = channel.unnumbered_confirms
            self.more_places -= confirms.places - _FEW_PLACES
        for entry in channel.publishes.pop_until(-1):
            self.outstanding -= 1
            self.leave(entry, UNCONFIRMED if entry.number > doubt else -1)
        for entry in _all_returnable(channel.awaiting_return) if channel.awaiting_return else ():
            self._end_publish(entry)
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
                        self.leave(entry, _UNKNOWN)
                    self._leave_open(entry)
            channel.noted, channel.committing = [], []
        return 0

    def _leave_open(self, entry: PendingMessage) -> cython.int:
        """A delivery is no longer settled."""
        self.outstanding -= 1
        return self.leave(entry, self._outcome_if_open(entry))

    @cython.exceptval(-2)
    def _outcome_if_open(self, entry: PendingMessage) -> cython.int:
        """The outcome of a delivery that nothing settles; null if that may not be captured."""
        channel: Channel = entry.channel
        if not entry.wants or entry.number <= channel.doubtful_delivery():
            return _UNKNOWN
        return UNSETTLED


@cython.cfunc
@cython.exceptval(-1, check=True)
def _take_missed(channel: Channel, tag: cython.longlong, multiple: cython.bint) -> cython.bint:
    """True if the delivery with this tag is missing and unsettled. It becomes settled; with
    `multiple` so do all before it, or all for tag 0.
    """
    tags: list[Any] = channel.missed_tags
    if multiple and tag == 0:
        tags.clear()
        return False
    at: cython.Py_ssize_t = bisect_left(tags, tag)
    is_missing: cython.bint = at < len(tags) and tags[at] == tag
    if multiple:
        del tags[: bisect_right(tags, tag)]
    elif is_missing:
        del tags[at]
    return is_missing


# Publishes that may come back are listed by route in `Channel.awaiting_return`. Where a route has
# several, `Channel.by_fingerprint` lists them by route and mark too (the same for the same
# properties and size), and by route, mark and body mark (the same for the same bytes of the body).
# A mark of 0 or a body mark of `NULL` is unknown: then the publish may be any. A list is an entry
# alone, for most keys have one, or a deque. What is answered is at the head of one only until it is
# trimmed, and no key is there without an entry.


@cython.cfunc
@cython.exceptval(-1)
def _add_returnable(entry: PendingMessage, returnable: Any) -> cython.longlong:
    """Enter a publish that may come back; gives the number of answered ones that went."""
    channel: Channel = entry.channel
    entry.may_return = True
    if channel.uncommitted is not None:
        channel.uncommitted_start += _drop_answered(channel.uncommitted)
        channel.uncommitted.append(entry)
    _drop_answered(returnable)
    returnable.append(entry)
    before = channel.awaiting_return.get(entry.route)
    if before is None:
        if not channel.awaiting_return:
            channel.awaiting_return = {}  # the one before may be shared
        channel.awaiting_return[entry.route] = entry
        return 0
    dropped: cython.longlong = _append(channel.awaiting_return, entry.route, entry)
    if type(before) is PendingMessage:
        _index_by_mark(before)
    return dropped


@cython.cfunc
@cython.exceptval(-1)
def _index_when_written(entry: PendingMessage) -> cython.int:
    """A returnable publish has its row: index it by its mark, unless it is alone on its route."""
    channel: Channel = entry.channel
    if type(channel.awaiting_return.get(entry.route)) is not PendingMessage:
        _index_by_mark(entry)
    return 0


@cython.cfunc
def _index_by_mark(entry: PendingMessage) -> cython.int:
    """Enter a publish by its mark, if it has one and still may come back."""
    channel: Channel = entry.channel
    if entry.may_return and entry.rows is not None:
        if not channel.by_fingerprint:
            channel.by_fingerprint = {}
        _append(channel.by_fingerprint, (entry.route, entry.mark), entry)
        _append(channel.by_fingerprint, (entry.route, entry.mark, entry.body_mark), entry)
    return 0


@cython.cfunc
def _find_returned(returned: PendingMessage) -> list[Any]:
    """The publishes that a return may refer to: the only match, or the oldest of equal publishes.

    All of them are candidates if they may differ, if the oldest may have been answered in missing
    frames, or if a confirm without a known number may refer to any of them.
    """
    found: list[Any]
    entry: PendingMessage
    channel: Channel = returned.channel
    route: tuple[Any, ...] = returned.route
    listed = channel.awaiting_return.get(route)
    if listed is None:
        return []
    if type(listed) is PendingMessage:
        entry = listed
        return [entry] if _may_be(entry, returned) else []
    if returned.mark == 0:
        return _open(listed)
    found = _open(channel.by_fingerprint.get((route, 0)))
    if returned.body_mark == NULL:
        return found + _open(channel.by_fingerprint.get((route, returned.mark)))
    found += _open(channel.by_fingerprint.get((route, returned.mark, NULL)))
    same = channel.by_fingerprint.get((route, returned.mark, returned.body_mark))
    if found:
        return found + _open(same)
    if same is None:
        return []
    if type(same) is not PendingMessage:
        entry = same[0]
        if entry.losses != channel.losses or _maybe_confirmed(entry):
            return _open(same)
        return [entry]
    return [same]


@cython.cfunc
def _maybe_confirmed(entry: PendingMessage) -> cython.bint:
    """True if a confirm may refer to a publish, because the publish has no known number."""
    last: cython.longlong = entry.channel.times.unknown_confirm_number
    return entry.number < 0 and entry.packet_number < last


@cython.cfunc
def _may_be(entry: PendingMessage, returned: PendingMessage) -> cython.bint:
    """True if no known value of a publish and of a return differs."""
    if entry.mark != returned.mark and entry.mark != 0 and returned.mark != 0:
        return False
    if entry.body_mark == NULL or returned.body_mark == NULL:
        return True
    return entry.body_mark == returned.body_mark


@cython.cfunc
def _open(listed: Any) -> list[Any]:
    """The entries of a list that may come back, as a new list."""
    if listed is None:
        return []
    if type(listed) is PendingMessage:
        return [listed] if cython.cast(PendingMessage, listed).may_return else []
    return [one for one in listed if cython.cast(PendingMessage, one).may_return]


@cython.cfunc
def _all_returnable(lists: dict[Any, Any]) -> list[Any]:
    """The entries of all lists, as one list."""
    found: list[Any] = []
    for listed in lists.values():
        if type(listed) is PendingMessage:
            found.append(listed)
        else:
            found.extend(listed)
    return found


@cython.cfunc
def _append(lists: dict[Any, Any], key: Any, entry: PendingMessage) -> cython.longlong:
    """Append an entry to the list of a key; gives the number of answered ones that went."""
    dropped: cython.longlong = _trim(lists, key)
    listed = lists.get(key)
    if listed is None:
        lists[key] = entry
    elif type(listed) is PendingMessage:
        lists[key] = deque((listed, entry))
    else:
        listed.append(entry)
    return dropped


@cython.cfunc
def _trim(lists: dict[Any, Any], key: Any) -> cython.longlong:
    """Take answered entries from the head of a list; gives their number."""
    listed = lists.get(key)
    if listed is None:
        return 0
    if type(listed) is PendingMessage:
        if cython.cast(PendingMessage, listed).may_return:
            return 0
        del lists[key]
        return 1
    dropped: cython.longlong = _drop_answered(listed)
    if not listed:
        del lists[key]
    return dropped


@cython.cfunc
def _drop_answered(entries: Any) -> cython.longlong:
    """Remove answered entries from the head of a deque; returns their number."""
    dropped: cython.longlong = 0
    while entries and not cython.cast(PendingMessage, entries[0]).may_return:
        entries.popleft()
        dropped += 1
    return dropped
