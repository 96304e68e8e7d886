"""Channels that the broker closes with an error, and later publishes on them.

A client may check with a passive declaration if a queue or exchange exists, and declare it if not:
federation links and shovels do. The broker's close is an error only if the client does not declare
the same name successfully at once (`Probe`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from amqpsniff.session.codes import SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read_reason
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import in_packet, name_at, reply_text, route, subject_of_text
from amqpsniff.session.rules.occasions import BY_BROKER, PASSIVE
from amqpsniff.session.rules.peers import client_of, ender, vhost_of
from amqpsniff.session.rules.queues import MAX_DELETIONS
from amqpsniff.session.rules.remedies import is_exclusive, remedy
from amqpsniff.session.rules.shared_state import contribute, drop, remember, remembered, report_at
from amqpsniff.session.rules.topology import subject_of
from amqpsniff.spec import FIRST_ERROR_CODE, SIDES
from amqpsniff.units import duration

_MISSING, _FAILED = 404, 406
"""NOT_FOUND, PRECONDITION_FAILED."""

_MISSED = re.compile(r"no (queue|exchange) ('.*') in vhost '(.*?)'")
"""A queue or exchange that is not there, in a reply text of RabbitMQ."""

_TIMEOUT = re.compile(r"Timeout value used: (\d{1,12}) ms")
"""The time that the broker allows, in its text."""

DECLARED_NS = 10 * SECOND_NS
"""Time within which a client that asked for something makes it. Federation takes a millisecond."""

ASKED = "passive declarations"
"""Name in `RuleContext.memory` of the last one of each channel: its packet and what it asks."""

CLOSED = "channel-closed-by-broker"

_DELETIONS = {"queue": "deletions", "exchange": "exchanges deleted"}
"""Names in `RuleContext.shared` of deletions, by what was deleted: their times and words."""

MADE_AGAIN = "declarations of what was deleted"
"""Name in `RuleContext.shared` of the times of later declarations."""

REFUSED = "passive declarations refused"
"""Name in `RuleContext.memory` of a `Probe` for each thing that was not there."""


class Probe:
    """A close of the broker because the name of a passive declaration does not exist.

    `place`: where it was; `missing`: what `judge_missing` is told of it; `declared`: packet of the
    last declaration of it since.
    """

    def __init__(self, context: RuleContext, missing: tuple[Any, ...]) -> None:
        self.missing = missing
        self.channel, self.place, self.ts_ns = context.channel, context.place, context.ts_ns
        self.declared: int | None = None

    def is_recent(self, now_ns: int | None) -> bool:
        """True if the client may still declare the name."""
        return None in (now_ns, self.ts_ns) or now_ns - self.ts_ns <= DECLARED_NS


@where(BY_BROKER)
def closed(context: RuleContext) -> None:
    """The broker closed a channel: by its text, or by its code alone."""
    code, text, method = read_reason(context.frame.arguments_json)
    if code is None or code < FIRST_ERROR_CODE:
        return
    declare = context.memory.get(ASKED, {}).get(context.channel.number, (None, None))
    passive = declare[0] == context.channel.blamed_packet_number is not None
    detail = reply_text(code, text) + _request(context, method, passive)
    subject = subject_of_text(text or "")
    text = text or ""
    if code == _FAILED and "inequivalent arg" in text:
        context.report("declaration-mismatch", detail, subject=subject)
    elif code == _FAILED and "acknowledgement" in text and "timed out" in text:
        _report_timeout(context, text, detail)
    elif code == _FAILED and "message size" in text and "larger than" in text:
        context.report("message-too-large", detail)
    elif not _named_elsewhere(context.channel, code, text):
        what, variant = remedy(code, text)
        if code != _MISSING:
            context.report(CLOSED, detail + what, variant=variant, subject=subject)
            return
        variant, detail = context.variant_for(CLOSED, subject, detail, variant)
        missing = *_thing(context, text), detail, what, variant, context.channel.number
        if passive:
            _refuse(context, declare[1], Probe(context, missing))
        else:
            contribute(context, judge_missing, *missing, context.place)


def _thing(context: RuleContext, text: str) -> tuple[str, Sequence[str]]:
    """The kind and key of what is not there; both empty if the text does not say it."""
    named = _MISSED.search(text)
    if named is None:
        return "", ()
    name = named[2][1:-1] if named[1] == "queue" else named[2]
    return named[1], (client_of(context).server, named[3], name)


def judge_missing(
    context: RuleContext,
    kind: str,
    key: Sequence[str],
    detail: str,
    what: str,
    variant: Any,
    channel: int,
    place: Sequence[Any],
) -> None:
    """The broker closed a channel because a queue or exchange is not there: was it deleted?"""
    at = Place(*place)
    variant = tuple(variant) if isinstance(variant, list) else variant
    detail += _reason(context, kind, key, at.ts_ns) or what
    report_at(context, at, CLOSED, detail, channel=channel, variant=variant)


def _reason(context: RuleContext, kind: str, key: Sequence[str], ts_ns: int | None) -> str:
    """The deletion of a queue or exchange that holds at a time, to follow an error; else empty."""
    if ts_ns is None:
        return ""
    deletions = context.shared.get(_DELETIONS.get(kind, ""), {}).get(tuple(key), ())
    words = [(deleted_ns, words) for deleted_ns, words in deletions if deleted_ns <= ts_ns]
    made = context.shared.get(MADE_AGAIN, {}).get((kind, *key), ())
    if not words or any(words[-1][0] <= made_ns <= ts_ns for made_ns in made):
        return ""
    return f"; {words[-1][1]}: declare it again, or end what uses it"


def makes(context: RuleContext) -> None:
    """queue.declare, exchange.declare: what was deleted may be made again."""
    kind, name = subject_of(context.frame)
    vhost, passive = vhost_of(context), b'"passive":true' in (context.frame.arguments_json or b"")
    if name and vhost is not None and context.ts_ns is not None and not passive:
        name = name if kind == "queue" else f"'{name}'"
        key = client_of(context).server, vhost, name
        contribute(context, judge_made, kind, key, context.ts_ns)


def judge_made(context: RuleContext, kind: str, key: Sequence[str], ts_ns: int) -> None:
    """A queue or exchange was declared: that counts after a deletion."""
    if tuple(key) in context.shared.get(_DELETIONS[kind], ()):
        times: deque[int] = remembered(
            context, MADE_AGAIN, (kind, *key), lambda: deque(maxlen=MAX_DELETIONS)
        )
        times.append(ts_ns)


@where(PASSIVE)
def asks(context: RuleContext) -> None:
    """queue.declare, exchange.declare: note a passive declaration."""
    subject = subject_of(context.frame)
    passive = b'"passive":true' in (context.frame.arguments_json or b"")
    if context.frame.side != SERVER and passive and subject[1]:
        declares = context.memory.setdefault(ASKED, {})
        drop(context, declares, context.channel.number)
        remember(context, declares, context.channel.number, (context.number, subject))


@requires(REFUSED)
def declared(context: RuleContext) -> None:
    """queue.declare, exchange.declare: note a declaration of a refused name."""
    probe = context.memory[REFUSED].get(subject_of(context.frame))
    if probe is not None and context.frame.side != SERVER:
        probe.declared = context.number


@requires(REFUSED)
def made(context: RuleContext) -> None:
    """queue.declare-ok, exchange.declare-ok: forget the refusal of a name that now exists."""
    if context.request is None:
        return
    refused = context.memory[REFUSED]
    for subject, probe in list(refused.items()):
        if probe.declared == context.request.number and probe.is_recent(context.ts_ns):
            _take_back(context, subject)


@requires(REFUSED)
def lost(context: RuleContext) -> None:
    """frames-lost: a recently refused name may have been declared."""
    session = context.session
    now_ns = max(session.last_client_ns, session.last_server_ns)
    for subject, probe in list(context.memory[REFUSED].items()):
        if probe.is_recent(now_ns):
            _take_back(context, subject)


@requires(REFUSED)
def judge_refused(context: RuleContext) -> None:
    """connection-ends: refused names that were not declared."""
    for subject in list(context.memory[REFUSED]):
        _report_refused(context, subject)


def _refuse(context: RuleContext, subject: tuple[str, str | None], probe: Probe) -> None:
    """Something that a client asks for is not there: wait for it to make it."""
    refused = context.memory.setdefault(REFUSED, {})
    if subject in refused:
        _report_refused(context, subject)
    if remember(context, refused, subject, probe) is None:
        contribute(context, judge_missing, *probe.missing, probe.place)
        return
    kind, key, detail, what, variant, _ = probe.missing
    detail += _reason(context, kind, key, probe.ts_ns) or what
    place: Any = {"number": context.number, "ts_ns": context.ts_ns}
    context.report_provisional(CLOSED, detail, **place, absent=False, variant=variant)


def _report_refused(context: RuleContext, subject: tuple[str, str | None]) -> None:
    probe = drop(context, context.memory[REFUSED], subject)
    context.withdraw(CLOSED, probe.channel)
    contribute(context, judge_missing, *probe.missing, probe.place)


def _take_back(context: RuleContext, subject: tuple[str, str | None]) -> None:
    probe = drop(context, context.memory[REFUSED], subject)
    context.withdraw(CLOSED, probe.channel)
    if context.memory.get("failure") == reply_text(_MISSING, probe.channel.close_text):
        del context.memory["failure"]


def _named_elsewhere(channel: Any, code: int, text: str) -> bool:
    """True if a more specific rule reports it, unless the client closed the channel."""
    if channel.closed_by != SIDES[SERVER]:
        return False
    return is_exclusive(code, text) or (code == _FAILED and "user_id property set to" in text)


def _request(context: RuleContext, method: str | None, passive: bool) -> str:
    """The request that the broker refused, as text: the waiting one, or the last publish."""
    if method is None:
        return ""
    channel = context.channel
    if passive:
        packet = in_packet(channel.blamed_packet_number)
        return f"; answer to a passive {method}{packet}, which only looks whether it is there"
    if channel.blamed_packet_number is not None:
        return f"; answer to {method} in packet {channel.blamed_packet_number}"
    times = channel.times
    later = context.ts_ns is not None and times.last_publish_ns > context.ts_ns  # read before
    if method == "basic.publish" and times.last_publish_number and not later:
        return f"; answer to {method}, the last in packet {times.last_publish_number}"
    return f"; answer to {method}"


def _report_timeout(context: RuleContext, text: str, detail: str) -> None:
    """The broker reports an acknowledgement timeout: compare it with the captured deliveries."""
    channel = context.channel
    entry = next((entry for entry in channel.deliveries if entry.wants), None)
    allowed = _TIMEOUT.search(text)
    allowed_ns = int(allowed[1]) * 1_000_000 if allowed else 0
    counted = context.certain and channel.counts_deliveries()
    if counted and entry is None and channel.times.ack_ns_max < allowed_ns:
        longest = f"no delivery waited for longer than {duration(channel.times.ack_ns_max)}"
        what = (
            f"406 for an acknowledgement that timed out, but nothing was outstanding and {longest}"
        )
        what += ": what the broker says is not so; "
        context.report(CLOSED, what + detail, variant=_FAILED)
    else:
        consumer = None if entry is None else entry.consumer
        queue = "" if consumer is None else consumer.queue or ""
        context.report("acknowledgement-timeout", _oldest(context, entry) + detail, subject=queue)


def _oldest(context: RuleContext, entry: Any) -> str:
    """The delivery that waits longest, in words."""
    if entry is None or context.ts_ns is None or not context.channel.known:
        return ""
    queue = entry.consumer.queue if entry.consumer else None
    source = f" from queue '{queue}'" if queue else ""
    age = duration(max(0, context.ts_ns - entry.ts_ns))
    return f"delivery {entry.number}{source}, packet {entry.packet_number}, waited {age}; "


def published_afterwards(context: RuleContext) -> None:
    """A publish that the broker will drop."""
    ended = _ended_before(context) if context.complete else ""
    if not ended:
        return
    frames, row = context.facts["frames"], context.facts["row"]
    where = route(name_at(frames, "exchange", row), name_at(frames, "routing_key", row))
    detail = f"to {where}, sent after the broker's {ended}, and dropped"
    context.report("publishes-discarded", detail, subject=detail)


def _ended_before(context: RuleContext) -> str:
    """The broker's close, or its FIN, in words; empty if it did not come before."""
    channel, session = context.channel, context.session
    number, code = channel.closed_packet_number, channel.close_code
    if number is None:
        number, code = session.close_packet_number, session.close_code
    if number is not None:
        return f"close in packet {number}" + (f" ({code})" if code else "")
    tcp, now_ns = session.connection.conversation, context.ts_ns
    if ender(context) != SERVER or now_ns is None or not 0 < tcp.ended_ns < now_ns:
        return ""
    return "" if tcp.ended_ns == tcp.reset_ns else f"FIN in packet {tcp.ended_packet_number}"


RULES: dict[str, tuple[Rule, ...]] = {
    "channel.close": (closed,),
    "queue.declare": (makes, asks, declared),
    "exchange.declare": (makes, asks, declared),
    "queue.declare-ok": (made,),
    "exchange.declare-ok": (made,),
    "frames-lost": (lost,),
    "connection-ends": (judge_refused,),
    "published-on-closed": (published_afterwards,),
}
