"""What packs say of messages: operations that fail, are retried or late, traces that break off.

A pack says what a message means (`amqpsniff.packs`); what stands out of that is an event, `noted`.
Its findings stand for all connections of a capture: there is one for an operation and an exception,
and its count is that of the messages. Failures and retries are counted as they are published, so
that a message counts once where its delivery was captured too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from amqpsniff.decode.meanings import FOLLOWED, TRIES
from amqpsniff.packs.catalogue import JUDGED
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules import celery, streams
from amqpsniff.session.rules.context import Place, Rule, RuleContext
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.peers import application, client_host, client_property, client_text
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.rpc import SLOW_NS, UNANSWERED_NS, VERY_SLOW_NS
from amqpsniff.session.rules.shared_state import (
    MAX_KEPT,
    contribute,
    first_place,
    remembered,
    report_at,
    report_once,
)
from amqpsniff.units import duration

LATE_NS = SECOND_NS
LATE_SHARE = 10
"""A delayed message is late by more than this time and by more than a tenth of its delay."""

DAY_NS = 86_400 * SECOND_NS
"""A delay that the delayed message exchange is not made for is longer."""

MAX_FORMATS = 32
"""Sets of conventions of tracing that are remembered of a virtual host."""

TRACED = 3
"""Messages with a trace's context that a client received, and others that it published without
one, from which on it loses traces."""

TRACED_MIDSTREAM = 30
"""The same of a client whose connection began before the capture."""

NEVER = 1 << 62
"""The same of one of which frames may be missing."""


def noted(context: RuleContext) -> None:
    """noted: what a message says of its operation."""
    said = context.facts["said"]
    published = context.facts["rows"].sender.at(context.facts["row"]) == 0
    for code in said["findings"]:
        if code == "delay-too-long":
            if published:
                _judge_length(context, said)
        elif code not in _BY_OPERATION:
            who = (client_host(context), application(context))
            report_once(context, code, who, lambda: client_text(context))
    for name, code in JUDGED.items():
        if name in said and (published or name != "audit"):
            words = partial(_JUDGED[name], context, said)
            report_once(context, code, (said["framework"], said.get("operation")), words)
    if published:
        _judge_published(context, said)
    if "not_before" in said or "delayed" in said:
        _note_delay(context, said)
    if "offset" in said and not published:
        streams.note_offset(context, said["offset"])
    if "call" in said:
        _note_call(context, said, published)


def _judge_published(context: RuleContext, said: dict[str, Any]) -> None:
    """A message reports a failure, or is tried once more."""
    codes = [code for code in said["findings"] if code in _BY_OPERATION]
    if not codes and "error_type" in said:
        codes = ["operation-failed"]
    if not codes and said.get("retry_count", 0) >= TRIES and said["framework"]:
        codes = ["operation-retried"]
    what = (said["framework"], said.get("operation"))
    for code in codes:
        error = None if code == "operation-retried" else said.get("error_type")
        report_once(context, code, (*what, error), partial(_BY_OPERATION[code], said))


def _operation(said: dict[str, Any]) -> str:
    """The operation of a message, in words."""
    name, framework = said.get("operation"), said["framework"] or "no framework"
    return f"{name} ({framework})" if name else f"a message of {framework}"


def _failed(said: dict[str, Any]) -> str:
    error = f" with {said['error_type']}" if "error_type" in said else ""
    return f"{_operation(said)} failed{error}"


def _given_up(said: dict[str, Any]) -> str:
    tries = said.get("retry_count")
    tried = f" after {number_of(tries, 'retry', 'retries')}" if tries else ""
    error = f", the last with {said['error_type']}" if "error_type" in said else ""
    return f"{_operation(said)} was put aside{tried}{error}"


def _retried(said: dict[str, Any]) -> str:
    return f"{_operation(said)} was published with {said['retry_count']} tries behind it"


def _skipped(said: dict[str, Any]) -> str:
    return f"{_operation(said)} has no consumer at the queue that it came to"


_BY_OPERATION: dict[str, Callable[[dict[str, Any]], str]] = {
    "operation-failed": _failed,
    "operation-retried": _retried,
    "retries-exhausted": _given_up,
    "message-skipped": _skipped,
}
"""Findings that there is one of for each operation, and their words."""


def _late(context: RuleContext, said: dict[str, Any]) -> str:
    late_ns = (context.ts_ns or 0) - 1_000 * said["expires_at"]
    return f"{_operation(said)} was delivered {duration(late_ns)} after it had expired"


_JUDGED: dict[str, Callable[[RuleContext, dict[str, Any]], str]] = {
    "loops": lambda context, said: f"a message made a round: {said['loops']}",
    "audit": lambda context, said: f"{said['audit']}, from {client_text(context)}",
    "expires_at": _late,
}
"""Words of findings by the value that shows them."""


# delays


def _judge_length(context: RuleContext, said: dict[str, Any]) -> None:
    """A message of the delayed message exchange is to wait for days."""
    wanted_ns = 1_000 * said.get("not_before", 0) - (context.ts_ns or 0)
    if wanted_ns > DAY_NS:
        words = partial("a message is to wait {} in the delayed message exchange".format,
                        duration(wanted_ns))  # fmt: skip
        report_once(context, "delay-too-long", client_host(context), words)


def _note_delay(context: RuleContext, said: dict[str, Any]) -> None:
    """A message that is to come later is published, or comes."""
    if "delayed" in said and "not_before" in said and said["framework"] != celery.FRAMEWORK:
        celery.hold_for_later(context, 1_000 * said["not_before"])
    rows, row = context.facts["rows"], context.facts["row"]
    key = said.get("message_key")
    for column in (rows.message_id, rows.correlation_id):
        if key is None and column.has(row):
            key = column.bytes_of(row).decode(errors="replace")
    if key is None or context.ts_ns is None:
        return
    due_us = None if "delayed" in said else said["not_before"]
    what = (said["framework"], said.get("operation"))
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
    """A delayed message was published, which says when it is due, or delivered (None)."""
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
    if context.session.peer.reads_bodies and context.queue:
        contribute(context, judge_reader, context.queue)


def _note_call(context: RuleContext, said: dict[str, Any], published: bool) -> None:
    """A request is published, or a reply is published or comes."""
    asks, address, answers = said["call"]
    if context.ts_ns is None:
        return
    if published and asks is not None:
        context.memory["asks by packs"] = True
        what = (said["framework"], said.get("operation"))
        name = address and address.partition("?")[0].rpartition("/")[2]
        flags = (said["awaited"], said["broadcast"])
        contribute(context, judge_request, asks, context.ts_ns, what, name, flags, context.place)
    if answers is not None:
        contribute(context, judge_answer, answers, context.ts_ns, published, context.place)


def note_asker(context: RuleContext) -> None:
    """connection-ends: nobody waits for replies any more, or frames with replies may be missing."""
    peer = context.session.peer
    if peer.reads_bodies and ("asks by packs" in context.memory or not context.complete):
        contribute(context, judge_asker, peer.name()[0], context.ts_ns, context.complete)


class _Request:
    """A request: when, for what, where its reply goes, the flags of its pack, its place, the time
    of its first reply and how many were published.
    """

    def __init__(self, *facts: Any) -> None:
        self.ts_ns, self.what, self.address, (self.awaited, self.broadcast), self.place = facts
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
    """The connection of a client that asked is over, or one of which frames may be missing."""
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
        if waited and known.complete and request.address in known.readers:
            unanswered.setdefault(request.what, []).append(request)
    for what, requests in unanswered.items():
        first = requests[0]
        if first.awaited or len(requests) < known.times.get(what, [0])[0]:
            count, last = len(requests), requests[-1].place.packet_number
            words = f"{number_of(count, 'request')} without an answer, {_named(what)}"
            if not first.awaited:
                words += f"; one request in {FOLLOWED} is followed"
            report_at(context, first.place, "rpc-unanswered", words, count, last)
    for what, (count, total, longest, place) in known.times.items():
        if total >= SLOW_NS * count or longest >= VERY_SLOW_NS:
            words = f"{number_of(count, 'answer')} to {_named(what)}, after "
            words += f"{duration(total / count)} on average; the latest after {duration(longest)}"
            report_at(context, place, "rpc-slow", words)
    for what, (count, place, last) in known.twice.items():
        if 2 * count <= known.times[what][0]:
            words = f"{number_of(count, 'request')} answered twice, {_named(what)}"
            report_at(context, place, "rpc-answered-twice", words, count, last)


def _named(what: tuple[str | None, str | None]) -> str:
    """An operation in words."""
    return _operation({"framework": what[0], "operation": what[1]})


# traces


def note_traces(context: RuleContext) -> None:
    """connection-ends: messages with a trace's context, and publishes without one."""
    session = context.session
    formats = context.memory.get("trace formats")
    if formats:
        server, vhost, _ = queue_key(context, "")
        words = client_text(context)
        contribute(context, judge_formats, server, vhost, formats, first_place(context), words)
    counts = (session.traced_delivered, session.traced_published, session.untraced_published)
    name = client_property(context, "connection_name") if any(counts) else None
    if not (counts[0] or counts[1] or (name and counts[2])):
        return
    key = (client_host(context), name) if name else session.peer.name()[0]
    needed = TRACED if context.certain else TRACED_MIDSTREAM if context.complete else NEVER
    place, words = first_place(context), client_text(context)
    contribute(context, judge_traces, key, counts, needed, place, words)


class _Traces:
    """Of a client's connections: messages delivered with a context, published with and without."""

    def __init__(self) -> None:
        self.counts = [0, 0, 0]
        self.needed = TRACED
        self.place: Place | None = None
        self.words = ""


def judge_traces(
    context: RuleContext,
    key: Any,
    counts: tuple[int, int, int],
    needed: int,
    place: tuple[Any, ...],
    words: str,
) -> None:
    """A connection of a client is over."""
    if isinstance(key, list):
        key = tuple(key)
    known = remembered(context, "traces", key, _Traces)
    known.counts = [one + more for one, more in zip(known.counts, counts, strict=True)]
    known.needed = max(known.needed, needed)
    if known.place is None:
        known.place, known.words = Place(*place), words


def judge_lost_traces(context: RuleContext) -> None:
    """capture-ends: clients that get the context of traces and never hand it on."""
    for known in context.shared.get("traces", {}).values():
        delivered, traced, untraced = known.counts
        if known.place and min(delivered, untraced) >= known.needed and not traced:
            words = (
                f"{known.words} received {number_of(delivered, 'message')} with the context of a "
                f"trace and published {number_of(untraced, 'message')} without one"
            )
            report_at(context, known.place, "trace-context-lost", words)


def judge_formats(
    context: RuleContext,
    server: str,
    vhost: str,
    formats: Sequence[Sequence[str]],
    place: tuple[Any, ...],
    words: str,
) -> None:
    """A connection is over that published messages of traces, by the conventions they follow."""
    known: dict[frozenset[str], tuple[Place, str]] = remembered(
        context, "trace formats", (server, vhost), dict
    )
    published = frozenset(name for names in formats for name in names)
    if published and len(known) < MAX_FORMATS:
        known.setdefault(published, (Place(*place), words))


def judge_mixed_traces(context: RuleContext) -> None:
    """capture-ends: clients of a virtual host whose traces have no convention in common."""
    for known in context.shared.get("trace formats", {}).values():
        for first, other in combinations(known, 2):
            if first.isdisjoint(other):
                (_, one), (place, two) = known[first], known[other]
                detail = f"{one} publishes {_listed(first)}; {two} {_listed(other)}"
                report_at(context, place, "trace-context-mixed", detail)
                break


def _listed(formats: frozenset[str]) -> str:
    return " and ".join(sorted(name.removeprefix("trace-") for name in formats))


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (note_reader,),
    "noted": (noted,),
    "connection-ends": (note_traces, note_asker),
    "capture-ends": (judge_lost_traces, judge_mixed_traces, judge_requests),
}
