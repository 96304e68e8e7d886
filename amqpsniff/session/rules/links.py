"""Links of AMQP 1.0 that are refused, detached or stolen; filters and addresses of their attaches.

A broker refuses a link by an attach without the requested terminus and a detach, or by a detach
alone: a link that was attached for less than `ATTACHED_NS` without deliveries was refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires
from amqpsniff.session.rules.format import in_packet, names_text, number_of, subject_of_text
from amqpsniff.session.rules.peers import client_of, rabbitmq_release
from amqpsniff.session.rules.queues import MANAGED, deletion_words, queue_key
from amqpsniff.session.rules.shared_state import (
    MAX_NAMES,
    contribute,
    remembered,
    report_at,
    report_once,
)
from amqpsniff.spec import SIDES, given_name
from amqpsniff.spec.amqp10 import CBS_NODE, MANAGEMENT_NODE
from amqpsniff.units import count, duration

ATTACHED_NS = SECOND_NS
"""Time after its attach within which a broker that detaches an unused link refuses it, and after
the attach of a name within which a side that detaches its link before puts one in its place."""

DELETED_NS = SECOND_NS
"""Time between the detach of a link and the answer to who deleted its queue, at most."""

LOOP = 5
LOOP_NS = 60 * SECOND_NS
"""Detaches of a client's links to one address within this time, from which on it is a loop."""

WINDOW = "amqp:session:window-violation"
STOLEN = "amqp:link:stolen"
DETACH_FORCED = "amqp:link:detach-forced"
CONNECTION_FORCED = "amqp:connection:forced"
FORCED = (CONNECTION_FORCED, DETACH_FORCED)
DELETED = "amqp:resource-deleted"
TOO_LARGE = "amqp:link:message-size-exceeded"
UNAUTHORIZED = "amqp:unauthorized-access"
_LIMITS = ("amqp:resource-limit-exceeded", "amqp:not-allowed", "amqp:connection:framing-error")
_COUNTED = ("link", "handle", "session", "channel")
_TOO_MANY = ("max", "limit", "too many", "exceed", "reached", "above")
"""Errors of too many links or sessions, and words of which their descriptions have some."""

_SERVICES = (CBS_NODE, "$management", MANAGEMENT_NODE)
"""Ends of addresses of nodes of the broker itself."""

MAX_SAID = 200
"""Characters of a description that are shown; RabbitMQ 3 puts whole terms of Erlang into it."""

GONE = "links of deleted queues"
"""Name in `RuleContext.memory` of links that the broker detached because of a deletion."""

DELETED_HERE = "queues deleted over the management"
"""Name in `RuleContext.memory` of the addresses of queues that the connection itself deleted."""

TOO_LARGE_SENT = "sent too large"
"""Name in `RuleContext.memory` of the sessions on which the client sent a message larger than its
link takes, by number and incarnation."""

TAKEN = "links whose name was attached again"
"""Name in `RuleContext.memory` of those that go on: the side, the words, packet and time."""

_UNATTACHED = "amqp:session:unattached-handle"

_TOKEN = ("token", "expired", "cbs")
"""Words of a description that is about a token; Service Bus says `ExpiredToken`, Event Hubs
`RenewToken`."""


def link_text(link: Any, to: str | None = None) -> str:
    """A link for a person: its name, unless that is made at random, and where it leads; `to`: where
    a message on it goes."""
    if link.name is None:
        return "a link attached before the capture"
    address = link.target if link.sends else link.source
    if address is None and link.address is not None:
        address = link.address.text
    own = link.name.removesuffix(address or "").rstrip("-")  # libraries add the address
    name = f"link '{link.name}'" if given_name(own) else "the link"
    if link.coordinator:
        return f"{name} to the transaction coordinator"
    if address is None and link.sends and (link.answered & 1 << CLIENT or to is not None):
        return f"{name} to any address" if to is None else f"{name}, sent to '{to}'"
    if address is None:
        return name
    return f"{name} {'to' if link.sends else 'from'} '{address}'"


def leads_to(link: Any, to: str | None = None) -> tuple[bool, str]:
    """Identity of a link: its address (`to` of a message on it) and its direction.

    Names are often generated for each link, so they are used only without an address.
    """
    if link is None:
        return False, to or ""
    address = link.target if link.sends else link.source
    if address is None and link.address is not None:
        address = link.address.text
    return bool(link.sends), to or address or link.name or ""


def reason_of(condition: str | None, description: str | None) -> str:
    """An error as text: its condition and description."""
    words = " ".join((description or "").split())
    if len(words) > MAX_SAID:
        words = words[:MAX_SAID] + "…"
    return f"{condition}: {words}" if words else condition or "no error"


def is_limit(condition: str | None, description: str | None) -> bool:
    """True if an error reports too many links or sessions."""
    words = (description or "").lower()
    counted = any(word in words for word in _COUNTED)
    return condition in _LIMITS and counted and any(word in words for word in _TOO_MANY)


def is_service(link: Any) -> bool:
    """True if a link leads to no queue: to a coordinator, for tokens, management or replies."""
    if link is None or link.address is None:
        return link is not None and link.coordinator
    text = link.address.text
    return bool(link.coordinator or link.dynamic or text.endswith(_SERVICES))


def attached(context: RuleContext) -> None:
    """link-attached: filters that are not in force, and addresses of old."""
    link = context.facts["link"]
    if context.facts["side"] != SERVER or link.refused:
        return
    ignored = (link.asked or frozenset()) - (link.given or frozenset())
    if link.given is not None and not link.sends and ignored:
        names = names_text(sorted(ignored))
        detail = f"{link_text(link)}: {names} is not in the broker's answer"
        context.report("filter-ignored", detail, subject=(leads_to(link), names))
    address = link.address
    if address is not None and address.deprecated and rabbitmq_release(context) >= (4, 0):
        client = (client_of(context).host, client_of(context).application)
        report_once(
            context,
            "address-deprecated",
            client,
            lambda: f"{client_of(context).words} attaches {link_text(link)}",
        )


def place_of(context: RuleContext) -> tuple[int, int]:
    """The event's session."""
    return context.channel.number, context.channel.incarnation


def report_too_large(context: RuleContext, detail: str) -> None:
    """The broker refuses a message for its size; one that was seen to be too large was reported."""
    if place_of(context) not in context.memory.get(TOO_LARGE_SENT, ()):
        context.report("message-too-large", detail)


def detached(context: RuleContext) -> None:
    """link-detached: why the broker detached a link, or refused it."""
    link, found = context.facts["link"], context.facts["found"]
    condition, description = found.condition, found.description
    if condition is None:
        return
    if context.facts["side"] != SERVER:
        if link.closed_by == SIDES[CLIENT]:
            closed_by_client(context, link_text(link), condition, description, leads_to(link))
        return
    address = link.target if link.sends else link.source
    if condition == DELETED and address in context.memory.get(DELETED_HERE, ()):
        return  # the client wanted that
    text = f"{link_text(link)}: {reason_of(condition, description)}"
    code = _code_of(context, link, condition, description)
    context.memory["failure"] = f"{condition} for {link.name}"
    if code == "message-too-large":
        report_too_large(context, text + _held(context, link))
    else:
        variant, words = context.variant_for(code, (leads_to(link), condition), text)
        context.report(code, words + _held(context, link), variant=variant)
        queue = None if link.address is None else link.address.queue or link.address.routing_key
        if condition == DELETED and queue and context.ts_ns is not None:
            gone = context.memory.setdefault(GONE, [])
            if len(gone) < MAX_NAMES:
                where = context.channel.number, variant, context.number
                gone.append((code, *where, context.ts_ns, queue_key(context, queue)))
    context.memory["link gone"] = (*place_of(context), context.ts_ns, code, context.number)
    client = (client_of(context).host, client_of(context).server, client_of(context).application)
    key = (*client, "sender" if link.sends else "receiver", address or "", condition)
    contribute(context, judge_loop, key, context.ts_ns, text, context.channel.number, context.place)


@requires(GONE)
def judge_gone(context: RuleContext) -> None:
    """connection-ends: links whose queue was deleted; who did that may be read after the detach."""
    connection_id = context.session.connection.name()[0]
    for gone in context.memory[GONE]:
        contribute(context, judge_deletion, connection_id, *gone)


def judge_deletion(
    context: RuleContext, connection_id: str, code: str, channel: int, variant: Any, number: int,
    ts_ns: int, key: Sequence[str],
) -> None:  # fmt: skip
    """A link was detached because its queue was deleted: say by whom, if the capture shows it."""
    around = ts_ns - DELETED_NS, ts_ns + DELETED_NS
    words = deletion_words(context, key, *around) or deletion_words(context, key, *around, MANAGED)
    found = context.log.find(code, connection_id, channel, variant)
    if words and found is not None and found.packet_number == number:
        found.detail += f"; {words}"


def _code_of(context: RuleContext, link: Any, condition: str, description: str | None) -> str:
    """The code of the most specific finding for the broker's detach of a link."""
    words = (description or "").lower()
    if condition == STOLEN:
        return "link-stolen"
    if condition == TOO_LARGE:
        return "message-too-large"
    if is_limit(condition, description):
        return "link-limit-reached"
    if condition == DETACH_FORCED and "idle" in words:
        return "link-detached-idle"
    if condition == UNAUTHORIZED and any(word in words for word in _TOKEN) and link.deliveries:
        return "token-refused"
    since = None if context.ts_ns is None else context.ts_ns - link.attached_ns
    attached = since is not None and since >= ATTACHED_NS and link.answered == 3
    used = link.deliveries or link.name is None  # its attach was not captured
    used = used or condition in (DETACH_FORCED, DELETED)  # the broker's may be missing
    if link.refused or not (attached or used):
        return "link-refused"
    return "link-detached"


def _held(context: RuleContext, link: Any) -> str:
    """Unsettled deliveries of a link, in words; without all frames it is not known."""
    if not link.unsettled or not context.complete:
        return ""
    return f"; {number_of(link.unsettled, 'delivery was', 'deliveries were')} not settled"


def closed_by_client(
    context: RuleContext,
    what: str,
    condition: str,
    description: str | None,
    subject: object = "",
) -> None:
    """Report a close by the client with an error, unless the broker caused it."""
    if condition not in FORCED:
        reason = reason_of(condition, description)
        detail = f"the client closed {what}: {reason}"
        context.report("closed-by-client", detail, subject=(subject, subject_of_text(reason)))
        context.memory["failure"] = f"the client said {reason}"


def open_links(context: RuleContext) -> list[Any]:
    """Links of the connection that are not over."""
    channels = [slot.channel for slot in context.session.slots()]
    sessions = [
        channel.amqp10 for channel in channels if channel is not None and channel.amqp10 is not None
    ]
    return [link for session in sessions for link in session.links.values()]


class _Loop:
    """Times of the last detaches of alike links, and where the first was."""

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=LOOP)
        self.reported = False


def judge_loop(
    context: RuleContext,
    key: tuple[Any, ...],
    ts_ns: int | None,
    reason: str,
    channel: int,
    place: tuple[Any, ...],
) -> None:
    """One more link of a client that the broker detached or refused."""
    loop = remembered(context, "link loops", key, _Loop)
    here = Place(*place)
    if ts_ns is None:
        return
    loop.times.append(ts_ns)
    times = loop.times
    spread_ns = max(times) - min(times)
    if loop.reported:
        report_at(context, here, "link-reattach-loop", reason, channel=channel, subject=key)
    elif len(times) == LOOP and spread_ns <= LOOP_NS:
        loop.reported = True
        detail = f"{count(LOOP)} times in {duration(spread_ns)}: {reason}"
        about: Any = {"channel": channel, "subject": key}
        report_at(context, here, "link-reattach-loop", detail, LOOP, **about)


def taken(context: RuleContext) -> None:
    """link-taken: a side attached a name that it had attached."""
    link, side = context.facts["link"], context.facts["side"]
    if not context.certain:
        return
    who = ("the client", "the broker")[side]
    detail = f"{who} attached {link_text(link)} again{in_packet(context.number)}, on the session "
    detail += f"where it had attached it{in_packet(link.attached_number)}: both links are its own"
    context.memory.setdefault(TAKEN, {})[link] = (side, detail, context.number, context.ts_ns)
    context.report_provisional("link-stolen", detail, context.number, context.ts_ns, absent=False)


@requires(TAKEN)
def judge_taken(context: RuleContext) -> None:
    """link-ends: a name was attached again, and the link before was not detached with that."""
    link = context.facts["link"]
    side, detail, number, ts_ns = context.memory[TAKEN].pop(link, (None, "", None, None))
    if side is None:
        return
    context.withdraw("link-stolen", context.channel, number)
    known = link.closed_by == SIDES[side] and ts_ns is not None and link.detached_ns > 0
    if not known or link.detached_ns - ts_ns > ATTACHED_NS:
        context.report("link-stolen", detail, number=number, ts_ns=ts_ns)


def session_ended(context: RuleContext) -> None:
    """session-ended: the broker ended a session with an error."""
    found = context.facts["found"]
    condition, description = found.condition, found.description
    if condition is None:
        return
    if context.facts["side"] != SERVER:
        closed_by_client(context, "the session", condition, description)
        return
    reason = reason_of(condition, description)
    context.memory["failure"] = reason
    links = list(context.facts["of"].links.values())
    others = any(link.attached == 3 for link in links)
    cause = _just_gone(context) if condition == _UNATTACHED else None
    if cause is not None and cause[0] == "link-refused" and not others:
        return
    code = "channel-closed-by-broker"
    if condition == WINDOW:
        code = "session-window-violated"
    elif condition == STOLEN:
        code = "link-stolen"
    elif condition == TOO_LARGE:
        code = "message-too-large"
    elif is_limit(condition, description):
        code = "link-limit-reached"
    with_it = f"; {number_of(len(links), 'link')} ended with it" if len(links) > 1 else ""
    held = sum(link.unsettled for link in links) if context.complete else 0
    left = f", {number_of(held, 'delivery', 'deliveries')} not settled" if held else ""
    detail = f"the broker ended the session: {reason}{with_it}{left}"
    if code == "message-too-large":
        report_too_large(context, detail)
    elif cause is not None:
        about: Any = {"channel": context.channel.number, "cause": cause}
        report_at(context, context.place, code, detail, **about)
    else:
        context.report(code, detail, subject=subject_of_text(reason))


def _just_gone(context: RuleContext) -> tuple[str, int] | None:
    """The finding and packet in which the broker refused or detached a link of the session, if it
    did right before: the client used it before it knew; else None.
    """
    *where, ts_ns, code, number = context.memory.get("link gone", (None,) * 5)
    known = None not in (ts_ns, context.ts_ns)
    just = (*where,) == place_of(context) and (not known or context.ts_ns - ts_ns <= ATTACHED_NS)
    return (code, number) if just else None


AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "link-attached": (attached,),
    "link-detached": (detached,),
    "link-taken": (taken,),
    "link-ends": (judge_taken,),
    "connection-ends": (judge_gone,),
    "session-ended": (session_ended,),
}
