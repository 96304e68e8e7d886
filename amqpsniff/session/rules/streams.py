"""Streams: messages that a returning consumer skips or reads again, and gaps between offsets.

A delivery of a stream has its offset in the header x-stream-offset. At the end, the offsets that
the consumers of a client have read of a stream are put in time order. Simultaneous consumers share
the stream, and are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from amqpsniff.session.rules.context import Place, Rule, RuleContext, requires, where
from amqpsniff.session.rules.format import number_of, queue_text
from amqpsniff.session.rules.occasions import EXTENDED
from amqpsniff.session.rules.peers import client_of
from amqpsniff.session.rules.queues import READERS, queue_key
from amqpsniff.session.rules.shared_state import (
    MAX_NAMES,
    contribute,
    drop,
    remember,
    remembered,
    report_once,
)

MISSING = 100
"""Missing offsets in a row from which on messages are missing: tracking takes one now and then."""

READ_AGAIN = 100
"""Offsets that come again to a client that keeps its place now and then."""

MAX_DIGITS = 19
"""Digits of an offset, a number of 64 bits."""

MAX_READERS = 64
"""Consumers of one client and stream that are remembered, one after the other."""

STARTS = "stream starts"
"""Name in `RuleContext.memory`: how consumers with arguments begin."""


class _Reader:
    """A consumer of a stream: its queue, its start (`note_start`), first and last delivery."""

    def __init__(self, queue: str, start: tuple[bool, bool], offset: int, place: Place) -> None:
        self.queue, (self.chosen, self.filtered) = queue, start
        self.first, self.place = offset, place
        self.last, self.last_ns = offset, place.ts_ns


@where(EXTENDED)
def note_start(context: RuleContext) -> None:
    """basic.consume: where the consumer of a stream begins, and whether it has a filter."""
    arguments = context.frame.arguments.get("arguments")
    if isinstance(arguments, dict):
        chosen = arguments.get("x-stream-offset") not in (None, "next", "last")
        starts = context.memory.setdefault(STARTS, {})
        if len(starts) < MAX_NAMES:
            filtered = "x-stream-filter" in arguments
            starts[context.channel.number, context.queue] = chosen, filtered


def note_offset(context: RuleContext, text: str) -> None:
    """noted: a delivery of a stream, with its offset."""
    entry = context.facts["entry"]
    consumer = None if entry is None else entry.consumer
    if consumer is None or not consumer.queue or not text.isdecimal() or len(text) > MAX_DIGITS:
        return
    offset = int(text)
    readers = context.memory.setdefault(READERS, {})
    key = context.channel.number, consumer.tag
    if key not in readers:
        starts = context.memory.get(STARTS, {})
        start = starts.get((context.channel.number, consumer.queue), (False, False))
        remember(context, readers, key, _Reader(consumer.queue, start, offset, context.place))
        return
    reader: _Reader = readers[key]
    if offset - reader.last > MISSING and not reader.filtered and context.certain:
        missing = number_of(offset - reader.last - 1, "offset")
        words = f"{missing} of {queue_text(reader.queue)} after {reader.last} did not come"
        context.report("stream-offset-gap", words, subject=reader.queue)
    reader.last, reader.last_ns = offset, context.ts_ns


@requires(READERS)
def note_end(context: RuleContext) -> None:
    """channel-ends: consumers of streams are over."""
    readers = context.memory[READERS]
    for key in [key for key in readers if key[0] == context.channel.number]:
        reader = drop(context, readers, key)
        client = client_of(context)
        who = *queue_key(context, reader.queue), client.host, client.application
        read = (reader.first, reader.last, reader.last_ns, reader.chosen, context.certain)
        contribute(context, judge_reader, who, read, reader.place, client.words)


def judge_reader(
    context: RuleContext, who: Sequence[str], read: Sequence[Any], place: Any, words: str
) -> None:
    """A stream's consumer is over: offsets, time, whether it chose its start and all is there."""
    known: list[Any] = remembered(context, READERS, tuple(who), list)
    if len(known) < MAX_READERS:
        known.append((Place(*place), *read, words))


def judge_streams(context: RuleContext) -> None:
    """capture-ends: consumers of a client that read a stream one after the other."""
    for who, known in context.shared.get(READERS, {}).items():
        known.sort(key=lambda one: (one[0].ts_ns or 0, one[1]))
        for earlier, later in pairwise(known):
            _judge(context, who, earlier, later)


def _judge(
    context: RuleContext, who: Any, earlier: tuple[Any, ...], later: tuple[Any, ...]
) -> None:
    """A client came back to a stream."""
    _, _, last, last_ns, _, certain, _ = earlier
    place, first, _, _, chosen, whole, words = later
    if not (certain and whole) or last_ns is None or not last_ns < (place.ts_ns or 0):
        return
    skipped = first - last - 1
    code, did = "", ""
    if skipped > 0 and not chosen:
        code, did = "stream-start-next", f"skipped {number_of(skipped, 'message')}"
    elif skipped < -READ_AGAIN:
        code, did = "stream-reread", f"reads {number_of(-skipped, 'message')} again"
    if code:
        had = f"it had {last} last, and began at {first}"
        detail = f"{words} {did} of {queue_text(who[2])}: {had}"
        report_once(context, code, who, lambda: detail, place)


RULES: dict[str, tuple[Rule, ...]] = {
    "basic.consume": (note_start,),
    "channel-ends": (note_end,),
    "capture-ends": (judge_streams,),
}
