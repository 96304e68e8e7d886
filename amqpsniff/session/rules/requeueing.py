# cython: language_level=3, boundscheck=True, nonecheck=True, annotation_typing=False
"""Redeliveries: messages put back by their consumers, or dead-lettered in a circle.

A message is identified by its queue, if known, with its routing key and message-id, because an
exchange may put it into many queues; without an id by its queue and the `mark` of its entry
(properties and size). Many messages may have the same mark, so without an id the rounds are counted
and not the redeliveries: a delivery after a requeue of the same mark counts as the same message,
and its number of rounds is an average over the messages requeued first.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any

from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode.json_objects import read_object
from amqpsniff.session.event_logs import AGAIN, AGAIN_NAMED, COUNTED, DISCARDED, PUT_BACK
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires
from amqpsniff.session.rules.format import key_text, name_at, queues_of
from amqpsniff.session.rules.peers import rabbitmq_release
from amqpsniff.session.rules.queues import queue_key
from amqpsniff.session.rules.shared_state import (
    contribute,
    drop,
    remember,
    remembered,
    report_at,
    report_once,
)
from amqpsniff.units import duration

POISON = "poison-message"

POISON_DELIVERIES = 5
"""Deliveries of one message that are too many: a broken network or restart explains two, three."""

MAX_MESSAGES = 10_000
"""Latest redelivered messages, and dead letters, that are remembered."""

MAX_REDELIVERED = 4_096
"""Redeliveries outstanding on a connection that are not taken for first deliveries."""

DEAD_LETTERS_REDELIVERED = (4, 0)
"""The oldest RabbitMQ that may call dead letters redelivered: 3.10 does not, 4.3.6 does."""

STORM_NS = 10_000_000_000
STORM_SHARE = 0.2
STORM_REQUEUED = 20
"""A storm: at least this number of requeues in this time, and this share of the deliveries."""

ROUNDS = 3
"""Times a message went through a queue by dead-lettering from which on it may be in a circle."""

MANY_ROUNDS = 10
"""The same from which on it is called a circle: most programs that count give up before."""

NO_MORE_ROUNDS = 3
"""Rounds, as long as the longest one, in which no message comes again once more: then programs give
up at that number."""

MAX_CHANNELS = 256
"""Channels that are remembered of those that messages of one circle came to."""

CIRCLES = "circles"
"""Name of circles by queue: in `RuleContext.memory` those of a channel, each a `_Circle`, in
`RuleContext.shared` what is reported of them."""

_KNOWN_BY = {COUNTED: "its x-delivery-count", AGAIN_NAMED: "", PUT_BACK: "properties and size"}

_REASONS = {
    "rejected": "rejected by its consumer",
    "expired": "after its time to live",
    "maxlen": "pushed out of a full queue",
    "delivery_limit": "delivered as often as the queue allows",
}
"""Reasons of deaths (RabbitMQ), in words."""

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}

_DELIVERY_COUNT = re.compile(rb'"x-delivery-count":(\d{1,18})[,}]')


class Rounds:
    """Redeliveries and requeues of one message, or of messages with the same mark."""

    __slots__ = ("again", "awaited", "put_back", "rounds")

    def __init__(self) -> None:
        self.again = 0
        self.put_back = 0
        self.awaited = 0
        self.rounds = 0


Outstanding = dict[Any, Rounds]
"""Redeliveries of a connection that are outstanding, by place."""


class RequeueHistory:
    """The latest `MAX_MESSAGES` redelivered messages; `forgotten` counts those before.

    Each method returns the number of deliveries so far if it is too large, else 0.
    """

    def __init__(self) -> None:
        self.messages: OrderedDict[Any, Rounds] = OrderedDict()
        self.forgotten = 0

    def come_again(self, key: Any) -> int:
        """A redelivery of a message with an id."""
        known = self._known(key)
        known.again += 1
        return known.again + 1 if known.again + 1 >= POISON_DELIVERIES else 0

    def come_again_alike(self, key: Any, outstanding: Outstanding, place: Any) -> None:
        """A redelivery without an id: it may be one that was put back before."""
        known = self._known(key)
        if known.awaited > 0 and len(outstanding) < MAX_REDELIVERED:
            known.awaited -= 1
            outstanding[place] = known

    def put_back(self, key: Any, outstanding: Outstanding, place: Any) -> int:
        """A delivery is requeued."""
        known = outstanding.pop(place, None)
        times = 0
        if known is None:
            known = self._known(key)
            known.put_back += 1
        else:
            known.rounds += 1
            if known.rounds + 1 >= POISON_DELIVERIES * known.put_back:
                times = known.rounds // known.put_back + 1
        known.awaited += 1
        return times

    def _known(self, key: Any) -> Rounds:
        known = self.messages.pop(key, None) or Rounds()
        self.messages[key] = known
        if len(self.messages) > MAX_MESSAGES:
            self.messages.popitem(last=False)
            self.forgotten += 1
        return known


def redelivered(context: RuleContext) -> None:
    """A delivery that the broker calls a redelivery."""
    facts = context.facts
    rows, row, entry = facts["rows"], facts["row"], facts["entry"]
    headers = rows.headers.bytes_of(row) or b""
    counted = _DELIVERY_COUNT.search(headers) if headers.find(b"x-delivery-count") > 0 else None
    if counted and (times := int(counted[1]) + 1) >= POISON_DELIVERIES:
        if not _sight(context, COUNTED, times):
            _poison(context, COUNTED, times, COUNTED)
    if rows.message_id.has(row):
        octets = rows.message_id.bytes_of(row)
        queue, routing_key = name_at(rows, "queue", row), name_at(rows, "routing_key", row)
        where = f"{queue or ''}\0{routing_key or ''}"
        times = _times_dead(_deaths(headers)) if headers.find(b'"x-death"') >= 0 else 0
        key = f"{where}\0{times}" if times else where, octets
        if not _sight(context, AGAIN_NAMED, 0, *key):
            _poison(context, AGAIN_NAMED, _returns(context).come_again(key), key, octets)
    elif entry is not None and not _sight(context, AGAIN, entry.mark, _queue(entry)):
        outstanding = context.memory.setdefault("redelivered", {})
        _returns(context).come_again_alike(_alike(entry), outstanding, _place(entry))


def requeued(context: RuleContext) -> None:
    """A consumer put a delivery back."""
    entry = context.facts["entry"]
    if not _sight(context, PUT_BACK, entry.mark, _queue(entry)):
        outstanding = context.memory.get("redelivered", {})
        times = _returns(context).put_back(_alike(entry), outstanding, _place(entry))
        _poison(context, PUT_BACK, times, PUT_BACK)
    _storm(context)


def discarded(context: RuleContext) -> None:
    """A consumer rejected a delivery for good."""
    outstanding = context.memory.get("redelivered")
    if outstanding:
        outstanding.pop(_place(context.facts["entry"]), None)
    elif context.tracker.message_log is not None:
        _sight(context, DISCARDED, 0)


def _returns(context: RuleContext) -> RequeueHistory:
    returns: RequeueHistory | None = context.shared.get("came-again")
    if returns is None:
        returns = context.shared["came-again"] = RequeueHistory()
    return returns


def _poison(
    context: RuleContext, kind: int, times: int, subject: object, message_id: bytes | None = None
) -> None:
    """Report a message that came too often: each that has an id, the others of a sign together."""
    if times and not context.count_more(POISON, subject):
        entry = context.facts["entry"]
        detail = poison_words(kind, times, _tag(entry), _queue(entry), message_id)
        context.report(POISON, detail, subject=subject)


def poison_words(
    kind: int, times: int, tag: int | None, queue: str | None, message_id: bytes | None
) -> str:
    """The detail about a message delivered too often; `kind` is that of its sighting."""
    place = f" from queue '{queue}'" if queue else ""
    what = "a delivery" if tag is None else f"delivery {tag}{place}"
    known_by = _KNOWN_BY[kind] or f"message-id '{(message_id or b'').decode(errors='replace')}'"
    first = "" if kind == AGAIN_NAMED else "first, "
    return f"{first}{what} brings the same message, by {known_by}, for the {_nth(times)} time"


def _nth(number: int) -> str:
    """A number as an ordinal."""
    ending = "th" if number % 100 in (11, 12, 13) else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def _sight(
    context: RuleContext,
    kind: int,
    mark: int,
    text: str | None = None,
    message_id: bytes | None = None,
) -> bool:
    """Log an event that needs all connections to judge; False without a message log."""
    message_log = context.tracker.dated_log(context.session)
    if message_log is None:
        return False
    entry = context.facts["entry"]
    session, tag = context.session, _tag(entry)
    if kind == AGAIN:
        message_log.returning.add(session.number)
    elif kind == DISCARDED and session.number not in message_log.returning:
        return True
    if kind != COUNTED:
        mark = message_log.key(text, message_id, mark)
    message_log.note(
        kind, context.channel, mark, NULL if tag is None else tag,
        context.number, context.ts_ns, _queue(entry), message_id,
    )  # fmt: skip
    return True


def _tag(entry: Any) -> int | None:
    return None if entry is None else entry.number


def _queue(entry: Any) -> str | None:
    """The queue of a delivery, or None."""
    return entry.consumer.queue if entry is not None and entry.consumer else None


def _alike(entry: Any) -> tuple[Any, ...]:
    return _queue(entry), entry.mark


def _place(entry: Any) -> tuple[Any, ...]:
    return entry.channel.number, entry.channel.incarnation, entry.number


# storms


def _storm(context: RuleContext) -> None:
    """Count a requeue; when the time is over, judge it."""
    channel, now = context.channel, context.ts_ns
    if now is None:
        return
    windows = context.memory.setdefault("storms", {})
    window = windows.get(channel.number)
    if window is None or window[0] != channel.incarnation:
        windows[channel.number] = _window(channel, now)
    elif now - window[1] >= STORM_NS:
        _judge(context, window, now)
        windows[channel.number] = _window(channel, now)


def _window(channel: Any, now: int) -> tuple[int, int, int, int, int]:
    """Incarnation, time, and the numbers of deliveries, requeues and redeliveries so far."""
    return (
        channel.incarnation,
        now,
        channel.delivered,
        channel.times.requeued,
        channel.times.redelivered,
    )


def _judge(context: RuleContext, window: tuple[int, int, int, int, int], now: int) -> None:
    _, began, delivered_before, requeued_before, redelivered_before = window
    channel = context.channel
    back = channel.times.requeued - requeued_before
    delivered = channel.delivered - delivered_before
    again = channel.times.redelivered - redelivered_before
    # Deliveries that are requeued at a shutdown are not redelivered to the same consumer.
    if back >= STORM_REQUEUED and back > STORM_SHARE * delivered and 2 * again >= back:
        spent = duration(now - began)
        names = queues_of(channel)
        where = f" (from {names})" if names else ""
        detail = f"{back} of {delivered} deliveries put back in {spent}{where}"
        context.report("requeue-storm", detail, subject=names)


# circles


def dead_lettered(context: RuleContext) -> None:
    """A message that was dead-lettered before."""
    rows, row = context.facts["rows"], context.facts["row"]
    most, queue = 0, ""
    deaths = _deaths(rows.headers.bytes_of(row))
    if deaths and rows.sender.at(row) == 1 and not _is_counted(context, deaths):
        reason, of = str(deaths[0].get("reason")), str(deaths[0].get("queue"))
        report_once(
            context,
            "dead-lettered",
            (reason, of),
            lambda: f"from queue '{of}', {_REASONS.get(reason, reason)}; {route_of(context)}",
        )
    for death in deaths:
        count, name = death.get("count"), death.get("queue")
        if isinstance(count, int) and count > most:
            most, queue = count, str(name)
    if most:
        _go_round(context, most, queue)


class _Circle:
    """Messages that were dead-lettered by one queue and came to one channel.

    Attributes:
        firsts: Time of the first message by its number of rounds, `MANY_ROUNDS` for more.
        detail, number, ts_ns: The first message with `ROUNDS`.
        count, last: Number of messages with `ROUNDS` or more, and the packet of the last.
        reported: Each further message is reported at once.
    """

    def __init__(self) -> None:
        self.firsts: dict[int, int] = {}
        self.detail = ""
        self.number = self.ts_ns = self.last = None
        self.count = 0
        self.reported = False


def _go_round(context: RuleContext, rounds: int, queue: str) -> None:
    """A message was dead-lettered `rounds` times by a queue."""
    channel, now_ns = context.channel, context.ts_ns
    circles = context.memory.setdefault(CIRCLES, {})
    key = channel.number, channel.incarnation, queue
    circle = circles.get(key) or remember(context, circles, key, _Circle())
    if circle is None:
        return
    if now_ns is not None:
        circle.firsts.setdefault(min(rounds, MANY_ROUNDS), now_ns)
    if rounds < ROUNDS:
        return
    circle.count += 1
    circle.last = context.number
    if circle.count == 1:
        circle.number, circle.ts_ns = context.number, now_ns
        circle.detail = f"{rounds} times through queue '{queue}', now {route_of(context)}"
    if circle.reported or rounds >= MANY_ROUNDS:
        count = 1 if circle.reported else circle.count
        place = {"number": circle.number, "ts_ns": circle.ts_ns, "last": circle.last}
        context.report("dead-letter-cycle", circle.detail, count=count, subject=queue, **place)
        circle.reported = True


@requires(CIRCLES)
def circles_end(context: RuleContext) -> None:
    """channel-ends: contribute its circles, and the end of the time in which more could come."""
    channel, circles = context.channel, context.memory[CIRCLES]
    end_ns = channel.end_ns or context.session.connection.conversation.end_ns
    ended = [key for key in circles if key[:2] == (channel.number, channel.incarnation)]
    for key in ended:
        circle = drop(context, circles, key)
        count = 0 if circle.reported else circle.count
        place = context.place_of(circle.number, circle.ts_ns)
        firsts = list(circle.firsts.items())
        row = (circle.detail, count, circle.last, channel.number)
        contribute(context, judge_circle, queue_key(context, key[2]), firsts, end_ns, row, place)


def judge_circle(
    context: RuleContext, key: Any, firsts: Any, end_ns: int, row: Any, place: Any
) -> None:
    """Take what went round through a queue and came to one channel."""
    known: list[Any] = remembered(context, CIRCLES, tuple(key), list)
    if len(known) < MAX_CHANNELS:
        known.append((firsts, end_ns, row, Place(*place)))


def judge_circles(context: RuleContext) -> None:
    """capture-ends: messages that go round, unless programs give up after some rounds."""
    for (*_, queue), rows in context.shared.get(CIRCLES, {}).items():
        for _, _, (detail, count, last, channel), place in () if _gives_up(rows) else rows:
            if count:
                report_at(
                    context, place, "dead-letter-cycle", detail, count, last, channel, subject=queue
                )


def _gives_up(rows: Any) -> bool:
    """True if messages stopped at a number of rounds, though there was time for more."""
    firsts: dict[int, int] = {}
    for seen, *_ in rows:
        for rounds, ts_ns in seen:
            firsts[rounds] = min(ts_ns, firsts.get(rounds, ts_ns))
    most = max(firsts, default=MANY_ROUNDS)
    longest = max(
        (firsts[rounds + 1] - firsts[rounds] for rounds in firsts if rounds + 1 in firsts),
        default=0,
    )
    until_ns = max(row[1] for row in rows)
    left_ns = until_ns - firsts[most] if most < MANY_ROUNDS else 0
    return longest > 0 and left_ns >= NO_MORE_ROUNDS * longest


def _is_counted(context: RuleContext, deaths: list[dict[str, Any]]) -> bool:
    """True if a delivery is a redelivery of a dead letter.

    RabbitMQ 4.3 marks a rejected message as redelivered from its first delivery on: there it needs
    an earlier delivery on the connection.
    """
    rows, row, entry = context.facts["rows"], context.facts["row"], context.facts["entry"]
    again = bool(rows.redelivered.at(row) == 1)
    if rabbitmq_release(context) < DEAD_LETTERS_REDELIVERED:
        return again
    message_id = rows.message_id.bytes_of(row)
    if message_id is None and entry is None:
        return again
    seen = context.shared.setdefault("dead letters", OrderedDict())
    what = entry.mark if message_id is None else message_id
    key = context.session.number, what, _times_dead(deaths)
    known = key in seen
    seen[key] = True
    if len(seen) > MAX_MESSAGES:
        seen.popitem(last=False)
    return again and known


def _times_dead(deaths: list[dict[str, Any]]) -> int:
    """Number of times that a message was dead-lettered."""
    return sum(count for death in deaths if isinstance(count := death.get("count"), int))


def route_of(context: RuleContext) -> str:
    """The current route of a dead-lettered message, as text."""
    entry = context.facts["entry"]
    consumer = entry.consumer if entry is not None else None
    if consumer is not None and consumer.queue:
        return f"delivered from queue '{consumer.queue}'"
    rows, row = context.facts["rows"], context.facts["row"]
    return f"with {key_text(name_at(rows, 'routing_key', row))}"


def _deaths(headers: bytes) -> list[dict[str, Any]]:
    """The entries of an x-death header."""
    found = read_object(headers).get("x-death")
    deaths = found if isinstance(found, list) else []
    return [death for death in deaths if isinstance(death, dict)]


RULES: dict[str, tuple[Rule, ...]] = {
    "redelivered": (redelivered,),
    "requeued": (requeued,),
    "discarded": (discarded,),
    "dead-lettered": (dead_lettered,),
    "channel-ends": (circles_end,),
    "capture-ends": (judge_circles,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"requeued": (_storm,)}
