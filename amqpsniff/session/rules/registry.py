"""All rules by their events, and the findings that take the records of several readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import or_
from typing import Any

from amqpsniff.findings import Finding, FindingLog, Records
from amqpsniff.session.rules import (
    access,
    acknowledging,
    cancelling,
    celery,
    churn,
    closing,
    consumer_timeouts,
    consuming,
    containers,
    credit,
    deferred,
    delivery_limits,
    ending,
    flow_control,
    frameworks,
    heartbeats,
    links,
    message_size,
    misuse,
    network,
    opening,
    operations,
    overloaded_consumers,
    prefetch,
    provisional,
    proxies,
    publishing,
    queues,
    reconnects,
    refusals,
    requeueing,
    restoring,
    routes,
    rpc,
    settlement,
    shared_connections,
    shared_state,
    slow_requests,
    stalls,
    streams,
    stuck_consumers,
    topology,
    traces,
    traffic,
    transactions,
    transfers,
    unattended,
    unread,
)
from amqpsniff.session.rules.context import Asked, Place, Rule, RuleContext
from amqpsniff.session.rules.occasions import (
    ANYTHING,
    BY_BROKER,
    CONSUMES,
    EXCLUSIVE,
    EXTENDED,
    NESTED,
    PASSIVE,
)
from amqpsniff.session.rules.shared_state import report_at

_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    deferred.RULES,
    queues.RULES,
    acknowledging.RULES,
    consuming.RULES,
    consumer_timeouts.RULES,
    misuse.RULES,
    publishing.RULES,
    refusals.RULES,
    requeueing.RULES,
    delivery_limits.RULES,
    cancelling.RULES,
    stuck_consumers.RULES,
    opening.RULES,
    closing.RULES,
    access.RULES,
    operations.RULES,
    heartbeats.RULES,
    flow_control.RULES,
    ending.RULES,
    network.RULES,
    slow_requests.RULES,
    rpc.RULES,
    celery.RULES,
    frameworks.RULES,
    traces.RULES,
    streams.RULES,
    churn.RULES,
    overloaded_consumers.RULES,
    prefetch.RULES,
    shared_connections.RULES,
    message_size.RULES,
    stalls.RULES,
    traffic.RULES,
    transactions.RULES,
    transfers.RULES,
    topology.RULES,
    restoring.RULES,
    proxies.RULES,
    routes.RULES,
    unread.RULES,
    unattended.RULES,
    reconnects.RULES,  # what the others found is known by then
    shared_state.RULES,
    provisional.RULES,
)


_AMQP10_TABLES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    links.AMQP10_RULES,
    credit.AMQP10_RULES,
    settlement.AMQP10_RULES,
    heartbeats.AMQP10_RULES,
    containers.AMQP10_RULES,
    access.AMQP10_RULES,
    flow_control.AMQP10_RULES,
    requeueing.AMQP10_RULES,
    consumer_timeouts.AMQP10_RULES,
    message_size.AMQP10_RULES,
    publishing.AMQP10_RULES,
    prefetch.AMQP10_RULES,
    slow_requests.AMQP10_RULES,
    rpc.AMQP10_RULES,
    churn.AMQP10_RULES,
    unattended.AMQP10_RULES,
    ending.AMQP10_RULES,
    network.AMQP10_RULES,
    reconnects.AMQP10_RULES,  # what the others found is known by then
    shared_state.AMQP10_RULES,
    provisional.AMQP10_RULES,
)

OF_METHODS = PASSIVE | EXTENDED | NESTED | EXCLUSIVE | BY_BROKER | CONSUMES


def _gather(tables: tuple[dict[str, tuple[Rule, ...]], ...]) -> dict[str, tuple[Asked, ...]]:
    rules: dict[str, tuple[Asked, ...]] = {}
    for table in tables:
        for event, more in table.items():
            asked = [
                Asked(rule, getattr(rule, "requires", None), getattr(rule, "where", ANYTHING))
                for rule in more
            ]
            rules[event] = (*rules.get(event, ()), *asked)
    return rules


RULES = _gather(_TABLES)
"""Every rule by its event, for connections of 0-8, 0-9 and 0-9-1."""

GATED = {
    event: bits
    for event, rules in RULES.items()
    if (bits := reduce(or_, (one.bits for one in rules if one.bits != ANYTHING), 0))
    and bits & OF_METHODS
}
"""The bits that rules of a method ask for, of those that have any; see `context.where`."""

AMQP10_RULES = _gather(_AMQP10_TABLES)
"""Every rule by its event, for connections of AMQP 1.0."""


# findings about many connections, made of what readers of some of them have recorded

_JUDGES = (
    access, churn, closing, consuming, delivery_limits, ending, flow_control, frameworks, links,
    proxies, queues, reconnects, requeueing, restoring, routes, rpc, streams, topology,
    traces, unattended, unread,
)  # fmt: skip


def judge_together(records: Records, log: FindingLog, last_ns: int | None) -> None:
    """Add to a log what all records together show; `last_ns` is the last packet's time.

    What was heard is taken out of the records.
    """
    whole = RuleContext(_Records(log), None, None, None, last_ns)
    once = sorted(records.once.items(), key=lambda one: one[1][0])
    records.once.clear()
    for key, (_, detail, place, count, _, last) in _taken(once):
        variant = shared_state.variant_of(key[0], key[1])
        report_at(whole, Place(*place), key[0], detail, count, last, variant=variant)
    records.notes.sort(key=lambda note: note[0])
    for _, name, payload in _taken(records.notes):
        _judge(name)(whole, *payload)
    for finding in records.attempts.report():
        log.add(finding)
    churn.tell_churn(whole)
    reconnects.judge_leaks(whole)
    restoring.judge_restored(whole)
    consuming.judge_stayed_away(whole)
    rpc.judge_servers(whole)
    routes.judge_routes(whole)
    unread.judge_unread(whole)
    unattended.judge_unattended(whole)
    requeueing.judge_circles(whole)
    delivery_limits.judge_limits(whole)
    traces.judge_lost_traces(whole)
    traces.judge_mixed_traces(whole)
    frameworks.judge_requests(whole)
    streams.judge_streams(whole)
    records.forget(whole.shared.get("forgotten", {}))
    if forgotten := records.forgotten:
        detail = shared_state.forgotten_words(forgotten)
        log.add(Finding("rules-limit", detail, ts_ns=last_ns, count=len(forgotten)))
    if records.exchanges:
        message_size.judge_amplified(whole, records.exchanges)
        celery.judge_noise(whole, records.exchanges)


def _taken(items: list[Any]) -> Iterator[Any]:
    """The items, each gone when the next one comes."""
    items.reverse()
    while items:
        yield items.pop()


class _Records:
    """The part of a tracker that a context needs: the memory of rules, and the log of findings."""

    def __init__(self, log: FindingLog) -> None:
        self.log = log
        self.shared: dict[str, Any] = {}


@cache
def _judge(name: str) -> Callable[..., None]:
    """The function that a note is for."""
    module, _, function = name.partition(".")
    where = next(one for one in _JUDGES if one.__name__.rpartition(".")[2] == module)
    judge: Callable[..., None] = getattr(where, function)
    return judge
