# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""What a tracker remembers: a `Session` per connection, a `Lane` per channel number of it, a
`Channel` per incarnation, an `Entry` per publish or delivery that may still change.

A null that means "not known" is None in objects
and -1 in typed numbers.
"""

import json

import cython

from amqpsniff.columns import NULL
from amqpsniff.session import states
from amqpsniff.spec import METHODS

if cython.compiled:
    from cython.cimports.amqpsniff.decode.rows import FrameRows  # type: ignore[import-not-found]
else:
    from amqpsniff.decode.rows import FrameRows

_NULL = cython.declare(cython.longlong, NULL)

_BEGUN = cython.declare(str, states.CONNECTION.start)
_UNKNOWN = cython.declare(str, states.UNKNOWN)
_FREE = cython.declare(str, states.BLOCKING.start)
_CLOSED = cython.declare(str, states.CHANNEL.start)

CLIENT, SERVER = 0, 1

OUTCOMES = (
    "confirmed rejected returned unconfirmed acked requeued discarded automatic unsettled"
).split()
"""Outcomes of messages, by code."""

CONFIRMED, REJECTED, RETURNED, UNCONFIRMED, ACKED, REQUEUED, DISCARDED, AUTOMATIC, UNSETTLED = (
    range(9)
)


Reason = tuple[int | None, str | None, str | None]
"""Reply code and text of a close, and the method that it blames."""

_FIRST = tuple(method for method in METHODS if "0-9-1" in method.dialects)
_NAMES = {(one.class_id, one.method_id): one.name for one in reversed((*_FIRST, *METHODS))}
"""Methods by their numbers; where dialects differ, that of 0-9-1."""


def read_json(octets):
    """Arguments from their JSON, as a dict; empty when they were not captured."""
    if not octets:
        return {}
    try:
        arguments = json.loads(octets)
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def read_reason(octets):
    """What a close says, from its arguments' JSON, as a `Reason`."""
    arguments = read_json(octets)
    code, text = arguments.get("reply_code"), arguments.get("reply_text")
    blamed = (arguments.get("class_id"), arguments.get("method_id"))
    return code, text if isinstance(text, str) else None, _NAMES.get(blamed)


MOST_WAIT_NS = 200_000_000
"""Longest time from an acknowledgement to the next delivery that can be the network's: beyond, no
message was there."""


class Entry:
    """A publish, delivery or return, from its method on; `number` is its sequence number or tag.

    `rows` and `row` say where its message's row is, once that was written, and `open_row` whether
    that row may still change. `wants`: it is known that the peer should answer it; `held`: a ledger
    has it; `ended`: it will get no outcome any more. `outcome`: a code of `OUTCOMES`, -1 for none.
    `returnable`: it may come back; `route`, where it may or did: exchange and routing key, else
    None. There may be very many: small types, in an order that leaves no gaps, make 128 octets.
    """

    def __init__(self):
        self.rows = None
        self.outcome = -1
        self.kind = 0
        self.number = 0
        self.outcome_number = 0
        self.outcome_ns = _NULL
        self.wants = False
        self.held = False
        self.open_row = False
        self.ended = False
        self.returnable = False
        if not cython.compiled:
            self.channel = self.consumer = self.route = None
            self.mark = 0


MOST_ANSWERED = 1_024
"""Answered entries that stay in a ledger's order, beyond as many as are not: one that is never
answered would keep all after it."""


class Ledger:
    """Entries of one channel that wait for an answer, by number.

    Numbers mostly rise. `order` holds the entries as they came, from `head` on, those that were
    answered meanwhile among them; answering many at once costs what there is to answer.
    """

    def __init__(self):
        self.entries = {}
        self.order = []
        self.head = 0
        self.most_answered = MOST_ANSWERED
        self.last = -1
        self.rising = True
        self.disorder = 0

    def add(self, entry):
        """Enter an entry; gives the one that had its number, or None."""
        before: Entry = self.entries.get(entry.number)
        if before is not None:
            before.held = False
        entry.held = True
        if entry.number <= self.last and self.entries:
            self.rising = False
            self.disorder += 1
        self.last = entry.number
        self.entries[entry.number] = entry
        self.order.append(entry)
        if len(self.order) > self.most_answered + 2 * len(self.entries):
            self.order = [one for one in self.order[self.head :] if one.held]
            self.head = 0
        return before

    def take(self, number):
        """Take out the entry of a number; None when there is none."""
        found: Entry = self.entries.pop(number, None)
        if found is None:
            return None
        found.held = False
        if len(self.entries) == 0:
            self.order = []
            self.head = 0
            self.rising = True
            return found
        while not cython.cast(Entry, self.order[self.head]).held:
            self.head += 1
        return found

    def take_until(self, number):
        """Take out every entry up to a number, all of them for a negative one, as a list."""
        entry: Entry
        taken: list = []
        if not self.order:
            return taken
        if not self.rising:
            self.order = sorted(self.entries.values(), key=_number_of)
            self.head = 0
            self.rising = True
            entry = self.order[len(self.order) - 1]
            self.last = entry.number
        while self.head < len(self.order):
            entry = self.order[self.head]
            if number >= 0 and entry.number > number:
                break
            self.head += 1
            if entry.held:
                entry.held = False
                del self.entries[entry.number]
                taken.append(entry)
        if len(self.entries) == 0:
            self.order.clear()
            self.head = 0
        return taken


def _number_of(entry):
    return entry.number


class Consumer:
    """A consumer of a channel: its queue and whether it acknowledges; None where not known."""

    def __init__(self, tag, no_ack, prefetch=None):
        self.tag = tag
        self.queue = None
        self.no_ack = no_ack
        self.prefetch = prefetch
        self.delivered = 0
        self.unsettled = 0
        self.unsettled_max = 0
        self.vocabulary = None
        self.code = -1


class Request:
    """A request that waits for its reply; `rows` and `row` are its frame's.

    `subject` is what the request's handler keeps for that of the reply.
    """

    def __init__(self, rows: FrameRows, row: cython.longlong):
        self.method = rows.method.values[row]
        self.side = rows.sender.values[row]
        self.rows = rows
        self.row = row
        self.number = rows.packet_number.values[row]
        self.ts_ns = rows.ts_ns.values[row]
        self.subject = None


class Event:
    """One method frame, for a handler; `side` is who sent it, 0 for the client."""

    def __init__(self, name, rows: FrameRows, row: cython.longlong):
        self.name = name
        self.method = rows.method.values[row]
        self.side = rows.sender.values[row]
        self.rows = rows
        self.row = row
        self.number = rows.packet_number.values[row]
        self.ts_ns = rows.ts_ns.values[row]
        self.flags = rows.flags.values[row]
        self.reply_code = rows.reply_code.values[row]

    @property
    def octets(self):
        """The arguments as JSON; None when there are none to read."""
        return self.rows.arguments.octets_of(self.row)

    @property
    def arguments(self):
        """The arguments as a dict; empty when they were not captured."""
        return read_json(self.octets)

    @property
    def queue(self):
        """The argument of that name; None where the method has none or it was not captured."""
        return self.rows.vocabularies.queue.text(self.rows.queue.values[self.row])

    @property
    def consumer_tag(self):
        """The argument of that name; None where the method has none or it was not captured."""
        return self.rows.vocabularies.consumer_tag.text(self.rows.consumer_tag.values[self.row])


class Closable:
    """What a connection and a channel have in common: how they end. `closed_by` is a name of
    `SIDES` (of a connection also `fin` or `rst`), `close_octets` the close's arguments as JSON.
    """

    @property
    def close_code(self):
        """The reply code of the first close; None without one."""
        return read_reason(self.close_octets)[0]

    @property
    def close_text(self):
        """Its reply text."""
        return read_reason(self.close_octets)[1]

    @property
    def close_method(self):
        """The method that it blames; None for none."""
        return read_reason(self.close_octets)[2]


class Channel(Closable):
    """One incarnation of a channel; `known` is whether its beginning was seen.

    `confirm_ns`, `ack_ns`: sums over the messages that `confirmed` and `acknowledged` count, `_max`
    the longest; `slow_confirm_…`, `slow_ack_…`: packet and time of the publish or delivery of the
    longest. `most_…`: the delivery with which `unsettled` was at its most.
    `waited_publishes`: those made while none was unconfirmed. `waits`: deliveries that came while
    none was unsettled, within `MOST_WAIT_NS` of the last acknowledgement. `queued`: deliveries
    whose publish is known; `longest`: that with the most time since then, as (packet, time, queue,
    packet of the publish). `repeats`: publishes that came before. `sighted`: ordinal of its first
    sighting, negative for none. `blamed_packet_number`:
    the oldest request that waited when the server closed the channel and blamed its method. Times
    are ns since the epoch. `numbering`: publishes are numbered now; `numbered`: they were once.
    `uncommitted`: publishes of transactions that may come back, `passed` how many were before them.
    `joined`: what is known of one that was open before, where times of late are measured.
    """

    def __init__(self, session, capture, number, incarnation, known):
        self.session = session
        self.capture = capture
        self.number = number
        self.incarnation = incarnation
        self.known = known
        self.opened_packet_number = self.start_ns = None
        self.closed_packet_number = self.end_ns = None
        self.closed_by = None
        self.close_octets = None
        self.blamed_packet_number = None
        self.mode = None
        self.prefetch_count = self.prefetch_each = self.prefetch_shared = None
        self.published = self.confirmed = self.returned = 0
        self.delivered = 0
        self.acknowledged = 0
        self.unsettled = 0
        self.unsettled_max = 0
        self.unconfirmed = 0
        self.unconfirmed_max = 0
        self.consumers = 0
        self.publish_octets = 0
        self.deliver_octets = 0
        self.acks = self.multiple_acks = 0
        self.requeued = 0
        self.discarded = 0
        self.rejected = 0
        self.redelivered = 0
        self.gets = 0
        self.commits = 0
        self.waited_publishes = 0
        self.first_publish_ns = self.last_publish_ns = _NULL
        self.first_publish_number = self.last_publish_number = 0
        self.first_delivery_ns = self.last_delivery_ns = _NULL
        self.last_ack_ns = _NULL
        self.last_tag = -1
        self.waits = self.wait_ns = 0
        self.wait_ns_min = _NULL
        self.most_number = self.slow_confirm_number = self.slow_ack_number = -1
        self.most_ns = self.slow_confirm_ns = self.slow_ack_ns = _NULL
        self.confirm_ns = self.confirm_ns_max = 0
        self.ack_ns = self.ack_ns_max = 0
        self.queued = self.queued_ns = self.queued_ns_max = 0
        self.longest = None
        self.repeats = self.last_repeat = 0
        self.sighted = -1
        self.numbering = self.numbered = False
        self.next_number = 1
        self.in_transaction = False
        self.publishes = Ledger()
        self.deliveries = Ledger()
        self.returnable = {}
        self.by_tag = {}
        self.alike = {}
        self.uncommitted = None
        self.passed = 0
        self.noted = []
        self.committing = []
        self.last_queue = self.declaring = None
        self.joined = None
        self.deaf = False
        self.state = _CLOSED
        self.closing = (False, False)


class Lane:
    """A channel number of a connection: its incarnation, and requests that wait for replies.

    `dead`: who waits for no reply any more, as one bit a side. `sent`: None where nobody judges.
    """

    def __init__(self, number):
        self.number = number
        self.channel = self.sent = None
        self.incarnations = 0
        self.requests = []
        self.dead = 0


class Session(Closable):
    """A connection as its peers mean it; `number` counts them.

    `facts` has the arguments of the handshake's methods as JSON, by method. `lossy`: frames may be
    missing. `confirms`, `acks`: `counts.Delays` of late, None without any. `calls`: requests by
    message that wait for their answers. `sent`: of all channels, None before the client's first
    frame. `last_…_ns`: time of the last frame of a side, `silence_…_ns`: its longest pause.
    """

    def __init__(self, peer, capture, number):
        self.peer = peer
        self.capture = capture
        self.number = number
        self.lanes = {}
        self.last = None
        self.over = False
        self.state = _BEGUN if peer.began else _UNKNOWN
        self.blocking = _FREE
        self.closing = (False, False)
        self.dead = 0
        self.channels_opened = 0
        self.published = self.delivered = self.acknowledged = 0
        self.facts = {}
        self.closed_by = None
        self.close_octets = None
        self.close_packet_number = self.close_ns = None
        self.memory = {}
        self.lossy = False
        self.calls = 0
        self.confirms = self.acks = self.sent = None
        self.last_client_ns = self.last_server_ns = _NULL
        self.silence_client_ns = self.silence_server_ns = 0
        self.blocked_since = None
        self.blocked_ns = 0
