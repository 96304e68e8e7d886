# cython: language_level=3, boundscheck=True, nonecheck=True, annotation_typing=False
"""Exclusive queues, deleted queues, consumers of queues, and the time messages spend there.

Messages of a deleted queue are not delivered again: neither those outstanding on a channel when the
queue was deleted, nor those of a connection's exclusive queues when it ended (0-9-1 §1.7.2.1). A
queue is identified by the broker's address, its virtual host and its name.

If a deletion may be missing in the capture, its outstanding messages are not reported, and earlier
reports are withdrawn. This is so if another connection requested a deletion and the answer is
missing, or if frames of a client are missing. It is not so for a consumer that gets cancel
notifications and got none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from cython.cimports.amqpsniff.session.codes import CLIENT, SERVER
from cython.cimports.amqpsniff.session.rules.occasions import (
    BUSY,
    EXCLUSIVE,
    HELD,
    WAITED,
    WAITED_NS,
)

from amqpsniff.decode.method_layout import NO_WAIT
from amqpsniff.findings.records import NEVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import number_of, queue_text, took_text, when_closed
from amqpsniff.session.rules.peers import client_of, vhost_of
from amqpsniff.session.rules.shared_state import contribute, remembered, report_at
from amqpsniff.units import duration, some

MAX_ASKED = 1_000
"""Declarations and deletions of one connection that wait for an answer, and exclusive queues of one
connection: programs have a few."""

MAX_DELETIONS = 8
"""Deletions of one queue that are remembered, the latest ones."""

MAX_DOUBTED = 1_000
"""Channels of one broker of which deliveries in doubt can be taken back, the latest ones."""

READERS = "stream readers"
"""Name in `RuleContext.memory` of consumers of streams, by channel number and tag."""

MANAGED = "deletions over the management"
"""Name in `RuleContext.shared` of those of AMQP 1.0. The rules of routes do not know if such a
queue is declared again."""

MISSING = "deletions missing"
"""Name of the times in which deletions may be missing: in `RuleContext.memory` when that began, in
`RuleContext.shared` spans by broker and connection."""

MAX_CONSUMED = 64
"""Queues that a connection consumes from and that are told of it to others."""

MAX_CONSUMERS = 64
"""Connections that consume from a queue and are remembered."""

MAX_QUEUES = 64
"""Queues of one channel whose deliveries are told apart; those of further ones may come again."""

Key = tuple[str, str, str]
"""A queue: the broker's address, the virtual host, the name."""


_NOTIFIED = b'"consumer_cancel_notify":true'


class Owner:
    """The connection that has a queue to itself."""

    def __init__(self) -> None:
        self.connection_id = ""
        self.words = ""
        self.capture: str | None = None


class QueueRemainder:
    """Deliveries of one queue that a channel had outstanding at its end.

    Attributes:
        count: Deliveries.
        number: Packet of the first.
        last_ns: Time of the last.
        private: The queue ended with the connection.
        notified: Its consumer would have got a cancel notification for a deletion.
    """

    def __init__(self, number: int, *, private: bool, notified: bool) -> None:
        self.count = 0
        self.number = number
        self.last_ns = 0
        self.private = private
        self.notified = notified


def queue_key(context: RuleContext, name: str) -> Key:
    """A queue of the context's connection; of an unknown virtual host it is like no other."""
    server, vhost, _ = _deletion_key(context, name)
    return server, context.session.connection.name()[0] if vhost is None else vhost, name


def _asked(context: RuleContext) -> None:
    """queue.declare of an exclusive queue, and queue.delete: remembered until the answer."""
    frame = context.frame
    octets = frame.arguments_json or b""
    declares = frame.name == "queue.declare"
    if declares and (b'"exclusive":true' not in octets or b'"passive":true' in octets):
        return
    name = frame.queue if declares else context.queue
    auto_delete = declares and b'"auto_delete":true' in octets
    if frame.flags & NO_WAIT:
        if declares and name:
            _own(context, name, frame.number, auto_delete)
        elif name and b'"if_unused":true' not in octets and b'"if_empty":true' not in octets:
            _deleted(context, name)
        return
    declares = context.memory.setdefault("queue declares", {})
    if not declares and name is None:
        _missing(context, context.ts_ns)
    elif not declares and name:
        contribute(context, judge_asked, *_deletion_key(context, name), context.ts_ns, True)
    if len(declares) < MAX_ASKED:
        declares[context.channel.number, frame.number, frame.row] = name, auto_delete
    else:
        context.forget("queues")


@where(EXCLUSIVE)
def _declares(context: RuleContext) -> None:
    """queue.declare, of an exclusive queue."""
    _asked(context)


@requires("queue declares")
def _answered(context: RuleContext) -> None:
    """queue.declare-ok and queue.delete-ok."""
    request = context.request
    if request is None:
        return
    place = context.channel.number, request.number, request.row
    declares = context.memory["queue declares"]
    if place not in declares:
        return
    name, auto_delete = declares.pop(place)
    if context.frame.name == "queue.delete-ok":
        if name:
            _deleted(context, name)
    elif context.frame.queue or name:
        _own(context, context.frame.queue or name, request.number, auto_delete)


@requires("queue declares")
def _refused(context: RuleContext) -> None:
    """channel.close of the broker: the deletion that it answers failed."""
    if context.frame.side != SERVER:
        return
    declares = context.memory["queue declares"]
    for place in [place for place in declares if place[0] == context.channel.number]:
        name, _ = declares.pop(place)
        if name:
            contribute(context, judge_asked, *_deletion_key(context, name), context.ts_ns, False)


# exclusive queues


def _own(context: RuleContext, name: str, number: int, auto_delete: bool) -> None:
    """A connection has a queue to itself; `number` is the packet of its declaration.

    With `auto_delete` it goes with its last consumer.
    """
    own = context.memory.setdefault("own queues", {})
    if len(own) >= MAX_ASKED:
        context.forget("queues")
        return
    own[name] = auto_delete
    place, named = context.place, client_of(context).application
    who = f"'{named}'" if named else "a connection"
    words = f"{who} ({place.client}) declared it exclusive in packet {number}"
    contribute(
        context, judge_owned, queue_key(context, name), place.connection_id, words, place.capture
    )


def judge_owned(
    context: RuleContext, key: Key, connection_id: str, words: str, capture: str | None
) -> None:
    """A connection has a queue to itself."""
    owner = remembered(context, "owners", tuple(key), Owner)
    owner.connection_id = connection_id
    owner.words = words
    owner.capture = capture


def owner_words(context: RuleContext, key: Sequence[str] | None, place: Place) -> str:
    """The connection that has a queue to itself, in words; empty if it is not in the capture."""
    owner: Owner | None = None if key is None else context.shared.get("owners", {}).get(tuple(key))
    if owner is None or owner.connection_id == place.connection_id:
        return ""
    return owner.words + ("" if owner.capture == place.capture else f" of {owner.capture}")


@requires("own queues")
def _released(context: RuleContext) -> None:
    """connection.close-ok, or the connection is over: whichever comes first."""
    keys = tuple(queue_key(context, name) for name in context.memory["own queues"])
    contribute(context, judge_released, context.session.connection.name()[0], keys)


def judge_released(context: RuleContext, connection_id: str, keys: tuple[Key, ...]) -> None:
    """A connection is over, and its exclusive queues with it."""
    owners = context.shared.get("owners", {})
    for key in keys:
        if tuple(key) in owners and owners[tuple(key)].connection_id == connection_id:
            del owners[tuple(key)]


# deletions


def _deleted(context: RuleContext, name: str) -> None:
    context.memory.get("own queues", {}).pop(name, None)
    if context.ts_ns is not None:
        words = deleted_by(context, context.number)
        contribute(context, judge_deleted, queue_key(context, name), context.ts_ns, words)


def deleted_by(context: RuleContext, number: int) -> str:
    """In which packet something was deleted, and by whom."""
    who = client_of(context).application or client_of(context).host or "a client"
    return f"deleted in packet {number} by {who}"


def judge_deleted(
    context: RuleContext, key: Key, ts_ns: int, words: str, over: str = "deletions"
) -> None:
    """A queue was deleted; the cause is given as text."""
    context.shared.get("owners", {}).pop(tuple(key), None)
    deletions: deque[tuple[int, str]] = remembered(
        context, over, tuple(key), lambda: deque(maxlen=MAX_DELETIONS)
    )
    deletions.append((ts_ns, words))


# consumers


def _consumed(context: RuleContext) -> None:
    """basic.consume: the connection has a consumer of a queue."""
    name = context.queue
    queues = context.memory.setdefault("queues consumed", {})
    if not name or name in queues or len(queues) >= MAX_CONSUMED or context.ts_ns is None:
        return
    queues[name] = None
    place = context.place
    who = (
        f"'{client_of(context).application}' ({place.client})"
        if client_of(context).application
        else place.client
    )
    key = queue_key(context, name)
    contribute(context, judge_consumed, key, place.connection_id, context.ts_ns, who)


def judge_consumed(
    context: RuleContext, key: Key, connection_id: str, ts_ns: int, who: str
) -> None:
    """A connection has a consumer of a queue."""
    consumers: dict[str, Any] = remembered(context, "consumers of queues", tuple(key), dict)
    if len(consumers) < MAX_CONSUMERS:
        consumers[connection_id] = ts_ns, who


def _others(
    context: RuleContext, keys: Sequence[Key], connection_id: str, until_ns: int | None
) -> str:
    """The other connections that consumed from queues until a time, in words, the first first."""
    found = {
        (ts_ns, who)
        for key in keys
        for one, (ts_ns, who) in context.shared.get("consumers of queues", {})
        .get(tuple(key), {})
        .items()
        if one != connection_id and until_ns is not None and ts_ns <= until_ns
    }
    return f"; {some([who for _, who in sorted(found)])} consumed from there too" if found else ""


@where(HELD)
def _in_doubt(context: RuleContext) -> None:
    """A channel ended with deliveries that were not settled."""
    channel = context.channel
    if not context.certain or not channel.known or not channel.closed_by or not channel.unsettled:
        return
    conversation = context.session.connection.conversation
    readers = context.memory.get(READERS, ())
    waiting = [entry for entry in channel.deliveries if entry.wants]
    entries = [entry for entry in waiting if not _is_of_stream(readers, channel, entry)]
    if not entries:
        return
    closed_alone = channel.close is not None  # else its connection ended
    private = () if closed_alone else context.memory.get("own queues", ())
    notified = all(
        _NOTIFIED in (context.session.handshake_json(f"connection.{one}") or b"")
        for one in ("start", "start-ok")
    )
    left: dict[str, QueueRemainder] = {}
    for entry in entries:
        name = (entry.consumer.queue if entry.consumer else None) or ""
        if name not in left and len(left) >= MAX_QUEUES:
            continue
        if name not in left:
            consumer = entry.consumer
            is_open = consumer is not None and consumer in channel.by_tag.values()
            left[name] = QueueRemainder(
                entry.packet_number, private=name in private, notified=is_open and notified
            )
        left[name].count += 1
        left[name].last_ns = max(left[name].last_ns, entry.ts_ns)
    number = channel.closed_packet_number or conversation.last_packet_number
    ended_ns = channel.end_ns or conversation.end_ns
    place = context.place_of(number, ended_ns if ended_ns > 0 else None)
    contribute(
        context,
        judge_left,
        tuple((queue_key(context, name), *vars(queue).values()) for name, queue in left.items()),
        channel.unsettled - len(waiting) + len(entries),
        when_closed(channel.closed_by),
        channel.number,
        place,
    )


def _is_of_stream(readers: Any, channel: Any, entry: Any) -> bool:
    """True if a delivery is of a stream, which keeps it and delivers it to whoever asks."""
    consumer = entry.consumer
    return consumer is not None and (channel.number, consumer.tag) in readers


def judge_left(
    context: RuleContext,
    left: tuple[Any, ...],
    total: int,
    when: str,
    channel: int,
    where: tuple[Any, ...],
) -> None:
    """Deliveries that a channel had outstanding: those of queues that are gone, and the others."""
    place = Place(*where)
    gone: list[Any] = []
    others: list[Any] = []
    doubted: list[tuple[Sequence[str], int]] = []
    for key, count, number, last_ns, private, notified in left:
        why = (
            "exclusive to its connection"
            if private
            else deletion_words(context, key, last_ns, place.ts_ns)
        )
        if not why and not notified:
            if _may_be_gone(context, key, last_ns, place.ts_ns):
                total -= count
                continue
            doubted.append((key, last_ns))
        (gone if why else others).append((key[2], count, number, why))
    lost = sum(count for _, count, _, _ in gone)
    for code, rows, count in (
        ("deliveries-deleted", gone, lost),
        ("deliveries-in-doubt", others, total - lost),
    ):
        if not count:
            continue
        detail = _words(rows, count, when)
        if rows is others:
            names = {name for name, *_ in others}
            keys = [key for key, *_ in left if key[2] in names]
            detail += _others(context, keys, place.connection_id, place.ts_ns)
        report_at(context, place, code, detail, count, None, channel)
        if rows is others and doubted:
            finding = (code, place.connection_id or place.capture, channel, None)
            in_doubt: deque[Any] = remembered(
                context, "doubted", doubted[0][0][0], lambda: deque(maxlen=MAX_DOUBTED)
            )
            in_doubt.append((finding, place.ts_ns or 0, tuple(doubted)))


def _deletion_key(context: RuleContext, name: str) -> tuple[str, str | None, str]:
    """A queue that is deleted; of an unknown virtual host it may be any of that name."""
    return client_of(context).server, vhost_of(context), name


def judge_asked(
    context: RuleContext, server: str, vhost: str | None, name: str, ts_ns: int, asked: bool
) -> None:
    """A client requested a deletion, or the broker refused it."""
    waiting: deque[int] = remembered(
        context, "deletions asked", (server, vhost, name), lambda: deque(maxlen=MAX_DELETIONS)
    )
    if not asked:
        waiting.clear()
        return
    waiting.append(ts_ns)
    _take_back(context, server, ts_ns, (vhost, name))


def _lost(context: RuleContext) -> None:
    """frames-lost: a client may have deleted any queue."""
    session = context.session
    if context.facts["side"] == CLIENT:
        _missing(context, max(session.last_client_ns, session.connection.conversation.start_ns))


def _missing(context: RuleContext, since_ns: int | None) -> None:
    """A deletion may be missing from a time on, until the connection ends."""
    if since_ns is not None and MISSING not in context.memory:
        context.memory[MISSING] = since_ns
        where = client_of(context).server, context.session.connection.name()[0]
        contribute(context, judge_missing, *where, since_ns, NEVER)


@requires(MISSING)
def _over(context: RuleContext) -> None:
    """connection-ends: nothing that came later can be missing of it."""
    connection_id, since_ns = context.session.connection.name()[0], context.memory[MISSING]
    end_ns = context.session.connection.conversation.end_ns
    contribute(context, judge_missing, client_of(context).server, connection_id, since_ns, end_ns)


def judge_missing(
    context: RuleContext, server: str, connection_id: str, since_ns: int, until_ns: int
) -> None:
    """Deletions at a broker may be missing of a connection in a time."""
    spans: dict[str, tuple[int, int]] = remembered(context, MISSING, server, dict)
    if connection_id not in spans and len(spans) >= MAX_DOUBTED:
        connection_id = ""  # those of further connections are one
        before = spans.get("", (since_ns, until_ns))
        since_ns, until_ns = min(before[0], since_ns), max(before[1], until_ns)
    spans[connection_id] = since_ns, until_ns
    if until_ns == NEVER:
        _take_back(context, server, since_ns, None)


def _may_be_gone(
    context: RuleContext, key: Sequence[str], from_ns: int, until_ns: int | None
) -> bool:
    """True if a queue may have been deleted in a time."""
    server, vhost, name = key
    if until_ns is None:
        return False
    asked = context.shared.get("deletions asked", {})
    times = [*asked.get((server, vhost, name), ()), *asked.get((server, None, name), ())]
    spans = context.shared.get(MISSING, {}).get(server, {}).values()
    return any(from_ns <= time <= until_ns for time in times) or any(
        since_ns <= until_ns and from_ns <= end_ns for since_ns, end_ns in spans
    )


def _take_back(
    context: RuleContext, server: str, ts_ns: int, queue: tuple[str | None, str] | None
) -> None:
    """Withdraw findings about a queue, None for any, that may have been deleted at a time."""
    doubted = context.shared.get("doubted", {}).get(server)
    for doubt in list(doubted or ()):
        finding, until_ns, queues = doubt
        if ts_ns <= until_ns and (queue is None or _is_among(queue, ts_ns, queues)):
            doubted.remove(doubt)
            context.log.withdraw(finding)


def _is_among(
    queue: tuple[str | None, str], ts_ns: int, queues: Sequence[tuple[Sequence[str], int]]
) -> bool:
    vhost, name = queue
    for key, from_ns in queues:
        if key[2] == name and from_ns <= ts_ns and (vhost is None or vhost == key[1]):
            return True
    return False


def deletion_words(
    context: RuleContext,
    key: Sequence[str],
    from_ns: int,
    until_ns: int | None,
    over: str = "deletions",
) -> str:
    """The first deletion of a queue in a time, in words; empty without one."""
    for ts_ns, words in context.shared.get(over, {}).get(tuple(key), ()):
        if until_ns is not None and from_ns <= ts_ns <= until_ns:
            return str(words)
    return ""


def _words(rows: list[Any], count: int, when: str) -> str:
    deliveries = number_of(count, "delivery", "deliveries")
    if not rows:
        return f"{deliveries}, {when}"
    named = ", ".join(
        queue_text(name) + (f" ({why})" if why else "") for name, _, _, why in sorted(rows)[:3]
    )
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    first = "the first in" if count > 1 else "in"
    number = min(number for _, _, number, _ in rows)
    return f"{deliveries} from {named}{more}, {first} packet {number}, {when}"


RESIDENCE = "queue-residence-long"

LONG_NS = SECOND_NS
"""Mean time in a queue that is long: with a consumer that keeps up it takes milliseconds."""

VERY_LONG_NS = 10 * SECOND_NS
"""A single time that is long."""

MIN_SAMPLES = 10
"""Messages below which a mean says little."""


@where(BUSY | WAITED)
def judge_residence(context: RuleContext) -> None:
    """channel-ends: messages that waited for their consumer."""
    times = context.channel.times
    if is_long(times):
        number, _, queue, published = times.longest
        detail = residence_words(times, queue, published)
        context.report(
            RESIDENCE, detail, number=times.long_number, ts_ns=times.long_ns,
            count=times.queued_long, last=number,
        )  # fmt: skip


def is_long(times: Any) -> bool:
    """True if times in a queue are, as of `QueueTimes`."""
    often = times.queued >= MIN_SAMPLES and times.queued_ns / times.queued >= LONG_NS
    return bool(often or times.queued_ns_max >= VERY_LONG_NS)


def residence_words(times: Any, queue: str | None, published: int) -> str:
    """The detail about queue times; `published` is the packet of the publish with the longest."""
    took = took_text(times.queued, times.queued_ns, times.queued_ns_max)
    long = ""
    if times.queued_long < times.queued:
        long = f"; {times.queued_long} of them after {duration(WAITED_NS)} or longer"
    return (
        f"{queue_text(queue)}: {number_of(times.queued, 'message')}, delivered after {took} "
        f"(published in packet {published}){long}"
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "queue.declare": (_declares,),
    "queue.delete": (_asked,),
    "basic.consume": (_consumed,),
    "queue.declare-ok": (_answered,),
    "queue.delete-ok": (_answered,),
    "channel.close": (_refused,),
    "frames-lost": (_lost,),
    "channel-ends": (
        _in_doubt,
        judge_residence,
    ),
    "connection.close-ok": (_released,),
    "connection-ends": (_released, _over),
}
