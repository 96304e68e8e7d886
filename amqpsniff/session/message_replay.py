# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Replay of the message logs of several readers, judged as if one had read everything.

`MessageReplay` is fed the sightings of all readers in time order, and treats them as the tracker
does when it reads everything: the same `RecentPublishes`, the same `RequeueHistory`, with the same
bounds. It also keeps the counts of open channels, and of closed channels with findings.
"""

from __future__ import annotations

from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.entities import QueueTimes
from cython.cimports.amqpsniff.session.recent_publishes import (
    RecentPublishes,
)
from cython.cimports.amqpsniff.session.rules.occasions import WAITED_NS

from amqpsniff.session import message_log
from amqpsniff.session.rules.context import ordinal_of
from amqpsniff.session.rules.queues import is_long
from amqpsniff.session.rules.requeueing import RequeueHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLUMNS = ["task", "row", *message_log.NUMBERS]
"""Columns that are replayed: `task` is whose sighting it is, `row` its ordinal there."""

_NAMED = cython.declare(cython.longlong, message_log.NAMED)
_DELIVER = cython.declare(cython.longlong, message_log.DELIVER)
_FORGET = cython.declare(cython.longlong, message_log.FORGET)
_COUNTED = cython.declare(cython.longlong, message_log.COUNTED)
_AGAIN_NAMED = cython.declare(cython.longlong, message_log.AGAIN_NAMED)
_AGAIN = cython.declare(cython.longlong, message_log.AGAIN)
_PUT_BACK = cython.declare(cython.longlong, message_log.PUT_BACK)
_DISCARDED = cython.declare(cython.longlong, message_log.DISCARDED)
_CLOSED = cython.declare(cython.longlong, message_log.CLOSED)
_LOST = cython.declare(cython.longlong, message_log.LOST)
_LOADED = cython.declare(cython.longlong, message_log.LOADED)
# Channels and connections of a task, more than packets can open.
_CHANNEL_BITS = cython.declare(cython.int, 40)


class First(NamedTuple):
    """The first case of a finding about a channel, and the number of cases.

    `order`: its place among all cases; `row`: its sighting; `known`: the packet of the first
    publish, or the number of times that a message came; `kind`: the kind of the sighting.
    """

    order: int
    row: int
    number: int
    ts_ns: int
    kind: int
    known: int


@cython.cclass
class ReplayedChannel(QueueTimes):
    """A channel: `repeated` is a `First`, or None; other fields are as in `Channel`.

    `poisoned` has by the ordinal of a subject (`ordinal_of`) the `First`, the number of cases, and
    the packet of the last. `loaded`: the sighting with the load of its consumer, -1 for none;
    `fresh_row` and `long_row`: sightings of the deliveries in `fresh_number` and `long_number`.
    """

    task = cython.declare(cython.longlong, visibility="public")
    channel = cython.declare(cython.longlong, visibility="public")
    repeats = cython.declare(cython.longlong, visibility="public")
    last_repeat = cython.declare(cython.longlong, visibility="public")
    poisons = cython.declare(cython.longlong, visibility="public")
    loaded = cython.declare(cython.longlong, visibility="public")
    fresh_row = cython.declare(cython.longlong, visibility="public")
    long_row = cython.declare(cython.longlong, visibility="public")

    repeated = cython.declare(object, visibility="public")
    poisoned = cython.declare(dict, visibility="public")

    def __init__(self, task: Any, channel: Any) -> None:
        QueueTimes.__init__(self)
        self.task = task
        self.channel = channel
        self.repeated = None
        self.poisoned = {}
        self.repeats = self.last_repeat = self.poisons = 0
        self.loaded = self.fresh_row = self.long_row = -1

    @property
    def telling(self) -> Any:
        """True if there is something to report about the channel."""
        return self.repeats > 0 or self.poisons > 0 or is_long(self)


@cython.cclass
class MessageReplay:
    """Judges sightings; `seen` are the channels that may have findings."""

    requeues = cython.declare(object, visibility="public")
    order = cython.declare(cython.longlong, visibility="public")
    recent_publishes = cython.declare(RecentPublishes, visibility="public")
    seen = cython.declare(dict, visibility="public")
    outstanding = cython.declare(dict, visibility="public")
    apart = cython.declare(dict, visibility="public")

    def __init__(self) -> None:
        self.recent_publishes = RecentPublishes()
        self.requeues = RequeueHistory()
        self.seen = {}
        self.outstanding = {}
        self.apart = {}
        self.order = 0

    @cython.ccall
    def feed(self, columns: dict[Any, Any], count: cython.longlong) -> cython.int:
        """Go over the next `count` sightings: `columns` are buffers of `COLUMNS`."""
        tasks: cython.longlong[::1] = columns["task"]
        rows: cython.longlong[::1] = columns["row"]
        kinds: cython.longlong[::1] = columns["kind"]
        connections: cython.longlong[::1] = columns["connection"]
        channels: cython.longlong[::1] = columns["channel"]
        marks: cython.longlong[::1] = columns["mark"]
        routes: cython.longlong[::1] = columns["route"]
        times: cython.longlong[::1] = columns["seen_ns"]
        numbers: cython.longlong[::1] = columns["seen_number"]
        at: cython.longlong
        kind: cython.longlong
        first: cython.longlong
        slot: cython.longlong
        waited: cython.longlong
        owner: cython.longlong
        seen: ReplayedChannel
        for at in range(count):
            kind = kinds[at]
            if kind <= _NAMED:
                named: cython.bint = kind == _NAMED
                first = self.recent_publishes.publish(
                    marks[at], routes[at], named, numbers[at], times[at],
                    (tasks[at] << _CHANNEL_BITS) | connections[at],
                )  # fmt: skip
                if first >= 0:
                    seen = self._channel(tasks[at], channels[at])
                    seen.repeats += 1
                    seen.last_repeat = numbers[at]
                    if seen.repeated is None:
                        place = (rows[at], numbers[at], times[at], _NAMED, first)
                        seen.repeated = First(self._now(), *place)
            elif kind == _DELIVER:
                slot = self.recent_publishes.place_of(marks[at], routes[at])
                if slot >= 0 and times[at] != NULL:
                    waited = times[at] - self.recent_publishes.since.values[slot]
                    if waited >= 0:
                        seen = self._channel(tasks[at], channels[at])
                        longest: cython.bint = seen.add_wait(waited, numbers[at], times[at])
                        if seen.fresh == seen.queued:
                            seen.fresh_row = rows[at]
                        if seen.queued_long == 1 and waited >= WAITED_NS:
                            seen.long_row = rows[at]
                        if longest:
                            first = self.recent_publishes.numbers.values[slot]
                            seen.longest = (numbers[at], times[at], rows[at], first)
            elif kind == _FORGET:
                self.recent_publishes.forget(marks[at])
            elif kind == _CLOSED:
                self._close(tasks[at], channels[at])
            elif kind == _LOADED:
                self._channel(tasks[at], channels[at]).loaded = rows[at]
            elif kind == _LOST:
                owner = (tasks[at] << _CHANNEL_BITS) | connections[at]
                self.recent_publishes.lose(owner, cython.cast(cython.int, marks[at]))
            else:
                self._again(
                    kind, tasks[at], rows[at], connections[at], channels[at], marks[at],
                    routes[at], times[at], numbers[at],
                )  # fmt: skip
        self.order += count
        return 0

    @cython.cfunc
    def _channel(self, task: cython.longlong, channel: cython.longlong) -> ReplayedChannel:
        key: cython.longlong = (task << _CHANNEL_BITS) | channel
        seen: ReplayedChannel = self.seen.get(key)
        if seen is None:
            seen = self.seen[key] = ReplayedChannel(task, channel)
        return seen

    @cython.cfunc
    def _close(self, task: cython.longlong, channel: cython.longlong) -> cython.int:
        """End of a channel: forget it if it has no findings."""
        key: cython.longlong = (task << _CHANNEL_BITS) | channel
        seen: ReplayedChannel = self.seen.get(key)
        if seen is not None and not seen.telling:
            del self.seen[key]
        return 0

    @cython.cfunc
    def _again(
        self,
        kind: cython.longlong,
        task: cython.longlong,
        row: cython.longlong,
        connection: cython.longlong,
        channel: cython.longlong,
        mark: cython.longlong,
        tag: cython.longlong,
        ts_ns: cython.longlong,
        number: cython.longlong,
    ) -> cython.int:
        """A message was redelivered or requeued, or its delivery ended."""
        times: cython.longlong = 0
        key = (task, connection)
        if kind == _COUNTED:
            times = mark
        elif kind == _AGAIN_NAMED:
            times = self.requeues.come_again(mark)
        elif kind == _AGAIN:
            outstanding = self.outstanding.setdefault(key, {})
            self.requeues.come_again_alike(mark, outstanding, (channel, tag))
        elif kind == _PUT_BACK:
            times = self.requeues.put_back(mark, self.outstanding.get(key, {}), (channel, tag))
        elif kind == _DISCARDED:
            self.outstanding.get(key, {}).pop((channel, tag), None)
        else:
            self.outstanding.pop(key, None)
        if times:
            seen: ReplayedChannel = self._channel(task, channel)
            seen.poisons += 1
            known = self.apart.setdefault(key, {})
            subject: object = kind
            if kind == _AGAIN_NAMED:
                subject = (kind, mark)
            ordinal = ordinal_of(known, subject)
            if ordinal in seen.poisoned:
                first, count, last = seen.poisoned[ordinal]
                seen.poisoned[ordinal] = first, count + 1, max(last, number)
            else:
                first = First(self._now(), row, number, ts_ns, kind, times)
                seen.poisoned[ordinal] = first, 1, number
        return 0

    @cython.cfunc
    def _now(self) -> cython.longlong:
        """The next number in the order of cases."""
        self.order += 1
        return self.order
