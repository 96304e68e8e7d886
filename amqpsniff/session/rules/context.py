# cython: language_level=3, boundscheck=True, nonecheck=True
"""The context of a rule: what it sees of one event, and how it reports what it found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.findings.log import FindingLog
from cython.cimports.amqpsniff.session.entities import Channel, ChannelSlot, Session

from amqpsniff.columns import NULL
from amqpsniff.findings import Finding
from amqpsniff.findings.records import Order, order_of, order_of_end
from amqpsniff.session.counts import SECOND_NS

EVENTS = {
    "channel-begins": "a channel incarnation begins; facts: none",
    "channel-not-open": "a method came on a channel number that is not open; facts: method, "
    "channel (its number), side",
    "channel-opened-twice": "channel.open on a channel that is open; `channel` is the old one",
    "channel-ends": "a channel incarnation is over, before its entries are given up; facts: none",
    "connection-ends": "a connection is over, before its channels are ended; facts: none",
    "capture-ends": "there is no more; no session and no channel",
    "wrong-direction": "a method that its sender may not send; facts: method, channel, side",
    "wrong-channel": "a method of class connection on a channel, or another on 0; facts: method, "
    "channel, side",
    "out-of-order": "a method of the connection that its state does not allow; facts: method, "
    "side, state (before it)",
    "after-close": "a method of a side that has closed the connection; facts: method, channel, "
    "side",
    "tag-unknown": "a client's ack, nack or reject that means nothing outstanding; facts: tag, "
    "multiple, outcome (a code of entities.OUTCOMES)",
    "published-on-closed": "a publish after the server closed the channel, or after an end of TCP; "
    "facts: frames, row",
    "published-again": "the first publish of a channel with message-id, properties, size and route "
    "of an earlier one, further ones are counted; facts: first (packet of that), rows, row",
    "published-while-blocked": "a publish after connection.blocked; facts: none",
    "frames-lost": "frames of a side may be missing from here on; facts: side",
    "consumer-cancelled": "the broker cancelled one; facts: consumer (None: not known), tag",
    "delivery-tag-gap": "a delivery whose tag is not the last one plus 1; facts: tag, last",
    "confirmed-late": "a confirm that took `LATE_CONFIRM_NS` or longer; facts: entry",
    "rejected": "a nack of the broker for a publish; facts: entry",
    "returned": "a return whose content is whole; facts: entry (of the publish, None), rows, row",
    "requeued": "a delivery that its consumer gives back; facts: entry",
    "discarded": "a delivery that its consumer rejects; facts: entry",
    "redelivered": "a delivery with redelivered set; facts: entry (None: not known), rows, row",
    "dead-lettered": "a message with an x-death header; facts: entry, rows, row",
    "to-be-done-later": "a message whose eta header has a time; facts: entry, rows, row",
    "noted": "a message of which packs say something that stands out; facts: entry, rows, row, "
    "said (see `decode.meanings.Note`)",
    "looked-at": "a publish that has values of `packs.catalogue.SAMPLED`, of many one in some; "
    "facts: entry, rows, row, fields (sources of its values by name)",
    "large-headers": "a message with headers of more than `LARGE_HEADERS_BYTES`, or of more than "
    "`MANY_TABLES`; facts: entry, rows, row",
    "called": "a publish with reply-to and correlation-id; facts: entry, rows, row",
    "lock-renewed": "a `called` that asks Azure for more time; facts: entry, rows, row, link",
    "answered": "a delivery with a correlation-id, or one that is cut, while calls wait; facts: "
    "entry, rows, row",
    "half-sent": "a publish that took longer than `STALLED_NS`, or was not whole at its end; "
    "facts: rows, row, took_ns (None: not whole)",
    "paused": "a publish whose end came `PAUSED_NS` (from, to) after its method; facts: "
    "rows, row, took_ns",
    "held-up": "a delivery whose method came `BEHIND_NS` or sooner behind one of `BULKY_BYTES` or "
    "more on another channel, which took `BULKY_NS` or longer; facts: behind (its channel number, "
    "size, took_ns)",
    "large": "a message above `LARGE_BYTES`; facts: entry, rows, row",
    "channel-waits": "now and then while a channel has publishes that are not confirmed or "
    "deliveries that are not settled, and no bytes are waited for, see `foreseeing`; facts: none",
    "connection-waits": "the same of a connection that has requests or calls without a reply",
    "amqp10-opened": "both sides of a connection of AMQP 1.0 have opened; facts: state (its "
    "`Amqp10Connection`)",
    "amqp10-closed": "the first close of a connection of AMQP 1.0; facts: side, found (its "
    "`Performative`)",
    "frame-oversized": "a frame of AMQP 1.0 above the other side's max-frame-size; facts: side, "
    "size, limit",
    "login-offered": "the broker's sasl-mechanisms; facts: its arguments",
    "login-refused": "a sasl-outcome that is not ok; facts: its arguments",
    "session-ended": "the first end of a session; facts: side, found, of (its `Amqp10Session`)",
    "link-attached": "both sides have attached a link; facts: link, side (of the second), of",
    "link-taken": "a side attaches a name that it has attached; facts: link (the old), side, of",
    "link-detached": "a detach; facts: link, side, found, of",
    "link-ends": "a link is over, before its row; facts: link",
    "credit-awaited": "a delivery that waited for credit; facts: link, side, found, of",
    "delivery-aborted": "a sender gives up a delivery; facts: link, side, found, of",
    "publish-outcome": "an outcome of a delivery of the client that is not accepted; facts: of "
    "(its `Transferred`)",
    "settlement-refused": "the broker says an error of its own delivery; facts: link, side, "
    "found, of",
    "larger-than-link": "a message larger than the link's max-message-size; facts: entry, rows, "
    "row, link",
    "claims-answered": "a message of the node for tokens; facts: entry, rows, row, link",
    "deliveries-left": "a session is over that has deliveries nobody settled; facts: left (lists "
    "of `Transferred` by side and link)",
    "replied": "an answer that took longer than `MISSING_NS`, or any of a connection of which "
    "something is foreseen; `request` is answered; facts: none",
}
"""Occasions that are not methods, and what is known then."""

LARGE_BYTES = 1 << 20
"""Size of a body from which on the event `large` comes."""

LARGE_HEADERS_BYTES = 4_096
"""Size of headers, as JSON, from which on `large-headers` comes: more than most bodies have."""

MANY_TABLES = 16
"""Tables and arrays in headers from which on `large-headers` comes too."""

PROVISIONAL = "foreseen"
"""Name in `RuleContext.memory` of what was foreseen: a `ProvisionalFinding` by (code, channel)."""

MAX_PROVISIONAL = 64
"""Findings of one code foreseen of one connection: more channels that hang tell a person nothing
more.
"""

LATE_CONFIRM_NS = SECOND_NS // 2
"""Time to a confirm that is long: a healthy disk takes some milliseconds."""

STALLED_NS = SECOND_NS
"""Time from a method to the end of its content from which on `half-sent` comes."""

PAUSED_NS = (35_000_000, 55_000_000)
"""Times from a method to the end of its content with which `paused` comes: so long waits who waits
for a delayed acknowledgement."""

BULKY_BYTES = 1 << 16
"""Size of a body that may hold up others: a smaller one is in most buffers at once."""

BULKY_NS = SECOND_NS // 10
"""Time from the method to the end of such a delivery, from which on it holds up others."""

BEHIND_NS = SECOND_NS // 1000
"""Time after the end of such a delivery in which what comes has waited for it."""


MISSING_NS = 5 * SECOND_NS
"""Longest wait for an answer that is not worth an error: clients give up after 5 s or more."""

SLOW_NS = SECOND_NS
"""Time to an answer that is long; a broker needs milliseconds."""


class ProvisionalFinding(NamedTuple):
    """A finding that was foreseen.

    Attributes:
        key, times, number: The finding's; `times` is its count, `number` its packet.
        absent: True if it rests on something that did not come.
        quiet: True if it is no news yet.
    """

    key: tuple[object, ...]
    times: int
    number: int | None
    absent: bool
    quiet: bool


class Place(NamedTuple):
    """The place of a finding, without its channel."""

    capture: str | None
    packet_number: int | None
    ts_ns: int | None
    connection_id: str
    client: str | None
    server: str | None


_NO_FACTS: dict[Any, Any] = {}


class RuleContext:
    """One event.

    Attributes:
        tracker, session, channel: Where; channel is None where the event has none.
        log: Collects findings; None where they are not requested.
        memory: What rules remember about the connection.
        shared: What rules remember across connections; keep it bounded.
        frame: The `method_frame.MethodFrame` of a method's event, else None.
        request: The `method_frame.Request` that the method answers, or None.
        number, ts_ns: Packet and time of it; ts_ns is None where the packet has none.
        facts: What `EVENTS` says.
    """

    tracker: Any
    channel: Any
    frame: Any
    request: Any
    number: Any
    ts_ns: Any

    log: FindingLog
    memory: dict[Any, Any]
    shared: dict[Any, Any]
    session: Session
    facts: dict[Any, Any]
    _complete: Any
    _place: Any
    _messages: Any
    _order: Any

    def __init__(
        self,
        tracker: Any,
        session: Any,
        channel: Any,
        number: int | None,
        ts_ns: int | None,
        frame: Any = None,
        request: Any = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        self.tracker, self.log, self.shared = tracker, tracker.log, tracker.shared
        self.place_at(session, channel, number, ts_ns, frame, request, facts)

    def place_at(
        self,
        session: Session,
        channel: Any,
        number: Any,
        ts_ns: Any,
        frame: Any,
        request: Any,
        facts: dict[Any, Any] | None,
    ) -> None:
        """Set everything but `tracker` and what is its own."""
        self.session, self.channel = session, channel
        self.memory = {} if session is None else session.memory
        self.number = number
        self.ts_ns = None if ts_ns is None or ts_ns == NULL else ts_ns
        self.frame, self.request = frame, request
        self.facts = _NO_FACTS if facts is None else facts
        self._complete = self._place = self._messages = self._order = None

    @property
    def complete(self) -> bool:
        """True if no frame of the connection is missing since its first one captured.

        Every rule about something that did not come (a reply, a confirm, an acknowledgement, a
        close, a heartbeat) asks this or `certain`. Bytes that are still waited for count as
        captured: at an end there are none, and before it see `foresee`.
        """
        complete = self._complete
        session: Session = self.session
        if complete is None or session.has_loss:  # a rule of the same event may say so
            connection: Connection = session.connection
            complete = not session.has_loss and 0 not in connection.conversation.packets
            self._complete = complete
        return complete

    @property
    def certain(self) -> bool:
        """True if no frame of the connection so far is missing, from its first one on."""
        connection: Connection = self.session.connection
        return self.complete and connection.began

    @property
    def messages(self) -> tuple[int, int]:
        """Publishes and deliveries of a connection that ends now; see `messages_of`."""
        messages = self._messages
        if messages is None:
            messages = self._messages = messages_of(self.session)
        return messages

    @property
    def place(self) -> Place:
        """The connection, packet and time."""
        place = self._place
        if place is None:
            session: Session = self.session
            connection: Connection = session.connection
            connection_id, client, server = connection.name()
            place = self._place = Place(
                session.capture, self.number, self.ts_ns, connection_id, client, server
            )
        return place

    @property
    def order(self) -> Order:
        """When this is known: of a connection's end when it was taken for over."""
        known = self._order
        if known is None:
            session: Session = self.session
            connection: Connection = session.connection
            if self.frame is None and not self.facts:
                known = order_of_end(connection.conversation, session.capture)
            else:
                now = self.tracker.now()
                capture, number, ts_ns = now or (session.capture, self.number, self.ts_ns)
                known = order_of(ts_ns, capture, number)
            self._order = known
        return known

    @property
    def queue(self) -> str | None:
        """The queue that the event is about; one that it leaves empty is the last declared one."""
        named: str | None = self.frame.queue
        last: str | None = self.channel.last_queue
        return last if named == "" else named

    def forget(self, what: str, count: int = 1) -> None:
        """Count that a limit kept something of what rules remember; `rules-limit` says so."""
        forgotten = self.shared.setdefault("forgotten", {})
        forgotten[what] = forgotten.get(what, 0) + count

    def report(
        self,
        code: str,
        detail: str = "",
        *,
        number: int | None = None,
        ts_ns: int | None = None,
        count: int = 1,
        last: int | None = None,
        variant: int | None = None,
    ) -> None:
        """Raise a finding, at the event's packet, or at packet `number` of the time `ts_ns`.

        `count` and `last` (packet number) are for one that stands for many, `variant` for what is
        not to be counted with others of its code on the channel.
        """
        session: Session = self.session
        channel: Channel = self.channel
        log = self.log
        if log is None:
            return
        at = self.number if number is None else number
        last = at if last is None else last
        time = self.ts_ns if number is None else ts_ns
        connection_id = client = server = capture = None
        if session is not None:
            connection: Connection = session.connection
            connection_id, client, server = connection.name()
            capture = session.capture if channel is None else channel.capture
        place = None if channel is None else channel.number
        self.withdraw(code, channel)
        if log.again(code, connection_id, capture, place, count, last, variant):
            return
        log.add(
            Finding(
                code, detail, capture, at, None if time is None or time <= 0 else time,
                connection_id, client, server, place, count, last, variant=variant,
            )
        )  # fmt: skip

    def is_provisional(self, code: str) -> bool:
        """True if a finding of this code is foreseen here."""
        return (code, self.channel) in self.memory.get(PROVISIONAL, {})

    def report_provisional(
        self,
        code: str,
        detail: str,
        number: int | None,
        ts_ns: int | None,
        count: int = 1,
        last: int | None = None,
        absent: bool = True,
        variant: int | None = None,
    ) -> None:
        """Raise a finding of what goes on, at packet `number` of the time `ts_ns`.

        What is reported of the same connection and channel takes its place, and what is foreseen
        there with another count. Where nothing is, it stays: so what neither the end says too, nor
        will still be true then, has to be withdrawn. If it rests on something `absent`, it is
        withdrawn as soon as frames of the connection may be missing
        (`provisional.withdraw_unsure`), is no news while bytes are waited for, which depends on how
        packets come, and is not raised before a frame of each side was read: where a capture
        begins, those of one may come late.
        """
        log, channel, session = self.log, self.channel, self.session
        if absent and NULL in (session.last_client_ns, session.last_server_ns):
            return
        noted = self.memory.setdefault(PROVISIONAL, {})
        known = noted.get((code, channel))
        quiet = absent and self._is_behind()
        if known is not None and known.times == count:
            if known.quiet and not quiet:
                log.announce(known.key)
                noted[code, channel] = known._replace(quiet=False)
            return
        self.withdraw(code, channel)
        if sum(one == code for one, _ in noted) >= MAX_PROVISIONAL:
            return
        capture = self.session.capture if channel is None else channel.capture
        place = None if channel is None else channel.number
        one, client, server = self.session.connection.name()
        finding = Finding(
            code, detail, capture, number, ts_ns, one, client, server, place, count, last,
            variant=variant,
        )  # fmt: skip
        if log.foresee(finding, quiet):
            noted[code, channel] = ProvisionalFinding(finding.key, count, number, absent, quiet)

    def withdraw(self, code: str, channel: Any = None, number: int | None = None) -> None:
        """Take back what was foreseen, for more is known of it now; with a `number`, only what is
        about that packet.
        """
        if PROVISIONAL not in self.memory:
            return
        noted = self.memory[PROVISIONAL]
        known = noted.get((code, channel))
        if known is not None and (number is None or number == known.number):
            del noted[code, channel]
            self.log.withdraw(known.key)

    def _is_behind(self) -> bool:
        """True if bytes are known to have been sent that were not read yet."""
        return any(self.session.connection.conversation.owed)

    def again(self, code: str) -> bool:
        """Count one more of a finding that was raised here before; False when none was.

        For events that come often: the words of the finding are those of the first.
        """
        log, session, channel = self.log, self.session, self.channel
        if log is None or session is None:
            return False
        place = None if channel is None else channel.number
        connection_id = session.connection.name()[0]
        return log.again(code, connection_id, None, place, 1, self.number)


def messages_of(session: Session) -> tuple[int, int]:
    """Publishes and deliveries of a connection, whose channels may have ended or are open."""
    slot: ChannelSlot
    published, delivered = session.published, session.delivered
    for slot in session.slots():
        if slot.channel is not None:
            published += slot.channel.published
            delivered += slot.channel.delivered
    return published, delivered


Rule = Callable[[RuleContext], None]


class Asked:
    """A rule, and what it needs to be asked: see `requires` for `names` and `where` for `bits`."""

    names: tuple[str, ...]
    bits: int
    rule: Any

    def __init__(self, rule: Rule, names: tuple[str, ...] | None, bits: int) -> None:
        self.rule, self.names, self.bits = rule, names, bits


PUBLISHED, DELIVERED, BUSY, CONFIRMS, UNOPENED, UNCLEAN, LEFT_OPEN, WAITING, ZERO_WINDOW, QUIET = (
    1 << place for place in range(10)
)
"""What became of a channel or connection that ends, as bits: it has publishes; it has deliveries;
`BUSY_MESSAGES` of either or more, or a channel has deliveries of `BUSY_BYTES`; publishes have
confirms, or wait for them; its handshake was begun and not completed; it was not closed by both
sides; neither AMQP nor TCP ended it; requests wait for replies; a TCP window was closed; a side
sent nothing for `QUIET_NS`, or sent bytes again.
"""

DOUBTED, STAYED, SPOKE, SHORT, LASTED = (1 << place for place in (16, 17, 18, 19, 24))
"""More of a connection that ends: its beginning, frames, its start-ok or the time of its end may be
missing; it lived longer than `STAYED_NS`; it has methods; it lived less than `SHORT_NS`; it did
not."""

HELD, WAITED, UNPROTECTED, REPEATS = (1 << place for place in range(20, 24))
"""More of a channel that ends: deliveries are not settled, or something was noted of what consumers
hold; a delivery waited `WAITED_NS` in its queue, or for its acknowledgement; it has publishes, and
no confirms or transactions; it has publishes that came before."""

WAITED_NS = SECOND_NS
"""Waiting that is worth a look; rules that say something of it ask for more."""

STUCK, OLDEST = "cancelled while stuck", "oldest deliveries"
"""Names in `RuleContext.memory` of what consumers hold, see `stuck_consumers`: those that were
cancelled while they were stuck, and the oldest deliveries, by channel."""

SHORT_NS = SECOND_NS
"""Life of a connection that was not worth its opening."""

STAYED_NS = 30 * SECOND_NS
"""A client that is connected for longer has had its time to consume again."""

QUIET_NS = SECOND_NS
"""The shortest heartbeat interval."""

BUSY_MESSAGES = 10
"""Messages below which there is nothing to judge of how a program works."""

BUSY_BYTES = 10_000_000
"""Bytes with which few messages may be too many for a client at once."""

PASSIVE, EXTENDED, NESTED, EXCLUSIVE, BY_BROKER, CONSUMES = (1 << place for place in range(10, 16))
"""Bits of a method and its arguments, of a broker's reply those of its request: `passive` is true;
a name begins with `x-`; the JSON is longer than `MANY_ENTRIES_BYTES` or has more than `DEEP` tables
and arrays; `exclusive` or `auto_delete` is true, or was cut; the broker sent it; it is about a
connection or channel that has or had consumers."""

SINCE = "consumers since"
"""Name in `RuleContext.memory` of (time, packet) of the last basic.consume by (channel number,
queue)."""

MANY_ENTRIES_BYTES = 20_000
"""Length of tables as JSON below which they cannot have as many entries as make a reader slow: in
an array two bytes are enough for one."""

DEEP = 16
"""Tables and arrays inside each other beyond which no application goes: three are usual in headers
of brokers (x-death)."""

ANYTHING = -1
"""All of them: for events where rules look themselves."""


def where(bits: int) -> Callable[[Rule], Rule]:
    """Mark a rule that has nothing to judge at an end, or of a method, to which none of these bits
    applies."""

    def mark(rule: Rule) -> Rule:
        rule.where = bits  # type: ignore[attr-defined]
        return rule

    return mark


def requires(*names: str) -> Callable[[Rule], Rule]:
    """Mark a rule that has nothing to judge where `RuleContext.memory` has none of these names."""

    def mark(rule: Rule) -> Rule:
        rule.requires = names  # type: ignore[attr-defined]
        return rule

    return mark
