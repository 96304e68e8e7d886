# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Logs of several readers (`event_logs`), merged in time order, replayed as if one had read all.

`LinkReplay` links the messages, `MessageReplay` judges those that repeat, wait or come again.
"""

from __future__ import annotations

from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.columns import Integers
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.codes import CONNECTION_CLOSED, CONNECTION_OVER
from cython.cimports.amqpsniff.session.entities import QueueTimes
from cython.cimports.amqpsniff.session.linker import Linker, LinkRecord
from cython.cimports.amqpsniff.session.recent_publishes import RecentPublishes
from cython.cimports.amqpsniff.session.rules.occasions import WAITED_NS

from amqpsniff.session import event_logs
from amqpsniff.session.rules.context import ordinal_of
from amqpsniff.session.rules.queues import is_long
from amqpsniff.session.rules.requeueing import RequeueHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TASK_SHIFT = cython.declare(cython.int, 40)
"""Bits of the number of a connection or channel of a task, more than packets can open."""


# links

LINK_COLUMNS = ["task", *event_logs.LINK_LOG_NUMBERS]
"""Columns that are fed: `task` is whose message it is."""

FOUND = (
    "task message published_packet_number published_connection_id published_ns delivery_number "
    "link_confidence request_packet_number request_connection_id request_ns reply_late"
).split()
"""Columns of the result: connection ids as numbers, confidence as a code, null where unknown."""


@cython.cclass
class LinkReplay:
    """Links the records of `feed`; `rows` links are in the columns of `FOUND` until the next."""

    rows = cython.declare(cython.longlong, visibility="public")
    columns = cython.declare(dict, visibility="public")

    linker: Linker
    record: LinkRecord
    task: Integers
    message: Integers
    published_packet_number: Integers
    published_connection_id: Integers
    published_ns: Integers
    delivery_number: Integers
    link_confidence: Integers
    request_packet_number: Integers
    request_connection_id: Integers
    request_ns: Integers
    reply_late: Integers

    def __init__(self) -> None:
        self.linker = Linker(None)
        self.record = LinkRecord()
        self.columns = {}
        self.rows = 0

    @property
    def hits(self) -> Any:
        """Number of times that each limit was reached."""
        return self.linker.hits

    @cython.ccall
    @cython.exceptval(-1)
    def feed(self, columns: dict[Any, Any], count: cython.longlong) -> cython.int:
        """Go over the next `count` messages: `columns` are buffers of `LINK_COLUMNS`."""
        tasks: cython.longlong[::1] = columns["task"]
        messages: cython.longlong[::1] = columns["message"]
        flags: cython.longlong[::1] = columns["flags"]
        connections: cython.longlong[::1] = columns["connection"]
        channels: cython.longlong[::1] = columns["channel"]
        numbers: cython.longlong[::1] = columns["packet_number"]
        times: cython.longlong[::1] = columns["sent_ns"]
        ids: cython.longlong[::1] = columns["connection_id"]
        vhosts: cython.longlong[::1] = columns["vhost"]
        lines: cython.longlong[::1] = columns["line"]
        others: cython.longlong[::1] = columns["other"]
        keys: cython.longlong[::1] = columns["routing_key"]
        queues: cython.longlong[::1] = columns["queue"]
        correlations: cython.longlong[::1] = columns["correlation"]
        addresses: cython.longlong[::1] = columns["reply_to"]
        deadlines: cython.longlong[::1] = columns["deadline"]
        identities: cython.longlong[::1] = columns["identity"]
        asks: cython.longlong[::1] = columns["asks"]
        answers: cython.longlong[::1] = columns["answers"]
        at: cython.longlong
        connection: cython.longlong
        record: LinkRecord = self.record
        self._begin(count)
        for at in range(count):
            connection = connections[at]
            if connection >= 0:
                connection |= tasks[at] << _TASK_SHIFT
            if flags[at] & (CONNECTION_CLOSED | CONNECTION_OVER):
                self._close(connection, times[at], flags[at] & CONNECTION_OVER != 0)
                continue
            record.flags = flags[at]
            record.connection = connection
            record.channel = channels[at]
            record.packet_number = numbers[at]
            record.sent_ns = times[at]
            record.connection_id = ids[at]
            record.vhost = _unsigned(vhosts[at])
            record.line = _unsigned(lines[at])
            record.other = _unsigned(others[at])
            record.routing_key = _unsigned(keys[at])
            record.queue = _unsigned(queues[at])
            record.correlation = _unsigned(correlations[at])
            record.reply_to = _unsigned(addresses[at])
            record.deadline = deadlines[at]
            record.identity = _unsigned(identities[at])
            record.asks = _unsigned(asks[at])
            record.answers = _unsigned(answers[at])
            self.linker.link(record)
            if record.published or record.replies:
                self._put(tasks[at], messages[at])
        return 0

    def _begin(self, count: cython.longlong) -> cython.int:
        """Have room for as many links; they are null until they are written."""
        self.rows = 0
        self.columns = {name: Integers() for name in FOUND}
        for column in self.columns.values():
            column.reserve(count)
        self.task, self.message = self.columns["task"], self.columns["message"]
        self.published_packet_number = self.columns["published_packet_number"]
        self.published_connection_id = self.columns["published_connection_id"]
        self.published_ns = self.columns["published_ns"]
        self.delivery_number = self.columns["delivery_number"]
        self.link_confidence = self.columns["link_confidence"]
        self.request_packet_number = self.columns["request_packet_number"]
        self.request_connection_id = self.columns["request_connection_id"]
        self.request_ns = self.columns["request_ns"]
        self.reply_late = self.columns["reply_late"]
        return 0

    def _close(
        self, connection: cython.longlong, close_ns: cython.longlong, over: cython.bint
    ) -> cython.int:
        """A connection was closed, or is over."""
        time: Any = None if close_ns == NULL else close_ns
        if over:
            self.linker.requests.end(connection, time)
        else:
            self.linker.requests.close(connection, time)
        return 0

    def _put(self, task: cython.longlong, message: cython.longlong) -> cython.int:
        """Write the links of the current message to the columns."""
        row: cython.longlong = self.rows
        record: LinkRecord = self.record
        self.task.values[row] = task
        self.message.values[row] = message
        if record.published:
            self.published_packet_number.values[row] = record.published_number
            self.published_connection_id.values[row] = record.published_id
            self.published_ns.values[row] = record.published_ns
            self.link_confidence.values[row] = record.link_confidence
            if record.delivery_number > 0:
                self.delivery_number.values[row] = record.delivery_number
        if record.replies:
            self.request_packet_number.values[row] = record.request_number
            self.request_connection_id.values[row] = record.request_id
            self.request_ns.values[row] = record.request_ns
            self.reply_late.values[row] = record.reply_late
        self.rows += 1
        return 0


@cython.cfunc
@cython.exceptval(1)
def _unsigned(number: cython.longlong) -> cython.ulonglong:
    """A hash that was written as a signed number."""
    if cython.compiled:
        return cython.cast(cython.ulonglong, number)
    return number & 0xFFFFFFFFFFFFFFFF


# messages that repeat, wait or come again

MESSAGE_COLUMNS = ["task", "row", *event_logs.MESSAGE_LOG_NUMBERS]
"""Columns that are replayed: `task` is whose sighting it is, `row` its ordinal there."""

_NAMED = cython.declare(cython.longlong, event_logs.NAMED)
_DELIVER = cython.declare(cython.longlong, event_logs.DELIVER)
_FORGET = cython.declare(cython.longlong, event_logs.FORGET)
_COUNTED = cython.declare(cython.longlong, event_logs.COUNTED)
_AGAIN_NAMED = cython.declare(cython.longlong, event_logs.AGAIN_NAMED)
_AGAIN = cython.declare(cython.longlong, event_logs.AGAIN)
_PUT_BACK = cython.declare(cython.longlong, event_logs.PUT_BACK)
_DISCARDED = cython.declare(cython.longlong, event_logs.DISCARDED)
_CLOSED = cython.declare(cython.longlong, event_logs.CLOSED)
_LOST = cython.declare(cython.longlong, event_logs.LOST)
_LOADED = cython.declare(cython.longlong, event_logs.LOADED)


class FirstCase(NamedTuple):
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
    """A channel: `repeated` is a `FirstCase`, or None; other fields are as in `Channel`.

    `poisoned` has by the ordinal of a subject (`ordinal_of`) the `FirstCase`, the number of cases,
    and the packet of the last. `loaded`: the sighting with the load of its consumer, -1 for none;
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
    def has_findings(self) -> Any:
        """True if there is something to report about the channel."""
        return self.repeats > 0 or self.poisons > 0 or is_long(self)


@cython.cclass
class MessageReplay:
    """Judges the sightings of all readers as the tracker does when it reads everything.

    It has the same `RecentPublishes` and the same `RequeueHistory`, with the same bounds.
    `channels` are those that may have findings.
    """

    requeues = cython.declare(object, visibility="public")
    order = cython.declare(cython.longlong, visibility="public")
    recent_publishes = cython.declare(RecentPublishes, visibility="public")
    channels = cython.declare(dict, visibility="public")
    outstanding = cython.declare(dict, visibility="public")
    subjects = cython.declare(dict, visibility="public")

    def __init__(self) -> None:
        self.recent_publishes = RecentPublishes()
        self.requeues = RequeueHistory()
        self.channels = {}
        self.outstanding = {}
        self.subjects = {}
        self.order = 0

    @cython.ccall
    def feed(self, columns: dict[Any, Any], count: cython.longlong) -> cython.int:
        """Go over the next `count` sightings: `columns` are buffers of `MESSAGE_COLUMNS`."""
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
                    (tasks[at] << _TASK_SHIFT) | connections[at],
                )  # fmt: skip
                if first >= 0:
                    seen = self._channel(tasks[at], channels[at])
                    seen.repeats += 1
                    seen.last_repeat = numbers[at]
                    if seen.repeated is None:
                        place = (rows[at], numbers[at], times[at], _NAMED, first)
                        seen.repeated = FirstCase(self._now(), *place)
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
                owner = (tasks[at] << _TASK_SHIFT) | connections[at]
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
        key: cython.longlong = (task << _TASK_SHIFT) | channel
        seen: ReplayedChannel = self.channels.get(key)
        if seen is None:
            seen = self.channels[key] = ReplayedChannel(task, channel)
        return seen

    @cython.cfunc
    def _close(self, task: cython.longlong, channel: cython.longlong) -> cython.int:
        """End of a channel: forget it if it has no findings."""
        key: cython.longlong = (task << _TASK_SHIFT) | channel
        seen: ReplayedChannel = self.channels.get(key)
        if seen is not None and not seen.has_findings:
            del self.channels[key]
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
            known = self.subjects.setdefault(key, {})
            subject: object = kind
            if kind == _AGAIN_NAMED:
                subject = (kind, mark)
            ordinal = ordinal_of(known, subject)
            if ordinal in seen.poisoned:
                first, count, last = seen.poisoned[ordinal]
                seen.poisoned[ordinal] = first, count + 1, max(last, number)
            else:
                first = FirstCase(self._now(), row, number, ts_ns, kind, times)
                seen.poisoned[ordinal] = first, 1, number
        return 0

    @cython.cfunc
    def _now(self) -> cython.longlong:
        """The next number in the order of cases."""
        self.order += 1
        return self.order
