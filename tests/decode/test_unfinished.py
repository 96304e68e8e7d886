"""What is not whole yet is held up to a bound, over all connections, and said when it is not."""

from __future__ import annotations

import sys

import pytest

from amqpsniff import Engine
from amqpsniff.decode.contents import METHOD_BYTES
from amqpsniff.decode.redaction import LONG_LOGIN_BYTES, login_name, shortened
from amqpsniff.decode.state import MAX_UNFINISHED_BYTES
from amqpsniff.spec import METHODS
from tests import encoder
from tests.decode.feeding import CLIENT, Feeder, Talk
from tests.decode.script import OPENING, method, publish
from tests.encoder import HEARTBEAT_FRAME, body, header

MIB = 1 << 20
LARGE = MIB - 4096
"""Bytes of headers, nearly as many as a frame may have."""
COUNT = MAX_UNFINISHED_BYTES // MIB + 9


def key(number: int) -> tuple[str, str]:
    return f"10.0.0.1:{1000 + number}", "10.0.0.2:5672"


def large(channel: int, size: int = 1) -> bytes:
    return header(
        channel, 60, size, properties={"headers": [(b"k", encoder.Field("S", b"x" * LARGE))]}
    )


def hits(engine: Engine) -> list[str]:
    return [each.detail for each in engine.findings() if each.code == "session-limit"]


@pytest.mark.parametrize("connections", [1, COUNT])
def test_headers_of_contents(connections: int) -> None:
    """Beyond the bound a message has everything but its properties; later ones have all."""
    engine = Engine()
    for number in range(COUNT):
        octets = publish(number + 1) + large(number + 1)
        begin = OPENING if number < connections else b""
        engine.feed_bytes(key(number % connections), "client", begin + octets, 1)
    for number in range(COUNT):
        engine.feed_bytes(key(number % connections), "client", body(number + 1, b"b"), 1)
    engine.feed_bytes(key(0), "client", publish(1) + large(1, 0), 1)
    engine.finish()
    messages = list(engine.messages())
    assert [message.status for message in messages] == ["complete"] * (COUNT + 1)
    assert [message.routing_key for message in messages] == ["k"] * (COUNT + 1)
    kept = [message.headers is not None for message in messages]
    assert kept == [*sorted(kept[:-1], reverse=True), True]
    lost = kept.count(False)
    assert 9 <= lost < 20
    assert hits(engine) == [f"content headers: {lost} times"]


def test_frames_under_way() -> None:
    """Of a frame beyond the bound only the begin is kept, and what follows is read."""
    engine = Engine()
    for number in range(COUNT):
        octets = OPENING + publish() + large(1, 0)
        engine.feed_bytes(key(number), "client", octets[:-9], 1)
    for number in range(COUNT):
        engine.feed_bytes(key(number), "client", (large(1, 0))[-9:] + publish() + large(1, 0), 1)
    engine.finish()
    messages = list(engine.messages())
    assert [message.status for message in messages] == ["complete"] * 2 * COUNT
    lost = sum(message.headers in (None, {}) for message in messages)
    assert 9 <= lost < 20
    assert sum(int(each.split()[-2]) for each in hits(engine)[0].split(", ")) == lost


def test_nothing_is_held_in_the_end() -> None:
    """What ended, was given up or interrupted counts no more."""
    feeder = Feeder(*(Talk(syn_seen=slot < 9) for slot in range(12)))
    octets = b"".join(publish(each) + large(each) for each in (1, 2, 3, 2, 9))
    for slot in range(9):
        feeder.data(CLIENT, OPENING + octets[: len(octets) - 9 * slot], slot=slot)
    for slot in range(9, 12):
        feeder.data(CLIENT, octets[9 * slot :], slot=slot)
        feeder.gap(CLIENT, slot, slot=slot).data(CLIENT, large(1)[:-5000], slot=slot)
    held = feeder.decoder.handler.contents.budget
    assert held.held > 20 * MIB
    feeder.finish()
    assert held.held < MIB


def test_the_texts_of_every_method_with_content_are_kept() -> None:
    """They stand in its first bytes, whatever is left over behind them."""
    most = {"s": 256, "o": 1, "h": 2, "l": 4, "L": 8, "T": 8, "b": 1}
    wanted = {"exchange", "routing_key", "consumer_tag", "reply_text"}
    for row in METHODS:
        names = [each.name for each in row.arguments]
        last = max((names.index(name) for name in wanted & set(names)), default=-1)
        if row.content:
            sizes = [most[each.type] for each in row.arguments[: last + 1]]
            assert 4 + sum(sizes) <= METHOD_BYTES, row.name


def test_bytes_behind_a_method_with_content_are_not_kept() -> None:
    method_frame = publish()
    payload = method_frame[7:-1] + bytes(LARGE)
    feeder = Feeder().data(CLIENT, OPENING + encoder.frame(1, 1, payload))
    assert feeder.decoder.handler.contents.budget.held < 2 * METHOD_BYTES
    feeder.data(CLIENT, header(1, 60, 0))
    (row,) = feeder.finish().messages()
    assert row["routing_key"] == "k"


def test_long_logins_are_kept_for_their_name() -> None:
    for response, name in [(b"\0app\0" + b"t" * 3000, "app"), (b"x" * 3000, None),
                           (b"\0" + b"n" * 3000 + b"\0", None)]:  # fmt: skip
        octets = method("connection.start-ok", 0, mechanism=b"PLAIN", response=response)
        kept = shortened(octets[7:-1])
        assert len(kept) <= LONG_LOGIN_BYTES + 64
        assert login_name(kept) == name


def test_long_logins_have_their_user() -> None:
    engine = Engine()
    octets = method("connection.start-ok", 0, mechanism=b"PLAIN", response=b"\0app\0" + b"t" * 3000)
    engine.feed_bytes(key(0), "client", OPENING + octets, 1)
    engine.finish()
    (connection,) = engine.take("connections").to_pylist()
    assert connection["user"] == "app"


def test_an_open_content_does_not_hold_the_texts_of_its_batch() -> None:
    counts = []
    for octets in (publish(), publish() + header(1, 60, 0)):
        feeder = Feeder().data(CLIENT, OPENING + octets)
        frames, *_ = feeder.decoder.take()
        counts.append(sys.getrefcount(frames.vocabularies))
    assert counts[0] == counts[1]


def test_what_may_be_frames_while_framing_is_searched() -> None:
    """Half-streams that all look like the begin of a large frame hold no more than the bound."""
    begin = b"\x01\0\0\0\x0f\0\0\0\x0a\0\x0b" + bytes(LARGE // 2)
    feeder = Feeder(*(Talk(syn_seen=False) for _ in range(150)))
    for slot in range(150):
        feeder.data(CLIENT, begin, slot=slot)
    held = feeder.decoder.handler.contents.budget
    assert MAX_UNFINISHED_BYTES // 4 < held.held <= MAX_UNFINISHED_BYTES + 2 * MIB
    assert feeder.decoder.hits["frames while framing was searched"] > 0
    feeder.data(CLIENT, b"\xce" * 9 + HEARTBEAT_FRAME * 9, slot=149)
    frames = feeder.finish().frames()
    assert [row["frame_type"] for row in frames].count("heartbeat") == 9
    assert held.held == 0
