# cython: language_level=3, boundscheck=True, nonecheck=True
"""TCP below a connection: retransmissions, closed windows, missing sides, encryption."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.session.entities import Channel, Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import (
    DELIVERED,
    DOUBTED,
    PUBLISHED,
    QUIET,
    SPOKE,
    ZERO_WINDOW,
)
from cython.cimports.amqpsniff.session.rules.peers import Client

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read
from amqpsniff.session.rules.context import Rule, where
from amqpsniff.session.rules.flow_control import was_blocked
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.peers import forgotten
from amqpsniff.session.rules.shared_state import Alike, Verdict
from amqpsniff.units import duration, octets

MIN_RETRANSMISSIONS = 10
RETRANSMITTED_SHARE = 0.01
"""Noticeable retransmissions of one side: at least this number and this share of its packets. A
path that loses one packet in a hundred is slow for every protocol above TCP."""

SMALL_FRAME_MAX = 8192


@where(DOUBTED | QUIET)
def _ended(context: RuleContext) -> None:
    session: Session = context.session
    connection: Connection = session.connection
    conversation = connection.conversation
    if session.newest is None:
        return
    if max(conversation.retransmissions) >= MIN_RETRANSMISSIONS:
        _retransmissions(context)
    if not context.complete:
        _doubts(context)


def _readable(client: Client) -> Iterator[Verdict]:
    """connection-ends: anyone on the way can read it."""
    if client.on_network:
        ends = client.host, client.server
        yield "connection-unencrypted", ends, f"{ends[0]} speaks AMQP without TLS to {ends[1]}"


def _retransmissions(context: RuleContext) -> None:
    connection = context.session.connection
    conversation = connection.conversation
    blocked = was_blocked(context.session)
    said_of, firsts = [], []
    for direction in (0, 1):
        if blocked and direction == connection.client_direction:
            continue  # what is sent again to a broker that does not read was not lost
        again = conversation.retransmissions[direction]
        all_of = conversation.packets[direction] - conversation.copies[direction]
        if again >= MIN_RETRANSMISSIONS and again >= RETRANSMITTED_SHARE * all_of:
            side = "client" if direction == connection.client_direction else "broker"
            share = f"{100 * again / all_of:.1f} %" if all_of else "all"
            said_of.append(f"{again} of {all_of} packets of the {side} ({share})")
            firsts.append(conversation.first_retransmissions[direction])
    if not said_of:
        return
    place: dict[str, Any] = {}  # at the end, behind its cause, where the path or a host was gone
    if "interrupted" not in context.memory and forgotten(context) is None:
        number, ts_ns = min(firsts)
        place = {"number": number, "ts_ns": ts_ns, "last": context.number}
    context.report("tcp-retransmissions", ", ".join(said_of) + " were sent again", **place)


def _doubts(context: RuleContext) -> None:
    """Report once why a connection is not judged."""
    doubt = _doubt(context)
    if doubt:
        detail = f"{doubt}: findings that need the whole connection are left out"
        context.report("capture-inconclusive", detail)


def _doubt(context: RuleContext) -> str:
    session = context.session
    conversation = session.connection.conversation
    if 0 in conversation.packets:
        missing = 0 if not conversation.packets[0] else 1
        side = "client" if missing == session.connection.client_direction else "broker"
        return f"no packet from the {side} was captured"
    holes, lost = conversation.holes
    cut = sum(conversation.cut_bytes)
    if session.has_loss and holes:
        return f"frames are missing, in {number_of(holes, 'hole')} of {octets(lost)}"
    if session.has_loss and cut:
        return f"frames or arguments are missing, in {octets(cut)} that the snap length cut"
    return ""


@where(PUBLISHED | DELIVERED)
def _channel_ended(context: RuleContext) -> None:
    """Bodies that are larger than the frames agreed on, on average."""
    channel: Channel = context.channel
    session: Session = context.session
    messages = channel.published + channel.delivered
    frame_max = read(session.handshake_json("connection.tune-ok")).get("frame_max")
    carried = channel.times.publish_bytes + channel.times.deliver_bytes
    if not isinstance(frame_max, int) or not 0 < frame_max <= SMALL_FRAME_MAX:
        return
    if carried > messages * (frame_max - 8) and "small frames" not in context.memory:
        context.memory["small frames"] = True
        size = carried // messages
        detail = f"frame-max {frame_max}; bodies of {number_of(size, 'byte')} on average"
        detail += f" in {number_of(messages, 'message')}"
        number = channel.opened_packet_number or None
        context.report("frame-max-small", detail, number=number, ts_ns=channel.start_ns)


SHUT_NS = SECOND_NS
"""Time for which a window must be closed in all; shorter pauses are ordinary."""

CODES = (("client", "client-not-reading"), ("broker", "broker-not-reading"))


def shut_of(session: Any, side: int) -> Any:
    """The closed times of a side's window (0: the client's); None if no data waited for it."""
    direction = session.connection.client_direction
    return None if direction < 0 else session.connection.conversation.zero_windows[direction ^ side]


@where(ZERO_WINDOW)
def judge_windows(context: RuleContext) -> None:
    """connection-ends: windows that were closed for long."""
    for side, (name, code) in enumerate(CODES):
        shut = shut_of(context.session, side)
        if shut is None or shut.total_ns < SHUT_NS:
            continue
        detail = f"the {name}'s window was closed for {duration(shut.total_ns)}"
        if shut.times > 1:
            detail += f" in {shut.times} times, {duration(shut.longest_ns)} at most"
        _raise(context, code, detail, shut)


def _raise(context: RuleContext, code: str, detail: str, shut: Any) -> None:
    context.report(code, detail, number=shut.packet_number, ts_ns=shut.start_ns, count=shut.times)


_UNENCRYPTED = Alike(_readable, at_first=True, where=SPOKE)

RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (_ended, _UNENCRYPTED, judge_windows),
    "channel-ends": (_channel_ended,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (_ended, _UNENCRYPTED, judge_windows)
}
