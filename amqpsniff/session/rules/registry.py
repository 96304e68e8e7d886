"""All rules by their events, and the findings that take the records of several readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, reduce
from importlib import import_module
from operator import or_
from types import SimpleNamespace
from typing import Any

from amqpsniff.findings import FindingLog, Records
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
from amqpsniff.session.rules.context import Place, Rule, RuleContext
from amqpsniff.session.rules.gates import GatedRule
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
    reconnects.RULES,  # the others have reported by then
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
    reconnects.AMQP10_RULES,  # the others have reported by then
    shared_state.AMQP10_RULES,
    provisional.AMQP10_RULES,
)

OF_METHODS = PASSIVE | EXTENDED | NESTED | EXCLUSIVE | BY_BROKER | CONSUMES


def _gather(tables: tuple[dict[str, tuple[Rule, ...]], ...]) -> dict[str, tuple[GatedRule, ...]]:
    rules: dict[str, tuple[GatedRule, ...]] = {}
    for table in tables:
        for event, more in table.items():
            gated = [
                GatedRule(rule, getattr(rule, "requires", None), getattr(rule, "where", ANYTHING))
                for rule in more
            ]
            rules[event] = (*rules.get(event, ()), *gated)
    return rules


RULES = _gather(_TABLES)
"""Every rule by its event, for connections of 0-8, 0-9 and 0-9-1."""

GATED = {
    event: bits
    for event, rules in RULES.items()
    if (bits := reduce(or_, (rule.bits for rule in rules if rule.bits != ANYTHING), 0))
    and bits & OF_METHODS
}
"""The bits that rules of a method ask for, of those that have any; see `context.where`."""

AMQP10_RULES = _gather(_AMQP10_TABLES)
"""Every rule by its event, for connections of AMQP 1.0."""


# findings about many connections, made of what readers of some of them have recorded


def judge_together(records: Records, log: FindingLog, last_ns: int | None) -> None:
    """Add the findings of all records together to a log; `last_ns` is the last packet's time.

    The contributions are removed from the records.
    """
    facts = {"exchanges": records.exchanges, "forgotten": records.forgotten}
    tracker = SimpleNamespace(log=log, shared={})
    whole = RuleContext(tracker, None, None, None, last_ns, facts=facts)
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
    for gated in RULES["capture-ends"]:
        gated.rule(whole)


def _taken(items: list[Any]) -> Iterator[Any]:
    """The items, each gone when the next one comes."""
    items.reverse()
    while items:
        yield items.pop()


@cache
def _judge(name: str) -> Callable[..., None]:
    """The function that a note is for, see `shared_state.contribute`."""
    module, _, function = name.partition(".")
    judge: Callable[..., None] = getattr(import_module(f"{__package__}.{module}"), function)
    return judge
