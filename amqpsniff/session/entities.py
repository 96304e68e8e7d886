# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The tracker's state: a `Session` per connection, a `ChannelSlot` per channel number of it, a
`Channel` per incarnation, a `PendingMessage` per publish or delivery that may still change.

An unknown value is None in objects and -1 in typed numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from operator import itemgetter

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CLIENT, SERVER
from cython.cimports.amqpsniff.session.method_flags import ACK, OTHER, PUBLISH
from cython.cimports.amqpsniff.session.rules.occasions import SHORT_NS, WAITED_NS

from amqpsniff.session import method_flags, state_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.rows import MessageRows
    from amqpsniff.session.routes import Routes

_NAMES = cython.declare(list, method_flags.NAMES)


_FIRST = cython.declare(cython.int, 4)


@cython.no_gc
@cython.cclass
class LastSent:
    """Packets of a client's last frames, -1 for none: of any, and of each method.

    The two methods that come with every message have their own numbers, which costs no time, and
    the first `_FIRST` others, which saves memory; `others` is None before there are more.
    """

    last: cython.longlong
    publish: cython.longlong
    ack: cython.longlong

    methods: cython.short[4]
    numbers: cython.longlong[4]
    others: dict[Any, Any]

    def __init__(self) -> None:
        self.last = self.publish = self.ack = -1
        self.others = None
        if not cython.compiled:
            self.methods, self.numbers = [-1] * _FIRST, [-1] * _FIRST
        for place in range(_FIRST):
            self.methods[place] = -1

    def note(self, kind: cython.int, method: cython.int, number: cython.longlong) -> cython.int:
        """A frame in packet `number`; `kind` is its method's, -1 of a frame that has none."""
        place: cython.int
        self.last = number
        if kind == PUBLISH:
            self.publish = number
        elif kind == ACK:
            self.ack = number
        elif kind >= OTHER:
            for place in range(_FIRST):
                if self.methods[place] in (method, -1):
                    self.methods[place] = method
                    self.numbers[place] = number
                    return 0
            if self.others is None:
                self.others = {}
            self.others[_NAMES[method]] = number
        return 0

    @cython.ccall
    def packet(self, method: str | None) -> Any:
        """The packet of the last frame with a method, by its name; of any with None."""
        place: cython.int
        number: cython.longlong = self.last
        if method == "basic.publish":
            number = self.publish
        elif method == "basic.ack":
            number = self.ack
        elif method is not None:
            for place in range(_FIRST):
                if self.methods[place] >= 0 and _NAMES[self.methods[place]] == method:
                    return self.numbers[place]
            return None if self.others is None else self.others.get(method)
        return number if number >= 0 else None


_FEW = cython.declare(cython.longlong, 16)
_MAX_CAPTURES = cython.declare(cython.longlong, 1_024)
_NOTED_AT = itemgetter(0)

_STATES = cython.declare(list, state_machine.CONNECTION.states)
_CHANNEL_STATES = cython.declare(list, state_machine.CHANNEL.states)
_CLOSING = cython.declare(bytes, state_machine.CONNECTION.closing)
_CHANNEL_CLOSING = cython.declare(bytes, state_machine.CHANNEL.closing)
_BEGUN = cython.declare(cython.int, state_machine.CONNECTION.code(state_machine.CONNECTION.start))
_UNKNOWN = cython.declare(cython.int, state_machine.CONNECTION.code(state_machine.UNKNOWN))
_FREE = cython.declare(str, state_machine.BLOCKING.start)

_MAX_TAG = cython.declare(cython.longlong, 2**63 - 1)

MAX_WAIT_NS = 200_000_000
"""Longest time from an acknowledgement to the next delivery that can be the network's: beyond, no
message was there."""


@cython.freelist(512)
@cython.cclass
class PendingMessage:
    """A publish, delivery or return, from its method on; `number` is its sequence number or tag.

    `rows` and `row`: the place of its message's row, once written; `open_row`: that row may still
    change. `wants`: the peer should answer it; `held`: a ledger has it; `ended`: it will get no
    outcome. `outcome`: a code of `OUTCOMES`, -1 for none. `may_return`: the broker may return it.
    `route`: exchange and routing key of a publish that may return, and with rules of any that has a
    number; of a return; else None.
    `mark` and `body_mark` are those of its row, 0 and `NULL` before it is written. `losses`: the
    channel's losses at its method, for publishes that may return and for AMQP 1.0. There may be
    very many entries: small types, in an order without gaps, make 136 bytes.
    """

    rows: MessageRows
    number: cython.longlong
    packet_number: cython.longlong
    ts_ns: cython.longlong
    outcome_number: cython.longlong
    outcome_ns: cython.longlong
    mark: cython.longlong
    body_mark: cython.longlong
    row: cython.int
    losses: cython.int
    outcome: cython.schar
    kind: cython.schar
    wants: cython.schar
    held: cython.schar
    open_row: cython.schar
    ended: cython.schar
    may_return: cython.schar
    consumer: Consumer
    channel: Channel
    route: tuple[Any, ...]

    if not cython.compiled:
        rows = consumer = route = None
        row = losses = mark = number = outcome_number = 0
        body_mark = NULL
        wants = held = open_row = ended = may_return = False


@cython.cfunc
def pending_message(
    channel: Channel, kind: cython.int, number: cython.longlong, ts_ns: cython.longlong
) -> PendingMessage:
    """The entry of a method of a kind, in packet `number`."""
    entry: PendingMessage = PendingMessage.__new__(PendingMessage)
    entry.channel = channel
    entry.kind = kind
    entry.packet_number = number
    entry.ts_ns = ts_ns
    entry.outcome = -1
    entry.outcome_ns = entry.body_mark = NULL
    return entry


_MAX_HOLDERS = cython.declare(cython.int, 2_047)
"""Channels of a connection that are asked for a delivery tag: those that RabbitMQ allows, unless it
is told otherwise. A client could open 65,535 and send tags that none of them knows."""

MAX_ANSWERED = 1_024
"""Answered entries that stay in a ledger's order, beyond as many as are not: one that is never
answered would keep all after it."""


@cython.final
@cython.cclass
class Ledger:
    """Entries of one channel that wait for an answer, by number; `waiting` counts them.

    `order` holds the entries as they came, from `head` to `end`, those that were answered meanwhile
    among them; answering many at once costs what there is to answer. Numbers mostly rise, and an
    entry is found in that order by its number; from the first number that does not until nothing
    waits, `entries` has those that wait by number and `lowest` is a heap of their numbers, with
    some that no longer wait; else both are None. `shared`: it stays empty, for channels that have
    had nothing.
    """

    head: cython.longlong
    end: cython.longlong
    waiting: cython.longlong
    last: cython.longlong
    disorder: cython.longlong
    max_answered: cython.longlong
    shared: cython.bint

    entries: dict[Any, Any]
    order: list[Any]
    lowest: list[Any]

    def __init__(self) -> None:
        self.order = []
        self.head = self.end = self.waiting = 0
        self.entries = self.lowest = None
        self.max_answered = MAX_ANSWERED
        self.shared = False
        self.last = -1
        self.disorder = 0

    @cython.cfunc
    def add(self, entry: PendingMessage) -> PendingMessage:
        """Enter an entry; gives the one that had its number, or None."""
        before: PendingMessage = None
        if self.waiting > 0 and entry.number <= self.last:
            self.disorder += 1
            if self.entries is None:
                self.entries = {one.number: one for one in self}
                self.lowest = list(self.entries)
        self.last = entry.number
        if self.entries is not None:
            before = self.entries.get(entry.number)
            self.entries[entry.number] = entry
            heappush(self.lowest, entry.number)
            if len(self.lowest) > self.max_answered + 2 * self.waiting:
                self.lowest = sorted(self.entries)
        if before is not None:
            before.held = False
            self.waiting -= 1
        entry.held = True
        self.waiting += 1
        if self.end < len(self.order):
            self.order[self.end] = entry
        else:
            self.order.append(entry)
        self.end += 1
        if self.end > self.max_answered + 2 * self.waiting:
            self.order = [one for one in self.order[self.head : self.end] if one.held]
            self.head, self.end = 0, len(self.order)
        return before

    @cython.ccall
    def find(self, number: cython.longlong) -> PendingMessage:
        """The entry with this number, or None."""
        entry: PendingMessage
        if self.entries is not None:
            return self.entries.get(number)
        if self.waiting == 0:
            return None
        low: cython.longlong = self.head
        high: cython.longlong = self.end - 1
        entry = self.order[low]
        if number <= entry.number:
            return entry if number == entry.number and entry.held else None
        if number - entry.number < high - low:
            high = low + (number - entry.number)
        place: cython.longlong = high  # is right where no number was left out
        while low <= high:
            entry = self.order[place]
            if entry.number == number:
                return entry if entry.held else None
            if entry.number < number:
                low = place + 1
            else:
                high = place - 1
            place = (low + high) >> 1
        return None

    @cython.cfunc
    def pop(self, number: cython.longlong) -> PendingMessage:
        """Take out the entry with this number, or None."""
        found: PendingMessage = self.find(number)
        if found is None:
            return None
        self._release(found)
        if self.waiting == 0:
            self._clear()
            return found
        while not cython.cast(PendingMessage, self.order[self.head]).held:
            self.head += 1
        return found

    @cython.cfunc
    def pop_until(self, number: cython.longlong) -> list[Any]:
        """Take out every entry up to a number, all of them for a negative one, as a list."""
        entry: PendingMessage
        taken: list[Any] = []
        while self.lowest and (number < 0 or self.lowest[0] <= number):
            entry = self.entries.get(heappop(self.lowest))
            if entry is not None:
                self._release(entry)
                taken.append(entry)
        while self.entries is None and self.head < self.end:
            entry = self.order[self.head]
            if number >= 0 and entry.number > number:
                break
            self.head += 1
            if entry.held:
                self._release(entry)
                taken.append(entry)
        if self.waiting == 0:
            self._clear()
        return taken

    def __len__(self) -> Any:
        return self.waiting

    def above(self, number: Any, unsure: Any = False) -> Any:
        """Number of entries above a number; `unsure`: those too that may want no answer."""
        entry: PendingMessage
        count: cython.longlong = 0
        for entry in self:
            if entry.number > number and (unsure or entry.wants):
                count += 1
        return count

    def __iter__(self) -> Any:
        """The entries that wait, in the order in which they came."""
        if self.entries is not None:
            yield from self.entries.values()
            return
        place: cython.Py_ssize_t
        for place in range(self.head, self.end):
            entry: PendingMessage = self.order[place]
            if entry.held:
                yield entry

    def _release(self, entry: PendingMessage) -> cython.int:
        """An entry no longer waits."""
        entry.held = False
        self.waiting -= 1
        if self.entries is not None:
            del self.entries[entry.number]
        return 0

    def _clear(self) -> cython.int:
        """Nothing waits. A few places are used again: that costs less than making them."""
        place: cython.Py_ssize_t
        if self.end > _FEW:
            self.order = []
        else:
            for place in range(self.end):
                self.order[place] = None
        self.head = self.end = 0
        self.entries = self.lowest = None
        return 0


_NO_ENTRIES = cython.declare(Ledger, Ledger())
_NO_NAMES: dict[Any, Any] = cython.declare(dict, {})
_NOTHING: list[Any] = cython.declare(list, [])
"""Empty collections that all channels begin with. They are shared and never written to: a channel
gets its own before the first entry. That saves 1 kB for a connection on which nothing happens."""

_NO_ENTRIES.shared = True


@cython.cclass
class Consumer:
    """A consumer of a channel: its queue and whether it acknowledges; None if unknown."""

    no_ack: Any
    prefetch: Any
    delivered: cython.longlong
    unsettled: cython.longlong
    unsettled_max: cython.longlong
    batch: cython.longlong
    code: cython.int

    tag: str
    queue: str

    def __init__(self, tag: Any, no_ack: Any, prefetch: Any = None) -> None:
        self.tag = tag
        self.queue = None
        self.no_ack = no_ack
        self.prefetch = prefetch
        self.delivered = 0
        self.unsettled = 0
        self.unsettled_max = 0
        self.batch = self.code = -1


@cython.cclass
class Closeable:
    """The end of a connection or channel.

    `closed_by` is a name of `SIDES` (for a connection also `fin` or `rst`). `close` has reply code
    and text of the first close, the method that it blames, and whether that method was captured.
    """

    closed_by: Any
    close: Any

    @property
    def close_code(self) -> Any:
        """The reply code of the first close; None without one."""
        return self.close and self.close[0]

    @property
    def close_text(self) -> Any:
        """Its reply text."""
        return self.close and self.close[1]

    @property
    def blames(self) -> Any:
        """True if the first close blames a captured method, or there is no close."""
        return self.close is None or self.close[3]

    @property
    def close_method(self) -> Any:
        """The method that it blames, or None."""
        return self.close and self.close[2]


@cython.cclass
class QueueTimes:
    """Queue times of the deliveries of a channel whose publish was found.

    `queued`: their number; `queued_long`: number of those that waited `WAITED_NS` or longer, the
    first in packet `long_number` at `long_ns`. `longest`: the delivery with the longest wait, as
    (packet, time, queue, packet of the publish). `fresh`: their number up to the last delivery with
    a shorter wait, or up to the first: with its packet, time and wait. `latest_ns`,
    `latest_wait_ns`: time and wait of the last delivery.
    """

    queued: cython.longlong
    queued_long: cython.longlong
    queued_ns: cython.longlong
    queued_ns_max: cython.longlong
    long_number: cython.longlong
    long_ns: cython.longlong
    fresh: cython.longlong
    fresh_number: cython.longlong
    fresh_ns: cython.longlong
    fresh_wait_ns: cython.longlong
    latest_ns: cython.longlong
    latest_wait_ns: cython.longlong

    longest: tuple[Any, ...]

    def __init__(self) -> None:
        self.queued = self.queued_long = self.queued_ns = self.queued_ns_max = 0
        self.long_number = self.fresh_number = -1
        self.long_ns = self.fresh_ns = self.latest_ns = NULL
        self.fresh = self.fresh_wait_ns = self.latest_wait_ns = 0
        self.longest = None

    def add_wait(
        self, waited: cython.longlong, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """A delivery, by its packet and time, waited; True if none did for longer."""
        self.queued += 1
        self.queued_ns += waited
        self.latest_ns, self.latest_wait_ns = ts_ns, waited
        if waited < WAITED_NS or self.queued == 1:
            self.fresh = self.queued
            self.fresh_number, self.fresh_ns, self.fresh_wait_ns = number, ts_ns, waited
        if waited >= WAITED_NS:
            if self.queued_long == 0:
                self.long_number, self.long_ns = number, ts_ns
            self.queued_long += 1
        if waited <= self.queued_ns_max:
            return False
        self.queued_ns_max = waited
        return True


@cython.cclass
class MessageTimes(QueueTimes):
    """Times and numbers of messages of a channel; channels without messages have none.

    `confirm_ns`, `ack_ns`: sums over the messages that `confirmed` and the channel's `acknowledged`
    count; where publishes have no known number, sums of lower bounds over `bounds` confirms.
    `_max`: the longest; `slow_confirm_…`, `slow_ack_…`: packet and time of the publish or delivery
    of the longest. `most_…`: the delivery at which `unsettled` reached its maximum. `waits`:
    deliveries that came while none was unsettled, within `MAX_WAIT_NS` of the last acknowledgement.
    `pauses`: number of times without acknowledgements for `PAUSED_ACKS_NS` while a prefetch count
    was used up, `pause_ns` in all, the first since the delivery in packet `pause_number`.
    `waited_publishes`: publishes made while none was unconfirmed. `repeats`: repeated publishes.
    `first_logged`: ordinal of its first sighting, negative for none. `first_tag`: the tag of the
    first delivery, else -1. `maybe_confirmed_to`, `maybe_returned_to`: a method that was cut may
    have answered, or returned, the publishes up to this number. `unknown_confirm_number`: the
    packet of the last confirm without a known publish, else -1.
    """

    confirmed: cython.longlong
    bounds: cython.longlong
    returned: cython.longlong
    unconfirmed_max: cython.longlong
    maybe_confirmed_to: cython.longlong
    maybe_returned_to: cython.longlong
    unknown_confirm_number: cython.longlong
    first_tag: cython.longlong
    repeats: cython.longlong
    last_repeat: cython.longlong
    first_logged: cython.longlong
    waits: cython.longlong
    wait_ns: cython.longlong
    wait_ns_min: cython.longlong
    most_number: cython.longlong
    slow_confirm_number: cython.longlong
    slow_ack_number: cython.longlong
    most_ns: cython.longlong
    slow_confirm_ns: cython.longlong
    slow_ack_ns: cython.longlong
    confirm_ns: cython.longlong
    confirm_ns_max: cython.longlong
    ack_ns: cython.longlong
    ack_ns_max: cython.longlong
    pauses: cython.longlong
    pause_ns: cython.longlong
    pause_number: cython.longlong
    pause_began_ns: cython.longlong
    publish_bytes: cython.longlong
    deliver_bytes: cython.longlong
    acks: cython.longlong
    multiple_acks: cython.longlong
    requeued: cython.longlong
    rejected: cython.longlong
    redelivered: cython.longlong
    gets: cython.longlong
    commits: cython.longlong
    waited_publishes: cython.longlong
    first_publish_ns: cython.longlong
    last_publish_ns: cython.longlong
    first_publish_number: cython.longlong
    last_publish_number: cython.longlong
    first_delivery_ns: cython.longlong
    last_delivery_ns: cython.longlong
    last_ack_ns: cython.longlong

    def __init__(self) -> None:
        QueueTimes.__init__(self)
        self.confirmed = self.bounds = self.returned = self.unconfirmed_max = 0
        self.maybe_confirmed_to = self.maybe_returned_to = self.repeats = self.last_repeat = 0
        self.first_tag = self.first_logged = self.unknown_confirm_number = -1
        self.waits, self.wait_ns, self.wait_ns_min = 0, 0, NULL
        self.most_number = self.slow_confirm_number = self.slow_ack_number = -1
        self.most_ns = self.slow_confirm_ns = self.slow_ack_ns = NULL
        self.confirm_ns = self.confirm_ns_max = self.ack_ns = self.ack_ns_max = 0
        self.pauses = self.pause_ns = 0
        self.pause_number, self.pause_began_ns = -1, NULL
        self.publish_bytes = self.deliver_bytes = self.acks = self.multiple_acks = 0
        self.requeued = self.rejected = self.redelivered = 0
        self.gets = self.commits = self.waited_publishes = 0
        self.first_publish_ns = self.last_publish_ns = NULL
        self.first_publish_number = self.last_publish_number = 0
        self.first_delivery_ns = self.last_delivery_ns = self.last_ack_ns = NULL


_NO_TIMES = cython.declare(MessageTimes, MessageTimes())
"""The times of channels without any: shared and never written to."""


@cython.cclass
class Channel(Closeable):
    """One incarnation of a channel; `known`: its channel.open was captured.

    `blamed_packet_number`: the oldest request that waited when the server closed the channel and
    blamed its method. Times are ns since the epoch. `numbering`: publishes are numbered now;
    `numbered`: they were once. `uncommitted`: publishes of transactions that may be returned,
    `uncommitted_start`: the number of publishes before them. `recent_consumer`: the consumer of
    deliveries with `recent_consumer_code` for a tag, in batch `recent_consumer_batch`.
    `unnumbered_confirms`: confirms of publishes without a known number, or None. `last_tag`:
    the tag of the last delivery, else -1. `tag_before_loss`: the tag of the last delivery before a
    possible loss of the client's frames, else -1; `publish_before_loss`: the number of the last
    publish before a possible loss of the broker's frames; `losses`: number of possible losses.
    `maybe_settled_to`: a method that was cut may have settled the deliveries up to this tag.
    `cancelled`: the last consumers that the broker cancelled, by tag: RabbitMQ 4.3 may deliver to
    them again. `publishes_uncertain`, `deliveries_uncertain`: the number of waiting entries is
    unknown, after a possible loss or beyond the limit. `missed_tags`: tags of missing deliveries,
    by the gaps in the sequence, or None. `refusals_lost`: a refusal of the broker may be missing.
    `tentative`: acknowledgements that take effect unless the broker refuses them, as tuples (entry,
    `Answer`), each after the one that it may refuse: (None, `Answer`); or None. `broker_discards`:
    a side has closed the channel, so the broker discards the client's frames. `unfinished`: the
    last incomplete content, as (side, packet, time, bytes of the body captured, its size).
    `amqp10`: the `Amqp10Session` that the channel represents, else None.
    """

    number: cython.int
    incarnation: cython.int
    known: cython.bint
    numbering: cython.bint
    numbered: cython.bint
    in_transaction: cython.bint
    broker_discards: cython.bint
    published: cython.longlong
    delivered: cython.longlong
    acknowledged: cython.longlong
    unsettled: cython.longlong
    unsettled_max: cython.longlong
    unconfirmed: cython.longlong
    consumers: cython.longlong
    next_number: cython.longlong
    maybe_settled_to: cython.longlong
    publish_before_loss: cython.longlong
    last_tag: cython.longlong
    tag_before_loss: cython.longlong
    losses: cython.int
    recent_consumer_code: cython.int
    recent_consumer_batch: cython.longlong
    publishes_uncertain: cython.bint
    deliveries_uncertain: cython.bint
    uncommitted_start: cython.longlong
    opened_number: cython.longlong
    opened_ns: cython.longlong

    session: Session
    slot: ChannelSlot
    capture: Any
    closed_packet_number: Any
    end_ns: Any
    mode: Any
    prefetch_count: Any
    amqp10: Any
    blamed_packet_number: Any
    prefetch_each: Any
    prefetch_shared: Any
    times: MessageTimes
    publishes: Ledger
    deliveries: Ledger
    awaiting_return: dict[Any, Any]
    by_fingerprint: dict[Any, Any]
    by_tag: dict[Any, Any]
    recent_consumer: Consumer
    cancelled: dict[Any, Any]
    noted: list[Any]
    committing: list[Any]
    tentative: Any
    missed_tags: list[Any]
    refusals_lost: cython.bint
    last_queue: Any
    declaring: Any
    unnumbered_confirms: Any
    uncommitted: Any
    unfinished: tuple[Any, ...]

    def __init__(self, session: Any, slot: Any, capture: Any, known: Any) -> None:
        self.session, self.slot, self.capture = session, slot, capture
        self.number, self.incarnation = slot.number, slot.incarnations
        self.known = known
        self.opened_number, self.opened_ns = -1, NULL
        self.closed_packet_number = self.end_ns = None
        self.closed_by = self.close = self.blamed_packet_number = None
        self.mode = self.uncommitted = self.unnumbered_confirms = None
        self.prefetch_count = self.prefetch_each = self.prefetch_shared = None
        self.published = self.delivered = self.acknowledged = self.consumers = 0
        self.unsettled = self.unsettled_max = self.unconfirmed = self.uncommitted_start = 0
        self.last_tag = self.tag_before_loss = self.publish_before_loss = -1
        self.losses = 0
        self.times = _NO_TIMES
        self.numbering = self.numbered = self.in_transaction = False
        self.next_number = 1
        self.maybe_settled_to = 0
        self.publishes = self.deliveries = _NO_ENTRIES
        self.awaiting_return = self.by_fingerprint = self.by_tag = _NO_NAMES
        self.cancelled = None
        self.recent_consumer, self.recent_consumer_code, self.recent_consumer_batch = None, -1, -1
        self.noted = self.committing = _NOTHING
        self.tentative = self.missed_tags = None
        self.refusals_lost = False
        self.publishes_uncertain = self.deliveries_uncertain = False
        self.last_queue = self.declaring = self.unfinished = None
        self.broker_discards = False
        self.amqp10 = None

    @property
    def opened_packet_number(self) -> Any:
        """The packet that opened it; None where that was not captured."""
        return None if self.opened_number < 0 else self.opened_number

    @property
    def start_ns(self) -> Any:
        """Time of that packet; None where it has none."""
        return None if self.opened_ns == NULL else self.opened_ns

    @cython.cfunc
    def own_times(self) -> MessageTimes:
        """The times, to be written to."""
        if self.times is _NO_TIMES:
            self.times = MessageTimes()
        return self.times

    @property
    def closing(self) -> Any:
        """(client, server): True for a side that has closed it, while it is there."""
        return _pair(_CHANNEL_CLOSING[self.slot.state_code])

    def doubtful_publish(self) -> Any:
        """The highest number of a publish that missing frames may have answered."""
        session: Session = self.session
        if not session.server_seen or session.missing & 1 << SERVER:
            return self.next_number
        return max(self.times.maybe_confirmed_to, self.publish_before_loss)

    def doubtful_delivery(self) -> Any:
        """The highest tag of a delivery that missing frames may have settled."""
        if self.session.missing & 1 << CLIENT:
            return _MAX_TAG
        return max(self.maybe_settled_to, self.tag_before_loss)

    def may_be_committed(self) -> Any:
        """True if the answer to a commit may be in missing frames."""
        session: Session = self.session
        lost = session.missing & 1 << SERVER or self.publish_before_loss >= 0
        return lost or not session.server_seen

    def counts_publishes(self) -> Any:
        """True if the number of publishes that wait for a confirm is known."""
        session: Session = self.session
        return (
            session.server_seen
            and not session.missing
            and (self.known or self.numbered)
            and not self.publishes_uncertain
            and not self.times.maybe_confirmed_to
        )

    def counts_deliveries(self) -> Any:
        """True if the number of deliveries that wait for an acknowledgement is known."""
        session: Session = self.session
        return (
            session.server_seen
            and not session.missing
            and self.known
            and not self.deliveries_uncertain
            and not self.maybe_settled_to
        )


@cython.cclass
class ChannelSlot:
    """A channel number of a connection: its state, and requests that wait for replies.

    `state_code`: the state. `channel`: the open incarnation, None if only replies are requested.
    `no_reply_expected`: sides that no longer wait for replies, one bit each. `last_sent`: None
    without findings. `early_replies`: replies whose requests may come late, see `ReplyMatcher`.
    `used_since_loss`: the lists of `Session.used_since_loss` that have it, one bit a side. `key`:
    its key in the connection, not a channel number if a server of AMQP 1.0 begins a session.
    `older`: the slot of its connection made before it, or None.
    """

    number: cython.int
    incarnations: cython.int
    key: cython.int
    state_code: cython.schar
    no_reply_expected: cython.schar
    used_since_loss: cython.schar

    older: ChannelSlot
    channel: Channel
    requests: list[Any]
    early_replies: list[Any]
    last_sent: LastSent

    def __init__(self, number: Any) -> None:
        self.number = self.key = number
        self.older = self.channel = self.last_sent = None
        self.incarnations = 0
        self.requests = self.early_replies = _NOTHING
        self.state_code = self.no_reply_expected = self.used_since_loss = 0

    @property
    def state(self) -> Any:
        """The state by its name."""
        return _CHANNEL_STATES[self.state_code]


def _pair(bits: Any) -> Any:
    """One bit a side as a pair."""
    return bits & 1 != 0, bits & 2 != 0


_FEW_SLOTS = cython.declare(cython.int, 4)
_STEPS = cython.declare(cython.int, 12)  # two numbers for each of `HANDSHAKE`


class _Handshake:
    """Handshake steps as attributes: a key-sharing dict takes half the memory."""


class _Memory:
    """State of rules about a connection, as attributes for the same reason."""


def capture_at(first: Any, changes: Any, ts_ns: Any) -> Any:
    """The capture of a time, by the `capture` and the `captures` of a `Session`."""
    if changes is None or ts_ns is None:
        return first
    at = bisect_right(changes, ts_ns, key=_NOTED_AT)
    return changes[at - 1][1] if at else first


@cython.cclass
class Session(Closeable):
    """State of an AMQP connection; `number` counts them.

    `capture`: the capture of its first frame. `captures`: (ts_ns, capture) of each change, or None
    if there is only one capture. `newest`: the last of its `slot_count` channel slots, each of
    which refers to the one before; `by_key` has them if they are many, else it is None: most
    connections have two. `handshake` has the `HandshakeArguments` by method. `has_loss`: frames, or
    arguments that decide the outcome of other methods, may be missing. `missing`: sides whose
    frames may be missing since their last method, one bit a side. `server_seen`: a frame of the
    server was captured. `has_consumed`: it has or had consumers. `state_code`: its state.
    `amqp10`: state of `session.amqp10`, `client`: state of `session.rules.peers`. `confirms`,
    `acks`: `counts.LatencyHistogram` or None. `calls`: requests by message that wait for their
    answers. `last_sent`: of all channels, None before the
    client's first frame. `used_since_loss`: channel slots that were used since frames of a side
    were lost, a list a side; None before a loss. `lost_at`: the last losses of each side, a list of
    (packet number, ts_ns, number of losses so far). `last_…_ns`: time of the last frame of a side,
    `silence_…_ns`: its longest pause. `owed`: each side's debts at its end, a sentence; None if
    unknown. `steps`: time and packet of each step of the handshake, where it is read, `NULL` for a
    step that was not captured. With findings: `frames`: number of frames; `opening_…_ns`: the
    longest pause until the connection was open, -1 before; `routes`: its messages by route;
    `traced_…`, `untraced_…`: number of messages with and without a trace context; `bulky`: the last
    delivery that may have delayed others, as (channel, end of it or of the deliveries after it, end
    of its effect, size, took_ns), or None.
    """

    connection: Any
    capture: Any
    captures: list[Any]
    number: cython.longlong
    has_loss: cython.bint
    server_seen: cython.bint
    pending_rpcs: cython.longlong
    frames: cython.longlong
    traced_published: cython.longlong
    traced_delivered: cython.longlong
    untraced_published: cython.longlong
    looked: cython.longlong
    last_client_ns: cython.longlong
    last_server_ns: cython.longlong
    silence_client_ns: cython.longlong
    silence_server_ns: cython.longlong
    opening_client_ns: cython.longlong
    opening_server_ns: cython.longlong
    over: cython.bint
    has_consumed: cython.bint
    state_code: cython.schar
    no_reply_expected: cython.schar
    missing: cython.schar
    channels_opened: cython.longlong
    published: cython.longlong
    delivered: cython.longlong
    acknowledged: cython.longlong
    publish_bytes: cython.longlong
    deliver_bytes: cython.longlong

    handshake: dict[Any, Any]
    memory: dict[Any, Any]
    amqp10: Any
    client: Any
    confirms: Any
    acks: Any
    last_sent: LastSent
    last: ChannelSlot
    newest: ChannelSlot
    by_key: dict[Any, Any]
    slot_count: cython.int
    blocking: str
    close_packet_number: Any
    close_ns: Any
    blocked_since: Any
    blocked_ns: Any
    owed: Any
    used_since_loss: tuple[Any, ...]
    lost_at: tuple[Any, ...]
    bulky: tuple[Any, ...]
    routes: Routes
    steps: cython.longlong[12]

    def __init__(self, connection: Any, capture: Any, number: Any) -> None:
        self.connection = connection
        self.capture = capture
        self.captures = None
        self.number = number
        self.handshake, self.memory = _NO_NAMES, vars(_Memory())
        self.last = self.newest = self.by_key = self.amqp10 = self.client = None
        self.slot_count = 0
        self.over = self.has_loss = self.server_seen = self.has_consumed = False
        self.state_code = _BEGUN if connection.began else _UNKNOWN
        self.blocking = _FREE
        self.no_reply_expected = self.pending_rpcs = self.missing = 0
        self.traced_published = self.traced_delivered = self.untraced_published = 0
        self.looked = 0
        self.channels_opened = self.published = self.delivered = self.acknowledged = 0
        self.publish_bytes = self.deliver_bytes = 0
        self.closed_by = self.close = self.close_packet_number = self.close_ns = None
        self.confirms = self.acks = self.last_sent = None
        self.frames = 0
        self.last_client_ns = self.last_server_ns = NULL
        self.silence_client_ns = self.silence_server_ns = 0
        self.opening_client_ns = self.opening_server_ns = -1
        self.blocked_since, self.blocked_ns = None, 0
        self.owed = self.routes = None
        self.used_since_loss = self.lost_at = self.bulky = None
        if not cython.compiled:
            self.steps = [NULL] * _STEPS
        for place in range(_STEPS):
            self.steps[place] = NULL

    @property
    def state(self) -> Any:
        """The state by its name."""
        return _STATES[self.state_code]

    def note_capture(self, ts_ns: cython.longlong, capture: Any) -> cython.int:
        """From a time on its packets are in a capture; nothing new in most cases."""
        last = self.capture if self.captures is None else self.captures[len(self.captures) - 1][1]
        if capture == last or ts_ns == NULL:
            return 0
        if self.captures is None:
            self.captures = []
        if len(self.captures) < _MAX_CAPTURES:
            self.captures.append((ts_ns, capture))
        return 0

    @cython.ccall
    def capture_at(self, ts_ns: Any) -> Any:
        """The capture that its packet of a time is in."""
        return capture_at(self.capture, self.captures, ts_ns)

    @cython.ccall
    def slot(self, key: cython.int) -> ChannelSlot:
        """The slot of a channel number, None before it was used."""
        slot: ChannelSlot = self.newest
        if self.by_key is not None:
            return self.by_key.get(key)
        while slot is not None and slot.key != key:
            slot = slot.older
        return slot

    def add_slot(self, slot: ChannelSlot) -> cython.int:
        """Enter the slot of a channel number that was not used before."""
        slot.older, self.newest = self.newest, slot
        self.slot_count += 1
        if self.by_key is not None:
            self.by_key[slot.key] = slot
        elif self.slot_count > _FEW_SLOTS:
            self.by_key = {one.key: one for one in self.slots()}
        return 0

    @cython.ccall
    def slots(self) -> Any:
        """All channel slots in the order in which they were first used."""
        if self.by_key is not None:
            return self.by_key.values()
        slot: ChannelSlot = self.newest
        found: list[Any] = []
        while slot is not None:
            found.append(slot)
            slot = slot.older
        found.reverse()
        return found

    def step_times(self) -> tuple[int, ...]:
        """The time of each step of the handshake, `NULL` if unknown."""
        return tuple([self.steps[place] for place in range(0, _STEPS, 2)])

    def step(self, place: cython.int) -> Any:
        """Time and packet of the step at an index of `steps`, None if unknown."""
        pair = self.steps[place], self.steps[place + 1]
        return tuple(None if one == NULL else one for one in pair)

    @cython.ccall
    @cython.exceptval(-1)
    def take_handshake(self, method: Any, known: Any) -> cython.int:
        """Keep the `HandshakeArguments` of a method."""
        if not self.handshake:
            self.handshake = vars(_Handshake())
        self.handshake[method] = known
        return 0

    def handshake_json(self, method: Any) -> Any:
        """The arguments of a method of its handshake as JSON; None where it was not seen."""
        known = self.handshake.get(method)
        return None if known is None else known.json

    def handshake_whole(self, method: Any) -> Any:
        """True if all of them were captured."""
        known = self.handshake.get(method)
        return known is not None and known.whole

    @property
    def closing(self) -> Any:
        """(client, server): True for a side that has closed it."""
        return _pair(_CLOSING[self.state_code])

    @property
    def only_looked(self) -> Any:
        """True if its client left at once, without a login, when the broker had answered.

        A health check needs a round trip; a client that is stopped, or waits in vain, stays longer.
        """
        if "connection.start" not in self.handshake or "connection.start-ok" in self.handshake:
            return False
        conversation, client = self.connection.conversation, self.connection.client_direction
        lived = conversation.ended_ns - conversation.start_ns
        return conversation.ended_by == client and conversation.start_ns > 0 and lived < SHORT_NS

    @cython.cfunc
    def drain_used(self, side: cython.int) -> list[Any]:
        """The channel slots that were used since frames of a side were lost last."""
        slot: ChannelSlot
        if self.used_since_loss is None:
            slots = list(self.slots())
            self.used_since_loss = (slots, list(slots))
            for slot in slots:
                slot.used_since_loss = 3
        changed: list[Any] = self.used_since_loss[side]
        taken: list[Any] = list(changed)
        for slot in changed:
            slot.used_since_loss &= ~(1 << side)
        changed.clear()
        if self.last is not None:
            self.note_used(self.last)
        return taken

    def note_used(self, slot: ChannelSlot) -> cython.int:
        """A channel number is used: a later loss may concern it."""
        side: cython.int
        for side in range(2):
            if not slot.used_since_loss & 1 << side:
                slot.used_since_loss |= 1 << side
                self.used_since_loss[side].append(slot)
        return 0

    @cython.ccall
    def holder(self, tag: cython.longlong, but: Channel | None) -> Channel:
        """The first other channel (not `but`) with an outstanding delivery of this tag, or None.

        Only the first `_MAX_HOLDERS` channel numbers are searched.
        """
        slot: ChannelSlot
        channel: Channel
        number: cython.int
        for number, slot in enumerate(self.slots()):
            channel = slot.channel
            if number >= _MAX_HOLDERS:
                return None
            if channel is None or channel is but:
                continue
            if channel.deliveries.find(tag) is not None:
                return channel
        return None
