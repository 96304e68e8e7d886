"""Connections on which traffic stops while a side still has something to send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.owing import SIDES, Debt, debts, sentence
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.flow_control import was_blocked
from amqpsniff.session.rules.network import shut_of
from amqpsniff.session.rules.occasions import UNCLEAN
from amqpsniff.session.rules.peers import last_packets_ns, over_ns
from amqpsniff.units import duration

STOPPED_NS = 10 * SECOND_NS
"""Silence of a side that is too long for what it has to send at once."""


@where(UNCLEAN)
def judge_stopped(context: RuleContext) -> None:
    """connection-ends: a side owed the next frame, and sent none until the last packet.

    The time ends where a side ended TCP, or at the connection's last packet, not at the capture's:
    later packets may be in another file.
    """
    session, now_ns = context.session, over_ns(context)
    last_ns = (session.last_client_ns, session.last_server_ns)
    if now_ns is None or now_ns - min(last_ns) < STOPPED_NS or session.closed_by is not None:
        return
    if "connection.open-ok" not in session.handshake or was_blocked(session):
        return
    if "interrupted" in context.memory:  # neither side is at fault
        return
    found = list(_overdue(session, last_ns, now_ns))
    if not found:
        return
    parts = [sentence(session, now_ns) or ""]
    packets_ns = last_packets_ns(context)
    for side in sorted({debt.side for debt in found}, reverse=True):
        quiet_ns = max(0, now_ns - packets_ns[side])
        quiet = f"{duration(quiet_ns)} before it" if quiet_ns else "at the end"
        parts.append(
            f"the {SIDES[side]}'s last frame came {duration(now_ns - last_ns[side])} before the "
            f"end, its last packet of TCP {quiet}"
        )
    first = min(found, key=lambda debt: debt.packet_number)
    context.report(
        "traffic-stopped", "; ".join(parts), number=first.packet_number, ts_ns=first.since_ns
    )


def _overdue(session: Any, last_ns: tuple[int, int], now_ns: int) -> Iterator[Debt]:
    """Debts of sides that sent nothing for too long, though the other side was reading."""
    for debt in debts(session) or ():
        if debt.may_wait or debt.since_ns is None or last_ns[debt.side] <= 0:
            continue
        reader = CLIENT if debt.side == SERVER else SERVER
        silent_ns = now_ns - max(debt.since_ns, last_ns[debt.side])
        if silent_ns >= STOPPED_NS and shut_of(session, reader) is None:
            yield debt


RULES: dict[str, tuple[Rule, ...]] = {"connection-ends": (judge_stopped,)}
