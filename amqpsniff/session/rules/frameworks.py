"""Findings from packs: operations that fail, are retried or late, and other notable messages.

A pack describes the meaning of a message (`amqpsniff.packs`); a notable one is an event, `noted`.
Its findings cover all connections of a capture: there is one for an operation and an exception, and
its count is the number of messages. Failures and retries are counted when they are published, so
that a message counts once even if its delivery was captured too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from amqpsniff.decode.meanings import FOLLOWED, TRIES
from amqpsniff.packs.catalogue import VALUED
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules import celery, streams
from amqpsniff.session.rules.context import Place, Rule, RuleContext, where
from amqpsniff.session.rules.format import exchange_text, name_at, number_of, route
from amqpsniff.session.rules.occasions import READ
from amqpsniff.session.rules.peers import client_of
from amqpsniff.session.rules.rpc import SLOW_NS, UNANSWERED_NS, VERY_SLOW_NS
from amqpsniff.session.rules.shared_state import (
    MAX_KEPT,
    contribute,
    remembered,
    report_at,
    report_once,
)
from amqpsniff.units import duration

LATE_NS = SECOND_NS
LATE_SHARE = 10
"""A delayed message is late by more than this time and by more than a tenth of its delay."""

_VALUED = frozenset(VALUED)

OF_OPERATIONS = {
    "message-skipped", "operation-failed", "retries-exhausted",
}  # fmt: skip
"""Findings that say of a message what its exception or its retries would say."""

RESULT = "celery-result"
"""The framework of results, which name no task but its state."""

SECRET = "header-secret"  # noqa: S105 (a code)
"""Told where anyone on the way can read it."""


class _Words(NamedTuple):
    """The words about messages in which something stands out.

    `text`: names in braces are those of `_values`. `each`: what there is one finding of.
    `sender`: whose messages count, 0 of clients, 1 of the broker, None for both.
    """

    text: str
    each: str = "operation"
    sender: int | None = None


_WORDS = {
    "attempts-exceeded": _Words(
        "{operation} is published with {retry_count} attempts behind it, and {most_tries} allowed",
        sender=0,
    ),
    "clocks-differ": _Words(
        "the broker's clock is {span} ahead of the one that the capture was made with", "server", 1
    ),
    "delay-levels-old": _Words("{client} publishes to {exchange}", "client", 0),
    "delay-too-long": _Words(
        "a message is to wait {span} in the delayed message exchange", "client", 0
    ),
    "fanout-by-header": _Words("{client} names {value} more routing keys for {route}", "client", 0),
    "federation-hops": _Words(
        "a message from {route} came over {value} federation links", sender=1
    ),
    "firehose-on": _Words("{client}", "client"),
    "header-secret": _Words("{operation}: {value}, in the clear", "operation"),
    "message-expired": _Words("{operation} was delivered {span} after it had expired", sender=1),
    "message-id-missing": _Words("{client} was sent a message without one, from {route}", "client"),
    "message-loops": _Words("a message made a round: {value}"),
    "message-skipped": _Words(
        "{operation} has no consumer at the queue that it came to", "error", 0
    ),
    "operation-failed": _Words("{operation} failed{error}", "error", 0),
    "operation-retried": _Words(
        "{operation} was published with {retry_count} tries behind it", sender=0
    ),
    "retries-exhausted": _Words("{operation} was put aside{tried}{last}", "error", 0),
    "serialized-code": _Words("{client}", "client"),
    "workers-controlled": _Words("{value}, from {client}", sender=0),
}  # fmt: skip
"""By code, for findings that a message shows by itself."""


def noted(context: RuleContext) -> None:
    """noted: take the facts of a message about its operation."""
    meaning, rows = context.facts["meaning"], context.facts["rows"]
    sender = rows.sender.at(context.facts["row"])
    for code in _codes(meaning):
        words = _WORDS.get(code)
        if words is None:  # those of the whole capture are complete at its end
            context.memory[code] = context.memory.get(code) or context.place
        elif words.sender in (None, sender) and (code != SECRET or client_of(context).on_network):
            key = _key(context, meaning, words.each)
            report_once(context, code, key, partial(_say, context, code))
    if "not_before" in meaning or "delayed" in meaning:
        _note_delay(context, meaning)
    if "offset" in meaning and sender == 1:
        streams.note_offset(context, meaning["offset"])
    if "call" in meaning:
        _note_call(context, meaning, sender == 0)


def _codes(meaning: dict[str, Any]) -> Iterator[str]:
    """The finding codes of a message."""
    yield from meaning["findings"]
    yield from sorted(_VALUED.intersection(meaning))
    if "most_tries" in meaning:
        yield "attempts-exceeded"
    if not OF_OPERATIONS.intersection(meaning["findings"]):
        if "error_type" in meaning:
            yield "operation-failed"
        elif meaning.get("retry_count", 0) >= TRIES and meaning["framework"]:
            yield "operation-retried"


def _key(context: RuleContext, meaning: dict[str, Any], each: str) -> tuple[Any, ...]:
    """The key of a finding: all messages with the same key share one."""
    if each == "client":
        return client_of(context).host, client_of(context).application
    if each == "server":
        return (client_of(context).server,)
    what = meaning["framework"], meaning.get("operation")
    return (*what, meaning.get("error_type")) if each == "error" else what


def _say(context: RuleContext, code: str) -> str:
    """The words of a finding."""
    meaning, rows, row = (context.facts[name] for name in ("meaning", "rows", "row"))
    tries, error, value = (
        meaning.get("retry_count"),
        meaning.get("error_type"),
        str(meaning.get(code, "")),
    )
    exchange, key = (name_at(rows, name, row) for name in ("exchange", "routing_key"))
    return _WORDS[code].text.format(
        operation=_operation(meaning),
        error=f" with {error}" if error else "",
        last=f", the last with {error}" if error else "",
        tried=f" after {number_of(tries, 'retry', 'retries')}" if tries else "",
        retry_count=tries,
        most_tries=meaning.get("most_tries"),
        value=value or "a token in a header",
        span=duration(1_000 * int(value)) if value.isdecimal() else value,
        client=client_of(context).words,
        exchange=exchange_text(exchange),
        route=route(exchange, key),
    )


def _operation(meaning: dict[str, Any]) -> str:
    """The operation of a message, in words."""
    name, framework = meaning.get("operation"), meaning["framework"] or "no framework"
    if framework == RESULT and name:
        name = f"a task whose result is {name}"
    return f"{name} ({framework})" if name else f"a message of {framework}"


# delays


def _note_delay(context: RuleContext, meaning: dict[str, Any]) -> None:
    """A message that is to come later is published, or comes."""
    if (
        "delayed" in meaning
        and "not_before" in meaning
        and meaning["framework"] != celery.FRAMEWORK
    ):
        celery.hold_for_later(context, 1_000 * meaning["not_before"])
    rows, row = context.facts["rows"], context.facts["row"]
    key = meaning.get("message_key")
    for column in (rows.message_id, rows.correlation_id):
        if key is None and column.has(row):
            key = column.bytes_of(row).decode(errors="replace")
    if key is None or context.ts_ns is None:
        return
    due_us = None if "delayed" in meaning else meaning["not_before"]
    what = (meaning["framework"], meaning.get("operation"))
    contribute(context, judge_delay, key, context.ts_ns, due_us, what, context.place)


class _Delay:
    """A delayed message: when it was published, and when it is due."""

    published_ns: int | None = None
    due_ns: int | None = None


def judge_delay(
    context: RuleContext,
    key: str,
    ts_ns: int,
    due_us: int | None,
    what: tuple[str | None, str | None],
    place: tuple[Any, ...],
) -> None:
    """A delayed message was published, with its due time, or delivered (None)."""
    delay = remembered(context, "delays", key, _Delay)
    if due_us is not None:
        delay.published_ns, delay.due_ns = ts_ns, due_us * 1_000
        return
    published_ns, due_ns, delay.due_ns = delay.published_ns, delay.due_ns, None
    if published_ns is None or due_ns is None:
        return
    wanted_ns = due_ns - published_ns
    late_ns = ts_ns - due_ns
    if wanted_ns > 0 and late_ns > LATE_NS and LATE_SHARE * late_ns > wanted_ns:
        framework, name = what
        words = f"{name or 'a message'} was to wait {duration(wanted_ns)}"
        words += f" and waited {duration(ts_ns - published_ns)}"
        report_once(context, "delay-missed", (framework, name), lambda: words, Place(*place))


# requests


def note_reader(context: RuleContext) -> None:
    """basic.consume: replies may come from its queue."""
    if context.session.connection.reads_bodies and context.queue:
        contribute(context, judge_reader, context.queue)


def _note_call(context: RuleContext, meaning: dict[str, Any], published: bool) -> None:
    """A request is published, or a reply is published or comes."""
    asks, address, answers = meaning["call"]
    if context.ts_ns is None:
        return
    if asks is not None and not published:
        contribute(context, judge_receiver, asks)
    elif asks is not None:
        context.memory["asks by packs"] = True
        what = (meaning["framework"], meaning.get("operation"))
        name = address and address.partition("?")[0].rpartition("/")[2]
        flags = (
            meaning["awaited"],
            meaning["broadcast"],
            int(meaning.get("addressed", -1)),
            "greets" in meaning,
        )  # fmt: skip
        contribute(context, judge_request, asks, context.ts_ns, what, name, flags, context.place)
    if answers is not None:
        contribute(context, judge_answer, answers, context.ts_ns, published, context.place)


@where(READ)
def note_asker(context: RuleContext) -> None:
    """connection-ends: its client stops waiting for replies, or replies may be missing."""
    connection = context.session.connection
    if "asks by packs" in context.memory or not context.complete:
        contribute(context, judge_asker, connection.name()[0], context.ts_ns, context.complete)


class _Request:
    """A request: its time, operation, reply address, the flags of its pack, the number of expected
    answers (-1: one of each receiver), its place, the time of its first reply, the number of
    replies and the number of receivers.
    """

    def __init__(self, *facts: Any) -> None:
        self.ts_ns, self.what, self.address, flags, self.place = facts
        self.awaited, self.broadcast, addressed, self.greets = flags
        self.addressed, self.receivers = addressed >= 0, max(addressed, 0)
        self.answered_ns: int | None = None
        self.replies = 0


class _Requests:
    """Requests of all connections; those that are answered are kept for a second reply."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[str, _Request] = OrderedDict()
        self.answered: OrderedDict[str, _Request] = OrderedDict()
        self.times: dict[Any, list[Any]] = {}
        self.twice: dict[Any, list[Any]] = {}
        self.readers: set[str] = set()
        self.ends: dict[str, int | None] = {}
        self.complete = True


def _requests(context: RuleContext) -> _Requests:
    known: _Requests | None = context.shared.get("requests by packs")
    if known is None:
        known = context.shared["requests by packs"] = _Requests()
    return known


def judge_reader(context: RuleContext, queue: str) -> None:
    """A client of a framework consumes from a queue."""
    readers = _requests(context).readers
    if len(readers) < MAX_KEPT:
        readers.update((queue, queue.partition(".reply.")[0]))  # of Celery: by its routing key


def judge_asker(context: RuleContext, connection_id: str, ts_ns: int | None, whole: bool) -> None:
    """End of the connection of a client with requests, or of one that may lack frames."""
    known = _requests(context)
    known.complete = known.complete and whole
    if len(known.ends) < MAX_KEPT:
        known.ends[connection_id] = ts_ns


def judge_request(context: RuleContext, key: str, *facts: Any) -> None:
    """A request was published; a later one with the same id is the same."""
    known = _requests(context)
    ts_ns, what, address, flags, place = facts
    if key not in known.waiting and key not in known.answered:
        request = _Request(ts_ns, tuple(what), address, flags, Place(*place))
        known.waiting[key] = request
        if len(known.waiting) > MAX_KEPT:
            known.waiting.popitem(last=False)


def judge_receiver(context: RuleContext, key: str) -> None:
    """A request that all get was delivered to one of them."""
    known = _requests(context)
    request = known.waiting.get(key) or known.answered.get(key)
    if request is not None and not request.addressed:
        request.receivers += 1


def judge_answer(
    context: RuleContext, key: str, ts_ns: int, published: bool, place: tuple[Any, ...]
) -> None:
    """A reply to a request was published, or delivered."""
    known = _requests(context)
    request = known.waiting.pop(key, None)
    if request is not None:
        known.answered[key] = request
        if len(known.answered) > MAX_KEPT:
            known.answered.popitem(last=False)
        if request.address:
            judge_reader(context, request.address)
        took_ns = request.answered_ns = ts_ns - request.ts_ns
        if request.what in known.times or len(known.times) < MAX_KEPT:
            seen = known.times.setdefault(request.what, [0, 0, -1, request.place])
            seen[0] += 1
            seen[1] += took_ns
            if took_ns > seen[2]:
                seen[2:] = took_ns, request.place
    request = known.answered.get(key)
    if request is not None and published:
        request.replies += 1
        counted = request.what in known.times
        if request.replies == 2 and counted and not request.broadcast:
            where = Place(*place)
            seen = known.twice.setdefault(request.what, [0, where, None])
            seen[0] += 1
            seen[2] = where.packet_number


def judge_requests(context: RuleContext) -> None:
    """capture-ends: requests that were not answered, late, or twice."""
    known: _Requests | None = context.shared.get("requests by packs")
    if known is None:
        return
    unanswered: dict[Any, list[_Request]] = {}
    for request in known.waiting.values():
        until_ns = known.ends.get(request.place.connection_id or "")
        waited = until_ns is not None and until_ns - request.ts_ns > UNANSWERED_NS
        if request.greets and not request.receivers:
            continue
        if waited and known.complete and request.address in known.readers:
            unanswered.setdefault(request.what, []).append(request)
    for what, requests in unanswered.items():
        first = requests[0]
        if first.awaited or len(requests) < known.times.get(what, [0])[0]:
            count, last = len(requests), requests[-1].place.packet_number
            words = f"{number_of(count, 'request')} without an answer, {_named(what)}"
            if not first.awaited:
                words += f"; one request in {FOLLOWED} is followed"
            report_at(context, first.place, "rpc-unanswered", words, count, last, subject=what)
    partly: dict[Any, list[_Request]] = {}
    for request in known.answered.values():
        if request.broadcast and known.complete and request.replies < request.receivers:
            until_ns = known.ends.get(request.place.connection_id or "")
            if until_ns is not None and until_ns - request.ts_ns > UNANSWERED_NS:
                partly.setdefault(request.what, []).append(request)
    for what, requests in partly.items():
        first, count, last = requests[0], len(requests), requests[-1].place.packet_number
        words = (
            f"{number_of(count, 'request')} that not all have answered, {_named(what)}: "
            f"{first.replies} of {first.receivers} did"
        )
        about = (*what, "partly")
        report_at(context, first.place, "rpc-unanswered", words, count, last, subject=about)
    for what, (count, total, longest, place) in known.times.items():
        slow = total >= SLOW_NS * count or longest >= VERY_SLOW_NS
        if slow and known.complete:  # else an earlier answer may be missing
            words = f"{number_of(count, 'answer')} to {_named(what)}, after "
            words += f"{duration(total / count)} on average; the latest after {duration(longest)}"
            report_at(context, place, "rpc-slow", words, subject=what)
    for what, (count, place, last) in known.twice.items():
        if 2 * count <= known.times[what][0]:
            words = f"{number_of(count, 'request')} answered twice, {_named(what)}"
            report_at(context, place, "rpc-answered-twice", words, count, last, subject=what)


def _named(what: tuple[str | None, str | None]) -> str:
    """An operation in words."""
    return _operation({"framework": what[0], "operation": what[1]})


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (note_reader,),
    "noted": (noted,),
    "connection-ends": (note_asker,),
    "capture-ends": (judge_requests,),
}
