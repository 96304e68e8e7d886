"""Checks of open requests and deliveries, so that a hang is reported before its channel ends.

Most hangs are judged at the end of their channel or connection, which may be too late for an
operator. A provisional finding is made earlier, by the time of the packets alone: it is the same in
a file and on an interface.

Most provisional findings are about an absent frame. They are not announced while reassembly waits
for bytes that may contain it, and are withdrawn once frames may be missing.
"""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.occasions import PROVISIONAL

CHECK_BITS = 32
"""Bits of a time that are left out: a connection is looked at when a frame of it comes in other
4.3 s than the one before. That is seldom enough to cost nothing, and the same however they come in.
"""

MAX_CHECKED = 64
"""Channels of a connection that are looked at: who opens more has the pattern in those."""

CHECKS_A_FRAME = 16
"""Steps of looking for each frame of the connection beyond those for its first channel: a quarter
of a channel where something waits. A connection with many of them, where little comes, is
looked at with every few frames."""

CHANNEL_STEPS = 64
"""Steps that the rules of one channel take, besides one for each consumer."""

NEXT_CHECK = "next look"
"""Name in `RuleContext.memory`: number of frames after which a connection is checked again."""


def check_waiting(emitter: Any, session: Any, number: int, ts_ns: int) -> None:
    """Ask `channel-waits` and `connection-waits` where something waits, or was foreseen."""
    if session.closed_by is not None or session.frames < session.memory.get(NEXT_CHECK, 0):
        return
    steps = session.pending_rpcs
    is_provisional = bool(session.memory.get(PROVISIONAL))
    waits = is_provisional or session.pending_rpcs > 0
    for _, slot in zip(range(MAX_CHECKED), session.slots(), strict=False):
        channel = slot.channel
        waits = waits or bool(slot.requests)
        steps += 1 + min(len(slot.requests), MAX_CHECKED)
        if channel is None or any(channel.closing):
            continue
        if is_provisional or channel.unconfirmed > 0 or channel.unsettled > 0:
            steps += CHANNEL_STEPS + len(channel.by_tag)
            emitter.emit("channel-waits", channel, number, ts_ns, {})
    if waits:
        emitter.emit_connection("connection-waits", session, number, ts_ns, {})
    if steps > CHANNEL_STEPS:
        pause = (steps - CHANNEL_STEPS) // CHECKS_A_FRAME
        session.memory[NEXT_CHECK] = session.frames + pause


@requires(PROVISIONAL)
def withdraw_unsure(context: RuleContext) -> None:
    """frames-lost, connection-ends: what seemed to be missing may not have been captured."""
    if context.complete:
        return
    is_provisional = context.memory[PROVISIONAL]
    for code, channel in [key for key, noted in is_provisional.items() if noted.absent]:
        context.withdraw(code, channel)


RULES: dict[str, tuple[Rule, ...]] = {
    "frames-lost": (withdraw_unsure,),
    "connection-ends": (withdraw_unsure,),
}
"""The rules of this module by event; the last to be asked."""

AMQP10_RULES: dict[str, tuple[Rule, ...]] = RULES
