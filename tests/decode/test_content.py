"""Content: methods, headers and bodies become messages, and what breaks the order is found."""

from __future__ import annotations

import datetime
import hashlib
import random
from typing import Any

import pytest

from amqpsniff import Engine
from amqpsniff.decode.contents import MAX_BODY_BYTES, MAX_OPEN_CONTENTS
from tests import encoder
from tests.decode.feeding import CLIENT, SERVER, Decoded, Feeder, Row, Talk
from tests.decode.script import OPENING, findings, method, publish, sent
from tests.encoder import HEARTBEAT_FRAME, Field, body, header

OPTIONS: dict[str, Any] = {"bodies": True, "body_sha256": True}
FLAGS = b"\0\x3c\0\0" + bytes(8)


def one(done: Decoded) -> Row:
    """The only message."""
    (row,) = done.messages()
    return row


@pytest.mark.parametrize(
    "sizes", [(3,), (1, 2), (1, 1, 1), (0, 3), (3, 0), (1, 0, 2), (0, 0, 0, 3)]
)
def test_bodies_in_pieces(sizes: tuple[int, ...]) -> None:
    """An empty frame inside a body changes nothing; after its end it is one too many."""
    octets, at, pieces = b"abc", 0, []
    for size in sizes:
        pieces.append(body(1, octets[at : at + size]))
        at += size
    done = sent(publish() + header(1, 60, 3) + b"".join(pieces), **OPTIONS)
    assert done.codes == (["content-unexpected-frame"] if sizes[-1] == 0 else [])
    row = one(done)
    assert (row["status"], row["body"], row["body_captured"]) == ("complete", b"abc", 3)
    assert row["body_sha256"] == hashlib.sha256(b"abc").hexdigest()


def test_empty_body() -> None:
    done = sent(publish() + header(1, 60, 0), **OPTIONS)
    assert done.findings == []
    row = one(done)
    assert (row["status"], row["body"], row["body_size"]) == ("complete", b"", 0)
    assert row["body_sha256"] == hashlib.sha256(b"").hexdigest()


def test_properties_of_many_kinds_in_turn() -> None:
    """What flags say is remembered for so many of them; others take their places."""
    names = ("content_type", "content_encoding", "reply_to", "expiration", "type", "user_id",
             "app_id", "message_id", "correlation_id")  # fmt: skip
    choose = random.Random(1)
    chosen = [choose.sample(names, choose.randrange(5)) for _ in range(400)] * 2
    given = [{name: f"{name[0]}{i}".encode() for name in some} for i, some in enumerate(chosen)]
    done = sent(*(publish() + header(1, 60, 0, properties=some) for some in given))
    assert done.findings == []
    rows = [{name: row[name] for name in names if row[name] is not None} for row in done.messages()]
    assert rows == [{name: text.decode() for name, text in some.items()} for some in given]


def test_byte_by_byte() -> None:
    octets = publish() + header(1, 60, 300) + body(1, b"y" * 200) + body(1, b"z" * 100)
    whole = sent(octets, **OPTIONS)
    single = sent(*(bytes([octet]) for octet in octets), **OPTIONS)
    assert single.messages() == whole.messages()
    assert single.findings == whole.findings == []


def test_heartbeats_between() -> None:
    pieces = (publish(), header(1, 60, 3), body(1, b"abc"))
    done = sent(HEARTBEAT_FRAME.join(pieces), **OPTIONS)
    assert done.findings == []
    assert one(done)["body"] == b"abc"


def test_many_channels_at_once() -> None:
    """Contents of 64 channels in both directions, their frames in any order between channels."""
    choose = random.Random(7)
    feeder = Feeder(Talk(), **OPTIONS).data(CLIENT, OPENING)
    wanted: dict[tuple[str, int], bytes] = {}
    waiting: list[tuple[int, list[bytes]]] = []
    for direction, sender, name in (
        (CLIENT, "client", "basic.publish"),
        (SERVER, "server", "basic.deliver"),
    ):
        for channel in range(1, 65):
            octets = choose.randbytes(choose.randrange(0, 400))
            wanted[sender, channel] = octets
            cut = [octets[at : at + 97] for at in range(0, len(octets), 97)]
            pieces = [method(name, channel), header(channel, 60, len(octets))]
            waiting.append((direction, pieces + [body(channel, piece) for piece in cut]))
    while waiting:
        direction, pieces = choose.choice(waiting)
        feeder.data(direction, pieces.pop(0))
        waiting = [each for each in waiting if each[1]]
    done = feeder.finish()
    assert done.findings == []
    rows = done.messages()
    assert {(row["sender"], row["channel"]): row["body"] for row in rows} == wanted
    assert {row["status"] for row in rows} == {"complete"}


def test_longer_than_declared() -> None:
    """What is past the end is not counted; the next frame is read."""
    octets = publish() + header(1, 60, 4) + body(1, b"abc") + body(1, b"def") + publish()
    for pieces in ([octets], [octets[at : at + 1] for at in range(len(octets))]):
        done = sent(*pieces, **OPTIONS)
        assert findings(done) == [("content-body-longer", "6 bytes, 4 declared")]
        first, second = done.messages()
        assert (first["status"], first["body_size"], first["body_captured"]) == ("complete", 4, 4)
        assert first["body"] == b"abcd"
        assert first["body_sha256"] == hashlib.sha256(b"abcd").hexdigest()
        assert second["status"] == "incomplete"


def test_shorter_than_declared() -> None:
    done = sent(publish() + header(1, 60, 9) + body(1, b"abc") + publish() + header(1, 60, 0))
    assert findings(done) == [("content-body-shorter", "3 of 9 bytes, then basic.publish")]
    first, second = done.messages()
    assert (first["status"], first["body_size"], first["body_captured"]) == ("incomplete", 9, 3)
    assert second["status"] == "complete"


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_the_capture_ends_inside(pieces: int) -> None:
    """Nothing is wrong with traffic that goes on after the capture."""
    octets = [publish(), header(1, 60, 9), body(1, b"abc")][:pieces]
    done = sent(b"".join(octets), **OPTIONS)
    assert done.findings == []
    row = one(done)
    assert row["status"] == "incomplete"
    assert row["body_size"] == (9 if pieces > 1 else None)
    assert row["body_captured"] == (3 if pieces > 2 else 0)
    assert row["body_sha256"] is None


@pytest.mark.parametrize(
    ("octets", "codes", "messages"),
    [
        (header(1, 60, 3) + body(1, b"abc"), ["content-unexpected-frame"], 0),
        (body(1, b"abc"), ["content-unexpected-frame"], 0),
        (
            publish() + body(1, b"abc") + header(1, 60, 3),
            ["content-interrupted", "content-unexpected-frame"],
            1,
        ),
        (publish() + method("basic.qos"), ["content-interrupted"], 1),
        (publish() + publish(), ["content-interrupted"], 2),
        (publish() + header(1, 60, 3) + method("channel.close"), ["content-interrupted"], 1),
        (publish(1) + publish(2), [], 2),
    ],
)
def test_out_of_order(octets: bytes, codes: list[str], messages: int) -> None:
    done = sent(octets + HEARTBEAT_FRAME)
    assert done.codes == codes
    rows = done.messages()
    assert len(rows) == messages
    assert {row["status"] for row in rows} <= {"incomplete"}


def test_what_comes_out_of_order() -> None:
    """Both frames are named: the one that came and the one that should have."""
    for octets, detail in (
        (publish() + method("basic.qos"), "basic.qos came where the content header of "),
        (publish() + body(1, b"abc"), "a body frame came where the content header of "),
        (publish() + header(1, 60, 3) * 2, "a header frame came where the body of "),
    ):
        told = dict(findings(sent(octets + HEARTBEAT_FRAME)))
        assert told["content-interrupted"] == f"{detail}basic.publish should"


def test_class_and_weight() -> None:
    done = sent(publish() + header(1, 50, 3) + body(1, b"abc"), **OPTIONS)
    assert findings(done) == [("content-class-wrong", "class 50, method of class 60")]
    assert one(done)["body"] == b"abc"
    weighted = encoder.frame(2, 1, encoder.header_payload(60, 3, weight=7))
    done = sent(publish() + weighted + body(1, b"abc"), **OPTIONS)
    assert findings(done) == [("content-weight", "weight 7")]
    assert one(done)["body"] == b"abc"


def test_size_that_nobody_sends() -> None:
    """A declared size costs no memory."""
    done = sent(publish() + header(1, 60, 2**40) + body(1, b"abc"), **OPTIONS)
    assert done.findings == []
    row = one(done)
    assert (row["body_size"], row["body_captured"], row["body"]) == (2**40, 3, b"abc")


def test_size_that_no_column_holds() -> None:
    """It is null, and the content ends with the next method or with the half-stream."""
    declared = publish() + header(1, 60, 2**64 - 1)
    done = sent(declared + body(1, b"abc") + body(1, b"def"), **OPTIONS)
    assert findings(done) == [("number-out-of-range", "a body size of 2^63 or more")]
    row = one(done)
    assert (row["status"], row["body_size"], row["body_captured"]) == ("incomplete", None, 6)
    assert (row["body"], row["body_sha256"]) == (b"abcdef", None)
    done = sent(declared + body(1, b"abc") + publish() + header(1, 60, 0), **OPTIONS)
    assert findings(done) == [
        ("content-body-shorter", "3 of too many bytes, then basic.publish"),
        ("number-out-of-range", "a body size of 2^63 or more"),
    ]
    assert [row["status"] for row in done.messages()] == ["incomplete", "complete"]
    done = sent(declared + publish() + header(1, 60, 0))
    assert done.codes == ["content-interrupted", "number-out-of-range"]


def test_size_that_no_column_holds_in_midstream() -> None:
    octets = publish() + header(1, 60, 2**64 - 1) + body(1, b"abc") * 3
    done = Feeder(Talk(syn_seen=False)).data(CLIENT, octets).finish()
    assert (done.codes, done.count) == (["number-out-of-range"], 5)


PROPERTIES: dict[str, Any] = {
    "content_type": b"a/b", "content_encoding": b"gzip", "headers": [(b"h", Field("I", 1))],
    "delivery_mode": 2, "priority": 9, "correlation_id": b"c", "reply_to": b"r",
    "expiration": b"60", "message_id": b"m", "timestamp": 1700000000, "type": b"t",
    "user_id": b"u", "app_id": b"a", "cluster_id": b"z",
}  # fmt: skip
SHOWN: dict[str, Any] = {
    name: value.decode() if isinstance(value, bytes) else value
    for name, value in PROPERTIES.items()
    if name != "timestamp"
} | {
    "headers": '{"h":1}',
    "message_timestamp": datetime.datetime.fromtimestamp(1700000000, datetime.UTC),
}


def test_every_set_of_few_properties() -> None:
    """None, each alone, each missing, all: the others are null."""
    names = list(PROPERTIES)
    sets: list[set[str]] = [
        set(),
        set(names),
        *({name} for name in names),
        *(set(names) - {n} for n in names),
    ]
    for given in sets:
        done = sent(publish() + header(1, 60, 0, properties={n: PROPERTIES[n] for n in given}))
        assert done.findings == []
        row = one(done)
        shown = {"message_timestamp" if name == "timestamp" else name for name in given}
        assert {name: row[name] for name in SHOWN} == {
            name: value if name in shown else None for name, value in SHOWN.items()
        }


def test_message_timestamps() -> None:
    done = sent(publish() + header(1, 60, 0, properties={"timestamp": 1700000000123}))
    assert done.codes == ["timestamp-milliseconds"]
    found = one(done)["message_timestamp"]
    assert found == SHOWN["message_timestamp"] + datetime.timedelta(milliseconds=123)


@pytest.mark.parametrize(
    ("number", "codes"),
    [
        (253402300799, []),
        (253402300800, ["number-out-of-range"]),
        (2**62, ["number-out-of-range", "timestamp-milliseconds"]),
        (2**63, ["number-out-of-range"]),
        (2**64 - 1, ["number-out-of-range"]),
    ],
)
def test_message_timestamps_that_no_column_holds(number: int, codes: list[str]) -> None:
    done = sent(publish() + header(1, 60, 0, properties={"timestamp": number}))
    assert sorted(done.codes) == codes
    assert (one(done)["message_timestamp"] is None) == bool(codes)
    assert not codes or ("number-out-of-range", "properties of basic.publish") in findings(done)


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (FLAGS + b"\0\2", [("property-flags-undefined", "flags 0x0002")]),
        (FLAGS + b"\0\1\0\0", []),
        (FLAGS + b"\0\1", [("properties-malformed", "bytes missing")]),
        (FLAGS + b"\x80\0\x09ab", [("properties-malformed", "bytes missing")]),
        (FLAGS + b"\0\0xyz", [("properties-malformed", "bytes left over")]),
        (b"\0\x3c\0\0" + bytes(5), [("properties-malformed", "content header of 9 bytes")]),
        (b"", [("properties-malformed", "content header of 0 bytes")]),
    ],
)
def test_flags_and_properties_that_do_not_fit(payload: bytes, found: list[tuple[str, str]]) -> None:
    done = sent(publish() + encoder.frame(2, 1, payload) + HEARTBEAT_FRAME)
    assert findings(done) == found
    assert len(done.messages()) == 1


def test_more_contents_than_are_kept_open() -> None:
    """A method on each of very many channels: bounded, and found."""
    count = MAX_OPEN_CONTENTS + 500
    done = sent(b"".join(publish(channel) for channel in range(1, count + 1)))
    assert done.codes == ["channel-limit"]
    assert len(done.messages()) == count


def test_method_of_the_other_side_does_not_interrupt() -> None:
    """Each direction has its contents."""
    feeder = Feeder(Talk(), **OPTIONS).data(CLIENT, OPENING).data(CLIENT, publish())
    feeder.data(SERVER, method("basic.deliver")).data(CLIENT, header(1, 60, 1))
    feeder.data(SERVER, header(1, 60, 2)).data(SERVER, body(1, b"ss")).data(CLIENT, body(1, b"c"))
    done = feeder.finish()
    assert done.findings == []
    assert [(row["sender"], row["body"]) for row in done.messages()] == [
        ("server", b"ss"),
        ("client", b"c"),
    ]


def test_more_of_bodies_than_is_kept() -> None:
    """Bodies that never end hold so many bytes together and no more; what is dropped is said."""
    engine = Engine(bodies=True)
    octets = 1 << 20
    begin = encoder.PROTOCOL_HEADERS["0-9-1"] + publish(1)
    size = MAX_BODY_BYTES + octets
    key = ("10.0.0.1:1000", "10.0.0.2:5672")
    engine.feed_bytes(key, "client", begin + header(1, 60, size), 1)
    frame = body(1, bytes(octets))
    for _ in range(size // octets):
        engine.feed_bytes(key, "client", frame, 1)
    engine.finish()
    assert [finding.code for finding in engine.findings() if "limit" in finding.code] == [
        "body-limit"
    ]
    (message,) = engine.messages()
    assert message.body is None
    assert message.body_captured == size
