"""Clients that lost a connection with consumers, came back, and do not consume again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from amqpsniff.session.codes import CLIENT
from amqpsniff.session.rules.consuming import OF_BROKER
from amqpsniff.session.rules.context import Place, Rule, RuleContext, where
from amqpsniff.session.rules.format import names_text
from amqpsniff.session.rules.occasions import CONSUMES, DOUBTED, STAYED, STAYED_NS
from amqpsniff.session.rules.peers import began_ns, client_of, end_ns, last_packets_ns, vhost_of
from amqpsniff.session.rules.shared_state import (
    contribute,
    first_place,
    open_channels,
    remembered,
    report_at,
)
from amqpsniff.units import duration

MAX_RETURNS = 64
"""Connections of one client that are remembered, the latest."""

ALWAYS = 2**63 - 1
"""The time until which a connection that does not end in the capture consumes."""

LEFT = "consumed until the close"
"""Name in `RuleContext.memory` of queues that a connection consumes from when it is closed."""

CANCELLED = "cancelled by the client"
"""Name in `RuleContext.memory` of the consumers that the client cancels, by channel number and tag,
until the broker answers; with None there are more."""

MAX_CANCELLED = 64
"""Consumers that a connection cancels without an answer and that are remembered."""


class _Consumed:
    """A client and a queue that it consumed from.

    Attributes:
        until_ns: Time until which it did, on connections that it closed or that stay open.
        lost_ns: Time of its last packet on the last connection that ended otherwise.
        server, host: The two ends of that connection.
        place: Its end.
    """

    def __init__(self) -> None:
        self.until_ns = self.lost_ns = -1
        self.server = self.host = ""
        self.place: Place | None = None


def consumed(context: RuleContext) -> None:
    """basic.consume: the queue is taken care of from now on."""
    answered(context)
    if context.queue and context.ts_ns is not None:
        contribute(context, judge_consumed, (vhost_of(context) or ""), context.queue, context.ts_ns)
    else:
        contribute(context, judge_unseen, client_of(context).host, ALWAYS)


def judge_consumed(context: RuleContext, vhost: str, queue: str, ts_ns: int) -> None:
    """A client consumes from a queue."""
    times: list[int] = remembered(context, "consumed last", (vhost, queue), lambda: [ts_ns])
    times[0] = max(times[0], ts_ns)


def cancelled(context: RuleContext) -> None:
    """basic.cancel: a client that gives up a queue does so on purpose."""
    tag = context.frame.consumer_tag
    if context.frame.side == CLIENT and tag in context.channel.by_tag:
        given_up = context.memory.setdefault(CANCELLED, set())
        given_up.add((context.channel.number, tag) if len(given_up) < MAX_CANCELLED else None)


def answered(context: RuleContext) -> None:
    """basic.cancel-ok: the consumer is gone."""
    if CANCELLED in context.memory:
        context.memory[CANCELLED].discard((context.channel.number, context.frame.consumer_tag))


@where(CONSUMES)
def closed(context: RuleContext) -> None:
    """connection.close: its channels end before it does."""
    context.memory.setdefault(LEFT, _queues(context))


@where(CONSUMES | DOUBTED | STAYED)
def ended(context: RuleContext) -> None:
    """connection-ends: which queues it leaves, and how long it was there."""
    session, now_ns = context.session, end_ns(context)
    ends = session.closed_by is not None or session.connection.conversation.ended is not None
    if now_ns is None or not context.certain or not session.handshake_whole("connection.start-ok"):
        contribute(context, judge_unseen, client_of(context).host, now_ns if ends else ALWAYS)
        return
    began, queues = began_ns(context), context.memory.get(LEFT)
    if queues is None:  # there was no consumer when a side closed it
        queues = () if session.close_packet_number is not None else _queues(context)
    stayed = began is not None and now_ns - began > STAYED_NS
    if not (queues or stayed) or "connection.open-ok" not in session.handshake:
        return
    who = _client(context)
    if who is None:
        return
    where = client_of(context).server, client_of(context).host, vhost_of(context) or "", who
    if queues:
        lost = ends and session.closed_by != "client"
        until_ns = last_packets_ns(context)[0] if lost else now_ns if ends else ALWAYS
        contribute(context, judge_left, where, queues, until_ns, lost, context.place)
    if began is not None and stayed:
        words, place = client_of(context).words, first_place(context)
        contribute(context, judge_returned, where, began, now_ns - began, words, place)


def judge_left(
    context: RuleContext,
    where: Sequence[Any],
    queues: Sequence[str],
    until_ns: int,
    lost: bool,
    place: tuple[Any, ...],
) -> None:
    """A connection is over, or the capture is; the client consumed from queues until then."""
    server, host, vhost, who = where
    for queue in queues:
        consumed = remembered(context, "consumed by", (vhost, queue, *who), _Consumed)
        if not lost:
            consumed.until_ns = max(consumed.until_ns, until_ns)
        elif until_ns > consumed.lost_ns:
            consumed.lost_ns, consumed.server, consumed.host, consumed.place = (
                until_ns,
                server,
                host,
                Place(*place),
            )


def judge_returned(
    context: RuleContext,
    where: Sequence[Any],
    began: int,
    lasted_ns: int,
    words: str,
    place: tuple[Any, ...],
) -> None:
    """A client was connected for long."""
    server, host, vhost, who = where
    returns: deque[Any] = remembered(
        context, "returned", (server, vhost, *who), lambda: deque(maxlen=MAX_RETURNS)
    )
    returns.append((began, lasted_ns, host, words, Place(*place)))


def judge_unseen(context: RuleContext, host: str, until_ns: int | None) -> None:
    """A client on this host may have consumed from any queue until then."""
    times: list[int] = remembered(context, "consumes unseen", host, lambda: [-1])
    times[0] = max(times[0], ALWAYS if until_ns is None else until_ns)


def judge_restored(context: RuleContext) -> None:
    """capture-ends: clients that are back and do not consume from a queue again."""
    shared = context.shared
    if "clients" in shared.get("forgotten", {}):
        return
    missed: dict[Place, tuple[Any, _Consumed, list[str]]] = {}
    for (vhost, queue, *who), consumed in shared.pop("consumed by", {}).items():
        again = shared.get("consumed last", {}).get((vhost, queue), (-1,))[0]
        if consumed.lost_ns <= max(consumed.until_ns, -1) or again > consumed.lost_ns:
            continue
        for back in shared.get("returned", {}).get((consumed.server, vhost, *who), ()):
            unseen = shared.get("consumes unseen", {})
            hosts = (unseen.get(host, (-1,))[0] for host in (consumed.host, back[2]))
            if back[0] > consumed.lost_ns >= max(hosts):
                missed.setdefault(back[4], (back, consumed, []))[2].append(queue)
                break
    for place, (back, consumed, queues) in missed.items():
        detail = (
            f"{back[3]} consumed from queue {names_text(queues)} until its connection ended in "
            f"packet {consumed.place.packet_number if consumed.place else '?'}, came back, and did "
            f"not consume from it in {duration(back[1])}"
        )
        report_at(context, place, "consumer-not-restored", detail)


def _queues(context: RuleContext) -> tuple[str, ...]:
    """The queues that the connection consumes from, without those that are its own."""
    for channel in open_channels(context.session):
        if channel.by_tag:
            break
    else:
        return ()
    private = context.memory.get("exclusive", {})
    given_up = context.memory.get(CANCELLED, set())
    if None in private or None in given_up:  # a name that was cut, and too many
        return ()
    named = {
        consumer.queue
        for channel in open_channels(context.session)
        if not any(channel.closing)
        for tag, consumer in channel.by_tag.items()
        if consumer.queue and (channel.number, tag) not in given_up
    }
    return tuple(sorted(q for q in named if q not in private and not q.startswith(OF_BROKER)))


def _client(context: RuleContext) -> tuple[str, str] | None:
    """The name of a client's connections; without one its host and product."""
    name = client_of(context).text("connection_name")
    if name:
        return name, ""
    product = client_of(context).application
    return (product, client_of(context).host) if product else None


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (consumed,),
    "basic.cancel": (cancelled,),
    "basic.cancel-ok": (answered,),
    "connection.close": (closed,),
    "connection-ends": (ended,),
    "capture-ends": (judge_restored,),
}
