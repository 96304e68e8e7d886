"""The topology: exchanges, queues and bindings, publishers and consumers, from rows.

Names are valid in their virtual host only, so everything is kept by virtual host. Connections that
began before the capture have None. A declaration, a binding or a deletion counts if the
broker answered it, or if no answer was requested. Deleted objects are `removed`, and so are their
bindings; deletions by the broker itself, such as of exclusive and auto-delete queues, are not in a
capture. Requests to RabbitMQ's `/management` count as the methods of 0-9-1 that they stand for, and
it is no queue. Memory is bounded: with too many names, rare ones are forgotten.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

from amqpsniff.analysis.counting import SENT, grouped, is_one_of, with_sent_bytes
from amqpsniff.analysis.topology_rows import RouteSums, frames_of
from amqpsniff.decode.json_objects import read_object, table_of
from amqpsniff.decode.method_layout import NAMES
from amqpsniff.session.counts import MAX_NAMES, NO_COUNTS, TopCounts, amounts
from amqpsniff.spec import DELIVERIES, PUBLISHES, given_name, peer_property
from amqpsniff.spec.amqp10 import MANAGEMENT_NODE, virtual_host
from amqpsniff.spec.management import as_method, bindings_in, declared_queue, queue_of
from amqpsniff.tables.values import rows_of


class TopologyLimits(NamedTuple):
    """Bounds on memory.

    Attributes:
        names: Exchanges, queues, bindings and consumers, of each kind.
        connections: Connections whose virtual host and name are kept; later ones have their address
            alone.
        channels: Channels whose last declared queue and prefetch are kept; the oldest are
            forgotten.
    """

    names: int = MAX_NAMES
    connections: int = 50_000
    channels: int = 20_000


MAX_PENDING = 64
"""Declarations of one channel that wait for the row of their reply: a client waits for each."""

FRAME_COLUMNS = (
    "packet_number", "ts_ns", "connection_id", "client", "sender", "channel", "method",
    "arguments", "queue", "response_packet_number", "reply_code",
)  # fmt: skip
MESSAGE_COLUMNS = (
    "ts_ns", "connection_id", "client", "channel", "method", "exchange", "routing_key", "queue",
    "body_size", "body_captured", "status",
)  # fmt: skip
LINK_COLUMNS = (
    "connection_id", "client", "channel", "role", "source", "queue", "sender_settle_mode",
    "refused", "credit_max", "start_ns", "end_ns",
)  # fmt: skip
COLUMNS = {"frames": FRAME_COLUMNS, "messages": MESSAGE_COLUMNS, "links": LINK_COLUMNS}
"""Columns by table that are needed, also to choose rows by connection, channel and time."""

MAX_REMEMBERED = 2_048
"""Characters of arguments that are read once and remembered: 1,024 of them are some megabytes."""


EXCHANGE = ("type", "durable", "auto_delete", "internal", "arguments")
QUEUE = ("durable", "exclusive", "auto_delete", "arguments")
"""Arguments of declarations; those of a passive one mean nothing."""

UNKNOWN = {"": None}
"""Arguments of an unbinding that has only a hash of them: those of no binding."""

NOTHING = (0, 0, 0)
"""No messages: their number, their bytes, how many of them have bytes."""

Facts = dict[str, Any]
Section = tuple[list[Any], Callable[[Any], Facts]]
Name = tuple[str, Any, Any]
"""`exchange` or `queue`, virtual host, name."""

Read = TypeVar("Read")


class Client(NamedTuple):
    """A client: all connections with the same name (or product) from one host."""

    vhost: str | None
    name: str | None
    host: str | None


NO_LOGIN: tuple[str | None, str | None] = (None, None)
"""Virtual host and name of a client of whom nothing is known."""


class Channel:
    """State of a channel: its last queue and its prefetch, which later methods refer to, and the
    declarations that wait for their replies, by the packets of the replies.
    """

    __slots__ = ("asked", "prefetch", "queue")

    def __init__(self) -> None:
        self.queue: str | None = None
        self.prefetch: Any = None
        self.asked: dict[int, str | None] = {}


_client_of = lru_cache(maxsize=1_024)(Client)


@lru_cache(maxsize=1_024)
def _login(vhost: str | None, name: str | None) -> tuple[str | None, str | None]:
    """Both as one object, however many connections have them."""
    return vhost, name


class TopologyResult(TypedDict):
    """The sections of a topology, the most used rows first. None means unknown.

    Attributes:
        captures: Names of the captures.
        exchanges: `vhost`, `exchange`, `declared`, `type`, `durable`, `auto_delete`, `internal`,
            `arguments`, `removed`, `published` messages, their `bytes`.
        queues: `vhost`, `queue`, `declared`, `durable`, `exclusive`, `auto_delete`, `arguments`,
            `server_named`, `removed`, `delivered` messages, their `bytes`.
        bindings: `vhost`, `exchange`, `destination_type` (`queue` or `exchange`), `destination`,
            `routing_key`, `arguments`, `removed`.
        routes: `vhost`, `exchange`, `queue`, `delivered`, `bytes`: what went between the two.
        publishers: `vhost`, `name`, `host`, `exchange`, `routing_keys` (the first `top`),
            `routing_key_count`, `published`, `bytes`.
        consumers: `vhost`, `name`, `host`, `queue`, `consumers` (how many), `prefetch_count` (of
            AMQP 1.0 the most credit that a link had), `no_ack`, `delivered`, `bytes`.
        exchange_count, queue_count, binding_count, route_count, publisher_count, consumer_count:
            Rows of each section, whatever `top` is.
        forgotten: True if there were too many names, so that rare ones are missing.
        doubled_connections: Connections that were captured on both sides of a proxy or of address
            translation: all numbers count them twice.
    """

    captures: list[str]
    exchanges: list[Facts]
    queues: list[Facts]
    bindings: list[Facts]
    routes: list[Facts]
    publishers: list[Facts]
    consumers: list[Facts]
    exchange_count: int
    queue_count: int
    binding_count: int
    route_count: int
    publisher_count: int
    consumer_count: int
    forgotten: bool
    doubled_connections: int


def topology(
    batches: Iterable[tuple[str, Any]], top: int | None = None, captures: Sequence[str] = ()
) -> TopologyResult:
    """The topology that rows show.

    Args:
        batches: (table, record batch) of the tables of `COLUMNS`, with its columns at least,
            strings dictionary encoded or not; others are skipped. Rows of a
            connection are in the order of time. A message counts for the virtual host and the
            client that its connection named in frames before it.
        top: Rows of each section; None for all that were kept.
        captures: Where the rows come from, for the result.
    """
    made = Topology()
    for table, batch in batches:
        made.add(table, batch)
    return made.result(top, captures)


class Topology:
    """Learns the topology from batches of frames and messages, added as they come.

    `doubled` is for the result, and known to who reads the captures.
    """

    def __init__(self, limits: TopologyLimits | None = None) -> None:
        self.limits = limits or TopologyLimits()
        self.exchanges: dict[Any, Facts] = {}
        self.queues: dict[Any, Facts] = {}
        self.bindings: dict[Any, Facts] = {}
        self.consumers: dict[Any, Facts] = {}
        self.published = TopCounts()
        self.keys = TopCounts()
        self.routes = TopCounts()
        self.received = TopCounts()
        self.forgotten = False
        self.doubled = 0
        self._deleted: dict[Name, int] = {}
        self._gone: set[Name] = set()
        self._bound_with: dict[Any, Facts] = {}
        self._hosts: dict[str, Any] = {}
        self._logins: dict[str, tuple[str | None, str | None]] = {}
        self._sums = RouteSums()
        self._numbers: dict[Client, int] = {}
        self._channels: OrderedDict[tuple[str, int], Channel] = OrderedDict()

    def add(self, table: str, batch: Any) -> None:
        """Learn from a batch of a table of `COLUMNS`; those of other tables are skipped."""
        if table == "frames":
            self.add_frames(batch)
        elif table == "messages":
            self.add_messages(batch)
        elif table == "links":
            self.add_links(rows_of(batch))

    def add_records(self, records: dict[str, list[Facts]]) -> None:
        """Learn from rows of links of AMQP 1.0."""
        self.add_links(records["links"])

    def add_links(self, rows: Iterable[Facts]) -> None:
        """Learn from rows of the links table: the client consumes where it receives."""
        for row in rows:
            if row["source"] == MANAGEMENT_NODE:
                continue
            if row["role"] == "receiver" and row["source"] and not row["refused"]:
                settled = SETTLED.get(row["sender_settle_mode"])
                self._consume(row, row["queue"], row["credit_max"], settled)

    def add_rows(self, frames: Any, messages: Any, connections: list[Any], *_: Any) -> None:
        """Take a pipeline's rows, without Arrow; `result` has them after `count_rows`."""
        for row in frames_of(frames, _LOOKED_AT, connections):
            METHODS[row["method"]](self, row, _arguments(row["arguments"]))
        if messages.rows:
            clients = (self._client(connection, address) for connection, address, _ in connections)
            numbers = [self._numbers.setdefault(one, len(self._numbers)) for one in clients]
            self._sums.add(messages, numbers)

    def count_rows(self) -> None:
        """Count the messages of the rows that were added."""
        clients = list(self._numbers)
        for way, number, exchange, name, counts in self._sums.drain():
            if name is ...:
                tallies = (self.routes, self.received) if way else (self.keys,)
                for tally in tallies:
                    tally.forgotten = True
                if not way:
                    self.published.add((clients[number], exchange), counts)
            elif way:
                self._count_delivered(clients[number], exchange, name, counts)
            else:
                self._count_published(clients[number], exchange, name, counts)
        self.forgotten = self.forgotten or self._sums.forgotten

    def add_frames(self, batch: Any) -> None:
        """Learn from a batch of the frames table."""
        for row in rows_of(batch.filter(_looked_at(batch))):
            METHODS[row["method"]](self, row, _arguments(row["arguments"]))

    def add_messages(self, batch: Any) -> None:
        """Count a batch of the messages table."""
        batch = with_sent_bytes(batch)
        sums = [([], "count_all"), (SENT, "sum"), (SENT, "count")]
        rows = batch.filter(is_one_of(batch.column("method"), PUBLISHES))
        names = ("connection_id", "client", "exchange", "routing_key")
        for connection, address, exchange, key, *sent in grouped(rows, names, sums):
            client = self._client(connection, address)
            self._count_published(client, exchange, key, _counts(sent, NOTHING))
        rows = batch.filter(is_one_of(batch.column("method"), DELIVERIES))
        names = ("connection_id", "client", "exchange", "queue")
        for connection, address, exchange, queue, *sent in grouped(rows, names, sums):
            client = self._client(connection, address)
            self._count_delivered(client, exchange, queue, _counts(NOTHING, sent))

    def add_counts(self, batch: Any) -> None:
        """Count messages that were counted already by `method`, ends and names.

        Columns: `messages`, `bytes` (their sum) and `sized` (how many of them have a size). They
        are summed up by client before Python sees them: there may be a million.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        ids, addresses = (
            batch.column(name).dictionary_encode(null_encoding="encode")
            for name in ("connection_id", "client")
        )
        width = max(1, len(addresses.dictionary))
        pairs = pc.add(pc.multiply(ids.indices.cast(pa.int64()), width), addresses.indices)
        pairs = pairs.dictionary_encode()
        named, reached = ids.dictionary.to_pylist(), addresses.dictionary.to_pylist()
        clients: dict[Client, int] = {}
        numbers = []
        for pair in pairs.dictionary.to_pylist():
            client = self._client(named[pair // width], reached[pair % width])
            numbers.append(clients.setdefault(client, len(clients)))
        known = list(clients)
        number_of = pc.take(pa.array(numbers, pa.int64()), pairs.indices)
        batch = batch.append_column("number", number_of)
        sums = [("messages", "sum"), ("bytes", "sum"), ("sized", "sum")]
        rows = batch.filter(is_one_of(batch.column("method"), PUBLISHES))
        names = ("number", "exchange", "routing_key")
        for number, exchange, key, *sent in grouped(rows, names, sums):
            self._count_published(known[number], exchange, key, _counts(sent, NOTHING))
        rows = batch.filter(is_one_of(batch.column("method"), DELIVERIES))
        for number, exchange, queue, *sent in grouped(rows, ("number", "exchange", "queue"), sums):
            self._count_delivered(known[number], exchange, queue, _counts(NOTHING, sent))

    def _count_published(self, client: Client, exchange: Any, key: Any, counts: Any) -> None:
        if exchange is None and key == MANAGEMENT_NODE:
            return
        self.published.add((client, exchange), counts)
        self.keys.add((client, exchange, key), counts)

    def _count_delivered(self, client: Client, exchange: Any, queue: Any, counts: Any) -> None:
        if queue == MANAGEMENT_NODE:
            return
        self.routes.add((client.vhost, exchange, queue), counts)
        self.received.add((client, queue), counts)

    # who connects

    def client_name(self, connection: str | None) -> str | None:
        """The name of a connection's client, or its product; None if no frame has one."""
        return self._logins.get(connection or "", NO_LOGIN)[1] or None

    def _client(self, connection: str, address: str | None) -> Client:
        """The client of a connection, by its frames so far."""
        vhost, name = self._logins.get(connection, NO_LOGIN)
        return _client_of(vhost, name, address.rpartition(":")[0] if address else None)

    def _learn(self, row: Facts, vhost: Any = ..., name: Any = ...) -> None:
        """Note the name or the virtual host of a client."""
        connection = row["connection_id"]
        known = self._logins.get(connection)
        if known is None and len(self._logins) >= self.limits.connections:
            self.forgotten = True
            return
        before = known or NO_LOGIN
        self._logins[connection] = _login(
            before[0] if vhost is ... else vhost, before[1] if name is ... else name
        )

    def _logged_in(self, row: Facts, arguments: Facts) -> None:
        _, named = self._logins.get(row["connection_id"], NO_LOGIN)
        if named is None and isinstance(arguments.get("client_properties"), dict):
            self._learn(row, name=_own_name(row["arguments"]))

    def _opened(self, row: Facts, arguments: Facts) -> None:
        self._learn(row, vhost=arguments.get("virtual_host"))

    def _opened_container(self, row: Facts, arguments: Facts) -> None:
        """The client's open of AMQP 1.0 has its name and virtual host; the broker's open has the
        virtual host that it understood."""
        connection = row["connection_id"]
        if row["sender"] != "client":
            said = arguments.get("properties")
            if connection in self._hosts:
                product = peer_property(said, "product") if isinstance(said, dict) else None
                self._learn(row, vhost=virtual_host(self._hosts.pop(connection), product))
            return
        host, name = arguments.get("hostname"), arguments.get("container_id")
        self._learn(row, vhost=virtual_host(host))
        if connection in self._logins:
            self._hosts[connection] = host
        if isinstance(name, str) and given_name(name):
            self._learn(row, name=name)

    def _vhost(self, row: Facts) -> str | None:
        return self._logins.get(row["connection_id"], NO_LOGIN)[0]

    def _opened_channel(self, row: Facts, _: Facts) -> None:
        self._channels.pop((row["connection_id"], row["channel"]), None)

    def _channel(self, row: Facts) -> Channel:
        """The channel of a frame, with its facts so far."""
        key = row["connection_id"], row["channel"]
        known = self._channels.get(key)
        if known is None:
            if len(self._channels) >= self.limits.channels:
                self._channels.popitem(last=False)
            known = self._channels[key] = Channel()
        return known

    # what is there

    def _put(self, where: dict[Any, Facts], key: Any, facts: Facts) -> None:
        if key in where or len(where) < self.limits.names:
            where[key] = facts
        else:
            self.forgotten = True

    def _declared_exchange(self, row: Facts, arguments: Facts) -> None:
        if not _holds(row, arguments):
            return
        key = self._vhost(row), arguments.get("exchange")
        self._gone.discard(("exchange", *key))
        passive = bool(arguments.get("passive"))
        if passive and key in self.exchanges:
            return
        self._put(self.exchanges, key, _said({} if passive else arguments, EXCHANGE))

    def _declared_queue(self, row: Facts, arguments: Facts) -> None:
        if arguments.get("queue"):
            if _holds(row, arguments):
                self._add_queue(row, arguments["queue"], row["arguments"])
        elif row["response_packet_number"] is not None:
            asked = self._channel(row).asked
            if len(asked) < MAX_PENDING:
                asked[row["response_packet_number"]] = row["arguments"]

    def _named_queue(self, row: Facts, arguments: Facts) -> None:
        """The reply to a declaration without a name has the queue's."""
        channel = self._channels.get((row["connection_id"], row["channel"]))
        if channel is None or row["packet_number"] not in channel.asked:
            return
        asked = channel.asked.pop(row["packet_number"])
        if arguments.get("queue"):
            self._add_queue(row, arguments["queue"], asked)

    def _add_queue(self, row: Facts, name: str, asked: str | None) -> None:
        """Note the queue that was declared with the arguments `asked`."""
        self._channel(row).queue = name
        key = self._vhost(row), name
        self._gone.discard(("queue", *key))
        before = self.queues.get(key)
        facts = _queue_facts(asked)
        if before is not None:
            if _arguments(asked).get("passive"):
                return
            if before["server_named"]:
                facts = facts | {"server_named": True}
        self._put(self.queues, key, facts)

    def _queue(self, row: Facts, arguments: Facts) -> str | None:
        """The queue that a method means: the channel's last one if it has no name."""
        name: str | None = arguments.get("queue") or self._channel(row).queue
        return name

    def _deleted_exchange(self, row: Facts, arguments: Facts) -> None:
        self._delete(row, arguments, ("exchange", self._vhost(row), arguments.get("exchange")))

    def _deleted_queue(self, row: Facts, arguments: Facts) -> None:
        self._delete(row, arguments, ("queue", self._vhost(row), self._queue(row, arguments)))

    def _managed(self, row: Facts, arguments: Facts) -> None:
        """A request to RabbitMQ's management, or an answer with a queue or a list of bindings."""
        management = table_of(arguments, "management")
        vhost = self._vhost(row)
        for path, bound_with in bindings_in(management):
            if len(self._bound_with) < self.limits.names:
                self._bound_with[vhost, path] = bound_with
        queue = queue_of(management)
        if queue is not None:
            known = self.queues.get((vhost, queue["name"]))
            if known is None or known["durable"] is None:
                self._add_queue(row, queue["name"], json.dumps(declared_queue(queue)))
        method, its_arguments = as_method(management) or ("", {})
        if method in METHODS:
            if its_arguments.get("arguments", {}) is None:
                bound_with = self._bound_with.get((vhost, management["path"]), UNKNOWN)
                its_arguments = its_arguments | {"arguments": bound_with}
            METHODS[method](self, row | {"arguments": json.dumps(its_arguments)}, its_arguments)

    def _delete(self, row: Facts, arguments: Facts, name: Name) -> None:
        if not _holds(row, arguments):
            return
        if name in self._deleted or len(self._deleted) < self.limits.names:
            self._deleted[name] = self._deleted.get(name, 0) + 1
            self._gone.add(name)
        else:
            self.forgotten = True

    def _binding(self, row: Facts, arguments: Facts, ends: tuple[Any, ...], bound: bool) -> None:
        if not _holds(row, arguments) and row["method"] != "queue.unbind":
            return
        extra = json.dumps(arguments.get("arguments") or {}, sort_keys=True)
        key = (self._vhost(row), *ends, arguments.get("routing_key"), extra)
        if bound or key in self.bindings:
            self._put(self.bindings, key, {"removed": not bound, "ends": self._ends(key)})

    def _ends(self, binding: Any) -> tuple[int, int]:
        """Deletions so far of the two ends of a binding."""
        vhost, exchange, kind, name = binding[:4]
        ends = ("exchange", vhost, exchange), (kind, vhost, name)
        return self._deleted.get(ends[0], 0), self._deleted.get(ends[1], 0)

    def _bound_queue(self, row: Facts, arguments: Facts, bound: bool = True) -> None:
        ends = arguments.get("exchange"), "queue", self._queue(row, arguments)
        self._binding(row, arguments, ends, bound)

    def _unbound_queue(self, row: Facts, arguments: Facts) -> None:
        self._bound_queue(row, arguments, bound=False)

    def _bound_exchange(self, row: Facts, arguments: Facts, bound: bool = True) -> None:
        ends = arguments.get("source"), "exchange", arguments.get("destination")
        self._binding(row, arguments, ends, bound)

    def _unbound_exchange(self, row: Facts, arguments: Facts) -> None:
        self._bound_exchange(row, arguments, bound=False)

    def _limited(self, row: Facts, arguments: Facts) -> None:
        self._channel(row).prefetch = arguments.get("prefetch_count")

    def _consumed(self, row: Facts, arguments: Facts) -> None:
        if _holds(row, arguments):
            prefetch = self._channel(row).prefetch
            self._consume(row, self._queue(row, arguments), prefetch, arguments.get("no_ack"))

    def _consume(self, row: Facts, queue: str | None, prefetch: Any, no_ack: bool | None) -> None:
        key = self._client(row["connection_id"], row["client"]), queue
        known = self.consumers.get(key)
        if known is None:
            known = {"consumers": 0}
            self._put(self.consumers, key, known)
        known["consumers"] += 1
        known["prefetch_count"] = prefetch
        known["no_ack"] = no_ack

    # what comes out

    def result(self, top: int | None = None, captures: Sequence[str] = ()) -> TopologyResult:
        """The topology so far, `top` rows of each section; None for all that were kept."""
        sections = {
            "exchanges": self._exchanges(),
            "queues": self._queues(),
            "bindings": self._bindings(),
            "routes": self._routes(),
            "publishers": self._publishers(top),
            "consumers": self._consumers(),
        }
        forgotten = self.forgotten or self.published.forgotten or self.routes.forgotten
        counts = {f"{name[:-1]}_count": len(names) for name, (names, _) in sections.items()}
        result = {
            "captures": list(captures),
            **{name: [*map(row, names[:top])] for name, (names, row) in sections.items()},
            **counts,
            "forgotten": forgotten or self.received.forgotten,
            "doubled_connections": self.doubled,
        }
        return cast(TopologyResult, result)

    # each section: names, the most used first, and what makes a row of one

    def _exchanges(self) -> Section:
        published = TopCounts()
        for (client, exchange), counts in self.published.counts.items():
            published.add((client.vhost, exchange), counts)
        named = [(vhost, exchange) for vhost, exchange, _ in self.routes.counts]
        names = dict.fromkeys((*self.exchanges, *published.counts, *named))
        nothing = dict.fromkeys(EXCHANGE)
        count = published.counts.get

        def row(name: Any) -> Facts:
            return (
                {"vhost": name[0], "exchange": name[1], "declared": name in self.exchanges}
                | self.exchanges.get(name, nothing)
                | {"removed": ("exchange", *name) in self._gone}
                | _published(count(name, NO_COUNTS))
            )

        shown = (name for name in names if name[1] is not None or name in published.counts)
        return sorted(shown, key=lambda name: -count(name, NO_COUNTS)[0]), row

    def _queues(self) -> Section:
        delivered = TopCounts()
        for (vhost, _, queue), counts in self.routes.counts.items():
            delivered.add((vhost, queue), counts)
        named = [(client.vhost, queue) for client, queue in self.consumers]
        names = dict.fromkeys((*self.queues, *delivered.counts, *named))
        nothing: Facts = dict.fromkeys((*QUEUE, "server_named"))
        count = delivered.counts.get

        def row(name: Any) -> Facts:
            return (
                {"vhost": name[0], "queue": name[1], "declared": name in self.queues}
                | self.queues.get(name, nothing)
                | {"removed": ("queue", *name) in self._gone}
                | _delivered(count(name, NO_COUNTS))
            )

        return sorted(names, key=lambda name: -count(name, NO_COUNTS)[2]), row

    def _bindings(self) -> Section:
        names = ("vhost", "exchange", "destination_type", "destination", "routing_key")

        def row(key: Any) -> Facts:
            facts = self.bindings[key]
            return (
                dict(zip(names, key, strict=False))
                | {"arguments": json.loads(key[-1])}
                | {"removed": facts["removed"] or facts["ends"] != self._ends(key)}
            )

        return list(self.bindings), row

    def _routes(self) -> Section:
        def row(route: Any) -> Facts:
            (vhost, exchange, queue), counts = route
            return {"vhost": vhost, "exchange": exchange, "queue": queue, **_delivered(counts)}

        return self.routes.top(MAX_NAMES), row

    def _publishers(self, top: int | None) -> Section:
        publishers = self.published.top(MAX_NAMES)
        keys: dict[Any, list[Any]] = {name: [] for name, _ in publishers[:top]}
        for (client, exchange, key), _ in self.keys.top(MAX_NAMES):
            listed = keys.get((client, exchange))
            if listed is not None:
                listed.append(key)

        def row(publisher: Any) -> Facts:
            (client, exchange), counts = publisher
            used = keys[client, exchange]
            return {
                **client._asdict(),
                "exchange": exchange,
                "routing_keys": used[:top],
                "routing_key_count": None if self.keys.forgotten else len(used),
            } | _published(counts)

        return publishers, row

    def _consumers(self) -> Section:
        nothing = {"consumers": 0, "prefetch_count": None, "no_ack": None}
        names = dict.fromkeys((*self.consumers, *self.received.counts))
        count = self.received.counts.get

        def row(name: Any) -> Facts:
            client, queue = name
            return (
                {**client._asdict(), "queue": queue}
                | self.consumers.get(name, nothing)
                | _delivered(count(name, NO_COUNTS))
            )

        return sorted(names, key=lambda name: -count(name, NO_COUNTS)[2]), row


TRANSFER = "transfer"
"""The performative that has requests to RabbitMQ's management and their answers."""

METHODS = {
    "connection.start-ok": Topology._logged_in,
    "connection.open": Topology._opened,
    "open": Topology._opened_container,
    "channel.open": Topology._opened_channel,
    "exchange.declare": Topology._declared_exchange,
    "exchange.delete": Topology._deleted_exchange,
    "queue.declare": Topology._declared_queue,
    "queue.delete": Topology._deleted_queue,
    "queue.declare-ok": Topology._named_queue,
    "queue.bind": Topology._bound_queue,
    "queue.unbind": Topology._unbound_queue,
    "exchange.bind": Topology._bound_exchange,
    "exchange.unbind": Topology._unbound_exchange,
    "basic.qos": Topology._limited,
    "basic.consume": Topology._consumed,
    TRANSFER: Topology._managed,
}
"""Methods of frames that are looked at, and what learns from each."""

_WHEN_ANSWERED = frozenset(
    ("exchange.declare", "exchange.delete", "queue.declare", "queue.delete", "queue.bind",
     "exchange.bind", "exchange.unbind", "basic.consume")
)  # fmt: skip
"""Requests that change nothing unless they were answered or need no answer."""

_LOOKED_AT = bytes(
    (name in METHODS)
    + (name in _WHEN_ANSWERED)
    + 2 * (name == "basic.qos")
    + 3 * (name == TRANSFER)
    for name in NAMES
)

ROUTING = frozenset(METHODS) - {TRANSFER}
"""Methods of which every frame is looked at."""


TABLES = frozenset(("arguments", "client_properties", "management", "properties"))
"""Arguments that are tables."""

SETTLED = {"unsettled": False, "settled": True}
"""`no_ack` by `sender_settle_mode`; mixed says neither."""


def _once(read: Callable[[str | None], Read]) -> Callable[[str | None], Read]:
    """Read short arguments once, those of most methods: they have the arguments of an earlier one.

    The result is shared, and must not be changed.
    """
    read_once = lru_cache(maxsize=1_024)(read)

    def remember(text: str | None) -> Read:
        return read_once(text) if text and len(text) <= MAX_REMEMBERED else read(text)

    return remember


@_once
def _arguments(text: str | None) -> Facts:
    """The arguments of a method; only field tables are dicts, as names are keys."""
    found = read_object(text).items()
    return {name: value for name, value in found if name in TABLES or not isinstance(value, dict)}


@_once
def _own_name(text: str | None) -> str | None:
    """The name that a client gives its connection in start-ok, else its product."""
    properties = _arguments(text)["client_properties"]
    return given_name(*(peer_property(properties, name) for name in ("connection_name", "product")))


@_once
def _queue_facts(text: str | None) -> Facts:
    """The facts of a queue in its declaration; null in a passive one."""
    asked = _arguments(text)
    facts = dict.fromkeys(QUEUE) if asked.get("passive") else _said(asked, QUEUE)
    return facts | {"server_named": asked.get("queue") == ""}


def _looked_at(batch: Any) -> Any:
    """A mask of the frames that are looked at; of transfers, those with an answer or a status."""
    import pyarrow.compute as pc

    methods = batch.column("method")
    transfers = is_one_of(methods, frozenset((TRANSFER,)))
    answers = (batch.column(name) for name in ("response_packet_number", "reply_code"))
    managed = pc.and_(transfers, pc.or_(*map(pc.is_valid, answers)))
    return pc.or_(is_one_of(methods, ROUTING), managed)


def _holds(row: Facts, arguments: Facts) -> bool:
    """True if a request was answered, or needs no answer."""
    return row["response_packet_number"] is not None or bool(arguments.get("no_wait"))


def _said(arguments: Facts, names: tuple[str, ...]) -> Facts:
    return {name: arguments.get(name) for name in names}


def _counts(published: Any, delivered: Any) -> tuple[int, ...]:
    """Counts for a `TopCounts` of (messages, sum of their bytes, how many have bytes) each."""
    (sent, sent_bytes, sized), (came, came_bytes, sized_too) = published, delivered
    return sent, sent_bytes or 0, came, came_bytes or 0, sized, sized_too


def _published(counts: Any) -> Facts:
    published, octets, _, _ = amounts(counts)
    return {"published": published, "bytes": octets}


def _delivered(counts: Any) -> Facts:
    _, _, delivered, octets = amounts(counts)
    return {"delivered": delivered, "bytes": octets}
