"""Whether the broker has what was published."""

from __future__ import annotations

from typing import Any

from amqpsniff.session.rules.scene import Rule, Scene
from amqpsniff.session.rules.wording import (
    code_at,
    in_packet,
    name_at,
    number_of,
    packets_text,
    route,
    when_closed,
)
from amqpsniff.session.sightings import FORGET

REPEATED = "publish-repeated"

_NO_ROUTE = 312
_DIRECT_REPLY = "amq.rabbitmq.reply-to."


def returned(scene: Scene) -> None:
    """A message came back because no queue took it.

    By the default exchange that takes a routing key: a reply by direct reply-to goes to no queue,
    and RabbitMQ hands it on and returns it all the same (measured on RabbitMQ 3.10.8), which
    aiormq, for one, asks for with every publish.
    """
    rows, row, entry = scene.facts["rows"], scene.facts["row"], scene.facts["entry"]
    exchange, key = name_at(rows, "exchange", row), name_at(rows, "routing_key", row)
    replies = not exchange if key is None else key.startswith(_DIRECT_REPLY)
    if code_at(rows.reply_code, row) != _NO_ROUTE or replies:
        return
    if entry is not None:
        _not_taken(scene, entry)
    where = route(exchange, key)
    published = f", published in packet {entry.packet_number}" if entry else ""
    confirms = "; the confirm that follows does not mean success"
    confirming = scene.channel.mode == "confirm"
    scene.report("message-unroutable", where + published + (confirms if confirming else ""))


def rejected(scene: Scene) -> None:
    """The broker refused a publish."""
    entry = scene.facts["entry"]
    _not_taken(scene, entry)
    where = f" to {route(*entry.route)}" if entry.route and entry.route[1] else ""
    detail = f"publish {entry.number} of the channel{in_packet(entry.packet_number)}{where}"
    scene.report("publish-rejected", detail)


def repeated(scene: Scene) -> None:
    """A publish that came before, and was neither returned nor refused."""
    rows, row, first = scene.facts["rows"], scene.facts["row"], scene.facts["first"]
    name = rows.message_id.bytes_of(row).decode(errors="replace")
    names = name_at(rows, "exchange", row), name_at(rows, "routing_key", row)
    scene.report(REPEATED, repeat_words(name, *names, first))


def repeat_words(message_id: str, exchange: str | None, routing_key: str | None, first: int) -> str:
    """What is said of a publish that came before, in packet `first`."""
    return f"message-id '{message_id}' to {route(exchange, routing_key)}; first in packet {first}"


def _not_taken(scene: Scene, entry: Any) -> None:
    """The broker did not take a publish: it should come again."""
    sightings = scene.tracker.witness(scene.session)
    if sightings is None:
        scene.tracker.repeats.forget(entry.mark)
    else:
        sightings.note(FORGET, scene.channel, entry.mark, 0, 0, None, None, None)


def repeated_more(scene: Scene) -> None:
    """A channel ended: count what it published again after the first time."""
    channel = scene.channel
    if channel.repeats > 1:
        more, last = channel.repeats - 1, channel.last_repeat
        scene.report(REPEATED, "", number=last, count=more, last=last)


def unprotected(scene: Scene) -> None:
    """A channel ended that published without confirms or transactions."""
    channel = scene.channel
    if not scene.certain or not channel.known or channel.mode or not channel.published:
        return
    first, last = channel.first_publish_number, channel.last_publish_number
    scene.report(
        "publishes-unprotected",
        f"{number_of(channel.published, 'message')} in {packets_text(first, last)}",
        number=first,
        ts_ns=channel.first_publish_ns,
        count=channel.published,
        last=last,
    )


def unconfirmed(channel: Any) -> list[Any]:
    """Publishes of a confirming channel that have no outcome, the oldest first."""
    return [entry for entry in channel.publishes if entry.outcome < 0]


def in_doubt(scene: Scene) -> None:
    """A channel ended with publishes that were not confirmed."""
    channel = scene.channel
    if not channel.closed_by or channel.unconfirmed <= 0 or not scene.complete:
        return
    conversation = scene.session.peer.conversation
    entries = unconfirmed(channel)
    count = channel.unconfirmed
    closed = channel.closed_packet_number or scene.session.close_packet_number
    if channel.closed_by == "server" and closed:  # what came later: publishes-discarded
        sent = [entry for entry in entries if entry.packet_number <= closed]
        count -= len(entries) - len(sent)
        entries = sent
    if not count:
        return
    span = ""
    if entries:
        first, last = entries[0], entries[-1]
        span = f", number {first.number}{in_packet(first.packet_number)}"
        if last is not first:
            span = f", numbers {first.number} to {last.number} in "
            span += packets_text(first.packet_number, last.packet_number)
    scene.report(
        "publishes-in-doubt",
        f"{number_of(count, 'publish', 'publishes')}{span}, {when_closed(channel.closed_by)}",
        number=channel.closed_packet_number or conversation.last_packet_number,
        ts_ns=channel.end_ns or conversation.end_ns,
        count=count,
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "returned": (returned,),
    "rejected": (rejected,),
    "published-again": (repeated,),
    "channel-ends": (unprotected, in_doubt, repeated_more),
}
"""Rules by occasion."""
