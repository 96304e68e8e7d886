# cython: language_level=3, boundscheck=True, nonecheck=True
"""Requests and answers by message: reply-to, correlation-id, reply queues, servers that are lost.

A request is followed if its answer comes back on the same connection: its caller consumes there
from the queue in reply-to, or by direct reply-to. Its consumer is identified by route and
correlation id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cython.cimports.amqpsniff.decode.rows import MessageRows
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import BUSY, UNCLEAN

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.format import exchange_text, key_text, name_at, number_of
from amqpsniff.session.rules.overloaded_consumers import load_text
from amqpsniff.session.rules.peers import client_of, over_ns
from amqpsniff.session.rules.prefetch import busy_ns, queues_worked
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.shared_state import (
    MAX_NAMES,
    contribute,
    open_channels,
    remember,
    remembered,
    report_at,
)
from amqpsniff.units import duration

SLOW_NS = SECOND_NS
"""Mean time to an answer that is long."""

VERY_SLOW_NS = 10 * SECOND_NS
"""A single time that is long; the usual caller has given up by then."""

UNANSWERED_NS = 10 * SECOND_NS
"""Time in which an answer should have come before the capture says that none did."""

MIN_CALLS = 3
"""Calls with a reply queue each from which on it is how the program works."""

GIVEN_UP_NS = SECOND_NS
"""Time after the end of a server in which its request may be answered by another."""

MAX_IN_HAND = 64
"""Requests of one connection that are told to those of others when it ends."""

DIRECT = "amq.rabbitmq.reply-to"


def note_consumer(context: RuleContext) -> None:
    """basic.consume: answers may come from its queue."""
    if not context.channel.broker_discards:
        if context.queue:
            remember(context, context.memory.setdefault("read", {}), context.queue, True)


def note_link(context: RuleContext) -> None:
    """link-attached: answers may come from its address."""
    link = context.facts["link"]
    if not link.sends and link.address is not None:
        read = context.memory.setdefault("read", {})
        remember(context, read, link.address.text, True)


def note_call(context: RuleContext) -> None:
    """called: a request, whose answer will be looked for when it can come here."""
    memory: dict[Any, Any] = context.memory
    rows: MessageRows = context.facts["rows"]
    row: int = context.facts["row"]
    queue = rows.vocabularies.reply_to.text(rows.reply_to.values[row])
    if queue != DIRECT:
        queues = memory.setdefault("reply queues", {})
        counted = queues.get(queue)
        if counted is None:
            counted = remember(context, queues, queue, [0, context.number, context.ts_ns])
        if counted is not None:
            counted[0] += 1
    calls = memory.setdefault("calls", {})
    if queue not in memory.get("read", ()):
        return
    named = rows.correlation_id if rows.correlation_id.has(row) else rows.message_id  # of 1.0
    identity = named.bytes_of(row)
    if len(calls) >= MAX_NAMES:
        context.forget("requests")
        return
    if context.ts_ns is not None:
        words = rows.vocabularies
        exchange = words.exchange.text(rows.exchange.values[row])
        route = exchange, words.routing_key.text(rows.routing_key.values[row])
        sent = context.number, context.ts_ns, context.channel.number
        calls.setdefault(identity, Call(*sent, route, queue == DIRECT))
        context.session.pending_rpcs = len(calls)


def note_reply(context: RuleContext) -> None:
    """answered: which request, and how long it took."""
    rows: MessageRows = context.facts["rows"]
    row: int = context.facts["row"]
    if not rows.correlation_id.has(row):
        context.memory["answer cut"] = True  # it may be any
        return
    calls = context.memory.get("calls", {})
    identity = rows.correlation_id.bytes_of(row)
    call = calls.get(identity)
    if call is None or context.ts_ns is None or context.ts_ns < call.ts_ns:
        return
    del calls[identity]
    context.session.pending_rpcs = len(calls)
    took = context.ts_ns - call.ts_ns
    seen = context.memory.setdefault("replies", [0, 0, -1, None])
    seen[0] += 1
    seen[1] += took
    if took > seen[2]:
        seen[2:] = [took, call]


@requires("replies")
def judge_slow(context: RuleContext) -> None:
    """connection-ends: answers that came late."""
    count, total, longest, call = context.memory["replies"]
    if total < SLOW_NS * count and longest < VERY_SLOW_NS:
        return
    number, ts_ns, channel, route, _ = call
    detail = (
        f"{number_of(count, 'answer')}, after {duration(total / count)} on average; the latest "
        f"after {duration(longest)}, to the request sent on channel {channel} to {_what(route)}"
    )
    queue = queue_key(context, route[1]) if route[0] == "" and route[1] else None
    contribute(context, judge_late, context.place_of(number, ts_ns), detail, queue)


def judge_late(
    context: RuleContext, where: Sequence[Any], detail: str, queue: Sequence[str] | None
) -> None:
    """A caller's answers came late, the latest to a request to a queue, if it is known."""
    place = Place(*where)
    report_at(context, place, "rpc-slow", detail)
    finding = context.log.find("rpc-slow", place.connection_id)
    if queue is not None and finding is not None:
        late: list[Any] = remembered(context, "late answers", tuple(queue), list)
        if len(late) < MAX_NAMES:
            late.append(finding)


@where(BUSY)
def note_load(context: RuleContext) -> None:
    """channel-ends: a consumer that may be the server is busy all the time."""
    load = load_text(context)
    if load:
        name = client_of(context).application or context.session.connection.name()[1]
        pace = duration(busy_ns(context.channel) / context.channel.acknowledged)
        queues = [queue_key(context, queue) for queue in sorted(queues_worked(context))]
        contribute(context, judge_load, queues, f"{name} takes one every {pace}, {load}")


def judge_load(context: RuleContext, queues: Sequence[Sequence[str]], words: str) -> None:
    """A consumer of queues is busy all the time."""
    for queue in queues:
        busy: list[str] = remembered(context, "busy consumers", tuple(queue), list)
        if len(busy) < MAX_NAMES:
            busy.append(words)


def judge_servers(context: RuleContext) -> None:
    """capture-ends: name the busy consumers of the request queue in findings of late answers."""
    busy = context.shared.get("busy consumers", {})
    for queue, late in context.shared.get("late answers", {}).items():
        if queue in busy:
            words, more = min(busy[queue]), len(busy[queue]) - 1
            others = f", and {number_of(more, 'consumer')} more" if more else ""
            for finding in late:
                took, _, latest = finding.detail.partition("; ")
                finding.detail = f"{took}; {words}{others}; {latest}"


@requires("calls")
def judge_unanswered(context: RuleContext) -> None:
    """connection-ends: requests without an answer, though there was time."""
    context.withdraw("rpc-unanswered")
    late = _unanswered(context)
    if late:
        number, ts_ns, *_ = late[0]
        count, last = len(late), late[-1][0]
        detail = _unanswered_text(context, late)
        context.report("rpc-unanswered", detail, number=number, ts_ns=ts_ns, count=count, last=last)


@requires("calls")
def watch_unanswered(context: RuleContext) -> None:
    """connection-waits: the requests unanswered so far. A late answer makes them slow."""
    late = _unanswered(context)
    if late:
        number, ts_ns, *_ = late[0]
        detail = _unanswered_text(context, late)
        context.report_provisional("rpc-unanswered", detail, number, ts_ns, len(late), late[-1][0])
    else:
        context.withdraw("rpc-unanswered")


def _unanswered(context: RuleContext) -> list[Any]:
    """Requests that had time to be answered, and were not."""
    now_ns = context.ts_ns
    if now_ns is None or not context.complete or "answer cut" in context.memory:
        return []
    calls = context.memory["calls"].values()
    return [call for call in calls if now_ns - call.ts_ns > UNANSWERED_NS]


def _unanswered_text(context: RuleContext, late: list[Any]) -> str:
    """Requests without an answer, in words."""
    _, ts_ns, channel, route, _ = late[0]
    waited = duration(int(context.ts_ns or 0) - ts_ns)
    what = f"{number_of(len(late), 'request')} without an answer"
    which = "; the first, " if len(late) > 1 else ", "
    return f"{what}{which}on channel {channel} to {_what(route)}, for {waited}"


def _what(route: tuple[str | None, str | None]) -> str:
    """A request by its exchange and routing key."""
    return f"{exchange_text(route[0])} with {key_text(route[1])}"


@where(UNCLEAN)
def note_lost(context: RuleContext) -> None:
    """connection-ends: requests that a server had in hand when TCP ended without a close."""
    session, now_ns = context.session, over_ns(context)
    tcp = session.connection.conversation
    if tcp.ended is None or session.closed_by is not None:
        return
    if now_ns is None or not context.complete:
        return
    in_hand = [
        (_named(entry.rows, entry.row), entry.packet_number)
        for channel in open_channels(session)
        for entry in channel.deliveries
        if entry.open_row and _is_request(entry.rows, entry.row)
    ]
    if in_hand:
        name = client_of(context).application or session.connection.name()[1]
        server = (name, tcp.ended.upper(), now_ns, tcp.ended_packet_number)
        contribute(context, judge_lost, server, in_hand[:MAX_IN_HAND])


@requires("calls")
def note_waiting(context: RuleContext) -> None:
    """connection-ends: requests that were not answered."""
    if context.ts_ns is None or not context.complete or "answer cut" in context.memory:
        return
    waiting = [
        (
            _key(call.route[0], call.route[1], identity),
            tuple(context.place_of(call.number, call.ts_ns)),
        )
        for identity, call in context.memory["calls"].items()
    ]
    contribute(context, judge_waiting, context.ts_ns, waiting[:MAX_IN_HAND])


def judge_lost(context: RuleContext, server: Sequence[Any], in_hand: Sequence[Any]) -> None:
    """A server is lost with unanswered requests; their callers are contributed now or later."""
    for key, number in in_hand:
        known = remembered(context, "requests lost", tuple(key), _Lost)
        known.server = (*server, number)
        _judge_one(context, key, known)


def judge_waiting(context: RuleContext, ts_ns: int, waiting: Sequence[Any]) -> None:
    """A client is gone, or the capture is over, and requests were not answered."""
    for key, place in waiting:
        known = remembered(context, "requests lost", tuple(key), _Lost)
        known.client = (Place(*place), ts_ns)
        _judge_one(context, key, known)


class Call(NamedTuple):
    """A request that waits: its packet, time, channel number and route (exchange, routing key).

    `direct`: its answer comes by direct reply-to, so to that channel alone.
    """

    number: int
    ts_ns: int
    channel: int
    route: tuple[str | None, str | None]
    direct: bool


class _Lost:
    """One request: the server that lost its connection, and the caller that waits."""

    client: tuple[Place, int] | None = None
    server: tuple[Any, ...] | None = None


def _judge_one(context: RuleContext, key: Sequence[str], known: _Lost) -> None:
    """Report a lost request, once both of its sides are known."""
    if known.client is None or known.server is None:
        return
    place, until_ns = known.client
    name, how, lost_ns, end, delivered = known.server
    if until_ns - lost_ns < GIVEN_UP_NS or (place.ts_ns is not None and place.ts_ns > lost_ns):
        return
    detail = (
        f"{name} had the request to {_what((key[0], key[1]))} since packet {delivered} when its "
        f"connection ended ({how} in packet {end}); no answer came in the "
        f"{duration(until_ns - lost_ns)} after it"
    )
    report_at(context, place, "rpc-server-lost", detail)


def _is_request(rows: Any, row: int) -> bool:
    return bool(name_at(rows, "reply_to", row) and rows.correlation_id.has(row))


def _named(rows: Any, row: int) -> tuple[str, str, str]:
    """A delivered request by its route and correlation id."""
    exchange, key = name_at(rows, "exchange", row), name_at(rows, "routing_key", row)
    return _key(exchange, key, rows.correlation_id.bytes_of(row))


def _key(exchange: str | None, key: str | None, identity: bytes) -> tuple[str, str, str]:
    return exchange or "", key or "", identity.decode(errors="replace")


@requires("reply queues")
def judge_queues(context: RuleContext) -> None:
    """connection-ends: a reply queue for each call."""
    queues = context.memory["reply queues"]
    read = context.memory.get("read", {})
    own = {queue: one for queue, one in queues.items() if queue in read}
    calls = sum(one[0] for one in own.values())
    if len(own) < MIN_CALLS or 2 * calls > 3 * len(own) or not context.complete:
        return
    first = next(iter(own))
    _, number, ts_ns = own[first]
    detail = f"{len(own)} reply queues for {calls} requests, the first '{first}'"
    context.report("reply-queue-per-call", detail, number=number, ts_ns=ts_ns, count=len(own))


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (note_consumer,),
    "called": (note_call,),
    "answered": (note_reply,),
    "connection-waits": (watch_unanswered,),
    "connection-ends": (note_lost, note_waiting, judge_slow, judge_unanswered, judge_queues),
    "channel-ends": (note_load,),
    "capture-ends": (judge_servers,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "link-attached": (note_link,),
    "called": (note_call,),
    "answered": (note_reply,),
    "connection-waits": (watch_unanswered,),
    "connection-ends": (judge_slow, judge_unanswered),
    "channel-ends": (note_load,),
    "capture-ends": (judge_servers,),
}
