"""Sizes of messages: very large bodies, large headers, high protocol overhead."""

from __future__ import annotations

import json

from amqpsniff.decode.json_objects import read_object
from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.method_flags import PUBLISH
from amqpsniff.session.rules.context import Rule, RuleContext, where
from amqpsniff.session.rules.format import exchange_text, name_at, number_of, queue_text
from amqpsniff.session.rules.links import link_text
from amqpsniff.session.rules.occasions import BUSY, LARGE_HEADERS_BYTES
from amqpsniff.session.rules.peers import handshake
from amqpsniff.session.rules.shared_state import exchanges_of, open_channels
from amqpsniff.units import octets

REFUSED_BYTES = 16 << 20
"""Size above which RabbitMQ refuses messages by default since 4.0."""

OVERHEAD = 4
"""Bytes around one of the bodies, from which on they are much."""

OVERHEAD_RATE = 100
"""Messages a second below which it costs nothing that matters."""

OVERHEAD_MESSAGES = 1_000
"""Fewer are too few for a rate."""

STACK, STACK_BYTES = b'"x-exception-stacktrace":', 20_000
"""The header in which Spring keeps a stack trace, and the bytes of headers with it that are told:
it grows with each cause, and Spring cuts it for a frame of 128 KiB only."""

AMPLIFIED = 10
"""Messages, and bytes, delivered for one that is published: large messages that were there before
the capture are not made of small ones in it."""

AMPLIFIED_BYTES = 1 << 20
"""Bytes delivered below which it does not matter by how many an exchange multiplies."""

MAX_NAMED = 5
"""Exchanges named in one detail."""


def judge_large(context: RuleContext) -> None:
    """large: a body of more than 1 MiB, unless it is more than its link takes."""
    rows, row, link = context.facts["rows"], context.facts["row"], context.facts.get("link")
    size = rows.body_size.at(row)
    if link is not None and 0 < link.limit_bytes < rows.deliveries.message_bytes.at(row):
        return
    place = _place(context)
    detail = f"a body of {octets(size)} {place}"
    if size > REFUSED_BYTES:
        detail += "; RabbitMQ 4 refuses more than 16 MiB unless it is told otherwise"
    context.report("message-oversized", detail, subject=place)


def judge_headers(context: RuleContext) -> None:
    """large-headers: headers that are larger than most bodies."""
    rows, row = context.facts["rows"], context.facts["row"]
    octets_ = rows.headers.bytes_of(row)
    size = len(octets_)
    frame_max = handshake(context, "connection.tune-ok").get("frame_max") or 0
    if 2 * size > frame_max > 0 or (size > STACK_BYTES and STACK in octets_):
        headers = read_object(octets_)
        name, most = max(
            ((name, len(json.dumps(value))) for name, value in headers.items()),
            key=lambda one: one[1],
            default=("", 0),
        )
        detail = f"headers of about {octets(size)} {_place(context)}, {octets(most)} of it '{name}'"
        room = f"; a frame holds {octets(frame_max)}" if frame_max else ""
        context.report("headers-near-frame-limit", detail + room, subject=name)
    elif size > LARGE_HEADERS_BYTES:
        place = _place(context)
        context.report("overhead-high", f"headers of about {octets(size)} {place}", subject=place)


def _place(context: RuleContext) -> str:
    """Source or destination of a message, as text."""
    rows, row, entry = context.facts["rows"], context.facts["row"], context.facts["entry"]
    if context.facts.get("link") is not None:
        return f"on {link_text(context.facts['link'])}"
    way = "to" if entry is None or entry.kind == PUBLISH else "from"
    queue = name_at(rows, "queue", row)
    if queue:
        return f"from {queue_text(queue)}"
    key = name_at(rows, "routing_key", row)
    exchange = exchange_text(name_at(rows, "exchange", row))
    return f"{way} {exchange} with routing key '{key}'" if key else f"{way} {exchange}"


@where(BUSY)
def judge_overhead(context: RuleContext) -> None:
    """connection-ends: much more around the bodies than in them, at a high rate."""
    session = context.session
    conversation = session.connection.conversation
    if max(context.messages) < OVERHEAD_MESSAGES:
        return
    lasted = conversation.end_ns - conversation.start_ns
    if session.has_loss or conversation.start_ns <= 0:
        return
    published, delivered = context.messages
    publish_bytes, deliver_bytes = session.publish_bytes, session.deliver_bytes
    for channel in open_channels(session):
        publish_bytes += channel.times.publish_bytes
        deliver_bytes += channel.times.deliver_bytes
    sides = (
        ("publishes", 0, published, publish_bytes),
        ("deliveries", 1, delivered, deliver_bytes),
    )
    for name, side, messages, bodies in sides:
        sent = conversation.octets[session.connection.client_direction ^ side]
        often = messages >= OVERHEAD_MESSAGES and messages * SECOND_NS >= OVERHEAD_RATE * lasted
        if often and sent - bodies > OVERHEAD * bodies:
            detail = (
                f"{messages} {name} took {sent / messages:.0f} bytes each on average, for bodies "
                f"of {number_of(round(bodies / messages), 'byte')}"
            )
            context.report(
                "overhead-high",
                detail,
                number=conversation.first_packet_number,
                ts_ns=conversation.start_ns,
            )


def judge_exchanges(context: RuleContext) -> None:
    """capture-ends: exchanges that multiply their published messages."""
    found = []
    for name, (published, size, delivered, more) in exchanges_of(context).items():
        often = 0 < AMPLIFIED * published < delivered
        if often and more >= AMPLIFIED_BYTES and more > AMPLIFIED * size:
            found.append((more / max(size, 1), name, published, delivered))
    if found:
        found.sort(key=lambda one: -one[0])
        detail = "; ".join(
            f"{exchange_text(name)}: {number_of(published, 'message')} became {delivered}, "
            f"{times:.0f} times the bytes"
            for times, name, published, delivered in found[:MAX_NAMED]
        )
        context.report("fanout-amplified", detail, count=len(found))


RULES: dict[str, tuple[Rule, ...]] = {
    "large": (judge_large,),
    "large-headers": (judge_headers,),
    "connection-ends": (judge_overhead,),
    "capture-ends": (judge_exchanges,),
}

AMQP10_RULES: dict[str, tuple[Rule, ...]] = {
    "large": (judge_large,),
    "large-headers": (judge_headers,),
    "connection-ends": (judge_overhead,),
}
