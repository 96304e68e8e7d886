# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections and channels that are opened for next to nothing, again and again."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.findings.finding import Finding
from cython.cimports.amqpsniff.session.entities import Channel, Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import OPENS, SHORT
from cython.cimports.amqpsniff.session.rules.peers import Client, client_of

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Place, Rule, requires, where
from amqpsniff.session.rules.shared_connections import closed_together
from amqpsniff.session.rules.shared_state import contribute, first_place, report_at
from amqpsniff.spec import FIRST_ERROR_CODE
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


_VARIABLE = re.compile(r"[0-9a-fA-F-]{8,}|\d+")
"""Parts of a name that differ between connections of one application: UUIDs, hashes, numbers."""


@cython.cclass
class _Churn:
    """Connections of one client that did next to nothing, and the finding once it is there.

    Attributes:
        places: The first packets of the latest, before there is a finding.
        count, begin_ns, end_ns: Number of those of the finding; the first and last beginning.
    """

    words: str
    places: deque[Place]
    first: Place | None
    finding: Finding | None
    count: cython.longlong
    begin_ns: cython.longlong
    end_ns: cython.longlong

    def __init__(self, words: str) -> None:
        self.words = words
        self.places = deque(maxlen=SHORT_CONNECTIONS)
        self.first = self.finding = None
        self.count = self.begin_ns = self.end_ns = 0

    @cython.ccall
    def add(self, begin_ns: cython.longlong) -> None:
        """Count one more connection; the finding is updated now and then, and at the end."""
        self.count += 1
        self.end_ns = max(self.end_ns, begin_ns)
        if self.count & (self.count - 1) == 0:
            self.tell()

    def tell(self) -> None:
        """Let the finding speak of all connections so far."""
        if self.finding is not None:
            self.finding.detail = self.detail()

    def detail(self) -> str:
        """The words of the finding."""
        lasted = self.end_ns - self.begin_ns
        return (
            f"{self.words} opened {self.count:,} connections in {duration(lasted)}, one every "
            f"{duration(lasted / (self.count - 1))}, and closed each within a second, with at most "
            f"{FEW_MESSAGES} messages on it"
        )


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
    if "failure" in context.memory and (session.close_code or 0) < FIRST_ERROR_CODE:
        return  # a channel of it failed, or its TCP
    if session.closed_by is None and conversation.ended is None:
        return  # it may continue long after the capture
    client: Client = client_of(context)
    if max(context.messages) > FEW_MESSAGES or not client.host:
        return
    churn: _Churn = client.churn
    if churn is not None:
        churn.add(conversation.start_ns)
        context.log.count(churn.finding, 1, conversation.first_packet_number)
        return
    name = _VARIABLE.sub("…", client.application)  # some have a number of their own in it
    who = client.host, client.user, name
    contribute(context, judge_short, who, client.words, first_place(context))


def judge_short(
    context: RuleContext, client: Sequence[Any], words: str, place: Sequence[Any]
) -> None:
    """One more connection of a client that did next to nothing."""
    here, log = Place(*place), context.log
    clients = context.shared.setdefault("short connections", OrderedDict())
    churn: _Churn = clients.get(client)
    if churn is None:
        if len(clients) >= MAX_CLIENTS:
            clients.popitem(last=False)
            context.forget("clients")
        churn = clients[client] = _Churn(words)
    if churn.first is not None:
        churn.add(here.ts_ns or 0)
        if churn.finding is None:  # it has no place of its own
            report_at(context, churn.first, "connection-churn", "", last=here.packet_number)
            return
        if context.session is not None:
            client_of(context).churn = churn
        log.count(churn.finding, 1, here.packet_number)
        return
    churn.places.append(here)
    begun = [place.ts_ns or 0 for place in churn.places]  # they end in another order
    if len(begun) < SHORT_CONNECTIONS or max(begun) - min(begun) > CHURN_NS:
        return
    churn.first, churn.count = churn.places[0], SHORT_CONNECTIONS
    churn.begin_ns, churn.end_ns = min(begun), max(begun)
    report_at(
        context, churn.first, "connection-churn", churn.detail(), churn.count, here.packet_number
    )
    churn.finding = log.find("connection-churn", churn.first.connection_id)


def tell_churn(context: RuleContext) -> None:
    """capture-ends: let findings of churn speak of all their connections."""
    churn: _Churn
    for churn in context.shared.get("short connections", {}).values():
        churn.tell()


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
    """True if the client is RabbitMQ's Java client, by its properties."""
    named = client_of(context).text("product"), client_of(context).text("platform")
    return named == ("RabbitMQ", "Java")


RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (judge_connection, judge_channels),
    "channel-ends": (note_channel,),
    "capture-ends": (tell_churn,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (judge_connection,)}
