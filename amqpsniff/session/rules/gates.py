# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""The gates of rules: a rule is called only if the state that it reads was noted, or has occurred.

Bits of `occasions` record this state; they are computed here for a connection or a channel that
ends, and for a method's arguments. `rules.context.where` and `requires` declare a rule's needs.
"""

from __future__ import annotations

import cython
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.entities import Channel, ChannelSlot, MessageTimes, Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import (
    BUSY,
    BUSY_BYTES,
    BUSY_MESSAGES,
    CONFIRMS,
    CONSUMES,
    DEEP,
    DELIVERED,
    DOUBTED,
    EXCLUSIVE,
    EXTENDED,
    HELD,
    LASTED,
    LEFT_OPEN,
    MANY_ENTRIES_BYTES,
    NESTED,
    OPENS,
    PASSIVE,
    PUBLISHED,
    QUIET,
    QUIET_NS,
    READ,
    REPEATS,
    SEVERAL_CHANNELS,
    SHORT,
    SHORT_NS,
    SPOKE,
    STAYED,
    STAYED_NS,
    UNCLEAN,
    UNOPENED,
    UNPROTECTED,
    WAITED,
    WAITED_NS,
    WAITING,
    ZERO_WINDOW,
)

from amqpsniff.session.rules.occasions import OLDEST, PROVISIONAL, SINCE, STUCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.session.rules.context import Rule


@cython.cclass
class GatedRule:
    """A rule and its gate: see `rules.context.requires` for `names` and `where` for `bits`."""

    rule: Any
    names: tuple[str, ...]
    bits: cython.int

    def __init__(self, rule: Rule, names: tuple[str, ...] | None, bits: int) -> None:
        self.rule, self.names, self.bits = rule, names, bits


def ask(rules: tuple[Any, ...], context: RuleContext, bits: cython.int) -> cython.int:
    """Ask rules about one context, which they share; `bits` is what `context.where` looks at."""
    gated: GatedRule
    for gated in rules:
        if gated.bits < 0 or bits & gated.bits:
            if gated.names is None or _is_noted(gated.names, context.memory):
                gated.rule(context)
    return 0


@cython.cfunc
@cython.exceptval(-1, check=False)
def _is_noted(names: tuple[Any, ...], memory: dict[Any, Any]) -> cython.bint:
    """True if something was noted under one of the names."""
    for name in names:  # noqa: SIM110 - compiled, this is a loop
        if name in memory:
            return True
    return False


def argument_bits(octets: bytes | None) -> cython.int:
    """The bits of a method's arguments that `rules.context.where` asks for.

    `find`, since `in` takes three times as long for bytes.
    """
    bits: cython.int = ~(PASSIVE | EXTENDED | NESTED | EXCLUSIVE)
    if octets is None:
        return bits
    if octets.find(b'"x-') >= 0:
        bits |= EXTENDED
    if len(octets) >= MANY_ENTRIES_BYTES or octets.count(b"{") + octets.count(b"[") > DEEP:
        bits |= NESTED
    if octets.find(b'"passive":true') >= 0:
        bits |= PASSIVE
    if octets.find(b'"exclusive":true') >= 0 or octets.find(b'"auto_delete":true') >= 0:
        bits |= EXCLUSIVE
    return bits


def has_consumers(session: Session) -> cython.bint:
    """True if a connection has or had consumers."""
    if session.has_consumed or SINCE in session.memory:
        return True
    return session.routes is not None and session.routes.consumed


@cython.cfunc
@cython.exceptval(-1, check=False)
def _message_bits(published: cython.longlong, delivered: cython.longlong) -> cython.int:
    """Messages of a channel or connection, as bits."""
    bits: cython.int = 0
    if published:
        bits |= PUBLISHED
    if delivered:
        bits |= DELIVERED
    if published >= BUSY_MESSAGES or delivered >= BUSY_MESSAGES:
        bits |= BUSY
    return bits


def channel_bits(channel: Channel) -> cython.int:
    """Bits of a channel that ends, for `ask`: see `occasions`."""
    bits: cython.int = _message_bits(channel.published, channel.delivered)
    memory: dict[Any, Any] = channel.session.memory
    times: MessageTimes = channel.times
    if channel.published:
        if (
            times.confirmed
            or channel.publishes
            or channel.unnumbered_confirms is not None
            or channel.amqp10 is not None
        ):
            bits |= CONFIRMS
        if not channel.mode:
            bits |= UNPROTECTED
        if times.repeats > 1:
            bits |= REPEATS
    if channel.delivered:
        if times.deliver_bytes >= BUSY_BYTES:
            bits |= BUSY
        if max(times.queued_ns_max, times.ack_ns_max) >= WAITED_NS:
            bits |= WAITED
        if channel.unsettled or PROVISIONAL in memory or STUCK in memory or OLDEST in memory:
            bits |= HELD
    if channel.by_tag:
        bits |= CONSUMES
    return bits


def connection_bits(session: Session) -> cython.int:
    """Bits of a connection that ends, for `ask`: see `occasions`."""
    slot: ChannelSlot
    bits: cython.int = 0
    published: cython.longlong = session.published
    delivered: cython.longlong = session.delivered
    connection: Connection = session.connection
    tcp = connection.conversation
    for slot in session.slots():
        if slot.requests:
            bits |= WAITING
        if slot.channel is not None:
            published += slot.channel.published
            delivered += slot.channel.delivered
    bits |= _message_bits(published, delivered)
    if "connection.start" in session.handshake and "connection.open-ok" not in session.handshake:
        bits |= UNOPENED
    if session.closed_by is None or not session.over:
        bits |= UNCLEAN
        if session.closed_by is None and tcp.ended is None:
            bits |= LEFT_OPEN
    if tcp.zero_windows != (None, None):
        bits |= ZERO_WINDOW
    packets = tcp.packets
    start_ns = tcp.start_ns
    end_ns: cython.longlong = tcp.end_ns
    certain = connection.began and not session.has_loss and packets[0] and packets[1]
    if not certain or end_ns <= 0 or not session.handshake_whole("connection.start-ok"):
        bits |= DOUBTED
    if start_ns > 0 and end_ns - start_ns > STAYED_NS:
        bits |= STAYED
    if start_ns > 0 and end_ns - start_ns < SHORT_NS:
        bits |= SHORT
    else:
        bits |= LASTED
    if session.newest is not None:
        bits |= SPOKE
    if has_consumers(session):
        bits |= CONSUMES
    if session.channels_opened >= SEVERAL_CHANNELS:
        bits |= OPENS
    if connection.reads_bodies:
        bits |= READ
    last: cython.longlong = min(session.last_client_ns, session.last_server_ns)
    silence: cython.longlong = max(session.silence_client_ns, session.silence_server_ns)
    if last <= 0 or max(silence, end_ns - last) >= QUIET_NS or tcp.retransmissions != (0, 0):
        bits |= QUIET
    return bits
