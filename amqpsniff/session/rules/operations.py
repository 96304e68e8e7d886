# cython: language_level=3, boundscheck=True, nonecheck=True
"""Destructive operations, and values made to exhaust a reader."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import DEEP, MANY_ENTRIES_BYTES, NESTED

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.method_layout import NO_WAIT
from amqpsniff.session.codes import SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import PUBLISH
from amqpsniff.session.rules.context import Rule, requires, where
from amqpsniff.session.rules.format import name_at, number_of, route
from amqpsniff.session.rules.peers import client_of, handshake, vhost_of
from amqpsniff.session.rules.queues import MAX_DELETIONS, deleted_by
from amqpsniff.session.rules.shared_state import contribute, remembered
from amqpsniff.spec import SIDES
from amqpsniff.units import octets

MANY_ENTRIES = 10_000
"""Entries of a field table that no application needs."""

HUGE_BODY = 512 << 20
"""Bytes of a body that RabbitMQ since 4.3 refuses by its header alone."""

MANY_CHANNELS = 1_000
CHANNELS_WITHIN_NS = SECOND_NS
"""Channels opened within this time that no program has a use for."""

_DELETED = {
    "queue.delete": "deleted queue",
    "queue.purge": "emptied queue",
    "exchange.delete": "deleted exchange",
    "queue.unbind": "unbound queue",
    "exchange.unbind": "unbound exchange",
}

DELETIONS = "deletions asked for"
"""Name in `RuleContext.memory` of those that the broker has not answered, by channel: the method,
packet, time and name of each."""

MAX_ASKED = 100
"""Deletions of one channel that wait for an answer; clients wait for each."""

_WITH_TABLES = (
    "connection.start",
    "connection.start-ok",
    "exchange.declare",
    "exchange.bind",
    "queue.declare",
    "queue.bind",
    "basic.consume",
)
"""Methods with tables, except those that delete."""

_OWN = "amq.gen"
"""Prefix of the names that the broker gives to temporary queues."""


def _deletes(context: RuleContext) -> None:
    channel = context.channel
    if channel.broker_discards:
        return
    arguments = context.frame.arguments
    names = (arguments.get(name) for name in ("queue", "destination", "exchange"))
    name = next((name for name in names if name), None)
    if name is None and not context.frame.whole:
        return
    name = name or channel.last_queue
    if not str(name).startswith(_OWN):
        what = f"'{name}'" if name else "(its name is not known)"
        deletion = (context.frame.name, context.number, context.ts_ns, what)
        deletions = context.memory.setdefault(DELETIONS, {}).setdefault(channel.number, [])
        if context.frame.flags & NO_WAIT or len(deletions) >= MAX_ASKED:
            _report_deletion(context, *deletion)
        else:
            deletions.append(deletion)


@requires(DELETIONS)
def _deleted(context: RuleContext) -> None:
    """The broker executed the oldest pending deletion of the channel."""
    deletions = context.memory[DELETIONS].get(context.channel.number)
    if deletions and f"{deletions[0][0]}-ok" == context.frame.name:
        _report_deletion(context, *deletions.pop(0))


@requires(DELETIONS)
def _not_answered(context: RuleContext) -> None:
    """channel-ends: deletions without an answer; one that the broker closed for was refused."""
    channel, session = context.channel, context.session
    refused = {
        closed.close_method for closed in (channel, session) if closed.closed_by == SIDES[SERVER]
    }
    for name, number, ts_ns, what in context.memory[DELETIONS].pop(channel.number, ()):
        if name in refused:
            break
        how = "; no answer was captured"
        _report_deletion(context, name, number, ts_ns, what, how)


def _report_deletion(
    context: RuleContext, name: str, number: int, ts_ns: int | None, what: str, how: str = ""
) -> None:
    detail = f"{client_of(context).words} {_DELETED[name]} {what}{how}"
    at: Any = {"number": number, "ts_ns": ts_ns}
    vhost = vhost_of(context)
    if name == "exchange.delete" and not how and vhost is not None and ts_ns is not None:
        where = client_of(context).server, vhost, what
        contribute(context, judge_exchange_deleted, where, ts_ns, deleted_by(context, number))
    context.report("operation-destructive", detail, **at, subject=(name, what))


def judge_exchange_deleted(
    context: RuleContext, exchange: Sequence[str], ts_ns: int, words: str
) -> None:
    """An exchange was deleted: its broker, virtual host and name in quotes; the cause as text."""
    deletions: deque[tuple[int, str]] = remembered(
        context, "exchanges deleted", tuple(exchange), lambda: deque(maxlen=MAX_DELETIONS)
    )
    deletions.append((ts_ns, words))


@where(NESTED)
def _declares(context: RuleContext) -> None:
    """A method with tables among its arguments."""
    arguments = context.frame.arguments
    tables = [value for value in arguments.values() if isinstance(value, (dict, list))]
    _judge(context, context.frame.name, "its tables", tables)


def _has_headers(context: RuleContext) -> None:
    """large-headers: a message's table, which is bounded only by the frame size."""
    rows, row, entry = context.facts["rows"], context.facts["row"], context.facts["entry"]
    octets = rows.headers.bytes_of(row)
    if len(octets) >= MANY_ENTRIES_BYTES or octets.count(b"{") + octets.count(b"[") > DEEP:
        what = "a publish" if entry is None or entry.kind == PUBLISH else "a delivery"
        way = route(name_at(rows, "exchange", row), name_at(rows, "routing_key", row))
        _judge(context, what, "its headers", [read_object(octets)], f" ({way})")


def _judge(context: RuleContext, what: str, place: str, tables: list[Any], more: str = "") -> None:
    """Report tables with too many entries, or too many of them inside each other."""
    entries = deep = 0
    level = tables
    while level:
        deep += 1
        entries += sum(map(len, level))
        each = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for some in each for value in some if isinstance(value, (dict, list))]
    if entries > MANY_ENTRIES:
        detail = f"{what} with {number_of(entries, 'entry', 'entries')} in {place}{more}"
        context.report("resource-bomb", detail)
    elif deep > DEEP:
        context.report("resource-bomb", f"{what} with {deep} tables inside each other{more}")


def _large(context: RuleContext) -> None:
    rows, row = context.facts["rows"], context.facts["row"]
    size = rows.body_size.at(row)
    if size > HUGE_BODY:
        context.report("resource-bomb", f"a content header declares {octets(size)}")


def _opens(context: RuleContext) -> None:
    """Channels opened in one second."""
    if context.ts_ns is None:
        return
    # a connection with one channel, of which there are very many, keeps its time alone
    known = context.memory.get("channels opened", (context.ts_ns, 0))
    since, count = known if isinstance(known, tuple) else (known, 1)
    if not 0 <= context.ts_ns - since < CHANNELS_WITHIN_NS:
        since, count = context.ts_ns, 0
    context.memory["channels opened"] = (since, count + 1) if count else since
    if count + 1 == MANY_CHANNELS:
        allowed = handshake(context, "connection.tune-ok").get("channel_max")
        most = f"; the negotiated channel-max allows {allowed}" if allowed else ""
        detail = f"{MANY_CHANNELS} channels opened within a second{most}"
        RuleContext(context.tracker, context.session, None, context.number, context.ts_ns).report(
            "resource-bomb", detail
        )


RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(_DELETED, (_deletes,)),
    **dict.fromkeys((f"{name}-ok" for name in _DELETED), (_deleted,)),
    **dict.fromkeys(_WITH_TABLES, (_declares,)),
    "queue.unbind": (_deletes, _declares),
    "exchange.unbind": (_deletes, _declares),
    "large-headers": (_has_headers,),
    "large": (_large,),
    "channel-begins": (_opens,),
    "channel-ends": (_not_answered,),
}
