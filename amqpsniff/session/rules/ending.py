"""Ends of connections without a close: health checks, unanswered closes, cuts by a middlebox."""

from __future__ import annotations

from typing import Any

from amqpsniff.findings.records import NEVER
from amqpsniff.session.codes import CLIENT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import HANDSHAKE
from amqpsniff.session.rules.consuming import may_be_private
from amqpsniff.session.rules.context import Place, Rule, RuleContext, where
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.heartbeats import interval
from amqpsniff.session.rules.occasions import UNCLEAN
from amqpsniff.session.rules.opening import step
from amqpsniff.session.rules.peers import (
    began_ns,
    client_of,
    end_ns,
    ended_by_server,
    ender,
    forgotten,
    handshake,
    over_ns,
)
from amqpsniff.session.rules.shared_state import (
    contribute,
    open_channels,
    remembered,
    report_once,
)
from amqpsniff.spec import SIDES
from amqpsniff.units import duration

MIN_IDLE_NS = 30_000_000_000
"""Shortest idle time for which a middlebox cuts connections; the shortest known is 60 s."""

SHORT_IDLE_NS = 2_000_000_000
"""The same where the broker's side ends TCP, which no broker does without a word while heartbeats
are kept: a proxy that is set so."""

SAME_IDLE_NS = 2_000_000_000
"""Maximum difference of idle times with one cause: timers of firewalls tick in seconds."""

SAME_SHARE = 15
"""The same as a share of the idle time, one in so many."""

UNDER_WAY_NS, AT_WORK_NS = SECOND_NS, 10 * SECOND_NS
"""Time before a client's end in which something was sent to it that it had hardly worked on; and
in which it may not have worked on any."""

CUT_CONNECTIONS = 3
"""Connections cut after the same idle time that are no accident."""

_SIDES = ("the client", "the broker")

MAX_IDLE_TIMES = 64
"""Idle times remembered for a server; the oldest are forgotten."""


@where(UNCLEAN)
def _ended(context: RuleContext) -> None:
    session = context.session
    if (
        session.connection.conversation.ended is None
        or not context.complete
        or session.newest is None
    ):
        return
    if _only_looked(context):
        return
    if session.closed_by is None:
        if "parted" not in context.memory or session.connection.began:
            _unclean(context)
    elif not session.over and "parted" not in context.memory and _was_open(session):
        _unanswered(context)


def _only_looked(context: RuleContext) -> bool:
    """True if it was a health check, or a client that has none of the broker's mechanisms."""
    session = context.session
    if not context.certain or session.last_client_ns > 0 or not session.only_looked:
        return False
    if ender(context) != CLIENT:
        return False
    client = client_of(context)
    key = (client.host, client.server)
    report_once(context, "connection-silent", key, lambda: _looked_words(context))
    return True


def _looked_words(context: RuleContext) -> str:
    then, _ = step(context, "connection.start")
    ended_ns = context.session.connection.conversation.ended_ns
    left = "left" if then is None else f"left {duration(max(0, ended_ns - then))}"
    names = handshake(context, "connection.start").get("mechanisms")
    offers = f", which offers the login mechanisms {names}" if names else ""
    detail = f"the client sent a protocol header and {left}"
    return f"{detail} after the broker's connection.start{offers}"


def _was_open(session: Any) -> bool:
    """True if a connection was open: of one from before the capture its channels show that."""
    if "connection.open-ok" in session.handshake or session.connection.began:
        return "connection.open-ok" in session.handshake
    return any(slot.key for slot in session.slots()) and not any(
        step in session.handshake for step in HANDSHAKE
    )


def _parted(context: RuleContext) -> None:
    """close-ok: the close may have come before the capture, or be read later where it begins."""
    context.memory["parted"] = True


def _unclean(context: RuleContext) -> None:
    """TCP ended without a close of the AMQP connection."""
    conversation = context.session.connection.conversation
    side = ender(context)
    who = "TCP was ended" if side is None else f"{_SIDES[side]} ended TCP"
    how = conversation.ended.upper()
    parts = [f"{who}{_age(context)} ({how}){_last_frames(context)}"]
    if ended_by_server(context):
        context.memory.setdefault("failure", f"the broker ended TCP ({how})")
    if side == CLIENT and how == "RST":
        parts += _lost(context)
    left = _left(context)
    if left:
        parts.append(f"left open: {left}")
    _disowned(context, left)
    at: Any = {}
    if side is not None:
        at = {"number": conversation.ended_packet_number, "ts_ns": conversation.ended_ns}
    context.report("disconnect-unclean", "; ".join(parts), **at)
    _cut(context)


def _disowned(context: RuleContext, left: str) -> None:
    """A side that had been silent answered with the RST of a host without such a connection."""
    found = forgotten(context)
    if found is None:
        return
    side, silence = found
    detail = (
        f"{_SIDES[side]} had been silent for {duration(silence)} when its end answered "
        f"{_SIDES[1 - side]}'s packets with a RST, as one that has no such connection"
    )
    if left:
        detail += f"; TCP of {_SIDES[1 - side]} had it until then, with {left}"
    conversation = context.session.connection.conversation
    number, ts_ns = conversation.ended_packet_number, conversation.ended_ns
    context.report("connection-half-open", detail, number=number, ts_ns=ts_ns)


def _age(context: RuleContext) -> str:
    began, now = began_ns(context), over_ns(context)
    return "" if began is None or now is None else f" after {duration(now - began)}"


def _last_frames(context: RuleContext) -> str:
    """The time from each side's last frame to the end, as text."""
    now, session = over_ns(context), context.session
    sides = (("client", session.last_client_ns), ("broker", session.last_server_ns))
    if now is None:
        return ""
    times = [
        f"the {side}'s {duration(now - last)} before" for side, last in sides if 0 < last <= now
    ]
    return ", last frames: " + ", ".join(times) if times else ""


def _left(context: RuleContext) -> str:
    """Open channels, consumers, deliveries and publishes, as text."""
    channels = [slot.channel for slot in context.session.slots() if slot.channel is not None]
    unsettled = sum(channel.unsettled for channel in channels)
    unconfirmed = sum(channel.unconfirmed for channel in channels)
    consumers = sum(len(channel.by_tag) for channel in channels)
    counts = (
        number_of(len(channels), "channel") if channels else "",
        number_of(consumers, "consumer") if consumers else "",
        number_of(unsettled, "delivery", "deliveries") + " not acknowledged" if unsettled else "",
        number_of(unconfirmed, "publish", "publishes") + " not confirmed" if unconfirmed else "",
    )
    return ", ".join(count for count in counts if count)


def _lost(context: RuleContext) -> list[str]:
    """Deliveries with automatic acknowledgement that a client was still getting when it ended.

    Its host sends a RST and no FIN where the program left bytes unread (RFC 1122 §4.2.2.13).
    """
    now_ns, count, last_ns, first_ns = end_ns(context), 0, 0, NEVER
    for channel in open_channels(context.session):
        consumers, times = channel.by_tag.values(), channel.times
        automatic = all(
            consumer.no_ack and not may_be_private(context, consumer.queue)
            for consumer in consumers
        )
        if consumers and automatic and channel.known and channel.delivered and not times.gets:
            count += channel.delivered
            first_ns = min(first_ns, times.first_delivery_ns)
            last_ns = max(last_ns, times.last_delivery_ns)
    if now_ns is None or not 0 <= now_ns - last_ns <= min(UNDER_WAY_NS, last_ns - first_ns):
        return []  # it may have got what it wanted
    words = f"{number_of(count, 'delivery', 'deliveries')} with automatic acknowledgement"
    if now_ns - first_ns <= AT_WORK_NS:
        return [f"up to {words} {'is' if count == 1 else 'are'} lost"]
    return [f"of {words} the last may be lost"]


# after a close


def _after_close(context: RuleContext) -> None:
    """The answer to the close comes late, or not at all, where frames are missing."""
    if context.certain:
        side = _SIDES[context.facts["side"]]
        context.report(
            "traffic-after-close", f"{side} sent {context.facts['method']} after its close"
        )


def _unanswered(context: RuleContext) -> None:
    """TCP ended between connection.close and close-ok."""
    session = context.session
    side = ender(context)
    if side is None or session.closed_by == SIDES[side]:
        return
    detail = f"{_SIDES[side]} ended TCP and did not answer connection.close in packet "
    detail += str(session.close_packet_number)
    context.report("traffic-after-close", detail)


# something between


def _cut(context: RuleContext) -> None:
    """A connection that ended while it was idle; several after the same time are a finding."""
    now, session = over_ns(context), context.session
    last = max(session.last_client_ns, session.last_server_ns)
    is_open = "connection.open-ok" in session.handshake
    least = SHORT_IDLE_NS if is_open and ended_by_server(context) else MIN_IDLE_NS
    if now is None or last <= 0 or now - last < least:
        return
    idle, beat = now - last, interval(context)
    if beat is None or 0 < beat * SECOND_NS <= idle:
        return
    beats = f"a heartbeat of {beat} s" if beat else "heartbeats off"
    client, place = client_of(context), context.place
    contribute(context, judge_cut, client.server, idle, client.application, beats, place)


def judge_cut(
    context: RuleContext, server: str, idle: int, name: str, beats: str, place: tuple[Any, ...]
) -> None:
    """One more connection that ended while it was idle: with others it is why they ended.

    Those of a short time end one after another: a broker that dies ends them at once.
    """
    times = remembered(context, "idle", server, list)
    times.append((idle, Place(*place)))
    del times[:-MAX_IDLE_TIMES]
    tolerance = min(SAME_IDLE_NS, idle // SAME_SHARE)
    alike = [one for one in times if abs(one[0] - idle) <= tolerance]
    same = [one for one, _ in alike]
    ends_ns = [cut.ts_ns or 0 for _, cut in alike]
    at_once = idle < MIN_IDLE_NS and max(ends_ns) - min(ends_ns) < idle
    if len(same) < CUT_CONNECTIONS or at_once:
        return

    def detail(number: int) -> str:
        ends = f"{number} connections to {server} ended after {_span(same)} without traffic"
        return f"{ends}; the last{f', of {name},' if name else ''} had {beats}"

    first, code = alike[0][1], "idle-connection-cut"
    report_once(context, code, server, lambda: detail(len(same)), first, len(same))
    first = context.shared.get(code, {}).get(server, first)
    known = context.log.find(code, first.connection_id)
    if known is None:
        return
    known.detail = detail(known.count)
    for _, cut in alike:
        found = context.log.find("disconnect-unclean", cut.connection_id)
        if found is not None:
            found.cause_code, found.cause_packet_number = code, known.packet_number


def _span(times: list[int]) -> str:
    """Times that are nearly alike, in words."""
    least, most = duration(min(times)), duration(max(times))
    return least if least == most else f"{least} to {most}"


RULES: dict[str, tuple[Rule, ...]] = {
    "after-close": (_after_close,),
    "connection.close-ok": (_parted,),
    "connection-ends": (_ended,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (_ended,)}
