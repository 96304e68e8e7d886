# cython: language_level=3, boundscheck=True, nonecheck=True
"""Acknowledgements of deliveries that are not outstanding, or were on a channel that ended.

A client that continues after it lost a channel acknowledges on the next one: on the same
connection, or on another one of its host. A channel ends with its close, with that of its
connection or with TCP, whichever came first. Among the channels that had ended when a channel was
opened, on its connection and on its host, the last one of its number with unsettled deliveries
counts.

A reader of some connections has only their channels. It records its questions about others
(`Records.outstanding`, `Records.unknown_acks`), and `settle_stale` answers them for all readers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import cython
from cython.cimports.amqpsniff.session.codes import CLIENT
from cython.cimports.amqpsniff.session.entities import Channel, Session
from cython.cimports.amqpsniff.session.rules.context import RuleContext
from cython.cimports.amqpsniff.session.rules.occasions import BY_BROKER
from cython.cimports.amqpsniff.session.rules.peers import Client

from amqpsniff.findings import Finding, Records
from amqpsniff.findings.records import Order, order_of
from amqpsniff.session.method_frame import read_reason
from amqpsniff.session.rules.context import Rule, where
from amqpsniff.session.rules.deferred import defer
from amqpsniff.session.rules.peers import client_of


def unknown_tag(context: RuleContext) -> None:
    """A client settled a delivery that is not outstanding."""
    channel = context.channel
    if not context.certain or not channel.known or channel.closing[CLIENT]:
        return
    if context.tracker.settler.hits:
        return
    tag = context.facts["tag"]
    context.memory.setdefault("refused", {})[channel.number] = channel.incarnation
    if tag <= channel.last_tag:
        defer(context, INVALID, lambda: f"delivery {tag} {_why(context, tag)}")
        return
    left = unsettled_before(context, tag)
    if left is None:
        question = question_for(context, tag)
        defer(
            context,
            INVALID,
            lambda: f"delivery {tag} {_why(context, tag)}",
            tag,
            lambda: NEVER_SENT if question is None else record_question(context, question),
        )
    else:
        defer(context, STALE, lambda: stale_words(tag, left, channel.opened_packet_number), tag)


def _why(context: RuleContext, tag: int) -> str:
    """The reason why a tag is invalid, as text."""
    channel = context.channel
    if tag == 0:
        return "does not exist: 0 means all, and only with multiple"
    if tag > channel.last_tag:
        last = f"the last was {channel.last_tag}" if channel.last_tag >= 0 else "which had none"
        return f"was not sent on this channel, {last}{_elsewhere(context, tag)}"
    if channel.times.acks == 1:
        return "needed no acknowledgement (no-ack)"
    if any(consumer.no_ack for consumer in channel.by_tag.values()):
        return "was settled before, or needed no acknowledgement (no-ack)"
    return "was settled before"


def _elsewhere(context: RuleContext, tag: int) -> str:
    """The other channel of the connection where a tag is outstanding, in words."""
    other = context.session.holder(tag, context.channel)
    return "" if other is None else f"; it is outstanding on channel {other.number}"


@where(BY_BROKER)
def refused_tag(context: RuleContext) -> None:
    """The broker reports an unknown tag that the captured deliveries did not show."""
    channel = context.channel
    code, text, _ = read_reason(context.frame.arguments_json)
    seen = context.memory.get("refused", {}).get(channel.number) == channel.incarnation
    if code == 406 and text and "unknown delivery tag" in text and not seen:
        context.report(INVALID, f"the broker says: {text}")


def gap(context: RuleContext) -> None:
    """A delivery tag was skipped, so frames are missing."""
    tag, last = context.facts["tag"], context.facts["last"]
    if tag > last:
        context.report("delivery-tag-gap", f"delivery tag {tag} follows {last}")
        context.session.has_loss = True


INVALID, STALE = "acknowledgement-invalid", "acknowledgement-stale"

NEVER_SENT = -1
"""The variant of an acknowledgement of what the channel never delivered: another fault than to
settle a delivery twice. Questions that wait for an answer are numbered from 1."""

MAX_UNSETTLED_CHANNELS = 4_096
"""Channels whose outstanding tags are remembered after their end, the latest ones."""

MAX_UNSETTLED_TAGS = 1_024
"""Outstanding tags remembered of such a channel; a prefetch count is rarely higher."""

MAX_OPEN = 64
"""Channels of one host and number that are looked at while TCP has not taken their connection for
over, the latest ones: that is a matter of seconds."""

_first, _order = itemgetter(0), attrgetter("order")

Ranges = tuple[tuple[int, int], ...]
"""Tags as ranges of (first, last)."""


class Unsettled(NamedTuple):
    """Deliveries outstanding on a channel at its end, with its time and packet."""

    order: Order
    packet_number: int
    tags: Ranges

    def holds(self, tag: int) -> bool:
        """True if a tag was outstanding."""
        place = bisect_right(self.tags, tag, key=_first) - 1
        return place >= 0 and tag <= self.tags[place][1]


class UnsettledChannels:
    """Deliveries that channels left, by a key; of `MAX_UNSETTLED_CHANNELS` of them at most."""

    def __init__(self) -> None:
        self._by_key: dict[Any, list[Unsettled]] = {}
        self._added: deque[tuple[Any, Unsettled]] = deque()

    def __len__(self) -> int:
        return len(self._added)

    def add(self, key: Any, left: Unsettled) -> bool:
        """Remember one; whether the oldest had to be forgotten."""
        insort(self._by_key.setdefault(key, []), left)
        self._added.append((key, left))
        if len(self._added) <= MAX_UNSETTLED_CHANNELS:
            return False
        key, oldest = self._added.popleft()
        of_key = self._by_key[key]
        del of_key[bisect_left(of_key, oldest)]
        if not of_key:
            del self._by_key[key]
        return True

    def before(self, key: Any, order: Order) -> Unsettled | None:
        """The last that was left at a key by then."""
        of_key = self._by_key.get(key, [])
        place = bisect_right(of_key, order, key=_order)
        return of_key[place - 1] if place else None


@cython.cclass
class OpenChannel:
    """A channel that may end before TCP does, and its unsettled deliveries at that time."""

    channel: Channel
    _left: Any

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._left = None  # or (its end, its number of deliveries, the unsettled ones)

    def ended(self) -> tuple[Order, int] | None:
        """Time and packet of the channel's end; None while it is open."""
        return _end_of(self.channel)

    def left(self) -> Unsettled | None:
        """As `_unsettled_of`, found again only when something has changed."""
        end, number = self.ended(), len(self.channel.deliveries)
        if end is None or not number:
            return None
        if self._left is None or self._left[:2] != (end[0], number):
            left = _unsettled_of(self.channel)
            self._left = None if left is None else (end[0], number, left)
        return None if self._left is None else self._left[2]


def note_opened(context: RuleContext) -> None:
    """channel-begins: other channels of its number and host may end before TCP does."""
    if context.log.recorded is not None:
        return
    key = _on_host(context)
    if key is None:
        return
    shared: dict[str, Any] = context.shared
    open_ones = shared.get("open-channels")
    if open_ones is None:
        open_ones = shared["open-channels"] = OrderedDict()
    channels: dict[Any, OpenChannel] | None = open_ones.get(key)
    if channels is None:
        channels = open_ones[key] = {}
    else:
        open_ones.move_to_end(key)
    channels[context.channel] = OpenChannel(context.channel)
    if len(channels) > MAX_OPEN:
        del channels[next(iter(channels))]
    if len(open_ones) > MAX_UNSETTLED_CHANNELS:
        open_ones.popitem(last=False)
        context.forget("channels")


def note_unsettled(context: RuleContext) -> None:
    """A channel ends: its outstanding tags may be acknowledged on the next one."""
    channel: Channel = context.channel
    shared: dict[str, Any] = context.shared
    records = context.log.recorded
    if records is not None and not channel.deliveries:
        return
    key = _on_host(context)
    open_ones = shared.get("open-channels")
    channels: dict[Any, OpenChannel] | None = None if open_ones is None else open_ones.get(key)
    if channels is not None:
        channels.pop(channel, None)
        if not channels:
            del open_ones[key]
    left = _unsettled_of(channel) if channel.deliveries else None
    if left is None:
        return
    connection_id = context.session.connection.name()[0]
    _remember(context, "left-outstanding", (connection_id, context.channel.number), left)
    if records is not None and key is not None:
        records.outstanding.append((left.order, key, left.packet_number, left.tags))
    elif key is not None:
        _remember(context, "left-on-hosts", key, left)


def unsettled_before(context: RuleContext, tag: int) -> Unsettled | None:
    """The unsettled deliveries with this tag of a channel that ended before the context's opened.

    The channels are searched once a packet, which may hold a thousand acknowledgements.
    """
    asked = context.channel, context.number
    known = context.memory.get("left before")
    if known is None or known[0] != asked:
        known = context.memory["left before"] = asked, _lefts_before(context)
    return next((left for left in known[1] if left is not None and left.holds(tag)), None)


def _lefts_before(context: RuleContext) -> tuple[Unsettled | None, Unsettled | None]:
    """The last that was left by then on the context's connection, and on its host."""
    opened = _opened(context)
    shared = context.shared
    connection_id = context.session.connection.name()[0]
    own: UnsettledChannels = shared.get("left-outstanding", UnsettledChannels())
    left = own.before((connection_id, context.channel.number), opened)
    key = _on_host(context)
    if key is None:
        return left, None
    on_host: UnsettledChannels = shared.get("left-on-hosts", UnsettledChannels())
    found = [on_host.before(key, opened)]
    for begun in shared.get("open-channels", {}).get(key, {}).values():
        end = begun.ended()
        if end is not None and end[0] <= opened:
            found.append(begun.left())
    return left, max((number for number in found if number is not None), default=None)


def stale_words(tag: int, left: Unsettled, opened: int) -> str:
    """The finding in words; `opened` is the packet in which the channel was opened."""
    return (
        f"delivery {tag} was sent on the channel that ended in packet {left.packet_number}, "
        f"and this one was opened later, in packet {opened}"
    )


class Question(NamedTuple):
    """An acknowledgement that may be for unsettled deliveries of another connection's channel.

    `key` is host and channel number; `order` is its place in time, `opened_order` that of its
    channel's open, in packet `opened`.
    """

    order: Order
    key: tuple[str, int]
    tag: int
    opened_order: Order
    opened: int


def question_for(context: RuleContext, tag: int) -> Question | None:
    """The question for the other readers; None for a reader of all connections."""
    key = _on_host(context)
    if context.log.recorded is None or key is None:
        return None
    now = order_of(context.ts_ns, context.session.capture, context.number)
    return Question(now, key, tag, _opened(context), context.channel.opened_packet_number)


def record_question(context: RuleContext, question: Question) -> int:
    """Write a question down; gives the variant that the finding is to have until it is answered."""
    records: Records = context.log.recorded
    variant = len(records.unknown_acks) + 1
    place = (context.session.connection.name()[0], context.channel.number, variant)
    records.unknown_acks.append((*question, place))
    return variant


def settle_stale(
    found: Iterable[Finding], records: Records, forget: Callable[[dict[str, int]], None]
) -> None:
    """Answer the questions of all readers, in the findings that they have raised about them."""
    lefts = UnsettledChannels()
    forgotten = 0
    stale: dict[tuple[str, int, int], str] = {}
    waiting = deque(sorted(records.outstanding))
    for order, key, tag, opened_order, opened, place in sorted(records.unknown_acks):
        while waiting and waiting[0][0] <= order:
            then, where, number, tags = waiting.popleft()
            forgotten += lefts.add(where, Unsettled(then, number, tags))
        left = lefts.before(key, opened_order)
        if left is not None and left.holds(tag):
            stale[place] = stale_words(tag, left, opened)
    forgotten += max(0, len(lefts) + len(waiting) - MAX_UNSETTLED_CHANNELS)
    if forgotten:
        forget({"channels": forgotten})
    for finding in found:
        if finding.code == INVALID and finding.variant not in (None, NEVER_SENT):
            place = (finding.connection_id or "", finding.channel or 0, finding.variant)
            finding.variant = None if place in stale else NEVER_SENT
            if place in stale:
                finding.code, finding.detail = STALE, stale[place]


def _remember(context: RuleContext, name: str, key: Any, left: Unsettled) -> None:
    lefts = context.shared.setdefault(name, UnsettledChannels())
    if lefts.add(key, left):
        context.forget("channels")


def _unsettled_of(channel: Channel) -> Unsettled | None:
    """The outstanding deliveries of an ended channel; None while it is open."""
    end = _end_of(channel)
    if end is None:
        return None
    tags = sorted(entry.number for entry in islice(channel.deliveries, MAX_UNSETTLED_TAGS))
    return Unsettled(*end, _ranges(tags))


def _end_of(channel: Channel) -> tuple[Order, int] | None:
    """Time and packet of a channel's end: of its close, its connection's, or TCP's."""
    session: Session = channel.session
    capture = session.capture
    number = channel.closed_packet_number
    if number is not None:
        return order_of(channel.end_ns, capture, number), number
    number = session.close_packet_number
    if number is not None:
        return order_of(session.close_ns, capture, number), number
    conversation = session.connection.conversation
    if conversation.ended is None:
        return None
    number = conversation.ended_packet_number
    return order_of(conversation.ended_ns, capture, number), number


def _ranges(tags: Sequence[int]) -> Ranges:
    """Rising tags as ranges."""
    found: list[tuple[int, int]] = []
    for tag in tags:
        if found and tag == found[-1][1] + 1:
            found[-1] = (found[-1][0], tag)
        else:
            found.append((tag, tag))
    return tuple(found)


def _opened(context: RuleContext) -> Order:
    channel = context.channel
    return order_of(channel.start_ns, context.session.capture, channel.opened_packet_number)


def _on_host(context: RuleContext) -> tuple[str, int] | None:
    """The client's host and the channel's number; None without a known host."""
    client: Client = client_of(context)
    channel: Channel = context.channel
    return (client.host, channel.number) if client.host else None


RULES: dict[str, tuple[Rule, ...]] = {
    "tag-unknown": (unknown_tag,),
    "channel.close": (refused_tag,),
    "channel-begins": (note_opened,),
    "channel-ends": (note_unsettled,),
    "delivery-tag-gap": (gap,),
}
