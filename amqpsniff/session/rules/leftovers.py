"""Deliveries that channels had outstanding when they ended, and who acknowledges them later.

A client that goes on with its work after it lost a channel acknowledges on the next one: of the
same connection, or of another one of its host. A channel is over with its close, with that of its
connection or with TCP, whichever came first. Of those that were over when a channel was opened, on
its connection and on its host, the last one of its number that left something counts.

A reader of some connections knows those; what it needs of others it writes down (`Records.left`,
`Records.asked`), and `settle_stale` answers for all.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from amqpsniff.findings import Finding, Records
from amqpsniff.findings.records import Order, order_of
from amqpsniff.session.rules.peers import client_host
from amqpsniff.session.rules.scene import Scene

INVALID, STALE = "acknowledgement-invalid", "acknowledgement-stale"

LEFT_CHANNELS = 4_096
"""Channels whose outstanding tags are remembered after their end, the latest ones."""

LEFT_TAGS = 1_024
"""Outstanding tags remembered of such a channel; a prefetch count is rarely higher."""

MAX_OPEN = 64
"""Channels of one host and number that are looked at while TCP has not taken their connection for
over, the latest ones: that is a matter of seconds."""

_first, _order = itemgetter(0), attrgetter("order")

Ranges = tuple[tuple[int, int], ...]
"""Tags as ranges of (first, last)."""


class Left(NamedTuple):
    """What was outstanding on a channel when it ended: when that was, and in which packet."""

    order: Order
    packet_number: int
    tags: Ranges

    def holds(self, tag: int) -> bool:
        """Whether a tag was outstanding."""
        place = bisect_right(self.tags, tag, key=_first) - 1
        return place >= 0 and tag <= self.tags[place][1]


class Lefts:
    """What channels left, by a key; `LEFT_CHANNELS` of them, whatever their keys."""

    def __init__(self) -> None:
        self._by_key: dict[Any, list[Left]] = {}
        self._added: deque[tuple[Any, Left]] = deque()

    def __len__(self) -> int:
        return len(self._added)

    def add(self, key: Any, left: Left) -> bool:
        """Remember one; whether the oldest had to be forgotten."""
        insort(self._by_key.setdefault(key, []), left)
        self._added.append((key, left))
        if len(self._added) <= LEFT_CHANNELS:
            return False
        key, oldest = self._added.popleft()
        of_key = self._by_key[key]
        del of_key[bisect_left(of_key, oldest)]
        if not of_key:
            del self._by_key[key]
        return True

    def before(self, key: Any, order: Order) -> Left | None:
        """The last that was left at a key by then."""
        of_key = self._by_key.get(key, [])
        place = bisect_right(of_key, order, key=_order)
        return of_key[place - 1] if place else None


class Begun:
    """A channel that may be over before TCP says so, and what it left by then."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self._left: tuple[Order, int, Left] | None = None

    def ended(self) -> tuple[Order, int] | None:
        """When the channel ended and in which packet; None while it is open."""
        return _end_of(self.channel)

    def left(self) -> Left | None:
        """As `_left_of`, found again only when something has changed."""
        end, number = self.ended(), len(self.channel.deliveries)
        if end is None or not number:
            return None
        if self._left is None or self._left[:2] != (end[0], number):
            left = _left_of(self.channel)
            self._left = None if left is None else (end[0], number, left)
        return None if self._left is None else self._left[2]


def note_begun(scene: Scene) -> None:
    """A channel begins: others of its number and host may be over before TCP says so."""
    key = _on_host(scene)
    if key is None or scene.tracker.log.recorded is not None:
        return
    open_ones = scene.everything.setdefault("open-channels", OrderedDict())
    channels = open_ones.setdefault(key, {})
    open_ones.move_to_end(key)
    channels[_own(scene)] = Begun(scene.channel)
    if len(channels) > MAX_OPEN:
        del channels[next(iter(channels))]
    if len(open_ones) > LEFT_CHANNELS:
        open_ones.popitem(last=False)
        scene.forget("channels")


def note_left(scene: Scene) -> None:
    """A channel ends: its outstanding tags may be acknowledged on the next one."""
    key = _on_host(scene)
    open_ones = scene.everything.get("open-channels", {})
    if key in open_ones:
        open_ones[key].pop(_own(scene), None)
        if not open_ones[key]:
            del open_ones[key]
    left = _left_of(scene.channel)
    if left is None:
        return
    connection_id = scene.session.peer.name()[0]
    _remember(scene, "left-outstanding", (connection_id, scene.channel.number), left)
    records = scene.tracker.log.recorded
    if records is not None and key is not None:
        records.left.append((left.order, key, left.packet_number, left.tags))
    elif key is not None:
        _remember(scene, "left-on-hosts", key, left)


def left_before(scene: Scene, tag: int) -> Left | None:
    """What a channel left, that was over when the scene's was opened, if a tag was in it.

    The channels are looked for once a packet, which may hold a thousand acknowledgements.
    """
    asked = scene.channel, scene.number
    known = scene.memory.get("left before")
    if known is None or known[0] != asked:
        known = scene.memory["left before"] = asked, _lefts_before(scene)
    return next((left for left in known[1] if left is not None and left.holds(tag)), None)


def _lefts_before(scene: Scene) -> tuple[Left | None, Left | None]:
    """The last that was left by then on the scene's connection, and on its host."""
    opened = _opened(scene)
    everything = scene.everything
    connection_id = scene.session.peer.name()[0]
    own: Lefts = everything.get("left-outstanding", Lefts())
    left = own.before((connection_id, scene.channel.number), opened)
    key = _on_host(scene)
    if key is None:
        return left, None
    on_host: Lefts = everything.get("left-on-hosts", Lefts())
    found = [on_host.before(key, opened)]
    for begun in everything.get("open-channels", {}).get(key, {}).values():
        end = begun.ended()
        if end is not None and end[0] <= opened:
            found.append(begun.left())
    return left, max((one for one in found if one is not None), default=None)


def stale_words(tag: int, left: Left, opened: int) -> str:
    """The finding in words; `opened` is the packet in which the channel was opened."""
    return (
        f"delivery {tag} was sent on the channel that ended in packet {left.packet_number}, "
        f"and this one was opened later, in packet {opened}"
    )


class Question(NamedTuple):
    """An acknowledgement that may be of what a channel of another connection left.

    `key` is host and channel number; `order` and `opened_order` say when it was, and when its
    channel was opened, in packet `opened`.
    """

    order: Order
    key: tuple[str, int]
    tag: int
    opened_order: Order
    opened: int


def wonder(scene: Scene, tag: int) -> Question | None:
    """What a reader of some connections cannot answer; None for a reader of all."""
    key = _on_host(scene)
    if scene.tracker.log.recorded is None or key is None:
        return None
    now = order_of(scene.ts_ns, scene.session.capture, scene.number)
    return Question(now, key, tag, _opened(scene), scene.channel.opened_packet_number)


def ask(scene: Scene, question: Question) -> int:
    """Write a question down; gives the variant that the finding is to have until it is answered."""
    records: Records = scene.tracker.log.recorded
    variant = len(records.asked) + 1
    place = (scene.session.peer.name()[0], scene.channel.number, variant)
    records.asked.append((*question, place))
    return variant


def settle_stale(
    found: Iterable[Finding], records: Records, forget: Callable[[dict[str, int]], None]
) -> None:
    """Answer the questions of all readers, in the findings that they have raised about them."""
    lefts = Lefts()
    forgotten = 0
    stale: dict[tuple[str, int, int], str] = {}
    waiting = deque(sorted(records.left))
    for order, key, tag, opened_order, opened, place in sorted(records.asked):
        while waiting and waiting[0][0] <= order:
            then, where, number, tags = waiting.popleft()
            forgotten += lefts.add(where, Left(then, number, tags))
        left = lefts.before(key, opened_order)
        if left is not None and left.holds(tag):
            stale[place] = stale_words(tag, left, opened)
    forgotten += max(0, len(lefts) + len(waiting) - LEFT_CHANNELS)
    if forgotten:
        forget({"channels": forgotten})
    for one in found:
        if one.code == INVALID and one.variant is not None:
            place = (one.connection_id or "", one.channel or 0, one.variant)
            one.variant = None
            if place in stale:
                one.code, one.detail = STALE, stale[place]


def _remember(scene: Scene, name: str, key: Any, left: Left) -> None:
    lefts = scene.everything.setdefault(name, Lefts())
    if lefts.add(key, left):
        scene.forget("channels")


def _left_of(channel: Any) -> Left | None:
    """What is outstanding on a channel that is over; None when nothing is, or it is not over."""
    end = _end_of(channel)
    if end is None or not channel.deliveries:
        return None
    tags = sorted(entry.number for entry in islice(channel.deliveries, LEFT_TAGS))
    return Left(*end, _ranges(tags))


def _end_of(channel: Any) -> tuple[Order, int] | None:
    """When a channel ended and in which packet: with its close, its connection's, or TCP."""
    session = channel.session
    capture = session.capture
    number = channel.closed_packet_number
    if number is not None:
        return order_of(channel.end_ns, capture, number), number
    number = session.close_packet_number
    if number is not None:
        return order_of(session.close_ns, capture, number), number
    conversation = session.peer.conversation
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


def _opened(scene: Scene) -> Order:
    channel = scene.channel
    return order_of(channel.start_ns, scene.session.capture, channel.opened_packet_number)


def _own(scene: Scene) -> tuple[str, int]:
    """What tells a channel from others of its number and host."""
    return scene.session.peer.name()[0], scene.channel.incarnation


def _on_host(scene: Scene) -> tuple[str, int] | None:
    """The client's host and the channel's number; None when the host is not known."""
    host = client_host(scene)
    return (host, scene.channel.number) if host else None
