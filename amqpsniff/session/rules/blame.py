"""Which of a client's frames the broker objects to."""

from __future__ import annotations

from amqpsniff.session.rules.scene import Scene
from amqpsniff.session.rules.wording import in_packet, reason_text
from amqpsniff.spec import FIRST_ERROR_CODE


def request_packet(scene: Scene, method: str | None) -> int | None:
    """The packet of the client's last frame before a scene's event; None when there was none.

    With a method, of the last frame with that one; on the event's channel unless that is 0.
    """
    where = scene.session
    if scene.channel is not None:
        where = where.lanes.get(scene.channel.number)
    if where is None or where.sent is None:
        return None
    number: int | None = where.sent.packet(method)
    return number


def objection(scene: Scene) -> str:
    """A broker's close as text: code, reply text, and the frame that it answers."""
    event = scene.event
    closed = scene.session if scene.channel is None else scene.channel
    text = reason_text(closed.close_text).rstrip(".")
    method = closed.close_method
    number = request_packet(scene, method)
    if method is not None:
        return f"{event.reply_code} {text}; answer to {method}{in_packet(number)}"
    if number:
        return f"{event.reply_code} {text}; the client's last frame before is{in_packet(number)}"
    return f"{event.reply_code} {text}"


def is_first_close(scene: Scene) -> bool:
    """Whether the event is the broker's close of what no one closed before, with an error code."""
    closed = scene.session if scene.channel is None else scene.channel
    number = (
        scene.session.close_packet_number
        if scene.channel is None
        else scene.channel.closed_packet_number
    )
    return bool(
        closed.closed_by == "server"
        and number == scene.number
        and (closed.close_code or 0) >= FIRST_ERROR_CODE
    )
