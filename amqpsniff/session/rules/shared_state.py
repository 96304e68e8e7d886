# cython: language_level=3, boundscheck=True, nonecheck=True
"""State that rules keep, of a connection and across connections, in bounded memory.

Everything here is bounded: an attacker can open connections, and invent names, without end.
"""

from __future__ import annotations

import functools
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.findings.finding import Finding
from cython.cimports.amqpsniff.findings.log import FindingLog
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Session
from cython.cimports.amqpsniff.session.method_frame import HandshakeArguments
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import ANYTHING
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of

from amqpsniff.findings import FURTHER
from amqpsniff.findings.records import Order, order_of
from amqpsniff.session.rules.context import (
    MAX_SUBJECTS,
    SUBJECTS,
    Place,
    Rule,
    ordinal_of,
    requires,
)
from amqpsniff.session.rules.peers import MAX_CLIENTS, MAX_START_OK_BYTES

MAX_NAMES = 1_000
"""Names (queues, declarations, calls that wait) that a rule remembers of one connection; a client
may make up any number of them."""

MAX_OF_ALL_NAMES = 100_000
"""The same over all connections that are open: some 500 bytes each. Without it 2,000 connections
that declare 1,000 queues each took 1 GB."""


def open_channels(session: Any) -> Iterator[Any]:
    """The channels of a connection that are open."""
    for slot in session.slots():
        if slot.channel is not None:
            yield slot.channel


@cython.ccall
def remember(context: RuleContext, memory: dict[Any, Any], key: Any, new: Any) -> Any:
    """The value under a key, set to `new` if absent; None beyond the limit."""
    if key not in memory:
        shared = context.shared
        if len(memory) >= MAX_NAMES or shared.get("names", 0) >= MAX_OF_ALL_NAMES:
            return context.forget("names")
        memory[key] = new
        _count(context, 1)
    return memory[key]


def drop(context: RuleContext, memory: dict[Any, Any], key: Any) -> Any:
    """Remove a key; returns its value, or None."""
    known = memory.pop(key, None)
    if known is not None and "names" in context.memory:  # else they were counted off at once
        _count(context, -1)
    return known


def _count(context: RuleContext, more: int) -> None:
    """Names are remembered, or dropped: of the connection and of all."""
    memory, shared = context.memory, context.shared
    memory["names"] = memory.get("names", 0) + more
    shared["names"] = shared.get("names", 0) + more


@requires("names")
def _ended(context: RuleContext) -> None:
    context.shared["names"] -= context.memory.pop("names")


MAX_KEPT = 10_000
"""Entries of one kind that are remembered; beyond, the oldest is forgotten. More clients than a
broker of any size has, and some 5 MB."""

Kept = TypeVar("Kept")


def first_place(context: RuleContext) -> Place:
    """The first packet of a context's connection."""
    connection: Connection = context.session.connection
    conversation = connection.conversation
    return _place_of(context, conversation.first_packet_number or None, conversation.start_ns)


def _place_of(context: RuleContext, number: Any, ts_ns: cython.longlong) -> Place:
    return context.place_of(number, ts_ns if ts_ns > 0 else None)


def contribute(context: RuleContext, judge: Callable[..., None], *payload: Any) -> None:
    """Pass a connection's contribution to a judge of findings about many connections.

    The judge is called with the context (it uses only the parts shared by all connections) and the
    payload of plain values and places: at once, or, for a reader of some connections, when the
    records of all are merged.
    """
    log: FindingLog = context.log
    records = log.recorded
    if records is None:
        judge(context, *payload)
    else:
        plain = (tuple(value) if isinstance(value, Place) else value for value in payload)
        records.note(context.order, _name_of(judge), *plain)


@functools.cache
def _name_of(judge: Callable[..., None]) -> str:
    """By which a judge is found again; see `registry`."""
    return f"{judge.__module__.rpartition('.')[2]}.{judge.__name__}"


@cython.ccall
def remembered(context: RuleContext, name: str, key: object, make: Callable[[], Kept]) -> Kept:
    """The value under a key of `name`, created if absent."""
    entries: OrderedDict[Any, Kept] | None = context.shared.get(name)
    if entries is None:
        entries = context.shared[name] = OrderedDict()
    entry = entries.get(key)
    if entry is None:
        if len(entries) >= MAX_KEPT:
            entries.popitem(last=False)
            context.forget("clients")
        entry = entries[key] = make()
    return entry


def exchanges_of(context: RuleContext) -> dict[str, tuple[int, ...]]:
    """The final counts by exchange; empty for a reader of some connections, which records them."""
    exchanges: dict[str, tuple[int, ...]] = context.facts["exchanges"]
    records = context.log.recorded
    if records is None:
        return exchanges
    records.exchanges.update(exchanges)
    return {}


def report_at(
    context: RuleContext,
    place: Place,
    code: str,
    detail: str,
    count: int = 1,
    last: int | None = None,
    channel: int | None = None,
    variant: Any = None,
    cause: Sequence[Any] = (None, None),
    subject: object = None,
) -> None:
    """Raise a finding about the connection of a place; see `RuleContext.report`.

    `cause` is the code and the packet of a finding about another connection that brought it about.
    A `subject` is for judges of many: their variants are not those of rules about a connection.
    """
    log = context.log
    if subject is not None:
        groups = context.shared.setdefault(SUBJECTS, {})
        known = groups.get((code, place.connection_id))
        if known is None:
            known = {}
            if len(groups) < MAX_KEPT:
                groups[code, place.connection_id] = known
        variant = -1 - ordinal_of(known, subject)
        detail = detail if variant >= -MAX_SUBJECTS else FURTHER + detail
    end = last or place.packet_number
    if not log.count_more(code, place.connection_id, place.capture, channel, count, end, variant):
        log.add(
            Finding(
                code, detail, *place, channel, count=count, last_packet_number=last,
                cause_code=cause[0], cause_packet_number=cause[1], variant=variant,
            )
        )  # fmt: skip


def report_once(
    context: RuleContext,
    code: str,
    key: object,
    detail: Callable[[], str],
    place: Place | None = None,
    first_count: int = 1,
    count: int = 1,
    last: int | None = None,
) -> None:
    """Raise one finding for all connections with a key, whatever captures they are in: at the
    first, counting all.

    `detail` gives its words, when they are needed; `place` is where it is seen, when that is not
    the context, and `last` the last packet of it. The first counts `first_count` times, by judges
    of many (`contribute`) for all they waited for, the others `count` times.
    """
    log = context.log
    seen = context.shared.get(code)
    first = None if seen is None else seen.get(key)
    if last is None:
        last = context.number if place is None else place.packet_number
    if first is not None:
        if log.count_more(
            code, first.connection_id, None, None, count, last, variant_of(code, key)
        ):
            return
    here = place or context.place
    records = log.recorded
    if records is not None:
        order = context.order if place is None else _order_of(place)
        records.seen(order, (code, key), detail, tuple(here), count, last)
        return
    first = remembered(context, code, key, lambda: here)
    words = detail() if log.has_room(code) else ""  # not shown without a place
    variant = variant_of(code, key)
    report_at(context, first, code, words, first_count, last, variant=variant)


def variant_of(code: str, key: Any) -> int | None:
    """The variant of a finding for all connections with a key: keys of `_BY_KEY` have findings of
    their own on one connection too.
    """
    return zlib.crc32("\0".join(key).encode(errors="replace")) if code in _BY_KEY else None


Verdict = tuple[str, object, str]
"""A finding for all connections with a key: its code, the key, its words."""

_BY_KEY = frozenset(["dead-lettered"])
"""Codes whose keys are told apart on one connection."""

MAX_VERDICTS = 64
"""Different facts of one client whose verdicts are remembered."""


@cython.cclass
class _Verdict:
    """The verdict about connections with equal facts; once raised, `finding` counts them, as long
    as `first` is the value under the key.
    """

    code: str
    words: str
    key: Any
    first: Any
    finding: Finding | None

    def __init__(self, code: str, key: object, words: str) -> None:
        self.code, self.key, self.words = code, key, words
        self.first = self.finding = None


@cython.cclass
class Alike:
    """A rule about common facts of connections: it is judged once for all with equal facts.

    Its judge gets no context. It gets the `Client`, or with `of_server` the server's address and
    port, and then, if `method` is a method of the handshake, its arguments as JSON (None if not
    captured). So it cannot read anything else. It returns `Verdict`s, which are raised as by
    `report_once`, at the connection's first packet with `at_first`. With `whole`, start-ok has to
    be captured completely.
    """

    judge: Any
    requires: Any
    method: Any
    whole: cython.bint
    at_first: cython.bint
    of_server: cython.bint
    where: cython.int

    def __init__(
        self,
        judge: Callable[..., Iterator[Verdict]],
        method: str | None = None,
        whole: bool = False,
        at_first: bool = False,
        of_server: bool = False,
        where: int = ANYTHING,
    ) -> None:
        self.judge, self.method, self.requires, self.where = judge, method, None, where
        self.whole, self.at_first, self.of_server = whole, at_first, of_server

    def __call__(self, context: RuleContext) -> None:
        """Raise the judge's verdicts, cached for connections with equal facts."""
        session: Session = context.session
        if self.whole and not session.handshake_whole("connection.start-ok"):
            return
        if self.at_first:
            connection: Connection = session.connection
            tcp = connection.conversation
            first = tcp.first_packet_number or None
            self.count(context, first, tcp.start_ns, 1, first)
        else:
            self.count(context, context.number, NULL, 1, context.number)

    @cython.ccall
    def count(
        self, context: RuleContext, number: Any, ts_ns: cython.longlong, count: Any, last: Any
    ) -> None:
        """Raise it `count` times, from packet `number` at `ts_ns` to packet `last`; without a time
        where the event is."""
        verdict: _Verdict
        log: FindingLog = context.log
        shared: dict[str, Any] = context.shared
        for verdict in self._found(context):
            if verdict.finding is not None and (
                "forgotten" not in shared or shared[verdict.code].get(verdict.key) is verdict.first
            ):
                log.count(verdict.finding, count, last)
            else:
                place = None if ts_ns == NULL else _place_of(context, number, ts_ns)
                words = verdict.words.__str__
                report_once(context, verdict.code, verdict.key, words, place, count, count, last)
                first = verdict.first = shared.get(verdict.code, {}).get(verdict.key)
                if first is not None:
                    verdict.finding = log.find(verdict.code, first.connection_id)
            found = verdict.finding
            if found is not None and 0 < ts_ns <= (found.ts_ns or 0):
                here = _place_of(context, number, ts_ns)
                if _order_of(here) < _order_of(found):  # it began earlier and ended later
                    verdict.first = shared[verdict.code][verdict.key] = here
                    log.move(found, here)

    @cython.cfunc
    def _found(self, context: RuleContext) -> list[Any]:
        """The judge's verdicts, from the cache if possible."""
        session: Session = context.session
        client: Client = None if self.of_server else client_of(context)
        known: dict[Any, Any] = _of_server(context) if client is None else client.verdicts
        handshake: HandshakeArguments = session.handshake.get(self.method)
        arguments: Any = None if handshake is None else handshake.json
        key: Any = self if arguments is None else (self, arguments)
        found: list[Any] | None = None if known is None else known.get(key)
        if found is None:
            subject = session.connection.name()[2] or "" if client is None else client
            verdicts = (
                self.judge(subject) if self.method is None else self.judge(subject, arguments)
            )
            found = [_Verdict(*verdict) for verdict in verdicts]
            if known is not None and len(arguments or b"") <= MAX_START_OK_BYTES:
                if len(known) >= MAX_VERDICTS:
                    known.clear()
                known[key] = found
        return found


def _order_of(seen: Place | Finding) -> Order:
    """The order of the packet of a place, or of a finding."""
    return order_of(seen.ts_ns, seen.capture, seen.packet_number)


@cython.cfunc
def _of_server(context: RuleContext) -> dict[Any, Any]:
    """The shared state about a connection's server."""
    connection: Connection = context.session.connection
    servers: dict[Any, Any] = context.shared.setdefault("servers", {})
    name = connection.name()[2] or ""
    known: dict[Any, Any] | None = servers.get(name)
    if known is None:
        if len(servers) >= MAX_CLIENTS:
            servers.clear()
        known = servers[name] = {}
    return known


def judge_limits(context: RuleContext) -> None:
    """capture-ends: name the limits that were reached."""
    here, before = context.shared.get("forgotten", {}), context.facts["forgotten"]
    forgotten = dict(Counter(here) + Counter(before))
    records = context.log.recorded
    if records is not None:
        records.forget(forgotten)
    elif forgotten:
        context.report("rules-limit", forgotten_words(forgotten), count=len(forgotten))


def of_messages(repeats: Any, requeues: Any) -> dict[str, int]:
    """Counts of forgotten messages, by kind; `requeues` may be None."""
    counts = {
        "publishes with an id": repeats.forgotten,
        "messages that came again": 0 if requeues is None else requeues.forgotten,
    }
    return {what: count for what, count in counts.items() if count}


def forgotten_words(forgotten: dict[str, int]) -> str:
    """The forgotten entries and their numbers, as text."""
    counts = (f"{what} ({count})" for what, count in sorted(forgotten.items()))
    return "forgotten: " + ", ".join(counts)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (_ended,),
    "capture-ends": (judge_limits,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (_ended,)}
