"""Consumers that are busy all the time while messages wait ever longer in their queue.

Two facts together show that a consumer is the bottleneck: its prefetch count is used up almost all
the time, and the queue times of its deliveries grow while more is being published. Messages from
before its beginning are a backlog, which does not count. If the network takes the time, the
prefetch count is too small.
"""

from __future__ import annotations

from typing import Any

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.event_logs import LOADED
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.occasions import BUSY
from amqpsniff.session.rules.prefetch import (
    busy_ns,
    from_queues,
    network_wait_text,
    round_trip_ns,
)
from amqpsniff.session.rules.queues import is_long
from amqpsniff.units import duration, rate

OVERLOADED = "consumer-overloaded"

GROWTH_NS = 5 * SECOND_NS
"""Time in which messages were published while the consumer worked, and by which their waits grew,
from which on it is no burst."""

GROWN_SHARE = 0.8
"""Share of the longest wait that the last one has: below, the queue gets shorter again."""

HELD_SHARE = 0.8
"""Share of what it may hold that a busy consumer holds on average."""

MIN_SAMPLES = 10
"""Acknowledgements below which a mean says little."""


@where(BUSY)
def judge_overloaded(context: RuleContext) -> None:
    """channel-ends: a busy consumer. Its waits come at once, or with those of other readers."""
    load = load_text(context)
    times = context.channel.times
    if not load:
        return
    message_log = context.tracker.dated_log(context.session)
    if message_log is not None and times.first_logged >= 0:
        message_log.note(LOADED, context.channel, 0, 0, 0, None, load, None)
    elif message_log is None and is_growing(times):
        number, ts_ns = times.fresh_number, times.fresh_ns
        context.report(OVERLOADED, overload_words(times, load), number=number, ts_ns=ts_ns)


def load_text(context: RuleContext) -> str:
    """The load of a channel's consumers as text, if they were always busy; else empty."""
    channel, times = context.channel, context.channel.times
    prefetch = channel.prefetch_each or channel.prefetch_shared
    spent, count, most = busy_ns(channel), channel.acknowledged, channel.unsettled_max
    if not (prefetch and channel.known and context.complete) or channel.maybe_settled_to:
        return ""
    if spent <= 0 or count < MIN_SAMPLES or most < prefetch:
        return ""
    trip = round_trip_ns(context)
    if trip is None or times.ack_ns < 2 * trip * count or network_wait_text(context):
        return ""  # the network may take the time
    held = min((times.ack_ns + trip * count) / (most * spent), 1.0)  # captured at the client
    if held < HELD_SHARE:
        return ""
    many = "the one" if most == 1 else f"all {most}"
    return (
        f"with {many} in hand that a prefetch count of {prefetch} allows, {100 * held:.0f} % of "
        f"the time{from_queues(context)}"
    )


def is_growing(times: Any) -> bool:
    """True if waits in a queue grew, to the last, while messages were being published."""
    published_ns = times.latest_ns - times.latest_wait_ns - times.fresh_ns
    return bool(
        is_long(times)
        and published_ns >= GROWTH_NS
        and times.latest_wait_ns - times.fresh_wait_ns >= GROWTH_NS
        and times.latest_wait_ns >= GROWN_SHARE * times.queued_ns_max
    )


def overload_words(times: Any, load: str) -> str:
    """The detail about growing waits; `load` is the text about the consumer's load."""
    count, took = times.queued - times.fresh, times.latest_ns - times.fresh_ns
    published = took - (times.latest_wait_ns - times.fresh_wait_ns)
    return (
        f"{rate(count * SECOND_NS / published)} messages a second were published for it, and it "
        f"took {rate(count * SECOND_NS / took)}, one every {duration(took / count)}, {load}: "
        f"in {duration(took)} the time in the queue grew from {duration(times.fresh_wait_ns)} to "
        f"{duration(times.latest_wait_ns)}"
    )


RULES: dict[str, tuple[Rule, ...]] = {"channel-ends": (judge_overloaded,)}
