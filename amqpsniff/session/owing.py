"""Debts of a connection: what each side still had to send.

The broker's debts: replies, confirms, the end of a block, the rest of a delivery. The client's:
replies, acknowledgements, the rest of a publish. After a close its answer is the only debt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from amqpsniff.null import NULL
from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import NAMES
from amqpsniff.units import count, duration, octets, plural

SIDES = ("client", "broker")

NOTHING = "nothing outstanding"

SILENCE_NS = 5 * SECOND_NS
"""Time without a frame, heartbeats apart, after which it is told who owed whom: a person has begun
to wait by then."""

HELD_NS = 30 * SECOND_NS
"""Time after which a delivery has waited too long for its acknowledgement."""

_ONE_SIDE = {1 << CLIENT: CLIENT, 1 << SERVER: SERVER}
"""The side of a bit that says that it did something, and the other did not."""

_LAST = "last frame"
"""Name in `Session.memory` of the time of the last frame that was no heartbeat."""

_LOOKED = "looked at"
"""Name in `Session.memory` of how many channels were looked at for silences."""


class Debt(NamedTuple):
    """Things of one kind that a side owes.

    Attributes:
        side: The side that owes them, `CLIENT` or `SERVER`.
        kind: Their kind in one word.
        what: Their description, with their number.
        packet_number: The packet of the oldest: the frame to be answered, or its first frame.
        since_ns: Its time, None if unknown.
        full: True if the other side sends nothing more before.
    """

    side: int
    kind: str
    what: str
    packet_number: int
    since_ns: int | None
    full: bool = False

    @property
    def may_wait(self) -> bool:
        """True if the side sends them when it pleases."""
        return self.kind in ("acks", "blocked")


def debts(session: Any) -> list[Debt] | None:
    """Debts on a connection, the broker's first; None if the capture does not show them."""
    if not (session.connection.began and session.server_seen) or session.has_loss:
        return None
    if not all(session.connection.conversation.packets):
        return None
    channels = [] if _is_closed(session) else list(_channels(session))
    if not all(map(_is_known, channels)):
        return None
    return sorted(_debts(session, channels), key=lambda debt: -debt.side)


def stalled(session: Any, now_ns: int) -> Debt | None:
    """The oldest overdue debt, or None.

    A debt is overdue after `HELD_NS` for acknowledgements while the broker may send more, and after
    `SILENCE_NS` for the rest; a block of the broker is overdue at once. Debts from before the
    capture are unknown, and so are all after a loss.
    """
    if session.has_loss or not all(session.connection.conversation.packets):
        return None
    channels = [] if _is_closed(session) else filter(_is_known, _channels(session))
    late = [
        debt
        for debt in _debts(session, list(channels))
        if debt.since_ns is not None and now_ns - debt.since_ns >= _patience_ns(debt)
    ]
    return min(late, key=lambda debt: debt.since_ns or 0, default=None)


def _patience_ns(debt: Debt) -> int:
    """The time after which a debt is too old."""
    if debt.may_wait and not debt.full:
        return HELD_NS if debt.kind == "acks" else 0
    return SILENCE_NS


def _debts(session: Any, channels: list[Any]) -> list[Debt]:
    """Debts on a connection and on some of its channels."""
    found = list(_replies(session))
    for kind in (_confirms, _acknowledgements, _contents) if channels else ():
        found += kind(channels)
    if session.blocked_since is not None and not _is_closed(session):
        found.append(
            Debt(SERVER, "blocked", "connection.unblocked", 0, _time(session.blocked_since))
        )
    return found


class Silence(NamedTuple):
    """Time in which only heartbeats were sent on a connection, though a side had debts.

    Attributes:
        connection_id: The connection.
        packet_number, ts_ns: The packet whose frame ended it, and its time.
        lasted_ns: How long it was.
        owed: Each side's debts, a sentence.
    """

    connection_id: str
    packet_number: int
    ts_ns: int
    lasted_ns: int
    owed: str


def silence_before(session: Any, number: int, now_ns: int, most: int) -> Silence | None:
    """The silence that a frame ends which is no heartbeat, before it is followed.

    `most` is `Limits.silences`.
    """
    last_ns = session.memory.get(_LAST, now_ns)
    session.memory[_LAST] = now_ns
    looked = session.memory.get(_LOOKED, 0)
    if now_ns - last_ns < SILENCE_NS or looked >= most:
        return None
    consumers = sum(map(_looks, _channels(session)))
    session.memory[_LOOKED] = looked = looked + session.slot_count + consumers
    owed = sentence(session, now_ns)
    if looked >= most:
        later = "later silences of the connection are not told, it has many channels or consumers"
        owed = later if owed is None else f"{owed}; {later}"
    elif owed is None or owed.startswith(NOTHING):
        return None
    return Silence(session.connection.name()[0], number, now_ns, now_ns - last_ns, owed)


def sentence(session: Any, now_ns: int | None = None) -> str | None:
    """Debts by side, with the time until now; None for the time of the connection's last packet."""
    found = debts(session)
    if found is None:
        return None
    if not found:
        return NOTHING + _confirmed(session)
    if now_ns is None:
        now_ns = session.connection.conversation.end_ns
    parts = []
    for side in (SERVER, CLIENT):
        owed = [f"{one.what}{_since(one, now_ns)}" for one in found if one.side == side]
        if owed:
            parts.append(f"{SIDES[side]} owes {', '.join(owed)}")
    parts.append("nothing else outstanding")
    return "; ".join(parts) + _confirmed(session)


def _confirmed(session: Any) -> str:
    """The number of publishes if all were answered: a client that still waits lost a confirm."""
    channels = [slot.channel for slot in session.slots() if slot.channel is not None]
    numbered = [one for one in channels if one.numbering and one.next_number > 1]
    if not numbered or any(one.unconfirmed or not one.counts_publishes() for one in numbered):
        return ""
    publishes = sum(one.next_number - 1 for one in numbered)
    rejected = sum(one.times.rejected for one in numbered)
    every = "the 1 publish" if publishes == 1 else f"all {count(publishes)} publishes"
    if rejected:
        return f"; broker answered {every}, {count(rejected)} with a nack"
    return f"; broker confirmed {every}"


def _is_closed(session: Any) -> bool:
    return session.close_packet_number is not None


def _channels(session: Any) -> Iterator[Any]:
    """The channels that are open, and that no side closes."""
    for slot in session.slots():
        channel = slot.channel
        if channel is not None and not any(channel.closing):
            if channel.amqp10 is None or not channel.amqp10.ended:
                yield channel


def _is_known(channel: Any) -> bool:
    """True if the numbers of waiting publishes and deliveries of a channel are known."""
    return bool(channel.counts_publishes() and channel.counts_deliveries())


def _waiting(channel: Any, side: int) -> Any:
    """Messages of a side that wait for an answer; in AMQP 1.0 for the receiver's outcome."""
    if channel.amqp10 is None:
        return (channel.publishes, channel.deliveries)[side]
    waiting = channel.amqp10.unsettled[side]
    return [one for one in waiting if one.route is None or not _is_answered(one.route[0], side)]


def _is_answered(said: Any, side: int) -> bool:
    """True if the receiver of a side's delivery gave the outcome, and has not settled it."""
    return bool(said.state) and said.side != side


def _looks(channel: Any) -> int:
    """Number of objects to visit for the debts of a channel: consumers, and in AMQP 1.0 links and
    deliveries."""
    if channel.amqp10 is None:
        return len(channel.by_tag)
    waiting = sum(ledger.waiting for ledger in channel.amqp10.unsettled)
    return len(channel.amqp10.links) + int(waiting)


def _replies(session: Any) -> Iterator[Debt]:
    """Replies to requests, those of a side together."""
    asked = [
        (request.side, NAMES[request.method], request.number, request.ts_ns)
        for slot in session.slots()
        for request in slot.requests
    ]
    if _is_closed(session):
        asked = [one for one in asked if one[1] == "connection.close"]
    if session.amqp10 is not None:
        asked += _unanswered(session)
    for side in (CLIENT, SERVER) if asked else ():
        of_side = [one for one in asked if one[0] == side]
        if of_side:
            _, name, number, ts_ns = min(of_side, key=lambda one: int(one[2]))
            what = f"the reply to {name}"
            if len(of_side) > 1:
                what = f"replies to {plural(len(of_side), 'request')}, {name} first"
            yield Debt(1 - side, "reply", what, number, _time(ts_ns))


def _unanswered(session: Any) -> Iterator[tuple[int, str, int, int]]:
    """Performatives of AMQP 1.0 that the other side has yet to answer: the side that sent it, its
    name, packet and time. After a close only the close is waited for.
    """
    state = session.amqp10
    if _is_closed(session):
        if state.closed in _ONE_SIDE:
            side = _ONE_SIDE[state.closed]
            yield side, "close", session.close_packet_number, session.close_ns
        return
    if state.opened_number >= 0 and state.opens[SERVER] is None:
        yield CLIENT, "open", state.opened_number, state.opened_ns
    for slot in session.slots():
        if slot.channel is not None and slot.channel.known:
            yield from _unanswered_on(slot.channel)


def _unanswered_on(channel: Any) -> Iterator[tuple[int, str, int, int]]:
    """The same of a session."""
    one = channel.amqp10
    if one.ended in _ONE_SIDE:
        yield _ONE_SIDE[one.ended], "end", channel.closed_packet_number, channel.end_ns
        return
    if one.server_channel < 0:
        yield CLIENT, "begin", channel.opened_number, channel.opened_ns
    for link in one.links.values():
        if link.answered == link.attached == 1 << CLIENT:
            yield CLIENT, f"attach of link '{link.name}'", link.attached_number, link.attached_ns
        elif link.detached_number >= 0 and link.attached in _ONE_SIDE:
            side = 1 - _ONE_SIDE[link.attached]
            yield side, f"detach of link '{link.name}'", link.detached_number, link.detached_ns


def _confirms(channels: list[Any]) -> Iterator[Debt]:
    """Confirms of publishes that are whole."""
    entries = []
    number = 0
    for channel in channels:
        cut = None if channel.unfinished is None else channel.unfinished[1]
        waiting = _waiting(channel, CLIENT)
        open_ones = (one for one in waiting if one.outcome < 0)
        first = next((one for one in open_ones if one.packet_number != cut), None)
        if first is not None:
            entries.append(first)
            every = channel.unconfirmed if channel.amqp10 is None else len(waiting)
            number += every - _ends_with(waiting, cut)
    if entries:
        first = min(entries, key=lambda entry: int(entry.packet_number))
        yield Debt(
            SERVER, "confirms", plural(number, "confirm"), first.packet_number, _time(first.ts_ns)
        )


def _acknowledgements(channels: list[Any]) -> Iterator[Debt]:
    """Acknowledgements of deliveries that are whole."""
    entries = []
    number = allowed = 0
    for channel in channels:
        cut = None if channel.unfinished is None else channel.unfinished[1]
        waiting = _waiting(channel, SERVER)
        first = next((one for one in waiting if one.packet_number != cut), None)
        if first is not None:
            entries.append(first)
            every = channel.unsettled if channel.amqp10 is None else len(waiting)
            number += every - _ends_with(waiting, cut)
            limit = _allowed(channel)
            allowed = allowed + limit if limit and allowed >= 0 else -1
    if entries:
        first = min(entries, key=lambda entry: int(entry.packet_number))
        of = f" (of {count(allowed)} allowed)" if allowed > 0 else ""
        noun = "delivery" if number == 1 else "deliveries"
        what = f"acknowledgements of {count(number)} {noun}{of}"
        full = 0 < allowed <= number
        yield Debt(CLIENT, "acks", what, first.packet_number, _time(first.ts_ns), full)


def _ends_with(entries: Any, number: int | None) -> int:
    """1 if the content of the last entry that waits is not whole: that in packet `number`."""
    if number is None:
        return 0
    return int(any(entry.packet_number == number for entry in entries))


def _allowed(channel: Any) -> int:
    """Deliveries that a channel may hold; 0 for no limit, or an unknown one."""
    if channel.amqp10 is not None:
        links = [one for one in channel.amqp10.links.values() if one.sender == SERVER]
        left = [one.credit.left() for one in links]
        return 0 if -1 in left else sum(left) + sum(one.unsettled for one in links)
    if channel.prefetch_shared:
        return int(channel.prefetch_shared)
    limits = [one.prefetch for one in channel.by_tag.values() if not one.no_ack]
    return sum(limits) if limits and all(limits) else 0


def _contents(channels: list[Any]) -> Iterator[Debt]:
    """The rest of contents that are not whole."""
    for channel in channels:
        if channel.unfinished is not None:
            side, number, ts_ns, captured, size = channel.unfinished
            kind = ("publish", "delivery")[side]
            of = f"{octets(max(captured, 0))} of {octets(size)} sent" if size >= 0 else "no header"
            yield Debt(side, "content", f"the rest of a {kind} ({of})", number, _time(ts_ns))


def _since(debt: Debt, now_ns: int) -> str:
    """For how long, and since which packet."""
    waited = ""
    if debt.since_ns is not None and now_ns > 0:
        waited = f" since {duration(max(0, now_ns - debt.since_ns))}"
    return f"{waited} (packet {debt.packet_number})" if debt.packet_number else waited


def _time(ts_ns: int | None) -> int | None:
    return None if ts_ns is None or ts_ns == NULL or ts_ns <= 0 else ts_ns
