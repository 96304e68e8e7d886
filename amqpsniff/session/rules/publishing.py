"""Publishes: returned, rejected, repeated, unprotected; confirms that are slow or waited for."""

from __future__ import annotations

from typing import Any

from amqpsniff.columns import NULL
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.message_log import FORGET
from amqpsniff.session.rules.context import PUBLISHED, Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import (
    code_at,
    in_packet,
    name_at,
    number_of,
    packets_text,
    route,
    took_text,
    when_closed,
)
from amqpsniff.units import duration, rate

REPEATED = "publish-repeated"

_NO_ROUTE = 312
_DIRECT_REPLY = "amq.rabbitmq.reply-to."


def returned(context: RuleContext) -> None:
    """A message came back because no queue took it.

    By the default exchange that takes a routing key: a reply by direct reply-to goes to no queue,
    and RabbitMQ hands it on and returns it all the same (measured on RabbitMQ 3.10.8), which
    aiormq, for one, asks for with every publish.
    """
    rows, row, entry = context.facts["rows"], context.facts["row"], context.facts["entry"]
    exchange, key = name_at(rows, "exchange", row), name_at(rows, "routing_key", row)
    replies = not exchange if key is None else key.startswith(_DIRECT_REPLY)
    if code_at(rows.reply_code, row) != _NO_ROUTE or replies:
        return
    if entry is not None:
        _not_taken(context, entry)
    where = route(exchange, key)
    published = f", published in packet {entry.packet_number}" if entry else ""
    confirms = "; the confirm that follows does not mean success"
    confirming = context.channel.mode == "confirm"
    context.report("message-unroutable", where + published + (confirms if confirming else ""))


def rejected(context: RuleContext) -> None:
    """The broker refused a publish."""
    entry = context.facts["entry"]
    _not_taken(context, entry)
    where = f" to {route(*entry.route)}" if entry.route and entry.route[1] else ""
    detail = f"publish {entry.number} of the channel{in_packet(entry.packet_number)}{where}"
    context.report("publish-rejected", detail)


def repeated(context: RuleContext) -> None:
    """A publish that came before, and was neither returned nor refused."""
    rows, row, first = context.facts["rows"], context.facts["row"], context.facts["first"]
    name = rows.message_id.bytes_of(row).decode(errors="replace")
    names = name_at(rows, "exchange", row), name_at(rows, "routing_key", row)
    context.report(REPEATED, repeat_words(name, *names, first))


def repeat_words(message_id: str, exchange: str | None, routing_key: str | None, first: int) -> str:
    """What is said of a publish that came before, in packet `first`."""
    return f"message-id '{message_id}' to {route(exchange, routing_key)}; first in packet {first}"


def _not_taken(context: RuleContext, entry: Any) -> None:
    """The broker did not take a publish: it should come again."""
    message_log = context.tracker.dated_log(context.session)
    if message_log is None:
        context.tracker.recent_publishes.forget(entry.mark)
    else:
        message_log.note(FORGET, context.channel, entry.mark, 0, 0, None, None, None)


@where(PUBLISHED)
def repeated_more(context: RuleContext) -> None:
    """A channel ended: count what it published again after the first time."""
    channel = context.channel
    if channel.repeats > 1:
        more, last = channel.repeats - 1, channel.last_repeat
        context.report(REPEATED, "", number=last, count=more, last=last)


@where(PUBLISHED)
def unprotected(context: RuleContext) -> None:
    """A channel ended that published without confirms or transactions."""
    channel = context.channel
    if not context.certain or not channel.known or channel.mode or not channel.published:
        return
    first, last = channel.first_publish_number, channel.last_publish_number
    context.report(
        "publishes-unprotected",
        f"{number_of(channel.published, 'message')} in {packets_text(first, last)}",
        number=first,
        ts_ns=channel.first_publish_ns,
        count=channel.published,
        last=last,
    )


def unconfirmed(channel: Any) -> list[Any]:
    """Publishes of a confirming channel that have no outcome, the oldest first."""
    return [entry for entry in channel.publishes if entry.outcome < 0]


@where(PUBLISHED)
def in_doubt(context: RuleContext) -> None:
    """A channel ended with publishes that were not confirmed."""
    channel = context.channel
    if not channel.closed_by or channel.unconfirmed <= 0 or not context.complete:
        return
    conversation = context.session.peer.conversation
    entries = unconfirmed(channel)
    count = channel.unconfirmed
    closed = channel.closed_packet_number or context.session.close_packet_number
    if channel.closed_by == "server" and closed:  # what came later: publishes-discarded
        sent = [entry for entry in entries if entry.packet_number <= closed]
        count -= len(entries) - len(sent)
        entries = sent
    if not count:
        return
    span = ""
    if entries:
        first, last = entries[0], entries[-1]
        span = f", number {first.number}{in_packet(first.packet_number)}"
        if last is not first:
            span = f", numbers {first.number} to {last.number} in "
            span += packets_text(first.packet_number, last.packet_number)
    context.report(
        "publishes-in-doubt",
        f"{number_of(count, 'publish', 'publishes')}{span}, {when_closed(channel.closed_by)}",
        number=channel.closed_packet_number or conversation.last_packet_number,
        ts_ns=channel.end_ns or conversation.end_ns,
        count=count,
    )


SLOW_NS = SECOND_NS // 2
"""Mean time to a confirm that is long: a healthy disk takes some milliseconds."""

VERY_SLOW_NS = 5 * SECOND_NS
"""A single time to a confirm that is long, also where none came at all."""

MIN_SAMPLES = 10
"""Confirms or commits below which there is no pattern."""

WAITED_PUBLISHES = 50
"""Publishes that each waited for a confirm, from which on it is how the program works."""

WAITED_SHARE = 0.8
"""Share of the time between publishes that goes into waiting; else there was little to send."""


@where(PUBLISHED)
def judge_confirms(context: RuleContext) -> None:
    """channel-ends: confirms that came late, or did not come while the broker sent other frames."""
    channel = context.channel
    if not channel.published:
        return
    details, number, ts_ns = [], channel.slow_confirm_number, channel.slow_confirm_ns
    mean = channel.confirm_ns / max(channel.confirmed, 1)
    often = channel.confirmed >= MIN_SAMPLES and mean >= SLOW_NS
    if context.complete and (often or channel.confirm_ns_max >= VERY_SLOW_NS):
        took = took_text(channel.confirmed, channel.confirm_ns, channel.confirm_ns_max)
        details.append(f"{number_of(channel.confirmed, 'confirm')}, after {took}")
    waiting = _neglected(context)
    if waiting:
        first = waiting[0]
        if not details:
            number, ts_ns = first.packet_number, first.ts_ns
        details.append(
            f"{number_of(len(waiting), 'publish', 'publishes')} without a confirm, the first, "
            f"number {first.number}, for {duration(context.session.last_server_ns - first.ts_ns)}"
        )
    if details:
        context.report("confirms-slow", "; ".join(details), number=number, ts_ns=ts_ns)


def _neglected(context: RuleContext) -> list[Any]:
    """Publishes that were whole, and after which the broker sent something for long, but no answer
    to them.
    """
    if not context.certain:
        return []
    until_ns = context.session.last_server_ns - VERY_SLOW_NS
    unfinished = {one[0] for one in context.memory.get("under way", ())}
    return [
        entry
        for entry in unconfirmed(context.channel)
        if NULL != entry.ts_ns <= until_ns and entry.packet_number not in unfinished
    ]


def watch_confirms(context: RuleContext) -> None:
    """channel-waits: the oldest publish has no confirm for long, though the broker sends others."""
    if not context.certain:
        return
    entry = next(iter(context.channel.publishes), None)
    if entry is None or entry.rows is None or entry.ts_ns == NULL:
        return  # none waits, or it is not whole yet
    waited = context.session.last_server_ns - entry.ts_ns
    unfinished = {one[0] for one in context.memory.get("under way", ())}
    if waited >= VERY_SLOW_NS and entry.packet_number not in unfinished:
        detail = f"publish number {entry.number} was without a confirm for {duration(waited)}"
        context.report_provisional("confirms-slow", detail, entry.packet_number, entry.ts_ns)


@where(PUBLISHED)
def judge_waiting(context: RuleContext) -> None:
    """channel-ends: a publisher that waits for each confirm."""
    channel = context.channel
    numbered = channel.next_number - 1
    spent = channel.last_publish_ns - channel.first_publish_ns
    if channel.waited_publishes < WAITED_PUBLISHES or channel.waited_publishes < 0.95 * numbered:
        return
    if spent <= 0 or channel.confirm_ns < WAITED_SHARE * spent:
        return
    detail = (
        f"{channel.waited_publishes} publishes, each after the confirm of the one before; "
        f"a confirm took {duration(channel.confirm_ns / max(channel.confirmed, 1))} on average, "
        f"and {rate(numbered * SECOND_NS / spent)} messages a second were published"
    )
    context.report(
        "confirm-per-message",
        detail,
        number=channel.first_publish_number,
        ts_ns=channel.first_publish_ns,
        last=channel.last_publish_number,
    )


def note_commit(context: RuleContext) -> None:
    """tx.commit: remember where the first is, and the last."""
    noted = context.memory.setdefault("commits", {})
    place = context.channel.number
    first = noted.get(place, (context.number, context.ts_ns))
    noted[place] = (first[0], first[1], context.number)


@requires("commits")
def judge_commits(context: RuleContext) -> None:
    """channel-ends: a commit for every publish or acknowledgement."""
    channel = context.channel
    number, ts_ns, last = context.memory.get("commits", {}).pop(channel.number, (None, None, None))
    done = channel.published + channel.acks
    if channel.commits < MIN_SAMPLES or not channel.commits <= 2 * done < 4 * channel.commits:
        return
    if not context.complete:
        return
    detail = f"{channel.commits} commits for {channel.published} publishes"
    if channel.acks:
        detail += f" and {channel.acks} acknowledgements"
    count = channel.commits
    context.report(
        "transaction-per-message", detail, number=number, ts_ns=ts_ns, count=count, last=last
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "returned": (returned,),
    "rejected": (rejected,),
    "published-again": (repeated,),
    "channel-ends": (
        unprotected,
        in_doubt,
        repeated_more,
        judge_confirms,
        judge_waiting,
        judge_commits,
    ),
    "tx.commit": (note_commit,),
    "channel-waits": (watch_confirms,),
}
