"""Heartbeats: off, too frequent, or missing.

A peer sends something at least every half interval, and is given up after two (measured on RabbitMQ
3.10.8: RST at 2.96 s for an interval of 1 s). What counts as silence is time without any frame.
Where both sides are silent and no packet comes from one of them, neither missed its heartbeats:
they did not get through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_frame import read
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.occasions import QUIET
from amqpsniff.session.rules.peers import (
    Client,
    end_ns,
    ender,
    forgotten,
    handshake,
    last_packets_ns,
)
from amqpsniff.session.rules.shared_state import Alike, Verdict
from amqpsniff.units import duration

TOO_SHORT_S = 5
"""Interval in seconds below which pauses of a network or a process end connections."""


def interval(context: RuleContext) -> int | None:
    """The interval of tune-ok in seconds, 0 when heartbeats are off; None when not captured."""
    beat = handshake(context, "connection.tune-ok").get("heartbeat")
    return beat if isinstance(beat, int) else None


def _beats(client: Client, tune_ok: bytes | None) -> Iterator[Verdict]:
    """tune-ok: report heartbeats that are off, or too frequent."""
    key, beat = (client.host, client.server, client.application), read(tune_ok).get("heartbeat")
    if beat == 0:
        yield "heartbeat-disabled", key, f"{client.words}: heartbeat 0"
    elif isinstance(beat, int) and beat < TOO_SHORT_S:
        yield "heartbeat-too-short", (key, beat), f"{client.words}: {beat} s"


@where(QUIET)
def _ended(context: RuleContext) -> None:
    beat = interval(context)
    if not beat:
        _judge_unanswered(context)
    elif context.session.opening_client_ns >= 0:
        _judge_silence(context, beat)


def _judge_silence(context: RuleContext, beat: int) -> None:
    """Report a side that was silent for longer than its heartbeats allow."""
    if _longest_ns(context) <= beat * SECOND_NS or not context.certain:
        return
    if forgotten(context) is not None:
        return  # who sent heartbeats sent them to nobody
    found, cut = [], ""
    for side, unheard, at_end in _silences(context):
        silence = unheard - _blocked_ns(context) if side == "client" else unheard
        if silence > 2 * beat * SECOND_NS or (at_end and silence > beat * SECOND_NS):
            found.append(f"nothing from the {side} for {duration(silence)}")
            cut = "; then TCP was ended by the other side" if at_end else cut
    if found and interrupted_ns(context):
        context.memory["interrupted"] = True
        context.report("path-interrupted", _interruption(context, beat, cut))
    elif found:
        context.report("heartbeat-missed", f"{', '.join(found)}, heartbeat {beat} s{cut}")


def _judge_unanswered(context: RuleContext) -> None:
    """Report a path on which nothing comes back, where no heartbeat says so: a host that is there
    acknowledges what it gets.
    """
    session = context.session
    if context.complete and session.closed_by is None and any(map(_is_unanswered, *_ends(context))):
        context.memory["interrupted"] = True
        context.report("path-interrupted", _interruption(context, None, ""))


def _ends(context: RuleContext) -> tuple[tuple[Any, ...], ...]:
    """Times of the last frame and packet of each side, of the last packet of the other side, and
    whether it sent bytes again that were not acknowledged.
    """
    session = context.session
    conversation = session.connection.conversation
    again = [
        waits and count > 0
        for waits, count in zip(
            conversation.unacknowledged, conversation.retransmissions, strict=True
        )
    ]
    packets = last_packets_ns(context)
    frames = session.last_client_ns, session.last_server_ns
    return (
        frames,
        packets,
        packets[::-1],
        tuple(again[:: -1 if session.connection.client_direction else 1]),
    )


def _is_unanswered(frame_ns: int, packet_ns: int, other_ns: int, again: bool) -> bool:
    """True if a side sent its last frame again for long, and no packet came back."""
    return again and frame_ns > 0 and packet_ns - max(frame_ns, other_ns) > TOO_SHORT_S * SECOND_NS


def interrupted_ns(context: RuleContext) -> int:
    """Time at the end of a connection in which nothing got through; 0 if that is not known."""
    return quiet_ns(context) if interval(context) and context.certain else 0


def quiet_ns(context: RuleContext) -> int:
    """Time at the end of a connection without frames in which a host sent no packet; 0 if that is
    not longer than the heartbeat interval, or than the shortest usual one if it is unknown.

    While a window is closed, or a program hangs, both hosts still send packets.
    """
    beat, session, now = interval(context), context.session, end_ns(context)
    if beat == 0 or now is None or session.closed_by is not None:
        return 0
    longest_ns = (beat or TOO_SHORT_S) * SECOND_NS
    frames_ns = max(session.last_client_ns, session.last_server_ns)
    quiet: int = now - max(frames_ns, 0)
    if quiet <= longest_ns or now - min(last_packets_ns(context)) <= longest_ns:
        return 0
    return quiet


def _interruption(context: RuleContext, beat: int | None, cut: str) -> str:
    """The same in words: who still sent packets, and whether they were answered."""
    client, broker = last_packets_ns(context)
    side, other, direction = ("client", "broker", context.session.connection.client_direction)
    if client < broker:
        side, other, direction = ("broker", "client", 1 - direction)
    now, session = int(end_ns(context) or 0), context.session
    silence = duration(now - max(session.last_client_ns, session.last_server_ns))
    detail = f"no frame of either side for {silence}, "
    detail += f"heartbeat {beat} s; " if beat else "no heartbeat known; "
    quiet = duration(now - min(client, broker))
    detail += f"no packet from the {other} for {quiet}"
    again = context.session.connection.conversation.retransmissions[direction]
    if again:
        detail += f", though the {side} sent {number_of(again, 'segment')} again"
    return detail + cut


def _longest_ns(context: RuleContext) -> int:
    """No side was silent for longer; very much while a side said nothing."""
    session = context.session
    before = max(session.silence_client_ns, session.silence_server_ns)
    at_end = (end_ns(context) or 0) - min(session.last_client_ns, session.last_server_ns)
    return int(max(before, at_end))


def _silences(context: RuleContext) -> list[tuple[str, int, bool]]:
    """(side, longest silence, whether the other side ended TCP in it) for both sides."""
    of, now = context.session, end_ns(context)
    ended = of.connection.conversation.ended is not None and of.closed_by is None
    ended_by = ender(context)
    found = []
    sides = (
        ("client", of.silence_client_ns, of.opening_client_ns, of.last_client_ns, SERVER),
        ("broker", of.silence_server_ns, of.opening_server_ns, of.last_server_ns, CLIENT),
    )
    for side, longest, opening, last, other in sides:
        silence = longest if longest > opening else 0
        rest = 0
        if now is not None and last > 0 and of.closed_by is None:
            rest = now - last
        found.append((side, max(silence, rest), ended and ended_by == other and rest >= silence))
    return found


def _blocked_ns(context: RuleContext) -> int:
    """How long the connection was blocked: a client may wait then, and RabbitMQ does not watch."""
    session, now = context.session, end_ns(context)
    blocked: int = session.blocked_ns or 0
    if session.blocked_since is not None and now is not None:
        blocked += max(0, now - session.blocked_since)
    return blocked


RULES: dict[str, tuple[Rule, ...]] = {
    "connection.tune-ok": (Alike(_beats, "connection.tune-ok"),),
    "connection-ends": (_ended,),
}
