"""Methods that may not come from that side, on that channel, or in that state."""

from __future__ import annotations

from amqpsniff.session.event import read_reason
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.suspecting import suspect
from amqpsniff.session.state import CLIENT, SERVER
from amqpsniff.session.states import MODE
from amqpsniff.spec import SIDES

_NOT_IMPLEMENTED = 540

_ASKED = ("basic.qos", "basic.consume", "basic.recover", "basic.recover-async", "channel.flow")
"""Methods, beside basic.publish, that RabbitMQ refuses with 540 because of an argument."""


def wrong_channel(scene: Scene) -> None:
    """A method of the connection on a channel, or another on channel 0."""
    side, method, number = (scene.facts[name] for name in ("side", "method", "channel"))
    scene.report("channel-zero-misused", f"{method} from the {SIDES[side]} on channel {number}")


def wrong_direction(scene: Scene) -> None:
    """A method that its sender may not send; who sent it must be sure."""
    peer = scene.session.peer
    if peer.began or peer.role_proved:
        side, method, number = (scene.facts[name] for name in ("side", "method", "channel"))
        detail = f"the {SIDES[side]} sent {method} on channel {number}"
        scene.report("method-wrong-direction", detail)


def not_open(scene: Scene) -> None:
    """A client used a channel number that is not open."""
    channel, session = scene.channel, scene.session
    if scene.facts["side"] != CLIENT or not scene.certain or session.closing[SERVER]:
        return
    before = "was closed before" if channel.incarnation > 1 else "was never opened"
    scene.report("channel-not-open", f"{scene.facts['method']} on a channel that {before}")


def opened_twice(scene: Scene) -> None:
    """A channel was opened while it is open; RabbitMQ lets one be that the broker has closed."""
    channel = scene.channel
    if scene.certain and channel.known and True not in channel.closing:
        since = f"open since packet {channel.opened_packet_number}"
        suspect(scene, "channel-opened-twice", lambda: since)


def mixed(scene: Scene) -> None:
    """A select, commit or rollback that the mode of its channel does not allow."""
    channel, name = scene.channel, scene.event.name
    if channel.deaf or MODE.allows(channel.mode or MODE.start, CLIENT, name):
        return
    if name == "tx.select":
        scene.report("channel-mode-mixed", "tx.select on a channel in confirm mode")
    elif name == "confirm.select":
        scene.report("channel-mode-mixed", "confirm.select on a channel with transactions")
    elif channel.mode or (scene.certain and channel.known):
        scene.report("channel-mode-mixed", f"{name} on a channel without tx.select")


def remember(scene: Scene) -> None:
    """The last request of each method that may ask for what is not implemented."""
    if scene.event.side == CLIENT:
        scene.memory.setdefault("asked", {})[scene.event.name] = scene.number


def not_implemented(scene: Scene) -> None:
    """The broker closed the connection because it lacks a feature."""
    if scene.event.side != SERVER:
        return
    code, text, method = read_reason(scene.event.octets)
    if code != _NOT_IMPLEMENTED:
        return
    asked = scene.memory.get("asked", {}).get(method)
    if method == "basic.publish":
        channels = [lane.channel for lane in scene.session.lanes.values() if lane.channel]
        asked = max((channel.last_publish_number for channel in channels), default=0)
    request = f"; answer to {method}" if method else ""
    if asked:
        request += f", the last in packet {asked}"
    scene.report("feature-not-implemented", f"{code} {text or ''}".strip() + request)


RULES: dict[str, tuple[Rule, ...]] = {
    "wrong-channel": (wrong_channel,),
    "wrong-direction": (wrong_direction,),
    "channel-not-open": (not_open,),
    "channel-opened-twice": (opened_twice,),
    **dict.fromkeys(("tx.select", "confirm.select", "tx.commit", "tx.rollback"), (mixed,)),
    "connection.close": (not_implemented,),
    **dict.fromkeys(_ASKED, (remember,)),
}
"""Rules by occasion."""
