"""What TCP and the capture say of a connection: retransmissions, missing sides, encryption."""

from __future__ import annotations

from amqpsniff.session.rules.blocking import was_blocked
from amqpsniff.session.rules.peers import client_host, on_network, said, server_end
from amqpsniff.session.rules.remembering import first_place, report_once
from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import number_of
from amqpsniff.units import octets

MIN_RETRANSMISSIONS = 10
RETRANSMITTED_SHARE = 0.01
"""Retransmissions of one side that are noticeable: so many, and this share of its packets. A path
that loses one packet in a hundred is slow for every protocol above TCP."""

SMALL_FRAME_MAX = 8192


def _ended(scene: Scene) -> None:
    session = scene.session
    if not session.lanes:
        return
    if max(session.peer.conversation.retransmissions) >= MIN_RETRANSMISSIONS:
        _retransmissions(scene)
    if not scene.complete:
        _doubts(scene)
    if on_network(scene):
        ends = (client_host(scene), server_end(scene))
        report_once(
            scene,
            "connection-unencrypted",
            ends,
            lambda: f"{ends[0]} speaks AMQP without TLS to {ends[1]}",
            first_place(scene),
        )


def _retransmissions(scene: Scene) -> None:
    peer = scene.session.peer
    conversation = peer.conversation
    blocked = was_blocked(scene.session)
    said_of = []
    for direction in (0, 1):
        if blocked and direction == peer.client_direction:
            continue  # what is sent again to a broker that does not read was not lost
        again, all_of = conversation.retransmissions[direction], conversation.packets[direction]
        if again >= MIN_RETRANSMISSIONS and again >= RETRANSMITTED_SHARE * all_of:
            side = "client" if direction == peer.client_direction else "broker"
            share = f"{100 * again / all_of:.1f} %" if all_of else "all"
            said_of.append(f"{again} of {all_of} packets of the {side} ({share})")
    if said_of:
        scene.report("tcp-retransmissions", ", ".join(said_of) + " were sent again")


def _doubts(scene: Scene) -> None:
    """Say once why a connection is not judged."""
    doubt = _doubt(scene)
    if doubt:
        detail = f"{doubt}: findings that need the whole connection are left out"
        scene.report("capture-inconclusive", detail)


def _doubt(scene: Scene) -> str:
    session = scene.session
    conversation = session.peer.conversation
    if not scene.both_sides:
        missing = 0 if not conversation.packets[0] else 1
        side = "client" if missing == session.peer.client_direction else "broker"
        return f"no packet from the {side} was captured"
    lost, holes = sum(conversation.lost_bytes), sum(conversation.gaps)
    cut = sum(conversation.cut_bytes)
    if session.lossy and holes:
        return f"frames are missing, in {number_of(holes, 'hole')} of {octets(lost)}"
    if session.lossy and cut:
        return f"frames or arguments are missing, in {octets(cut)} that the snap length cut"
    return ""


def _channel_ended(scene: Scene) -> None:
    """Bodies that are larger than the frames agreed on, on average."""
    channel = scene.channel
    messages = channel.published + channel.delivered
    if not messages:
        return
    frame_max = said(scene, "connection.tune-ok").get("frame_max")
    carried = channel.publish_bytes + channel.deliver_bytes
    if not isinstance(frame_max, int) or not 0 < frame_max <= SMALL_FRAME_MAX:
        return
    if carried > messages * (frame_max - 8) and "small frames" not in scene.memory:
        scene.memory["small frames"] = True
        size = carried // messages
        detail = f"frame-max {frame_max}; bodies of {number_of(size, 'byte')} on average"
        detail += f" in {number_of(messages, 'message')}"
        number = channel.opened_packet_number or None
        scene.report("frame-max-small", detail, number=number, ts_ns=channel.start_ns)


RULES: dict[str, tuple[Rule, ...]] = {
    "connection-ends": (_ended,),
    "channel-ends": (_channel_ended,),
}
"""The rules of this module by occasion."""
