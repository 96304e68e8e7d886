"""Methods that may not come from that side, on that channel, or in that state."""

from __future__ import annotations

from amqpsniff.session.codes import CLIENT, SERVER
from amqpsniff.session.method_frame import read_reason
from amqpsniff.session.rules.context import Rule, RuleContext, requires, where
from amqpsniff.session.rules.deferred import MAX_DEFERRED, defer
from amqpsniff.session.rules.format import reply_text
from amqpsniff.session.rules.occasions import BY_BROKER
from amqpsniff.session.state_machine import MODE
from amqpsniff.spec import SIDES

_NOT_IMPLEMENTED = 540

_ASKED = ("basic.qos", "basic.consume", "basic.recover", "basic.recover-async", "channel.flow")
"""Methods besides basic.publish that RabbitMQ refuses with 540 because of an argument."""


_MISPLACED = "misplaced"
"""Name in `RuleContext.memory` of methods out of place of a connection that was joined: (code,
words, packet, time). They count unless its framing is lost later: then they may be bytes of a body.
"""


def wrong_channel(context: RuleContext) -> None:
    """A method of the connection on a channel, or another on channel 0."""
    side, method, number = (context.facts[name] for name in ("side", "method", "channel"))
    words = f"{method} from the {SIDES[side]} on channel {number}"
    _report_if_framed(context, "channel-zero-misused", words)


def wrong_direction(context: RuleContext) -> None:
    """A method that its sender may not send; the sender must be certain."""
    side, method, number = (context.facts[name] for name in ("side", "method", "channel"))
    words = f"the {SIDES[side]} sent {method} on channel {number}"
    _report_if_framed(context, "method-wrong-direction", words)


def _report_if_framed(context: RuleContext, code: str, words: str) -> None:
    """Report a finding about a frame, once the frame itself is certain."""
    connection = context.session.connection
    if context.session.has_loss:
        return
    if connection.began:
        context.report(code, words)
    elif connection.role_proved:
        held = context.memory.setdefault(_MISPLACED, [])
        if len(held) < MAX_DEFERRED:
            held.append((code, words, context.number, context.ts_ns))


@requires(_MISPLACED)
def _framed(context: RuleContext) -> None:
    """connection-ends: framing was never lost."""
    for code, words, number, ts_ns in context.memory[_MISPLACED]:
        if not context.session.has_loss:
            context.report(code, words, number=number, ts_ns=ts_ns)


def not_open(context: RuleContext) -> None:
    """A client used a channel number that is not open."""
    channel, session = context.channel, context.session
    if context.facts["side"] != CLIENT or not context.certain or session.closing[SERVER]:
        return
    before = "was closed before" if channel.incarnation > 1 else "was never opened"
    context.report("channel-not-open", f"{context.facts['method']} on a channel that {before}")


def opened_twice(context: RuleContext) -> None:
    """A channel was opened while it is open; RabbitMQ lets one be that the broker has closed."""
    channel = context.channel
    if context.certain and channel.known and True not in channel.closing:
        since = f"open since packet {channel.opened_packet_number}"
        defer(context, "channel-opened-twice", lambda: since)


def mixed(context: RuleContext) -> None:
    """A select, commit or rollback that the mode of its channel does not allow."""
    channel, name = context.channel, context.frame.name
    if channel.broker_discards or MODE.allows(channel.mode or MODE.start, CLIENT, name):
        return
    if name == "tx.select":
        context.report("channel-mode-mixed", "tx.select on a channel in confirm mode")
    elif name == "confirm.select":
        context.report("channel-mode-mixed", "confirm.select on a channel with transactions")
    elif channel.mode or (context.certain and channel.known):
        context.report("channel-mode-mixed", f"{name} on a channel without tx.select")


def remember(context: RuleContext) -> None:
    """Note the last request of each method that may need an unimplemented feature."""
    if context.frame.side == CLIENT:
        context.memory.setdefault("asked", {})[context.frame.name] = context.number


@where(BY_BROKER)
def not_implemented(context: RuleContext) -> None:
    """The broker closed the connection because it lacks a feature."""
    code, text, method = read_reason(context.frame.arguments_json)
    if code != _NOT_IMPLEMENTED:
        return
    asked = context.memory.get("asked", {}).get(method)
    if method == "basic.publish":
        channels = [slot.channel for slot in context.session.slots() if slot.channel]
        asked = max((channel.times.last_publish_number for channel in channels), default=0)
    request = f"; answer to {method}" if method else ""
    if asked:
        request += f", the last in packet {asked}"
    context.report("feature-not-implemented", reply_text(code, text) + request)


RULES: dict[str, tuple[Rule, ...]] = {
    "wrong-channel": (wrong_channel,),
    "wrong-direction": (wrong_direction,),
    "channel-not-open": (not_open,),
    "channel-opened-twice": (opened_twice,),
    **dict.fromkeys(("tx.select", "confirm.select", "tx.commit", "tx.rollback"), (mixed,)),
    "connection.close": (not_implemented,),
    "connection-ends": (_framed,),
    **dict.fromkeys(_ASKED, (remember,)),
}
