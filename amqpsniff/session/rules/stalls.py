"""Messages that a client begins and does not end for a long time."""

from __future__ import annotations

from amqpsniff.session.counts import SECOND_NS
from amqpsniff.session.rules.amounts import integer_at
from amqpsniff.session.rules.blocking import was_blocked
from amqpsniff.session.rules.reading import shut_of
from amqpsniff.session.rules.scene import STALLED_NS, Rule, Scene, after
from amqpsniff.session.rules.wording import exchange_text, name_at
from amqpsniff.units import duration, octets

SLOW_BYTES = 100_000
"""Bytes a second that a slow network still carries: a large body may take its time."""

MAX_UNDER_WAY = 16
"""Messages remembered that were not whole when their connection ended; one a channel is usual."""


def look(scene: Scene) -> None:
    """half-sent: see whether it took too long; for one that is not whole the end will tell."""
    rows, row, took = scene.facts["rows"], scene.facts["row"], scene.facts["took_ns"]
    exchange = name_at(rows, "exchange", row)
    size = integer_at(rows.body_size, row)
    captured = integer_at(rows.body_captured, row)
    what = f"{octets(size)} to {exchange_text(exchange)}" if size >= 0 else exchange_text(exchange)
    if took is None:
        under_way = scene.memory.setdefault("under way", [])
        if len(under_way) < MAX_UNDER_WAY and scene.certain:
            under_way.append((scene.number, scene.ts_ns, scene.channel, captured, what))
    elif _is_long(took, captured) and _may_judge(scene):
        detail = f"the message of {what} took {duration(took)}"
        scene.report("message-stalled", detail)


@after("under way")
def judge(scene: Scene) -> None:
    """connection-ends: messages that never were whole."""
    for number, ts_ns, channel, captured, what in scene.memory.get("under way", ()):
        ends = (scene.ts_ns, scene.session.close_ns, channel.end_ns)
        known = [end_ns for end_ns in ends if end_ns is not None]
        if ts_ns is None or not known or not _may_judge(scene):
            continue
        took = min(known) - ts_ns
        if _is_long(took, captured):
            detail = f"the message on channel {channel.number} of {what} was not whole after "
            scene.report("message-stalled", detail + duration(took), number=number, ts_ns=ts_ns)


def _is_long(took: int, captured: int) -> bool:
    return took > STALLED_NS + max(captured, 0) * SECOND_NS // SLOW_BYTES


def _may_judge(scene: Scene) -> bool:
    """Whether nothing is missing, and the broker could read."""
    session = scene.session
    return scene.certain and not was_blocked(session) and shut_of(session, 1) is None


RULES: dict[str, tuple[Rule, ...]] = {"half-sent": (look,), "connection-ends": (judge,)}
