# cython: language_level=3, boundscheck=True, nonecheck=True
"""The context of a rule: the data of one event, and the ways to report a finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.findings.log import FindingLog
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Channel, ChannelSlot, Session
from cython.cimports.amqpsniff.session.method_frame import MethodFrame, Request

from amqpsniff.findings import FURTHER, Finding
from amqpsniff.findings.records import Order, order_of, order_of_end
from amqpsniff.session.rules.occasions import PROVISIONAL

MAX_PROVISIONAL = 64
"""Findings of one code foreseen of a connection: more channels that hang tell nothing new."""

MAX_SUBJECTS = 20
"""Subjects (queues and the like) of a connection that have a finding of one code each: who reads on
has seen enough, and a client may make up any number of names."""

MAX_SUBJECT_CODES = 64
"""Codes with subjects that a connection tells apart; a broker may make up reply codes."""

SUBJECTS = "subjects with findings"
"""Name in `RuleContext.memory` and `RuleContext.shared` of the subjects that have findings."""


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


@cython.freelist(8)
@cython.cclass
class RuleContext:
    """One event.

    Attributes:
        tracker, session, channel: Its place; channel is None for an event without one.
        log: Collects findings; None if they are not requested.
        memory: State of rules about the connection.
        shared: State of rules across connections; keep it bounded.
        frame: The `method_frame.MethodFrame` of a method's event, else None.
        request: The `method_frame.Request` that the method answers, or None.
        number, ts_ns: Its packet and time; ts_ns is None for a packet without a time.
        facts: The values that `EVENTS` lists.
    """

    tracker: Any
    channel: Channel
    frame: MethodFrame
    request: Request
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

    @cython.cfunc
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
        """Set the attributes of an event."""
        self.session, self.channel = session, channel
        self.memory = {} if session is None else session.memory
        self.number = number
        time: cython.longlong = NULL if ts_ns is None else ts_ns
        self.ts_ns = None if time == NULL else ts_ns
        self.frame, self.request = frame, request
        self.facts = _NO_FACTS if facts is None else facts
        self._complete = self._place = self._messages = self._order = None

    @property
    def complete(self) -> bool:
        """True if no frame of the connection is missing since its first one captured.

        Every rule about an absent frame (a reply, a confirm, an acknowledgement, a close, a
        heartbeat) checks this or `certain`. Bytes that reassembly waits for count as captured: at
        an end there are none, and before it see `report_provisional`.
        """
        complete = self._complete
        session: Session = self.session
        if complete is None or session.has_loss:  # a rule of the same event may change it
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
            place = self._place = self.place_of(self.number, self.ts_ns)
        return place

    @cython.ccall
    def place_of(self, number: Any, ts_ns: Any) -> Any:
        """The `Place` of another packet of the connection; both are None if unknown."""
        session: Session = self.session
        connection: Connection = session.connection
        name: tuple[Any, ...] = connection.name()
        capture = session.capture_at(ts_ns)
        return tuple.__new__(Place, (capture, number, ts_ns, name[0], name[1], name[2]))

    @property
    def order(self) -> Order:
        """Position of the event in time; for a connection's end, the time of its detection."""
        known = self._order
        if known is None:
            session: Session = self.session
            connection: Connection = session.connection
            if self.tracker.ending is session:
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
        """Count entries that rules dropped because of a limit; `rules-limit` reports it."""
        forgotten = self.shared.setdefault("forgotten", {})
        forgotten[what] = forgotten.get(what, 0) + count

    def variant_for(
        self, code: str, subject: object, detail: str, variant: Any = None
    ) -> tuple[Any, str]:
        """The variant of a finding about a subject, and its detail.

        The first `MAX_SUBJECTS` subjects of a connection have a finding each, all others share one,
        whose detail starts with `FURTHER`.
        """
        groups = self.memory.setdefault(SUBJECTS, {})
        known = groups.get((code, variant))
        if known is None:
            known = {}
            if len(groups) < MAX_SUBJECT_CODES:
                groups[code, variant] = known
        ordinal = ordinal_of(known, subject)
        if ordinal == MAX_SUBJECTS:
            detail = FURTHER + detail
        if not ordinal:
            return variant, detail
        return ordinal if variant is None else (variant, ordinal), detail

    def report(
        self,
        code: str,
        detail: str = "",
        *,
        number: int | None = None,
        ts_ns: int | None = None,
        count: int = 1,
        last: int | None = None,
        variant: Any = None,
        until_ns: int | None = None,
        subject: object = None,
    ) -> None:
        """Raise a finding, at the event's packet, or at packet `number` of the time `ts_ns`.

        `count` and `last` (packet number) are for a finding with several cases. Findings of the
        same code and channel are counted separately by their `variant`. `subject` is the queue,
        exchange or link of the detail, if others may have the same finding: see `apart`.
        `until_ns`: see `Finding`.
        """
        session: Session = self.session
        channel: Channel = self.channel
        log = self.log
        if log is None:
            return
        if subject is not None:
            variant, detail = self.variant_for(code, subject, detail, variant)
        at = self.number if number is None else number
        last = at if last is None else last
        time = self.ts_ns if number is None else ts_ns
        connection_id = client = server = capture = None
        if session is not None:
            connection: Connection = session.connection
            connection_id, client, server = connection.name()
            capture = session.capture_at(time)
        place = None if channel is None else channel.number
        self.withdraw(code, channel)
        if log.count_more(code, connection_id, capture, place, count, last, variant):
            return
        log.add(
            Finding(
                code, detail, capture, at, None if time is None or time <= 0 else time,
                connection_id, client, server, place, count, last, variant=variant,
                until_ns=until_ns,
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
        variant: Any = None,
        subject: object = None,
    ) -> None:
        """Raise a provisional finding of an open state, at packet `number` of the time `ts_ns`.

        A later `report` for the same connection and channel replaces it, and so does a provisional
        finding with another count. Otherwise it stays: withdraw it if it is no longer true and no
        rule reports at the end. A finding about an `absent` frame is withdrawn as soon as frames of
        the connection may be missing (`provisional.withdraw_unsure`). It is not announced while
        reassembly waits for bytes, because that depends on how packets come. It is not raised
        before a frame of each side was read: at the begin of a capture, those of one side may come
        late.
        """
        log, channel, session = self.log, self.channel, self.session
        if absent and NULL in (session.last_client_ns, session.last_server_ns):
            return
        noted = self.memory.setdefault(PROVISIONAL, {})
        known = noted.get((code, channel))
        quiet = absent and any(self.session.connection.conversation.owed)
        if known is not None and known.times == count:
            if known.quiet and not quiet:
                log.announce(known.key)
                noted[code, channel] = known._replace(quiet=False)
            return
        self.withdraw(code, channel)
        if subject is not None:
            variant, detail = self.variant_for(code, subject, detail, variant)
        if sum(noted_code == code for noted_code, _ in noted) >= MAX_PROVISIONAL:
            return
        capture = self.session.capture_at(ts_ns)
        place = None if channel is None else channel.number
        connection_id, client, server = self.session.connection.name()
        finding = Finding(
            code, detail, capture, number, ts_ns, connection_id, client, server, place, count, last,
            variant=variant,
        )  # fmt: skip
        if log.foresee(finding, quiet):
            noted[code, channel] = ProvisionalFinding(finding.key, count, number, absent, quiet)

    def withdraw(self, code: str, channel: Any = None, number: int | None = None) -> None:
        """Withdraw a provisional finding; with a `number`, only if it is about that packet."""
        if PROVISIONAL not in self.memory:
            return
        noted = self.memory[PROVISIONAL]
        known = noted.get((code, channel))
        if known is not None and (number is None or number == known.number):
            del noted[code, channel]
            self.log.withdraw(known.key)

    def count_more(self, code: str, subject: object = None) -> bool:
        """Count one more of a finding about a subject that was raised here before; False when none
        was.

        For events that come often: the words of the finding are those of the first.
        """
        log, session, channel = self.log, self.session, self.channel
        if log is None or session is None:
            return False
        place = None if channel is None else channel.number
        connection_id = session.connection.name()[0]
        variant = None if subject is None else self.variant_for(code, subject, "")[0]
        return log.count_more(code, connection_id, None, place, 1, self.number, variant)


def ordinal_of(known: dict[int, int], subject: object) -> int:
    """Index of the subject in `known`, from 0 on; `MAX_SUBJECTS` for all beyond that number."""
    key = hash(subject)
    if key not in known:
        if len(known) >= MAX_SUBJECTS:
            return MAX_SUBJECTS
        known[key] = len(known)
    return known[key]


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
