# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Counts of a capture, row by row as it is decoded, without producing rows.

A `Census` counts the rows of its scope: frames by type and method, messages by method, size and
second, by exchange and routing key of a virtual host, connections by volume, and errors by text.
Every count with many keys is bounded, and reports when keys were forgotten.
"""

from __future__ import annotations

import re
from array import array
from heapq import heappush, heappushpop
from json import dumps
from typing import NamedTuple

import cython
from cython.cimports.amqpsniff.decode.method_layout import FIRST_PERFORMATIVE
from cython.cimports.amqpsniff.decode.rows import (
    FrameRows,
    MessageRows,
)
from cython.cimports.amqpsniff.decode.state import Connection
from cython.cimports.amqpsniff.null import NULL
from cython.cimports.amqpsniff.session.counts import (
    ConnectionCounters,
    Histogram,
    Rate,
    RouteCounter,
    RouteCounters,
)

from amqpsniff.decode.codes import STATUS_NAMES
from amqpsniff.decode.json_objects import read_object, table_of
from amqpsniff.decode.method_layout import FRAME_TYPE_NAMES, NAMES, WAYS
from amqpsniff.session import method_flags
from amqpsniff.session.counts import MAX_NAMES, TopCounts
from amqpsniff.session.method_frame import read_reason
from amqpsniff.spec import FIRST_ERROR_CODE, peer_property
from amqpsniff.spec.amqp010 import overhead_bytes
from amqpsniff.spec.amqp10 import MANAGEMENT_NODE
from amqpsniff.spec.management import queue_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLIENT = ("product", "version", "platform")
"""The client properties that tell kinds of clients apart."""

MAX_SAID = 1_000
"""Different start-oks that are kept until they are read: most clients say what others said. With
20,000 of them very many connections with names of their own took 5 MB more."""

_NAME_BITS = cython.declare(cython.int, 24)
"""Bits of a code of a vocabulary in a key; a batch has far fewer names."""

UNCLEAN = ("fin", "rst")
"""Ends of a connection (`closed_by`) without a close."""

_overheads = cython.declare(bytes, bytes(map(overhead_bytes, FRAME_TYPE_NAMES)))
_DEPTH = re.compile(rb',"message_count":(\d+),"consumer_count":(\d+)}\Z')
"""The end of a whole queue.declare-ok as JSON: there may be very many of them."""

_FIRST_ERROR = cython.declare(cython.int, FIRST_ERROR_CODE)
_REFUSALS = frozenset(("basic.nack", "channel.alert"))
_refusals = bytes(name in _REFUSALS for name in NAMES)
_BLOCKED = method_flags.NAMES.index("connection.blocked")
_DISPOSITION = cython.declare(cython.int, NAMES.index("disposition"))
_OPEN = method_flags.NAMES.index("channel.open")
_DECLARED = method_flags.NAMES.index("queue.declare-ok")


class CensusLimits(NamedTuple):
    """Bounds on what a census remembers.

    Attributes:
        names: Queues, and kinds of clients, that are counted by name. Also routes of messages,
            before they are merged with those of all batches.
        vhosts: Virtual hosts that are counted separately: messages of later ones count as those of
            unknown ones.
        others: Unknown methods that are counted by name, of 2^32; later ones count only as frames.
        errors: Distinct errors kept; reply texts often contain names that differ each time.
    """

    names: int = MAX_NAMES
    vhosts: int = 4_096
    others: int = 4_096
    errors: int = 1_000


@cython.cclass
class Census:
    """Counts rows.

    Args:
        connections: How many connections to keep, those with the most bytes.
        channel: Count only this channel; None for all.
        wanted: Called with (connection id, client, server); returns True to count a connection.
            None for all.
        span: Called without arguments at the first row; returns the first nanosecond to count and
            the first after the last, None for no bound.
        limits: Other bounds than the usual ones.
    """

    limits: Any
    most: cython.longlong
    channel: cython.int
    wanted: Any
    span: Any
    from_ns: Any
    to_ns: Any
    bounded: cython.bint
    begun: cython.bint
    types: cython.longlong[::1]
    by_method: cython.longlong[::1]
    ways: cython.const[cython.uchar][::1]
    refusals: cython.const[cython.uchar][::1]
    blocked: cython.int
    opens: cython.int
    declared: cython.int
    depths: dict[Any, Any]
    consumed: dict[Any, Any]
    others: dict[Any, Any]
    other_names: list[Any]
    other_counts: list[Any]
    statuses: cython.longlong[::1]
    sizes: list[Any]
    rates: list[Any]
    routes: Any
    queues: Any
    opened: dict[Any, Any]
    vhosts: dict[Any, Any]
    words: Any
    flows: RouteCounters
    by_queue: RouteCounters
    errors: dict[Any, Any]
    said: dict[Any, Any]
    clients: dict[Any, Any]
    kept: list[Any]
    ended: cython.longlong
    unclean: cython.longlong
    lately = cython.declare(object, visibility="public")

    def __init__(
        self,
        connections: Any = 10,
        channel: Any = None,
        wanted: Any = None,
        span: Any = None,
        limits: Any = None,
    ) -> None:
        self.limits = limits or CensusLimits()
        self.most = connections
        self.lately = None
        self.channel = -1 if channel is None else channel
        self.wanted = wanted
        self.span = span
        self.from_ns = self.to_ns = None
        self.bounded = self.begun = False
        count = len(NAMES)
        self.types = array("q", bytes(8 * len(FRAME_TYPE_NAMES)))
        self.by_method = array("q", bytes(8 * count))
        self.ways = WAYS
        self.refusals = _refusals
        self.blocked = _BLOCKED
        self.opens = _OPEN
        self.declared = _DECLARED
        self.depths, self.consumed = {}, {}
        self.others = {}
        self.other_names, self.other_counts = [], []
        self.statuses = array("q", bytes(8 * len(STATUS_NAMES)))
        self.sizes = [None] * count
        self.rates = [None] * count
        self.routes = TopCounts()
        self.queues = TopCounts()
        self.opened, self.vhosts = {None: 0}, {None: 0}
        self.words = None
        self.flows = RouteCounters()
        self.by_queue = RouteCounters()
        self.errors = {}
        self.said, self.clients = {}, {}
        self.kept = []
        self.ended = self.unclean = 0

    def look(
        self,
        frames: FrameRows,
        first_frame: cython.longlong,
        messages: MessageRows,
        first_message: cython.longlong,
        connections: list[Any],
        captures: list[Any],
        method_names: list[Any],
    ) -> None:
        """Count the rows from these on; see `Decoder.look` for the rest."""
        row: cython.longlong
        code: cython.int = -1
        connection: Connection = None
        volume: ConnectionCounters = None
        counts: cython.bint = False
        if frames.rows or messages.rows:
            self._begin()
        if first_frame < 0 or frames.rows > frames.capacity:
            raise IndexError("no such rows")
        narrow: cython.bint = self.channel >= 0 or self.bounded
        kind: cython.int
        method: cython.int
        octets: cython.longlong
        for row in range(first_frame, frames.rows):
            if frames.connection.values[row] != code:
                code = frames.connection.values[row]
                connection = connections[code]
                volume = self._volume(connection)
                counts = self.wanted is None or self.wanted(*connection.name())
            if not counts:
                continue
            if narrow and not self._in_scope(frames.channel.values[row], frames.ts_ns.values[row]):
                continue
            volume.frames += 1
            with cython.boundscheck(False):  # every column has as many rows
                kind = frames.frame_type.values[row]
                octets = frames.size.values[row] + _overheads[kind]
                if frames.sender.values[row] == 1:
                    volume.server_bytes += octets
                else:
                    volume.client_bytes += octets
                method = frames.method.values[row]
            self.types[kind] += 1
            if method >= 0:
                self._method(frames, row, method, volume, connection, captures, method_names)
        self._messages(messages, first_message, connections)

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _begin(self) -> cython.int:
        """First rows: the bounds of the counted time can be read now."""
        if not self.begun:
            self.begun = True
            self.from_ns, self.to_ns = self.span() if self.span is not None else (None, None)
            self.bounded = self.from_ns is not None or self.to_ns is not None
        return 0

    @property
    def is_of_part(self) -> bool:
        """True if it may count a part of the traffic only."""
        return self.channel >= 0 or self.wanted is not None or self.span is not None

    def includes(self, connection: Connection, channel: Any, ts_ns: Any) -> bool:
        """True if rows of a channel and a time are counted."""
        self._begin()
        wanted = self.wanted is None or self.wanted(*connection.name())
        return bool(wanted and self._in_scope(channel, ts_ns))

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _in_scope(self, channel: cython.int, ts_ns: cython.longlong) -> cython.bint:
        if self.channel >= 0 and channel != self.channel:
            return False
        if not self.bounded:
            return True
        if ts_ns == NULL:
            return False
        requires = self.from_ns is None or ts_ns >= self.from_ns
        return requires and (self.to_ns is None or ts_ns < self.to_ns)

    @cython.cfunc
    def _volume(self, connection: Connection) -> ConnectionCounters:
        if connection.volume is None:
            connection.volume = ConnectionCounters()
        return connection.volume

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _method(
        self,
        frames: FrameRows,
        row: cython.longlong,
        method: cython.int,
        volume: ConnectionCounters,
        connection: Connection,
        captures: list[Any],
        method_names: list[Any],
    ) -> cython.int:
        """Count a frame's method."""
        if method >= len(self.by_method):
            self._other(method - len(self.by_method), method_names)
            return 0
        self.by_method[method] += 1
        if method == self.opens:
            volume.channels += 1
        elif method == self.declared:
            self._depth(frames, row, connection)
        if (
            frames.reply_code.values[row] >= _FIRST_ERROR
            or method == self.blocked
            or (self.refusals[method] and frames.sender.values[row] == 1)
            or (method >= FIRST_PERFORMATIVE and self._tells_error(frames, row, method, connection))
        ):
            self._error(frames, row, method, connection, captures)
        return 0

    def _depth(self, frames: FrameRows, row: Any, connection: Any) -> None:
        """Keep the broker's last declare-ok of a queue, as JSON, and its time."""
        name = frames.vocabularies.queue.text(frames.queue.values[row])
        said = frames.arguments.bytes_of(row)
        if name is None or said is None:
            return
        queue = (self._vhost(connection), name)
        if queue in self.depths or len(self.depths) < self.limits.names:
            self.depths[queue] = said, frames.ts_ns.values[row]

    def _keep_depth(self, frames: FrameRows, row: Any, connection: Any) -> None:
        """Keep the counts of a queue in an answer of RabbitMQ's management, as of a declare-ok."""
        answer = queue_of(table_of(read_object(frames.arguments.bytes_of(row)), "management"))
        if answer is None:
            return
        queue = (self._vhost(connection), answer["name"])
        if queue in self.depths or len(self.depths) < self.limits.names:
            counts = {name: answer.get(name) for name in ("message_count", "consumer_count")}
            numbers = {name: count for name, count in counts.items() if isinstance(count, int)}
            self.depths[queue] = dumps(numbers).encode(), frames.ts_ns.values[row]

    def _is_of_others(self, connection: Any) -> cython.bint:
        """True if only some frames are counted, and those of a connection may not be among them."""
        return (
            self.channel >= 0
            or self.bounded
            or (self.wanted and not self.wanted(*connection.name()))
        )

    def stop(self, connection: Any, capture: Any, number: Any) -> None:
        """A flow of AMQP 1.0 stops a client's transfers, as connection.blocked does in 0-9-1."""
        if not self._is_of_others(connection):
            key = ("flow", "server", None, "the broker took its incoming window back", None)
            self._count_error(key, connection, capture, number)

    def consume(self, connection: Any, name: Any, change: Any, waiting: Any, said_ns: Any) -> None:
        """A link of AMQP 1.0 on which a client receives from a queue begins (1) or is over (-1).

        For each queue: consumers now, their maximum, and the waiting messages by the broker's last
        flow, with its time; None without such a flow.
        """
        if self._is_of_others(connection):
            return
        queue = (self._vhost(connection), name)
        known = self.consumed.get(queue)
        if known is None:
            if len(self.consumed) >= self.limits.names:
                return
            known = self.consumed[queue] = [0, 0, None, NULL]
        known[0] += change
        if known[0] > known[1]:
            known[1] = known[0]
        if waiting >= 0:
            known[2], known[3] = waiting, said_ns

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _other(self, place: cython.int, method_names: list[Any]) -> cython.int:
        """Count a method that no dialect knows, by its place among their names."""
        if method_names is not self.other_names:
            self._name_others()
            self.other_names = method_names
        while len(self.other_counts) <= place:
            self.other_counts.append(0)
        self.other_counts[place] += 1
        return 0

    def _name_others(self) -> None:
        """Move the counts by place to `others`, by name."""
        for name, number in zip(self.other_names, self.other_counts, strict=False):
            if number and (name in self.others or len(self.others) < self.limits.others):
                self.others[name] = self.others.get(name, 0) + number
        self.other_counts = []

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _tells_error(
        self, frames: FrameRows, row: cython.longlong, method: cython.int, connection: Connection
    ) -> cython.bint:
        """True if a performative has an error, and is not a client's disposition."""
        if frames.reply_code.values[row] >= 0:
            self._keep_depth(frames, row, connection)
        if not frames.reply_text.has(row):
            return False
        return method != _DISPOSITION or frames.sender.values[row] == 1

    def _error(
        self, frames: FrameRows, row: Any, method: cython.int, connection: Connection, captures: Any
    ) -> None:
        """Count an error of one method, sender, code and text."""
        sender = (None, "client", "server")[frames.sender.values[row] + 1]
        code = frames.reply_code.values[row]
        blamed = None
        if method == self.blocked:
            text = read_object(frames.arguments.bytes_of(row)).get("reason")
        else:
            octets = frames.reply_text.bytes_of(row)
            text = None if octets is None else octets.decode(errors="replace")
            blamed = read_reason(frames.arguments.bytes_of(row))[2]
        capture = frames.capture.values[row]
        named = captures[capture] if 0 <= capture < len(captures) else None
        key = (NAMES[method], sender, code if code >= 0 else None, text, blamed)
        self._count_error(key, connection, named, frames.packet_number.values[row])

    def _count_error(self, key: Any, connection: Any, capture: Any, number: Any) -> None:
        """Count an error by its method, sender, code, text and the method that is blamed."""
        if key not in self.errors and len(self.errors) >= self.limits.errors:
            key = (*key[:2], None, None, None)
        error = self.errors.get(key)
        if error is None:
            names = ("method", "sender", "reply_code", "reply_text", "close_method")
            error = self.errors[key] = dict(zip(names, key, strict=True))
            error["capture"] = capture
            error["packet_number"] = number
            error["connection_id"] = connection.name()[0]
            error["count"] = 0
        error["count"] += 1

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _messages(
        self, messages: MessageRows, first: cython.longlong, connections: list[Any]
    ) -> cython.int:
        row: cython.longlong
        method: cython.int
        way: cython.int
        size: cython.longlong
        key: cython.longlong
        vhost: cython.longlong = 0
        last: cython.longlong = -1
        spread_of: cython.int = -1
        code: cython.int = -1
        queue_of: cython.longlong = -1
        connection: Connection = None
        queue: RouteCounter = None
        known: RouteCounter = None
        histogram: Histogram = None
        rate: Rate = None
        counts: cython.bint = False
        narrow: cython.bint = self.channel >= 0 or self.bounded
        if messages.vocabularies is not self.words or len(self.flows) > self.limits.names:
            self._name()
            self.words = messages.vocabularies
        for row in range(first, messages.rows):
            if messages.connection.values[row] != code:
                code = messages.connection.values[row]
                connection = connections[code]
                vhost = self._vhost(connection)
                counts = self.wanted is None or self.wanted(*connection.name())
            if not counts:
                continue
            if narrow and not self._in_scope(
                messages.channel.values[row], messages.ts_ns.values[row]
            ):
                continue
            method = messages.method.values[row]
            self.statuses[messages.status.values[row]] += 1
            size = messages.sent(row)
            if method != spread_of:
                spread_of = method
                histogram = self.sizes[method]
                if histogram is None:
                    histogram = self.sizes[method] = Histogram()
                    self.rates[method] = Rate()
                rate = self.rates[method]
            histogram.add(size)
            rate.add(messages.ts_ns.values[row])
            way = self.ways[method]
            if way == 2:
                continue
            key = (vhost << _NAME_BITS) | (messages.exchange.values[row] + 1)
            key = (key << _NAME_BITS) | (messages.routing_key.values[row] + 1)
            if key != last:
                last = key
                known = self.flows.of(key)
            known.add(way, size)
            if messages.queue.values[row] >= 0:
                key = (vhost << _NAME_BITS) | messages.queue.values[row]
                if key != queue_of:
                    queue_of = key
                    queue = self.by_queue.of(queue_of)
                queue.add(way, size)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=True)
    def _vhost(self, connection: Connection) -> cython.longlong:
        """The number of a connection's virtual host, read before its first message."""
        volume: ConnectionCounters = self._volume(connection)
        if volume.vhost < 0:
            session = connection.session
            opened = None if session is None else session.handshake_json("connection.open")
            number = self.opened.get(opened)
            volume.vhost = self._open(opened) if number is None else number
        return volume.vhost

    def _open(self, opened: Any) -> Any:
        """The number of the virtual host of a new connection.open; 0 if there are too many."""
        name = read_object(opened).get("virtual_host")
        if not isinstance(name, str):
            return 0
        if len(self.opened) >= self.limits.vhosts:
            return self.vhosts.get(name, 0)
        number = self.opened[opened] = self.vhosts.setdefault(name, len(self.vhosts))
        return number

    def _name(self) -> None:
        """Move the counts by the codes of one vocabulary to `routes` and `queues`, by name.

        RabbitMQ's `/management` is no queue, and requests to it are no routes.
        """
        flow: RouteCounter
        words, vhosts = self.words, list(self.vhosts)
        mask = (1 << _NAME_BITS) - 1
        for key, flow in self.flows.drain():
            exchange = words.exchange.text((key >> _NAME_BITS & mask) - 1)
            routing_key = words.routing_key.text((key & mask) - 1)
            if exchange is None and routing_key == MANAGEMENT_NODE:
                continue
            self.routes.add((vhosts[key >> 2 * _NAME_BITS], exchange, routing_key), flow.facts())
        for key, flow in self.by_queue.drain():
            queue = words.queue.text(key & mask)
            if queue != MANAGEMENT_NODE:
                self.queues.add((vhosts[key >> _NAME_BITS], queue), flow.facts())

    def end(self, connection: Connection, session: Any) -> None:
        """A connection is over, before the tracker forgets its session."""
        volume: ConnectionCounters = connection.volume
        if volume is None or volume.frames == 0:
            return
        self.ended += 1
        closed_by = connection.conversation.ended if session is None else session.closed_by
        met = session is not None and session.newest is not None
        self.unclean += met and closed_by in UNCLEAN and not session.only_looked
        octets = session.handshake_json("connection.start-ok") if session is not None else None
        if octets is not None:
            self.said[octets] = self.said.get(octets, 0) + 1
            if len(self.said) > MAX_SAID:
                self._read_clients()
        place = (volume.client_bytes + volume.server_bytes, -self.ended)
        entry = (place, volume, connection, session)
        if len(self.kept) < self.most:
            heappush(self.kept, entry)
        elif self.kept and place > self.kept[0][0]:
            heappushpop(self.kept, entry)

    def _read_clients(self) -> Any:
        """Count clients by their client properties; kinds beyond the limit count as one."""
        for octets, count in self.said.items():
            properties = read_object(octets).get("client_properties")
            told = properties if isinstance(properties, dict) else {}
            kind = tuple([peer_property(told, name) for name in CLIENT])
            if kind not in self.clients and len(self.clients) >= self.limits.names:
                kind = (None,) * len(CLIENT)
            self.clients[kind] = self.clients.get(kind, 0) + count
        self.said.clear()
        return self.clients

    def rotate(self) -> Any:
        """(routes, queues) since the last call, as `TopCounts`; `facts` does not have them any
        more."""
        self._name()
        taken = (self.routes, self.queues)
        self.routes, self.queues = TopCounts(), TopCounts()
        return taken

    def messages(self) -> Any:
        """The numbers of messages published and delivered."""
        found = [0, 0, 0]
        for way, rate in zip(WAYS, self.rates, strict=True):
            found[way] += 0 if rate is None else rate.facts()[0]
        return found[:2]

    def counts(self) -> Any:
        """Frames by method, as a dict; methods without a frame are left out."""
        self._name_others()
        by_name: dict[Any, Any] = {}
        for name, count in zip(NAMES, self.by_method, strict=True):
            if count:
                by_name[name] = by_name.get(name, 0) + count
        return by_name | self.others

    def facts(self) -> Any:
        """Everything that was counted, as a dict of plain values and of the classes above.

        `frames` and `methods` by name, `statuses` of messages, `sizes` and `rates` by method,
        `routes` as `TopCounts` by virtual host, exchange and routing key, `queues` by virtual
        host and name, `depths` as (messages, consumers, time or `NULL`) by queue, as the broker
        said last: to a client that declared it, or of links (`consume`), `errors` as dicts,
        `clients` by `CLIENT`, `connections` as (`ConnectionCounters`, decoder's connection,
        session), the largest first, `counted`: the number of all of which a frame was counted,
        `unclean`: the number of those with a method that ended without a close and are no health
        check, `whole`: whether
        all channels and all times of those were counted, `span`: the times that `span` gave.
        """
        self._name()
        self._name_others()
        depths: dict[Any, Any] = {}
        vhosts = list(self.vhosts)
        for (vhost, queue), of in self.consumed.items():
            depths[vhosts[vhost], queue] = of[2], of[1], of[3]
        for (vhost, queue), (octets, ts_ns) in self.depths.items():
            named = (vhosts[vhost], queue)
            if named in depths and depths[named][2] > ts_ns:  # a flow told it later
                continue
            found = _DEPTH.search(octets)
            if found is not None:
                depths[named] = int(found[1]), int(found[2]), ts_ns
            else:
                said = read_object(octets)
                depths[named] = said.get("message_count"), said.get("consumer_count"), ts_ns
        by_name: dict[Any, Any] = {}
        for name, count in zip(NAMES, self.by_method, strict=True):
            by_name[name] = by_name.get(name, 0) + count
        methods = by_name | self.others
        return {
            "frames": {name: n for name, n in zip(FRAME_TYPE_NAMES, self.types, strict=True) if n},
            "methods": {name: n for name, n in methods.items() if n},
            "statuses": {name: n for name, n in zip(STATUS_NAMES, self.statuses, strict=True) if n},
            "sizes": {n: s for n, s in zip(NAMES, self.sizes, strict=True) if s is not None},
            "rates": {n: r for n, r in zip(NAMES, self.rates, strict=True) if r is not None},
            "routes": self.routes,
            "queues": self.queues,
            "depths": depths,
            "errors": list(self.errors.values()),
            "clients": self._read_clients(),
            "connections": [entry[1:] for entry in sorted(self.kept, reverse=True)],
            "counted": self.ended,
            "unclean": self.unclean,
            "whole": self.channel < 0 and not self.bounded,
            "span": (self.from_ns, self.to_ns),
        }
