# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""AMQP 1.0 state: sessions, links, and the outcome of each delivery.

A session is a channel of each direction, joined by the second `begin`. It is followed as a
`Channel`, and a delivery as a `PendingMessage`, so that both are counted as in 0-9-1. A disposition
names deliveries by number, for all links of the session. The last outcome before the settlement
counts, but what the broker took back, by releasing its own delivery, no client can accept any more
(measured on RabbitMQ 4.3.6); at the end of a session so does an outcome without settlement. After a
loss only the outcome in the settlement itself counts, because a later one may be in the missing
frames.
"""

from __future__ import annotations

from json import dumps

import cython
from cython.cimports.amqpsniff.clock import elapsed
from cython.cimports.amqpsniff.decode.amqp10.codes import (
    ACCEPTED,
    ATTACH,
    BEGIN,
    CLOSE,
    DECLARED,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    MODIFIED,
    OPEN,
    RECEIVED,
    REJECTED,
    RELEASED,
    SASL_INIT,
    SASL_MECHANISMS,
    SASL_OUTCOME,
    TRANSFER,
)
from cython.cimports.amqpsniff.decode.amqp10.columns import DeliveryColumns
from cython.cimports.amqpsniff.decode.codes import TRUNCATED
from cython.cimports.amqpsniff.decode.octets import code_of
from cython.cimports.amqpsniff.decode.rows import MessageRows
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.amqp10_links import Address, Link, Windows, ahead
from cython.cimports.amqpsniff.session.codes import (
    ACKED,
    AUTOMATIC,
    CONFIRMED,
    DISCARDED,
    REQUEUED,
    RETURNED,
    UNCONFIRMED,
    UNSETTLED,
)
from cython.cimports.amqpsniff.session.codes import REJECTED as REJECTED_OUTCOME
from cython.cimports.amqpsniff.session.entities import (
    Channel,
    ChannelSlot,
    Ledger,
    MessageTimes,
    PendingMessage,
    Session,
    pending_message,
)
from cython.cimports.amqpsniff.session.method_flags import DELIVER, PUBLISH
from cython.cimports.amqpsniff.session.method_frame import (
    HandshakeArguments,
    Request,
    request_of,
)
from cython.cimports.amqpsniff.session.rules.occasions import LARGE_BYTES, LARGE_HEADERS_BYTES
from cython.cimports.amqpsniff.session.settling import Settler, answer_of

from amqpsniff.decode.amqp10 import performatives
from amqpsniff.decode.json_objects import read_object, table_of
from amqpsniff.session.methods import end_block
from amqpsniff.spec import SIDES
from amqpsniff.spec.amqp10 import COMPOSITES, MANAGEMENT_NODE, base_type, virtual_host
from amqpsniff.spec.management import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.columns import Vocabulary
    from amqpsniff.decode.amqp10.performatives import Performative
    from amqpsniff.decode.rows import FrameRows, Vocabularies
    from amqpsniff.plan import Plan
    from amqpsniff.session.rules.emitter import Emitter
    from amqpsniff.session.tracker import Tracker

_MAX_LINKS = cython.declare(cython.longlong, 65_536)
"""Links of all connections that are remembered; a peer may attach any number."""

_MAX_LINK_BYTES = cython.declare(cython.longlong, 64 * 1024 * 1024)
"""Bytes of attaches of all links that are remembered: each may name addresses of a megabyte."""

_MAX_ALIKE = cython.declare(cython.int, 512)
"""Arguments, handshakes and addresses of each kind that are remembered: peers say what others
said before."""

_MAX_ALIKE_BYTES = cython.declare(cython.int, 1024)
"""Longest arguments that are remembered."""

_MAX_SAME_LENGTH = cython.declare(cython.int, 8)
"""Arguments of one performative, of the same length, that are remembered."""

_MAX_UNOPENED = cython.declare(cython.int, 2048)
"""Longest open whose texts and properties are kept until both sides have opened."""

_MAX_DESCRIPTION = cython.declare(cython.int, 256)
"""Characters of an outcome's description that are kept: any number of deliveries may have one."""

_MAX_EARLY = cython.declare(cython.longlong, 16)
"""Answers of RabbitMQ's management that wait for their requests: after a loss frames come late."""

_MASK = cython.declare(cython.longlong, 0xFFFFFFFF)
_RENEWAL = b'"operation":"com.microsoft:renew-lock"'
_STATES = cython.declare(list, [performatives.STATES.get(code) for code in range(64)])


@cython.final
@cython.cclass
class DeliveryState:
    """The last outcome of a delivery so far, and the state that later ones depend on.

    It is stored in the entry's `route`, which has no other use here, as soon as an outcome cannot
    be written yet; most deliveries are settled by the first disposition and have their row.
    `losses`: the channel's losses at the time of the outcome, `side`: its sender. `address`: the
    message's own `to` address, on a link to the anonymous terminus; `clear` keeps it.
    """

    state: cython.int
    outcome: cython.int
    side: cython.int
    number: cython.longlong
    ts_ns: cython.longlong
    losses: cython.int
    undeliverable: cython.bint
    presettled: cython.bint
    settled: cython.bint
    condition: str
    description: str
    transaction: str
    settled_by: str
    address: str

    def __init__(self) -> None:
        self.address = None
        self.clear()

    def clear(self) -> cython.int:
        """Forget the outcome."""
        self.state = self.outcome = self.losses = 0
        self.number = -1
        self.ts_ns = NULL
        self.undeliverable = self.presettled = self.settled = False
        self.condition = self.description = self.transaction = self.settled_by = None
        return 0


@cython.cclass
class Transferred:
    """A delivery as rules see it, with its last outcome."""

    delivery_id: cython.longlong
    state: cython.int
    outcome: cython.int

    entry: PendingMessage
    link: Link
    condition: str
    description: str
    address: str


@cython.cfunc
def delivery_state_of(entry: PendingMessage) -> DeliveryState:
    """The kept state of a delivery, or None."""
    return None if entry.route is None else entry.route[0]


@cython.cfunc
def link_of(entry: PendingMessage) -> Link:
    """The link of a delivery, stored as its consumer; None if unknown."""
    return cython.cast(Link, entry.consumer)


@cython.cfunc
def transferred_of(entry: PendingMessage, delivery_state: DeliveryState) -> Transferred:
    """A delivery for the rules."""
    found: Transferred = Transferred()
    found.entry, found.link, found.delivery_id = entry, link_of(entry), entry.number
    found.state = found.outcome = 0
    found.condition = found.description = found.address = None
    if delivery_state is not None:
        found.address = delivery_state.address
        found.state, found.outcome = delivery_state.state, delivery_state.outcome
        found.condition, found.description = delivery_state.condition, delivery_state.description
    return found


_MAX_LOOKS = cython.declare(cython.longlong, 8)
"""Times that dispositions may look at a delivery, on average: an outcome, the settlement of one
side and that of the other are three."""


_NOTHING_WAITS = (Ledger(), Ledger())
"""Deliveries of sessions without any: shared and never written to."""
for _ledger in _NOTHING_WAITS:
    _ledger.shared = True


@cython.cclass
class Amqp10Session:
    """A session; pairs are of what the client and the server send.

    `handles` has links by handle. `links` has all links: by name and sending side (a link whose
    name was attached again has its own key), or by handle if the name is unknown; `last` is the
    link found last, by its handle and side (`last_key`, -1 for none). `unsettled` has the unsettled
    deliveries. `client_channel` and `server_channel`: the channel numbers on which the sides send,
    -1 for none yet. `in_vain`: number of deliveries that dispositions searched, beyond one a frame
    and `_MAX_LOOKS` a delivery. `settled_to`: the furthest delivery of each side that the other
    side has settled, -1 for none.
    """

    settled_to: cython.longlong[2]
    ended: cython.int
    in_vain: cython.longlong
    client_channel: cython.int
    server_channel: cython.int
    last_key: cython.longlong

    channel: Channel
    last: Link
    handles: tuple[Any, ...]
    unsettled: tuple[Any, ...]
    links: dict[Any, Any]
    windows: Windows

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.handles = ({}, {})
        self.links = {}
        self.last = None
        self.last_key = -1
        self.unsettled = _NOTHING_WAITS
        self.ended = self.in_vain = 0
        self.client_channel = self.server_channel = -1
        if not cython.compiled:
            self.settled_to = [-1, -1]
        self.settled_to[0] = self.settled_to[1] = -1
        self.windows = Windows()

    def note_settled(self, sender: cython.int, last: cython.longlong) -> cython.int:
        """The deliveries of a side are settled by the other, up to one."""
        if self.settled_to[sender] < 0 or ahead(last, self.settled_to[sender]) > 0:
            self.settled_to[sender] = last
        return 0

    def was_settled(self, sender: cython.int, delivery: cython.longlong) -> cython.bint:
        """True if the other side has settled a delivery of a side before.

        So it is where a part of the delivery was waited for in vain: its settlement was read first.
        """
        return self.settled_to[sender] >= 0 and ahead(self.settled_to[sender], delivery) >= 0


@cython.cclass
class Amqp10Connection:
    """A connection: its sessions by outgoing channel of each side, and the arguments of `open`.

    `client_limit`, `server_limit`: bytes of the largest frame that this side may send, 0 for any.
    `last` is the session of the last frame, by its channel and side (`last_key`, -1 for none).
    `opened_number`, `opened_ns`: packet and time of the client's open. `closed`: sides that closed,
    as bits. `requests`: by id, requests to RabbitMQ's management that wait for their answers, and
    answers (packet, time, status) that came before their requests.
    """

    client_limit: cython.longlong
    server_limit: cython.longlong
    last_key: cython.int
    opened_number: cython.longlong
    opened_ns: cython.longlong
    closed: cython.int

    channels: tuple[Any, ...]
    opens: list[Any]
    init: dict[Any, Any]
    requests: dict[Any, Any]
    last: Amqp10Session

    def __init__(self) -> None:
        self.channels = ({}, {})
        self.last = self.requests = None
        self.last_key = -1
        self.opens = [None, None]
        self.init = {}
        self.client_limit = self.server_limit = self.closed = 0
        self.opened_number, self.opened_ns = -1, NULL


@cython.final
@cython.cclass
class Amqp10Tracker:
    """Follows the performatives of any number of connections.

    Args:
        tracker: The `Tracker` that receives the rows.
        settler: Writes outcomes.
        plan: The plan of the run.

    `found` is the current performative: sent by `side`, in `row` of the frames of the tracker, in
    packet `number` at `ts_ns`. `accounts`: read credit and windows; `details`: read the arguments
    of attaches besides addresses; `peers`: read the handshake arguments.
    """

    tracker: Tracker
    census: Any
    links: cython.longlong
    link_bytes: cython.longlong
    latest_ordinal: cython.longlong
    batch: cython.longlong
    emitter: Emitter
    accounts: cython.bint
    details: cython.bint
    peers: cython.bint

    row: cython.longlong
    side: cython.int
    number: cython.longlong
    ts_ns: cython.longlong
    found: Performative

    settler: Settler
    awaited: dict[Any, Any]
    arguments: dict[Any, Any]
    handshakes: dict[Any, Any]
    addresses: dict[Any, Any]
    latest: PendingMessage
    scratch: DeliveryState
    words: Vocabularies

    def __init__(self, tracker: Any, settler: Any, plan: Plan) -> None:
        self.tracker = tracker
        self.found = None
        self.row = self.number = self.side = -1
        self.ts_ns = NULL
        self.census = plan.census
        self.settler = settler
        self.links = self.link_bytes = 0
        self.awaited = {}
        self.latest = None
        self.scratch = DeliveryState()
        self.latest_ordinal = -1
        self.words = None
        self.batch = 0
        self.arguments, self.handshakes, self.addresses = {}, {}, {}
        self.emitter = tracker.emitter
        self.details = "links" in plan.tables or self.emitter is not None
        counted = plan.census is not None or "connections" in plan.tables  # who owes whom
        self.accounts = self.details or counted or "channels" in plan.tables
        self.peers = plan.peers

    def follow(
        self, session: Session, row: cython.longlong, side: cython.int, found: Performative
    ) -> cython.int:
        """A performative of a side of a connection, in its frame's row."""
        frames: FrameRows = self.tracker.frames
        code: cython.int = found.code
        state: Amqp10Connection = session.amqp10
        self.row, self.side, self.found = row, side, found
        self.number = frames.packet_number.values[row]
        self.ts_ns = frames.ts_ns.values[row]
        if state is None:
            state = session.amqp10 = Amqp10Connection()
        if side == 1:
            session.server_seen = True
        limit: cython.longlong = state.client_limit if side == 0 else state.server_limit
        if self.emitter is not None and 0 < limit < frames.size.values[row] + 8:
            facts = {"side": side, "size": frames.size.values[row] + 8, "limit": limit}
            self._tell_connection("frame-oversized", session, facts)
        if code == SASL_OUTCOME and found.condition is not None:
            session.close = _reason(found)
        if code == OPEN or code > 0x20:
            self._learn(session, state, code)
            return 0
        if code == CLOSE:
            self._close(session)
            return 0
        if code == BEGIN:
            self._begin(session, state)
            return 0
        channel: cython.int = frames.channel.values[row]
        amqp10: Amqp10Session = state.last
        if state.last_key != (channel << 1 | side):
            channels: dict[Any, Any] = state.channels[side]
            amqp10 = channels.get(channel)
            if amqp10 is None:
                amqp10 = self._proved(session, state)
                if amqp10 is None:
                    return 0
            state.last = amqp10
            state.last_key = channel << 1 | side
        if code == DISPOSITION:
            self._disposition(amqp10)
        elif code == END:
            state.last_key = -1
            self._end(session, state, amqp10)
        else:
            self._on_link(amqp10, code)
        return 0

    # connections and sessions

    @cython.cfunc
    def _learn(self, session: Session, state: Amqp10Connection, code: cython.int) -> None:
        """An open or a SASL frame: keep its handshake arguments."""
        side: cython.int = self.side
        if code == SASL_MECHANISMS or code == SASL_OUTCOME:
            if self.emitter is None:
                return
        elif code != OPEN and code != SASL_INIT:
            return
        if not self.peers and session.connection.began:
            return
        octets: bytes = self.tracker.frames.arguments.bytes_of(self.row)
        arguments = self._arguments(code, octets)
        if code == SASL_MECHANISMS:
            self._tell_connection("login-offered", session, arguments)
            return
        if code == SASL_OUTCOME:
            if arguments.get("code"):
                self._tell_connection("login-refused", session, arguments)
            return
        kept: tuple[str, ...] = ()
        if None not in state.opens:  # one more, which nothing allows
            if code != OPEN:
                return
            of_client = ("connection.start-ok", "connection.open")
            kept = of_client if side == 1 else ("connection.start", "connection.open")
        if code == OPEN:
            state.opens[side] = arguments
            if side == 0:
                state.opened_number = self.number
                state.opened_ns = self.ts_ns
            size = arguments.get("max_frame_size")
            if type(size) is int and 512 <= size < 1 << 32:
                if side == 0:
                    state.server_limit = size
                else:
                    state.client_limit = size
        else:
            state.init = arguments
        handshake: tuple[Any, ...] = self._handshake(state)
        known: HandshakeArguments
        for method, fact in handshake[1]:
            known = session.handshake.get(method)
            if method not in kept and (known is None or known.json != fact):
                if known is not None:
                    self.tracker.forget(known)
                session.take_handshake(method, self.tracker.remember(method, fact, True))
        if code == OPEN and None not in state.opens:
            if self.emitter is not None:
                self._tell_connection("amqp10-opened", session, {"state": state})
            state.opens = list(handshake[2])
        elif len(octets) > _MAX_UNOPENED:
            state.opens = list(handshake[2])
            state.init = {name: state.init[name] for name in state.init if name == "mechanism"}

    @cython.cfunc
    def _arguments(self, code: cython.int, octets: bytes | None) -> dict[Any, Any]:
        """The arguments of a performative as `typed` gives them; shared, not to be changed."""
        if octets is None or len(octets) > _MAX_ALIKE_BYTES:
            return typed(code, read_object(octets))
        key: cython.longlong = code << 16 | len(octets)  # no hash of all their arguments
        alike: list[Any] = self.arguments.get(key)
        if alike is None:
            alike = []
            _keep(self.arguments, key, alike)
        for pair in alike:
            if cython.cast(bytes, cython.cast(tuple, pair)[0]) == octets:
                return cython.cast(dict, cython.cast(tuple, pair)[1])
        known: dict[Any, Any] = typed(code, read_object(octets))
        if len(alike) >= _MAX_SAME_LENGTH:
            alike.clear()
        alike.append((octets, known))
        return known

    @cython.cfunc
    def _handshake(self, state: Amqp10Connection) -> tuple[Any, ...]:
        """The handshake: (init and opens, `handshake_of` as JSON by method, kept arguments of the
        opens); shared, not to be changed."""
        performatives = (state.init, state.opens[0], state.opens[1])
        key = (id(performatives[0]), id(performatives[1]), id(performatives[2]))
        known: tuple[Any, ...] = self.handshakes.get(key)
        if known is None:
            facts = [(name, dumps(fact).encode()) for name, fact in handshake_of(state).items()]
            known = (performatives, facts, [each and _numbers_of(each) for each in state.opens])
            if sum(len(fact) for _, fact in known[1]) <= 4 * _MAX_ALIKE_BYTES:
                _keep(self.handshakes, key, known)
        return known

    @cython.cfunc
    def _tell_connection(self, event: str, session: Session, facts: dict[Any, Any]) -> None:
        """Ask the rules about a connection."""
        if self.emitter is not None:
            self.emitter.emit_connection(event, session, self.number, self.ts_ns, facts)

    @cython.cfunc
    def _close(self, session: Session) -> None:
        side: cython.int = self.side
        found: Performative = self.found
        state: Amqp10Connection = session.amqp10
        state.closed |= 1 << side
        if session.closed_by is None:
            session.closed_by = SIDES[side]
            session.close = _reason(found)
            session.close_packet_number = self.number
            ts_ns: cython.longlong = self.ts_ns
            session.close_ns = None if ts_ns == NULL else ts_ns
            session.over = True
            self.tracker.on_connection_closed(session)
            facts = {"side": side, "found": found}
            self._tell_connection("amqp10-closed", session, facts)

    @cython.cfunc
    def _begin(self, session: Session, state: Amqp10Connection) -> None:
        """One side begins a session, or joins one that the other side began."""
        side: cython.int = self.side
        found: Performative = self.found
        channel: cython.int = self.tracker.frames.channel.values[self.row]
        amqp10: Amqp10Session
        state.last_key = -1
        if found.first >= 0:
            amqp10 = state.channels[1 - side].get(found.first)
            if amqp10 is not None:
                state.channels[side][channel] = amqp10
                self._use(amqp10, channel)
                amqp10.windows.begin(side, found)
                return
        amqp10 = self._new(session, found.first < 0)  # else the begin that it answers is missing
        if amqp10 is not None:
            state.channels[side][channel] = amqp10
            self._use(amqp10, channel)
            amqp10.windows.begin(side, found)

    @cython.cfunc
    def _use(self, amqp10: Amqp10Session, number: cython.int) -> None:
        """A side sends on a number, and on no other: the client's is that of the session."""
        side: cython.int = self.side
        channel: Channel = amqp10.channel
        state: Amqp10Connection = channel.session.amqp10
        before: cython.int = amqp10.client_channel if side == 0 else amqp10.server_channel
        if before == number:
            return
        _drop(state.channels[side], before, amqp10)
        state.last_key = -1
        if side == 1:
            amqp10.server_channel = number
            return
        amqp10.client_channel = number
        if channel.number != number or channel.slot is not channel.session.slot(number):
            slot: ChannelSlot = self.tracker._slot(channel.session, number)
            if slot is not None:
                slot.incarnations += 1
                channel.number, channel.incarnation = number, slot.incarnations

    @cython.cfunc
    def _new(self, session: Session, known: cython.bint) -> Amqp10Session:
        """A session that a side begins; None beyond the limit of channels."""
        number: cython.int = self.tracker.frames.channel.values[self.row]
        if self.side == 1:
            number += _MAX_LINKS  # above all of the client's
        slot: ChannelSlot = self.tracker._slot(session, number)
        if slot is None:
            return None
        if slot.channel is not None:  # an end is missing, with the frames before it
            before: Amqp10Session = slot.channel.amqp10
            for one_side in range(2):
                if not before.ended & 1 << one_side:
                    direction = session.connection.client_direction ^ one_side
                    self.tracker.on_loss(session.connection, direction, (0, NULL))
            self._finish(slot.channel)
        slot.number = number & 0xFFFF
        slot.incarnations += 1
        channel: Channel = Channel(session, slot, self.tracker.capture_of(self.row), known)
        slot.channel = channel
        session.channels_opened += 1
        if known:
            channel.opened_number = self.number
            channel.opened_ns = self.ts_ns
        amqp10: Amqp10Session = Amqp10Session(channel)
        channel.amqp10 = amqp10
        return amqp10

    @cython.cfunc
    def _proved(self, session: Session, state: Amqp10Connection) -> Amqp10Session:
        """A session whose begin was not captured. If the other side has a single session, it is the
        same one.

        None if its begin would have been captured: frames after an end have no meaning.
        """
        side: cython.int = self.side
        if session.connection.began and not session.has_loss:
            return None
        amqp10: Amqp10Session = None
        others = state.channels[1 - side]
        mine = state.channels[side]
        if len(others) == 1 and not mine:
            amqp10 = next(iter(others.values()))
            lost: cython.bint = not session.connection.began
            if session.lost_at is not None and session.lost_at[1 - side]:
                lost = True  # in which another session of that side may have begun
            if amqp10.ended & 1 << side or (lost and amqp10.channel.known):
                amqp10 = None
        if amqp10 is None:
            amqp10 = self._new(session, False)
        if amqp10 is not None:
            number: cython.int = self.tracker.frames.channel.values[self.row]
            mine[number] = amqp10
            self._use(amqp10, number)
        return amqp10

    @cython.cfunc
    def _end(self, session: Session, state: Amqp10Connection, amqp10: Amqp10Session) -> None:
        """A side ends a session."""
        side: cython.int = self.side
        channel: Channel = amqp10.channel
        ts_ns: cython.longlong = self.ts_ns
        amqp10.ended |= 1 << side
        channel.end_ns = None if ts_ns == NULL else ts_ns
        if channel.closed_by is None:
            channel.closed_by = SIDES[side]
            channel.close = _reason(self.found)
            channel.closed_packet_number = self.number
            self._tell("session-ended", amqp10, None)
        state.channels[side].pop(self.tracker.frames.channel.values[self.row], None)
        if amqp10.ended == 3:
            slot: ChannelSlot = channel.slot
            if slot.channel is channel:
                slot.channel = None
            self._finish(channel)

    @cython.cfunc
    def _finish(self, channel: Channel) -> None:
        """End of a session: outcomes without settlement count now."""
        amqp10: Amqp10Session = channel.amqp10
        if self.emitter is not None:
            self._tell_left(amqp10)
        waiting: Ledger
        for waiting in amqp10.unsettled:
            if waiting.waiting > 0:
                for entry in list(waiting):
                    self._leave(entry)
                waiting.pop_until(-1)
        if amqp10.links:
            for link in list(amqp10.links.values()):
                self._end_link(amqp10, link)
        session: Session = channel.session
        state: Amqp10Connection = session.amqp10
        _drop(state.channels[0], amqp10.client_channel, amqp10)
        _drop(state.channels[1], amqp10.server_channel, amqp10)
        if state.last is amqp10:
            state.last = None
            state.last_key = -1
        self.tracker.end_channel(channel)
        channel.amqp10 = None  # they know each other: else Python would have to look for both

    @cython.cfunc
    def _tell_left(self, amqp10: Amqp10Session) -> None:
        """Report the unsettled deliveries of an ended session to the rules."""
        left: dict[Any, Any] = {}
        waiting: Ledger
        entry: PendingMessage
        for side, waiting in enumerate(amqp10.unsettled):
            for entry in waiting if waiting.waiting > 0 else ():
                key = (side, entry.consumer)
                left.setdefault(key, []).append(transferred_of(entry, delivery_state_of(entry)))
        if left:
            channel: Channel = amqp10.channel
            number = channel.closed_packet_number
            self.emitter.emit("deliveries-left", channel, number, channel.end_ns, {"left": left})

    @cython.cfunc
    def end(self, session: Session) -> None:
        """A connection is over."""
        slot: ChannelSlot
        state: Amqp10Connection = session.amqp10
        request: Request
        for waiting in state.requests.values() if state is not None and state.requests else ():
            if isinstance(waiting, Request):
                request = waiting
                request.rows.settle(request.row)
        for slot in session.slots():
            if slot.channel is not None:
                channel: Channel = slot.channel
                slot.channel = None
                if channel.closed_by is None:
                    channel.closed_by = session.closed_by or session.connection.conversation.ended
                    if session.close_packet_number is not None:
                        channel.closed_packet_number = session.close_packet_number
                        channel.end_ns = session.close_ns
                self._finish(channel)

    # links

    @cython.cfunc
    def _on_link(self, amqp10: Amqp10Session, code: cython.int) -> None:
        """An attach, a flow, a transfer or a detach."""
        frames: FrameRows = self.tracker.frames
        row: cython.longlong = self.row
        side: cython.int = self.side
        found: Performative = self.found
        number: cython.longlong = self.number
        ts_ns: cython.longlong = self.ts_ns
        link: Link = None
        if code == ATTACH:
            link = self._attach(amqp10)
        elif found.handle >= 0:
            key: cython.longlong = found.handle << 1 | side
            if amqp10.last_key != key:
                handles: dict[Any, Any] = amqp10.handles[side]
                amqp10.last = handles.get(found.handle)
                if amqp10.last is None and code == TRANSFER:
                    amqp10.last = self._proved_link(amqp10)
                amqp10.last_key = key if amqp10.last is not None else -1
            link = amqp10.last
        if code == FLOW:
            if amqp10.windows.flow(side, found, number, ts_ns):
                self._block(amqp10)
            if link is not None:
                link.flow(found, side, number, ts_ns)
        if (
            link is not None
            and link.name is not None
            and (frames.wanted or self.emitter is not None)
        ):
            words: Vocabularies = frames.vocabularies
            if self.words is not words:
                self._use_words(words)
            if link.batch != self.batch:
                self._find_code(link, words)
            frames.consumer_tag.values[row] = link.code
            if code == ATTACH and link.address is not None:
                address: Address = link.address
                if address.batch != self.batch:
                    self._find_codes(address, words)
                frames.queue.values[row] = address.queue_code
                frames.exchange.values[row] = address.exchange_code
                frames.routing_key.values[row] = address.routing_key_code
        if code == TRANSFER:
            if found.manages:
                self._manage(amqp10, link)
            self._transfer(amqp10, link)
        elif code == DETACH and link is not None:
            self._detach(amqp10, link)

    @cython.cfunc
    def _manage(self, amqp10: Amqp10Session, link: Link | None) -> None:
        """A request to RabbitMQ's management, or an answer, which is noted in its request's frame
        if that was not refused."""
        frames: FrameRows = self.tracker.frames
        row: cython.longlong = self.row
        state: Amqp10Connection = amqp10.channel.session.amqp10
        management = table_of(read_object(frames.arguments.bytes_of(row)), "management")
        status = management.get("status")
        key = str(management.get("message_id" if status is None else "correlation_id"))
        if link is not None and link.address is None:  # its attach was not captured
            link.address = self._address(MANAGEMENT_NODE, self.side == 0)
        if state.requests is None:
            state.requests = {}
        other = state.requests.pop(key, None)
        request: Request = None
        if isinstance(other, Request):
            request = other
            request.rows.settle(request.row)
            if status is not None:
                _note_answer(request, self.number, self.ts_ns, status)
                return
        if status is not None:
            if len(state.requests) < _MAX_EARLY:
                state.requests[key] = (self.number, self.ts_ns, status)
        elif isinstance(other, tuple):
            number, ts_ns, answer = other
            _note_answer(request_of(frames, row), number, ts_ns, answer)
        elif len(state.requests) >= self.tracker.reply_matcher.most:
            self.settler.limit_reached("requests")
        else:
            state.requests[key] = request_of(frames, row)
            frames.wait(row)

    @cython.cfunc
    def _block(self, amqp10: Amqp10Session) -> None:
        """The broker stops a client on a session, as connection.blocked does, or resumes it."""
        channel: Channel = amqp10.channel
        session: Session = channel.session
        ts_ns: cython.longlong = self.ts_ns
        sends: cython.bint = channel.published > 0
        for link in amqp10.links.values():
            sends = sends or link.sends
        if amqp10.windows.stopped:
            if sends and session.blocked_since is None:
                session.blocked_since = ts_ns
                if self.census is not None:
                    capture = self.tracker.capture_of(self.row)
                    self.census.stop(session.connection, capture, self.number)
                self._tell_connection("sender-stopped", session, {})
        elif session.blocked_since is not None:
            end_block(session, ts_ns)
            self._tell_connection("sender-resumed", session, {})

    @cython.cfunc
    def _attach(self, amqp10: Amqp10Session) -> Link:
        """A side attaches a link; None where that is not remembered."""
        side: cython.int = self.side
        found: Performative = self.found
        octets: bytes = self.tracker.frames.arguments.bytes_of(self.row)
        arguments = self._arguments(ATTACH, octets)
        name = arguments.get("name")
        if not isinstance(name, str) or found.handle < 0:
            return None
        sender: cython.int = side if found.role != 1 else 1 - side
        link: Link = amqp10.links.get((name, sender))
        if link is not None and link.attached & 1 << side:
            if not amqp10.ended:  # else no side answers, and the name is free
                self._tell("link-taken", amqp10, link)
            before: cython.longlong = link.client_handle if side == 0 else link.server_handle
            if link.answered == 3 and before != found.handle:
                del amqp10.links[link.key]
                link.key = (name, sender, id(link))
                amqp10.links[link.key] = link  # it continues, by its handles
            else:
                self._end_link(amqp10, link)  # the new one takes its place
            link = None
        if link is None:
            link = self._new_link(amqp10, name, sender, (name, sender))
            if link is None:
                return None
            link.attached_number = self.number
            link.attached_ns = self.ts_ns
        else:
            link.answered_ns = self.ts_ns
        if self.link_bytes + len(octets) > _MAX_LINK_BYTES:
            self.settler.limit_reached("links")
        else:
            self.link_bytes += len(octets)
            link.weight += len(octets)
            text = link.learn(side, arguments, dumps if self.details else None)
            if text is not None:
                link.address = self._address(text, link.sender == 0)
        self._put_handle(amqp10, link, found.handle)
        if link.answered == 3:
            self._tell("link-attached", amqp10, link)
            self._count_consumer(amqp10, link, 1)
        return link

    @cython.cfunc
    def _count_consumer(self, amqp10: Amqp10Session, link: Link, change: Any) -> None:
        """A link that a client may receive on was answered, or such a one is over."""
        address: Address = link.address
        if self.census is None or link.sender == 0 or link.refused or address is None:
            return
        if address.queue is not None:
            connection = amqp10.channel.session.connection
            available = (link.available, link.available_ns)
            self.census.consume(connection, address.queue, change, *available)

    @cython.cfunc
    def _new_link(self, amqp10: Amqp10Session, name: Any, sender: cython.int, key: Any) -> Link:
        """A link of a session; None beyond the limit of links."""
        if self.links >= _MAX_LINKS:
            self.settler.limit_reached("links")
            return None
        link: Link = Link(name, sender, amqp10.channel)
        self.links += 1
        link.key = key
        amqp10.links[key] = link
        if sender == 1:
            amqp10.channel.consumers += 1
        return link

    @cython.cfunc
    def _put_handle(self, amqp10: Amqp10Session, link: Link, handle: cython.longlong) -> None:
        """A side knows a link by a handle."""
        side: cython.int = self.side
        if side == 0:
            link.client_handle = handle
        else:
            link.server_handle = handle
        amqp10.last_key = -1
        amqp10.handles[side][handle] = link

    @cython.cfunc
    def _proved_link(self, amqp10: Amqp10Session) -> Link:
        """A link whose attach was not seen, by a transfer of it; None where it would have been."""
        side: cython.int = self.side
        found: Performative = self.found
        if amqp10.channel.known and not amqp10.channel.session.has_loss:
            return None
        link: Link = self._new_link(amqp10, None, side, (found.handle, side))
        if link is not None:
            self._put_handle(amqp10, link, found.handle)
        return link

    @cython.cfunc
    def _detach(self, amqp10: Amqp10Session, link: Link) -> None:
        """A side detaches a link; the second ends it."""
        side: cython.int = self.side
        found: Performative = self.found
        amqp10.handles[side].pop(found.handle, None)
        amqp10.last_key = -1
        link.attached &= ~(1 << side)
        if link.detached_number < 0:
            link.detached_number = self.number
            link.detached_ns = self.ts_ns
            link.closed_by = SIDES[side]
            link.suspended = found.settled != 1
        if found.condition is not None and link.condition is None:
            link.condition, link.description = found.condition, found.description
        self._tell("link-detached", amqp10, link)
        if not link.attached:
            self._end_link(amqp10, link)

    @cython.cfunc
    def _end_link(self, amqp10: Amqp10Session, link: Link) -> None:
        """A link is over."""
        channel: Channel = amqp10.channel
        del amqp10.links[link.key]
        amqp10.last_key = -1
        _drop(amqp10.handles[0], link.client_handle, link)
        _drop(amqp10.handles[1], link.server_handle, link)
        if link.closed_by is None:
            link.closed_by = channel.closed_by
        if link.answered == 3:
            self._count_consumer(amqp10, link, -1)
            if link.sender == 1 and link.refused and not link.deliveries:
                channel.consumers -= 1
        self.links -= 1
        self.link_bytes -= link.weight
        self.tracker.end_link(link, channel)

    @cython.cfunc
    def _tell(self, event: str, amqp10: Amqp10Session, link: Link | None) -> None:
        """Ask the rules about a link."""
        if self.emitter is not None:
            facts = {"link": link, "side": self.side, "found": self.found, "of": amqp10}
            self.emitter.emit(event, amqp10.channel, self.number, self.ts_ns, facts)

    def _use_words(self, words: Vocabularies) -> cython.int:
        """Rows have these vocabularies from now on: codes in others are not theirs."""
        self.words = words
        self.batch += 1
        return 0

    def _find_code(self, link: Link, words: Vocabularies) -> cython.int:
        """Find the code of the name of a link."""
        link.batch = self.batch
        link.code = self._code(words.consumer_tag, link.name)
        return 0

    def _find_codes(self, address: Address, words: Vocabularies) -> cython.int:
        """Find the codes of the names in an address."""
        address.batch = self.batch
        address.queue_code = self._code(words.queue, address.queue)
        address.exchange_code = self._code(words.exchange, address.exchange)
        address.routing_key_code = self._code(words.routing_key, address.routing_key)
        return 0

    @cython.exceptval(-2)
    def _code(self, vocabulary: Vocabulary, text: str | None) -> cython.int:
        """The code of a text in a vocabulary; -1 for None."""
        if text is None:
            return -1
        return code_of(vocabulary, text.encode(errors="replace"))

    # deliveries

    @cython.cfunc
    def _transfer(self, amqp10: Amqp10Session, link: Link | None) -> None:
        """A transfer: the first of a delivery, or one more."""
        side: cython.int = self.side
        found: Performative = self.found
        number: cython.longlong = self.number
        ts_ns: cython.longlong = self.ts_ns
        settler: Settler = self.settler
        channel: Channel = amqp10.channel
        entry: PendingMessage
        delivery_state: DeliveryState = None
        if self.accounts:
            amqp10.windows.transfer(side, number, ts_ns)
        if not found.begins:
            entry = self.awaited.get(found.delivery)
            if entry is None and found.delivery == self.latest_ordinal:
                entry = self.latest
            if entry is None:
                return
            delivery_state = delivery_state_of(entry)
        else:
            if self.accounts and link is not None and link.deliver(number, ts_ns):
                self._tell("credit-awaited", amqp10, link)
            entry = pending_message(channel, PUBLISH if side == 0 else DELIVER, number, ts_ns)
            entry.number = found.first
            entry.consumer = link
            if found.more == 1:
                delivery_state = DeliveryState()
                entry.route = (delivery_state,)
            if self.latest is not None:
                self.awaited[self.latest_ordinal] = self.latest
            self.latest, self.latest_ordinal = entry, found.delivery
            times: MessageTimes = channel.own_times()
            if side == 0:
                channel.published += 1
                channel.next_number += 1
                if times.first_publish_number == 0:
                    times.first_publish_number, times.first_publish_ns = number, ts_ns
                times.last_publish_number, times.last_publish_ns = number, ts_ns
            else:
                channel.delivered += 1
                if times.first_delivery_ns == NULL:
                    times.first_delivery_ns = ts_ns
                times.last_delivery_ns = ts_ns
            if found.settled != 1:
                self._await(amqp10, entry)
        presettled: cython.bint = found.settled == 1 and (
            delivery_state is None or not delivery_state.settled
        )
        if presettled:
            if link is not None:
                link.presettled += 1
            self._forget(amqp10, entry)
            if side == 1 and entry.outcome < 0 and not entry.ended:
                entry.wants = False
                settler.settle(entry, answer_of(AUTOMATIC, entry.packet_number, entry.ts_ns))
            else:
                settler.leave(entry, -1)
        elif found.aborted == 1 and (delivery_state is None or not delivery_state.settled):
            if link is not None:
                link.aborted += 1
            self._tell("delivery-aborted", amqp10, link)
            self._forget(amqp10, entry)
            settler.leave(entry, -1)
        if delivery_state is not None:
            delivery_state.presettled = delivery_state.presettled or presettled
            delivery_state.settled = delivery_state.settled or presettled or found.aborted == 1
            presettled = delivery_state.presettled
        if found.state and not presettled:
            self._note(entry)

    @cython.cfunc
    def _await(self, amqp10: Amqp10Session, entry: PendingMessage) -> None:
        """A delivery waits for its settlement."""
        side: cython.int = self.side
        settler: Settler = self.settler
        channel: Channel = amqp10.channel
        link: Link = link_of(entry)
        if entry.number < 0:  # nothing can name it
            settler.leave(entry, -1)
            return
        is_full: cython.bint = settler.outstanding >= settler.most
        if is_full:
            settler.limit_reached("outstanding")
        if is_full or amqp10.was_settled(side, entry.number):
            channel.publishes_uncertain = channel.deliveries_uncertain = True
            settler.leave(entry, -1)
            return
        waiting: Ledger = amqp10.unsettled[side]
        if waiting.shared:
            amqp10.unsettled = (Ledger(), Ledger())
            waiting = amqp10.unsettled[side]
        amqp10.in_vain -= _MAX_LOOKS
        before: PendingMessage = waiting.add(entry)
        if before is not None:
            self._let_go(amqp10, before, side, NULL)
            self._leave(before, False)
        settler.outstanding += 1
        entry.wants = True
        entry.losses = channel.losses
        if link is not None and link.unsettled == 0:
            link.oldest_number = entry.packet_number
        if side == 0:
            if link is not None:
                link.unsettled += 1
                link.unsettled_max = max(link.unsettled_max, link.unsettled)
            if channel.unconfirmed == 0:
                times = channel.own_times()
                times.waited_publishes += 1
            channel.unconfirmed += 1
            if channel.unconfirmed > channel.times.unconfirmed_max:
                channel.own_times().unconfirmed_max = channel.unconfirmed
        else:
            settler.count_unsettled(channel, entry)

    @cython.cfunc
    def _forget(self, amqp10: Amqp10Session, entry: PendingMessage) -> None:
        """A delivery does not wait any longer: it is counted out."""
        side: cython.int = self.side
        if entry.held:
            waiting: Ledger = amqp10.unsettled[side]
            waiting.pop(entry.number)
            self._let_go(amqp10, entry, side, self.ts_ns)

    def _let_go(
        self, amqp10: Amqp10Session, entry: PendingMessage, side: cython.int, ts_ns: cython.longlong
    ) -> cython.int:
        """A delivery that waited does not any longer."""
        settler: Settler = self.settler
        channel: Channel = amqp10.channel
        link: Link = link_of(entry)
        settler.outstanding -= 1
        if link is not None:
            link.settled_ns = ts_ns
        if side == 1:
            return settler.count_settled(channel, entry)
        channel.unconfirmed -= 1
        if link is not None:
            link.unsettled -= 1
        return 0

    @cython.cfunc
    def _leave(self, entry: PendingMessage, counted: cython.bint = True) -> None:
        """End a delivery that was not settled; its last outcome counts."""
        settler: Settler = self.settler
        channel: Channel = entry.channel
        delivery_state: DeliveryState = delivery_state_of(entry)
        if counted:
            settler.outstanding -= 1
        if delivery_state is not None and delivery_state.state:
            if self._is_sure(channel, delivery_state.losses):
                self._decide(entry, delivery_state)
                return
            delivery_state.clear()
        sure: cython.bint = not channel.session.has_loss and self._is_sure(channel, entry.losses)
        open_end: cython.int = UNCONFIRMED if entry.kind == PUBLISH else UNSETTLED
        settler.leave(entry, open_end if sure else -1)

    @cython.exceptval(-1)
    def _is_sure(self, channel: Channel, losses: cython.int) -> cython.bint:
        """True if no frame of a channel is missing since it had `losses` losses."""
        session: Session = channel.session
        return channel.losses == losses and not session.missing and session.server_seen

    @cython.cfunc
    def _disposition(self, amqp10: Amqp10Session) -> None:
        """A range of deliveries gets an outcome, is settled, or both."""
        side: cython.int = self.side
        found: Performative = self.found
        sender: cython.int = 1 - side if found.role == 1 else side
        waiting: Ledger = amqp10.unsettled[sender]
        self.scratch.settled = False  # which is what this self.row says, from its first delivery on
        if found.role == 1 and found.settled == 1 and found.first >= 0:
            amqp10.note_settled(sender, found.last)
        if found.first < 0 or waiting.waiting == 0:
            return
        span: cython.longlong = (found.last - found.first) & _MASK
        amqp10.in_vain += min(span, waiting.waiting - 1)
        if amqp10.in_vain > self.settler.max_disorder:
            self._give_up(amqp10, waiting, sender)
            return
        if side == 1 and sender == 1 and found.settled != 1 and found.outcome >= RELEASED:
            self._tell("deliveries-taken-back", amqp10, None)
        if span < waiting.waiting:
            i: cython.longlong
            for i in range(span + 1):
                number: cython.longlong = (found.first + i) & _MASK
                self._dispose(amqp10, waiting, number)
            return
        for each in [entry.number for entry in waiting]:
            if (each - found.first) & _MASK <= span:
                self._dispose(amqp10, waiting, each)

    def _give_up(self, amqp10: Amqp10Session, waiting: Ledger, sender: cython.int) -> None:
        """Dispositions name the same deliveries too often: those that wait are not followed."""
        entry: PendingMessage
        self.settler.limit_reached("disorder")
        amqp10.in_vain = 0
        amqp10.channel.publishes_uncertain = amqp10.channel.deliveries_uncertain = True
        for entry in list(waiting):
            self._let_go(amqp10, entry, sender, NULL)
            self.settler.leave(entry, -1)
        waiting.pop_until(-1)

    @cython.cfunc
    def _dispose(self, amqp10: Amqp10Session, waiting: Ledger, number: cython.longlong) -> None:
        """A delivery, if one of this number waits, gets an outcome, is settled, or both.

        Behind a loss a range may go over deliveries that were settled otherwise before.
        """
        found: Performative = self.found
        entry: PendingMessage
        entry = waiting.pop(number) if found.settled == 1 else waiting.find(number)
        if entry is None:
            return
        sure: cython.bint = number == found.first or number == found.last
        if not sure:
            sure = self._is_sure(amqp10.channel, entry.losses)
        if found.condition is not None and self.side == 1 and entry.kind == DELIVER:
            self._tell("settlement-refused", amqp10, link_of(entry))
        if found.settled == 1:
            self._settle(amqp10, entry, sure)
        elif found.state and sure:
            self._note(entry)

    @cython.cfunc
    def _note(self, entry: PendingMessage) -> None:
        """Keep an outcome that does not settle its delivery."""
        delivery_state: DeliveryState = delivery_state_of(entry)
        if delivery_state is None:
            delivery_state = DeliveryState()
            entry.route = (delivery_state,)
        self._keep_outcome(entry, delivery_state)

    def _keep_outcome(self, entry: PendingMessage, delivery_state: DeliveryState) -> cython.int:
        """Keep the outcome of the current performative; returns 1 if it has one."""
        found: Performative = self.found
        if found.state <= RECEIVED:
            return 0
        if found.transaction:
            delivery_state.transaction = found.transaction
        if found.outcome < ACCEPTED and found.state != DECLARED:
            return 0
        if entry.kind == DELIVER and self.side == 0 and delivery_state.state:
            if delivery_state.side == 1 and delivery_state.outcome >= RELEASED:
                return 1  # the broker took it back
        delivery_state.state = found.state
        delivery_state.outcome = found.outcome or ACCEPTED
        delivery_state.side = self.side
        delivery_state.number = self.number
        delivery_state.ts_ns = self.ts_ns
        delivery_state.losses = entry.channel.losses
        delivery_state.condition, delivery_state.description = found.condition, found.description
        if delivery_state.description is not None:
            delivery_state.description = delivery_state.description[:_MAX_DESCRIPTION]
        delivery_state.undeliverable = found.undeliverable == 1
        return 1

    @cython.cfunc
    def _settle(self, amqp10: Amqp10Session, entry: PendingMessage, sure: cython.bint) -> None:
        """A delivery is settled by a side, `sure`ly so."""
        side: cython.int = self.side
        sender: cython.int = 0 if entry.kind == PUBLISH else 1
        link: Link = link_of(entry)
        delivery_state: DeliveryState = delivery_state_of(entry)
        channel: Channel = amqp10.channel
        if sender == 1 and side == 0:
            times = channel.own_times()
            times.acks += 1
            times.last_ack_ns = self.ts_ns
        self._let_go(amqp10, entry, sender, self.ts_ns)
        if not sure:
            if delivery_state is not None:
                delivery_state.clear()
                delivery_state.settled = True
            self.settler.leave(entry, -1)
            return
        if delivery_state is None:
            delivery_state = self.scratch
            if not delivery_state.settled:
                delivery_state.clear()
        if delivery_state is not self.scratch or not delivery_state.settled:
            if not self._keep_outcome(entry, delivery_state):
                if not self._is_sure(channel, delivery_state.losses):
                    delivery_state.clear()
            delivery_state.settled = True
            delivery_state.settled_by = SIDES[side]
        default: str = None if delivery_state.state or link is None else link.default_outcome
        if default is not None and default in _STATES and self._is_sure(channel, entry.losses):
            delivery_state.state = delivery_state.outcome = _STATES.index(default)
            delivery_state.number = self.number
            delivery_state.ts_ns = self.ts_ns
        if delivery_state.state:
            self._decide(entry, delivery_state)
        else:
            self._write(entry, delivery_state)
            self.settler.leave(entry, -1)
        if delivery_state is self.scratch:
            if entry.rows is None:
                entry.route = (delivery_state,)  # until the self.row is there
                self.scratch = DeliveryState()
            elif default is not None:
                delivery_state.settled = False

    def _decide(self, entry: PendingMessage, delivery_state: DeliveryState) -> cython.int:
        """Settle a delivery with its last outcome."""
        settler: Settler = self.settler
        channel: Channel = entry.channel
        outcome: cython.int = delivery_state.outcome
        if entry.outcome >= 0 or entry.ended:
            return 0
        number: cython.longlong = delivery_state.number
        ts_ns: cython.longlong = delivery_state.ts_ns
        if entry.consumer is not None:
            self._count_outcome(link_of(entry), outcome)
        self._write(entry, delivery_state)
        means: cython.int = ACKED
        if entry.kind == DELIVER:
            if outcome == REJECTED or (outcome == MODIFIED and delivery_state.undeliverable):
                means = DISCARDED
            elif outcome == RELEASED or outcome == MODIFIED:
                means = REQUEUED
            return settler.conclude(channel, entry, answer_of(means, number, ts_ns))
        if self.emitter is not None and outcome != ACCEPTED:
            facts = {"of": transferred_of(entry, delivery_state)}
            self.emitter.emit("publish-outcome", channel, number, ts_ns, facts)
        if outcome == RELEASED or outcome == MODIFIED:
            times = channel.own_times()
            times.returned += 1
            return settler.settle(entry, answer_of(RETURNED, number, ts_ns))
        settler.outstanding += 1  # which is counted out by it
        channel.unconfirmed += 1
        means = REJECTED_OUTCOME if outcome == REJECTED else CONFIRMED
        return settler.confirm_one(channel, entry, answer_of(means, number, ts_ns))

    def _count_outcome(self, link: Link, outcome: cython.int) -> cython.int:
        """A delivery of a link has its outcome."""
        if outcome == REJECTED:
            link.rejected += 1
        elif outcome == RELEASED:
            link.released += 1
        elif outcome == MODIFIED:
            link.modified += 1
        else:
            link.accepted += 1
        return 0

    # rows of messages

    @cython.ccall
    @cython.exceptval(-1)
    def attach(self, messages: MessageRows, row: cython.longlong) -> cython.int:
        """The row of a delivery is there."""
        settler: Settler = self.settler
        entry: PendingMessage
        ordinal: cython.longlong = messages.ordinal.values[row]
        if ordinal == self.latest_ordinal:
            entry, self.latest = self.latest, None
        else:
            entry = self.awaited.pop(ordinal, None)
        if entry is None:
            return 0
        side: cython.int = 0 if entry.kind == PUBLISH else 1
        channel: Channel = entry.channel
        more: DeliveryColumns = messages.deliveries
        link: Link = cython.cast(Link, entry.consumer)
        if not 0 <= row < min(messages.capacity, more.capacity):
            raise IndexError("no such row")
        if link is not None:
            words: Vocabularies = messages.vocabularies
            address: Address = link.address
            if self.words is not words:
                self._use_words(words)
            with cython.boundscheck(False):  # it is there
                if link.batch != self.batch:
                    self._find_code(link, words)
                messages.consumer_tag.values[row] = link.code
                if more.all_columns:
                    octets: cython.longlong = more.message_bytes.values[row]
                    if octets > 0:  # it may be unknown
                        link.bytes += octets
                    if octets > link.largest:
                        link.largest = octets
                if address is None and side == 0 and more.address.values[row] >= 0:
                    address = self._address(more.address.words.text(more.address.values[row]), True)
                    self._note_address(entry, address.text)
                if address is not None:
                    if address.batch != self.batch:
                        self._find_codes(address, words)
                    messages.queue.values[row] = address.queue_code
                    messages.exchange.values[row] = address.exchange_code
                    messages.routing_key.values[row] = address.routing_key_code
                    if more.all_columns and messages.wanted:
                        _put_address(more, row, address)
        entry.mark = messages.mark.values[row]
        size: cython.longlong = messages.sent(row)
        if size > 0:
            if side == 0:
                times = channel.own_times()
                times.publish_bytes += size
            else:
                times = channel.own_times()
                times.deliver_bytes += size
        settler.attach(entry, messages, row)
        if self.emitter is not None:
            self._tell_message(entry, side, messages, row)
        delivery_state: DeliveryState = delivery_state_of(entry)
        if delivery_state is not None and more.all_columns:
            if delivery_state.settled_by is not None or (
                delivery_state.state and (entry.outcome >= 0 or entry.ended)
            ):
                self._write(entry, delivery_state)
            elif delivery_state.transaction is not None:
                more.transaction.put(row, delivery_state.transaction)
        return 0

    def _note_address(self, entry: PendingMessage, text: str) -> None:
        """Keep the `to` address of a message, for a link to the anonymous terminus."""
        delivery_state: DeliveryState = delivery_state_of(entry)
        if delivery_state is None and entry.held and self.emitter is not None:
            delivery_state = DeliveryState()
            entry.route = (delivery_state,)
        if delivery_state is not None:
            delivery_state.address = text

    @cython.cfunc
    def _address(self, text: str, sends: cython.bint) -> Address:
        """The address with a text that the client sends to, or receives from."""
        known: Address = self.addresses.get((text, sends))
        if known is None:
            known = Address(text, sends)
            if len(text) <= _MAX_ALIKE_BYTES:
                _keep(self.addresses, (text, sends), known)
        return known

    def _tell_message(
        self,
        entry: PendingMessage,
        side: cython.int,
        messages: MessageRows,
        row: cython.longlong,
    ) -> cython.int:
        """Ask the rules about a message that stands out."""
        channel: Channel = entry.channel
        events: list[Any] = None
        link: Link = link_of(entry)
        named: cython.bint = messages.correlation_id.has(row)
        if messages.body_size.values[row] > LARGE_BYTES:
            events = ["large"]
        if messages.redelivered.values[row] == 1:
            times = channel.own_times()
            times.redelivered += 1
            events = _with(events, "redelivered")
        if messages.headers.has(row) and (
            messages.headers.offsets[row + 1] - messages.headers.offsets[row] > LARGE_HEADERS_BYTES
        ):
            events = _with(events, "large-headers")
        if link is not None and link.address is not None and link.address.manages:
            events = _with(events, "managed")
        if side == 0:
            if messages.reply_to.values[row] >= 0 and (named or messages.message_id.has(row)):
                events = _with(events, "called")
                headers: bytes = messages.headers.bytes_of(row)
                if headers is not None and headers.find(_RENEWAL) > 0:  # `in` is slow for bytes
                    events = _with(events, "lock-renewed")
        elif link is not None and link.address is not None and link.address.claims:
            events = _with(events, "claims-answered")
        elif channel.session.pending_rpcs > 0 and (
            named or messages.status.values[row] == TRUNCATED
        ):
            events = _with(events, "answered")
        more: DeliveryColumns = messages.deliveries
        if link is not None and 0 < link.limit_bytes < more.message_bytes.values[row]:
            events = _with(events, "larger-than-link")
        if events is None:
            return 0
        facts = {"entry": entry, "rows": messages, "row": row, "link": link}
        for event in events:
            self.emitter.emit(event, channel, entry.packet_number, entry.ts_ns, facts)
        return 0

    def _write(self, entry: PendingMessage, delivery_state: DeliveryState) -> cython.int:
        """Write what became of a delivery into its row, where that is there and open."""
        rows: MessageRows = entry.rows
        if rows is None or rows.given or not rows.wanted or rows.deliveries is None:
            return 0
        more: DeliveryColumns = rows.deliveries
        if not more.all_columns:
            return 0
        if delivery_state.state < len(_STATES):
            more.state.put(entry.row, _STATES[delivery_state.state])
        more.settled_by.put(entry.row, delivery_state.settled_by)
        if delivery_state.condition is not None:
            more.state_error.put(entry.row, delivery_state.condition)
        if delivery_state.transaction is not None:
            more.transaction.put(entry.row, delivery_state.transaction)
        return 0


@cython.cfunc
@cython.exceptval(-1)
def _put_address(more: DeliveryColumns, row: cython.longlong, address: Address) -> cython.int:
    """Write where a message leads: by its link, or by its own `to` if that says more."""
    if not address.asked or more.address.values[row] < 0:
        more.address.put(row, address.text)
    return 0


@cython.cfunc
@cython.exceptval(-1)
def _note_answer(
    request: Request, number: cython.longlong, ts_ns: cython.longlong, status: cython.longlong
) -> cython.int:
    """A request to RabbitMQ's management was answered in a packet, at a time."""
    rows: FrameRows = request.rows
    if status < REFUSED and rows.wanted and not rows.given:
        rows.response_packet_number.values[request.row] = number
        rows.response_ns.values[request.row] = elapsed(request.ts_ns, ts_ns)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _drop(known: dict[Any, Any], key: cython.longlong, value: Any) -> cython.int:
    """Forget a number, unless it is another's by now."""
    if known.get(key) is value:
        del known[key]
    return 0


def _keep(known: Any, key: Any, value: Any) -> None:
    """Cache a value; a full cache is emptied first."""
    if len(known) >= _MAX_ALIKE:
        known.clear()
    known[key] = value


def _numbers_of(opening: Any) -> Any:
    """The kept arguments of an open: numbers, and the host name."""
    return {
        name: value
        for name, value in opening.items()
        if type(value) is int or (name == "hostname" and len(value) <= 256)
    }


def _with(events: Any, event: Any) -> Any:
    """A list with one more event; `events` may be None."""
    return [event] if events is None else [*events, event]


def _reason(found: Any) -> Any:
    """The error of a close or end, in the form of `Closeable.close`; None without one."""
    if found.condition is None:
        return None
    text = found.condition + (f": {found.description}" if found.description else "")
    return None, text, None, False


_RANGES = {"ubyte": 1 << 8, "ushort": 1 << 16, "uint": 1 << 32, "ulong": 1 << 63}
_TYPES = {"boolean": bool, "string": str, "symbol": str, "map": dict, "fields": dict}
_FIELDS = {
    row.code: [
        (
            field.name,
            _RANGES.get(base_type(field.type)),
            object if field.multiple else _TYPES.get(base_type(field.type), object),
        )
        for field in row.fields
    ]
    for row in COMPOSITES
}


def typed(code: Any, arguments: Any) -> Any:
    """The fields of a performative, as JSON has them, that have the standard's types."""
    found: dict[Any, Any] = {}
    for name, most, kind in _FIELDS[code]:
        value = arguments.get(name)
        if value is None:
            continue
        if isinstance(value, kind) if most is None else type(value) is int and 0 <= value < most:
            found[name] = value
    return found


def vhost_to_link(state: Any) -> Any:
    """The virtual host that RabbitMQ takes a connection to be of; None before the client's open."""
    opened = state.opens[0]
    return None if opened is None else virtual_host(opened.get("hostname"), "RabbitMQ")


def handshake_of(state: Any) -> Any:
    """Facts of open and sasl-init under the names of a 0-9-1 handshake."""
    client, server = state.opens
    found: dict[Any, Any] = {}
    if state.init or client:
        properties = dict(table_of(client or {}, "properties"))
        name = (client or {}).get("container_id")
        if isinstance(name, str):
            properties["connection_name"] = name
        start_ok = {"client_properties": properties}
        if isinstance(state.init.get("mechanism"), str):
            start_ok["mechanism"] = state.init["mechanism"]
        found["connection.start-ok"] = start_ok
    if client:
        product = table_of(server or {}, "properties").get("product")
        found["connection.open"] = {"virtual_host": virtual_host(client.get("hostname"), product)}
    if server:
        properties = dict(table_of(server, "properties"))
        found["connection.start"] = {"server_properties": properties}
    if client and server:
        idle = server.get("idle_time_out")
        found["connection.tune-ok"] = {
            "channel_max": _least(client.get("channel_max"), server.get("channel_max")),
            "frame_max": _least(client.get("max_frame_size"), server.get("max_frame_size")),
            "heartbeat": -(-idle // 1000) if isinstance(idle, int) else None,
        }
        found["connection.open-ok"] = {}
    return found


def _least(amqp10: Any, other: Any) -> Any:
    return min([each for each in (amqp10, other) if isinstance(each, int)], default=None)
