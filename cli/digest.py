"""What is in a capture, gathered batch by batch in bounded memory.

Arrow counts what every row has; only the rows that say something about a connection (its opening,
its close, an error) are looked at one by one.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from .reading import values
from .tally import Rate, Sizes, Tally

MOST_CONNECTIONS = 10_000
"""Connections whose names and volume are kept; more of them are only counted."""

MOST_ERRORS = 1_000
"""Distinct errors kept; reply texts often name what differs each time."""

FRAME_COLUMNS = (
    "capture", "packet_number", "ts_ns", "connection_id", "client", "server", "sender", "channel",
    "frame_type", "size", "method", "arguments",
)  # fmt: skip
MESSAGE_COLUMNS = (
    "ts_ns", "connection_id", "client", "channel", "method", "exchange", "routing_key", "queue",
    "body_size", "status",
)  # fmt: skip

WAYS_OF = {
    "basic.publish": "published",
    "basic.deliver": "delivered",
    "basic.get-ok": "delivered",
    "stream.publish": "published",
    "stream.deliver": "delivered",
}
"""Which way a message of a method goes."""

ALWAYS_ERRORS = frozenset(("basic.nack", "connection.blocked", "channel.alert"))
"""Methods of a broker that are trouble without a reply code."""

TELLING = frozenset(
    "connection.start connection.start-ok connection.tune connection.tune-ok connection.open "
    "connection.close connection.blocked channel.open channel.close channel.alert basic.return "
    "basic.nack".split()
)
"""Methods that say something about their connection or are an error."""

FRAME_OVERHEAD_OCTETS = 8

_VERSIONS = {(8, 0): "0-8", (0, 8): "0-8", (0, 9): "0-9"}


class Digest:
    """Counts rows of frames and messages.

    Attributes:
        methods, frames, statuses: How often each method, frame type, status of a message was seen.
        connections: By id, what is known of a connection; at most `MOST_CONNECTIONS`.
        errors: By what they say, the errors and how often; at most `MOST_ERRORS`.
        routes, exchanges, queues: Messages by (exchange, routing key), exchange, queue.
        sizes, rates: Of messages, by method.
    """

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.frames: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.connections: dict[str, dict[str, Any]] = {}
        self.errors: dict[tuple[Any, ...], dict[str, Any]] = {}
        self.routes = Tally()
        self.exchanges = Tally()
        self.queues = Tally()
        self.sizes: dict[str, Sizes] = {}
        self.rates: dict[str, Rate] = {}

    def add_frames(self, batch: Any) -> None:
        """Count a batch of the frames table."""
        _count(self.frames, batch.column("frame_type"))
        _count(self.methods, batch.column("method"))
        telling = _telling(batch)
        columns = (values(telling, name) for name in FRAME_COLUMNS)
        for row in zip(*columns, strict=True):
            self._tell(dict(zip(FRAME_COLUMNS, row, strict=True)))
        self._add_volume(batch)

    def add_messages(self, batch: Any) -> None:
        """Count a batch of the messages table."""
        import pyarrow.compute as pc

        _count(self.statuses, batch.column("status"))
        methods = batch.column("method")
        names = methods.dictionary.to_pylist()
        for code in methods.indices.unique().drop_null().to_pylist():
            rows = batch.filter(pc.equal(methods.indices, code))
            self.sizes.setdefault(names[code], Sizes()).add(rows.column("body_size"))
            self.rates.setdefault(names[code], Rate()).add(rows.column("ts_ns"))
            if names[code] in WAYS_OF:
                self._add_names(WAYS_OF[names[code]], rows)

    def _add_names(self, way: str, rows: Any) -> None:
        """Count the exchanges, routing keys and queues of messages that went one way."""
        for exchange, key, messages, octets in _grouped(rows, ("exchange", "routing_key")):
            self.routes.add((exchange, key), way, messages, octets)
            self.exchanges.add(exchange, way, messages, octets)
        if rows.column("queue").null_count < rows.num_rows:
            for queue, messages, octets in _grouped(rows, ("queue",)):
                if queue is not None:
                    self.queues.add(queue, way, messages, octets)

    def _add_volume(self, batch: Any) -> None:
        """Count frames and octets of connections, by sender."""
        import pyarrow as pa

        connections, senders = batch.column("connection_id"), batch.column("sender")
        codes = pa.table(
            {
                "connection": connections.indices,
                "sender": _codes(senders),
                "size": batch.column("size"),
            }
        )
        counted = codes.group_by(["connection", "sender"], use_threads=False).aggregate(
            [("size", "sum"), ([], "count_all")]
        )
        ids = connections.dictionary.to_pylist()
        names = senders.dictionary.to_pylist() if hasattr(senders, "dictionary") else []
        for connection, sender, octets, frames in zip(
            *(counted.column(name).to_pylist() for name in counted.column_names), strict=True
        ):
            known = self.connections.get(ids[connection])
            if known is None:
                known = self._connection(_first_row(batch, connection))
            if known is not None:
                who = names[sender] if sender is not None else "client"
                known["frames"] += frames
                known[f"{who}_octets"] += (octets or 0) + FRAME_OVERHEAD_OCTETS * frames

    def _tell(self, row: dict[str, Any]) -> None:
        """Learn from one row about its connection, and whether it is an error."""
        connection = self._connection(row)
        method = row["method"]
        arguments = json.loads(row["arguments"]) if row["arguments"] else {}
        if connection is not None:
            if row["frame_type"] == "protocol-header":
                connection[f"{row['sender'] or 'client'}_octets"] -= FRAME_OVERHEAD_OCTETS
            learn = _LESSONS.get(method)
            if learn is not None:
                learn(connection, arguments, row)
        code = arguments.get("reply_code")
        refused = method in ALWAYS_ERRORS and row["sender"] == "server"
        if refused or (isinstance(code, int) and code >= 300):
            self._add_error(row, arguments)

    def _connection(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """What is known of a row's connection; null when there are too many to know."""
        known = self.connections.get(row["connection_id"])
        if known is None and len(self.connections) < MOST_CONNECTIONS:
            known = dict.fromkeys(FACTS)
            known |= {name: row[name] for name in ("connection_id", "client", "server")}
            known |= dict.fromkeys(("frames", "client_octets", "server_octets", "channels"), 0)
            self.connections[row["connection_id"]] = known
        return known

    def _add_error(self, row: dict[str, Any], arguments: dict[str, Any]) -> None:
        text = arguments.get("reply_text", arguments.get("reason"))
        key = (row["method"], row["sender"], arguments.get("reply_code"), text)
        if key not in self.errors and len(self.errors) >= MOST_ERRORS:
            key = (row["method"], row["sender"], arguments.get("reply_code"), None)
        error = self.errors.get(key)
        if error is None:
            names = ("method", "sender", "reply_code", "reply_text")
            error = self.errors[key] = dict(zip(names, key, strict=True))
            error |= {"count": 0, "capture": row["capture"], "packet_number": row["packet_number"]}
            error["connection_id"] = row["connection_id"]
        error["count"] += 1


FACTS = (
    "connection_id client server version vhost mechanism client_product client_version "
    "client_platform connection_name server_product server_version channel_max frame_max heartbeat "
    "channels frames client_octets server_octets closed_by close_code close_text"
).split()
"""What may be known of a connection, in this order; null while it is not."""


def _start(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    version = arguments.get("version_major"), arguments.get("version_minor")
    connection["version"] = _VERSIONS.get(version)  # type: ignore[arg-type]
    properties = arguments.get("server_properties", {})
    connection["server_product"] = _text(properties, "product")
    connection["server_version"] = _text(properties, "version")


def _start_ok(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    properties = arguments.get("client_properties", {})
    for name in ("product", "version", "platform"):
        connection[f"client_{name}"] = _text(properties, name)
    connection["connection_name"] = _text(properties, "connection_name")
    connection["mechanism"] = arguments.get("mechanism")


def _tune_ok(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    for name in ("channel_max", "frame_max", "heartbeat"):
        connection[name] = arguments.get(name)


def _open(connection: dict[str, Any], arguments: dict[str, Any], _: Any) -> None:
    connection["vhost"] = arguments.get("virtual_host")


def _channel(connection: dict[str, Any], *_: Any) -> None:
    connection["channels"] += 1


def _close(connection: dict[str, Any], arguments: dict[str, Any], row: dict[str, Any]) -> None:
    connection["closed_by"] = row["sender"]
    connection["close_code"] = arguments.get("reply_code")
    connection["close_text"] = arguments.get("reply_text")


_LESSONS = {
    "connection.start": _start,
    "connection.start-ok": _start_ok,
    "connection.tune-ok": _tune_ok,
    "connection.open": _open,
    "channel.open": _channel,
    "connection.close": _close,
}
"""What a method teaches about its connection."""


def _text(properties: Any, name: str) -> str | None:
    value = properties.get(name) if isinstance(properties, dict) else None
    return value if isinstance(value, str) else None


def _telling(batch: Any) -> Any:
    """The rows that `Digest` looks at one by one."""
    import pyarrow.compute as pc

    chosen = pc.or_kleene(
        _is_one_of(batch.column("method"), TELLING),
        _is_one_of(batch.column("frame_type"), frozenset(("protocol-header",))),
    )
    return batch.filter(chosen)


def _is_one_of(column: Any, names: frozenset[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = getattr(column, "dictionary", None)
    if texts is None:
        return pc.is_in(column, value_set=pa.array(sorted(names)))
    codes = [code for code, text in enumerate(texts.to_pylist()) if text in names]
    return pc.is_in(column.indices, value_set=pa.array(codes, column.indices.type))


def _first_row(batch: Any, connection: int) -> dict[str, Any]:
    """What names a connection, from its first row; `connection` is its code in the batch."""
    import pyarrow.compute as pc

    row = pc.index(batch.column("connection_id").indices, connection).as_py()
    return {name: batch.column(name)[row].as_py() for name in ("connection_id", "client", "server")}


def _codes(column: Any) -> Any:
    return getattr(column, "indices", column)


def _count(counter: Counter[str], column: Any) -> None:
    """Add how often each text of a column is there."""
    texts = getattr(column, "dictionary", None)
    counted = _codes(column).value_counts()
    names = texts.to_pylist() if texts is not None else None
    for value, count in zip(
        counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True
    ):
        if value is not None:
            counter[names[value] if names is not None else value] += count


def _grouped(rows: Any, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The distinct values of columns, each with its messages and octets."""
    import pyarrow as pa

    columns = {name: rows.column(name) for name in (*names, "body_size")}
    counted = (
        pa.table(columns)
        .group_by(list(names), use_threads=False)
        .aggregate([([], "count_all"), ("body_size", "sum")])
    )
    made = (counted.column(name).to_pylist() for name in (*names, "count_all", "body_size_sum"))
    return [(*row[:-1], row[-1] or 0) for row in zip(*made, strict=True)]
