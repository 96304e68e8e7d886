# cython: language_level=3, boundscheck=True, nonecheck=True, annotation_typing=False
"""Traces: clients that break them, that use different formats, or that put one trace into unrelated
messages.

Messages with a trace context are counted as they come. The context itself is read in some of a
client's publishes (`looked-at`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.json_objects import read_object
from amqpsniff.decode.meanings import taken
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.peers import client_of
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.shared_state import (
    contribute,
    first_place,
    remembered,
    report_at,
    report_once,
)
from amqpsniff.units import duration

MAX_FORMATS = 32
"""Sets of conventions of tracing that are remembered of a virtual host."""

TRACED = 3
"""Messages with a trace's context that a client received, and others that it published without
one, from which on it loses traces."""

TRACED_MIDSTREAM = 30
"""The same of a client whose connection began before the capture."""

NEVER = 1 << 62
"""The same of one of which frames may be missing."""

UNSAMPLED = 30
"""Traces of a client, none of which is kept, from which on it is told: of ten that are kept at a
rate of one in ten all are missing by chance one time in twenty-five."""

REUSED = 64
REUSED_NS = 300 * SECOND_NS
"""Messages that were looked at, over such a time, from which on one trace has too many."""

TRACER = "trace-context-never"
"""Code, and name in `RuleContext.memory` of where a message has headers of a tracer only."""

LOOKED = "contexts looked at"
"""Name in `RuleContext.memory` of a `_Looked`."""


class _Looked:
    """Contexts that a client published: how often the trace changed, how many are to be kept, how
    many were looked at; of the trace that most have, if one has: how many, where the first is, and
    the last.
    """

    def __init__(self) -> None:
        self.traces = self.kept = self.looked = self.votes = self.count = 0
        self.last_id = self.most_id = ""
        self.first: Place | None = None
        self.last: Place | None = None

    def add(self, trace_id: str, kept: bool, place: Place) -> None:
        """One more."""
        self.looked += 1
        self.kept += kept
        self.traces += trace_id != self.last_id
        self.last_id = trace_id
        if not self.votes:
            self.most_id, self.count, self.first = trace_id, 0, place
        if trace_id == self.most_id:
            self.votes, self.count, self.last = self.votes + 1, self.count + 1, place
        else:
            self.votes -= 1


def field_of(context: RuleContext, name: str) -> Any:
    """looked-at: a value of the message's headers; None for none."""
    rows, row = context.facts["rows"], context.facts["row"]
    headers = read_object(rows.headers.bytes_of(row))
    for source in context.facts["fields"].get(name, ()):
        value = headers.get(source.name) if source.place == "header" else None
        if value is not None:
            value = taken(source, value, NULL)
            if value is not None:
                return value
    return None


def look(context: RuleContext) -> None:
    """looked-at: the context of a trace."""
    trace_id = field_of(context, "trace_id")
    if isinstance(trace_id, str):
        looked: _Looked = context.memory.setdefault(LOOKED, _Looked())
        looked.add(trace_id, field_of(context, "unsampled") is None, context.place)


@requires(LOOKED)
def judge_reused(context: RuleContext) -> None:
    """connection-ends: a trace that most messages have, for minutes."""
    looked: _Looked = context.memory[LOOKED]
    first, last = looked.first, looked.last
    if first is None or last is None or looked.count < max(REUSED, looked.looked // 2 + 1):
        return
    lasted_ns = (last.ts_ns or 0) - (first.ts_ns or 0)
    if first.ts_ns and lasted_ns >= REUSED_NS:
        words = (
            f"{client_of(context).words} published trace {looked.most_id} in {looked.count} of "
            f"{looked.looked} messages that were looked at, for {duration(lasted_ns)}"
        )
        key = client_of(context).host, client_of(context).application
        report_once(context, "trace-id-reused", key, words.__str__, first)


def note_traces(context: RuleContext) -> None:
    """connection-ends: messages with a trace's context, and publishes without one."""
    session, memory, client = context.session, context.memory, client_of(context)
    traced = session.traced_delivered or session.traced_published
    if not traced and TRACER not in memory and LOOKED not in memory:
        if not (session.untraced_published and client.text("connection_name")):
            return
    formats = memory.get("trace formats")
    if formats:
        server, vhost, _ = queue_key(context, "")
        place, words = first_place(context), client.words
        contribute(context, judge_formats, server, vhost, formats, place, words)
    looked: _Looked = memory.get(LOOKED) or _Looked()
    counts = (session.traced_delivered, session.traced_published, session.untraced_published,
              looked.traces, looked.kept)  # fmt: skip
    if TRACER in memory:
        key = client.host, client.application
        contribute(context, judge_tracer, key, memory[TRACER], client.words)
    name = client.text("connection_name") if any(counts) else None
    if not (counts[0] or counts[1] or (name and counts[2])):
        return
    key = (client.host, name) if name else session.connection.name()[0]
    needed = TRACED if context.certain else TRACED_MIDSTREAM if context.complete else NEVER
    place, words = first_place(context), client.words
    contribute(context, judge_traces, key, counts, needed, place, words)


class _Traces:
    """Of a client's connections: messages delivered with a context, published with and without;
    traces of those looked at, and messages of such that are to be kept.
    """

    def __init__(self) -> None:
        self.counts = [0, 0, 0, 0, 0]
        self.needed = TRACED
        self.place: Place | None = None
        self.words = ""


def judge_traces(
    context: RuleContext,
    key: Any,
    counts: Sequence[int],
    needed: int,
    place: tuple[Any, ...],
    words: str,
) -> None:
    """A connection of a client is over."""
    if isinstance(key, list):
        key = tuple(key)
    known = remembered(context, "traces", key, _Traces)
    known.counts = [before + more for before, more in zip(known.counts, counts, strict=True)]
    known.needed = max(known.needed, needed)
    if known.place is None:
        known.place, known.words = Place(*place), words


def judge_lost_traces(context: RuleContext) -> None:
    """capture-ends: clients that get the context of traces and never hand it on, or of whose traces
    nothing is kept; clients with a tracer where no message has a context.
    """
    every = context.shared.get("traces", {}).values()
    for known in every:
        delivered, traced, untraced, traces, kept = known.counts
        if known.place and traces >= UNSAMPLED and not kept:
            words = f"{known.words}: none of {traces} traces that were looked at is to be kept"
            report_at(context, known.place, "trace-unsampled", words)
        if known.place and min(delivered, untraced) >= known.needed and not traced:
            words = (
                f"{known.words} received {number_of(delivered, 'message')} with the context of a "
                f"trace and published {number_of(untraced, 'message')} without one"
            )
            report_at(context, known.place, "trace-context-lost", words)
    if not any(known.counts[0] or known.counts[1] for known in every):
        for place, words in context.shared.get(TRACER, {}).values():
            report_at(context, place, TRACER, words)


def judge_tracer(context: RuleContext, key: Any, place: tuple[Any, ...], words: str) -> None:
    """A client has messages with headers that tracers write besides a context."""
    remembered(context, TRACER, tuple(key), lambda: (Place(*place), words))


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
    "looked-at": (look,),
    "connection-ends": (note_traces, judge_reused),
    "capture-ends": (judge_lost_traces, judge_mixed_traces),
}
