"""Conversations with every method and every text, and the captures that they make.

`full` is a conversation of a client with a broker; `texts` are the places of all its texts: short
and long strings, names and strings of field tables. `with_texts` puts other bytes at some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from amqpsniff.spec import METHODS, SIDES, Method, properties_for
from tests import encoder
from tests.encoder import Field
from tests.tcp.wire import Packet, Talk

NOT_UTF8 = b"\xff\xfe\x80"
MILLISECOND = 1_000_000

Place = tuple[Any, ...]
"""Of a text: the number of the frame, and the way to it inside the values of the frame."""


class Said(NamedTuple):
    """A method that a side sends; `values` are its arguments, and `properties` in one mapping."""

    side: str
    row: Method
    values: dict[str, Any]
    channel: int = 1
    body: bytes | None = None
    pause_ms: int = 0


def _text(octets: bytes) -> Field:
    return Field("S", octets)


def _of_table(prefix: bytes) -> list[tuple[bytes, Field]]:
    """A table with texts at every depth."""
    return [
        (b"x-dead-letter-exchange", _text(prefix + b"dlx")),
        (b"x-dead-letter-routing-key", _text(prefix + b"dead")),
        (b"x-queue-type", _text(b"classic")),
        (b"x-expires", Field("I", 60_000)),
        (b"base64", _text(b"aGk=")),
        (b"list", Field("A", [_text(b"one"), Field("F", [(b"name", _text(b"two"))])])),
    ]


def _properties(product: bytes) -> list[tuple[bytes, Field]]:
    return [
        (b"product", _text(product)),
        (b"version", _text(b"1.2.3")),
        (b"platform", _text(b"Python 3.11")),
        (b"connection_name", _text(product + b" connection")),
        (b"capabilities", Field("F", [(b"basic.nack", Field("t", True))])),
    ]


def _headers(queue: bytes) -> list[tuple[bytes, Field]]:
    death = [
        (b"queue", _text(queue)),
        (b"exchange", _text(b"")),
        (b"reason", _text(b"rejected")),
        (b"count", Field("l", 40)),
        (b"original-expiration", _text(b"60000")),
        (b"routing-keys", Field("A", [_text(queue)])),
    ]
    return [
        (b"tenant", _text(b"42")),
        (b"task", _text(b"app.tasks.add")),
        (b"id", _text(b"6852ac01")),
        (b"lang", _text(b"py")),
        (b"CC", Field("A", [_text(b"copy")])),
        (b"compression", _text(b"application/x-gzip")),
        (b"x-death", Field("A", [Field("F", death)])),
    ]


def _basic(prefix: bytes, **more: Any) -> dict[str, Any]:
    """All properties of class basic."""
    return {
        "content_type": b"application/json",
        "content_encoding": b"gzip",
        "headers": _headers(prefix + b"queue"),
        "delivery_mode": 2,
        "priority": 1,
        "correlation_id": prefix + b"correlation",
        "reply_to": prefix + b"replies",
        "expiration": b"60000",
        "message_id": prefix + b"message",
        "timestamp": 1_700_000_000,
        "type": b"order",
        "user_id": b"guest",
        "app_id": b"shop",
        "cluster_id": b"cluster",
        **more,
    }


_EMPTY: dict[str, Any] = {"b": 0, "s": b"", "S": b"", "F": [], "C": (0, b"")}


def methods(dialect: str) -> list[Method]:
    """The methods of a dialect; the first of those that share a name."""
    found: dict[str, Method] = {}
    for row in METHODS:
        if dialect in row.dialects:
            found.setdefault(row.name, row)
    return list(found.values())


def full(dialect: str = "0-9-1", prefix: bytes = b"my.") -> list[Said]:
    """A conversation with everything that clients and brokers say to each other in a dialect."""
    rows = {row.name: row for row in methods(dialect)}
    queue, exchange, key, tag = (prefix + one for one in (b"queue", b"exchange", b"key", b"tag"))
    names = {
        "queue": queue,
        "exchange": exchange,
        "source": exchange,
        "destination": prefix + b"other",
        "routing_key": key,
        "consumer_tag": tag,
        "virtual_host": prefix + b"vhost",
        "client_properties": _properties(b"client"),
        "server_properties": _properties(b"RabbitMQ"),
        "arguments": _of_table(prefix),
        "filter": _of_table(prefix),
        "mechanism": b"PLAIN",
        "mechanisms": b"PLAIN AMQPLAIN",
        "locale": b"en_US",
        "locales": b"en_US",
        "response": b"\0guest\0guest",
        "reason": b"low on memory",
        "reply_text": prefix + b"NOT_FOUND - no exchange",
        "reply_code": 404,
        "type": b"topic",
        "prefetch_count": 10,
        "frame_max": 131_072,
        "channel_max": 2047,
        "delivery_tag": 1,
        "name": exchange,
        "identifier": prefix + b"identifier",
    }
    frames: list[Said] = []

    def say(side: str, name: str, pause_ms: int = 0, **more: Any) -> None:
        row = rows.get(name)
        if row is None:
            return
        properties = more.pop("properties", None)
        body = more.pop("body", None)
        given = names | more
        values = {
            one.name: given.get(one.name, prefix + one.name.encode() if one.type == "s" else None)
            for one in row.arguments
        }
        for one in row.arguments:
            if values[one.name] is None:
                values[one.name] = _EMPTY.get(one.type, 1)
        if row.content:
            body = b"hello" if body is None else body
            known = {one.name for one in properties_for(dialect, row.class_id)}
            given = _basic(prefix, **(properties or {}))
            values["properties"] = {name: given[name] for name in given if name in known}
        channel = 0 if name.startswith("connection.") else 1
        frames.append(Said(side, row, values, channel, body, pause_ms))

    client, server = SIDES
    say(server, "connection.start")
    say(client, "connection.start-ok")
    say(server, "connection.secure")
    say(client, "connection.secure-ok")
    say(server, "connection.tune")
    say(client, "connection.tune-ok")
    say(client, "connection.open")
    say(server, "connection.open-ok")
    say(client, "channel.open")
    say(server, "channel.open-ok")
    say(client, "basic.qos")
    say(server, "basic.qos-ok")
    for name in ("exchange.declare", "exchange.bind", "queue.declare", "queue.bind"):
        for _ in range(2):
            say(client, name)
            say(server, f"{name}-ok")
    say(client, "basic.consume")
    say(server, "basic.consume-ok")
    say(client, "confirm.select")
    say(server, "confirm.select-ok")
    for number in (1, 2):
        say(client, "basic.publish", mandatory=1)
        say(server, "basic.deliver", delivery_tag=number, redelivered=number - 1)
        say(server, "basic.ack", delivery_tag=number)
    say(client, "basic.ack", delivery_tag=1)
    say(client, "basic.reject", delivery_tag=2, requeue=1)
    say(client, "basic.publish", mandatory=1)
    say(server, "basic.return", reply_code=312)
    say(server, "connection.blocked")
    say(client, "basic.publish", pause_ms=900)
    say(server, "connection.unblocked", pause_ms=200)
    say(client, "basic.get")
    say(server, "basic.get-ok", delivery_tag=3)
    say(client, "basic.get")
    say(server, "basic.get-empty")
    last = ("channel.close", "channel.close-ok", "connection.close", "connection.close-ok")
    told = {frame.row.name for frame in frames} | set(last)
    for name, row in rows.items():
        if name not in told:
            say(server if row.sender == "server" else client, name)
    say(server, "basic.cancel")
    say(server, "channel.close")
    say(client, "channel.close-ok")
    say(server, "connection.close", reply_code=320)
    say(client, "connection.close-ok")
    return frames


def texts(frames: Iterable[Said]) -> Iterator[Place]:
    """The places of all texts of a conversation."""
    for number, frame in enumerate(frames):
        for way in _ways(frame.values):
            yield (number, *way)


def _ways(value: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, bytes):
        yield ()
    elif isinstance(value, Field):
        if value.tag in "SAF":
            yield from _ways(value.value)
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from ((name, *way) for way in _ways(one))
    elif isinstance(value, (list, tuple)):
        for place, one in enumerate(value):
            yield from ((place, *way) for way in _ways(one))


def with_texts(frames: list[Said], places: Iterable[Place], octets: bytes) -> list[Said]:
    """The conversation with these bytes in place of the texts at these places."""
    changed = list(frames)
    for number, *way in places:
        values = _put(changed[number].values, tuple(way), octets)
        changed[number] = changed[number]._replace(values=values)
    return changed


def _put(value: Any, way: tuple[Any, ...], octets: bytes) -> Any:
    if isinstance(value, Field):
        return Field(value.tag, _put(value.value, way, octets))
    if not way:
        return octets
    if isinstance(value, Mapping):
        return {**value, way[0]: _put(value[way[0]], way[1:], octets)}
    changed = list(value)
    changed[way[0]] = _put(changed[way[0]], way[1:], octets)
    return type(value)(changed) if isinstance(value, tuple) else changed


def named(place: Place, frames: list[Said]) -> str:
    """A place for a person: `queue.declare arguments 2 0`."""
    return " ".join(map(str, (frames[place[0]].row.name, *place[1:])))


def bytes_of(frame: Said, dialect: str) -> bytes:
    """The frames of a method, with those of its content."""
    values = {name: value for name, value in frame.values.items() if name != "properties"}
    octets = encoder.method(frame.row, values, frame.channel)
    if frame.body is None:
        return octets
    header = encoder.header_payload(
        frame.row.class_id, len(frame.body), frame.values.get("properties"), dialect=dialect
    )
    octets += encoder.frame(encoder.HEADER, frame.channel, header)
    return octets + encoder.body(frame.channel, frame.body)


def packets(
    frames: list[Said], port: int, dialect: str = "0-9-1", began_ms: int = 0
) -> list[Packet]:
    """The packets of a conversation, one a frame or content, of a client's port."""
    start_ns = 1_700_000_000_000_000_000 + began_ms * MILLISECOND
    talk = Talk(ports=(port, 5672), step_ns=MILLISECOND, start_ns=start_ns).hands()
    talk.client(encoder.PROTOCOL_HEADERS[dialect])
    for frame in frames:
        talk.wait(frame.pause_ms * MILLISECOND)
        talk.put(SIDES.index(frame.side), bytes_of(frame, dialect))
    return talk.goodbye().packets
