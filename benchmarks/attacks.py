"""Captures of traffic that costs a reader as much as it can, for the bytes that it takes to send.

An attack is a generator of turns; a turn is what is said next: (connection, sender, bytes), which
`packets` cuts into segments of an Ethernet. What a sender says is coalesced, as TCP does it under
load, so packets are full and there is as little ordinary work beside each frame as there can be.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from attacks_of_layers import FILES, FLOWS, ON_CHANNEL, PACKETS
from talk import CLIENT, SERVER, Connection, frame, long, method, short, write

SEGMENT_BYTES = 1_448
MANY = 100_000
"""Messages or requests that wait while others are settled, or are not."""

WAITING = 30_000
"""Requests and messages that wait where packets are few and far between."""

CHANNELS = 65_535
NAME_BYTES = 16
DEEP = 60
"""Tables within tables; a table of more is not read on by brokers or by us."""


class Attack(NamedTuple):
    """Turns without end, and microseconds from a packet to the next; `made`: they are packets."""

    turns: Callable[[], Turns]
    step_micros: int = 1_000
    made: bool = False


class Hole(NamedTuple):
    """In the place of octets: so many were sent that the capture lacks."""

    octets: int


Said = tuple[Connection, int, bytes | Hole]
Turns = Iterator[Iterable[Said]]


def packets(turns: Iterable[Iterable[Said]]) -> Iterator[list[bytes]]:
    """The packets of each turn."""
    waiting = bytearray()
    last: tuple[Connection, int] | None = None
    begun: set[Connection] = set()
    for turn in turns:
        made: list[bytes] = []
        for connection, sender, octets in turn:
            if last is not None and waiting and last != (connection, sender):
                made.append(last[0].packet(last[1], bytes(waiting)))
                waiting.clear()
            if connection not in begun:
                begun.add(connection)
                made += connection.handshake()
            last = connection, sender
            if isinstance(octets, Hole):
                if waiting:
                    made.append(connection.packet(sender, bytes(waiting)))
                    waiting.clear()
                connection.sent[sender] += octets.octets
                continue
            waiting += octets
            while len(waiting) >= SEGMENT_BYTES:
                made.append(connection.packet(sender, bytes(waiting[:SEGMENT_BYTES])))
                del waiting[:SEGMENT_BYTES]
        yield made
    if last is not None and waiting:
        yield [last[0].packet(last[1], bytes(waiting))]


def make_attack(name: str, octets: int, path: Path) -> Path:
    """Write the attack `name` as a capture of at least so many bytes, unless it is there."""
    if path.exists() and path.stat().st_size >= octets:
        return path
    if name in FILES:
        return FILES[name](path, octets)
    attack = ATTACKS[name]
    turns = attack.turns() if attack.made else packets(attack.turns())
    return write(path, turns, octets, attack.step_micros)


# what is said


def tag(number: int, flags: int = 0) -> bytes:
    """A delivery tag and the bits after it."""
    return struct.pack(">QB", number, flags)


def name(number: int, kind: bytes = b"n") -> bytes:
    """A name of its own as a short string."""
    return short(kind + b"%0*d" % (NAME_BYTES - 1, number))


def content(channel: int = 1, body: bytes = b"x", properties: bytes = b"\0\0") -> bytes:
    """A header and a body."""
    header = frame(2, channel, struct.pack(">HHQ", 60, 0, len(body)) + properties)
    return header + (frame(3, channel, body) if body else b"")


def headers(table: bytes) -> bytes:
    """Properties: a table of headers, given by its names and values."""
    return b"\x20\0" + long(table)


def publish(
    key: bytes = short(b"k"), exchange: bytes = short(b"e"), flags: int = 0, channel: int = 1
) -> bytes:
    return method(channel, 60, 40, b"\0\0" + exchange + key + bytes([flags]))


def deliver(
    number: int, consumer: bytes = short(b"tag"), redelivered: int = 0, channel: int = 1
) -> bytes:
    route = short(b"e") + short(b"k")
    return method(channel, 60, 60, consumer + tag(number, redelivered) + route)


def ack(number: int, multiple: int = 0, channel: int = 1) -> bytes:
    return method(channel, 60, 80, tag(number, multiple))


def declare(queue: bytes, channel: int = 1) -> bytes:
    return method(channel, 50, 10, b"\0\0" + queue + b"\0" + long(b""))


def declared(queue: bytes, channel: int = 1) -> bytes:
    return method(channel, 50, 11, queue + bytes(8))


def bind(queue: bytes, exchange: bytes, key: bytes) -> bytes:
    return method(1, 50, 20, b"\0\0" + queue + exchange + key + b"\0" + long(b""))


def consume(queue: bytes, consumer: bytes, channel: int = 1) -> bytes:
    return method(channel, 60, 20, b"\0\0" + queue + consumer + b"\0" + long(b""))


def opened(number: int = 1, channel_max: int = 2047, properties: bytes = b"") -> Iterator[Said]:
    """A connection from its login on, with channel 1."""
    connection = Connection(number)
    for sender, octets in connection.login(channel_max, properties):
        yield connection, sender, octets
    yield from open_channel(connection, 1)


def open_channel(connection: Connection, channel: int) -> Iterator[Said]:
    yield connection, CLIENT, method(channel, 20, 10, b"\0")
    yield connection, SERVER, method(channel, 20, 11, long(b""))


def close_channel(connection: Connection, channel: int, sender: int = CLIENT) -> Iterator[Said]:
    yield connection, sender, method(channel, 20, 40, struct.pack(">H", 200) + bytes(5))
    yield connection, 1 - sender, method(channel, 20, 41)


CONFIRM = ((CLIENT, method(1, 85, 10, b"\0")), (SERVER, method(1, 85, 11)))
SELECT = ((CLIENT, method(1, 90, 10)), (SERVER, method(1, 90, 11)))
CONSUME = (
    (CLIENT, consume(short(b"work"), short(b"tag"))),
    (SERVER, method(1, 60, 21, short(b"tag"))),
)


def begun(*before: tuple[tuple[int, bytes], ...]) -> tuple[Connection, list[Said]]:
    """A connection with channel 1 and what is asked for first on it."""
    first = list(opened())
    connection = first[0][0]
    first += [(connection, *one) for some in before for one in some]
    return connection, first


def said(
    make: Callable[[int], Iterable[tuple[int, bytes]]],
    *before: tuple[tuple[int, bytes], ...],
) -> Callable[[], Turns]:
    """Turns without end on channel 1: what `make` gives for each number."""

    def turns() -> Turns:
        connection, first = begun(*before)
        yield first
        for number in count(1):
            yield [(connection, sender, octets) for sender, octets in make(number)]

    return turns


def waiting(
    first: Callable[[int], tuple[int, bytes]],
    then: Callable[[int], Iterable[tuple[int, bytes]]],
    *before: tuple[tuple[int, bytes], ...],
    number: int = MANY,
) -> Callable[[], Turns]:
    """As `said`, after `number` of what waits."""

    def turns() -> Turns:
        connection, begin = begun(*before)
        yield begin
        for at in range(1, number + 1):
            yield [(connection, *first(at))]
        for at in count(1):
            yield [(connection, sender, octets) for sender, octets in then(at)]

    return turns


def delivered(number: int) -> tuple[int, bytes]:
    return SERVER, deliver(number) + content()


def published(number: int) -> tuple[int, bytes]:
    return CLIENT, publish() + content()


def asked(number: int) -> tuple[int, bytes]:
    return CLIENT, declare(name(number))


def of_client(make: Callable[[int], bytes]) -> Callable[[int], list[tuple[int, bytes]]]:
    """Only the client speaks."""
    return lambda number: [(CLIENT, make(number))]


def of_server(make: Callable[[int], bytes]) -> Callable[[int], list[tuple[int, bytes]]]:
    """Only the server speaks."""
    return lambda number: [(SERVER, make(number))]


# attacks that are more than frames on one channel


def channels(each: Callable[[int], Iterable[tuple[int, bytes]]], *, close: bool = False) -> Turns:
    """As many channels as a connection can have; then the next connection."""
    for number in count(1):
        first = list(opened(number, channel_max=0))
        connection = first[0][0]
        yield first
        for channel in range(2, CHANNELS + 1):
            turn = list(open_channel(connection, channel))
            turn += [(connection, *one) for one in each(channel)]
            yield [*turn, *(close_channel(connection, channel) if close else ())]


def consumers_of_channels(channel: int) -> Iterator[tuple[int, bytes]]:
    """A queue, a consumer and a message of its own on each channel."""
    queue = name(channel, b"q")
    yield CLIENT, declare(queue, channel)
    yield SERVER, declared(queue, channel)
    yield CLIENT, consume(queue, name(channel, b"c"), channel)
    yield SERVER, method(channel, 60, 21, name(channel, b"c"))
    yield CLIENT, publish(name(channel, b"k"), channel=channel) + content(channel)
    yield SERVER, deliver(1, name(channel, b"c"), channel=channel) + content(channel)


def after_channels(
    number: int,
    each: Callable[[int], Iterable[tuple[int, bytes]]],
    then: Callable[[int], Iterable[tuple[int, bytes | Hole]]],
) -> Callable[[], Turns]:
    """A connection with so many channels, and then something else without end."""

    def turns() -> Turns:
        first = list(opened(channel_max=0))
        connection = first[0][0]
        yield first
        for channel in range(2, number + 1):
            yield [
                *open_channel(connection, channel),
                *((connection, *one) for one in each(channel)),
            ]
        for at in count(1):
            yield [(connection, *one) for one in then(at)]

    return turns


def held(channel: int) -> Iterator[tuple[int, bytes]]:
    """A consumer with a delivery on a channel."""
    yield CLIENT, consume(short(b"work"), short(b"tag"), channel)
    yield SERVER, method(channel, 60, 21, short(b"tag"))
    yield SERVER, deliver(1, channel=channel) + content(channel)


def full_consumers() -> Turns:
    """Consumers that hold all they may, cancelled one by one."""
    connection, first = begun()
    yield [*first, (connection, CLIENT, method(1, 60, 10, b"\0\0\0\0\0\1\0"))]
    yield [(connection, SERVER, method(1, 60, 11))]
    for number in range(1, WAITING // 2 + 1):
        yield [(connection, *one) for one in consumers(number)]
    for number in count(1):
        yield [(connection, CLIENT, method(1, 60, 30, name(number, b"c") + b"\0"))]


def refused_in_many_words(channel: int) -> Iterator[tuple[int, bytes]]:
    """The server closes the channel with the longest text, of control characters."""
    words = bytes(1 + (channel + at) % 31 for at in range(255))
    yield SERVER, method(channel, 20, 40, struct.pack(">H", 404) + short(words) + bytes(4))


def channel_churn() -> Turns:
    connection, first = begun()
    yield first
    for _ in count():
        yield [*close_channel(connection, 1), *open_channel(connection, 1)]


def channels_refused() -> Turns:
    """The server closes each channel with a delivery on it, whose tag is settled on the next."""
    connection, first = begun()
    yield first
    for _ in count():
        yield [
            *((connection, *one) for one in CONSUME),
            (connection, *delivered(1)),
            *close_channel(connection, 1, SERVER),
            *open_channel(connection, 1),
            (connection, CLIENT, ack(1)),
        ]


def connections(*, close: bool, speak: bool = True) -> Turns:
    for number in count(1):
        turn = list(opened(number, properties=client_name(number)))
        connection = turn[0][0]
        if not speak:
            turn = turn[:1]
        if close:
            turn.append((connection, CLIENT, method(0, 10, 50, struct.pack(">H", 200) + bytes(5))))
            turn.append((connection, SERVER, method(0, 10, 51)))
        yield turn


def client_name(number: int) -> bytes:
    return short(b"connection_name") + b"S" + long(b"client %012d" % number)


def one_byte() -> Turns:
    """A segment for each byte of the frames."""
    connection, first = begun()
    yield first
    for _ in count():
        octets = publish() + content()
        for at in range(len(octets)):
            yield [(connection, CLIENT, octets[at : at + 1]), (connection, SERVER, Hole(0))]


def interleaved() -> Turns:
    """A content under way on each channel."""
    first = list(opened(channel_max=0))
    connection = first[0][0]
    yield first
    for channel in range(2, CHANNELS + 1):
        yield open_channel(connection, channel)
    header = struct.pack(">HHQH", 60, 0, 1 << 40, 0)
    for channel in range(1, CHANNELS + 1):
        begin = publish(channel=channel) + frame(2, channel, header)
        yield [(connection, CLIENT, begin)]
    for number in count():
        yield [(connection, CLIENT, frame(3, 1 + number % CHANNELS, b"x"))]


def behind_a_hole(octets: Callable[[int], bytes]) -> Callable[[], Turns]:
    """Bytes behind a hole, and then another hole."""

    def turns() -> Turns:
        connection, first = begun()
        yield first
        for number in count():
            yield [
                (connection, CLIENT, publish() + content()),
                (connection, CLIENT, Hole(1000)),
                (connection, CLIENT, octets(number)),
            ]

    return turns


def chains(number: int) -> bytes:
    """Candidates for frames at each place, each of which leads to a few more and then nowhere."""
    link = frame(3, 1, b"\x01\0\x01\0\0\0\x04" + b"\xce")
    return b"\x03\0\x01\0\0\0\x08" + (link * 3 + b"\x01\0\x01\0\0\x10\0") * 200


def noise(number: int) -> bytes:
    return random.Random(number).randbytes(16_000)


def heads(number: int) -> bytes:
    """Heads of frames within each other: what each announces ends with the end of a frame."""
    return (b"\x01\0\x01\0\0\0\x09" + b"\0\x3c\0\x28\0\0" + b"\xce") * 1_000


def wrong(number: int) -> list[tuple[int, bytes]]:
    """Each method wrong in a way of its own."""
    ways = (
        (SERVER, publish()),  # from the wrong side
        (CLIENT, deliver(number)),
        (CLIENT, method(0, 60, 80, tag(1))),  # on the wrong channel
        (CLIENT, method(1, 10, 40, short(b"/") + b"\0\0")),
        (CLIENT, method(1, 60, number % 1000 + 300)),  # there is no such method
        (CLIENT, method(2 + number % 2000, 60, 80, tag(number))),  # on a channel that is not open
        (CLIENT, frame(9, 1, b"garbage")),
        (CLIENT, frame(2, 1, b"\0\x3c\0\0" + bytes(10))),  # a header without a method
        (CLIENT, frame(3, 1, b"x")),
        (CLIENT, method(1, 60, 40, b"\0\0\xff")),  # cut arguments
        (SERVER, method(1, 60, 80, tag(number))),  # a confirm without confirm mode
        (SERVER, deliver(number * 7, name(number))),
        (CLIENT, ack(number * 3 + 1)),
        (CLIENT, frame(8, 1, b"x")),  # a heartbeat on a channel, with bytes
    )
    return [ways[number % len(ways)]]


def wrong_connections() -> Turns:
    for number in count(1):
        turn = list(opened(number, properties=client_name(number)))
        yield [*turn, *((turn[0][0], *one) for at in range(14) for one in wrong(at))]


def nested(kind: bytes) -> bytes:
    """Headers with tables, or arrays, within each other."""
    value = kind + long(b"")
    for _ in range(DEEP):
        value = kind + long((short(b"") if kind == b"F" else b"") + value)
    return headers(short(b"t") + value)


def many_headers(number: int) -> bytes:
    """Headers whose names and values come once."""
    return headers(b"".join(name(number * 100 + at, b"h") + b"I" + bytes(4) for at in range(100)))


def empty_tables(number: int) -> bytes:
    return headers((short(b"") + b"F" + long(b"")) * 200)


def void_fields(number: int) -> bytes:
    return headers(b"\0V" * 2_000)


def death(number: int) -> bytes:
    """Headers of a message that was dead-lettered once more."""
    entry = short(b"queue") + b"S" + long(b"q%d" % number) + short(b"count") + b"l" + bytes(8)
    return headers(short(b"x-death") + b"A" + long(b"F" + long(entry)))


def identified(number: int) -> bytes:
    """A correlation-id and a reply-to of its own."""
    return b"\x06\0" + name(number, b"i") + name(number, b"r")


def message_id(number: int) -> bytes:
    return b"\0\x80" + name(number, b"m")


def sparse(number: int) -> tuple[int, bytes]:
    return SERVER, deliver(number * 1_000) + content()


def acks_shuffled() -> Turns:
    """Deliveries of which each block is acknowledged in an order of its own."""
    connection, first = begun(CONSUME)
    yield first
    tags = list(range(1, MANY + 1))
    random.Random(0).shuffle(tags)
    for block in count():
        for number in range(1, MANY + 1):
            yield [(connection, *delivered(block * MANY + number))]
        for number in tags:
            yield [(connection, CLIENT, ack(block * MANY + number))]


def rolled_back(number: int) -> list[tuple[int, bytes]]:
    return [(CLIENT, ack(number)), (CLIENT, method(1, 90, 30)), (SERVER, method(1, 90, 31))]


def committed(number: int) -> list[tuple[int, bytes]]:
    return [(CLIENT, ack(number)), (CLIENT, method(1, 90, 20)), (SERVER, method(1, 90, 21))]


def recovered(number: int) -> list[tuple[int, bytes]]:
    return [(CLIENT, method(1, 60, 110, b"\x01")), (SERVER, method(1, 60, 111)), delivered(number)]


def call(number: int) -> tuple[int, bytes]:
    """A request by message, with a reply queue of its own."""
    consumer = consume(name(number, b"r"), name(number, b"c"))
    return CLIENT, consumer + publish() + content(properties=identified(number))


def nothing(channel: int) -> Iterable[tuple[int, bytes]]:
    return ()


def consumer_churn(number: int) -> list[tuple[int, bytes]]:
    consumer = name(number, b"c")
    return [
        (CLIENT, consume(short(b"work"), consumer)),
        (SERVER, method(1, 60, 21, consumer)),
        (CLIENT, method(1, 60, 30, consumer + b"\0")),
        (SERVER, method(1, 60, 31, consumer)),
    ]


def consumers(number: int) -> list[tuple[int, bytes]]:
    consumer = name(number, b"c")
    return [
        (CLIENT, consume(name(number, b"q"), consumer)),
        (SERVER, method(1, 60, 21, consumer)),
        (SERVER, deliver(number, consumer) + content()),
    ]


def gets(number: int) -> list[tuple[int, bytes]]:
    return [
        (CLIENT, method(1, 60, 70, b"\0\0" + short(b"q") + b"\0")),
        (SERVER, method(1, 60, 72, b"\0")),
    ]


def returned(number: int) -> tuple[int, bytes]:
    reason = struct.pack(">H", 312) + short(b"NO_ROUTE") + short(b"e")
    return SERVER, method(1, 60, 50, reason + name(number, b"k")) + content()


def returns(number: int) -> list[tuple[int, bytes]]:
    return [(CLIENT, publish(name(number, b"k"), flags=1) + content()), returned(number)]


def requeued(number: int) -> list[tuple[int, bytes]]:
    return [
        (SERVER, deliver(number, redelivered=1) + content()),
        (CLIENT, method(1, 60, 90, tag(number, 1))),
    ]


def flapping(number: int) -> list[tuple[int, bytes]]:
    return [
        (SERVER, method(0, 10, 60, short(b"low on memory"))),
        (CLIENT, publish() + content()),
        (SERVER, method(0, 10, 61)),
    ]


def flow(number: int) -> list[tuple[int, bytes]]:
    return [(SERVER, method(1, 20, 20, b"\0")), (CLIENT, method(1, 20, 21, b"\0"))]


def topology(number: int) -> list[tuple[int, bytes]]:
    """An exchange, a queue and a binding of its own."""
    queue, exchange, key = name(number, b"q"), name(number, b"x"), name(number, b"k")
    kind = exchange + short(b"topic") + b"\0" + long(b"")
    return [
        (CLIENT, method(1, 40, 10, b"\0\0" + kind)),
        (SERVER, method(1, 40, 11)),
        (CLIENT, declare(queue)),
        (SERVER, declared(queue)),
        (CLIENT, bind(queue, exchange, key)),
        (SERVER, method(1, 50, 21)),
    ]


def limited_queues() -> Turns:
    """Connections that each declare 200 of 9,000 queues with a length limit, and publish to them:
    as many as rules remember.
    """
    limit = long(short(b"x-max-length") + b"I" + struct.pack(">i", 1_000_000))
    for number in count(0):
        turn = list(opened(number + 1, properties=client_name(number)))
        connection = turn[0][0]
        for place in range(200 * number, 200 * number + 200):
            queue = name(place % 9_000, b"q")
            declaration = method(1, 50, 10, b"\0\0" + queue + b"\0" + limit)
            turn.append((connection, CLIENT, declaration))
            turn.append((connection, SERVER, declared(queue)))
            turn.append((connection, CLIENT, publish(queue, short(b"")) + content()))
        yield turn


def topic_patterns() -> Turns:
    """45 topic exchanges with 200 bindings each, and 9,000 routing keys, of more than 100 words."""
    for number in count(0):
        turn = list(opened(number + 1, properties=client_name(number)))
        connection, exchange = turn[0][0], name(number % 45, b"x")
        kind = exchange + short(b"topic") + b"\0" + long(b"")
        turn.append((connection, CLIENT, method(1, 40, 10, b"\0\0" + kind)))
        turn.append((connection, SERVER, method(1, 40, 11)))
        for place in range(200 * number, 200 * number + 200):
            last = b"%d" % (place % 9_000)
            pattern = short(b"#.a." * 60 + last)
            turn.append((connection, CLIENT, bind(short(b"work"), exchange, pattern)))
            turn.append((connection, SERVER, method(1, 50, 21)))
            key = short(b"a." * 110 + b"b." + last)
            turn.append((connection, CLIENT, publish(key, exchange) + content()))
        yield turn


def with_properties(make: Callable[[int], bytes]) -> Callable[[], Turns]:
    """Publishes with these properties."""
    return said(of_client(lambda number: publish() + content(properties=make(number))))


HEARTBEAT = frame(8, 0, b"")
HOURS_MICROS = 5_000_000

ATTACKS = {
    # what settles, and does not
    "acks of unknown tags": Attack(
        waiting(delivered, of_client(lambda number: ack((1 << 40) + number)), CONSUME)
    ),
    "acks of tag 0": Attack(waiting(delivered, of_client(lambda number: ack(0)), CONSUME)),
    "acks of settled tags": Attack(
        waiting(delivered, of_client(lambda number: ack(1 + number % MANY, number == 1)), CONSUME)
    ),
    "acks by turns of the tags": Attack(
        waiting(delivered, of_client(lambda number: ack(MANY - number % MANY)), CONSUME)
    ),
    "acks shuffled": Attack(acks_shuffled),
    "multiple acks, sparse tags": Attack(
        waiting(sparse, of_client(lambda number: ack(number * 10, 1)), CONSUME)
    ),
    "multiple acks, tags fall": Attack(
        waiting(
            delivered,
            lambda number: [
                (SERVER, deliver(MANY - number % (MANY // 2)) + content()),
                (CLIENT, ack(number % 100 + 1, 1)),
            ],
            CONSUME,
        )
    ),
    "nacks of unknown tags": Attack(
        waiting(
            delivered,
            of_client(lambda number: method(1, 60, 120, tag((1 << 40) + number, 2))),
            CONSUME,
        )
    ),
    "nothing acknowledged": Attack(said(lambda number: [delivered(number)], CONSUME)),
    "rejected and redelivered": Attack(said(requeued, CONSUME)),
    "consumers unknown": Attack(
        said(of_server(lambda number: deliver(number, name(number)) + content()))
    ),
    "tags skipped": Attack(
        said(of_server(lambda number: deliver(number * 5) + content()), CONSUME)
    ),
    "recover, many outstanding": Attack(waiting(delivered, recovered, CONSUME)),
    "rollback, many outstanding": Attack(waiting(delivered, rolled_back, SELECT, CONSUME)),
    "commit, many outstanding": Attack(waiting(delivered, committed, SELECT, CONSUME)),
    "acks not committed": Attack(
        said(
            lambda number: [delivered(number), (CLIENT, ack(number)), published(number)],
            SELECT,
            CONSUME,
        )
    ),
    "nothing confirmed": Attack(said(lambda number: [published(number)], CONFIRM)),
    "confirms of unknown tags": Attack(
        waiting(published, of_server(lambda number: ack((1 << 40) + number)), CONFIRM)
    ),
    "confirms backwards": Attack(
        waiting(published, of_server(lambda number: ack(MANY - number % MANY)), CONFIRM)
    ),
    "nacked by the broker": Attack(
        waiting(published, of_server(lambda number: method(1, 60, 120, tag(number, 0))), CONFIRM)
    ),
    "returns": Attack(said(returns)),
    "returns backwards": Attack(
        waiting(
            lambda number: (CLIENT, publish(name(number, b"k"), flags=1) + content()),
            lambda number: [returned(MANY - number % MANY)],
        )
    ),
    "returns of nothing": Attack(said(lambda number: [returned(number)])),
    # requests and replies
    "requests never answered": Attack(said(lambda number: [asked(number)])),
    "gets never answered": Attack(
        said(of_client(lambda number: method(1, 60, 70, b"\0\0" + short(b"q") + b"\0")))
    ),
    "replies never asked for": Attack(said(of_server(lambda number: declared(name(number))))),
    "gets of an empty queue": Attack(said(gets)),
    "calls never answered": Attack(said(lambda number: [call(number)])),
    "hours with requests waiting": Attack(
        waiting(asked, of_client(lambda number: HEARTBEAT), number=WAITING), HOURS_MICROS
    ),
    "hours with deliveries waiting": Attack(
        waiting(delivered, of_server(lambda number: HEARTBEAT), CONSUME, number=WAITING),
        HOURS_MICROS,
    ),
    "hours with channels waiting": Attack(
        after_channels(2_047, held, of_server(lambda number: HEARTBEAT)), HOURS_MICROS
    ),
    "hours with calls waiting": Attack(
        waiting(call, of_client(lambda number: HEARTBEAT), number=WAITING), HOURS_MICROS
    ),
    "replies among requests": Attack(
        waiting(asked, lambda number: [(CLIENT, HEARTBEAT), (SERVER, method(1, 60, 11))])
    ),
    "topology of names": Attack(said(topology)),
    "consumer churn": Attack(said(consumer_churn)),
    "consumers without end": Attack(said(consumers)),
    "blocked, unblocked": Attack(said(flapping)),
    "flow": Attack(said(flow)),
    "qos": Attack(said(of_client(lambda number: method(1, 60, 10, bytes(7))))),
    # channels and connections
    "channels": Attack(lambda: channels(nothing)),
    "channels with consumers": Attack(lambda: channels(consumers_of_channels)),
    "channels closed": Attack(lambda: channels(nothing, close=True)),
    "acks, many channels": Attack(after_channels(CHANNELS, nothing, of_client(ack))),
    "holes, many channels": Attack(
        after_channels(
            CHANNELS,
            nothing,
            lambda number: [(CLIENT, publish() + content()), (CLIENT, Hole(100))],
        )
    ),
    "closes, many channels": Attack(
        after_channels(CHANNELS, nothing, of_client(lambda number: method(0, 10, 50, bytes(7))))
    ),
    "consumers full, cancelled": Attack(full_consumers, HOURS_MICROS),
    "channel churn": Attack(channel_churn),
    "channels closed by the server": Attack(channels_refused),
    "channels closed in many words": Attack(lambda: channels(refused_in_many_words)),
    "contents under way": Attack(interleaved),
    "connections open": Attack(lambda: connections(close=False)),
    "connections closed": Attack(lambda: connections(close=True)),
    "protocol headers": Attack(lambda: connections(close=False, speak=False)),
    "findings": Attack(said(wrong, CONSUME)),
    "findings, connections": Attack(wrong_connections),
    # frames
    "heartbeats": Attack(said(of_client(lambda number: HEARTBEAT))),
    "bodies of nothing": Attack(said(of_client(lambda number: publish() + content(body=b"")))),
    "body frames of one byte": Attack(
        said(
            of_client(
                lambda number: (
                    publish()
                    + frame(2, 1, struct.pack(">HHQH", 60, 0, 1000, 0))
                    + frame(3, 1, b"x") * 1000
                )
            )
        )
    ),
    "body frames of nothing": Attack(said(of_client(lambda number: frame(3, 1, b"")))),
    "frames of other types": Attack(said(of_client(lambda number: frame(9, 1, b"")))),
    "methods unknown": Attack(said(of_client(lambda number: method(1, 60, 300 + number % 9999)))),
    "segments of one byte": Attack(one_byte),
    # values
    "tables in tables": Attack(with_properties(lambda number: nested(b"F"))),
    "arrays in arrays": Attack(with_properties(lambda number: nested(b"A"))),
    "empty tables": Attack(with_properties(empty_tables)),
    "fields without a value": Attack(with_properties(void_fields)),
    "headers of many names": Attack(with_properties(many_headers)),
    "long strings": Attack(
        with_properties(lambda number: headers(short(b"s") + b"S" + long(b"\x01\xff" * 30_000)))
    ),
    "dead letters": Attack(with_properties(death)),
    "message ids": Attack(with_properties(message_id)),
    "the same again": Attack(with_properties(lambda number: message_id(number % 2))),
    "queues with a limit": Attack(limited_queues),
    "bindings of many words": Attack(topic_patterns),
    "routing keys": Attack(said(of_client(lambda number: publish(name(number)) + content()))),
    "exchanges": Attack(said(of_client(lambda number: publish(exchange=name(number)) + content()))),
    "arguments in tables": Attack(
        said(
            of_client(
                lambda number: method(1, 50, 10, b"\0\0" + name(number) + b"\0" + nested(b"F")[2:])
            )
        )
    ),
    # damage
    "chains of candidates": Attack(behind_a_hole(chains)),
    "heads of frames": Attack(behind_a_hole(heads)),
    "noise behind holes": Attack(behind_a_hole(noise)),
    # other protocols and layers
    **{name: Attack(turns) for name, turns in FLOWS.items()},
    **{name: Attack(said(make)) for name, make in ON_CHANNEL.items()},
    **{name: Attack(turns, made=True) for name, turns in PACKETS.items()},
    **dict.fromkeys(FILES),
}
"""By what there is much of."""
