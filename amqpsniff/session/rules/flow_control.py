"""Flow control: blocked connections, and channels stopped by channel.flow (0-9-1 1.5.2.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import MAX_SUBJECTS, Place, Rule, RuleContext, requires
from amqpsniff.session.rules.format import number_of, reason_text
from amqpsniff.session.rules.heartbeats import TOO_SHORT_S, interval, quiet_ns
from amqpsniff.session.rules.peers import end_ns, last_packets_ns
from amqpsniff.session.rules.shared_state import contribute, open_channels, report_at
from amqpsniff.units import duration

ROUND_TRIP_NS = 500_000_000
"""Time after connection.blocked within which publishes were under way: a round trip around the
world, and time for the client's threads to learn of it."""

LATE = "published while blocked"
"""Name in `RuleContext.memory` of publishes that are not reported yet: a `Late` per channel."""

_STOPS_KEPT = 64
"""Flows that stopped a client which are remembered for `credit.judge_windows`."""

UNSEEN = MAX_SUBJECTS + 1
"""The variant of a block whose beginning was not captured."""


def was_blocked(session: Any) -> bool:
    """True if the broker blocks a connection, or did, be it before the capture or in a hole."""
    hidden = session.has_loss or not session.connection.began
    before = session.blocked_ns is None and hidden
    return bool(before or session.blocked_ns or session.blocked_since is not None)


class Block(NamedTuple):
    """A block: the broker's reason, packet and time, and whether its end may be in a hole."""

    reason: str
    number: int | None
    since: int | None
    hidden: bool = False


class Late:
    """Publishes of one channel while it was blocked. Only the broker's next frame proves them: an
    unblocked before them may be in packets that were not captured.
    """

    def __init__(self, context: RuleContext, detail: str) -> None:
        self.detail = detail
        self.number = self.last = context.number
        self.ts_ns = self.last_ns = context.ts_ns
        self.count = 1


def _blocked(context: RuleContext) -> None:
    _block(context, reason_text(context.frame.arguments.get("reason")))


def _stopped(context: RuleContext) -> None:
    """sender-stopped: AMQP 1.0 has no reason for it."""
    _block(context, "the broker took its incoming window back")
    context.memory.setdefault("stopped at", []).append(context.number)
    del context.memory["stopped at"][:-_STOPS_KEPT]


def _block(context: RuleContext, reason: str) -> None:
    known = context.memory.get("blocked")
    if known is not None:
        if not known.hidden:
            return
        _report_block(context, None, "")
    context.memory["blocked"] = Block(reason, context.number, context.ts_ns)
    context.memory["while blocked"] = [0, 0]
    if context.log is not None and context.log.recorded is None:
        context.report_provisional(
            "connection-blocked",
            reason,
            context.number,
            context.ts_ns,
            absent=False,
            subject=reason,
        )
    contribute(context, judge_blocked, context.session.connection.name()[0])


def judge_blocked(context: RuleContext, connection_id: str) -> None:
    """One more connection is blocked: of how many at this time?"""
    counts = context.shared.setdefault("blocked", {})
    counts[connection_id] = len(counts) + 1


def _unblocked(context: RuleContext) -> None:
    if "blocked" in context.memory:
        _report_block(context, context.ts_ns, "")
    elif context.session.has_loss or not context.session.connection.began:
        _report_unseen(context)


def _report_unseen(context: RuleContext) -> None:
    """Report a block whose beginning was not captured; its end was."""
    session = context.session
    detail = "a block whose beginning and reason were not captured"
    start_ns, now = session.connection.conversation.start_ns, context.ts_ns
    first = not session.has_loss and not session.connection.began and not session.blocked_ns
    if first and now is not None and start_ns > 0:
        channels = open_channels(session)
        publishes = session.published + sum(channel.published for channel in channels)
        if now > start_ns:
            detail += f"; it lasted for the first {duration(now - start_ns)} of the capture"
        if publishes:
            detail += f", {number_of(publishes, 'publish', 'publishes')} meanwhile"
    ended = f"{detail}, and {'' if 'lasted' in detail else 'it '}ended here"
    context.report("connection-blocked", ended, variant=UNSEEN)


@requires("blocked")
def _connection_ended(context: RuleContext) -> None:
    heard_ns, now = last_packets_ns(context)[SERVER], end_ns(context)
    beat = interval(context)
    unheard = now is not None and beat and now - heard_ns > max(beat, TOO_SHORT_S) * SECOND_NS
    if not unheard and not quiet_ns(context):
        _report_block(context, now, " until the end")
    else:
        _tell_sure(context)
        _report_block(context, heard_ns, " at least, until nothing came from the broker any more")


@requires("blocked")
def _lost(context: RuleContext) -> None:
    """From here on the blocked state of the connection is unknown."""
    if context.facts["side"] != SERVER:
        return
    _tell_sure(context)
    context.memory["blocked"] = context.memory["blocked"]._replace(hidden=True)


def _tell_sure(context: RuleContext) -> None:
    """Report publishes before the broker's next frame; withdraw the uncertain others."""
    for channel, late in context.memory.pop(LATE, {}).items():
        if _is_sure(context, late):
            _tell(context, channel, late)
        else:
            context.withdraw("publish-while-blocked", channel)


def _report_block(context: RuleContext, now: int | None, until: str) -> None:
    """Report an ended block at its first packet, and the publishes during it."""
    for channel, late in context.memory.pop(LATE, {}).items():
        _tell(context, channel, late)
    context.withdraw("connection-blocked")
    reason, number, since, hidden = context.memory.pop("blocked")
    publishes, under_way = context.memory["while blocked"]
    parts = [reason]
    if hidden:
        parts.append("when it ended was not captured")
    elif now is not None and since is not None and now > since:
        parts.append(f"for {duration(now - since)}{until}")
    if publishes and not hidden:
        parts.append(f"{number_of(publishes, 'publish', 'publishes')} meanwhile")
        if under_way:
            share = "all" if under_way == publishes else f"{under_way} of them"
            parts[-1] += f" ({share} in the first {duration(ROUND_TRIP_NS)})"
    place = context.place_of(number, since)
    variant, detail = context.variant_for("connection-blocked", reason, ", ".join(parts))
    over_ns = None if hidden or until else now
    contribute(context, judge_unblocked, detail, place, variant, over_ns)


def judge_unblocked(
    context: RuleContext,
    detail: str,
    where: tuple[Any, ...],
    variant: int | None,
    over_ns: int | None,
) -> None:
    """End of a connection's block; `over_ns` is None if it lasted until the connection's end."""
    place = Place(*where)
    count = context.shared.setdefault("blocked", {}).pop(place.connection_id, 1)
    if count > 1:
        detail += f", {number_of(count, 'connection')} blocked at that time"
    report_at(context, place, "connection-blocked", detail, variant=variant)
    finding = context.log.find("connection-blocked", place.connection_id, variant=variant)
    if finding is not None:
        finding.until_ns = over_ns


def _published(context: RuleContext) -> None:
    blocked = context.memory.get("blocked")
    if blocked is None:
        return
    context.memory["while blocked"][0] += 1
    number, since = blocked.number, blocked.since
    if since is None or context.ts_ns is None:
        return
    if context.ts_ns - since <= ROUND_TRIP_NS:
        context.memory["while blocked"][1] += 1
        return
    waiting = context.memory.setdefault(LATE, {})
    late = waiting.get(context.channel)
    if late is not None and _is_sure(context, late):
        _tell(context, context.channel, late)
        late = None
    if late is not None:
        late.count += 1
        late.last, late.last_ns = context.number, context.ts_ns
        return
    waited = duration(context.ts_ns - since)
    detail = f"published {waited} after connection.blocked in packet {number}"
    waiting[context.channel] = Late(context, detail)
    context.report_provisional("publish-while-blocked", detail, context.number, context.ts_ns)


def _is_sure(context: RuleContext, late: Late) -> bool:
    """True if a frame of the broker came after these publishes: no earlier one is missing."""
    return bool(context.session.last_server_ns > late.last_ns)


def _tell(context: RuleContext, channel: Any, late: Late) -> None:
    before, context.channel = context.channel, channel
    context.report(
        "publish-while-blocked",
        late.detail,
        number=late.number,
        ts_ns=late.ts_ns,
        count=late.count,
        last=late.last,
    )
    context.channel = before


STOPPED = "stopped"
"""Name in `RuleContext.memory` of channels that are stopped: (number, the side that did it) →
packet and time of its channel.flow, and how much the other side had sent when it agreed, None
before that."""

_NAMES = ("the client", "the broker")


def _sent(channel: Any, side: int) -> int:
    """Messages that a side has sent on a channel."""
    return int(channel.published if side == CLIENT else channel.delivered)


def _asked(context: RuleContext) -> None:
    active = context.frame.arguments.get("active")
    side = context.frame.side
    if active is None or context.channel is None:
        return
    stopped = context.memory.setdefault(STOPPED, {})
    if not active:
        stopped.setdefault((context.channel.number, side), [context.number, context.ts_ns, None])
    else:
        _report_stopped(context, side, context.ts_ns, "")


@requires(STOPPED)
def _agreed(context: RuleContext) -> None:
    """channel.flow-ok: messages sent before it were under way."""
    if context.channel is None:
        return
    side = 1 - context.frame.side
    stopped = context.memory[STOPPED].get((context.channel.number, side))
    if stopped is not None and context.frame.arguments.get("active") is False:
        stopped[2] = _sent(context.channel, context.frame.side)


@requires(STOPPED)
def _channel_ended(context: RuleContext) -> None:
    for side in (CLIENT, SERVER):
        _report_stopped(context, side, end_ns(context), " until the end")


def _report_stopped(context: RuleContext, side: int, now: int | None, until: str) -> None:
    """Report an ended stop, at its first packet; after a loss its end may have been earlier."""
    stopped = context.memory.get(STOPPED, {}).pop((context.channel.number, side), None)
    if stopped is None or stopped[2] is None:
        return
    number, since, before = stopped
    detail = f"{_NAMES[side]} stopped {_NAMES[1 - side]}"
    if context.complete:
        if now is not None and since is not None:
            detail += f" for {duration(now - since)}{until}"
        sent = _sent(context.channel, 1 - side) - before
        if sent > 0:
            detail += f", {number_of(sent, 'message')} sent all the same"
    context.report("channel-stopped", detail, number=number, ts_ns=since)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.blocked": (_blocked,),
    "connection.unblocked": (_unblocked,),
    "published-while-blocked": (_published,),
    "frames-lost": (_lost,),
    "connection-ends": (_connection_ended,),
    "channel.flow": (_asked,),
    "channel.flow-ok": (_agreed,),
    "channel-ends": (_channel_ended,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "sender-stopped": (_stopped,),
    "sender-resumed": (_unblocked,),
    "frames-lost": (_lost,),
    "connection-ends": (_connection_ended,),
}
