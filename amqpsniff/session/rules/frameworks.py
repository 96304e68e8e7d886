"""What packs say of messages: operations that fail, are retried or late, traces that break off.

A pack says what a message means (`amqpsniff.packs`); what stands out of that is an event, `noted`.
Its findings stand for all connections of a capture: there is one for an operation and an exception,
and its count is that of the messages. Failures and retries are counted as they are published, so
that a message counts once where its delivery was captured too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from amqpsniff.decode.meanings import TRIES
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, RuleContext
from amqpsniff.session.rules.format import code_at, number_of
from amqpsniff.session.rules.peers import application, client_host, client_property, client_text
from amqpsniff.session.rules.shared_state import (
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
    published = code_at(context.facts["rows"].sender, context.facts["row"]) == 0
    for code in said["findings"]:
        if code not in _BY_OPERATION:
            who = (client_host(context), application(context))
            report_once(context, code, who, lambda: client_text(context))
    if published:
        _judge_published(context, said)
    if "not_before" in said or "delayed" in said:
        _note_delay(context, said)


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
    return f"{_operation(said)} failed with {said['error_type']}"


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


# delays


def _note_delay(context: RuleContext, said: dict[str, Any]) -> None:
    """A message that is to come later is published, or comes."""
    rows, row = context.facts["rows"], context.facts["row"]
    key = said.get("message_key")
    for column in (rows.message_id, rows.correlation_id):
        if key is None and column.has(row):
            key = column.bytes_of(row).decode(errors="replace")
    if key is None or context.ts_ns is None:
        return
    due_us = said.get("not_before")
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


# traces


def note_traces(context: RuleContext) -> None:
    """connection-ends: messages with a trace's context, and publishes without one."""
    session = context.session
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


RULES: dict[str, tuple[Rule, ...]] = {
    "noted": (noted,),
    "connection-ends": (note_traces,),
    "capture-ends": (judge_lost_traces,),
}
