"""Outcomes of deliveries of AMQP 1.0: not accepted, lost, in doubt, or without settlement."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from amqpsniff.session.codes import CLIENT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.format import (
    in_packet,
    number_of,
    packets_text,
    when_closed,
)
from amqpsniff.session.rules.links import (
    DELETED,
    DELETED_HERE,
    TOO_LARGE,
    TOO_LARGE_SENT,
    is_service,
    leads_to,
    link_text,
    open_links,
    place_of,
    reason_of,
    report_too_large,
)
from amqpsniff.session.rules.occasions import DELIVERED, PUBLISHED
from amqpsniff.session.rules.peers import client_of, rabbitmq_release
from amqpsniff.session.rules.queues import MANAGED, deleted_by, judge_deleted, queue_key
from amqpsniff.session.rules.requeueing import POISON, POISON_DELIVERIES, redelivered
from amqpsniff.session.rules.shared_state import contribute
from amqpsniff.units import duration, limit, octets

_REJECTED, _RELEASED, _MODIFIED = 0x25, 0x26, 0x27

REJECTED_SHARE = 1 / 20
REJECTED_TIMES = 5
"""Share of a link's deliveries, and number of them, that are rejected from which on it matters."""

RENEWALS = 10
"""Requests to renew a lock for each delivery, above which they are more work than the messages."""

SINGLE = 200
SINGLE_SHARE = 0.9
"""Deliveries of a link, in all and a second, and flows for each of them, from which on credit for
many at once would matter."""

UNSETTLED = 10
"""Deliveries with an outcome that nobody settled, from which on it is how the programs work."""

_LOCKS = ("com.microsoft:message-lock-lost", "com.microsoft:session-lock-lost")

COPIES = "copy"
"""Distribution mode of a source that keeps what it delivers, as RabbitMQ's streams do."""

_TRANSACTION = "amqp:transaction:"
"""Conditions of what a coordinator refuses, also where its attach was not captured."""

_STATUS = re.compile(rb'"status-?[cC]ode":(\d{3})[,}]')
_REFUSED = 400

_DELETED = {"queues": "deleted queue", "exchanges": "deleted exchange"}
_UNBOUND = re.compile(r"src=.*;dst([qe])=(.*);key=")
"""Words for what a path names; the name of a binding, whose destination is a queue or exchange."""

_STRINGS = {0xA1: 2, 0xB1: 5}
"""Bytes before the characters of a string, by its constructor."""

MAX_REQUESTS = 1000
"""Requests to RabbitMQ's management of a connection that wait for their answers; a client that
gets none is remembered no further."""


def _what(transferred: Any) -> str:
    """A delivery in words."""
    link = transferred.link
    name = "" if link is None else f" of {link_text(link, transferred.address)}"
    packet = in_packet(transferred.entry.packet_number)
    return f"delivery {transferred.delivery_id}{name}{packet}"


def not_taken(context: RuleContext) -> None:
    """publish-outcome: the broker did not accept a message."""
    transferred = context.facts["of"]
    state, link = transferred.outcome, transferred.link
    error = reason_of(transferred.condition, transferred.description)
    error = f": {error}" if transferred.condition else ""
    subject = (leads_to(link, transferred.address), transferred.condition)
    to_coordinator = (transferred.condition or "").startswith(_TRANSACTION)
    if to_coordinator or (link is not None and link.coordinator):
        if state == _REJECTED:
            context.report("transaction-failed", f"{_what(transferred)} was rejected{error}")
    elif state == _REJECTED:
        if transferred.condition == TOO_LARGE:
            report_too_large(context, f"{_what(transferred)}{error}")
        else:
            context.report("publish-rejected", f"{_what(transferred)}{error}", subject=subject)
    elif state == _RELEASED and rabbitmq_release(context) >= (4, 0):
        context.report("message-unroutable", f"{_what(transferred)} was released", subject=subject)
    elif state in (_RELEASED, _MODIFIED):
        word = "released" if state == _RELEASED else "modified"
        context.report("publish-released", f"{_what(transferred)} was {word}", subject=subject)


def refused(context: RuleContext) -> None:
    """settlement-refused: the broker reports an error for its own delivery."""
    found, link = context.facts["found"], context.facts["link"]
    if found.condition in _LOCKS:
        name = "" if link is None else f" of {link_text(link)}"
        reason = reason_of(found.condition, found.description)
        subject = (leads_to(link), found.condition)
        context.report(
            "message-lock-lost", f"delivery {found.first}{name}: {reason}", subject=subject
        )


def aborted(context: RuleContext) -> None:
    """delivery-aborted: a sender gave a message up."""
    link = context.facts["link"]
    name = "" if link is None else f"on {link_text(link)}"
    side = "the client" if context.facts["side"] == CLIENT else "the broker"
    detail = f"{side} gave up a message {name}".rstrip()
    context.report("delivery-aborted", detail, subject=leads_to(link))


def too_large(context: RuleContext) -> None:
    """larger-than-link: a message is larger than the receiver of its link takes."""
    link, rows, row = (context.facts[name] for name in ("link", "rows", "row"))
    size = rows.deliveries.message_bytes.at(row)
    most = limit(link.limit_bytes)
    detail = f"a message of {octets(size)} on {link_text(link)}, which takes {most} at most"
    context.memory.setdefault(TOO_LARGE_SENT, set()).add(place_of(context))
    context.report("message-too-large", detail)


def claims_answered(context: RuleContext) -> None:
    """claims-answered: the status of the broker's answer to a token."""
    rows, row = context.facts["rows"], context.facts["row"]
    status = _STATUS.search(rows.headers.bytes_of(row)) if rows.headers.has(row) else None
    if status is not None and int(status[1]) >= _REFUSED:
        context.report("token-refused", f"the answer on $cbs has the status {int(status[1])}")


def managed(context: RuleContext) -> None:
    """managed: which request is answered with an error; who only asks learns what is not there."""
    rows, row = context.facts["rows"], context.facts["row"]
    words, code = rows.vocabularies, rows.type.values[row]
    subject = words.type.text(code) if code >= 0 else ""
    requests = context.memory.setdefault("management requests", {})
    if context.facts["link"].sends:
        if len(requests) < MAX_REQUESTS and rows.message_id.has(row):
            path = rows.deliveries.address.words.text(rows.deliveries.address.values[row])
            requests[rows.message_id.bytes_of(row)] = subject, path, context.number, context.ts_ns
        return
    answer = rows.deliveries.answers.pop(rows.ordinal.values[row], b"")
    request = requests.pop(rows.correlation_id.bytes_of(row), None)
    status = int(subject) if len(subject) == len("404") and subject.isdecimal() else 0
    if request and request[0] == "DELETE" and 0 < status < _REFUSED:
        _note_deletion(context, *request[1:])
    if status < _REFUSED or (status == HTTPStatus.NOT_FOUND and request and request[0] == "GET"):
        return
    method, path, number, _ = request or ("a request", "that was not captured", None, None)
    phrase = _sentence(answer) or next(
        (standard.phrase for standard in HTTPStatus if standard == status), ""
    )
    detail = f"{method} {path}{in_packet(number)}: {status} {phrase}".rstrip()
    context.report("management-refused", detail, subject=(method, path))


def _note_deletion(context: RuleContext, path: str, number: int, ts_ns: int | None) -> None:
    """Report what RabbitMQ's management deleted, and remember its queues."""
    kind, name, *rest = (*path.split("/")[1:], "", "")
    if kind == "queues" and rest[0] == "":
        gone = context.memory.setdefault(DELETED_HERE, set())
        if len(gone) < MAX_REQUESTS:
            gone.add(path)
        if ts_ns is not None:
            gone_at = queue_key(context, unquote(name)), ts_ns, deleted_by(context, number)
            contribute(context, judge_deleted, *gone_at, MANAGED)
    what = "emptied queue" if rest[0] == "messages" else _DELETED.get(kind)
    binding = _UNBOUND.match(name)
    if binding is not None:
        what, name = f"unbound {'queue' if binding[1] == 'q' else 'exchange'}", binding[2]
    if what is not None:
        detail = f"{client_of(context).words} {what} '{unquote(name)}'"
        at: Any = {"number": number, "ts_ns": ts_ns, "subject": (path, what)}
        context.report("operation-destructive", detail, **at)


def _sentence(value: bytes) -> str:
    """The text of an encoded string; empty for another value."""
    octets = value[_STRINGS[value[0]] :] if value and value[0] in _STRINGS else b""
    return " ".join(octets.decode(errors="replace").split())


def come_again(context: RuleContext) -> None:
    """redelivered: a message whose header counts many failed deliveries, or that came often."""
    facts = context.facts
    failed = facts["rows"].deliveries.delivery_count.at(facts["row"])
    if failed + 1 < POISON_DELIVERIES:
        redelivered(context)
        return
    link = facts["link"]
    name = "" if link is None else f" of {link_text(link)}"
    detail = f"a message{name} came for the {failed + 1}th time, by its delivery-count"
    context.report(POISON, detail, variant="by its count", subject=leads_to(link))


def left(context: RuleContext) -> None:
    """deliveries-left: deliveries of an ended session in doubt, or without settlement."""
    channel = context.channel
    if not context.certain or not channel.known:
        return
    closed_by = channel.closed_by or context.session.connection.conversation.ended
    for (side, link), some in context.facts["left"].items():
        stated = [delivery for delivery in some if delivery.state]
        if len(stated) >= UNSETTLED:
            first, last = stated[0].entry.packet_number, stated[-1].entry.packet_number
            name = "of a link" if link is None else f"of {link_text(link)}"
            detail = f"{len(stated)} deliveries {name} in {packets_text(first, last)}"
            at: Any = {"number": first, "ts_ns": stated[0].entry.ts_ns, "count": len(stated)}
            context.report("outcome-not-settled", detail, **at, subject=leads_to(link))
        open_ones = [delivery for delivery in some if not delivery.state]
        if link is None or not open_ones or not closed_by:
            continue  # of a link that is not followed nothing is known
        stays = side != CLIENT and link.distribution_mode == COPIES
        if not stays and not is_service(link):
            _in_doubt(context, side, link, open_ones, closed_by)


def _in_doubt(context: RuleContext, side: int, link: Any, some: list[Any], closed_by: str) -> None:
    """Deliveries of a link without an outcome."""
    first, last = some[0].entry.packet_number, some[-1].entry.packet_number
    nouns = ("message sent", "messages sent") if side == CLIENT else ("delivery", "deliveries")
    detail = f"{number_of(len(some), *nouns)} of {link_text(link)}, "
    detail += f"in {packets_text(first, last)}, "
    code = "publishes-in-doubt" if side == CLIENT else "deliveries-in-doubt"
    if side != CLIENT and link.condition == DELETED:
        code = "deliveries-deleted"
        detail += f"when the queue was deleted{in_packet(link.detached_number)}"
    else:
        detail += when_closed(closed_by)
    conversation = context.session.connection.conversation
    number = context.number or conversation.last_packet_number
    ts_ns = context.ts_ns or conversation.end_ns
    at: Any = {"number": number, "ts_ns": ts_ns, "count": len(some)}
    context.report(code, detail, **at, subject=leads_to(link))


@where(PUBLISHED | DELIVERED)
def presettled(context: RuleContext) -> None:
    """link-ends: presettled messages, which the receiver cannot refuse."""
    link = context.facts["link"]
    lossy = link.address is None and context.session.has_loss
    unknown = link.name is None or lossy  # its attach has the address
    if not link.presettled or link.presettled != link.deliveries or unknown or is_service(link):
        return
    code = "publishes-unprotected" if link.sends else "automatic-acknowledgement"
    what = number_of(link.presettled, "message")
    detail = f"{what} of {link_text(link)} were sent settled"
    at: Any = {"number": link.first_number, "ts_ns": link.first_ns, "count": link.presettled}
    context.report(code, detail, **at, subject=leads_to(link))


def _received(link: Any) -> int:
    """Deliveries of a link that are work of the client's."""
    return 0 if link.sends or is_service(link) else int(link.deliveries)


@where(DELIVERED)
def worked(context: RuleContext) -> None:
    """link-ends: how a consumer's link went: rejected, or with credit one by one."""
    link = context.facts["link"]
    if link.sends or is_service(link):
        return
    context.memory["worked"] = context.memory.get("worked", 0) + _received(link)
    number, ts_ns = link.first_number, link.first_ns
    if link.rejected >= REJECTED_TIMES and link.rejected > REJECTED_SHARE * link.deliveries:
        detail = f"{link.rejected} of {number_of(link.deliveries, 'delivery', 'deliveries')}"
        detail += f" of {link_text(link)}"
        context.report(
            "deliveries-rejected", detail, number=number, ts_ns=ts_ns, count=link.rejected
        )
    spent = link.last_ns - link.first_ns
    if (
        link.deliveries >= SINGLE
        and link.deliveries * SECOND_NS > SINGLE * spent
        and link.flows >= SINGLE_SHARE * link.deliveries
    ):
        detail = f"{number_of(link.deliveries, 'delivery', 'deliveries')} of {link_text(link)} in "
        detail += f"{duration(spent)}, with {number_of(link.flows, 'flow')}"
        context.report("credit-single", detail, number=number, ts_ns=ts_ns)


def renewed(context: RuleContext) -> None:
    """lock-renewed: one more request to renew a lock."""
    first = context.memory.setdefault("renewals", [0, context.number, context.ts_ns])
    first[0] += 1


def outweighed(context: RuleContext) -> None:
    """connection-ends: more renewals of locks than work."""
    renewals, number, ts_ns = context.memory.get("renewals", (0, None, None))
    received = context.memory.get("worked", 0) + sum(map(_received, open_links(context)))
    if renewals > RENEWALS * max(received, 1) and context.complete:
        detail = f"{number_of(renewals, 'request')} to renew locks, "
        detail += number_of(received, "delivery", "deliveries")
        context.report("lock-renewals-many", detail, number=number, ts_ns=ts_ns, count=renewals)


AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "publish-outcome": (not_taken,),
    "settlement-refused": (refused,),
    "delivery-aborted": (aborted,),
    "larger-than-link": (too_large,),
    "claims-answered": (claims_answered,),
    "managed": (managed,),
    "redelivered": (come_again,),
    "deliveries-left": (left,),
    "link-ends": (presettled, worked),
    "lock-renewed": (renewed,),
    "connection-ends": (outweighed,),
}
