"""Messages that a client begins and ends late: long stalls, and pauses for a delayed
acknowledgement.

A host does not acknowledge a segment at once that it does not answer: it waits, on Linux for 40 ms,
for something to send with it. A sender without TCP_NODELAY waits for that acknowledgement before it
sends another segment that is not full (RFC 896).
"""

from __future__ import annotations

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.flow_control import was_blocked
from amqpsniff.session.rules.format import exchange_text, name_at, number_of
from amqpsniff.session.rules.heartbeats import find_unanswered
from amqpsniff.session.rules.network import shut_of
from amqpsniff.session.rules.occasions import STALLED_NS
from amqpsniff.session.rules.peers import ender
from amqpsniff.units import duration, octets

SLOW_BYTES = 100_000
"""Bytes a second that a slow network still carries: a large body may take its time."""

MAX_UNDER_WAY = 16
"""Messages remembered that were not whole when their connection ended; one a channel is usual."""


def note_half_sent(context: RuleContext) -> None:
    """half-sent: report one that took too long; one that is not whole is judged at the end, and one
    since which nothing came from the broker.
    """
    rows, row, took = context.facts["rows"], context.facts["row"], context.facts["took_ns"]
    exchange = name_at(rows, "exchange", row)
    size = rows.body_size.at(row)
    captured = rows.body_captured.at(row)
    what = f"{octets(size)} to {exchange_text(exchange)}" if size >= 0 else exchange_text(exchange)
    if took is not None and not _is_long(took, captured):
        return
    cut = find_unanswered(context) is not None
    if took is None or cut or not _is_heard(context, context.ts_ns):
        under_way = context.memory.setdefault("under way", [])
        if len(under_way) < MAX_UNDER_WAY and context.certain:
            place = context.number, context.ts_ns, context.channel
            under_way.append((*place, captured, what, took))
    elif _may_judge(context):
        context.report("message-stalled", _took_words(what, took))


def _took_words(what: str, took: int) -> str:
    return f"the message of {what} took {duration(took)}"


def _is_heard(context: RuleContext, since_ns: int) -> bool:
    """True if a packet of the broker came after this time."""
    connection = context.session.connection
    return bool(connection.conversation.last_times_ns[1 - connection.client_direction] > since_ns)


@requires("under way")
def judge_unfinished(context: RuleContext) -> None:
    """connection-ends: messages that never were whole, or only after long."""
    for number, ts_ns, channel, captured, what, took_ns in context.memory.get("under way", ()):
        ends = (context.ts_ns, context.session.close_ns, channel.end_ns)
        known = [end_ns for end_ns in ends if end_ns is not None]
        if ts_ns is None or not known or not _may_judge(context):
            continue
        cut_ns, until_ns = context.memory.get("cut", (0, 0))
        if ts_ns <= until_ns and min(known) >= cut_ns:
            continue  # what of it was sent did not get through
        if took_ns is not None:
            connection = context.session.connection
            again = connection.conversation.retransmissions[connection.client_direction]
            if not again or _is_heard(context, ts_ns):  # else TCP tried in vain all that time
                words = _took_words(what, took_ns)
                context.report("message-stalled", words, number=number, ts_ns=ts_ns)
            continue
        took = min(known) - ts_ns
        if _is_long(took, captured):
            detail = f"the message on channel {channel.number} of {what} was not whole after "
            context.report("message-stalled", detail + duration(took), number=number, ts_ns=ts_ns)


@requires("under way")
def judge_incomplete(context: RuleContext) -> None:
    """connection-ends: messages that were not whole when TCP ended without a close."""
    session = context.session
    conversation = session.connection.conversation
    if conversation.ended is None or session.closed_by is not None or not context.certain:
        return
    side = ender(context)
    who = "TCP was ended" if side is None else f"{('the client', 'the broker')[side]} ended TCP"
    for number, ts_ns, channel, captured, what, took_ns in context.memory["under way"]:
        if took_ns is not None:
            continue
        sent = f"{octets(max(captured, 0))} of the message of {what}"
        detail = f"{sent} were sent on channel {channel.number} when {who}"
        detail += f" ({conversation.ended.upper()})"
        place = {"number": number, "ts_ns": ts_ns, "until_ns": context.ts_ns}
        context.report("publish-incomplete", detail, **place)


def _is_long(took: int, captured: int) -> bool:
    return took > STALLED_NS + max(captured, 0) * SECOND_NS // SLOW_BYTES


def _may_judge(context: RuleContext) -> bool:
    """True if nothing is missing, and the broker could read."""
    session = context.session
    return context.certain and not was_blocked(session) and shut_of(session, 1) is None


MIN_WAITED = 5
MIN_WAITED_SHARE = 0.75
"""So many messages that wait, and this share of those that take as long, are no coincidence: a
program's own pauses of 42 ms ended within 1 ms of the acknowledgement half of the time (measured).
"""


class Paused:
    """Messages of one connection that paused on their way: how many, for how long in all."""

    def __init__(self, context: RuleContext) -> None:
        self.number, self.ts_ns = context.number, context.ts_ns
        self.last = context.number
        self.count = 0
        self.took_ns = 0


def note_paused(context: RuleContext) -> None:
    """paused: count it."""
    paused = context.memory.get("paused")
    if paused is None:
        paused = context.memory["paused"] = Paused(context)
    paused.count += 1
    paused.took_ns += context.facts["took_ns"]
    paused.last = context.number


@requires("paused")
def judge_paused(context: RuleContext) -> None:
    """connection-ends: as many messages waited as segments that were sent upon a late ACK."""
    paused = context.memory["paused"]
    count = paused.count
    direction = context.session.connection.client_direction
    waited = context.session.connection.conversation.awaited_acks[direction]
    if min(count, waited) < MIN_WAITED or waited < MIN_WAITED_SHARE * count:
        return
    detail = (
        f"{number_of(count, 'publish', 'publishes')} took {duration(paused.took_ns / count)} on "
        f"average: {number_of(waited, 'time')} the client held the rest back until TCP's delayed "
        "acknowledgement came"
    )
    context.report(
        "delayed-ack-stall",
        detail,
        number=paused.number,
        ts_ns=paused.ts_ns,
        count=min(count, waited),
        last=paused.last,
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "half-sent": (note_half_sent,),
    "connection-ends": (
        judge_unfinished,
        judge_incomplete,
        judge_paused,
    ),
    "paused": (note_paused,),
}
