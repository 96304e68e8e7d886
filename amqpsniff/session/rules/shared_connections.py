# cython: language_level=3, boundscheck=True, nonecheck=True
"""Connections shared by publishers and consumers, by large and small messages; leaked channels."""

from __future__ import annotations

from typing import Any

from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import BUSY, OPENS

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.context import Rule, requires, where
from amqpsniff.session.rules.peers import handshake
from amqpsniff.session.rules.shared_state import open_channels
from amqpsniff.units import duration, octets

SHARED_MESSAGES = 10
"""Publishes, and acknowledgements, below which a connection does nothing much."""

MANY_CHANNELS = 100
"""Open channels beyond which most programs have lost count of them."""

GROWN_CHANNELS = 20
"""Open channels from which on it is looked whether their number only grew."""

GROWN_NS = 30 * SECOND_NS
"""Time over which channels are opened, beyond that of a pool that is filled at the start."""

IDLE_NS = 5 * SECOND_NS
"""A channel that carried nothing for so long is idle."""

IDLE_SHARE = 0.9
"""Share of the open channels that are idle where they leak; threads use theirs."""

IN_TURN_NS = 2 * SECOND_NS
"""Time over which channels are opened in turn, each after the last use of the one before: one for
each piece of work, and not a pool that is filled at the start."""

CLOSING_NS = 5 * SECOND_NS
"""Time in which a client closes its channels, each by itself, before its connection."""

MIN_HELD_UP = 3
"""Deliveries that came behind a large one; fewer may have been sent just then."""

CLOSING = "channels when the first was closed"
"""Name in `RuleContext.memory` of how many there were, how many of them idle, how many opened in
turn, and when that was."""


class Channels:
    """Channels of one connection: `open` and `closed` counts those that were seen to open.

    `mark` is the number of open ones from which on it is looked at them again, `reported` whether
    that has reported a leak.
    """

    __slots__ = ("closed", "first_ns", "last_ns", "mark", "open", "reported")

    def __init__(self, first_ns: int | None) -> None:
        self.open = 0
        self.closed = 0
        self.first_ns = first_ns
        self.last_ns: int | None = None
        self.mark = MANY_CHANNELS
        self.reported = False


@where(BUSY)
def judge_shared(context: RuleContext) -> None:
    """connection-ends: publishes and acknowledged deliveries on one connection."""
    published, acknowledged = context.session.published, context.session.acknowledged
    for channel in open_channels(context.session):
        published += channel.published
        acknowledged += channel.acknowledged
    if min(published, acknowledged) >= SHARED_MESSAGES:
        detail = f"{published} publishes and {acknowledged} acknowledged deliveries"
        conversation = context.session.connection.conversation
        context.report(
            "connection-shared",
            detail,
            number=conversation.first_packet_number,
            ts_ns=conversation.start_ns,
        )


def _channels(context: RuleContext) -> Channels:
    """Channels of the connection; of a first one only its time, in a tuple once closed."""
    known = context.memory.get("channels")
    if not isinstance(known, Channels):
        over = isinstance(known, tuple)
        first_ns = known[0] if over else known
        known = context.memory["channels"] = Channels(first_ns)
        if first_ns is not None:
            known.open, known.closed, known.last_ns = int(not over), int(over), first_ns
    return known


def count_opened(context: RuleContext) -> None:
    """channel-begins: check the open channels at more than 100, 200, 400 …"""
    if "channels" not in context.memory and context.ts_ns is not None:
        context.memory["channels"] = context.ts_ns
        return
    channels = _channels(context)
    channels.open += 1
    channels.last_ns = context.ts_ns
    if channels.open <= channels.mark or channels.reported:
        return
    channels.mark *= 2
    idle = _idle(context.session, context.ts_ns, IDLE_NS)
    channels.reported = _report(context, channels.open, idle)


def count_closed(context: RuleContext) -> None:
    """channel-ends: there is one less, and the number does not only grow."""
    channel = context.channel
    if not channel.known:  # so its beginning was not counted
        return
    if type(context.memory.get("channels")) is int:
        context.memory["channels"] = (context.memory["channels"],)
        return
    channels = _channels(context)
    if not channels.closed and channels.open >= GROWN_CHANNELS:
        every = {channel, *open_channels(context.session)}
        # consumers are cancelled before channels are closed
        idle = sum(
            not channel.consumers and _is_idle(channel, context.ts_ns, 0) for channel in every
        )
        context.memory[CLOSING] = (channels.open, idle, _in_turn(every), context.ts_ns)
    channels.open -= 1
    channels.closed += 1


def closed_together(context: RuleContext) -> tuple[int, int, int] | None:
    """Numbers of channels that a client closed together, of idle ones among them, and of those
    opened in turn, just before it closed their connection; None if it did not.
    """
    if CLOSING not in context.memory:
        return None
    count, idle, in_turn, begin_ns = context.memory[CLOSING]
    channels = _channels(context)
    if channels.open or channels.closed != count or context.ts_ns is None or begin_ns is None:
        return None
    return (count, idle, in_turn) if context.ts_ns - begin_ns <= CLOSING_NS else None


@where(OPENS)
def judge_grown(context: RuleContext) -> None:
    """connection-ends: there are many, or they were opened all the time and none was closed."""
    if context.session.channels_opened < GROWN_CHANNELS or "channels" not in context.memory:
        return
    channels = _channels(context)
    count, closed = channels.open, channels.closed
    first_ns, last_ns = channels.first_ns, channels.last_ns
    together = closed_together(context)
    if together is not None:
        count, closed = together[0], 0
    if count < GROWN_CHANNELS or channels.reported or first_ns is None or last_ns is None:
        return
    grown = not closed and context.certain and last_ns - first_ns >= GROWN_NS
    if not closed and context.certain and last_ns - first_ns >= IN_TURN_NS:
        in_turn = together[2] if together else _in_turn(set(open_channels(context.session)))
        if in_turn >= max(GROWN_CHANNELS, IDLE_SHARE * count):
            over = f"opened over {duration(last_ns - first_ns)}, none was closed"
            detail = f"{count} channels, {over}; {in_turn} of them were not used again once the "
            context.report("channels-leaking", f"{detail}next was opened")
            return
    if not grown and count <= MANY_CHANNELS:
        return
    more = f", opened over {duration(last_ns - first_ns)}, none was closed" if grown else ""
    if together is not None:
        _report(context, count, together[1], f"{more} before the client closed all", "were")
    else:
        _report(context, count, _idle(context.session, context.ts_ns, 0), more)


def _report(context: RuleContext, count: int, idle: int, more: str = "", verb: str = "are") -> bool:
    """True if the share of idle channels shows a leak; it is reported if no frame is missing."""
    if idle < IDLE_SHARE * count:
        return False
    if context.complete:
        allowed = handshake(context, "connection.tune-ok").get("channel_max")
        most = "; the negotiated channel-max allows no more" if count == allowed else ""
        detail = f"{count} channels {verb} open{more}{most}; {idle} of them {verb} idle"
        context.report("channels-leaking", detail)
    return True


def _idle(session: Any, now: int | None, age_ns: int) -> int:
    """Open channels of that age at least that carried nothing for a while."""
    return sum(_is_idle(channel, now, age_ns) for channel in open_channels(session))


def _in_turn(channels: set[Any]) -> int:
    """Number of channels without consumers that were idle since the next one was opened."""
    used = sorted(
        (
            channel.start_ns,
            max(
                channel.times.last_publish_ns,
                channel.times.last_delivery_ns,
                channel.times.last_ack_ns,
            ),
        )
        for channel in channels
        if channel.start_ns is not None and not channel.consumers
    )
    ends = zip(used, [one[0] for one in used[1:]], strict=False)
    return sum(began <= last < following for (began, last), following in ends)


def _is_idle(channel: Any, now: int | None, age_ns: int) -> bool:
    if channel.by_tag or channel.times.gets or now is None:
        return False
    if channel.start_ns is not None and now - channel.start_ns < age_ns:
        return False
    last = max(
        channel.times.last_publish_ns, channel.times.last_delivery_ns, channel.times.last_ack_ns
    )
    return bool(now - last > IDLE_NS)  # `NULL` is very long ago


class HeldUp:
    """Deliveries of one connection that came behind large ones: how many, for how long.

    `longest` is the channel, size and time of the large one that took longest, `channel` that of
    the delivery behind it.
    """

    def __init__(self, context: RuleContext) -> None:
        self.number, self.ts_ns = context.number, context.ts_ns
        self.last = context.number
        self.longest = (0, 0, -1)
        self.channel = self.count = self.took_ns = 0


def note_held_up(context: RuleContext) -> None:
    """held-up: count it."""
    held = context.memory.get("held up")
    if held is None:
        held = context.memory["held up"] = HeldUp(context)
    behind = context.facts["behind"]
    held.count += 1
    held.took_ns += behind[2]
    held.last = context.number
    if behind[2] > held.longest[2]:
        held.longest, held.channel = behind, context.channel.number


@requires("held up")
def judge_held_up(context: RuleContext) -> None:
    """connection-ends: deliveries behind large ones of other channels."""
    held = context.memory["held up"]
    if held.count < MIN_HELD_UP:
        return
    channel, size, took_ns = held.longest
    detail = (
        f"{held.count} deliveries came without a pause behind large ones of other channels, each "
        f"{duration(held.took_ns / held.count)} on its way on average; the longest, "
        f"{octets(size)} on channel {channel}, kept channel {held.channel} waiting for up to "
        f"{duration(took_ns)}"
    )
    context.report(
        "head-of-line-wait",
        detail,
        number=held.number,
        ts_ns=held.ts_ns,
        count=held.count,
        last=held.last,
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "channel-begins": (count_opened,),
    "channel-ends": (count_closed,),
    "connection-ends": (judge_shared, judge_grown, judge_held_up),
    "held-up": (note_held_up,),
}
