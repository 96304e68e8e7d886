# cython: language_level=3, boundscheck=True, nonecheck=True
"""Clients that reconnect in a loop, for a moment only, or leave connections open.

Its rules are called last: earlier rules note in `memory["failure"]` why a connection failed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import SHORT, UNCLEAN
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of

from amqpsniff.findings import Finding
from amqpsniff.findings.records import NEVER
from amqpsniff.session.codes import CLIENT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.peers import began_ns, client_words, end_ns, ender
from amqpsniff.session.rules.shared_state import (
    MAX_KEPT,
    contribute,
    first_place,
    remembered,
    report_at,
)
from amqpsniff.units import duration

FAILURES = 3
FAILURES_WITHIN_NS = 60_000_000_000
"""Connections of a client that end the same way within this time, from which on it is a loop."""

SHORT_PUBLISHES = 3
SHORT_CONNECTIONS = 5
"""A short connection publishes no more than the first. In PHP the second number of them comes from
its requests; fewer may be scripts run by hand."""

LEAKING = 20
LEAKING_WITHIN_NS = 30_000_000_000
"""Idle connections that a client opened and left open, over at least this time: a pool opens its
connections at once, and few applications have one so large."""

TOGETHER_NS = SECOND_NS
"""Time in which the connections of a program end that itself ends."""

IDLE_NS = 10_000_000_000
"""Time without a message after which a connection without consumers is idle."""

_NAMES = re.compile(r"'[^']*'|\d+")


class _Series:
    """Connections of one client that failed the same way."""

    def __init__(self) -> None:
        self.times: deque[int] = deque(maxlen=FAILURES)
        self.first: Place | None = None
        self.first_ns = self.failed_ns = 0
        self.failure = ""
        self.count = 0
        self.reported = False


@requires("failure")
def _failed(context: RuleContext) -> None:
    failure, now = context.memory.get("failure"), end_ns(context)
    if failure is None or now is None:
        return
    of: Client = client_of(context)
    if not of.user and not of.application:
        return
    if not of.text("connection_name") and _is_cut(context):
        return
    client = (of.host, of.server, of.user, of.application)
    lived = began_ns(context), context.session.close_ns or now
    contribute(context, judge_failure, client, failure, lived, now, of.words, context.place)


def _is_cut(context: RuleContext) -> bool:
    """True if the captured client properties may be incomplete."""
    session, method = context.session, "connection.start-ok"
    return method in session.handshake and not session.handshake_whole(method)


def judge_failure(
    context: RuleContext,
    client: Sequence[Any],
    failure: str,
    lived: tuple[int | None, int],
    now: int,
    who: str,
    place: Sequence[Any],
) -> None:
    """One more connection of a client that failed; `lived` is its beginning, and its close or end.

    Those that were open at the first failure are no attempts to connect again.
    """
    here = Place(*place)
    series = remembered(context, "failures", (client, _NAMES.sub("…", failure)), _Series)
    earlier = series.first is None or lived[1] < series.failed_ns  # its end may be detected later
    if not earlier and (lived[0] is None or lived[0] < series.failed_ns):
        return
    series.times.append(now)
    series.count += 1
    if earlier and not series.reported:
        series.first, series.first_ns, series.failed_ns = here, now, lived[1]
    times = series.times
    if not series.reported:
        spread_ns = max(times) - min(times)
        if len(times) < FAILURES or spread_ns > FAILURES_WITHIN_NS:
            return
        series.reported = True
        within = duration(spread_ns)
        series.failure = failure
        detail = _loop_words(who, FAILURES, within, failure)
        report_at(context, series.first, "reconnect-loop", detail, series.count, here.packet_number)
    else:
        report_at(context, series.first, "reconnect-loop", "", last=here.packet_number)
        finding = context.log.find("reconnect-loop", series.first.connection_id)
        if finding is not None:
            within = duration(now - series.first_ns)
            finding.detail = _loop_words(who, series.count, within, series.failure)
    _share_cause(context, series.first.connection_id)


def _share_cause(context: RuleContext, connection_id: str | None) -> None:
    """What ended the first connection of a loop, as far as it is known, brought the loop about."""
    ended = context.log.find("disconnect-unclean", connection_id)
    loop = context.log.find("reconnect-loop", connection_id)
    if ended is not None and loop is not None and ended.cause_code is not None:
        loop.cause_code, loop.cause_packet_number = ended.cause_code, ended.cause_packet_number


def _loop_words(who: str, count: int, within: str, failure: str) -> str:
    return f"{who}: {count} connections in {within} ended with: {failure}"


class _Short:
    """Short connections of one client, and the finding of them once it is there."""

    def __init__(self) -> None:
        self.first: Place | None = None
        self.finding: Finding | None = None
        self.count = 0


@where(SHORT)
def _was_short(context: RuleContext) -> None:
    """A connection of PHP that was for one request."""
    connection: Connection = context.session.connection
    conversation = connection.conversation
    of: Client = client_of(context)
    if of.text("product") != "AMQPLib" or not connection.began or conversation.ended is None:
        return
    published = context.messages[0]
    if published > SHORT_PUBLISHES or not context.complete:
        return
    if of.short is not None:
        context.log.count(of.short, 1, context.number)
        return
    lived = conversation.end_ns - conversation.start_ns
    client, who = (of.host, of.server), (of.user, of.application, of.host)
    contribute(context, judge_short, client, who, lived, published, context.place)


def judge_short(
    context: RuleContext,
    client: Sequence[Any],
    who: Sequence[Any],
    lived: int,
    published: int,
    place: Sequence[Any],
) -> None:
    """One more short connection of a client; `who` is for `client_words`."""
    short, log = remembered(context, "short", client, _Short), context.log
    if short.finding is not None:
        if context.session is not None:
            client_of(context).short = short.finding
        log.count(short.finding, 1, place[1])
        return
    here = Place._make(place)
    short.count += 1
    if short.first is None:
        short.first = here
    if short.count == SHORT_CONNECTIONS:
        did = f"{duration(lived)} for {number_of(published, 'publish', 'publishes')}"
        many = f"{short.count} connections that lived less than a second"
        detail = f"{client_words(*who)}: {many}, this one {did}"
        report_at(
            context, short.first, "php-short-connections", detail, short.count, here.packet_number
        )
    elif short.count > SHORT_CONNECTIONS:
        report_at(context, short.first, "php-short-connections", "", last=here.packet_number)
    if short.count >= SHORT_CONNECTIONS:
        short.finding = log.find("php-short-connections", short.first.connection_id)


@where(UNCLEAN)
def _stays(context: RuleContext) -> None:
    """A connection that was opened in the capture and stays to its end, or to its client's."""
    session, began, until_ns = context.session, began_ns(context), NEVER
    if session.connection.conversation.ended is not None:
        until_ns = end_ns(context) or 0
        if ender(context) != CLIENT:
            return
    if session.closed_by is not None:
        return
    if began is None or "connection.open-ok" not in session.handshake or not context.certain:
        return
    last = began
    for slot in session.slots():
        channel = slot.channel
        if channel is not None:
            if channel.by_tag:
                return
            last = max(last, channel.times.last_publish_ns, channel.times.last_delivery_ns)
    of: Client = client_of(context)
    client = (of.host, of.server, of.user, of.application)
    contribute(context, judge_left, client, last, until_ns, first_place(context))


def judge_left(
    context: RuleContext, client: Sequence[Any], last: int, until_ns: int, where: Sequence[Any]
) -> None:
    """One more connection that stays until a time."""
    left: list[Any] = remembered(context, "left", client, list)
    if len(left) < MAX_KEPT:
        left.append((until_ns, last, where))


def judge_leaks(context: RuleContext) -> None:
    """capture-ends: clients that left many connections open."""
    now = context.ts_ns
    for client, left in context.shared.pop("left", {}).items():
        if now is None:
            return
        left.sort(key=lambda one: int(one[0]))
        while left:
            together = [row for row in left if row[0] <= left[0][0] + TOGETHER_NS]
            del left[: len(together)]
            _judge_leak(context, client, together, now)


def _judge_leak(context: RuleContext, client: Sequence[Any], left: Sequence[Any], now: int) -> None:
    """Connections of a client that end together, `NEVER` for not."""
    idle = [Place(*where) for until_ns, last, where in left if min(until_ns, now) - last >= IDLE_NS]
    idle.sort(key=lambda place: place.ts_ns or 0)
    if len(idle) < LEAKING:
        return
    times = [place.ts_ns or 0 for place in idle]
    if times[-1] - times[0] >= LEAKING_WITHIN_NS:
        host, _, user, name = client
        until = "are open and idle at the end of the capture"
        if left[0][0] != NEVER:
            until = "were open and idle until the client ended them together"
        detail = (
            f"{client_words(user, name, host)} opened {len(idle)} connections in "
            f"{duration(times[-1] - times[0])}, which {until}"
        )
        last = idle[-1].packet_number
        report_at(context, idle[0], "connections-leaking", detail, len(idle), last)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (_failed, _was_short, _stays),
    "capture-ends": (judge_leaks,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (_failed,)}
