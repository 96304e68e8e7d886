# cython: language_level=3, boundscheck=True, nonecheck=True, annotation_typing=False
"""Messages without a reader: dead letters, notifications, results; and faulty delays.

Messages that a queue dead-letters are not on the wire before they are consumed. But a client's
rejection is, and so are the messages that frameworks put aside. A queue is reported as unread only
if all connections to its broker began in the capture, and only for messages that waited for
`WAITED_NS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import cython
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import BY_BROKER

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read_reason
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.format import exchange_text, names_text, number_of, queue_text, route
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.routes import (
    DELIVERED,
    MAX_LISTED,
    PUBLISHED,
    extent,
    got_on,
    is_given_up,
    note,
    queues_of,
    read_all,
)
from amqpsniff.session.rules.shared_state import (
    contribute,
    remembered,
    report_at,
)

WAITED_NS = 10 * SECOND_NS
"""Time in a queue after which a message that nobody reads is told."""

REJECTED_TIMES = 5
"""Deliveries from a queue that were rejected for good, from which on it is told."""

CODES = {
    "dead-letter": "dead-letter-unread", "notification": "notifications-unread",
    "result": "task-result-unread",
}  # fmt: skip
"""By role of messages (`packs.catalogue.ROLES`): what is said where nobody reads them."""

_NOTIFICATIONS = re.compile("(^|_)notifications[._]")
"""Routing keys of notifications, which in oslo.messaging look like calls."""

_NO_EXCHANGE = re.compile("no exchange '(.*)' in vhost '")

READ, REJECTED, TARGETS, ABSENT = "queues read", "rejected", "dead letters to", "exchanges absent"
"""Names in `RuleContext.memory` and in `RuleContext.shared`: queues that a client reads; of queues
how many deliveries were rejected and where the first was; exchange and routing key of their dead
letters; exchanges that the broker says it has not, and where."""

NOTED = (READ, REJECTED, TARGETS, ABSENT)

DELAYED = "x-delayed-message"

CELERY_DELAYS = "celery_delayed_delivery"
"""The exchange from which Celery's native delays come back to the exchanges of tasks."""

Seen = dict[tuple[str, ...], list[Any]]
"""Publishes by (server, virtual host, exchange, routing key)."""


def reads(context: RuleContext) -> None:
    """basic.consume, basic.get: a client reads a queue."""
    if context.queue:
        note(context, READ, context.queue, True)


def note_target(context: RuleContext, arguments: dict[str, Any]) -> None:
    """A queue was declared with these arguments: note where its dead letters go."""
    names = (arguments.get(f"x-dead-letter-{name}") for name in ("exchange", "routing-key"))
    exchange, key = (name if isinstance(name, str) else None for name in names)
    if exchange is not None:
        note(context, TARGETS, context.frame.queue, (exchange, key))


def rejected(context: RuleContext) -> None:
    """discarded: a delivery becomes a dead letter, or is gone."""
    entry = context.facts["entry"]
    queue = None if entry is None or entry.consumer is None else entry.consumer.queue
    if queue:
        first = tuple(context.place)
        count, place, _ = context.memory.get(REJECTED, {}).get(queue, (0, first, None))
        note(context, REJECTED, queue, (count + 1, place, context.number))


@where(BY_BROKER)
def refused(context: RuleContext) -> None:
    """channel.close: the broker has no such exchange."""
    _, text, _ = read_reason(context.frame.arguments_json)
    found = _NO_EXCHANGE.search(text or "")
    if found is not None:
        note(context, ABSENT, found[1], tuple(context.place))


@requires(*NOTED)
def ended(context: RuleContext) -> None:
    """connection-ends: contribute the notes about its queues."""
    memory = context.memory
    noted = [list(memory[name].items()) if name in memory else () for name in NOTED]
    contribute(context, judge_noted, queue_key(context, "")[:2], noted)


def judge_noted(context: RuleContext, at: Sequence[str], noted: Iterable[Any]) -> None:
    """Take a connection's notes about the queues of a virtual host."""
    for name, rows in zip(NOTED, noted, strict=True):
        for key, value in rows:
            known: list[Any] = remembered(context, name, (*at, key), list)
            if value not in known and len(known) < MAX_LISTED:
                known.append(value)


def judge_unread(context: RuleContext) -> None:
    """capture-ends: queues with unread messages, and other findings from routes."""
    shared = context.shared
    if is_given_up(context):
        return
    hidden = shared.get("hidden from routes", {})
    published: Seen = shared.get(PUBLISHED, {})
    judge_mandatory(context, published)
    judge_mixed(context, published)
    judge_direct(context, published)
    found: dict[tuple[str, ...], dict[str, list[tuple[int, Place, int]]]] = {}
    for key, rows in published.items():
        if not _has_role(rows) or key[0] in hidden:
            continue
        roles = {role for row in rows for role in row.roles}.intersection(CODES)
        if not roles or ("notification" in roles and not _NOTIFICATIONS.search(key[3])):
            continue
        places = [(publish.total, publish.place, publish.last_number) for publish in read_all(rows)]
        for queue in _unread(context, key[:2], key[2], key[3]):
            for role in roles:
                listed = found.setdefault((CODES[role], *key[:2]), {}).setdefault(queue, [])
                listed += places
    targets = shared.get(TARGETS, {})
    for (*at, queue), rows in shared.get(REJECTED, {}).items():
        if at[0] in hidden:
            continue
        dead = [(count, Place(*place), last) for count, place, last in rows]
        if (*at, queue) not in targets:
            _report_rejected(context, queue, dead)
        for exchange, key in targets.get((*at, queue), ()):
            for target in _unread(context, at, exchange, queue if key is None else key):
                listed = found.setdefault((CODES["dead-letter"], *at), {}).setdefault(target, [])
                listed += dead
    for (code, *_), by_queue in found.items():
        _report(context, code, by_queue)
    judge_absent(context, hidden)


@cython.cfunc
def _has_role(rows: Iterable[Any]) -> bool:
    """True if messages on a route are something to a framework."""
    for row in rows:  # noqa: SIM110 - compiled, this is a loop
        if row.roles:
            return True
    return False


def _unread(context: RuleContext, at: Sequence[str], exchange: str, key: str) -> set[str]:
    """Queues that messages on a route reach and stay in; none if one of them is read, or messages
    of the route were delivered.

    A queue that has a dead-letter exchange itself hands them on, as one that delays retries does.
    """
    if got_on(context, (*at, exchange, key), 0):
        return set()
    queues = queues_of(context, (at[0], at[1]), exchange, key)
    known, targets = context.shared.get(READ, {}), context.shared.get(TARGETS, {})
    if any((*at, queue) in known for queue in queues):
        return set()
    return {queue for queue in queues if (*at, queue) not in targets}


def _report(
    context: RuleContext, code: str, by_queue: dict[str, list[tuple[int, Place, int]]]
) -> None:
    """Report the unread queues of a virtual host."""
    rows = [row for listed in by_queue.values() for row in listed]
    _, place, _ = min(rows, key=lambda row: row[1].ts_ns or 0)
    if (context.ts_ns or 0) - (place.ts_ns or 0) < WAITED_NS:
        return
    count = sum(row[0] for row in rows)
    queues = "queue" if len(by_queue) == 1 else "queues"
    detail = (
        f"{number_of(count, 'message')} for {queues} {names_text(by_queue.keys())}, which nobody "
        f"reads in the capture"
    )
    report_at(context, place, code, detail, count, max(row[2] for row in rows))


def _report_rejected(context: RuleContext, queue: str, rows: list[tuple[int, Place, int]]) -> None:
    """Report deliveries that were rejected for good, by the captured declarations."""
    count = sum(row[0] for row in rows)
    if count >= REJECTED_TIMES:
        _, place, _ = min(rows, key=lambda row: row[1].ts_ns or 0)
        detail = (
            f"{number_of(count, 'delivery', 'deliveries')} from {queue_text(queue)} without "
            f"requeue; the capture declares no dead-letter exchange for it"
        )
        last = max(row[2] for row in rows)
        report_at(context, place, "deliveries-rejected", detail, count, last, subject=queue)


def judge_mandatory(context: RuleContext, published: Seen) -> None:
    """Publishes with the mandatory flag to a delayed message exchange."""
    found: dict[tuple[str, ...], list[Any]] = {}
    known = context.shared.get("exchanges of routes", {})
    delayed = {name for name, at in known.items() if DELAYED in at.types}
    for key, rows in published.items() if delayed else ():
        if key[:3] in delayed:
            found.setdefault(key[:3], []).extend(
                publish for publish in read_all(rows) if publish.mandatory
            )
    for (*_, exchange), publishes in found.items():
        if publishes:
            first, count, last = extent(publishes)
            detail = f"{first.who} publishes to {exchange_text(exchange)}, {count} times"
            about = exchange
            report_at(context, first.place, "delayed-mandatory", detail, count, last, subject=about)


def judge_mixed(context: RuleContext, published: Seen) -> None:
    """Tasks of Celery in both protocols on one route."""
    delivered = context.shared.get(DELIVERED, {})
    for key, rows in published.items():
        if not (_has_role(rows) or _has_role(delivered.get(key, ()))):
            continue
        got = got_on(context, key, 0)
        roles = {role for row in (*rows, *got) for role in row.roles}
        if roles >= {"task", "task-v1"}:
            old = [publish for publish in read_all(rows) if "task-v1" in publish.roles] or read_all(
                rows
            )
            first, _, _ = extent(old)
            sender = f"; {first.who} publishes protocol 1" if "task-v1" in first.roles else ""
            detail = f"tasks in protocol 1 and in protocol 2 go to {route(*key[2:])}{sender}"
            report_at(context, first.place, "celery-protocol-mixed", detail, subject=key)


def judge_absent(context: RuleContext, hidden: dict[str, Any]) -> None:
    """Queues that dead-letter to an exchange which does not exist."""
    known = context.shared.get("exchanges of routes", {})
    absent = context.shared.get(ABSENT, {})
    for (*at, queue), targets in context.shared.get(TARGETS, {}).items():
        for exchange in {exchange for exchange, _ in targets}:
            places = absent.get((*at, exchange))
            there = known.get((*at, exchange))
            if places and at[0] not in hidden and (there is None or not there.types):
                place = Place(*min(places, key=lambda one: one[2] or 0))
                detail = f"{queue_text(queue)} dead-letters to {exchange_text(exchange)}"
                about = (queue, exchange)
                report_at(context, place, "dead-letter-target-missing", detail, subject=about)


def judge_direct(context: RuleContext, published: Seen) -> None:
    """Queues of Celery's tasks at a direct exchange, where native delays are in use."""
    known = context.shared.get("exchanges of routes", {})
    for (*at, source), exchange in known.items():
        delays = known.get((*at, CELERY_DELAYS))
        if delays is None or exchange.types != {"direct"}:
            continue
        found = {}
        for key, queue, _ in exchange.bindings:
            rows = published.get((*at, "", queue)) or published.get((*at, source, key), [])
            if queue and any("task" in row.roles for row in rows):
                found[queue] = extent(read_all(rows))[0].place
        if found and not any(further == source for *_, further in delays.bindings):
            place = min(found.values(), key=lambda one: one.ts_ns or 0)
            detail = f"{names_text(found)} at {exchange_text(source)}"
            code = "celery-delay-direct-exchange"
            report_at(context, place, code, detail, len(found), subject=source)


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (reads,),
    "basic.get": (reads,),
    "discarded": (rejected,),
    "channel.close": (refused,),
    "connection-ends": (ended,),
    "capture-ends": (judge_unread,),
}
