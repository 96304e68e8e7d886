"""Heartbeats: off, too frequent, or missing.

A peer sends something at least every half interval, and is given up after two (measured on RabbitMQ
3.10.8: RST at 2.96 s for an interval of 1 s). What counts as silence is time without any frame.
Where both sides are silent and no packet comes from one of them, neither missed its heartbeats:
they did not get through. The same show bytes that TCP sends again for long, at the end or before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.occasions import QUIET, SILENCES
from amqpsniff.session.rules.peers import (
    Client,
    end_ns,
    ender,
    forgotten,
    handshake,
    last_packets_ns,
    over_ns,
)
from amqpsniff.session.rules.shared_state import Alike, Verdict
from amqpsniff.units import duration, octets

TOO_SHORT_S = 5
"""Interval in seconds below which pauses of a network or a process end connections."""

MIN_RESENT = 3
"""Times that the same bytes are sent again while a path is cut for `TOO_SHORT_S`, at least."""

SIDES = ("client", "broker")


def interval(context: RuleContext) -> int | None:
    """The interval of tune-ok in seconds, 0 if heartbeats are off; None if it was not captured."""
    beat = handshake(context, "connection.tune-ok").get("heartbeat")
    return beat if isinstance(beat, int) else None


def _beats(client: Client, tune_ok: bytes | None) -> Iterator[Verdict]:
    """tune-ok: report heartbeats that are off, or too frequent."""
    key, beat = (client.host, client.server, client.application), read(tune_ok).get("heartbeat")
    if beat == 0:
        yield "heartbeat-disabled", key, f"{client.words}: heartbeat 0"
    elif isinstance(beat, int) and beat < TOO_SHORT_S:
        yield "heartbeat-too-short", (key, beat), f"{client.words}: {beat} s"


@where(QUIET)
def _ended(context: RuleContext) -> None:
    beat = interval(context)
    silent = _silent(context, beat) if beat and context.session.opening_client_ns >= 0 else None
    if silent is not None and quiet_ns(context):
        _report_interruption(context, beat, silent.cut)
    else:
        _judge_unanswered(context)
    if silent is not None and "interrupted" not in context.memory:
        detail, (number, ts_ns) = f"{silent.words}, heartbeat {beat} s{silent.cut}", silent.place
        at: Any = {"number": number, "ts_ns": ts_ns, "until_ns": ts_ns}
        context.report("heartbeat-missed", detail, **at)


class _Silent(NamedTuple):
    """Sides that were silent for too long, in words; what ended it, and where that was."""

    words: str
    cut: str
    place: tuple[Any, Any]


def _silent(context: RuleContext, beat: int | None) -> _Silent | None:
    """The sides that were silent for longer than their heartbeats allow; None if neither was."""
    if beat is None or _longest_ns(context) <= beat * SECOND_NS or not context.certain:
        return None
    if forgotten(context) is not None:
        return None  # the heartbeats of the other side did not arrive
    found, cut, places = [], "", []
    for side, unheard, at_end, place in silences(context):
        silence = unheard - _blocked_ns(context) if side == "client" else unheard
        if silence > 2 * beat * SECOND_NS or (at_end and silence > beat * SECOND_NS):
            found.append(f"nothing from the {side} for {duration(silence)}")
            cut = "; then TCP was ended by the other side" if at_end else cut
            places.append(place)
    return _Silent(", ".join(found), cut, min(places)) if found else None


class Unanswered(NamedTuple):
    """A time in which a side sent the same bytes again, see `tcp.retransmissions.ResentTime`.

    Attributes:
        side: CLIENT or SERVER, the sender of these bytes.
        to_end: True if the path was cut until the end.
        until_ns: The known end of this time.
    """

    side: int
    resent: Any
    to_end: bool
    until_ns: int

    @property
    def lasted_ns(self) -> int:
        """From the first time that they were sent."""
        return int(self.until_ns - self.resent.start_ns)


def find_unanswered(context: RuleContext) -> Unanswered | None:
    """The longest time in which a path was cut, by a side that repeats the same bytes: a reachable
    host acknowledges received bytes.
    """
    connection = context.session.connection
    conversation, client = connection.conversation, connection.client_direction
    if client < 0 or 0 in conversation.packets or conversation.resent == (None, None):
        return None
    found = []
    for side in (CLIENT, SERVER):
        resent = conversation.resent[client ^ side]
        if resent is None or resent.times < MIN_RESENT or not resent.lasted_ns:
            continue
        unheard = conversation.last_times_ns[1 - client ^ side] <= resent.last_ns
        unheard = unheard or resent.acked or conversation.unacknowledged[client ^ side]
        waits = resent.is_last and unheard
        rest_ns = conversation.end_ns - resent.last_ns
        to_end = waits and context.session.closed_by is None and rest_ns <= resent.lasted_ns
        until_ns = conversation.end_ns if to_end else resent.last_ns
        found.append(Unanswered(side, resent, to_end, until_ns))
    longest = max(found, key=lambda one: one.lasted_ns, default=None)
    return None if longest is None or longest.lasted_ns <= TOO_SHORT_S * SECOND_NS else longest


@where(QUIET)
def _judge_unanswered(context: RuleContext) -> None:
    """Report a path on which nothing came back, and in which direction it was cut."""
    found = find_unanswered(context)
    if found is None:
        _judge_unarrived(context)
        return
    resent = found.resent
    who, other = SIDES[found.side], SIDES[1 - found.side]
    detail = f"for {duration(found.lasted_ns)} the {who} sent the same bytes again, "
    detail += number_of(resent.times, "time")
    if resent.acked:
        detail += f", and the {other} acknowledged them: nothing from the {other} reached the {who}"
    elif size := _vanishing_bytes(context, found):
        detail += f", in a packet of {size} bytes: it did not reach the {other}{_MTU}"
    elif resent.heard_ns - resent.start_ns > SECOND_NS:
        detail += f", without an acknowledgement in the {other}'s packets: nothing from the {who} "
        detail += f"reached the {other}"
    else:
        detail += f", and no packet came from the {other}"
    conversation = context.session.connection.conversation
    if not found.to_end:
        detail += "; then it got through"
    elif conversation.ended is not None:
        detail += f", until TCP was ended ({conversation.ended.upper()})"
    _note_cut(context, resent.start_ns, found.until_ns, found.to_end)
    place = resent.packet_number, resent.start_ns
    context.report("path-interrupted", detail, number=place[0], ts_ns=place[1], last=context.number)


_MTU = ", though small packets did, as where the MTU of the path is smaller and no ICMP says so"

FULL_BYTES = 1_000
"""Payload of a packet that may be too large for a path: the smallest MTU of IPv6 is 1,280."""


def _vanishing_bytes(context: RuleContext, found: Unanswered) -> int:
    """Payload of the packet that was repeated in vain, if small ones got through; else 0.

    The other side's bytes are acknowledged by small packets meanwhile, so it repeats none.
    """
    session = context.session
    conversation, own = session.connection.conversation, session.connection.client_direction
    own ^= found.side
    size: int = conversation.resent_bytes[own]
    last_ns = (session.last_server_ns, session.last_client_ns)[found.side]
    late = last_ns - found.resent.start_ns > SECOND_NS < found.until_ns - last_ns
    return size if size >= FULL_BYTES and late and not conversation.retransmissions[1 - own] else 0


def _judge_unarrived(context: RuleContext) -> None:
    """Report bytes that never arrived, where they were captured behind what swallowed them: the
    small packets of their sender show that it sent them.
    """
    session = context.session
    conversation, client = session.connection.conversation, session.connection.client_direction
    if client < 0 or not context.certain or session.closed_by is not None:
        return
    for side in (CLIENT, SERVER):
        lost, times = conversation.unarrived[client ^ side], conversation.last_times_ns
        if lost is None or min(times) - lost[1] <= TOO_SHORT_S * SECOND_NS:
            continue
        who, other = SIDES[side], SIDES[1 - side]
        began_ns = (session.last_client_ns, session.last_server_ns)[side]
        _note_cut(context, began_ns, conversation.end_ns, True)
        detail = (
            f"for {duration(conversation.end_ns - began_ns)} {octets(lost[0])} that the {who} had "
            f"sent did not reach the {other}{_MTU}"
        )
        context.report("path-interrupted", detail)


def _note_cut(context: RuleContext, start_ns: int, until_ns: int, to_end: bool) -> None:
    """Note the cut of the path for other rules; `interrupted`: until the end."""
    context.memory["cut"] = start_ns, until_ns
    if to_end:
        context.memory["interrupted"] = True


def quiet_ns(context: RuleContext) -> int:
    """Time at the end of a connection without frames in which a host sent no packet; 0 if that is
    not longer than the heartbeat interval, or than the shortest usual one if it is unknown.

    While a window is closed, or a program hangs, both hosts still send packets.
    """
    beat, session, now = interval(context), context.session, _waited_until_ns(context)
    if beat == 0 or now is None or session.closed_by is not None:
        return 0
    longest_ns = (beat or TOO_SHORT_S) * SECOND_NS
    frames_ns = max(session.last_client_ns, session.last_server_ns)
    quiet: int = now - max(frames_ns, 0)
    if quiet <= longest_ns or now - min(last_packets_ns(context)) <= longest_ns:
        return 0
    return quiet


def _waited_until_ns(context: RuleContext) -> int | None:
    """The end of the time in which packets of both hosts were to be expected."""
    acknowledged = context.session.connection.conversation.end_acknowledged
    return over_ns(context) if acknowledged else end_ns(context)


def _report_interruption(context: RuleContext, beat: int | None, cut: str) -> None:
    """Report that neither side's frames got through at the end, where one sent no packet."""
    conversation = context.session.connection.conversation
    times = last_packets_ns(context)
    other = SERVER if times[SERVER] < times[CLIENT] else CLIENT
    direction = context.session.connection.client_direction ^ other
    now, session = int(_waited_until_ns(context) or 0), context.session
    silence = duration(now - max(session.last_client_ns, session.last_server_ns))
    detail = f"no frame of either side for {silence}, heartbeat {beat} s; "
    detail += f"no packet from the {SIDES[other]} for {duration(now - times[other])}"
    again = conversation.retransmissions[1 - direction]
    if again:
        detail += f", though the {SIDES[1 - other]} sent {number_of(again, 'segment')} again"
    _note_cut(context, times[other], now, True)
    number = conversation.last_packet_numbers[direction]
    last = context.number
    context.report("path-interrupted", detail + cut, number=number, ts_ns=times[other], last=last)


def _longest_ns(context: RuleContext) -> int:
    """The longest silence of either side; a huge value for a side without frames."""
    session = context.session
    before = max(session.silence_client_ns, session.silence_server_ns)
    at_end = (end_ns(context) or 0) - min(session.last_client_ns, session.last_server_ns)
    return int(max(before, at_end))


def silences(context: RuleContext) -> list[tuple[str, int, bool, tuple[Any, Any]]]:
    """For both sides (side, longest silence, whether the other ended TCP in it, its end)."""
    of, now = context.session, over_ns(context)
    tcp = of.connection.conversation
    ended = tcp.ended is not None and of.closed_by is None
    ended_by = ender(context)
    found = []
    sides = (
        ("client", of.silence_client_ns, of.opening_client_ns, of.last_client_ns, SERVER),
        ("broker", of.silence_server_ns, of.opening_server_ns, of.last_server_ns, CLIENT),
    )
    for side, longest, opening, last, other in sides:
        silence = longest if longest > opening else 0
        rest = 0
        if now is not None and last > 0 and of.closed_by is None:
            rest = max(0, now - last)
        place = context.number, context.ts_ns
        if ended_by is not None:
            place = tcp.ended_packet_number, tcp.ended_ns
        if rest < silence:
            until = context.memory.get(SILENCES[1 - other], place)
            waited = _waited_ns(context, until[1], silence) if ended_by == other else 0
            if waited:
                silence = rest = waited
            else:
                place = until
        at_end = ended and ended_by == other and rest >= silence
        found.append((side, max(silence, rest), at_end, place))
    return found


def _waited_ns(context: RuleContext, until_ns: int | None, silence: int) -> int:
    """Time of a side's silence in which the other side ended TCP, until then; 0 if it did not."""
    now = over_ns(context)
    if now is None or until_ns is None or not until_ns - silence < now < until_ns:
        return 0
    return now - (until_ns - silence)


def _blocked_ns(context: RuleContext) -> int:
    """Blocked time of the connection: a client may wait then, and RabbitMQ does not check it."""
    session, now = context.session, over_ns(context)
    blocked: int = session.blocked_ns or 0
    if session.blocked_since is not None and now is not None:
        blocked += max(0, now - session.blocked_since)
    return blocked


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.tune-ok": (Alike(_beats, "connection.tune-ok"),),
    "connection-ends": (_ended,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (_judge_unanswered,)}
