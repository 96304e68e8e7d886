# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Links and session windows of AMQP 1.0: the credit of each sender, and its use.

A link is followed from the first attach to the second detach; a name that is attached again is
another link, and the former continues by its handles. The receiver grants credit: delivery-count
plus link-credit of its last flow are the limit of the sender's delivery-count (§2.6.7). The
sender's own count comes from its attach or from a flow; until then credit is unknown. Windows of a
session limit transfers in the same way (§2.5.6). Numbers are those of RFC 1982, modulo 2^32.

Time without credit counts only if the sender had messages to send: it used up the last credit, and
sent again as soon as it got more.
"""

from __future__ import annotations

from urllib.parse import unquote

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Consumer

from amqpsniff.decode.json_objects import text_of
from amqpsniff.session.entities import MAX_WAIT_NS
from amqpsniff.spec.amqp10 import CBS_NODE, MANAGEMENT_NODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.amqp10.performatives import Performative
    from amqpsniff.session.entities import Channel

SENDER_MODES = ("unsettled", "settled", "mixed")
RECEIVER_MODES = ("first", "second")
"""Settlement modes by their numbers (§2.8.2, §2.8.3)."""

DURABILITIES = ("none", "configuration", "unsettled-state")
"""Durabilities of a terminus by their numbers (§3.5.5)."""

_MASK = cython.declare(cython.longlong, 0xFFFFFFFF)
_HALF = cython.declare(cython.longlong, 1 << 31)
_AT_ONCE = cython.declare(cython.longlong, MAX_WAIT_NS)

UNDER_WAY_NS = 500_000_000
"""Time after a flow that lowers a limit in which what the limit before allowed was under way: a
round trip around the world."""

_UNDER_WAY = cython.declare(cython.longlong, UNDER_WAY_NS)


@cython.cfunc
@cython.exceptval(check=False)
def ahead(limit: cython.longlong, at: cython.longlong) -> cython.longlong:
    """The lead of a serial number over another (RFC 1982); negative where it is behind."""
    found: cython.longlong = (limit - at) & _MASK
    return found - _MASK - 1 if found >= _HALF else found


@cython.cclass
class Address:
    """An address as it was sent, and what of RabbitMQ it names: texts, None where it names none.

    Of another form it is the queue of a receiver, and a sender's routing key; of a URL, as Azure's
    clients send it, that is its path. `deprecated`: the form is that of RabbitMQ's version 1;
    `claims`: it is the node for tokens; `manages`: that of RabbitMQ's management; `asked`: the
    client sends to that, and `to` of a message is the path that it is about; `batch`: that in whose
    vocabularies the texts have these codes.
    """

    deprecated: cython.bint
    claims: cython.bint
    manages: cython.bint
    asked: cython.bint
    batch: cython.longlong
    exchange_code: cython.int
    routing_key_code: cython.int
    queue_code: cython.int

    text: str
    exchange: str
    routing_key: str
    queue: str

    def __init__(self, text: Any, sends: Any) -> None:
        self.text = text
        self.exchange = self.routing_key = self.queue = None
        self.batch = self.exchange_code = self.routing_key_code = self.queue_code = -1
        self.claims = text.endswith(CBS_NODE)
        self.manages = text == MANAGEMENT_NODE
        self.asked = self.manages and sends
        parts = text.split("/")
        kind = parts[1] if len(parts) > 2 and not parts[0] else ""
        rest = "/".join(parts[2:])
        is_url = len(parts) > 3 and parts[0] in ("amqp:", "amqps:", "sb:") and not parts[1]
        name = "/".join(parts[3:]) if is_url else text
        if kind == "exchanges":
            self.exchange = unquote(parts[2])
            self.routing_key = unquote(parts[3]) if len(parts) > 3 else ""
        elif kind == "exchange":
            self.exchange = unquote(parts[2])
            self.routing_key = unquote("/".join(parts[3:])) if len(parts) > 3 else None
        elif kind == "topic":
            self.exchange, self.routing_key = "amq.topic", unquote(rest)
        elif kind == "amq" and parts[2] == "queue" and len(parts) > 3:
            self.queue = unquote("/".join(parts[3:]))
        elif kind in ("queues", "queue"):
            self.queue = unquote(rest)
        elif sends:
            self.routing_key = name
        else:
            self.queue = name
        self.deprecated = kind in ("exchange", "topic", "queue", "amq")
        if self.queue is not None and sends:
            self.exchange, self.routing_key, self.queue = "", self.queue, None


@cython.cclass
class Allowance:
    """Credit that the other side gave a sender: deliveries of a link, or transfers of a session.

    `used` is the sender's count and `limit` its limit, -1 while unknown. `least` and `most` are the
    minimum and maximum of the remaining credit, `granted` is the sum of all credit. `waits` counts
    the sender's waits, `waited_ns` is their total time, `longest_ns` the longest, with
    `longest_number` the packet that used the last credit, at `since_ns`. `former`: the limit
    before the receiver lowered it at `lowered_ns`, -1 for none. `empty_ns`, `empty_number`: time
    and packet of the last credit used, while none is left; `refilled_ns`: time of the new credit,
    until it is used.
    """

    used: cython.longlong
    limit: cython.longlong
    least: cython.longlong
    most: cython.longlong
    granted: cython.longlong
    waits: cython.longlong
    waited_ns: cython.longlong
    longest_ns: cython.longlong
    over: cython.longlong
    empty_ns: cython.longlong
    refilled_ns: cython.longlong
    waiting_ns: cython.longlong
    last_ns: cython.longlong
    empty_number: cython.longlong
    longest_number: cython.longlong
    since_ns: cython.longlong
    former: cython.longlong
    lowered_ns: cython.longlong

    def __init__(self) -> None:
        self.used = self.limit = self.least = self.most = self.former = -1
        self.since_ns = self.lowered_ns = NULL
        self.granted = self.waits = self.waited_ns = self.longest_ns = self.over = 0
        self.empty_ns = self.refilled_ns = self.waiting_ns = self.last_ns = NULL
        self.empty_number = self.longest_number = -1

    def begin(self, used: cython.longlong) -> cython.int:
        """Set the sender's count, from its attach or flow."""
        was_known: cython.bint = self.used >= 0
        self.used = used & _MASK
        left: cython.longlong = self.left()
        if left > 0:  # the receiver gave it before it knew the count
            self.most = max(self.most, left)
            if not was_known:
                self.granted += left
        return 0

    @cython.ccall
    @cython.exceptval(-2)
    def left(self) -> cython.longlong:
        """The room that is left; -1 if unknown."""
        if self.used < 0 or self.limit < 0:
            return -1
        return max(ahead(self.limit, self.used), 0)

    @property
    def balance(self) -> Any:
        """The room that is left, negative if the sender sent too much; None if unknown."""
        if self.used < 0 or self.limit < 0:
            return None
        left: cython.longlong = ahead(self.limit, self.used)
        return left if self.over else max(left, 0)  # it may have crossed a flow that lowers it

    def allow(
        self, limit: cython.longlong, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """Set the limit of the sender's count, from a flow of the receiver."""
        limit &= _MASK
        more: cython.longlong = ahead(limit, self.limit) if self.limit >= 0 else -1
        if self.limit < 0 and self.used >= 0:
            more = ahead(limit, self.used)
        elif more < 0 and self.limit >= 0:
            if not self._is_under_way(ts_ns) or ahead(self.limit, self.former) > 0:
                self.former = self.limit
            self.lowered_ns = ts_ns
        self.limit = limit
        if more > 0:
            self.granted += more
        left: cython.longlong = self.left()
        self.most = max(self.most, left)
        if left == 0:
            self.run_out(number, ts_ns)
        elif left > 0:
            if left < self.least or self.least < 0:
                self.least = left
            if self.empty_ns != NULL:
                if ts_ns != NULL:
                    self.waiting_ns = ts_ns - self.empty_ns
                    self.refilled_ns = ts_ns
                self.empty_ns = NULL
        return 0

    def run_out(self, number: cython.longlong, ts_ns: cython.longlong) -> cython.int:
        """Nothing is left from here on."""
        self.least = 0
        if self.empty_ns == NULL:
            self.empty_ns = ts_ns
            self.empty_number = number
        return 0

    def use(self, number: cython.longlong, ts_ns: cython.longlong) -> cython.bint:
        """The sender sends one more; true where that is more than it may."""
        before: cython.longlong = self.left()
        if self.refilled_ns != NULL and ts_ns != NULL:
            if ts_ns - self.refilled_ns <= _AT_ONCE:
                self.waits += 1
                self.waited_ns += self.waiting_ns
                if self.waiting_ns > self.longest_ns:
                    self.longest_ns = self.waiting_ns
                    self.longest_number = self.empty_number
                    self.since_ns = self.refilled_ns - self.waiting_ns
            self.refilled_ns = NULL
        self.last_ns = ts_ns
        if self.used < 0:
            return False
        self.used = (self.used + 1) & _MASK
        if before < 0:
            return False
        if before <= 1:
            self.run_out(number, ts_ns)
        elif before - 1 < self.least or self.least < 0:
            self.least = before - 1
        over: cython.bint = before == 0
        if over and self._is_under_way(ts_ns) and ahead(self.former, self.used) >= 0:
            over = False
        self.over += over
        return over

    def _is_under_way(self, ts_ns: cython.longlong) -> cython.bint:
        """True if deliveries that the former limit allowed may still be under way."""
        if self.former < 0:
            return False
        known: cython.bint = ts_ns != NULL and self.lowered_ns != NULL
        return not known or ts_ns - self.lowered_ns <= _UNDER_WAY


@cython.cclass
class Link(Consumer):
    """A link, stored like a consumer: its name, the sending side (`sender`), its source and target,
    and its counts.

    `handles` are those of client and server, -1 for none; `attached` has a bit for each side that
    is attached now, `answered` for each that ever was. `refused`: the answer to the attach had no
    terminus. `limit_bytes`: the receiver's largest message, 0 for any, -1 if not given. `weight`:
    bytes of memory that count for it, `key`: its key among the links of its session. `asked`,
    `given`: names of filters of the client's attach and the server's. `promised`: credit granted
    before the sender's initial count was captured, -1 for none. Times are ns, `NULL` for none.
    """

    sender: cython.int
    attached: cython.int
    answered: cython.int
    first_side: cython.int
    refused: cython.bint
    coordinator: cython.bint
    client_handle: cython.longlong
    server_handle: cython.longlong
    attached_number: cython.longlong
    detached_number: cython.longlong
    attached_ns: cython.longlong
    answered_ns: cython.longlong
    detached_ns: cython.longlong
    limit_bytes: cython.longlong
    weight: cython.longlong
    deliveries: cython.longlong
    bytes: cython.longlong
    flows: cython.longlong
    drains: cython.longlong
    accepted: cython.longlong
    rejected: cython.longlong
    released: cython.longlong
    modified: cython.longlong
    presettled: cython.longlong
    aborted: cython.longlong
    largest: cython.longlong
    promised: cython.longlong
    available: cython.longlong
    available_ns: cython.longlong
    oldest_number: cython.longlong
    first_number: cython.longlong
    settled_ns: cython.longlong
    first_ns: cython.longlong
    last_ns: cython.longlong

    name: str
    source: str
    target: str
    durable: str
    expiry_policy: str
    distribution_mode: str
    filter: str
    sender_mode: str
    receiver_mode: str
    closed_by: str
    condition: str
    description: str
    default_outcome: str
    channel: Channel
    address: Address
    key: Any
    asked: Any
    given: Any
    dynamic: Any
    suspended: Any
    credit: Allowance

    def __init__(self, name: Any, sender: Any, channel: Any) -> None:
        self.tag = self.queue = self.no_ack = self.prefetch = None
        self.delivered = self.unsettled = self.unsettled_max = 0
        self.batch = self.code = -1
        self.name = name
        self.sender = sender
        self.channel = channel
        self.key = self.address = self.default_outcome = None
        self.attached = self.answered = 0
        self.client_handle = self.server_handle = self.first_side = -1
        self.attached_number = self.detached_number = -1
        self.attached_ns = self.answered_ns = self.detached_ns = NULL
        self.closed_by = self.condition = self.description = None
        self.source = self.target = self.durable = self.expiry_policy = None
        self.distribution_mode = self.filter = self.sender_mode = self.receiver_mode = None
        self.asked = self.given = None
        self.dynamic = self.suspended = None
        self.refused = self.coordinator = False
        self.limit_bytes = -1
        self.credit = Allowance()
        self.weight = self.deliveries = self.bytes = self.flows = self.drains = 0
        self.accepted = self.rejected = self.released = self.modified = self.presettled = 0
        self.aborted = self.largest = 0
        self.available = -1
        self.available_ns = NULL
        self.promised = -1
        self.oldest_number = self.first_number = -1
        self.settled_ns = self.first_ns = self.last_ns = NULL

    @cython.ccall
    def learn(self, side: cython.int, arguments: dict[Any, Any], texts: Any) -> Any:
        """Read one side's attach; `texts` makes JSON of an object, None if only addresses are read.

        Returns the text of the link's new address; None if it keeps its own.
        """
        self.attached |= 1 << side
        self.answered |= 1 << side
        receives: cython.bint = side != self.sender
        source: dict[Any, Any] = _object(arguments.get("source"))
        target: dict[Any, Any] = _object(arguments.get("target"))
        self.coordinator = self.coordinator or target.get("type") == "coordinator"
        if self.first_side < 0:
            self.first_side = side
        elif side == 1 and self.first_side == 0:
            self.refused = ("target" if self.sender == 0 else "source") not in arguments
        self.source = text_of(source, "address") or self.source
        self.target = text_of(target, "address") or self.target
        terminus: dict[Any, Any] = target if self.sender == 0 else source
        text: str = text_of(terminus, "address")
        dynamic = terminus.get("dynamic")
        if self.address is not None and dynamic is not True:
            text = None
        if terminus and not (self.dynamic and dynamic is None):
            self.dynamic = dynamic is True
        if texts is not None:
            self._learn_details(side, arguments, terminus, source, texts)
        default = _object(source.get("default_outcome")).get("type")
        if isinstance(default, str):
            self.default_outcome = default
        if receives:
            size = arguments.get("max_message_size")
            self.limit_bytes = size if isinstance(size, int) and 0 <= size < 1 << 63 else 0
        else:
            first = arguments.get("initial_delivery_count")
            if isinstance(first, int):
                self.credit.begin(first)
                if self.promised >= 0:
                    self.credit.allow(self.credit.used + self.promised, -1, NULL)
        return text

    @cython.cfunc
    def _learn_details(
        self,
        side: cython.int,
        arguments: dict[Any, Any],
        terminus: dict[Any, Any],
        source: dict[Any, Any],
        texts: Any,
    ) -> None:
        """Read one side's arguments besides addresses; the filters of the answer are in force."""
        self.durable = _word(terminus, "durable", DURABILITIES) or self.durable
        self.expiry_policy = text_of(terminus, "expiry_policy") or self.expiry_policy
        self.distribution_mode = text_of(source, "distribution_mode") or self.distribution_mode
        if side != self.sender or self.receiver_mode is None:
            mode = _word(arguments, "rcv_settle_mode", RECEIVER_MODES)
            self.receiver_mode = mode or RECEIVER_MODES[0]
        if side == self.sender or self.sender_mode is None:
            mode = _word(arguments, "snd_settle_mode", SENDER_MODES)
            self.sender_mode = mode or SENDER_MODES[2]
        filters: dict[Any, Any] = _object(source.get("filter"))
        names = frozenset(filters)
        if side == 0:
            self.asked = names
        elif source:
            self.given = names
        if filters:
            self.filter = texts(filters)
        elif side == 1 and source and self.asked:
            self.filter = None

    def deliver(self, number: cython.longlong, ts_ns: cython.longlong) -> cython.bint:
        """A delivery begins; true where the sender had waited for credit until now."""
        waits: cython.longlong = self.credit.waits
        self.deliveries += 1
        if self.first_number < 0:
            self.first_number = number
            self.first_ns = ts_ns
        self.last_ns = ts_ns
        self.credit.use(number, ts_ns)
        return self.credit.waits != waits

    def flow(
        self, found: Performative, side: cython.int, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.int:
        """A flow of one side."""
        self.flows += 1
        count: cython.longlong = found.delivery_count
        if side == self.sender:
            before: cython.longlong = self.credit.used
            if count >= 0 and count != before:
                self.credit.begin(count)
                if self.credit.left() == 0:  # drained: it has nothing to send
                    self.credit.least = 0
                    self.credit.empty_ns = NULL
            self.available = found.available
            self.available_ns = ts_ns
            return 0
        if found.drain == 1:
            self.drains += 1
        if found.link_credit >= 0:
            if count < 0 and self.deliveries == 0:
                count = self.credit.used
                self.promised = found.link_credit
            if count >= 0:
                self.credit.allow(count + found.link_credit, number, ts_ns)
        return 0

    @property
    def whole(self) -> Any:
        """True if both attaches were seen, so that all counts are known."""
        return self.answered == 3

    @property
    def sends(self) -> Any:
        """True where the client sends."""
        return self.sender == 0


@cython.cclass
class Windows:
    """The windows of a session: the transfers that each side may still send.

    `client`: transfers to the client, `server`: to the server; `client_size`, `server_size`: the
    last incoming windows of each side, -1 for none. `stopped`: the server reduced the client's
    window to zero although it was open before.
    """

    client_size: cython.longlong
    server_size: cython.longlong
    stopped: cython.bint

    client: Allowance
    server: Allowance

    def __init__(self) -> None:
        self.client, self.server = Allowance(), Allowance()
        self.client_size = self.server_size = -1
        self.stopped = False

    def begin(self, side: cython.int, found: Performative) -> cython.int:
        """A side's begin: the number of its first transfer, and its window."""
        sent: Allowance = self.server if side == 0 else self.client
        if found.next_outgoing_id >= 0:
            sent.begin(found.next_outgoing_id)
        return self._announce(side, found.incoming_window)

    def _announce(self, side: cython.int, size: cython.longlong) -> cython.int:
        if side == 0:
            self.client_size = size
        else:
            self.server_size = size
        return 0

    def flow(
        self, side: cython.int, found: Performative, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """A side's flow; true where `stopped` changes."""
        was_stopped: cython.bint = self.stopped
        taken: Allowance = self.client if side == 0 else self.server
        sent: Allowance = self.server if side == 0 else self.client
        if found.next_outgoing_id >= 0:
            sent.begin(found.next_outgoing_id)
        if found.incoming_window >= 0:
            if side == 1:
                had_room: cython.bint = self.server_size != 0 and taken.left() != 0
                self.stopped = found.incoming_window == 0 and (self.stopped or had_room)
            self._announce(side, found.incoming_window)
            if found.next_incoming_id >= 0:
                taken.allow(found.next_incoming_id + found.incoming_window, number, ts_ns)
        return self.stopped != was_stopped

    def transfer(
        self, side: cython.int, number: cython.longlong, ts_ns: cython.longlong
    ) -> cython.bint:
        """A side sends a transfer; true where that is more than it may."""
        sent: Allowance = self.server if side == 0 else self.client
        size: cython.longlong = self.server_size if side == 0 else self.client_size
        if sent.limit < 0 and sent.used >= 0 and size >= 0:
            sent.allow(sent.used + size, number, ts_ns)
        return sent.use(number, ts_ns)

    @property
    def stalled_ns(self) -> Any:
        """The time that either side waited for the other's window."""
        return self.client.waited_ns + self.server.waited_ns


@cython.cfunc
def _object(value: Any) -> dict[Any, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


@cython.cfunc
def _word(arguments: dict[Any, Any], name: str, words: tuple[str, ...]) -> Any:
    """The name of an enumerated value; None if it is not one of `words`."""
    value = arguments.get(name)
    if isinstance(value, str) and value in words:
        return value
    return words[value] if type(value) is int and 0 <= value < len(words) else None
