"""Changes in newer versions of RabbitMQ that concern the traffic of a capture.

The changes are rows of `amqpsniff.spec.version_changes`; this module finds their uses in rows of
the tables. Uses that the capture does not show (queues declared before, clients that did not
connect) are unknown. A use that a broker with the change accepted does not count as refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from amqpsniff.analysis.counting import is_one_of
from amqpsniff.decode.json_objects import read_object
from amqpsniff.errors import UsageError
from amqpsniff.spec import DELIVERIES, PUBLISHES, given_name
from amqpsniff.spec.amqp10 import MANAGEMENT_NODE
from amqpsniff.spec.version_changes import EFFECTS, VERSION_CHANGES, VERSIONS, VersionChange
from amqpsniff.tables.values import rows_of

MAX_MESSAGE_BYTES = 16 << 20
"""The largest body that RabbitMQ takes since 4.0."""

MIN_FRAME_MAX = 8_192
"""The smallest frame_max that RabbitMQ takes since 4.1."""

DELIVERY_LIMIT = 20
"""Returns after which quorum queues drop a message, since 4.0."""

CONSUMER_TIMEOUT_NS = 30 * 60 * 1_000_000_000
"""RabbitMQ's default time for an acknowledgement."""

MAX_USES = 10_000
"""Uses of changed features that are kept, by connection; more are counted only."""

FRAME_COLUMNS = (
    "packet_number", "connection_id", "frame_type", "method", "arguments", "response_packet_number",
)  # fmt: skip
MESSAGE_COLUMNS = (
    "packet_number", "connection_id", "method", "exchange", "routing_key", "queue", "mandatory",
    "headers", "body_size", "outcome", "outcome_ns",
)  # fmt: skip
CONNECTION_COLUMNS = (
    "connection_id", "client", "protocol", "midstream", "vhost", "user", "connection_name",
    "client_product", "client_version", "server_product", "server_version", "frame_max",
    "first_packet_number",
)  # fmt: skip
COLUMNS = {
    "frames": FRAME_COLUMNS,
    "messages": MESSAGE_COLUMNS,
    "connections": CONNECTION_COLUMNS,
}
"""Columns by table that are needed."""

Row = Mapping[str, Any]
Use = tuple[str, str]
"""The code of a change, and the thing it is about (`queue jobs`)."""


@dataclass(frozen=True)
class Affected:
    """A use, by one client, of a feature that a newer version changes.

    Attributes:
        code, version, effect, what, advice, source, measured: Of the change, see
            `amqpsniff.spec.version_changes`; `version` is text (`4.1`).
        client: Name of the client, else its product and version, else its host.
        user, vhost: Of its login; None if that was not captured.
        thing: Its object (`queue jobs`, `exchange orders`); empty for the connection itself.
        count: Number of uses, over all connections of the client.
        packet_number: Packet of the first use.
    """

    code: str
    version: str
    effect: str
    client: str
    user: str | None
    vhost: str | None
    thing: str
    count: int
    packet_number: int
    what: str
    advice: str
    source: str
    measured: tuple[str, ...]


@dataclass(frozen=True)
class Readiness:
    """The changes in a version of RabbitMQ that concern the captured traffic.

    Attributes:
        version: The version, as text (`4.3`).
        affected: Refused uses first, then ignored, then changed ones; by client and thing.
        connections, midstream: Numbers of connections, and of those that began before the capture:
            their declarations and handshakes are unknown.
        forgotten: Uses beyond `MAX_USES`, which are missing.
    """

    version: str
    affected: list[Affected]
    connections: int
    midstream: int
    forgotten: int


def target_version(target: str) -> tuple[int, int]:
    """Parse a version (`rabbitmq-4.3`, `4.3`, `rabbitmq-4.3.6`).

    Raises UsageError for an unknown one.
    """
    match = re.fullmatch(r"(?:rabbitmq-)?(\d+)\.(\d+)(?:\.\d+)?", target.strip().lower())
    version = tuple(map(int, match.groups())) if match else None
    if version not in VERSIONS:
        names = ", ".join(f"rabbitmq-{_text(supported)}" for supported in VERSIONS)
        raise UsageError(f"nothing is known of {target!r}; {names} are")
    return version


class Review:
    """Looks for uses of features that a version changes, in batches of the tables of `COLUMNS`.

    Args:
        version: As returned by `target_version`.
    """

    def __init__(self, version: tuple[int, int]) -> None:
        self._version = version
        self._uses: dict[tuple[str, Use, bool], list[int]] = {}
        self._clients: dict[str, Row] = {}
        self._midstream = 0
        self._forgotten = 0

    def add(self, table: str, batch: Any) -> None:
        """Learn from a batch; those of other tables are skipped."""
        if table == "frames":
            for row in rows_of(batch.filter(is_one_of(batch.column("method"), METHODS))):
                for use in _METHODS[row["method"]](read_object(row["arguments"])):
                    self._note(row, use)
        elif table == "messages":
            import pyarrow.compute as pc

            for code, condition in _MESSAGES.items():
                for row in rows_of(batch.filter(condition(pc, batch))):
                    if (thing := _subject(code, row)) is not None:
                        self._note(row, (code, thing))
        elif table == "connections":
            for row in rows_of(batch):
                self._connection(row)

    def _connection(self, row: Row) -> None:
        self._clients[row["connection_id"]] = row
        self._midstream += bool(row["midstream"])
        if row["protocol"] == "0-8":
            self._note({**row, "packet_number": row["first_packet_number"]}, ("dialect-0-8", ""))

    def _note(self, row: Row, use: Use) -> None:
        key = row["connection_id"], use, _taken(row)
        counted = self._uses.get(key)
        if counted is not None:
            counted[0] += 1
            counted[1] = min(counted[1], row["packet_number"])
        elif len(self._uses) < MAX_USES:
            self._uses[key] = [1, row["packet_number"]]
        else:
            self._forgotten += 1

    def result(self) -> Readiness:
        """The changes that concern the batches so far."""
        changes = {
            change.code: change for change in VERSION_CHANGES if change.version <= self._version
        }
        counted: dict[tuple[Any, ...], list[int]] = {}
        for (connection, (code, thing), taken), (count, packet_number) in self._uses.items():
            change, facts = changes.get(code), self._clients.get(connection, {})
            if change is None or (
                taken and change.effect == "refused" and change.version <= _broker_version(facts)
            ):
                continue
            key = (code, *_client(facts), thing)
            total = counted.setdefault(key, [0, packet_number])
            total[0] += count
            total[1] = min(total[1], packet_number)
        affected = [
            _affected(changes[code], (client, user, vhost, thing), *numbers)
            for (code, client, user, vhost, thing), numbers in counted.items()
        ]
        affected.sort(key=_order)
        number = len(self._clients)
        return Readiness(_text(self._version), affected, number, self._midstream, self._forgotten)


def _client(connection: Row) -> tuple[str, str | None, str | None]:
    """The name of a connection's client, its user and its virtual host."""
    get = connection.get
    product = " ".join(filter(None, (get("client_product"), get("client_version"))))
    host = (get("client") or "unknown").rpartition(":")[0]
    name = given_name(get("connection_name"), product, host) or "unknown"
    return name, get("user"), get("vhost")


def _broker_version(connection: Row) -> tuple[int, ...]:
    """Major and minor version of a connection's RabbitMQ; empty if unknown."""
    found = re.match(r"(\d+)\.(\d+)", connection.get("server_version") or "")
    if found is None or connection["server_product"] != "RabbitMQ":
        return ()
    return tuple(map(int, found.groups()))


def _taken(row: Row) -> bool:
    """True if the broker answered a request, or confirmed a message."""
    return row.get("response_packet_number") is not None or row.get("outcome") == "confirmed"


def _affected(change: VersionChange, subject: tuple[Any, ...], count: int, packet: int) -> Affected:
    client, user, vhost, thing = subject
    return Affected(
        change.code, _text(change.version), change.effect, client, user, vhost, thing, count,
        packet, change.what, change.advice, change.source, change.measured,
    )  # fmt: skip


def _order(affected: Affected) -> tuple[Any, ...]:
    codes = [change.code for change in VERSION_CHANGES]
    return (
        EFFECTS.index(affected.effect),
        codes.index(affected.code),
        affected.packet_number,
        affected.thing,
    )


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


# methods


def _queue_declared(arguments: Row) -> Iterator[Use]:
    if arguments.get("passive"):
        return
    thing = f"queue {arguments.get('queue') or '(named by the broker)'}"
    table = arguments.get("arguments") or {}
    kind = table.get("x-queue-type", "classic")
    if arguments.get("durable") is False and arguments.get("exclusive") is False:
        yield "transient-queue", thing
    if table.get("x-queue-version") == 1:
        yield "queue-version", thing
    if "x-queue-mode" in table:
        yield "queue-mode", thing
    if "x-queue-master-locator" in table:
        yield "queue-master-locator", thing
    if "x-ha-policy" in table and kind == "classic":
        yield "mirrored-queue", thing
    if "x-consumer-timeout" in table:
        yield f"consumer-timeout{'' if kind == 'quorum' else '-argument'}", thing


def _exchange_declared(arguments: Row) -> Iterator[Use]:
    if arguments.get("type") == "x-delayed-message" and not arguments.get("passive"):
        yield "delayed-exchange", f"exchange {arguments.get('exchange')}"


def _prefetch_set(arguments: Row) -> Iterator[Use]:
    if arguments.get("global") and arguments.get("prefetch_count"):
        yield "global-prefetch", ""


def _tuned(arguments: Row) -> Iterator[Use]:
    if 0 < (arguments.get("frame_max") or 0) < MIN_FRAME_MAX:
        yield "frame-max", ""


def _attached(arguments: Row) -> Iterator[Use]:
    """An attach: the broker's own repeats the address in the other terminus."""
    terminus = arguments.get("source" if arguments.get("role") else "target") or {}
    address = terminus.get("address")
    if isinstance(address, str) and address and not address.startswith(_ADDRESSES):
        yield "address-version", f"address {address}"


_ADDRESSES = ("/queues/", "/exchanges/", MANAGEMENT_NODE)
"""Beginnings of RabbitMQ's addresses of version 2, and its node for management."""

_METHODS: dict[str, Callable[[Row], Iterator[Use]]] = {
    "exchange.declare": _exchange_declared,
    "queue.declare": _queue_declared,
    "basic.qos": _prefetch_set,
    "connection.tune-ok": _tuned,
    "attach": _attached,
}
METHODS = frozenset(_METHODS)


# messages


def _sent(batch: Any) -> Any:
    return is_one_of(batch.column("method"), PUBLISHES)


def _received(batch: Any) -> Any:
    return is_one_of(batch.column("method"), DELIVERIES)


def _has_header(pc: Any, batch: Any, name: str) -> Any:
    return pc.match_substring(batch.column("headers"), f'"{name}":')


_MESSAGES: dict[str, Callable[[Any, Any], Any]] = {
    "message-size": lambda pc, batch: pc.and_(
        _sent(batch), pc.greater(batch.column("body_size"), MAX_MESSAGE_BYTES)
    ),
    "x-death-published": lambda pc, batch: pc.and_(_sent(batch), _has_header(pc, batch, "x-death")),
    "delivery-limit": lambda pc, batch: pc.and_(
        _received(batch), _has_header(pc, batch, "x-delivery-count")
    ),
    "reply-to-mandatory": lambda pc, batch: pc.and_(
        _sent(batch), pc.equal(batch.column("mandatory"), True)
    ),
    "consumer-timeout": lambda pc, batch: pc.and_(
        _received(batch), pc.greater_equal(batch.column("outcome_ns"), CONSUMER_TIMEOUT_NS)
    ),
}
"""Messages of a batch that a change concerns, by its code; given `pyarrow.compute`."""


def _subject(code: str, row: Row) -> str | None:
    """The thing that a message is about; None if the message is not affected after all."""
    queue = f"queue {row['queue']}" if row["queue"] else ""
    if code == "delivery-limit":
        count = read_object(row["headers"]).get("x-delivery-count")
        return queue if isinstance(count, int) and count >= DELIVERY_LIMIT else None
    if code == "reply-to-mandatory":
        reply = (row["routing_key"] or "").startswith("amq.rabbitmq.reply-to")
        return "" if reply and not row["exchange"] else None
    if code == "consumer-timeout":
        return queue
    return f"exchange {row['exchange'] or '(default)'}"


def review(batches: Iterable[tuple[str, Any]], target: str) -> Readiness:
    """The changes in a version that concern the traffic of (table, batch) pairs; see `Review`.

    Raises UsageError for an unknown version.
    """
    collected = Review(target_version(target))
    for table, batch in batches:
        collected.add(table, batch)
    return collected.result()
