# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections and channels that are opened for next to nothing, again and again."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.entities import Channel, Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import OPENS, SHORT
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of

from amqpsniff.findings import Finding
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.shared_connections import closed_together
from amqpsniff.session.rules.shared_state import contribute, first_place, report_at
from amqpsniff.units import duration, rate

FEW_MESSAGES = 3
"""Messages of a connection that was not worth its opening."""

SHORT_CONNECTIONS = 5
"""Short connections of a client, within `CHURN_NS`, from which on it is how it works."""

CHURN_NS = 10 * SECOND_NS
"""Command-line tools and health checks connect less often than `SHORT_CONNECTIONS` in this."""

MAX_CLIENTS = 10_000
"""Addresses remembered; a scan may come from any number."""

BRIEF_CHANNELS = 10
"""Channels of a connection with next to no operations from which on it is how it works."""

FEW_OPERATIONS = 2
"""Messages on a channel that was not worth its opening."""

SPRING_RATE = 25
"""Channels a second; Spring's default cache keeps 25 of them."""


@where(SHORT)
def judge_connection(context: RuleContext) -> None:
    """connection-ends: note a connection that did next to nothing."""
    session: Session = context.session
    connection: Connection = session.connection
    conversation = connection.conversation
    if not context.certain or "connection.open" not in session.handshake:
        return
    if session.closed_by == "server":
        return  # not the client
    if session.closed_by is None and conversation.ended is None:
        return  # it may go on for long after the capture
    client: Client = client_of(context)
    if max(context.messages) > FEW_MESSAGES or not client.host:
        return
    if client.brief is not None:
        context.log.count(client.brief, 1, conversation.first_packet_number)
        return
    contribute(context, judge_short, first_place(context))


def judge_short(context: RuleContext, place: Sequence[Any]) -> None:
    """One more connection that did next to nothing."""
    here = Place(*place)
    address = (here.client or "").rpartition(":")[0]
    clients = context.shared.setdefault("short connections", OrderedDict())
    seen = clients.get(address)
    if seen is None:
        if len(clients) >= MAX_CLIENTS:
            clients.popitem(last=False)
            context.forget("clients")
        seen = clients[address] = [deque(maxlen=SHORT_CONNECTIONS), None]
    if isinstance(seen[1], Finding):
        if context.session is not None:
            client_of(context).brief = seen[1]
        context.log.count(seen[1], 1, here.packet_number)
        return
    seen[0].append(here)
    _judge_client(context, address, seen)


def _judge_client(context: RuleContext, address: str, seen: list[Any]) -> None:
    places, found = seen
    count = 1
    if found is None:
        if len(places) < SHORT_CONNECTIONS or _spread_ns(places) > CHURN_NS:
            return
        count = SHORT_CONNECTIONS
        found = seen[1] = places[0]
    apart = _spread_ns(places) / (SHORT_CONNECTIONS - 1)
    detail = (
        f"{address} opens a connection every {duration(apart)} and closes it within a "
        f"second, with at most {FEW_MESSAGES} messages on each"
    )
    report_at(context, found, "connection-churn", detail, count, places[-1].packet_number)
    seen[1] = context.log.find("connection-churn", found.connection_id) or found


def _spread_ns(places: deque[Place]) -> int:
    """From the first to the last beginning; connections end in another order than they began."""
    begun = [place.ts_ns or 0 for place in places]
    return max(begun) - min(begun)


def note_channel(context: RuleContext) -> None:
    """channel-ends: count it if it was opened and closed for next to nothing."""
    channel: Channel = context.channel
    if not channel.known or channel.close is None or channel.closed_by != "client":
        return
    if channel.published + channel.delivered + channel.times.gets > FEW_OPERATIONS:
        return
    first = (0, channel.opened_packet_number, channel.start_ns, None, None)
    count, number, begin_ns, _, _ = context.memory.get("brief channels", first)
    last = channel.closed_packet_number
    context.memory["brief channels"] = (count + 1, number, begin_ns, channel.end_ns, last)


@where(OPENS)
@requires("brief channels")
def judge_channels(context: RuleContext) -> None:
    """connection-ends: many such channels, most of all."""
    count, number, begin_ns, end_ns, last = context.memory["brief channels"]
    opened = context.session.channels_opened
    if count < BRIEF_CHANNELS or 2 * count < opened:
        return
    if not context.complete or closed_together(context):
        return
    detail = f"{count} of {opened} channels carried at most {FEW_OPERATIONS} messages"
    pace = 0.0
    if begin_ns is not None and end_ns is not None and end_ns > begin_ns:
        pace = count * SECOND_NS / (end_ns - begin_ns)
        detail += f", {rate(pace)} of them a second"
    context.report("channel-churn", detail, number=number, ts_ns=begin_ns, count=count, last=last)
    if pace >= SPRING_RATE and _is_java(context):
        detail = f"a Java client opens and closes {rate(pace)} channels a second"
        context.report("spring-channel-cache", detail, number=number, ts_ns=begin_ns)


def _is_java(context: RuleContext) -> bool:
    """True if the client says that it is RabbitMQ's Java client."""
    named = client_of(context).text("product"), client_of(context).text("platform")
    return named == ("RabbitMQ", "Java")


RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (judge_connection, judge_channels),
    "channel-ends": (note_channel,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (judge_connection,)}
