# cython: language_level=3, boundscheck=True, nonecheck=True
"""Publishes: returned, rejected, repeated, unprotected; confirms that are slow or waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import Channel, MessageTimes
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import (
    BUSY,
    CONFIRMS,
    EXTENDED,
    LATE_CONFIRM_NS,
    REPEATS,
    UNPROTECTED,
)
from cython.cimports.amqpsniff.session.rules.peers import Client
from cython.cimports.amqpsniff.session.rules.shared_state import Alike

from amqpsniff.decode.json_objects import table_of
from amqpsniff.packs.forms import whole
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.event_logs import FORGET
from amqpsniff.session.method_frame import read
from amqpsniff.session.rules.context import Rule, requires, where
from amqpsniff.session.rules.format import (
    exchange_text,
    in_packet,
    name_at,
    number_of,
    packets_text,
    queue_text,
    round_trip_text,
    route,
    took_text,
    when_closed,
)
from amqpsniff.session.rules.routes import queues_on
from amqpsniff.session.rules.shared_state import Verdict, drop, remember
from amqpsniff.session.rules.traces import field_of
from amqpsniff.units import duration, rate

REPEATED = "publish-repeated"

SEQUENCE_BYTES = 8
"""Length of a number that RabbitMQ's client for .NET writes as bytes."""

WRONG_NUMBERS = 3
"""Publishes whose number differs by the same from the broker's count until it is reported."""

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
    if rows.reply_code.at(row) != _NO_ROUTE or replies:
        return
    if entry is not None:
        _not_taken(context, entry)
    where = route(exchange, key)
    published = f", published in packet {entry.packet_number}" if entry else ""
    confirms = "; the confirm that follows does not mean success"
    confirming = context.channel.mode == "confirm"
    detail = where + published + (confirms if confirming else "")
    context.report("message-unroutable", detail, subject=(exchange, key))


def rejected(context: RuleContext) -> None:
    """The broker refused a publish."""
    entry = context.facts["entry"]
    _not_taken(context, entry)
    names = _route_of(entry)
    if context.count_more("publish-rejected", names or ()):
        return
    where = ""
    if names is not None:
        where = f" to {route(*names) if names[1] else exchange_text(names[0])}"
    detail = f"publish {entry.number} of the channel{in_packet(entry.packet_number)}{where}"
    context.report("publish-rejected", detail + _limits_on(context, names), subject=names or ())


def _route_of(entry: Any) -> tuple[str, str] | None:
    """Exchange and routing key of a publish; None if they were forgotten."""
    names = entry.route
    if names is None and entry.rows is not None:
        names = tuple(
            name_at(entry.rows, column, entry.row) for column in ("exchange", "routing_key")
        )
    return None if names is None or None in names else names


def _limits_on(context: RuleContext, names: tuple[str, str] | None) -> str:
    """The limits of the queues on a route, in words, as far as the connection declared them."""
    limits = context.memory.get(LIMITS, {})
    queues = sorted(queues_on(context, *names)) if names and limits else ()
    known = ((queue, limits[queue]) for queue in queues if queue in limits)
    return "".join(f"; {queue_text(queue)} was declared with {words}" for queue, words in known)


@where(EXTENDED)
def note_limits(context: RuleContext) -> None:
    """queue.declare: note the length limits of the queue, and its overflow behaviour."""
    frame = context.frame
    octets = frame.arguments_json or b""
    if not frame.queue or not any(name in octets for name in (b'"x-max-length', b'"x-overflow"')):
        return
    given = table_of(read(octets), "arguments")
    words = ", ".join(f"{name} {given[name]}" for name in LIMITING if name in given)
    limits = context.memory.setdefault(LIMITS, {})
    drop(context, limits, frame.queue)
    remember(context, limits, frame.queue, words)


def repeated(context: RuleContext) -> None:
    """A publish that came before, and was neither returned nor refused."""
    rows, row, first = context.facts["rows"], context.facts["row"], context.facts["first"]
    name = rows.message_id.bytes_of(row).decode(errors="replace")
    names = name_at(rows, "exchange", row), name_at(rows, "routing_key", row)
    context.report(REPEATED, repeat_words(name, *names, first))


def repeat_words(message_id: str, exchange: str | None, routing_key: str | None, first: int) -> str:
    """The detail about a repeated publish, first published in packet `first`."""
    return f"message-id '{message_id}' to {route(exchange, routing_key)}; first in packet {first}"


def _not_taken(context: RuleContext, entry: Any) -> None:
    """The broker refused a publish, so a repetition is expected."""
    message_log = context.tracker.dated_log(context.session)
    if message_log is None:
        context.tracker.emitter.recent_publishes.forget(entry.mark)
    else:
        message_log.note(FORGET, context.channel, entry.mark, 0, 0, None, None, None)


@where(REPEATS)
def repeated_more(context: RuleContext) -> None:
    """End of a channel: count its further repeated publishes."""
    channel = context.channel
    if channel.times.repeats > 1:
        more, last = channel.times.repeats - 1, channel.times.last_repeat
        context.report(REPEATED, "", number=last, count=more, last=last)


@where(UNPROTECTED)
def unprotected(context: RuleContext) -> None:
    """A channel ended that published without confirms or transactions."""
    channel: Channel = context.channel
    times: MessageTimes = channel.times
    if channel.mode or not (channel.known and channel.published and context.certain):
        return
    first, last = times.first_publish_number, times.last_publish_number
    _UNPROTECTED.count(context, first, times.first_publish_ns, channel.published, last)


def _unprotected_verdicts(client: Client) -> Iterator[Verdict]:
    """The note on a client that publishes without protection; the channel was judged before."""
    yield "publishes-unprotected", (client.host, client.server, client.application), client.words


_UNPROTECTED = Alike(_unprotected_verdicts)


def unconfirmed(channel: Any) -> list[Any]:
    """Publishes of a confirming channel that have no outcome, the oldest first."""
    return [entry for entry in channel.publishes if entry.outcome < 0]


@where(CONFIRMS)
def in_doubt(context: RuleContext) -> None:
    """A channel ended with publishes that were not confirmed."""
    channel = context.channel
    if not channel.closed_by or channel.unconfirmed <= 0 or not context.complete:
        return
    conversation = context.session.connection.conversation
    entries = unconfirmed(channel)
    count = channel.unconfirmed
    closed = channel.closed_packet_number or context.session.close_packet_number
    if channel.closed_by == "server" and closed:  # what came later: publishes-discarded
        sent = [entry for entry in entries if entry.packet_number <= closed]
        count -= len(entries) - len(sent)
        entries = sent
    refused = channel.closed_by == "server" and channel.close_method == "basic.publish"
    if refused and count == 1:
        return  # the close is the answer
    if channel.closed_by == "server" and count == 1 and not channel.blames:
        return  # it may be the answer to a request that was cut off
    if not count:
        return
    span = ""
    if entries:
        first, last = entries[0], entries[-1]
        span = f", number {first.number}{in_packet(first.packet_number)}"
        if last is not first:
            span = f", numbers {first.number} to {last.number} in "
            span += packets_text(first.packet_number, last.packet_number)
    if refused:
        span += ", of which it refused one, and read none after it"
    context.report(
        "publishes-in-doubt",
        f"{number_of(count, 'publish', 'publishes')}{span}, {when_closed(channel.closed_by)}",
        number=channel.closed_packet_number or conversation.last_packet_number,
        ts_ns=channel.end_ns or conversation.end_ns,
        count=count,
    )


LIMITS = "limits of queues"
"""Name in `RuleContext.memory` of limits of queues, in words, as a connection declares them."""

LIMITING = ("x-max-length", "x-max-length-bytes", "x-overflow")
"""Arguments of queues with which publishes may be refused."""

VERY_SLOW_NS = 5 * SECOND_NS
"""A single time to a confirm that is long, also where none came at all."""

LATE_CONFIRMS, LATE_NS = 3, 2 * SECOND_NS
"""Late confirms of a channel, and the time that they were waited for altogether, below which it is
chance."""

LATE_SHARE = 0.2
"""Share of the time since a channel's first publish in which late confirms were waited for, from
which on it matters."""

LATE = "late confirms"
"""Name in `RuleContext.memory` of the confirms that came late: a `_Late` by channel."""

AT_LEAST = "at least "
"""Stands before times and numbers where those of publishes are unknown (`unnumbered_confirms`)."""

MIN_SAMPLES = 10
"""Confirms or commits below which there is no pattern."""

WAITED_PUBLISHES = 50
"""Publishes that each waited for a confirm, from which on it is how the program works."""

WAITED_SHARE = 0.8
"""Share of the time between publishes that goes into waiting; else there was little to send."""


class _Late:
    """Late confirms of one channel; waits that overlap count once.

    Attributes:
        count: Their number.
        waited_ns: Time in which one of them was waited for.
        until_ns: Time of the last of them.
    """

    def __init__(self) -> None:
        self.count = self.waited_ns = self.until_ns = 0


def note_late(context: RuleContext) -> None:
    """confirmed-late: add up the time that went into waiting."""
    since_ns, now_ns = context.facts["since_ns"], context.ts_ns
    noted = context.memory.setdefault(LATE, {})
    late = noted.get(context.channel)
    if late is None:
        late = noted[context.channel] = _Late()
    late.count += 1
    if now_ns is not None:
        late.waited_ns += max(0, now_ns - max(since_ns, late.until_ns))
        late.until_ns = max(late.until_ns, now_ns)


def _late_text(context: RuleContext) -> str:
    """Confirms that came late and took a good part of the time, in words; else empty."""
    late = context.memory.get(LATE, {}).pop(context.channel, None)
    first_ns = context.channel.times.first_publish_ns
    if late is None or first_ns == NULL:
        return ""
    spent_ns = max(context.channel.times.last_publish_ns, late.until_ns) - first_ns
    longest_ns = context.channel.times.confirm_ns_max
    if late.count < LATE_CONFIRMS or late.waited_ns < max(LATE_NS, LATE_SHARE * spent_ns):
        return ""
    least = AT_LEAST * (context.channel.times.bounds > 0)
    return (
        f"{number_of(late.count, 'confirm')} took {duration(LATE_CONFIRM_NS)} or longer, the "
        f"longest {least}{duration(longest_ns)}{round_trip_text(context.session, longest_ns)}: "
        f"{least}{duration(late.waited_ns)} of {duration(spent_ns)} were spent waiting for them"
    )


@where(CONFIRMS)
def judge_confirms(context: RuleContext) -> None:
    """channel-ends: confirms that came late, or did not come while the broker sent other frames."""
    channel = context.channel
    times = channel.times
    joined = channel.unnumbered_confirms is not None
    if not (times.confirmed or joined or channel.publishes or LATE in context.memory):
        return
    details, number, ts_ns = [], times.slow_confirm_number, times.slow_confirm_ns
    until_ns = ts_ns + times.confirm_ns_max
    count = times.confirmed + times.bounds
    least = AT_LEAST * (times.bounds > 0)
    often = count >= MIN_SAMPLES and times.confirm_ns >= count * LATE_CONFIRM_NS
    if often or times.confirm_ns_max >= VERY_SLOW_NS:
        took = took_text(count, times.confirm_ns, times.confirm_ns_max)
        mean = times.confirm_ns / max(count, 1)
        part = round_trip_text(context.session, mean if often else times.confirm_ns_max)
        details.append(f"{number_of(count, 'confirm')}, after {least}{took}{part}")
    late = _late_text(context)
    if late and not details:
        details.append(late)
    waiting = _neglected(context)
    if waiting:
        named, *first = waiting[0]
        if not details:
            number, ts_ns = first
            until_ns = context.session.last_server_ns
        details.append(
            f"{least}{number_of(len(waiting), 'publish', 'publishes')} without a confirm, the "
            f"first{named} for {duration(context.session.last_server_ns - first[1])}"
        )
    if details:
        words = "; ".join(details)
        context.report("confirms-slow", words, number=number, ts_ns=ts_ns, until_ns=until_ns)


def _neglected(context: RuleContext) -> list[tuple[str, int, int]]:
    """Whole publishes without answer, after which the broker sent something for long: number in
    words, packet and time of each."""
    channel = context.channel
    if channel.unnumbered_confirms is not None:
        waiting = [("", *publish) for publish in channel.unnumbered_confirms.waiting()]
    else:
        entries = unconfirmed(channel) if context.certain else ()
        waiting = [
            (f", number {entry.number},", entry.packet_number, entry.ts_ns) for entry in entries
        ]
    until_ns = context.session.last_server_ns - VERY_SLOW_NS
    unfinished = {publish[0] for publish in context.memory.get("under way", ())}
    return [
        publish
        for publish in waiting
        if NULL != publish[2] <= until_ns and publish[1] not in unfinished and context.complete
    ]


def watch_confirms(context: RuleContext) -> None:
    """channel-waits: the oldest publish has no confirm for long, though the broker sends others."""
    if not context.certain:
        return
    entry = next(iter(context.channel.publishes), None)
    if entry is None or entry.rows is None or entry.ts_ns == NULL:
        return  # none waits, or it is not whole yet
    waited = context.session.last_server_ns - entry.ts_ns
    unfinished = {publish[0] for publish in context.memory.get("under way", ())}
    if waited >= VERY_SLOW_NS and entry.packet_number not in unfinished:
        detail = f"publish number {entry.number} was without a confirm for {duration(waited)}"
        context.report_provisional("confirms-slow", detail, entry.packet_number, entry.ts_ns)


@where(BUSY)
def judge_waiting(context: RuleContext) -> None:
    """channel-ends: a publisher that waits for each confirm."""
    channel = context.channel
    numbered = channel.next_number - 1
    spent = channel.times.last_publish_ns - channel.times.first_publish_ns
    if (
        channel.times.waited_publishes < WAITED_PUBLISHES
        or channel.times.waited_publishes < 0.95 * numbered
    ):
        return
    if spent <= 0 or channel.times.confirm_ns < WAITED_SHARE * spent:
        return
    average_ns = channel.times.confirm_ns / max(channel.times.confirmed, 1)
    detail = (
        f"{channel.times.waited_publishes} publishes, each after the confirm of the one before; "
        f"a confirm took {duration(average_ns)} on average"
        f"{round_trip_text(context.session, average_ns)}, "
        f"and {rate(numbered * SECOND_NS / spent)} messages a second were published"
    )
    context.report(
        "confirm-per-message",
        detail,
        number=channel.times.first_publish_number,
        ts_ns=channel.times.first_publish_ns,
        last=channel.times.last_publish_number,
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
    done = channel.published + channel.times.acks
    if (
        channel.times.commits < MIN_SAMPLES
        or not channel.times.commits <= 2 * done < 4 * channel.times.commits
    ):
        return
    if not context.complete:
        return
    detail = f"{channel.times.commits} commits for {channel.published} publishes"
    if channel.times.acks:
        detail += f" and {channel.times.acks} acknowledgements"
    count = channel.times.commits
    context.report(
        "transaction-per-message", detail, number=number, ts_ns=ts_ns, count=count, last=last
    )


def judge_sequence(context: RuleContext) -> None:
    """looked-at: the number that the client gives a publish, compared with the broker's count."""
    sequence, entry, channel = (
        field_of(context, "sequence"),
        context.facts["entry"],
        context.channel,
    )
    if sequence is None or entry is None or not context.certain or not channel.known:
        return
    number = whole(sequence)
    if number is None and isinstance(sequence, str) and len(sequence) == SEQUENCE_BYTES:
        octets = sequence.encode("latin-1", errors="ignore")
        number = int.from_bytes(octets) if len(octets) == SEQUENCE_BYTES else None
    known = context.memory.setdefault("sequences", {})
    before, times = known.get(channel.number, (0, 0))
    difference = 0 if number is None or entry.number < 1 else number - entry.number
    times = times + 1 if difference == before else 1
    known[channel.number] = difference, times
    if difference and times == WRONG_NUMBERS:
        detail = f"the client calls publish {entry.number} of the channel number {number}"
        context.report("publish-number-wrong", detail)


RULES: dict[str, tuple[Rule, ...]] = {
    "looked-at": (judge_sequence,),
    "queue.declare": (note_limits,),
    "returned": (returned,),
    "rejected": (rejected,),
    "confirmed-late": (note_late,),
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

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "confirmed-late": (note_late,),
    "channel-ends": (judge_confirms, judge_waiting),
}
