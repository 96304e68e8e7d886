"""Queues without consumers, or missing queues, for which messages are still published.

The consumer was cancelled, or its channel closed, while its connection continued; or its link has
no credit; or the queue was private to an ended connection; or it expired; or no client declares it,
but only a queue with a similar name. Later publishes are counted by their routes, so all of this is
judged at the end, and not if frames may be missing.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from amqpsniff.decode.json_objects import table_of
from amqpsniff.decode.method_layout import NO_WAIT
from amqpsniff.findings.records import NEVER
from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read, read_reason
from amqpsniff.session.routes import known_after, known_until
from amqpsniff.session.rules.consuming import OF_BROKER
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires, where
from amqpsniff.session.rules.credit import (
    RENEWED_NS,
    RENEWED_TIMES,
    gave_none,
    has_more,
    lacks_credit,
)
from amqpsniff.session.rules.format import in_packet, number_of, queue_text
from amqpsniff.session.rules.links import link_text
from amqpsniff.session.rules.occasions import BY_BROKER, CONSUMES, EXCLUSIVE, EXTENDED, SINCE
from amqpsniff.session.rules.peers import client_of, end_ns, vhost_of
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.routes import (
    CANCELLED,
    DELIVERED,
    GONE,
    HIDDEN,
    MAX_LISTED,
    PUBLISHED,
    STOPPED_NS,
    STOPPED_PUBLISHED,
    delivered_to,
    extent,
    got_on,
    is_given_up,
    note,
    note_limit,
    read_all,
    routes_to,
)
from amqpsniff.session.rules.rpc import DIRECT
from amqpsniff.session.rules.shared_state import (
    MAX_KEPT,
    contribute,
    drop,
    open_channels,
    remember,
    remembered,
    report_at,
)
from amqpsniff.session.rules.unread import note_target
from amqpsniff.units import duration

MS = SECOND_NS // 1000

UNDER_WAY_NS = SECOND_NS
"""Time in which what was under way still comes to a consumer that left."""

LEFT = "consumers that left"
"""Name in `RuleContext.memory` of consumers by channel number, incarnation and tag: (queue, how it
left, packet, time); in `RuleContext.shared` those of a queue."""

STARVED = "links without credit"
"""Name in `RuleContext.shared` of links of a queue: (words, channel, place)."""

GAVE_UP = "callers that gave up"
"""Name in `RuleContext.shared` of callers by direct reply-to that went without an answer, by the
route of their requests: when they asked first, when they went, who, and how."""

EXPIRING, ABSENT = "queues that expire", "queues that are not there"
"""Names in `RuleContext.shared` of queues: [x-expires, time, words] of the last declaration, and
(channel, place) where the broker says that there is none."""

NAMED_BYTES = 5
"""Length of names from which on two that differ by a letter are hardly both meant."""

LIVES = "queues whose messages expire"
"""Name in `RuleContext.shared` of x-message-ttl of queues, None where messages go elsewhere."""

RECEIVED = "last messages of links"
"""Name in `RuleContext.shared` of when links got the last message, by broker and queue."""

SENT = "messages sent on links"
"""Name in `RuleContext.shared` of what links brought, by broker and queue: (accepted messages, time
of the last)."""

TEMPORARY = "temporary queues"
"""Name in `memory` and `shared` of queues that may go with their consumers."""

ARGUMENTS = "arguments of declarations"
"""Name in `memory` of the arguments of declarations that wait for their answer, as JSON, by channel
number, packet and row."""

MAX_ARGUMENTS_BYTES = 1_024
"""Length of arguments that are remembered: programs have some hundred."""


@where(EXCLUSIVE | EXTENDED)
def temporary(context: RuleContext) -> None:
    """queue.declare: note a queue that is deleted when it is not used."""
    octets = context.frame.arguments_json or b""
    names = (b'"exclusive":true', b'"auto_delete":true', b'"x-expires"')
    if context.frame.queue and any(name in octets for name in names):
        note(context, TEMPORARY, context.frame.queue, True)


def cancelled(context: RuleContext) -> None:
    """basic.cancel: the client's consumer leaves."""
    if context.frame.side == CLIENT:
        _leave(context, context.frame.consumer_tag, "was cancelled by the client")
        _lose(context, context.frame.consumer_tag, "whose consumer was cancelled")


@where(CONSUMES)
def channel_closed(context: RuleContext) -> None:
    """channel.close: all consumers of the channel leave."""
    who = "the broker" if context.frame.side == SERVER else "the client"
    _leave(context, None, f"left when {who} closed its channel")
    _lose(context, None, "whose channel was closed")


def _leave(context: RuleContext, only: str | None, how: str) -> None:
    """Note the consumers of a channel that got messages, where no other of the connection stays."""
    channel, routes = context.channel, context.session.routes
    if routes is None or context.ts_ns is None:
        return
    here = channel.number, channel.incarnation
    if only is None:
        names = [name for name in routes.delivered if name[:2] == here and name[2] is not None]
    else:
        names = [(*here, only)] if (*here, only) in routes.delivered else []
    for name in names:
        known = channel.by_tag.get(name[2])
        keys = [key for exchange, key in routes.delivered[name] if not exchange]
        queue = known.queue if known is not None else keys[0] if len(keys) == 1 else None
        if queue and not _stays(context, queue, only):
            left = context.memory.setdefault(LEFT, {})
            left.setdefault(name, (queue, how, context.number, context.ts_ns))


def _stays(context: RuleContext, queue: str, only: str | None) -> bool:
    """True if the connection has another consumer of a queue."""
    gone = context.memory.get(CANCELLED, {})
    return any(
        consumer.queue == queue and tag != only and (channel.number, tag) not in gone
        for channel in open_channels(context.session)
        if only is not None or channel is not context.channel
        for tag, consumer in channel.by_tag.items()
    )


@requires(LEFT, TEMPORARY)
def ended(context: RuleContext) -> None:
    """connection-ends: contribute the queues that it stopped consuming while it continued."""
    memory, now_ns = context.memory, context.ts_ns or end_ns(context) or 0
    if HIDDEN in memory or not context.complete:
        return
    again: dict[str, int] = {}
    for (_, queue), (ts_ns, _) in memory.get(SINCE, {}).items():
        again[queue] = max(ts_ns, again.get(queue, 0))
    left = [
        (queue, f"consumer '{name[2]}'", name[0], how, tuple(context.place_of(number, ts_ns)))
        for name, (queue, how, number, ts_ns) in memory.get(LEFT, {}).items()
        if now_ns - ts_ns >= STOPPED_NS and again.get(queue, 0) < ts_ns
    ]
    names = list(memory.get(TEMPORARY, ()))
    if left or names:
        at = queue_key(context, "")[0], vhost_of(context) or ""
        contribute(context, judge_left, at, left, names)


def judge_left(
    context: RuleContext,
    at: Sequence[str],
    left: Sequence[Any],
    names: Sequence[str],
) -> None:
    """Take the consumers that left a connection, and the queues it has for a while."""
    for queue in names:
        remembered(context, TEMPORARY, (*at, queue), lambda: True)
    for queue, *row, place in left:
        known: list[Any] = remembered(context, LEFT, (*at, queue), list)
        if len(known) < MAX_LISTED:
            known.append((*row, Place(*place)))


def judge_unattended(context: RuleContext) -> None:
    """capture-ends: messages published for queues since they lost their consumer."""
    shared = context.shared
    if is_given_up(context):
        return
    hidden = shared.get("hidden from routes", {})
    lost = {server for server, (frames,) in hidden.items() if frames}
    _judge_links(context, lost)
    _judge_private(context, lost)
    _judge_expired(context, lost)
    _judge_lives(context, hidden)
    _judge_misnamed(context, hidden)
    for key, rows in shared.get(LEFT, {}).items():
        if key[0] in lost:
            continue
        words, channel, how, place = max(rows, key=lambda row: int(row[3].ts_ns))
        others = set(shared.get("consumers of queues", {}).get(key, ()))
        if key in shared.get("deletions", {}) or others - {row[3].connection_id for row in rows}:
            continue
        count, last_ns = _published_since(context, key, place.ts_ns)
        if count >= STOPPED_PUBLISHED and last_ns - place.ts_ns >= STOPPED_NS:
            detail = (
                f"{words} of {queue_text(key[2])} {how}{in_packet(place.packet_number)}, and "
                f"its connection went on; {count} or more messages were published for the queue in "
                f"the {duration(last_ns - place.ts_ns)} since, and nobody got one"
            )
            report_at(context, place, "queue-abandoned", detail, channel=channel, subject=key)


def _published_for(context: RuleContext, queue: Sequence[str]) -> list[tuple[Any, Any]]:
    """The routes that reach a queue and no other, and their publishes."""
    published = context.shared.get(PUBLISHED, {})
    names = [name for name, alone in routes_to(context, queue) if alone]
    return [(name, read_all(published.get(name, ()))) for name in names]


def _published_since(context: RuleContext, key: Sequence[str], ts_ns: int) -> tuple[int, int]:
    """Lower bound of the messages for a queue after a time, and the time of the last; 0 if a
    consumer got any of them, or if the queue may be deleted.
    """
    count = last_ns = 0
    if key in context.shared.get(TEMPORARY, {}) or key[2].startswith(OF_BROKER):
        return 0, 0
    if _came_over_links(context, key) > ts_ns:
        return 0, 0
    for name, publishes in _published_for(context, key):
        if got_on(context, name, ts_ns + UNDER_WAY_NS):
            return 0, 0
        for publish in publishes:
            count += known_after(publish.total, publish.steps, ts_ns + UNDER_WAY_NS)
            last_ns = max(last_ns, publish.last_ns)
    return count, last_ns


# links of AMQP 1.0


def starved(context: RuleContext) -> None:
    """link-ends: when a consumer's link got its last message, and whether it lacks credit."""
    link, queue = context.facts["link"], context.facts["link"].address
    if not link.sends:
        name = None if queue is None else queue.queue
        contribute(context, judge_received, queue_key(context, "")[0], name, link.last_ns)
    elif queue is not None and queue.exchange == "" and queue.routing_key and link.accepted:
        server, name = queue_key(context, "")[0], queue.routing_key
        contribute(context, judge_sent, server, name, link.accepted, link.last_ns)
    now_ns, times = context.ts_ns or end_ns(context) or 0, RENEWED_TIMES if link.flows > 1 else 1
    never = gave_none(context, link, now_ns) >= RENEWED_NS
    lacks = lacks_credit(context, link, now_ns, times) and not has_more(link)
    if (never or lacks) and queue is not None and queue.queue and link.unsettled == 0:
        credit = link.credit
        server = queue_key(context, "")[0]
        words = f"{link_text(link)}: no credit "
        if never:
            words += "since its attach"
            place = context.place_of(link.attached_number, link.attached_ns)
        else:
            words += f"after {number_of(link.deliveries, 'delivery', 'deliveries')}"
            place = context.place_of(credit.empty_number, credit.empty_ns)
        until_ns = now_ns if never else 0
        contribute(
            context, judge_starved, server, queue.queue, words, until_ns, context.channel.number,
            place,
        )  # fmt: skip


def unseen(context: RuleContext) -> None:
    """connection-ends: incompletely captured links may have got any message."""
    if not context.certain:
        contribute(context, judge_received, queue_key(context, "")[0], None, NEVER)


def judge_received(context: RuleContext, server: str, queue: str | None, ts_ns: int) -> None:
    """A link got the last message from a queue, None for any."""
    times = remembered(context, RECEIVED, (server, queue), lambda: [0])
    times[0] = max(times[0], ts_ns)


def _came_over_links(context: RuleContext, key: Sequence[str]) -> int:
    """The last time at which a link may have got a message from a queue; 0 for never."""
    times = context.shared.get(RECEIVED, {})
    return max(int(times.get((key[0], queue), (0,))[0]) for queue in (key[2], None))


def judge_sent(context: RuleContext, server: str, queue: str, count: int, last_ns: int) -> None:
    """A link brought messages for a queue."""
    known: list[Any] = remembered(context, SENT, (server, queue), list)
    if len(known) < MAX_LISTED:
        known.append((count, last_ns))


def judge_starved(
    context: RuleContext,
    server: str,
    queue: str,
    words: str,
    until_ns: int,
    channel: int,
    place: Sequence[Any],
) -> None:
    """Take a link without credit, `until_ns` if it never had any; its virtual host is unknown."""
    known: list[Any] = remembered(context, STARVED, (server, queue), list)
    if len(known) < MAX_LISTED:
        known.append((words, until_ns, channel, Place(*place)))


def _judge_links(context: RuleContext, lost: set[str]) -> None:
    """Report links without credit for whose queue messages are published."""
    shared, vhosts_of = context.shared, dict[str, set[str]]()
    if STARVED not in shared:
        return
    for name in shared.get(PUBLISHED, ()):
        vhosts_of.setdefault(name[0], set()).add(name[1])
    others = ("consumers of queues", "deletions", "limits of routes", TEMPORARY, LIVES)
    used = {(key[0], key[2]) for name in others for key in shared.get(name, ())}
    used.update((key[0], key[3]) for key in shared.get(DELIVERED, ()))
    for (server, queue), rows in shared[STARVED].items():
        vhosts = vhosts_of.get(server, set()) - {""}
        for words, until_ns, channel, place in rows if server not in lost else ():
            count = last_ns = 0
            if len(vhosts) == 1:
                key = (server, *vhosts, queue)
                count, last_ns = _published_since(context, key, place.ts_ns)
            since = f" in the {duration(last_ns - place.ts_ns)} since"
            if count < STOPPED_PUBLISHED or last_ns - place.ts_ns < STOPPED_NS:
                count, since = 0, ""
                if (server, queue) not in used:
                    count = _left_waiting(context, server, queue, until_ns - STOPPED_NS)
            if count >= STOPPED_PUBLISHED:
                detail = (
                    f"{words}; {count} or more messages were published for {queue_text(queue)}"
                    f"{since}, and nobody got one"
                )
                about: Any = {"channel": channel, "subject": queue}
                report_at(context, place, "credit-not-renewed", detail, **about)


def _left_waiting(context: RuleContext, server: str, queue: str, until_ns: int) -> int:
    """Messages that came into a queue over links until a time, where none came out over links."""
    if _came_over_links(context, (server, "", queue)):
        return 0
    sent = context.shared.get(SENT, {}).get((server, queue), ())
    return sum(count for count, last_ns in sent if last_ns <= until_ns)


# private queues


def _lose(context: RuleContext, only: str | None, how: str) -> None:
    """Private queues end with their last consumer, here one of a channel or all of them, and so do
    addresses of direct reply-to.
    """
    own, channel = context.memory.get("own queues", {}), context.channel
    if only is None:
        cancels = context.memory.get(CANCELLED, {})
        names = {
            consumer.queue
            for tag, consumer in channel.by_tag.items()
            if (channel.number, tag) not in cancels
        }
    else:
        names = {channel.by_tag[only].queue} if only in channel.by_tag else set()
    gone = [name for name in names if own.get(name) and not _stays(context, name, only)]
    _go(context, gone, channel.number if DIRECT in names else None, context.ts_ns, how)


def deleted(context: RuleContext) -> None:
    """queue.delete: a private queue goes."""
    octets, name = context.frame.arguments_json or b"", context.queue
    if name and name in context.memory.get("own queues", ()) and b'"if_unused":true' not in octets:
        _go(context, [name], None, context.ts_ns, "which was deleted")


@requires("own queues", "calls")
def over(context: RuleContext) -> None:
    """connection-ends: its private queues are gone."""
    session, gone = context.session, context.memory.get(GONE, ())
    if session.closed_by is not None or session.connection.conversation.ended is not None:
        names = [name for name in context.memory.get("own queues", ()) if name not in gone]
        _go(context, names, NEVER, end_ns(context), "whose connection ended")


def _go(
    context: RuleContext, names: Sequence[str], channel: int | None, ts_ns: int | None, how: str
) -> None:
    """Private queues are gone, and the callers by direct reply-to of a channel, `NEVER` for all."""
    vhost, calls = vhost_of(context), context.memory.get("calls", {})
    left = [
        name for name, call in calls.items() if call.direct and channel in (call.channel, NEVER)
    ]
    if ts_ns is None or vhost is None or not (names or left):
        return
    owner = f"'{client_of(context).application or 'a connection'}' ({context.place.client})"
    context.memory.setdefault(GONE, set()).update(names)
    asked = [(*calls[name].route, calls[name].ts_ns) for name in left[:MAX_LISTED]]
    for name in left:
        calls[name] = calls[name]._replace(direct=False)
    server = queue_key(context, "")[0]
    contribute(context, judge_gone, server, vhost, names, asked, ts_ns, owner, how)


def judge_gone(
    context: RuleContext,
    server: str,
    vhost: str,
    names: Sequence[str],
    asked: Sequence[Any],
    ts_ns: int,
    owner: str,
    how: str,
) -> None:
    """Take private queues that are gone, of very many the latest, and callers that gave up."""
    gone = context.shared.setdefault(GONE, OrderedDict())
    for name in names:
        gone.pop((server, vhost, name), None)
        gone[server, vhost, name] = (ts_ns, owner, how)
        if len(gone) > MAX_KEPT:
            gone.popitem(last=False)
    for exchange, key, asked_ns in asked:
        route = server, vhost, exchange or "", key or ""
        known: list[Any] = remembered(context, GAVE_UP, route, list)
        if len(known) < MAX_LISTED:
            known.append((ts_ns, asked_ns, owner, how))


class _Unheard(NamedTuple):
    """Messages that a client published for a queue that was gone."""

    one: Any
    messages: int
    queue: str
    gone_ns: int
    owner: str
    how: str


def _judge_private(context: RuleContext, lost: set[str]) -> None:
    """Report messages published for private queues that have ended."""
    gone, again = context.shared.get(GONE, {}), context.shared.get("queues of routes", {})
    found: dict[str, list[_Unheard]] = {}
    for (*at, exchange, queue), rows in context.shared.get(PUBLISHED, {}).items() if gone else ():
        gone_ns, *words = gone.get((*at, queue), (0, ""))
        if exchange or not gone_ns or at[0] in lost or again.get((*at, queue), (0,))[0] > gone_ns:
            continue
        for one in () if got_on(context, (*at, exchange, queue), gone_ns) else read_all(rows):
            _add(found, one, queue_text(queue), gone_ns, *words)
    _add_direct(context, lost, found)
    for listed in found.values():
        first = min(listed, key=lambda row: int(row.one.last_ns))
        count = sum(row.messages for row in listed)
        detail = (
            f"{first.one.who} published {number_of(count, 'message')} for "
            f"{number_of(len(listed), 'private queue')} that had gone: {first.queue} of "
            f"{first.owner}, {first.how} {duration(first.one.last_ns - first.gone_ns)} before"
        )
        last = max(row.one.last_number for row in listed)
        report_at(context, first.one.last_place, "rpc-caller-gone", detail, count, last)


def _add(
    found: dict[str, list[_Unheard]], one: Any, queue: str, gone_ns: int, owner: str, how: str
) -> None:
    """Add a client's publishes for a queue after its end."""
    count = known_after(one.total, one.steps, gone_ns) or int(one.last_ns > gone_ns)
    if count and not one.mandatory:
        rows = found.setdefault(one.place.connection_id, [])
        rows.append(_Unheard(one, count, queue, gone_ns, owner, how))


def _add_direct(context: RuleContext, lost: set[str], found: dict[str, list[_Unheard]]) -> None:
    """Add undelivered answers by direct reply-to, of servers that got such a caller's request.

    The capture does not show the address that the broker gives to the caller's channel: each caller
    explains one address, in time order.
    """
    callers: dict[tuple[str, ...], list[Any]] = {}
    for route, rows in context.shared.get(GAVE_UP, {}).items():
        for server in {got.consumer[0] for got in got_on(context, route, None)}:
            callers.setdefault((*route[:2], server), []).extend(rows)
    answers = [
        (name, one)
        for name, rows in (context.shared.get(PUBLISHED, {}) if callers else {}).items()
        if not name[2] and name[3].startswith(f"{DIRECT}.") and name[0] not in lost
        for one in read_all(rows)
    ]
    for listed in callers.values():
        listed.sort()
    for name, one in sorted(answers, key=lambda row: int(row[1].last_ns)):
        waiting = callers.get((*name[:2], one.place.connection_id), [])
        for caller in waiting:
            gone_ns, asked_ns, *words = caller
            if asked_ns < one.last_ns and gone_ns < one.last_ns:
                if not got_on(context, name, gone_ns):
                    waiting.remove(caller)
                    _add(found, one, "direct reply-to", gone_ns, *words)
                break


# queues that are not there

_NO_QUEUE = re.compile("no queue '(.*)' in vhost '")


@where(EXTENDED)
def expiring(context: RuleContext) -> None:
    """queue.declare: note for how long a queue stays unused."""
    frame = context.frame
    octets = frame.arguments_json or b""
    if b'"x-expires"' not in octets or b'"passive":true' in octets or not frame.queue:
        return
    unused_ms = table_of(read(octets), "arguments").get("x-expires")
    if isinstance(unused_ms, int) and context.ts_ns is not None:
        key = queue_key(context, frame.queue)
        who = client_of(context).application or client_of(context).host
        words = f"declared with x-expires {unused_ms} in packet {context.number} by {who}"
        contribute(context, judge_expiring, key, unused_ms, context.ts_ns, words)


def judge_expiring(
    context: RuleContext, key: Sequence[str], unused_ms: int, ts_ns: int, words: str
) -> None:
    """Take a queue that goes when it is not used."""
    expiring: list[Any] = remembered(context, EXPIRING, tuple(key), list)
    expiring[:] = [unused_ms, ts_ns, words]


@where(BY_BROKER)
def absent(context: RuleContext) -> None:
    """channel.close: the broker has no such queue."""
    _, text, _ = read_reason(context.frame.arguments_json)
    found = _NO_QUEUE.search(text or "")
    if found is not None:
        key, number = queue_key(context, found[1]), context.channel.number
        contribute(context, judge_no_queue, key, number, context.place)


def judge_no_queue(
    context: RuleContext, key: Sequence[str], channel: int, place: Sequence[Any]
) -> None:
    """Take a place where a queue was not there."""
    places: list[Any] = remembered(context, ABSENT, tuple(key), list)
    if len(places) < MAX_LISTED:
        places.append((channel, Place(*place)))


def _judge_expired(context: RuleContext, lost: set[str]) -> None:
    """Report queues that expired after a long time without use."""
    for key, (unused_ms, ts_ns, words) in context.shared.get(EXPIRING, {}).items():
        for channel, place in context.shared.get(ABSENT, {}).get(key, ()):
            since_ns = (place.ts_ns or 0) - ts_ns
            deleted = key in context.shared.get("deletions", {})
            if since_ns >= unused_ms * MS and not deleted and key[0] not in lost:
                detail = f"{queue_text(key[2])} was {words}, {duration(since_ns)} before"
                report_at(context, place, "queue-expired", detail, channel=channel, subject=key)


# messages that expire

_KEPT = (b'"x-dead-letter-exchange"', b'"x-max-length', b'"x-expires"', b'"x-queue-type":"stream"')
"""Arguments of queues with which messages go elsewhere, or leave them otherwise too."""


@where(EXTENDED)
def asks(context: RuleContext) -> None:
    """queue.declare: remember its arguments until the answer, when its row may be gone."""
    frame = context.frame
    octets = frame.arguments_json
    if not octets or b'"passive":true' in octets:
        return
    if frame.flags & NO_WAIT:  # no answer will come
        _note_arguments(context, octets)
        return
    key = context.channel.number, frame.number, frame.row
    waiting = context.memory.setdefault(ARGUMENTS, {})
    if len(octets) > MAX_ARGUMENTS_BYTES or remember(context, waiting, key, octets) is None:
        context.memory[HIDDEN] = True


@requires(ARGUMENTS)
def declared(context: RuleContext) -> None:
    """queue.declare-ok: what the arguments say of messages in the queue."""
    request = context.request
    if request is None:
        return
    key = context.channel.number, request.number, request.row
    octets = drop(context, context.memory[ARGUMENTS], key)
    if octets is not None:
        _note_arguments(context, octets)


def _note_arguments(context: RuleContext, octets: bytes) -> None:
    """The queue of a context's frame was declared with these arguments."""
    if context.frame.queue:
        arguments = table_of(read(octets), "arguments")
        note_limit(context, octets, arguments)
        note_target(context, arguments)
        note_lives(context, octets, arguments)


def note_lives(context: RuleContext, octets: bytes, arguments: dict[str, Any]) -> None:
    """A queue was declared with these arguments: note how long messages live in it."""
    lives_ms = arguments.get("x-message-ttl")
    if isinstance(lives_ms, int):
        elsewhere = any(name in octets for name in _KEPT)
        key = queue_key(context, context.frame.queue)
        contribute(context, judge_limited, key, None if elsewhere else lives_ms)


def judge_limited(context: RuleContext, key: Sequence[str], lives_ms: int | None) -> None:
    """Take a queue whose messages expire; None where they do not just vanish."""
    lives: set[int | None] = remembered(context, LIVES, tuple(key), set)
    lives.add(lives_ms)


def _judge_lives(context: RuleContext, hidden: Collection[str]) -> None:
    """Report queues that got more messages, of those that would have expired, than came out."""
    shared = context.shared
    doubted = (shared.get("deletions", {}), shared.get(TEMPORARY, {}))
    for key, lives in shared.get(LIVES, {}).items():
        purged = None in shared.get("limits of routes", {}).get(key, ())
        doubt = purged or any(key in one for one in doubted) or _came_over_links(context, key)
        if key[0] in hidden or None in lives or doubt:
            continue
        until_ns = (context.ts_ns or 0) - max(lives) * MS - UNDER_WAY_NS
        rows = [one for _, publishes in _published_for(context, key) for one in publishes]
        came = sum(
            one.total if one.last_ns <= until_ns else known_until(one.steps, until_ns)
            for one in rows
        )
        taken = delivered_to(context, key)
        if came - taken >= STOPPED_PUBLISHED:
            first, _, last = extent(rows)
            detail = (
                f"{queue_text(key[2])} was declared with x-message-ttl {max(lives)} and without a "
                f"dead-letter exchange; {number_of(came, 'message')} came into it until they had "
                f"to expire, and {number_of(taken, 'message')} to consumers: {came - taken} or "
                f"more are gone"
            )
            many = (came - taken, last)
            report_at(context, first.place, "messages-dropped", detail, *many, subject=key[2])


def _judge_misnamed(context: RuleContext, hidden: Collection[str]) -> None:
    """Report messages for a queue without declaration or consumer, if a similar one is read."""
    shared = context.shared
    published, read = shared.get(PUBLISHED, {}), shared.get("consumers of queues", {})
    known = {*shared.get("queues of routes", {}), *read, *shared.get(GONE, {})}
    fed = {
        (*at[:2], queue)
        for at, exchange in shared.get("exchanges of routes", {}).items()
        for _, queue, _ in exchange.bindings
    }
    fed.update((*at, name) for *at, exchange, name in published if not exchange)
    idle = [
        key
        for key in read
        if key[0] not in hidden and key not in fed and len(key[2]) >= NAMED_BYTES
    ]
    for key, rows in published.items() if 0 < len(idle) <= MAX_LISTED else ():
        at, name = key[:2], key[3]
        if key[2] or (*at, name) in known or got_on(context, key, 0):
            continue
        if _came_over_links(context, (*at, name)):
            continue
        like = [queue for *there, queue in idle if tuple(there) == at and _is_like(queue, name)]
        publishes = read_all(rows) if len(like) == 1 else ()
        if not publishes or any(one.mandatory for one in publishes):
            continue
        first, count, last = extent(publishes)
        if count >= STOPPED_PUBLISHED:
            detail = (
                f"{number_of(count, 'message')} to the default exchange with routing key "
                f"'{name}': the capture declares no such queue, but '{like[0]}', which has a "
                f"consumer and gets nothing"
            )
            report_at(context, first.place, "publishes-unbound", detail, count, last, subject=key)


def _is_like(one: str, other: str) -> bool:
    """True if names differ by one letter, or two letters have changed places."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    swapped = len(one) == 2 and one == other[::-1]
    return (swapped or max(len(one), len(other)) == 1) and not any(map(str.isdigit, one + other))


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (temporary, expiring, asks),
    "queue.declare-ok": (declared,),
    "queue.delete": (deleted,),
    "basic.cancel": (cancelled,),
    "channel.close": (channel_closed, absent),
    "connection-ends": (ended, over),
    "capture-ends": (judge_unattended,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "link-ends": (starved,),
    "connection-ends": (unseen,),
}
