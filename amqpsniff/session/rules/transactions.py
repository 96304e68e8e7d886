"""Transactions that are not committed: their publishes and acknowledgements have no effect.

The broker keeps both until tx.commit, and forgets them when the channel ends (0-9-1 §1.9).
"""

from __future__ import annotations

from amqpsniff.session.codes import CLIENT
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.format import in_packet, number_of, route, until_closed
from amqpsniff.session.rules.peers import end_ns
from amqpsniff.units import duration

OPEN = "open transactions"
"""Name in `RuleContext.memory` of the last method of a transaction by channel number and
incarnation: (its name, publishes of the channel before it, packet, time)."""

OPEN_NS = 60 * SECOND_NS
OPEN_PUBLISHES = 10
"""Time for which a transaction goes on, and publishes in it, from which on its commit was
forgotten, though its channel is open."""


def began(context: RuleContext) -> None:
    """tx.select, tx.commit, tx.rollback: a transaction begins."""
    channel, frame = context.channel, context.frame
    known = context.memory.setdefault(OPEN, {})
    place = channel.number, channel.incarnation
    if frame.side == CLIENT and (frame.name != "tx.select" or place not in known):
        known[place] = frame.name, channel.published, context.number, context.ts_ns


@requires(OPEN)
def judge_uncommitted(context: RuleContext) -> None:
    """channel-ends: publishes and acknowledgements since then."""
    channel = context.channel
    known = context.memory[OPEN].pop((channel.number, channel.incarnation), None)
    if known is None or not context.complete:
        return
    method, before, number, ts_ns = known
    publishes, settled = channel.published - before, len(channel.noted)
    spent_ns = (channel.end_ns or end_ns(context) or 0) - (ts_ns or 0)
    if not channel.closed_by and (spent_ns < OPEN_NS or publishes < OPEN_PUBLISHES):
        return
    what = []
    if publishes:
        names = list(context.session.routes.published) if context.session.routes else ()
        where = f" to {route(*names[0])}" if len(names) == 1 else ""
        what.append(number_of(publishes, "publish", "publishes") + where)
    if settled:
        what.append(number_of(settled, "acknowledgement"))
    if what:
        spent = duration(spent_ns)
        until = f"{until_closed(channel)}, {spent} later" if channel.closed_by else f"in {spent}"
        detail = f"{' and '.join(what)} since {method}{in_packet(number)}, and no tx.commit {until}"
        count = publishes + settled
        context.report("transaction-uncommitted", detail, number=number, ts_ns=ts_ns, count=count)


RULES: dict[str, tuple[Rule, ...]] = {
    "tx.select": (began,),
    "tx.commit": (began,),
    "tx.rollback": (began,),
    "channel-ends": (judge_uncommitted,),
}
