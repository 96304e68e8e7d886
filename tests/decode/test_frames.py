"""Frames of every type, end and size; protocol headers; finding out the dialect."""

from __future__ import annotations

import hashlib
import struct
import tracemalloc

import pytest

from amqpsniff.spec import FRAME_TYPES
from tests import encoder
from tests.decode.feeding import CLIENT, SERVER, Feeder, Talk
from tests.decode.script import OPENING, findings, frames, method, publish, sent
from tests.encoder import HEARTBEAT_FRAME, body, frame, header

NAMES = {row.code: row.name for row in FRAME_TYPES}
USUAL = (1, 2, 3, 8)
UNUSUAL = (4, 5, 6, 7, 9, 10)


@pytest.mark.parametrize(
    "octets",
    [
        b"AM",
        OPENING[:-5],
        OPENING + publish()[:30],
        OPENING + frame(11, 1, b"") + bytes(99),
        OPENING + body(5, b"orphan")[:-4],
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
@pytest.mark.parametrize("missing", [0, 1000])
def test_a_connection_begins_afresh(octets: bytes, missing: int) -> None:
    """However the ones before it ended: their half-streams are used again."""
    alone = Feeder().data(CLIENT, OPENING + HEARTBEAT_FRAME).finish()
    feeder = Feeder()
    feeder.data(CLIENT, octets)
    if missing:
        feeder.gap(CLIENT, missing).gap(SERVER, missing)
    feeder.decoder.close(0)
    feeder.decoder.take()
    feeder.log.take()
    feeder.decoder.open(0, Talk())
    done = feeder.data(CLIENT, OPENING + HEARTBEAT_FRAME).finish()
    assert done.codes == alone.codes
    assert frames(done) == frames(alone)


def test_large_buffers_are_not_kept() -> None:
    begun = OPENING + frame(1, 1, b"\0\x3c\0\x50" + bytes(1_000_000))[:-1]
    feeder = Feeder(*[Talk()] * 20)
    for slot in range(20):
        feeder.data(CLIENT, begun, slot=slot)
    tracemalloc.start()
    try:
        for slot in range(20):
            feeder.decoder.close(slot)
            feeder.decoder.open(slot, Talk())
            feeder.data(CLIENT, begun, slot=slot)
        for slot in range(20):
            feeder.decoder.close(slot)
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [*range(11), 11, 66, 255])
def test_types(kind: int) -> None:
    """A frame of any type is a row; the next one is read."""
    done = sent(frame(kind, 1, b"\0\x3c\0\x50" + bytes(9)) + HEARTBEAT_FRAME)
    codes = done.codes
    first, second = frames(done)
    assert (first["frame_type"], first["channel"], first["size"]) == (
        NAMES.get(kind, f"type-{kind}"),
        1,
        13,
    )
    assert second["frame_type"] == "heartbeat"
    if kind in UNUSUAL:
        assert codes == ["frame-type-unusual"]
    elif kind not in USUAL:
        assert codes == ["frame-type-unknown"]
    assert (first["method"] is not None) is (kind == 1)


@pytest.mark.parametrize(("channel", "payload"), [(1, b""), (0, b"x"), (7, b"xyz")])
def test_malformed_heartbeats(channel: int, payload: bytes) -> None:
    done = sent(frame(8, channel, payload) + HEARTBEAT_FRAME)
    octets = "1 byte" if len(payload) == 1 else f"{len(payload)} bytes"
    assert findings(done) == [("heartbeat-malformed", f"a payload of {octets}, channel {channel}")]


@pytest.mark.parametrize("end", [0, 0xCD, 0xFF])
def test_wrong_end(end: int) -> None:
    """The frame is a row, and those after it are read when they follow where they should."""
    wrong = frame(1, 1, method("channel.open")[7:-1], end)
    done = sent(wrong + method("channel.open", 2) + HEARTBEAT_FRAME * 3)
    assert findings(done) == [
        ("frame-end-wrong", f"0x{end:02x} instead of 0xce at stream offset 8")
    ]
    assert [row["channel"] for row in frames(done)] == [1, 2, 0, 0, 0]


TUNE_OK = method("connection.tune-ok", 0, frame_max=4096)


@pytest.mark.parametrize(("size", "codes"), [(4088, []), (4096, []), (4097, ["frame-too-large"])])
def test_frame_max(size: int, codes: list[str]) -> None:
    """Eight bytes more than the limit are what RabbitMQ lets pass."""
    octets = publish() + header(1, 60, size) + body(1, b"x" * size) + HEARTBEAT_FRAME
    done = sent(TUNE_OK + octets)
    assert done.codes == codes
    rows = frames(done)
    assert [row["frame_type"] for row in rows] == [
        "method",
        "method",
        "header",
        "body",
        "heartbeat",
    ]
    assert rows[3]["size"] == size


@pytest.mark.parametrize("kind", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [2**32 - 1, 2**31, 2**31 - 1])
def test_impossible_sizes(kind: int, size: int) -> None:
    """No memory is set aside for what a size promises, and no row is made of it."""
    opening = bytes([kind, 0, 1]) + size.to_bytes(4, "big")
    done = sent(opening + b"abc" * 30)
    assert frames(done) == []


class Hashed:
    """A SHA-256 that counts the bytes it is given."""

    octets = 0
    whole = staticmethod(hashlib.sha256)

    def __init__(self) -> None:
        self._hash = Hashed.whole()

    def update(self, octets: bytes) -> None:
        Hashed.octets += len(octets)
        self._hash.update(octets)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def test_a_large_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 MB in one frame: seen as it passes, each byte once, and nothing of it kept."""
    octets = bytes(range(256)) * 4096 * 30
    monkeypatch.setattr(hashlib, "sha256", Hashed)
    feeder = Feeder(Talk(), body_sha256=True).data(CLIENT, OPENING)
    feeder.data(CLIENT, publish() + header(1, 60, len(octets)))
    whole = body(1, octets)
    Hashed.octets = 0
    tracemalloc.start()
    try:
        for at in range(0, len(whole), 65_536):
            feeder.data(CLIENT, whole[at : at + 65_536])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    done = feeder.finish()
    assert done.findings == []
    (row,) = done.messages()
    assert row["status"] == "complete"
    assert row["body_sha256"] == Hashed.whole(octets).hexdigest()
    assert Hashed.octets == len(octets)
    assert most < 2_000_000


@pytest.mark.parametrize(
    ("header_bytes", "code"),
    [
        (b"AMQP\x02\x01\0\0", "protocol-not-decoded"),
        (b"AMQP\x01\x01\0\x0a", "protocol-not-decoded"),
        (b"AMQP\x01\x01\x09\x09", "protocol-header-unknown"),
        (b"AMQP\x01\x01\0\x0b", "protocol-header-unknown"),
    ],
)
def test_refused_headers(header_bytes: bytes, code: str) -> None:
    """Both sides' headers are rows, and what follows is not read as frames."""
    feeder = Feeder().data(CLIENT, header_bytes).data(SERVER, OPENING)
    done = feeder.finish()
    assert done.codes == [code, "protocol-version-refused"]
    rows = done.frames()
    assert [(row["frame_type"], row["sender"], row["size"]) for row in rows] == [
        ("protocol-header", "client", 8),
        ("protocol-header", "server", 8),
    ]


@pytest.mark.parametrize("count", range(8))
def test_part_of_a_header(count: int) -> None:
    done = Feeder().data(CLIENT, OPENING[:count]).finish()
    assert done.frames() == []
    assert done.findings == []


@pytest.mark.parametrize(
    ("octets", "protocol"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", "TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"\x10\x27\0\4MQTT\4\2", "MQTT"),
        (b"\x10\xa7\x01\0\4MQTT\4\xc2", "MQTT"),
        (b"CONNECT\naccept-version:1.2\n", "STOMP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/2"),
        (b"PUT / HTTP/1.1\r\n", "HTTP"),
        (b"POST /api HTTP/1.1\r\n", "HTTP"),
        (b"PROXY SCTP 192.0.2.1\r\n", "the PROXY protocol"),
        (b"\r\n\r\n\0\r\nQUIT\n\x11\0\0\0", "the PROXY protocol"),
        (b"PROX", "the PROXY protocol"),
    ],
)
def test_clients_that_speak_something_else(octets: bytes, protocol: str) -> None:
    """They are named by their first bytes, however these came."""
    for size in (len(octets), *range(1, 9)):
        feeder = Feeder()
        for at in range(0, len(octets), size):
            feeder.data(CLIENT, octets[at : at + size])
        done = feeder.data(SERVER, OPENING).finish()
        detail = f"the client's first bytes are those of {protocol}"
        assert findings(done) == [("not-amqp", detail)], size
        assert [row["sender"] for row in done.frames()] == ["server"]


def test_what_is_said_of_an_unknown_protocol() -> None:
    """Its first bytes up to a hole, eight at most."""
    octets = bytes(range(30, 90))
    for size in (1, 3, 7, 16, 60):
        feeder = Feeder().data(SERVER, OPENING)
        for at in range(0, len(octets), size):
            feeder.data(CLIENT, octets[at : at + size])
        detail = f"the client's first bytes are {octets[:8].hex(' ')}"
        assert findings(feeder.finish()) == [("not-amqp", detail)]
    feeder = Feeder().data(SERVER, OPENING, 1).data(CLIENT, octets, 2).data(SERVER, b"x", 3)
    (found,) = feeder.finish().findings
    assert (found.packet_number, found.ts_ns) == (2, 2000)  # where they were said
    feeder = Feeder().data(SERVER, OPENING).data(CLIENT, octets[:5]).gap(CLIENT, 5)
    done = feeder.data(CLIENT, octets[10:]).finish()
    assert findings(done) == [("not-amqp", "the client's first bytes are 1e 1f 20 21 22")]


CLOSE = method("connection.close", 0, "0-8", reply_code=320, reply_text=b"bye")
BLOCKED = method("connection.blocked", 0, reason=b"low")


@pytest.mark.parametrize(
    ("opening", "name"),
    [
        (b"AMQP\x01\x01\x08\x00", "connection.close"),
        (b"AMQP\x01\x01\x09\x01", "connection.close"),
        (b"AMQP\x01\x01\x00\x09", "connection.blocked"),
        (b"AMQP\x00\x00\x09\x01", "connection.blocked"),
    ],
)
def test_dialect_by_header(opening: bytes, name: str) -> None:
    """10/60 means what the header says, whatever its arguments look like."""
    octets = CLOSE if name == "connection.close" else BLOCKED
    done = Feeder().data(CLIENT, opening).data(SERVER, octets).finish()
    assert done.findings == []
    assert done.frames()[-1]["method"] == name


def test_dialect_by_start() -> None:
    """Without the client's header the broker's first method tells."""
    start = method("connection.start", 0, version_major=8, version_minor=0)
    done = Feeder().data(SERVER, start + CLOSE).finish()
    assert [(row["sender"], row["method"]) for row in done.frames()] == [
        ("server", "connection.start"),
        ("server", "connection.close"),
    ]


@pytest.mark.parametrize(
    ("asked", "major", "minor", "protocol"),
    [
        ("0-9-1", 8, 0, "0-8"),
        ("0-9", 8, 0, "0-8"),
        ("0-8", 8, 0, "0-8"),
        ("0-8", 0, 9, "0-9-1"),
        ("0-9", 0, 9, "0-9"),
        ("0-9-1", 0, 9, "0-9-1"),
        ("0-9-1", 0, 10, "0-9-1"),
    ],
)
def test_start_overrules_the_header(asked: str, major: int, minor: int, protocol: str) -> None:
    """The version in connection.start is final, unless the caller says what it is."""
    start = method("connection.start", 0, version_major=major, version_minor=minor)
    close = method("connection.close", 0, protocol, reply_code=320, reply_text=b"bye")
    feeder = Feeder().data(CLIENT, encoder.PROTOCOL_HEADERS[asked]).data(SERVER, start + close)
    assert feeder.decoder.look()[2][0].dialect_name == protocol
    done = feeder.finish()
    assert done.findings == []
    assert done.frames()[-1]["method"] == "connection.close"
    chosen = Feeder(dialect="0-9-1").data(CLIENT, encoder.PROTOCOL_HEADERS[asked])
    frames = chosen.data(SERVER, start + BLOCKED).finish().frames()
    assert frames[-1]["method"] == "connection.blocked"


@pytest.mark.parametrize(
    ("octets", "name"), [(CLOSE, "connection.close"), (BLOCKED, "connection.blocked")]
)
def test_dialect_by_trial(octets: bytes, name: str) -> None:
    """Neither is there: the definition whose arguments fit."""
    done = Feeder().data(SERVER, octets).finish()
    assert done.findings == []
    assert [row["method"] for row in done.frames()] == [name]


@pytest.mark.parametrize(("dialect", "name"), [("0-8", "connection.close"), ("0-9-1", None)])
def test_dialect_by_option(dialect: str, name: str | None) -> None:
    """What the caller says goes before what the header says."""
    opening = encoder.PROTOCOL_HEADERS["0-9-1"]
    done = Feeder(Talk(), dialect=dialect).data(CLIENT, opening).data(SERVER, CLOSE).finish()
    assert done.frames()[-1]["method"] == (name or "connection.blocked")


@pytest.mark.parametrize(
    ("payload", "name", "code"),
    [
        (b"", None, "arguments-truncated"),
        (b"\0\x32\0", None, "arguments-truncated"),
        (b"\0\x32\0\x0a", "queue.declare", "arguments-truncated"),
        (b"\0\x32\0\x0a\0\0\5ab", "queue.declare", "arguments-truncated"),
        (b"\0\x3c\0\x0a" + bytes(7) + b"zz", "basic.qos", "arguments-trailing"),
        (b"\0\x63\0\x0a", "99.10", "method-unknown"),
        (b"\xff\xff\xff\xffabc", "65535.65535", "method-unknown"),
    ],
)
def test_methods_that_do_not_fit(payload: bytes, name: str | None, code: str) -> None:
    done = sent(frame(1, 1, payload) + HEARTBEAT_FRAME)
    assert done.codes == [code]
    first, second = frames(done)
    assert first["method"] == name
    assert second["frame_type"] == "heartbeat"


def test_every_cut_of_arguments() -> None:
    """A frame of fewer bytes shows the arguments that are there."""
    payload = method("queue.declare", queue=b"qq", durable=True)[7:-1]
    for cut in range(4, len(payload)):
        done = sent(frame(1, 1, payload[:cut]) + HEARTBEAT_FRAME)
        assert done.codes == ["arguments-truncated"]
        (first, _) = frames(done)
        assert first["method"] == "queue.declare"
        assert ('"queue":"qq"' in first["arguments"]) is (cut >= 9)
        assert first["queue"] == ("qq" if cut >= 9 else None)


@pytest.mark.parametrize("codes", [(5,), (5, 300), (5, 300, 301, 7)])
def test_what_is_wrong_again_and_again_is_counted(codes: tuple[int, ...]) -> None:
    """On each channel and for each thing that is wrong, from packet 1 to the last one with it."""
    feeder = Feeder(Talk(syn_seen=True)).data(CLIENT, OPENING, 1)
    expected: dict[tuple[str, int], list[int]] = {}
    for number in range(2, 40):
        code, channel = codes[number % len(codes)], 1 + number % 3 // 2
        unknown = frame(1, channel, struct.pack(">HH", 60, code))
        made = frame(code, channel, b"") if code < 10 else unknown
        name = "frame-type-unusual" if code < 10 else "method-unknown"
        expected.setdefault((name, channel), []).append(number)
        feeder.data(CLIENT, made, number)
    found = {
        (one.code, one.channel): (one.count, one.packet_number, one.last_packet_number)
        for one in feeder.finish().findings
    }
    assert found == {key: (len(some), some[0], some[-1]) for key, some in expected.items()}
