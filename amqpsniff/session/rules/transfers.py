"""Messages with a long transfer: the network, or a TCP window, is slow.

The time to a confirm, to an acknowledgement and in a queue begins with a message's method. If most
of it passes before the last byte comes, neither the broker nor the consumer is the cause.
"""

from __future__ import annotations

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, RuleContext, requires
from amqpsniff.session.rules.format import number_of
from amqpsniff.session.rules.shared_state import drop, remember
from amqpsniff.units import duration, octets

TRANSFERS, TRANSFERRED_NS = 3, 2 * SECOND_NS
"""Messages of a channel, and the time that they were on their way, below which it is chance."""

TRANSFERRED_SHARE = 0.2
"""Share of the time from the first of them to the last that they were on their way."""

OTHERS_SHARE = 0.5
"""Share of the time to a confirm or an acknowledgement that is the way, from which on it is what
matters most."""

FAR_NS = 5_000_000
"""A round trip with which a TCP window may be what limits."""

NOTED = "messages long on their way"
"""Name in `RuleContext.memory` of the `_Transfers`, by (channel, publishes)."""


class _Transfers:
    """Messages of a channel, in one direction, that were long on their way.

    Attributes:
        number, ts_ns: The first of them.
        count, size, took_ns: Their number, the bytes of their bodies and the sum of their times.
        last, until_ns: The packet of the last of them and the time of its last byte.
    """

    def __init__(self, context: RuleContext) -> None:
        self.number, self.ts_ns = context.number, context.ts_ns or 0
        self.count = self.size = self.took_ns = self.until_ns = 0
        self.last = context.number


def note_transfer(context: RuleContext) -> None:
    """long-on-its-way: count it; where messages overlap, their time counts once."""
    facts = context.facts
    noted = context.memory.setdefault(NOTED, {})
    key = context.channel, bool(facts["publish"])
    known = noted.get(key) or remember(context, noted, key, _Transfers(context))
    if known is not None:
        known.count += 1
        known.size += facts["size"]
        known.took_ns += facts["end_ns"] - max(context.ts_ns or 0, known.until_ns)
        known.until_ns = max(known.until_ns, facts["end_ns"])
        known.last = context.number


@requires(NOTED)
def judge_transfers(context: RuleContext) -> None:
    """channel-ends: messages whose way took a good part of the time."""
    times = context.channel.times
    for publish, what, waited_ns in (
        (True, "publish", times.confirm_ns), (False, "delivery", times.ack_ns),
    ):  # fmt: skip
        known = drop(context, context.memory[NOTED], (context.channel, publish))
        if known is None or known.count < TRANSFERS or known.took_ns < TRANSFERRED_NS:
            continue
        spent_ns = known.until_ns - known.ts_ns
        if known.took_ns < max(TRANSFERRED_SHARE * spent_ns, OTHERS_SHARE * waited_ns):
            continue
        pace = known.size * SECOND_NS / known.took_ns
        named = number_of(known.count, what, "publishes" if publish else "deliveries")
        detail = (
            f"{named} of {octets(known.size / known.count)} took "
            f"{duration(known.took_ns / known.count)} each from the first byte to the last, "
            f"{octets(pace)} a second{_window_text(context, pace)}"
        )
        context.report(
            "transfer-slow", detail, number=known.number, ts_ns=known.ts_ns, last=known.last,
            until_ns=known.until_ns, variant=None if publish else 1,
        )  # fmt: skip


def _window_text(context: RuleContext, pace: float) -> str:
    """Bytes per round trip of the network, to be compared with TCP windows, as text."""
    round_trip_ns = context.session.connection.conversation.round_trip_ns
    if round_trip_ns < FAR_NS:
        return ""
    passed = octets(pace * round_trip_ns / SECOND_NS)
    return f" or {passed} in each round trip of {duration(round_trip_ns)}"


RULES: dict[str, tuple[Rule, ...]] = {
    "long-on-its-way": (note_transfer,),
    "channel-ends": (judge_transfers,),
}
