"""Synchronous methods that wait long for the broker's answer, or in vain; in AMQP 1.0 a client's
open, begin, attach, and their ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from amqpsniff.null import NULL
from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires, where
from amqpsniff.session.rules.flow_control import was_blocked
from amqpsniff.session.rules.format import round_trip_text
from amqpsniff.session.rules.links import link_text
from amqpsniff.session.rules.occasions import LASTED, MISSING_NS, SLOW_NS, WAITING
from amqpsniff.session.rules.peers import end_ns, ender
from amqpsniff.session.rules.provisional import MAX_CHECKED
from amqpsniff.spec import SIDES
from amqpsniff.units import duration

BLOCKING_SHARE = 0.2
"""Share of a connection's time that goes into waiting for answers, from which on it matters."""

BLOCKING_NS = 5 * SECOND_NS
"""Connections that last less have hardly done more than start."""

BLOCKING_REQUESTS = 20
"""Fewer are the start of an application."""


def judge_answer(context: RuleContext) -> None:
    """replied: an error if it took very long; else withdraw the provisional finding."""
    request, now = context.request, context.ts_ns
    took = max(now - request.ts_ns, 0)
    if took > MISSING_NS:
        name = context.tracker.names[request.method]
        _report_missing(context, name, request, f"was answered after {duration(took)}")
    else:
        context.withdraw("reply-missing", context.channel, request.number)


@where(WAITING)
def judge_missing(context: RuleContext) -> None:
    """connection-ends: requests that were never answered, though there was time.

    Those of one channel are one finding, with the words of the first.
    """
    now_ns = context.session.close_ns or context.ts_ns
    for slot, found in groupby(_unanswered(context, now_ns), itemgetter(1)):
        requests = [request for request, _ in found]
        request, last = requests[0], requests[-1].number
        name = context.tracker.names[request.method]
        detail = f"had no answer in {duration(int(now_ns or 0) - request.ts_ns)}"
        _report_missing(_on(context, slot), name, request, detail, slot.number, len(requests), last)


def watch_missing(context: RuleContext) -> None:
    """connection-waits: requests without an answer in time, the first of each channel."""
    now_ns = context.ts_ns
    for _, found in groupby(_unanswered(context, now_ns, MAX_CHECKED), itemgetter(1)):
        request, slot = next(found)
        name = context.tracker.names[request.method]
        waited = duration(int(now_ns or 0) - request.ts_ns)
        detail = f"{name} on channel {slot.number} had no answer in {waited}"
        _on(context, slot).report_provisional(
            "reply-missing", detail, request.number, int(request.ts_ns)
        )


def _on(context: RuleContext, slot: Any) -> RuleContext:
    """The same context on a channel."""
    return RuleContext(
        context.tracker, context.session, slot.channel, context.number, context.ts_ns
    )


def _unanswered(
    context: RuleContext, now_ns: int | None, most: int | None = None
) -> Iterator[tuple[Any, Any]]:
    """Requests without an answer for too long, and the channel slots of their channels; of the
    first `most` channels, and of as many requests of each.

    A broker answers a channel's requests in their order. At the begin of a capture, an answer may
    be read before its request.
    """
    session = context.session
    if now_ns is None or not context.complete:
        return
    answered = context.memory.get("answered", {})
    for slot in islice(session.slots(), most):
        for request in islice(slot.requests, most) if slot.number else ():
            waited = now_ns - request.ts_ns
            if not request.sure or request.number < answered.get(slot.number, 0):
                continue
            if request.side == 0 and request.ts_ns != NULL and waited > MISSING_NS:
                yield request, slot


def _report_missing(
    context: RuleContext,
    name: str,
    request: Any,
    detail: str,
    number: int | None = None,
    count: int = 1,
    last: int | None = None,
) -> None:
    channel = f" on channel {number}" if number else ""
    if was_blocked(context.session):
        detail += "; publishing was blocked meanwhile or before"
    context.report(
        "reply-missing",
        f"{name}{channel} {detail}",
        number=request.number,
        ts_ns=int(request.ts_ns),
        count=count,
        last=last,
    )


@requires("answered late")
def judge_slow(context: RuleContext) -> None:
    """connection-ends: answers that took long."""
    answers = context.memory["waited"].by_method()
    slow = {
        name: answered
        for name, answered in answers.items()
        if SLOW_NS <= answered.longest_ns <= MISSING_NS
    }
    if not slow:
        return
    named = [
        f"{name}: {answered.count} answered after {duration(answered.took_ns / answered.count)} "
        f"on average and {duration(answered.longest_ns)} at most"
        if answered.count > 1
        else f"{name}: answered after {duration(answered.longest_ns)}"
        for name, answered in sorted(slow.items())
    ]
    number, ts_ns = min((answered.number, answered.ts_ns) for answered in slow.values())
    context.report("broker-slow", "; ".join(named), number=number, ts_ns=ts_ns, count=len(slow))


@requires("waited")
@where(LASTED)
def judge_blocking(context: RuleContext) -> None:
    """connection-ends: much of its time went into waiting."""
    waited = context.memory["waited"]
    begin_ns = context.session.connection.conversation.start_ns
    if waited.count < BLOCKING_REQUESTS or context.ts_ns is None or begin_ns <= 0:
        return
    lasted = context.ts_ns - begin_ns
    if lasted < BLOCKING_NS or waited.waited_ns <= BLOCKING_SHARE * lasted:
        return
    answers = waited.by_method()
    most = max(answers, key=lambda name: int(answers[name].took_ns))
    each_ns = answers[most].took_ns / answers[most].count
    detail = (
        f"{waited.count} requests waited for {duration(waited.waited_ns)} of {duration(lasted)}, "
        f"most of it {answers[most].count} times {most}: {duration(each_ns)} each"
        f"{round_trip_text(context.session, each_ns)}"
    )
    context.report("synchronous-waiting", detail, number=waited.number, ts_ns=waited.ts_ns)


def judge_link(context: RuleContext) -> None:
    """link-attached, link-ends: an attach of the client that was answered late, or never; a detach
    that never was.
    """
    link, channel = context.facts["link"], context.channel
    if link.first_side == CLIENT and link.attached_ns != NULL and context.certain:
        late = link.answered_ns != NULL
        if not late or "side" in context.facts:  # it is reported once
            at_ns = link.answered_ns if late else _end_ns(context, context.ts_ns or channel.end_ns)
            place = link.attached_number, link.attached_ns
            _report_unanswered(context, f"attach of {link_text(link)}", late, at_ns, *place)
    detached = link.detached_number >= 0 and link.attached == 1 << SERVER
    if detached and link.closed_by == SIDES[CLIENT] and context.certain:
        place = link.detached_number, link.detached_ns
        at_ns = _end_ns(context, channel.end_ns)
        _report_unanswered(context, f"detach of {link_text(link)}", False, at_ns, *place)


def judge_session(context: RuleContext) -> None:
    """channel-ends: a session that the broker did not begin, or did not end."""
    channel = context.channel
    amqp10, began_ns = channel.amqp10, channel.opened_ns
    if not (channel.known and context.certain):
        return
    if amqp10.server_channel < 0 and began_ns != NULL:
        place = channel.opened_number, began_ns
        _report_unanswered(context, "begin", False, _end_ns(context, channel.end_ns), *place)
    elif amqp10.ended == 1 << CLIENT and channel.end_ns:
        place = channel.closed_packet_number, channel.end_ns
        _report_unanswered(context, "end", False, _end_ns(context), *place)


def judge_connection(context: RuleContext) -> None:
    """connection-ends: an open or a close of the client without an answer."""
    session = context.session
    state, over_ns = session.amqp10, end_ns(context)
    if state is None or over_ns is None or not context.certain:
        return
    if state.closed == 1 << CLIENT and session.close_ns:
        place = session.close_packet_number, session.close_ns
        _report_unanswered(context, "close", False, over_ns, *place)
    elif state.opened_number >= 0 and not state.opens[SERVER] and ender(context) != SERVER:
        if not state.closed and state.opened_ns != NULL:
            place = state.opened_number, state.opened_ns
            _report_unanswered(context, "open", False, over_ns, *place)


def _end_ns(context: RuleContext, of_part: int | None = None) -> int:
    """The time of the end of a part of a connection, else of the connection."""
    return int(of_part or context.session.close_ns or end_ns(context) or 0)


def _report_unanswered(
    context: RuleContext, what: str, late: bool, at_ns: int, number: int, ts_ns: int
) -> None:
    waited = at_ns - ts_ns
    if waited > MISSING_NS:
        how = "was answered after" if late else "had no answer in"
        detail = f"{what} {how} {duration(waited)}"
        context.report("reply-missing", detail, number=number, ts_ns=ts_ns)


RULES: dict[str, tuple[Rule, ...]] = {
    "replied": (judge_answer,),
    "connection-waits": (watch_missing,),
    "connection-ends": (judge_missing, judge_slow, judge_blocking),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "link-attached": (judge_link,),
    "link-ends": (judge_link,),
    "channel-ends": (judge_session,),
    "connection-ends": (judge_connection,),
}
