# cython: language_level=3, boundscheck=True, nonecheck=True
"""Declarations, bindings and polls that a client repeats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import cython
from cython.cimports.amqpsniff.session.method_frame import MethodFrame
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import EXTENDED, PASSIVE
from cython.cimports.amqpsniff.session.rules.shared_state import remember, remembered

from amqpsniff.decode.method_layout import CUT, FLAGS_CUT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.format import exchange_text, name_at, queue_text
from amqpsniff.session.rules.peers import client_of
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.shared_state import (
    contribute,
    drop,
    report_once,
)
from amqpsniff.units import duration, rate

REPEATED = 10
"""Repeated declarations from which on they are a habit, not the start of parts of a program."""

POLLS = 10
"""Polls of a queue's length from which on a rate says something."""

POLLS_PER_SECOND = 1
POLLED_NS = 3 * SECOND_NS
"""Time that polls last at least: the channels of a program ask once each when it starts."""

GETS = 20
"""Gets from a queue from which on a rate says something."""

GETS_PER_SECOND = 5

CHANGES = 20
"""Changes of queues and bindings from which on a rate says something."""

CHANGES_PER_SECOND = 5

DELAYS = 40
"""Queues that differ in how long they keep messages, from which on each delay has one: a ladder of
delays has 28 levels."""

_DIGITS = re.compile("[0-9]+")

DECLARES = ("queue.declare", "exchange.declare", "queue.bind", "exchange.bind")


@cython.cclass
class Series:
    """Alike events of a connection: how many, where the first and the last are."""

    count: cython.longlong
    others: cython.longlong
    number: Any
    ts_ns: Any
    last: Any
    last_ns: Any

    def __init__(self, context: RuleContext) -> None:
        """None of them yet; the context is that of the first."""
        self.count = self.others = 0
        self.number, self.ts_ns = context.number, context.ts_ns

    @cython.ccall
    def add(self, context: RuleContext) -> None:
        """One more."""
        self.count += 1
        self.last, self.last_ns = context.number, context.ts_ns

    @property
    def lasted_ns(self) -> int:
        """Time from the first to the last; 0 if unknown."""
        if self.ts_ns is None or self.last_ns is None:
            return 0
        lasted_ns: int = max(self.last_ns - self.ts_ns, 0)
        return lasted_ns

    @property
    def rate(self) -> float:
        """Number per second; 0 if unknown."""
        return (self.count - 1) * SECOND_NS / self.lasted_ns if self.lasted_ns else 0.0

    def report(self, context: RuleContext, code: str, detail: str) -> None:
        """Raise a finding that stands for all of them."""
        raised: dict[str, Any] = {"number": self.number, "ts_ns": self.ts_ns}
        context.report(code, detail, **raised, count=self.count, last=self.last)


# declarations


def note_declaration(context: RuleContext) -> None:
    """A declaration or binding; count one that was made before."""
    frame: MethodFrame = context.frame
    octets = frame.arguments_json
    if not octets or frame.flags & CUT or octets.find(b'"passive":true') >= 0:
        return
    if frame.name == "queue.declare" and not frame.queue:
        return  # each makes a queue with a name of its own
    memory = context.memory
    declared: Any = memory.get("declared")
    if declared is None:
        declared = memory["declared"] = {}
    subject, key = subject_of(frame), hash((frame.name, octets))
    known = declared.get(subject)
    if known is None:
        remember(context, declared, subject, {key})
        return
    if key not in known:
        if len(known) < REPEATED:
            known.add(key)
        return
    if "repeated" not in memory:
        memory["repeated"] = (Series(context), frame.name, subject)
    memory["repeated"][0].add(context)


def subject_of(frame: Any) -> tuple[str, Any]:
    """Subject of a declaration or binding: its queue, or its exchange."""
    if frame.name.startswith("queue."):
        return "queue", frame.queue
    return "exchange", name_at(frame.rows, "exchange", frame.row)


def forget_declaration(context: RuleContext) -> None:
    """A deletion or unbinding: a later declaration is a new one."""
    declared, subject = context.memory.get("declared", {}), subject_of(context.frame)
    for name in [subject] if context.frame.whole or subject[1] else list(declared):
        drop(context, declared, name)


@requires("repeated")
def judge_declarations(context: RuleContext) -> None:
    """connection-ends: more repeated declarations than one for two publishes."""
    series, method, (kind, name) = context.memory["repeated"]
    published, _ = context.messages
    if context.session.has_loss or series.count < REPEATED or 2 * series.count <= published:
        return
    named = queue_text(name) if kind == "queue" else exchange_text(name)
    detail = f"{series.count} repeated for {published} publishes, the first a {method} of {named}"
    answers = context.memory["waited"].by_method() if "waited" in context.memory else {}
    waited = sum(answers[method].took_ns for method in DECLARES if method in answers)
    if waited:
        detail += f"; {duration(waited)} of waiting for all declarations"
    series.report(context, "declaration-repeated", detail)


# queues for delays


@where(EXTENDED)
def note_delay(context: RuleContext) -> None:
    """queue.declare of a queue that dead-letters its messages after a time."""
    arguments, name = context.frame.arguments.get("arguments"), context.frame.queue
    if not isinstance(arguments, dict) or "x-dead-letter-exchange" not in arguments or not name:
        return
    delay_ms = arguments.get("x-message-ttl")
    stem = _DIGITS.sub("N", name)
    if isinstance(delay_ms, int) and stem != name:
        server, vhost, _ = queue_key(context, name)
        key, words = (server, vhost, stem), client_of(context).words
        contribute(context, judge_delay_queue, key, delay_ms, words, context.place)


def judge_delay_queue(
    context: RuleContext, key: Sequence[str], delay_ms: int, words: str, place: Any
) -> None:
    """A queue is declared for messages that wait for this time."""
    delays: set[int] = remembered(context, "delay queues", tuple(key), set)
    if len(delays) < DELAYS:
        delays.add(delay_ms)
    if len(delays) == DELAYS:
        detail = f"{words} declares a queue for each delay, like '{key[2]}': {DELAYS} or more"
        report_once(context, "delay-queues-many", tuple(key), lambda: detail, Place(*place))


# polls


@where(PASSIVE)
def note_poll(context: RuleContext) -> None:
    """queue.declare: count a passive one, which asks for the length of a queue."""
    _count(context, "polled", context.frame.queue)


def note_get(context: RuleContext) -> None:
    """basic.get: one more from its queue."""
    if not context.channel.broker_discards and context.frame.queue is not None:
        _count(context, "got", context.queue)


def note_empty(context: RuleContext) -> None:
    """basic.get-empty: the get was for nothing."""
    if context.request is not None and context.request.subject is not None:
        series = context.memory.get("got", {}).get(context.request.subject.queue)
        if series is not None:
            series.others += 1


def _count(context: RuleContext, name: str, queue: str | None) -> None:
    counted = context.memory.setdefault(name, {})
    series: Series | None = counted.get(queue) or remember(context, counted, queue, Series(context))
    if series is not None:
        series.add(context)


@requires("polled")
def judge_polls(context: RuleContext) -> None:
    """connection-ends: queues whose length is polled."""
    for queue, series in context.memory["polled"].items():
        long = series.lasted_ns >= POLLED_NS
        if long and series.count >= POLLS and series.rate > POLLS_PER_SECOND:
            detail = f"{queue_text(queue)}: {series.count} times, {rate(series.rate)} a second"
            series.report(context, "queue-length-polling", detail)


@requires("got")
def judge_gets(context: RuleContext) -> None:
    """connection-ends: queues whose messages are polled."""
    for queue, series in context.memory["got"].items():
        if series.count < GETS or series.rate < GETS_PER_SECOND:
            continue
        if 2 * series.others > series.count:
            detail = (
                f"{queue_text(queue)}: {series.count} gets, {rate(series.rate)} a second, "
                f"{series.others} of them in vain"
            )
            series.report(context, "get-polling", detail)


# changes


@cython.cclass
class Changes(Series):
    """Queues and bindings that a connection made and deleted; `queue` is that of the first."""

    queues_made: cython.longlong
    queues_deleted: cython.longlong
    bindings_made: cython.longlong
    bindings_deleted: cython.longlong
    queue: Any

    def __init__(self, context: RuleContext) -> None:
        """None of them yet; the context is that of the first."""
        super().__init__(context)
        self.queues_made = self.queues_deleted = self.bindings_made = self.bindings_deleted = 0
        self.queue = context.frame.queue


def note_change(context: RuleContext) -> None:
    """A queue or binding is made or deleted."""
    frame: MethodFrame = context.frame
    changes: Changes
    name: str = frame.name
    if name == "queue.declare":
        if frame.flags & FLAGS_CUT or (frame.arguments_json or b"").find(b'"passive":true') >= 0:
            return
    memory = context.memory
    changes = memory.get("changes")
    if changes is None:
        changes = memory["changes"] = Changes(context)
    changes.add(context)
    if name == "queue.declare":
        changes.queues_made += 1
    elif name == "queue.bind":
        changes.bindings_made += 1
    else:
        if name == "queue.delete":
            changes.queues_deleted += 1
        else:
            changes.bindings_deleted += 1
        memory["unmade"] = True


@requires("unmade")
def judge_changes(context: RuleContext) -> None:
    """connection-ends: queues or bindings are created and deleted at a high rate."""
    changes: Changes = context.memory["changes"]
    pairs = [
        min(changes.queues_made, changes.queues_deleted),
        min(changes.bindings_made, changes.bindings_deleted),
    ]
    if 2 * sum(pairs) < CHANGES or not changes.lasted_ns:
        return
    pace = 2 * sum(pairs) * SECOND_NS / changes.lasted_ns
    if pace > CHANGES_PER_SECOND:
        kinds = ("queues declared and deleted", "bindings made and removed")
        parts = [f"{count} {kind}" for count, kind in zip(pairs, kinds, strict=True) if count]
        named = f", the first of {queue_text(changes.queue)}" if changes.queue else ""
        detail = f"{', '.join(parts)}: {rate(pace)} changes a second{named}"
        changes.report(context, "topology-churn", detail)


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (note_declaration, note_poll, note_change, note_delay),
    "queue.bind": (note_declaration, note_change),
    "queue.delete": (forget_declaration, note_change),
    "queue.unbind": (forget_declaration, note_change),
    "exchange.declare": (note_declaration,),
    "exchange.bind": (note_declaration,),
    "exchange.delete": (forget_declaration,),
    "exchange.unbind": (forget_declaration,),
    "basic.get": (note_get,),
    "basic.get-empty": (note_empty,),
    "connection-ends": (judge_declarations, judge_polls, judge_gets, judge_changes),
}
