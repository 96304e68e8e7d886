"""Credit of links and windows of sessions of AMQP 1.0 that run out, or are not kept to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.null import NULL
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.links import is_service, leads_to, link_text
from amqpsniff.session.rules.stuck_consumers import NEVER_ACKNOWLEDGED
from amqpsniff.units import count, duration

WAITED_NS = SECOND_NS
WAITED_SHARE = 0.2
"""Time that a sender waited for credit, in all and as a share of the time since its first delivery,
from which on it matters."""

NEVER_NS = 5 * SECOND_NS
"""Time after the attach in which a sender should have got its first credit."""

RENEWED_NS = 10 * SECOND_NS
RENEWED_TIMES = 10
"""Time without a flow after which a consumer has stopped giving credit, whatever is usual, and as a
multiple of the usual time between its flows."""

STUCK_NS = 30 * SECOND_NS
"""Time in which a consumer that holds all its credit should have settled something."""

HELD_BEFORE = 10
"""Deliveries of a link that was attached before the capture from which on it matters that none of
them was settled."""

BLOCKED_NS = SECOND_NS // 5
BLOCKED_TIMES = 3
BLOCKED_SHARE = 0.8
"""Time for which a link sends nothing while another one waits for credit, as a multiple of its own
usual time (`RENEWED_TIMES`) and a share of the other's; and how often until that is no chance."""

MAX_SIBLINGS = 100
"""Links of a session that are compared with each other, and links that are remembered."""

CLOSED_NS = 5 * SECOND_NS
"""Time for which a window that stays closed is no accident."""

OVERRUNS = 2
"""Deliveries beyond the credit from which on no flow on its way explains them."""


def _now_ns(context: RuleContext) -> int:
    """The time of the event, or of the connection's last packet."""
    now_ns: int = context.ts_ns or context.session.connection.conversation.end_ns
    return now_ns


def judge_link(context: RuleContext) -> None:
    """link-ends: how its credit was used."""
    link, now_ns = context.facts["link"], _now_ns(context)
    if link.refused:
        return
    credit = link.credit
    if link.whole and credit.over >= OVERRUNS and context.certain:
        context.report(
            "credit-exceeded",
            f"{link_text(link)}: {number_of(credit.over, 'delivery', 'deliveries')} of "
            f"{link.deliveries} without credit",
            number=link.first_number,
            ts_ns=link.first_ns,
            count=credit.over,
            subject=leads_to(link),
        )
    if link.whole:
        _waited(context, link, now_ns)
    waited = gave_none(context, link, now_ns)
    if waited >= RENEWED_NS:
        detail = f"{link_text(link)}, attached for {duration(waited)}"
        number, ts_ns = link.attached_number, link.attached_ns
        context.report(
            "credit-never-given", detail, number=number, ts_ns=ts_ns, subject=leads_to(link)
        )
    context.withdraw("credit-not-renewed", context.channel)
    for code, detail, number, ts_ns in _stopped(context, link, now_ns):
        context.report(code, detail, number=number, ts_ns=ts_ns, subject=leads_to(link))


def _waited(context: RuleContext, link: Any, now_ns: int) -> None:
    """A sender that waited for credit."""
    credit = link.credit
    if link.sends and link.deliveries == 0 and credit.granted == 0:
        waited = 0 if link.answered_ns == NULL else now_ns - link.answered_ns
        if waited >= NEVER_NS and context.certain:
            detail = f"{link_text(link)} got no credit in {duration(waited)} after its attach"
            number, ts_ns = link.attached_number, link.attached_ns
            at: Any = {"number": number, "ts_ns": ts_ns}
            context.report("credit-exhausted", detail, **at, subject=leads_to(link))
        return
    spent = link.last_ns - link.first_ns
    if credit.waited_ns < max(WAITED_NS, WAITED_SHARE * spent) or not context.complete:
        return
    if not link.sends and credit.most <= 1:
        return  # one by one, as it asks
    who = "the client" if link.sends else "the broker"
    detail = (
        f"{link_text(link)}: {who} waited {number_of(credit.waits, 'time')} for credit, "
        f"{duration(credit.waited_ns)} of {duration(spent)} in all and "
        f"{duration(credit.longest_ns)} at most; the most credit was {count(credit.most)}"
    )
    at = {"number": credit.longest_number, "ts_ns": credit.since_ns, "count": credit.waits}
    context.report("credit-exhausted", detail, **at, subject=leads_to(link))


def _stopped(context: RuleContext, link: Any, now_ns: int) -> Iterator[tuple[str, str, int, int]]:
    """The finding about a consumer's link that gets nothing more: code, words, packet and time."""
    credit = link.credit
    if not link.whole or not _is_empty(context, link):
        yield from _never_settled(context, link, now_ns)
        return
    quiet, usual = _times(link, now_ns)
    if link.unsettled and link.unsettled >= min(credit.most, link.deliveries):
        if quiet >= max(STUCK_NS, RENEWED_TIMES * usual):
            held = number_of(link.unsettled, "delivery", "deliveries")
            detail = (
                f"{link_text(link)}: the consumer held {held} of {count(credit.most)} that its "
                f"credit allows, and settled nothing for {duration(quiet)}"
            )
            yield "consumer-stuck", detail, link.oldest_number, link.last_ns
        return
    if link.unsettled or not has_more(link) or not lacks_credit(context, link, now_ns):
        return
    more = f"{count(link.available)} messages" if link.available > 0 else "more messages"
    detail = (
        f"{link_text(link)}: no credit for {duration(quiet)} after "
        f"{number_of(link.deliveries, 'delivery', 'deliveries')}, though the broker had {more}"
    )
    yield "credit-not-renewed", detail, credit.empty_number, credit.empty_ns


def _never_settled(
    context: RuleContext, link: Any, now_ns: int
) -> Iterator[tuple[str, str, int, int]]:
    """The same of a link that has credit, and of one from before the capture, whose credit is not
    known."""
    count, session = link.deliveries, context.session
    since_ns = link.first_ns if count >= NEVER_ACKNOWLEDGED else link.last_ns
    enough = NEVER_ACKNOWLEDGED if link.whole else HELD_BEFORE
    if link.sends or count < enough or link.unsettled < count or context.channel.times.acks:
        return
    seen = context.certain if link.whole else _is_read_on(context)
    if seen and session.last_client_ns > since_ns and now_ns - since_ns >= STUCK_NS:
        detail = (
            f"{link_text(link)}: the consumer settled none of {count} deliveries in "
            f"{duration(now_ns - since_ns)}"
        )
        yield "consumer-stuck", detail, link.oldest_number, link.first_ns


def _is_read_on(context: RuleContext) -> bool:
    """True for a connection from before the capture without a loss since the capture began."""
    session, tcp = context.session, context.session.connection.conversation
    lost = max(map(len, session.lost_at or ([], [])))  # one for the time before the capture
    hidden = any(tcp.gaps) or any(tcp.cut_bytes) or 0 in tcp.packets
    return not session.connection.began and lost <= 1 and not hidden


def _times(link: Any, now_ns: int) -> tuple[int, int]:
    """Quiet time of a link without credit, and its usual time between flows."""
    credit = link.credit
    quiet = now_ns - max(credit.empty_ns, link.settled_ns)
    return quiet, (credit.empty_ns - link.first_ns) // max(link.flows, 1)


def _is_empty(context: RuleContext, link: Any) -> bool:
    """True if a consumer's link has used up its credit."""
    credit = link.credit
    return not link.sends and context.certain and credit.empty_ns > 0 and credit.left() == 0


def lacks_credit(context: RuleContext, link: Any, now_ns: int, times: int = RENEWED_TIMES) -> bool:
    """True if a consumer's link has had no credit for a multiple of its usual time."""
    quiet, usual = _times(link, now_ns)
    return _is_empty(context, link) and quiet >= max(RENEWED_NS, times * usual)


def gave_none(context: RuleContext, link: Any, now_ns: int) -> int:
    """Time since the attach of a consumer's link that has never given credit; else 0."""
    gave = link.credit.granted or link.promised > 0 or link.deliveries
    if gave or link.sends or not link.whole or link.refused or is_service(link):
        return 0
    known = link.answered_ns != NULL and context.certain
    return max(now_ns - link.answered_ns, 0) if known else 0


def has_more(link: Any) -> bool:
    """True if the broker has more messages, by `available` or by its use of earlier credit."""
    return bool(link.available > 0 or link.credit.waits > 1)


def judge_siblings(context: RuleContext) -> None:
    """credit-awaited: links of the session that had credit, and stopped until this one got some."""
    link, now_ns, links = context.facts["link"], context.ts_ns, context.facts["of"].links
    if not link.sends or now_ns is None or len(links) > MAX_SIBLINGS:
        return
    credit, known = link.credit, context.memory.setdefault("links blocked", {})
    if len(known) > MAX_SIBLINGS:
        known.clear()
    for other in links.values():
        if other is link or not other.sends or other.credit.left() <= 0 or other.deliveries < 2:
            continue
        before = credit.waited_ns - credit.waiting_ns
        usual = (other.last_ns - other.first_ns - before) // (other.deliveries - 1)
        quiet = now_ns - other.last_ns
        least = max(BLOCKED_NS, RENEWED_TIMES * usual, BLOCKED_SHARE * credit.waiting_ns)
        key = (context.channel.number, other.key)
        times, last_ns = known.get(key, (0, 0))
        if quiet < least or other.last_ns < last_ns:
            known.pop(key, None)
            continue
        known[key] = (times + 1, now_ns)
        if times + 1 >= BLOCKED_TIMES and context.certain:
            detail = (
                f"{link_text(other)} had credit and sent nothing for {duration(quiet)} while "
                f"{link_text(link)} waited for credit"
            )
            first = BLOCKED_TIMES if times + 1 == BLOCKED_TIMES else 1
            context.report("session-links-blocked", detail, count=first)


def watch(context: RuleContext) -> None:
    """channel-waits: consumers that get nothing more, by now."""
    now_ns = _now_ns(context)
    for link in context.channel.amqp10.links.values():
        for code, detail, number, ts_ns in _stopped(context, link, now_ns):
            context.report_provisional(code, detail, number, ts_ns)
            return
    for code in ("consumer-stuck", "credit-not-renewed"):
        context.withdraw(code, context.channel)


def judge_windows(context: RuleContext) -> None:
    """channel-ends: windows that stayed closed while links had credit."""
    context.withdraw("consumer-stuck", context.channel)
    windows, now_ns = context.channel.amqp10.windows, _now_ns(context)
    if not context.certain or not context.channel.known:
        return
    for side, other, allowed in (
        ("client", "broker", windows.client),
        ("broker", "client", windows.server),
    ):
        still = 0
        if allowed.empty_ns > 0 and allowed.left() == 0 and context.memory.get("credit left"):
            still = now_ns - allowed.empty_ns
        if max(still, allowed.longest_ns) < CLOSED_NS:
            continue
        detail = (
            f"the {other} might send nothing for {duration(max(still, allowed.longest_ns))}: the "
            f"{side}'s incoming window was used up"
        )
        number = allowed.empty_number if still else allowed.longest_number
        if number in context.memory.get("stopped at", ()):
            continue  # connection-blocked reports it
        ts_ns = allowed.empty_ns if still else allowed.since_ns
        context.report("session-window-closed", detail, number=number, ts_ns=ts_ns)


def note_credit(context: RuleContext) -> None:
    """link-ends: credit that is left explains why a closed window matters."""
    left = context.facts["link"].credit.left()
    context.memory["credit left"] = context.memory.get("credit left", False) or left > 0


AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "link-ends": (judge_link, note_credit),
    "credit-awaited": (judge_siblings,),
    "channel-waits": (watch,),
    "channel-ends": (judge_windows,),
}
