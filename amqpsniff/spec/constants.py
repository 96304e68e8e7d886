"""Protocol headers, frame types, constants and reply codes.

Where brokers and specifications disagree both values are rows, the specification's first.
"""

from .rows import Row, columns, dialects_of


class ProtocolHeader(Row):
    """One opening of a connection: `octets` are the four after `AMQP`.

    `protocol` is `0-8`, `0-9`, `0-9-1`, `0-10`, `1.0`, `1.0 TLS`, `1.0 SASL` or `OpenAMQ direct`.
    Both sides may send one (a server that refuses answers with its own), and 1.0 several times.
    """

    __slots__ = columns("octets protocol note")
    octets: bytes
    protocol: str
    note: str


PROTOCOL_HEADERS: tuple[ProtocolHeader, ...] = (
    ProtocolHeader(b"\x01\x01\x08\x00", "0-8", "0-8 as its XML numbers it"),
    ProtocolHeader(b"\x01\x01\x09\x01", "0-8", "0-8 as its text numbers it; not 0-9-1"),
    ProtocolHeader(b"\x01\x01\x00\x09", "0-9", "RabbitMQ and LavinMQ answer with 0-9-1 methods"),
    ProtocolHeader(b"\x00\x00\x09\x01", "0-9-1", ""),
    ProtocolHeader(b"\x01\x01\x00\x0a", "0-10", "Qpid; another framing"),
    ProtocolHeader(b"\x00\x01\x00\x00", "1.0", "AMQP layer; another framing"),
    ProtocolHeader(b"\x02\x01\x00\x00", "1.0 TLS", "TLS begins after both headers"),
    ProtocolHeader(b"\x03\x01\x00\x00", "1.0 SASL", "SASL frames, then a second header"),
    ProtocolHeader(b"\x0a\x01\x00\x01", "OpenAMQ direct", "Direct Protocol 0.1; not AMQP"),
)
_HEADERS = {row.octets: row for row in PROTOCOL_HEADERS}


PROTOCOL_HEADER_BYTES = 8
"""Bytes of a protocol header: `AMQP` and four more."""


def protocol_of(octets: bytes) -> ProtocolHeader | None:
    """The protocol of the four bytes after `AMQP`; None if unknown."""
    return _HEADERS.get(bytes(octets))


FIRST_ERROR_CODE = 300
"""Reply codes from here on are errors; 200 is the code of an end without an error."""

FRAME_OVERHEAD_BYTES = 8
"""Bytes of a frame around its payload: type, channel, size, and the byte that ends it."""


class FrameType(Row):
    """One frame type: its byte, its name in the frames table, and the dialects that define it."""

    __slots__ = columns("code name dialects note")
    code: int
    name: str
    dialects: tuple[str, ...]
    note: str


FRAME_TYPES: tuple[FrameType, ...] = (
    FrameType(1, "method", dialects_of("891"), ""),
    FrameType(2, "header", dialects_of("891"), ""),
    FrameType(3, "body", dialects_of("891"), ""),
    FrameType(4, "oob-method", dialects_of("89"), "4 is heartbeat in one place of the 0-9-1 text"),
    FrameType(5, "oob-header", dialects_of("89"), ""),
    FrameType(6, "oob-body", dialects_of("89"), ""),
    FrameType(7, "trace", dialects_of("89"), "to be discarded by who does not handle it"),
    FrameType(8, "heartbeat", dialects_of("891"), ""),
    FrameType(9, "request", dialects_of("9"), "Qpid's corrections of 0-9"),
    FrameType(10, "response", dialects_of("9"), "Qpid's corrections of 0-9"),
)
"""Rows of the bytes 1 to 10 in order; RabbitMQ answers 501 to all but method, header, body and
heartbeat (measured on RabbitMQ 3.10.8)."""


class Constant(Row):
    """One constant of the specifications, under their name."""

    __slots__ = columns("name value dialects note")
    name: str
    value: int
    dialects: tuple[str, ...]
    note: str


CONSTANTS: tuple[Constant, ...] = (
    *(Constant(f"frame-{row.name}", row.code, row.dialects, row.note) for row in FRAME_TYPES),
    Constant("frame-min-size", 4096, dialects_of("891"), ""),
    Constant("frame-min-size", 8192, dialects_of("91"), "RabbitMQ from 4.1"),
    Constant("frame-end", 206, dialects_of("891"), "0xCE"),
)


class ReplyCode(Row):
    """One reply code of `connection.close`, `channel.close`, `basic.return` and `channel.alert`.

    `kind` is `soft` (closes the channel), `hard` (closes the connection) or `success`. `dialects`
    are those whose specification or whose RabbitMQ definition has the code.
    """

    __slots__ = columns("code name kind dialects meaning")
    code: int
    name: str
    kind: str
    dialects: tuple[str, ...]
    meaning: str


# RabbitMQ's definitions add 312, 313, 406 and 505 to 0-8 and bring 312 back to 0-9-1
_REPLY_CODES = """
200 reply-success       success 891 Nothing is wrong: the usual code of an orderly close.
310 not-delivered       soft    89  The message that was asked for is no longer there.
311 content-too-large   soft    891 The content is larger than the broker takes just now.
312 no-route            soft    891 A mandatory message matched no queue.
313 no-consumers        soft    891 An immediate message found no consumer ready.
320 connection-forced   hard    891 An operator or a shutdown closed the connection.
402 invalid-path        hard    891 There is no such virtual host.
403 access-refused      soft    891 Permissions forbid it; hard when a login fails on RabbitMQ.
404 not-found           soft    891 There is no such exchange, queue or other entity.
405 resource-locked     soft    891 Another connection holds the entity exclusively.
406 precondition-failed soft    891 It differs from what exists, or the delivery tag is unknown.
501 frame-error         hard    891 A frame could not be decoded.
502 syntax-error        hard    891 A frame holds an illegal value.
503 command-invalid     hard    891 A method came at a moment when it is not allowed.
504 channel-error       hard    891 A method came on a channel that is not open.
505 unexpected-frame    hard    891 A frame came that does not continue the content.
506 resource-error      hard    891 The broker lacks the resources.
530 not-allowed         hard    891 The broker forbids it: a limit, a duplicate consumer tag.
540 not-implemented     hard    891 The broker does not have what was asked for.
541 internal-error      hard    891 The broker failed.
"""


def _reply_code(line: str) -> ReplyCode:
    code, name, kind, letters, meaning = line.split(maxsplit=4)
    return ReplyCode(int(code), name, kind, dialects_of(letters), meaning)


REPLY_CODES: tuple[ReplyCode, ...] = tuple(map(_reply_code, _REPLY_CODES.strip().splitlines()))
_REPLIES = {row.code: row for row in REPLY_CODES}


def reply_code(code: int) -> ReplyCode | None:
    """The row of a reply code; None if no dialect defines it."""
    return _REPLIES.get(code)
